/* SPDX-License-Identifier: MIT */
/*
 * sluice-agent: the first process of a coding agent's session.
 *
 *   sluice-agent DIR [WORD...]      a session; DIR is its attempt directory,
 * and the words confine its program sluice-agent --meters PROGRAM   print the
 * meters of a program's account
 *
 * Users do not call it.
 */
#include "agent/drive.h"
#include "agent/meters.h"
#include "exec/attempt_file.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_WRONG = 30 };

static int complain(const char *text)
{
    struct strbuf line = {0};
    strbuf_addf(&line, "sluice-agent: %s\n", text);
    bool written =
        attempt_file_write_all(STDERR_FILENO, strbuf_text(&line), line.len);
    (void)written; /* no other place to report it */
    strbuf_release(&line);
    return EXIT_WRONG;
}

static int print_meters(const char *program)
{
    const struct adapter *adapter = adapter_find(program);
    const char *home = getenv("SLUICE_AGENT_HOME");
    struct strbuf text = {0};
    struct diag diag = {0};
    if (adapter == NULL || home == NULL) {
        return complain("unknown program, or no SLUICE_AGENT_HOME");
    }
    int code = EXIT_SUCCESS;
    enum err err = meters_add(&text, home, adapter, (int64_t)time(NULL), &diag);
    if (err != ERR_OK) {
        code = complain(diag.text);
    } else if (!attempt_file_write_all(STDOUT_FILENO,
                                       strbuf_text(&text),
                                       text.len)) {
        code = complain("cannot write the meters");
    }
    strbuf_release(&text);
    return code;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--meters") == 0) {
        return print_meters(argv[2]);
    }
    if (argc < 2 || argv[1][0] != '/') {
        return complain("internal: sluice runs it");
    }
    struct confine_prefix prefix = {
        .words = (const char *const *)argv + 2,
        .count = (uint32_t)argc - 2,
    };
    return drive_session(argv[1], &prefix);
}
