/* SPDX-License-Identifier: MIT */
/*
 * Phases of a job:
 *
 *   ASKED     this worker has not started it: inspect its directory
 *   STARTING  the spawn server was asked to start it
 *   RUNNING   its shim was reported, or found alive
 *
 * Reports of the spawn server are only hints: the worker always reads the state
 * of a job from its directory, so it does not matter which process started it,
 * how often a report comes, or whether it comes.
 */
#include "work/worker.h"

#include "base/crash.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "work/home.h"
#include "work/launch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* When to inspect again a directory in which a shim is about to begin; and one
 * that is unusable for now: no descriptor or disk space, for example. */
#define RECHECK_NS (20 * MS_NS)
#define TROUBLE_NS (1000 * MS_NS)

/* A shim reported this long ago has begun, or is about to: a busy machine may
 * let it wait, while its worker or its server is replaced. */
#define BEGUN_NS (25 * MS_NS)
#define LATE_NS (10000 * MS_NS)

/* The longest session whose directory is used again. */
#define SPARE_NS (1000 * MS_NS)

enum {
    SPARES_MAX = 64,
    LOG_BYTES = 16 << 10, /* of a log tail in a report */
    READS_MAX = 10,       /* of an unreadable result */
};

enum phase { JOB_ASKED, JOB_STARTING, JOB_RUNNING };

struct job {
    uint64_t token;
    char nonce[ATTEMPT_NONCE_BYTES];
    char *dir;
    char *spare;    /* directory that may become `dir`, or NULL */
    char *output;   /* file for a program's output, or NULL */
    char *messages; /* for a session, not written yet; or NULL */
    bool program;
    bool confined;
    bool ours;      /* our spawn server has it */
    bool begun;     /* it has run: without a record, its files were removed */
    bool told;      /* its shim knows `want` */
    uint8_t unread; /* failed reads of its result */
    enum phase phase;
    enum work_want want;
    struct work_mark mark;
    int64_t watched;    /* process being watched, or 0 */
    int64_t since_ns;   /* when its shim was reported */
    int64_t late_ns;    /* until when its shim may still begin; 0: it has */
    int64_t recheck_ns; /* when to inspect again; INT64_MAX: never */
};

/* The directory of a session that left nothing. */
struct spare {
    uint64_t token;
    char *dir;
    bool recorded; /* its end is in the store: nobody needs it any more */
};

struct worker {
    struct arena arena; /* for the strings of `launch` */
    struct launch launch;
    char boot_id[37];
    work_report_fn report;
    void *link;
    struct job *jobs; /* in no particular order */
    uint32_t job_count;
    uint32_t job_capacity;
    struct spare spares[SPARES_MAX]; /* the oldest first */
    uint32_t spare_count;
};

static const char *keep(struct worker *worker, const char *text)
{
    return arena_strndup(&worker->arena, text, strlen(text));
}

struct worker *worker_new(const struct worker_options *options)
{
    INVARIANT(options->machine != NULL && options->report != NULL);
    struct worker *worker = mem_zalloc(1, sizeof(*worker));
    worker->report = options->report;
    worker->link = options->link;
    int len = snprintf(worker->boot_id,
                       sizeof(worker->boot_id),
                       "%s",
                       options->boot_id);
    INVARIANT(len > 0 && (size_t)len < sizeof(worker->boot_id));
    worker->launch = (struct launch){
        .machine = options->machine,
        .ctx = options->ctx,
        .place = options->place,
        .git = keep(worker, options->git),
        .agent = keep(worker, options->agent),
        .sandbox = keep(worker, options->sandbox),
        .program = keep(worker, options->program),
        .secret = options->secret,
    };
    return worker;
}

void worker_set_lease(struct worker *worker, const char *path)
{
    worker->launch.lease = keep(worker, path);
}

static void release_job(struct job *job)
{
    mem_free(job->dir);
    mem_free(job->spare);
    mem_free(job->output);
    mem_free(job->messages);
}

void worker_free(struct worker *worker)
{
    if (worker == NULL) {
        return;
    }
    for (uint32_t ix = 0; ix < worker->job_count; ix++) {
        release_job(&worker->jobs[ix]);
    }
    mem_free(worker->jobs);
    for (uint32_t ix = 0; ix < worker->spare_count; ix++) {
        mem_free(worker->spares[ix].dir);
    }
    arena_release(&worker->arena);
    mem_free(worker);
}

