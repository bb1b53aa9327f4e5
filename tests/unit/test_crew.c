/* SPDX-License-Identifier: MIT */
/*
 * The crew between a store, which is a text for each turn, and a worker whose
 * machine is a table of answers.
 */
#include "work/crew.h"

#include "base/duration.h"
#include "base/jsonw.h"
#include "base/macros.h"
#include "base/mem.h"
#include "work/wire.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define BOOT "11111111-2222-3333-4444-555555555555"
#define NONCE "0123456789abcdef0123456789abcdef"

enum { LEASE_MS = 3000, SLOTS = 4 };

struct fixture {
    struct crew *crew;
    struct worker *worker;
    int64_t now_ns;
    struct strbuf trace; /* what crew and worker have done, in words */
    struct strbuf said;  /* in the last turn */
    int64_t lease_ms;    /* of the next results */
    const char *accepted;
    const char *asks;
    const char *peeks;
    const char *wanted;
    /* What the machine answers. */
    struct attempt_found found;
    const char *here; /* the end of a path that exists; NULL: all do */
    bool makes;
    bool reads;
    bool space;
};

static void note(struct fixture *fixture, const char *format, ...)
    PRINTF_LIKE(2, 3);
static void note(struct fixture *fixture, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    strbuf_addf(&fixture->trace, "%s;", text);
}

/* --- the machine -------------------------------------------------------- */

static int64_t fake_now_ns(void *ctx)
{
    return ((struct fixture *)ctx)->now_ns;
}

static enum err
fake_start(void *ctx, const struct exec_request *request, struct diag *diag)
{
    struct strbuf words = {0};
    (void)diag;
    for (uint32_t ix = 0; ix < request->argc; ix++) {
        if (strcmp(request->argv[ix], "--before") == 0) {
            strbuf_addf(&words, " before %s", request->argv[ix + 1]);
        }
    }
    note(ctx,
         "start %llu in %s%s",
         (unsigned long long)request->id,
         request->folder,
         strbuf_text(&words));
    strbuf_release(&words);
    return ERR_OK;
}

static enum err fake_end(void *ctx,
                         const struct work_mark *mark,
                         uint64_t token,
                         enum exec_end how)
{
    (void)mark;
    (void)how;
    note(ctx, "stop %llu", (unsigned long long)token);
    return ERR_OK;
}

static enum err
fake_watch(void *ctx, const struct work_mark *mark, uint64_t token)
{
    (void)mark;
    note(ctx, "watch %llu", (unsigned long long)token);
    return ERR_OK;
}

static enum err fake_inspect(void *ctx,
                             const char *dir,
                             const char *boot_id,
                             struct attempt_found *out,
                             struct diag *diag)
{
    (void)dir;
    (void)diag;
    note(ctx, "inspect%s", strcmp(boot_id, BOOT) == 0 ? "" : " of no boot");
    *out = ((struct fixture *)ctx)->found;
    return ERR_OK;
}

static enum err fake_fence(void *ctx,
                           const char *dir,
                           const char *nonce,
                           bool *fenced_out,
                           struct diag *diag)
{
    (void)ctx;
    (void)dir;
    (void)nonce;
    (void)diag;
    *fenced_out = true;
    return ERR_OK;
}

static bool fake_has_strays(void *ctx, const char *dir)
{
    (void)ctx;
    (void)dir;
    return false;
}

static void fake_kill_strays(void *ctx, const char *dir)
{
    (void)ctx;
    (void)dir;
}

static enum err fake_result(void *ctx,
                            const char *dir,
                            struct attempt_result *out,
                            struct diag *diag)
{
    (void)ctx;
    (void)dir;
    (void)diag;
    out->present = true;
    return ERR_OK;
}

static enum err fake_put(void *ctx,
                         const char *dir,
                         const char *name,
                         const struct strbuf *text,
                         struct diag *diag)
{
    (void)dir;
    (void)diag;
    note(ctx, "%s %s", name, strbuf_text(text));
    return ERR_OK;
}

static const struct work_machine machine = {
    .now_ns = fake_now_ns,
    .start = fake_start,
    .end = fake_end,
    .watch = fake_watch,
    .inspect = fake_inspect,
    .fence = fake_fence,
    .has_strays = fake_has_strays,
    .kill_strays = fake_kill_strays,
    .result = fake_result,
    .put = fake_put,
};

