/* SPDX-License-Identifier: MIT */
#include "work/far_log.h"

#include "base/mem.h"
#include "base/strbuf.h"
#include "exec/attempt_file.h"
#include "store/pg_link.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct far_log {
    struct pg_link link;
    uint64_t token;
    struct strbuf dir;
    int fd;
    int64_t size; /* of the file, without a note about what is missing */
    bool cut;     /* that note was written */
    off_t end;    /* of the file; what a failed write has left is after it */
};

static enum err bad_file(const struct far_log *log, struct diag *diag)
{
    return diag_set(diag,
                    ERR_IO,
                    "write %s/log: %s",
                    strbuf_text(&log->dir),
                    strerror(errno));
}

enum err far_log_open(struct far_log **out,
                      const struct store_place *place,
                      uint64_t token,
                      struct diag *diag)
{
    *out = NULL;
    if (!store_has_workers(place->address)) {
        return ERR_NOT_FOUND;
    }
    struct far_log *log = mem_zalloc(1, sizeof(*log));
    log->token = token;
    log->fd = -1;
    strbuf_addf(&log->dir,
                "%s/far/%llu",
                place->home,
                (unsigned long long)token);
    enum err err = attempt_file_make_dir(strbuf_text(&log->dir), diag);
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/log", strbuf_text(&log->dir));
    if (err == ERR_OK) {
        /* Begun anew: a part of an earlier look may be of a cut log. */
        log->fd = open(strbuf_text(&path),
                       O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                       0600);
        err = log->fd >= 0 ? ERR_OK : bad_file(log, diag);
    }
    strbuf_release(&path);
    if (err == ERR_OK) {
        err = pg_link_init(&log->link, place->address, diag);
    }
    if (err != ERR_OK) {
        far_log_close(log);
        return err;
    }
    *out = log;
    return ERR_OK;
}

const char *far_log_dir(const struct far_log *log)
{
    return strbuf_text(&log->dir);
}

void far_log_close(struct far_log *log)
{
    if (log == NULL) {
        return;
    }
    if (log->fd >= 0) {
        (void)close(log->fd);
    }
    pg_link_release(&log->link);
    strbuf_release(&log->dir);
    mem_free(log);
}

static bool append(struct far_log *log, const char *bytes, size_t len)
{
    if (lseek(log->fd, log->end, SEEK_SET) < 0 ||
        !attempt_file_write_all(log->fd, bytes, len)) {
        return false;
    }
    log->end += (off_t)len;
    return true;
}

/* Append what a piece has that the file has not. */
static enum err take_piece(struct far_log *log,
                           const PGresult *result,
                           int column,
                           struct diag *diag)
{
    size_t len = 0;
    int64_t start = pg_i64(result, 0, column);
    unsigned char *bytes = PQunescapeBytea(
        (const unsigned char *)PQgetvalue(result, 0, column + 1),
        &len);
    enum err err = ERR_OK;
    if (bytes == NULL) {
        return diag_set(diag, ERR_IO, "no memory for a log");
    }
    if (start > log->size && !log->cut) {
        struct strbuf note = {0};
        strbuf_addf(&note,
                    "[sluice: %lld bytes are on the worker's machine only]\n",
                    (long long)(start - log->size));
        if (append(log, note.text, note.len)) {
            log->cut = true;
            log->size = start;
        } else {
            err = bad_file(log, diag);
        }
        strbuf_release(&note);
    }
    if (err == ERR_OK && start <= log->size &&
        start + (int64_t)len > log->size) {
        size_t skip = (size_t)(log->size - start);
        if (append(log, (const char *)bytes + skip, len - skip)) {
            log->size = start + (int64_t)len;
        } else {
            err = bad_file(log, diag);
        }
    }
    PQfreemem(bytes);
    return err;
}

/* Take the copy of a log that has ended. ERR_NOT_FOUND: there is none. */
static enum err take_copy(struct far_log *log, struct diag *diag)
{
    struct pg_params params = {0};
    enum err err = ERR_OK;
    pg_add_i64(&params, (int64_t)log->token);
    PGresult *result = pg_run(&log->link,
                              "SELECT start, text FROM log WHERE token = $1",
                              &params,
                              &err,
                              diag);
    if (err == ERR_OK && PQntuples(result) == 0) {
        err = ERR_NOT_FOUND;
    } else if (err == ERR_OK) {
        err = take_piece(log, result, 0, diag);
    }
    PQclear(result);
    return err;
}

/* Ask for a piece, and take the one that came. */
static enum err ask(struct far_log *log, bool *more_out, struct diag *diag)
{
    struct pg_params params = {0};
    enum err err = ERR_OK;
    int64_t before = log->size;
    pg_add_i64(&params, (int64_t)log->token);
    pg_add_i64(&params, log->size);
    PGresult *result = pg_run(
        &log->link,
        "INSERT INTO peek AS p SELECT token, worker, clock_timestamp(), $2,"
        " -1, '', false FROM work WHERE token = $1"
        " AND state IN ('accepted', 'started') ON CONFLICT (token) DO UPDATE"
        " SET wanted = excluded.wanted, first = $2 RETURNING start, text",
        &params,
        &err,
        diag);
    if (err == ERR_OK && PQntuples(result) == 0) {
        err =
            diag_set(diag, ERR_NOT_FOUND, "its log is on no machine any more");
    } else if (err == ERR_OK) {
        int64_t start = pg_i64(result, 0, 0);
        if (start >= 0 && start <= log->size) {
            err = take_piece(log, result, 0, diag);
        }
        *more_out = start < 0 || start > before || log->size > before;
    }
    PQclear(result);
    if (err == ERR_OK) {
        err = pg_do(&log->link, "NOTIFY " PG_TO_WORKERS, NULL, NULL, diag);
    }
    return err;
}

enum err far_log_pull(struct far_log *log, bool *more_out, struct diag *diag)
{
    *more_out = false;
    enum err err = pg_link_need(&log->link, diag);
    if (err == ERR_OK) {
        err = take_copy(log, diag);
        if (err == ERR_NOT_FOUND) {
            err = ask(log, more_out, diag);
        }
    }
    return err;
}
