/* Limits of a session, and how it shuts down. */
#include "wire/h2/session_fixture_test.h"

/* ---- limits ---- */

static void stream_beyond_the_limit_is_refused(void **state)
{
    struct fixture *f = *state;
    f->limits.streams_max = 10;
    f->hold = true;
    for (uint32_t id = 1; id <= 21; id += 2)
        request(f, id, H2_FLAG_END_STREAM);
    exchange(f);
    assert_int_equal(h2_session_streams(f->session), 10);
    assert_int_equal(test_error(out_of(f), 21), H2_REFUSED_STREAM);
    assert_int_equal(test_error(out_of(f), 19), -1);
}

/* A field of 3,000 bytes is sent with one byte each: what is held counts, not what was sent. */
static void streams_beyond_the_limit_of_all_headers_are_refused(void **state)
{
    struct fixture *f = *state;
    AUTO(buf_fini) struct buf block = {0};
    static uint8_t value[3000];
    memset(value, 'v', sizeof(value));
    f->limits.headers_bytes_max = 20000;
    f->hold = true;
    test_put(&block, SLICE_LITERAL(TEST_REQUEST "\x40\1n\x7f\xb9\x16"));
    test_put(&block, slice_of(value, sizeof(value)));
    test_headers(&f->in, 1, H2_FLAG_END_STREAM, buf_slice(&block));
    for (uint32_t id = 3; id <= 21; id += 2)
        test_headers(&f->in, id, H2_FLAG_END_STREAM, SLICE_LITERAL(TEST_REQUEST "\xbe"));
    exchange(f);
    assert_int_equal(test_error(out_of(f), 7), -1);
    assert_int_equal(test_error(out_of(f), 21), H2_REFUSED_STREAM);
    size_t open = h2_session_streams(f->session);
    assert_in_range(open, 3, 6);
    /* A stream that ends makes room. */
    test_frame(&f->in, H2_RST_STREAM, 0, 1, SLICE_LITERAL("\0\0\0\x08"));
    test_headers(&f->in, 23, H2_FLAG_END_STREAM, SLICE_LITERAL(TEST_REQUEST "\xbe"));
    exchange(f);
    assert_int_equal(h2_session_streams(f->session), open);
}

#define GRPC       \
    "\0\x0c"       \
    "content-type" \
    "\x10"         \
    "application/grpc"

/* The request was answered with 431, and the client need not send a body. */
static bool said_431(struct fixture *f, uint32_t id)
{
    struct slice out = out_of(f);
    static const uint8_t head[] = {H2_FLAG_END_HEADERS | H2_FLAG_END_STREAM, 0, 0, 0};
    for (size_t i = 3; i + 11 < out.len; i++)
        if (out.ptr[i] == H2_HEADERS && memcmp(out.ptr + i + 1, head, sizeof(head)) == 0 &&
            out.ptr[i + 5] == id &&
            memcmp(out.ptr + i + 6,
                   "\x08\x03"
                   "431",
                   5) == 0)
            return test_error(out, id) == H2_NO_ERROR;
    return false;
}

/* Appends a path of this many letters, Huffman-coded; each takes five bits. */
static void put_coded_path(struct buf *block, size_t letters)
{
    size_t bytes = (letters * 5 + 7) / 8;
    test_put(block, SLICE_LITERAL("\x04\xff"));
    size_t rest = bytes - 127;
    for (; rest >= 128; rest >>= 7)
        test_put(block, slice_of(&(uint8_t){(uint8_t)(0x80 | (rest & 0x7f))}, 1));
    test_put(block, slice_of(&(uint8_t){(uint8_t)rest}, 1));
    for (size_t at = 0; at < bytes; at++) {
        uint8_t byte = 0;
        for (size_t bit = at * 8; bit < at * 8 + 8; bit++) /* "a" is 00011; ones at the end */
            byte = (uint8_t)(byte << 1 | (bit >= letters * 5 || bit % 5 >= 3));
        test_put(block, slice_of(&byte, 1));
    }
}

