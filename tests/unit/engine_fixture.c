/* SPDX-License-Identifier: MIT */
#include "tests/unit/engine_fixture.h"

#include "base/jsonw.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct key_secret secret = {.bytes = {1, 2, 3}};

/* Append a text with " for '. */
static void add_quoted(struct strbuf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        strbuf_add(out, *text == '\'' ? "\"" : text, 1);
    }
}

/* --- the world ---------------------------------------------------------- */

static int64_t on_now(void *ctx)
{
    const struct rig *rig = ctx;
    return rig->now_ns;
}

static int64_t on_wall(void *ctx)
{
    const struct rig *rig = ctx;
    return RIG_WALL_NS + rig->now_ns + rig->jump_ns;
}

static void on_write(void *ctx, const struct store_batch *batch)
{
    struct rig *rig = ctx;
    assert_null(rig->batch);
    rig->batch = batch;
    rig->writes++;
}

static void
add_words(struct strbuf *out, const char *name, const char *const *words)
{
    strbuf_addf(out, "%s:", name);
    for (; words != NULL && *words != NULL; words++) {
        strbuf_addf(out, " %s", *words);
    }
    strbuf_adds(out, "\n");
}

static void add_git(struct strbuf *out, const struct work_git *git)
{
    strbuf_addf(out,
                "git: %s%s%s%s%s, round %u\n",
                git->repo,
                git->merge ? ", merge" : "",
                git->base_gate ? ", gate of the base" : "",
                git->writes ? ", writes" : "",
                git->shared ? ", shared" : "",
                git->round);
    strbuf_addf(out, "message: %s\n", git->message != NULL ? git->message : "");
    for (uint32_t ix = 0; ix < git->member_count; ix++) {
        const struct work_member *member = &git->members[ix];
        strbuf_addf(out,
                    "member: %s of %s by %s\n",
                    member->task,
                    member->group,
                    member->agent != NULL ? member->agent : "nobody");
    }
    for (uint32_t ix = 0; ix < git->before_count; ix++) {
        strbuf_addf(out,
                    "before: %s %s\n",
                    git->before[ix].task,
                    git->before[ix].name);
    }
}

static void add_text(struct strbuf *out, const struct work_order *order)
{
    strbuf_addf(out,
                "shell: %s\n",
                order->shell != NULL ? order->shell : "none");
    add_words(out, "argv", order->argv);
    strbuf_addf(out,
                "folder: %s%s%s\n",
                order->folder != NULL ? order->folder : "none",
                order->checkout ? ", checkout" : "",
                order->named ? ", named" : "");
    strbuf_addf(out,
                "where: %s, near %s\n",
                order->where.label != NULL ? order->where.label : "anywhere",
                order->where.near != NULL ? order->where.near : "nothing");
    for (uint32_t ix = 0; ix < order->env_count; ix++) {
        strbuf_addf(out, "%s\n", order->env[ix]);
    }
    for (uint32_t ix = 0; ix < order->file_count; ix++) {
        const struct work_file *file = &order->files[ix];
        strbuf_addf(out, "[%s] ", file->name);
        strbuf_add(out, file->text != NULL ? file->text : "", file->len);
        strbuf_adds(out, "\n");
    }
    if (order->sandbox.on) {
        add_words(out, "write", order->sandbox.write);
        add_words(out, "read", order->sandbox.read);
    }
    if (order->git.repo != NULL) {
        add_git(out, &order->git);
    }
}

static void
keep_order(struct rig *rig, const struct work_order *order, bool offered)
{
    MEM_EXTEND(rig->orders, rig->order_count);
    struct rig_order *kept = &rig->orders[rig->order_count++];
    *kept = (struct rig_order){
        .token = order->id.token,
        .run = mem_strdup(order->id.run),
        .task = mem_strdup(order->id.task),
        .name = mem_strdup(order->id.name),
        .want = order->want,
        .offered = offered,
    };
    memcpy(kept->nonce, order->id.nonce, strlen(order->id.nonce) + 1);
    add_text(&kept->text, order);
}

static void
on_offer(void *ctx, const struct work_order *order, struct strbuf *out)
{
    struct rig *rig = ctx;
    keep_order(rig, order, true);
    rig->offered = true;
    strbuf_addf(out, "%s{}", out->len > 0 ? "," : "");
}

