/* SPDX-License-Identifier: MIT */
/*
 * Execution of one attempt.
 *
 *  1. Claim its directory: see shim_dir.c. From then on this process is the
 *     only shim of the attempt.
 *  2. Run the prepare command, if any, then the session.
 *  3. Wait for signals in one loop, with a timeout. All signals are blocked, so
 *     none is lost, and no handler is set.
 *  4. Stop the whole tree below this process: SIGTERM, a grace period, then
 *     SIGKILL until waitpid() finds no child. Processes that the prepare
 *     command left running live as long as the session.
 *  5. Write the record.
 *
 * The first cause is recorded. Times are of CLOCK_MONOTONIC: suspended time
 * does not count.
 *
 * Orders carry a value, which names the request (see shim_wire.h). A SIGTERM or
 * SIGINT stops the session if its sender is certainly not a process of ours, as
 * at a shutdown of the machine; otherwise it is ignored.
 */
#include "base/crash.h"
#include "base/duration.h"
#include "exec/checkpoint.h"
#include "exec/lease.h"
#include "exec/shim_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Grace period of leftovers when the session exited by itself. */
#define LEFTOVER_GRACE_NS (2 * SECOND_NS)
/* Processes that survive this many rounds of SIGKILL are beyond our control.
 * The rounds take 0.9 s; longer if this process must wait for a CPU, as the
 * killed processes then must. */
#define KILL_ROUNDS 22
#define KILL_PAUSE_NS_MIN (2 * MS_NS)
#define KILL_PAUSE_NS_MAX (50 * MS_NS)
/* How often to look whether the lease still holds: it may end while the machine
 * is suspended, which the clock of the loop does not count. */
#define LEASE_PAUSE_NS (5 * SECOND_NS)
/* Retry writing the exit record for five seconds. */
#define RECORD_TRIES 20
#define RECORD_PAUSE_NS (250 * MS_NS)

enum phase {
    PHASE_PREPARE, /* the leader is the prepare command */
    PHASE_SESSION, /* the leader is the session */
    PHASE_TERM,    /* SIGTERM was sent */
    PHASE_KILL,    /* SIGKILL is being sent */
    PHASE_OVER,    /* no process is left, or none that can be killed */
};

/* Times are of CLOCK_MONOTONIC, in nanoseconds. */
struct shim {
    struct shim_job job;
    struct shim_cgroup *group;
    int dir_fd;
    int lock_fd;
    bool reused; /* the directory */
    struct shim_log log;
    enum phase phase;
    pid_t leader; /* 0: it has exited */
    bool alone;   /* no children exist */
    bool clean;   /* the session has exited and left no process */
    struct attempt_exit exit;
    int64_t timeout_at;
    int64_t checkpoint_at;
    int64_t lease_at; /* when to look at the lease */
    struct idle idle;
    int64_t step_at; /* when the next round of stopping is due */
    int kill_rounds; /* in PHASE_KILL */
    int64_t kill_pause_ns;
};

int64_t shim_clock(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0) {
        return 0;
    }
    return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

int64_t shim_sum(int64_t a_ns, int64_t b_ns)
{
    return a_ns > SHIM_NEVER - b_ns ? SHIM_NEVER : a_ns + b_ns;
}

