#include "wire/h2/session.h"

#include "wire/h2/session_fixture_test.h"

static void request_is_answered_for_every_split_of_the_bytes(void **state)
{
    struct fixture *f = *state;
    struct buf input = {0};
    test_hello(&input);
    test_frame(&input, H2_HEADERS, 0, 1, SLICE_LITERAL("\x83\x86"));
    test_frame(&input, H2_CONTINUATION, 0, 1, SLICE_LITERAL("\x84\x01"));
    test_frame(&input, H2_CONTINUATION, H2_FLAG_END_HEADERS, 1, SLICE_LITERAL("\x01x"));
    test_frame(&input, H2_DATA, H2_FLAG_PADDED, 1, SLICE_LITERAL("\x02hello\0\0"));
    test_frame(&input, 0x77, 0xff, 9, SLICE_LITERAL("an unknown frame is skipped"));
    test_frame(&input, H2_DATA, H2_FLAG_END_STREAM, 1, SLICE_LITERAL("world"));
    for (size_t step = 1; step <= input.len; step++) {
        h2_session_free(f->session);
        f->session = NULL;
        f->out.len = f->in.len = 0;
        test_put(&f->in, buf_slice(&input));
        feed_in(f, step);
        assert_int_equal(f->last->received, 10);
        drain(f);
        assert_int_equal(test_count(out_of(f), H2_HEADERS, 1), 2);
        assert_int_equal(test_data_bytes(out_of(f), 1), 10);
        assert_int_equal(h2_session_streams(f->session), 0);
        assert_int_equal(test_error(out_of(f), 0), -1);
        assert_int_equal(test_error(out_of(f), 1), -1);
    }
    buf_fini(&input);
}

static void first_output_is_settings_and_peer_is_acked(void **state)
{
    struct fixture *f = *state;
    exchange(f);
    struct h2_frame frame;
    struct slice bytes = out_of(f), payload;
    assert_true(test_next(&bytes, &frame, &payload));
    assert_int_equal(frame.type, H2_SETTINGS);
    assert_int_equal(frame.flags, 0);
    assert_true(test_find(out_of(f), H2_SETTINGS, 0, 1, &frame, &payload));
    assert_int_equal(frame.flags, H2_FLAG_ACK);
    assert_true(h2_session_established(f->session));
}

/* ---- every fault and its code ---- */

struct raw_frame {
    enum h2_frame_type type;
    uint8_t flags;
    uint32_t id;
    const char *bytes;
    size_t len;
};
#define FRAME(type, flags, id, text)                    \
    {                                                   \
        (type), (flags), (id), (text), sizeof(text) - 1 \
    }
#define OPEN(id) FRAME(H2_HEADERS, 4, id, TEST_REQUEST)
#define WHOLE(id) FRAME(H2_HEADERS, 5, id, TEST_REQUEST)

struct fault {
    const char *what;
    uint32_t stream; /* 0: GOAWAY is expected, otherwise RST_STREAM on it */
    enum h2_error code;
    struct raw_frame frames[4];
};

