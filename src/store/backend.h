/* SPDX-License-Identifier: MIT */
/*
 * backend: the interface of the store's back ends.
 *
 * A back end stores rows, by the tables in columns.h, and has transactions. The
 * rules for a batch (rules.c), the order of reading (store.c) and the checks of
 * stored rows (verify.c) are common to all. To add a back end, write its struct
 * store_ops and name it in store_open().
 */
#ifndef STORE_BACKEND_H
#define STORE_BACKEND_H

#include "store/store.h"

/* Called for each row; the row and its strings are borrowed for the call. */
typedef enum err (*store_row_fn)(void *ctx, const union store_row *row);

/* How to change a row. */
enum store_put {
    STORE_PUT_NEW,     /* it must not exist */
    STORE_PUT_REPLACE, /* whether or not it exists */
    STORE_PUT_UPDATE,  /* it must exist; fixed columns stay */
    STORE_PUT_DROP,    /* a setting, whether or not it exists */
    STORE_PUTS,
};

struct store_ops {
    const char *name;
    void (*close)(struct store *store);
    enum err (*owner)(struct store *store,
                      struct store_owner *out,
                      struct diag *diag);
    enum err (*mark)(struct store *store,
                     struct store_mark *out,
                     struct diag *diag);
    enum err (*take)(struct store *store,
                     const struct store_owner *self,
                     uint64_t *epoch_out,
                     struct diag *diag);
    /* Write a heartbeat; `trouble` "": none. */
    enum err (*beat)(struct store *store,
                     const char *trouble,
                     struct diag *diag);

    /* Begin to read one state, and return its info; stop reading. */
    enum err (*hold)(struct store *store,
                     struct store_info *out,
                     struct diag *diag);
    void (*let_go)(struct store *store);
    /* Between hold() and let_go(): the rows that a query selects, in the
     * table's order; NULL: all rows, also of runs that do not exist. */
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

    /* Begin to write; commit with the new info of the store, or with NULL roll
     * back. */
    enum err (*begin)(struct store *store,
                      struct store_info *out,
                      struct diag *diag);
    enum err (*end)(struct store *store,
                    const struct store_info *info,
                    struct diag *diag);
    /* ERR_NOT_FOUND: no such run exists. */
    enum err (*find_run)(struct store *store,
                         uint32_t number,
                         struct diag *diag);
    /*
     * Change a row. ERR_CONFLICT: it must be new, but it or an equal row
     * exists; it must exist, but does not; or it may not change: an attempt
     * that has ended, an answered request, a fragment that is not the next one
     * of its run, a run whose id an earlier run had.
     */
    enum err (*put)(struct store *store,
                    enum store_kind kind,
                    enum store_put how,
                    const union store_row *row,
                    struct diag *diag);
    enum err (*prune)(struct store *store,
                      const struct store_prune *prune,
                      struct diag *diag);
    /* Give this epoch a greater number, for rows of another store. Close the
     * store if the transaction fails. NULL: not supported. */
    enum err (*raise)(struct store *store, uint64_t epoch, struct diag *diag);

    /* Check for damage below the rows, and for missing writes. */
    enum err (*check)(struct store *store,
                      store_fault_fn fn,
                      void *ctx,
                      struct diag *diag);

    /* Send a request to the scheduler, and wait for the answer. As store_ask(),
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
    uint64_t epoch;   /* its own, from store_take(); 0: not taken */
    enum err broken;  /* not ERR_OK: never write again, not even on close */
    struct diag why;  /* of `broken` */
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
