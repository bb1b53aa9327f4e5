/* SPDX-License-Identifier: MIT */
#include "agent/rollout.h"

#include "base/mem.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { DEPTH = 3, LINE_BYTES_MAX = 4 << 20 };

static void
take_window(struct adapter_seen *seen, const json_t *limits, const char *name)
{
    const json_t *window = json_object_get(limits, name);
    double percent = adapter_number(window, "used_percent");
    int64_t resets_at = adapter_int(window, "resets_at");
    int64_t minutes = adapter_int(window, "window_minutes");
    char label[32];
    if (!json_is_object(window)) {
        return;
    }
    if (minutes >= 1440) {
        (void)
            snprintf(label, sizeof(label), "%lldd", (long long)minutes / 1440);
    } else {
        (void)snprintf(label, sizeof(label), "%lldh", (long long)minutes / 60);
    }
    adapter_set_meter(seen, label, percent, resets_at);
    if (percent >= 100 && resets_at > seen->retry_at) {
        seen->retry_at = resets_at;
    }
}

void rollout_take_line(struct adapter_seen *seen, const char *line, size_t len)
{
    json_t *event = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
    const json_t *payload = json_object_get(event, "payload");
    if (adapter_is(payload, "type", "token_count")) {
        const json_t *limits = json_object_get(payload, "rate_limits");
        const json_t *info = json_object_get(payload, "info");
        const json_t *total = json_object_get(info, "total_token_usage");
        seen->retry_at = 0;
        take_window(seen, limits, "primary");
        take_window(seen, limits, "secondary");
        if (json_is_object(total)) {
            seen->usage = (struct adapter_usage){
                .input = adapter_int(total, "input_tokens"),
                .cached = adapter_int(total, "cached_input_tokens"),
                .output = adapter_int(total, "output_tokens"),
                .known = true,
                .whole = true,
            };
        }
    } else if (adapter_is(payload, "type", "task_complete")) {
        const json_t *error = json_object_get(payload, "error");
        seen->cause =
            adapter_is(error, "codex_error_info", "usage_limit_exceeded")
                ? ADAPTER_LIMIT
                : ADAPTER_NONE;
    }
    json_decref(event);
}

/* The file that is looked for, and the best one so far. */
struct search {
    const char *thread; /* NULL: the newest */
    struct strbuf best;
    struct timespec time;
};

static void offer(struct search *search, const char *path, const char *name)
{
    struct stat stat;
    if (strncmp(name, "rollout-", strlen("rollout-")) != 0 ||
        (search->thread != NULL && strstr(name, search->thread) == NULL) ||
        lstat(path, &stat) != 0 || !S_ISREG(stat.st_mode)) {
        return;
    }
    if (search->best.len == 0 || stat.st_mtim.tv_sec > search->time.tv_sec ||
        (stat.st_mtim.tv_sec == search->time.tv_sec &&
         stat.st_mtim.tv_nsec > search->time.tv_nsec)) {
        strbuf_clear(&search->best);
        strbuf_adds(&search->best, path);
        search->time = stat.st_mtim;
    }
}

/* Newest names first: years, months and days sort as texts do. */
static int descending(const void *a, const void *b)
{
    return strcmp(*(const char *const *)b, *(const char *const *)a);
}

/* Names in a folder, newest first; the caller frees them. */
static char **list(const char *path, size_t *count_out)
{
    DIR *folder = opendir(path);
    char **names = NULL;
    size_t capacity = 0;
    const struct dirent *entry;
    *count_out = 0;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        if (*count_out == capacity) {
            capacity = capacity * 2 + 16;
            names = mem_resize(names, capacity, sizeof(names[0]));
        }
        names[(*count_out)++] =
            mem_strndup(entry->d_name, strlen(entry->d_name));
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    if (*count_out > 0) {
        qsort(names, *count_out, sizeof(names[0]), descending);
    }
    return names;
}

/* Search a folder of sessions, at most DEPTH deep, newest day first. */
static void search_in(struct search *search, const char *path, int depth)
{
    size_t count = 0;
    char **names = list(path, &count);
    for (size_t ix = 0; ix < count; ix++) {
        struct strbuf next = {0};
        strbuf_addf(&next, "%s/%s", path, names[ix]);
        if (depth == DEPTH) {
            offer(search, strbuf_text(&next), names[ix]);
        } else if (search->best.len == 0) {
            search_in(search, strbuf_text(&next), depth + 1);
        }
        strbuf_release(&next);
        mem_free(names[ix]);
    }
    mem_free(names);
}

static void read_lines(struct adapter_seen *seen, const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t len;
    while (file != NULL && (len = getline(&line, &capacity, file)) > 0) {
        if (len < LINE_BYTES_MAX) {
            rollout_take_line(seen, line, (size_t)len);
        }
    }
    free(line);
    if (file != NULL) {
        (void)fclose(file);
    }
}

bool rollout_read(struct adapter_seen *seen, const char *thread)
{
    const char *codex_home = getenv("CODEX_HOME");
    const char *home = getenv("HOME");
    struct search search = {.thread = thread};
    struct strbuf path = {0};
    if (codex_home != NULL && codex_home[0] != '\0') {
        strbuf_addf(&path, "%s/sessions", codex_home);
    } else {
        strbuf_addf(&path, "%s/.codex/sessions", home != NULL ? home : "");
    }
    search_in(&search, strbuf_text(&path), 0);
    bool found = search.best.len > 0;
    if (found) {
        read_lines(seen, strbuf_text(&search.best));
    }
    strbuf_release(&search.best);
    strbuf_release(&path);
    return found;
}

/* Read "Nov 19th, 2026 " into *time, which moves *at on. */
static bool take_date(const char **at, struct tm *time)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char name[4] = {0};
    int day = 0;
    int year = 0;
    int len = 0;
    if (sscanf(*at, "%3s %2d%*2[a-z], %4d %n", name, &day, &year, &len) != 3) {
        return false;
    }
    const char *month = strstr(months, name);
    if (month == NULL || strlen(name) != 3 || (month - months) % 3 != 0) {
        return false;
    }
    time->tm_mon = (int)(month - months) / 3;
    time->tm_mday = day;
    time->tm_year = year - 1900;
    *at += len;
    return true;
}

int64_t rollout_parse_time(const char *text, int64_t now)
{
    static const char before[] = "try again at ";
    const char *at = strstr(text, before);
    time_t seconds = (time_t)now;
    struct tm time;
    int hour = 0;
    int minute = 0;
    char half = '\0';
    if (at == NULL || localtime_r(&seconds, &time) == NULL) {
        return 0;
    }
    at += strlen(before);
    bool dated = take_date(&at, &time);
    if (sscanf(at, "%2d:%2d %c", &hour, &minute, &half) != 3 || hour < 1 ||
        hour > 12 || minute < 0 || minute > 59 ||
        (half != 'A' && half != 'P')) {
        return 0;
    }
    time.tm_hour = hour % 12 + (half == 'P' ? 12 : 0);
    time.tm_min = minute;
    time.tm_sec = 0;
    time.tm_isdst = -1;
    time_t result = mktime(&time);
    if (!dated && result != (time_t)-1 && result <= seconds) {
        time.tm_mday++; /* tomorrow */
        time.tm_isdst = -1;
        result = mktime(&time);
    }
    return result > 0 ? (int64_t)result : 0;
}
