/* SPDX-License-Identifier: MIT */
/*
 * The name of an operand or of an option's argument in the tables selects its
 * completion: FILE, PLAN and FRAGMENT complete files, DIR directories, words
 * separated by a bar ("github|beads") themselves; other names complete nothing.
 * Help strings are quoted for each shell.
 */
#include "cli/completion.h"

#include "base/macros.h"

#include <stdio.h>
#include <string.h>

enum kind { KIND_NONE, KIND_FILE, KIND_DIR };

/* Commands of main() that no table lists. */
#define OTHERS "completion help version"

/* Return the kind of an uppercase name. */
static enum kind kind_of(const char *name)
{
    static const char *const files[] = {"FILE", "FRAGMENT", "PLAN"};
    for (size_t ix = 0; ix < ARRAY_COUNT(files); ix++) {
        if (strcmp(name, files[ix]) == 0) {
            return KIND_FILE;
        }
    }
    return strcmp(name, "DIR") == 0 ? KIND_DIR : KIND_NONE;
}

/*
 * Return the kind of a command's operands, from its synopsis, and append the
 * words it offers to *words, each after a space. In a synopsis, brackets
 * enclose options with their arguments.
 */
static enum kind operands(const struct cli_command *command,
                          struct strbuf *words)
{
    enum kind kind = KIND_NONE;
    const char *at = command->synopsis;
    while (*at != '\0') {
        char name[64];
        size_t len = strcspn(at, " ");
        bool option = at[0] == '-' || (at[0] == '[' && at[1] == '-');
        size_t skip = at[0] == '[' ? 1 : 0;
        size_t word = strcspn(at + skip, " ].");
        (void)snprintf(name, sizeof(name), "%.*s", (int)word, at + skip);
        if (option) { /* up to its bracket, or one word */
            len = at[0] == '[' ? strcspn(at, "]") + 1 : len;
        } else if (kind_of(name) != KIND_NONE) {
            kind = kind_of(name);
        } else if (name[0] >= 'a' && name[0] <= 'z') {
            for (char *bar = name; (bar = strchr(bar, '|')) != NULL;) {
                *bar = ' ';
            }
            strbuf_addf(words, " %s", name);
        }
        at += len;
        at += strspn(at, " ");
    }
    return kind;
}

/* Append a string in single quotes, with a backslash before `escaped`
 * characters and `quote` for a single quote. */
static void add_quoted(struct strbuf *out,
                       const char *text,
                       const char *escaped,
                       const char *quote)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            strbuf_adds(out, quote);
        } else if (strchr(escaped, *text) != NULL) {
            strbuf_addf(out, "\\%c", *text);
        } else {
            strbuf_add(out, text, 1);
        }
    }
}

/* --- bash --------------------------------------------------------------- */

/* Append NAME="..." with the options whose argument has this kind, or with
 * `all` every option. */
static void bash_list(struct strbuf *out,
                      const char *name,
                      const struct cli_command *command,
                      bool all,
                      enum kind kind)
{
    strbuf_addf(out, "        %s=\"", name);
    for (const struct cli_option *option = command->options;
         option->name != NULL;
         option++) {
        bool of_kind =
            option->argument != NULL && kind_of(option->argument) == kind;
        if (!all && !of_kind) {
            continue;
        }
        strbuf_addf(out, " --%s", option->name);
        if (cli_letter(option) != '\0') {
            strbuf_addf(out, " -%c", cli_letter(option));
        }
    }
    strbuf_addf(out, "%s\"\n", all ? " --help -h" : "");
}

static void bash_command(struct strbuf *out, const struct cli_command *command)
{
    struct strbuf words = {0};
    enum kind kind = operands(command, &words);
    strbuf_addf(out, "    %s)\n", command->name);
    bash_list(out, "options", command, true, KIND_NONE);
    bash_list(out, "files", command, false, KIND_FILE);
    bash_list(out, "directories", command, false, KIND_DIR);
    bash_list(out, "others", command, false, KIND_NONE);
    strbuf_addf(out, "        words=\"%s\"\n", strbuf_text(&words));
    strbuf_addf(out,
                "        operand=%s\n        ;;\n",
                kind == KIND_FILE  ? "-f"
                : kind == KIND_DIR ? "-d"
                                   : "");
    strbuf_release(&words);
}

