#include "bolt/format.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void checksum_is_the_public_fnv1a(void **state)
{
    (void)state;
    assert_int_equal(bolt_fnv1a(SLICE_EMPTY), UINT64_C(0xcbf29ce484222325));
    assert_int_equal(bolt_fnv1a(SLICE_LITERAL("a")), UINT64_C(0xaf63dc4c8601ec8c));
    assert_int_equal(bolt_fnv1a(SLICE_LITERAL("foobar")), UINT64_C(0x85944171f73967e8));
}

static void changed_meta_is_refused(void **state)
{
    (void)state;
    struct bolt_meta meta = {.page_bytes = 4096, .root.root = 3, .freelist = 2, .pages = 4};
    bolt_meta_finish(&meta);
    assert_int_equal(bolt_meta_check(&meta), ST_OK);
    for (size_t i = 0; i < sizeof(meta); i++) {
        struct bolt_meta bad = meta;
        ((uint8_t *)&bad)[i] ^= 0x10;
        assert_int_equal(bolt_meta_check(&bad), ST_WRONG_FORMAT);
    }
}

static void invalid_page_size_is_refused(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 512, 4095, 12288, 131072, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct bolt_meta meta = {.page_bytes = sizes[i]};
        bolt_meta_finish(&meta);
        assert_int_equal(bolt_meta_check(&meta), ST_WRONG_FORMAT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksum_is_the_public_fnv1a),
        cmocka_unit_test(changed_meta_is_refused),
        cmocka_unit_test(invalid_page_size_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
