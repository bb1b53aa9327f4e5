/* SPDX-License-Identifier: MIT */
/*
 * The worker on a machine that is a table of answers. Every call of the machine
 * that changes something, and every report, is a word of one trace; a case
 * compares what was added to the trace by a call.
 */
#include "work/worker.h"

#include "base/duration.h"
#include "base/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define BOOT "11111111-2222-3333-4444-555555555555"
#define NONCE "0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210"
#define DIR "/place/runs/run/task/1"

enum {
    TOKEN = 7,
    PID = 100,
    TICKS = 5,
    READS_MAX = 10,  /* of a result, before the worker gives up */
    RECHECK_MS = 20, /* until it looks again at a shim that begins */
    TROUBLE_MS = 1000,
};

struct fixture {
    struct worker *worker;
    struct strbuf trace;
    int64_t now_ns;
    const char *boot_id; /* in which it is said to have begun */
    /* What the machine answers. */
    struct attempt_found found;
    enum err inspect_err;
    enum err start_err;
    enum err end_err;
    enum err watch_err;
    enum err fence_err;
    enum err aside_err;
    enum err result_err;
    enum err get_err;
    enum err put_err;
    bool too_late; /* for a fence */
    bool strays;
    bool has_outcome;
    enum sched_outcome outcome;
    const char *printed;
    /* What was looked at, and the last report. */
    uint32_t results_read;
    uint32_t logs_read;
    struct work_report report;
    char text[256];
    char output[64];
    char log[64];
};

static void note(struct fixture *fixture, const char *word)
{
    strbuf_addf(&fixture->trace,
                "%s%s",
                fixture->trace.len > 0 ? " " : "",
                word);
}

static int64_t fake_now_ns(void *ctx)
{
    return ((struct fixture *)ctx)->now_ns;
}

static enum err
fake_start(void *ctx, const struct exec_request *request, struct diag *diag)
{
    struct fixture *fixture = ctx;
    assert_int_equal(request->id, TOKEN);
    note(fixture, "start");
    return fixture->start_err == ERR_OK
               ? ERR_OK
               : diag_set(diag, fixture->start_err, "too long");
}

static enum err fake_end(void *ctx,
                         const struct work_mark *mark,
                         uint64_t token,
                         enum exec_end how)
{
    struct fixture *fixture = ctx;
    assert_int_equal(token, TOKEN);
    assert_int_equal(mark->pid, PID);
    assert_int_equal(mark->start_ticks, TICKS);
    note(fixture, how == EXEC_CANCEL ? "cancel" : "stop");
    return fixture->end_err;
}

static enum err
fake_watch(void *ctx, const struct work_mark *mark, uint64_t token)
{
    struct fixture *fixture = ctx;
    assert_int_equal(token, TOKEN);
    assert_int_equal(mark->pid, PID);
    note(fixture, "watch");
    return fixture->watch_err;
}

static enum err fake_inspect(void *ctx,
                             const char *dir,
                             const char *boot_id,
                             struct attempt_found *out,
                             struct diag *diag)
{
    struct fixture *fixture = ctx;
    (void)dir;
    (void)diag;
    assert_string_equal(boot_id, fixture->boot_id);
    *out = fixture->found;
    return fixture->inspect_err;
}

static enum err fake_set_aside(void *ctx, const char *dir, struct diag *diag)
{
    struct fixture *fixture = ctx;
    (void)diag;
    assert_string_equal(dir, DIR);
    note(fixture, "aside");
    return fixture->aside_err;
}

static enum err fake_fence(void *ctx,
                           const char *dir,
                           const char *nonce,
                           bool *fenced_out,
                           struct diag *diag)
{
    struct fixture *fixture = ctx;
    (void)diag;
    assert_string_equal(dir, DIR);
    assert_string_equal(nonce, NONCE);
    note(fixture, "fence");
    *fenced_out = !fixture->too_late;
    return fixture->fence_err;
}

static bool fake_has_strays(void *ctx, const char *dir)
{
    (void)dir;
    return ((struct fixture *)ctx)->strays;
}

