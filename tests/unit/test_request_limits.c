/* SPDX-License-Identifier: MIT */
/*
 * Requests about limits: what is refused changes nothing, and what is set holds
 * after a restart.
 */
#include "plan/site.h"
#include "tests/unit/engine_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char plan[] =
    "sluice: 1\n"
    "name: wave\n"
    "limits: {sessions: none, gpu: {max: 3}}\n"
    "budget: {usd: 10, tokens: 1000}\n"
    "classes: {audit: {budget: {tokens: 500}, cost: {tokens: 1}}}\n"
    "repos: {api: {path: api, base: main, gate: test}}\n"
    "defaults: {retry: {max: 0}, cost: {usd: 0.1, tokens: 1}}\n"
    "pipelines: {p: [{stage: merge, merge: true}]}\n"
    "groups: [{id: g, repo: api, pipeline: p}]\n"
    "tasks:\n"
    "  - {id: a, run: x, budget: {usd: 1}}\n"
    "  - {id: b, class: audit, run: x, provider: max}\n"
    "  - {id: c, class: audit, run: x, approve: true}\n";

struct refusal {
    const char *request;
    const char *error;
    const char *part;
};

static void open_plan(struct rig *rig)
{
    rig_start(rig);
    rig_submit(rig, plan);
}

static void
refuse_all(struct rig *rig, const struct refusal *refusals, size_t count)
{
    for (size_t ix = 0; ix < count; ix++) {
        rig_refuse(rig,
                   refusals[ix].request,
                   refusals[ix].error,
                   refusals[ix].part);
    }
}

/* --- the cap ------------------------------------------------------------ */

static void a_cap_of_none_has_no_steps(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    rig_refuse(&rig, "{'verb':'cap','step':1}", "conflict", "set a number");
    rig_expect(&rig, "{'verb':'cap','max':1}", "cap of run wave: 1");
    rig_expect(&rig, "{'verb':'cap','step':-3}", "cap of run wave: 0");
    rig_restart(&rig);
    rig_expect(&rig, "{'verb':'cap','step':1}", "cap of run wave: 1");
    rig_release(&rig);
}

static void a_cap_that_is_no_count_is_refused(void **state)
{
    static const struct refusal refusals[] = {
        {"{'verb':'cap'}", "invalid", "from 0 to 2147483647"},
        {"{'verb':'cap','max':-1}", "invalid", "from 0 to 2147483647"},
        {"{'verb':'cap','max':'2'}", "invalid", "from 0 to 2147483647"},
        {"{'verb':'cap','max':2147483648}", "invalid", "from 0 to 2147483647"},
        {"{'verb':'cap','max':1,'run':'wavy'}",
         "not-found",
         "no unfinished run 'wavy'"},
    };
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    refuse_all(&rig, refusals, ARRAY_COUNT(refusals));
    rig_refuse(&rig, "{'verb':'cap','step':1}", "conflict", "none"); /* still */
    rig_release(&rig);
}

/* --- limits of a run ---------------------------------------------------- */

static void a_limit_takes_only_what_it_can_have(void **state)
{
    static const struct refusal refusals[] = {
        {"{'verb':'limit'}", "invalid", "needs the name"},
        {"{'verb':'limit','limit':'gpu'}", "invalid", "from 1% to 100%"},
        {"{'verb':'limit','limit':'gpu','max':'many'}",
         "invalid",
         "invalid maximum 'many'"},
        {"{'verb':'limit','limit':'sessions','max':'50%'}",
         "invalid",
         "from 0 to 1000000, or none"},
        {"{'verb':'limit','limit':'merge queue of api'}",
         "invalid",
         "use a number from 1 to"},
        {"{'verb':'limit','limit':'merge queue of api','max':'0'}",
         "invalid",
         "use a number from 1 to"},
        {"{'verb':'limit','limit':'merge queue of api','max':'none'}",
         "invalid",
         "use a number from 1 to"},
        {"{'verb':'limit','limit':'gpy','max':'1'}", "not-found", "gpu"},
        {"{'verb':'limit','limit':'usd budget','max':'1'}",
         "invalid",
         "is a budget"},
        {"{'verb':'limit','limit':'cost of audit','max':'1'}",
         "invalid",
         "follows from the budgets"},
        {"{'verb':'limit','limit':'gpu','max':'1','run':'x'}",
         "not-found",
         "no unfinished run"},
    };
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    refuse_all(&rig, refusals, ARRAY_COUNT(refusals));
    rig_expect(&rig, "{'verb':'limit','limit':'gpu','max':'2'}", "wave: 2");
    rig_release(&rig);
}

