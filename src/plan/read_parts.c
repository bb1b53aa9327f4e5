/* SPDX-License-Identifier: MIT */
/*
 * Parts of a plan that refer to no other part: repos, providers, classes.
 *
 * Classes and providers need not be declared. An undeclared name creates a new
 * one, unless it closely resembles a known name: then it is an error, because a
 * typing error would silently change the meaning of the plan.
 */
#include "plan/plan_internal.h"

#include "base/duration.h"

#include <string.h>

enum {
    TIER_MAX = 99,
    BATCH_MAX = 1000,
    CIRCUIT_MAX = 1000,
    GATE_RETRY_MAX = 10,
    SLIP_LEN_MIN = 4, /* shorter names are never taken for a typing error */
};

/* Offer a known name; false if further offers are useless. */
static bool offer_slip(struct suggest *guess, const char *known)
{
    if (guess->len < SLIP_LEN_MIN) {
        return false;
    }
    /* A short name costs the same, but the empty string never matches. */
    return suggest_offer(guess, strlen(known) >= SLIP_LEN_MIN ? known : "");
}

/* Report a probable typing error, if a similar name was found. */
static bool report_slip(struct reader *reader,
                        struct suggest *guess,
                        const struct node *name,
                        const char *what,
                        const char *part)
{
    if (guess->best == NULL) {
        return false;
    }
    REPORT(reader,
           name,
           "unknown %s %s%s; if it is new, declare it under \"%s\"",
           what,
           QUOTED(name),
           suggest_hint(guess),
           part);
    return true;
}

/* repos */

/* Read a branch name that git cannot take for an option or a range. */
static void read_branch(const struct entry *entry)
{
    const char *text = fields_check_line(entry->reader,
                                         entry->value,
                                         QUOTED_TEXT(entry->field->name),
                                         PLAN_ID_BYTES_MAX);
    if (text == NULL) {
        return;
    }
    if (text[0] == '-' || strpbrk(text, " ~^:?*[\\") != NULL ||
        strstr(text, "..") != NULL) {
        REPORT(entry->reader,
               entry->value,
               "invalid branch name %s",
               QUOTED(entry->value));
        return;
    }
    fields_line(entry);
}

/* Read `sync`; `merge` is the only supported value. */
static void read_sync(const struct entry *entry)
{
    if (fields_is_word(entry->value, "merge")) {
        *(bool *)entry->out = true;
    } else if (!fields_is_word(entry->value, "none")) {
        fields_wrong(entry, "merge or none");
    }
}

/* Read `gate`: a command, or {run: COMMAND, retry: N}. */
static void read_gate(const struct entry *entry)
{
    static const struct field fields[] = {
        {FIELD(struct plan_repo, gate, "run", fields_shell)},
        {FIELD(struct plan_repo, gate_retry, "retry", fields_number),
         .max = GATE_RETRY_MAX},
    };
    static const struct schema schema = SCHEMA("a gate", fields);
    if (entry->value->kind != NODE_MAPPING) {
        fields_shell(entry);
        return;
    }
    struct plan_repo *repo =
        (struct plan_repo *)((char *)entry->out -
                             offsetof(struct plan_repo, gate));
    if (fields_read(entry->reader, entry->value, &schema, repo) &&
        repo->gate == NULL) {
        REPORT(entry->reader, entry->value, "a gate needs \"run\"");
    }
}

/* Read `base_gate`, which can only be switched off: it is on by default. */
static void read_base_gate(const struct entry *entry)
{
    if (fields_is_word(entry->value, "none")) {
        *(bool *)entry->out = true;
    } else {
        fields_wrong(entry, "none");
    }
}

/* Require a gate, so that only tested resolutions of conflicts are merged. */
static void check_repair(struct reader *reader,
                         const struct node *key,
                         const struct plan_repo *repo)
{
    if (repo->repair != NULL && repo->gate == NULL) {
        REPORT(reader,
               key,
               "repo %s has a \"repair\" but no \"gate\", so its "
               "result would not be tested: add a \"gate\"",
               QUOTED(key));
    }
}

