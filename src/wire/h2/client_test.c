/* The responses that a client's session receives, and every fault that a server can make. */
#include "wire/h2/request_test.h"

/* ---- requests and responses ---- */

static void first_output_is_preface_and_settings(void **state)
{
    struct client_fixture *f = *state;
    client_exchange(f);
    struct slice preface = H2_PREFACE, bytes = client_frames(f), payload;
    assert_memory_equal(f->out.ptr, preface.ptr, preface.len);
    struct h2_frame frame;
    assert_true(test_next(&bytes, &frame, &payload));
    assert_int_equal(frame.type, H2_SETTINGS);
    assert_true(slice_equal(payload, SLICE_LITERAL("\0\2\0\0\0\0"
                                                   "\0\4\0\4\0\0"
                                                   "\0\6\0\0\x40\0")));
    assert_true(test_next(&bytes, &frame, &payload));
    assert_int_equal(frame.type, H2_WINDOW_UPDATE);
    assert_int_equal(h2_get32(payload.ptr), f->limits.connection_window - H2_WINDOW_DEFAULT);
    assert_true(test_find(client_frames(f), H2_SETTINGS, 0, 1, &frame, &payload));
    assert_int_equal(frame.flags, H2_FLAG_ACK);
    assert_true(h2_session_established(f->session));
}

static void response_arrives_for_every_split_of_the_bytes(void **state)
{
    struct client_fixture *f = *state;
    struct buf input = {0};
    test_frame(&input, H2_SETTINGS, 0, 0, SLICE_EMPTY);
    test_headers(&input, 1, 0,
                 SLICE_LITERAL("\x08\3"
                               "100")); /* continue */
    test_frame(&input, H2_HEADERS, H2_FLAG_PADDED, 1, SLICE_LITERAL("\2\x88\0\0"));
    test_frame(&input, H2_CONTINUATION, 0, 1, SLICE_LITERAL("\0\1a"));
    test_frame(&input, H2_CONTINUATION, H2_FLAG_END_HEADERS, 1, SLICE_LITERAL("\1b"));
    test_frame(&input, H2_DATA, H2_FLAG_PADDED, 1, SLICE_LITERAL("\x02hello\0\0"));
    test_frame(&input, H2_PRIORITY, 0, 1, SLICE_LITERAL("\0\0\0\3\0"));
    test_frame(&input, 0x77, 0xff, 9, SLICE_LITERAL("an unknown frame is skipped"));
    test_frame(&input, H2_DATA, 0, 1, SLICE_LITERAL("world"));
    test_headers(&input, 1, H2_FLAG_END_STREAM, SLICE_LITERAL(TEST_TRAILERS));
    for (size_t step = 1; step <= input.len; step++) {
        client_stop(f);
        client_start(f);
        struct request *r = request_open(f, 30000);
        client_drain(f);
        test_put(&f->in, buf_slice(&input));
        client_feed(f, step);
        assert_int_equal(r->closed, 1);
        assert_int_equal(r->code, H2_NO_ERROR);
        assert_int_equal(r->ended_by, H2_ENDED_COMPLETE);
        assert_false(r->unprocessed);
        assert_int_equal(r->heads, 2);
        assert_int_equal(r->status, 200);
        assert_true(r->ended);
        assert_int_equal(r->received, 10);
        client_drain(f);
        assert_int_equal(test_data_bytes(client_frames(f), 1), 30000);
        assert_int_equal(test_error(client_frames(f), 0), -1);
        assert_int_equal(test_error(client_frames(f), 1), -1);
        assert_int_equal(h2_session_streams(f->session), 0);
    }
    buf_fini(&input);
}

