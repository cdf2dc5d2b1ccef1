#include "cmd/ctl/live/prefix_counts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void assert_prefix(const char *key, unsigned depth, const char *expected)
{
    struct prefix_counts counts;
    const struct prefix_count *one;
    prefix_counts_init(&counts, SLICE_LITERAL("/"), depth);
    prefix_counts_add(&counts, slice_from_text(key), 1);
    assert_int_equal(prefix_counts_largest(&counts, PREFIX_BY_CHANGES, &one, 1), 1);
    assert_true(slice_is(slice_of(one->name, one->name_len), expected));
    prefix_counts_fini(&counts);
}

static void prefixes_end_with_a_separator(void **state)
{
    (void)state;
    assert_prefix("/registry/pods/default/a", 2, "/registry/pods/");
    assert_prefix("/registry/pods/default/a", 1, "/registry/");
    assert_prefix("registry/pods/a", 1, "registry/");
    assert_prefix("registry/pods/a", 9, "registry/pods/");
    assert_prefix("plain", 2, "");
    assert_prefix("/plain", 2, "/");
    assert_prefix("", 2, "");
}

static void the_largest_come_first(void **state)
{
    struct prefix_counts counts;
    const struct prefix_count *largest[2];
    (void)state;
    prefix_counts_init(&counts, SLICE_LITERAL("/"), 1);
    for (unsigned i = 0; i < 30; i++) {
        prefix_counts_add(&counts, i % 3 == 0 ? SLICE_LITERAL("a/1") : SLICE_LITERAL("b/1"), 1);
        if (i == 7)
            prefix_counts_add(&counts, SLICE_LITERAL("c/1"), 1000);
    }
    assert_int_equal(prefix_counts_largest(&counts, PREFIX_BY_CHANGES, largest, 2), 2);
    assert_int_equal(largest[0]->changes, 20);
    assert_int_equal(largest[1]->changes, 10);
    assert_int_equal(prefix_counts_largest(&counts, PREFIX_BY_BYTES, largest, 2), 2);
    assert_int_equal(largest[0]->bytes, 1000);
    prefix_counts_next(&counts);
    assert_int_equal(counts.changes, 0);
    assert_int_equal(prefix_counts_largest(&counts, PREFIX_BY_TOTAL, largest, 2), 2);
    assert_int_equal(largest[0]->total, 20);
    assert_int_equal(largest[0]->changes, 0);
    prefix_counts_fini(&counts);
}

static void prefixes_are_bounded_in_number_and_length(void **state)
{
    struct prefix_counts counts;
    const struct prefix_count *largest[1];
    char key[512];
    (void)state;
    prefix_counts_init(&counts, SLICE_LITERAL("/"), 1);
    for (unsigned i = 0; i < PREFIX_COUNTS_MAX + 100; i++) {
        snprintf(key, sizeof(key), "%u/x", i);
        prefix_counts_add(&counts, slice_from_text(key), 1);
    }
    assert_int_equal(counts.map.count, PREFIX_COUNTS_MAX);
    assert_int_equal(counts.others.changes, 100);
    assert_int_equal(prefix_counts_largest(&counts, PREFIX_BY_CHANGES, largest, 1), 1);
    assert_ptr_equal(largest[0], &counts.others);
    prefix_counts_next(&counts); /* all had changes */
    assert_int_equal(counts.map.count, PREFIX_COUNTS_MAX);
    memset(key, 'k', sizeof(key) - 2);
    key[sizeof(key) - 2] = '/';
    key[sizeof(key) - 1] = '\0';
    prefix_counts_next(&counts);
    assert_int_equal(counts.map.count, 0);
    assert_int_equal(counts.others.total, PREFIX_COUNTS_MAX + 100);
    prefix_counts_add(&counts, slice_from_text(key), 1);
    assert_int_equal(prefix_counts_largest(&counts, PREFIX_BY_CHANGES, largest, 1), 1);
    assert_int_equal(largest[0]->name_len, PREFIX_NAME_BYTES_MAX);
    hash_map_check(&counts.map);
    prefix_counts_fini(&counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_end_with_a_separator),
        cmocka_unit_test(the_largest_come_first),
        cmocka_unit_test(prefixes_are_bounded_in_number_and_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