static void on_assign(void *ctx, const struct work_order *order)
{
    keep_order(ctx, order, false);
}

/* The task of the last order with that token, or "?". */
static const char *task_of(const struct rig *rig, uint64_t token)
{
    for (uint32_t ix = rig->order_count; ix > 0; ix--) {
        if (rig->orders[ix - 1].token == token) {
            return rig->orders[ix - 1].task;
        }
    }
    return "?";
}

static void on_want(void *ctx, uint64_t token, enum work_want want)
{
    static const char *const names[] = {
        [WORK_RUN] = "run",
        [WORK_WITHDRAW] = "withdraw",
        [WORK_CANCEL] = "cancel",
        [WORK_STOP] = "stop",
    };
    struct rig *rig = ctx;
    strbuf_addf(&rig->log, "want %s %s\n", task_of(rig, token), names[want]);
}

static void on_tell(void *ctx, uint64_t token, const char *text)
{
    struct rig *rig = ctx;
    strbuf_addf(&rig->log, "tell %s %s\n", task_of(rig, token), text);
}

static void on_ask(void *ctx,
                   const struct work_id *id,
                   const struct work_mark *mark,
                   bool begun,
                   enum work_want want)
{
    struct rig *rig = ctx;
    (void)mark;
    strbuf_addf(&rig->log,
                "ask %s %s%s%s\n",
                id->task,
                id->name,
                begun ? ", begun" : "",
                want == WORK_RUN ? "" : ", end");
}

static void on_recorded(void *ctx, uint64_t token)
{
    (void)ctx;
    (void)token;
}

static void on_forget(void *ctx, const struct work_id *id)
{
    struct rig *rig = ctx;
    strbuf_addf(&rig->log, "forget %s %s\n", id->task, id->name);
}

static void on_answer(void *ctx, uint64_t request, const char *json)
{
    struct rig *rig = ctx;
    assert_int_equal(request, rig->last_request);
    mem_set_text(&rig->answer, json);
}

static void on_event(void *ctx, const struct store_event *event)
{
    struct rig *rig = ctx;
    strbuf_addf(&rig->events, "%s %s\n", event->kind, event->data);
}

static enum err on_look(void *ctx,
                        const struct engine_look *look,
                        struct strbuf *out,
                        struct diag *diag)
{
    const struct rig *rig = ctx;
    strbuf_addf(out,
                "%s of %s by %s",
                look->verb,
                look->task != NULL ? look->task : "all",
                look->filter != NULL ? look->filter : "nothing");
    return rig->look == ERR_OK ? ERR_OK : diag_set(diag, rig->look, "no look");
}

static const struct engine_world world = {
    .now_ns = on_now,
    .wall_ns = on_wall,
    .write = on_write,
    .assign = on_assign,
    .want = on_want,
    .tell = on_tell,
    .ask = on_ask,
    .recorded = on_recorded,
    .forget = on_forget,
    .answer = on_answer,
    .event = on_event,
};

static const struct engine_world offering_world = {
    .now_ns = on_now,
    .wall_ns = on_wall,
    .write = on_write,
    .offer = on_offer,
    .assign = on_assign,
    .want = on_want,
    .tell = on_tell,
    .ask = on_ask,
    .recorded = on_recorded,
    .forget = on_forget,
    .answer = on_answer,
    .look = on_look,
    .event = on_event,
};

static const struct engine_world looking_world = {
    .now_ns = on_now,
    .wall_ns = on_wall,
    .write = on_write,
    .assign = on_assign,
    .want = on_want,
    .tell = on_tell,
    .ask = on_ask,
    .recorded = on_recorded,
    .forget = on_forget,
    .answer = on_answer,
    .look = on_look,
    .event = on_event,
};

/* --- the store ---------------------------------------------------------- */

static const struct rig_ops *ops_of(const struct store *store)
{
    return (const struct rig_ops *)store->ops; /* its first member */
}

/* Whether this call fails. */
static enum err count_call(const struct store *store, struct diag *diag)
{
    struct rig *rig = ops_of(store)->rig;
    return ++rig->calls == rig->fail_at
               ? diag_set(diag, rig->fault, "store call %u", rig->calls)
               : ERR_OK;
}

