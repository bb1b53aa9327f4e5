/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as an export of each source, and as the body of an issue. The
 * result is a plan, or an error that blames the export; the plan is never one
 * that sluice would refuse, and its files stay below their directory.
 */
#include "base/invariant.h"
#include "import/import.h"
#include "import/import_internal.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
try_export(const struct import_options *options, const char *text, size_t len)
{
    struct strbuf out = {0};
    struct import *import = import_new(options);
    struct import_file file = {.name = "a.json", .text = text, .len = len};
    import_read(import, &file);
    bool made = import_plan(import, &out);
    const struct import_errors *errors = import_errors(import);
    INVARIANT(made == (errors->count == 0));
    INVARIANT(made == (out.len > 0));
    for (uint32_t ix = 0; ix < errors->count; ix++) {
        INVARIANT(strncmp(errors->items[ix].text, "the resulting", 13) != 0);
    }
    struct import_body body;
    uint32_t ix = 0;
    while (made && import_next_body(import, &ix, &body)) {
        INVARIANT(strncmp(body.path, "issues/", 7) == 0);
        INVARIANT(strchr(body.path + 7, '/') == NULL);
        INVARIANT(body.len == strlen(body.text));
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
    for (int source = IMPORT_GITHUB; source <= IMPORT_TASKMASTER; source++) {
        struct import_options all = {.source = (enum import_source)source};
        struct import_options some = {
            .source = (enum import_source)source,
            .milestone = source == IMPORT_GITHUB ? "m" : NULL,
            .ignore_unknown = true,
            .add_needed = true,
            .merge = true,
            .bodies = "issues",
            .json = true,
        };
        struct import_options kept = {
            .source = (enum import_source)source,
            .keep_parents = true,
            .ignore_outside = true,
            .agent = "claude",
        };
        try_export(&all, text, size);
        try_export(&some, text, size);
        try_export(&kept, text, size);
    }
    import_scan((struct import_span){text, size}, check_reference, NULL);
    return 0;
}
