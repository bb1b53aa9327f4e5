/* SPDX-License-Identifier: MIT */
/*
 * Paths are resolved here, link by link, because bwrap mounts files of the
 * machine at paths of the sandbox: a path is of use there only if each link on
 * the way exists there, too.
 *
 * Sessions are not trusted, and one sandbox follows another in the same
 * directories. So no link is followed that a session may have planted: a path
 * that leads through a link in a writable directory is rejected, and nothing
 * that a session can write says what is mounted. That is why the alternates of
 * a session's repository are not read: sluice-git names the object directory of
 * the user's repository, and only its own alternates are followed.
 */
#include "exec/sandbox_view.h"

#include "base/macros.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HOPS_MAX = 40, ALTERNATES_MAX = 100, INTERPRETERS_MAX = 3 };

/* Directories of the system; others need `read`. /usr is the first, because it
 * contains most of the others on most systems. */
static const char *const system_dirs[] = {
    "/usr",
    "/bin",
    "/etc",
    "/gnu/store",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/sbin",
};

static const char *const empty_dirs[] = {"/run", "/tmp", "/var/tmp"};

/* Secrets of the system, which a session as root could read. */
static const char *const secrets[] = {
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/security/opasswd",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssh/ssh_host_*_key",
    "/etc/ssl/private",
    "/etc/letsencrypt",
};

/* Files of an attempt that a session must not change. */
static const char *const records[] = {"brief",
                                      "exit",
                                      "lock",
                                      "log",
                                      "started"};

struct viewing {
    struct sandbox *sandbox;
    const struct sandbox_view *view;
    struct diag *diag;
};

static void
add(struct viewing *viewing, enum sandbox_kind kind, const char *path)
{
    sandbox_add(viewing->sandbox,
                &(struct sandbox_mount){.kind = kind, .path = path});
}

/* Remove empty, "." and ".." components from an absolute path, in place. */
static void normalise(char *path)
{
    char *out = path;
    const char *at = path;
    while (*at != '\0') {
        at += strspn(at, "/");
        size_t len = strcspn(at, "/");
        if (len == 2 && at[0] == '.' && at[1] == '.') {
            while (out > path && *--out != '/') {
            }
        } else if (len > 0 && !(len == 1 && at[0] == '.')) {
            *out++ = '/';
            memmove(out, at, len);
            out += len;
        }
        at += len;
    }
    if (out == path) {
        *out++ = '/';
    }
    *out = '\0';
}

/* Replace the link at the first `len` bytes of a path by its target. */
static bool follow(char path[PATH_MAX], size_t len, const char *target)
{
    struct strbuf made = {0};
    if (target[0] != '/') {
        size_t dir = len;
        while (dir > 0 && path[dir - 1] != '/') {
            dir--;
        }
        strbuf_add(&made, path, dir);
    }
    strbuf_addf(&made, "%s%s", target, path + len);
    bool fits = made.len < PATH_MAX;
    if (fits) {
        memcpy(path, made.text, made.len + 1);
        normalise(path);
    }
    strbuf_release(&made);
    return fits;
}

/*
 * Resolve a path, and add the links on the way that would be missing in the
 * sandbox. `path` must be absolute; the result replaces it. Returns an errno;
 * ELOOP also for a link in a directory that sessions can write.
 */
static int reach(struct viewing *viewing, char path[PATH_MAX])
{
    normalise(path);
    size_t len = 1;
    for (int hops = 0; hops < HOPS_MAX;) {
        len += strcspn(path + len, "/");
        char end = path[len];
        char target[PATH_MAX];
        struct stat stat;
        path[len] = '\0';
        if (lstat(path, &stat) != 0) {
            return errno;
        }
        if (!S_ISLNK(stat.st_mode)) {
            path[len] = end;
            if (end == '\0') {
                return 0;
            }
            len++;
            continue;
        }
        ssize_t got = readlink(path, target, sizeof(target) - 1);
        const struct sandbox_mount *over = sandbox_over(viewing->sandbox, path);
        if (got <= 0 || (over != NULL && over->kind == SANDBOX_WRITE)) {
            return ELOOP;
        }
        target[got] = '\0';
        sandbox_add(viewing->sandbox,
                    &(struct sandbox_mount){.kind = SANDBOX_LINK,
                                            .path = path,
                                            .target = target});
        path[len] = end;
        if (!follow(path, len, target)) {
            return ENAMETOOLONG;
        }
        hops++;
        len = 1;
    }
    return ELOOP;
}