static enum err
on_hold(struct store *store, struct store_info *out, struct diag *diag)
{
    enum err err = count_call(store, diag);
    return err != ERR_OK ? err : ops_of(store)->real->hold(store, out, diag);
}

/* Who reads rows of a kind. */
struct reader {
    const struct rig *rig;
    enum store_kind kind;
    store_row_fn fn;
    void *ctx;
};

static enum err on_row(void *ctx, const union store_row *row)
{
    const struct reader *reader = ctx;
    union store_row copy = *row;
    return reader->rig->filter == NULL ||
                   reader->rig->filter(reader->kind, &copy)
               ? reader->fn(reader->ctx, &copy)
               : ERR_OK;
}

static enum err on_rows(struct store *store,
                        enum store_kind kind,
                        const struct store_query *query,
                        store_row_fn fn,
                        void *ctx,
                        struct diag *diag)
{
    struct reader reader = {ops_of(store)->rig, kind, fn, ctx};
    enum err err = count_call(store, diag);
    return err != ERR_OK
               ? err
               : ops_of(store)
                     ->real->rows(store, kind, query, on_row, &reader, diag);
}

static enum err
on_begin(struct store *store, struct store_info *out, struct diag *diag)
{
    enum err err = count_call(store, diag);
    return err != ERR_OK ? err : ops_of(store)->real->begin(store, out, diag);
}

static enum err
on_commit(struct store *store, const struct store_info *info, struct diag *diag)
{
    enum err err = info != NULL ? count_call(store, diag) : ERR_OK;
    if (err != ERR_OK) {
        bool done = ops_of(store)->rig->unnoticed;
        (void)!ops_of(store)->real->end(store,
                                        done ? info : NULL,
                                        &(struct diag){0});
        return err;
    }
    return ops_of(store)->real->end(store, info, diag);
}

static enum err on_put(struct store *store,
                       enum store_kind kind,
                       enum store_put how,
                       const union store_row *row,
                       struct diag *diag)
{
    enum err err = count_call(store, diag);
    return err != ERR_OK
               ? err
               : ops_of(store)->real->put(store, kind, how, row, diag);
}

/* Put ourselves between the engine and its store. */
static void hook_store(struct rig *rig)
{
    rig->ops = (struct rig_ops){
        .ops = *rig->store->ops,
        .real = rig->store->ops,
        .rig = rig,
    };
    rig->ops.ops.hold = on_hold;
    rig->ops.ops.rows = on_rows;
    rig->ops.ops.begin = on_begin;
    rig->ops.ops.end = on_commit;
    rig->ops.ops.put = on_put;
    rig->store->ops = &rig->ops.ops;
}

/* --- life --------------------------------------------------------------- */

