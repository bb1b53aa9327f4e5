/* SPDX-License-Identifier: MIT */
#include "engine/carry.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static json_t *parse(const char *text)
{
    json_t *json = text != NULL ? json_loads(text, 0, NULL) : NULL;
    if (!json_is_object(json)) {
        json_decref(json);
        return NULL;
    }
    return json;
}

static const char *member(const json_t *json, const char *name)
{
    return json_string_value(json_object_get(json, name));
}

struct carry carry_read(const char *text)
{
    json_t *json = parse(text);
    return (struct carry){
        .json = json,
        .after = member(json, "after"),
        .reason = member(json, "reason"),
        .question = member(json, "question"),
        .answer = member(json, "answer"),
        .resume = member(json, "resume"),
    };
}

void carry_release(struct carry *carry)
{
    json_decref((json_t *)carry->json);
    *carry = (struct carry){0};
}

/* Set a member; NULL removes it. */
static void set(json_t *json, const char *name, const char *value)
{
    if (value == NULL) {
        (void)json_object_del(json, name);
    } else {
        (void)json_object_set_new(json, name, json_string(value));
    }
}

static void replace(char **text, json_t *json)
{
    INVARIANT(json_object_get(json, "after") != NULL);
    char *made = json_dumps(json, JSON_COMPACT);
    mem_free(*text);
    *text = mem_strdup(made);
    free(made);
    json_decref(json);
}

static json_t *open_text(const char *text)
{
    json_t *json = parse(text);
    return json != NULL ? json : json_object();
}

/* The outcome's name for the next attempt. */
static const char *name_of(enum sched_outcome outcome)
{
    if (outcome == OUTCOME_CHANGES) {
        outcome = OUTCOME_DONE; /* a verdict on other work: itself done */
    } else if (outcome == OUTCOME_LOST) {
        outcome = OUTCOME_FAILED;
    }
    return outcome_name(outcome);
}

void carry_end(char **text,
               const struct verdict *verdict,
               enum sched_outcome outcome,
               const char *reason,
               const struct attempt_result *result)
{
    if (outcome == OUTCOME_DONE && result->resume == NULL) {
        mem_free(*text); /* most tasks: nothing to pass on */
        *text = NULL;
        return;
    }
    json_t *json = open_text(*text);
    bool lost = outcome == OUTCOME_FAILED || outcome == OUTCOME_LOST ||
                outcome == OUTCOME_STOPPED;
    bool kept = outcome == OUTCOME_REFUSED && result->resume == NULL;
    set(json, "after", name_of(outcome));
    set(json,
        "lacks",
        outcome == OUTCOME_BLOCKED ? outcome_lack_name(verdict->lacks) : NULL);
    set(json, "reason", reason);
    set(json, "question", outcome == OUTCOME_BLOCKED ? reason : NULL);
    set(json, "answer", NULL);
    if (!kept) { /* refused before it began: the conversation is unchanged */
        set(json, "resume", lost ? NULL : result->resume);
    }
    replace(text, json);
}

void carry_send_back(char **text)
{
    json_t *json = open_text(*text);
    set(json, "after", outcome_name(OUTCOME_CHANGES));
    replace(text, json);
}

void carry_answer(char **text, const char *answer)
{
    json_t *json = open_text(*text);
    set(json, "after", "answer");
    set(json, "answer", answer);
    replace(text, json);
}

/* Derive it from the reason: rows of earlier versions have no "lacks". */
static enum outcome_lack lack_of_old_row(const char *reason)
{
    static const char money[] = "budget: ";
    static const char start[] = "it could not be started: ";
    if (reason != NULL && strncmp(reason, money, strlen(money)) == 0) {
        return OUTCOME_LACKS_MONEY;
    }
    return reason != NULL && strncmp(reason, start, strlen(start)) == 0
               ? OUTCOME_LACKS_START
               : OUTCOME_LACKS_ANSWER;
}

enum outcome_lack carry_lack(const char *text, const char *reason)
{
    json_t *json = parse(text);
    const char *lacks = member(json, "lacks");
    enum outcome_lack lack =
        lacks != NULL ? outcome_read_lack(lacks) : lack_of_old_row(reason);
    json_decref(json);
    return lack;
}
