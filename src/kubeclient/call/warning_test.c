/* Warning fields; the cases of client-go's TestParseWarningHeaders that differ in their result. */
#include "kubeclient/call/warning.h"

#include "base/failing_memory_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* All warnings of a field, separated by "|". */
static void expect(const char *value, const char *expected)
{
    AUTO(buf_fini) struct buf text = {0}, all = {0};
    struct slice rest = slice_from_text(value);
    while (warning_next(&rest, &text)) {
        assert_int_equal(buf_append_format(&all, "%s|", (const char *)text.ptr), ST_OK);
        text.len = 0;
    }
    assert_int_equal(rest.len, 0);
    assert_int_equal(buf_append(&all, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)all.ptr, expected);
}

static void warnings_are_read_as_in_client_go(void **state)
{
    (void)state;
    expect("", "");
    expect("bad", "");
    expect("299 - \"one\"", "one|");
    expect("  299 agent \"one\"  ", "one|");
    expect("299 - \"one\" \"Wed, 21 Oct 2015 07:28:00 GMT\"", "one|");
    expect("299 - \"one\", 299 - \"two\"", "one|two|");
    expect("299 - \"one\" \"date\", 299 - \"two\"", "one|two|");
    expect("299 - \"one\",", "one|");
    expect("299 - \"\"", "|");
    expect("299 - \"a \\\"quoted\\\" \\\\ \\x\"", "a \"quoted\" \\ x|");
    expect("299 - \"Iñtërnâtiônàlizætiøn,💝🐹🌇⛔\"", "Iñtërnâtiônàlizætiøn,💝🐹🌇⛔|");
}

static void malformed_warnings_end_the_field(void **state)
{
    (void)state;
    expect("299 -", "");
    expect("299  \"one\"", "");
    expect("29 - \"one\"", "");
    expect("2990 - \"one\"", "");
    expect("2x9 - \"one\"", "");
    expect("299 - one", "");
    expect("299 - \"one", "");
    expect("299 - \"one\\\"", "");
    expect("299 - \"one\" \"date", "");
    expect("299 - \"one\" more", "");
    expect("299 - \"one\", bad, 299 - \"two\"", "one|");
    expect("299 - \"\xff\"", "");
    expect("299 \xff \"one\"", "");
    expect("299 - \"a\tb\"", "");
    expect("299 - \"a\xc2\x80z\"", "");
    expect("299 - \"a\xc2\xa0z\"", "a\xc2\xa0z|");
}

static void values_that_are_cut_anywhere_are_harmless(void **state)
{
    (void)state;
    static const char whole[] = "299 - \"o\\\"ne\" \"date\", 299 - \"two\"";
    for (size_t len = 0; len < sizeof(whole); len++) {
        AUTO(buf_fini) struct buf text = {0};
        char *copy = malloc(len + 1); /* so that reading past the end is noticed */
        assert_non_null(copy);
        memcpy(copy, whole, len);
        struct slice rest = slice_of(copy, len);
        while (warning_next(&rest, &text))
            text.len = 0;
        free(copy);
    }
}

static void without_memory_there_is_no_warning(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf text = {0};
    struct slice rest = SLICE_LITERAL("299 - \"one\"");
    memory_fail_at = 1;
    assert_false(warning_next(&rest, &text));
    assert_int_equal(memory_fail_at, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warnings_are_read_as_in_client_go),
        cmocka_unit_test(malformed_warnings_end_the_field),
        cmocka_unit_test(values_that_are_cut_anywhere_are_harmless),
        cmocka_unit_test(without_memory_there_is_no_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
