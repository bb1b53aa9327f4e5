/* SPDX-License-Identifier: MIT */
/*
 * The speculative merge queue. Sessions that merge into one agent branch stand
 * in the order of their fencing tokens. Each builds on the result of the
 * nearest session before it that is not failing, and runs its gate at once, in
 * a checkout of its own; it moves the branch when all before it have done so or
 * are out of the queue. If what it was built on does not come true, it stops
 * its gate and is built again. So a session is only blamed for its own effect,
 * and the branch only gets results that were gated as they are.
 *
 * Each session publishes its state in the file `queue` of its attempt
 * directory:
 *
 *   STATE COMMIT BASE RESTARTS TASK    COMMIT "-": none; BASE: its first parent
 *   TASK                           one line for each session that it is built
 *                                  on and that has not landed
 *
 * These files are hints: they save gates and waiting. What counts is the
 * compare-and-swap of agent_move() from exactly the commit that the gated
 * result has as first parent. A session that is killed is seen by the others
 * in its attempt directory. The ref refs/sluice/RUN/queue/TOKEN keeps the
 * result from git's garbage collection.
 */
#include "base/clock.h"
#include "base/crash.h"
#include "base/duration.h"
#include "base/mem.h"
#include "exec/attempt.h"
#include "exec/attempt_file.h"
#include "git/log.h"
#include "git/merge_internal.h"
#include "git/result.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    CHECKOUTS_MAX = 1000,
    MOVES_MAX = 20, /* results lost to another mover of the branch */
};

#define LOOK_NS (50 * MS_NS)
#define TOUCH_NS (1 * SECOND_NS)
/* How often a merge asks its hub whether another machine has moved the agent
 * branch: then its gate is pointless. */
#define HUB_LOOK_NS (10 * SECOND_NS)
/* A session that does not begin in this time has never begun: the scheduler
 * could not start it. If it does begin, the fence keeps the order. */
#define ABSENT_NS (30 * SECOND_NS)
/* The same with a hub: it is on another machine. The hub keeps the order. */
#define ABSENT_HUB_NS (2 * SECOND_NS)

/* State of a session in the queue. */
enum spot {
    SPOT_ABSENT, /* it has not published anything yet */
    SPOT_BUILDING,
    SPOT_GATING,
    SPOT_PASSED,
    SPOT_FAILING, /* its gate fails, on top of others that may not land */
    SPOT_FAILED,  /* final, as are those that follow */
    SPOT_LANDED,
    SPOT_OVER, /* it has ended, or will never run */
};

static const char *const spot_names[] = {
    [SPOT_ABSENT] = "absent",
    [SPOT_BUILDING] = "building",
    [SPOT_GATING] = "gating",
    [SPOT_PASSED] = "passed",
    [SPOT_FAILING] = "failing",
    [SPOT_FAILED] = "failed",
    [SPOT_LANDED] = "landed",
    [SPOT_OVER] = "over",
};

/* A session before this one. */
struct earlier {
    const char *dir;
    enum spot spot;
    struct git_id commit; /* "": none */
    struct git_id base;
    struct strbuf task;
    struct strbuf on; /* "\n", and a line for each task */
    int64_t since_ns; /* of waiting for it */
};

struct turn {
    struct queue *queue;
    struct earlier *before;
    size_t count;
    char boot_id[37];
    int checkout;       /* lock of the chosen checkout; -1: none */
    struct git_id base; /* what the result is built on */
    bool rooted;        /* the agent branch was at `base` when nobody was below;
                           from then on, only agent_move() asks git */
    bool first;         /* it was built with nobody before it */
    bool stale;         /* `base` does not come true */
    uint32_t built;     /* how often */
    enum spot spot;     /* as published */
    struct strbuf on;   /* tasks below it that have not landed, one per line */
    struct strbuf built_on; /* the same, when it was built */
    struct merged merged;
    struct candidate *part;
    int64_t touched_ns;
    int64_t asked_ns; /* when the hub was last asked */
};

static bool is_final(enum spot spot)
{
    return spot >= SPOT_FAILED;
}

/* Whether others build on a session in this state. */
static bool is_below(enum spot spot)
{
    return spot < SPOT_FAILING;
}

static uint32_t restarts_of(const struct turn *turn)
{
    return turn->built > 0 ? turn->built - 1 : 0;
}

