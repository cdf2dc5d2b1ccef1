#include "base/sha1.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void assert_sha1(struct slice bytes, const char *expected)
{
    uint8_t digest[SHA1_BYTES];
    char hex[2 * SHA1_BYTES + 1];
    sha1(bytes, digest);
    for (size_t i = 0; i < SHA1_BYTES; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    assert_string_equal(hex, expected);
}

static void digests_are_those_of_the_standard(void **state)
{
    (void)state;
    assert_sha1(SLICE_EMPTY, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    assert_sha1(SLICE_LITERAL("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
    assert_sha1(SLICE_LITERAL("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
                "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
}

static void lengths_around_a_block_are_padded_right(void **state)
{
    (void)state;
    static const struct {
        size_t len;
        const char *digest;
    } rows[] = {
        {55, "c1c8bbdc22796e28c0e15163d20899b65621d65a"},
        {56, "c2db330f6083854c99d4b5bfb6e8f29f201be699"},
        {63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5"},
        {64, "0098ba824b5c16427bd7a1122a5a442a25ec644d"},
        {65, "11655326c708d70319be2610e8a57d9a5b959d3b"},
        {1000, "291e9a6c66994949b57ba5e650361e98fc36b1ba"},
    };
    uint8_t bytes[1000];
    memset(bytes, 'a', sizeof(bytes));
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_sha1(slice_of(bytes, rows[i].len), rows[i].digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_are_those_of_the_standard),
        cmocka_unit_test(lengths_around_a_block_are_padded_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
