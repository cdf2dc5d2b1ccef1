#include "wire/grpc/call.h"

#include "wire/grpc/fixture_test.h"

static void unary_call_is_echoed(void **state)
{
    struct fixture *f = *state;
    for (uint32_t id = 1; id < 100; id += 2) {
        test_call(&f->in, id, "/t.T/Echo");
        test_message(&f->in, id, H2_FLAG_END_STREAM, SLICE_LITERAL("hello"));
    }
    exchange(f);
    assert_int_equal(f->service.messages, 50);
    assert_int_equal(f->service.ends, 50);
    struct h2_frame frame;
    struct slice payload;
    for (uint32_t id = 1; id < 100; id += 2) {
        assert_true(test_find(buf_slice(&f->out), H2_DATA, id, 0, &frame, &payload));
        assert_true(slice_equal(payload, SLICE_LITERAL("\0\0\0\0\5hello")));
        assert_int_equal(status_of(f, id), GRPC_OK);
        assert_true(header_holds(f, id, 0, "application/grpc"));
    }
}

static void largest_message_is_accepted_and_one_more_byte_is_not(void **state)
{
    struct fixture *f = *state;
    size_t max = f->limits.grpc.receive_bytes_max;
    uint8_t *bytes = calloc(1, max + 1);
    test_window(&f->in, 0, 1 << 28);
    test_setting(&f->in, H2_SETTING_INITIAL_WINDOW_SIZE, 1 << 28);
    test_call(&f->in, 1, "/t.T/Echo");
    test_message(&f->in, 1, H2_FLAG_END_STREAM, slice_of(bytes, max));
    /* As a client does: it sends what the window allows, then what later updates allow. */
    struct slice input = buf_slice(&f->in);
    f->in = (struct buf){0};
    for (size_t at = 0; at < input.len; at += 30000) {
        test_put(&f->in, slice_sub(input, at, size_min(30000, input.len - at)));
        exchange(f);
    }
    assert_int_equal(status_of(f, 1), GRPC_OK);
    assert_int_equal(test_data_bytes(buf_slice(&f->out), 1), max + 5);

    test_call(&f->in, 3, "/t.T/Echo");
    test_frame(&f->in, H2_DATA, 0, 3, SLICE_LITERAL("\0\0\x20\0\1abc"));
    exchange(f);
    assert_ended(f, 3, GRPC_RESOURCE_EXHAUSTED,
                 "grpc: received message larger than max (2097153 vs. 2097152)");
    free((void *)(uintptr_t)input.ptr);
    free(bytes);
}

static void messages_of_a_stream_arrive_one_by_one_for_any_framing(void **state)
{
    struct fixture *f = *state;
    struct slice two = SLICE_LITERAL("\0\0\0\0\3abc\0\0\0\0\0\0\0\0\0\2de");
    test_call(&f->in, 1, "/t.T/Chat");
    for (size_t i = 0; i < two.len; i++)
        test_frame(&f->in, H2_DATA, 0, 1, slice_sub(two, i, 1));
    test_frame(&f->in, H2_DATA, 0, 1, two);
    exchange(f);
    assert_int_equal(f->service.messages, 6);
    assert_int_equal(test_data_bytes(buf_slice(&f->out), 1), 2 * two.len);
    assert_int_equal(status_of(f, 1), -1);
    test_frame(&f->in, H2_DATA, H2_FLAG_END_STREAM, 1, SLICE_EMPTY);
    exchange(f);
    assert_int_equal(f->service.half_closes, 1);
    assert_int_equal(f->service.ends, 1);
    assert_int_equal(status_of(f, 1), GRPC_OK);
}

