/* SPDX-License-Identifier: MIT */
/*
 * plan_internal: declarations shared by the sources of plan/ only.
 *
 * Reading has three steps. (1) node.c builds a tree of nodes. (2) The read_*.c
 * sources convert its parts to the arrays of the plan, in an order in which
 * each name (repo, provider, class, limit, pipeline) can be resolved at once.
 * (3) needs.c resolves the needs of tasks and groups, once all of them are
 * known, and searches for cycles.
 *
 * Every step reports all errors and continues. It replaces an invalid value by
 * a harmless one, so that one mistake gives one error.
 */
#ifndef PLAN_PLAN_INTERNAL_H
#define PLAN_PLAN_INTERNAL_H

#include "base/arena.h"
#include "base/mem.h"
#include "base/strmap.h"
#include "core/graph.h"
#include "plan/node.h"
#include "plan/plan.h"
#include "plan/settings.h"
#include "plan/suggest.h"

enum {
    PLAN_ID_BYTES_MAX = 200,
    PLAN_LABEL_BYTES_MAX = 64,  /* of workers */
    PLAN_LINE_BYTES_MAX = 1000, /* titles and other one-line strings */
    PLAN_PATH_BYTES_MAX = 4096,
    PLAN_TEXT_BYTES_MAX = 1 << 20, /* issue bodies, prompts */
    PLAN_TASKS_MAX = 2000000,
    PLAN_NEEDS_MAX = 20000000, /* after expanding groups to tasks */
    PLAN_UNITS_MAX = 1000000,  /* of a limit */
    PLAN_STAGES_MAX = 100,
    PLAN_ATTRIBUTES_MAX = 64, /* of a group or task, without our own */
    PLAN_ERRORS_HELD_MAX = 10 * PLAN_ERRORS_MAX,
};

/* A stage of a pipeline: the template of one task per group. */
struct plan_stage {
    const char *name;
    const char *title;
    uint32_t class_ix;
    struct plan_command run;
    uint32_t agent; /* or PLAN_NONE */
    bool merge;
    bool last; /* `finally: true` */
    bool approve;
    struct plan_time not_before;
    bool uses_reported;           /* an error about `uses` was reported */
    const struct node *uses_node; /* while reading its file; else NULL */
    struct plan_use *uses;
    uint32_t use_count;
    uint32_t rework_to; /* stage index, or PLAN_NONE */
    uint32_t rework_max;
    struct settings settings;
    struct plan_mark mark;
};

struct plan_pipeline {
    const char *name;
    struct plan_stage *stages;
    uint32_t stage_count;
    bool bad; /* not all stages are known: report nothing about them */
    struct plan_mark mark;
};

/* Private part of a group. */
struct plan_group_more {
    const struct settings *settings;  /* NULL: none */
    struct plan_attribute *free_ones; /* sorted by name */
    uint32_t free_count;
    uint32_t first_task; /* first task of its pipeline, or PLAN_NONE */
    uint32_t last_task;
    uint32_t newest_member; /* head of a list of all its tasks */
    bool bad; /* not all tasks are known: report nothing about them */
};

/* Array sizes before a fragment was added. */
struct plan_counts {
    uint32_t limits;
    uint32_t classes;
    uint32_t providers;
    uint32_t agents;
    uint32_t pipelines;
    uint32_t groups;
    uint32_t tasks;
    uint32_t texts;
    uint32_t nodes;
    uint32_t edges;
    uint32_t group_needs;
    struct arena_mark mark;
};

/* Needs of an old task before a fragment added to them. */
struct plan_old_needs {
    uint32_t task;
    uint32_t need_count;
    uint32_t *needs;
    uint8_t *ons;
};

/* A moment as the plan gives it, for plan_find_past(). */
struct plan_time_given {
    const char *key;  /* "not_before" or "deadline" */
    const char *text; /* the value */
    struct plan_time time;
    struct plan_mark mark;
};

/* Both are targets; see plan_target(). */
struct plan_need {
    uint32_t dependent;
    uint32_t need;
    enum plan_on on;
    struct plan_mark mark;
};

/* What the history says about one level; see plan_learn(). */
struct plan_level_known {
    char *name;
    struct learned learned;
};

/* Give a task these words. */
void plan_set_words(struct plan *plan,
                    struct plan_task *task,
                    const struct plan_words *words);

