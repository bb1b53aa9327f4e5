/* SPDX-License-Identifier: MIT */
/* sluice status: who schedules, what runs, what waits and why. */
#include "base/duration.h"
#include "base/jsonw.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/strmap.h"
#include "cli/glance.h"
#include "cli/plain.h"
#include "cli/target.h"
#include "cli/usage.h"
#include "engine/loop.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum { OPT_ALL = 1 };

enum {
    PEOPLE_MAX = 20, /* tasks that need a person, listed at most */
    GROUPS_MAX = 12, /* reasons for waiting, listed at most */
    NAMES_MAX = 3,   /* tasks named for one reason */
    NAME_COLUMNS = 30,
};

static const enum task_state count_order[] = {
    TASK_DONE,
    TASK_RUNNING,
    TASK_CLAIMED,
    TASK_READY,
    TASK_WAITING,
    TASK_PARKED,
    TASK_FAILED,
    TASK_SKIPPED,
    TASK_CANCELLED,
};

/* --- the scheduler ------------------------------------------------------ */

/* What is the matter with it, in one word; stable, for JSON. */
static const char *scheduler_state(const struct client_view *view)
{
    if (!view->owned) {
        return "none";
    }
    if (view->stopped) {
        return "stopped";
    }
    if (view->silent_ns > 0) {
        return "silent";
    }
    return view->owner.trouble[0] != '\0' ? "trouble" : "alive";
}

static void add_scheduler(struct strbuf *out, const struct client_view *view)
{
    long long pid = (long long)view->owner.pid;
    strbuf_adds(out, "scheduler: ");
    if (!view->owned) {
        strbuf_adds(out,
                    "none; sessions live on without one, and 'sluice run' "
                    "goes on\n");
        return;
    }
    strbuf_addf(out, "pid %lld on ", pid);
    plain_add(out, view->owner.host);
    if (view->stopped) {
        strbuf_addf(out,
                    " is STOPPED (SIGSTOP, Ctrl-Z or a debugger): 'kill -CONT "
                    "%lld' lets it go on, 'sluice run --take-over' replaces "
                    "it\n",
                    pid);
        return;
    }
    if (view->silent_ns > 0) {
        strbuf_adds(out, " has been SILENT for ");
        duration_add(out, view->silent_ns);
        strbuf_adds(out,
                    ": it may hang; 'sluice run --take-over' replaces it\n");
        return;
    }
    int64_t age_ns = client_age_ns(view);
    if (age_ns >= 0) {
        strbuf_addf(out,
                    ", %s for ",
                    view->owner.trouble[0] == '\0' ? "alive" : "running");
        duration_add(out, age_ns);
    }
    if (view->owner.trouble[0] != '\0') {
        strbuf_adds(out, ", in TROUBLE: ");
        plain_add(out, view->owner.trouble);
        strbuf_adds(out, "; it tries again");
    }
    strbuf_adds(out, "\n");
}

static void json_scheduler(struct strbuf *out, const struct client_view *view)
{
    int64_t age_ns = client_age_ns(view);
    strbuf_addf(out, "{\"state\": \"%s\", \"pid\": ", scheduler_state(view));
    if (view->owned) {
        strbuf_addf(out, "%lld", (long long)view->owner.pid);
    } else {
        strbuf_adds(out, "null");
    }
    strbuf_adds(out, ", \"host\": ");
    jsonw_string(out, view->owned ? view->owner.host : NULL);
    strbuf_adds(out, ", \"age_s\": ");
    if (age_ns >= 0) {
        jsonw_seconds(out, age_ns);
    } else {
        strbuf_adds(out, "null");
    }
    strbuf_adds(out, ", \"silent_s\": ");
    jsonw_seconds(out, view->silent_ns);
    strbuf_adds(out, ", \"trouble\": ");
    jsonw_string(out,
                 view->owned && view->owner.trouble[0] != '\0'
                     ? view->owner.trouble
                     : NULL);
    strbuf_adds(out, "}");
}

/* --- a run, for people -------------------------------------------------- */

/* A name, padded to its column. */
static void add_name(struct strbuf *out, const char *name)
{
    size_t before = out->len;
    plain_add(out, name);
    uint32_t columns = plain_columns(out->text + before);
    strbuf_pad(out, ' ', columns < NAME_COLUMNS ? NAME_COLUMNS - columns : 1);
}