static const struct work_machine *machine_of(const struct worker *worker)
{
    return worker->launch.machine;
}

static void recheck(const struct worker *worker, struct job *job, int64_t in_ns)
{
    INVARIANT(in_ns > 0);
    job->recheck_ns = machine_of(worker)->now_ns(worker->launch.ctx) + in_ns;
}

struct work_mark worker_mark(const struct worker *worker)
{
    struct work_mark mark = {0};
    memcpy(mark.boot_id, worker->boot_id, sizeof(mark.boot_id));
    return mark;
}

static struct job *find(const struct worker *worker, uint64_t token)
{
    for (uint32_t ix = 0; ix < worker->job_count; ix++) {
        if (worker->jobs[ix].token == token) {
            return &worker->jobs[ix];
        }
    }
    return NULL;
}

/* Check the invariants of a job between two calls. */
static void check(const struct worker *worker, const struct job *job)
{
    INVARIANT(job >= worker->jobs && job < worker->jobs + worker->job_count);
    INVARIANT(job->output == NULL || job->program);
    INVARIANT(job->phase != JOB_STARTING || job->ours);
    INVARIANT(
        job->phase != JOB_RUNNING ||
        (job->mark.pid > 0 && strcmp(job->mark.boot_id, worker->boot_id) == 0));
    INVARIANT(!job->told || job->want > WORK_WITHDRAW);
    INVARIANT(job->unread < READS_MAX);
}

/* Check that a job is over, or that an event will continue it. */
static void check_awaited(const struct worker *worker, uint64_t token)
{
    const struct job *job = find(worker, token);
    if (job != NULL) {
        check(worker, job);
        INVARIANT(job->phase != JOB_ASKED || job->recheck_ns != INT64_MAX);
    }
}

static struct job *add(struct worker *worker, const struct work_id *id)
{
    INVARIANT(find(worker, id->token) == NULL);
    MEM_GROW(worker->jobs, worker->job_count, worker->job_capacity);
    struct strbuf dir = {0};
    home_add_dir(&dir, worker->launch.place->home, id->run, id->task, id->name);
    struct job *job = &worker->jobs[worker->job_count++];
    *job = (struct job){
        .token = id->token,
        .dir = mem_strndup(strbuf_text(&dir), dir.len),
        .program = work_is_program(id),
        .recheck_ns = INT64_MAX,
    };
    strbuf_release(&dir);
    int len = snprintf(job->nonce, sizeof(job->nonce), "%s", id->nonce);
    INVARIANT(len >= 0 && (size_t)len < sizeof(job->nonce));
    return job;
}

/* Forget a spare directory. */
static void remove_spare(struct worker *worker, uint32_t ix)
{
    INVARIANT(ix < worker->spare_count);
    mem_free(worker->spares[ix].dir);
    worker->spare_count--;
    memmove(&worker->spares[ix],
            &worker->spares[ix + 1],
            (worker->spare_count - ix) * sizeof(worker->spares[0]));
}

/* Whether it succeeded, so that its log is not of interest. */
static bool is_plain(const struct work_report *report)
{
    INVARIANT(report->type == WORK_ENDED);
    const struct attempt_result *result = report->result;
    return report->exit.cause == ATTEMPT_EXIT && report->exit.code == 0 &&
           report->result_err == ERR_OK && result->task_count == 0 &&
           (!result->has_outcome || result->outcome == OUTCOME_DONE);
}

/* Whether it is the first attempt of a task: shims can use its directory again
 * only for another one. */
static bool is_first(const struct job *job)
{
    const char *slash = strrchr(job->dir, '/');
    return slash != NULL && strcmp(slash, "/1") == 0;
}

/* Whether two attempts are of one task. */
static bool is_same_task(const char *a, const char *b)
{
    size_t len = (size_t)(strrchr(a, '/') - a);
    return len == (size_t)(strrchr(b, '/') - b) && strncmp(a, b, len) == 0;
}

/*
 * Keep the directory of a session that is done and left nothing in it, for
 * another one: if it was short. Others end rarely, and their records are worth
 * keeping.
 */
