/* SPDX-License-Identifier: MIT */
/*
 * Verification of stored rows against the event log and against each other, for
 * every back end: all rows are read once, kind by kind, in one state of the
 * store.
 *
 * The event log has sums, so that a bit flip in it is detected; the state of a
 * task must match its last event; rows must refer to rows that exist; and
 * numbers must have been assigned.
 */
#include "store/backend.h"

#include "base/invariant.h"
#include "base/macros.h"
#include "base/mem.h"
#include "core/sched.h"
#include "store/columns.h"
#include "store/event.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Faults of one kind that are reported; more would not help. */
enum { FAULTS_MAX = 100 };

/* Data kept of a task. */
struct seen_task {
    uint64_t key; /* run and index */
    uint8_t state;
    uint32_t number; /* of its last attempt, by token */
    uint64_t token;
};

struct seen_run {
    uint32_t number;
    uint32_t fragments; /* their count: numbers are from 0 on */
};

/* The last event of a task. */
struct last_event {
    uint64_t key;
    uint64_t number;
    uint8_t to;
};

struct verifying {
    store_fault_fn fn;
    void *ctx;
    const char *table; /* being read */
    uint32_t faults;   /* in that table */
    struct store_info info;
    struct seen_run *runs; /* by number */
    uint32_t run_count;
    uint32_t run_capacity;
    struct seen_task *tasks; /* by key */
    uint32_t task_count;
    uint32_t task_capacity;
    struct event_gap *gaps; /* by number */
    uint32_t gap_count;
    uint32_t gap_capacity;
    uint32_t gap_next;        /* the first gap not passed yet */
    struct last_event *lasts; /* by key, once sorted */
    uint32_t last_count;
    uint32_t last_capacity;
    uint64_t number; /* of the previous event */
    uint64_t sum;
    struct event event; /* being read */
};

static void PRINTF_LIKE(2, 3)
    fault(struct verifying *verifying, const char *format, ...)
{
    if (verifying->faults++ >= FAULTS_MAX) {
        return;
    }
    char text[DIAG_BYTES];
    int len = snprintf(text, sizeof(text), "table %s", verifying->table);
    INVARIANT(len > 0 && (size_t)len < sizeof(text));
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text + len, sizeof(text) - (size_t)len, format, args);
    va_end(args);
    verifying->fn(verifying->ctx, text);
}

static uint64_t key_of(uint32_t run, uint32_t task)
{
    return (uint64_t)run << 32 | task;
}

/* The number of a state; TASK_STATE_COUNT: unknown name. */
static uint8_t state_of(const char *name)
{
    INVARIANT(name != NULL);
    uint8_t ix = 0;
    while (ix < TASK_STATE_COUNT &&
           strcmp(sched_state_name((enum task_state)ix), name) != 0) {
        ix++;
    }
    return ix;
}

