/* SPDX-License-Identifier: MIT */
/*
 * Changes of one transaction. Required members are checked here for all back
 * ends: a change without them is a bug, and is caught where it was created.
 */
#include "store/batch.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "store/columns.h"

#include <malloc.h>
#include <string.h>

/* store_batch_clear() keeps a list of up to this size. */
enum { CAPACITY_KEPT = 1024 };

enum { CHANGES_MIN = 16 };

void store_batch_release(struct store_batch *batch)
{
    INVARIANT(batch->count <= batch->capacity);
    mem_free(batch->changes);
    arena_release(&batch->texts);
    strbuf_release(&batch->orders);
    *batch = (struct store_batch){0};
}

void store_batch_clear(struct store_batch *batch)
{
    if (batch->capacity > CAPACITY_KEPT) {
        store_batch_release(batch); /* a plan was submitted: that is rare */
        (void)malloc_trim(0);
        return;
    }
    INVARIANT(batch->count <= batch->capacity);
    arena_release(&batch->texts);
    strbuf_clear(&batch->orders);
    batch->count = 0;
}

/* Copy a string, as valid UTF-8. */
static const char *copy_text(void *ctx, const char *text)
{
    struct store_batch *batch = ctx;
    size_t len = strlen(text);
    char *copy = arena_strndup(&batch->texts, text, len);
    utf8_repair(copy, len);
    INVARIANT(strlen(copy) == len);
    return copy;
}

/* Copy the text of a plan, which may have any bytes. */
static void
copy_bytes(struct store_batch *batch, const char **text, size_t bytes)
{
    INVARIANT(*text != NULL || bytes == 0);
    *text = arena_strndup(&batch->texts, *text, bytes);
}

static bool is_run(uint32_t number)
{
    return number > 0 && number <= STORE_RUN_MAX;
}

static void check_run(const struct store_change *change)
{
    const struct store_run *run = &change->as.run;
    INVARIANT(is_run(run->number));
    INVARIANT(change->type != STORE_RUN_NEW || run->id != NULL);
    INVARIANT(change->type != STORE_RUN_NEW || run->id[0] != '\0');
}

static void check_attempt(const struct store_change *change)
{
    const struct store_attempt *row = &change->as.attempt;
    INVARIANT(row->token > 0 && row->token <= INT64_MAX);
    INVARIANT(memchr(row->boot_id, '\0', sizeof(row->boot_id)) != NULL);
    INVARIANT(memchr(row->nonce, '\0', sizeof(row->nonce)) != NULL);
    INVARIANT(row->state != NULL);
    INVARIANT(change->type != STORE_CLAIM || is_run(row->run));
    INVARIANT(change->type != STORE_CLAIM || row->outcome == NULL);
    INVARIANT(change->type != STORE_CLAIM || row->task != STORE_NONE);
}

/* Check that a change has all required members. */
static void check(const struct store_change *change)
{
    switch (change->type) {
    case STORE_RUN_NEW:
    case STORE_RUN_SET:
        check_run(change);
        break;
    case STORE_FRAGMENT:
        INVARIANT(is_run(change->as.fragment.run));
        INVARIANT(change->as.fragment.number > 0);
        break;
    case STORE_LIMIT_SET:
        INVARIANT(is_run(change->as.limit.run));
        break;
    case STORE_PROVIDER:
        INVARIANT(change->as.provider.stopped ||
                  change->as.provider.reason == NULL);
        break;
    case STORE_SETTING:
        INVARIANT(change->as.setting.name[0] != '\0');
        break;
    case STORE_TASK_SET:
        INVARIANT(is_run(change->as.task.run));
        INVARIANT(change->as.task.ix != STORE_NONE);
        break;
    case STORE_CLAIM:
    case STORE_ATTEMPT_SET:
        check_attempt(change);
        break;
    case STORE_GATE:
        INVARIANT(is_run(change->as.gate.run));
        INVARIANT(change->as.gate.token > 0);
        INVARIANT(change->as.gate.tree[0] != '\0');
        break;
    case STORE_EVENT:
        INVARIANT(change->as.event.run == STORE_NONE ||
                  is_run(change->as.event.run));
        break;
    case STORE_COMMAND:
        INVARIANT(change->as.command.number == 0 ||
                  change->as.command.answer != NULL);
        break;
    case STORE_PRUNE:
        INVARIANT(is_run(change->as.prune.run));
        INVARIANT(change->as.prune.last <= INT64_MAX);
        break;
    }
}

/* Clear the fixed columns of an update, which ignores them. */
static void strip(const struct column_table *table, union store_row *row)
{
    for (uint32_t ix = 0; ix < table->count; ix++) {
        const struct column *column = &table->columns[ix];
        bool text =
            column->type == COLUMN_TEXT || column->type == COLUMN_TEXT_OR_NULL;
        if (column->fixed && text) {
            const char *none = column->type == COLUMN_TEXT ? "" : NULL;
            memcpy((char *)row + column->offset, &none, sizeof(none));
        }
    }
}

static void copy_texts(struct store_batch *batch, struct store_change *change)
{
    check(change);
    if (change->type == STORE_PRUNE) {
        return;
    }
    const struct column_table *table = columns_of(columns_kind(change->type));
    if (columns_is_update(change)) {
        strip(table, &change->as);
    }
    columns_each_text(table, &change->as, copy_text, batch);
    if (change->type == STORE_RUN_NEW) {
        struct store_run *run = &change->as.run;
        copy_bytes(batch, &run->text, run->text_bytes);
    } else if (change->type == STORE_FRAGMENT) {
        struct store_fragment *fragment = &change->as.fragment;
        copy_bytes(batch, &fragment->text, fragment->text_bytes);
    }
}

void store_batch_add(struct store_batch *batch,
                     const struct store_change *change)
{
    INVARIANT(batch->count <= batch->capacity);
    MEM_GROW(batch->changes, batch->count, batch->capacity);
    struct store_change *added = &batch->changes[batch->count++];
    *added = *change;
    copy_texts(batch, added);
    INVARIANT(batch->count <= batch->capacity);
}
