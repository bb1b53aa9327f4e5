/* SPDX-License-Identifier: MIT */
#include "mcp/door.h"

#include "base/clock.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "view/client.h"
#include "work/key.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    ANSWER_MS = 10000, /* a slower scheduler has a problem */
    ANSWER_BYTES_MAX = 64 << 20,
};

/* Return a variable that is set and not empty, or NULL. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

bool door_is_inside(void)
{
    return variable("SLUICE_KEY") != NULL && variable("SLUICE_DOOR") != NULL;
}

bool door_is_of(const struct store_place *place)
{
    const char *door = variable("SLUICE_DOOR");
    if (door == NULL || !door_is_inside()) {
        return false;
    }
    struct strbuf own = {0};
    struct strbuf other = {0};
    struct stat a;
    struct stat b;
    strbuf_addf(&own, "%s/" KEY_DOOR, place->home);
    const char *slash = strrchr(door, '/');
    strbuf_add(&other, door, slash != NULL ? (size_t)(slash - door) : 0);
    bool same = strcmp(strbuf_text(&own), strbuf_text(&other)) == 0 ||
                (stat(strbuf_text(&own), &a) == 0 &&
                 stat(strbuf_text(&other), &b) == 0 && a.st_dev == b.st_dev &&
                 a.st_ino == b.st_ino);
    strbuf_release(&own);
    strbuf_release(&other);
    return same;
}

/* A connection, and until when a reply is waited for. */
struct line {
    int fd;
    int64_t until_ns;
};

/* Wait until the scheduler reads or has written; false: it takes too long. */
static bool wait_for(const struct line *line, short events)
{
    struct pollfd poll_fd = {.fd = line->fd, .events = events};
    int64_t left_ms = (line->until_ns - clock_boot_ns()) / 1000000;
    int ready = left_ms > 0 ? poll(&poll_fd, 1, (int)left_ms) : 0;
    return ready > 0 || (ready < 0 && errno == EINTR);
}

/* Connect by a descriptor of the directory: paths of sockets are short. A
 * scheduler that accepts no connection now may do so soon. */
static enum err connect_in(struct line *line, int dir_fd)
{
    static const struct timespec pause = {.tv_nsec = 20000000};
    struct sockaddr_un address;
    store_place_socket(&address, dir_fd);
    while (connect(line->fd,
                   (const struct sockaddr *)&address,
                   sizeof(address)) != 0) {
        if (errno != EAGAIN && errno != EINTR) {
            return ERR_UNAVAILABLE;
        }
        if (clock_boot_ns() >= line->until_ns) {
            return ERR_TIMEOUT;
        }
        (void)nanosleep(&pause, NULL);
    }
    return ERR_OK;
}

/* Connect to the socket. ERR_UNAVAILABLE: no scheduler listens. */
static enum err connect_to(struct line *line, const char *path)
{
    INVARIANT(path != NULL);
    struct strbuf dir = {0};
    const char *slash = strrchr(path, '/');
    strbuf_add(&dir, path, slash != NULL ? (size_t)(slash - path) : 0);
    int dir_fd = open(strbuf_text(&dir), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    strbuf_release(&dir);
    line->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    enum err err = dir_fd >= 0 && line->fd >= 0 ? connect_in(line, dir_fd)
                                                : ERR_UNAVAILABLE;
    if (dir_fd >= 0) {
        (void)close(dir_fd);
    }
    return err;
}

static enum err send_all(const struct line *line, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(line->fd, bytes, len, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            return ERR_IO;
        }
        if (sent < 0 && !wait_for(line, POLLOUT)) {
            return ERR_TIMEOUT;
        }
        bytes += sent > 0 ? sent : 0;
        len -= sent > 0 ? (size_t)sent : 0;
    }
    return ERR_OK;
}

