/* SPDX-License-Identifier: MIT */
#include "engine/site_file.h"

#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Append the content of an open file; ERR_LIMIT: it is too large. */
static enum err
read_all(struct strbuf *out, int fd, const char *path, struct diag *diag)
{
    char bytes[4096];
    ssize_t count = 1;
    while (count > 0 && out->len <= SITE_BYTES_MAX) {
        count = read(fd, bytes, sizeof(bytes));
        if (count > 0) {
            strbuf_add(out, bytes, (size_t)count);
        } else if (count < 0 && errno == EINTR) {
            count = 1;
        }
    }
    if (count < 0) {
        return diag_set(diag, ERR_IO, "read %s: %s", path, strerror(errno));
    }
    return out->len <= SITE_BYTES_MAX
               ? ERR_OK
               : diag_set(diag, ERR_LIMIT, "%s is larger than 1 MiB", path);
}

/* Append the content of the file; without a file, nothing. */
static enum err
read_file(struct strbuf *out, const char *path, struct diag *diag)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return errno == ENOENT ? ERR_OK
                               : diag_set(diag,
                                          ERR_IO,
                                          "open %s: %s",
                                          path,
                                          strerror(errno));
    }
    enum err err =
        fstat(fd, &about) != 0
            ? diag_set(diag, ERR_IO, "stat %s: %s", path, strerror(errno))
        : S_ISREG(about.st_mode)
            ? read_all(out, fd, path, diag)
            : diag_set(diag, ERR_INVALID, "%s is no file", path);
    (void)close(fd);
    return err;
}

/* Report the errors with their places, one per line, as many as fit. */
static enum err
refuse(const char *path, const struct plan_errors *errors, struct diag *diag)
{
    struct strbuf text = {0};
    for (uint32_t ix = 0; ix < errors->count; ix++) {
        const struct plan_error *error = &errors->items[ix];
        strbuf_addf(&text,
                    "%s%s:%u:%u: %s",
                    ix > 0 ? "\n" : "",
                    path,
                    error->mark.line,
                    error->mark.column,
                    error->text);
    }
    enum err err = diag_set(diag, ERR_INVALID, "%s", strbuf_text(&text));
    strbuf_release(&text);
    return err;
}

enum err site_file_read(struct site *out, const char *home, struct diag *diag)
{
    *out = (struct site){0};
    struct strbuf path = {0};
    struct strbuf text = {0};
    struct plan_errors errors = {0};
    strbuf_addf(&path, "%s/%s", home, SITE_FILE);
    enum err err = read_file(&text, strbuf_text(&path), diag);
    if (err == ERR_OK &&
        !site_read(out, strbuf_text(&text), text.len, &errors)) {
        err = refuse(strbuf_text(&path), &errors, diag);
    }
    plan_errors_release(&errors);
    strbuf_release(&text);
    strbuf_release(&path);
    return err;
}