/* --- what the crew is given --------------------------------------------- */

static void
on_lease(void *ctx, uint64_t generation, int64_t until_ns, int64_t grace_ns)
{
    struct fixture *fixture = ctx;
    assert_int_equal(generation, 5);
    assert_int_equal(grace_ns, 200 * MS_NS);
    assert_true(until_ns == (fixture->lease_ms > 0
                                 ? fixture->now_ns + fixture->lease_ms * MS_NS
                                 : INT64_MAX));
}

static void on_say(void *ctx, const char *text)
{
    note(ctx, "say %.20s", text);
}

static void on_answer(void *ctx, uint64_t request, const char *json)
{
    note(ctx,
         "answer %llu %s",
         (unsigned long long)request,
         json != NULL ? json : "none");
}

static bool on_has_space(void *ctx)
{
    return ((struct fixture *)ctx)->space;
}

static bool on_exists(void *ctx, const char *path)
{
    const char *here = ((struct fixture *)ctx)->here;
    size_t len = here != NULL ? strlen(here) : 0;
    return here == NULL || (strlen(path) >= len &&
                            strcmp(path + strlen(path) - len, here) == 0);
}

static bool on_make_dir(void *ctx, const char *path)
{
    struct fixture *fixture = ctx;
    note(fixture, "make %s", path);
    return fixture->makes;
}

static bool
on_read(void *ctx, const char *dir, const char *name, struct strbuf *out)
{
    assert_string_equal(name, "result");
    assert_string_equal(dir, "/place/runs/run/task/1");
    strbuf_adds(out, "{}");
    return ((struct fixture *)ctx)->reads;
}

static void on_report(void *ctx, const struct work_report *report)
{
    crew_reported(((struct fixture *)ctx)->crew, report);
}

static int set_up(void **state)
{
    struct fixture *fixture = mem_zalloc(1, sizeof(*fixture));
    static char text[] = "/place";
    static const struct store_place place = {
        .address = text,
        .shown = text,
        .id = text,
        .home = text,
    };
    *fixture = (struct fixture){
        .now_ns = SECOND_NS,
        .lease_ms = LEASE_MS,
        .accepted = "",
        .asks = "",
        .peeks = "",
        .wanted = "",
        .makes = true,
        .reads = true,
    };
    fixture->crew = crew_new(&(struct crew_options){
        .name = "w",
        .labels = "w,any",
        .slots = SLOTS,
        .home = "/place",
        .home_id = "id",
        .host = "host",
        .boot_id = BOOT,
        .proto = WIRE_PROTO,
        .instance = "i",
        .now_ns = fake_now_ns,
        .lease = on_lease,
        .say = on_say,
        .answer = on_answer,
        .has_space = on_has_space,
        .exists = on_exists,
        .make_dir = on_make_dir,
        .read = on_read,
        .ctx = fixture,
    });
    fixture->worker = worker_new(&(struct worker_options){
        .machine = &machine,
        .ctx = fixture,
        .place = &place,
        .git = "/git",
        .agent = "/agent",
        .sandbox = "/sandbox",
        .program = "/sluice",
        .boot_id = BOOT,
        .report = on_report,
        .link = fixture,
    });
    crew_set_worker(fixture->crew, fixture->worker);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    crew_free(fixture->crew);
    worker_free(fixture->worker);
    strbuf_release(&fixture->trace);
    strbuf_release(&fixture->said);
    mem_free(fixture);
    return 0;
}

/* --- turns -------------------------------------------------------------- */

/* What was done since the last time. */
#define DONE(fixture, expected)                                                \
    do {                                                                       \
        assert_string_equal(strbuf_text(&(fixture)->trace), expected);         \
        strbuf_clear(&(fixture)->trace);                                       \
    } while (0)

static bool says(const struct fixture *fixture, const char *text)
{
    return strstr(strbuf_text(&fixture->said), text) != NULL;
}

/* Append a row. `body`: NULL, or the order as the store has it. */
static void add_row(struct strbuf *rows,
                    uint64_t token,
                    const char *state,
                    const char *want,
                    const char *body)
{
    struct jsonw json = {.out = rows};
    strbuf_adds(rows, rows->len > 0 ? "," : "");
    jsonw_object(&json, NULL);
    jsonw_int(&json, "token", (int64_t)token);
    jsonw_text(&json, "nonce", NONCE);
    jsonw_text(&json, "state", state);
    jsonw_text(&json, "want", want);
    jsonw_text(&json, "report", "not one");
    if (body != NULL) {
        jsonw_text(&json, "body", body);
    }
    jsonw_object_end(&json);
}

