/* SPDX-License-Identifier: MIT */
/*
 * Dependency resolution, once every task and group is known.
 *
 * (1) Resolve each entry of a `needs` list to a task or a group. (2) Add the
 * edges that need no further analysis to the graph of the plan: needs between
 * tasks, stages of a pipeline, groups with a pipeline (dependents need their
 * last stage; their own needs go to their first). (3) Expand groups without a
 * pipeline, using the edges of step 2: dependents need the tasks of the group
 * that no other of its tasks needs, and its own needs go to the tasks that need
 * no other. (4) Search the graph for a cycle. (5) Build the sorted lists of the
 * tasks from the graph, without duplicates.
 */
#include "plan/plan_internal.h"

#include "base/invariant.h"
#include "base/strbuf.h"

#include <stdlib.h>
#include <string.h>

enum {
    CYCLE_NAMES_MAX = 12,        /* names shown of a long cycle */
    CYCLES_MAX = 10,             /* cycles shown */
    REWORK_STEPS_MAX = 50000000, /* for all checks of `rework` together */
};

/* The first or last tasks of a group; see step 3. */
struct ends {
    uint32_t *tasks;
    uint32_t count;
    bool known;
};

/* State of the resolution. */
struct resolver {
    struct reader *reader;
    struct plan *plan;
    struct graph *graph;
    uint32_t *seen; /* per target: the last list or walk that visited it */
    uint32_t serial;
    struct ends *last;  /* per group, or NULL if not needed yet */
    struct ends *first; /* the same */
    struct arena arena; /* memory of first and last */
    uint32_t *stack;    /* for walks, one entry per task */
    uint32_t steps_left;
    bool too_many;
};

static const char *target_id(const struct plan *plan, uint32_t target)
{
    uint32_t ix = plan_target_ix(target);
    return plan_target_is_group(target) ? plan->groups[ix].id
                                        : plan->tasks[ix].id;
}

/* Whether the group has no pipeline. */
static bool is_loose(const struct plan *plan, uint32_t target)
{
    return plan_target_is_group(target) &&
           plan->private->group_more[plan_target_ix(target)].first_task ==
               PLAN_NONE;
}

/* Whether the name may be a stage of a group that was unreadable. */
static bool is_in_bad_group(const struct plan *plan, const struct node *name)
{
    if (name->count > 2 * PLAN_ID_BYTES_MAX) {
        return false;
    }
    for (uint32_t len = name->count; len > 0; len--) {
        if (name->text[len - 1] != '/') {
            continue;
        }
        uint32_t target =
            strmap_find(&plan->private->names, name->text, len - 1);
        if (target != STRMAP_NONE && plan_target_is_group(target) &&
            plan->private->group_more[plan_target_ix(target)].bad) {
            return true;
        }
    }
    return false;
}

static void
report_unknown(struct reader *reader, const struct node *name, const char *what)
{
    const struct plan *plan = reader->plan;
    if (reader->names_incomplete || is_in_bad_group(plan, name)) {
        return;
    }
    struct suggest guess = plan_guess(reader, name);
    SUGGEST_ALL(&guess, plan->groups, plan->group_count, id);
    SUGGEST_ALL(&guess, plan->tasks, plan->task_count, id);
    plan_report_unknown(reader, name, what, &guess);
}

/* Step 1 */

/* Return the error in this need, or NULL. */
static const char *
need_fault(const struct resolver *resolver, uint32_t dependent, uint32_t need)
{
    const struct plan *plan = resolver->plan;
    uint32_t dependent_ix = plan_target_ix(dependent);
    uint32_t need_ix = plan_target_ix(need);
    if (dependent == need) {
        return "itself";
    }
    if (!plan_target_is_group(dependent) && is_loose(plan, need) &&
        plan->tasks[dependent_ix].group == need_ix) {
        return "its own group";
    }
    if (plan_target_is_group(dependent) && !plan_target_is_group(need) &&
        plan->tasks[need_ix].group == dependent_ix) {
        return "its own task";
    }
    return NULL;
}

