/* SPDX-License-Identifier: MIT */
/*
 * plan: a plan file, parsed and checked, with every name resolved.
 *
 * The source is parsed into a tree of nodes with positions (plan/node.h), then
 * converted to this structure. Pipelines are expanded into tasks. Every
 * reference is an index into an array of the plan; PLAN_NONE is "none". A plan
 * is always complete: readers never see a partial plan, and a rejected fragment
 * changes nothing.
 *
 * Memory: a plan owns all of its strings and arrays (an arena). Pointers into
 * it stay valid until plan_free(), except pointers to the arrays themselves,
 * which plan_add() may move.
 */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "adapter/adapter.h"
#include "base/duration.h"
#include "base/macros.h"
#include "base/strbuf.h"
#include "plan/learned.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "None", for every index below. */
#define PLAN_NONE UINT32_MAX

/* The provider of tasks that name no provider and have no agent. */
enum { PLAN_LOCAL = 0 };

/* A duration or time that was not given. */
#define PLAN_UNSET INT64_MIN

/* "No limit": `max: none`, `max_wait: none`. */
#define PLAN_UNLIMITED INT64_MAX

/* Expected duration of a task without an estimate or history. */
#define PLAN_ESTIMATE_NS (600 * SECOND_NS)

/* Priorities: 0 is the most urgent, PLAN_PRIORITY the default. */
enum { PLAN_PRIORITY = 5, PLAN_PRIORITY_MAX = 9 };

/* Money is stored in ten-thousandths of a US dollar. */
enum { PLAN_USD = 10000 };

/* Largest budget or cost: 100,000 USD, 10^9 tokens. */
#define PLAN_USD_MAX (INT64_C(100000) * PLAN_USD)
#define PLAN_TOKENS_MAX INT64_C(1000000000)

/* Actual, expected or maximum cost. */
struct plan_cost {
    int64_t usd;    /* PLAN_USD to the dollar; PLAN_UNSET: not given */
    int64_t tokens; /* PLAN_UNSET: not given */
};
#define PLAN_COST_UNSET ((struct plan_cost){PLAN_UNSET, PLAN_UNSET})

/* Position in a file; 1-based, 0 for an item that is not from a file. */
struct plan_mark {
    uint32_t line;
    uint32_t column;
};

/*
 * An attribute that limits can match. Equal names have equal pointers, and so
 * have equal values of one name.
 */
struct plan_attribute {
    const char *name;
    const char *value;
};

/* A command: at most one member is set. */
struct plan_command {
    const char *shell; /* for /bin/sh -c */
    const char **argv; /* NULL-terminated */
};

/* Default number of schedules that lookahead tries for one plan. */
enum { PLAN_SCHEDULES = 5000 };

enum plan_policy {
    PLAN_POLICY_RANK,
    PLAN_POLICY_FAIR,
    PLAN_POLICY_FIFO,
    PLAN_POLICY_LOOKAHEAD,
};

/* What the order of tasks prefers; see docs/scheduling.md. */
enum plan_goal {
    PLAN_GOAL_FINISH_ALL,  /* an early end of the run */
    PLAN_GOAL_FINISH_MANY, /* early ends of its groups */
};

enum plan_on_failure {
    PLAN_ON_FAILURE_PARK,
    PLAN_ON_FAILURE_ABORT,
    PLAN_ON_FAILURE_SKIP,
    PLAN_ON_FAILURE_ASK,
    PLAN_ON_FAILURE_STOP, /* nothing new starts in the run */
};

/* How a need must end; see enum sched_on. */
enum plan_on { PLAN_ON_DONE, PLAN_ON_FAILED, PLAN_ON_ANY };

/* Causes of failures, as bits of a set: which of them are worth a retry. */
enum plan_cause {
    PLAN_CAUSE_EXIT = 1 << 0,    /* an exit code, or a result "failed" */
    PLAN_CAUSE_SIGNAL = 1 << 1,  /* killed by a signal */
    PLAN_CAUSE_TIMEOUT = 1 << 2, /* stopped after `timeout` */
    PLAN_CAUSE_IDLE = 1 << 3,    /* stopped after `idle_timeout` */
    PLAN_CAUSE_LOST = 1 << 4,    /* the session vanished */
    PLAN_CAUSES_ALL = (1 << 5) - 1,
};