static const struct fault faults[] = {
    {"DATA on stream 0", 0, H2_PROTOCOL_ERROR, {FRAME(H2_DATA, 0, 0, "x")}},
    {"DATA on an idle stream", 0, H2_PROTOCOL_ERROR, {FRAME(H2_DATA, 0, 1, "x")}},
    {"DATA on an even stream", 0, H2_PROTOCOL_ERROR, {OPEN(5), FRAME(H2_DATA, 0, 2, "x")}},
    {"DATA after END_STREAM", 1, H2_STREAM_CLOSED, {WHOLE(1), FRAME(H2_DATA, 0, 1, "x")}},
    {"DATA padding too long", 0, H2_PROTOCOL_ERROR, {OPEN(1), FRAME(H2_DATA, 8, 1, "\x05xxxx")}},
    {"DATA padded, empty", 0, H2_FRAME_SIZE_ERROR, {OPEN(1), FRAME(H2_DATA, 8, 1, "")}},
    {"HEADERS on stream 0", 0, H2_PROTOCOL_ERROR, {OPEN(0)}},
    {"HEADERS on an even stream", 0, H2_PROTOCOL_ERROR, {OPEN(2)}},
    {"stream ids go back", 0, H2_PROTOCOL_ERROR, {OPEN(5), OPEN(3)}},
    {"HEADERS after END_STREAM", 1, H2_STREAM_CLOSED, {WHOLE(1), WHOLE(1)}},
    {"HEADERS padding too long", 0, H2_PROTOCOL_ERROR, {FRAME(H2_HEADERS, 12, 1, "\x09\x83")}},
    {"HEADERS padded, empty", 0, H2_FRAME_SIZE_ERROR, {FRAME(H2_HEADERS, 12, 1, "")}},
    {"HEADERS priority cut", 0, H2_FRAME_SIZE_ERROR, {FRAME(H2_HEADERS, 0x24, 1, "\0\0\0")}},
    {"HEADERS depend on themselves",
     0,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_HEADERS, 0x24, 1, "\0\0\0\1\0" TEST_REQUEST)}},
    {"HEADERS interrupted by DATA",
     0,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_HEADERS, 0, 1, "\x83"), FRAME(H2_DATA, 0, 1, "x")}},
    {"HEADERS interrupted by an unknown frame",
     0,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_HEADERS, 0, 1, "\x83"), FRAME(0x55, 0, 0, "x")}},
    {"CONTINUATION of another stream",
     0,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_HEADERS, 0, 1, "\x83"), FRAME(H2_CONTINUATION, 4, 3, "\x86")}},
    {"CONTINUATION out of nowhere", 0, H2_PROTOCOL_ERROR, {FRAME(H2_CONTINUATION, 4, 1, "\x83")}},
    {"CONTINUATION after the end",
     0,
     H2_PROTOCOL_ERROR,
     {OPEN(1), FRAME(H2_CONTINUATION, 4, 1, "\x83")}},
    {"header block broken", 0, H2_COMPRESSION_ERROR, {FRAME(H2_HEADERS, 4, 1, "\xff\xff\xff\xff")}},
    {"header index unknown", 0, H2_COMPRESSION_ERROR, {FRAME(H2_HEADERS, 4, 1, "\xc0")}},
    {"trailers without END_STREAM", 1, H2_PROTOCOL_ERROR, {OPEN(1), FRAME(H2_HEADERS, 4, 1, "")}},
    {"trailers with a pseudo-field",
     1,
     H2_PROTOCOL_ERROR,
     {OPEN(1), FRAME(H2_HEADERS, 5, 1, "\x84")}},
    {"PRIORITY on stream 0", 0, H2_PROTOCOL_ERROR, {FRAME(H2_PRIORITY, 0, 0, "\0\0\0\1\0")}},
    {"PRIORITY of four bytes", 0, H2_FRAME_SIZE_ERROR, {FRAME(H2_PRIORITY, 0, 1, "\0\0\0\1")}},
    {"PRIORITY on itself", 0, H2_PROTOCOL_ERROR, {FRAME(H2_PRIORITY, 0, 1, "\0\0\0\1\0")}},
    {"RST_STREAM on stream 0", 0, H2_PROTOCOL_ERROR, {FRAME(H2_RST_STREAM, 0, 0, "\0\0\0\0")}},
    {"RST_STREAM on an idle stream",
     0,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_RST_STREAM, 0, 1, "\0\0\0\0")}},
    {"RST_STREAM of three bytes",
     0,
     H2_FRAME_SIZE_ERROR,
     {OPEN(1), FRAME(H2_RST_STREAM, 0, 1, "\0\0\0")}},
    {"SETTINGS on a stream", 0, H2_PROTOCOL_ERROR, {FRAME(H2_SETTINGS, 0, 1, "")}},
    {"SETTINGS ack with a payload",
     0,
     H2_FRAME_SIZE_ERROR,
     {FRAME(H2_SETTINGS, 1, 0, "\0\0\0\0\0\0")}},
    {"SETTINGS of five bytes", 0, H2_FRAME_SIZE_ERROR, {FRAME(H2_SETTINGS, 0, 0, "\0\0\0\0\0")}},
    {"ENABLE_PUSH 2", 0, H2_PROTOCOL_ERROR, {FRAME(H2_SETTINGS, 0, 0, "\0\2\0\0\0\2")}},
    {"INITIAL_WINDOW_SIZE 2^31",
     0,
     H2_FLOW_CONTROL_ERROR,
     {FRAME(H2_SETTINGS, 0, 0, "\0\4\x80\0\0\0")}},
    {"MAX_FRAME_SIZE 16383", 0, H2_PROTOCOL_ERROR, {FRAME(H2_SETTINGS, 0, 0, "\0\5\0\0\x3f\xff")}},
    {"MAX_FRAME_SIZE 2^24", 0, H2_PROTOCOL_ERROR, {FRAME(H2_SETTINGS, 0, 0, "\0\5\1\0\0\0")}},
    {"PUSH_PROMISE", 0, H2_PROTOCOL_ERROR, {OPEN(1), FRAME(H2_PUSH_PROMISE, 4, 1, "\0\0\0\2\x83")}},
    {"PING on a stream", 0, H2_PROTOCOL_ERROR, {FRAME(H2_PING, 0, 1, "12345678")}},
    {"PING of seven bytes", 0, H2_FRAME_SIZE_ERROR, {FRAME(H2_PING, 0, 0, "1234567")}},
    {"GOAWAY on a stream", 0, H2_PROTOCOL_ERROR, {FRAME(H2_GOAWAY, 0, 1, "\0\0\0\0\0\0\0\0")}},
    {"GOAWAY of seven bytes", 0, H2_FRAME_SIZE_ERROR, {FRAME(H2_GOAWAY, 0, 0, "\0\0\0\0\0\0\0")}},
    {"WINDOW_UPDATE of three bytes",
     0,
     H2_FRAME_SIZE_ERROR,
     {FRAME(H2_WINDOW_UPDATE, 0, 0, "\0\0\1")}},
    {"WINDOW_UPDATE of zero", 0, H2_PROTOCOL_ERROR, {FRAME(H2_WINDOW_UPDATE, 0, 0, "\0\0\0\0")}},
    {"WINDOW_UPDATE of zero on a stream",
     1,
     H2_PROTOCOL_ERROR,
     {OPEN(1), FRAME(H2_WINDOW_UPDATE, 0, 1, "\0\0\0\0")}},
    {"WINDOW_UPDATE on an idle stream",
     0,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_WINDOW_UPDATE, 0, 1, "\0\0\0\1")}},
    {"connection window overflows",
     0,
     H2_FLOW_CONTROL_ERROR,
     {FRAME(H2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff")}},
    {"stream window overflows",
     1,
     H2_FLOW_CONTROL_ERROR,
     {OPEN(1), FRAME(H2_WINDOW_UPDATE, 0, 1, "\x7f\xff\xff\xff")}},
    {"SETTINGS overflow a stream's window",
     0,
     H2_FLOW_CONTROL_ERROR,
     {OPEN(1), FRAME(H2_WINDOW_UPDATE, 0, 1, "\x7f\xff\0\0"),
      FRAME(H2_SETTINGS, 0, 0, "\0\4\x7f\xff\xff\xff")}},
    /* Messages that violate section 8. */
    {"upper-case name", 1, H2_PROTOCOL_ERROR, {FRAME(H2_HEADERS, 4, 1, TEST_REQUEST "\0\1A\1x")}},
    {"connection field",
     1,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_HEADERS, 4, 1, TEST_REQUEST "\0\12connection\1x")}},
    {"te other than trailers",
     1,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_HEADERS, 4, 1, TEST_REQUEST "\0\2te\1x")}},
    {"unknown pseudo-field",
     1,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_HEADERS, 4, 1, TEST_REQUEST "\0\2:x\1x")}},
    {"response pseudo-field", 1, H2_PROTOCOL_ERROR, {FRAME(H2_HEADERS, 4, 1, TEST_REQUEST "\x88")}},
    {"pseudo-field twice", 1, H2_PROTOCOL_ERROR, {FRAME(H2_HEADERS, 4, 1, TEST_REQUEST "\x84")}},
    {"pseudo-field late", 1, H2_PROTOCOL_ERROR, {FRAME(H2_HEADERS, 4, 1, "\x83\x86\0\1a\1x\x84")}},
    {"no method", 1, H2_PROTOCOL_ERROR, {FRAME(H2_HEADERS, 4, 1, "\x86\x84")}},
    {"no scheme", 1, H2_PROTOCOL_ERROR, {FRAME(H2_HEADERS, 4, 1, "\x83\x84")}},
    {"no path", 1, H2_PROTOCOL_ERROR, {FRAME(H2_HEADERS, 4, 1, "\x83\x86")}},
    {"empty path", 1, H2_PROTOCOL_ERROR, {FRAME(H2_HEADERS, 4, 1, "\x83\x86\x04\0")}},
    {"NUL in a value", 1, H2_PROTOCOL_ERROR, {FRAME(H2_HEADERS, 4, 1, TEST_REQUEST "\0\1a\2x\0")}},
    {"value with a blank",
     1,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_HEADERS, 4, 1, TEST_REQUEST "\0\1a\2x ")}},
    {"content-length twice",
     1,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_HEADERS, 4, 1,
            TEST_REQUEST "\x0f\x0d\1"
                         "1\x0f\x0d\1"
                         "1")}},
    {"content-length without a body",
     1,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_HEADERS, 5, 1,
            TEST_REQUEST "\x0f\x0d\1"
                         "1")}},
    {"body longer than content-length",
     1,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_HEADERS, 4, 1,
            TEST_REQUEST "\x0f\x0d\1"
                         "1"),
      FRAME(H2_DATA, 0, 1, "xx")}},
    {"body shorter than content-length",
     1,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_HEADERS, 4, 1,
            TEST_REQUEST "\x0f\x0d\1"
                         "2"),
      FRAME(H2_DATA, 1, 1, "x")}},
};

