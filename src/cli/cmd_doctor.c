/* SPDX-License-Identifier: MIT */
/*
 * sluice doctor: diagnostics of a store, its scheduler and this machine.
 *
 * Doctor changes nothing. Each check reports at least one finding: ok, a note
 * (needs no action), a warning or a fault. Doctor reads the store first and the
 * attempt directories after it, so that an attempt that finishes meanwhile
 * counts as finished, not as lost.
 */
#include "base/duration.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/plain.h"
#include "cli/cli.h"
#include "exec/attempt_row.h"
#include "git/hub.h"
#include "store/sqlite.h"
#include "view/client.h"
#include "work/home.h"
#include "work/owner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/magic.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
    PING_MS = 3000,
    FILES_FREE_MIN = 1000,
    /* The first SQLite version that fixes the WAL-reset bug. */
    SQLITE_GOOD = 3051003,
};

#define SPACE_FREE_MIN (UINT64_C(256) << 20)

enum level { LEVEL_OK, LEVEL_NOTE, LEVEL_WARNING, LEVEL_FAULT };

static const char *const level_names[] = {
    [LEVEL_OK] = "ok",
    [LEVEL_NOTE] = "note",
    [LEVEL_WARNING] = "warning",
    [LEVEL_FAULT] = "fault",
};

struct doctor {
    struct cli_line line;
    struct store_place place;
    struct client_view view;
    enum level worst;
    bool unusable;
    struct strbuf text;
    struct strbuf items; /* for JSON */
};

