/* SPDX-License-Identifier: MIT */
/*
 * Orders for the worker: command, environment and files of a session or
 * program, derived from the plan and from earlier attempts. The worker chooses
 * where they run.
 */
#include "engine/engine_internal.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "engine/carry.h"
#include "plan/twin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 7 };

/* Grace of programs other than sessions, for which a plan has no setting. */
#define PROGRAM_GRACE_NS (10 * SECOND_NS)

/* An order under construction, and its strings. */
struct making {
    struct engine *engine;
    const struct session *session;
    const struct engine_run *run;
    const struct plan_task *task;
    struct arena arena;
    const char **env;
    uint32_t env_count;
    uint32_t env_capacity;
    struct work_file files[FILES_MAX];
    uint32_t file_count;
    struct assign_outputs outputs;
    struct strbuf text; /* of the item under construction */
};

/* Return the collected string as a copy, and clear it. */
static const char *take_text(struct making *making)
{
    const char *text = arena_strndup(&making->arena,
                                     strbuf_text(&making->text),
                                     making->text.len);
    strbuf_clear(&making->text);
    return text;
}

/* Add the collected string as the next variable. */
static void take(struct making *making)
{
    MEM_GROW(making->env, making->env_count, making->env_capacity);
    INVARIANT(memchr(strbuf_text(&making->text), '=', making->text.len) !=
              NULL);
    making->env[making->env_count++] = take_text(making);
    INVARIANT(making->text.len == 0);
}

static void set(struct making *making, const char *name, const char *value)
{
    strbuf_adds(&making->text, name);
    strbuf_adds(&making->text, "=");
    strbuf_adds(&making->text, value != NULL ? value : "");
    take(making);
}

static void set_number(struct making *making, const char *name, uint64_t value)
{
    strbuf_addf(&making->text, "%s=%llu", name, (unsigned long long)value);
    take(making);
}

/* Add a file for the session, with the collected string as its content. */
static void
take_file(struct making *making, const char *name, const char *variable)
{
    INVARIANT(making->file_count < FILES_MAX);
    size_t len = making->text.len;
    making->files[making->file_count++] = (struct work_file){
        .name = name,
        .variable = variable,
        .text = take_text(making),
        .len = len,
    };
}

static void release(struct making *making)
{
    arena_release(&making->arena);
    mem_free(making->env);
    assign_outputs_release(&making->outputs);
    strbuf_release(&making->text);
}

/* Add the issue's body: a file of the plan, or one of the attempt. */
static void add_body(struct making *making)
{
    const struct plan_task *task = making->task;
    const struct plan_group *group =
        task->group != PLAN_NONE ? &making->run->plan->groups[task->group]
                                 : NULL;
    bool own = group == NULL || task->words->body != NULL ||
               task->words->body_file != NULL;
    const char *body = own ? task->words->body : group->body;
    const char *file = own ? task->words->body_file : group->body_file;
    if (file != NULL) {
        strbuf_adds(&making->text, "SLUICE_BODY=");
        engine_add_path(&making->text, making->run->folder, file);
        take(making);
    } else if (body != NULL) {
        strbuf_adds(&making->text, body);
        take_file(making, "body", "SLUICE_BODY");
    } else {
        set(making, "SLUICE_BODY", NULL);
    }
}

/* Add the messages that came before it, the feedback, and the task list of a
 * batch. */
static void add_files(struct making *making)
{
    const struct session *session = making->session;
    (void)messages_add(&making->text, making->engine, session);
    if (making->text.len > 0) {
        take_file(making, WORK_MESSAGES, NULL); /* the worker names it */
    }
    const char *feedback =
        runs_past(&making->run->tasks[session->task])->feedback;
    if (feedback == NULL) {
        set(making, "SLUICE_FEEDBACK", NULL);
    } else {
        strbuf_adds(&making->text, feedback);
        take_file(making, "feedback", "SLUICE_FEEDBACK");
    }
    if (session->task_count == 1) {
        set(making, "SLUICE_BATCH", NULL);
        return;
    }
    struct task_id next =
        engine_core_task(making->engine, session->run, session->task);
    for (uint32_t n = 0; n < session->task_count; n++) {
        uint32_t ix = load_plan_task(making->run->loaded, next);
        strbuf_addf(&making->text, "%s\n", making->run->plan->tasks[ix].id);
        next = sched_session_next(making->engine->sched, next);
    }
    INVARIANT(next.v == ID_NONE);
    take_file(making, "batch", "SLUICE_BATCH");
}