enum { PLAN_KEPT_SETTINGS = 16 };

struct plan_private {
    struct arena arena;
    struct strmap names; /* task and group ids, to targets */
    struct strmap repo_names;
    struct strmap limit_names;
    uint32_t merge_window; /* largest of its merge stages; 0: none given */
    struct strmap class_names;
    struct strmap provider_names;
    struct strmap agent_names;
    struct strmap pipeline_names;
    struct strmap text_names; /* interned strings, to their index */
    struct strmap free_names; /* names of attributes of groups and tasks */
    const char **texts;
    uint32_t text_count;
    uint32_t text_capacity;
    const char *own_names[6]; /* see attributes.c */
    struct settings defaults;
    /* The last settings of tasks that differed, the oldest first to go. */
    const struct plan_settings *kept_settings[PLAN_KEPT_SETTINGS];
    uint32_t kept_count;             /* of all */
    uint32_t declared_classes;       /* built-in and declared ones come first */
    uint32_t declared_providers;     /* the same */
    struct settings *class_settings; /* one per class, `defaults` included */
    struct plan_pipeline *pipelines;
    uint32_t pipeline_count;
    uint32_t pipeline_capacity;
    struct plan_group_more *group_more; /* one per group */
    uint32_t *next_member;              /* one per task */
    struct graph graph;                 /* one node per task */
    uint32_t repo_capacity;
    uint32_t limit_capacity;
    uint32_t class_capacity;
    uint32_t class_settings_capacity;
    uint32_t provider_capacity;
    uint32_t agent_capacity;
    uint32_t group_capacity;
    uint32_t group_more_capacity;
    uint32_t task_capacity;
    uint32_t next_member_capacity;
    uint32_t edge_capacity;
    struct plan_level_known *levels; /* of the history */
    uint32_t level_count;
    uint32_t level_capacity;
    struct strmap level_names;
    struct plan_need *group_needs; /* of groups, for parts added later */
    uint32_t group_need_count;
    uint32_t group_need_capacity;
    struct plan_time_given *times; /* of the plan, without its fragments */
    uint32_t time_count;
    uint32_t time_capacity;
    bool last_needed;   /* another task needs one that comes last */
    bool no_base_gates; /* see struct plan_source */
    bool can_undo;
    struct plan_counts before; /* of the last fragment, for plan_undo_add() */
    struct plan_old_needs *old_needs;
    uint32_t old_needs_count;
    uint32_t old_needs_capacity;
};

/* Unresolved references of a task or group of this reading. */
struct plan_pending {
    const struct node *needs;     /* or NULL */
    const struct node *rework_to; /* or NULL */
};

/* State of reading one source. */
struct reader {
    struct plan *plan;
    struct plan_errors *errors;
    struct plan_counts before; /* all zero for a whole plan */
    bool fragment;
    bool last;                 /* in a list of `finally`... */
    uint32_t last_group;       /* ...of this group, PLAN_NONE: of the plan */
    const struct node *orphan; /* group whose parent was reported */
    bool names_incomplete;     /* a part with ids was unreadable */
    bool parents_bad;          /* a wrong "parent" was reported */
    bool too_many;             /* PLAN_TASKS_MAX was reported */
    bool repo_missing;         /* an unknown repo was reported */
    bool old_rules;            /* see struct plan_source */
    uint32_t suggest_budget;
    struct plan_pending *pending; /* one per new task */
    uint32_t pending_capacity;
    struct plan_pending *pending_groups; /* one per new group */
    uint32_t pending_groups_capacity;
    struct plan_need *needs;
    uint32_t need_count;
    uint32_t need_capacity;
};

/* Encode a task or group index as one number, the target of an id. */
static inline uint32_t plan_target(uint32_t ix, bool group)
{
    return ix * 2 + (group ? 1 : 0);
}

static inline bool plan_target_is_group(uint32_t target)
{
    return target % 2 == 1;
}

static inline uint32_t plan_target_ix(uint32_t target)
{
    return target / 2;
}

/* errors.c */

/* A quoted string, shortened to one line, for error messages. */
struct quoted {
    char text[160];
};

/* Add an error; the first PLAN_ERRORS_HELD_MAX are kept. */
void plan_errors_add(struct plan_errors *errors,
                     struct plan_mark mark,
                     const char *format,
                     ...) PRINTF_LIKE(3, 4);

