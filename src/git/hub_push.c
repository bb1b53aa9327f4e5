/* SPDX-License-Identifier: MIT */
#include "git/hub_push.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/crash.h"
#include "base/duration.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "git/hub.h"
#include "git/log.h"
#include "git/result.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    TRIES = 16,     /* of a push that others make fail */
    LOST_MAX = 3,   /* pushes that fail before there is a pause */
    ARGS_FIXED = 9, /* of git push */
};

#define PAUSE_MAX_NS (10 * SECOND_NS)
#define RACE_NS (20 * MS_NS) /* times the number of the try */

/* One line. */
struct change {
    const char *ref;
    const char *to;    /* NULL: delete or verify it */
    const char *from;  /* NULL: any value; "": it must not exist */
    bool verify;       /* only compare it */
    struct git_id now; /* in the mirror */
};

struct push {
    struct git *git;
    struct arena arena;
    struct change *changes;
    size_t count;
    int lock;
    bool fresh;  /* the mirror was read from the hub during this push */
    bool pushed; /* a push was begun: its outcome may be unknown */
    int tries;
    int lost; /* of them failed without a reason */
    int64_t since_ns;
    int64_t pause_ns;
};

/* What a call of git push came to. */
enum end {
    END_DONE,
    END_RACED,   /* refs have other values than expected */
    END_LOST,    /* unknown: the connection has failed */
    END_REFUSED, /* for good */
};

/* --- the changes --------------------------------------------------------- */

/* Return the next word of a line; NULL: no more. */
static const char *next_word(struct arena *arena, const char **at)
{
    *at += strspn(*at, " ");
    size_t len = strcspn(*at, " \n");
    const char *word = len > 0 ? arena_strndup(arena, *at, len) : NULL;
    *at += len;
    return word;
}

static void parse(struct push *push, const char *lines)
{
    size_t count = 0;
    for (const char *at = lines; *at != '\0'; at++) {
        count += *at == '\n' ? 1 : 0;
    }
    push->changes =
        arena_alloc(&push->arena, count + 1, sizeof(push->changes[0]));
    while (*lines != '\0') {
        const char *verb = next_word(&push->arena, &lines);
        struct change *change = &push->changes[push->count++];
        *change = (struct change){.ref = next_word(&push->arena, &lines)};
        INVARIANT(verb != NULL && change->ref != NULL);
        if (verb[0] == 'c' || verb[0] == 'u') { /* create, update */
            change->to = next_word(&push->arena, &lines);
            INVARIANT(change->to != NULL);
        }
        change->verify = verb[0] == 'v';
        change->from = verb[0] == 'c' ? "" : next_word(&push->arena, &lines);
        lines += *lines == '\n' ? 1 : 0;
    }
    INVARIANT(push->count <= count);
}

/* Read the present values of the refs from the mirror. */
static enum err read_now(struct push *push, struct diag *diag)
{
    struct strbuf names = {0};
    struct strbuf list = {0};
    for (size_t ix = 0; ix < push->count; ix++) {
        strbuf_addf(&names, "%s\n", push->changes[ix].ref);
    }
    struct git_call call = {
        .args = PROC_ARGS("cat-file", "--batch-check=%(objectname)"),
        .input = strbuf_text(&names),
        .output = &list,
    };
    enum err err = git_call(push->git, &call, NULL, diag);
    size_t cursor = 0;
    for (size_t ix = 0; err == ERR_OK && ix < push->count; ix++) {
        struct git_id *now = &push->changes[ix].now;
        const char *line = git_next_line(&list, &cursor); /* or "REF missing" */
        size_t len = line != NULL ? strlen(line) : 0;
        *now = (struct git_id){0};
        if (line == NULL) {
            err = diag_set(diag, ERR_IO, "git cat-file prints too little");
        } else if (strchr(line, ' ') == NULL && len < sizeof(now->text)) {
            memcpy(now->text, line, len);
        }
    }
    strbuf_release(&names);
    strbuf_release(&list);
    return err;
}

/* Return the first change that does not apply to the mirror, or NULL. */
static const struct change *find_fault(const struct push *push)
{
    for (size_t ix = 0; ix < push->count; ix++) {
        const struct change *change = &push->changes[ix];
        if (change->from != NULL &&
            strcmp(change->from, change->now.text) != 0) {
            return change;
        }
    }
    return NULL;
}

/* Whether a ref has its new value in the mirror. */
static bool is_set(const struct change *change)
{
    return strcmp(change->to != NULL ? change->to : "", change->now.text) == 0;
}

/* Whether all have: then this push, or another one, has done it. */
static bool is_done(const struct push *push)
{
    bool done = true;
    for (size_t ix = 0; ix < push->count; ix++) {
        done = done && (push->changes[ix].verify ? find_fault(push) == NULL
                                                 : is_set(&push->changes[ix]));
    }
    return done;
}

/* --- one push ------------------------------------------------------------ */

/* Return an argument that lives until the end. */
static const char *join(struct push *push, const char *const parts[4])
{
    struct strbuf text = {0};
    for (size_t ix = 0; ix < 4; ix++) {
        strbuf_adds(&text, parts[ix]);
    }
    const char *word =
        arena_strndup(&push->arena, strbuf_text(&text), text.len);
    strbuf_release(&text);
    return word;
}

