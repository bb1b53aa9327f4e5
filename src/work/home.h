/* SPDX-License-Identifier: MIT */
/*
 * home: directory layout of a worker: HOME/runs/RUN/TASK/NAME is the directory
 * of an attempt or of a program call.
 */
#ifndef WORK_HOME_H
#define WORK_HOME_H

#include "base/strbuf.h"

#include <stdint.h>

/* Append the directory. `name` is the number of an attempt or call. */
void home_add_dir(struct strbuf *out,
                  const char *home,
                  const char *run,
                  const char *task,
                  const char *name);

/* The same for an attempt. */
void home_add_attempt(struct strbuf *out,
                      const char *home,
                      const char *run,
                      const char *task,
                      uint32_t number);

/* Append the end of the log of an attempt, at most `bytes` of it. */
void home_add_log_tail(struct strbuf *out,
                       const char *home,
                       const char *run,
                       const char *task,
                       uint32_t number,
                       size_t bytes);

#endif /* WORK_HOME_H */
