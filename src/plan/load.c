/* SPDX-License-Identifier: MIT */
/*
 * Loader of plans into the core.
 *
 * The core's specs of one addition live in an arena that is freed after the
 * addition; the ids live as long as the loader.
 *
 * Limits with `per: repo` apply across runs: they share their counters under
 * the limit's name, and the value of the attribute `repo` is the normalized
 * path of the repository, so that it is the same in all plans (see value_of()).
 */
#include "plan/load.h"

#include "base/arena.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/strmap.h"
#include "plan/load_spec.h"
#include "plan/twin.h"

#include <string.h>

/* The limit of the store for all sessions. */
#define STORE_SESSIONS "sessions"

_Static_assert(PLAN_LOCAL == 0, "the first limit of the store is for all");
_Static_assert(PLAN_PRIORITY_MAX == SCHED_PRIORITY_MAX, "the same scale");

/* A limit of the store: all runs share its counter. */
struct store_limit {
    const char *name; /* "sessions", or that of a provider */
    uint32_t limit;   /* core id */
};

struct load_run {
    struct load *load;
    const struct plan *plan;
    const char *folder; /* of the plan file, or NULL */
    struct load_run *next;
    struct run_id run;
    const char **repos; /* their values in attributes */
    uint32_t *classes;
    uint32_t class_count;
    uint32_t base_class; /* 1 + the core's class of base gates; 0: none yet */
    uint32_t *providers; /* core ids; ID_NONE: not used yet */
    uint32_t provider_count;
    uint32_t *locals; /* the same for tasks without provider, by class */
    uint32_t local_count;
    uint32_t *limits;
    uint32_t limit_count;
    uint32_t budget_count; /* number of budgets in limits */
    uint32_t *groups;
    uint32_t group_count;
    uint32_t *tasks;
    uint32_t task_count;
    uint32_t *scopes; /* by group: 1 + the core's scope; 0: it has none */
    struct store_limit *stores;
    uint32_t store_count;
    struct store_limit *labels; /* of workers; "worker LABEL" */
    uint32_t label_count;
    const char *worker; /* see struct load_options; NULL: none */
    int64_t start_ns;   /* see struct load_options */
    int64_t clock_offset_ns;
    int64_t not_before_ns;
};

/* The record of a provider that no plan has named yet. */
struct kept {
    const char *name;
    struct sched_provider_record record;
};

struct load {
    struct sched *sched;
    struct arena texts;
    struct strmap ids; /* attribute names, values and shared limits */
    struct strmap providers_by_name; /* index into the two below */
    uint32_t *providers;             /* core ids, ascending */
    const char **provider_names;
    uint32_t provider_count;
    struct kept *kept;
    uint32_t kept_count;
    struct load_run *runs;
};

struct load *load_new(struct sched *sched)
{
    struct load *load = mem_zalloc(1, sizeof(*load));
    load->sched = sched;
    return load;
}

void load_free(struct load *load)
{
    if (load == NULL) {
        return;
    }
    while (load->runs != NULL) {
        struct load_run *run = load->runs;
        load->runs = run->next;
        mem_free(run->repos);
        mem_free(run->classes);
        mem_free(run->providers);
        mem_free(run->locals);
        mem_free(run->limits);
        mem_free(run->groups);
        mem_free(run->tasks);
        mem_free(run->scopes);
        mem_free(run->stores);
        mem_free(run->labels);
        mem_free(run);
    }
    strmap_release(&load->ids);
    strmap_release(&load->providers_by_name);
    mem_free(load->providers);
    mem_free(load->provider_names);
    mem_free(load->kept);
    arena_release(&load->texts);
    mem_free(load);
}

/* Return the number of a string; equal strings have equal numbers. */
static uint32_t intern(struct load *load, const char *text)
{
    size_t len = strlen(text);
    uint32_t found = strmap_find(&load->ids, text, len);
    if (found != STRMAP_NONE) {
        return found;
    }
    uint32_t id = load->ids.count;
    found = strmap_add(&load->ids, arena_strndup(&load->texts, text, len), id);
    INVARIANT(found == STRMAP_NONE);
    return id;
}

/* Return the value of a repository: its URL or normalized path, which is the
 * same in all plans, and its name where the plan has another with this one. */
