/* SPDX-License-Identifier: MIT */
/*
 * roster: the scheduler's side of work on several machines.
 *
 * Orders become rows of the store's table `work`, which workers accept and
 * report on; the roster chooses a worker for each order, and passes the reports
 * on. It does no I/O: between two turns at the store, roster_say() writes what
 * is to be changed there, and roster_hear() reads what was found. A turn may be
 * repeated, whatever became of it.
 *
 * See docs/machines.md for the protocol, and crew.h for the other side.
 */
#ifndef WORK_ROSTER_H
#define WORK_ROSTER_H

#include "base/diag.h"
#include "base/strbuf.h"
#include "work/order.h"
#include "work/report.h"

/* A worker, as of the last turn. */
struct roster_worker {
    const char *name;
    const char *labels; /* separated by commas; its name is one */
    uint32_t slots;     /* that it offers; in use, if it takes nothing more */
};

/* A request that came through the store. */
struct roster_request {
    uint64_t number;
    const char *who;
    const char *json;
    bool session;   /* of a session: */
    uint64_t token; /* its attempt */
    const char *nonce;
};

struct roster_options {
    uint64_t epoch;
    int64_t (*now_ns)(void *ctx); /* a clock that suspended machines count */
    work_report_fn report;
    /* The workers, or what they offer, have changed. */
    void (*workers)(void *ctx,
                    const struct roster_worker *workers,
                    uint32_t count);
    void (*request)(void *ctx, const struct roster_request *request);
    void *ctx;
};

struct roster;

/* Create an empty one; free it with roster_free(). Work goes on. */
struct roster *roster_new(const struct roster_options *options);
void roster_free(struct roster *roster);

/* As those of worker.h, for sessions. */
void roster_assign(struct roster *roster, const struct work_order *order);
/* Append an order as a batch has it, and take it; nothing: no worker has a free
 * slot, or other orders come first. After roster_written() the batch is in the
 * store; until then nothing is said or reported of it. */
void roster_offer(struct roster *roster,
                  const struct work_order *order,
                  struct strbuf *out);
void roster_written(struct roster *roster);

void roster_ask(struct roster *roster,
                const struct work_id *id,
                bool begun,
                enum work_want want);
void roster_want(struct roster *roster, uint64_t token, enum work_want want);
void roster_tell(struct roster *roster, uint64_t token, const char *text);

/* Answer a request. */
void roster_answer(struct roster *roster, uint64_t number, const char *json);

/* Whether a turn would change something. */
bool roster_has_news(const struct roster *roster);

/* Whether that is only answers to clients, while a worker is about to wake this
 * process anyway, because it accepts an order. */
bool roster_may_wait(const struct roster *roster);

/* Append what to say in a turn, for the function scheduler_turn(). */
void roster_say(struct roster *roster, struct strbuf *out);

/* The same for scheduler_take(), which only takes requests. */
void roster_say_brief(const struct roster *roster, struct strbuf *out);

/* The turn has failed, if `text` is NULL: it is repeated. Else `text` is its
 * result. ERR_CONFLICT: another process is the scheduler. */
MUST_USE enum err
roster_hear(struct roster *roster, const char *text, struct diag *diag);

#endif /* WORK_ROSTER_H */
