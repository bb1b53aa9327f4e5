/* SPDX-License-Identifier: MIT */
#include "work/control_socket.h"

#include "base/crash.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "store/place.h"
#include "work/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

enum { BACKLOG = 64, READ_BYTES = 64 << 10, CLIENTS_MAX = 1000 };

struct client {
    uv_pipe_t pipe;
    struct control_socket *control;
    struct client *next;
    uint64_t number;
    char who[64];
    struct strbuf input;
    bool waits; /* for the answer to a request: the next one is not read */
};

/* An answer being sent. */
struct reply {
    uv_write_t write;
    char *text;
    struct control_socket *control;
    uint64_t client;
};

struct control_socket {
    uv_pipe_t pipe;
    control_socket_request_fn fn;
    void *ctx;
    struct client *clients;
    uint32_t client_count;
    uint64_t last_client;
    uint64_t last_request;
    struct control_socket_request *requests; /* not answered yet */
    uint32_t request_count;
    uint32_t request_capacity;
    uint32_t open_handles;
    bool closing;
};

/* The client that waits for an answer. */
struct control_socket_request {
    uint64_t id;
    uint64_t client;
};

static void free_when_closed(struct control_socket *control)
{
    if (control->closing && control->open_handles == 0) {
        mem_free(control->requests);
        mem_free(control);
    }
}

static void client_closed(uv_handle_t *handle)
{
    struct client *client = handle->data;
    struct control_socket *control = client->control;
    strbuf_release(&client->input);
    mem_free(client);
    control->open_handles--;
    free_when_closed(control);
}

static void drop_client(struct client *client)
{
    struct control_socket *control = client->control;
    struct client **place = &control->clients;
    while (*place != client) {
        INVARIANT(*place != NULL);
        place = &(*place)->next;
    }
    *place = client->next;
    control->client_count--;
    uv_close((uv_handle_t *)&client->pipe, client_closed);
}

static void take_request(struct client *client, const char *json)
{
    struct control_socket *control = client->control;
    MEM_GROW(control->requests,
             control->request_count,
             control->request_capacity);
    uint64_t id = ++control->last_request;
    control->requests[control->request_count++] =
        (struct control_socket_request){
            .id = id,
            .client = client->number,
        };
    control->fn(control->ctx, id, client->who, json);
}

static void give_buffer(uv_handle_t *handle, size_t wanted, uv_buf_t *out);
static void on_input(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf);

/*
 * Remove a complete line from the input, and process it; else read on. A client
 * has one request at a time: one that sends more, and reads no answers, would
 * keep the scheduler busy and fill its memory.
 */
static void take_line(struct client *client)
{
    struct strbuf *input = &client->input;
    uv_stream_t *stream = (uv_stream_t *)&client->pipe;
    char *end = input->len > 0 ? memchr(input->text, '\n', input->len) : NULL;
    if (end == NULL) {
        bool stopped = client->waits;
        client->waits = false;
        if (stopped && uv_read_start(stream, give_buffer, on_input) != 0) {
            drop_client(client);
        }
        return;
    }
    (void)uv_read_stop(stream);
    client->waits = true;
    size_t len = (size_t)(end - input->text);
    char *line = mem_strndup(input->text, len);
    size_t left = input->len - len - 1;
    memmove(input->text, input->text + len + 1, left);
    input->len = left;
    input->text[left] = '\0';
    take_request(client, line);
    mem_free(line);
}

static void give_buffer(uv_handle_t *handle, size_t wanted, uv_buf_t *out)
{
    (void)handle;
    (void)wanted;
    *out = uv_buf_init(mem_resize(NULL, READ_BYTES, 1), READ_BYTES);
}

static void on_input(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct client *client = stream->data;
    INVARIANT(!client->waits); /* else nothing is read */
    if (count > 0) {
        strbuf_add(&client->input, buf->base, (size_t)count);
    }
    mem_free(buf->base);
    if (count < 0 || client->input.len > REQUEST_BYTES_MAX) {
        drop_client(client);
    } else if (count > 0) {
        take_line(client);
    }
}

static bool is_trusted(struct client *client)
{
    uv_os_fd_t fd;
    return uv_fileno((uv_handle_t *)&client->pipe, &fd) == 0 &&
           owner_trusts_peer(fd, client->who);
}