struct refusal {
    const char *path;
    const char *const *extra;
    struct slice body;
    enum grpc_code code;
    const char *text;
};
static void guard_is_called_before_the_service(void **state)
{
    struct fixture *f = *state;
    struct guard_test g = {0};
    struct grpc_guard guard = {.admit = guard_admit, .ctx = &g};
    const char *paths[] = {"/t.T/Echo", "/t.T/List", "/t.T/Chat"};
    grpc_services_guard(f->services, &guard);
    for (uint32_t i = 0; i < COUNT_OF(paths); i++) {
        g.asked = 0;
        test_call(&f->in, 2 * i + 1, paths[i]);
        test_message(&f->in, 2 * i + 1, H2_FLAG_END_STREAM, SLICE_LITERAL("x"));
        exchange(f);
        assert_int_equal(g.asked, 1);
        assert_ended(f, 2 * i + 1, GRPC_PERMISSION_DENIED, "etcdserver: permission denied");
    }
    assert_int_equal(f->service.messages, 0);
    assert_int_equal(f->service.ends, 0);
    assert_int_equal(f->service.half_closes, 0);
}

static void guard_is_called_for_each_message_of_a_stream(void **state)
{
    struct fixture *f = *state;
    struct guard_test g = {.refused_after = 2};
    struct grpc_guard guard = {.admit = guard_admit, .ctx = &g};
    grpc_services_guard(f->services, &guard);
    test_call(&f->in, 1, "/t.T/Chat");
    for (int i = 0; i < 4; i++)
        test_message(&f->in, 1, 0, SLICE_LITERAL("x"));
    exchange(f);
    assert_int_equal(g.asked, 3);
    assert_int_equal(f->service.messages, 2);
    assert_int_equal(f->service.ends, 1);
    assert_ended(f, 1, GRPC_PERMISSION_DENIED, "etcdserver: permission denied");
}

static void refusals_have_the_words_of_grpc_go(void **state)
{
    struct fixture *f = *state;
    const struct refusal refusals[] = {
        {"/x.Y/Z", NULL, BODY(""), GRPC_UNIMPLEMENTED, "unknown service x.Y"},
        {"/t.T/Z", NULL, BODY(""), GRPC_UNIMPLEMENTED, "unknown method Z for service t.T"},
        {"/t.T", NULL, BODY(""), GRPC_UNIMPLEMENTED, "malformed method name: \"/t.T\""},
        {"/t.T/Echo", EXTRA("grpc-encoding", "zstd"), BODY(""), GRPC_UNIMPLEMENTED,
         "grpc: Decompressor is not installed for grpc-encoding \"zstd\""},
        {"/t.T/Echo", EXTRA("grpc-encoding", "gzip"), BODY(""), GRPC_UNIMPLEMENTED,
         "grpc: Decompressor is not installed for grpc-encoding \"gzip\""},
        {"/t.T/Echo", EXTRA("grpc-timeout", "5x"), BODY(""), GRPC_INTERNAL,
         "malformed grpc-timeout: transport: timeout unit is not recognized: \"5x\""},
        {"/t.T/Echo", EXTRA("grpc-timeout", "a5S"), BODY(""), GRPC_INTERNAL,
         "malformed grpc-timeout: strconv.ParseUint: parsing \"a5\": invalid syntax"},
        {"/t.T/Echo", EXTRA("grpc-timeout", "0S"), BODY(""), GRPC_DEADLINE_EXCEEDED,
         "context deadline exceeded"},
        {"/t.T/Echo", EXTRA("host", "a", "host", "b"), BODY(""), GRPC_INTERNAL,
         "num values of :authority: 1, num values of host: 2"},
        {"/t.T/Echo", NULL, BODY(""), GRPC_UNKNOWN, "EOF"},
        {"/t.T/Echo", NULL, BODY("\0\0"), GRPC_UNKNOWN, "EOF"},
        {"/t.T/Echo", NULL, BODY("\0\0\0\0\2a"), GRPC_UNKNOWN, "unexpected EOF"},
        {"/t.T/Echo", NULL, BODY("\1\0\0\0\1a"), GRPC_INTERNAL,
         "grpc: compressed flag set with identity or empty encoding"},
        {"/t.T/Echo", NULL, BODY("\2\0\0\0\1a"), GRPC_INTERNAL,
         "grpc: received unexpected payload format 2"},
        {"/t.T/List", NULL, BODY(""), GRPC_INTERNAL,
         "cardinality violation: received no request message from non-client-streaming RPC"},
        {"/t.T/List", NULL, BODY("\0\0\0\0\0\0\0\0\0\0"), GRPC_INTERNAL,
         "cardinality violation: received multiple request messages"},
        {"/t.T/List", NULL, BODY("\0\0\0\0\2a"), GRPC_INTERNAL, "unexpected EOF"},
        {"/t.T/Chat", NULL, BODY("\0\0\0\0\2a"), GRPC_INTERNAL, "unexpected EOF"},
    };
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        uint32_t id = (uint32_t)(2 * i + 1);
        test_call_with(&f->in, id, refusals[i].path, 0, refusals[i].extra);
        test_frame(&f->in, H2_DATA, H2_FLAG_END_STREAM, id, refusals[i].body);
        exchange(f);
        assert_ended(f, id, refusals[i].code, refusals[i].text);
    }
    assert_int_equal(f->service.messages, 0);
    assert_int_equal(f->service.ends, 0);
}