static void send_block(struct fixture *f, uint32_t id, struct slice block)
{
    enum { PIECE = 16000 };
    bool more = block.len > PIECE;
    test_frame(&f->in, H2_HEADERS, H2_FLAG_END_STREAM | (more ? 0 : H2_FLAG_END_HEADERS), id,
               slice_sub(block, 0, size_min(block.len, PIECE)));
    for (size_t at = PIECE; at < block.len; at += PIECE) {
        size_t n = size_min(block.len - at, PIECE);
        test_frame(&f->in, H2_CONTINUATION, at + n < block.len ? 0 : H2_FLAG_END_HEADERS, id,
                   slice_sub(block, at, n));
    }
    exchange(f);
}

/* As long as curl and Go send it: the path is coded, and does not fit into our memory. */
static void long_path_is_answered_with_431(void **state)
{
    struct fixture *f = *state;
    static const size_t letters[] = {66000, 120000, 200000};
    /* An entry of the table, which later requests use. */
    test_headers(&f->in, 1, H2_FLAG_END_STREAM, SLICE_LITERAL(TEST_REQUEST "\x40\1n\1v"));
    for (size_t i = 0; i < COUNT_OF(letters); i++) {
        AUTO(buf_fini) struct buf block = {0};
        test_put(&block, SLICE_LITERAL("\x82\x86"));
        put_coded_path(&block, letters[i]);
        test_put(&block, SLICE_LITERAL("\x01\x01x\xbe"));
        send_block(f, (uint32_t)(3 + 2 * i), buf_slice(&block));
        assert_true(said_431(f, (uint32_t)(3 + 2 * i)));
    }
    assert_int_equal(f->opened, 1);
    test_headers(&f->in, 9, H2_FLAG_END_STREAM, SLICE_LITERAL(TEST_REQUEST "\xbe"));
    exchange(f);
    assert_int_equal(f->opened, 2);
    assert_false(h2_session_failed(f->session));
    AUTO(buf_fini) struct buf block = {0};
    test_put(&block, SLICE_LITERAL("\x82\x86"));
    put_coded_path(&block, 215000);
    send_block(f, 11, buf_slice(&block));
    assert_int_equal(test_error(out_of(f), 0), H2_ENHANCE_YOUR_CALM);
}

static void header_list_beyond_the_limit_resets_only_its_stream(void **state)
{
    struct fixture *f = *state;
    struct buf block = {0};
    static uint8_t value[300];
    memset(value, 'v', sizeof(value));
    test_put(&block, SLICE_LITERAL(TEST_REQUEST GRPC));
    f->limits.header_list_bytes = 16 * 1024;
    for (size_t i = 0; i < 55; i++) {
        test_put(&block, SLICE_LITERAL("\0\1n\x7f\xad\x01"));
        test_put(&block, slice_of(value, sizeof(value)));
    }
    test_frame(&f->in, H2_HEADERS, 0, 1, slice_of(block.ptr, 16000));
    test_frame(&f->in, H2_CONTINUATION, H2_FLAG_END_HEADERS, 1,
               slice_of(block.ptr + 16000, block.len - 16000));
    exchange(f);
    assert_int_equal(test_error(out_of(f), 1), H2_FRAME_SIZE_ERROR);
    assert_int_equal(f->opened, 0);
    request(f, 3, H2_FLAG_END_STREAM);
    assert_int_equal(f->opened, 1);
    buf_fini(&block);
}

static void header_fields_beyond_the_limit_reset_their_stream(void **state)
{
    struct fixture *f = *state;
    struct buf block = {0};
    test_put(&block, SLICE_LITERAL(TEST_REQUEST GRPC));
    for (size_t i = 0; i < 128; i++)
        test_put(&block, SLICE_LITERAL("\0\1n\1v"));
    test_headers(&f->in, 1, H2_FLAG_END_STREAM, buf_slice(&block));
    exchange(f);
    assert_int_equal(test_error(out_of(f), 1), H2_FRAME_SIZE_ERROR);
    block.len = 0;
    test_put(&block, SLICE_LITERAL(TEST_REQUEST));
    for (size_t i = 0; i < 128; i++)
        test_put(&block, SLICE_LITERAL("\0\1n\1v"));
    test_headers(&f->in, 3, H2_FLAG_END_STREAM, buf_slice(&block));
    exchange(f);
    assert_true(said_431(f, 3));
    buf_fini(&block);
}

