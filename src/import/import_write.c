/* SPDX-License-Identifier: MIT */
/*
 * Writer of the plan as YAML with comments, or as JSON, which is YAML too.
 * Equal issues give equal bytes: repositories are in the order of their names,
 * groups in the order of import->order, after the parents.
 */
#include "base/jsonw.h"
#include "base/mem.h"
#include "import/import_internal.h"
#include "plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    TITLE_BYTES_MAX = 1000, /* maximum in a plan */
    NAME_BYTES_MAX = 200,
    LABEL_BYTES_MAX = 200,
    URL_BYTES_MAX = 1000,
    COMMENT_BYTES_MAX = 500,
    FIXES_MAX = 3,
    REVIEWS_MAX = 2,
};

#define RUN_DEFAULT "./agent implement \"$SLUICE_GROUP\""

enum { STAGES_MAX = 4 };

/* Names of the sources on the command line. */
static const char *const sources[] = {
    [IMPORT_GITHUB] = "github",
    [IMPORT_BEADS] = "beads",
    [IMPORT_TASKMASTER] = "taskmaster",
};

/* A stage of the pipeline. Without command and agent it merges. */
struct stage {
    const char *name;
    const char *run;
    const char *agent;
    int rework; /* 0: none */
};

/* List the stages that the options select; return their number. */
static uint32_t list_stages(const struct import *import,
                            struct stage out[STAGES_MAX])
{
    const struct import_options *options = &import->options;
    uint32_t count = 0;
    out[count++] = (struct stage){
        .name = "implement",
        .run = options->agent != NULL ? NULL
               : options->run != NULL ? options->run
                                      : RUN_DEFAULT,
        .agent = options->agent,
    };
    if (options->gate != NULL && strcmp(options->gate, "none") != 0) {
        out[count++] = (struct stage){
            .name = "gate",
            .run = options->gate,
            .rework = FIXES_MAX,
        };
    }
    if (options->review != NULL || options->review_agent != NULL) {
        out[count++] = (struct stage){
            .name = "review",
            .run = options->review,
            .agent = options->review_agent,
            .rework = REVIEWS_MAX,
        };
    }
    if (options->merge) {
        out[count++] = (struct stage){.name = "merge"};
    }
    return count;
}

/* Append the name of the plan. */
static void add_name(const struct import *import, struct strbuf *out)
{
    const struct import_options *options = &import->options;
    size_t begin = out->len;
    if (options->name != NULL) {
        strbuf_adds(out, options->name);
        return;
    }
    if (options->milestone != NULL) {
        import_add_line(out, import_span(options->milestone), NAME_BYTES_MAX);
    }
    for (uint32_t ix = 0; out->len == begin && ix < import->issue_count &&
                          import->counts.repos == 1;
         ix++) {
        if (import->issues[ix].chosen) {
            const struct import_issue *issue = &import->issues[ix];
            strbuf_addf(out, "%s issues", import->repos[issue->repo].key);
        }
    }
    if (out->len == begin) {
        strbuf_adds(out, "issues");
    }
}

/* Append the path of the clone of a repository. */
static void add_path(const struct import *import,
                     const struct import_repo *repo,
                     struct strbuf *out)
{
    const struct import_options *options = &import->options;
    for (uint32_t ix = 0; ix < options->path_count; ix++) {
        if (strcmp(options->paths[ix].name, repo->key) == 0) {
            strbuf_adds(out, options->paths[ix].path);
            return;
        }
    }
    const char *folder = options->folder != NULL ? options->folder : "..";
    size_t len = strlen(folder);
    bool slash = len > 0 && folder[len - 1] == '/';
    strbuf_addf(out, "%s%s", folder, slash ? "" : "/");
    if (strchr(repo->key, '/') != NULL) { /* its name is not unique */
        strbuf_addf(out, "%s/", repo->owner);
    }
    strbuf_adds(out, repo->name);
}