static void keep_spare(struct worker *worker,
                       struct job *job,
                       const struct work_report *report)
{
    if (report->type != WORK_ENDED || !job->ours || job->program ||
        job->confined || !is_first(job) || !is_plain(report) ||
        report->exit.log_bytes > 0 || !report->exit.sealed ||
        report->exit.result_bytes >= 0 ||
        report->exit.ended_ns - report->exit.begun_ns > SPARE_NS) {
        return;
    }
    if (worker->spare_count == SPARES_MAX) {
        remove_spare(worker, 0);
    }
    worker->spares[worker->spare_count++] = (struct spare){
        .token = job->token,
        .dir = job->dir,
    };
    job->dir = NULL;
}

/* Report the final state of a job and remove it. */
static void
end(struct worker *worker, struct job *job, struct work_report *report)
{
    INVARIANT(report->type != WORK_STARTED);
    INVARIANT(job >= worker->jobs && job < worker->jobs + worker->job_count);
    keep_spare(worker, job, report);
    struct job over = *job;
    *job = worker->jobs[--worker->job_count];
    INVARIANT(find(worker, over.token) == NULL);
    report->token = over.token;
    worker->report(worker->link, report);
    release_job(&over);
}

/* Send `want` to the shim of a job. */
static void deliver(struct worker *worker, struct job *job)
{
    check(worker, job);
    if (job->want <= WORK_WITHDRAW || job->told || job->phase != JOB_RUNNING) {
        return; /* the report of its start calls this again */
    }
    crash_point("before-end");
    enum err err = machine_of(worker)->end(
        worker->launch.ctx,
        &job->mark,
        job->token,
        job->want == WORK_CANCEL ? EXEC_CANCEL : EXEC_STOP);
    job->told = err == ERR_OK || err == ERR_NOT_FOUND;
    if (!job->told) {
        recheck(worker, job, TROUBLE_NS);
    }
    crash_point("end-asked");
    check(worker, job);
}

/* Write the messages of a job for its session. */
static void write_messages(struct worker *worker, struct job *job)
{
    check(worker, job);
    if (job->messages == NULL || job->phase != JOB_RUNNING) {
        return; /* the report of its start calls this again */
    }
    struct strbuf text = {0};
    struct diag diag = {0};
    strbuf_adds(&text, job->messages);
    enum err err = machine_of(worker)->put(worker->launch.ctx,
                                           job->dir,
                                           WORK_MESSAGES,
                                           &text,
                                           &diag);
    if (err == ERR_OK) {
        mem_set_text(&job->messages, NULL);
    } else {
        recheck(worker, job, TROUBLE_NS);
    }
    strbuf_release(&text);
}

/* Ensure that no shim can begin it; on failure, recheck and return false. */
static bool fence(struct worker *worker, struct job *job)
{
    struct diag diag = {0};
    bool fenced = false;
    enum err err = machine_of(worker)->fence(worker->launch.ctx,
                                             job->dir,
                                             job->nonce,
                                             &fenced,
                                             &diag);
    if (err != ERR_OK || !fenced) {
        recheck(worker, job, err == ERR_OK ? RECHECK_NS : TROUBLE_NS);
    }
    return err == ERR_OK && fenced;
}

/*
 * It has not begun. Ensure that it never does, then report that. An earlier
 * request for it, of a dead server or worker, may still take effect: it is over
 * only when that is impossible.
 */
static void
refuse(struct worker *worker, struct job *job, int error, const char *text)
{
    INVARIANT(error >= 0);
    if (fence(worker, job)) {
        struct work_report report = {
            .type = WORK_REFUSED,
            .error = error,
            .text = text,
            .withdrawn = job->want != WORK_RUN,
        };
        end(worker, job, &report);
    }
}

/* Watch the shim of a job that another process started. */
static void adopt(struct worker *worker, struct job *job)
{
    INVARIANT(job->phase == JOB_RUNNING);
    job->ours = false;
    if (job->watched == job->mark.pid) {
        return;
    }
    enum err err =
        machine_of(worker)->watch(worker->launch.ctx, &job->mark, job->token);
    job->watched = err == ERR_OK ? job->mark.pid : 0;
    if (err != ERR_OK) {
        /* It is gone, or no descriptor is left to watch it. */
        recheck(worker, job, err == ERR_NOT_FOUND ? RECHECK_NS : TROUBLE_NS);
    }
    crash_point("session-adopted");
}

