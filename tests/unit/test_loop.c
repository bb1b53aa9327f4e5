/* SPDX-License-Identifier: MIT */
/*
 * The live loop with a store in memory: what it lacks to begin with is named,
 * and a store that fails ends it with the reason.
 */
#include "engine/loop.h"

#include "base/mem.h"
#include "sim/store/memory.h"
#include "store/backend.h"
#include "work/key.h"

#include <fcntl.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char submit[] =
    "{\"verb\":\"submit\",\"file\":\"p.yaml\",\"folder\":\"/\","
    "\"processors\":1,\"text\":\"sluice: 1\\nname: wave\\n"
    "tasks: [{id: a, run: x}]\\n\"}";

struct bed;

/* Functions of the store whose reading waits. */
struct slow_ops {
    struct store_ops ops; /* first */
    struct bed *bed;
};

/* A place, a store that was taken, and what was seen of the loop. */
struct bed {
    char home[64];
    struct store_memory_db *db;
    struct store *store;
    struct store_place place;
    struct loop_options options;
    struct loop *loop;
    struct strbuf answers;
    uint32_t events;
    uint32_t passes;
    sem_t go; /* a heartbeat goes on */
};

static void on_answer(void *ctx, const char *json)
{
    struct bed *bed = ctx;
    strbuf_addf(&bed->answers, "%s\n", json);
    loop_stop(bed->loop);
}

static void on_event(void *ctx, const struct store_event *event)
{
    struct bed *bed = ctx;
    (void)event;
    bed->events++;
}

/* Stop the loop when nothing is left to write. */
static void stop_at_rest(void *ctx)
{
    struct bed *bed = ctx;
    if (engine_is_settled(loop_engine(bed->loop))) {
        loop_stop(bed->loop);
    }
}

static void make_bed(struct bed *bed)
{
    struct store_owner self = {.pid = 1, .host = "here"};
    struct diag diag = {0};
    *bed = (struct bed){0};
    (void)snprintf(bed->home, sizeof(bed->home), "/tmp/loop-XXXXXX");
    assert_non_null(mkdtemp(bed->home));
    bed->place = (struct store_place){
        .address = bed->home,
        .shown = bed->home,
        .id = bed->home,
        .home = bed->home,
    };
    bed->db = store_memory_db_new();
    bed->store = store_memory_open(bed->db, STORE_WRITE);
    bed->options = (struct loop_options){
        .store = bed->store,
        .place = &bed->place,
        .requests_only = true,
        .ctx = bed,
        .event = on_event,
        .answer = on_answer,
    };
    assert_int_equal(store_take(bed->store, &self, &bed->options.epoch, &diag),
                     ERR_OK);
}

static void remove_file(const struct bed *bed, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", bed->home, name);
    (void)remove(path);
}

static void unmake_bed(struct bed *bed)
{
    static const char *const files[] = {
        "door/socket",
        "door",
        "socket",
        "secret",
        "settings.yaml",
    };
    loop_close(bed->loop);
    store_close(bed->store);
    store_memory_db_free(bed->db);
    strbuf_release(&bed->answers);
    for (size_t ix = 0; ix < ARRAY_COUNT(files); ix++) {
        remove_file(bed, files[ix]);
    }
    (void)rmdir(bed->home);
}