void plan_read_repos(struct reader *reader, const struct node *node)
{
#define REPO(key, reader) FIELD(struct plan_repo, key, #key, reader)
    static const struct field fields[] = {
        {REPO(path, fields_line), .max = PLAN_PATH_BYTES_MAX},
        {REPO(url, plan_read_hub), .max = PLAN_PATH_BYTES_MAX},
        {REPO(base, read_branch), .max = PLAN_ID_BYTES_MAX},
        {REPO(gate, read_gate)},
        {REPO(repair, fields_shell)},
        {REPO(sync, read_sync)},
        {REPO(push, fields_bool)},
        {REPO(keep, plan_read_paths)},
        {REPO(copy, plan_read_paths)},
        {FIELD(struct plan_repo, remote_keep, "remote", plan_read_remote)},
        {REPO(fetch, fields_bool)},
        {FIELD(struct plan_repo, no_base_gate, "base_gate", read_base_gate)},
        {REPO(owner, settings_read_owner)},
    };
    static const struct schema schema = SCHEMA("a repo", fields);
    struct plan *plan = reader->plan;
    struct plan_private *private = plan->private;
    if (!fields_is_mapping(reader, node, "\"repos\"")) {
        return;
    }
    NODE_EACH_KEY(node)
    {
        (void)fields_check_id(reader, key, "repo", true);
        struct plan_repo repo = {
            .name = plan_intern(plan, key->text, key->count),
            .mark = node_mark(key),
            .base_task = PLAN_NONE,
        };
        (void)fields_read(reader, node_value(key), &schema, &repo);
        if (repo.gate != NULL && strcmp(repo.gate, "none") == 0) {
            repo.gate = NULL;
            repo.ungated = true;
        }
        check_repair(reader, key, &repo);
        plan_check_checkout(reader, key, &repo);
        plan_check_url(reader, key, &repo);
        MEM_GROW(plan->repos, plan->repo_count, private->repo_capacity);
        (void)strmap_add(&private->repo_names, repo.name, plan->repo_count);
        plan->repos[plan->repo_count++] = repo;
    }
}

uint32_t plan_resolve_repo(struct reader *reader, const struct node *name)
{
    const struct plan *plan = reader->plan;
    if (!fields_is_text(reader, name, "\"repo\"", "the name of a repo")) {
        return PLAN_NONE;
    }
    uint32_t ix = plan_lookup(&plan->private->repo_names, name);
    if (ix != PLAN_NONE) {
        return ix;
    }
    reader->repo_missing = true;
    struct suggest guess = plan_guess(reader, name);
    SUGGEST_ALL(&guess, plan->repos, plan->repo_count, name);
    REPORT(reader,
           name,
           "unknown repo %s%s",
           QUOTED(name),
           plan->repo_count == 0 ? ": the plan has no \"repos\""
                                 : suggest_hint(&guess));
    return PLAN_NONE;
}

/* providers */

uint32_t plan_add_provider(struct plan *plan, const char *name, size_t len)
{
    struct plan_private *private = plan->private;
    uint32_t ix = strmap_find(&private->provider_names, name, len);
    if (ix != STRMAP_NONE) {
        return ix;
    }
    MEM_GROW(plan->providers, plan->provider_count, private->provider_capacity);
    ix = plan->provider_count++;
    plan->providers[ix] = (struct plan_provider){
        .name = plan_intern(plan, name, len),
        .backoff_ns = SECOND_NS,
        .backoff_ns_max = 15 * MINUTE_NS,
        /* Local commands fail for reasons of their own. */
        .circuit_failures = ix == PLAN_LOCAL ? 0 : 5,
        .probe_ns = 30 * SECOND_NS,
        .probe_ns_max = 30 * MINUTE_NS,
    };
    (void)strmap_add(&private->provider_names, plan->providers[ix].name, ix);
    return ix;
}

