/* SPDX-License-Identifier: MIT */
#include "work/roster.h"

#include "base/duration.h"
#include "base/macros.h"
#include "base/mem.h"
#include "work/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NONCE "0123456789abcdef0123456789abcdef"

struct fixture {
    struct roster *roster;
    int64_t now_ns;
    struct strbuf reports; /* "TOKEN TYPE;" */
    struct strbuf requests;
    struct strbuf said;
    uint32_t slots; /* of all workers */
};

static int64_t on_now(void *ctx)
{
    return ((struct fixture *)ctx)->now_ns;
}

static void on_report(void *ctx, const struct work_report *report)
{
    static const char *const names[] = {
        [WORK_STARTED] = "started",
        [WORK_ENDED] = "ended",
        [WORK_REFUSED] = "refused",
        [WORK_LOST] = "lost",
        [WORK_UNKNOWN] = "unknown",
    };
    struct fixture *fixture = ctx;
    strbuf_addf(&fixture->reports,
                "%llu %s%s%s;",
                (unsigned long long)report->token,
                names[report->type],
                report->mark.worker[0] != '\0' ? " at " : "",
                report->mark.worker);
}

static void
on_workers(void *ctx, const struct roster_worker *workers, uint32_t count)
{
    struct fixture *fixture = ctx;
    fixture->slots = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        fixture->slots += workers[ix].slots;
    }
}

static void on_request(void *ctx, const struct roster_request *request)
{
    struct fixture *fixture = ctx;
    strbuf_addf(&fixture->requests,
                "%llu %s %llu;",
                (unsigned long long)request->number,
                request->json,
                (unsigned long long)request->token);
}

static int set_up(void **state)
{
    struct fixture *fixture = mem_zalloc(1, sizeof(*fixture));
    fixture->roster = roster_new(&(struct roster_options){
        .epoch = 3,
        .now_ns = on_now,
        .report = on_report,
        .workers = on_workers,
        .request = on_request,
        .ctx = fixture,
    });
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    roster_free(fixture->roster);
    strbuf_release(&fixture->reports);
    strbuf_release(&fixture->requests);
    strbuf_release(&fixture->said);
    mem_free(fixture);
    return 0;
}

static void assign(struct fixture *fixture,
                   uint64_t token,
                   const char *label,
                   const char *near)
{
    roster_assign(fixture->roster,
                  &(struct work_order){
                      .id = {token, NONCE, "run", "task", "1"},
                      .where = {label, near},
                      .folder = "/",
                      .shell = "true",
                  });
}

/* A worker of a result. */
static void add_worker(struct strbuf *out,
                       const char *name,
                       const char *labels,
                       int slots,
                       const char *state,
                       bool fresh)
{
    strbuf_addf(out,
                "%s{\"name\":\"%s\",\"instance\":\"i\",\"labels\":\"%s\","
                "\"slots\":%d,\"proto\":%d,\"state\":\"%s\",\"trouble\":\"\","
                "\"fresh\":%s}",
                out->len > 0 ? "," : "",
                name,
                labels,
                slots,
                WIRE_PROTO,
                state,
                fresh ? "true" : "false");
}

/* Make a turn: what was said is kept, and the result has these parts. */
static void turn(struct fixture *fixture,
                 const struct strbuf *workers,
                 const char *rows,
                 const char *asks)
{
    struct strbuf text = {0};
    struct diag diag = {0};
    strbuf_clear(&fixture->said);
    strbuf_clear(&fixture->reports);
    roster_say(fixture->roster, &fixture->said);
    strbuf_addf(&text,
                "{\"lease_ms\":1000,\"workers\":[%s],\"rows\":[%s],"
                "\"asks\":[%s]}",
                strbuf_text(workers),
                rows,
                asks);
    assert_int_equal(roster_hear(fixture->roster, strbuf_text(&text), &diag),
                     ERR_OK);
    strbuf_release(&text);
}

static bool says(const struct fixture *fixture, const char *text)
{
    return strstr(strbuf_text(&fixture->said), text) != NULL;
}