static void report_start(struct worker *worker, const struct job *job)
{
    INVARIANT(job->phase == JOB_RUNNING);
    worker->report(worker->link,
                   &(struct work_report){
                       .token = job->token,
                       .type = WORK_STARTED,
                       .mark = job->mark,
                   });
}

/* Its shim exists; `found`: in its directory, maybe of another worker. */
static void set_running(struct worker *worker,
                        struct job *job,
                        int64_t pid,
                        uint64_t start_ticks,
                        bool found)
{
    INVARIANT(pid > 0);
    INVARIANT(found || job->ours);
    bool another = job->mark.pid != pid || job->mark.start_ticks != start_ticks;
    bool news = another || job->phase != JOB_RUNNING;
    if (another) {
        job->told = false; /* it was sent to a shim that came too late */
    }
    if (job->want == WORK_WITHDRAW) {
        job->want = WORK_RUN; /* too late */
    }
    job->phase = JOB_RUNNING;
    job->since_ns = machine_of(worker)->now_ns(worker->launch.ctx);
    job->mark = worker_mark(worker);
    job->mark.pid = pid;
    job->mark.start_ticks = start_ticks;
    if (found) {
        adopt(worker, job);
    }
    deliver(worker, job);
    write_messages(worker, job);
    if (news) {
        report_start(worker, job);
    }
}

/* Add the output of a program to the report. */
static void add_output(struct worker *worker,
                       const struct job *job,
                       struct strbuf *output,
                       struct diag *diag,
                       struct work_report *report)
{
    if (job->output == NULL || report->type != WORK_ENDED) {
        return;
    }
    enum err err = machine_of(worker)->get(worker->launch.ctx,
                                           job->dir,
                                           job->output,
                                           output,
                                           diag);
    if (err == ERR_OK) {
        report->output = strbuf_text(output);
        report->output_len = output->len;
    } else {
        report->text = diag->text;
    }
}

/* Add the result of a session and its log tail. */
static enum err add_result(struct worker *worker,
                           const struct job *job,
                           struct attempt_result *result,
                           struct strbuf *log,
                           struct diag *diag,
                           struct work_report *report)
{
    struct diag found = {0};
    report->result_err = machine_of(worker)->result(worker->launch.ctx,
                                                    job->dir,
                                                    result,
                                                    &found);
    if (report->result_err == ERR_UNAVAILABLE) {
        (void)diag_set(diag, ERR_UNAVAILABLE, "%s/%s", job->dir, found.text);
    } else {
        *diag = found;
    }
    report->text = report->result_err != ERR_OK ? diag->text : NULL;
    if (report->type == WORK_ENDED && !is_plain(report)) {
        machine_of(worker)->log_tail(worker->launch.ctx,
                                     job->dir,
                                     LOG_BYTES,
                                     log);
        report->log = strbuf_text(log);
    }
    return report->result_err;
}

/* It has exited, or is lost: report its results. */
static void
conclude(struct worker *worker, struct job *job, struct work_report *report)
{
    INVARIANT(report->type == WORK_ENDED || report->type == WORK_LOST);
    struct attempt_result result = {0};
    struct strbuf text = {0};
    struct diag diag = {0};
    enum err err = ERR_OK;
    report->result = &result;
    report->log = "";
    if (job->program) {
        add_output(worker, job, &text, &diag, report);
    } else {
        err = add_result(worker, job, &result, &text, &diag, report);
    }
    if (err == ERR_UNAVAILABLE && ++job->unread < READS_MAX) {
        recheck(worker, job, TROUBLE_NS);
    } else {
        INVARIANT(report->output == NULL || job->output != NULL);
        end(worker, job, report);
    }
    attempt_result_release(&result);
    strbuf_release(&text);
}

/*
 * It has begun, but its directory has no record any more: it was removed. Its
 * effects are unknown, and it may still run. So that none of its processes runs
 * along with the next attempt, fence the directory against a late shim, tell
 * its shim to stop, and kill its processes.
 */