static int64_t age_ns(const struct glance *glance, uint32_t run)
{
    int64_t created_ns = engine_run(glance->view.engine, run).created_ns;
    int64_t age_ns = glance->wall_ns - created_ns;
    return age_ns > 0 ? age_ns : 0;
}

static void
add_head(struct strbuf *out, const struct glance *glance, uint32_t run)
{
    struct engine_run_view view = engine_run(glance->view.engine, run);
    strbuf_addf(out, "\nrun %s: ", view.id);
    plain_add(out, view.name);
    strbuf_adds(out, ", submitted ");
    duration_add(out, age_ns(glance, run));
    strbuf_adds(out, " ago");
    strbuf_adds(out, view.finished ? ", finished" : "");
    strbuf_adds(out, view.sched.cancelled ? ", cancelled" : "");
    strbuf_adds(out, view.sched.paused ? ", PAUSED" : "");
    strbuf_addf(out,
                "\n  %u task%s",
                view.plan->task_count,
                view.plan->task_count == 1 ? "" : "s");
    const char *comma = ": ";
    for (size_t ix = 0; ix < ARRAY_COUNT(count_order); ix++) {
        uint32_t count = snapshot_count(glance->snapshot, run, count_order[ix]);
        if (count > 0) {
            strbuf_addf(out,
                        "%s%u %s",
                        comma,
                        count,
                        sched_state_name(count_order[ix]));
            comma = ", ";
        }
    }
    strbuf_adds(out, "\n");
}

/* The cap first, as in the plan; those that nobody uses, or that limit nothing,
 * are left out. */
static void
add_limits(struct strbuf *out, const struct glance *glance, uint32_t run)
{
    struct engine_run_view view = engine_run(glance->view.engine, run);
    const struct sched *sched = engine_sched(glance->view.engine);
    strbuf_adds(out, "  limits:");
    const char *comma = " ";
    for (uint32_t ix = 0; ix < view.plan->limit_count; ix++) {
        const struct plan_limit *limit = &view.plan->limits[ix];
        int64_t used = snapshot_used(glance->snapshot, run, ix);
        int64_t max = sched_limit_max(sched, load_limit(view.loaded, ix));
        if (plan_is_paid(limit) ||
            (ix > 0 && (used == 0 || max == LIMIT_NONE))) {
            continue;
        }
        strbuf_addf(out, "%s%s %lld", comma, limit->name, (long long)used);
        comma = ", ";
        if (max == LIMIT_NONE) {
            strbuf_adds(out, " (no limit)");
        } else if (limit->per != NULL) {
            strbuf_addf(out,
                        " (at most %lld per %s)",
                        (long long)max,
                        limit->per);
        } else {
            strbuf_addf(out, " of %lld", (long long)max);
        }
        int64_t set = engine_limit_set(glance->view.engine, run, ix);
        if (max != LIMIT_NONE && limit->percent == 0 && set > max) {
            strbuf_addf(out, " (lowered by usage");
            if (set != LIMIT_NONE) {
                strbuf_addf(out, " from %lld", (long long)set);
            }
            strbuf_adds(out, ")");
        }
    }
    strbuf_adds(out, "\n");
    usage_add_monitors(out, glance->view.engine, run, glance->wall_ns, "  ");
    usage_add_budgets(out, glance, run, "  ");
}

/* Whether its process is known to be gone; without a scheduler nobody has
 * looked yet what became of it. */
static bool has_ended(const struct engine_session_view *session)
{
    return mark_is_gone(&session->mark);
}

static void
add_sessions(struct strbuf *out, const struct glance *glance, uint32_t run)
{
    struct engine_run_view view = engine_run(glance->view.engine, run);
    bool any = false;
    struct engine_session_view session = {0};
    while (glance_next_session(glance, run, session.token, &session)) {
        strbuf_adds(out, any ? "" : "  in flight:\n");
        any = true;
        strbuf_adds(out, "    ");
        add_name(out, view.plan->tasks[session.task].id);
        strbuf_addf(out, "attempt %u, ", session.number);
        if (mark_process(&session.mark) > 0) {
            strbuf_addf(out,
                        "pid %lld, ",
                        (long long)mark_process(&session.mark));
        }
        strbuf_adds(out, session.begun_ns > 0 ? "" : "starting for ");
        duration_add(out, glance_elapsed_ns(glance, &session));
        if (session.task_count > 1) {
            strbuf_addf(out, ", with %u more tasks", session.task_count - 1);
        }
        if (!glance->view.owned && has_ended(&session)) {
            strbuf_adds(out, ", has ended: the next scheduler sees to it");
        }
        strbuf_adds(out, "\n");
    }
}

