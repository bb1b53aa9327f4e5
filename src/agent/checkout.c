/* SPDX-License-Identifier: MIT */
#include "agent/checkout.h"

#include "agent/runner.h"
#include "base/mem.h"
#include "exec/attempt_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Read the first lines of git's output; the caller frees them. */
static bool ask_git(const char *const *argv, char **lines, uint32_t count)
{
    struct strbuf text = {0};
    bool good = runner_output(&text, argv) == 0;
    const char *at = strbuf_text(&text);
    for (uint32_t ix = 0; ix < count; ix++) {
        size_t len = strcspn(at, "\n");
        lines[ix] = good && len > 0 ? mem_strndup(at, len) : NULL;
        at += len + (at[len] == '\n' ? 1 : 0);
    }
    strbuf_release(&text);
    return good;
}

static char *find_head(void)
{
    static const char *const argv[] =
        {"git", "rev-parse", "--verify", "--quiet", "HEAD", NULL};
    char *head = NULL;
    (void)ask_git(argv, &head, 1);
    return head;
}

/* Cut `*at` after its next separator; return the string before it. */
static const char *cut(char **at, char separator)
{
    char *start = *at;
    char *end = strchr(start, separator);
    if (end != NULL) {
        *end = '\0';
        *at = end + 1;
    } else {
        *at = start + strlen(start);
    }
    return start;
}

/* Read the range of each task of the brief, by name. */
static void read_ranges(struct checkout *checkout, const struct brief *brief)
{
    char *at = checkout->ranges.text;
    while (at != NULL && *at != '\0') {
        char *line = at;
        (void)cut(&at, '\n');
        const char *task = cut(&line, '\t');
        struct prompt_range range = {.branch = cut(&line, '\t')};
        range.start = cut(&line, '\t');
        range.tip = line;
        for (uint32_t ix = 0; ix < brief->task_count; ix++) {
            if (strcmp(brief->tasks[ix].task, task) == 0) {
                checkout->list[ix] = range;
            }
        }
    }
}

enum err checkout_find(struct checkout *out,
                       const char *dir,
                       const struct brief *brief,
                       struct diag *diag)
{
    static const char *const argv[] = {"git",
                                       "rev-parse",
                                       "--path-format=absolute",
                                       "--git-dir",
                                       "--git-common-dir",
                                       NULL};
    *out = (struct checkout){0};
    char *folder = getcwd(NULL, 0);
    if (folder == NULL) {
        return diag_set(diag, ERR_IO, "working directory: %s", strerror(errno));
    }
    out->folder = mem_strndup(folder, strlen(folder));
    free(folder);
    out->list = mem_zalloc(brief->task_count, sizeof(out->list[0]));
    for (uint32_t ix = 0; ix < brief->task_count; ix++) {
        out->list[ix] =
            (struct prompt_range){.branch = "", .start = "", .tip = ""};
    }
    bool repository =
        attempt_file_read(dir, "ranges", &out->ranges, NULL) == ERR_OK;
    if (repository) {
        char *dirs[2] = {NULL, NULL};
        read_ranges(out, brief);
        (void)ask_git(argv, dirs, 2);
        out->git_dir = dirs[0];
        out->common_dir = dirs[1];
        out->head = find_head();
    }
    out->prompt = (struct prompt_checkout){
        .folder = out->folder,
        .repository = repository,
        .ranges = out->list,
    };
    ssize_t len = getrandom(&out->prompt.nonce, sizeof(out->prompt.nonce), 0);
    if (len != (ssize_t)sizeof(out->prompt.nonce)) {
        checkout_release(out);
        return diag_set(diag, ERR_IO, "getrandom: %s", strerror(errno));
    }
    return ERR_OK;
}

void checkout_release(struct checkout *checkout)
{
    strbuf_release(&checkout->ranges);
    mem_free(checkout->list);
    mem_free(checkout->folder);
    mem_free(checkout->git_dir);
    mem_free(checkout->common_dir);
    mem_free(checkout->head);
    *checkout = (struct checkout){0};
}

bool checkout_has_moved(const struct checkout *checkout)
{
    if (checkout->head == NULL) {
        return false;
    }
    char *head = find_head();
    bool moved = head != NULL && strcmp(head, checkout->head) != 0;
    mem_free(head);
    return moved;
}
