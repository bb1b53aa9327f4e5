/* SPDX-License-Identifier: MIT */
/*
 * sluice log: print the log of a task's session.
 *
 * The session writes the log file itself (see exec/attempt.h), so the file may
 * grow while it is read. A log that was too long has a hole in its middle,
 * after a line that reports the cut. The reader skips the hole and the NUL
 * bytes between that line and the next block.
 *
 * The store has the attempt and its state. Read the store first and the log
 * after it: once the store lists a session as finished, its log is complete.
 */
#include "base/clock.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "base/strip.h"
#include "cli/cli.h"
#include "view/client.h"
#include "view/task_log.h"
#include "work/far_log.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OPT_ATTEMPT = 1,
    PIECE_BYTES = 64 << 10,
    POLL_US = 100000,
    FAR_US = 100000, /* between two looks at a log elsewhere */
    FAR_TRIES = 100,
};

/* Stop following after this time without a scheduler: a scheduler may be about
 * to replace another. */
#define ABANDONED_NS (INT64_C(5) * 1000000000)

/* Last part of the line that marks a cut: see exec/shim_log.c. */
static const char mark_end[] = " bytes were cut here]\n";

struct log {
    struct cli_line line;
    uint32_t attempt; /* 0: the last attempt */
    bool follow;
    bool path_only;
    bool raw;
    bool terminal; /* remove escape sequences */
    struct store_place place;
    struct store *store;
    struct target target;
    bool news; /* the target has changed since it was read */
    uint64_t last_event;
    struct task_log last;  /* last attempt of the target */
    struct task_log shown; /* attempt being shown */
    struct strbuf path;    /* attempt directory */
    struct far_log *far;   /* it is on another machine; NULL: it is here */
    int fd;                /* log; -1: not open */
    off_t at;              /* offset of the next read */
    size_t matched;        /* bytes of mark_end just read */
    bool after_mark;       /* skip NUL bytes: they belong to the cut */
    struct strip strip;
    struct strbuf text; /* for JSON: the incomplete line */
    int code;           /* exit code after a failed write */
};

/* --- finding ------------------------------------------------------------ */

/* Open the attempt's log, if it exists. */
static void open_log(struct log *log)
{
    int dir_fd = open(strbuf_text(&log->path),
                      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir_fd < 0) {
        return;
    }
    struct stat stat;
    int fd = openat(dir_fd,
                    "log",
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    (void)close(dir_fd);
    if (fd >= 0 && (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode))) {
        (void)close(fd);
        fd = -1;
    }
    log->fd = fd;
}

/* --- showing ------------------------------------------------------------ */

static void write_out(struct log *log, const struct strbuf *text)
{
    if (log->code == CLI_OK && text->len > 0) {
        log->code = cli_write(text);
    }
}

/* Print one line as JSON. */
static void write_line(struct log *log)
{
    struct strbuf out = {0};
    task_log_add_json(&out,
                      &log->target,
                      &log->shown,
                      "line",
                      strbuf_text(&log->text));
    write_out(log, &out);
    strbuf_clear(&log->text);
    strbuf_release(&out);
}

/* Print each complete line of stripped text as JSON; split overlong lines. */
static void write_lines(struct log *log, const struct strbuf *text)
{
    const char *at = strbuf_text(text);
    const char *end = at + text->len;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline != NULL ? newline : end;
        strbuf_add(&log->text, at, (size_t)(stop - at));
        if (newline != NULL || log->text.len >= PIECE_BYTES) {
            write_line(log);
        }
        at = newline != NULL ? newline + 1 : end;
    }
}

/* Show bytes outside a cut. */
static void show(struct log *log, const struct strbuf *bytes)
{
    if (!log->terminal && !log->line.json) {
        write_out(log, bytes);
        return;
    }
    struct strbuf out = {0};
    strip_add(&log->strip, &out, strbuf_text(bytes), bytes->len);
    if (log->line.json) {
        write_lines(log, &out);
    } else {
        write_out(log, &out);
    }
    strbuf_release(&out);
}

/* Show a piece of the log, without NUL bytes that follow a mark. */
static void show_piece(struct log *log, const char *bytes, size_t len)
{
    struct strbuf kept = {0};
    size_t begin = 0;
    for (size_t ix = 0; ix < len; ix++) {
        if (log->after_mark && bytes[ix] == '\0') {
            strbuf_add(&kept, bytes + begin, ix - begin);
            begin = ix + 1;
            continue;
        }
        if (bytes[ix] != mark_end[log->matched]) {
            log->matched = 0;
        }
        if (bytes[ix] == mark_end[log->matched]) {
            log->matched++;
        }
        log->after_mark = mark_end[log->matched] == '\0';
        if (log->after_mark) {
            log->matched = 0;
        }
    }
    strbuf_add(&kept, bytes + begin, len - begin);
    show(log, &kept);
    strbuf_release(&kept);
}

