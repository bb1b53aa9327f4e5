/* SPDX-License-Identifier: MIT */
/*
 * Settings are passed to git in its environment: GIT_CONFIG_KEY_n overrides any
 * file, and its names and values need no quoting. Keys that name a program are
 * overridden in the repository's own configuration; the user's global
 * configuration is trusted and stays in effect.
 *
 * The set of keys depends on the directory (`includeIf`, config.worktree), and
 * sessions change the configuration. So it is read again before every call that
 * could run a program, in the directory of that call. A session can still
 * change it in between, but such a session could as well run its command
 * directly.
 */
#include "git/git.h"

#include "base/arena.h"
#include "base/invariant.h"
#include "base/mem.h"
#include "git/hub_push.h"
#include "git/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum {
    ARGS_MAX = 300,
    REFS_MAX = 35,    /* read in one call */
    CODE_ERROR = 128, /* first code of git's own errors */
    ID_BYTES_MIN = 40,
};

struct git {
    struct arena arena;
    const char *path;
    const char *common_dir;
    const char **env;
    uint32_t env_count;
    uint32_t env_capacity;
    size_t config_count;
    bool helper_reset; /* the repository's credential helpers are off */
    bool stale; /* a command ran that may have changed the configuration */
    const char *looked_at; /* place of the last check, or NULL */
    struct strbuf keys;    /* overridden keys, each NUL-terminated */
    const char *hub;       /* URL, or NULL */
    const char *name;      /* for messages */
    int64_t patience_ns;
};

/* The only GIT_ variables of the user's environment that git gets. */
static const char *const kept_variables[] = {
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
};

static const char *const variables[] = {
    "GIT_ASKPASS=true",
    "GIT_AUTHOR_EMAIL=sluice@localhost",
    "GIT_AUTHOR_NAME=sluice",
    "GIT_COMMITTER_EMAIL=sluice@localhost",
    "GIT_COMMITTER_NAME=sluice",
    "GIT_EDITOR=true",
    "GIT_GRAFT_FILE=/dev/null/none", /* GIT_NO_GRAFTS */
    "GIT_NO_REPLACE_OBJECTS=1",
    "GIT_OPTIONAL_LOCKS=0",
    "GIT_PAGER=cat",
    "GIT_TERMINAL_PROMPT=0",
    "LC_ALL=C",
};

/* Only a push and a fetch may use a protocol: in a partial clone, other
 * commands would fetch missing objects with programs that the repository names.
 */
#define PROTOCOLS "GIT_ALLOW_PROTOCOL="
static const char protocols_none[] = PROTOCOLS "none";
static const char protocols_remote[] = PROTOCOLS "file:http:https:ssh";
static const char protocols_foreign[] = PROTOCOLS "http:https:ssh";
static const char protocols_hub[] = PROTOCOLS "file:git:http:https:ssh";

/* ssh asks nobody, and does not wait for a server that is gone. */
#define SSH_COMMAND                                                            \
    "ssh -oBatchMode=yes -oConnectTimeout=30 -oServerAliveInterval=15 "        \
    "-oServerAliveCountMax=4"

/*
 * Wait a while for a ref that a live process has locked. Read the parents of
 * commits from the commits, not from the commit-graph file. Notice every change
 * of a file: a session can set all its times but the ctime. Keep the index in
 * one file, which can be copied.
 */
static const char *const settings[][2] = {
    {"advice.detachedHead", "false"},
    {"advice.graftFileDeprecated", "false"},
    {"advice.pushUpdateRejected", "false"},
    {"commit.gpgSign", "false"},
    {"core.askPass", ""},
    {"core.checkStat", "default"},
    {"core.commitGraph", "false"},
    {"core.editor", "true"},
    {"core.filesRefLockTimeout", "10000"},
    {"core.fsmonitor", "false"},
    {"core.gitProxy", ""},
    {"core.hooksPath", "/dev/null"},
    {"core.packedRefsTimeout", "10000"},
    {"core.preferSymlinkRefs", "false"},
    {"core.splitIndex", "false"},
    {"core.sshCommand", SSH_COMMAND},
    {"core.trustCtime", "true"},
    {"gc.auto", "0"},
    {"gpg.openpgp.program", "false"},
    {"gpg.program", "false"},
    {"gpg.ssh.defaultKeyCommand", ""},
    {"gpg.ssh.program", "false"},
    {"gpg.x509.program", "false"},
    {"http.lowSpeedLimit", "1"},
    {"http.lowSpeedTime", "60"},
    {"maintenance.auto", "false"},
    {"merge.autoStash", "false"},
    {"merge.verifySignatures", "false"},
    {"push.gpgSign", "false"},
    {"push.negotiate", "false"},
    {"push.recurseSubmodules", "no"},
    {"rerere.enabled", "false"},
    {"sequence.editor", "true"},
    {"submodule.recurse", "false"},
};

