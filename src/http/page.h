/* SPDX-License-Identifier: MIT */
/*
 * page: the live page, as HTML that works without a script.
 *
 * It is made of parts with ids (`data-part`); the script fetches the page again
 * and replaces the parts that have changed. All that comes from plans, sessions
 * and logs is escaped. Orders are forms.
 */
#ifndef HTTP_PAGE_H
#define HTTP_PAGE_H

#include "http/source.h"

/* What is asked for. Strings may be NULL. */
struct page_query {
    const char *run;
    const char *task;  /* to show in full */
    const char *state; /* of the tasks to list */
    const char *find;  /* part of their ids */
    uint32_t after;    /* index of the last task of the page before; UINT32_MAX:
                          none */
    const char *path;  /* with the query: forms come back to it */
    bool looks_only;   /* no orders */
};

/* Its Content-Security-Policy. */
const char *page_policy(void);

/* Append the page. */
void page_add(struct strbuf *out,
              struct source *source,
              const struct glance *glance,
              const struct page_query *query);

/* Append a page with an error, and a link back. */
void page_add_error(struct strbuf *out, const char *text, const char *back);

/* page_task.c: append the part with one task. */
void page_add_task(struct strbuf *out,
                   struct source *source,
                   const struct glance *glance,
                   const struct page_query *query,
                   const char *run);

/* Helpers for both files: open a form for orders on a task or run, with hidden
 * fields; append a button of it; a link to a task. */
void page_open_form(struct strbuf *out,
                    const struct page_query *query,
                    const char *run,
                    const char *task,
                    const char *class_name);
void page_add_button(struct strbuf *out, const char *verb, const char *label);
void page_add_link(struct strbuf *out, const char *run, const char *task);

#endif /* HTTP_PAGE_H */
