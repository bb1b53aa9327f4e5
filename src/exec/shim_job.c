/* SPDX-License-Identifier: MIT */
/*
 * Parser of requests. They come from our own scheduler, but an invalid request
 * is an error here, not a crash.
 */
#include "exec/shim_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Position of the reader in the message. */
struct reader {
    char *at;
    char *end;
    bool bad; /* a string was missing */
};

static char *next_text(struct reader *reader)
{
    char *text = reader->at;
    size_t left = (size_t)(reader->end - text);
    char *nul = left > 0 ? memchr(text, '\0', left) : NULL;
    if (nul == NULL) {
        reader->bad = true;
        return reader->end;
    }
    reader->at = nul + 1;
    return text;
}

/* Whether one of the strings sets the same variable as `text`. */
static bool is_set(char *const *texts, uint32_t count, const char *text)
{
    size_t len = (size_t)(strchrnul(text, '=') - text);
    for (uint32_t ix = 0; ix < count; ix++) {
        if (texts[ix][0] == text[0] && strncmp(texts[ix], text, len) == 0 &&
            texts[ix][len] == '=') {
            return true;
        }
    }
    return false;
}

/* Append the inherited variables that the request does not set. */
static void inherit(char **envp, uint32_t given)
{
    uint32_t count = given;
    for (char **at = environ; *at != NULL; at++) {
        if (!is_set(envp, given, *at)) {
            envp[count++] = *at;
        }
    }
    envp[count] = NULL;
}

int shim_job_read(struct shim_job *job, const struct shim_message *message)
{
    memcpy(&job->head, message->bytes, sizeof(job->head));
    struct reader reader = {
        .at = message->bytes + sizeof(job->head),
        .end = message->bytes + message->len,
    };
    uint32_t argc = job->head.argc;
    uint32_t given = job->head.env_count;
    size_t nonce_len = strnlen(job->head.nonce, sizeof(job->head.nonce));
    if (nonce_len >= ATTEMPT_NONCE_BYTES || argc == 0 || argc > message->len ||
        given > message->len) {
        return EINVAL;
    }
    size_t inherited = 0;
    while (environ[inherited] != NULL) {
        inherited++;
    }
    job->argv = calloc(argc + (size_t)given + inherited + 2, sizeof(char *));
    if (job->argv == NULL) {
        return ENOMEM;
    }
    job->envp = job->argv + argc + 1;
    job->dir = next_text(&reader);
    job->folder = next_text(&reader);
    job->prepare = job->head.has_prepare == 1 ? next_text(&reader) : NULL;
    job->lease = job->head.has_lease == 1 ? next_text(&reader) : NULL;
    job->spare = job->head.has_spare == 1 ? next_text(&reader) : NULL;
    for (uint32_t ix = 0; ix < argc; ix++) {
        job->argv[ix] = next_text(&reader);
    }
    for (uint32_t ix = 0; ix < given; ix++) {
        job->envp[ix] = next_text(&reader);
    }
    if (reader.bad || reader.at != reader.end || job->dir[0] != '/') {
        return EINVAL;
    }
    inherit(job->envp, given);
    return 0;
}
