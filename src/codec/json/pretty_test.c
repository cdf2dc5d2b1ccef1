#include "codec/json/pretty.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void assert_pretty(const char *text, const char *expected)
{
    struct buf to = {0};
    assert_int_equal(json_pretty(slice_from_text(text), &to), ST_OK);
    assert_int_equal(buf_append(&to, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)to.ptr, expected);
    buf_fini(&to);
}

static void values_are_indented_as_go_does(void **state)
{
    (void)state;
    assert_pretty("{\"a\":[1,{\"b\":null}],\"c\":{},\"d\":[ ]}",
                  "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ],\n  \"c\": "
                  "{},\n  \"d\": []\n}\n");
    assert_pretty(" 1 \n", "1\n");
}

static void strings_stay_as_they_are(void **state)
{
    (void)state;
    assert_pretty("{\"{\\\"[,:\":\"a b\\\\\"}", "{\n  \"{\\\"[,:\": \"a b\\\\\"\n}\n");
}

static void truncated_text_is_not_read_past_its_end(void **state)
{
    (void)state;
    static const char *const cut[] = {"{\"a", "\"\\", "[", "}", "]]", ""};
    for (size_t i = 0; i < COUNT_OF(cut); i++) {
        struct buf to = {0};
        assert_int_equal(json_pretty(slice_from_text(cut[i]), &to), ST_OK);
        buf_fini(&to);
    }
}

/* Each item has the largest possible indentation. */
static void output_of_mostly_spaces_is_refused(void **state)
{
    enum { LEVELS = 64, ITEMS = 200000 };
    (void)state;
    struct buf text = {0}, to = {0};
    for (int i = 0; i < LEVELS; i++)
        assert_int_equal(buf_append_text(&text, "["), ST_OK);
    for (int i = 0; i < ITEMS; i++)
        assert_int_equal(buf_append_text(&text, "1,"), ST_OK);
    assert_int_equal(json_pretty(buf_slice(&text), &to), ST_LIMIT);
    assert_true(to.len < JSON_PRETTY_BYTES_MAX + 1024);
    buf_fini(&text);
    buf_fini(&to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_indented_as_go_does),
        cmocka_unit_test(strings_stay_as_they_are),
        cmocka_unit_test(truncated_text_is_not_read_past_its_end),
        cmocka_unit_test(output_of_mostly_spaces_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
