/* SPDX-License-Identifier: MIT */
/* The parts of the live page about a run as a whole: its head, what needs an
 * operator, slots, waiting tasks, machines, events, other runs. */
#include "base/clock.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/plain.h"
#include "base/xml.h"
#include "http/page.h"
#include "view/waiting.h"

#include <stdio.h>
#include <string.h>

enum {
    PEOPLE_MAX = 50,
    SLOTS_MAX = 200,
    EVENTS_MAX = 30,
    RUNS_MAX = 20,
};

/* --- head --------------------------------------------------------------- */

static void add_runs(struct strbuf *out, const struct model *model)
{
    strbuf_adds(out, "<nav aria-label=\"Runs\">");
    for (uint32_t ix = 0; model->run_count > 1 && ix < model->run_count; ix++) {
        strbuf_adds(out, "<a href=\"/?run=");
        page_add_escaped(out, model->runs[ix].id);
        strbuf_addf(out,
                    "\"%s>",
                    ix == model->run ? " aria-current=\"page\"" : "");
        xml_add(out, model->runs[ix].id);
        strbuf_adds(out, "</a> ");
    }
    strbuf_adds(out, "<a href=\"/runs\">all runs</a></nav>");
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
    if (run->paused) {
        strbuf_adds(out, "; <strong class=\"bad\">paused</strong>");
    } else if (run->forecast.runs > 0) {
        strbuf_adds(out, "; ends ");
        eta_add_text(out, &run->forecast, run->forecast_ns);
    }
    strbuf_adds(out, "</p>");
}

static void add_gauges(struct strbuf *out, const struct model *model)
{
    for (uint32_t ix = 0; ix < model->gauge_count; ix++) {
        const struct model_gauge *gauge = &model->gauges[ix];
        strbuf_adds(out,
                    "<p class=\"gauge\"><meter min=\"0\" max=\"100\" value=\"");
        strbuf_addf(out, "%.0f\" aria-label=\"", gauge->percent);
        xml_add(out, gauge->name);
        strbuf_adds(out, "\"></meter> ");
        xml_add(out, gauge->name);
        strbuf_addf(out, ": %.0f %%", gauge->percent);
        if (gauge->text[0] != '\0') {
            strbuf_adds(out, " (");
            xml_add(out, gauge->text);
            strbuf_adds(out, ")");
        }
        if (gauge->resets_ns > 0) {
            strbuf_adds(out, ", resets ");
            plain_add_clock(out, gauge->resets_ns, PLAIN_DATE);
        }
        strbuf_adds(out, "</p>");
    }
    if (model->usage != NULL) {
        strbuf_adds(out, "<p class=\"bad\">");
        xml_add(out, model->usage);
        strbuf_adds(out, "</p>");
    }
}

/* Append the cap with its buttons, and pause or resume. */
static void add_control(struct strbuf *out, const struct page *page)
{
    const struct model_run *run = page->run;
    if (page->query->looks_only || run->finished) {
        return;
    }
    page_open_form(out, run->id, NULL, "row");
    page_add_field(out, "verb", "cap");
    strbuf_adds(out,
                "<button name=\"step\" value=\"-1\" aria-label=\"Lower the "
                "cap\">&minus;</button><span>");
    if (run->cap == LIMIT_NONE) {
        strbuf_adds(out, "no cap");
    } else {
        strbuf_addf(out, "cap %lld", (long long)run->cap);
    }
    if (run->cap != run->cap_set && run->cap_set != LIMIT_NONE) {
        strbuf_addf(out, " (set to %lld)", (long long)run->cap_set);
    }
    strbuf_adds(out,
                "</span><button name=\"step\" value=\"1\" aria-label=\"Raise "
                "the cap\">+</button></form> ");
    page_open_form(out, run->id, NULL, "row");
    page_add_button(out,
                    run->paused ? "resume" : "pause",
                    run->paused ? "Resume" : "Pause");
    strbuf_adds(out, "</form>");
}

