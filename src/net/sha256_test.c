#include "net/sha256.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void pieces_have_the_sum_of_the_whole(void **state)
{
    (void)state;
    static const uint8_t expected[SHA256_BYTES] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
                                                   0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
                                                   0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
                                                   0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
    AUTO(sha256_freep) struct sha256 *sum = sha256_new();
    uint8_t digest[SHA256_BYTES];
    sha256_add(sum, SLICE_LITERAL("a"));
    sha256_add(sum, SLICE_EMPTY);
    sha256_add(sum, SLICE_LITERAL("bc"));
    assert_int_equal(sha256_finish(sum, digest), ST_OK);
    assert_memory_equal(digest, expected, sizeof(expected));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_have_the_sum_of_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
