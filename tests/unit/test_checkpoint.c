/* SPDX-License-Identifier: MIT */
/*
 * Who gets SIGUSR1 at a checkpoint: first by the texts of /proc, then with
 * processes. A process that must not get it is one that would die of it.
 */
#include "base/macros.h"
#include "exec/checkpoint.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* A child ends by itself, when a test has failed. */
enum { ASKED = 42, PATIENCE_MS = 30000, CHILD_SECONDS_MAX = 60 };

static void the_status_of_a_process_is_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct checkpoint_status status;
    } cases[] = {
        {"Name:\tsh\nState:\tS (sleeping)\nSigBlk:\t0000000000000000\n"
         "SigIgn:\t0000000000000000\nSigCgt:\t0000000000010000\n",
         {.sleeps = true}},
        {"Name:\tsh\nState:\tR (running)\nSigBlk:\t0000000000000000\n"
         "SigIgn:\t0000000000000000\nSigCgt:\t0000000000010200\n",
         {.caught = true}},
        {"Name:\tsh\nState:\tD (disk sleep)\nSigBlk:\tfffffffffffbfeff\n"
         "SigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\n",
         {.blocked = true}},
        {"Name:\tsh\nState:\tS (sleeping)\nSigBlk:\t0000000000004203\n"
         "SigIgn:\t0000000000000200\nSigCgt:\t0000000000000000\n",
         {.blocked = true, .sleeps = true}},
        /* 128 signals */
        {"Name:\tsh\nState:\tS (sleeping)\n"
         "SigBlk:\t00000000000002000000000000000000\n"
         "SigCgt:\t00000000000000000000000000000200\n",
         {.caught = true, .sleeps = true}},
        /* A name that looks like a field: its line ends are written as \n. */
        {"Name:\t\\nSigCgt:\t0200\nState:\tS (sleeping)\n"
         "SigBlk:\t0000000000000000\nSigCgt:\t0000000000000000\n",
         {.sleeps = true}},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct checkpoint_status status;
        const char *text = cases[ix].text;
        assert_true(checkpoint_read_status(text, strlen(text), &status));
        assert_int_equal(status.caught, cases[ix].status.caught);
        assert_int_equal(status.blocked, cases[ix].status.blocked);
        assert_int_equal(status.sleeps, cases[ix].status.sleeps);
    }
}

static void a_status_that_was_cut_is_none(void **state)
{
    (void)state;
    static const char text[] =
        "Name:\tsh\nState:\tS (sleeping)\nSigBlk:\t0000000000000200\n"
        "SigIgn:\t0000000000000000\nSigCgt:\t0000000000000200\n";
    struct checkpoint_status status;
    for (size_t len = 0; len < sizeof(text) - 1; len++) {
        /* A copy, so that reading beyond it is noticed. */
        char *copy = malloc(len > 0 ? len : 1);
        assert_non_null(copy);
        memcpy(copy, text, len);
        assert_false(checkpoint_read_status(copy, len, &status));
        free(copy);
    }
}

/* How a child takes SIGUSR1. */
enum kind {
    DEAF,
    CATCHES,
    IGNORES,
    BLOCKS,
    HALF_BLOCKS, /* in its first thread, while the second does not */
};

/* A child waits for the end of this pipe, or for the signal. */
struct child {
    pid_t pid;
    int gate;
};

static void end_asked(int number)
{
    (void)number;
    _exit(ASKED);
}

static void wait_at(int gate)
{
    char byte;
    (void)!read(gate, &byte, 1);
}

static void *wait_in_thread(void *arg)
{
    int *fds = arg;
    (void)!write(fds[1], "r", 1);
    wait_at(fds[0]);
    return NULL;
}

static void block(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGUSR1);
    (void)sigprocmask(SIG_BLOCK, set, NULL);
}

/* Be a child of this kind, ready when a byte has gone to `ready`. */
_Noreturn static void be(enum kind kind, int gate, int ready)
{
    int fds[] = {gate, ready};
    pthread_t thread;
    struct signalfd_siginfo info;
    sigset_t set;
    switch (kind) {
    case DEAF:
        break;
    case CATCHES:
        (void)signal(SIGUSR1, end_asked);
        break;
    case IGNORES:
        (void)signal(SIGUSR1, SIG_IGN);
        break;
    case BLOCKS:
        block(&set);
        gate = signalfd(-1, &set, 0);
        (void)!write(ready, "r", 1);
        _exit(read(gate, &info, sizeof(info)) > 0 ? ASKED : 99);
    case HALF_BLOCKS:
        if (pthread_create(&thread, NULL, wait_in_thread, fds) != 0) {
            _exit(99);
        }
        block(&set);
        (void)pthread_join(thread, NULL);
        _exit(0);
    }
    (void)!write(ready, "r", 1);
    wait_at(gate);
    _exit(0);
}

/* Be a chain of processes, each the child of the one before, which exits as
 * its child does. Only the last one may be of any kind. */
