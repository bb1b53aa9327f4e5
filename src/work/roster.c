/* SPDX-License-Identifier: MIT */
/*
 * Phases of a job:
 *
 *   ASKED   an earlier scheduler may have assigned it: the next turn tells
 *   NEW     it has no row yet, because no worker has a free slot, or because no
 *           turn was made since
 *   OFFERED a batch of the scheduler that is being written has its row
 *   PLACED  the row of a worker
 *
 * What was said in a turn counts as said when its result is heard. A repeated
 * turn is harmless: a row is inserted once, and wants and messages replace each
 * other. Turns have numbers, across schedulers too: one that was given up, and
 * reaches the store after the next, is ignored there. Else it could insert a
 * row again whose attempt is over by then.
 *
 * A worker is lost when its lease has ended, by the clock of the database. A
 * store that could not be reached renews no lease: so after an outage, and
 * after another scheduler, no worker is lost before a whole lease has passed.
 */
#include "work/roster.h"

#include "base/duration.h"
#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "work/crew.h"
#include "work/wire.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum phase { JOB_ASKED, JOB_NEW, JOB_OFFERED, JOB_PLACED };

struct job {
    uint64_t token;
    char nonce[ATTEMPT_NONCE_BYTES];
    char *body;     /* the order; NULL: it is in the store */
    char *label;    /* see struct work_where; or NULL, as the next two */
    char *near;     /* */
    char *worker;   /* that has it ... */
    char *instance; /* ... and its process, as the row has it */
    char *messages; /* to be said */
    enum phase phase;
    enum work_want want;
    uint64_t turn;     /* the last one before a batch had its row */
    bool known;        /* this process has its order, or had it */
    bool begun;        /* it was reported as started before this process */
    bool want_due;     /* `want` is to be said */
    bool said;         /* the turn has it: `body` ... */
    bool want_said;    /* ... `want` ... */
    bool message_said; /* ... and `messages` */
    bool started;      /* its start was reported */
    bool seen;         /* in the last result */
};

/* Where orders of equal `near` ran last. */
struct near {
    char *text;
    char *worker;
};

struct post {
    char *name;
    char *instance;
    char *labels;
    uint32_t slots;
    uint32_t used;
    bool takes; /* orders */
};

/* A request in hand. That it was taken may be lost with the server's last
 * transactions: then it comes again. */
struct request {
    uint64_t number;
    char *answer; /* NULL: none yet */
    bool session; /* of a session, which waits for it whatever happens */
    bool said;    /* the turn has the answer */
};

struct roster {
    struct roster_options options;
    struct job *jobs;
    uint32_t job_count;
    uint32_t job_capacity;
    struct post *posts; /* workers */
    uint32_t post_count;
    uint32_t post_capacity;
    struct near *nears;
    uint32_t near_count;
    uint32_t near_capacity;
    struct request *requests;
    uint32_t request_count;
    uint32_t request_capacity;
    uint64_t turn;      /* number of the last one */
    int64_t patient_ns; /* until then no worker is lost */
    bool failed;        /* the last turn has */
    bool heard;         /* the first result has come */
};

struct roster *roster_new(const struct roster_options *options)
{
    struct roster *roster = mem_zalloc(1, sizeof(*roster));
    INVARIANT(options->epoch > 0 && options->report != NULL);
    roster->options = *options;
    roster->turn = options->epoch << 32;
    roster->failed = true; /* there may have been an outage */
    return roster;
}

static void release_job(struct job *job)
{
    mem_free(job->body);
    mem_free(job->label);
    mem_free(job->near);
    mem_free(job->worker);
    mem_free(job->instance);
    mem_free(job->messages);
}

static void clear_posts(struct roster *roster)
{
    for (uint32_t ix = 0; ix < roster->post_count; ix++) {
        mem_free(roster->posts[ix].name);
        mem_free(roster->posts[ix].instance);
        mem_free(roster->posts[ix].labels);
    }
    roster->post_count = 0;
}

