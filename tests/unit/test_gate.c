/* SPDX-License-Identifier: MIT */
#include "http/gate.h"

#include "base/macros.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define HEX16 "0123456789abcdef"
#define HEX48 HEX16 HEX16 HEX16
#define OPERATOR HEX48 "aaaaaaaaaaaaaaaa"
#define VIEWER HEX48 "bbbbbbbbbbbbbbbb"
#define OPERATOR_COOKIE HEX48 "cccccccccccccccc"
#define VIEWER_COOKIE HEX48 "dddddddddddddddd"
#define WRONG HEX48 "eeeeeeeeeeeeeeee"

#define HOST "127.0.0.1:8900"
#define OWN "http://" HOST

static struct gate make_gate(void)
{
    struct gate gate = {
        .tokens = {[GATE_VIEWER] = VIEWER, [GATE_OPERATOR] = OPERATOR},
        .cookies =
            {
                [GATE_VIEWER] = VIEWER_COOKIE,
                [GATE_OPERATOR] = OPERATOR_COOKIE,
            },
        .hosts = {HOST, "localhost:8900", "[::1]:8900", "sluice.example"},
        .host_count = 4,
    };
    return gate;
}

/* --- one fact at a time ------------------------------------------------- */

/* A value of a header, and how it counts. */
struct value {
    const char *text;
    enum {
        GOOD,
        BAD,
        VIEWS,    /* the secret of a viewer */
        OPERATES, /* the secret of an operator */
        ABSENT,   /* it counts as if it were not there */
    } kind;
};

static const struct value hosts[] = {
    {HOST, GOOD},
    {"localhost:8900", GOOD},
    {"LocalHost:8900", GOOD},
    {"[::1]:8900", GOOD},
    {"sluice.example", GOOD},
    {"SLUICE.EXAMPLE", GOOD},
    {NULL, BAD},
    {"", BAD},
    {"127.0.0.1", BAD},
    {"127.0.0.1:", BAD},
    {"127.0.0.1:80", BAD},
    {"127.0.0.1:890", BAD},
    {"127.0.0.1:89000", BAD},
    {"127.0.0.1:8901", BAD},
    {"127.0.0.1:08900", BAD},
    {"127.0.0.1:8900.evil.example", BAD},
    {"127.0.0.1:8900 ", BAD},
    {" 127.0.0.1:8900", BAD},
    {"127.0.0.1:8900, evil.example", BAD},
    {"127.0.0.1:8900/", BAD},
    {"user@127.0.0.1:8900", BAD},
    {"127.1:8900", BAD},
    {"0x7f000001:8900", BAD},
    {"2130706433:8900", BAD},
    {"localhost.:8900", BAD},
    {"::1:8900", BAD},
    {"[::0001]:8900", BAD},
    {"sluice.example:80", BAD},
    {"sluice.example.", BAD},
    {"x.sluice.example", BAD},
    {"evil.example", BAD},
    {"evil.example:8900", BAD},
    {"localhost:8900.evil.example:8900", BAD},
    {OWN, BAD},
};

static const struct value origins[] = {
    {NULL, ABSENT},
    {OWN, GOOD},
    {"http://localhost:8900", GOOD},
    {"HTTP://LOCALHOST:8900", GOOD},
    {"http://[::1]:8900", GOOD},
    {"https://127.0.0.1:8900", GOOD}, /* a proxy adds TLS */
    {"https://sluice.example", GOOD},
    {"", BAD},
    {"null", BAD},
    {"NULL", BAD},
    {"http://", BAD},
    {"http:", BAD},
    {"http", BAD},
    {HOST, BAD},
    {"//" HOST, BAD},
    {"http:/" HOST, BAD},
    {"ftp://" HOST, BAD},
    {"file://", BAD},
    {"file://" HOST, BAD},
    {"chrome-extension://" HOST, BAD},
    {"xhttp://" HOST, BAD},
    {" " OWN, BAD},
    {OWN " ", BAD},
    {OWN "/", BAD},
    {OWN "/x", BAD},
    {OWN ",null", BAD},
    {OWN " http://evil.example", BAD},
    {"http://127.0.0.1", BAD},
    {"http://127.0.0.1:8901", BAD},
    {"http://127.0.0.1:8900.evil.example", BAD},
    {"http://user@127.0.0.1:8900", BAD},
    {"http://localhost", BAD},
    {"http://localhost:3000", BAD},
    {"http://evil.example", BAD},
    {"http://evil.example:8900", BAD},
    {"https://sluice.example.evil.example", BAD},
    {"https://x.sluice.example", BAD},
    {"https://sluice.example:8443", BAD},
};

