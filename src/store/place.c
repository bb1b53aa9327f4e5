/* SPDX-License-Identifier: MIT */
#include "store/place.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "base/strbuf.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Return the absolute path; links in its existing part are resolved. */
static char *absolute(const char *path, struct diag *diag)
{
    char real[PATH_MAX];
    if (realpath(path, real) != NULL) {
        return mem_strndup(real, strlen(real));
    }
    if (errno != ENOENT) {
        (void)diag_set(diag, ERR_INVALID, "%s: %s", path, strerror(errno));
        return NULL;
    }
    /* It does not exist yet: its parent must. */
    const char *slash = strrchr(path, '/');
    struct strbuf parent = {0};
    strbuf_add(&parent,
               slash != NULL ? path : ".",
               slash != NULL ? (size_t)(slash - path) + 1 : 1);
    char *made = NULL;
    if (realpath(strbuf_text(&parent), real) == NULL) {
        (void)diag_set(diag,
                       ERR_NOT_FOUND,
                       "%s: %s",
                       strbuf_text(&parent),
                       strerror(errno));
    } else {
        struct strbuf whole = {0};
        strbuf_addf(&whole, "%s/%s", real, slash != NULL ? slash + 1 : path);
        made = mem_strndup(whole.text, whole.len);
        strbuf_release(&whole);
    }
    strbuf_release(&parent);
    return made;
}

/* Return the nearest .sluice in this or a parent directory, or NULL. */
static char *nearest(void)
{
    char here[PATH_MAX];
    if (getcwd(here, sizeof(here)) == NULL) {
        return NULL;
    }
    for (;;) {
        struct strbuf path = {0};
        strbuf_addf(&path, "%s/.sluice", strcmp(here, "/") == 0 ? "" : here);
        if (is_directory(strbuf_text(&path))) {
            char *found = mem_strndup(path.text, path.len);
            strbuf_release(&path);
            return found;
        }
        strbuf_release(&path);
        char *slash = strrchr(here, '/');
        if (slash == NULL || strcmp(here, "/") == 0) {
            return NULL;
        }
        slash[slash == here ? 1 : 0] = '\0';
    }
}

enum err store_place_find(struct store_place *out,
                          const char *option,
                          bool make,
                          struct diag *diag)
{
    *out = (struct store_place){0};
    const char *given = option != NULL ? option : getenv("SLUICE_STORE");
    char *dir;
    if (given != NULL && strncmp(given, "postgresql:", 11) == 0) {
        return diag_set(
            diag,
            ERR_NOT_FOUND,
            "%s: this version has no PostgreSQL store; use a directory",
            given);
    }
    if (given != NULL && given[0] != '\0') {
        dir = absolute(given, diag);
    } else {
        dir = nearest();
        if (dir == NULL && make) {
            dir = absolute(".sluice", diag);
        } else if (dir == NULL) {
            (void)diag_set(
                diag,
                ERR_NOT_FOUND,
                "no .sluice in this or any parent directory; use --store DIR");
        }
    }
    if (dir == NULL) {
        return ERR_NOT_FOUND; /* *diag has the reason */
    }
    *out = store_place_copy(&(struct store_place){dir, dir, dir});
    mem_free(dir);
    return ERR_OK;
}

struct store_place store_place_copy(const struct store_place *place)
{
    INVARIANT(place->home[0] == '/');
    return (struct store_place){
        .address = mem_strndup(place->address, strlen(place->address)),
        .id = mem_strndup(place->id, strlen(place->id)),
        .home = mem_strndup(place->home, strlen(place->home)),
    };
}

void store_place_release(struct store_place *place)
{
    mem_free(place->address);
    mem_free(place->id);
    mem_free(place->home);
    *place = (struct store_place){0};
}

void store_place_socket(struct sockaddr_un *out, int home_fd)
{
    INVARIANT(home_fd >= 0);
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int len = snprintf(out->sun_path,
                       sizeof(out->sun_path),
                       "/proc/self/fd/%d/" STORE_PLACE_SOCKET,
                       home_fd);
    INVARIANT(len > 0 && (size_t)len < sizeof(out->sun_path));
}
