/* SPDX-License-Identifier: MIT */
/* Script parser: splits lines into words; requests take a fixed number. */
#include "sim/script.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/macros.h"
#include "base/mem.h"
#include "plan/alias.h"
#include "plan/plan.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 6 };

/* Operand of a request. */
enum operand {
    OPERAND_NONE,
    OPERAND_NUMBER,
    OPERAND_LIMIT,
    OPERAND_NAME,
    OPERAND_PRIORITY,
};

struct request_form {
    const char *word;
    enum script_request request;
    enum operand operand;
};

static const struct request_form request_forms[] = {
    {"add", SCRIPT_ADD, OPERAND_NAME},
    {"approve", SCRIPT_APPROVE, OPERAND_NAME},
    {"cancel", SCRIPT_CANCEL, OPERAND_NAME},
    {"cap", SCRIPT_CAP, OPERAND_NUMBER},
    {"first", SCRIPT_FIRST, OPERAND_NAME},
    {"hold", SCRIPT_HOLD, OPERAND_NAME},
    {"limit", SCRIPT_LIMIT, OPERAND_LIMIT},
    {"pause", SCRIPT_PAUSE, OPERAND_NONE},
    {"priority", SCRIPT_PRIORITY, OPERAND_PRIORITY},
    {"release", SCRIPT_RELEASE, OPERAND_NAME},
    {"rerun", SCRIPT_RERUN, OPERAND_NAME},
    {"resume", SCRIPT_RESUME, OPERAND_NONE},
    {"retry", SCRIPT_RETRY, OPERAND_NAME},
    {"revoke", SCRIPT_REVOKE, OPERAND_NAME},
    {"skip", SCRIPT_SKIP, OPERAND_NAME},
};

struct end_form {
    const char *word;
    enum script_outcome outcome;
    bool counted; /* NAME:COUNT; COUNT defaults to 1 */
};

static const struct end_form end_forms[] = {
    {"block", SCRIPT_BLOCK, false},
    {"changes", SCRIPT_CHANGES, true},
    {"checkpoint", SCRIPT_CHECKPOINT, true},
    {"fail", SCRIPT_FAIL, true},
    {"fatal", SCRIPT_FATAL, true},
    {"later", SCRIPT_LATER, true},
    {"refuse", SCRIPT_REFUSE, true},
};

/* The words of one line; the string is cut in place. */
struct words {
    char *text;
    char *word[WORDS_MAX];
    uint32_t count;
    bool too_many;
};

/* Return the length of a line up to its comment: a `#` at a word's start. */
static size_t length_of(const char *line)
{
    size_t len = 0;
    while (line[len] != '\0' && line[len] != '\n' &&
           (line[len] != '#' ||
            (len > 0 && line[len - 1] != ' ' && line[len - 1] != '\t'))) {
        len++;
    }
    return len;
}

static struct words split(const char *line)
{
    struct words words = {.text = mem_strndup(line, length_of(line))};
    char *rest = NULL;
    for (char *word = strtok_r(words.text, " \t\r", &rest); word != NULL;
         word = strtok_r(NULL, " \t\r", &rest)) {
        if (words.count == WORDS_MAX) {
            words.too_many = true;
            break;
        }
        words.word[words.count++] = word;
    }
    return words;
}

/* Parse a number from 0 to a million; return the rest of the string. */
static const char *read_number(const char *text, int64_t *out)
{
    if (*text < '0' || *text > '9') {
        return NULL;
    }
    char *end = NULL;
    long long value = strtoll(text, &end, 10);
    *out = value;
    return value <= 1000000 ? end : NULL;
}

static enum err read_max(struct script_at *at, const char *word, bool full)
{
    if (full && strcmp(word, "none") == 0) {
        at->max = INT64_MAX;
        return ERR_OK;
    }
    const char *end = read_number(word, &at->max);
    if (end == NULL) {
        return ERR_INVALID;
    }
    if (full && strcmp(end, "%") == 0 && at->max >= 1 && at->max <= 100) {
        at->percent = (uint32_t)at->max;
        at->max = 0;
        return ERR_OK;
    }
    return *end == '\0' ? ERR_OK : ERR_INVALID;
}

static char *in_folder(const char *name, const char *folder)
{
    struct strbuf path = {0};
    if (folder != NULL && name[0] != '/') {
        strbuf_addf(&path, "%s/", folder);
    }
    strbuf_adds(&path, name);
    return path.text;
}