/* Report a finding. */
static void PRINTF_LIKE(4, 5) say(struct doctor *doctor,
                                  enum level level,
                                  const char *check,
                                  const char *format,
                                  ...)
{
    char text[2 * DIAG_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    struct strbuf line = {0};
    plain_add(&line, text);
    if (level > doctor->worst) {
        doctor->worst = level;
    }
    strbuf_addf(&doctor->text,
                "%-8s %-11s %s\n",
                level_names[level],
                check,
                strbuf_text(&line));
    struct jsonw json = {.out = &doctor->items, .spaced = true};
    jsonw_item(&json, 2);
    jsonw_text(&json, "check", check);
    jsonw_text(&json, "level", level_names[level]);
    jsonw_text(&json, "text", strbuf_text(&line));
    jsonw_object_end(&json);
    strbuf_release(&line);
}

/* --- location ----------------------------------------------------------- */

static void check_mode(struct doctor *doctor, int dir_fd, const char *name)
{
    struct stat stat;
    bool whole = name[0] == '\0';
    if (fstatat(dir_fd, name, &stat, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) !=
        0) {
        return; /* another check reports a missing file */
    }
    unsigned mode = (unsigned)stat.st_mode & 07777;
    struct strbuf path = {0};
    strbuf_addf(&path, "%s%s%s", doctor->place.home, whole ? "" : "/", name);
    const char *text = strbuf_text(&path);
    if (stat.st_uid != geteuid()) {
        say(doctor,
            LEVEL_WARNING,
            "rights",
            "%s belongs to user %u",
            text,
            (unsigned)stat.st_uid);
    } else if ((mode & 077) != 0) {
        say(doctor,
            LEVEL_WARNING,
            "rights",
            "other users have access to %s (mode %o), and logs may contain "
            "secrets: run `chmod go= %s`",
            text,
            mode,
            text);
    } else if (whole) {
        say(doctor,
            LEVEL_OK,
            "rights",
            "%s is not accessible to other users (mode %o)",
            text,
            mode);
    }
    strbuf_release(&path);
}

/* Name of a file system that other machines may write to; NULL: local. */
static const char *network_name(const struct statfs *status)
{
    static const struct {
        unsigned long magic;
        const char *name;
    } kinds[] = {
        {NFS_SUPER_MAGIC, "NFS"},
        {SMB_SUPER_MAGIC, "SMB"},
        {SMB2_SUPER_MAGIC, "SMB"},
        {CIFS_SUPER_MAGIC, "CIFS"},
        {CEPH_SUPER_MAGIC, "Ceph"},
        {AFS_SUPER_MAGIC, "AFS"},
        {AFS_FS_MAGIC, "AFS"},
        {CODA_SUPER_MAGIC, "Coda"},
        {NCP_SUPER_MAGIC, "NCP"},
        {OCFS2_SUPER_MAGIC, "OCFS2"},
        {V9FS_MAGIC, "9P"},
        {FUSE_SUPER_MAGIC, "FUSE"},
        {0x0bd00bd0, "Lustre"},
        {0x01161970, "GFS2"},
        {0x47504653, "GPFS"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(kinds); ix++) {
        if ((unsigned long)status->f_type == kinds[ix].magic) {
            return kinds[ix].name;
        }
    }
    return NULL;
}

static void check_file_system(struct doctor *doctor, int dir_fd)
{
    struct statfs status;
    if (fstatfs(dir_fd, &status) != 0) {
        say(doctor, LEVEL_WARNING, "files", "%s", strerror(errno));
        return;
    }
    const char *network = network_name(&status);
    if (network != NULL) {
        say(doctor,
            LEVEL_WARNING,
            "files",
            "the store is on a network file system (%s), where locks and "
            "shared memory may fail: use a local disk",
            network);
    } else if ((unsigned long)status.f_type == TMPFS_MAGIC) {
        say(doctor,
            LEVEL_NOTE,
            "files",
            "the store is in memory (tmpfs): a reboot loses it");
    } else {
        say(doctor, LEVEL_OK, "files", "the store is on a local file system");
    }
}

static void check_space(struct doctor *doctor, int dir_fd)
{
    struct statvfs status;
    if (fstatvfs(dir_fd, &status) != 0) {
        say(doctor, LEVEL_WARNING, "space", "%s", strerror(errno));
        return;
    }
    uint64_t bytes = (uint64_t)status.f_bavail * status.f_frsize;
    uint64_t files = (uint64_t)status.f_favail;
    bool few = status.f_files > 0 && files < FILES_FREE_MIN;
    say(doctor,
        bytes < SPACE_FREE_MIN || few ? LEVEL_WARNING : LEVEL_OK,
        "space",
        "%llu MiB are free%s",
        (unsigned long long)(bytes >> 20),
        few ? ", but hardly any inodes" : "");
}

static bool is_expected(const char *name)
{
    static const char *const names[] = {
        ".",
        "..",
        "door",
        "handoff",
        "http",
        "http-servers",
        "http-token",
        "http-token-view",
        "lock",
        "meters",
        "mirrors",
        "report",
        "runs",
        "secret",
        "settings.yaml",
        "sluice.db",
        "sluice.db-shm",
        "sluice.db-wal",
        "socket",
        "worktrees",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(names); ix++) {
        if (strcmp(names[ix], name) == 0) {
            return true;
        }
    }
    return false;
}

static void check_leftovers(struct doctor *doctor)
{
    DIR *dir = opendir(doctor->place.home);
    if (dir == NULL) {
        say(doctor,
            LEVEL_WARNING,
            "leftovers",
            "open %s: %s",
            doctor->place.home,
            strerror(errno));
        return;
    }
    uint32_t count = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL) {
            break;
        }
        if (!is_expected(entry->d_name)) {
            count++;
            say(doctor,
                LEVEL_NOTE,
                "leftovers",
                "%s/%s does not belong to the store%s",
                doctor->place.home,
                entry->d_name,
                strcmp(entry->d_name, "sluice.db.new") == 0
                    ? ": its creation was interrupted; it may be removed"
                    : "");
        }
    }
    if (count == 0 && errno == 0) {
        say(doctor, LEVEL_OK, "leftovers", "no other files in the store");
    }
    (void)closedir(dir);
}

static void check_place(struct doctor *doctor)
{
    int dir_fd = open(doctor->place.home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0) {
        doctor->unusable = true;
        say(doctor,
            LEVEL_FAULT,
            "store",
            "open %s: %s",
            doctor->place.home,
            strerror(errno));
        return;
    }
    check_mode(doctor, dir_fd, "");
    check_mode(doctor, dir_fd, "sluice.db");
    check_mode(doctor, dir_fd, STORE_PLACE_SOCKET);
    check_file_system(doctor, dir_fd);
    check_space(doctor, dir_fd);
    (void)close(dir_fd);
}

