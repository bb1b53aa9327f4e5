/* SPDX-License-Identifier: MIT */
/*
 * The link between a scheduler and a separate worker process.
 *
 * Messages arrive in order, each way, after a delay. Cutting a link loses the
 * messages in transit, and all that are sent until it is restored: then the
 * scheduler learns that its worker is back. A scheduler that connects takes the
 * link from its predecessor.
 */
#include "sim/world_internal.h"

#include "base/invariant.h"
#include "base/mem.h"

#include <string.h>

enum message_type {
    MESSAGE_ASSIGN,
    MESSAGE_WANT,
    MESSAGE_TELL,
    MESSAGE_ASK,
    MESSAGE_FORGET,
    MESSAGE_REPORT,
};

struct world_message {
    enum message_type type;
    uint32_t link;
    uint32_t process;   /* sender or receiver */
    struct arena arena; /* of the strings below */
    struct work_order order;
    struct work_mark mark;
    bool begun;
    uint64_t token;
    enum work_want want;
    const char *text;
    struct work_report report;
    struct attempt_result result;
};

static const char *
copy(struct world_message *message, const char *text, size_t len)
{
    return text != NULL ? arena_strndup(&message->arena, text, len) : NULL;
}

static const char *copy_text(struct world_message *message, const char *text)
{
    return text != NULL ? copy(message, text, strlen(text)) : NULL;
}

static char *copy_result_text(struct world_message *message, const char *text)
{
    return text != NULL ? arena_strndup(&message->arena, text, strlen(text))
                        : NULL;
}

/* Send a new message to its receiver; NULL: the link is cut. */
static struct world_message *
send(struct world *world, enum message_type type, uint32_t process)
{
    if (!world->linked) {
        return NULL;
    }
    struct world_message *message = mem_zalloc(1, sizeof(*message));
    message->type = type;
    message->link = world->link;
    message->process = process;
    world->messages = mem_grown(world->messages,
                                world->message_count,
                                &world->message_capacity,
                                sizeof(void *));
    world->messages[world->message_count] = message;
    int64_t *last_ns =
        type == MESSAGE_REPORT ? &world->reports_ns : &world->orders_ns;
    int64_t at_ns = world->now_ns + world_delay(world, 2 * WORLD_MS);
    *last_ns = at_ns > *last_ns ? at_ns : *last_ns;
    (void)world_plan_event(world,
                           WORLD_MESSAGE,
                           *last_ns,
                           world->message_count++,
                           0);
    return message;
}

/* The same from a scheduler, unless another scheduler has its link by now. */
static struct world_message *send_of(struct world_process *process,
                                     enum message_type type)
{
    struct world *world = process->world;
    return process->link == world->link ? send(world, type, process->ix) : NULL;
}

static void copy_id(struct world_message *message, const struct work_id *id)
{
    message->order.id = (struct work_id){
        .token = id->token,
        .nonce = copy_text(message, id->nonce),
        .run = copy_text(message, id->run),
        .task = copy_text(message, id->task),
        .name = copy_text(message, id->name),
    };
}

/* This machine does not use arguments and git. */
void world_link_assign(struct world_process *process,
                       const struct work_order *order)
{
    static const char *const words[] = {"true", NULL};
    struct world_message *message = send_of(process, MESSAGE_ASSIGN);
    if (message == NULL) {
        return;
    }
    struct work_order *to = &message->order;
    *to = *order;
    copy_id(message, &order->id);
    to->folder = "/";
    to->prepare = copy_text(message, order->prepare);
    to->shell = NULL;
    to->argv = words;
    to->agent = false;
    to->git = (struct work_git){0};
    const char **env =
        arena_alloc(&message->arena, order->env_count + 1, sizeof(env[0]));
    for (uint32_t ix = 0; ix < order->env_count; ix++) {
        env[ix] = copy_text(message, order->env[ix]);
    }
    to->env = env;
    struct work_file *files =
        arena_alloc(&message->arena, order->file_count + 1, sizeof(files[0]));
    for (uint32_t ix = 0; ix < order->file_count; ix++) {
        const struct work_file *from = &order->files[ix];
        files[ix] = (struct work_file){
            .name = copy_text(message, from->name),
            .variable = copy_text(message, from->variable),
            .text = copy(message, from->text, from->len),
            .len = from->len,
        };
    }
    to->files = files;
}

void world_link_want(struct world_process *process,
                     uint64_t token,
                     enum work_want want)
{
    struct world_message *message = send_of(process, MESSAGE_WANT);
    if (message != NULL) {
        message->token = token;
        message->want = want;
    }
}

void world_link_tell(struct world_process *process,
                     uint64_t token,
                     const char *text)
{
    struct world_message *message = send_of(process, MESSAGE_TELL);
    if (message != NULL) {
        message->token = token;
        message->text = copy_text(message, text);
    }
}

