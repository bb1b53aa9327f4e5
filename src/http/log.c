/* SPDX-License-Identifier: MIT */
#include "http/log.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "view/task_log.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1 << 20 };

/* How long one search may take. */
#define FIND_NS (3 * SECOND_NS)

/* A log that is open. */
struct file {
    int fd;
    uint32_t number;
    bool over;
    uint64_t size;
};

static enum err open_file(struct file *out,
                          const char *dir,
                          const struct task_log *log,
                          struct diag *diag)
{
    struct strbuf path = {0};
    struct stat stat;
    strbuf_addf(&path, "%s/log", dir);
    int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    out->fd = open(strbuf_text(&path), flags);
    strbuf_release(&path);
    if (out->fd < 0 && task_log_is_empty(dir, log)) {
        out->fd = open("/dev/null", flags);
        out->number = log->number;
        out->over = true;
        return out->fd >= 0 ? ERR_OK
                            : diag_set(diag, ERR_UNAVAILABLE, "/dev/null");
    }
    if (out->fd < 0 || fstat(out->fd, &stat) != 0 || !S_ISREG(stat.st_mode)) {
        return diag_set(diag, ERR_NOT_FOUND, "no log exists");
    }
    out->number = log->number;
    out->over = task_log_is_over(dir, &log->row);
    out->size = (uint64_t)stat.st_size;
    return ERR_OK;
}

/* Open the log of an attempt. Close out->fd in any case. */
static enum err
open_log(struct file *out, const struct log_name *name, struct diag *diag)
{
    struct store *store = NULL;
    struct target target = {0};
    struct task_log log = {0};
    struct strbuf dir = {0};
    *out = (struct file){.fd = -1};
    enum err err = store_open(&store, name->place->address, STORE_READ, diag);
    if (err == ERR_OK) {
        err = target_find(&target,
                          store,
                          name->task,
                          name->run,
                          TARGET_TASK_OR_GROUP,
                          diag);
    }
    if (err == ERR_OK) {
        err = task_log_find(&log, store, &target, name->number, diag);
    }
    if (err == ERR_OK && log.token == 0) {
        err = diag_set(diag, ERR_NOT_FOUND, "no such attempt");
    }
    if (err == ERR_OK) {
        err = task_log_add_dir(&dir,
                               store,
                               name->place->home,
                               &target,
                               &log,
                               diag);
    }
    if (err == ERR_OK) {
        err = open_file(out, strbuf_text(&dir), &log, diag);
    }
    strbuf_release(&dir);
    target_release(&target);
    store_close(store);
    return err;
}

static void close_log(struct file *file)
{
    if (file->fd >= 0) {
        (void)close(file->fd);
    }
}

enum err log_read(struct log_part *out,
                  const struct log_name *name,
                  uint64_t from,
                  size_t max,
                  struct diag *diag)
{
    struct file file;
    *out = (struct log_part){0};
    enum err err = open_log(&file, name, diag);
    if (err == ERR_OK) {
        if (from == LOG_END) {
            from = file.size > max ? file.size - max : 0;
        }
        from = from < file.size ? from : file.size;
        char *bytes = mem_resize(NULL, max, 1);
        ssize_t len = pread(file.fd, bytes, max, (off_t)from);
        len = len > 0 ? len : 0;
        strbuf_add(&out->raw, bytes, (size_t)len);
        mem_free(bytes);
        out->number = file.number;
        out->over = file.over;
        out->from = from;
        out->next = from + (uint64_t)len;
        out->size = file.size;
    }
    close_log(&file);
    return err;
}

void log_part_release(struct log_part *part)
{
    strbuf_release(&part->raw);
}

/* Make text of bytes in place: NUL becomes a blank. */
static void clean(char *text, size_t len)
{
    for (size_t ix = 0; ix < len; ix++) {
        text[ix] = (char)(text[ix] == '\0' ? ' ' : text[ix]);
    }
    utf8_repair(text, len);
}

void log_add_text(struct strbuf *out, const struct log_part *part)
{
    size_t begin = out->len;
    strbuf_add(out, strbuf_text(&part->raw), part->raw.len);
    if (out->len > begin) {
        clean(out->text + begin, out->len - begin);
    }
}

/* --- searching ---------------------------------------------------------- */

static void
note(struct log_found *found, uint64_t at, const char *line, size_t len)
{
    struct log_line *made = &found->lines[found->count++];
    size_t cut = len < LOG_LINE_BYTES - 1 ? len : LOG_LINE_BYTES - 1;
    made->at = at;
    memcpy(made->text, line, cut);
    made->text[cut] = '\0';
    clean(made->text, cut);
}

/* Search the whole lines of a chunk that begins at `at`; return how many bytes
 * are done. `last`: nothing follows the chunk. */
static size_t search_chunk(struct log_found *found,
                           const char *text,
                           uint64_t at,
                           const char *bytes,
                           size_t len,
                           bool last)
{
    size_t done = 0;
    size_t text_len = strlen(text);
    while (done < len && found->count < LOG_FOUND_MAX) {
        const char *rest = bytes + done;
        const char *hit = memmem(rest, len - done, text, text_len);
        const char *stop = hit != NULL ? hit : bytes + len;
        const char *begin = memrchr(rest, '\n', (size_t)(stop - rest));
        begin = begin != NULL ? begin + 1 : rest;
        if (hit == NULL && !last && begin == bytes) {
            /* The line is longer than a chunk; the text may go on. */
            return text_len <= len ? len - text_len + 1 : len;
        }
        if (hit == NULL) {
            /* A line without an end comes again with the next chunk. */
            return last ? len : (size_t)(begin - bytes);
        }
        const char *end = memchr(hit, '\n', len - (size_t)(hit - bytes));
        if (end == NULL && !last && begin != bytes) {
            return (size_t)(begin - bytes);
        }
        end = end != NULL ? end : bytes + len;
        note(found,
             at + (uint64_t)(begin - bytes),
             begin,
             (size_t)(end - begin));
        done = (size_t)(end - bytes) + 1;
    }
    return done < len ? done : len;
}

enum err log_find(struct log_found *out,
                  const struct log_name *name,
                  const char *text,
                  uint64_t from,
                  struct diag *diag)
{
    struct file file;
    *out = (struct log_found){.next = LOG_END};
    enum err err = open_log(&file, name, diag);
    if (err != ERR_OK) {
        close_log(&file);
        return err;
    }
    int64_t until_ns = clock_boot_ns() + FIND_NS;
    char *bytes = mem_resize(NULL, CHUNK_BYTES, 1);
    out->lines = mem_zalloc(LOG_FOUND_MAX, sizeof(out->lines[0]));
    out->size = file.size;
    uint64_t at = from;
    ssize_t len = 0;
    while (at < file.size && out->count < LOG_FOUND_MAX &&
           clock_boot_ns() < until_ns &&
           (len = pread(file.fd, bytes, CHUNK_BYTES, (off_t)at)) > 0) {
        bool last = at + (uint64_t)len >= file.size;
        at += search_chunk(out, text, at, bytes, (size_t)len, last);
    }
    out->next = at < file.size && len > 0 ? at : LOG_END;
    mem_free(bytes);
    close_log(&file);
    return ERR_OK;
}

void log_found_release(struct log_found *found)
{
    mem_free(found->lines);
    *found = (struct log_found){0};
}
