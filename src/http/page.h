/* SPDX-License-Identifier: MIT */
/*
 * page: the live page, as HTML that works without a script.
 *
 * It is made of parts with ids; `data-part` is a hash of their contents. The
 * script sends the hashes that it has, and gets the parts that have changed.
 * All that comes from plans, sessions and logs is escaped. Orders are forms.
 *
 * Parts that are the same for all clients are made once for each state.
 */
#ifndef HTTP_PAGE_H
#define HTTP_PAGE_H

#include "http/source.h"

#define PAGE_TYPE "text/html; charset=utf-8"

/* What is asked for. Strings may be NULL. */
struct page_query {
    const char *run;
    const char *task;  /* to show in full */
    const char *state; /* of the tasks to list */
    const char *find;  /* part of their ids */
    uint32_t after;    /* index of the last task of the page before; UINT32_MAX:
                          none */
    bool looks_only;   /* no orders */
    int64_t seen_ns;   /* wall clock: what needs an operator since is new */
};

/* A page being made. */
struct page {
    struct source *source;
    const struct glance *glance;
    const struct page_query *query;
    const struct model *model;
    const struct model_run *run; /* shown; NULL: none is unfinished */
    const char *have;            /* hashes that the client has; NULL: none */
};

/* Its Content-Security-Policy. */
const char *page_policy(void);

/* Its style and script. */
const struct http_file *page_style(void);
const struct http_file *page_script(void);

/* Append the page; or only the parts that the client does not have. */
void page_add(struct strbuf *out, struct page *page);
void page_add_parts(struct strbuf *out, struct page *page);

/* Fill in the members that follow from source, glance and query. */
void page_begin(struct page *page);

/* Open and close a page: everything but what is in its body. */
void page_open(struct strbuf *out, const char *title, uint32_t needs);
void page_close(struct strbuf *out);

/* Append a page with an error, and a link back. */
void page_add_error(struct strbuf *out, const char *text, const char *back);

/* --- contents of parts, by file ----------------------------------------- */

/* page_parts.c */
void page_put_head(struct strbuf *out, const struct page *page);
void page_put_needs(struct strbuf *out, const struct page *page);
void page_put_slots(struct strbuf *out, const struct page *page);
void page_put_waiting(struct strbuf *out, const struct page *page);
void page_put_machines(struct strbuf *out, const struct page *page);
void page_put_events(struct strbuf *out, const struct page *page);
void page_put_runs(struct strbuf *out, const struct page *page);

/* page_tasks.c */
void page_put_tasks(struct strbuf *out, const struct page *page);
void page_put_task(struct strbuf *out, const struct page *page);
void page_put_graph(struct strbuf *out, const struct page *page);
/* Append a graph of the tasks that are `near`, NULL: of all; with one of them
 * chosen, or PLAN_NONE. */
void page_add_graph(struct strbuf *out,
                    const struct page *page,
                    const bool *near,
                    uint32_t chosen);
void page_put_log(struct strbuf *out, const struct page *page);

/* page_timeline.c */
void page_add_timeline(struct strbuf *out, const struct page *page);

/* --- helpers ------------------------------------------------------------ */

/* Append a value of a URL's query, with its escapes. */
void page_add_escaped(struct strbuf *out, const char *text);

/* Append the heading of a part: "<h2 ...>TITLE", without its end. */
void page_open_heading(struct strbuf *out, const char *id, const char *title);

/* Open a form for orders on a run or a task of it, with hidden fields; append
 * another field; a button. `class_name` is of the style sheet. */
void page_open_form(struct strbuf *out,
                    const char *run,
                    const char *task,
                    const char *class_name);
void page_add_field(struct strbuf *out, const char *name, const char *value);
void page_add_button(struct strbuf *out, const char *verb, const char *label);

/* Append the ids of the parts that are shown, each with a blank. */
void page_add_names(struct strbuf *out, const struct page *page);

/* Append a link to a task. */
void page_add_link(struct strbuf *out, const char *run, const char *task);

/* Append how long something took: nothing, if the clock was set back. */
void page_add_took(struct strbuf *out, int64_t from_ns, int64_t to_ns);

/* Append the title of a task, by its index, if it has one. */
void page_add_title(struct strbuf *out, const struct page *page, uint32_t task);

/* Append a time that passes: how long ago it was. The script keeps it right. */
void page_add_since(struct strbuf *out, int64_t since_ns, int64_t now_ns);

/* Append the state of a task, by shape and word. */
void page_add_state(struct strbuf *out, enum task_state state);

/* Append lines of a log; each has its offset as id, and a link if `link`, the
 * escaped query of its page, is not NULL. */
void page_add_lines(struct strbuf *out,
                    const char *text,
                    size_t len,
                    uint64_t from,
                    const char *link);

#endif /* HTTP_PAGE_H */
