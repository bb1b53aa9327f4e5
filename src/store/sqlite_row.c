/* SPDX-License-Identifier: MIT */
/*
 * Rows to structs and back, by the tables of columns.h. Each column is checked
 * when it is read: a value that does not fit its member is damage. Names of
 * states are passed on unchecked; the caller knows the valid ones.
 */
#include "store/sqlite_internal.h"

#include "base/invariant.h"

#include <string.h>

int64_t sqlite_i64(struct sqlite_row *row, int column)
{
    if (sqlite3_column_type(row->stmt, column) != SQLITE_INTEGER) {
        row->bad = true;
        return 0;
    }
    return sqlite3_column_int64(row->stmt, column);
}

const char *sqlite_text(struct sqlite_row *row, int column)
{
    const char *text = NULL;
    if (sqlite3_column_type(row->stmt, column) == SQLITE_TEXT) {
        text = (const char *)sqlite3_column_text(row->stmt, column);
    }
    if (text == NULL ||
        strlen(text) != (size_t)sqlite3_column_bytes(row->stmt, column)) {
        row->bad = true;
        return "";
    }
    return text;
}

/* --- reading ------------------------------------------------------------ */

static void get_number(struct sqlite_row *row,
                       int ix,
                       int64_t low,
                       int64_t high,
                       int64_t *out)
{
    INVARIANT(low < high);
    *out = sqlite_i64(row, ix);
    if (*out < low || *out > high) {
        row->bad = true;
        *out = 0;
    }
}

static void get_chars(struct sqlite_row *row, int ix, char *out, size_t size)
{
    INVARIANT(size > 0);
    const char *text = sqlite_text(row, ix);
    size_t len = strlen(text);
    if (len >= size) {
        row->bad = true;
        return;
    }
    memcpy(out, text, len + 1);
}

/* Read a value of any bytes; never NULL. */
static void get_bytes(struct sqlite_row *row, int ix, char *out)
{
    const char *bytes = "";
    size_t count = 0;
    if (sqlite3_column_type(row->stmt, ix) != SQLITE_BLOB) {
        row->bad = true;
    } else if (sqlite3_column_blob(row->stmt, ix) != NULL) {
        bytes = sqlite3_column_blob(row->stmt, ix);
        count = (size_t)sqlite3_column_bytes(row->stmt, ix);
    }
    INVARIANT(bytes != NULL);
    memcpy(out, &bytes, sizeof(void *));
    memcpy(out + sizeof(void *), &count, sizeof(count));
}

static void get_text(struct sqlite_row *row, int ix, bool needed, char *out)
{
    bool none = !needed && sqlite3_column_type(row->stmt, ix) == SQLITE_NULL;
    const char *text = none ? NULL : sqlite_text(row, ix);
    INVARIANT(text != NULL || !needed);
    memcpy(out, &text, sizeof(text));
}

static void get_u32(struct sqlite_row *row, int ix, bool needed, char *out)
{
    int64_t number = STORE_NONE;
    if (needed || sqlite3_column_type(row->stmt, ix) != SQLITE_NULL) {
        get_number(row, ix, 0, UINT32_MAX, &number);
    }
    uint32_t value = (uint32_t)number;
    memcpy(out, &value, sizeof(value));
}

/* The run and the index of a task. */
static void get_task(struct sqlite_row *row, int ix, char *out)
{
    uint64_t key = (uint64_t)sqlite_i64(row, ix);
    uint32_t parts[2] = {(uint32_t)(key >> 32), (uint32_t)key};
    row->bad = row->bad || parts[1] == STORE_NONE;
    memcpy(out, parts, sizeof(parts));
}

