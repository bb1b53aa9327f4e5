/* SPDX-License-Identifier: MIT */
#include "view/session_look.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/plain.h"
#include "base/utc.h"
#include "view/chain.h"
#include "work/home.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum {
    LINES_MAX = 200,            /* of the plan */
    BODY_BYTES_MAX = 256 << 10, /* of an issue */
    LOG_BYTES_MAX = 16 << 10,   /* of the end of a log */
    READ_BYTES = 4096,
};

/* A question being answered. */
struct looking {
    struct engine *engine;
    const struct store_place *place;
    const struct engine_look *look;
    struct engine_session_view session;
    struct engine_run_view run;
    struct strbuf *out;
    struct diag *diag;
};

/* --- task --------------------------------------------------------------- */

/* Append a file of the plan; report one that cannot be read. */
static void add_file(struct looking *looking, const char *path)
{
    char bytes[READ_BYTES];
    struct strbuf full = {0};
    size_t left = BODY_BYTES_MAX;
    engine_add_path(&full, looking->run.folder, path);
    int fd = open(strbuf_text(&full), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t len = fd >= 0 ? 1 : -1;
    while (len > 0 && left > 0) {
        len = read(fd, bytes, left < sizeof(bytes) ? left : sizeof(bytes));
        for (ssize_t ix = 0; ix < len; ix++) {
            bytes[ix] = (char)(bytes[ix] == '\0' ? ' ' : bytes[ix]);
        }
        if (len > 0) {
            strbuf_add(looking->out, bytes, (size_t)len);
            left -= (size_t)len;
        }
    }
    if (len < 0) {
        strbuf_addf(looking->out,
                    "(cannot read %s: %s)",
                    strbuf_text(&full),
                    strerror(errno));
    } else if (left == 0) {
        strbuf_addf(looking->out, "\n(cut: %s)", strbuf_text(&full));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    strbuf_release(&full);
}

/* Append an issue: its title and its text. */
static void add_issue(struct looking *looking, const struct plan_task *task)
{
    struct strbuf *out = looking->out;
    struct plan_issue issue = plan_issue_of(looking->run.plan, task);
    strbuf_addf(out,
                "\n# %s%s%s\n",
                issue.id,
                issue.title != NULL ? ": " : "",
                issue.title != NULL ? issue.title : "");
    if (issue.body_file != NULL) {
        add_file(looking, issue.body_file);
        strbuf_adds(out, "\n");
    } else if (issue.body != NULL) {
        strbuf_addf(out, "%s\n", issue.body);
    }
}

static void add_needs(struct looking *looking, const struct plan_task *task)
{
    const struct plan *plan = looking->run.plan;
    struct sched *sched = engine_sched(looking->engine);
    for (uint32_t ix = 0; ix < task->need_count && ix < LINES_MAX; ix++) {
        uint32_t need = task->needs[ix];
        struct task_id id = load_task(looking->run.loaded, need);
        strbuf_addf(looking->out,
                    "%s%s (%s)",
                    ix > 0 ? ", " : "needs: ",
                    plan->tasks[need].id,
                    sched_state_name(sched_task(sched, id).state));
    }
    strbuf_adds(looking->out, task->need_count > 0 ? "\n" : "");
}

/* Append when it is stopped, and what it may spend. */
static void add_limits(struct looking *looking, const struct plan_task *task)
{
    const struct engine_session_view *session = &looking->session;
    int64_t timeout_ns = task->settings->timeout_ns;
    int64_t from_ns =
        session->begun_ns > 0 ? session->begun_ns : session->claimed_ns;
    if (timeout_ns != PLAN_UNSET && timeout_ns != PLAN_UNLIMITED) {
        struct strbuf at = {0};
        if (utc_add(&at, duration_sum(from_ns, timeout_ns))) {
            strbuf_addf(looking->out, "deadline: %s\n", strbuf_text(&at));
        }
        strbuf_release(&at);
    }
    int64_t usd = engine_usd_left(looking->engine, session->run, session->task);
    if (usd != PLAN_UNSET) {
        strbuf_addf(looking->out,
                    "budget left: $%.2f\n",
                    (double)usd / PLAN_USD);
    }
}

static enum err look_task(struct looking *looking)
{
    const struct plan *plan = looking->run.plan;
    const struct engine_session_view *session = &looking->session;
    const struct plan_task *task = &plan->tasks[session->task];
    struct strbuf *out = looking->out;
    strbuf_addf(out,
                "task: %s, attempt %u\nrun: %s\nclass: %s%s\n",
                task->id,
                session->number,
                looking->run.id,
                plan->classes[task->class_ix].name,
                plan_is_review(plan, task)
                    ? " (a review: finish with done or changes)"
                    : "");
    if (task->repo != PLAN_NONE) {
        strbuf_addf(out, "repository: %s\n", plan->repos[task->repo].name);
    }
    add_needs(looking, task);
    add_limits(looking, task);
    const char *feedback =
        engine_feedback(looking->engine, session->run, session->task);
    if (feedback != NULL) {
        strbuf_addf(out, "\nfeedback:\n%s\n", feedback);
    }
    if (session->task_count == 1) {
        add_issue(looking, task);
        return ERR_OK;
    }
    strbuf_addf(out,
                "\nbatch of %u tasks: finish with an outcome for each\n",
                session->task_count);
    struct sched *sched = engine_sched(looking->engine);
    struct task_id next = load_task(looking->run.loaded, session->task);
    for (uint32_t n = 0; n < session->task_count && n < LINES_MAX; n++) {
        uint32_t ix = load_plan_task(looking->run.loaded, next);
        strbuf_addf(out, "\ntask: %s\n", plan->tasks[ix].id);
        add_issue(looking, &plan->tasks[ix]);
        next = sched_session_next(sched, next);
    }
    return ERR_OK;
}

/* --- plan --------------------------------------------------------------- */

/* Whether a task is asked for: its id or its state contains the filter. */
static bool
is_meant(const struct looking *looking, const char *id, const char *state)
{
    const char *filter = looking->look->filter;
    return filter == NULL || strcmp(filter, state) == 0 ||
           strstr(id, filter) != NULL;
}

static enum err look_plan(struct looking *looking)
{
    const struct plan *plan = looking->run.plan;
    uint32_t run = looking->session.run;
    struct strbuf *out = looking->out;
    struct snapshot *snapshot = snapshot_new(looking->engine, false);
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        const char *id = plan->tasks[ix].id;
        enum task_state state = snapshot_state(snapshot, run, ix);
        if (!is_meant(looking, id, sched_state_name(state))) {
            continue;
        }
        if (count++ >= LINES_MAX) {
            continue;
        }
        strbuf_addf(out, "%s %s", id, sched_state_name(state));
        if (state == TASK_WAITING || state == TASK_READY ||
            state == TASK_PARKED) {
            struct reason reason = snapshot_reason(snapshot, run, ix);
            strbuf_adds(out, ": ");
            reasons_add(out, &reason);
        }
        const char *title = plan_issue_of(plan, &plan->tasks[ix]).title;
        if (title != NULL) {
            strbuf_adds(out, " - ");
            plain_add(out, title);
        }
        strbuf_adds(out, "\n");
    }
    if (count == 0) {
        strbuf_adds(out, "no task matches\n");
    } else if (count > LINES_MAX) {
        strbuf_addf(out,
                    "%u more: use a filter (a state, or a part of an id)\n",
                    count - LINES_MAX);
    }
    snapshot_free(snapshot);
    return ERR_OK;
}

/* --- why, log ----------------------------------------------------------- */

/* The name that is asked for; its own task without one. */
static const char *name_of(const struct looking *looking)
{
    return looking->look->task != NULL
               ? looking->look->task
               : looking->run.plan->tasks[looking->session.task].id;
}

static enum err look_why(struct looking *looking)
{
    struct chain chain;
    enum err err = chain_look(&chain,
                              looking->engine,
                              clock_wall_ns(),
                              looking->run.id,
                              name_of(looking),
                              looking->diag);
    if (err == ERR_OK) {
        chain_add_links(looking->out, &chain);
        struct chain_link root = chain.links[chain.count - 1];
        const char *said = engine_reason(looking->engine, root.run, root.task);
        if (said != NULL &&
            chain_reason(&chain, chain.count - 1).state != TASK_DONE) {
            strbuf_adds(looking->out, "reason: ");
            plain_add(looking->out, said);
            strbuf_adds(looking->out, "\n");
        }
    }
    snapshot_free(chain.glance.snapshot);
    return err;
}

static enum err look_log(struct looking *looking)
{
    const char *name = name_of(looking);
    uint32_t task = plan_find_task(looking->run.plan, name);
    uint32_t run = looking->session.run;
    if (task == PLAN_NONE) {
        return diag_set(looking->diag,
                        ERR_NOT_FOUND,
                        "no task \"%s\" in run %s",
                        name,
                        looking->run.id);
    }
    uint32_t number = engine_attempt_number(looking->engine, run, task);
    if (number == 0) {
        return diag_set(looking->diag,
                        ERR_NOT_FOUND,
                        "%s has no log: it has not run",
                        name);
    }
    home_add_log_tail(looking->out,
                      looking->place->home,
                      looking->run.id,
                      name,
                      number,
                      LOG_BYTES_MAX);
    return ERR_OK;
}

enum err session_look(struct engine *engine,
                      const struct store_place *place,
                      const struct engine_look *look,
                      struct strbuf *out,
                      struct diag *diag)
{
    static const struct {
        const char *verb;
        enum err (*answer)(struct looking *looking);
    } verbs[] = {
        {"log", look_log},
        {"plan", look_plan},
        {"task", look_task},
        {"why", look_why},
    };
    struct looking looking = {
        .engine = engine,
        .place = place,
        .look = look,
        .out = out,
        .diag = diag,
    };
    if (look->token == 0) {
        return diag_set(diag, ERR_UNAVAILABLE, "no scheduler is running");
    }
    bool found = engine_find_session(engine, look->token, &looking.session);
    INVARIANT(found); /* the engine has checked its key */
    looking.run = engine_run(engine, looking.session.run);
    for (size_t ix = 0; ix < ARRAY_COUNT(verbs); ix++) {
        if (strcmp(verbs[ix].verb, look->verb) == 0) {
            return verbs[ix].answer(&looking);
        }
    }
    return diag_set(diag, ERR_INVALID, "unknown question \"%s\"", look->verb);
}