void page_put_head(struct strbuf *out, const struct page *page)
{
    const struct model *model = page->model;
    const struct model_run *run = page->run;
    uint32_t needs = run != NULL ? model->part_counts[MODEL_PEOPLE] : 0;
    const char *name = run != NULL ? run->name : "No unfinished run";
    strbuf_adds(out, "<h1 id=\"head-h\">");
    if (run != NULL) {
        strbuf_adds(out, "<a href=\"/?run=");
        page_add_escaped(out, run->id);
        strbuf_adds(out, "\">");
    }
    xml_add(out, name);
    strbuf_adds(out, run != NULL ? "</a></h1>" : "</h1>");
    bool idle = run == NULL && !source_scene(page->source)->owned;
    strbuf_addf(out, "<p class=\"%s\">", model->well || idle ? "soft" : "bad");
    xml_add(out,
            idle                       ? "no scheduler is running"
            : model->scheduler != NULL ? model->scheduler
                                       : "");
    strbuf_adds(out, model->draining ? "; draining</p>" : "</p>");
    add_runs(out, model);
    if (run != NULL) {
        add_counts(out, run);
        add_gauges(out, model);
        add_control(out, page);
    }
    /* For the script: the title, how many need the operator, the parts. */
    strbuf_addf(out, "<data hidden id=\"count\" value=\"%u\" ", needs);
    strbuf_adds(out, "data-parts=\"");
    page_add_names(out, page);
    strbuf_adds(out, "\">");
    if (needs > 0) {
        strbuf_addf(out, "(%u) ", needs);
    }
    xml_add(out, name);
    strbuf_adds(out, " – sluice</data>");
}

/* --- needs you ---------------------------------------------------------- */

static void add_answer(struct strbuf *out,
                       const struct page *page,
                       const struct model_task *task,
                       uint32_t ix)
{
    page_open_form(out, page->run->id, task->id, "");
    strbuf_addf(out,
                "<textarea name=\"text\" id=\"answer-%u\" rows=\"1\" "
                "aria-label=\"Text for ",
                ix);
    xml_add(out, task->id);
    strbuf_adds(out, "\"></textarea>");
    if (task->unapproved) {
        page_add_button(out, "approve", "Approve");
    } else {
        page_add_button(out, "answer", "Answer");
        page_add_button(out, "retry", "Retry");
    }
    page_add_button(out, "skip", "Skip");
    strbuf_adds(out, "</form>");
}

static void add_person(struct strbuf *out, const struct page *page, uint32_t ix)
{
    struct model_task task;
    struct strbuf reason = {0};
    const struct model *model = page->model;
    model->describe(model, ix, &task, &reason);
    const struct engine *engine = page->glance->view.engine;
    const char *said = engine_reason(engine, model->shown, ix);
    int64_t since_ns = source_asks_ns(page->source, page->run->number, ix);
    strbuf_adds(out, "<li>");
    page_add_link(out, page->run->id, task.id);
    page_add_title(out, page, ix);
    if (since_ns > page->query->seen_ns) {
        strbuf_adds(out, " <strong class=\"new\">new</strong>");
    }
    strbuf_adds(out, " <span class=\"bad\">");
    xml_add(out, strbuf_text(&reason));
    strbuf_adds(out, "</span>");
    if (since_ns > 0) {
        strbuf_adds(out, " <span class=\"soft\">for ");
        page_add_since(out, since_ns, page->glance->wall_ns);
        strbuf_adds(out, "</span>");
    }
    if (said != NULL && strstr(strbuf_text(&reason), said) == NULL) {
        strbuf_adds(out, "<p class=\"ask\">");
        xml_add(out, said);
        strbuf_adds(out, "</p>");
    }
    if (!page->query->looks_only) {
        add_answer(out, page, &task, ix);
    }
    strbuf_adds(out, "</li>\n");
    strbuf_release(&reason);
}

/* Append a button that makes the listed tasks old. */
static void
add_seen(struct strbuf *out, const struct page *page, uint32_t count)
{
    int64_t last_ns = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        int64_t since_ns = source_asks_ns(page->source,
                                          page->run->number,
                                          page->model->rows[ix].task);
        last_ns = since_ns > last_ns ? since_ns : last_ns;
    }
    if (last_ns <= page->query->seen_ns || page->query->looks_only) {
        return;
    }
    char text[32];
    (void)snprintf(text, sizeof(text), "%lld", (long long)last_ns);
    page_open_form(out, page->run->id, NULL, "row");
    page_add_field(out, "seen", text);
    page_add_button(out, "seen", "Mark as seen");
    strbuf_adds(out, "</form>");
}

