/* SPDX-License-Identifier: MIT */
/* The parts of the live page about tasks: the list of all, and one of them with
 * its attempts, its graph and its log. */
#include "base/mem.h"
#include "base/plain.h"
#include "base/xml.h"
#include "http/log.h"
#include "http/page.h"
#include "report/task_graph.h"
#include "view/chain.h"

#include <string.h>

enum {
    TASKS_MAX = 100,
    ATTEMPTS_MAX = 50,
    TAIL_BYTES = 32 << 10,
    NODES_MAX = 60,
    STEPS = 2,
};

/* --- the list ----------------------------------------------------------- */

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
    page_add_field(out, "run", run);
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

static void add_row(struct strbuf *out, const struct page *page, uint32_t ix)
{
    struct model_task task;
    struct strbuf reason = {0};
    page->model->describe(page->model, ix, &task, &reason);
    strbuf_adds(out, "<tr><td>");
    page_add_link(out, page->run->id, task.id);
    page_add_title(out, page, ix);
    strbuf_adds(out, "</td><td>");
    page_add_state(out, task.state);
    strbuf_adds(out, "</td><td>");
    bool plain = task.state == TASK_RUNNING || task.state == TASK_DONE;
    xml_add(out, plain && !task.revoked ? "" : strbuf_text(&reason));
    strbuf_adds(out, "</td></tr>\n");
    strbuf_release(&reason);
}

static void
add_next(struct strbuf *out, const struct page *page, uint32_t after)
{
    const struct page_query *query = page->query;
    strbuf_adds(out, "<p><a href=\"/?run=");
    page_add_escaped(out, page->run->id);
    strbuf_adds(out, "&amp;find=");
    page_add_escaped(out, query->find != NULL ? query->find : "");
    strbuf_adds(out, "&amp;state=");
    page_add_escaped(out, query->state != NULL ? query->state : "");
    strbuf_addf(out, "&amp;after=%u#tasks\">next</a></p>", after);
}

void page_put_tasks(struct strbuf *out, const struct page *page)
{
    const struct model *model = page->model;
    const struct page_query *query = page->query;
    uint32_t count = page->run->task_count;
    uint32_t given = 0;
    uint32_t ix = query->after == UINT32_MAX ? 0 : query->after + 1;
    page_open_heading(out, "tasks", "Tasks");
    strbuf_adds(out, "</h2>");
    add_filter(out, query, page->run->id);
    strbuf_adds(out,
                "<table><thead><tr><th>task</th><th>state</th><th>why</th>"
                "</tr></thead><tbody>");
    for (; ix < count && given < TASKS_MAX; ix++) {
        enum task_state state =
            snapshot_state(page->glance->snapshot, model->shown, ix);
        if (is_listed(query, model->id(model, ix), sched_state_name(state))) {
            add_row(out, page, ix);
            given++;
        }
    }
    strbuf_adds(out, "</tbody></table><p><a href=\"/graph?run=");
    page_add_escaped(out, page->run->id);
    strbuf_adds(out, "\">graph of all tasks</a> <a href=\"/report?run=");
    page_add_escaped(out, page->run->id);
    strbuf_adds(out, "\">report</a></p>");
    if (ix < count) {
        add_next(out, page, ix - 1);
    }
}

/* --- one task ----------------------------------------------------------- */

/* The attempts of a task. */
struct attempts {
    const struct page *page;
    const char *run;
    const char *id;
    uint32_t task;
    struct strbuf *out;
    uint32_t count;
};

static void add_attempt_link(struct strbuf *out,
                             const struct attempts *attempts,
                             uint32_t number)
{
    strbuf_adds(out, "<a href=\"/log?run=");
    page_add_escaped(out, attempts->run);
    strbuf_adds(out, "&amp;task=");
    page_add_escaped(out, attempts->id);
    strbuf_addf(out, "&amp;attempt=%u\">%u</a>", number, number);
}

static enum err on_attempt(void *ctx, const struct store_attempt *row)
{
    struct attempts *attempts = ctx;
    struct strbuf *out = attempts->out;
    if (row->task != attempts->task || attempts->count++ >= ATTEMPTS_MAX) {
        return ERR_OK;
    }
    bool ended = row->ended_ns > 0;
    strbuf_adds(out, "<tr><td>");
    add_attempt_link(out, attempts, row->number);
    strbuf_addf(out,
                "</td><td>%s</td><td>",
                row->outcome != NULL ? row->outcome : row->state);
    if (ended && row->begun_ns > 0) {
        page_add_took(out, row->begun_ns, row->ended_ns);
    } else if (row->begun_ns > 0) {
        page_add_since(out, row->begun_ns, attempts->page->glance->wall_ns);
    }
    strbuf_adds(out, "</td><td>");
    if (row->usd > 0) {
        strbuf_addf(out, "$%.2f", row->usd);
    } else if (row->output_tokens > 0) {
        int64_t tokens = row->input_tokens + row->output_tokens;
        strbuf_addf(out, "%lld tokens", (long long)tokens);
    }
    strbuf_adds(out, "</td><td>");
    xml_add(out, row->reason != NULL ? row->reason : "");
    strbuf_adds(out, "</td></tr>\n");
    return ERR_OK;
}