static void look_vanished(struct worker *worker, struct job *job)
{
    INVARIANT(job->begun);
    const struct work_machine *machine = machine_of(worker);
    if (!fence(worker, job)) {
        return;
    }
    if (job->mark.pid != 0) { /* else, or if it is gone: only strays */
        (void)
            machine->end(worker->launch.ctx, &job->mark, job->token, EXEC_STOP);
    }
    machine->kill_strays(worker->launch.ctx, job->dir);
    conclude(worker,
             job,
             &(struct work_report){.type = WORK_LOST, .vanished = true});
}

/* Return a directory that may be used again, or NULL. */
static char *take_spare(struct worker *worker)
{
    for (uint32_t ix = 0; ix < worker->spare_count; ix++) {
        if (worker->spares[ix].recorded) {
            char *dir = mem_strdup(worker->spares[ix].dir);
            remove_spare(worker, ix);
            return dir;
        }
    }
    return NULL;
}

/*
 * Keep the directories of this task: it has another attempt. Return false if
 * one of them may be about to become that of another job.
 */
static bool keep_task(struct worker *worker, const struct job *job)
{
    for (uint32_t ix = worker->spare_count; ix > 0; ix--) {
        if (is_same_task(worker->spares[ix - 1].dir, job->dir)) {
            remove_spare(worker, ix - 1);
        }
    }
    for (uint32_t ix = 0; ix < worker->job_count; ix++) {
        const struct job *other = &worker->jobs[ix];
        struct attempt_found found = {.state = ATTEMPT_NEVER};
        struct diag diag = {0};
        if (other->spare != NULL && is_same_task(other->spare, job->dir) &&
            (machine_of(worker)->inspect(worker->launch.ctx,
                                         other->dir,
                                         other->mark.boot_id,
                                         &found,
                                         &diag) != ERR_OK ||
             found.state == ATTEMPT_NEVER || found.state == ATTEMPT_STARTING)) {
            return false;
        }
    }
    return true;
}

static void
start(struct worker *worker, struct job *job, const struct work_order *order)
{
    INVARIANT(job->phase == JOB_ASKED && !job->begun);
    INVARIANT(job->want == WORK_RUN);
    struct diag diag = {0};
    if (!is_first(job) && !keep_task(worker, job)) {
        end(worker, job, &(struct work_report){.type = WORK_UNKNOWN});
        return; /* it will be ordered again */
    }
    job->phase = JOB_STARTING;
    job->ours = true;
    job->confined = order->sandbox.on;
    if (order->file_count == 0 && is_first(job)) {
        job->spare = take_spare(worker);
    }
    enum err err =
        launch_start(&worker->launch, order, job->dir, job->spare, &diag);
    if (err != ERR_OK) {
        /* Its files could not be written: the disk is full, for example. Any
         * other error: no shim will ever accept the request. */
        refuse(worker, job, err == ERR_IO ? EIO : 0, diag.text);
    }
    crash_point("start-asked");
}

/* Whether its shim may be about to begin: it lives, and nothing that it could
 * have started does. */
static bool is_late(struct worker *worker, struct job *job)
{
    const struct work_machine *machine = machine_of(worker);
    if (machine->now_ns(worker->launch.ctx) >= job->late_ns ||
        job->mark.pid == 0 || strcmp(job->mark.boot_id, worker->boot_id) != 0 ||
        machine->has_strays(worker->launch.ctx, job->dir)) {
        return false;
    }
    if (job->watched != job->mark.pid &&
        machine->watch(worker->launch.ctx, &job->mark, job->token) == ERR_OK) {
        job->watched = job->mark.pid;
    }
    return job->watched == job->mark.pid;
}

/*
 * Nothing ran, and no shim exists; or no trace of it is left. `order` starts
 * it, if not NULL.
 */
static void look_never(struct worker *worker,
                       struct job *job,
                       const struct work_order *order)
{
    INVARIANT(order == NULL || order->id.token == job->token);
    if (job->begun && is_late(worker, job)) {
        recheck(worker, job, RECHECK_NS);
    } else if (job->begun) {
        look_vanished(worker, job);
    } else if (!job->ours && (order == NULL || order->again) &&
               machine_of(worker)->has_strays(worker->launch.ctx, job->dir)) {
        /* It has begun since, or its directory was removed. */
        job->begun = true;
        recheck(worker, job, RECHECK_NS);
    } else if (job->want != WORK_RUN) {
        refuse(worker, job, 0, NULL);
    } else if (job->ours) {
        /* Our own shim exited before it could begin: no space for its
         * directory, for example. */
        refuse(worker, job, EAGAIN, NULL);
    } else if (order != NULL) {
        start(worker, job, order);
    } else {
        end(worker, job, &(struct work_report){.type = WORK_UNKNOWN});
    }
}