static void get_column(struct sqlite_row *row,
                       int ix,
                       const struct column *column,
                       char *out)
{
    int64_t number = 0;
    switch (column->type) {
    case COLUMN_BOOL:
        *(bool *)out = sqlite_i64(row, ix) != 0;
        return;
    case COLUMN_I32: {
        get_number(row, ix, INT32_MIN, INT32_MAX, &number);
        int32_t value = (int32_t)number;
        memcpy(out, &value, sizeof(value));
        return;
    }
    case COLUMN_U32:
    case COLUMN_U32_OR_NULL:
        get_u32(row, ix, column->type == COLUMN_U32, out);
        return;
    case COLUMN_I64:
    case COLUMN_U64:
        number = sqlite_i64(row, ix);
        memcpy(out, &number, sizeof(number));
        return;
    case COLUMN_DOUBLE: {
        double value = sqlite3_column_double(row->stmt, ix);
        memcpy(out, &value, sizeof(value));
        return;
    }
    case COLUMN_TEXT:
    case COLUMN_TEXT_OR_NULL:
        get_text(row, ix, column->type == COLUMN_TEXT, out);
        return;
    case COLUMN_CHARS:
        get_chars(row, ix, out, column->size);
        return;
    case COLUMN_BYTES:
        get_bytes(row, ix, out);
        return;
    case COLUMN_TASK:
        get_task(row, ix, out);
        return;
    }
    INVARIANT(false); /* all types are above */
}

void sqlite_get(struct sqlite_row *row,
                const struct column_table *table,
                union store_row *out)
{
    INVARIANT(sqlite3_column_count(row->stmt) == (int)table->count);
    *out = (union store_row){0};
    for (uint32_t ix = 0; ix < table->count; ix++) {
        const struct column *column = &table->columns[ix];
        INVARIANT(column->offset + column->size <= sizeof(*out));
        get_column(row, (int)ix, column, (char *)out + column->offset);
    }
}

/* --- writing ------------------------------------------------------------ */

static int bind_u32(sqlite3_stmt *stmt, int ix, bool needed, const char *from)
{
    uint32_t value;
    memcpy(&value, from, sizeof(value));
    INVARIANT(sqlite3_stmt_busy(stmt) == 0);
    return needed || value != STORE_NONE ? sqlite3_bind_int64(stmt, ix, value)
                                         : sqlite3_bind_null(stmt, ix);
}

static int bind_bytes(sqlite3_stmt *stmt, int ix, const char *from)
{
    const char *bytes;
    size_t count;
    memcpy(&bytes, from, sizeof(bytes));
    memcpy(&count, from + sizeof(bytes), sizeof(count));
    INVARIANT(bytes != NULL || count == 0);
    return sqlite3_bind_blob64(stmt,
                               ix,
                               count > 0 ? bytes : "",
                               count,
                               SQLITE_STATIC);
}

/* Bind one parameter; strings outlive the statement. */
static int bind_column(sqlite3_stmt *stmt,
                       int ix,
                       const struct column *column,
                       const char *from)
{
    switch (column->type) {
    case COLUMN_BOOL:
        return sqlite3_bind_int64(stmt, ix, *(const bool *)from);
    case COLUMN_I32: {
        int32_t value;
        memcpy(&value, from, sizeof(value));
        return sqlite3_bind_int64(stmt, ix, value);
    }
    case COLUMN_U32:
    case COLUMN_U32_OR_NULL:
        return bind_u32(stmt, ix, column->type == COLUMN_U32, from);
    case COLUMN_I64:
    case COLUMN_U64: {
        int64_t value;
        memcpy(&value, from, sizeof(value));
        return sqlite3_bind_int64(stmt, ix, value);
    }
    case COLUMN_DOUBLE: {
        double value;
        memcpy(&value, from, sizeof(value));
        return sqlite3_bind_double(stmt, ix, value);
    }
    case COLUMN_TEXT:
    case COLUMN_TEXT_OR_NULL: {
        const char *text;
        memcpy(&text, from, sizeof(text));
        INVARIANT(text != NULL || column->type == COLUMN_TEXT_OR_NULL);
        return sqlite3_bind_text(stmt, ix, text, -1, SQLITE_STATIC);
    }
    case COLUMN_CHARS:
        return sqlite3_bind_text(stmt, ix, from, -1, SQLITE_STATIC);
    case COLUMN_BYTES:
        return bind_bytes(stmt, ix, from);
    case COLUMN_TASK: {
        uint32_t parts[2];
        memcpy(parts, from, sizeof(parts));
        uint64_t key = (uint64_t)parts[0] << 32 | parts[1];
        return sqlite3_bind_int64(stmt, ix, (int64_t)key);
    }
    }
    INVARIANT(false); /* all types are above */
    return SQLITE_MISUSE;
}

