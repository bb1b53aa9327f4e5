/* SPDX-License-Identifier: MIT */
#include "git/names.h"

#include "base/mem.h"
#include "base/rng.h"
#include "base/strmap.h"
#include "git/proc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    IDS_MAX = 40000,
    ID_BYTES = 24,
    LENGTH_MAX = 4,   /* all ids up to this length, over the alphabet */
    RANDOM = 10000,   /* and longer ones */
    ASKED_EVERY = 97, /* one of so many is shown to git itself */
};

/* What plans permit, and what they do not. */
static const char alphabet[] = "aM0.-_#:/%+\\~";

/* Ids that a careless encoding confuses, or that git takes for its own. */
static const char *const odd[] = {
    ".lock",       ".making",    "..",          "../../etc", "/",
    "@",           "@{-1}",      "HEAD",        "a b",       "a%2Fb",
    "a%2fb",       "a*",         "a+merge",     "a.LOCK",    "a.b.lock",
    "a.lock.lock", "a.lock",     "a.lock/b",    "a.making",  "a.making.lock",
    "a.lockx",     "a?",         "a[",          "a\nb",      "a\t",
    "a\x7f",       "a^",         "a~1",         "main",      "main.lock",
    "%6Dain",      "MAIN",       "refs/heads/", "x",         "x.lock",
    "x.making",    "\xc3\xa9",   "\xff\xfe",    "-x",        "--",
    "+merge",      "+merge.lock"};

struct ids {
    char (*items)[ID_BYTES];
    size_t count;
};

static void add_id(struct ids *ids, struct strmap *known, const char *id)
{
    assert_true(ids->count < IDS_MAX && strlen(id) < ID_BYTES);
    char *at = ids->items[ids->count];
    memcpy(at, id, strlen(id) + 1);
    if (strmap_add(known, at, (uint32_t)ids->count) == STRMAP_NONE) {
        ids->count++;
    }
}

/* Every id of `len` characters. */
static void add_all(struct ids *ids, struct strmap *known, size_t len)
{
    char id[LENGTH_MAX + 1] = "";
    size_t digits[LENGTH_MAX] = {0};
    size_t base = strlen(alphabet);
    for (bool more = true; more;) {
        for (size_t ix = 0; ix < len; ix++) {
            id[ix] = alphabet[digits[ix]];
        }
        add_id(ids, known, id);
        more = false;
        for (size_t ix = 0; ix < len && !more; ix++) {
            digits[ix] = (digits[ix] + 1) % base;
            more = digits[ix] != 0;
        }
    }
}

static int make_ids(void **state)
{
    struct ids *ids = mem_zalloc(1, sizeof(*ids));
    ids->items = mem_zalloc(IDS_MAX, sizeof(ids->items[0]));
    struct strmap known = {0};
    for (size_t ix = 0; ix < ARRAY_COUNT(odd); ix++) {
        add_id(ids, &known, odd[ix]);
    }
    for (size_t len = 1; len < LENGTH_MAX; len++) {
        add_all(ids, &known, len);
    }
    struct rng rng;
    rng_init(&rng, 1);
    for (size_t n = 0; n < RANDOM; n++) {
        char id[ID_BYTES] = "";
        size_t len = LENGTH_MAX + rng_below(&rng, ID_BYTES - LENGTH_MAX - 1);
        for (size_t ix = 0; ix < len; ix++) {
            id[ix] = alphabet[rng_below(&rng, (uint32_t)strlen(alphabet))];
        }
        add_id(ids, &known, id);
    }
    strmap_release(&known);
    *state = ids;
    return 0;
}

static int free_ids(void **state)
{
    struct ids *ids = *state;
    mem_free(ids->items);
    mem_free(ids);
    return 0;
}

static bool has_end(const char *text, const char *end)
{
    size_t len = strlen(text);
    return len >= strlen(end) && strcmp(text + len - strlen(end), end) == 0;
}

static void a_component_is_one_and_harmless(void **state)
{
    const struct ids *ids = *state;
    for (size_t ix = 0; ix < ids->count; ix++) {
        struct strbuf text = {0};
        names_add(&text, ids->items[ix]);
        const char *name = strbuf_text(&text);
        size_t plain = strspn(name,
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "abcdefghijklmnopqrstuvwxyz0123456789-_#%.");
        assert_int_equal(plain, text.len);
        assert_true(text.len > 0 && name[0] != '-' && name[0] != '.');
        assert_null(strstr(name, ".."));
        assert_false(has_end(name, "."));
        assert_false(has_end(name, ".lock"));
        assert_false(has_end(name, ".making"));
        strbuf_release(&text);
    }
}

/* Require that a text is new; the map takes a copy. */
static void take_new(struct strmap *known, char **copies, const char *text)
{
    uint32_t ix = (uint32_t)known->count;
    copies[ix] = mem_strndup(text, strlen(text));
    uint32_t was = strmap_add(known, copies[ix], ix);
    if (was != STRMAP_NONE) {
        fail_msg("\"%s\" is there twice", text);
    }
}

static void release_all(struct strmap *known, char **copies)
{
    for (size_t ix = 0; ix < known->count; ix++) {
        mem_free(copies[ix]);
    }
    mem_free(copies);
    strmap_release(known);
}

static void different_ids_have_different_branches(void **state)
{
    const struct ids *ids = *state;
    struct strmap known = {0};
    char **copies = mem_zalloc(2 * ids->count + 2, sizeof(copies[0]));
    static const char *const runs[] = {"r", "r/main"};
    for (size_t run = 0; run < ARRAY_COUNT(runs); run++) {
        struct strbuf text = {0};
        names_add_branch(&text, runs[run], NULL, NULL);
        take_new(&known, copies, strbuf_text(&text));
        for (size_t ix = 0; ix < ids->count; ix++) {
            strbuf_clear(&text);
            names_add_branch(&text, runs[run], NULL, ids->items[ix]);
            take_new(&known, copies, strbuf_text(&text));
        }
        strbuf_release(&text);
    }
    release_all(&known, copies);
}