/* --- programs ----------------------------------------------------------- */

static void check_sqlite(struct doctor *doctor)
{
    if (sqlite3_libversion_number() >= SQLITE_GOOD) {
        say(doctor, LEVEL_OK, "sqlite", "SQLite %s", sqlite3_libversion());
        return;
    }
    say(doctor,
        LEVEL_NOTE,
        "sqlite",
        "SQLite %s can damage a database when two connections write and "
        "checkpoint at once (fixed in 3.51.3); sluice has only one such "
        "connection, so it is safe unless another program writes to sluice.db",
        sqlite3_libversion());
}

static void check_shim(struct doctor *doctor)
{
    struct exec *exec;
    struct diag diag = {0};
    enum err err = exec_open(&exec, NULL, &diag);
    exec_close(exec);
    if (err == ERR_OK) {
        say(doctor,
            LEVEL_OK,
            "shim",
            "sluice-shim starts and matches sluice " SLUICE_VERSION);
    } else {
        say(doctor, LEVEL_FAULT, "shim", "%s", diag.text);
    }
}

/* --- scheduler ---------------------------------------------------------- */

static void check_socket(struct doctor *doctor)
{
    struct diag diag = {0};
    enum err err = store_ping(doctor->view.store, PING_MS, &diag);
    if (err == ERR_OK) {
        say(doctor, LEVEL_OK, "socket", "the scheduler replies");
    } else if (doctor->view.stopped) {
        say(doctor,
            LEVEL_WARNING,
            "socket",
            "no reply: the scheduler is stopped");
    } else {
        say(doctor, LEVEL_FAULT, "socket", "%s", diag.text);
    }
}

static void check_owner(struct doctor *doctor)
{
    const struct client_view *view = &doctor->view;
    const struct store_owner *owner = &view->owner;
    long long process = owner_process(owner);
    if (!view->owned) {
        say(doctor, LEVEL_OK, "scheduler", "no scheduler is running");
        return;
    }
    if (view->stopped) {
        say(doctor,
            LEVEL_WARNING,
            "scheduler",
            "process %lld is stopped: continue it with `kill -CONT %lld`, or "
            "replace it with 'sluice run --take-over'",
            process,
            process);
    } else if (view->silent_ns > 0) {
        struct strbuf since = {0};
        duration_add(&since, view->silent_ns);
        say(doctor,
            LEVEL_WARNING,
            "scheduler",
            "process %lld has shown no sign of life for %s: replace it with "
            "'sluice run --take-over'",
            process,
            strbuf_text(&since));
        strbuf_release(&since);
    } else if (owner->trouble[0] != '\0') {
        say(doctor,
            LEVEL_WARNING,
            "scheduler",
            "process %lld is in trouble and retries: %s",
            process,
            owner->trouble);
    } else {
        say(doctor,
            LEVEL_OK,
            "scheduler",
            "process %lld on %s is alive, epoch %llu",
            process,
            owner->host,
            (unsigned long long)owner->epoch);
    }
    check_socket(doctor);
}

/* --- store -------------------------------------------------------------- */

static void on_fault(void *ctx, const char *text)
{
    say(ctx, LEVEL_FAULT, "contents", "%s", text);
}

static void check_contents(struct doctor *doctor)
{
    struct diag diag = {0};
    size_t before = doctor->items.len;
    enum err err = store_verify(doctor->view.store, on_fault, doctor, &diag);
    if (err != ERR_OK) {
        doctor->unusable = true;
        say(doctor, LEVEL_FAULT, "contents", "%s", diag.text);
    } else if (before == doctor->items.len) {
        say(doctor,
            LEVEL_OK,
            "contents",
            "schema %d; structure, checksums and states agree",
            sqlite_schema_version());
    }
}

/* An attempt that the store lists as unfinished. */
struct flight {
    uint32_t run;
    uint32_t task;
    uint32_t number;
    struct attempt_row row;
    char *run_id;
    char *task_id;
};

struct flights {
    struct flight *items;
    uint32_t count;
};

