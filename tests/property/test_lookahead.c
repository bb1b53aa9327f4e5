/* SPDX-License-Identifier: MIT */
/*
 * Random plans with `policy: lookahead`: see wave.h.
 *
 * usage: test_lookahead [--cases N] [--first SEED]
 *        test_lookahead --replay SEED POLICY TROUBLE RESTORE_AT EFFORT ISSUES
 *                       MORE
 *
 * - With exact estimates no run ends later than by rank or by fifo, whatever
 *   the plan, and plans of issues that wait for their repository in particular.
 * - No rule is broken, with jitter, failures and orders too.
 * - Equal events give equal starts.
 * - Two schedulers that go on from equal records decide alike.
 */
#include "tests/property/wave.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE = 2000 };

/* What all cases have shown. */
struct tally {
    uint32_t worse;
    uint32_t worse_issues;
    uint32_t sooner;
    uint32_t differ;
    uint64_t planned;
    double rank_ns;
    double lookahead_ns;
};

static struct wave_result
run(uint64_t seed, enum wave_trouble trouble, uint32_t restore_at)
{
    return wave_run((struct wave_options){
        .seed = seed,
        .policy = PLAN_POLICY_LOOKAHEAD,
        .trouble = trouble,
        .restore_at = restore_at,
        .effort = seed % 2 == 0 ? SLICE : UINT32_MAX,
        .more = seed % 7 == 0,
    });
}

/* Simulate with exact estimates by rank, by fifo and planned. Return whether
 * the plan ends no later than the others. */
static bool compare(uint64_t seed, bool issues, struct tally *tally)
{
    struct wave_options options = {
        .seed = seed,
        .issues = issues,
        .policy = PLAN_POLICY_RANK,
        .effort = UINT32_MAX,
    };
    struct wave_result rank = wave_run(options);
    options.policy = PLAN_POLICY_FIFO;
    struct wave_result fifo = wave_run(options);
    options.policy = PLAN_POLICY_LOOKAHEAD;
    options.effort = seed % 2 == 0 ? SLICE : UINT32_MAX;
    options.more = seed % 4 == 0;
    struct wave_result exact = wave_run(options);
    tally->rank_ns += (double)rank.makespan_ns;
    tally->lookahead_ns += (double)exact.makespan_ns;
    tally->planned += exact.planned;
    tally->sooner += exact.makespan_ns < rank.makespan_ns ? 1 : 0;
    if (exact.makespan_ns <= rank.makespan_ns &&
        exact.makespan_ns <= fifo.makespan_ns) {
        return true;
    }
    printf("# seed %" PRIu64 "%s: by rank %" PRId64 " s, by fifo %" PRId64
           " s, planned %" PRId64 " s\n",
           seed,
           issues ? ", issues" : "",
           rank.makespan_ns / 1000000000,
           fifo.makespan_ns / 1000000000,
           exact.makespan_ns / 1000000000);
    return false;
}

static void run_case(uint64_t seed, struct tally *tally)
{
    tally->worse += compare(seed, false, tally) ? 0 : 1;
    tally->worse_issues += compare(seed, true, tally) ? 0 : 1;
    enum wave_trouble trouble = seed % 2 == 0 ? WAVE_JITTER : WAVE_ROUGH;
    uint32_t restore_at = seed % 5 == 0 ? 0 : 1 + (uint32_t)(seed % 11);
    struct wave_result one = run(seed, trouble, restore_at);
    if (seed % 3 > 0) {
        return;
    }
    struct wave_result two = run(seed, trouble, restore_at);
    if (one.starts != two.starts || one.makespan_ns != two.makespan_ns) {
        tally->differ++;
        printf("# seed %" PRIu64 ": equal events gave other starts\n", seed);
    }
}

static int report(bool ok, uint32_t number, const char *what)
{
    printf("%s %u - %s\n", ok ? "ok" : "not ok", number, what);
    return ok ? 0 : 1;
}

static int run_all(uint64_t first, uint64_t cases)
{
    struct tally tally = {0};
    for (uint64_t seed = first; seed < first + cases; seed++) {
        run_case(seed, &tally);
    }
    printf("1..5\n# %u of %" PRIu64 " end sooner than by rank, all together "
           "%.2f %%; %" PRIu64 " holds\n",
           tally.sooner,
           2 * cases,
           100 * (1 - tally.lookahead_ns / tally.rank_ns),
           tally.planned);
    int failed =
        report(tally.worse == 0, 1, "none ends later than by rank or fifo");
    failed += report(tally.differ == 0, 2, "equal events give equal starts");
    failed += report(tally.sooner > 0, 3, "some end sooner");
    failed += report(tally.planned > 0, 4, "slots are left idle on purpose");
    failed += report(tally.worse_issues == 0, 5, "nor does a plan of issues");
    return failed > 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    if (argc == 9 && strcmp(argv[1], "--replay") == 0) {
        struct wave_result result = wave_run((struct wave_options){
            .seed = strtoull(argv[2], NULL, 10),
            .policy = (enum plan_policy)strtoul(argv[3], NULL, 10),
            .trouble = (enum wave_trouble)strtoul(argv[4], NULL, 10),
            .restore_at = (uint32_t)strtoul(argv[5], NULL, 10),
            .effort = (uint32_t)strtoul(argv[6], NULL, 10),
            .issues = strtoul(argv[7], NULL, 10) > 0,
            .more = strtoul(argv[8], NULL, 10) > 0,
        });
        printf("the wave passes, and ends after %" PRId64 " s\n",
               result.makespan_ns / 1000000000);
        return 0;
    }
    uint64_t first = 1;
    uint64_t cases = 1000;
    for (int ix = 1; ix + 1 < argc; ix += 2) {
        if (strcmp(argv[ix], "--cases") == 0) {
            cases = strtoull(argv[ix + 1], NULL, 10);
        } else if (strcmp(argv[ix], "--first") == 0) {
            first = strtoull(argv[ix + 1], NULL, 10);
        }
    }
    return run_all(first, cases);
}
