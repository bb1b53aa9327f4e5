/* SPDX-License-Identifier: MIT */
#include "store/pg_doctor.h"

#include "base/clock.h"
#include "base/duration.h"
#include "store/pg_link.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Clocks that differ more than this confuse people who compare times. */
#define SKEW_MAX_NS SECOND_NS

struct doctor {
    const char *address;
    struct pg_link link;
    pg_finding_fn fn;
    void *ctx;
    bool unusable;
};

static void PRINTF_LIKE(4, 5) say(struct doctor *doctor,
                                  enum pg_level level,
                                  const char *check,
                                  const char *format,
                                  ...)
{
    char text[2 * DIAG_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    doctor->fn(doctor->ctx, level, check, text);
}

/* Run a query of one row; NULL after a finding. */
static PGresult *look(struct doctor *doctor, const char *check, const char *sql)
{
    enum err err = ERR_OK;
    struct diag diag = {0};
    PGresult *result = NULL;
    if (doctor->link.conn != NULL) {
        result = pg_run(&doctor->link, sql, NULL, &err, &diag);
    }
    if (result == NULL || PQntuples(result) != 1) {
        say(doctor,
            PG_LEVEL_WARNING,
            check,
            "not checked: %s",
            diag.text[0] != '\0' ? diag.text : "the connection is lost");
        PQclear(result);
        return NULL;
    }
    return result;
}

static bool is_on(const PGresult *result, int column)
{
    return strcmp(PQgetvalue(result, 0, column), "on") == 0;
}

/* --- the server --------------------------------------------------------- */

static bool check_server(struct doctor *doctor)
{
    struct diag diag = {0};
    enum err err = pg_link_need(&doctor->link, &diag);
    if (err != ERR_OK) {
        say(doctor,
            PG_LEVEL_FAULT,
            "server",
            "%s; check the address%s",
            diag.text,
            err == ERR_DENIED
                ? ", the role, its password or certificate, and pg_hba.conf"
                : ", the network, and whether the server runs");
        return false;
    }
    PGresult *result = look(doctor,
                            "server",
                            "SELECT current_setting('server_version'),"
                            " current_setting('server_encoding'),"
                            " pg_is_in_recovery()");
    if (result == NULL) {
        return false;
    }
    bool good = true;
    if (strcmp(PQgetvalue(result, 0, 1), "UTF8") != 0) {
        say(doctor,
            PG_LEVEL_FAULT,
            "server",
            "the encoding of the database is %s: create one with ENCODING "
            "'UTF8'",
            PQgetvalue(result, 0, 1));
        good = false;
    } else if (pg_bool(result, 0, 2)) {
        say(doctor,
            PG_LEVEL_FAULT,
            "server",
            "the server is a standby: name the primary, or all hosts, in the "
            "address");
        good = false;
    } else {
        say(doctor,
            PG_LEVEL_OK,
            "server",
            "PostgreSQL %s replies",
            PQgetvalue(result, 0, 0));
    }
    PQclear(result);
    return good;
}

/* The process of the server that runs the statements of a connection. */
static int64_t backend(struct pg_link *link)
{
    enum err err = ERR_OK;
    struct diag ignored = {0};
    PGresult *result =
        link->conn != NULL
            ? pg_run(link, "SELECT pg_backend_pid()", NULL, &err, &ignored)
            : NULL;
    int64_t pid = result != NULL ? pg_i64(result, 0, 0) : 0;
    PQclear(result);
    return pid;
}

/*
 * Whether a connection keeps its process of the server: between two statements
 * another one begins a transaction, for which a pool in transaction mode takes
 * the process that has just become free.
 */
static bool keeps_process(struct doctor *doctor)
{
    struct pg_link other;
    struct diag ignored = {0};
    bool keeps = true;
    if (pg_link_init(&other, doctor->address, &ignored) != ERR_OK) {
        return true;
    }
    if (pg_link_need(&other, &ignored) == ERR_OK) {
        int64_t first = backend(&doctor->link);
        for (int ix = 0; ix < 3 && keeps && other.conn != NULL; ix++) {
            enum err err = pg_do(&other, "BEGIN", NULL, NULL, &ignored);
            int64_t held = backend(&other);
            int64_t now = backend(&doctor->link);
            keeps = err == ERR_OK && now == first && held != first;
            if (other.conn != NULL) {
                (void)!pg_do(&other, "ROLLBACK", NULL, NULL, &ignored);
            }
        }
    }
    pg_link_release(&other);
    return keeps;
}

static void check_pool(struct doctor *doctor)
{
    bool pool = backend(&doctor->link) != PQbackendPID(doctor->link.conn);
    if (!keeps_process(doctor)) {
        doctor->unusable = true;
        say(doctor,
            PG_LEVEL_FAULT,
            "pool",
            "a pool of connections gives one connection several processes of "
            "the server: set pool_mode = session in pgbouncer, or connect "
            "without it");
    } else if (pool) {
        say(doctor,
            PG_LEVEL_NOTE,
            "pool",
            "a pool of connections in session mode: a scheduler that dies is "
            "replaced when its lease ends, instead of at once");
    } else {
        say(doctor, PG_LEVEL_OK, "pool", "no pool of connections");
    }
}

static void check_durability(struct doctor *doctor)
{
    PGresult *result = look(doctor,
                            "durability",
                            "SELECT current_setting('fsync'),"
                            " current_setting('full_page_writes'),"
                            " (SELECT reset_val FROM pg_settings"
                            "  WHERE name = 'synchronous_commit')");
    if (result == NULL) {
        return;
    }
    bool safe = is_on(result, 0) && is_on(result, 1);
    if (!is_on(result, 0)) {
        say(doctor,
            PG_LEVEL_WARNING,
            "durability",
            "fsync is off: a power cut loses acknowledged writes or the whole "
            "database; set fsync = on");
    }
    if (!is_on(result, 1)) {
        say(doctor,
            PG_LEVEL_WARNING,
            "durability",
            "full_page_writes is off: a power cut can damage tables; set "
            "full_page_writes = on, unless the file system writes pages "
            "atomically");
    }
    if (strcmp(PQgetvalue(result, 0, 2), "off") == 0) {
        say(doctor,
            PG_LEVEL_NOTE,
            "durability",
            "synchronous_commit is off: sluice sets it to on for itself");
    } else if (safe) {
        say(doctor,
            PG_LEVEL_OK,
            "durability",
            "fsync and full_page_writes are on, synchronous_commit is %s",
            PQgetvalue(result, 0, 2));
    }
    PQclear(result);
}

static void check_standbys(struct doctor *doctor)
{
    PGresult *result = look(doctor,
                            "standbys",
                            "SELECT (SELECT count(*) FROM pg_stat_replication),"
                            " current_setting('synchronous_standby_names'),"
                            " (SELECT reset_val FROM pg_settings"
                            "  WHERE name = 'synchronous_commit')");
    if (result == NULL) {
        return;
    }
    int64_t count = pg_i64(result, 0, 0);
    const char *mode = PQgetvalue(result, 0, 2);
    bool waits = PQgetvalue(result, 0, 1)[0] != '\0';
    if (count > 0 && !waits) {
        say(doctor,
            PG_LEVEL_WARNING,
            "standbys",
            "%" PRId64 " asynchronous standbys: acknowledged writes can be "
            "lost when one is promoted (sluice notices, and stops); set "
            "synchronous_standby_names",
            count);
    } else if (waits && strcmp(mode, "local") == 0) {
        say(doctor,
            PG_LEVEL_WARNING,
            "standbys",
            "synchronous_commit is local: commits do not wait for the "
            "synchronous standbys; set it to on");
    } else if (waits && count == 0) {
        say(doctor,
            PG_LEVEL_WARNING,
            "standbys",
            "synchronous_standby_names is set, but no standby is connected: "
            "commits wait for it; start one, or reset the setting");
    } else {
        say(doctor,
            PG_LEVEL_OK,
            "standbys",
            count > 0 ? "commits wait for a standby" : "no standbys");
    }
    PQclear(result);
}

static void check_clock(struct doctor *doctor)
{
    int64_t before_ns = clock_wall_ns();
    PGresult *result =
        look(doctor,
             "clock",
             "SELECT (extract(epoch FROM clock_timestamp()) * 1000000000)"
             "::bigint");
    int64_t after_ns = clock_wall_ns();
    if (result == NULL) {
        return;
    }
    int64_t ahead_ns = pg_i64(result, 0, 0) - after_ns;
    int64_t behind_ns = before_ns - pg_i64(result, 0, 0);
    int64_t skew_ns = ahead_ns > behind_ns ? ahead_ns : behind_ns;
    if (skew_ns > SKEW_MAX_NS) {
        say(doctor,
            PG_LEVEL_WARNING,
            "clock",
            "the server's clock is %lld s %s this machine's: leases are by the "
            "server's alone, but times of events differ; use NTP on both",
            (long long)(skew_ns / SECOND_NS),
            ahead_ns > behind_ns ? "ahead of" : "behind");
    } else {
        say(doctor,
            PG_LEVEL_OK,
            "clock",
            "the clocks of the server and this machine agree");
    }
    PQclear(result);
}

/* --- the store ---------------------------------------------------------- */

/* Report the roles; whether this one can read the store. */
static void check_roles(struct doctor *doctor, bool exists)
{
    PGresult *result = look(
        doctor,
        "roles",
        "SELECT current_user, rolsuper, coalesce((SELECT pg_has_role(nspowner,"
        " 'USAGE') FROM pg_namespace WHERE nspname = current_setting("
        "'search_path')), has_database_privilege(current_database(),"
        " 'CREATE')), EXISTS (SELECT 1 FROM pg_roles WHERE rolname ="
        " current_setting('search_path') || '_worker'),"
        " EXISTS (SELECT 1 FROM pg_roles r WHERE r.rolname IN ("
        "current_setting('search_path') || '_worker',"
        " current_setting('search_path') || '_reader')"
        " AND pg_has_role(r.oid, 'USAGE'))"
        " FROM pg_roles WHERE rolname = current_user");
    if (result == NULL) {
        return;
    }
    const char *name = PQgetvalue(result, 0, 0);
    bool super = pg_bool(result, 0, 1);
    bool owner = pg_bool(result, 0, 2);
    if (super) {
        say(doctor,
            PG_LEVEL_NOTE,
            "roles",
            "%s is a superuser, whom no privilege restricts: schedulers need "
            "only a role that owns the schema",
            name);
    } else if (owner) {
        say(doctor,
            PG_LEVEL_OK,
            "roles",
            exists ? "%s owns the store: for schedulers"
                   : "%s may create a store here",
            name);
    } else if (pg_bool(result, 0, 4)) {
        say(doctor,
            PG_LEVEL_OK,
            "roles",
            "%s may work or read, and not schedule",
            name);
    } else {
        doctor->unusable = true;
        say(doctor,
            PG_LEVEL_FAULT,
            "roles",
            exists ? "%s has no privileges: as the owner, run `sluice store "
                     "roles ADDRESS`, then grant it one of these roles"
                   : "%s may not create a schema: GRANT CREATE ON DATABASE to "
                     "it",
            name);
    }
    if (exists && (owner || super) && !pg_bool(result, 0, 3)) {
        say(doctor,
            PG_LEVEL_NOTE,
            "roles",
            "workers need the owner's role, which can do everything: run "
            "`sluice store roles ADDRESS`");
    }
    PQclear(result);
}

static void check_scheduler(struct doctor *doctor, struct store *store)
{
    struct store_owner owner;
    struct diag diag = {0};
    enum err err = store_owner(store, &owner, &diag);
    if (err == ERR_NOT_FOUND) {
        say(doctor, PG_LEVEL_OK, "scheduler", "no scheduler runs");
    } else if (err != ERR_OK) {
        say(doctor, PG_LEVEL_NOTE, "scheduler", "not checked: %s", diag.text);
    } else if (owner.trouble[0] != '\0') {
        say(doctor,
            PG_LEVEL_WARNING,
            "scheduler",
            "the process %" PRId64 " on %s cannot write: %s",
            owner.pid,
            owner.host,
            owner.trouble);
    } else {
        say(doctor,
            PG_LEVEL_OK,
            "scheduler",
            "the process %" PRId64 " on %s schedules",
            owner.pid,
            owner.host);
    }
}

static void check_store(struct doctor *doctor)
{
    struct store *store = NULL;
    struct diag diag = {0};
    enum err err = store_open(&store, doctor->address, STORE_READ, &diag);
    if (err == ERR_OK) {
        say(doctor,
            PG_LEVEL_OK,
            "store",
            "%s has a store that this sluice reads",
            doctor->link.shown);
        check_scheduler(doctor, store);
        store_close(store);
    } else if (err == ERR_NOT_FOUND) {
        say(doctor,
            PG_LEVEL_NOTE,
            "store",
            "%s: `sluice run` creates it",
            diag.text);
    } else if (err != ERR_DENIED) {
        doctor->unusable = true;
        say(doctor, PG_LEVEL_FAULT, "store", "%s", diag.text);
    }
    check_roles(doctor, err != ERR_NOT_FOUND);
}

bool pg_examine(const char *address,
                struct strbuf *shown,
                pg_finding_fn fn,
                void *ctx)
{
    struct doctor doctor = {.address = address, .fn = fn, .ctx = ctx};
    struct diag diag = {0};
    if (pg_link_init(&doctor.link, address, &diag) != ERR_OK) {
        say(&doctor, PG_LEVEL_FAULT, "server", "%s", diag.text);
        return false;
    }
    strbuf_adds(shown, doctor.link.shown);
    doctor.unusable = !check_server(&doctor);
    if (!doctor.unusable) {
        check_pool(&doctor);
        check_durability(&doctor);
        check_standbys(&doctor);
        check_clock(&doctor);
        check_store(&doctor);
    }
    pg_link_release(&doctor.link);
    return !doctor.unusable;
}
