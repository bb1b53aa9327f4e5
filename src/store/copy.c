/* SPDX-License-Identifier: MIT */
/*
 * One transaction has all rows, so that a copy that is interrupted leaves an
 * empty store. The comparison afterwards reads both stores again: the back ends
 * have nothing in common but these rows.
 */
#include "store/copy.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "store/backend.h"
#include "store/columns.h"
#include "store/sum.h"

#include <inttypes.h>
#include <string.h>

struct copying {
    struct store *from;
    struct store *to;
    enum store_kind kind;
    struct store_copied *out;
    struct diag *diag;
};

/* Call `fn` for each row of a table; the store is held. */
static enum err each_row(struct store *store,
                         enum store_kind kind,
                         store_row_fn fn,
                         void *ctx,
                         struct diag *diag)
{
    const struct store_range all = {0};
    return kind == STORE_KIND_EVENT
               ? store->ops->events(store, &all, fn, ctx, diag)
               : store->ops->rows(store, kind, NULL, fn, ctx, diag);
}

/* --- before ------------------------------------------------------------- */

static void keep_fault(void *ctx, const char *text)
{
    struct diag *first = ctx;
    if (first->text[0] == '\0') {
        (void)diag_set(first, ERR_CORRUPT, "%s", text);
    }
}

/* Check a whole store; `which` names it in the message. */
static enum err
check_sound(struct store *store, const char *which, struct diag *diag)
{
    struct diag first = {0};
    enum err err = store_verify(store, keep_fault, &first, diag);
    if (err == ERR_OK && first.text[0] != '\0') {
        err = diag_set(diag,
                       ERR_CORRUPT,
                       "the store to copy %s is damaged: %s",
                       which,
                       first.text);
    }
    return err;
}

static enum err refuse_attempt(void *ctx, const union store_row *row)
{
    const struct store_attempt *attempt = &row->attempt;
    if (strcmp(attempt->state, "ended") == 0) {
        return ERR_OK;
    }
    return diag_set(ctx,
                    ERR_CONFLICT,
                    "the attempt %" PRIu64
                    " is in flight: let `sluice run` finish it (`sluice "
                    "drain` starts no others), or `sluice cancel` it, then "
                    "copy again",
                    attempt->token);
}

static enum err refuse_row(void *ctx, const union store_row *row)
{
    (void)row;
    return diag_set(ctx,
                    ERR_CONFLICT,
                    "the store to copy to is not empty: name one that does "
                    "not exist yet");
}

/* Nothing may be in flight in `from`, and nothing at all may be in `to`. */
static enum err check_both(struct copying *copying)
{
    struct store_info info = {0};
    struct diag *diag = copying->diag;
    struct store *from = copying->from;
    struct store *to = copying->to;
    enum err err = from->ops->hold(from, &info, diag);
    if (err != ERR_OK) {
        return err;
    }
    err = each_row(from, STORE_KIND_ATTEMPT, refuse_attempt, diag, diag);
    from->ops->let_go(from);
    if (err == ERR_OK) {
        err = to->ops->hold(to, &info, diag);
    }
    if (err != ERR_OK) {
        return err;
    }
    for (uint32_t kind = 0; kind < STORE_KINDS && err == ERR_OK; kind++) {
        err = each_row(to, (enum store_kind)kind, refuse_row, diag, diag);
    }
    to->ops->let_go(to);
    return err;
}

/* --- copying ------------------------------------------------------------ */

static enum err put_row(void *ctx, const union store_row *row)
{
    static const enum store_put how[STORE_KINDS] = {
        [STORE_KIND_RUN] = STORE_PUT_NEW,
        [STORE_KIND_FRAGMENT] = STORE_PUT_NEW,
        [STORE_KIND_LIMIT] = STORE_PUT_REPLACE,
        [STORE_KIND_PROVIDER] = STORE_PUT_REPLACE,
        [STORE_KIND_SETTING] = STORE_PUT_REPLACE,
        [STORE_KIND_TASK] = STORE_PUT_REPLACE,
        [STORE_KIND_ATTEMPT] = STORE_PUT_NEW,
        [STORE_KIND_GATE] = STORE_PUT_NEW,
        [STORE_KIND_COMMAND] = STORE_PUT_NEW,
        [STORE_KIND_EVENT] = STORE_PUT_NEW,
    };
    struct copying *copying = ctx;
    struct store *to = copying->to;
    copying->out->rows++;
    copying->out->runs += copying->kind == STORE_KIND_RUN ? 1 : 0;
    copying->out->events += copying->kind == STORE_KIND_EVENT ? 1 : 0;
    return to->ops->put(to,
                        copying->kind,
                        how[copying->kind],
                        row,
                        copying->diag);
}

/* Put all rows into the transaction; `info` is the head of `to`. */
static enum err put_all(struct copying *copying, struct store_info *info)
{
    struct store *from = copying->from;
    struct store *to = copying->to;
    struct store_info source = {0};
    enum err err = from->ops->hold(from, &source, copying->diag);
    if (err != ERR_OK) {
        return err;
    }
    uint64_t epoch = source.epoch > info->epoch ? source.epoch : info->epoch;
    err = to->ops->raise(to, epoch + 1, copying->diag);
    for (uint32_t kind = 0; kind < STORE_KINDS && err == ERR_OK; kind++) {
        copying->kind = (enum store_kind)kind;
        err = each_row(from, copying->kind, put_row, copying, copying->diag);
    }
    from->ops->let_go(from);
    *info = (struct store_info){
        .epoch = to->epoch,
        .engine_ns = source.engine_ns,
        .wall_ns = source.wall_ns,
        .writes = info->writes + 1,
        .last_token = source.last_token,
        .last_event = source.last_event,
        .last_sum = source.last_sum,
        .last_command = source.last_command,
        .last_run = source.last_run,
    };
    return err;
}

