/* What a call makes of the answers of servers that are not like ours. */
#include "wire/grpc/client_fixture_test.h"

static void drain(struct client_fixture *f)
{
    uint8_t room[H2_FILL_ROOM_MIN];
    while (h2_session_wants_write(f->session)) {
        size_t n = h2_session_fill(f->session, room, sizeof(room), f->now);
        test_put(&f->out, slice_of(room, n));
        client_check(f);
    }
}

static void feed(struct client_fixture *f)
{
    h2_session_feed(f->session, buf_slice(&f->in), f->now);
    f->in.len = 0;
    client_check(f);
    drain(f);
}

static struct slice frames_of(const struct client_fixture *f)
{
    struct slice preface = H2_PREFACE, out = buf_slice(&f->out);
    return slice_sub(out, preface.len, out.len - preface.len);
}

static int setup(void **state)
{
    struct client_fixture *f = malloc(sizeof(*f));
    client_init(f);
    client_start(f);
    test_frame(&f->in, H2_SETTINGS, 0, 0, SLICE_EMPTY);
    drain(f);
    feed(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    client_fini(*state);
    free(*state);
    return 0;
}

static struct recorded_call *begin(struct client_fixture *f)
{
    struct recorded_call *r = recorded_call(f, "/t.T/Echo");
    assert_int_equal(grpc_client_call_send(&r->call, SLICE_LITERAL("hello")), ST_OK);
    grpc_client_call_half_close(&r->call);
    drain(f);
    return r;
}

/* fields: name, value, ..., NULL */
static void headers(struct client_fixture *f, uint32_t id, bool ends, const char *const *fields)
{
    AUTO(buf_fini) struct buf block = {0};
    for (; *fields; fields += 2)
        test_field(&block, fields[0], fields[1]);
    test_headers(&f->in, id, ends ? H2_FLAG_END_STREAM : 0, buf_slice(&block));
}

#define FIELDS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define HEAD FIELDS(":status", "200", "content-type", "application/grpc")

static void assert_ends(struct recorded_call *r, enum grpc_code code, const char *text,
                        bool from_peer)
{
    if (strcmp(r->text, text) != 0)
        print_error("text: %s\n", r->text);
    assert_int_equal(r->ended, 1);
    assert_int_equal(r->code, code);
    assert_string_equal(r->text, text);
    assert_int_equal(r->from_peer, from_peer);
}

/* ---- heads ---- */

struct head_row {
    const char *const *fields;
    bool ends;
    enum grpc_code code;
    const char *text;
    bool from_peer;
};

static void responses_that_are_not_of_grpc_are_mapped(void **state)
{
    struct client_fixture *f = *state;
    const struct head_row rows[] = {
        {FIELDS(":status", "400"), false, GRPC_INTERNAL, "unexpected HTTP status 400", false},
        {FIELDS(":status", "401"), true, GRPC_UNAUTHENTICATED, "unexpected HTTP status 401", false},
        {FIELDS(":status", "403"), true, GRPC_PERMISSION_DENIED, "unexpected HTTP status 403",
         false},
        {FIELDS(":status", "404"), true, GRPC_UNIMPLEMENTED, "unexpected HTTP status 404", false},
        {FIELDS(":status", "429"), false, GRPC_UNAVAILABLE, "unexpected HTTP status 429", false},
        {FIELDS(":status", "502"), false, GRPC_UNAVAILABLE, "unexpected HTTP status 502", false},
        {FIELDS(":status", "503"), false, GRPC_UNAVAILABLE, "unexpected HTTP status 503", false},
        {FIELDS(":status", "504"), false, GRPC_UNAVAILABLE, "unexpected HTTP status 504", false},
        {FIELDS(":status", "500"), false, GRPC_UNKNOWN, "unexpected HTTP status 500", false},
        {FIELDS(":status", "302"), false, GRPC_UNKNOWN, "unexpected HTTP status 302", false},
        {FIELDS(":status", "200"), false, GRPC_UNKNOWN, "the response has no content-type", false},
        {FIELDS(":status", "200", "content-type", "text/html"), false, GRPC_UNKNOWN,
         "unexpected content-type \"text/html\"", false},
        {FIELDS(":status", "200", "content-type", "application/grpcx"), false, GRPC_UNKNOWN,
         "unexpected content-type \"application/grpcx\"", false},
        {HEAD, true, GRPC_INTERNAL, "the server ended the stream without trailers", false},
        /* Only a head, with a status of gRPC. */
        {FIELDS(":status", "200", "content-type", "application/grpc", "grpc-status", "5",
                "grpc-message", "a%20b%C3%A4%"),
         true, GRPC_NOT_FOUND, "a bä%", true},
        {FIELDS(":status", "503", "grpc-status", "8"), true, GRPC_RESOURCE_EXHAUSTED, "", true},
        {FIELDS(":status", "200", "grpc-status", "0"), true, GRPC_OK, "", true},
        {FIELDS(":status", "200", "grpc-status", "17"), true, GRPC_UNKNOWN, "", true},
        {FIELDS(":status", "200", "grpc-status", "x", "grpc-message", "odd"), true, GRPC_UNKNOWN,
         "odd", true},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (size_t round = 0; round < 2; round++) { /* the second time the head is remembered */
            struct recorded_call *r = begin(f);
            headers(f, r->call.stream.id, rows[i].ends, rows[i].fields);
            feed(f);
            assert_ends(r, rows[i].code, rows[i].text, rows[i].from_peer);
            assert_false(r->unprocessed);
        }
    }
    assert_false(h2_session_failed(f->session));
}

static void subtypes_and_parameters_are_grpc(void **state)
{
    struct client_fixture *f = *state;
    static const char *const types[] = {"application/grpc", "application/grpc+proto",
                                        "application/grpc;charset=utf-8"};
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        struct recorded_call *r = begin(f);
        uint32_t id = r->call.stream.id;
        headers(f, id, false, FIELDS(":status", "200", "content-type", types[i]));
        headers(f, id, true, FIELDS("grpc-status", "0"));
        feed(f);
        assert_ends(r, GRPC_OK, "", true);
    }
}

