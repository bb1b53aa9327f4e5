/* SPDX-License-Identifier: MIT */
/* The arguments of bwrap, and the variables that reach a confined session. */
#include "base/macros.h"
#include "exec/sandbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void
add(struct sandbox *sandbox, enum sandbox_kind kind, const char *path)
{
    sandbox_add(sandbox,
                &(struct sandbox_mount){
                    .kind = kind,
                    .path = path,
                    .target = kind == SANDBOX_LINK ? "target" : NULL,
                    .fd = 7,
                });
}

/* Require the arguments between the fixed ones. */
static void
expect(struct sandbox *sandbox, const char *const *wanted, uint32_t count)
{
    struct sandbox_words words = {0};
    sandbox_add_arguments(sandbox, &words, "/here", true, false);
    uint32_t first = 0;
    while (first < words.count && strcmp(words.items[first], "/dev") != 0) {
        first++;
    }
    first++;
    assert_int_equal(words.count, first + count + 2);
    for (uint32_t ix = 0; ix < count; ix++) {
        assert_string_equal(words.items[first + ix], wanted[ix]);
    }
    assert_string_equal(words.items[words.count - 2], "--chdir");
    assert_string_equal(words.items[words.count - 1], "/here");
    assert_null(words.items[words.count]);
    sandbox_release_words(&words);
    sandbox_release(sandbox);
}

#define EXPECT(sandbox, ...)                                                   \
    expect((sandbox),                                                          \
           (const char *const[]){__VA_ARGS__},                                 \
           ARRAY_COUNT(((const char *const[]){__VA_ARGS__})))

static void a_directory_comes_before_those_inside_it(void **state)
{
    (void)state;
    struct sandbox sandbox = {0};
    add(&sandbox, SANDBOX_READ, "/a/b/c");
    add(&sandbox, SANDBOX_WRITE, "/a");
    add(&sandbox, SANDBOX_EMPTY, "/a/b");
    add(&sandbox, SANDBOX_BLANK, "/a-b");
    EXPECT(&sandbox,
           "--bind",
           "/a",
           "/a",
           "--ro-bind",
           "/dev/null",
           "/a-b",
           "--tmpfs",
           "/a/b",
           "--ro-bind",
           "/a/b/c",
           "/a/b/c");
}

static void of_two_for_one_path_the_wider_wins(void **state)
{
    (void)state;
    struct sandbox sandbox = {0};
    add(&sandbox, SANDBOX_WRITE, "/a");
    add(&sandbox, SANDBOX_COVER, "/a");
    add(&sandbox, SANDBOX_EMPTY, "/b");
    add(&sandbox, SANDBOX_READ, "/b");
    EXPECT(&sandbox, "--bind", "/a", "/a", "--ro-bind", "/b", "/b");
}

static void a_cover_is_needed_only_below_what_is_shown(void **state)
{
    (void)state;
    struct sandbox sandbox = {0};
    add(&sandbox, SANDBOX_COVER, "/x/store");
    add(&sandbox, SANDBOX_EMPTY, "/y");
    add(&sandbox, SANDBOX_COVER, "/y/store");
    add(&sandbox, SANDBOX_WRITE, "/z");
    add(&sandbox, SANDBOX_COVER, "/z/store");
    EXPECT(&sandbox,
           "--tmpfs",
           "/y",
           "--bind",
           "/z",
           "/z",
           "--tmpfs",
           "/z/store");
}

static void
links_and_copies_are_made_only_in_directories_of_its_own(void **state)
{
    (void)state;
    struct sandbox sandbox = {0};
    add(&sandbox, SANDBOX_READ, "/usr");
    add(&sandbox, SANDBOX_LINK, "/usr/l");
    add(&sandbox, SANDBOX_COPY, "/usr/c");
    add(&sandbox, SANDBOX_EMPTY, "/own");
    add(&sandbox, SANDBOX_LINK, "/own/l");
    add(&sandbox, SANDBOX_COPY, "/own/c");
    EXPECT(&sandbox,
           "--tmpfs",
           "/own",
           "--perms",
           "0600",
           "--file",
           "7",
           "/own/c",
           "--symlink",
           "target",
           "/own/l",
           "--ro-bind",
           "/usr",
           "/usr");
}

static void the_deepest_mount_decides(void **state)
{
    (void)state;
    struct sandbox sandbox = {0};
    add(&sandbox, SANDBOX_READ, "/a");
    add(&sandbox, SANDBOX_EMPTY, "/a/b");
    assert_true(sandbox_shows(&sandbox, "/a"));
    assert_true(sandbox_shows(&sandbox, "/a/bc"));
    assert_false(sandbox_shows(&sandbox, "/a/b"));
    assert_false(sandbox_shows(&sandbox, "/a/b/c"));
    assert_false(sandbox_shows(&sandbox, "/ab"));
    assert_null(sandbox_over(&sandbox, "/ab"));
    assert_true(sandbox_is_inside("/a", "/"));
    sandbox_release(&sandbox);
}

static bool has(const struct sandbox_words *words, const char *word)
{
    bool found = false;
    for (uint32_t ix = 0; ix < words->count && !found; ix++) {
        found = strcmp(words->items[ix], word) == 0;
    }
    return found;
}

static void the_network_is_cut_off_unless_it_is_allowed(void **state)
{
    (void)state;
    for (int network = 0; network < 2; network++) {
        struct sandbox sandbox = {0};
        struct sandbox_words words = {0};
        sandbox_add_arguments(&sandbox,
                              &words,
                              "/",
                              network == 1,
                              network == 0);
        assert_int_equal(has(&words, "--unshare-net"), network == 0);
        assert_int_equal(has(&words, "--remount-ro"), network == 0);
        assert_true(has(&words, "--unshare-pid"));
        assert_true(has(&words, "--die-with-parent"));
        sandbox_release_words(&words);
        sandbox_release(&sandbox);
    }
}

static void only_plain_and_named_variables_are_kept(void **state)
{
    (void)state;
    static const char *const names[] = {"TOKEN", "OPENAI_*"};
    static const char *const kept[] = {
        "HOME=/h",
        "LC_ALL=C",
        "OPENAI_API_KEY=k",
        "PATH=",
        "SLUICE_TASK=a",
        "TOKEN=t",
        "TOKEN",
    };
    static const char *const dropped[] = {
        "AWS_KEY=a",
        "HOMES=/h",
        "LD_PRELOAD=x",
        "MY_TOKEN=t",
        "OPENAI=x",
        "SSH_AUTH_SOCK=/s",
        "TOKEN2=t",
        "TOK=t",
        "XLC_ALL=C",
        "=x",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(kept); ix++) {
        assert_true(sandbox_keeps(kept[ix], names, ARRAY_COUNT(names)));
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(dropped); ix++) {
        assert_false(sandbox_keeps(dropped[ix], names, ARRAY_COUNT(names)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cover_is_needed_only_below_what_is_shown),
        cmocka_unit_test(a_directory_comes_before_those_inside_it),
        cmocka_unit_test(
            links_and_copies_are_made_only_in_directories_of_its_own),
        cmocka_unit_test(of_two_for_one_path_the_wider_wins),
        cmocka_unit_test(only_plain_and_named_variables_are_kept),
        cmocka_unit_test(the_deepest_mount_decides),
        cmocka_unit_test(the_network_is_cut_off_unless_it_is_allowed),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("sandbox", tests, NULL, NULL);
}
