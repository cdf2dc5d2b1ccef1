#include "client/call/prefix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void assert_slice(struct slice slice, const char *bytes, size_t len)
{
    assert_int_equal(slice.len, len);
    assert_memory_equal(slice.ptr, bytes, len);
}

static void end_of_a_prefix_is_the_next_possible_key(void **state)
{
    (void)state;
    uint8_t buffer[8];
    assert_slice(prefix_end(SLICE_LITERAL("ab"), buffer), "ac", 2);
    assert_slice(prefix_end(SLICE_LITERAL("a\xff\xff"), buffer), "b", 1);
    assert_slice(prefix_end(SLICE_LITERAL("\xff\xff"), buffer), "\0", 1);
    assert_slice(prefix_end(SLICE_EMPTY, buffer), "\0", 1);
}

/* As etcd's clientv3/namespace does it. */
static void ranges_stay_within_the_prefix(void **state)
{
    (void)state;
    static const struct {
        struct slice prefix, key, end, sent_key, sent_end;
    } rows[] = {
        {SLICE_LITERAL("p/"), SLICE_LITERAL("a"), SLICE_EMPTY, SLICE_LITERAL("p/a"), SLICE_EMPTY},
        {SLICE_LITERAL("p/"), SLICE_LITERAL("a"), SLICE_LITERAL("b"), SLICE_LITERAL("p/a"),
         SLICE_LITERAL("p/b")},
        {SLICE_LITERAL("p/"), SLICE_LITERAL("a"), SLICE_LITERAL("\0"), SLICE_LITERAL("p/a"),
         SLICE_LITERAL("p0")},
        {SLICE_LITERAL("p/"), SLICE_EMPTY, SLICE_LITERAL("\0"), SLICE_LITERAL("p/"),
         SLICE_LITERAL("p0")},
        {SLICE_LITERAL("\xff"), SLICE_LITERAL("a"), SLICE_LITERAL("\0"),
         SLICE_LITERAL("\xff"
                       "a"),
         SLICE_LITERAL("\0")},
        {SLICE_EMPTY, SLICE_LITERAL("a"), SLICE_LITERAL("\0"), SLICE_LITERAL("a"),
         SLICE_LITERAL("\0")},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct prefixed_range range;
        assert_int_equal(prefix_range(rows[i].prefix, rows[i].key, rows[i].end, &range), ST_OK);
        assert_slice(range.key, (const char *)rows[i].sent_key.ptr, rows[i].sent_key.len);
        if (rows[i].sent_end.len)
            assert_slice(range.end, (const char *)rows[i].sent_end.ptr, rows[i].sent_end.len);
        else
            assert_int_equal(range.end.len, 0);
        prefixed_range_fini(&range);
    }
}

static void all_keys_with_a_prefix(void **state)
{
    (void)state;
    struct prefixed_range range;
    assert_int_equal(prefix_all(SLICE_LITERAL("p/"), SLICE_LITERAL("a"), &range), ST_OK);
    assert_slice(range.key, "p/a", 3);
    assert_slice(range.end, "p/b", 3);
    prefixed_range_fini(&range);
    assert_int_equal(prefix_all(SLICE_EMPTY, SLICE_EMPTY, &range), ST_OK);
    assert_slice(range.key, "\0", 1);
    assert_slice(range.end, "\0", 1);
    prefixed_range_fini(&range);
}

static void prefix_is_removed_from_results(void **state)
{
    (void)state;
    struct slice key = SLICE_LITERAL("p/key"), shorter = SLICE_LITERAL("p");
    prefix_strip(&key, 2);
    assert_slice(key, "key", 3);
    prefix_strip(&shorter, 2); /* a server that does not keep to the range */
    assert_int_equal(shorter.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(end_of_a_prefix_is_the_next_possible_key),
        cmocka_unit_test(ranges_stay_within_the_prefix),
        cmocka_unit_test(all_keys_with_a_prefix),
        cmocka_unit_test(prefix_is_removed_from_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
