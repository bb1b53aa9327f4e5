/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as the parts of a request that decide what is answered and to whom:
 * the path, with all patterns of http/api.c, the headers that the gate looks
 * at, and the body of a form, which is also the output of a session. The first
 * byte says which headers there are; lines follow: path, host, origin, site,
 * authorization, cookie; the rest is the form. Only who has a secret may get
 * in, and only with an operator's may anything change.
 */
#include "base/invariant.h"
#include "base/macros.h"
#include "base/utf8.h"
#include "http/ansi.h"
#include "http/form.h"
#include "http/gate.h"
#include "http/route.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef"
#define OPERATOR HEX "0123456789aaaaaa"
#define VIEWER HEX "0123456789bbbbbb"
#define OPERATOR_COOKIE HEX "0123456789cccccc"
#define VIEWER_COOKIE HEX "0123456789dddddd"

enum { LINES = 6 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- paths -------------------------------------------------------------- */

/* tests/scenario/serve-api compares them with those of http/api.c. */
static const char *const patterns[] = {
    "/",
    "/api/v1/events",
    "/api/v1/events/stream",
    "/api/v1/orders",
    "/api/v1/runs",
    "/api/v1/runs/{run}",
    "/api/v1/runs/{run}/graph",
    "/api/v1/runs/{run}/report",
    "/api/v1/runs/{run}/tasks",
    "/api/v1/runs/{run}/tasks/{task*}",
    "/api/v1/runs/{run}/tasks/{task*}/attempts/{number}/log",
    "/api/v1/runs/{run}/tasks/{task*}/diff",
    "/api/v1/status",
    "/api/v1/workers",
    "/diff",
    "/do",
    "/graph",
    "/lines",
    "/live",
    "/live.css",
    "/live.js",
    "/log",
    "/login",
    "/metrics",
    "/parts",
    "/report",
    "/runs",
};

static void add_escaped(struct strbuf *out, const struct strbuf *part)
{
    for (size_t ix = 0; ix < part->len; ix++) {
        strbuf_addf(out, "%%%02X", (unsigned)(unsigned char)part->text[ix]);
    }
}

/* Whatever the parts are, the path in which all of it is escaped has them. */
static void check_parts(const char *pattern, const struct route_parts *parts)
{
    struct strbuf path = {0};
    struct route_parts again;
    uint32_t count = 0;
    for (const char *at = pattern; *at != '\0'; at++) {
        if (*at != '{') {
            strbuf_add(&path, at, 1);
            continue;
        }
        const struct strbuf *part = &parts->items[count++];
        INVARIANT(part->len > 0 && strlen(strbuf_text(part)) == part->len);
        add_escaped(&path, part);
        at = strchr(at, '}');
    }
    INVARIANT(count == parts->count);
    INVARIANT(route_match(pattern, strbuf_text(&path), &again));
    INVARIANT(again.count == count);
    for (uint32_t ix = 0; ix < count; ix++) {
        INVARIANT(strcmp(strbuf_text(&parts->items[ix]),
                         strbuf_text(&again.items[ix])) == 0);
    }
    route_release(&again);
    strbuf_release(&path);
}

static void check_path(const char *path)
{
    uint32_t fitting = 0;
    for (size_t ix = 0; ix < ARRAY_COUNT(patterns); ix++) {
        struct route_parts parts;
        if (route_match(patterns[ix], path, &parts)) {
            INVARIANT(path[0] == '/');
            INVARIANT(strstr(path, "%00") == NULL);
            check_parts(patterns[ix], &parts);
            fitting++;
        }
        route_release(&parts);
    }
    /* A log or a diff is also a task of a strange name. */
    INVARIANT(fitting <= 2);
}

/* --- the gate ----------------------------------------------------------- */

static bool has(const char *header, const char *secret)
{
    return header != NULL && strstr(header, secret) != NULL;
}

static const struct gate gate = {
    .tokens = {[GATE_VIEWER] = VIEWER, [GATE_OPERATOR] = OPERATOR},
    .cookies =
        {
            [GATE_VIEWER] = VIEWER_COOKIE,
            [GATE_OPERATOR] = OPERATOR_COOKIE,
        },
    .hosts = {"127.0.0.1:80", "[::1]:80", "s.example"},
    .host_count = 3,
};

static bool is_host(const char *host)
{
    bool found = false;
    for (uint32_t ix = 0; ix < gate.host_count; ix++) {
        found = found || strcasecmp(host, gate.hosts[ix]) == 0;
    }
    return found;
}

static bool is_own(const char *origin)
{
    const char *host = strstr(origin, "://");
    return host != NULL && strncasecmp(origin, "http", 4) == 0 &&
           is_host(host + 3);
}

/* Require reasons for letting someone in. */
static void check_let_in(const struct gate_facts *facts, enum gate_role role)
{
    bool operates = has(facts->authorization, OPERATOR) ||
                    has(facts->cookie, OPERATOR_COOKIE);
    bool views =
        has(facts->authorization, VIEWER) || has(facts->cookie, VIEWER_COOKIE);
    INVARIANT(role != GATE_NOBODY);
    INVARIANT(role == GATE_OPERATOR ? operates : views);
    INVARIANT(facts->host != NULL && is_host(facts->host));
    INVARIANT(facts->origin == NULL || is_own(facts->origin));
    INVARIANT(facts->site == NULL || strcmp(facts->site, "none") == 0 ||
              strcmp(facts->site, "same-origin") == 0);
    INVARIANT(!facts->changes || role == GATE_OPERATOR);
    INVARIANT(!facts->changes || facts->origin != NULL ||
              has(facts->authorization, OPERATOR));
}

static int ask(const struct gate *asked,
               const struct gate_facts *facts,
               enum gate_role *role)
{
    const char *text = NULL;
    int status = gate_check(asked, facts, role, &text);
    INVARIANT(status == 0 || status == 401 || status == 403 || status == 421);
    INVARIANT(text != NULL && (status == 0) == (text[0] == '\0'));
    return status;
}

static void check_gate(struct gate_facts *facts)
{
    struct gate open = {.open = true};
    int statuses[2];
    enum gate_role roles[2];
    for (int order = 0; order < 2; order++) {
        facts->changes = order == 1;
        statuses[order] = ask(&gate, facts, &roles[order]);
        if (statuses[order] == 0) {
            check_let_in(facts, roles[order]);
        }
    }
    /* Who may order may look, and is the same. */
    INVARIANT(statuses[1] != 0 || statuses[0] == 0);
    INVARIANT(roles[0] == roles[1]);
    INVARIANT(ask(&open, facts, &roles[0]) == 0 && roles[0] == GATE_OPERATOR);
    if (facts->cookie != NULL) {
        /* Nobody can guess a code; one that is used works once. */
        struct gate linked = gate;
        char code[GATE_LINK_BYTES];
        struct diag diag = {0};
        INVARIANT(gate_use_link(&linked, facts->cookie, 0) == GATE_NOBODY);
        linked.key.made = true;
        INVARIANT(gate_use_link(&linked, facts->cookie, 0) == GATE_NOBODY);
        enum err err = gate_make_link(code, &linked.key, GATE_VIEWER, 0, &diag);
        INVARIANT(err == ERR_OK);
        INVARIANT(gate_use_link(&linked, code, 1) == GATE_VIEWER);
        INVARIANT(gate_use_link(&linked, code, 1) == GATE_NOBODY);
    }
}

/* --- forms -------------------------------------------------------------- */

static void check_form(const char *body, size_t len)
{
    struct form_order order = {0};
    struct diag diag = {0};
    enum err err = form_read(&order, body, len, &diag);
    const char *back = strbuf_text(&order.back);
    INVARIANT(err == ERR_OK || err == ERR_INVALID);
    /* A path of ours, in one line. */
    INVARIANT(back[0] == '/' && back[1] != '/' && back[1] != '\\');
    INVARIANT(strpbrk(back, "\r\n\t\\<>\"") == NULL);
    if (err == ERR_OK && order.seen_ns != 0) {
        INVARIANT(order.seen_ns > 0 && order.json.len == 0);
    } else if (err == ERR_OK) {
        json_t *json = json_loadb(strbuf_text(&order.json),
                                  order.json.len,
                                  JSON_REJECT_DUPLICATES,
                                  NULL);
        INVARIANT(json_is_object(json));
        INVARIANT(json_string_value(json_object_get(json, "verb")) != NULL);
        INVARIANT(json_object_get(json, "key") == NULL);
        INVARIANT(json_object_get(json, "session") == NULL);
        json_decref(json);
    } else {
        INVARIANT(diag.text[0] != '\0');
    }
    form_release(&order);
}

/* --- output of sessions ------------------------------------------------- */

/* Whatever comes, it is UTF-8, and its only tags are those of styles. */
static void check_output(const char *text, size_t len)
{
    static const char span[] = "<span class=\"";
    static const char end[] = "</span>";
    struct strbuf out = {0};
    struct ansi ansi = {0};
    int open = 0;
    ansi_add(&out, &ansi, text, len);
    for (const char *at = strbuf_text(&out); *at != '\0'; at++) {
        bool opens = strncmp(at, span, strlen(span)) == 0;
        bool closes = strncmp(at, end, strlen(end)) == 0;
        INVARIANT(*at != '<' || opens || closes);
        open += opens ? 1 : closes ? -1 : 0;
        INVARIANT(open == 0 || open == 1);
    }
    INVARIANT(open == 0 && ansi.colour <= 16);
    INVARIANT(utf8_is_valid(strbuf_text(&out), out.len));
    strbuf_release(&out);
}

/* --- input -------------------------------------------------------------- */

/* Cut the next line off; a copy, so that ASan sees a byte too many. */
static char *take_line(const char **at, const char *end)
{
    const char *newline = memchr(*at, '\n', (size_t)(end - *at));
    size_t len = (size_t)((newline != NULL ? newline : end) - *at);
    char *line = malloc(len + 1);
    INVARIANT(line != NULL);
    memcpy(line, *at, len);
    line[len] = '\0';
    *at += newline != NULL ? len + 1 : len;
    return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *lines[LINES];
    const char *at = (const char *)data;
    const char *end = at + size;
    uint8_t present = size > 0 ? data[0] : 0;
    at += size > 0 ? 1 : 0;
    for (size_t ix = 0; ix < LINES; ix++) {
        lines[ix] = take_line(&at, end);
    }
    check_path(lines[0]);
    struct gate_facts facts = {
        .host = (present & 1) != 0 ? lines[1] : NULL,
        .origin = (present & 2) != 0 ? lines[2] : NULL,
        .site = (present & 4) != 0 ? lines[3] : NULL,
        .authorization = (present & 8) != 0 ? lines[4] : NULL,
        .cookie = (present & 16) != 0 ? lines[5] : NULL,
    };
    check_gate(&facts);
    size_t len = (size_t)(end - at);
    char *body = malloc(len > 0 ? len : 1);
    INVARIANT(body != NULL);
    memcpy(body, at, len);
    check_form(body, len);
    check_output(body, len);
    free(body);
    for (size_t ix = 0; ix < LINES; ix++) {
        free(lines[ix]);
    }
    return 0;
}
