/* SPDX-License-Identifier: MIT */
#include "cli/run_end.h"

#include "base/jsonw.h"
#include "cli/cli.h"
#include "store/event.h"
#include "store/store.h"
#include "view/handoff.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/* Descriptors of a scheduler beside those of its sessions. */
enum { OWN_FILES = 48 };

/* How often to look for a run in a store whose server is away, and how long to
 * wait in between: five minutes. */
enum { LOOKS = 300, LOOK_US = 1000000 };

void run_end_check_files(struct strbuf *out,
                         const struct engine *engine,
                         const char *id)
{
    struct rlimit files;
    uint32_t ix = engine_find_run(engine, id);
    uint32_t limit = ix != STORE_NONE
                         ? plan_find_limit(engine_plan(engine, ix), "sessions")
                         : PLAN_NONE;
    if (limit == PLAN_NONE || getrlimit(RLIMIT_NOFILE, &files) != 0) {
        return;
    }
    int64_t cap = engine_limit_set(engine, ix, limit);
    if (cap == LIMIT_NONE || (rlim_t)(cap + OWN_FILES) <= files.rlim_cur) {
        return;
    }
    strbuf_addf(out,
                "the limit of %llu open files is too low for a cap of %lld "
                "sessions: raise it to %lld ('ulimit -n', or LimitNOFILE= of a "
                "service), or lower the cap",
                (unsigned long long)files.rlim_cur,
                (long long)cap,
                (long long)cap + OWN_FILES);
}

void run_end_print(const struct strbuf *text)
{
    (void)fwrite(strbuf_text(text), 1, text->len, stdout);
    (void)fflush(stdout);
}

enum err run_end_look(struct client_view *view,
                      const struct store_place *place,
                      const char *id,
                      struct diag *diag)
{
    struct store_query query = {.run = id};
    enum err err = client_look(view, place, &query, diag);
    for (int tries = 0; tries < LOOKS && store_has_workers(place->address) &&
                        (err == ERR_BUSY || err == ERR_UNAVAILABLE);
         tries++) {
        (void)usleep(LOOK_US);
        client_view_release(view);
        *diag = (struct diag){0};
        err = client_look(view, place, &query, diag);
    }
    return err;
}

int run_end_hand_off(const struct store_place *place,
                     const struct engine *engine,
                     bool json,
                     int code)
{
    uint32_t count;
    struct handoff_note *notes = handoff_make(place, engine, 0, true, &count);
    struct strbuf text = {0};
    for (uint32_t ix = 0; json && ix < count; ix++) {
        handoff_add_json(&text, &notes[ix]);
    }
    if (!json && count > 0) {
        strbuf_adds(&text, "\n");
        handoff_add_lines(&text, notes, count);
    }
    run_end_print(&text);
    strbuf_release(&text);
    if (code == CLI_OK && handoff_is_troubled(notes, count)) {
        code = CLI_NOT_ALL_DONE;
    }
    handoff_release(notes, count);
    return code;
}

int run_end_removed(const char *id,
                    const struct next_command *command,
                    bool json,
                    bool cancelled)
{
    struct strbuf text = {0};
    if (json) {
        struct jsonw writer = {.out = &text};
        jsonw_object(&writer, NULL);
        jsonw_text(&writer, "run", id);
        jsonw_text(&writer, "kind", event_kind_name(EVENT_KIND_RUN));
        jsonw_text(&writer, "to", event_word_name(EVENT_WORD_FINISHED));
        jsonw_bool(&writer, "removed", true);
        jsonw_object_end(&writer);
        strbuf_adds(&text, "\n");
    } else {
        struct strbuf line = {0};
        next_add(&line, command);
        strbuf_addf(&text,
                    "run %s had already finished, and 'sluice gc' removed "
                    "it: nothing was started\n\n    %-36s starts another run "
                    "of this plan\n",
                    id,
                    strbuf_text(&line));
        strbuf_release(&line);
    }
    run_end_print(&text);
    strbuf_release(&text);
    return cancelled ? CLI_NOT_ALL_DONE : CLI_OK;
}
