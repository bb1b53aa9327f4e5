/* SPDX-License-Identifier: MIT */
/*
 * backend: what a back end of the store must do.
 *
 * A back end keeps rows, by the tables in columns.h, and transactions. The
 * rules for a batch (rules.c), the order of reading (store.c) and the checks of
 * what is stored (verify.c) are above it, the same for all. To add one, write
 * its struct store_ops and name it in store_open().
 */
#ifndef STORE_BACKEND_H
#define STORE_BACKEND_H

#include "store/store.h"

/* Called for each row; the row and its texts are borrowed for the call. */
typedef enum err (*store_row_fn)(void *ctx, const union store_row *row);

/* How a row is changed. */
enum store_put {
    STORE_PUT_NEW,     /* it must not be there */
    STORE_PUT_REPLACE, /* whether or not it is there */
    STORE_PUT_UPDATE,  /* it must be there; fixed columns stay */
    STORE_PUT_DROP,    /* a setting, whether or not it is there */
    STORE_PUTS,
};

struct store_ops {
    const char *name;
    void (*close)(struct store *store);
    enum err (*owner)(struct store *store,
                      struct store_owner *out,
                      struct diag *diag);
    enum err (*take)(struct store *store,
                     const struct store_owner *self,
                     uint64_t *epoch_out,
                     struct diag *diag);
    /* Show that the owner lives; "": nothing troubles it. */
    enum err (*beat)(struct store *store,
                     const char *trouble,
                     struct diag *diag);

    /* Begin to read one state, and tell of it; end that. */
    enum err (*hold)(struct store *store,
                     struct store_info *out,
                     struct diag *diag);
    void (*let_go)(struct store *store);
    /* While it is held: the rows that a query wants, in the table's order;
     * NULL: all rows, also of runs that are not there. */
    enum err (*rows)(struct store *store,
                     enum store_kind kind,
                     const struct store_query *query,
                     store_row_fn fn,
                     void *ctx,
                     struct diag *diag);
    /* Events, held or not. */
    enum err (*events)(struct store *store,
                       const struct store_range *range,
                       store_row_fn fn,
                       void *ctx,
                       struct diag *diag);

    /* Begin to write; end it with what the store is to know of itself then, or
     * with NULL: nothing is changed. */
    enum err (*begin)(struct store *store,
                      struct store_info *out,
                      struct diag *diag);
    enum err (*end)(struct store *store,
                    const struct store_info *info,
                    struct diag *diag);
    /* ERR_NOT_FOUND: there is no such run. */
    enum err (*find_run)(struct store *store,
                         uint32_t number,
                         struct diag *diag);
    /*
     * Change a row. ERR_CONFLICT: it is there, or an equal one, although it
     * must be new; it is not there although it must be; or it may not change:
     * an attempt that has ended, a request that was answered, a fragment that
     * is not the next one of its run, a run whose id another one had.
     */
    enum err (*put)(struct store *store,
                    enum store_kind kind,
                    enum store_put how,
                    const union store_row *row,
                    struct diag *diag);
    enum err (*prune)(struct store *store,
                      const struct store_prune *prune,
                      struct diag *diag);

    /* Look for damage below the rows, and for writes that are missing. */
    enum err (*check)(struct store *store,
                      store_fault_fn fn,
                      void *ctx,
                      struct diag *diag);

    /* Hand a request to the scheduler, and wait for the answer. As store_ask(),
     * but ERR_IO: the connection broke before the answer came. */
    enum err (*ask)(struct store *store,
                    const char *json,
                    int timeout_ms,
                    char **answer_out,
                    struct diag *diag);
};

/* Every back end's struct begins with this. */
struct store {
    const struct store_ops *ops;
    uint64_t epoch;   /* that it was taken with; 0: it was not */
    enum err broken;  /* not ERR_OK: never write again, not even at the end */
    struct diag why;  /* of that */
    uint64_t commits; /* batches written through it, and the time they took */
    uint64_t commit_ns;
    const struct store_batch *batch; /* being written */
};

/* Never write to this store again, for the reason in *diag. */
enum err
store_give_up(struct store *store, enum err err, const struct diag *diag);

/* Apply the changes of a batch, within begin() and end(). */
MUST_USE enum err rules_apply(struct store *store,
                              const struct store_batch *batch,
                              struct store_info *info,
                              struct diag *diag);

/* See store_verify(). */
MUST_USE enum err verify_store(struct store *store,
                               store_fault_fn fn,
                               void *ctx,
                               struct diag *diag);

#endif /* STORE_BACKEND_H */
