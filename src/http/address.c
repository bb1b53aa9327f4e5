/* SPDX-License-Identifier: MIT */
#include "http/address.h"

#include "base/macros.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HOST_MAX = 200,
    FILE_MAX = 512, /* an address and a key */
    LOCK_TRIES = 20,
    LOCK_WAIT_US = 10000,
};

/* --- addresses ---------------------------------------------------------- */

static const struct scheme {
    const char *text;
    const char *port; /* which browsers leave out */
} schemes[] = {{"https://", ":443"}, {"http://", ":80"}};

/* Return the length of a host name or bracketed address; 0: it is none. */
static size_t host_len(const char *text)
{
    static const char name[] = "abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    if (text[0] != '[') {
        return strspn(text, name);
    }
    size_t len = 1 + strspn(text + 1, "0123456789abcdefABCDEF:.");
    return len > 2 && text[len] == ']' ? len + 1 : 0;
}

/* Return the length of ":PORT", 0 if there is none; -1: it is no port. */
static int port_len(const char *text)
{
    if (text[0] != ':') {
        return 0;
    }
    size_t digits = strspn(text + 1, "0123456789");
    long port = digits > 0 && digits <= 5 ? strtol(text + 1, NULL, 10) : 0;
    return port > 0 && port <= UINT16_MAX ? (int)digits + 1 : -1;
}

bool address_add_url(struct strbuf *out, const char *text)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(schemes); ix++) {
        const struct scheme *scheme = &schemes[ix];
        size_t len = strlen(scheme->text);
        if (strncasecmp(text, scheme->text, len) != 0) {
            continue;
        }
        const char *host = text + len;
        size_t bytes = host_len(host);
        const char *port = host + bytes;
        int port_bytes = port_len(port);
        if (bytes == 0 || bytes > HOST_MAX || port_bytes < 0 ||
            (port[port_bytes] != '\0' && strcmp(port + port_bytes, "/") != 0)) {
            return false;
        }
        bool usual = strncmp(port, scheme->port, (size_t)port_bytes) == 0 &&
                     strlen(scheme->port) == (size_t)port_bytes;
        strbuf_addf(out,
                    "%s%.*s%.*s/",
                    scheme->text,
                    (int)bytes,
                    host,
                    usual ? 0 : port_bytes,
                    port);
        return true;
    }
    return false;
}

void address_add_host(struct strbuf *out, const char *url)
{
    const char *host = strstr(url, "://");
    host = host != NULL ? host + 3 : url;
    strbuf_add(out, host, strcspn(host, "/"));
}

bool address_is_local(const char *url)
{
    static const char *const names[] = {"localhost",
                                        "[::1]",
                                        "0.0.0.0",
                                        "[::]"};
    const char *host = strstr(url, "://");
    host = host != NULL ? host + 3 : url;
    size_t len = host_len(host);
    for (size_t ix = 0; ix < ARRAY_COUNT(names); ix++) {
        if (strlen(names[ix]) == len &&
            strncasecmp(host, names[ix], len) == 0) {
            return true;
        }
    }
    return strncmp(host, "127.", 4) == 0 && strspn(host, "0123456789.") == len;
}

/* Read a port, and go past it; -1: it is none. */
static int read_port(const char **text)
{
    size_t len = strspn(*text, "0123456789");
    long port = len > 0 && len <= 5 ? strtol(*text, NULL, 10) : -1;
    *text += len;
    return port <= UINT16_MAX ? (int)port : -1;
}

bool address_read_listen(struct address_listen *out, const char *text)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon != NULL ? (size_t)(colon - text) : 0;
    *out = (struct address_listen){0};
    bool six = text[0] == '[' && len > 1 && text[len - 1] == ']';
    if (len == 0 || len >= sizeof(out->host) ||
        (!six && memchr(text, ':', len) != NULL)) {
        return false;
    }
    const char *at = colon + 1;
    out->first = read_port(&at);
    out->last = out->first;
    if (*at == '-') {
        at++;
        out->last = out->first > 0 ? read_port(&at) : -1;
    }
    memcpy(out->host, text, len);
    return *at == '\0' && out->first >= 0 && out->last >= out->first;
}

/* --- files of servers --------------------------------------------------- */

static enum err fail(struct diag *diag, const char *home, const char *port)
{
    return diag_set(diag,
                    ERR_IO,
                    "%s/" ADDRESS_DIR "/%s: %s",
                    home,
                    port,
                    strerror(errno));
}

/* Lock the whole file. The server before this one has just released its port,
 * and may need another moment to exit. */
static bool lock(int fd)
{
    for (int tries = 0; tries < LOCK_TRIES; tries++) {
        struct flock wanted = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        if (fcntl(fd, F_OFD_SETLK, &wanted) == 0) {
            return true;
        }
        if (errno != EAGAIN && errno != EACCES && errno != EINTR) {
            return false;
        }
        (void)usleep(LOCK_WAIT_US);
    }
    errno = EBUSY;
    return false;
}