static void
add_people(struct strbuf *out, const struct glance *glance, uint32_t run)
{
    struct engine_run_view view = engine_run(glance->view.engine, run);
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < view.plan->task_count; ix++) {
        if (!snapshot_needs_person(glance->snapshot, run, ix) ||
            ++count > PEOPLE_MAX) {
            continue;
        }
        strbuf_adds(out,
                    count > 1 ? ""
                              : "  a person is needed ('sluice why TASK' says "
                                "what to do):\n");
        struct reason reason = snapshot_reason(glance->snapshot, run, ix);
        const char *said = engine_reason(glance->view.engine, run, ix);
        strbuf_adds(out, "    ");
        add_name(out, view.plan->tasks[ix].id);
        reasons_add(out, &reason);
        if (said != NULL) {
            strbuf_adds(out, ": ");
            plain_add(out, said);
        }
        strbuf_adds(out, "\n");
    }
    if (count > PEOPLE_MAX) {
        strbuf_addf(out, "    ... and %u more\n", count - PEOPLE_MAX);
    }
}

/* Tasks that wait for the same reason. */
struct waiting_group {
    char *text;
    uint32_t count;
    uint32_t first[NAMES_MAX]; /* indices in the plan */
};

struct waiting {
    struct waiting_group groups[GROUPS_MAX];
    uint32_t count;
    struct strmap by_text;
    uint32_t left; /* tasks with yet other reasons */
};

static void
add_to_group(struct waiting *waiting, const struct strbuf *text, uint32_t task)
{
    uint32_t ix = strmap_find(&waiting->by_text, strbuf_text(text), text->len);
    if (ix == STRMAP_NONE && waiting->count == GROUPS_MAX) {
        waiting->left++;
        return;
    }
    if (ix == STRMAP_NONE) {
        ix = waiting->count++;
        waiting->groups[ix].text = mem_strndup(strbuf_text(text), text->len);
        (void)strmap_add(&waiting->by_text, waiting->groups[ix].text, ix);
    }
    struct waiting_group *group = &waiting->groups[ix];
    if (group->count < NAMES_MAX) {
        group->first[group->count] = task;
    }
    group->count++;
}

/* Those that are ready come first: they wait for nothing but room. */
static void
group_waiting(struct waiting *out, const struct glance *glance, uint32_t run)
{
    struct engine_run_view view = engine_run(glance->view.engine, run);
    static const enum task_state states[] = {TASK_READY, TASK_WAITING};
    for (size_t n = 0; n < ARRAY_COUNT(states); n++) {
        for (uint32_t ix = 0; ix < view.plan->task_count; ix++) {
            if (snapshot_state(glance->snapshot, run, ix) != states[n]) {
                continue;
            }
            struct reason reason = snapshot_reason(glance->snapshot, run, ix);
            struct strbuf text = {0};
            reasons_add(&text, &reason);
            add_to_group(out, &text, ix);
            strbuf_release(&text);
        }
    }
}

static void add_group(struct strbuf *out,
                      const struct plan *plan,
                      const struct waiting_group *group)
{
    strbuf_adds(out, "    ");
    if (group->count == 1) {
        add_name(out, plan->tasks[group->first[0]].id);
        strbuf_addf(out, "%s\n", group->text);
        return;
    }
    struct strbuf name = {0};
    strbuf_addf(&name, "%u tasks", group->count);
    add_name(out, strbuf_text(&name));
    strbuf_release(&name);
    strbuf_addf(out, "%s (", group->text);
    for (uint32_t n = 0; n < group->count && n < NAMES_MAX; n++) {
        strbuf_addf(out,
                    "%s%s",
                    n > 0 ? ", " : "",
                    plan->tasks[group->first[n]].id);
    }
    strbuf_adds(out, group->count > NAMES_MAX ? ", ...)\n" : ")\n");
}

static void
add_waiting(struct strbuf *out, const struct glance *glance, uint32_t run)
{
    const struct plan *plan = engine_run(glance->view.engine, run).plan;
    struct waiting waiting = {0};
    group_waiting(&waiting, glance, run);
    strbuf_adds(out, waiting.count > 0 ? "  waiting:\n" : "");
    for (uint32_t ix = 0; ix < waiting.count; ix++) {
        add_group(out, plan, &waiting.groups[ix]);
    }
    if (waiting.left > 0) {
        strbuf_addf(out,
                    "    ... and %u more, for other reasons (--json lists "
                    "all)\n",
                    waiting.left);
    }
    for (uint32_t ix = 0; ix < waiting.count; ix++) {
        mem_free(waiting.groups[ix].text);
    }
    strmap_release(&waiting.by_text);
}

