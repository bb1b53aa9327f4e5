/* SPDX-License-Identifier: MIT */
/*
 * agent_fixture: for tests of adapters and judgements. Output of real programs
 * is in tests/data/agents. Failures fail the current cmocka test.
 */
#ifndef TESTS_UNIT_AGENT_FIXTURE_H
#define TESTS_UNIT_AGENT_FIXTURE_H

#include "agent/judge.h"

#define AGENT_FIXTURE_DATA "tests/data/agents/"

/* 2026-11-16 16:00 UTC; the captures are a few hours older or younger. */
#define AGENT_FIXTURE_NOW INT64_C(1794844800)

/* Append a file. False: there is none. */
bool agent_fixture_read(struct strbuf *out, const char *path);

/* Take a text as the program's standard output, a line at a time. What people
 * would see is appended to *log, which may be NULL. */
void agent_fixture_take(const struct adapter *adapter,
                        struct adapter_seen *seen,
                        const char *text,
                        struct strbuf *log);

/* A brief of one task "a", or of "a" and "b" for a batch; strings are static.
 * Nothing needs to be released. */
struct brief agent_fixture_brief(const char *program, enum brief_kind kind);

/* Judge what was seen of a program that exited with `code`. */
struct judgement agent_fixture_judge(const struct brief *brief,
                                     const struct adapter_seen *seen,
                                     int code,
                                     const char *errors);

#endif /* TESTS_UNIT_AGENT_FIXTURE_H */
