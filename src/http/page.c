/* SPDX-License-Identifier: MIT */
#include "http/page.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/xml.h"
#include "http/assets/assets.h"
#include "view/waiting.h"

#include <string.h>

enum {
    PEOPLE_MAX = 50,
    SLOTS_MAX = 200,
    TASKS_MAX = 100,
    EVENTS_MAX = 15,
};

const char *page_policy(void)
{
    return "default-src 'none'; connect-src 'self'; img-src data:; "
           "form-action 'self'; "
           "base-uri 'none'; frame-ancestors 'none'; style-src "
           "'sha256-" LIVE_CSS_SHA256 "'; script-src 'sha256-" LIVE_JS_SHA256
           "'";
}

/* --- helpers ------------------------------------------------------------ */

/* Append a part of a URL's query. */
static void add_escaped(struct strbuf *out, const char *text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "abcdefghijklmnopqrstuvwxyz0123456789-._~/";
    for (const char *at = text; *at != '\0'; at++) {
        if (strchr(plain, *at) != NULL) {
            strbuf_add(out, at, 1);
        } else {
            strbuf_addf(out, "%%%02X", (unsigned)(unsigned char)*at);
        }
    }
}

void page_add_link(struct strbuf *out, const char *run, const char *task)
{
    strbuf_adds(out, "<a class=\"id\" href=\"/?run=");
    add_escaped(out, run);
    strbuf_adds(out, "&amp;task=");
    add_escaped(out, task);
    strbuf_adds(out, "#task\">");
    xml_add(out, task);
    strbuf_adds(out, "</a>");
}

static void add_field(struct strbuf *out, const char *name, const char *value)
{
    strbuf_addf(out, "<input type=\"hidden\" name=\"%s\" value=\"", name);
    xml_add(out, value);
    strbuf_adds(out, "\">");
}

void page_open_form(struct strbuf *out,
                    const struct page_query *query,
                    const char *run,
                    const char *task,
                    const char *class_name)
{
    strbuf_addf(out,
                "<form method=\"post\" action=\"/do\" class=\"%s\">",
                class_name);
    add_field(out, "run", run);
    add_field(out, "back", query->path);
    if (task != NULL) {
        add_field(out, "task", task);
    }
}

void page_add_button(struct strbuf *out, const char *verb, const char *label)
{
    strbuf_addf(out,
                "<button name=\"verb\" value=\"%s\">%s</button>",
                verb,
                label);
}

static void open_part(struct strbuf *out, const char *id, const char *title)
{
    strbuf_addf(out,
                "<section id=\"%s\" data-part aria-labelledby=\"%s-h\"><h2 "
                "id=\"%s-h\">%s",
                id,
                id,
                id,
                title);
}

static const struct model_run *shown_run(const struct model *model)
{
    return model->run != MODEL_NONE ? &model->runs[model->run] : NULL;
}

/* The same for parts that only a run has. */
static const struct model_run *its_run(const struct model *model)
{
    const struct model_run *run = shown_run(model);
    INVARIANT(run != NULL);
    return run;
}

/* --- header ------------------------------------------------------------- */

static void add_runs(struct strbuf *out, const struct model *model)
{
    if (model->run_count < 2 || model->runs == NULL) {
        return;
    }
    strbuf_adds(out, "<nav aria-label=\"Runs\">");
    for (uint32_t ix = 0; ix < model->run_count; ix++) {
        strbuf_adds(out, "<a href=\"/?run=");
        add_escaped(out, model->runs[ix].id);
        strbuf_addf(out,
                    "\"%s>",
                    ix == model->run ? " aria-current=\"page\"" : "");
        xml_add(out, model->runs[ix].id);
        strbuf_adds(out, "</a> ");
    }
    strbuf_adds(out, "</nav>");
}

static void add_counts(struct strbuf *out, const struct model_run *run)
{
    strbuf_addf(out,
                "<progress max=\"%u\" value=\"%u\" aria-label=\"Tasks "
                "done\"></progress><p>%u of %u tasks done",
                run->task_count,
                run->counts[TASK_DONE],
                run->counts[TASK_DONE],
                run->task_count);
    for (size_t ix = 0; ix < TASK_STATE_COUNT; ix++) {
        enum task_state state = model_order[ix];
        if (state != TASK_DONE && run->counts[state] > 0) {
            bool bad = state == TASK_PARKED || state == TASK_FAILED;
            strbuf_addf(out,
                        ", <span class=\"%s\">%u %s</span>",
                        bad ? "bad" : "",
                        run->counts[state],
                        sched_state_name(state));
        }
    }
    if (run->forecast.runs > 0) {
        strbuf_adds(out, "; ends ");
        eta_add_text(out, &run->forecast, run->forecast_ns);
    }
    strbuf_adds(out, "</p>");
}