void roster_free(struct roster *roster)
{
    if (roster == NULL) {
        return;
    }
    for (uint32_t ix = 0; ix < roster->job_count; ix++) {
        release_job(&roster->jobs[ix]);
    }
    clear_posts(roster);
    for (uint32_t ix = 0; ix < roster->near_count; ix++) {
        mem_free(roster->nears[ix].text);
        mem_free(roster->nears[ix].worker);
    }
    for (uint32_t ix = 0; ix < roster->request_count; ix++) {
        mem_free(roster->requests[ix].answer);
    }
    mem_free(roster->jobs);
    mem_free(roster->posts);
    mem_free(roster->nears);
    mem_free(roster->requests);
    mem_free(roster);
}

static struct job *find(const struct roster *roster, uint64_t token)
{
    for (uint32_t ix = 0; ix < roster->job_count; ix++) {
        if (roster->jobs[ix].token == token) {
            return &roster->jobs[ix];
        }
    }
    return NULL;
}

static struct job *add(struct roster *roster, const struct work_id *id)
{
    INVARIANT(find(roster, id->token) == NULL && !work_is_program(id));
    MEM_GROW(roster->jobs, roster->job_count, roster->job_capacity);
    struct job *job = &roster->jobs[roster->job_count++];
    *job = (struct job){.token = id->token};
    int len = snprintf(job->nonce, sizeof(job->nonce), "%s", id->nonce);
    INVARIANT(len >= 0 && (size_t)len < sizeof(job->nonce));
    return job;
}

/* Report the final state of a job, and remove it. */
static void
end(struct roster *roster, struct job *job, struct work_report *report)
{
    INVARIANT(report->type != WORK_STARTED);
    struct job over = *job;
    *job = roster->jobs[--roster->job_count];
    report->token = over.token;
    roster->options.report(roster->options.ctx, report);
    release_job(&over);
}

static void refuse_withdrawn(struct roster *roster, struct job *job)
{
    struct work_report report = {.type = WORK_REFUSED, .withdrawn = true};
    end(roster, job, &report);
}

/* --- orders ------------------------------------------------------------- */

void roster_assign(struct roster *roster, const struct work_order *order)
{
    struct job *job = find(roster, order->id.token);
    if (job != NULL) {
        roster_want(roster, order->id.token, order->want);
        return;
    }
    job = add(roster, &order->id);
    job->phase = JOB_NEW;
    if (order->want != WORK_RUN) {
        /* Only a scheduler inserts rows, and this one has not. */
        refuse_withdrawn(roster, job);
        return;
    }
    struct strbuf body = {0};
    wire_add_order(&body, order);
    job->body = body.text;
    job->known = true;
    mem_set_text(&job->label, order->where.label);
    mem_set_text(&job->near, order->where.near);
}

void roster_ask(struct roster *roster,
                const struct work_id *id,
                bool begun,
                enum work_want want)
{
    struct job *job = find(roster, id->token);
    if (job == NULL) {
        job = add(roster, id);
        job->begun = begun;
    }
    roster_want(roster, id->token, want);
}

void roster_want(struct roster *roster, uint64_t token, enum work_want want)
{
    struct job *job = find(roster, token);
    if (job == NULL || job->want == want) {
        return;
    }
    job->want = want;
    if (job->phase == JOB_NEW && !job->said) {
        refuse_withdrawn(roster, job);
        return;
    }
    job->want_due = true;
    job->want_said = false;
}

void roster_tell(struct roster *roster, uint64_t token, const char *text)
{
    struct job *job = find(roster, token);
    if (job != NULL) {
        mem_set_text(&job->messages, text);
        job->message_said = false;
    }
}

static struct request *find_request(const struct roster *roster,
                                    uint64_t number)
{
    for (uint32_t ix = 0; ix < roster->request_count; ix++) {
        if (roster->requests[ix].number == number) {
            return &roster->requests[ix];
        }
    }
    return NULL;
}

void roster_answer(struct roster *roster, uint64_t number, const char *json)
{
    struct request *request = find_request(roster, number);
    INVARIANT(request != NULL && request->answer == NULL);
    request->answer = mem_strdup(json);
}

/* --- choosing a worker -------------------------------------------------- */

static struct post *find_post(const struct roster *roster, const char *name)
{
    for (uint32_t ix = 0; name != NULL && ix < roster->post_count; ix++) {
        if (strcmp(roster->posts[ix].name, name) == 0) {
            return &roster->posts[ix];
        }
    }
    return NULL;
}