/* Copy a path, if it is absolute and fits. */
static bool take_path(char out[PATH_MAX], const char *path)
{
    int len = path != NULL && path[0] == '/'
                  ? snprintf(out, PATH_MAX, "%s", path)
                  : 0;
    return len > 0 && len < PATH_MAX;
}

/* Add a path that may be missing; return whether it was added. */
static bool
add_if(struct viewing *viewing, enum sandbox_kind kind, const char *name)
{
    char path[PATH_MAX];
    bool found = take_path(path, name) && reach(viewing, path) == 0;
    if (found &&
        !(kind == SANDBOX_READ && sandbox_shows(viewing->sandbox, path))) {
        add(viewing, kind, path);
    }
    return found;
}

/* Add a path that the plan names. */
static enum err
add_named(struct viewing *viewing, enum sandbox_kind kind, const char *name)
{
    char path[PATH_MAX];
    const char *home = name[0] == '~' ? getenv("HOME") : "";
    int len = snprintf(path,
                       sizeof(path),
                       "%s%s",
                       home != NULL ? home : "",
                       name[0] == '~' ? name + 1 : name);
    if (path[0] != '/' || len >= PATH_MAX) {
        return diag_set(viewing->diag, ERR_INVALID, "invalid path %s", name);
    }
    normalise(path);
    const struct sandbox_mount *over = sandbox_over(viewing->sandbox, path);
    if (over != NULL && over->kind == SANDBOX_WRITE) {
        return ERR_OK; /* inside a writable directory */
    }
    int error = reach(viewing, path);
    if (error != 0) {
        return diag_set(viewing->diag,
                        ERR_NOT_FOUND,
                        "%s, named in \"sandbox\": %s",
                        name,
                        strerror(error));
    }
    add(viewing, kind, path);
    return ERR_OK;
}

/* --- the machine -------------------------------------------------------- */

/* Hide secrets of the system that this user can read. */
static void hide_secrets(struct viewing *viewing)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(secrets); ix++) {
        glob_t found = {0};
        if (glob(secrets[ix], GLOB_NOSORT, NULL, &found) == 0) {
            for (size_t n = 0; n < found.gl_pathc; n++) {
                const char *path = found.gl_pathv[n];
                struct stat stat;
                if (lstat(path, &stat) == 0 && access(path, R_OK) == 0 &&
                    !S_ISLNK(stat.st_mode)) {
                    add(viewing,
                        S_ISDIR(stat.st_mode) ? SANDBOX_EMPTY : SANDBOX_BLANK,
                        path);
                }
            }
        }
        globfree(&found);
    }
}

/* Keep a directory out of sight, unless it is named. */
static void cover(struct viewing *viewing, const char *name)
{
    char path[PATH_MAX];
    if (take_path(path, name) && reach(viewing, path) == 0 && path[1] != '\0') {
        add(viewing, SANDBOX_COVER, path);
    }
}

/* The home directory, resolved; "" if there is none. */
static void find_home(struct viewing *viewing, char out[PATH_MAX])
{
    if (!take_path(out, getenv("HOME")) || reach(viewing, out) != 0 ||
        out[1] == '\0') {
        out[0] = '\0';
    }
}

static void add_machine(struct viewing *viewing)
{
    static const char repo[] = "SLUICE_REPO_";
    for (size_t ix = 0; ix < ARRAY_COUNT(system_dirs); ix++) {
        (void)add_if(viewing, SANDBOX_READ, system_dirs[ix]);
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(empty_dirs); ix++) {
        add(viewing, SANDBOX_EMPTY, empty_dirs[ix]);
    }
    hide_secrets(viewing);
    char home[PATH_MAX];
    find_home(viewing, home);
    if (home[0] != '\0') {
        add(viewing, SANDBOX_EMPTY, home);
    }
    for (uint32_t ix = 0; ix < viewing->view->cover.count; ix++) {
        cover(viewing, viewing->view->cover.items[ix]);
    }
    for (char **item = environ; *item != NULL; item++) {
        const char *equals = strchr(*item, '=');
        if (strncmp(*item, repo, strlen(repo)) == 0 && equals != NULL) {
            cover(viewing, equals + 1);
        }
    }
    /* Name resolution: a link into /run on many systems. */
    (void)add_if(viewing, SANDBOX_READ, "/etc/resolv.conf");
}