static void request_that_is_not_grpc_gets_an_http_status(void **state)
{
    struct fixture *f = *state;
    test_headers(&f->in, 1, H2_FLAG_END_STREAM, SLICE_LITERAL("\x82\x86\x84\x01\x01x"));
    exchange(f);
    assert_ended(f, 1, GRPC_INVALID_ARGUMENT, "invalid gRPC request content-type \"\"");
    assert_true(header_holds(f, 1, 0,
                             "\x08\x03"
                             "415"));

    struct buf block = {0};
    test_put(&block, SLICE_LITERAL("\x82\x86\x84\x01\x01x"));
    test_field(&block, "content-type", "application/grpc+proto");
    test_headers(&f->in, 3, H2_FLAG_END_STREAM, buf_slice(&block));
    exchange(f);
    assert_ended(f, 3, GRPC_INTERNAL,
                 "Received a HEADERS frame with :method \"GET\" which should be POST");
    assert_true(header_holds(f, 3, 0,
                             "\x08\x03"
                             "405"));
    assert_true(header_holds(f, 3, 0, "application/grpc+proto"));
    buf_fini(&block);
}

static void error_text_is_percent_encoded_and_cut(void **state)
{
    struct fixture *f = *state;
    test_call(&f->in, 1, "/t.T/Fail");
    test_message(&f->in, 1, H2_FLAG_END_STREAM, SLICE_LITERAL("100% \xc3\xa9\n"));
    test_call(&f->in, 3, "/t.T/Fail");
    test_message(&f->in, 3, H2_FLAG_END_STREAM, SLICE_EMPTY);
    static uint8_t many[20000];
    test_call(&f->in, 5, "/t.T/Fail");
    test_message(&f->in, 5, H2_FLAG_END_STREAM, slice_of(many, sizeof(many)));
    exchange(f);
    assert_ended(f, 1, GRPC_NOT_FOUND, "100%25 %C3%A9%0A");
    assert_ended(f, 3, GRPC_OUT_OF_RANGE, status_text(ST_COMPACTED));
    assert_ended(f, 5, GRPC_NOT_FOUND, "%00%00");
    assert_int_equal(test_count(buf_slice(&f->out), H2_HEADERS, 1), 1); /* trailers only */
}

static void metadata_is_found_by_name(void **state)
{
    struct fixture *f = *state;
    test_call_with(&f->in, 1, "/t.T/Wait", 0, EXTRA("token", "abc"));
    test_message(&f->in, 1, H2_FLAG_END_STREAM, SLICE_EMPTY);
    exchange(f);
    struct slice value;
    assert_true(grpc_call_metadata(f->service.call, SLICE_LITERAL("token"), &value));
    assert_true(slice_equal(value, SLICE_LITERAL("abc")));
    assert_false(grpc_call_metadata(f->service.call, SLICE_LITERAL("tokens"), &value));
}

static void call_past_its_deadline_is_cancelled(void **state)
{
    struct fixture *f = *state;
    f->service.hold = 1;
    test_call_with(&f->in, 1, "/t.T/Wait", 0, EXTRA("grpc-timeout", "300m"));
    test_message(&f->in, 1, H2_FLAG_END_STREAM, SLICE_EMPTY);
    exchange(f);
    struct grpc_call *call = f->service.call;
    assert_int_equal(wire_connection_timeout(f->connection), f->now + 300000000);
    wire_connection_tick(f->connection, f->now + 299000000);
    assert_false(grpc_call_ended(call));
    wire_connection_tick(f->connection, f->now + 305000000);
    assert_true(grpc_call_ended(call));
    assert_int_equal(f->service.ends, 1);
    assert_null(grpc_call_message(call, 1)); /* after the end */
    drain(f);
    assert_ended(f, 1, GRPC_DEADLINE_EXCEEDED, "context deadline exceeded");
    grpc_call_release(call);
}