/* ---- messages and trailers ---- */

struct body_row {
    struct slice bytes;
    const char *const *trailers; /* NULL: the DATA ends the stream */
    enum grpc_code code;
    const char *text;
    bool from_peer;
    size_t messages;
};

#define BYTES(text)                               \
    {                                             \
        (const uint8_t *)(text), sizeof(text) - 1 \
    }

static void bodies_end_as_grpc_says(void **state)
{
    struct client_fixture *f = *state;
    f->request.receive_max = 100;
    const struct body_row rows[] = {
        {BYTES("\0\0\0\0\1x"), FIELDS("grpc-status", "0"), GRPC_OK, "", true, 1},
        {BYTES("\0\0\0\0\1x\0\0\0\0\0"), FIELDS("grpc-status", "0"), GRPC_OK, "", true, 2},
        {BYTES("\0\0\0\0\1x"), FIELDS("grpc-status", "14", "grpc-message", "later"),
         GRPC_UNAVAILABLE, "later", true, 1},
        {BYTES("\0\0\0\0\1x"), FIELDS("other", "0"), GRPC_UNKNOWN, "the server sent no grpc-status",
         false, 1},
        {BYTES("\0\0\0\0\1x"), NULL, GRPC_INTERNAL, "the server ended the stream without trailers",
         false, 1},
        {BYTES("\0\0\0\0\2x"), FIELDS("grpc-status", "0"), GRPC_INTERNAL, "unexpected EOF", false,
         0},
        {BYTES("\0\0"), FIELDS("grpc-status", "0"), GRPC_INTERNAL, "unexpected EOF", false, 0},
        {BYTES("\0\0\0\0\2x"), FIELDS("grpc-status", "4"), GRPC_DEADLINE_EXCEEDED, "", true, 0},
        {BYTES("\1\0\0\0\1x"), FIELDS("grpc-status", "0"), GRPC_INTERNAL,
         "grpc: compressed flag set with identity or empty encoding", false, 0},
        {BYTES("\2\0\0\0\1x"), FIELDS("grpc-status", "0"), GRPC_INTERNAL,
         "grpc: received unexpected payload format 2", false, 0},
        {BYTES("\0\0\0\0\x65"), FIELDS("grpc-status", "0"), GRPC_RESOURCE_EXHAUSTED,
         "grpc: received message larger than max (101 vs. 100)", false, 0},
        {BYTES("\0\xff\xff\xff\xff"), FIELDS("grpc-status", "0"), GRPC_RESOURCE_EXHAUSTED,
         "grpc: received message larger than max (4294967295 vs. 100)", false, 0},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (size_t round = 0; round < 2; round++) { /* the second time they are remembered */
            struct recorded_call *r = begin(f);
            uint32_t id = r->call.stream.id;
            headers(f, id, false, HEAD);
            test_frame(&f->in, H2_DATA, rows[i].trailers ? 0 : H2_FLAG_END_STREAM, id,
                       rows[i].bytes);
            if (rows[i].trailers)
                headers(f, id, true, rows[i].trailers);
            feed(f);
            assert_ends(r, rows[i].code, rows[i].text, rows[i].from_peer);
            assert_int_equal(r->messages, rows[i].messages);
        }
    }
    assert_false(h2_session_failed(f->session));
}