_Noreturn static void
be_chain(const enum kind *kinds, size_t count, int gate, int ready)
{
    for (size_t ix = 0; ix < count - 1; ix++) {
        if (kinds[ix] == CATCHES) {
            (void)signal(SIGUSR1, end_asked);
        }
        pid_t pid = fork();
        (void)alarm(CHILD_SECONDS_MAX);
        if (pid != 0) {
            int status = 0;
            (void)waitpid(pid, &status, 0);
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
        }
        (void)signal(SIGUSR1, SIG_DFL);
    }
    be(kinds[count - 1], gate, ready);
}

static struct child start(const enum kind *kinds, size_t count)
{
    int gate[2];
    int ready[2];
    char byte;
    assert_int_equal(pipe(gate), 0);
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(gate[1]);
        (void)alarm(CHILD_SECONDS_MAX);
        be_chain(kinds, count, gate[0], ready[1]);
    }
    (void)close(gate[0]);
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    return (struct child){.pid = pid, .gate = gate[1]};
}

/* How it ended: its exit code, or -1. */
static int end(const struct child *child)
{
    int status = 0;
    (void)close(child->gate);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Ask until someone was asked; false: no one was in half a minute. */
static bool is_asked_in_time(const struct child *child)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    for (int ms = 0; ms < PATIENCE_MS; ms++) {
        uint32_t count = checkpoint_ask(child->pid);
        if (count > 0) {
            return count == 1;
        }
        (void)nanosleep(&pause, NULL);
    }
    return false;
}

static void a_handler_is_asked(void **state)
{
    (void)state;
    struct child child = start((enum kind[]){CATCHES}, 1);
    assert_int_equal(checkpoint_ask(child.pid), 1);
    int status = 0;
    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    assert_int_equal(WEXITSTATUS(status), ASKED);
    (void)close(child.gate);
}

/* It counts as handled only while the process waits, so it may take a while. */
static void one_that_blocks_and_waits_is_asked(void **state)
{
    (void)state;
    struct child child = start((enum kind[]){BLOCKS}, 1);
    assert_true(is_asked_in_time(&child));
    assert_int_equal(end(&child), ASKED);
}

static void others_are_left_alone(void **state)
{
    (void)state;
    static const enum kind kinds[] = {DEAF, IGNORES, HALF_BLOCKS};
    enum { LOOKS = 20 };
    for (size_t ix = 0; ix < ARRAY_COUNT(kinds); ix++) {
        struct child child = start(&kinds[ix], 1);
        for (int n = 0; n < LOOKS; n++) {
            assert_int_equal(checkpoint_ask(child.pid), 0);
        }
        assert_int_equal(end(&child), 0);
    }
}

static void children_are_asked_for_a_deaf_parent(void **state)
{
    (void)state;
    static const enum kind chain[] = {DEAF, DEAF, CATCHES};
    for (size_t from = 0; from < ARRAY_COUNT(chain) - 1; from++) {
        struct child child = start(chain + from, ARRAY_COUNT(chain) - from);
        assert_int_equal(checkpoint_ask(child.pid), 1);
        assert_int_equal(end(&child), ASKED);
    }
}

/* Both would take it. */
static void those_below_a_handler_are_not_asked(void **state)
{
    (void)state;
    static const enum kind chain[] = {CATCHES, CATCHES};
    struct child child = start(chain, ARRAY_COUNT(chain));
    assert_int_equal(checkpoint_ask(child.pid), 1);
    assert_int_equal(end(&child), ASKED);
}

static void a_deaf_chain_survives(void **state)
{
    (void)state;
    static const enum kind chain[] = {DEAF, DEAF, DEAF, IGNORES};
    struct child child = start(chain, ARRAY_COUNT(chain));
    assert_int_equal(checkpoint_ask(child.pid), 0);
    assert_int_equal(end(&child), 0);
}

static void one_that_has_ended_is_not_asked(void **state)
{
    (void)state;
    struct child child = start((enum kind[]){CATCHES}, 1);
    assert_int_equal(end(&child), 0);
    assert_int_equal(checkpoint_ask(child.pid), 0);
}

#ifdef SLUICE_CRASH_POINTS

static void without_lists_of_children_they_are_found(void **state)
{
    (void)state;
    static const enum kind chain[] = {DEAF, CATCHES};
    struct child child = start(chain, ARRAY_COUNT(chain));
    assert_int_equal(setenv("SLUICE_FAULT", "children", 1), 0);
    uint32_t count = checkpoint_ask(child.pid);
    assert_int_equal(unsetenv("SLUICE_FAULT"), 0);
    assert_int_equal(count, 1);
    assert_int_equal(end(&child), ASKED);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_status_of_a_process_is_read),
        cmocka_unit_test(a_status_that_was_cut_is_none),
        cmocka_unit_test(a_handler_is_asked),
        cmocka_unit_test(one_that_blocks_and_waits_is_asked),
        cmocka_unit_test(others_are_left_alone),
        cmocka_unit_test(children_are_asked_for_a_deaf_parent),
        cmocka_unit_test(those_below_a_handler_are_not_asked),
        cmocka_unit_test(a_deaf_chain_survives),
        cmocka_unit_test(one_that_has_ended_is_not_asked),
#ifdef SLUICE_CRASH_POINTS
        cmocka_unit_test(without_lists_of_children_they_are_found),
#endif
    };
    return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