static void a_window_is_set_and_a_lower_one_is_named(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    rig_stop(&rig);
    uint32_t limit = 0;
    /* As a failed merge has left it: plans have the limit at this index. */
    rig_start(&rig);
    limit = plan_find_limit(engine_plan(rig.engine, 0), "merge queue of api");
    assert_int_not_equal(limit, PLAN_NONE);
    rig_stop(&rig);
    char name[32];
    (void)snprintf(name, sizeof(name), "window/1/%u", limit);
    rig_store_setting(&rig, name, "2");
    rig_start(&rig);
    rig_expect(&rig,
               "{'verb':'limit','limit':'merge queue of api','max':'5'}",
               "lowered to 2 for now");
    rig_release(&rig);
}

static void a_share_of_no_limit_has_no_number(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    rig_expect(&rig,
               "{'verb':'limit','limit':'gpu','max':'50%'}",
               "limit gpu of run wave: 50%\"");
    rig_expect(&rig, "{'verb':'cap','max':4}", "4");
    rig_expect(&rig,
               "{'verb':'limit','limit':'gpu','max':'50%'}",
               "limit gpu of run wave: 50% (2)");
    rig_expect(&rig,
               "{'verb':'limit','limit':'gpu','max':'none'}",
               "limit gpu of run wave: none");
    rig_release(&rig);
}

/* --- limits of the store ------------------------------------------------ */

static void a_limit_of_the_store_needs_a_maximum_and_a_name(void **state)
{
    static const struct refusal refusals[] = {
        {"{'verb':'limit','store':true,'limit':'max'}",
         "invalid",
         "invalid maximum ''"},
        {"{'verb':'limit','store':true,'limit':'max','max':'2%'}",
         "invalid",
         "invalid maximum '2%'"},
        {"{'verb':'limit','store':true,'limit':'mac','max':'2'}",
         "not-found",
         "max"},
    };
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    refuse_all(&rig, refusals, ARRAY_COUNT(refusals));
    assert_int_equal(engine_ceiling_count(rig.engine), 0);
    rig_release(&rig);
}

static void a_limit_of_the_store_returns_to_the_settings(void **state)
{
    (void)state;
    struct rig rig = {0};
    char name[] = "max";
    struct site_limit limits[] = {{.name = name, .max = 3}};
    struct site site = {.limits = limits, .limit_count = 1};
    open_plan(&rig);
    rig_expect(&rig,
               "{'verb':'limit','store':true,'limit':'max','max':'default'}",
               "limit max of the store: none");
    engine_take_site(rig.engine, &site);
    rig_settle(&rig);
    rig_expect(&rig,
               "{'verb':'limit','store':true,'limit':'max','max':'1'}",
               "limit max of the store: 1");
    rig_restart(&rig);
    assert_int_equal(engine_ceiling(rig.engine, 0).max, 1);
    rig_expect(&rig,
               "{'verb':'limit','store':true,'limit':'max','max':'default'}",
               "limit max of the store: 3, from settings.yaml");
    limits[0].max = 2; /* the file has changed */
    engine_take_site(rig.engine, &site);
    engine_take_site(rig.engine, &site);
    rig_settle(&rig);
    rig_restart(&rig);
    assert_int_equal(engine_ceiling(rig.engine, 0).max, 2);
    site.limit_count = 0; /* the file has it no more */
    engine_take_site(rig.engine, &site);
    rig_expect(&rig,
               "{'verb':'limit','store':true,'limit':'max','max':'default'}",
               "limit max of the store: none");
    rig_release(&rig);
}

