/* SPDX-License-Identifier: MIT */
/*
 * How far from the shortest schedule do the policies end?
 *
 * usage: bench_psplib FOLDER [--every N] [--jitter PERCENT]
 *                     [--outliers PERCENT] [--policy NAME] [--schedules N]
 *                     [--seeds N]
 *
 * FOLDER holds single-mode instances of PSPLIB (*.sm) and `optimum.csv` with
 * lines of `file,optimum`. Each becomes a plan (resources, estimates in
 * minutes; the first and last task, which are empty, are left out) and is
 * simulated with every policy, or one. Without jitter the table says how far
 * the runs end after the optimum, and how many at it; with it, how much the
 * mean of the seeds differs from that of rank, over all instances and for the
 * worst of them. Times are those of the processor for a whole simulation,
 * planning included.
 *
 * --every N takes one instance in N. With --outliers, that many sessions in a
 * hundred take five times their estimate.
 */
#include "base/duration.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TASKS_MAX = 1024, NUMBERS_MAX = 128, RESOURCES = 4, POLICIES = 4 };

struct instance {
    uint32_t count; /* with the two empty ones; numbered from 1 */
    uint32_t lengths[TASKS_MAX];
    uint32_t units[TASKS_MAX][RESOURCES];
    uint32_t pools[RESOURCES];
    uint32_t need_counts[TASKS_MAX];
    uint32_t needs[TASKS_MAX][NUMBERS_MAX];
};

struct options {
    const char *folder;
    const char *policy; /* NULL: all */
    uint32_t every;
    uint32_t jitter;
    uint32_t outliers;
    uint32_t seeds;
    uint32_t schedules;
};

/* What a policy has done so far. */
struct score {
    uint32_t runs;
    uint32_t optimal;
    double deviation; /* sum of percents */
    double minutes;   /* sum of makespans */
    double set;       /* of them, those of the last instance */
    double worst;     /* percent after rank, of the worst instance */
    double seconds;
    double seconds_max;
};

_Noreturn static void stop(const char *what, const char *which)
{
    (void)fprintf(stderr, "bench_psplib: %s: %s\n", which, what);
    exit(2);
}

static double seconds_now(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) != 0) {
        abort();
    }
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static uint32_t read_numbers(const char *line, uint32_t numbers[NUMBERS_MAX])
{
    uint32_t count = 0;
    char *end = NULL;
    for (const char *at = line; count < NUMBERS_MAX; at = end) {
        unsigned long number = strtoul(at, &end, 10);
        if (end == at) {
            break;
        }
        numbers[count++] = (uint32_t)number;
    }
    return count;
}

enum part { PART_NONE, PART_NEEDS, PART_UNITS, PART_POOLS };

static void take_line(struct instance *in, enum part part, const char *line)
{
    uint32_t n[NUMBERS_MAX] = {0};
    uint32_t count = read_numbers(line, n);
    if (count == 0 || n[0] >= TASKS_MAX) {
        return;
    }
    if (part == PART_NEEDS) {
        in->count = n[0] > in->count ? n[0] : in->count;
        for (uint32_t ix = 3; ix < count && n[ix] < TASKS_MAX; ix++) {
            uint32_t to = n[ix];
            if (in->need_counts[to] < NUMBERS_MAX) {
                in->needs[to][in->need_counts[to]++] = n[0];
            }
        }
    } else if (part == PART_UNITS) {
        in->lengths[n[0]] = n[2];
        memcpy(in->units[n[0]], n + 3, sizeof(in->units[0]));
    } else if (part == PART_POOLS) {
        memcpy(in->pools, n, sizeof(in->pools));
    }
}

static void read_instance(struct instance *in, const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        stop("cannot be read", path);
    }
    *in = (struct instance){0};
    char line[4096];
    enum part part = PART_NONE;
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "PRECEDENCE", 10) == 0) {
            part = PART_NEEDS;
        } else if (strncmp(line, "REQUESTS", 8) == 0) {
            part = PART_UNITS;
        } else if (strncmp(line, "RESOURCEAVAIL", 13) == 0) {
            part = PART_POOLS;
        } else if (line[0] == '*') {
            part = PART_NONE;
        } else {
            take_line(in, part, line);
        }
    }
    (void)fclose(file);
}

static void
write_task(struct strbuf *out, const struct instance *in, uint32_t n)
{
    strbuf_addf(out,
                "  - {id: j%u, run: 'true', estimate: %um",
                n,
                in->lengths[n]);
    const char *before = ", needs: [";
    for (uint32_t ix = 0; ix < in->need_counts[n]; ix++) {
        if (in->needs[n][ix] != 1) {
            strbuf_addf(out, "%sj%u", before, in->needs[n][ix]);
            before = ", ";
        }
    }
    strbuf_adds(out, before[2] == 'n' ? "" : "]");
    before = ", uses: {";
    for (uint32_t ix = 0; ix < RESOURCES; ix++) {
        if (in->units[n][ix] > 0) {
            strbuf_addf(out, "%sr%u: %u", before, ix, in->units[n][ix]);
            before = ", ";
        }
    }
    strbuf_adds(out, before[2] == 'u' ? "}\n" : "}}\n");
}

static struct plan *make_plan(const struct instance *in, uint32_t schedules)
{
    struct strbuf text = {0};
    strbuf_addf(&text,
                "sluice: 1\nname: psplib\nlimits: {sessions: 1000}\n"
                "lookahead: {schedules: %u}\n"
                "resources: {r0: %u, r1: %u, r2: %u, r3: %u}\ntasks:\n",
                schedules,
                in->pools[0],
                in->pools[1],
                in->pools[2],
                in->pools[3]);
    for (uint32_t n = 2; n < in->count; n++) {
        write_task(&text, in, n);
    }
    struct plan_source source = {
        .file = "psplib",
        .text = text.text,
        .len = text.len,
        .processors = 1,
    };
    struct plan *plan = NULL;
    struct plan_errors errors = {0};
    if (!plan_read(&plan, &source, &errors)) {
        stop(errors.items[0].text, text.text);
    }
    strbuf_release(&text);
    return plan;
}

