/* SPDX-License-Identifier: MIT */
/*
 * What the files of the program sluice-shim share. It links the C library and
 * nothing else, and avoids stdio: a waiting shim should cost a few pages.
 *
 *   main.c         the command line
 *   shim_server.c  takes requests, finds or forks shims, reports
 *   shim_life.c    the life of a shim: one attempt after the other
 *   shim.c         the life of one attempt, from its lock to its exit record
 *   shim_job.c     reading a request
 *   shim_dir.c     the files of an attempt: lock, started, exit
 *   shim_spawn.c   starting a command
 *   shim_tree.c    the processes below a shim: signals, CPU time
 *   shim_cgroup.c  the control group of a shim
 *   shim_log.c     keeping the log below its limit
 *
 * It shares cgroup.c, checkpoint.c, idle.c, proctree.c and record.c with the
 * scheduler.
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

/* Serve requests from this socket until the other end is closed; the exit
 * code of the program. */
int shim_serve(int fd);

/* A request as it came: a shim_wire_request with its texts. */
struct shim_message {
    char *bytes;
    size_t len;
};

/* Bytes of the name of a group: see cgroup.h. */
enum { SHIM_CGROUP_BYTES = 48 };

/* The control group of a shim. */
struct shim_cgroup {
    char name[SHIM_CGROUP_BYTES]; /* "": there is none */
    int fd;                       /* in the shim; -1: there is none */
    int parent_fd;
    bool left; /* the shim itself is not in it any more */
};

/* Open the group in which those of shims are created, and remove what earlier
 * servers have left there; -1: there is none. */
int shim_cgroup_open(void);

/* Fork into a new group below `parent_fd`, or just fork where that cannot be.
 * `number` is another one for each call. Returns as fork() does. */
pid_t shim_cgroup_fork(struct shim_cgroup *group,
                       int parent_fd,
                       uint32_t number);

/* Note whose processes are in the group: those of the attempt in this
 * directory, or with NULL, of none. */
void shim_cgroup_set(const struct shim_cgroup *group, const char *dir);

/* Leave the group, and kill all that is in it. */
void shim_cgroup_kill(struct shim_cgroup *group);

/* Leave the group and remove it, because the server, which would do that when
 * this process has ended, is gone. */
void shim_cgroup_remove(struct shim_cgroup *group);

/* What a shim gets from the server that forks it. */
struct shim_birth {
    struct shim_cgroup group;
    struct shim_message message; /* the shim's own */
    const char *boot_id;
    int64_t forked_ns; /* CLOCK_BOOTTIME, just before the fork */
    int next_fd;       /* further requests come from here; -1: none do */
    int done_fd;       /* where a shim_done goes, before it waits for one */
};

/* "This shim is done with what it had." */
struct shim_done {
    pid_t pid;
};

/* A longer request is never a further one. */
enum { SHIM_NEXT_BYTES_MAX = 16 << 10 };

/* Be a shim. The exit code: 0, or the errno for which nothing ran. */
int shim_live(struct shim_birth *birth);

/* Carry out one request; 0, or the errno for which nothing ran. *clean_out:
 * its session has ended by itself and has left nothing behind. */
int shim_run(const struct shim_message *message,
             const struct record_started *self,
             struct shim_cgroup *group,
             bool *clean_out);

/* A clock in nanoseconds. */
int64_t shim_clock(clockid_t clock);

/* a + b, at most SHIM_NEVER; both are not negative. */
int64_t shim_sum(int64_t a_ns, int64_t b_ns);

/*
 * When process `pid` began, in ticks since boot; 0: there is no such process.
 * `before_ns` is a CLOCK_BOOTTIME from before its fork: if the tick has not
 * changed since, that is the answer, and /proc need not be asked.
 */
uint64_t shim_start_ticks(pid_t pid, int64_t before_ns);

/* A request. Its texts are in the message. */
struct shim_job {
    struct shim_wire_request head;
    const char *dir;
    const char *folder;
    char *prepare; /* or NULL */
    char **argv;   /* these two end with a NULL */
    char **envp;
};

/* Read the message; 0 or an errno. The caller frees job->argv, which may be
 * NULL. */
int shim_job_read(struct shim_job *job, const struct shim_message *message);

/*
 * Become the one shim of the attempt in this directory: make it, lock it, and
 * make `started`. 0 and the descriptors, or the errno for which nothing may
 * run: EAGAIN and EEXIST mean that another one was faster.
 */
int shim_dir_claim(const char *dir,
                   const struct record_started *started,
                   int *dir_fd_out,
                   int *lock_fd_out);

/* Write the record and rename it to `exit`; 0 or an errno. */
int shim_dir_finish(int dir_fd, int lock_fd, const struct attempt_exit *exit);

/* One command to start. */
struct shim_spawn {
    char *const *argv;
    char *const *envp;
    const char *folder;
    int log_fd;
    bool bad_folder; /* set when the folder is what `error` is about */
    int error;       /* errno for which it could not be started */
};

/* Start a command as leader of a session; 0: it could not be: `error`. */
pid_t shim_spawn(struct shim_spawn *spawn);

/* The value of a variable in an environment, or NULL. */
const char *shim_spawn_variable(char *const *envp, const char *name);

/*
 * Send a signal to every process below this one, except those in the process
 * group `skip_group` (0: none is left out). How many were found.
 */
uint32_t shim_tree_signal(int signal, pid_t skip_group);

/*
 * CPU time of every process below this one, children that they have waited for
 * included, in steps of 10 ms; and whether a thread of theirs runs or waits
 * for a CPU.
 */
uint64_t shim_tree_cpu_ns(bool *runnable_out);

/* Whether this process is certainly not below this one. */
bool shim_tree_is_outside(pid_t pid);

/* The log of an attempt and its limit. */
struct shim_log {
    int fd; /* O_APPEND; the session has the same file */
    int dir_fd;
    uint64_t bytes_max; /* 0: no limit */
    uint64_t size;      /* when it was last looked at */
    uint64_t cut_begin;
    uint64_t cut_bytes;
    uint64_t dropped_bytes; /* of these, no longer counted in its size */
    int64_t next_ns;        /* when to look again; SHIM_NEVER: at a signal */
    int64_t pause_ns;
    bool no_holes; /* the file system cannot punch them */
};

/* Open the log in this directory; 0 or an errno. */
int shim_log_open(struct shim_log *log,
                  int dir_fd,
                  uint64_t bytes_max,
                  int64_t now_ns);

/* Look at its size, cut if it is too large, and set next_ns. */
void shim_log_look(struct shim_log *log, int64_t now_ns);

/* The same for the last time. */
void shim_log_end(struct shim_log *log);

/* Bytes written to it in all. */
uint64_t shim_log_written(const struct shim_log *log);

/* Add a line to it for people: three texts, as in "cannot run x: why". */
void shim_log_say(const struct shim_log *log,
                  const char *what,
                  const char *name,
                  const char *why);

#endif /* EXEC_SHIM_INTERNAL_H */
