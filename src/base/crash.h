/* SPDX-License-Identifier: MIT */
/*
 * crash: named points at which a test can have the process die, or a call
 * fail. Compiled into test builds only (-Dcrash_points=true); elsewhere they
 * cost nothing.
 *
 *   SLUICE_CRASH=claim-committed      die by SIGKILL when it is first passed
 *   SLUICE_CRASH=claim-committed:3    ... when it is passed the third time
 *   SLUICE_CRASH=before-end,end-asked whichever of them is passed first
 *   SLUICE_FAULT=fork:2:EAGAIN        the second fork fails with that error
 *   SLUICE_FAULT=fork:2+:EAGAIN       the second and all after it do
 *   SLUICE_CRASH_COUNT=DIR            count passings in files of DIR
 *
 * Passings are counted in each process. With SLUICE_CRASH_COUNT those of all
 * processes are counted together, for each point in a file of its name, which
 * grows by one byte each time: so exactly one of many shims dies, and a test
 * can see which points were passed and how often.
 *
 * A point stands at each durable step and around each action outside of the
 * process, so that killing at every point covers every state that can be left
 * behind. The tests find the names by reading the source.
 */
#ifndef BASE_CRASH_H
#define BASE_CRASH_H

#ifdef SLUICE_CRASH_POINTS

/* Die here if the environment says so. */
void crash_point(const char *name);

/* The error (errno) that this call shall fail with, or 0. */
int crash_fault(const char *name);

#else

#define crash_point(name) ((void)0)
#define crash_fault(name) (0)

#endif

#endif /* BASE_CRASH_H */