/* Tell the sessions behind this one. A result is there from its gate on. */
static void publish(struct turn *turn, enum spot spot)
{
    const struct merge_options *options = turn->queue->options;
    bool made = spot != SPOT_BUILDING && turn->merged.commit.text[0] != '\0';
    turn->spot = spot;
    struct strbuf text = {0};
    struct diag diag = {0};
    strbuf_addf(&text,
                "%s %s %s %" PRIu32 " %s\n",
                spot_names[spot],
                made ? turn->merged.commit.text : "-",
                spot != SPOT_BUILDING ? turn->base.text : "-",
                restarts_of(turn),
                options->members[0].task);
    strbuf_adds(&text, strbuf_text(&turn->on));
    if (attempt_file_write(options->dir, "queue", &text, &diag) != ERR_OK) {
        log_line("%s", diag.text); /* those behind wait until this one ends */
    }
    strbuf_release(&text);
    crash_point("queue-published");
}

struct turn *merge_turn_new(struct queue *queue)
{
    const struct merge_options *options = queue->options;
    struct turn *turn = mem_zalloc(1, sizeof(*turn));
    turn->queue = queue;
    turn->checkout = -1;
    turn->count = options->before_count;
    turn->before = mem_zalloc(turn->count, sizeof(turn->before[0]));
    turn->merged.parts = &turn->part;
    attempt_boot_id(turn->boot_id);
    for (size_t ix = 0; ix < turn->count; ix++) {
        turn->before[ix].dir = options->before[ix];
        turn->before[ix].since_ns = clock_boot_ns();
    }
    publish(turn, SPOT_BUILDING);
    return turn;
}

/* --- refs ---------------------------------------------------------------- */

/* Append "refs/sluice/RUN/queue/". */
static void add_refs(struct strbuf *out, const struct turn *turn)
{
    const char *fence = turn->queue->agent.names.fence;
    strbuf_add(out, fence, strlen(fence) - strlen("fence"));
    strbuf_adds(out, "queue/");
}

/* Keep the result from garbage collection. */
static enum err keep(struct turn *turn, struct diag *diag)
{
    if (git_hub(turn->queue->agent.git) != NULL) {
        return ERR_OK; /* nothing is collected in a mirror */
    }
    struct strbuf ref = {0};
    add_refs(&ref, turn);
    strbuf_addf(&ref, "%" PRIu64, turn->queue->options->agent.token);
    struct git_ref_change change = {
        .ref = strbuf_text(&ref),
        .to = turn->merged.commit.text,
    };
    enum err err =
        git_change_refs(turn->queue->agent.git, &change, 1, "sluice", diag);
    strbuf_release(&ref);
    crash_point("queue-kept");
    return err;
}

static bool has_turn(const struct turn *turn)
{
    bool all = true;
    for (size_t ix = 0; ix < turn->count; ix++) {
        all = all && is_final(turn->before[ix].spot);
    }
    return all;
}

/* Remove the locks that killed processes of git have left on refs of the queue:
 * they change only under this lock. */
