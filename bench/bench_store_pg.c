/* SPDX-License-Identifier: MIT */
/*
 * The PostgreSQL store from outside: how many attempts per second it records,
 * and the client of an operator's requests.
 *
 *   bench_store_pg add ADDRESS ATTEMPTS
 *   bench_store_pg rows ADDRESS ATTEMPTS BATCH
 *   bench_store_pg work ADDRESS ATTEMPTS BATCH
 *   bench_store_pg ask ADDRESS
 *
 * `add` creates a run with ATTEMPTS tasks that are ready, as jobs in a queue.
 * `rows` claims, starts and ends an attempt of each task, as the engine
 * does for sessions of its own machine: a batch ends BATCH attempts, starts the
 * next BATCH and claims the BATCH after these, 10 row changes for each attempt.
 * `work` has a worker run them: a turn of the scheduler assigns them, and three
 * turns of the worker accept them and report their start and end, 5 row changes
 * more. Both print the seconds from the first claim to the last end.
 *
 * `ask` sends each line of standard input to the scheduler, on one connection,
 * and prints the wall clock before it was sent and after the answer.
 */
#include "base/clock.h"
#include "base/diag.h"
#include "base/duration.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "store/pg_link.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOOT_ID "11111111-2222-3333-4444-555555555555"
#define NONCE "0123456789abcdef0123456789abcdef"

enum { ASK_MS = 10000, LINE_BYTES = 4096, BODY_BYTES = 600 };

struct bench {
    const char *address;
    struct store *store;
    struct pg_link worker;    /* `work` only, as the next two */
    struct pg_link scheduler; /* */
    char *body;               /* of an order */
    uint64_t epoch;
    uint64_t version; /* of task rows */
    uint32_t attempts;
    uint32_t batch;
    struct store_batch changes;
};

static void check(enum err err, const struct diag *diag)
{
    if (err != ERR_OK) {
        (void)fprintf(stderr, "bench_store_pg: %s\n", diag->text);
        exit(1);
    }
}

/* --- batches ------------------------------------------------------------ */

static void write_batch(struct bench *bench)
{
    struct diag diag = {0};
    bench->changes.epoch = bench->epoch;
    bench->changes.engine_ns = clock_boot_ns();
    bench->changes.wall_ns = clock_wall_ns();
    check(store_write(bench->store, &bench->changes, &diag), &diag);
    store_batch_clear(&bench->changes);
}

static void name_task(char out[static 32], uint32_t ix)
{
    (void)snprintf(out, 32, "issue-%u/implement", ix);
}

static void
add_event(struct bench *bench, uint32_t ix, const char *kind, const char *data)
{
    store_batch_add(&bench->changes,
                    &(struct store_change){
                        .type = STORE_EVENT,
                        .as.event =
                            {
                                .wall_ns = clock_wall_ns(),
                                .run = 1,
                                .task = ix,
                                .kind = kind,
                                .data = data,
                            },
                    });
}

/* A task changes its state, which is an event. */
static void add_task(struct bench *bench, uint32_t ix, const char *state)
{
    char id[32];
    char data[128];
    name_task(id, ix);
    bool claimed = strcmp(state, "ready") != 0;
    bool done = strcmp(state, "done") == 0;
    store_batch_add(&bench->changes,
                    &(struct store_change){
                        .type = STORE_TASK_SET,
                        .as.task =
                            {
                                .run = 1,
                                .ix = ix,
                                .id = id,
                                .state = state,
                                .ready_ns = 1000,
                                .ready_seq = ix,
                                .version = ++bench->version,
                                .token = claimed && !done ? ix + 1 : 0,
                                .leader = STORE_NONE,
                                .cause = STORE_NONE,
                                .attempts = done ? 1 : 0,
                                .number = claimed ? 1 : 0,
                                .tries = done ? 1 : 0,
                            },
                    });
    (void)snprintf(data,
                   sizeof(data),
                   "{\"task\":\"%s\",\"to\":\"%s\",\"attempt\":1}",
                   id,
                   state);
    add_event(bench, ix, "task", data);
}

static void add_attempt(struct bench *bench, uint32_t ix, const char *state)
{
    bool claim = strcmp(state, "claimed") == 0;
    bool ended = strcmp(state, "ended") == 0;
    int64_t wall_ns = clock_wall_ns();
    store_batch_add(&bench->changes,
                    &(struct store_change){
                        .type = claim ? STORE_CLAIM : STORE_ATTEMPT_SET,
                        .as.attempt =
                            {
                                .token = ix + 1,
                                .run = 1,
                                .task = ix,
                                .number = 1,
                                .task_count = 1,
                                .slot = ix % bench->batch + 1,
                                .state = state,
                                .epoch = bench->epoch,
                                .boot_id = BOOT_ID,
                                .nonce = NONCE,
                                .pid = claim ? 0 : 1234,
                                .start_ticks = claim ? 0 : 99,
                                .claimed_ns = wall_ns,
                                .begun_ns = claim ? 0 : wall_ns,
                                .ended_ns = ended ? wall_ns : 0,
                                .outcome = ended ? "done" : NULL,
                                .cause = ended ? "exit" : NULL,
                                .code = ended ? 0 : -1,
                            },
                    });
}

