/* SPDX-License-Identifier: MIT */
#include "base/diag.h"

#include "base/invariant.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum err diag_set(struct diag *diag, enum err err, const char *format, ...)
{
    if (diag == NULL) {
        return err;
    }
    va_list args;
    va_start(args, format);
    int len = vsnprintf(diag->text, sizeof(diag->text), format, args);
    va_end(args);
    INVARIANT(len >= 0);
    utf8_repair(diag->text, strlen(diag->text));
    return err;
}