/* Report an error about a node; `from` is any struct with `errors`. */
#define REPORT(from, node, ...)                                                \
    plan_errors_add((from)->errors, node_mark(node), __VA_ARGS__)

/* Sort by position and truncate to PLAN_ERRORS_MAX. */
void plan_errors_finish(struct plan_errors *errors);

/* Write `len` bytes of `text` in quotes into *out and return the string. */
const char *plan_quoted(struct quoted *out, const char *text, size_t len);

/* The quoted string of a scalar, valid in the enclosing block. */
#define QUOTED(node)                                                           \
    plan_quoted(&(struct quoted){{0}}, (node)->text, (node)->count)
#define QUOTED_TEXT(string)                                                    \
    plan_quoted(&(struct quoted){{0}}, (string), strlen(string))

/* Prepare a suggestion for an unknown name, and offer it the known names. */
struct suggest plan_guess(struct reader *reader, const struct node *name);
#define SUGGEST_ALL(guess, list, count, member)                                \
    do {                                                                       \
        uint32_t at = 0;                                                       \
        while (at < (count) && suggest_offer((guess), (list)[at].member)) {    \
            at++;                                                              \
        }                                                                      \
    } while (0)

/* Return the index that a name maps to, or PLAN_NONE. */
static inline uint32_t plan_lookup(const struct strmap *names,
                                   const struct node *name)
{
    return strmap_find(names, name->text, name->count);
}

/* Report: unknown WHAT "NAME" (did you mean "BEST"?) */
void plan_report_unknown(struct reader *reader,
                         const struct node *name,
                         const char *what,
                         struct suggest *guess);

/* read_parts.c: parts that refer to no other part. */
void plan_read_repos(struct reader *reader, const struct node *node);
void plan_read_providers(struct reader *reader, const struct node *node);
void plan_read_classes(struct reader *reader, const struct node *node);

/* read_checkout.c: keys for checkouts: a struct plan_paths, a bool (true:
 * keep), and a struct settings of which `prepare` is read. */
field_fn plan_read_paths;
field_fn plan_read_remote;
field_fn plan_read_hub;
field_fn plan_read_prepare;

/* Check that a repo with such keys has a base. */
void plan_check_url(struct reader *reader,
                    const struct node *key,
                    const struct plan_repo *repo);
void plan_check_checkout(struct reader *reader,
                         const struct node *key,
                         const struct plan_repo *repo);

/* read_agents.c: coding agents. */
void plan_read_agents(struct reader *reader, const struct node *node);

/* Return the index of an agent, created if built-in; PLAN_NONE: error. */
uint32_t plan_resolve_agent(struct reader *reader, const struct node *name);

/* Check that not both a string and its file are given. */
void plan_check_text(struct reader *reader,
                     const struct node *node,
                     const char *name,
                     const char *text,
                     const char *file);

/* Check that budgets in money can take effect, when all tasks are known. */
void plan_check_agents(struct reader *reader);

/* read_control.c: parts that act on the run. */
void plan_read_lookahead(struct reader *reader, const struct node *node);
void plan_read_sync(struct reader *reader, const struct node *node);
void plan_read_usages(struct reader *reader, const struct node *node);
void plan_read_hooks(struct reader *reader, const struct node *node);
void plan_read_budget(struct reader *reader, const struct node *node);

/* Check that tasks use the monitored providers, when all tasks are known. */
void plan_check_usages(struct reader *reader, const struct node *node);

/* Create the limits of all budgets; then check the declared costs of tasks. */
void plan_add_budgets(struct plan *plan);
/* Add a limit for each class under a budget, for sessions of unknown cost. */
void plan_add_costs(struct plan *plan);
void plan_check_costs(struct reader *reader);

/* Free what the plan knows from the history. */
void plan_forget(struct plan *plan);

/* Return the index of a repo, or PLAN_NONE after an error. */
uint32_t plan_resolve_repo(struct reader *reader, const struct node *name);

/* Return the index of a provider, created if new; a misspelling is an error. */
uint32_t plan_resolve_provider(struct reader *reader, const struct node *name);

/* Return the index of a class, created if new; a misspelling is an error. */
uint32_t plan_resolve_class(struct reader *reader, const struct node *name);

/* The keys of a task or stage that its class follows from. */
struct plan_named {
    const struct node *class; /* or NULL */
    const struct node *name;  /* or NULL: unreadable */
    bool stage;               /* not a task */
    bool merge;
    bool agent;
};

