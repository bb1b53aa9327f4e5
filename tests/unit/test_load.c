/* SPDX-License-Identifier: MIT */
/* From plans into one scheduler, and the way back. */
#include "plan/load.h"

#include "base/duration.h"
#include "base/strbuf.h"
#include "core/why.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define HEAD "sluice: 1\nname: test\n"

struct fixture {
    struct sched *sched;
    struct load *load;
    int64_t now_ns;
};

static void set_up(struct fixture *fixture)
{
    fixture->sched = sched_new();
    fixture->load = load_new(fixture->sched);
    fixture->now_ns = 0;
}

static void tear_down(struct fixture *fixture)
{
    sched_verify(fixture->sched);
    load_free(fixture->load);
    sched_free(fixture->sched);
}

static struct plan_source source_of(const char *text)
{
    return (struct plan_source){
        .file = "plan.yaml",
        .text = text,
        .len = strlen(text),
        .processors = 4,
    };
}

static struct plan *read_plan(const char *text)
{
    struct plan_source source = source_of(text);
    struct plan_errors errors = {0};
    struct plan *plan = NULL;
    if (!plan_read(&plan, &source, &errors)) {
        fail_msg("%u: %s", errors.items[0].mark.line, errors.items[0].text);
    }
    return plan;
}

static void add_to_plan(struct plan *plan, const char *text)
{
    struct plan_source source = source_of(text);
    struct plan_errors errors = {0};
    if (!plan_add(plan, &source, &errors)) {
        fail_msg("%u: %s", errors.items[0].mark.line, errors.items[0].text);
    }
}

static struct load_run *load_good(struct fixture *fixture, struct plan *plan)
{
    struct diag diag = {0};
    struct load_run *run = NULL;
    if (load_plan(fixture->load, fixture->now_ns, plan, NULL, &run, &diag) !=
        ERR_OK) {
        fail_msg("%s", diag.text);
    }
    assert_non_null(run);
    return run;
}

/* Take a pass: everything that may start starts. Returns how many did. */
static uint32_t start_all(struct fixture *fixture)
{
    struct sched_effect effect;
    uint32_t count = 0;
    while (sched_next_effect(fixture->sched, &effect)) {
        if (effect.type == EFFECT_START) {
            struct sched_event started = {
                .type = EVENT_STARTED,
                .now_ns = fixture->now_ns,
                .task = effect.task,
                .token = effect.token,
            };
            assert_int_equal(sched_apply(fixture->sched, &started), ERR_OK);
            count++;
        }
    }
    sched_verify(fixture->sched);
    return count;
}

static enum task_state state_of(const struct fixture *fixture,
                                const struct load_run *run,
                                const struct plan *plan,
                                const char *id)
{
    uint32_t task = plan_find_task(plan, id);
    assert_true(task != PLAN_NONE);
    return sched_task(fixture->sched, load_task(run, task)).state;
}

static void end_with(struct fixture *fixture,
                     const struct load_run *run,
                     const struct plan *plan,
                     const char *id,
                     enum sched_outcome outcome)
{
    struct task_id task = load_task(run, plan_find_task(plan, id));
    fixture->now_ns += MINUTE_NS;
    struct sched_event event = {
        .type = EVENT_ENDED,
        .now_ns = fixture->now_ns,
        .task = task,
        .token = sched_task(fixture->sched, task).token,
        .outcomes = &outcome,
        .outcome_count = 1,
    };
    assert_int_equal(sched_apply(fixture->sched, &event), ERR_OK);
}

static void end_task(struct fixture *fixture,
                     const struct load_run *run,
                     const struct plan *plan,
                     const char *id)
{
    end_with(fixture, run, plan, id, OUTCOME_DONE);
}

static void every_task_and_limit_finds_its_way_back(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct plan *one = read_plan(HEAD "tasks:\n"
                                      "  - {id: a, run: x}\n"
                                      "  - {id: b, run: x, needs: [a]}\n");
    struct plan *two = read_plan(HEAD "resources: {gpu: 2}\n"
                                      "tasks:\n"
                                      "  - {id: c, run: x, uses: {gpu: 1}}\n");
    struct load_run *runs[] = {load_good(&fixture, one),
                               load_good(&fixture, two)};
    struct plan *plans[] = {one, two};
    for (int ix = 0; ix < 2; ix++) {
        for (uint32_t task = 0; task < plans[ix]->task_count; task++) {
            struct task_id id = load_task(runs[ix], task);
            assert_int_equal(load_plan_task(runs[ix], id), task);
            assert_int_equal(load_plan_task(runs[1 - ix], id), PLAN_NONE);
        }
        for (uint32_t limit = 0; limit < plans[ix]->limit_count; limit++) {
            struct limit_id id = load_limit(runs[ix], limit);
            assert_int_equal(load_plan_limit(runs[ix], id), limit);
            assert_int_equal(load_plan_limit(runs[1 - ix], id), PLAN_NONE);
        }
    }
    assert_true(load_run_id(runs[0]).v != load_run_id(runs[1]).v);
    assert_int_equal(sched_task_count(fixture.sched), 3);
    tear_down(&fixture);
    plan_free(one);
    plan_free(two);
}