static struct near *find_near(const struct roster *roster, const char *text)
{
    for (uint32_t ix = 0; text != NULL && ix < roster->near_count; ix++) {
        if (strcmp(roster->nears[ix].text, text) == 0) {
            return &roster->nears[ix];
        }
    }
    return NULL;
}

static void note_near(struct roster *roster, const struct job *job)
{
    struct near *near = find_near(roster, job->near);
    INVARIANT(job->worker != NULL);
    if (job->near == NULL) {
        return;
    }
    if (near == NULL) {
        MEM_GROW(roster->nears, roster->near_count, roster->near_capacity);
        near = &roster->nears[roster->near_count++];
        *near = (struct near){.text = mem_strdup(job->near)};
    }
    mem_set_text(&near->worker, job->worker);
}

static uint32_t count_labels(const char *labels)
{
    uint32_t count = 1;
    for (; *labels != '\0'; labels++) {
        count += *labels == ',' ? 1 : 0;
    }
    return count;
}

static bool fits(const struct post *post, const struct job *job)
{
    return post->takes && post->used < post->slots &&
           (job->label == NULL || wire_has_label(post->labels, job->label));
}

/* Whether `a` is a better place than `b`: it states how much it can do, has a
 * greater part of its slots free, or fewer labels, which others may need. */
static bool is_better(const struct post *a, const struct post *b)
{
    bool states_a = a->slots < CREW_SLOTS_ANY;
    bool states_b = b->slots < CREW_SLOTS_ANY;
    if (states_a != states_b) {
        return states_a;
    }
    uint64_t free_a = (uint64_t)(a->slots - a->used) * b->slots;
    uint64_t free_b = (uint64_t)(b->slots - b->used) * a->slots;
    if (free_a != free_b) {
        return free_a > free_b;
    }
    return count_labels(a->labels) < count_labels(b->labels);
}

/* The worker for a job, or NULL: all that might have it are busy. */
static struct post *choose(const struct roster *roster, const struct job *job)
{
    const struct near *near = find_near(roster, job->near);
    struct post *best = find_post(roster, near != NULL ? near->worker : NULL);
    if (best != NULL && fits(best, job)) {
        return best;
    }
    best = NULL;
    for (uint32_t ix = 0; ix < roster->post_count; ix++) {
        struct post *post = &roster->posts[ix];
        if (fits(post, job) && (best == NULL || is_better(post, best))) {
            best = post;
        }
    }
    return best;
}

/* Whether a placed job waits for a worker that takes nothing. */
static bool is_stranded(const struct roster *roster, const struct job *job)
{
    const struct post *post = find_post(roster, job->worker);
    return job->phase == JOB_PLACED && !job->started && !job->begun &&
           (post == NULL || !post->takes);
}

/* Return where to move a job that nobody will accept: its worker takes nothing,
 * or has another process since it was assigned. NULL: leave it there, also
 * because it is not known here where it may run: see say_recalls(). */
static struct post *choose_again(const struct roster *roster,
                                 const struct job *job)
{
    struct post *post = find_post(roster, job->worker);
    if (job->phase != JOB_PLACED || job->started || job->begun) {
        return NULL;
    }
    if (is_stranded(roster, job)) {
        return job->known ? choose(roster, job) : NULL;
    }
    INVARIANT(post != NULL); /* else it is stranded */
    INVARIANT(job->instance != NULL);
    return strcmp(job->instance, post->instance) == 0 ? NULL : post;
}

/* Count how much each worker has. */
static void count_used(struct roster *roster)
{
    for (uint32_t ix = 0; ix < roster->post_count; ix++) {
        roster->posts[ix].used = 0;
    }
    for (uint32_t ix = 0; ix < roster->job_count; ix++) {
        struct post *post = find_post(roster, roster->jobs[ix].worker);
        if (post != NULL) {
            post->used++;
        }
    }
}

/* --- saying ------------------------------------------------------------- */

/* Begin the next object of a list, which is left out if it has none. */
static void next_item(struct jsonw *json, const char *list, uint32_t *count)
{
    if ((*count)++ == 0) {
        jsonw_array(json, list);
    }
    jsonw_object(json, NULL);
}

static void end_list(struct jsonw *json, uint32_t count)
{
    if (count > 0) {
        jsonw_array_end(json);
    }
}

