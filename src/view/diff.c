/* SPDX-License-Identifier: MIT */
/* The store knows the issue and its repository, sluice-git the changes. */
#include "view/diff.h"

#include "base/jsonw.h"
#include "base/mem.h"
#include "base/plain.h"
#include "git/names.h"
#include "plan/twin.h"
#include "view/client.h"
#include "view/target.h"
#include "work/diff.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

/* --- the issue ---------------------------------------------------------- */

/* An issue of a run in one repository. */
struct issue {
    const struct engine *engine;
    uint32_t run;
    struct engine_run_view view;
    uint32_t task; /* the first of it */
};

static const char *id_of(const struct issue *issue, uint32_t task)
{
    const struct plan *plan = issue->view.plan;
    return plan_issue_of(plan, &plan->tasks[task]).id;
}

/* Whether a task works on a branch. */
static bool has_branch(const struct plan *plan, uint32_t task)
{
    uint32_t repo = plan->tasks[task].repo;
    return repo != PLAN_NONE && !plan->tasks[task].base_gate &&
           plan_is_git(&plan->repos[repo]);
}

/* Whether both tasks work on the same branch. */
static bool is_same(const struct issue *issue, uint32_t a, uint32_t b)
{
    const struct plan_task *tasks = issue->view.plan->tasks;
    return tasks[a].repo == tasks[b].repo &&
           strcmp(id_of(issue, a), id_of(issue, b)) == 0;
}

/* Report that a group has several branches. */
static enum err refuse(const struct issue *issue,
                       const char *name,
                       uint32_t other,
                       struct diag *diag)
{
    const struct plan_task *tasks = issue->view.plan->tasks;
    bool parts = strcmp(id_of(issue, issue->task), id_of(issue, other)) != 0;
    return diag_set(diag,
                    ERR_INVALID,
                    parts ? "%s has several parts: name one, such as %s or %s"
                          : "%s works in several repositories: name a task of "
                            "it, such as %s or %s",
                    name,
                    parts ? id_of(issue, issue->task) : tasks[issue->task].id,
                    parts ? id_of(issue, other) : tasks[other].id);
}

/* Find the only branch of a task or group. */
static enum err
find_issue(struct issue *issue, const char *name, struct diag *diag)
{
    const struct plan *plan = issue->view.plan;
    uint32_t only = plan_find_task(plan, name);
    uint32_t group = only == PLAN_NONE ? plan_find_group(plan, name) : 0;
    issue->task = PLAN_NONE;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        uint32_t own = plan->tasks[ix].group;
        bool meant = only != PLAN_NONE
                         ? ix == only
                         : own != PLAN_NONE && group != PLAN_NONE &&
                               plan_is_within(plan, own, group);
        if (!meant || !has_branch(plan, ix)) {
            continue;
        }
        if (issue->task == PLAN_NONE) {
            issue->task = ix;
        } else if (!is_same(issue, issue->task, ix)) {
            return refuse(issue, name, ix, diag);
        }
    }
    return issue->task != PLAN_NONE
               ? ERR_OK
               : diag_set(diag,
                          ERR_NOT_FOUND,
                          "%s has no branch: its plan names no git repository "
                          "for it",
                          name);
}

/* Whether a session of the issue has started. */
static bool has_begun(const struct issue *issue)
{
    for (uint32_t ix = 0; ix < issue->view.plan->task_count; ix++) {
        if (is_same(issue, issue->task, ix) &&
            engine_attempt_number(issue->engine, issue->run, ix) > 0) {
            return true;
        }
    }
    return false;
}

/* --- the answer of sluice-git ------------------------------------------- */

/* Read the files; ERR_IO: it is no list of files. */
static enum err take_files(struct diff_view *out, const json_t *files)
{
    size_t count = json_array_size(files);
    out->files = mem_zalloc(count + 1, sizeof(out->files[0]));
    for (size_t ix = 0; ix < count; ix++) {
        const json_t *from = json_array_get(files, ix);
        const char *path = json_string_value(json_object_get(from, "path"));
        if (path == NULL) {
            return ERR_IO;
        }
        out->files[out->file_count++] = (struct diff_file){
            .path = mem_strdup(path),
            .old_path = mem_strdup(
                json_string_value(json_object_get(from, "old_path"))),
            .added = json_integer_value(json_object_get(from, "added")),
            .removed = json_integer_value(json_object_get(from, "removed")),
            .binary = json_is_true(json_object_get(from, "binary")),
        };
    }
    return ERR_OK;
}

/* Read the answer. */
static enum err take_answer(struct diff_view *out,
                            const struct strbuf *answer,
                            struct diag *diag)
{
    json_t *json = json_loadb(strbuf_text(answer), answer->len, 0, NULL);
    const char *error = json_string_value(json_object_get(json, "error"));
    const char *text = json_string_value(json_object_get(json, "text"));
    const char *from = json_string_value(json_object_get(json, "from"));
    const char *to = json_string_value(json_object_get(json, "to"));
    enum err err = ERR_OK;
    if (error != NULL && text != NULL) {
        err = diag_set(diag, err_from_name(error), "%s", text);
    } else if (text == NULL || from == NULL || to == NULL ||
               take_files(out, json_object_get(json, "files")) != ERR_OK) {
        err = diag_set(diag, ERR_IO, "sluice-git gave no valid answer");
    } else {
        out->from = mem_strdup(from);
        out->to = mem_strdup(to);
        out->truncated = json_is_true(json_object_get(json, "truncated"));
        strbuf_adds(&out->text, text);
    }
    json_decref(json);
    return err;
}

