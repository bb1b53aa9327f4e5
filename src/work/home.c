/* SPDX-License-Identifier: MIT */
#include "work/home.h"

#include "base/invariant.h"
#include "exec/attempt.h"

#include <string.h>

/*
 * A task id may contain slashes; its directory must be one name, and "a" with
 * its attempt 1 must not be the directory of a task "a/1". Ids have no plus.
 */
void home_add_dir(struct strbuf *out,
                  const char *home,
                  const char *run,
                  const char *task,
                  const char *name)
{
    INVARIANT(strchr(run, '/') == NULL);
    INVARIANT(name[0] != '\0' && strchr(name, '/') == NULL);
    strbuf_addf(out, "%s/runs/%s/", home, run);
    size_t from = out->len;
    strbuf_adds(out, task);
    for (size_t ix = from; ix < out->len; ix++) {
        if (out->text[ix] == '/') {
            out->text[ix] = '+';
        }
    }
    strbuf_addf(out, "/%s", name);
    INVARIANT(strchr(out->text + from, '/') == strrchr(out->text, '/'));
}

void home_add_attempt(struct strbuf *out,
                      const char *home,
                      const char *run,
                      const char *task,
                      uint32_t number)
{
    INVARIANT(number > 0);
    struct strbuf name = {0};
    strbuf_addf(&name, "%u", number);
    home_add_dir(out, home, run, task, strbuf_text(&name));
    strbuf_release(&name);
}

void home_add_log_tail(struct strbuf *out,
                       const char *home,
                       const char *run,
                       const char *task,
                       uint32_t number,
                       size_t bytes)
{
    struct strbuf dir = {0};
    home_add_attempt(&dir, home, run, task, number);
    attempt_add_log_tail(strbuf_text(&dir), bytes, out);
    strbuf_release(&dir);
}
