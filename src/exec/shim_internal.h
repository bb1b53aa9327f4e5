/* SPDX-License-Identifier: MIT */
/*
 * Declarations shared by the files of sluice-shim. The program links only the C
 * library and avoids stdio: a waiting shim should cost a few pages.
 *
 *   main.c         the command line
 *   shim_server.c  takes requests, reuses or forks shims, reports
 *   shim_life.c    loop of a shim: one attempt after another
 *   shim.c         execution of one attempt, from its lock to its exit record
 *   shim_job.c     parser of requests
 *   shim_dir.c     attempt directory: lock, started, exit
 *   shim_spawn.c   starts a command
 *   shim_tree.c    processes below a shim: signals, CPU time
 *   shim_cgroup.c  control group of a shim
 *   shim_log.c     keeps the log below its limit
 *
 * It shares cgroup.c, checkpoint.c, idle.c, lease.c, proctree.c and record.c
 * with the scheduler.
 */
#ifndef EXEC_SHIM_INTERNAL_H
#define EXEC_SHIM_INTERNAL_H

#include "base/macros.h"
#include "exec/idle.h"
#include "exec/record.h"
#include "exec/shim_wire.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SHIM_NEVER INT64_MAX

/* Serve requests from this socket until the peer closes it; return the exit
 * code of the program. */
int shim_serve(int fd);

/* A request as received: a shim_wire_request with its strings. */
struct shim_message {
    char *bytes;
    size_t len;
};

/* Size of a group name: see cgroup.h. */
enum { SHIM_CGROUP_BYTES = 48 };

/* The control group of a shim. */
struct shim_cgroup {
    char name[SHIM_CGROUP_BYTES]; /* "": no group */
    int fd;                       /* in the shim; -1: no group */
    int parent_fd;
    bool left; /* the shim itself has left it */
};

/* Open the parent group of shim groups, and remove the groups of earlier
 * servers there; return -1 if groups are not available. */
int shim_cgroup_open(void);

/* Fork into a new group below `parent_fd`, or just fork if that fails. `number`
 * must be unique per call. Returns like fork(). */
pid_t shim_cgroup_fork(struct shim_cgroup *group,
                       int parent_fd,
                       uint32_t number);

/* Record the attempt directory whose processes are in the group; NULL: none. */
void shim_cgroup_set(const struct shim_cgroup *group, const char *dir);

/* Leave the group, and kill all processes in it. */
void shim_cgroup_kill(struct shim_cgroup *group);

/* Leave the group and remove it, because the server, which would do that after
 * this process exits, is gone. */
void shim_cgroup_remove(struct shim_cgroup *group);

/* Input of a shim from the server that forks it. */
struct shim_birth {
    struct shim_cgroup group;
    struct shim_message message; /* owned by the shim */
    const char *boot_id;
    int64_t forked_ns; /* CLOCK_BOOTTIME, just before the fork */
    int next_fd;       /* source of further requests; -1: none */
    int done_fd;       /* takes a shim_done before each wait for a request */
};

/* "This shim has finished its request." */
struct shim_done {
    pid_t pid;
};

/* Longer requests always get a new shim. */
enum { SHIM_NEXT_BYTES_MAX = 16 << 10 };

/* Run as a shim. Return the exit code: 0, or the errno if nothing ran. */
int shim_live(struct shim_birth *birth);

/* Execute one request; return 0, or the errno if nothing ran. *clean_out: its
 * session exited by itself and left no process. */
int shim_run(const struct shim_message *message,
             const struct record_started *self,
             struct shim_cgroup *group,
             bool *clean_out);

/* Return a clock in nanoseconds. */
int64_t shim_clock(clockid_t clock);

/* Return a + b, at most SHIM_NEVER; both must be non-negative. */
int64_t shim_sum(int64_t a_ns, int64_t b_ns);