/* Whether a turn would change something about jobs. */
static bool has_news_of_jobs(const struct roster *roster)
{
    for (uint32_t ix = 0; ix < roster->job_count; ix++) {
        const struct job *job = &roster->jobs[ix];
        if (job->phase == JOB_OFFERED) {
            continue; /* what is said of it may come before its row */
        }
        if (job->phase == JOB_ASKED || (job->want_due && !job->want_said) ||
            (job->messages != NULL && !job->message_said) ||
            (job->phase == JOB_NEW && !job->said &&
             choose(roster, job) != NULL)) {
            return true;
        }
    }
    return false;
}

bool roster_has_news(const struct roster *roster)
{
    for (uint32_t ix = 0; ix < roster->request_count; ix++) {
        const struct request *request = &roster->requests[ix];
        if (request->answer != NULL && !request->said) {
            return true;
        }
    }
    return has_news_of_jobs(roster);
}

bool roster_may_wait(const struct roster *roster)
{
    if (has_news_of_jobs(roster)) {
        return false;
    }
    for (uint32_t ix = 0; ix < roster->job_count; ix++) {
        const struct job *job = &roster->jobs[ix];
        if (job->phase == JOB_PLACED && !job->begun && !job->started) {
            return true;
        }
    }
    return false;
}

/* Give a job to a worker, and say it. */
static void say_order(struct jsonw *json, struct job *job, struct post *post)
{
    INVARIANT(job->body != NULL);
    post->used++;
    mem_set_text(&job->worker, post->name);
    mem_set_text(&job->instance, post->instance);
    jsonw_int(json, "token", (int64_t)job->token);
    jsonw_text(json, "nonce", job->nonce);
    jsonw_text(json, "worker", post->name);
    jsonw_text(json, "instance", post->instance);
    jsonw_text(json, "body", job->body);
}

void roster_offer(struct roster *roster,
                  const struct work_order *order,
                  struct strbuf *out)
{
    INVARIANT(find(roster, order->id.token) == NULL);
    INVARIANT(order->want == WORK_RUN);
    bool waits = !roster->heard || roster->failed;
    for (uint32_t ix = 0; ix < roster->job_count && !waits; ix++) {
        waits = roster->jobs[ix].phase == JOB_NEW; /* it comes first */
    }
    if (waits) {
        return;
    }
    count_used(roster);
    struct job *job = add(roster, &order->id);
    mem_set_text(&job->label, order->where.label);
    mem_set_text(&job->near, order->where.near);
    struct post *post = choose(roster, job);
    if (post == NULL) {
        release_job(job);
        roster->job_count--;
        return;
    }
    struct strbuf body = {0};
    wire_add_order(&body, order);
    job->body = body.text;
    job->known = true;
    strbuf_adds(out, out->len > 0 ? "," : "");
    struct jsonw json = {.out = out};
    jsonw_object(&json, NULL);
    say_order(&json, job, post);
    jsonw_object_end(&json);
    job->phase = JOB_OFFERED;
}

void roster_written(struct roster *roster)
{
    for (uint32_t ix = 0; ix < roster->job_count; ix++) {
        struct job *job = &roster->jobs[ix];
        if (job->phase == JOB_OFFERED) {
            job->phase = JOB_PLACED;
            job->turn = roster->turn;
        }
    }
}

/* Say the orders that fit, oldest first. Return how many there are. */
static uint32_t say_orders(struct roster *roster, struct jsonw *json)
{
    uint32_t count = 0;
    for (uint64_t after = 0;;) {
        struct job *next = NULL;
        for (uint32_t ix = 0; ix < roster->job_count; ix++) {
            struct job *job = &roster->jobs[ix];
            if (job->phase == JOB_NEW && job->token > after &&
                (next == NULL || job->token < next->token)) {
                next = job;
            }
        }
        if (next == NULL) {
            break;
        }
        after = next->token;
        struct post *post = choose(roster, next);
        if (post != NULL) {
            next->said = true;
            next_item(json, "orders", &count);
            say_order(json, next, post);
            jsonw_object_end(json);
        }
    }
    end_list(json, count);
    return count;
}