static void fake_kill_strays(void *ctx, const char *dir)
{
    assert_string_equal(dir, DIR);
    note(ctx, "kill");
}

static enum err fake_result(void *ctx,
                            const char *dir,
                            struct attempt_result *out,
                            struct diag *diag)
{
    struct fixture *fixture = ctx;
    (void)dir;
    fixture->results_read++;
    if (fixture->result_err != ERR_OK) {
        return diag_set(diag, fixture->result_err, "result: no");
    }
    out->present = fixture->has_outcome;
    out->has_outcome = fixture->has_outcome;
    out->outcome = fixture->outcome;
    return ERR_OK;
}

static void
fake_log_tail(void *ctx, const char *dir, size_t bytes, struct strbuf *out)
{
    struct fixture *fixture = ctx;
    (void)dir;
    assert_true(bytes > 0);
    fixture->logs_read++;
    strbuf_adds(out, "last line");
}

static enum err fake_put(void *ctx,
                         const char *dir,
                         const char *name,
                         const struct strbuf *text,
                         struct diag *diag)
{
    (void)dir;
    (void)diag;
    struct fixture *fixture = ctx;
    if (strcmp(name, "messages") == 0) {
        note(ctx, strbuf_text(text));
    } else {
        assert_string_equal(name, "input");
        assert_string_equal(strbuf_text(text), "event");
        note(ctx, "put");
    }
    return fixture->put_err;
}

static enum err fake_get(void *ctx,
                         const char *dir,
                         const char *name,
                         struct strbuf *out,
                         struct diag *diag)
{
    struct fixture *fixture = ctx;
    (void)dir;
    assert_string_equal(name, "output");
    strbuf_adds(out, fixture->printed);
    return fixture->get_err == ERR_OK
               ? ERR_OK
               : diag_set(diag, fixture->get_err, "output: no");
}

static void fake_drop(void *ctx, const char *dir)
{
    assert_string_equal(dir, "/place/runs/run/.hook/1");
    note(ctx, "drop");
}

static void take_report(void *link, const struct work_report *report)
{
    static const char *const words[] = {
        [WORK_STARTED] = "STARTED",
        [WORK_ENDED] = "ENDED",
        [WORK_REFUSED] = "REFUSED",
        [WORK_LOST] = "LOST",
        [WORK_UNKNOWN] = "UNKNOWN",
    };
    struct fixture *fixture = link;
    assert_int_equal(report->token, TOKEN);
    note(fixture, words[report->type]);
    fixture->report = *report;
    (void)snprintf(fixture->text,
                   sizeof(fixture->text),
                   "%s",
                   report->text != NULL ? report->text : "");
    (void)snprintf(fixture->output,
                   sizeof(fixture->output),
                   "%.*s",
                   (int)report->output_len,
                   report->output != NULL ? report->output : "");
    (void)snprintf(fixture->log,
                   sizeof(fixture->log),
                   "%s",
                   report->log != NULL ? report->log : "");
}

static int set_up(void **state)
{
    static const struct work_machine machine = {
        .now_ns = fake_now_ns,
        .start = fake_start,
        .end = fake_end,
        .watch = fake_watch,
        .inspect = fake_inspect,
        .set_aside = fake_set_aside,
        .fence = fake_fence,
        .has_strays = fake_has_strays,
        .kill_strays = fake_kill_strays,
        .result = fake_result,
        .log_tail = fake_log_tail,
        .put = fake_put,
        .get = fake_get,
        .drop = fake_drop,
    };
    struct fixture *fixture = mem_zalloc(1, sizeof(*fixture));
    fixture->now_ns = SECOND_NS;
    fixture->boot_id = BOOT;
    fixture->printed = "";
    static char address[] = "/store";
    static char home[] = "/place";
    static const struct store_place place = {
        .address = address,
        .shown = address,
        .id = address,
        .home = home,
    };
    fixture->worker = worker_new(&(struct worker_options){
        .machine = &machine,
        .ctx = fixture,
        .place = &place,
        .git = "/git",
        .agent = "/agent",
        .sandbox = "/sandbox",
        .program = "/sluice",
        .boot_id = BOOT,
        .report = take_report,
        .link = fixture,
    });
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    worker_free(fixture->worker);
    strbuf_release(&fixture->trace);
    mem_free(fixture);
    return 0;
}

