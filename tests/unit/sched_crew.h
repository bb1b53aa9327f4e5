/* SPDX-License-Identifier: MIT */
/*
 * sched_crew: work that goes on from records, on top of sched_fixture.
 *
 * 1. crew_fixture() instead of fixture_init().
 * 2. crew_member() for each task, like `spec` and `failure` of the fixture.
 *    Change its record and spec as needed; crew_needs() for what needs what.
 * 3. crew_add(): then the tasks are called a, b, c ...
 *
 * Only for cmocka tests, which include <cmocka.h> and what it needs themselves.
 */
#ifndef TESTS_UNIT_SCHED_CREW_H
#define TESTS_UNIT_SCHED_CREW_H

#include "tests/unit/sched_fixture.h"

enum { CREW_MAX = 8 };

/* What is added at once; starts as {0}. */
struct crew {
    struct sched_group_spec groups[2];
    uint32_t group_count;
    struct sched_task_spec tasks[CREW_MAX];
    struct sched_record records[CREW_MAX];
    uint32_t count;
    struct sched_need needs[CREW_MAX];
    uint32_t need_count;
};

/*
 * A fixture to restore into, at 100 s, with 50 as the last token and a run with
 * this cap.
 */
void crew_fixture(struct fixture *f, int64_t cap);

/* One more task, in this state; its record, to be changed. */
struct sched_record *
crew_member(const struct fixture *f, struct crew *crew, enum task_state state);

/* Let a task need another. */
void crew_needs(struct crew *crew, uint32_t dependent, uint32_t need);

/* Add all of it; the caller releases a rejection. */
MUST_USE enum err crew_try_add(struct fixture *f,
                               const struct crew *crew,
                               struct sched_rejection *rejection);
void crew_add(struct fixture *f, const struct crew *crew);

#endif /* TESTS_UNIT_SCHED_CREW_H */