static void on_connection(uv_stream_t *stream, int status)
{
    struct control_socket *control = stream->data;
    if (status != 0) {
        return; /* out of descriptors: the client retries */
    }
    struct client *client = mem_zalloc(1, sizeof(*client));
    client->control = control;
    client->pipe.data = client;
    client->number = ++control->last_client;
    int made = uv_pipe_init(stream->loop, &client->pipe, 0);
    INVARIANT(made == 0);
    client->next = control->clients;
    control->clients = client;
    control->client_count++;
    control->open_handles++;
    if (uv_accept(stream, (uv_stream_t *)&client->pipe) != 0 ||
        !is_trusted(client) || control->client_count > CLIENTS_MAX ||
        uv_read_start((uv_stream_t *)&client->pipe, give_buffer, on_input) !=
            0) {
        drop_client(client);
    }
}

static void control_socket_closed(uv_handle_t *handle)
{
    struct control_socket *control = handle->data;
    control->open_handles--;
    free_when_closed(control);
}

/* Create a listening socket in the directory; -1 with an error. */
static int listen_in(const char *dir, struct diag *diag)
{
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un address;
    bool bound = false;
    if (dir_fd >= 0 && fd >= 0) {
        store_place_socket(&address, dir_fd);
        if (unlinkat(dir_fd, STORE_PLACE_SOCKET, 0) == 0 || errno == ENOENT) {
            crash_point("socket-unlinked");
            mode_t mask = umask(077);
            bound =
                bind(fd, (const struct sockaddr *)&address, sizeof(address)) ==
                0;
            (void)umask(mask);
            crash_point("socket-bound");
        }
    }
    if (!bound) {
        (void)diag_set(diag,
                       ERR_IO,
                       "create the socket %s/%s: %s",
                       dir,
                       STORE_PLACE_SOCKET,
                       strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
        }
        fd = -1;
    }
    if (dir_fd >= 0) {
        (void)close(dir_fd);
    }
    return fd;
}

enum err control_socket_open(struct control_socket **out,
                             struct uv_loop_s *loop,
                             const char *dir,
                             control_socket_request_fn fn,
                             void *ctx,
                             struct diag *diag)
{
    *out = NULL;
    int fd = listen_in(dir, diag);
    if (fd < 0) {
        return ERR_IO;
    }
    struct control_socket *control = mem_zalloc(1, sizeof(*control));
    control->fn = fn;
    control->ctx = ctx;
    control->pipe.data = control;
    int status = uv_pipe_init(loop, &control->pipe, 0);
    INVARIANT(status == 0);
    control->open_handles = 1;
    status = uv_pipe_open(&control->pipe, fd);
    if (status == 0) {
        status =
            uv_listen((uv_stream_t *)&control->pipe, BACKLOG, on_connection);
    } else {
        (void)close(fd);
    }
    if (status != 0) {
        control_socket_close(control);
        return diag_set(diag,
                        ERR_IO,
                        "listen on %s/%s: %s",
                        dir,
                        STORE_PLACE_SOCKET,
                        uv_strerror(status));
    }
    *out = control;
    return ERR_OK;
}

void control_socket_close(struct control_socket *control)
{
    if (control == NULL) {
        return;
    }
    control->closing = true;
    while (control->clients != NULL) {
        drop_client(control->clients);
    }
    uv_close((uv_handle_t *)&control->pipe, control_socket_closed);
}

static struct client *find_client(struct control_socket *control,
                                  uint64_t number)
{
    struct client *client = control->clients;
    while (client != NULL && client->number != number) {
        client = client->next;
    }
    return client;
}

/* The client has the answer: take its next request. */
static void reply_sent(uv_write_t *write, int status)
{
    struct reply *reply = write->data;
    struct client *client = find_client(reply->control, reply->client);
    mem_free(reply->text);
    mem_free(reply);
    if (client != NULL && status != 0) {
        drop_client(client);
    } else if (client != NULL) {
        take_line(client);
    }
}

void control_socket_answer(struct control_socket *control,
                           uint64_t id,
                           const char *json)
{
    uint32_t ix = 0;
    while (ix < control->request_count && control->requests[ix].id != id) {
        ix++;
    }
    if (ix == control->request_count) {
        return;
    }
    struct client *client = find_client(control, control->requests[ix].client);
    control->requests[ix] = control->requests[--control->request_count];
    if (client == NULL) {
        return; /* control_socket_close() has dropped it */
    }
    struct strbuf line = {0};
    strbuf_addf(&line, "%s\n", json);
    struct reply *reply = mem_zalloc(1, sizeof(*reply));
    reply->text = mem_strndup(line.text, line.len);
    reply->write.data = reply;
    reply->control = control;
    reply->client = client->number;
    uv_buf_t buf = uv_buf_init(reply->text, (unsigned)line.len);
    strbuf_release(&line);
    if (uv_write(&reply->write,
                 (uv_stream_t *)&client->pipe,
                 &buf,
                 1,
                 reply_sent) != 0) {
        reply_sent(&reply->write, -1);
    }
}
