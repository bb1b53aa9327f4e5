/* SPDX-License-Identifier: MIT */
/* Processes are children of this one, which stand still. */
#include "work/owner.h"

#include "exec/attempt.h"
#include "tests/support/calls.h"
#include "work/mark.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SOMEBODY = 65534 };

/* A child that waits for a signal; with `traced` after SIGSTOP, as under a
 * debugger. */
static struct store_owner start_child(bool traced)
{
    struct store_owner owner = owner_self();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (traced && (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0 ||
                       raise(SIGSTOP) != 0)) {
            _exit(1);
        }
        for (;;) {
            (void)pause();
        }
    }
    owner.pid = child;
    owner.start_ticks = attempt_start_ticks(child);
    return owner;
}

static void wait_for_stop(const struct store_owner *owner)
{
    int status = 0;
    assert_int_equal(waitpid((pid_t)owner->pid, &status, WUNTRACED),
                     owner->pid);
    assert_true(WIFSTOPPED(status));
}

/* End a child, unless it was killed. */
static void end_child(const struct store_owner *owner)
{
    int status = 0;
    (void)kill((pid_t)owner->pid, SIGKILL);
    assert_int_equal(waitpid((pid_t)owner->pid, &status, 0), owner->pid);
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void a_process_is_known_by_its_start_and_boot(void **state)
{
    (void)state;
    struct store_owner self = owner_self();
    struct store_owner other = self;
    assert_int_equal(owner_process(&self), getpid());
    assert_true(owner_is_same(&self, &other));
    other.pid++;
    assert_false(owner_is_same(&self, &other));
    other = self;
    other.start_ticks++;
    assert_false(owner_is_same(&self, &other));
    other = self;
    other.boot_id[0] ^= 1;
    assert_false(owner_is_same(&self, &other));
}

static void a_host_without_a_name_is_an_owner(void **state)
{
    (void)state;
    calls_fail(&(struct calls_fault){.only = "gethostname", .first = 1});
    struct store_owner self = owner_self();
    assert_true(calls_end());
    assert_string_equal(self.host, "?");
}

static void a_stopped_process_is_seen(void **state)
{
    (void)state;
    struct store_owner owner = start_child(false);
    assert_false(owner_is_stopped(&owner));
    assert_int_equal(kill((pid_t)owner.pid, SIGSTOP), 0);
    wait_for_stop(&owner);
    assert_true(owner_is_stopped(&owner));
    struct store_owner other = owner;
    other.boot_id[0] ^= 1;
    assert_false(owner_is_stopped(&other));
    other = owner;
    other.host[0] ^= 1;
    assert_false(owner_is_stopped(&other));
    end_child(&owner);
    owner = start_child(true);
    wait_for_stop(&owner);
    assert_true(owner_is_stopped(&owner));
    end_child(&owner);
    assert_false(owner_is_stopped(&owner));
}

static void a_process_is_killed_on_its_host_only(void **state)
{
    (void)state;
    struct diag diag = {0};
    struct store_owner owner = start_child(false);
    struct store_owner far = owner;
    (void)snprintf(far.host, sizeof(far.host), "elsewhere");
    assert_int_equal(owner_kill(&far, &diag), ERR_DENIED);
    assert_non_null(strstr(diag.text, "elsewhere"));
    struct store_owner later = owner;
    later.start_ticks++; /* its pid is another process's now */
    assert_int_equal(owner_kill(&later, &diag), ERR_OK);
    assert_int_equal(kill((pid_t)owner.pid, 0), 0);
    assert_int_equal(owner_kill(&owner, &diag), ERR_OK);
    end_child(&owner);
    assert_int_equal(owner_kill(&owner, &diag), ERR_OK); /* it is gone */
}

/* Be another user for a while. */
static void become(uid_t user)
{
    assert_int_equal(setresuid(user, user, 0), 0);
}

static void another_users_process_is_not_killed(void **state)
{
    (void)state;
    struct diag diag = {0};
    if (getuid() != 0) {
        skip();
    }
    struct store_owner owner = start_child(false);
    become(SOMEBODY);
    enum err err = owner_kill(&owner, &diag);
    become(0);
    assert_int_equal(err, ERR_DENIED);
    assert_string_not_equal(diag.text, "");
    end_child(&owner);
}

static void without_a_descriptor_nothing_is_killed(void **state)
{
    (void)state;
    struct diag diag = {0};
    struct rlimit files;
    struct store_owner owner = start_child(false);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = files.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    enum err err = owner_kill(&owner, &diag);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_int_equal(err, ERR_IO);
    assert_int_equal(kill((pid_t)owner.pid, 0), 0);
    end_child(&owner);
}

static void root_and_this_user_may_make_requests(void **state)
{
    (void)state;
    char who[64];
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_true(owner_trusts_peer(fds[0], who));
    assert_non_null(strstr(who, "pid"));
    calls_fail(&(struct calls_fault){.only = "getsockopt", .first = 1});
    assert_false(owner_trusts_peer(fds[0], who));
    assert_true(calls_end());
    (void)close(fds[0]);
    (void)close(fds[1]);
    if (getuid() != 0) {
        skip();
    }
    become(SOMEBODY);
    int status = socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
    bool own = owner_trusts_peer(fds[0], who);
    become(0);
    assert_int_equal(status, 0);
    assert_true(own);
    assert_false(owner_trusts_peer(fds[0], who)); /* now it is another's */
    (void)close(fds[0]);
    (void)close(fds[1]);
}

static void a_mark_names_a_shim(void **state)
{
    (void)state;
    struct store_owner owner = start_child(false);
    struct work_mark mark = {.pid = owner.pid};
    assert_false(mark_is_gone(&mark));
    end_child(&owner);
    assert_true(mark_is_gone(&mark));
    mark.pid = 0; /* unknown */
    assert_false(mark_is_gone(&mark));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_known_by_its_start_and_boot),
        cmocka_unit_test(a_host_without_a_name_is_an_owner),
        cmocka_unit_test(a_stopped_process_is_seen),
        cmocka_unit_test(a_process_is_killed_on_its_host_only),
        cmocka_unit_test(another_users_process_is_not_killed),
        cmocka_unit_test(without_a_descriptor_nothing_is_killed),
        cmocka_unit_test(root_and_this_user_may_make_requests),
        cmocka_unit_test(a_mark_names_a_shim),
    };
    return cmocka_run_group_tests_name("owner", tests, NULL, NULL);
}
