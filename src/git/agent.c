/* SPDX-License-Identifier: MIT */
#include "git/agent.h"

#include "base/crash.h"
#include "git/fence.h"
#include "git/fetch.h"
#include "git/hub.h"
#include "git/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum err
deny_owner(const struct agent *agent, const char *owner, struct diag *diag)
{
    return diag_set(diag,
                    ERR_DENIED,
                    "%s in %s belongs to another run (%s): rename this run, "
                    "or remove the refs of the other run below %.*s",
                    git_short_name(agent->names.agent),
                    agent->options->repo,
                    owner[0] != '\0' ? owner : "not created by sluice",
                    (int)(strlen(agent->names.owner) - strlen("/owner")),
                    agent->names.owner);
}

/* Add the changes that move one ref, a line "ID NAME", aside: a copy, and the
 * deletion of the ref, unless it is the owner ref. */
static void add_rename(struct strbuf *copies,
                       struct strbuf *ends,
                       const struct agent *agent,
                       const char *line,
                       const char *stamp)
{
    size_t id_len = strcspn(line, " ");
    const char *name = line + id_len + 1;
    size_t name_len = strcspn(name, "\n");
    /* "refs/sluice/RUN" or "refs/heads/sluice/RUN" */
    bool branch = strncmp(name, "refs/heads/", strlen("refs/heads/")) == 0;
    size_t stem = branch ? strlen(agent->names.agent) - strlen("/main")
                         : strlen(agent->names.owner) - strlen("/owner");
    strbuf_addf(copies,
                "update %.*s.old-%s%.*s %.*s\n",
                (int)stem,
                name,
                stamp,
                (int)(name_len - stem),
                name + stem,
                (int)id_len,
                line);
    if (name_len != strlen(agent->names.owner) ||
        memcmp(name, agent->names.owner, name_len) != 0) {
        strbuf_addf(ends,
                    "delete %.*s %.*s\n",
                    (int)name_len,
                    name,
                    (int)id_len,
                    line);
    }
}

/* Append a line "ID NAME" for each ref of the run. */
static enum err
list_refs(struct agent *agent, struct strbuf *out, struct diag *diag)
{
    struct strbuf branches = {0};
    struct strbuf refs = {0};
    strbuf_add(&branches,
               agent->names.agent,
               strlen(agent->names.agent) - strlen("main"));
    strbuf_add(&refs,
               agent->names.owner,
               strlen(agent->names.owner) - strlen("owner"));
    enum err err =
        git_list_refs(agent->git,
                      PROC_ARGS(strbuf_text(&branches), strbuf_text(&refs)),
                      out,
                      diag);
    strbuf_release(&branches);
    strbuf_release(&refs);
    return err;
}

/*
 * Move the refs of an earlier run aside. The run belonged to this store, which
 * was deleted and created again. A killed git may leave a transaction half
 * done, so every step can be repeated, and the owner ref is deleted last.
 */
static enum err move_aside(struct agent *agent,
                           const struct git_id *owner,
                           const char *stamp,
                           struct diag *diag)
{
    struct strbuf list = {0};
    struct strbuf copies = {0};
    struct strbuf ends = {0};
    struct strbuf last = {0};
    strbuf_addf(&last, "delete %s %s\n", agent->names.owner, owner->text);
    enum err err = list_refs(agent, &list, diag);
    for (size_t at = 0; err == ERR_OK && at < list.len;
         at += strcspn(list.text + at, "\n") + 1) {
        add_rename(&copies, &ends, agent, list.text + at, stamp);
    }
    const struct strbuf *const steps[] = {&copies, &ends, &last};
    for (size_t ix = 0; err == ERR_OK && ix < ARRAY_COUNT(steps); ix++) {
        err = git_transact(agent->git,
                           strbuf_text(steps[ix]),
                           true,
                           "sluice: aside",
                           diag);
        crash_point("git-moving-aside");
    }
    if (err == ERR_OK) {
        const char *name = git_short_name(agent->names.agent);
        log_line("moved the branches of an earlier run to %.*s.old-%s",
                 (int)(strlen(name) - strlen("/main")),
                 name,
                 stamp);
    }
    strbuf_release(&list);
    strbuf_release(&copies);
    strbuf_release(&ends);
    strbuf_release(&last);
    return err;
}

/* Handle refs of another run: move them aside, or refuse. */
static enum err
meet_other(struct agent *agent, const struct git_id *owner, struct diag *diag)
{
    static const char mark[] = ", submitted at ";
    struct strbuf text = {0};
    enum err err = git_read_blob(agent->git, owner, &text, diag);
    const char *own = strstr(agent->options->owner, mark);
    const char *other = strstr(strbuf_text(&text), mark);
    size_t len = own != NULL ? (size_t)(own - agent->options->owner) : 0;
    const char *stamp = other != NULL ? other + strlen(mark) : "";
    if (err == ERR_OK && own != NULL && other != NULL &&
        (size_t)(other - strbuf_text(&text)) == len &&
        strncmp(strbuf_text(&text), agent->options->owner, len) == 0 &&
        stamp[0] != '\0' && stamp[strspn(stamp, "0123456789")] == '\0') {
        err = move_aside(agent, owner, stamp, diag);
        err = err == ERR_CONFLICT ? ERR_OK : err; /* another process did it */
    } else if (err == ERR_OK) {
        err = deny_owner(agent, strbuf_text(&text), diag);
    }
    strbuf_release(&text);
    return err;
}