/* What was done since the last time. */
#define DONE(fixture, expected)                                                \
    do {                                                                       \
        assert_string_equal(strbuf_text(&(fixture)->trace), expected);         \
        strbuf_clear(&(fixture)->trace);                                       \
    } while (0)

static const struct work_id session = {
    .token = TOKEN,
    .nonce = NONCE,
    .run = "run",
    .task = "task",
    .name = "1",
};

static void assign(struct fixture *fixture, enum work_want want)
{
    worker_assign(fixture->worker,
                  &(struct work_order){
                      .id = session,
                      .want = want,
                      .folder = "/folder",
                      .shell = "true",
                  });
}

/* A call of a hook that reads, or with `output` of a monitor that prints. */
static void assign_program(struct fixture *fixture, bool output, bool again)
{
    struct work_file file = {
        .name = output ? "output" : "input",
        .variable = "FILE",
        .text = output ? NULL : "event",
        .len = output ? 0 : strlen("event"),
    };
    struct work_order order = {
        .id = session,
        .again = again,
        .folder = "/folder",
        .shell = "true",
        .files = &file,
        .file_count = 1,
    };
    order.id.task = ".hook";
    worker_assign(fixture->worker, &order);
}

static void ask(struct fixture *fixture, bool begun, enum work_want want)
{
    struct work_mark mark = worker_mark(fixture->worker);
    worker_ask(fixture->worker, &session, &mark, begun, want);
}

static void
report(struct fixture *fixture, enum exec_report_type type, int error)
{
    worker_reported(fixture->worker,
                    &(struct exec_report){
                        .type = type,
                        .id = TOKEN,
                        .pid = PID,
                        .start_ticks = TICKS,
                        .error = error,
                    });
}

static void set_found(struct fixture *fixture, enum attempt_state state)
{
    fixture->found = (struct attempt_found){
        .state = state,
        .pid = state == ATTEMPT_LIVE ? PID : 0,
        .start_ticks = state == ATTEMPT_LIVE ? TICKS : 0,
        .named = state >= ATTEMPT_LIVE,
        .nonce = NONCE,
        .boot_id = BOOT,
    };
}

/* Have it started, and forget how. */
static void begin(struct fixture *fixture)
{
    assign(fixture, WORK_RUN);
    report(fixture, EXEC_STARTED, 0);
    DONE(fixture, "start STARTED");
}

/* The worker wants to look again in so many milliseconds; let it. */
static void look_again(struct fixture *fixture, int64_t in_ms)
{
    int64_t at_ns = fixture->now_ns + in_ms * MS_NS;
    assert_int_equal(worker_next_ns(fixture->worker), at_ns);
    fixture->now_ns = at_ns - 1;
    worker_tick(fixture->worker);
    DONE(fixture, "");
    fixture->now_ns = at_ns;
    worker_tick(fixture->worker);
}

/* Whether it has forgotten the work: it is then unknown to a want, and looked
 * for in its directory when it is asked for. */
static void assert_forgotten(struct fixture *fixture)
{
    assert_int_equal(worker_next_ns(fixture->worker), INT64_MAX);
    worker_want(fixture->worker, TOKEN, WORK_CANCEL);
    report(fixture, EXEC_ENDED, 0);
    worker_gone(fixture->worker, TOKEN);
    DONE(fixture, "");
}

