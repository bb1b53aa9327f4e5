/* SPDX-License-Identifier: MIT */
#include "work/key.h"

#include "base/macros.h"
#include "tests/support/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define HEX "0123456789abcdef0123456789abcdef"
#define TOKEN_MAX "18446744073709551615"

/* The bytes 0, 1, ... 31. */
static struct key_secret counting(void)
{
    struct key_secret secret;
    for (size_t ix = 0; ix < SHA256_BYTES; ix++) {
        secret.bytes[ix] = (unsigned char)ix;
    }
    return secret;
}

/* --- keys --------------------------------------------------------------- */

/* The values are HMAC-SHA256 of "7 nonce", by Python's hmac: a worker of
 * another release must derive the same. */
static void a_key_is_that_of_other_releases(void **state)
{
    (void)state;
    struct key_secret secret = counting();
    char key[KEY_BYTES];
    key_make(key, &secret, 7, "nonce");
    assert_string_equal(key, "7-70124c95c142697a11d0150636e152d1");
    key_make(key, &secret, UINT64_MAX, "nonce");
    assert_string_equal(key, TOKEN_MAX "-357da2378194884448d67af194af1e1a");
    assert_int_equal(strlen(key), KEY_BYTES - 1);
}

static void the_same_attempt_has_the_same_key(void **state)
{
    (void)state;
    struct key_secret secret = counting();
    struct key_secret copy = secret;
    char first[KEY_BYTES];
    char second[KEY_BYTES];
    key_make(first, &secret, 12, "n");
    key_make(second, &copy, 12, "n");
    assert_string_equal(first, second);
    assert_true(key_token(first) == 12);
    assert_true(key_is(first, &copy, 12, "n"));
}

static void another_attempt_has_another_key(void **state)
{
    (void)state;
    struct key_secret secret = counting();
    struct key_secret other = secret;
    char key[KEY_BYTES];
    char made[KEY_BYTES];
    other.bytes[SHA256_BYTES - 1] ^= 1;
    key_make(key, &secret, 12, "n");
    const char *code = strchr(key, '-');
    key_make(made, &secret, 13, "n");
    assert_string_not_equal(strchr(made, '-'), code);
    key_make(made, &secret, 12, "m");
    assert_string_not_equal(strchr(made, '-'), code);
    key_make(made, &other, 12, "n");
    assert_string_not_equal(strchr(made, '-'), code);
    assert_false(key_is(key, &secret, 13, "n"));
    assert_false(key_is(key, &secret, 12, "m"));
    assert_false(key_is(key, &secret, 12, "nn"));
    assert_false(key_is(key, &other, 12, "n"));
    /* Nor do the token and the nonce run into each other. */
    key_make(made, &secret, 1, "2 n");
    assert_string_not_equal(strchr(made, '-'), code);
}

static void a_key_names_its_token(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        uint64_t token;
    } rows[] = {
        {"1-" HEX, 1},
        {"12-" HEX, 12},
        {TOKEN_MAX "-" HEX, UINT64_MAX},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        assert_true(key_token(rows[ix].key) == rows[ix].token);
    }
}

static void what_is_no_key_names_no_token(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "-",
        "1",
        "1-",
        "-" HEX,
        HEX,
        "1" HEX,
        "1 " HEX,
        "1_" HEX,
        "0-" HEX,
        "00-" HEX,
        "a-" HEX,
        "1a-" HEX,
        "0x1-" HEX,
        "1.5-" HEX,
        "1e3-" HEX,
        "+1-" HEX,
        "-1-" HEX,
        " 1-" HEX,
        "\t1-" HEX,
        "1 -" HEX,
        "1--" HEX,
        "1-" HEX "0",
        "1-" HEX " ",
        "1-" HEX "\n",
        "1-0123456789abcdef0123456789abcde",
        /* one and ten times more than fits */
        "18446744073709551616-" HEX,
        "184467440737095516150-" HEX,
        "99999999999999999999999999999999999999999-" HEX,
        "\xd9\xa1-" HEX, /* a digit, but not of ASCII */
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        if (key_token(texts[ix]) != 0) {
            fail_msg("\"%s\" is a key", texts[ix]);
        }
    }
}

