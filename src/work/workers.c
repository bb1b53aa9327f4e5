/* SPDX-License-Identifier: MIT */
#include "work/workers.h"

#include "base/duration.h"
#include "base/strbuf.h"
#include "store/pg_link.h"
#include "store/store.h"
#include "work/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES_MAX = 64 };

static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

bool workers_is_name(const char *text)
{
    size_t len = strlen(text);
    return len > 0 && len <= NAME_BYTES_MAX && strspn(text, letters) == len;
}

void workers_own_name(char out[65])
{
    const char *given = getenv("SLUICE_WORKER");
    char host[65] = "";
    if (given == NULL || given[0] == '\0') {
        (void)gethostname(host, sizeof(host) - 1);
        given = host[0] != '\0' ? host : "worker";
    }
    (void)snprintf(out, 65, "%s", given);
    for (char *at = out; *at != '\0'; at++) {
        if (strchr(letters, *at) == NULL) {
            *at = '-';
        }
    }
}

int64_t workers_proto(void)
{
    const char *given = getenv("SLUICE_TEST_PROTO");
    return given != NULL ? strtol(given, NULL, 10) : WIRE_PROTO;
}

/* Connect to a store that has workers. */
static enum err
connect(struct pg_link *link, const char *address, struct diag *diag)
{
    if (!store_has_workers(address)) {
        return diag_set(diag,
                        ERR_INVALID,
                        "a store in a directory has no workers on other "
                        "machines: use --store postgresql://...");
    }
    enum err err = pg_link_init(link, address, diag);
    if (err == ERR_OK) {
        err = pg_link_need(link, diag);
    }
    return err;
}

/* The labels that its user has given. */
static const char *own_labels(const char *labels, const char *name)
{
    size_t len = strlen(name);
    const char *rest = labels;
    if (strncmp(rest, name, len) == 0 && strncmp(rest + len, ",any", 4) == 0) {
        rest += len + 4;
    }
    return rest[0] == ',' ? rest + 1 : rest;
}

static void give(const PGresult *result, int row, workers_fn fn, void *ctx)
{
    struct strbuf why = {0};
    const char *trouble = pg_text(result, row, 8);
    int64_t proto = pg_i64(result, row, 7);
    struct workers_row worker = {
        .name = pg_text(result, row, 0),
        .host = pg_text(result, row, 1),
        .version = pg_text(result, row, 3),
        .state = pg_text(result, row, 4),
        .slots = (uint32_t)pg_i64(result, row, 5),
        .used = (uint32_t)pg_i64(result, row, 6),
        .silent_ns = pg_i64(result, row, 9) * MS_NS,
        .since_ns = pg_i64(result, row, 10) * MS_NS,
    };
    worker.labels = own_labels(pg_text(result, row, 2), worker.name);
    bool up = strcmp(worker.state, "up") == 0;
    if (up && proto != WIRE_PROTO) {
        worker.state = "other version";
        strbuf_addf(&why,
                    "it speaks protocol %lld, this sluice %d: use one version "
                    "on all machines",
                    (long long)proto,
                    WIRE_PROTO);
    } else if (up && trouble[0] != '\0') {
        worker.state = "trouble";
        strbuf_adds(&why, trouble);
    } else if (up && !pg_bool(result, row, 11)) {
        worker.state = "late";
    }
    worker.why = strbuf_text(&why);
    fn(ctx, &worker);
    strbuf_release(&why);
}

enum err
workers_list(const char *address, workers_fn fn, void *ctx, struct diag *diag)
{
    if (!store_has_workers(address)) {
        return ERR_OK;
    }
    struct pg_link link = {0};
    enum err err = connect(&link, address, diag);
    PGresult *result = NULL;
    if (err == ERR_OK) {
        result = pg_run(
            &link,
            "SELECT name, host, labels, version, state, slots,"
            " (SELECT count(*) FROM work WHERE worker = w.name"
            "  AND work.state IN ('assigned', 'accepted', 'started')),"
            " proto, trouble,"
            " (extract(epoch FROM clock_timestamp() - beat) * 1000)::bigint,"
            " (extract(epoch FROM clock_timestamp() - since) * 1000)::bigint,"
            " lease_until > clock_timestamp() FROM worker w ORDER BY name",
            NULL,
            &err,
            diag);
    }
    for (int row = 0; err == ERR_OK && row < PQntuples(result); row++) {
        give(result, row, fn, ctx);
    }
    PQclear(result);
    pg_link_release(&link);
    return err;
}

/* Run a statement about a worker, which changes one row. */
static enum err change(const char *address,
                       const char *name,
                       const char *sql,
                       struct diag *diag)
{
    struct pg_link link = {0};
    struct pg_params params = {0};
    enum err err = connect(&link, address, diag);
    PGresult *result = NULL;
    pg_add_text(&params, name);
    if (err == ERR_OK) {
        result = pg_run(&link, sql, &params, &err, diag);
    }
    if (err == ERR_OK && PQntuples(result) == 0) {
        err = diag_set(diag,
                       ERR_NOT_FOUND,
                       "there is no worker %s; 'sluice workers' lists them",
                       name);
    }
    PQclear(result);
    if (err == ERR_OK) {
        err = pg_do(&link,
                    "NOTIFY " PG_TO_WORKERS "; NOTIFY " PG_TO_SCHEDULER,
                    NULL,
                    NULL,
                    diag);
    }
    pg_link_release(&link);
    return err;
}

enum err workers_drain(const char *address, const char *name, struct diag *diag)
{
    return change(address,
                  name,
                  "UPDATE worker SET wanted = 'drain' WHERE name = $1"
                  " RETURNING name",
                  diag);
}

enum err workers_lose(const char *address, const char *name, struct diag *diag)
{
    return change(address,
                  name,
                  "SELECT name, scheduler_lose(name) FROM worker"
                  " WHERE name = $1",
                  diag);
}