void page_put_needs(struct strbuf *out, const struct page *page)
{
    const struct model *model = page->model;
    uint32_t count = model->part_counts[MODEL_PEOPLE];
    uint32_t listed = count < PEOPLE_MAX ? count : PEOPLE_MAX;
    page_open_heading(out, "needs", "Needs you");
    strbuf_addf(out, " (%u)</h2><ul>", count);
    for (uint32_t ix = 0; ix < listed; ix++) {
        add_person(out, page, model->rows[ix].task);
    }
    strbuf_adds(out, "</ul>");
    if (count == 0) {
        strbuf_adds(out, "<p class=\"good\">Nothing.</p>");
    } else if (count > PEOPLE_MAX) {
        strbuf_addf(out, "<p>... and %u more</p>", count - PEOPLE_MAX);
    }
    add_seen(out, page, listed);
}

/* --- slots and waiting -------------------------------------------------- */

static void add_slot(struct strbuf *out,
                     const struct page *page,
                     const struct model_slot *slot)
{
    int64_t now_ns = page->glance->wall_ns;
    int64_t age_ns = now_ns > slot->since_ns ? now_ns - slot->since_ns : 0;
    strbuf_adds(out, "<li>");
    page_add_link(out, page->run->id, slot->task);
    strbuf_adds(out, " <span class=\"soft\">");
    xml_add(out, slot->class_name);
    if (slot->repo != NULL) {
        strbuf_adds(out, ", ");
        xml_add(out, slot->repo);
    }
    strbuf_addf(out, ", attempt %u, for ", slot->attempt);
    page_add_since(out, slot->since_ns, now_ns);
    strbuf_adds(out, " of about ");
    duration_add(out, slot->expected_ns);
    struct strbuf queue = {0};
    queue_add(&queue, &slot->queue);
    xml_add(out, strbuf_text(&queue));
    strbuf_release(&queue);
    int64_t most = slot->expected_ns / SECOND_NS + 1;
    int64_t gone = age_ns / SECOND_NS;
    strbuf_addf(out,
                "%s</span><progress max=\"%lld\" value=\"%lld\" "
                "aria-label=\"Time\"></progress></li>\n",
                slot->begun ? "" : ", starting",
                (long long)most,
                (long long)gone);
}

void page_put_slots(struct strbuf *out, const struct page *page)
{
    const struct model *model = page->model;
    page_open_heading(out, "slots", "Running");
    strbuf_addf(out, " (%u)</h2>", model->slot_count);
    page_add_timeline(out, page);
    strbuf_adds(out, "<ul>");
    for (uint32_t ix = 0; ix < model->slot_count && ix < SLOTS_MAX; ix++) {
        add_slot(out, page, &model->slots[ix]);
    }
    strbuf_adds(out, "</ul>");
}

/* Append the task that the tasks of a group wait for. */
static void add_blocker(struct strbuf *out,
                        const struct page *page,
                        const struct waiting_group *group)
{
    const struct engine *engine = page->glance->view.engine;
    uint32_t run;
    uint32_t task;
    if (!snapshot_cause(page->glance->snapshot,
                        page->model->shown,
                        group->first[0],
                        &run,
                        &task)) {
        return;
    }
    struct engine_run_view view = engine_run(engine, run);
    strbuf_adds(out, " &mdash; ");
    page_add_link(out, view.id, view.plan->tasks[task].id);
    strbuf_addf(out, " frees %u", group->count);
}

void page_put_waiting(struct strbuf *out, const struct page *page)
{
    struct waiting waiting;
    const struct model *model = page->model;
    waiting_fill(&waiting, model);
    page_open_heading(out, "waiting", "Waiting");
    strbuf_adds(out, "</h2><ul>");
    for (uint32_t ix = 0; ix < waiting.count; ix++) {
        const struct waiting_group *group = &waiting.groups[ix];
        strbuf_addf(out, "<li><b>%u</b> ", group->count);
        xml_add(out, group->text);
        strbuf_adds(out, ": ");
        for (uint32_t n = 0; n < group->count && n < WAITING_NAMES; n++) {
            strbuf_adds(out, n > 0 ? ", " : "");
            page_add_link(out,
                          page->run->id,
                          model->id(model, group->first[n]));
        }
        strbuf_adds(out, group->count > WAITING_NAMES ? ", ..." : "");
        add_blocker(out, page, group);
        strbuf_adds(out, "</li>\n");
    }
    strbuf_adds(out, "</ul>");
    if (waiting.left > 0) {
        strbuf_addf(out, "<p>... and %u for other reasons</p>", waiting.left);
    } else if (waiting.count == 0) {
        strbuf_adds(out, "<p class=\"soft\">Nothing.</p>");
    }
    waiting_release(&waiting);
}

/* --- machines, events, runs --------------------------------------------- */