static void every_fault_has_the_code_of_the_rfc(void **state)
{
    struct fixture *f = *state;
    f->hold = true;
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        const struct fault *fault = &faults[i];
        h2_session_free(f->session);
        f->session = NULL;
        f->in.len = f->out.len = 0;
        test_hello(&f->in);
        for (size_t k = 0; k < COUNT_OF(fault->frames) && fault->frames[k].bytes; k++) {
            const struct raw_frame *raw = &fault->frames[k];
            test_frame(&f->in, raw->type, raw->flags, raw->id, slice_of(raw->bytes, raw->len));
        }
        exchange(f);
        if (test_error(out_of(f), fault->stream) != fault->code)
            print_error("%s\n", fault->what);
        assert_int_equal(test_error(out_of(f), fault->stream), fault->code);
        assert_int_equal(h2_session_over(f->session), fault->stream == 0);
        if (fault->stream)
            assert_int_equal(test_error(out_of(f), 0), -1);
    }
}

static void wrong_preface_and_wrong_first_frame_end_the_connection(void **state)
{
    struct fixture *f = *state;
    f->in.len = 0;
    test_put(&f->in, SLICE_LITERAL("PRI * HTTP/2.1\r\n"));
    exchange(f);
    assert_int_equal(test_error(out_of(f), 0), H2_PROTOCOL_ERROR);
    h2_session_free(f->session);
    f->session = NULL;
    f->out.len = 0;
    test_put(&f->in, H2_PREFACE);
    test_frame(&f->in, H2_PING, 0, 0, SLICE_LITERAL("12345678"));
    exchange(f);
    assert_int_equal(test_error(out_of(f), 0), H2_PROTOCOL_ERROR);
}