/* Refuse refs whose names do or do not contain the repo, unlike ours: git
 * allows no branch "x" beside "x/main". */
static enum err
deny_scope(const struct agent *agent, const char *owner, struct diag *diag)
{
    return diag_set(
        diag,
        ERR_DENIED,
        "%s has the branches of a run \"%s\" whose plan had %s repo "
        "with this path: use that plan, rename this run, or remove "
        "the refs beside %s",
        agent->options->repo,
        agent->options->run,
        agent->names.above != NULL ? "one" : "more than one",
        owner);
}

/* Before the first ref of the run is created: refuse refs of the run that
 * contain the name of a repo. */
static enum err check_scope(struct agent *agent, struct diag *diag)
{
    struct strbuf prefix = {0};
    struct strbuf list = {0};
    strbuf_add(&prefix,
               agent->names.owner,
               strlen(agent->names.owner) - strlen("owner"));
    enum err err =
        git_list_refs(agent->git, PROC_ARGS(strbuf_text(&prefix)), &list, diag);
    size_t cursor = 0;
    const char *line;
    while (err == ERR_OK && (line = git_next_line(&list, &cursor)) != NULL) {
        const char *ref = line + strcspn(line, " ") + 1;
        const char *last = strrchr(ref, '/');
        if (last != NULL && strcmp(last, "/owner") == 0 &&
            strcmp(ref, agent->names.owner) != 0) {
            err = deny_scope(agent, ref, diag);
        }
    }
    strbuf_release(&prefix);
    strbuf_release(&list);
    return err;
}

/* Refuse to create the branch again: it would lack the earlier merges. */
static enum err deny_gone(const struct agent *agent, struct diag *diag)
{
    return diag_set(diag,
                    ERR_DENIED,
                    "%s in %s is gone, with everything merged into it: create "
                    "it again at its last commit",
                    git_short_name(agent->names.agent),
                    agent->options->repo);
}

static enum err make_ref(struct agent *agent,
                         const char *ref,
                         const struct git_id *id,
                         const char *why,
                         struct diag *diag)
{
    struct git_ref_change change = {.ref = ref, .to = id->text, .from = ""};
    return git_change_refs(agent->git, &change, 1, why, diag);
}

enum err
agent_find_base(struct agent *agent, struct git_id *out, struct diag *diag)
{
    enum err err = ERR_NOT_FOUND;
    if (agent->options->checkout.fetch) {
        err = git_resolve(agent->git, agent->names.base, out, diag);
    }
    if (err == ERR_NOT_FOUND) {
        err = git_resolve(agent->git, agent->options->base, out, diag);
    }
    return err;
}

enum err
agent_update_base(struct agent *agent, struct git_id *out, struct diag *diag)
{
    enum err err = ERR_OK;
    if (agent->options->checkout.fetch) {
        err = fetch_base(agent->git,
                         agent->options->base,
                         agent->names.base,
                         diag);
    }
    if (err == ERR_OK) {
        err = hub_fetch(agent->git, diag);
    }
    return err == ERR_OK ? agent_find_base(agent, out, diag) : err;
}

/* Create the missing refs in an order that is safe in a crash: an agent branch
 * always has an owner. */
static enum err make_missing(struct agent *agent,
                             const struct git_id *owner,
                             const struct git_ref refs[2],
                             struct diag *diag)
{
    enum err err = ERR_OK;
    if (refs[0].id.text[0] == '\0') {
        err = check_scope(agent, diag);
    }
    if (err == ERR_OK && refs[0].id.text[0] == '\0') {
        err = make_ref(agent, agent->names.owner, owner, "sluice", diag);
        crash_point("git-owner-set");
    }
    if (err != ERR_OK || refs[1].id.text[0] != '\0') {
        return err;
    }
    struct git_id base;
    err = agent_update_base(agent, &base, diag);
    if (err != ERR_OK) {
        return err == ERR_NOT_FOUND ? ERR_INVALID : err;
    }
    err = make_ref(agent, agent->names.agent, &base, "sluice: begin", diag);
    crash_point("git-agent-made");
    return err;
}

/*
 * Find or create the agent branch. If another process creates it at the same
 * time, the next iteration finds it. Git does not read all refs at one instant
 * (it may see a branch and miss its older owner), so an inconsistent state
 * counts only after a second read.
 */
