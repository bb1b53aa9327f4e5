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
#include "plan/needs_internal.h"

#include "base/invariant.h"
#include "base/strbuf.h"

#include <stdlib.h>
#include <string.h>

enum {
    CYCLE_NAMES_MAX = 12,        /* names shown of a long cycle */
    CYCLES_MAX = 10,             /* cycles shown */
    REWORK_STEPS_MAX = 50000000, /* for all checks of `rework` together */
};

/* List the parts of each group. */
static void list_parts(struct resolver *resolver)
{
    const struct plan *plan = resolver->plan;
    bool any = false;
    for (uint32_t ix = 0; ix < plan->group_count && !any; ix++) {
        any = plan->groups[ix].parent != PLAN_NONE;
    }
    if (!any) {
        return;
    }
    resolver->first_part = mem_zalloc(plan->group_count, sizeof(uint32_t));
    resolver->next_part = mem_zalloc(plan->group_count, sizeof(uint32_t));
    for (uint32_t ix = 0; ix < plan->group_count; ix++) {
        resolver->first_part[ix] = PLAN_NONE;
        resolver->next_part[ix] = PLAN_NONE;
    }
    for (uint32_t ix = plan->group_count; ix > 0; ix--) {
        uint32_t parent = plan->groups[ix - 1].parent;
        if (parent != PLAN_NONE) {
            resolver->next_part[ix - 1] = resolver->first_part[parent];
            resolver->first_part[parent] = ix - 1;
        }
    }
}

static bool has_parts(const struct resolver *resolver, uint32_t group)
{
    return resolver->first_part != NULL &&
           resolver->first_part[group] != PLAN_NONE;
}

bool needs_is_loose(const struct resolver *resolver, uint32_t target)
{
    uint32_t ix = plan_target_ix(target);
    return plan_target_is_group(target) &&
           (resolver->plan->private->group_more[ix].first_task == PLAN_NONE ||
            has_parts(resolver, ix));
}

/* Steps 2 and 3 */

static void add_edge(struct resolver *resolver,
                     uint32_t dependent,
                     uint32_t need,
                     const struct plan_need *from)
{
    if (resolver->too_many) {
        return;
    }
    if (resolver->graph->edge_count >= PLAN_NEEDS_MAX) {
        plan_errors_add(resolver->reader->errors,
                        from->mark,
                        "more than %d needs, counting each task of a group",
                        PLAN_NEEDS_MAX);
        resolver->too_many = true;
        return;
    }
    const struct plan_task *tasks = resolver->plan->tasks;
    if (tasks[need].last && !(tasks[dependent].last &&
                              tasks[dependent].scope == tasks[need].scope)) {
        resolver->plan->private->last_needed = true;
    }
    graph_add_need_on(resolver->graph, dependent, need, from->on);
}

static void reserve_stack(struct resolver *resolver)
{
    if (resolver->stack == NULL) {
        resolver->stack =
            mem_zalloc(resolver->plan->task_count, sizeof(resolver->stack[0]));
    }
}

/* Return the group after this one in a walk through `root` and its parts, or
 * PLAN_NONE. */
static uint32_t
next_group(const struct resolver *resolver, uint32_t root, uint32_t group)
{
    if (has_parts(resolver, group)) {
        return resolver->first_part[group];
    }
    while (group != root && resolver->next_part[group] == PLAN_NONE) {
        group = resolver->plan->groups[group].parent;
    }
    return group == root ? PLAN_NONE : resolver->next_part[group];
}

static bool
is_member(const struct resolver *resolver, uint32_t task, uint32_t root)
{
    const struct plan_task *at = &resolver->plan->tasks[task];
    return !at->last && plan_is_within(resolver->plan, at->group, root);
}

/* Whether only a failure starts the task: see mark_remedies(). */
static bool is_remedy(const struct resolver *resolver, uint32_t task)
{
    return resolver->seen[plan_target(task, false)] == resolver->serial;
}

