/* SPDX-License-Identifier: MIT */
#include "exec/meters.h"

#include "base/mem.h"
#include "base/utc.h"

#include <jansson.h>
#include <string.h>

enum {
    METERS_MAX = 100,
    NAME_BYTES_MAX = 100,
};

void meters_free(struct meter *meters, uint32_t count)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        mem_free(meters[ix].name);
    }
    mem_free(meters);
}

/* Read a reset time: seconds since 1970, RFC 3339, or null. */
static bool read_resets_at(const json_t *value, int64_t *out)
{
    *out = 0;
    if (value == NULL || json_is_null(value)) {
        return true;
    }
    if (json_is_string(value)) {
        return utc_read(json_string_value(value), out);
    }
    double seconds = json_number_value(value);
    if (!json_is_number(value) || seconds < 0 ||
        seconds > (double)UTC_SECONDS_MAX) {
        return false;
    }
    *out = (int64_t)(seconds * 1e9);
    return true;
}

static enum err
read_meter(const json_t *json, struct meter *out, struct diag *diag)
{
    const char *name = json_string_value(json_object_get(json, "name"));
    const json_t *percent = json_object_get(json, "percent");
    if (name == NULL || name[0] == '\0' || strlen(name) > NAME_BYTES_MAX) {
        return diag_set(diag,
                        ERR_INVALID,
                        "a meter needs a \"name\" of at most %d bytes",
                        NAME_BYTES_MAX);
    }
    for (const char *at = name; *at != '\0'; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7f) {
            return diag_set(diag,
                            ERR_INVALID,
                            "the name of a meter has a control character");
        }
    }
    if (!json_is_number(percent) || json_number_value(percent) < 0 ||
        json_number_value(percent) > 1e6) {
        return diag_set(diag,
                        ERR_INVALID,
                        "meter \"%s\" needs a \"percent\", a number from 0",
                        name);
    }
    if (!read_resets_at(json_object_get(json, "resets_at"), &out->resets_ns)) {
        return diag_set(diag,
                        ERR_INVALID,
                        "\"resets_at\" of meter \"%s\" must be seconds since "
                        "1970 or a time like 2030-01-31T12:00:00Z",
                        name);
    }
    out->percent = json_number_value(percent);
    out->name = mem_strdup(name);
    return ERR_OK;
}

/* Read a list of meters; on success the caller owns *out. */
static enum err read_meters(const json_t *json,
                            struct meter **out,
                            uint32_t *count_out,
                            struct diag *diag)
{
    size_t count = json_array_size(json);
    if (!json_is_array(json) || count == 0 || count > METERS_MAX) {
        return diag_set(diag,
                        ERR_INVALID,
                        "expected a list of 1 to %d meters: [{\"name\": ..., "
                        "\"percent\": ...}]",
                        METERS_MAX);
    }
    struct meter *meters = mem_zalloc(count, sizeof(meters[0]));
    enum err err = ERR_OK;
    for (size_t ix = 0; err == ERR_OK && ix < count; ix++) {
        err = read_meter(json_array_get(json, ix), &meters[ix], diag);
    }
    if (err != ERR_OK) {
        meters_free(meters, (uint32_t)count);
        return err;
    }
    *out = meters;
    *count_out = (uint32_t)count;
    return ERR_OK;
}

enum err meters_parse(const char *bytes,
                      size_t len,
                      struct meter **out,
                      uint32_t *count_out,
                      struct diag *diag)
{
    json_error_t error;
    json_t *json = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, &error);
    enum err err = json == NULL ? diag_set(diag,
                                           ERR_INVALID,
                                           "invalid JSON output (line %d): %s",
                                           error.line,
                                           error.text)
                                : read_meters(json, out, count_out, diag);
    json_decref(json);
    return err;
}