static void add_gauges(struct strbuf *out, const struct model *model)
{
    for (uint32_t ix = 0; ix < model->gauge_count; ix++) {
        const struct model_gauge *gauge = &model->gauges[ix];
        strbuf_adds(out, "<p class=\"soft\">");
        xml_add(out, gauge->name);
        strbuf_addf(out, ": %.0f %%", gauge->percent);
        if (gauge->text[0] != '\0') {
            strbuf_adds(out, " (");
            xml_add(out, gauge->text);
            strbuf_adds(out, ")");
        }
        strbuf_adds(out, "</p>");
    }
}

/* Append the cap with its buttons, and pause or resume. */
static void add_control(struct strbuf *out,
                        const struct page_query *query,
                        const struct model_run *run)
{
    if (query->looks_only || run->finished) {
        return;
    }
    page_open_form(out, query, run->id, NULL, "row");
    add_field(out, "verb", "cap");
    strbuf_adds(out,
                "<button name=\"step\" value=\"-1\" aria-label=\"Lower the "
                "cap\">&minus;</button><span>");
    if (run->cap == LIMIT_NONE) {
        strbuf_adds(out, "no cap");
    } else {
        strbuf_addf(out, "cap %lld", (long long)run->cap);
    }
    strbuf_adds(out,
                "</span><button name=\"step\" value=\"1\" aria-label=\"Raise "
                "the cap\">+</button></form> ");
    page_open_form(out, query, run->id, NULL, "row");
    page_add_button(out,
                    run->paused ? "resume" : "pause",
                    run->paused ? "Resume" : "Pause");
    strbuf_adds(out, "</form>");
}

static void add_header(struct strbuf *out,
                       const struct model *model,
                       const struct page_query *query)
{
    const struct model_run *run = shown_run(model);
    strbuf_adds(out, "<header id=\"head\" data-part><h1>");
    xml_add(out, run != NULL ? run->name : "No unfinished run");
    strbuf_addf(out, "</h1><p class=\"%s\">", model->well ? "soft" : "bad");
    xml_add(out, model->scheduler);
    strbuf_adds(out, model->draining ? "; draining</p>" : "</p>");
    add_runs(out, model);
    if (run != NULL) {
        add_counts(out, run);
        add_gauges(out, model);
        add_control(out, query, run);
    }
    strbuf_adds(out, "</header>\n");
}

/* --- needs you ---------------------------------------------------------- */

static void add_person(struct strbuf *out,
                       const struct model *model,
                       const struct glance *glance,
                       const struct page_query *query,
                       uint32_t ix)
{
    struct model_task task;
    struct strbuf reason = {0};
    const struct model_run *run = its_run(model);
    model->describe(model, ix, &task, &reason);
    const char *said = engine_reason(glance->view.engine, model->shown, ix);
    strbuf_adds(out, "<li>");
    page_add_link(out, run->id, task.id);
    strbuf_adds(out, " <span class=\"bad\">");
    xml_add(out, strbuf_text(&reason));
    strbuf_adds(out, "</span>");
    if (said != NULL && strstr(strbuf_text(&reason), said) == NULL) {
        strbuf_adds(out, "<p class=\"ask\">");
        xml_add(out, said);
        strbuf_adds(out, "</p>");
    }
    if (!query->looks_only) {
        page_open_form(out, query, run->id, task.id, "");
        strbuf_addf(out,
                    "<textarea name=\"text\" id=\"answer-%u\" rows=\"1\" ",
                    ix);
        strbuf_adds(out, "aria-label=\"Text for ");
        xml_add(out, task.id);
        strbuf_adds(out, "\"></textarea>");
        if (task.unapproved) {
            page_add_button(out, "approve", "Approve");
        } else {
            page_add_button(out, "answer", "Answer");
            page_add_button(out, "retry", "Retry");
        }
        page_add_button(out, "skip", "Skip");
        strbuf_adds(out, "</form>");
    }
    strbuf_adds(out, "</li>\n");
    strbuf_release(&reason);
}

static void add_needs(struct strbuf *out,
                      const struct model *model,
                      const struct glance *glance,
                      const struct page_query *query)
{
    uint32_t count = model->part_counts[MODEL_PEOPLE];
    open_part(out, "needs", "Needs you");
    strbuf_addf(out, " (%u)</h2><ul>", count);
    for (uint32_t ix = 0; ix < count && ix < PEOPLE_MAX; ix++) {
        add_person(out, model, glance, query, model->rows[ix].task);
    }
    strbuf_adds(out, "</ul>");
    if (count == 0) {
        strbuf_adds(out, "<p class=\"good\">Nothing.</p>");
    } else if (count > PEOPLE_MAX) {
        strbuf_addf(out, "<p>... and %u more</p>", count - PEOPLE_MAX);
    }
    strbuf_adds(out, "</section>\n");
}