static void an_order_waits_for_a_worker_with_its_label(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    assign(fixture, 1, "gpu", NULL);
    add_worker(&workers, "a", "a,any", 2, "up", true);
    turn(fixture, &workers, "", "");
    assert_false(says(fixture, "\"orders\""));
    assert_int_equal(fixture->slots, 2);
    turn(fixture, &workers, "", "");
    assert_false(says(fixture, "\"orders\""));
    assert_false(roster_has_news(fixture->roster));
    assert_false(roster_may_wait(fixture->roster));
    add_worker(&workers, "b", "b,any,gpu", 1, "up", true);
    turn(fixture, &workers, "", "");
    assert_true(roster_has_news(fixture->roster));
    turn(fixture,
         &workers,
         "{\"token\":1,\"worker\":\"b\",\"state\":\"assigned\"}",
         "");
    assert_true(says(fixture, "\"worker\":\"b\""));
    assert_string_equal(strbuf_text(&fixture->reports), "");
    strbuf_release(&workers);
}

static void workers_get_no_more_than_their_slots(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    add_worker(&workers, "a", "a,any", 1, "up", true);
    add_worker(&workers, "b", "b,any", 1, "draining", true);
    add_worker(&workers, "c", "c,any", 1, "up", false); /* its lease is old */
    turn(fixture, &workers, "", "");
    assert_int_equal(fixture->slots, 1);
    assign(fixture, 1, NULL, NULL);
    assign(fixture, 2, NULL, NULL);
    turn(fixture,
         &workers,
         "{\"token\":1,\"worker\":\"a\",\"state\":\"assigned\"}",
         "");
    assert_true(says(fixture, "\"token\":1"));
    assert_false(says(fixture, "\"token\":2"));
    strbuf_release(&workers);
}

static void a_worker_that_states_its_slots_comes_first(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    add_worker(&workers, "a", "a,any", 1000000, "up", true);
    add_worker(&workers, "b", "b,any", 1, "up", true);
    turn(fixture, &workers, "", "");
    assign(fixture, 1, NULL, NULL);
    assign(fixture, 2, NULL, NULL);
    turn(fixture,
         &workers,
         "{\"token\":1,\"worker\":\"b\",\"state\":\"assigned\"},"
         "{\"token\":2,\"worker\":\"a\",\"state\":\"assigned\"}",
         "");
    const char *first = strstr(strbuf_text(&fixture->said), "\"token\":1");
    assert_non_null(first);
    assert_ptr_equal(strstr(first, "\"worker\":"),
                     strstr(first, "\"worker\":\"b\""));
    strbuf_release(&workers);
}

/* The worker of an order that was said. */
static void
assert_given(const struct fixture *fixture, int token, const char *worker)
{
    struct strbuf part = {0};
    strbuf_addf(&part,
                "{\"token\":%d,\"nonce\":\"" NONCE "\",\"worker\":\"%s\"",
                token,
                worker);
    assert_true(says(fixture, strbuf_text(&part)));
    strbuf_release(&part);
}

static void a_worker_gets_as_many_orders_as_it_has_slots(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    add_worker(&workers, "a", "a,any", 2, "up", true);
    turn(fixture, &workers, "", "");
    for (uint64_t token = 1; token <= 3; token++) {
        assign(fixture, token, NULL, NULL);
    }
    turn(fixture,
         &workers,
         "{\"token\":1,\"worker\":\"a\",\"state\":\"assigned\"},"
         "{\"token\":2,\"worker\":\"a\",\"state\":\"assigned\"}",
         "");
    assert_given(fixture, 1, "a");
    assert_given(fixture, 2, "a");
    assert_false(says(fixture, "\"token\":3"));
    strbuf_release(&workers);
}

static void stated_slots_are_used_up_before_unlimited_ones(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    add_worker(&workers, "b", "b,any", 2, "up", true);
    add_worker(&workers, "a", "a,any", 1000000, "up", true);
    turn(fixture, &workers, "", "");
    for (uint64_t token = 1; token <= 3; token++) {
        assign(fixture, token, NULL, NULL);
    }
    turn(fixture, &workers, "", "");
    assert_given(fixture, 1, "b");
    assert_given(fixture, 2, "b");
    assert_given(fixture, 3, "a");
    strbuf_release(&workers);
}

