/* SPDX-License-Identifier: MIT */
/* Routes of the live page and of the pages around it. */
#include "base/mem.h"
#include "base/xml.h"
#include "http/call.h"
#include "http/form.h"
#include "http/log.h"
#include "http/page.h"
#include "http/page_diff.h"
#include "http/seen.h"
#include "report/report.h"

#include <string.h>

enum {
    LOG_BYTES = 64 << 10, /* of one page */
    NODES_MAX = 2000,
};

/* --- the live page ------------------------------------------------------ */

/* Read the query of the page; false after an error. */
static bool read_query(struct call *call, struct page_query *out)
{
    uint64_t after = UINT32_MAX;
    if (!call_number(call, "after", UINT32_MAX - 1, &after)) {
        return false;
    }
    *out = (struct page_query){
        .run = call_query(call, "run"),
        .task = call_query(call, "task"),
        .state = call_query(call, "state"),
        .find = call_query(call, "find"),
        .after = (uint32_t)after,
        .looks_only = call->role != GATE_OPERATOR,
        .seen_ns = call->api->seen_ns,
    };
    return true;
}

/* Lead to the report of a run that is finished, or to the log of its task. */
static enum http_done
show_finished(struct call *call, const char *run, const char *task)
{
    struct strbuf *location = &call->response->location;
    call->response->status = 303;
    strbuf_adds(location, task != NULL ? "/log?run=" : "/report?run=");
    page_add_escaped(location, run);
    if (task != NULL) {
        strbuf_adds(location, "&task=");
        page_add_escaped(location, task);
    }
    return HTTP_ANSWERED;
}

enum http_done pages_main(struct call *call)
{
    struct page_query query;
    const struct glance *glance = call_glance(call);
    if (glance == NULL || !read_query(call, &query)) {
        return HTTP_ANSWERED;
    }
    if (query.run != NULL &&
        engine_find_run(glance->view.engine, query.run) == STORE_NONE) {
        return show_finished(call, query.run, query.task);
    }
    struct page page = {
        .source = call->api->source,
        .glance = glance,
        .query = &query,
    };
    page_add(&call->response->body, &page);
    return call_page(call);
}

enum http_done pages_parts(struct call *call)
{
    struct page_query query;
    const struct glance *glance = call_glance(call);
    if (glance == NULL || !read_query(call, &query)) {
        return HTTP_ANSWERED;
    }
    struct page page = {
        .source = call->api->source,
        .glance = glance,
        .query = &query,
        .have = http_query(call->request, "have"),
    };
    page_add_parts(&call->response->body, &page);
    return call_page(call);
}

enum http_done pages_runs(struct call *call)
{
    struct page_query query = {.looks_only = true};
    const struct glance *glance = call_glance(call);
    if (glance == NULL) {
        return HTTP_ANSWERED;
    }
    struct strbuf *out = &call->response->body;
    struct page page = {
        .source = call->api->source,
        .glance = glance,
        .query = &query,
    };
    page_open(out, "Runs", 0);
    strbuf_adds(out, "<h1>All runs</h1><section aria-labelledby=\"runs-h\">");
    page_put_runs(out, &page);
    strbuf_adds(out, "</section>");
    page_close(out);
    return call_page(call);
}

/* --- orders ------------------------------------------------------------- */

/* Answer a form with an error. */
static enum http_done
refuse(struct call *call, enum err err, const char *text, const char *back)
{
    page_add_error(&call->response->body, text, back);
    call->response->status = http_status(err);
    return call_page(call);
}

/* Note what the operator has seen. */
static enum http_done see(struct call *call, const struct form_order *order)
{
    const char *home = source_place(call->api->source)->home;
    enum err err = seen_write(home, order->seen_ns, &call->diag);
    if (err != ERR_OK) {
        return refuse(call, err, call->diag.text, strbuf_text(&order->back));
    }
    call->api->seen_ns = order->seen_ns;
    source_soon(call->api->source);
    call->response->status = 303;
    strbuf_adds(&call->response->location, strbuf_text(&order->back));
    return HTTP_ANSWERED;
}

