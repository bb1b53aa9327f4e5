/* SPDX-License-Identifier: MIT */
/*
 * Requests to the scheduler of an SQLite store, over a unix socket in the store
 * directory on which the scheduler listens (engine/control_socket.h): one line
 * goes out, and one line comes back.
 */
#include "store/sqlite_internal.h"

#include "base/clock.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "store/place.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static enum err
connect_to(const struct sqlite_store *store, int *fd_out, struct diag *diag)
{
    struct sockaddr_un address;
    store_place_socket(&address, store->dir_fd);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 ||
        connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        bool nobody = errno == ENOENT || errno == ECONNREFUSED;
        (void)diag_set(diag,
                       nobody ? ERR_NOT_FOUND : ERR_UNAVAILABLE,
                       "connect to %s/" STORE_PLACE_SOCKET ": %s",
                       store->dir,
                       strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
        }
        return nobody ? ERR_NOT_FOUND : ERR_UNAVAILABLE;
    }
    *fd_out = fd;
    return ERR_OK;
}

static enum err send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, bytes, len, MSG_NOSIGNAL);
        if (sent < 0 && errno != EINTR) {
            return ERR_IO;
        }
        if (sent > 0) {
            bytes += sent;
            len -= (size_t)sent;
        }
    }
    return ERR_OK;
}

/* Read one line, without its newline. */
static enum err read_line(int fd, int timeout_ms, struct strbuf *out)
{
    int64_t end_ns = clock_boot_ns() + (int64_t)timeout_ms * 1000000;
    for (;;) {
        int64_t left_ms = (end_ns - clock_boot_ns()) / 1000000;
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int ready = left_ms > 0 ? poll(&wait, 1, (int)left_ms) : 0;
        if (ready == 0) {
            return ERR_TIMEOUT;
        }
        char bytes[4096];
        ssize_t count = ready > 0 ? read(fd, bytes, sizeof(bytes)) : -1;
        if (count == 0 || (count < 0 && errno != EINTR)) {
            return ERR_IO;
        }
        if (count > 0) {
            strbuf_add(out, bytes, (size_t)count);
            if (out->text[out->len - 1] == '\n') {
                out->text[--out->len] = '\0';
                return ERR_OK;
            }
        }
    }
}

enum err sqlite_ask(struct store *base,
                    const char *json,
                    int timeout_ms,
                    char **answer_out,
                    struct diag *diag)
{
    const struct sqlite_store *store = (const struct sqlite_store *)base;
    INVARIANT(store->dir_fd >= 0 && timeout_ms > 0);
    int fd = -1;
    enum err err = connect_to(store, &fd, diag);
    if (err != ERR_OK) {
        return err;
    }
    struct strbuf line = {0};
    strbuf_addf(&line, "%s\n", json);
    err = send_all(fd, line.text, line.len);
    strbuf_clear(&line);
    if (err == ERR_OK) {
        err = read_line(fd, timeout_ms, &line);
    }
    if (err == ERR_OK) {
        *answer_out = mem_strndup(line.text, line.len);
    } else {
        (void)diag_set(diag,
                       err,
                       err == ERR_TIMEOUT ? "the scheduler of %s does not reply"
                                          : "the scheduler of %s has exited",
                       store->dir);
    }
    strbuf_release(&line);
    (void)close(fd);
    INVARIANT((err == ERR_OK) == (*answer_out != NULL));
    return err;
}