/* One entry of 4 KB in the table, referenced 16,000 times with one byte each. */
static void header_bomb_ends_the_connection(void **state)
{
    struct fixture *f = *state;
    struct buf block = {0};
    static uint8_t value[3900];
    memset(value, 'v', sizeof(value));
    test_put(&block, SLICE_LITERAL(TEST_REQUEST "\x40\1n\x7f\xbd\x1d"));
    test_put(&block, slice_of(value, sizeof(value)));
    for (size_t i = 0; i < 12000; i++)
        test_put(&block, SLICE_LITERAL("\xbe"));
    test_headers(&f->in, 1, H2_FLAG_END_STREAM, buf_slice(&block));
    exchange(f);
    assert_int_equal(test_error(out_of(f), 0), H2_ENHANCE_YOUR_CALM);
    buf_fini(&block);
}

static void continuation_flood_ends_the_connection(void **state)
{
    struct fixture *f = *state;
    test_frame(&f->in, H2_HEADERS, 0, 1, SLICE_LITERAL("\x83"));
    for (size_t i = 0; i < 9; i++)
        test_frame(&f->in, H2_CONTINUATION, 0, 1, SLICE_EMPTY);
    exchange(f);
    assert_int_equal(test_error(out_of(f), 0), H2_ENHANCE_YOUR_CALM);
}

static void header_block_beyond_its_limit_ends_the_connection(void **state)
{
    struct fixture *f = *state;
    static uint8_t bytes[16384];
    test_frame(&f->in, H2_HEADERS, 0, 1, slice_of(bytes, sizeof(bytes)));
    for (size_t i = 0; i < 8; i++)
        test_frame(&f->in, H2_CONTINUATION, 0, 1, slice_of(bytes, sizeof(bytes)));
    exchange(f);
    assert_int_equal(test_error(out_of(f), 0), H2_ENHANCE_YOUR_CALM);
}

/* The connection ends at the timeout, however often a little more input arrives. */
static void assert_left_after_frame_time(struct fixture *f, struct slice more)
{
    int64_t by = f->now + f->limits.frame_ns;
    assert_int_equal(h2_session_timeout(f->session), by);
    f->now = by - 1;
    h2_session_feed(f->session, more, f->now);
    h2_session_tick(f->session, f->now);
    assert_false(h2_session_failed(f->session));
    f->now = by;
    h2_session_tick(f->session, f->now);
    drain(f);
    assert_int_equal(test_error(out_of(f), 0), H2_ENHANCE_YOUR_CALM);
}

static void slow_header_block_ends_the_connection(void **state)
{
    struct fixture *f = *state;
    test_frame(&f->in, H2_HEADERS, 0, 1, SLICE_LITERAL("\x83"));
    exchange(f);
    struct buf more = {0};
    test_frame(&more, H2_CONTINUATION, 0, 1, SLICE_LITERAL("\x84"));
    assert_left_after_frame_time(f, buf_slice(&more));
    buf_fini(&more);
}

static void slow_frame_ends_the_connection(void **state)
{
    struct fixture *f = *state;
    test_frame(&f->in, H2_HEADERS, H2_FLAG_END_HEADERS, 1, SLICE_LITERAL("\x83\x84\x86"));
    f->in.len -= 2;
    exchange(f);
    assert_left_after_frame_time(f, SLICE_LITERAL("\x84"));
}

/* A frame of a type that we do not know. */
static void slow_skipped_bytes_end_the_connection(void **state)
{
    struct fixture *f = *state;
    test_frame(&f->in, 0x42, 0, 0, SLICE_LITERAL("0123456789"));
    f->in.len -= 9;
    exchange(f);
    assert_left_after_frame_time(f, SLICE_LITERAL("12345678"));
}

static void completed_frames_have_no_timeout(void **state)
{
    struct fixture *f = *state;
    exchange(f);
    int64_t idle = h2_session_timeout(f->session);
    test_frame(&f->in, H2_PING, 0, 0, SLICE_LITERAL("12345678"));
    f->in.len -= 3;
    exchange(f);
    assert_int_equal(h2_session_timeout(f->session), f->now + f->limits.frame_ns);
    h2_session_feed(f->session, SLICE_LITERAL("678"), f->now);
    assert_int_equal(h2_session_timeout(f->session), idle);
    test_frame(&f->in, 0x42, 0, 0, SLICE_LITERAL("12345678"));
    f->in.len -= 3;
    exchange(f);
    assert_int_equal(h2_session_timeout(f->session), f->now + f->limits.frame_ns);
    h2_session_feed(f->session, SLICE_LITERAL("678"), f->now);
    assert_int_equal(h2_session_timeout(f->session), idle);
}

