/* SPDX-License-Identifier: MIT */
/*
 * crew: the worker's side of work on several machines.
 *
 * A crew accepts orders from the store's table `work`, has a worker (worker.h)
 * run them, and reports. An order is accepted before anything of it happens:
 * until then the scheduler may give it to another machine. A session whose row
 * is gone is stopped, and nothing is reported about it.
 *
 * The crew does no I/O of its own: crew_say() writes what to tell the store in
 * a turn, and crew_hear() reads the result. A turn may be repeated, whatever
 * became of it. The worker's own process may die at any instruction: the next
 * one, with the same home, finds rows and attempt directories.
 *
 * See docs/machines.md for the protocol, and roster.h for the other side.
 */
#ifndef WORK_CREW_H
#define WORK_CREW_H

#include "base/diag.h"
#include "base/strbuf.h"
#include "work/worker.h"

/* The slots of a worker that takes whatever others have no room for. */
enum { CREW_SLOTS_ANY = 1000000 };

struct crew_options {
    const char *name;
    const char *labels; /* separated by commas; its name is one */
    uint32_t slots;
    const char *home;    /* its directory ... */
    const char *home_id; /* ... and a name for it that no other has */
    const char *host;
    const char *boot_id;
    int64_t proto; /* WIRE_PROTO, or for tests another one */
    const char *instance;
    int64_t (*now_ns)(void *ctx); /* of CLOCK_BOOTTIME */
    /* The sessions of this generation may run until then. */
    void (*lease)(void *ctx,
                  uint64_t generation,
                  int64_t until_ns,
                  int64_t grace_ns);
    /* Something for people to know. */
    void (*say)(void *ctx, const char *text);
    /* The answer to a request of a session. NULL: there will be none. */
    void (*answer)(void *ctx, uint64_t request, const char *json);
    /* Whether the home can take files again. */
    bool (*has_space)(void *ctx);
    /* Whether a path exists; create a directory; read a file of one. */
    bool (*exists)(void *ctx, const char *path);
    bool (*make_dir)(void *ctx, const char *path);
    bool (*read)(void *ctx,
                 const char *dir,
                 const char *name,
                 struct strbuf *out);
    void *ctx;
};

struct crew;

/* Create it; free it with crew_free(). Strings are copied. Sessions go on. */
struct crew *crew_new(const struct crew_options *options);
void crew_free(struct crew *crew);

/* The worker that runs the orders; to be set before the first turn. */
void crew_set_worker(struct crew *crew, struct worker *worker);

/* A report of the worker. */
void crew_reported(struct crew *crew, const struct work_report *report);

/* Give orders that came back to the worker, and ask it again for a report that
 * was not complete. Call it between its calls. */
void crew_tick(struct crew *crew);

/* Accept nothing more, and be over when the last session has ended. */
void crew_drain(struct crew *crew);

/* Stop all sessions, too. */
void crew_stop(struct crew *crew);

/* A request of a session, by its token: the answer comes under `request`. */
void crew_request(struct crew *crew,
                  uint64_t token,
                  uint64_t request,
                  const char *who,
                  const char *json);

/* Find the nonce of a session in flight; NULL: there is none. */
const char *crew_nonce(const struct crew *crew, uint64_t token);

/* How many sessions it has. */
uint32_t crew_count(const struct crew *crew);

/* The generation of its leases; 0: not known yet. */
uint64_t crew_generation(const struct crew *crew);

/* Whether a turn would change something. */
bool crew_has_news(const struct crew *crew);

/* The longest time until the next turn, if nothing wakes it before: a second
 * while something is under way, else longer, for leases of two minutes. */
int64_t crew_pause_ns(const struct crew *crew);

/* Append what to say in a turn, for the function worker_turn(). */
void crew_say(struct crew *crew, struct strbuf *out);

/* The result of a turn that began at `since_ns`; NULL: it has failed.
 * ERR_CONFLICT: another process has this worker's name: leave. */
MUST_USE enum err crew_hear(struct crew *crew,
                            const char *text,
                            int64_t since_ns,
                            struct diag *diag);

/* Whether it has left the store: the process can exit. */
bool crew_is_over(const struct crew *crew);

#endif /* WORK_CREW_H */
