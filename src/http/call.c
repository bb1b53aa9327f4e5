/* SPDX-License-Identifier: MIT */
#include "http/call.h"

#include "base/mem.h"
#include "http/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *call_part(const struct call *call, uint32_t ix)
{
    return strbuf_text(&call->parts.items[ix]);
}

const char *call_query(const struct call *call, const char *name)
{
    const char *text = http_query(call->request, name);
    return text != NULL && text[0] != '\0' ? text : NULL;
}

enum http_done
call_fail(struct call *call, int status, enum err err, const char *text)
{
    http_fail(call->response, status, err, text);
    return HTTP_ANSWERED;
}

enum http_done call_fail_err(struct call *call, enum err err)
{
    return call_fail(call, http_status(err), err, call->diag.text);
}

bool call_number(struct call *call,
                 const char *name,
                 uint64_t max,
                 uint64_t *out)
{
    const char *text = http_query(call->request, name);
    char *end = NULL;
    if (text == NULL) {
        return true;
    }
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (strspn(text, "0123456789") != strlen(text) || text[0] == '\0' ||
        errno != 0 || value > max) {
        (void)diag_set(&call->diag,
                       ERR_INVALID,
                       "\"%s\" must be a number from 0 to %llu",
                       name,
                       (unsigned long long)max);
        (void)call_fail_err(call, ERR_INVALID);
        return false;
    }
    *out = value;
    return true;
}

const struct glance *call_glance(struct call *call)
{
    const struct glance *glance = source_glance(call->api->source, &call->diag);
    if (glance == NULL) {
        (void)call_fail_err(call, ERR_UNAVAILABLE);
    }
    return glance;
}

enum http_done call_page(struct call *call)
{
    call->response->type = PAGE_TYPE;
    call->response->policy = page_policy();
    return HTTP_ANSWERED;
}

/* --- slow reading ------------------------------------------------------- */

struct errand {
    struct slow slow;
    slow_fn run;
};

static void
run_errand(void *ctx, const char *refused, struct http_response *response)
{
    const struct errand *errand = ctx;
    if (refused != NULL) {
        http_fail(response, 503, ERR_UNAVAILABLE, refused);
    } else {
        errand->run(&errand->slow, response);
    }
}

static void drop_errand(void *ctx)
{
    struct errand *errand = ctx;
    store_place_release(&errand->slow.place);
    mem_free(errand->slow.run);
    mem_free(errand->slow.task);
    mem_free(errand->slow.find);
    mem_free(errand);
}

static char *copy(const char *text)
{
    return text != NULL ? mem_strdup(text) : NULL;
}

enum http_done call_slowly(struct call *call,
                           slow_fn run,
                           const char *run_id,
                           const char *task,
                           const struct slow *more)
{
    struct errand *errand = mem_zalloc(1, sizeof(*errand));
    if (more != NULL) {
        errand->slow = *more;
    }
    errand->slow.place = store_place_copy(source_place(call->api->source));
    errand->slow.run = copy(run_id);
    errand->slow.task = copy(task);
    errand->slow.find = copy(errand->slow.find);
    errand->slow.looks_only = call->role != GATE_OPERATOR;
    errand->run = run;
    struct desk_work work = {
        .exchange = call->request->exchange,
        .run = run_errand,
        .drop = drop_errand,
        .ctx = errand,
    };
    if (desk_send(call->api->desk, &work) != ERR_OK) {
        drop_errand(errand);
        return call_fail(call,
                         503,
                         ERR_BUSY,
                         "too many requests wait; try again");
    }
    return HTTP_LATER;
}
