/* SPDX-License-Identifier: MIT */
/*
 * Random worlds with faults around the real engine: see sim/world.h.
 *
 * usage: test_engine_world [--machines] [--cases N] [--first SEED] [--survey]
 *        test_engine_world --replay SEED TASKS FEATURES
 *        test_engine_world --compare SEED [--machines]
 * With --machines, every world has several machines. $WORLDS is another N.
 * A failing world is made smaller, then printed as the line that replays it;
 * with --survey, all failing worlds are printed as they are.
 * A world whose schedulers only crash must also end like the one in which
 * nothing goes wrong.
 */
#include "base/macros.h"
#include "base/mem.h"
#include "base/rng.h"
#include "sim/world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BATCH = 125,
    TASKS_MAX = 24,
};

/*
 * In these worlds the end depends on nothing but how each attempt of each task
 * ends: no orders, no batches, no policy by which one task decides for others.
 */
static const uint32_t plain_features =
    WORLD_GROUPS | WORLD_LIMITS | WORLD_ENDINGS;
static const uint32_t crash_features =
    WORLD_CRASH | WORLD_ZOMBIE | WORLD_FULL | WORLD_BROKEN | WORLD_STALL;

/* Features of a seed: mostly all, sometimes some, to see them alone. */
static struct world_options options_of(uint64_t seed, uint32_t always)
{
    struct rng rng;
    rng_init(&rng, ~seed);
    struct world_options options = {
        .seed = seed,
        .tasks = 4 + rng_below(&rng, TASKS_MAX - 4),
        .features = WORLD_ALL,
    };
    if (rng_below(&rng, 3) == 0) {
        options.features = rng_below(&rng, WORLD_ALL + 1);
    }
    options.features |= always;
    return options;
}

static void say(void *ctx, int64_t now_ns, const char *text)
{
    (void)ctx;
    printf("%10.4f %s\n", (double)now_ns / 1e9, text);
    (void)fflush(stdout);
}

/* Live through one world; false: it has a fault, which is told. */
static bool live(const struct world_options *options)
{
    struct world_report report = {0};
    bool good = world_run(options, &report);
    if (!good) {
        printf("# seed %" PRIu64 ": %s\n",
               options->seed,
               strbuf_text(&report.fault));
    }
    world_report_release(&report);
    return good;
}

/* Whether a history with crashes ends like the one without. */
static bool ends_alike(uint64_t seed, uint32_t always)
{
    struct world_options options = {
        .seed = seed,
        .tasks = TASKS_MAX,
        .features = plain_features,
    };
    struct world_report calm = {0};
    struct world_report wild = {0};
    bool good = world_run(&options, &calm);
    options.features |= crash_features | always;
    good = world_run(&options, &wild) && good;
    if (!good ||
        strcmp(strbuf_text(&calm.states), strbuf_text(&wild.states)) != 0) {
        printf("# seed %" PRIu64 " ends in two ways: %s%s\n",
               seed,
               strbuf_text(&calm.fault),
               strbuf_text(&wild.fault));
        good = false;
    }
    world_report_release(&calm);
    world_report_release(&wild);
    return good;
}

static bool is_good(uint64_t seed, uint32_t always)
{
    struct world_options options = options_of(seed, always);
    bool good = live(&options);
    /* The loss of a worker costs an attempt, and the next may end otherwise. */
    bool comparable = seed % 8 == 0 && (always & WORLD_MACHINES) == 0;
    return (!comparable || ends_alike(seed, always)) && good;
}

/* Run cases in a child; return the seed that failed, or `first + count`. */
static uint64_t run_batch(uint64_t first, uint64_t count, uint32_t always)
{
    int ends[2];
    if (pipe(ends) != 0) {
        abort();
    }
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid < 0) {
        abort();
    }
    if (pid == 0) {
        for (uint64_t seed = first; seed < first + count; seed++) {
            if (write(ends[1], &seed, sizeof(seed)) != sizeof(seed)) {
                _exit(2);
            }
            if (!is_good(seed, always)) {
                exit(1);
            }
        }
        exit(0); /* not _exit: leaks and coverage are seen at the end */
    }
    (void)close(ends[1]);
    uint64_t seed = first;
    uint64_t last = first;
    while (read(ends[0], &seed, sizeof(seed)) == sizeof(seed)) {
        last = seed;
    }
    (void)close(ends[0]);
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) {
        abort();
    }
    return status == 0 ? first + count : last;
}

/* Whether a world has a fault, or ends in an abort; quietly. */
static bool fails(struct world_options options)
{
    (void)fflush(stdout);
    pid_t pid = fork();
    if (pid < 0) {
        abort();
    }
    if (pid == 0) {
        if (freopen("/dev/null", "w", stdout) == NULL ||
            freopen("/dev/null", "w", stderr) == NULL) {
            _exit(0);
        }
        _exit(live(&options) ? 0 : 1);
    }
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) {
        abort();
    }
    return status != 0;
}

