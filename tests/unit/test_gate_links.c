/* SPDX-License-Identifier: MIT */
/* One-time links; test_gate.c has the rest of the gate. */
#include "base/macros.h"
#include "http/gate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HEX16 "0123456789abcdef"
#define HEX48 HEX16 HEX16 HEX16

#define MS INT64_C(1000000)
#define NOW (INT64_C(123456789) * MS)

static struct gate make_keyed(void)
{
    struct gate gate = {0};
    struct diag diag = {0};
    assert_int_equal(gate_make_key(&gate.key, &diag), ERR_OK);
    return gate;
}

static void make_link(char out[GATE_LINK_BYTES],
                      const struct gate *gate,
                      enum gate_role role,
                      int64_t now_ns)
{
    struct diag diag = {0};
    enum err err = gate_make_link(out, &gate->key, role, now_ns, &diag);
    assert_int_equal(err, ERR_OK);
    assert_int_equal(strlen(out), GATE_LINK_BYTES - 1);
    assert_int_equal(strspn(out, HEX16), GATE_LINK_BYTES - 1);
}

static void a_link_is_used_once(void **state)
{
    (void)state;
    struct gate gate = make_keyed();
    char code[GATE_LINK_BYTES];
    make_link(code, &gate, GATE_OPERATOR, NOW);
    assert_int_equal(gate_use_link(&gate, code, NOW), GATE_OPERATOR);
    for (int64_t after_ns = 0; after_ns < 2 * GATE_LINK_NS;
         after_ns += GATE_LINK_NS / 8) {
        assert_int_equal(gate_use_link(&gate, code, NOW + after_ns),
                         GATE_NOBODY);
    }
}

static void a_link_has_the_role_that_it_was_made_for(void **state)
{
    (void)state;
    static const enum gate_role roles[] = {GATE_VIEWER, GATE_OPERATOR};
    struct gate gate = make_keyed();
    char code[GATE_LINK_BYTES];
    for (size_t ix = 0; ix < ARRAY_COUNT(roles); ix++) {
        make_link(code, &gate, roles[ix], NOW);
        assert_int_equal(gate_use_link(&gate, code, NOW), roles[ix]);
        /* The other role in its place. */
        make_link(code, &gate, roles[ix], NOW);
        code[1] = code[1] == '1' ? '2' : '1';
        assert_int_equal(gate_use_link(&gate, code, NOW), GATE_NOBODY);
    }
}

static void a_link_is_valid_for_a_minute(void **state)
{
    (void)state;
    static const struct {
        int64_t after_ns;
        bool valid;
    } rows[] = {
        {-NOW, false},
        {-GATE_LINK_NS, false},
        {-1, false}, /* made later */
        {0, true},
        {1, true},
        {GATE_LINK_NS - 1, true},
        {GATE_LINK_NS, false},
        {GATE_LINK_NS + 1, false},
        {2 * GATE_LINK_NS, false},
        {INT64_MAX - NOW, false},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        struct gate gate = make_keyed();
        char code[GATE_LINK_BYTES];
        make_link(code, &gate, GATE_VIEWER, NOW);
        enum gate_role role =
            gate_use_link(&gate, code, NOW + rows[ix].after_ns);
        assert_int_equal(role, rows[ix].valid ? GATE_VIEWER : GATE_NOBODY);
    }
    assert_true(GATE_LINK_NS == INT64_C(60000000000));
}

static void a_wrong_code_is_no_link_and_uses_none_up(void **state)
{
    (void)state;
    struct gate gate = make_keyed();
    char right[GATE_LINK_BYTES];
    char code[GATE_LINK_BYTES + 1];
    static const char *const wrong[] = {
        "",
        "0",
        HEX48,
        HEX48 HEX16, /* as a token */
        HEX48 "01234567",
    };
    make_link(right, &gate, GATE_OPERATOR, NOW);
    for (size_t ix = 0; ix < ARRAY_COUNT(wrong); ix++) {
        assert_int_equal(gate_use_link(&gate, wrong[ix], NOW), GATE_NOBODY);
    }
    for (size_t ix = 0; ix < GATE_LINK_BYTES - 1; ix++) {
        static const char others[] = HEX16 "ABCDEFG x/";
        for (size_t other = 0; other < sizeof(others); other++) {
            memcpy(code, right, sizeof(right));
            if (code[ix] != others[other]) { /* the last one is a prefix */
                code[ix] = others[other];
                assert_int_equal(gate_use_link(&gate, code, NOW), GATE_NOBODY);
            }
        }
    }
    (void)snprintf(code, sizeof(code), "%s0", right);
    assert_int_equal(gate_use_link(&gate, code, NOW), GATE_NOBODY);
    assert_int_equal(gate_use_link(&gate, right, NOW), GATE_OPERATOR);
}