/*
 * The directory belongs to another attempt: of an earlier store in this place,
 * or of this store before an older copy replaced it. Nothing in it counts.
 * Processes still running there would write into the directory of this attempt,
 * so kill them first.
 */
static void look_foreign(struct worker *worker,
                         struct job *job,
                         const struct work_order *order)
{
    const struct work_machine *machine = machine_of(worker);
    struct diag diag = {0};
    machine->kill_strays(worker->launch.ctx, job->dir);
    if (machine->set_aside(worker->launch.ctx, job->dir, &diag) != ERR_OK) {
        recheck(worker, job, TROUBLE_NS);
        return;
    }
    job->phase = JOB_ASKED; /* no shim has it, despite any report */
    job->ours = false;
    look_never(worker, job, order);
}

/* Read the state of a job from its directory, and act on it. */
static void
look(struct worker *worker, struct job *job, const struct work_order *order)
{
    check(worker, job);
    struct attempt_found found;
    struct diag diag = {0};
    enum err err = machine_of(worker)->inspect(worker->launch.ctx,
                                               job->dir,
                                               job->mark.boot_id,
                                               &found,
                                               &diag);
    if (err != ERR_OK) {
        recheck(worker, job, TROUBLE_NS);
        return;
    }
    if (found.named && strcmp(found.nonce, job->nonce) != 0) {
        look_foreign(worker, job, order);
        return;
    }
    switch (found.state) {
    case ATTEMPT_NEVER:
        look_never(worker, job, order);
        break;
    case ATTEMPT_STARTING:
        recheck(worker, job, RECHECK_NS);
        break;
    case ATTEMPT_LIVE:
        job->begun = true;
        set_running(worker, job, found.pid, found.start_ticks, true);
        break;
    case ATTEMPT_ENDED:
        conclude(worker,
                 job,
                 &(struct work_report){
                     .type = WORK_ENDED,
                     .exit = found.exit,
                 });
        break;
    case ATTEMPT_LOST:
        if (found.fenced && !job->begun) {
            /* A worker has died after it made sure that it never starts. */
            end(worker,
                job,
                &(struct work_report){
                    .type = WORK_REFUSED,
                    .withdrawn = true,
                });
            break;
        }
        crash_point("before-strays");
        machine_of(worker)->kill_strays(worker->launch.ctx, job->dir);
        crash_point("strays-killed");
        conclude(worker, job, &(struct work_report){.type = WORK_LOST});
        break;
    }
}

/* A known job is assigned or asked for: its scheduler may have missed a report.
 * The next report comes anyway. */
static void repeat(struct worker *worker, struct job *job, enum work_want want)
{
    check(worker, job);
    worker_want(worker, job->token, want);
    if (job->phase == JOB_RUNNING) {
        report_start(worker, job);
    }
}

void worker_assign(struct worker *worker, const struct work_order *order)
{
    INVARIANT(order->id.token != 0);
    struct job *known = find(worker, order->id.token);
    if (known != NULL) {
        repeat(worker, known, order->want);
        return;
    }
    struct job *job = add(worker, &order->id);
    job->mark = worker_mark(worker);
    job->want = order->want;
    if (job->program && order->files[0].text == NULL) {
        job->output = mem_strdup(order->files[0].name);
    }
    if (job->program) {
        look(worker, job, order);
    } else if (job->want != WORK_RUN) {
        refuse(worker, job, 0, NULL);
    } else {
        start(worker, job, order);
    }
    check_awaited(worker, order->id.token);
}

void worker_ask(struct worker *worker,
                const struct work_id *id,
                const struct work_mark *mark,
                bool begun,
                enum work_want want)
{
    INVARIANT(id->token != 0);
    struct job *job = find(worker, id->token);
    if (job != NULL) {
        repeat(worker, job, want);
        return;
    }
    job = add(worker, id);
    job->mark = *mark;
    job->begun = begun;
    job->late_ns = machine_of(worker)->now_ns(worker->launch.ctx) + LATE_NS;
    job->want = want;
    look(worker, job, NULL);
    check_awaited(worker, id->token);
}