/*
 * Return the start time of process `pid` in ticks since boot; 0: no such
 * process. `before_ns` is a CLOCK_BOOTTIME from before its fork: if the tick is
 * unchanged, that is the result, and /proc is not read.
 */
uint64_t shim_start_ticks(pid_t pid, int64_t before_ns);

/* A request. Its strings are in the message. */
struct shim_job {
    struct shim_wire_request head;
    const char *dir;
    const char *folder;
    char *prepare;     /* or NULL, as the next one */
    const char *lease; /* path of a file */
    const char *spare; /* path of a directory */
    char **argv;       /* both NULL-terminated */
    char **envp;
};

/* Parse the message; return 0 or an errno. The caller frees job->argv, which
 * may be NULL. */
int shim_job_read(struct shim_job *job, const struct shim_message *message);

/*
 * Become the only shim of the attempt in this directory: create it, lock it,
 * and create `started`. Return 0 and the descriptors, or an errno if nothing
 * may run: EAGAIN and EEXIST mean that another shim was faster.
 */
int shim_dir_claim(const char *dir,
                   const struct record_started *started,
                   int *dir_fd_out,
                   int *lock_fd_out);

/*
 * The same with a spare directory, if its session left nothing in it and it can
 * become `dir`. Return false if not: nothing may run.
 */
bool shim_dir_reuse(const char *spare,
                    const char *dir,
                    const struct record_started *started,
                    int *dir_fd_out,
                    int *lock_fd_out);

/* Write the exit record and rename the file to `exit`; return 0 or an errno. */
int shim_dir_finish(int dir_fd,
                    int lock_fd,
                    bool reused,
                    const struct attempt_exit *exit);

/* One command to start. */
struct shim_spawn {
    char *const *argv;
    char *const *envp;
    const char *folder;
    int log_fd;
    bool bad_folder; /* `error` is about the folder */
    int error;       /* errno if it could not be started */
};

/* Start a command as session leader; return 0 on failure, with `error` set. */
pid_t shim_spawn(struct shim_spawn *spawn);

/* Return the value of a variable in an environment, or NULL. */
const char *shim_spawn_variable(char *const *envp, const char *name);

/*
 * Send a signal to every process below this one, except the process group
 * `skip_group` (0: none is skipped). Return how many were found.
 */
uint32_t shim_tree_signal(int signal, pid_t skip_group);

/*
 * Return the CPU time of every process below this one, including children that
 * they have waited for, in steps of 10 ms; and whether a thread of theirs runs
 * or waits for a CPU.
 */
uint64_t shim_tree_cpu_ns(bool *runnable_out);

/* Whether `pid` is certainly not below this process. */
bool shim_tree_is_outside(pid_t pid);

/* The log of an attempt and its limit. */
struct shim_log {
    int fd; /* O_APPEND; the session writes to the same file */
    int dir_fd;
    uint64_t bytes_max; /* 0: no limit */
    uint64_t size;      /* at the last check */
    uint64_t cut_begin;
    uint64_t cut_bytes;
    uint64_t dropped_bytes; /* of these, no longer part of its size */
    int64_t next_ns;        /* next check; SHIM_NEVER: at a signal */
    int64_t pause_ns;
    bool no_holes; /* the file system cannot punch them */
};

/* Open the log in this directory; return 0 or an errno. */
int shim_log_open(struct shim_log *log,
                  int dir_fd,
                  uint64_t bytes_max,
                  int64_t now_ns);

/* Check its size, cut the log if it is too large, and set next_ns. */
void shim_log_look(struct shim_log *log, int64_t now_ns);

/* The same for the last time. */
void shim_log_end(struct shim_log *log);

/* Return the total bytes written to it. */
uint64_t shim_log_written(const struct shim_log *log);

/* Log a message of three strings, as in "cannot run x: why". */
void shim_log_say(const struct shim_log *log,
                  const char *what,
                  const char *name,
                  const char *why);

#endif /* EXEC_SHIM_INTERNAL_H */
