/* SPDX-License-Identifier: MIT */
#include "view/chain.h"

#include "base/duration.h"
#include "base/jsonw.h"
#include "plan/suggest.h"
#include "view/queue.h"
#include "work/home.h"

#include <string.h>
#include <unistd.h>

/* --- finding the task --------------------------------------------------- */

/* Return the task that explains why a group waits: the first open task of it
 * and its parts, else the last; PLAN_NONE if no such group exists. */
static uint32_t
task_of_group(const struct glance *glance, uint32_t run, const char *name)
{
    const struct plan *plan = engine_plan(glance->view.engine, run);
    uint32_t whole = plan_find_group(plan, name);
    uint32_t found = PLAN_NONE;
    bool open = whole == PLAN_NONE;
    for (uint32_t ix = 0; ix < plan->task_count && !open; ix++) {
        uint32_t group = plan->tasks[ix].group;
        if (group != PLAN_NONE && plan_is_within(plan, group, whole)) {
            enum task_state state = snapshot_state(glance->snapshot, run, ix);
            found = ix;
            open = state != TASK_DONE && state != TASK_SKIPPED &&
                   state != TASK_CANCELLED;
        }
    }
    return found;
}

static enum err
refuse(const struct glance *glance, const char *name, struct diag *diag)
{
    struct engine *engine = glance->view.engine;
    struct suggest guess;
    uint32_t budget = SUGGEST_BUDGET;
    suggest_init(&guess, name, strlen(name), &budget);
    for (uint32_t run = 0; run < engine_run_count(engine); run++) {
        const struct plan *plan = engine_plan(engine, run);
        for (uint32_t ix = 0; ix < plan->group_count; ix++) {
            (void)suggest_offer(&guess, plan->groups[ix].id);
        }
        for (uint32_t ix = 0; ix < plan->task_count; ix++) {
            (void)suggest_offer(&guess, plan->tasks[ix].id);
        }
    }
    return diag_set(diag,
                    ERR_NOT_FOUND,
                    "no task \"%s\"%s; 'sluice status --json' lists them",
                    name,
                    suggest_hint(&guess));
}

/* Find the task of that name in the loaded runs. If all runs that have it are
 * finished, choose the newest. */
static enum err find_task(const struct glance *glance,
                          const char *name,
                          const char *wanted_run,
                          struct chain_link *out,
                          struct diag *diag)
{
    struct engine *engine = glance->view.engine;
    uint32_t open = 0;
    bool found = false;
    for (uint32_t run = 0; run < engine_run_count(engine); run++) {
        struct engine_run_view view = engine_run(engine, run);
        uint32_t task = plan_find_task(view.plan, name);
        task = task != PLAN_NONE ? task : task_of_group(glance, run, name);
        if (task == PLAN_NONE ||
            (wanted_run != NULL && strcmp(view.id, wanted_run) != 0) ||
            (view.finished && open > 0)) {
            continue;
        }
        open += view.finished ? 0 : 1;
        *out = (struct chain_link){.run = run, .task = task};
        found = true;
    }
    if (open > 1) {
        return diag_set(diag,
                        ERR_INVALID,
                        "several runs have a task \"%s\": name one with --run",
                        name);
    }
    return found ? ERR_OK : refuse(glance, name, diag);
}

/* --- the chain ---------------------------------------------------------- */

static bool is_in_chain(const struct chain *chain, struct chain_link link)
{
    for (uint32_t ix = 0; ix < chain->count; ix++) {
        if (chain->links[ix].run == link.run &&
            chain->links[ix].task == link.task) {
            return true;
        }
    }
    return false;
}

struct reason chain_reason(const struct chain *chain, uint32_t ix)
{
    return snapshot_reason(chain->glance.snapshot,
                           chain->links[ix].run,
                           chain->links[ix].task);
}

/* Whether the task of a reason matters more than what helps against it: a run
 * was stopped because of it. */
static bool leads_on(const struct reason *reason)
{
    return reasons_remedy(reason, NULL) == NULL ||
           (reason->code == WHY_HALTED && reason->task != NULL);
}

/* Follow the reasons from a task to the root: a running task, or a task that
 * only time or an operator can change. */
static void follow(struct chain *chain, struct chain_link link)
{
    bool more = true;
    while (more && chain->count < CHAIN_MAX) {
        chain->links[chain->count++] = link;
        struct reason reason = chain_reason(chain, chain->count - 1);
        more = leads_on(&reason) &&
               snapshot_cause(chain->glance.snapshot,
                              link.run,
                              link.task,
                              &link.run,
                              &link.task) &&
               !is_in_chain(chain, link);
    }
    chain->cut = more;
}

