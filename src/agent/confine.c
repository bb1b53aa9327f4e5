/* SPDX-License-Identifier: MIT */
#include "agent/confine.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_CANNOT = 126 }; /* of sluice-sandbox */

/* Variables of proxies and certificates, which every agent uses. */
static const char *const network[] = {
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
};

/* Append the path of a file of the agent, unless it has no place. */
static void add_file(struct adapter_command *out,
                     const struct adapter_file *file)
{
    static const char *const options[] = {
        [ADAPTER_STATE] = "--state",
        [ADAPTER_LOGIN] = "--login",
        [ADAPTER_CONFIG] = "--config",
        [ADAPTER_COPY] = "--copy",
    };
    const char *dir = file->variable != NULL ? getenv(file->variable) : NULL;
    const char *home = getenv("HOME");
    struct strbuf path = {0};
    if (dir != NULL && dir[0] == '/') {
        strbuf_addf(&path, "%s/%s", dir, file->name);
    } else if (home != NULL && home[0] == '/') {
        strbuf_addf(&path, "%s/%s/%s", home, file->dir, file->name);
    }
    if (path.len > 0) {
        adapter_add_option(out, options[file->kind], strbuf_text(&path));
    }
    strbuf_release(&path);
}

/* Append the name of a variable, given as NAME=value. */
static void add_variable(struct adapter_command *out, const char *item)
{
    struct strbuf name = {0};
    strbuf_add(&name, item, strcspn(item, "="));
    adapter_add_option(out, "--env", strbuf_text(&name));
    strbuf_release(&name);
}

void confine_command(struct adapter_command *command,
                     const struct brief *brief,
                     const struct confine_prefix *prefix)
{
    const struct adapter *adapter = brief->adapter;
    if (prefix->count == 0) {
        return;
    }
    if (adapter->root_variable != NULL && geteuid() == 0) {
        adapter_add_env(command, adapter->root_variable, "1");
    }
    struct adapter_command made = {0};
    adapter_add_words(&made, prefix->words, prefix->count);
    adapter_add_option(&made, "--program", command->words[0]);
    for (uint32_t ix = 0; ix < adapter->file_count; ix++) {
        add_file(&made, &adapter->files[ix]);
    }
    for (uint32_t ix = 0; ix < adapter->variable_count; ix++) {
        adapter_add_option(&made, "--env", adapter->variables[ix]);
    }
    for (size_t ix = 0; ix < ARRAY_COUNT(network); ix++) {
        adapter_add_option(&made, "--env", network[ix]);
    }
    for (uint32_t ix = 0; ix < brief->env_count; ix++) {
        add_variable(&made, brief->env[ix]);
    }
    for (uint32_t ix = 0; ix < command->env_count; ix++) {
        const char *item = command->env[ix];
        struct strbuf name = {0};
        size_t len = strcspn(item, "=");
        strbuf_add(&name, item, len);
        add_variable(&made, item);
        adapter_add_env(&made, strbuf_text(&name), item + len + 1);
        strbuf_release(&name);
    }
    adapter_add(&made, "--");
    adapter_add_words(&made, command->words, command->word_count);
    adapter_command_release(command);
    *command = made;
}

const char *confine_refusal(const struct confine_prefix *prefix,
                            int code,
                            const char *errors)
{
    static const char refusal[] = "sluice-sandbox: not run: ";
    bool refused = prefix->count > 0 && code == EXIT_CANNOT &&
                   strncmp(errors, refusal, strlen(refusal)) == 0;
    return refused ? errors + strlen(refusal) : NULL;
}
