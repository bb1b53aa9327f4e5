/* SPDX-License-Identifier: MIT */
#include "tests/contract/fixture.h"

#include "base/macros.h"
#include "base/mem.h"
#include "store/pg_link.h"
#include "tests/contract/server.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define BOOT_ID "11111111-2222-3333-4444-555555555555"

uint64_t fixture_seed(uint64_t usual)
{
    const char *text = getenv("SLUICE_SEED");
    return usual + (text != NULL ? strtoull(text, NULL, 10) : 0);
}

/* In memory if possible: what is tested does not depend on the disk's speed. */
static char *make_directory(void)
{
    const char *base = getenv("TMPDIR");
    if (base == NULL || base[0] == '\0') {
        base = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
    }
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/sluice-store-XXXXXX", base);
    assert_non_null(mkdtemp(path.text));
    return path.text;
}

/* --- a server ----------------------------------------------------------- */

/* The address of this program's server, which starts at the first use. */
static const char *need_server(void)
{
    static struct server *server;
    const char *given = getenv("SLUICE_TEST_POSTGRES");
    if (given != NULL && given[0] != '\0') {
        return given;
    }
    if (server == NULL) {
        server = server_start(NULL);
    }
    return server_address(server);
}

/* Run statements on the schema of a fixture. */
void fixture_sql(const struct fixture *fixture, const char *sql)
{
    struct pg_link link;
    struct diag diag = {0};
    if (pg_link_init(&link, fixture->address, &diag) != ERR_OK ||
        pg_link_need(&link, &diag) != ERR_OK ||
        pg_do(&link, sql, NULL, NULL, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    pg_link_release(&link);
}

char *fixture_address_at(const char *server)
{
    static unsigned count;
    struct strbuf address = {0};
    strbuf_addf(&address,
                "%s%soptions=-csluice.schema%%3Dtest_%d_%u",
                server,
                strchr(server, '?') != NULL ? "&" : "?",
                (int)getpid(),
                ++count);
    return address.text;
}

struct fixture *fixture_new(enum backend backend)
{
    struct fixture *fixture = mem_zalloc(1, sizeof(*fixture));
    fixture->backend = backend;
    switch (backend) {
    case BACKEND_MEMORY:
        fixture->db = store_memory_db_new();
        break;
    case BACKEND_SQLITE:
        fixture->dir = make_directory();
        break;
    case BACKEND_POSTGRES:
        fixture->address = fixture_address_at(need_server());
        break;
    }
    return fixture;
}

static void remove_directory(const char *path)
{
    DIR *dir = opendir(path);
    assert_non_null(dir);
    struct dirent *entry;
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] != '.') {
            assert_int_equal(unlinkat(dirfd(dir), entry->d_name, 0), 0);
        }
    }
    assert_int_equal(closedir(dir), 0);
    assert_int_equal(rmdir(path), 0);
}

void fixture_free(struct fixture *fixture)
{
    if (fixture->dir != NULL) {
        remove_directory(fixture->dir);
    }
    if (fixture->address != NULL) {
        fixture_sql(fixture,
                    "DO $$ BEGIN EXECUTE format("
                    "'DROP SCHEMA IF EXISTS %I CASCADE',"
                    " current_setting('search_path')); END $$");
    }
    store_memory_db_free(fixture->db);
    mem_free(fixture->address);
    mem_free(fixture->dir);
    mem_free(fixture);
}

int fixture_set_up_memory(void **state)
{
    *state = fixture_new(BACKEND_MEMORY);
    return 0;
}

int fixture_set_up_sqlite(void **state)
{
    *state = fixture_new(BACKEND_SQLITE);
    return 0;
}

int fixture_set_up_postgres(void **state)
{
    *state = fixture_new(BACKEND_POSTGRES);
    return 0;
}

int fixture_tear_down(void **state)
{
    fixture_free(*state);
    return 0;
}

const char *fixture_address(const struct fixture *fixture)
{
    assert_true(fixture->dir != NULL || fixture->address != NULL);
    return fixture->dir != NULL ? fixture->dir : fixture->address;
}

char *fixture_path(const struct fixture *fixture, const char *name)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/%s", fixture->dir, name);
    return path.text;
}

