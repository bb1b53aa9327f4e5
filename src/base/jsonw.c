/* SPDX-License-Identifier: MIT */
#include "base/jsonw.h"

#include "base/utf8.h"

#include <string.h>
#include <time.h>

void jsonw_string(struct strbuf *out, const char *text)
{
    if (text == NULL) {
        strbuf_adds(out, "null");
        return;
    }
    strbuf_adds(out, "\"");
    size_t begin = out->len;
    while (*text != '\0') {
        size_t plain = 0;
        while ((unsigned char)text[plain] >= 0x20 && text[plain] != '"' &&
               text[plain] != '\\') {
            plain++;
        }
        strbuf_add(out, text, plain);
        text += plain;
        if (*text != '\0') {
            unsigned char byte = (unsigned char)*text++;
            if (byte == '"' || byte == '\\') {
                strbuf_addf(out, "\\%c", byte);
            } else {
                strbuf_addf(out, "\\u%04x", byte);
            }
        }
    }
    if (out->len > begin) {
        utf8_repair(out->text + begin, out->len - begin);
    }
    strbuf_adds(out, "\"");
}

void jsonw_seconds(struct strbuf *out, int64_t duration_ns)
{
    const int64_t second = 1000000000;
    if (duration_ns < 0) {
        strbuf_adds(out, "-");
    }
    uint64_t ns =
        duration_ns < 0 ? 0 - (uint64_t)duration_ns : (uint64_t)duration_ns;
    strbuf_addf(out, "%llu", (unsigned long long)(ns / (uint64_t)second));
    uint64_t part = ns % (uint64_t)second;
    if (part > 0) {
        strbuf_addf(out, ".%09llu", (unsigned long long)part);
        while (out->text[out->len - 1] == '0') {
            out->text[--out->len] = '\0';
        }
    }
}

void jsonw_time(struct strbuf *out, int64_t wall_ns)
{
    const int64_t second = 1000000000;
    time_t seconds = (time_t)(wall_ns / second);
    struct tm utc = {0};
    char text[32];
    if (wall_ns < 0 || gmtime_r(&seconds, &utc) == NULL ||
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc) == 0) {
        strbuf_adds(out, "null");
        return;
    }
    strbuf_addf(out, "\"%s.%03dZ\"", text, (int)(wall_ns % second / 1000000));
}
