/* SPDX-License-Identifier: MIT */
/* Reading settings.yaml: what is no file, too large or invalid is named. */
#include "engine/site_file.h"

#include "base/mem.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A directory for the file. */
struct home {
    char path[64];
    char file[96];
};

static struct home make_home(void)
{
    struct home home;
    (void)snprintf(home.path, sizeof(home.path), "/tmp/site-file-XXXXXX");
    assert_non_null(mkdtemp(home.path));
    (void)snprintf(home.file, sizeof(home.file), "%s/%s", home.path, SITE_FILE);
    return home;
}

static void remove_home(const struct home *home)
{
    (void)unlink(home->file);
    (void)rmdir(home->file);
    assert_int_equal(rmdir(home->path), 0);
}

static void write_file(const struct home *home, const char *text, size_t len)
{
    FILE *file = fopen(home->file, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

/* Require an error with this part of the message, and no settings. */
static void refuse(const struct home *home, enum err wanted, const char *part)
{
    struct site site;
    struct diag diag = {0};
    enum err err = site_file_read(&site, home->path, &diag);
    if (err != wanted || strstr(diag.text, part) == NULL) {
        fail_msg("not \"%s\", but %s: %s", part, err_name(err), diag.text);
    }
    assert_int_equal(site.limit_count, 0);
    site_release(&site);
}

static void a_file_has_limits_and_no_file_has_none(void **state)
{
    static const char text[] = "limits: {sessions: 4, max: none}\n";
    (void)state;
    struct home home = make_home();
    struct site site;
    struct diag diag = {0};
    assert_int_equal(site_file_read(&site, home.path, &diag), ERR_OK);
    assert_int_equal(site.limit_count, 0);
    site_release(&site);
    write_file(&home, text, strlen(text));
    assert_int_equal(site_file_read(&site, home.path, &diag), ERR_OK);
    assert_int_equal(site.limit_count, 2);
    assert_string_equal(site.limits[0].name, "sessions");
    assert_int_equal(site.limits[0].max, 4);
    site_release(&site);
    remove_home(&home);
}

static void all_errors_are_listed_with_their_places(void **state)
{
    static const char text[] = "limits: {sessions: many}\nlimit: {}\n";
    (void)state;
    struct home home = make_home();
    write_file(&home, text, strlen(text));
    refuse(&home, ERR_INVALID, "settings.yaml:1:20: ");
    refuse(&home, ERR_INVALID, "\n");
    refuse(&home, ERR_INVALID, "settings.yaml:2:1: ");
    remove_home(&home);
}

static void a_file_that_is_too_large_is_refused(void **state)
{
    (void)state;
    struct home home = make_home();
    char *text = mem_zalloc(SITE_BYTES_MAX + 1, 1);
    memset(text, '\n', SITE_BYTES_MAX + 1);
    write_file(&home, text, SITE_BYTES_MAX + 1);
    refuse(&home, ERR_LIMIT, "is larger than 1 MiB");
    write_file(&home, text, SITE_BYTES_MAX);
    struct site site;
    struct diag diag = {0};
    assert_int_equal(site_file_read(&site, home.path, &diag), ERR_OK);
    site_release(&site);
    mem_free(text);
    remove_home(&home);
}

static void what_is_no_file_is_not_read(void **state)
{
    (void)state;
    struct home home = make_home();
    assert_int_equal(mkfifo(home.file, 0600), 0);
    refuse(&home, ERR_INVALID, "settings.yaml is no file"); /* at once */
    assert_int_equal(unlink(home.file), 0);
    assert_int_equal(symlink(SITE_FILE, home.file), 0);
    refuse(&home, ERR_IO, "open "); /* a link to itself */
    assert_int_equal(unlink(home.file), 0);
    assert_int_equal(mkdir(home.file, 0700), 0);
    refuse(&home, ERR_INVALID, "settings.yaml is no file");
    remove_home(&home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_has_limits_and_no_file_has_none),
        cmocka_unit_test(all_errors_are_listed_with_their_places),
        cmocka_unit_test(a_file_that_is_too_large_is_refused),
        cmocka_unit_test(what_is_no_file_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
