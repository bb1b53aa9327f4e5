/* SPDX-License-Identifier: MIT */
/*
 * Notices: a stored one stays until its hook has been told, or was given up;
 * hooks of a run are told one after the other, in the order of their events.
 */
#include "sim/world_internal.h"

#include "base/mem.h"
#include "store/event.h"

#include <stdlib.h>
#include <string.h>

static struct world_notice *
find(const struct world *world, uint32_t run, uint64_t event)
{
    for (uint32_t ix = world->notice_count; ix > 0; ix--) {
        struct world_notice *notice = &world->notices[ix - 1];
        if (notice->event == event && notice->run == run) {
            return notice;
        }
    }
    return NULL;
}

void world_notice_stored(struct world *world, const struct store_setting *row)
{
    static const char prefix[] = "notice/";
    if (strncmp(row->name, prefix, strlen(prefix)) != 0) {
        return;
    }
    char *end;
    uint32_t run = (uint32_t)strtoul(row->name + strlen(prefix), &end, 10);
    unsigned long long event = strtoull(end + 1, NULL, 10);
    struct world_notice *known = find(world, run, event);
    if (row->value != NULL) {
        MEM_GROW(world->notices, world->notice_count, world->notice_capacity);
        world->notices[world->notice_count++] = (struct world_notice){
            .run = run,
            .event = event,
        };
        if (known != NULL) {
            world_fault(world, "there are two notices of event %llu", event);
        }
        return;
    }
    if (known == NULL || known->settled) {
        world_fault(world, "a notice of event %llu goes twice", event);
    } else if (!known->told && !known->given_up) {
        world_fault(world, "nobody was told of event %llu", event);
    } else {
        known->settled = true;
    }
}

void world_notice_event(struct world *world, const struct store_event *row)
{
    if (event_kind_of(row) != EVENT_KIND_HOOK) {
        return;
    }
    struct event event = {0};
    event_read(&event, row);
    for (uint32_t ix = 0; ix < world->notice_count; ix++) {
        if (world->notices[ix].event == event.as.hook.of) {
            world->notices[ix].given_up = true;
        }
    }
    event_release(&event);
}

/* The notice that a directory of a hook is for, or NULL. */
static struct world_notice *notice_at(const struct world *world,
                                      const char *dir)
{
    static const char before[] = "/s/runs/";
    static const char between[] = "/.hooks/";
    const char *middle = strstr(dir, between);
    if (strncmp(dir, before, strlen(before)) != 0 || middle == NULL) {
        return NULL;
    }
    const char *from = dir + strlen(before);
    char *run = mem_strndup(from, (size_t)(middle - from));
    uint32_t ix = world_check_find_run(world, run);
    mem_free(run);
    uint64_t event = strtoull(middle + strlen(between), NULL, 10);
    return ix != WORLD_NONE ? find(world, world->runs[ix].number, event) : NULL;
}

void world_notice_begun(struct world *world, const char *dir)
{
    const struct world_notice *notice = notice_at(world, dir);
    if (notice == NULL) {
        world_fault(world, "a hook is called for nothing: %s", dir);
        return;
    }
    for (uint32_t ix = 0; ix < world->notice_count; ix++) {
        const struct world_notice *other = &world->notices[ix];
        if (other->run == notice->run && other->event < notice->event &&
            !other->told && !other->given_up) {
            world_fault(world,
                        "event %llu is told before %llu",
                        (unsigned long long)notice->event,
                        (unsigned long long)other->event);
        }
    }
}

void world_notice_told(struct world *world, const char *dir)
{
    struct world_notice *notice = notice_at(world, dir);
    if (notice != NULL) {
        notice->told = true;
    }
}

void world_notice_check_rest(struct world *world)
{
    for (uint32_t ix = 0; ix < world->notice_count; ix++) {
        if (!world->notices[ix].settled) {
            world_fault(world,
                        "the notice of event %llu was left",
                        (unsigned long long)world->notices[ix].event);
        }
    }
}