static void read_circuit(const struct entry *entry)
{
    int64_t number = 0;
    if (!fields_is_word(entry->value, "none") &&
        (!fields_parse_number(entry->value, &number) || number < 1 ||
         number > CIRCUIT_MAX)) {
        fields_wrong(entry, "a number of failures from 1 to 1000, or none");
        return;
    }
    *(uint32_t *)entry->out = (uint32_t)number;
}

/* Set the longest interval: as given, or the longer of default and first. */
static void settle_longest(struct reader *reader,
                           const struct node *node,
                           const char *name,
                           int64_t first_ns,
                           int64_t usual_ns,
                           int64_t *longest_ns)
{
    if (*longest_ns == PLAN_UNSET) {
        *longest_ns = first_ns > usual_ns ? first_ns : usual_ns;
    } else if (*longest_ns < first_ns) {
        REPORT(reader, node, "\"max_%s\" is less than \"%s\"", name, name);
    }
}

void plan_read_providers(struct reader *reader, const struct node *node)
{
#define PROVIDER(member, key, reader)                                          \
    FIELD(struct plan_provider, member, key, reader)
    static const struct field fields[] = {
        {PROVIDER(backoff_ns, "backoff", fields_duration), .min = 1},
        {PROVIDER(backoff_ns_max, "max_backoff", fields_duration), .min = 1},
        {PROVIDER(circuit_failures, "circuit", read_circuit)},
        {PROVIDER(probe_ns, "probe", fields_duration), .min = 1},
        {PROVIDER(probe_ns_max, "max_probe", fields_duration), .min = 1},
    };
    static const struct schema schema = SCHEMA("a provider", fields);
    if (!fields_is_mapping(reader, node, "\"providers\"")) {
        return;
    }
    NODE_EACH_KEY(node)
    {
        (void)fields_check_id(reader, key, "provider", true);
        uint32_t ix = plan_add_provider(reader->plan, key->text, key->count);
        struct plan_provider *provider = &reader->plan->providers[ix];
        struct plan_provider usual = *provider;
        provider->backoff_ns_max = PLAN_UNSET;
        provider->probe_ns_max = PLAN_UNSET;
        (void)fields_read(reader, node_value(key), &schema, provider);
        settle_longest(reader,
                       node_value(key),
                       "backoff",
                       provider->backoff_ns,
                       usual.backoff_ns_max,
                       &provider->backoff_ns_max);
        settle_longest(reader,
                       node_value(key),
                       "probe",
                       provider->probe_ns,
                       usual.probe_ns_max,
                       &provider->probe_ns_max);
    }
    reader->plan->private->declared_providers = reader->plan->provider_count;
}

uint32_t plan_resolve_provider(struct reader *reader, const struct node *name)
{
    struct plan *plan = reader->plan;
    if (!fields_is_text(reader, name, "\"provider\"", "a name")) {
        return PLAN_NONE;
    }
    uint32_t ix = plan_lookup(&plan->private->provider_names, name);
    if (ix != PLAN_NONE) {
        return ix;
    }
    if (fields_check_id(reader, name, "provider", true) == NULL) {
        return PLAN_NONE;
    }
    struct suggest guess = plan_guess(reader, name);
    bool more = true;
    for (ix = 0; ix < plan->private->declared_providers && more; ix++) {
        more = offer_slip(&guess, plan->providers[ix].name);
    }
    if (report_slip(reader, &guess, name, "provider", "providers")) {
        return PLAN_NONE;
    }
    return plan_add_provider(plan, name->text, name->count);
}

/* classes */

/* Return the index of the class; create it with defaults if it is new. */
static uint32_t add_class(struct plan *plan, const char *name, size_t len)
{
    struct plan_private *private = plan->private;
    uint32_t ix = strmap_find(&private->class_names, name, len);
    if (ix != STRMAP_NONE) {
        return ix;
    }
    MEM_GROW(plan->classes, plan->class_count, private->class_capacity);
    MEM_GROW(private->class_settings,
             plan->class_count,
             private->class_settings_capacity);
    ix = plan->class_count++;
    plan->classes[ix] = (struct plan_class){
        .name = plan_intern(plan, name, len),
        .batch = 1,
        .batch_marginal = 50,
        .max_wait_ns = PLAN_UNLIMITED,
        .budget = PLAN_COST_UNSET,
        .expected = PLAN_COST_UNSET,
    };
    private->class_settings[ix] = private->defaults;
    (void)strmap_add(&private->class_names, plan->classes[ix].name, ix);
    return ix;
}