/* Move what nobody has accepted to workers that take it. */
static uint32_t say_moves(struct roster *roster, struct jsonw *json)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < roster->job_count; ix++) {
        struct job *job = &roster->jobs[ix];
        struct post *post = choose_again(roster, job);
        if (post == NULL) {
            continue;
        }
        post->used += strcmp(post->name, job->worker) != 0 ? 1 : 0;
        next_item(json, "moves", &count);
        jsonw_int(json, "token", (int64_t)job->token);
        jsonw_text(json, "from_worker", job->worker);
        jsonw_text(json, "worker", post->name);
        jsonw_text(json, "instance", post->instance);
        jsonw_object_end(json);
    }
    end_list(json, count);
    return count;
}

/* Take back what an earlier scheduler has assigned in vain: where it may run is
 * in its order, which the engine then gives again. */
static uint32_t say_recalls(struct roster *roster, struct jsonw *json)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < roster->job_count; ix++) {
        const struct job *job = &roster->jobs[ix];
        if (!job->known && is_stranded(roster, job)) {
            next_item(json, "recalls", &count);
            jsonw_int(json, "token", (int64_t)job->token);
            jsonw_text(json, "from_worker", job->worker);
            jsonw_object_end(json);
        }
    }
    end_list(json, count);
    return count;
}

static uint32_t say_wants(struct roster *roster, struct jsonw *json)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < roster->job_count; ix++) {
        struct job *job = &roster->jobs[ix];
        if (job->want_due && job->phase != JOB_OFFERED) {
            job->want_said = true;
            next_item(json, "wants", &count);
            jsonw_int(json, "token", (int64_t)job->token);
            jsonw_text(json, "want", wire_want_name(job->want));
            jsonw_object_end(json);
        }
    }
    end_list(json, count);
    return count;
}

static uint32_t say_tells(struct roster *roster, struct jsonw *json)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < roster->job_count; ix++) {
        struct job *job = &roster->jobs[ix];
        if (job->messages != NULL && job->phase != JOB_NEW &&
            job->phase != JOB_OFFERED) {
            job->message_said = true;
            next_item(json, "tells", &count);
            jsonw_int(json, "token", (int64_t)job->token);
            jsonw_text(json, "text", job->messages);
            jsonw_object_end(json);
        }
    }
    end_list(json, count);
    return count;
}

/* Say the answers; *durable: one of them must not get lost. */
static uint32_t
say_answers(struct roster *roster, struct jsonw *json, bool *durable)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < roster->request_count; ix++) {
        struct request *request = &roster->requests[ix];
        if (request->answer != NULL) {
            request->said = true;
            *durable = *durable || request->session;
            next_item(json, "answers", &count);
            jsonw_int(json, "number", (int64_t)request->number);
            jsonw_text(json, "answer", request->answer);
            jsonw_object_end(json);
        }
    }
    end_list(json, count);
    return count;
}

void roster_say(struct roster *roster, struct strbuf *out)
{
    struct jsonw json = {.out = out};
    count_used(roster);
    jsonw_object(&json, NULL);
    jsonw_int(&json, "epoch", (int64_t)roster->options.epoch);
    jsonw_int(&json, "turn", (int64_t)++roster->turn);
    uint32_t count = say_orders(roster, &json);
    count += say_moves(roster, &json);
    count += say_recalls(roster, &json);
    count += say_wants(roster, &json);
    count += say_tells(roster, &json);
    bool durable = count > 0 || !roster->heard;
    count += say_answers(roster, &json, &durable);
    if (!roster->heard) {
        jsonw_bool(&json, "first", true);
    }
    if (count > 0 || !roster->heard) {
        jsonw_bool(&json, "changes", true);
    }
    if (durable) {
        jsonw_bool(&json, "durable", true);
    }
    int64_t now_ns = roster->options.now_ns(roster->options.ctx);
    if (roster->failed) {
        jsonw_bool(&json, "again", true);
    }
    if (roster->failed || now_ns < roster->patient_ns) {
        jsonw_bool(&json, "patient", true);
    }
    jsonw_object_end(&json);
}

void roster_say_brief(const struct roster *roster, struct strbuf *out)
{
    struct jsonw json = {.out = out};
    jsonw_object(&json, NULL);
    jsonw_int(&json, "epoch", (int64_t)roster->options.epoch);
    jsonw_object_end(&json);
}