static bool is_locked(int fd)
{
    struct flock found = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_GETLK, &found) == 0 && found.l_type != F_UNLCK;
}

/* Open the directory; with `make`, create it. */
static int open_dir(const char *home, bool make)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/" ADDRESS_DIR, home);
    if (make && mkdir(strbuf_text(&path), 0700) != 0 && errno != EEXIST) {
        strbuf_release(&path);
        return -1;
    }
    int dir = open(strbuf_text(&path),
                   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    strbuf_release(&path);
    return dir;
}

enum err address_publish(struct address *address,
                         const char *home,
                         const char *port,
                         const char *url,
                         const struct gate_key *key,
                         struct diag *diag)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "%s\n", url);
    for (size_t ix = 0; ix < sizeof(key->bytes); ix++) {
        strbuf_addf(&text, "%02x", key->bytes[ix]);
    }
    strbuf_adds(&text, "\n");
    int dir = open_dir(home, true);
    int fd =
        dir >= 0
            ? openat(dir, port, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)
            : -1;
    bool good = fd >= 0 && fchmod(fd, 0600) == 0 && lock(fd) &&
                ftruncate(fd, 0) == 0 &&
                write(fd, strbuf_text(&text), text.len) == (ssize_t)text.len;
    enum err err = good ? ERR_OK : fail(diag, home, port);
    strbuf_release(&text);
    if (!good && fd >= 0) {
        (void)close(fd);
    }
    if (!good && dir >= 0) {
        (void)close(dir);
    }
    if (good) {
        *address = (struct address){.dir = dir, .fd = fd};
        (void)snprintf(address->port, sizeof(address->port), "%s", port);
    }
    return err;
}

void address_withdraw(struct address *address)
{
    if (address->fd < 0) {
        return;
    }
    (void)unlinkat(address->dir, address->port, 0); /* or it is stale */
    (void)close(address->fd);
    (void)close(address->dir);
    *address = (struct address){.fd = -1};
}

static int digit(char byte)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = byte != '\0' ? strchr(digits, byte) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

/* Read a key of hexadecimal digits and a newline. */
static bool read_key(struct gate_key *key, const char *text)
{
    for (size_t ix = 0; ix < sizeof(key->bytes); ix++) {
        int high = digit(text[2 * ix]);
        int low = high >= 0 ? digit(text[2 * ix + 1]) : -1;
        if (low < 0) {
            return false;
        }
        key->bytes[ix] = (unsigned char)(high << 4 | low);
    }
    key->made = strcmp(text + 2 * sizeof(key->bytes), "\n") == 0;
    return key->made;
}

/* Read the file of a server that lives; its time is *when. */
static bool read_server(struct strbuf *url,
                        struct gate_key *key,
                        int dir,
                        const char *port,
                        struct timespec *when)
{
    char text[FILE_MAX] = {0};
    struct stat stat;
    int fd = openat(dir, port, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    bool good = fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) &&
                is_locked(fd) && read(fd, text, sizeof(text) - 1) > 0;
    (void)close(fd);
    char *line = strchr(text, '\n');
    if (!good || line == NULL) {
        return false;
    }
    *line = '\0';
    *when = stat.st_mtim;
    return read_key(key, line + 1) && address_add_url(url, text);
}

static bool is_later(struct timespec a, struct timespec b)
{
    return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/* Find the newest server; takes the descriptor. */
static bool find_newest(struct strbuf *url, struct gate_key *key, int fd)
{
    DIR *list = fdopendir(fd);
    struct timespec newest = {0};
    if (list == NULL) {
        (void)close(fd);
        return false;
    }
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        struct strbuf found = {0};
        struct gate_key its = {0};
        struct timespec when;
        if (entry->d_name[0] != '.' &&
            read_server(&found, &its, fd, entry->d_name, &when) &&
            (!key->made || is_later(when, newest))) {
            strbuf_clear(url);
            strbuf_adds(url, strbuf_text(&found));
            *key = its;
            newest = when;
        }
        strbuf_release(&found);
    }
    (void)closedir(list);
    return key->made;
}

enum err address_find(struct strbuf *url,
                      struct gate_key *key,
                      const char *home,
                      const char *port,
                      struct diag *diag)
{
    int dir = open_dir(home, false);
    struct timespec when;
    bool found = false;
    *key = (struct gate_key){0};
    if (dir >= 0 && port == NULL) {
        found = find_newest(url, key, dir);
    } else if (dir >= 0) {
        found = read_server(url, key, dir, port, &when);
        (void)close(dir);
    }
    return found ? ERR_OK
                 : diag_set(diag,
                            ERR_NOT_FOUND,
                            "no server of this store listens on %s%s: start "
                            "one with 'sluice serve --listen HOST:PORT'",
                            port != NULL ? "port " : "a port",
                            port != NULL ? port : "");
}