static void estimates_and_tiers_reach_the_core(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct plan *plan = read_plan(HEAD "tasks:\n"
                                       "  - {id: a, run: x, estimate: 7m}\n"
                                       "  - {id: b, run: x}\n"
                                       "  - {id: r, class: review, run: x}\n"
                                       "  - {id: s, class: review, run: x}\n"
                                       "  - {id: c, run: x, needs: [s]}\n");
    struct load_run *run = load_good(&fixture, plan);
    struct sched_task task = sched_task(fixture.sched, load_task(run, 0));
    assert_int_equal(task.estimate_ns, 7 * MINUTE_NS);
    task = sched_task(fixture.sched, load_task(run, 1));
    assert_int_equal(task.estimate_ns, PLAN_ESTIMATE_NS);
    assert_int_equal(PLAN_ESTIMATE_NS, 10 * MINUTE_NS);
    task = sched_task(fixture.sched, load_task(run, 2));
    assert_int_equal(task.tier, 1);
    assert_true(task.background);
    task = sched_task(fixture.sched, load_task(run, 3));
    assert_int_equal(task.tier, 0);
    assert_false(task.background);
    assert_int_equal(task.rank_ns, 20 * MINUTE_NS);
    tear_down(&fixture);
    plan_free(plan);
}

#define REPO_PLAN(name, path)                                                  \
    HEAD "repos: {" name ": {path: " path ", base: main}}\n"                   \
         "limits: {sessions: 5}\n"                                             \
         "tasks:\n"                                                            \
         "  - {id: a, repo: " name ", run: x}\n"                               \
         "  - {id: b, repo: " name ", run: x}\n"                               \
         "  - {id: c, run: x}\n"

/* One active issue per repo, whatever plan it comes from. */
static void limits_per_repo_hold_across_plans(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct plan *one = read_plan(REPO_PLAN("api", "../api"));
    struct plan *two = read_plan(REPO_PLAN("same", "../api"));
    struct plan *three = read_plan(REPO_PLAN("api", "../other"));
    struct load_run *run_one = load_good(&fixture, one);
    struct load_run *run_two = load_good(&fixture, two);
    struct load_run *run_three = load_good(&fixture, three);
    /* Of the repo ../api one task in all, of ../other one, and three c. */
    assert_int_equal(start_all(&fixture), 5);
    assert_int_equal(state_of(&fixture, run_one, one, "a"), TASK_RUNNING);
    assert_int_equal(state_of(&fixture, run_one, one, "b"), TASK_READY);
    assert_int_equal(state_of(&fixture, run_two, two, "a"), TASK_READY);
    assert_int_equal(state_of(&fixture, run_two, two, "b"), TASK_READY);
    assert_int_equal(state_of(&fixture, run_two, two, "c"), TASK_RUNNING);
    assert_int_equal(state_of(&fixture, run_three, three, "a"), TASK_RUNNING);
    assert_int_equal(state_of(&fixture, run_three, three, "b"), TASK_READY);

    struct why why =
        why_task(fixture.sched, load_task(run_two, plan_find_task(two, "a")));
    assert_int_equal(why.code, WHY_LIMIT);
    assert_string_equal(two->limits[load_plan_limit(run_two, why.limit)].name,
                        "active");

    /* When it ends, one task of either plan goes on, and no more. */
    end_task(&fixture, run_one, one, "a");
    assert_int_equal(start_all(&fixture), 1);
    int running = (state_of(&fixture, run_one, one, "b") == TASK_RUNNING) +
                  (state_of(&fixture, run_two, two, "a") == TASK_RUNNING);
    assert_int_equal(running, 1);
    tear_down(&fixture);
    plan_free(one);
    plan_free(two);
    plan_free(three);
}

