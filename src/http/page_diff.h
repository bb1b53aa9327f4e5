/* SPDX-License-Identifier: MIT */
/*
 * page_diff: the diff of an issue as a page, with comments that send it back.
 * Pure.
 *
 * The diff is untrusted: it is read by the line counts of its hunks, so that a
 * line of a file cannot pass for a header.
 */
#ifndef HTTP_PAGE_DIFF_H
#define HTTP_PAGE_DIFF_H

#include "base/strbuf.h"
#include "view/diff.h"

#include <stdbool.h>

/* Append the page. `looks_only`: without comments. */
void page_diff_add(struct strbuf *out,
                   const struct diff_view *view,
                   const char *task,
                   bool looks_only);

#endif /* HTTP_PAGE_DIFF_H */
