/* SPDX-License-Identifier: MIT */
/* sluice usage: print meters and their effect; set the override. */
#include "base/jsonw.h"
#include "cli/cli.h"
#include "cli/request.h"
#include "view/glance.h"
#include "view/target.h"
#include "view/usage.h"

#include <getopt.h>
#include <string.h>

struct args {
    struct cli_line line;
    const char *override; /* "on", "off" or NULL */
};

/* Whether sessions of a provider have reported a limit, and until when. */
static bool is_paused(const struct glance *glance, uint32_t ix, int64_t *until)
{
    struct engine *engine = glance->view.engine;
    struct provider_id id = {ix};
    int64_t until_ns;
    if (sched_provider_state(engine_sched(engine), id, &until_ns) !=
        PROVIDER_USAGE) {
        return false;
    }
    *until = glance->wall_ns + (until_ns - engine_time_ns(engine));
    return true;
}

static void add_providers(struct strbuf *out, const struct glance *glance)
{
    const struct load *load = engine_loader(glance->view.engine);
    for (uint32_t ix = 0; ix < load_provider_count(load); ix++) {
        int64_t until_ns;
        if (is_paused(glance, ix, &until_ns)) {
            strbuf_addf(out,
                        "provider %s: paused until ",
                        load_provider_name(load, (struct provider_id){ix}));
            usage_add_time(out, until_ns, glance->wall_ns);
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
    const struct load *load = engine_loader(glance->view.engine);
    jsonw_array(json, "paused_providers");
    for (uint32_t ix = 0; ix < load_provider_count(load); ix++) {
        struct provider_id id = {ix};
        int64_t until_ns;
        if (is_paused(glance, ix, &until_ns)) {
            jsonw_object(json, NULL);
            jsonw_text(json, "provider", load_provider_name(load, id));
            jsonw_moment(json, "until", until_ns);
            jsonw_object_end(json);
        }
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
    jsonw_finish(&json);
}

static int set_override(const struct args *args)
{
    bool on = strcmp(args->override, "on") == 0;
    if (!on && strcmp(args->override, "off") != 0) {
        return cli_fail(args->line.command,
                        "--override takes on or off, not \"%s\"",
                        args->override);
    }
    if (args->line.wanted.run != NULL) {
        return cli_fail(args->line.command,
                        "the override applies to the whole store: omit --run");
    }
    return request_carry_out(&args->line,
                             on ? "{\"verb\":\"usage\",\"override\":true}"
                                : "{\"verb\":\"usage\",\"override\":false}");
}

static int run(const struct cli_command *command, int argc, char **argv)
{
    struct args args = {0};
    const struct cli_line *line = &args.line;
    int code = cli_parse(&args.line, command, argc, argv);
    if (code != CLI_END) {
        return code;
    }
    return args.override != NULL
               ? set_override(&args)
               : cli_show(line, line->json ? add_json : add_text);
}

static const struct cli_option options[] = {
    CLIENT_OPTION_JSON,
    {"override",
     "STATE",
     "on: meters and reported limits have no effect; off: they do",
     CLI_AT(args, override)},
    CLIENT_OPTION_RUN,
    CLIENT_OPTION_STORE,
    {0},
};

const struct cli_command cli_usage = {
    .name = "usage",
    .synopsis = "[--override STATE] [OPTION]... [RUN]",
    .summary = "show usage meters and their effect, or override them",
    .options = options,
    .operand = CLI_OPERAND_RUN,
    .run = run,
};
