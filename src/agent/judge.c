/* SPDX-License-Identifier: MIT */
#include "agent/judge.h"

#include "agent/rollout.h"
#include "base/duration.h"
#include "base/mem.h"
#include "base/strip.h"

#include <string.h>

enum {
    DENIALS_BYTES_MAX = 1000,
    FENCES_MAX = 8, /* JSON blocks to try, from the last */
};

/* Return the object at the start of a string, or NULL. */
static json_t *load_object(const char *text, size_t flags)
{
    json_t *object =
        json_loadb(text, strlen(text), flags | JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(object)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

/*
 * Parse the whole string as an object, or find the last block of JSON in it. A
 * string in the block may contain a fence, so the block extends to the end of
 * the object, and a fence without an object after it is skipped.
 */
static json_t *find_block(const char *text)
{
    static const char fence[] = "```json";
    const char *starts[FENCES_MAX];
    uint32_t count = 0;
    json_t *object = load_object(text, 0);
    for (const char *at = strstr(text, fence); at != NULL;
         at = strstr(at + 1, fence)) {
        starts[count++ % FENCES_MAX] = at + strlen(fence);
    }
    uint32_t first = count > FENCES_MAX ? count - FENCES_MAX : 0;
    while (object == NULL && count > first) {
        object =
            load_object(starts[--count % FENCES_MAX], JSON_DISABLE_EOF_CHECK);
    }
    return object;
}

/* Parse the name of a verdict; false: it is invalid. */
static bool read_verdict(const json_t *answer, enum sched_outcome *out)
{
    if (adapter_is(answer, "verdict", "approve")) {
        *out = OUTCOME_DONE;
        return true;
    }
    if (adapter_is(answer, "verdict", "changes")) {
        *out = OUTCOME_CHANGES;
        return true;
    }
    return false;
}

static void judge_review(struct judgement *out, const json_t *answer)
{
    const char *feedback = adapter_text(answer, "feedback");
    if (!read_verdict(answer, &out->outcome)) {
        out->outcome = OUTCOME_FAILED;
        strbuf_adds(&out->reason,
                    answer == NULL
                        ? "the review gave no verdict"
                        : "the review gave a verdict that is neither approve "
                          "nor changes");
    } else if (out->outcome == OUTCOME_CHANGES) {
        strbuf_adds(&out->feedback, feedback);
        strbuf_adds(&out->reason,
                    feedback[0] != '\0' ? feedback
                                        : "changes requested without feedback");
    } else {
        strbuf_adds(&out->reason, feedback);
    }
}

/* Judge one task, which the answers must name exactly once. */
static void
judge_member(struct judge_task *out, const char *task, const json_t *answers)
{
    const json_t *found = NULL;
    bool twice = false;
    size_t ix;
    json_t *answer;
    json_array_foreach(answers, ix, answer)
    {
        if (adapter_is(answer, "task", task)) {
            twice = found != NULL;
            found = answer;
        }
    }
    const char *reason = adapter_text(found, "feedback");
    if (found == NULL || twice || !read_verdict(found, &out->outcome)) {
        out->outcome = OUTCOME_FAILED;
        reason = twice ? "the review gave two verdicts on it"
                       : "the review gave no verdict on it";
    }
    out->reason = mem_strndup(reason, strlen(reason));
}

static void judge_batch(struct judgement *out,
                        const struct brief *brief,
                        const json_t *answer)
{
    const json_t *answers = json_object_get(answer, "tasks");
    out->outcome = OUTCOME_DONE;
    out->tasks = mem_zalloc(brief->task_count, sizeof(out->tasks[0]));
    out->task_count = brief->task_count;
    for (uint32_t ix = 0; ix < brief->task_count; ix++) {
        judge_member(&out->tasks[ix], brief->tasks[ix].task, answers);
    }
}

/* Judge a successful session of a work stage. Without a block of JSON it is
 * done: an implementing stage must still show a commit. */
static void judge_work(struct judgement *out, const json_t *answer)
{
    const char *outcome = adapter_text(answer, "outcome");
    const char *question = adapter_text(answer, "question");
    const char *summary = adapter_text(answer, "summary");
    if (strcmp(outcome, "blocked") == 0) {
        out->outcome = OUTCOME_BLOCKED;
        if (question[0] == '\0') {
            question =
                summary[0] != '\0' ? summary : adapter_text(answer, "reason");
        }
        strbuf_adds(&out->reason,
                    question[0] != '\0' ? question
                                        : "blocked, without a question");
    } else if (outcome[0] != '\0' && strcmp(outcome, "done") != 0) {
        out->outcome = OUTCOME_FAILED;
        adapter_describe(&out->reason,
                         "unknown outcome in the result: ",
                         outcome);
    } else {
        out->outcome = OUTCOME_DONE;
        strbuf_adds(&out->reason, summary);
    }
}

static void judge_answer(struct judgement *out, const struct judge_input *input)
{
    json_t *answer = input->seen->answer != NULL
                         ? json_incref(input->seen->answer)
                         : find_block(strbuf_text(&input->seen->text));
    switch (input->brief->kind) {
    case BRIEF_WORK:
        judge_work(out, answer);
        break;
    case BRIEF_REVIEW:
        judge_review(out, answer);
        break;
    case BRIEF_BATCH:
        judge_batch(out, input->brief, answer);
        break;
    }
    json_decref(answer);
}

/* Append the most specific line of standard error: the first with an error,
 * else the last. A backtrace may follow the error. */
static void add_errors(struct strbuf *out, const char *errors)
{
    struct strbuf text = {0};
    const char *best = "";
    size_t best_len = 0;
    bool found = false;
    strip_text(&text, errors, strlen(errors));
    for (const char *at = strbuf_text(&text); *at != '\0' && !found;) {
        size_t len = strcspn(at, "\n");
        found = memmem(at, len, "rror", strlen("rror")) != NULL;
        if (found || strspn(at, " \t") < len) {
            best = at;
            best_len = len;
        }
        at += at[len] == '\n' ? len + 1 : len;
    }
    char *line = mem_strndup(best, best_len);
    adapter_describe(out, "", line);
    mem_free(line);
    strbuf_release(&text);
}

/* Append the program's own error, its standard error, or its exit status. */
static void add_error(struct strbuf *out, const struct judge_input *input)
{
    const char *program = input->brief->adapter->name;
    const struct runner_end *end = input->end;
    if (end->signal != 0) {
        strbuf_addf(out, "%s was killed by signal %d", program, end->signal);
    } else if (input->seen->error.len > 0) {
        strbuf_addf(out, "%s: ", program);
        adapter_describe(out, "", strbuf_text(&input->seen->error));
    } else if (!input->seen->finished && input->errors[0] != '\0') {
        strbuf_addf(out, "%s: ", program);
        add_errors(out, input->errors);
    } else {
        strbuf_addf(out,
                    "%s exited with code %d without finishing its session",
                    program,
                    end->code);
    }
}

/* Judge a session that did not succeed. */
static void judge_failure(struct judgement *out,
                          const struct judge_input *input)
{
    switch (adapter_cause_of(input->brief->adapter,
                             input->seen,
                             input->end->code,
                             input->errors)) {
    case ADAPTER_LIMIT:
        out->outcome = OUTCOME_REFUSED;
        out->retry_at = input->seen->retry_at;
        if (out->retry_at == 0 && input->now > 0) {
            out->retry_at = rollout_parse_time(strbuf_text(&input->seen->error),
                                               input->now);
        }
        break;
    case ADAPTER_KEY:
        out->outcome = OUTCOME_REFUSED;
        out->stop = true;
        break;
    case ADAPTER_GONE:
        out->outcome = OUTCOME_FAILED;
        out->again = input->brief->call.resume != NULL;
        break;
    case ADAPTER_SPENT: /* worded as by the scheduler */
        out->outcome = OUTCOME_BLOCKED;
        out->lacks = OUTCOME_LACKS_MONEY;
        strbuf_adds(
            &out->reason,
            "budget: the session has used up the rest; its work is kept");
        return;
    case ADAPTER_NONE:
    case ADAPTER_ERROR:
        out->outcome = OUTCOME_FAILED;
        break;
    }
    add_error(&out->reason, input);
}

/* A checkpoint, so that the next session gets an operator's message. */
static void judge_message(struct judgement *out)
{
    judge_release(out);
    out->outcome = OUTCOME_CHECKPOINT;
    out->progress = true;
    strbuf_adds(&out->reason, "an operator has a message");
}

static char *copy_text(const char *text)
{
    return text != NULL ? mem_strdup(text) : NULL;
}

/* Return what the session said of a task of its batch, or NULL. */
static const struct attempt_task_result *
find_task(const struct attempt_result *finish, const char *task)
{
    for (uint32_t ix = 0; ix < finish->task_count; ix++) {
        if (strcmp(finish->tasks[ix].task, task) == 0) {
            return &finish->tasks[ix];
        }
    }
    return NULL;
}

/* The session has said how it ended. */
static void judge_finish(struct judgement *out, const struct judge_input *input)
{
    const struct attempt_result *finish = input->finish;
    const struct brief *brief = input->brief;
    out->outcome = finish->has_outcome ? finish->outcome : OUTCOME_DONE;
    out->finish = true;
    out->final = finish->final;
    out->outputs = copy_text(finish->outputs);
    out->retry_at = finish->retry_at_ns / SECOND_NS;
    if (finish->retry_after_ns > 0) {
        out->retry_at = input->now + finish->retry_after_ns / SECOND_NS;
    }
    strbuf_adds(&out->reason, finish->reason != NULL ? finish->reason : "");
    strbuf_adds(&out->feedback,
                finish->feedback != NULL ? finish->feedback : "");
    if (brief->kind != BRIEF_BATCH || finish->task_count == 0) {
        return;
    }
    out->tasks = mem_zalloc(brief->task_count, sizeof(out->tasks[0]));
    out->task_count = brief->task_count;
    for (uint32_t ix = 0; ix < brief->task_count; ix++) {
        struct judge_task *task = &out->tasks[ix];
        const struct attempt_task_result *said =
            find_task(finish, brief->tasks[ix].task);
        const char *words = said == NULL             ? NULL
                            : said->feedback != NULL ? said->feedback
                                                     : said->reason;
        task->outcome = said != NULL ? said->outcome : OUTCOME_FAILED;
        task->final = said != NULL && said->final;
        task->outputs = copy_text(said != NULL ? said->outputs : NULL);
        task->reason = mem_strdup(said == NULL    ? "no verdict was given on it"
                                  : words != NULL ? words
                                                  : "");
    }
}

struct judgement judge_session(const struct judge_input *input)
{
    struct judgement out = {.outcome = OUTCOME_FAILED};
    const struct adapter_seen *seen = input->seen;
    if (input->finish != NULL && input->end->stop != RUNNER_TERMINATED) {
        judge_finish(&out, input);
    } else if (input->end->stop == RUNNER_TERMINATED) {
        strbuf_adds(&out.reason, "the session was stopped by another process");
    } else if (input->end->stop == RUNNER_CHECKPOINT) {
        out.outcome = OUTCOME_CHECKPOINT;
    } else if (input->end->stop == RUNNER_MESSAGE) {
        judge_message(&out);
    } else if (!seen->finished || !seen->succeeded || input->end->signal != 0) {
        judge_failure(&out, input);
    } else if (seen->denials.len > 0 && input->brief->writes &&
               !input->committed) {
        const char *denials = strbuf_text(&seen->denials);
        out.outcome = OUTCOME_BLOCKED;
        strbuf_adds(&out.reason, "denied: ");
        strbuf_add(&out.reason,
                   denials,
                   adapter_cut(denials, DENIALS_BYTES_MAX));
    } else {
        judge_answer(&out, input);
    }
    bool answered = out.outcome == OUTCOME_DONE ||
                    out.outcome == OUTCOME_CHANGES ||
                    out.outcome == OUTCOME_BLOCKED;
    if (input->unheard && answered) {
        judge_message(&out);
    }
    return out;
}

void judge_release(struct judgement *judgement)
{
    strbuf_release(&judgement->reason);
    strbuf_release(&judgement->feedback);
    for (uint32_t ix = 0; ix < judgement->task_count; ix++) {
        mem_free(judgement->tasks[ix].reason);
        mem_free(judgement->tasks[ix].outputs);
    }
    mem_free(judgement->tasks);
    mem_free(judgement->outputs);
    *judgement = (struct judgement){0};
}