static void a_known_name_of_the_store_needs_no_run(void **state)
{
    (void)state;
    struct rig rig = {0};
    rig_start(&rig);
    rig_expect(&rig,
               "{'verb':'limit','store':true,'limit':'mox','max':'none'}",
               "limit mox of the store: none; no unfinished run has");
    rig_submit(&rig, plan); /* with the provider max */
    rig_expect(&rig,
               "{'verb':'limit','store':true,'limit':'mox','max':'2'}",
               "limit mox of the store: 2; no unfinished run has");
    rig_expect(&rig,
               "{'verb':'limit','store':true,'limit':'max','max':'2'}",
               "limit max of the store: 2\"");
    assert_int_equal(engine_ceiling(rig.engine, 0).used, 0);
    assert_int_equal(engine_ceiling(rig.engine, 1).used, 1); /* b */
    rig_release(&rig);
}

/* --- money -------------------------------------------------------------- */

static void a_budget_that_is_no_amount_is_refused(void **state)
{
    static const struct refusal refusals[] = {
        {"{'verb':'budget'}", "invalid", "a budget needs"},
        {"{'verb':'budget','usd':'1'}", "invalid", "a budget needs"},
        {"{'verb':'budget','usd':-1}", "invalid", "a budget needs"},
        {"{'verb':'budget','usd':100001}", "invalid", "up to 100000"},
        {"{'verb':'budget','usd':1,'tokens':-1}", "invalid", "a budget needs"},
        {"{'verb':'budget','tokens':2000000000}", "invalid", "up to 1000000"},
        {"{'verb':'budget','usd':1,'run':'x'}", "not-found", "no unfinished"},
        {"{'verb':'budget','usd':1,'task':'z'}", "not-found", "no task 'z'"},
        {"{'verb':'budget','usd':1,'task':'g'}", "invalid", "is a group"},
        {"{'verb':'budget','usd':1,'class':'audit'}",
         "not-found",
         "no usd budget of audit: budgets can be changed, not added"},
        {"{'verb':'budget','tokens':1,'class':'adit'}",
         "not-found",
         "no tokens budget of adit"},
    };
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    refuse_all(&rig, refusals, ARRAY_COUNT(refusals));
    rig_expect(&rig,
               "{'verb':'budget','usd':7,'tokens':70}",
               "'limits':{'usd budget':700");
    rig_release(&rig);
}

/* A task that is parked for another reason is not retried for money. */
static void a_budget_retries_only_what_lacks_money(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    rig_begin(&rig, "a");
    rig_end(&rig, "a", 30, "{'reason':'which?','cost_usd':2}");
    rig_state(&rig, "a", "parked");
    rig_expect(&rig, "{'verb':'budget','usd':3,'task':'a'}", "is set");
    rig_state(&rig, "a", "parked");
    rig_release(&rig);
}

/* --- usage -------------------------------------------------------------- */

static void usage_is_overridden_or_not(void **state)
{
    (void)state;
    struct rig rig = {0};
    open_plan(&rig);
    rig_refuse(&rig,
               "{'verb':'usage','override':'yes'}",
               "invalid",
               "must be true or false");
    assert_false(engine_is_overridden(rig.engine));
    rig_expect(&rig, "{'verb':'usage','override':true}", "is overridden");
    rig_restart(&rig);
    assert_true(engine_is_overridden(rig.engine));
    rig_expect(&rig, "{'verb':'usage','override':false}", "no longer");
    rig_restart(&rig);
    assert_false(engine_is_overridden(rig.engine));
    rig_release(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cap_of_none_has_no_steps),
        cmocka_unit_test(a_cap_that_is_no_count_is_refused),
        cmocka_unit_test(a_limit_takes_only_what_it_can_have),
        cmocka_unit_test(a_window_is_set_and_a_lower_one_is_named),
        cmocka_unit_test(a_share_of_no_limit_has_no_number),
        cmocka_unit_test(a_limit_of_the_store_needs_a_maximum_and_a_name),
        cmocka_unit_test(a_limit_of_the_store_returns_to_the_settings),
        cmocka_unit_test(a_known_name_of_the_store_needs_no_run),
        cmocka_unit_test(a_budget_that_is_no_amount_is_refused),
        cmocka_unit_test(a_budget_retries_only_what_lacks_money),
        cmocka_unit_test(usage_is_overridden_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
