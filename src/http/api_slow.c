/* SPDX-License-Identifier: MIT */
/* Routes that are answered by another thread, because they read a whole run or
 * start a program. */
#include "base/clock.h"
#include "http/call.h"
#include "report/report.h"
#include "view/diff.h"
#include "view/hindsight.h"
#include "view/metrics.h"

/* --- metrics ------------------------------------------------------------ */

static void add_metrics(const struct slow *slow, struct http_response *response)
{
    struct diag diag = {0};
    struct glance_options options = {
        .store = slow->place.shown,
        .forecast = true,
    };
    enum err err = metrics_add(&response->body, &options, &diag);
    response->type = "text/plain; version=0.0.4; charset=utf-8";
    if (err != ERR_OK) {
        http_fail(response, http_status(err), err, diag.text);
    }
}

enum http_done api_metrics(struct call *call)
{
    return call_glance(call) == NULL
               ? HTTP_ANSWERED
               : call_slowly(call, add_metrics, NULL, NULL, NULL);
}

/* --- diff --------------------------------------------------------------- */

static void add_diff(const struct slow *slow, struct http_response *response)
{
    struct diff_view view;
    struct diag diag = {0};
    enum err err = diff_take(&view, &slow->place, slow->run, slow->task, &diag);
    if (err == ERR_OK) {
        diff_add_json(&response->body, &view);
    } else {
        http_fail(response, http_status(err), err, diag.text);
    }
    diff_release(&view);
}

enum http_done api_diff(struct call *call)
{
    return call_glance(call) == NULL ? HTTP_ANSWERED
                                     : call_slowly(call,
                                                   add_diff,
                                                   call_part(call, 0),
                                                   call_part(call, 1),
                                                   NULL);
}

/* --- report ------------------------------------------------------------- */

enum err
api_make_report(const struct slow *slow, struct strbuf *out, report_fn fn)
{
    struct diag diag = {0};
    struct store *store = NULL;
    struct run_history history = {0};
    struct hindsight hindsight = {0};
    enum err err = store_open(&store, slow->place.address, STORE_READ, &diag);
    if (err == ERR_OK) {
        err = run_history_read(&history,
                               store,
                               slow->run,
                               clock_wall_ns(),
                               &diag);
    }
    if (err == ERR_OK) {
        err = hindsight_read(&hindsight, store, history.number, &diag);
    }
    store_close(store);
    if (err == ERR_OK) {
        struct stats stats;
        struct forecast forecast;
        stats_init(&stats, &history);
        forecast_init(&forecast, &stats);
        struct report report = {
            .history = &history,
            .stats = &stats,
            .forecast = &forecast,
            .hindsight = &hindsight,
            .wall_ns = clock_wall_ns(),
        };
        fn(out, &report);
        forecast_release(&forecast);
        stats_release(&stats);
    } else {
        strbuf_adds(out, diag.text);
    }
    run_history_release(&history);
    return err;
}

static void add_report(const struct slow *slow, struct http_response *response)
{
    enum err err = api_make_report(slow, &response->body, report_json);
    if (err != ERR_OK) {
        struct strbuf text = response->body;
        response->body = (struct strbuf){0};
        http_fail(response, http_status(err), err, strbuf_text(&text));
        strbuf_release(&text);
    }
}

enum http_done api_report(struct call *call)
{
    return call_glance(call) == NULL
               ? HTTP_ANSWERED
               : call_slowly(call, add_report, call_part(call, 0), NULL, NULL);
}
