#include "codec/utf8.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* The definition, applied in reverse: decodes by the form of the first byte, then checks the
 * result. */
static bool valid_by_definition(const uint8_t *p, size_t len)
{
    if (len == 1)
        return p[0] < 0x80;
    static const uint8_t first_mark[] = {0, 0, 0xc0, 0xe0, 0xf0};
    static const uint8_t first_mask[] = {0, 0, 0xe0, 0xf0, 0xf8};
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if ((p[0] & first_mask[len]) != first_mark[len])
        return false;
    uint32_t code = p[0] & (uint8_t)~first_mask[len];
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return false;
        code = code << 6 | (p[i] & 0x3f);
    }
    return code >= least[len] && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
}

static void characters_are_those_of_the_definition(void **state)
{
    (void)state;
    /* Every first and second byte; the later ones at the limits of what is allowed. */
    static const uint8_t edges[] = {0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff};
    for (unsigned head = 0; head < 0x10000; head++) {
        for (unsigned tail = 0; tail < COUNT_OF(edges) * COUNT_OF(edges); tail++) {
            const uint8_t p[4] = {(uint8_t)(head >> 8), (uint8_t)head,
                                  edges[tail / COUNT_OF(edges)], edges[tail % COUNT_OF(edges)]};
            size_t expected = 0;
            for (size_t len = 1; len <= 4; len++) {
                if (valid_by_definition(p, len))
                    expected = len;
            }
            assert_int_equal(utf8_char_len(slice_of(p, 4)), expected);
        }
    }
}

static void every_character_is_encoded(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        uint8_t bytes[4];
        size_t len = utf8_encode(c, bytes);
        bool surrogate = c >= 0xd800 && c <= 0xdfff;
        assert_int_equal(utf8_char_len(slice_of(bytes, len)), surrogate ? 0 : len);
        uint32_t back = len == 1 ? bytes[0] : bytes[0] & (0x7fu >> len);
        for (size_t i = 1; i < len; i++)
            back = back << 6 | (bytes[i] & 0x3f);
        assert_int_equal(back, c);
    }
    assert_int_equal(utf8_count(slice_from_text("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80")), 4);
}

static void truncated_characters_are_invalid(void **state)
{
    (void)state;
    const char *whole[] = {"\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t i = 0; i < COUNT_OF(whole); i++) {
        size_t len = strlen(whole[i]);
        assert_int_equal(utf8_char_len(slice_of(whole[i], len)), len);
        for (size_t cut = 1; cut < len; cut++) {
            assert_int_equal(utf8_char_len(slice_of(whole[i], cut)), 0);
            assert_false(utf8_valid(slice_of(whole[i], cut)));
        }
    }
}

static void one_bad_byte_anywhere_makes_a_text_invalid(void **state)
{
    (void)state;
    uint8_t text[40];
    for (size_t len = 0; len <= sizeof(text); len++) {
        memset(text, 'x', sizeof(text));
        assert_true(utf8_valid(slice_of(text, len)));
        for (size_t at = 0; at < len; at++) {
            text[at] = 0x80;
            assert_false(utf8_valid(slice_of(text, len)));
            text[at] = 'x';
        }
    }
}

static void text_may_mix_all_lengths_and_zero_bytes(void **state)
{
    (void)state;
    assert_true(utf8_valid(SLICE_EMPTY));
    assert_true(utf8_valid(SLICE_LITERAL("plain ascii, long enough for eights \0 and more \xc3\xa9 "
                                         "\xe2\x82\xac and \xf0\x9f\x98\x80 end")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_those_of_the_definition),
        cmocka_unit_test(every_character_is_encoded),
        cmocka_unit_test(truncated_characters_are_invalid),
        cmocka_unit_test(one_bad_byte_anywhere_makes_a_text_invalid),
        cmocka_unit_test(text_may_mix_all_lengths_and_zero_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