/* The same with an order of a session without git. */
static void
add_order_row(struct strbuf *rows, uint64_t token, const char *state)
{
    struct strbuf body = {0};
    wire_add_order(&body,
                   &(struct work_order){
                       .id = {token, NONCE, "run", "task", "1"},
                       .folder = "/folder",
                       .shell = "true",
                   });
    add_row(rows, token, state, "run", strbuf_text(&body));
    strbuf_release(&body);
}

static void say(struct fixture *fixture)
{
    strbuf_clear(&fixture->said);
    crew_say(fixture->crew, &fixture->said);
}

static void hear(struct fixture *fixture, const char *rows)
{
    struct strbuf text = {0};
    struct diag diag = {0};
    strbuf_addf(&text,
                "{\"state\":\"ok\",\"generation\":5,\"lease_ms\":%lld,"
                "\"margin_ms\":300,\"rows\":[%s],\"accepted\":[%s],"
                "\"asks\":{%s},\"peeks\":[%s],\"wanted\":\"%s\",\"gone\":true}",
                (long long)fixture->lease_ms,
                rows,
                fixture->accepted,
                fixture->asks,
                fixture->peeks,
                fixture->wanted);
    assert_int_equal(
        crew_hear(fixture->crew, strbuf_text(&text), fixture->now_ns, &diag),
        ERR_OK);
    strbuf_release(&text);
}

static void turn(struct fixture *fixture, const char *rows)
{
    say(fixture);
    hear(fixture, rows);
}

/* A turn whose result is a refusal. */
static enum err refuse(struct fixture *fixture, const char *text)
{
    struct diag diag = {0};
    say(fixture);
    return crew_hear(fixture->crew, text, fixture->now_ns, &diag);
}

/* Accept an order in a turn, and have it started. */
static void accept(struct fixture *fixture, uint64_t token)
{
    struct strbuf rows = {0};
    char accepted[24];
    (void)
        snprintf(accepted, sizeof(accepted), "%llu", (unsigned long long)token);
    fixture->accepted = accepted;
    add_order_row(&rows, token, "accepted");
    turn(fixture, strbuf_text(&rows));
    fixture->accepted = "";
    crew_tick(fixture->crew);
    strbuf_release(&rows);
}

/* The row of the order 7 in a later result. */
static const char *row_of_7(const char *state)
{
    static char text[256];
    struct strbuf row = {0};
    add_row(&row, 7, state, "run", NULL);
    (void)snprintf(text, sizeof(text), "%s", strbuf_text(&row));
    strbuf_release(&row);
    return text;
}

static void
exec_reports(struct fixture *fixture, enum exec_report_type type, int error)
{
    worker_reported(fixture->worker,
                    &(struct exec_report){
                        .type = type,
                        .id = 7,
                        .pid = 100,
                        .start_ticks = 5,
                        .error = error,
                    });
}

static void has_ended(struct fixture *fixture)
{
    fixture->found =
        (struct attempt_found){ATTEMPT_ENDED, .named = true, .nonce = NONCE};
    exec_reports(fixture, EXEC_ENDED, 0);
}

/* --- an order ----------------------------------------------------------- */

static void an_order_is_accepted_run_and_reported(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(crew_generation(fixture->crew), 0);
    accept(fixture, 7);
    DONE(fixture, "start 7 in /folder;");
    assert_true(says(fixture, "\"room\":4"));
    assert_int_equal(crew_generation(fixture->crew), 5);
    assert_int_equal(crew_count(fixture->crew), 1);
    assert_string_equal(crew_nonce(fixture->crew, 7), NONCE);
    assert_null(crew_nonce(fixture->crew, 8));
    exec_reports(fixture, EXEC_STARTED, 0);
    assert_true(crew_has_news(fixture->crew));
    say(fixture);
    assert_true(says(fixture, "\"to_state\":\"started\""));
    assert_true(says(fixture, "\"room\":3"));
    assert_false(crew_has_news(fixture->crew)); /* it is being said */
    hear(fixture, row_of_7("started"));
    assert_false(crew_has_news(fixture->crew));
    has_ended(fixture);
    turn(fixture, "");
    assert_true(says(fixture, "\"to_state\":\"ended\""));
    assert_true(says(fixture, "\"room\":4"));
    assert_true(says(fixture, "\"logs\""));
    assert_int_equal(crew_count(fixture->crew), 0);
}