static void resolve_entry(struct resolver *resolver,
                          uint32_t dependent,
                          const struct node *name)
{
    struct reader *reader = resolver->reader;
    struct plan *plan = resolver->plan;
    if (!fields_is_text(reader, name, "a need", "the id of a task or group")) {
        return;
    }
    uint32_t need = plan_lookup(&plan->private->names, name);
    if (need == STRMAP_NONE) {
        report_unknown(reader, name, "task or group");
        return;
    }
    const char *fault = need_fault(resolver, dependent, need);
    if (fault != NULL) {
        REPORT(reader,
               name,
               "%s %s needs %s%s%s",
               plan_target_is_group(dependent) ? "group" : "task",
               QUOTED_TEXT(target_id(plan, dependent)),
               fault,
               dependent == need ? "" : " ",
               dependent == need ? "" : QUOTED(name));
        return;
    }
    if (resolver->seen[need] == resolver->serial) {
        REPORT(reader, name, "%s is listed twice", QUOTED(name));
        return;
    }
    resolver->seen[need] = resolver->serial;
    MEM_GROW(reader->needs, reader->need_count, reader->need_capacity);
    reader->needs[reader->need_count++] = (struct plan_need){
        .dependent = dependent,
        .need = need,
        .mark = node_mark(name),
    };
}

static void resolve_list(struct resolver *resolver,
                         uint32_t dependent,
                         const struct node *node)
{
    resolver->serial++;
    if (node_is_scalar(node) && !fields_is_empty(node)) {
        resolve_entry(resolver, dependent, node);
        return;
    }
    if (node->kind != NODE_LIST) {
        fields_expected(resolver->reader,
                        node,
                        "\"needs\"",
                        "an id or a list of ids of tasks and groups");
        return;
    }
    for (const struct node *item = node_first(node); item != NULL;
         item = node_next(item)) {
        resolve_entry(resolver, dependent, item);
    }
}

/* Read `needs` at the top of a fragment: more needs for tasks and groups. */
static void resolve_extra(struct resolver *resolver, const struct node *extra)
{
    struct reader *reader = resolver->reader;
    if (!fields_is_mapping(reader, extra, "\"needs\"")) {
        return;
    }
    NODE_EACH_KEY(extra)
    {
        uint32_t dependent = plan_lookup(&resolver->plan->private->names, key);
        if (dependent == STRMAP_NONE) {
            report_unknown(reader, key, "task or group");
        } else {
            resolve_list(resolver, dependent, node_value(key));
        }
    }
}

static void resolve_all(struct resolver *resolver, const struct node *extra)
{
    const struct reader *reader = resolver->reader;
    const struct plan *plan = resolver->plan;
    for (uint32_t ix = reader->before.groups; ix < plan->group_count; ix++) {
        const struct node *node =
            reader->pending_groups[ix - reader->before.groups].needs;
        if (node != NULL) {
            resolve_list(resolver, plan_target(ix, true), node);
        }
    }
    for (uint32_t ix = reader->before.tasks; ix < plan->task_count; ix++) {
        const struct node *node =
            reader->pending[ix - reader->before.tasks].needs;
        if (node != NULL) {
            resolve_list(resolver, plan_target(ix, false), node);
        }
    }
    if (extra != NULL) {
        resolve_extra(resolver, extra);
    }
}

/* Steps 2 and 3 */

static void add_edge(struct resolver *resolver,
                     uint32_t dependent,
                     uint32_t need,
                     struct plan_mark mark)
{
    if (resolver->too_many) {
        return;
    }
    if (resolver->graph->edge_count >= PLAN_NEEDS_MAX) {
        plan_errors_add(resolver->reader->errors,
                        mark,
                        "more than %d needs, counting each task of a group",
                        PLAN_NEEDS_MAX);
        resolver->too_many = true;
        return;
    }
    graph_add_need(resolver->graph, dependent, need);
}

