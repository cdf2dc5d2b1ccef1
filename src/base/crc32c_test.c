#include "base/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* One bit at a time, as the polynomial is defined: the reference for both implementations. */
static uint32_t bitwise(uint32_t crc, struct slice bytes)
{
    crc = ~crc;
    for (size_t i = 0; i < bytes.len; i++) {
        crc ^= bytes.ptr[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static void known_values_are_computed(void **state)
{
    (void)state;
    uint8_t zeros[32] = {0}, ones[32];
    memset(ones, 0xff, sizeof(ones));
    assert_int_equal(crc32c(0, SLICE_LITERAL("123456789")), 0xe3069283u);
    assert_int_equal(crc32c(0, slice_of(zeros, 32)), 0x8a9136aau);
    assert_int_equal(crc32c(0, slice_of(ones, 32)), 0x62a8ab43u);
    assert_int_equal(crc32c(0, SLICE_EMPTY), 0);
}

static void implementations_agree_at_every_length_and_alignment(void **state)
{
    (void)state;
    uint8_t bytes[620];
    uint32_t random = 1;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)((random = random * 1664525u + 1013904223u) >> 24);

    for (size_t from = 0; from < 9; from++) {
        for (size_t len = 0; len < 600; len++) {
            struct slice s = slice_of(bytes + from, len);
            uint32_t want = bitwise(0x1234567u, s);
            assert_int_equal(crc32c_portable(0x1234567u, s), want);
            assert_int_equal(crc32c(0x1234567u, s), want);
            if (crc32c_has_hardware())
                assert_int_equal(crc32c_hardware(0x1234567u, s), want);
        }
    }
}

static void checksum_continues_over_pieces(void **state)
{
    (void)state;
    struct slice whole = SLICE_LITERAL("the checksum of the preceding bytes, continued");
    uint32_t want = crc32c(0, whole);
    for (size_t cut = 0; cut <= whole.len; cut++) {
        uint32_t crc = crc32c(0, slice_sub(whole, 0, cut));
        assert_int_equal(crc32c(crc, slice_sub(whole, cut, whole.len - cut)), want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values_are_computed),
        cmocka_unit_test(implementations_agree_at_every_length_and_alignment),
        cmocka_unit_test(checksum_continues_over_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
