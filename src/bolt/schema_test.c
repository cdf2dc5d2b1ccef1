#include "bolt/schema.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void buckets_are_ordered_by_name(void **state)
{
    (void)state;
    for (int i = 1; i < BOLT_BUCKETS; i++) {
        struct slice before = bolt_bucket_name((enum bolt_etcd_bucket)(i - 1));
        assert_true(slice_compare(before, bolt_bucket_name((enum bolt_etcd_bucket)i)) < 0);
    }
}

static void revision_is_read_as_written(void **state)
{
    (void)state;
    static const struct bolt_revision revisions[] = {
        {1, 0, false}, {2, 3, true}, {INT64_MAX, INT64_MAX, false}, {0x0102030405060708, 9, true}};
    for (size_t i = 0; i < COUNT_OF(revisions); i++) {
        uint8_t bytes[BOLT_TOMBSTONE_BYTES];
        size_t len = bolt_revision_write(revisions[i], bytes);
        struct bolt_revision back;
        assert_true(bolt_revision_read(slice_of(bytes, len), &back));
        assert_int_equal(back.main, revisions[i].main);
        assert_int_equal(back.sub, revisions[i].sub);
        assert_int_equal(back.is_tombstone, revisions[i].is_tombstone);
    }
}

static void revision_is_written_as_etcd_does(void **state)
{
    (void)state;
    uint8_t bytes[BOLT_TOMBSTONE_BYTES];
    size_t len = bolt_revision_write((struct bolt_revision){258, 1, true}, bytes);
    struct slice expected = SLICE_LITERAL("\0\0\0\0\0\0\1\2_\0\0\0\0\0\0\0\1t");
    assert_true(slice_equal(slice_of(bytes, len), expected));
}

static void invalid_revisions_are_refused(void **state)
{
    (void)state;
    static const struct slice bad[] = {
        {NULL, 0},
        {(const uint8_t *)"\0\0\0\0\0\0\1\2_\0\0\0\0\0\0\0", 16},
        {(const uint8_t *)"\0\0\0\0\0\0\1\2-\0\0\0\0\0\0\0\1", 17},
        {(const uint8_t *)"\0\0\0\0\0\0\1\2_\0\0\0\0\0\0\0\1x", 18},
        {(const uint8_t *)"\0\0\0\0\0\0\1\2_\0\0\0\0\0\0\0\1tt", 19},
        {(const uint8_t *)"\200\0\0\0\0\0\1\2_\0\0\0\0\0\0\0\1", 17},
        {(const uint8_t *)"\0\0\0\0\0\0\1\2_\377\0\0\0\0\0\0\1", 17},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct bolt_revision none;
        assert_false(bolt_revision_read(bad[i], &none));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buckets_are_ordered_by_name),
        cmocka_unit_test(revision_is_read_as_written),
        cmocka_unit_test(revision_is_written_as_etcd_does),
        cmocka_unit_test(invalid_revisions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
