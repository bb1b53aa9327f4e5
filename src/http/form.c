/* SPDX-License-Identifier: MIT */
#include "http/form.h"

#include "base/jsonw.h"
#include "base/macros.h"
#include "base/utf8.h"
#include "http/route.h"

#include <stdlib.h>
#include <string.h>

/* The fields of a form. */
enum field {
    FIELD_VERB,
    FIELD_RUN,
    FIELD_TASK,
    FIELD_TEXT,
    FIELD_STEP,
    FIELD_SEEN,
    FIELD_COMMIT,
    FIELD_AT,    /* place of the next comment */
    FIELD_NOTE,  /* the comment */
    FIELD_NOTES, /* all comments; not a field of the form */
    FIELD_BACK,
    FIELD_COUNT
};

static const char *const names[] = {
    [FIELD_VERB] = "verb",
    [FIELD_RUN] = "run",
    [FIELD_TASK] = "task",
    [FIELD_TEXT] = "text",
    [FIELD_STEP] = "step",
    [FIELD_SEEN] = "seen",
    [FIELD_COMMIT] = "commit",
    [FIELD_AT] = "at",
    [FIELD_NOTE] = "note",
    [FIELD_BACK] = "back",
};

/* What the page can order; `text`: it takes one. */
static const struct {
    const char *verb;
    bool text;
} verbs[] = {
    {"answer", true},
    {"approve", true},
    {"cancel", false},
    {"cap", false},
    {"drain", false},
    {"first", false},
    {"hold", false},
    {"pause", false},
    {"release", false},
    {"rerun", false},
    {"resume", false},
    {"retry", false},
    {"rework", true},
    {"seen", false},
    {"skip", false},
    {"tell", true},
};

/* Decode a value; false: it is malformed. Browsers send CR LF. */
static bool decode(struct strbuf *out, const char *text, size_t len)
{
    struct strbuf raw = {0};
    bool good = route_decode(&raw, text, len, true);
    for (size_t ix = 0; ix < raw.len; ix++) {
        good = good && raw.text[ix] != '\0';
        if (raw.text[ix] != '\r') {
            strbuf_add(out, raw.text + ix, 1);
        }
    }
    strbuf_release(&raw);
    return good && utf8_is_valid(strbuf_text(out), out->len);
}

/* Note a comment, which comes after its place: "src/a.c:12: TEXT". */
static void add_note(struct strbuf fields[FIELD_COUNT])
{
    struct strbuf *note = &fields[FIELD_NOTE];
    while (note->len > 0 && note->text[note->len - 1] == '\n') {
        note->text[--note->len] = '\0';
    }
    if (note->len > 0) {
        strbuf_addf(&fields[FIELD_NOTES],
                    "- %s: %s\n",
                    strbuf_text(&fields[FIELD_AT]),
                    note->text);
    }
    strbuf_clear(note);
    strbuf_clear(&fields[FIELD_AT]);
}

/* Read "name=value" into its field. Of equal names, the first counts, except
 * for comments. */
static bool read_field(struct strbuf fields[FIELD_COUNT],
                       const char *at,
                       size_t name_len,
                       size_t value_len)
{
    for (size_t ix = 0; ix < FIELD_COUNT; ix++) {
        if (names[ix] == NULL || name_len != strlen(names[ix]) ||
            strncmp(names[ix], at, name_len) != 0 || fields[ix].len > 0) {
            continue;
        }
        bool good = decode(&fields[ix], at + name_len + 1, value_len);
        if (good && ix == FIELD_NOTE) {
            add_note(fields);
        }
        return good;
    }
    return true;
}

/* Read "name=value&..." into the fields. */
static bool
read_fields(struct strbuf fields[FIELD_COUNT], const char *body, size_t len)
{
    const char *end = body + len;
    bool good = true;
    for (const char *at = body; at < end && good;) {
        const char *stop = memchr(at, '&', (size_t)(end - at));
        stop = stop != NULL ? stop : end;
        const char *equals = memchr(at, '=', (size_t)(stop - at));
        good = equals == NULL || read_field(fields,
                                            at,
                                            (size_t)(equals - at),
                                            (size_t)(stop - equals) - 1);
        at = stop < end ? stop + 1 : end;
    }
    return good;
}

