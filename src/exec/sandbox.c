/* SPDX-License-Identifier: MIT */
#include "exec/sandbox.h"

#include "base/invariant.h"
#include "base/macros.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

/* Variables that programs need to run at all; none is a secret. */
static const char *const plain_variables[] = {
    "COLORTERM",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NO_COLOR",
    "PATH",
    "PWD",
    "SHELL",
    "TERM",
    "TZ",
    "USER",
};
static const char *const plain_prefixes[] = {"LC_", "SLUICE_"};

void sandbox_release(struct sandbox *sandbox)
{
    arena_release(&sandbox->arena);
    mem_free(sandbox->mounts);
    *sandbox = (struct sandbox){0};
}

bool sandbox_is_inside(const char *path, const char *dir)
{
    size_t len = strlen(dir);
    if (len == 1) {
        return true; /* the root directory */
    }
    return strncmp(path, dir, len) == 0 &&
           (path[len] == '/' || path[len] == '\0');
}

/* Replace a mount if the new one is of a later kind. */
static void join(struct sandbox_mount *old, const struct sandbox_mount *mount)
{
    if (mount->kind >= old->kind) {
        const char *path = old->path;
        *old = *mount;
        old->path = path;
    }
}

static const char *keep(struct sandbox *sandbox, const char *text)
{
    return text != NULL ? arena_strndup(&sandbox->arena, text, strlen(text))
                        : NULL;
}

void sandbox_add(struct sandbox *sandbox, const struct sandbox_mount *mount)
{
    INVARIANT(mount->path[0] == '/');
    INVARIANT(mount->kind != SANDBOX_LINK || mount->target != NULL);
    uint32_t at = sandbox->count;
    int order = 1;
    while (at > 0 && order > 0) {
        order = strcmp(sandbox->mounts[at - 1].path, mount->path);
        at -= order > 0 ? 1 : 0;
    }
    struct sandbox_mount copy = *mount;
    copy.target = keep(sandbox, mount->target);
    if (at > 0 && order == 0) {
        join(&sandbox->mounts[at - 1], &copy);
        return;
    }
    copy.path = keep(sandbox, mount->path);
    MEM_GROW(sandbox->mounts, sandbox->count, sandbox->capacity);
    memmove(&sandbox->mounts[at + 1],
            &sandbox->mounts[at],
            (sandbox->count - at) * sizeof(sandbox->mounts[0]));
    sandbox->mounts[at] = copy;
    sandbox->count++;
}

/* Find the deepest mount over a path, which itself counts unless `above`. */
static const struct sandbox_mount *
find(const struct sandbox *sandbox, const char *path, bool above)
{
    const struct sandbox_mount *found = NULL;
    for (uint32_t ix = 0; ix < sandbox->count; ix++) {
        const struct sandbox_mount *mount = &sandbox->mounts[ix];
        if (sandbox_is_inside(path, mount->path) &&
            !(above && strcmp(path, mount->path) == 0) &&
            (found == NULL || strlen(mount->path) > strlen(found->path))) {
            found = mount;
        }
    }
    return found;
}

const struct sandbox_mount *sandbox_over(const struct sandbox *sandbox,
                                         const char *path)
{
    return find(sandbox, path, false);
}

static bool is_shown(const struct sandbox_mount *mount)
{
    return mount != NULL &&
           (mount->kind == SANDBOX_READ || mount->kind == SANDBOX_WRITE);
}

bool sandbox_shows(const struct sandbox *sandbox, const char *path)
{
    return is_shown(find(sandbox, path, false));
}

void sandbox_add_word(struct sandbox_words *words, const char *word)
{
    INVARIANT(word != NULL);
    MEM_GROW(words->items, words->count + 1, words->capacity);
    words->items[words->count++] = word;
    words->items[words->count] = NULL;
}

void sandbox_release_words(struct sandbox_words *words)
{
    mem_free(words->items);
    *words = (struct sandbox_words){0};
}

static void
add_all(struct sandbox_words *out, const char *const *words, uint32_t count)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        sandbox_add_word(out, words[ix]);
    }
}

#define ADD(out, ...)                                                          \
    add_all((out),                                                             \
            (const char *const[]){__VA_ARGS__},                                \
            ARRAY_COUNT(((const char *const[]){__VA_ARGS__})))

/* Add one mount. Links and copies are made only in directories of the sandbox:
 * elsewhere the files of the machine are there. */
static void add_mount(struct sandbox *sandbox,
                      struct sandbox_words *out,
                      const struct sandbox_mount *mount)
{
    bool on_machine = is_shown(find(sandbox, mount->path, true));
    char number[16];
    switch (mount->kind) {
    case SANDBOX_COVER:
        if (on_machine) {
            ADD(out, "--tmpfs", mount->path);
        }
        break;
    case SANDBOX_EMPTY:
        ADD(out, "--tmpfs", mount->path);
        break;
    case SANDBOX_BLANK:
        ADD(out, "--ro-bind", "/dev/null", mount->path);
        break;
    case SANDBOX_LINK:
        if (!on_machine) {
            ADD(out, "--symlink", mount->target, mount->path);
        }
        break;
    case SANDBOX_COPY:
        if (!on_machine) {
            (void)snprintf(number, sizeof(number), "%d", mount->fd);
            ADD(out,
                "--perms",
                "0600",
                "--file",
                keep(sandbox, number),
                mount->path);
        }
        break;
    case SANDBOX_READ:
        ADD(out,
            "--ro-bind",
            mount->target != NULL ? mount->target : mount->path,
            mount->path);
        break;
    case SANDBOX_WRITE:
        ADD(out, "--bind", mount->path, mount->path);
        break;
    }
}

void sandbox_add_arguments(struct sandbox *sandbox,
                           struct sandbox_words *out,
                           const char *folder,
                           bool network,
                           bool root)
{
    /* --as-pid-1: the first process there is ours, not bwrap's. */
    ADD(out,
        "--unshare-user-try",
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--die-with-parent",
        "--new-session",
        "--as-pid-1",
        "--cap-drop",
        "ALL", /* root would keep them */
        "--proc",
        "/proc",
        "--dev",
        "/dev");
    if (root) {
        /* It may write to /proc/sys and others there, even without
         * capabilities; in a user namespace, bwrap does not prevent it. */
        ADD(out, "--remount-ro", "/proc");
    }
    if (!network) {
        sandbox_add_word(out, "--unshare-net");
    }
    for (uint32_t ix = 0; ix < sandbox->count; ix++) {
        add_mount(sandbox, out, &sandbox->mounts[ix]);
    }
    ADD(out, "--chdir", folder);
}

bool sandbox_keeps(const char *item, const char *const *names, uint32_t count)
{
    size_t len = strcspn(item, "=");
    for (size_t ix = 0; ix < ARRAY_COUNT(plain_prefixes); ix++) {
        if (strncmp(item, plain_prefixes[ix], strlen(plain_prefixes[ix])) ==
            0) {
            return true;
        }
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(plain_variables); ix++) {
        if (strlen(plain_variables[ix]) == len &&
            memcmp(plain_variables[ix], item, len) == 0) {
            return true;
        }
    }
    for (uint32_t ix = 0; ix < count; ix++) {
        size_t wanted = strlen(names[ix]);
        bool prefix = wanted > 0 && names[ix][wanted - 1] == '*';
        if (prefix ? strncmp(names[ix], item, wanted - 1) == 0
                   : wanted == len && memcmp(names[ix], item, len) == 0) {
            return true;
        }
    }
    return false;
}
