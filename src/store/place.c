/* SPDX-License-Identifier: MIT */
#include "store/place.h"

#include "base/invariant.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/strbuf.h"
#include "store/pg.h"
#include "store/pg_link.h"

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

/* Append this machine's directory for a store elsewhere. */
static enum err
add_home(struct strbuf *out, const char *address, struct diag *diag)
{
    const char *given = getenv("SLUICE_HOME");
    const char *state = getenv("XDG_STATE_HOME");
    const char *user = getenv("HOME");
    if (given != NULL && given[0] != '\0') {
        char *path = absolute(given, diag);
        strbuf_adds(out, path != NULL ? path : "");
        mem_free(path);
        return out->len > 0 ? ERR_OK : ERR_NOT_FOUND;
    }
    if (state != NULL && state[0] == '/') {
        strbuf_adds(out, state);
    } else if (user != NULL && user[0] == '/') {
        strbuf_addf(out, "%s/.local/state", user);
    } else {
        return diag_set(diag,
                        ERR_NOT_FOUND,
                        "neither HOME nor SLUICE_HOME is set: set SLUICE_HOME "
                        "to a directory of this machine");
    }
    unsigned char sum[SHA256_BYTES];
    sha256(address, strlen(address), sum);
    strbuf_adds(out, "/sluice/");
    for (int ix = 0; ix < 8; ix++) {
        strbuf_addf(out, "%02x", sum[ix]);
    }
    return ERR_OK;
}

/* Create a directory and its parents. */
static enum err make_all(const char *path, struct diag *diag)
{
    char *copy = mem_strdup(path);
    int error = 0;
    for (char *at = strchr(copy + 1, '/'); error == 0;
         at = strchr(at + 1, '/')) {
        if (at != NULL) {
            *at = '\0';
        }
        if (mkdir(copy, 0700) != 0 && errno != EEXIST) {
            error = errno;
        }
        if (at == NULL) {
            break;
        }
        *at = '/';
    }
    mem_free(copy);
    return error == 0
               ? ERR_OK
               : diag_set(diag, ERR_IO, "create %s: %s", path, strerror(error));
}

/* Find a store in PostgreSQL. */
static enum err find_server(struct store_place *out,
                            const char *address,
                            bool make,
                            struct diag *diag)
{
    struct strbuf home = {0};
    struct strbuf shown = {0};
    char id[33] = "";
    enum err err = add_home(&home, address, diag);
    if (err == ERR_OK) {
        err = make_all(strbuf_text(&home), diag);
    }
    if (err == ERR_OK) {
        err = pg_identify(address, make, id, diag);
    }
    if (err == ERR_OK) {
        err = pg_add_shown(&shown, address, diag);
    }
    if (err == ERR_OK) {
        *out = (struct store_place){
            .address = mem_strdup(address),
            .shown = shown.text,
            .id = mem_strdup(id),
            .home = mem_strdup(strbuf_text(&home)),
        };
    }
    if (err != ERR_OK) {
        strbuf_release(&shown);
    }
    strbuf_release(&home);
    return err;
}

enum err store_place_find(struct store_place *out,
                          const char *option,
                          bool make,
                          struct diag *diag)
{
    *out = (struct store_place){0};
    const char *given = option != NULL ? option : getenv("SLUICE_STORE");
    char *dir;
    if (given != NULL && pg_is_address(given)) {
        return find_server(out, given, make, diag);
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
    *out = store_place_copy(&(struct store_place){
        .address = dir,
        .shown = dir,
        .id = dir,
        .home = dir,
    });
    mem_free(dir);
    return ERR_OK;
}

struct store_place store_place_copy(const struct store_place *place)
{
    INVARIANT(place->home[0] == '/');
    return (struct store_place){
        .address = mem_strndup(place->address, strlen(place->address)),
        .shown = mem_strdup(place->shown),
        .id = mem_strndup(place->id, strlen(place->id)),
        .home = mem_strndup(place->home, strlen(place->home)),
    };
}

void store_place_release(struct store_place *place)
{
    mem_free(place->address);
    mem_free(place->shown);
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
