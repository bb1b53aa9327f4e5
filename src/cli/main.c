/* SPDX-License-Identifier: MIT */
/* sluice: main program; selects and runs a command. */
#include "base/macros.h"
#include "cli/cli.h"
#include "cli/completion.h"
#include "plan/suggest.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTER(name) &cli_##name,
static const struct cli_command *const commands[] = {CLI_COMMANDS(POINTER)};

static const struct cli_command *find(const char *name)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(commands); ix++) {
        if (strcmp(commands[ix]->name, name) == 0) {
            return commands[ix];
        }
    }
    return NULL;
}

static void add_usage(struct strbuf *out)
{
    strbuf_adds(out,
                "usage: sluice COMMAND [OPTION]... [PLAN]\n\nCrash-safe "
                "scheduler for coding-agent sessions.\n\ncommands:\n");
    for (size_t ix = 0; ix < ARRAY_COUNT(commands); ix++) {
        strbuf_addf(out,
                    "  %-10s %s\n",
                    commands[ix]->name,
                    commands[ix]->summary);
    }
    strbuf_adds(
        out,
        "\nSee 'sluice COMMAND --help' for the options of a command.\n");
}

/* Print the usage, or the version, to standard output. */
static int print_about(bool version)
{
    struct strbuf out = {0};
    if (version) {
        strbuf_adds(&out, "sluice " SLUICE_VERSION "\n");
    } else {
        add_usage(&out);
    }
    return cli_print(&out);
}

static int fail_usage(const char *command)
{
    struct strbuf out = {0};
    if (command == NULL) {
        add_usage(&out);
    } else {
        struct suggest guess;
        uint32_t budget = SUGGEST_BUDGET;
        suggest_init(&guess, command, strlen(command), &budget);
        for (size_t ix = 0; ix < ARRAY_COUNT(commands); ix++) {
            (void)suggest_offer(&guess, commands[ix]->name);
        }
        strbuf_addf(&out,
                    "sluice: unknown command \"%s\"%s\n"
                    "Try 'sluice --help'.\n",
                    command,
                    suggest_hint(&guess));
    }
    (void)fputs(strbuf_text(&out), stderr);
    strbuf_release(&out);
    return CLI_USAGE;
}

static bool is(const char *word, const char *name, const char *option)
{
    return strcmp(word, name) == 0 || strcmp(word, option) == 0;
}

int main(int argc, char **argv)
{
    (void)setlocale(LC_CTYPE, ""); /* number formats stay as in C */
    if (argc < 2) {
        return fail_usage(NULL);
    }
    if (is(argv[1], "help", "--help") || strcmp(argv[1], "-h") == 0) {
        if (argc == 2) {
            return print_about(false);
        }
        const struct cli_command *about = find(argv[2]);
        return about != NULL ? cli_help(about) : fail_usage(argv[2]);
    }
    if (is(argv[1], "version", "--version")) {
        return print_about(true);
    }
    if (strcmp(argv[1], "completion") == 0) {
        return completion_print(argc == 3 ? argv[2] : NULL,
                                commands,
                                ARRAY_COUNT(commands));
    }
    const struct cli_command *command = find(argv[1]);
    return command != NULL ? command->run(command, argc - 1, argv + 1)
                           : fail_usage(argv[1]);
}