static void a_session_starts_and_ends_plainly(void **state)
{
    struct fixture *fixture = *state;
    assign(fixture, WORK_RUN);
    DONE(fixture, "start");
    report(fixture, EXEC_STARTED, 0);
    DONE(fixture, "STARTED");
    assert_int_equal(fixture->report.mark.pid, PID);
    assert_int_equal(fixture->report.mark.start_ticks, TICKS);
    assert_string_equal(fixture->report.mark.boot_id, BOOT);
    set_found(fixture, ATTEMPT_ENDED);
    fixture->found.exit.ended_ns = 42;
    report(fixture, EXEC_ENDED, 0);
    DONE(fixture, "ENDED");
    assert_int_equal(fixture->report.exit.ended_ns, 42);
    assert_int_equal(fixture->report.result_err, ERR_OK);
    assert_int_equal(fixture->logs_read, 0);
    assert_string_equal(fixture->log, "");
    assert_forgotten(fixture);
}

static void the_log_of_another_end_is_reported(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    set_found(fixture, ATTEMPT_ENDED);
    fixture->has_outcome = true;
    fixture->outcome = OUTCOME_FAILED;
    report(fixture, EXEC_ENDED, 0);
    DONE(fixture, "ENDED");
    assert_string_equal(fixture->log, "last line");
}

static void a_want_before_the_start_reaches_the_shim(void **state)
{
    struct fixture *fixture = *state;
    assign(fixture, WORK_RUN);
    worker_want(fixture->worker, TOKEN, WORK_CANCEL);
    DONE(fixture, "start");
    report(fixture, EXEC_STARTED, 0);
    DONE(fixture, "cancel STARTED");
    worker_want(fixture->worker, TOKEN, WORK_STOP); /* it was told once */
    DONE(fixture, "");
}

static void a_shim_that_cannot_be_told_is_looked_at_again(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    fixture->end_err = ERR_UNAVAILABLE;
    worker_want(fixture->worker, TOKEN, WORK_STOP);
    DONE(fixture, "stop");
    fixture->end_err = ERR_OK;
    set_found(fixture, ATTEMPT_LIVE);
    look_again(fixture, TROUBLE_MS);
    DONE(fixture, "watch stop");
}

static void messages_are_written_when_it_runs(void **state)
{
    struct fixture *fixture = *state;
    assign(fixture, WORK_RUN);
    worker_tell(fixture->worker, TOKEN, "first");
    worker_tell(fixture->worker, TOKEN, "first-second");
    DONE(fixture, "start");
    report(fixture, EXEC_STARTED, 0);
    DONE(fixture, "first-second STARTED");
    worker_tell(fixture->worker, TOKEN, "third");
    DONE(fixture, "third");
    set_found(fixture, ATTEMPT_ENDED);
    report(fixture, EXEC_ENDED, 0);
    DONE(fixture, "ENDED");
    worker_tell(fixture->worker, TOKEN, "too-late");
    DONE(fixture, "");
}

static void messages_that_cannot_be_written_are_tried_again(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    fixture->put_err = ERR_IO;
    worker_tell(fixture->worker, TOKEN, "text");
    DONE(fixture, "text");
    set_found(fixture, ATTEMPT_LIVE);
    look_again(fixture, TROUBLE_MS);
    DONE(fixture, "watch text");
    fixture->put_err = ERR_OK;
    look_again(fixture, TROUBLE_MS);
    DONE(fixture, "text");
    assert_int_equal(worker_next_ns(fixture->worker), INT64_MAX);
}

static void withdrawn_after_its_start_it_runs(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    worker_want(fixture->worker, TOKEN, WORK_WITHDRAW);
    set_found(fixture, ATTEMPT_LIVE);
    worker_respawn(fixture->worker);
    DONE(fixture, "watch");
    set_found(fixture, ATTEMPT_ENDED);
    worker_gone(fixture->worker, TOKEN);
    DONE(fixture, "ENDED");
}

static void withdrawn_while_it_starts_it_runs(void **state)
{
    struct fixture *fixture = *state;
    assign(fixture, WORK_RUN);
    worker_want(fixture->worker, TOKEN, WORK_WITHDRAW);
    report(fixture, EXEC_STARTED, 0);
    DONE(fixture, "start STARTED");
}