/* An order of the page, with or without a script. */
enum http_done pages_order(struct call *call)
{
    static const char form[] = "application/x-www-form-urlencoded";
    const char *type = http_header(call->request, "Content-Type");
    struct form_order order = {0};
    enum http_done done;
    if (type == NULL || strncasecmp(type, form, strlen(form)) != 0) {
        return call_fail(call, 415, ERR_INVALID, "send a form");
    }
    enum err err = form_read(&order,
                             call->request->body,
                             call->request->body_len,
                             &call->diag);
    const char *back = strbuf_text(&order.back);
    if (err != ERR_OK) {
        done = refuse(call, err, call->diag.text, back);
    } else if (order.seen_ns > 0) {
        done = see(call, &order);
    } else {
        err = orders_send(call->api->orders,
                          call->request->exchange,
                          strbuf_text(&order.json),
                          NULL,
                          back);
        done = err == ERR_OK ? HTTP_LATER
                             : refuse(call, err, "too many orders wait", back);
    }
    form_release(&order);
    return done;
}

/* --- logs --------------------------------------------------------------- */

/* Read which log is asked for; false after an error. */
static bool read_name(struct call *call, struct log_name *out)
{
    uint64_t number = 0;
    *out = (struct log_name){
        .place = source_place(call->api->source),
        .run = call_query(call, "run"),
        .task = call_query(call, "task"),
    };
    if (!call_number(call, "attempt", UINT32_MAX, &number)) {
        return false;
    }
    out->number = (uint32_t)number;
    if (out->task == NULL) {
        (void)call_fail(call, 400, ERR_INVALID, "\"task\" is missing");
        return false;
    }
    return true;
}

/* Append the query of a log's page, escaped for HTML, without its offset. */
static void add_link(struct strbuf *out, const struct log_name *name)
{
    if (name->run != NULL) {
        strbuf_adds(out, "run=");
        page_add_escaped(out, name->run);
        strbuf_adds(out, "&amp;");
    }
    strbuf_adds(out, "task=");
    page_add_escaped(out, name->task);
    strbuf_addf(out, "&amp;attempt=%u", name->number);
}

/* New lines of a log, for the script. */
enum http_done pages_lines(struct call *call)
{
    struct log_name name;
    struct log_part part;
    uint64_t from = LOG_END;
    struct strbuf *out = &call->response->body;
    if (call_glance(call) == NULL || !read_name(call, &name) ||
        !call_number(call, "from", INT64_MAX, &from)) {
        return HTTP_ANSWERED;
    }
    enum err err = log_read(&part, &name, from, LOG_BYTES, &call->diag);
    if (err != ERR_OK) {
        return call_fail_err(call, err);
    }
    /* A line without an end comes again with its end. */
    size_t len = part.raw.len;
    while (len > 0 && part.raw.text[len - 1] != '\n' && !part.over) {
        len--;
    }
    len = len == 0 && part.raw.len == LOG_BYTES ? part.raw.len : len;
    part.raw.len = len;
    struct strbuf text = {0};
    log_add_text(&text, &part);
    unsigned long long next = part.from + len;
    strbuf_addf(out,
                "<div id=\"piece\" data-next=\"%llu\" data-over=\"%d\">",
                next,
                part.over && next >= part.size);
    struct strbuf link = {0};
    name.number = part.number;
    add_link(&link, &name);
    page_add_lines(out,
                   strbuf_text(&text),
                   text.len,
                   part.from,
                   call_query(call, "links") != NULL ? strbuf_text(&link)
                                                     : NULL);
    strbuf_release(&link);
    strbuf_adds(out, "</div>");
    strbuf_release(&text);
    log_part_release(&part);
    return call_page(call);
}

/* Append the head of a log's page: where we are, and the search. */
static void add_log_head(struct strbuf *out,
                         const struct log_name *name,
                         const char *link,
                         const char *find)
{
    strbuf_adds(out, "<header><h1 class=\"id\">");
    if (name->run != NULL) {
        strbuf_adds(out, "<a href=\"/?run=");
        page_add_escaped(out, name->run);
        strbuf_adds(out, "&amp;task=");
        page_add_escaped(out, name->task);
        strbuf_adds(out, "#task\">");
    }
    xml_add(out, name->task);
    strbuf_addf(out,
                "%s, attempt %u</h1><form method=\"get\" action=\"/log\">",
                name->run != NULL ? "</a>" : "",
                name->number);
    if (name->run != NULL) {
        page_add_field(out, "run", name->run);
    }
    page_add_field(out, "task", name->task);
    strbuf_addf(out,
                "<input type=\"hidden\" name=\"attempt\" value=\"%u\"><input "
                "type=\"search\" id=\"find\" name=\"find\" aria-label=\"Text "
                "in the log\" value=\"",
                name->number);
    xml_add(out, find != NULL ? find : "");
    strbuf_addf(out,
                "\"><button>Search</button></form><nav aria-label=\"Log\"><a "
                "href=\"/log?%s&amp;at=0\">start</a> <a "
                "href=\"/log?%s\">end</a> <a href=\"/diff?%s\">diff</a> <a "
                "href=\"/\">back to the run</a></nav></header>",
                link,
                link,
                link);
}