/* Append the base branch of a repository; nothing if it is used as a plain
 * directory. */
static void
add_base(const struct import *import, const char *path, struct strbuf *out)
{
    const struct import_options *options = &import->options;
    if (options->base != NULL) {
        strbuf_adds(out, options->base);
        return;
    }
    if (!options->merge) {
        return;
    }
    if (options->branch != NULL) {
        options->branch(options->branch_ctx, path, out);
    }
    strbuf_adds(out, out->len == 0 ? "main" : "");
}

/* Return the labels as a plan can have them. */
static json_t *labels_json(const struct import_issue *issue)
{
    json_t *labels = json_array();
    for (size_t ix = 0; ix < json_array_size(issue->labels) &&
                        json_array_size(labels) < PLAN_LABELS_MAX;
         ix++) {
        struct strbuf line = {0};
        import_add_line(&line,
                        import_label(issue->labels, ix),
                        LABEL_BYTES_MAX);
        if (line.len > 0) {
            (void)json_array_append_new(labels, json_string(line.text));
        }
        strbuf_release(&line);
    }
    return labels;
}

/* Append the address of an issue, if a plan can have it. */
static void add_url(const struct import_issue *issue, struct strbuf *out)
{
    import_add_line(out, issue->url, URL_BYTES_MAX);
    const char *text = strbuf_text(out);
    bool web = strncmp(text, "https://", strlen("https://")) == 0 ||
               strncmp(text, "http://", strlen("http://")) == 0;
    if (!web || out->len != issue->url.len || strpbrk(text, " \"<>") != NULL) {
        strbuf_clear(out);
    }
}

/* Return the group that an issue is a part of, or NULL. */
static const struct import_issue *parent_of(const struct import *import,
                                            const struct import_issue *issue)
{
    bool part =
        issue->parent != IMPORT_NONE && import->issues[issue->parent].above;
    return part ? &import->issues[issue->parent] : NULL;
}

/* Find the parents of the chosen issues. */
static void mark_parents(struct import *import)
{
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        uint32_t at =
            import->issues[ix].chosen ? import->issues[ix].parent : IMPORT_NONE;
        while (at != IMPORT_NONE && !import->issues[at].above &&
               import_is_container(import, &import->issues[at])) {
            import->issues[at].above = true;
            at = import->issues[at].parent;
        }
    }
}

/* Return the next repository with a chosen issue; set *ix to that issue. */
static const struct import_repo *
next_repo(const struct import *import, uint32_t *ix, uint32_t *last)
{
    for (; *ix < import->issue_count; (*ix)++) {
        const struct import_issue *issue = &import->issues[*ix];
        if (issue->chosen && issue->repo != *last) {
            *last = issue->repo;
            return &import->repos[issue->repo];
        }
    }
    return NULL;
}

/* --- bodies ------------------------------------------------------------- */

/* Append the file path for a body. Special bytes of the id are escaped, so that
 * two ids never share a file. */
static void
add_body_path(const char *folder, const char *id, struct strbuf *out)
{
    strbuf_addf(out, "%s/", folder);
    for (; *id != '\0'; id++) {
        if (*id == '/' || *id == ':' || *id == '%') {
            strbuf_addf(out, "%%%02X", (unsigned)(unsigned char)*id);
        } else {
            strbuf_add(out, id, 1);
        }
    }
    strbuf_adds(out, ".md");
}

/* Set body and path of all chosen issues that have a body. */
static void set_bodies(struct import *import)
{
    const char *folder = import->options.bodies;
    struct strbuf text = {0};
    for (uint32_t ix = 0; ix < import->counts.issues; ix++) {
        struct import_issue *issue = &import->issues[import->order[ix]];
        strbuf_clear(&text);
        import_add_lines(&text, issue->body);
        issue->body = import_span("");
        if (text.len == 0) {
            continue;
        }
        strbuf_adds(&text, folder != NULL ? "\n" : "");
        issue->body =
            import_keep(import, (struct import_span){text.text, text.len});
        if (folder != NULL) {
            strbuf_clear(&text);
            add_body_path(folder, issue->id, &text);
            issue->file_body = (struct import_body){
                .path = arena_strndup(&import->arena, text.text, text.len),
                .text = issue->body.text,
                .len = issue->body.len,
            };
        }
    }
    strbuf_release(&text);
}