/*
 * Return the class of a task or stage: the given one, else the merge class,
 * else the declared class of a stage's name, else gate for the name of a test.
 * Any other task is of class implement; any other stage is an error.
 */
uint32_t plan_class_of(struct reader *reader, const struct plan_named *named);

/* Return the index of the provider; create it with defaults if it is new. */
uint32_t plan_add_provider(struct plan *plan, const char *name, size_t len);

/* Add the classes and the provider that need no declaration. */
void plan_add_built_ins(struct plan *plan);

/* Fill unset settings of classes from the defaults. */
void plan_settle_classes(struct plan *plan);

/* read_limits.c */

/* Read the default limits, then the plan's (node may be NULL). */
void plan_read_limits(struct reader *reader,
                      const struct node *node,
                      uint32_t processors);
void plan_read_resources(struct reader *reader, const struct node *node);

/* Add the window of each merge queue, when all stages are known. */
void plan_add_windows(struct plan *plan);

/* Append a limit and return its index. */
uint32_t plan_add_limit(struct plan *plan, struct plan_limit limit);

/* Create a list of one attribute, for `where`. */
struct plan_attribute *
plan_where(struct plan *plan, const char *name, const char *value);

/* Check the names in `where` and `per`, when all tasks are known. */
void plan_check_limits(struct reader *reader, const struct node *node);

/* Read a `uses` mapping; the result is sorted by limit. */
void plan_read_uses(struct reader *reader,
                    const struct node *node,
                    struct plan_use **uses_out,
                    uint32_t *count_out);

/*
 * Check that the limits a task uses exist and apply to it; false after an
 * error. `subject` names it in errors, such as: task "a"; `uses` is the node of
 * its `uses`, or NULL if it is not in this file.
 */
bool plan_check_uses(struct reader *reader,
                     const struct plan_task *task,
                     const struct node *uses,
                     const char *subject);

/* read_pipelines.c */

/* Return the index of the stage, or PLAN_NONE. */
uint32_t plan_find_stage(const struct plan_pipeline *pipeline,
                         const char *name);
void plan_read_pipelines(struct reader *reader, const struct node *node);

/* Read `merge`, the most branches per session, into a uint32_t, and raise the
 * batch of the stage's class to it. Its `window` counts for the plan. */
enum { MERGE_BATCH_MAX = 16, MERGE_WINDOW_MAX = 1000 };
field_fn plan_read_merge;
void plan_set_merge_batch(struct plan *plan, uint32_t class_ix, uint32_t batch);

/* Read {to, max}; *to_out is the node of the name, or NULL. */
void plan_read_rework(struct reader *reader,
                      const struct node *node,
                      const struct node **to_out,
                      uint32_t *max_out);

/*
 * Determine the work of a session of a stage or task. `run` (may be NULL),
 * `merge` and an agent of its own exclude each other; one is required, or comes
 * from the class. *agent_out is the agent, or PLAN_NONE.
 */
struct plan_place {
    const struct node *node;
    const struct node *run;
    const struct settings *settings; /* its own */
    uint32_t class_ix;
    bool merge;
    const char *what; /* "a stage", "a task" */
};
struct plan_command plan_read_run(struct reader *reader,
                                  const struct plan_place *place,
                                  uint32_t *agent_out);

/* attributes.c */

/* Read an `attributes` mapping; the result is sorted by name. */
void plan_read_attributes(struct reader *reader,
                          const struct node *node,
                          struct plan_attribute **out,
                          uint32_t *count_out);

/* Intern the names of sluice's own attributes in the plan. */
void plan_intern_own_names(struct plan *plan);

/* Whether sluice itself sets an attribute of that name. */
bool plan_is_own_attribute(const char *name);

/* Return the value of an attribute in a sorted list, or NULL. */
const char *plan_attribute_value(const struct plan_attribute *list,
                                 uint32_t count,
                                 const char *name);

/* Add the free attributes of its parent to those of a group. */
void plan_inherit_attributes(struct reader *reader, uint32_t group_ix);

/* Set the attributes of a group: sluice's own and free ones. */
void plan_set_group_attributes(struct plan *plan,
                               uint32_t group_ix,
                               const char *owner);