static void set_task(struct making *making)
{
    const struct plan *plan = making->run->plan;
    const struct plan_task *task = making->task;
    set(making, "SLUICE_RUN", making->run->id);
    set(making, "SLUICE_TASK", task->id);
    set(making,
        "SLUICE_GROUP",
        task->group != PLAN_NONE ? plan->groups[task->group].id : NULL);
    set(making, "SLUICE_STAGE", task->stage);
    set(making, "SLUICE_CLASS", plan->classes[task->class_ix].name);
    const struct plan_repo *repo =
        task->repo != PLAN_NONE ? &plan->repos[task->repo] : NULL;
    set(making, "SLUICE_REPO", repo != NULL ? repo->name : NULL);
    set(making, "SLUICE_BASE", repo != NULL ? repo->base : NULL);
    set(making, "SLUICE_BRANCH", NULL);
    set(making, "SLUICE_START", NULL); /* sluice-git sets both */
    set(making, "SLUICE_TITLE", plan_issue_of(plan, task).title);
    set(making, "SLUICE_PLAN_DIR", making->run->folder);
    set_number(making, "SLUICE_ATTEMPT", making->session->number);
    set_number(making, "SLUICE_TOKEN", making->session->token);
    set_number(making, "SLUICE_SLOT", making->session->slot);
}

/* Set the path of each repository as SLUICE_REPO_<NAME>. */
static void set_repos(struct making *making)
{
    const struct plan *plan = making->run->plan;
    for (uint32_t ix = 0; ix < plan->repo_count; ix++) {
        if (plan->repos[ix].path == NULL) {
            continue;
        }
        strbuf_adds(&making->text, "SLUICE_REPO_");
        assign_add_upper(&making->text, plan->repos[ix].name);
        strbuf_adds(&making->text, "=");
        engine_add_path(&making->text,
                        making->run->folder,
                        plan->repos[ix].path);
        take(making);
    }
}

/* Set the outputs of the tasks that it needs. */
static void set_outputs(struct making *making)
{
    struct assign_outputs *outputs = &making->outputs;
    assign_outputs(outputs, making->engine, making->session);
    for (uint32_t ix = 0; ix < outputs->env_count; ix++) {
        strbuf_adds(&making->text, outputs->env[ix]);
        take(making);
    }
    if (outputs->json.len == 0) {
        set(making, "SLUICE_OUTPUTS", NULL);
    } else {
        strbuf_adds(&making->text, strbuf_text(&outputs->json));
        take_file(making, "outputs", "SLUICE_OUTPUTS");
    }
}

/* Set how the others of its scope have ended, if it comes last. */
static void set_outcome(struct making *making)
{
    const char *outcome = NULL;
    struct strbuf failed = {0};
    if (making->task->last) {
        outcome = assign_add_failed(&failed, making->engine, making->session);
    }
    set(making, "SLUICE_OUTCOME", outcome);
    set(making, "SLUICE_FAILED", strbuf_text(&failed));
    strbuf_release(&failed);
}

/* Set the data that the last attempt left, and this attempt's deadline. */
static void set_story(struct making *making)
{
    int64_t timeout_ns = making->task->settings->timeout_ns;
    const struct engine *engine = making->engine;
    struct carry carry = carry_read(
        runs_past(&making->run->tasks[making->session->task])->carry);
    set(making, "SLUICE_RESUME", carry.resume);
    carry_release(&carry);
    if (timeout_ns == PLAN_UNSET || timeout_ns == PLAN_UNLIMITED) {
        set(making, "SLUICE_DEADLINE", NULL);
    } else {
        int64_t until_ns = engine->world->wall_ns(engine->ctx) + timeout_ns;
        set_number(making, "SLUICE_DEADLINE", (uint64_t)(until_ns / SECOND_NS));
    }
}

static int64_t time_or_never(int64_t time_ns)
{
    return time_ns == PLAN_UNSET || time_ns == PLAN_UNLIMITED ? EXEC_NEVER
                                                              : time_ns;
}

bool assign_is_git(const struct engine *engine, const struct session *session)
{
    const struct plan *plan = engine->runs[session->run].plan;
    uint32_t repo = plan->tasks[session->task].repo;
    return repo != PLAN_NONE && plan_is_git(&plan->repos[repo]);
}

/* Return who implemented what a task merges: "claude, provider max", for an
 * agent; NULL: no agent did. The last implement stage counts. */
