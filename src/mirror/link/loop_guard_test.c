#include "mirror/link/loop_guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define A "vigil 00000000000000aa"
#define B "vigil 00000000000000bb"

static struct buf chain;

static void expect(const char *passed, enum status status, const char *text)
{
    assert_int_equal(loop_guard_extend(slice_from_text(passed), A, &chain), status);
    if (status == ST_OK)
        assert_true(slice_is(buf_slice(&chain), text));
}

static void each_server_adds_its_id(void **state)
{
    (void)state;
    expect("", ST_OK, "");
    expect(B, ST_OK, B " 00000000000000aa");
    expect("", ST_OK, ""); /* nothing remains of the call before */
    buf_fini(&chain);
}

static void a_server_recognises_itself(void **state)
{
    (void)state;
    expect(A, ST_EXISTS, NULL);
    expect(B " 00000000000000aa", ST_EXISTS, NULL);
    expect(A " 00000000000000bb", ST_EXISTS, NULL);
    buf_fini(&chain);
}

/* Anything that is not the text of a server, such as that of etcd's gateway or a client's. */
static void other_texts_are_ignored(void **state)
{
    (void)state;
    static const char *const others[] = {"*/*", "vigil", "application/json",
                                         "vigil \r\ntoken: x 00000000000000aa", "vigil 00AA"};
    for (size_t i = 0; i < COUNT_OF(others); i++)
        expect(others[i], ST_OK, "");
    uint8_t with_zero[] = "vigil 1\0002";
    assert_int_equal(loop_guard_extend(slice_of(with_zero, sizeof(with_zero) - 1), A, &chain),
                     ST_OK);
    assert_int_equal(chain.len, 0);
    buf_fini(&chain);
}

static void a_chain_has_a_limit(void **state)
{
    (void)state;
    char longest[LOOP_GUARD_BYTES_MAX + 2];
    int digits = LOOP_GUARD_BYTES_MAX + 1 - (int)strlen("vigil ");
    assert_int_equal(snprintf(longest, sizeof(longest), "vigil %0*d", digits, 1),
                     LOOP_GUARD_BYTES_MAX + 1);
    assert_int_equal(loop_guard_extend(slice_of(longest, LOOP_GUARD_BYTES_MAX), A, &chain), ST_OK);
    assert_int_equal(loop_guard_extend(slice_of(longest, LOOP_GUARD_BYTES_MAX + 1), A, &chain),
                     ST_LIMIT);
    buf_fini(&chain);
}

static void ids_differ(void **state)
{
    (void)state;
    char one[LOOP_GUARD_OWN_BYTES], other[LOOP_GUARD_OWN_BYTES];
    loop_guard_make(one);
    loop_guard_make(other);
    assert_int_equal(strlen(one), strlen(A));
    assert_string_not_equal(one, other);
    assert_int_equal(loop_guard_extend(slice_from_text(one), one, &chain), ST_EXISTS);
    assert_int_equal(loop_guard_extend(slice_from_text(one), other, &chain), ST_OK);
    buf_fini(&chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_server_adds_its_id),
        cmocka_unit_test(a_server_recognises_itself),
        cmocka_unit_test(other_texts_are_ignored),
        cmocka_unit_test(a_chain_has_a_limit),
        cmocka_unit_test(ids_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