static void a_turn_that_failed_is_said_again(void **state)
{
    struct fixture *fixture = *state;
    struct diag diag = {0};
    accept(fixture, 7);
    exec_reports(fixture, EXEC_STARTED, 0);
    say(fixture);
    assert_int_equal(crew_hear(fixture->crew, NULL, 0, &diag), ERR_OK);
    assert_true(crew_has_news(fixture->crew));
    turn(fixture, row_of_7("started"));
    assert_true(says(fixture, "\"to_state\":\"started\""));
}

/* The process before this one said it in a turn that came late. */
static void a_start_that_the_store_knows_is_not_said(void **state)
{
    struct fixture *fixture = *state;
    accept(fixture, 7);
    turn(fixture, row_of_7("started"));
    exec_reports(fixture, EXEC_STARTED, 0);
    turn(fixture, row_of_7("started"));
    assert_false(says(fixture, "\"moves\""));
}

static void a_report_of_forgotten_work_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    crew_free(NULL);
    turn(fixture, "");
    crew_reported(fixture->crew,
                  &(struct work_report){.token = 9, .type = WORK_LOST});
    assert_false(crew_has_news(fixture->crew));
}

static void a_result_that_cannot_be_read_is_read_again(void **state)
{
    struct fixture *fixture = *state;
    accept(fixture, 7);
    exec_reports(fixture, EXEC_STARTED, 0);
    turn(fixture, row_of_7("started"));
    fixture->reads = false;
    has_ended(fixture);
    assert_false(crew_has_news(fixture->crew));
    fixture->reads = true;
    crew_tick(fixture->crew);
    assert_true(crew_has_news(fixture->crew));
    turn(fixture, "");
    assert_true(says(fixture, "\"result\\\":\\\"{}"));
}

static void a_damaged_result_is_reported_without_it(void **state)
{
    struct fixture *fixture = *state;
    struct attempt_result result = {.present = true};
    accept(fixture, 7);
    crew_reported(fixture->crew,
                  &(struct work_report){
                      .token = 7,
                      .type = WORK_LOST,
                      .result = &result,
                      .result_err = ERR_INVALID,
                  });
    turn(fixture, "");
    assert_true(says(fixture, "\\\"result_err\\\":"));
    assert_false(says(fixture, "\\\"result\\\":"));
}

static void a_damaged_order_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf rows = {0};
    add_row(&rows, 7, "accepted", "run", "{}");
    turn(fixture, strbuf_text(&rows));
    crew_tick(fixture->crew);
    DONE(fixture, "");
    turn(fixture, strbuf_text(&rows)); /* its want is noted, no more */
    assert_true(says(fixture, "an order in the store is damaged"));
    assert_true(says(fixture, "\"room\":4"));
    assert_false(says(fixture, "\"logs\""));
    turn(fixture, "");
    assert_int_equal(crew_count(fixture->crew), 0);
    strbuf_release(&rows);
}

static void an_order_of_a_process_before_is_looked_for(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf rows = {0};
    add_order_row(&rows, 7, "started");
    turn(fixture, strbuf_text(&rows));
    /* Its report cannot be read: so it is of no boot. */
    DONE(fixture, "inspect of no boot;");
    assert_true(crew_has_news(fixture->crew));
    turn(fixture, "");
    assert_true(says(fixture, "\\\"type\\\":\\\"lost\\\""));
    strbuf_release(&rows);
}

static void an_unknown_order_is_started_again(void **state)
{
    struct fixture *fixture = *state;
    accept(fixture, 7);
    worker_respawn(fixture->worker); /* its server has died */
    assert_true(crew_pause_ns(fixture->crew) == SECOND_NS);
    crew_tick(fixture->crew);
    DONE(fixture, "start 7 in /folder;start 7 in /folder;");
}

static void the_order_of_an_unknown_row_comes_later(void **state)
{
    struct fixture *fixture = *state;
    turn(fixture, row_of_7("accepted"));
    assert_int_equal(crew_count(fixture->crew), 0);
    accept(fixture, 7);
    assert_int_equal(crew_count(fixture->crew), 1);
}

/* --- rows that are gone ------------------------------------------------- */

