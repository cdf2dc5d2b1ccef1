/* Bodies that are taken as they arrive. */
#include "wire/http/http2/endpoint.h"

#include "wire/http/exchange_private.h"
#include "wire/http/http2/endpoint_fixture_test.h"

#include <stdlib.h>

enum { WINDOW = 64 * 1024 };

static int setup(void **state)
{
    fixture_setup(state);
    struct fixture *f = *state;
    f->limits.http.body_bytes_max = 10; /* does not apply to the routes of a stream */
    enum status status = http_routes_add(f->routes, test_routes, COUNT_OF(test_routes), &f->site);
    if (status == ST_OK)
        status = http_routes_add(f->routes, test_stream_routes, COUNT_OF(test_stream_routes),
                                 &f->stream);
    return status == ST_OK ? 0 : -1;
}

static int teardown(void **state)
{
    return fixture_teardown(state);
}

static void post(struct fixture *f, uint32_t id)
{
    ask(f, id, false, "POST", "/take", NULL);
}

static void send_text(struct fixture *f, uint32_t id, bool ends, const char *text)
{
    test_frame(&f->in, H2_DATA, ends ? H2_FLAG_END_STREAM : 0, id, slice_from_text(text));
}

/* Sends that many bytes, in frames of at most 16 KiB. */
static void send_bytes(struct fixture *f, uint32_t id, size_t bytes)
{
    static const uint8_t piece[H2_FRAME_BYTES_MAX];
    while (bytes) {
        size_t n = size_min(bytes, sizeof(piece));
        test_frame(&f->in, H2_DATA, 0, id, slice_of(piece, n));
        bytes -= n;
    }
}

static void respond(struct fixture *f, unsigned status)
{
    http_respond(f->stream.latest, status, SLICE_EMPTY, SLICE_LITERAL("ok"));
    drain(f);
}

/* How much window the stream got back so far. */
static size_t returned(struct fixture *f, uint32_t id)
{
    struct h2_frame frame;
    struct slice payload, bytes = buf_slice(&f->out);
    size_t sum = 0;
    while (test_next(&bytes, &frame, &payload))
        if (frame.type == H2_WINDOW_UPDATE && frame.stream_id == id)
            sum += h2_get32(payload.ptr);
    return sum;
}

static void assert_got(struct fixture *f, const char *text, size_t ends)
{
    assert_int_equal(f->stream.got.len, strlen(text));
    assert_memory_equal(f->stream.got.ptr, text, strlen(text));
    assert_int_equal(f->stream.got_ends, ends);
}

static void body_is_passed_as_it_arrives(void **state)
{
    struct fixture *f = *state;
    post(f, 1);
    pump(f);
    assert_int_equal(f->stream.requests, 1); /* by the head alone */
    assert_true(f->stream.has_body);
    assert_int_equal(f->stream.got_bytes + f->stream.got_ends, 0);
    send_text(f, 1, false, "0123456789");
    pump(f);
    assert_got(f, "0123456789", 0);
    send_text(f, 1, false, "ab");
    pump(f);
    send_text(f, 1, true, "");
    pump(f);
    assert_got(f, "0123456789ab", 1);
    respond(f, 200);
    expect_answer(f, 1, "200", "ok");
}

static void body_that_arrives_with_its_head_is_passed_after_on_request(void **state)
{
    struct fixture *f = *state;
    for (size_t step = 1; step < 200; step++) {
        uint32_t id = (uint32_t)(2 * step - 1);
        post(f, id);
        send_text(f, id, false, "hel");
        send_text(f, id, true, "lo");
        struct buf all = f->in;
        f->in = (struct buf){0};
        for (size_t at = 0; at < all.len; at += step) {
            test_put(&f->in, slice_of(all.ptr + at, size_min(step, all.len - at)));
            feed(f);
        }
        buf_fini(&all);
        drain(f);
        assert_true(f->stream.has_body);
        assert_got(f, "hello", 1);
        respond(f, 200);
        expect_answer(f, id, "200", "ok");
    }
}

static void request_without_a_body_has_none(void **state)
{
    struct fixture *f = *state;
    get(f, 1, "/take");
    pump(f);
    assert_false(f->stream.has_body);
    assert_int_equal(f->stream.got_ends, 0);
    respond(f, 200);
    post(f, 3);
    send_text(f, 3, true, "");
    pump(f);
    assert_false(f->stream.has_body);
    respond(f, 200);
    /* Other routes get the request as always. */
    ask(f, 5, false, "POST", "/chunks/", NULL);
    pump(f);
    assert_int_equal(f->site.requests, 0);
    send_text(f, 5, true, "all");
    pump(f);
    expect_answer(f, 5, "200", "<all>");
    ask(f, 7, false, "POST", "/nope", NULL);
    send_text(f, 7, true, "all");
    pump(f);
    expect_answer(f, 7, "404", "404 page not found\n");
}