static void other_limits_belong_to_one_plan(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    static const char text[] = HEAD "limits:\n"
                                    "  sessions: 2\n"
                                    "  owner: {max: 1, per: owner}\n"
                                    "tasks:\n"
                                    "  - {id: a, run: x, owner: me}\n"
                                    "  - {id: b, run: x, owner: me}\n";
    struct plan *one = read_plan(text);
    struct plan *two = read_plan(text);
    struct load_run *run_one = load_good(&fixture, one);
    struct load_run *run_two = load_good(&fixture, two);
    assert_int_equal(start_all(&fixture), 2);
    assert_int_equal(state_of(&fixture, run_one, one, "a"), TASK_RUNNING);
    assert_int_equal(state_of(&fixture, run_two, two, "a"), TASK_RUNNING);
    assert_int_equal(state_of(&fixture, run_two, two, "b"), TASK_READY);
    tear_down(&fixture);
    plan_free(one);
    plan_free(two);
}

static void more_is_added_behind_what_is_there(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct plan *plan = read_plan(HEAD "limits: {sessions: 9}\n"
                                       "tasks:\n"
                                       "  - {id: a, run: x}\n"
                                       "  - {id: b, run: x, needs: [a]}\n");
    struct load_run *run = load_good(&fixture, plan);
    assert_int_equal(start_all(&fixture), 1);
    add_to_plan(plan,
                "resources: {gpu: 1}\n"
                "groups: [{id: g}]\n"
                "tasks:\n"
                "  - {id: c, run: x, needs: [a], uses: {gpu: 1}}\n"
                "  - {id: d, run: x, group: g, uses: {gpu: 1}}\n"
                "  - {id: e, run: x, class: new, provider: cloud, group: g}\n"
                "needs:\n"
                "  b: [c]\n");
    struct diag diag = {0};
    assert_int_equal(load_more(run, fixture.now_ns, &diag), ERR_OK);
    assert_int_equal(start_all(&fixture), 2);
    assert_int_equal(state_of(&fixture, run, plan, "d"), TASK_RUNNING);
    assert_int_equal(state_of(&fixture, run, plan, "e"), TASK_RUNNING);
    end_task(&fixture, run, plan, "a");
    assert_int_equal(start_all(&fixture), 0); /* c waits for gpu, b for c */
    end_task(&fixture, run, plan, "d");
    assert_int_equal(start_all(&fixture), 1);
    assert_int_equal(state_of(&fixture, run, plan, "c"), TASK_RUNNING);
    end_task(&fixture, run, plan, "c");
    assert_int_equal(start_all(&fixture), 1);
    assert_int_equal(state_of(&fixture, run, plan, "b"), TASK_RUNNING);
    tear_down(&fixture);
    plan_free(plan);
}

/* a runs, so it cannot come to need anything. */
static void a_refused_addition_leaves_no_trace(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct plan *plan = read_plan(HEAD "limits: {sessions: 9}\n"
                                       "tasks:\n"
                                       "  - {id: a, run: x}\n"
                                       "  - {id: b, run: x, needs: [a]}\n");
    struct load_run *run = load_good(&fixture, plan);
    assert_int_equal(start_all(&fixture), 1);
    for (int times = 0; times < 3; times++) {
        add_to_plan(plan,
                    "resources: {gpu: 1}\n"
                    "groups: [{id: g}]\n"
                    "tasks:\n"
                    "  - {id: c, run: x, class: new, provider: cloud, "
                    "group: g, uses: {gpu: 1}}\n"
                    "needs:\n"
                    "  a: [c]\n");
        struct diag diag = {0};
        assert_int_equal(load_more(run, fixture.now_ns, &diag), ERR_CONFLICT);
        assert_string_equal(diag.text,
                            "task \"a\" is already running and cannot get new "
                            "needs: let a new task need both");
        plan_undo_add(plan);
        assert_int_equal(sched_task_count(fixture.sched), 2);
        assert_int_equal(plan_find_task(plan, "c"), PLAN_NONE);
        assert_int_equal(start_all(&fixture), 0);
    }

    /* A good one after it has its own limit, class and provider. */
    add_to_plan(plan,
                "resources: {tpu: 1}\n"
                "tasks:\n"
                "  - {id: d, run: x, class: other, provider: cloud, "
                "uses: {tpu: 1}}\n"
                "  - {id: e, run: x, uses: {tpu: 1}}\n"
                "  - {id: f, run: x}\n");
    struct diag diag = {0};
    assert_int_equal(load_more(run, fixture.now_ns, &diag), ERR_OK);
    assert_int_equal(start_all(&fixture), 2);
    assert_int_equal(state_of(&fixture, run, plan, "d"), TASK_RUNNING);
    assert_int_equal(state_of(&fixture, run, plan, "e"), TASK_READY);
    assert_int_equal(state_of(&fixture, run, plan, "f"), TASK_RUNNING);
    struct why why =
        why_task(fixture.sched, load_task(run, plan_find_task(plan, "e")));
    assert_int_equal(why.code, WHY_LIMIT);
    assert_string_equal(plan->limits[load_plan_limit(run, why.limit)].name,
                        "tpu");
    tear_down(&fixture);
    plan_free(plan);
}

