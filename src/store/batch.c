/* SPDX-License-Identifier: MIT */
/*
 * What a row must have is checked here, once for all back ends: a change that
 * lacks it is a bug of its maker, and is found where it was made.
 */
#include "store/batch.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <string.h>

/* The list of a batch that is emptied is kept up to this size. */
enum { CAPACITY_KEPT = 1024 };

enum { CHANGES_MIN = 16 };

void store_batch_release(struct store_batch *batch)
{
    mem_free(batch->changes);
    arena_release(&batch->texts);
    *batch = (struct store_batch){0};
}

void store_batch_clear(struct store_batch *batch)
{
    if (batch->capacity > CAPACITY_KEPT) {
        store_batch_release(batch); /* a plan was handed in: that is rare */
        return;
    }
    arena_release(&batch->texts);
    batch->count = 0;
}

/* Copy a text that may be absent. */
static void copy(struct store_batch *batch, const char **text)
{
    if (*text != NULL) {
        *text = arena_strndup(&batch->texts, *text, strlen(*text));
    }
}

/* Copy a text that must be there. */
static void copy_needed(struct store_batch *batch, const char **text)
{
    INVARIANT(*text != NULL);
    copy(batch, text);
}

/* Copy a plan's text, which may have any bytes. */
static void
copy_bytes(struct store_batch *batch, const char **text, size_t bytes)
{
    INVARIANT(*text != NULL || bytes == 0);
    *text = arena_strndup(&batch->texts, *text, bytes);
}

static void copy_run(struct store_batch *batch, struct store_run *run)
{
    INVARIANT(run->number > 0 && run->number <= STORE_RUN_MAX);
    copy_needed(batch, &run->id);
    copy_needed(batch, &run->name);
    copy_needed(batch, &run->file);
    copy_needed(batch, &run->folder);
    copy_bytes(batch, &run->text, run->text_bytes);
}

/* Of a run that is there, only what can change is kept. */
static void strip_run(struct store_run *run)
{
    INVARIANT(run->number > 0 && run->number <= STORE_RUN_MAX);
    run->id = NULL;
    run->name = NULL;
    run->file = NULL;
    run->folder = NULL;
    run->text = NULL;
    run->text_bytes = 0;
}

static void copy_fragment(struct store_batch *batch,
                          struct store_fragment *fragment)
{
    INVARIANT(fragment->run > 0 && fragment->run <= STORE_RUN_MAX);
    INVARIANT(fragment->number > 0);
    copy_needed(batch, &fragment->file);
    copy_bytes(batch, &fragment->text, fragment->text_bytes);
}

static void copy_task(struct store_batch *batch, struct store_task *task)
{
    INVARIANT(task->run > 0 && task->run <= STORE_RUN_MAX);
    INVARIANT(task->ix != STORE_NONE);
    copy_needed(batch, &task->id);
    copy_needed(batch, &task->state);
    copy(batch, &task->reason);
    copy(batch, &task->feedback);
    copy(batch, &task->carry);
}

static void copy_attempt(struct store_batch *batch,
                         struct store_attempt *attempt)
{
    INVARIANT(attempt->token > 0 && attempt->token <= INT64_MAX);
    INVARIANT(memchr(attempt->boot_id, '\0', sizeof(attempt->boot_id)) != NULL);
    INVARIANT(memchr(attempt->nonce, '\0', sizeof(attempt->nonce)) != NULL);
    copy_needed(batch, &attempt->state);
    copy(batch, &attempt->outcome);
    copy(batch, &attempt->cause);
    copy(batch, &attempt->reason);
}

static void copy_event(struct store_batch *batch, struct store_event *event)
{
    copy_needed(batch, &event->kind);
    copy_needed(batch, &event->data);
}

static void copy_command(struct store_batch *batch,
                         struct store_command *command)
{
    if (command->number == 0) {
        copy_needed(batch, &command->who);
        copy_needed(batch, &command->verb);
        copy_needed(batch, &command->args);
        copy(batch, &command->answer);
    } else {
        command->who = NULL;
        command->verb = NULL;
        command->args = NULL;
        copy_needed(batch, &command->answer);
    }
}

static void copy_texts(struct store_batch *batch, struct store_change *change)
{
    switch (change->type) {
    case STORE_RUN_NEW:
        copy_run(batch, &change->as.run);
        break;
    case STORE_RUN_SET:
        strip_run(&change->as.run);
        break;
    case STORE_FRAGMENT:
        copy_fragment(batch, &change->as.fragment);
        break;
    case STORE_LIMIT_SET:
        copy_needed(batch, &change->as.limit.name);
        break;
    case STORE_PROVIDER:
        copy_needed(batch, &change->as.provider.name);
        copy(batch, &change->as.provider.reason);
        break;
    case STORE_SETTING:
        copy_needed(batch, &change->as.setting.name);
        copy(batch, &change->as.setting.value);
        break;
    case STORE_TASK_SET:
        copy_task(batch, &change->as.task);
        break;
    case STORE_CLAIM:
    case STORE_ATTEMPT_SET:
        copy_attempt(batch, &change->as.attempt);
        break;
    case STORE_EVENT:
        copy_event(batch, &change->as.event);
        break;
    case STORE_COMMAND:
        copy_command(batch, &change->as.command);
        break;
    case STORE_PRUNE:
        INVARIANT(change->as.prune.last <= INT64_MAX);
        break;
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
}
