/* SPDX-License-Identifier: MIT */
#include "cli/import_out.h"

#include "base/mem.h"
#include "base/plain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SMALL_BYTES_MAX = 4096 };

/* Append a path that is relative to the plan. */
static void add_beside(const char *plan, const char *path, struct strbuf *out)
{
    const char *slash = plan == NULL ? NULL : strrchr(plan, '/');
    if (slash != NULL && path[0] != '/') {
        strbuf_add(out, plan, (size_t)(slash - plan) + 1);
    }
    strbuf_adds(out, path);
}

/* --- writing ------------------------------------------------------------ */

static int fail_write(const struct import_out *out, const char *path, int error)
{
    struct strbuf plain = {0};
    plain_add(&plain, path);
    int code = error == EEXIST
                   ? cli_fail(out->command,
                              "%s exists: use --force to replace it",
                              strbuf_text(&plain))
                   : cli_fail(out->command,
                              "%s: %s",
                              strbuf_text(&plain),
                              strerror(error));
    strbuf_release(&plain);
    return code;
}

static int write_file(const struct import_out *out,
                      const char *path,
                      const char *text,
                      size_t len)
{
    int error = cli_put_file(path, text, len, out->force);
    return error == 0 ? CLI_OK : fail_write(out, path, error);
}

/* --- bodies ------------------------------------------------------------- */

/* Whether the file has exactly this content. */
static bool has_text(const char *path, const char *text, size_t len)
{
    struct stat stat_buf = {0};
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool same = fstat(fileno(file), &stat_buf) == 0 &&
                S_ISREG(stat_buf.st_mode) && stat_buf.st_size == (off_t)len;
    for (size_t ix = 0; same && ix < len; ix++) {
        same = getc(file) == (unsigned char)text[ix];
    }
    (void)fclose(file);
    return same;
}

/* Create the directory of a file. */
static int make_directory(const struct import_out *out, struct strbuf *path)
{
    char *slash = strrchr(path->text, '/');
    if (slash == NULL) {
        return CLI_OK;
    }
    *slash = '\0';
    bool made = mkdir(path->text, 0777) == 0 || errno == EEXIST;
    int code = made ? CLI_OK : fail_write(out, path->text, errno);
    *slash = '/';
    return code;
}

/* Check or write all bodies. */
static int put_bodies(const struct import_out *out,
                      const struct import *import,
                      bool check)
{
    struct strbuf path = {0};
    struct import_body body;
    uint32_t ix = 0;
    int code = CLI_OK;
    while (code == CLI_OK && import_next_body(import, &ix, &body)) {
        strbuf_clear(&path);
        add_beside(out->path, body.path, &path);
        if (has_text(path.text, body.text, body.len)) {
            continue;
        }
        if (check) {
            int error = cli_check_file(path.text, out->force);
            code = error == 0 ? CLI_OK : fail_write(out, path.text, error);
            continue;
        }
        code = make_directory(out, &path);
        if (code == CLI_OK) {
            code = write_file(out, path.text, body.text, body.len);
        }
    }
    strbuf_release(&path);
    return code;
}

int import_out_write(const struct import_out *out,
                     const struct import *import,
                     const struct strbuf *plan)
{
    int error = cli_check_file(out->path, out->force);
    if (error != 0) {
        return fail_write(out, out->path, error);
    }
    int code = put_bodies(out, import, true);
    code = code == CLI_OK ? put_bodies(out, import, false) : code;
    return code == CLI_OK ? write_file(out, out->path, plan->text, plan->len)
                          : code;
}

/* --- branches ----------------------------------------------------------- */

/* Read the first line of a small file without its prefix; return false if it
 * has a different form. */
static bool read_line(const char *path, const char *prefix, struct strbuf *out)
{
    char line[SMALL_BYTES_MAX];
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool read = fgets(line, sizeof(line), file) != NULL;
    (void)fclose(file);
    size_t len = strlen(prefix);
    if (!read || strncmp(line, prefix, len) != 0) {
        return false;
    }
    strbuf_clear(out);
    strbuf_add(out, line + len, strcspn(line + len, "\r\n"));
    return out->len > 0;
}

/* Whether a branch name is safe in a plan. */
static bool is_simple(const char *branch)
{
    return strspn(branch,
                  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                  "0123456789._/-") == strlen(branch) &&
           strstr(branch, "..") == NULL && branch[0] != '-' &&
           branch[0] != '/' && branch[0] != '.';
}

void import_out_branch(void *ctx, const char *path, struct strbuf *out)
{
    const char *const *plan = ctx;
    struct strbuf git = {0};
    struct strbuf head = {0};
    struct strbuf line = {0};
    add_beside(*plan, path, &git);
    strbuf_adds(&git, "/.git");
    strbuf_addf(&head, "%s/HEAD", git.text);
    bool found = read_line(head.text, "ref: refs/heads/", &line);
    if (!found && read_line(git.text, "gitdir: ", &line)) { /* a worktree */
        strbuf_clear(&head);
        strbuf_addf(&head, "%s/HEAD", line.text);
        found = read_line(head.text, "ref: refs/heads/", &line);
    }
    if (found && is_simple(line.text)) {
        strbuf_adds(out, line.text);
    }
    strbuf_release(&git);
    strbuf_release(&head);
    strbuf_release(&line);
}

/* Append `to` relative to `from`; both are absolute, without symbolic links. */
static void add_relative(struct strbuf *out, const char *from, const char *to)
{
    size_t same = 0; /* length of the common parent directory */
    for (size_t ix = 0; from[ix] == to[ix]; ix++) {
        if (from[ix] == '\0') {
            strbuf_adds(out, ".");
            return;
        }
        same = from[ix] == '/' ? ix : same;
        if (from[ix + 1] == '\0' && to[ix + 1] == '/') {
            same = ix + 1;
            break;
        }
        if (to[ix + 1] == '\0' && from[ix + 1] == '/') {
            same = ix + 1;
            break;
        }
    }
    for (const char *at = from + same; *at != '\0'; at++) {
        if (*at == '/' && at[1] != '\0') {
            strbuf_adds(out, out->len > 0 ? "/.." : "..");
        }
    }
    if (to[same] != '\0') {
        strbuf_adds(out, out->len > 0 ? "/" : "");
        strbuf_adds(out, to + same + (to[same] == '/' ? 1 : 0));
    }
}

bool import_out_clone(const char *file,
                      const char *inside,
                      const char *output,
                      char **path_out,
                      char **name_out)
{
    char *real = realpath(file, NULL);
    const char *slash = output != NULL ? strrchr(output, '/') : NULL;
    struct strbuf folder = {0};
    struct strbuf mark = {0};
    strbuf_add(&folder,
               slash != NULL ? output : ".",
               slash != NULL ? (size_t)(slash - output) + 1 : 1);
    strbuf_addf(&mark, "/%s/", inside);
    char *from = realpath(strbuf_text(&folder), NULL);
    char *at = real != NULL ? strstr(real, strbuf_text(&mark)) : NULL;
    bool found = at != NULL && at != real && from != NULL;
    if (found) {
        struct strbuf path = {0};
        *at = '\0';
        add_relative(&path, from, real);
        const char *name = strrchr(real, '/') + 1;
        *path_out = mem_strndup(strbuf_text(&path), path.len);
        *name_out = mem_strndup(name, strlen(name));
        strbuf_release(&path);
    }
    free(real);
    free(from);
    strbuf_release(&folder);
    strbuf_release(&mark);
    return found;
}
