/* SPDX-License-Identifier: MIT */
/*
 * Checks of notifications: a stored notification stays until its hook has
 * received it, or was given up; hooks of a run are called one after the other,
 * in the order of their events.
 */
#include "sim/world_internal.h"

#include "base/mem.h"
#include "store/event.h"

#include <stdlib.h>
#include <string.h>

static struct world_notification *
find(const struct world *world, uint32_t run, uint64_t event)
{
    for (uint32_t ix = world->notification_count; ix > 0; ix--) {
        struct world_notification *notification = &world->notifications[ix - 1];
        if (notification->event == event && notification->run == run) {
            return notification;
        }
    }
    return NULL;
}

void world_notify_stored(struct world *world, const struct store_setting *row)
{
    static const char prefix[] = "notice/";
    if (strncmp(row->name, prefix, strlen(prefix)) != 0) {
        return;
    }
    char *end;
    uint32_t run = (uint32_t)strtoul(row->name + strlen(prefix), &end, 10);
    unsigned long long event = strtoull(end + 1, NULL, 10);
    struct world_notification *known = find(world, run, event);
    if (row->value != NULL) {
        MEM_GROW(world->notifications,
                 world->notification_count,
                 world->notification_capacity);
        world->notifications[world->notification_count++] =
            (struct world_notification){
                .run = run,
                .event = event,
            };
        if (known != NULL) {
            world_fault(world,
                        "there are two notifications of event %llu",
                        event);
        }
        return;
    }
    if (known == NULL || known->settled) {
        world_fault(world, "a notification of event %llu goes twice", event);
    } else if (!known->told && !known->given_up) {
        world_fault(world, "nobody was told of event %llu", event);
    } else {
        known->settled = true;
    }
}

void world_notify_event(struct world *world, const struct store_event *row)
{
    if (event_kind_of(row) != EVENT_KIND_HOOK) {
        return;
    }
    struct event event = {0};
    event_read(&event, row);
    for (uint32_t ix = 0; ix < world->notification_count; ix++) {
        if (world->notifications[ix].event == event.as.hook.of) {
            world->notifications[ix].given_up = true;
        }
    }
    event_release(&event);
}

/* Return the notification of a hook's directory, or NULL. */
static struct world_notification *notification_at(const struct world *world,
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

void world_notify_begun(struct world *world, const char *dir)
{
    const struct world_notification *notification = notification_at(world, dir);
    if (notification == NULL) {
        world_fault(world, "a hook is called for nothing: %s", dir);
        return;
    }
    for (uint32_t ix = 0; ix < world->notification_count; ix++) {
        const struct world_notification *other = &world->notifications[ix];
        if (other->run == notification->run &&
            other->event < notification->event && !other->told &&
            !other->given_up) {
            world_fault(world,
                        "event %llu is told before %llu",
                        (unsigned long long)notification->event,
                        (unsigned long long)other->event);
        }
    }
}

void world_notify_told(struct world *world, const char *dir)
{
    struct world_notification *notification = notification_at(world, dir);
    if (notification != NULL) {
        notification->told = true;
    }
}

void world_notify_check_rest(struct world *world)
{
    for (uint32_t ix = 0; ix < world->notification_count; ix++) {
        if (!world->notifications[ix].settled) {
            world_fault(world,
                        "the notification of event %llu was left",
                        (unsigned long long)world->notifications[ix].event);
        }
    }
}
