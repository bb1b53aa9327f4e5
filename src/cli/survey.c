/* SPDX-License-Identifier: MIT */
/*
 * One table lists the test commands; the first match is used. A Makefile target
 * or a package.json script is the project's own choice and precedes guesses
 * from the presence of a file. Commands must work in a fresh checkout, so the
 * JavaScript commands install packages first.
 *
 * git runs without the environment variables that redirect it.
 */
#include "cli/survey.h"

#include "agent/runner.h"
#include "base/macros.h"
#include "base/mem.h"
#include "base/xml.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 1 << 20, GIT_WORDS_MAX = 16 };

/* --- files -------------------------------------------------------------- */

static bool has_file(const char *dir, const char *name)
{
    struct strbuf path = {0};
    strbuf_addf(&path, "%s/%s", dir, name);
    bool there = access(strbuf_text(&path), F_OK) == 0;
    strbuf_release(&path);
    return there;
}

/* Append the first FILE_BYTES_MAX of a regular file; false: not found. */
static bool read_file(struct strbuf *out, const char *dir, const char *name)
{
    struct strbuf path = {0};
    struct stat info = {0};
    strbuf_addf(&path, "%s/%s", dir, name);
    FILE *file = stat(strbuf_text(&path), &info) == 0 && S_ISREG(info.st_mode)
                     ? fopen(strbuf_text(&path), "re")
                     : NULL;
    strbuf_release(&path);
    if (file == NULL) {
        return false;
    }
    char piece[4096];
    size_t got = 0;
    while (out->len < FILE_BYTES_MAX &&
           (got = fread(piece, 1, sizeof(piece), file)) > 0) {
        strbuf_add(out, piece, got);
    }
    (void)fclose(file);
    return true;
}

static bool file_contains(const char *dir, const char *name, const char *text)
{
    struct strbuf content = {0};
    bool found = read_file(&content, dir, name) &&
                 strstr(strbuf_text(&content), text) != NULL;
    strbuf_release(&content);
    return found;
}

/* --- test commands ------------------------------------------------------ */

/* Whether a makefile line is a rule for this target. */
static bool is_rule(const char *line, const char *target)
{
    const char *colon = line + strcspn(line, ":\n#=");
    if (*colon != ':' || colon[1] == '=' || line[0] == '\t') {
        return false;
    }
    for (const char *at = line; at < colon;) {
        at += strspn(at, " \t");
        size_t len = strcspn(at, " \t:&");
        if (len == strlen(target) && memcmp(at, target, len) == 0) {
            return true;
        }
        at += len + (at[len] == '&' ? 1 : 0);
    }
    return false;
}

static bool makefile_has(const char *dir, const char *target)
{
    /* In the search order of make. */
    static const char *const names[] = {"GNUmakefile", "makefile", "Makefile"};
    struct strbuf content = {0};
    bool found = false;
    for (size_t ix = 0; ix < ARRAY_COUNT(names); ix++) {
        if (read_file(&content, dir, names[ix])) {
            break;
        }
    }
    for (const char *line = strbuf_text(&content); *line != '\0' && !found;) {
        found = is_rule(line, target);
        line += strcspn(line, "\n");
        line += *line == '\n' ? 1 : 0;
    }
    strbuf_release(&content);
    return found;
}

/* Whether package.json has a test script other than npm's placeholder. */
static bool has_test_script(const char *dir)
{
    struct strbuf content = {0};
    json_t *json = NULL;
    if (read_file(&content, dir, "package.json")) {
        json = json_loadb(strbuf_text(&content), content.len, 0, NULL);
    }
    strbuf_release(&content);
    const char *script = json_string_value(
        json_object_get(json_object_get(json, "scripts"), "test"));
    bool found = script != NULL && strstr(script, "no test specified") == NULL;
    json_decref(json);
    return found;
}

static const char *script_command(const char *dir)
{
    if (!has_test_script(dir)) {
        return NULL;
    }
    if (has_file(dir, "pnpm-lock.yaml")) {
        return "pnpm install --frozen-lockfile && pnpm test";
    }
    if (has_file(dir, "yarn.lock")) {
        return "yarn install --frozen-lockfile && yarn test";
    }
    return has_file(dir, "package-lock.json") ? "npm ci && npm test"
                                              : "npm install && npm test";
}

