#include "wire/http/query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* All pairs as "name=value|name=value|". */
static void expect_pairs(const char *query, const char *wanted)
{
    AUTO(buf_fini) struct buf scratch = {0}, seen = {0};
    struct slice rest = slice_from_text(query);
    struct http_field pair;
    assert_int_equal(buf_reserve(&scratch, rest.len + 1), ST_OK);
    while (http_query_next(&rest, &scratch, &pair))
        assert_int_equal(
            buf_append_format(&seen, "%.*s=%.*s|", SLICE_ARGS(pair.name), SLICE_ARGS(pair.value)),
            ST_OK);
    assert_int_equal(buf_append(&seen, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)seen.ptr, wanted);
}

static void pairs_are_decoded_as_in_go(void **state)
{
    (void)state;
    expect_pairs("", "");
    expect_pairs("verbose", "verbose=|");
    expect_pairs("a=1&b=2&a=3", "a=1|b=2|a=3|");
    expect_pairs("a=1=2&=x&&b=", "a=1=2|=x|b=|");
    expect_pairs("e%78clude=%4eO+SPACE%2b", "exclude=NO SPACE+|");
    expect_pairs("a;b=1&c=2", "c=2|");
    expect_pairs("a=%&b=%4&c=%zz&d=%41", "d=A|");
}

static void first_value_of_a_name_counts(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf scratch = {0};
    struct slice value, query = SLICE_LITERAL("x=1&serializable=true&serializable=false");
    assert_int_equal(buf_reserve(&scratch, query.len + 1), ST_OK);
    assert_true(http_query_get(query, SLICE_LITERAL("serializable"), &scratch, &value));
    assert_true(slice_equal(value, SLICE_LITERAL("true")));
    assert_false(http_query_get(query, SLICE_LITERAL("serial"), &scratch, &value));
}

static void paths_are_decoded_or_refused(void **state)
{
    (void)state;
    uint8_t dst[16];
    size_t len;
    assert_true(http_path_decode(SLICE_LITERAL("/%68eal+th%2F"), dst, &len));
    assert_true(slice_equal(slice_of(dst, len), SLICE_LITERAL("/heal+th/")));
    assert_false(http_path_decode(SLICE_LITERAL("/%zz"), dst, &len));
    assert_false(http_path_decode(SLICE_LITERAL("/%4"), dst, &len));
    assert_false(http_path_decode(SLICE_LITERAL("/%"), dst, &len));
}

static void escapes_keep_only_what_is_named(void **state)
{
    (void)state;
    struct buf to = {0};
    assert_int_equal(http_escape_append(&to, SLICE_LITERAL("aZ9-_.~/ %+\xc3\xa4"), "/+"), ST_OK);
    assert_int_equal(http_escape_append(&to, slice_of("\0/", 2), ""), ST_OK);
    assert_int_equal(buf_append(&to, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)to.ptr, "aZ9-_.~/%20%25+%C3%A4%00%2F");
    buf_fini(&to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_keep_only_what_is_named),
        cmocka_unit_test(pairs_are_decoded_as_in_go),
        cmocka_unit_test(first_value_of_a_name_counts),
        cmocka_unit_test(paths_are_decoded_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
