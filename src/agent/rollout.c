/* SPDX-License-Identifier: MIT */
#include "agent/rollout.h"

#include "base/macros.h"

#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum {
    DEPTH = 3, /* of the directories: year, month, day */
    LINE_BYTES_MAX = 4 << 20,
    LATE_S = 120, /* a time at most this late is not tomorrow's */
};
#define TIME_MAX INT64_C(9000000000) /* seconds since 1970 */

static void
take_window(struct adapter_seen *seen, const json_t *limits, const char *name)
{
    const json_t *window = json_object_get(limits, name);
    double percent = adapter_number(window, "used_percent");
    int64_t resets_at = adapter_time(window, "resets_at");
    long long minutes = (long long)adapter_int(window, "window_minutes");
    char label[32];
    if (!json_is_object(window)) {
        return;
    }
    if (minutes >= 1440) {
        (void)snprintf(label, sizeof(label), "%lldd", minutes / 1440);
    } else if (minutes >= 60) {
        (void)snprintf(label, sizeof(label), "%lldh", minutes / 60);
    } else {
        (void)snprintf(label, sizeof(label), "%s", name);
    }
    adapter_set_meter(seen, label, percent, resets_at);
    if (percent >= 100 && resets_at > seen->retry_at) {
        seen->retry_at = resets_at;
    }
}

static void take_count(struct adapter_seen *seen, const json_t *payload)
{
    const json_t *limits = json_object_get(payload, "rate_limits");
    const json_t *info = json_object_get(payload, "info");
    const json_t *total = json_object_get(info, "total_token_usage");
    if (json_is_object(limits)) {
        seen->retry_at = 0;
        take_window(seen, limits, "primary");
        take_window(seen, limits, "secondary");
    }
    if (json_is_object(total)) {
        seen->usage = (struct adapter_usage){
            .input = adapter_int(total, "input_tokens"),
            .cached = adapter_int(total, "cached_input_tokens"),
            .output = adapter_int(total, "output_tokens"),
            .known = true,
            .whole = true,
        };
    }
}

/* Return the cause. An empty account has the same kind of error as a limit. */
static enum adapter_cause cause_of(const json_t *error)
{
    if (!adapter_is(error, "codex_error_info", "usage_limit_exceeded")) {
        return ADAPTER_NONE;
    }
    return strstr(adapter_text(error, "message"), "Quota exceeded") != NULL
               ? ADAPTER_KEY
               : ADAPTER_LIMIT;
}

void rollout_take_line(struct adapter_seen *seen, const char *line, size_t len)
{
    json_t *event = json_loadb(line, len, JSON_ALLOW_NUL, NULL);
    const json_t *payload = json_object_get(event, "payload");
    if (adapter_is(event, "type", "event_msg")) {
        if (adapter_is(payload, "type", "token_count")) {
            take_count(seen, payload);
        } else if (adapter_is(payload, "type", "task_started")) {
            seen->cause = ADAPTER_NONE; /* cause of an earlier session */
            seen->retry_at = 0;
        } else if (adapter_is(payload, "type", "task_complete")) {
            seen->cause = cause_of(json_object_get(payload, "error"));
        }
    }
    json_decref(event);
}

/* A search for a rollout file: its target, and the best match so far. */
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

/* Sort in reverse: years, months and days sort as their names do. */
static int newest_first(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*b)->fts_name, (*a)->fts_name);
}

/* Search the directory of all sessions, newest day first, up to the first day
 * with a match. */
static void search_in(struct search *search, char *folder)
{
    char *const roots[] = {folder, NULL};
    FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, newest_first);
    FTSENT *entry;
    while (tree != NULL && (entry = fts_read(tree)) != NULL) {
        bool hidden = entry->fts_level > 0 && entry->fts_name[0] == '.';
        if (entry->fts_info == FTS_D &&
            (hidden || entry->fts_level > DEPTH || search->best.len > 0)) {
            (void)fts_set(tree, entry, FTS_SKIP);
        } else if (entry->fts_level == DEPTH + 1 && !hidden) {
            offer(search, entry->fts_path, entry->fts_name);
        }
    }
    if (tree != NULL) {
        (void)fts_close(tree);
    }
}

