/* SPDX-License-Identifier: MIT */
#include "http/stream.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/mem.h"

#include <string.h>

enum { PIECE_BYTES = 64 << 10, OLD_EVENTS = 200 };

/* A silent connection looks dead: send a comment this often. */
#define SILENCE_NS (15 * SECOND_NS)

/* The page believes that a stream is dead after twice this time. */
#define PING_NS (5 * SECOND_NS)

#define STREAM_TYPE "text/event-stream"

/* How long a number greater than ours may be that of a newer event. */
#define AHEAD_NS (3 * SECOND_NS)

struct stream {
    struct source *source;
    char id[33];   /* of the store */
    uint64_t last; /* number or version that was sent */
    bool live;     /* it has caught up */
    int64_t begun_ns;
    int64_t sent_ns;
};

/* Append kept events; return whether the stream has all there are. */
static bool add_kept(struct stream *stream, struct strbuf *out)
{
    const struct source_event *event;
    while (out->len < PIECE_BYTES &&
           (event = source_event(stream->source, stream->last + 1)) != NULL) {
        source_add_event(out, event->number, event->json);
        stream->last = event->number;
    }
    return stream->last >= source_last(stream->source);
}

static void reset(struct stream *stream, struct strbuf *out)
{
    (void)memcpy(stream->id, source_id(stream->source), sizeof(stream->id));
    stream->last = source_last(stream->source);
    strbuf_addf(out,
                "id: %llu\nevent: reset\ndata: {}\n\n",
                (unsigned long long)stream->last);
}

static bool more(void *ctx, struct strbuf *out)
{
    struct stream *stream = ctx;
    struct diag ignored = {0};
    int64_t now_ns = clock_boot_ns();
    bool ahead = stream->last > source_last(stream->source);
    if (strcmp(stream->id, source_id(stream->source)) != 0 ||
        (ahead && now_ns - stream->begun_ns > AHEAD_NS)) {
        reset(stream, out);
    } else if (ahead) {
        return true; /* the client may know more than this server yet */
    }
    bool all = add_kept(stream, out);
    bool old = !all && out->len == 0;
    if (old && stream->live) {
        return false; /* too slow */
    }
    if (old && source_add_events(stream->source,
                                 out,
                                 SOURCE_STREAM,
                                 stream->last,
                                 OLD_EVENTS,
                                 &stream->last,
                                 &ignored) != ERR_OK) {
        return false;
    }
    stream->live = stream->live || all;
    if (out->len == 0 && now_ns - stream->sent_ns >= SILENCE_NS) {
        strbuf_adds(out, ":\n\n");
    }
    if (out->len > 0) {
        stream->sent_ns = now_ns;
    }
    return true;
}

static void drop(void *ctx)
{
    mem_free(ctx);
}

/* Whether a stream may begin; else the answer is an error, or only a header. */
static bool may_begin(struct call *call)
{
    if (httpd_stream_count(call->api->httpd) >= HTTPD_STREAMS_MAX) {
        (void)call_fail(call, 503, ERR_BUSY, "too many streams are open");
        return false;
    }
    if (call_glance(call) == NULL) {
        return false;
    }
    call->response->type = STREAM_TYPE;
    return strcmp(call->request->method, "HEAD") != 0;
}

static void begin(struct call *call,
                  struct stream *stream,
                  bool (*fn)(void *stream, struct strbuf *out))
{
    *call->response = (struct http_response){
        .status = 200,
        .type = STREAM_TYPE,
        .more = fn,
        .drop = drop,
        .stream = stream,
    };
}

enum http_done stream_answer(struct call *call, uint64_t after)
{
    struct source *source = call->api->source;
    if (!may_begin(call)) {
        return HTTP_ANSWERED;
    }
    struct stream *stream = mem_zalloc(1, sizeof(*stream));
    stream->source = source;
    stream->begun_ns = clock_boot_ns();
    (void)memcpy(stream->id, source_id(source), sizeof(stream->id));
    stream->last = after == UINT64_MAX ? source_last(source) : after;
    begin(call, stream, more);
    return HTTP_ANSWERED;
}

/* --- versions ----------------------------------------------------------- */

/* Tell the page that there is something new, or that the stream lives. */
static bool more_versions(void *ctx, struct strbuf *out)
{
    struct stream *stream = ctx;
    int64_t now_ns = clock_boot_ns();
    uint64_t version = source_version(stream->source);
    if (version != stream->last || now_ns - stream->sent_ns >= PING_NS) {
        strbuf_addf(out,
                    "event: %s\ndata: %llu\n\n",
                    version != stream->last ? "news" : "ping",
                    (unsigned long long)version);
        stream->last = version;
        stream->sent_ns = now_ns;
    }
    return true;
}

enum http_done stream_versions(struct call *call)
{
    if (!may_begin(call)) {
        return HTTP_ANSWERED;
    }
    struct stream *stream = mem_zalloc(1, sizeof(*stream));
    stream->source = call->api->source;
    stream->last = UINT64_MAX;
    begin(call, stream, more_versions);
    return HTTP_ANSWERED;
}
