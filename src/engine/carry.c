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

/* Return a number that is stored as JSON; 0: it is none. */
static uint64_t number_of(const json_t *json)
{
    json_int_t value = json_integer_value(json);
    return value > 0 ? (uint64_t)value : 0;
}

struct carry carry_read(const char *text)
{
    json_t *json = parse(text);
    size_t count = json_array_size(json_object_get(json, "messages"));
    uint64_t heard = number_of(json_object_get(json, "heard"));
    count = count < CARRY_MESSAGES_MAX ? count : CARRY_MESSAGES_MAX;
    return (struct carry){
        .message_count = (uint32_t)count,
        .heard = (uint32_t)(heard < count ? heard : count),
        .json = json,
        .after = member(json, "after"),
        .reason = member(json, "reason"),
        .question = member(json, "question"),
        .answer = member(json, "answer"),
        .resume = member(json, "resume"),
        .since = number_of(json_object_get(json, "since")),
    };
}

void carry_release(struct carry *carry)
{
    json_decref((json_t *)carry->json);
    *carry = (struct carry){0};
}

const char *
carry_message(const struct carry *carry, uint32_t ix, uint64_t *token_out)
{
    INVARIANT(ix < carry->message_count);
    const json_t *message =
        json_array_get(json_object_get(carry->json, "messages"), ix);
    const char *text = member(message, "text");
    if (token_out != NULL) {
        *token_out = number_of(json_object_get(message, "token"));
    }
    return text != NULL ? text : "";
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

/* The conversation of an attempt has in it what came before the attempt. */
static void set_heard(json_t *json, uint64_t token)
{
    const json_t *messages = json_object_get(json, "messages");
    json_int_t heard = 0;
    for (size_t ix = 0; ix < json_array_size(messages); ix++) {
        const json_t *message = json_array_get(messages, ix);
        heard += number_of(json_object_get(message, "token")) < token;
    }
    if (heard > 0) {
        (void)json_object_set_new(json, "heard", json_integer(heard));
    }
}

/* Set the conversation for the next attempt, and its messages. */
static void set_resume(json_t *json, const struct carry_ended *ended)
{
    enum sched_outcome outcome = ended->outcome;
    const char *resume = ended->result->resume;
    bool lost = outcome == OUTCOME_FAILED || outcome == OUTCOME_FATAL ||
                outcome == OUTCOME_LOST || outcome == OUTCOME_STOPPED;
    bool kept = (outcome == OUTCOME_REFUSED || outcome == OUTCOME_LATER) &&
                resume == NULL;
    if (outcome == OUTCOME_DONE) {
        set(json, "messages", NULL);
    }
    if (kept) {
        return; /* it did not begin: the conversation is unchanged */
    }
    set(json, "resume", lost ? NULL : resume);
    set(json, "heard", NULL);
    if (!lost && resume != NULL) {
        set_heard(json, ended->token);
    }
}

void carry_end(char **text, const struct carry_ended *ended)
{
    enum sched_outcome outcome = ended->outcome;
    const char *reason = ended->reason;
    json_t *json = open_text(*text);
    if (outcome == OUTCOME_DONE && ended->result->resume == NULL &&
        json_object_get(json, "since") == NULL) {
        json_decref(json);
        mem_free(*text); /* most tasks: nothing to pass on */
        *text = NULL;
        return;
    }
    set(json, "after", name_of(outcome));
    set(json,
        "lacks",
        outcome == OUTCOME_BLOCKED ? outcome_lack_name(ended->verdict->lacks)
                                   : NULL);
    set(json, "reason", reason);
    set(json, "question", outcome == OUTCOME_BLOCKED ? reason : NULL);
    set(json, "answer", NULL);
    set_resume(json, ended);
    replace(text, json);
}

void carry_send_back(char **text)
{
    json_t *json = open_text(*text);
    set(json, "after", outcome_name(OUTCOME_CHANGES));
    replace(text, json);
}

void carry_send_back_since(char **text, uint64_t token)
{
    carry_send_back(text);
    json_t *json = open_text(*text);
    (void)json_object_set_new(json, "since", json_integer((json_int_t)token));
    replace(text, json);
}

void carry_answer(char **text, const char *answer)
{
    json_t *json = open_text(*text);
    set(json, "after", "answer");
    set(json, "answer", answer);
    replace(text, json);
}

enum err carry_tell(char **text, uint64_t token, const char *message)
{
    json_t *json = open_text(*text);
    json_t *messages = json_object_get(json, "messages");
    size_t bytes = strlen(message);
    for (size_t ix = 0; ix < json_array_size(messages); ix++) {
        const json_t *one = json_array_get(messages, ix);
        bytes += json_string_length(json_object_get(one, "text"));
    }
    if (json_array_size(messages) >= CARRY_MESSAGES_MAX ||
        bytes > CARRY_MESSAGES_BYTES_MAX) {
        json_decref(json);
        return ERR_LIMIT;
    }
    if (!json_is_array(messages)) {
        messages = json_array();
        (void)json_object_set_new(json, "messages", messages);
    }
    (void)json_array_append_new(
        messages,
        json_pack("{s:I, s:s}", "token", (json_int_t)token, "text", message));
    if (member(json, "after") == NULL) {
        set(json, "after", "first");
    }
    replace(text, json);
    return ERR_OK;
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
