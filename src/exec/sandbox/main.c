/* SPDX-License-Identifier: MIT */
/*
 * sluice-sandbox: runs a command confined by bwrap (bubblewrap).
 *
 *   sluice-sandbox OPTION... -- COMMAND ARG...   run it here, confined
 *   sluice-sandbox --probe                       print why that cannot work
 * here /run/sluice-sandbox COMMAND ARG...           first process in the
 * sandbox
 *
 * Users do not call it. Processes, from the outside to the inside:
 *
 *   sluice-sandbox   waits, and exits as the command has exited
 *   bwrap            waits, too
 *   sluice-sandbox   process 1 there: reaps orphans; the kernel kills all other
 *                    processes of the sandbox when it exits
 *   COMMAND
 *
 * The first two ignore the signals by which a session is asked to stop, which
 * the shim sends to every process of a session: only COMMAND decides what to do
 * about them. Signals do not stop process 1 of a namespace. When a process of
 * the chain is killed, all below it are.
 *
 * A command that cannot be confined is not run: exit code 126, and the reason
 * is in the result file.
 */
#include "base/jsonw.h"
#include "base/macros.h"
#include "base/mem.h"
#include "exec/sandbox_view.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    EXIT_CANNOT = 126,
    EXIT_MISSING = 127,
    /* Descriptors of process 1: standard error of the command, and the pipe to
     * the first process; bwrap's own messages go elsewhere. */
    FD_ERRORS = 3,
    FD_STATUS = 4,
    FD_FREE = 5,
    REASON_BYTES = 2048,
};

static const int ends[] = {SIGHUP, SIGINT, SIGTERM};

/* What process 1 reports: nothing, if bwrap never came so far. */
struct status {
    bool started;
    int wait; /* wait status of the command */
};

/* --- inside ------------------------------------------------------------- */

/* Start the command, as a session leader, like the shim does. */
static pid_t start(char *const *argv)
{
    pid_t pid = fork();
    if (pid != 0) {
        return pid;
    }
    sigset_t none;
    (void)sigemptyset(&none);
    for (int number = 1; number < NSIG; number++) {
        (void)signal(number, SIG_DFL);
    }
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setsid();
    (void)execvp(argv[0], argv);
    int error = errno;
    (void)dprintf(STDERR_FILENO,
                  "sluice-sandbox: cannot run %s: %s\n",
                  argv[0],
                  strerror(error));
    _exit(error == ENOENT ? EXIT_MISSING : EXIT_CANNOT);
}

/* Be process 1. */
static int run_inside(char *const *argv)
{
    struct status status = {.started = true};
    if (dup2(FD_ERRORS, STDERR_FILENO) < 0 ||
        fcntl(FD_STATUS, F_SETFD, FD_CLOEXEC) != 0 || close(FD_ERRORS) != 0 ||
        syscall(SYS_close_range, FD_FREE, ~0U, 0U) != 0) {
        return EXIT_CANNOT;
    }
    pid_t pid = start(argv);
    pid_t found = pid;
    do {
        found = pid > 0 ? waitpid(-1, &status.wait, 0) : 0;
    } while (pid > 0 && found != pid && (found > 0 || errno == EINTR));
    bool told =
        found == pid && pid > 0 &&
        write(FD_STATUS, &status, sizeof(status)) == (ssize_t)sizeof(status);
    return told ? EXIT_SUCCESS : EXIT_CANNOT;
}

/* --- outside ------------------------------------------------------------ */

struct request {
    struct sandbox_view view;
    bool probe;
    char *const *argv;
};

/* Print why the command does not run, and write it as the result. */
static int refuse(const struct request *request, const char *reason)
{
    struct strbuf text = {0};
    struct strbuf path = {0};
    if (request->probe) {
        (void)dprintf(STDOUT_FILENO, "%s\n", reason);
        return EXIT_CANNOT;
    }
    (void)dprintf(STDERR_FILENO, "sluice-sandbox: not run: %s\n", reason);
    if (request->view.attempt != NULL) {
        struct jsonw json = {.out = &text};
        jsonw_object(&json, NULL);
        jsonw_text(&json, "outcome", "blocked");
        jsonw_text(&json, "lacks", "start");
        strbuf_addf(&path, "it could not be confined: %s", reason);
        jsonw_text(&json, "reason", strbuf_text(&path));
        jsonw_object_end(&json);
        strbuf_clear(&path);
        strbuf_addf(&path, "%s/result", request->view.attempt);
        int fd = open(strbuf_text(&path),
                      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                      0600);
        if (fd < 0 || write(fd, strbuf_text(&text), text.len) < 0 ||
            close(fd) != 0) {
            (void)dprintf(STDERR_FILENO,
                          "sluice-sandbox: cannot write the result\n");
        }
    }
    strbuf_release(&text);
    strbuf_release(&path);
    return EXIT_CANNOT;
}