static void equal_workers_differ_by_their_number_of_labels(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    add_worker(&workers, "a", "a,any,gpu", 1, "up", true);
    add_worker(&workers, "b", "b,any", 1, "up", true);
    add_worker(&workers, "c", "c", 1, "up", true);
    add_worker(&workers, "d", "d,any,gpu", 1, "up", true);
    turn(fixture, &workers, "", "");
    assign(fixture, 1, NULL, NULL);
    assign(fixture, 2, NULL, NULL);
    turn(fixture, &workers, "", "");
    assert_given(fixture, 1, "c");
    assert_given(fixture, 2, "b");
    strbuf_release(&workers);
}

static void each_checkout_has_its_worker(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    add_worker(&workers, "a", "a,any", 2, "up", true);
    add_worker(&workers, "b", "b,any", 8, "up", true); /* it has more free */
    turn(fixture, &workers, "", "");
    assign(fixture, 1, "a", "first");
    assign(fixture, 2, "b", "second");
    static const char rows[] =
        "{\"token\":1,\"worker\":\"a\",\"state\":\"accepted\"},"
        "{\"token\":2,\"worker\":\"b\",\"state\":\"accepted\"}";
    turn(fixture, &workers, rows, "");
    assign(fixture, 3, NULL, "second");
    assign(fixture, 4, NULL, "first");
    turn(fixture, &workers, rows, "");
    assert_given(fixture, 3, "b");
    assert_given(fixture, 4, "a");
    strbuf_release(&workers);
}

static void work_stays_near_its_checkout(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    add_worker(&workers, "a", "a,any", 1, "up", true);
    add_worker(&workers, "b", "b,any", 8, "up", true);
    turn(fixture, &workers, "", "");
    assign(fixture, 1, "a", "issue");
    turn(fixture,
         &workers,
         "{\"token\":1,\"worker\":\"a\",\"state\":\"ended\",\"report\":"
         "\"{\\\"token\\\":1,\\\"type\\\":\\\"lost\\\"}\"}",
         "");
    assert_string_equal(strbuf_text(&fixture->reports), "1 lost;");
    assign(fixture, 2, NULL, "issue");
    turn(fixture,
         &workers,
         "{\"token\":2,\"worker\":\"a\",\"state\":\"assigned\"}",
         "");
    assert_true(says(fixture, "\"worker\":\"a\""));
    strbuf_release(&workers);
}

static void what_nobody_accepted_moves_to_another_worker(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    add_worker(&workers, "a", "a,any", 1, "up", true);
    turn(fixture, &workers, "", "");
    assign(fixture, 1, NULL, NULL);
    static const char row[] =
        "{\"token\":1,\"worker\":\"a\",\"state\":\"assigned\"}";
    turn(fixture, &workers, row, "");
    strbuf_clear(&workers);
    add_worker(&workers, "a", "a,any", 1, "lost", false);
    add_worker(&workers, "b", "b,any", 1, "up", true);
    turn(fixture, &workers, row, "");
    turn(fixture, &workers, row, "");
    assert_true(says(fixture, "\"from_worker\":\"a\",\"worker\":\"b\""));
    /* Once it was accepted, it is the worker's until that is lost. */
    turn(fixture,
         &workers,
         "{\"token\":1,\"worker\":\"b\",\"state\":\"accepted\"}",
         "");
    strbuf_clear(&workers);
    add_worker(&workers, "b", "b,any", 1, "draining", true);
    add_worker(&workers, "c", "c,any", 1, "up", true);
    turn(fixture,
         &workers,
         "{\"token\":1,\"worker\":\"b\",\"state\":\"accepted\"}",
         "");
    turn(fixture,
         &workers,
         "{\"token\":1,\"worker\":\"b\",\"state\":\"lost\"}",
         "");
    assert_false(says(fixture, "\"moves\""));
    assert_string_equal(strbuf_text(&fixture->reports), "1 lost;");
    strbuf_release(&workers);
}

