/* SPDX-License-Identifier: MIT */
#include "store/pruned.h"

#include "base/invariant.h"
#include "base/jsonw.h"
#include "store/sum.h"

#include <stdio.h>

struct pruned_text pruned_text(const char *text, size_t len)
{
    struct pruned_text out;
    unsigned long long sum = sum_add(SUM_START, text, len);
    int written = snprintf(out.digits, sizeof(out.digits), "%016llx", sum);
    INVARIANT(written == (int)sizeof(out.digits) - 1);
    return out;
}

void pruned_add(struct strbuf *out, const struct store_run *run)
{
    INVARIANT(run->finished); /* others are not removed */
    INVARIANT(run->number > 0);
    struct jsonw json = {.out = out};
    jsonw_object(&json, NULL);
    jsonw_int(&json, "number", run->number);
    jsonw_text(&json, "name", run->name);
    jsonw_text(&json, "file", run->file);
    jsonw_text(&json, "folder", run->folder);
    jsonw_text(&json, "text", pruned_text(run->text, run->text_bytes).digits);
    jsonw_bool(&json, "cancelled", run->cancelled);
    jsonw_object_end(&json);
}
