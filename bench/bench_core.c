/* SPDX-License-Identifier: MIT */
/*
 * What does the core cost per task, from being added to being done?
 *
 * usage: bench_core SHAPE TASKS      one line of figures
 *        bench_core --blocked N      cost of a decision beside N blocked tasks
 *        bench_core --ahead SHAPE TASKS
 *                                    rank, lookahead without and with thinking
 *
 * Shapes: layered (columns of 100, two needs each), random (two needs among
 * all earlier tasks), chain, fan (one task, then all the others). Each task
 * counts in three limits: the cap, one of its class, a resource. The input is
 * complete before the clock starts. For comparison the same graph goes through
 * the least that any scheduler must do: a counter per task and one heap.
 */
#include "base/mem.h"
#include "base/rng.h"
#include "core/sched.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SLOTS = 3, COLUMN = 100 };

static double seconds_now(void)
{
    struct timespec now;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) != 0) {
        abort();
    }
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

struct graph_input {
    uint32_t task_count;
    uint32_t need_count;
    struct sched_need *needs;
};

static struct graph_input make_graph(const char *shape, uint32_t count)
{
    struct graph_input in = {.task_count = count};
    in.needs = mem_zalloc((size_t)count * 2, sizeof(in.needs[0]));
    struct rng rng;
    rng_init(&rng, 1);
    for (uint32_t ix = 1; ix < count; ix++) {
        if (strcmp(shape, "layered") == 0 && ix >= COLUMN) {
            uint32_t base = ix / COLUMN * COLUMN - COLUMN;
            uint32_t other = (ix + 1) % COLUMN;
            in.needs[in.need_count++] =
                (struct sched_need){ix, base + ix % COLUMN, SCHED_ON_DONE};
            in.needs[in.need_count++] =
                (struct sched_need){ix, base + other, SCHED_ON_DONE};
        } else if (strcmp(shape, "random") == 0) {
            uint32_t one = rng_below(&rng, ix);
            uint32_t two = rng_below(&rng, ix);
            in.needs[in.need_count++] =
                (struct sched_need){ix, one, SCHED_ON_DONE};
            if (two != one) {
                in.needs[in.need_count++] =
                    (struct sched_need){ix, two, SCHED_ON_DONE};
            }
        } else if (strcmp(shape, "chain") == 0) {
            in.needs[in.need_count++] =
                (struct sched_need){ix, ix - 1, SCHED_ON_DONE};
        } else if (strcmp(shape, "fan") == 0) {
            in.needs[in.need_count++] =
                (struct sched_need){ix, 0, SCHED_ON_DONE};
        }
    }
    return in;
}

/* A binary heap of numbers, smallest first. */
struct heap {
    uint32_t *items;
    uint32_t count;
};

