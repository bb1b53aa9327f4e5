/* SPDX-License-Identifier: MIT */
/*
 * event: the kinds of events, as rows of the event log.
 *
 * This module defines every kind of event, its members and their JSON. To add a
 * kind: add its name and its members here, in event.c the rows of the two
 * tables, and call event_write() where it happens; programs that show events
 * check for it.
 *
 * The names and the order of members are a format: stores keep them, hooks and
 * `run --json` pass them to other programs. Members may be added at the end.
 * Functions on event rows that every back end needs are here, too.
 */
#ifndef STORE_EVENT_H
#define STORE_EVENT_H

#include "base/jsonr.h"
#include "base/strbuf.h"
#include "core/sched.h"
#include "store/batch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- kinds --------------------------------------------------------------- */

enum event_kind {
    EVENT_KIND_UNKNOWN, /* of another version */
    EVENT_KIND_TASK,
    EVENT_KIND_ATTEMPT,
    EVENT_KIND_MEMBER,
    EVENT_KIND_RUN,
    EVENT_KIND_ADDED,
    EVENT_KIND_ADD_REFUSED,
    EVENT_KIND_UPDATED,
    EVENT_KIND_SYNC,
    EVENT_KIND_HOOK,
    EVENT_KIND_BUDGET,
    EVENT_KIND_USAGE,
    EVENT_KIND_PROVIDER,
    EVENT_KIND_CIRCUIT,
    EVENT_KIND_REQUEST,
    EVENT_KIND_SCHEDULER,
    EVENT_KIND_BASE,
    EVENT_KIND_NOTE,
    EVENT_KIND_COUNT,
};

/* New states and results, except task states. */
enum event_word {
    EVENT_WORD_NONE,
    EVENT_WORD_CAPPED,
    EVENT_WORD_DONE,
    EVENT_WORD_FAILED,
    EVENT_WORD_FINISHED,
    EVENT_WORD_PAUSED,
    EVENT_WORD_REACHED,
    EVENT_WORD_RESUMED,
    EVENT_WORD_STOPPED,
    EVENT_WORD_SUBMITTED,
    EVENT_WORD_WAITING,
    EVENT_WORD_COUNT,
};

/*
 * An event and its members. Strings are borrowed from its creator, or are in
 * `texts` after event_read(). NULL, 0, -1, TASK_STATE_COUNT and EVENT_WORD_NONE
 * mean that a member is absent, as the comments note.
 */