static const struct value sites[] = {
    {NULL, GOOD},
    {"same-origin", GOOD},
    {"none", GOOD},
    {"", BAD},
    {"same-site", BAD},
    {"cross-site", BAD},
    {"Same-Origin", BAD}, /* browsers do not write it so */
    {"same-origin ", BAD},
    {"same-origin, cross-site", BAD},
    {"None", BAD},
    {"null", BAD},
    {"x", BAD},
};

/* ABSENT: there is no token, so a cookie counts. */
static const struct value authorizations[] = {
    {NULL, ABSENT},
    {"", ABSENT},
    {"Bearer", ABSENT},
    {"Bearer\t" OPERATOR, ABSENT},
    {OPERATOR, ABSENT},
    {"Basic " OPERATOR, ABSENT},
    {"Digest Bearer " OPERATOR, ABSENT},
    {" Bearer " OPERATOR, ABSENT},
    {"Bearer " OPERATOR, OPERATES},
    {"bearer " OPERATOR, OPERATES},
    {"BEARER " OPERATOR, OPERATES},
    {"Bearer " VIEWER, VIEWS},
    {"bEARER " VIEWER, VIEWS},
    {"Bearer ", BAD},
    {"Bearer  " OPERATOR, BAD},
    {"Bearer " OPERATOR " ", BAD},
    {"Bearer " OPERATOR ",", BAD},
    {"Bearer " OPERATOR "0", BAD},
    {"Bearer \"" OPERATOR "\"", BAD},
    {"Bearer " OPERATOR " " VIEWER, BAD},
    {"Bearer " WRONG, BAD},
    {"Bearer " HEX48, BAD},
    {"Bearer " HEX48 "aaaaaaaaaaaaaaa", BAD},
    {"Bearer " HEX48 "AAAAAAAAAAAAAAAA", BAD},
    {"Bearer 0", BAD},
    {"Bearer null", BAD},
    {"Bearer undefined", BAD},
    /* A cookie is no token. */
    {"Bearer " OPERATOR_COOKIE, BAD},
    {"Bearer " VIEWER_COOKIE, BAD},
    {"Bearer sluice=" OPERATOR_COOKIE, BAD},
};

static const struct value cookies[] = {
    {NULL, BAD},
    {"", BAD},
    {";", BAD},
    {"; ; ;", BAD},
    {" ", BAD},
    {"sluice", BAD},
    {"sluice=", BAD},
    {"sluice=;", BAD},
    {"=" OPERATOR_COOKIE, BAD},
    {OPERATOR_COOKIE, BAD},
    {"sluice=" OPERATOR_COOKIE, OPERATES},
    {" sluice=" OPERATOR_COOKIE, OPERATES},
    {"a=b; sluice=" OPERATOR_COOKIE, OPERATES},
    {"a=b;sluice=" OPERATOR_COOKIE, OPERATES},
    {"sluice=" OPERATOR_COOKIE "; a=b", OPERATES},
    {"sluice=" OPERATOR_COOKIE ";", OPERATES},
    {"a=b; sluice=" OPERATOR_COOKIE "; c=d", OPERATES},
    {"sluice=" WRONG "; sluice=" OPERATOR_COOKIE, OPERATES},
    {"sluice=" OPERATOR_COOKIE "; sluice=" WRONG, OPERATES},
    {"sluice=" VIEWER_COOKIE "; sluice=" OPERATOR_COOKIE, OPERATES},
    {"sluice=" VIEWER_COOKIE, VIEWS},
    {"a; sluice=" VIEWER_COOKIE, VIEWS},
    {"Sluice=" OPERATOR_COOKIE, BAD},
    {"xsluice=" OPERATOR_COOKIE, BAD},
    {"sluicex=" OPERATOR_COOKIE, BAD},
    {"sluice =" OPERATOR_COOKIE, BAD},
    {"sluice= " OPERATOR_COOKIE, BAD},
    {"sluice=" OPERATOR_COOKIE " ", BAD},
    {"sluice=" OPERATOR_COOKIE ",a=b", BAD},
    {"sluice=\"" OPERATOR_COOKIE "\"", BAD},
    {"a=sluice=" OPERATOR_COOKIE, BAD},
    {"a=b, sluice=" OPERATOR_COOKIE, BAD},
    {"sluice=" WRONG, BAD},
    {"sluice=" HEX48, BAD},
    {"sluice=" OPERATOR_COOKIE "0", BAD},
    /* A token is no cookie. */
    {"sluice=" OPERATOR, BAD},
    {"sluice=" VIEWER, BAD},
};

