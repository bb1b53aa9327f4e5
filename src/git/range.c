/* SPDX-License-Identifier: MIT */
#include "git/range.h"

#include "exec/attempt_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Append the line of one member. */
static enum err add_line(struct strbuf *out,
                         struct agent *agent,
                         const struct agent_member *member,
                         const struct git_id *at,
                         struct git_id *start_out,
                         struct diag *diag)
{
    struct names names;
    names_init(&names,
               agent->options->run,
               agent->options->entry,
               member->group);
    struct git_ref refs[] = {{.name = names.start}, {.name = names.passed}};
    enum err err = git_read_refs(agent->git, refs, ARRAY_COUNT(refs), diag);
    const struct git_id *tip = at != NULL ? at : &refs[1].id;
    if (refs[0].id.text[0] == '\0') { /* no work on it yet */
        refs[0].id = *tip;
    }
    if (err == ERR_OK) {
        strbuf_addf(out,
                    "%s\t%s\t%s\t%s\n",
                    member->task,
                    git_short_name(names.branch),
                    refs[0].id.text,
                    at != NULL ? "HEAD" : tip->text);
        *start_out = refs[0].id;
    }
    names_release(&names);
    return err;
}

enum err range_put(struct agent *agent,
                   const char *dir,
                   const struct agent_member *members,
                   size_t count,
                   const struct git_id *start,
                   struct diag *diag)
{
    struct strbuf text = {0};
    struct git_id first = {0};
    enum err err = ERR_OK;
    for (size_t ix = 0; ix < count && err == ERR_OK; ix++) {
        struct git_id began;
        err = add_line(&text,
                       agent,
                       &members[ix],
                       ix == 0 ? start : NULL,
                       &began,
                       diag);
        first = ix == 0 ? began : first;
    }
    if (err == ERR_OK) {
        err = attempt_file_write(dir, "ranges", &text, diag);
    }
    if (err == ERR_OK && setenv("SLUICE_START", first.text, 1) != 0) {
        err = diag_set(diag, ERR_UNAVAILABLE, "setenv: %s", strerror(errno));
    }
    strbuf_release(&text);
    return err;
}

enum err range_find(struct agent *agent,
                    const struct git_id *tip,
                    struct git_id *out,
                    struct diag *diag)
{
    struct strbuf text = {0};
    int code = 0;
    struct git_call call = {
        .args = PROC_ARGS("merge-base", agent->names.agent, tip->text),
        .output = &text,
        .codes = 1};
    *out = (struct git_id){0};
    enum err err = git_call(agent->git, &call, &code, diag);
    if (err == ERR_OK && code == 0) {
        err = git_first_id(&text, out, diag);
    }
    if (strcmp(out->text, tip->text) == 0) { /* it is merged */
        *out = (struct git_id){0};
    }
    strbuf_release(&text);
    return err;
}
