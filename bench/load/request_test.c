#include "load/request.h"

#include "load/frame.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void a_request_is_one_stream_of_frames_that_ends(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 300, 16379, 16380, 40000};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        static uint8_t message[40000];
        struct bench_request request;
        AUTO(buf_fini) struct buf out = {0};
        uint8_t *at;
        assert_int_equal(
            bench_request_init(&request, SLICE_LITERAL("block"), slice_of(message, sizes[i]), true),
            ST_OK);
        assert_int_equal(bench_request_append(&request, 77, &out, &at), ST_OK);

        struct bench_frame_reader reader = {0};
        struct slice input = buf_slice(&out);
        struct bench_frame frame;
        size_t body = 0, ends = 0;
        while (bench_frame_next(&reader, &input, &frame) == ST_OK) {
            assert_int_equal(frame.stream, 77);
            assert_int_equal(ends, 0);
            body += frame.type == BENCH_FRAME_DATA ? frame.payload.len : 0;
            ends += frame.flags & BENCH_FRAME_END_STREAM;
        }
        assert_int_equal(input.len, 0);
        assert_int_equal(ends, 1);
        assert_int_equal(body, sizes[i] + BENCH_GRPC_PREFIX_BYTES);
        assert_int_equal(body, request.body_bytes);
        bench_request_fini(&request);
    }
}

static void a_place_in_the_message_can_be_written(void **state)
{
    (void)state;
    struct bench_request request;
    AUTO(buf_fini) struct buf out = {0};
    uint8_t *at;
    assert_int_equal(
        bench_request_init(&request, SLICE_LITERAL("block"), SLICE_LITERAL("abcdef"), false),
        ST_OK);
    assert_int_equal(bench_request_append(&request, 1, &out, &at), ST_OK);
    at[bench_request_place(&request, 3)] = 'X';
    assert_true(slice_equal(slice_sub(buf_slice(&out), out.len - 6, 6), SLICE_LITERAL("abcXef")));
    bench_request_fini(&request);
}

static void a_further_message_over_one_frame_is_refused(void **state)
{
    (void)state;
    static uint8_t message[BENCH_FRAME_PAYLOAD_MAX];
    AUTO(buf_fini) struct buf out = {0};
    assert_int_equal(bench_request_append_message(1, slice_of(message, sizeof(message)), &out),
                     ST_LIMIT);
    assert_int_equal(out.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_one_stream_of_frames_that_ends),
        cmocka_unit_test(a_place_in_the_message_can_be_written),
        cmocka_unit_test(a_further_message_over_one_frame_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
