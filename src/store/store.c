/* SPDX-License-Identifier: MIT */
/*
 * The way from the address to the back end. What is the same for all of them
 * is checked here.
 */
#include "store/store.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "store/sqlite_internal.h"

#include <string.h>
#include <time.h>

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

enum err store_open(struct store **out,
                    const char *address,
                    enum store_mode mode,
                    struct diag *diag)
{
    *out = NULL;
    if (address[0] == '\0') {
        return diag_set(diag, ERR_INVALID, "the store's address is empty");
    }
    if (has_prefix(address, "postgresql://") ||
        has_prefix(address, "postgres://")) {
        return diag_set(diag,
                        ERR_INVALID,
                        "this sluice cannot use PostgreSQL: name a directory "
                        "as the store");
    }
    return sqlite_open_store(out, address, mode, diag);
}

void store_close(struct store *store)
{
    if (store != NULL) {
        store->ops->close(store);
    }
}

enum err
store_owner(struct store *store, struct store_owner *out, struct diag *diag)
{
    *out = (struct store_owner){0};
    return store->ops->owner(store, out, diag);
}

enum err store_take(struct store *store,
                    const struct store_owner *self,
                    uint64_t *epoch_out,
                    struct diag *diag)
{
    return store->ops->take(store, self, epoch_out, diag);
}

enum err store_beat(struct store *store,
                    int64_t now_ns,
                    const char *trouble,
                    struct diag *diag)
{
    return store->ops->beat(store, now_ns, trouble, diag);
}

enum err store_read(struct store *store,
                    const struct store_query *query,
                    const struct store_visitor *visitor,
                    void *ctx,
                    struct store_info *info_out,
                    struct diag *diag)
{
    return store->ops->read(store, query, visitor, ctx, info_out, diag);
}

static int64_t clock_ns(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) {
        return 0; /* cannot be: this clock exists on Linux */
    }
    return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

enum err store_write(struct store *store,
                     const struct store_batch *batch,
                     struct diag *diag)
{
    INVARIANT(batch->epoch > 0);
    int64_t begun_ns = clock_ns();
    enum err err = store->ops->write(store, batch, diag);
    if (err == ERR_OK) {
        int64_t took_ns = clock_ns() - begun_ns;
        store->commits++;
        store->commit_ns += took_ns > 0 ? (uint64_t)took_ns : 0;
    }
    return err;
}

enum err store_events(struct store *store,
                      uint64_t after,
                      store_event_fn fn,
                      void *ctx,
                      struct diag *diag)
{
    return store->ops->events(store, after, fn, ctx, diag);
}

enum err store_submit(struct store *store,
                      const struct store_command *command,
                      uint64_t *number_out,
                      struct diag *diag)
{
    INVARIANT(command->number == 0);
    return store->ops->submit(store, command, number_out, diag);
}

enum err store_verify(struct store *store,
                      store_fault_fn fn,
                      void *ctx,
                      struct diag *diag)
{
    return store->ops->verify(store, fn, ctx, diag);
}