static enum gate_role role_of_kind(const struct value *value)
{
    return value->kind == OPERATES ? GATE_OPERATOR
           : value->kind == VIEWS  ? GATE_VIEWER
                                   : GATE_NOBODY;
}

/* Return the status that the facts deserve, and who asks. */
static int
judge(bool changes, const struct value *const facts[5], enum gate_role *role)
{
    bool token = facts[3]->kind != ABSENT;
    *role = GATE_NOBODY;
    if (facts[0]->kind == BAD) {
        return 421;
    }
    if (facts[1]->kind == BAD || facts[2]->kind == BAD) {
        return 403;
    }
    *role = role_of_kind(token ? facts[3] : facts[4]);
    if (*role == GATE_NOBODY) {
        return 401;
    }
    bool may = !changes ||
               (*role == GATE_OPERATOR && (token || facts[1]->kind != ABSENT));
    return may ? 0 : 403;
}

/* Ask with host, origin, site, authorization and cookie. */
static void expect(bool changes, const struct value *const facts[5])
{
    struct gate gate = make_gate();
    struct gate_facts asked = {
        .changes = changes,
        .host = facts[0]->text,
        .origin = facts[1]->text,
        .site = facts[2]->text,
        .authorization = facts[3]->text,
        .cookie = facts[4]->text,
    };
    enum gate_role role;
    enum gate_role wanted_role;
    const char *text = NULL;
    int wanted = judge(changes, facts, &wanted_role);
    int status = gate_check(&gate, &asked, &role, &text);
    if (status != wanted || role != wanted_role) {
        fail_msg("%s, host %s, origin %s, site %s, token %s, cookie %s: %d as "
                 "%d, expected %d as %d",
                 changes ? "order" : "read",
                 asked.host,
                 asked.origin,
                 asked.site,
                 asked.authorization,
                 asked.cookie,
                 status,
                 (int)role,
                 wanted,
                 (int)wanted_role);
    }
    assert_non_null(text);
    assert_int_equal(text[0] == '\0', status == 0);
    assert_null(strstr(text, HEX16)); /* no secret */
}

/* Each value of each header, with the others good or missing. */
static void each_header_counts_as_it_should(void **state)
{
    (void)state;
    static const struct {
        const struct value *values;
        size_t count;
    } all[] = {
        {hosts, ARRAY_COUNT(hosts)},
        {origins, ARRAY_COUNT(origins)},
        {sites, ARRAY_COUNT(sites)},
        {authorizations, ARRAY_COUNT(authorizations)},
        {cookies, ARRAY_COUNT(cookies)},
    };
    static const struct value token = {"Bearer " OPERATOR, OPERATES};
    static const struct value cookie = {"sluice=" OPERATOR_COOKIE, OPERATES};
    for (size_t header = 0; header < ARRAY_COUNT(all); header++) {
        for (size_t ix = 0; ix < 8 * all[header].count; ix++) {
            const struct value *facts[5] = {
                &hosts[0],
                &origins[ix % 8 / 4],
                &sites[0],
                ix % 4 / 2 == 0 ? &authorizations[0] : &token,
                header == 3 ? &cookie : &cookies[0],
            };
            facts[header] = &all[header].values[ix / 8];
            expect(ix % 2 == 0, facts);
        }
    }
}

