/* SPDX-License-Identifier: MIT */
/* The statements are those of dist/postgresql/roles.sql. */
#include "store/pg_roles.h"

#include "store/pg_link.h"
#include "store/schema/pg_roles_sql.h"

void pg_roles_add_sql(struct strbuf *out)
{
    strbuf_adds(out, steps[0]);
}

enum err
pg_roles_apply(const char *address, struct strbuf *schema, struct diag *diag)
{
    struct pg_link link;
    enum err err = pg_link_init(&link, address, diag);
    if (err == ERR_OK) {
        err = pg_link_need(&link, diag);
    }
    PGresult *result = NULL;
    if (err == ERR_OK) {
        result = pg_run(&link,
                        "SELECT current_schema(), to_regclass('version')"
                        " IS NOT NULL",
                        NULL,
                        &err,
                        diag);
    }
    if (err == ERR_OK && !pg_bool(result, 0, 1)) {
        err = diag_set(diag,
                       ERR_NOT_FOUND,
                       "no store in %s: `sluice run` creates it",
                       link.shown);
    }
    if (err == ERR_OK) {
        strbuf_adds(schema, pg_text(result, 0, 0));
        err = pg_do(&link, steps[0], NULL, NULL, diag);
    }
    PQclear(result);
    pg_link_release(&link);
    return err;
}