static void drop_locks(const struct turn *turn, const struct strbuf *prefix)
{
    struct git *git = turn->queue->agent.git;
    struct strbuf path = {0};
    int lock = git_lock(git, "sluice-refs", LOCK_EX);
    strbuf_addf(&path, "%s/%s", git_common_dir(git), strbuf_text(prefix));
    DIR *list = lock >= 0 ? opendir(strbuf_text(&path)) : NULL;
    const struct dirent *entry;
    while (list != NULL && (entry = readdir(list)) != NULL) {
        size_t len = strlen(entry->d_name);
        if (len > 5 && strcmp(entry->d_name + len - 5, ".lock") == 0) {
            (void)unlinkat(dirfd(list), entry->d_name, 0);
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    if (lock >= 0) {
        (void)close(lock);
    }
    strbuf_release(&path);
}

/* Delete the ref of this session and, if nobody is before it, those of killed
 * sessions. */
static void drop_refs(const struct turn *turn)
{
    struct strbuf prefix = {0};
    struct strbuf list = {0};
    struct strbuf lines = {0};
    uint64_t own = turn->queue->options->agent.token;
    size_t cursor = 0;
    char *line;
    add_refs(&prefix, turn);
    drop_locks(turn, &prefix);
    if (git_list_refs(turn->queue->agent.git,
                      PROC_ARGS(strbuf_text(&prefix)),
                      &list,
                      NULL) != ERR_OK) {
        strbuf_clear(&list);
    }
    while ((line = git_next_line(&list, &cursor)) != NULL) {
        const char *ref = strchr(line, ' ');
        uint64_t token =
            ref != NULL ? strtoull(ref + 1 + prefix.len, NULL, 10) : UINT64_MAX;
        if (token == own || (token < own && has_turn(turn))) {
            strbuf_addf(&lines, "delete%s\n", ref);
        }
    }
    if (lines.len > 0 && git_transact(turn->queue->agent.git,
                                      strbuf_text(&lines),
                                      false,
                                      "sluice",
                                      NULL) != ERR_OK) {
        log_line("cannot delete refs below %s", strbuf_text(&prefix));
    }
    strbuf_release(&prefix);
    strbuf_release(&list);
    strbuf_release(&lines);
}

void merge_turn_free(struct turn *turn)
{
    if (turn->queue->options->gate != NULL && turn->queue->agent.git != NULL) {
        drop_refs(turn);
    }
    if (turn->checkout >= 0) {
        (void)close(turn->checkout);
    }
    for (size_t ix = 0; ix < turn->count; ix++) {
        strbuf_release(&turn->before[ix].task);
        strbuf_release(&turn->before[ix].on);
    }
    strbuf_release(&turn->on);
    strbuf_release(&turn->built_on);
    mem_free(turn->before);
    mem_free(turn);
}

/* --- the checkout -------------------------------------------------------- */

/* Claim a checkout: an open-file-description lock on its lock file, beside the
 * flock() of its present user (worktree.c). Return -1 if it is not free. */
static int claim(const char *path)
{
    struct strbuf name = {0};
    strbuf_addf(&name, "%s.lock", path);
    int fd = open(strbuf_text(&name),
                  O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
                  0600);
    strbuf_release(&name);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fd >= 0 && fcntl(fd, F_OFD_SETLK, &lock) != 0) {
        (void)close(fd);
        fd = -1;
        errno = EAGAIN;
    }
    return fd;
}

enum err merge_turn_choose_checkout(struct turn *turn,
                                    struct strbuf *path,
                                    struct diag *diag)
{
    const char *first = turn->queue->options->worktree;
    struct strbuf folder = {0};
    strbuf_add(&folder, first, (size_t)(strrchr(first, '/') - first));
    enum err err = attempt_file_make_dir(strbuf_text(&folder), diag);
    strbuf_release(&folder);
    for (int ix = 1; err == ERR_OK && turn->checkout < 0; ix++) {
        strbuf_clear(path);
        strbuf_adds(path, first);
        if (ix > 1) {
            strbuf_addf(path, ".%d", ix);
        }
        turn->checkout = claim(strbuf_text(path));
        if (turn->checkout < 0 && (errno != EAGAIN || ix == CHECKOUTS_MAX)) {
            err = diag_set(diag,
                           ERR_UNAVAILABLE,
                           "lock %s: %s",
                           strbuf_text(path),
                           strerror(errno));
        }
    }
    return err;
}

/* --- looking ------------------------------------------------------------- */

static void set_id(struct git_id *id, const char *text)
{
    (void)
        snprintf(id->text, sizeof(id->text), "%s", text[0] != '-' ? text : "");
}

/* Read what a session has published. */
static void read_spot(struct earlier *earlier)
{
    struct strbuf text = {0};
    struct diag diag;
    char name[16] = "";
    char commit[GIT_ID_BYTES] = "";
    char base[GIT_ID_BYTES] = "";
    int at = 0;
    if (attempt_file_read(earlier->dir, "queue", &text, &diag) == ERR_OK &&
        sscanf(strbuf_text(&text),
               "%15s %64s %64s %*u %n",
               name,
               commit,
               base,
               &at) == 3 &&
        at > 0) {
        for (size_t ix = 0; ix < ARRAY_COUNT(spot_names); ix++) {
            if (strcmp(spot_names[ix], name) == 0) {
                earlier->spot = (enum spot)ix;
            }
        }
        strbuf_clear(&earlier->task);
        strbuf_add(&earlier->task,
                   text.text + at,
                   strcspn(text.text + at, "\n"));
        strbuf_clear(&earlier->on);
        strbuf_adds(&earlier->on, text.text + at + earlier->task.len);
        set_id(&earlier->commit, commit);
        set_id(&earlier->base, base);
    }
    strbuf_release(&text);
}

/* Look at one session. What it has published counts while it lives; what is
 * final also later, so its life is looked at first. */
static void look_at(const struct turn *turn, struct earlier *earlier)
{
    struct attempt_found found;
    struct diag diag;
    if (is_final(earlier->spot) ||
        attempt_inspect(earlier->dir, turn->boot_id, &found, &diag) != ERR_OK) {
        return;
    }
    read_spot(earlier);
    bool ended = found.state == ATTEMPT_ENDED || found.state == ATTEMPT_LOST;
    int64_t most_ns =
        git_hub(turn->queue->agent.git) != NULL ? ABSENT_HUB_NS : ABSENT_NS;
    bool never = found.state == ATTEMPT_NEVER &&
                 clock_boot_ns() - earlier->since_ns > most_ns;
    if ((ended || never) && !is_final(earlier->spot)) {
        earlier->spot = SPOT_OVER;
    }
}

/* Whether a session that has a result is built on another session that has not
 * landed it, all before `ix` being over or failing. */
static bool is_on_lost(const struct turn *turn, size_t ix)
{
    bool lost = false;
    struct strbuf line = {0};
    for (size_t n = 0; n < ix && !lost; n++) {
        strbuf_clear(&line);
        strbuf_addf(&line, "\n%s\n", strbuf_text(&turn->before[n].task));
        lost = turn->before[n].spot != SPOT_LANDED &&
               strstr(strbuf_text(&turn->before[ix].on), line.text) != NULL;
    }
    strbuf_release(&line);
    return lost;
}

/*
 * Look at all sessions before this one; return the nearest to build on, or
 * NULL. A session that has not noticed yet that what it is built on has changed
 * will be built again: nobody builds on its result, or around it.
 */
static const struct earlier *look(struct turn *turn)
{
    const struct earlier *nearest = NULL;
    for (size_t ix = 0; ix < turn->count; ix++) {
        struct earlier *earlier = &turn->before[ix];
        look_at(turn, earlier);
        bool made = !is_final(earlier->spot) && earlier->base.text[0] != '\0';
        if (made && (nearest != NULL
                         ? strcmp(earlier->base.text, nearest->commit.text) != 0
                         : is_on_lost(turn, ix))) {
            earlier->spot = SPOT_BUILDING;
            earlier->commit = (struct git_id){0};
        }
        if (is_below(earlier->spot)) {
            nearest = earlier;
        }
    }
    return nearest;
}

/* Whether a session before this one has landed what this one is built on. */
static bool has_landed_base(const struct turn *turn)
{
    bool found = false;
    for (size_t ix = 0; ix < turn->count; ix++) {
        found = found ||
                (turn->before[ix].spot == SPOT_LANDED &&
                 strcmp(turn->before[ix].commit.text, turn->base.text) == 0);
    }
    return found;
}

/* Whether it is time to ask the hub. Without one, others on this machine say
 * what they do. */
static bool must_ask_hub(struct turn *turn)
{
    int64_t now_ns = clock_boot_ns();
    if (git_hub(turn->queue->agent.git) == NULL || turn->stale ||
        now_ns - turn->asked_ns < HUB_LOOK_NS) {
        return false;
    }
    turn->asked_ns = now_ns;
    return true;
}

/* Look whether the result must be built again. Git is called once, when nobody
 * is left below: a session may have landed without having said so. */
static void check(struct turn *turn)
{
    const struct earlier *nearest = look(turn);
    if (nearest != NULL) {
        turn->stale =
            turn->stale || strcmp(nearest->commit.text, turn->base.text) != 0;
        turn->rooted = false;
        return;
    }
    if ((!turn->rooted && !has_landed_base(turn)) || must_ask_hub(turn)) {
        struct git_id built_on = turn->queue->agent.tip;
        struct diag diag;
        turn->stale =
            turn->stale ||
            (merge_read_tip(turn->queue, &diag) == ERR_OK &&
             strcmp(turn->queue->agent.tip.text, turn->base.text) != 0);
        turn->queue->agent.tip = built_on;
    }
    if (!turn->rooted && !turn->stale) { /* what it is built on is true */
        strbuf_clear(&turn->on);
        publish(turn, turn->spot);
    }
    turn->rooted = true;
}

/* ERR_CANCELLED: stop. */
static enum err check_ending(struct diag *diag)
{
    return proc_is_ending()
               ? diag_set(diag, ERR_CANCELLED, "stopped in the merge queue")
               : ERR_OK;
}

/* A sign of life, and a pause. ERR_CANCELLED: stop. */
static enum err rest(struct turn *turn, struct diag *diag)
{
    static const struct timespec pause = {.tv_nsec = LOOK_NS};
    int64_t now_ns = clock_boot_ns();
    if (now_ns - turn->touched_ns >= TOUCH_NS) {
        result_touch_progress();
        turn->touched_ns = now_ns;
    }
    (void)nanosleep(&pause, NULL);
    return check_ending(diag);
}

enum err merge_turn_wait(struct turn *turn, struct diag *diag)
{
    enum err err = ERR_OK;
    (void)look(turn);
    while (err == ERR_OK && !has_turn(turn)) {
        err = rest(turn, diag);
        (void)look(turn);
    }
    return err;
}

/* --- one result ---------------------------------------------------------- */

/* Wait for the result of the nearest session below, and build on that; or on
 * the agent branch. */
static enum err stand(struct turn *turn, struct diag *diag)
{
    enum err err = check_ending(diag);
    const struct earlier *nearest = look(turn);
    while (err == ERR_OK && nearest != NULL &&
           nearest->commit.text[0] == '\0') {
        err = rest(turn, diag);
        nearest = look(turn);
    }
    turn->stale = false;
    turn->asked_ns = clock_boot_ns();
    turn->rooted = nearest == NULL;
    turn->first = has_turn(turn);
    turn->merged.commit = (struct git_id){0};
    strbuf_clear(&turn->on);
    strbuf_clear(&turn->built_on);
    for (size_t ix = 0; ix < turn->count; ix++) {
        if (is_below(turn->before[ix].spot)) {
            strbuf_addf(&turn->on, "%s\n", strbuf_text(&turn->before[ix].task));
        }
    }
    strbuf_adds(&turn->built_on, strbuf_text(&turn->on));
    if (err == ERR_OK && nearest != NULL) {
        turn->queue->agent.tip = nearest->commit;
        log_line("the queue: built on top of %s", strbuf_text(&nearest->task));
    } else if (err == ERR_OK && turn->first && turn->queue->options->sync) {
        err = merge_sync(turn->queue, diag);
    }
    if (err == ERR_OK && nearest == NULL) {
        err = merge_read_tip(turn->queue, diag);
    }
    turn->base = turn->queue->agent.tip;
    return err;
}

/* Merge on top of what is below. Only the first in the queue resolves
 * conflicts; those behind do not wait for that. */
static enum err make(struct turn *turn, struct diag *diag)
{
    struct queue *queue = turn->queue;
    struct candidate *candidate = &queue->candidates[0];
    const struct merge_options *options = queue->options;
    struct merge_options plain = *options;
    plain.repair = NULL;
    candidate->decided = false;
    queue->options = &plain;
    enum err err = merge_make(queue, 1, &turn->merged, diag);
    queue->options = options;
    if (err == ERR_OK && turn->merged.count == 0 && turn->first &&
        options->repair != NULL && candidate->code == OUTCOME_EXIT_CHANGES) {
        publish(turn, SPOT_FAILING);
        candidate->decided = false;
        err = merge_make(queue, 1, &turn->merged, diag);
    }
    return err;
}

/* For proc.h: whether to stop the gate. */
static bool is_stale(void *ctx)
{
    struct queue *queue = ctx;
    check(queue->turn);
    return queue->turn->stale;
}

/* Run the gate while the others move on. */
static enum err
gate(struct turn *turn, enum merge_verdict *verdict, struct diag *diag)
{
    struct queue *queue = turn->queue;
    if (queue->options->gate == NULL) {
        publish(turn, SPOT_GATING);
        return ERR_OK;
    }
    enum err err = keep(turn, diag);
    if (err != ERR_OK) {
        return err;
    }
    publish(turn, SPOT_GATING);
    queue->is_over = is_stale;
    err = merge_test(queue, &turn->merged.commit, verdict, diag);
    queue->is_over = NULL;
    check(turn);
    return turn->stale ? ERR_OK : err;
}

/* Build and gate once. The result is good, bad, or stale. */
static enum err
build(struct turn *turn, enum merge_verdict *verdict, struct diag *diag)
{
    struct queue *queue = turn->queue;
    bool contained = false;
    *verdict = MERGE_GOOD;
    turn->built++;
    turn->merged.count = 0;
    enum err err = git_is_ancestor(queue->agent.git,
                                   queue->candidates[0].tip.text,
                                   turn->base.text,
                                   &contained,
                                   diag);
    if (err != ERR_OK || contained) {
        turn->merged.commit = turn->base; /* nothing to add */
        return err;
    }
    err = make(turn, diag);
    if (err == ERR_OK && turn->merged.count == 0) {
        *verdict = MERGE_BAD;
    } else if (err == ERR_OK) {
        err = gate(turn, verdict, diag);
    }
    return err;
}

/* Wait for those before this one. In the end it is stale, or its turn. */
static enum err await(struct turn *turn, struct diag *diag)
{
    enum err err = ERR_OK;
    check(turn);
    while (err == ERR_OK && !turn->stale && !has_turn(turn)) {
        err = rest(turn, diag);
        check(turn);
    }
    return err;
}

/* Whether the agent branch contains the candidate already. */
static bool is_merged(const struct turn *turn, enum merge_verdict verdict)
{
    return turn->rooted && verdict == MERGE_GOOD && turn->merged.count == 0;
}

/* Whether it conflicts, was not the first when it was built, and may resolve
 * the conflict now that it is. */
static bool can_repair(const struct turn *turn)
{
    const struct candidate *candidate = &turn->queue->candidates[0];
    return !turn->first && turn->merged.count == 0 && candidate->decided &&
           candidate->code == OUTCOME_EXIT_CHANGES &&
           turn->queue->options->repair != NULL;
}

/* It has its turn: act on the verdict. */
static enum err
conclude(struct turn *turn, enum merge_verdict verdict, struct diag *diag)
{
    struct queue *queue = turn->queue;
    struct candidate *candidate = &queue->candidates[0];
    if (verdict == MERGE_BAD) {
        if (!candidate->decided) {
            merge_blame_gate(queue, &turn->merged);
        }
        publish(turn, SPOT_FAILED);
        return ERR_OK;
    }
    crash_point("queue-before-landing");
    enum err err = turn->merged.count > 0
                       ? merge_land(queue, &turn->merged, diag)
                       : ERR_OK;
    if (err == ERR_OK) {
        merge_decide(candidate, OUTCOME_EXIT_DONE, "");
        publish(turn, SPOT_LANDED);
    }
    return err;
}

/* Return the error of the last try. With a hub, others on other machines were
 * faster: no fault of the issue. */
static enum err end_of(const struct turn *turn, enum err err)
{
    bool late = err == ERR_CONFLICT && git_hub(turn->queue->agent.git) != NULL;
    return late ? ERR_UNAVAILABLE : err;
}

enum err merge_turn_take(struct turn *turn, struct diag *diag)
{
    int moves = 0;
    enum err err = stand(turn, diag);
    while (err == ERR_OK) {
        enum merge_verdict verdict;
        err = build(turn, &verdict, diag);
        if (err == ERR_OK && !turn->stale) {
            publish(turn, verdict == MERGE_BAD ? SPOT_FAILING : SPOT_PASSED);
            if (!turn->first && !is_merged(turn, verdict)) {
                err = await(turn, diag);
            }
        }
        bool again = turn->stale || can_repair(turn);
        if (err == ERR_OK && !again) {
            err = conclude(turn, verdict, diag);
            if (err != ERR_CONFLICT || ++moves == MOVES_MAX) {
                return end_of(turn, err);
            }
            err = ERR_OK;
        }
        if (err == ERR_OK) {
            log_line("the queue: what was below it has changed: restarting");
            publish(turn, SPOT_BUILDING);
            crash_point("queue-restart");
            err = stand(turn, diag);
        }
    }
    return err;
}

void merge_turn_tell(const struct turn *turn)
{
    if (turn->count > 0 || restarts_of(turn) > 0) {
        result_say_queue(restarts_of(turn), strbuf_text(&turn->built_on));
    }
}