static void a_session_without_a_row_is_stopped(void **state)
{
    struct fixture *fixture = *state;
    accept(fixture, 7);
    exec_reports(fixture, EXEC_STARTED, 0);
    turn(fixture, row_of_7("started"));
    strbuf_clear(&fixture->trace);
    turn(fixture, "");
    DONE(fixture, "stop 7;");
    assert_null(crew_nonce(fixture->crew, 7));
    turn(fixture, ""); /* it is stopped once */
    DONE(fixture, "");
    assert_true(crew_pause_ns(fixture->crew) == SECOND_NS);
    has_ended(fixture);
    assert_false(crew_has_news(fixture->crew));
    say(fixture);
    assert_false(says(fixture, "\"moves\""));
    assert_true(says(fixture, "\"room\":3"));
    hear(fixture, "");
    crew_tick(fixture->crew);
    assert_int_equal(crew_count(fixture->crew), 0);
}

static void a_row_of_another_attempt_stops_the_session(void **state)
{
    struct fixture *fixture = *state;
    accept(fixture, 7);
    exec_reports(fixture, EXEC_STARTED, 0);
    strbuf_clear(&fixture->trace);
    turn(fixture, "{\"token\":7,\"nonce\":\"x\",\"state\":\"accepted\"}");
    DONE(fixture, "stop 7;");
    has_ended(fixture);
    crew_tick(fixture->crew);
    assert_int_equal(crew_count(fixture->crew), 0);
}

/* The lease was too old to start it; then its row was taken away. */
static void an_order_without_a_row_does_not_start(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf rows = {0};
    struct diag diag = {0};
    accept(fixture, 7);
    strbuf_clear(&fixture->trace);
    add_row(&rows, 7, "accepted", "run", NULL);
    add_order_row(&rows, 8, "accepted");
    fixture->accepted = "8";
    turn(fixture, strbuf_text(&rows));
    fixture->accepted = "";
    fixture->now_ns += LEASE_MS * MS_NS;
    assert_true(crew_pause_ns(fixture->crew) == SECOND_NS); /* it is due */
    crew_tick(fixture->crew);
    DONE(fixture, "");
    say(fixture);
    assert_int_equal(crew_hear(fixture->crew, NULL, 0, &diag), ERR_OK);
    turn(fixture, row_of_7("accepted"));
    crew_tick(fixture->crew);
    DONE(fixture, "");
    assert_int_equal(crew_count(fixture->crew), 1);
    strbuf_release(&rows);
}

static void a_worker_that_was_given_up_registers_again(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf rows = {0};
    assert_int_equal(refuse(fixture, "{\"state\":\"unknown\"}"), ERR_OK);
    DONE(fixture, ""); /* nobody knew it */
    accept(fixture, 7);
    add_row(&rows, 7, "accepted", "run", NULL);
    add_order_row(&rows, 8, "accepted");
    fixture->accepted = "8";
    turn(fixture, strbuf_text(&rows));
    strbuf_clear(&fixture->trace);
    assert_int_equal(refuse(fixture, "{\"state\":\"unknown\"}"), ERR_OK);
    assert_true(says(fixture, "\"instance\":\"i-2\""));
    DONE(fixture, "say the scheduler has gi;");
    assert_true(crew_pause_ns(fixture->crew) == SECOND_NS);
    crew_tick(fixture->crew); /* 8 was not given to the worker: it is over */
    DONE(fixture, "");
    assert_int_equal(crew_count(fixture->crew), 1);
    fixture->accepted = "";
    turn(fixture, "");
    assert_true(says(fixture, "\"instance\":\"i-3\""));
    assert_true(says(fixture, "\"fresh\":true"));
    exec_reports(fixture, EXEC_STARTED, 0);
    DONE(fixture, "stop 7;");
    strbuf_release(&rows);
}

static void another_machine_of_this_name_is_waited_for(void **state)
{
    struct fixture *fixture = *state;
    static const char taken[] = "{\"state\":\"taken\"}";
    accept(fixture, 7);
    strbuf_clear(&fixture->trace);
    assert_int_equal(refuse(fixture, taken), ERR_OK);
    assert_int_equal(refuse(fixture, taken), ERR_OK);
    DONE(fixture, "say another machine has ;");
    crew_drain(fixture->crew);
    assert_int_equal(refuse(fixture, taken), ERR_OK);
    assert_false(crew_is_over(fixture->crew));
    has_ended(fixture);
    turn(fixture, ""); /* the end of its last session */
    assert_int_equal(refuse(fixture, taken), ERR_OK);
    assert_true(crew_is_over(fixture->crew));
}

