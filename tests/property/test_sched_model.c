/* SPDX-License-Identifier: MIT */
/*
 * Random cases through the scheduler and through the model: see case.h.
 *
 * usage: test_sched_model [--cases N] [--first SEED] [--features MASK]
 *        test_sched_model --replay SEED TASKS EVENTS FEATURES
 * A failing case is made smaller, then printed as the line that replays it.
 */
#include "base/macros.h"
#include "base/mem.h"
#include "base/rng.h"
#include "tests/property/case.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Features that are used at all. */
static uint32_t allowed = WITH_ALL;

/* Features of a seed: mostly all, sometimes some, to see them alone. */
static struct case_recipe recipe_of(uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, ~seed);
    struct case_recipe recipe = {
        .seed = seed,
        .tasks = 1 + rng_below(&rng, 60),
        .events = 20 + rng_below(&rng, 180),
        .features = WITH_ALL,
    };
    if (rng_below(&rng, 3) == 0) {
        recipe.features = rng_below(&rng, WITH_ALL + 1);
    }
    recipe.features &= allowed;
    return recipe;
}

/* Run cases in a child; return the seed that failed, or `first + count`. */
static uint64_t run_batch(uint64_t first, uint64_t count)
{
    uint64_t *seed = mem_zalloc(1, sizeof(*seed));
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
        for (*seed = first; *seed < first + count; (*seed)++) {
            if (write(ends[1], seed, sizeof(*seed)) != sizeof(*seed)) {
                _exit(2);
            }
            case_run(recipe_of(*seed), false);
        }
        exit(0); /* not _exit: leaks and coverage are seen at the end */
    }
    (void)close(ends[1]);
    uint64_t last = first;
    while (read(ends[0], seed, sizeof(*seed)) == sizeof(*seed)) {
        last = *seed;
    }
    (void)close(ends[0]);
    mem_free(seed);
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) {
        abort();
    }
    return status == 0 ? first + count : last;
}

static bool fails(struct case_recipe recipe)
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
        case_run(recipe, false);
        _exit(0);
    }
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) {
        abort();
    }
    return status != 0;
}

/* Make a failing case smaller while it still fails. */
static struct case_recipe shrink(struct case_recipe recipe)
{
    for (uint32_t bit = 1; bit < WITH_ALL; bit <<= 1) {
        struct case_recipe less = recipe;
        less.features &= ~bit;
        recipe =
            less.features != recipe.features && fails(less) ? less : recipe;
    }
    uint32_t *sizes[] = {&recipe.events, &recipe.tasks};
    for (uint32_t which = 0; which < ARRAY_COUNT(sizes); which++) {
        for (uint32_t cut = *sizes[which] / 2; cut > 0; cut /= 2) {
            while (*sizes[which] > cut) {
                *sizes[which] -= cut;
                if (!fails(recipe)) {
                    *sizes[which] += cut;
                    break;
                }
            }
        }
    }
    return recipe;
}

static int run_all(uint64_t first, uint64_t cases)
{
    enum { BATCH = 250 };
    uint64_t batches = (cases + BATCH - 1) / BATCH;
    printf("1..%" PRIu64 "\n", batches);
    bool failed = false;
    for (uint64_t ix = 0; ix < batches; ix++) {
        uint64_t from = first + ix * BATCH;
        uint64_t bad = run_batch(from, BATCH);
        bool ok = bad == from + BATCH;
        printf("%s %" PRIu64 " - seeds %" PRIu64 " to %" PRIu64
               " agree with the model\n",
               ok ? "ok" : "not ok",
               ix + 1,
               from,
               from + BATCH - 1);
        if (!ok) {
            failed = true;
            struct case_recipe r = shrink(recipe_of(bad));
            printf("# replay: test_sched_model --replay %" PRIu64
                   " %u %u 0x%x\n",
                   r.seed,
                   r.tasks,
                   r.events,
                   r.features);
        }
        (void)fflush(stdout);
    }
    return failed ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "--replay") == 0) {
        struct case_recipe recipe = {
            .seed = strtoull(argv[2], NULL, 10),
            .tasks = (uint32_t)strtoul(argv[3], NULL, 10),
            .events = (uint32_t)strtoul(argv[4], NULL, 10),
            .features = (uint32_t)strtoul(argv[5], NULL, 16),
        };
        case_run(recipe, true);
        printf("the case passes\n");
        return 0;
    }
    uint64_t first = 1;
    uint64_t cases = 20000;
    for (int ix = 1; ix + 1 < argc; ix += 2) {
        if (strcmp(argv[ix], "--cases") == 0) {
            cases = strtoull(argv[ix + 1], NULL, 10);
        } else if (strcmp(argv[ix], "--first") == 0) {
            first = strtoull(argv[ix + 1], NULL, 10);
        } else if (strcmp(argv[ix], "--features") == 0) {
            allowed = (uint32_t)strtoul(argv[ix + 1], NULL, 16);
        }
    }
    return run_all(first, cases);
}