static void frame_over_the_limit_ends_the_connection(void **state)
{
    struct fixture *f = *state;
    uint8_t frame_head[H2_FRAME_HEAD_BYTES];
    h2_frame_put(frame_head, H2_FRAME_BYTES_MAX + 1, 0x99, 0, 1);
    test_put(&f->in, slice_of(frame_head, sizeof(frame_head)));
    exchange(f);
    assert_int_equal(test_error(out_of(f), 0), H2_FRAME_SIZE_ERROR);
}

/* ---- flow control ---- */

static void answer_waits_for_the_window_of_its_stream(void **state)
{
    struct fixture *f = *state;
    f->reply = 1000;
    test_setting(&f->in, H2_SETTING_INITIAL_WINDOW_SIZE, 100);
    request(f, 1, H2_FLAG_END_STREAM);
    exchange(f);
    assert_int_equal(test_data_bytes(out_of(f), 1), 100);
    assert_false(h2_session_wants_write(f->session));
    test_window(&f->in, 1, 50);
    exchange(f);
    assert_int_equal(test_data_bytes(out_of(f), 1), 150);
    test_setting(&f->in, H2_SETTING_INITIAL_WINDOW_SIZE, 50); /* the window is negative now */
    test_window(&f->in, 1, 50);
    exchange(f);
    assert_int_equal(test_data_bytes(out_of(f), 1), 150);
    test_setting(&f->in, H2_SETTING_INITIAL_WINDOW_SIZE, 5000);
    exchange(f);
    assert_int_equal(test_data_bytes(out_of(f), 1), 1000);
    assert_int_equal(h2_session_streams(f->session), 0);
}

