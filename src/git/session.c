/* SPDX-License-Identifier: MIT */
/*
 * The start commit of a session, and the commits that are kept of it.
 *
 * refs/sluice/RUN/groups/GROUP/passed is the commit left by the last stage that
 * succeeded (done, or changes requested); `kept` is the same commit, or a later
 * commit of an interrupted session: by a checkpoint, by a limit of its
 * provider, or by a question. An implement stage starts at `kept`, or at the
 * agent branch if `kept` does not exist: so the work of a crashed or failed
 * session, committed or not, is discarded, and the commits of an interrupted
 * session are not. Any other stage starts at `passed`: it sees the
 * implementation.
 *
 * Changes that an agent leaves uncommitted are committed here: its conversation
 * continues, and assumes that the files exist.
 */
#include "git/session.h"

#include "base/crash.h"
#include "base/mem.h"
#include "exec/verdict.h"
#include "git/confine.h"
#include "git/fence.h"
#include "git/found.h"
#include "git/hub.h"
#include "git/lfs.h"
#include "git/log.h"
#include "git/person.h"
#include "git/result.h"
#include "git/submodule.h"
#include "git/worktree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { TRIED_BYTES_MAX = 8 << 10 };

enum refs { KEPT, PASSED, BY, BRANCH, REFS_COUNT };

struct session {
    const struct session_options *options;
    struct agent agent;
    struct git_ref refs[REFS_COUNT];
    struct git_id start;
    struct git_id mark; /* blob: this stage, in this round */
    int lock;
    char *path;         /* of its checkout */
    size_t uncommitted; /* files that the session left so */
    bool seen;          /* the state in which it left the checkout is known: */
    struct git_id left_tip;
    struct git_id left_tree; /* "": as in the tip */
};

/* Find the start commit of this session. */
static enum err find_start(struct session *session, struct diag *diag)
{
    const struct names *names = &session->agent.names;
    session->refs[KEPT].name = names->kept;
    session->refs[PASSED].name = names->passed;
    session->refs[BY].name = names->by;
    session->refs[BRANCH].name = names->branch;
    enum err err =
        git_read_refs(session->agent.git, session->refs, REFS_COUNT, diag);
    const struct git_id *at = &session->agent.tip;
    if (session->options->writes && git_is_set(&session->refs[KEPT].id)) {
        at = &session->refs[KEPT].id;
    } else if (!session->options->writes &&
               git_is_set(&session->refs[PASSED].id)) {
        at = &session->refs[PASSED].id;
    }
    session->start = *at;
    return err;
}

/* Return the options of a private repository for the session. */
static struct private_options repo_of(const struct session *session,
                                      const struct git_id *start)
{
    return (struct private_options){
        .branch = session->agent.names.branch,
        .agent = session->agent.names.agent,
        .start = *start,
        .push = session->options->agent.checkout.remote_keep,
    };
}

static struct setup setup_of(const struct session *session)
{
    return (struct setup){
        .git = session->agent.git,
        .path = session->path,
        .options = &session->options->agent.checkout,
    };
}

/* Return the fence of the group, as this session uses it. */
static struct fence fence_of(const struct session *session, bool take)
{
    return (struct fence){
        .ref = session->agent.names.group_fence,
        .task = session->options->members[0].task,
        .token = session->options->agent.token,
        .alone = session->options->writes,
        .take = take,
    };
}

/* Take the fence, and set the branch to the start commit. */
static enum err take_branch(struct session *session, struct diag *diag)
{
    struct agent *agent = &session->agent;
    struct fence fence = fence_of(session, true);
    const struct git_ref *branch = &session->refs[BRANCH];
    struct strbuf line = {0};
    enum err err = worktree_check_elsewhere(agent->git, branch->name, diag);
    if (strcmp(branch->id.text, session->start.text) != 0) {
        strbuf_addf(&line, "update %s %s\n", branch->name, session->start.text);
    }
    if (err == ERR_OK) {
        err = fence_change(agent->git,
                           &fence,
                           1,
                           strbuf_text(&line),
                           true,
                           "sluice: start",
                           diag);
    }
    crash_point("session-began");
    strbuf_release(&line);
    return err;
}