static void a_failed_turn_is_repeated(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    struct diag diag = {0};
    add_worker(&workers, "a", "a,any", 1, "up", true);
    turn(fixture, &workers, "", "{\"number\":12,\"request\":\"{}\"}");
    assert_false(roster_has_news(fixture->roster));
    roster_answer(fixture->roster, 12, "{\"ok\":true}");
    assert_true(roster_has_news(fixture->roster));
    assign(fixture, 1, NULL, NULL);
    strbuf_clear(&fixture->said);
    roster_say(fixture->roster, &fixture->said);
    assert_int_equal(roster_hear(fixture->roster, NULL, &diag), ERR_OK);
    /* It may be in the store: it cannot be withdrawn without asking. */
    roster_want(fixture->roster, 1, WORK_STOP);
    assert_string_equal(strbuf_text(&fixture->reports), "");
    turn(fixture,
         &workers,
         "{\"token\":1,\"worker\":\"a\",\"state\":\"ended\",\"report\":"
         "\"{\\\"token\\\":1,\\\"type\\\":\\\"refused\\\"}\"}",
         "");
    assert_true(says(fixture, "\"body\""));
    assert_true(says(fixture, "\"want\":\"stop\""));
    assert_true(
        says(fixture, "\"number\":12,\"answer\":\"{\\\"ok\\\":true}\""));
    assert_string_equal(strbuf_text(&fixture->reports), "1 refused;");
    turn(fixture, &workers, "", "");
    assert_false(says(fixture, "\"number\":12"));
    strbuf_release(&workers);
}

static void offer(struct fixture *fixture, uint64_t token, struct strbuf *out)
{
    roster_offer(fixture->roster,
                 &(struct work_order){
                     .id = {token, NONCE, "run", "task", "1"},
                     .folder = "/",
                     .shell = "true",
                 },
                 out);
}

static void nothing_is_said_of_an_offer_before_it_is_written(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    struct strbuf out = {0};
    static const char row[] =
        "{\"token\":1,\"worker\":\"a\",\"state\":\"ended\",\"report\":"
        "\"{\\\"token\\\":1,\\\"type\\\":\\\"lost\\\"}\"}";
    add_worker(&workers, "a", "a,any", 1, "up", true);
    turn(fixture, &workers, "", "");
    offer(fixture, 1, &out);
    assert_non_null(strstr(strbuf_text(&out), "\"worker\":\"a\""));
    roster_want(fixture->roster, 1, WORK_STOP);
    assert_false(roster_has_news(fixture->roster));
    turn(fixture, &workers, row, "");
    assert_false(says(fixture, "\"orders\""));
    assert_false(says(fixture, "\"wants\""));
    assert_string_equal(strbuf_text(&fixture->reports), "");
    roster_written(fixture->roster);
    assert_true(roster_has_news(fixture->roster));
    turn(fixture, &workers, row, "");
    assert_true(says(fixture, "\"want\":\"stop\""));
    assert_string_equal(strbuf_text(&fixture->reports), "1 lost;");
    strbuf_release(&workers);
    strbuf_release(&out);
}

static void an_offer_is_not_missed_by_a_turn_that_began_before(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    struct strbuf out = {0};
    struct diag diag = {0};
    add_worker(&workers, "a", "a,any", 2, "up", true);
    turn(fixture, &workers, "", "");
    offer(fixture, 1, &out);
    strbuf_clear(&fixture->said);
    roster_say(fixture->roster, &fixture->said);
    roster_written(fixture->roster);
    static const char result[] =
        "{\"lease_ms\":1000,\"workers\":[],\"rows\":[],\"asks\":[]}";
    assert_int_equal(roster_hear(fixture->roster, result, &diag), ERR_OK);
    assert_string_equal(strbuf_text(&fixture->reports), "");
    turn(fixture, &workers, "", "");
    assert_string_equal(strbuf_text(&fixture->reports), "1 unknown;");
    strbuf_release(&workers);
    strbuf_release(&out);
}

