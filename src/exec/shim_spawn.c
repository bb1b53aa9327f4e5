/* SPDX-License-Identifier: MIT */
/*
 * Cheap start of a command: the child shares our memory and we sleep until it
 * has called exec (CLONE_VM | CLONE_VFORK, as posix_spawn() does). It has a
 * stack of its own, so that it overwrites nothing of ours, and it reports a
 * failure by writing into our memory: no pipe is needed.
 *
 * Until the exec the child only makes system calls. Signals are blocked until
 * its last steps, and no handlers are set.
 */
#include "base/crash.h"
#include "exec/shim_internal.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Enough for system calls and sanitizers. */
enum { STACK_BYTES = 32 << 10 };

/* A function that may not return to its caller, but call exec: ASan must not
 * mark its frame, because nothing would remove the marks. */
#define ENDS_IN_EXEC __attribute__((no_sanitize("address")))

/* Input of the child, prepared before it starts. */
struct child {
    struct shim_spawn *spawn;
    const char *search; /* directories of $PATH; NULL: argv[0] has a slash */
    char path[PATH_MAX];
};

const char *shim_spawn_variable(char *const *envp, const char *name)
{
    size_t len = strlen(name);
    for (; *envp != NULL; envp++) {
        if (strncmp(*envp, name, len) == 0 && (*envp)[len] == '=') {
            return *envp + len + 1;
        }
    }
    return NULL;
}

/* Call exec for each directory of $PATH; return the errno of the failure. */
ENDS_IN_EXEC static int exec_by_search(struct child *child)
{
    char *const *argv = child->spawn->argv;
    size_t name_len = strlen(argv[0]);
    int error = ENOENT;
    const char *at = child->search;
    for (;;) {
        const char *end = strchrnul(at, ':');
        size_t len = (size_t)(end - at);
        if (len + name_len + 2 <= sizeof(child->path)) {
            memcpy(child->path, at, len);
            size_t slash = len > 0 ? 1 : 0; /* "" is the current directory */
            child->path[len] = '/';
            memcpy(child->path + len + slash, argv[0], name_len + 1);
            (void)execve(child->path, argv, child->spawn->envp);
            if (errno == EACCES) {
                error = EACCES; /* unless a later directory has it */
            } else if (errno != ENOENT && errno != ENOTDIR) {
                return errno;
            }
        }
        if (*end == '\0') {
            return error;
        }
        at = end + 1;
    }
}

/* Runs in the child, in our memory. */
ENDS_IN_EXEC static int run_child(void *arg)
{
    struct child *child = arg;
    struct shim_spawn *spawn = child->spawn;
    sigset_t none;
    (void)setsid();
    (void)dup2(spawn->log_fd, STDOUT_FILENO);
    (void)dup2(spawn->log_fd, STDERR_FILENO);
    /* Without this call, all of them are close-on-exec anyway. */
    (void)syscall(SYS_close_range, 3U, ~0U, 0U);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (chdir(spawn->folder) != 0) {
        spawn->error = errno;
        spawn->bad_folder = true;
    } else if (child->search != NULL) {
        spawn->error = exec_by_search(child);
    } else {
        (void)execve(spawn->argv[0], spawn->argv, spawn->envp);
        spawn->error = errno;
    }
    _exit(127);
}

pid_t shim_spawn(struct shim_spawn *spawn)
{
    alignas(16) char stack[STACK_BYTES];
    struct child child;
    child.spawn = spawn;
    child.search = NULL;
    spawn->error = 0;
    if (strchr(spawn->argv[0], '/') == NULL) {
        child.search = shim_spawn_variable(spawn->envp, "PATH");
        if (child.search == NULL) {
            child.search = "/usr/local/bin:/usr/bin:/bin";
        }
    }
    int fault = crash_fault("clone");
    int flags = CLONE_VM | CLONE_VFORK | SIGCHLD;
    pid_t pid =
        fault != 0 ? -1 : clone(run_child, stack + STACK_BYTES, flags, &child);
    if (pid < 0) {
        spawn->error = fault != 0 ? fault : errno;
        return 0;
    }
    if (spawn->error != 0) {
        int status;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
        return 0;
    }
    return pid;
}
