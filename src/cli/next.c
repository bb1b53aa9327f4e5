/* SPDX-License-Identifier: MIT */
#include "cli/next.h"

#include "base/mem.h"
#include "store/store.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

static void add_word(struct strbuf *out, const char *word)
{
    static const char safe[] = "abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:,+-";
    if (word[0] != '\0' && word[strspn(word, safe)] == '\0') {
        strbuf_adds(out, word);
        return;
    }
    strbuf_adds(out, "'");
    for (const char *at = word; *at != '\0'; at++) {
        if (*at == '\'') {
            strbuf_adds(out, "'\\''");
        } else {
            strbuf_add(out, at, 1);
        }
    }
    strbuf_adds(out, "'");
}

void next_add(struct strbuf *out, const struct next_command *command)
{
    strbuf_adds(out, "sluice run");
    if (command->option != NULL) {
        strbuf_addf(out, " %s", command->option);
    }
    if (command->store != NULL) {
        strbuf_adds(out, " --store ");
        add_word(out, command->store);
    }
    strbuf_adds(out, " ");
    add_word(out, command->plan);
}

/* Store the plan path of an unfinished run. */
static enum err on_run(void *ctx, const struct store_run *row)
{
    struct strbuf *path = ctx;
    char here[PATH_MAX];
    if (row->finished) {
        return ERR_OK;
    }
    strbuf_clear(path);
    const char *slash = strrchr(row->file, '/');
    bool near =
        getcwd(here, sizeof(here)) != NULL && strcmp(here, row->folder) == 0;
    if (strcmp(row->file, "-") != 0 && !near) {
        strbuf_addf(path, "%s/", row->folder);
    }
    strbuf_adds(path, slash != NULL ? slash + 1 : row->file);
    return ERR_OK;
}

bool next_add_idle(struct strbuf *out,
                   const struct store_place *place,
                   const char *store_option,
                   const char *run)
{
    static const struct store_visitor visitor = {.run = on_run};
    struct store_query query = {.run = run};
    struct strbuf path = {0}; /* empty: no such run */
    struct store *store;
    struct store_owner owner;
    struct diag ignored = {0};
    if (store_open(&store, place->address, STORE_READ, &ignored) != ERR_OK) {
        return false;
    }
    bool idle =
        store_owner(store, &owner, &ignored) == ERR_NOT_FOUND &&
        store_read(store, &query, &visitor, &path, NULL, &ignored) == ERR_OK &&
        path.len > 0;
    if (idle) {
        struct next_command command = {
            .store = store_option,
            .plan = strbuf_text(&path),
        };
        strbuf_adds(out, "no scheduler is running; to resume: ");
        next_add(out, &command);
        strbuf_adds(out, "\n");
    }
    strbuf_release(&path);
    store_close(store);
    return idle;
}