static void offers_are_made_only_of_free_slots_in_turn(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    struct strbuf out = {0};
    struct diag diag = {0};
    offer(fixture, 1, &out); /* it knows no worker yet */
    add_worker(&workers, "a", "a,any", 1, "up", true);
    turn(fixture, &workers, "", "");
    assert_int_equal(roster_hear(fixture->roster, NULL, &diag), ERR_OK);
    offer(fixture, 1, &out); /* the store may be another one by now */
    turn(fixture, &workers, "", "");
    assign(fixture, 1, NULL, NULL);
    offer(fixture, 2, &out); /* the first one comes first */
    assert_int_equal(out.len, 0);
    turn(fixture,
         &workers,
         "{\"token\":1,\"worker\":\"a\",\"state\":\"assigned\"}",
         "");
    offer(fixture, 2, &out); /* it has the slot */
    assert_int_equal(out.len, 0);
    strbuf_clear(&workers);
    add_worker(&workers, "a", "a,any", 3, "up", true);
    turn(fixture,
         &workers,
         "{\"token\":1,\"worker\":\"a\",\"state\":\"assigned\"}",
         "");
    offer(fixture, 2, &out);
    offer(fixture, 3, &out);
    offer(fixture, 4, &out); /* those have the rest */
    assert_non_null(strstr(strbuf_text(&out), "},{\"token\":3"));
    assert_null(strstr(strbuf_text(&out), "\"token\":4"));
    strbuf_release(&workers);
    strbuf_release(&out);
}

static void no_worker_is_lost_soon_after_an_outage(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    struct diag diag = {0};
    turn(fixture, &workers, "", "");
    assert_true(says(fixture, "\"patient\":true")); /* after a take-over, too */
    fixture->now_ns += 1001 * MS_NS;
    turn(fixture, &workers, "", "");
    assert_false(says(fixture, "\"patient\""));
    assert_int_equal(roster_hear(fixture->roster, NULL, &diag), ERR_OK);
    turn(fixture, &workers, "", "");
    assert_true(says(fixture, "\"patient\":true"));
    fixture->now_ns += 999 * MS_NS;
    turn(fixture, &workers, "", "");
    assert_true(says(fixture, "\"patient\":true"));
    fixture->now_ns += 2 * MS_NS;
    turn(fixture, &workers, "", "");
    assert_false(says(fixture, "\"patient\""));
    strbuf_release(&workers);
}

static void work_of_an_earlier_scheduler_is_found(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    for (uint64_t token = 1; token <= 4; token++) {
        struct work_id id = {token, NONCE, "run", "task", "1"};
        roster_ask(fixture->roster, &id, token == 4, WORK_RUN);
    }
    add_worker(&workers, "a", "a,any", 4, "up", true);
    turn(fixture,
         &workers,
         "{\"token\":1,\"worker\":\"a\",\"state\":\"assigned\"},"
         "{\"token\":2,\"worker\":\"a\",\"state\":\"started\",\"report\":"
         "\"{\\\"token\\\":2,\\\"type\\\":\\\"started\\\",\\\"pid\\\":5}\"}",
         "");
    /* 3 was never given to anyone; 4 had begun, and its row is gone. */
    assert_string_equal(strbuf_text(&fixture->reports),
                        "2 started at a;4 lost;3 unknown;");
    /* What runs is left to its worker, which takes nothing more. */
    strbuf_clear(&workers);
    add_worker(&workers, "a", "a,any", 4, "draining", true);
    static const char rows[] =
        "{\"token\":1,\"worker\":\"a\",\"state\":\"assigned\"},"
        "{\"token\":2,\"worker\":\"a\",\"state\":\"started\",\"report\":"
        "\"{\\\"token\\\":2,\\\"type\\\":\\\"started\\\",\\\"pid\\\":5}\"}";
    turn(fixture, &workers, rows, "");
    turn(fixture, &workers, rows, "");
    assert_true(
        says(fixture, "\"recalls\":[{\"token\":1,\"from_worker\":\"a\"}]"));
    strbuf_release(&workers);
}

static void what_was_not_placed_is_withdrawn_at_once(void **state)
{
    struct fixture *fixture = *state;
    assign(fixture, 1, NULL, NULL);
    roster_want(fixture->roster, 1, WORK_CANCEL);
    assert_string_equal(strbuf_text(&fixture->reports), "1 refused;");
    roster_assign(fixture->roster,
                  &(struct work_order){
                      .id = {2, NONCE, "run", "task", "1"},
                      .want = WORK_STOP,
                  });
    assert_string_equal(strbuf_text(&fixture->reports), "1 refused;2 refused;");
}