static void says_why_an_ended_task_cannot_gain_a_need(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct plan *plan = read_plan(HEAD "tasks: [{id: a, run: x}]\n");
    struct load_run *run = load_good(&fixture, plan);
    assert_int_equal(start_all(&fixture), 1);
    end_task(&fixture, run, plan, "a");
    assert_int_equal(start_all(&fixture), 0);
    add_to_plan(plan, "tasks: [{id: c, run: x}]\nneeds: {a: [c]}\n");
    struct diag diag = {0};
    assert_int_equal(load_more(run, fixture.now_ns, &diag), ERR_CONFLICT);
    assert_string_equal(
        diag.text,
        "task \"a\" has already finished and cannot get new needs");
    plan_undo_add(plan);
    tear_down(&fixture);
    plan_free(plan);
}

static void an_empty_fragment_adds_nothing(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct plan *plan = read_plan(HEAD "tasks: [{id: a, run: x}]\n");
    struct load_run *run = load_good(&fixture, plan);
    assert_int_equal(start_all(&fixture), 1);
    add_to_plan(plan, "");
    assert_int_equal(load_more(run, fixture.now_ns, NULL), ERR_OK);
    assert_int_equal(start_all(&fixture), 0);
    assert_int_equal(sched_task_count(fixture.sched), 1);
    tear_down(&fixture);
    plan_free(plan);
}

static void two_runs_grow_side_by_side(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct plan *one = read_plan(HEAD "limits: {sessions: 9}\n"
                                      "tasks: [{id: a, run: x}]\n");
    struct plan *two = read_plan(HEAD "limits: {sessions: 9}\n"
                                      "tasks: [{id: a, run: x}]\n");
    struct load_run *run_one = load_good(&fixture, one);
    struct load_run *run_two = load_good(&fixture, two);
    for (int ix = 0; ix < 4; ix++) {
        struct strbuf text = {0};
        strbuf_addf(&text, "tasks: [{id: n%d, run: x, needs: [a]}]\n", ix);
        add_to_plan(one, strbuf_text(&text));
        assert_int_equal(load_more(run_one, fixture.now_ns, NULL), ERR_OK);
        add_to_plan(two, strbuf_text(&text));
        assert_int_equal(load_more(run_two, fixture.now_ns, NULL), ERR_OK);
        strbuf_release(&text);
    }
    assert_int_equal(start_all(&fixture), 2);
    end_task(&fixture, run_one, one, "a");
    assert_int_equal(start_all(&fixture), 4);
    for (uint32_t task = 1; task < 5; task++) {
        struct task_id id = load_task(run_one, task);
        assert_int_equal(load_plan_task(run_one, id), task);
        assert_int_equal(load_plan_task(run_two, id), PLAN_NONE);
        assert_int_equal(sched_task(fixture.sched, id).state, TASK_RUNNING);
        id = load_task(run_two, task);
        assert_int_equal(sched_task(fixture.sched, id).state, TASK_WAITING);
    }
    tear_down(&fixture);
    plan_free(one);
    plan_free(two);
}