/* A moment: a date, a time of day, or some time after the start of the run. */
enum plan_time_kind {
    PLAN_TIME_NONE,
    PLAN_TIME_DATE,  /* `value`: nanoseconds since 1970 */
    PLAN_TIME_CLOCK, /* nanoseconds since midnight, local time: the first such
                        moment from the start of the run on */
    PLAN_TIME_AFTER, /* nanoseconds since the start of the run */
};
struct plan_time {
    enum plan_time_kind kind;
    int64_t value;
};

/* Tags of an issue, sorted, without duplicates. */
enum { PLAN_LABELS_MAX = 64 };
struct plan_labels {
    const char **items;
    uint32_t count;
};

/* Paths inside a repository: relative, normalised, without ".." and ".git". */
enum { PLAN_PATHS_MAX = 64 };
struct plan_paths {
    const char **items;
    uint32_t count;
};

struct plan_repo {
    const char *name;
    struct plan_mark mark;
    const char *path; /* as written, or NULL; relative to the plan file */
    const char *url;  /* of a git server, instead of a path; or NULL */
    /* With a base, this is a git repository and sessions work in checkouts on
     * branches of the run. Without, it is a plain directory, used in place. */
    const char *base;
    const char *gate;   /* shell command for a merged result, or NULL */
    bool ungated;       /* `gate: none`: merged results are not tested */
    const char *repair; /* shell command for a merge's conflicts, or NULL */
    bool sync;          /* merge new commits of base into the agent branch */
    bool push;          /* push the agent branch at the hand-off */
    struct plan_paths keep; /* may stay in a checkout between gates */
    struct plan_paths copy; /* from the user's files to each checkout */
    bool remote_keep;       /* checkouts can push to its remotes */
    bool fetch;             /* fetch `base` before it is used */
    uint32_t gate_retry;    /* how often it runs again after a failure */
    bool no_base_gate;      /* do not gate the base before the first merge */
    uint32_t base_task;     /* that gates the base, or PLAN_NONE */
    const char *owner;
};

/* Whether it is a git repository, in which sessions work on branches. */
static inline bool plan_is_git(const struct plan_repo *repo)
{
    return (repo->path != NULL || repo->url != NULL) && repo->base != NULL;
}

/*
 * A coding agent: a program that adapter/adapter.h supports, and the options of
 * its sessions. A built-in name needs no declaration.
 */
struct plan_agent {
    const char *name;
    const struct adapter *adapter;
    const char *model; /* NULL: the default of the program */
    enum adapter_permissions permissions;
    const char **tools; /* members of ADAPTER_TOOLS */
    uint32_t tool_count;
    uint32_t retries;  /* for failed requests, inside the program */
    bool mcp;          /* it gets sluice's MCP server */
    const char **args; /* additional arguments */
    uint32_t arg_count;
    const char **env; /* NAME=value */
    uint32_t env_count;
    /* PLAN_USD to the dollar, per million tokens; PLAN_UNSET: not given. */
    int64_t price_input;
    int64_t price_cached;
    int64_t price_output;
    uint32_t provider;                  /* for tasks that name none */
    const struct plan_sandbox *sandbox; /* NULL: not given */
    struct plan_mark mark;
};

/*
 * The unit of a limit. Limits of `limits` count sessions or groups, capacities
 * of `resources` the units that tasks request. The limit of a usage monitor
 * counts the sessions of its provider. In a budget, a task in flight uses its
 * expected cost; the actual cost of a finished session is used permanently.
 * Under a budget, sessions of a class with unknown cost have a limit of their
 * own: the engine runs one of them at a time until it knows the cost, then as
 * many as the rest of the budget can pay for. The window of a repository's
 * merge queue counts the merges in flight; the engine lowers and raises it.
 */
enum plan_limit_kind {
    PLAN_LIMIT_PLAIN,
    PLAN_LIMIT_RESOURCE,
    PLAN_LIMIT_USAGE,
    PLAN_LIMIT_BUDGET_USD,
    PLAN_LIMIT_BUDGET_TOKENS,
    PLAN_LIMIT_COST,
    PLAN_LIMIT_WINDOW,
};

/*
 * A limit. The five default limits (sessions, issues, active, merge, review)
 * always exist, in this order; then follow declared limits in their order,
 * usage monitors, budgets, then resources, windows of merge queues and unknown
 * costs.
 */
