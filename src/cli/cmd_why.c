/* SPDX-License-Identifier: MIT */
/*
 * sluice why: the reason of one task, the chain to its root, and what to do.
 *
 * The chain follows the task that each reason names: from "needs b" to b, from
 * "limit sessions, held by c" to c. Its last link is the root: something that
 * runs, that time or a person will change.
 */
#include "base/duration.h"
#include "base/jsonw.h"
#include "cli/glance.h"
#include "cli/plain.h"
#include "cli/target.h"
#include "plan/suggest.h"
#include "work/home.h"

#include <getopt.h>
#include <string.h>

enum { CHAIN_MAX = 64 }; /* links shown at most */

/* A task: index of its run, index in the plan. */
struct link {
    uint32_t run;
    uint32_t task;
};

struct answer {
    const struct glance *glance;
    struct link chain[CHAIN_MAX]; /* the task itself comes first */
    uint32_t count;
    bool cut; /* the chain is longer */
};

/* --- which task --------------------------------------------------------- */

/* A task of a group that says what the group waits for: the first that has not
 * ended, else its last. PLAN_NONE: there is no such group. */
static uint32_t
task_of_group(const struct glance *glance, uint32_t run, const char *name)
{
    const struct plan *plan = engine_run(glance->view.engine, run).plan;
    uint32_t found = PLAN_NONE;
    bool open = false;
    for (uint32_t ix = 0; ix < plan->task_count && !open; ix++) {
        uint32_t group = plan->tasks[ix].group;
        if (group != PLAN_NONE && strcmp(plan->groups[group].id, name) == 0) {
            enum task_state state = snapshot_state(glance->snapshot, run, ix);
            found = ix;
            open = state != TASK_DONE && state != TASK_SKIPPED &&
                   state != TASK_CANCELLED;
        }
    }
    return found;
}

static enum err
refuse(const struct glance *glance, const char *name, struct diag *diag)
{
    struct engine *engine = glance->view.engine;
    struct suggest guess;
    uint32_t budget = SUGGEST_BUDGET;
    suggest_init(&guess, name, strlen(name), &budget);
    for (uint32_t run = 0; run < engine_run_count(engine); run++) {
        const struct plan *plan = engine_run(engine, run).plan;
        for (uint32_t ix = 0; ix < plan->group_count; ix++) {
            (void)suggest_offer(&guess, plan->groups[ix].id);
        }
        for (uint32_t ix = 0; ix < plan->task_count; ix++) {
            (void)suggest_offer(&guess, plan->tasks[ix].id);
        }
    }
    return diag_set(diag,
                    ERR_NOT_FOUND,
                    "there is no task \"%s\"%s; 'sluice status --json' lists "
                    "them",
                    name,
                    suggest_hint(&guess));
}

/* The task of that name in the runs that are loaded; a newer run is better
 * when all that have it are finished. */
static enum err find_task(const struct glance *glance,
                          const char *name,
                          const char *wanted_run,
                          struct link *out,
                          struct diag *diag)
{
    struct engine *engine = glance->view.engine;
    uint32_t open = 0;
    bool found = false;
    for (uint32_t run = 0; run < engine_run_count(engine); run++) {
        struct engine_run_view view = engine_run(engine, run);
        uint32_t task = plan_find_task(view.plan, name);
        task = task != PLAN_NONE ? task : task_of_group(glance, run, name);
        if (task == PLAN_NONE ||
            (wanted_run != NULL && strcmp(view.id, wanted_run) != 0) ||
            (view.finished && open > 0)) {
            continue;
        }
        open += view.finished ? 0 : 1;
        *out = (struct link){.run = run, .task = task};
        found = true;
    }
    if (open > 1) {
        return diag_set(diag,
                        ERR_INVALID,
                        "several runs have a task \"%s\": say which with "
                        "--run",
                        name);
    }
    return found ? ERR_OK : refuse(glance, name, diag);
}

/* --- the chain ---------------------------------------------------------- */