void world_link_ask(struct world_process *process,
                    const struct work_id *id,
                    const struct work_mark *mark,
                    bool begun,
                    enum work_want want)
{
    struct world_message *message = send_of(process, MESSAGE_ASK);
    if (message != NULL) {
        copy_id(message, id);
        message->mark = *mark;
        message->begun = begun;
        message->want = want;
    }
}

void world_link_forget(struct world_process *process, const struct work_id *id)
{
    struct world_message *message = send_of(process, MESSAGE_FORGET);
    if (message != NULL) {
        copy_id(message, id);
    }
}

static void copy_result(struct world_message *message,
                        const struct attempt_result *from)
{
    struct attempt_result *to = &message->result;
    *to = *from;
    to->reason = copy_result_text(message, from->reason);
    to->feedback = copy_result_text(message, from->feedback);
    to->resume = copy_result_text(message, from->resume);
    to->add = copy_result_text(message, from->add);
    to->outputs = copy_result_text(message, from->outputs);
    to->tasks = arena_alloc(&message->arena,
                            from->task_count + 1,
                            sizeof(to->tasks[0]));
    for (uint32_t ix = 0; ix < from->task_count; ix++) {
        to->tasks[ix] = (struct attempt_task_result){
            .task = copy_result_text(message, from->tasks[ix].task),
            .outcome = from->tasks[ix].outcome,
            .reason = copy_result_text(message, from->tasks[ix].reason),
            .feedback = copy_result_text(message, from->tasks[ix].feedback),
            .final = from->tasks[ix].final,
            .outputs = copy_result_text(message, from->tasks[ix].outputs),
        };
    }
}

void world_link_report(struct world_worker *worker,
                       const struct work_report *report)
{
    struct world *world = worker->world;
    struct world_message *message =
        worker->died ? NULL : send(world, MESSAGE_REPORT, world->link_process);
    if (message == NULL) {
        return;
    }
    message->report = *report;
    message->report.log = copy_text(message, report->log);
    message->report.output = copy(message, report->output, report->output_len);
    message->report.text = copy_text(message, report->text);
    if (report->result != NULL) {
        copy_result(message, report->result);
        message->report.result = &message->result;
    }
}

static void deliver_order(struct world *world, struct world_message *message)
{
    struct world_worker *worker = world->workers[world->remote];
    if (!worker->alive) {
        return;
    }
    if (message->type == MESSAGE_ASSIGN) {
        worker_assign(worker->worker, &message->order);
    } else if (message->type == MESSAGE_WANT) {
        worker_want(worker->worker, message->token, message->want);
    } else if (message->type == MESSAGE_TELL) {
        worker_tell(worker->worker, message->token, message->text);
    } else if (message->type == MESSAGE_ASK) {
        worker_ask(worker->worker,
                   &message->order.id,
                   &message->mark,
                   message->begun,
                   message->want);
    } else {
        worker_forget(worker->worker, &message->order.id);
    }
    world_worker_after(worker);
}

static void release_message(struct world_message *message)
{
    arena_release(&message->arena);
    mem_free(message);
}

void world_link_deliver(struct world *world, uint32_t ix)
{
    struct world_message *message = world->messages[ix];
    struct world_process *process = world->processes[message->process];
    world->messages[ix] = NULL;
    bool arrives = world->linked && message->link == world->link;
    if (arrives && message->type != MESSAGE_REPORT) {
        deliver_order(world, message);
    } else if (arrives && process->alive) {
        if (process->stalled_ns > world->now_ns) {
            world->messages[ix] = message; /* keep it until it is read */
            (void)world_plan_event(world,
                                   WORLD_MESSAGE,
                                   process->stalled_ns,
                                   ix,
                                   0);
            return;
        }
        world_process_report(process, &message->report);
    }
    release_message(message);
}

void world_link_up(struct world_process *process)
{
    struct world *world = process->world;
    if (!process->remote) {
        return;
    }
    process->link = ++world->link;
    world->link_process = process->ix;
    world->linked = world->workers[world->remote]->alive;
    if (!world->linked) {
        world_link_cut(world, world_delay(world, WORLD_SECOND));
    }
}

void world_link_cut(struct world *world, int64_t for_ns)
{
    if (world->link == 0) {
        return; /* no scheduler yet */
    }
    world_say(world, "the link is cut");
    world->linked = false;
    struct world_process *process = world->processes[world->link_process];
    process->link = ++world->link;
    (void)world_plan_event(world,
                           WORLD_LINKED,
                           world->now_ns + for_ns + 1,
                           0,
                           world->link);
}

void world_link_again(struct world *world)
{
    struct world_process *process = world->processes[world->link_process];
    if (!world->workers[world->remote]->alive) {
        world->remote = world_worker_begin(world, NULL);
    }
    world->linked = true;
    if (process->alive) {
        process->worker = world->remote;
        world_process_linked(process);
    }
}

void world_link_release(struct world *world)
{
    for (uint32_t ix = 0; ix < world->message_count; ix++) {
        if (world->messages[ix] != NULL) {
            release_message(world->messages[ix]);
        }
    }
    mem_free(world->messages);
}
