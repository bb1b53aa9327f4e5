/* SPDX-License-Identifier: MIT */
#include "plan/load_spec.h"

#include <string.h>

struct sched_failure_spec load_failure(const struct plan *plan,
                                       const struct plan_task *task)
{
    static const enum sched_on_failure actions[] = {
        [PLAN_ON_FAILURE_PARK] = SCHED_PARK,
        [PLAN_ON_FAILURE_ABORT] = SCHED_ABORT,
        [PLAN_ON_FAILURE_SKIP] = SCHED_SKIP,
        [PLAN_ON_FAILURE_ASK] = SCHED_ASK,
        [PLAN_ON_FAILURE_STOP] = SCHED_STOP,
    };
    const struct plan_settings *settings = task->settings;
    return (struct sched_failure_spec){
        .retry_max = settings->retry_max,
        .backoff_ns = settings->retry_backoff_ns,
        .backoff_ns_max = settings->retry_backoff_ns_max,
        .checkpoint_max = settings->checkpoint_max,
        .rework_max = task->rework_max,
        .on_failure = actions[settings->on_failure],
        .optional = settings->optional,
        .rework_on_failure = plan_reworks_on_failure(plan, task),
    };
}

static void add_word(struct strbuf *out, const char *text)
{
    if (text == NULL) {
        strbuf_adds(out, " -");
    } else {
        strbuf_addf(out, " %zu:%s", strlen(text), text);
    }
}

static void add_words(struct strbuf *out, const char *const *words)
{
    strbuf_adds(out, " [");
    for (; *words != NULL; words++) {
        add_word(out, *words);
    }
}

static void add_sandbox(struct strbuf *out, const struct plan_sandbox *sandbox)
{
    if (sandbox != NULL) {
        strbuf_adds(out, sandbox->network ? " network" : " alone");
        add_words(out, sandbox->write);
        add_words(out, sandbox->read);
        add_words(out, sandbox->env);
    }
}

void load_add_alike(struct strbuf *out, const struct plan_task *task)
{
    strbuf_addf(out, "batch %u %u", task->repo, task->agent);
    add_word(out, task->run.shell);
    add_word(out, task->settings->prepare);
    add_word(out, task->settings->prepare_once ? "once" : NULL);
    add_word(out, task->settings->prompt);
    add_word(out, task->settings->prompt_file);
    add_sandbox(out, task->settings->sandbox);
    add_word(out, task->settings->worker);
    for (uint32_t n = 0; task->run.argv != NULL && task->run.argv[n] != NULL;
         n++) {
        add_word(out, task->run.argv[n]);
    }
}

const char *load_place(const struct plan *plan,
                       const struct plan_task *task,
                       const char *worker)
{
    bool hub = task->repo != PLAN_NONE && plan->repos[task->repo].url != NULL;
    return task->settings->worker != NULL || hub ? task->settings->worker
                                                 : worker;
}
