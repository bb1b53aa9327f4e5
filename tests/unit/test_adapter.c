/* SPDX-License-Identifier: MIT */
/*
 * What each program prints in each mode of the stand-in for its model's API,
 * and what becomes of it. tests/data/agents/expected has a section for each
 * capture, which begins with its name and exit code; AGENT_EXPECTED=1 prints
 * the sections as they are, for a new capture.
 */
#include "adapter/adapter.h"

#include "base/macros.h"
#include "tests/unit/agent_fixture.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *cause_name(enum adapter_cause cause)
{
    switch (cause) {
    case ADAPTER_NONE:
        return "none";
    case ADAPTER_LIMIT:
        return "limit";
    case ADAPTER_KEY:
        return "key";
    case ADAPTER_GONE:
        return "gone";
    case ADAPTER_SPENT:
        return "spent";
    case ADAPTER_ERROR:
        return "error";
    }
    return "?";
}

static const char *yes(bool flag)
{
    return flag ? "yes" : "no";
}

static void add_usage(struct strbuf *out, const struct adapter_usage *usage)
{
    if (!usage->known) {
        strbuf_adds(out, "  usage unknown");
    } else {
        strbuf_addf(out,
                    "  usage %lld, cached %lld, output %lld%s",
                    (long long)usage->input,
                    (long long)usage->cached,
                    (long long)usage->output,
                    usage->whole ? ", of the conversation" : "");
    }
    if (usage->usd_known) {
        strbuf_addf(out, ", usd %.6f", usage->usd);
    }
    strbuf_adds(out, "\n");
}

/* Everything that was seen, as `expected` has it. */
static void add_seen(struct strbuf *out, const struct adapter_seen *seen)
{
    strbuf_addf(out,
                "  conversation %s\n  finished %s, succeeded %s\n",
                seen->conversation != NULL ? seen->conversation : "none",
                yes(seen->finished),
                yes(seen->succeeded));
    add_usage(out, &seen->usage);
    if (seen->answer != NULL) {
        char *answer = json_dumps(seen->answer, JSON_COMPACT | JSON_SORT_KEYS);
        strbuf_addf(out, "  answer %s\n", answer);
        free(answer);
    }
    for (uint32_t ix = 0; ix < seen->meter_count; ix++) {
        strbuf_addf(out,
                    "  meter %s %.0f %% until %lld\n",
                    seen->meters[ix].name,
                    seen->meters[ix].percent,
                    (long long)seen->meters[ix].resets_at);
    }
    if (seen->denials.len > 0) {
        strbuf_addf(out, "  denials %s\n", strbuf_text(&seen->denials));
    }
}

static void add_judgement(struct strbuf *out, const struct judgement *judgement)
{
    strbuf_addf(out,
                "  %s%s",
                outcome_name(judgement->outcome),
                judgement->stop ? ", stop the provider" : "");
    if (judgement->retry_at > 0) {
        strbuf_addf(out, ", retry at %lld", (long long)judgement->retry_at);
    }
    strbuf_addf(out,
                "%s%s%s\n",
                judgement->again ? ", start a new conversation" : "",
                judgement->reason.len > 0 ? ": " : "",
                strbuf_text(&judgement->reason));
}

/* One section, from a capture. */
static void describe(struct strbuf *out, const char *name, int code)
{
    struct adapter_seen seen = {0};
    struct strbuf path = {0};
    struct strbuf text = {0};
    struct strbuf errors = {0};
    char program[32] = "";
    (void)snprintf(program,
                   sizeof(program),
                   "%.*s",
                   (int)strcspn(name, "-"),
                   name);
    struct brief brief = agent_fixture_brief(program, BRIEF_WORK);
    brief.call.resume = strstr(name, "gone") != NULL ? "x" : NULL;
    strbuf_addf(&path, AGENT_FIXTURE_DATA "%s.jsonl", name);
    if (!agent_fixture_read(&text, strbuf_text(&path))) {
        fail_msg("%s cannot be read", strbuf_text(&path));
    }
    strbuf_clear(&path);
    strbuf_addf(&path, AGENT_FIXTURE_DATA "%s.stderr", name);
    (void)agent_fixture_read(&errors, strbuf_text(&path));
    agent_fixture_take(brief.adapter, &seen, strbuf_text(&text), NULL);

    struct judgement judgement =
        agent_fixture_judge(&brief, &seen, code, strbuf_text(&errors));
    strbuf_addf(out, "%s %d\n", name, code);
    add_seen(out, &seen);
    if (!seen.succeeded) {
        enum adapter_cause cause =
            adapter_cause_of(brief.adapter, &seen, code, strbuf_text(&errors));
        strbuf_addf(out, "  cause %s\n", cause_name(cause));
    }
    add_judgement(out, &judgement);
    judge_release(&judgement);
    adapter_seen_release(&seen);
    strbuf_release(&path);
    strbuf_release(&text);
    strbuf_release(&errors);
}