/* Append the comments on a diff to the text. */
static void join_notes(struct strbuf fields[FIELD_COUNT])
{
    struct strbuf *text = &fields[FIELD_TEXT];
    if (fields[FIELD_NOTES].len > 0) {
        strbuf_addf(text,
                    "%sComments on the changes up to commit %.12s:\n%s",
                    text->len > 0 ? "\n\n" : "",
                    strbuf_text(&fields[FIELD_COMMIT]),
                    strbuf_text(&fields[FIELD_NOTES]));
    }
}

/* Read until when the operator has seen everything; 0: it is not a time. */
static int64_t read_seen(const char *text)
{
    bool good = strspn(text, "0123456789") == strlen(text);
    return good ? strtoll(text, NULL, 10) : 0;
}

/* Append a value of a query. */
static void add_escaped(struct strbuf *out, const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        strbuf_addf(out, "%%%02X", (unsigned)(unsigned char)*at);
    }
}

/* Whether to go back there: a path of this server, and nothing else. */
static bool is_path(const char *text)
{
    return text[0] == '/' && text[1] != '/' && text[1] != '\\' &&
           strpbrk(text, "\n\t\\\"<> ") == NULL;
}

static void
add_json(struct strbuf *out, const struct strbuf fields[FIELD_COUNT], bool text)
{
    struct jsonw json = {.out = out};
    const char *step = strbuf_text(&fields[FIELD_STEP]);
    jsonw_object(&json, NULL);
    jsonw_text(&json, "verb", strbuf_text(&fields[FIELD_VERB]));
    if (fields[FIELD_RUN].len > 0) {
        jsonw_text(&json, "run", strbuf_text(&fields[FIELD_RUN]));
    }
    if (fields[FIELD_TASK].len > 0) {
        jsonw_text(&json, "task", strbuf_text(&fields[FIELD_TASK]));
    }
    if (text && fields[FIELD_TEXT].len > 0) {
        jsonw_text(&json, "text", strbuf_text(&fields[FIELD_TEXT]));
    }
    if (step[0] != '\0') {
        jsonw_int(&json, "step", step[0] == '-' ? -1 : 1);
    }
    jsonw_object_end(&json);
}

enum err form_read(struct form_order *out,
                   const char *body,
                   size_t len,
                   struct diag *diag)
{
    struct strbuf fields[FIELD_COUNT] = {{0}};
    enum err err = ERR_OK;
    *out = (struct form_order){0};
    if (!read_fields(fields, body, len)) {
        err = diag_set(diag, ERR_INVALID, "the form is malformed");
    }
    join_notes(fields);
    const char *back = strbuf_text(&fields[FIELD_BACK]);
    strbuf_adds(&out->back, is_path(back) ? back : "/?run=");
    if (!is_path(back)) {
        add_escaped(&out->back, strbuf_text(&fields[FIELD_RUN]));
    }
    size_t ix = 0;
    while (ix < ARRAY_COUNT(verbs) &&
           strcmp(verbs[ix].verb, strbuf_text(&fields[FIELD_VERB])) != 0) {
        ix++;
    }
    if (err == ERR_OK && ix == ARRAY_COUNT(verbs)) {
        err = diag_set(diag, ERR_INVALID, "the page has no such order");
    }
    if (err == ERR_OK && strcmp(verbs[ix].verb, "seen") == 0) {
        out->seen_ns = read_seen(strbuf_text(&fields[FIELD_SEEN]));
        if (out->seen_ns == 0) {
            err = diag_set(diag, ERR_INVALID, "\"seen\" must be a time");
        }
    } else if (err == ERR_OK) {
        add_json(&out->json, fields, verbs[ix].text);
    }
    for (ix = 0; ix < FIELD_COUNT; ix++) {
        strbuf_release(&fields[ix]);
    }
    return err;
}

void form_release(struct form_order *order)
{
    strbuf_release(&order->json);
    strbuf_release(&order->back);
}
