/* SPDX-License-Identifier: MIT */
/*
 * A job has the state that its row has in the store as far as this process
 * knows (`state`), and the state that the row is to have (`next`). A turn says
 * `next`; if its result is lost, the next turn says it again, and the store
 * ignores what it has already.
 *
 * Leases: the end of the lease is counted from before the turn that renewed it,
 * so the store's end is never earlier. At two thirds without renewal nothing
 * more is started. At its end the shims stop the sessions, by the file that
 * options.lease() writes. A worker that was declared lost begins another
 * generation with another file: shims of the old one never get another lease.
 */
#include "work/crew.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "work/home.h"
#include "work/peek.h"
#include "work/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Between two turns: while something is under way, and at most. Notifications
 * come on the connection of the turns, so none is lost without the connection,
 * which is noticed: polling only has to renew the lease. The share of a lease
 * leaves several tries before its first third is over. */
#define PAUSE_MIN_NS SECOND_NS
#define PAUSE_MAX_NS (10 * SECOND_NS)
#define PAUSES_PER_LEASE 12

/* How long a worker without space takes nothing, before it looks again. */
#define TROUBLE_NS (10 * SECOND_NS)

enum state { ROW_ACCEPTED, ROW_STARTED, ROW_ENDED };

static const char *const states[] = {
    [ROW_ACCEPTED] = "accepted",
    [ROW_STARTED] = "started",
    [ROW_ENDED] = "ended",
};

struct job {
    uint64_t token;
    struct wire_order wire;
    enum state state; /* of its row */
    enum state next;  /* to be said, if it is another one */
    enum state said;  /* in the turn under way */
    char *report;     /* that goes with `next` */
    char *messages;   /* that the session was told */
    enum work_want want;
    bool given;  /* to the worker */
    bool due;    /* to be given to the worker, now or once more */
    bool unread; /* its result could not be read: ask the worker again */
    bool orphan; /* its row is gone: it is being stopped */
    bool over;   /* the worker has forgotten it */
    bool seen;   /* in the last result */
};

/* A request of a session on its way. */
struct ask {
    uint64_t request; /* of the caller's */
    uint64_t token;
    uint64_t number; /* in the store; 0: not there yet */
    char *who;
    char *json;
    bool said;
};

struct crew {
    struct crew_options options;
    struct arena texts;
    struct worker *worker;
    struct job *jobs;
    uint32_t job_count;
    uint32_t job_capacity;
    struct ask *asks;
    uint32_t ask_count;
    uint32_t ask_capacity;
    struct peek *peeks; /* what somebody wants to see */
    uint32_t peek_count;
    char instance[33];
    uint64_t generation;
    uint32_t begun;     /* how often it has registered */
    int64_t renewed_ns; /* of the last lease; 0: none */
    int64_t lease_ns;
    char trouble[128]; /* why it takes nothing; "": it does */
    int64_t trouble_ns;
    bool registered;
    bool draining;
    bool leaving; /* this turn says that it is gone */
    bool saying;  /* a turn is under way */
    bool over;
    bool taken; /* the name was another's at the last try */
    bool news;  /* the scheduler wants to know of a change */
};

static const char *keep(struct crew *crew, const char *text)
{
    return arena_strndup(&crew->texts, text, strlen(text));
}

/* Each registration has an instance of its own. */
static void next_instance(struct crew *crew)
{
    crew->registered = false;
    crew->renewed_ns = 0;
    (void)snprintf(crew->instance,
                   sizeof(crew->instance),
                   "%.24s-%u",
                   crew->options.instance,
                   ++crew->begun % 1000000);
}

struct crew *crew_new(const struct crew_options *options)
{
    struct crew *crew = mem_zalloc(1, sizeof(*crew));
    INVARIANT(options->slots > 0 && options->name[0] != '\0');
    crew->options = *options;
    crew->options.name = keep(crew, options->name);
    crew->options.labels = keep(crew, options->labels);
    crew->options.home = keep(crew, options->home);
    crew->options.home_id = keep(crew, options->home_id);
    crew->options.host = keep(crew, options->host);
    crew->options.boot_id = keep(crew, options->boot_id);
    crew->options.instance = keep(crew, options->instance);
    next_instance(crew);
    return crew;
}

static void release_job(struct job *job)
{
    wire_release_order(&job->wire);
    mem_free(job->report);
    mem_free(job->messages);
}

