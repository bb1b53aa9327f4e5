/* SPDX-License-Identifier: MIT */
#include "core/executor.h"

#include "base/duration.h"
#include "base/invariant.h"

enum executor_shut executor_state(const struct executor *executor,
                                  int64_t now_ns)
{
    if (executor->stopped) {
        return EXECUTOR_STOPPED;
    }
    if (executor->shut_until_ns > now_ns) {
        return executor->usage ? EXECUTOR_USAGE : EXECUTOR_BACKOFF;
    }
    if (executor->refused > 0 && !executor->accepted) {
        return EXECUTOR_BACKOFF;
    }
    if (executor->steps >= EXECUTOR_PATIENCE && executor->pending > 0) {
        return EXECUTOR_BACKOFF; /* one is tried */
    }
    if (executor->circuit_open &&
        (executor->probe_token != 0 || executor->probe_at_ns > now_ns)) {
        return EXECUTOR_CIRCUIT;
    }
    return EXECUTOR_OPEN;
}

int64_t executor_wake_ns(const struct executor *executor, int64_t now_ns)
{
    if (executor->stopped) {
        return EXECUTOR_NEVER;
    }
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

bool executor_is_trusted(const struct executor *executor)
{
    return executor->steps == 0 && executor->steps_kept == 0 &&
           (executor->refused == 0 || executor->accepted);
}

/* Shut for one more step of back-off than before the last acceptance, which
 * has not lasted. */
static void step(struct executor *executor, int64_t now_ns)
{
    if (executor->steps_kept > executor->steps) {
        executor->steps = executor->steps_kept;
    }
    executor->steps_kept = 0;
    int64_t until_ns = now_ns + duration_doubled(executor->spec.backoff_ns,
                                                 executor->steps,
                                                 executor->spec.backoff_ns_max);
    executor->steps++;
    executor->notice = executor->notice || executor->steps == EXECUTOR_PATIENCE;
    if (until_ns > executor->shut_until_ns) {
        executor->shut_until_ns = until_ns;
        executor->usage = false;
    }
}

/* Shut until the time that the provider named, if it named one. */
static void
shut_until(struct executor *executor, int64_t now_ns, int64_t retry_at_ns)
{
    bool waits = executor->usage && executor->shut_until_ns > now_ns;
    if (!waits && retry_at_ns != EXECUTOR_NEVER &&
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

void executor_accepted(struct executor *executor, int64_t now_ns)
{
    executor->accepted = true;
    if (executor->steps >= EXECUTOR_PATIENCE) {
        int64_t wait_ns = executor->spec.backoff_ns_max;
        executor->confirming = true;
        executor->shut_until_ns =
            now_ns +
            (wait_ns < EXECUTOR_CONFIRM_NS ? wait_ns : EXECUTOR_CONFIRM_NS);
        executor->usage = false;
    }
    if (executor->steps > executor->steps_kept) {
        executor->steps_kept = executor->steps;
    }
    executor->steps = 0;
    answered(executor, now_ns);
}

void executor_refused(struct executor *executor,
                      uint64_t token,
                      int64_t now_ns,
                      int64_t retry_at_ns)
{
    executor->refused++;
    executor_ended(executor, token, now_ns);
    shut_until(executor, now_ns, retry_at_ns);
    answered(executor, now_ns);
}

void executor_limited(struct executor *executor,
                      uint64_t token,
                      int64_t now_ns,
                      int64_t retry_at_ns)
{
    bool was_open = executor->confirming || executor->shut_until_ns <= now_ns;
    executor->confirming = false;
    executor_ended(executor, token, now_ns);
    shut_until(executor, now_ns, retry_at_ns);
    if (was_open) {
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

/* It takes sessions after all. */
static void confirm(struct executor *executor)
{
    executor->steps_kept = 0;
    if (executor->confirming) {
        executor->confirming = false;
        executor->shut_until_ns = INT64_MIN;
    }
}

void executor_failed(struct executor *executor, uint64_t token, int64_t now_ns)
{
    confirm(executor);
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
    confirm(executor);
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

void executor_open(struct executor *executor, int64_t now_ns)
{
    if (executor->usage && executor->shut_until_ns > now_ns) {
        executor->shut_until_ns = now_ns;
    }
}

void executor_stop(struct executor *executor)
{
    executor->stopped = true;
}

void executor_resume(struct executor *executor, int64_t now_ns)
{
    executor->stopped = false;
    executor->usage = false;
    executor->confirming = false;
    executor->steps = 0;
    executor->steps_kept = 0;
    executor->failures = 0;
    executor->circuit_open = false;
    executor->probe_token = 0;
    executor->probe_steps = 0;
    if (executor->shut_until_ns > now_ns) {
        executor->shut_until_ns = now_ns;
    }
    INVARIANT(executor->shut_until_ns <= now_ns);
}
