/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as what a session leaves behind: a result, and the records of an
 * attempt; or as what a program of meters prints. What is accepted must be what
 * attempt.h and meters.h promise.
 */
#include "base/invariant.h"
#include "exec/attempt.h"
#include "exec/attempt_result.h"
#include "exec/meters.h"
#include "exec/record.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A text that a terminal can be shown. */
static void check_text(const char *text)
{
    for (; text != NULL && *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        INVARIANT(byte >= 0x20 || byte == '\n' || byte == '\t');
        INVARIANT(byte != 0x7f);
    }
}

static void check_result(const struct attempt_result *result)
{
    INVARIANT(!result->has_outcome || result->outcome < OUTCOME_LOST ||
              result->outcome == OUTCOME_LATER);
    check_text(result->reason);
    INVARIANT(result->retry_at_ns >= 0 && result->retry_after_ns >= 0);
    check_text(result->outputs);
    INVARIANT(result->input_tokens >= 0 && result->output_tokens >= 0);
    INVARIANT(result->usd >= 0 && result->usd <= 1e9);
    for (uint32_t ix = 0; ix < result->task_count; ix++) {
        const struct attempt_task_result *task = &result->tasks[ix];
        INVARIANT(task->task != NULL && task->task[0] != '\0');
        INVARIANT(task->outcome < OUTCOME_LOST ||
                  task->outcome == OUTCOME_LATER);
        check_text(task->outputs);
        check_text(task->task);
        check_text(task->reason);
    }
}

/* A record that is read is the one that would be written. */
static void check_records(const char *bytes, size_t size)
{
    char again[RECORD_BYTES];
    struct attempt_exit exit;
    struct record_started started;
    uint64_t stat[RECORD_STAT_COUNT];
    if (record_read_exit(bytes, size, &exit)) {
        record_write_exit(again, &exit);
        INVARIANT(size == RECORD_BYTES && memcmp(again, bytes, size) == 0);
    }
    if (record_read_started(bytes, size, &started)) {
        record_write_started(again, &started);
        INVARIANT(size == RECORD_BYTES && memcmp(again, bytes, size) == 0);
    }
    (void)!record_read_stat(bytes, size, stat);
}

static void check_meters(const char *bytes, size_t size)
{
    struct meter *meters = NULL;
    uint32_t count = 0;
    if (meters_parse(bytes, size, &meters, &count, NULL) != ERR_OK) {
        return;
    }
    INVARIANT(count > 0);
    for (uint32_t ix = 0; ix < count; ix++) {
        check_text(meters[ix].name);
        INVARIANT(meters[ix].name[0] != '\0' && meters[ix].percent >= 0);
        INVARIANT(meters[ix].resets_ns >= 0);
    }
    meters_free(meters, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct attempt_result result;
    struct diag diag = {0};
    const char *bytes = (const char *)data;
    enum err err = attempt_parse_result(bytes, size, &result, &diag);
    INVARIANT(err == ERR_OK || err == ERR_INVALID);
    INVARIANT(result.present == (err == ERR_OK));
    INVARIANT((diag.text[0] == '\0') == (err == ERR_OK));
    check_result(&result);
    attempt_result_release(&result);
    check_records(bytes, size);
    check_meters(bytes, size);
    return 0;
}