static void release_ask(struct ask *ask)
{
    mem_free(ask->who);
    mem_free(ask->json);
}

void crew_free(struct crew *crew)
{
    if (crew == NULL) {
        return;
    }
    for (uint32_t ix = 0; ix < crew->job_count; ix++) {
        release_job(&crew->jobs[ix]);
    }
    for (uint32_t ix = 0; ix < crew->ask_count; ix++) {
        release_ask(&crew->asks[ix]);
    }
    mem_free(crew->jobs);
    mem_free(crew->asks);
    mem_free(crew->peeks);
    arena_release(&crew->texts);
    mem_free(crew);
}

void crew_set_worker(struct crew *crew, struct worker *worker)
{
    crew->worker = worker;
}

static struct job *find(const struct crew *crew, uint64_t token)
{
    for (uint32_t ix = 0; ix < crew->job_count; ix++) {
        if (crew->jobs[ix].token == token) {
            return &crew->jobs[ix];
        }
    }
    return NULL;
}

static void drop(struct crew *crew, struct job *job)
{
    INVARIANT(job >= crew->jobs && job < crew->jobs + crew->job_count);
    struct job over = *job;
    *job = crew->jobs[--crew->job_count];
    release_job(&over);
}

const char *crew_nonce(const struct crew *crew, uint64_t token)
{
    const struct job *job = find(crew, token);
    return job != NULL && !job->orphan ? job->wire.order.id.nonce : NULL;
}

uint32_t crew_count(const struct crew *crew)
{
    return crew->job_count;
}

uint64_t crew_generation(const struct crew *crew)
{
    return crew->generation;
}

bool crew_is_over(const struct crew *crew)
{
    return crew->over;
}

static void say(const struct crew *crew, const char *text)
{
    crew->options.say(crew->options.ctx, text);
}

static int64_t now(const struct crew *crew)
{
    return crew->options.now_ns(crew->options.ctx);
}

/* --- the worker --------------------------------------------------------- */

/* Append the directory of a job. */
static void
add_dir(struct strbuf *out, const struct crew *crew, const struct job *job)
{
    const struct work_id *id = &job->wire.order.id;
    home_add_dir(out, crew->options.home, id->run, id->task, id->name);
}

/* Take nothing more for a while: the machine has no space. */
static void set_trouble(struct crew *crew, const char *text)
{
    if (crew->trouble[0] == '\0') {
        say(crew, text);
    }
    (void)snprintf(crew->trouble, sizeof(crew->trouble), "%s", text);
    crew->trouble_ns = now(crew);
    crew->news = true;
}

/* Whether a start failed because of this machine. */
static bool is_of_machine(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EIO ||
           error == EROFS || error == ENOMEM || error == EMFILE ||
           error == ENFILE || error == EAGAIN;
}

/* Set the state that the row of a job is to have; false: the result of the
 * session cannot be read now. */
static bool set_next(struct crew *crew,
                     struct job *job,
                     enum state next,
                     const struct work_report *report)
{
    struct strbuf dir = {0};
    struct strbuf result = {0};
    struct strbuf text = {0};
    bool has = report->result != NULL && report->result->present &&
               report->result_err == ERR_OK;
    bool whole = true;
    if (has) {
        add_dir(&dir, crew, job);
        whole = crew->options.read(crew->options.ctx,
                                   strbuf_text(&dir),
                                   "result",
                                   &result);
    }
    if (whole) {
        wire_add_report(&text, report, has ? strbuf_text(&result) : NULL);
        mem_free(job->report);
        job->report = text.text;
        job->next = next;
    }
    strbuf_release(&dir);
    strbuf_release(&result);
    return whole;
}

void crew_reported(struct crew *crew, const struct work_report *report)
{
    struct job *job = find(crew, report->token);
    if (job == NULL) {
        return;
    }
    switch (report->type) {
    case WORK_STARTED:
        if (job->next < ROW_STARTED && job->state < ROW_STARTED) {
            (void)set_next(crew, job, ROW_STARTED, report);
        }
        return;
    case WORK_UNKNOWN:
        job->due = true; /* crew_tick() */
        return;
    case WORK_ENDED:
    case WORK_LOST:
    case WORK_REFUSED:
        break;
    }
    job->over = true;
    struct work_report said = *report;
    if (report->type == WORK_REFUSED && is_of_machine(report->error)) {
        char text[96];
        (void)snprintf(text,
                       sizeof(text),
                       "cannot start sessions: %s",
                       strerror(report->error));
        set_trouble(crew, text);
        said.elsewhere = true;
    }
    if (!job->orphan && !set_next(crew, job, ROW_ENDED, &said)) {
        job->over = false;
        job->unread = true; /* crew_tick() */
    }
}

