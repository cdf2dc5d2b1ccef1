#include "codec/json/writer.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void assert_written(const struct json_writer *writer, const char *expected)
{
    assert_int_equal(json_writer_finish(writer), ST_OK);
    struct slice got = buf_slice(writer->out);
    if (!slice_equal(got, slice_from_text(expected)))
        print_error("got %.*s\n", SLICE_ARGS(got));
    assert_true(slice_equal(got, slice_from_text(expected)));
}

static void items_are_separated_by_commas(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf out = {0};
    struct json_writer w;
    json_writer_init(&w, &out);
    json_begin_object(&w);
    json_key(&w, "health");
    json_text(&w, "true");
    json_key(&w, "members");
    json_begin_array(&w);
    json_i64(&w, 1);
    json_begin_object(&w);
    json_end_object(&w);
    json_begin_array(&w);
    json_end_array(&w);
    json_null(&w);
    json_end_array(&w);
    json_key(&w, "ok");
    json_bool(&w, true);
    json_key(&w, "bad");
    json_bool(&w, false);
    json_end_object(&w);
    assert_written(&w,
                   "{\"health\":\"true\",\"members\":[1,{},[],null],\"ok\":true,\"bad\":false}");
}

static void single_value_is_a_text_too(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf out = {0};
    struct json_writer w;
    json_writer_init(&w, &out);
    json_text(&w, "");
    assert_written(&w, "\"\"");
}

static void numbers_keep_all_digits(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf out = {0};
    struct json_writer w;
    json_writer_init(&w, &out);
    json_begin_array(&w);
    json_i64(&w, INT64_MIN);
    json_i64(&w, INT64_MAX);
    json_i64(&w, 0);
    json_u64(&w, UINT64_MAX);
    json_end_array(&w);
    assert_written(&w, "[-9223372036854775808,9223372036854775807,0,18446744073709551615]");
}

static void quotes_and_control_characters_are_escaped(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf out = {0};
    struct json_writer w;
    json_writer_init(&w, &out);
    json_string(&w, SLICE_LITERAL("a\"b\\c/\n\r\t\0\x01\x1f\x7f end"));
    assert_written(&w, "\"a\\\"b\\\\c/\\n\\r\\t\\u0000\\u0001\\u001f\x7f end\"");
}

static void keys_are_escaped_as_well(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf out = {0};
    struct json_writer w;
    json_writer_init(&w, &out);
    json_begin_object(&w);
    json_key(&w, "a\"b");
    json_null(&w);
    json_key_of(&w, SLICE_LITERAL("c\0"));
    json_null(&w);
    json_end_object(&w);
    assert_written(&w, "{\"a\\\"b\":null,\"c\\u0000\":null}");
}

static void text_that_is_not_utf8_becomes_valid(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf out = {0};
    struct json_writer w;
    json_writer_init(&w, &out);
    json_string(&w, SLICE_LITERAL("\xe2\x82\xac\xff\xc3x\xed\xa0\x80\xf0\x9f\x98"));
    assert_written(&w, "\"\xe2\x82\xac\\ufffd\\ufffdx\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"");
}

static void first_failure_is_kept(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf out = {0};
    struct json_writer w;
    json_writer_init(&w, &out);
    json_begin_array(&w);
    json_i64(&w, 1);
    w.status = ST_NOMEM; /* as after a failed allocation */
    json_text(&w, "lost");
    json_i64(&w, 2);
    json_u64(&w, 3);
    json_end_array(&w);
    assert_int_equal(json_writer_finish(&w), ST_NOMEM);
    assert_true(slice_equal(buf_slice(&out), SLICE_LITERAL("[1")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_are_separated_by_commas),
        cmocka_unit_test(single_value_is_a_text_too),
        cmocka_unit_test(numbers_keep_all_digits),
        cmocka_unit_test(quotes_and_control_characters_are_escaped),
        cmocka_unit_test(keys_are_escaped_as_well),
        cmocka_unit_test(text_that_is_not_utf8_becomes_valid),
        cmocka_unit_test(first_failure_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
