/* SPDX-License-Identifier: MIT */
/*
 * The store, independent of the back end: opening by address, the right to
 * write, and the order of reading.
 */
#include "store/store.h"

#include "base/clock.h"
#include "base/crash.h"
#include "base/invariant.h"
#include "store/backend.h"
#include "store/pg.h"
#include "store/pg_link.h"
#include "store/sqlite.h"

#include <inttypes.h>
#include <string.h>

bool store_has_workers(const char *address)
{
    return pg_is_address(address);
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
    enum err err = pg_is_address(address)
                       ? pg_open_store(out, address, mode, diag)
                       : sqlite_open_store(out, address, mode, diag);
    INVARIANT((err == ERR_OK) == (*out != NULL));
    return err;
}

void store_close(struct store *store)
{
    if (store != NULL) {
        INVARIANT(store->batch == NULL);
        store->ops->close(store);
    }
}

enum err
store_owner(struct store *store, struct store_owner *out, struct diag *diag)
{
    *out = (struct store_owner){0};
    enum err err = store->ops->owner(store, out, diag);
    INVARIANT(out->silent_ns >= -1 && out->age_ns >= -1);
    INVARIANT(out->pid >= 0);
    return err;
}

enum err store_take(struct store *store,
                    const struct store_owner *self,
                    uint64_t *epoch_out,
                    struct diag *diag)
{
    INVARIANT(store->epoch == 0 && store->broken == ERR_OK);
    uint64_t epoch = 0;
    enum err err = store->ops->take(store, self, &epoch, diag);
    INVARIANT((err == ERR_OK) == (epoch > 0));
    if (err == ERR_OK) {
        store->epoch = epoch;
        *epoch_out = epoch;
    }
    INVARIANT((err == ERR_OK) == (store->epoch > 0));
    INVARIANT(store->broken == ERR_OK);
    return err;
}

enum err
store_mark(struct store *store, struct store_mark *out, struct diag *diag)
{
    *out = (struct store_mark){0};
    return store->ops->mark(store, out, diag);
}

static enum err check_taken(const struct store *store, struct diag *diag)
{
    return store->epoch > 0 ? ERR_OK
                            : diag_set(diag,
                                       ERR_CONFLICT,
                                       "this process is not the scheduler");
}

/* --- reading ------------------------------------------------------------ */

/* A visitor, and the kind of rows being read. */
struct reading {
    const struct store_visitor *visitor;
    void *ctx;
    enum store_kind kind;
};

static enum err give(void *ctx, const union store_row *row)
{
    const struct reading *reading = ctx;
    const struct store_visitor *visitor = reading->visitor;
    switch (reading->kind) {
    case STORE_KIND_RUN:
        return visitor->run(reading->ctx, &row->run);
    case STORE_KIND_FRAGMENT:
        return visitor->fragment(reading->ctx, &row->fragment);
    case STORE_KIND_LIMIT:
        return visitor->limit(reading->ctx, &row->limit);
    case STORE_KIND_PROVIDER:
        return visitor->provider(reading->ctx, &row->provider);
    case STORE_KIND_SETTING:
        return visitor->setting(reading->ctx, &row->setting);
    case STORE_KIND_TASK:
        return visitor->task(reading->ctx, &row->task);
    case STORE_KIND_ATTEMPT:
        return visitor->attempt(reading->ctx, &row->attempt);
    case STORE_KIND_GATE:
        return visitor->gate(reading->ctx, &row->gate);
    case STORE_KIND_COMMAND:
        return visitor->command(reading->ctx, &row->command);
    case STORE_KIND_EVENT:
    case STORE_KINDS:
        break;
    }
    INVARIANT(false); /* visitors do not get these */
    return ERR_INVALID;
}

static enum err give_other(void *ctx, const union store_row *row)
{
    const struct reading *reading = ctx;
    return reading->visitor->other(reading->ctx, row->run.id);
}

static bool is_wanted(const struct store_visitor *visitor, enum store_kind kind)
{
    const bool wanted[STORE_KINDS] = {
        [STORE_KIND_RUN] = visitor->run != NULL,
        [STORE_KIND_FRAGMENT] = visitor->fragment != NULL,
        [STORE_KIND_LIMIT] = visitor->limit != NULL,
        [STORE_KIND_PROVIDER] = visitor->provider != NULL,
        [STORE_KIND_SETTING] = visitor->setting != NULL,
        [STORE_KIND_TASK] = visitor->task != NULL,
        [STORE_KIND_ATTEMPT] = visitor->attempt != NULL,
        [STORE_KIND_GATE] = visitor->gate != NULL,
        [STORE_KIND_COMMAND] = visitor->command != NULL,
    };
    return wanted[kind];
}

enum err store_read(struct store *store,
                    const struct store_query *query,
                    const struct store_visitor *visitor,
                    void *ctx,
                    struct store_info *info_out,
                    struct diag *diag)
{
    struct store_info info = {0};
    struct reading reading = {.visitor = visitor, .ctx = ctx};
    INVARIANT(store->batch == NULL); /* one call at a time */
    enum err err = store->ops->hold(store, &info, diag);
    if (err != ERR_OK) {
        return err;
    }
    if (visitor->other != NULL) {
        struct store_query others = *query;
        others.others = true;
        err = store->ops->rows(store,
                               STORE_KIND_RUN,
                               &others,
                               give_other,
                               &reading,
                               diag);
    }
    for (uint32_t kind = 0; kind < STORE_KINDS && err == ERR_OK; kind++) {
        reading.kind = (enum store_kind)kind;
        if (is_wanted(visitor, reading.kind)) {
            err = store->ops
                      ->rows(store, reading.kind, query, give, &reading, diag);
        }
    }
    store->ops->let_go(store);
    if (err == ERR_OK && info_out != NULL) {
        *info_out = info;
    }
    return err;
}