static void last_frame_of_a_request_ends_it(void **state)
{
    struct client_fixture *f = *state;
    struct request *with_body = request_open(f, 5);
    struct request *without = request_new(f, 0);
    without->stream.head_only = true;
    assert_int_equal(h2_session_open(f->session, &without->stream), ST_OK);
    without->id = without->stream.id;
    client_exchange(f);
    struct h2_frame frame;
    struct slice payload;
    assert_true(test_find(client_frames(f), H2_HEADERS, with_body->id, 0, &frame, &payload));
    assert_int_equal(frame.flags, H2_FLAG_END_HEADERS);
    assert_true(test_find(client_frames(f), H2_DATA, with_body->id, 0, &frame, &payload));
    assert_int_equal(frame.flags, H2_FLAG_END_STREAM);
    assert_int_equal(frame.len, 5);
    assert_true(test_find(client_frames(f), H2_HEADERS, without->id, 0, &frame, &payload));
    assert_int_equal(frame.flags, H2_FLAG_END_HEADERS | H2_FLAG_END_STREAM);
    assert_int_equal(test_count(client_frames(f), H2_DATA, without->id), 0);
    assert_int_equal(h2_session_streams(f->session), 2);
}

static void request_that_stays_open_sends_more_later(void **state)
{
    struct client_fixture *f = *state;
    struct request *r = request_open(f, 5);
    r->keeps_open = true;
    client_exchange(f);
    answer_headers(f, r, 0);
    client_exchange(f);
    assert_int_equal(test_data_bytes(client_frames(f), r->id), 5);
    r->body = 7;
    f->outputs = 0;
    h2_stream_ready(&r->stream);
    assert_int_equal(f->outputs, 1);
    client_exchange(f);
    assert_int_equal(test_data_bytes(client_frames(f), r->id), 12);
    assert_int_equal(r->closed, 0);
    r->keeps_open = false;
    h2_stream_ready(&r->stream);
    client_exchange(f);
    answer_trailers(f, r);
    client_exchange(f);
    assert_int_equal(r->ended_by, H2_ENDED_COMPLETE);
    assert_int_equal(test_error(client_frames(f), r->id), -1);
}

static void response_without_body_or_with_length_is_complete(void **state)
{
    struct client_fixture *f = *state;
    struct request *only_head = request_open(f, 0), *with_length = request_open(f, 0);
    struct request *not_modified = request_open(f, 0);
    client_drain(f);
    answer_headers(f, only_head, H2_FLAG_END_STREAM);
    test_headers(&f->in, with_length->id, 0,
                 SLICE_LITERAL(TEST_RESPONSE "\x0f\x0d\1"
                                             "3"));
    test_frame(&f->in, H2_DATA, H2_FLAG_END_STREAM, with_length->id, SLICE_LITERAL("abc"));
    test_headers(&f->in, not_modified->id, H2_FLAG_END_STREAM,
                 SLICE_LITERAL("\x8b\x0f\x0d\1"
                               "3"));
    client_exchange(f);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(f->requests[i]->closed, 1);
        assert_int_equal(f->requests[i]->ended_by, H2_ENDED_COMPLETE);
        assert_int_equal(f->requests[i]->code, H2_NO_ERROR);
    }
    assert_true(only_head->ended);
    assert_int_equal(with_length->received, 3);
    assert_false(with_length->ended);
    assert_int_equal(not_modified->status, 304);
}

/* The server answers without having read the whole request, and then resets the stream, as RFC 9113
 * section 8.1 allows. */
static void response_may_end_before_the_request(void **state)
{
    struct client_fixture *f = *state;
    struct request *r = request_open(f, 1000000);
    client_drain(f);
    assert_true(r->body > 0);
    answer_headers(f, r, 0);
    answer_trailers(f, r);
    uint32_t id = r->id;
    reset_by_server(f, r, H2_NO_ERROR);
    client_exchange(f);
    assert_int_equal(r->closed, 1);
    assert_int_equal(r->code, H2_NO_ERROR);
    assert_int_equal(r->ended_by, H2_ENDED_COMPLETE);
    assert_int_equal(test_error(client_frames(f), id), H2_NO_ERROR);
    assert_int_equal(test_error(client_frames(f), 0), -1);
}