/* Another seed with the same or fewer features may fail with fewer tasks. */
static bool find_smaller(struct world_options *options)
{
    enum { TRIES = 40 };
    struct world_options less = *options;
    less.tasks = options->tasks / 2;
    for (uint64_t n = 0; less.tasks > 0 && n < TRIES; n++) {
        less.seed = options->seed + n;
        if (fails(less)) {
            *options = less;
            return true;
        }
    }
    return false;
}

/*
 * Make a failing world smaller while it still fails. Without a feature all
 * draws are others, so several seeds are tried for each.
 */
static struct world_options shrink(struct world_options options)
{
    enum { TRIES = 12 };
    for (uint32_t bit = 1; bit < WORLD_ALL; bit <<= 1) {
        struct world_options less = options;
        less.features &= ~bit;
        for (uint64_t n = 0; less.features != options.features && n < TRIES;
             n++) {
            less.seed = options.seed + n;
            if (fails(less)) {
                options = less;
                break;
            }
        }
    }
    while (find_smaller(&options)) {
    }
    return options;
}

/* Run all cases, whichever fail, and make none smaller. */
static int survey(uint64_t first, uint64_t cases, uint32_t always)
{
    uint64_t failed = 0;
    uint64_t end = first + cases;
    for (uint64_t from = first; from < end;) {
        uint64_t to = end - from < BATCH ? end : from + BATCH;
        uint64_t bad = run_batch(from, to - from, always);
        if (bad < to) {
            struct world_options given = options_of(bad, always);
            failed++;
            printf("# replay: test_engine_world --replay %" PRIu64 " %u 0x%x\n",
                   given.seed,
                   given.tasks,
                   given.features);
            (void)fflush(stdout);
        }
        from = bad < to ? bad + 1 : to;
    }
    printf("# %" PRIu64 " of %" PRIu64 " worlds have a fault\n", failed, cases);
    return failed > 0 ? 1 : 0;
}

static int run_all(uint64_t first, uint64_t cases, uint32_t always)
{
    uint64_t batches = (cases + BATCH - 1) / BATCH;
    printf("1..%" PRIu64 "\n", batches);
    for (uint64_t ix = 0; ix < batches; ix++) {
        uint64_t from = first + ix * BATCH;
        uint64_t bad = run_batch(from, BATCH, always);
        bool ok = bad == from + BATCH;
        printf("%s %" PRIu64 " - worlds %" PRIu64 " to %" PRIu64
               " come to a good end\n",
               ok ? "ok" : "not ok",
               ix + 1,
               from,
               from + BATCH - 1);
        (void)fflush(stdout);
        if (!ok) {
            struct world_options given = options_of(bad, always);
            if (!fails(given)) {
                printf("# replay: test_engine_world --compare %" PRIu64 "%s\n",
                       bad,
                       always != 0 ? " --machines" : "");
                return 1;
            }
            printf("# replay: test_engine_world --replay %" PRIu64 " %u 0x%x\n",
                   given.seed,
                   given.tasks,
                   given.features);
            (void)fflush(stdout);
            struct world_options small = shrink(given);
            printf("# smaller: test_engine_world --replay %" PRIu64
                   " %u 0x%x\n",
                   small.seed,
                   small.tasks,
                   small.features);
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    /* Times of day of plans are local. */
    if (setenv("TZ", "UTC", 1) != 0) {
        return 1;
    }
    if (argc == 5 && strcmp(argv[1], "--replay") == 0) {
        struct world_options options = {
            .seed = strtoull(argv[2], NULL, 10),
            .tasks = (uint32_t)strtoul(argv[3], NULL, 10),
            .features = (uint32_t)strtoul(argv[4], NULL, 16),
            .say = say,
        };
        bool good = live(&options);
        printf("the world %s\n", good ? "is good" : "has a fault");
        return good ? 0 : 1;
    }
    uint32_t always = 0;
    uint64_t first = 1;
    uint64_t cases = 1000;
    bool all = false;
    const char *worlds = getenv("WORLDS");
    for (int ix = 1; ix < argc; ix++) {
        if (strcmp(argv[ix], "--machines") == 0) {
            always = WORLD_MACHINES;
        } else if (strcmp(argv[ix], "--survey") == 0) {
            all = true;
        } else if (strcmp(argv[ix], "--cases") == 0 && ix + 1 < argc) {
            cases = strtoull(argv[++ix], NULL, 10);
        } else if (strcmp(argv[ix], "--first") == 0 && ix + 1 < argc) {
            first = strtoull(argv[++ix], NULL, 10);
        }
    }
    if (worlds != NULL) {
        cases = strtoull(worlds, NULL, 10);
    }
    if (argc >= 3 && strcmp(argv[1], "--compare") == 0) {
        bool good = ends_alike(strtoull(argv[2], NULL, 10), always);
        printf("the two worlds %s\n", good ? "end alike" : "differ");
        return good ? 0 : 1;
    }
    return all ? survey(first, cases, always) : run_all(first, cases, always);
}
