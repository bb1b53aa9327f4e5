/* SPDX-License-Identifier: MIT */
/* Names of hubs and their mirrors, and what errors of git mean. */
#include "git/hub.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_name_has_no_password(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"https://host/a.git", "https://host/a.git"},
        {"https://token@host/a.git", "https://host/a.git"},
        {"https://user:pass@host:1/a", "https://host:1/a"},
        {"https://user:p@ss@host/a@b", "https://host/a@b"},
        {"http://user:pass@host", "http://host"},
        {"ssh://git@host:22/a.git", "ssh://git@host:22/a.git"},
        {"ssh://git:pass@host/a.git", "ssh://git@host/a.git"},
        {"ssh://:pass@host/a.git", "ssh://host/a.git"},
        {"git@host:a.git", "git@host:a.git"},
        {"host:a@b.git", "host:a@b.git"},
        {"file:///srv/a@b.git", "file:///srv/a@b.git"},
        {"/srv/git/a.git", "/srv/git/a.git"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct strbuf name = {0};
        hub_add_name(&name, cases[ix][0]);
        assert_string_equal(strbuf_text(&name), cases[ix][1]);
        strbuf_release(&name);
    }
}

/* Require the part of a mirror's path between the folder and the hash. */
static void check_mirror(const char *url, const char *expected)
{
    static const char folder[] = "/nowhere/mirrors/";
    struct strbuf path = {0};
    hub_add_mirror(&path, "/nowhere", url);
    const char *text = strbuf_text(&path);
    size_t len = strlen(folder) + strlen(expected);
    assert_int_equal(strncmp(text, folder, strlen(folder)), 0);
    assert_int_equal(strncmp(text + strlen(folder), expected, strlen(expected)),
                     0);
    assert_int_equal(text[len], '-');
    assert_int_equal(strspn(text + len + 1, "0123456789abcdef"), 16);
    assert_string_equal(text + len + 17, ".git");
    strbuf_release(&path);
}

static void a_mirror_has_the_last_component(void **state)
{
    (void)state;
    check_mirror("ssh://git@host/group/api.git", "api");
    check_mirror("https://host/group/api", "api");
    check_mirror("https://host/group/api.git/", "api");
    check_mirror("git@host:api.git", "api");
    check_mirror("/srv/git/a b.git", "a%20b");
    check_mirror("/srv/git/..", "%2E%2E");
    check_mirror("file:///srv/.git", ""); /* a name is not needed */
}

static void different_urls_have_different_mirrors(void **state)
{
    (void)state;
    struct strbuf a = {0};
    struct strbuf b = {0};
    hub_add_mirror(&a, "/nowhere", "ssh://one/api.git");
    hub_add_mirror(&b, "/nowhere", "ssh://two/api.git");
    assert_string_not_equal(strbuf_text(&a), strbuf_text(&b));
    strbuf_release(&a);
    strbuf_release(&b);
}

static void lasting_errors_are_told_from_others(void **state)
{
    (void)state;
    static const struct {
        const char *messages;
        enum err err;
        const char *line;
    } cases[] = {
        {"ssh: connect to host h port 22: Connection refused\n"
         "fatal: Could not read from remote repository.\n\n"
         "Please make sure you have the correct access rights\n"
         "and the repository exists.\n",
         ERR_UNAVAILABLE,
         "ssh: connect to host h port 22: Connection refused"},
        {"Warning: Permanently added 'h' to the list of known hosts.\n"
         "git@h: Permission denied (publickey).\n"
         "fatal: Could not read from remote repository.\n",
         ERR_DENIED,
         "git@h: Permission denied (publickey)."},
        {"ssh: Could not resolve hostname h: Name or service not known\n",
         ERR_UNAVAILABLE,
         "ssh: Could not resolve hostname h: Name or service not known"},
        {"remote: Repository not found.\n"
         "fatal: repository 'https://h/a/' not found\n",
         ERR_DENIED,
         "remote: Repository not found."},
        {"fatal: unable to access 'https://h/': The requested URL returned "
         "error: 503\n",
         ERR_UNAVAILABLE,
         "fatal: unable to access 'https://h/': The requested URL returned "
         "error: 503"},
        {"fatal: unable to access 'https://h/': The requested URL returned "
         "error: 403\n",
         ERR_DENIED,
         "fatal: unable to access 'https://h/': The requested URL returned "
         "error: 403"},
        {"fatal: could not read Username for 'https://h': terminal prompts "
         "disabled\n",
         ERR_DENIED,
         "fatal: could not read Username for 'https://h': terminal prompts "
         "disabled"},
        {"fatal: the remote end hung up unexpectedly\n",
         ERR_UNAVAILABLE,
         "fatal: the remote end hung up unexpectedly"},
        {"fatal: the receiving end does not support --atomic push\n",
         ERR_DENIED,
         "fatal: the receiving end does not support --atomic push"},
        {"fatal: '/srv/x' does not appear to be a git repository",
         ERR_DENIED,
         "fatal: '/srv/x' does not appear to be a git repository"},
        {"", ERR_UNAVAILABLE, "git says nothing"},
        {"\n\n", ERR_UNAVAILABLE, "git says nothing"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(cases); ix++) {
        struct diag diag = {0};
        struct strbuf text = {0};
        assert_int_equal(
            hub_judge("ssh://h", "fetch from", cases[ix].messages, &diag),
            cases[ix].err);
        strbuf_addf(&text,
                    "cannot fetch from the hub ssh://h: %s",
                    cases[ix].line);
        assert_string_equal(diag.text, strbuf_text(&text));
        strbuf_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_has_no_password),
        cmocka_unit_test(a_mirror_has_the_last_component),
        cmocka_unit_test(different_urls_have_different_mirrors),
        cmocka_unit_test(lasting_errors_are_told_from_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
