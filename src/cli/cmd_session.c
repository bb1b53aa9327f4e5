/* SPDX-License-Identifier: MIT */
/* sluice session: what a session can ask of sluice and tell it, for agents that
 * prefer a shell. The verbs are the tools of `sluice mcp`. */
#include "base/sha256.h"
#include "cli/cli.h"
#include "mcp/session.h"

#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

struct args {
    struct cli_line line;
    const char *key;
    const char *arguments;
};

static const struct tool *find(const char *verb)
{
    for (uint32_t ix = 0; ix < session_tool_count; ix++) {
        if (strcmp(session_tools[ix].name, verb) == 0) {
            return &session_tools[ix];
        }
    }
    return NULL;
}

/* Join words with blanks, from the one at `first` on. */
static void join(struct strbuf *out, char **words, int first, int count)
{
    for (int ix = first; ix < count; ix++) {
        strbuf_adds(out, ix > first ? " " : "");
        strbuf_adds(out, words[ix]);
    }
}

/* Read a file or standard input as a string for JSON; NULL after an error. */
static json_t *read_file(const struct cli_command *command, const char *path)
{
    struct cli_file file = {0};
    struct diag diag = {0};
    if (cli_read_file(&file, path, &diag) != ERR_OK) {
        (void)cli_fail(command, "%s", diag.text);
        return NULL;
    }
    json_t *text = json_stringn(file.text, file.bytes);
    if (text == NULL) {
        (void)cli_fail(command, "%s is not UTF-8", file.path);
    }
    cli_release_file(&file);
    return text;
}

/* A key for a fragment without one: the same fragment has the same key. */
static json_t *key_of(const json_t *fragment)
{
    unsigned char hash[SHA256_BYTES];
    char text[2 * SHA256_BYTES + 1];
    sha256(json_string_value(fragment), json_string_length(fragment), hash);
    for (int ix = 0; ix < SHA256_BYTES; ix++) {
        (void)snprintf(text + (ptrdiff_t)2 * ix, 3, "%02x", hash[ix]);
    }
    return json_string(text);
}

static json_t *add_arguments(const struct args *args, char **words, int count)
{
    const struct cli_command *command = args->line.command;
    if (count != 1) {
        (void)cli_fail(command, "add takes one FRAGMENT, a file or -");
        return NULL;
    }
    json_t *fragment = read_file(command, words[0]);
    if (fragment == NULL) {
        return NULL;
    }
    json_t *key = args->key != NULL ? json_string(args->key) : key_of(fragment);
    if (key == NULL) {
        json_decref(fragment);
        (void)cli_fail(command, "--key is not UTF-8");
        return NULL;
    }
    return json_pack("{s:o, s:o}", "fragment", fragment, "key", key);
}

/* Make the arguments of a call from the operands after the verb. NULL after an
 * error. */
static json_t *make_arguments(const struct args *args,
                              const struct tool *tool,
                              char **words,
                              int count)
{
    const struct cli_command *command = args->line.command;
    struct strbuf rest = {0};
    json_t *made = json_object();
    /* The parameters that operands fill: the last one takes all the rest. */
    uint32_t most = strcmp(tool->name, "finish") == 0 ? 2
                    : tool->param_count > 0           ? 1
                                                      : 0;
    if (most == 0 && count > 0) {
        (void)cli_fail(command, "unexpected argument \"%s\"", words[0]);
        json_decref(made);
        return NULL;
    }
    for (uint32_t ix = 0; ix < most && (int)ix < count; ix++) {
        strbuf_clear(&rest);
        join(&rest, words, (int)ix, ix + 1 == most ? count : (int)ix + 1);
        json_t *text = json_stringn(strbuf_text(&rest), rest.len);
        if (text == NULL) {
            (void)cli_fail(command, "an argument is not UTF-8");
            json_decref(made);
            made = NULL;
            break;
        }
        (void)json_object_set_new(made, tool->params[ix].name, text);
    }
    strbuf_release(&rest);
    return made;
}

/* Parse --args: JSON, or - for standard input. NULL after an error. */
static json_t *parse_arguments(const struct args *args)
{
    const struct cli_command *command = args->line.command;
    json_error_t error;
    json_t *text = strcmp(args->arguments, "-") == 0
                       ? read_file(command, "-")
                       : json_string(args->arguments);
    if (text == NULL && strcmp(args->arguments, "-") != 0) {
        (void)cli_fail(command, "--args is not UTF-8");
    }
    if (text == NULL) {
        return NULL;
    }
    json_t *made =
        json_loads(json_string_value(text), JSON_REJECT_DUPLICATES, &error);
    json_decref(text);
    if (!json_is_object(made)) {
        (void)cli_fail(command,
                       "--args must be a JSON object: %s",
                       made == NULL ? error.text : "it is something else");
        json_decref(made);
        return NULL;
    }
    return made;
}

static int call(const struct cli_command *command,
                const struct tool *tool,
                json_t *arguments)
{
    struct strbuf out = {0};
    struct diag diag = {0};
    enum err err = tool_call(tool, arguments, &out, &diag);
    int code;
    if (err == ERR_OK) {
        if (out.len > 0 && out.text[out.len - 1] != '\n') {
            strbuf_adds(&out, "\n");
        }
        code = cli_write(&out);
    } else {
        (void)fprintf(stderr, "sluice %s: %s\n", command->name, diag.text);
        code = err_exit_code(err);
    }
    strbuf_release(&out);
    return code;
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args args = {0};
    int code = cli_parse(&args.line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    if (optind == argc) {
        return cli_fail(command,
                        "missing VERB: task, plan, why, add, progress, finish "
                        "or ask");
    }
    const struct tool *tool = find(argv[optind]);
    char **words = argv + optind + 1;
    int count = argc - optind - 1;
    if (tool == NULL) {
        return cli_fail(command,
                        "unknown verb \"%s\": use task, plan, why, add, "
                        "progress, finish or ask",
                        argv[optind]);
    }
    if (args.key != NULL && strcmp(tool->name, "add") != 0) {
        return cli_fail(command, "--key is for add");
    }
    if (args.arguments != NULL && count > 0) {
        return cli_fail(command,
                        "--args and other arguments exclude each other");
    }
    json_t *made = args.arguments != NULL ? parse_arguments(&args)
                   : strcmp(tool->name, "add") == 0
                       ? add_arguments(&args, words, count)
                       : make_arguments(&args, tool, words, count);
    code = made != NULL ? call(command, tool, made) : CLI_USAGE;
    json_decref(made);
    return code;
}

static const struct cli_option options[] = {
    {"args",
     "JSON",
     "arguments as a JSON object, or -",
     CLI_AT(args, arguments)},
    {"key",
     "KEY",
     "of add: add nothing if the run has a fragment of this key",
     CLI_AT(args, key)},
    {0},
};

const struct cli_command cli_session = {
    .name = "session",
    .synopsis = "[--args JSON] [--key KEY] VERB [ARG]...",
    .summary = "inside a session: see its task, add work, ask, finish",
    .options = options,
    .run = run,
};