static void add_attempts(struct strbuf *out, const struct attempts *attempts)
{
    static const struct store_visitor visitor = {.attempt = on_attempt};
    struct store_query query = {
        .run = attempts->run,
        .task = attempts->id,
        .ended = true,
    };
    struct store *store = NULL;
    struct diag ignored = {0};
    struct strbuf rows = {0};
    struct attempts reading = *attempts;
    reading.out = &rows;
    if (store_open(&store,
                   source_place(attempts->page->source)->address,
                   STORE_READ,
                   &ignored) == ERR_OK &&
        store_read(store, &query, &visitor, &reading, NULL, &ignored) ==
            ERR_OK &&
        rows.len > 0) {
        strbuf_adds(out,
                    "<table><caption>Attempts</caption><thead><tr><th>log</th>"
                    "<th>outcome</th><th>time</th><th>cost</th><th>reason</th>"
                    "</tr></thead><tbody>");
        strbuf_add(out, rows.text, rows.len);
        strbuf_adds(out, "</tbody></table>");
    }
    store_close(store);
    strbuf_release(&rows);
}

/* Append each line of a text as a paragraph. */
static void add_paragraphs(struct strbuf *out, const char *text)
{
    while (*text != '\0') {
        struct strbuf line = {0};
        size_t len = strcspn(text, "\n");
        strbuf_add(&line, text, len);
        strbuf_adds(out, "<p>");
        xml_add(out, strbuf_text(&line));
        strbuf_adds(out, "</p>");
        strbuf_release(&line);
        text += text[len] == '\n' ? len + 1 : len;
    }
}

/* Append a text of several lines with a heading, folded. */
static void add_folded(struct strbuf *out, const char *title, const char *text)
{
    if (text == NULL || text[0] == '\0') {
        return;
    }
    strbuf_addf(out,
                "<details><summary>%s</summary><pre tabindex=\"0\">",
                title);
    page_add_lines(out, text, strlen(text), 0, NULL);
    strbuf_adds(out, "</pre></details>");
}

/* The states of a task in which the page offers an order. */
enum offer {
    OFFER_WAITING = 1,    /* waiting, ready */
    OFFER_RUNNING = 2,    /* starting, running */
    OFFER_GIVEN_UP = 4,   /* parked, failed */
    OFFER_DONE = 8,       /* done */
    OFFER_UNAPPROVED = 16 /* waits for approval */
};

static enum offer offer_of(enum task_state state, bool unapproved)
{
    switch (state) {
    case TASK_WAITING:
    case TASK_READY:
        return unapproved ? OFFER_UNAPPROVED : OFFER_WAITING;
    case TASK_STARTING:
    case TASK_RUNNING:
        return OFFER_RUNNING;
    case TASK_FAILED:
    case TASK_PARKED:
        return OFFER_GIVEN_UP;
    case TASK_DONE:
        return OFFER_DONE;
    case TASK_SKIPPED:
    case TASK_CANCELLED:
        break;
    }
    return 0;
}