static enum err find_branch(struct agent *agent, struct diag *diag)
{
    enum { TRIES = 6 };
    bool doubted = false;
    struct git_id owner;
    enum err err =
        git_put_blob(agent->git, agent->options->owner, &owner, diag);
    for (int ix = 0; ix < TRIES && err == ERR_OK; ix++) {
        struct git_ref refs[] = {
            {.name = agent->names.owner},
            {.name = agent->names.agent},
            {.name = agent->names.fence},
            {.name = agent->names.above},
        };
        size_t count = ARRAY_COUNT(refs) - (agent->names.above == NULL ? 1 : 0);
        err = git_read_refs(agent->git, refs, count, diag);
        if (err == ERR_OK && refs[3].id.text[0] != '\0') {
            return deny_scope(agent, agent->names.above, diag);
        }
        bool owned = strcmp(refs[0].id.text, owner.text) == 0;
        bool made = refs[1].id.text[0] != '\0';
        bool foreign = !owned && (made || refs[0].id.text[0] != '\0');
        bool gone = owned && !made && refs[2].id.text[0] != '\0';
        if (err == ERR_OK && owned && made) {
            agent->tip = refs[1].id;
            return ERR_OK;
        }
        if (err == ERR_OK && (foreign || gone) && !doubted) {
            doubted = true;
        } else if (err == ERR_OK && foreign) {
            err = meet_other(agent, &refs[0].id, diag);
        } else if (err == ERR_OK && gone) {
            return deny_gone(agent, diag);
        } else if (err == ERR_OK) {
            err = make_missing(agent, &owner, refs, diag);
            err = err == ERR_CONFLICT && ix + 1 < TRIES ? ERR_OK : err;
        }
    }
    return err != ERR_OK ? err
                         : diag_set(diag,
                                    ERR_UNAVAILABLE,
                                    "cannot create %s",
                                    agent->names.agent);
}

enum err agent_open(struct agent *agent,
                    const struct agent_options *options,
                    struct diag *diag)
{
    *agent = (struct agent){.options = options};
    names_init(&agent->names,
               options->run,
               options->entry,
               options->group != NULL ? options->group : "");
    enum err err = hub_open_either(&agent->git,
                                   options->home,
                                   options->repo,
                                   options->url,
                                   diag);
    if (err == ERR_OK) {
        err = find_branch(agent, diag);
    }
    if (err != ERR_OK) {
        agent_close(agent);
    }
    return err;
}

void agent_close(struct agent *agent)
{
    git_close(agent->git);
    names_release(&agent->names);
    *agent = (struct agent){0};
}

/* Return the fences of the groups of tasks, after `first` unused ones. */
static struct fence *make_fences(const struct agent *agent,
                                 const struct agent_member *const *members,
                                 size_t count,
                                 size_t first,
                                 struct arena *arena)
{
    struct fence *fences = arena_alloc(arena, first + count, sizeof(*fences));
    for (size_t ix = 0; ix < count; ix++) {
        struct names names;
        names_init(&names,
                   agent->options->run,
                   agent->options->entry,
                   members[ix]->group);
        fences[first + ix] = (struct fence){
            .ref = arena_strndup(arena,
                                 names.group_fence,
                                 strlen(names.group_fence)),
            .task = members[ix]->task,
            .token = agent->options->token,
            .alone = true,
        };
        names_release(&names);
    }
    return fences;
}

enum err agent_fence(struct agent *agent,
                     const struct agent_member *const *members,
                     size_t count,
                     struct diag *diag)
{
    struct arena arena = {0};
    struct fence *fences = make_fences(agent, members, count, 0, &arena);
    for (size_t ix = 0; ix < count; ix++) {
        fences[ix].take = true;
    }
    crash_point("git-before-fence");
    enum err err = fence_change(agent->git,
                                fences,
                                count,
                                "",
                                false,
                                "sluice: begin",
                                diag);
    crash_point("git-fenced");
    arena_release(&arena);
    return err;
}

enum err agent_move(struct agent *agent,
                    const struct agent_member *const *members,
                    size_t count,
                    const struct git_id *from,
                    const struct git_id *to,
                    struct diag *diag)
{
    struct arena arena = {0};
    struct fence *fences = make_fences(agent, members, count, 1, &arena);
    fences[0] = (struct fence){
        .ref = agent->names.fence,
        .task = "",
        .token = agent->options->token,
        .alone = true,
        .take = true,
        .open = agent->options->url != NULL,
    };
    struct strbuf line = {0};
    strbuf_addf(&line,
                "update %s %s %s\n",
                agent->names.agent,
                to->text,
                from->text);
    crash_point("git-before-move");
    enum err err = fence_change(agent->git,
                                fences,
                                count + 1,
                                strbuf_text(&line),
                                false,
                                "sluice: merge",
                                diag);
    crash_point("git-moved");
    strbuf_release(&line);
    arena_release(&arena);
    return err;
}

enum err agent_find(struct git *git,
                    const struct names *names,
                    const char *owner,
                    struct git_id *tip_out,
                    struct diag *diag)
{
    struct git_ref refs[] = {{.name = names->owner}, {.name = names->agent}};
    struct strbuf text = {0};
    *tip_out = (struct git_id){0};
    enum err err = git_read_refs(git, refs, ARRAY_COUNT(refs), diag);
    if (err == ERR_OK) {
        err = git_read_blob(git, &refs[0].id, &text, diag);
    }
    if (err == ERR_OK && strcmp(strbuf_text(&text), owner) == 0) {
        *tip_out = refs[1].id;
    }
    strbuf_release(&text);
    return err;
}