uint32_t chain_halted(const struct chain *chain)
{
    for (uint32_t ix = 0; ix + 1 < chain->count; ix++) {
        if (chain_reason(chain, ix).code == WHY_HALTED) {
            return ix;
        }
    }
    return CHAIN_MAX;
}

static struct engine_run_view run_of(const struct chain *chain, uint32_t ix)
{
    return engine_run(chain->glance.view.engine, chain->links[ix].run);
}

const char *chain_id(const struct chain *chain, uint32_t ix)
{
    return run_of(chain, ix).plan->tasks[chain->links[ix].task].id;
}

const char *chain_run(const struct chain *chain, uint32_t ix)
{
    bool several = engine_run_count(chain->glance.view.engine) > 1;
    return several ? run_of(chain, ix).id : NULL;
}

bool chain_session(const struct chain *chain,
                   uint32_t ix,
                   struct engine_session_view *out)
{
    const struct engine *engine = chain->glance.view.engine;
    struct task_id task =
        load_task(run_of(chain, ix).loaded, chain->links[ix].task);
    uint64_t token = sched_task(engine_sched(engine), task).token;
    return engine_find_session(engine, token, out);
}

bool chain_add_log(struct strbuf *out, const struct chain *chain, uint32_t ix)
{
    const struct engine *engine = chain->glance.view.engine;
    struct chain_link link = chain->links[ix];
    uint32_t number = engine_attempt_number(engine, link.run, link.task);
    if (number == 0) {
        return false;
    }
    home_add_attempt(out,
                     chain->glance.place.home,
                     run_of(chain, ix).id,
                     chain_id(chain, ix),
                     number);
    strbuf_adds(out, "/log");
    /* Another machine may have it. */
    return !store_has_workers(chain->glance.place.address) ||
           access(strbuf_text(out), F_OK) == 0;
}

/* Mark the tasks whose last attempt was confined. */
static enum err on_attempt(void *ctx, const struct store_attempt *row)
{
    struct chain *chain = ctx;
    for (uint32_t ix = 0; row->confined && ix < chain->count; ix++) {
        struct chain_link *link = &chain->links[ix];
        link->confined =
            link->confined ||
            (row->run == run_of(chain, ix).number && row->task == link->task &&
             row->number == engine_attempt_number(chain->glance.view.engine,
                                                  link->run,
                                                  link->task));
    }
    return ERR_OK;
}

enum err chain_read_attempts(struct chain *chain, struct diag *diag)
{
    static const struct store_visitor visitor = {.attempt = on_attempt};
    enum err err = ERR_OK;
    for (uint32_t ix = 0; ix < chain->count && err == ERR_OK; ix++) {
        uint32_t first = 0;
        while (chain->links[first].run != chain->links[ix].run) {
            first++;
        }
        if (first == ix) {
            struct store_query query = {
                .run = run_of(chain, ix).id,
                .ended = true,
            };
            err = store_read(chain->glance.view.store,
                             &query,
                             &visitor,
                             chain,
                             NULL,
                             diag);
        }
    }
    return err;
}

/* --- text --------------------------------------------------------------- */

/* Append "api-12/gate is waiting: needs api-12/implement". */
static void add_link(struct strbuf *out, const struct chain *chain, uint32_t ix)
{
    struct reason reason = chain_reason(chain, ix);
    struct engine_session_view session;
    strbuf_addf(out, "%s", chain_id(chain, ix));
    if (chain->links[ix].run != chain->links[0].run) {
        strbuf_addf(out, " of run %s", chain_run(chain, ix));
    }
    strbuf_addf(out, " is %s", sched_state_name(reason.state));
    bool flies = reason.state == TASK_STARTING || reason.state == TASK_RUNNING;
    if (flies && chain_session(chain, ix, &session)) {
        strbuf_addf(out, ", attempt %u, for ", session.number);
        duration_add(out, glance_elapsed_ns(&chain->glance, &session));
        struct queue_view queue = queue_of(&chain->glance, &session);
        queue_add(out, &queue);
        return;
    }
    if (reason.code == WHY_PARKED) {
        strbuf_adds(out, ": ");
        reasons_add_parked(out, &reason);
    } else if (reason.code != WHY_RUNNING && reason.code != WHY_FAILED &&
               (reason.state != TASK_DONE || reason.revoked)) {
        strbuf_adds(out, ": ");
        reasons_add(out, &reason);
    }
}