/* --- YAML --------------------------------------------------------------- */

/* Append a quoted string, with the quotes that need less escaping. */
static void add_text(struct strbuf *out, const char *text)
{
    bool single = strpbrk(text, "\"\\") != NULL && strchr(text, '\'') == NULL;
    for (const char *at = text; *at != '\0'; at++) {
        single =
            single && (unsigned char)*at >= ' ' && (unsigned char)*at < 0x7f;
    }
    if (single) {
        strbuf_addf(out, "'%s'", text);
    } else {
        jsonw_string(out, text);
    }
}

/* Append a string of several lines as a literal block. Each line is indented,
 * so that none can close it. */
static void add_block(struct strbuf *out, const char *text)
{
    strbuf_adds(out, "|2-\n");
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        strbuf_adds(out, len > 0 ? "      " : "");
        strbuf_add(out, text, len);
        strbuf_adds(out, "\n");
        text += len + (text[len] == '\n' ? 1 : 0);
    }
}

/* Append the name of a repository, quoted if YAML could misread it. */
static void add_key(struct strbuf *out, const char *key)
{
    static const char *const words[] =
        {"false", "no", "null", "off", "on", "true", "y", "n", "yes"};
    bool quote = *key >= '0' && *key <= '9';
    if (quote ||
        import_is_one_of(import_span(key), words, ARRAY_COUNT(words))) {
        jsonw_string(out, key);
    } else {
        strbuf_adds(out, key);
    }
}

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

/* Append comments with the numbers of issues left out. */
static void add_left_out(const struct import_counts *counts, struct strbuf *out)
{
    bool more = counts->parents + counts->deferred > 0;
    if (more || counts->closed + counts->others + counts->pulls > 0) {
        strbuf_addf(out,
                    "# Left out: %u closed, %u of other milestones or labels, "
                    "%u pull request%s%s\n",
                    counts->closed,
                    counts->others,
                    counts->pulls,
                    plural(counts->pulls),
                    more ? "," : ".");
    }
    if (more) {
        strbuf_addf(out,
                    "# %u parent%s of other issues, %u deferred.\n",
                    counts->parents,
                    plural(counts->parents),
                    counts->deferred);
    }
    if (counts->dropped > 0) {
        strbuf_addf(out,
                    "# %u reference%s left out, too: see \"not awaited\".\n",
                    counts->dropped,
                    plural(counts->dropped));
    }
}

static void add_head(const struct import *import, struct strbuf *out)
{
    const struct import_counts *counts = &import->counts;
    strbuf_addf(out,
                "# Created by \"sluice import %s\": %u issue%s of %u repo%s, "
                "%u need%s.\n",
                sources[import->options.source],
                counts->issues,
                plural(counts->issues),
                counts->repos,
                plural(counts->repos),
                counts->needs,
                plural(counts->needs));
    add_left_out(counts, out);
    strbuf_adds(out, "#\n");
    if (import->options.agent != NULL) {
        strbuf_adds(out,
                    "# \"repos\" has the paths of the clones, \"pipelines\" "
                    "the stages of an issue.\n");
    } else {
        strbuf_adds(out,
                    "# Edit \"repos\", the paths of the clones, and "
                    "\"pipelines\", the stages of an\n# issue. SLUICE_GROUP in "
                    "the environment is the id of the issue, as in api#12.\n");
    }
    strbuf_adds(out,
                "sluice: 1\n"
                "name: ");
    struct strbuf name = {0};
    add_name(import, &name);
    add_text(out, strbuf_text(&name));
    strbuf_adds(out, "\n");
    strbuf_release(&name);
}

