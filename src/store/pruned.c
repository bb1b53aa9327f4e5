/* SPDX-License-Identifier: MIT */
#include "store/pruned.h"

#include "base/jsonw.h"
#include "store/sum.h"

#include <stdio.h>

struct pruned_text pruned_text(const char *text, size_t len)
{
    struct pruned_text out;
    unsigned long long sum = sum_add(SUM_START, text, len);
    (void)snprintf(out.digits, sizeof(out.digits), "%016llx", sum);
    return out;
}

void pruned_add(struct strbuf *out, const struct store_run *run)
{
    strbuf_addf(out, "{\"number\":%u,\"name\":", run->number);
    jsonw_string(out, run->name);
    strbuf_adds(out, ",\"file\":");
    jsonw_string(out, run->file);
    strbuf_adds(out, ",\"folder\":");
    jsonw_string(out, run->folder);
    strbuf_addf(out,
                ",\"text\":\"%s\",\"cancelled\":%s}",
                pruned_text(run->text, run->text_bytes).digits,
                run->cancelled ? "true" : "false");
}