/* Return the variables that reach the command. */
static const char **make_env(const struct sandbox_words *names)
{
    uint32_t count = 0;
    while (environ[count] != NULL) {
        count++;
    }
    const char **kept = mem_zalloc(count + 1, sizeof(kept[0]));
    uint32_t used = 0;
    for (uint32_t ix = 0; ix < count; ix++) {
        if (sandbox_keeps(environ[ix], names->items, names->count)) {
            kept[used++] = environ[ix];
        }
    }
    return kept;
}

/* Move the descriptors to their places, and execute bwrap. */
static void become(const char *bwrap,
                   const struct sandbox_words *words,
                   const char *const *env,
                   const int fds[2])
{
    char *const *argv;
    char *const *variables;
    memcpy(&argv, &words->items, sizeof(argv));
    memcpy(&variables, &env, sizeof(variables));
    if (dup2(STDERR_FILENO, FD_ERRORS) == FD_ERRORS &&
        dup2(fds[0], STDERR_FILENO) == STDERR_FILENO &&
        dup2(fds[1], FD_STATUS) == FD_STATUS) {
        (void)execve(bwrap, argv, variables);
    }
    (void)dprintf(STDERR_FILENO, "%s: %s", bwrap, strerror(errno));
    _exit(EXIT_CANNOT);
}

/* Read what bwrap has printed, on one line. */
static void read_reason(int fd, char out[REASON_BYTES])
{
    ssize_t len = read(fd, out, REASON_BYTES - 1);
    size_t end = len > 0 ? (size_t)len : 0;
    out[end] = '\0';
    for (size_t ix = 0; ix < end; ix++) {
        out[ix] = (char)(out[ix] == '\n' && ix + 1 < end ? ' ' : out[ix]);
    }
    if (end > 0 && out[end - 1] == '\n') {
        out[end - 1] = '\0';
    }
}

/* Exit as the command has. */
static int end_as(int status)
{
    if (WIFSIGNALED(status)) {
        (void)signal(WTERMSIG(status), SIG_DFL);
        (void)raise(WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    return WEXITSTATUS(status);
}

/* Run bwrap to its end. */
static int run_bwrap(const struct request *request,
                     const char *bwrap,
                     const struct sandbox_words *words)
{
    int errors[2];
    int report[2];
    char reason[REASON_BYTES];
    struct status status = {0};
    int ended = 0;
    if (pipe2(errors, O_CLOEXEC | O_NONBLOCK) != 0 ||
        pipe2(report, O_CLOEXEC | O_NONBLOCK) != 0) {
        return refuse(request, strerror(errno));
    }
    const char **env = make_env(&request->view.env);
    pid_t pid = fork();
    if (pid == 0) {
        become(bwrap, words, env, (const int[]){errors[1], report[1]});
    }
    mem_free(env);
    if (pid < 0) {
        return refuse(request, strerror(errno));
    }
    (void)close(errors[1]);
    (void)close(report[1]);
    while (waitpid(pid, &ended, 0) < 0 && errno == EINTR) {
    }
    ssize_t len = read(report[0], &status, sizeof(status));
    if (len == (ssize_t)sizeof(status) && status.started) {
        return end_as(status.wait);
    }
    if (WIFSIGNALED(ended)) {
        return end_as(ended); /* killed together with the command */
    }
    read_reason(errors[0], reason);
    return refuse(request, reason[0] != '\0' ? reason : "bwrap failed");
}

/* Keep the first descriptors free for the command: see become(). */
static bool reserve(void)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd < FD_FREE - 1) {
        fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    }
    return fd >= 0;
}

/* Become a process that outlives no parent, and that no request to stop ends;
 * return false if the parent is gone. */
static bool prepare(void)
{
    pid_t parent = getppid();
    for (size_t ix = 0; ix < ARRAY_COUNT(ends); ix++) {
        (void)signal(ends[ix], SIG_IGN);
    }
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
}

