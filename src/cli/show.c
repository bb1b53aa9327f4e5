/* SPDX-License-Identifier: MIT */
#include "cli/show.h"

int show_glance(const struct cli_command *command,
                const struct glance_options *options,
                show_fn fn)
{
    struct glance glance;
    struct diag diag = {0};
    struct strbuf out = {0};
    enum err err = glance_take(&glance, options, &diag);
    int code;
    if (err == ERR_OK) {
        fn(&out, &glance, options);
        code = cli_write(&out);
    } else {
        code = cli_fail_store(command, err, &diag);
    }
    strbuf_release(&out);
    glance_release(&glance);
    return code;
}