static struct load_run *
load_from(struct fixture *fixture, struct plan *plan, const char *folder)
{
    struct load_options options = {.folder = folder};
    struct diag diag = {0};
    struct load_run *run = NULL;
    if (load_plan(fixture->load,
                  fixture->now_ns,
                  plan,
                  &options,
                  &run,
                  &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    return run;
}

/* Two plans in two folders: how many sessions in all when both are loaded. */
static uint32_t starts_of_two(const char *folder_one,
                              const char *path_one,
                              const char *folder_two,
                              const char *path_two)
{
    struct fixture fixture;
    set_up(&fixture);
    static const char form[] = HEAD "repos: {r: {path: \"%s\", base: main}}\n"
                                    "limits: {sessions: 5}\n"
                                    "tasks: [{id: a, repo: r, run: x}]\n";
    struct strbuf text = {0};
    strbuf_addf(&text, form, path_one);
    struct plan *one = read_plan(strbuf_text(&text));
    strbuf_clear(&text);
    strbuf_addf(&text, form, path_two);
    struct plan *two = read_plan(strbuf_text(&text));
    strbuf_release(&text);
    (void)load_from(&fixture, one, folder_one);
    (void)load_from(&fixture, two, folder_two);
    uint32_t count = start_all(&fixture);
    tear_down(&fixture);
    plan_free(one);
    plan_free(two);
    return count;
}

static void a_repo_is_meant_from_the_folder_of_its_plan(void **state)
{
    (void)state;
    /* The same repository: one active issue in all. */
    assert_int_equal(starts_of_two("/p/one", "../r", "/p/two", "../r"), 1);
    assert_int_equal(starts_of_two("/p/one", "r", "/p", "one/r"), 1);
    assert_int_equal(starts_of_two("/p", "./a/../r/", "/q", "/p//r"), 1);
    assert_int_equal(starts_of_two("/p/", ".", "/q/./", "../p"), 1);
    assert_int_equal(starts_of_two("/", "..", "/p", "../../.."), 1);
    assert_int_equal(starts_of_two("/", "r", "/p", "../../r"), 1);
    /* Others. */
    assert_int_equal(starts_of_two("/p/one", "r", "/p/two", "r"), 2);
    assert_int_equal(starts_of_two("/p", "..r", "/p", "r"), 2);
    assert_int_equal(starts_of_two("/p", ".r", "/p", "r"), 2);
    /* Without a folder they are as written. */
    assert_int_equal(starts_of_two(NULL, "./r", NULL, "r"), 2);
    assert_int_equal(starts_of_two(NULL, "r", NULL, "r"), 1);
}

static void commands_back_off_by_class(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct plan *plan = read_plan(HEAD "tasks:\n"
                                       "  - {id: a, run: x, class: implement}\n"
                                       "  - {id: b, run: x, class: gate}\n"
                                       "  - {id: c, run: x, class: gate}\n");
    struct load_run *run = load_good(&fixture, plan);
    struct provider_id of[3];
    for (uint32_t ix = 0; ix < 3; ix++) {
        of[ix] = sched_task(fixture.sched, load_task(run, ix)).provider;
    }
    assert_int_not_equal(of[0].v, of[1].v);
    assert_int_equal(of[1].v, of[2].v);
    assert_string_equal(load_provider_name(fixture.load, of[0]),
                        "local:implement");
    assert_string_equal(load_provider_name(fixture.load, of[1]), "local:gate");
    tear_down(&fixture);
    plan_free(plan);
}

static void plans_share_providers_by_name(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct plan *one = read_plan(HEAD "providers: {cloud: {backoff: 7s}}\n"
                                      "tasks:\n"
                                      "  - {id: a, run: x, provider: cloud}\n");
    struct plan *two = read_plan(HEAD "tasks:\n"
                                      "  - {id: a, run: x, provider: other}\n"
                                      "  - {id: b, run: x, provider: cloud}\n");
    struct load_run *run_one = load_good(&fixture, one);
    assert_int_equal(load_provider_count(fixture.load), 1);
    struct load_run *run_two = load_good(&fixture, two);
    assert_int_equal(load_provider_count(fixture.load), 2);
    struct provider_id other = load_find_provider(fixture.load, "other");
    assert_string_equal(load_provider_name(fixture.load, other), "other");
    assert_true(load_uses_provider(run_two, other));
    assert_false(load_uses_provider(run_one, other));
    assert_int_equal(load_find_provider(fixture.load, "none").v, ID_NONE);
    struct provider_id cloud =
        sched_task(fixture.sched, load_task(run_one, 0)).provider;
    assert_int_equal(
        sched_task(fixture.sched, load_task(run_two, 1)).provider.v,
        cloud.v);
    /* The settings of the first plan count. */
    struct sched_effect effect;
    while (sched_next_effect(fixture.sched, &effect)) {
    }
    static const enum sched_outcome refused = OUTCOME_REFUSED;
    struct task_id tasks[] = {load_task(run_one, 0), load_task(run_two, 1)};
    for (uint32_t ix = 0; ix < 2; ix++) {
        struct sched_event event = {
            .type = EVENT_ENDED,
            .task = tasks[ix],
            .token = sched_task(fixture.sched, tasks[ix]).token,
            .retry_at_ns = SCHED_NEVER,
            .outcomes = &refused,
            .outcome_count = 1,
        };
        assert_int_equal(sched_apply(fixture.sched, &event), ERR_OK);
    }
    int64_t until_ns = 0;
    assert_int_equal(sched_provider_state(fixture.sched, cloud, &until_ns),
                     PROVIDER_BACKOFF);
    assert_int_equal(until_ns, 7 * SECOND_NS);
    tear_down(&fixture);
    plan_free(one);
    plan_free(two);
}

/* A plan that has grown is loaded as if it had always been so. */
static void a_plan_that_has_grown_is_loaded_whole(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct plan *plan = read_plan(HEAD "limits: {sessions: 9}\n"
                                       "tasks:\n"
                                       "  - {id: a, run: x}\n"
                                       "  - {id: b, run: x, needs: [a]}\n");
    add_to_plan(plan,
                "resources: {gpu: 1}\n"
                "tasks: [{id: c, run: x, uses: {gpu: 1}}]\n"
                "needs: {b: [c]}\n");
    assert_int_equal(plan->edge_count, 1);
    struct load_run *run = load_good(&fixture, plan);
    struct sched_task b =
        sched_task(fixture.sched, load_task(run, plan_find_task(plan, "b")));
    assert_int_equal(b.unmet, 2); /* each need counts once */
    assert_int_equal(start_all(&fixture), 2);
    end_task(&fixture, run, plan, "a");
    assert_int_equal(start_all(&fixture), 0);
    end_task(&fixture, run, plan, "c");
    assert_int_equal(start_all(&fixture), 1);
    tear_down(&fixture);
    plan_free(plan);
}

/* Take the records of all tasks, as indices of the plan. */
static void take_records(const struct fixture *fixture,
                         const struct load_run *run,
                         const struct plan *plan,
                         struct sched_record *records)
{
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        records[ix] = sched_record(fixture->sched, load_task(run, ix));
        struct task_id leader = {records[ix].leader};
        struct task_id cause = {records[ix].cause};
        records[ix].leader = load_plan_task(run, leader);
        records[ix].cause = load_plan_task(run, cause);
    }
}

static void a_plan_goes_on_from_records(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct plan *other = read_plan(HEAD "tasks: [{id: z, run: x}]\n");
    (void)load_good(&fixture, other); /* so that indices differ */
    struct plan *plan = read_plan(HEAD "limits: {sessions: 2}\n"
                                       "tasks:\n"
                                       "  - {id: a, run: x}\n"
                                       "  - {id: b, run: x}\n"
                                       "  - {id: c, run: x, needs: [a]}\n");
    struct load_run *run = load_good(&fixture, plan);
    assert_int_equal(start_all(&fixture), 3);
    end_task(&fixture, run, plan, "a");
    assert_int_equal(start_all(&fixture), 1);
    add_to_plan(plan, "tasks: [{id: d, run: x, needs: [c]}]\n");
    assert_int_equal(load_more(run, fixture.now_ns, NULL), ERR_OK);
    assert_int_equal(start_all(&fixture), 0);
    struct sched_record records[4];
    take_records(&fixture, run, plan, records);
    struct sched_run_record run_record =
        sched_run_record(fixture.sched, load_run_id(run));
    tear_down(&fixture);

    set_up(&fixture);
    sched_restore(fixture.sched, fixture.now_ns, 9);
    struct load_options options = {.records = records, .run = &run_record};
    struct diag diag = {0};
    assert_int_equal(
        load_plan(fixture.load, fixture.now_ns, plan, &options, &run, &diag),
        ERR_OK);
    assert_int_equal(start_all(&fixture), 0);
    assert_int_equal(state_of(&fixture, run, plan, "a"), TASK_DONE);
    assert_int_equal(state_of(&fixture, run, plan, "b"), TASK_RUNNING);
    assert_int_equal(state_of(&fixture, run, plan, "c"), TASK_RUNNING);
    assert_int_equal(state_of(&fixture, run, plan, "d"), TASK_WAITING);
    assert_int_equal(sched_run(fixture.sched, load_run_id(run)).completions, 1);
    end_task(&fixture, run, plan, "c");
    assert_int_equal(start_all(&fixture), 1);
    assert_int_equal(state_of(&fixture, run, plan, "d"), TASK_RUNNING);
    tear_down(&fixture);

    set_up(&fixture);
    records[1].token = 0;
    assert_int_equal(
        load_plan(fixture.load, fixture.now_ns, plan, &options, &run, &diag),
        ERR_CORRUPT);
    assert_null(run);
    assert_string_equal(diag.text, "impossible stored state of task \"b\"");
    tear_down(&fixture);
    plan_free(plan);
    plan_free(other);
}

static void set_store_limit(struct fixture *fixture,
                            const struct load_run *run,
                            const char *name,
                            int64_t max)
{
    struct sched_event event = {
        .type = EVENT_LIMIT,
        .now_ns = fixture->now_ns,
        .limit = load_store_limit(run, name),
        .max = max,
    };
    assert_int_not_equal(event.limit.v, ID_NONE);
    assert_string_equal(load_store_limit_name(run, event.limit), name);
    assert_int_equal(load_plan_limit(run, event.limit), PLAN_NONE);
    assert_int_equal(sched_apply(fixture->sched, &event), ERR_OK);
}

static void limits_of_the_store_hold_across_runs(void **state)
{
    (void)state;
    static const char text[] = HEAD "limits: {sessions: 5}\n"
                                    "tasks:\n"
                                    "  - {id: a, run: x, provider: one}\n"
                                    "  - {id: b, run: x, provider: one}\n"
                                    "  - {id: c, run: x}\n";
    struct fixture fixture;
    set_up(&fixture);
    struct plan *plans[] = {read_plan(text), read_plan(text)};
    struct load_run *runs[] = {load_good(&fixture, plans[0]),
                               load_good(&fixture, plans[1])};
    add_to_plan(plans[1], "tasks: [{id: d, run: x, provider: two}]\n");
    struct diag diag = {0};
    assert_int_equal(load_more(runs[1], 0, &diag), ERR_OK);
    assert_int_equal(load_store_limit_count(runs[0]), 2);
    assert_int_equal(load_store_limit_count(runs[1]), 3);
    assert_int_equal(load_store_limit(runs[0], "two").v, ID_NONE);
    assert_int_equal(load_store_limit_at(runs[1], 2).v,
                     load_store_limit(runs[1], "two").v);
    assert_null(load_store_limit_name(runs[0], load_limit(runs[0], 0)));
    for (int ix = 0; ix < 2; ix++) {
        set_store_limit(&fixture, runs[ix], "sessions", 2);
        set_store_limit(&fixture, runs[ix], "one", 1);
    }
    set_store_limit(&fixture, runs[1], "two", 0);
    /* One of provider one in all, and one more. */
    assert_int_equal(start_all(&fixture), 2);
    assert_int_equal(state_of(&fixture, runs[0], plans[0], "a"), TASK_RUNNING);
    assert_int_equal(state_of(&fixture, runs[0], plans[0], "c"), TASK_RUNNING);
    for (int ix = 0; ix < 2; ix++) {
        set_store_limit(&fixture, runs[ix], "sessions", LIMIT_NONE);
    }
    assert_int_equal(start_all(&fixture), 1);
    assert_int_equal(state_of(&fixture, runs[1], plans[1], "c"), TASK_RUNNING);
    end_task(&fixture, runs[0], plans[0], "a");
    assert_int_equal(start_all(&fixture), 1);
    set_store_limit(&fixture, runs[1], "two", 1);
    assert_int_equal(start_all(&fixture), 1);
    assert_int_equal(state_of(&fixture, runs[1], plans[1], "d"), TASK_RUNNING);
    tear_down(&fixture);
    plan_free(plans[0]);
    plan_free(plans[1]);
}

static void outcomes_approval_and_last_tasks_reach_the_core(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct plan *plan =
        read_plan(HEAD "limits: {sessions: 9}\n"
                       "defaults: {retry: 0}\n"
                       "groups: [{id: g, finally: [{id: g-end, run: x}]}]\n"
                       "tasks:\n"
                       "  - {id: a, run: x, group: g}\n"
                       "  - {id: fix, run: x, needs: [{task: a, on: failed}]}\n"
                       "  - {id: any, run: x, needs: [{task: a, on: any}]}\n"
                       "  - {id: b, run: x, approve: true}\n"
                       "finally: [{id: end, run: x}]\n");
    struct load_run *run = load_good(&fixture, plan);
    assert_int_equal(start_all(&fixture), 1);
    assert_int_equal(state_of(&fixture, run, plan, "b"), TASK_READY);
    struct task_id b = load_task(run, plan_find_task(plan, "b"));
    assert_true(sched_task(fixture.sched, b).unapproved);
    end_with(&fixture, run, plan, "a", OUTCOME_FAILED);
    assert_int_equal(start_all(&fixture), 3);
    assert_int_equal(state_of(&fixture, run, plan, "fix"), TASK_RUNNING);
    assert_int_equal(state_of(&fixture, run, plan, "any"), TASK_RUNNING);
    assert_int_equal(state_of(&fixture, run, plan, "g-end"), TASK_RUNNING);
    struct sched_event approve = {
        .type = EVENT_APPROVE,
        .now_ns = fixture.now_ns,
        .task = b,
    };
    assert_int_equal(sched_apply(fixture.sched, &approve), ERR_OK);
    assert_int_equal(start_all(&fixture), 1);
    end_task(&fixture, run, plan, "fix");
    end_task(&fixture, run, plan, "any");
    end_task(&fixture, run, plan, "b");
    assert_int_equal(start_all(&fixture), 0);
    end_with(&fixture, run, plan, "g-end", OUTCOME_FAILED);
    assert_int_equal(start_all(&fixture), 1);
    assert_int_equal(state_of(&fixture, run, plan, "end"), TASK_RUNNING);
    tear_down(&fixture);
    plan_free(plan);
}

static void times_are_those_of_the_core(void **state)
{
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    struct plan *plan = read_plan(
        HEAD "limits: {sessions: 9}\n"
             "deadline: 6h\n"
             "tasks:\n"
             "  - {id: a, run: x}\n"
             "  - {id: b, run: x, not_before: 2030-01-31T12:00:00Z}\n"
             "  - {id: c, run: x, not_before: 2030-01-31T10:00:00Z}\n");
    int64_t noon_ns = INT64_C(1896091200) * SECOND_NS;
    struct load_options options = {
        .start_ns = noon_ns - 2 * HOUR_NS,
        .clock_offset_ns = noon_ns - 2 * HOUR_NS,
        .not_before_ns = noon_ns - HOUR_NS,
    };
    struct load_run *run = NULL;
    struct diag diag = {0};
    assert_int_equal(load_plan(fixture.load, 0, plan, &options, &run, &diag),
                     ERR_OK);
    /* It starts an hour later, and so does its time. */
    assert_int_equal(sched_run(fixture.sched, load_run_id(run)).deadline_ns,
                     7 * HOUR_NS);
    assert_int_equal(start_all(&fixture), 0);
    fixture.now_ns = HOUR_NS;
    struct sched_event tick = {.type = EVENT_TICK, .now_ns = fixture.now_ns};
    assert_int_equal(sched_apply(fixture.sched, &tick), ERR_OK);
    assert_int_equal(start_all(&fixture), 2);
    assert_int_equal(state_of(&fixture, run, plan, "b"), TASK_WAITING);
    fixture.now_ns = 2 * HOUR_NS;
    tick.now_ns = fixture.now_ns;
    assert_int_equal(sched_apply(fixture.sched, &tick), ERR_OK);
    assert_int_equal(start_all(&fixture), 1);
    tear_down(&fixture);
    plan_free(plan);
}

static void freeing_nothing_is_allowed(void **state)
{
    (void)state;
    load_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_and_limit_finds_its_way_back),
        cmocka_unit_test(estimates_and_tiers_reach_the_core),
        cmocka_unit_test(limits_per_repo_hold_across_plans),
        cmocka_unit_test(other_limits_belong_to_one_plan),
        cmocka_unit_test(more_is_added_behind_what_is_there),
        cmocka_unit_test(a_refused_addition_leaves_no_trace),
        cmocka_unit_test(says_why_an_ended_task_cannot_gain_a_need),
        cmocka_unit_test(an_empty_fragment_adds_nothing),
        cmocka_unit_test(two_runs_grow_side_by_side),
        cmocka_unit_test(a_repo_is_meant_from_the_folder_of_its_plan),
        cmocka_unit_test(commands_back_off_by_class),
        cmocka_unit_test(plans_share_providers_by_name),
        cmocka_unit_test(a_plan_that_has_grown_is_loaded_whole),
        cmocka_unit_test(a_plan_goes_on_from_records),
        cmocka_unit_test(limits_of_the_store_hold_across_runs),
        cmocka_unit_test(outcomes_approval_and_last_tasks_reach_the_core),
        cmocka_unit_test(times_are_those_of_the_core),
        cmocka_unit_test(freeing_nothing_is_allowed),
    };
    return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
