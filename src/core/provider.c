/* SPDX-License-Identifier: MIT */
#include "core/provider.h"

#include "base/duration.h"
#include "base/invariant.h"

enum provider_shut provider_state(const struct provider *provider,
                                  int64_t now_ns)
{
    if (provider->kept.stopped) {
        return PROVIDER_STOPPED;
    }
    if (provider->kept.shut_until_ns > now_ns) {
        return provider->kept.usage ? PROVIDER_USAGE : PROVIDER_BACKOFF;
    }
    if (provider->kept.refused > 0 && !provider->kept.accepted) {
        return PROVIDER_BACKOFF;
    }
    if (provider->kept.steps >= PROVIDER_PATIENCE && provider->pending > 0) {
        return PROVIDER_BACKOFF; /* one start at a time */
    }
    if (provider->kept.circuit_open && (provider->kept.probe_token != 0 ||
                                        provider->kept.probe_at_ns > now_ns)) {
        return PROVIDER_CIRCUIT;
    }
    return PROVIDER_OPEN;
}

int64_t provider_wake_ns(const struct provider *provider, int64_t now_ns)
{
    if (provider->kept.stopped) {
        return PROVIDER_NEVER;
    }
    if (provider->kept.shut_until_ns > now_ns) {
        return provider->kept.shut_until_ns;
    }
    if (provider->kept.circuit_open && provider->kept.probe_token == 0 &&
        provider->kept.probe_at_ns > now_ns) {
        return provider->kept.probe_at_ns;
    }
    return PROVIDER_NEVER;
}

void provider_sent(struct provider *provider, uint64_t token)
{
    INVARIANT(token != 0);
    INVARIANT(provider->pending <= provider->kept.sent);
    provider->pending++;
    provider->kept.sent++;
    if (provider->kept.circuit_open) {
        INVARIANT(provider->kept.probe_token == 0);
        provider->kept.probe_token = token;
    }
}

bool provider_is_trusted(const struct provider *provider)
{
    return provider->kept.steps == 0 && provider->kept.steps_kept == 0 &&
           (provider->kept.refused == 0 || provider->kept.accepted);
}

/* Back off one step more than before the last acceptance, which did not
 * last. */
static void step(struct provider *provider, int64_t now_ns)
{
    if (provider->kept.steps_kept > provider->kept.steps) {
        provider->kept.steps = provider->kept.steps_kept;
    }
    provider->kept.steps_kept = 0;
    int64_t until_ns = now_ns + duration_doubled(provider->spec.backoff_ns,
                                                 provider->kept.steps,
                                                 provider->spec.backoff_ns_max);
    provider->kept.steps++;
    INVARIANT(until_ns > now_ns);
    provider->notice =
        provider->notice || provider->kept.steps == PROVIDER_PATIENCE;
    if (until_ns > provider->kept.shut_until_ns) {
        provider->kept.shut_until_ns = until_ns;
        provider->kept.usage = false;
    }
}

/* Shut the provider until the time that it named, if any. */
static void
shut_until(struct provider *provider, int64_t now_ns, int64_t retry_at_ns)
{
    bool waits = provider->kept.usage && provider->kept.shut_until_ns > now_ns;
    if (!waits && retry_at_ns != PROVIDER_NEVER &&
        retry_at_ns > provider->kept.shut_until_ns) {
        provider->kept.shut_until_ns = retry_at_ns;
        provider->kept.usage = true;
    }
}

/* Count one answer of the batch; the last answer decides about a back-off. */
static void answered(struct provider *provider, int64_t now_ns)
{
    INVARIANT(provider->pending > 0);
    INVARIANT(provider->pending <= provider->kept.sent);
    INVARIANT(provider->kept.refused <= provider->kept.sent);
    if (--provider->pending > 0) {
        return;
    }
    if (provider->kept.refused == provider->kept.sent) {
        step(provider, now_ns);
    }
    provider->kept.sent = 0;
    provider->kept.refused = 0;
    provider->kept.accepted = false;
}

