/* SPDX-License-Identifier: MIT */
#include "git/fence.h"

#include "base/crash.h"
#include "base/invariant.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 16 };

/* A parsed fence. */
struct state {
    uint64_t token;
    uint64_t step;
    struct strbuf shares; /* lines "TOKEN TASK\n" of other tasks */
    uint64_t own;         /* token in the line of this task; 0: no line */
};

static void parse(struct state *state, const char *text, const char *task)
{
    char *end;
    state->token = strtoull(text, &end, 10);
    state->step = strtoull(end, &end, 10); /* absent in earlier versions */
    const char *line = end + strcspn(end, "\n");
    while (*line == '\n' && line[1] != '\0') {
        line++;
        size_t len = strcspn(line, "\n");
        uint64_t token = strtoull(line, &end, 10);
        const char *name = *end == ' ' ? end + 1 : end;
        size_t name_len = (size_t)(line + len - name);
        if (name_len == strlen(task) && memcmp(name, task, name_len) == 0) {
            state->own = token;
        } else {
            strbuf_add(&state->shares, line, len);
            strbuf_adds(&state->shares, "\n");
        }
        line += len;
    }
}

/* Return the token of the attempt that supersedes this one; 0: none. */
static uint64_t find_newer(const struct fence *fence, const struct state *state)
{
    if (fence->open) {
        return 0;
    }
    if (fence->take) {
        return state->token > fence->token ? state->token
               : state->own > fence->token ? state->own
                                           : 0;
    }
    uint64_t holder = fence->alone ? state->token : state->own;
    if (holder == fence->token && state->token <= fence->token) {
        return 0;
    }
    return holder > state->token ? holder : state->token;
}

/* Append the content of the fence after this change. */
static void add_next(struct strbuf *out,
                     const struct fence *fence,
                     const struct state *state)
{
    bool later = fence->open && state->token > fence->token;
    uint64_t holder = fence->alone && !later ? fence->token : state->token;
    strbuf_addf(out, "%" PRIu64 " %" PRIu64 "\n", holder, state->step + 1);
    if (!fence->alone) {
        strbuf_adds(out, strbuf_text(&state->shares));
        strbuf_addf(out, "%" PRIu64 " %s\n", fence->token, fence->task);
    }
}

/* Append the line that changes one fence, which was read. */
static enum err add_change(struct git *git,
                           const struct fence *fence,
                           struct strbuf *lines,
                           struct diag *diag)
{
    struct state state = {0};
    struct strbuf text = {0};
    struct git_id blob;
    enum err err = ERR_OK;
    parse(&state, fence->text, fence->task);
    uint64_t newer = find_newer(fence, &state);
    if (newer != 0) {
        err = diag_set(diag,
                       ERR_DENIED,
                       "this attempt (token %" PRIu64
                       ") is superseded by the attempt with token %" PRIu64,
                       fence->token,
                       newer);
    }
    add_next(&text, fence, &state);
    if (err == ERR_OK) {
        err = git_put_blob(git, strbuf_text(&text), &blob, diag);
    }
    if (err == ERR_OK && fence->was.text[0] == '\0') {
        strbuf_addf(lines, "create %s %s\n", fence->ref, blob.text);
    } else if (err == ERR_OK) {
        strbuf_addf(lines,
                    "update %s %s %s\n",
                    fence->ref,
                    blob.text,
                    fence->was.text);
    }
    strbuf_release(&state.shares);
    strbuf_release(&text);
    return err;
}

/* Take one answer of `git cat-file --batch`: "ID blob SIZE", the content and a
 * line feed; or "REF missing". */
static enum err take_answer(struct strbuf *list,
                            size_t *cursor,
                            struct fence *fence,
                            struct diag *diag)
{
    static const char kind[] = " blob ";
    const char *line = git_next_line(list, cursor);
    fence->was = (struct git_id){0};
    fence->text = "";
    if (line == NULL || strchr(line, ' ') == NULL) {
        return diag_set(diag, ERR_IO, "git cat-file prints too little");
    }
    size_t len = strcspn(line, " ");
    if (strncmp(line, fence->ref, len) == 0 && fence->ref[len] == '\0') {
        return ERR_OK;
    }
    size_t size = strtoull(line + len + strlen(kind), NULL, 10);
    if (strncmp(line + len, kind, strlen(kind)) != 0 ||
        len >= sizeof(fence->was.text) || *cursor + size >= list->len) {
        return diag_set(diag, ERR_CONFLICT, "%s is no fence", fence->ref);
    }
    memcpy(fence->was.text, line, len);
    fence->text = list->text + *cursor;
    *cursor += size;
    list->text[(*cursor)++] = '\0';
    return ERR_OK;
}

/* Read the fences into `list`, which their texts borrow; *moved_out gets
 * whether one differs from the last read. */
static enum err read_all(struct git *git,
                         struct fence *fences,
                         size_t count,
                         struct strbuf *list,
                         bool *moved_out,
                         struct diag *diag)
{
    struct strbuf refs = {0};
    for (size_t ix = 0; ix < count; ix++) {
        strbuf_addf(&refs, "%s\n", fences[ix].ref);
    }
    struct git_call call = {
        .args = PROC_ARGS("cat-file", "--batch"),
        .input = strbuf_text(&refs),
        .output = list,
    };
    strbuf_clear(list);
    enum err err = git_call(git, &call, NULL, diag);
    size_t cursor = 0;
    *moved_out = false;
    for (size_t ix = 0; err == ERR_OK && ix < count; ix++) {
        struct git_id was = fences[ix].was;
        err = take_answer(list, &cursor, &fences[ix], diag);
        *moved_out = *moved_out || strcmp(was.text, fences[ix].was.text) != 0;
    }
    strbuf_release(&refs);
    return err;
}

/* Try once to change the refs and the fences, which were read. */
static enum err change(struct git *git,
                       const struct fence *fences,
                       size_t count,
                       const char *lines,
                       bool alone,
                       const char *why,
                       struct diag *diag)
{
    struct strbuf all = {0};
    enum err err = ERR_OK;
    for (size_t ix = 0; err == ERR_OK && ix < count; ix++) {
        INVARIANT(fences[ix].token > 0);
        err = add_change(git, &fences[ix], &all, diag);
    }
    strbuf_adds(&all, lines);
    crash_point("fence-before-change");
    if (err == ERR_OK) {
        err = git_transact(git, strbuf_text(&all), alone, why, diag);
        crash_point("fence-changed");
    }
    strbuf_release(&all);
    return err;
}

enum err fence_change(struct git *git,
                      struct fence *fences,
                      size_t count,
                      const char *lines,
                      bool alone,
                      const char *why,
                      struct diag *diag)
{
    INVARIANT(count > 0);
    struct strbuf list = {0};
    bool moved = true;
    enum err err = ERR_CONFLICT;
    for (int ix = 0; err == ERR_CONFLICT && moved && ix < TRIES; ix++) {
        err = read_all(git, fences, count, &list, &moved, diag);
        moved = moved || ix == 0;
        if (err == ERR_OK && moved) {
            err = change(git, fences, count, lines, alone, why, diag);
        } else if (err == ERR_OK) {
            err = ERR_CONFLICT; /* diag says which line */
        }
    }
    for (size_t ix = 0; ix < count; ix++) {
        fences[ix].text = NULL;
    }
    strbuf_release(&list);
    return err;
}