void plan_add_built_ins(struct plan *plan)
{
    static const struct {
        const char *name;
        enum plan_role role;
    } built_ins[] = {
        {"implement", PLAN_ROLE_IMPLEMENT},
        {"gate", PLAN_ROLE_GATE},
        {"merge", PLAN_ROLE_MERGE},
        {"review", PLAN_ROLE_REVIEW},
    };
    uint32_t review = 0; /* the last index */
    for (size_t ix = 0; ix < ARRAY_COUNT(built_ins); ix++) {
        const char *name = built_ins[ix].name;
        review = add_class(plan, name, strlen(name));
        plan->classes[review].role = built_ins[ix].role;
        if (built_ins[ix].role == PLAN_ROLE_MERGE) {
            /* A batch of merges is gated once. */
            plan->classes[review].batch_marginal = 5;
        }
    }
    plan->classes[review].tier = 1;
    plan->classes[review].base_tier = 1;
    plan->classes[review].defer = true;
    plan->classes[review].max_wait_ns = 60 * MINUTE_NS;
    /* plan_settle_classes() fills in the defaults, which are not known yet. */
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        plan->private->class_settings[ix] = settings_none();
    }
    plan->private->declared_classes = plan->class_count;
    (void)plan_add_provider(plan, "local", strlen("local"));
    plan->private->declared_providers = plan->provider_count;
}

struct raw_class {
    struct plan_class class;
    struct settings settings;
};

static void read_marginal(const struct entry *entry)
{
    if (!fields_parse_percent(entry->value, entry->out)) {
        fields_wrong(entry, "a percentage from 1% to 100%");
    }
}

static void read_batch(const struct entry *entry)
{
    static const struct field fields[] = {
        {FIELD(struct plan_class, batch, "max", fields_number),
         .min = 1,
         .max = BATCH_MAX,
         .required = true},
        {FIELD(struct plan_class, batch_marginal, "marginal", read_marginal)},
    };
    static const struct schema schema = SCHEMA("\"batch\"", fields);
    struct plan_class *class = entry->out;
    int64_t number = 0;
    if (entry->value->kind == NODE_MAPPING) {
        (void)fields_read(entry->reader, entry->value, &schema, class);
    } else if (fields_parse_number(entry->value, &number) && number >= 1 &&
               number <= BATCH_MAX) {
        class->batch = (uint32_t)number;
    } else {
        fields_wrong(entry,
                     "a number from 1 to 1000, or a mapping with max and "
                     "marginal");
    }
}

#define CLASS(member, key, reader)                                             \
    FIELD(struct raw_class, class.member, key, reader)

static const struct field class_fields[] = {
    {CLASS(tier, "tier", fields_number), .max = TIER_MAX},
    {CLASS(defer, "defer", fields_bool)},
    {FIELD(struct raw_class, class, "batch", read_batch)},
    {CLASS(max_wait_ns, "max_wait", fields_duration_or_none), .min = 1},
    {CLASS(budget, "budget", settings_read_cost)},
};

static const struct schema class_schema =
    SCHEMA_WITH_SETTINGS("a class",
                         class_fields,
                         struct raw_class,
                         SETTINGS_OF_CLASS);

void plan_read_classes(struct reader *reader, const struct node *node)
{
    struct plan *plan = reader->plan;
    if (!fields_is_mapping(reader, node, "\"classes\"")) {
        reader->names_incomplete = true;
        return;
    }
    NODE_EACH_KEY(node)
    {
        (void)fields_check_id(reader, key, "class", true);
        uint32_t ix = add_class(plan, key->text, key->count);
        struct raw_class raw = {plan->classes[ix], settings_none()};
        uint32_t base_tier = raw.class.base_tier;
        (void)fields_read(reader, node_value(key), &class_schema, &raw);
        raw.class.declared = true;
        raw.class.base_tier =
            raw.class.tier > base_tier ? raw.class.tier : base_tier;
        plan->classes[ix] = raw.class;
        plan->private->class_settings[ix] = raw.settings;
    }
    plan->private->declared_classes = plan->class_count;
}