static void long_body_holds_no_memory(void **state)
{
    struct fixture *f = *state;
    test_memory_init(&f->memory, 300000);
    post(f, 1);
    for (int i = 0; i < 100; i++) {
        send_bytes(f, 1, WINDOW / 2);
        pump(f);
        assert_in_range(account_held_bytes(f->memory.account), 0, 10000);
    }
    assert_int_equal(f->stream.got_bytes, 50 * WINDOW);
    assert_int_equal(test_error(buf_slice(&f->out), 1), -1);
    send_text(f, 1, true, "");
    pump(f);
    respond(f, 200);
    assert_true(answer_ended(f, 1));
}

static void withheld_body_gets_no_window_back(void **state)
{
    struct fixture *f = *state;
    f->stream.withholds = true;
    post(f, 1);
    send_bytes(f, 1, WINDOW / 2); /* before its turn */
    pump(f);
    send_bytes(f, 1, WINDOW / 2);
    pump(f);
    assert_int_equal(f->stream.got_bytes, WINDOW);
    assert_int_equal(returned(f, 1), 0);
    assert_true(wire_connection_wants_read(f->connection)); /* for the other streams */
    get(f, 3, "/health");
    pump(f);
    assert_true(answer_ended(f, 3));
    /* It is not slow meanwhile. */
    f->now += 1000 * SECOND;
    wire_connection_tick(f->connection, f->now);
    drain(f);
    assert_int_equal(test_error(buf_slice(&f->out), 1), -1);
    http_withhold(f->stream.latest, false);
    drain(f);
    assert_int_equal(returned(f, 1), WINDOW);
    send_bytes(f, 1, WINDOW / 2);
    pump(f);
    assert_int_equal(returned(f, 1), WINDOW + WINDOW / 2);
    /* One that sends more than it may is reset. */
    http_withhold(f->stream.latest, true);
    send_bytes(f, 1, WINDOW + 1);
    pump(f);
    assert_int_equal(test_error(buf_slice(&f->out), 1), H2_FLOW_CONTROL_ERROR);
    assert_null(f->stream.latest);
}

static void body_that_stops_is_reset_until_the_answer_begins(void **state)
{
    struct fixture *f = *state;
    post(f, 1);
    pump(f);
    for (int i = 0; i < 10; i++) {
        f->now += f->limits.http.message_ns - 1;
        wire_connection_tick(f->connection, f->now);
        send_text(f, 1, false, "x");
        pump(f);
    }
    f->stream.begins = true;
    post(f, 3); /* now the latest */
    pump(f);
    f->now += f->limits.http.message_ns;
    wire_connection_tick(f->connection, f->now);
    drain(f);
    f->now += f->limits.http.message_ns;
    wire_connection_tick(f->connection, f->now);
    drain(f);
    assert_int_equal(test_error(buf_slice(&f->out), 1), H2_CANCEL);
    assert_int_equal(test_error(buf_slice(&f->out), 3), -1);
    test_stream_give(&f->stream, SLICE_LITERAL("hello"));
    drain(f);
    send_text(f, 3, true, "x");
    pump(f);
    assert_got(f, "x", 1);
    test_stream_give(&f->stream, SLICE_EMPTY);
    drain(f);
    expect_answer(f, 3, "200", "hello");
}

static void answer_may_end_before_the_body(void **state)
{
    struct fixture *f = *state;
    post(f, 1);
    send_text(f, 1, false, "ab");
    pump(f);
    respond(f, 200);
    assert_true(answer_ended(f, 1));
    assert_int_equal(test_error(buf_slice(&f->out), 1), H2_NO_ERROR);
    send_text(f, 1, true, "cd"); /* was on its way */
    pump(f);
    assert_int_equal(f->stream.ends, 1);
    assert_got(f, "ab", 0);
    f->stream.answers = 403;
    post(f, 3);
    send_text(f, 3, false, "ab");
    send_text(f, 3, true, "cd");
    pump(f);
    assert_string_equal(answer_field(f, 3, ":status"), "403");
    assert_int_equal(f->stream.got_bytes + f->stream.got_ends, 0);
}

