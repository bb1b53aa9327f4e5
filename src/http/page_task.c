/* SPDX-License-Identifier: MIT */
/* The part of the live page with one task: why it is as it is, its log, and
 * orders on it. */
#include "base/xml.h"
#include "http/page.h"
#include "view/chain.h"
#include "work/home.h"

#include <string.h>

enum { LOG_BYTES_MAX = 16 << 10 };

/* Append each line of a text as a paragraph. */
static void add_lines(struct strbuf *out, const char *text)
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

/* Append a log, line by line: xml_add() folds line breaks. */
static void add_log(struct strbuf *out, const char *text)
{
    strbuf_adds(out, "<h3>Log</h3><pre id=\"log\" tabindex=\"0\">");
    while (*text != '\0') {
        struct strbuf line = {0};
        size_t len = strcspn(text, "\n");
        strbuf_add(&line, text, len);
        xml_add(out, strbuf_text(&line));
        strbuf_adds(out, text[len] == '\n' ? "\n" : "");
        strbuf_release(&line);
        text += text[len] == '\n' ? len + 1 : len;
    }
    strbuf_adds(out, "</pre>");
}

static void add_orders(struct strbuf *out,
                       const struct page_query *query,
                       const char *run,
                       const char *task)
{
    static const char *const verbs[][2] = {
        {"answer", "Answer"},
        {"retry", "Retry"},
        {"skip", "Skip"},
        {"hold", "Hold"},
        {"release", "Release"},
        {"first", "First"},
        {"tell", "Tell"},
        {"cancel", "Cancel"},
    };
    page_open_form(out, query, run, task, "");
    strbuf_adds(out,
                "<textarea name=\"text\" id=\"task-text\" rows=\"1\" "
                "aria-label=\"Text for this task\"></textarea>");
    for (size_t ix = 0; ix < ARRAY_COUNT(verbs); ix++) {
        page_add_button(out, verbs[ix][0], verbs[ix][1]);
    }
    strbuf_adds(out, "</form>");
}

void page_add_task(struct strbuf *out,
                   struct source *source,
                   const struct glance *glance,
                   const struct page_query *query,
                   const char *run)
{
    struct chain chain;
    struct diag diag = {0};
    struct strbuf text = {0};
    strbuf_adds(out,
                "<section id=\"task\" data-part aria-labelledby=\"task-h\"><h2 "
                "id=\"task-h\" class=\"id\">");
    xml_add(out, query->task);
    strbuf_adds(out, "</h2>");
    if (chain_in(&chain, glance, run, query->task, &diag) != ERR_OK) {
        strbuf_adds(out, "<p class=\"bad\">");
        xml_add(out, diag.text);
        strbuf_adds(out, "</p></section>\n");
        return;
    }
    struct chain_link link = chain.links[0];
    const struct engine *engine = glance->view.engine;
    const char *id = chain_id(&chain, 0);
    const char *reason = engine_reason(engine, link.run, link.task);
    uint32_t number = engine_attempt_number(engine, link.run, link.task);
    chain_add_links(&text, &chain);
    add_lines(out, strbuf_text(&text));
    if (reason != NULL) {
        strbuf_adds(out, "<p class=\"ask\">");
        xml_add(out, reason);
        strbuf_adds(out, "</p>");
    }
    if (!query->looks_only) {
        add_orders(out, query, run, id);
    }
    strbuf_clear(&text);
    if (number > 0) {
        home_add_log_tail(&text,
                          source_place(source)->home,
                          run,
                          id,
                          number,
                          LOG_BYTES_MAX);
        add_log(out, strbuf_text(&text));
    }
    strbuf_release(&text);
    strbuf_adds(out, "</section>\n");
}
