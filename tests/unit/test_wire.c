/* SPDX-License-Identifier: MIT */
#include "work/wire.h"

#include "base/macros.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const argv[] = {"make", "a b", "\"x\"\n", NULL};
static const char *const env[] = {"A=1", "B=two words", "C="};
static const char *const items[] = {"target", "node_modules"};
static const char *const paths[] = {"~/.cache", NULL};
static const struct work_file files[] = {
    {.name = "feedback",
     .variable = "SLUICE_FEEDBACK",
     .text = "tab\there \xc3\xa4",
     .len = 11},
    {.name = "brief", .text = "", .len = 0},
};
static const struct work_member members[] = {
    {.task = "a/merge", .group = "a", .title = "T", .agent = "claude"},
    {.task = "b/merge", .group = "b"},
};
static const struct work_before before[] = {{.task = "c/merge", .name = "2"}};

/* An order with every member. */
static struct work_order whole(void)
{
    return (struct work_order){
        .id = {7, "0123456789abcdef0123456789abcdef", "run", "a/merge", "3"},
        .folder = "/plan",
        .checkout = true,
        .prepare = "make deps",
        .argv = argv,
        .env = env,
        .env_count = 3,
        .files = files,
        .file_count = 2,
        .timeout_ns = EXEC_NEVER,
        .idle_ns = 5,
        .checkpoint_ns = 6,
        .grace_ns = 7,
        .git = {.repo = "api",
                .url = "ssh://hub/api.git",
                .base = "dev",
                .shared = true,
                .created_ns = INT64_MAX,
                .merge = true,
                .update = true,
                .round = 4,
                .gate = "make test",
                .repair = "./repair",
                .message = "m",
                .keep = {items, 2},
                .copy = {items, 1},
                .fetch = true,
                .once = true,
                .gate_retry = 2,
                .members = members,
                .member_count = 2,
                .before = before,
                .before_count = 1},
        .sandbox = {.on = true, .write = paths, .read = paths, .env = env + 3},
    };
}

static void assert_same(const char *a, const char *b)
{
    assert_true((a == NULL) == (b == NULL));
    if (a != NULL) {
        assert_string_equal(a, b);
    }
}

static void an_order_arrives_as_it_was_sent(void **state)
{
    (void)state;
    struct work_order sent = whole();
    static const char *const none[] = {NULL};
    sent.sandbox.env = none;
    struct strbuf text = {0};
    struct strbuf again = {0};
    struct wire_order got;
    struct diag diag = {0};
    wire_add_order(&text, &sent);
    assert_int_equal(wire_read_order(&got, strbuf_text(&text), &diag), ERR_OK);
    assert_true(got.order.id.token == 7);
    assert_same(got.order.id.nonce, sent.id.nonce);
    assert_same(got.order.argv[2], "\"x\"\n");
    assert_null(got.order.argv[3]);
    assert_int_equal(got.order.files[0].len, 11);
    assert_same(got.order.git.members[1].title, NULL);
    assert_same(got.order.git.before[0].task, "c/merge");
    assert_same(got.order.git.before[0].name, "2");
    assert_same(got.order.git.repo, "api");
    assert_same(got.order.git.url, "ssh://hub/api.git");
    assert_same(got.order.git.base, "dev");
    assert_true(got.order.git.created_ns == INT64_MAX);
    assert_int_equal(got.order.git.round, 4);
    assert_same(got.order.git.gate, "make test");
    assert_same(got.order.git.repair, "./repair");
    assert_same(got.order.git.message, "m");
    assert_int_equal(got.order.git.keep.count, 2);
    assert_int_equal(got.order.git.copy.count, 1);
    assert_true(got.order.git.shared && got.order.git.merge);
    assert_true(got.order.git.update && got.order.git.fetch);
    assert_true(got.order.git.once);
    assert_int_equal(got.order.git.gate_retry, 2);
    assert_true(got.order.idle_ns == 5 && got.order.checkpoint_ns == 6);
    assert_true(got.order.grace_ns == 7);
    assert_same(got.order.sandbox.write[0], "~/.cache");
    assert_true(got.order.timeout_ns == EXEC_NEVER);
    wire_add_order(&again, &got.order); /* so nothing is lost on the way */
    assert_string_equal(strbuf_text(&again), strbuf_text(&text));
    wire_release_order(&got);
    strbuf_release(&text);
    strbuf_release(&again);
}

