/* SPDX-License-Identifier: MIT */
/* Which attempts may move refs, in a real repository. */
#include "git/fence.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FENCE "refs/sluice/fence/a"
#define OTHER "refs/sluice/fence/b"
#define MOVED "refs/sluice/x"

struct place {
    char folder[64];
    struct git *git;
};

static int set_up(void **state)
{
    static struct place place;
    struct diag diag = {0};
    (void)snprintf(place.folder,
                   sizeof(place.folder),
                   "/tmp/sluice-fence-XXXXXX");
    if (mkdtemp(place.folder) == NULL) {
        return -1;
    }
    struct git *maker = git_prepare(place.folder);
    struct strbuf output = {0};
    struct git_call init = {
        .args = PROC_ARGS("init", "--quiet", "--bare", "."),
        .output = &output,
    };
    enum err err = git_call(maker, &init, NULL, &diag);
    strbuf_release(&output);
    git_close(maker);
    if (err == ERR_OK) {
        err = git_open(&place.git, place.folder, &diag);
    }
    if (err != ERR_OK) {
        print_error("%s\n", diag.text);
        return -1;
    }
    *state = &place;
    return 0;
}

static int remove_one(const char *path,
                      const struct stat *status,
                      int type,
                      struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

static int tear_down(void **state)
{
    struct place *place = *state;
    git_close(place->git);
    return nftw(place->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Return the blob that a ref names. */
static struct git_id target(const struct place *place, const char *ref)
{
    struct diag diag = {0};
    struct git_ref found = {.name = ref};
    if (git_read_refs(place->git, &found, 1, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    return found.id;
}

/* Require that a fence has this content; "": that it does not exist. */
static void check(const struct place *place, const char *ref, const char *text)
{
    struct diag diag = {0};
    struct strbuf found = {0};
    struct git_id id = target(place, ref);
    if (git_read_blob(place->git, &id, &found, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    assert_string_equal(strbuf_text(&found), text);
    strbuf_release(&found);
}

/* Let a ref name a blob with this text, whatever it named. */
static void set(const struct place *place, const char *ref, const char *text)
{
    struct diag diag = {0};
    struct git_id id;
    struct strbuf line = {0};
    enum err err = git_put_blob(place->git, text, &id, &diag);
    if (err == ERR_OK) {
        strbuf_addf(&line, "update %s %s\n", ref, id.text);
        err =
            git_transact(place->git, strbuf_text(&line), false, "test", &diag);
    }
    strbuf_release(&line);
    if (err != ERR_OK) {
        fail_msg("%s", diag.text);
    }
}

static enum err change(const struct place *place,
                       struct fence fence,
                       const char *lines,
                       struct diag *diag)
{
    return fence_change(place->git, &fence, 1, lines, false, "test", diag);
}

/* Require that a fence with one text, if any, gets another. */
static void becomes(const struct place *place,
                    const char *before,
                    struct fence fence,
                    const char *after)
{
    struct diag diag = {0};
    if (before != NULL) {
        set(place, FENCE, before);
    }
    fence.ref = FENCE;
    if (change(place, fence, "", &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    check(place, FENCE, after);
}

/* Require that an attempt is superseded by this token, and changes nothing. */
static void refuses(const struct place *place,
                    const char *before,
                    struct fence fence,
                    unsigned by)
{
    struct diag diag = {0};
    char expected[128];
    set(place, FENCE, before);
    fence.ref = FENCE;
    assert_int_equal(change(place, fence, "", &diag), ERR_DENIED);
    (void)snprintf(expected,
                   sizeof(expected),
                   "this attempt (token %u) is superseded by the attempt with"
                   " token %u",
                   (unsigned)fence.token,
                   by);
    assert_string_equal(diag.text, expected);
    check(place, FENCE, before);
}

static struct fence alone(uint64_t token)
{
    return (struct fence){.task = "", .token = token, .alone = true};
}

static struct fence shared(uint64_t token, const char *task)
{
    return (struct fence){.task = task, .token = token};
}

static struct fence takes(struct fence fence)
{
    fence.take = true;
    return fence;
}

static struct fence opened(struct fence fence)
{
    fence.open = true;
    return fence;
}

static void an_attempt_takes_a_fence_alone(void **state)
{
    const struct place *place = *state;
    becomes(place, NULL, takes(alone(7)), "7 1\n");
    becomes(place, NULL, takes(alone(7)), "7 2\n"); /* again, after a crash */
    becomes(place, NULL, takes(alone(9)), "9 3\n");
    becomes(place, NULL, alone(9), "9 4\n");
    becomes(place, "9 4\n3 a\n8 b\n", takes(alone(10)), "10 5\n");
}

static void others_share_a_fence(void **state)
{
    const struct place *place = *state;
    becomes(place, NULL, takes(shared(3, "a")), "0 1\n3 a\n");
    becomes(place, NULL, takes(shared(5, "ab")), "0 2\n3 a\n5 ab\n");
    becomes(place, NULL, shared(3, "a"), "0 3\n5 ab\n3 a\n");
    becomes(place, NULL, takes(shared(6, "a")), "0 4\n5 ab\n6 a\n");
    becomes(place, "4 9\n", takes(shared(4, "a")), "4 10\n4 a\n");
}

static void what_was_superseded_changes_nothing(void **state)
{
    const struct place *place = *state;
    refuses(place, "8 1\n", takes(alone(7)), 8);
    refuses(place, "8 1\n", takes(shared(7, "a")), 8);
    refuses(place, "1 1\n8 a\n", takes(shared(7, "a")), 8);
    refuses(place, "8 1\n", alone(7), 8);
    refuses(place, "8 1\n", shared(7, "a"), 8);
    refuses(place, "1 1\n8 a\n", shared(7, "a"), 8);
    refuses(place, "8 1\n7 a\n", shared(7, "a"), 8);
    /* What was never taken cannot be stepped. */
    refuses(place, "6 1\n", alone(7), 6);
    refuses(place, "2 1\n6 a\n", shared(7, "a"), 6);
    refuses(place, "2 1\n7 b\n", shared(7, "a"), 2);
}

static void an_open_fence_supersedes_nobody(void **state)
{
    const struct place *place = *state;
    becomes(place, "8 1\n", opened(takes(alone(7))), "8 2\n");
    becomes(place, "6 1\n", opened(takes(alone(7))), "7 2\n");
    becomes(place, "8 1\n9 b\n", opened(shared(7, "a")), "8 2\n9 b\n7 a\n");
}

static void old_and_odd_texts_are_read(void **state)
{
    const struct place *place = *state;
    becomes(place, "7\n", takes(alone(7)), "7 1\n"); /* an earlier version */
    becomes(place, "7", takes(shared(7, "a")), "7 1\n7 a\n");
    becomes(place, "", takes(alone(7)), "7 1\n");
    becomes(place, "3 1\n5 b", takes(shared(4, "a")), "3 2\n5 b\n4 a\n");
    becomes(place, "3 1\n5 b c\n", takes(shared(6, "b c")), "3 2\n6 b c\n");
    becomes(place, "3 1\n5\n", takes(shared(6, "5")), "3 2\n5\n6 5\n");
}

static void what_is_no_blob_is_no_fence(void **state)
{
    const struct place *place = *state;
    struct diag diag = {0};
    struct strbuf output = {0};
    struct git_call make = {
        .args = PROC_ARGS("mktree"),
        .input = "",
        .output = &output,
    };
    struct git_id id;
    assert_int_equal(git_call(place->git, &make, NULL, &diag), ERR_OK);
    assert_int_equal(git_first_id(&output, &id, &diag), ERR_OK);
    strbuf_clear(&output);
    strbuf_addf(&output, "update %s %s\n", FENCE, id.text);
    assert_int_equal(
        git_transact(place->git, strbuf_text(&output), false, "test", &diag),
        ERR_OK);
    struct fence fence = takes(alone(7));
    fence.ref = FENCE;
    assert_int_equal(change(place, fence, "", &diag), ERR_CONFLICT);
    assert_string_equal(diag.text, FENCE " is no fence");
    struct git_id now = target(place, FENCE);
    assert_string_equal(now.text, id.text);
    strbuf_release(&output);
}

/* Change two fences and a branch, whose present value is given. */
static enum err move(const struct place *place,
                     uint64_t token,
                     const char *to,
                     const char *from,
                     struct diag *diag)
{
    struct fence fences[] = {takes(alone(token)), takes(shared(token, "a"))};
    fences[0].ref = FENCE;
    fences[1].ref = OTHER;
    struct strbuf line = {0};
    strbuf_addf(&line, "update %s %s %s\n", MOVED, to, from);
    enum err err = fence_change(place->git,
                                fences,
                                2,
                                strbuf_text(&line),
                                false,
                                "test",
                                diag);
    strbuf_release(&line);
    assert_null(fences[0].text);
    assert_null(fences[1].text);
    return err;
}

static void refs_move_with_all_fences_or_not(void **state)
{
    const struct place *place = *state;
    struct diag diag = {0};
    set(place, MOVED, "one");
    struct git_id one = target(place, MOVED);
    set(place, MOVED, "two");
    struct git_id two = target(place, MOVED);

    assert_int_equal(move(place, 5, two.text, one.text, &diag), ERR_CONFLICT);
    check(place, FENCE, "");
    check(place, OTHER, "");
    assert_int_equal(move(place, 5, one.text, two.text, &diag), ERR_OK);
    check(place, FENCE, "5 1\n");
    check(place, OTHER, "0 1\n5 a\n");
    check(place, MOVED, "one");

    set(place, OTHER, "0 1\n6 a\n");
    assert_int_equal(move(place, 5, two.text, one.text, &diag), ERR_DENIED);
    check(place, FENCE, "5 1\n");
    check(place, MOVED, "one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        CASE(an_attempt_takes_a_fence_alone),
        CASE(others_share_a_fence),
        CASE(what_was_superseded_changes_nothing),
        CASE(an_open_fence_supersedes_nobody),
        CASE(old_and_odd_texts_are_read),
        CASE(what_is_no_blob_is_no_fence),
        CASE(refs_move_with_all_fences_or_not),
#undef CASE
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