static bool is_in_chain(const struct answer *answer, struct link link)
{
    for (uint32_t ix = 0; ix < answer->count; ix++) {
        if (answer->chain[ix].run == link.run &&
            answer->chain[ix].task == link.task) {
            return true;
        }
    }
    return false;
}

static struct reason reason_of(const struct answer *answer, uint32_t ix)
{
    return snapshot_reason(answer->glance->snapshot,
                           answer->chain[ix].run,
                           answer->chain[ix].task);
}

/* From a task to the root: what runs, what time will change, or what a person
 * can. */
static void follow(struct answer *answer, struct link link)
{
    bool more = true;
    while (more && answer->count < CHAIN_MAX) {
        answer->chain[answer->count++] = link;
        struct reason reason = reason_of(answer, answer->count - 1);
        more = reasons_remedies(&reason)->verb == NULL &&
               snapshot_cause(answer->glance->snapshot,
                              link.run,
                              link.task,
                              &link.run,
                              &link.task) &&
               !is_in_chain(answer, link);
    }
    answer->cut = more;
}

static const char *id_of(const struct answer *answer, uint32_t ix)
{
    struct engine_run_view view =
        engine_run(answer->glance->view.engine, answer->chain[ix].run);
    return view.plan->tasks[answer->chain[ix].task].id;
}

/* The run of a link, for a command line; NULL: it need not be said. */
static const char *run_option(const struct answer *answer, uint32_t ix)
{
    const struct engine *engine = answer->glance->view.engine;
    return engine_run_count(engine) > 1
               ? engine_run(engine, answer->chain[ix].run).id
               : NULL;
}

/* The session that a task is in; false: it is in none. */
static bool find_session(const struct answer *answer,
                         uint32_t ix,
                         struct engine_session_view *out)
{
    const struct engine *engine = answer->glance->view.engine;
    struct link link = answer->chain[ix];
    struct task_id task =
        load_task(engine_run(engine, link.run).loaded, link.task);
    uint64_t token = sched_task(engine_sched(engine), task).token;
    for (uint32_t n = 0; n < engine_session_count(engine); n++) {
        *out = engine_session(engine, n);
        if (out->token == token) {
            return true;
        }
    }
    return false;
}

/* Where the log of its last attempt is; false: it has had none. */
static bool
add_log(struct strbuf *out, const struct answer *answer, uint32_t ix)
{
    const struct engine *engine = answer->glance->view.engine;
    struct link link = answer->chain[ix];
    uint32_t number = engine_attempt_number(engine, link.run, link.task);
    if (number == 0) {
        return false;
    }
    home_add_attempt(out,
                     answer->glance->dir,
                     engine_run(engine, link.run).id,
                     id_of(answer, ix),
                     number);
    strbuf_adds(out, "/log");
    return true;
}

/* --- for people --------------------------------------------------------- */

/* "api-12/gate is waiting: needs api-12/implement". */
static void
add_link(struct strbuf *out, const struct answer *answer, uint32_t ix)
{
    struct reason reason = reason_of(answer, ix);
    struct engine_session_view session;
    strbuf_addf(out, "%s", id_of(answer, ix));
    if (answer->chain[ix].run != answer->chain[0].run) {
        strbuf_addf(out, " of run %s", run_option(answer, ix));
    }
    strbuf_addf(out, " is %s", sched_state_name(reason.state));
    bool flies = reason.state == TASK_CLAIMED || reason.state == TASK_RUNNING;
    if (flies && find_session(answer, ix, &session)) {
        strbuf_addf(out, ", attempt %u, for ", session.number);
        duration_add(out, glance_elapsed_ns(answer->glance, &session));
        return;
    }
    if (reason.code == WHY_PARKED) {
        strbuf_adds(out, ": ");
        reasons_add_parked(out, &reason);
    } else if (reason.code != WHY_RUNNING && reason.code != WHY_FAILED &&
               (reason.state != TASK_DONE || reason.revoked)) {
        strbuf_adds(out, ": ");
        reasons_add(out, &reason);
    }
}