static double simulate(const struct instance *in,
                       const struct options *options,
                       enum plan_policy policy,
                       uint32_t seed,
                       struct score *score)
{
    struct plan *plan = make_plan(in, options->schedules);
    struct sim_options sim = {
        .policy = policy,
        .rules = SIM_RULES_ALL,
        .seed = seed,
        .jitter_percent = options->jitter,
        .outlier_percent = options->outliers,
    };
    struct sim_result *result = NULL;
    struct diag diag = {0};
    double begin = seconds_now();
    if (sim_run(&result, plan, &sim, &diag) != ERR_OK) {
        stop(diag.text, "simulate");
    }
    double took = seconds_now() - begin;
    double minutes = (double)result->makespan_ns / (double)MINUTE_NS;
    score->runs++;
    score->minutes += minutes;
    score->seconds += took;
    score->seconds_max = took > score->seconds_max ? took : score->seconds_max;
    sim_result_free(result);
    plan_free(plan);
    return minutes;
}

static void run_instance(const struct options *options,
                         const char *name,
                         uint32_t optimum,
                         struct score *scores)
{
    static const enum plan_policy policies[POLICIES] = {
        PLAN_POLICY_RANK,
        PLAN_POLICY_FAIR,
        PLAN_POLICY_FIFO,
        PLAN_POLICY_LOOKAHEAD,
    };
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/%s", options->folder, name);
    struct instance *in = mem_zalloc(1, sizeof(*in));
    read_instance(in, path.text);
    for (uint32_t ix = 0; ix < POLICIES; ix++) {
        const char *policy = sim_policy_name(policies[ix]);
        if (options->policy != NULL && strcmp(options->policy, policy) != 0) {
            continue;
        }
        struct score *score = &scores[ix];
        score->set = 0;
        for (uint32_t seed = 1; seed <= options->seeds; seed++) {
            double minutes = simulate(in, options, policies[ix], seed, score);
            double over = minutes - optimum;
            score->set += minutes;
            score->deviation += 100 * over / optimum;
            score->optimal += over < 1e-6 ? 1 : 0;
        }
        double behind =
            scores[0].set > 0 ? 100 * (score->set / scores[0].set - 1) : 0;
        if (score->runs == options->seeds || behind > score->worst) {
            score->worst = behind;
        }
    }
    mem_free(in);
    strbuf_release(&path);
}

static void print(const struct options *options, const struct score *scores)
{
    static const char *const names[POLICIES] = {
        "rank",
        "fair",
        "fifo",
        "lookahead",
    };
    printf("policy     deviation  optimal  against rank     worst  ms mean"
           "    max\n");
    for (uint32_t ix = 0; ix < POLICIES; ix++) {
        const struct score *s = &scores[ix];
        if (s->runs == 0) {
            continue;
        }
        double against =
            scores[0].runs > 0 ? 100 * (s->minutes / scores[0].minutes - 1) : 0;
        printf("%-10s  %6.2f %%  %3u of %-5u  %+6.2f %%  %+6.2f %%  %7.1f  "
               "%5.1f\n",
               names[ix],
               s->deviation / s->runs,
               options->jitter + options->outliers == 0 ? s->optimal : 0,
               s->runs,
               against,
               s->worst,
               s->seconds * 1000 / s->runs,
               s->seconds_max * 1000);
    }
}

static void read_options(struct options *options, int argc, char **argv)
{
    for (int ix = 2; ix + 1 < argc; ix += 2) {
        uint32_t number = (uint32_t)strtoul(argv[ix + 1], NULL, 10);
        if (strcmp(argv[ix], "--every") == 0 && number > 0) {
            options->every = number;
        } else if (strcmp(argv[ix], "--jitter") == 0) {
            options->jitter = number;
        } else if (strcmp(argv[ix], "--outliers") == 0 && number <= 100) {
            options->outliers = number;
        } else if (strcmp(argv[ix], "--policy") == 0) {
            options->policy = argv[ix + 1];
        } else if (strcmp(argv[ix], "--schedules") == 0 && number > 0) {
            options->schedules = number;
        } else if (strcmp(argv[ix], "--seeds") == 0 && number > 0) {
            options->seeds = number;
        } else {
            stop("unknown option", argv[ix]);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc % 2 != 0) {
        stop("bench_psplib FOLDER [--every N] [--jitter PERCENT] "
             "[--outliers PERCENT] [--policy NAME] [--schedules N] "
             "[--seeds N]",
             "usage");
    }
    struct options options = {
        .folder = argv[1],
        .every = 1,
        .seeds = 1,
        .schedules = PLAN_SCHEDULES,
    };
    read_options(&options, argc, argv);
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/optimum.csv", options.folder);
    FILE *list = fopen(path.text, "r");
    if (list == NULL) {
        stop("cannot be read", path.text);
    }
    struct score scores[POLICIES] = {{0}};
    char line[256];
    uint32_t count = 0;
    while (fgets(line, sizeof(line), list) != NULL) {
        char *comma = strchr(line, ',');
        uint32_t optimum =
            comma != NULL ? (uint32_t)strtoul(comma + 1, NULL, 10) : 0;
        if (optimum > 0 && count++ % options.every == 0) {
            *comma = '\0';
            run_instance(&options, line, optimum, scores);
        }
    }
    (void)fclose(list);
    strbuf_release(&path);
    print(&options, scores);
    return 0;
}