void plan_settle_classes(struct plan *plan)
{
    struct plan_private *private = plan->private;
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        settings_inherit(&private->class_settings[ix], &private->defaults);
    }
}

uint32_t plan_resolve_class(struct reader *reader, const struct node *name)
{
    struct plan *plan = reader->plan;
    if (!fields_is_text(reader, name, "\"class\"", "a name")) {
        return PLAN_NONE;
    }
    uint32_t ix = plan_lookup(&plan->private->class_names, name);
    if (ix != PLAN_NONE) {
        return ix;
    }
    if (fields_check_id(reader, name, "class", true) == NULL) {
        return PLAN_NONE;
    }
    struct suggest guess = plan_guess(reader, name);
    bool more = true;
    for (ix = 0; ix < plan->private->declared_classes && more; ix++) {
        more = offer_slip(&guess, plan->classes[ix].name);
    }
    if (report_slip(reader, &guess, name, "class", "classes")) {
        return PLAN_NONE;
    }
    return add_class(plan, name->text, name->count);
}

/* Names of stages and tasks that test, like "gate". */
static const char *const gate_names[] =
    {"gate", "test", "lint", "build", "check", "verify"};

static uint32_t built_in_class(const struct plan *plan, const char *name)
{
    return strmap_find(&plan->private->class_names, name, strlen(name));
}

/* Report a stage whose name is no class and that has no "class". */
static void report_no_class(struct reader *reader,
                            const struct plan_named *named,
                            bool gate)
{
    const struct plan *plan = reader->plan;
    if (gate) {
        REPORT(reader,
               named->name,
               "stage %s has an agent but no \"class\": add \"class: gate\" "
               "if it only tests, or \"class: implement\" if it changes files",
               QUOTED(named->name));
        return;
    }
    struct suggest guess = plan_guess(reader, named->name);
    for (uint32_t ix = 0; ix < plan->private->declared_classes; ix++) {
        (void)suggest_offer(&guess, plan->classes[ix].name);
    }
    for (uint32_t ix = 0; ix < ARRAY_COUNT(gate_names); ix++) {
        (void)suggest_offer(&guess, gate_names[ix]);
    }
    REPORT(reader,
           named->name,
           "stage %s has no class%s: add \"class: NAME\", such as implement, "
           "gate or review",
           QUOTED(named->name),
           suggest_hint(&guess));
}

/* Return the class that the name stands for, or PLAN_NONE. */
static uint32_t class_of_name(struct reader *reader,
                              const struct plan_named *named)
{
    const struct plan *plan = reader->plan;
    const struct plan_private *private = plan->private;
    uint32_t ix = named->stage ? plan_lookup(&private->class_names, named->name)
                               : PLAN_NONE;
    /* Ignore classes that exist only because another stage used them. */
    if (ix < private->declared_classes) {
        return ix;
    }
    if (reader->old_rules) {
        return PLAN_NONE;
    }
    bool gate =
        fields_find_word(named->name, gate_names, ARRAY_COUNT(gate_names)) <
        ARRAY_COUNT(gate_names);
    if (gate && !named->agent) {
        return built_in_class(plan, "gate");
    }
    if (named->stage && !reader->names_incomplete) {
        report_no_class(reader, named, gate);
    }
    return PLAN_NONE;
}

uint32_t plan_class_of(struct reader *reader, const struct plan_named *named)
{
    uint32_t ix = PLAN_NONE;
    if (named->class != NULL) {
        ix = plan_resolve_class(reader, named->class);
    } else if (named->merge) {
        ix = built_in_class(reader->plan, "merge");
    } else if (named->name != NULL && node_is_scalar(named->name)) {
        ix = class_of_name(reader, named);
    }
    return ix != PLAN_NONE ? ix : 0;
}
