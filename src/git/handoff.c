/* SPDX-License-Identifier: MIT */
#include "git/handoff.h"

#include "base/mem.h"
#include "base/strmap.h"
#include "git/agent.h"

#include <stdio.h>
#include <string.h>

static void take_id(struct git_id *out, const char *text, size_t len)
{
    if (len < sizeof(out->text)) {
        memcpy(out->text, text, len);
        out->text[len] = '\0';
    }
}

/* Read the branch tips of the groups. */
static enum err read_tips(struct handoff *handoff,
                          struct git *git,
                          const char *run,
                          struct diag *diag)
{
    struct strbuf prefix = {0};
    struct strbuf list = {0};
    struct strmap tips = {0};
    strbuf_adds(&prefix, "refs/heads/");
    names_add_branch(&prefix, run, handoff->entry, NULL);
    prefix.len -= strlen("main");
    prefix.text[prefix.len] = '\0';
    enum err err =
        git_list_refs(git, PROC_ARGS(strbuf_text(&prefix)), &list, diag);
    size_t cursor = 0;
    char *line;
    while (err == ERR_OK && (line = git_next_line(&list, &cursor)) != NULL) {
        const char *space = strchr(line, ' ');
        if (space != NULL) {
            (void)strmap_add(&tips,
                             space + 1 + strlen("refs/heads/"),
                             (uint32_t)(line - list.text));
        }
    }
    for (size_t ix = 0; ix < handoff->group_count; ix++) {
        struct strbuf name = {0};
        names_add_branch(&name, run, handoff->entry, handoff->groups[ix].group);
        uint32_t at = strmap_find(&tips, name.text, name.len);
        if (at != STRMAP_NONE) {
            take_id(&handoff->groups[ix].tip,
                    list.text + at,
                    strcspn(list.text + at, " "));
        }
        strbuf_release(&name);
    }
    strmap_release(&tips);
    strbuf_release(&list);
    strbuf_release(&prefix);
    return err;
}

/* Record the merge in a line "COMMIT PARENT..."; the first parent is the
 * previous agent branch. */
static void
take_merge(struct handoff *handoff, const struct strmap *groups, char *line)
{
    const char *first = strchr(line, ' ');
    const char *at = first != NULL ? strchr(first + 1, ' ') : NULL;
    while (at != NULL) {
        size_t len = strcspn(at + 1, " ");
        uint32_t ix = strmap_find(groups, at + 1, len);
        if (ix != STRMAP_NONE) {
            take_id(&handoff->groups[ix].merged, line, strcspn(line, " "));
        }
        at = at[1 + len] == ' ' ? at + 1 + len : NULL;
    }
}

/* Read the merges on the first-parent line. */
static enum err
read_merges(struct handoff *handoff, struct git *git, struct diag *diag)
{
    struct strmap groups = {0};
    struct strbuf list = {0};
    for (size_t ix = 0; ix < handoff->group_count; ix++) {
        if (handoff->groups[ix].tip.text[0] != '\0') {
            (void)strmap_add(&groups,
                             handoff->groups[ix].tip.text,
                             (uint32_t)ix);
        }
    }
    enum err err = git_output(git,
                              PROC_ARGS("log",
                                        "--first-parent",
                                        "--format=%H %P",
                                        handoff->agent.text,
                                        "--"),
                              &list,
                              diag);
    size_t cursor = 0;
    char *line;
    while (err == ERR_OK && (line = git_next_line(&list, &cursor)) != NULL) {
        take_merge(handoff, &groups, line);
    }
    strbuf_release(&list);
    strmap_release(&groups);
    return err;
}

/* Read what sessions did to their own repositories. */
static enum err read_tried(struct handoff *handoff,
                           struct git *git,
                           const struct names *names,
                           struct diag *diag)
{
    static const char end[] = "/tried";
    struct strbuf prefix = {0};
    struct strbuf list = {0};
    strbuf_addf(&prefix,
                "%.*sgroups/",
                (int)(strlen(names->owner) - strlen("owner")),
                names->owner);
    enum err err =
        git_list_refs(git, PROC_ARGS(strbuf_text(&prefix)), &list, diag);
    size_t cursor = 0;
    const char *line;
    while (err == ERR_OK && (line = git_next_line(&list, &cursor)) != NULL) {
        size_t len = strlen(line);
        if (len > strlen(end) && strcmp(line + len - strlen(end), end) == 0) {
            struct git_id id = {{0}};
            take_id(&id, line, strcspn(line, " "));
            err = git_read_blob(git, &id, &handoff->tried, diag);
        }
    }
    strbuf_release(&prefix);
    strbuf_release(&list);
    return err;
}

enum err handoff_read(struct handoff *handoff,
                      struct git *git,
                      const char *run,
                      const char *owner,
                      const char *base,
                      struct diag *diag)
{
    struct names names;
    names_init(&names, run, handoff->entry, "");
    enum err err = agent_find(git, &names, owner, &handoff->agent, diag);
    if (err == ERR_OK && handoff->agent.text[0] != '\0') {
        err = read_tried(handoff, git, &names, diag);
    }
    names_release(&names);
    if (err != ERR_OK || handoff->agent.text[0] == '\0') {
        return err;
    }
    err = git_resolve(git, base, &handoff->base, diag);
    if (err == ERR_NOT_FOUND) {
        err = ERR_OK;
    }
    if (err == ERR_OK) {
        err = read_tips(handoff, git, run, diag);
    }
    return err == ERR_OK ? read_merges(handoff, git, diag) : err;
}

/* Append "origin", or the name of the only remote. */
static enum err
find_remote(struct git *git, struct strbuf *out, struct diag *diag)
{
    struct strbuf list = {0};
    enum err err = git_output(git, PROC_ARGS("remote"), &list, diag);
    size_t cursor = 0;
    uint32_t count = 0;
    const char *line;
    while (err == ERR_OK && (line = git_next_line(&list, &cursor)) != NULL) {
        count++;
        if (count == 1 || strcmp(line, "origin") == 0) {
            strbuf_clear(out);
            strbuf_adds(out, line);
        }
    }
    strbuf_release(&list);
    if (err == ERR_OK && (count == 0 || (count > 1 && strcmp(strbuf_text(out),
                                                             "origin") != 0))) {
        err = diag_set(diag,
                       ERR_INVALID,
                       "cannot push: %s has %s",
                       git_path(git),
                       count == 0 ? "no remote"
                                  : "several remotes, none of them \"origin\"");
    }
    return err;
}

enum err handoff_push(struct git *git,
                      const char *run,
                      const char *entry,
                      struct strbuf *remote_out,
                      struct diag *diag)
{
    enum err err = find_remote(git, remote_out, diag);
    if (err != ERR_OK) {
        return err;
    }
    struct strbuf branch = {0};
    struct strbuf spec = {0};
    names_add_branch(&branch, run, entry, NULL);
    strbuf_addf(&spec,
                "refs/heads/%s:refs/heads/%s",
                strbuf_text(&branch),
                strbuf_text(&branch));
    struct strbuf output = {0};
    struct git_call call = {
        .args = PROC_ARGS("push",
                          "--quiet",
                          "--no-follow-tags",
                          "--no-verify",
                          "--receive-pack=git-receive-pack",
                          "--end-of-options",
                          strbuf_text(remote_out),
                          strbuf_text(&spec)),
        .output = &output,
        .quiet = true,
    };
    err = git_call(git, &call, NULL, diag);
    strbuf_release(&output);
    strbuf_release(&spec);
    strbuf_release(&branch);
    return err;
}
