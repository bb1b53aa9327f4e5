/* SPDX-License-Identifier: MIT */
#include "work/peek.h"

#include "base/mem.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    COPY_BYTES = 256 << 10,  /* of a log that has ended */
    PIECE_BYTES = 256 << 10, /* of a running one, at once */
};

/* Append bytes in base64. */
static void add_base64(struct strbuf *out, const unsigned char *at, size_t len)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t ix = 0; ix < len; ix += 3) {
        uint32_t word = (uint32_t)at[ix] << 16;
        word |= ix + 1 < len ? (uint32_t)at[ix + 1] << 8 : 0;
        word |= ix + 2 < len ? (uint32_t)at[ix + 2] : 0;
        char text[4] = {
            digits[word >> 18 & 63],
            digits[word >> 12 & 63],
            ix + 1 < len ? digits[word >> 6 & 63] : '=',
            ix + 2 < len ? digits[word & 63] : '=',
        };
        strbuf_add(out, text, sizeof(text));
    }
}

/* Read up to `most` bytes of a log from `first` on, or its last ones if
 * `first` is UINT64_MAX; *start_out is where they begin. */
static void read_log(struct strbuf *out,
                     const char *dir,
                     uint64_t first,
                     size_t most,
                     uint64_t *start_out,
                     uint64_t *size_out)
{
    *start_out = first != UINT64_MAX ? first : 0;
    *size_out = 0;
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = dir_fd >= 0
                 ? openat(dir_fd, "log", O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
                 : -1;
    struct stat info;
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
        uint64_t size = (uint64_t)info.st_size;
        *size_out = size;
        if (first == UINT64_MAX && size > most) {
            *start_out = size - most;
        }
        unsigned char *bytes = mem_zalloc(most, 1);
        ssize_t got = pread(fd, bytes, most, (off_t)*start_out);
        if (got > 0) {
            add_base64(out, bytes, (size_t)got);
        }
        mem_free(bytes);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (dir_fd >= 0) {
        (void)close(dir_fd);
    }
}

void peek_add_copy(struct jsonw *json, uint64_t token, const char *dir)
{
    struct strbuf text = {0};
    uint64_t start;
    uint64_t size;
    read_log(&text, dir, UINT64_MAX, COPY_BYTES, &start, &size);
    jsonw_object(json, NULL);
    jsonw_int(json, "token", (int64_t)token);
    jsonw_int(json, "bytes", (int64_t)size);
    jsonw_int(json, "start", (int64_t)start);
    jsonw_text(json, "text", strbuf_text(&text));
    jsonw_object_end(json);
    strbuf_release(&text);
}

void peek_add_piece(struct jsonw *json,
                    const struct peek *peek,
                    const char *dir,
                    bool ended)
{
    struct strbuf text = {0};
    uint64_t start = peek->first;
    uint64_t size;
    if (!ended) {
        read_log(&text, dir, peek->first, PIECE_BYTES, &start, &size);
    }
    jsonw_object(json, NULL);
    jsonw_int(json, "token", (int64_t)peek->token);
    jsonw_int(json, "start", (int64_t)start);
    jsonw_text(json, "text", strbuf_text(&text));
    jsonw_bool(json, "ended", ended);
    jsonw_object_end(json);
    strbuf_release(&text);
}