struct store *fixture_open(struct fixture *fixture, enum store_mode mode)
{
    struct store *store = NULL;
    struct diag diag = {0};
    switch (fixture->backend) {
    case BACKEND_MEMORY:
        store = store_memory_open(fixture->db, mode);
        break;
    case BACKEND_SQLITE:
    case BACKEND_POSTGRES:
        if (store_open(&store, fixture_address(fixture), mode, &diag) !=
            ERR_OK) {
            fail_msg("store_open: %s", diag.text);
        }
        break;
    }
    assert_non_null(store);
    return store;
}

struct store_owner fixture_self(void)
{
    return (struct store_owner){
        .pid = getpid(),
        .start_ticks = 4711,
        .host = "testhost",
        .boot_id = BOOT_ID,
    };
}

struct store *fixture_take(struct fixture *fixture, uint64_t *epoch_out)
{
    struct store *store = fixture_open(fixture, STORE_WRITE);
    struct store_owner self = fixture_self();
    struct diag diag = {0};
    if (store_take(store, &self, epoch_out, &diag) != ERR_OK) {
        fail_msg("store_take: %s", diag.text);
    }
    return store;
}

void fixture_lose_lock(struct fixture *fixture)
{
    fixture->lost++;
    if (fixture->backend == BACKEND_MEMORY) {
        store_memory_release_lock(fixture->db);
        return;
    }
    if (fixture->backend == BACKEND_POSTGRES) {
        fixture_sql(fixture, "UPDATE scheduler SET lease_until = '-infinity'");
        return;
    }
    /* Whoever opens the name from now on finds another file. */
    struct strbuf to = {0};
    char *from = fixture_path(fixture, "lock");
    strbuf_addf(&to, "%s/lock.lost-%u", fixture->dir, fixture->lost);
    assert_int_equal(rename(from, strbuf_text(&to)), 0);
    mem_free(from);
    strbuf_release(&to);
}

struct store_change fixture_run(uint32_t number, const char *id)
{
    return (struct store_change){
        .type = STORE_RUN_NEW,
        .as.run =
            {
                .number = number,
                .id = id,
                .name = "A wave",
                .file = "plan.yaml",
                .folder = "/somewhere",
                .text = "tasks:\n- id: a\n",
                .text_bytes = 15,
                .processors = 2,
                .created_ns = 1700000000000000001,
                .base_gates = true,
                .not_before_ns = 1700000000000000099,
            },
    };
}

struct store_change fixture_task(uint32_t run, uint32_t ix, const char *state)
{
    return (struct store_change){
        .type = STORE_TASK_SET,
        .as.task =
            {
                .run = run,
                .ix = ix,
                .id = "group/stage",
                .state = state,
                .flags = 5,
                .parked = 2,
                .ready_ns = 100,
                .ready_seq = UINT64_MAX,
                .until_ns = -1,
                .started_ns = INT64_MAX,
                .service_ns = 7,
                .version = 8,
                .token = 0,
                .leader = STORE_NONE,
                .place = 1,
                .attempts = 2,
                .number = 3,
                .tries = 4,
                .reworks = 5,
                .checkpoints = 6,
                .cause = 0,
                .reason = "because",
                .usd = 1.25,
                .tokens = 77,
            },
    };
}

struct store_change
fixture_claim(uint64_t token, uint32_t run, uint32_t task, uint32_t number)
{
    return (struct store_change){
        .type = STORE_CLAIM,
        .as.attempt =
            {
                .token = token,
                .run = run,
                .task = task,
                .number = number,
                .task_count = 1,
                .slot = 7,
                .state = "claimed",
                .epoch = 1,
                .boot_id = BOOT_ID,
                .claimed_ns = 1700000000000000002,
                .code = -1,
            },
    };
}

struct store_change fixture_end(uint64_t token)
{
    return (struct store_change){
        .type = STORE_ATTEMPT_SET,
        .as.attempt =
            {
                .token = token,
                .state = "ended",
                .pid = 1234,
                .start_ticks = 99,
                .begun_ns = 1700000000000000003,
                .ended_ns = 1700000000000000004,
                .outcome = "failed",
                .cause = "exit",
                .reason = "exit code 3",
                .code = 3,
                .input_tokens = 10,
                .cached_tokens = 5,
                .output_tokens = 20,
                .usd = 0.25,
            },
    };
}