static void a_session_speaks_only_for_itself(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    struct work_id id = {5, NONCE, "run", "task", "1"};
    roster_ask(fixture->roster, &id, false, WORK_RUN);
    add_worker(&workers, "a", "a,any", 4, "up", true);
    static const char row[] =
        "{\"token\":5,\"worker\":\"a\",\"state\":\"accepted\"}";
    turn(fixture,
         &workers,
         row,
         "{\"number\":1,\"session\":true,\"worker\":\"a\",\"token\":5,"
         "\"who\":\"w\",\"request\":\"{}\"},"
         "{\"number\":2,\"session\":true,\"worker\":\"b\",\"token\":5,"
         "\"who\":\"w\",\"request\":\"{}\"},"
         "{\"number\":3,\"session\":true,\"worker\":\"a\",\"token\":6,"
         "\"who\":\"w\",\"request\":\"{}\"}");
    assert_string_equal(strbuf_text(&fixture->requests),
                        "1 {} 5;2 {} 0;3 {} 0;");
    strbuf_release(&workers);
}

/* A request of a client that was not answered yet; or of a session. */
#define ASK(number, session)                                                   \
    "{\"number\":" number ",\"session\":" session                              \
    ",\"who\":\"w\",\"request\":\"{}\"}"

static void a_request_that_comes_again_is_heard_once(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    struct diag diag = {0};
    turn(fixture, &workers, "", ASK("1", "false"));
    assert_true(says(fixture, "\"again\":true")); /* its first turn */
    turn(fixture, &workers, "", ASK("1", "false"));
    assert_false(says(fixture, "\"again\""));
    assert_string_equal(strbuf_text(&fixture->requests), "1 {} 0;");
    assert_int_equal(roster_hear(fixture->roster, NULL, &diag), ERR_OK);
    turn(fixture, &workers, "", ASK("1", "false") "," ASK("2", "false"));
    assert_true(says(fixture, "\"again\":true"));
    assert_string_equal(strbuf_text(&fixture->requests), "1 {} 0;2 {} 0;");
    strbuf_release(&workers);
}

static void a_brief_turn_only_brings_requests(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    struct diag diag = {0};
    add_worker(&workers, "a", "a,any", 1, "up", true);
    turn(fixture, &workers, "", "");
    assign(fixture, 1, NULL, NULL);
    turn(fixture,
         &workers,
         "{\"token\":1,\"worker\":\"a\",\"instance\":\"i\","
         "\"state\":\"assigned\"}",
         "");
    strbuf_clear(&fixture->said);
    roster_say_brief(fixture->roster, &fixture->said);
    assert_string_equal(strbuf_text(&fixture->said), "{\"epoch\":3}");
    assert_int_equal(
        roster_hear(fixture->roster,
                    "{\"brief\":true,\"asks\":[" ASK("7", "false") "]}",
                    &diag),
        ERR_OK);
    assert_string_equal(strbuf_text(&fixture->requests), "7 {} 0;");
    assert_string_equal(strbuf_text(&fixture->reports), ""); /* it has a row */
    strbuf_release(&workers);
}

static void only_answers_to_sessions_wait_for_the_disk(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    turn(fixture, &workers, "", ASK("1", "false") "," ASK("2", "true"));
    assert_true(says(fixture, "\"durable\":true")); /* its first turn */
    turn(fixture, &workers, "", "");
    assert_false(says(fixture, "\"durable\""));
    roster_answer(fixture->roster, 1, "{}");
    turn(fixture, &workers, "", "");
    assert_true(says(fixture, "\"answers\""));
    assert_false(says(fixture, "\"durable\""));
    roster_answer(fixture->roster, 2, "{}");
    turn(fixture, &workers, "", "");
    assert_true(says(fixture, "\"durable\":true"));
    strbuf_release(&workers);
}