static enum err read_operands(struct script_at *at,
                              const struct request_form *form,
                              const struct words *words,
                              const char *folder,
                              struct diag *diag)
{
    static const uint32_t counts[] = {
        [OPERAND_NONE] = 3,
        [OPERAND_NUMBER] = 4,
        [OPERAND_LIMIT] = 5,
        [OPERAND_NAME] = 4,
        [OPERAND_PRIORITY] = 5,
    };
    static const char *const shapes[] = {
        [OPERAND_NONE] = "",
        [OPERAND_NUMBER] = " NUMBER",
        [OPERAND_LIMIT] = " NAME NUMBER|PERCENT%|none",
        [OPERAND_NAME] = " NAME",
        [OPERAND_PRIORITY] = " NAME 0..9",
    };
    enum err err = words->count == counts[form->operand] ? ERR_OK : ERR_INVALID;
    if (err == ERR_OK && form->operand == OPERAND_NUMBER) {
        err = read_max(at, words->word[3], false);
    } else if (err == ERR_OK && form->operand == OPERAND_LIMIT) {
        err = read_max(at, words->word[4], true);
    } else if (err == ERR_OK && form->operand == OPERAND_PRIORITY) {
        err = read_max(at, words->word[4], false);
        err = at->max <= PLAN_PRIORITY_MAX ? err : ERR_INVALID;
    }
    if (err != ERR_OK) {
        return diag_set(diag,
                        err,
                        "expected \"%s%s\"",
                        form->word,
                        shapes[form->operand]);
    }
    if (form->operand >= OPERAND_LIMIT) {
        at->name = form->request == SCRIPT_ADD
                       ? in_folder(words->word[3], folder)
                       : mem_strndup(words->word[3], strlen(words->word[3]));
    }
    return ERR_OK;
}

/* Insert sorted by time; equal times in the given order. */
static void insert(struct sim_script *script, struct script_at at)
{
    at.place = script->request_count;
    script->requests = mem_resize(script->requests,
                                  (size_t)script->request_count + 1,
                                  sizeof(script->requests[0]));
    uint32_t ix = script->request_count++;
    while (ix > 0 && script->requests[ix - 1].at_ns > at.at_ns) {
        script->requests[ix] = script->requests[ix - 1];
        ix--;
    }
    script->requests[ix] = at;
}

static enum err add_request(struct sim_script *script,
                            const struct words *words,
                            const char *folder,
                            struct diag *diag)
{
    struct script_at at = {0};
    if (words->count < 3 ||
        duration_read(words->word[1], strlen(words->word[1]), &at.at_ns) !=
            ERR_OK) {
        return diag_set(
            diag,
            ERR_INVALID,
            "expected \"at TIME REQUEST\", such as \"at 10m cap 1\"");
    }
    for (uint32_t ix = 0; ix < ARRAY_COUNT(request_forms); ix++) {
        const struct request_form *form = &request_forms[ix];
        if (strcmp(words->word[2], form->word) == 0) {
            at.request = form->request;
            enum err err = read_operands(&at, form, words, folder, diag);
            if (err == ERR_OK) {
                insert(script, at);
            }
            return err;
        }
    }
    return diag_set(diag,
                    ERR_INVALID,
                    "unknown request \"%s\" (known: add, approve, cancel, cap, "
                    "first, hold, limit, pause, priority, release, rerun, "
                    "resume, retry, revoke, skip)",
                    words->word[2]);
}

/* Parse the "=DURATION" after the `len` bytes of an operand, if it has one; cut
 * it off. */
static enum err
read_later(struct script_end *end, const char *text, size_t *len)
{
    const char *equals = memrchr(text, '=', *len);
    if (equals == NULL) {
        return ERR_OK;
    }
    size_t before = (size_t)(equals - text);
    enum err err = duration_read(equals + 1, *len - before - 1, &end->later_ns);
    *len = before;
    return end->later_ns > 0 ? err : ERR_INVALID;
}

/* Parse NAME, or NAME:COUNT, in the first `len` bytes of a word. */
static enum err read_end(struct script_end *end,
                         const struct end_form *form,
                         const char *word,
                         size_t len)
{
    const char *colon = form->counted ? memrchr(word, ':', len) : NULL;
    int64_t count = 1;
    if (colon != NULL) {
        const char *rest = read_number(colon + 1, &count);
        if (rest != word + len || count < 1) {
            return ERR_INVALID;
        }
    }
    size_t name = colon != NULL ? (size_t)(colon - word) : len;
    if (name == 0) {
        return ERR_INVALID;
    }
    end->name = mem_strndup(word, name);
    end->word = mem_strndup(word, len);
    end->count = (uint32_t)count;
    return ERR_OK;
}

