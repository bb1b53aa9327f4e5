/* SPDX-License-Identifier: MIT */
#include "tests/unit/sched_crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void crew_fixture(struct fixture *f, int64_t cap)
{
    fixture_init(f);
    f->now_ns = 100 * SECOND;
    sched_restore(f->sched, f->now_ns, 50);
    fixture_cap(f, cap);
}

struct sched_record *
crew_member(const struct fixture *f, struct crew *crew, enum task_state state)
{
    uint32_t ix = crew->count++;
    assert_true(ix < CREW_MAX);
    crew->tasks[ix] = f->spec;
    crew->tasks[ix].failure = f->failure;
    bool flies = state == TASK_STARTING || state == TASK_RUNNING;
    crew->records[ix] = (struct sched_record){
        .state = state,
        .ready_ns = 90 * SECOND,
        .ready_seq = 1,
        .token = flies ? ix + 1 : 0,
        .leader = flies ? ix : ID_NONE,
        .attempts = flies ? 1 : 0,
        .cause = ID_NONE,
    };
    return &crew->records[ix];
}

void crew_needs(struct crew *crew, uint32_t dependent, uint32_t need)
{
    assert_true(crew->need_count < CREW_MAX);
    crew->needs[crew->need_count++] =
        (struct sched_need){.dependent = dependent, .need = need};
}

enum err crew_try_add(struct fixture *f,
                      const struct crew *crew,
                      struct sched_rejection *rejection)
{
    struct sched_addition addition = {
        .run = f->run,
        .groups = crew->groups,
        .group_count = crew->group_count,
        .tasks = crew->tasks,
        .task_count = crew->count,
        .needs = crew->needs,
        .need_count = crew->need_count,
        .records = crew->records,
    };
    uint32_t first = sched_task_count(f->sched);
    enum err err = sched_add(f->sched, f->now_ns, &addition, rejection);
    for (uint32_t ix = 0; err == ERR_OK && ix < crew->count; ix++) {
        f->names[first + ix][0] = (char)('a' + first + ix);
    }
    return err;
}

void crew_add(struct fixture *f, const struct crew *crew)
{
    struct sched_rejection rejection;
    assert_int_equal(crew_try_add(f, crew, &rejection), ERR_OK);
    assert_int_equal(rejection.code, REJECTION_NONE);
    sched_verify(f->sched);
}
