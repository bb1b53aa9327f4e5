/* SPDX-License-Identifier: MIT */
#include "agent/answer.h"

#include "base/jsonw.h"
#include "exec/put.h"

#include <string.h>

/* A reason is for people; feedback carries the whole. */
enum { REASON_BYTES_MAX = 1000 };

struct answer_usage answer_price(const struct adapter_usage *tokens,
                                 const struct brief_price *price)
{
    struct answer_usage out = {
        .tokens = *tokens,
        .usd = tokens->usd,
        .usd_known = tokens->usd_known,
    };
    if (!out.usd_known && price->known && tokens->known) {
        double fresh = (double)(tokens->input - tokens->cached);
        out.usd =
            (fresh * price->input + (double)tokens->cached * price->cached +
             (double)tokens->output * price->output) /
            1e6;
        out.usd_known = true;
    }
    return out;
}

int answer_code(enum judge_outcome outcome)
{
    switch (outcome) {
    case JUDGE_DONE:
    case JUDGE_CHECKPOINT: /* the result says so */
        return 0;
    case JUDGE_FAILED:
        return 1;
    case JUDGE_CHANGES:
        return 20;
    case JUDGE_BLOCKED:
        return 30;
    case JUDGE_REFUSED:
        return 75;
    }
    return 1;
}

/* A member with a text, cut where a character ends. */
static void add_text(struct strbuf *out, const char *name, const char *text)
{
    strbuf_addf(out, ",\"%s\":", name);
    jsonw_string(out, text);
}

static void add_reason(struct strbuf *out, const char *text)
{
    struct strbuf reason = {0};
    size_t len = strlen(text);
    if (len > REASON_BYTES_MAX) {
        len = REASON_BYTES_MAX;
        while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80) {
            len--;
        }
    }
    strbuf_add(&reason, text, len);
    strbuf_adds(&reason, text[len] != '\0' ? " ..." : "");
    add_text(out, "reason", strbuf_text(&reason));
    strbuf_release(&reason);
}

static void add_usage(struct strbuf *out, const struct answer_usage *usage)
{
    if (!usage->tokens.known && !usage->usd_known) {
        return;
    }
    strbuf_adds(out, ",\"usage\":{");
    if (usage->tokens.known) {
        strbuf_addf(out,
                    "\"input_tokens\":%lld,\"cached_tokens\":%lld,"
                    "\"output_tokens\":%lld",
                    (long long)usage->tokens.input,
                    (long long)usage->tokens.cached,
                    (long long)usage->tokens.output);
    }
    if (usage->usd_known) {
        strbuf_addf(out,
                    "%s\"usd\":%.9g",
                    usage->tokens.known ? "," : "",
                    usage->usd);
    }
    strbuf_adds(out, "}");
}

/* Reason, and the whole of it as feedback where a stage is to work again. */
static void
add_words(struct strbuf *out, enum judge_outcome outcome, const char *words)
{
    if (words[0] != '\0') {
        add_reason(out, words);
        if (outcome == JUDGE_CHANGES) {
            add_text(out, "feedback", words);
        }
    }
}

static void add_tasks(struct strbuf *out,
                      const struct brief *brief,
                      const struct judgement *judgement)
{
    if (judgement->task_count == 0) {
        return;
    }
    strbuf_adds(out, ",\"tasks\":[");
    for (uint32_t ix = 0; ix < judgement->task_count; ix++) {
        const struct judge_task *task = &judgement->tasks[ix];
        strbuf_adds(out, ix > 0 ? ",{\"task\":" : "{\"task\":");
        jsonw_string(out, brief->tasks[ix].task);
        add_text(out, "outcome", judge_outcome_name(task->outcome));
        add_words(out, task->outcome, task->reason);
        strbuf_adds(out, "}");
    }
    strbuf_adds(out, "]");
}

enum err answer_write(const char *dir,
                      const struct brief *brief,
                      const struct judgement *judgement,
                      const struct answer_usage *usage,
                      const char *resume,
                      struct diag *diag)
{
    struct strbuf text = {0};
    strbuf_addf(&text,
                "{\"outcome\":\"%s\"",
                judge_outcome_name(judgement->outcome));
    add_words(&text,
              judgement->outcome,
              judgement->feedback.len > 0 ? strbuf_text(&judgement->feedback)
                                          : strbuf_text(&judgement->reason));
    if (judgement->retry_at > 0) {
        strbuf_addf(&text,
                    ",\"retry_at\":%lld",
                    (long long)judgement->retry_at);
    }
    strbuf_adds(&text, judgement->stop ? ",\"stop\":true" : "");
    if (resume != NULL) {
        add_text(&text, "resume", resume);
    }
    add_usage(&text, usage);
    add_tasks(&text, brief, judgement);
    strbuf_adds(&text, "}\n");
    enum err err = put_write(dir, "result", &text, diag);
    strbuf_release(&text);
    return err;
}

enum err answer_write_usage(const char *dir,
                            const struct answer_usage *usage,
                            struct diag *diag)
{
    struct strbuf text = {0};
    strbuf_adds(
        &text,
        "{\"outcome\":\"failed\",\"reason\":\"the session was killed\"");
    add_usage(&text, usage);
    strbuf_adds(&text, "}\n");
    enum err err = put_write(dir, "result", &text, diag);
    strbuf_release(&text);
    return err;
}
