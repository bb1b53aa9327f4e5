/* SPDX-License-Identifier: MIT */
/*
 * The rules for a batch, for all back ends. Events and requests get their
 * numbers here; tokens and run numbers must be greater than all earlier ones.
 * Rules query the back end for other rows.
 */
#include "store/backend.h"

#include "base/invariant.h"
#include "store/columns.h"
#include "store/event.h"

#include <inttypes.h>
#include <string.h>

/* A batch being applied. */
struct applying {
    struct store *store;
    struct store_info *info; /* to be written at the end */
    uint32_t known_run;      /* a run that exists; 0: none */
    struct diag *diag;
};

/* Check that the run of a row exists. */
static enum err need_run(struct applying *applying, uint32_t run)
{
    INVARIANT(run > 0 && run <= STORE_RUN_MAX);
    if (run == applying->known_run) {
        return ERR_OK;
    }
    struct store *store = applying->store;
    enum err err = store->ops->find_run(store, run, applying->diag);
    if (err == ERR_NOT_FOUND) {
        err = diag_set(applying->diag, ERR_CONFLICT, "no run %u", run);
    } else if (err == ERR_OK) {
        applying->known_run = run;
    }
    return err;
}

static enum err put(struct applying *applying,
                    enum store_kind kind,
                    enum store_put how,
                    const union store_row *row,
                    uint64_t number)
{
    struct store *store = applying->store;
    INVARIANT(kind < STORE_KINDS && how < STORE_PUTS);
    INVARIANT(store->batch != NULL && store->broken == ERR_OK);
    enum err err = store->ops->put(store, kind, how, row, applying->diag);
    if (err == ERR_CONFLICT) {
        err = diag_set(applying->diag,
                       ERR_CONFLICT,
                       "%s %" PRIu64 " contradicts the store",
                       columns_of(kind)->name,
                       number);
    }
    return err;
}

/* Add a run with the text of its plan, its fragment 0. */
static enum err add_run(struct applying *applying, const union store_row *row)
{
    const struct store_run *run = &row->run;
    if (run->number <= applying->info->last_run) {
        return diag_set(applying->diag,
                        ERR_CONFLICT,
                        "run %u existed before",
                        run->number);
    }
    INVARIANT(run->text != NULL || run->text_bytes == 0);
    applying->info->last_run = run->number;
    enum err err =
        put(applying, STORE_KIND_RUN, STORE_PUT_NEW, row, run->number);
    union store_row text = {
        .fragment =
            {
                .run = run->number,
                .number = 0,
                .file = run->file,
                .text = run->text,
                .text_bytes = run->text_bytes,
            },
    };
    return err == ERR_OK
               ? put(applying, STORE_KIND_FRAGMENT, STORE_PUT_NEW, &text, 0)
               : err;
}

static enum err claim(struct applying *applying, const union store_row *row)
{
    const struct store_attempt *attempt = &row->attempt;
    if (attempt->token <= applying->info->last_token) {
        return diag_set(applying->diag,
                        ERR_CONFLICT,
                        "the token %" PRIu64 " is not greater than %" PRIu64
                        ", which was assigned before",
                        attempt->token,
                        applying->info->last_token);
    }
    enum err err = need_run(applying, attempt->run);
    if (err != ERR_OK) {
        return err;
    }
    INVARIANT(attempt->epoch <= applying->info->epoch);
    applying->info->last_token = attempt->token;
    err = put(applying, STORE_KIND_ATTEMPT, STORE_PUT_NEW, row, attempt->token);
    if (err == ERR_CONFLICT) {
        err = diag_set(applying->diag,
                       ERR_CONFLICT,
                       "attempt %u of task %u of run %u exists",
                       attempt->number,
                       attempt->task,
                       attempt->run);
    }
    return err;
}

