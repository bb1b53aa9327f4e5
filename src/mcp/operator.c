/* SPDX-License-Identifier: MIT */
#include "mcp/operator.h"

#include "base/clock.h"
#include "base/macros.h"
#include "base/strip.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    COMMAND_MS = 60000,
    OUTPUT_BYTES_MAX = 256 << 10, /* the rest is dropped */
    WORDS_MAX = 24,
};

/* --- running a command -------------------------------------------------- */

/* Return a file with this content, for a standard input; -1 with an errno. */
static int make_input(const char *text)
{
    int fd = text != NULL ? memfd_create("input", MFD_CLOEXEC)
                          : open("/dev/null", O_RDONLY | O_CLOEXEC);
    size_t len = text != NULL ? strlen(text) : 0;
    if (fd >= 0 && len > 0 &&
        (write(fd, text, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET) != 0)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static pid_t spawn(const char *const *words, int input, int output)
{
    posix_spawn_file_actions_t actions;
    const char *argv[WORDS_MAX + 2] = {"sluice"};
    pid_t pid = 0;
    for (int ix = 0; words[ix] != NULL && ix < WORDS_MAX; ix++) {
        argv[ix + 1] = words[ix];
    }
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return -1;
    }
    char *const *list;
    const char *const *from = argv;
    memcpy(&list, &from, sizeof(list)); /* posix_spawn() does not change them */
    int error = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    if (error == 0) {
        error =
            posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    }
    if (error == 0) {
        error =
            posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    }
    if (error == 0) {
        error =
            posix_spawn(&pid, "/proc/self/exe", &actions, NULL, list, environ);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    errno = error;
    return error == 0 ? pid : -1;
}

/* Read the output of a command until its end; false: it takes too long. */
static bool read_output(int fd, struct strbuf *out)
{
    char bytes[4096];
    int64_t until_ns = clock_boot_ns() + INT64_C(1000000) * COMMAND_MS;
    for (;;) {
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        int64_t left_ms = (until_ns - clock_boot_ns()) / 1000000;
        int ready = poll(&poll_fd, 1, left_ms > 0 ? (int)left_ms : 0);
        if (ready == 0) {
            return false;
        }
        ssize_t len = ready > 0 ? read(fd, bytes, sizeof(bytes)) : -1;
        if (len == 0 || (len < 0 && errno != EINTR)) {
            return true;
        }
        if (len > 0 && out->len < OUTPUT_BYTES_MAX) {
            strbuf_add(out, bytes, (size_t)len);
        }
    }
}

enum err operator_run(const char *const *words,
                      const char *input,
                      struct strbuf *out,
                      struct diag *diag)
{
    int fds[2];
    int status = 0;
    int from = make_input(input);
    if (from < 0 || pipe2(fds, O_CLOEXEC) != 0) {
        if (from >= 0) {
            (void)close(from);
        }
        return diag_set(diag, ERR_IO, "%s", strerror(errno));
    }
    pid_t pid = spawn(words, from, fds[1]);
    int error = errno;
    (void)close(from);
    (void)close(fds[1]);
    if (pid < 0) {
        (void)close(fds[0]);
        return diag_set(diag, ERR_IO, "run sluice: %s", strerror(error));
    }
    struct strbuf text = {0};
    bool ended = read_output(fds[0], &text);
    (void)close(fds[0]);
    if (!ended) {
        (void)kill(pid, SIGKILL);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    enum err err = ERR_OK;
    strip_text(out, strbuf_text(&text), text.len);
    if (!ended) {
        err = diag_set(diag, ERR_TIMEOUT, "it took longer than a minute");
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        err = diag_set(diag, ERR_CONFLICT, "%s", strbuf_text(out));
    }
    strbuf_release(&text);
    return err;
}

/* --- from arguments to words -------------------------------------------- */

/* Options that stand for arguments of the same meaning. */
static const struct {
    const char *param;
    const char *option;
} option_names[] = {
    {"run", "--run"},
    {"key", "--key"},
    {"label", "--label"},
    {"from_run", "--from-run"},
    {"cap", "--cap"},
    {"policy", "--policy"},
};

static const char *option_of(const struct tool *tool, const char *param)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(option_names); ix++) {
        if (strcmp(option_names[ix].param, param) == 0 &&
            strcmp(tool->name, param) != 0) {
            return option_names[ix].option;
        }
    }
    return NULL;
}

/* Words of a command line under construction. */
struct line {
    const char *words[WORDS_MAX + 1];
    uint32_t count;
    char number[24]; /* text of an integer argument */
};

static void add(struct line *line, const char *word)
{
    if (line->count < WORDS_MAX) {
        line->words[line->count++] = word;
    }
}

/* Return an argument as a word, or NULL. */
static const char *
word_of(struct line *line, const json_t *args, const char *param)
{
    const json_t *value = json_object_get(args, param);
    if (!json_is_integer(value)) {
        return json_string_value(value);
    }
    (void)snprintf(line->number,
                   sizeof(line->number),
                   "%lld",
                   (long long)json_integer_value(value));
    return line->number;
}

/* Run the command of the tool's name. Options come first; other arguments are
 * operands, except for a fragment, which is its standard input. */
static enum err run_command(const struct tool *tool,
                            const json_t *args,
                            struct strbuf *out,
                            struct diag *diag)
{
    struct line line = {0};
    const char *input = tool_text(args, "fragment");
    add(&line, tool->name);
    for (uint32_t ix = 0; ix < tool->param_count; ix++) {
        const char *option = option_of(tool, tool->params[ix].name);
        const char *word = word_of(&line, args, tool->params[ix].name);
        if (option != NULL && word != NULL) {
            add(&line, option);
            add(&line, word);
        }
    }
    add(&line, "--");
    for (uint32_t ix = 0; ix < tool->param_count; ix++) {
        const char *name = tool->params[ix].name;
        const char *word = word_of(&line, args, name);
        if (option_of(tool, name) == NULL && word != NULL) {
            add(&line, strcmp(name, "fragment") == 0 ? "-" : word);
        }
    }
    return operator_run(line.words, input, out, diag);
}

/* --- table -------------------------------------------------------------- */

#define PARAM_RUN                                                              \
    {                                                                          \
        "run", TOOL_STRING, false, "if there are several", NULL, NULL          \
    }
#define PARAM_TASK                                                             \
    {                                                                          \
        "task", TOOL_STRING, true, NULL, NULL, NULL                            \
    }

static const struct tool_param status_params[] = {
    PARAM_RUN,
    {"label", TOOL_STRING, false, "only tasks with it", NULL, NULL},
};

static const struct tool_param task_params[] = {PARAM_RUN, PARAM_TASK};

static const struct tool_param run_params[] = {PARAM_RUN};

static const struct tool_param cap_params[] = {
    PARAM_RUN,
    {"cap", TOOL_INTEGER, true, "sessions at once", NULL, NULL},
};

static const struct tool_param answer_params[] = {
    PARAM_RUN,
    PARAM_TASK,
    {"text", TOOL_STRING, true, NULL, NULL, NULL},
};

static const struct tool_param add_params[] = {
    PARAM_RUN,
    {"key", TOOL_STRING, true, "repeating it adds nothing", NULL, NULL},
    {"fragment", TOOL_STRING, true, "YAML, see sluice-plan(5)", NULL, NULL},
};

static const struct tool_param simulate_params[] = {
    {"plan", TOOL_STRING, false, "path of a plan file", NULL, NULL},
    {"from_run", TOOL_STRING, false, "replay this run instead", NULL, NULL},
    {"cap", TOOL_INTEGER, false, "sessions at once", NULL, NULL},
    {"policy", TOOL_STRING, false, NULL, "rank|fair|fifo|lookahead", NULL},
};

#define TOOL(name_, text_, params_, reads_)                                    \
    {                                                                          \
        .name = (name_), .text = (text_), .params = (params_),                 \
        .param_count = ARRAY_COUNT(params_), .reads = (reads_),                \
        .run = run_command                                                     \
    }

const struct tool operator_tools[] = {
    TOOL("status",
         "State of all runs: what runs, waits and needs attention.",
         status_params,
         true),
    TOOL("why",
         "Why a task or group is not running, and what helps.",
         task_params,
         true),
    TOOL("log", "Output of a task's last session.", task_params, true),
    TOOL("cap", "Set how many sessions may run at once.", cap_params, false),
    TOOL("pause", "Start no more sessions of a run.", run_params, false),
    TOOL("resume", "Resume a paused run.", run_params, false),
    TOOL("hold", "Keep a task from starting.", task_params, false),
    TOOL("release", "Let a held task start.", task_params, false),
    TOOL("retry", "Retry a parked or failed task.", task_params, false),
    TOOL("answer",
         "Answer a parked task's question and retry it.",
         answer_params,
         false),
    TOOL("add", "Add tasks to an unfinished run.", add_params, false),
    TOOL("simulate",
         "Predict a plan, or replay a run with other settings.",
         simulate_params,
         true),
};

const uint32_t operator_tool_count = ARRAY_COUNT(operator_tools);