static void withdrawn_before_its_start_it_is_fenced(void **state)
{
    struct fixture *fixture = *state;
    assign(fixture, WORK_WITHDRAW);
    DONE(fixture, "fence REFUSED");
    assert_true(fixture->report.withdrawn);
    assert_int_equal(fixture->report.error, 0);
    assert_forgotten(fixture);
    ask(fixture, false, WORK_WITHDRAW);
    DONE(fixture, "fence REFUSED");
    assert_true(fixture->report.withdrawn);
}

/* The worker before made sure that it never starts, and died. */
static void what_was_fenced_never_started(void **state)
{
    struct fixture *fixture = *state;
    set_found(fixture, ATTEMPT_LOST);
    fixture->found.fenced = true;
    ask(fixture, false, WORK_RUN);
    DONE(fixture, "REFUSED");
    assert_true(fixture->report.withdrawn);
    assert_forgotten(fixture);
    /* After a start it is the end of a session whose files were removed. */
    ask(fixture, true, WORK_RUN);
    DONE(fixture, "kill LOST");
}

static void a_refusal_waits_for_its_fence(void **state)
{
    struct fixture *fixture = *state;
    fixture->fence_err = ERR_UNAVAILABLE;
    assign(fixture, WORK_WITHDRAW);
    DONE(fixture, "fence");
    fixture->fence_err = ERR_OK;
    fixture->too_late = true;
    look_again(fixture, TROUBLE_MS);
    DONE(fixture, "fence");
    set_found(fixture, ATTEMPT_STARTING); /* a shim was faster */
    look_again(fixture, RECHECK_MS);
    DONE(fixture, "");
    set_found(fixture, ATTEMPT_LIVE);
    look_again(fixture, RECHECK_MS);
    DONE(fixture, "watch STARTED"); /* too late to withdraw it */
}

static void a_start_that_failed_is_refused_with_its_error(void **state)
{
    struct fixture *fixture = *state;
    assign(fixture, WORK_RUN);
    report(fixture, EXEC_FAILED, ENOSPC);
    DONE(fixture, "start fence REFUSED");
    assert_int_equal(fixture->report.error, ENOSPC);
    assert_false(fixture->report.withdrawn);
    fixture->start_err = ERR_LIMIT;
    assign(fixture, WORK_RUN);
    DONE(fixture, "start fence REFUSED");
    assert_int_equal(fixture->report.error, 0);
    assert_string_equal(fixture->text, "too long");
}

static void a_shim_that_could_not_begin_is_a_refusal(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    report(fixture, EXEC_ENDED, ENOSPC);
    DONE(fixture, "fence REFUSED");
    assert_int_equal(fixture->report.error, EAGAIN);
}

static void known_work_is_reported_again(void **state)
{
    struct fixture *fixture = *state;
    assign(fixture, WORK_RUN);
    ask(fixture, false, WORK_RUN); /* nothing to report yet */
    DONE(fixture, "start");
    report(fixture, EXEC_STARTED, 0);
    DONE(fixture, "STARTED");
    ask(fixture, false, WORK_RUN);
    DONE(fixture, "STARTED");
    assert_int_equal(fixture->report.mark.pid, PID);
    assign(fixture, WORK_RUN); /* it is not started again */
    DONE(fixture, "STARTED");
    ask(fixture, true, WORK_CANCEL);
    DONE(fixture, "cancel STARTED");
}

static void work_of_another_worker_is_adopted(void **state)
{
    struct fixture *fixture = *state;
    set_found(fixture, ATTEMPT_LIVE);
    ask(fixture, false, WORK_STOP);
    DONE(fixture, "watch stop STARTED");
    set_found(fixture, ATTEMPT_LOST);
    worker_gone(fixture->worker, TOKEN);
    DONE(fixture, "kill LOST");
    assert_false(fixture->report.vanished);
}

static void a_foreign_directory_is_set_aside(void **state)
{
    struct fixture *fixture = *state;
    set_found(fixture, ATTEMPT_LIVE);
    memcpy(fixture->found.nonce, OTHER, sizeof(OTHER));
    fixture->aside_err = ERR_IO;
    ask(fixture, false, WORK_RUN);
    DONE(fixture, "kill aside");
    fixture->aside_err = ERR_OK;
    look_again(fixture, TROUBLE_MS);
    DONE(fixture, "kill aside UNKNOWN");
    assert_forgotten(fixture);
}

