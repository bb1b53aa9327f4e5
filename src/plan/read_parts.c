/* SPDX-License-Identifier: MIT */
/*
 * Parts of a plan that stand for themselves: repos, providers, classes.
 *
 * Classes and providers need not be declared. A name that nobody declared is
 * taken as a new one, unless it is so near to a known one that it must be a
 * slip: then it is an error, because the plan would silently not mean what it
 * says.
 */
#include "plan/plan_internal.h"

#include "base/duration.h"

#include <string.h>

enum {
    TIER_MAX = 99,
    BATCH_MAX = 1000,
    CIRCUIT_MAX = 1000,
    SLIP_LEN_MIN = 4, /* shorter names are never taken for a slip */
};

/* Look for a known name that `name` is probably meant to be. */
static void start_slip(struct reader *reader,
                       struct suggest *guess,
                       const struct node *name)
{
    suggest_init(guess, name->text, name->count, &reader->suggest_budget);
}

/* Offer a known name; false when there is no point in offering more. */
static bool offer_slip(struct suggest *guess, const char *known)
{
    if (guess->len < SLIP_LEN_MIN) {
        return false;
    }
    /* A short name costs the same, but the empty text is near to nothing. */
    return suggest_offer(guess, strlen(known) >= SLIP_LEN_MIN ? known : "");
}

/* Report a slip, if it is one. */
static bool report_slip(struct reader *reader,
                        struct suggest *guess,
                        const struct node *name,
                        const char *what,
                        const char *part)
{
    if (guess->best == NULL) {
        return false;
    }
    plan_errors_add(reader->errors,
                    node_mark(name),
                    "unknown %s %s%s; if it is new, declare it under \"%s\"",
                    what,
                    QUOTED(name),
                    suggest_hint(guess),
                    part);
    return true;
}

/* repos */

/* A branch name that no command could take for an option or a range. */
static void read_branch(struct reader *reader,
                        const struct field *field,
                        const struct node *value,
                        void *target)
{
    const char *label = QUOTED_TEXT(field->name);
    const char *text =
        fields_check_line(reader, value, label, PLAN_ID_BYTES_MAX);
    if (text == NULL) {
        return;
    }
    if (text[0] == '-' || strpbrk(text, " ~^:?*[\\") != NULL ||
        strstr(text, "..") != NULL) {
        plan_errors_add(reader->errors,
                        node_mark(value),
                        "invalid branch name %s",
                        QUOTED(value));
        return;
    }
    fields_line(reader, field, value, target);
}

/* `sync: merge` is the only way there is, so far. */
static void read_sync(struct reader *reader,
                      const struct field *field,
                      const struct node *value,
                      void *target)
{
    bool *out = (void *)((char *)target + field->offset);
    if (fields_is_word(value, "merge")) {
        *out = true;
    } else if (!fields_is_word(value, "none")) {
        fields_expected(reader, value, "\"sync\"", "merge or none");
    }
}

/* What a conflict was resolved to must be tested before anyone sees it. */
static void check_repair(struct reader *reader,
                         const struct node *key,
                         const struct plan_repo *repo)
{
    if (repo->repair != NULL && repo->gate == NULL) {
        plan_errors_add(reader->errors,
                        node_mark(key),
                        "repo %s has a \"repair\" but no \"gate\", so its "
                        "result would not be tested: add a \"gate\"",
                        QUOTED(key));
    }
}

void plan_read_repos(struct reader *reader, const struct node *node)
{
    static const struct field fields[] = {
        {FIELD_AT(struct plan_repo, path, "path"),
         .read = fields_line,
         .max = PLAN_PATH_BYTES_MAX},
        {FIELD_AT(struct plan_repo, base, "base"),
         .read = read_branch,
         .max = PLAN_ID_BYTES_MAX},
        {FIELD_AT(struct plan_repo, gate, "gate"), .read = fields_shell},
        {FIELD_AT(struct plan_repo, repair, "repair"), .read = fields_shell},
        {FIELD_AT(struct plan_repo, sync, "sync"), .read = read_sync},
        {FIELD_AT(struct plan_repo, push, "push"), .read = fields_bool},
        {FIELD_AT(struct plan_repo, owner, "owner"),
         .read = settings_read_owner},
    };
    static const struct schema schema = SCHEMA("a repo", fields);
    struct plan *plan = reader->plan;
    struct plan_private *private = plan->private;
    if (!fields_is_mapping(reader, node, "\"repos\"")) {
        return;
    }
    for (const struct node *key = node_first(node); key != NULL;
         key = node_next_key(key)) {
        if (key->kind == NODE_BAD) {
            continue;
        }
        (void)fields_check_id(reader, key, "repo", true);
        struct plan_repo repo = {
            .name = plan_intern(plan, key->text, key->count),
            .mark = node_mark(key),
        };
        (void)fields_read(reader, node_value(key), &schema, &repo);
        check_repair(reader, key, &repo);
        MEM_GROW(plan->repos, plan->repo_count, private->repo_capacity);
        (void)strmap_add(&private->repo_names, repo.name, plan->repo_count);
        plan->repos[plan->repo_count++] = repo;
    }
}

