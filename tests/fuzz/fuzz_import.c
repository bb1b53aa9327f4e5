/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as an export of issues, twice: as JSON, and as the body of an
 * issue. What comes out is a plan, or an error that blames the export; a plan
 * of ours is never one that sluice would refuse.
 */
#include "base/invariant.h"
#include "plan/import.h"
#include "plan/import_internal.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
try_export(const struct import_options *options, const char *text, size_t len)
{
    struct strbuf out = {0};
    struct import *import = import_new(options);
    import_read(import, "a.json", text, len);
    bool made = import_plan(import, &out);
    const struct import_errors *errors = import_errors(import);
    INVARIANT(made == (errors->count == 0));
    INVARIANT(made == (out.len > 0));
    for (uint32_t ix = 0; ix < errors->count; ix++) {
        INVARIANT(strncmp(errors->items[ix].text, "the plan would", 14) != 0);
    }
    import_free(import);
    strbuf_release(&out);
}

static void check_reference(void *ctx, const struct import_reference *reference)
{
    (void)ctx;
    INVARIANT(reference->text.len > 0);
    INVARIANT(reference->number >= 0);
    INVARIANT(reference->owner.len == 0 || reference->name.len > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct import_options all = {0};
    struct import_options some = {
        .milestone = "m",
        .ignore_unknown = true,
        .add_needed = true,
        .json = true,
    };
    try_export(&all, text, size);
    try_export(&some, text, size);
    import_scan((struct import_span){text, size}, check_reference, NULL);
    return 0;
}