static void held_call_outlives_its_connection(void **state)
{
    struct fixture *f = *state;
    f->service.hold = 1;
    test_call(&f->in, 1, "/t.T/Wait");
    test_message(&f->in, 1, H2_FLAG_END_STREAM, SLICE_LITERAL("kept"));
    exchange(f);
    struct grpc_call *call = f->service.call;
    wire_connection_free(f->connection);
    f->connection = NULL;
    assert_true(grpc_call_ended(call));
    assert_int_equal(f->service.ends, 1);
    assert_true(slice_equal(f->service.last, SLICE_LITERAL("kept")));
    grpc_call_finish(call); /* no effect */
    grpc_call_wake(call);
    assert_null(grpc_call_message(call, 4));
    grpc_call_release(call);
}

static void late_answer_wakes_the_connection(void **state)
{
    struct fixture *f = *state;
    test_call(&f->in, 1, "/t.T/Wait");
    test_message(&f->in, 1, H2_FLAG_END_STREAM, SLICE_EMPTY);
    exchange(f);
    assert_int_equal(f->outputs, 0);
    uint8_t *to = grpc_call_message(f->service.call, 3);
    slice_copy(to, SLICE_LITERAL("abc"));
    grpc_call_finish(f->service.call);
    assert_int_equal(f->outputs, 1);
    drain(f);
    assert_int_equal(status_of(f, 1), GRPC_OK);
}

static void source_fills_frames_parks_and_wakes(void **state)
{
    struct fixture *f = *state;
    f->service.source_bytes = 40000;
    test_call(&f->in, 1, "/t.T/Watch");
    test_message(&f->in, 1, 0, SLICE_EMPTY);
    exchange(f);
    assert_int_equal(test_data_bytes(buf_slice(&f->out), 1), 40000);
    assert_int_equal(test_count(buf_slice(&f->out), H2_DATA, 1), 3);
    assert_false(wire_connection_wants_write(f->connection));
    f->service.source_bytes = 7;
    grpc_call_wake(f->service.call);
    grpc_call_wake(f->service.call);
    assert_int_equal(f->outputs, 1);
    drain(f);
    assert_int_equal(test_data_bytes(buf_slice(&f->out), 1), 40007);
    f->service.source_done = true;
    grpc_call_wake(f->service.call);
    drain(f);
    assert_int_equal(status_of(f, 1), GRPC_OK);
    assert_int_equal(f->service.ends, 1);
}

static void stalled_answer_is_ended_and_a_parked_one_is_not(void **state)
{
    struct fixture *f = *state;
    f->service.source_bytes = 1 << 20;
    test_call(&f->in, 1, "/t.T/List");
    test_message(&f->in, 1, H2_FLAG_END_STREAM, SLICE_EMPTY);
    test_call(&f->in, 3, "/t.T/Watch");
    test_message(&f->in, 3, 0, SLICE_EMPTY);
    exchange(f); /* both use up the window */
    int64_t stall = f->limits.grpc.stall_ns;
    assert_true(wire_connection_timeout(f->connection) <= f->now + stall);
    wire_connection_tick(f->connection, f->now + stall - 1);
    drain(f);
    assert_int_equal(test_error(buf_slice(&f->out), 1), -1);
    f->now += stall;
    wire_connection_tick(f->connection, f->now);
    drain(f);
    assert_int_equal(test_error(buf_slice(&f->out), 1), H2_CANCEL);
    assert_int_equal(test_error(buf_slice(&f->out), 3), -1);
    assert_int_equal(f->service.ends, 1);
}

static void incomplete_request_is_ended(void **state)
{
    struct fixture *f = *state;
    test_call(&f->in, 1, "/t.T/Echo");
    test_frame(&f->in, H2_DATA, 0, 1, SLICE_LITERAL("\0\0\0"));
    exchange(f);
    wire_connection_tick(f->connection, f->now + f->limits.grpc.stall_ns);
    drain(f);
    assert_int_equal(test_error(buf_slice(&f->out), 1), H2_CANCEL);
}