void chain_add_links(struct strbuf *out, const struct chain *chain)
{
    for (uint32_t ix = 0; ix < chain->count; ix++) {
        strbuf_adds(out, ix > 0 ? "  " : "");
        add_link(out, chain, ix);
        strbuf_adds(out, "\n");
    }
    strbuf_adds(out, chain->cut ? "  ...\n" : "");
}

/* --- JSON --------------------------------------------------------------- */

/* Add the members of a task, with its reason on a separate line. */
static void
json_link(struct jsonw *json, const struct chain *chain, uint32_t ix)
{
    struct chain_link link = chain->links[ix];
    const struct engine *engine = chain->glance.view.engine;
    struct reason reason = chain_reason(chain, ix);
    struct strbuf log = {0};
    bool has_log = chain_add_log(&log, chain, ix);
    jsonw_text(json, "task", chain_id(chain, ix));
    jsonw_text(json, "run", run_of(chain, ix).id);
    jsonw_text(json, "state", sched_state_name(reason.state));
    jsonw_int(json,
              "attempt",
              engine_attempt_number(engine, link.run, link.task));
    jsonw_text(json, "reason", engine_reason(engine, link.run, link.task));
    jsonw_text(json, "log", has_log ? strbuf_text(&log) : NULL);
    jsonw_bool(json, "confined", link.confined);
    struct engine_session_view session;
    if (chain_session(chain, ix, &session)) {
        struct queue_view queue = queue_of(&chain->glance, &session);
        queue_add_json(json, &queue);
    }
    jsonw_line(json, 3);
    jsonw_name(json, "why");
    reasons_add_json(json->out, &reason);
    strbuf_release(&log);
}

static void
json_commands(struct jsonw *json, const struct chain *chain, uint32_t ix)
{
    struct reason reason = chain_reason(chain, ix);
    const struct reasons_remedy *remedy = NULL;
    while ((remedy = reasons_remedy(&reason, remedy)) != NULL) {
        struct strbuf command = {0};
        reasons_add_command(&command,
                            &reason,
                            remedy,
                            chain_id(chain, ix),
                            chain_run(chain, ix));
        jsonw_text(json, NULL, strbuf_text(&command));
        strbuf_release(&command);
    }
}

void chain_add_json(struct strbuf *out, const struct chain *chain)
{
    struct jsonw json = {.out = out, .spaced = true};
    jsonw_object(&json, NULL);
    json_link(&json, chain, 0);
    jsonw_list(&json, 1, "chain");
    for (uint32_t ix = 1; ix < chain->count; ix++) {
        jsonw_item(&json, 2);
        json_link(&json, chain, ix);
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
    jsonw_bool(&json, "cut", chain->cut);
    jsonw_list(&json, 1, "commands");
    json_commands(&json, chain, chain->count - 1);
    uint32_t halted = chain_halted(chain);
    if (halted != CHAIN_MAX) {
        json_commands(&json, chain, halted);
    }
    jsonw_array_end(&json);
    jsonw_finish(&json);
}

/* --- the interface ------------------------------------------------------ */

enum err chain_find(struct chain *out,
                    const struct glance_options *options,
                    const char *name,
                    struct diag *diag)
{
    struct glance_options wanted = *options;
    struct chain_link link = {0};
    *out = (struct chain){0};
    enum err err = glance_take(&out->glance, &wanted, diag);
    if (err == ERR_OK) {
        err = find_task(&out->glance, name, wanted.run, &link, diag);
    }
    if (err == ERR_NOT_FOUND && out->glance.snapshot != NULL &&
        !wanted.finished) {
        glance_release(&out->glance);
        wanted.finished = true;
        err = glance_take(&out->glance, &wanted, diag);
        if (err == ERR_OK) {
            err = find_task(&out->glance, name, wanted.run, &link, diag);
        }
    }
    if (err == ERR_OK) {
        follow(out, link);
    }
    return err;
}

enum err chain_in(struct chain *out,
                  const struct glance *glance,
                  const char *run,
                  const char *name,
                  struct diag *diag)
{
    struct chain_link link = {0};
    *out = (struct chain){.glance = *glance};
    enum err err = find_task(&out->glance, name, run, &link, diag);
    if (err == ERR_OK) {
        follow(out, link);
    }
    return err;
}

enum err chain_look(struct chain *out,
                    struct engine *engine,
                    int64_t wall_ns,
                    const char *run,
                    const char *name,
                    struct diag *diag)
{
    struct glance glance;
    glance_of(&glance, engine, wall_ns);
    return chain_in(out, &glance, run, name, diag);
}

void chain_release(struct chain *chain)
{
    glance_release(&chain->glance);
    *chain = (struct chain){0};
}