static int run_outside(struct request *request)
{
    char bwrap[PATH_MAX];
    char folder[PATH_MAX];
    struct diag diag = {0};
    struct sandbox sandbox = {0};
    struct sandbox_words words = {0};
    if (!prepare()) {
        return EXIT_CANNOT;
    }
    if (!reserve() || chdir(request->probe ? "/" : ".") != 0 ||
        getcwd(folder, sizeof(folder)) == NULL) {
        return refuse(request, strerror(errno));
    }
    if (!sandbox_find_program("bwrap", bwrap, sizeof(bwrap))) {
        return refuse(request,
                      "bwrap is not in PATH; install the package bubblewrap");
    }
    request->view.folder = request->probe ? NULL : folder;
    enum err err = sandbox_view_add(&sandbox, &request->view, &diag);
    int code = EXIT_CANNOT;
    if (err == ERR_OK) {
        sandbox_add_word(&words, bwrap);
        sandbox_add_arguments(&sandbox,
                              &words,
                              folder,
                              request->view.network,
                              geteuid() == 0);
        sandbox_add_word(&words, "--");
        sandbox_add_word(&words, SANDBOX_INIT);
        for (uint32_t ix = 0; request->argv[ix] != NULL; ix++) {
            sandbox_add_word(&words, request->argv[ix]);
        }
        code = run_bwrap(request, bwrap, &words);
    } else {
        code = refuse(request, diag.text);
    }
    sandbox_release_words(&words);
    sandbox_release(&sandbox);
    return code;
}

/* --- options ------------------------------------------------------------ */

enum option_kind { OPTION_LIST, OPTION_TEXT, OPTION_FLAG };

static const struct {
    const char *name;
    enum option_kind kind;
    size_t at;
} options[] = {
    {"config", OPTION_LIST, offsetof(struct request, view.config)},
    {"copy", OPTION_LIST, offsetof(struct request, view.copy)},
    {"cover", OPTION_LIST, offsetof(struct request, view.cover)},
    {"dir", OPTION_TEXT, offsetof(struct request, view.attempt)},
    {"env", OPTION_LIST, offsetof(struct request, view.env)},
    {"login", OPTION_LIST, offsetof(struct request, view.login)},
    {"network", OPTION_FLAG, offsetof(struct request, view.network)},
    {"probe", OPTION_FLAG, offsetof(struct request, probe)},
    {"program", OPTION_TEXT, offsetof(struct request, view.program)},
    {"read", OPTION_LIST, offsetof(struct request, view.read)},
    {"state", OPTION_LIST, offsetof(struct request, view.state)},
    {"write", OPTION_LIST, offsetof(struct request, view.write)},
};

static void take(struct request *request, int ix)
{
    void *at = (char *)request + options[ix].at;
    bool *flag = at;
    const char **text = at;
    switch (options[ix].kind) {
    case OPTION_LIST:
        sandbox_add_word(at, optarg);
        break;
    case OPTION_TEXT:
        *text = optarg;
        break;
    case OPTION_FLAG:
        *flag = true;
        break;
    }
}

/* Parse the options. False: an option is unknown. */
static bool take_all(struct request *request, int argc, char **argv)
{
    struct option list[ARRAY_COUNT(options) + 1] = {{0}};
    int found;
    int ix = 0;
    for (size_t n = 0; n < ARRAY_COUNT(options); n++) {
        list[n].name = options[n].name;
        list[n].has_arg =
            options[n].kind == OPTION_FLAG ? no_argument : required_argument;
    }
    while ((found = getopt_long(argc, argv, "+", list, &ix)) == 0) {
        take(request, ix);
    }
    request->argv = argv + optind;
    return found == -1;
}

static void release(struct request *request)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(options); ix++) {
        if (options[ix].kind == OPTION_LIST) {
            void *list = (char *)request + options[ix].at;
            sandbox_release_words(list);
        }
    }
}

int main(int argc, char **argv)
{
    char program[] = "/bin/true";
    char *const probe[] = {program, NULL};
    struct request request = {0};
    if (argc > 1 && strcmp(argv[0], SANDBOX_INIT) == 0) {
        return run_inside(argv + 1);
    }
    bool good = take_all(&request, argc, argv);
    if (request.probe) {
        request.argv = probe;
    }
    if (!good || request.argv[0] == NULL) {
        (void)dprintf(STDERR_FILENO,
                      "sluice-sandbox is internal: sluice runs it\n");
        release(&request);
        return EXIT_CANNOT;
    }
    int code = run_outside(&request);
    release(&request);
    return code;
}