static void trailers_are_sent_without_window(void **state)
{
    struct fixture *f = *state;
    f->reply = 0;
    test_setting(&f->in, H2_SETTING_INITIAL_WINDOW_SIZE, 0);
    request(f, 1, H2_FLAG_END_STREAM);
    exchange(f);
    assert_int_equal(test_count(out_of(f), H2_HEADERS, 1), 2);
}

static void streams_share_the_connection_window_in_turn(void **state)
{
    struct fixture *f = *state;
    f->reply = 60000;
    for (uint32_t id = 1; id <= 5; id += 2)
        request(f, id, H2_FLAG_END_STREAM);
    exchange(f);
    size_t sum = 0;
    for (uint32_t id = 1; id <= 5; id += 2) {
        size_t n = test_data_bytes(out_of(f), id);
        assert_true(n >= 12000);
        sum += n;
    }
    assert_int_equal(sum, H2_WINDOW_DEFAULT);
    assert_false(h2_session_wants_write(f->session));
    test_window(&f->in, 0, 200000);
    exchange(f);
    assert_int_equal(h2_session_streams(f->session), 0);
}

static void bulk_leaves_window_to_the_others(void **state)
{
    struct fixture *f = *state;
    f->hold = true;
    request(f, 1, 0); /* a stream that is not bulk and sends nothing */
    struct answer *plain = f->last;
    f->bulk = true;
    f->reply = 1000000;
    request(f, 3, H2_FLAG_END_STREAM);
    h2_stream_ready(&f->last->stream);
    exchange(f);
    size_t reserve = H2_WINDOW_DEFAULT / 4;
    assert_int_equal(test_data_bytes(out_of(f), 3), H2_WINDOW_DEFAULT - reserve);
    plain->reply = 500;
    h2_stream_ready(&plain->stream);
    drain(f);
    assert_int_equal(test_data_bytes(out_of(f), 1), 500);
    /* Alone, it may use the whole window. */
    assert_int_equal(h2_session_streams(f->session), 1);
    drain(f);
    assert_int_equal(test_data_bytes(out_of(f), 3), H2_WINDOW_DEFAULT - 500);
}

static void plain_output_is_sent_before_bulk(void **state)
{
    struct fixture *f = *state;
    f->bulk = true;
    f->reply = 40000;
    request(f, 1, H2_FLAG_END_STREAM);
    f->bulk = false;
    f->reply = 5;
    request(f, 3, H2_FLAG_END_STREAM);
    exchange(f);
    struct h2_frame frame;
    struct slice bytes = out_of(f), payload;
    do {
        assert_true(test_next(&bytes, &frame, &payload));
    } while (frame.type != H2_DATA);
    assert_int_equal(frame.stream_id, 3);
}

static void windows_are_given_back_as_bytes_are_used(void **state)
{
    struct fixture *f = *state;
    static uint8_t bytes[H2_FRAME_BYTES_MAX];
    request(f, 1, 0);
    for (size_t i = 0; i < 400; i++) { /* 6.5 MB, a hundred times the stream's window */
        test_frame(&f->in, H2_DATA, 0, 1, slice_of(bytes, sizeof(bytes)));
        exchange(f);
    }
    assert_int_equal(f->last->received, 400 * sizeof(bytes));
    assert_int_equal(test_error(out_of(f), 0), -1);
    assert_true(test_count(out_of(f), H2_WINDOW_UPDATE, 1) > 100);
    assert_true(test_count(out_of(f), H2_WINDOW_UPDATE, 0) > 5);
}

static void expected_bytes_widen_the_window_once(void **state)
{
    struct fixture *f = *state;
    request(f, 1, 0);
    drain(f);
    h2_stream_expect(&f->last->stream, 2000000);
    assert_int_equal(f->outputs, 1);
    drain(f);
    struct h2_frame frame;
    struct slice payload;
    assert_true(test_find(out_of(f), H2_WINDOW_UPDATE, 1, 0, &frame, &payload));
    assert_int_equal(h2_get32(payload.ptr), 2000000 - f->limits.stream_window);
    h2_stream_expect(&f->last->stream, 1000);
    drain(f);
    assert_int_equal(test_count(out_of(f), H2_WINDOW_UPDATE, 1), 1);
}

