/* SPDX-License-Identifier: MIT */
#include "agent/plant.h"

#include "exec/attempt_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether the working directory is a checkout that sluice has made. */
static bool is_own(const char *common_dir)
{
    const char *branch = getenv("SLUICE_BRANCH");
    return common_dir != NULL && branch != NULL && branch[0] != '\0';
}

/* Whether a file of a session that was killed is still here. */
static bool is_left(const char *file, const char *text)
{
    struct strbuf found = {0};
    bool same = attempt_file_read(".", file, &found, NULL) == ERR_OK &&
                strcmp(strbuf_text(&found), text) == 0;
    strbuf_release(&found);
    return same;
}

/* Append the file to the names that git ignores in this repository. */
static bool exclude(const char *common_dir, const char *file)
{
    struct strbuf path = {0};
    struct strbuf line = {0};
    struct strbuf dir = {0};
    struct strbuf known = {0};
    strbuf_addf(&dir, "%s/info", common_dir);
    strbuf_addf(&path, "%s/exclude", strbuf_text(&dir));
    strbuf_addf(&line, "/%s\n", file);
    bool listed =
        attempt_file_read(strbuf_text(&dir), "exclude", &known, NULL) ==
            ERR_OK &&
        strstr(strbuf_text(&known), strbuf_text(&line)) != NULL;
    strbuf_release(&dir);
    strbuf_release(&known);
    if (listed) {
        strbuf_release(&path);
        strbuf_release(&line);
        return true;
    }
    int fd = open(strbuf_text(&path),
                  O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
                  0600);
    bool done =
        fd >= 0 && attempt_file_write_all(fd, strbuf_text(&line), line.len);
    if (fd >= 0) {
        (void)close(fd);
    }
    strbuf_release(&path);
    strbuf_release(&line);
    return done;
}

/* Append the directory of a relative path, if it has one. */
static void add_dir(struct strbuf *out, const char *file)
{
    const char *slash = strrchr(file, '/');
    strbuf_add(out, file, slash != NULL ? (size_t)(slash - file) : 0);
}

const char *plant_put(struct adapter_command *command, const char *common_dir)
{
    const char *file = command->file;
    if (file == NULL || command->file_text == NULL || !is_own(common_dir)) {
        return NULL;
    }
    if (is_left(file, command->file_text)) {
        plant_drop(file);
    }
    if (access(file, F_OK) == 0 || !exclude(common_dir, file)) {
        return NULL;
    }
    struct strbuf dir = {0};
    add_dir(&dir, file);
    bool made =
        dir.len == 0 || mkdir(strbuf_text(&dir), 0700) == 0 || errno == EEXIST;
    strbuf_release(&dir);
    int fd = made ? open(file,
                         O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                         0600)
                  : -1;
    if (fd < 0) {
        return NULL;
    }
    const char *text = command->file_text;
    bool written = attempt_file_write_all(fd, text, strlen(text));
    (void)close(fd);
    if (!written) {
        plant_drop(file);
    } else if (command->file_variable != NULL) {
        adapter_add_env(command, command->file_variable, "true");
    }
    return written ? file : NULL;
}

void plant_drop(const char *file)
{
    struct strbuf dir = {0};
    if (file != NULL && unlink(file) == 0) {
        add_dir(&dir, file);
    }
    if (dir.len > 0) {
        (void)rmdir(strbuf_text(&dir));
    }
    strbuf_release(&dir);
}