/* Whether the lease holds long enough to start something. */
static bool is_fresh(const struct crew *crew)
{
    return crew->registered &&
           (crew->lease_ns == INT64_MAX ||
            now(crew) - crew->renewed_ns < crew->lease_ns / 3 * 2);
}

/* The directory of the plan is of the machine on which it was submitted: here
 * it may not exist, and is replaced by an empty one. */
static void find_folder(const struct crew *crew, struct wire_order *wire)
{
    struct work_order *order = &wire->order;
    if (crew->options.exists(crew->options.ctx, order->folder)) {
        return;
    }
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/plans/%s", crew->options.home, order->id.run);
    if (crew->options.make_dir(crew->options.ctx, strbuf_text(&path))) {
        order->folder = arena_strndup(&wire->arena, path.text, path.len);
    }
    strbuf_release(&path);
}

/* Note which merges before this one are not on this machine. They were assigned
 * before it, so those that are here are known here. */
static void note_elsewhere(const struct crew *crew, struct wire_order *wire)
{
    const struct work_git *git = &wire->order.git;
    struct work_before *before =
        arena_alloc(&wire->arena, git->before_count, sizeof(before[0]));
    struct strbuf dir = {0};
    for (uint32_t ix = 0; ix < git->before_count; ix++) {
        before[ix] = git->before[ix];
        strbuf_clear(&dir);
        home_add_dir(&dir,
                     crew->options.home,
                     wire->order.id.run,
                     before[ix].task,
                     before[ix].name);
        bool here = crew->options.exists(crew->options.ctx, strbuf_text(&dir));
        for (uint32_t n = 0; n < crew->job_count && !here; n++) {
            const struct work_id *id = &crew->jobs[n].wire.order.id;
            here = id->task != NULL && strcmp(id->task, before[ix].task) == 0 &&
                   strcmp(id->name, before[ix].name) == 0;
        }
        before[ix].elsewhere = !here;
    }
    wire->order.git.before = before;
    strbuf_release(&dir);
}

/* Have the worker start an accepted job. */
static void give(struct crew *crew, struct job *job)
{
    struct work_order *order = &job->wire.order;
    job->given = true;
    job->due = false;
    order->want = job->want;
    if (order->git.repo == NULL && !order->named) {
        find_folder(crew, &job->wire);
    }
    note_elsewhere(crew, &job->wire);
    worker_assign(crew->worker, order);
}

void crew_tick(struct crew *crew)
{
    for (uint32_t ix = crew->job_count; ix > 0; ix--) {
        struct job *job = &crew->jobs[ix - 1];
        if (job->due && is_fresh(crew)) {
            give(crew, job);
        } else if (job->unread) {
            struct work_mark mark = worker_mark(crew->worker);
            job->unread = false;
            worker_ask(crew->worker,
                       &job->wire.order.id,
                       &mark,
                       true,
                       job->want);
        }
    }
    for (uint32_t ix = crew->job_count; ix > 0; ix--) {
        struct job *job = &crew->jobs[ix - 1];
        if (job->orphan && job->over) {
            drop(crew, job);
        }
    }
    if (crew->trouble[0] != '\0' &&
        now(crew) - crew->trouble_ns >= TROUBLE_NS) {
        crew->trouble_ns = now(crew);
        if (crew->options.has_space(crew->options.ctx)) {
            crew->trouble[0] = '\0';
            crew->news = true;
            say(crew, "sessions can be started again");
        }
    }
}

/* The row of a job is gone: nobody wants its result. */
static void orphan(struct crew *crew, struct job *job)
{
    if (job->orphan) {
        return;
    }
    job->orphan = true;
    job->over = job->over || !job->given;
    job->due = job->due && job->given; /* else it never starts */
    if (!job->over) {
        job->want = WORK_STOP;
        worker_want(crew->worker, job->token, WORK_STOP);
    }
}

void crew_drain(struct crew *crew)
{
    crew->draining = true;
    crew->news = true;
}

void crew_stop(struct crew *crew)
{
    crew_drain(crew);
    for (uint32_t ix = crew->job_count; ix > 0; ix--) {
        struct job *job = &crew->jobs[ix - 1];
        if (!job->over && job->given) {
            job->want = WORK_STOP;
            worker_want(crew->worker, job->token, WORK_STOP);
        }
    }
}