uint32_t plan_resolve_repo(struct reader *reader, const struct node *name)
{
    const struct plan *plan = reader->plan;
    if (!node_is_scalar(name) || fields_is_empty(name)) {
        fields_expected(reader, name, "\"repo\"", "the name of a repo");
        return PLAN_NONE;
    }
    uint32_t ix =
        strmap_find(&plan->private->repo_names, name->text, name->count);
    if (ix != STRMAP_NONE) {
        return ix;
    }
    reader->repo_missing = true;
    struct suggest guess;
    suggest_init(&guess, name->text, name->count, &reader->suggest_budget);
    bool more = true;
    for (uint32_t at = 0; at < plan->repo_count && more; at++) {
        more = suggest_offer(&guess, plan->repos[at].name);
    }
    plan_errors_add(reader->errors,
                    node_mark(name),
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
        /* Plain commands fail for reasons of their own. */
        .circuit_failures = ix == PLAN_LOCAL ? 0 : 5,
        .probe_ns = 30 * SECOND_NS,
        .probe_ns_max = 30 * MINUTE_NS,
    };
    (void)strmap_add(&private->provider_names, plan->providers[ix].name, ix);
    return ix;
}

static void read_circuit(struct reader *reader,
                         const struct field *field,
                         const struct node *value,
                         void *target)
{
    uint32_t *out = (void *)((char *)target + field->offset);
    int64_t number = 0;
    if (fields_is_word(value, "none")) {
        *out = 0;
    } else if (fields_parse_number(value, &number) && number >= 1 &&
               number <= CIRCUIT_MAX) {
        *out = (uint32_t)number;
    } else {
        fields_expected(reader,
                        value,
                        "\"circuit\"",
                        "a number of failures from 1 to 1000, or none");
    }
}

/* The longest interval: as given, or the usual one, or the first if longer. */
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
        plan_errors_add(reader->errors,
                        node_mark(node),
                        "\"max_%s\" is less than \"%s\"",
                        name,
                        name);
    }
}