static void reading_stops_while_sendable_answers_are_queued(void **state)
{
    struct fixture *f = *state;
    f->limits.grpc.queued_bytes_soft = 50000;
    static uint8_t bytes[10000];
    test_window(&f->in, 0, 1 << 24);
    uint32_t id = 1;
    do {
        test_call(&f->in, id, "/t.T/Echo");
        test_message(&f->in, id, H2_FLAG_END_STREAM, slice_of(bytes, sizeof(bytes)));
        feed(f);
        id += 2;
    } while (wire_connection_wants_read(f->connection) && id < 100);
    assert_int_equal(id, 11);
    drain(f);
    assert_true(wire_connection_wants_read(f->connection));
}

static void reading_continues_while_answers_wait_for_window(void **state)
{
    struct fixture *f = *state;
    f->limits.grpc.queued_bytes_soft = 50000;
    static uint8_t bytes[60000];
    test_setting(&f->in, H2_SETTING_INITIAL_WINDOW_SIZE, 0);
    test_call(&f->in, 1, "/t.T/Echo");
    test_message(&f->in, 1, H2_FLAG_END_STREAM, slice_of(bytes, sizeof(bytes)));
    exchange(f);
    assert_true(wire_connection_wants_read(f->connection));
    test_window(&f->in, 1, 1 << 20);
    exchange(f);
    assert_int_equal(status_of(f, 1), GRPC_OK);
}

static void window_is_withheld_while_many_requests_are_unanswered(void **state)
{
    struct fixture *f = *state;
    f->limits.grpc.held_bytes_soft = 40000;
    f->limits.h2.connection_window = 100000;
    static uint8_t bytes[16000];
    for (uint32_t id = 1; id <= 9; id += 2) {
        test_call(&f->in, id, "/t.T/Wait");
        test_message(&f->in, id, H2_FLAG_END_STREAM, slice_of(bytes, sizeof(bytes)));
    }
    exchange(f);
    assert_int_equal(test_count(buf_slice(&f->out), H2_WINDOW_UPDATE, 0), 1); /* the initial one */
    test_frame(&f->in, H2_PING, 0, 0, SLICE_LITERAL("12345678"));
    assert_true(wire_connection_wants_read(f->connection));
    exchange(f);
    assert_int_equal(test_count(buf_slice(&f->out), H2_PING, 0), 1);
    grpc_call_finish(f->service.call);
    test_frame(&f->in, H2_RST_STREAM, 0, 1, SLICE_LITERAL("\0\0\0\x08"));
    test_frame(&f->in, H2_RST_STREAM, 0, 3, SLICE_LITERAL("\0\0\0\x08"));
    exchange(f);
    assert_int_equal(test_count(buf_slice(&f->out), H2_WINDOW_UPDATE, 0), 2);
}

static void reset_by_the_peer_ends_the_call(void **state)
{
    struct fixture *f = *state;
    test_call(&f->in, 1, "/t.T/Wait");
    test_message(&f->in, 1, 0, SLICE_EMPTY);
    test_frame(&f->in, H2_RST_STREAM, 0, 1, SLICE_LITERAL("\0\0\0\x08"));
    exchange(f);
    assert_int_equal(f->service.ends, 1);
    assert_null(f->service.call);
}

static void shutdown_answers_calls_in_progress(void **state)
{
    struct fixture *f = *state;
    test_call(&f->in, 1, "/t.T/Wait");
    test_message(&f->in, 1, H2_FLAG_END_STREAM, SLICE_EMPTY);
    exchange(f);
    wire_connection_shutdown(f->connection, f->now);
    wire_connection_tick(f->connection, f->now + f->limits.h2.drain_ns);
    drain(f);
    assert_false(wire_connection_should_close(f->connection));
    assert_false(wire_connection_idle(f->connection));
    grpc_call_finish(f->service.call);
    drain(f);
    assert_true(wire_connection_should_close(f->connection));
    assert_string_equal(wire_connection_reason(f->connection), "shutting down");
}

