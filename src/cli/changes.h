/* SPDX-License-Identifier: MIT */
/*
 * changes: settings on a command line that differ from those of a plan: --cap,
 * --limit, --policy and --goal of `simulate`.
 */
#ifndef CLI_CHANGES_H
#define CLI_CHANGES_H

#include "base/strbuf.h"
#include "cli/cli.h"
#include "view/whatif.h"

enum { CHANGES_LIMITS_MAX = 64 };

/* Starts as {0}. Strings are borrowed from the command line. */
struct changes {
    struct changes_limit {
        const char *name; /* ends at `name_len` */
        size_t name_len;
        struct whatif_limit wanted; /* without its index */
    } limits[CHANGES_LIMITS_MAX];
    uint32_t limit_count;
    enum plan_policy policy;
    bool policy_given;
    enum plan_goal goal;
    bool goal_given;
};

/* Read the argument of an option. Return CLI_OK, or print an error and return
 * CLI_USAGE. */
int changes_cap(struct changes *changes,
                const struct cli_command *command,
                const char *text);
int changes_limit(struct changes *changes,
                  const struct cli_command *command,
                  const char *text);
int changes_policy(struct changes *changes,
                   const struct cli_command *command,
                   const char *name);
int changes_goal(struct changes *changes,
                 const struct cli_command *command,
                 const char *name);

/* The changes for one plan; borrows from them. */
struct changes_found {
    struct whatif_limit limits[CHANGES_LIMITS_MAX];
    struct whatif_settings settings;
};

/* Find the limits in a plan. Return CLI_OK, or print an error. */
int changes_find(const struct changes *changes,
                 const struct cli_command *command,
                 const struct plan *plan,
                 struct changes_found *out);

/* Append them in words, compared with a plan: "2 slots more, policy fifo". */
void changes_add_text(struct strbuf *out,
                      const struct plan *plan,
                      const struct whatif_settings *settings);

#endif /* CLI_CHANGES_H */