/* Branches of repos that are one repository, and of a run without: git allows
 * no name that is a directory of another. */
static void entries_have_branches_of_their_own(void **state)
{
    (void)state;
    static const char *const entries[] = {"main",
                                          "dev",
                                          "a/b",
                                          "groups",
                                          "owner"};
    static const char *const groups[] = {"main", "dev", "owner", "groups"};
    struct names names[ARRAY_COUNT(entries) * ARRAY_COUNT(groups)];
    size_t count = 0;
    for (size_t ix = 0; ix < ARRAY_COUNT(entries); ix++) {
        for (size_t at = 0; at < ARRAY_COUNT(groups); at++) {
            names_init(&names[count++], "r", entries[ix], groups[at]);
        }
    }
    for (size_t a = 0; a < count; a++) {
        assert_string_equal(names[a].above, "refs/sluice/r/owner");
        for (size_t b = 0; b < count; b++) {
            bool same_entry =
                a / ARRAY_COUNT(groups) == b / ARRAY_COUNT(groups);
            size_t len = strlen(names[a].branch);
            assert_true(strcmp(names[a].agent, names[b].branch) != 0);
            assert_true((strcmp(names[a].agent, names[b].agent) == 0) ==
                        same_entry);
            assert_true((strcmp(names[a].owner, names[b].owner) == 0) ==
                        same_entry);
            assert_true((strcmp(names[a].branch, names[b].branch) == 0) ==
                        (a == b));
            assert_false(strncmp(names[a].branch, names[b].branch, len) == 0 &&
                         names[b].branch[len] == '/');
            assert_true((strcmp(names[a].kept, names[b].kept) == 0) ==
                        (a == b));
        }
    }
    assert_string_equal(names[0].agent, "refs/heads/sluice/r/main/main");
    assert_string_equal(names[1].branch, "refs/heads/sluice/r/main/dev");
    assert_string_equal(names[8].owner, "refs/sluice/r/a%2Fb/owner");
    assert_string_equal(names[8].kept, "refs/sluice/r/a%2Fb/groups/main/kept");
    for (size_t ix = 0; ix < count; ix++) {
        names_release(&names[ix]);
    }
}

static size_t slashes_in(const char *text)
{
    size_t count = 0;
    for (; *text != '\0'; text++) {
        count += *text == '/' ? 1 : 0;
    }
    return count;
}

static void worktrees_and_what_is_beside_them_differ(void **state)
{
    const struct ids *ids = *state;
    static const char *const ends[] = {"", ".lock", ".making"};
    static const char begin[] = "/s/worktrees/";
    struct strmap known = {0};
    char **copies = mem_zalloc(3 * ids->count + 3, sizeof(copies[0]));
    for (size_t ix = 0; ix <= ids->count; ix++) {
        const char *group = ix < ids->count ? ids->items[ix] : NULL;
        for (size_t end = 0; end < ARRAY_COUNT(ends); end++) {
            struct strbuf text = {0};
            names_add_worktree(&text, "/s", "..", "../..", group);
            assert_int_equal(strncmp(text.text, begin, strlen(begin)), 0);
            assert_int_equal(slashes_in(text.text), 5);
            assert_null(strstr(text.text, "/../"));
            strbuf_adds(&text, ends[end]);
            take_new(&known, copies, strbuf_text(&text));
            strbuf_release(&text);
        }
    }
    release_all(&known, copies);
}

static void different_ids_have_different_refs(void **state)
{
    const struct ids *ids = *state;
    struct strmap known = {0};
    char **copies = mem_zalloc(3 * ids->count + 3, sizeof(copies[0]));
    for (size_t ix = 0; ix < ids->count; ix++) {
        struct names names;
        names_init(&names, "r", NULL, ids->items[ix]);
        if (ix == 0) {
            take_new(&known, copies, names.owner);
            take_new(&known, copies, names.fence);
            take_new(&known, copies, names.agent);
        }
        take_new(&known, copies, names.branch);
        take_new(&known, copies, names.kept);
        take_new(&known, copies, names.passed);
        names_release(&names);
    }
    release_all(&known, copies);
}

static bool git_accepts(const char *ref)
{
    const char *const argv[] = {"git", "check-ref-format", ref, NULL};
    struct proc proc = {
        .argv = argv,
        .env = (const char *const *)environ,
        .folder = "/",
    };
    struct proc_end end;
    assert_int_equal(proc_run(&proc, &end, NULL), ERR_OK);
    return end.code == 0;
}

static void git_accepts_them(void **state)
{
    const struct ids *ids = *state;
    assert_false(git_accepts("refs/heads/a.lock"));
    for (size_t ix = 0; ix < ids->count;
         ix += ix < ARRAY_COUNT(odd) ? 1 : ASKED_EVERY) {
        struct names names;
        names_init(&names, ids->items[ix], NULL, ids->items[ix]);
        if (!git_accepts(names.branch) || !git_accepts(names.kept) ||
            !git_accepts(names.agent) || !git_accepts(names.owner)) {
            fail_msg("git does not accept %s", names.branch);
        }
        names_release(&names);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_component_is_one_and_harmless),
        cmocka_unit_test(different_ids_have_different_branches),
        cmocka_unit_test(entries_have_branches_of_their_own),
        cmocka_unit_test(worktrees_and_what_is_beside_them_differ),
        cmocka_unit_test(different_ids_have_different_refs),
        cmocka_unit_test(git_accepts_them),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("git_names", tests, make_ids, free_ids);
}