/* Whether a statement has the column as a parameter. */
static bool
is_used(const struct column_table *table, enum store_put how, uint32_t ix)
{
    if (how == STORE_PUT_UPDATE) {
        return ix == 0 || !table->columns[ix].fixed;
    }
    return how != STORE_PUT_DROP || ix == 0;
}

void sqlite_bind(sqlite3_stmt *stmt,
                 const struct column_table *table,
                 enum store_put how,
                 const union store_row *row)
{
    INVARIANT(sqlite3_stmt_busy(stmt) == 0);
    INVARIANT(sqlite3_bind_parameter_count(stmt) <= (int)table->count);
    for (uint32_t ix = 0; ix < table->count; ix++) {
        const struct column *column = &table->columns[ix];
        if (is_used(table, how, ix)) {
            int rc = bind_column(stmt,
                                 (int)ix + 1,
                                 column,
                                 (const char *)row + column->offset);
            INVARIANT(rc == SQLITE_OK);
        }
    }
}

void sqlite_add_names(struct strbuf *sql, const struct column_table *table)
{
    for (uint32_t ix = 0; ix < table->count; ix++) {
        strbuf_addf(sql, "%s%s", ix > 0 ? ", " : "", table->columns[ix].name);
    }
}

/* The condition under which a row may change. */
static const char *condition(enum store_kind kind, enum store_put how)
{
    if (how == STORE_PUT_NEW && kind == STORE_KIND_RUN) {
        /* No removed run had this id. */
        return " WHERE NOT EXISTS (SELECT 1 FROM setting"
               " WHERE setting.name = 'pruned/' || ?2)";
    }
    if (how == STORE_PUT_NEW && kind == STORE_KIND_FRAGMENT) {
        /* It has the next number of its run. */
        return " WHERE ?2 = (SELECT coalesce(max(number) + 1, 0)"
               " FROM fragment WHERE run = ?1)";
    }
    if (how == STORE_PUT_UPDATE && kind == STORE_KIND_ATTEMPT) {
        return " AND state <> 'ended'";
    }
    if (how == STORE_PUT_UPDATE && kind == STORE_KIND_COMMAND) {
        return " AND answer IS NULL";
    }
    return "";
}

void sqlite_add_put(struct strbuf *sql,
                    enum store_kind kind,
                    enum store_put how)
{
    const struct column_table *table = columns_of(kind);
    const char *key = table->columns[0].name;
    INVARIANT(sql->len == 0);
    INVARIANT(table->columns[0].fixed); /* an update does not move a row */
    INVARIANT(how != STORE_PUT_DROP || kind == STORE_KIND_SETTING);
    if (how == STORE_PUT_DROP) {
        strbuf_addf(sql, "DELETE FROM %s WHERE %s = ?1", table->name, key);
        return;
    }
    if (how == STORE_PUT_UPDATE) {
        strbuf_addf(sql, "UPDATE OR FAIL %s SET", table->name);
        const char *comma = " ";
        for (uint32_t ix = 0; ix < table->count; ix++) {
            if (!table->columns[ix].fixed) {
                const char *name = table->columns[ix].name;
                strbuf_addf(sql, "%s%s = ?%u", comma, name, ix + 1);
                comma = ", ";
            }
        }
        strbuf_addf(sql, " WHERE %s = ?1%s", key, condition(kind, how));
        return;
    }
    /* A row from VALUES, and FAIL, which leaves it to us to roll back, need no
     * journal for the statement. */
    const char *only_if = condition(kind, how);
    bool always = only_if[0] == '\0';
    strbuf_addf(sql,
                "INSERT OR %s INTO %s (",
                how == STORE_PUT_REPLACE ? "REPLACE" : "FAIL",
                table->name);
    sqlite_add_names(sql, table);
    strbuf_adds(sql, always ? ") VALUES (" : ") SELECT ");
    for (uint32_t ix = 0; ix < table->count; ix++) {
        strbuf_addf(sql, "%s?%u", ix > 0 ? ", " : "", ix + 1);
    }
    strbuf_adds(sql, always ? ")" : only_if);
}
