/* SPDX-License-Identifier: MIT */
#include "store/pg_link.h"

#include "base/clock.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/*
 * Keepalives of both sides: a peer that is gone is noticed after about four
 * seconds. The session also gives up locks that it cannot get, and leaves a
 * transaction in which its client stands still.
 *
 * Plans always go by an index. A plan that cannot is then "expensive", for
 * which the server would compile machine code: 80 ms for a statement of 0.1 ms.
 * As values do not change the plan, it is made once for each statement.
 */
#define SESSION                                                                \
    "SELECT set_config('search_path', coalesce(nullif("                        \
    "  current_setting('sluice.schema', true), ''), 'sluice'), false),"        \
    " set_config('tcp_keepalives_idle', '1', false),"                          \
    " set_config('tcp_keepalives_interval', '1', false),"                      \
    " set_config('tcp_keepalives_count', '3', false),"                         \
    " set_config('tcp_user_timeout', '4000', false),"                          \
    " set_config('idle_in_transaction_session_timeout', '10s', false),"        \
    " set_config('lock_timeout', '5s', false),"                                \
    " set_config('synchronous_commit', CASE"                                   \
    "  current_setting('synchronous_commit') WHEN 'off' THEN 'on'"             \
    "  ELSE current_setting('synchronous_commit') END, false),"                \
    " set_config('jit', 'off', false),"                                        \
    " set_config('plan_cache_mode', 'force_generic_plan', false),"             \
    " set_config('enable_seqscan', 'off', false),"                             \
    " set_config('enable_hashjoin', 'off', false),"                            \
    " set_config('enable_mergejoin', 'off', false)"

/* What the address may override, and after it what it may not. */
static const char *const defaults[][2] = {
    {"connect_timeout", "3"},
    {"keepalives_idle", "1"},
    {"keepalives_interval", "1"},
    {"keepalives_count", "3"},
    {"tcp_user_timeout", "4000"},
    {"target_session_attrs", "read-write"},
};

enum { DEFAULTS = sizeof(defaults) / sizeof(defaults[0]) };

bool pg_is_address(const char *address)
{
    return strncmp(address, "postgresql://", 13) == 0 ||
           strncmp(address, "postgres://", 11) == 0;
}

/* The value of an option of an address; "": none. */
static const char *option(const PQconninfoOption *options, const char *name)
{
    for (; options->keyword != NULL; options++) {
        if (strcmp(options->keyword, name) == 0 && options->val != NULL) {
            return options->val;
        }
    }
    return "";
}

/* Append what identifies the database to people: no user, no password. */
static void add_shown(struct strbuf *out, const PQconninfoOption *options)
{
    const char *host = option(options, "host");
    const char *port = option(options, "port");
    if (host[0] == '\0') {
        host = option(options, "service");
    }
    strbuf_addf(out,
                "postgresql://%s%s%s/%s",
                host,
                port[0] != '\0' ? ":" : "",
                port,
                option(options, "dbname"));
}

enum err
pg_add_shown(struct strbuf *out, const char *address, struct diag *diag)
{
    char *error = NULL;
    PQconninfoOption *options = PQconninfoParse(address, &error);
    if (options == NULL) {
        size_t len = error != NULL ? strcspn(error, "\n") : 0;
        (void)diag_set(diag,
                       ERR_INVALID,
                       "the store's address is invalid: %.*s",
                       (int)len,
                       error != NULL ? error : "");
        PQfreemem(error);
        return ERR_INVALID;
    }
    add_shown(out, options);
    PQconninfoFree(options);
    return ERR_OK;
}

enum err
pg_link_init(struct pg_link *link, const char *address, struct diag *diag)
{
    *link = (struct pg_link){0};
    struct strbuf shown = {0};
    enum err err = pg_add_shown(&shown, address, diag);
    if (err == ERR_OK) {
        link->address = mem_strdup(address);
        link->shown = shown.text;
    }
    return err;
}

