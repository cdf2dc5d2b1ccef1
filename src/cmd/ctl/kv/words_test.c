#include "cmd/ctl/kv/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct arena arena;
static struct line_words words;

static int begin(void **state)
{
    (void)state;
    arena_init(&arena, NULL, 0, 16 << 20);
    return 0;
}

static int end(void **state)
{
    (void)state;
    arena_fini(&arena);
    return 0;
}

/* The words, joined by bars. */
static const char *joined(const char *line)
{
    static char text[512];
    text[0] = 0;
    if (!line_split(&arena, slice_from_text(line), &words))
        return NULL;
    for (size_t i = 0; i < words.count; i++) {
        size_t len = strlen(text);
        snprintf(text + len, sizeof(text) - len, "%s%s", i ? "|" : "", words.words[i]);
    }
    return text;
}

static void words_are_separated_by_spaces(void **state)
{
    (void)state;
    assert_string_equal(joined("put key value"), "put|key|value");
    assert_string_equal(joined("  get\t k  "), "get|k");
    assert_string_equal(joined(""), "");
    assert_string_equal(joined("put a -- -5"), "put|a|--|-5");
    assert_string_equal(joined("put it's \"x\""), "put|it's|x");
}

static void quoted_words_may_have_spaces_and_escapes(void **state)
{
    (void)state;
    assert_string_equal(joined("put \"a b\" 'c \"d'"), "put|a b|c \"d");
    assert_string_equal(joined("put \"tab\\there\" \"\\\"q\\\"\""), "put|tab\there|\"q\"");
    assert_string_equal(joined("\"\\u00e9\\U0001F600\\x41\\101\""), "\xc3\xa9\xf0\x9f\x98\x80"
                                                                    "AA");
    assert_string_equal(joined("put '' \"\""), "put||");
}

static void quote_without_an_end_is_skipped(void **state)
{
    (void)state;
    assert_string_equal(joined("put \"abc"), "put|abc");
    assert_string_equal(joined("put 'abc"), "put|abc");
}

static void wrong_escapes_are_refused(void **state)
{
    (void)state;
    static const char *const lines[] = {"\"\\q\"", "\"\\x4\"", "\"\\ud800\"", "\"\\U00110000\"",
                                        "\"\\477\""};
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        assert_null(joined(lines[i]));
}

static void line_of_too_many_words_is_refused(void **state)
{
    (void)state;
    static char line[2 * (LINE_WORDS_MAX + 2)];
    for (size_t i = 0; i < 2 * LINE_WORDS_MAX; i++)
        line[i] = i % 2 ? ' ' : 'x';
    assert_true(line_split(&arena, slice_from_text(line), &words));
    assert_int_equal(words.count, LINE_WORDS_MAX);
    line[2 * LINE_WORDS_MAX] = 'x';
    assert_false(line_split(&arena, slice_from_text(line), &words));
}

static void quoted_text_ends_where_it_says(void **state)
{
    (void)state;
    struct slice text;
    const char *at = "\"a\\x00b\") > \"1\"";
    assert_true(line_quoted(&arena, &at, at + strlen(at), &text));
    assert_int_equal(text.len, 3);
    assert_memory_equal(text.ptr, "a\0b", 3);
    assert_string_equal(at, ") > \"1\"");
    at = "`raw \\n`x";
    assert_true(line_quoted(&arena, &at, at + strlen(at), &text));
    assert_int_equal(text.len, 6);
    assert_string_equal(at, "x");
    at = "unquoted";
    assert_false(line_quoted(&arena, &at, at + strlen(at), &text));
    at = "\"open";
    assert_false(line_quoted(&arena, &at, at + strlen(at), &text));
}

static void zero_byte_is_a_character(void **state)
{
    (void)state;
    assert_true(line_split(&arena, SLICE_LITERAL("put a\0b \"c\0d\" '\0' \"\\x00\""), &words));
    assert_int_equal(words.count, 5);
    const size_t lens[] = {3, 3, 3, 1, 1};
    assert_memory_equal(words.lens, lens, sizeof(lens));
    assert_memory_equal(words.words[1], "a\0b", 4);
    assert_memory_equal(words.words[2], "c\0d", 4);
    const char *at = "\"a\0b\"", *line_end = at + 5;
    struct slice text;
    assert_true(line_quoted(&arena, &at, line_end, &text));
    assert_memory_equal(text.ptr, "a\0b", 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_separated_by_spaces),
        cmocka_unit_test(quoted_words_may_have_spaces_and_escapes),
        cmocka_unit_test(quote_without_an_end_is_skipped),
        cmocka_unit_test(wrong_escapes_are_refused),
        cmocka_unit_test(line_of_too_many_words_is_refused),
        cmocka_unit_test(quoted_text_ends_where_it_says),
        cmocka_unit_test(zero_byte_is_a_character),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
