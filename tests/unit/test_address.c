/* SPDX-License-Identifier: MIT */
#include "http/address.h"

#include "base/macros.h"

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

static void public_addresses_are_as_browsers_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *url; /* NULL: it is none */
        const char *host;
    } rows[] = {
        {"https://a.example", "https://a.example/", "a.example"},
        {"https://a.example/", "https://a.example/", "a.example"},
        {"HTTPS://a.example", "https://a.example/", "a.example"},
        {"https://a.example:443", "https://a.example/", "a.example"},
        {"https://a.example:44", "https://a.example:44/", "a.example:44"},
        {"https://a.example:80/", "https://a.example:80/", "a.example:80"},
        {"http://a.example:80", "http://a.example/", "a.example"},
        {"http://a.example:8", "http://a.example:8/", "a.example:8"},
        {"http://[fd00::1]:8900", "http://[fd00::1]:8900/", "[fd00::1]:8900"},
        {"http://10.0.0.1:8900", "http://10.0.0.1:8900/", "10.0.0.1:8900"},
        {"", NULL, NULL},
        {"a.example", NULL, NULL},
        {"//a.example", NULL, NULL},
        {"ftp://a.example", NULL, NULL},
        {"javascript://a.example", NULL, NULL},
        {"https:/a.example", NULL, NULL},
        {"https://", NULL, NULL},
        {"https:///", NULL, NULL},
        {"https://:80", NULL, NULL},
        {"https://a.example:", NULL, NULL},
        {"https://a.example:0", NULL, NULL},
        {"https://a.example:65536", NULL, NULL},
        {"https://a.example:123456", NULL, NULL},
        {"https://a.example:8x", NULL, NULL},
        {"https://a.example/path", NULL, NULL},
        {"https://a.example//", NULL, NULL},
        {"https://a.example?x", NULL, NULL},
        {"https://a.example#x", NULL, NULL},
        {"https://user@a.example", NULL, NULL},
        {"https://a example", NULL, NULL},
        {"https://a.example\n", NULL, NULL},
        {"https://a\x1b[0m", NULL, NULL},
        {"https://[::1", NULL, NULL},
        {"https://[]", NULL, NULL},
        {"https://[::1]x", NULL, NULL},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        struct strbuf url = {0};
        struct strbuf host = {0};
        bool valid = address_add_url(&url, rows[ix].text);
        if (valid != (rows[ix].url != NULL)) {
            fail_msg("%s", rows[ix].text);
        }
        assert_string_equal(strbuf_text(&url), valid ? rows[ix].url : "");
        if (valid) {
            address_add_host(&host, strbuf_text(&url));
            assert_string_equal(strbuf_text(&host), rows[ix].host);
        }
        strbuf_release(&url);
        strbuf_release(&host);
    }
}

static void a_phone_cannot_use_a_local_address(void **state)
{
    (void)state;
    static const char *const local[] = {
        "http://127.0.0.1:8900/login?code=1",
        "http://127.1.2.3/",
        "http://localhost:8900/",
        "http://LOCALHOST/",
        "http://[::1]:8900/",
        "http://0.0.0.0:8900/",
        "http://[::]:8900/",
    };
    static const char *const other[] = {
        "https://sluice.example.org/login?code=1",
        "http://10.0.0.1:8900/",
        "http://[fd00::1]:8900/",
        "http://localhost.example/",
        "http://127.0.0.1.example/",
        "http://127.example/",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(local); ix++) {
        assert_true(address_is_local(local[ix]));
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(other); ix++) {
        assert_false(address_is_local(other[ix]));
    }
}

static void ports_and_ranges_to_listen_on(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *host; /* NULL: invalid */
        int first;
        int last;
    } rows[] = {
        {"127.0.0.1:8900", "127.0.0.1", 8900, 8900},
        {"localhost:0", "localhost", 0, 0},
        {"[::1]:65535", "[::1]", 65535, 65535},
        {"a:8900-8999", "a", 8900, 8999},
        {"a:1-1", "a", 1, 1},
        {"", NULL, 0, 0},
        {"a", NULL, 0, 0},
        {":80", NULL, 0, 0},
        {"a:", NULL, 0, 0},
        {"a:x", NULL, 0, 0},
        {"a:-1", NULL, 0, 0},
        {"a:65536", NULL, 0, 0},
        {"a:000001", NULL, 0, 0},
        {"a:80x", NULL, 0, 0},
        {"a: 80", NULL, 0, 0},
        {"::1:80", NULL, 0, 0},
        {"a:2-1", NULL, 0, 0},
        {"a:0-5", NULL, 0, 0},
        {"a:5-", NULL, 0, 0},
        {"a:5-6-7", NULL, 0, 0},
        {"a:5-65536", NULL, 0, 0},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        struct address_listen at;
        bool valid = address_read_listen(&at, rows[ix].text);
        if (valid != (rows[ix].host != NULL)) {
            fail_msg("%s", rows[ix].text);
        }
        if (valid) {
            assert_string_equal(at.host, rows[ix].host);
            assert_int_equal(at.first, rows[ix].first);
            assert_int_equal(at.last, rows[ix].last);
        }
    }
}

/* --- files of servers --------------------------------------------------- */

struct home {
    char path[40];
    char dir[64];
};

static int set_up(void **state)
{
    static struct home home;
    (void)snprintf(home.path, sizeof(home.path), "/tmp/sluice-addr-XXXXXX");
    if (mkdtemp(home.path) == NULL) {
        return -1;
    }
    (void)snprintf(home.dir, sizeof(home.dir), "%s/" ADDRESS_DIR, home.path);
    *state = &home;
    return 0;
}

