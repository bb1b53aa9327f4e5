/* SPDX-License-Identifier: MIT */
/* sluice: pick the command and run it. */
#include "base/macros.h"
#include "cli/cli.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_command *const commands[] = {
    &cli_check,
    &cli_simulate,
};

static const struct cli_command *find(const char *name)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(commands); ix++) {
        if (strcmp(commands[ix]->name, name) == 0) {
            return commands[ix];
        }
    }
    return NULL;
}

static void print_usage(FILE *to)
{
    (void)fprintf(to, "usage: sluice COMMAND [OPTION]... [PLAN]\n\n");
    (void)fprintf(to, "Runs a plan of coding-agent sessions to its end.\n\n");
    (void)fprintf(to, "commands:\n");
    for (size_t ix = 0; ix < ARRAY_COUNT(commands); ix++) {
        (void)fprintf(
            to, "  %-10s %s\n", commands[ix]->name, commands[ix]->summary);
    }
    (void)fprintf(to, "\n'sluice COMMAND --help' tells more of one.\n");
}

static bool is(const char *word, const char *name, const char *option)
{
    return strcmp(word, name) == 0 || strcmp(word, option) == 0;
}

int main(int argc, char **argv)
{
    (void)setlocale(LC_ALL, "");
    if (argc < 2) {
        print_usage(stderr);
        return CLI_USAGE;
    }
    if (is(argv[1], "help", "--help") || strcmp(argv[1], "-h") == 0) {
        const struct cli_command *about = argc > 2 ? find(argv[2]) : NULL;
        if (about != NULL) {
            cli_help(about);
        } else {
            print_usage(stdout);
        }
        return CLI_OK;
    }
    if (is(argv[1], "version", "--version")) {
        printf("sluice %s\n", SLUICE_VERSION);
        return CLI_OK;
    }
    const struct cli_command *command = find(argv[1]);
    if (command == NULL) {
        (void)fprintf(stderr,
                      "sluice: unknown command \"%s\"\n"
                      "Try 'sluice --help'.\n",
                      argv[1]);
        return CLI_USAGE;
    }
    return command->run(command, argc - 1, argv + 1);
}