static int64_t least(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

static bool is_running(const struct shim *shim)
{
    return shim->phase == PHASE_PREPARE || shim->phase == PHASE_SESSION;
}

/* Signal all processes below us: the leader's group at once, then processes
 * that have left it. SIGCONT lets a stopped process see its SIGTERM. */
static void signal_tree(const struct shim *shim, int signal)
{
    if (shim->leader != 0) {
        (void)kill(-shim->leader, signal);
    }
    (void)shim_tree_signal(signal, shim->leader);
}

/* Ask all processes below us to exit. */
static void begin_end(struct shim *shim, int64_t now, int64_t grace_ns)
{
    crash_point("shim-before-term");
    signal_tree(shim, SIGTERM);
    signal_tree(shim, SIGCONT);
    crash_point("shim-after-term");
    shim->phase = PHASE_TERM;
    shim->step_at = shim_sum(now, grace_ns);
}

/* Stop the session for this cause, unless it is stopping already. */
static void end_for(struct shim *shim, enum attempt_cause cause, int64_t now)
{
    if (is_running(shim)) {
        shim->exit.cause = cause;
        begin_end(shim, now, shim->job.head.grace_ns);
    }
}

/*
 * One round of killing. The first is plain. Processes that survive it fork
 * faster than we walk: have the kernel kill the whole group or, without a
 * group, stop them first so that they cannot fork.
 */
static void kill_round(struct shim *shim, int64_t now)
{
    if (shim->phase != PHASE_KILL) {
        crash_point("shim-before-kill");
        shim->phase = PHASE_KILL;
        shim->kill_rounds = 0;
        shim->kill_pause_ns = KILL_PAUSE_NS_MIN;
    } else {
        shim_cgroup_kill(shim->group);
        signal_tree(shim, SIGSTOP);
        signal_tree(shim, SIGSTOP);
    }
    signal_tree(shim, SIGKILL);
    crash_point("shim-after-kill");
    shim->step_at = shim_sum(now, shim->kill_pause_ns);
    shim->kill_pause_ns = least(shim->kill_pause_ns * 2, KILL_PAUSE_NS_MAX);
    if (++shim->kill_rounds == KILL_ROUNDS) {
        shim->phase = PHASE_OVER;
    }
}

/* Reap all exited children. */
static void reap(struct shim *shim)
{
    for (;;) {
        int status;
        struct rusage usage;
        pid_t pid = wait4(-1, &status, WNOHANG, &usage);
        if (pid <= 0) {
            shim->alone = pid < 0 && errno == ECHILD;
            return;
        }
        shim->exit.cpu_ns +=
            (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * SECOND_NS +
            (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000;
        if (pid == shim->leader) {
            shim->leader = 0;
            bool by_signal = WIFSIGNALED(status);
            shim->exit.code = by_signal ? -1 : WEXITSTATUS(status);
            shim->exit.signal = by_signal ? WTERMSIG(status) : 0;
        }
    }
}

/* Start a command as the new leader; on failure, set cause and error. */
static void start(struct shim *shim, char **argv, enum phase phase)
{
    struct shim_spawn spawn = {
        .argv = argv,
        .envp = shim->job.envp,
        .folder = shim->job.folder,
        .log_fd = shim->log.fd,
    };
    crash_point("shim-before-spawn");
    shim->phase = phase;
    shim->leader = shim_spawn(&spawn);
    shim->alone = false;
    crash_point("shim-after-spawn");
    if (shim->leader == 0) {
        reap(shim); /* did the prepare command leave processes? */
        shim->exit.cause = ATTEMPT_SPAWN;
        shim->exit.error = spawn.error;
        shim_log_say(&shim->log,
                     spawn.bad_folder ? "cannot enter" : "cannot run",
                     spawn.bad_folder ? spawn.folder : argv[0],
                     strerror(spawn.error));
    }
}

static void start_session(struct shim *shim, int64_t now)
{
    start(shim, shim->job.argv, PHASE_SESSION);
    shim->checkpoint_at = shim_sum(now, shim->job.head.checkpoint_ns);
}

static void start_prepare(struct shim *shim)
{
    char shell[] = "/bin/sh";
    char option[] = "-c";
    char *argv[] = {shell, option, shim->job.prepare, NULL};
    start(shim, argv, PHASE_PREPARE);
}

/* The leader has exited by itself, or could not be started. */
static void leader_ended(struct shim *shim, int64_t now)
{
    struct attempt_exit *exit = &shim->exit;
    if (shim->phase == PHASE_PREPARE && exit->cause == ATTEMPT_EXIT) {
        if (exit->code == 0) {
            exit->code = -1;
            crash_point("shim-prepared");
            start_session(shim, now);
            if (shim->leader != 0) {
                return;
            }
        } else {
            exit->cause = ATTEMPT_PREPARE;
        }
    }
    begin_end(shim, now, least(shim->job.head.grace_ns, LEFTOVER_GRACE_NS));
}

/* Act on reaped processes. */
static void after_reaping(struct shim *shim, int64_t now)
{
    if (is_running(shim) && shim->leader == 0) {
        if (shim->phase == PHASE_SESSION && shim->alone) {
            shim->phase = PHASE_OVER; /* no process was left running */
            shim->clean = true;
            return;
        }
        leader_ended(shim, now);
    }
    if (!is_running(shim) && shim->alone) {
        shim->phase = PHASE_OVER;
    }
}

/* Ask the session to commit and exit soon. */
static void checkpoint(struct shim *shim)
{
    shim->checkpoint_at = SHIM_NEVER;
    int fd = openat(shim->dir_fd,
                    "checkpoint",
                    O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                    0600);
    if (fd >= 0) {
        (void)close(fd);
    }
    crash_point("shim-checkpoint");
    if (shim->leader != 0) {
        (void)checkpoint_ask(shim->leader);
    }
}

/* Sample the session, and stop it if it is idle. */
static void end_if_idle(struct shim *shim, int64_t now)
{
    struct idle_sample sample = {.at_ns = now};
    shim_log_look(&shim->log, now);
    sample.log_bytes = shim_log_written(&shim->log);
    if (!shim->idle.ignores_cpu) {
        sample.cpu_ns = shim_tree_cpu_ns(&sample.runnable);
        sample.cpu_ns += (uint64_t)shim->exit.cpu_ns;
    }
    struct stat stat;
    if (fstatat(shim->dir_fd, "progress", &stat, AT_SYMLINK_NOFOLLOW) == 0) {
        sample.progress_bytes = stat.st_size;
        sample.progress_ns =
            (int64_t)stat.st_mtim.tv_sec * SECOND_NS + stat.st_mtim.tv_nsec;
    }
    if (idle_add(&shim->idle, &sample)) {
        end_for(shim, ATTEMPT_IDLE, now);
    }
}

/* Return how long the lease still holds: not, if it cannot be read. */
static int64_t lease_left_ns(const struct shim *shim, int64_t *grace_out_ns)
{
    struct lease lease = {0};
    bool known = lease_read(shim->job.lease, &lease);
    *grace_out_ns = known ? lease.grace_ns : 0;
    return known ? lease.until_ns - shim_clock(CLOCK_BOOTTIME) : 0;
}

/* Stop the session if its lease has ended, soon if it is stopping already; else
 * look again in time. */
static void end_without_lease(struct shim *shim, int64_t now)
{
    int64_t grace_ns;
    int64_t left_ns = lease_left_ns(shim, &grace_ns);
    if (left_ns > 0) {
        shim->lease_at = shim_sum(now, least(left_ns, LEASE_PAUSE_NS));
        return;
    }
    shim->lease_at = SHIM_NEVER;
    shim->job.head.grace_ns = least(shim->job.head.grace_ns, grace_ns);
    if (shim->phase == PHASE_TERM) {
        shim->step_at = least(shim->step_at, shim_sum(now, grace_ns));
    }
    end_for(shim, ATTEMPT_LEASE, now);
}

/* Whether the session may begin: another machine may have it by now. */
static bool may_begin(const struct shim *shim)
{
    int64_t grace_ns;
    return shim->job.lease == NULL || lease_left_ns(shim, &grace_ns) > 0;
}

/* Run the actions that are due. */
static void act(struct shim *shim, int64_t now)
{
    if (now >= shim->log.next_ns) {
        shim_log_look(&shim->log, now);
    }
    if (is_running(shim) && now >= shim->timeout_at) {
        end_for(shim, ATTEMPT_TIMEOUT, now);
    }
    if ((is_running(shim) || shim->phase == PHASE_TERM) &&
        now >= shim->lease_at) {
        end_without_lease(shim, now);
    }
    if (is_running(shim) && now >= shim->idle.sample_at) {
        end_if_idle(shim, now);
    }
    if (shim->phase == PHASE_SESSION && now >= shim->checkpoint_at) {
        checkpoint(shim);
    }
    if ((shim->phase == PHASE_TERM || shim->phase == PHASE_KILL) &&
        now >= shim->step_at) {
        kill_round(shim, now);
    }
}

/* Return when the next action is due. */
static int64_t next_at(const struct shim *shim)
{
    int64_t next = shim->log.next_ns;
    if (shim->phase == PHASE_TERM) {
        next = least(next, shim->lease_at);
    }
    if (!is_running(shim)) {
        return least(next, shim->step_at);
    }
    next = least(next, shim->timeout_at);
    next = least(next, shim->lease_at);
    next = least(next, shim->idle.sample_at);
    if (shim->phase == PHASE_SESSION) {
        next = least(next, shim->checkpoint_at);
    }
    return next;
}

/* Obey an order, if it is about this attempt and not an earlier one. */
static void obey_order(struct shim *shim, int value, int64_t now)
{
    uint64_t id = shim->job.head.id;
    if (value == shim_wire_value(id, SHIM_WIRE_CANCEL)) {
        end_for(shim, ATTEMPT_CANCELLED, now);
    } else if (value == shim_wire_value(id, SHIM_WIRE_STOP)) {
        end_for(shim, ATTEMPT_STOPPED, now);
    } else if (value == shim_wire_value(id, SHIM_WIRE_CHECKPOINT)) {
        if (shim->phase == PHASE_SESSION) {
            checkpoint(shim);
        } else if (shim->phase == PHASE_PREPARE) {
            shim->job.head.checkpoint_ns = 0; /* as soon as it runs */
        }
    }
}

/* Act on a signal. */
static void obey(struct shim *shim, const siginfo_t *info, int64_t now)
{
    if (info->si_signo == SIGIO) {
        shim_log_look(&shim->log, now);
    } else if (info->si_signo == SHIM_WIRE_SIGNAL) {
        if (info->si_code == SI_QUEUE) {
            obey_order(shim, info->si_value.sival_int, now);
        }
    } else if (info->si_signo == SIGTERM || info->si_signo == SIGINT) {
        if (shim_tree_is_outside(info->si_pid)) {
            end_for(shim, ATTEMPT_STOPPED, now);
        }
    }
}

/* Sleep until a signal arrives or `at`; return 0 without a signal. */
static int sleep_until(int64_t at, siginfo_t *info)
{
    sigset_t all;
    (void)sigfillset(&all);
    if (at == SHIM_NEVER) {
        return sigwaitinfo(&all, info);
    }
    int64_t left_ns = at - shim_clock(CLOCK_MONOTONIC);
    left_ns = left_ns > 0 ? left_ns : 0;
    struct timespec left = {
        .tv_sec = (time_t)(left_ns / SECOND_NS),
        .tv_nsec = (long)(left_ns % SECOND_NS),
    };
    return sigtimedwait(&all, info, &left);
}

/* Loop until no process is left. */
static void watch(struct shim *shim)
{
    int64_t now = shim_clock(CLOCK_MONOTONIC);
    after_reaping(shim, now); /* the start may have failed */
    while (shim->phase != PHASE_OVER) {
        siginfo_t info;
        int number = sleep_until(next_at(shim), &info);
        now = shim_clock(CLOCK_MONOTONIC);
        reap(shim);
        after_reaping(shim, now);
        if (number > 0 && number != SIGCHLD) {
            obey(shim, &info, now);
        }
        if (shim->phase != PHASE_OVER) {
            act(shim, now);
        }
    }
}

/* Write the exit record, with retries. */
static int finish(struct shim *shim)
{
    shim_log_end(&shim->log);
    shim->exit.ended_ns = shim_clock(CLOCK_REALTIME);
    shim->exit.log_bytes = shim_log_written(&shim->log);
    shim->exit.log_cut_bytes = shim->log.cut_bytes;
    int error = 0;
    for (int ix = 0; ix < RECORD_TRIES; ix++) {
        error = shim_dir_finish(shim->dir_fd,
                                shim->lock_fd,
                                shim->reused,
                                &shim->exit);
        if (error == 0 || error == ENOENT) {
            break; /* ENOENT: our files were removed */
        }
        struct timespec pause = {.tv_nsec = RECORD_PAUSE_NS};
        (void)nanosleep(&pause, NULL);
    }
    return error;
}

/* Claim the attempt and open its log; return 0 or an errno. After *claimed_out
 * is set, the attempt has begun and must get an exit record. */
static int begin(struct shim *shim,
                 const struct record_started *self,
                 int64_t now,
                 bool *claimed_out)
{
    struct record_started started = *self;
    started.at_ns = shim_clock(CLOCK_REALTIME);
    memcpy(started.nonce, shim->job.head.nonce, sizeof(started.nonce));
    bool named = started.nonce[0] != '\0';
    shim->reused = named && shim->job.spare != NULL &&
                   shim_dir_reuse(shim->job.spare,
                                  shim->job.dir,
                                  &started,
                                  &shim->dir_fd,
                                  &shim->lock_fd);
    int error = shim->reused ? 0
                             : shim_dir_claim(shim->job.dir,
                                              &started,
                                              &shim->dir_fd,
                                              &shim->lock_fd);
    if (error != 0) {
        return error;
    }
    *claimed_out = true;
    crash_point("shim-started");
    shim_cgroup_set(shim->group, shim->job.dir);
    crash_point("shim-cgroup-set");
    const struct shim_wire_request *head = &shim->job.head;
    shim->exit.begun_ns = started.at_ns;
    memcpy(shim->exit.nonce, started.nonce, sizeof(shim->exit.nonce));
    shim->timeout_at = shim_sum(now, head->timeout_ns);
    shim->lease_at = shim->job.lease != NULL ? now : SHIM_NEVER;
    idle_init(&shim->idle, head->idle_ns, head->idle_ignores_cpu == 1, now);
    error = shim_log_open(&shim->log, shim->dir_fd, head->log_bytes_max, now);
    crash_point("shim-log-open");
    return error;
}

/* Run the claimed attempt. */
static void run(struct shim *shim, int64_t now)
{
    if (shim->job.prepare != NULL) {
        start_prepare(shim);
    } else {
        start_session(shim, now);
    }
    watch(shim);
}

/* Release the attempt, above all its lock. */
static void release(struct shim *shim)
{
    const int fds[] = {shim->log.fd, shim->lock_fd, shim->dir_fd};
    for (size_t ix = 0; ix < ARRAY_COUNT(fds); ix++) {
        if (fds[ix] >= 0) {
            (void)close(fds[ix]);
        }
    }
    free(shim->job.argv);
}

int shim_run(const struct shim_message *message,
             const struct record_started *self,
             struct shim_cgroup *group,
             bool *clean_out)
{
    struct shim shim = {
        .group = group,
        .dir_fd = -1,
        .lock_fd = -1,
        .log = {.fd = -1},
        .exit = {.cause = ATTEMPT_EXIT, .code = -1},
        .timeout_at = SHIM_NEVER,
        .checkpoint_at = SHIM_NEVER,
        .lease_at = SHIM_NEVER,
        .idle = {.sample_at = IDLE_NEVER},
    };
    bool claimed = false;
    int64_t now = shim_clock(CLOCK_MONOTONIC);
    int error = shim_job_read(&shim.job, message);
    if (error == 0) {
        error = begin(&shim, self, now, &claimed);
    }
    if (error == 0 && !may_begin(&shim)) {
        shim.exit.cause = ATTEMPT_LEASE;
        shim.clean = true; /* no process was started */
    } else if (error == 0) {
        run(&shim, now);
    } else if (claimed) {
        shim.exit.cause = ATTEMPT_SPAWN;
        shim.exit.error = error;
    }
    if (shim.clean) {
        shim_cgroup_set(group, NULL); /* the shim may take another request */
    }
    bool told = claimed && finish(&shim) == 0;
    *clean_out = told && shim.clean;
    release(&shim);
    return claimed ? 0 : error; /* it has begun, whatever its outcome */
}