void page_put_machines(struct strbuf *out, const struct page *page)
{
    const struct top_look_scene *scene = source_scene(page->source);
    const struct client_view *view = &page->glance->view;
    uint32_t sessions = engine_session_count(view->engine);
    page_open_heading(out, "machines", "Machines");
    strbuf_adds(out, "</h2>");
    if (!scene->owned) {
        strbuf_adds(out, "<p class=\"bad\">No scheduler is running.</p>");
        return;
    }
    strbuf_adds(out, "<ul><li><span class=\"id\">");
    xml_add(out, view->owner.host);
    strbuf_addf(out,
                "</span> <span class=\"%s\">%s%s</span> <span class=\"soft\">"
                "%u session%s, sluice " SLUICE_VERSION "</span> ",
                scene->well ? "good" : "bad",
                scene->state,
                scene->draining ? ", draining" : "",
                sessions,
                sessions == 1 ? "" : "s");
    if (!page->query->looks_only && !scene->draining) {
        page_open_form(out,
                       page->run != NULL ? page->run->id : "",
                       NULL,
                       "row");
        page_add_button(out, "drain", "Drain");
        strbuf_adds(out,
                    "<span class=\"soft\">start nothing more, and exit after "
                    "the last session</span></form>");
    }
    strbuf_adds(out, "</li></ul>");
}

void page_put_events(struct strbuf *out, const struct page *page)
{
    const struct top_look_scene *scene = source_scene(page->source);
    uint32_t given = 0;
    page_open_heading(out, "events", "Events");
    strbuf_adds(out, "</h2><ul>");
    for (uint32_t ix = scene->line_count; ix > 0 && given < EVENTS_MAX; ix--) {
        const struct model_event *line = &scene->lines[ix - 1];
        if (page->run != NULL && line->run != STORE_NONE &&
            line->run != page->run->number) {
            continue; /* of another run */
        }
        strbuf_adds(out, "<li class=\"line id\">");
        xml_add(out, line->text);
        strbuf_adds(out, "</li>\n");
        given++;
    }
    strbuf_adds(out, "</ul>");
}

/* Runs being listed, the newest first. */
struct listing {
    struct strbuf items[RUNS_MAX];
    uint32_t count;
};

static enum err on_run(void *ctx, const struct store_run *run)
{
    struct listing *listing = ctx;
    struct strbuf *item = &listing->items[listing->count++ % RUNS_MAX];
    strbuf_clear(item);
    strbuf_addf(item, "<li><a href=\"%s", run->finished ? "/report" : "/");
    strbuf_adds(item, "?run=");
    page_add_escaped(item, run->id);
    strbuf_adds(item, "\">");
    xml_add(item, run->name);
    strbuf_adds(item, "</a> <span class=\"soft\">");
    xml_add(item, run->id);
    strbuf_addf(item,
                ", %s, submitted ",
                run->cancelled  ? "cancelled"
                : run->finished ? "finished"
                                : "unfinished");
    plain_add_clock(item, run->created_ns, PLAIN_DATE);
    strbuf_adds(item, "</span></li>\n");
    return ERR_OK;
}

void page_put_runs(struct strbuf *out, const struct page *page)
{
    static const struct store_visitor visitor = {.run = on_run};
    static const struct store_query query = {.finished = true};
    struct listing listing = {0};
    struct store *store = NULL;
    struct diag diag = {0};
    enum err err = store_open(&store,
                              source_place(page->source)->address,
                              STORE_READ,
                              &diag);
    if (err == ERR_OK) {
        err = store_read(store, &query, &visitor, &listing, NULL, &diag);
    }
    store_close(store);
    page_open_heading(out, "runs", "Runs");
    strbuf_adds(out, "</h2><ul>");
    uint32_t left = listing.count < RUNS_MAX ? listing.count : RUNS_MAX;
    for (uint32_t ix = 0; ix < left; ix++) {
        const struct strbuf *item =
            &listing.items[(listing.count - 1 - ix) % RUNS_MAX];
        strbuf_add(out, strbuf_text(item), item->len);
    }
    strbuf_adds(out, "</ul>");
    if (err != ERR_OK) {
        strbuf_adds(out, "<p class=\"bad\">");
        xml_add(out, diag.text);
        strbuf_adds(out, "</p>");
    } else if (listing.count == 0) {
        strbuf_adds(out,
                    "<p class=\"soft\">None yet: 'sluice run PLAN' begins "
                    "one.</p>");
    }
    for (uint32_t ix = 0; ix < RUNS_MAX; ix++) {
        strbuf_release(&listing.items[ix]);
    }
}