static void resets_are_limited_by_rate(void **state)
{
    struct fixture *f = *state;
    f->hold = true;
    uint32_t id = 1;
    for (size_t i = 0; i < 1000; i++, id += 2) {
        request(f, id, H2_FLAG_END_STREAM);
        test_frame(&f->in, H2_RST_STREAM, 0, id, SLICE_LITERAL("\0\0\0\x08"));
    }
    exchange(f);
    assert_int_equal(test_error(out_of(f), 0), -1);
    assert_int_equal(f->closed, 1000);
    f->now += H2_SECOND_NS;
    for (size_t i = 0; i < 33; i++, id += 2) {
        request(f, id, H2_FLAG_END_STREAM);
        test_frame(&f->in, H2_RST_STREAM, 0, id, SLICE_LITERAL("\0\0\0\x08"));
    }
    exchange(f);
    assert_int_equal(test_error(out_of(f), 0), -1);
    request(f, id, H2_FLAG_END_STREAM);
    test_frame(&f->in, H2_RST_STREAM, 0, id, SLICE_LITERAL("\0\0\0\x08"));
    exchange(f);
    assert_int_equal(test_error(out_of(f), 0), H2_ENHANCE_YOUR_CALM);
}

static void provoked_resets_are_limited_by_rate(void **state)
{
    struct fixture *f = *state;
    f->hold = true;
    for (uint32_t id = 1; id <= 2 * 1001; id += 2) {
        request(f, id, H2_FLAG_END_STREAM);
        test_window(&f->in, id, 0); /* a fault on the stream: we reset it */
        exchange(f);
    }
    assert_int_equal(test_error(out_of(f), 0), H2_ENHANCE_YOUR_CALM);
}

static void settings_flood_ends_the_connection(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 100; i++)
        test_frame(&f->in, H2_SETTINGS, 0, 0, SLICE_EMPTY);
    exchange(f);
    assert_int_equal(test_error(out_of(f), 0), H2_ENHANCE_YOUR_CALM);
}

static void empty_data_flood_ends_the_connection(void **state)
{
    struct fixture *f = *state;
    request(f, 1, 0);
    for (size_t i = 0; i < 101; i++)
        test_frame(&f->in, H2_DATA, 0, 1, SLICE_EMPTY);
    exchange(f);
    assert_int_equal(test_error(out_of(f), 0), H2_ENHANCE_YOUR_CALM);
}

static void unread_control_frames_stop_reading_and_then_end(void **state)
{
    struct fixture *f = *state;
    f->limits.ping_strikes = UINT32_MAX;
    feed_in(f, SIZE_MAX / 2);
    while (h2_session_wants_read(f->session)) {
        test_frame(&f->in, H2_PING, 0, 0, SLICE_LITERAL("12345678"));
        feed_in(f, SIZE_MAX / 2);
    }
    assert_int_equal(h2_session_failed(f->session), false);
    for (size_t i = 0; i < 4000; i++) {
        test_frame(&f->in, H2_PING, 0, 0, SLICE_LITERAL("12345678"));
        feed_in(f, SIZE_MAX / 2);
    }
    drain(f);
    assert_true(f->out.len < f->limits.control_bytes_hard + 1024);
    assert_int_equal(test_error(out_of(f), 0), H2_ENHANCE_YOUR_CALM);
}

/* ---- pings ---- */

static void ping(struct fixture *f)
{
    test_frame(&f->in, H2_PING, 0, 0, SLICE_LITERAL("12345678"));
    exchange(f);
}

static void ping_is_answered_with_its_bytes(void **state)
{
    struct fixture *f = *state;
    ping(f);
    struct h2_frame frame;
    struct slice payload;
    assert_true(test_find(out_of(f), H2_PING, 0, 0, &frame, &payload));
    assert_int_equal(frame.flags, H2_FLAG_ACK);
    assert_true(slice_equal(payload, SLICE_LITERAL("12345678")));
}

static void third_early_ping_gets_too_many_pings(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 3; i++)
        ping(f);
    assert_int_equal(test_error(out_of(f), 0), -1);
    ping(f);
    struct h2_frame frame;
    struct slice payload;
    assert_true(test_find(out_of(f), H2_GOAWAY, 0, 0, &frame, &payload));
    assert_int_equal(h2_get32(payload.ptr + 4), H2_ENHANCE_YOUR_CALM);
    assert_true(
        slice_equal(slice_sub(payload, 8, payload.len - 8), SLICE_LITERAL("too_many_pings")));
    assert_true(h2_session_over(f->session));
}