static enum err add_event(struct applying *applying,
                          const union store_row *given)
{
    struct store_info *info = applying->info;
    union store_row row = *given;
    struct store_event *event = &row.event;
    INVARIANT(info->last_event < INT64_MAX);
    event->number = ++info->last_event;
    event->sum = event_sum(info->last_sum, event);
    INVARIANT(event->number == info->last_event);
    info->last_sum = event->sum;
    return put(applying, STORE_KIND_EVENT, STORE_PUT_NEW, &row, event->number);
}

static enum err put_command(struct applying *applying,
                            const union store_row *given)
{
    union store_row row = *given;
    bool answer = row.command.number > 0;
    if (!answer) {
        INVARIANT(applying->info->last_command < INT64_MAX);
        row.command.number = ++applying->info->last_command;
    }
    return put(applying,
               STORE_KIND_COMMAND,
               answer ? STORE_PUT_UPDATE : STORE_PUT_NEW,
               &row,
               row.command.number);
}

static enum err apply(struct applying *applying,
                      const struct store_change *change)
{
    const union store_row *row = &change->as;
    enum store_put how = STORE_PUT_REPLACE;
    uint32_t run = 0;    /* that the row needs; 0: none */
    uint64_t number = 0; /* of the row, for messages */
    switch (change->type) {
    case STORE_RUN_NEW:
        return add_run(applying, row);
    case STORE_CLAIM:
        return claim(applying, row);
    case STORE_EVENT:
        return add_event(applying, row);
    case STORE_COMMAND:
        return put_command(applying, row);
    case STORE_PRUNE:
        return ERR_OK; /* after all others */
    case STORE_RUN_SET:
        how = STORE_PUT_UPDATE;
        number = row->run.number;
        break;
    case STORE_ATTEMPT_SET:
        how = STORE_PUT_UPDATE;
        number = row->attempt.token;
        break;
    case STORE_FRAGMENT:
        how = STORE_PUT_NEW;
        run = row->fragment.run;
        number = row->fragment.number;
        break;
    case STORE_GATE:
        how = STORE_PUT_NEW;
        run = row->gate.run;
        number = row->gate.token;
        break;
    case STORE_LIMIT_SET:
        run = row->limit.run;
        number = run;
        break;
    case STORE_TASK_SET:
        run = row->task.run;
        number = row->task.ix;
        break;
    case STORE_SETTING:
        how = row->setting.value != NULL ? how : STORE_PUT_DROP;
        break;
    case STORE_PROVIDER:
        break;
    }
    enum err err = run > 0 ? need_run(applying, run) : ERR_OK;
    enum store_kind kind = columns_kind(change->type);
    return err == ERR_OK ? put(applying, kind, how, row, number) : err;
}

enum err rules_apply(struct store *store,
                     const struct store_batch *batch,
                     struct store_info *info,
                     struct diag *diag)
{
    struct applying applying = {.store = store, .info = info, .diag = diag};
    const struct store_info before = *info;
    INVARIANT(store->batch == batch && batch->epoch == store->epoch);
    enum err err = ERR_OK;
    for (uint32_t ix = 0; ix < batch->count && err == ERR_OK; ix++) {
        err = apply(&applying, &batch->changes[ix]);
    }
    for (uint32_t ix = 0; ix < batch->count && err == ERR_OK; ix++) {
        if (batch->changes[ix].type == STORE_PRUNE) {
            err = store->ops->prune(store, &batch->changes[ix].as.prune, diag);
        }
    }
    info->engine_ns = batch->engine_ns;
    info->wall_ns = batch->wall_ns;
    info->writes++;
    INVARIANT(strcmp(info->id, before.id) == 0);
    INVARIANT(info->epoch == before.epoch);
    INVARIANT(info->writes == before.writes + 1);
    INVARIANT(info->last_token >= before.last_token);
    INVARIANT(info->last_event >= before.last_event);
    INVARIANT(info->last_event - before.last_event <= batch->count);
    INVARIANT(info->last_command >= before.last_command);
    INVARIANT(info->last_run >= before.last_run);
    return err;
}