static void add_bash(struct strbuf *out,
                     const struct cli_command *const *commands,
                     size_t count)
{
    strbuf_adds(
        out,
        "# bash completion for sluice, created by 'sluice completion "
        "bash'\n_sluice()\n{\n    local cur=${COMP_WORDS[COMP_CWORD]}\n    "
        "local prev=${COMP_WORDS[COMP_CWORD - 1]}\n    local options= files= "
        "directories= others= words= operand=\n    local commands=\"");
    for (size_t ix = 0; ix < count; ix++) {
        strbuf_addf(out, "%s ", commands[ix]->name);
    }
    strbuf_adds(out,
                OTHERS "\"\n"
                       "    COMPREPLY=()\n"
                       "    if ((COMP_CWORD == 1)); then\n"
                       "        mapfile -t COMPREPLY < <(compgen -W "
                       "\"$commands --help --version\" -- \"$cur\")\n"
                       "        return\n"
                       "    fi\n"
                       "    case ${COMP_WORDS[1]} in\n"
                       "    completion) words=\"bash fish zsh\" ;;\n"
                       "    help) words=$commands ;;\n");
    for (size_t ix = 0; ix < count; ix++) {
        bash_command(out, commands[ix]);
    }
    strbuf_adds(out,
                "    esac\n"
                "    case \" $others \" in *\" $prev \"*) return ;; esac\n"
                "    case \" $files \" in *\" $prev \"*) operand=-f words= ;; "
                "esac\n"
                "    case \" $directories \" in *\" $prev \"*) operand=-d "
                "words= ;; esac\n"
                "    if [[ $cur == -* ]]; then\n"
                "        words=$options operand=\n"
                "    fi\n"
                "    mapfile -t COMPREPLY < <(\n"
                "        [ -z \"$words\" ] || compgen -W \"$words\" -- "
                "\"$cur\"\n"
                "        [ -z \"$operand\" ] || compgen \"$operand\" -- "
                "\"$cur\"\n"
                "    )\n"
                "    [ -z \"$operand\" ] || compopt -o filenames 2>/dev/null\n"
                "}\n"
                "complete -F _sluice sluice\n");
}

/* --- zsh ---------------------------------------------------------------- */

static const char *zsh_action(enum kind kind)
{
    return kind == KIND_FILE ? "_files" : kind == KIND_DIR ? "_files -/" : " ";
}

static void zsh_option(struct strbuf *out, const struct cli_option *option)
{
    strbuf_adds(out, "            ");
    if (cli_letter(option) != '\0') {
        strbuf_addf(out, "{-%c,--%s}'[", cli_letter(option), option->name);
    } else {
        strbuf_addf(out, "'--%s[", option->name);
    }
    add_quoted(out, option->help, "[]\\", "'\\''");
    strbuf_adds(out, "]");
    if (option->argument != NULL) {
        strbuf_adds(out, ":");
        add_quoted(out, option->argument, ":\\", "'\\''");
        strbuf_addf(out, ":%s", zsh_action(kind_of(option->argument)));
    }
    strbuf_adds(out, "' \\\n");
}

static void zsh_command(struct strbuf *out, const struct cli_command *command)
{
    struct strbuf words = {0};
    enum kind kind = operands(command, &words);
    strbuf_addf(out, "    %s)\n        _arguments \\\n", command->name);
    for (const struct cli_option *option = command->options;
         option->name != NULL;
         option++) {
        zsh_option(out, option);
    }
    strbuf_adds(out, "            {-h,--help}'[print this help]' \\\n");
    if (words.len > 0) {
        strbuf_addf(out,
                    "            '1:word:(%s)' \\\n",
                    strbuf_text(&words) + 1);
    }
    strbuf_addf(out, "            '*:operand:%s'\n", zsh_action(kind));
    strbuf_adds(out, "        ;;\n");
    strbuf_release(&words);
}