static void shutdown_ends_parked_calls_so_that_clients_use_another_server(void **state)
{
    struct fixture *f = *state;
    test_call(&f->in, 1, "/t.T/Watch");
    test_message(&f->in, 1, 0, SLICE_EMPTY);
    exchange(f);
    assert_int_equal(status_of(f, 1), -1);
    wire_connection_shutdown(f->connection, f->now);
    /* Opened before the client has read the GOAWAY. */
    test_call(&f->in, 3, "/t.T/Watch");
    test_message(&f->in, 3, 0, SLICE_EMPTY);
    exchange(f);
    assert_ended(f, 1, GRPC_UNAVAILABLE, "etcdserver: server stopped");
    assert_ended(f, 3, GRPC_UNAVAILABLE, "etcdserver: server stopped");
    assert_int_equal(f->service.ends, 1); /* the second was not delivered to the service */
    struct h2_frame frame;
    struct slice payload;
    assert_true(test_find(buf_slice(&f->out), H2_GOAWAY, 0, 0, &frame, &payload));
    wire_connection_tick(f->connection, f->now + f->limits.h2.drain_ns);
    drain(f);
    assert_true(wire_connection_should_close(f->connection));
}

static void resets_of_calls_being_answered_do_not_count_as_a_flood(void **state)
{
    struct fixture *f = *state;
    for (uint32_t i = 0, id = 1; i < 2 * f->limits.h2.reset_burst; i++, id += 2) {
        test_call(&f->in, id, "/t.T/Watch");
        test_message(&f->in, id, 0, SLICE_EMPTY);
        exchange(f);
        test_frame(&f->in, H2_RST_STREAM, 0, id, SLICE_LITERAL("\0\0\0\x08"));
        exchange(f);
        f->out.len = 0;
    }
    assert_false(wire_connection_should_close(f->connection));
    assert_int_equal(f->service.ends, 2 * f->limits.h2.reset_burst);
}

static void paused_call_gets_no_more_window(void **state)
{
    struct fixture *f = *state;
    static const uint8_t half[40 * 1024];
    test_call(&f->in, 1, "/t.T/Chat");
    test_message(&f->in, 1, 0, SLICE_LITERAL("x"));
    feed(f);
    grpc_call_pause(f->service.call, true);
    test_message(&f->in, 1, 0, slice_of(half, sizeof(half)));
    exchange(f);
    assert_int_equal(f->service.messages, 2); /* what the window allows is delivered */
    assert_int_equal(test_count(buf_slice(&f->out), H2_WINDOW_UPDATE, 1), 0);
    grpc_call_pause(f->service.call, false);
    grpc_call_pause(f->service.call, false);
    drain(f);
    assert_int_equal(test_count(buf_slice(&f->out), H2_WINDOW_UPDATE, 1), 1);
}

static void call_has_a_pointer_for_its_service_and_the_time(void **state)
{
    struct fixture *f = *state;
    test_call(&f->in, 1, "/t.T/Wait");
    test_message(&f->in, 1, H2_FLAG_END_STREAM, SLICE_EMPTY);
    exchange(f);
    assert_null(grpc_call_user(f->service.call));
    grpc_call_set_user(f->service.call, f);
    assert_ptr_equal(grpc_call_user(f->service.call), f);
    assert_int_equal(grpc_call_now(f->service.call), f->now);
}

static void calls_beyond_the_recycling_limit_are_freed(void **state)
{
    struct fixture *f = *state;
    f->limits.grpc.recycled_calls_max = 1;
    for (uint32_t id = 1; id < 20; id += 2) {
        test_call(&f->in, id, "/t.T/Echo");
        test_message(&f->in, id, H2_FLAG_END_STREAM, SLICE_LITERAL("x"));
    }
    exchange(f);
    assert_int_equal(f->service.ends, 10);
}

static void request_without_any_host_is_refused(void **state)
{
    struct fixture *f = *state;
    struct buf block = {0};
    test_put(&block, SLICE_LITERAL("\x83\x86\x84"));
    test_field(&block, "content-type", "application/grpc");
    test_headers(&f->in, 1, H2_FLAG_END_STREAM, buf_slice(&block));
    exchange(f);
    assert_ended(f, 1, GRPC_INTERNAL, "no host or :authority header present");
    buf_fini(&block);
}

