/* SPDX-License-Identifier: MIT */
/*
 * Idle detection.
 *
 * The kernel counts CPU time in ticks of 10 ms, for each process. So a process
 * that uses little appears to use nothing for a while and then a whole tick.
 * The share is taken over the whole silence since the last sign of life, not
 * since the last sample: a tick is 1 % of a second, and more only within a
 * second of the last sign. It can delay the timeout by that much, but not
 * repeatedly, as it could if each sample were judged by itself. A session that
 * computes uses a tick in each 10 ms, which is enough for any timeout.
 *
 * The price: work that begins in the last hundredth of the timeout may go
 * unnoticed, unless a sample finds it running.
 */
#include "exec/idle.h"

/* CPU time is a sign of life from this share of the silence: 1 %. */
enum { SHARE_DIVISOR = 100 };
/* Samples within the timeout, and the shortest interval. */
enum { SAMPLES = 8, PAUSE_NS_MIN = 10000000 };

static int64_t least(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

/* Return at_ns + pause_ns, at most IDLE_NEVER; both must be non-negative. */
static int64_t later(int64_t at_ns, int64_t pause_ns)
{
    return at_ns > IDLE_NEVER - pause_ns ? IDLE_NEVER : at_ns + pause_ns;
}

void idle_init(struct idle *idle,
               int64_t timeout_ns,
               bool ignores_cpu,
               int64_t now_ns)
{
    *idle = (struct idle){
        .timeout_ns = timeout_ns,
        .ignores_cpu = ignores_cpu,
        .sample_at = timeout_ns == IDLE_NEVER
                         ? IDLE_NEVER
                         : later(now_ns, timeout_ns / SAMPLES),
        .last = {.at_ns = now_ns},
    };
}

/* Add CPU time and silence since the previous sample. */
static void count(struct idle *idle, const struct idle_sample *sample)
{
    const struct idle_sample *last = &idle->last;
    if (sample->cpu_ns > last->cpu_ns) {
        idle->used_ns += sample->cpu_ns - last->cpu_ns;
    }
    if (idle->ignores_cpu || !sample->runnable) {
        /* After sample_at, the caller could not run. */
        idle->silent_ns += least(sample->at_ns, idle->sample_at) - last->at_ns;
    }
}

/* Whether the session has given a sign of life. */
static bool is_alive(const struct idle *idle, const struct idle_sample *sample)
{
    const struct idle_sample *last = &idle->last;
    bool works = !idle->ignores_cpu && idle->used_ns > 0 &&
                 idle->used_ns >= (uint64_t)idle->silent_ns / SHARE_DIVISOR;
    return works || sample->log_bytes != last->log_bytes ||
           sample->progress_bytes != last->progress_bytes ||
           sample->progress_ns != last->progress_ns;
}

bool idle_add(struct idle *idle, const struct idle_sample *sample)
{
    count(idle, sample);
    if (is_alive(idle, sample)) {
        idle->silent_ns = 0;
        idle->used_ns = 0;
    }
    idle->last = *sample;
    if (idle->silent_ns >= idle->timeout_ns) {
        return true;
    }
    int64_t pause_ns = idle->timeout_ns / SAMPLES;
    if (pause_ns < PAUSE_NS_MIN) {
        pause_ns = PAUSE_NS_MIN;
    }
    pause_ns = least(pause_ns, idle->timeout_ns - idle->silent_ns);
    idle->sample_at = later(sample->at_ns, pause_ns);
    return false;
}