static void forgotten_request_is_freed_when_nothing_needs_it(void **state)
{
    struct fixture *f = *state;
    f->stream.begins = true;
    get(f, 1, "/take");
    feed(f);
    http_forget_request(f->stream.latest);
    assert_non_null(f->stream.latest->opening); /* the head of the answer is not sent */
    drain(f);
    assert_null(f->stream.latest->opening);
    test_stream_give(&f->stream, SLICE_LITERAL("hello"));
    drain(f);
    test_stream_give(&f->stream, SLICE_EMPTY);
    drain(f);
    expect_answer(f, 1, "200", "hello");
    post(f, 3);
    pump(f);
    http_forget_request(f->stream.latest);
    http_withhold(f->stream.latest, true);
    send_text(f, 3, false, "ab");
    pump(f);
    assert_non_null(f->stream.latest->opening); /* the body still arrives */
    send_text(f, 3, true, "c");
    pump(f);
    assert_null(f->stream.latest->opening);
    http_withhold(f->stream.latest, false);
    assert_got(f, "abc", 1);
    /* Its answer is aborted, and so are others of the same turn. */
    post(f, 5);
    send_text(f, 5, true, "");
    struct http_exchange *x = f->stream.latest;
    pump(f);
    http_forget_request(f->stream.latest);
    http_abort(x);
    http_abort(f->stream.latest);
    wire_connection_check(f->connection);
    drain(f);
    assert_int_equal(test_error(buf_slice(&f->out), 3), H2_INTERNAL_ERROR);
    assert_int_equal(test_error(buf_slice(&f->out), 5), H2_INTERNAL_ERROR);
}

static void request_that_is_reset_before_its_turn_costs_nothing(void **state)
{
    struct fixture *f = *state;
    static const uint8_t cancel[] = {0, 0, 0, H2_CANCEL};
    post(f, 1);
    test_frame(&f->in, H2_RST_STREAM, 0, 1, slice_of(cancel, 4));
    pump(f);
    assert_int_equal(f->stream.requests, 0);
    post(f, 3);
    pump(f);
    send_text(f, 3, false, "ab");
    test_frame(&f->in, H2_RST_STREAM, 0, 3, slice_of(cancel, 4));
    pump(f);
    assert_int_equal(f->stream.ends, 1);
    assert_int_equal(f->stream.got_ends, 0);
}

static void body_waits_until_the_client_is_admitted(void **state)
{
    struct fixture *f = *state;
    for (int later = 0; later < 2; later++) {
        uint32_t id = later ? 3 : 1;
        ask(f, id, false, "POST", "/late", NULL);
        if (!later) /* the client is admitted before the turn of its request */
            send_text(f, id, false, "ab");
        feed(f);
        if (later)
            send_text(f, id, false, "ab");
        feed(f);
        assert_false(f->stream.runs);
        http_authorized(f->stream.latest);
        pump(f);
        assert_got(f, "ab", 0);
        send_text(f, id, true, "cd");
        pump(f);
        assert_got(f, "abcd", 1);
        respond(f, 200);
        expect_answer(f, id, "200", "ok");
    }
    ask(f, 5, false, "POST", "/late", NULL);
    send_bytes(f, 5, WINDOW);
    pump(f);
    assert_int_equal(returned(f, 5), 0);
    respond(f, 401);
    assert_string_equal(answer_field(f, 5, ":status"), "401");
    assert_false(f->stream.runs);
}

static void many_heads_are_started_in_turns(void **state)
{
    struct fixture *f = *state;
    for (uint32_t id = 1; id < 201; id += 2) {
        post(f, id);
        send_text(f, id, true, "body");
    }
    feed(f);
    assert_in_range(f->stream.requests, 1, 50);
    for (size_t turns = 0; turns < 100; turns++)
        wire_connection_tick(f->connection, f->now);
    assert_int_equal(f->stream.requests, 100);
    wire_connection_check(f->connection);
}

static void early_bytes_without_memory_are_refused(void **state)
{
    struct fixture *f = *state;
    test_memory_init(&f->memory, 50000);
    post(f, 1);
    send_bytes(f, 1, WINDOW);
    pump(f);
    assert_string_equal(answer_field(f, 1, ":status"), "429");
    assert_int_equal(f->stream.requests, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(body_is_passed_as_it_arrives, setup, teardown),
        cmocka_unit_test_setup_teardown(body_that_arrives_with_its_head_is_passed_after_on_request,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(request_without_a_body_has_none, setup, teardown),
        cmocka_unit_test_setup_teardown(long_body_holds_no_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(withheld_body_gets_no_window_back, setup, teardown),
        cmocka_unit_test_setup_teardown(body_that_stops_is_reset_until_the_answer_begins, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(answer_may_end_before_the_body, setup, teardown),
        cmocka_unit_test_setup_teardown(forgotten_request_is_freed_when_nothing_needs_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(request_that_is_reset_before_its_turn_costs_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(body_waits_until_the_client_is_admitted, setup, teardown),
        cmocka_unit_test_setup_teardown(many_heads_are_started_in_turns, setup, teardown),
        cmocka_unit_test_setup_teardown(early_bytes_without_memory_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