static uint64_t counted(struct fixture *f, struct metric_set *set, const char *path, unsigned what)
{
    return metric_sum(set,
                      grpc_services_find(f->services, slice_from_text(path))->first_count + what);
}

static void every_call_is_counted_with_the_code_it_ended_with(void **state)
{
    struct fixture *f = *state;
    AUTO(metric_set_freep) struct metric_set *set;
    struct metric_block *block;
    assert_int_equal(metric_set_new(COUNT_OF(test_methods) * GRPC_COUNTS, &set), ST_OK);
    assert_int_equal(metric_set_join(set, &block), ST_OK);
    grpc_services_count(f->services, block);
    const char *paths[] = {"/t.T/Echo", "/t.T/Echo", "/t.T/Fail", "/t.T/Wait", "/t.T/None"};
    for (uint32_t i = 0; i < COUNT_OF(paths); i++) {
        test_call(&f->in, 2 * i + 1, paths[i]);
        test_message(&f->in, 2 * i + 1, H2_FLAG_END_STREAM, SLICE_LITERAL("hello"));
    }
    exchange(f);
    test_frame(&f->in, H2_RST_STREAM, 0, 7, SLICE_LITERAL("\0\0\0\x08"));
    exchange(f);
    assert_int_equal(counted(f, set, "/t.T/Echo", GRPC_COUNT_STARTED), 2);
    assert_int_equal(counted(f, set, "/t.T/Echo", GRPC_COUNT_RECEIVED), 2);
    assert_int_equal(counted(f, set, "/t.T/Echo", GRPC_COUNT_RECEIVED_BYTES), 10);
    assert_int_equal(counted(f, set, "/t.T/Echo", GRPC_COUNT_SENT), 2);
    assert_int_equal(counted(f, set, "/t.T/Echo", GRPC_COUNT_SENT_BYTES), 20);
    assert_int_equal(counted(f, set, "/t.T/Echo", GRPC_COUNT_HANDLED + GRPC_OK), 2);
    assert_int_equal(counted(f, set, "/t.T/Echo", GRPC_COUNT_SECONDS), 2);
    assert_int_equal(counted(f, set, "/t.T/Fail", GRPC_COUNT_HANDLED + GRPC_NOT_FOUND), 1);
    assert_int_equal(counted(f, set, "/t.T/Wait", GRPC_COUNT_HANDLED + GRPC_CANCELLED), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(unary_call_is_echoed),
        TEST(largest_message_is_accepted_and_one_more_byte_is_not),
        TEST(messages_of_a_stream_arrive_one_by_one_for_any_framing),
        TEST(guard_is_called_before_the_service),
        TEST(guard_is_called_for_each_message_of_a_stream),
        TEST(refusals_have_the_words_of_grpc_go),
        TEST(request_that_is_not_grpc_gets_an_http_status),
        TEST(error_text_is_percent_encoded_and_cut),
        TEST(metadata_is_found_by_name),
        TEST(call_past_its_deadline_is_cancelled),
        TEST(held_call_outlives_its_connection),
        TEST(late_answer_wakes_the_connection),
        TEST(source_fills_frames_parks_and_wakes),
        TEST(stalled_answer_is_ended_and_a_parked_one_is_not),
        TEST(incomplete_request_is_ended),
        TEST(reading_stops_while_sendable_answers_are_queued),
        TEST(reading_continues_while_answers_wait_for_window),
        TEST(window_is_withheld_while_many_requests_are_unanswered),
        TEST(reset_by_the_peer_ends_the_call),
        TEST(shutdown_answers_calls_in_progress),
        TEST(shutdown_ends_parked_calls_so_that_clients_use_another_server),
        TEST(paused_call_gets_no_more_window),
        TEST(resets_of_calls_being_answered_do_not_count_as_a_flood),
        TEST(call_has_a_pointer_for_its_service_and_the_time),
        TEST(calls_beyond_the_recycling_limit_are_freed),
        TEST(request_without_any_host_is_refused),
        TEST(every_call_is_counted_with_the_code_it_ended_with),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