static void heap_push(struct heap *heap, uint32_t item)
{
    uint32_t hole = heap->count++;
    while (hole > 0 && heap->items[(hole - 1) / 2] > item) {
        heap->items[hole] = heap->items[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap->items[hole] = item;
}

static uint32_t heap_pop(struct heap *heap)
{
    uint32_t first = heap->items[0];
    uint32_t last = heap->items[--heap->count];
    uint32_t hole = 0;
    for (uint32_t child = 1; child < heap->count; child = 2 * hole + 1) {
        if (child + 1 < heap->count &&
            heap->items[child + 1] < heap->items[child]) {
            child++;
        }
        if (last <= heap->items[child]) {
            break;
        }
        heap->items[hole] = heap->items[child];
        hole = child;
    }
    heap->items[hole] = last;
    return first;
}

/* Who needs whom, with all that need one task next to each other. */
struct rows {
    uint32_t *first;
    uint32_t *to;
    uint32_t *unmet;
};

static struct rows make_rows(const struct graph_input *in)
{
    uint32_t n = in->task_count;
    struct rows rows = {
        .first = mem_zalloc((size_t)n + 2, sizeof(uint32_t)),
        .to = mem_zalloc((size_t)in->need_count + 1, sizeof(uint32_t)),
        .unmet = mem_zalloc(n, sizeof(uint32_t)),
    };
    for (uint32_t ix = 0; ix < in->need_count; ix++) {
        rows.first[in->needs[ix].need + 2]++;
        rows.unmet[in->needs[ix].dependent]++;
    }
    for (uint32_t ix = 0; ix < n; ix++) {
        rows.first[ix + 2] += rows.first[ix + 1];
    }
    for (uint32_t ix = 0; ix < in->need_count; ix++) {
        uint32_t need = in->needs[ix].need;
        rows.to[rows.first[need + 1]++] = in->needs[ix].dependent;
    }
    return rows;
}

/* The limit: counters and one binary heap, nothing else. */
static double bare_loop(const struct graph_input *in)
{
    uint32_t n = in->task_count;
    struct heap heap = {.items = mem_zalloc((size_t)n + 1, sizeof(uint32_t))};
    double begin = seconds_now();
    struct rows rows = make_rows(in);
    for (uint32_t ix = 0; ix < n; ix++) {
        if (rows.unmet[ix] == 0) {
            heap_push(&heap, ix);
        }
    }
    uint32_t done = 0;
    while (heap.count > 0) {
        uint32_t task = heap_pop(&heap);
        done++;
        for (uint32_t ix = rows.first[task]; ix < rows.first[task + 1]; ix++) {
            if (--rows.unmet[rows.to[ix]] == 0) {
                heap_push(&heap, rows.to[ix]);
            }
        }
    }
    double took = seconds_now() - begin;
    if (done != n) {
        abort();
    }
    mem_free(heap.items);
    mem_free(rows.first);
    mem_free(rows.to);
    mem_free(rows.unmet);
    return took;
}

static void must(enum err err)
{
    if (err != ERR_OK) {
        (void)fprintf(stderr, "bench_core: %s\n", err_text(err));
        abort();
    }
}

static const struct attribute class_a = {0, 1};

static struct sched *new_sched(struct run_id *run,
                               struct limit_id *limits,
                               int64_t cap,
                               enum sched_policy policy)
{
    struct sched *sched = sched_new();
    struct provider_spec provider = {
        .backoff_ns = 1,
        .backoff_ns_max = 1,
        .probe_ns = 1,
        .probe_ns_max = 1,
    };
    (void)sched_add_provider(sched, &provider);
    struct sched_class_spec spec = {.batch = 1, .max_wait_ns = SCHED_NEVER};
    (void)sched_add_class(sched, &spec);
    struct limit_spec specs[] = {
        {.max = cap, .per = ID_NONE, .share = ID_NONE},
        {.max = SLOTS,
         .per = ID_NONE,
         .share = ID_NONE,
         .where = &class_a,
         .where_count = 1},
        {.max = 8, .per = ID_NONE, .share = ID_NONE, .resource = true},
    };
    struct sched_run_spec run_spec = {
        .policy = policy,
        .limits = specs,
        .limit_count = 3,
        .schedules = 5000,
    };
    *run = sched_add_run(sched, &run_spec, limits);
    return sched;
}

struct result {
    double seconds; /* without thinking */
    double thinking;
    size_t bytes;
};

/* Sessions take other times than estimated: every end upsets a plan. */
static double think(struct sched *sched)
{
    double begin = seconds_now();
    while (sched_plan(sched, UINT32_MAX)) {
    }
    return seconds_now() - begin;
}

/* Describe all tasks of a graph. The caller frees the block. */
static struct sched_task_spec *make_specs(const struct graph_input *in,
                                          const struct sched_use *use)
{
    struct sched_task_spec *specs =
        mem_zalloc(in->task_count, sizeof(specs[0]));
    for (uint32_t ix = 0; ix < in->task_count; ix++) {
        specs[ix] = (struct sched_task_spec){
            .group = ID_NONE,
            .estimate_ns = 1,
            .attributes = &class_a,
            .attribute_count = 1,
            .uses = use,
            .use_count = 1,
            .rework_to = ID_NONE,
        };
    }
    return specs;
}

static struct result
run_core(const struct graph_input *in, enum sched_policy policy, bool thinks)
{
    struct run_id run;
    struct limit_id limit;
    struct sched *sched = new_sched(&run, &limit, SLOTS, policy);
    struct sched_use use = {{limit.v + 2}, 1};
    struct sched_task_spec *specs = make_specs(in, &use);
    struct sched_addition addition = {
        .run = run,
        .tasks = specs,
        .task_count = in->task_count,
        .needs = in->needs,
        .need_count = in->need_count,
    };
    struct sched_rejection rejection;
    double begin = seconds_now();
    must(sched_add(sched, 0, &addition, &rejection));
    struct sched_event flying[SLOTS];
    uint32_t first = 0;
    uint32_t count = 0;
    uint32_t done = 0;
    int64_t now_ns = 0;
    const enum sched_outcome well = OUTCOME_DONE;
    double thinking = 0;
    for (;;) {
        struct sched_effect effect;
        if (thinks) {
            thinking += think(sched);
        }
        while (sched_next_effect(sched, &effect)) {
            if (effect.type == EFFECT_START) {
                struct sched_event event = {
                    .type = EVENT_STARTED,
                    .now_ns = now_ns,
                    .task = effect.task,
                    .token = effect.token,
                    .outcomes = &well,
                    .outcome_count = 1,
                };
                must(sched_apply(sched, &event));
                event.type = EVENT_ENDED;
                flying[(first + count++) % SLOTS] = event;
            }
        }
        if (count == 0) {
            break;
        }
        flying[first].now_ns = ++now_ns;
        must(sched_apply(sched, &flying[first]));
        first = (first + 1) % SLOTS;
        count--;
        done++;
    }
    struct result result = {
        .seconds = seconds_now() - begin - thinking,
        .thinking = thinking,
        .bytes = sched_bytes(sched),
    };
    if (done != in->task_count) {
        abort();
    }
    sched_free(sched);
    mem_free(specs);
    return result;
}

/* One free slot for class B, n ready tasks of class A that do not fit. */
static double run_blocked(uint32_t blocked)
{
    enum { ROUNDS = 20000 };
    struct run_id run;
    struct limit_id limit;
    struct sched *sched = new_sched(&run, &limit, SLOTS + 1, SCHED_RANK);
    uint32_t count = blocked + SLOTS + ROUNDS;
    struct sched_task_spec *specs = mem_zalloc(count, sizeof(specs[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        specs[ix] = (struct sched_task_spec){
            .group = ID_NONE,
            .estimate_ns = 1,
            .attributes = &class_a,
            .attribute_count = ix < blocked + SLOTS ? 1 : 0,
            .rework_to = ID_NONE,
        };
    }
    struct sched_addition addition = {
        .run = run,
        .tasks = specs,
        .task_count = count,
    };
    struct sched_rejection rejection;
    must(sched_add(sched, 0, &addition, &rejection));
    struct sched_effect effect;
    struct sched_effect last = {0};
    while (sched_next_effect(sched, &effect)) {
        if (effect.type == EFFECT_START) {
            last = effect;
        }
    }
    const enum sched_outcome well = OUTCOME_DONE;
    double begin = seconds_now();
    for (uint32_t round = 1; round < ROUNDS; round++) {
        struct sched_event event = {
            .type = EVENT_ENDED,
            .now_ns = round,
            .task = last.task,
            .token = last.token,
            .outcomes = &well,
            .outcome_count = 1,
        };
        must(sched_apply(sched, &event));
        while (sched_next_effect(sched, &effect)) {
            if (effect.type == EFFECT_START) {
                last = effect;
            }
        }
    }
    double took = (seconds_now() - begin) / (ROUNDS - 1);
    if (last.task.v != count - 1) {
        abort();
    }
    sched_free(sched);
    mem_free(specs);
    return took;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--blocked") == 0) {
        uint32_t blocked = (uint32_t)strtoul(argv[2], NULL, 10);
        printf("%" PRIu32 " %.4f\n", blocked, run_blocked(blocked) * 1e6);
        return 0;
    }
    if (argc == 4 && strcmp(argv[1], "--ahead") == 0) {
        uint32_t count = (uint32_t)strtoul(argv[3], NULL, 10);
        struct graph_input in = make_graph(argv[2], count);
        struct result rank = run_core(&in, SCHED_RANK, false);
        struct result still = run_core(&in, SCHED_LOOKAHEAD, false);
        struct result ahead = run_core(&in, SCHED_LOOKAHEAD, true);
        printf("%s %" PRIu32 " %.4f %.4f %.4f %.4f\n",
               argv[2],
               count,
               rank.seconds * 1e6 / count,
               still.seconds * 1e6 / count,
               ahead.seconds * 1e6 / count,
               ahead.thinking * 1e6 / count);
        mem_free(in.needs);
        return 0;
    }
    if (argc != 3) {
        (void)fprintf(stderr, "usage: bench_core SHAPE TASKS\n");
        return 2;
    }
    uint32_t count = (uint32_t)strtoul(argv[2], NULL, 10);
    struct graph_input in = make_graph(argv[1], count);
    double bare = bare_loop(&in);
    struct result core = run_core(&in, SCHED_RANK, false);
    printf("%s %" PRIu32 " %.4f %.4f %.0f\n",
           argv[1],
           count,
           core.seconds * 1e6 / count,
           bare * 1e6 / count,
           (double)core.bytes / count);
    mem_free(in.needs);
    return 0;
}
