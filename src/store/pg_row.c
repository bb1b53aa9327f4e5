/* SPDX-License-Identifier: MIT */
/*
 * Rows to arrays and back, by the tables of columns.h.
 *
 * All rows of a kind go to the server as one statement with an array for each
 * column, in PostgreSQL's binary format: a header, then for each element its
 * length and its bytes, big-endian. Rows come back in the binary format of
 * COPY, in which a row has the same shape.
 */
#include "store/pg_internal.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <endian.h>
#include <string.h>

/* Object ids of types, which never change. */
enum {
    OID_BOOL = 16,
    OID_BYTEA = 17,
    OID_INT8 = 20,
    OID_TEXT = 25,
    OID_FLOAT8 = 701,
};

/* Dimensions, "may have NULLs", type, count, lower bound. */
enum { HEADER_BYTES = 20, HEADER_COUNT = 12 };

static void put_u32(char *at, uint32_t value)
{
    uint32_t big = htobe32(value);
    memcpy(at, &big, sizeof(big));
}

static uint32_t get_u32(const char *at)
{
    uint32_t big;
    memcpy(&big, at, sizeof(big));
    return be32toh(big);
}

static uint32_t oid_of(enum column_type type)
{
    switch (type) {
    case COLUMN_BOOL:
        return OID_BOOL;
    case COLUMN_DOUBLE:
        return OID_FLOAT8;
    case COLUMN_TEXT:
    case COLUMN_TEXT_OR_NULL:
    case COLUMN_CHARS:
        return OID_TEXT;
    case COLUMN_BYTES:
        return OID_BYTEA;
    case COLUMN_I32:
    case COLUMN_U32:
    case COLUMN_U32_OR_NULL:
    case COLUMN_I64:
    case COLUMN_U64:
    case COLUMN_TASK:
        break;
    }
    return OID_INT8;
}

static const char *type_name(enum column_type type)
{
    switch (oid_of(type)) {
    case OID_BOOL:
        return "bool";
    case OID_FLOAT8:
        return "float8";
    case OID_TEXT:
        return "text";
    case OID_BYTEA:
        return "bytea";
    default:
        return "int8";
    }
}

/* --- writing ------------------------------------------------------------ */

static void add_null(struct strbuf *out)
{
    char bytes[4];
    put_u32(bytes, UINT32_MAX);
    strbuf_add(out, bytes, sizeof(bytes));
}

static void add_bytes(struct strbuf *out, const char *bytes, size_t len)
{
    char head[4];
    INVARIANT(len <= INT32_MAX);
    put_u32(head, (uint32_t)len);
    strbuf_add(out, head, sizeof(head));
    strbuf_add(out, bytes, len);
}

static void add_i64(struct strbuf *out, int64_t value)
{
    uint64_t big = htobe64((uint64_t)value);
    add_bytes(out, (const char *)&big, sizeof(big));
}

static void add_u32(struct strbuf *out, const char *from, bool needed)
{
    uint32_t value;
    memcpy(&value, from, sizeof(value));
    if (needed || value != STORE_NONE) {
        add_i64(out, value);
    } else {
        add_null(out);
    }
}

static void add_text(struct strbuf *out, const char *from, bool needed)
{
    const char *text;
    memcpy(&text, from, sizeof(text));
    INVARIANT(text != NULL || !needed);
    if (text != NULL) {
        add_bytes(out, text, strlen(text));
    } else {
        add_null(out);
    }
}

static void add_blob(struct strbuf *out, const char *from)
{
    const char *bytes;
    size_t count;
    memcpy(&bytes, from, sizeof(bytes));
    memcpy(&count, from + sizeof(bytes), sizeof(count));
    INVARIANT(bytes != NULL || count == 0);
    add_bytes(out, count > 0 ? bytes : "", count);
}

static int64_t task_key(const char *from)
{
    uint32_t parts[2];
    memcpy(parts, from, sizeof(parts));
    return (int64_t)((uint64_t)parts[0] << 32 | parts[1]);
}

