/* SPDX-License-Identifier: MIT */
#include "core/provider.h"

#include "base/duration.h"
#include "base/invariant.h"

enum provider_shut provider_state(const struct provider *provider,
                                  int64_t now_ns)
{
    if (provider->stopped) {
        return PROVIDER_STOPPED;
    }
    if (provider->shut_until_ns > now_ns) {
        return provider->usage ? PROVIDER_USAGE : PROVIDER_BACKOFF;
    }
    if (provider->refused > 0 && !provider->accepted) {
        return PROVIDER_BACKOFF;
    }
    if (provider->steps >= PROVIDER_PATIENCE && provider->pending > 0) {
        return PROVIDER_BACKOFF; /* one is tried */
    }
    if (provider->circuit_open &&
        (provider->probe_token != 0 || provider->probe_at_ns > now_ns)) {
        return PROVIDER_CIRCUIT;
    }
    return PROVIDER_OPEN;
}

int64_t provider_wake_ns(const struct provider *provider, int64_t now_ns)
{
    if (provider->stopped) {
        return PROVIDER_NEVER;
    }
    if (provider->shut_until_ns > now_ns) {
        return provider->shut_until_ns;
    }
    if (provider->circuit_open && provider->probe_token == 0 &&
        provider->probe_at_ns > now_ns) {
        return provider->probe_at_ns;
    }
    return PROVIDER_NEVER;
}

void provider_sent(struct provider *provider, uint64_t token)
{
    INVARIANT(token != 0);
    INVARIANT(provider->pending <= provider->sent);
    provider->pending++;
    provider->sent++;
    if (provider->circuit_open) {
        INVARIANT(provider->probe_token == 0);
        provider->probe_token = token;
    }
}

bool provider_is_trusted(const struct provider *provider)
{
    return provider->steps == 0 && provider->steps_kept == 0 &&
           (provider->refused == 0 || provider->accepted);
}

/* Shut for one more step of back-off than before the last acceptance, which
 * has not lasted. */
static void step(struct provider *provider, int64_t now_ns)
{
    if (provider->steps_kept > provider->steps) {
        provider->steps = provider->steps_kept;
    }
    provider->steps_kept = 0;
    int64_t until_ns = now_ns + duration_doubled(provider->spec.backoff_ns,
                                                 provider->steps,
                                                 provider->spec.backoff_ns_max);
    provider->steps++;
    INVARIANT(until_ns > now_ns);
    provider->notice = provider->notice || provider->steps == PROVIDER_PATIENCE;
    if (until_ns > provider->shut_until_ns) {
        provider->shut_until_ns = until_ns;
        provider->usage = false;
    }
}

/* Shut until the time that the provider named, if it named one. */
static void
shut_until(struct provider *provider, int64_t now_ns, int64_t retry_at_ns)
{
    bool waits = provider->usage && provider->shut_until_ns > now_ns;
    if (!waits && retry_at_ns != PROVIDER_NEVER &&
        retry_at_ns > provider->shut_until_ns) {
        provider->shut_until_ns = retry_at_ns;
        provider->usage = true;
    }
}

/* One answer of the batch is in; with the last one, the batch is judged. */
static void answered(struct provider *provider, int64_t now_ns)
{
    INVARIANT(provider->pending > 0);
    INVARIANT(provider->pending <= provider->sent);
    INVARIANT(provider->refused <= provider->sent);
    if (--provider->pending > 0) {
        return;
    }
    if (provider->refused == provider->sent) {
        step(provider, now_ns);
    }
    provider->sent = 0;
    provider->refused = 0;
    provider->accepted = false;
}

void provider_accepted(struct provider *provider, int64_t now_ns)
{
    provider->accepted = true;
    if (provider->steps >= PROVIDER_PATIENCE) {
        int64_t wait_ns = provider->spec.backoff_ns_max;
        provider->confirming = true;
        provider->shut_until_ns =
            now_ns +
            (wait_ns < PROVIDER_CONFIRM_NS ? wait_ns : PROVIDER_CONFIRM_NS);
        provider->usage = false;
    }
    if (provider->steps > provider->steps_kept) {
        provider->steps_kept = provider->steps;
    }
    provider->steps = 0;
    answered(provider, now_ns);
    INVARIANT(provider->steps == 0);
}

void provider_refused(struct provider *provider,
                      uint64_t token,
                      int64_t now_ns,
                      int64_t retry_at_ns)
{
    INVARIANT(provider->refused < provider->sent);
    provider->refused++;
    provider_ended(provider, token, now_ns);
    shut_until(provider, now_ns, retry_at_ns);
    answered(provider, now_ns);
}

void provider_limited(struct provider *provider,
                      uint64_t token,
                      int64_t now_ns,
                      int64_t retry_at_ns)
{
    bool was_open = provider->confirming || provider->shut_until_ns <= now_ns;
    provider->confirming = false;
    provider_ended(provider, token, now_ns);
    shut_until(provider, now_ns, retry_at_ns);
    if (was_open) {
        step(provider, now_ns);
    }
}

void provider_dropped(struct provider *provider, int64_t now_ns)
{
    answered(provider, now_ns);
}

/* The next probe comes after the next, longer interval. */
static void wait_for_probe(struct provider *provider, int64_t now_ns)
{
    INVARIANT(provider->circuit_open);
    provider->probe_token = 0;
    provider->probe_at_ns =
        now_ns + duration_doubled(provider->spec.probe_ns,
                                  provider->probe_steps,
                                  provider->spec.probe_ns_max);
    INVARIANT(provider->probe_at_ns > now_ns);
    provider->probe_steps++;
}

/* It takes sessions after all. */
static void confirm(struct provider *provider)
{
    provider->steps_kept = 0;
    if (provider->confirming) {
        provider->confirming = false;
        provider->shut_until_ns = INT64_MIN;
    }
}

void provider_failed(struct provider *provider, uint64_t token, int64_t now_ns)
{
    confirm(provider);
    if (provider->spec.circuit_failures == 0) {
        return;
    }
    provider->failures++;
    if (provider->circuit_open) {
        if (provider->probe_token == token) {
            wait_for_probe(provider, now_ns);
        }
        return;
    }
    if (provider->failures >= provider->spec.circuit_failures) {
        provider->circuit_open = true;
        provider->notice = true;
        provider->probe_steps = 0;
        wait_for_probe(provider, now_ns);
    }
}

void provider_succeeded(struct provider *provider)
{
    confirm(provider);
    provider->failures = 0;
    provider->circuit_open = false;
    provider->probe_token = 0;
    provider->probe_steps = 0;
}

void provider_ended(struct provider *provider, uint64_t token, int64_t now_ns)
{
    if (provider->circuit_open && provider->probe_token == token) {
        provider->probe_token = 0;
        provider->probe_at_ns = now_ns;
    }
}

void provider_open(struct provider *provider, int64_t now_ns)
{
    if (provider->usage && provider->shut_until_ns > now_ns) {
        provider->shut_until_ns = now_ns;
    }
}

void provider_stop(struct provider *provider)
{
    provider->stopped = true;
}

void provider_resume(struct provider *provider, int64_t now_ns)
{
    provider->stopped = false;
    provider->usage = false;
    provider->confirming = false;
    provider->steps = 0;
    provider->steps_kept = 0;
    provider->failures = 0;
    provider->circuit_open = false;
    provider->probe_token = 0;
    provider->probe_steps = 0;
    if (provider->shut_until_ns > now_ns) {
        provider->shut_until_ns = now_ns;
    }
    INVARIANT(provider->shut_until_ns <= now_ns);
}