/* Return the shell command that tests the repository at `dir`, guessed from its
 * files; NULL: unknown. */
static const char *test_command(const char *dir)
{
    /* A file, and a string that it must contain (NULL: any content). */
    static const struct {
        const char *file;
        const char *text;
        const char *command;
    } signs[] = {
        {"Cargo.toml", NULL, "cargo test"},
        {"go.mod", NULL, "go test ./..."},
        {"pytest.ini", NULL, "python3 -m pytest"},
        {"conftest.py", NULL, "python3 -m pytest"},
        {"tests/conftest.py", NULL, "python3 -m pytest"},
        {"pyproject.toml", "pytest", "python3 -m pytest"},
        {"setup.cfg", "pytest", "python3 -m pytest"},
        {"tox.ini", "pytest", "python3 -m pytest"},
        {"meson.build", NULL, "meson setup build && meson test -C build"},
        {"CMakeLists.txt",
         "enable_testing",
         "cmake -B build && cmake --build build && ctest --test-dir build"},
        {"gradlew", NULL, "./gradlew test"},
        {"pom.xml", NULL, "mvn -q test"},
        {"mix.exs", NULL, "mix test"},
    };
    if (makefile_has(dir, "test")) {
        return "make test";
    }
    if (makefile_has(dir, "check")) {
        return "make check";
    }
    const char *command = script_command(dir);
    for (size_t ix = 0; command == NULL && ix < ARRAY_COUNT(signs); ix++) {
        bool found = signs[ix].text == NULL
                         ? has_file(dir, signs[ix].file)
                         : file_contains(dir, signs[ix].file, signs[ix].text);
        command = found ? signs[ix].command : NULL;
    }
    return command;
}

/* --- repositories ------------------------------------------------------- */

/* Run git in a directory; return its exit code, and the first line of its
 * output in *out. `words` is NULL-terminated. */
static int
ask_git(struct strbuf *out, const char *dir, const char *const *words)
{
    const char *argv[GIT_WORDS_MAX + 10] = {
        "env",
        "-u",
        "GIT_DIR",
        "-u",
        "GIT_WORK_TREE",
        "-u",
        "GIT_INDEX_FILE",
        "git",
        "-C",
        dir,
    };
    size_t count = 10;
    for (; *words != NULL && count < ARRAY_COUNT(argv) - 1; words++) {
        argv[count++] = *words;
    }
    strbuf_clear(out);
    int code = runner_output(out, argv);
    if (out->len > 0) {
        out->len = strcspn(out->text, "\n");
        out->text[out->len] = '\0';
    }
    return code;
}

static bool has_commit(const char *dir, const char *branch)
{
    struct strbuf name = {0};
    struct strbuf out = {0};
    strbuf_addf(&name, "refs/heads/%s^{commit}", branch);
    const char *const words[] = {"rev-parse",
                                 "--verify",
                                 "--quiet",
                                 strbuf_text(&name),
                                 NULL};
    bool there = ask_git(&out, dir, words) == 0;
    strbuf_release(&name);
    strbuf_release(&out);
    return there;
}

/* Return the branch of HEAD, else a usual branch; NULL: none has a commit. */
static char *find_base(const char *dir)
{
    static const char *const usual[] = {"main", "master", "dev"};
    static const char *const words[] = {"symbolic-ref",
                                        "--quiet",
                                        "--short",
                                        "HEAD",
                                        NULL};
    struct strbuf head = {0};
    char *base = NULL;
    if (ask_git(&head, dir, words) == 0 && has_commit(dir, head.text)) {
        base = mem_strndup(head.text, head.len);
    }
    for (size_t ix = 0; base == NULL && ix < ARRAY_COUNT(usual); ix++) {
        if (has_commit(dir, usual[ix])) {
            base = mem_strndup(usual[ix], strlen(usual[ix]));
        }
    }
    strbuf_release(&head);
    return base;
}

static bool is_git(const char *dir)
{
    static const char *const words[] = {"rev-parse", "--git-dir", NULL};
    struct strbuf out = {0};
    bool is = has_file(dir, ".git") && ask_git(&out, dir, words) == 0;
    strbuf_release(&out);
    return is;
}

