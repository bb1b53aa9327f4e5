/* SPDX-License-Identifier: MIT */
/*
 * Requests to the scheduler, for all back ends: the fate of a request is known
 * even if the scheduler dies while processing it.
 */
#include "store/backend.h"

#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    SETTLE_TRIES = 250, /* while one scheduler replaces another */
    SETTLE_WAIT_US = 20000,
};

enum err store_add_key(struct strbuf *out,
                       struct store_key *key_out,
                       const char *json,
                       struct diag *diag)
{
    unsigned char bytes[(sizeof(key_out->text) - 1) / 2];
    INVARIANT(json[0] == '{');
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return diag_set(diag, ERR_IO, "random bytes: %s", strerror(errno));
    }
    for (size_t ix = 0; ix < sizeof(bytes); ix++) {
        (void)snprintf(key_out->text + 2 * ix, 3, "%02x", bytes[ix]);
    }
    store_put_key(out, key_out, json);
    return ERR_OK;
}

void store_put_key(struct strbuf *out,
                   const struct store_key *key,
                   const char *json)
{
    INVARIANT(json[0] == '{');
    INVARIANT(strlen(key->text) == sizeof(key->text) - 1);
    struct jsonw writer = {.out = out};
    jsonw_object(&writer, NULL);
    jsonw_text(&writer, "key", key->text);
    jsonw_raw(&writer, NULL, json + 1); /* its members, and its end */
}

enum err store_look(struct store *store,
                    const char *json,
                    int timeout_ms,
                    char **answer_out,
                    struct diag *diag)
{
    *answer_out = NULL;
    enum err err = store->ops->ask(store, json, timeout_ms, answer_out, diag);
    INVARIANT((err == ERR_OK) == (*answer_out != NULL));
    return err;
}

enum err store_ping(struct store *store, int timeout_ms, struct diag *diag)
{
    static const char ping[] = "{\"verb\":\"ping\"}";
    char *pong;
    enum err err = store_look(store, ping, timeout_ms, &pong, diag);
    mem_free(pong);
    return err;
}

/* Wait until no scheduler is about to exit; false: unknown. A scheduler that
 * answers is a new one, or has never read the request. */
static bool has_settled(struct store *store, int timeout_ms)
{
    for (int tries = 0; tries < SETTLE_TRIES; tries++) {
        struct store_owner owner;
        struct diag ignored = {0};
        enum err err = store_ping(store, timeout_ms, &ignored);
        if (err == ERR_OK || err == ERR_TIMEOUT) {
            return err == ERR_OK;
        }
        if (err == ERR_NOT_FOUND &&
            store_owner(store, &owner, &ignored) == ERR_NOT_FOUND) {
            return true;
        }
        (void)usleep(SETTLE_WAIT_US);
    }
    return false;
}

static enum err on_command(void *ctx, const struct store_command *command)
{
    char **answer = ctx;
    if (command->answer != NULL) {
        mem_free(*answer);
        *answer = mem_strndup(command->answer, strlen(command->answer));
    }
    return ERR_OK;
}

/*
 * Find the answer of a scheduler that exited before it sent the answer. It
 * stores both together, so once it has exited, the outcome is known.
 */
static enum err find_answer(struct store *store,
                            const struct store_key *key,
                            int timeout_ms,
                            char **answer_out,
                            struct diag *diag)
{
    static const struct store_visitor visitor = {.command = on_command};
    const struct store_query query = {.key = key->text};
    if (!has_settled(store, timeout_ms)) {
        return ERR_IO; /* *diag has the reason */
    }
    enum err err = store_read(store, &query, &visitor, answer_out, NULL, diag);
    if (err != ERR_OK) {
        mem_free(*answer_out);
        *answer_out = NULL;
        return err;
    }
    return *answer_out != NULL ? ERR_OK : ERR_NOT_FOUND;
}

enum err store_ask(struct store *store,
                   const struct store_key *key,
                   const char *json,
                   int timeout_ms,
                   char **answer_out,
                   struct diag *diag)
{
    INVARIANT(strstr(json, key->text) != NULL);
    INVARIANT(store->batch == NULL);
    *answer_out = NULL;
    enum err err = store->ops->ask(store, json, timeout_ms, answer_out, diag);
    if (err == ERR_IO) {
        err = find_answer(store, key, timeout_ms, answer_out, diag);
    }
    INVARIANT((err == ERR_OK) == (*answer_out != NULL));
    return err;
}