void provider_accepted(struct provider *provider, int64_t now_ns)
{
    provider->kept.accepted = true;
    if (provider->kept.steps >= PROVIDER_PATIENCE) {
        int64_t wait_ns = provider->spec.backoff_ns_max;
        provider->kept.confirming = true;
        provider->kept.shut_until_ns =
            now_ns +
            (wait_ns < PROVIDER_CONFIRM_NS ? wait_ns : PROVIDER_CONFIRM_NS);
        provider->kept.usage = false;
    }
    if (provider->kept.steps > provider->kept.steps_kept) {
        provider->kept.steps_kept = provider->kept.steps;
    }
    provider->kept.steps = 0;
    answered(provider, now_ns);
    INVARIANT(provider->kept.steps == 0);
}

void provider_refused(struct provider *provider,
                      uint64_t token,
                      int64_t now_ns,
                      int64_t retry_at_ns)
{
    INVARIANT(provider->kept.refused < provider->kept.sent);
    provider->kept.refused++;
    provider_ended(provider, token, now_ns);
    shut_until(provider, now_ns, retry_at_ns);
    answered(provider, now_ns);
}

void provider_limited(struct provider *provider,
                      uint64_t token,
                      int64_t now_ns,
                      int64_t retry_at_ns)
{
    bool was_open =
        provider->kept.confirming || provider->kept.shut_until_ns <= now_ns;
    provider->kept.confirming = false;
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

/* Schedule the next probe after the next, longer interval. */
static void wait_for_probe(struct provider *provider, int64_t now_ns)
{
    INVARIANT(provider->kept.circuit_open);
    provider->kept.probe_token = 0;
    provider->kept.probe_at_ns =
        now_ns + duration_doubled(provider->spec.probe_ns,
                                  provider->kept.probe_steps,
                                  provider->spec.probe_ns_max);
    INVARIANT(provider->kept.probe_at_ns > now_ns);
    provider->kept.probe_steps++;
}

/* The provider accepts sessions again. */
static void confirm(struct provider *provider)
{
    provider->kept.steps_kept = 0;
    if (provider->kept.confirming) {
        provider->kept.confirming = false;
        provider->kept.shut_until_ns = INT64_MIN;
    }
}

void provider_failed(struct provider *provider, uint64_t token, int64_t now_ns)
{
    confirm(provider);
    if (provider->spec.circuit_failures == 0) {
        return;
    }
    provider->kept.failures++;
    if (provider->kept.circuit_open) {
        if (provider->kept.probe_token == token) {
            wait_for_probe(provider, now_ns);
        }
        return;
    }
    if (provider->kept.failures >= provider->spec.circuit_failures) {
        provider->kept.circuit_open = true;
        provider->notice = true;
        provider->kept.probe_steps = 0;
        wait_for_probe(provider, now_ns);
    }
}

void provider_succeeded(struct provider *provider)
{
    confirm(provider);
    provider->kept.failures = 0;
    provider->kept.circuit_open = false;
    provider->kept.probe_token = 0;
    provider->kept.probe_steps = 0;
}

void provider_ended(struct provider *provider, uint64_t token, int64_t now_ns)
{
    if (provider->kept.circuit_open && provider->kept.probe_token == token) {
        provider->kept.probe_token = 0;
        provider->kept.probe_at_ns = now_ns;
    }
}

void provider_open(struct provider *provider, int64_t now_ns)
{
    if (provider->kept.usage && provider->kept.shut_until_ns > now_ns) {
        provider->kept.shut_until_ns = now_ns;
    }
}

void provider_stop(struct provider *provider)
{
    provider->kept.stopped = true;
}

void provider_resume(struct provider *provider, int64_t now_ns)
{
    provider->kept.stopped = false;
    provider->kept.usage = false;
    provider->kept.confirming = false;
    provider->kept.steps = 0;
    provider->kept.steps_kept = 0;
    provider->kept.failures = 0;
    provider->kept.circuit_open = false;
    provider->kept.probe_token = 0;
    provider->kept.probe_steps = 0;
    if (provider->kept.shut_until_ns > now_ns) {
        provider->kept.shut_until_ns = now_ns;
    }
    INVARIANT(provider->kept.shut_until_ns <= now_ns);
}