static void peer_that_ignores_a_window_is_stopped(void **state)
{
    struct fixture *f = *state;
    static uint8_t bytes[H2_FRAME_BYTES_MAX];
    f->limits.stream_window = 70000;
    request(f, 1, 0);
    f->last->stream.recv_window = 1000; /* as if no window had been given back */
    test_frame(&f->in, H2_DATA, 0, 1, slice_of(bytes, 1001));
    exchange(f);
    assert_int_equal(test_error(out_of(f), 1), H2_FLOW_CONTROL_ERROR);
    assert_int_equal(test_error(out_of(f), 0), -1);
}

static void trailers_of_the_client_end_its_request(void **state)
{
    struct fixture *f = *state;
    request(f, 1, 0);
    test_headers(&f->in, 1, H2_FLAG_END_STREAM, SLICE_LITERAL("\0\1n\1v"));
    exchange(f);
    assert_int_equal(test_count(out_of(f), H2_HEADERS, 1), 2);
    assert_int_equal(test_error(out_of(f), 1), -1);
}

static void headers_on_a_closed_stream_end_the_connection(void **state)
{
    struct fixture *f = *state;
    request(f, 1, H2_FLAG_END_STREAM);
    exchange(f);
    test_headers(&f->in, 1, H2_FLAG_END_STREAM, SLICE_LITERAL(TEST_REQUEST));
    exchange(f);
    assert_int_equal(test_error(out_of(f), 0), H2_STREAM_CLOSED);
}

static void peer_that_ignores_the_connection_window_is_disconnected(void **state)
{
    struct fixture *f = *state;
    static uint8_t bytes[H2_FRAME_BYTES_MAX];
    f->limits.connection_window = 70000;
    request(f, 1, 0);
    h2_session_withhold(f->session, true);
    for (size_t i = 0; i < 4; i++)
        test_frame(&f->in, H2_DATA, 0, 1, slice_of(bytes, sizeof(bytes)));
    exchange(f);
    assert_int_equal(test_error(out_of(f), 0), -1);
    test_frame(&f->in, H2_DATA, 0, 1, slice_of(bytes, sizeof(bytes)));
    exchange(f);
    assert_int_equal(test_error(out_of(f), 0), H2_FLOW_CONTROL_ERROR);
}

/* A peer may assume the default window until it has acknowledged our SETTINGS. */
static void small_window_is_enforced_once_acknowledged(void **state)
{
    struct fixture *f = *state;
    static uint8_t bytes[1000];
    f->limits.stream_window = 500;
    f->in.len -= H2_FRAME_HEAD_BYTES; /* without the acknowledgement */
    request(f, 1, 0);
    test_frame(&f->in, H2_DATA, 0, 1, slice_of(bytes, sizeof(bytes)));
    test_frame(&f->in, H2_SETTINGS, H2_FLAG_ACK, 0, SLICE_EMPTY);
    exchange(f);
    assert_int_equal(test_error(out_of(f), 1), -1);
    request(f, 3, 0);
    test_frame(&f->in, H2_DATA, 0, 3, slice_of(bytes, sizeof(bytes)));
    exchange(f);
    assert_int_equal(test_error(out_of(f), 3), H2_FLOW_CONTROL_ERROR);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(request_is_answered_for_every_split_of_the_bytes),
        TEST(first_output_is_settings_and_peer_is_acked),
        TEST(every_fault_has_the_code_of_the_rfc),
        TEST(wrong_preface_and_wrong_first_frame_end_the_connection),
        TEST(frame_over_the_limit_ends_the_connection),
        TEST(answer_waits_for_the_window_of_its_stream),
        TEST(trailers_are_sent_without_window),
        TEST(streams_share_the_connection_window_in_turn),
        TEST(bulk_leaves_window_to_the_others),
        TEST(plain_output_is_sent_before_bulk),
        TEST(windows_are_given_back_as_bytes_are_used),
        TEST(expected_bytes_widen_the_window_once),
        TEST(peer_that_ignores_a_window_is_stopped),
        TEST(trailers_of_the_client_end_its_request),
        TEST(headers_on_a_closed_stream_end_the_connection),
        TEST(peer_that_ignores_the_connection_window_is_disconnected),
        TEST(small_window_is_enforced_once_acknowledged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