static enum err add_end(struct sim_script *script,
                        const struct end_form *form,
                        const struct words *words,
                        struct diag *diag)
{
    struct script_end end = {.outcome = form->outcome};
    bool later = form->outcome == SCRIPT_LATER;
    const char *operand = words->count == 2 ? words->word[1] : "";
    size_t len = strlen(operand);
    enum err err = later ? read_later(&end, operand, &len) : ERR_OK;
    err = err == ERR_OK ? read_end(&end, form, operand, len) : err;
    if (err != ERR_OK) {
        return diag_set(diag,
                        ERR_INVALID,
                        "expected \"%s %s%s%s\"",
                        form->word,
                        form->outcome == SCRIPT_REFUSE ? "PROVIDER" : "TASK",
                        form->counted ? ":COUNT" : "",
                        later ? "[=DURATION]" : "");
    }
    script->ends = mem_resize(script->ends,
                              (size_t)script->end_count + 1,
                              sizeof(script->ends[0]));
    script->ends[script->end_count++] = end;
    return ERR_OK;
}

static enum err add_words(struct sim_script *script,
                          const struct words *words,
                          const char *folder,
                          struct diag *diag)
{
    if (words->count == 0) {
        return ERR_OK;
    }
    if (words->too_many) {
        return diag_set(diag, ERR_INVALID, "too many words");
    }
    if (strcmp(words->word[0], "at") == 0) {
        return add_request(script, words, folder, diag);
    }
    const struct alias *alias =
        alias_find("script", words->word[0], strlen(words->word[0]));
    const char *word = alias != NULL ? alias->now : words->word[0];
    script->old = alias != NULL ? alias : script->old;
    for (uint32_t ix = 0; ix < ARRAY_COUNT(end_forms); ix++) {
        if (strcmp(word, end_forms[ix].word) == 0) {
            return add_end(script, &end_forms[ix], words, diag);
        }
    }
    return diag_set(diag,
                    ERR_INVALID,
                    "unknown word \"%s\" (known: at, block, changes, "
                    "checkpoint, fail, fatal, later, refuse)",
                    words->word[0]);
}

enum err sim_script_add(struct sim_script *script,
                        const char *line,
                        const char *folder,
                        struct diag *diag)
{
    struct words words = split(line);
    enum err err = add_words(script, &words, folder, diag);
    mem_free(words.text);
    return err;
}

void sim_script_add_request(struct sim_script *script,
                            const struct script_at *request)
{
    struct script_at at = *request;
    INVARIANT(at.request != SCRIPT_ADD);
    at.name = at.name != NULL ? mem_strdup(at.name) : NULL;
    insert(script, at);
}

enum err sim_script_read(struct sim_script *script,
                         const char *text,
                         size_t len,
                         const char *folder,
                         struct diag *diag)
{
    if (memchr(text, '\0', len) != NULL) {
        return diag_set(diag, ERR_INVALID, "1: the script contains a NUL byte");
    }
    uint32_t number = 0;
    for (size_t at = 0; at < len;) {
        const char *end = memchr(text + at, '\n', len - at);
        size_t line_len = end != NULL ? (size_t)(end - text) - at : len - at;
        char *line = mem_strndup(text + at, line_len);
        struct diag inner = {0};
        number++;
        enum err err = sim_script_add(script, line, folder, &inner);
        mem_free(line);
        if (err != ERR_OK) {
            return diag_set(diag, err, "%u: %s", number, inner.text);
        }
        at += line_len + 1;
    }
    return ERR_OK;
}

void sim_script_release(struct sim_script *script)
{
    for (uint32_t ix = 0; ix < script->request_count; ix++) {
        mem_free(script->requests[ix].name);
        mem_free(script->requests[ix].text);
    }
    for (uint32_t ix = 0; ix < script->end_count; ix++) {
        mem_free(script->ends[ix].name);
        mem_free(script->ends[ix].word);
    }
    mem_free(script->requests);
    mem_free(script->ends);
    *script = (struct sim_script){0};
}
