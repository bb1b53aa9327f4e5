/* SPDX-License-Identifier: MIT */
#include "work/mark.h"

#include "base/invariant.h"
#include "exec/attempt.h"

#include <assert.h>
#include <string.h>

void mark_put(const struct work_mark *mark, struct store_attempt *row)
{
    INVARIANT(mark->pid >= 0);
    INVARIANT(memchr(mark->boot_id, '\0', sizeof(mark->boot_id)) != NULL);
    static_assert(sizeof(row->boot_id) == sizeof(mark->boot_id), "one format");
    row->pid = mark->pid;
    row->start_ticks = mark->start_ticks;
    memcpy(row->boot_id, mark->boot_id, sizeof(row->boot_id));
    static_assert(sizeof(row->worker) == sizeof(mark->worker), "one format");
    memcpy(row->worker, mark->worker, sizeof(row->worker));
}

struct work_mark mark_get(const struct store_attempt *row)
{
    struct work_mark mark = {
        .pid = row->pid,
        .start_ticks = row->start_ticks,
    };
    memcpy(mark.boot_id, row->boot_id, sizeof(mark.boot_id));
    memcpy(mark.worker, row->worker, sizeof(mark.worker));
    INVARIANT(memchr(mark.boot_id, '\0', sizeof(mark.boot_id)) != NULL);
    return mark;
}

struct work_mark mark_elsewhere(void)
{
    return (struct work_mark){.boot_id = "elsewhere"};
}

int64_t mark_process(const struct work_mark *mark)
{
    return mark->pid;
}

bool mark_is_same_boot(const struct work_mark *a, const struct work_mark *b)
{
    return strcmp(a->boot_id, b->boot_id) == 0;
}

bool mark_is_gone(const struct work_mark *mark)
{
    return mark->pid > 0 && attempt_start_ticks(mark->pid) == 0;
}
