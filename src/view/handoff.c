/* SPDX-License-Identifier: MIT */
/*
 * Handoff notes from git and the store. Git decides whether a group is merged;
 * stages and reasons come from the store. Titles and reasons are untrusted:
 * each becomes one plain line without markup.
 */
#include "view/handoff.h"

#include "base/jsonw.h"
#include "base/mem.h"
#include "base/plain.h"
#include "exec/attempt_file.h"
#include "git/handoff.h"
#include "git/hub.h"
#include "git/names.h"
#include "plan/twin.h"

#include <string.h>

enum { SHORT_ID = 10 };

/* One repository of a run. */
struct repo_view {
    const struct store_place *place;
    const struct engine *engine;
    uint32_t run;
    struct engine_run_view view;
    uint32_t repo;
    uint32_t *first; /* first task of each group */
    struct handoff handoff;
};

/* Append untrusted text as one line without markup. */
static void add_plain(struct strbuf *out, const char *text)
{
    struct strbuf line = {0};
    plain_add(&line, text);
    for (size_t ix = 0; ix < line.len; ix++) {
        if (strchr("\\`*_<>[]|", line.text[ix]) != NULL) {
            strbuf_adds(out, "\\");
        }
        strbuf_add(out, &line.text[ix], 1);
    }
    strbuf_release(&line);
}

/* Append untrusted text as code, between more backticks than it has in a row.
 */
static void add_code(struct strbuf *out, const char *text)
{
    struct strbuf line = {0};
    plain_add(&line, text);
    size_t most = 0;
    size_t run = 0;
    for (const char *at = strbuf_text(&line); *at != '\0'; at++) {
        run = *at == '`' ? run + 1 : 0;
        most = run > most ? run : most;
    }
    strbuf_pad(out, '`', most + 1);
    strbuf_addf(out, most > 0 ? " %s " : "%s", strbuf_text(&line));
    strbuf_pad(out, '`', most + 1);
    strbuf_release(&line);
}

/* Whether a task belongs to the group whose first task is `first`. */
static bool
is_member(const struct repo_view *repo, uint32_t first, uint32_t task)
{
    const struct plan_task *tasks = repo->view.plan->tasks;
    return tasks[task].repo == repo->repo &&
           (task == first || (tasks[first].group != PLAN_NONE &&
                              tasks[task].group == tasks[first].group));
}

static struct sched_task core_task(const struct repo_view *repo, uint32_t task)
{
    return sched_task(engine_sched(repo->engine),
                      load_task(repo->view.loaded, task));
}

/* Whether the group continues without the task: it is optional, and failed or
 * was skipped for another reason than its needs. */
static bool is_given_up(const struct repo_view *repo, uint32_t task)
{
    struct sched_task view = core_task(repo, task);
    return repo->view.plan->tasks[task].settings->optional &&
           (view.state == TASK_FAILED ||
            (view.state == TASK_SKIPPED && view.unmet == 0));
}

/* Return the first task of a group that is neither done nor given up. If all
 * are given up, return the first; PLAN_NONE: the group is done. */
static uint32_t open_task(const struct repo_view *repo, uint32_t first)
{
    bool done = false;
    for (uint32_t ix = first; ix < repo->view.plan->task_count; ix++) {
        if (!is_member(repo, first, ix)) {
            continue;
        }
        if (core_task(repo, ix).state == TASK_DONE) {
            done = true;
        } else if (!is_given_up(repo, ix)) {
            return ix;
        }
    }
    return done ? PLAN_NONE : first;
}

/* List the groups that work in the repository. */
static void find_groups(struct repo_view *repo)
{
    const struct plan *plan = repo->view.plan;
    repo->first = mem_zalloc(plan->task_count, sizeof(repo->first[0]));
    repo->handoff.groups =
        mem_zalloc(plan->task_count, sizeof(repo->handoff.groups[0]));
    bool *seen = mem_zalloc(plan->group_count, sizeof(seen[0]));
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        uint32_t group = plan->tasks[ix].group;
        if (plan->tasks[ix].repo != repo->repo || plan->tasks[ix].base_gate ||
            (group != PLAN_NONE && seen[group])) {
            continue;
        }
        if (group != PLAN_NONE) {
            seen[group] = true;
        }
        repo->first[repo->handoff.group_count] = ix;
        repo->handoff.groups[repo->handoff.group_count++].group =
            plan_issue_of(plan, &plan->tasks[ix]).id;
    }
    mem_free(seen);
}