/* Append the orders that make sense for a task as it is. */
static void add_orders(struct strbuf *out,
                       const struct page *page,
                       const struct model_task *task)
{
    static const struct {
        const char *verb;
        const char *label;
        unsigned offers;
    } verbs[] = {
        {"answer", "Answer", OFFER_GIVEN_UP},
        {"approve", "Approve", OFFER_UNAPPROVED},
        {"retry", "Retry", OFFER_GIVEN_UP},
        {"tell", "Tell", OFFER_RUNNING},
        {"rework", "Send back", OFFER_DONE | OFFER_GIVEN_UP | OFFER_WAITING},
        {"rerun", "Run again", OFFER_DONE},
        {"first", "First", OFFER_WAITING},
        {"skip", "Skip", OFFER_GIVEN_UP | OFFER_WAITING | OFFER_UNAPPROVED},
        {"cancel",
         "Cancel",
         OFFER_GIVEN_UP | OFFER_WAITING | OFFER_UNAPPROVED | OFFER_RUNNING},
    };
    enum offer offer = offer_of(task->state, task->unapproved);
    struct strbuf back = {0};
    if (offer == 0) {
        return;
    }
    strbuf_adds(&back, "/?run=");
    page_add_escaped(&back, page->run->id);
    strbuf_adds(&back, "&task=");
    page_add_escaped(&back, task->id);
    strbuf_adds(&back, "#task");
    page_open_form(out, page->run->id, task->id, "");
    page_add_field(out, "back", strbuf_text(&back));
    strbuf_release(&back);
    strbuf_adds(out,
                "<textarea name=\"text\" id=\"task-text\" rows=\"1\" "
                "aria-label=\"Text for this task\"></textarea>");
    for (size_t ix = 0; ix < ARRAY_COUNT(verbs); ix++) {
        if ((verbs[ix].offers & (unsigned)offer) != 0) {
            page_add_button(out, verbs[ix].verb, verbs[ix].label);
        }
    }
    if (task->held) {
        page_add_button(out, "release", "Release");
    } else if ((offer & (OFFER_WAITING | OFFER_RUNNING)) != 0) {
        page_add_button(out, "hold", "Hold");
    }
    strbuf_adds(out, "</form>");
}

static void add_cost(struct strbuf *out,
                     const struct engine *engine,
                     uint32_t run,
                     uint32_t task)
{
    double usd;
    int64_t tokens;
    engine_task_cost(engine, run, task, &usd, &tokens);
    if (usd > 0) {
        strbuf_addf(out, "<p class=\"soft\">cost: $%.2f</p>", usd);
    }
    if (tokens > 0) {
        strbuf_addf(out,
                    "<p class=\"soft\">%lld tokens</p>",
                    (long long)tokens);
    }
}

/* Append links to what belongs to a task. */
static void
add_links(struct strbuf *out, const struct page *page, const char *id)
{
    const struct plan *plan =
        engine_plan(page->glance->view.engine, page->model->shown);
    uint32_t task = plan_find_task(plan, id);
    if (task == PLAN_NONE) {
        return;
    }
    strbuf_adds(out, "<p>");
    if (plan->tasks[task].repo != PLAN_NONE) {
        strbuf_adds(out, "<a id=\"to-diff\" href=\"/diff?run=");
        page_add_escaped(out, page->run->id);
        strbuf_adds(out, "&amp;task=");
        page_add_escaped(out, id);
        strbuf_adds(out, "\">diff and comments</a> ");
    }
    struct plan_issue issue = plan_issue_of(plan, &plan->tasks[task]);
    if (issue.title != NULL) {
        strbuf_adds(out, "<span class=\"soft\">");
        xml_add(out, issue.title);
        strbuf_adds(out, "</span>");
    }
    strbuf_adds(out, "</p>");
}

void page_put_task(struct strbuf *out, const struct page *page)
{
    struct chain chain;
    struct diag diag = {0};
    struct model_task task;
    struct strbuf text = {0};
    const char *run = page->run->id;
    strbuf_adds(out, "<h2 id=\"task-h\" class=\"id\">");
    xml_add(out, page->query->task);
    strbuf_adds(out, "</h2>");
    if (chain_in(&chain, page->glance, run, page->query->task, &diag) !=
        ERR_OK) {
        strbuf_adds(out, "<p class=\"bad\">");
        xml_add(out, diag.text);
        strbuf_adds(out, "</p>");
        return;
    }
    struct chain_link link = chain.links[0];
    const struct engine *engine = page->glance->view.engine;
    const char *id = chain_id(&chain, 0);
    const char *reason = engine_reason(engine, link.run, link.task);
    page->model->describe(page->model, link.task, &task, &text);
    strbuf_clear(&text);
    strbuf_adds(out, "<p>");
    page_add_state(out, task.state);
    strbuf_adds(out, task.held ? ", held</p>" : "</p>");
    chain_add_links(&text, &chain);
    add_paragraphs(out, strbuf_text(&text));
    strbuf_release(&text);
    if (reason != NULL) {
        strbuf_adds(out, "<p class=\"ask\">");
        xml_add(out, reason);
        strbuf_adds(out, "</p>");
    }
    add_links(out, page, id);
    add_cost(out, engine, link.run, link.task);
    if (!page->query->looks_only) {
        add_orders(out, page, &task);
    }
    add_folded(out,
               "Feedback for the next attempt",
               engine_feedback(engine, link.run, link.task));
    struct attempts attempts = {
        .page = page,
        .run = run,
        .id = id,
        .task = link.task,
    };
    add_attempts(out, &attempts);
}