/* --- slots and waiting -------------------------------------------------- */

static void add_slots(struct strbuf *out, const struct model *model)
{
    const struct model_run *run = its_run(model);
    open_part(out, "slots", "Running");
    strbuf_addf(out, " (%u)</h2><ul>", model->slot_count);
    for (uint32_t ix = 0; ix < model->slot_count && ix < SLOTS_MAX; ix++) {
        const struct model_slot *slot = &model->slots[ix];
        int64_t age_ns = model->wall_ns - slot->since_ns;
        strbuf_adds(out, "<li>");
        page_add_link(out, run->id, slot->task);
        strbuf_adds(out, " <span class=\"soft\">");
        xml_add(out, slot->class_name);
        if (slot->repo != NULL) {
            strbuf_adds(out, ", ");
            xml_add(out, slot->repo);
        }
        strbuf_addf(out, ", attempt %u, for ", slot->attempt);
        duration_add(out, age_ns > 0 ? age_ns : 0);
        strbuf_adds(out, " of about ");
        duration_add(out, slot->expected_ns);
        int64_t most = slot->expected_ns / SECOND_NS + 1;
        int64_t now = (age_ns > 0 ? age_ns : 0) / SECOND_NS;
        strbuf_addf(out,
                    "%s</span><progress max=\"%lld\" value=\"%lld\" "
                    "aria-label=\"Time\"></progress></li>\n",
                    slot->begun ? "" : ", starting",
                    (long long)most,
                    (long long)now);
    }
    strbuf_adds(out, "</ul></section>\n");
}

static void add_waiting(struct strbuf *out, const struct model *model)
{
    struct waiting waiting;
    const struct model_run *run = its_run(model);
    waiting_fill(&waiting, model);
    open_part(out, "waiting", "Waiting");
    strbuf_adds(out, "</h2><ul>");
    for (uint32_t ix = 0; ix < waiting.count; ix++) {
        const struct waiting_group *group = &waiting.groups[ix];
        strbuf_addf(out, "<li><b>%u</b> ", group->count);
        xml_add(out, group->text);
        strbuf_adds(out, ": ");
        for (uint32_t n = 0; n < group->count && n < WAITING_NAMES; n++) {
            strbuf_adds(out, n > 0 ? ", " : "");
            page_add_link(out, run->id, model->id(model, group->first[n]));
        }
        strbuf_adds(out,
                    group->count > WAITING_NAMES ? ", ...</li>\n" : "</li>\n");
    }
    strbuf_adds(out, "</ul>");
    if (waiting.left > 0) {
        strbuf_addf(out, "<p>... and %u for other reasons</p>", waiting.left);
    }
    strbuf_adds(out, "</section>\n");
    waiting_release(&waiting);
}

/* --- tasks -------------------------------------------------------------- */

static void add_states(struct strbuf *out, const struct page_query *query)
{
    strbuf_adds(out,
                "<select name=\"state\" aria-label=\"State\"><option "
                "value=\"\">all states</option>");
    for (size_t ix = 0; ix < TASK_STATE_COUNT; ix++) {
        const char *name = sched_state_name(model_order[ix]);
        bool chosen = query->state != NULL && strcmp(query->state, name) == 0;
        strbuf_addf(out,
                    "<option%s>%s</option>",
                    chosen ? " selected" : "",
                    name);
    }
    strbuf_adds(out, "</select>");
}

static void
add_filter(struct strbuf *out, const struct page_query *query, const char *run)
{
    strbuf_adds(out, "<form method=\"get\" action=\"/\">");
    add_field(out, "run", run);
    strbuf_adds(out,
                "<input type=\"search\" id=\"find\" name=\"find\" "
                "aria-label=\"Part of an id\" value=\"");
    xml_add(out, query->find != NULL ? query->find : "");
    strbuf_adds(out, "\">");
    add_states(out, query);
    strbuf_adds(out, "<button>List</button></form>");
}

static bool
is_listed(const struct page_query *query, const char *id, const char *state)
{
    return (query->find == NULL || strstr(id, query->find) != NULL) &&
           (query->state == NULL || query->state[0] == '\0' ||
            strcmp(query->state, state) == 0);
}

static void add_row(struct strbuf *out,
                    const struct model *model,
                    const char *run,
                    uint32_t ix)
{
    struct model_task task;
    struct strbuf reason = {0};
    model->describe(model, ix, &task, &reason);
    strbuf_adds(out, "<tr><td>");
    page_add_link(out, run, task.id);
    strbuf_addf(out, "</td><td>%s</td><td>", sched_state_name(task.state));
    xml_add(out, task.state == TASK_RUNNING ? "" : strbuf_text(&reason));
    strbuf_adds(out, "</td></tr>\n");
    strbuf_release(&reason);
}