static void a_key_must_be_exact(void **state)
{
    (void)state;
    struct key_secret secret = counting();
    char key[KEY_BYTES];
    char text[KEY_BYTES + 1];
    key_make(key, &secret, 12, "n");
    size_t len = strlen(key);
    assert_true(key_is(key, &secret, 12, "n"));
    for (size_t ix = 0; ix < len; ix++) {
        (void)snprintf(text, sizeof(text), "%s", key);
        text[ix] = text[ix] == '0' ? '1' : '0';
        assert_false(key_is(text, &secret, 12, "n"));
        text[ix] = '\0'; /* a prefix */
        assert_false(key_is(text, &secret, 12, "n"));
    }
    (void)snprintf(text, sizeof(text), "%s0", key);
    assert_false(key_is(text, &secret, 12, "n"));
    (void)snprintf(text, sizeof(text), "0%s", key);
    assert_true(key_token(text) == 12);
    assert_false(key_is(text, &secret, 12, "n"));
    /* The digits of a key are small letters. */
    (void)snprintf(text, sizeof(text), "%s", key);
    char *letter = strpbrk(text, "abcdef");
    assert_non_null(letter);
    *letter = (char)(*letter - 'a' + 'A');
    assert_false(key_is(text, &secret, 12, "n"));
}

/* --- the secret --------------------------------------------------------- */

/* A home of its own for each case. */
struct home {
    char dir[32];
    char file[64];
    char new_file[64];
};

static int set_up(void **state)
{
    static struct home home;
    (void)snprintf(home.dir, sizeof(home.dir), "/tmp/sluice-key-XXXXXX");
    if (mkdtemp(home.dir) == NULL) {
        return -1;
    }
    (void)snprintf(home.file, sizeof(home.file), "%s/secret", home.dir);
    (void)snprintf(home.new_file, sizeof(home.new_file), "%s.new", home.file);
    *state = &home;
    return 0;
}

static int tear_down(void **state)
{
    const struct home *home = *state;
    (void)unlink(home->file);
    (void)unlink(home->new_file);
    return rmdir(home->dir);
}