/* The lines of a log with a text, in another thread. */
static void search_log(const struct slow *slow, struct http_response *response)
{
    struct log_found found;
    struct diag diag = {0};
    struct strbuf link = {0};
    struct strbuf *out = &response->body;
    struct log_name name = {
        .place = &slow->place,
        .run = slow->run,
        .task = slow->task,
        .number = (uint32_t)slow->number,
    };
    response->type = PAGE_TYPE;
    response->policy = page_policy();
    enum err err = log_find(&found, &name, slow->find, slow->from, &diag);
    if (err != ERR_OK) {
        page_add_error(out, diag.text, "/");
        response->status = http_status(err);
        return;
    }
    add_link(&link, &name);
    page_open(out, slow->task, 0);
    add_log_head(out, &name, strbuf_text(&link), slow->find);
    strbuf_adds(out, "<ul>");
    for (uint32_t ix = 0; ix < found.count; ix++) {
        unsigned long long at = found.lines[ix].at;
        strbuf_addf(out,
                    "<li class=\"line id\"><a href=\"/log?%s&amp;at=%llu#b%llu"
                    "\">",
                    strbuf_text(&link),
                    at,
                    at);
        xml_add(out, found.lines[ix].text);
        strbuf_adds(out, "</a></li>\n");
    }
    strbuf_adds(out, "</ul>");
    if (found.next != LOG_END) {
        strbuf_addf(out,
                    "<p>searched %llu of %llu bytes: <a href=\"/log?%s"
                    "&amp;at=%llu&amp;find=",
                    (unsigned long long)found.next,
                    (unsigned long long)found.size,
                    strbuf_text(&link),
                    (unsigned long long)found.next);
        page_add_escaped(out, slow->find);
        strbuf_adds(out, "\">search on</a></p>");
    } else if (found.count == 0) {
        strbuf_adds(out, "<p>No line has it.</p>");
    }
    page_close(out);
    strbuf_release(&link);
    log_found_release(&found);
}

/* Append a part of a log, with links to what is before and after it. */
static void add_log(struct strbuf *out,
                    const struct log_part *part,
                    const char *link,
                    bool from_end)
{
    struct strbuf text = {0};
    if (part->from > 0) {
        uint64_t before = part->from > LOG_BYTES ? part->from - LOG_BYTES : 0;
        strbuf_addf(out,
                    "<p><a href=\"/log?%s&amp;at=%llu\">earlier</a></p>",
                    link,
                    (unsigned long long)before);
    }
    strbuf_addf(out,
                "<pre id=\"log\" tabindex=\"0\" role=\"region\" "
                "aria-label=\"Lines of the log\" data-links=\"1\" "
                "data-attempt=\"%u\" data-next=\"%llu\" data-over=\"%d\"%s>",
                part->number,
                (unsigned long long)part->next,
                part->over || !from_end,
                from_end ? " data-end=\"1\"" : "");
    log_add_text(&text, part);
    page_add_lines(out, strbuf_text(&text), text.len, part->from, link);
    strbuf_adds(out, "</pre>");
    if (!from_end && part->next < part->size) {
        strbuf_addf(out,
                    "<p><a href=\"/log?%s&amp;at=%llu\">later</a></p>",
                    link,
                    (unsigned long long)part->next);
    }
    strbuf_release(&text);
}

