/* SPDX-License-Identifier: MIT */
/*
 * Notices: a stored one stays until its hook has been told, or was given up;
 * hooks of a run are told one after the other, in the order of their events.
 */
#include "sim/world_internal.h"

#include <stdio.h>
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
    unsigned run;
    unsigned long long event;
    if (sscanf(row->name, "notice/%u/%llu", &run, &event) != 2) {
        return;
    }
    struct world_notice *known = find(world, run, event);
    if (row->value != NULL) {
        WORLD_GROW(world->notices, world->notice_count, world->notice_capacity);
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
    const char *of = strstr(row->data, "\"of\":");
    unsigned long long event;
    if (strcmp(row->kind, "hook") != 0 || of == NULL ||
        sscanf(of, "\"of\":%llu", &event) != 1) {
        return;
    }
    for (uint32_t ix = 0; ix < world->notice_count; ix++) {
        if (world->notices[ix].event == event) {
            world->notices[ix].given_up = true;
        }
    }
}

/* The notice that a directory of a hook is for, or NULL. */
static struct world_notice *notice_at(const struct world *world,
                                      const char *dir)
{
    char run[64];
    unsigned long long event;
    if (sscanf(dir, "/s/runs/%63[^/]/.hooks/%llu-", run, &event) != 2) {
        return NULL;
    }
    uint32_t ix = world_check_find_run(world, run);
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