static struct key_secret load(const struct home *home)
{
    struct key_secret secret = {{0}};
    struct diag diag = {0};
    if (key_load(&secret, home->dir, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    return secret;
}

/* Write a file of so many letters x. */
static void put(const char *path, size_t len)
{
    char bytes[256];
    assert_true(len <= sizeof(bytes));
    memset(bytes, 'x', len);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    assert_int_equal(close(fd), 0);
}

/* Require that a file is a private one with this secret, and nothing else is
 * left. */
static void expect_file(const struct home *home,
                        const struct key_secret *wanted)
{
    struct stat stat;
    struct key_secret found;
    assert_int_equal(lstat(home->file, &stat), 0);
    assert_true(S_ISREG(stat.st_mode));
    assert_int_equal(stat.st_mode & 07777, 0600);
    assert_int_equal(stat.st_size, SHA256_BYTES);
    int fd = open(home->file, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, found.bytes, SHA256_BYTES), SHA256_BYTES);
    assert_int_equal(close(fd), 0);
    assert_memory_equal(found.bytes, wanted->bytes, SHA256_BYTES);
    assert_int_not_equal(access(home->new_file, F_OK), 0);
}

/* The sum of the next three free descriptors. */
static int next_descriptors(void)
{
    int fds[3];
    int sum = 0;
    for (size_t ix = 0; ix < 3; ix++) {
        fds[ix] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_true(fds[ix] >= 0);
        sum += fds[ix];
    }
    for (size_t ix = 0; ix < 3; ix++) {
        assert_int_equal(close(fds[ix]), 0);
    }
    return sum;
}

static void a_secret_is_made_once(void **state)
{
    const struct home *home = *state;
    struct key_secret zero = {{0}};
    struct key_secret first = load(home);
    assert_memory_not_equal(first.bytes, zero.bytes, SHA256_BYTES);
    expect_file(home, &first);
    int before = next_descriptors();
    struct key_secret second = load(home);
    assert_int_equal(next_descriptors(), before); /* no file stays open */
    assert_memory_equal(first.bytes, second.bytes, SHA256_BYTES);
    expect_file(home, &first);
    /* Another home has another one. */
    assert_int_equal(unlink(home->file), 0);
    second = load(home);
    assert_memory_not_equal(first.bytes, second.bytes, SHA256_BYTES);
}

static void a_file_of_another_size_is_replaced(void **state)
{
    const struct home *home = *state;
    static const size_t sizes[] = {0, 1, 31, 33, 64, 256};
    for (size_t ix = 0; ix < ARRAY_COUNT(sizes); ix++) {
        put(home->file, sizes[ix]);
        struct key_secret secret = load(home);
        assert_memory_not_equal(secret.bytes, "xxxxxxxx", 8);
        expect_file(home, &secret);
    }
}

static void a_file_of_its_size_is_kept(void **state)
{
    const struct home *home = *state;
    put(home->file, SHA256_BYTES);
    struct key_secret secret = load(home);
    assert_memory_equal(secret.bytes, "xxxxxxxx", 8);
    expect_file(home, &secret);
}

/* What a kill between the two files has left does no harm. */
static void half_a_new_file_is_overwritten(void **state)
{
    const struct home *home = *state;
    put(home->new_file, 100);
    assert_int_equal(chmod(home->new_file, 0644), 0);
    struct key_secret secret = load(home);
    assert_memory_not_equal(secret.bytes, "xxxxxxxx", 8);
    expect_file(home, &secret);
}

/* Nor does anybody wait for a writer. */
static void a_pipe_is_replaced(void **state)
{
    const struct home *home = *state;
    assert_int_equal(mkfifo(home->file, 0600), 0);
    struct key_secret secret = load(home);
    expect_file(home, &secret);
}

/* The link is replaced by a file; what it names is neither read nor changed. */
static void a_link_is_not_followed(void **state)
{
    const struct home *home = *state;
    char target[64];
    struct stat stat;
    (void)snprintf(target, sizeof(target), "%s/target", home->dir);
    put(target, SHA256_BYTES);
    assert_int_equal(symlink(target, home->file), 0);
    struct key_secret secret = load(home);
    assert_memory_not_equal(secret.bytes, "xxxxxxxx", 8);
    expect_file(home, &secret);
    assert_int_equal(lstat(target, &stat), 0);
    assert_int_equal(stat.st_size, SHA256_BYTES);
    assert_int_equal(unlink(target), 0);
}

/* A link in place of the new file would have the secret written elsewhere. */
static void a_link_for_the_new_file_is_an_error(void **state)
{
    const struct home *home = *state;
    struct key_secret secret;
    struct diag diag = {0};
    char target[64];
    (void)snprintf(target, sizeof(target), "%s/target", home->dir);
    assert_int_equal(symlink(target, home->new_file), 0);
    assert_int_equal(key_load(&secret, home->dir, &diag), ERR_IO);
    assert_non_null(strstr(diag.text, home->file));
    assert_int_not_equal(access(target, F_OK), 0);
    assert_int_not_equal(access(home->file, F_OK), 0);
}

static void a_missing_home_is_an_error(void **state)
{
    const struct home *home = *state;
    struct key_secret secret;
    struct diag diag = {0};
    char dir[64];
    (void)snprintf(dir, sizeof(dir), "%s/none", home->dir);
    assert_int_equal(key_load(&secret, dir, &diag), ERR_IO);
    assert_non_null(strstr(diag.text, dir));
    assert_int_not_equal(access(dir, F_OK), 0);
    /* Neither is a file a home. */
    put(home->file, SHA256_BYTES);
    assert_int_equal(key_load(&secret, home->file, &diag), ERR_IO);
    assert_int_equal(key_load(&secret, "", NULL), ERR_IO);
}

/* A secret that was not made whole is not there; the next try makes it. */
static void expect_none(const struct home *home)
{
    assert_int_not_equal(access(home->file, F_OK), 0);
    assert_int_equal(errno, ENOENT);
    struct key_secret secret = load(home);
    expect_file(home, &secret);
    assert_int_equal(unlink(home->file), 0);
}

static void a_failure_leaves_no_half_secret(void **state)
{
    const struct home *home = *state;
    int before = next_descriptors();
    unsigned failed = 0;
    for (unsigned n = 2; calls_more(); n++) {
        struct key_secret secret;
        struct diag diag = {0};
        /* One call, and then it and the next one. */
        calls_fail(&(struct calls_fault){.first = n / 2, .count = n % 2 + 1});
        enum err err = key_load(&secret, home->dir, &diag);
        if (calls_end() && err != ERR_OK) {
            failed++;
            assert_int_equal(err, ERR_IO);
            assert_non_null(strstr(diag.text, home->file));
            expect_none(home);
        } else {
            assert_int_equal(err, ERR_OK);
            expect_file(home, &secret);
            assert_int_equal(unlink(home->file), 0);
        }
    }
    assert_true(failed >= 8);
    assert_int_equal(next_descriptors(), before);
}

static void a_disk_that_takes_nothing_is_an_error(void **state)
{
    const struct home *home = *state;
    static const char *const names[] = {"write", "getrandom"};
    for (size_t ix = 0; ix < ARRAY_COUNT(names); ix++) {
        struct key_secret secret;
        struct diag diag = {0};
        calls_fail(&(struct calls_fault){
            .only = names[ix],
            .first = 1,
            .error = CALLS_NOTHING,
        });
        assert_int_equal(key_load(&secret, home->dir, &diag), ERR_IO);
        assert_true(calls_end());
        expect_none(home);
    }
}

/* Sessions have keys made of it. */
static void a_secret_that_cannot_be_read_is_kept(void **state)
{
    const struct home *home = *state;
    struct key_secret first = load(home);
    for (unsigned n = 1; calls_more(); n++) {
        struct key_secret secret;
        struct diag diag = {0};
        calls_fail(&(struct calls_fault){.first = n});
        enum err err = key_load(&secret, home->dir, &diag);
        if (!calls_end() || strcmp(calls_failed(), "close") == 0) {
            assert_int_equal(err, ERR_OK);
        } else {
            assert_int_equal(err, ERR_IO);
        }
        expect_file(home, &first);
    }
}

/* A link, a socket, a pipe with a writer. */
static void another_kind_of_file_is_replaced(void **state)
{
    const struct home *home = *state;
    static const int errors[] = {ELOOP, ENXIO, EAGAIN};
    for (size_t ix = 0; ix < ARRAY_COUNT(errors); ix++) {
        struct key_secret secret;
        struct diag diag = {0};
        put(home->file, SHA256_BYTES);
        calls_fail(&(struct calls_fault){
            .only = "openat",
            .first = 1,
            .error = errors[ix],
        });
        assert_int_equal(key_load(&secret, home->dir, &diag), ERR_OK);
        assert_true(calls_end());
        assert_memory_not_equal(secret.bytes, "xxxxxxxx", 8);
        expect_file(home, &secret);
    }
}

#define WITH_HOME(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_is_that_of_other_releases),
        cmocka_unit_test(the_same_attempt_has_the_same_key),
        cmocka_unit_test(another_attempt_has_another_key),
        cmocka_unit_test(a_key_names_its_token),
        cmocka_unit_test(what_is_no_key_names_no_token),
        cmocka_unit_test(a_key_must_be_exact),
        WITH_HOME(a_secret_is_made_once),
        WITH_HOME(a_file_of_another_size_is_replaced),
        WITH_HOME(a_file_of_its_size_is_kept),
        WITH_HOME(half_a_new_file_is_overwritten),
        WITH_HOME(a_pipe_is_replaced),
        WITH_HOME(a_link_is_not_followed),
        WITH_HOME(a_link_for_the_new_file_is_an_error),
        WITH_HOME(a_missing_home_is_an_error),
        WITH_HOME(a_failure_leaves_no_half_secret),
        WITH_HOME(a_disk_that_takes_nothing_is_an_error),
        WITH_HOME(a_secret_that_cannot_be_read_is_kept),
        WITH_HOME(another_kind_of_file_is_replaced),
    };
    return cmocka_run_group_tests_name("key", tests, NULL, NULL);
}