/* A few values of each kind, in all combinations. */
static void headers_together_count_as_they_should(void **state)
{
    (void)state;
    static const size_t some_hosts[] = {0, 3, 6, 11, 31};
    static const size_t some_origins[] = {0, 1, 6, 8, 31, 33};
    static const size_t some_sites[] = {0, 1, 2, 4, 5};
    static const size_t some_tokens[] = {0, 5, 8, 11, 13, 20, 27};
    static const size_t some_cookies[] = {0, 6, 10, 17, 20, 31, 35};
    size_t count = 2 * ARRAY_COUNT(some_hosts) * ARRAY_COUNT(some_origins) *
                   ARRAY_COUNT(some_sites) * ARRAY_COUNT(some_tokens) *
                   ARRAY_COUNT(some_cookies);
    for (size_t ix = 0; ix < count; ix++) {
        size_t left = ix / 2;
        const struct value *facts[5];
        facts[0] = &hosts[some_hosts[left % ARRAY_COUNT(some_hosts)]];
        left /= ARRAY_COUNT(some_hosts);
        facts[1] = &origins[some_origins[left % ARRAY_COUNT(some_origins)]];
        left /= ARRAY_COUNT(some_origins);
        facts[2] = &sites[some_sites[left % ARRAY_COUNT(some_sites)]];
        left /= ARRAY_COUNT(some_sites);
        facts[3] =
            &authorizations[some_tokens[left % ARRAY_COUNT(some_tokens)]];
        left /= ARRAY_COUNT(some_tokens);
        facts[4] = &cookies[some_cookies[left]];
        expect(ix % 2 == 0, facts);
    }
}

/* --- what matters, row by row ------------------------------------------- */

static void what_is_let_in_and_what_is_not(void **state)
{
    (void)state;
    static const char operator_[] = "Bearer " OPERATOR;
    static const char viewer[] = "Bearer " VIEWER;
    static const char cookie[] = "sluice=" OPERATOR_COOKIE;
    static const struct {
        const char *name;
        struct gate_facts facts;
        int status;
    } rows[] = {
        {"curl reads", {false, HOST, NULL, NULL, operator_, NULL}, 0},
        {"curl orders", {true, HOST, NULL, NULL, operator_, NULL}, 0},
        {"curl only looks", {false, HOST, NULL, NULL, viewer, NULL}, 0},
        {"a viewer orders", {true, HOST, NULL, NULL, viewer, NULL}, 403},
        {"the page reads", {false, HOST, NULL, "same-origin", NULL, cookie}, 0},
        {"the page orders", {true, HOST, OWN, "same-origin", NULL, cookie}, 0},
        {"an old browser orders", {true, HOST, OWN, NULL, NULL, cookie}, 0},
        {"a typed address", {false, HOST, NULL, "none", NULL, cookie}, 0},
        {"a page of a viewer orders",
         {true, HOST, OWN, "same-origin", NULL, "sluice=" VIEWER_COOKIE},
         403},
        {"a cookie and no Origin",
         {true, HOST, NULL, "same-origin", NULL, cookie},
         403},
        {"nothing", {false, NULL, NULL, NULL, NULL, NULL}, 421},
        {"no token", {false, HOST, NULL, NULL, NULL, NULL}, 401},
        {"an order without a token", {true, HOST, OWN, NULL, NULL, NULL}, 401},
        {"rebinding", {false, "evil.example", NULL, NULL, NULL, cookie}, 421},
        {"rebinding with a token",
         {true, "evil.example:8900", NULL, NULL, operator_, NULL},
         421},
        {"rebinding, with its Origin",
         {true, "evil.example", "http://evil.example", NULL, NULL, cookie},
         421},
        {"a form of another site",
         {true, HOST, "http://evil.example", "cross-site", NULL, cookie},
         403},
        {"the same, old browser",
         {true, HOST, "http://evil.example", NULL, NULL, cookie},
         403},
        {"a sandboxed frame",
         {true, HOST, "null", "cross-site", NULL, cookie},
         403},
        {"an image", {false, HOST, NULL, "cross-site", NULL, cookie}, 403},
        {"another port of this machine",
         {false, HOST, NULL, "same-site", NULL, cookie},
         403},
        {"the same, with an order",
         {true, HOST, "http://127.0.0.1:3000", "same-site", NULL, cookie},
         403},
        {"a token does not help a foreign page",
         {true, HOST, "http://evil.example", "cross-site", operator_, NULL},
         403},
        {"a wrong token is not made up for",
         {false, HOST, NULL, "same-origin", "Bearer " WRONG, cookie},
         401},
        {"nor is a viewer's",
         {true, HOST, OWN, "same-origin", viewer, cookie},
         403},
    };
    struct gate gate = make_gate();
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        enum gate_role role;
        const char *text;
        int status = gate_check(&gate, &rows[ix].facts, &role, &text);
        if (status != rows[ix].status) {
            fail_msg("%s: %d (%s)", rows[ix].name, status, text);
        }
    }
}