static void our_shim_that_found_a_foreign_directory_is_unknown(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    set_found(fixture, ATTEMPT_ENDED);
    memcpy(fixture->found.nonce, OTHER, sizeof(OTHER));
    report(fixture, EXEC_ENDED, EEXIST);
    DONE(fixture, "kill aside UNKNOWN");
}

static void work_that_has_begun_and_vanished_is_lost(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    fixture->too_late = true;
    report(fixture, EXEC_ENDED, 0);
    DONE(fixture, "fence");
    fixture->too_late = false;
    look_again(fixture, RECHECK_MS);
    DONE(fixture, "fence stop kill LOST");
    assert_true(fixture->report.vanished);
    ask(fixture, true, WORK_RUN); /* its shim is not known */
    DONE(fixture, "fence kill LOST");
    assert_true(fixture->report.vanished);
}

static void without_a_trace_it_is_unknown(void **state)
{
    struct fixture *fixture = *state;
    fixture->inspect_err = ERR_UNAVAILABLE;
    ask(fixture, false, WORK_RUN);
    DONE(fixture, "");
    fixture->inspect_err = ERR_OK;
    look_again(fixture, TROUBLE_MS);
    DONE(fixture, "UNKNOWN");
}

static void processes_that_are_left_are_a_trace(void **state)
{
    struct fixture *fixture = *state;
    fixture->strays = true;
    ask(fixture, false, WORK_RUN);
    DONE(fixture, "");
    look_again(fixture, RECHECK_MS);
    DONE(fixture, "fence kill LOST");
    assert_true(fixture->report.vanished);
}

static void another_server_knows_nothing_of_a_start(void **state)
{
    struct fixture *fixture = *state;
    assign(fixture, WORK_RUN);
    set_found(fixture, ATTEMPT_LIVE); /* that is for the next question */
    worker_respawn(fixture->worker);
    DONE(fixture, "start UNKNOWN");
    assert_forgotten(fixture);
}

static void another_server_has_running_work_looked_at(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    set_found(fixture, ATTEMPT_LIVE);
    worker_respawn(fixture->worker);
    DONE(fixture, "watch"); /* which is no news */
    worker_respawn(fixture->worker);
    DONE(fixture, ""); /* it is watched already */
    set_found(fixture, ATTEMPT_ENDED);
    worker_respawn(fixture->worker);
    DONE(fixture, "ENDED");
}

static void a_shim_reported_just_now_may_not_have_begun(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    worker_respawn(fixture->worker);
    DONE(fixture, "UNKNOWN");
    begin(fixture);
    fixture->now_ns += SECOND_NS;
    fixture->watch_err = ERR_NOT_FOUND;
    worker_respawn(fixture->worker);
    DONE(fixture, "watch fence stop kill LOST");
}

/* Ask for what an earlier worker has reported as begun, of this boot. */
static void ask_begun(struct fixture *fixture)
{
    struct work_mark mark = worker_mark(fixture->worker);
    mark.pid = PID;
    mark.start_ticks = TICKS;
    worker_ask(fixture->worker, &session, &mark, true, WORK_RUN);
}

static void a_shim_that_is_late_is_awaited(void **state)
{
    struct fixture *fixture = *state;
    ask_begun(fixture);
    DONE(fixture, "watch");
    look_again(fixture, RECHECK_MS);
    DONE(fixture, ""); /* it is watched already */
    set_found(fixture, ATTEMPT_LIVE);
    look_again(fixture, RECHECK_MS);
    DONE(fixture, "STARTED");
    set_found(fixture, ATTEMPT_ENDED);
    worker_gone(fixture->worker, TOKEN);
    DONE(fixture, "ENDED");
    begin(fixture); /* also if its server was replaced */
    fixture->now_ns += SECOND_NS;
    set_found(fixture, ATTEMPT_NEVER);
    worker_respawn(fixture->worker);
    DONE(fixture, "watch");
    fixture->watch_err = ERR_NOT_FOUND; /* it has died */
    worker_gone(fixture->worker, TOKEN);
    DONE(fixture, "watch fence stop kill LOST");
}

