/* SPDX-License-Identifier: MIT */
/*
 * A commit is verified if its receipt (git/receipt.h) is of this run and for
 * its own tree, and the store has a verdict of the receipt's gate on that tree
 * that let it pass. Whoever can write to the repository can write receipts;
 * only a scheduler writes verdicts.
 */
#include "view/receipts.h"

#include "base/arena.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/plain.h"
#include "base/strmap.h"
#include "git/agent.h"
#include "git/hub.h"
#include "git/receipt.h"
#include "plan/twin.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_ID = 10 };

/* An attempt of the run. */
struct seen_attempt {
    uint64_t token;
    bool ended;
};

struct checking {
    struct receipts *out;
    struct arena arena;
    struct strmap gates;           /* "TREE COMMAND" to whether it passed */
    struct seen_attempt *attempts; /* by token */
    uint32_t attempt_count;
    uint32_t attempt_capacity;
};

/* Append the key of a tree and a gate. */
static void add_key(struct strbuf *out, const char *tree, const char *command)
{
    strbuf_addf(out, "%s ", tree);
    receipt_add_line(out, command);
}

static enum err on_gate(void *ctx, const struct store_gate *row)
{
    struct checking *checking = ctx;
    struct strbuf key = {0};
    add_key(&key, row->tree, row->command);
    bool passed = strcmp(row->verdict, "failed") != 0;
    uint32_t known = strmap_find(&checking->gates, key.text, key.len);
    /* A later verdict replaces a failure that was forgotten. */
    if (known == STRMAP_NONE || (known == 0 && passed)) {
        if (known != STRMAP_NONE) {
            strmap_remove(&checking->gates, key.text);
        }
        (void)strmap_add(&checking->gates,
                         arena_strndup(&checking->arena, key.text, key.len),
                         passed ? 1 : 0);
    }
    strbuf_release(&key);
    return ERR_OK;
}

static enum err on_attempt(void *ctx, const struct store_attempt *row)
{
    struct checking *checking = ctx;
    MEM_GROW(checking->attempts,
             checking->attempt_count,
             checking->attempt_capacity);
    checking->attempts[checking->attempt_count++] = (struct seen_attempt){
        .token = row->token,
        .ended = strcmp(row->state, "ended") == 0,
    };
    return ERR_OK;
}

static const struct seen_attempt *find_attempt(const struct checking *checking,
                                               const char *token)
{
    char *end = NULL;
    uint64_t number = strtoull(token, &end, 10);
    for (uint32_t ix = 0; *end == '\0' && ix < checking->attempt_count; ix++) {
        if (checking->attempts[ix].token == number) {
            return &checking->attempts[ix];
        }
    }
    return NULL;
}

static void add_fault(struct receipts *out,
                      const struct receipt_commit *commit,
                      const char *reason)
{
    MEM_EXTEND(out->faults, out->fault_count);
    size_t len = strcspn(commit->message, "\n");
    out->faults[out->fault_count++] = (struct receipts_fault){
        .commit = mem_strdup(commit->commit),
        .subject = mem_strndup(commit->message, len),
        .reason = mem_strdup(reason),
    };
}

/* Append why a gate does not verify a commit; nothing if it does. */
static void check_gate(struct strbuf *out,
                       const struct checking *checking,
                       const struct receipt_commit *commit,
                       const char *gate,
                       const char *token)
{
    const struct seen_attempt *attempt = find_attempt(checking, token);
    struct strbuf key = {0};
    add_key(&key, commit->tree, gate);
    uint32_t known = strmap_find(&checking->gates, key.text, key.len);
    strbuf_release(&key);
    if (attempt == NULL) {
        strbuf_addf(out, "its attempt %s is not one of this run", token);
    } else if (strcmp(gate, RECEIPT_NO_GATE) == 0) {
        strbuf_adds(out, "merged without a gate");
    } else if (known == 0) {
        strbuf_addf(out, "its tree failed the gate \"%s\"", gate);
    } else if (known == STRMAP_NONE) {
        strbuf_addf(out,
                    attempt->ended
                        ? "the store has no verdict of \"%s\" on its tree"
                        : "the verdict of \"%s\" is not stored yet: its merge "
                          "has not ended",
                    gate);
    }
}

static void on_commit(void *ctx, const struct receipt_commit *commit)
{
    struct checking *checking = ctx;
    struct strbuf run = {0};
    struct strbuf tree = {0};
    struct strbuf gate = {0};
    struct strbuf token = {0};
    struct strbuf own = {0};
    struct strbuf reason = {0};
    bool whole = receipt_find(&run, commit->message, "Sluice-Run") &&
                 receipt_find(&tree, commit->message, "Sluice-Tree") &&
                 receipt_find(&gate, commit->message, "Sluice-Gate") &&
                 receipt_find(&token, commit->message, "Sluice-Attempt");
    receipt_add_line(&own, checking->out->run);
    checking->out->commits++;
    if (!whole) {
        strbuf_adds(&reason, "no receipt: not merged by this sluice");
    } else if (strcmp(strbuf_text(&run), strbuf_text(&own)) != 0) {
        strbuf_addf(&reason,
                    "its receipt is of another run: %s",
                    strbuf_text(&run));
    } else if (strcmp(strbuf_text(&tree), commit->tree) != 0) {
        strbuf_addf(&reason,
                    "its receipt is for another tree: %s",
                    strbuf_text(&tree));
    } else {
        check_gate(&reason,
                   checking,
                   commit,
                   strbuf_text(&gate),
                   strbuf_text(&token));
    }
    if (reason.len > 0) {
        add_fault(checking->out, commit, strbuf_text(&reason));
    }
    strbuf_release(&run);
    strbuf_release(&tree);
    strbuf_release(&gate);
    strbuf_release(&token);
    strbuf_release(&own);
    strbuf_release(&reason);
}