/* A server makes its key when it starts. */
static void a_link_is_of_no_use_elsewhere_and_after_a_restart(void **state)
{
    (void)state;
    struct gate gate = make_keyed();
    struct gate other = make_keyed();
    char code[GATE_LINK_BYTES];
    make_link(code, &gate, GATE_OPERATOR, NOW);
    assert_int_equal(gate_use_link(&other, code, NOW), GATE_NOBODY);
    assert_int_equal(gate_use_link(&gate, code, NOW), GATE_OPERATOR);
}

static void links_of_one_moment_differ_and_all_work(void **state)
{
    (void)state;
    struct gate gate = make_keyed();
    char codes[GATE_USED_MAX + 1][GATE_LINK_BYTES];
    for (size_t ix = 0; ix <= GATE_USED_MAX; ix++) {
        make_link(codes[ix], &gate, GATE_VIEWER, NOW + (int64_t)(ix % 2) * MS);
        for (size_t other = 0; other < ix; other++) {
            assert_string_not_equal(codes[ix], codes[other]);
        }
    }
    for (size_t ix = 0; ix < GATE_USED_MAX; ix++) {
        assert_int_equal(gate_use_link(&gate, codes[ix], NOW + MS),
                         GATE_VIEWER);
    }
    /* One more could not be remembered, and so would work twice. */
    const char *last = codes[GATE_USED_MAX];
    assert_int_equal(gate_use_link(&gate, last, NOW + MS), GATE_NOBODY);
    for (size_t ix = 0; ix < GATE_USED_MAX; ix++) {
        assert_int_equal(gate_use_link(&gate, codes[ix], NOW + MS),
                         GATE_NOBODY);
    }
    /* A minute later there is room again; what was used stays invalid. */
    char code[GATE_LINK_BYTES];
    int64_t later_ns = NOW + GATE_LINK_NS;
    make_link(code, &gate, GATE_OPERATOR, later_ns);
    assert_int_equal(gate_use_link(&gate, code, later_ns), GATE_OPERATOR);
    assert_int_equal(gate_use_link(&gate, code, later_ns), GATE_NOBODY);
    for (size_t ix = 0; ix < GATE_USED_MAX; ix++) {
        assert_int_equal(gate_use_link(&gate, codes[ix], later_ns),
                         GATE_NOBODY);
    }
}

static void without_a_key_no_code_is_right(void **state)
{
    (void)state;
    struct gate gate = {0};
    struct gate zero = {0};
    char code[GATE_LINK_BYTES];
    zero.key.made = true; /* with the bytes of none */
    make_link(code, &zero, GATE_OPERATOR, NOW);
    assert_int_equal(gate_use_link(&gate, code, NOW), GATE_NOBODY);
    assert_int_equal(gate_use_link(&gate, "", 0), GATE_NOBODY);
    assert_int_equal(gate_use_link(&zero, code, NOW), GATE_OPERATOR);
}

/* Computed by Python's hmac. */
static void a_code_is_made_as_described(void **state)
{
    (void)state;
    struct gate gate = {0};
    gate.key.made = true;
    for (size_t ix = 0; ix < sizeof(gate.key.bytes); ix++) {
        gate.key.bytes[ix] = (unsigned char)ix;
    }
    assert_int_equal(gate_use_link(&gate,
                                   "010000075bcd156162636465"
                                   "ffe1fd95d4af6a905fe54233544ea317",
                                   NOW),
                     GATE_VIEWER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_is_used_once),
        cmocka_unit_test(a_link_has_the_role_that_it_was_made_for),
        cmocka_unit_test(a_link_is_valid_for_a_minute),
        cmocka_unit_test(a_wrong_code_is_no_link_and_uses_none_up),
        cmocka_unit_test(a_link_is_of_no_use_elsewhere_and_after_a_restart),
        cmocka_unit_test(links_of_one_moment_differ_and_all_work),
        cmocka_unit_test(without_a_key_no_code_is_right),
        cmocka_unit_test(a_code_is_made_as_described),
    };
    return cmocka_run_group_tests_name("gate_links", tests, NULL, NULL);
}
