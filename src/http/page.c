/* SPDX-License-Identifier: MIT */
#include "http/page.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/xml.h"
#include "http/ansi.h"
#include "http/assets/assets.h"

#include <stdio.h>
#include <string.h>

const char *page_policy(void)
{
    return "default-src 'none'; connect-src 'self'; img-src data:; "
           "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
           "style-src 'self'; script-src 'sha256-" LIVE_JS_SHA256 "'";
}

const struct http_file *page_style(void)
{
    static const struct http_file file = {
        .type = "text/css; charset=utf-8",
        .etag = "\"" LIVE_CSS_NAME "\"",
        .gzip = live_css_gz,
        .gzip_len = sizeof(live_css_gz),
        .plain = live_css,
        .plain_len = sizeof(live_css) - 1,
    };
    return &file;
}

const struct http_file *page_script(void)
{
    static const struct http_file file = {
        .type = "text/javascript; charset=utf-8",
        .etag = "\"" LIVE_JS_NAME "\"",
        .gzip = live_js_gz,
        .gzip_len = sizeof(live_js_gz),
        .plain = live_js,
        .plain_len = sizeof(live_js) - 1,
    };
    return &file;
}

/* --- helpers ------------------------------------------------------------ */

void page_add_escaped(struct strbuf *out, const char *text)
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

void page_open_heading(struct strbuf *out, const char *id, const char *title)
{
    strbuf_addf(out, "<h2 id=\"%s-h\">%s", id, title);
}

void page_add_link(struct strbuf *out, const char *run, const char *task)
{
    strbuf_adds(out, "<a class=\"id\" href=\"/?run=");
    page_add_escaped(out, run);
    strbuf_adds(out, "&amp;task=");
    page_add_escaped(out, task);
    strbuf_adds(out, "#task\">");
    xml_add(out, task);
    strbuf_adds(out, "</a>");
}

void page_add_title(struct strbuf *out, const struct page *page, uint32_t task)
{
    const struct plan *plan =
        engine_plan(page->glance->view.engine, page->model->shown);
    const char *title = plan->tasks[task].words->title != NULL
                            ? plan->tasks[task].words->title
                            : plan_issue_of(plan, &plan->tasks[task]).title;
    if (title != NULL) {
        strbuf_adds(out, " <span class=\"title\" dir=\"auto\">");
        xml_add(out, title);
        strbuf_adds(out, "</span>");
    }
}

void page_add_field(struct strbuf *out, const char *name, const char *value)
{
    strbuf_addf(out, "<input type=\"hidden\" name=\"%s\" value=\"", name);
    xml_add(out, value);
    strbuf_adds(out, "\">");
}

/* The form leads back to the run, or to the task. */
void page_open_form(struct strbuf *out,
                    const char *run,
                    const char *task,
                    const char *class_name)
{
    strbuf_addf(out,
                "<form method=\"post\" action=\"/do\" class=\"%s\">",
                class_name);
    page_add_field(out, "run", run);
    if (task != NULL) {
        page_add_field(out, "task", task);
    }
}

void page_add_button(struct strbuf *out, const char *verb, const char *label)
{
    strbuf_addf(out,
                "<button name=\"verb\" value=\"%s\">%s</button>",
                verb,
                label);
}

void page_add_took(struct strbuf *out, int64_t from_ns, int64_t to_ns)
{
    duration_add(out, to_ns > from_ns ? to_ns - from_ns : 0);
}

void page_add_since(struct strbuf *out, int64_t since_ns, int64_t now_ns)
{
    strbuf_addf(out,
                "<span data-since=\"%lld\">",
                (long long)(since_ns / MS_NS));
    page_add_took(out, since_ns, now_ns);
    strbuf_adds(out, "</span>");
}

void page_add_state(struct strbuf *out, enum task_state state)
{
    static const char *const shapes[TASK_STATE_COUNT] = {
        [TASK_WAITING] = "○",
        [TASK_READY] = "◔",
        [TASK_STARTING] = "◐",
        [TASK_RUNNING] = "◐",
        [TASK_DONE] = "●",
        [TASK_FAILED] = "✕",
        [TASK_PARKED] = "▲",
        [TASK_SKIPPED] = "–",
        [TASK_CANCELLED] = "–",
    };
    const char *name = sched_state_name(state);
    strbuf_addf(out,
                "<span class=\"st %s\"><span aria-hidden=\"true\">%s</span> "
                "%s</span>",
                name,
                shapes[state],
                name);
}

void page_add_lines(struct strbuf *out,
                    const char *text,
                    size_t len,
                    uint64_t from,
                    const char *link)
{
    struct ansi ansi = {0};
    size_t at = 0;
    while (at < len) {
        const char *stop = memchr(text + at, '\n', len - at);
        size_t end = stop != NULL ? (size_t)(stop - text) : len;
        unsigned long long offset = from + at;
        strbuf_addf(out, "<span class=\"ll\" id=\"b%llu\">", offset);
        if (link != NULL) {
            strbuf_addf(out,
                        "<a class=\"ln\" href=\"?%s&amp;at=%llu#b%llu\" "
                        "aria-label=\"Link to this line\">#</a>",
                        link,
                        offset,
                        offset);
        }
        ansi_add(out, &ansi, text + at, end - at);
        strbuf_adds(out, "\n</span>");
        at = end + 1;
    }
}

