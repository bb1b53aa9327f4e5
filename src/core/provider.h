/* SPDX-License-Identifier: MIT */
/*
 * provider: when sessions may be sent to one provider.
 *
 * Three reasons keep a provider shut:
 * - Back-off. The starts of one pass are a batch. When all answers are there
 *   and every start was refused, the provider backs off one step (doubling,
 *   up to a ceiling), however many tasks the batch had. An acceptance that
 *   lasts resets it: one whose session ends other than by a refusal. Until then
 *   the steps taken before are kept, and the next refusal goes on from them. A
 *   refusal that names a time shuts the provider until then. While
 *   answers are missing and one was a refusal, nothing more is sent. A session
 *   that was accepted and then says "try later" counts as a refusal after
 *   all, one step per time it was open. After
 *   PROVIDER_PATIENCE steps in a row someone is told, and from then on one
 *   start at a time is tried; when that is accepted, the others wait for a
 *   while, or for its good end. While a time that the provider has named is
 *   waited for, another one that is named does not change it.
 * - Circuit. After some failures in a row it opens: then one start at a time
 *   is let through as a probe, at growing intervals, until a session ends
 *   well.
 * - Stop. A session has said that the provider is of no use until a person
 *   acts: its key is bad, or the account is empty. Nothing is sent until an
 *   operator says so.
 *
 * Pure: time comes with each call. A plain value, owned by the scheduler,
 * which asks provider_is_open() after each call and sets the gate.
 */
#ifndef CORE_PROVIDER_H
#define CORE_PROVIDER_H

#include "base/duration.h"

#include <stdbool.h>
#include <stdint.h>

/* "No time": nothing is waited for. */
#define PROVIDER_NEVER INT64_MAX

/* Steps of back-off in a row after which starts are only tried. */
enum { PROVIDER_PATIENCE = 6 };

/* How long one that was accepted then must run before others follow; not
 * longer than the longest back-off. */
#define PROVIDER_CONFIRM_NS (60 * SECOND_NS)

struct provider_spec {
    int64_t backoff_ns; /* first step, > 0 */
    int64_t backoff_ns_max;
    uint32_t circuit_failures; /* in a row; 0: no circuit */
    int64_t probe_ns;          /* first interval, > 0 */
    int64_t probe_ns_max;
};

enum provider_shut {
    PROVIDER_OPEN,
    PROVIDER_BACKOFF, /* refused: until a time, or until answers are in */
    PROVIDER_USAGE,   /* refused with a time given by the provider */
    PROVIDER_CIRCUIT, /* failures in a row: until the next probe, or its end */
    PROVIDER_STOPPED, /* until an operator resumes it */
};

struct provider {
    struct provider_spec spec;
    uint32_t pool;       /* pool of its gate */
    uint32_t pending;    /* starts of the batch not answered yet */
    uint32_t refused;    /* of the batch */
    uint32_t sent;       /* of the batch */
    bool accepted;       /* one of the batch was accepted */
    uint32_t steps;      /* of back-off taken in a row */
    uint32_t steps_kept; /* steps before an acceptance that must still last */
    bool confirming;     /* shut_until_ns is for others to follow that one */
    int64_t shut_until_ns;
    bool usage;        /* shut_until_ns came from the provider */
    uint32_t failures; /* in a row */
    bool circuit_open;
    bool notice;          /* someone is to be told that it cannot be used */
    uint64_t probe_token; /* of the probe under way, or 0 */
    uint32_t probe_steps;
    int64_t probe_at_ns;
    bool stopped;
};

/* Whether nothing has been refused since a session ended otherwise: then a task
 * that is refused once more is to blame, not the provider. */
bool provider_is_trusted(const struct provider *provider);

/* Whether a start may be sent now, and if not, why. */
enum provider_shut provider_state(const struct provider *provider,
                                  int64_t now_ns);

/* When the state may change by time alone; PROVIDER_NEVER if it cannot. */
int64_t provider_wake_ns(const struct provider *provider, int64_t now_ns);

/* A start was sent; `token` names its session and is not 0. */
void provider_sent(struct provider *provider, uint64_t token);

/* A start was accepted: it runs, or ran. */
void provider_accepted(struct provider *provider, int64_t now_ns);

/*
 * A start was refused; `retry_at_ns` is the time the provider named, or
 * PROVIDER_NEVER.
 */
void provider_refused(struct provider *provider,
                      uint64_t token,
                      int64_t now_ns,
                      int64_t retry_at_ns);

/* A session that had been accepted was refused after all. */
void provider_limited(struct provider *provider,
                      uint64_t token,
                      int64_t now_ns,
                      int64_t retry_at_ns);

/* A start came to nothing without being refused (failed, or was withdrawn). */
void provider_dropped(struct provider *provider, int64_t now_ns);

/* A session ended badly. */
void provider_failed(struct provider *provider, uint64_t token, int64_t now_ns);

/* A session ended well. */
void provider_succeeded(struct provider *provider);

/* Someone knows better than the provider: forget the time that it has named. */
void provider_open(struct provider *provider, int64_t now_ns);

/* A session has found that it cannot be used before a person acts. */
void provider_stop(struct provider *provider);

/* A person has acted: forget all that kept it shut. */
void provider_resume(struct provider *provider, int64_t now_ns);

/* A session ended neither well nor badly (cancelled): a probe may follow. */
void provider_ended(struct provider *provider, uint64_t token, int64_t now_ns);

#endif /* CORE_PROVIDER_H */
