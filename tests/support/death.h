/* SPDX-License-Identifier: MIT */
/*
 * death: for tests of what must stop the program.
 *
 * The function runs in a child process, so that the test goes on. Only for
 * cmocka tests: it fails the current one when the child does not abort, or
 * does not say why.
 */
#ifndef TESTS_SUPPORT_DEATH_H
#define TESTS_SUPPORT_DEATH_H

typedef void (*death_fn)(void *ctx);

/* Require that fn(ctx) aborts, with `text` in what it writes to stderr. */
void death_expect(death_fn fn, void *ctx, const char *text);

#endif /* TESTS_SUPPORT_DEATH_H */