/* --- requests of sessions ----------------------------------------------- */

void crew_request(struct crew *crew,
                  uint64_t token,
                  uint64_t request,
                  const char *who,
                  const char *json)
{
    MEM_GROW(crew->asks, crew->ask_count, crew->ask_capacity);
    crew->asks[crew->ask_count++] = (struct ask){
        .request = request,
        .token = token,
        .who = mem_strdup(who),
        .json = mem_strdup(json),
    };
}

/* --- saying ------------------------------------------------------------- */

bool crew_has_news(const struct crew *crew)
{
    bool saying = crew->saying; /* what it says is no news */
    bool news = crew->news || (crew->draining && crew->job_count == 0 &&
                               !(saying && crew->leaving));
    for (uint32_t ix = 0; ix < crew->job_count && !news; ix++) {
        const struct job *job = &crew->jobs[ix];
        news = !job->orphan && job->next > job->state &&
               !(saying && job->said == job->next);
    }
    for (uint32_t ix = 0; ix < crew->ask_count && !news; ix++) {
        news = crew->asks[ix].number == 0 && !(saying && crew->asks[ix].said);
    }
    return news;
}

/* Whether a job waits for something: its start, its end, or its removal. One
 * without a row is being stopped, or its end was not said. */
static bool is_moving(const struct job *job)
{
    return job->state != ROW_STARTED || job->next != ROW_STARTED ||
           job->want != WORK_RUN || job->due;
}

int64_t crew_pause_ns(const struct crew *crew)
{
    bool quiet = crew->registered && !crew->draining && crew->ask_count == 0 &&
                 crew->peek_count == 0 && crew->trouble[0] == '\0';
    for (uint32_t ix = 0; ix < crew->job_count && quiet; ix++) {
        quiet = !is_moving(&crew->jobs[ix]);
    }
    int64_t pause_ns = crew->lease_ns / PAUSES_PER_LEASE;
    if (!quiet || pause_ns < PAUSE_MIN_NS) {
        return PAUSE_MIN_NS;
    }
    return pause_ns < PAUSE_MAX_NS ? pause_ns : PAUSE_MAX_NS;
}

/* Append what the row of an accepted job has as its report: the boot in which
 * it was accepted. */
static void add_mark(struct strbuf *out, const struct crew *crew)
{
    struct work_report report = {.token = 1, .type = WORK_STARTED};
    (void)snprintf(report.mark.boot_id,
                   sizeof(report.mark.boot_id),
                   "%s",
                   crew->options.boot_id);
    wire_add_report(out, &report, NULL);
}

/* How many slots are in use, after this turn. */
static uint32_t count_used(const struct crew *crew)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < crew->job_count; ix++) {
        const struct job *job = &crew->jobs[ix];
        count += job->over && job->next == ROW_ENDED ? 0 : 1;
    }
    return count;
}

static void say_self(struct crew *crew, struct jsonw *json)
{
    const struct crew_options *options = &crew->options;
    uint32_t used = count_used(crew);
    crew->leaving = crew->draining && crew->job_count == 0 &&
                    crew->ask_count == 0 && crew->registered;
    jsonw_text(json, "name", options->name);
    jsonw_text(json, "instance", crew->instance);
    jsonw_bool(json, "fresh", !crew->registered);
    jsonw_text(json,
               "state",
               crew->leaving    ? "gone"
               : crew->draining ? "draining"
                                : "up");
    jsonw_text(json, "trouble", crew->trouble);
    if (crew->news || crew->leaving) {
        jsonw_bool(json, "news", true);
        crew->news = false;
    }
    if (!crew->draining && crew->trouble[0] == '\0' && used < options->slots) {
        struct strbuf mark = {0};
        add_mark(&mark, crew);
        jsonw_int(json, "room", options->slots - used);
        jsonw_text(json, "mark", strbuf_text(&mark));
        strbuf_release(&mark);
    }
    if (!crew->registered) {
        jsonw_text(json, "home", options->home_id);
        jsonw_text(json, "host", options->host);
        jsonw_text(json, "boot_id", options->boot_id);
        jsonw_text(json, "labels", options->labels);
        jsonw_int(json, "slots", options->slots);
        jsonw_int(json, "proto", options->proto);
        jsonw_text(json, "version", SLUICE_VERSION);
    }
}