static void another_process_of_this_worker_replaces_it(void **state)
{
    struct fixture *fixture = *state;
    assert_int_equal(refuse(fixture, "{\"state\":\"replaced\"}"), ERR_CONFLICT);
    assert_int_equal(refuse(fixture, "damaged"), ERR_OK); /* none of them */
}

/* --- the machine of a worker -------------------------------------------- */

static void errors_of_the_machine_keep_orders_away(void **state)
{
    struct fixture *fixture = *state;
    static const int errors[] =
        {ENOSPC, EDQUOT, EIO, EROFS, ENOMEM, EMFILE, ENFILE, EAGAIN};
    for (size_t ix = 0; ix < ARRAY_COUNT(errors); ix++) {
        accept(fixture, 7);
        strbuf_clear(&fixture->trace);
        exec_reports(fixture, EXEC_FAILED, errors[ix]);
        DONE(fixture, "say cannot start session;");
        turn(fixture, "");
        assert_true(says(fixture, "\"trouble\":\"cannot start sessions: "));
        assert_true(says(fixture, strerror(errors[ix])));
        assert_true(says(fixture, "\\\"elsewhere\\\":true"));
        assert_false(says(fixture, "\"room\""));
        assert_true(crew_pause_ns(fixture->crew) == SECOND_NS);
        crew_tick(fixture->crew); /* too soon to look again */
        fixture->now_ns += 10 * SECOND_NS;
        fixture->space = false;
        crew_tick(fixture->crew);
        DONE(fixture, "");
        fixture->now_ns += 10 * SECOND_NS;
        fixture->space = true;
        crew_tick(fixture->crew);
        DONE(fixture, "say sessions can be star;");
        turn(fixture, "");
        assert_true(says(fixture, "\"room\":4"));
        assert_true(says(fixture, "\"trouble\":\"\""));
    }
    accept(fixture, 7);
    exec_reports(fixture, EXEC_FAILED, E2BIG); /* of the order */
    turn(fixture, "");
    assert_true(says(fixture, "\"trouble\":\"\""));
    assert_false(says(fixture, "elsewhere"));
}

static void a_second_trouble_is_not_said_again(void **state)
{
    struct fixture *fixture = *state;
    struct work_report report = {
        .token = 7,
        .type = WORK_REFUSED,
        .error = EMFILE,
    };
    accept(fixture, 7);
    accept(fixture, 7);
    strbuf_clear(&fixture->trace);
    crew_reported(fixture->crew, &report);
    report.error = ENOSPC;
    crew_reported(fixture->crew, &report);
    DONE(fixture, "say cannot start session;");
    turn(fixture, "");
    assert_true(says(fixture, strerror(ENOSPC)));
}

static void a_missing_directory_of_the_plan_is_replaced(void **state)
{
    struct fixture *fixture = *state;
    fixture->here = "/nothing";
    accept(fixture, 7);
    DONE(fixture, "make /place/plans/run;start 7 in /place/plans/run;");
    has_ended(fixture);
    turn(fixture, "");
    fixture->makes = false;
    strbuf_clear(&fixture->trace);
    accept(fixture, 7);
    DONE(fixture, "make /place/plans/run;start 7 in /folder;");
}

/* Append the row of a merge after others. */
static void add_merge_row(struct strbuf *rows)
{
    static const struct work_before before[] = {
        {.task = "a/merge", .name = "1"},
        {.task = "b/merge", .name = "2"},
        {.task = "task", .name = "1"},
        {.task = "task", .name = "2"},
    };
    static const struct work_member member = {.task = "c/merge", .group = "c"};
    struct strbuf body = {0};
    wire_add_order(&body,
                   &(struct work_order){
                       .id = {9, NONCE, "run", "c/merge", "1"},
                       .folder = "/repo",
                       .git = {.repo = "api",
                               .base = "main",
                               .merge = true,
                               .members = &member,
                               .member_count = 1,
                               .before = before,
                               .before_count = ARRAY_COUNT(before)},
                   });
    add_row(rows, 9, "accepted", "run", strbuf_text(&body));
    strbuf_release(&body);
}