/* Read one line into *out. ERR_IO: the scheduler has closed the connection. */
static enum err read_line(const struct line *line, struct strbuf *out)
{
    char bytes[65536];
    while (out->len == 0 || out->text[out->len - 1] != '\n') {
        ssize_t len = read(line->fd, bytes, sizeof(bytes));
        if (len > 0) {
            strbuf_add(out, bytes, (size_t)len);
        }
        bool again = len < 0 && (errno == EAGAIN || errno == EINTR);
        if (len == 0 || (len < 0 && !again) || out->len > ANSWER_BYTES_MAX) {
            return ERR_IO;
        }
        if (again && !wait_for(line, POLLIN)) {
            return ERR_TIMEOUT;
        }
    }
    return ERR_OK;
}

/* Send the request to the scheduler. ERR_UNAVAILABLE: none listens. */
static enum err ask_socket(const char *request, struct strbuf *answer)
{
    struct line line = {
        .until_ns = clock_boot_ns() + INT64_C(1000000) * ANSWER_MS,
    };
    struct strbuf text = {0};
    strbuf_addf(&text, "%s\n", request);
    enum err err = connect_to(&line, variable("SLUICE_DOOR"));
    if (err == ERR_OK) {
        err = send_all(&line, strbuf_text(&text), text.len);
    }
    if (err == ERR_OK) {
        err = read_line(&line, answer);
    }
    strbuf_release(&text);
    if (line.fd >= 0) {
        (void)close(line.fd);
    }
    return err;
}

/* The same without a scheduler. */
static enum err ask_store(const char *request, struct strbuf *answer)
{
    struct store_place place;
    struct diag ignored = {0};
    char *text = NULL;
    enum err err = store_place_find(&place, NULL, false, &ignored);
    if (err != ERR_OK) {
        err = ERR_UNAVAILABLE; /* a sandbox hides it */
    } else if (!door_is_of(&place)) {
        err = ERR_CONFLICT;
    }
    if (err == ERR_OK) {
        err = client_ask(&place, request, &text, &ignored);
    }
    strbuf_adds(answer, text != NULL ? text : "");
    mem_free(text);
    store_place_release(&place);
    return err;
}

/* Take the answer apart. */
static enum err
read_answer(const char *text, struct strbuf *out, struct diag *diag)
{
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const char *said = json_string_value(json_object_get(json, "text"));
    const char *name = json_string_value(json_object_get(json, "error"));
    enum err err = ERR_OK;
    if (said == NULL) {
        err = diag_set(diag, ERR_IO, "invalid reply of the scheduler");
    } else if (!json_is_true(json_object_get(json, "ok"))) {
        err = diag_set(diag,
                       name != NULL ? err_from_name(name) : ERR_IO,
                       "%s",
                       said);
    } else {
        strbuf_adds(out, said);
    }
    json_decref(json);
    return err;
}

enum err door_ask(json_t *request, struct strbuf *out, struct diag *diag)
{
    if (!door_is_inside()) {
        return diag_set(diag,
                        ERR_CONFLICT,
                        "not inside a session of sluice: SLUICE_KEY and "
                        "SLUICE_DOOR are not set; 'sluice mcp --operator' is "
                        "for an operator's assistant");
    }
    json_t *key = json_string(variable("SLUICE_KEY"));
    if (key == NULL) {
        return diag_set(diag, ERR_DENIED, "SLUICE_KEY is not a key");
    }
    (void)json_object_set_new(request, "session", key);
    char *text = json_dumps(request, JSON_COMPACT);
    struct strbuf answer = {0};
    if (text == NULL) {
        return diag_set(diag, ERR_INVALID, "the request is not UTF-8");
    }
    enum err err = ask_socket(text, &answer);
    if (err == ERR_UNAVAILABLE || err == ERR_IO) {
        strbuf_clear(&answer);
        err = ask_store(text, &answer);
    }
    free(text);
    if (err == ERR_OK) {
        err = read_answer(strbuf_text(&answer), out, diag);
    } else if (err == ERR_CONFLICT) {
        err = diag_set(diag,
                       ERR_DENIED,
                       "SLUICE_DOOR is not that of the store SLUICE_STORE");
    } else if (err == ERR_UNAVAILABLE) {
        err = diag_set(diag, err, "no scheduler is running; try again later");
    } else {
        err = diag_set(diag,
                       ERR_TIMEOUT,
                       "the scheduler does not reply; try again later");
    }
    strbuf_release(&answer);
    return err;
}