static void read_lines(struct adapter_seen *seen, const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t capacity = 0;
    ssize_t len;
    while (file != NULL && (len = getline(&line, &capacity, file)) > 0) {
        /* Skip messages, which are most of the lines; some are long. */
        if (len < LINE_BYTES_MAX && strstr(line, "\"event_msg\"") != NULL) {
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
    search_in(&search, path.text);
    bool found = search.best.len > 0;
    if (found) {
        read_lines(seen, strbuf_text(&search.best));
    }
    strbuf_release(&search.best);
    strbuf_release(&path);
    return found;
}

/* Read a number of at most `digits` digits. */
static bool take_number(const char **at, int digits, int *out)
{
    const char *from = *at;
    int number = 0;
    while (*at < from + digits && **at >= '0' && **at <= '9') {
        number = number * 10 + (**at - '0');
        (*at)++;
    }
    *out = number;
    return *at > from;
}

static bool take_word(const char **at, const char *word)
{
    size_t len = strlen(word);
    bool found = strncmp(*at, word, len) == 0;
    *at += found ? len : 0;
    return found;
}

/* Read "Nov 19th, 2026 " into *time. */
static bool take_date(const char **at, struct tm *time)
{
    static const char *const months[] = {
        "Jan ",
        "Feb ",
        "Mar ",
        "Apr ",
        "May ",
        "Jun ",
        "Jul ",
        "Aug ",
        "Sep ",
        "Oct ",
        "Nov ",
        "Dec ",
    };
    const char *next = *at;
    int month = 0;
    int day = 0;
    int year = 0;
    while (month < (int)ARRAY_COUNT(months) &&
           !take_word(&next, months[month])) {
        month++;
    }
    if (month == (int)ARRAY_COUNT(months) || !take_number(&next, 2, &day) ||
        day < 1 || day > 31) {
        return false;
    }
    next += strspn(next, "dhnrst"); /* 1st, 2nd, 3rd, 4th */
    if (!take_word(&next, ", ") || !take_number(&next, 4, &year) ||
        !take_word(&next, " ")) {
        return false;
    }
    time->tm_mon = month;
    time->tm_mday = day;
    time->tm_year = year - 1900;
    *at = next;
    return true;
}

/* Read "6:01 PM" into *time. */
static bool take_clock(const char **at, struct tm *time)
{
    int hour = 0;
    int minute = 0;
    if (!take_number(at, 2, &hour) || !take_word(at, ":") ||
        !take_number(at, 2, &minute) || !take_word(at, " ") || hour < 1 ||
        hour > 12 || minute > 59) {
        return false;
    }
    bool afternoon = take_word(at, "PM");
    if (!afternoon && !take_word(at, "AM")) {
        return false;
    }
    time->tm_hour = hour % 12 + (afternoon ? 12 : 0);
    time->tm_min = minute;
    time->tm_sec = 0;
    time->tm_isdst = -1;
    return true;
}

int64_t rollout_parse_time(const char *text, int64_t now)
{
    static const char before[] = "try again at ";
    const char *at = strstr(text, before);
    time_t seconds = (time_t)now;
    struct tm time;
    tzset();
    if (at == NULL || localtime_r(&seconds, &time) == NULL) {
        return 0;
    }
    at += strlen(before);
    bool dated = take_date(&at, &time);
    if (!take_clock(&at, &time)) {
        return 0;
    }
    int64_t result = (int64_t)mktime(&time);
    if (!dated && result + LATE_S <= now) {
        time.tm_mday++; /* tomorrow */
        time.tm_isdst = -1;
        result = (int64_t)mktime(&time);
    } else if (!dated && result <= now) {
        result = now + 60; /* this minute: seconds are not shown */
    }
    return result > now && result <= TIME_MAX ? result : 0;
}