/* Receiver of events. */
struct listening {
    store_event_fn fn;
    void *ctx;
    uint64_t last; /* number of the last event */
    struct diag *diag;
};

static enum err give_event(void *ctx, const union store_row *row)
{
    struct listening *listening = ctx;
    if (row->event.number <= listening->last) {
        return diag_set(listening->diag,
                        ERR_CORRUPT,
                        "event %" PRIu64 " comes after event %" PRIu64,
                        row->event.number,
                        listening->last);
    }
    listening->last = row->event.number;
    return listening->fn(listening->ctx, &row->event);
}

enum err store_events(struct store *store,
                      const struct store_range *range,
                      store_event_fn fn,
                      void *ctx,
                      struct diag *diag)
{
    INVARIANT(range->run <= STORE_RUN_MAX);
    struct listening listening = {
        .fn = fn,
        .ctx = ctx,
        .last = range->after,
        .diag = diag,
    };
    if (range->after >= INT64_MAX) {
        return ERR_OK; /* no event has such a number */
    }
    return store->ops->events(store, range, give_event, &listening, diag);
}

/* --- writing ------------------------------------------------------------ */

enum err
store_give_up(struct store *store, enum err err, const struct diag *diag)
{
    INVARIANT(err != ERR_OK);
    INVARIANT(err != ERR_LIMIT && err != ERR_BUSY); /* these are temporary */
    INVARIANT(diag != NULL);
    if (store->broken == ERR_OK) {
        store->broken = err;
        store->why = *diag;
    }
    INVARIANT(store->broken != ERR_OK);
    return err;
}

/* Check that this process may write with this epoch. */
static enum err check_epoch(struct store *store,
                            const struct store_info *info,
                            uint64_t epoch,
                            struct diag *diag)
{
    INVARIANT(store->epoch > 0 && epoch > 0);
    if (info->epoch != store->epoch) {
        (void)diag_set(diag,
                       ERR_CONFLICT,
                       "another process has become the scheduler "
                       "(epoch %" PRIu64 ", this one has %" PRIu64 ")",
                       info->epoch,
                       store->epoch);
        return store_give_up(store, ERR_CONFLICT, diag);
    }
    if (epoch != store->epoch) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "a write of epoch %" PRIu64
                        ", but the scheduler's is %" PRIu64,
                        epoch,
                        store->epoch);
    }
    return ERR_OK;
}

/* Write a batch in one transaction. */
static enum err write_batch(struct store *store,
                            const struct store_batch *batch,
                            struct diag *diag)
{
    struct store_info info = {0};
    INVARIANT(batch->count > 0 && store->broken == ERR_OK);
    enum err err = store->ops->begin(store, &info, diag);
    if (err != ERR_OK) {
        return err;
    }
    crash_point("store-begun");
    err = check_epoch(store, &info, batch->epoch, diag);
    if (err == ERR_OK) {
        err = rules_apply(store, batch, &info, diag);
    }
    enum err ended = store->ops->end(store, err == ERR_OK ? &info : NULL, diag);
    err = err == ERR_OK ? ended : err;
    if (err == ERR_IO || err == ERR_CORRUPT) {
        (void)store_give_up(store, err, diag);
    }
    return err;
}

/* Check that this process may still write, and write a heartbeat. */
static enum err show_life(struct store *store,
                          const struct store_batch *batch,
                          struct diag *diag)
{
    struct store_info info = {0};
    INVARIANT(batch->count == 0 && store->epoch > 0);
    enum err err = store->ops->hold(store, &info, diag);
    if (err == ERR_OK) {
        store->ops->let_go(store);
        err = check_epoch(store, &info, batch->epoch, diag);
    }
    if (err != ERR_OK) {
        return err;
    }
    const char *trouble = batch->trouble != NULL ? batch->trouble : "";
    return store->ops->beat(store, trouble, diag);
}

enum err store_write(struct store *store,
                     const struct store_batch *batch,
                     struct diag *diag)
{
    INVARIANT(batch->epoch > 0);
    INVARIANT(store->batch == NULL);
    struct diag unread = {0};
    diag = diag != NULL ? diag : &unread;
    enum err err = check_taken(store, diag);
    if (err == ERR_OK && store->broken != ERR_OK) {
        err = diag_set(diag, store->broken, "%s", store->why.text);
    }
    if (err != ERR_OK) {
        return err;
    }
    if (batch->count == 0) {
        return show_life(store, batch, diag);
    }
    int64_t begun_ns = clock_boot_ns();
    store->batch = batch;
    err = write_batch(store, batch, diag);
    store->batch = NULL;
    if (err == ERR_OK) {
        int64_t took_ns = clock_boot_ns() - begun_ns;
        store->commits++;
        store->commit_ns += took_ns > 0 ? (uint64_t)took_ns : 0;
    }
    return err;
}

enum err store_verify(struct store *store,
                      store_fault_fn fn,
                      void *ctx,
                      struct diag *diag)
{
    INVARIANT(fn != NULL && store->batch == NULL);
    return verify_store(store, fn, ctx, diag);
}