static void an_answer_waits_for_the_worker_of_an_order(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    add_worker(&workers, "a", "a,any", 2, "up", true);
    turn(fixture, &workers, "", ASK("1", "false"));
    roster_answer(fixture->roster, 1, "{}");
    assert_true(roster_has_news(fixture->roster));
    assert_false(roster_may_wait(fixture->roster)); /* nobody comes */
    assign(fixture, 1, NULL, NULL);
    assert_false(roster_may_wait(fixture->roster)); /* the order is news */
    turn(fixture,
         &workers,
         "{\"token\":1,\"worker\":\"a\",\"instance\":\"i\","
         "\"state\":\"assigned\"}",
         ASK("2", "false"));
    assert_false(roster_has_news(fixture->roster));
    roster_answer(fixture->roster, 2, "{}");
    assert_true(roster_has_news(fixture->roster));
    assert_true(roster_may_wait(fixture->roster));
    turn(fixture,
         &workers,
         "{\"token\":1,\"worker\":\"a\",\"instance\":\"i\","
         "\"state\":\"accepted\"}",
         ASK("3", "false"));
    roster_answer(fixture->roster, 3, "{}");
    assert_false(roster_may_wait(fixture->roster));
    strbuf_release(&workers);
}

static void a_superseded_scheduler_is_told(void **state)
{
    struct fixture *fixture = *state;
    struct diag diag = {0};
    assert_int_equal(
        roster_hear(fixture->roster, "{\"superseded\":true}", &diag),
        ERR_CONFLICT);
    assert_int_equal(roster_hear(fixture->roster, "{}", &diag), ERR_CORRUPT);
    assert_int_equal(roster_hear(fixture->roster, "", &diag), ERR_CORRUPT);
}

static void an_order_that_comes_again_is_one(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    add_worker(&workers, "a", "a,any", 4, "up", true);
    turn(fixture, &workers, "", "");
    assign(fixture, 1, NULL, NULL);
    assign(fixture, 1, NULL, NULL);
    struct work_id id = {1, NONCE, "run", "task", "1"};
    roster_ask(fixture->roster, &id, true, WORK_RUN); /* it is known */
    roster_want(fixture->roster, 9, WORK_STOP);       /* these are not */
    roster_tell(fixture->roster, 9, "text");
    turn(fixture, &workers, "", "");
    assert_given(fixture, 1, "a");
    const char *body = strstr(strbuf_text(&fixture->said), "\"body\"");
    assert_non_null(body);
    assert_null(strstr(body + 1, "\"body\""));
    strbuf_release(&workers);
}

static void orders_are_given_in_their_order(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    add_worker(&workers, "a", "a,any", 2, "up", true);
    turn(fixture, &workers, "", "");
    assign(fixture, 3, NULL, NULL);
    assign(fixture, 1, NULL, NULL);
    assign(fixture, 2, NULL, NULL);
    turn(fixture, &workers, "", "");
    assert_given(fixture, 1, "a");
    assert_given(fixture, 2, "a");
    assert_false(says(fixture, "\"token\":3"));
    strbuf_release(&workers);
}

/* It comes with the turn after that in which the session has a row. */
static void a_message_waits_for_the_row(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    struct strbuf out = {0};
    assign(fixture, 1, NULL, NULL);
    roster_tell(fixture->roster, 1, "hello");
    turn(fixture, &workers, "", ""); /* nobody can have it */
    assert_false(says(fixture, "\"tells\""));
    add_worker(&workers, "a", "a,any", 2, "up", true);
    turn(fixture, &workers, "", "");
    static const char row[] =
        "{\"token\":1,\"worker\":\"a\",\"state\":\"started\",\"report\":"
        "\"{\\\"token\\\":1,\\\"type\\\":\\\"started\\\"}\"}";
    turn(fixture, &workers, row, "");
    assert_false(says(fixture, "\"tells\""));
    turn(fixture, &workers, row, "");
    assert_true(says(fixture, "\"tells\":[{\"token\":1,\"text\":\"hello\"}]"));
    offer(fixture, 2, &out);
    roster_tell(fixture->roster, 2, "later");
    turn(fixture, &workers, row, "");
    assert_false(says(fixture, "\"tells\""));
    strbuf_release(&workers);
    strbuf_release(&out);
}

static void impossible_slots_are_none(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    add_worker(&workers, "a", "a,any", -1, "up", true);
    strbuf_adds(&workers,
                ",{\"name\":\"b\",\"state\":\"up\",\"slots\":4294967295,"
                "\"fresh\":true,\"trouble\":\"\"}");
    turn(fixture, &workers, "", "");
    assert_int_equal(fixture->slots, 0);
    strbuf_release(&workers);
}