/* --- hearing ------------------------------------------------------------ */

static const char *get_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

/* What was said counts as said; or it did not reach the store. */
static void settle_said(struct roster *roster, bool heard)
{
    uint32_t kept = 0;
    for (uint32_t ix = 0; ix < roster->request_count; ix++) {
        struct request *request = &roster->requests[ix];
        if (heard && request->said) {
            mem_free(request->answer);
        } else {
            request->said = false;
            roster->requests[kept++] = *request;
        }
    }
    roster->request_count = kept;
    for (uint32_t ix = 0; ix < roster->job_count; ix++) {
        struct job *job = &roster->jobs[ix];
        if (heard && job->said) {
            job->phase = JOB_PLACED;
        } else if (job->phase == JOB_NEW) {
            mem_set_text(&job->worker, NULL); /* it is placed once more */
        }
        job->want_due = job->want_due && !(heard && job->want_said);
        job->want_said = false;
        if (heard && job->message_said) {
            mem_set_text(&job->messages, NULL);
        }
        job->message_said = false;
        job->said = job->said && !heard; /* else it may be in the store */
    }
}

static void hear_workers(struct roster *roster, const json_t *array)
{
    size_t ix;
    const json_t *item;
    clear_posts(roster);
    json_array_foreach(array, ix, item)
    {
        MEM_GROW(roster->posts, roster->post_count, roster->post_capacity);
        int64_t slots = json_integer_value(json_object_get(item, "slots"));
        int64_t proto = json_integer_value(json_object_get(item, "proto"));
        roster->posts[roster->post_count++] = (struct post){
            .name = mem_strdup(get_text(item, "name")),
            .instance = mem_strdup(get_text(item, "instance")),
            .labels = mem_strdup(get_text(item, "labels")),
            .slots = slots > 0 && slots < UINT32_MAX ? (uint32_t)slots : 0,
            .takes = strcmp(get_text(item, "state"), "up") == 0 &&
                     proto == WIRE_PROTO &&
                     json_is_true(json_object_get(item, "fresh")) &&
                     get_text(item, "trouble")[0] == '\0',
        };
    }
}

/* Tell who could do how much. */
static void tell_workers(struct roster *roster)
{
    uint32_t count = roster->post_count;
    struct roster_worker *list = mem_zalloc(count + 1, sizeof(list[0]));
    count_used(roster);
    for (uint32_t ix = 0; ix < count; ix++) {
        const struct post *post = &roster->posts[ix];
        list[ix] = (struct roster_worker){
            .name = post->name,
            .labels = post->labels,
            .slots = post->takes ? post->slots : post->used,
        };
    }
    roster->options.workers(roster->options.ctx, list, count);
    mem_free(list);
}

/* A worker that will not come back had it. */
static void hear_lost(struct roster *roster, struct job *job)
{
    static const struct attempt_result none;
    struct work_report report = {
        .type = WORK_LOST,
        .result = &none,
        .log = "",
    };
    end(roster, job, &report);
}

/* A report of a worker. */
static void hear_report(struct roster *roster,
                        struct job *job,
                        const char *text,
                        bool final)
{
    struct wire_report wire;
    struct diag diag = {0};
    enum err err = wire_read_report(&wire, text, &diag);
    struct work_report *report = &wire.report;
    if (err == ERR_OK && !final && report->type == WORK_STARTED) {
        (void)snprintf(report->mark.worker,
                       sizeof(report->mark.worker),
                       "%s",
                       job->worker);
        job->started = true;
        report->token = job->token;
        roster->options.report(roster->options.ctx, report);
    } else if (err == ERR_OK && final && report->type != WORK_STARTED) {
        end(roster, job, report);
    } else if (final) {
        hear_lost(roster, job); /* what became of it cannot be read */
    }
    wire_release_report(&wire);
}

static void hear_row(struct roster *roster, struct job *job, const json_t *row)
{
    const char *state = get_text(row, "state");
    job->seen = true;
    job->phase = JOB_PLACED;
    mem_set_text(&job->body, NULL);
    mem_set_text(&job->worker, get_text(row, "worker"));
    mem_set_text(&job->instance, get_text(row, "instance"));
    note_near(roster, job);
    if (strcmp(state, "accepted") == 0) {
        job->begun = true; /* it cannot be moved */
    } else if (strcmp(state, "started") == 0 && !job->started) {
        hear_report(roster, job, get_text(row, "report"), false);
    } else if (strcmp(state, "ended") == 0) {
        hear_report(roster, job, get_text(row, "report"), true);
    } else if (strcmp(state, "lost") == 0) {
        hear_lost(roster, job);
    }
}

