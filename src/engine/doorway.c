/* SPDX-License-Identifier: MIT */
#include "engine/doorway.h"

#include "base/crash.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "engine/orders.h"
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
    struct doorway *doorway;
    struct client *next;
    uint64_t number;
    char who[64];
    struct strbuf input;
};

/* An answer on its way. */
struct reply {
    uv_write_t write;
    char *text;
};

struct doorway {
    uv_pipe_t pipe;
    doorway_order_fn fn;
    void *ctx;
    struct client *clients;
    uint32_t client_count;
    uint64_t last_client;
    uint64_t last_order;
    struct doorway_order *orders; /* not answered yet */
    uint32_t order_count;
    uint32_t order_capacity;
    uint32_t open_handles;
    bool closing;
};

/* Which client waits for which answer. */
struct doorway_order {
    uint64_t id;
    uint64_t client;
};

static void free_when_closed(struct doorway *doorway)
{
    if (doorway->closing && doorway->open_handles == 0) {
        mem_free(doorway->orders);
        mem_free(doorway);
    }
}

static void client_closed(uv_handle_t *handle)
{
    struct client *client = handle->data;
    struct doorway *doorway = client->doorway;
    strbuf_release(&client->input);
    mem_free(client);
    doorway->open_handles--;
    free_when_closed(doorway);
}

static void drop_client(struct client *client)
{
    struct doorway *doorway = client->doorway;
    struct client **place = &doorway->clients;
    while (*place != NULL && *place != client) {
        place = &(*place)->next;
    }
    if (*place == client) {
        *place = client->next;
        doorway->client_count--;
        uv_close((uv_handle_t *)&client->pipe, client_closed);
    }
}

static void take_order(struct client *client, const char *json)
{
    struct doorway *doorway = client->doorway;
    MEM_GROW(doorway->orders, doorway->order_count, doorway->order_capacity);
    uint64_t id = ++doorway->last_order;
    doorway->orders[doorway->order_count++] = (struct doorway_order){
        .id = id,
        .client = client->number,
    };
    doorway->fn(doorway->ctx, id, client->who, json);
}

/* Take every whole line out of the input. */
static void take_lines(struct client *client)
{
    struct strbuf *input = &client->input;
    size_t from = 0;
    while (from < input->len) {
        char *line = input->text + from;
        char *end = memchr(line, '\n', input->len - from);
        if (end == NULL) {
            break;
        }
        *end = '\0';
        take_order(client, line);
        from += (size_t)(end - line) + 1;
    }
    size_t left = input->len - from;
    if (from > 0) {
        memmove(input->text, input->text + from, left);
        input->len = left;
        input->text[left] = '\0';
    }
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
    if (count > 0) {
        strbuf_add(&client->input, buf->base, (size_t)count);
    }
    mem_free(buf->base);
    if (count < 0 || client->input.len > ORDERS_BYTES_MAX) {
        drop_client(client);
    } else if (count > 0) {
        take_lines(client);
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
    struct doorway *doorway = stream->data;
    if (status != 0) {
        return; /* out of descriptors: the client tries again */
    }
    struct client *client = mem_zalloc(1, sizeof(*client));
    client->doorway = doorway;
    client->pipe.data = client;
    client->number = ++doorway->last_client;
    int made = uv_pipe_init(stream->loop, &client->pipe, 0);
    INVARIANT(made == 0);
    client->next = doorway->clients;
    doorway->clients = client;
    doorway->client_count++;
    doorway->open_handles++;
    if (uv_accept(stream, (uv_stream_t *)&client->pipe) != 0 ||
        !is_trusted(client) || doorway->client_count > CLIENTS_MAX ||
        uv_read_start((uv_stream_t *)&client->pipe, give_buffer, on_input) !=
            0) {
        drop_client(client);
    }
}

static void doorway_closed(uv_handle_t *handle)
{
    struct doorway *doorway = handle->data;
    doorway->open_handles--;
    free_when_closed(doorway);
}

/* A listening socket in the directory; -1 with an error. */
static int listen_in(const char *dir, struct diag *diag)
{
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un address;
    bool bound = false;
    if (dir_fd >= 0 && fd >= 0) {
        store_place_socket(&address, dir_fd);
        if (unlinkat(dir_fd, STORE_PLACE_SOCKET, 0) == 0 || errno == ENOENT) {
            crash_point("doorway-unlinked");
            mode_t mask = umask(077);
            bound =
                bind(fd, (const struct sockaddr *)&address, sizeof(address)) ==
                0;
            (void)umask(mask);
            crash_point("doorway-bound");
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

enum err doorway_open(struct doorway **out,
                      struct uv_loop_s *loop,
                      const char *dir,
                      doorway_order_fn fn,
                      void *ctx,
                      struct diag *diag)
{
    *out = NULL;
    int fd = listen_in(dir, diag);
    if (fd < 0) {
        return ERR_IO;
    }
    struct doorway *doorway = mem_zalloc(1, sizeof(*doorway));
    doorway->fn = fn;
    doorway->ctx = ctx;
    doorway->pipe.data = doorway;
    int status = uv_pipe_init(loop, &doorway->pipe, 0);
    INVARIANT(status == 0);
    doorway->open_handles = 1;
    status = uv_pipe_open(&doorway->pipe, fd);
    if (status == 0) {
        status =
            uv_listen((uv_stream_t *)&doorway->pipe, BACKLOG, on_connection);
    } else {
        (void)close(fd);
    }
    if (status != 0) {
        doorway_close(doorway);
        return diag_set(diag,
                        ERR_IO,
                        "listen on %s/%s: %s",
                        dir,
                        STORE_PLACE_SOCKET,
                        uv_strerror(status));
    }
    *out = doorway;
    return ERR_OK;
}

void doorway_close(struct doorway *doorway)
{
    if (doorway == NULL) {
        return;
    }
    doorway->closing = true;
    while (doorway->clients != NULL) {
        drop_client(doorway->clients);
    }
    uv_close((uv_handle_t *)&doorway->pipe, doorway_closed);
}

static void reply_sent(uv_write_t *write, int status)
{
    struct reply *reply = write->data;
    (void)status; /* a client that is gone is noticed when reading */
    mem_free(reply->text);
    mem_free(reply);
}

static struct client *find_client(struct doorway *doorway, uint64_t number)
{
    struct client *client = doorway->clients;
    while (client != NULL && client->number != number) {
        client = client->next;
    }
    return client;
}

void doorway_answer(struct doorway *doorway, uint64_t id, const char *json)
{
    uint32_t ix = 0;
    while (ix < doorway->order_count && doorway->orders[ix].id != id) {
        ix++;
    }
    if (ix == doorway->order_count) {
        return;
    }
    struct client *client = find_client(doorway, doorway->orders[ix].client);
    doorway->orders[ix] = doorway->orders[--doorway->order_count];
    if (client == NULL) {
        return;
    }
    struct strbuf line = {0};
    strbuf_addf(&line, "%s\n", json);
    struct reply *reply = mem_zalloc(1, sizeof(*reply));
    reply->text = mem_strndup(line.text, line.len);
    reply->write.data = reply;
    uv_buf_t buf = uv_buf_init(reply->text, (unsigned)line.len);
    strbuf_release(&line);
    if (uv_write(&reply->write,
                 (uv_stream_t *)&client->pipe,
                 &buf,
                 1,
                 reply_sent) != 0) {
        reply_sent(&reply->write, 0);
    }
}