void pg_link_drop(struct pg_link *link)
{
    PQfinish(link->conn);
    link->conn = NULL;
}

void pg_link_release(struct pg_link *link)
{
    pg_link_drop(link);
    mem_free(link->address);
    mem_free(link->shown);
    *link = (struct pg_link){0};
}

/* --- errors ------------------------------------------------------------- */

/* What to do about an SQLSTATE, by its first characters. */
static const struct {
    const char *state;
    enum err err;
} states[] = {
    {"08", ERR_BUSY},         /* connection */
    {"57P", ERR_BUSY},        /* shutdown, restart, terminated */
    {"57014", ERR_BUSY},      /* cancelled */
    {"25006", ERR_BUSY},      /* read-only: a standby */
    {"25P03", ERR_BUSY},      /* idle in transaction for too long */
    {"40", ERR_BUSY},         /* serialization, deadlock */
    {"55P03", ERR_BUSY},      /* a lock is not free */
    {"53300", ERR_BUSY},      /* too many connections */
    {"58", ERR_BUSY},         /* the server's disk */
    {"53", ERR_LIMIT},        /* disk full, out of memory */
    {"23", ERR_CONFLICT},     /* unique, not null */
    {"42501", ERR_DENIED},    /* privilege */
    {"28", ERR_DENIED},       /* authorization */
    {"3D000", ERR_NOT_FOUND}, /* no such database */
    {"3F000", ERR_NOT_FOUND}, /* no such schema */
    {"42P01", ERR_NOT_FOUND}, /* no such table */
    {"SL001", ERR_CONFLICT},  /* batch_fits() */
    {"SL002", ERR_NOT_FOUND}, /* its head */
    {"XX001", ERR_CORRUPT},   {"XX002", ERR_CORRUPT},
};

static enum err err_of_state(const char *state)
{
    for (size_t ix = 0; ix < sizeof(states) / sizeof(states[0]); ix++) {
        size_t len = strlen(states[ix].state);
        if (strncmp(state, states[ix].state, len) == 0) {
            return states[ix].err;
        }
    }
    return ERR_IO;
}

/* The first line of a message of libpq, without its prefix. */
static enum err set_text(struct pg_link *link,
                         enum err err,
                         const char *text,
                         struct diag *diag)
{
    static const char prefix[] = "ERROR:  ";
    if (strncmp(text, prefix, sizeof(prefix) - 1) == 0) {
        text += sizeof(prefix) - 1;
    }
    size_t len = strcspn(text, "\n");
    return diag_set(diag, err, "%s: %.*s", link->shown, (int)len, text);
}

enum err
pg_fail(struct pg_link *link, const PGresult *result, struct diag *diag)
{
    const char *state =
        result != NULL ? PQresultErrorField(result, PG_DIAG_SQLSTATE) : NULL;
    enum err err = state != NULL ? err_of_state(state) : ERR_BUSY;
    const char *text = result != NULL && PQresultErrorMessage(result)[0] != '\0'
                           ? PQresultErrorMessage(result)
                           : PQerrorMessage(link->conn);
    (void)set_text(link,
                   err,
                   text != NULL && text[0] != '\0' ? text
                                                   : "the connection is lost",
                   diag);
    link->lost = link->conn == NULL || PQstatus(link->conn) != CONNECTION_OK ||
                 state == NULL || strncmp(state, "57P", 3) == 0 ||
                 strcmp(state, "25006") == 0;
    if (link->lost) {
        pg_link_drop(link);
        err = ERR_BUSY;
    }
    INVARIANT(err != ERR_OK);
    return err;
}

/* --- waiting ------------------------------------------------------------ */