struct store_change
fixture_event(uint32_t run, uint32_t task, const char *state)
{
    static const struct {
        const char *state;
        const char *data;
    } known[] = {
        {"waiting", "{\"task\":\"group/stage\",\"to\":\"waiting\"}"},
        {"ready", "{\"task\":\"group/stage\",\"to\":\"ready\"}"},
        {"claimed", "{\"task\":\"group/stage\",\"to\":\"claimed\"}"},
        {"running", "{\"task\":\"group/stage\",\"to\":\"running\"}"},
        {"done", "{\"task\":\"group/stage\",\"to\":\"done\"}"},
    };
    struct store_change change = {
        .type = STORE_EVENT,
        .as.event =
            {
                .wall_ns = 1700000000000000005,
                .run = run,
                .task = task,
                .kind = "task",
            },
    };
    for (size_t ix = 0; ix < sizeof(known) / sizeof(known[0]); ix++) {
        if (strcmp(known[ix].state, state) == 0) {
            change.as.event.data = known[ix].data;
        }
    }
    assert_non_null(change.as.event.data);
    return change;
}

struct store_change fixture_order(const char *verb)
{
    return (struct store_change){
        .type = STORE_COMMAND,
        .as.command =
            {
                .wall_ns = 1700000000000000006,
                .who = "someone",
                .verb = verb,
                .args = "{\"n\":2}",
                .key = "made up",
            },
    };
}

struct store_change fixture_gate(uint64_t token,
                                 uint32_t place,
                                 uint32_t run,
                                 const char *repo,
                                 const char *verdict)
{
    return (struct store_change){
        .type = STORE_GATE,
        .as.gate =
            {
                .token = token,
                .place = place,
                .run = run,
                .repo = repo,
                .tree = "t1",
                .commit_id = "c1",
                .command = "make test",
                .verdict = verdict,
                .tries = 2,
                .wall_ns = 1700000000000000009,
                .tested_by = "wave, api-1/merge",
                .output = strcmp(verdict, "failed") == 0 ? "no" : NULL,
            },
    };
}

enum err fixture_write(struct store *store,
                       uint64_t epoch,
                       const struct store_change *changes,
                       uint32_t count,
                       struct diag *diag)
{
    struct store_batch batch = {
        .epoch = epoch,
        .engine_ns = 1000,
        .wall_ns = 2000,
    };
    for (uint32_t ix = 0; ix < count; ix++) {
        store_batch_add(&batch, &changes[ix]);
    }
    enum err err = store_write(store, &batch, diag);
    store_batch_release(&batch);
    return err;
}

enum err fixture_write_one(struct store *store,
                           uint64_t epoch,
                           struct store_change change)
{
    return fixture_write(store, epoch, &change, 1, NULL);
}

void fixture_write_ok(struct store *store,
                      uint64_t epoch,
                      const struct store_change *changes,
                      uint32_t count)
{
    struct diag diag = {0};
    if (fixture_write(store, epoch, changes, count, &diag) != ERR_OK) {
        fail_msg("store_write: %s", diag.text);
    }
}

struct store *fixture_take_filled(struct fixture *fixture, uint64_t *epoch_out)
{
    struct store *store = fixture_take(fixture, epoch_out);
    struct store_change changes[] = {
        fixture_run(1, "wave"),
        fixture_task(1, 0, "claimed"),
        fixture_task(1, 1, "waiting"),
        fixture_claim(1, 1, 0, 1),
        fixture_event(1, 0, "claimed"),
        fixture_event(1, 1, "waiting"),
        fixture_order("cap"),
        {
            .type = STORE_FRAGMENT,
            .as.fragment =
                {
                    .run = 1,
                    .number = 1,
                    .file = "more.yaml",
                    .key = "issue 7",
                    .text = "a\0b",
                    .text_bytes = 3,
                },
        },
        {
            .type = STORE_LIMIT_SET,
            .as.limit = {.run = 1, .name = "sessions", .max = 4, .percent = 50},
        },
        {
            .type = STORE_PROVIDER,
            .as.provider =
                {
                    .name = "claude",
                    .steps = 1,
                    .steps_kept = 2,
                    .confirming = true,
                    .stopped = true,
                    .reason = "no credit",
                    .shut_until_ns = 3,
                    .usage = true,
                    .failures = 4,
                    .circuit_open = true,
                    .probe_token = 5,
                    .probe_steps = 6,
                    .probe_at_ns = 7,
                },
        },
        {
            .type = STORE_SETTING,
            .as.setting = {.name = "usage", .value = "{\"percent\":50}"},
        },
    };
    fixture_write_ok(store, *epoch_out, changes, ARRAY_COUNT(changes));
    return store;
}