static void say_moves(struct crew *crew, struct jsonw *json)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < crew->job_count; ix++) {
        struct job *job = &crew->jobs[ix];
        job->said = job->state;
        if (job->orphan || job->next <= job->state) {
            continue;
        }
        if (count++ == 0) {
            jsonw_array(json, "moves");
        }
        job->said = job->next;
        jsonw_object(json, NULL);
        jsonw_int(json, "token", (int64_t)job->token);
        jsonw_text(json, "to_state", states[job->next]);
        jsonw_text(json, "report", job->report);
        jsonw_object_end(json);
    }
    if (count > 0) {
        jsonw_array_end(json);
    }
}

/* Copies of the logs of sessions that have ended, and pieces of running ones
 * that somebody wants to see. */
static void say_logs(struct crew *crew, struct jsonw *json)
{
    struct strbuf dir = {0};
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < crew->job_count; ix++) {
        const struct job *job = &crew->jobs[ix];
        if (job->said == ROW_ENDED && job->given) {
            if (count++ == 0) {
                jsonw_array(json, "logs");
            }
            strbuf_clear(&dir);
            add_dir(&dir, crew, job);
            peek_add_copy(json, job->token, strbuf_text(&dir));
        }
    }
    if (count > 0) {
        jsonw_array_end(json);
    }
    for (uint32_t ix = 0; ix < crew->peek_count; ix++) {
        const struct job *job = find(crew, crew->peeks[ix].token);
        strbuf_clear(&dir);
        if (job != NULL) {
            add_dir(&dir, crew, job);
        }
        if (ix == 0) {
            jsonw_array(json, "pieces");
        }
        peek_add_piece(json, &crew->peeks[ix], strbuf_text(&dir), job == NULL);
    }
    if (crew->peek_count > 0) {
        jsonw_array_end(json);
    }
    strbuf_release(&dir);
}

static void say_asks(struct crew *crew, struct jsonw *json)
{
    if (crew->ask_count == 0) {
        return;
    }
    jsonw_array(json, "asks");
    for (uint32_t ix = 0; ix < crew->ask_count; ix++) {
        struct ask *ask = &crew->asks[ix];
        ask->said = ask->number == 0;
        if (ask->said) {
            jsonw_object(json, NULL);
            jsonw_int(json, "token", (int64_t)ask->token);
            jsonw_text(json, "who", ask->who);
            jsonw_text(json, "request", ask->json);
            jsonw_object_end(json);
        }
    }
    jsonw_array_end(json);
    jsonw_array(json, "waits");
    for (uint32_t ix = 0; ix < crew->ask_count; ix++) {
        if (crew->asks[ix].number != 0) {
            jsonw_int(json, NULL, (int64_t)crew->asks[ix].number);
        }
    }
    jsonw_array_end(json);
}

void crew_say(struct crew *crew, struct strbuf *out)
{
    struct jsonw json = {.out = out};
    INVARIANT(crew->worker != NULL && !crew->over);
    crew->saying = true;
    jsonw_object(&json, NULL);
    say_self(crew, &json);
    say_moves(crew, &json);
    say_logs(crew, &json);
    say_asks(crew, &json);
    jsonw_array(&json, "knows");
    for (uint32_t ix = 0; ix < crew->job_count; ix++) {
        jsonw_int(&json, NULL, (int64_t)crew->jobs[ix].token);
    }
    jsonw_array_end(&json);
    jsonw_object_end(&json);
}

/* --- hearing ------------------------------------------------------------ */