/* The sections of `expected`, made anew from the captures. */
static void every_capture_is_judged_as_expected(void **state)
{
    (void)state;
    struct strbuf expected = {0};
    struct strbuf actual = {0};
    assert_true(agent_fixture_read(&expected, AGENT_FIXTURE_DATA "expected"));
    const char *at = strbuf_text(&expected);
    while (*at != '\0') {
        char name[64];
        size_t len = strcspn(at, "\n");
        size_t word = strcspn(at, " ");
        if (at[0] == '#') {
            strbuf_add(&actual, at, len + 1);
        } else if (at[0] != ' ' && word < sizeof(name) && word < len) {
            (void)snprintf(name, sizeof(name), "%.*s", (int)word, at);
            describe(&actual, name, (int)strtol(at + word, NULL, 10));
        }
        at += at[len] == '\n' ? len + 1 : len;
    }
    if (getenv("AGENT_EXPECTED") != NULL) {
        (void)fputs(strbuf_text(&actual), stderr);
    }
    assert_string_equal(strbuf_text(&actual), strbuf_text(&expected));
    strbuf_release(&expected);
    strbuf_release(&actual);
}

static void every_capture_is_expected(void **state)
{
    (void)state;
    struct strbuf expected = {0};
    strbuf_adds(&expected, "\n");
    assert_true(agent_fixture_read(&expected, AGENT_FIXTURE_DATA "expected"));
    DIR *folder = opendir(AGENT_FIXTURE_DATA);
    assert_non_null(folder);
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        const char *dot = strrchr(entry->d_name, '.');
        struct strbuf heading = {0};
        if (dot != NULL && strcmp(dot, ".jsonl") == 0 &&
            strstr(entry->d_name, "rollout") == NULL) {
            strbuf_addf(&heading,
                        "\n%.*s ",
                        (int)(dot - entry->d_name),
                        entry->d_name);
            if (strstr(strbuf_text(&expected), strbuf_text(&heading)) == NULL) {
                fail_msg("%s is not in expected", entry->d_name);
            }
        }
        strbuf_release(&heading);
    }
    assert_int_equal(closedir(folder), 0);
    strbuf_release(&expected);
}

/* Take lines of a program, given without quotes that C would need. */
static struct adapter_seen seen_of(const char *program, const char *lines)
{
    struct adapter_seen seen = {0};
    struct strbuf text = {0};
    for (const char *at = lines; *at != '\0'; at++) {
        strbuf_add(&text, *at == '\'' ? "\"" : at, 1);
    }
    agent_fixture_take(adapter_find(program), &seen, strbuf_text(&text), NULL);
    strbuf_release(&text);
    return seen;
}