static const char *value_of(struct load_run *run, uint32_t ix)
{
    const struct plan_repo *repo = &run->plan->repos[ix];
    const char *folder = run->folder != NULL ? run->folder : "";
    const char *name = twin_name(run->plan, folder, ix);
    if (name == NULL && run->folder == NULL) {
        return repo->url != NULL ? repo->url : repo->path;
    }
    struct strbuf text = {0};
    twin_add_place(&text, folder, repo);
    if (name != NULL) {
        strbuf_addf(&text, " (%s)", name);
    }
    const char *value = arena_strndup(&run->load->texts,
                                      text.len > 0 ? text.text : "/",
                                      text.len > 0 ? text.len : 1);
    strbuf_release(&text);
    return value;
}

/* Set the attribute values of repositories: URL or path, if they have one. */
static void find_repos(struct load_run *run)
{
    const struct plan *plan = run->plan;
    MEM_RESIZE(run->repos, plan->repo_count);
    for (uint32_t ix = 0; ix < plan->repo_count; ix++) {
        const struct plan_repo *repo = &plan->repos[ix];
        bool placed = repo->path != NULL || repo->url != NULL;
        run->repos[ix] = placed ? value_of(run, ix) : repo->name;
    }
}

/* In attributes, the path of a repository replaces its name. */
static const char *value_text(const struct load_run *run,
                              const struct plan_attribute *attribute)
{
    const struct plan *plan = run->plan;
    if (strcmp(attribute->name, "repo") == 0) {
        for (uint32_t ix = 0; ix < plan->repo_count; ix++) {
            if (strcmp(plan->repos[ix].name, attribute->value) == 0) {
                return run->repos[ix];
            }
        }
    }
    return attribute->value;
}