/* --- parts -------------------------------------------------------------- */

static uint64_t hash_of(const char *text, size_t len)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t ix = 0; ix < len; ix++) {
        hash = (hash ^ (unsigned char)text[ix]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* A part: when it is there, and what it is made of. */
struct part {
    const char *id;
    const char *element;
    void (*put)(struct strbuf *out, const struct page *page);
    enum source_of of;
    enum {
        OF_RUN,  /* the same for all clients that look at a run */
        OF_TASK, /* ... at a task of it */
        OF_LIST, /* ... at the same tasks */
        OF_LOG,  /* another one for each attempt: the script follows it */
    } scope;
    enum { WHEN_ALWAYS, WHEN_RUN, WHEN_TASK, WHEN_NONE } when;
};

static const struct part parts[] = {
    {"head", "header", page_put_head, SOURCE_OF_BOTH, OF_RUN, WHEN_ALWAYS},
    {"task", "section", page_put_task, SOURCE_OF_STATE, OF_TASK, WHEN_TASK},
    {"graph", "section", page_put_graph, SOURCE_OF_STATE, OF_TASK, WHEN_TASK},
    {"log-part", "section", page_put_log, SOURCE_OF_STATE, OF_LOG, WHEN_TASK},
    {"needs", "section", page_put_needs, SOURCE_OF_STATE, OF_RUN, WHEN_RUN},
    {"slots", "section", page_put_slots, SOURCE_OF_STATE, OF_RUN, WHEN_RUN},
    {"waiting", "section", page_put_waiting, SOURCE_OF_STATE, OF_RUN, WHEN_RUN},
    {"tasks", "section", page_put_tasks, SOURCE_OF_STATE, OF_LIST, WHEN_RUN},
    {"runs", "section", page_put_runs, SOURCE_OF_STATE, OF_RUN, WHEN_NONE},
    {"machines",
     "section",
     page_put_machines,
     SOURCE_OF_BOTH,
     OF_RUN,
     WHEN_ALWAYS},
    {"events",
     "section",
     page_put_events,
     SOURCE_OF_SCENE,
     OF_RUN,
     WHEN_ALWAYS},
};

static bool is_shown(const struct part *part, const struct page *page)
{
    bool task = page->query->task != NULL;
    switch (part->when) {
    case WHEN_ALWAYS:
        return true;
    case WHEN_RUN:
        return page->run != NULL;
    case WHEN_TASK:
        return page->run != NULL && task;
    case WHEN_NONE:
        return page->run == NULL;
    }
    return false;
}

/* Append a part: its mark, a line break, and the part with its contents. The
 * mark has the hash of a text. */
static void wrap(struct strbuf *out,
                 const struct part *part,
                 const struct strbuf *hashed,
                 const struct strbuf *text)
{
    uint64_t hash = hash_of(strbuf_text(hashed), hashed->len);
    strbuf_addf(out, "%s.%016llx\n", part->id, (unsigned long long)hash);
    strbuf_addf(out,
                "<%s id=\"%s\" data-part=\"%s.%016llx\" "
                "aria-labelledby=\"%s-h\">",
                part->element,
                part->id,
                part->id,
                (unsigned long long)hash,
                part->id);
    strbuf_add(out, strbuf_text(text), text->len);
    strbuf_addf(out, "</%s>\n", part->element);
}

/* Append a wrapped part, unless the client has it. */
static void
give(struct strbuf *out, const struct page *page, const struct strbuf *wrapped)
{
    char mark[64];
    size_t len = strcspn(strbuf_text(wrapped), "\n");
    INVARIANT(len < sizeof(mark));
    memcpy(mark, wrapped->text, len);
    mark[len] = '\0';
    if (page->have == NULL || strstr(page->have, mark) == NULL) {
        strbuf_add(out, wrapped->text + len + 1, wrapped->len - len - 1);
    }
}

/* Append the log of the last attempt, unless the client has one of it. */
static void add_log_part(struct strbuf *out,
                         const struct page *page,
                         const struct part *part)
{
    const struct engine *engine = page->glance->view.engine;
    uint32_t run = page->model->shown;
    uint32_t task = plan_find_task(engine_plan(engine, run), page->query->task);
    struct strbuf name = {0};
    struct strbuf text = {0};
    struct strbuf mark = {0};
    strbuf_addf(&name,
                "%s %s %u",
                page->run->id,
                page->query->task,
                task != PLAN_NONE ? engine_attempt_number(engine, run, task)
                                  : 0);
    wrap(&mark, part, &name, &text);
    mark.len = strcspn(mark.text, "\n");
    mark.text[mark.len] = '\0';
    if (page->have == NULL || strstr(page->have, mark.text) == NULL) {
        struct strbuf wrapped = {0};
        part->put(&text, page);
        wrap(&wrapped, part, &name, &text);
        give(out, page, &wrapped);
        strbuf_release(&wrapped);
    }
    strbuf_release(&name);
    strbuf_release(&text);
    strbuf_release(&mark);
}

/* Append the name under which a part is kept. */
static void
add_key(struct strbuf *out, const struct page *page, const struct part *part)
{
    const struct page_query *query = page->query;
    strbuf_addf(out,
                "part %s %d %lld %s",
                part->id,
                query->looks_only,
                (long long)query->seen_ns,
                page->run != NULL ? page->run->id : "");
    if (part->when == WHEN_ALWAYS) { /* it lists the other parts */
        strbuf_adds(out, query->task != NULL ? " with a task" : "");
    }
    if (part->scope == OF_TASK) {
        strbuf_addf(out, " %s", query->task);
    }
    if (part->scope == OF_LIST) {
        strbuf_addf(out,
                    " %u %s\n%s",
                    query->after,
                    query->state != NULL ? query->state : "",
                    query->find != NULL ? query->find : "");
    }
}

static void
add_part(struct strbuf *out, const struct page *page, const struct part *part)
{
    struct strbuf key = {0};
    bool known;
    if (part->scope == OF_LOG) {
        add_log_part(out, page, part);
        return;
    }
    add_key(&key, page, part);
    struct strbuf *wrapped =
        source_text(page->source, part->of, strbuf_text(&key), &known);
    if (!known) {
        struct strbuf text = {0};
        part->put(&text, page);
        wrap(wrapped, part, &text, &text);
        strbuf_release(&text);
    }
    give(out, page, wrapped);
    strbuf_release(&key);
}

void page_add_names(struct strbuf *out, const struct page *page)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(parts); ix++) {
        if (is_shown(&parts[ix], page)) {
            strbuf_addf(out, "%s ", parts[ix].id);
        }
    }
}