/* Set the path of the checkout; lanes after the first are "PATH@2", ... */
static enum err
set_path(struct session *session, unsigned lane, struct diag *diag)
{
    struct strbuf path = {0};
    strbuf_adds(&path, session->options->worktree);
    if (lane > 1) {
        strbuf_addf(&path, "@%u", lane); /* no group's component has an @ */
    }
    mem_free(session->path);
    session->path = path.text;
    return setenv("SLUICE_WORKTREE", session->path, 1) == 0 &&
                   setenv("PWD", session->path, 1) == 0
               ? ERR_OK
               : diag_set(diag, ERR_UNAVAILABLE, "setenv: %s", strerror(errno));
}

/* Enter the group's checkout. An implement stage waits for it. Another stage
 * takes the next one if this one is in use: a gate has a checkout to itself. */
static enum err enter_checkout(struct session *session, struct diag *diag)
{
    const struct session_options *options = session->options;
    const unsigned lanes = options->writes ? 1 : NAMES_LANES_MAX;
    enum err err = ERR_BUSY;
    for (unsigned lane = 1; err == ERR_BUSY && lane <= lanes; lane++) {
        err = set_path(session, lane, diag);
        struct worktree worktree = {
            .path = session->path,
            .repo = repo_of(session, &session->start),
            .alone = options->writes || options->pristine,
            .now = lane < lanes,
            .pristine = options->pristine,
            .checkout = &options->agent.checkout,
        };
        if (err == ERR_OK) {
            err = worktree_enter(session->agent.git,
                                 &worktree,
                                 &session->lock,
                                 diag);
        }
    }
    return err;
}

static enum err enter(struct session *session, struct diag *diag)
{
    const struct session_options *options = session->options;
    enum err err = agent_open(&session->agent, &options->agent, diag);
    if (err == ERR_OK) {
        struct person person = {
            .names = &session->agent.names,
            .path = options->worktree,
            .fence = fence_of(session, true),
            .passed = !options->writes,
        };
        err = person_take(&session->agent, &person, diag);
    }
    if (err == ERR_OK) {
        err = find_start(session, diag);
    }
    if (err == ERR_OK) {
        err = enter_checkout(session, diag);
    }
    if (err == ERR_OK) {
        person_enter(session->path);
        err = take_branch(session, diag);
    }
    if (err == ERR_OK) {
        err = range_put(&session->agent,
                        options->dir,
                        options->members,
                        options->member_count,
                        &session->start,
                        diag);
    }
    return err;
}

/* Run a program of the plan in the worktree. */
static enum err run(const struct session *session,
                    const char *const *argv,
                    bool is_session,
                    struct proc_end *end,
                    struct diag *diag)
{
    struct proc proc = {
        .argv = argv,
        .env = (const char *const *)environ,
        .folder = session->path,
        .is_session = is_session,
    };
    git_distrust(session->agent.git);
    confine(&session->agent, &proc);
    return proc_run(&proc, end, diag);
}

/* Return the outcome that the session reports; an invalid result is failed. */
static enum sched_outcome find_outcome(const struct session *session, int code)
{
    struct attempt_result result = {0};
    enum err err = attempt_read_result(session->options->dir, &result, NULL);
    enum sched_outcome outcome = verdict_of_code(code, &result);
    attempt_result_release(&result);
    return err != ERR_OK && code == OUTCOME_EXIT_DONE ? OUTCOME_FAILED
                                                      : outcome;
}

static bool is_passed(enum sched_outcome outcome)
{
    return outcome == OUTCOME_DONE || outcome == OUTCOME_CHANGES;
}

static enum err put_mark(struct session *session, struct diag *diag)
{
    struct strbuf text = {0};
    strbuf_addf(&text,
                "%s, round %u\n",
                session->options->members[0].task,
                session->options->round);
    enum err err = git_put_blob(session->agent.git,
                                strbuf_text(&text),
                                &session->mark,
                                diag);
    strbuf_release(&text);
    return err;
}

/*
 * Check whether the branch has a commit that is new in this stage: a commit
 * that neither the agent branch, the base, nor any other branch created by
 * sluice, for this run or an earlier run, contains. What was only saved (see
 * person.h) does not count. A commit that an attempt of this same round has
 * passed, just before it was killed, counts as new.
 */
