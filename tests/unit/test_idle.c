/* SPDX-License-Identifier: MIT */
/*
 * When a session is idle, judged by samples that no process has given. Times
 * are in milliseconds here.
 */
#include "base/macros.h"
#include "exec/idle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MS INT64_C(1000000)
#define SECOND INT64_C(1000)
#define MINUTE (60 * SECOND)

/* CPU time is counted in steps of this. */
#define TICK INT64_C(10)

/* A session, as it would be without a sampler. */
struct session {
    int64_t used_us;     /* CPU time per second */
    int64_t until_ms;    /* it ceases to use CPU time then; 0: never */
    int64_t from_ms;     /* it begins to use it then */
    int64_t print_ms;    /* it prints every so often; 0: never */
    int64_t touch_ms;    /* the same for its file `progress` */
    int64_t late_ms;     /* how late each sample is */
    bool runnable;       /* at each sample */
    bool runnable_twice; /* at the third sample and the sixth */
    bool ignores_cpu;
};

/* CPU time that it has used, in whole ticks. */
static int64_t cpu_ms(const struct session *session, int64_t now_ms)
{
    int64_t end_ms = session->until_ms != 0 && session->until_ms < now_ms
                         ? session->until_ms
                         : now_ms;
    int64_t ran_ms = end_ms > session->from_ms ? end_ms - session->from_ms : 0;
    return ran_ms * session->used_us / 1000000 / TICK * TICK;
}

/* When it becomes idle, 0: not within twenty times the timeout. */
static int64_t idle_at(const struct session *session, int64_t timeout_ms)
{
    struct idle idle;
    idle_init(&idle, timeout_ms * MS, session->ignores_cpu, 0);
    for (int n = 1; idle.sample_at < 20 * timeout_ms * MS; n++) {
        int64_t now_ms = idle.sample_at / MS + session->late_ms;
        struct idle_sample sample = {
            .at_ns = idle.sample_at + session->late_ms * MS,
            .cpu_ns = (uint64_t)(cpu_ms(session, now_ms) * MS),
            .runnable = session->runnable ||
                        (session->runnable_twice && (n == 3 || n == 6)),
        };
        if (session->print_ms > 0) {
            sample.log_bytes = (uint64_t)(now_ms / session->print_ms);
        }
        if (session->touch_ms > 0) {
            sample.progress_ns = now_ms / session->touch_ms;
        }
        if (idle_add(&idle, &sample)) {
            return now_ms;
        }
    }
    return 0;
}

/* Whether it becomes idle after the timeout, and an eighth more at most. */
static bool is_on_time(const struct session *session, int64_t timeout_ms)
{
    int64_t at_ms = idle_at(session, timeout_ms);
    return at_ms >= timeout_ms && at_ms <= timeout_ms + timeout_ms / 8;
}

static const int64_t timeouts_ms[] =
    {80, 500, 2 * SECOND, 10 * SECOND, MINUTE, 20 * MINUTE};

static void silence_is_idle_after_the_timeout(void **state)
{
    (void)state;
    const struct session silent = {0};
    for (size_t ix = 0; ix < ARRAY_COUNT(timeouts_ms); ix++) {
        assert_true(is_on_time(&silent, timeouts_ms[ix]));
    }
}

static void output_and_progress_are_signs_of_life(void **state)
{
    (void)state;
    for (size_t ix = 0; ix < ARRAY_COUNT(timeouts_ms); ix++) {
        int64_t often_ms = timeouts_ms[ix] / 2;
        const struct session sessions[] = {
            {.print_ms = often_ms},
            {.touch_ms = often_ms},
            {.print_ms = often_ms, .ignores_cpu = true},
            {.touch_ms = often_ms, .ignores_cpu = true},
        };
        for (size_t n = 0; n < ARRAY_COUNT(sessions); n++) {
            assert_int_equal(idle_at(&sessions[n], timeouts_ms[ix]), 0);
        }
    }
}

static void one_that_computes_is_not_idle(void **state)
{
    (void)state;
    /* All of a CPU, a tenth of it, a fiftieth, and many CPUs. */
    static const int64_t used_us[] = {1000000, 100000, 20000, 64000000};
    for (size_t ix = 0; ix < ARRAY_COUNT(timeouts_ms); ix++) {
        for (size_t n = 0; n < ARRAY_COUNT(used_us); n++) {
            const struct session session = {.used_us = used_us[n]};
            if (used_us[n] * timeouts_ms[ix] / 1000000 >= 2 * TICK) {
                assert_int_equal(idle_at(&session, timeouts_ms[ix]), 0);
            }
        }
    }
}

/* From a timer's tick to a shell that runs sleep(1) each second on a slow
 * machine. A tick of /proc may come at the worst time, so the end may be put
 * off by a second. */
static void one_that_wakes_each_second_is_idle(void **state)
{
    (void)state;
    static const int64_t used_us[] = {20, 100, 1000, 3000, 5000};
    for (size_t ix = 0; ix < ARRAY_COUNT(timeouts_ms); ix++) {
        for (size_t n = 0; n < ARRAY_COUNT(used_us); n++) {
            const struct session session = {.used_us = used_us[n]};
            int64_t timeout_ms = timeouts_ms[ix];
            int64_t at_ms = idle_at(&session, timeout_ms);
            assert_true(at_ms >= timeout_ms);
            assert_true(at_ms <= timeout_ms + timeout_ms / 8 + 2 * SECOND);
        }
    }
}