static void all_hosts_are_looked_at(void **state)
{
    (void)state;
    struct gate gate = make_gate();
    struct gate_facts facts = {
        .host = "last",
        .authorization = "Bearer " VIEWER,
    };
    enum gate_role role;
    const char *text;
    assert_int_equal(gate_check(&gate, &facts, &role, &text), 421);
    while (gate.host_count < GATE_HOSTS_MAX) {
        gate.hosts[gate.host_count++] = "other";
    }
    gate.hosts[GATE_HOSTS_MAX - 1] = "last";
    assert_int_equal(gate_check(&gate, &facts, &role, &text), 0);
    assert_int_equal(role, GATE_VIEWER);
    gate.host_count = 0;
    assert_int_equal(gate_check(&gate, &facts, &role, &text), 421);
}

static void a_unix_socket_needs_nothing(void **state)
{
    (void)state;
    static const struct gate_facts rows[] = {
        {.changes = false},
        {.changes = true},
        {.changes = true, .host = "evil.example"},
        {.changes = true, .authorization = "Bearer " WRONG},
        {true, "x", "null", "cross-site", "Bearer " VIEWER, "sluice=x"},
    };
    struct gate gate = {.open = true};
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        enum gate_role role = GATE_NOBODY;
        const char *text = NULL;
        assert_int_equal(gate_check(&gate, &rows[ix], &role, &text), 0);
        assert_int_equal(role, GATE_OPERATOR);
        assert_string_equal(text, "");
    }
}

/* A gate whose tokens were not loaded has none that could be guessed. */
static void without_tokens_nobody_gets_in(void **state)
{
    (void)state;
    static const struct gate_facts rows[] = {
        {.host = HOST},
        {.host = HOST, .authorization = "Bearer "},
        {.host = HOST, .cookie = "sluice="},
    };
    struct gate gate = {.hosts = {HOST}, .host_count = 1};
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        enum gate_role role;
        const char *text;
        assert_int_equal(gate_check(&gate, &rows[ix], &role, &text), 401);
        assert_int_equal(role, GATE_NOBODY);
    }
}

static void a_long_header_is_compared(void **state)
{
    (void)state;
    struct gate gate = make_gate();
    struct strbuf list = {0};
    enum gate_role role;
    const char *text;
    for (int ix = 0; ix < 1000; ix++) {
        strbuf_adds(&list, "sluice=" WRONG "; x=y; ");
    }
    struct gate_facts facts = {.host = HOST, .cookie = strbuf_text(&list)};
    assert_int_equal(gate_check(&gate, &facts, &role, &text), 401);
    strbuf_adds(&list, "sluice=" VIEWER_COOKIE);
    facts.cookie = strbuf_text(&list);
    assert_int_equal(gate_check(&gate, &facts, &role, &text), 0);
    assert_int_equal(role, GATE_VIEWER);
    facts.authorization = facts.cookie;
    facts.host = facts.cookie;
    assert_int_equal(gate_check(&gate, &facts, &role, &text), 421);
    strbuf_release(&list);
}