static void add_next(struct strbuf *out,
                     const struct page_query *query,
                     const char *run,
                     uint32_t after)
{
    strbuf_adds(out, "<p><a href=\"/?run=");
    add_escaped(out, run);
    strbuf_adds(out, "&amp;find=");
    add_escaped(out, query->find != NULL ? query->find : "");
    strbuf_adds(out, "&amp;state=");
    add_escaped(out, query->state != NULL ? query->state : "");
    strbuf_addf(out, "&amp;after=%u#tasks\">next</a></p>", after);
}

static void add_tasks(struct strbuf *out,
                      const struct model *model,
                      const struct glance *glance,
                      const struct page_query *query)
{
    const struct model_run *run = its_run(model);
    uint32_t count = run->task_count;
    uint32_t given = 0;
    uint32_t ix = query->after == UINT32_MAX ? 0 : query->after + 1;
    open_part(out, "tasks", "Tasks");
    strbuf_adds(out, "</h2>");
    add_filter(out, query, run->id);
    strbuf_adds(out,
                "<table><thead><tr><th>task</th><th>state</th><th>why</th>"
                "</tr></thead><tbody>");
    for (; ix < count && given < TASKS_MAX; ix++) {
        enum task_state state =
            snapshot_state(glance->snapshot, model->shown, ix);
        if (is_listed(query, model->id(model, ix), sched_state_name(state))) {
            add_row(out, model, run->id, ix);
            given++;
        }
    }
    strbuf_adds(out, "</tbody></table>");
    if (ix < count) {
        add_next(out, query, run->id, ix - 1);
    }
    strbuf_adds(out, "</section>\n");
}

static void add_events(struct strbuf *out, const struct model *model)
{
    open_part(out, "events", "Events");
    strbuf_adds(out, "</h2><ul>");
    uint32_t first =
        model->event_count > EVENTS_MAX ? model->event_count - EVENTS_MAX : 0;
    for (uint32_t ix = model->event_count; ix > first; ix--) {
        strbuf_adds(out, "<li class=\"line id\">");
        xml_add(out, model->events[ix - 1].text);
        strbuf_adds(out, "</li>\n");
    }
    strbuf_adds(out, "</ul></section>\n");
}

/* --- the page ----------------------------------------------------------- */

static void add_head(struct strbuf *out, const char *title, uint32_t needs)
{
    strbuf_adds(out,
                "<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
                "charset=\"utf-8\"><meta name=\"viewport\" "
                "content=\"width=device-width, initial-scale=1\"><link "
                "rel=\"icon\" href=\"data:,\"><title>");
    if (needs > 0) {
        strbuf_addf(out, "(%u) ", needs);
    }
    xml_add(out, title);
    strbuf_adds(out, " – sluice</title><style>");
    strbuf_adds(out, live_css);
    strbuf_addf(out, "</style></head>\n<body data-needs=\"%u\">\n", needs);
    strbuf_adds(out,
                "<p id=\"stale\" role=\"alert\" hidden>no connection: this is "
                "an old state</p>\n");
}

static void add_foot(struct strbuf *out)
{
    strbuf_adds(out,
                "<dialog id=\"keys\"><p>a: answer &middot; /: find tasks "
                "&middot; l: log &middot; n: notify me &middot; ?: this "
                "list</p></dialog>\n<script>");
    strbuf_adds(out, live_js);
    strbuf_adds(out, "</script>\n</body></html>\n");
}

void page_add(struct strbuf *out,
              struct source *source,
              const struct glance *glance,
              const struct page_query *query)
{
    const struct model *model = source_model(source, query->run);
    const struct model_run *run = shown_run(model);
    uint32_t needs = run != NULL ? model->part_counts[MODEL_PEOPLE] : 0;
    add_head(out, run != NULL ? run->name : "No unfinished run", needs);
    add_header(out, model, query);
    strbuf_adds(out, "<main>\n");
    if (run != NULL) {
        if (query->task != NULL) {
            page_add_task(out, source, glance, query, run->id);
        }
        add_needs(out, model, glance, query);
        add_slots(out, model);
        add_waiting(out, model);
        add_tasks(out, model, glance, query);
    }
    add_events(out, model);
    strbuf_adds(out, "</main>\n");
    add_foot(out);
}

void page_add_error(struct strbuf *out, const char *text, const char *back)
{
    strbuf_adds(out,
                "<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
                "charset=\"utf-8\"><title>Refused – sluice</title></head>"
                "<body><h1>Refused</h1><p id=\"why\">");
    xml_add(out, text);
    strbuf_adds(out, "</p><p><a href=\"");
    xml_add(out, back);
    strbuf_adds(out, "\">back</a></p></body></html>\n");
}