static struct attribute *
intern_attributes(struct load_run *run,
                  struct arena *arena,
                  const struct plan_attribute *attributes,
                  uint32_t count)
{
    struct attribute *ids = arena_alloc(arena, count, sizeof(ids[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        ids[ix].name = intern(run->load, attributes[ix].name);
        ids[ix].value = intern(run->load, value_text(run, &attributes[ix]));
    }
    return ids;
}

static struct limit_spec limit_spec_of(struct load_run *run,
                                       struct arena *arena,
                                       const struct plan_limit *limit)
{
    bool shared = limit->per != NULL && strcmp(limit->per, "repo") == 0;
    return (struct limit_spec){
        .max = limit->max == PLAN_UNLIMITED ? LIMIT_NONE : limit->max,
        .percent = limit->percent,
        .base = 0, /* "sessions" is the first limit of every plan */
        .per = limit->per != NULL ? intern(run->load, limit->per) : ID_NONE,
        .share = shared ? intern(run->load, limit->name) : ID_NONE,
        .where =
            intern_attributes(run, arena, limit->where, limit->where_count),
        .where_count = limit->where_count,
        .hold_group = limit->hold_group,
        .background = limit->background,
        .resource = limit->kind != PLAN_LIMIT_PLAIN &&
                    limit->kind != PLAN_LIMIT_USAGE &&
                    limit->kind != PLAN_LIMIT_WINDOW,
        .budget = plan_is_paid(limit),
    };
}

/* Add the classes that the core does not have yet. */
static void add_classes(struct load_run *run)
{
    const struct plan *plan = run->plan;
    MEM_RESIZE(run->classes, plan->class_count);
    for (uint32_t ix = run->class_count; ix < plan->class_count; ix++) {
        const struct plan_class *from = &plan->classes[ix];
        struct sched_class_spec spec = {
            .tier = from->tier,
            .defer = from->defer,
            .queue = from->role == PLAN_ROLE_MERGE,
            .batch = from->batch,
            .marginal = from->batch_marginal,
            .max_wait_ns = from->max_wait_ns == PLAN_UNLIMITED
                               ? SCHED_NEVER
                               : from->max_wait_ns,
        };
        run->classes[ix] = sched_add_class(run->load->sched, &spec).v;
    }
    run->class_count = plan->class_count;
}

/* Return the provider of that name; create it from `from` if it is new. */
static uint32_t provider_for(struct load *load,
                             const char *name,
                             const struct plan_provider *from)
{
    size_t len = strlen(name);
    uint32_t known = strmap_find(&load->providers_by_name, name, len);
    if (known != STRMAP_NONE) {
        return load->providers[known];
    }
    struct provider_spec spec = {
        .backoff_ns = from->backoff_ns,
        .backoff_ns_max = from->backoff_ns_max,
        .circuit_failures = from->circuit_failures,
        .probe_ns = from->probe_ns,
        .probe_ns_max = from->probe_ns_max,
    };
    uint32_t ix = load->provider_count++;
    MEM_RESIZE(load->providers, load->provider_count);
    MEM_RESIZE(load->provider_names, load->provider_count);
    load->providers[ix] = sched_add_provider(load->sched, &spec).v;
    load->provider_names[ix] = arena_strndup(&load->texts, name, len);
    known = strmap_add(&load->providers_by_name, load->provider_names[ix], ix);
    INVARIANT(known == STRMAP_NONE);
    for (uint32_t n = 0; n < load->kept_count; n++) {
        if (strcmp(load->kept[n].name, name) == 0) {
            struct provider_id id = {load->providers[ix]};
            struct sched_provider_record record = load->kept[n].record;
            if (spec.circuit_failures == 0) {
                /* Another plan had a circuit breaker; this one has none. */
                record.circuit_open = false;
                record.failures = 0;
                record.probe_token = 0;
                record.probe_steps = 0;
            }
            sched_restore_provider(load->sched, id, &record);
        }
    }
    return load->providers[ix];
}

/* Extend the arrays for new providers and classes. */
static void grow_providers(struct load_run *run)
{
    const struct plan *plan = run->plan;
    MEM_RESIZE(run->providers, plan->provider_count);
    while (run->provider_count < plan->provider_count) {
        run->providers[run->provider_count++] = ID_NONE;
    }
    MEM_RESIZE(run->locals, plan->class_count);
    while (run->local_count < plan->class_count) {
        run->locals[run->local_count++] = ID_NONE;
    }
}

/* Return the provider of a task's sessions. */
static uint32_t provider_of(struct load_run *run, const struct plan_task *task)
{
    const struct plan_provider *from = &run->plan->providers[task->provider];
    bool local = task->provider == PLAN_LOCAL;
    uint32_t *place =
        local ? &run->locals[task->class_ix] : &run->providers[task->provider];
    if (*place == ID_NONE) {
        struct strbuf name = {0};
        strbuf_adds(&name, from->name);
        if (local) {
            strbuf_addf(&name, ":%s", run->plan->classes[task->class_ix].name);
        }
        *place = provider_for(run->load, strbuf_text(&name), from);
        strbuf_release(&name);
    }
    return *place;
}

/* Return a limit of the store: the runs share its counter. */
static struct limit_spec store_spec_of(struct load_run *run, const char *name)
{
    struct strbuf share = {0};
    strbuf_addf(&share, "store %s", name); /* no limit of a plan has a space */
    struct limit_spec spec = {
        .max = LIMIT_NONE,
        .per = ID_NONE,
        .share = intern(run->load, strbuf_text(&share)),
    };
    strbuf_release(&share);
    return spec;
}

/* Record a limit of the store. */
static void
keep_store_limit(struct load_run *run, const char *name, struct limit_id limit)
{
    uint32_t ix = run->store_count++;
    MEM_RESIZE(run->stores, run->store_count);
    run->stores[ix].name = name;
    run->stores[ix].limit = limit.v;
}

/* Add the limits of the providers that have none yet: the limit of a provider
 * has the provider's index, because "local" has none. */
static void add_store_limits(struct load_run *run)
{
    const struct plan *plan = run->plan;
    while (run->store_count < plan->provider_count) {
        const char *name = plan->providers[run->store_count].name;
        struct limit_spec spec = store_spec_of(run, name);
        spec.resource = true; /* the sessions of the provider ask for it */
        keep_store_limit(run,
                         name,
                         sched_add_limit(run->load->sched, run->run, &spec));
    }
}

#define LABEL_PREFIX "worker "

/* Return the limit of a label, which is added if it is new. */
static uint32_t label_limit(struct load_run *run, const char *label)
{
    for (uint32_t ix = 0; ix < run->label_count; ix++) {
        const char *name = run->labels[ix].name;
        if (strcmp(name + strlen(LABEL_PREFIX), label) == 0) {
            return run->labels[ix].limit;
        }
    }
    struct strbuf text = {0};
    strbuf_addf(&text, LABEL_PREFIX "%s", label);
    struct limit_spec spec = store_spec_of(run, strbuf_text(&text));
    spec.resource = true;
    MEM_RESIZE(run->labels, run->label_count + 1);
    struct store_limit *made = &run->labels[run->label_count++];
    made->name = arena_strndup(&run->load->texts, text.text, text.len);
    made->limit = sched_add_limit(run->load->sched, run->run, &spec).v;
    strbuf_release(&text);
    return made->limit;
}

/* Return the time of the core for a wall clock time; 0: it has passed. */
static int64_t core_time(const struct load_run *run, int64_t wall_ns)
{
    return wall_ns <= run->clock_offset_ns ? 0 : wall_ns - run->clock_offset_ns;
}

static int64_t deadline_of(const struct load_run *run)
{
    int64_t wall_ns =
        plan_deadline_ns(run->plan, run->start_ns, run->not_before_ns);
    int64_t at_ns = core_time(run, wall_ns);
    return wall_ns == INT64_MIN ? 0 : at_ns > 0 ? at_ns : 1;
}

static void add_run(struct load_run *run, struct arena *arena, bool no_budgets)
{
    const struct plan *plan = run->plan;
    static const enum sched_policy policies[] = {
        [PLAN_POLICY_RANK] = SCHED_RANK,
        [PLAN_POLICY_FAIR] = SCHED_FAIR,
        [PLAN_POLICY_FIFO] = SCHED_FIFO,
        [PLAN_POLICY_LOOKAHEAD] = SCHED_LOOKAHEAD,
    };
    static const enum sched_goal goals[] = {
        [PLAN_GOAL_FINISH_ALL] = SCHED_FINISH_ALL,
        [PLAN_GOAL_FINISH_MANY] = SCHED_FINISH_MANY,
    };
    uint32_t count = plan->limit_count + 1; /* and that of the store */
    struct limit_spec *limits = arena_alloc(arena, count, sizeof(limits[0]));
    for (uint32_t ix = 0; ix < plan->limit_count; ix++) {
        bool budget = plan_is_paid(&plan->limits[ix]);
        limits[ix] = limit_spec_of(run, arena, &plan->limits[ix]);
        run->budget_count += budget && !no_budgets ? 1 : 0;
    }
    limits[plan->limit_count] = store_spec_of(run, STORE_SESSIONS);
    struct sched_run_spec spec = {
        .policy = policies[plan->policy],
        .goal = goals[plan->goal],
        .limits = limits,
        .limit_count = count,
        .sync_every = plan->sync.every,
        .sync_drain = plan->sync.drain,
        .schedules = plan->schedules,
        .deadline_ns = deadline_of(run),
    };
    struct limit_id first;
    run->run = sched_add_run(run->load->sched, &spec, &first);
    MEM_RESIZE(run->limits, plan->limit_count);
    for (uint32_t ix = 0; ix < plan->limit_count; ix++) {
        run->limits[ix] = first.v + ix;
    }
    run->limit_count = plan->limit_count;
    struct limit_id sessions = {first.v + plan->limit_count};
    keep_store_limit(run, STORE_SESSIONS, sessions);
    add_store_limits(run);
}

/* Add the resources of a fragment. */
static void add_limits(struct load_run *run, struct arena *arena)
{
    const struct plan *plan = run->plan;
    MEM_RESIZE(run->limits, plan->limit_count);
    for (uint32_t ix = run->limit_count; ix < plan->limit_count; ix++) {
        struct limit_spec spec = limit_spec_of(run, arena, &plan->limits[ix]);
        run->limits[ix] = sched_add_limit(run->load->sched, run->run, &spec).v;
        /* If the run has no budgets, the caller chose to ignore them. */
        run->budget_count +=
            run->budget_count > 0 && plan_is_paid(&plan->limits[ix]) ? 1 : 0;
    }
    run->limit_count = plan->limit_count;
    add_store_limits(run);
}

/* Return the units that the task requests, and its use of budgets. */
static struct sched_use *uses_of(struct load_run *run,
                                 struct arena *arena,
                                 const struct plan_task *task,
                                 uint32_t *count_out)
{
    const struct plan *plan = run->plan;
    struct sched_use *uses =
        arena_alloc(arena,
                    task->use_count + run->budget_count + 2,
                    sizeof(uses[0]));
    uint32_t count = 0;
    const char *label = load_place(run->plan, task, run->worker);
    if (label != NULL) {
        uses[count].limit.v = label_limit(run, label);
        uses[count++].units = 1;
    }
    if (task->provider != PLAN_LOCAL) {
        uses[count].limit.v = run->stores[task->provider].limit;
        uses[count++].units = 1;
    }
    for (uint32_t n = 0; n < task->use_count; n++) {
        uses[count].limit.v = run->limits[task->uses[n].limit];
        uses[count++].units = task->uses[n].units;
    }
    for (uint32_t n = 0; run->budget_count > 0 && n < plan->limit_count; n++) {
        uint32_t units = plan_budget_units(plan, &plan->limits[n], task);
        if (units > 0) {
            uses[count].limit.v = run->limits[n];
            uses[count++].units = units;
        }
    }
    *count_out = count;
    return uses;
}

/*
 * Tasks can share a session if one command serves all of them: the plan gives
 * them the same command in the same repository. A task with a budget of its own
 * is never batched.
 */
static uint32_t batch_key_of(struct load_run *run, uint32_t ix)
{
    const struct plan_task *task = &run->plan->tasks[ix];
    if (task->settings->budget.usd != PLAN_UNSET ||
        task->settings->budget.tokens != PLAN_UNSET) {
        return UINT32_MAX - ix;
    }
    if (run->plan->classes[task->class_ix].batch <= 1) {
        return task->repo; /* never shares a session */
    }
    struct strbuf text = {0};
    load_add_alike(&text, task);
    uint32_t key = intern(run->load, strbuf_text(&text));
    strbuf_release(&text);
    return key;
}

/* Return the core's class of a task. A base gate starts first: the earlier the
 * base is known to be bad, the fewer sessions are in vain. */
static uint32_t class_of(struct load_run *run, const struct plan_task *task)
{
    static const struct sched_class_spec first = {.batch = 1};
    if (!task->base_gate) {
        return run->classes[task->class_ix];
    }
    if (run->base_class == 0) {
        run->base_class = sched_add_class(run->load->sched, &first).v + 1;
    }
    return run->base_class - 1;
}

/* Return the earliest start of a task; 0: any time. */
static int64_t start_of(const struct load_run *run,
                        const struct plan_task *task)
{
    int64_t wall_ns = plan_start_ns(run->plan, task, run->start_ns);
    if (!task->last && wall_ns < run->not_before_ns) {
        wall_ns = run->not_before_ns;
    }
    return core_time(run, wall_ns);
}

static struct sched_task_spec
task_spec_of(struct load_run *run, struct arena *arena, uint32_t ix)
{
    const struct plan *plan = run->plan;
    const struct plan_task *task = &plan->tasks[ix];
    uint32_t use_count;
    struct sched_use *uses = uses_of(run, arena, task, &use_count);
    return (struct sched_task_spec){
        .class_id = {class_of(run, task)},
        .provider = {provider_of(run, task)},
        .group = task->group == PLAN_NONE ? ID_NONE : run->groups[task->group],
        .estimate_ns = plan_estimate_ns(plan, task),
        .batch_key = batch_key_of(run, ix),
        .attributes = intern_attributes(run,
                                        arena,
                                        task->attributes,
                                        task->attribute_count),
        .attribute_count = task->attribute_count,
        .uses = uses,
        .use_count = use_count,
        .failure = load_failure(plan, task),
        .rework_to = task->rework_to == PLAN_NONE ? ID_NONE
                                                  : run->tasks[task->rework_to],
        .priority = task->settings->priority,
        .guard = task->guard == PLAN_NONE ? 0 : run->tasks[task->guard] + 1,
        .not_before_ns = start_of(run, task),
        .scope = task->scope == PLAN_NONE ? 0 : run->scopes[task->scope],
        .last = task->last,
        .approve = task->approve,
    };
}

/* The scopes of an addition. */
struct scopes {
    struct arena *arena;
    struct sched_scope_spec *specs;
    uint32_t count;
};

/*
 * Number of additional edges to tasks of the core. For the first addition it is
 * 0: `needs` of the tasks already include them.
 */
static uint32_t edges_of(const struct load_run *run)
{
    return run->task_count > 0 ? run->plan->edge_count : 0;
}

/* Assign ids to the scopes of new groups. A parent is before its parts. */
static void number_scopes(struct load_run *run, struct scopes *out)
{
    const struct plan *plan = run->plan;
    uint32_t next = sched_scope_count(run->load->sched);
    MEM_RESIZE(run->scopes, plan->group_count);
    ARENA_ARRAY(out->arena, out->specs, plan->group_count - run->group_count);
    for (uint32_t ix = run->group_count; ix < plan->group_count; ix++) {
        run->scopes[ix] = 0;
        if (!plan->groups[ix].has_last) {
            continue;
        }
        uint32_t around = plan->groups[ix].parent;
        while (around != PLAN_NONE && !plan->groups[around].has_last) {
            around = plan->groups[around].parent;
        }
        out->specs[out->count++].parent =
            around == PLAN_NONE ? 0 : run->scopes[around];
        run->scopes[ix] = ++next;
    }
}

/* Assign ids to new groups and tasks; return the number of their needs. */
static uint32_t number_new(struct load_run *run, struct scopes *scopes)
{
    const struct plan *plan = run->plan;
    const struct sched *sched = run->load->sched;
    MEM_RESIZE(run->groups, plan->group_count);
    for (uint32_t ix = run->group_count; ix < plan->group_count; ix++) {
        run->groups[ix] = sched_group_count(sched) + ix - run->group_count;
    }
    number_scopes(run, scopes);
    MEM_RESIZE(run->tasks, plan->task_count);
    uint32_t needs = edges_of(run);
    for (uint32_t ix = run->task_count; ix < plan->task_count; ix++) {
        run->tasks[ix] = sched_task_count(sched) + ix - run->task_count;
        needs += plan->tasks[ix].need_count;
    }
    return needs;
}

static void explain(const struct load_run *run,
                    const struct sched_rejection *rejection,
                    enum err err,
                    struct diag *diag)
{
    uint32_t ix = rejection->task.v == ID_NONE
                      ? PLAN_NONE
                      : load_plan_task(run, rejection->task);
    const char *id = ix == PLAN_NONE ? "?" : run->plan->tasks[ix].id;
    struct strbuf text = {0};
    switch (rejection->code) {
    case REJECTION_NONE:
    case REJECTION_UNKNOWN:
        strbuf_addf(&text, "task \"%s\" needs an unknown task", id);
        break;
    case REJECTION_TOO_MANY:
        strbuf_addf(&text, "more than %u tasks", SCHED_TASKS_MAX);
        break;
    case REJECTION_CYCLE:
        strbuf_adds(&text, "needs form a cycle: ");
        for (uint32_t n = 0; n < rejection->cycle_count; n++) {
            struct task_id task = {rejection->cycle[n]};
            strbuf_addf(&text,
                        "%s -> ",
                        run->plan->tasks[load_plan_task(run, task)].id);
        }
        strbuf_adds(&text, id);
        break;
    case REJECTION_STARTED:
        strbuf_addf(&text,
                    "task \"%s\" is already running and cannot get new needs: "
                    "let a new task need both",
                    id);
        break;
    case REJECTION_ENDED:
        strbuf_addf(&text,
                    "task \"%s\" has already finished and cannot get new needs",
                    id);
        break;
    case REJECTION_OTHER_RUN:
        strbuf_addf(&text, "task \"%s\" belongs to another run", id);
        break;
    case REJECTION_CANCELLED:
        strbuf_adds(&text, "the run was cancelled: start another run");
        break;
    case REJECTION_REWORK:
        strbuf_addf(&text,
                    "task \"%s\" does not need the task it sends rework to",
                    id);
        break;
    case REJECTION_LAST:
        strbuf_addf(&text,
                    "task \"%s\" needs a task of \"finally\" that waits for "
                    "it",
                    id);
        break;
    case REJECTION_RECORD:
        strbuf_addf(&text, "impossible stored state of task \"%s\"", id);
        break;
    }
    (void)diag_set(diag, err, "%s", strbuf_text(&text));
    strbuf_release(&text);
}

static struct sched_need
need_of(const struct load_run *run, uint32_t task, uint32_t need, unsigned on)
{
    static const enum sched_on ons[] = {
        [PLAN_ON_DONE] = SCHED_ON_DONE,
        [PLAN_ON_FAILED] = SCHED_ON_FAILED,
        [PLAN_ON_ANY] = SCHED_ON_ANY,
    };
    return (struct sched_need){run->tasks[task], run->tasks[need], ons[on]};
}

/* Add all parts of the plan that the core does not have yet. */
static enum err add_new(struct load_run *run,
                        struct arena *arena,
                        int64_t now_ns,
                        const struct sched_record *records,
                        struct diag *diag)
{
    const struct plan *plan = run->plan;
    struct scopes scopes = {.arena = arena};
    uint32_t need_count = number_new(run, &scopes);
    uint32_t group_count = plan->group_count - run->group_count;
    uint32_t task_count = plan->task_count - run->task_count;
    struct sched_group_spec *groups =
        arena_alloc(arena, group_count, sizeof(groups[0]));
    struct sched_task_spec *tasks =
        arena_alloc(arena, task_count, sizeof(tasks[0]));
    struct sched_need *needs = arena_alloc(arena, need_count, sizeof(needs[0]));
    for (uint32_t n = 0; n < group_count; n++) {
        const struct plan_group *group = &plan->groups[run->group_count + n];
        groups[n].attributes = intern_attributes(run,
                                                 arena,
                                                 group->attributes,
                                                 group->attribute_count);
        groups[n].attribute_count = group->attribute_count;
    }
    uint32_t filled = 0;
    for (uint32_t n = 0; n < task_count; n++) {
        uint32_t ix = run->task_count + n;
        const struct plan_task *task = &plan->tasks[ix];
        tasks[n] = task_spec_of(run, arena, ix);
        for (uint32_t i = 0; i < task->need_count; i++) {
            needs[filled++] = need_of(run, ix, task->needs[i], task->ons[i]);
        }
    }
    for (uint32_t n = 0, count = edges_of(run); n < count; n++) {
        const struct plan_edge *edge = &plan->edges[n];
        needs[filled++] = need_of(run, edge->dependent, edge->need, edge->on);
    }
    INVARIANT(filled == need_count);
    struct sched_addition addition = {
        .run = run->run,
        .groups = groups,
        .group_count = group_count,
        .tasks = tasks,
        .task_count = task_count,
        .needs = needs,
        .need_count = need_count,
        .scopes = scopes.specs,
        .scope_count = scopes.count,
        .records = records,
    };
    struct sched_rejection rejection;
    enum err err = sched_add(run->load->sched, now_ns, &addition, &rejection);
    if (err == ERR_OK) {
        run->group_count = plan->group_count;
        run->task_count = plan->task_count;
    } else {
        run->task_count += task_count;
        explain(run, &rejection, err, diag);
        run->task_count -= task_count;
    }
    sched_rejection_release(&rejection);
    return err;
}

enum err load_plan(struct load *load,
                   int64_t now_ns,
                   const struct plan *plan,
                   const struct load_options *options,
                   struct load_run **out,
                   struct diag *diag)
{
    static const struct load_options none = {0};
    if (options == NULL) {
        options = &none;
    }
    *out = NULL;
    struct load_run *run = mem_zalloc(1, sizeof(*run));
    run->load = load;
    run->plan = plan;
    run->start_ns = options->start_ns;
    run->clock_offset_ns = options->clock_offset_ns;
    run->not_before_ns = options->not_before_ns;
    if (options->worker != NULL && options->worker[0] != '\0') {
        run->worker = arena_strndup(&load->texts,
                                    options->worker,
                                    strlen(options->worker));
    }
    run->next = load->runs;
    load->runs = run;
    if (options->folder != NULL) {
        run->folder = arena_strndup(&load->texts,
                                    options->folder,
                                    strlen(options->folder));
    }
    struct arena arena = {0};
    find_repos(run);
    add_classes(run);
    grow_providers(run);
    add_run(run, &arena, options != NULL && options->no_budgets);
    if (options->run != NULL) {
        sched_restore_run(load->sched, run->run, options->run);
    }
    enum err err = add_new(run, &arena, now_ns, options->records, diag);
    arena_release(&arena);
    if (err == ERR_OK) {
        *out = run;
    }
    return err;
}

enum err load_more(struct load_run *run, int64_t now_ns, struct diag *diag)
{
    struct arena arena = {0};
    struct load_run before = *run;
    add_classes(run);
    grow_providers(run);
    add_limits(run, &arena);
    enum err err = add_new(run, &arena, now_ns, NULL, diag);
    arena_release(&arena);
    if (err != ERR_OK) {
        /* The core keeps them, unused; later additions get new ids. */
        run->class_count = before.class_count;
        run->provider_count = before.provider_count;
        run->limit_count = before.limit_count;
        run->store_count = before.store_count;
        run->local_count = before.local_count;
        run->budget_count = before.budget_count;
    }
    return err;
}

void load_set_clock(struct load_run *run, int64_t clock_offset_ns)
{
    sched_move_times(run->load->sched,
                     run->run,
                     run->clock_offset_ns - clock_offset_ns,
                     run->plan->deadline.kind != PLAN_TIME_AFTER);
    run->clock_offset_ns = clock_offset_ns;
}

struct run_id load_run_id(const struct load_run *run)
{
    return run->run;
}

struct task_id load_task(const struct load_run *run, uint32_t task)
{
    INVARIANT(task < run->task_count);
    return (struct task_id){run->tasks[task]};
}

struct limit_id load_limit(const struct load_run *run, uint32_t limit)
{
    INVARIANT(limit < run->limit_count);
    return (struct limit_id){run->limits[limit]};
}

struct limit_id load_store_limit(const struct load_run *run, const char *name)
{
    uint32_t ix = 0;
    while (ix < run->store_count && strcmp(run->stores[ix].name, name) != 0) {
        ix++;
    }
    return (struct limit_id){ix < run->store_count ? run->stores[ix].limit
                                                   : ID_NONE};
}

const char *load_store_limit_name(const struct load_run *run,
                                  struct limit_id limit)
{
    uint32_t ix = 0;
    while (ix < run->store_count && run->stores[ix].limit != limit.v) {
        ix++;
    }
    for (uint32_t n = 0; n < run->label_count; n++) {
        if (run->labels[n].limit == limit.v) {
            return run->labels[n].name;
        }
    }
    return ix < run->store_count ? run->stores[ix].name : NULL;
}

uint32_t load_label_count(const struct load_run *run)
{
    return run->label_count;
}

struct limit_id
load_label(const struct load_run *run, uint32_t ix, const char **label_out)
{
    INVARIANT(ix < run->label_count);
    *label_out = run->labels[ix].name + strlen(LABEL_PREFIX);
    return (struct limit_id){run->labels[ix].limit};
}

const char *load_label_of(const struct load_run *run, uint32_t task)
{
    INVARIANT(task < run->plan->task_count);
    return load_place(run->plan, &run->plan->tasks[task], run->worker);
}

uint32_t load_store_limit_count(const struct load_run *run)
{
    return run->store_count;
}

struct limit_id load_store_limit_at(const struct load_run *run, uint32_t ix)
{
    INVARIANT(ix < run->store_count);
    return (struct limit_id){run->stores[ix].limit};
}

/* Return the index of a value in ascending ids, or PLAN_NONE. */
static uint32_t position(const uint32_t *ids, uint32_t count, uint32_t value)
{
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ids[middle] < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && ids[low] == value ? low : PLAN_NONE;
}

uint32_t load_plan_task(const struct load_run *run, struct task_id task)
{
    return position(run->tasks, run->task_count, task.v);
}

uint32_t load_plan_limit(const struct load_run *run, struct limit_id limit)
{
    return position(run->limits, run->limit_count, limit.v);
}

static bool has(const uint32_t *list, uint32_t count, uint32_t wanted)
{
    uint32_t ix = 0;
    while (ix < count && list[ix] != wanted) {
        ix++;
    }
    return ix < count;
}

bool load_uses_provider(const struct load_run *run, struct provider_id id)
{
    INVARIANT(id.v != ID_NONE);
    return has(run->providers, run->provider_count, id.v) ||
           has(run->locals, run->local_count, id.v);
}

struct provider_id load_find_provider(const struct load *load, const char *name)
{
    uint32_t ix = strmap_find(&load->providers_by_name, name, strlen(name));
    return (struct provider_id){ix == STRMAP_NONE ? ID_NONE
                                                  : load->providers[ix]};
}

const char *load_provider_name(const struct load *load, struct provider_id id)
{
    uint32_t ix = position(load->providers, load->provider_count, id.v);
    INVARIANT(ix != PLAN_NONE);
    return load->provider_names[ix];
}

uint32_t load_provider_count(const struct load *load)
{
    return load->provider_count;
}

void load_restore_provider(struct load *load,
                           const char *name,
                           const struct sched_provider_record *record)
{
    MEM_RESIZE(load->kept, load->kept_count + 1);
    load->kept[load->kept_count++] = (struct kept){
        .name = arena_strndup(&load->texts, name, strlen(name)),
        .record = *record,
    };
}

int64_t load_next_window(int64_t now, int64_t whole, enum sched_outcome outcome)
{
    if (outcome == OUTCOME_DONE) {
        return now < whole ? now + 1 : now;
    }
    bool failed = outcome == OUTCOME_CHANGES || outcome == OUTCOME_FAILED;
    return failed && now > 1 ? now / 2 : now;
}
