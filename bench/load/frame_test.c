#include "load/frame.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void frames_come_out_whole_however_the_bytes_arrive(void **state)
{
    (void)state;
    struct buf bytes = {0};
    uint8_t big[1000];
    memset(big, 'x', sizeof(big));
    assert_int_equal(bench_frame_append(&bytes, BENCH_FRAME_SETTINGS, 0, 0, SLICE_EMPTY), ST_OK);
    assert_int_equal(bench_frame_append(&bytes, BENCH_FRAME_HEADERS, BENCH_FRAME_END_HEADERS, 7,
                                        SLICE_LITERAL("block")),
                     ST_OK);
    assert_int_equal(bench_frame_append(&bytes, BENCH_FRAME_DATA, BENCH_FRAME_END_STREAM, 7,
                                        slice_of(big, sizeof(big))),
                     ST_OK);
    assert_int_equal(bench_frame_append_window(&bytes, 9, 12345), ST_OK);

    for (size_t step = 1; step < bytes.len; step += step < 40 ? 1 : 97) {
        struct bench_frame_reader reader = {0};
        size_t given = 0, used = 0, data = 0, ends = 0, windows = 0, blocks = 0;
        while (given < bytes.len) {
            given = size_min(given + step, bytes.len);
            struct slice input = slice_sub(buf_slice(&bytes), used, given - used);
            struct bench_frame frame;
            enum status status;
            while ((status = bench_frame_next(&reader, &input, &frame)) == ST_OK) {
                data += frame.type == BENCH_FRAME_DATA ? frame.payload.len : 0;
                ends += frame.type == BENCH_FRAME_DATA && (frame.flags & BENCH_FRAME_END_STREAM);
                blocks += frame.type == BENCH_FRAME_HEADERS && frame.stream == 7 &&
                          slice_equal(frame.payload, SLICE_LITERAL("block"));
                windows += frame.type == BENCH_FRAME_WINDOW_UPDATE && frame.stream == 9 &&
                           bench_u32_read(frame.payload.ptr) == 12345;
            }
            assert_int_equal(status, ST_AGAIN);
            used = given - input.len;
        }
        assert_int_equal(used, bytes.len);
        assert_int_equal(data, sizeof(big));
        assert_int_equal(ends, 1);
        assert_int_equal(blocks, 1);
        assert_int_equal(windows, 1);
    }
    buf_fini(&bytes);
}

static enum status next_of(const uint8_t *bytes, size_t len, struct bench_frame *frame)
{
    struct bench_frame_reader reader = {0};
    struct slice input = slice_of(bytes, len);
    return bench_frame_next(&reader, &input, frame);
}

static void a_frame_over_the_limit_is_refused(void **state)
{
    (void)state;
    struct bench_frame frame;
    uint8_t head[BENCH_FRAME_HEAD_BYTES];
    bench_frame_head_write(head, BENCH_FRAME_PAYLOAD_MAX, BENCH_FRAME_PING, 0, 0);
    assert_int_equal(next_of(head, sizeof(head), &frame), ST_AGAIN);
    bench_frame_head_write(head, BENCH_FRAME_PAYLOAD_MAX + 1, BENCH_FRAME_DATA, 0, 1);
    assert_int_equal(next_of(head, sizeof(head), &frame), ST_MALFORMED);
}

static void padding_and_priority_are_removed(void **state)
{
    (void)state;
    struct bench_frame frame;
    uint8_t bytes[BENCH_FRAME_HEAD_BYTES + 10] = {0};
    bench_frame_head_write(bytes, 10, BENCH_FRAME_HEADERS,
                           BENCH_FRAME_PADDED | BENCH_FRAME_PRIORITY, 3);
    bytes[9] = 2;
    bytes[15] = 'h';
    bytes[16] = 'i';
    assert_int_equal(next_of(bytes, sizeof(bytes), &frame), ST_OK);
    assert_true(slice_equal(frame.payload, SLICE_LITERAL("hi")));

    bytes[9] = 5;
    assert_int_equal(next_of(bytes, sizeof(bytes), &frame), ST_MALFORMED);
    bench_frame_head_write(bytes, 0, BENCH_FRAME_DATA, BENCH_FRAME_PADDED, 3);
    assert_int_equal(next_of(bytes, 9, &frame), ST_MALFORMED);
    bench_frame_head_write(bytes, 4, BENCH_FRAME_HEADERS, BENCH_FRAME_PRIORITY, 3);
    assert_int_equal(next_of(bytes, 13, &frame), ST_MALFORMED);
}

static void an_empty_data_frame_can_end_a_stream(void **state)
{
    (void)state;
    struct bench_frame frame;
    uint8_t head[BENCH_FRAME_HEAD_BYTES];
    bench_frame_head_write(head, 0, BENCH_FRAME_DATA, BENCH_FRAME_END_STREAM, 5);
    assert_int_equal(next_of(head, sizeof(head), &frame), ST_OK);
    assert_int_equal(frame.payload.len, 0);
    assert_true(frame.flags & BENCH_FRAME_END_STREAM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_come_out_whole_however_the_bytes_arrive),
        cmocka_unit_test(a_frame_over_the_limit_is_refused),
        cmocka_unit_test(padding_and_priority_are_removed),
        cmocka_unit_test(an_empty_data_frame_can_end_a_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
