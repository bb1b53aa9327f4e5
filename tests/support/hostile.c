/* SPDX-License-Identifier: MIT */
/*
 * Sessions that do not want to end: hostile KIND WITNESS
 *
 * Every process of such a session first writes its number and start time into
 * the file WITNESS, so that a test can look for survivors. The kinds are in
 * the table at the end; all but `work` run until they are killed, or leave
 * something behind that does.
 */
#include "base/macros.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STORM_MAX = 50, HOPS_MAX = 20000, LINE_BYTES = 4096 };
enum { TICK_US = 100000, TICKS_MAX = 1200, WORK_NS = 300000000 };

struct session {
    char *program;
    char *witness;
};

typedef void (*kind_fn)(const struct session *session);

/* Write "PID /proc/PID/stat..." as one line. */
static void mark(const struct session *session)
{
    char text[1024];
    int stat_fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t len = read(stat_fd, text, sizeof(text));
    (void)close(stat_fd);
    int fd =
        open(session->witness, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (len <= 0 || fd < 0 || write(fd, text, (size_t)len) != len) {
        _exit(99);
    }
    (void)close(fd);
}

/* Much longer than any test waits. */
_Noreturn static void wait_forever(void)
{
    for (int ix = 0; ix < 1200; ix++) {
        (void)usleep(100000);
    }
    _exit(0);
}

/* Should the shim fail to end us, we must not burn the machine. */
static void limit_damage(void)
{
    struct rlimit cpu = {.rlim_cur = 5, .rlim_max = 5};
    (void)setrlimit(RLIMIT_CPU, &cpu);
}

static void ignore_all(void)
{
    for (int number = 1; number < 65; number++) {
        (void)signal(number, SIG_IGN);
    }
}

/* Fork; true in the child. The parent goes on when the child is marked. */
static bool is_child(const struct session *session)
{
    int fds[2];
    char byte = 0;
    if (pipe2(fds, O_CLOEXEC) != 0) {
        _exit(99);
    }
    pid_t pid = fork();
    if (pid == 0) {
        mark(session);
    }
    (void)close(fds[1]); /* which the parent sees as the end of the file */
    if (pid > 0) {
        (void)!read(fds[0], &byte, 1);
    }
    (void)close(fds[0]);
    return pid == 0;
}

/* Become a daemon in the old way; the leader has ended then. */
static void daemonise(const struct session *session)
{
    if (!is_child(session)) {
        _exit(0);
    }
    (void)setsid();
    if (!is_child(session)) {
        _exit(0);
    }
}

static void ignore_term(const struct session *session)
{
    (void)session;
    (void)signal(SIGTERM, SIG_IGN);
}

static void double_fork(const struct session *session)
{
    if (is_child(session)) {
        if (!is_child(session)) {
            _exit(0);
        }
    }
}

static void own_session(const struct session *session)
{
    if (is_child(session)) {
        (void)setsid();
    }
}

static void hard_daemon(const struct session *session)
{
    daemonise(session);
    ignore_all();
}

static void keep_stdout(const struct session *session)
{
    if (!is_child(session)) {
        _exit(0);
    }
}

static void close_fds(const struct session *session)
{
    (void)session;
    (void)syscall(SYS_close_range, 0U, ~0U, 0U);
}

static void leave_folder(const struct session *session)
{
    (void)session;
    if (chdir("/proc") != 0) {
        _exit(99);
    }
}

/* As many processes as the shared counter allows, each forking on. */
static void fork_storm(const struct session *session)
{
    int *left = mmap(NULL,
                     sizeof(*left),
                     PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS,
                     -1,
                     0);
    *left = STORM_MAX;
    (void)signal(SIGCHLD, SIG_IGN);
    (void)signal(SIGTERM, SIG_IGN);
    for (;;) {
        if (__atomic_sub_fetch(left, 1, __ATOMIC_SEQ_CST) >= 0) {
            (void)is_child(session);
            (void)setsid();
        } else {
            (void)__atomic_add_fetch(left, 1, __ATOMIC_SEQ_CST);
            (void)sched_yield();
        }
    }
}

/* One process that is another one all the time. */
static void fork_hop(const struct session *session)
{
    (void)session;
    (void)signal(SIGTERM, SIG_IGN);
    for (int ix = 0; ix < HOPS_MAX; ix++) { /* no limit of CPU time sees it */
        if (fork() > 0) {
            _exit(0);
        }
        (void)setsid();
        (void)usleep(200);
    }
}

static void stop_self(const struct session *session)
{
    (void)session;
    (void)raise(SIGSTOP);
}

static void stop_child(const struct session *session)
{
    if (is_child(session)) {
        (void)setsid();
        (void)raise(SIGSTOP);
    }
}

static void trap_all(const struct session *session)
{
    ignore_all();
    (void)is_child(session);
}

static void exec_other(const struct session *session)
{
    (void)session;
    (void)execl("/bin/sleep", "sleep", "1000", (char *)NULL);
}

static void no_hangup(const struct session *session)
{
    (void)signal(SIGHUP, SIG_IGN);
    if (!is_child(session)) {
        _exit(0);
    }
    (void)setpgid(0, 0);
}

static void own_group(const struct session *session)
{
    if (is_child(session)) {
        (void)setpgid(0, 0);
        (void)signal(SIGTERM, SIG_IGN);
        (void)is_child(session);
    }
}

static void rename_self(const struct session *session)
{
    (void)prctl(PR_SET_NAME, "kthreadd) S 1 (", 0, 0, 0);
    memset(session->program, 'x', strlen(session->program));
    (void)signal(SIGTERM, SIG_IGN);
    (void)is_child(session);
}

static void kill_parent(const struct session *session)
{
    (void)session;
    (void)kill(getppid(), SIGTERM);
    (void)kill(getppid(), SIGINT);
    (void)kill(getppid(), SIGHUP);
    (void)kill(getppid(), SIGQUIT);
    (void)kill(getppid(), SIGUSR1);
    (void)kill(getppid(), SIGUSR2);
    (void)kill(getppid(), SIGALRM);
    (void)kill(getppid(), SIGTSTP);
}

static void stop_parent(const struct session *session)
{
    (void)session;
    (void)kill(-getpgid(getppid()), SIGSTOP);
    (void)kill(getppid(), SIGSTOP);
}

static void murder_parent(const struct session *session)
{
    pid_t parent = getppid();
    (void)signal(SIGTERM, SIG_IGN);
    (void)is_child(session);
    (void)kill(parent, SIGKILL);
}

static void flood(const struct session *session)
{
    char bytes[LINE_BYTES];
    (void)session;
    memset(bytes, 'x', sizeof(bytes));
    bytes[sizeof(bytes) - 1] = '\n';
    for (;;) {
        (void)!write(STDOUT_FILENO, bytes, sizeof(bytes));
    }
}

static void clear_environment(const struct session *session)
{
    char *argv[] = {session->program,
                    (char[]){"hard-daemon"},
                    session->witness,
                    NULL};
    char *none[] = {NULL};
    if (is_child(session)) {
        (void)setsid();
        (void)execve("/proc/self/exe", argv, none);
    }
}

static void make_zombies(const struct session *session)
{
    for (int ix = 0; ix < 20; ix++) {
        if (is_child(session)) {
            _exit(0);
        }
    }
    (void)signal(SIGTERM, SIG_IGN);
}

/* Children of a thread that is not the first. */
static void *run_thread(void *arg)
{
    (void)signal(SIGTERM, SIG_IGN);
    (void)is_child(arg);
    wait_forever();
}

static void use_threads(const struct session *session)
{
    pthread_t thread;
    struct session copy = *session;
    if (pthread_create(&thread, NULL, run_thread, &copy) != 0) {
        _exit(99);
    }
    wait_forever();
}

static void vanish_group(const struct session *session)
{
    /* The leader ends; its group lives on and is stopped. */
    if (is_child(session)) {
        (void)signal(SIGTERM, SIG_IGN);
        (void)raise(SIGSTOP);
    } else {
        (void)usleep(20000);
        _exit(0);
    }
}

__attribute__((no_sanitize("address"))) static int end_at_once(void *arg)
{
    (void)arg;
    (void)syscall(SYS_exit, 0);
    return 0;
}

/* Hung, but for a timer. At each tick a child of our parent's, the shim, uses a
 * few microseconds of CPU time, which the shim gets to know exactly. */
static void tick(const struct session *session)
{
    (void)session;
    char stack[LINE_BYTES];
    int flags = CLONE_VM | CLONE_VFORK | CLONE_PARENT | SIGCHLD;
    for (int ix = 0; ix < TICKS_MAX; ix++) {
        (void)usleep(TICK_US);
        if (clone(end_at_once, stack + sizeof(stack), flags, NULL) < 0) {
            _exit(99);
        }
    }
}

static void *work_in_thread(void *arg)
{
    struct timespec used = {0};
    while (used.tv_sec == 0 && used.tv_nsec < WORK_NS) {
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    }
    return arg;
}

/* Compute for a while, though not in the first thread, and end. */
static void work(const struct session *session)
{
    (void)session;
    pthread_t thread;
    if (pthread_create(&thread, NULL, work_in_thread, NULL) != 0 ||
        pthread_join(thread, NULL) != 0) {
        _exit(99);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        kind_fn fn;
    } kinds[] = {
        {"clear-environment", clear_environment},
        {"close-fds", close_fds},
        {"daemon", daemonise},
        {"double-fork", double_fork},
        {"exec-other", exec_other},
        {"flood", flood},
        {"fork-hop", fork_hop},
        {"fork-storm", fork_storm},
        {"hard-daemon", hard_daemon},
        {"ignore-term", ignore_term},
        {"keep-stdout", keep_stdout},
        {"kill-parent", kill_parent},
        {"leave-folder", leave_folder},
        {"make-zombies", make_zombies},
        {"murder-parent", murder_parent},
        {"no-hangup", no_hangup},
        {"own-group", own_group},
        {"own-session", own_session},
        {"rename-self", rename_self},
        {"stop-child", stop_child},
        {"stop-parent", stop_parent},
        {"stop-self", stop_self},
        {"tick", tick},
        {"trap-all", trap_all},
        {"use-threads", use_threads},
        {"vanish-group", vanish_group},
        {"work", work},
    };
    if (argc != 3) {
        return 2;
    }
    struct session session = {.program = argv[0], .witness = argv[2]};
    for (size_t ix = 0; ix < ARRAY_COUNT(kinds); ix++) {
        if (strcmp(kinds[ix].name, argv[1]) == 0) {
            limit_damage();
            mark(&session);
            kinds[ix].fn(&session);
            wait_forever();
        }
    }
    return 2;
}