/* Whether a name is UTF-8 without control characters. */
static bool is_text(const char *name)
{
    size_t len = 1;
    while (*name != '\0' &&
           (len = xml_character_len((const unsigned char *)name)) > 0) {
        name += len;
    }
    return len > 0;
}

/* Add the repository `path` in `dir`. */
static enum err add_repo(struct survey *survey,
                         const char *dir,
                         const char *path,
                         struct diag *diag)
{
    if (survey->repo_count == SURVEY_REPOS_MAX) {
        return diag_set(diag,
                        ERR_LIMIT,
                        "%s: more than %d repositories",
                        dir,
                        SURVEY_REPOS_MAX);
    }
    struct strbuf whole = {0};
    strbuf_addf(&whole, "%s/%s", dir, path);
    struct survey_repo repo = {
        .path = mem_strndup(path, strlen(path)),
        .test = test_command(strbuf_text(&whole)),
    };
    if (!is_text(path)) {
        repo.fault = "its name is not UTF-8; rename it";
    } else {
        repo.base = find_base(strbuf_text(&whole));
        repo.fault = repo.base == NULL ? "no branch with a commit" : NULL;
    }
    survey->repos = mem_resize(survey->repos,
                               survey->repo_count + 1,
                               sizeof(survey->repos[0]));
    survey->repos[survey->repo_count++] = repo;
    strbuf_release(&whole);
    return ERR_OK;
}

static int by_path(const void *left, const void *right)
{
    const struct survey_repo *a = left;
    const struct survey_repo *b = right;
    return strcmp(a->path, b->path);
}

/* Add the repositories in subdirectories. */
static enum err
add_below(struct survey *survey, const char *dir, struct diag *diag)
{
    DIR *stream = opendir(dir);
    if (stream == NULL) {
        return diag_set(diag, ERR_IO, "%s: %s", dir, strerror(errno));
    }
    enum err err = ERR_OK;
    const struct dirent *entry;
    while (err == ERR_OK && (entry = readdir(stream)) != NULL) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        struct strbuf path = {0};
        strbuf_addf(&path, "%s/%s", dir, entry->d_name);
        if (is_git(strbuf_text(&path))) {
            err = add_repo(survey, dir, entry->d_name, diag);
        }
        strbuf_release(&path);
    }
    (void)closedir(stream);
    if (survey->repo_count > 1) {
        qsort(survey->repos,
              survey->repo_count,
              sizeof(survey->repos[0]),
              by_path);
    }
    return err;
}

/* --- agents ------------------------------------------------------------- */

bool survey_is_in_path(const char *name)
{
    const char *path = getenv("PATH");
    bool found = false;
    while (path != NULL && *path != '\0' && !found) {
        size_t len = strcspn(path, ":");
        struct strbuf dir = {0};
        struct stat info = {0};
        strbuf_add(&dir, len > 0 ? path : ".", len > 0 ? len : 1);
        strbuf_addf(&dir, "/%s", name);
        found = stat(strbuf_text(&dir), &info) == 0 && S_ISREG(info.st_mode) &&
                access(strbuf_text(&dir), X_OK) == 0;
        strbuf_release(&dir);
        path += len + (path[len] == ':' ? 1 : 0);
    }
    return found;
}

enum err survey_make(struct survey *out, const char *dir, struct diag *diag)
{
    *out = (struct survey){0};
    for (uint32_t ix = 0;
         adapter_at(ix) != NULL && out->agent_count < SURVEY_AGENTS_MAX;
         ix++) {
        if (survey_is_in_path(adapter_at(ix)->name)) {
            out->agents[out->agent_count++] = adapter_at(ix);
        }
    }
    return is_git(dir) ? add_repo(out, dir, ".", diag)
                       : add_below(out, dir, diag);
}

void survey_release(struct survey *survey)
{
    for (uint32_t ix = 0; ix < survey->repo_count; ix++) {
        mem_free(survey->repos[ix].path);
        mem_free(survey->repos[ix].base);
    }
    mem_free(survey->repos);
    *survey = (struct survey){0};
}