/* --- tokens ------------------------------------------------------------- */

enum { NAMES = 2 };
static const char *const names[NAMES] = {"http-token", "http-token-view"};

/* A home of its own for each case. */
struct home {
    char dir[40];
    char files[NAMES][64];
    char other[64];
};

static int set_up(void **state)
{
    static struct home home;
    (void)snprintf(home.dir, sizeof(home.dir), "/tmp/sluice-gate-XXXXXX");
    if (mkdtemp(home.dir) == NULL) {
        return -1;
    }
    for (size_t ix = 0; ix < NAMES; ix++) {
        (void)snprintf(home.files[ix],
                       sizeof(home.files[ix]),
                       "%s/%s",
                       home.dir,
                       names[ix]);
    }
    (void)snprintf(home.other, sizeof(home.other), "%s/other", home.dir);
    *state = &home;
    return 0;
}

static int tear_down(void **state)
{
    const struct home *home = *state;
    for (size_t ix = 0; ix < NAMES; ix++) {
        if (unlink(home->files[ix]) != 0 && errno == EISDIR) {
            (void)rmdir(home->files[ix]);
        }
    }
    (void)unlink(home->other);
    return rmdir(home->dir);
}

static struct gate load(const struct home *home)
{
    struct gate gate = {0};
    struct diag diag = {0};
    if (gate_load(&gate, home->dir, &diag) != ERR_OK) {
        fail_msg("%s", diag.text);
    }
    return gate;
}

static void put(const char *path, const char *bytes, size_t len, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
}

static size_t read_file(const char *path, char out[256])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t len = read(fd, out, 255);
    assert_true(len >= 0);
    assert_int_equal(close(fd), 0);
    out[len] = '\0';
    return (size_t)len;
}

