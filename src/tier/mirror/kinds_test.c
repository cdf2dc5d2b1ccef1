#include "tier/mirror/kinds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static enum status take_numbered(struct tier_kinds **chain, int n, const struct tier_kinds **ret)
{
    char kind[32];
    snprintf(kind, sizeof(kind), "Kind%d", n);
    return tier_kinds_take(chain, slice_from_text(kind), SLICE_LITERAL("List"), SLICE_LITERAL("v1"),
                           ret);
}

static void kinds_of_a_collection_are_kept_and_limited(void **state)
{
    struct tier_kinds *chain = NULL;
    const struct tier_kinds *first, *again, *none = NULL;
    (void)state;
    assert_int_equal(take_numbered(&chain, 0, &first), ST_OK);
    for (int n = 1; n < TIER_KINDS_MAX; n++)
        assert_int_equal(take_numbered(&chain, n, &again), ST_OK);
    assert_int_equal(take_numbered(&chain, TIER_KINDS_MAX, &none), ST_LIMIT);
    assert_null(none);
    /* Those that are known are found. */
    assert_int_equal(take_numbered(&chain, 0, &again), ST_OK);
    assert_ptr_equal(again, first);
    assert_string_equal(first->kind, "Kind0");
    tier_kinds_free(chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_of_a_collection_are_kept_and_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