static void no_shim_is_awaited_for_ever(void **state)
{
    struct fixture *fixture = *state;
    ask_begun(fixture);
    DONE(fixture, "watch");
    fixture->now_ns += 10 * SECOND_NS;
    worker_tick(fixture->worker);
    DONE(fixture, "fence stop kill LOST");
    fixture->strays = true; /* what it has started is there */
    ask_begun(fixture);
    DONE(fixture, "fence stop kill LOST");
}

static void no_shim_of_another_boot_is_awaited(void **state)
{
    struct fixture *fixture = *state;
    struct work_mark mark = {
        .boot_id = "another",
        .pid = PID,
        .start_ticks = TICKS,
    };
    fixture->boot_id = mark.boot_id;
    worker_ask(fixture->worker, &session, &mark, true, WORK_RUN);
    DONE(fixture, "fence stop kill LOST");
}

static void an_unreadable_result_is_read_ten_times(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    set_found(fixture, ATTEMPT_ENDED);
    fixture->result_err = ERR_UNAVAILABLE;
    report(fixture, EXEC_ENDED, 0);
    for (uint32_t read = 1; read < READS_MAX; read++) {
        DONE(fixture, "");
        assert_int_equal(fixture->results_read, read);
        look_again(fixture, TROUBLE_MS);
    }
    DONE(fixture, "ENDED");
    assert_int_equal(fixture->results_read, READS_MAX);
    assert_int_equal(fixture->report.result_err, ERR_UNAVAILABLE);
    assert_string_equal(fixture->text, DIR "/result: no");
}

static void an_invalid_result_is_reported_at_once(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    set_found(fixture, ATTEMPT_ENDED);
    fixture->result_err = ERR_INVALID;
    report(fixture, EXEC_ENDED, 0);
    DONE(fixture, "ENDED");
    assert_int_equal(fixture->report.result_err, ERR_INVALID);
    assert_string_equal(fixture->text, "result: no");
    assert_string_equal(fixture->log, "last line");
}

static void a_program_is_looked_for_before_it_starts(void **state)
{
    struct fixture *fixture = *state;
    set_found(fixture, ATTEMPT_ENDED);
    fixture->printed = "{}";
    assign_program(fixture, true, true);
    DONE(fixture, "ENDED"); /* it has run, and is not started again */
    assert_string_equal(fixture->output, "{}");
    assert_int_equal(fixture->results_read, 0);
    set_found(fixture, ATTEMPT_NEVER);
    assign_program(fixture, true, false);
    DONE(fixture, "start");
    report(fixture, EXEC_STARTED, 0);
    DONE(fixture, "STARTED");
    set_found(fixture, ATTEMPT_ENDED);
    fixture->get_err = ERR_IO;
    report(fixture, EXEC_ENDED, 0);
    DONE(fixture, "ENDED");
    assert_null(fixture->report.output);
    assert_string_equal(fixture->text, "output: no");
    struct work_id hook = session;
    hook.task = ".hook";
    worker_forget(fixture->worker, &hook);
    DONE(fixture, "drop");
}

static void a_program_that_reads_has_no_output(void **state)
{
    struct fixture *fixture = *state;
    assign_program(fixture, false, false);
    DONE(fixture, "put start");
    report(fixture, EXEC_STARTED, 0);
    DONE(fixture, "STARTED");
    set_found(fixture, ATTEMPT_ENDED);
    report(fixture, EXEC_ENDED, 0);
    DONE(fixture, "ENDED");
    assert_null(fixture->report.output);
}

static void what_a_shim_was_told_is_not_told_again(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    fixture->end_err = ERR_NOT_FOUND; /* it is about to be gone */
    worker_want(fixture->worker, TOKEN, WORK_STOP);
    DONE(fixture, "stop");
    set_found(fixture, ATTEMPT_LIVE);
    worker_respawn(fixture->worker);
    DONE(fixture, "watch");
    assert_int_equal(worker_next_ns(fixture->worker), INT64_MAX);
}

