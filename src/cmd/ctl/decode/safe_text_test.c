#include "cmd/ctl/decode/safe_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_shown(struct slice text, enum safe_lines lines, const char *expected)
{
    AUTO(buf_fini) struct buf out = {0};
    assert_int_equal(safe_text_append(&out, text, lines), ST_OK);
    assert_int_equal(out.len, strlen(expected));
    assert_memory_equal(out.ptr, expected, out.len);
    assert_int_equal(safe_text_is(text, lines), slice_equal(text, buf_slice(&out)));
}

static void what_controls_a_terminal_is_escaped(void **state)
{
    (void)state;
    assert_shown(SLICE_LITERAL("a\x1b[31mred\x07"), SAFE_LINES, "a\\x1b[31mred\\x07");
    assert_shown(SLICE_LITERAL("a\rb\x7f\x00z"), SAFE_LINES, "a\\x0db\\x7f\\x00z");
    assert_shown(SLICE_LITERAL("\xc2\x9b\x31m"), SAFE_LINES, "\\u009b1m");
    static const uint8_t override[] = {0xe2, 0x80, 0xae, 'a'};
    assert_shown(slice_of(override, sizeof(override)), SAFE_LINES, "\\u202ea");
    assert_shown(SLICE_LITERAL("\xff\xc3("), SAFE_LINES, "\\xff\\xc3(");
}

static void readable_text_stays(void **state)
{
    (void)state;
    assert_shown(SLICE_LITERAL("naïve 東京 🎉 \\ \"q\""), SAFE_ONE_LINE, "naïve 東京 🎉 \\ \"q\"");
    assert_shown(SLICE_LITERAL("a\n\tb\n"), SAFE_LINES, "a\n\tb\n");
    assert_shown(SLICE_LITERAL("a\n\tb\n"), SAFE_ONE_LINE, "a\\n\\tb\\n");
    assert_shown(SLICE_EMPTY, SAFE_ONE_LINE, "");
}

static void assert_short(const char *text, size_t columns, const char *expected)
{
    AUTO(buf_fini) struct buf out = {0};
    assert_int_equal(safe_text_append_short(&out, slice_from_text(text), columns), ST_OK);
    assert_int_equal(out.len, strlen(expected));
    assert_memory_equal(out.ptr, expected, out.len);
}

static void long_text_is_cut_at_a_character(void **state)
{
    (void)state;
    assert_short("hello", 5, "hello");
    assert_short("hello!", 5, "hell…");
    assert_short("東京都", 3, "東京都");
    assert_short("東京都庁", 3, "東京…");
    assert_short("ab\x1b", 5, "ab…");
    assert_short("ab\x1b", 6, "ab\\x1b");
    assert_short("", 3, "");
}

static void every_byte_is_written_safely(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 256; first++) {
        uint8_t bytes[4] = {(uint8_t)first, 0x80, 0x9b, 0x0a};
        AUTO(buf_fini) struct buf out = {0};
        assert_int_equal(safe_text_append(&out, slice_of(bytes, 4), SAFE_ONE_LINE), ST_OK);
        assert_true(safe_text_is(buf_slice(&out), SAFE_ONE_LINE));
        for (size_t i = 0; i < out.len; i++)
            assert_true(out.ptr[i] >= ' ' && out.ptr[i] != 0x7f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_controls_a_terminal_is_escaped),
        cmocka_unit_test(readable_text_stays),
        cmocka_unit_test(long_text_is_cut_at_a_character),
        cmocka_unit_test(every_byte_is_written_safely),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