static void reset_of_the_server_has_its_code(void **state)
{
    struct client_fixture *f = *state;
    static const uint32_t codes[] = {
        H2_NO_ERROR,          H2_PROTOCOL_ERROR, H2_INTERNAL_ERROR,    H2_REFUSED_STREAM, H2_CANCEL,
        H2_ENHANCE_YOUR_CALM, 0x77777777,        H2_HTTP_1_1_REQUIRED, H2_REFUSED_STREAM};
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        struct request *r = request_open(f, 5);
        client_drain(f);
        if (i == COUNT_OF(codes) - 1)
            answer_headers(f, r, 0); /* a refusal comes too late: the request was processed */
        reset_by_server(f, r, (enum h2_error)codes[i]);
        client_exchange(f);
        assert_int_equal(r->closed, 1);
        assert_int_equal(r->code, codes[i]);
        assert_int_equal(r->ended_by, H2_ENDED_BY_PEER);
        assert_int_equal(r->unprocessed, codes[i] == H2_REFUSED_STREAM && i != COUNT_OF(codes) - 1);
        assert_int_equal(test_error(client_frames(f), r->id), -1);
    }
    assert_int_equal(test_error(client_frames(f), 0), -1);
}

/* Refusing each of our streams is not an attack. */
static void thousands_of_refusals_are_accepted(void **state)
{
    struct client_fixture *f = *state;
    client_exchange(f);
    for (size_t i = 0; i < 3000; i++)
        request_open(f, 5);
    client_drain(f);
    for (size_t i = 0; i < 3000; i++)
        reset_by_server(f, f->requests[i], H2_REFUSED_STREAM);
    client_exchange(f);
    assert_false(h2_session_failed(f->session));
    for (size_t i = 0; i < 3000; i++)
        assert_true(f->requests[i]->unprocessed);
}

static void cancelled_request_is_reset_unless_it_was_never_sent(void **state)
{
    struct client_fixture *f = *state;
    struct request *sent = request_open(f, 5);
    client_exchange(f);
    struct request *unsent = request_open(f, 5), *next = request_open(f, 5);
    uint32_t unsent_id = unsent->id;
    h2_stream_reset(&sent->stream, H2_CANCEL);
    h2_stream_reset(&unsent->stream, H2_CANCEL);
    h2_session_check(f->session);
    client_exchange(f);
    assert_false(sent->unprocessed);
    assert_true(unsent->unprocessed);
    assert_int_equal(test_error(client_frames(f), sent->id), H2_CANCEL);
    assert_int_equal(test_error(client_frames(f), unsent_id), -1);
    assert_int_equal(test_count(client_frames(f), H2_HEADERS, unsent_id), 0);
    assert_int_equal(test_data_bytes(client_frames(f), next->id), 5);
    answer_headers(f, next, H2_FLAG_END_STREAM);
    client_exchange(f);
    assert_int_equal(next->ended_by, H2_ENDED_COMPLETE);
}

/* More of them than the session remembers. */
static void late_answers_to_cancelled_requests_are_ignored(void **state)
{
    struct client_fixture *f = *state;
    client_exchange(f);
    for (size_t i = 0; i < 500; i++)
        request_open(f, 5);
    client_drain(f);
    for (size_t i = 0; i < 500; i++)
        h2_stream_reset(&f->requests[i]->stream, H2_CANCEL);
    for (size_t i = 0; i < 500; i++) {
        const struct request *r = f->requests[i];
        /* The first one adds to the table that the others use. */
        test_headers(&f->in, r->id, 0,
                     i ? SLICE_LITERAL("\x88\xbe") : SLICE_LITERAL("\x88\x40\1a\1b"));
        test_frame(&f->in, H2_DATA, 0, r->id, SLICE_LITERAL("data"));
        test_window(&f->in, r->id, 100);
        answer_trailers(f, r);
    }
    client_exchange(f);
    assert_false(h2_session_failed(f->session));
    struct request *last = request_open(f, 0);
    client_drain(f);
    test_headers(&f->in, last->id, H2_FLAG_END_STREAM, SLICE_LITERAL("\x88\xbe"));
    client_exchange(f);
    assert_int_equal(last->status, 200);
}

