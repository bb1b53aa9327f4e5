/* SPDX-License-Identifier: MIT */
/*
 * columns: the tables of a store, once for all back ends.
 *
 * A back end binds and reads rows by these tables, which are generated from the
 * lists of columns in batch.h.
 */
#ifndef STORE_COLUMNS_H
#define STORE_COLUMNS_H

#include "store/batch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum column_type {
    COLUMN_BOOL,
    COLUMN_I32,
    COLUMN_U32,
    COLUMN_U32_OR_NULL, /* STORE_NONE is NULL */
    COLUMN_I64,
    COLUMN_U64, /* stored as the signed number of the same bits */
    COLUMN_DOUBLE,
    COLUMN_TEXT, /* const char *, valid UTF-8 */
    COLUMN_TEXT_OR_NULL,
    COLUMN_CHARS, /* char[], NUL-terminated */
    COLUMN_BYTES, /* const char *, followed by a size_t: any bytes */
    COLUMN_TASK,  /* two uint32_t: run and index of a task, as one number */
};

struct column {
    const char *name;
    enum column_type type;
    bool fixed; /* an update does not change it */
    uint16_t offset;
    uint16_t size; /* of the member */
};

/* A table; its first column identifies a row in messages, and in updates. */
struct column_table {
    const char *name;
    const struct column *columns;
    uint32_t count;
    const char *order; /* of reading its rows */
};

/* The table of a kind of row. */
const struct column_table *columns_of(enum store_kind kind);

/* The kind of row that a change is about; not for STORE_PRUNE. */
enum store_kind columns_kind(enum store_change_type type);

/* Whether a change updates an existing row: fixed columns are not read. */
bool columns_is_update(const struct store_change *change);

/* Call `fn` for each string of a row that is not NULL, to replace it. */
typedef const char *(*columns_text_fn)(void *ctx, const char *text);
void columns_each_text(const struct column_table *table,
                       union store_row *row,
                       columns_text_fn fn,
                       void *ctx);

#endif /* STORE_COLUMNS_H */