void worker_want(struct worker *worker, uint64_t token, enum work_want want)
{
    struct job *job = find(worker, token);
    if (job != NULL && !job->told) {
        job->want = want;
        deliver(worker, job);
    }
}

void worker_tell(struct worker *worker, uint64_t token, const char *text)
{
    struct job *job = find(worker, token);
    if (job != NULL) {
        INVARIANT(!job->program);
        mem_set_text(&job->messages, text);
        write_messages(worker, job);
        check_awaited(worker, token);
    }
}

void worker_recorded(struct worker *worker, uint64_t token)
{
    for (uint32_t ix = 0; ix < worker->spare_count; ix++) {
        struct spare *spare = &worker->spares[ix];
        spare->recorded = spare->recorded || spare->token == token;
    }
}

void worker_forget(struct worker *worker, const struct work_id *id)
{
    INVARIANT(work_is_program(id));
    struct strbuf dir = {0};
    home_add_dir(&dir, worker->launch.place->home, id->run, id->task, id->name);
    machine_of(worker)->drop(worker->launch.ctx, strbuf_text(&dir));
    strbuf_release(&dir);
}

void worker_reported(struct worker *worker, const struct exec_report *report)
{
    struct job *job = find(worker, report->id);
    if (job == NULL) {
        return; /* its final state was reported before */
    }
    switch (report->type) {
    case EXEC_STARTED:
        crash_point("report-started");
        if (job->phase == JOB_STARTING) {
            set_running(worker, job, report->pid, report->start_ticks, false);
        }
        break;
    case EXEC_FAILED:
        crash_point("report-failed");
        INVARIANT(report->error != 0);
        refuse(worker, job, report->error, NULL);
        break;
    case EXEC_ENDED:
        crash_point("report-ended");
        /* An error means that nothing ran: no space, for example. */
        job->begun = job->begun || report->error == 0;
        look(worker, job, NULL);
        break;
    }
    check_awaited(worker, report->id);
}

void worker_gone(struct worker *worker, uint64_t token)
{
    struct job *job = find(worker, token);
    if (job != NULL) {
        crash_point("adopted-gone");
        job->watched = 0;
        look(worker, job, NULL);
        check_awaited(worker, token);
    }
}

void worker_respawn(struct worker *worker)
{
    int64_t now_ns = machine_of(worker)->now_ns(worker->launch.ctx);
    for (uint32_t ix = worker->job_count; ix > 0; ix--) {
        struct job *job = &worker->jobs[ix - 1];
        if (job->ours && job->phase == JOB_STARTING) {
            /* It may have been started: a second request is safe. */
            end(worker, job, &(struct work_report){.type = WORK_UNKNOWN});
            continue;
        }
        /* The server may have died before it reported the exit, and the shim
         * may have another job since. If this job has not begun, it may be
         * assigned again, like a job of another worker. */
        job->begun = job->begun || (job->phase == JOB_RUNNING &&
                                    now_ns - job->since_ns >= BEGUN_NS);
        job->late_ns = now_ns + LATE_NS;
        job->ours = false;
        uint64_t token = job->token;
        look(worker, job, NULL);
        check_awaited(worker, token);
    }
}

int64_t worker_next_ns(const struct worker *worker)
{
    int64_t next_ns = INT64_MAX;
    for (uint32_t ix = 0; ix < worker->job_count; ix++) {
        int64_t at_ns = worker->jobs[ix].recheck_ns;
        next_ns = at_ns < next_ns ? at_ns : next_ns;
    }
    return next_ns;
}

void worker_tick(struct worker *worker)
{
    int64_t now_ns = machine_of(worker)->now_ns(worker->launch.ctx);
    for (uint32_t ix = worker->job_count; ix > 0; ix--) {
        INVARIANT(ix <= worker->job_count); /* reporting adds no jobs */
        struct job *job = &worker->jobs[ix - 1];
        if (job->recheck_ns <= now_ns) {
            uint64_t token = job->token;
            job->recheck_ns = INT64_MAX;
            look(worker, job, NULL);
            check_awaited(worker, token);
        }
    }
}