static void stream_may_be_freed_while_its_response_arrives(void **state)
{
    struct client_fixture *f = *state;
    struct request *early = request_open(f, 5), *at_end = request_open(f, 5);
    struct request *late = request_open(f, 5), *late_end = request_open(f, 5);
    early->reset_early = at_end->reset_early = true;
    late->reset_late = late_end->reset_late = true;
    client_drain(f);
    answer_headers(f, early, 0);
    answer_headers(f, at_end, H2_FLAG_END_STREAM);
    answer_headers(f, late, 0);
    answer_headers(f, late_end, 0);
    test_frame(&f->in, H2_DATA, H2_FLAG_PADDED, late->id, SLICE_LITERAL("\1abc\0"));
    test_frame(&f->in, H2_DATA, H2_FLAG_END_STREAM, late_end->id, SLICE_LITERAL("abc"));
    client_exchange(f);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(f->requests[i]->closed, 1);
        assert_int_equal(f->requests[i]->code, H2_CANCEL);
    }
    assert_false(h2_session_failed(f->session));
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
#define ANSWER(flags, text) FRAME(H2_HEADERS, 4 | (flags), 1, text)
#define LENGTH_2  \
    TEST_RESPONSE \
    "\x0f\x0d\1"  \
    "2"

struct fault {
    const char *what;
    uint32_t stream; /* 0: GOAWAY is expected, otherwise RST_STREAM on it */
    enum h2_error code;
    struct raw_frame frames[4];
};