/* Append the attempts of each stage: "implement 2, gate 1". */
static void
add_attempts(struct strbuf *out, const struct repo_view *repo, uint32_t first)
{
    const struct plan *plan = repo->view.plan;
    const char *comma = "";
    for (uint32_t ix = first; ix < plan->task_count; ix++) {
        uint32_t number = engine_attempt_number(repo->engine, repo->run, ix);
        if (is_member(repo, first, ix) && number > 0) {
            const char *stage = plan->tasks[ix].stage;
            strbuf_addf(out,
                        "%s%s %u",
                        comma,
                        stage != NULL ? stage : plan->tasks[ix].id,
                        number);
            comma = ", ";
        }
    }
}

/* Append ": `TASK` is STATE" and the reason. */
static void
add_state(struct strbuf *out, const struct repo_view *repo, uint32_t task)
{
    const char *reason = engine_reason(repo->engine, repo->run, task);
    strbuf_adds(out, ": ");
    add_code(out, repo->view.plan->tasks[task].id);
    strbuf_addf(out,
                " is %s%s",
                is_given_up(repo, task) ? "optional and " : "",
                sched_state_name(core_task(repo, task).state));
    if (reason != NULL) {
        strbuf_adds(out, ": ");
        add_plain(out, reason);
    }
}

static void
add_head(struct strbuf *out, const struct repo_view *repo, size_t ix)
{
    const struct plan *plan = repo->view.plan;
    const char *title =
        plan_issue_of(plan, &plan->tasks[repo->first[ix]]).title;
    strbuf_adds(out, "- **");
    add_plain(out, repo->handoff.groups[ix].group);
    strbuf_adds(out, "**");
    if (title != NULL) {
        strbuf_adds(out, " ");
        add_plain(out, title);
    }
}

static void
add_done(struct strbuf *out, const struct repo_view *repo, size_t ix)
{
    const struct handoff_group *group = &repo->handoff.groups[ix];
    add_head(out, repo, ix);
    if (group->merged.text[0] != '\0') {
        strbuf_addf(out, ", merged in %.*s", SHORT_ID, group->merged.text);
    }
    strbuf_adds(out, " (attempts: ");
    add_attempts(out, repo, repo->first[ix]);
    strbuf_adds(out, ")");
    for (uint32_t task = repo->first[ix]; task < repo->view.plan->task_count;
         task++) {
        if (is_member(repo, repo->first[ix], task) && is_given_up(repo, task)) {
            add_state(out, repo, task);
        }
    }
    strbuf_adds(out, "\n");
}

static void
add_open(struct strbuf *out, const struct repo_view *repo, size_t ix)
{
    add_head(out, repo, ix);
    add_state(out, repo, open_task(repo, repo->first[ix]));
    strbuf_adds(out, "\n");
}

enum section { SECTION_DONE, SECTION_PERSON, SECTION_OPEN, SECTION_COUNT };

/* Return the section of a group: done, parked or failed, else not finished. */
static enum section section_of(const struct repo_view *repo, size_t ix)
{
    uint32_t task = open_task(repo, repo->first[ix]);
    if (task == PLAN_NONE) {
        return SECTION_DONE;
    }
    enum task_state state = core_task(repo, task).state;
    return state == TASK_PARKED ||
                   (state == TASK_FAILED && !is_given_up(repo, task))
               ? SECTION_PERSON
               : SECTION_OPEN;
}

static void add_section(struct strbuf *out,
                        const struct repo_view *repo,
                        enum section section)
{
    static const char *const titles[SECTION_COUNT] = {
        [SECTION_DONE] = "Done",
        [SECTION_PERSON] = "Needs attention",
        [SECTION_OPEN] = "Not finished",
    };
    bool any = false;
    for (size_t ix = 0; ix < repo->handoff.group_count; ix++) {
        if (section_of(repo, ix) != section) {
            continue;
        }
        if (!any) {
            strbuf_addf(out, "\n## %s\n\n", titles[section]);
        }
        any = true;
        if (section == SECTION_DONE) {
            add_done(out, repo, ix);
        } else {
            add_open(out, repo, ix);
        }
    }
}

/* Return the issue of GitHub that the merge of a group closes; 0: none. */
static uint32_t closes(const struct repo_view *repo, size_t ix)
{
    const struct plan *plan = repo->view.plan;
    uint32_t group = plan->tasks[repo->first[ix]].group;
    return group != PLAN_NONE &&
                   repo->handoff.groups[ix].merged.text[0] != '\0' &&
                   section_of(repo, ix) == SECTION_DONE
               ? plan->groups[group].closes
               : 0;
}

/* Append a line for each issue that the branch closes, as GitHub reads it. */
static void add_closes(struct strbuf *out, const struct repo_view *repo)
{
    const char *before = "\n";
    for (size_t ix = 0; ix < repo->handoff.group_count; ix++) {
        if (closes(repo, ix) > 0) {
            strbuf_addf(out, "%sCloses #%u\n", before, closes(repo, ix));
            before = "";
        }
    }
}