static void
add_value(struct strbuf *out, const struct column *column, const char *from)
{
    switch (column->type) {
    case COLUMN_BOOL:
        add_bytes(out, *(const bool *)from ? "\1" : "\0", 1);
        return;
    case COLUMN_I32: {
        int32_t value;
        memcpy(&value, from, sizeof(value));
        add_i64(out, value);
        return;
    }
    case COLUMN_U32:
    case COLUMN_U32_OR_NULL:
        add_u32(out, from, column->type == COLUMN_U32);
        return;
    case COLUMN_I64:
    case COLUMN_U64:
    case COLUMN_DOUBLE: { /* eight bytes, whatever they mean */
        int64_t value;
        memcpy(&value, from, sizeof(value));
        add_i64(out, value);
        return;
    }
    case COLUMN_TEXT:
    case COLUMN_TEXT_OR_NULL:
        add_text(out, from, column->type == COLUMN_TEXT);
        return;
    case COLUMN_CHARS:
        add_bytes(out, from, strlen(from));
        return;
    case COLUMN_BYTES:
        add_blob(out, from);
        return;
    case COLUMN_TASK:
        add_i64(out, task_key(from));
        return;
    }
    INVARIANT(false); /* all types are above */
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

void pg_group_release(struct pg_group *group)
{
    for (uint32_t ix = 0; ix < PG_COLUMNS_MAX; ix++) {
        strbuf_release(&group->arrays[ix]);
    }
}

void pg_group_add(struct pg_group *group, const union store_row *row)
{
    const struct column_table *table = columns_of(group->kind);
    INVARIANT(table->count <= PG_COLUMNS_MAX);
    for (uint32_t ix = 0; ix < table->count; ix++) {
        const struct column *column = &table->columns[ix];
        if (!is_used(table, group->how, ix)) {
            continue;
        }
        struct strbuf *array = &group->arrays[ix];
        if (array->len == 0) {
            char header[HEADER_BYTES] = {0};
            put_u32(header, 1);
            put_u32(header + 4, 1);
            put_u32(header + 8, oid_of(column->type));
            put_u32(header + 16, 1);
            strbuf_add(array, header, sizeof(header));
        }
        add_value(array, column, (const char *)row + column->offset);
    }
    group->count++;
}

int pg_group_close(struct pg_group *group,
                   const char *values[PG_COLUMNS_MAX],
                   int lengths[PG_COLUMNS_MAX])
{
    const struct column_table *table = columns_of(group->kind);
    int count = 0;
    INVARIANT(group->count > 0);
    for (uint32_t ix = 0; ix < table->count; ix++) {
        struct strbuf *array = &group->arrays[ix];
        if (is_used(table, group->how, ix)) {
            INVARIANT(array->len > HEADER_BYTES && array->len <= INT32_MAX);
            put_u32(array->text + HEADER_COUNT, group->count);
            values[count] = array->text;
            lengths[count++] = (int)array->len;
        }
    }
    return count;
}

/* --- statements --------------------------------------------------------- */

void pg_add_names(struct strbuf *sql,
                  const struct column_table *table,
                  const char *prefix)
{
    for (uint32_t ix = 0; ix < table->count; ix++) {
        strbuf_addf(sql,
                    "%s%s%s",
                    ix > 0 ? ", " : "",
                    prefix,
                    table->columns[ix].name);
    }
}

/* Append the parameters as a table `new`. */
static void add_new(struct strbuf *sql,
                    const struct column_table *table,
                    enum store_put how)
{
    int count = 0;
    strbuf_adds(sql, "unnest(");
    for (uint32_t ix = 0; ix < table->count; ix++) {
        if (is_used(table, how, ix)) {
            strbuf_addf(sql,
                        "%s$%d::%s[]",
                        count > 0 ? ", " : "",
                        count + 1,
                        type_name(table->columns[ix].type));
            count++;
        }
    }
    strbuf_adds(sql, ") AS new(");
    count = 0;
    for (uint32_t ix = 0; ix < table->count; ix++) {
        if (is_used(table, how, ix)) {
            strbuf_addf(sql,
                        "%s%s",
                        count++ > 0 ? ", " : "",
                        table->columns[ix].name);
        }
    }
    strbuf_adds(sql, ")");
}

/* Append "name = FROM.name" for the columns that a change sets. */
static void add_sets(struct strbuf *sql,
                     const struct column_table *table,
                     const char *from,
                     bool fixed)
{
    const char *comma = " ";
    for (uint32_t ix = 1; ix < table->count; ix++) {
        const char *name = table->columns[ix].name;
        if (fixed || !table->columns[ix].fixed) {
            strbuf_addf(sql, "%s%s = %s.%s", comma, name, from, name);
            comma = ", ";
        }
    }
}

/* The condition under which a row may change. */
static const char *condition(enum store_kind kind, enum store_put how)
{
    if (how == STORE_PUT_NEW && kind == STORE_KIND_RUN) {
        /* No removed run had this id. */
        return " WHERE NOT EXISTS (SELECT 1 FROM setting"
               " WHERE setting.name = 'pruned/' || new.id)";
    }
    if (how == STORE_PUT_NEW && kind == STORE_KIND_FRAGMENT) {
        /* It has the next number of its run. */
        return " WHERE new.number = (SELECT coalesce(max(old.number) + 1, 0)"
               " FROM fragment old WHERE old.run = new.run)";
    }
    if (how == STORE_PUT_UPDATE && kind == STORE_KIND_ATTEMPT) {
        return " AND attempt.state <> 'ended'";
    }
    if (how == STORE_PUT_UPDATE && kind == STORE_KIND_COMMAND) {
        return " AND command.answer IS NULL";
    }
    return "";
}

/* Append the statement that writes rows of a kind. */
static void
add_put(struct strbuf *sql, enum store_kind kind, enum store_put how)
{
    const struct column_table *table = columns_of(kind);
    const char *key = table->columns[0].name;
    if (how == STORE_PUT_DROP) {
        strbuf_addf(sql, "DELETE FROM %s USING ", table->name);
        add_new(sql, table, how);
        strbuf_addf(sql, " WHERE %s.%s = new.%s", table->name, key, key);
        return;
    }
    if (how == STORE_PUT_UPDATE) {
        strbuf_addf(sql, "UPDATE %s SET", table->name);
        add_sets(sql, table, "new", false);
        strbuf_adds(sql, " FROM ");
        add_new(sql, table, how);
        strbuf_addf(sql,
                    " WHERE %s.%s = new.%s%s",
                    table->name,
                    key,
                    key,
                    condition(kind, how));
        return;
    }
    strbuf_addf(sql, "INSERT INTO %s (", table->name);
    pg_add_names(sql, table, "");
    strbuf_adds(sql, ") SELECT ");
    pg_add_names(sql, table, "new.");
    strbuf_adds(sql, " FROM ");
    add_new(sql, table, how);
    strbuf_adds(sql, condition(kind, how));
    if (how == STORE_PUT_REPLACE) {
        bool two = kind == STORE_KIND_LIMIT;
        strbuf_addf(sql,
                    " ON CONFLICT (%s) DO UPDATE SET",
                    two ? table->order : key);
        add_sets(sql, table, "excluded", !two);
    }
}

void pg_add_put(struct strbuf *sql, enum store_kind kind, enum store_put how)
{
    INVARIANT(how != STORE_PUT_DROP || kind == STORE_KIND_SETTING);
    if (how != STORE_PUT_NEW && how != STORE_PUT_UPDATE) {
        add_put(sql, kind, how);
        return;
    }
    strbuf_adds(sql, "WITH put AS (");
    add_put(sql, kind, how);
    strbuf_addf(sql,
                " RETURNING 1) SELECT batch_fits('%s', count(*),"
                " cardinality($1)) FROM put",
                columns_of(kind)->name);
}

void pg_add_key(struct strbuf *out,
                enum store_kind kind,
                const union store_row *row)
{
    switch (kind) {
    case STORE_KIND_RUN:
        strbuf_addf(out, "run %u", row->run.number);
        return;
    case STORE_KIND_FRAGMENT: /* its number depends on those before it */
        strbuf_addf(out, "fragment %u", row->fragment.run);
        return;
    case STORE_KIND_LIMIT:
        strbuf_addf(out, "limit %u %s", row->limit.run, row->limit.name);
        return;
    case STORE_KIND_PROVIDER:
        strbuf_addf(out, "provider %s", row->provider.name);
        return;
    case STORE_KIND_SETTING:
        strbuf_addf(out, "setting %s", row->setting.name);
        return;
    case STORE_KIND_TASK:
        strbuf_addf(out, "task %u %u", row->task.run, row->task.ix);
        return;
    case STORE_KIND_ATTEMPT:
        strbuf_addf(out,
                    "attempt %llu",
                    (unsigned long long)row->attempt.token);
        return;
    case STORE_KIND_COMMAND:
        strbuf_addf(out,
                    "command %llu",
                    (unsigned long long)row->command.number);
        return;
    case STORE_KIND_GATE: /* always new */
    case STORE_KIND_EVENT:
    case STORE_KINDS:
        break;
    }
}

/* --- reading ------------------------------------------------------------ */

/* A value of a row; NULL: it has none. */
struct field {
    char *bytes;
    size_t len;
};

static bool field_i64(const struct field *field, int64_t *out)
{
    uint64_t big;
    *out = 0;
    if (field->bytes == NULL || field->len != sizeof(big)) {
        return false;
    }
    memcpy(&big, field->bytes, sizeof(big));
    *out = (int64_t)be64toh(big);
    return true;
}

static bool
get_number(const struct field *field, int64_t low, int64_t high, int64_t *out)
{
    return field_i64(field, out) && *out >= low && *out <= high;
}

static bool get_text(const struct field *field, bool needed, char *out)
{
    const char *text = field->bytes;
    if (text == NULL && needed) {
        return false;
    }
    if (text != NULL && strlen(text) != field->len) {
        return false;
    }
    memcpy(out, &text, sizeof(text));
    return true;
}

static bool get_bytes(const struct field *field, char *out)
{
    const char *bytes = field->bytes;
    if (bytes == NULL) {
        return false;
    }
    memcpy(out, &bytes, sizeof(bytes));
    memcpy(out + sizeof(bytes), &field->len, sizeof(field->len));
    return true;
}

static bool get_u32_or_none(const struct field *field, bool needed, char *out)
{
    int64_t number = STORE_NONE;
    if (needed || field->bytes != NULL) {
        if (!get_number(field, 0, UINT32_MAX, &number)) {
            return false;
        }
    }
    uint32_t value = (uint32_t)number;
    memcpy(out, &value, sizeof(value));
    return true;
}

static bool get_task(const struct field *field, char *out)
{
    int64_t key;
    bool good = field_i64(field, &key);
    uint32_t parts[2] = {(uint32_t)((uint64_t)key >> 32), (uint32_t)key};
    memcpy(out, parts, sizeof(parts));
    return good && parts[1] != STORE_NONE;
}

static bool
get_value(const struct field *field, const struct column *column, char *out)
{
    int64_t number;
    switch (column->type) {
    case COLUMN_BOOL:
        if (field->bytes == NULL || field->len != 1) {
            return false;
        }
        *(bool *)out = field->bytes[0] != 0;
        return true;
    case COLUMN_I32: {
        bool good = get_number(field, INT32_MIN, INT32_MAX, &number);
        int32_t value = (int32_t)number;
        memcpy(out, &value, sizeof(value));
        return good;
    }
    case COLUMN_U32:
    case COLUMN_U32_OR_NULL:
        return get_u32_or_none(field, column->type == COLUMN_U32, out);
    case COLUMN_I64:
    case COLUMN_U64:
    case COLUMN_DOUBLE: {
        bool good = field_i64(field, &number);
        memcpy(out, &number, sizeof(number));
        return good;
    }
    case COLUMN_TEXT:
    case COLUMN_TEXT_OR_NULL:
        return get_text(field, column->type == COLUMN_TEXT, out);
    case COLUMN_CHARS:
        if (field->bytes == NULL || field->len >= column->size) {
            return false;
        }
        memcpy(out, field->bytes, field->len + 1);
        return strlen(out) == field->len;
    case COLUMN_BYTES:
        return get_bytes(field, out);
    case COLUMN_TASK:
        return get_task(field, out);
    }
    INVARIANT(false); /* all types are above */
    return false;
}

/* Split a row into its fields, each followed by a NUL. */
static bool split(char *bytes, size_t len, uint32_t count, struct field *fields)
{
    uint16_t found;
    char *end = bytes + len;
    if (len < sizeof(found)) {
        return false;
    }
    memcpy(&found, bytes, sizeof(found));
    if (be16toh(found) != count) {
        return false;
    }
    char *at = bytes + sizeof(found);
    for (uint32_t ix = 0; ix < count; ix++) {
        if (end - at < 4) {
            return false;
        }
        uint32_t size = get_u32(at);
        *at = '\0'; /* the end of the field before */
        at += 4;
        fields[ix] = (struct field){0};
        if (size != UINT32_MAX) {
            if (size > (size_t)(end - at)) {
                return false;
            }
            fields[ix] = (struct field){at, size};
            at += size;
        }
    }
    return at == end; /* libpq has put a NUL there */
}

bool pg_get(char *bytes,
            size_t len,
            const struct column_table *table,
            union store_row *out,
            int64_t *number_out)
{
    struct field fields[PG_COLUMNS_MAX];
    *out = (union store_row){0};
    *number_out = 0;
    if (!split(bytes, len, table->count, fields)) {
        return false;
    }
    (void)field_i64(&fields[0], number_out);
    bool good = true;
    for (uint32_t ix = 0; ix < table->count && good; ix++) {
        const struct column *column = &table->columns[ix];
        INVARIANT(column->offset + column->size <= sizeof(*out));
        good = get_value(&fields[ix], column, (char *)out + column->offset);
    }
    return good;
}