static enum err has_evidence(struct session *session,
                             const struct git_id *tip,
                             bool *out,
                             struct diag *diag)
{
    struct agent *agent = &session->agent;
    struct git_id base = {0};
    bool own = strcmp(session->mark.text, session->refs[BY].id.text) == 0;
    enum err err = agent_find_base(agent, &base, diag);
    if (err == ERR_NOT_FOUND) { /* it existed when the run began */
        base = agent->tip;
        err = ERR_OK;
    }
    struct strbuf branch = {0};
    struct strbuf kept = {0};
    struct strbuf passed = {0};
    struct strbuf found = {0};
    strbuf_addf(&branch, "--exclude=%s", agent->names.branch);
    strbuf_addf(&kept, "--exclude=%s", agent->names.kept);
    strbuf_addf(&passed,
                "--exclude=%s",
                own ? agent->names.passed : agent->names.kept);
    struct git_call call = {
        .args = PROC_ARGS("rev-list",
                          "--max-count=1",
                          tip->text,
                          "--not",
                          agent->tip.text,
                          base.text,
                          strbuf_text(&branch),
                          "--glob=refs/heads/sluice",
                          strbuf_text(&kept),
                          strbuf_text(&passed),
                          "--exclude=refs/sluice/*/left/*",
                          "--glob=refs/sluice"),
        .output = &found,
    };
    if (err == ERR_OK) {
        err = git_call(agent->git, &call, NULL, diag);
    }
    *out = found.len > 0;
    strbuf_release(&branch);
    strbuf_release(&kept);
    strbuf_release(&passed);
    strbuf_release(&found);
    return err;
}

/* Commit what an agent has left uncommitted, on top of the tip. */
static enum err commit_leftovers(struct session *session,
                                 struct found *found,
                                 struct diag *diag)
{
    struct setup setup = setup_of(session);
    struct git_id commit = {0};
    enum err err = found_snapshot(&setup,
                                  &found->tip,
                                  session->options->commit,
                                  &session->left_tree,
                                  &commit,
                                  diag);
    session->seen = err == ERR_OK;
    if (err == ERR_OK && git_is_set(&commit)) {
        log_line("committed the session's uncommitted changes");
        found->tip = commit;
    }
    return err;
}

/* Report uncommitted changes of the session, which will be discarded; return
 * the number of files. */
static size_t tell_leftovers(struct session *session)
{
    struct setup setup = setup_of(session);
    struct strbuf list = {0};
    size_t count = found_count_changes(&setup, &list);
    if (count > 0) {
        log_line("uncommitted and discarded:\n%s", strbuf_text(&list));
    }
    strbuf_release(&list);
    return count;
}

/* Bring the commits of the session to the user's repository, and check them. */
static enum err import_tip(struct session *session,
                           const struct found *found,
                           struct diag *diag)
{
    struct setup setup = setup_of(session);
    struct strbuf git_dir = {0};
    strbuf_addf(&git_dir, "%s/.git", session->path);
    enum err err =
        private_import(session->agent.git,
                       session->path,
                       &found->tip,
                       PROC_ARGS(session->start.text, session->agent.tip.text),
                       diag);
    if (err == ERR_OK) {
        err = setup_check(&setup, &session->start, &found->tip, diag);
    }
    if (err == ERR_OK) {
        err = lfs_carry(&setup, strbuf_text(&git_dir), diag);
    }
    if (err == ERR_OK) {
        submodule_tell(&setup);
    }
    strbuf_release(&git_dir);
    return err;
}

/* Append what was found instead of a new commit on the branch. */
static void add_found(struct strbuf *out,
                      const struct session *session,
                      const struct found *found)
{
    const char *name = strbuf_text(&found->head_name);
    if (git_is_set(&found->head) &&
        strcmp(found->head.text, found->tip.text) != 0 &&
        strcmp(name, session->agent.names.branch) != 0) {
        bool branch = strncmp(name, "refs/heads/", strlen("refs/heads/")) == 0;
        strbuf_addf(out,
                    "; HEAD was %s%s, which does not continue it",
                    branch ? "on " : "detached at ",
                    branch ? git_short_name(name) : found->head.text);
    }
    if (session->uncommitted > 0) {
        strbuf_addf(out,
                    "; %zu %s not committed",
                    session->uncommitted,
                    session->uncommitted == 1 ? "file was" : "files were");
    }
}

/* Find the commit to keep, and bring it into the user's repository. */
static enum err
find_tip(struct session *session, struct found *found, struct diag *diag)
{
    const struct session_options *options = session->options;
    struct setup setup = setup_of(session);
    enum err err = found_read(found,
                              &setup,
                              session->agent.names.branch,
                              &session->start,
                              diag);
    if (err == ERR_OK && !git_is_set(&found->tip)) {
        struct strbuf text = {0};
        add_found(&text, session, found);
        err = diag_set(diag,
                       ERR_CONFLICT,
                       "its branch %s is gone%s",
                       git_short_name(session->agent.names.branch),
                       strbuf_text(&text));
        strbuf_release(&text);
    }
    session->left_tip = found->tip;
    if (err == ERR_OK && options->writes && options->commit != NULL) {
        err = commit_leftovers(session, found, diag);
    } else if (err == ERR_OK && options->writes) {
        session->uncommitted = tell_leftovers(session);
        session->seen = session->uncommitted == 0;
    }
    if (err == ERR_OK && strcmp(found->tip.text, session->start.text) != 0) {
        err = import_tip(session, found, diag);
    }
    return err;
}