/* Return the command of a gate, or the name of its agent. */
static const char *gate_command(const struct plan *plan,
                                const struct plan_task *task)
{
    if (task->base_gate) {
        return plan->repos[task->repo].gate;
    }
    if (task->agent != PLAN_NONE) {
        return plan->agents[task->agent].name;
    }
    return task->run.shell != NULL ? task->run.shell : task->run.argv[0];
}

/* Append the commands that tested the work. */
static void add_gates(struct strbuf *out, const struct repo_view *repo)
{
    const struct plan *plan = repo->view.plan;
    const struct plan_repo *from = &plan->repos[repo->repo];
    bool any = false;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const struct plan_task *task = &plan->tasks[ix];
        uint32_t number = engine_attempt_number(repo->engine, repo->run, ix);
        if (task->repo != repo->repo || number == 0 ||
            !plan_has_role(plan, task, PLAN_ROLE_GATE)) {
            continue;
        }
        strbuf_adds(out, any ? "" : "\n## Gates\n\n");
        any = true;
        strbuf_adds(out, "- ");
        add_code(out, task->id);
        strbuf_adds(out, ": ");
        add_code(out, gate_command(plan, task));
        strbuf_addf(out,
                    ", %s after %u attempt%s",
                    core_task(repo, ix).state == TASK_DONE ? "passed"
                                                           : "not passed",
                    number,
                    number == 1 ? "" : "s");
        if (core_task(repo, ix).state == TASK_PARKED && task->base_gate) {
            add_state(out, repo, ix);
        }
        strbuf_adds(out, "\n");
    }
    if (from->gate != NULL) {
        strbuf_adds(out, any ? "" : "\n## Gates\n\n");
        strbuf_adds(out, "- every merged result: ");
        add_code(out, from->gate);
        strbuf_adds(out, "\n");
    }
}

/* Add what sessions did to their own repositories: nobody else sees it. */
static void add_tried(struct strbuf *out, const struct repo_view *repo)
{
    const char *at = strbuf_text(&repo->handoff.tried);
    if (*at != '\0') {
        strbuf_adds(out, "\n## Not taken from sessions\n\n");
    }
    while (*at != '\0') {
        size_t len = strcspn(at, "\n");
        char *line = mem_strndup(at, len);
        strbuf_adds(out, "- ");
        add_plain(out, line);
        strbuf_adds(out, "\n");
        mem_free(line);
        at += len + (at[len] == '\n' ? 1 : 0);
    }
}

static void write_summary(const struct repo_view *repo,
                          struct handoff_note *note)
{
    struct strbuf *out = &note->markdown;
    const struct plan_repo *from = &repo->view.plan->repos[repo->repo];
    strbuf_adds(out, "# ");
    add_plain(out, repo->view.name);
    strbuf_adds(out, ": ");
    add_plain(out, from->name);
    strbuf_adds(out, "\n\n");
    if (note->commit[0] == '\0') {
        strbuf_adds(out, "No session has started in this repository.\n");
    } else {
        strbuf_addf(out,
                    "Branch `%s` (%.*s), created from `%s`: %u of %u merged.\n",
                    strbuf_text(&note->branch),
                    SHORT_ID,
                    note->commit,
                    from->base,
                    note->merged,
                    note->groups);
    }
    for (enum section ix = 0; ix < SECTION_COUNT; ix++) {
        add_section(out, repo, ix);
    }
    add_gates(out, repo);
    add_tried(out, repo);
    add_closes(out, repo);
}

/* Write STORE/handoff/RUN/REPO.md. */
static enum err write_file(const struct repo_view *repo,
                           struct handoff_note *note,
                           struct diag *diag)
{
    struct strbuf dir = {0};
    struct strbuf name = {0};
    strbuf_addf(&dir, "%s/handoff/%s", repo->place->home, repo->view.id);
    names_add(&name, note->repo);
    strbuf_adds(&name, ".md");
    enum err err = attempt_file_write(strbuf_text(&dir),
                                      strbuf_text(&name),
                                      &note->markdown,
                                      diag);
    if (err == ERR_OK) {
        strbuf_addf(&note->file, "%s/%s", strbuf_text(&dir), name.text);
    }
    strbuf_release(&dir);
    strbuf_release(&name);
    return err;
}