static void
add_remedies(struct strbuf *out, const struct answer *answer, uint32_t ix)
{
    struct reason reason = reason_of(answer, ix);
    const char *head = "\nto do:\n";
    for (const struct reasons_remedy *remedy = reasons_remedies(&reason);
         remedy->verb != NULL;
         remedy++) {
        struct strbuf command = {0};
        reasons_add_command(&command,
                            &reason,
                            remedy,
                            id_of(answer, ix),
                            run_option(answer, ix));
        strbuf_addf(out,
                    "%s  %-40s %s\n",
                    head,
                    strbuf_text(&command),
                    remedy->effect);
        strbuf_release(&command);
        head = "";
    }
}

/* The command that undoes a hold of the task itself. */
static void add_release(struct strbuf *out, const struct answer *answer)
{
    struct strbuf command = {0};
    const char *run = run_option(answer, 0);
    strbuf_addf(&command, "sluice release %s", id_of(answer, 0));
    if (run != NULL) {
        strbuf_addf(&command, " --run %s", run);
    }
    strbuf_addf(out,
                "  %-40s lets it start, once nothing else keeps it\n",
                strbuf_text(&command));
    strbuf_release(&command);
}

static void add_text(struct strbuf *out, const struct answer *answer)
{
    for (uint32_t ix = 0; ix < answer->count; ix++) {
        strbuf_adds(out, ix > 0 ? "  " : "");
        add_link(out, answer, ix);
        strbuf_adds(out, "\n");
    }
    strbuf_adds(out, answer->cut ? "  ...\n" : "");
    uint32_t root = answer->count - 1;
    struct link link = answer->chain[root];
    const struct client_view *view = &answer->glance->view;
    const char *said = engine_reason(view->engine, link.run, link.task);
    struct reason reason = reason_of(answer, root);
    if (said != NULL && reason.state != TASK_DONE) {
        strbuf_adds(out, "\nreason: ");
        plain_add(out, said);
        strbuf_adds(out, "\n");
    }
    struct strbuf log = {0};
    if (add_log(&log, answer, root)) {
        strbuf_addf(out,
                    "%slog:    %s\n",
                    said != NULL && reason.state != TASK_DONE ? "" : "\n",
                    strbuf_text(&log));
    }
    strbuf_release(&log);
    add_remedies(out, answer, root);
    struct reason first = reason_of(answer, 0);
    if (first.held && first.code != WHY_HELD) {
        strbuf_adds(out, "\nheld, too:\n");
        add_release(out, answer);
    }
    if (!view->owned && reason.code == WHY_STARTABLE) {
        strbuf_adds(out,
                    "\nto do:\n  sluice run PLAN    no scheduler is there to "
                    "start it\n");
    }
}

/* --- for programs ------------------------------------------------------- */

static void
json_link(struct strbuf *out, const struct answer *answer, uint32_t ix)
{
    struct link link = answer->chain[ix];
    const struct engine *engine = answer->glance->view.engine;
    struct reason reason = reason_of(answer, ix);
    struct strbuf log = {0};
    bool has_log = add_log(&log, answer, ix);
    strbuf_adds(out, "\"task\": ");
    jsonw_string(out, id_of(answer, ix));
    strbuf_adds(out, ", \"run\": ");
    jsonw_string(out, engine_run(engine, link.run).id);
    strbuf_addf(out,
                ", \"state\": \"%s\", \"attempt\": %u, \"reason\": ",
                sched_state_name(reason.state),
                engine_attempt_number(engine, link.run, link.task));
    jsonw_string(out, engine_reason(engine, link.run, link.task));
    strbuf_adds(out, ", \"log\": ");
    jsonw_string(out, has_log ? strbuf_text(&log) : NULL);
    strbuf_adds(out, ",\n   \"why\": ");
    reasons_add_json(out, &reason);
    strbuf_release(&log);
}

