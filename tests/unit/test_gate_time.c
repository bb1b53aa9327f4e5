/* SPDX-License-Identifier: MIT */
/*
 * The time of a refusal does not depend on how much of a secret was right. No
 * clock is read: a child is run step by step, and its instructions are counted.
 * Equal inputs give equal counts on every machine.
 *
 * A simple hash takes the place of SHA-256, which has no branch that depends on
 * its input: steps are slow. Besides, it changes where its input does, so that
 * a comparison of hashes that ends early is noticed, too.
 */
#include "http/gate.h"

#include "base/macros.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define HEX16 "0123456789abcdef"
#define HEX48 HEX16 HEX16 HEX16
#define OPERATOR HEX48 "aaaaaaaaaaaaaaaa"
#define VIEWER HEX48 "bbbbbbbbbbbbbbbb"
#define CODE HEX16 HEX16
#define HOST "127.0.0.1:8900"

/* The last digits of a link's code are its HMAC. */
enum { STEPS_MAX = 200000, NO_TRACE = 3, PROOF_CHARS = 32 };

static struct gate make_gate(void)
{
    struct gate gate = {
        .tokens = {[GATE_VIEWER] = VIEWER, [GATE_OPERATOR] = OPERATOR},
        .hosts = {HOST},
        .host_count = 1,
        .key = {.made = true},
    };
    return gate;
}

/* --- instead of base/sha256.c --------------------------------------------- */

void sha256(const void *bytes, size_t len, unsigned char out[SHA256_BYTES])
{
    const unsigned char *from = bytes;
    memset(out, 0, SHA256_BYTES);
    for (size_t ix = 0; ix < len; ix++) {
        unsigned char *at = &out[ix % SHA256_BYTES];
        *at = (unsigned char)(*at * 31U + from[ix]);
    }
}

void sha256_keyed(const unsigned char key[SHA256_BYTES],
                  const void *bytes,
                  size_t len,
                  unsigned char out[SHA256_BYTES])
{
    (void)key;
    sha256(bytes, len, out);
}

/* --- what is counted: each returns whether the secret was right ---------- */

static bool check_token(const char *given)
{
    struct gate gate = make_gate();
    struct gate_facts facts = {.host = HOST, .authorization = given};
    enum gate_role role;
    const char *text;
    return gate_check(&gate, &facts, &role, &text) == 0;
}

static bool use_link(const char *given)
{
    struct gate gate = make_gate();
    return gate_use_link(&gate, given, 0) != GATE_NOBODY;
}

/* A comparison as it should not be: it ends where two strings differ. */
static bool compare_in_haste(const char *given)
{
    volatile const char *right = CODE;
    size_t ix = 0;
    while (right[ix] != '\0' && right[ix] == given[ix]) {
        ix++;
    }
    return right[ix] == given[ix];
}

/* --- counting ------------------------------------------------------------ */

/* Count the instructions of a call; 0: this process may not trace, or another
 * one, such as Valgrind, executes it. */
static unsigned long count_steps(bool (*call)(const char *given),
                                 const char *given)
{
    int status = 0;
    unsigned long steps = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
            _exit(NO_TRACE);
        }
        (void)raise(SIGSTOP);
        _exit(call(given) ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    while (WIFSTOPPED(status) && steps < STEPS_MAX) {
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        steps++;
    }
    if (WIFSTOPPED(status)) {
        (void)kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return 0;
    }
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_TRACE) {
        return 0;
    }
    assert_int_equal(WEXITSTATUS(status), 0); /* refused */
    return steps;
}

/* Count for a secret that is wrong at one place: the first, one in the middle
 * and the last. False: it cannot be counted. */
static bool count_places(unsigned long counts[3],
                         bool (*call)(const char *given),
                         const char *prefix,
                         const char *secret)
{
    char given[128];
    size_t begin = strlen(prefix);
    size_t len = strlen(secret);
    const size_t places[] = {0, len / 2 - 1, len - 1};
    for (size_t ix = 0; ix < ARRAY_COUNT(places); ix++) {
        (void)snprintf(given, sizeof(given), "%s%s", prefix, secret);
        char *place = &given[begin + places[ix]];
        *place = *place == '0' ? '1' : '0';
        counts[ix] = count_steps(call, given);
    }
    return counts[0] != 0;
}

static void expect_equal_counts(bool (*call)(const char *given),
                                const char *prefix,
                                const char *secret)
{
    unsigned long counts[3];
    if (!count_places(counts, call, prefix, secret)) {
        skip();
    }
    assert_int_equal(counts[0], counts[1]);
    assert_int_equal(counts[0], counts[2]);
}

/* --- cases --------------------------------------------------------------- */

static void a_hasty_comparison_is_noticed(void **state)
{
    (void)state;
    unsigned long counts[3];
    if (!count_places(counts, compare_in_haste, "", CODE)) {
        skip();
    }
    assert_true(counts[0] < counts[1]);
    assert_true(counts[1] < counts[2]);
}

static void a_token_is_compared_to_its_end(void **state)
{
    (void)state;
    expect_equal_counts(check_token, "Bearer ", OPERATOR);
    expect_equal_counts(check_token, "Bearer ", VIEWER);
}

static void the_code_of_a_link_is_compared_to_its_end(void **state)
{
    (void)state;
    char prefix[GATE_LINK_BYTES];
    char code[GATE_LINK_BYTES];
    size_t len = GATE_LINK_BYTES - 1 - PROOF_CHARS;
    struct gate gate = make_gate();
    struct diag diag = {0};
    assert_int_equal(gate_make_link(code, &gate.key, GATE_VIEWER, 0, &diag),
                     ERR_OK);
    (void)snprintf(prefix, sizeof(prefix), "%.*s", (int)len, code);
    expect_equal_counts(use_link, prefix, code + len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hasty_comparison_is_noticed),
        cmocka_unit_test(a_token_is_compared_to_its_end),
        cmocka_unit_test(the_code_of_a_link_is_compared_to_its_end),
    };
    return cmocka_run_group_tests_name("gate_time", tests, NULL, NULL);
}