void page_begin(struct page *page)
{
    page->model = source_model(page->source, page->query->run);
    page->run = page->model->run != MODEL_NONE
                    ? &page->model->runs[page->model->run]
                    : NULL;
}

void page_add_parts(struct strbuf *out, struct page *page)
{
    page_begin(page);
    for (size_t ix = 0; ix < ARRAY_COUNT(parts); ix++) {
        if (is_shown(&parts[ix], page)) {
            add_part(out, page, &parts[ix]);
        }
    }
}

/* --- the page ----------------------------------------------------------- */

void page_open(struct strbuf *out, const char *title, uint32_t needs)
{
    strbuf_adds(out,
                "<!DOCTYPE html>\n<html lang=\"en\"><head><meta "
                "charset=\"utf-8\"><meta name=\"viewport\" "
                "content=\"width=device-width, initial-scale=1\"><meta "
                "name=\"color-scheme\" content=\"light dark\"><link "
                "rel=\"icon\" href=\"data:,\"><link rel=\"stylesheet\" "
                "href=\"/live.css?" LIVE_CSS_NAME "\"><title>");
    if (needs > 0) {
        strbuf_addf(out, "(%u) ", needs);
    }
    xml_add(out, title);
    strbuf_adds(out,
                " – sluice</title></head>\n<body>\n<p id=\"stale\" "
                "role=\"alert\" hidden>no connection: this is an old "
                "state</p>\n<main>\n");
}

void page_close(struct strbuf *out)
{
    strbuf_adds(out,
                "</main>\n<dialog id=\"keys\" aria-label=\"Keys\"><dl>"
                "<dt>a</dt><dd>answer what needs you</dd>"
                "<dt>j, k</dt><dd>next and previous task</dd>"
                "<dt>Enter</dt><dd>open it</dd>"
                "<dt>/</dt><dd>find tasks</dd>"
                "<dt>l</dt><dd>to the log</dd>"
                "<dt>d</dt><dd>to the diff</dd>"
                "<dt>+, -</dt><dd>raise and lower the cap</dd>"
                "<dt>p</dt><dd>pause or resume</dd>"
                "<dt>n</dt><dd>notify me</dd>"
                "<dt>u</dt><dd>back to the run</dd>"
                "<dt>?</dt><dd>this list</dd></dl></dialog>\n"
                "<script src=\"/live.js?" LIVE_JS_NAME
                "\" integrity=\"sha256-" LIVE_JS_SHA256
                "\"></script>\n</body></html>\n");
}

void page_add(struct strbuf *out, struct page *page)
{
    page_begin(page);
    uint32_t needs =
        page->run != NULL ? page->model->part_counts[MODEL_PEOPLE] : 0;
    page_open(out,
              page->run != NULL ? page->run->name : "No unfinished run",
              needs);
    page_add_parts(out, page);
    page_close(out);
}

void page_add_error(struct strbuf *out, const char *text, const char *back)
{
    page_open(out, "Not done", 0);
    strbuf_adds(out, "<h1>Not done</h1><p id=\"why\">");
    xml_add(out, text);
    strbuf_adds(out, "</p><p><a href=\"");
    xml_add(out, back);
    strbuf_adds(out, "\">back</a></p>");
    page_close(out);
}
