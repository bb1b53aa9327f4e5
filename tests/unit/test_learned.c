/* SPDX-License-Identifier: MIT */
#include "plan/learned.h"

#include "base/strbuf.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_near(double found, double wanted, double most)
{
    if (!(fabs(found - wanted) <= most)) {
        fail_msg("%.12g is not %.12g", found, wanted);
    }
}

/* An observation in two of three sessions, another one in each third. */
static void add_many(struct learned_sums *sums, uint32_t count)
{
    for (uint32_t ix = 0; ix < count; ix++) {
        learned_add(sums, ix % 3 == 2 ? 4 : 1, 1);
    }
}

static void mean_and_variance(void **state)
{
    (void)state;
    struct learned_sums sums = {0};
    learned_add(&sums, 2.5, 1);
    assert_near(sums.weight, 1, 0);
    assert_near(sums.mean, 2.5, 0);
    assert_near(sums.square, 0, 0);
    sums = (struct learned_sums){0};
    add_many(&sums, 3000);
    assert_near(sums.weight, LEARNED_WINDOW, 1e-9);
    assert_near(sums.mean, 2, 0.01);
    assert_near(sums.square / sums.weight, 2, 0.02);
    /* The parts of a batch count for as much as one session. */
    struct learned_sums parts = {0};
    for (uint32_t ix = 0; ix < 4; ix++) {
        learned_add(&parts, 3, 0.25);
    }
    assert_near(parts.weight, 1, 0);
    assert_near(parts.mean, 3, 1e-12);
}

static void recent_sessions_count_more(void **state)
{
    (void)state;
    struct learned_sums sums = {0};
    for (uint32_t ix = 0; ix < 1000; ix++) {
        learned_add(&sums, ix < 500 ? 0 : 1, 1);
    }
    assert_near(sums.mean, 1, 0.1);
}

static void an_outlier_does_not_spoil_the_mean(void **state)
{
    (void)state;
    struct learned_sums sums = {0};
    for (uint32_t ix = 0; ix < 10; ix++) {
        learned_add(&sums, 6, 1);
    }
    learned_add(&sums, -7, 1); /* a millisecond instead of seven minutes */
    assert_true(sums.mean > 5.8);
    /* But what is no exception any more counts. */
    for (uint32_t ix = 0; ix < 100; ix++) {
        learned_add(&sums, -7, 1);
    }
    assert_near(sums.mean, -7, 2);
}

static void rates_of_outcomes(void **state)
{
    (void)state;
    struct learned learned = {0};
    for (uint32_t ix = 0; ix < 2000; ix++) {
        learned_add_outcome(&learned, ix % 10 == 0, ix % 5 == 1);
    }
    assert_near(learned.ended, LEARNED_WINDOW, 1e-9);
    assert_near(learned.failed / learned.ended, 0.1, 0.01);
    assert_near(learned.changes / learned.ended, 0.2, 0.01);
}

static void costs_are_per_task(void **state)
{
    (void)state;
    struct learned learned = {0};
    learned_add_cost(&learned, 1, 1.0, 100);
    learned_add_cost(&learned, 3, 6.0, 600);
    assert_near(learned.paid, 4, 0);
    assert_near(learned.usd, 1.75, 1e-12);
    assert_near(learned.tokens, 175, 1e-9);
}

static void old_means_keep_their_mean(void **state)
{
    (void)state;
    struct learned learned = learned_of_means(1000, 60, 0.5, 20);
    const struct learned_sums *sums = &learned.durations;
    assert_near(sums->weight, LEARNED_WINDOW, 0);
    assert_near(exp(sums->mean + LEARNED_VARIANCE / 2), 60, 1e-9);
    assert_near(sums->square / (sums->weight - 1), LEARNED_VARIANCE, 1e-12);
    assert_near(learned.paid, LEARNED_WINDOW, 0);
    assert_near(learned.usd, 0.5, 0);
    assert_near(learned.tokens, 20, 0);
    learned = learned_of_means(1, 0, 0, 0);
    assert_true(isfinite(learned.durations.mean));
    assert_near(learned.ratios.weight, 0, 0);
}

static bool read_text(struct learned *out, const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    bool good = learned_read(out, json);
    json_decref(json);
    return good;
}

static void is_read_as_it_was_written(void **state)
{
    (void)state;
    struct learned learned = {0};
    struct strbuf text = {0};
    struct jsonw json = {.out = &text};
    struct learned found;
    learned_write(&learned, &json);
    assert_string_equal(strbuf_text(&text), "{}");
    assert_true(read_text(&found, strbuf_text(&text)));
    assert_near(found.durations.weight, 0, 0);

    add_many(&learned.durations, 7);
    learned_add(&learned.ratios, -0.25, 1);
    learned_add_outcome(&learned, true, false);
    learned_add_outcome(&learned, false, true);
    learned_add_outcome(&learned, false, false);
    learned_add_cost(&learned, 2, 0.5, 10);
    strbuf_clear(&text);
    learned_write(&learned, &json);
    assert_true(read_text(&found, strbuf_text(&text)));
    assert_near(found.durations.weight, learned.durations.weight, 1e-7);
    assert_near(found.durations.mean, learned.durations.mean, 1e-7);
    assert_near(found.durations.square, learned.durations.square, 1e-7);
    assert_near(found.ratios.mean, -0.25, 0);
    assert_near(found.ended, learned.ended, 1e-7);
    assert_near(found.failed, learned.failed, 1e-7);
    assert_near(found.changes, learned.changes, 1e-7);
    assert_near(found.usd, 0.25, 0);
    assert_near(found.tokens, 5, 0);
    /* All outcomes of one kind: the sums are equal, whatever the rounding. */
    learned = (struct learned){0};
    for (uint32_t ix = 0; ix < 333; ix++) {
        learned_add_outcome(&learned, false, true);
        strbuf_clear(&text);
        learned_write(&learned, &json);
        assert_true(read_text(&found, strbuf_text(&text)));
    }
    strbuf_release(&text);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[]",
        "1",
        "{\"durations\":1}",
        "{\"durations\":[1,2]}",
        "{\"durations\":[1,2,3,4]}",
        "{\"durations\":[1,\"2\",3]}",
        "{\"durations\":[-1,2,3]}",
        "{\"durations\":[1e9,2,3]}",
        "{\"durations\":[1,1000,3]}",
        "{\"ratios\":[1,-1000,3]}",
        "{\"ratios\":[1,1,-3]}",
        "{\"outcomes\":[-1,0,0]}",
        "{\"outcomes\":[1,-1,0]}",
        "{\"outcomes\":[1,2,0]}",
        "{\"outcomes\":[2,1,2]}",
        "{\"costs\":[-1,0,0]}",
        "{\"costs\":[1,-1,0]}",
        "{\"costs\":[1,0,1e300]}",
    };
    struct learned learned;
    for (size_t ix = 0; ix < ARRAY_COUNT(texts); ix++) {
        if (read_text(&learned, texts[ix])) {
            fail_msg("%s is taken", texts[ix]);
        }
    }
    assert_false(learned_read(&learned, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mean_and_variance),
        cmocka_unit_test(recent_sessions_count_more),
        cmocka_unit_test(an_outlier_does_not_spoil_the_mean),
        cmocka_unit_test(rates_of_outcomes),
        cmocka_unit_test(costs_are_per_task),
        cmocka_unit_test(old_means_keep_their_mean),
        cmocka_unit_test(is_read_as_it_was_written),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests_name("learned", tests, NULL, NULL);
}