/* Require an error that names a file, and that the file stays as it is. */
static void
expect_error(const struct home *home, enum err wanted, const char *path)
{
    struct gate gate = {0};
    struct diag diag = {0};
    struct stat before = {0};
    struct stat after = {0};
    (void)lstat(path, &before);
    enum err err = gate_load(&gate, home->dir, &diag);
    if (err != wanted) {
        fail_msg("%s: %s (%s)", path, err_name(err), diag.text);
    }
    assert_non_null(strstr(diag.text, path));
    assert_null(strstr(diag.text, HEX16));
    assert_int_equal(lstat(path, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    assert_int_equal(before.st_mode, after.st_mode);
    assert_int_equal(before.st_size, after.st_size);
}

static void tokens_are_made_for_their_owner_alone(void **state)
{
    const struct home *home = *state;
    static const mode_t masks[] = {0, 022, 077};
    for (size_t turn = 0; turn < ARRAY_COUNT(masks); turn++) {
        mode_t mask = umask(masks[turn]);
        struct gate gate = load(home);
        (void)umask(mask);
        static const enum gate_role roles[] = {GATE_OPERATOR, GATE_VIEWER};
        for (size_t ix = 0; ix < NAMES; ix++) {
            struct stat stat;
            char text[256];
            assert_int_equal(lstat(home->files[ix], &stat), 0);
            assert_true(S_ISREG(stat.st_mode));
            assert_int_equal(stat.st_mode & 07777, 0600);
            assert_int_equal(read_file(home->files[ix], text),
                             GATE_TOKEN_BYTES - 1);
            assert_int_equal(strspn(text, HEX16), GATE_TOKEN_BYTES - 1);
            assert_string_equal(gate.tokens[roles[ix]], text);
            assert_int_equal(unlink(home->files[ix]), 0);
        }
    }
}

static void secrets_differ(void **state)
{
    const struct home *home = *state;
    struct gate gate = load(home);
    const char *all[] = {
        gate.tokens[GATE_VIEWER],
        gate.tokens[GATE_OPERATOR],
        gate.cookies[GATE_VIEWER],
        gate.cookies[GATE_OPERATOR],
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(all); ix++) {
        assert_int_equal(strlen(all[ix]), GATE_TOKEN_BYTES - 1);
        for (size_t other = 0; other < ix; other++) {
            assert_string_not_equal(all[ix], all[other]);
        }
    }
    assert_string_equal(gate.tokens[GATE_NOBODY], "");
    assert_string_equal(gate.cookies[GATE_NOBODY], "");
}

/* A page outlives its server. */
static void tokens_and_cookies_are_kept(void **state)
{
    const struct home *home = *state;
    struct gate first = load(home);
    struct gate second = load(home);
    assert_memory_equal(first.tokens, second.tokens, sizeof(first.tokens));
    assert_memory_equal(first.cookies, second.cookies, sizeof(first.cookies));
    /* One that was removed is made anew, the other one stays. */
    assert_int_equal(unlink(home->files[0]), 0);
    second = load(home);
    assert_string_not_equal(first.tokens[GATE_OPERATOR],
                            second.tokens[GATE_OPERATOR]);
    assert_string_not_equal(first.cookies[GATE_OPERATOR],
                            second.cookies[GATE_OPERATOR]);
    assert_string_equal(first.tokens[GATE_VIEWER], second.tokens[GATE_VIEWER]);
    assert_string_equal(first.cookies[GATE_VIEWER],
                        second.cookies[GATE_VIEWER]);
}

/* Computed by Python's hashlib and hmac: a page that was opened with another
 * release keeps its cookie. */
static void a_cookie_is_that_of_other_releases(void **state)
{
    const struct home *home = *state;
    put(home->files[0], OPERATOR, strlen(OPERATOR), 0600);
    struct gate gate = load(home);
    assert_string_equal(
        gate.cookies[GATE_OPERATOR],
        "e81413ec865aaa4267aa5daa545171d8a377b159d201a52950e8e53eaf1808f8");
}

static void a_token_may_be_written_by_hand(void **state)
{
    const struct home *home = *state;
    static const mode_t modes[] = {0400, 0600, 0700};
    for (size_t ix = 0; ix < ARRAY_COUNT(modes); ix++) {
        put(home->files[0], OPERATOR, strlen(OPERATOR), modes[ix]);
        put(home->files[1], VIEWER "\n", strlen(VIEWER) + 1, modes[ix]);
        struct gate gate = load(home);
        assert_string_equal(gate.tokens[GATE_OPERATOR], OPERATOR);
        assert_string_equal(gate.tokens[GATE_VIEWER], VIEWER);
    }
}

static void a_token_that_others_may_read_is_refused(void **state)
{
    const struct home *home = *state;
    for (size_t ix = 0; ix < NAMES; ix++) {
        for (unsigned bits = 1; bits <= 077; bits++) {
            put(home->files[ix], OPERATOR, strlen(OPERATOR), 0600 | bits);
            expect_error(home, ERR_INVALID, home->files[ix]);
        }
        assert_int_equal(unlink(home->files[ix]), 0);
    }
}

static void what_is_no_token_is_refused(void **state)
{
    const struct home *home = *state;
    static const struct {
        const char *text;
        size_t len; /* 0: that of the text */
    } rows[] = {
        {"", 0},
        {"\n", 0},
        {"0", 0},
        {HEX48 "aaaaaaaaaaaaaaa", 0},
        {HEX48 "aaaaaaaaaaaaaaa\n", 0},
        {OPERATOR "0", 0},
        {OPERATOR OPERATOR, 0},
        {OPERATOR " ", 0},
        {OPERATOR "\r", 0},
        {OPERATOR "\r\n", 0},
        {" " OPERATOR, 0},
        {"\n" OPERATOR, 0},
        {"Bearer " OPERATOR, 0},
        {HEX48 "AAAAAAAAAAAAAAAA", 0},
        {HEX48 "gggggggggggggggg", 0},
        {HEX48 "aaaaaaa-aaaaaaaa", 0},
        {HEX48 "aaaaaaa\0aaaaaaaa", 64},
        {"\xef\xbb\xbf" OPERATOR, 0},
    };
    for (size_t ix = 0; ix < NAMES; ix++) {
        for (size_t row = 0; row < ARRAY_COUNT(rows); row++) {
            size_t len =
                rows[row].len != 0 ? rows[row].len : strlen(rows[row].text);
            put(home->files[ix], rows[row].text, len, 0600);
            expect_error(home, ERR_INVALID, home->files[ix]);
        }
        assert_int_equal(unlink(home->files[ix]), 0);
    }
}

static void a_link_is_not_followed(void **state)
{
    const struct home *home = *state;
    char text[256];
    put(home->other, OPERATOR, strlen(OPERATOR), 0600);
    for (size_t ix = 0; ix < NAMES; ix++) {
        (void)unlink(home->files[ix]);
        assert_int_equal(symlink(home->other, home->files[ix]), 0);
        expect_error(home, ERR_IO, home->files[ix]);
        (void)read_file(home->other, text);
        assert_string_equal(text, OPERATOR);
        assert_int_equal(unlink(home->files[ix]), 0);
    }
    /* Neither is a token made where a link points to. */
    assert_int_equal(unlink(home->other), 0);
    assert_int_equal(symlink(home->other, home->files[0]), 0);
    expect_error(home, ERR_IO, home->files[0]);
    assert_int_not_equal(access(home->other, F_OK), 0);
}

static void a_folder_is_no_token(void **state)
{
    const struct home *home = *state;
    struct gate gate = {0};
    struct diag diag = {0};
    assert_int_equal(mkdir(home->files[0], 0700), 0);
    assert_int_not_equal(gate_load(&gate, home->dir, &diag), ERR_OK);
    assert_non_null(strstr(diag.text, home->files[0]));
}

/* Nor is a pipe, at which an open would wait for ever. */
static void a_pipe_is_no_token(void **state)
{
    const struct home *home = *state;
    int status = 0;
    assert_int_equal(mkfifo(home->files[0], 0600), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct gate gate = {0};
        struct diag diag = {0};
        (void)alarm(20);
        _exit(gate_load(&gate, home->dir, &diag) == ERR_OK ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_missing_home_is_an_error(void **state)
{
    const struct home *home = *state;
    struct gate gate = {0};
    struct diag diag = {0};
    assert_int_equal(gate_load(&gate, home->other, &diag), ERR_IO);
    assert_non_null(strstr(diag.text, home->other));
    assert_int_not_equal(access(home->other, F_OK), 0);
    /* Neither is a file a home. */
    put(home->other, OPERATOR, strlen(OPERATOR), 0600);
    assert_int_equal(gate_load(&gate, home->other, &diag), ERR_IO);
    assert_int_equal(gate_load(&gate, "", NULL), ERR_IO);
}

#define HOME_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_header_counts_as_it_should),
        cmocka_unit_test(headers_together_count_as_they_should),
        cmocka_unit_test(what_is_let_in_and_what_is_not),
        cmocka_unit_test(all_hosts_are_looked_at),
        cmocka_unit_test(a_unix_socket_needs_nothing),
        cmocka_unit_test(without_tokens_nobody_gets_in),
        cmocka_unit_test(a_long_header_is_compared),
        HOME_TEST(tokens_are_made_for_their_owner_alone),
        HOME_TEST(secrets_differ),
        HOME_TEST(tokens_and_cookies_are_kept),
        HOME_TEST(a_cookie_is_that_of_other_releases),
        HOME_TEST(a_token_may_be_written_by_hand),
        HOME_TEST(a_token_that_others_may_read_is_refused),
        HOME_TEST(what_is_no_token_is_refused),
        HOME_TEST(a_link_is_not_followed),
        HOME_TEST(a_folder_is_no_token),
        HOME_TEST(a_pipe_is_no_token),
        HOME_TEST(a_missing_home_is_an_error),
    };
    return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