static const char *agent_of(struct making *making, uint32_t merge)
{
    const struct plan *plan = making->run->plan;
    const struct plan_task *from = &plan->tasks[merge];
    const struct plan_task *found = NULL;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        if (from->group != PLAN_NONE && task->group == from->group &&
            task->repo == from->repo && task->agent != PLAN_NONE &&
            plan_has_role(plan, task, PLAN_ROLE_IMPLEMENT)) {
            found = task;
        }
    }
    if (found == NULL) {
        return NULL;
    }
    strbuf_adds(&making->text, plan->agents[found->agent].name);
    if (found->provider != PLAN_NONE) {
        strbuf_addf(&making->text,
                    ", provider %s",
                    plan->providers[found->provider].name);
    }
    return take_text(making);
}

/* Add the verdicts that a merge, or a gate of a base, may rely on. */
static void add_gates(struct making *making)
{
    const struct plan_task *task = making->task;
    if ((task->merge || task->base_gate) &&
        making->run->plan->repos[task->repo].gate != NULL) {
        gates_add(&making->text, making->engine, making->session);
        take_file(making, "gates", NULL);
    }
}

/* Return the tasks of a session, with their groups and titles. A task without a
 * group is a group of its own. */
static const struct work_member *members_of(struct making *making)
{
    const struct session *session = making->session;
    const struct plan *plan = making->run->plan;
    struct work_member *members =
        arena_alloc(&making->arena, session->task_count, sizeof(members[0]));
    struct task_id next =
        engine_core_task(making->engine, session->run, session->task);
    for (uint32_t n = 0; n < session->task_count; n++) {
        uint32_t ix = load_plan_task(making->run->loaded, next);
        const struct plan_task *task = &plan->tasks[ix];
        struct plan_issue issue = plan_issue_of(plan, task);
        members[n] = (struct work_member){
            .task = task->id,
            .group = issue.id,
            .title = issue.title,
            .agent = task->merge ? agent_of(making, ix) : NULL,
        };
        next = sched_session_next(making->engine->sched, next);
    }
    INVARIANT(next.v == ID_NONE);
    return members;
}

static int by_token(const void *left, const void *right)
{
    const struct session *a = *(const struct session *const *)left;
    const struct session *b = *(const struct session *const *)right;
    return a->token < b->token ? -1 : a->token > b->token;
}

/* Return the merges of the same queue that are in flight and were claimed
 * before this one, in that order. */
static const struct work_before *before_of(struct making *making,
                                           uint32_t *count_out)
{
    const struct engine *engine = making->engine;
    const struct session *own = making->session;
    const struct session **list =
        arena_alloc(&making->arena, engine->session_count, sizeof(void *));
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < engine->session_count; ix++) {
        const struct session *session = &engine->sessions[ix];
        if (session->run != own->run || session->token >= own->token) {
            continue;
        }
        const struct plan_task *task = &making->run->plan->tasks[session->task];
        if (task->merge && task->repo == making->task->repo) {
            list[count++] = session;
        }
    }
    qsort(list, count, sizeof(void *), by_token);
    struct work_before *before =
        arena_alloc(&making->arena, count, sizeof(before[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        strbuf_addf(&making->text, "%u", list[ix]->number);
        before[ix] = (struct work_before){
            .task = making->run->plan->tasks[list[ix]->task].id,
            .name = take_text(making),
        };
    }
    *count_out = count;
    return before;
}

/*
 * Return a number that grows whenever the work of a task is sent back: how
 * often later stages have done so, and the last attempt before an operator did,
 * which resets the former. That attempt has a greater number than all rounds
 * before it, since each of them took an attempt.
 */
static uint32_t round_of(const struct engine *engine,
                         const struct session *session)
{
    const struct plan *plan = engine->runs[session->run].plan;
    const struct engine_run *r = &engine->runs[session->run];
    struct carry carry = carry_read(runs_past(&r->tasks[session->task])->carry);
    uint32_t round = (uint32_t)carry.since;
    carry_release(&carry);
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        if (plan->tasks[ix].rework_to == session->task) {
            struct task_id id = engine_core_task(engine, session->run, ix);
            round += sched_record(engine->sched, id).reworks;
        }
    }
    return round;
}

/* Return the message for uncommitted changes of an agent: the issue's title. */
static const char *message_of(struct making *making,
                              const struct work_member *member)
{
    strbuf_addf(&making->text,
                "%s%s%s",
                member->group,
                member->title != NULL ? ": " : "",
                member->title != NULL ? member->title : "");
    return take_text(making);
}

