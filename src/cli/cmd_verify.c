/* SPDX-License-Identifier: MIT */
/*
 * sluice verify: check that each commit of a repository's agent branches was
 * tested as it is.
 */
#include "base/mem.h"
#include "cli/cli.h"
#include "view/client.h"
#include "view/receipts.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

struct verifying {
    const struct cli_line *line;
    const char *wanted; /* name, path or URL of the repository */
    char *real;         /* the path without links; NULL: no such path */
    struct store_place place;
    struct client_view view;
    struct strbuf out;
    uint32_t branches;
    bool faulty;
};

/* Whether the operand names this repository of a run. */
static bool is_wanted(const struct verifying *verifying,
                      const struct engine_run_view *run,
                      const struct plan_repo *repo)
{
    if (!plan_is_git(repo)) {
        return false;
    }
    const char *url = repo->url != NULL ? repo->url : "";
    if (strcmp(repo->name, verifying->wanted) == 0 ||
        strcmp(url, verifying->wanted) == 0) {
        return true;
    }
    if (repo->url != NULL) {
        return false;
    }
    struct strbuf path = {0};
    engine_add_path(&path, run->folder, repo->path);
    char *real = realpath(strbuf_text(&path), NULL);
    bool same = real != NULL && verifying->real != NULL &&
                strcmp(real, verifying->real) == 0;
    free(real);
    strbuf_release(&path);
    return same;
}

static enum err verify_one(struct verifying *verifying,
                           uint32_t run,
                           uint32_t repo,
                           struct diag *diag)
{
    struct receipts receipts = {0};
    enum err err = receipts_check(&receipts,
                                  &verifying->place,
                                  verifying->view.store,
                                  verifying->view.engine,
                                  run,
                                  repo,
                                  diag);
    if (err == ERR_OK && verifying->line->json) {
        receipts_add_json(&verifying->out, &receipts);
    } else if (err == ERR_OK) {
        receipts_add_lines(&verifying->out, &receipts);
    }
    verifying->branches++;
    verifying->faulty = verifying->faulty || receipts.fault_count > 0;
    receipts_release(&receipts);
    return err;
}

static enum err verify_all(struct verifying *verifying, struct diag *diag)
{
    const struct engine *engine = verifying->view.engine;
    enum err err = ERR_OK;
    for (uint32_t run = 0; run < engine_run_count(engine); run++) {
        struct engine_run_view view = engine_run(engine, run);
        for (uint32_t ix = 0; ix < view.plan->repo_count && err == ERR_OK;
             ix++) {
            if (is_wanted(verifying, &view, &view.plan->repos[ix])) {
                err = verify_one(verifying, run, ix, diag);
            }
        }
    }
    if (err == ERR_OK && verifying->branches == 0) {
        err = diag_set(diag,
                       ERR_NOT_FOUND,
                       "no run%s%s of this store has a git repository \"%s\"",
                       verifying->line->wanted.run != NULL ? " " : "",
                       verifying->line->wanted.run != NULL
                           ? verifying->line->wanted.run
                           : "",
                       verifying->wanted);
    }
    return err;
}

static int verify(const struct cli_line *line, const char *wanted)
{
    struct diag diag = {0};
    struct verifying verifying = {
        .line = line,
        .wanted = wanted,
        .real = realpath(wanted, NULL),
    };
    struct store_query query = {.finished = true, .run = line->wanted.run};
    enum err err =
        store_place_find(&verifying.place, line->wanted.store, false, &diag);
    if (err == ERR_OK) {
        err = client_look(&verifying.view, &verifying.place, &query, &diag);
    }
    if (err == ERR_OK) {
        err = verify_all(&verifying, &diag);
    }
    int code = cli_print(&verifying.out);
    if (err != ERR_OK) {
        code = cli_fail_store(line->command, err, &diag);
    } else if (code == CLI_OK && verifying.faulty) {
        code = CLI_NOT_ALL_DONE;
    }
    strbuf_release(&verifying.out);
    client_view_release(&verifying.view);
    store_place_release(&verifying.place);
    free(verifying.real);
    return code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct cli_line line = {0};
    int code = cli_parse(&line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    const char *wanted = cli_operand(command, argc, argv);
    return wanted != NULL ? verify(&line, wanted) : CLI_USAGE;
}

static const struct cli_option options[] = {
    CLIENT_OPTION_JSON,
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_verify = {
    .name = "verify",
    .synopsis = "[OPTION]... REPO",
    .summary = "check that every merged commit was tested as it is",
    .options = options,
    .operand = CLI_OPERAND_OWN,
    .run = run,
};