/* Have sluice-git compute the changes of the issue. */
static enum err ask(struct diff_view *out,
                    const struct store_place *place,
                    const struct issue *issue,
                    struct diag *diag)
{
    const struct plan *plan = issue->view.plan;
    uint32_t repo = plan->tasks[issue->task].repo;
    struct strbuf path = {0};
    struct strbuf owner = {0};
    struct strbuf answer = {0};
    out->run = mem_strdup(issue->view.id);
    out->group = mem_strdup(id_of(issue, issue->task));
    out->repo = mem_strdup(plan->repos[repo].name);
    engine_add_repo(&path, issue->view.folder, &plan->repos[repo]);
    names_add_owner(&owner, place->id, issue->view.created_ns);
    struct diff_wanted wanted = {
        .run = out->run,
        .owner = strbuf_text(&owner),
        .repo = out->repo,
        .shared = twin_name(plan, issue->view.folder, repo) != NULL,
        .path = strbuf_text(&path),
        .home = place->home,
        .url = plan->repos[repo].url,
        .group = out->group,
        .begun = has_begun(issue),
    };
    enum err err = diff_ask(&answer, &wanted, diag);
    if (err == ERR_OK) {
        err = take_answer(out, &answer, diag);
    }
    strbuf_release(&path);
    strbuf_release(&owner);
    strbuf_release(&answer);
    return err;
}

/* Find the run that has a task or group of this name. */
static enum err find_run(char **out,
                         const struct store_place *place,
                         const char *run,
                         const char *name,
                         struct diag *diag)
{
    struct store *store = NULL;
    struct target target = {0};
    enum err err = store_open(&store, place->address, STORE_READ, diag);
    if (err == ERR_OK) {
        err =
            target_find(&target, store, name, run, TARGET_TASK_OR_GROUP, diag);
    }
    *out = err == ERR_OK ? mem_strdup(target.run_id) : NULL;
    target_release(&target);
    store_close(store);
    return err;
}

enum err diff_take(struct diff_view *out,
                   const struct store_place *place,
                   const char *run,
                   const char *name,
                   struct diag *diag)
{
    *out = (struct diff_view){0};
    struct client_view view = {0};
    char *found = NULL;
    enum err err = find_run(&found, place, run, name, diag);
    if (err == ERR_OK) {
        struct store_query query = {.finished = true, .run = found};
        err = client_look(&view, place, &query, diag);
    }
    if (err == ERR_OK && engine_run_count(view.engine) == 0) {
        err = diag_set(diag, ERR_NOT_FOUND, "no run \"%s\"", found);
    }
    if (err == ERR_OK) {
        struct issue issue = {
            .engine = view.engine,
            .view = engine_run(view.engine, 0),
        };
        err = find_issue(&issue, name, diag);
        if (err == ERR_OK) {
            err = ask(out, place, &issue, diag);
        }
    }
    client_view_release(&view);
    mem_free(found);
    return err;
}

void diff_release(struct diff_view *view)
{
    for (uint32_t ix = 0; ix < view->file_count; ix++) {
        mem_free(view->files[ix].path);
        mem_free(view->files[ix].old_path);
    }
    mem_free(view->files);
    mem_free(view->run);
    mem_free(view->group);
    mem_free(view->repo);
    mem_free(view->from);
    mem_free(view->to);
    strbuf_release(&view->text);
    *view = (struct diff_view){0};
}

/* --- output ------------------------------------------------------------- */

void diff_add_json(struct strbuf *out, const struct diff_view *view)
{
    struct jsonw json = {.out = out};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "run", view->run);
    jsonw_text(&json, "group", view->group);
    jsonw_text(&json, "repo", view->repo);
    jsonw_text(&json, "from", view->from);
    jsonw_text(&json, "to", view->to);
    jsonw_bool(&json, "truncated", view->truncated);
    jsonw_array(&json, "files");
    for (uint32_t ix = 0; ix < view->file_count; ix++) {
        const struct diff_file *file = &view->files[ix];
        jsonw_object(&json, NULL);
        jsonw_text(&json, "path", file->path);
        jsonw_text(&json, "old_path", file->old_path);
        jsonw_int_if(&json, "added", !file->binary, file->added);
        jsonw_int_if(&json, "removed", !file->binary, file->removed);
        jsonw_bool(&json, "binary", file->binary);
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
    jsonw_text(&json, "text", strbuf_text(&view->text));
    jsonw_finish(&json);
}

void diff_add_stat(struct strbuf *out, const struct diff_view *view)
{
    int64_t added = 0;
    int64_t removed = 0;
    for (uint32_t ix = 0; ix < view->file_count; ix++) {
        const struct diff_file *file = &view->files[ix];
        if (file->binary) {
            strbuf_adds(out, " binary         ");
        } else {
            strbuf_addf(out,
                        " %6" PRId64 " + %6" PRId64 " -",
                        file->added,
                        file->removed);
        }
        strbuf_adds(out, "  ");
        if (file->old_path != NULL) {
            plain_add(out, file->old_path);
            strbuf_adds(out, " => ");
        }
        plain_add(out, file->path);
        strbuf_adds(out, "\n");
        added += file->added;
        removed += file->removed;
    }
    strbuf_addf(out,
                "%s%u file%s changed, %" PRId64 " added, %" PRId64
                " removed lines\n",
                view->truncated ? "at least " : "",
                view->file_count,
                view->file_count == 1 ? "" : "s",
                added,
                removed);
}