static void add_zsh(struct strbuf *out,
                    const struct cli_command *const *commands,
                    size_t count)
{
    strbuf_adds(out,
                "#compdef sluice\n# zsh completion for sluice, created by "
                "'sluice completion zsh'\n_sluice() {\n    local -a commands\n "
                "   commands=(\n");
    for (size_t ix = 0; ix < count; ix++) {
        strbuf_addf(out, "        '%s:", commands[ix]->name);
        add_quoted(out, commands[ix]->summary, "\\", "'\\''");
        strbuf_adds(out, "'\n");
    }
    strbuf_adds(out,
                "        'completion:print a completion script'\n"
                "        'help:print a summary, or the options of a command'\n"
                "        'version:print the version'\n"
                "    )\n"
                "    if (( CURRENT == 2 )); then\n"
                "        _describe -t commands command commands\n"
                "        return\n"
                "    fi\n"
                "    shift words\n"
                "    (( CURRENT-- ))\n"
                "    case $words[1] in\n"
                "    completion) _arguments '1:shell:(bash fish zsh)' ;;\n"
                "    help) _describe -t commands command commands ;;\n");
    for (size_t ix = 0; ix < count; ix++) {
        zsh_command(out, commands[ix]);
    }
    strbuf_adds(out,
                "    esac\n"
                "}\n"
                "if [ \"${funcstack[1]}\" = _sluice ]; then\n"
                "    _sluice \"$@\"\n"
                "else\n"
                "    compdef _sluice sluice\n"
                "fi\n");
}

/* --- fish --------------------------------------------------------------- */

/* Append the start of a rule for a command; NULL: for sluice itself. */
static void fish_rule(struct strbuf *out, const char *command)
{
    strbuf_adds(out, "complete -c sluice -n ");
    if (command == NULL) {
        strbuf_adds(out, "__fish_use_subcommand");
    } else {
        strbuf_addf(out, "'__fish_seen_subcommand_from %s'", command);
    }
}

static void fish_help(struct strbuf *out, const char *text)
{
    strbuf_adds(out, " -d '");
    add_quoted(out, text, "\\", "\\'");
    strbuf_adds(out, "'\n");
}

static void fish_command(struct strbuf *out, const struct cli_command *command)
{
    struct strbuf words = {0};
    enum kind kind = operands(command, &words);
    fish_rule(out, NULL);
    strbuf_addf(out, " -a %s", command->name);
    fish_help(out, command->summary);
    for (const struct cli_option *option = command->options;
         option->name != NULL;
         option++) {
        fish_rule(out, command->name);
        strbuf_addf(out, " -l %s", option->name);
        if (cli_letter(option) != '\0') {
            strbuf_addf(out, " -s %c", cli_letter(option));
        }
        if (option->argument != NULL) {
            enum kind of = kind_of(option->argument);
            strbuf_adds(out,
                        of == KIND_FILE ? " -r -F"
                        : of == KIND_DIR
                            ? " -x -a '(__fish_complete_directories)'"
                            : " -x");
        }
        fish_help(out, option->help);
    }
    if (words.len > 0) {
        fish_rule(out, command->name);
        strbuf_addf(out, " -a '%s'\n", strbuf_text(&words) + 1);
    }
    if (kind != KIND_NONE) {
        fish_rule(out, command->name);
        strbuf_adds(out,
                    kind == KIND_FILE
                        ? " -F\n"
                        : " -a '(__fish_complete_directories)'\n");
    }
    strbuf_release(&words);
}

static void add_fish(struct strbuf *out,
                     const struct cli_command *const *commands,
                     size_t count)
{
    strbuf_adds(out,
                "# fish completion for sluice, created by 'sluice completion "
                "fish'\ncomplete -c sluice -f\ncomplete -c sluice -s h -l help "
                "-d 'print this help'\n");
    fish_rule(out, NULL);
    strbuf_adds(out, " -a '" OTHERS "'\n");
    fish_rule(out, "completion");
    strbuf_adds(out, " -a 'bash fish zsh'\n");
    for (size_t ix = 0; ix < count; ix++) {
        fish_command(out, commands[ix]);
    }
}

int completion_print(const char *shell,
                     const struct cli_command *const *commands,
                     size_t count)
{
    struct strbuf out = {0};
    if (shell != NULL && strcmp(shell, "bash") == 0) {
        add_bash(&out, commands, count);
    } else if (shell != NULL && strcmp(shell, "zsh") == 0) {
        add_zsh(&out, commands, count);
    } else if (shell != NULL && strcmp(shell, "fish") == 0) {
        add_fish(&out, commands, count);
    } else {
        (void)fprintf(stderr,
                      "sluice completion: missing shell: bash, fish or zsh\n");
        return CLI_USAGE;
    }
    return cli_print(&out);
}