static void add_json(struct strbuf *out, const struct answer *answer)
{
    strbuf_adds(out, "{");
    json_link(out, answer, 0);
    strbuf_adds(out, ",\n \"chain\": [");
    for (uint32_t ix = 1; ix < answer->count; ix++) {
        strbuf_adds(out, ix > 1 ? ",\n  {" : "\n  {");
        json_link(out, answer, ix);
        strbuf_adds(out, "}");
    }
    strbuf_addf(out,
                "], \"cut\": %s,\n \"commands\": [",
                answer->cut ? "true" : "false");
    uint32_t root = answer->count - 1;
    struct reason reason = reason_of(answer, root);
    const struct reasons_remedy *remedies = reasons_remedies(&reason);
    for (uint32_t ix = 0; remedies[ix].verb != NULL; ix++) {
        struct strbuf command = {0};
        reasons_add_command(&command,
                            &reason,
                            &remedies[ix],
                            id_of(answer, root),
                            run_option(answer, root));
        strbuf_adds(out, ix > 0 ? ", " : "");
        jsonw_string(out, strbuf_text(&command));
        strbuf_release(&command);
    }
    strbuf_adds(out, "]}\n");
}

/* --- the command -------------------------------------------------------- */

/* Look for the task among unfinished runs, then among all. */
static enum err take(struct answer *answer,
                     struct glance *glance,
                     struct glance_options *wanted,
                     const char *name,
                     struct diag *diag)
{
    struct link link = {0};
    enum err err = glance_take(glance, wanted, diag);
    if (err == ERR_OK) {
        err = find_task(glance, name, wanted->run, &link, diag);
        if (err == ERR_NOT_FOUND && !wanted->finished) {
            glance_release(glance);
            wanted->finished = true;
            err = glance_take(glance, wanted, diag);
            if (err == ERR_OK) {
                err = find_task(glance, name, wanted->run, &link, diag);
            }
        }
    }
    if (err == ERR_OK) {
        answer->glance = glance;
        follow(answer, link);
    }
    return err;
}

static int show(const struct cli_command *command,
                struct glance_options *wanted,
                const char *name,
                bool json)
{
    struct glance glance = {0};
    struct answer answer = {0};
    struct diag diag = {0};
    struct strbuf out = {0};
    enum err err = take(&answer, &glance, wanted, name, &diag);
    int code = CLI_OK;
    if (err != ERR_OK) {
        code = client_fail(command, err, &diag);
    } else if (json) {
        add_json(&out, &answer);
        code = cli_write(&out);
    } else {
        add_text(&out, &answer);
        code = cli_write(&out);
    }
    strbuf_release(&out);
    glance_release(&glance);
    return code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct glance_options wanted = {0};
    bool json = false;
    for (;;) {
        const char *argument = NULL;
        int code = cli_next(command, argc, argv, &argument);
        if (code == CLI_END) {
            break;
        }
        if (code < 0) {
            return code == CLI_HELP ? CLI_OK : CLI_USAGE;
        }
        if (code == CLIENT_OPT_STORE) {
            wanted.store = argument;
        } else if (code == CLIENT_OPT_RUN) {
            wanted.run = argument;
        } else {
            json = true;
        }
    }
    if (optind == argc) {
        return cli_fail(command, "which task? Name one");
    }
    if (optind + 1 < argc) {
        return cli_fail(command,
                        "one task at a time; what is \"%s\"?",
                        argv[optind + 1]);
    }
    int code = target_check_name(command, "task", argv[optind]);
    return code == CLI_OK ? show(command, &wanted, argv[optind], json) : code;
}

static const struct cli_option options[] = {
    CLIENT_OPTION_JSON,
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_why = {
    .name = "why",
    .synopsis = "[--json] [--run RUN] [--store DIR] TASK",
    .summary = "say why a task is not running, and what to do about it",
    .options = options,
    .run = run,
};