void fixture_assert_contains(const struct strbuf *text, const char *part)
{
    if (strstr(strbuf_text(text), part) == NULL) {
        fail_msg("no \"%s\" in:\n%s", part, strbuf_text(text));
    }
}

void fixture_assert_lacks(const struct strbuf *text, const char *part)
{
    if (strstr(strbuf_text(text), part) != NULL) {
        fail_msg("\"%s\" in:\n%s", part, strbuf_text(text));
    }
}

static const char *shown(const char *text)
{
    return text != NULL ? text : "(null)";
}

static enum err add_run(void *ctx, const struct store_run *run)
{
    strbuf_addf(ctx,
                "run %u %s \"%s\" %s %s %u %" PRId64 " %d %" PRId64
                " %d%d%d%u %u %u %u%d\n",
                run->number,
                run->id,
                run->name,
                run->file,
                run->folder,
                run->processors,
                run->created_ns,
                run->base_gates,
                run->not_before_ns,
                run->finished,
                run->paused,
                run->cancelled,
                run->barrier,
                run->completions,
                run->owed,
                run->stopped,
                run->deadline_over);
    return ERR_OK;
}

static enum err add_fragment(void *ctx, const struct store_fragment *fragment)
{
    strbuf_addf(ctx,
                "fragment %u.%u %s %s [%.*s]\n",
                fragment->run,
                fragment->number,
                fragment->file,
                shown(fragment->key),
                (int)fragment->text_bytes,
                fragment->text);
    return ERR_OK;
}

static enum err add_limit(void *ctx, const struct store_limit *limit)
{
    strbuf_addf(ctx,
                "limit %u.%s %" PRId64 " %u\n",
                limit->run,
                limit->name,
                limit->max,
                limit->percent);
    return ERR_OK;
}

static enum err add_provider(void *ctx, const struct store_provider *provider)
{
    strbuf_addf(ctx,
                "executor %s %u %u %d %" PRId64 " %d %u %d %" PRIu64 " %u"
                " %" PRId64 " %d %s\n",
                provider->name,
                provider->steps,
                provider->steps_kept,
                provider->confirming,
                provider->shut_until_ns,
                provider->usage,
                provider->failures,
                provider->circuit_open,
                provider->probe_token,
                provider->probe_steps,
                provider->probe_at_ns,
                provider->stopped,
                shown(provider->reason));
    return ERR_OK;
}

static enum err add_setting(void *ctx, const struct store_setting *setting)
{
    strbuf_addf(ctx, "setting %s %s\n", setting->name, setting->value);
    return ERR_OK;
}

static enum err add_task(void *ctx, const struct store_task *task)
{
    strbuf_addf(ctx,
                "task %u.%u %s %s %u %u %" PRId64 " %" PRIu64 " %" PRId64
                " %" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64,
                task->run,
                task->ix,
                task->id,
                task->state,
                task->flags,
                task->parked,
                task->ready_ns,
                task->ready_seq,
                task->until_ns,
                task->started_ns,
                task->service_ns,
                task->version,
                task->token);
    strbuf_addf(ctx,
                " %u %u %u %u %u %u %u %u %s %s %g %" PRId64 " %s %s\n",
                task->leader,
                task->place,
                task->attempts,
                task->number,
                task->tries,
                task->reworks,
                task->checkpoints,
                task->cause,
                shown(task->reason),
                shown(task->feedback),
                task->usd,
                task->tokens,
                shown(task->carry),
                shown(task->outputs));
    return ERR_OK;
}