/* Whether the gate also runs on merge results. */
static bool has_repo_gate(const struct import *import)
{
    return import->options.merge && import->options.gate != NULL;
}

static void add_repos(const struct import *import, struct strbuf *out)
{
    uint32_t ix = 0;
    uint32_t last = UINT32_MAX;
    const struct import_repo *repo = NULL;
    strbuf_adds(out, "repos:\n");
    while ((repo = next_repo(import, &ix, &last)) != NULL) {
        struct strbuf path = {0};
        add_path(import, repo, &path);
        strbuf_adds(out, "  ");
        add_key(out, repo->key);
        strbuf_adds(out, ": {path: ");
        add_text(out, strbuf_text(&path));
        struct strbuf base = {0};
        add_base(import, strbuf_text(&path), &base);
        if (base.len > 0) {
            strbuf_adds(out, ", base: ");
            add_text(out, base.text);
        }
        strbuf_release(&base);
        if (has_repo_gate(import)) {
            strbuf_adds(out, ", gate: ");
            add_text(out, import->options.gate);
        }
        if (repo->owner != NULL) {
            strbuf_adds(out, ", owner: ");
            add_text(out, repo->owner);
        }
        strbuf_adds(out, "}\n");
        strbuf_release(&path);
    }
}

static void add_pipelines(const struct import *import, struct strbuf *out)
{
    struct stage stages[STAGES_MAX];
    uint32_t count = list_stages(import, stages);
    strbuf_adds(out, "pipelines:\n  issue:\n");
    for (uint32_t ix = 0; ix < count; ix++) {
        strbuf_addf(out, "    - {stage: %s, ", stages[ix].name);
        if (stages[ix].agent != NULL) {
            strbuf_addf(out, "agent: %s", stages[ix].agent);
        } else if (stages[ix].run != NULL) {
            strbuf_adds(out, "run: ");
            add_text(out, stages[ix].run);
        } else {
            strbuf_adds(out, "merge: true");
        }
        if (stages[ix].rework > 0) {
            strbuf_addf(out,
                        ", rework: {to: implement, max: %d}",
                        stages[ix].rework);
        }
        strbuf_adds(out, "}\n");
    }
}

/* Return the priority in the plan. P2 is the default of plans, and the others
 * are two apart, so that there is room between them. */
static uint32_t priority_of(const struct import_issue *issue)
{
    return 2 * issue->priority + 1;
}

static void add_title(const struct import_issue *issue, struct strbuf *out)
{
    struct strbuf line = {0};
    import_add_line(&line, issue->title, TITLE_BYTES_MAX);
    if (line.len > 0) {
        strbuf_adds(out, "    title: ");
        add_text(out, line.text);
        strbuf_adds(out, "\n");
    }
    strbuf_release(&line);
}

/* Append its parent, labels and address. */
static void add_fields(const struct import *import,
                       const struct import_issue *issue,
                       struct strbuf *out)
{
    const struct import_issue *parent = parent_of(import, issue);
    if (parent != NULL) {
        strbuf_addf(out, "    parent: %s\n", parent->id);
    }
    json_t *labels = labels_json(issue);
    size_t count = json_array_size(labels);
    for (size_t ix = 0; ix < count; ix++) {
        strbuf_adds(out, ix == 0 ? "    labels: [" : ", ");
        add_text(out, json_string_value(json_array_get(labels, ix)));
    }
    strbuf_adds(out, count > 0 ? "]\n" : "");
    json_decref(labels);
    struct strbuf url = {0};
    add_url(issue, &url);
    if (url.len > 0) {
        strbuf_adds(out, "    url: ");
        add_text(out, url.text);
        strbuf_adds(out, "\n");
    }
    strbuf_release(&url);
}

