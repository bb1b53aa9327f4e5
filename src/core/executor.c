/* SPDX-License-Identifier: MIT */
#include "core/executor.h"

#include "base/duration.h"
#include "base/invariant.h"

enum executor_shut executor_state(const struct executor *executor,
                                  int64_t now_ns)
{
    if (executor->shut_until_ns > now_ns) {
        return executor->usage ? EXECUTOR_USAGE : EXECUTOR_BACKOFF;
    }
    if (executor->refused > 0 && !executor->accepted) {
        return EXECUTOR_BACKOFF;
    }
    if (executor->circuit_open &&
        (executor->probe_token != 0 || executor->probe_at_ns > now_ns)) {
        return EXECUTOR_CIRCUIT;
    }
    return EXECUTOR_OPEN;
}

int64_t executor_wake_ns(const struct executor *executor, int64_t now_ns)
{
    if (executor->shut_until_ns > now_ns) {
        return executor->shut_until_ns;
    }
    if (executor->circuit_open && executor->probe_token == 0 &&
        executor->probe_at_ns > now_ns) {
        return executor->probe_at_ns;
    }
    return EXECUTOR_NEVER;
}

void executor_sent(struct executor *executor, uint64_t token)
{
    executor->pending++;
    executor->sent++;
    if (executor->circuit_open) {
        INVARIANT(executor->probe_token == 0);
        executor->probe_token = token;
    }
}

/* Shut for one more step of back-off. */
static void step(struct executor *executor, int64_t now_ns)
{
    int64_t until_ns = now_ns + duration_doubled(executor->spec.backoff_ns,
                                                 executor->steps,
                                                 executor->spec.backoff_ns_max);
    executor->steps++;
    if (until_ns > executor->shut_until_ns) {
        executor->shut_until_ns = until_ns;
        executor->usage = false;
    }
}

/* Shut until the time that the provider named, if it named one. */
static void shut_until(struct executor *executor, int64_t retry_at_ns)
{
    if (retry_at_ns != EXECUTOR_NEVER &&
        retry_at_ns > executor->shut_until_ns) {
        executor->shut_until_ns = retry_at_ns;
        executor->usage = true;
    }
}

/* One answer of the batch is in; with the last one, the batch is judged. */
static void answered(struct executor *executor, int64_t now_ns)
{
    INVARIANT(executor->pending > 0);
    if (--executor->pending > 0) {
        return;
    }
    if (executor->refused == executor->sent) {
        step(executor, now_ns);
    }
    executor->sent = 0;
    executor->refused = 0;
    executor->accepted = false;
}

void executor_accepted(struct executor *executor)
{
    executor->accepted = true;
    if (executor->steps > executor->steps_kept) {
        executor->steps_kept = executor->steps;
    }
    executor->steps = 0;
    answered(executor, 0);
}

void executor_refused(struct executor *executor,
                      uint64_t token,
                      int64_t now_ns,
                      int64_t retry_at_ns)
{
    executor->refused++;
    executor_ended(executor, token, now_ns);
    shut_until(executor, retry_at_ns);
    answered(executor, now_ns);
}

void executor_limited(struct executor *executor,
                      uint64_t token,
                      int64_t now_ns,
                      int64_t retry_at_ns)
{
    executor_ended(executor, token, now_ns);
    shut_until(executor, retry_at_ns);
    if (executor->shut_until_ns <= now_ns) {
        if (executor->steps_kept > executor->steps) {
            executor->steps = executor->steps_kept;
        }
        executor->steps_kept = 0;
        step(executor, now_ns);
    }
}

void executor_dropped(struct executor *executor, int64_t now_ns)
{
    answered(executor, now_ns);
}

/* The next probe comes after the next, longer interval. */
static void wait_for_probe(struct executor *executor, int64_t now_ns)
{
    executor->probe_token = 0;
    executor->probe_at_ns =
        now_ns + duration_doubled(executor->spec.probe_ns,
                                  executor->probe_steps,
                                  executor->spec.probe_ns_max);
    executor->probe_steps++;
}

void executor_failed(struct executor *executor, uint64_t token, int64_t now_ns)
{
    executor->steps_kept = 0;
    if (executor->spec.circuit_failures == 0) {
        return;
    }
    executor->failures++;
    if (executor->circuit_open) {
        if (executor->probe_token == token) {
            wait_for_probe(executor, now_ns);
        }
        return;
    }
    if (executor->failures >= executor->spec.circuit_failures) {
        executor->circuit_open = true;
        executor->notice = true;
        executor->probe_steps = 0;
        wait_for_probe(executor, now_ns);
    }
}

void executor_succeeded(struct executor *executor)
{
    executor->steps_kept = 0;
    executor->failures = 0;
    executor->circuit_open = false;
    executor->probe_token = 0;
    executor->probe_steps = 0;
}

void executor_ended(struct executor *executor, uint64_t token, int64_t now_ns)
{
    if (executor->circuit_open && executor->probe_token == token) {
        executor->probe_token = 0;
        executor->probe_at_ns = now_ns;
    }
}