struct plan_limit {
    const char *name;
    int64_t max;      /* units, or PLAN_UNLIMITED; unused when percent > 0 */
    uint32_t percent; /* percent of sessions; 0 when max is a number */
    bool hold_group;  /* counts open groups, not sessions */
    bool background;  /* of classes with `defer`, counts only background
                         sessions; its percentage is a share that lends */
    enum plan_limit_kind kind;
    const char *per; /* attribute, or NULL */
    struct plan_attribute *where;
    uint32_t where_count;
    struct plan_mark mark;
};

static inline bool plan_is_budget(const struct plan_limit *limit)
{
    return limit->kind == PLAN_LIMIT_BUDGET_USD ||
           limit->kind == PLAN_LIMIT_BUDGET_TOKENS;
}

/* Whether tasks use the limit according to their cost. */
static inline bool plan_is_paid(const struct plan_limit *limit)
{
    return plan_is_budget(limit) || limit->kind == PLAN_LIMIT_COST;
}

/* Confinement of a session. Lists are NULL-terminated. */
struct plan_sandbox {
    bool on;                  /* false: switched off at this level */
    bool network;             /* the session may use the network */
    const char *const *write; /* paths as written: relative to the plan file,
                                 or beginning with ~ */
    const char *const *read;
    const char *const *env; /* names of variables */
};

/* Settings of defaults, a class, a stage, a group or a task. */
struct plan_settings {
    int64_t estimate_ns;     /* PLAN_UNSET: not given */
    int64_t timeout_ns;      /* PLAN_UNSET: not given */
    int64_t idle_timeout_ns; /* PLAN_UNSET: not given */
    int64_t grace_ns;        /* between SIGTERM and SIGKILL */
    int64_t checkpoint_after_ns;
    uint32_t checkpoint_max;
    uint32_t retry_max;
    uint32_t retry_on; /* set of enum plan_cause that are retried */
    int64_t retry_backoff_ns;
    int64_t retry_backoff_ns_max;
    enum plan_on_failure on_failure;
    int optional;       /* 1: a skip or failure does not block dependents */
    int allow_empty;    /* 1: an implement stage may finish without a commit */
    uint32_t add_max;   /* most tasks that one session may add */
    uint32_t add_depth; /* nesting of tasks that add tasks */
    uint32_t priority;  /* 0 to PLAN_PRIORITY_MAX */
    struct plan_cost cost;              /* expected, per session */
    struct plan_cost budget;            /* for all its sessions together */
    const struct plan_sandbox *sandbox; /* NULL: not given; of a task: none */
    const char *worker; /* label that its worker must have; interned, or NULL */
    const char *prepare;     /* shell command to run first, or NULL */
    const char *prompt;      /* role prompt for the agent, or NULL */
    const char *prompt_file; /* path as written, or NULL */
    bool prepare_once;       /* `prepare` only once in a checkout */
};

/* Role of a class. The built-in classes get theirs by name; see
 * plan_has_role(). */
enum plan_role {
    PLAN_ROLE_NONE,
    PLAN_ROLE_IMPLEMENT, /* changes code: commits are its evidence */
    PLAN_ROLE_GATE,      /* tests the work of others, without judgement */
    PLAN_ROLE_MERGE,     /* queues: one per repository may be in flight */
    PLAN_ROLE_REVIEW,    /* judges the work of others */
};

struct plan_class {
    const char *name;
    enum plan_role role;
    uint32_t tier;      /* 0 is best */
    uint32_t base_tier; /* tier that starvation is measured by */
    bool defer;
    uint32_t batch; /* most tasks per session; 1: no batching */
    uint32_t
        batch_marginal;  /* percent of its estimate each further one takes */
    int64_t max_wait_ns; /* PLAN_UNLIMITED: no bound */
    struct plan_cost budget;   /* for all tasks of the class together */
    struct plan_cost expected; /* of a session's task; see plan_learn() */
    bool declared;             /* named under `classes` */
};

/* A provider: an account that runs sessions. */
struct plan_provider {
    const char *name; /* the first one is "local": PLAN_LOCAL */
    int64_t backoff_ns;
    int64_t backoff_ns_max;
    uint32_t circuit_failures; /* 0: no circuit breaker */
    int64_t probe_ns;
    int64_t probe_ns_max;
};