/* Whether a task of the same group needs this task (last), or the reverse. */
static bool is_inner(const struct resolver *resolver, uint32_t task, bool last)
{
    const struct graph *graph = resolver->graph;
    const struct plan_task *tasks = resolver->plan->tasks;
    uint32_t edge = last ? graph_first_dependent(graph, task)
                         : graph_first_need(graph, task);
    while (edge != ID_NONE) {
        uint32_t other =
            last ? graph_dependent(graph, edge) : graph_need(graph, edge);
        if (tasks[other].group == tasks[task].group) {
            return true;
        }
        edge = last ? graph_next_dependent(graph, edge)
                    : graph_next_need(graph, edge);
    }
    return false;
}

/* Find the last (first) tasks of a loose group. */
static struct ends
find_ends(struct resolver *resolver, uint32_t group, bool last)
{
    const struct plan *plan = resolver->plan;
    const struct plan_private *private = plan->private;
    struct ends ends = {.known = true};
    ARENA_ARRAY(&resolver->arena, ends.tasks, plan->groups[group].task_count);
    for (uint32_t task = private->group_more[group].newest_member;
         task != PLAN_NONE;
         task = private->next_member[task]) {
        if (!is_inner(resolver, task, last)) {
            ends.tasks[ends.count++] = task;
        }
    }
    return ends;
}

/* Return the tasks of a target: as a need (last) or as a dependent. */
static struct ends
ends_of(struct resolver *resolver, uint32_t target, bool last, uint32_t *one)
{
    uint32_t ix = plan_target_ix(target);
    if (!is_loose(resolver->plan, target)) {
        const struct plan_group_more *more =
            resolver->plan->private->group_more;
        *one = ix;
        if (plan_target_is_group(target)) {
            *one = last ? more[ix].last_task : more[ix].first_task;
        }
        return (struct ends){.tasks = one, .count = 1, .known = true};
    }
    struct ends **cache = last ? &resolver->last : &resolver->first;
    if (*cache == NULL) {
        *cache = mem_zalloc(resolver->plan->group_count, sizeof(**cache));
    }
    if (!(*cache)[ix].known) {
        (*cache)[ix] = find_ends(resolver, ix, last);
    }
    return (*cache)[ix];
}

/* Add edges for the needs that involve loose groups, or for the others. */
static void add_edges(struct resolver *resolver, bool loose)
{
    const struct reader *reader = resolver->reader;
    for (uint32_t ix = 0; ix < reader->need_count; ix++) {
        struct plan_need need = reader->needs[ix];
        bool is_it = is_loose(resolver->plan, need.dependent) ||
                     is_loose(resolver->plan, need.need);
        if (is_it != loose) {
            continue;
        }
        uint32_t one = 0;
        uint32_t other = 0;
        struct ends from = ends_of(resolver, need.dependent, false, &one);
        struct ends to = ends_of(resolver, need.need, true, &other);
        for (uint32_t at = 0; at < from.count; at++) {
            for (uint32_t by = 0; by < to.count && !resolver->too_many; by++) {
                add_edge(resolver, from.tasks[at], to.tasks[by], need.mark);
            }
        }
    }
}

static void build_graph(struct resolver *resolver)
{
    const struct reader *reader = resolver->reader;
    const struct plan *plan = resolver->plan;
    uint32_t fresh = plan->task_count - reader->before.tasks;
    uint32_t edges = resolver->graph->edge_count;
    graph_reserve(resolver->graph, 0, edges + reader->need_count + fresh);
    graph_add_nodes(resolver->graph, fresh);
    for (uint32_t ix = reader->before.groups; ix < plan->group_count; ix++) {
        const struct plan_group_more *more = &plan->private->group_more[ix];
        if (more->first_task == PLAN_NONE) {
            continue;
        }
        for (uint32_t at = more->first_task; at < more->last_task; at++) {
            add_edge(resolver, at + 1, at, plan->groups[ix].mark);
        }
    }
    add_edges(resolver, false);
    add_edges(resolver, true);
}

