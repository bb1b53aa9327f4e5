/* SPDX-License-Identifier: MIT */
/*
 * meters: how full the limits of an agent's account are, for usage monitors.
 *
 * claude tells of its windows only in the events of a session. Each session
 * keeps what it has heard last in STORE/meters/PROGRAM, as usage monitors
 * print it; the newest session wins. codex keeps the same in its own files.
 */
#ifndef AGENT_METERS_H
#define AGENT_METERS_H

#include "adapter/adapter.h"
#include "base/diag.h"

/* Keep what was seen. */
MUST_USE enum err meters_keep(const char *store,
                              const struct adapter *adapter,
                              const struct adapter_seen *seen,
                              struct diag *diag);

/*
 * Append the meters of a program as JSON. A window whose reset has passed is
 * empty again; a program of which nothing is known has one empty meter.
 */
MUST_USE enum err meters_add(struct strbuf *out,
                             const char *store,
                             const struct adapter *adapter,
                             int64_t now,
                             struct diag *diag);

#endif /* AGENT_METERS_H */