static void take(struct rig *rig)
{
    struct diag diag = {0};
    struct store_owner self = {.pid = 1, .host = "here"};
    if (rig->db == NULL) {
        rig->db = store_memory_db_new();
    }
    rig->store = store_memory_open(rig->db, STORE_WRITE);
    if (store_take(rig->store, &self, &rig->epoch, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
}

enum err
rig_try_start(struct rig *rig, struct engine_update *update, struct diag *diag)
{
    assert_null(rig->engine);
    take(rig);
    hook_store(rig);
    if (rig->mark.boot_id[0] == '\0') {
        rig->mark = mark_elsewhere();
    }
    rig->engine = engine_new(&(struct engine_options){
        .world = rig->offers  ? &offering_world
                 : rig->looks ? &looking_world
                              : &world,
        .ctx = rig,
        .mark = rig->mark,
        .epoch = rig->epoch,
        .secret = rig->keyless ? NULL : &secret,
        .seed = 1,
        .update = update,
        .offered_take = rig->plan_take,
        .offered_source = rig->source,
    });
    rig->plan_take = NULL;
    enum err err = engine_load(rig->engine, rig->store, NULL, diag);
    if (err == ERR_OK) {
        engine_recover(rig->engine);
        rig_settle(rig);
    } else {
        rig_stop(rig);
    }
    return err;
}

void rig_start(struct rig *rig)
{
    struct diag diag = {0};
    if (rig_try_start(rig, NULL, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
}

void rig_stop(struct rig *rig)
{
    engine_free(rig->engine);
    store_close(rig->store);
    rig->engine = NULL;
    rig->store = NULL;
    rig->batch = NULL;
}

void rig_restart(struct rig *rig)
{
    rig_stop(rig);
    rig_start(rig);
}

void rig_release(struct rig *rig)
{
    rig_stop(rig);
    store_memory_db_free(rig->db);
    for (uint32_t ix = 0; ix < rig->order_count; ix++) {
        mem_free(rig->orders[ix].run);
        mem_free(rig->orders[ix].task);
        mem_free(rig->orders[ix].name);
        strbuf_release(&rig->orders[ix].text);
    }
    mem_free(rig->orders);
    mem_free(rig->answer);
    strbuf_release(&rig->events);
    strbuf_release(&rig->log);
    *rig = (struct rig){0};
}

void rig_store(struct rig *rig, const struct store_change *change)
{
    static const struct store_query query = {0};
    static const struct store_visitor nothing = {0};
    struct store_batch batch = {0};
    struct store_info info = {0};
    struct diag diag = {0};
    assert_null(rig->engine);
    take(rig);
    if (store_read(rig->store, &query, &nothing, NULL, &info, &diag) !=
        ERR_OK) {
        fail_msg("%s", diag.text);
    }
    batch.epoch = rig->epoch;
    batch.engine_ns = info.engine_ns;
    batch.wall_ns = info.wall_ns;
    store_batch_add(&batch, change);
    if (store_write(rig->store, &batch, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    store_batch_release(&batch);
    rig_stop(rig);
}

void rig_store_setting(struct rig *rig, const char *name, const char *value)
{
    struct strbuf text = {0};
    add_quoted(&text, value);
    struct store_change change = {
        .type = STORE_SETTING,
        .as.setting = {.name = name, .value = strbuf_text(&text)},
    };
    rig_store(rig, &change);
    strbuf_release(&text);
}

/* --- time --------------------------------------------------------------- */

/* Write the batch that waits, if there is one. */
static bool write_batch(struct rig *rig)
{
    struct diag diag = {0};
    const struct store_batch *batch = rig->batch;
    if (batch == NULL) {
        return false;
    }
    rig->batch = NULL;
    rig->offered = false;
    enum err err = store_write(rig->store, batch, &diag);
    engine_written(rig->engine, err, diag.text);
    return true;
}

void rig_settle(struct rig *rig)
{
    enum { PASSES_MAX = 1000 };
    uint32_t passes = 0;
    do {
        engine_pass(rig->engine);
        assert_true(passes++ < PASSES_MAX);
    } while (write_batch(rig) || engine_wait_ns(rig->engine) == 0);
}

void rig_wait(struct rig *rig, int64_t wait_ns)
{
    int64_t until_ns = rig->now_ns + wait_ns;
    while (rig->now_ns < until_ns) {
        int64_t next_ns = engine_wait_ns(rig->engine);
        int64_t left_ns = until_ns - rig->now_ns;
        rig->now_ns += next_ns < left_ns ? next_ns : left_ns;
        rig_settle(rig);
    }
}

/* --- requests ----------------------------------------------------------- */

const char *rig_ask(struct rig *rig, const char *request)
{
    struct strbuf text = {0};
    add_quoted(&text, request);
    mem_set_text(&rig->answer, NULL);
    engine_request(rig->engine,
                   ++rig->last_request,
                   "operator",
                   strbuf_text(&text));
    rig_settle(rig);
    strbuf_release(&text);
    return rig->answer != NULL ? rig->answer : "";
}

/* Require that the last answer is of this kind, with a part of its text. */
static void check_answer(const struct rig *rig,
                         const char *request,
                         const char *head,
                         const char *part)
{
    struct strbuf wanted = {0};
    const char *answer = rig->answer != NULL ? rig->answer : "";
    add_quoted(&wanted, head);
    if (strncmp(answer, strbuf_text(&wanted), wanted.len) != 0) {
        fail_msg("no \"%s\" is the answer to %s: %s", head, request, answer);
    }
    strbuf_clear(&wanted);
    add_quoted(&wanted, part);
    struct strbuf plain = {0}; /* with " for ' and \" */
    for (const char *at = answer; *at != '\0'; at++) {
        at += at[0] == '\\' && at[1] == '"' ? 1 : 0;
        strbuf_add(&plain, *at == '\'' ? "\"" : at, 1);
    }
    if (strstr(strbuf_text(&plain), strbuf_text(&wanted)) == NULL) {
        fail_msg("no \"%s\" is in the answer to %s: %s", part, request, answer);
    }
    strbuf_release(&plain);
    strbuf_release(&wanted);
}

void rig_expect(struct rig *rig, const char *request, const char *part)
{
    (void)rig_ask(rig, request);
    check_answer(rig, request, "{'ok':true", part);
}

void rig_refuse(struct rig *rig,
                const char *request,
                const char *error,
                const char *part)
{
    struct strbuf head = {0};
    strbuf_addf(&head, "{'ok':false,'error':'%s'", error);
    (void)rig_ask(rig, request);
    check_answer(rig, request, strbuf_text(&head), part);
    strbuf_release(&head);
}

/* Send a request of the session of a task. */
static void ask_door(struct rig *rig, const char *task, const char *members)
{
    char key[KEY_BYTES];
    const struct rig_order *order = rig_order(rig, task);
    struct strbuf text = {0};
    key_make(key, &secret, order->token, order->nonce);
    strbuf_addf(&text, "{\"session\":\"%s\",", key);
    add_quoted(&text, members);
    strbuf_adds(&text, "}");
    mem_set_text(&rig->answer, NULL);
    engine_session_request(rig->engine,
                           ++rig->last_request,
                           "door",
                           strbuf_text(&text));
    rig_settle(rig);
    strbuf_release(&text);
}

void rig_say(struct rig *rig,
             const char *task,
             const char *members,
             const char *part)
{
    ask_door(rig, task, members);
    check_answer(rig, members, "{'ok':true", part);
}

void rig_deny(struct rig *rig,
              const char *task,
              const char *members,
              const char *error,
              const char *part)
{
    struct strbuf head = {0};
    strbuf_addf(&head, "{'ok':false,'error':'%s'", error);
    ask_door(rig, task, members);
    check_answer(rig, members, strbuf_text(&head), part);
    strbuf_release(&head);
}

const char *rig_offer(struct rig *rig, const char *plan, const char *members)
{
    struct strbuf json = {0};
    strbuf_adds(&json,
                "{\"verb\":\"submit\",\"file\":\"plan.yaml\","
                "\"folder\":\"/w\",\"processors\":2,\"text\":");
    jsonw_string(&json, plan);
    add_quoted(&json, members);
    strbuf_adds(&json, "}");
    mem_set_text(&rig->answer, NULL);
    engine_request(rig->engine,
                   ++rig->last_request,
                   "operator",
                   strbuf_text(&json));
    rig_settle(rig);
    strbuf_release(&json);
    return rig->answer != NULL ? rig->answer : "";
}

void rig_submit(struct rig *rig, const char *plan)
{
    (void)rig_offer(rig, plan, "");
    check_answer(rig, "submit", "{'ok':true", "is submitted");
}

/* --- sessions ----------------------------------------------------------- */

static const struct rig_order *find_order(const struct rig *rig,
                                          const char *task)
{
    for (uint32_t ix = rig->order_count; ix > 0; ix--) {
        if (strcmp(rig->orders[ix - 1].task, task) == 0) {
            return &rig->orders[ix - 1];
        }
    }
    return NULL;
}

const struct rig_order *rig_order(const struct rig *rig, const char *task)
{
    const struct rig_order *order = find_order(rig, task);
    if (order == NULL) {
        fail_msg("there is no order for %s", task);
    }
    return order;
}

uint32_t rig_orders(const struct rig *rig, const char *task)
{
    uint32_t count = 0;
    for (uint32_t ix = 0; ix < rig->order_count; ix++) {
        count += strcmp(rig->orders[ix].task, task) == 0 ? 1 : 0;
    }
    return count;
}

void rig_ordered(const struct rig *rig, const char *task, const char *part)
{
    rig_has(&rig_order(rig, task)->text, part);
}

void rig_report(struct rig *rig,
                const char *task,
                const struct work_report *report)
{
    static const struct attempt_result nothing = {0};
    struct work_report full = *report;
    full.token = rig_order(rig, task)->token;
    full.mark = rig->mark;
    full.result = report->result != NULL ? report->result : &nothing;
    full.log = report->log != NULL ? report->log : "";
    engine_reported(rig->engine, &full);
    rig_settle(rig);
    rig_wait(rig, MS_NS); /* an exit may wait for others */
}

void rig_begin(struct rig *rig, const char *task)
{
    rig_report(rig, task, &(struct work_report){.type = WORK_STARTED});
}

/* The exit of something that ran until now. */
static struct attempt_exit exit_of(const struct rig *rig, int code)
{
    return (struct attempt_exit){
        .cause = ATTEMPT_EXIT,
        .code = code,
        .begun_ns = RIG_WALL_NS + rig->now_ns,
        .ended_ns = RIG_WALL_NS + rig->now_ns,
    };
}

void rig_end(struct rig *rig, const char *task, int code, const char *result)
{
    struct attempt_result read = {0};
    struct strbuf text = {0};
    struct diag diag = {0};
    add_quoted(&text, result != NULL ? result : "");
    if (result != NULL &&
        attempt_parse_result(strbuf_text(&text), text.len, &read, &diag) !=
            ERR_OK) {
        fail_msg("%s: %s", diag.text, result);
    }
    rig_report(rig,
               task,
               &(struct work_report){
                   .type = WORK_ENDED,
                   .exit = exit_of(rig, code),
                   .result = &read,
               });
    attempt_result_release(&read);
    strbuf_release(&text);
}

void rig_print(struct rig *rig, const char *task, int code, const char *output)
{
    struct strbuf text = {0};
    add_quoted(&text, output != NULL ? output : "");
    rig_report(rig,
               task,
               &(struct work_report){
                   .type = WORK_ENDED,
                   .exit = exit_of(rig, code),
                   .output = output != NULL ? strbuf_text(&text) : NULL,
                   .output_len = text.len,
               });
    strbuf_release(&text);
}

/* --- what is seen ------------------------------------------------------- */

/* Find a task in the first run that has it. */
static void find_task(const struct rig *rig,
                      const char *task,
                      uint32_t *run_out,
                      uint32_t *out)
{
    for (uint32_t run = 0; run < engine_run_count(rig->engine); run++) {
        *out = plan_find_task(engine_plan(rig->engine, run), task);
        if (*out != PLAN_NONE) {
            *run_out = run;
            return;
        }
    }
    fail_msg("there is no task %s", task);
}

void rig_state(const struct rig *rig, const char *task, const char *state)
{
    uint32_t run = 0;
    uint32_t ix = 0;
    find_task(rig, task, &run, &ix);
    struct task_id id = load_task(engine_loaded(rig->engine, run), ix);
    assert_string_equal(
        sched_state_name(sched_task(engine_sched(rig->engine), id).state),
        state);
}

void rig_reason(const struct rig *rig, const char *task, const char *part)
{
    uint32_t run = 0;
    uint32_t ix = 0;
    find_task(rig, task, &run, &ix);
    const char *reason = engine_reason(rig->engine, run, ix);
    if (reason == NULL || strstr(reason, part) == NULL) {
        fail_msg("no \"%s\" is in the reason of %s: %s",
                 part,
                 task,
                 reason != NULL ? reason : "none");
    }
}

static bool has(const struct strbuf *text, const char *part)
{
    struct strbuf plain = {0};
    struct strbuf wanted = {0};
    add_quoted(&plain, strbuf_text(text));
    add_quoted(&wanted, part);
    bool found = strstr(strbuf_text(&plain), strbuf_text(&wanted)) != NULL;
    strbuf_release(&plain);
    strbuf_release(&wanted);
    return found;
}

void rig_has(const struct strbuf *text, const char *part)
{
    if (!has(text, part)) {
        fail_msg("no \"%s\" is in: %s", part, strbuf_text(text));
    }
}

void rig_lacks(const struct strbuf *text, const char *part)
{
    if (has(text, part)) {
        fail_msg("\"%s\" is in: %s", part, strbuf_text(text));
    }
}