static void
mark_remedy(struct resolver *resolver, uint32_t task, uint32_t *depth)
{
    if (!is_remedy(resolver, task)) {
        resolver->seen[plan_target(task, false)] = resolver->serial;
        resolver->stack[(*depth)++] = task;
    }
}

/*
 * Mark the tasks of a group that need the failure of another one of it, and
 * those that need a marked one to be done: if all goes well they are skipped.
 */
static void mark_remedies(struct resolver *resolver, uint32_t root)
{
    const struct graph *graph = resolver->graph;
    const struct plan_private *private = resolver->plan->private;
    uint32_t depth = 0;
    reserve_stack(resolver);
    resolver->serial++;
    for (uint32_t group = root; group != PLAN_NONE;
         group = next_group(resolver, root, group)) {
        for (uint32_t task = private->group_more[group].newest_member;
             task != PLAN_NONE;
             task = private->next_member[task]) {
            for (uint32_t edge = graph_first_need(graph, task); edge != ID_NONE;
                 edge = graph_next_need(graph, edge)) {
                if (graph_on(graph, edge) == PLAN_ON_FAILED &&
                    is_member(resolver, graph_need(graph, edge), root)) {
                    mark_remedy(resolver, task, &depth);
                }
            }
        }
    }
    while (depth > 0) {
        uint32_t task = resolver->stack[--depth];
        for (uint32_t edge = graph_first_dependent(graph, task);
             edge != ID_NONE;
             edge = graph_next_dependent(graph, edge)) {
            uint32_t dependent = graph_dependent(graph, edge);
            if (graph_on(graph, edge) == PLAN_ON_DONE &&
                is_member(resolver, dependent, root)) {
                mark_remedy(resolver, dependent, &depth);
            }
        }
    }
}

/* Whether a task of the group that is done stands for this task, too. */
static bool is_inner(const struct resolver *resolver,
                     uint32_t task,
                     uint32_t root,
                     enum side side)
{
    const struct graph *graph = resolver->graph;
    bool first = side == SIDE_FIRST;
    uint32_t edge = first ? graph_first_need(graph, task)
                          : graph_first_dependent(graph, task);
    while (edge != ID_NONE) {
        uint32_t other =
            first ? graph_need(graph, edge) : graph_dependent(graph, edge);
        if (graph_on(graph, edge) == PLAN_ON_DONE &&
            is_member(resolver, other, root) &&
            (side != SIDE_LAST || !is_remedy(resolver, other))) {
            return true;
        }
        edge = first ? graph_next_need(graph, edge)
                     : graph_next_dependent(graph, edge);
    }
    return false;
}

static struct ends
find_ends(struct resolver *resolver, uint32_t root, enum side side)
{
    const struct plan *plan = resolver->plan;
    const struct plan_private *private = plan->private;
    struct ends ends = {.known = true};
    uint32_t total = 0;
    if (side == SIDE_LAST) {
        mark_remedies(resolver, root);
    }
    for (uint32_t group = root; group != PLAN_NONE;
         group = next_group(resolver, root, group)) {
        total += plan->groups[group].task_count;
    }
    ARENA_ARRAY(&resolver->arena, ends.tasks, total);
    for (uint32_t group = root; group != PLAN_NONE;
         group = next_group(resolver, root, group)) {
        for (uint32_t task = private->group_more[group].newest_member;
             task != PLAN_NONE;
             task = private->next_member[task]) {
            if (!plan->tasks[task].last &&
                (side != SIDE_LAST || !is_remedy(resolver, task)) &&
                !is_inner(resolver, task, root, side)) {
                ends.tasks[ends.count++] = task;
            }
        }
    }
    return ends;
}

/* Return the tasks that a target stands for. */
static struct ends ends_of(struct resolver *resolver,
                           uint32_t target,
                           enum side side,
                           uint32_t *one)
{
    uint32_t ix = plan_target_ix(target);
    if (!needs_is_loose(resolver, target)) {
        const struct plan_group_more *more =
            resolver->plan->private->group_more;
        *one = ix;
        if (plan_target_is_group(target)) {
            *one =
                side == SIDE_FIRST ? more[ix].first_task : more[ix].last_task;
        }
        return (struct ends){.tasks = one, .count = 1, .known = true};
    }
    struct ends **cache = &resolver->ends[side];
    if (*cache == NULL) {
        *cache = mem_zalloc(resolver->plan->group_count, sizeof(**cache));
    }
    if (!(*cache)[ix].known) {
        (*cache)[ix] = find_ends(resolver, ix, side);
    }
    return (*cache)[ix];
}