static enum err on_attempt(void *ctx, const struct store_attempt *row)
{
    struct flights *flights = ctx;
    flights->items = mem_resize(flights->items,
                                flights->count + 1,
                                sizeof(flights->items[0]));
    struct flight *flight = &flights->items[flights->count++];
    *flight = (struct flight){
        .run = row->run,
        .task = row->task,
        .number = row->number,
        .row = attempt_row_of(row),
    };
    return ERR_OK;
}

static enum err on_run(void *ctx, const struct store_run *row)
{
    struct flights *flights = ctx;
    for (uint32_t ix = 0; ix < flights->count; ix++) {
        struct flight *flight = &flights->items[ix];
        if (flight->run == row->number && flight->run_id == NULL) {
            flight->run_id = mem_strndup(row->id, strlen(row->id));
        }
    }
    return ERR_OK;
}

static enum err on_task(void *ctx, const struct store_task *row)
{
    struct flights *flights = ctx;
    for (uint32_t ix = 0; ix < flights->count; ix++) {
        struct flight *flight = &flights->items[ix];
        if (flight->run == row->run && flight->task == row->ix &&
            flight->task_id == NULL) {
            flight->task_id = mem_strndup(row->id, strlen(row->id));
        }
    }
    return ERR_OK;
}

/* Compare an attempt with its directory. Return whether it is alive. */
static bool check_flight(struct doctor *doctor, const struct flight *flight)
{
    struct strbuf dir = {0};
    enum attempt_state state = ATTEMPT_NEVER;
    struct diag diag = {0};
    if (flight->run_id == NULL || flight->task_id == NULL) {
        return false; /* store_verify() reports it */
    }
    home_add_attempt(&dir,
                     doctor->place.home,
                     flight->run_id,
                     flight->task_id,
                     flight->number);
    enum err err =
        attempt_row_state(&flight->row, strbuf_text(&dir), &state, &diag);
    strbuf_release(&dir);
    const char *what = NULL;
    enum level level = doctor->view.owned ? LEVEL_NOTE : LEVEL_WARNING;
    if (err != ERR_OK) {
        say(doctor, LEVEL_WARNING, "attempts", "%s", diag.text);
        return false;
    }
    switch (state) {
    case ATTEMPT_LIVE:
    case ATTEMPT_STARTING:
        return true;
    case ATTEMPT_NEVER:
        what = "has not started";
        break;
    case ATTEMPT_ENDED:
        what = "has exited, and its result is not yet recorded";
        break;
    case ATTEMPT_LOST:
        what = "is lost: its shim is gone and left no result";
        break;
    }
    say(doctor,
        level,
        "attempts",
        "%s, attempt %u, %s%s",
        flight->task_id,
        flight->number,
        what,
        doctor->view.owned ? "" : ": 'sluice run' recovers it");
    return false;
}

static void check_flights(struct doctor *doctor)
{
    static const struct store_visitor attempts = {.attempt = on_attempt};
    static const struct store_visitor names = {.run = on_run, .task = on_task};
    struct store_query query = {.finished = true};
    struct flights flights = {0};
    struct diag diag = {0};
    struct store *store = doctor->view.store;
    enum err err = store_read(store, &query, &attempts, &flights, NULL, &diag);
    if (err == ERR_OK && flights.count > 0) {
        err = store_read(store, &query, &names, &flights, NULL, &diag);
    }
    uint32_t live = 0;
    if (err != ERR_OK) {
        doctor->unusable = true;
        say(doctor, LEVEL_FAULT, "attempts", "%s", diag.text);
    }
    for (uint32_t ix = 0; ix < flights.count; ix++) {
        struct flight *flight = &flights.items[ix];
        live += err == ERR_OK && check_flight(doctor, flight) ? 1 : 0;
        mem_free(flight->run_id);
        mem_free(flight->task_id);
    }
    if (err == ERR_OK) {
        bool alone = live > 0 && !doctor->view.owned;
        say(doctor,
            alone ? LEVEL_NOTE : LEVEL_OK,
            "attempts",
            "%u session%s alive%s",
            live,
            live == 1 ? " is" : "s are",
            alone ? ", but no scheduler: 'sluice run' adopts them" : "");
    }
    mem_free(flights.items);
}

