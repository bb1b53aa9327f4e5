/* SPDX-License-Identifier: MIT */
/*
 * crash: named points at which a test can kill the process or fail a call.
 * Compiled into test builds only (-Dcrash_points=true); elsewhere they cost
 * nothing.
 *
 *   SLUICE_CRASH=claim-committed      die by SIGKILL at the first hit
 *   SLUICE_CRASH=claim-committed:3    ... at the third hit
 *   SLUICE_CRASH=before-end,end-asked at whichever point is hit first
 *   SLUICE_FAULT=fork:2:EAGAIN        the second fork fails with this error
 *   SLUICE_FAULT=fork:2+:EAGAIN       the second and all later forks do
 *   SLUICE_CRASH_COUNT=DIR            count hits in files of DIR
 *
 * Each process counts its own hits. With SLUICE_CRASH_COUNT all processes count
 * together: each point has a file of its name, which grows by one byte per hit.
 * So exactly one of many shims dies, and a test can see which points were hit
 * and how often.
 *
 * A point stands at each durable step and around each action outside the
 * process, so that killing at every point covers every state that a crash can
 * leave. The tests find the names by reading the source.
 */
#ifndef BASE_CRASH_H
#define BASE_CRASH_H

#ifdef SLUICE_CRASH_POINTS

/* Kill the process here if the environment asks for it. */
void crash_point(const char *name);

/* Return the errno that this call must fail with, or 0. */
int crash_fault(const char *name);

#else

#define crash_point(name) ((void)0)
#define crash_fault(name) (0)

#endif

#endif /* BASE_CRASH_H */