static void
add_run(struct strbuf *out, const struct glance *glance, uint32_t run)
{
    add_head(out, glance, run);
    if (engine_run(glance->view.engine, run).finished) {
        return;
    }
    add_limits(out, glance, run);
    add_sessions(out, glance, run);
    add_people(out, glance, run);
    add_waiting(out, glance, run);
    int64_t left_ns = snapshot_left_ns(glance->snapshot, run, glance->wall_ns);
    if (left_ns > 0 && left_ns != SCHED_NEVER) {
        strbuf_adds(out, "  about ");
        duration_add(out, left_ns);
        strbuf_adds(out, " left by estimates\n");
    }
}

/* --- a run, for programs ------------------------------------------------ */

static void
json_head(struct strbuf *out, const struct glance *glance, uint32_t run)
{
    struct engine_run_view view = engine_run(glance->view.engine, run);
    int64_t left_ns = snapshot_left_ns(glance->snapshot, run, glance->wall_ns);
    strbuf_adds(out, "{\"run\": ");
    jsonw_string(out, view.id);
    strbuf_adds(out, ", \"name\": ");
    jsonw_string(out, view.name);
    strbuf_adds(out, ", \"plan\": ");
    jsonw_string(out, view.file);
    strbuf_addf(out,
                ",\n   \"finished\": %s, \"paused\": %s, \"cancelled\": %s, "
                "\"age_s\": ",
                view.finished ? "true" : "false",
                view.sched.paused ? "true" : "false",
                view.sched.cancelled ? "true" : "false");
    jsonw_seconds(out, age_ns(glance, run));
    strbuf_adds(out, ", \"left_s\": ");
    if (left_ns == SCHED_NEVER) {
        strbuf_adds(out, "null");
    } else {
        jsonw_seconds(out, left_ns);
    }
    strbuf_adds(out, ",\n   \"states\": {");
    for (size_t ix = 0; ix < ARRAY_COUNT(count_order); ix++) {
        strbuf_addf(out,
                    "%s\"%s\": %u",
                    ix > 0 ? ", " : "",
                    sched_state_name(count_order[ix]),
                    snapshot_count(glance->snapshot, run, count_order[ix]));
    }
    strbuf_adds(out, "}");
}

static void
json_limits(struct strbuf *out, const struct glance *glance, uint32_t run)
{
    struct engine_run_view view = engine_run(glance->view.engine, run);
    const struct sched *sched = engine_sched(glance->view.engine);
    const char *comma = "";
    strbuf_adds(out, ",\n   \"limits\": [");
    for (uint32_t ix = 0; ix < view.plan->limit_count; ix++) {
        if (plan_is_paid(&view.plan->limits[ix])) {
            continue; /* below */
        }
        int64_t max = sched_limit_max(sched, load_limit(view.loaded, ix));
        strbuf_addf(out, "%s{\"limit\": ", comma);
        comma = ", ";
        jsonw_string(out, view.plan->limits[ix].name);
        strbuf_addf(out,
                    ", \"used\": %lld, \"max\": ",
                    (long long)snapshot_used(glance->snapshot, run, ix));
        if (max == LIMIT_NONE) {
            strbuf_adds(out, "null");
        } else {
            strbuf_addf(out, "%lld", (long long)max);
        }
        strbuf_adds(out, ", \"per\": ");
        jsonw_string(out, view.plan->limits[ix].per);
        strbuf_adds(out, "}");
    }
    strbuf_adds(out, "],\n   \"usage\": ");
    usage_json_monitors(out, glance, run);
    strbuf_adds(out, ",\n   \"budgets\": ");
    usage_json_budgets(out, glance, run);
}

