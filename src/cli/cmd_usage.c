/* SPDX-License-Identifier: MIT */
/* sluice usage: what meters show, what follows from them; the override. */
#include "base/jsonw.h"
#include "cli/cli.h"
#include "cli/request.h"
#include "view/glance.h"
#include "view/target.h"
#include "view/usage.h"

#include <getopt.h>
#include <string.h>

enum { OPT_OVERRIDE = 1 };

struct line {
    const struct cli_command *command;
    struct glance_options wanted;
    bool json;
    const char *override; /* "on", "off" or NULL */
};

/* Providers whose sessions have reported a limit. */
static void add_providers(struct strbuf *out, const struct glance *glance)
{
    struct engine *engine = glance->view.engine;
    const struct load *load = engine_loader(engine);
    for (uint32_t ix = 0; ix < load_provider_count(load); ix++) {
        struct provider_id id = {ix};
        int64_t until_ns;
        if (sched_provider_state(engine_sched(engine), id, &until_ns) ==
            PROVIDER_USAGE) {
            strbuf_addf(out,
                        "provider %s: paused until ",
                        load_provider_name(load, id));
            usage_add_time(out,
                           glance->wall_ns +
                               (until_ns - engine_time_ns(engine)),
                           glance->wall_ns);
            strbuf_adds(out, ", reported by a session\n");
        }
    }
}

static void add_text(struct strbuf *out,
                     const struct glance *glance,
                     const struct glance_options *options)
{
    const struct engine *engine = glance->view.engine;
    bool any = false;
    usage_add_override(out, engine);
    usage_add_stopped(out, engine);
    add_providers(out, glance);
    for (uint32_t ix = 0; ix < engine_run_count(engine); ix++) {
        struct engine_run_view run = engine_run(engine, ix);
        if (!glance_is_meant(options, &run) || run.plan->usage_count == 0) {
            continue;
        }
        any = true;
        int64_t set = engine_limit_set(engine, ix, 0);
        strbuf_addf(out, "run %s: cap ", run.id);
        if (set == LIMIT_NONE) {
            strbuf_adds(out, "none\n");
        } else {
            strbuf_addf(out, "%lld\n", (long long)set);
        }
        usage_add_monitors(out, engine, ix, glance->wall_ns, "  ");
    }
    if (!any) {
        strbuf_adds(out, "no unfinished run has a usage monitor\n");
    }
}

static void json_providers(struct jsonw *json, const struct glance *glance)
{
    struct engine *engine = glance->view.engine;
    const struct load *load = engine_loader(engine);
    jsonw_array(json, "paused_providers");
    for (uint32_t ix = 0; ix < load_provider_count(load); ix++) {
        struct provider_id id = {ix};
        int64_t until_ns;
        if (sched_provider_state(engine_sched(engine), id, &until_ns) !=
            PROVIDER_USAGE) {
            continue;
        }
        int64_t left_ns = until_ns - engine_time_ns(engine);
        jsonw_object(json, NULL);
        jsonw_text(json, "provider", load_provider_name(load, id));
        jsonw_moment(json, "until", glance->wall_ns + left_ns);
        jsonw_object_end(json);
    }
    jsonw_array_end(json);
}

static void json_stopped(struct jsonw *json, const struct engine *engine)
{
    const struct load *load = engine_loader(engine);
    jsonw_array(json, "stopped_providers");
    for (uint32_t ix = 0; ix < load_provider_count(load); ix++) {
        struct provider_id id = {ix};
        const char *reason = engine_stop_reason(engine, id);
        if (reason != NULL) {
            jsonw_object(json, NULL);
            jsonw_text(json, "provider", load_provider_name(load, id));
            jsonw_text(json, "reason", reason);
            jsonw_object_end(json);
        }
    }
    jsonw_array_end(json);
}

static void add_json(struct strbuf *out,
                     const struct glance *glance,
                     const struct glance_options *options)
{
    const struct engine *engine = glance->view.engine;
    struct jsonw json = {.out = out, .spaced = true};
    jsonw_object(&json, NULL);
    jsonw_bool(&json, "override", engine_is_overridden(engine));
    json_providers(&json, glance);
    json_stopped(&json, engine);
    glance_json_runs(out, glance, options, "usage", usage_json_monitors);
    jsonw_object_end(&json);
    strbuf_adds(out, "\n");
}

static int show(const struct line *line)
{
    return cli_show(line->command,
                    &line->wanted,
                    line->json ? add_json : add_text);
}

static int set_override(const struct line *line)
{
    bool on = strcmp(line->override, "on") == 0;
    if (!on && strcmp(line->override, "off") != 0) {
        return cli_fail(line->command,
                        "--override takes on or off, not \"%s\"",
                        line->override);
    }
    if (line->wanted.run != NULL) {
        return cli_fail(line->command,
                        "the override applies to the whole store: omit --run");
    }
    return request_carry_out(line->command,
                             line->wanted.store,
                             line->json,
                             on ? "{\"verb\":\"usage\",\"override\":true}"
                                : "{\"verb\":\"usage\",\"override\":false}");
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct line line = {.command = command};
    for (;;) {
        const char *argument = NULL;
        int code = cli_next(command, argc, argv, &argument);
        if (code == CLI_END) {
            break;
        }
        if (code < 0) {
            return code == CLI_HELP ? CLI_OK : CLI_USAGE;
        }
        if (code == CLIENT_OPT_STORE) {
            line.wanted.store = argument;
        } else if (code == CLIENT_OPT_RUN) {
            line.wanted.run = argument;
        } else if (code == CLIENT_OPT_JSON) {
            line.json = true;
        } else {
            line.override = argument;
        }
    }
    int code = cli_run_operand(command, argc, argv, &line.wanted.run);
    if (code != CLI_OK) {
        return code;
    }
    return line.override != NULL ? set_override(&line) : show(&line);
}

static const struct cli_option options[] = {
    CLIENT_OPTION_JSON,
    {"override",
     "STATE",
     "on: meters and reported limits have no effect; off: they do",
     OPT_OVERRIDE},
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_usage = {
    .name = "usage",
    .synopsis = "[--override STATE] [OPTION]... [RUN]",
    .summary = "show usage meters and their effect, or override them",
    .options = options,
    .run = run,
};
