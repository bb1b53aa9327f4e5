/* SPDX-License-Identifier: MIT */
/*
 * Any text as the diff of an issue: the page has every element closed, and no
 * markup of the diff. The first line is the path of the first file.
 */
#include "base/invariant.h"
#include "base/mem.h"
#include "http/page_diff.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t count(const char *page, const char *part)
{
    uint32_t found = 0;
    for (const char *at = strstr(page, part); at != NULL;
         at = strstr(at + 1, part)) {
        found++;
    }
    return found;
}

static void check(const struct diff_view *view, bool looks_only)
{
    static const char *const elements[][2] = {
        {"<details", "</details>"},
        {"<table", "</table>"},
        {"<tr", "</tr>"},
        {"<td", "</td>"},
        {"<a ", "</a>"},
        {"<textarea", "</textarea>"},
    };
    struct strbuf out = {0};
    page_diff_add(&out, view, "task", looks_only);
    const char *page = strbuf_text(&out);
    INVARIANT(strlen(page) == out.len);
    for (size_t ix = 0; ix < ARRAY_COUNT(elements); ix++) {
        INVARIANT(count(page, elements[ix][0]) == count(page, elements[ix][1]));
    }
    INVARIANT(count(page, "<form") == (looks_only ? 0 : 1));
    INVARIANT(count(page, "<script") == 1); /* our own */
    INVARIANT(count(page, "<img") == 0);
    strbuf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char word[] = "word";
    char *text = mem_strndup((const char *)data, size); /* up to a NUL */
    char *rest = strchr(text, '\n');
    if (rest != NULL) {
        *rest++ = '\0';
    }
    struct diff_file file = {.path = text, .added = 1};
    struct diff_view view = {
        .run = word,
        .group = word,
        .repo = word,
        .from = word,
        .to = word,
        .files = &file,
        .file_count = 1,
    };
    strbuf_adds(&view.text, rest != NULL ? rest : "");
    check(&view, false);
    check(&view, true);
    strbuf_release(&view.text);
    mem_free(text);
    return 0;
}
