/* SPDX-License-Identifier: MIT */
/*
 * sluice-sandbox gets the object directory from which checkouts borrow in a
 * variable, not from the checkout, in which sessions can write: see
 * exec/sandbox_view.c. The user's name and address for commits are in the home
 * directory, which a confined session does not see.
 */
#include "git/confine.h"

#include "git/log.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void set(const char *name, const char *value)
{
    if (setenv(name, value, 1) != 0) {
        log_line("cannot set %s", name);
    }
}

/* Set the name and the address, if they are configured. */
static void set_identity(struct git *git)
{
    static const struct {
        const char *key;
        const char *variable;
    } keys[] = {
        {"user.name ", "SLUICE_GIT_NAME"},
        {"user.email ", "SLUICE_GIT_EMAIL"},
    };
    struct strbuf list = {0};
    size_t cursor = 0;
    struct git_call call = {
        .args = PROC_ARGS("config", "--get-regexp", "^user\\.(name|email)$"),
        .output = &list,
        .quiet = true,
        .codes = 1, /* neither is set */
    };
    if (git_call(git, &call, NULL, NULL) == ERR_OK) {
        char *line;
        while ((line = git_next_line(&list, &cursor)) != NULL) {
            for (size_t ix = 0; ix < ARRAY_COUNT(keys); ix++) {
                size_t len = strlen(keys[ix].key);
                if (strncmp(line, keys[ix].key, len) == 0) {
                    set(keys[ix].variable, line + len);
                }
            }
        }
    }
    strbuf_release(&list);
}

void confine(const struct agent *agent, struct proc *proc)
{
    if (agent->options->sandbox == NULL) {
        return;
    }
    struct strbuf objects = {0};
    strbuf_addf(&objects, "%s/objects", git_common_dir(agent->git));
    set("SLUICE_OBJECTS", strbuf_text(&objects));
    strbuf_release(&objects);
    set_identity(agent->git);
    proc->env = (const char *const *)environ;
    if (!proc->is_session) {
        proc->prefix = agent->options->sandbox;
    }
}
