/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the output of an agent's program. The first byte selects the
 * adapter, the second one the exit code; the rest are lines. What is seen and
 * judged must be within the limits that adapter.h and judge.h promise. The same
 * bytes are standard error, a rollout of codex, a time, and a prompt of a plan.
 */
#include "adapter/adapter.h"
#include "adapter/template.h"
#include "agent/judge.h"
#include "agent/rollout.h"
#include "base/invariant.h"
#include "base/macros.h"
#include "base/mem.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NOW INT64_C(1794844800)
#define TIME_MAX INT64_C(9000000000)

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    INVARIANT(setenv("TZ", "UTC", 1) == 0);
    return 0;
}

static void check_count(int64_t count)
{
    INVARIANT(count >= 0 && count <= ADAPTER_COUNT_MAX);
}

static void check_time(int64_t time)
{
    INVARIANT(time >= 0 && time <= TIME_MAX);
}

/* A line of a log: nothing that moves the cursor. */
static void check_line(const struct strbuf *line)
{
    for (size_t ix = 0; ix < line->len; ix++) {
        unsigned char byte = (unsigned char)line->text[ix];
        INVARIANT(byte >= 0x20 || byte == '\n');
    }
}

static void check_seen(const struct adapter_seen *seen)
{
    check_count(seen->usage.input);
    check_count(seen->usage.cached);
    check_count(seen->usage.output);
    check_time(seen->retry_at);
    INVARIANT(seen->usage.usd >= 0);
    INVARIANT(seen->status == 0 ||
              (seen->status >= 100 && seen->status <= 599));
    INVARIANT(seen->answer == NULL || json_is_object(seen->answer));
    INVARIANT(seen->meter_count <= ADAPTER_METERS_MAX);
    for (uint32_t ix = 0; ix < seen->meter_count; ix++) {
        INVARIANT(seen->meters[ix].name[0] != '\0');
        INVARIANT(seen->meters[ix].percent >= 0);
        check_time(seen->meters[ix].resets_at);
    }
    if (seen->conversation != NULL) {
        INVARIANT(seen->conversation[0] != '\0');
        INVARIANT(strpbrk(seen->conversation, "/ .\n") == NULL);
        INVARIANT(seen->conversation[0] != '-');
    }
}

static void check_judgement(const struct judge_input *input)
{
    struct judgement judgement = judge_session(input);
    check_time(judgement.retry_at);
    INVARIANT(outcome_name(judgement.outcome) != NULL);
    INVARIANT(!judgement.stop || judgement.outcome == OUTCOME_REFUSED);
    INVARIANT(!judgement.again || judgement.outcome == OUTCOME_FAILED);
    INVARIANT(judgement.retry_at == 0 || judgement.outcome == OUTCOME_REFUSED);
    INVARIANT(judgement.task_count == 0 ||
              judgement.task_count == input->brief->task_count);
    if (judgement.outcome == OUTCOME_FAILED) {
        INVARIANT(judgement.reason.len > 0);
    }
    for (uint32_t ix = 0; ix < judgement.task_count; ix++) {
        INVARIANT(judgement.tasks[ix].reason != NULL);
    }
    judge_release(&judgement);
}

/* All kinds of answers, and all ways to end. */
static void judge_all(const struct adapter *adapter,
                      const struct adapter_seen *seen,
                      int code,
                      const char *errors)
{
    static const enum brief_kind kinds[] = {
        BRIEF_WORK,
        BRIEF_REVIEW,
        BRIEF_BATCH,
    };
    struct brief_task tasks[] = {{.task = "a"}, {.task = "b"}};
    const struct runner_end ends[] = {
        {.code = code},
        {.code = -1, .signal = SIGKILL},
        {.code = code, .stop = RUNNER_CHECKPOINT},
        {.code = code, .stop = RUNNER_TERMINATED},
    };
    for (size_t kind = 0; kind < ARRAY_COUNT(kinds); kind++) {
        struct brief brief = {
            .adapter = adapter,
            .call = {.resume = "x"},
            .kind = kinds[kind],
            .writes = kinds[kind] == BRIEF_WORK,
            .tasks = tasks,
            .task_count = kinds[kind] == BRIEF_BATCH ? 2 : 1,
        };
        for (size_t end = 0; end < ARRAY_COUNT(ends); end++) {
            check_judgement(&(struct judge_input){
                .brief = &brief,
                .seen = seen,
                .end = &ends[end],
                .errors = errors,
                .now = NOW,
            });
        }
    }
}

static void take_line(const struct adapter *adapter,
                      struct adapter_seen *seen,
                      const char *line,
                      size_t len)
{
    struct strbuf text = {0};
    json_t *event = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
    if (event != NULL) {
        adapter->event(seen, event, &text);
        check_line(&text);
        check_seen(seen);
    }
    json_decref(event);
    strbuf_release(&text);
}

static void expand(const char *text)
{
    const char *values[TEMPLATE_COUNT] = {[TEMPLATE_BODY] = text};
    bool used[TEMPLATE_COUNT];
    char bad[64];
    struct strbuf out = {0};
    template_expand(&out, text, values, used);
    (void)template_check(text, bad, sizeof(bad));
    strbuf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    uint32_t count = 0;
    while (adapter_at(count) != NULL) {
        count++;
    }
    const struct adapter *adapter = adapter_at(data[0] % count);
    INVARIANT(adapter != NULL);
    struct adapter_seen seen = {0};
    struct adapter_seen rollout = {0};
    const char *bytes = (const char *)data + 2;
    const char *end = (const char *)data + size;
    char *errors = mem_strndup(bytes, strnlen(bytes, size - 2));
    for (const char *at = bytes; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((newline != NULL ? newline : end) - at);
        take_line(adapter, &seen, at, len);
        rollout_take_line(&rollout, at, len);
        check_seen(&rollout);
        at += newline != NULL ? len + 1 : len;
    }
    (void)adapter_cause_of(adapter, &seen, data[1], errors);
    judge_all(adapter, &seen, data[1], "");
    judge_all(adapter, &seen, data[1], errors);
    judge_all(adapter, &rollout, data[1], errors);
    int64_t time = rollout_parse_time(errors, NOW);
    INVARIANT(time == 0 || (time > NOW && time <= TIME_MAX));
    expand(errors);
    mem_free(errors);
    adapter_seen_release(&seen);
    adapter_seen_release(&rollout);
    return 0;
}