struct plan_group {
    const char *id;
    const char *title;       /* or NULL */
    const char *body;        /* text of the issue, or NULL */
    const char *body_file;   /* path as written, or NULL */
    const char *url;         /* of the issue, or NULL */
    const char *description; /* a few lines for people, or NULL */
    struct plan_labels labels;
    uint32_t closes; /* GitHub issue that its merge closes; 0: none */
    uint32_t parent; /* group that it is a part of, or PLAN_NONE */
    bool has_last;   /* some tasks come last: see struct plan_task */
    struct plan_time not_before;
    uint32_t repo;
    uint32_t task_count;               /* without those of its parts */
    struct plan_attribute *attributes; /* sorted by name */
    uint32_t attribute_count;
    struct plan_mark mark;
};

struct plan_use {
    uint32_t limit;
    uint32_t units;
};

/* What a task says about itself. Each may be NULL; except for the title, the
 * task then has that of its group. */
struct plan_words {
    const char *title;
    const char *body;
    const char *body_file; /* path as written */
    const char *url;
    const char *description;
};

struct plan_task {
    const char *id;
    const char *stage;              /* or NULL */
    const struct plan_words *words; /* never NULL */
    struct plan_labels labels; /* with those of its group and the parents */
    uint32_t class_ix;
    uint32_t group;
    uint32_t repo;
    uint32_t provider;
    /* Exactly one of the next four defines the work of a session. */
    struct plan_command run;
    uint32_t agent; /* or PLAN_NONE */
    bool merge;     /* the built-in merge stage */
    bool base_gate; /* the built-in gate of a base */
    bool last;      /* `finally`: starts when all others of its scope have come
                       to rest */
    bool approve;   /* starts when an operator has approved it */
    const struct plan_settings *settings; /* shared with tasks that have equal
                                             ones */
    uint32_t *needs; /* task indices, ascending, no duplicates */
    uint8_t *ons;    /* enum plan_on of each need */
    uint32_t need_count;
    uint32_t scope; /* the innermost group that it belongs to, through its group
                       and parents, with tasks that come last; PLAN_NONE: the
                       run */
    struct plan_time not_before; /* its own; see plan_start_ns() */
    struct plan_use *uses;       /* ascending by limit; only explicit ones */
    struct plan_attribute *attributes; /* sorted by name; class, repo, group,
                                          stage, provider, owner included */
    uint32_t use_count;
    uint16_t attribute_count;
    uint16_t rework_max;
    uint32_t rework_to; /* task index, or PLAN_NONE */
    uint32_t guard;     /* task: while it is parked, this one does not start; or
                           PLAN_NONE */
    struct plan_mark mark;
};

/* An edge that a fragment adds to an existing task. */
struct plan_edge {
    uint32_t dependent;
    uint32_t need;
    enum plan_on on;
};

struct plan_sync {
    uint32_t every; /* number of completions; 0: no sync hook */
    struct plan_command run;
    bool drain;
};

struct plan_usage_step {
    uint32_t percent;
    uint32_t cap;
};

/* A usage monitor: a program that prints meters, and the caps it sets. */
struct plan_usage {
    struct plan_command run;
    uint32_t agent;    /* agent with built-in meters, or PLAN_NONE */
    uint32_t provider; /* whose sessions it caps; PLAN_NONE: all */
    uint32_t limit;    /* the limit it lowers */
    int64_t every_ns;
    int64_t timeout_ns;
    int64_t margin_ns; /* after a reset */
    int64_t probe_ns;  /* first interval while the reset is unknown */
    int64_t probe_ns_max;
    struct plan_usage_step *steps; /* ascending by percent */
    uint32_t step_count;
};

/* A program that is notified of an event. */
struct plan_hook {
    const char *event;
    struct plan_command run;
    int64_t timeout_ns;
    uint32_t retries;
};

/* A deprecated name in the plan: see plan/alias.h. */
struct plan_old {
    struct plan_mark mark;
    const struct alias *alias;
    struct plan_old *next;
};

struct plan {
    const char *file; /* as given by the caller */
    const char *name;
    enum plan_policy policy;
    enum plan_goal goal;
    uint32_t schedules; /* that PLAN_POLICY_LOOKAHEAD tries for one plan */
    struct plan_repo *repos;
    uint32_t repo_count;
    struct plan_limit *limits;
    uint32_t limit_count;
    struct plan_class *classes;
    uint32_t class_count;
    struct plan_provider *providers;
    uint32_t provider_count;
    struct plan_agent *agents;
    uint32_t agent_count;
    struct plan_group *groups;
    uint32_t group_count;
    struct plan_task *tasks;
    uint32_t task_count;
    struct plan_edge *edges; /* from the last plan_add() only */
    uint32_t edge_count;
    struct plan_hook *hooks;
    uint32_t hook_count;
    struct plan_sync sync;
    struct plan_usage *usages;
    uint32_t usage_count;
    struct plan_cost budget; /* for the whole run */
    struct plan_time not_before;
    struct plan_time deadline;    /* when the run is stopped */
    bool old_rules;               /* see struct plan_source */
    struct plan_old *olds;        /* deprecated names in it, last one first */
    struct plan_private *private; /* arena, pipelines, name tables */
};