static void pings_in_time_or_after_output_are_allowed(void **state)
{
    struct fixture *f = *state;
    f->hold = true;
    request(f, 1, 0);
    for (size_t i = 0; i < 10; i++, f->now += 5 * H2_SECOND_NS)
        ping(f);
    f->hold = false;
    for (uint32_t id = 3; id < 23; id += 2) {
        request(f, id, H2_FLAG_END_STREAM);
        exchange(f);
        ping(f);
    }
    assert_int_equal(test_error(out_of(f), 0), -1);
}

/* ---- closing ---- */

static void peer_reset_closes_the_stream(void **state)
{
    struct fixture *f = *state;
    f->hold = true;
    request(f, 1, 0);
    test_frame(&f->in, H2_RST_STREAM, 0, 1, SLICE_LITERAL("\0\0\0\x08"));
    test_frame(&f->in, H2_DATA, 0, 1,
               SLICE_LITERAL("late")); /* a fault: the peer reset the stream itself */
    exchange(f);
    assert_int_equal(f->closed, 1);
    assert_int_equal(test_error(out_of(f), 1), H2_STREAM_CLOSED);
}

static void early_answer_ends_with_reset_no_error(void **state)
{
    struct fixture *f = *state;
    request(f, 1, 0);
    h2_stream_ready(&f->last->stream);
    drain(f);
    assert_int_equal(test_error(out_of(f), 1), H2_NO_ERROR);
    /* Frames that were in flight are ignored and not a fault. */
    test_frame(&f->in, H2_DATA, 0, 1, SLICE_LITERAL("late"));
    test_headers(&f->in, 1, H2_FLAG_END_STREAM, SLICE_LITERAL("\0\1n\1v"));
    exchange(f);
    assert_int_equal(test_count(out_of(f), H2_RST_STREAM, 1), 1);
    assert_int_equal(test_error(out_of(f), 0), -1);
}

static void shutdown_sends_goaway_twice(void **state)
{
    struct fixture *f = *state;
    f->hold = true;
    request(f, 1, H2_FLAG_END_STREAM);
    struct answer *first = f->last;
    drain(f);
    h2_session_shutdown(f->session, f->now);
    drain(f);
    struct h2_frame frame;
    struct slice payload, echo;
    assert_true(test_find(out_of(f), H2_GOAWAY, 0, 0, &frame, &payload));
    assert_int_equal(h2_get32(payload.ptr), H2_STREAM_ID_MAX);
    assert_true(test_find(out_of(f), H2_PING, 0, 0, &frame, &echo));
    request(f, 3, H2_FLAG_END_STREAM); /* sent before the client read the GOAWAY */
    struct answer *second = f->last;
    struct buf copy = {0};
    test_put(&copy, echo);
    test_frame(&f->in, H2_PING, H2_FLAG_ACK, 0, buf_slice(&copy));
    buf_fini(&copy);
    exchange(f);
    assert_true(test_find(out_of(f), H2_GOAWAY, 0, 1, &frame, &payload));
    assert_int_equal(h2_get32(payload.ptr), 3);
    request(f, 5, H2_FLAG_END_STREAM);
    assert_int_equal(f->opened, 2);
    assert_false(h2_session_over(f->session));
    h2_stream_ready(&first->stream);
    h2_stream_ready(&second->stream);
    drain(f);
    assert_true(h2_session_over(f->session));
    assert_int_equal(test_count(out_of(f), H2_HEADERS, 3), 2);
}

static void shutdown_does_not_wait_forever_for_the_echo(void **state)
{
    struct fixture *f = *state;
    exchange(f);
    f->hold = true;
    request(f, 1, H2_FLAG_END_STREAM);
    struct answer *answer = f->last;
    drain(f);
    h2_session_shutdown(f->session, f->now);
    drain(f);
    assert_int_equal(h2_session_timeout(f->session), f->now + f->limits.drain_ns);
    h2_session_tick(f->session, f->now + f->limits.drain_ns);
    h2_stream_ready(&answer->stream);
    drain(f);
    assert_true(h2_session_over(f->session));
}