static int tear_down(void **state)
{
    const struct home *home = *state;
    return rmdir(home->dir) == 0 && rmdir(home->path) == 0 ? 0 : -1;
}

static struct address publish(const struct home *home,
                              const char *port,
                              const char *url,
                              unsigned char byte)
{
    struct address address = {.fd = -1};
    struct gate_key key = {.made = true};
    struct diag diag = {0};
    memset(key.bytes, byte, sizeof(key.bytes));
    if (address_publish(&address, home->path, port, url, &key, &diag) !=
        ERR_OK) {
        fail_msg("%s", diag.text);
    }
    return address;
}

/* Require the server that is found; NULL: none. */
static void expect(const struct home *home,
                   const char *port,
                   const char *url,
                   unsigned char byte)
{
    struct strbuf found = {0};
    struct gate_key key;
    struct diag diag = {0};
    enum err err = address_find(&found, &key, home->path, port, &diag);
    assert_int_equal(err, url != NULL ? ERR_OK : ERR_NOT_FOUND);
    assert_string_equal(strbuf_text(&found), url != NULL ? url : "");
    if (url != NULL) {
        unsigned char bytes[sizeof(key.bytes)];
        memset(bytes, byte, sizeof(bytes));
        assert_true(key.made);
        assert_memory_equal(key.bytes, bytes, sizeof(bytes));
    }
    strbuf_release(&found);
}

static void servers_are_found_while_they_live(void **state)
{
    const struct home *home = *state;
    char path[80];
    struct stat stat;
    expect(home, NULL, NULL, 0); /* no directory */
    struct address first = publish(home, "8900", "http://a:8900/", 1);
    (void)snprintf(path, sizeof(path), "%s/8900", home->dir);
    assert_int_equal(lstat(path, &stat), 0);
    assert_int_equal(stat.st_mode & 07777, 0600);
    assert_int_equal(lstat(home->dir, &stat), 0);
    assert_int_equal(stat.st_mode & 07777, 0700);
    struct address second = publish(home, "8901", "https://b.example/", 0xfe);
    /* The times of files may be the same. */
    static const struct timespec later[2] = {{.tv_nsec = UTIME_OMIT},
                                             {.tv_sec = 4000000000}};
    assert_int_equal(futimens(second.fd, later), 0);
    expect(home, NULL, "https://b.example/", 0xfe);
    expect(home, "8900", "http://a:8900/", 1);
    expect(home, "8901", "https://b.example/", 0xfe);
    expect(home, "8902", NULL, 0);
    address_withdraw(&second);
    expect(home, NULL, "http://a:8900/", 1);
    expect(home, "8901", NULL, 0);
    address_withdraw(&first);
    address_withdraw(&first);
    expect(home, NULL, NULL, 0);
}

static void a_server_that_died_is_not_found(void **state)
{
    const struct home *home = *state;
    struct address dead = publish(home, "8900", "http://a.example:8900/", 1);
    assert_int_equal(close(dead.fd), 0); /* as the kernel does */
    assert_int_equal(close(dead.dir), 0);
    expect(home, NULL, NULL, 0);
    expect(home, "8900", NULL, 0);
    /* A shorter address replaces all of it. */
    struct address next = publish(home, "8900", "http://a/", 2);
    expect(home, NULL, "http://a/", 2);
    address_withdraw(&next);
}

static void a_port_has_one_server(void **state)
{
    const struct home *home = *state;
    struct address first = publish(home, "8900", "http://a:8900/", 1);
    struct address second = {.fd = -1};
    struct gate_key key = {.made = true};
    struct diag diag = {0};
    assert_int_equal(address_publish(&second,
                                     home->path,
                                     "8900",
                                     "http://b:8900/",
                                     &key,
                                     &diag),
                     ERR_IO);
    assert_non_null(strstr(diag.text, "8900"));
    assert_int_equal(second.fd, -1);
    expect(home, NULL, "http://a:8900/", 1);
    address_withdraw(&first);
}

static void what_is_no_file_of_a_server_is_ignored(void **state)
{
    const struct home *home = *state;
    static const char *const texts[] = {
        "",
        "\n",
        "http://a:8900/\n",
        "http://a:8900/\n0101\n",
        "javascript:1\n"
        "0101010101010101010101010101010101010101010101010101010101010101\n",
        "http://a:8900/\n"
        "010101010101010101010101010101010101010101010101010101010101010g\n",
        "http://a:8900/\n"
        "0101010101010101010101010101010101010101010101010101010101010101",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        struct address address = publish(home, "8900", "http://a/", 1);
        assert_int_equal(ftruncate(address.fd, 0), 0);
        size_t len = strlen(texts[ix]);
        assert_int_equal(pwrite(address.fd, texts[ix], len, 0), len);
        expect(home, NULL, NULL, 0);
        address_withdraw(&address);
    }
}

#define HOME_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(public_addresses_are_as_browsers_write_them),
        cmocka_unit_test(a_phone_cannot_use_a_local_address),
        cmocka_unit_test(ports_and_ranges_to_listen_on),
        HOME_TEST(servers_are_found_while_they_live),
        HOME_TEST(a_server_that_died_is_not_found),
        HOME_TEST(a_port_has_one_server),
        HOME_TEST(what_is_no_file_of_a_server_is_ignored),
    };
    return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
