#include "kube/call/warning.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct buf warnings, fields;

static int tear_down(void **state)
{
    (void)state;
    buf_fini(&warnings);
    buf_fini(&fields);
    return 0;
}

static void add(const char *text)
{
    kube_warning_add(&warnings, slice_from_text(text));
}

/* A text with this many times the same character, and a number in front, so that it is unique. */
static void add_long(unsigned number, const char *character, size_t count)
{
    AUTO(buf_fini) struct buf text = {0};
    assert_int_equal(buf_append_format(&text, "%03u", number), ST_OK);
    for (size_t i = 3; i < count; i++)
        assert_int_equal(buf_append_text(&text, character), ST_OK);
    kube_warning_add(&warnings, buf_slice(&text));
}

static void collect(void *ctx, struct slice value)
{
    struct buf *to = ctx;
    assert_int_equal(buf_append(to, value), ST_OK);
    assert_int_equal(buf_append_text(to, "\n"), ST_OK);
}

static const char *sent(void)
{
    fields.len = 0;
    kube_warning_fields(buf_slice(&warnings), collect, &fields);
    assert_int_equal(buf_append(&fields, slice_of("", 1)), ST_OK);
    return (const char *)fields.ptr;
}

static size_t count_sent(void)
{
    size_t lines = 0;
    for (const char *at = sent(); (at = strchr(at, '\n')); at++)
        lines++;
    return lines;
}

static void each_text_is_sent_once(void **state)
{
    (void)state;
    add("a");
    add("b\"\\");
    add("a");
    add("");
    add("\xc3\xa9");
    assert_string_equal(sent(), "299 - \"a\"\n299 - \"b\\\"\\\\\"\n299 - \"\xc3\xa9\"\n");
}

static void texts_that_no_header_can_have_are_omitted(void **state)
{
    (void)state;
    add("a\nb");
    add("a\x7f");
    add("a\xc2\x85");
    add("a\xff");
    add("\t");
    kube_warning_add(&warnings, slice_of("a\0b", 3));
    add("\xc2\xa0"); /* a space that is never broken */
    assert_string_equal(sent(), "299 - \"\xc2\xa0\"\n");
}

static void up_to_the_limit_texts_are_whole(void **state)
{
    (void)state;
    add_long(1, "x", 3000);
    add_long(2, "\xe2\x82\xac", 1096); /* characters count, not bytes */
    assert_int_equal(strlen(sent()), 3000 + 3 + 3 * 1093 + 2 * strlen("299 - \"\"\n"));
}

static void past_the_limit_each_is_cut(void **state)
{
    (void)state;
    add_long(1, "x", 3000);
    add("short");
    add_long(2, "\xe2\x82\xac", 1092);
    assert_int_equal(strlen(sent()), 256 + 5 + 3 + 3 * 253 + 3 * strlen("299 - \"\"\n"));
}

static void one_text_past_the_limit_is_cut(void **state)
{
    (void)state;
    add_long(1, "x", 4096);
    assert_int_equal(strlen(sent()), 4096 + strlen("299 - \"\"\n"));
    warnings.len = 0;
    add_long(1, "x", 1000000);
    assert_int_equal(strlen(sent()), 256 + strlen("299 - \"\"\n"));
    assert_true(warnings.len <= KUBE_WARNING_BYTES_MAX + 1);
}

static void past_the_limit_of_cut_texts_the_rest_is_omitted(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100; i++)
        add_long(i, "x", 1000);
    assert_int_equal(count_sent(), 16);
    add("short");
    assert_int_equal(count_sent(), 16);
    assert_non_null(strstr(sent(), "299 - \"015x"));
    assert_null(strstr(sent(), "299 - \"016x"));
}

static void what_exceeds_the_limit_counts_once_more_as_cut(void **state)
{
    (void)state;
    /* 4,095 characters, then one more text: 15 of 256 and 15 more characters fit before it. */
    for (unsigned i = 0; i < 15; i++)
        add_long(i, "x", 273);
    add_long(99, "y", 273);
    assert_int_equal(count_sent(), 16);
    add_long(98, "z", 10); /* 16 * 256 = 4,096: full */
    assert_int_equal(count_sent(), 16);
}

static void texts_of_an_attempt_can_be_dropped(void **state)
{
    (void)state;
    add("a");
    size_t mark = warnings.len;
    for (unsigned i = 0; i < 100; i++)
        add_long(i, "x", 1000);
    warnings.len = mark;
    add("b");
    assert_string_equal(sent(), "299 - \"a\"\n299 - \"b\"\n");
}

static void the_number_of_texts_is_limited(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        add_long(i, "x", 3);
    assert_int_equal(count_sent(), KUBE_WARNINGS_COUNT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(each_text_is_sent_once, tear_down),
        cmocka_unit_test_teardown(texts_that_no_header_can_have_are_omitted, tear_down),
        cmocka_unit_test_teardown(up_to_the_limit_texts_are_whole, tear_down),
        cmocka_unit_test_teardown(past_the_limit_each_is_cut, tear_down),
        cmocka_unit_test_teardown(one_text_past_the_limit_is_cut, tear_down),
        cmocka_unit_test_teardown(past_the_limit_of_cut_texts_the_rest_is_omitted, tear_down),
        cmocka_unit_test_teardown(what_exceeds_the_limit_counts_once_more_as_cut, tear_down),
        cmocka_unit_test_teardown(texts_of_an_attempt_can_be_dropped, tear_down),
        cmocka_unit_test_teardown(the_number_of_texts_is_limited, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