static const char *get_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static int64_t get_int(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

/* Add a job that a row names. NULL: it cannot be read, which was reported. */
static struct job *
add_job(struct crew *crew, const json_t *row, enum state state)
{
    struct wire_order wire;
    struct diag diag = {0};
    enum err err = wire_read_order(&wire, get_text(row, "body"), &diag);
    MEM_GROW(crew->jobs, crew->job_count, crew->job_capacity);
    struct job *job = &crew->jobs[crew->job_count++];
    *job = (struct job){
        .token = (uint64_t)get_int(row, "token"),
        .wire = wire,
        .state = state,
        .next = state,
        .said = state,
        .seen = true,
        .want = wire_read_want(get_text(row, "want")),
    };
    if (err == ERR_OK) {
        return job;
    }
    job->over = true;
    (void)set_next(crew,
                   job,
                   ROW_ENDED,
                   &(struct work_report){
                       .token = job->token,
                       .type = WORK_REFUSED,
                       .text = diag.text,
                   });
    return NULL;
}

/* A process before this one has accepted it: find out what became of it. */
static void adopt(struct crew *crew, struct job *job, const json_t *row)
{
    struct wire_report wire;
    struct diag ignored = {0};
    struct work_mark mark = {0};
    if (wire_read_report(&wire, get_text(row, "report"), &ignored) == ERR_OK) {
        mark = wire.report.mark;
    }
    wire_release_report(&wire);
    job->given = true;
    worker_ask(crew->worker,
               &job->wire.order.id,
               &mark,
               job->state == ROW_STARTED,
               job->want);
}

/* Do what a row says about a job that the worker has. */
static void obey(struct crew *crew, struct job *job, const json_t *row)
{
    enum work_want want = wire_read_want(get_text(row, "want"));
    const char *messages = json_string_value(json_object_get(row, "messages"));
    uint64_t token = job->token;
    if (!job->given || job->over) {
        job->want = want;
        return;
    }
    if (messages != NULL &&
        (job->messages == NULL || strcmp(messages, job->messages) != 0)) {
        mem_set_text(&job->messages, messages);
        worker_tell(crew->worker, token, messages);
    }
    if (want != job->want && job->want != WORK_STOP) {
        job->want = want;
        worker_want(crew->worker, token, want);
    }
}

static enum state read_state(const char *text)
{
    return strcmp(text, states[ROW_STARTED]) == 0 ? ROW_STARTED : ROW_ACCEPTED;
}

/* Whether a job was accepted in this turn. */
static bool is_new(const json_t *accepted, uint64_t token)
{
    size_t ix;
    const json_t *item;
    json_array_foreach(accepted, ix, item)
    {
        if ((uint64_t)json_integer_value(item) == token) {
            return true;
        }
    }
    return false;
}

static void
hear_row(struct crew *crew, const json_t *row, const json_t *accepted)
{
    uint64_t token = (uint64_t)get_int(row, "token");
    enum state state = read_state(get_text(row, "state"));
    struct job *job = find(crew, token);
    const char *nonce = job != NULL ? job->wire.order.id.nonce : NULL;
    if (nonce != NULL && strcmp(nonce, get_text(row, "nonce")) != 0) {
        orphan(crew, job); /* another attempt of a store that lost writes */
        job->seen = true;
        return;
    }
    if (job == NULL && !json_is_string(json_object_get(row, "body"))) {
        return; /* it was known when the turn began: the next has its order */
    }
    if (job == NULL) {
        job = add_job(crew, row, state);
        if (job != NULL && is_new(accepted, token)) {
            job->due = true;
        } else if (job != NULL) {
            adopt(crew, job, row);
        }
        return;
    }
    job->seen = true;
    job->state = state; /* less: a crash of the server forgot a report */
    obey(crew, job, row);
}

/* The rows that are not there: the end of a job was recorded, or its row was
 * taken away. */
static void hear_missing(struct crew *crew)
{
    for (uint32_t ix = crew->job_count; ix > 0; ix--) {
        struct job *job = &crew->jobs[ix - 1];
        if (job->seen) {
            continue;
        }
        if (job->said == ROW_ENDED) {
            drop(crew, job);
        } else {
            orphan(crew, job);
        }
    }
}

static void hear_rows(struct crew *crew, const json_t *json)
{
    size_t ix;
    const json_t *row;
    const json_t *rows = json_object_get(json, "rows");
    const json_t *accepted = json_object_get(json, "accepted");
    for (uint32_t job = 0; job < crew->job_count; job++) {
        crew->jobs[job].seen = false;
    }
    json_array_foreach(rows, ix, row)
    {
        hear_row(crew, row, accepted);
    }
    hear_missing(crew);
}

/* The numbers of new requests, in their order. */
static void hear_asked(struct crew *crew, const json_t *asked)
{
    size_t at = 0;
    bool whole = true;
    for (uint32_t ix = 0; ix < crew->ask_count; ix++) {
        struct ask *ask = &crew->asks[ix];
        whole = whole && (!ask->said || at < json_array_size(asked));
        if (ask->said && whole) {
            ask->number =
                (uint64_t)json_integer_value(json_array_get(asked, at++));
        }
    }
}

static void hear_answers(struct crew *crew, const json_t *answers)
{
    size_t at;
    const json_t *item;
    json_array_foreach(answers, at, item)
    {
        uint64_t number = (uint64_t)get_int(item, "number");
        for (uint32_t ix = crew->ask_count; ix > 0; ix--) {
            struct ask ask = crew->asks[ix - 1];
            if (ask.number != number) {
                continue;
            }
            crew->asks[ix - 1] = crew->asks[--crew->ask_count];
            crew->options.answer(
                crew->options.ctx,
                ask.request,
                json_string_value(json_object_get(item, "answer")));
            release_ask(&ask);
        }
    }
}

/* Requests of sessions that are gone have no answer. */
static void drop_asks(struct crew *crew)
{
    for (uint32_t ix = crew->ask_count; ix > 0; ix--) {
        struct ask ask = crew->asks[ix - 1];
        if (find(crew, ask.token) == NULL) {
            crew->asks[ix - 1] = crew->asks[--crew->ask_count];
            crew->options.answer(crew->options.ctx, ask.request, NULL);
            release_ask(&ask);
        }
    }
}

static void hear_peeks(struct crew *crew, const json_t *peeks)
{
    crew->peek_count = (uint32_t)json_array_size(peeks);
    MEM_RESIZE(crew->peeks, crew->peek_count);
    for (uint32_t ix = 0; ix < crew->peek_count; ix++) {
        const json_t *item = json_array_get(peeks, ix);
        crew->peeks[ix] = (struct peek){
            .token = (uint64_t)get_int(item, "token"),
            .first = (uint64_t)get_int(item, "first"),
        };
    }
}

/* The store does not know this process as the worker. */
static enum err
hear_refusal(struct crew *crew, const char *state, struct diag *diag)
{
    if (strcmp(state, "replaced") == 0) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "another process has become the worker %s",
                        crew->options.name);
    }
    if (strcmp(state, "taken") == 0) {
        if (!crew->taken) {
            say(crew,
                "another machine has this name: waiting until it has stopped");
        }
        crew->taken = true;
        crew->over = crew->draining && crew->job_count == 0;
        return ERR_OK;
    }
    if (crew->registered) {
        say(crew,
            "the scheduler has given up this worker: stopping its sessions");
    }
    for (uint32_t ix = crew->job_count; ix > 0; ix--) {
        orphan(crew, &crew->jobs[ix - 1]);
    }
    next_instance(crew);
    return ERR_OK;
}

