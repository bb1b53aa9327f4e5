/* SPDX-License-Identifier: MIT */
#include "view/queue.h"

#include "exec/attempt_file.h"
#include "work/home.h"

#include <stdlib.h>
#include <string.h>

/* What a merge has published: see git/merge_queue.c. */
struct published {
    uint32_t restarts;
    struct strbuf on; /* "\n", and a line for each task below it */
};

static bool read_file(const struct glance *glance,
                      const struct engine_session_view *session,
                      struct published *out)
{
    struct engine_run_view run = engine_run(glance->view.engine, session->run);
    struct strbuf dir = {0};
    struct strbuf text = {0};
    struct diag diag;
    home_add_attempt(&dir,
                     glance->place.home,
                     run.id,
                     run.plan->tasks[session->task].id,
                     session->number);
    bool good =
        attempt_file_read(strbuf_text(&dir), "queue", &text, &diag) == ERR_OK;
    const char *at = strbuf_text(&text);
    for (int ix = 0; good && ix < 3; ix++) { /* words before the number */
        at = strchr(at, ' ');
        good = at != NULL;
        at += good ? 1 : 0;
    }
    if (good) {
        out->restarts = (uint32_t)strtoul(at, NULL, 10);
    }
    if (good) {
        strbuf_adds(&out->on, text.text + strcspn(text.text, "\n"));
    }
    strbuf_release(&dir);
    strbuf_release(&text);
    return good;
}

/* Whether a merge is built on a task, by its own account. */
static bool is_on(const struct published *published, const char *task)
{
    struct strbuf line = {0};
    strbuf_addf(&line, "\n%s\n", task);
    bool found = strstr(strbuf_text(&published->on), line.text) != NULL;
    strbuf_release(&line);
    return found;
}

struct queue_view queue_of(const struct glance *glance,
                           const struct engine_session_view *session)
{
    const struct engine *engine = glance->view.engine;
    const struct plan *plan = engine_plan(engine, session->run);
    const struct plan_task *own = &plan->tasks[session->task];
    struct queue_view queue = {.place = 1};
    if (!own->merge) {
        return (struct queue_view){0};
    }
    struct published published = {0};
    bool known =
        glance->place.home != NULL && read_file(glance, session, &published);
    struct engine_session_view other = {0};
    while (glance_next_session(glance, session->run, other.token, &other)) {
        const struct plan_task *task = &plan->tasks[other.task];
        if (!task->merge || task->repo != own->repo) {
            continue;
        }
        queue.count++;
        if (other.token < session->token) {
            queue.place++;
            queue.on =
                !known || is_on(&published, task->id) ? task->id : queue.on;
        }
    }
    queue.restarts = published.restarts;
    strbuf_release(&published.on);
    return queue.count > 1 || queue.restarts > 0 ? queue
                                                 : (struct queue_view){0};
}

void queue_add_restarts(struct strbuf *out, uint32_t restarts)
{
    if (restarts == 1) {
        strbuf_adds(out, ", restarted once");
    } else if (restarts > 1) {
        strbuf_addf(out, ", restarted %u times", restarts);
    }
}

void queue_add(struct strbuf *out, const struct queue_view *queue)
{
    if (queue->place == 0) {
        return;
    }
    strbuf_addf(out,
                ", %u of %u in the merge queue",
                queue->place,
                queue->count);
    if (queue->on != NULL) {
        strbuf_addf(out, ", on top of %s", queue->on);
    }
    queue_add_restarts(out, queue->restarts);
}

void queue_add_json(struct jsonw *json, const struct queue_view *queue)
{
    if (queue->place == 0) {
        return;
    }
    jsonw_object(json, "queue");
    jsonw_int(json, "place", queue->place);
    jsonw_int(json, "merges", queue->count);
    jsonw_text(json, "on", queue->on);
    jsonw_int(json, "restarts", queue->restarts);
    jsonw_object_end(json);
}
