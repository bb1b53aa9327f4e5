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
#include "exec/verdict.h"
#include "git/log.h"
#include "git/result.h"
#include "git/worktree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum refs { KEPT, PASSED, BY, BRANCH, REFS_COUNT };

struct session {
    const struct session_options *options;
    struct agent agent;
    struct git_ref refs[REFS_COUNT];
    struct git_id start;
    struct git_id mark; /* blob: this stage, in this round */
    int lock;
};

static bool is_set(const struct git_id *id)
{
    return id->text[0] != '\0';
}

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
    if (session->options->writes && is_set(&session->refs[KEPT].id)) {
        at = &session->refs[KEPT].id;
    } else if (!session->options->writes && is_set(&session->refs[PASSED].id)) {
        at = &session->refs[PASSED].id;
    }
    session->start = *at;
    return err;
}

static enum err enter(struct session *session, struct diag *diag)
{
    const struct session_options *options = session->options;
    enum err err = agent_open(&session->agent, &options->agent, diag);
    if (err == ERR_OK) {
        err = find_start(session, diag);
    }
    struct worktree worktree = {
        .path = options->worktree,
        .branch = session->agent.names.branch,
        .start = session->start,
        .alone = options->writes,
    };
    if (err == ERR_OK) {
        err =
            worktree_enter(session->agent.git, &worktree, &session->lock, diag);
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
        .folder = session->options->worktree,
        .is_session = is_session,
    };
    git_distrust(session->agent.git);
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
 * sluice, for this run or an earlier run, contains. A commit that an attempt of
 * this same round has passed, just before it was killed, counts as new.
 */
static enum err has_evidence(struct session *session,
                             const struct git_id *tip,
                             bool *out,
                             struct diag *diag)
{
    struct agent *agent = &session->agent;
    struct git_id base = {0};
    bool own = strcmp(session->mark.text, session->refs[BY].id.text) == 0;
    enum err err = git_resolve(agent->git, agent->options->base, &base, diag);
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

/* Return whether the branch of the group is still checked out. */
static bool is_on_branch(struct session *session)
{
    return git_says(session->agent.git,
                    session->options->worktree,
                    PROC_ARGS("symbolic-ref", "--quiet", "HEAD"),
                    session->agent.names.branch);
}

/* Commit the changes that an agent has left uncommitted. */
static enum err commit_leftovers(struct session *session, struct diag *diag)
{
    struct git_call call = {
        .args = PROC_ARGS("add", "--all", "--", "."),
        .folder = session->options->worktree,
    };
    int code = 0;
    if (!is_on_branch(session)) {
        return ERR_OK; /* another checkout: reported below */
    }
    worktree_unlock(session->agent.git, session->options->worktree);
    enum err err = git_call(session->agent.git, &call, &code, diag);
    if (err == ERR_OK) {
        call.args = PROC_ARGS("diff", "--cached", "--quiet");
        call.codes = 1;
        err = git_call(session->agent.git, &call, &code, diag);
    }
    if (err == ERR_OK && code == 1) {
        log_line("committing the session's uncommitted changes");
        call.args = PROC_ARGS("commit",
                              "--quiet",
                              "--no-verify",
                              "--no-gpg-sign",
                              "--message",
                              session->options->commit);
        call.codes = 0;
        err = git_call(session->agent.git, &call, &code, diag);
    }
    return err;
}

/* Report uncommitted changes of the session: they will be discarded. */
static void tell_leftovers(struct session *session)
{
    /* Do not query submodules: they have a configuration of their own. */
    struct strbuf list = {0};
    struct git_call call = {
        .args = PROC_ARGS("status", "--porcelain", "--ignore-submodules=dirty"),
        .folder = session->options->worktree,
        .output = &list,
        .quiet = true,
    };
    if (git_call(session->agent.git, &call, NULL, NULL) == ERR_OK &&
        list.len > 0) {
        log_line("uncommitted and discarded:\n%s", strbuf_text(&list));
    }
    strbuf_release(&list);
}

/* Keep the commits. */
static enum err keep(struct session *session,
                     const struct git_id *tip,
                     bool passed,
                     struct diag *diag)
{
    const struct names *names = &session->agent.names;
    struct git_ref_change changes[4] = {{.ref = names->kept, .to = tip->text}};
    size_t count = 1;
    struct git_id began = {0};
    enum err err = ERR_OK;
    if (passed) {
        changes[count++] =
            (struct git_ref_change){.ref = names->passed, .to = tip->text};
        changes[count++] =
            (struct git_ref_change){.ref = names->by, .to = session->mark.text};
    }
    if (session->options->writes) {
        err = range_find(&session->agent, tip, &began, diag);
    }
    if (is_set(&began)) {
        changes[count++] =
            (struct git_ref_change){.ref = names->start, .to = began.text};
    }
    crash_point("session-before-keep");
    if (err == ERR_OK) {
        err = git_change_refs(session->agent.git,
                              changes,
                              count,
                              "sluice: keep",
                              diag);
    }
    crash_point("session-kept");
    return err;
}

/* Check the commits of a session whose work is kept. */
static int
conclude(struct session *session, enum sched_outcome outcome, int code)
{
    const struct session_options *options = session->options;
    struct git_ref *branch = &session->refs[BRANCH];
    struct diag diag = {0};
    enum err err = ERR_OK;
    if (options->commit != NULL && options->writes) {
        err = commit_leftovers(session, &diag);
    }
    if (err == ERR_OK) {
        err = git_read_refs(session->agent.git, branch, 1, &diag);
    }
    if (err == ERR_OK && !is_set(&branch->id)) {
        err = diag_set(&diag, ERR_CONFLICT, "its branch is gone");
    }
    if (err == ERR_OK) {
        err = put_mark(session, &diag);
    }
    bool evidence = true;
    if (err == ERR_OK && options->writes && !options->allow_empty &&
        outcome == OUTCOME_DONE) {
        err = has_evidence(session, &branch->id, &evidence, &diag);
    }
    if (err == ERR_OK && !evidence) {
        err = diag_set(&diag,
                       ERR_CONFLICT,
                       "it succeeded, but its branch %s has no new commit "
                       "(allow_empty: true permits this)",
                       git_short_name(branch->name));
    }
    if (err == ERR_OK && options->writes) {
        tell_leftovers(session);
    }
    bool moved = strcmp(branch->id.text, session->start.text) != 0;
    if (err == ERR_OK && (moved || is_passed(outcome))) {
        err = keep(session, &branch->id, is_passed(outcome), &diag);
    }
    if (err == ERR_OK && moved && outcome == OUTCOME_CHECKPOINT) {
        result_say_progress();
    }
    if (err == ERR_OK) {
        return code;
    }
    if (!is_passed(outcome) && outcome != OUTCOME_CHECKPOINT) {
        log_line("cannot keep its commits: %s", diag.text);
        return code; /* its own report holds nevertheless */
    }
    code = err == ERR_CONFLICT ? OUTCOME_EXIT_FAILED : result_code(err);
    result_say(code, diag.text);
    return code;
}

static int run_prepared(struct session *session)
{
    const struct session_options *options = session->options;
    struct proc_end end = {0};
    struct diag diag = {0};
    enum err err = ERR_OK;
    if (options->prepare != NULL) {
        err = run(session,
                  PROC_ARGS("/bin/sh", "-c", options->prepare),
                  false,
                  &end,
                  &diag);
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
    if (outcome == OUTCOME_FAILED) {
        return end.code; /* its work is not kept */
    }
    return conclude(session, outcome, end.code);
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
    worktree_leave(&session.lock);
    agent_close(&session.agent);
    return code;
}