enum err
pg_wait(struct pg_link *link, bool write, int64_t until_ns, struct diag *diag)
{
    INVARIANT(link->conn != NULL);
    for (;;) {
        int64_t left_ms = (until_ns - clock_boot_ns()) / MS_NS;
        struct pollfd wait = {
            .fd = PQsocket(link->conn),
            .events = (short)(write ? POLLIN | POLLOUT : POLLIN),
        };
        if (left_ms <= 0) {
            left_ms = 0;
        } else if (left_ms > PG_WAIT_MS) {
            left_ms = PG_WAIT_MS;
        }
        int ready = wait.fd >= 0 ? poll(&wait, 1, (int)left_ms) : -1;
        if (ready > 0) {
            return ERR_OK;
        }
        if (ready == 0 && until_ns <= clock_boot_ns()) {
            return diag_set(diag,
                            ERR_TIMEOUT,
                            "%s does not reply",
                            link->shown);
        }
        if (ready < 0 && (errno != EINTR || wait.fd < 0)) {
            return diag_set(diag,
                            ERR_IO,
                            "%s: the connection is lost",
                            link->shown);
        }
    }
}

PGresult *pg_next(struct pg_link *link, enum err *err_out, struct diag *diag)
{
    int64_t until_ns = clock_boot_ns() + PG_WAIT_MS * MS_NS;
    *err_out = ERR_OK;
    while (PQisBusy(link->conn) != 0) {
        int unsent = PQflush(link->conn);
        enum err err =
            unsent >= 0 ? pg_wait(link, unsent > 0, until_ns, diag) : ERR_IO;
        if (err == ERR_TIMEOUT) {
            link->lost = true;
            pg_link_drop(link); /* its reply would come too late */
            *err_out = ERR_BUSY;
            return NULL;
        }
        if (err != ERR_OK || PQconsumeInput(link->conn) == 0) {
            *err_out = pg_fail(link, NULL, diag);
            return NULL;
        }
    }
    return PQgetResult(link->conn);
}

/* --- connecting --------------------------------------------------------- */

/* Translate why it cannot be reached. */
static enum err cannot_connect(struct pg_link *link, struct diag *diag)
{
    const char *text = PQerrorMessage(link->conn);
    enum err err = ERR_UNAVAILABLE;
    if (strstr(text, "authentication") != NULL ||
        strstr(text, "no pg_hba.conf entry") != NULL ||
        strstr(text, "no password supplied") != NULL ||
        strstr(text, "permission denied") != NULL) {
        err = ERR_DENIED;
    } else if (strstr(text, "FATAL:  database") != NULL &&
               strstr(text, "does not exist") != NULL) {
        err = ERR_NOT_FOUND;
    }
    (void)set_text(link, err, text, diag);
    link->lost = true;
    pg_link_drop(link);
    return err;
}

static void ignore_notice(void *ctx, const PGresult *result)
{
    (void)ctx;
    (void)result;
}

enum err pg_link_need(struct pg_link *link, struct diag *diag)
{
    if (link->conn != NULL && PQstatus(link->conn) == CONNECTION_OK) {
        return ERR_OK;
    }
    pg_link_drop(link);
    const char *words[DEFAULTS + 5];
    const char *values[DEFAULTS + 5];
    int count = 0;
    for (; count < DEFAULTS; count++) {
        words[count] = defaults[count][0];
        values[count] = defaults[count][1];
    }
    words[count] = "dbname"; /* the whole address */
    values[count++] = link->address;
    words[count] = "client_encoding";
    values[count++] = "UTF8";
    words[count] = "fallback_application_name";
    values[count++] = "sluice";
    words[count] = NULL;
    values[count] = NULL;
    link->conn = PQconnectdbParams(words, values, 1);
    link->number++;
    if (link->conn == NULL || PQstatus(link->conn) != CONNECTION_OK) {
        return cannot_connect(link, diag);
    }
    if (PQserverVersion(link->conn) < 130000) {
        (void)diag_set(diag,
                       ERR_UNAVAILABLE,
                       "%s is PostgreSQL %d, but sluice needs 13 or newer",
                       link->shown,
                       PQserverVersion(link->conn) / 10000);
        pg_link_drop(link);
        return ERR_UNAVAILABLE;
    }
    (void)PQsetNoticeReceiver(link->conn, ignore_notice, NULL);
    if (PQsetnonblocking(link->conn, 1) != 0) {
        return cannot_connect(link, diag);
    }
    enum err err = ERR_OK;
    PQclear(pg_run(link, SESSION, NULL, &err, diag));
    return err == ERR_BUSY ? ERR_UNAVAILABLE : err;
}