void plan_read_providers(struct reader *reader, const struct node *node)
{
    static const struct field fields[] = {
        {FIELD_AT(struct plan_provider, backoff_ns, "backoff"),
         .read = fields_duration,
         .min = 1},
        {FIELD_AT(struct plan_provider, backoff_ns_max, "max_backoff"),
         .read = fields_duration,
         .min = 1},
        {FIELD_AT(struct plan_provider, circuit_failures, "circuit"),
         .read = read_circuit},
        {FIELD_AT(struct plan_provider, probe_ns, "probe"),
         .read = fields_duration,
         .min = 1},
        {FIELD_AT(struct plan_provider, probe_ns_max, "max_probe"),
         .read = fields_duration,
         .min = 1},
    };
    static const struct schema schema = SCHEMA("a provider", fields);
    if (!fields_is_mapping(reader, node, "\"providers\"")) {
        return;
    }
    for (const struct node *key = node_first(node); key != NULL;
         key = node_next_key(key)) {
        if (key->kind == NODE_BAD) {
            continue;
        }
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
    if (!node_is_scalar(name) || fields_is_empty(name)) {
        fields_expected(reader, name, "\"provider\"", "a name");
        return PLAN_NONE;
    }
    uint32_t ix =
        strmap_find(&plan->private->provider_names, name->text, name->count);
    if (ix != STRMAP_NONE) {
        return ix;
    }
    if (fields_check_id(reader, name, "provider", true) == NULL) {
        return PLAN_NONE;
    }
    struct suggest guess;
    start_slip(reader, &guess, name);
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

/* Index of the class of that name, made with defaults if it is new. */
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
        .expected = PLAN_EXPECTED_UNSET,
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
    uint32_t review = 0; /* the last one */
    for (size_t ix = 0; ix < ARRAY_COUNT(built_ins); ix++) {
        const char *name = built_ins[ix].name;
        review = add_class(plan, name, strlen(name));
        plan->classes[review].role = built_ins[ix].role;
    }
    plan->classes[review].tier = 1;
    plan->classes[review].base_tier = 1;
    plan->classes[review].defer = true;
    plan->classes[review].max_wait_ns = 60 * MINUTE_NS;
    /* The defaults of the plan are not known yet: plan_settle_classes(). */
    for (uint32_t ix = 0; ix < plan->class_count; ix++) {
        plan->private->class_settings[ix] = settings_none();
    }
    plan->private->declared_classes = plan->class_count;
    (void)plan_add_provider(plan, "local", strlen("local"));
    plan->private->declared_providers = plan->provider_count;
}

struct raw_batch {
    uint32_t max;
    uint32_t marginal;
};

struct raw_class {
    struct plan_class class;
    struct settings settings;
};

static void read_marginal(struct reader *reader,
                          const struct field *field,
                          const struct node *value,
                          void *target)
{
    uint32_t *out = (void *)((char *)target + field->offset);
    if (!fields_parse_percent(value, out)) {
        fields_expected(reader,
                        value,
                        "\"marginal\"",
                        "a percentage from 1% to 100%");
    }
}

static void read_batch(struct reader *reader,
                       const struct field *field,
                       const struct node *value,
                       void *target)
{
    static const struct field fields[] = {
        {FIELD_AT(struct raw_batch, max, "max"),
         .read = fields_number,
         .min = 1,
         .max = BATCH_MAX,
         .required = true},
        {FIELD_AT(struct raw_batch, marginal, "marginal"),
         .read = read_marginal},
    };
    static const struct schema schema = SCHEMA("\"batch\"", fields);
    (void)field;
    struct plan_class *class = &((struct raw_class *)target)->class;
    struct raw_batch batch = {class->batch, class->batch_marginal};
    int64_t number = 0;
    if (value->kind == NODE_MAPPING) {
        (void)fields_read(reader, value, &schema, &batch);
    } else if (fields_parse_number(value, &number) && number >= 1 &&
               number <= BATCH_MAX) {
        batch.max = (uint32_t)number;
    } else {
        fields_expected(reader,
                        value,
                        "\"batch\"",
                        "a number from 1 to 1000, or a mapping with max and "
                        "marginal");
    }
    class->batch = batch.max;
    class->batch_marginal = batch.marginal;
}

static const struct field class_fields[] = {
    {FIELD_AT(struct raw_class, class.tier, "tier"),
     .read = fields_number,
     .max = TIER_MAX},
    {FIELD_AT(struct raw_class, class.defer, "defer"), .read = fields_bool},
    {FIELD_AT(struct raw_class, class.batch, "batch"), .read = read_batch},
    {FIELD_AT(struct raw_class, class.max_wait_ns, "max_wait"),
     .read = fields_duration_or_none,
     .min = 1},
    {FIELD_AT(struct raw_class, class.budget, "budget"),
     .read = settings_read_cost},
    SETTINGS_FIELDS(struct raw_class, settings),
    SETTINGS_AGENT_FIELDS(struct raw_class, settings),
};

static const struct schema class_schema = SCHEMA("a class", class_fields);

void plan_read_classes(struct reader *reader, const struct node *node)
{
    struct plan *plan = reader->plan;
    if (!fields_is_mapping(reader, node, "\"classes\"")) {
        return;
    }
    for (const struct node *key = node_first(node); key != NULL;
         key = node_next_key(key)) {
        if (key->kind == NODE_BAD) {
            continue;
        }
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
    if (!node_is_scalar(name) || fields_is_empty(name)) {
        fields_expected(reader, name, "\"class\"", "a name");
        return PLAN_NONE;
    }
    uint32_t ix =
        strmap_find(&plan->private->class_names, name->text, name->count);
    if (ix != STRMAP_NONE) {
        return ix;
    }
    if (fields_check_id(reader, name, "class", true) == NULL) {
        return PLAN_NONE;
    }
    struct suggest guess;
    start_slip(reader, &guess, name);
    bool more = true;
    for (ix = 0; ix < plan->private->declared_classes && more; ix++) {
        more = offer_slip(&guess, plan->classes[ix].name);
    }
    if (report_slip(reader, &guess, name, "class", "classes")) {
        return PLAN_NONE;
    }
    return add_class(plan, name->text, name->count);
}
