/* SPDX-License-Identifier: MIT */
/*
 * meters: usage of the limits of an agent's account, for usage monitors.
 *
 * claude reports its windows only in the events of a session. Each session
 * stores its last report in HOME/meters/PROGRAM, in the output format of usage
 * monitors; the newest session wins. codex keeps the same data in its own
 * files.
 */
#ifndef AGENT_METERS_H
#define AGENT_METERS_H

#include "adapter/adapter.h"
#include "base/diag.h"

/* Store the meters of a session. */
MUST_USE enum err meters_keep(const char *home,
                              const struct adapter *adapter,
                              const struct adapter_seen *seen,
                              struct diag *diag);

/* Append the meters of a program as JSON. A window is empty again after its
 * reset; a program without data has one empty meter. */
MUST_USE enum err meters_add(struct strbuf *out,
                             const char *home,
                             const struct adapter *adapter,
                             int64_t now,
                             struct diag *diag);

#endif /* AGENT_METERS_H */