static void a_damaged_order_is_refused(void **state)
{
    (void)state;
    struct work_order sent = whole();
    struct strbuf text = {0};
    sent.sandbox.on = false;
    wire_add_order(&text, &sent);
    static const char *const needed[] = {"\"token\":7",
                                         "\"nonce\":",
                                         "\"run\":",
                                         "\"task\":",
                                         "\"name\":",
                                         "\"folder\"",
                                         "\"members\"",
                                         "\"A=1\""};
    for (size_t ix = 0; ix < ARRAY_COUNT(needed); ix++) {
        struct strbuf bad = {0};
        struct wire_order got;
        struct diag diag = {0};
        strbuf_adds(&bad, strbuf_text(&text));
        char *at = strstr(bad.text, needed[ix]);
        assert_non_null(at);
        at[1] = '_';
        if (ix + 1 == ARRAY_COUNT(needed)) {
            at[2] = '_'; /* a variable without a value */
        }
        assert_int_equal(wire_read_order(&got, strbuf_text(&bad), &diag),
                         ERR_CORRUPT);
        wire_release_order(&got);
        strbuf_release(&bad);
    }
    static const char *const texts[] = {"", "{", "[]", "null", "{}", "7"};
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        struct wire_order got;
        struct diag diag = {0};
        assert_int_equal(wire_read_order(&got, texts[ix], &diag), ERR_CORRUPT);
        wire_release_order(&got);
    }
    strbuf_release(&text);
}

/* Change a part of the text of an order; whether it can still be read. */
static enum err read_changed(const char *part, const char *change)
{
    struct work_order sent = whole();
    struct strbuf text = {0};
    struct strbuf changed = {0};
    struct wire_order got;
    struct diag diag = {0};
    sent.sandbox.on = false;
    wire_add_order(&text, &sent);
    const char *at = strstr(text.text, part);
    assert_non_null(at);
    strbuf_add(&changed, text.text, (size_t)(at - text.text));
    strbuf_adds(&changed, change);
    strbuf_adds(&changed, at + strlen(part));
    enum err err = wire_read_order(&got, strbuf_text(&changed), &diag);
    wire_release_order(&got);
    strbuf_release(&text);
    strbuf_release(&changed);
    return err;
}