static void
json_sessions(struct strbuf *out, const struct glance *glance, uint32_t run)
{
    struct engine_run_view view = engine_run(glance->view.engine, run);
    const char *comma = "";
    strbuf_adds(out, ",\n   \"sessions\": [");
    struct engine_session_view session = {0};
    while (glance_next_session(glance, run, session.token, &session)) {
        strbuf_addf(out, "%s\n    {\"task\": ", comma);
        comma = ",";
        jsonw_string(out, view.plan->tasks[session.task].id);
        strbuf_addf(out,
                    ", \"attempt\": %u, \"tasks\": %u, \"pid\": ",
                    session.number,
                    session.task_count);
        if (mark_process(&session.mark) > 0) {
            strbuf_addf(out, "%lld", (long long)mark_process(&session.mark));
        } else {
            strbuf_adds(out, "null");
        }
        strbuf_addf(out,
                    ", \"started\": %s, \"ended\": %s, \"elapsed_s\": ",
                    session.begun_ns > 0 ? "true" : "false",
                    has_ended(&session) ? "true" : "false");
        jsonw_seconds(out, glance_elapsed_ns(glance, &session));
        strbuf_adds(out, "}");
    }
    strbuf_adds(out, "]");
}

static void
json_tasks(struct strbuf *out, const struct glance *glance, uint32_t run)
{
    struct engine_run_view view = engine_run(glance->view.engine, run);
    strbuf_adds(out, ",\n   \"tasks\": [");
    for (uint32_t ix = 0; ix < view.plan->task_count; ix++) {
        struct reason reason = snapshot_reason(glance->snapshot, run, ix);
        strbuf_adds(out, ix > 0 ? ",\n    {\"id\": " : "\n    {\"id\": ");
        jsonw_string(out, view.plan->tasks[ix].id);
        strbuf_addf(out,
                    ", \"state\": \"%s\", \"attempt\": %u, \"reason\": ",
                    sched_state_name(reason.state),
                    engine_attempt_number(glance->view.engine, run, ix));
        jsonw_string(out, engine_reason(glance->view.engine, run, ix));
        double usd;
        int64_t tokens;
        engine_task_cost(glance->view.engine, run, ix, &usd, &tokens);
        strbuf_addf(out,
                    ", \"usd\": %.10g, \"tokens\": %lld",
                    usd,
                    (long long)tokens);
        strbuf_adds(out, ",\n     \"why\": ");
        reasons_add_json(out, &reason);
        strbuf_adds(out, "}");
    }
    strbuf_adds(out, "]}");
}

/* --- the command -------------------------------------------------------- */

static void add_text(struct strbuf *out,
                     const struct glance *glance,
                     const struct glance_options *options)
{
    struct engine *engine = glance->view.engine;
    strbuf_addf(out, "store: %s\n", glance->dir);
    add_scheduler(out, &glance->view);
    usage_add_override(out, engine);
    usage_add_stopped(out, engine);
    if (engine_run_count(engine) == 0) {
        strbuf_adds(out,
                    "\nno unfinished run; 'sluice status --all' lists the "
                    "finished ones, too\n");
    }
    for (uint32_t ix = 0; ix < engine_run_count(engine); ix++) {
        struct engine_run_view view = engine_run(engine, ix);
        if (glance_is_meant(options, &view)) {
            add_run(out, glance, ix);
        }
    }
}

static void add_json(struct strbuf *out,
                     const struct glance *glance,
                     const struct glance_options *options)
{
    struct engine *engine = glance->view.engine;
    const char *comma = "";
    strbuf_adds(out, "{\"store\": ");
    jsonw_string(out, glance->dir);
    strbuf_adds(out, ",\n \"scheduler\": ");
    json_scheduler(out, &glance->view);
    strbuf_addf(out,
                ",\n \"override\": %s,\n \"runs\": [",
                engine_is_overridden(engine) ? "true" : "false");
    for (uint32_t ix = 0; ix < engine_run_count(engine); ix++) {
        struct engine_run_view view = engine_run(engine, ix);
        if (glance_is_meant(options, &view)) {
            strbuf_addf(out, "%s\n  ", comma);
            comma = ",";
            json_head(out, glance, ix);
            json_limits(out, glance, ix);
            json_sessions(out, glance, ix);
            json_tasks(out, glance, ix);
        }
    }
    strbuf_adds(out, "]}\n");
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
        } else if (code == CLIENT_OPT_JSON) {
            json = true;
        } else {
            wanted.finished = true;
        }
    }
    int code = target_run_operand(command, argc, argv, &wanted.run);
    if (code != CLI_OK) {
        return code;
    }
    return glance_show(command, &wanted, json ? add_json : add_text);
}

static const struct cli_option options[] = {
    {"all", NULL, "finished runs, too", OPT_ALL},
    CLIENT_OPTION_JSON,
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_status = {
    .name = "status",
    .synopsis = "[--all] [--json] [--store DIR] [RUN]",
    .summary = "say who schedules, what runs, and what waits for what",
    .options = options,
    .run = run,
};