static void a_merge_waits_for_those_of_this_machine(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf rows = {0};
    accept(fixture, 7); /* task, attempt 1 */
    strbuf_clear(&fixture->trace);
    fixture->here = "a+merge/1"; /* its directory exists */
    fixture->accepted = "9";
    add_row(&rows, 7, "accepted", "run", NULL);
    add_row(&rows, 8, "accepted", "run", "{}"); /* damaged: it has no name */
    add_merge_row(&rows);
    turn(fixture, strbuf_text(&rows));
    crew_tick(fixture->crew);
    DONE(fixture,
         "start 9 in /repo before /place/runs/run/a+merge/1 before "
         "/place/runs/run/task/1;");
    strbuf_release(&rows);
}

static void a_lease_that_never_ends_is_always_fresh(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf rows = {0};
    fixture->lease_ms = 0;
    fixture->accepted = "7";
    add_order_row(&rows, 7, "accepted");
    turn(fixture, strbuf_text(&rows));
    assert_true(crew_pause_ns(fixture->crew) == SECOND_NS);
    fixture->now_ns += 1000000 * SECOND_NS;
    crew_tick(fixture->crew);
    DONE(fixture, "start 7 in /folder;");
    exec_reports(fixture, EXEC_STARTED, 0);
    fixture->accepted = "";
    turn(fixture, row_of_7("started"));
    assert_true(crew_pause_ns(fixture->crew) == 10 * SECOND_NS);
    fixture->lease_ms = 60000;
    turn(fixture, row_of_7("started"));
    assert_true(crew_pause_ns(fixture->crew) == 5 * SECOND_NS);
    fixture->lease_ms = LEASE_MS;
    turn(fixture, row_of_7("started"));
    assert_true(crew_pause_ns(fixture->crew) == SECOND_NS);
    strbuf_release(&rows);
}

/* --- what operators and sessions want ----------------------------------- */

static void a_drained_worker_leaves_after_its_sessions(void **state)
{
    struct fixture *fixture = *state;
    accept(fixture, 7);
    fixture->wanted = "drain";
    turn(fixture, row_of_7("accepted"));
    turn(fixture, row_of_7("accepted"));
    assert_true(says(fixture, "\"state\":\"draining\""));
    assert_false(says(fixture, "\"room\""));
    DONE(fixture, "start 7 in /folder;say draining: an operato;");
    has_ended(fixture);
    turn(fixture, "");
    assert_false(crew_is_over(fixture->crew));
    assert_true(crew_has_news(fixture->crew));
    /* A request may have come from its last session. */
    crew_request(fixture->crew, 7, 1, "who", "{}");
    say(fixture);
    assert_true(says(fixture, "\"state\":\"draining\""));
    hear(fixture, "");
    say(fixture);
    assert_true(says(fixture, "\"state\":\"gone\""));
    assert_false(crew_has_news(fixture->crew)); /* it is being said */
    hear(fixture, "");
    assert_true(crew_is_over(fixture->crew));
}

static void all_sessions_are_stopped(void **state)
{
    struct fixture *fixture = *state;
    struct strbuf rows = {0};
    accept(fixture, 7);
    exec_reports(fixture, EXEC_STARTED, 0);
    add_row(&rows, 7, "started", "run", NULL);
    add_order_row(&rows, 8, "accepted"); /* not given to the worker yet */
    fixture->accepted = "8";
    fixture->wanted = "stop";
    strbuf_clear(&fixture->trace);
    turn(fixture, strbuf_text(&rows));
    DONE(fixture, "stop 7;");
    has_ended(fixture);
    crew_stop(fixture->crew); /* once more, and it is over */
    DONE(fixture, "inspect;");
    strbuf_release(&rows);
}

static void wants_and_messages_reach_the_session(void **state)
{
    struct fixture *fixture = *state;
    accept(fixture, 7);
    exec_reports(fixture, EXEC_STARTED, 0);
    static const char one[] =
        "{\"token\":7,\"nonce\":\"" NONCE "\",\"state\":\"started\","
        "\"want\":\"run\",\"messages\":\"one\"}";
    turn(fixture, one);
    turn(fixture, one);
    DONE(fixture, "start 7 in /folder;messages one;");
    turn(fixture,
         "{\"token\":7,\"nonce\":\"" NONCE "\",\"state\":\"started\","
         "\"want\":\"cancel\",\"messages\":\"two\"}");
    DONE(fixture, "messages two;stop 7;");
    assert_true(crew_pause_ns(fixture->crew) == SECOND_NS);
}