static void message_with_an_encoding_is_not_understood(void **state)
{
    struct client_fixture *f = *state;
    for (size_t round = 0; round < 2; round++) { /* the second time the head is remembered */
        struct recorded_call *gzip = begin(f), *identity = begin(f);
        headers(
            f, gzip->call.stream.id, false,
            FIELDS(":status", "200", "content-type", "application/grpc", "grpc-encoding", "gzip"));
        test_frame(&f->in, H2_DATA, 0, gzip->call.stream.id,
                   SLICE_LITERAL("\0\0\0\0\1x\1\0\0\0\1x"));
        headers(f, identity->call.stream.id, false,
                FIELDS(":status", "200", "content-type", "application/grpc", "grpc-encoding",
                       "identity"));
        test_frame(&f->in, H2_DATA, 0, identity->call.stream.id, SLICE_LITERAL("\1\0\0\0\1x"));
        feed(f);
        assert_ends(gzip, GRPC_UNIMPLEMENTED, "grpc: the message is compressed", false);
        assert_int_equal(gzip->messages, 1);
        assert_int_equal(identity->code, GRPC_INTERNAL);
    }
}

/* The server may send the rest of a large message without waiting for window in between, unless the
 * call is withheld. */
static void large_message_widens_the_window(void **state)
{
    struct client_fixture *f = *state;
    struct recorded_call *r = begin(f);
    uint32_t id = r->call.stream.id;
    struct h2_frame frame;
    struct slice payload;
    headers(f, id, false, HEAD);
    test_frame(&f->in, H2_DATA, 0, id, SLICE_LITERAL("\0\0\x0f\x42\x40")); /* 1,000,000 */
    feed(f);
    assert_true(test_find(frames_of(f), H2_WINDOW_UPDATE, id, 0, &frame, &payload));
    uint32_t window = f->limits.stream_window - 5;
    assert_int_equal(h2_get32(payload.ptr), 1000000 - window);

    struct recorded_call *held = begin(f);
    id = held->call.stream.id;
    grpc_client_call_withhold(&held->call, true);
    headers(f, id, false, HEAD);
    test_frame(&f->in, H2_DATA, 0, id,
               SLICE_LITERAL("\0\0\x0f\x42\x40"
                             "1234"));
    feed(f);
    assert_int_equal(test_count(frames_of(f), H2_WINDOW_UPDATE, id), 0);
    grpc_client_call_withhold(&held->call, false);
    drain(f);
    assert_true(test_find(frames_of(f), H2_WINDOW_UPDATE, id, 0, &frame, &payload));
    assert_int_equal(h2_get32(payload.ptr), 1000000 - 4 - (window - 4));
}

/* The rest of a message that is too large is not awaited: the stream is reset. */
static void refused_message_resets_its_stream(void **state)
{
    struct client_fixture *f = *state;
    f->request.receive_max = 10;
    struct recorded_call *r = begin(f);
    uint32_t id = r->call.stream.id;
    headers(f, id, false, HEAD);
    test_frame(&f->in, H2_DATA, 0, id, SLICE_LITERAL("\0\0\0\0\x0b"));
    feed(f);
    assert_int_equal(test_error(frames_of(f), id), H2_CANCEL);
    test_frame(&f->in, H2_DATA, 0, id, SLICE_LITERAL("12345678901"));
    feed(f);
    assert_int_equal(r->messages, 0);
    assert_false(h2_session_failed(f->session));
}

/* ---- resets and the end of the connection ---- */