/* Return the arguments of git push; NULL: nothing is to change. */
static const char **make_args(struct push *push)
{
    const char *const fixed[] = {
        "push",
        "--porcelain",
        "--atomic",
        "--no-verify",
        "--no-follow-tags",
        "--receive-pack=git-receive-pack",
    };
    const char **args = arena_alloc(&push->arena,
                                    ARGS_FIXED + 2 * push->count,
                                    sizeof(args[0]));
    size_t count = ARRAY_COUNT(fixed);
    memcpy(args, fixed, sizeof(fixed));
    for (size_t ix = 0; ix < push->count; ix++) {
        const struct change *change = &push->changes[ix];
        if (!change->verify && !is_set(change)) {
            args[count++] = join(push,
                                 (const char *const[]){
                                     "--force-with-lease=",
                                     change->ref,
                                     ":",
                                     change->now.text,
                                 });
        }
    }
    if (count == ARRAY_COUNT(fixed)) {
        return NULL;
    }
    args[count++] = "--end-of-options";
    args[count++] = git_hub(push->git);
    for (size_t ix = 0; ix < push->count; ix++) {
        const struct change *change = &push->changes[ix];
        if (!change->verify && !is_set(change)) {
            const char *to = change->to != NULL ? change->to : "";
            args[count++] =
                join(push, (const char *const[]){to, ":", change->ref, ""});
        }
    }
    args[count] = NULL;
    return args;
}

/* Reasons of a server that mean that another process changes the same refs. */
static const char *const races[] = {
    "already exists",
    "atomic",
    "but expected",
    "cannot lock",
    "failed to lock",
    "failed to update ref",
    "fetch first",
    "incorrect old value",
    "non-fast-forward",
    "stale info",
    "unable to create",
};

static bool has_any(const char *reason, const char *const *list, size_t count)
{
    bool found = false;
    for (size_t ix = 0; ix < count; ix++) {
        found = found || strstr(reason, list[ix]) != NULL;
    }
    return found;
}

static bool is_race(const char *reason)
{
    return has_any(reason, races, ARRAY_COUNT(races));
}

/* Reasons of a server that is in trouble itself. */
static bool is_trouble(const char *reason)
{
    static const char *const list[] = {
        "[remote failure]",
        "nternal Server Error",
        "nternal error",
        "nternal server error",
        "imed out",
        "imeout",
    };
    return has_any(reason, list, ARRAY_COUNT(list));
}

/* Append the first message of the hub, which is what its hook says. */
static void add_remark(struct strbuf *out, const char *messages)
{
    const char *at = strstr(messages, "remote: ");
    if (at != NULL) {
        at += strlen("remote: ");
        strbuf_adds(out, ": ");
        strbuf_add(out, at, strcspn(at, "\n"));
        while (out->len > 0 && out->text[out->len - 1] == ' ') {
            out->text[--out->len] = '\0';
        }
    }
}

/* Find what a push that failed came to. Its output has a line "! TAB FROM:TO
 * TAB [rejected] (REASON)" for each ref that was not changed. */
static enum end judge(struct push *push,
                      struct strbuf *output,
                      const char *messages,
                      struct diag *diag)
{
    struct strbuf reason = {0};
    size_t cursor = 0;
    const char *line;
    bool lost = false;
    while ((line = git_next_line(output, &cursor)) != NULL) {
        const char *text = strchr(line, '[');
        if (line[0] == '!' && text != NULL) {
            lost = lost || is_trouble(text);
            if (reason.len == 0 || !is_race(text)) {
                strbuf_clear(&reason);
                strbuf_adds(&reason, text);
            }
        }
    }
    enum end end = END_REFUSED;
    if (reason.len == 0) {
        enum err err =
            hub_judge(git_name(push->git), "push to", messages, diag);
        end = err == ERR_DENIED ? END_REFUSED : END_LOST;
    } else if (lost || is_race(strbuf_text(&reason))) {
        end = lost ? END_LOST : END_RACED;
        (void)diag_set(diag,
                       ERR_UNAVAILABLE,
                       "the hub %s: %s",
                       git_name(push->git),
                       strbuf_text(&reason));
    } else {
        add_remark(&reason, messages);
        (void)diag_set(diag,
                       ERR_DENIED,
                       "the hub %s refuses the push: %s",
                       git_name(push->git),
                       strbuf_text(&reason));
    }
    strbuf_release(&reason);
    return end;
}

/* Call git push. */
static enum end
call_push(struct push *push, const char *const *args, struct diag *diag)
{
    struct strbuf output = {0};
    struct strbuf errors = {0};
    struct git_call call = {
        .args = args,
        .network = GIT_HUB,
        .output = &output,
        .errors = &errors,
    };
    push->pushed = true;
    crash_point("hub-before-push");
    enum err err = git_call(push->git, &call, NULL, diag);
    crash_point("hub-pushed");
    enum end end = END_DONE;
    if (err == ERR_CONFLICT) {
        end = judge(push, &output, strbuf_text(&errors), diag);
    } else if (err != ERR_OK) {
        end = END_LOST;
    }
    strbuf_release(&output);
    strbuf_release(&errors);
    return end;
}

