/* SPDX-License-Identifier: MIT */
/* site_file: reads settings.yaml of a store; see plan/site.h. */
#ifndef ENGINE_SITE_FILE_H
#define ENGINE_SITE_FILE_H

#include "base/diag.h"
#include "plan/site.h"

/*
 * Read the settings in the directory `home` of a store; without a file they are
 * empty. ERR_INVALID: *diag has the errors, each with its place. Release *out
 * in any case.
 */
MUST_USE enum err
site_file_read(struct site *out, const char *home, struct diag *diag);

#endif /* ENGINE_SITE_FILE_H */