/* Read the verdicts of the repository, and the attempts of the run. */
static enum err read_store(struct checking *checking,
                           struct store *store,
                           const char *run,
                           const char *path,
                           struct diag *diag)
{
    const struct store_query query = {
        .run = run,
        .ended = true,
        .repo = path,
    };
    const struct store_visitor visitor = {
        .gate = on_gate,
        .attempt = on_attempt,
    };
    return store_read(store, &query, &visitor, checking, NULL, diag);
}

/* Walk over the commits of the agent branch. */
static enum err read_git(struct checking *checking,
                         const struct store_place *place,
                         const struct engine_run_view *run,
                         const char *path,
                         const struct plan_repo *repo,
                         const char *entry,
                         struct diag *diag)
{
    struct git *git = NULL;
    struct names names;
    struct strbuf owner = {0};
    struct git_id tip = {0};
    struct git_id base_id = {0};
    names_init(&names, run->id, entry, "");
    names_add_owner(&owner, place->id, run->created_ns);
    enum err err = hub_open_either(&git, place->home, path, repo->url, diag);
    if (err == ERR_OK) {
        err = agent_find(git, &names, strbuf_text(&owner), &tip, diag);
    }
    checking->out->found = err == ERR_OK && tip.text[0] != '\0';
    if (checking->out->found) {
        err = git_resolve(git, repo->base, &base_id, diag);
        err = err == ERR_NOT_FOUND ? ERR_OK : err;
    }
    if (err == ERR_OK && checking->out->found) {
        err = receipt_walk(git,
                           tip.text,
                           base_id.text,
                           run->id,
                           on_commit,
                           checking,
                           diag);
    }
    git_close(git);
    names_release(&names);
    strbuf_release(&owner);
    return err;
}

enum err receipts_check(struct receipts *out,
                        const struct store_place *place,
                        struct store *store,
                        const struct engine *engine,
                        uint32_t run,
                        uint32_t repo,
                        struct diag *diag)
{
    struct engine_run_view view = engine_run(engine, run);
    const struct plan_repo *from = &view.plan->repos[repo];
    INVARIANT(plan_is_git(from));
    struct checking checking = {.out = out};
    struct strbuf path = {0};
    out->run = view.id;
    out->repo = from->name;
    const char *entry = twin_name(view.plan, view.folder, repo);
    names_add_branch(&out->branch, view.id, entry, NULL);
    engine_add_repo(&path, view.folder, from);
    enum err err =
        read_store(&checking, store, view.id, strbuf_text(&path), diag);
    if (err == ERR_OK) {
        err = read_git(&checking,
                       place,
                       &view,
                       strbuf_text(&path),
                       from,
                       entry,
                       diag);
    }
    strbuf_release(&path);
    strmap_release(&checking.gates);
    arena_release(&checking.arena);
    mem_free(checking.attempts);
    return err;
}

void receipts_release(struct receipts *receipts)
{
    for (uint32_t ix = 0; ix < receipts->fault_count; ix++) {
        mem_free(receipts->faults[ix].commit);
        mem_free(receipts->faults[ix].subject);
        mem_free(receipts->faults[ix].reason);
    }
    mem_free(receipts->faults);
    strbuf_release(&receipts->branch);
    *receipts = (struct receipts){0};
}

void receipts_add_lines(struct strbuf *out, const struct receipts *receipts)
{
    for (uint32_t ix = 0; ix < receipts->fault_count; ix++) {
        const struct receipts_fault *fault = &receipts->faults[ix];
        strbuf_addf(out, "%.*s ", SHORT_ID, fault->commit);
        plain_add(out, fault->subject);
        strbuf_adds(out, ": ");
        plain_add(out, fault->reason);
        strbuf_adds(out, "\n");
    }
    plain_add(out, receipts->repo);
    if (receipts->found) {
        strbuf_addf(out,
                    ": %u of %u commit%s of %s verified\n",
                    receipts->commits - receipts->fault_count,
                    receipts->commits,
                    receipts->commits == 1 ? "" : "s",
                    strbuf_text(&receipts->branch));
    } else {
        strbuf_addf(out, ": no branch %s\n", strbuf_text(&receipts->branch));
    }
}

void receipts_add_json(struct strbuf *out, const struct receipts *receipts)
{
    struct jsonw json = {.out = out};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "kind", "verify");
    jsonw_text(&json, "run", receipts->run);
    jsonw_text(&json, "repo", receipts->repo);
    jsonw_text(&json,
               "branch",
               receipts->found ? strbuf_text(&receipts->branch) : NULL);
    jsonw_int(&json, "commits", receipts->commits);
    jsonw_int(&json, "verified", receipts->commits - receipts->fault_count);
    jsonw_array(&json, "faults");
    for (uint32_t ix = 0; ix < receipts->fault_count; ix++) {
        jsonw_object(&json, NULL);
        jsonw_text(&json, "commit", receipts->faults[ix].commit);
        jsonw_text(&json, "subject", receipts->faults[ix].subject);
        jsonw_text(&json, "reason", receipts->faults[ix].reason);
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
    jsonw_finish(&json);
}
