/* SPDX-License-Identifier: MIT */
/*
 * invariant: conditions that are false only if sluice has a bug.
 *
 * They stay on in release builds. The store is durable, so stopping with the
 * place and the condition beats continuing with a wrong schedule.
 */
#ifndef BASE_INVARIANT_H
#define BASE_INVARIANT_H

/* Print the place and the condition to standard error, then abort. */
_Noreturn void
invariant_failed(const char *file, int line, const char *condition);

#define INVARIANT(condition)                                                   \
    (__builtin_expect(!(condition), 0)                                         \
         ? invariant_failed(__FILE__, __LINE__, #condition)                    \
         : (void)0)

#endif /* BASE_INVARIANT_H */
