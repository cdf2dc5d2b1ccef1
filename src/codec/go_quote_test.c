#include "codec/go_quote.h"

#include "base/macros.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void assert_quoted(struct slice text, const char *expected)
{
    char *to = malloc(go_quote_room(text.len)); /* exactly as large, for the sanitizer */
    assert_non_null(to);
    assert_int_equal(go_quoted(text, to), strlen(expected));
    assert_string_equal(to, expected);
    free(to);
}

static void texts_are_quoted_as_in_go(void **state)
{
    (void)state;
    assert_quoted(SLICE_EMPTY, "\"\"");
    assert_quoted(SLICE_LITERAL("plain \"text\" \\"), "\"plain \\\"text\\\" \\\\\"");
    assert_quoted(SLICE_LITERAL("\a\b\f\n\r\t\v\x01\x7f"), "\"\\a\\b\\f\\n\\r\\t\\v\\x01\\x7f\"");
    assert_quoted(slice_of("a\0b", 3), "\"a\\x00b\"");
    assert_quoted(SLICE_LITERAL("h\xc3\xa9llo \xf0\x9f\x98\x80"),
                  "\"h\xc3\xa9llo \xf0\x9f\x98\x80\"");
    /* A soft hyphen, a space that is not printed, and a character for private use. */
    assert_quoted(SLICE_LITERAL("\xc2\xad\xe2\x80\xa8\xf4\x80\x80\x80"),
                  "\"\\u00ad\\u2028\\U00100000\"");
    assert_quoted(SLICE_LITERAL("\xff\xc3"), "\"\\xff\\xc3\"");
    assert_quoted(SLICE_LITERAL("\x01\x02\x03"), "\"\\x01\\x02\\x03\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts_are_quoted_as_in_go)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