/* Report groups without tasks, which are most likely a mistake. */
static void check_groups(const struct resolver *resolver)
{
    const struct reader *reader = resolver->reader;
    const struct plan *plan = resolver->plan;
    for (uint32_t ix = reader->before.groups; ix < plan->group_count; ix++) {
        if (plan->groups[ix].task_count == 0 && !reader->names_incomplete &&
            !plan->private->group_more[ix].bad) {
            plan_errors_add(reader->errors,
                            plan->groups[ix].mark,
                            "group %s has no tasks: give it a \"pipeline\", or "
                            "name it in \"group\" of a task",
                            QUOTED_TEXT(plan->groups[ix].id));
        }
    }
}

/* Step 4 */

/* Return the position of a need between two tasks of the cycle. */
static struct plan_mark mark_of_cycle(const struct resolver *resolver,
                                      const uint32_t *cycle,
                                      uint32_t count)
{
    const struct plan *plan = resolver->plan;
    const struct reader *reader = resolver->reader;
    uint32_t *next = mem_zalloc(plan->task_count, sizeof(next[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        next[cycle[ix]] = cycle[(ix + 1) % count] + 1;
    }
    struct plan_mark mark = plan->tasks[cycle[0]].mark;
    for (uint32_t ix = 0; ix < reader->need_count; ix++) {
        struct plan_need need = reader->needs[ix];
        uint32_t from = plan_target_ix(need.dependent);
        if (plan_target_is_group(need.dependent)) {
            from = plan->private->group_more[from].first_task;
        }
        if (from == PLAN_NONE || next[from] == 0) {
            continue;
        }
        uint32_t to = next[from] - 1;
        if (need.need == plan_target(to, false) ||
            need.need == plan_target(plan->tasks[to].group, true)) {
            mark = need.mark;
            break;
        }
    }
    mem_free(next);
    return mark;
}

/* Append an id, escaped as in errors, without quotes. */
static void add_id(struct strbuf *text, const struct plan_task *task)
{
    const char *quoted = QUOTED_TEXT(task->id);
    strbuf_add(text, quoted + 1, strlen(quoted) - 2);
}

static void report_cycle(const struct resolver *resolver,
                         const uint32_t *cycle,
                         uint32_t count)
{
    const struct plan *plan = resolver->plan;
    struct strbuf text = {0};
    for (uint32_t ix = 0; ix < count; ix++) {
        if (count > CYCLE_NAMES_MAX && ix == CYCLE_NAMES_MAX - 2) {
            strbuf_addf(&text,
                        "... %u more ... -> ",
                        count - CYCLE_NAMES_MAX + 1);
            ix = count - 1;
        }
        add_id(&text, &plan->tasks[cycle[ix]]);
        strbuf_adds(&text, " -> ");
    }
    add_id(&text, &plan->tasks[cycle[0]]);
    plan_errors_add(resolver->reader->errors,
                    mark_of_cycle(resolver, cycle, count),
                    "needs form a cycle: %s",
                    strbuf_text(&text));
    strbuf_release(&text);
}

/* Unlink the edges of this reading between two tasks; true if any existed. */
static bool unlink_need(struct resolver *resolver, uint32_t task, uint32_t need)
{
    struct graph *graph = resolver->graph;
    uint32_t *link = &graph->nodes[task].first_need;
    bool cut = false;
    while (*link != ID_NONE && *link >= resolver->reader->before.edges) {
        if (graph_need(graph, *link) == need) {
            *link = graph_next_need(graph, *link);
            cut = true;
        } else {
            link = &graph->edges[*link].next_need;
        }
    }
    return cut;
}

/*
 * Break the cycle at an edge of this reading, so that the search can continue.
 * From then on the graph may only be truncated, which still works: lists start
 * with the newest edges, and older edges are unchanged.
 */
static void
open_cycle(struct resolver *resolver, const uint32_t *cycle, uint32_t count)
{
    uint32_t ix = 0;
    while (!unlink_need(resolver, cycle[ix], cycle[(ix + 1) % count])) {
        ix++;
        INVARIANT(ix < count);
    }
}

/* Return the first task with a need of this reading, to search from. */
static uint32_t first_changed(const struct resolver *resolver)
{
    uint32_t first = resolver->reader->before.tasks;
    for (uint32_t edge = resolver->reader->before.edges;
         edge < resolver->graph->edge_count;
         edge++) {
        uint32_t dependent = graph_dependent(resolver->graph, edge);
        first = dependent < first ? dependent : first;
    }
    return first;
}

/* Report the cycles that this reading closed; true if any exists. */
static bool find_cycles(struct resolver *resolver)
{
    uint32_t first = first_changed(resolver);
    uint32_t found = 0;
    while (found < CYCLES_MAX) {
        uint32_t count = 0;
        uint32_t *cycle = graph_find_cycle(resolver->graph, first, &count);
        if (cycle == NULL) {
            break;
        }
        report_cycle(resolver, cycle, count);
        open_cycle(resolver, cycle, count);
        mem_free(cycle);
        found++;
    }
    return found > 0;
}

/* Step 5 */

int plan_by_number(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return a < b ? -1 : a > b ? 1 : 0;
}

/* Build the list of a task from the graph. */
static void list_needs(const struct resolver *resolver, uint32_t task_ix)
{
    struct plan_task *task = &resolver->plan->tasks[task_ix];
    const struct graph *graph = resolver->graph;
    uint32_t count = 0;
    for (uint32_t edge = graph_first_need(graph, task_ix); edge != ID_NONE;
         edge = graph_next_need(graph, edge)) {
        count++;
    }
    if (count == 0) {
        return;
    }
    ARENA_ARRAY(&resolver->plan->private->arena, task->needs, count);
    count = 0;
    for (uint32_t edge = graph_first_need(graph, task_ix); edge != ID_NONE;
         edge = graph_next_need(graph, edge)) {
        task->needs[count++] = graph_need(graph, edge);
    }
    if (count > 1) {
        qsort(task->needs, count, sizeof(task->needs[0]), plan_by_number);
    }
    task->need_count = 1;
    for (uint32_t ix = 1; ix < count; ix++) {
        if (task->needs[ix] != task->needs[task->need_count - 1]) {
            task->needs[task->need_count++] = task->needs[ix];
        }
    }
}

/* Rebuild the list of an old task and record its new entries. */
static void extend_needs(const struct resolver *resolver, uint32_t task_ix)
{
    struct plan *plan = resolver->plan;
    struct plan_private *private = plan->private;
    struct plan_task *task = &plan->tasks[task_ix];
    struct plan_old_needs old = {task_ix, task->need_count, task->needs};
    list_needs(resolver, task_ix);
    if (task->need_count == old.need_count) {
        task->needs = old.needs;
        return;
    }
    MEM_GROW(private->old_needs,
             private->old_needs_count,
             private->old_needs_capacity);
    private->old_needs[private->old_needs_count++] = old;
    uint32_t at = 0;
    for (uint32_t ix = 0; ix < task->need_count; ix++) {
        if (at < old.need_count && old.needs[at] == task->needs[ix]) {
            at++;
        } else {
            MEM_GROW(plan->edges, plan->edge_count, private->edge_capacity);
            plan->edges[plan->edge_count++] =
                (struct plan_edge){task_ix, task->needs[ix]};
        }
    }
}

static void list_all(struct resolver *resolver)
{
    const struct reader *reader = resolver->reader;
    for (uint32_t ix = reader->before.tasks; ix < resolver->plan->task_count;
         ix++) {
        list_needs(resolver, ix);
    }
    resolver->serial++;
    for (uint32_t edge = reader->before.edges;
         edge < resolver->graph->edge_count;
         edge++) {
        uint32_t dependent = graph_dependent(resolver->graph, edge);
        uint32_t target = plan_target(dependent, false);
        if (dependent < reader->before.tasks &&
            resolver->seen[target] != resolver->serial) {
            resolver->seen[target] = resolver->serial;
            extend_needs(resolver, dependent);
        }
    }
}

/* rework */

/* Whether `task` needs `wanted`, directly or indirectly, within the budget. */
static bool
needs_indirectly(struct resolver *resolver, uint32_t task, uint32_t wanted)
{
    if (resolver->stack == NULL) {
        resolver->stack =
            mem_zalloc(resolver->plan->task_count, sizeof(resolver->stack[0]));
    }
    uint32_t depth = 0;
    resolver->serial++;
    resolver->stack[depth++] = task;
    while (depth > 0) {
        uint32_t top = resolver->stack[--depth];
        for (uint32_t edge = graph_first_need(resolver->graph, top);
             edge != ID_NONE && resolver->steps_left > 0;
             edge = graph_next_need(resolver->graph, edge)) {
            uint32_t need = graph_need(resolver->graph, edge);
            uint32_t target = plan_target(need, false);
            resolver->steps_left--;
            if (need == wanted) {
                return true;
            }
            if (resolver->seen[target] != resolver->serial) {
                resolver->seen[target] = resolver->serial;
                resolver->stack[depth++] = need;
            }
        }
    }
    return false;
}

/* Resolve `rework: {to: ...}` of one task. */
static void
resolve_rework(struct resolver *resolver, uint32_t task_ix, bool walk)
{
    struct reader *reader = resolver->reader;
    struct plan *plan = resolver->plan;
    struct plan_task *task = &plan->tasks[task_ix];
    const struct node *name =
        reader->pending[task_ix - reader->before.tasks].rework_to;
    uint32_t target = plan_lookup(&plan->private->names, name);
    if (target == STRMAP_NONE) {
        report_unknown(reader, name, "task");
        return;
    }
    uint32_t to = plan_target_ix(target);
    const char *fault = NULL;
    if (plan_target_is_group(target)) {
        fault = ", which is a group";
    } else if (task->group == PLAN_NONE ||
               plan->tasks[to].group != task->group) {
        fault = ", which is not a task of the same group";
    } else if (walk &&
               (to == task_ix || !needs_indirectly(resolver, task_ix, to))) {
        fault = resolver->steps_left > 0
                    ? ": it does not need that task, directly or indirectly"
                    : ": the path to that task is too long";
    }
    if (fault != NULL) {
        REPORT(reader,
               name,
               "task %s cannot send work back to %s%s",
               QUOTED_TEXT(task->id),
               QUOTED(name),
               fault);
        return;
    }
    task->rework_to = to;
}

static void resolve_reworks(struct resolver *resolver, bool walk)
{
    const struct reader *reader = resolver->reader;
    for (uint32_t ix = reader->before.tasks; ix < resolver->plan->task_count;
         ix++) {
        if (reader->pending[ix - reader->before.tasks].rework_to != NULL) {
            resolve_rework(resolver, ix, walk);
        }
    }
}

void plan_resolve_needs(struct reader *reader, const struct node *extra)
{
    struct plan *plan = reader->plan;
    uint32_t targets =
        2 * (plan->task_count > plan->group_count ? plan->task_count
                                                  : plan->group_count);
    struct resolver resolver = {
        .reader = reader,
        .plan = plan,
        .graph = &plan->private->graph,
        .seen = mem_zalloc(targets, sizeof(uint32_t)),
        .steps_left = REWORK_STEPS_MAX,
    };
    resolve_all(&resolver, extra);
    check_groups(&resolver);
    build_graph(&resolver);
    bool cycle = find_cycles(&resolver);
    resolve_reworks(&resolver, !cycle && !resolver.too_many);
    if (reader->errors->count == 0) {
        list_all(&resolver);
    }
    mem_free(resolver.seen);
    mem_free(resolver.last);
    mem_free(resolver.first);
    mem_free(resolver.stack);
    arena_release(&resolver.arena);
}