/* Give the mirror the values that the hub has accepted. */
static void set_mirror(struct push *push)
{
    struct strbuf lines = {0};
    struct diag diag = {0};
    for (size_t ix = 0; ix < push->count; ix++) {
        const struct change *change = &push->changes[ix];
        if (change->verify || is_set(change)) {
            continue;
        }
        if (change->to != NULL) {
            strbuf_addf(&lines, "update %s %s\n", change->ref, change->to);
        } else {
            strbuf_addf(&lines, "delete %s\n", change->ref);
        }
    }
    if (hub_set_locked(push->git, push->lock, strbuf_text(&lines), &diag) !=
        ERR_OK) {
        log_line("%s", diag.text); /* the next fetch does it */
    }
    crash_point("hub-mirror-set");
    strbuf_release(&lines);
}

/* --- until the outcome is known ------------------------------------------ */

/* Wait before the next try, without the lock. False: no more tries. */
static bool wait_more(struct push *push, struct diag *diag)
{
    int64_t waited_ns = clock_boot_ns() - push->since_ns;
    if (waited_ns >= git_patience(push->git) || proc_is_ending()) {
        return false;
    }
    if (push->pause_ns == 0) {
        log_line("%s: waiting for it", diag->text);
    }
    push->pause_ns = push->pause_ns == 0 ? SECOND_NS : 2 * push->pause_ns;
    if (push->pause_ns > PAUSE_MAX_NS) {
        push->pause_ns = PAUSE_MAX_NS;
    }
    (void)close(push->lock);
    for (int64_t left = push->pause_ns; left > 0 && !proc_is_ending();
         left -= SECOND_NS) {
        static const struct timespec pause = {.tv_sec = 1};
        result_touch_progress();
        (void)nanosleep(&pause, NULL);
    }
    push->lock = hub_lock(push->git, diag);
    return push->lock >= 0;
}

/* Let others finish, who change the same refs. */
static void rest(int tries)
{
    struct timespec pause = {.tv_nsec = tries * RACE_NS};
    (void)nanosleep(&pause, NULL);
}

/* Read the hub, until it answers or patience ends. */
static enum err refresh(struct push *push, struct diag *diag)
{
    enum err err = hub_fetch_locked(push->git, push->lock, diag);
    while (err == ERR_UNAVAILABLE && wait_more(push, diag)) {
        err = hub_fetch_locked(push->git, push->lock, diag);
    }
    if (err == ERR_OK) {
        push->fresh = true;
        err = read_now(push, diag);
    }
    return err;
}

/* Report a change that does not apply. */
static enum err deny_change(const struct push *push,
                            const struct change *fault,
                            struct diag *diag)
{
    return diag_set(diag,
                    ERR_CONFLICT,
                    "%s is at %s in the hub %s, not at %s",
                    fault->ref,
                    fault->now.text[0] != '\0' ? fault->now.text : "nothing",
                    git_name(push->git),
                    fault->from[0] != '\0' ? fault->from : "nothing");
}

/* Try once. *again_out: it must be tried again with what the mirror has now. */
static enum err try(struct push *push, bool *again_out, struct diag *diag)
{
    const struct change *fault = find_fault(push);
    *again_out = false;
    if (push->pushed && is_done(push)) {
        return ERR_OK;
    }
    if (fault != NULL && push->fresh) {
        return deny_change(push, fault, diag);
    }
    if (fault != NULL) {
        *again_out = true;
        return refresh(push, diag);
    }
    const char **args = make_args(push);
    enum end end = args != NULL ? call_push(push, args, diag) : END_DONE;
    if (end == END_DONE && args != NULL) {
        set_mirror(push);
    }
    if (end == END_DONE || end == END_REFUSED) {
        return end == END_DONE ? ERR_OK : ERR_DENIED;
    }
    push->lost += end == END_LOST ? 1 : 0;
    if (push->lost > LOST_MAX && !wait_more(push, diag)) {
        return ERR_UNAVAILABLE;
    }
    *again_out = true;
    rest(++push->tries);
    return refresh(push, diag);
}

enum err hub_push(struct git *git, const char *lines, struct diag *diag)
{
    struct diag why = {0};
    struct push push = {
        .git = git,
        .since_ns = clock_boot_ns(),
        .lock = hub_lock(git, diag),
    };
    if (push.lock < 0) {
        return ERR_UNAVAILABLE;
    }
    parse(&push, lines);
    bool again = true;
    enum err err = read_now(&push, &why);
    for (int ix = 0; err == ERR_OK && again && ix < TRIES; ix++) {
        err = try(&push, &again, &why);
    }
    if (err == ERR_OK && again) {
        err = ERR_UNAVAILABLE; /* `why` is that of the last push */
    }
    if (err != ERR_OK) {
        (void)diag_set(diag, err, "%s", why.text);
    }
    if (push.lock >= 0) {
        (void)close(push.lock);
    }
    arena_release(&push.arena);
    return err;
}