/* What it would do must be clear, and in its own directory. */
static void a_part_of_an_order_is_not_enough(void **state)
{
    (void)state;
    static const char *const changes[][2] = {
        {"\"0123456789abcdef0123456789abcdef\"",
         "\"0123456789abcdef0123456789abcdef0\""},
        {"\"task\":\"a/merge\"", "\"task\":\"../merge\""},
        {"\"name\":\"feedback\"", "\"name\":null"},
        {"\"name\":\"feedback\"", "\"name\":\"../feedback\""},
        {"\"task\":\"a/merge\",\"group\"", "\"group\""},
        {"\"group\":\"b\"", "\"group\":7"},
        {"\"task\":\"c/merge\"", "\"task\":7"},
        {"\"name\":\"2\"", "\"name\":2"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(changes); ix++) {
        assert_int_equal(read_changed(changes[ix][0], changes[ix][1]),
                         ERR_CORRUPT);
    }
    assert_int_equal(read_changed("\"argv\":", "\"x\":"), ERR_OK);
    assert_int_equal(read_changed("\"make\"", "7"), ERR_OK); /* an empty word */
}

static void an_order_needs_something_to_do(void **state)
{
    (void)state;
    static const char *const ways[] = {
        "\"shell\":\"true\"",
        "\"argv\":[\"true\"]",
        "\"agent\":true",
        "\"git\":{\"repo\":\"r\",\"merge\":true,\"members\":"
        "[{\"task\":\"t\",\"group\":\"g\"}]}",
        "\"git\":{\"repo\":\"r\",\"base_gate\":true,\"members\":"
        "[{\"task\":\"t\",\"group\":\"g\"}]}",
        "\"git\":{}",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(ways); ix++) {
        struct strbuf text = {0};
        struct wire_order got;
        struct diag diag = {0};
        strbuf_addf(&text,
                    "{\"token\":7,\"nonce\":\"n\",\"run\":\"r\","
                    "\"task\":\"t\",\"name\":\"1\",\"folder\":\"/\",%s}",
                    ways[ix]);
        assert_int_equal(wire_read_order(&got, strbuf_text(&text), &diag),
                         ix + 1 < ARRAY_COUNT(ways) ? ERR_OK : ERR_CORRUPT);
        wire_release_order(&got);
        strbuf_release(&text);
    }
}

static void wants_have_names(void **state)
{
    (void)state;
    for (int want = WORK_RUN; want <= WORK_STOP; want++) {
        assert_int_equal(wire_read_want(wire_want_name((enum work_want)want)),
                         want);
    }
    assert_int_equal(wire_read_want("of a later version"), WORK_STOP);
}

static void an_end_arrives_with_its_result(void **state)
{
    (void)state;
    struct attempt_result result = {.present = true};
    struct work_report sent = {
        .token = 9,
        .type = WORK_ENDED,
        .exit = {.cause = ATTEMPT_LEASE,
                 .code = -1,
                 .signal = 15,
                 .error = 2,
                 .begun_ns = 4,
                 .ended_ns = 5,
                 .cpu_ns = 3,
                 .log_bytes = 6,
                 .log_cut_bytes = 7},
        .result = &result,
        .log = "last\nlines\n",
    };
    struct strbuf text = {0};
    struct wire_report got;
    struct diag diag = {0};
    wire_add_report(&text,
                    &sent,
                    "{\"outcome\": \"changes\", \"reason\": \"r\"}");
    assert_int_equal(wire_read_report(&got, strbuf_text(&text), &diag), ERR_OK);
    assert_int_equal(got.report.type, WORK_ENDED);
    assert_int_equal(got.report.exit.cause, ATTEMPT_LEASE);
    assert_int_equal(got.report.exit.code, -1);
    assert_int_equal(got.report.exit.signal, 15);
    assert_int_equal(got.report.exit.error, 2);
    assert_int_equal(got.report.exit.begun_ns, 4);
    assert_int_equal(got.report.exit.ended_ns, 5);
    assert_int_equal(got.report.exit.cpu_ns, 3);
    assert_int_equal(got.report.exit.log_bytes, 6);
    assert_int_equal(got.report.exit.log_cut_bytes, 7);
    assert_true(got.report.result->has_outcome);
    assert_string_equal(got.report.result->reason, "r");
    assert_string_equal(got.report.log, "last\nlines\n");
    wire_release_report(&got);
    strbuf_release(&text);
}

static void other_reports_arrive(void **state)
{
    (void)state;
    struct work_report sent[] = {
        {.token = 1, .type = WORK_STARTED, .mark = {5, 6, "boot", ""}},
        {.token = 2,
         .type = WORK_REFUSED,
         .error = ENOSPC,
         .text = "full",
         .elsewhere = true},
        {.token = 3, .type = WORK_LOST, .vanished = true, .log = ""},
        {.token = 4,
         .type = WORK_LOST,
         .result_err = ERR_INVALID,
         .text = "bad",
         .log = ""},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(sent); ix++) {
        struct strbuf text = {0};
        struct wire_report got;
        struct diag diag = {0};
        wire_add_report(&text, &sent[ix], NULL);
        assert_int_equal(wire_read_report(&got, strbuf_text(&text), &diag),
                         ERR_OK);
        const struct work_report *report = &got.report;
        assert_int_equal(report->type, sent[ix].type);
        assert_true(report->token == sent[ix].token);
        assert_true(report->mark.pid == sent[ix].mark.pid);
        assert_string_equal(report->mark.boot_id, sent[ix].mark.boot_id);
        assert_int_equal(report->error, sent[ix].error);
        assert_int_equal(report->elsewhere, sent[ix].elsewhere);
        assert_int_equal(report->vanished, sent[ix].vanished);
        assert_int_equal(report->result_err, sent[ix].result_err);
        assert_same(report->text, sent[ix].text);
        assert_true((report->type == WORK_LOST) == (report->result != NULL));
        wire_release_report(&got);
        strbuf_release(&text);
    }
}

static void a_damaged_report_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "[]",
        "{\"token\":1}",
        "{\"token\":1,\"type\":\"other\"}",
        "{\"type\":\"lost\"}",
        "{\"token\":1,\"type\":\"ended\"}",
        "{\"token\":1,\"type\":\"ended\",\"exit\":{\"cause\":\"x\"}}",
        "{\"token\":1,\"type\":\"ended\",\"exit\":{}}",
        "{\"token\":1,\"type\":\"lost\",\"exit\":{\"cause\":\"exit\"}}",
        "{\"token\":1,\"type\":\"lost\",\"result\":\"{\"}",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        struct wire_report got;
        struct diag diag = {0};
        assert_int_equal(wire_read_report(&got, texts[ix], &diag), ERR_CORRUPT);
        assert_true(diag.text[0] != '\0');
        wire_release_report(&got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_arrives_as_it_was_sent),
        cmocka_unit_test(a_damaged_order_is_refused),
        cmocka_unit_test(a_part_of_an_order_is_not_enough),
        cmocka_unit_test(an_order_needs_something_to_do),
        cmocka_unit_test(wants_have_names),
        cmocka_unit_test(an_end_arrives_with_its_result),
        cmocka_unit_test(other_reports_arrive),
        cmocka_unit_test(a_damaged_report_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