static struct seen_task *
find_task(struct verifying *verifying, uint32_t run, uint32_t task)
{
    struct seen_task *tasks = verifying->tasks;
    uint64_t key = key_of(run, task);
    uint32_t low = 0;
    uint32_t high = verifying->task_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        INVARIANT(middle == 0 || tasks[middle - 1].key < tasks[middle].key);
        if (tasks[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool found = low < verifying->task_count && tasks[low].key == key;
    return found ? &tasks[low] : NULL;
}

static struct seen_run *find_run(struct verifying *verifying, uint32_t number)
{
    for (uint32_t ix = verifying->run_count; ix > 0; ix--) {
        if (verifying->runs[ix - 1].number == number) {
            return &verifying->runs[ix - 1];
        }
    }
    return NULL;
}

static enum err see_run(void *ctx, const union store_row *row)
{
    struct verifying *verifying = ctx;
    const struct store_run *run = &row->run;
    if (run->number < 1 || run->number > verifying->info.last_run) {
        fault(verifying,
              ", row %u: the number was never given out",
              run->number);
    }
    MEM_GROW(verifying->runs, verifying->run_count, verifying->run_capacity);
    verifying->runs[verifying->run_count++] =
        (struct seen_run){.number = run->number};
    return ERR_OK;
}

static enum err see_fragment(void *ctx, const union store_row *row)
{
    struct verifying *verifying = ctx;
    const struct store_fragment *fragment = &row->fragment;
    struct seen_run *run = find_run(verifying, fragment->run);
    if (run == NULL) {
        fault(verifying,
              ", run %u, number %u: no such run",
              fragment->run,
              fragment->number);
    } else if (fragment->number != run->fragments) {
        fault(verifying, ", run %u: a number is missing", fragment->run);
    } else {
        run->fragments++;
    }
    return ERR_OK;
}

static enum err see_limit(void *ctx, const union store_row *row)
{
    struct verifying *verifying = ctx;
    if (find_run(verifying, row->limit.run) == NULL) {
        fault(verifying,
              ", run %u, %s: no such run",
              row->limit.run,
              row->limit.name);
    }
    return ERR_OK;
}

/* Only gaps in the event log are checked among settings. */
static enum err see_setting(void *ctx, const union store_row *row)
{
    struct verifying *verifying = ctx;
    struct event_gap gap;
    if (event_gap_read(row->setting.name, row->setting.value, &gap)) {
        MEM_GROW(verifying->gaps,
                 verifying->gap_count,
                 verifying->gap_capacity);
        verifying->gaps[verifying->gap_count++] = gap;
    }
    return ERR_OK;
}

static enum err see_task(void *ctx, const union store_row *row)
{
    struct verifying *verifying = ctx;
    const struct store_task *task = &row->task;
    uint8_t state = state_of(task->state);
    if (find_run(verifying, task->run) == NULL) {
        fault(verifying, ", run %u, task %u: no such run", task->run, task->ix);
    }
    if (state == TASK_STATE_COUNT) {
        fault(verifying,
              ", run %u, task %u: unknown state \"%s\"",
              task->run,
              task->ix,
              task->state);
    }
    if (task->token > verifying->info.last_token) {
        fault(verifying,
              ", run %u, task %u: the token %" PRIu64 " was never given out",
              task->run,
              task->ix,
              task->token);
    }
    uint64_t key = key_of(task->run, task->ix);
    uint32_t count = verifying->task_count;
    if (count > 0 && verifying->tasks[count - 1].key >= key) {
        fault(verifying,
              ", run %u, task %u: out of order",
              task->run,
              task->ix);
        return ERR_OK; /* a damaged table */
    }
    MEM_GROW(verifying->tasks, verifying->task_count, verifying->task_capacity);
    INVARIANT(verifying->task_count < verifying->task_capacity);
    verifying->tasks[verifying->task_count++] = (struct seen_task){
        .key = key,
        .state = state,
    };
    return ERR_OK;
}

/* Rows come by token; so the numbers of a task's attempts must ascend, too. */
static enum err see_attempt(void *ctx, const union store_row *row)
{
    struct verifying *verifying = ctx;
    const struct store_attempt *attempt = &row->attempt;
    bool ended = strcmp(attempt->state, "ended") == 0;
    struct seen_task *task = find_task(verifying, attempt->run, attempt->task);
    if (task == NULL) {
        fault(verifying,
              ", row %" PRIu64 ": no task %u in run %u",
              attempt->token,
              attempt->task,
              attempt->run);
    }
    if (attempt->token < 1 || attempt->token > verifying->info.last_token) {
        fault(verifying,
              ", row %" PRIu64 ": the token was never given out",
              attempt->token);
    }
    if (!ended && strcmp(attempt->state, "claimed") != 0 &&
        strcmp(attempt->state, "running") != 0) {
        fault(verifying,
              ", row %" PRIu64 ": unknown state '%s'",
              attempt->token,
              attempt->state);
    }
    if (ended && attempt->outcome == NULL) {
        fault(verifying,
              ", row %" PRIu64 ": ended without an outcome",
              attempt->token);
    }
    if (attempt->epoch < 1 || attempt->epoch > verifying->info.epoch) {
        fault(verifying,
              ", row %" PRIu64 ": claimed by epoch %" PRIu64
              ", which never was",
              attempt->token,
              attempt->epoch);
    }
    if (task != NULL && task->token > 0 && attempt->number <= task->number) {
        fault(verifying,
              ", row %" PRIu64 ": the token is not greater than that of the "
              "attempt before",
              task->token);
    }
    if (task != NULL) {
        task->token = attempt->token;
        task->number = attempt->number;
    }
    return ERR_OK;
}

static enum err see_gate(void *ctx, const union store_row *row)
{
    struct verifying *verifying = ctx;
    const struct store_gate *gate = &row->gate;
    if (find_task(verifying, gate->run, gate->task) == NULL) {
        fault(verifying,
              ", row %" PRIu64 ".%u: no task %u in run %u",
              gate->token,
              gate->place,
              gate->task,
              gate->run);
    }
    if (gate->token < 1 || gate->token > verifying->info.last_token) {
        fault(verifying,
              ", row %" PRIu64 ".%u: the token was never given out",
              gate->token,
              gate->place);
    }
    return ERR_OK;
}

static enum err see_command(void *ctx, const union store_row *row)
{
    struct verifying *verifying = ctx;
    if (row->command.number < 1 ||
        row->command.number > verifying->info.last_command) {
        fault(verifying,
              ", row %" PRIu64 ": the number was never given out",
              row->command.number);
    }
    return ERR_OK;
}

/* Skip removed events before `number`. */
static void pass_gap(struct verifying *verifying, uint64_t number)
{
    INVARIANT(verifying->gap_next <= verifying->gap_count);
    while (verifying->gap_next < verifying->gap_count &&
           verifying->gaps[verifying->gap_next].first <= verifying->number) {
        verifying->gap_next++;
    }
    if (verifying->gap_next == verifying->gap_count) {
        return;
    }
    const struct event_gap *gap = &verifying->gaps[verifying->gap_next];
    if (gap->first == verifying->number + 1 && gap->last < number) {
        verifying->number = gap->last;
        verifying->sum = gap->sum;
        verifying->gap_next++;
    }
}

static void note_state(struct verifying *verifying,
                       const struct store_event *row)
{
    MEM_GROW(verifying->lasts, verifying->last_count, verifying->last_capacity);
    INVARIANT(verifying->last_count < verifying->last_capacity);
    event_read(&verifying->event, row);
    verifying->lasts[verifying->last_count++] = (struct last_event){
        .key = key_of(row->run, row->task),
        .number = row->number,
        .to = (uint8_t)verifying->event.as.task.to,
    };
}

static enum err see_event(void *ctx, const union store_row *row)
{
    struct verifying *verifying = ctx;
    const struct store_event *event = &row->event;
    pass_gap(verifying, event->number);
    if (event->number != verifying->number + 1) {
        fault(verifying,
              ", row %" PRIu64 ": the events before it are missing",
              event->number);
    } else if (event->sum != event_sum(verifying->sum, event)) {
        fault(verifying, ", row %" PRIu64 ": wrong checksum", event->number);
    }
    verifying->number = event->number;
    verifying->sum = event->sum;
    if (event_kind_of(event) == EVENT_KIND_TASK && event->run != STORE_NONE &&
        event->task != STORE_NONE) {
        note_state(verifying, event);
    }
    return ERR_OK;
}

static int by_key(const void *a, const void *b)
{
    const struct last_event *one = a;
    const struct last_event *other = b;
    if (one->key != other->key) {
        return one->key < other->key ? -1 : 1;
    }
    return one->number < other->number ? -1 : one->number > other->number;
}

/* Compare the state of each task with its last event. */
static void check_states(struct verifying *verifying)
{
    if (verifying->last_count == 0) {
        return;
    }
    qsort(verifying->lasts,
          verifying->last_count,
          sizeof(verifying->lasts[0]),
          by_key);
    for (uint32_t ix = 0; ix < verifying->last_count; ix++) {
        const struct last_event *last = &verifying->lasts[ix];
        if (ix + 1 < verifying->last_count && last[1].key == last->key) {
            continue;
        }
        uint32_t run = (uint32_t)(last->key >> 32);
        uint32_t ix_of = (uint32_t)last->key;
        const struct seen_task *task = find_task(verifying, run, ix_of);
        if (task == NULL) {
            fault(verifying,
                  ", run %u, task %u: the row is missing",
                  run,
                  ix_of);
        } else if (task->state != last->to && task->state < TASK_STATE_COUNT) {
            fault(verifying,
                  ", run %u, task %u: the state is %s, but by its last event "
                  "(row %" PRIu64 ") %s",
                  run,
                  ix_of,
                  sched_state_name((enum task_state)task->state),
                  last->number,
                  last->to < TASK_STATE_COUNT
                      ? sched_state_name((enum task_state)last->to)
                      : "unknown");
        }
    }
}

static void check_texts(struct verifying *verifying)
{
    for (uint32_t ix = 0; ix < verifying->run_count; ix++) {
        if (verifying->runs[ix].fragments == 0) {
            fault(verifying,
                  ", row %u: no plan text",
                  verifying->runs[ix].number);
        }
    }
}

static void check_end(struct verifying *verifying)
{
    pass_gap(verifying, verifying->info.last_event + 1);
    if (verifying->faults == 0 &&
        (verifying->number != verifying->info.last_event ||
         verifying->sum != verifying->info.last_sum)) {
        fault(verifying,
              " ends at row %" PRIu64 ", but should end at row %" PRIu64
              " (or the table scheduler is damaged)",
              verifying->number,
              verifying->info.last_event);
    }
}

/* Read the rows of a kind. Damage is a fault like others. */
static enum err see_all(struct verifying *verifying,
                        struct store *store,
                        enum store_kind kind,
                        store_row_fn fn,
                        struct diag *diag)
{
    struct diag why = {0};
    static const struct store_range every = {0};
    INVARIANT(verifying->fn != NULL);
    verifying->table = columns_of(kind)->name;
    verifying->faults = 0;
    enum err err =
        kind == STORE_KIND_EVENT
            ? store->ops->events(store, &every, fn, verifying, &why)
            : store->ops->rows(store, kind, NULL, fn, verifying, &why);
    if (err == ERR_CORRUPT) {
        verifying->faults++;
        verifying->fn(verifying->ctx, why.text);
        return ERR_OK;
    }
    return err == ERR_OK ? ERR_OK : diag_set(diag, err, "%s", why.text);
}

static enum err see_everything(struct verifying *verifying,
                               struct store *store,
                               struct diag *diag)
{
    static const struct {
        enum store_kind kind;
        store_row_fn see;
        void (*check)(struct verifying *verifying);
        const char *about;
    } steps[] = {
        {STORE_KIND_RUN, see_run, NULL, NULL},
        {STORE_KIND_FRAGMENT, see_fragment, check_texts, "run"},
        {STORE_KIND_LIMIT, see_limit, NULL, NULL},
        {STORE_KIND_SETTING, see_setting, NULL, NULL},
        {STORE_KIND_TASK, see_task, NULL, NULL},
        {STORE_KIND_ATTEMPT, see_attempt, NULL, NULL},
        {STORE_KIND_GATE, see_gate, NULL, NULL},
        {STORE_KIND_COMMAND, see_command, NULL, NULL},
        {STORE_KIND_EVENT, see_event, check_end, "event"},
    };
    enum err err = ERR_OK;
    for (size_t ix = 0; ix < ARRAY_COUNT(steps) && err == ERR_OK; ix++) {
        err = see_all(verifying, store, steps[ix].kind, steps[ix].see, diag);
        if (err == ERR_OK && steps[ix].check != NULL) {
            verifying->table = steps[ix].about;
            steps[ix].check(verifying);
        }
    }
    if (err == ERR_OK) {
        verifying->table = "task";
        verifying->faults = 0;
        check_states(verifying);
    }
    return err;
}

enum err verify_store(struct store *store,
                      store_fault_fn fn,
                      void *ctx,
                      struct diag *diag)
{
    struct verifying verifying = {.fn = fn, .ctx = ctx};
    enum err err = store->ops->check(store, fn, ctx, diag);
    if (err != ERR_OK) {
        return err;
    }
    struct diag why = {0};
    err = store->ops->hold(store, &verifying.info, &why);
    if (err == ERR_CORRUPT) {
        return ERR_OK; /* check() has reported it */
    }
    if (err != ERR_OK) {
        return diag_set(diag, err, "%s", why.text);
    }
    err = see_everything(&verifying, store, diag);
    store->ops->let_go(store);
    mem_free(verifying.runs);
    mem_free(verifying.tasks);
    mem_free(verifying.gaps);
    mem_free(verifying.lasts);
    event_release(&verifying.event);
    return err;
}