struct event {
    enum event_kind kind;
    struct strbuf texts; /* of event_read(); see event_release() */
    union {
        struct {
            const char *task;
            uint32_t from;      /* enum task_state; TASK_STATE_COUNT: none */
            uint32_t to;        /* enum task_state */
            uint32_t attempt;   /* 0: none, or in the session of another task */
            const char *reason; /* or NULL */
            bool asks; /* parked with a question; for event_hook() only */
            const char *waits; /* "approval": it is ready, and waits for an
                                  operator; or NULL */
        } task;                /* a task has changed its state */
        struct {
            const char *task; /* first task of the session */
            uint32_t attempt;
            uint64_t token;
            const char *outcome; /* exec/outcome.h has the words */
            const char *cause;
            int64_t code;    /* -1: none */
            uint32_t signal; /* 0: none */
            int64_t took_ns;
            const char *reason;  /* or NULL */
            uint32_t restarts;   /* of a merge: restarted in its queue */
            const char *on;      /* of a merge: tasks below it, or NULL */
            int64_t retry_at_ns; /* of "later", wall clock; 0: none */
            bool final;          /* of a failure that no retry follows */
        } attempt;               /* a session has ended */
        struct {
            const char *task;
            const char *leader; /* first task of the session */
            uint64_t token;
            const char *outcome;
            const char *reason; /* or NULL */
        } member;               /* outcome of another task of a batch */
        struct {
            enum event_word to; /* SUBMITTED, STOPPED, WAITING, FINISHED */
            const char *id;     /* of SUBMITTED, with its tasks; or NULL */
            int64_t tasks;      /* -1: none */
            uint32_t counts[TASK_STATE_COUNT]; /* tasks by state */
            const char *reason;                /* of STOPPED, or NULL */
        } run;
        struct {
            uint32_t tasks;
            const char *by; /* the task whose session added them, or NULL */
        } added;
        struct {
            const char *task;
            uint32_t attempt;
            const char *reason;
        } add_refused;
        struct {
            uint32_t changed;
            uint32_t added;
            uint32_t removed;
        } updated; /* tasks, by a new version of the plan */
        struct {
            enum event_word result; /* DONE, FAILED */
            const char *reason;     /* or NULL */
        } sync;
        struct {
            const char *hook;
            uint64_t of; /* number of the event */
            enum event_word result;
            const char *reason;
        } hook; /* its delivery was given up */
        struct {
            enum event_word to; /* REACHED */
            const char *budget;
        } budget;
        struct {
            enum event_word to;   /* PAUSED, RESUMED, CAPPED, FAILED */
            const char *provider; /* or NULL */
            int64_t cap;          /* -1: none */
            const char *meter;    /* or NULL */
            double percent;       /* of the meter; -1: none */
            int64_t until_ns;     /* wall clock; 0: unknown */
            const char *by;       /* "session", or NULL: a monitor */
            const char *reason;   /* or NULL */
        } usage;
        struct {
            enum event_word to; /* STOPPED, RESUMED */
            const char *provider;
            const char *reason; /* or NULL */
        } provider;
        struct {
            const char *provider;
        } circuit;
        struct {
            const char *verb;
            const char *by;
            const char *answer; /* JSON */
        } request;
        struct {
            uint64_t epoch;
            uint32_t found; /* sessions in flight */
            uint32_t adopted;
        } scheduler; /* a scheduler has started */
        struct {
            enum event_word to; /* FAILED; DONE: no longer */
            const char *repo;
            const char *base;
            const char *commit;
            const char *reason; /* or NULL */
        } base;                 /* it cannot be merged into the agent branch */
        struct {
            const char *task;
            uint32_t attempt;
            const char *text;
        } note; /* of a session, about its progress */
    } as;
};

const char *event_kind_name(enum event_kind kind);
const char *event_word_name(enum event_word word);

/* The kind of a row. */
enum event_kind event_kind_of(const struct store_event *row);

/* Append the data of a row: a JSON object. */
void event_write(struct strbuf *out, const struct event *event);

/*
 * Read a row. *out starts as {0}, and may be used for several rows in turn; a
 * member that is missing, or of another type, is absent.
 */
void event_read(struct event *out, const struct store_event *row);
void event_release(struct event *event);

/* Whether it is a request with this verb; the answer to a request. */
bool event_is_request(const struct event *event, const char *verb);
struct jsonr event_answer(const struct event *event);

/* The name of the plan's hook for this event, or NULL. */
const char *event_hook(const struct event *event);

/*
 * Append the event as other programs get it: a JSON object, with the id of its
 * run, or NULL, and the hook that it is for, or NULL.
 */
void event_add_json(struct strbuf *out,
                    const struct store_event *row,
                    const char *run,
                    const char *hook);

/* --- rows ---------------------------------------------------------------- */

/*
 * The sum of an event whose `number` is set, chained to `before`, the sum of
 * the previous event (0: this is the first). See docs/store.md for the bytes.
 */
uint64_t event_sum(uint64_t before, const struct store_event *event);

/*
 * Removed events, from `first` to `last`, and the sum of the last one, from
 * which the chain continues. Two gaps are never adjacent. A gap is stored as a
 * setting, whose name sorts as `first` does.
 */
struct event_gap {
    uint64_t first;
    uint64_t last;
    uint64_t sum;
};

/* Prefix of the names of all gaps. */
#define EVENT_GAP_PREFIX "events/"

/* A gap as a setting; both strings are NUL-terminated. */
struct event_gap_texts {
    char name[32];
    char value[80];
};
struct event_gap_texts event_gap_write(const struct event_gap *gap);

/* Parse a setting; false: it is not a gap. */
bool event_gap_read(const char *name, const char *value, struct event_gap *out);

#endif /* STORE_EVENT_H */
