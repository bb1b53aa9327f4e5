/* SPDX-License-Identifier: MIT */
#include "cli/gc_git.h"

#include "base/mem.h"
#include "git/names.h"
#include "view/client.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/* Who wants to be told, and whether something is kept. */
struct listener {
    sweep_fn tell;
    void *ctx;
    bool kept;
};

static void pass_on(void *ctx, const char *what, const char *reason)
{
    struct listener *listener = ctx;
    listener->kept = listener->kept || reason != NULL;
    listener->tell(listener->ctx, what, reason);
}

/* Remove the folders of the run's worktrees, if they are empty. */
static void remove_folders(const char *home, const char *run)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/worktrees/", home);
    names_add(&path, run);
    (void)rmdir(strbuf_text(&path));
    strbuf_release(&path);
}

enum err gc_git_sweep(const struct store_place *place,
                      const char *run,
                      bool dry,
                      sweep_fn tell,
                      void *ctx,
                      struct diag *diag)
{
    struct client_view view;
    struct store_query query = {.run = run};
    struct listener listener = {.tell = tell, .ctx = ctx};
    enum err err = client_look(&view, place, &query, diag);
    bool found = err == ERR_OK && engine_run_count(view.engine) == 1;
    struct engine_run_view of_run = {0};
    if (found) {
        of_run = engine_run(view.engine, 0);
    }
    for (uint32_t ix = 0; found && ix < of_run.plan->repo_count; ix++) {
        const struct plan_repo *repo = &of_run.plan->repos[ix];
        if (repo->path == NULL || repo->base == NULL) {
            continue;
        }
        struct strbuf path = {0};
        struct strbuf owner = {0};
        engine_add_path(&path, of_run.folder, repo->path);
        names_add_owner(&owner, place->id, of_run.created_ns);
        struct sweep sweep = {
            .repo_path = strbuf_text(&path),
            .store = place->home,
            .run = run,
            .repo = repo->name,
            .owner = strbuf_text(&owner),
            .base = repo->base,
            .dry = dry,
            .tell = pass_on,
            .ctx = &listener,
        };
        struct diag why = {0};
        if (sweep_run(&sweep, &why) != ERR_OK) {
            pass_on(&listener, strbuf_text(&path), why.text);
        }
        strbuf_release(&path);
        strbuf_release(&owner);
    }
    if (found && !dry && !listener.kept) {
        remove_folders(place->home, run);
    }
    client_view_release(&view);
    return err;
}
