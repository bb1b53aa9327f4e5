/* SPDX-License-Identifier: MIT */
#include "exec/attempt_file.h"

#include "base/crash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum err attempt_file_make_dir(const char *dir, struct diag *diag)
{
    struct strbuf path = {0};
    strbuf_adds(&path, dir);
    enum err err = ERR_OK;
    for (size_t ix = 1; err == ERR_OK && ix <= path.len; ix++) {
        if (path.text[ix] == '/' || path.text[ix] == '\0') {
            char end = path.text[ix];
            path.text[ix] = '\0';
            if (mkdir(path.text, 0700) != 0 && errno != EEXIST) {
                err = diag_set(diag,
                               ERR_IO,
                               "make %s: %s",
                               path.text,
                               strerror(errno));
            }
            path.text[ix] = end;
        }
    }
    strbuf_release(&path);
    return err;
}

bool attempt_file_write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t count = write(fd, bytes, len);
        if (count < 0 && errno != EINTR) {
            return false;
        }
        if (count > 0) {
            bytes += count;
            len -= (size_t)count;
        }
    }
    return true;
}

enum err attempt_file_write(const char *dir,
                            const char *name,
                            const struct strbuf *text,
                            struct diag *diag)
{
    enum err err = attempt_file_make_dir(dir, diag);
    if (err != ERR_OK) {
        return err;
    }
    struct strbuf made = {0};
    struct strbuf path = {0};
    strbuf_addf(&made, "%s/.%s", dir, name);
    strbuf_addf(&path, "%s/%s", dir, name);
    crash_point("file-open");
    int fd = open(strbuf_text(&made),
                  O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                  0600);
    bool written =
        fd >= 0 && attempt_file_write_all(fd, strbuf_text(text), text->len);
    int error = errno;
    if (fd >= 0 && close(fd) != 0 && written) {
        error = errno;
        written = false;
    }
    crash_point("file-written");
    if (written && rename(strbuf_text(&made), strbuf_text(&path)) != 0) {
        error = errno;
        written = false;
    }
    crash_point("file-renamed");
    if (!written) {
        err = diag_set(diag,
                       ERR_IO,
                       "write %s: %s",
                       strbuf_text(&path),
                       strerror(error));
    }
    strbuf_release(&made);
    strbuf_release(&path);
    return err;
}

enum err attempt_file_read(const char *dir,
                           const char *name,
                           struct strbuf *out,
                           struct diag *diag)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/%s", dir, name);
    enum err err = ERR_OK;
    int fd = open(strbuf_text(&path),
                  O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    char bytes[4096];
    ssize_t count = fd < 0 ? -1 : 1;
    while (count > 0) {
        count = read(fd, bytes, sizeof(bytes));
        if (count > 0) {
            strbuf_add(out, bytes, (size_t)count);
        } else if (count < 0 && errno == EINTR) {
            count = 1;
        }
        if (out->len > ATTEMPT_FILE_BYTES_MAX) {
            err = diag_set(diag,
                           ERR_LIMIT,
                           "%s is larger than %d bytes",
                           strbuf_text(&path),
                           ATTEMPT_FILE_BYTES_MAX);
            break;
        }
    }
    if (count < 0) {
        err = diag_set(diag,
                       ERR_IO,
                       "read %s: %s",
                       strbuf_text(&path),
                       strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    strbuf_release(&path);
    return err;
}

void attempt_file_drop(const char *dir)
{
    DIR *list = opendir(dir);
    if (list == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(list); entry != NULL;
         entry = readdir(list)) {
        (void)unlinkat(dirfd(list), entry->d_name, 0);
    }
    (void)closedir(list);
    (void)rmdir(dir);
}
