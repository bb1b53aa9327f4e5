/* SPDX-License-Identifier: MIT */
#include "agent/answer.h"

#include "base/jsonw.h"
#include "exec/attempt_file.h"

#include <string.h>

/* A reason is for messages; feedback carries the full text. */
enum { REASON_BYTES_MAX = 1000 };

struct adapter_usage answer_price(struct adapter_usage used,
                                  const struct brief_price *price)
{
    if (!used.usd_known && price->known && used.known) {
        double fresh = (double)(used.input - used.cached);
        used.usd = (fresh * price->input + (double)used.cached * price->cached +
                    (double)used.output * price->output) /
                   1e6;
        used.usd_known = true;
    }
    return used;
}

/* Add the reason, truncated at a character boundary. */
static void add_reason(struct jsonw *json, const char *text)
{
    struct strbuf reason = {0};
    size_t len = adapter_cut(text, REASON_BYTES_MAX);
    strbuf_add(&reason, text, len);
    strbuf_adds(&reason, text[len] != '\0' ? " ..." : "");
    jsonw_text(json, "reason", strbuf_text(&reason));
    strbuf_release(&reason);
}

static void add_usage(struct jsonw *json, const struct adapter_usage *usage)
{
    if (!usage->known && !usage->usd_known) {
        return;
    }
    jsonw_object(json, "usage");
    if (usage->known) {
        jsonw_int(json, "input_tokens", usage->input);
        jsonw_int(json, "cached_tokens", usage->cached);
        jsonw_int(json, "output_tokens", usage->output);
    }
    if (usage->usd_known) {
        jsonw_number(json, "usd", 9, usage->usd);
    }
    jsonw_object_end(json);
}

/* Add the reason, and the full text as feedback for rework. */
static void
add_words(struct jsonw *json, enum sched_outcome outcome, const char *words)
{
    if (words[0] != '\0') {
        add_reason(json, words);
        if (outcome == OUTCOME_CHANGES) {
            jsonw_text(json, "feedback", words);
        }
    }
}

static void add_tasks(struct jsonw *json,
                      const struct brief *brief,
                      const struct judgement *judgement)
{
    if (judgement->task_count == 0) {
        return;
    }
    jsonw_array(json, "tasks");
    for (uint32_t ix = 0; ix < judgement->task_count; ix++) {
        const struct judge_task *task = &judgement->tasks[ix];
        jsonw_object(json, NULL);
        jsonw_text(json, "task", brief->tasks[ix].task);
        jsonw_text(json, "outcome", outcome_name(task->outcome));
        add_words(json, task->outcome, task->reason);
        if (task->final) {
            jsonw_bool(json, "final", true);
        }
        if (task->outputs != NULL) {
            jsonw_raw(json, "outputs", task->outputs);
        }
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

/* Close the object, and write the file. */
static enum err put(const char *dir, struct jsonw *json, struct diag *diag)
{
    jsonw_object_end(json);
    strbuf_adds(json->out, "\n");
    enum err err = attempt_file_write(dir, "result", json->out, diag);
    strbuf_release(json->out);
    return err;
}

enum err answer_write(const char *dir,
                      const struct brief *brief,
                      const struct judgement *judgement,
                      const struct adapter_usage *usage,
                      const char *resume,
                      struct diag *diag)
{
    struct strbuf text = {0};
    struct jsonw json = {.out = &text};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "outcome", outcome_name(judgement->outcome));
    add_words(&json,
              judgement->outcome,
              judgement->feedback.len > 0 ? strbuf_text(&judgement->feedback)
                                          : strbuf_text(&judgement->reason));
    if (judgement->lacks != OUTCOME_LACKS_ANSWER) {
        jsonw_text(&json, "lacks", outcome_lack_name(judgement->lacks));
    }
    if (judgement->retry_at > 0) {
        jsonw_int(&json, "retry_at", judgement->retry_at);
    }
    if (judgement->finish) {
        jsonw_bool(&json, "finish", true);
    }
    if (judgement->final) {
        jsonw_bool(&json, "final", true);
    }
    if (judgement->outputs != NULL) {
        jsonw_raw(&json, "outputs", judgement->outputs);
    }
    if (judgement->stop) {
        jsonw_bool(&json, "stop", true);
    }
    if (judgement->progress) {
        jsonw_bool(&json, "progress", true);
    }
    if (resume != NULL) {
        jsonw_text(&json, "resume", resume);
    }
    add_usage(&json, usage);
    add_tasks(&json, brief, judgement);
    return put(dir, &json, diag);
}

enum err answer_write_usage(const char *dir,
                            const struct adapter_usage *usage,
                            struct diag *diag)
{
    struct strbuf text = {0};
    struct jsonw json = {.out = &text};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "outcome", outcome_name(OUTCOME_FAILED));
    jsonw_text(&json, "reason", "the session was killed");
    add_usage(&json, usage);
    return put(dir, &json, diag);
}
