#include "load/message.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void requests_are_the_bytes_of_the_public_api(void **state)
{
    (void)state;
    struct buf out = {0};
    assert_int_equal(bench_message_put(&out, SLICE_LITERAL("k"), SLICE_LITERAL("vv")), ST_OK);
    assert_true(slice_equal(buf_slice(&out), SLICE_LITERAL("\x0a\x01k\x12\x02vv")));
    out.len = 0;
    assert_int_equal(bench_message_range(&out, SLICE_LITERAL("a"), SLICE_EMPTY), ST_OK);
    assert_true(slice_equal(buf_slice(&out), SLICE_LITERAL("\x0a\x01"
                                                           "a")));
    out.len = 0;
    assert_int_equal(bench_message_watch(&out, SLICE_LITERAL("a"), SLICE_LITERAL("b"), 300), ST_OK);
    assert_true(slice_equal(buf_slice(&out), SLICE_LITERAL("\x0a\x09\x0a\x01"
                                                           "a\x12\x01"
                                                           "b\x18\xac\x02")));
    buf_fini(&out);
}

static void the_end_of_a_prefix_is_one_more(void **state)
{
    (void)state;
    struct buf end = {0};
    assert_int_equal(bench_message_prefix_end(SLICE_LITERAL("a/"), &end), ST_OK);
    assert_true(slice_equal(buf_slice(&end), SLICE_LITERAL("a0")));
    buf_fini(&end);
    assert_int_equal(bench_message_prefix_end(SLICE_EMPTY, &end), ST_INVALID);
    assert_int_equal(bench_message_prefix_end(SLICE_LITERAL("a\xff"), &end), ST_INVALID);
}

static void a_revision_is_found_in_the_header(void **state)
{
    (void)state;
    assert_int_equal(bench_message_revision(SLICE_LITERAL("\x0a\x05\x08\x01\x18\xac\x02")), 300);
    assert_int_equal(bench_message_revision(SLICE_LITERAL("\x10\x01")), 0);
    assert_int_equal(bench_message_revision(SLICE_EMPTY), 0);
}

static void note_value(void *argument, struct slice value)
{
    struct buf *seen = argument;
    assert_int_equal(buf_append_format(seen, "<%.*s>", SLICE_ARGS(value)), ST_OK);
}

static void watch_answers_give_each_events_value(void **state)
{
    (void)state;
    /* created, then events: a put of "v1", a delete without value, fields we do not know. */
    struct slice message = SLICE_LITERAL("\x0a\x02\x18\x07\x10\x03\x18\x01"
                                         "\x5a\x09\x12\x07\x0a\x01k\x2a\x02v1"
                                         "\x5a\x07\x08\x01\x12\x03\x0a\x01k"
                                         "\xfa\x01\x01x");
    AUTO(buf_fini) struct buf seen = {0};
    struct bench_watch_answer answer;
    assert_int_equal(bench_message_watch_answer(message, note_value, &seen, &answer), ST_OK);
    assert_true(answer.created && !answer.canceled);
    assert_int_equal(answer.events, 2);
    assert_true(slice_equal(buf_slice(&seen), SLICE_LITERAL("<v1><>")));
}

static void every_cut_of_a_message_is_refused_or_a_message(void **state)
{
    (void)state;
    struct slice message =
        SLICE_LITERAL("\x0a\x02\x18\x07\x10\x03\x5a\x09\x12\x07\x0a\x01k\x2a\x02v1");
    for (size_t len = 0; len < message.len; len++) {
        AUTO(buf_fini) struct buf seen = {0};
        struct bench_watch_answer answer;
        enum status status =
            bench_message_watch_answer(slice_sub(message, 0, len), note_value, &seen, &answer);
        bool boundary = len == 0 || len == 4 || len == 6;
        assert_int_equal(status, boundary ? ST_OK : ST_MALFORMED);
    }
}

static void overlong_numbers_and_unknown_wire_types_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x0b",
                                      "\x07"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct slice message = slice_from_text(bad[i]);
        struct bench_field field;
        assert_int_equal(bench_message_next(&message, &field), ST_MALFORMED);
    }
}

static void numbers_of_every_length_are_read(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 64; bits++) {
        uint8_t bytes[12] = {0x10};
        uint64_t value = UINT64_C(1) << bits;
        size_t len = 1;
        for (uint64_t rest = value; rest; rest >>= 7)
            bytes[len++] = (uint8_t)((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
        for (size_t behind = 0; behind < 2; behind++) { /* at the end, and before another byte */
            struct slice message = slice_of(bytes, len + behind);
            struct bench_field field;
            assert_int_equal(bench_message_next(&message, &field), ST_OK);
            assert_true(field.value == value && message.len == behind);
        }
        struct slice cut = slice_of(bytes, len - 1);
        struct bench_field field;
        assert_int_equal(bench_message_next(&cut, &field), ST_MALFORMED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_the_bytes_of_the_public_api),
        cmocka_unit_test(the_end_of_a_prefix_is_one_more),
        cmocka_unit_test(a_revision_is_found_in_the_header),
        cmocka_unit_test(watch_answers_give_each_events_value),
        cmocka_unit_test(every_cut_of_a_message_is_refused_or_a_message),
        cmocka_unit_test(numbers_of_every_length_are_read),
        cmocka_unit_test(overlong_numbers_and_unknown_wire_types_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