/*
 * Keys of the repository's own configuration that name programs, or files to
 * write. A merge driver that is not run yields a conflict. Hooks can be
 * configured since git 2.54.
 */
static const struct {
    const char *begin;
    const char *end;
    const char *value;
} programs[] = {
    {"filter.", ".clean", ""},
    {"filter.", ".process", ""},
    {"filter.", ".required", "false"},
    {"filter.", ".smudge", ""},
    {"hook.", ".command", "true"},
    {"http.", ".savecookies", "false"},
    {"merge.", ".driver", "false"},
    {"remote.", ".receivepack", "git-receive-pack"},
    {"remote.", ".uploadpack", "git-upload-pack"},
};

/* The sections that contain these keys. */
#define OWN_KEYS "^(credential|filter|hook|http|merge|remote)\\."

/* Commands that run neither hooks nor filters nor drivers. */
static const char *const harmless[] = {
    "cat-file",
    "commit-tree",
    "config",
    "for-each-ref",
    "hash-object",
    "index-pack",
    "log",
    "merge-base",
    "pack-objects",
    "remote",
    "rev-list",
    "rev-parse",
    "unpack-objects",
};

/* Commands that run hooks only: a new hook needs a change of configuration. */
static const char *const hooked[] = {
    "clean",
    "symbolic-ref",
    "update-ref",
    "worktree",
    "write-tree",
};

static void add_env(struct git *git, const char *text)
{
    MEM_GROW(git->env, git->env_count, git->env_capacity);
    git->env[git->env_count++] = text;
    MEM_GROW(git->env, git->env_count, git->env_capacity);
    git->env[git->env_count] = NULL;
}

static void add_envf(struct git *git, struct strbuf *text)
{
    add_env(git, arena_strndup(&git->arena, strbuf_text(text), text->len));
    strbuf_clear(text);
}

static void add_setting(struct git *git, const char *name, const char *value)
{
    struct strbuf text = {0};
    strbuf_addf(&text, "GIT_CONFIG_KEY_%zu=%s", git->config_count, name);
    add_envf(git, &text);
    strbuf_addf(&text, "GIT_CONFIG_VALUE_%zu=%s", git->config_count, value);
    add_envf(git, &text);
    strbuf_release(&text);
    git->config_count++;
}

/* Set the number of settings. Of equal keys, git uses the last. */
static void set_count(struct git *git)
{
    static const char name[] = "GIT_CONFIG_COUNT=";
    struct strbuf text = {0};
    strbuf_addf(&text, "%s%zu", name, git->config_count);
    const char *copy = arena_strndup(&git->arena, strbuf_text(&text), text.len);
    strbuf_release(&text);
    for (size_t ix = 0; ix < git->env_count; ix++) {
        if (strncmp(git->env[ix], name, strlen(name)) == 0) {
            git->env[ix] = copy;
            return;
        }
    }
    add_env(git, copy);
}

static bool is_kept(const char *variable)
{
    if (strncmp(variable, "GIT_", 4) != 0) {
        return strncmp(variable, "LC_ALL=", 7) != 0;
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(kept_variables); ix++) {
        size_t len = strlen(kept_variables[ix]);
        if (strncmp(variable, kept_variables[ix], len) == 0 &&
            variable[len] == '=') {
            return true;
        }
    }
    return false;
}

static void make_env(struct git *git)
{
    for (char **at = environ; *at != NULL; at++) {
        if (is_kept(*at)) {
            add_env(git, *at);
        }
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(variables); ix++) {
        add_env(git, variables[ix]);
    }
    add_env(git, protocols_none);
    for (size_t ix = 0; ix < ARRAY_COUNT(settings); ix++) {
        add_setting(git, settings[ix][0], settings[ix][1]);
    }
    set_count(git);
}