static void add_end(struct bench *bench, uint32_t ix)
{
    char id[32];
    char data[192];
    name_task(id, ix);
    (void)snprintf(data,
                   sizeof(data),
                   "{\"task\":\"%s\",\"attempt\":1,\"token\":%u,\"outcome\":"
                   "\"done\",\"cause\":\"exit\",\"code\":0,\"took_ns\":1000}",
                   id,
                   ix + 1);
    add_attempt(bench, ix, "ended");
    add_event(bench, ix, "attempt", data);
    add_task(bench, ix, "done");
}

/* Batch `n` ends, starts and claims a share of attempts each. */
static void add_share(struct bench *bench, uint32_t n)
{
    uint32_t size = bench->batch;
    uint32_t total = bench->attempts;
    for (uint32_t ix = n >= 2 ? (n - 2) * size : 0;
         n >= 2 && ix < (n - 1) * size && ix < total;
         ix++) {
        add_end(bench, ix);
    }
    for (uint32_t ix = n >= 1 ? (n - 1) * size : 0; ix < n * size && ix < total;
         ix++) {
        add_attempt(bench, ix, "running");
        add_task(bench, ix, "running");
    }
    for (uint32_t ix = n * size; ix < (n + 1) * size && ix < total; ix++) {
        add_attempt(bench, ix, "claimed");
        add_task(bench, ix, "starting");
    }
}

/* --- turns -------------------------------------------------------------- */

static void turn(struct pg_link *link, const char *sql, struct strbuf *said)
{
    struct diag diag = {0};
    struct pg_params params = {0};
    enum err err = ERR_OK;
    pg_add_text(&params, strbuf_text(said));
    PGresult *result = pg_run(link, sql, &params, &err, &diag);
    check(err, &diag);
    PQclear(result);
    strbuf_clear(said);
}

static void scheduler_turn(struct bench *bench, uint32_t from, uint32_t to)
{
    struct strbuf said = {0};
    struct jsonw json = {.out = &said};
    jsonw_object(&json, NULL);
    jsonw_int(&json, "epoch", (int64_t)bench->epoch);
    if (from < to) {
        jsonw_bool(&json, "changes", true);
        jsonw_array(&json, "orders");
    }
    for (uint32_t ix = from; ix < to; ix++) {
        jsonw_object(&json, NULL);
        jsonw_int(&json, "token", ix + 1);
        jsonw_text(&json, "nonce", NONCE);
        jsonw_text(&json, "worker", "w");
        jsonw_text(&json, "instance", "i");
        jsonw_text(&json, "body", bench->body);
        jsonw_object_end(&json);
    }
    if (from < to) {
        jsonw_array_end(&json);
    }
    jsonw_object_end(&json);
    turn(&bench->scheduler, "SELECT scheduler_turn($1::jsonb)", &said);
    strbuf_release(&said);
}

/* `state`: of the rows to report about; NULL: accept instead. */
static void
worker_turn(struct bench *bench, uint32_t from, uint32_t to, const char *state)
{
    struct strbuf said = {0};
    struct jsonw json = {.out = &said};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "name", "w");
    jsonw_text(&json, "instance", "i");
    jsonw_bool(&json, "fresh", false);
    jsonw_text(&json, "state", "up");
    jsonw_text(&json, "trouble", "");
    if (state == NULL) {
        jsonw_int(&json, "room", to - from);
        jsonw_text(&json, "mark", "{\"boot\":\"" BOOT_ID "\"}");
    } else {
        jsonw_array(&json, "moves");
        for (uint32_t ix = from; ix < to; ix++) {
            jsonw_object(&json, NULL);
            jsonw_int(&json, "token", ix + 1);
            jsonw_text(&json, "to_state", state);
            jsonw_text(&json, "report", "{\"boot\":\"" BOOT_ID "\"}");
            jsonw_object_end(&json);
        }
        jsonw_array_end(&json);
        jsonw_array(&json, "knows");
        for (uint32_t ix = from; ix < to; ix++) {
            jsonw_int(&json, NULL, ix + 1);
        }
        jsonw_array_end(&json);
    }
    jsonw_object_end(&json);
    turn(&bench->worker, "SELECT worker_turn($1::jsonb)", &said);
    strbuf_release(&said);
}

static void open_turns(struct bench *bench)
{
    struct diag diag = {0};
    struct strbuf said = {0};
    check(pg_link_init(&bench->worker, bench->address, &diag), &diag);
    check(pg_link_need(&bench->worker, &diag), &diag);
    check(pg_link_init(&bench->scheduler, bench->address, &diag), &diag);
    check(pg_link_need(&bench->scheduler, &diag), &diag);
    bench->body = mem_zalloc(BODY_BYTES + 1, 1);
    memset(bench->body, 'x', BODY_BYTES);
    strbuf_adds(&said,
                "{\"name\":\"w\",\"instance\":\"i\",\"fresh\":true,"
                "\"home\":\"h\",\"host\":\"h\",\"boot_id\":\"b\",\"labels\":"
                "\"w,any\",\"slots\":1000,\"proto\":1,\"version\":\"1\"}");
    turn(&bench->worker, "SELECT worker_turn($1::jsonb)", &said);
    strbuf_release(&said);
}