/* A stream that the client opens meanwhile has a higher id than the GOAWAY, so it was not
 * processed. */
static void shutdown_ends_an_idle_session_immediately(void **state)
{
    struct fixture *f = *state;
    exchange(f);
    request(f, 1, H2_FLAG_END_STREAM);
    drain(f);
    h2_session_shutdown(f->session, f->now);
    drain(f);
    struct h2_frame frame;
    struct slice payload;
    assert_true(test_find(out_of(f), H2_GOAWAY, 0, 0, &frame, &payload));
    assert_int_equal(h2_get32(payload.ptr), 1);
    assert_true(h2_session_over(f->session));
    request(f, 3, H2_FLAG_END_STREAM);
    assert_int_equal(f->opened, 1);
}

static void silent_peer_gets_a_ping_and_is_then_closed(void **state)
{
    struct fixture *f = *state;
    exchange(f);
    f->now += f->limits.keepalive_ns;
    assert_int_equal(h2_session_timeout(f->session), f->now);
    h2_session_tick(f->session, f->now);
    drain(f);
    assert_int_equal(test_count(out_of(f), H2_PING, 0), 1);
    h2_session_tick(f->session, f->now + f->limits.keepalive_timeout_ns);
    drain(f);
    assert_true(h2_session_over(f->session));
}

static void output_is_announced_once(void **state)
{
    struct fixture *f = *state;
    f->hold = true;
    request(f, 1, 0);
    request(f, 3, 0);
    drain(f);
    assert_int_equal(f->outputs, 0);
    h2_stream_ready(&f->by_id[0]->stream);
    h2_stream_ready(&f->by_id[0]->stream);
    h2_stream_ready(&f->by_id[1]->stream);
    assert_int_equal(f->outputs, 1);
}

static void thousands_of_streams_are_distinguished(void **state)
{
    struct fixture *f = *state;
    f->hold = true;
    f->reply = 20;
    const uint32_t last_id = 2 * 3000 - 1;
    for (uint32_t id = 1; id <= last_id; id += 2)
        request(f, id, 0);
    for (uint32_t id = 1; id <= last_id; id += 6) /* every third one ends */
        test_frame(&f->in, H2_RST_STREAM, 0, id, SLICE_LITERAL("\0\0\0\x08"));
    exchange(f);
    assert_int_equal(h2_session_streams(f->session), 2000);
    f->hold = false;
    for (uint32_t id = last_id; id > 1; id -= 2) {
        if (id % 6 != 1)
            test_frame(&f->in, H2_DATA, H2_FLAG_END_STREAM, id, SLICE_LITERAL("x"));
    }
    exchange(f);
    assert_int_equal(h2_session_streams(f->session), 0);
    assert_int_equal(test_error(out_of(f), 0), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(stream_beyond_the_limit_is_refused),
        TEST(streams_beyond_the_limit_of_all_headers_are_refused),
        TEST(long_path_is_answered_with_431),
        TEST(header_list_beyond_the_limit_resets_only_its_stream),
        TEST(header_fields_beyond_the_limit_reset_their_stream),
        TEST(header_bomb_ends_the_connection),
        TEST(continuation_flood_ends_the_connection),
        TEST(header_block_beyond_its_limit_ends_the_connection),
        TEST(slow_header_block_ends_the_connection),
        TEST(slow_frame_ends_the_connection),
        TEST(slow_skipped_bytes_end_the_connection),
        TEST(completed_frames_have_no_timeout),
        TEST(resets_are_limited_by_rate),
        TEST(provoked_resets_are_limited_by_rate),
        TEST(settings_flood_ends_the_connection),
        TEST(empty_data_flood_ends_the_connection),
        TEST(unread_control_frames_stop_reading_and_then_end),
        TEST(ping_is_answered_with_its_bytes),
        TEST(third_early_ping_gets_too_many_pings),
        TEST(pings_in_time_or_after_output_are_allowed),
        TEST(peer_reset_closes_the_stream),
        TEST(early_answer_ends_with_reset_no_error),
        TEST(shutdown_sends_goaway_twice),
        TEST(shutdown_does_not_wait_forever_for_the_echo),
        TEST(shutdown_ends_an_idle_session_immediately),
        TEST(silent_peer_gets_a_ping_and_is_then_closed),
        TEST(output_is_announced_once),
        TEST(thousands_of_streams_are_distinguished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