static enum err add_attempt(void *ctx, const struct store_attempt *attempt)
{
    strbuf_addf(ctx,
                "attempt %" PRIu64 " %u.%u.%u %u %u %s %" PRIu64 " %s %" PRId64
                " %" PRIu64,
                attempt->token,
                attempt->run,
                attempt->task,
                attempt->number,
                attempt->task_count,
                attempt->slot,
                attempt->state,
                attempt->epoch,
                attempt->boot_id,
                attempt->pid,
                attempt->start_ticks);
    strbuf_addf(ctx,
                " %" PRId64 " %" PRId64 " %" PRId64 " %s %s %s %d %d %" PRId64
                " %" PRId64 " %" PRId64 " %g\n",
                attempt->claimed_ns,
                attempt->begun_ns,
                attempt->ended_ns,
                shown(attempt->outcome),
                shown(attempt->cause),
                shown(attempt->reason),
                attempt->code,
                attempt->signal,
                attempt->input_tokens,
                attempt->cached_tokens,
                attempt->output_tokens,
                attempt->usd);
    return ERR_OK;
}

static enum err add_gate(void *ctx, const struct store_gate *gate)
{
    strbuf_addf(ctx,
                "gate %" PRIu64 ".%u %u.%u %s %s %s \"%s\" %s %u %" PRId64
                " %s %s\n",
                gate->token,
                gate->place,
                gate->run,
                gate->task,
                gate->repo,
                gate->tree,
                gate->commit_id,
                gate->command,
                gate->verdict,
                gate->tries,
                gate->wall_ns,
                gate->tested_by,
                shown(gate->output));
    return ERR_OK;
}

static enum err add_command(void *ctx, const struct store_command *command)
{
    strbuf_addf(ctx,
                "order %" PRIu64 " %" PRId64 " %s %s %s %s %s\n",
                command->number,
                command->wall_ns,
                command->who,
                command->verb,
                command->args,
                shown(command->key),
                shown(command->answer));
    return ERR_OK;
}

enum err fixture_add_rows(struct store *store,
                          const struct store_query *query,
                          struct strbuf *out,
                          struct diag *diag)
{
    static const struct store_visitor visitor = {
        .run = add_run,
        .fragment = add_fragment,
        .limit = add_limit,
        .provider = add_provider,
        .setting = add_setting,
        .task = add_task,
        .attempt = add_attempt,
        .gate = add_gate,
        .command = add_command,
    };
    struct store_info info;
    enum err err = store_read(store, query, &visitor, out, &info, diag);
    if (err == ERR_OK) {
        strbuf_addf(out,
                    "last token %" PRIu64 " event %" PRIu64 " order %" PRIu64
                    " run %" PRIu64 "\n",
                    info.last_token,
                    info.last_event,
                    info.last_command,
                    info.last_run);
    }
    return err;
}

static enum err add_event(void *ctx, const struct store_event *event)
{
    strbuf_addf(ctx,
                "event %" PRIu64 " %" PRId64 " %u %u %s %s %016" PRIx64 "\n",
                event->number,
                event->wall_ns,
                event->run,
                event->task,
                event->kind,
                event->data,
                event->sum);
    return ERR_OK;
}

enum err fixture_add_events(struct store *store,
                            uint64_t after,
                            struct strbuf *out,
                            struct diag *diag)
{
    return store_events(store,
                        &(struct store_range){.after = after},
                        add_event,
                        out,
                        diag);
}

struct strbuf fixture_contents(struct store *store)
{
    const struct store_query all = {
        .finished = true,
        .ended = true,
        .answered = true,
    };
    struct strbuf out = {0};
    struct diag diag = {0};
    if (fixture_add_rows(store, &all, &out, &diag) != ERR_OK ||
        fixture_add_events(store, 0, &out, &diag) != ERR_OK) {
        fail_msg("reading: %s", diag.text);
    }
    return out;
}

struct store_info fixture_info(struct store *store)
{
    const struct store_query query = {0};
    const struct store_visitor visitor = {0};
    struct store_info info = {0};
    struct diag diag = {0};
    if (store_read(store, &query, &visitor, NULL, &info, &diag) != ERR_OK) {
        fail_msg("reading: %s", diag.text);
    }
    return info;
}

static void add_fault(void *ctx, const char *text)
{
    strbuf_addf(ctx, "%s\n", text);
}

enum err
fixture_verify(struct store *store, struct strbuf *out, struct diag *diag)
{
    return store_verify(store, add_fault, out, diag);
}