/* --- attempts ----------------------------------------------------------- */

/* Become the scheduler. */
static void take(struct bench *bench)
{
    struct diag diag = {0};
    struct store_owner self = {
        .pid = getpid(),
        .start_ticks = 1,
        .host = "bench",
        .boot_id = BOOT_ID,
    };
    check(store_open(&bench->store, bench->address, STORE_WRITE, &diag), &diag);
    check(store_take(bench->store, &self, &bench->epoch, &diag), &diag);
}

static int bench_add(struct bench *bench)
{
    take(bench);
    store_batch_add(&bench->changes,
                    &(struct store_change){
                        .type = STORE_RUN_NEW,
                        .as.run =
                            {
                                .number = 1,
                                .id = "bench",
                                .name = "bench",
                                .file = "plan.yaml",
                                .folder = "/",
                                .text = "tasks: []\n",
                                .text_bytes = 10,
                                .processors = 2,
                                .created_ns = clock_wall_ns(),
                            },
                    });
    for (uint32_t ix = 0; ix < bench->attempts; ix++) {
        add_task(bench, ix, "ready");
        if (bench->changes.count >= 5000) {
            write_batch(bench);
        }
    }
    write_batch(bench);
    store_batch_release(&bench->changes);
    store_close(bench->store);
    return 0;
}

static int bench_rows(struct bench *bench, bool work)
{
    take(bench);
    if (work) {
        open_turns(bench);
    }
    uint32_t shares = (bench->attempts + bench->batch - 1) / bench->batch;
    int64_t begin_ns = clock_boot_ns();
    for (uint32_t n = 0; n < shares + 2; n++) {
        add_share(bench, n);
        write_batch(bench);
        uint32_t from = n * bench->batch;
        uint32_t to = from + bench->batch;
        to = to < bench->attempts ? to : bench->attempts;
        if (work && from < to) {
            scheduler_turn(bench, from, to);
            worker_turn(bench, from, to, NULL);
            worker_turn(bench, from, to, "started");
            worker_turn(bench, from, to, "ended");
            scheduler_turn(bench, 0, 0);
        }
    }
    (void)printf("%.6f\n",
                 (double)(clock_boot_ns() - begin_ns) / (double)SECOND_NS);
    store_batch_release(&bench->changes);
    store_close(bench->store);
    if (work) {
        pg_link_release(&bench->worker);
        pg_link_release(&bench->scheduler);
        mem_free(bench->body);
    }
    return 0;
}

/* --- requests ----------------------------------------------------------- */

static int bench_ask(const char *address)
{
    struct store *store = NULL;
    struct diag diag = {0};
    struct strbuf json = {0};
    char line[LINE_BYTES];
    check(store_open(&store, address, STORE_READ, &diag), &diag);
    check(store_ping(store, ASK_MS, &diag), &diag);
    (void)printf("ready\n");
    while (fflush(stdout) == 0 && fgets(line, sizeof(line), stdin) != NULL) {
        struct store_key key;
        char *answer = NULL;
        line[strcspn(line, "\n")] = '\0';
        strbuf_clear(&json);
        check(store_add_key(&json, &key, line, &diag), &diag);
        int64_t begin_ns = clock_wall_ns();
        check(
            store_ask(store, &key, strbuf_text(&json), ASK_MS, &answer, &diag),
            &diag);
        (void)printf("%" PRId64 " %" PRId64 " %s\n",
                     begin_ns,
                     clock_wall_ns(),
                     answer);
        mem_free(answer);
    }
    strbuf_release(&json);
    store_close(store);
    return 0;
}

int main(int argc, char **argv)
{
    const char *action = argc > 2 ? argv[1] : "";
    struct bench bench = {
        .address = argc > 2 ? argv[2] : NULL,
        .attempts = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0,
        .batch = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 0,
    };
    bool many = bench.attempts > 0 && bench.batch > 0;
    if (argc == 3 && strcmp(action, "ask") == 0) {
        return bench_ask(bench.address);
    }
    if (argc == 4 && bench.attempts > 0 && strcmp(action, "add") == 0) {
        return bench_add(&bench);
    }
    if (argc == 5 && many && strcmp(action, "rows") == 0) {
        return bench_rows(&bench, false);
    }
    if (argc == 5 && many && strcmp(action, "work") == 0) {
        return bench_rows(&bench, true);
    }
    (void)fprintf(stderr,
                  "usage: bench_store_pg add ADDRESS ATTEMPTS\n"
                  "       bench_store_pg rows|work ADDRESS ATTEMPTS BATCH\n"
                  "       bench_store_pg ask ADDRESS\n");
    return 2;
}
