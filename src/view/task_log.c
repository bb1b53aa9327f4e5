/* SPDX-License-Identifier: MIT */
#include "view/task_log.h"

#include "base/jsonw.h"
#include "base/mem.h"
#include "engine/engine.h"
#include "work/home.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Search for an attempt of a task. */
struct pick {
    const struct target *target;
    uint32_t number; /* 0: the last */
    struct task_log found;
};

/* The attempt of a batch belongs to its first task; the other tasks have the
 * token of their last session. */
static enum err on_attempt(void *ctx, const struct store_attempt *row)
{
    struct pick *pick = ctx;
    bool own = row->task == pick->target->task;
    bool shared = row->token == pick->target->token;
    if ((own || shared) && (pick->number == 0 || pick->number == row->number) &&
        row->token > pick->found.token) {
        pick->found = (struct task_log){
            .token = row->token,
            .leader = row->task,
            .number = row->number,
            .confined = row->confined,
            .ended = strcmp(row->state, "ended") == 0,
            .row = attempt_row_of(row),
        };
    }
    return ERR_OK;
}

enum err task_log_find(struct task_log *out,
                       struct store *store,
                       const struct target *target,
                       uint32_t number,
                       struct diag *diag)
{
    static const struct store_visitor visitor = {.attempt = on_attempt};
    struct pick pick = {.target = target, .number = number};
    struct store_query query = {
        .finished = true,
        .run = target->run_id,
        .ended = true,
    };
    enum err err = store_read(store, &query, &visitor, &pick, NULL, diag);
    *out = pick.found;
    return err;
}

/* Search for the id of a task by its index. */
struct naming {
    uint32_t task;
    char *id;
};

static enum err on_task(void *ctx, const struct store_task *row)
{
    struct naming *naming = ctx;
    if (row->ix == naming->task && naming->id == NULL) {
        naming->id = mem_strndup(row->id, strlen(row->id));
    }
    return ERR_OK;
}

enum err task_log_add_dir(struct strbuf *out,
                          struct store *store,
                          const char *dir,
                          const struct target *target,
                          const struct task_log *log,
                          struct diag *diag)
{
    static const struct store_visitor visitor = {.task = on_task};
    struct naming naming = {.task = log->leader};
    enum err err = ERR_OK;
    if (log->leader != target->task) {
        struct store_query query = {.finished = true, .run = target->run_id};
        err = store_read(store, &query, &visitor, &naming, NULL, diag);
    }
    home_add_attempt(out,
                     dir,
                     target->run_id,
                     naming.id != NULL ? naming.id : target->task_id,
                     log->number);
    mem_free(naming.id);
    return err;
}

bool task_log_is_over(const char *path, const struct attempt_row *row)
{
    enum attempt_state state = ATTEMPT_LIVE;
    struct diag ignored = {0};
    enum err err = attempt_row_state(row, path, &state, &ignored);
    return err == ERR_OK && state != ATTEMPT_LIVE && state != ATTEMPT_STARTING;
}

bool task_log_is_empty(const char *path, const struct task_log *log)
{
    /* RUN/TASK/1; without the directory of the run, `sluice gc` removed it. */
    const char *end = path + strlen(path);
    for (int up = 0; up < 2; up++) {
        const char *slash = memrchr(path, '/', (size_t)(end - path));
        end = slash != NULL ? slash : path;
    }
    struct strbuf run = {0};
    strbuf_add(&run, path, (size_t)(end - path));
    bool empty = log->ended && access(path, F_OK) != 0 && errno == ENOENT &&
                 access(strbuf_text(&run), F_OK) == 0;
    strbuf_release(&run);
    return empty;
}

void task_log_add_json(struct strbuf *out,
                       const struct target *target,
                       const struct task_log *log,
                       const char *member,
                       const char *text)
{
    struct jsonw json = {.out = out, .spaced = true};
    jsonw_object(&json, NULL);
    jsonw_text(&json, "run", target->run_id);
    jsonw_text(&json, "task", target->task_id);
    jsonw_int(&json, "attempt", log->number);
    jsonw_bool(&json, "confined", log->confined);
    jsonw_text(&json, member, text);
    jsonw_finish(&json);
}
