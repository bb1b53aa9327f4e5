/* SPDX-License-Identifier: MIT */
#include "cli/reading.h"

#include "cli/warnings.h"
#include "view/past.h"

/* Whether the plan may continue a run with old rules. */
static bool may_be_old(const struct reading *reading, const struct plan *plan)
{
    struct past_plan past = {.name = plan->name, .folder = reading->folder};
    return reading->folder != NULL && !reading->fresh &&
           past_may_have_old_rules(reading->store, &past);
}

/* Whether repositories have one path each; print errors if not. Runs with old
 * rules go on as they began. */
static bool has_plain_paths(const struct reading *reading,
                            const struct plan *plan)
{
    if (reading->folder == NULL) {
        return true;
    }
    struct plan_errors faults = warnings_find_twins(plan, reading->folder);
    bool good = faults.count == 0 || may_be_old(reading, plan);
    if (!good) {
        cli_print_errors(reading->file, &faults, reading->json);
    }
    plan_errors_release(&faults);
    return good;
}

struct plan *reading_plan(struct reading *reading)
{
    struct plan_source source = {
        .file = reading->file->path,
        .text = reading->file->text,
        .len = reading->file->bytes,
        .processors = cli_processors(),
    };
    struct plan *plan = NULL;
    struct plan_errors errors = {0};
    struct plan_errors ignored = {0};
    bool good = plan_read(&plan, &source, &errors);
    if (good) {
        good = has_plain_paths(reading, plan);
    } else {
        source.old_rules = true;
        good = plan_read(&plan, &source, &ignored) && may_be_old(reading, plan);
        reading->doubtful = good;
        if (!good) {
            cli_print_errors(reading->file, &errors, reading->json);
        }
    }
    if (!good) {
        plan_free(plan);
        plan = NULL;
    }
    plan_errors_release(&errors);
    plan_errors_release(&ignored);
    return plan;
}