/* Give an order to a worker, and hear of it in a row of this state. */
static void hear_state(struct fixture *fixture,
                       uint64_t token,
                       const char *state,
                       const char *report)
{
    struct strbuf workers = {0};
    struct strbuf row = {0};
    add_worker(&workers, "a", "a,any", 4, "up", true);
    turn(fixture, &workers, "", "");
    assign(fixture, token, NULL, NULL);
    strbuf_addf(&row,
                "{\"token\":%llu,\"worker\":\"a\",\"state\":\"%s\","
                "\"report\":\"%s\"}",
                (unsigned long long)token,
                state,
                report);
    turn(fixture, &workers, strbuf_text(&row), "");
    strbuf_release(&workers);
    strbuf_release(&row);
}

static void reports_that_cannot_be_are_of_lost_work(void **state)
{
    struct fixture *fixture = *state;
    hear_state(fixture, 1, "ended", "damaged");
    assert_string_equal(strbuf_text(&fixture->reports), "1 lost;");
    hear_state(fixture,
               2,
               "ended",
               "{\\\"token\\\":2,\\\"type\\\":\\\"started\\\"}");
    assert_string_equal(strbuf_text(&fixture->reports), "2 lost;");
    /* That of a start is not needed. */
    hear_state(fixture, 3, "started", "damaged");
    assert_string_equal(strbuf_text(&fixture->reports), "");
    hear_state(fixture,
               4,
               "started",
               "{\\\"token\\\":4,\\\"type\\\":\\\"refused\\\"}");
    assert_string_equal(strbuf_text(&fixture->reports), "");
}

static void what_is_unwanted_and_gone_was_withdrawn(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    hear_state(fixture, 1, "assigned", "");
    roster_want(fixture->roster, 1, WORK_CANCEL);
    turn(fixture, &workers, "", "");
    assert_string_equal(strbuf_text(&fixture->reports), "1 refused;");
    strbuf_release(&workers);
}

/* It has no worker yet, so nobody can speak for it. */
static void a_request_for_an_order_without_a_worker_has_no_token(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf workers = {0};
    assign(fixture, 5, NULL, NULL);
    turn(fixture,
         &workers,
         "",
         "{\"number\":1,\"session\":true,\"worker\":\"\",\"token\":5,"
         "\"who\":\"w\",\"request\":\"{}\"}");
    assert_string_equal(strbuf_text(&fixture->requests), "1 {} 0;");
    strbuf_release(&workers);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_order_waits_for_a_worker_with_its_label),
        CASE(workers_get_no_more_than_their_slots),
        CASE(a_worker_that_states_its_slots_comes_first),
        CASE(a_worker_gets_as_many_orders_as_it_has_slots),
        CASE(stated_slots_are_used_up_before_unlimited_ones),
        CASE(equal_workers_differ_by_their_number_of_labels),
        CASE(each_checkout_has_its_worker),
        CASE(work_stays_near_its_checkout),
        CASE(what_nobody_accepted_moves_to_another_worker),
        CASE(a_failed_turn_is_repeated),
        CASE(nothing_is_said_of_an_offer_before_it_is_written),
        CASE(an_offer_is_not_missed_by_a_turn_that_began_before),
        CASE(offers_are_made_only_of_free_slots_in_turn),
        CASE(no_worker_is_lost_soon_after_an_outage),
        CASE(work_of_an_earlier_scheduler_is_found),
        CASE(what_was_not_placed_is_withdrawn_at_once),
        CASE(a_session_speaks_only_for_itself),
        CASE(a_request_that_comes_again_is_heard_once),
        CASE(a_brief_turn_only_brings_requests),
        CASE(only_answers_to_sessions_wait_for_the_disk),
        CASE(an_answer_waits_for_the_worker_of_an_order),
        CASE(a_superseded_scheduler_is_told),
        CASE(an_order_that_comes_again_is_one),
        CASE(orders_are_given_in_their_order),
        CASE(a_message_waits_for_the_row),
        CASE(impossible_slots_are_none),
        CASE(reports_that_cannot_be_are_of_lost_work),
        CASE(what_is_unwanted_and_gone_was_withdrawn),
        CASE(a_request_for_an_order_without_a_worker_has_no_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