/* Add edges for the needs that involve loose groups, or for the others. */
static void add_edges(struct resolver *resolver, bool loose)
{
    const struct reader *reader = resolver->reader;
    for (uint32_t ix = 0; ix < reader->need_count; ix++) {
        const struct plan_need *need = &reader->needs[ix];
        bool is_it = needs_is_loose(resolver, need->dependent) ||
                     needs_is_loose(resolver, need->need);
        if (is_it != loose) {
            continue;
        }
        uint32_t one = 0;
        uint32_t other = 0;
        enum side side = need->on == PLAN_ON_ANY ? SIDE_ENDS : SIDE_LAST;
        struct ends from = ends_of(resolver, need->dependent, SIDE_FIRST, &one);
        struct ends to = ends_of(resolver, need->need, side, &other);
        for (uint32_t at = 0; at < from.count; at++) {
            for (uint32_t by = 0; by < to.count && !resolver->too_many; by++) {
                add_edge(resolver, from.tasks[at], to.tasks[by], need);
            }
        }
    }
}

/* Let each stage of a pipeline need the one before it. */
static void chain_stages(struct resolver *resolver, uint32_t group)
{
    const struct plan *plan = resolver->plan;
    const struct plan_group_more *more = &plan->private->group_more[group];
    struct plan_need need = {.mark = plan->groups[group].mark};
    uint32_t before = more->first_task;
    if (before == PLAN_NONE) {
        return;
    }
    for (uint32_t at = before + 1; at <= more->last_task; at++) {
        if (!plan->tasks[at].last) {
            add_edge(resolver, at, before, &need);
            before = at;
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
        chain_stages(resolver, ix);
    }
    add_edges(resolver, false);
    add_edges(resolver, true);
}

/* Whether the group has a task that does not come last, or parts. */
static bool has_work(const struct resolver *resolver, uint32_t group)
{
    const struct plan *plan = resolver->plan;
    uint32_t task = plan->private->group_more[group].newest_member;
    while (task != PLAN_NONE && plan->tasks[task].last) {
        task = plan->private->next_member[task];
    }
    return task != PLAN_NONE || has_parts(resolver, group);
}

/* Report groups without tasks, which are most likely a mistake. */
static void check_groups(const struct resolver *resolver)
{
    const struct reader *reader = resolver->reader;
    const struct plan *plan = resolver->plan;
    for (uint32_t ix = reader->before.groups; ix < plan->group_count; ix++) {
        if (!has_work(resolver, ix) && !reader->names_incomplete &&
            !reader->parents_bad && !plan->private->group_more[ix].bad) {
            plan_errors_add(reader->errors,
                            plan->groups[ix].mark,
                            "group %s has no tasks: give it a \"pipeline\", or "
                            "name it in \"group\" of a task or \"parent\" of "
                            "a group",
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
            (plan_target_is_group(need.need) &&
             plan_is_within(plan,
                            plan->tasks[to].group,
                            plan_target_ix(need.need)))) {
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

void plan_new_needs(struct plan *plan, struct plan_task *task, uint32_t count)
{
    size_t bytes = count * (sizeof(task->needs[0]) + sizeof(task->ons[0]));
    task->needs = arena_alloc(&plan->private->arena, 1, bytes);
    task->ons = (uint8_t *)(task->needs + count);
}

int plan_by_number(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return a < b ? -1 : a > b ? 1 : 0;
}

/* Return the position of a need between two tasks of this reading. */
static struct plan_mark
mark_of_need(const struct resolver *resolver, uint32_t task, uint32_t need)
{
    const struct reader *reader = resolver->reader;
    for (uint32_t ix = 0; ix < reader->need_count; ix++) {
        if (reader->needs[ix].dependent == plan_target(task, false) &&
            reader->needs[ix].need == plan_target(need, false)) {
            return reader->needs[ix].mark;
        }
    }
    return resolver->plan->tasks[task].mark;
}

/* Append a need to a list that is sorted by need, then by outcome. */
static void append_need(const struct resolver *resolver,
                        struct plan_task *task,
                        uint32_t need,
                        uint8_t on)
{
    uint32_t count = task->need_count;
    if (count == 0 || task->needs[count - 1] != need) {
        task->needs[count] = need;
        task->ons[count] = on;
        task->need_count++;
        return;
    }
    /* The one before says more, unless they exclude each other. */
    if (task->ons[count - 1] == PLAN_ON_DONE && on == PLAN_ON_FAILED) {
        const struct plan *plan = resolver->plan;
        plan_errors_add(
            resolver->reader->errors,
            mark_of_need(resolver, (uint32_t)(task - plan->tasks), need),
            "task %s can never start: it needs %s to be done, and "
            "to fail",
            QUOTED_TEXT(task->id),
            QUOTED_TEXT(plan->tasks[need].id));
    }
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
    plan_new_needs(resolver->plan, task, count);
    count = 0;
    for (uint32_t edge = graph_first_need(graph, task_ix); edge != ID_NONE;
         edge = graph_next_need(graph, edge)) {
        task->needs[count++] =
            graph_need(graph, edge) * PLAN_ONS + graph_on(graph, edge);
    }
    if (count > 1) {
        qsort(task->needs, count, sizeof(task->needs[0]), plan_by_number);
    }
    task->need_count = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        append_need(resolver,
                    task,
                    task->needs[ix] / PLAN_ONS,
                    (uint8_t)(task->needs[ix] % PLAN_ONS));
    }
}

/* Rebuild the list of an old task and record its new entries. */
static void extend_needs(const struct resolver *resolver, uint32_t task_ix)
{
    struct plan *plan = resolver->plan;
    struct plan_private *private = plan->private;
    struct plan_task *task = &plan->tasks[task_ix];
    struct plan_old_needs old = {task_ix,
                                 task->need_count,
                                 task->needs,
                                 task->ons};
    list_needs(resolver, task_ix);
    MEM_GROW(private->old_needs,
             private->old_needs_count,
             private->old_needs_capacity);
    private->old_needs[private->old_needs_count++] = old;
    uint32_t at = 0;
    for (uint32_t ix = 0; ix < task->need_count; ix++) {
        if (at == old.need_count || old.needs[at] != task->needs[ix]) {
            MEM_GROW(plan->edges, plan->edge_count, private->edge_capacity);
            plan->edges[plan->edge_count++] =
                (struct plan_edge){task_ix,
                                   task->needs[ix],
                                   (enum plan_on)task->ons[ix]};
            continue;
        }
        if (old.ons[at] != task->ons[ix]) {
            plan_errors_add(resolver->reader->errors,
                            mark_of_need(resolver, task_ix, task->needs[ix]),
                            "task %s already needs %s, with another \"on\"",
                            QUOTED_TEXT(task->id),
                            QUOTED_TEXT(plan->tasks[task->needs[ix]].id));
        }
        at++;
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
    reserve_stack(resolver);
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
        needs_report_unknown(reader, name, "task");
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
    list_parts(&resolver);
    needs_read(&resolver, extra);
    check_groups(&resolver);
    build_graph(&resolver);
    bool cycle = find_cycles(&resolver);
    if (!cycle && plan->private->last_needed && !resolver.too_many) {
        plan_check_last_cycles(reader);
    }
    resolve_reworks(&resolver, !cycle && !resolver.too_many);
    if (reader->errors->count == 0) {
        list_all(&resolver);
    }
    mem_free(resolver.seen);
    for (uint32_t side = 0; side < SIDES; side++) {
        mem_free(resolver.ends[side]);
    }
    mem_free(resolver.first_part);
    mem_free(resolver.next_part);
    mem_free(resolver.stack);
    arena_release(&resolver.arena);
}