static struct work_paths paths_of(const struct plan_paths *paths)
{
    return (struct work_paths){
        .items = (const char *const *)paths->items,
        .count = paths->count,
    };
}

static struct work_git git_of(struct making *making)
{
    const struct plan *plan = making->run->plan;
    const struct plan_task *task = making->task;
    const struct plan_repo *repo = &plan->repos[task->repo];
    const struct work_member *members = members_of(making);
    bool writes = plan_has_role(plan, task, PLAN_ROLE_IMPLEMENT);
    uint32_t before_count = 0;
    const struct work_before *before =
        task->merge ? before_of(making, &before_count) : NULL;
    return (struct work_git){
        .repo = repo->name,
        .url = repo->url,
        .base = repo->base,
        .shared = twin_find(plan, making->run->folder, task->repo) != PLAN_NONE,
        .created_ns = making->run->created_ns,
        .merge = task->merge,
        .base_gate = task->base_gate,
        .update = repo->sync,
        .writes = writes,
        .pristine = plan_has_role(plan, task, PLAN_ROLE_GATE),
        .allow_empty = task->settings->allow_empty,
        .round = writes ? round_of(making->engine, making->session) : 0,
        .gate = repo->gate,
        .gate_retry = repo->gate_retry,
        .repair = repo->repair,
        .message =
            task->agent != PLAN_NONE ? message_of(making, &members[0]) : NULL,
        .keep = paths_of(&repo->keep),
        .copy = paths_of(&repo->copy),
        .remote_keep = repo->remote_keep,
        .fetch = repo->fetch,
        .once = task->settings->prepare_once,
        .members = members,
        .member_count = making->session->task_count,
        .before = before,
        .before_count = before_count,
    };
}

/* Return a NULL-terminated list of paths, absolute but for ~. */
static const char *const *resolve_all(struct making *making,
                                      const char *const *paths)
{
    uint32_t count = 0;
    while (paths[count] != NULL) {
        count++;
    }
    const char **made = arena_alloc(&making->arena, count + 1, sizeof(made[0]));
    for (uint32_t ix = 0; ix < count; ix++) {
        if (paths[ix][0] == '~') {
            made[ix] = paths[ix];
        } else {
            engine_add_path(&making->text, making->run->folder, paths[ix]);
            made[ix] = take_text(making);
        }
    }
    return made;
}

static struct work_sandbox sandbox_of(struct making *making)
{
    const struct plan_sandbox *sandbox = making->task->settings->sandbox;
    if (sandbox == NULL) {
        return (struct work_sandbox){0};
    }
    return (struct work_sandbox){
        .on = true,
        .network = sandbox->network,
        .write = resolve_all(making, sandbox->write),
        .read = resolve_all(making, sandbox->read),
        .env = sandbox->env,
    };
}

/* Find the plan's working directory for the session. */
static void find_folder(struct making *making, struct work_order *out)
{
    const struct plan_task *task = making->task;
    out->folder = making->run->folder;
    if (task->repo == PLAN_NONE) {
        return;
    }
    const char *path = making->run->plan->repos[task->repo].path;
    if (path != NULL) {
        engine_add_path(&making->text, making->run->folder, path);
        out->folder = take_text(making);
        out->named = true;
    }
    out->checkout = true;
}

/* Where it may run. The stages of an issue share a checkout, and tasks of one
 * repository its objects. */
static struct work_where where_of(struct making *making)
{
    const struct plan *plan = making->run->plan;
    const struct plan_task *task = making->task;
    const char *near = NULL;
    if (task->group != PLAN_NONE || task->repo != PLAN_NONE) {
        strbuf_addf(&making->text,
                    "%s %s %s",
                    making->run->id,
                    task->repo != PLAN_NONE ? plan->repos[task->repo].name : "",
                    task->group != PLAN_NONE ? plan->groups[task->group].id
                                             : "");
        near = take_text(making);
    }
    return (struct work_where){
        .label = load_label_of(making->run->loaded, making->session->task),
        .near = near,
    };
}

struct work_id assign_id(const struct engine *engine,
                         const struct session *session,
                         char name[ASSIGN_NAME_BYTES])
{
    const struct engine_run *run = &engine->runs[session->run];
    INVARIANT(session->token != 0);
    (void)snprintf(name, ASSIGN_NAME_BYTES, "%u", session->number);
    return (struct work_id){
        .token = session->token,
        .nonce = session->nonce,
        .run = run->id,
        .task = run->plan->tasks[session->task].id,
        .name = name,
    };
}