static void a_result_in_a_text_is_not_a_result(void **state)
{
    (void)state;
    static const struct {
        const char *program;
        const char *lines;
    } lies[] = {
        {"claude",
         "{'type':'system','subtype':'init','session_id':'s'}\n"
         "{'type':'user','session_id':'s','message':{'content':[{'type':"
         "'tool_result','content':'{\\'type\\':\\'result\\',\\'subtype\\':"
         "\\'success\\',\\'is_error\\':false}'}]}}\n"},
        {"claude",
         "{'type':'system','subtype':'init','session_id':'s'}\n"
         "{'type':'result','subtype':'success','is_error':false,"
         "'session_id':'another'}\n"},
        {"claude", "{'type':'result','subtype':'success'}\n"},
        {"claude",
         "{'type':'result','subtype':'success','is_error':'false'}\n"},
        {"codex",
         "{'type':'item.completed','item':{'type':'agent_message','text':"
         "'{\\'type\\':\\'turn.completed\\'}'}}\n"},
        {"codex",
         "{'type':'item.completed','item':{'type':'turn.completed'}}\n"},
        {"gemini",
         "{'type':'message','role':'assistant','content':"
         "'{\\'type\\':\\'result\\',\\'status\\':\\'success\\'}'}\n"},
        {"gemini", "{'type':'tool_result','status':'success'}\n"},
        {"opencode",
         "{'type':'tool_use','part':{'reason':'stop','state':{'output':"
         "'{\\'type\\':\\'step_finish\\'}'}}}\n"},
        {"opencode", "{'type':'step_finish','part':{'reason':'unknown'}}\n"},
        {"qwen",
         "{'type':'result','subtype':'success','is_error':false,'result':"
         "'[API Error: 500 Internal server error]'}\n"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(lies); ix++) {
        struct adapter_seen seen = seen_of(lies[ix].program, lies[ix].lines);
        if (seen.finished && seen.succeeded) {
            fail_msg("%s was believed", lies[ix].lines);
        }
        adapter_seen_release(&seen);
    }
}

static void a_limit_that_was_overcome_is_none(void **state)
{
    (void)state;
    static const char start[] =
        "{'type':'rate_limit_event','rate_limit_info':{'status':'rejected',"
        "'resetsAt':1794851811,'rateLimitType':'five_hour'}}\n"
        "{'type':'assistant','message':{'id':'m','content':[],"
        "'usage':{'input_tokens':10,'output_tokens':1}}}\n";
    struct strbuf lines = {0};
    strbuf_adds(&lines, start);
    strbuf_adds(&lines,
                "{'type':'result','subtype':'success','is_error':false}\n");
    struct adapter_seen seen = seen_of("claude", strbuf_text(&lines));
    assert_true(seen.finished && seen.succeeded);
    assert_int_equal(seen.cause, ADAPTER_NONE);
    assert_int_equal(seen.retry_at, 0);
    adapter_seen_release(&seen);

    /* What fails later fails for another reason. */
    strbuf_clear(&lines);
    strbuf_adds(&lines, start);
    strbuf_adds(&lines,
                "{'type':'result','subtype':'error_max_turns',"
                "'is_error':true}\n");
    seen = seen_of("claude", strbuf_text(&lines));
    assert_int_equal(adapter_cause_of(&adapter_claude, &seen, 1, ""),
                     ADAPTER_ERROR);
    adapter_seen_release(&seen);
    strbuf_release(&lines);
}

static void codex_that_reconnects_has_not_failed(void **state)
{
    (void)state;
    struct adapter_seen seen =
        seen_of("codex",
                "{'type':'error','message':'Reconnecting... 1/5 (exceeded "
                "retry limit, last status: 429 Too Many Requests)'}\n");
    assert_int_equal(adapter_cause_of(&adapter_codex, &seen, 1, ""),
                     ADAPTER_ERROR);
    adapter_seen_release(&seen);
    seen = seen_of("codex",
                   "{'type':'error','message':'stream disconnected'}\n"
                   "{'type':'turn.completed','usage':{'input_tokens':5}}\n");
    assert_true(seen.finished && seen.succeeded);
    assert_int_equal(seen.error.len, 0);
    adapter_seen_release(&seen);
}

static void messages_count_once_when_there_is_no_result(void **state)
{
    (void)state;
    struct adapter_seen seen = seen_of(
        "claude",
        "{'type':'assistant','message':{'id':'m1','usage':{'input_tokens':10,"
        "'cache_read_input_tokens':100,'cache_creation_input_tokens':1000,"
        "'output_tokens':7}}}\n"
        "{'type':'assistant','message':{'id':'m1','usage':{'input_tokens':10,"
        "'cache_read_input_tokens':100,'cache_creation_input_tokens':1000,"
        "'output_tokens':7}}}\n"
        "{'type':'assistant','message':{'id':'m2','usage':{'input_tokens':1,"
        "'output_tokens':2}}}\n");
    assert_false(seen.finished);
    assert_true(seen.usage.known);
    assert_int_equal(seen.usage.input, 1111);
    assert_int_equal(seen.usage.cached, 100);
    assert_int_equal(seen.usage.output, 9);
    assert_false(seen.usage.usd_known || seen.usage.whole);
    adapter_seen_release(&seen);

    /* qwen's input has the cache already; the conversation is in `result`. */
    seen = seen_of("qwen",
                   "{'type':'assistant','message':{'id':'m1','usage':{"
                   "'input_tokens':110,'cache_read_input_tokens':100,"
                   "'output_tokens':7}}}\n");
    assert_int_equal(seen.usage.input, 110);
    assert_false(seen.usage.whole);
    adapter_seen_release(&seen);
}

static void numbers_out_of_range_are_none(void **state)
{
    (void)state;
    struct adapter_seen seen = seen_of(
        "claude",
        "{'type':'rate_limit_event','rate_limit_info':{'status':'rejected',"
        "'resetsAt':1e14,'rateLimitType':'five_hour'}}\n"
        "{'type':'rate_limit_event','rate_limit_info':{'status':'allowed',"
        "'utilization':1e300,'rateLimitType':'seven_day'}}\n"
        "{'type':'assistant','message':{'id':'m','usage':{'input_tokens':"
        "9e14,'cache_read_input_tokens':9e14,'output_tokens':-5}}}\n"
        "{'type':'result','subtype':'success','is_error':true,"
        "'total_cost_usd':1e300,'api_error_status':70000}\n");
    assert_int_equal(seen.retry_at, 0);
    assert_int_equal(seen.meter_count, 1);
    assert_int_equal(seen.usage.input, ADAPTER_COUNT_MAX);
    assert_int_equal(seen.usage.output, 0);
    assert_false(seen.usage.usd_known);
    assert_int_equal(seen.status, 0);
    adapter_seen_release(&seen);
}

static void an_id_that_is_an_option_or_a_path_is_none(void **state)
{
    (void)state;
    static const char *const ids[] = {
        "",
        "--dangerously-skip-permissions",
        "../../x",
        "a b",
        "a\\u0000b",
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(ids); ix++) {
        struct strbuf line = {0};
        strbuf_addf(&line,
                    "{'type':'thread.started','thread_id':'%s'}\n",
                    ids[ix]);
        struct adapter_seen seen = seen_of("codex", strbuf_text(&line));
        assert_null(seen.conversation);
        adapter_seen_release(&seen);
        strbuf_release(&line);
    }
    struct adapter_seen seen =
        seen_of("codex",
                "{'type':'thread.started','thread_id':'one'}\n"
                "{'type':'thread.started','thread_id':'two'}\n");
    assert_string_equal(seen.conversation, "one");
    adapter_seen_release(&seen);
}

static void a_cut_text_is_whole_characters(void **state)
{
    (void)state;
    assert_int_equal(adapter_cut("abc", 3), 3);
    assert_int_equal(adapter_cut("abc", 2), 2);
    assert_int_equal(adapter_cut("a\xe2\x80\x99", 3), 1);
    assert_int_equal(adapter_cut("a\xe2\x80\x99", 4), 4);
    struct adapter_seen seen = {0};
    adapter_set_meter(&seen, "abcdefghijklmnopqrstuvwxyz1234\xc3\xa4z", 1, 0);
    adapter_set_meter(&seen, "abcdefghijklmnopqrstuvwxyz1234\xc3\xa4z", 2, 0);
    assert_int_equal(seen.meter_count, 1);
    assert_string_equal(seen.meters[0].name, "abcdefghijklmnopqrstuvwxyz1234");
    adapter_seen_release(&seen);
}

/* The words of a command, with blanks between them. */
static char *command_of(const char *program, const struct adapter_call *call)
{
    struct adapter_command command = {0};
    struct strbuf text = {0};
    adapter_find(program)->command(&command, call);
    for (uint32_t ix = 0; ix < command.word_count; ix++) {
        strbuf_addf(&text, "%s%s", ix > 0 ? " " : "", command.words[ix]);
    }
    assert_null(command.words[command.word_count]);
    adapter_command_release(&command);
    return text.text;
}

static void commands_are_those_that_were_tried(void **state)
{
    (void)state;
    static const char *const args[] = {"--more"};
    static const struct {
        const char *program;
        const char *fresh;
        const char *resumed;
    } commands[] = {
        {"claude",
         "claude -p --output-format stream-json --verbose --json-schema S "
         "--session-id F --permission-mode bypassPermissions --model M --more",
         "claude -p --output-format stream-json --verbose --json-schema S "
         "--resume R --permission-mode bypassPermissions --model M --more"},
        {"codex",
         "codex exec --json --skip-git-repo-check --output-schema SF "
         "--dangerously-bypass-approvals-and-sandbox -m M --more -",
         "codex exec --json --skip-git-repo-check --output-schema SF "
         "--dangerously-bypass-approvals-and-sandbox -m M --more resume R -"},
        {"gemini",
         "gemini -o stream-json --skip-trust --approval-mode yolo "
         "--session-id F -m M --more",
         "gemini -o stream-json --skip-trust --approval-mode yolo "
         "--resume R -m M --more"},
        {"opencode",
         "opencode run --format json --auto -m M --more",
         "opencode run --format json --auto -m M --session R --more"},
        {"qwen",
         "qwen -o stream-json --approval-mode yolo --session-id F -m M --more",
         "qwen -o stream-json --approval-mode yolo --resume R -m M --more"},
    };
    struct adapter_call call = {
        .model = "M",
        .args = args,
        .arg_count = 1,
        .fresh = "F",
        .schema = "S",
        .schema_file = "SF",
        .usd_left = -1,
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(commands); ix++) {
        call.resume = NULL;
        char *text = command_of(commands[ix].program, &call);
        assert_string_equal(text, commands[ix].fresh);
        free(text);
        call.resume = "R";
        text = command_of(commands[ix].program, &call);
        assert_string_equal(text, commands[ix].resumed);
        free(text);
    }
}

/* --- sluice's MCP server ------------------------------------------------ */

#define MCP_SERVERS                                                            \
    "{\"mcpServers\":{\"sluice\":{\"command\":\"/x/sluice\",\"args\":["        \
    "\"mcp\"]}}}"

#define MCP_TOML                                                               \
    "mcp_servers.sluice={command=\"/x/sluice\",args=[\"mcp\"],env_vars=["      \
    "\"SLUICE_DOOR\",\"SLUICE_FINISH\",\"SLUICE_KEY\",\"SLUICE_PROGRESS\","    \
    "\"SLUICE_RESULT\",\"SLUICE_STORE\"]}"

static void commands_name_the_mcp_server(void **state)
{
    (void)state;
    static const char *const args[] = {"--more"};
    static const struct {
        const char *program;
        enum adapter_permissions permissions;
        const char *command;
    } rows[] = {
        {"claude",
         ADAPTER_FULL,
         "claude -p --output-format stream-json --verbose --json-schema S "
         "--resume R --permission-mode bypassPermissions "
         "--mcp-config " MCP_SERVERS " --model M --more"},
        {"claude",
         ADAPTER_EDIT,
         "claude -p --output-format stream-json --verbose --json-schema S "
         "--resume R --permission-mode acceptEdits --allowedTools mcp__sluice "
         "Bash(git add:*) Bash(git commit:*) --mcp-config " MCP_SERVERS
         " --model M --more"},
        {"claude",
         ADAPTER_TOOLS,
         "claude -p --output-format stream-json --verbose --json-schema S "
         "--resume R --permission-mode acceptEdits --allowedTools mcp__sluice "
         "--mcp-config " MCP_SERVERS " --model M --more"},
        {"codex",
         ADAPTER_FULL,
         "codex exec --json --skip-git-repo-check --output-schema SF "
         "--dangerously-bypass-approvals-and-sandbox -c " MCP_TOML
         " -m M --more resume R -"},
        {"codex",
         ADAPTER_EDIT,
         "codex exec --json --skip-git-repo-check --output-schema SF "
         "-s workspace-write -c " MCP_TOML " -m M --more resume R -"},
        {"gemini",
         ADAPTER_FULL,
         "gemini -o stream-json --skip-trust --approval-mode yolo "
         "--resume R -m M --more"},
        {"opencode",
         ADAPTER_FULL,
         "opencode run --format json --auto -m M --session R --more"},
        {"qwen",
         ADAPTER_FULL,
         "qwen -o stream-json --approval-mode yolo --resume R "
         "--mcp-config " MCP_SERVERS " -m M --more"},
        {"qwen",
         ADAPTER_EDIT,
         "qwen -o stream-json --approval-mode auto-edit --resume R "
         "--mcp-config " MCP_SERVERS " -m M --more"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        struct adapter_call call = {
            .model = "M",
            .args = args,
            .arg_count = 1,
            .permissions = rows[ix].permissions,
            .resume = "R",
            .schema = "S",
            .schema_file = "SF",
            .usd_left = -1,
            .mcp = "/x/sluice",
        };
        char *text = command_of(rows[ix].program, &call);
        assert_string_equal(text, rows[ix].command);
        free(text);
    }
}

/* Return the command of a program for the server at this path, or NULL. */
static struct adapter_command command_with(const char *program, const char *mcp)
{
    struct adapter_command command = {0};
    struct adapter_call call = {
        .fresh = "F",
        .schema = "S",
        .schema_file = "SF",
        .usd_left = -1,
        .mcp = mcp,
    };
    adapter_find(program)->command(&command, &call);
    return command;
}

static void gemini_has_the_mcp_server_in_a_file(void **state)
{
    (void)state;
    struct adapter_command command = command_with("gemini", "/x/sluice");
    assert_string_equal(command.file, ".gemini/settings.json");
    assert_string_equal(command.file_variable, "GEMINI_CLI_TRUST_WORKSPACE");
    /* It would keep SLUICE_KEY from the server. */
    assert_string_equal(
        command.file_text,
        "{\"mcpServers\":{\"sluice\":{\"command\":\"/x/sluice\",\"args\":["
        "\"mcp\"],\"env\":{\"SLUICE_DOOR\":\"${SLUICE_DOOR}\","
        "\"SLUICE_FINISH\":\"${SLUICE_FINISH}\","
        "\"SLUICE_KEY\":\"${SLUICE_KEY}\","
        "\"SLUICE_PROGRESS\":\"${SLUICE_PROGRESS}\","
        "\"SLUICE_RESULT\":\"${SLUICE_RESULT}\","
        "\"SLUICE_STORE\":\"${SLUICE_STORE}\"}}}}");
    adapter_command_release(&command);
}

static void opencode_has_the_mcp_server_in_a_variable(void **state)
{
    (void)state;
    struct adapter_command command = command_with("opencode", "/x/sluice");
    assert_int_equal(command.env_count, 1);
    assert_string_equal(command.env[0],
                        "OPENCODE_CONFIG_CONTENT={\"mcp\":{\"sluice\":{"
                        "\"type\":\"local\",\"command\":[\"/x/sluice\","
                        "\"mcp\"]}}}");
    assert_string_equal(adapter_opencode.mcp_variable,
                        "OPENCODE_CONFIG_CONTENT");
    adapter_command_release(&command);
}

/* All that a program is told: words, variables and its file. */
static char *all_of(const char *program, const char *mcp)
{
    struct adapter_command command = command_with(program, mcp);
    struct strbuf text = {0};
    for (uint32_t ix = 0; ix < command.word_count; ix++) {
        strbuf_addf(&text, "%s\n", command.words[ix]);
    }
    for (uint32_t ix = 0; ix < command.env_count; ix++) {
        strbuf_addf(&text, "%s\n", command.env[ix]);
    }
    strbuf_adds(&text, command.file_text != NULL ? command.file_text : "");
    adapter_command_release(&command);
    return text.text;
}

static const char *const programs[] = {"claude",
                                       "codex",
                                       "gemini",
                                       "opencode",
                                       "qwen"};

/* In JSON and in TOML, both are escaped alike. */
static void the_path_of_the_mcp_server_may_have_any_character(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        const char *quoted;
    } rows[] = {
        {"/x/\"a\" b/sluice", "\"/x/\\\"a\\\" b/sluice\""},
        {"/x/a\\b/sluice", "\"/x/a\\\\b/sluice\""},
        {"/x/a\nb/sluice", "\"/x/a\\nb/sluice\""},
        {"/x/'$HOME'/sluice", "\"/x/'$HOME'/sluice\""},
        {"/x/\xc3\xa4/sluice", "\"/x/\xc3\xa4/sluice\""},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        for (size_t at = 0; at < ARRAY_COUNT(programs); at++) {
            char *text = all_of(programs[at], rows[ix].path);
            if (strstr(text, rows[ix].quoted) == NULL) {
                fail_msg("%s: %s", programs[at], text);
            }
            free(text);
        }
    }
}

/* The session works without the server then. */
static void a_path_that_is_not_utf8_gives_no_mcp_server(void **state)
{
    (void)state;
    for (size_t ix = 0; ix < ARRAY_COUNT(programs); ix++) {
        char *with = all_of(programs[ix], "/x/\xff/sluice");
        char *without = all_of(programs[ix], NULL);
        assert_string_equal(with, without);
        assert_null(strstr(without, "mcp"));
        free(with);
        free(without);
    }
}

static void without_the_mcp_server_there_is_no_file(void **state)
{
    (void)state;
    for (size_t ix = 0; ix < ARRAY_COUNT(programs); ix++) {
        struct adapter_command command = command_with(programs[ix], NULL);
        assert_null(command.file);
        assert_null(command.file_text);
        assert_null(command.file_variable);
        adapter_command_release(&command);
    }
}

static void claude_reads_no_file_that_an_issue_mentions(void **state)
{
    (void)state;
    struct adapter_command command = {0};
    struct adapter_call call = {.fresh = "F", .schema = "S", .retries = 2};
    bool found = false;
    adapter_claude.command(&command, &call);
    for (uint32_t ix = 0; ix < command.env_count; ix++) {
        found = found || strcmp(command.env[ix],
                                "CLAUDE_CODE_DISABLE_ATTACHMENTS=1") == 0;
    }
    assert_true(found);
    assert_string_equal(command.env[0], "CLAUDE_CODE_MAX_RETRIES=2");
    adapter_command_release(&command);
}

static void permissions_are_as_narrow_as_asked(void **state)
{
    (void)state;
    static const char *const tools[] = {"Read", "Bash(make:*)"};
    struct adapter_call call = {
        .permissions = ADAPTER_EDIT,
        .fresh = "F",
        .schema = "S",
        .schema_file = "SF",
        .git_dir = "/r/.git/worktrees/\"a\"",
        .common_dir = "/r/.git",
        .usd_left = 1.5,
    };
    char *text = command_of("claude", &call);
    assert_non_null(strstr(text,
                           " --permission-mode acceptEdits --allowedTools "
                           "Bash(git add:*) Bash(git commit:*) "
                           "--max-budget-usd 1.5000"));
    free(text);
    text = command_of("codex", &call);
    assert_non_null(strstr(text,
                           " -s workspace-write -c "
                           "sandbox_workspace_write.writable_roots="
                           "[\"/r/.git/worktrees/\\\"a\\\"\",\"/r/.git\"] -"));
    free(text);
    call.permissions = ADAPTER_TOOLS;
    text = command_of("claude", &call);
    assert_null(strstr(text, "--allowedTools"));
    free(text);
    call.tools = tools;
    call.tool_count = 2;
    text = command_of("claude", &call);
    assert_non_null(strstr(text, " --allowedTools Read Bash(make:*) --max"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_capture_is_judged_as_expected),
        cmocka_unit_test(every_capture_is_expected),
        cmocka_unit_test(a_result_in_a_text_is_not_a_result),
        cmocka_unit_test(a_limit_that_was_overcome_is_none),
        cmocka_unit_test(codex_that_reconnects_has_not_failed),
        cmocka_unit_test(messages_count_once_when_there_is_no_result),
        cmocka_unit_test(numbers_out_of_range_are_none),
        cmocka_unit_test(an_id_that_is_an_option_or_a_path_is_none),
        cmocka_unit_test(a_cut_text_is_whole_characters),
        cmocka_unit_test(commands_are_those_that_were_tried),
        cmocka_unit_test(commands_name_the_mcp_server),
        cmocka_unit_test(gemini_has_the_mcp_server_in_a_file),
        cmocka_unit_test(opencode_has_the_mcp_server_in_a_variable),
        cmocka_unit_test(the_path_of_the_mcp_server_may_have_any_character),
        cmocka_unit_test(a_path_that_is_not_utf8_gives_no_mcp_server),
        cmocka_unit_test(without_the_mcp_server_there_is_no_file),
        cmocka_unit_test(claude_reads_no_file_that_an_issue_mentions),
        cmocka_unit_test(permissions_are_as_narrow_as_asked),
    };
    if (setenv("TZ", "UTC", 1) != 0) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