/* One error with its position. The list owns `text`. */
struct plan_error {
    struct plan_mark mark;
    char *text;
};

/* All errors of one reading, sorted by position. Starts as {0}. */
struct plan_errors {
    struct plan_error *items;
    uint32_t count;
    uint32_t capacity;
    bool cut; /* errors beyond PLAN_ERRORS_MAX were dropped */
};

enum { PLAN_ERRORS_MAX = 100 };

/* The source of a plan, with its file name for errors. */
struct plan_source {
    const char *file;
    const char *text;
    size_t len;
    uint32_t processors; /* default of `sessions` for a plan without repos */
    /* The plan of a run that began under PLAN_RULES 0: only the name of a class
     * gives a stage its class, and all others implement. */
    bool old_rules;
    bool no_base_gates; /* of a run that was submitted to an earlier version */
};

/* Version of the rules by which a plan is read; a run keeps its own. */
enum { PLAN_RULES = 1 };

/* Free the errors. */
void plan_errors_release(struct plan_errors *errors);

/*
 * Read a whole plan. On success return true and store it in *out. Otherwise
 * return false with at least one error in *errors; *out is then NULL.
 */
MUST_USE bool plan_read(struct plan **out,
                        const struct plan_source *source,
                        struct plan_errors *errors);

/*
 * Read a fragment (groups, tasks, resources, pipelines, needs) and append it to
 * the plan. Additional needs of existing tasks are stored in plan->edges and
 * also in their `needs`. An empty fragment adds nothing. On failure return
 * false and leave the plan unchanged.
 */
MUST_USE bool plan_add(struct plan *plan,
                       const struct plan_source *source,
                       struct plan_errors *errors);

/* Whether the last plan_add() has added anything. */
bool plan_has_added(const struct plan *plan);

/*
 * Undo the last successful plan_add() because the core rejected the fragment.
 * At most once, and before anything else changes the plan; the caller must no
 * longer use anything that it added.
 */
void plan_undo_add(struct plan *plan);

/* Free a plan. NULL is allowed. */
void plan_free(struct plan *plan);

/* Change the policy. The default maximum of `issues` follows it. */
void plan_set_policy(struct plan *plan, enum plan_policy policy);

/* Return the index of the task, or PLAN_NONE. */
uint32_t plan_find_task(const struct plan *plan, const char *id);

/* Return the index of the group, or PLAN_NONE. */
uint32_t plan_find_group(const struct plan *plan, const char *id);

/* The issue of a task: its group, or the task itself without a group. A body of
 * the task itself takes precedence. */
struct plan_issue {
    const char *id;
    const char *title;     /* or NULL */
    const char *body;      /* or NULL */
    const char *body_file; /* path as written, or NULL */
};
struct plan_issue plan_issue_of(const struct plan *plan,
                                const struct plan_task *task);

/*
 * Levels of the history: all sessions, those of a class, of a stage of it, and
 * of one repository and agent. Names are CLASS, and for the others JSON arrays
 * ("[]", ["CLASS","STAGE"], ["CLASS","STAGE","REPO","AGENT"]); null: none.
 */
enum plan_level {
    PLAN_LEVEL_STORE,
    PLAN_LEVEL_CLASS,
    PLAN_LEVEL_STAGE,
    PLAN_LEVEL_KIND,
    PLAN_LEVELS,
};

/* Append the name of a level of the task. */
void plan_level_name(const struct plan *plan,
                     const struct plan_task *task,
                     enum plan_level level,
                     struct strbuf *out);

/* Set what the history says about sessions of a level. False: no task of the
 * plan can be of it, nothing is set. */
bool plan_learn(struct plan *plan,
                const char *name,
                const struct learned *learned);

/* Take over what another plan knows from the history. */
void plan_learn_from(struct plan *plan, const struct plan *other);

/*
 * Return the expected duration of a session of the task alone, the mean: its
 * own estimate, corrected by how sessions compared to such estimates; else that
 * of sessions like it; without a history 10m.
 */