static void requests_get_their_own_answers(void **state)
{
    struct fixture *fixture = *state;
    accept(fixture, 7);
    crew_request(fixture->crew, 7, 11, "who", "{\"a\":1}");
    crew_request(fixture->crew, 7, 12, "who", "{}");
    assert_true(crew_has_news(fixture->crew));
    assert_true(crew_pause_ns(fixture->crew) == SECOND_NS);
    say(fixture);
    assert_true(says(fixture, "\"request\":\"{\\\"a\\\":1}\""));
    assert_false(crew_has_news(fixture->crew));
    crew_request(fixture->crew, 7, 13, "who", "{}"); /* during the turn */
    fixture->asks = "\"asked\":[21]"; /* the second one was too much */
    strbuf_clear(&fixture->trace);
    hear(fixture, row_of_7("accepted"));
    assert_true(crew_has_news(fixture->crew));
    fixture->asks = "\"asked\":[22,23],\"answers\":["
                    "{\"number\":21,\"answer\":\"one\"},"
                    "{\"number\":99,\"answer\":\"of another worker\"}]";
    turn(fixture, row_of_7("accepted"));
    assert_true(says(fixture, "\"waits\":[21]"));
    DONE(fixture, "answer 11 one;");
    fixture->asks = "\"answers\":[{\"number\":23,\"answer\":\"three\"}]";
    turn(fixture, row_of_7("accepted"));
    DONE(fixture, "answer 13 three;");
    fixture->asks = "";
    has_ended(fixture);
    turn(fixture, ""); /* the session is gone, and nobody asks any more */
    DONE(fixture, "inspect;answer 12 none;");
    crew_request(fixture->crew, 7, 14, "who", "{}"); /* freed at the end */
}

static void pieces_of_logs_are_sent_as_they_are_wanted(void **state)
{
    struct fixture *fixture = *state;
    accept(fixture, 7);
    exec_reports(fixture, EXEC_STARTED, 0);
    fixture->peeks = "{\"token\":7,\"first\":3},{\"token\":8,\"first\":0}";
    turn(fixture, row_of_7("started"));
    fixture->lease_ms = 60000;
    assert_true(crew_pause_ns(fixture->crew) == SECOND_NS);
    fixture->peeks = "";
    turn(fixture, row_of_7("started"));
    assert_true(says(fixture,
                     "\"pieces\":[{\"token\":7,\"start\":3,\"text\":\"\","
                     "\"ended\":false},{\"token\":8,\"start\":0,\"text\":\"\","
                     "\"ended\":true}]"));
    turn(fixture, row_of_7("started"));
    assert_false(says(fixture, "\"pieces\""));
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_order_is_accepted_run_and_reported),
        CASE(a_turn_that_failed_is_said_again),
        CASE(a_start_that_the_store_knows_is_not_said),
        CASE(a_report_of_forgotten_work_changes_nothing),
        CASE(a_result_that_cannot_be_read_is_read_again),
        CASE(a_damaged_result_is_reported_without_it),
        CASE(a_damaged_order_is_refused),
        CASE(an_order_of_a_process_before_is_looked_for),
        CASE(an_unknown_order_is_started_again),
        CASE(the_order_of_an_unknown_row_comes_later),
        CASE(a_session_without_a_row_is_stopped),
        CASE(a_row_of_another_attempt_stops_the_session),
        CASE(an_order_without_a_row_does_not_start),
        CASE(a_worker_that_was_given_up_registers_again),
        CASE(another_machine_of_this_name_is_waited_for),
        CASE(another_process_of_this_worker_replaces_it),
        CASE(errors_of_the_machine_keep_orders_away),
        CASE(a_second_trouble_is_not_said_again),
        CASE(a_missing_directory_of_the_plan_is_replaced),
        CASE(a_merge_waits_for_those_of_this_machine),
        CASE(a_lease_that_never_ends_is_always_fresh),
        CASE(a_drained_worker_leaves_after_its_sessions),
        CASE(all_sessions_are_stopped),
        CASE(wants_and_messages_reach_the_session),
        CASE(requests_get_their_own_answers),
        CASE(pieces_of_logs_are_sent_as_they_are_wanted),
    };
    return cmocka_run_group_tests_name("crew", tests, NULL, NULL);
}
