/* SPDX-License-Identifier: MIT */
#include "agent/meters.h"

#include "agent/rollout.h"
#include "base/jsonw.h"
#include "exec/attempt_file.h"

#include <stdlib.h>

static const char folder[] = "meters";

static void add_all(struct strbuf *out, const struct adapter_seen *seen)
{
    struct jsonw json = {.out = out};
    jsonw_array(&json, NULL);
    for (uint32_t ix = 0; ix < seen->meter_count; ix++) {
        const struct adapter_meter *meter = &seen->meters[ix];
        if (ix > 0) {
            jsonw_line(&json, 1);
        }
        jsonw_object(&json, NULL);
        jsonw_text(&json, "name", meter->name);
        jsonw_number(&json, "percent", 9, meter->percent);
        if (meter->resets_at > 0) {
            jsonw_int(&json, "resets_at", meter->resets_at);
        }
        jsonw_object_end(&json);
    }
    jsonw_array_end(&json);
    strbuf_adds(out, "\n");
}

enum err meters_keep(const char *home,
                     const struct adapter *adapter,
                     const struct adapter_seen *seen,
                     struct diag *diag)
{
    struct strbuf dir = {0};
    struct strbuf text = {0};
    strbuf_addf(&dir, "%s/%s", home, folder);
    add_all(&text, seen);
    enum err err =
        attempt_file_write(strbuf_text(&dir), adapter->name, &text, diag);
    strbuf_release(&dir);
    strbuf_release(&text);
    return err;
}

/* Read the stored meters of earlier sessions, if any. */
static void read_kept(struct adapter_seen *seen,
                      const char *home,
                      const struct adapter *adapter)
{
    struct strbuf dir = {0};
    struct strbuf text = {0};
    strbuf_addf(&dir, "%s/%s", home, folder);
    if (attempt_file_read(strbuf_text(&dir), adapter->name, &text, NULL) ==
        ERR_OK) {
        json_t *list = json_loadb(strbuf_text(&text), text.len, 0, NULL);
        size_t ix;
        json_t *one;
        json_array_foreach(list, ix, one)
        {
            adapter_set_meter(seen,
                              adapter_text(one, "name"),
                              adapter_number(one, "percent"),
                              adapter_time(one, "resets_at"));
        }
        json_decref(list);
    }
    strbuf_release(&dir);
    strbuf_release(&text);
}

enum err meters_add(struct strbuf *out,
                    const char *home,
                    const struct adapter *adapter,
                    int64_t now,
                    struct diag *diag)
{
    struct adapter_seen seen = {0};
    if (!adapter->meters) {
        return diag_set(diag, ERR_INVALID, "%s has no meters", adapter->name);
    }
    if (adapter == &adapter_codex) {
        (void)rollout_read(&seen, NULL);
    } else {
        read_kept(&seen, home, adapter);
    }
    for (uint32_t ix = 0; ix < seen.meter_count; ix++) {
        if (seen.meters[ix].resets_at > 0 && seen.meters[ix].resets_at <= now) {
            seen.meters[ix].percent = 0;
            seen.meters[ix].resets_at = 0;
        }
    }
    if (seen.meter_count == 0) {
        adapter_set_meter(&seen, adapter->name, 0, 0);
    }
    add_all(out, &seen);
    adapter_seen_release(&seen);
    return ERR_OK;
}