int64_t plan_estimate_ns(const struct plan *plan, const struct plan_task *task);

/*
 * The sessions of a task as forecasts draw them. Durations are log-normal, of
 * the task alone in its session. `fails` and `changes` exclude each other.
 */
struct plan_outlook {
    int64_t median_ns;
    double sigma;      /* of the logarithm of the duration */
    double fails;      /* probability that a session fails or is lost */
    double changes;    /* ... that it asks for changes; of a gate with rework:
                          that it fails */
    uint64_t sessions; /* that this is learned from; 0: defaults */
};
struct plan_outlook plan_outlook_of(const struct plan *plan,
                                    const struct plan_task *task);

/* Return the expected cost of a session of a task; 0 if unknown. */
struct plan_cost plan_expected_cost(const struct plan *plan,
                                    const struct plan_task *task);

/* Parse an amount as in plans, in units of a budget: 20 or 0.5 dollars; 200000,
 * 500k or 1.5M tokens. Return false if invalid or too large. */
MUST_USE bool plan_parse_usd(const char *text, int64_t *out);
MUST_USE bool plan_parse_tokens(const char *text, int64_t *out);

/* Whether a budget depends on the cost of the task's sessions and neither the
 * plan nor the history gives it. */
bool plan_is_cost_unknown(const struct plan *plan,
                          const struct plan_task *task);

/* Return the budget units of a session; 0: the budget does not apply. */
uint32_t plan_budget_units(const struct plan *plan,
                           const struct plan_limit *limit,
                           const struct plan_task *task);

/*
 * Return when a moment is, as wall clock time, for a run that starts at
 * `start_ns`. INT64_MIN: PLAN_TIME_NONE.
 */
int64_t plan_time_ns(struct plan_time time, int64_t start_ns);

/*
 * Parse a moment as in `not_before`: 22:00 or 2030-01-31 22:00 (local time),
 * 2030-01-31, 2030-01-31T22:00:00Z. Return false if invalid.
 */
MUST_USE bool plan_parse_time(const char *text, struct plan_time *out);

/*
 * Add an error for each date of the plan before `now_ns`, and return whether
 * there is any. For plans of new runs: the dates of a run pass while it exists.
 */
bool plan_find_past(const struct plan *plan,
                    int64_t now_ns,
                    struct plan_errors *errors);

/* Return the deadline of a run that starts at `start_ns`, or later if it or its
 * plan has an earliest start; INT64_MIN: none. */
int64_t plan_deadline_ns(const struct plan *plan,
                         int64_t start_ns,
                         int64_t not_before_ns);

/* Return the earliest start of a task: the latest `not_before` of the task, its
 * group, the group's parents and the plan; INT64_MIN: none. For a task that
 * comes last only its own counts: it may have to clean up before that. */
int64_t plan_start_ns(const struct plan *plan,
                      const struct plan_task *task,
                      int64_t start_ns);

/* Whether a group is `ancestor` or a part of it, directly or not; PLAN_NONE is
 * the run, which has all. */
bool plan_is_within(const struct plan *plan, uint32_t group, uint32_t ancestor);

/* Whether the class of the task has the role. */
static inline bool plan_has_role(const struct plan *plan,
                                 const struct plan_task *task,
                                 enum plan_role role)
{
    return plan->classes[task->class_ix].role == role;
}

/* Whether a failure of the task counts as "changes requested". */
static inline bool plan_reworks_on_failure(const struct plan *plan,
                                           const struct plan_task *task)
{
    return task->rework_to != PLAN_NONE &&
           plan_has_role(plan, task, PLAN_ROLE_GATE);
}

/* Limit what a task may add to the quotas of the task that has added it, and
 * confine it as that one is confined. */
void plan_bound_task(struct plan *plan, uint32_t task, uint32_t adder);

/* Whether two sandboxes confine alike; NULL: none. */
bool plan_same_sandbox(const struct plan_sandbox *a,
                       const struct plan_sandbox *b);

/* Whether the task's answer is a verdict on the work of other tasks. */
bool plan_is_review(const struct plan *plan, const struct plan_task *task);

/* Return the limit that is the window of a merge task's queue, or PLAN_NONE. */
uint32_t plan_window_of(const struct plan *plan, const struct plan_task *task);

/* Return the index of the limit, or PLAN_NONE. */
uint32_t plan_find_limit(const struct plan *plan, const char *name);

#endif /* PLAN_PLAN_H */