static void open_loop(struct bed *bed)
{
    struct diag diag = {0};
    if (loop_open(&bed->loop, &bed->options, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
}

/* Require that the loop cannot begin, for this reason. */
static void refuse(struct bed *bed, enum err wanted, const char *part)
{
    struct diag diag = {0};
    enum err err = loop_open(&bed->loop, &bed->options, &diag);
    assert_null(bed->loop);
    if (err != wanted || strstr(diag.text, part) == NULL) {
        fail_msg("not \"%s\", but %s: %s", part, err_name(err), diag.text);
    }
}

/* --- beginning ---------------------------------------------------------- */

static void a_home_that_does_not_exist_is_named(void **state)
{
    (void)state;
    struct bed bed;
    char missing[] = "/tmp/loop-missing/home";
    make_bed(&bed);
    bed.place.home = missing;
    refuse(&bed, ERR_IO, missing);
    unmake_bed(&bed);
}

static void a_program_that_is_missing_is_named(void **state)
{
    (void)state;
    struct bed bed;
    make_bed(&bed);
    assert_int_equal(setenv("SLUICE_GIT", "/tmp/loop-missing", 1), 0);
    refuse(&bed, ERR_NOT_FOUND, "/tmp/loop-missing");
    assert_int_equal(setenv("SLUICE_GIT", "/bin/true", 1), 0);
    open_loop(&bed);
    unmake_bed(&bed);
}

static void settings_that_are_invalid_are_named(void **state)
{
    (void)state;
    struct bed bed;
    char path[128];
    make_bed(&bed);
    (void)snprintf(path, sizeof(path), "%s/settings.yaml", bed.home);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("limits: 3\n", file) >= 0);
    assert_int_equal(fclose(file), 0);
    open_loop(&bed); /* for requests, they do not matter */
    loop_close(bed.loop);
    bed.options.requests_only = false;
    refuse(&bed, ERR_INVALID, "settings.yaml:1:");
    unmake_bed(&bed);
}

/* Sessions could not reach it. */
static void a_door_that_is_no_directory_is_named(void **state)
{
    (void)state;
    struct bed bed;
    char path[128];
    make_bed(&bed);
    (void)snprintf(path, sizeof(path), "%s/door", bed.home);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(close(fd), 0);
    bed.options.requests_only = false;
    refuse(&bed, ERR_IO, "/door");
    unmake_bed(&bed);
}

/* In another process, because the limit cannot be raised again. */
static void too_few_files_are_named_with_the_remedy(void **state)
{
    enum { LOW = 12 };
    (void)state;
    struct bed bed;
    make_bed(&bed);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit low = {LOW, LOW};
        struct diag diag = {0};
        bool good =
            setrlimit(RLIMIT_NOFILE, &low) == 0 &&
            loop_open(&bed.loop, &bed.options, &diag) == ERR_UNAVAILABLE &&
            bed.loop == NULL &&
            strstr(diag.text, "the limit is 12 open files") != NULL;
        _exit(good ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    unmake_bed(&bed);
}

/* --- running ------------------------------------------------------------ */

static void a_request_is_durable_before_its_answer(void **state)
{
    (void)state;
    struct bed bed;
    struct diag diag = {0};
    make_bed(&bed);
    open_loop(&bed);
    loop_request(bed.loop, submit);
    assert_int_equal(loop_run(bed.loop, &diag), ERR_OK);
    assert_non_null(strstr(strbuf_text(&bed.answers), "run wave is submitted"));
    assert_true(bed.events > 0);
    loop_close(bed.loop);
    bed.loop = NULL;
    open_loop(&bed);
    assert_int_equal(engine_run_count(loop_engine(bed.loop)), 1);
    unmake_bed(&bed);
}

static void nobody_needs_to_listen(void **state)
{
    (void)state;
    struct bed bed;
    struct diag diag = {0};
    make_bed(&bed);
    bed.options.answer = NULL;
    bed.options.event = NULL;
    bed.options.pass = stop_at_rest;
    open_loop(&bed);
    loop_request(bed.loop, submit);
    assert_int_equal(loop_run(bed.loop, &diag), ERR_OK);
    assert_int_equal(engine_run_count(loop_engine(bed.loop)), 1);
    unmake_bed(&bed);
}

/* Let another scheduler take the store. */
static struct store *replace(struct bed *bed)
{
    struct store_owner next = {.pid = 2, .host = "there"};
    struct diag diag = {0};
    uint64_t epoch;
    store_memory_release_lock(bed->db);
    struct store *store = store_memory_open(bed->db, STORE_WRITE);
    assert_int_equal(store_take(store, &next, &epoch, &diag), ERR_OK);
    return store;
}

static void a_heartbeat_that_fails_ends_the_loop(void **state)
{
    (void)state;
    struct bed bed;
    struct diag diag = {0};
    make_bed(&bed);
    open_loop(&bed);
    struct store *other = replace(&bed);
    assert_int_equal(loop_run(bed.loop, &diag), ERR_CONFLICT);
    assert_non_null(strstr(diag.text, "another process has become"));
    store_close(other);
    unmake_bed(&bed);
}

/* --- a batch that waits for a heartbeat --------------------------------- */

/* The thread of the loop's writes waits here. */
static enum err
on_hold(struct store *store, struct store_info *out, struct diag *diag)
{
    const struct slow_ops *slow = (const struct slow_ops *)store->ops;
    (void)out;
    while (sem_wait(&slow->bed->go) != 0) {
    }
    return diag_set(diag, ERR_IO, "the disk is gone");
}

/* A request comes while the heartbeat is written; then that may fail. */
static void request_meanwhile(void *ctx)
{
    struct bed *bed = ctx;
    if (bed->passes++ == 0) {
        loop_request(bed->loop, submit);
    } else {
        (void)sem_post(&bed->go);
    }
}

static void a_batch_behind_a_failed_heartbeat_fails_with_it(void **state)
{
    (void)state;
    struct bed bed;
    struct diag diag = {0};
    make_bed(&bed);
    assert_int_equal(sem_init(&bed.go, 0, 0), 0);
    bed.options.pass = request_meanwhile;
    open_loop(&bed);
    const struct store_ops *real = bed.store->ops;
    struct slow_ops slow = {.ops = *real, .bed = &bed};
    slow.ops.hold = on_hold;
    bed.store->ops = &slow.ops;
    assert_int_equal(loop_run(bed.loop, &diag), ERR_IO);
    assert_string_equal(diag.text, "the disk is gone");
    assert_string_equal(strbuf_text(&bed.answers), ""); /* it is not durable */
    const char *text;
    assert_int_equal(engine_failed(loop_engine(bed.loop), &text), ERR_IO);
    bed.store->ops = real;
    assert_int_equal(sem_destroy(&bed.go), 0);
    unmake_bed(&bed);
}

int main(void)
{
    static const char *const programs[] = {
        "SLUICE_GIT",
        "SLUICE_AGENT",
        "SLUICE_SANDBOX",
        "SLUICE_MAIN",
    };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_home_that_does_not_exist_is_named),
        cmocka_unit_test(a_program_that_is_missing_is_named),
        cmocka_unit_test(settings_that_are_invalid_are_named),
        cmocka_unit_test(a_door_that_is_no_directory_is_named),
        cmocka_unit_test(too_few_files_are_named_with_the_remedy),
        cmocka_unit_test(a_request_is_durable_before_its_answer),
        cmocka_unit_test(nobody_needs_to_listen),
        cmocka_unit_test(a_heartbeat_that_fails_ends_the_loop),
        cmocka_unit_test(a_batch_behind_a_failed_heartbeat_fails_with_it),
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(programs); ix++) {
        if (setenv(programs[ix], "/bin/true", 1) != 0) {
            return 1;
        }
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
