/* SPDX-License-Identifier: MIT */
/*
 * The tables `worker` and `work`, and the functions of a turn at them, as
 * src/store/schema/postgres/0002_turns.sql and the steps after it have them:
 * each function here has its name there. A call is a transaction at one
 * instant. The clock of the database is the time of the world.
 *
 * Requests and logs of sessions are left out.
 */
#include "sim/world_internal.h"

#include "base/invariant.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "work/wire.h"

#include <jansson.h>
#include <string.h>

struct board_worker {
    char *name;
    char *instance;
    char *home;
    char *labels;
    char *state;
    char *wanted;
    char *trouble;
    int64_t slots;
    int64_t proto;
    int64_t lease_ns; /* its end; SCHED_NEVER: none */
    uint64_t generation;
};

struct board_row {
    uint64_t token;
    char *nonce;
    char *worker;
    char *instance;
    char *body;
    char *want;
    char *messages; /* or NULL, as the next */
    char *report;
    const char *state;
};

struct world_board {
    WORLD_LIST(struct board_worker, worker);
    WORLD_LIST(struct board_row, row); /* by token */
    int64_t turn;                      /* of the scheduler */
};

static const char *get_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static int64_t get_int(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static int64_t margin_ns(const struct world *world)
{
    return world->lease_ns / 8;
}

static struct board_worker *find_worker(const struct world *world,
                                        const char *name)
{
    const struct world_board *board = world->board;
    for (uint32_t ix = 0; ix < board->worker_count; ix++) {
        if (is(board->workers[ix].name, name)) {
            return &board->workers[ix];
        }
    }
    return NULL;
}

static struct board_row *find_row(const struct world *world, uint64_t token)
{
    const struct world_board *board = world->board;
    for (uint32_t ix = 0; ix < board->row_count; ix++) {
        if (board->rows[ix].token == token) {
            return &board->rows[ix];
        }
    }
    return NULL;
}

static bool is_state(const struct board_row *row, const char *a, const char *b)
{
    return is(row->state, a) || is(row->state, b);
}

/* --- workers ------------------------------------------------------------ */

static const char *worker_begin(struct world *world, const json_t *said)
{
    struct world_board *board = world->board;
    struct board_worker *me = find_worker(world, get_text(said, "name"));
    if (me != NULL && !is(me->home, get_text(said, "home")) &&
        !is(me->state, "lost") && !is(me->state, "gone")) {
        mem_set_text(&me->wanted, "stop");
        world_turns_notify(world, false);
        return "taken";
    }
    char *before = NULL;
    if (me != NULL && me->proto == get_int(said, "proto")) {
        mem_set_text(&before, me->instance);
    }
    if (me == NULL) {
        MEM_GROW(board->workers, board->worker_count, board->worker_capacity);
        me = &board->workers[board->worker_count++];
        *me = (struct board_worker){
            .name = mem_strdup(get_text(said, "name")),
            .generation = 1,
        };
    }
    mem_set_text(&me->instance, get_text(said, "instance"));
    mem_set_text(&me->home, get_text(said, "home"));
    mem_set_text(&me->labels, get_text(said, "labels"));
    mem_set_text(&me->state, "up");
    mem_set_text(&me->wanted, "");
    mem_set_text(&me->trouble, "");
    me->slots = get_int(said, "slots");
    me->proto = get_int(said, "proto");
    me->lease_ns = world->now_ns + world->lease_ns;
    for (uint32_t ix = 0; ix < board->row_count; ix++) {
        struct board_row *row = &board->rows[ix];
        if (is(row->worker, me->name) &&
            (is_state(row, "accepted", "started") ||
             (is(row->state, "assigned") && before != NULL &&
              is(row->instance, before)))) {
            mem_set_text(&row->instance, me->instance);
        }
    }
    mem_free(before);
    return "ok";
}

/* Whether the process that speaks has accepted something. */
static bool has_rows(const struct world *world, const json_t *said)
{
    const struct world_board *board = world->board;
    bool has = false;
    for (uint32_t ix = 0; ix < board->row_count && !has; ix++) {
        const struct board_row *row = &board->rows[ix];
        has = is(row->worker, get_text(said, "name")) &&
              is(row->instance, get_text(said, "instance")) &&
              is_state(row, "accepted", "started");
    }
    return has;
}

static const char *worker_renew(struct world *world, const json_t *said)
{
    struct board_worker *me = find_worker(world, get_text(said, "name"));
    if (me == NULL || !is(me->instance, get_text(said, "instance"))) {
        return "replaced";
    }
    if (is(me->state, "lost")) {
        return "lost";
    }
    const char *state = get_text(said, "state");
    if (is(state, "gone") && has_rows(world, said)) {
        state = "draining"; /* it may not know yet what it accepted */
    }
    me->lease_ns = world->now_ns + (is(state, "gone") ? 0 : world->lease_ns);
    mem_set_text(&me->state, state);
    mem_set_text(&me->trouble, get_text(said, "trouble"));
    return "ok";
}

/* Whether a row is of the process that speaks. */
static bool is_own(const struct board_row *row, const json_t *said)
{
    return is(row->worker, get_text(said, "name")) &&
           is(row->instance, get_text(said, "instance"));
}

static void worker_report(struct world *world, const json_t *said)
{
    size_t ix;
    const json_t *move;
    json_array_foreach(json_object_get(said, "moves"), ix, move)
    {
        struct board_row *row =
            find_row(world, (uint64_t)get_int(move, "token"));
        bool ended = is(get_text(move, "to_state"), "ended");
        if (row == NULL || !is_own(row, said) ||
            !(is(row->state, "accepted") ||
              (ended && is(row->state, "started")))) {
            continue;
        }
        row->state = ended ? "ended" : "started";
        mem_set_text(&row->report, get_text(move, "report"));
    }
    world_turns_notify(world, true);
}

static void worker_accept(struct world *world,
                          const struct board_worker *me,
                          const json_t *said,
                          json_t *out)
{
    struct world_board *board = world->board;
    int64_t room = get_int(said, "room");
    for (uint32_t ix = 0; ix < board->row_count && room > 0; ix++) {
        struct board_row *row = &board->rows[ix];
        if (is_own(row, said) && is(row->state, "assigned") &&
            is(row->want, "run")) {
            room--;
            row->state = "accepted";
            mem_set_text(&row->report, get_text(said, "mark"));
            if (me->proto != WIRE_PROTO) {
                world_fault(world, "%s cannot read its orders", me->name);
            }
            (void)json_array_append_new(out,
                                        json_integer((json_int_t)row->token));
        }
    }
}

/* Whether a worker said that it has this order. */
static bool is_known(const json_t *said, uint64_t token)
{
    size_t ix;
    const json_t *item;
    json_array_foreach(json_object_get(said, "knows"), ix, item)
    {
        if ((uint64_t)json_integer_value(item) == token) {
            return true;
        }
    }
    return false;
}

static json_t *text_or_null(const char *text)
{
    return text != NULL ? json_string(text) : json_null();
}

/* The rows that a worker has. */
static json_t *worker_rows(const struct world *world, const json_t *said)
{
    const struct world_board *board = world->board;
    json_t *rows = json_array();
    for (uint32_t ix = 0; ix < board->row_count; ix++) {
        const struct board_row *row = &board->rows[ix];
        if (!is_own(row, said) || !is_state(row, "accepted", "started")) {
            continue;
        }
        bool known = is_known(said, row->token);
        json_t *item = json_object();
        (void)json_object_set_new(item,
                                  "token",
                                  json_integer((json_int_t)row->token));
        (void)json_object_set_new(item, "nonce", json_string(row->nonce));
        (void)json_object_set_new(item, "state", json_string(row->state));
        (void)json_object_set_new(item, "want", json_string(row->want));
        (void)json_object_set_new(item,
                                  "messages",
                                  text_or_null(row->messages));
        (void)json_object_set_new(item, "report", text_or_null(row->report));
        (void)json_object_set_new(item,
                                  "body",
                                  text_or_null(known ? NULL : row->body));
        (void)json_array_append_new(rows, item);
    }
    return rows;
}

static void set_lease(const struct world *world, json_t *out)
{
    (void)json_object_set_new(out,
                              "lease_ms",
                              json_integer(world->lease_ns / WORLD_MS));
    (void)json_object_set_new(out,
                              "margin_ms",
                              json_integer(margin_ns(world) / WORLD_MS));
}

static json_t *worker_turn(struct world *world, const json_t *said)
{
    json_t *out = json_object();
    const char *state;
    if (json_is_true(json_object_get(said, "fresh"))) {
        state = worker_begin(world, said);
        world_turns_notify(world, true);
    } else {
        state = worker_renew(world, said);
        if (json_object_get(said, "news") != NULL) {
            world_turns_notify(world, true);
        }
    }
    (void)json_object_set_new(out, "state", json_string(state));
    if (!is(state, "ok")) {
        return out;
    }
    const struct board_worker *me = find_worker(world, get_text(said, "name"));
    INVARIANT(me != NULL); /* it has begun */
    json_t *accepted = json_array();
    if (json_object_get(said, "moves") != NULL) {
        worker_report(world, said);
    }
    if (json_object_get(said, "room") != NULL) {
        worker_accept(world, me, said, accepted);
    }
    (void)json_object_set_new(out, "accepted", accepted);
    (void)json_object_set_new(out, "wanted", json_string(me->wanted));
    (void)json_object_set_new(out, "gone", json_boolean(is(me->state, "gone")));
    (void)json_object_set_new(out,
                              "generation",
                              json_integer((json_int_t)me->generation));
    set_lease(world, out);
    (void)json_object_set_new(out, "asks", json_object());
    (void)json_object_set_new(out, "peeks", json_array());
    (void)json_object_set_new(out, "rows", worker_rows(world, said));
    return out;
}

bool world_board_rest(struct world *world, const char *name)
{
    struct board_worker *worker = find_worker(world, name);
    if (worker == NULL || !is(worker->state, "up") ||
        !is(worker->trouble, "") || !is(worker->wanted, "")) {
        return false;
    }
    worker->lease_ns = SCHED_NEVER;
    return true;
}

void world_board_drain(struct world *world, const char *name)
{
    struct board_worker *worker = find_worker(world, name);
    if (worker != NULL) {
        mem_set_text(&worker->wanted, "drain");
        world_turns_notify(world, false);
    }
}

/* --- the scheduler ------------------------------------------------------ */

/* Whether the lease of a worker ended long enough ago. */
static bool is_late(const struct world *world,
                    const struct board_worker *worker)
{
    return !is(worker->state, "lost") && !is(worker->state, "gone") &&
           worker->lease_ns != SCHED_NEVER &&
           worker->lease_ns + margin_ns(world) < world->now_ns;
}

static void scheduler_lose(struct world *world)
{
    const struct world_board *board = world->board;
    for (uint32_t n = 0; n < board->worker_count; n++) {
        struct board_worker *worker = &board->workers[n];
        if (!is_late(world, worker)) {
            continue;
        }
        world_say(world, "worker %s is lost", worker->name);
        mem_set_text(&worker->state, "lost");
        worker->generation++;
        for (uint32_t ix = 0; ix < board->row_count; ix++) {
            struct board_row *row = &board->rows[ix];
            if (is(row->worker, worker->name) &&
                is_state(row, "accepted", "started")) {
                row->state = "lost";
                world_check_lost(world, row->token);
            }
        }
    }
}

static void change_order(struct world *world, const json_t *order)
{
    struct world_board *board = world->board;
    uint64_t token = (uint64_t)get_int(order, "token");
    struct board_row *row = find_row(world, token);
    if (row != NULL && is(row->nonce, get_text(order, "nonce"))) {
        return;
    }
    if (row == NULL) {
        MEM_GROW(board->rows, board->row_count, board->row_capacity);
        uint32_t ix = board->row_count++;
        for (; ix > 0 && board->rows[ix - 1].token > token; ix--) {
            board->rows[ix] = board->rows[ix - 1];
        }
        row = &board->rows[ix];
        *row = (struct board_row){.token = token};
    }
    mem_set_text(&row->nonce, get_text(order, "nonce"));
    mem_set_text(&row->worker, get_text(order, "worker"));
    mem_set_text(&row->instance, get_text(order, "instance"));
    mem_set_text(&row->body, get_text(order, "body"));
    mem_set_text(&row->want, "run");
    mem_set_text(&row->messages, NULL);
    mem_set_text(&row->report, NULL);
    row->state = "assigned";
    world_say(world,
              "attempt %llu is given to %s",
              (unsigned long long)token,
              row->worker);
}

void world_board_assign(struct world *world, const char *orders)
{
    if (orders[0] == '\0') {
        return;
    }
    struct strbuf text = {0};
    strbuf_addf(&text, "[%s]", orders);
    json_t *list = json_loads(strbuf_text(&text), 0, NULL);
    INVARIANT(json_is_array(list));
    size_t ix;
    const json_t *order;
    json_array_foreach(list, ix, order)
    {
        change_order(world, order);
    }
    world_turns_notify(world, false);
    json_decref(list);
    strbuf_release(&text);
}

static void change_move(struct world *world, const json_t *move)
{
    struct board_row *row = find_row(world, (uint64_t)get_int(move, "token"));
    if (row != NULL && is(row->state, "assigned") &&
        is(row->worker, get_text(move, "from_worker"))) {
        mem_set_text(&row->worker, get_text(move, "worker"));
        mem_set_text(&row->instance, get_text(move, "instance"));
        world_say(world,
                  "attempt %llu is moved to %s",
                  (unsigned long long)row->token,
                  row->worker);
    }
}

static void change_want(struct world *world, const json_t *want)
{
    struct board_row *row = find_row(world, (uint64_t)get_int(want, "token"));
    if (row == NULL) {
        return;
    }
    mem_set_text(&row->want, get_text(want, "want"));
    if (!is(row->want, "run") && is(row->state, "assigned")) {
        struct strbuf report = {0};
        struct jsonw json = {.out = &report};
        jsonw_object(&json, NULL);
        jsonw_int(&json, "token", (int64_t)row->token);
        jsonw_text(&json, "type", "refused");
        jsonw_bool(&json, "withdrawn", true);
        jsonw_object_end(&json);
        mem_set_text(&row->report, strbuf_text(&report));
        row->state = "ended";
        strbuf_release(&report);
    }
}

static bool scheduler_change(struct world *world, const json_t *said)
{
    size_t ix;
    const json_t *item;
    if ((uint64_t)get_int(said, "epoch") != world->epoch ||
        get_int(said, "turn") <= world->board->turn) {
        return false;
    }
    world->board->turn = get_int(said, "turn");
    json_array_foreach(json_object_get(said, "orders"), ix, item)
    {
        change_order(world, item);
    }
    json_array_foreach(json_object_get(said, "moves"), ix, item)
    {
        change_move(world, item);
    }
    json_array_foreach(json_object_get(said, "recalls"), ix, item)
    {
        const struct board_row *row =
            find_row(world, (uint64_t)get_int(item, "token"));
        if (row != NULL && is(row->state, "assigned") &&
            is(row->worker, get_text(item, "from_worker"))) {
            world_board_end(world, row->token);
        }
    }
    json_array_foreach(json_object_get(said, "wants"), ix, item)
    {
        change_want(world, item);
    }
    json_array_foreach(json_object_get(said, "tells"), ix, item)
    {
        struct board_row *row =
            find_row(world, (uint64_t)get_int(item, "token"));
        if (row != NULL) {
            mem_set_text(&row->messages, get_text(item, "text"));
        }
    }
    world_turns_notify(world, false);
    return true;
}

static json_t *list_workers(const struct world *world)
{
    const struct world_board *board = world->board;
    json_t *list = json_array();
    for (uint32_t ix = 0; ix < board->worker_count; ix++) {
        const struct board_worker *worker = &board->workers[ix];
        if (is(worker->state, "gone")) {
            continue;
        }
        bool fresh = worker->lease_ns == SCHED_NEVER ||
                     worker->lease_ns - world->now_ns > world->lease_ns / 3;
        json_t *item = json_object();
        (void)json_object_set_new(item, "name", json_string(worker->name));
        (void)json_object_set_new(item,
                                  "instance",
                                  json_string(worker->instance));
        (void)json_object_set_new(item, "labels", json_string(worker->labels));
        (void)json_object_set_new(item, "slots", json_integer(worker->slots));
        (void)json_object_set_new(item, "proto", json_integer(worker->proto));
        (void)json_object_set_new(item, "state", json_string(worker->state));
        (void)json_object_set_new(item,
                                  "trouble",
                                  json_string(worker->trouble));
        (void)json_object_set_new(item, "fresh", json_boolean(fresh));
        (void)json_array_append_new(list, item);
    }
    return list;
}

static json_t *list_rows(const struct world *world)
{
    const struct world_board *board = world->board;
    json_t *list = json_array();
    for (uint32_t ix = 0; ix < board->row_count; ix++) {
        const struct board_row *row = &board->rows[ix];
        json_t *item = json_object();
        (void)json_object_set_new(item,
                                  "token",
                                  json_integer((json_int_t)row->token));
        (void)json_object_set_new(item, "worker", json_string(row->worker));
        (void)json_object_set_new(item, "instance", json_string(row->instance));
        (void)json_object_set_new(item, "state", json_string(row->state));
        if (!is_state(row, "assigned", "accepted")) {
            (void)json_object_set_new(item,
                                      "report",
                                      text_or_null(row->report));
        }
        (void)json_array_append_new(list, item);
    }
    return list;
}

static json_t *scheduler_turn(struct world *world, const json_t *said)
{
    const struct world_board *board = world->board;
    json_t *out = json_object();
    bool changes = json_object_get(said, "changes") != NULL;
    bool patient = json_object_get(said, "patient") != NULL;
    for (uint32_t ix = 0; ix < board->worker_count && !patient; ix++) {
        changes = changes || is_late(world, &board->workers[ix]);
    }
    if (changes && !scheduler_change(world, said)) {
        (void)json_object_set_new(out, "superseded", json_true());
        return out;
    }
    if (changes && !patient) {
        scheduler_lose(world);
    }
    (void)json_object_set_new(out, "asks", json_array());
    set_lease(world, out);
    (void)json_object_set_new(out, "workers", list_workers(world));
    (void)json_object_set_new(out, "rows", list_rows(world));
    return out;
}

bool world_board_is_quiet(const struct world *world)
{
    const struct world_board *board = world->board;
    bool quiet = board->row_count == 0;
    for (uint32_t ix = 0; ix < board->worker_count && quiet; ix++) {
        const struct board_worker *worker = &board->workers[ix];
        quiet = is(worker->state, "gone") || is(worker->state, "lost") ||
                worker->lease_ns == SCHED_NEVER;
    }
    return quiet;
}

/* --- calls -------------------------------------------------------------- */

char *world_board_turn(struct world *world, bool scheduler, const char *text)
{
    json_t *said = json_loads(text, 0, NULL);
    INVARIANT(json_is_object(said));
    json_t *out =
        scheduler ? scheduler_turn(world, said) : worker_turn(world, said);
    char *result = json_dumps(out, JSON_COMPACT);
    INVARIANT(result != NULL);
    json_decref(out);
    json_decref(said);
    return result;
}

static void release_row(struct board_row *row)
{
    mem_free(row->nonce);
    mem_free(row->worker);
    mem_free(row->instance);
    mem_free(row->body);
    mem_free(row->want);
    mem_free(row->messages);
    mem_free(row->report);
}

void world_board_end(struct world *world, uint64_t token)
{
    struct world_board *board = world->board;
    struct board_row *row = board != NULL ? find_row(world, token) : NULL;
    if (row == NULL) {
        return;
    }
    release_row(row);
    uint32_t ix = (uint32_t)(row - board->rows);
    for (; ix + 1 < board->row_count; ix++) {
        board->rows[ix] = board->rows[ix + 1];
    }
    board->row_count--;
}

void world_board_begin(struct world *world)
{
    world->board = mem_zalloc(1, sizeof(*world->board));
}

void world_board_release(struct world *world)
{
    struct world_board *board = world->board;
    if (board == NULL) {
        return;
    }
    for (uint32_t ix = 0; ix < board->row_count; ix++) {
        release_row(&board->rows[ix]);
    }
    for (uint32_t ix = 0; ix < board->worker_count; ix++) {
        struct board_worker *worker = &board->workers[ix];
        mem_free(worker->name);
        mem_free(worker->instance);
        mem_free(worker->home);
        mem_free(worker->labels);
        mem_free(worker->state);
        mem_free(worker->wanted);
        mem_free(worker->trouble);
    }
    mem_free(board->rows);
    mem_free(board->workers);
    mem_free(board);
}