/* Set the attributes of a task: sluice's own, free ones and its group's. */
void plan_set_task_attributes(struct plan *plan,
                              uint32_t task_ix,
                              const char *owner,
                              const struct plan_attribute *free_ones,
                              uint32_t free_count);

/* read_groups.c, read_tasks.c */
void plan_read_groups(struct reader *reader, const struct node *node);
void plan_read_tasks(struct reader *reader, const struct node *node);

/* Read a `finally` list: tasks that come last in the group, or in the plan if
 * it is PLAN_NONE. */
void plan_read_last(struct reader *reader,
                    const struct node *node,
                    uint32_t group);

/* Report keys that a task of `finally` cannot have; `what` is its name in
 * messages. */
void plan_check_last(struct reader *reader,
                     const struct node *node,
                     const char *what);

/* Give a task the settings of one that comes last. */
void plan_make_last(struct plan *plan, struct plan_task *task);

/* parents.c: groups that are parts of others. */

/* Read the items of `groups`, each after its parent. */
void plan_read_nested(struct reader *reader,
                      const struct node *node,
                      void (*read)(struct reader *, const struct node *));

/* Return the group that `parent` of a group names, or PLAN_NONE after an
 * error. */
uint32_t plan_find_parent(struct reader *reader,
                          const struct node *group,
                          const struct node *name);

/* Set the scope of each new task. */
void plan_set_scopes(struct reader *reader);

/* last.c: report a cycle through tasks that come last; there must be no other
 * cycle. */
void plan_check_last_cycles(struct reader *reader);

/* times.c, issue.c: a struct plan_time (`deadline`: a duration, too), a struct
 * plan_labels, and an address. */
field_fn plan_read_time;
field_fn plan_read_deadline;
field_fn plan_read_labels;
field_fn plan_read_url;

/* Return both lists as one. */
struct plan_labels plan_join_labels(struct plan *plan,
                                    struct plan_labels own,
                                    struct plan_labels farther);

/*
 * Append an empty task; report an excess once and return NULL. The pointer is
 * valid until the next call.
 */
struct plan_task *plan_new_task(struct reader *reader, struct plan_mark mark);

/* Check the id of a task or group (NULL: missing) and report errors; false if
 * it is not a string. */
bool plan_check_id(struct reader *reader, const struct node *id);

/* Read the items of the list `label`, until the plan has too many tasks. */
void plan_read_items(struct reader *reader,
                     const struct node *node,
                     const char *label,
                     void (*read)(struct reader *, const struct node *));

/* Register the id of a task or group; false if it is a duplicate. */
bool plan_enter_id(struct reader *reader,
                   const char *id,
                   uint32_t target,
                   struct plan_mark mark);

/* Link the task into its group (`group` must be set). */
void plan_join_group(struct plan *plan, uint32_t task_ix);

/*
 * Fill settings, provider and prepare of a task from `own` (merged from task,
 * stage and group) and its class. Return its owner, or NULL.
 */
const char *plan_settle_task(struct plan *plan,
                             struct plan_task *task,
                             struct settings own);

/* Give a task these settings. Tasks in a row mostly have equal ones: one copy
 * serves them all. */
void plan_set_settings(struct plan *plan,
                       struct plan_task *task,
                       const struct plan_settings *settings);

/* base_gates.c: add the gates of bases that new merge tasks need; forget those
 * from an index on. */
void plan_add_base_gates(struct reader *reader);
void plan_cut_base_gates(struct plan *plan, uint32_t count);

/* needs.c */

/* Number of the values of enum plan_on. A need and its outcome are sorted as
 * one number. */
enum { PLAN_ONS = PLAN_ON_ANY + 1 };

/* Give a task room for a list of needs and their outcomes. */
void plan_new_needs(struct plan *plan, struct plan_task *task, uint32_t count);

/* Compare two uint32_t, for qsort(). */
int plan_by_number(const void *left, const void *right);

/* Let a task need another. */
void plan_add_need(struct reader *reader,
                   uint32_t task,
                   uint32_t need,
                   enum plan_on on);

/* Resolve all needs, including `extra` (may be NULL). */
void plan_resolve_needs(struct reader *reader, const struct node *extra);

/* plan.c */

/* Return the single copy of a string, so that pointers can be compared. */
const char *plan_intern(struct plan *plan, const char *text, size_t len);

#endif /* PLAN_PLAN_INTERNAL_H */