/* --- the session -------------------------------------------------------- */

/* Add the working directory. A directory that contains the home directory or
 * the system cannot be confined. */
static enum err add_folder(struct viewing *viewing)
{
    const char *folder = viewing->view->folder;
    char home[PATH_MAX];
    if (folder == NULL) {
        return ERR_OK;
    }
    find_home(viewing, home);
    bool wide = home[0] != '\0' && sandbox_is_inside(home, folder);
    for (size_t ix = 0; ix < ARRAY_COUNT(system_dirs) && !wide; ix++) {
        wide = sandbox_is_inside(system_dirs[ix], folder);
    }
    if (wide) {
        return diag_set(viewing->diag,
                        ERR_INVALID,
                        "its directory %s contains the home directory or the "
                        "system; work in another directory",
                        folder);
    }
    add(viewing, SANDBOX_WRITE, folder);
    return ERR_OK;
}

/* Add the attempt directory, and protect the records in it. Nothing of the
 * session has run in it, or the records are protected already. */
static enum err add_attempt(struct viewing *viewing)
{
    char path[PATH_MAX];
    if (viewing->view->attempt == NULL) {
        return ERR_OK;
    }
    if (!take_path(path, viewing->view->attempt) || reach(viewing, path) != 0) {
        return diag_set(viewing->diag,
                        ERR_IO,
                        "no attempt directory %s",
                        viewing->view->attempt);
    }
    add(viewing, SANDBOX_WRITE, path);
    for (size_t ix = 0; ix < ARRAY_COUNT(records); ix++) {
        char file[PATH_MAX];
        struct stat stat;
        int len = snprintf(file, sizeof(file), "%s/%s", path, records[ix]);
        if (len > 0 && (size_t)len < sizeof(file) && lstat(file, &stat) == 0 &&
            S_ISREG(stat.st_mode)) {
            add(viewing, SANDBOX_READ, file);
        }
    }
    return ERR_OK;
}

/* Add git object directories, with those that they borrow from. */
static void add_objects(struct viewing *viewing)
{
    struct sandbox_words todo = {0};
    struct arena arena = {0};
    const char *first = getenv("SLUICE_OBJECTS");
    if (first != NULL) {
        sandbox_add_word(&todo, first);
    }
    for (uint32_t ix = 0; ix < todo.count && ix < ALTERNATES_MAX; ix++) {
        char dir[PATH_MAX];
        char path[PATH_MAX];
        if (!take_path(dir, todo.items[ix]) || reach(viewing, dir) != 0) {
            continue;
        }
        add(viewing, SANDBOX_READ, dir);
        int len = snprintf(path, sizeof(path), "%s/info/alternates", dir);
        FILE *file = len > 0 && len < PATH_MAX ? fopen(path, "re") : NULL;
        while (file != NULL && fgets(path, sizeof(path), file) != NULL) {
            struct strbuf next = {0};
            size_t end = strcspn(path, "\n");
            path[end] = '\0';
            if (end > 0 && path[0] != '#') {
                strbuf_addf(&next,
                            "%s%s%s",
                            path[0] == '/' ? "" : dir,
                            path[0] == '/' ? "" : "/",
                            path);
                sandbox_add_word(&todo,
                                 arena_strndup(&arena, next.text, next.len));
            }
            strbuf_release(&next);
        }
        if (file != NULL) {
            (void)fclose(file);
        }
    }
    sandbox_release_words(&todo);
    arena_release(&arena);
}

/* Append a value of git's configuration, in quotes. */
static void add_value(struct strbuf *out, const char *key, const char *value)
{
    strbuf_addf(out, "\t%s = \"", key);
    for (; *value != '\0'; value++) {
        strbuf_adds(out, *value == '"' || *value == '\\' ? "\\" : "");
        strbuf_add(out, value, 1);
    }
    strbuf_adds(out, "\"\n");
}