/* A job that should have a row has none: an earlier scheduler did not insert
 * it; or it was lost with the server's last transactions. */
static void hear_missing(struct roster *roster)
{
    for (uint32_t ix = roster->job_count; ix > 0; ix--) {
        struct job *job = &roster->jobs[ix - 1];
        if (job->seen || job->phase == JOB_NEW || job->phase == JOB_OFFERED ||
            job->turn == roster->turn) {
            continue;
        }
        if (job->begun || job->started) {
            hear_lost(roster, job);
        } else if (job->want != WORK_RUN) {
            refuse_withdrawn(roster, job);
        } else {
            struct work_report report = {.type = WORK_UNKNOWN};
            end(roster, job, &report);
        }
    }
}

static void hear_rows(struct roster *roster, const json_t *array)
{
    size_t ix;
    const json_t *row;
    for (uint32_t job = 0; job < roster->job_count; job++) {
        roster->jobs[job].seen = false;
    }
    json_array_foreach(array, ix, row)
    {
        uint64_t token =
            (uint64_t)json_integer_value(json_object_get(row, "token"));
        struct job *job = find(roster, token);
        if (job != NULL && job->phase != JOB_OFFERED) {
            hear_row(roster, job, row);
        }
    }
    hear_missing(roster);
}

static void hear_requests(struct roster *roster, const json_t *array)
{
    size_t ix;
    const json_t *ask;
    json_array_foreach(array, ix, ask)
    {
        uint64_t number =
            (uint64_t)json_integer_value(json_object_get(ask, "number"));
        uint64_t token =
            (uint64_t)json_integer_value(json_object_get(ask, "token"));
        if (find_request(roster, number) != NULL) {
            continue;
        }
        MEM_GROW(roster->requests,
                 roster->request_count,
                 roster->request_capacity);
        bool session = json_is_true(json_object_get(ask, "session"));
        roster->requests[roster->request_count++] = (struct request){
            .number = number,
            .session = session,
        };
        const struct job *job = find(roster, token);
        bool own = job != NULL && job->worker != NULL &&
                   strcmp(job->worker, get_text(ask, "worker")) == 0;
        struct roster_request request = {
            .number = number,
            .who = get_text(ask, "who"),
            .json = get_text(ask, "request"),
            .session = session,
            .token = own ? token : 0,
            .nonce = own ? job->nonce : "",
        };
        roster->options.request(roster->options.ctx, &request);
    }
}

enum err roster_hear(struct roster *roster, const char *text, struct diag *diag)
{
    if (text == NULL) {
        roster->failed = true;
        settle_said(roster, false);
        return ERR_OK;
    }
    json_t *json = json_loads(text, 0, NULL);
    if (json_is_true(json_object_get(json, "superseded"))) {
        json_decref(json);
        return diag_set(diag,
                        ERR_CONFLICT,
                        "another process has become the scheduler");
    }
    if (json_is_true(json_object_get(json, "brief"))) {
        hear_requests(roster, json_object_get(json, "asks"));
        json_decref(json);
        return ERR_OK;
    }
    if (!json_is_array(json_object_get(json, "rows"))) {
        json_decref(json);
        return diag_set(diag,
                        ERR_CORRUPT,
                        "the store answers a turn with something else");
    }
    if (roster->failed) {
        int64_t lease_ms =
            json_integer_value(json_object_get(json, "lease_ms"));
        roster->patient_ns =
            roster->options.now_ns(roster->options.ctx) + lease_ms * MS_NS;
    }
    roster->failed = false;
    roster->heard = true;
    settle_said(roster, true);
    hear_workers(roster, json_object_get(json, "workers"));
    hear_rows(roster, json_object_get(json, "rows"));
    tell_workers(roster);
    hear_requests(roster, json_object_get(json, "asks"));
    json_decref(json);
    return ERR_OK;
}
