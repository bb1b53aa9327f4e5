/* SPDX-License-Identifier: MIT */
/* Every function reads one row of the table in err.h. */
#include "base/err.h"

#include "base/invariant.h"

#include <string.h>

struct err_row {
    const char *name;
    const char *text;
    int exit_code;
};

#define ERR_ROW(id, name, text, code) {name, text, code},
static const struct err_row rows[] = {ERR_TABLE(ERR_ROW)};
#undef ERR_ROW

static const struct err_row *row_of(enum err err)
{
    INVARIANT(err < ERR_COUNT);
    return &rows[err];
}

const char *err_name(enum err err)
{
    return row_of(err)->name;
}

enum err err_from_name(const char *name)
{
    for (int ix = 0; ix < ERR_COUNT; ix++) {
        if (strcmp(rows[ix].name, name) == 0) {
            return (enum err)ix;
        }
    }
    return ERR_IO;
}

const char *err_text(enum err err)
{
    return row_of(err)->text;
}

int err_exit_code(enum err err)
{
    return row_of(err)->exit_code;
}
