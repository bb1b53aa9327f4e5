/* SPDX-License-Identifier: MIT */
#include "tests/unit/agent_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

bool agent_fixture_read(struct strbuf *out, const char *path)
{
    char piece[4096];
    size_t len;
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    while ((len = fread(piece, 1, sizeof(piece), file)) > 0) {
        strbuf_add(out, piece, len);
    }
    assert_int_equal(fclose(file), 0);
    return true;
}

void agent_fixture_take(const struct adapter *adapter,
                        struct adapter_seen *seen,
                        const char *text,
                        struct strbuf *log)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        json_t *event = json_loadb(text, len, 0, NULL);
        struct strbuf line = {0};
        if (event != NULL) {
            adapter->event(seen, event, &line);
        }
        if (log != NULL && line.len > 0) {
            strbuf_addf(log, "%s\n", strbuf_text(&line));
        }
        strbuf_release(&line);
        json_decref(event);
        text += text[len] == '\n' ? len + 1 : len;
    }
}

struct brief agent_fixture_brief(const char *program, enum brief_kind kind)
{
    static struct brief_task tasks[] = {
        {.task = "a", .issue = "a"},
        {.task = "b", .issue = "b"},
    };
    const struct adapter *adapter = adapter_find(program);
    assert_non_null(adapter);
    return (struct brief){
        .adapter = adapter,
        .kind = kind,
        .writes = kind == BRIEF_WORK,
        .cause = "first",
        .tasks = tasks,
        .task_count = kind == BRIEF_BATCH ? 2 : 1,
    };
}

struct judgement agent_fixture_judge(const struct brief *brief,
                                     const struct adapter_seen *seen,
                                     int code,
                                     const char *errors)
{
    struct runner_end end = {.code = code};
    return judge_session(&(struct judge_input){
        .brief = brief,
        .seen = seen,
        .end = &end,
        .errors = errors,
        .now = AGENT_FIXTURE_NOW,
    });
}
