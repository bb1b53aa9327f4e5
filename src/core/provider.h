/* SPDX-License-Identifier: MIT */
/*
 * provider: when sessions may be sent to a provider.
 *
 * A provider is shut for one of three reasons:
 * - Back-off. The starts of one pass are a batch. When all starts of a batch
 *   were refused, the provider backs off one step (doubling, up to a ceiling),
 *   however many tasks the batch had. While answers are missing and one was a
 *   refusal, nothing more is sent. A session that was accepted and then exits
 *   with "try later" counts as a refusal, once per time the provider was open.
 *   An accepted session resets the steps when it finishes other than by a
 *   refusal; until then the next refusal continues from the steps before. A
 *   refusal that names a time shuts the provider until that time, and later
 *   refusals do not change it. After PROVIDER_PATIENCE steps in a row the
 *   scheduler notifies operators and tries one start at a time; once one is
 *   accepted, the others wait for a while, or until it succeeds.
 * - Circuit. After some failures in a row the circuit opens: one start at a
 *   time is sent as a probe, at growing intervals, until a session succeeds.
 * - Stop. A session found that an operator must act: the key is invalid, or the
 *   account is empty. Nothing is sent until an operator resumes the provider.
 *
 * Pure: time comes with each call. A plain value, owned by the scheduler, which
 * calls provider_state() after each change and opens or closes the pool.
 */
#ifndef CORE_PROVIDER_H
#define CORE_PROVIDER_H

#include "base/duration.h"

#include <stdbool.h>
#include <stdint.h>

/* "No time": nothing to wait for. */
#define PROVIDER_NEVER INT64_MAX

/* Back-off steps in a row after which one start at a time is tried. */
enum { PROVIDER_PATIENCE = 6 };

/* How long a start accepted then must run before others follow; at most the
 * longest back-off. */
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
    PROVIDER_CIRCUIT, /* failures in a row: until a probe is due, or exits */
    PROVIDER_STOPPED, /* until an operator resumes it */
};

/*
 * Record of a provider. `sent`, `refused` and `accepted` describe a batch with
 * missing answers; all 0: the answers so far are unknown.
 */
struct sched_provider_record {
    uint32_t sent;
    uint32_t refused;
    bool accepted;       /* one of the batch was accepted */
    uint32_t steps;      /* back-off steps taken in a row */
    uint32_t steps_kept; /* steps before an acceptance that must still last */
    bool confirming;     /* shut_until_ns is for that acceptance to last */
    int64_t shut_until_ns;
    bool usage;        /* shut_until_ns came from the provider */
    uint32_t failures; /* in a row */
    bool circuit_open;
    uint64_t probe_token; /* of the running probe, or 0 */
    uint32_t probe_steps;
    int64_t probe_at_ns;
    bool stopped;
};

struct provider {
    struct provider_spec spec;
    uint32_t pool;    /* closed while it is shut */
    uint32_t pending; /* starts of the batch without an answer */
    bool notice;      /* operators must be notified */
    struct sched_provider_record kept;
};

/* Return whether nothing was refused since a session finished otherwise: then a
 * task that is refused again is to blame, not the provider. */
bool provider_is_trusted(const struct provider *provider);

/* Return whether a start may be sent now, and if not, why. */
enum provider_shut provider_state(const struct provider *provider,
                                  int64_t now_ns);

/* Return when the state may change by time alone, or PROVIDER_NEVER. */
int64_t provider_wake_ns(const struct provider *provider, int64_t now_ns);

/* A start was sent; `token` names its session and is not 0. */
void provider_sent(struct provider *provider, uint64_t token);

/* A start was accepted: it runs, or has run. */
void provider_accepted(struct provider *provider, int64_t now_ns);

/*
 * A start was refused; `retry_at_ns` is the time the provider named, or
 * PROVIDER_NEVER.
 */
void provider_refused(struct provider *provider,
                      uint64_t token,
                      int64_t now_ns,
                      int64_t retry_at_ns);

/* An accepted session was refused after all. */
void provider_limited(struct provider *provider,
                      uint64_t token,
                      int64_t now_ns,
                      int64_t retry_at_ns);

/* A start failed or was withdrawn without being refused. */
void provider_dropped(struct provider *provider, int64_t now_ns);

/* A session failed. */
void provider_failed(struct provider *provider, uint64_t token, int64_t now_ns);

/* A session succeeded. */
void provider_succeeded(struct provider *provider);

/* Forget the time that the provider named, on request of an operator. */
void provider_open(struct provider *provider, int64_t now_ns);

/* A session found that an operator must act. */
void provider_stop(struct provider *provider);

/* An operator acted: clear every reason to be shut. */
void provider_resume(struct provider *provider, int64_t now_ns);

/* A session neither succeeded nor failed (cancelled): a probe may follow. */
void provider_ended(struct provider *provider, uint64_t token, int64_t now_ns);

#endif /* CORE_PROVIDER_H */
