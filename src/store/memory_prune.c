/* SPDX-License-Identifier: MIT */
/*
 * Removing finished runs, as sqlite_prune.c does. It comes after all other
 * changes of a batch and cannot fail, so it is never taken back.
 */
#include "store/memory_internal.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "plan/revise.h"
#include "store/event.h"
#include "store/pruned.h"

#include <string.h>

/* The gap that ends before `number`, or begins with it; false: none does. */
static bool find_gap(const struct store_memory_db *db,
                     uint64_t number,
                     bool before,
                     struct event_gap *out)
{
    for (uint32_t ix = 0; ix < db->setting_count; ix++) {
        const struct store_setting *row = &db->settings[ix];
        struct event_gap gap;
        if (event_gap_read(row->name, row->value, &gap) &&
            (before ? gap.last + 1 : gap.first) == number) {
            *out = gap;
            return true;
        }
    }
    return false;
}

bool memory_find_gap(const struct store_memory_db *db,
                     uint64_t first,
                     struct event_gap *out)
{
    return find_gap(db, first, false, out);
}

static void set(struct store_memory_db *db, const char *name, const char *value)
{
    struct store_setting setting = {
        .name = arena_strndup(&db->arena, name, strlen(name)),
        .value = value != NULL ? arena_strndup(&db->arena, value, strlen(value))
                               : NULL,
    };
    (void)memory_replace_setting(db, setting);
}

/* Note a gap, as one with those it touches. */
static void add_gap(struct store_memory_db *db, struct event_gap gap)
{
    struct event_gap other = {0};
    if (find_gap(db, gap.last + 1, false, &other)) {
        gap.last = other.last;
        gap.sum = other.sum;
        struct event_gap_texts texts = event_gap_write(&other);
        set(db, texts.name, NULL);
    }
    if (find_gap(db, gap.first, true, &other)) {
        gap.first = other.first;
    }
    struct event_gap_texts texts = event_gap_write(&gap);
    set(db, texts.name, texts.value);
}

static void prune_events(struct store_memory_db *db,
                         const struct store_prune *prune)
{
    uint32_t kept = 0;
    for (uint32_t ix = 0; ix < db->event_count; ix++) {
        const struct store_event *event = &db->events[ix];
        if (event->run == prune->run && event->number >= prune->first &&
            event->number <= prune->last) {
            add_gap(db,
                    (struct event_gap){
                        .first = event->number,
                        .last = event->number,
                        .sum = event->sum,
                    });
        } else {
            db->events[kept++] = *event;
        }
    }
    db->event_count = kept;
}

/* Attempts are chained by their place: those that stay get new ones. */
static void prune_attempts(struct store_memory_db *db,
                           const struct store_prune *prune)
{
    uint32_t *places =
        mem_zalloc((size_t)db->attempt_count + 1, sizeof(places[0]));
    uint32_t kept = 0;
    for (uint32_t ix = 0; ix < db->attempt_count; ix++) {
        const struct store_attempt *row = &db->attempts[ix].row;
        bool goes = row->run == prune->run && row->task >= prune->first &&
                    row->task <= prune->last &&
                    strcmp(row->state, "ended") == 0;
        /* The chain goes on where that of the one before did. */
        uint32_t before = db->attempts[ix].before;
        before = before != STORE_NONE ? places[before] : STORE_NONE;
        places[ix] = goes ? before : kept;
        if (!goes) {
            db->attempts[kept] = db->attempts[ix];
            db->attempts[kept++].before = before;
        }
    }
    db->attempt_count = kept;
    for (uint32_t ix = 0; ix < db->run_count; ix++) {
        struct memory_run *run = &db->runs[ix];
        for (uint32_t task = 0; task < run->task_count; task++) {
            uint32_t *last = &run->tasks[task].last_attempt;
            *last = *last != STORE_NONE ? places[*last] : STORE_NONE;
        }
    }
    mem_free(places);
}

static void prune_tasks(struct store_memory_db *db,
                        struct memory_run *run,
                        const struct store_prune *prune)
{
    prune_attempts(db, prune);
    for (uint32_t ix = 0; ix < run->task_count; ix++) {
        struct memory_task *task = &run->tasks[ix];
        if (ix >= prune->first && ix <= prune->last && task->present &&
            strcmp(task->row.state, "cancelled") == 0) {
            run->row.cancelled = true;
        }
        if (ix >= prune->first && ix <= prune->last &&
            task->last_attempt == STORE_NONE) {
            *task = (struct memory_task){.last_attempt = STORE_NONE};
        }
    }
}

/* Remove the settings KIND/NUMBER and KIND/NUMBER/... */
static void drop_settings(struct store_memory_db *db, uint32_t number)
{
    static const char *const kinds[] = {"budget",
                                        "expected",
                                        "notice",
                                        "usage"};
    struct strbuf prefix = {0};
    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
        strbuf_clear(&prefix);
        strbuf_addf(&prefix, "%s/%u", kinds[kind], number);
        for (uint32_t ix = db->setting_count; ix-- > 0;) {
            const char *name = db->settings[ix].name;
            bool own = strncmp(name, strbuf_text(&prefix), prefix.len) == 0 &&
                       (name[prefix.len] == '\0' || name[prefix.len] == '/');
            if (own) {
                set(db, name, NULL);
            }
        }
    }
    strbuf_release(&prefix);
}

static void prune_run(struct store_memory_db *db, struct memory_run *run)
{
    for (uint32_t ix = 0; ix < run->task_count; ix++) {
        if (run->tasks[ix].present ||
            run->tasks[ix].last_attempt != STORE_NONE) {
            return;
        }
    }
    struct store_run row = run->row;
    for (uint32_t ix = 0; ix < run->fragment_count; ix++) {
        const struct store_fragment *fragment = &run->fragments[ix];
        if (strncmp(fragment->file, REVISE_MARK, strlen(REVISE_MARK)) == 0) {
            row.text = fragment->text;
            row.text_bytes = fragment->text_bytes;
        }
    }
    struct strbuf name = {0};
    struct strbuf value = {0};
    strbuf_addf(&name, PRUNED_PREFIX "%s", row.id);
    pruned_add(&value, &row);
    set(db, strbuf_text(&name), strbuf_text(&value));
    strbuf_release(&name);
    strbuf_release(&value);
    drop_settings(db, run->row.number);
    /* Its id stays in run_ids, so that no other run gets it. */
    mem_free(run->fragments);
    mem_free(run->limits);
    mem_free(run->tasks);
    uint32_t ix = (uint32_t)(run - db->runs);
    memmove(run, run + 1, (--db->run_count - ix) * sizeof(*run));
}

void memory_prune(struct store_memory_db *db, const struct store_prune *prune)
{
    struct memory_run *run = memory_find_run(db, prune->run);
    if (run == NULL || !run->row.finished) {
        return;
    }
    switch (prune->part) {
    case STORE_PRUNE_EVENTS:
        prune_events(db, prune);
        break;
    case STORE_PRUNE_TASKS:
        prune_tasks(db, run, prune);
        break;
    case STORE_PRUNE_RUN:
        prune_run(db, run);
        break;
    }
}