static void a_shim_that_is_gone_at_once_is_looked_at_soon(void **state)
{
    struct fixture *fixture = *state;
    set_found(fixture, ATTEMPT_LIVE);
    fixture->watch_err = ERR_NOT_FOUND;
    ask(fixture, true, WORK_RUN);
    DONE(fixture, "watch STARTED");
    set_found(fixture, ATTEMPT_ENDED);
    look_again(fixture, RECHECK_MS);
    DONE(fixture, "ENDED");
}

/* The pid is that of another process since. */
static void another_shim_is_news(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    set_found(fixture, ATTEMPT_LIVE);
    fixture->found.start_ticks++;
    worker_respawn(fixture->worker);
    DONE(fixture, "watch STARTED");
    assert_int_equal(fixture->report.mark.start_ticks, TICKS + 1);
}

static void late_reports_of_a_server_do_no_harm(void **state)
{
    struct fixture *fixture = *state;
    begin(fixture);
    report(fixture, EXEC_STARTED, 0);
    DONE(fixture, ""); /* once */
    set_found(fixture, ATTEMPT_LIVE);
    report(fixture, EXEC_ENDED, EAGAIN); /* another shim has it */
    DONE(fixture, "watch");
    set_found(fixture, ATTEMPT_ENDED);
    report(fixture, EXEC_ENDED, EAGAIN);
    DONE(fixture, "ENDED");
    worker_free(NULL);
}

static void another_server_has_unclear_work_looked_at(void **state)
{
    struct fixture *fixture = *state;
    fixture->inspect_err = ERR_UNAVAILABLE;
    ask(fixture, false, WORK_RUN);
    fixture->inspect_err = ERR_OK;
    worker_respawn(fixture->worker);
    DONE(fixture, "UNKNOWN");
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_session_starts_and_ends_plainly),
        CASE(the_log_of_another_end_is_reported),
        CASE(a_want_before_the_start_reaches_the_shim),
        CASE(messages_are_written_when_it_runs),
        CASE(messages_that_cannot_be_written_are_tried_again),
        CASE(a_shim_that_cannot_be_told_is_looked_at_again),
        CASE(withdrawn_after_its_start_it_runs),
        CASE(withdrawn_while_it_starts_it_runs),
        CASE(withdrawn_before_its_start_it_is_fenced),
        CASE(what_was_fenced_never_started),
        CASE(a_refusal_waits_for_its_fence),
        CASE(a_start_that_failed_is_refused_with_its_error),
        CASE(a_shim_that_could_not_begin_is_a_refusal),
        CASE(known_work_is_reported_again),
        CASE(work_of_another_worker_is_adopted),
        CASE(a_foreign_directory_is_set_aside),
        CASE(our_shim_that_found_a_foreign_directory_is_unknown),
        CASE(work_that_has_begun_and_vanished_is_lost),
        CASE(without_a_trace_it_is_unknown),
        CASE(processes_that_are_left_are_a_trace),
        CASE(another_server_knows_nothing_of_a_start),
        CASE(another_server_has_running_work_looked_at),
        CASE(a_shim_reported_just_now_may_not_have_begun),
        CASE(a_shim_that_is_late_is_awaited),
        CASE(no_shim_is_awaited_for_ever),
        CASE(no_shim_of_another_boot_is_awaited),
        CASE(an_unreadable_result_is_read_ten_times),
        CASE(an_invalid_result_is_reported_at_once),
        CASE(a_program_is_looked_for_before_it_starts),
        CASE(a_program_that_reads_has_no_output),
        CASE(what_a_shim_was_told_is_not_told_again),
        CASE(a_shim_that_is_gone_at_once_is_looked_at_soon),
        CASE(another_shim_is_news),
        CASE(late_reports_of_a_server_do_no_harm),
        CASE(another_server_has_unclear_work_looked_at),
    };
#undef CASE
    return cmocka_run_group_tests(tests, NULL, NULL);
}