static void work_ends_and_silence_begins(void **state)
{
    (void)state;
    const struct session session = {
        .used_us = 1000000,
        .until_ms = 3 * MINUTE,
    };
    int64_t at_ms = idle_at(&session, MINUTE);
    assert_true(at_ms >= 4 * MINUTE);
    assert_true(at_ms <= 4 * MINUTE + MINUTE / 8);
}

static void work_that_begins_late_is_noticed(void **state)
{
    (void)state;
    const struct session session = {
        .used_us = 1000000,
        .from_ms = MINUTE - SECOND,
    };
    assert_int_equal(idle_at(&session, MINUTE), 0);
}

static void one_that_waits_for_a_cpu_is_not_idle(void **state)
{
    (void)state;
    const struct session starved = {.runnable = true};
    const struct session fed = {.runnable = true, .used_us = 100};
    for (size_t ix = 0; ix < ARRAY_COUNT(timeouts_ms); ix++) {
        assert_int_equal(idle_at(&starved, timeouts_ms[ix]), 0);
        assert_int_equal(idle_at(&fed, timeouts_ms[ix]), 0);
    }
}

/* That it woke up just before a sample, twice, is not life: these two eighths
 * do not count, and that is all. */
static void being_seen_awake_puts_the_end_off(void **state)
{
    (void)state;
    const struct session session = {.runnable_twice = true, .used_us = 100};
    int64_t at_ms = idle_at(&session, MINUTE);
    assert_true(at_ms >= MINUTE + MINUTE / 4);
    assert_true(at_ms <= MINUTE + MINUTE / 4 + MINUTE / 8);
}

static void time_without_samples_is_not_silence(void **state)
{
    (void)state;
    const struct session session = {.late_ms = 5 * MINUTE};
    int64_t at_ms = idle_at(&session, 10 * MINUTE);
    assert_true(at_ms >= 10 * MINUTE + 40 * MINUTE);
}

static void without_cpu_time_a_busy_session_is_idle(void **state)
{
    (void)state;
    const struct session session = {
        .used_us = 1000000,
        .runnable = true,
        .ignores_cpu = true,
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(timeouts_ms); ix++) {
        assert_true(is_on_time(&session, timeouts_ms[ix]));
    }
}

/* A process has gone, and its CPU time with it. What another one uses counts
 * all the same; that time was lost does not. */
static void lost_cpu_time_does_not_matter(void **state)
{
    (void)state;
    struct idle idle;
    idle_init(&idle, 80 * SECOND * MS, false, 0);
    struct idle_sample sample = {.at_ns = idle.sample_at};
    sample.cpu_ns = (uint64_t)(9 * SECOND * MS);
    assert_false(idle_add(&idle, &sample));
    assert_int_equal(idle.silent_ns, 0);
    sample.at_ns = idle.sample_at;
    sample.cpu_ns = 0;
    assert_false(idle_add(&idle, &sample));
    assert_int_equal(idle.silent_ns, 10 * SECOND * MS);
    sample.at_ns = idle.sample_at;
    sample.cpu_ns = (uint64_t)(SECOND * MS);
    assert_false(idle_add(&idle, &sample));
    assert_int_equal(idle.silent_ns, 0);
}

static void extreme_timeouts_are_taken(void **state)
{
    (void)state;
    struct idle idle;
    idle_init(&idle, IDLE_NEVER, false, 5);
    assert_int_equal(idle.sample_at, IDLE_NEVER);
    idle_init(&idle, IDLE_NEVER - 1, false, IDLE_NEVER / 8 * 7);
    assert_true(idle.sample_at > IDLE_NEVER / 8 * 7);
    struct idle_sample sample = {.at_ns = idle.sample_at};
    assert_false(idle_add(&idle, &sample));
    assert_true(idle.sample_at >= sample.at_ns);
    idle_init(&idle, 0, false, 5);
    sample = (struct idle_sample){.at_ns = idle.sample_at};
    assert_true(idle_add(&idle, &sample));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_idle_after_the_timeout),
        cmocka_unit_test(output_and_progress_are_signs_of_life),
        cmocka_unit_test(one_that_computes_is_not_idle),
        cmocka_unit_test(one_that_wakes_each_second_is_idle),
        cmocka_unit_test(work_ends_and_silence_begins),
        cmocka_unit_test(work_that_begins_late_is_noticed),
        cmocka_unit_test(one_that_waits_for_a_cpu_is_not_idle),
        cmocka_unit_test(being_seen_awake_puts_the_end_off),
        cmocka_unit_test(time_without_samples_is_not_silence),
        cmocka_unit_test(without_cpu_time_a_busy_session_is_idle),
        cmocka_unit_test(lost_cpu_time_does_not_matter),
        cmocka_unit_test(extreme_timeouts_are_taken),
    };
    return cmocka_run_group_tests_name("idle", tests, NULL, NULL);
}