static void resets_are_mapped(void **state)
{
    struct client_fixture *f = *state;
    static const struct {
        uint32_t error;
        enum grpc_code code;
        const char *name;
    } rows[] = {
        {H2_NO_ERROR, GRPC_INTERNAL, "NO_ERROR"},
        {H2_PROTOCOL_ERROR, GRPC_INTERNAL, "PROTOCOL_ERROR"},
        {H2_INTERNAL_ERROR, GRPC_INTERNAL, "INTERNAL_ERROR"},
        {H2_FLOW_CONTROL_ERROR, GRPC_INTERNAL, "FLOW_CONTROL_ERROR"},
        {H2_SETTINGS_TIMEOUT, GRPC_INTERNAL, "SETTINGS_TIMEOUT"},
        {H2_STREAM_CLOSED, GRPC_INTERNAL, "STREAM_CLOSED"},
        {H2_FRAME_SIZE_ERROR, GRPC_INTERNAL, "FRAME_SIZE_ERROR"},
        {H2_REFUSED_STREAM, GRPC_UNAVAILABLE, "REFUSED_STREAM"},
        {H2_CANCEL, GRPC_CANCELLED, "CANCEL"},
        {H2_COMPRESSION_ERROR, GRPC_INTERNAL, "COMPRESSION_ERROR"},
        {H2_CONNECT_ERROR, GRPC_INTERNAL, "CONNECT_ERROR"},
        {H2_ENHANCE_YOUR_CALM, GRPC_RESOURCE_EXHAUSTED, "ENHANCE_YOUR_CALM"},
        {H2_INADEQUATE_SECURITY, GRPC_PERMISSION_DENIED, "INADEQUATE_SECURITY"},
        {H2_HTTP_1_1_REQUIRED, GRPC_INTERNAL, "HTTP_1_1_REQUIRED"},
        {0x0e, GRPC_UNKNOWN, "unknown"},
        {0xffffffff, GRPC_UNKNOWN, "unknown"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct recorded_call *r = begin(f);
        uint8_t payload[4];
        h2_put32(payload, rows[i].error);
        test_frame(&f->in, H2_RST_STREAM, 0, r->call.stream.id, slice_of(payload, 4));
        feed(f);
        assert_int_equal(r->ended, 1);
        assert_int_equal(r->code, rows[i].code);
        assert_non_null(strstr(r->text, rows[i].name));
        assert_false(r->from_peer);
        assert_int_equal(r->unprocessed, rows[i].error == H2_REFUSED_STREAM);
    }
}

/* A server resets the stream when the deadline has passed there first. */
static void cancelled_after_the_deadline_is_the_deadline(void **state)
{
    struct client_fixture *f = *state;
    f->request.deadline_ns = f->now + 1000;
    struct recorded_call *r = begin(f);
    f->now += 1000;
    test_frame(&f->in, H2_RST_STREAM, 0, r->call.stream.id, SLICE_LITERAL("\0\0\0\x08"));
    feed(f);
    assert_ends(r, GRPC_DEADLINE_EXCEEDED, "context deadline exceeded", false);
}

static void fault_of_the_server_is_internal(void **state)
{
    struct client_fixture *f = *state;
    struct recorded_call *r = begin(f);
    test_frame(&f->in, H2_DATA, 0, r->call.stream.id, SLICE_LITERAL("before the head"));
    feed(f);
    assert_ends(r, GRPC_INTERNAL, "the server violated HTTP/2: PROTOCOL_ERROR", false);
}

static void goaway_makes_unprocessed_calls_unavailable(void **state)
{
    struct client_fixture *f = *state;
    struct recorded_call *kept = begin(f), *refused = begin(f);
    test_frame(&f->in, H2_GOAWAY, 0, 0, SLICE_LITERAL("\0\0\0\1\0\0\0\0"));
    feed(f);
    assert_int_equal(kept->ended, 0);
    assert_int_equal(refused->code, GRPC_UNAVAILABLE);
    assert_true(refused->unprocessed);
    struct recorded_call *late = recorded_new(f);
    assert_int_equal(grpc_client_call_start(&late->call, f->session, &f->request), ST_CLOSED);
    uint32_t id = kept->call.stream.id;
    headers(f, id, false, HEAD);
    headers(f, id, true, FIELDS("grpc-status", "0"));
    feed(f);
    assert_ends(kept, GRPC_OK, "", true);
}

static void full_server_makes_calls_wait(void **state)
{
    struct client_fixture *f = *state;
    test_setting(&f->in, H2_SETTING_MAX_CONCURRENT_STREAMS, 1);
    feed(f);
    struct recorded_call *first = begin(f), *second = recorded_new(f);
    assert_int_equal(grpc_client_call_send(&second->call, SLICE_LITERAL("kept")), ST_OK);
    assert_int_equal(grpc_client_call_start(&second->call, f->session, &f->request), ST_AGAIN);
    assert_false(grpc_client_call_is_open(&second->call));
    grpc_client_call_cancel(&first->call);
    recorded_start(second);
    assert_int_equal(second->started, 1);
    drain(f);
    assert_int_equal(test_data_bytes(frames_of(f), second->call.stream.id), 5 + 4);
}

static void freed_session_ends_calls(void **state)
{
    struct client_fixture *f = *state;
    struct recorded_call *r = begin(f);
    h2_session_free(f->session);
    f->session = NULL;
    assert_ends(r, GRPC_UNAVAILABLE, "connection error: the connection was closed", false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(responses_that_are_not_of_grpc_are_mapped),
        TEST(subtypes_and_parameters_are_grpc),
        TEST(bodies_end_as_grpc_says),
        TEST(message_with_an_encoding_is_not_understood),
        TEST(large_message_widens_the_window),
        TEST(refused_message_resets_its_stream),
        TEST(resets_are_mapped),
        TEST(cancelled_after_the_deadline_is_the_deadline),
        TEST(fault_of_the_server_is_internal),
        TEST(goaway_makes_unprocessed_calls_unavailable),
        TEST(full_server_makes_calls_wait),
        TEST(freed_session_ends_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