/* Append the line that sets one ref. */
static void add_set(struct strbuf *out, const char *ref, const char *id)
{
    strbuf_addf(out, "update %s %s\n", ref, id);
}

/* Append the line that adds to the list of what sessions of the group did to
 * their own repositories, which nobody else sees. */
static enum err
add_tried(struct strbuf *lines, struct session *session, struct diag *diag)
{
    struct setup setup = setup_of(session);
    struct git_ref ref = {.name = session->agent.names.tried};
    struct strbuf text = {0};
    struct strbuf list = {0};
    struct git_id blob;
    found_tell(&setup, session->agent.names.branch, &list);
    if (list.len == 0) {
        strbuf_release(&list);
        return ERR_OK;
    }
    enum err err = git_read_refs(session->agent.git, &ref, 1, diag);
    if (err == ERR_OK) {
        err = git_read_blob(session->agent.git, &ref.id, &text, diag);
    }
    size_t cursor = 0;
    const char *line;
    while (err == ERR_OK && text.len < TRIED_BYTES_MAX &&
           (line = git_next_line(&list, &cursor)) != NULL) {
        strbuf_addf(&text, "%s: %s\n", session->options->members[0].task, line);
    }
    if (err == ERR_OK) {
        err = git_put_blob(session->agent.git, strbuf_text(&text), &blob, diag);
    }
    if (err == ERR_OK) {
        add_set(lines, ref.name, blob.text);
    }
    strbuf_release(&text);
    strbuf_release(&list);
    return err;
}

/* Keep the commits. */
static enum err keep(struct session *session,
                     const struct git_id *tip,
                     bool passed,
                     struct diag *diag)
{
    const struct names *names = &session->agent.names;
    struct strbuf lines = {0};
    struct git_id began = {0};
    enum err err = ERR_OK;
    add_set(&lines, names->branch, tip->text);
    add_set(&lines, names->kept, tip->text);
    if (passed) {
        add_set(&lines, names->passed, tip->text);
        add_set(&lines, names->by, session->mark.text);
    }
    if (session->options->writes) {
        err = range_find(&session->agent, tip, &began, diag);
    }
    if (git_is_set(&began)) {
        add_set(&lines, names->start, began.text);
    }
    if (err == ERR_OK) {
        err = add_tried(&lines, session, diag);
    }
    struct fence fence = fence_of(session, false);
    crash_point("session-before-keep");
    if (err == ERR_OK) {
        err = fence_change(session->agent.git,
                           &fence,
                           1,
                           strbuf_text(&lines),
                           true,
                           "sluice: keep",
                           diag);
    }
    crash_point("session-kept");
    strbuf_release(&lines);
    return err;
}

/* ERR_CONFLICT: an implement stage succeeded without a new commit. */
static enum err check_evidence(struct session *session,
                               const struct found *found,
                               struct diag *diag)
{
    bool evidence = true;
    enum err err = has_evidence(session, &found->tip, &evidence, diag);
    if (err == ERR_OK && !evidence) {
        struct strbuf text = {0};
        add_found(&text, session, found);
        err = diag_set(diag,
                       ERR_CONFLICT,
                       "it succeeded, but its branch %s has no new commit%s "
                       "(allow_empty: true permits this)",
                       git_short_name(session->agent.names.branch),
                       strbuf_text(&text));
        strbuf_release(&text);
    }
    return err;
}

/* Check and keep the commits of a session. */
static enum err keep_found(struct session *session,
                           enum sched_outcome outcome,
                           struct diag *diag)
{
    const struct session_options *options = session->options;
    struct found found = {0};
    enum err err = find_tip(session, &found, diag);
    if (err == ERR_OK) {
        err = put_mark(session, diag);
    }
    if (err == ERR_OK && options->writes && !options->allow_empty &&
        outcome == OUTCOME_DONE) {
        err = check_evidence(session, &found, diag);
    }
    bool moved = strcmp(found.tip.text, session->start.text) != 0;
    if (err == ERR_OK && (moved || is_passed(outcome))) {
        err = keep(session, &found.tip, is_passed(outcome), diag);
    }
    if (err == ERR_OK && moved && outcome == OUTCOME_CHECKPOINT) {
        result_say_progress();
    }
    found_release(&found);
    return err;
}