static void take_lease(struct crew *crew, const json_t *json, int64_t since_ns)
{
    int64_t lease_ms = get_int(json, "lease_ms");
    int64_t until_ns = INT64_MAX;
    crew->generation = (uint64_t)get_int(json, "generation");
    crew->renewed_ns = since_ns;
    crew->lease_ns = lease_ms > 0 ? lease_ms * MS_NS : INT64_MAX;
    if (lease_ms > 0) {
        until_ns = since_ns + crew->lease_ns;
    }
    crew->options.lease(crew->options.ctx,
                        crew->generation,
                        until_ns,
                        get_int(json, "margin_ms") * MS_NS / 3 * 2);
}

enum err crew_hear(struct crew *crew,
                   const char *text,
                   int64_t since_ns,
                   struct diag *diag)
{
    crew->saying = false;
    if (text == NULL) {
        crew->news = true; /* it may not have been heard */
        return ERR_OK;
    }
    json_t *json = json_loads(text, 0, NULL);
    const char *state = get_text(json, "state");
    if (strcmp(state, "ok") != 0) {
        enum err err = hear_refusal(crew, state, diag);
        json_decref(json);
        return err;
    }
    crew->registered = true;
    crew->taken = false;
    take_lease(crew, json, since_ns);
    crew->over = crew->leaving && json_is_true(json_object_get(json, "gone"));
    hear_rows(crew, json);
    const json_t *asks = json_object_get(json, "asks");
    hear_asked(crew, json_object_get(asks, "asked"));
    hear_answers(crew, json_object_get(asks, "answers"));
    drop_asks(crew);
    hear_peeks(crew, json_object_get(json, "peeks"));
    const char *wanted = get_text(json, "wanted");
    if (strcmp(wanted, "stop") == 0 && !crew->over) {
        crew_stop(crew);
    } else if (strcmp(wanted, "drain") == 0 && !crew->draining) {
        say(crew, "draining: an operator wants it");
        crew_drain(crew);
    }
    json_decref(json);
    return ERR_OK;
}
