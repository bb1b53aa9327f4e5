/* SPDX-License-Identifier: MIT */
/* sluice store: copy a store to another place, and prepare a database for
 * several machines. */
#include "cli/cli.h"
#include "store/copy.h"
#include "store/pg_link.h"
#include "store/pg_roles.h"
#include "work/owner.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>

enum { OPT_PRINT = 1 };

struct args {
    struct cli_line line;
    bool print;
};

/* Open a store and take it: then no scheduler uses it. */
static enum err take(struct store **out, const char *address, struct diag *diag)
{
    struct store_owner self = owner_self();
    uint64_t epoch = 0;
    enum err err = store_open(out, address, STORE_WRITE, diag);
    return err == ERR_OK ? store_take(*out, &self, &epoch, diag) : err;
}

/* Check that there is a store, which opening it for writing would create. */
static enum err check_exists(const char *address, struct diag *diag)
{
    struct store *store = NULL;
    enum err err = store_open(&store, address, STORE_READ, diag);
    store_close(store);
    return err;
}

static int copy(const struct args *args, char **words, int count)
{
    const struct cli_command *command = args->line.command;
    struct store_copied copied = {0};
    struct store *from = NULL;
    struct store *to = NULL;
    struct diag diag = {0};
    if (count != 2 || args->print) {
        return cli_fail(command, "copy takes FROM and TO");
    }
    enum err err = check_exists(words[0], &diag);
    if (err == ERR_OK) {
        err = take(&from, words[0], &diag);
    }
    if (err == ERR_OK) {
        err = take(&to, words[1], &diag);
    }
    if (err == ERR_OK) {
        err = store_copy(from, to, &copied, &diag);
    }
    store_close(from);
    store_close(to);
    if (err != ERR_OK) {
        return cli_fail_store(command, err, &diag);
    }
    struct strbuf out = {0};
    strbuf_addf(&out,
                "%" PRIu64 " runs, %" PRIu64 " events, %" PRIu64
                " rows in all: copied and compared\n"
                "use the copy from now on; %s is unchanged, and must not be "
                "used to schedule\n",
                copied.runs,
                copied.events,
                copied.rows,
                pg_is_address(words[0]) ? "the source" : words[0]);
    return cli_print(&out);
}

static int roles(const struct args *args, char **words, int count)
{
    const struct cli_command *command = args->line.command;
    struct strbuf out = {0};
    if (args->print && count == 0) {
        strbuf_adds(&out, "SET search_path TO sluice;\n\n");
        pg_roles_add_sql(&out);
        return cli_print(&out);
    }
    if (args->print || count != 1) {
        return cli_fail(command, "roles takes ADDRESS, or --print alone");
    }
    if (!pg_is_address(words[0])) {
        return cli_fail(command, "%s is not postgresql://...", words[0]);
    }
    struct diag diag = {0};
    struct strbuf schema = {0};
    enum err err = pg_roles_apply(words[0], &schema, &diag);
    const char *name = strbuf_text(&schema);
    if (err == ERR_OK) {
        strbuf_addf(&out,
                    "the roles %s_worker and %s_reader are up to date; a "
                    "worker NAME and a reader:\n"
                    "  CREATE ROLE \"NAME\" LOGIN IN ROLE %s_worker;\n"
                    "  CREATE ROLE \"watcher\" LOGIN IN ROLE %s_reader;\n",
                    name,
                    name,
                    name,
                    name);
    }
    strbuf_release(&schema);
    if (err == ERR_DENIED) {
        struct diag why = diag;
        (void)diag_set(&diag,
                       ERR_DENIED,
                       "%s; use a role with CREATEROLE that owns the schema",
                       why.text);
    }
    return err == ERR_OK ? cli_print(&out)
                         : cli_fail_store(command, err, &diag);
}

static int
take_option(struct cli_line *line, const struct cli_option *option, char *text)
{
    (void)text;
    struct args *args = (struct args *)line;
    args->print = args->print || option->code == OPT_PRINT;
    return CLI_OK;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args args = {0};
    int code = cli_parse(&args.line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    const char *verb = optind < argc ? argv[optind] : NULL;
    char **words = argv + optind + 1;
    int count = argc - optind - 1;
    if (verb == NULL) {
        return cli_fail(command, "missing copy or roles");
    }
    if (strcmp(verb, "copy") == 0) {
        return copy(&args, words, count);
    }
    if (strcmp(verb, "roles") == 0) {
        return roles(&args, words, count);
    }
    return cli_fail(command, "unexpected argument \"%s\"", verb);
}

static const struct cli_option options[] = {
    {"print",
     NULL,
     "roles: print the statements, and apply nothing",
     OPT_PRINT},
    {0},
};

const struct cli_command cli_store = {
    .name = "store",
    .synopsis = "copy FROM TO | roles ADDRESS",
    .summary = "copy a store, or create the database roles of workers",
    .options = options,
    .operand = CLI_OPERAND_OWN,
    .run = run,
    .take = take_option,
};