static bool has_end(const char *text, const char *end)
{
    size_t len = strlen(text);
    size_t end_len = strlen(end);
    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

/* Add a key to the set; return whether it is new. */
static bool is_new(struct git *git, const char *key)
{
    for (size_t at = 0; at < git->keys.len;
         at += strlen(git->keys.text + at) + 1) {
        if (strcmp(git->keys.text + at, key) == 0) {
            return false;
        }
    }
    strbuf_add(&git->keys, key, strlen(key) + 1);
    return true;
}

/* Override one key of the repository's configuration if it names a program. */
static void disarm(struct git *git, const char *key)
{
    for (size_t ix = 0; ix < ARRAY_COUNT(programs); ix++) {
        if (strncmp(key, programs[ix].begin, strlen(programs[ix].begin)) == 0 &&
            has_end(key, programs[ix].end) && is_new(git, key)) {
            add_setting(git,
                        arena_strndup(&git->arena, key, strlen(key)),
                        programs[ix].value);
        }
    }
    if (strncmp(key, "credential.", strlen("credential.")) == 0 &&
        has_end(key, "helper") && !git->helper_reset) {
        git->helper_reset = true;
        add_setting(git, "credential.helper", "");
    }
}

/* Return the last line of git's messages, the most specific line. */
static const char *last_line(struct strbuf *text)
{
    while (text->len > 0 && text->text[text->len - 1] == '\n') {
        text->text[--text->len] = '\0';
    }
    const char *last = strrchr(strbuf_text(text), '\n');
    return last != NULL ? last + 1 : strbuf_text(text);
}

/* Return the command of git, behind the settings. */
static const char *command_of(const struct git_call *call)
{
    size_t ix = 0;
    while (call->args[ix + 1] != NULL && strcmp(call->args[ix], "-c") == 0) {
        ix += 2;
    }
    return call->args[ix];
}

/* Map an exit status to an error. */
static enum err judge(const struct git_call *call,
                      const struct proc *proc,
                      const struct proc_end *end,
                      struct diag *diag)
{
    bool good = end->cut || (end->code >= 0 && end->code <= call->codes);
    if (!call->quiet && call->errors == NULL && proc->errors->len > 0) {
        log_text(strbuf_text(proc->errors));
    }
    if (good) {
        return ERR_OK;
    }
    if (end->signal != 0) {
        return diag_set(diag,
                        ERR_UNAVAILABLE,
                        "git %s was killed by signal %d",
                        command_of(call),
                        end->signal);
    }
    return diag_set(diag,
                    ERR_CONFLICT,
                    "git %s in %s: %s (exit code %d)",
                    command_of(call),
                    proc->folder,
                    call->errors == NULL ? last_line(proc->errors) : "failed",
                    end->code);
}

static bool
is_among(const char *const *names, size_t count, const char *command)
{
    for (size_t ix = 0; ix < count; ix++) {
        if (strcmp(names[ix], command) == 0) {
            return true;
        }
    }
    return false;
}

static const char *protocols_of(const struct git_call *call)
{
    if (call->network == GIT_FOREIGN || call->network == GIT_HUB) {
        return call->network == GIT_HUB ? protocols_hub : protocols_foreign;
    }
    bool push = strcmp(command_of(call), "push") == 0;
    return push || call->network == GIT_REMOTE ? protocols_remote
                                               : protocols_none;
}

/* Append "NAME=VALUE", NUL-terminated, to the variables. */
static void add_variable(struct strbuf *out,
                         const char *name,
                         const char *value,
                         const char *end)
{
    strbuf_addf(out, "%s=%s%s", name, value, end);
    strbuf_add(out, "", 1);
}

/*
 * Append the variables that direct one call. The folder is the working tree,
 * regardless of core.worktree. With `objects`, new objects are created there,
 * and the repository's are borrowed.
 */
static void add_variables(struct strbuf *out,
                          const struct git *git,
                          const struct git_call *call)
{
    const char *dir = call->dir != NULL ? call->dir : call->folder;
    if (call->folder != NULL) {
        add_variable(out, "GIT_WORK_TREE", call->folder, "");
        add_variable(out, "GIT_DIR", dir, call->dir != NULL ? "" : "/.git");
    }
    if (call->objects != NULL) {
        add_variable(out, "GIT_OBJECT_DIRECTORY", call->objects, "");
        add_variable(out,
                     "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                     git->common_dir,
                     "/objects");
    }
}

/* Return the environment of one call, for mem_free(). */
static const char **
env_of(const struct git *git, const struct git_call *call, struct strbuf *own)
{
    enum { OWN_MAX = 4 };
    const char **env = mem_zalloc(git->env_count + OWN_MAX + 1, sizeof(env[0]));
    for (size_t ix = 0; ix < git->env_count; ix++) {
        bool protocols = git->env[ix] == protocols_none;
        env[ix] = protocols ? protocols_of(call) : git->env[ix];
    }
    size_t count = git->env_count;
    add_variables(own, git, call);
    for (size_t at = 0; at < own->len; at += strlen(own->text + at) + 1) {
        INVARIANT(count < git->env_count + OWN_MAX);
        env[count++] = own->text + at;
    }
    return env;
}

/* Call git with the current settings. */
static enum err call_git(const struct git *git,
                         const struct git_call *call,
                         int *code_out,
                         struct diag *diag)
{
    size_t count = 0;
    while (call->args[count] != NULL) {
        count++;
    }
    const char **argv = mem_zalloc(count + 2, sizeof(argv[0]));
    argv[0] = "git";
    memcpy(argv + 1, call->args, count * sizeof(argv[0]));
    struct strbuf errors = {0};
    struct strbuf own = {0};
    const char **env = env_of(git, call, &own);
    struct proc proc = {
        .argv = argv,
        .env = env,
        .folder = call->folder != NULL ? call->folder : git->path,
        .input = call->input,
        .input_fd = call->input_fd,
        .output = call->output,
        .output_fd = call->output_fd,
        .output_max = call->output_max,
        .errors = call->errors != NULL ? call->errors : &errors,
    };
    struct proc_end end;
    enum err err = proc_run(&proc, &end, diag);
    if (err == ERR_OK) {
        if (code_out != NULL) {
            *code_out = end.code;
        }
        if (call->cut_out != NULL) {
            *call->cut_out = end.cut;
        }
        err = judge(call, &proc, &end, diag);
    }
    strbuf_release(&errors);
    strbuf_release(&own);
    mem_free(env);
    mem_free(argv);
    return err;
}

/* Override the programs that the repository configures for calls in a
 * directory; NULL: in the repository. */
static enum err disarm_all(struct git *git,
                           const char *folder,
                           const char *dir,
                           struct diag *diag)
{
    struct strbuf list = {0};
    struct git_call call = {
        .args = PROC_ARGS("config",
                          "--show-scope",
                          "--name-only",
                          "-z",
                          "--get-regexp",
                          OWN_KEYS),
        .folder = folder,
        .dir = dir,
        .output = &list,
        .quiet = true,
        .codes = 1,
    };
    enum err err = call_git(git, &call, NULL, diag);
    size_t at = 0;
    while (err == ERR_OK && at < list.len) { /* scope NUL key NUL */
        const char *scope = list.text + at;
        at += strlen(scope) + 1;
        if (at >= list.len) {
            break;
        }
        const char *key = list.text + at;
        at += strlen(key) + 1;
        if (strcmp(scope, "local") == 0 || strcmp(scope, "worktree") == 0) {
            disarm(git, key);
        }
    }
    strbuf_release(&list);
    set_count(git);
    return err;
}

static enum err find_common_dir(struct git *git, struct diag *diag)
{
    struct strbuf dir = {0};
    struct diag why = {0};
    struct git_call call = {
        .args = PROC_ARGS("rev-parse",
                          "--path-format=absolute",
                          "--git-common-dir"),
        .output = &dir,
        .quiet = true,
    };
    enum err err = git_call(git, &call, NULL, &why);
    size_t len = strcspn(strbuf_text(&dir), "\n");
    if (err == ERR_OK && len + 1 < dir.len) {
        err = diag_set(&why, ERR_INVALID, "its path contains a line break");
    }
    if (err == ERR_OK) {
        git->common_dir = arena_strndup(&git->arena, strbuf_text(&dir), len);
    } else if (err == ERR_CONFLICT || err == ERR_INVALID) {
        err = diag_set(diag,
                       ERR_INVALID,
                       "cannot use %s as a git repository: %s",
                       git->path,
                       why.text);
    } else {
        (void)diag_set(diag, err, "%s", why.text);
    }
    strbuf_release(&dir);
    return err;
}

struct git *git_prepare(const char *path)
{
    INVARIANT(path[0] == '/');
    struct git *git = mem_zalloc(1, sizeof(*git));
    git->path = arena_strndup(&git->arena, path, strlen(path));
    git->name = git->path;
    make_env(git);
    return git;
}

enum err git_open(struct git **out, const char *path, struct diag *diag)
{
    *out = NULL;
    struct git *git = git_prepare(path);
    enum err err = find_common_dir(git, diag);
    if (err == ERR_OK) {
        err = disarm_all(git, NULL, NULL, diag);
    }
    if (err != ERR_OK) {
        git_close(git);
        return err;
    }
    *out = git;
    return ERR_OK;
}

void git_close(struct git *git)
{
    if (git != NULL) {
        mem_free(git->env);
        strbuf_release(&git->keys);
        arena_release(&git->arena);
        mem_free(git);
    }
}

void git_set_hub(struct git *git, const char *url, const char *name)
{
    git->hub = arena_strndup(&git->arena, url, strlen(url));
    git->name = arena_strndup(&git->arena, name, strlen(name));
}

const char *git_hub(const struct git *git)
{
    return git->hub;
}

const char *git_name(const struct git *git)
{
    return git->name;
}

void git_set_patience(struct git *git, int64_t patience_ns)
{
    git->patience_ns = patience_ns;
}

int64_t git_patience(const struct git *git)
{
    return git->patience_ns;
}

const char *git_path(const struct git *git)
{
    return git->path;
}

const char *git_common_dir(const struct git *git)
{
    return git->common_dir;
}

/* Return the directory whose configuration a call uses; NULL: the user's. */
static const char *place_of(const struct git_call *call)
{
    return call->dir != NULL ? call->dir : call->folder;
}

/* Return whether a call requires a check of the configuration. Only sluice
 * writes to a git directory outside of the folder: one check is enough. */
static bool must_look(const struct git *git, const struct git_call *call)
{
    const char *command = command_of(call);
    const char *place = place_of(call);
    if (is_among(harmless, ARRAY_COUNT(harmless), command)) {
        return false;
    }
    bool known = place == NULL ||
                 (git->looked_at != NULL && strcmp(git->looked_at, place) == 0);
    return git->stale || !known ||
           (call->dir == NULL &&
            !is_among(hooked, ARRAY_COUNT(hooked), command));
}

/* Check the configuration. */
static enum err
look(struct git *git, const struct git_call *call, struct diag *diag)
{
    const char *place = place_of(call);
    enum err err = disarm_all(git, call->folder, call->dir, diag);
    if (err == ERR_OK) {
        git->stale = false;
    }
    if (err == ERR_OK && place != NULL &&
        (git->looked_at == NULL || strcmp(git->looked_at, place) != 0)) {
        git->looked_at = arena_strndup(&git->arena, place, strlen(place));
    }
    return err;
}

void git_distrust(struct git *git)
{
    git->stale = true;
}

enum err git_call(struct git *git,
                  const struct git_call *call,
                  int *code_out,
                  struct diag *diag)
{
    if (must_look(git, call)) {
        enum err err = look(git, call, diag);
        if (err != ERR_OK) {
            return err;
        }
    }
    return call_git(git, call, code_out, diag);
}

enum err git_output(struct git *git,
                    const char *const *args,
                    struct strbuf *out,
                    struct diag *diag)
{
    struct git_call call = {.args = args, .output = out};
    return git_call(git, &call, NULL, diag);
}

bool git_says(struct git *git,
              const char *folder,
              const char *const *args,
              const char *line)
{
    struct strbuf text = {0};
    size_t cursor = 0;
    struct git_call call = {
        .args = args,
        .folder = folder,
        .output = &text,
        .quiet = true,
    };
    bool good = git_call(git, &call, NULL, NULL) == ERR_OK;
    const char *said = git_next_line(&text, &cursor);
    bool same = good && said != NULL && strcmp(said, line) == 0;
    strbuf_release(&text);
    return same;
}

char *git_next_line(struct strbuf *list, size_t *cursor)
{
    if (*cursor >= list->len) {
        return NULL;
    }
    char *line = list->text + *cursor;
    size_t len = strcspn(line, "\n");
    line[len] = '\0';
    *cursor += len + 1;
    return line;
}

static enum err
parse_id(const char *text, size_t len, struct git_id *out, struct diag *diag)
{
    bool fits = len >= ID_BYTES_MIN && len < sizeof(out->text);
    if (!fits || strspn(text, "0123456789abcdef") != len) {
        return diag_set(diag,
                        ERR_IO,
                        "git printed \"%.60s\" instead of an object id",
                        text);
    }
    memcpy(out->text, text, len);
    out->text[len] = '\0';
    return ERR_OK;
}

enum err
git_first_id(const struct strbuf *text, struct git_id *out, struct diag *diag)
{
    const char *line = strbuf_text(text);
    return parse_id(line, strcspn(line, "\n"), out, diag);
}

const char *git_short_name(const char *branch)
{
    return branch + strlen("refs/heads/");
}

enum err git_resolve(struct git *git,
                     const char *name,
                     struct git_id *out,
                     struct diag *diag)
{
    struct strbuf spec = {0};
    struct strbuf line = {0};
    strbuf_addf(&spec, "%s^{commit}", name);
    int code = 0;
    struct git_call call = {
        .args = PROC_ARGS("rev-parse",
                          "--verify",
                          "--quiet",
                          "--end-of-options",
                          strbuf_text(&spec)),
        .output = &line,
        .codes = CODE_ERROR,
        .quiet = true,
    };
    enum err err = git_call(git, &call, &code, diag);
    if (err == ERR_OK && code != 0) {
        err = diag_set(diag,
                       ERR_NOT_FOUND,
                       "no branch or commit \"%s\" in %s",
                       name,
                       git->name);
    } else if (err == ERR_OK) {
        err = git_first_id(&line, out, diag);
    }
    strbuf_release(&spec);
    strbuf_release(&line);
    return err;
}

/* Store the id of one line "ID NAME" of a list of refs. */
static enum err take_ref(const char *line,
                         struct git_ref *refs,
                         size_t count,
                         struct diag *diag)
{
    size_t len = strcspn(line, " ");
    for (size_t ix = 0; line[len] == ' ' && ix < count; ix++) {
        /* git also lists the refs below the name. */
        if (strcmp(refs[ix].name, line + len + 1) == 0) {
            return parse_id(line, len, &refs[ix].id, diag);
        }
    }
    return ERR_OK;
}

enum err git_list_refs(struct git *git,
                       const char *const *prefixes,
                       struct strbuf *out,
                       struct diag *diag)
{
    const char *args[ARGS_MAX] = {"for-each-ref",
                                  "--format=%(objectname) %(refname)",
                                  "--end-of-options"};
    for (size_t ix = 0; prefixes[ix] != NULL; ix++) {
        INVARIANT(ix < REFS_MAX);
        args[3 + ix] = prefixes[ix];
    }
    return git_output(git, args, out, diag);
}

enum err git_read_refs(struct git *git,
                       struct git_ref *refs,
                       size_t count,
                       struct diag *diag)
{
    const char *names[REFS_MAX + 1] = {NULL};
    INVARIANT(count <= REFS_MAX);
    for (size_t ix = 0; ix < count; ix++) {
        refs[ix].id = (struct git_id){0};
        names[ix] = refs[ix].name;
    }
    struct strbuf list = {0};
    enum err err = git_list_refs(git, names, &list, diag);
    size_t cursor = 0;
    const char *line;
    while (err == ERR_OK && (line = git_next_line(&list, &cursor)) != NULL) {
        err = take_ref(line, refs, count, diag);
    }
    strbuf_release(&list);
    return err;
}

/* Append one line for `git update-ref --stdin`. */
static void add_change(struct strbuf *out, const struct git_ref_change *change)
{
    bool absent = change->from != NULL && change->from[0] == '\0';
    if (change->to == NULL) {
        strbuf_addf(out, "verify %s", change->ref);
    } else {
        strbuf_addf(out,
                    "%s %s %s",
                    absent ? "create" : "update",
                    change->ref,
                    change->to);
    }
    if (change->from != NULL && !absent) {
        strbuf_addf(out, " %s", change->from);
    }
    strbuf_adds(out, "\n");
}

int git_lock(const struct git *git, const char *name, int how)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/%s.lock", git->common_dir, name);
    int fd = open(strbuf_text(&path), O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
    strbuf_release(&path);
    while (fd >= 0 && flock(fd, how) != 0 && errno == EINTR) {
    }
    return fd;
}

void git_unlock_ref(const struct git *git, const char *ref)
{
    struct strbuf path = {0};
    strbuf_addf(&path,
                "%s/%.*s.lock",
                git->common_dir,
                (int)strcspn(ref, " \n"),
                ref);
    (void)unlink(strbuf_text(&path)); /* usually does not exist */
    strbuf_release(&path);
}

/* Return whether only sluice locks the ref in a line "VERB REF ...". Other
 * processes may update an existing branch. */
static bool is_only_ours(const char *line)
{
    const char *ref = line + strcspn(line, " ") + 1;
    return strncmp(line, "update ", strlen("update ")) != 0 ||
           strncmp(ref, "refs/sluice/", strlen("refs/sluice/")) == 0;
}

enum err git_transact(struct git *git,
                      const char *lines,
                      bool alone,
                      const char *why,
                      struct diag *diag)
{
    return git->hub != NULL ? hub_push(git, lines, diag)
                            : git_transact_here(git, lines, alone, why, diag);
}

enum err git_transact_here(struct git *git,
                           const char *lines,
                           bool alone,
                           const char *why,
                           struct diag *diag)
{
    /* Refs below refs/sluice change, and sluice branches are created or
     * removed, only under this lock. */
    int lock = git_lock(git, "sluice-refs", LOCK_EX);
    for (const char *at = lines; lock >= 0 && *at != '\0';
         at += strcspn(at, "\n") + 1) {
        if (alone || is_only_ours(at)) {
            git_unlock_ref(git, at + strcspn(at, " ") + 1);
        }
    }
    struct git_call call = {
        .args = PROC_ARGS("update-ref", "--no-deref", "-m", why, "--stdin"),
        .input = lines,
    };
    enum err err = git_call(git, &call, NULL, diag);
    if (lock >= 0) {
        (void)close(lock);
    }
    return err;
}

enum err git_change_refs(struct git *git,
                         const struct git_ref_change *changes,
                         size_t count,
                         const char *why,
                         struct diag *diag)
{
    struct strbuf input = {0};
    for (size_t ix = 0; ix < count; ix++) {
        add_change(&input, &changes[ix]);
    }
    enum err err = git_transact(git, strbuf_text(&input), false, why, diag);
    strbuf_release(&input);
    return err;
}

enum err git_is_ancestor(struct git *git,
                         const char *ancestor,
                         const char *commit,
                         bool *out,
                         struct diag *diag)
{
    int code = 0;
    struct git_call call = {
        .args = PROC_ARGS("merge-base", "--is-ancestor", ancestor, commit),
        .codes = 1};
    enum err err = git_call(git, &call, &code, diag);
    *out = code == 0;
    return err;
}

enum err git_read_blob(struct git *git,
                       const struct git_id *id,
                       struct strbuf *out,
                       struct diag *diag)
{
    return id->text[0] != '\0'
               ? git_output(git,
                            PROC_ARGS("cat-file", "blob", id->text),
                            out,
                            diag)
               : ERR_OK;
}

enum err git_put_blob(struct git *git,
                      const char *text,
                      struct git_id *out,
                      struct diag *diag)
{
    struct strbuf line = {0};
    struct git_call call = {
        .args = PROC_ARGS("hash-object", "-w", "--stdin"),
        .input = text,
        .output = &line,
    };
    enum err err = git_call(git, &call, NULL, diag);
    if (err == ERR_OK) {
        err = git_first_id(&line, out, diag);
    }
    strbuf_release(&line);
    return err;
}
