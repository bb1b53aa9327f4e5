/* SPDX-License-Identifier: MIT */
/*
 * Questions, which change nothing. What a command shows of the scheduler's own
 * state need not be read from the store and built again, which takes as long as
 * the run is large.
 */
#include "engine/request_internal.h"

enum { LABELS_MAX = 64 };

enum err request_look(struct request *request, const struct engine_look *look)
{
    const struct engine *engine = request->engine;
    request->silent = true;
    if (engine->world->look == NULL) {
        return diag_set(&request->diag, ERR_UNAVAILABLE, "not available here");
    }
    return engine->world->look(engine->ctx,
                               look,
                               &request->text,
                               &request->diag);
}

enum err request_do_show(struct request *request)
{
    const char *labels[LABELS_MAX];
    struct engine_look look = {
        .verb = request->verb,
        .command = request_text(request, "command"),
        .run = request_text(request, "run"),
        .labels = labels,
    };
    request->silent = true;
    const json_t *array = json_object_get(request->json, "labels");
    size_t ix;
    const json_t *item;
    json_array_foreach(array, ix, item)
    {
        if (!json_is_string(item) || ix >= LABELS_MAX) {
            return diag_set(&request->diag, ERR_INVALID, "invalid labels");
        }
        labels[look.label_count++] = json_string_value(item);
    }
    return request_look(request, &look);
}