/* Give git a name and an address for commits, in the empty home directory. */
static void add_identity(struct viewing *viewing)
{
    const char *name = getenv("SLUICE_GIT_NAME");
    const char *email = getenv("SLUICE_GIT_EMAIL");
    char path[PATH_MAX];
    find_home(viewing, path);
    if ((name == NULL && email == NULL) || path[0] == '\0') {
        return;
    }
    struct strbuf text = {0};
    strbuf_adds(&text, "[user]\n");
    if (name != NULL) {
        add_value(&text, "name", name);
    }
    if (email != NULL) {
        add_value(&text, "email", email);
    }
    struct strbuf file = {0};
    strbuf_addf(&file, "%s/.gitconfig", path);
    int fd = memfd_create("gitconfig", 0);
    if (fd >= 0 &&
        write(fd, strbuf_text(&text), text.len) == (ssize_t)text.len &&
        lseek(fd, 0, SEEK_SET) == 0) {
        sandbox_add(viewing->sandbox,
                    &(struct sandbox_mount){.kind = SANDBOX_COPY,
                                            .path = strbuf_text(&file),
                                            .fd = fd});
    }
    strbuf_release(&file);
    strbuf_release(&text);
}

/* --- agents ------------------------------------------------------------- */

/* Create a directory and its parents; return whether it exists then. */
static bool make_dir(char path[PATH_MAX])
{
    for (size_t ix = 1; path[ix - 1] != '\0'; ix++) {
        if (path[ix] == '/' || path[ix] == '\0') {
            char end = path[ix];
            path[ix] = '\0';
            bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
            path[ix] = end;
            if (!made) {
                return false;
            }
        }
    }
    return true;
}

static enum err add_state(struct viewing *viewing, const char *name)
{
    char path[PATH_MAX];
    if (!take_path(path, name) || !make_dir(path) ||
        !add_if(viewing, SANDBOX_WRITE, path)) {
        return diag_set(viewing->diag,
                        ERR_IO,
                        "directory %s of its agent: %s",
                        name,
                        strerror(errno));
    }
    return ERR_OK;
}

static void add_copy(struct viewing *viewing, const char *name)
{
    char path[PATH_MAX];
    if (!take_path(path, name) || reach(viewing, path) != 0) {
        return;
    }
    int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
    if (fd >= 0) {
        sandbox_add(viewing->sandbox,
                    &(struct sandbox_mount){.kind = SANDBOX_COPY,
                                            .path = path,
                                            .fd = fd});
    }
}

static enum err add_agent(struct viewing *viewing)
{
    const struct sandbox_view *view = viewing->view;
    enum err err = ERR_OK;
    for (uint32_t ix = 0; ix < view->state.count && err == ERR_OK; ix++) {
        err = add_state(viewing, view->state.items[ix]);
    }
    for (uint32_t ix = 0; ix < view->login.count; ix++) {
        (void)add_if(viewing, SANDBOX_WRITE, view->login.items[ix]);
    }
    for (uint32_t ix = 0; ix < view->config.count; ix++) {
        (void)add_if(viewing, SANDBOX_READ, view->config.items[ix]);
    }
    for (uint32_t ix = 0; ix < view->copy.count; ix++) {
        add_copy(viewing, view->copy.items[ix]);
    }
    return err;
}

bool sandbox_find_program(const char *name, char *out, size_t size)
{
    const char *at = getenv("PATH");
    at = at != NULL ? at : "/usr/local/bin:/usr/bin:/bin";
    while (*at != '\0') {
        size_t len = strcspn(at, ":");
        struct stat info;
        int made =
            *at == '/' ? snprintf(out, size, "%.*s/%s", (int)len, at, name) : 0;
        if (made > 0 && (size_t)made < size && stat(out, &info) == 0 &&
            S_ISREG(info.st_mode) && access(out, X_OK) == 0) {
            return true;
        }
        at += len + (at[len] == ':' ? 1 : 0);
    }
    return false;
}

/* Add a program: its file, or all packages that are installed with it. */
static void add_file(struct viewing *viewing, char path[PATH_MAX])
{
    static const char packages[] = "/node_modules";
    if (sandbox_shows(viewing->sandbox, path)) {
        return;
    }
    struct strbuf root = {0};
    const char *found = strstr(path, packages);
    size_t len = found != NULL ? (size_t)(found - path) + strlen(packages) : 0;
    strbuf_add(&root,
               path,
               found != NULL && path[len] == '/' ? len : strlen(path));
    add(viewing, SANDBOX_READ, strbuf_text(&root));
    strbuf_release(&root);
}