enum http_done pages_log(struct call *call)
{
    struct log_name name;
    struct log_part part;
    uint64_t at = LOG_END;
    const char *find = call_query(call, "find");
    if (call_glance(call) == NULL || !read_name(call, &name) ||
        !call_number(call, "at", INT64_MAX, &at)) {
        return HTTP_ANSWERED;
    }
    if (find != NULL) {
        struct slow more = {
            .find = mem_strdup(find),
            .number = name.number,
            .from = at == LOG_END ? 0 : at,
        };
        enum http_done done =
            call_slowly(call, search_log, name.run, name.task, &more);
        mem_free(more.find);
        return done;
    }
    enum err err = log_read(&part, &name, at, LOG_BYTES, &call->diag);
    if (err != ERR_OK) {
        return refuse(call, err, call->diag.text, "/");
    }
    struct strbuf link = {0};
    struct strbuf *out = &call->response->body;
    name.number = part.number;
    add_link(&link, &name);
    page_open(out, name.task, 0);
    add_log_head(out, &name, strbuf_text(&link), NULL);
    add_log(out, &part, strbuf_text(&link), at == LOG_END);
    page_close(out);
    strbuf_release(&link);
    log_part_release(&part);
    return call_page(call);
}

/* --- graph -------------------------------------------------------------- */

/* The graph of all tasks. */
enum http_done pages_graph(struct call *call)
{
    struct page_query query = {.run = call_query(call, "run")};
    const struct glance *glance = call_glance(call);
    if (glance == NULL) {
        return HTTP_ANSWERED;
    }
    struct page page = {
        .source = call->api->source,
        .glance = glance,
        .query = &query,
    };
    page_begin(&page);
    if (page.run == NULL ||
        (query.run != NULL && strcmp(page.run->id, query.run) != 0)) {
        return refuse(call, ERR_NOT_FOUND, "no such unfinished run", "/");
    }
    if (page.run->task_count > NODES_MAX) {
        (void)diag_set(&call->diag,
                       ERR_LIMIT,
                       "the run has %u tasks; a graph can have %d: open a task "
                       "to see those around it",
                       page.run->task_count,
                       NODES_MAX);
        return refuse(call, ERR_LIMIT, call->diag.text, "/");
    }
    struct strbuf *out = &call->response->body;
    page_open(out, page.run->name, 0);
    strbuf_adds(out, "<header><h1><a href=\"/?run=");
    page_add_escaped(out, page.run->id);
    strbuf_adds(out, "\">");
    xml_add(out, page.run->name);
    strbuf_adds(out, "</a></h1></header>");
    page_add_graph(out, &page, NULL, PLAN_NONE);
    page_close(out);
    return call_page(call);
}

/* --- diff --------------------------------------------------------------- */

static void add_diff(const struct slow *slow, struct http_response *response)
{
    struct diff_view view;
    struct diag diag = {0};
    enum err err = diff_take(&view, &slow->place, slow->run, slow->task, &diag);
    if (err == ERR_OK) {
        page_diff_add(&response->body, &view, slow->task, slow->looks_only);
    } else {
        page_add_error(&response->body, diag.text, "/");
        response->status = http_status(err);
    }
    response->type = PAGE_TYPE;
    response->policy = page_policy();
    diff_release(&view);
}

enum http_done pages_diff(struct call *call)
{
    const char *task = call_query(call, "task");
    if (call_glance(call) == NULL) {
        return HTTP_ANSWERED;
    }
    if (task == NULL) {
        return call_fail(call, 400, ERR_INVALID, "\"task\" is missing");
    }
    return call_slowly(call, add_diff, call_query(call, "run"), task, NULL);
}

/* --- report ------------------------------------------------------------- */

/* The page of `sluice report`. */
static void add_report_page(const struct slow *slow,
                            struct http_response *response)
{
    enum err err = api_make_report(slow, &response->body, report_html);
    response->type = PAGE_TYPE;
    response->policy = report_html_policy();
    if (err != ERR_OK) {
        struct strbuf text = response->body;
        response->body = (struct strbuf){0};
        page_add_error(&response->body, strbuf_text(&text), "/");
        response->status = http_status(err);
        response->policy = page_policy();
        strbuf_release(&text);
    }
}

enum http_done pages_report(struct call *call)
{
    return call_glance(call) == NULL ? HTTP_ANSWERED
                                     : call_slowly(call,
                                                   add_report_page,
                                                   call_query(call, "run"),
                                                   NULL,
                                                   NULL);
}