/* Stream 1 was requested, stream 3 was opened but its head was not sent. */
static const struct fault faults[] = {
    {"DATA on stream 0", 0, H2_PROTOCOL_ERROR, {FRAME(H2_DATA, 0, 0, "x")}},
    {"DATA on an idle stream", 0, H2_PROTOCOL_ERROR, {FRAME(H2_DATA, 0, 5, "x")}},
    {"DATA on an unsent stream", 0, H2_PROTOCOL_ERROR, {FRAME(H2_DATA, 0, 3, "x")}},
    {"empty DATA on an unsent stream", 0, H2_PROTOCOL_ERROR, {FRAME(H2_DATA, 1, 3, "")}},
    {"DATA on an even stream", 0, H2_PROTOCOL_ERROR, {FRAME(H2_DATA, 0, 2, "x")}},
    {"DATA before HEADERS", 1, H2_PROTOCOL_ERROR, {FRAME(H2_DATA, 0, 1, "x")}},
    {"empty DATA before HEADERS", 1, H2_PROTOCOL_ERROR, {FRAME(H2_DATA, 1, 1, "")}},
    {"DATA after a reset",
     1,
     H2_STREAM_CLOSED,
     {FRAME(H2_RST_STREAM, 0, 1, "\0\0\0\0"), FRAME(H2_DATA, 0, 1, "x")}},
    {"DATA after END_STREAM",
     1,
     H2_STREAM_CLOSED,
     {ANSWER(1, TEST_RESPONSE), FRAME(H2_DATA, 0, 1, "x")}},
    {"DATA padding too long",
     0,
     H2_PROTOCOL_ERROR,
     {ANSWER(0, TEST_RESPONSE), FRAME(H2_DATA, 8, 1, "\x05xxxx")}},
    {"DATA padded, empty",
     0,
     H2_FRAME_SIZE_ERROR,
     {ANSWER(0, TEST_RESPONSE), FRAME(H2_DATA, 8, 1, "")}},
    {"HEADERS on stream 0", 0, H2_PROTOCOL_ERROR, {FRAME(H2_HEADERS, 4, 0, TEST_RESPONSE)}},
    {"HEADERS on an idle stream", 0, H2_PROTOCOL_ERROR, {FRAME(H2_HEADERS, 4, 5, TEST_RESPONSE)}},
    {"HEADERS on an unsent stream", 0, H2_PROTOCOL_ERROR, {FRAME(H2_HEADERS, 4, 3, TEST_RESPONSE)}},
    {"HEADERS on an even stream", 0, H2_PROTOCOL_ERROR, {FRAME(H2_HEADERS, 4, 2, TEST_RESPONSE)}},
    {"HEADERS after END_STREAM",
     0,
     H2_STREAM_CLOSED,
     {ANSWER(1, TEST_RESPONSE), ANSWER(1, TEST_RESPONSE)}},
    {"HEADERS padding too long", 0, H2_PROTOCOL_ERROR, {ANSWER(8, "\x09\x88")}},
    {"HEADERS padded, empty", 0, H2_FRAME_SIZE_ERROR, {ANSWER(8, "")}},
    {"HEADERS priority cut", 0, H2_FRAME_SIZE_ERROR, {ANSWER(0x20, "\0\0\0")}},
    {"HEADERS interrupted by DATA",
     0,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_HEADERS, 0, 1, "\x88"), FRAME(H2_DATA, 0, 1, "x")}},
    {"CONTINUATION of another stream",
     0,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_HEADERS, 0, 1, "\x88"), FRAME(H2_CONTINUATION, 4, 3, "\x88")}},
    {"CONTINUATION out of nowhere", 0, H2_PROTOCOL_ERROR, {FRAME(H2_CONTINUATION, 4, 1, "\x88")}},
    {"header block broken", 0, H2_COMPRESSION_ERROR, {ANSWER(0, "\xff\xff\xff\xff")}},
    {"header index unknown", 0, H2_COMPRESSION_ERROR, {ANSWER(0, "\xc0")}},
    {"PRIORITY on stream 0", 0, H2_PROTOCOL_ERROR, {FRAME(H2_PRIORITY, 0, 0, "\0\0\0\1\0")}},
    {"PRIORITY of four bytes", 0, H2_FRAME_SIZE_ERROR, {FRAME(H2_PRIORITY, 0, 1, "\0\0\0\1")}},
    {"RST_STREAM on stream 0", 0, H2_PROTOCOL_ERROR, {FRAME(H2_RST_STREAM, 0, 0, "\0\0\0\0")}},
    {"RST_STREAM on an idle stream",
     0,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_RST_STREAM, 0, 5, "\0\0\0\0")}},
    {"RST_STREAM on an unsent stream",
     0,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_RST_STREAM, 0, 3, "\0\0\0\0")}},
    {"RST_STREAM of three bytes", 0, H2_FRAME_SIZE_ERROR, {FRAME(H2_RST_STREAM, 0, 1, "\0\0\0")}},
    {"SETTINGS on a stream", 0, H2_PROTOCOL_ERROR, {FRAME(H2_SETTINGS, 0, 1, "")}},
    {"SETTINGS ack with a payload",
     0,
     H2_FRAME_SIZE_ERROR,
     {FRAME(H2_SETTINGS, 1, 0, "\0\0\0\0\0\0")}},
    {"SETTINGS of five bytes", 0, H2_FRAME_SIZE_ERROR, {FRAME(H2_SETTINGS, 0, 0, "\0\0\0\0\0")}},
    {"ENABLE_PUSH 1", 0, H2_PROTOCOL_ERROR, {FRAME(H2_SETTINGS, 0, 0, "\0\2\0\0\0\1")}},
    {"INITIAL_WINDOW_SIZE 2^31",
     0,
     H2_FLOW_CONTROL_ERROR,
     {FRAME(H2_SETTINGS, 0, 0, "\0\4\x80\0\0\0")}},
    {"MAX_FRAME_SIZE 16383", 0, H2_PROTOCOL_ERROR, {FRAME(H2_SETTINGS, 0, 0, "\0\5\0\0\x3f\xff")}},
    {"PUSH_PROMISE", 0, H2_PROTOCOL_ERROR, {FRAME(H2_PUSH_PROMISE, 4, 1, "\0\0\0\2\x83")}},
    {"PING on a stream", 0, H2_PROTOCOL_ERROR, {FRAME(H2_PING, 0, 1, "12345678")}},
    {"PING of seven bytes", 0, H2_FRAME_SIZE_ERROR, {FRAME(H2_PING, 0, 0, "1234567")}},
    {"GOAWAY on a stream", 0, H2_PROTOCOL_ERROR, {FRAME(H2_GOAWAY, 0, 1, "\0\0\0\0\0\0\0\0")}},
    {"GOAWAY of seven bytes", 0, H2_FRAME_SIZE_ERROR, {FRAME(H2_GOAWAY, 0, 0, "\0\0\0\0\0\0\0")}},
    {"GOAWAY with an even stream",
     0,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_GOAWAY, 0, 0, "\0\0\0\2\0\0\0\0")}},
    {"GOAWAY with a higher stream than before",
     0,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_GOAWAY, 0, 0, "\0\0\0\1\0\0\0\0"), FRAME(H2_GOAWAY, 0, 0, "\0\0\0\3\0\0\0\0")}},
    {"WINDOW_UPDATE of three bytes",
     0,
     H2_FRAME_SIZE_ERROR,
     {FRAME(H2_WINDOW_UPDATE, 0, 0, "\0\0\1")}},
    {"WINDOW_UPDATE of zero", 0, H2_PROTOCOL_ERROR, {FRAME(H2_WINDOW_UPDATE, 0, 0, "\0\0\0\0")}},
    {"WINDOW_UPDATE of zero on a stream",
     1,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_WINDOW_UPDATE, 0, 1, "\0\0\0\0")}},
    {"WINDOW_UPDATE on an idle stream",
     0,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_WINDOW_UPDATE, 0, 5, "\0\0\0\1")}},
    {"WINDOW_UPDATE on an unsent stream",
     0,
     H2_PROTOCOL_ERROR,
     {FRAME(H2_WINDOW_UPDATE, 0, 3, "\0\0\0\1")}},
    {"connection window overflows",
     0,
     H2_FLOW_CONTROL_ERROR,
     {FRAME(H2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff")}},
    {"stream window overflows",
     1,
     H2_FLOW_CONTROL_ERROR,
     {FRAME(H2_WINDOW_UPDATE, 0, 1, "\x7f\xff\xff\xff")}},
    /* Messages that violate section 8. */
    {"no status", 1, H2_PROTOCOL_ERROR, {ANSWER(0, "\0\1a\1b")}},
    {"empty header block", 1, H2_PROTOCOL_ERROR, {ANSWER(0, "")}},
    {"status twice", 1, H2_PROTOCOL_ERROR, {ANSWER(0, "\x88\x88")}},
    {"status late", 1, H2_PROTOCOL_ERROR, {ANSWER(0, "\0\1a\1b\x88")}},
    {"status of two digits",
     1,
     H2_PROTOCOL_ERROR,
     {ANSWER(0, "\x08\2"
                "20")}},
    {"status of four digits",
     1,
     H2_PROTOCOL_ERROR,
     {ANSWER(0, "\x08\4"
                "2000")}},
    {"status below 100",
     1,
     H2_PROTOCOL_ERROR,
     {ANSWER(0, "\x08\3"
                "099")}},
    {"status with letters",
     1,
     H2_PROTOCOL_ERROR,
     {ANSWER(0, "\x08\3"
                "2x0")}},
    {"switching protocols",
     1,
     H2_PROTOCOL_ERROR,
     {ANSWER(0, "\x08\3"
                "101")}},
    {"request pseudo-field", 1, H2_PROTOCOL_ERROR, {ANSWER(0, "\x88\x84")}},
    {"unknown pseudo-field", 1, H2_PROTOCOL_ERROR, {ANSWER(0, "\x88\0\2:x\1x")}},
    {"upper-case name", 1, H2_PROTOCOL_ERROR, {ANSWER(0, "\x88\0\1A\1x")}},
    {"connection field", 1, H2_PROTOCOL_ERROR, {ANSWER(0, "\x88\0\12connection\1x")}},
    {"NUL in a value", 1, H2_PROTOCOL_ERROR, {ANSWER(0, "\x88\0\1a\2x\0")}},
    {"informational end",
     1,
     H2_PROTOCOL_ERROR,
     {ANSWER(1, "\x08\3"
                "100")}},
    {"second head", 1, H2_PROTOCOL_ERROR, {ANSWER(0, "\x88"), ANSWER(1, "\x88")}},
    {"trailers that do not end",
     1,
     H2_PROTOCOL_ERROR,
     {ANSWER(0, "\x88"), ANSWER(0, TEST_TRAILERS)}},
    {"content-length without a body", 1, H2_PROTOCOL_ERROR, {ANSWER(1, LENGTH_2)}},
    {"body longer than content-length",
     1,
     H2_PROTOCOL_ERROR,
     {ANSWER(0, LENGTH_2), FRAME(H2_DATA, 0, 1, "xxx")}},
    {"body shorter than content-length",
     1,
     H2_PROTOCOL_ERROR,
     {ANSWER(0, LENGTH_2), FRAME(H2_DATA, 1, 1, "x")}},
    {"body shorter than content-length, with trailers",
     1,
     H2_PROTOCOL_ERROR,
     {ANSWER(0, LENGTH_2), ANSWER(1, TEST_TRAILERS)}},
};

static void every_fault_has_the_code_of_the_rfc(void **state)
{
    struct client_fixture *f = *state;
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        const struct fault *fault = &faults[i];
        client_stop(f);
        client_start(f);
        struct request *sent = request_open(f, 5);
        client_drain(f);
        struct request *unsent = request_open(f, 5);
        test_frame(&f->in, H2_SETTINGS, 0, 0, SLICE_EMPTY);
        for (size_t k = 0; k < COUNT_OF(fault->frames) && fault->frames[k].bytes; k++) {
            const struct raw_frame *raw = &fault->frames[k];
            test_frame(&f->in, raw->type, raw->flags, raw->id, slice_of(raw->bytes, raw->len));
        }
        client_feed(f, SIZE_MAX / 2);
        bool is_unsent_closed = unsent->closed && unsent->unprocessed;
        client_drain(f);
        if (test_error(client_frames(f), fault->stream) != fault->code)
            print_error("%s\n", fault->what);
        assert_int_equal(test_error(client_frames(f), fault->stream), fault->code);
        assert_int_equal(h2_session_over(f->session), fault->stream == 0);
        assert_int_equal(sent->closed, 1);
        assert_false(sent->unprocessed);
        if (fault->stream == 0) {
            assert_true(is_unsent_closed);
        } else {
            assert_int_equal(test_error(client_frames(f), 0), -1);
            assert_int_equal(unsent->closed, 0);
        }
    }
}

static void first_frame_of_a_server_is_settings(void **state)
{
    struct client_fixture *f = *state;
    f->in.len = 0;
    test_frame(&f->in, H2_PING, 0, 0, SLICE_LITERAL("12345678"));
    client_exchange(f);
    assert_int_equal(test_error(client_frames(f), 0), H2_PROTOCOL_ERROR);
}

static void answer_of_another_protocol_ends_the_connection(void **state)
{
    struct client_fixture *f = *state;
    f->in.len = 0;
    test_put(&f->in, SLICE_LITERAL("HTTP/1.1 400 Bad Request\r\n\r\n"));
    client_exchange(f);
    assert_true(h2_session_failed(f->session));
    assert_false(h2_session_established(f->session));
}

/* A block that is well-formed as trailers is remembered, and is not well-formed as a head. */
static void remembered_trailers_are_not_a_head(void **state)
{
    struct client_fixture *f = *state;
    for (size_t i = 0; i < 3; i++)
        request_open(f, 0);
    client_drain(f);
    for (size_t i = 0; i < 2; i++) {
        answer_headers(f, f->requests[i], 0);
        answer_trailers(f, f->requests[i]);
    }
    answer_trailers(f, f->requests[2]);
    client_exchange(f);
    assert_int_equal(f->requests[1]->ended_by, H2_ENDED_COMPLETE);
    assert_int_equal(f->requests[2]->ended_by, H2_ENDED_BY_FAULT);
    assert_int_equal(test_error(client_frames(f), f->requests[2]->id), H2_PROTOCOL_ERROR);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, client_setup, client_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(first_output_is_preface_and_settings),
        TEST(response_arrives_for_every_split_of_the_bytes),
        TEST(last_frame_of_a_request_ends_it),
        TEST(request_that_stays_open_sends_more_later),
        TEST(response_without_body_or_with_length_is_complete),
        TEST(response_may_end_before_the_request),
        TEST(reset_of_the_server_has_its_code),
        TEST(thousands_of_refusals_are_accepted),
        TEST(cancelled_request_is_reset_unless_it_was_never_sent),
        TEST(late_answers_to_cancelled_requests_are_ignored),
        TEST(stream_may_be_freed_while_its_response_arrives),
        TEST(every_fault_has_the_code_of_the_rfc),
        TEST(first_frame_of_a_server_is_settings),
        TEST(answer_of_another_protocol_ends_the_connection),
        TEST(remembered_trailers_are_not_a_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