/* Return the interpreter of a script: a path, or a name in PATH after env. */
static bool read_interpreter(const char *path, char out[PATH_MAX])
{
    char line[512];
    FILE *file = fopen(path, "re");
    bool script = file != NULL && fgets(line, sizeof(line), file) != NULL &&
                  line[0] == '#' && line[1] == '!';
    if (file != NULL) {
        (void)fclose(file);
    }
    if (!script) {
        return false;
    }
    const char *at = line + 2 + strspn(line + 2, " \t");
    size_t len = strcspn(at, " \t\n");
    if (len >= 4 && memcmp(at + len - 4, "/env", 4) == 0) {
        at += len;
        at += strspn(at, " \t");
        size_t option = strcspn(at, " \t\n");
        if (option == 2 && memcmp(at, "-S", 2) == 0) {
            at += option;
            at += strspn(at, " \t");
        }
        len = strcspn(at, " \t\n");
    }
    return len > 0 && snprintf(out, PATH_MAX, "%.*s", (int)len, at) > 0;
}

/* Add the program of an agent, and the interpreters that it needs. A program
 * that does not exist is reported when it is started. */
static void add_program(struct viewing *viewing, const char *name)
{
    char next[PATH_MAX];
    char path[PATH_MAX];
    bool more = snprintf(next, sizeof(next), "%s", name) > 0;
    for (int ix = 0; more && ix < INTERPRETERS_MAX; ix++) {
        bool found = strchr(next, '/') != NULL
                         ? take_path(path, next)
                         : sandbox_find_program(next, path, sizeof(path));
        more = found && reach(viewing, path) == 0;
        if (more) {
            add_file(viewing, path);
            more = read_interpreter(path, next);
        }
    }
}

/* --- all ---------------------------------------------------------------- */

/* Show what a session needs to talk to its scheduler: the directory of the
 * socket, which outlives the socket, and sluice itself. */
static void add_door(struct viewing *viewing)
{
    const char *door = getenv("SLUICE_DOOR");
    const char *program = getenv("SLUICE_PROGRAM");
    const char *slash = door != NULL ? strrchr(door, '/') : NULL;
    if (slash != NULL) {
        struct strbuf dir = {0};
        strbuf_add(&dir, door, (size_t)(slash - door));
        (void)add_if(viewing, SANDBOX_READ, strbuf_text(&dir));
        strbuf_release(&dir);
    }
    if (program != NULL && !sandbox_shows(viewing->sandbox, program)) {
        (void)add_if(viewing, SANDBOX_READ, program);
    }
}

static enum err add_lists(struct viewing *viewing)
{
    const struct sandbox_view *view = viewing->view;
    enum err err = ERR_OK;
    for (uint32_t ix = 0; ix < view->write.count && err == ERR_OK; ix++) {
        err = add_named(viewing, SANDBOX_WRITE, view->write.items[ix]);
    }
    for (uint32_t ix = 0; ix < view->read.count && err == ERR_OK; ix++) {
        err = add_named(viewing, SANDBOX_READ, view->read.items[ix]);
    }
    for (uint32_t ix = 0; ix < view->env.count; ix++) {
        if (strcmp(view->env.items[ix], "SSH_AUTH_SOCK") == 0) {
            (void)add_if(viewing, SANDBOX_WRITE, getenv("SSH_AUTH_SOCK"));
        }
    }
    add_door(viewing);
    const char *body = getenv("SLUICE_BODY");
    if (body != NULL && !sandbox_shows(viewing->sandbox, body)) {
        (void)add_if(viewing, SANDBOX_READ, body);
    }
    return err;
}

enum err sandbox_view_add(struct sandbox *sandbox,
                          const struct sandbox_view *view,
                          struct diag *diag)
{
    struct viewing viewing = {
        .sandbox = sandbox,
        .view = view,
        .diag = diag,
    };
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (len <= 0) {
        return diag_set(diag, ERR_IO, "/proc/self/exe: %s", strerror(errno));
    }
    self[len] = '\0';
    add_machine(&viewing);
    enum err err = add_folder(&viewing);
    if (err == ERR_OK) {
        err = add_attempt(&viewing);
    }
    if (err == ERR_OK) {
        err = add_lists(&viewing);
    }
    if (err == ERR_OK) {
        err = add_agent(&viewing);
    }
    if (err == ERR_OK) {
        add_objects(&viewing);
        add_identity(&viewing);
        if (view->program != NULL) {
            add_program(&viewing, view->program);
        }
        sandbox_add(sandbox,
                    &(struct sandbox_mount){.kind = SANDBOX_READ,
                                            .path = SANDBOX_INIT,
                                            .target = self});
    }
    return err;
}