/* --- statements --------------------------------------------------------- */

void pg_add_i64(struct pg_params *params, int64_t value)
{
    INVARIANT(params->count < PG_PARAMS_MAX);
    char *number = params->numbers[params->count];
    (void)snprintf(number, sizeof(params->numbers[0]), "%" PRId64, value);
    params->values[params->count++] = number;
}

void pg_add_text(struct pg_params *params, const char *text)
{
    INVARIANT(params->count < PG_PARAMS_MAX);
    params->values[params->count++] = text;
}

/* Return the last result of what was sent, and read to its end. */
static PGresult *
last_result(struct pg_link *link, enum err *err_out, struct diag *diag)
{
    PGresult *last = NULL;
    for (;;) {
        PGresult *next = pg_next(link, err_out, diag);
        if (next == NULL) {
            break;
        }
        if (last != NULL && PQresultStatus(last) == PGRES_FATAL_ERROR) {
            PQclear(next); /* the first error counts */
            continue;
        }
        PQclear(last);
        last = next;
    }
    if (*err_out != ERR_OK) {
        PQclear(last);
        return NULL;
    }
    ExecStatusType status = PQresultStatus(last);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK &&
        status != PGRES_EMPTY_QUERY) {
        *err_out = pg_fail(link, last, diag);
        PQclear(last);
        return NULL;
    }
    return last;
}

PGresult *pg_run(struct pg_link *link,
                 const char *sql,
                 const struct pg_params *params,
                 enum err *err_out,
                 struct diag *diag)
{
    INVARIANT(link->conn != NULL);
    int sent = params == NULL ? PQsendQuery(link->conn, sql)
                              : PQsendQueryParams(link->conn,
                                                  sql,
                                                  params->count,
                                                  NULL,
                                                  params->values,
                                                  NULL,
                                                  NULL,
                                                  0);
    if (sent == 0) {
        *err_out = pg_fail(link, NULL, diag);
        return NULL;
    }
    return last_result(link, err_out, diag);
}

PGresult *pg_run_prepared(struct pg_link *link,
                          const char *name,
                          const struct pg_params *params,
                          enum err *err_out,
                          struct diag *diag)
{
    INVARIANT(link->conn != NULL);
    if (PQsendQueryPrepared(link->conn,
                            name,
                            params->count,
                            params->values,
                            NULL,
                            NULL,
                            0) == 0) {
        *err_out = pg_fail(link, NULL, diag);
        return NULL;
    }
    return last_result(link, err_out, diag);
}

enum err pg_do(struct pg_link *link,
               const char *sql,
               const struct pg_params *params,
               int64_t *rows_out,
               struct diag *diag)
{
    enum err err = ERR_OK;
    PGresult *result = pg_run(link, sql, params, &err, diag);
    if (err == ERR_OK && rows_out != NULL) {
        *rows_out = strtoll(PQcmdTuples(result), NULL, 10);
    }
    PQclear(result);
    return err;
}

int64_t pg_i64(const PGresult *result, int row, int column)
{
    return strtoll(PQgetvalue(result, row, column), NULL, 10);
}

const char *pg_text(const PGresult *result, int row, int column)
{
    return PQgetisnull(result, row, column) != 0
               ? NULL
               : PQgetvalue(result, row, column);
}

bool pg_bool(const PGresult *result, int row, int column)
{
    return PQgetvalue(result, row, column)[0] == 't';
}
