/* SPDX-License-Identifier: MIT */
#include "http/seen.h"

#include "base/strbuf.h"
#include "exec/attempt_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static const char name[] = "http-seen";

int64_t seen_read(const char *home)
{
    struct strbuf path = {0};
    char text[32] = {0};
    strbuf_addf(&path, "%s/%s", home, name);
    int fd = open(strbuf_text(&path), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    strbuf_release(&path);
    if (fd < 0) {
        return 0;
    }
    ssize_t len = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    int64_t seen_ns = len > 0 ? strtoll(text, NULL, 10) : 0;
    return seen_ns > 0 ? seen_ns : 0;
}

enum err seen_write(const char *home, int64_t seen_ns, struct diag *diag)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "%lld\n", (long long)seen_ns);
    enum err err = attempt_file_write(home, name, &text, diag);
    strbuf_release(&text);
    return err;
}