/* --- hubs --------------------------------------------------------------- */

/* Ask one hub for its base. */
static void check_hub(struct doctor *doctor, const struct plan_repo *repo)
{
    struct diag diag = {0};
    struct strbuf name = {0};
    enum err err = hub_probe(repo->url, repo->base, &diag);
    hub_add_name(&name, repo->url);
    if (err == ERR_OK) {
        say(doctor,
            LEVEL_OK,
            "hub",
            "%s: has %s",
            strbuf_text(&name),
            repo->base);
    } else if (err == ERR_UNAVAILABLE) {
        say(doctor,
            LEVEL_WARNING,
            "hub",
            "%s; sessions of repo \"%s\" wait for it",
            diag.text,
            repo->name);
    } else {
        say(doctor, LEVEL_FAULT, "hub", "%s", diag.text);
    }
    strbuf_release(&name);
}

/* Ask the hubs of unfinished runs. */
static void check_hubs(struct doctor *doctor)
{
    const struct engine *engine = doctor->view.engine;
    for (uint32_t run = 0; run < engine_run_count(engine); run++) {
        const struct plan *plan = engine_run(engine, run).plan;
        for (uint32_t ix = 0; ix < plan->repo_count; ix++) {
            if (plan->repos[ix].url != NULL) {
                check_hub(doctor, &plan->repos[ix]);
            }
        }
    }
}

/* --- command ------------------------------------------------------------ */

static void examine(struct doctor *doctor)
{
    struct diag diag = {0};
    check_place(doctor);
    check_sqlite(doctor);
    check_shim(doctor);
    enum err err = client_look(&doctor->view, &doctor->place, NULL, &diag);
    if (err != ERR_OK) {
        doctor->unusable = true;
        say(doctor, LEVEL_FAULT, "store", "%s", diag.text);
    } else {
        say(doctor,
            LEVEL_OK,
            "store",
            "%s: %u unfinished run%s",
            doctor->place.home,
            engine_run_count(doctor->view.engine),
            engine_run_count(doctor->view.engine) == 1 ? "" : "s");
    }
    if (doctor->view.store != NULL) {
        check_owner(doctor);
        check_contents(doctor);
        check_flights(doctor);
    }
    if (err == ERR_OK) {
        check_hubs(doctor);
    }
    check_leftovers(doctor);
    client_view_release(&doctor->view);
}

static int report(const struct doctor *doctor)
{
    struct strbuf out = {0};
    bool healthy = doctor->worst < LEVEL_WARNING;
    if (doctor->line.json) {
        struct jsonw json = {.out = &out, .spaced = true};
        jsonw_object(&json, NULL);
        jsonw_text(&json, "store", doctor->place.shown);
        jsonw_bool(&json, "healthy", healthy);
        jsonw_bool(&json, "usable", !doctor->unusable);
        jsonw_list(&json, 1, "checks");
        jsonw_raw(&json, NULL, strbuf_text(&doctor->items));
        jsonw_array_end(&json);
        jsonw_finish(&json);
    } else {
        strbuf_adds(&out, strbuf_text(&doctor->text));
    }
    int code = cli_print(&out);
    if (doctor->unusable) {
        return CLI_STORE;
    }
    return code == CLI_OK && !healthy ? CLI_NOT_ALL_DONE : code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct doctor doctor = {0};
    int code = cli_parse(&doctor.line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    code = cli_find_store(&doctor.line, &doctor.place);
    if (code != CLI_OK) {
        return code;
    }
    examine(&doctor);
    code = report(&doctor);
    strbuf_release(&doctor.text);
    strbuf_release(&doctor.items);
    store_place_release(&doctor.place);
    return code;
}

static const struct cli_option options[] = {
    CLIENT_OPTION_JSON,
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_doctor = {
    .name = "doctor",
    .synopsis = "[OPTION]...",
    .summary = "check a store and its scheduler for problems",
    .options = options,
    .operand = CLI_OPERAND_NONE,
    .run = run,
};
