/* SPDX-License-Identifier: MIT */
/*
 * exec_fixture: for tests that run real sessions. A spawn server, a folder
 * that goes away with it, and waiting for reports. Failures fail the current
 * cmocka test.
 */
#ifndef TESTS_UNIT_EXEC_FIXTURE_H
#define TESTS_UNIT_EXEC_FIXTURE_H

#include "exec/attempt.h"
#include "exec/exec.h"

#include <stdbool.h>
#include <stdint.h>

enum { EXEC_FIXTURE_REPORTS_MAX = 4096 };

#define EXEC_FIXTURE_MS INT64_C(1000000)
#define EXEC_FIXTURE_SECOND INT64_C(1000000000)

struct exec_fixture {
    struct exec *exec;
    char folder[64];
    char path[256]; /* of exec_fixture_path() */
    char boot_id[37];
    uint64_t last_id;
    struct exec_report reports[EXEC_FIXTURE_REPORTS_MAX];
    uint32_t count;
};

/* Functions for cmocka: *state is a struct exec_fixture. */
int exec_fixture_set_up(void **state);
int exec_fixture_tear_down(void **state);

/* Start a second server, or the first one again. */
struct exec *exec_fixture_server(void);

/* FOLDER/NAME, until the next call. */
const char *exec_fixture_path(struct exec_fixture *fixture, const char *name);

/*
 * A request for a shell command in the attempt directory FOLDER/NAME, with no
 * limits, a grace period of 300 ms and a new id. Texts are borrowed; `argv`
 * has room for four.
 */
struct exec_request exec_fixture_request(struct exec_fixture *fixture,
                                         const char *dir,
                                         const char **argv,
                                         const char *command);

/* A request with room for its texts. */
struct exec_made {
    char dir[128];
    const char *argv[4];
    struct exec_request request;
};

/* The same as exec_fixture_request(), in FOLDER/NAME. */
struct exec_request *exec_fixture_make(struct exec_fixture *fixture,
                                       struct exec_made *made,
                                       const char *name,
                                       const char *command);

/* Send a request. */
void exec_fixture_start(struct exec_fixture *fixture,
                        const struct exec_request *request);

/* Read what is there, or wait for it; false: nothing came in half a minute. */
bool exec_fixture_read(struct exec_fixture *fixture);

/* Wait for a report. */
struct exec_report exec_fixture_wait(struct exec_fixture *fixture,
                                     uint64_t id,
                                     enum exec_report_type type);

/* Wait for its end, and read what is in its directory. */
struct attempt_found exec_fixture_end(struct exec_fixture *fixture,
                                      const struct exec_request *request);

/* Run a request to its end, which must have been recorded. */
struct attempt_exit exec_fixture_run(struct exec_fixture *fixture,
                                     const struct exec_request *request);

/* Wait until a file is there; false: it did not come in half a minute. */
bool exec_fixture_appears(const char *dir, const char *name);

/* Make a file that a session waits for. */
void exec_fixture_touch(const char *dir, const char *name);

/* The text of DIR/NAME, NULL when it is not there; the caller mem_free()s. */
char *exec_fixture_slurp(const char *dir, const char *name);

#endif /* TESTS_UNIT_EXEC_FIXTURE_H */