static enum err copy_all(struct copying *copying)
{
    struct store *to = copying->to;
    struct store_info info = {0};
    char id[sizeof(info.id)];
    enum err err = to->ops->begin(to, &info, copying->diag);
    if (err != ERR_OK) {
        return err;
    }
    memcpy(id, info.id, sizeof(id));
    err = put_all(copying, &info);
    memcpy(info.id, id, sizeof(id));
    enum err ended =
        to->ops->end(to, err == ERR_OK ? &info : NULL, copying->diag);
    return err == ERR_OK ? ended : err;
}

/* --- comparing ---------------------------------------------------------- */

static uint64_t add_text(uint64_t sum, const char *text)
{
    if (text == NULL) {
        return sum_add_number(sum, 0, 1);
    }
    size_t len = strlen(text);
    sum = sum_add_number(sum, len + 1, 8);
    return sum_add(sum, text, len);
}

static uint64_t
add_column(uint64_t sum, const struct column *column, const char *from)
{
    const char *text;
    size_t len;
    switch (column->type) {
    case COLUMN_TEXT:
    case COLUMN_TEXT_OR_NULL:
        memcpy(&text, from, sizeof(text));
        return add_text(sum, text);
    case COLUMN_CHARS:
        return add_text(sum, from);
    case COLUMN_BYTES:
        memcpy(&text, from, sizeof(text));
        memcpy(&len, from + sizeof(text), sizeof(len));
        sum = sum_add_number(sum, len, 8);
        return len > 0 ? sum_add(sum, text, len) : sum;
    case COLUMN_BOOL:
    case COLUMN_I32:
    case COLUMN_U32:
    case COLUMN_U32_OR_NULL:
    case COLUMN_I64:
    case COLUMN_U64:
    case COLUMN_DOUBLE:
    case COLUMN_TASK:
        break;
    }
    return sum_add(sum, from, column->size);
}

/* Sums of the rows of a table, in order. */
struct sums {
    const struct column_table *table;
    uint64_t *sums;
    uint32_t count;
    uint32_t capacity;
    uint32_t seen; /* of the other store */
    struct diag *diag;
};

static uint64_t row_sum(const struct sums *sums, const union store_row *row)
{
    uint64_t sum = SUM_START;
    for (uint32_t ix = 0; ix < sums->table->count; ix++) {
        const struct column *column = &sums->table->columns[ix];
        sum = add_column(sum, column, (const char *)row + column->offset);
    }
    return sum;
}

static enum err note_row(void *ctx, const union store_row *row)
{
    struct sums *sums = ctx;
    MEM_GROW(sums->sums, sums->count, sums->capacity);
    sums->sums[sums->count++] = row_sum(sums, row);
    return ERR_OK;
}

static enum err differs(const struct sums *sums)
{
    return diag_set(sums->diag,
                    ERR_CORRUPT,
                    "the copy differs at row %u of the table %s: do not use "
                    "it, and copy to another store",
                    sums->seen + 1,
                    sums->table->name);
}

static enum err compare_row(void *ctx, const union store_row *row)
{
    struct sums *sums = ctx;
    if (sums->seen >= sums->count ||
        sums->sums[sums->seen] != row_sum(sums, row)) {
        return differs(sums);
    }
    sums->seen++;
    return ERR_OK;
}

static enum err compare_table(struct copying *copying, enum store_kind kind)
{
    struct sums sums = {.table = columns_of(kind), .diag = copying->diag};
    enum err err =
        each_row(copying->from, kind, note_row, &sums, copying->diag);
    if (err == ERR_OK) {
        err = each_row(copying->to, kind, compare_row, &sums, copying->diag);
    }
    if (err == ERR_OK && sums.seen != sums.count) {
        err = differs(&sums);
    }
    mem_free(sums.sums);
    return err;
}

static enum err compare_all(struct copying *copying)
{
    struct store *from = copying->from;
    struct store *to = copying->to;
    struct store_info a = {0};
    struct store_info b = {0};
    enum err err = from->ops->hold(from, &a, copying->diag);
    if (err != ERR_OK) {
        return err;
    }
    err = to->ops->hold(to, &b, copying->diag);
    if (err != ERR_OK) {
        from->ops->let_go(from);
        return err;
    }
    if (a.last_token != b.last_token || a.last_event != b.last_event ||
        a.last_sum != b.last_sum || a.last_command != b.last_command ||
        a.last_run != b.last_run || a.engine_ns != b.engine_ns ||
        b.epoch <= a.epoch) {
        err = diag_set(copying->diag,
                       ERR_CORRUPT,
                       "the copy has other numbers: do not use it, and copy "
                       "to another store");
    }
    for (uint32_t kind = 0; kind < STORE_KINDS && err == ERR_OK; kind++) {
        err = compare_table(copying, (enum store_kind)kind);
    }
    to->ops->let_go(to);
    from->ops->let_go(from);
    return err;
}

enum err store_copy(struct store *from,
                    struct store *to,
                    struct store_copied *out,
                    struct diag *diag)
{
    struct copying copying = {.from = from, .to = to, .out = out, .diag = diag};
    INVARIANT(from != to && from->epoch > 0 && to->epoch > 0);
    *out = (struct store_copied){0};
    if (to->ops->raise == NULL) {
        return diag_set(diag, ERR_UNAVAILABLE, "cannot copy to this store");
    }
    enum err err = check_sound(from, "from", diag);
    if (err == ERR_OK) {
        err = check_both(&copying);
    }
    if (err == ERR_OK) {
        err = copy_all(&copying);
    }
    if (err == ERR_OK) {
        err = compare_all(&copying);
    }
    return err == ERR_OK ? check_sound(to, "to", diag) : err;
}