/* Fill in what a session needs to run. */
static enum err
fill(struct making *making, struct work_order *order, struct diag *diag)
{
    struct engine *engine = making->engine;
    const struct session *session = making->session;
    bool git = assign_is_git(engine, session);
    if (making->task->merge && !git) {
        /* Earlier versions let fragments and updates add such tasks. */
        return diag_set(diag,
                        ERR_INVALID,
                        "it merges, but its repo has no \"base\"");
    }
    order->where = where_of(making);
    find_folder(making, order);
    order->sandbox = sandbox_of(making);
    set_task(making);
    set_repos(making);
    set_story(making);
    set_outcome(making);
    set_outputs(making);
    add_files(making);
    add_body(making);
    if (git) {
        order->git = git_of(making);
        add_gates(making);
    }
    INVARIANT(order->folder != NULL);
    if (!order->agent) {
        return ERR_OK;
    }
    enum err err = assign_add_brief(engine,
                                    session,
                                    strbuf_text(&making->outputs.json),
                                    &making->text,
                                    diag);
    take_file(making, "brief", NULL);
    return err;
}

enum err assign_session(struct engine *engine,
                        const struct session *session,
                        struct strbuf *offer_out,
                        struct diag *diag)
{
    const struct engine_run *run = &engine->runs[session->run];
    const struct plan_task *task = &run->plan->tasks[session->task];
    session_check(engine, session);
    INVARIANT(offer_out != NULL || session->phase == SESSION_ASSIGNED);
    struct making making = {
        .engine = engine,
        .session = session,
        .run = run,
        .task = task,
    };
    char name[ASSIGN_NAME_BYTES];
    struct work_order order = {
        .id = assign_id(engine, session, name),
        .want = session->refusal != NULL ? WORK_WITHDRAW : session->want,
        .prepare = task->settings->prepare,
        .shell = task->run.shell,
        .argv = (const char *const *)task->run.argv,
        .agent = task->agent != PLAN_NONE,
        .timeout_ns = time_or_never(task->settings->timeout_ns),
        .idle_ns = time_or_never(task->settings->idle_timeout_ns),
        .checkpoint_ns = time_or_never(task->settings->checkpoint_after_ns),
        .grace_ns = task->settings->grace_ns,
    };
    enum err err =
        order.want == WORK_RUN ? fill(&making, &order, diag) : ERR_OK;
    order.env = making.env;
    order.env_count = making.env_count;
    order.files = making.files;
    order.file_count = making.file_count;
    INVARIANT(order.git.member_count == 0 ||
              order.git.member_count == session->task_count);
    if (err == ERR_OK && offer_out != NULL) {
        engine->world->offer(engine->ctx, &order, offer_out);
    } else if (err == ERR_OK) {
        engine->world->assign(engine->ctx, &order);
    }
    release(&making);
    return err;
}

void assign_program(struct engine *engine,
                    const struct program *program,
                    const struct work_id *id)
{
    struct program_call call = program->ops->call(engine, program);
    INVARIANT(program->id == id->token && work_is_program(id));
    INVARIANT(strcmp(call.run, id->run) == 0);
    struct making making = {.engine = engine};
    set(&making, "SLUICE_RUN", id->run);
    for (uint32_t ix = 0; ix < call.env_count; ix++) {
        strbuf_adds(&making.text, call.env[ix]);
        take(&making);
    }
    struct work_file file = {
        .name = call.file,
        .variable = call.variable,
        .text = call.input,
        .len = call.input != NULL ? strlen(call.input) : 0,
    };
    bool wanted = program->ops->is_wanted(engine, program);
    struct work_order order = {
        .id = *id,
        .want = wanted ? WORK_RUN : WORK_STOP,
        .again = program->stored,
        .folder = call.folder,
        .shell = call.shell,
        .argv = (const char *const *)call.argv,
        .agent = call.agent,
        .env = making.env,
        .env_count = making.env_count,
        .files = &file,
        .file_count = 1,
        .timeout_ns = call.timeout_ns,
        .idle_ns = EXEC_NEVER,
        .checkpoint_ns = EXEC_NEVER,
        .grace_ns = PROGRAM_GRACE_NS,
    };
    engine->world->assign(engine->ctx, &order);
    release(&making);
}