static enum err make_one(struct repo_view *repo,
                         struct handoff_note *note,
                         bool push,
                         struct diag *diag)
{
    const struct plan_repo *from = &repo->view.plan->repos[repo->repo];
    struct strbuf path = {0};
    struct git *git = NULL;
    struct strbuf owner = {0};
    engine_add_repo(&path, repo->view.folder, from);
    names_add_owner(&owner, repo->place->id, repo->view.created_ns);
    enum err err = hub_open_either(&git,
                                   repo->place->home,
                                   strbuf_text(&path),
                                   from->url,
                                   diag);
    if (err == ERR_OK) {
        err = handoff_read(&repo->handoff,
                           git,
                           repo->view.id,
                           strbuf_text(&owner),
                           from->base,
                           diag);
    }
    if (err == ERR_OK) {
        memcpy(note->commit, repo->handoff.agent.text, sizeof(note->commit));
        note->groups = (uint32_t)repo->handoff.group_count;
        for (size_t ix = 0; ix < repo->handoff.group_count; ix++) {
            note->merged +=
                repo->handoff.groups[ix].merged.text[0] != '\0' ? 1 : 0;
        }
        write_summary(repo, note);
        err = write_file(repo, note, diag);
    }
    if (err == ERR_OK && push && from->push && note->commit[0] != '\0') {
        err = handoff_push(git,
                           repo->view.id,
                           repo->handoff.entry,
                           &note->remote,
                           diag);
        if (err != ERR_OK) {
            strbuf_clear(&note->remote);
        }
    }
    git_close(git);
    strbuf_release(&owner);
    strbuf_release(&path);
    return err;
}

struct handoff_note *handoff_make(const struct store_place *place,
                                  const struct engine *engine,
                                  uint32_t run,
                                  bool push,
                                  uint32_t *count_out)
{
    struct engine_run_view view = engine_run(engine, run);
    const struct plan *plan = view.plan;
    struct handoff_note *notes =
        mem_zalloc(plan->repo_count + 1, sizeof(notes[0]));
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < plan->repo_count; ix++) {
        if (!plan_is_git(&plan->repos[ix])) {
            continue;
        }
        struct repo_view repo = {
            .place = place,
            .engine = engine,
            .run = run,
            .view = view,
            .repo = ix,
        };
        struct handoff_note *note = &notes[count++];
        struct diag diag = {0};
        note->repo = plan->repos[ix].name;
        repo.handoff.entry = twin_name(plan, view.folder, ix);
        names_add_branch(&note->branch, view.id, repo.handoff.entry, NULL);
        find_groups(&repo);
        if (make_one(&repo, note, push, &diag) != ERR_OK) {
            strbuf_adds(&note->trouble, diag.text);
        }
        mem_free(repo.first);
        mem_free(repo.handoff.groups);
        strbuf_release(&repo.handoff.tried);
    }
    *count_out = count;
    return notes;
}

void handoff_add_lines(struct strbuf *out,
                       const struct handoff_note *notes,
                       uint32_t count)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct handoff_note *note = &notes[ix];
        plain_add(out, note->repo);
        if (note->file.len > 0) {
            strbuf_addf(out,
                        ": %u of %u merged into %s",
                        note->merged,
                        note->groups,
                        strbuf_text(&note->branch));
        }
        if (note->remote.len > 0) {
            strbuf_adds(out, ", pushed to ");
            plain_add(out, strbuf_text(&note->remote));
        }
        if (note->file.len > 0) {
            strbuf_addf(out, "; %s\n", strbuf_text(&note->file));
        }
        if (note->trouble.len > 0) {
            strbuf_adds(out, note->file.len > 0 ? "  not pushed: " : ": ");
            plain_add(out, strbuf_text(&note->trouble));
            strbuf_adds(out, "\n");
        }
    }
}

/* Add a member to a JSON object: a string, or null if it is empty. */
static void
add_member(struct jsonw *json, const char *name, const struct strbuf *text)
{
    jsonw_text(json, name, text->len > 0 ? strbuf_text(text) : NULL);
}

void handoff_add_json(struct strbuf *out, const struct handoff_note *note)
{
    struct jsonw json = {.out = out};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "kind", "handoff");
    jsonw_text(&json, "repo", note->repo);
    add_member(&json, "branch", &note->branch);
    jsonw_text(&json, "commit", note->commit[0] != '\0' ? note->commit : NULL);
    jsonw_int(&json, "merged", note->merged);
    jsonw_int(&json, "groups", note->groups);
    add_member(&json, "file", &note->file);
    add_member(&json, "pushed_to", &note->remote);
    add_member(&json, "error", &note->trouble);
    jsonw_finish(&json);
}

bool handoff_is_troubled(const struct handoff_note *notes, uint32_t count)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        if (notes[ix].trouble.len > 0) {
            return true;
        }
    }
    return false;
}

void handoff_release(struct handoff_note *notes, uint32_t count)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        strbuf_release(&notes[ix].markdown);
        strbuf_release(&notes[ix].file);
        strbuf_release(&notes[ix].branch);
        strbuf_release(&notes[ix].remote);
        strbuf_release(&notes[ix].trouble);
    }
    mem_free(notes);
}