/* --- graph -------------------------------------------------------------- */

static void add_node(struct strbuf *out,
                     const struct page *page,
                     const struct task_graph *graph,
                     const struct task_graph_node *node,
                     uint32_t chosen)
{
    const struct plan_task *task = &graph->plan->tasks[node->task];
    enum task_state state =
        snapshot_state(page->glance->snapshot, page->model->shown, node->task);
    const char *name = sched_state_name(state);
    struct strbuf href = {0};
    struct strbuf class_name = {0};
    strbuf_adds(&href, "/?run=");
    page_add_escaped(&href, page->run->id);
    strbuf_adds(&href, "&amp;task=");
    page_add_escaped(&href, task->id);
    strbuf_adds(&href, "#task");
    strbuf_addf(&class_name,
                " s-%s%s",
                name,
                node->task == chosen ? " crit" : "");
    struct task_graph_look look = {
        .class_name = strbuf_text(&class_name),
        .mark = "mark",
        .state = name,
        .note = name,
        .href = strbuf_text(&href),
    };
    task_graph_add_task(out, graph, node, &look);
    strbuf_release(&href);
    strbuf_release(&class_name);
}

void page_add_graph(struct strbuf *out,
                    const struct page *page,
                    const bool *near,
                    uint32_t chosen)
{
    const struct plan *plan =
        engine_plan(page->glance->view.engine, page->model->shown);
    struct task_graph graph;
    bool full = false;
    task_graph_init(&graph, plan, near != NULL ? NODES_MAX : plan->task_count);
    if (chosen != PLAN_NONE) {
        (void)task_graph_add(&graph, chosen);
    }
    for (uint32_t ix = 0; ix < plan->task_count; ix++) {
        bool wanted = near == NULL || near[ix];
        full = (wanted && !task_graph_add(&graph, ix)) || full;
    }
    task_graph_lay(&graph);
    task_graph_open(out, &graph, "Tasks and their needs");
    task_graph_add_needs(out, &graph);
    for (uint32_t ix = 0; ix < graph.count; ix++) {
        add_node(out, page, &graph, &graph.nodes[ix], chosen);
    }
    task_graph_close(out);
    if (full) {
        strbuf_adds(out, "<p class=\"soft\">There are more.</p>");
    }
    task_graph_release(&graph);
}

void page_put_graph(struct strbuf *out, const struct page *page)
{
    const struct plan *plan =
        engine_plan(page->glance->view.engine, page->model->shown);
    uint32_t chosen = plan_find_task(plan, page->query->task);
    page_open_heading(out, "graph", "Needs and dependents");
    strbuf_adds(out, "</h2>");
    if (chosen == PLAN_NONE) {
        strbuf_adds(out, "<p class=\"soft\">Choose a task of it.</p>");
        return;
    }
    bool *near = task_graph_near(plan, chosen, STEPS);
    page_add_graph(out, page, near, chosen);
    mem_free(near);
}

/* --- log ---------------------------------------------------------------- */

void page_put_log(struct strbuf *out, const struct page *page)
{
    struct log_part part;
    struct diag diag = {0};
    struct strbuf text = {0};
    struct log_name name = {
        .place = source_place(page->source),
        .run = page->run->id,
        .task = page->query->task,
    };
    enum err err = log_read(&part, &name, LOG_END, TAIL_BYTES, &diag);
    page_open_heading(out, "log-part", "Log");
    strbuf_adds(out, "</h2>");
    if (err != ERR_OK) {
        strbuf_adds(out, "<p class=\"soft\">None yet.</p>");
        return;
    }
    strbuf_adds(out, "<p><a href=\"/log?run=");
    page_add_escaped(out, page->run->id);
    strbuf_adds(out, "&amp;task=");
    page_add_escaped(out, page->query->task);
    strbuf_addf(out,
                "&amp;attempt=%u\">whole log of attempt %u, with search</a>"
                "</p><pre id=\"log\" tabindex=\"0\" role=\"region\" "
                "aria-label=\"Lines of the log\" data-end=\"1\" "
                "data-attempt=\"%u\" data-next=\"%llu\" data-over=\"%d\">",
                part.number,
                part.number,
                part.number,
                (unsigned long long)part.next,
                part.over);
    log_add_text(&text, &part);
    page_add_lines(out, strbuf_text(&text), text.len, part.from, NULL);
    strbuf_adds(out, "</pre>");
    strbuf_release(&text);
    log_part_release(&part);
}
