/* SPDX-License-Identifier: MIT */
#include "cli/login.h"

#include "cli/cli.h"
#include "cli/qr.h"
#include "http/address.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Columns of a terminal with colours and UTF-8; 0: it is something else. */
static uint32_t columns_of(FILE *file)
{
    struct winsize size = {0};
    const char *term = getenv("TERM");
    if (isatty(fileno(file)) != 1 || !cli_unicode() ||
        getenv("NO_COLOR") != NULL || term == NULL ||
        strcmp(term, "dumb") == 0) {
        return 0;
    }
    bool known = ioctl(fileno(file), TIOCGWINSZ, &size) == 0;
    return known && size.ws_col > 0 ? size.ws_col : 80;
}

void login_add_code(struct strbuf *out, const char *link, FILE *file)
{
    uint32_t columns = columns_of(file);
    if (columns > 0 && !address_is_local(link)) {
        (void)qr_add(out, link, columns);
    }
}