static void add_group(const struct import *import,
                      const struct import_issue *issue,
                      struct strbuf *out)
{
    struct strbuf line = {0};
    strbuf_addf(out, "  - id: %s\n    repo: ", issue->id);
    add_key(out, import->repos[issue->repo].key);
    strbuf_adds(out, "\n    pipeline: issue\n");
    add_title(issue, out);
    if (issue->file_body.path != NULL) {
        strbuf_adds(out, "    body_file: ");
        add_text(out, issue->file_body.path);
        strbuf_adds(out, "\n");
    } else if (issue->body.len > 0) {
        strbuf_adds(out, "    body: ");
        add_block(out, issue->body.text);
    }
    if (issue->closes) {
        strbuf_addf(out, "    closes: %" PRId64 "\n", issue->number);
    }
    if (issue->priority != IMPORT_PRIORITY_DEFAULT) {
        strbuf_addf(out,
                    "    priority: %u # P%u\n",
                    priority_of(issue),
                    issue->priority);
    }
    add_fields(import, issue, out);
    strbuf_clear(&line);
    import_add_line(&line,
                    import_span(strbuf_text(&issue->dropped)),
                    COMMENT_BYTES_MAX);
    if (line.len > 0) {
        strbuf_addf(out, "    # not awaited: %s\n", line.text);
    }
    for (uint32_t ix = 0; ix < issue->need_count; ix++) {
        strbuf_addf(out,
                    "%s%s",
                    ix == 0 ? "    needs: [" : ", ",
                    import->issues[issue->needs[ix]].id);
    }
    strbuf_adds(out, issue->need_count > 0 ? "]\n" : "");
    strbuf_release(&line);
}

/* --- JSON --------------------------------------------------------------- */

static void set_text(json_t *object, const char *key, const char *text)
{
    (void)json_object_set_new(object, key, json_string(text));
}

static json_t *repos_json(const struct import *import)
{
    uint32_t ix = 0;
    uint32_t last = UINT32_MAX;
    const struct import_repo *repo = NULL;
    json_t *repos = json_object();
    while ((repo = next_repo(import, &ix, &last)) != NULL) {
        json_t *object = json_object();
        struct strbuf path = {0};
        add_path(import, repo, &path);
        set_text(object, "path", strbuf_text(&path));
        struct strbuf base = {0};
        add_base(import, strbuf_text(&path), &base);
        if (base.len > 0) {
            set_text(object, "base", base.text);
        }
        strbuf_release(&base);
        if (has_repo_gate(import)) {
            set_text(object, "gate", import->options.gate);
        }
        if (repo->owner != NULL) {
            set_text(object, "owner", repo->owner);
        }
        (void)json_object_set_new(repos, repo->key, object);
        strbuf_release(&path);
    }
    return repos;
}

static json_t *stages_json(const struct import *import)
{
    struct stage stages[STAGES_MAX];
    uint32_t count = list_stages(import, stages);
    json_t *list = json_array();
    for (uint32_t ix = 0; ix < count; ix++) {
        json_t *object = json_object();
        set_text(object, "stage", stages[ix].name);
        if (stages[ix].agent != NULL) {
            set_text(object, "agent", stages[ix].agent);
        } else if (stages[ix].run != NULL) {
            set_text(object, "run", stages[ix].run);
        } else {
            (void)json_object_set_new(object, "merge", json_true());
        }
        if (stages[ix].rework > 0) {
            json_t *rework = json_object();
            set_text(rework, "to", "implement");
            (void)json_object_set_new(rework,
                                      "max",
                                      json_integer(stages[ix].rework));
            (void)json_object_set_new(object, "rework", rework);
        }
        (void)json_array_append_new(list, object);
    }
    return list;
}