/* Report bytes that were cut before they were read. */
static void show_cut(struct log *log, off_t bytes)
{
    if (log->after_mark) {
        return; /* the line before the hole reports it */
    }
    struct strbuf line = {0};
    strbuf_addf(&line,
                "\n[sluice: %lld bytes were cut here]\n",
                (long long)bytes);
    show(log, &line);
    strbuf_release(&line);
}

/* Skip holes and return the number of bytes to read next; 0: none yet. */
static size_t next_piece(struct log *log)
{
    struct stat stat;
    if (fstat(log->fd, &stat) != 0) {
        return 0;
    }
    if (stat.st_size < log->at) {
        /* A file system without holes: the shim truncated the file. */
        show_cut(log, log->at - stat.st_size);
        log->at = stat.st_size;
    }
    off_t data = lseek(log->fd, log->at, SEEK_DATA);
    if (data < 0) {
        /* ENXIO: no data up to the end of the file. */
        log->at = errno == ENXIO ? stat.st_size : log->at;
        data = log->at;
    }
    if (data > log->at) {
        show_cut(log, data - log->at);
        log->at = data;
    }
    off_t hole = lseek(log->fd, log->at, SEEK_HOLE);
    off_t end = hole > log->at ? hole : stat.st_size;
    off_t len = end - log->at;
    return len <= 0 ? 0 : len < PIECE_BYTES ? (size_t)len : PIECE_BYTES;
}

/* Show bytes added since the last call. */
static void show_news(struct log *log)
{
    char *bytes = mem_resize(NULL, PIECE_BYTES, 1);
    if (log->fd < 0) {
        open_log(log);
    }
    while (log->fd >= 0 && log->code == CLI_OK) {
        size_t want = next_piece(log);
        ssize_t got = want > 0 ? pread(log->fd, bytes, want, log->at) : 0;
        if (got <= 0) {
            break;
        }
        log->at += got;
        show_piece(log, bytes, (size_t)got);
    }
    mem_free(bytes);
}

/* Flush and close the log being shown. */
static void show_end(struct log *log)
{
    struct strbuf rest = {0};
    strip_end(&log->strip, &rest);
    if (log->line.json) {
        write_lines(log, &rest);
        if (log->text.len > 0) {
            write_line(log);
        }
    } else if (log->terminal) {
        write_out(log, &rest);
    }
    strbuf_release(&rest);
    if (log->fd >= 0) {
        (void)close(log->fd);
    }
    log->fd = -1;
    log->at = 0;
    log->matched = 0;
    log->after_mark = false;
}

/* --- following ---------------------------------------------------------- */

static enum err on_event(void *ctx, const struct store_event *event)
{
    struct log *log = ctx;
    log->last_event = event->number;
    if (event->run == log->target.run && event->task != STORE_NONE) {
        log->news = true; /* of the task, or of the first task of its session */
    }
    return ERR_OK;
}

/* Update the target. */
static enum err refresh(struct log *log, struct diag *diag)
{
    enum err err = store_events(log->store,
                                &(struct store_range){.after = log->last_event},
                                on_event,
                                log,
                                diag);
    if (err != ERR_OK || !log->news) {
        return err;
    }
    struct target now;
    err = target_find(&now,
                      log->store,
                      log->target.task_id,
                      log->target.run_id,
                      TARGET_TASK_OR_GROUP,
                      diag);
    if (err == ERR_OK) {
        target_release(&log->target);
        log->target = now;
        log->news = false;
        err = task_log_find(&log->last, log->store, &log->target, 0, diag);
    } else {
        target_release(&now);
    }
    return err;
}

static bool is_in_flight(const struct target *target)
{
    return strcmp(target->state, "starting") == 0 ||
           strcmp(target->state, "running") == 0;
}

static bool has_ended(const struct target *target)
{
    return !is_in_flight(target) && strcmp(target->state, "waiting") != 0 &&
           strcmp(target->state, "ready") != 0;
}

/* Get what is new in the log of a session on another machine; `all`: wait
 * until its worker has sent what there is. */