/* Conclude a session whose work is kept. */
static int
conclude(struct session *session, enum sched_outcome outcome, int code)
{
    struct diag diag = {0};
    git_set_patience(session->agent.git, HUB_PATIENCE_NS);
    enum err err = keep_found(session, outcome, &diag);
    if (err == ERR_OK) {
        return code;
    }
    if (!is_passed(outcome) && outcome != OUTCOME_CHECKPOINT) {
        log_line("cannot keep its commits: %s", diag.text);
        return code; /* its own report holds nevertheless */
    }
    code = err == ERR_CONFLICT ? OUTCOME_EXIT_FAILED : result_code(err);
    result_say(code, diag.text);
    if (err == ERR_CONFLICT && session->options->commit == NULL) {
        result_say_feedback(diag.text); /* agents are told the reason */
    }
    return code;
}

/* Run the prepare command, unless it was run in this checkout before. */
static enum err
run_prepare(struct session *session, struct proc_end *end, struct diag *diag)
{
    const char *command = session->options->prepare;
    struct setup setup = setup_of(session);
    struct setup_prepare prepare;
    bool must;
    enum err err = setup_begin_prepare(&prepare, &setup, command, &must, diag);
    if (err == ERR_OK && must) {
        err =
            run(session, PROC_ARGS("/bin/sh", "-c", command), false, end, diag);
    }
    bool good = err == ERR_OK && must && end->code == 0 && end->signal == 0 &&
                !proc_is_ending();
    enum err end_err = setup_end_prepare(&prepare, good, diag);
    return err != ERR_OK ? err : end_err;
}

static int run_prepared(struct session *session)
{
    const struct session_options *options = session->options;
    struct proc_end end = {0};
    struct diag diag = {0};
    enum err err = ERR_OK;
    if (options->prepare != NULL) {
        err = run_prepare(session, &end, &diag);
        if (err == ERR_OK &&
            (end.code != 0 || end.signal != 0 || proc_is_ending())) {
            int code = end.code == OUTCOME_EXIT_REFUSED ? OUTCOME_EXIT_REFUSED
                                                        : OUTCOME_EXIT_FAILED;
            result_say(code, "its prepare command failed");
            return code;
        }
    }
    if (err == ERR_OK) {
        crash_point("session-before-run");
        err = run(session, options->argv, true, &end, &diag);
    }
    if (err != ERR_OK) {
        result_say(result_code(err), diag.text);
        return result_code(err);
    }
    crash_point("session-ended");
    if (end.signal != 0) {
        return -end.signal;
    }
    enum sched_outcome outcome = find_outcome(session, end.code);
    if (proc_is_ending() && outcome != OUTCOME_CHECKPOINT) {
        /* It was stopped by its timeout or a request, whatever it reports. */
        return end.code != OUTCOME_EXIT_DONE ? end.code : OUTCOME_EXIT_FAILED;
    }
    if (outcome == OUTCOME_FAILED || outcome == OUTCOME_FATAL) {
        return end.code; /* its work is not kept */
    }
    return conclude(session, outcome, end.code);
}

/* Note the state in which the session leaves its checkout. */
static void leave(struct session *session)
{
    struct setup setup = setup_of(session);
    struct strbuf list = {0};
    if (session->seen && git_is_set(&session->left_tree) &&
        found_count_changes(&setup, &list) == 0) {
        session->left_tree = (struct git_id){0}; /* git does not see them */
    }
    strbuf_release(&list);
    if (session->seen) {
        person_note(session->path, &session->left_tip, &session->left_tree);
    } else {
        person_leave(&setup, session->agent.names.branch, &session->start);
    }
}

int session_run(const struct session_options *options)
{
    struct session session = {.options = options, .lock = -1};
    struct diag diag = {0};
    enum err err = enter(&session, &diag);
    int code;
    if (err == ERR_OK) {
        code = run_prepared(&session);
    } else {
        code = result_code(err);
        result_refuse(code, diag.text);
    }
    if (err == ERR_OK && flock(session.lock, LOCK_EX | LOCK_NB) == 0) {
        leave(&session); /* the last one leaves */
    }
    worktree_leave(&session.lock);
    mem_free(session.path);
    agent_close(&session.agent);
    return code;
}
