/* SPDX-License-Identifier: MIT */
/*
 * The life of a store in PostgreSQL: a schema of its own in a database.
 */
#include "store/pg.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "store/pg_internal.h"

#include <stdio.h>
#include <string.h>

static void close_store(struct store *base)
{
    struct pg_store *store = (struct pg_store *)base;
    struct pg_params params = {0};
    struct diag ignored = {0};
    if (base->epoch > 0 && base->broken == ERR_OK && store->link.conn != NULL) {
        /* Else the lease ends by itself. */
        pg_add_text(&params, store->holder);
        (void)!pg_do(&store->link,
                     "UPDATE scheduler SET lease_until = '-infinity'"
                     " WHERE holder = $1",
                     &params,
                     NULL,
                     &ignored);
    }
    pg_forget_batch(store);
    mem_free(store->groups);
    strbuf_release(&store->text);
    pg_link_release(&store->link);
    mem_free(store);
}

/* Every batch has another number. */
static enum err
get_mark(struct store *base, struct store_mark *out, struct diag *diag)
{
    struct pg_store *store = (struct pg_store *)base;
    enum err err = pg_need(store, diag);
    if (err != ERR_OK) {
        return err;
    }
    struct store_info info = {0};
    PGresult *result = pg_run(&store->link,
                              "SELECT " PG_HEAD " FROM scheduler",
                              NULL,
                              &err,
                              diag);
    if (err == ERR_OK) {
        err = pg_get_head(store, result, &info, diag);
    }
    PQclear(result);
    if (err == ERR_OK) {
        memcpy(out->place, info.id, sizeof(out->place));
        out->state[0] = info.writes;
        out->state[1] = info.epoch;
        out->settled = true;
    }
    return err;
}

/* The server checks its own files; what sluice stores is checked above. */
static enum err
check(struct store *base, store_fault_fn fn, void *ctx, struct diag *diag)
{
    struct pg_store *store = (struct pg_store *)base;
    struct store_info info = {0};
    struct diag why = {0};
    INVARIANT(!store->held && !store->writing);
    enum err err = pg_hold(base, &info, &why);
    if (err == ERR_OK) {
        pg_let_go(base);
    } else if (err == ERR_CORRUPT) {
        fn(ctx, why.text);
        return ERR_OK;
    }
    return err == ERR_OK ? ERR_OK : diag_set(diag, err, "%s", why.text);
}

static const struct store_ops pg_ops = {
    .name = "postgresql",
    .close = close_store,
    .owner = pg_owner,
    .mark = get_mark,
    .take = pg_take,
    .beat = pg_beat,
    .hold = pg_hold,
    .let_go = pg_let_go,
    .rows = pg_rows,
    .events = pg_events,
    .begin = pg_begin_batch,
    .end = pg_end_batch,
    .find_run = pg_find_run,
    .put = pg_put,
    .prune = pg_prune,
    .raise = pg_raise,
    .check = check,
    .ask = pg_ask,
};

enum err pg_open_store(struct store **out,
                       const char *address,
                       enum store_mode mode,
                       struct diag *diag)
{
    struct pg_store *store = mem_zalloc(1, sizeof(*store));
    store->base.ops = &pg_ops;
    store->mode = mode;
    enum err err = pg_link_init(&store->link, address, diag);
    if (err == ERR_OK) {
        err = pg_need(store, diag);
        if (mode == STORE_WRITE && (err == ERR_NOT_FOUND || store->outdated) &&
            store->link.conn != NULL) {
            err = ERR_OK; /* created or migrated when it is taken */
        }
    }
    if (err != ERR_OK) {
        close_store(&store->base);
        return err;
    }
    *out = &store->base;
    return ERR_OK;
}

enum err
pg_identify(const char *address, bool make, char id[33], struct diag *diag)
{
    struct store *base = NULL;
    enum err err =
        pg_open_store(&base, address, make ? STORE_WRITE : STORE_READ, diag);
    struct pg_store *store = (struct pg_store *)base;
    if (err == ERR_OK && make) {
        err = pg_make_schema(store, diag);
    }
    PGresult *result = NULL;
    if (err == ERR_OK) {
        result =
            pg_run(&store->link, "SELECT id FROM scheduler", NULL, &err, diag);
    }
    if (err == ERR_OK && PQntuples(result) != 1) {
        err = diag_set(diag,
                       ERR_CORRUPT,
                       "the store %s is damaged: it has no identity",
                       store->link.shown);
    } else if (err == ERR_OK) {
        (void)snprintf(id, 33, "%s", pg_text(result, 0, 0));
    }
    PQclear(result);
    store_close(base);
    return err;
}