static enum err pull(struct log *log, bool all, struct diag *diag)
{
    bool more = log->far != NULL;
    enum err err = ERR_OK;
    for (int tries = 0; more && tries < FAR_TRIES; tries++) {
        err = far_log_pull(log->far, &more, diag);
        more = more && all && err == ERR_OK;
        if (more) {
            (void)usleep(FAR_US);
        }
    }
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* The attempt has no directory here: maybe another machine has it. */
static enum err look_far(struct log *log, uint64_t token, struct diag *diag)
{
    enum err err = far_log_open(&log->far, &log->place, token, diag);
    if (err == ERR_OK) {
        strbuf_clear(&log->path);
        strbuf_adds(&log->path, far_log_dir(log->far));
        err = pull(log, !log->follow, diag);
    }
    return err == ERR_NOT_FOUND ? ERR_OK : err;
}

/* Start showing an attempt's log. */
static enum err
begin(struct log *log, const struct task_log *attempt, struct diag *diag)
{
    bool another = log->shown.token != 0;
    if (another) {
        show_end(log);
    }
    log->shown = *attempt;
    if ((another || attempt->confined) && log->terminal && !log->line.json &&
        !log->path_only) {
        struct strbuf head = {0};
        strbuf_addf(&head,
                    "[sluice: attempt %u%s]\n",
                    attempt->number,
                    attempt->confined ? ", in a sandbox" : "");
        write_out(log, &head);
        strbuf_release(&head);
    }
    strbuf_clear(&log->path);
    enum err err = task_log_add_dir(&log->path,
                                    log->store,
                                    log->place.home,
                                    &log->target,
                                    attempt,
                                    diag);
    far_log_close(log->far);
    log->far = NULL;
    struct stat info;
    if (err == ERR_OK && stat(strbuf_text(&log->path), &info) != 0) {
        err = look_far(log, attempt->token, diag);
    }
    return err;
}

/* Whether no process could advance the task for ABANDONED_NS. */
static bool is_abandoned(const struct log *log, int64_t *since_ns)
{
    struct store_owner owner;
    struct diag diag = {0};
    bool alone = store_owner(log->store, &owner, &diag) == ERR_NOT_FOUND;
    if (alone && is_in_flight(&log->target)) {
        alone = task_log_is_over(strbuf_text(&log->path), &log->shown.row);
    }
    int64_t now_ns = clock_boot_ns();
    if (!alone) {
        *since_ns = now_ns;
    }
    return now_ns - *since_ns >= ABANDONED_NS;
}

/* Whether following is complete. */
static bool is_over(const struct log *log)
{
    bool current = log->last.token == log->shown.token;
    if (log->code != CLI_OK || (current && has_ended(&log->target))) {
        return true;
    }
    return log->attempt != 0 && !(current && is_in_flight(&log->target));
}

static enum err follow(struct log *log, struct diag *diag)
{
    int64_t alone_since_ns = clock_boot_ns();
    for (;;) {
        enum err err = refresh(log, diag);
        if (err != ERR_OK) {
            return err;
        }
        if (log->shown.token != 0) {
            err = pull(log, false, diag);
            if (err != ERR_OK) {
                return err;
            }
            show_news(log);
        }
        if (is_over(log)) {
            return ERR_OK;
        }
        if (log->last.token != log->shown.token) {
            err = begin(log, &log->last, diag);
            if (err != ERR_OK) {
                return err;
            }
            continue;
        }
        if (is_abandoned(log, &alone_since_ns)) {
            (void)fprintf(stderr,
                          "sluice %s: %s is %s, but no scheduler is running: "
                          "resume with 'sluice run'\n",
                          log->line.command->name,
                          log->target.task_id,
                          log->target.state);
            return ERR_OK;
        }
        (void)usleep(POLL_US);
    }
}

/* --- command ------------------------------------------------------------ */

static int print_path(const struct log *log)
{
    struct strbuf out = {0};
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/log", strbuf_text(&log->path));
    if (log->line.json) {
        task_log_add_json(&out,
                          &log->target,
                          &log->shown,
                          "path",
                          strbuf_text(&path));
    } else {
        strbuf_addf(&out, "%s\n", strbuf_text(&path));
    }
    strbuf_release(&path);
    return cli_print(&out);
}

static int say_none(const struct log *log)
{
    if (log->attempt != 0) {
        (void)fprintf(stderr,
                      "sluice %s: %s has no attempt %u\n",
                      log->line.command->name,
                      log->target.task_id,
                      log->attempt);
        return CLI_USAGE;
    }
    (void)fprintf(
        stderr,
        "sluice %s: %s is %s and has not started: see 'sluice why %s'\n",
        log->line.command->name,
        log->target.task_id,
        log->target.state,
        log->target.task_id);
    return CLI_NOT_ALL_DONE;
}

/* Show the log of the attempt; return the exit code. */
static int show_log(struct log *log, struct diag *diag)
{
    if (log->path_only) {
        return print_path(log);
    }
    if (log->follow) {
        enum err err = follow(log, diag);
        if (err != ERR_OK) {
            return cli_fail_store(log->line.command, err, diag);
        }
        show_end(log);
        return log->code;
    }
    show_news(log);
    if (log->fd < 0 &&
        !task_log_is_empty(strbuf_text(&log->path), &log->shown)) {
        (void)fprintf(stderr,
                      "sluice %s: attempt %u of %s has no log: it has not "
                      "started, or 'sluice gc' removed it\n",
                      log->line.command->name,
                      log->shown.number,
                      log->target.task_id);
        return CLI_NOT_ALL_DONE;
    }
    show_end(log);
    return log->code;
}

/* Find the task and its attempt, and show the log; return the exit code. */
static int look(struct log *log, const char *task)
{
    struct diag diag = {0};
    struct task_log attempt = {0};
    enum err err =
        store_open(&log->store, log->place.address, STORE_READ, &diag);
    if (err == ERR_OK) {
        err = target_find(&log->target,
                          log->store,
                          task,
                          log->line.wanted.run,
                          TARGET_TASK_OR_GROUP,
                          &diag);
    }
    if (err == ERR_OK) {
        log->last_event = log->target.last_event;
        err = task_log_find(&attempt,
                            log->store,
                            &log->target,
                            log->attempt,
                            &diag);
    }
    if (err == ERR_OK && log->follow) {
        err = task_log_find(&log->last, log->store, &log->target, 0, &diag);
    }
    if (err == ERR_OK && attempt.token != 0) {
        err = begin(log, &attempt, &diag);
    }
    if (err != ERR_OK) {
        return cli_fail_store(log->line.command, err, &diag);
    }
    bool waits = log->follow && !log->path_only && log->attempt == 0;
    if (attempt.token == 0 && !waits) {
        return say_none(log);
    }
    return show_log(log, &diag);
}

static int take_option(struct cli_line *line,
                       const struct cli_option *option,
                       char *argument)
{
    struct log *log = (struct log *)line;
    INVARIANT(option->code == OPT_ATTEMPT);
    char *end;
    errno = 0;
    unsigned long number = strtoul(argument, &end, 10);
    if (argument[0] < '0' || argument[0] > '9' || *end != '\0' || errno != 0 ||
        number == 0 || number >= UINT32_MAX) {
        return cli_fail(line->command,
                        "--attempt %s: not an attempt number, counted from 1",
                        argument);
    }
    log->attempt = (uint32_t)number;
    return CLI_OK;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct log log = {.fd = -1};
    int code = cli_parse(&log.line, command, argc, argv);
    const char *run = log.line.wanted.run;
    if (code != CLI_END) {
        return code;
    }
    if (run != NULL && cli_check_id(command, "run", run) != CLI_OK) {
        return CLI_USAGE;
    }
    if (optind + 1 != argc) {
        return cli_fail(command,
                        optind == argc ? "missing TASK"
                                       : "too many arguments; name one task");
    }
    if (cli_check_id(command, "task", argv[optind]) != CLI_OK) {
        return CLI_USAGE;
    }
    code = cli_find_store(&log.line, &log.place);
    if (code != CLI_OK) {
        return code;
    }
    log.terminal = isatty(STDOUT_FILENO) == 1 && !log.raw;
    code = look(&log, argv[optind]);
    if (log.fd >= 0) {
        (void)close(log.fd);
    }
    far_log_close(log.far);
    strbuf_release(&log.path);
    strbuf_release(&log.text);
    target_release(&log.target);
    store_close(log.store);
    store_place_release(&log.place);
    return code;
}

static const struct cli_option options[] = {
    {"attempt", "N", "print this attempt (default: the last)", OPT_ATTEMPT},
    {"follow",
     NULL,
     "keep printing until the task has finished",
     CLI_SHORT('f', log, follow)},
    CLIENT_OPTION_JSON,
    {"path",
     NULL,
     "print only the path of the log file",
     CLI_AT(log, path_only)},
    {"raw",
     NULL,
     "print the unchanged bytes, even on a terminal",
     CLI_AT(log, raw)},
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_log = {
    .name = "log",
    .synopsis = "[OPTION]... TASK",
    .summary = "print the output of a task's session",
    .options = options,
    .run = run,
    .take = take_option,
};