/* Return a group with the fields of an issue that sluice only shows. */
static json_t *shown_json(const struct import *import,
                          const struct import_issue *issue)
{
    json_t *object = json_object();
    json_t *labels = labels_json(issue);
    const struct import_issue *parent = parent_of(import, issue);
    struct strbuf line = {0};
    set_text(object, "id", issue->id);
    import_add_line(&line, issue->title, TITLE_BYTES_MAX);
    if (line.len > 0) {
        set_text(object, "title", line.text);
    }
    if (parent != NULL) {
        set_text(object, "parent", parent->id);
    }
    if (json_array_size(labels) > 0) {
        (void)json_object_set(object, "labels", labels);
    }
    json_decref(labels);
    strbuf_clear(&line);
    add_url(issue, &line);
    if (line.len > 0) {
        set_text(object, "url", line.text);
    }
    strbuf_release(&line);
    return object;
}

static json_t *group_json(const struct import *import,
                          const struct import_issue *issue)
{
    json_t *object = shown_json(import, issue);
    set_text(object, "repo", import->repos[issue->repo].key);
    set_text(object, "pipeline", "issue");
    if (issue->file_body.path != NULL) {
        set_text(object, "body_file", issue->file_body.path);
    } else if (issue->body.len > 0) {
        set_text(object, "body", issue->body.text);
    }
    if (issue->closes) {
        (void)json_object_set_new(object,
                                  "closes",
                                  json_integer(issue->number));
    }
    if (issue->priority != IMPORT_PRIORITY_DEFAULT) {
        (void)json_object_set_new(object,
                                  "priority",
                                  json_integer(priority_of(issue)));
    }
    if (issue->need_count > 0) {
        json_t *needs = json_array();
        for (uint32_t ix = 0; ix < issue->need_count; ix++) {
            const char *id = import->issues[issue->needs[ix]].id;
            (void)json_array_append_new(needs, json_string(id));
        }
        (void)json_object_set_new(object, "needs", needs);
    }
    return object;
}

static void write_json(const struct import *import, struct strbuf *out)
{
    json_t *plan = json_object();
    json_t *pipelines = json_object();
    json_t *groups = json_array();
    struct strbuf name = {0};
    add_name(import, &name);
    (void)json_object_set_new(plan, "sluice", json_integer(1));
    set_text(plan, "name", strbuf_text(&name));
    (void)json_object_set_new(plan, "repos", repos_json(import));
    (void)json_object_set_new(pipelines, "issue", stages_json(import));
    (void)json_object_set_new(plan, "pipelines", pipelines);
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        const struct import_issue *issue = &import->issues[ix];
        if (issue->above) {
            (void)json_array_append_new(groups, shown_json(import, issue));
        }
    }
    for (uint32_t ix = 0; ix < import->counts.issues; ix++) {
        const struct import_issue *issue = &import->issues[import->order[ix]];
        (void)json_array_append_new(groups, group_json(import, issue));
    }
    (void)json_object_set_new(plan, "groups", groups);
    char *text = json_dumps(plan, JSON_INDENT(2));
    strbuf_addf(out, "%s\n", text != NULL ? text : "");
    free(text);
    json_decref(plan);
    strbuf_release(&name);
}

void import_write(struct import *import, struct strbuf *out)
{
    set_bodies(import);
    mark_parents(import);
    if (import->options.json) {
        write_json(import, out);
        return;
    }
    add_head(import, out);
    add_repos(import, out);
    add_pipelines(import, out);
    strbuf_adds(out, "groups:\n");
    for (uint32_t ix = 0; ix < import->issue_count; ix++) {
        const struct import_issue *issue = &import->issues[ix];
        if (issue->above) { /* its parts are the work */
            strbuf_addf(out, "  - id: %s\n", issue->id);
            add_title(issue, out);
            add_fields(import, issue, out);
        }
    }
    for (uint32_t ix = 0; ix < import->counts.issues; ix++) {
        add_group(import, &import->issues[import->order[ix]], out);
    }
}
