#include "wire/http/http2/endpoint.h"

#include "wire/http/http2/endpoint_fixture_test.h"

static int setup(void **state)
{
    fixture_setup(state);
    struct fixture *f = *state;
    return http_routes_add(f->routes, test_routes, COUNT_OF(test_routes), &f->site) == ST_OK ? 0
                                                                                             : -1;
}

static int teardown(void **state)
{
    return fixture_teardown(state);
}

static void requests_find_the_same_routes_as_http1(void **state)
{
    struct fixture *f = *state;
    get(f, 1, "/health?x=y");
    get(f, 3, "/nope");
    ask(f, 5, false, "POST", "/chunks/a", NULL);
    test_frame(&f->in, H2_DATA, 0, 5, SLICE_LITERAL("hel"));
    test_frame(&f->in, H2_DATA, H2_FLAG_END_STREAM, 5, SLICE_LITERAL("lo"));
    pump(f);
    expect_answer(f, 1, "200", "{\"health\":\"true\"}");
    assert_string_equal(answer_field(f, 1, "content-type"), "application/json");
    assert_string_equal(answer_field(f, 1, "content-length"), "17");
    expect_answer(f, 3, "404", "404 page not found\n");
    assert_string_equal(answer_field(f, 3, "x-content-type-options"), "nosniff");
    expect_answer(f, 5, "200", "<hello>");
    assert_string_equal(answer_field(f, 5, "content-length"), "");
    assert_int_equal(f->site.ends, 2);
    assert_int_equal(test_error(buf_slice(&f->out), 0), -1);
}

static void grpc_is_detected_by_its_content_type(void **state)
{
    struct fixture *f = *state;
    ask(f, 1, true, "POST", "/health",
        (const char *const[]){"content-type", "application/grpc", NULL});
    ask(f, 3, true, "POST", "/health",
        (const char *const[]){"content-type", "application/json", NULL});
    pump(f);
    assert_string_equal(answer_field(f, 1, "grpc-status"), "12");
    expect_answer(f, 3, "200", "{\"health\":\"true\"}");
}

static void without_services_everything_is_http(void **state)
{
    struct fixture *f = *state;
    grpc_services_free(f->services);
    f->services = NULL;
    ask(f, 1, true, "POST", "/health",
        (const char *const[]){"content-type", "application/grpc", NULL});
    pump(f);
    expect_answer(f, 1, "200", "{\"health\":\"true\"}");
}

static void head_request_gets_only_fields(void **state)
{
    struct fixture *f = *state;
    ask(f, 1, true, "HEAD", "/health", NULL);
    ask(f, 3, true, "HEAD", "/pull", NULL);
    f->site.big_bytes = 10;
    pump(f);
    for (uint32_t id = 1; id <= 3; id += 2)
        expect_answer(f, id, "200", "");
    assert_string_equal(answer_field(f, 1, "content-length"), "17");
}

static void many_streams_are_answered_concurrently(void **state)
{
    struct fixture *f = *state;
    get(f, 1, "/later");
    for (uint32_t id = 3; id < 2003; id += 2)
        get(f, id, "/health");
    pump(f);
    for (uint32_t id = 3; id < 2003; id += 2)
        assert_true(answer_ended(f, id));
    assert_int_equal(f->outputs, 0);
    http_respond(f->site.later, 201, SLICE_EMPTY, SLICE_LITERAL("late"));
    assert_int_equal(f->outputs, 1);
    drain(f);
    expect_answer(f, 1, "201", "late");
    assert_true(wire_connection_idle(f->connection));
}

static void source_is_pulled_as_the_window_opens(void **state)
{
    struct fixture *f = *state;
    test_memory_init(&f->memory, 20000); /* nothing but heads is ever queued */
    f->site.big_bytes = 1000000;
    get(f, 1, "/pull");
    pump(f);
    assert_int_equal(test_data_bytes(buf_slice(&f->out), 1), 65535);
    window_of_all(f, 100000);
    pump(f);
    assert_int_equal(test_data_bytes(buf_slice(&f->out), 1), 100000);
    test_window(&f->in, 0, 1000000);
    test_window(&f->in, 1, 1000000);
    pump(f);
    assert_int_equal(test_data_bytes(buf_slice(&f->out), 1), 1000000);
    assert_true(answer_ended(f, 1));
    assert_int_equal(f->site.ends, 1);
}

static void reset_stream_ends_its_exchange_once(void **state)
{
    struct fixture *f = *state;
    static const uint8_t cancel[] = {0, 0, 0, H2_CANCEL};
    f->site.big_bytes = 1000000;
    static const char *const paths[] = {"/later", "/watch", "/pull", "/big"};
    for (uint32_t i = 0; i < COUNT_OF(paths); i++)
        get(f, 1 + 2 * i, paths[i]);
    pump(f);
    assert_int_equal(f->site.requests, 4);
    for (uint32_t i = 0; i < COUNT_OF(paths); i++)
        test_frame(&f->in, H2_RST_STREAM, 0, 1 + 2 * i, slice_of(cancel, 4));
    pump(f);
    assert_int_equal(f->site.ends, 4);
    assert_null(f->site.later);
    assert_true(wire_connection_idle(f->connection));
}

static void resets_of_requests_are_counted(void **state)
{
    struct fixture *f = *state;
    static const uint8_t cancel[] = {0, 0, 0, H2_CANCEL};
    f->limits.h2.reset_burst = 50;
    for (uint32_t id = 1; id < 201; id += 2) {
        get(f, id, "/later");
        test_frame(&f->in, H2_RST_STREAM, 0, id, slice_of(cancel, 4));
    }
    pump(f);
    assert_int_equal(test_error(buf_slice(&f->out), 0), H2_ENHANCE_YOUR_CALM);
    assert_int_equal(f->site.requests, 0); /* none was dispatched */
}

static void requests_are_dispatched_a_few_per_turn(void **state)
{
    struct fixture *f = *state;
    for (uint32_t id = 1; id < 201; id += 2)
        get(f, id, "/later"); /* which sends nothing */
    feed(f);
    size_t first = f->site.requests;
    assert_in_range(first, 1, 50);
    assert_int_equal(wire_connection_timeout(f->connection), f->now); /* it needs another turn */
    for (size_t turns = 0; turns < 100; turns++)
        wire_connection_tick(f->connection, f->now);
    assert_int_equal(f->site.requests, 100);
    assert_true(wire_connection_timeout(f->connection) > f->now);
}

static void body_beyond_the_limit_is_refused_early(void **state)
{
    struct fixture *f = *state;
    static const uint8_t much[2000];
    f->limits.http.body_bytes_max = 1000;
    ask(f, 1, false, "POST", "/chunks/", (const char *const[]){"content-length", "1001", NULL});
    ask(f, 3, false, "POST", "/chunks/", NULL);
    test_frame(&f->in, H2_DATA, 0, 3, slice_of(much, 1001));
    ask(f, 5, false, "POST", "/small", NULL);
    test_frame(&f->in, H2_DATA, H2_FLAG_END_STREAM, 5, slice_of(much, 11));
    ask(f, 7, false, "POST", "/small", NULL);
    test_frame(&f->in, H2_DATA, H2_FLAG_END_STREAM, 7, slice_of(much, 10));
    pump(f);
    for (uint32_t id = 1; id <= 5; id += 2)
        expect_answer(f, id, "413", "413 Request Entity Too Large");
    assert_string_equal(answer_field(f, 7, ":status"), "200");
    assert_int_equal(test_error(buf_slice(&f->out), 1), H2_NO_ERROR);
    assert_int_equal(test_error(buf_slice(&f->out), 3), H2_NO_ERROR);
    assert_int_equal(test_error(buf_slice(&f->out), 5), -1); /* it had sent everything */
    assert_int_equal(f->site.requests, 1);
}

static void bodies_of_a_connection_are_charged_together(void **state)
{
    struct fixture *f = *state;
    static const uint8_t much[16000];
    test_memory_init(&f->memory, 40000);
    for (uint32_t id = 1; id <= 5; id += 2) {
        ask(f, id, false, "POST", "/later", NULL);
        test_frame(&f->in, H2_DATA, H2_FLAG_END_STREAM, id, slice_of(much, sizeof(much)));
    }
    pump(f);
    expect_answer(f, 5, "429",
                  "429 Too Many Requests: clients hold too much memory, see "
                  "--max-client-bytes\n");
    assert_int_equal(f->site.requests, 2);
    http_respond(f->site.later, 200, SLICE_EMPTY, SLICE_EMPTY);
    drain(f);
    ask(f, 7, false, "POST", "/later", NULL); /* the answered one released its memory */
    test_frame(&f->in, H2_DATA, H2_FLAG_END_STREAM, 7, slice_of(much, sizeof(much)));
    pump(f);
    assert_int_equal(f->site.requests, 3);
}

static void client_that_does_not_read_gets_no_more_answers(void **state)
{
    struct fixture *f = *state;
    static const uint8_t cancel[] = {0, 0, 0, H2_CANCEL};
    f->site.big_bytes = 400000;
    for (uint32_t id = 1; id < 201; id += 2)
        get(f, id, "/big");
    pump(f);
    assert_int_equal(f->site.requests, 3); /* a megabyte and what was in progress */
    test_frame(&f->in, H2_RST_STREAM, 0, 5, slice_of(cancel, 4));
    test_frame(&f->in, H2_RST_STREAM, 0, 9, slice_of(cancel, 4)); /* it was waiting */
    pump(f);
    assert_int_equal(f->site.requests, 4);
    test_setting(&f->in, H2_SETTING_INITIAL_WINDOW_SIZE, 1000000);
    test_window(&f->in, 0, 100000000);
    pump(f);
    assert_int_equal(f->site.requests, 99);
    for (uint32_t id = 11; id < 201; id += 2)
        assert_int_equal(test_data_bytes(buf_slice(&f->out), id),
                         401408); /* whole blocks of the source */
    assert_true(wire_connection_idle(f->connection));
}

static void writing_without_memory_aborts_the_stream(void **state)
{
    struct fixture *f = *state;
    test_memory_init(&f->memory, 100000);
    f->site.big_bytes = 1000000;
    get(f, 1, "/big");
    get(f, 3, "/later");
    pump(f);
    assert_int_equal(test_error(buf_slice(&f->out), 1), H2_INTERNAL_ERROR);
    assert_int_equal(f->site.ends, 1);
    struct http_exchange *later = f->site.later;
    http_begin(later, 200, SLICE_EMPTY);
    http_abort(later);
    assert_ptr_equal(f->site.later, later); /* on_end is not called within the call */
    assert_true(wire_connection_wants_write(f->connection));
    drain(f);
    assert_int_equal(test_error(buf_slice(&f->out), 3), H2_INTERNAL_ERROR);
    assert_int_equal(f->site.ends, 2);
}

static void source_may_abort_while_it_is_called(void **state)
{
    struct fixture *f = *state;
    f->site.big_bytes = 20000;
    f->site.abort_pulls = true;
    get(f, 1, "/pull");
    pump(f);
    assert_int_equal(test_error(buf_slice(&f->out), 1), H2_INTERNAL_ERROR);
    assert_false(answer_ended(f, 1));
    assert_int_equal(f->site.ends, 1);
}

static void stalled_requests_and_answers_are_reset_and_parked_ones_not(void **state)
{
    struct fixture *f = *state;
    f->site.big_bytes = 1000000;
    ask(f, 1, false, "POST", "/chunks/", NULL);
    get(f, 3, "/pull");
    get(f, 5, "/watch");
    get(f, 7, "/later");
    pump(f);
    test_site_watch_more(f->site.watch, 5); /* but /pull has used the connection's window */
    drain(f);
    assert_int_equal(test_data_bytes(buf_slice(&f->out), 5), 0);
    assert_int_equal(wire_connection_timeout(f->connection), f->now + f->limits.http.stall_ns);
    f->now += f->limits.http.stall_ns - 1;
    wire_connection_tick(f->connection, f->now);
    drain(f);
    assert_int_equal(test_error(buf_slice(&f->out), 1), -1);
    f->now += 1;
    wire_connection_tick(f->connection, f->now);
    drain(f);
    assert_int_equal(test_error(buf_slice(&f->out), 1), H2_CANCEL);
    assert_int_equal(test_error(buf_slice(&f->out), 3), H2_CANCEL);
    assert_non_null(f->site.watch);
    assert_non_null(f->site.later);
}

static void slow_body_is_reset(void **state)
{
    struct fixture *f = *state;
    ask(f, 1, false, "POST", "/later", NULL);
    pump(f);
    for (int i = 0; i < 59; i++) {
        f->now += f->limits.http.message_ns / 60;
        test_frame(&f->in, H2_DATA, 0, 1, SLICE_LITERAL("x"));
        pump(f);
        wire_connection_tick(f->connection, f->now);
    }
    assert_int_equal(test_error(buf_slice(&f->out), 1), -1);
    f->now += f->limits.http.message_ns / 60;
    wire_connection_tick(f->connection, f->now);
    drain(f);
    assert_int_equal(test_error(buf_slice(&f->out), 1), H2_CANCEL);
}

static void bulk_leaves_window_to_others(void **state)
{
    struct fixture *f = *state;
    f->site.big_bytes = 1000000;
    f->site.bulk_pulls = true;
    get(f, 1, "/pull");
    get(f, 3, "/watch");
    pump(f);
    size_t sent = test_data_bytes(buf_slice(&f->out), 1);
    assert_in_range(sent, 1, 65535 - 10000);
    test_site_watch_more(f->site.watch, 5000);
    drain(f);
    assert_int_equal(test_data_bytes(buf_slice(&f->out), 3), 5000);
    window_of_all(f, 2000000);
    pump(f);
    assert_int_equal(test_data_bytes(buf_slice(&f->out), 1), 1000000);
    assert_true(answer_ended(f, 1));
}

static void parked_answers_are_sent_and_notified_of_the_shutdown(void **state)
{
    struct fixture *f = *state;
    get(f, 1, "/watch");
    pump(f);
    assert_false(wire_connection_wants_write(f->connection));
    test_site_watch_more(f->site.watch, 5);
    drain(f);
    assert_string_equal(answer_body(f, 1), "ppppp");
    wire_connection_shutdown(f->connection, f->now);
    get(f, 3, "/watch"); /* sent before the client read the GOAWAY */
    get(f, 5, "/health");
    pump(f);
    expect_answer(f, 1, "200", "ppppp");
    expect_answer(f, 3, "200", "");
    expect_answer(f, 5, "200", "{\"health\":\"true\"}");
    assert_int_equal(f->site.leaves, 2);
    test_frame(&f->in, H2_PING, H2_FLAG_ACK, 0, SLICE_LITERAL("vigilbye"));
    pump(f);
    assert_true(wire_connection_should_close(f->connection));
}

static bool refuse_x(struct http_exchange *exchange, void *ctx, const struct http_request *request)
{
    (*(size_t *)ctx)++;
    if (http_add_field(exchange, SLICE_LITERAL("Access-Control-Allow-Origin"), request->host) !=
        ST_OK)
        return true;
    if (!slice_equal(request->path, SLICE_LITERAL("/later")))
        return true;
    http_respond(exchange, 421, SLICE_EMPTY, SLICE_LITERAL("no"));
    return false;
}

static void gate_sees_every_request_first(void **state)
{
    struct fixture *f = *state;
    size_t seen = 0;
    http_routes_set_gate(f->routes, refuse_x, &seen);
    get(f, 1, "/later");
    get(f, 3, "/health");
    pump(f);
    expect_answer(f, 1, "421", "no");
    expect_answer(f, 3, "200", "{\"health\":\"true\"}");
    assert_string_equal(answer_field(f, 3, "access-control-allow-origin"), "x:1");
    assert_int_equal(seen, 2);
    assert_int_equal(f->site.requests, 1);
}

static bool wants_token(struct http_exchange *x, void *ctx, const struct http_request *request)
{
    struct slice token;
    (*(size_t *)ctx)++;
    if (http_request_get(request, SLICE_LITERAL("x-token"), &token))
        return true;
    http_respond(x, 401, SLICE_EMPTY, SLICE_LITERAL("who are you?"));
    return false;
}

static void caller_is_refused_before_its_body_is_kept(void **state)
{
    struct fixture *f = *state;
    static const uint8_t much[16000];
    size_t asked = 0;
    test_memory_init(&f->memory, 1 << 20);
    http_routes_set_gate(f->routes, wants_token, &asked);
    ask(f, 1, false, "POST", "/chunks/a", NULL);
    pump(f);
    assert_int_equal(asked, 0); /* it may be reset before it is dispatched */
    size_t before = account_held_bytes(f->memory.account);
    test_frame(&f->in, H2_DATA, 0, 1, slice_of(much, sizeof(much)));
    feed(f);
    assert_true(account_held_bytes(f->memory.account) < before + 1024); /* the answer */
    drain(f);
    expect_answer(f, 1, "401", "who are you?");
    assert_int_equal(test_error(buf_slice(&f->out), 1), H2_NO_ERROR);
    ask(f, 3, false, "POST", "/chunks/a",
        (const char *const[]){"content-length", "1000000000", NULL});
    pump(f);
    expect_answer(f, 3, "401", "who are you?"); /* not 413 */
    assert_int_equal(asked, 2);
    assert_int_equal(f->site.requests, 0);
}

static void admit_is_called_once_without_a_body(void **state)
{
    struct fixture *f = *state;
    size_t asked = 0;
    const char *const token[] = {"x-token", "1", NULL};
    http_routes_set_gate(f->routes, wants_token, &asked);
    ask(f, 1, false, "POST", "/chunks/a", token);
    test_frame(&f->in, H2_DATA, 0, 1, SLICE_LITERAL("hel"));
    test_frame(&f->in, H2_DATA, H2_FLAG_END_STREAM, 1, SLICE_LITERAL("lo"));
    ask(f, 3, true, "GET", "/health", token);
    pump(f);
    expect_answer(f, 1, "200", "<hello>");
    expect_answer(f, 3, "200", "{\"health\":\"true\"}");
    assert_int_equal(asked, 2);
}

static void respond_whole(struct http_exchange *x, void *service,
                          const struct http_request *request)
{
    static const uint8_t page[100000];
    struct test_site *site = service;
    (void)request;
    site->requests++;
    assert_int_equal(
        http_add_field(x, SLICE_LITERAL("Content-Encoding"), SLICE_LITERAL("identity")), ST_OK);
    http_respond(x, 200, SLICE_LITERAL("text/plain"), slice_of(page, sizeof(page)));
}

/* A write may have taken effect: the answer must not invite the client to repeat it. */
static void answer_without_memory_is_replaced_by_a_short_one(void **state)
{
    struct fixture *f = *state;
    static const struct http_route route = {
        .path = "/whole", .on_request = respond_whole, .on_end = test_site_end};
    assert_int_equal(http_routes_add(f->routes, &route, 1, &f->site), ST_OK);
    test_memory_init(&f->memory, 50000);
    get(f, 1, "/whole");
    ask(f, 3, true, "POST", "/whole", NULL);
    pump(f);
    assert_string_equal(answer_field(f, 1, ":status"), "429");
    assert_string_equal(answer_field(f, 1, "retry-after"), "1");
    assert_string_equal(answer_field(f, 1, "content-encoding"), ""); /* it has none */
    assert_string_equal(answer_field(f, 3, ":status"), "500");
    assert_true(answer_ended(f, 1) && answer_ended(f, 3));
    assert_int_equal(f->site.requests, 2);
}

static void fields_of_an_answer_are_limited_to_one_header_block(void **state)
{
    struct fixture *f = *state;
    char value[1001];
    memset(value, 'v', sizeof(value));
    get(f, 1, "/later");
    pump(f);
    struct http_exchange *x = f->site.later;
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(http_add_field(x, SLICE_LITERAL("X-Long"), slice_of(value, 1001)), ST_OK);
    assert_int_equal(http_add_field(x, SLICE_LITERAL("X-Long"), slice_of(value, 1001)), ST_LIMIT);
    assert_int_equal(http_add_field(x, SLICE_LITERAL("X:y"), SLICE_EMPTY), ST_INVALID);
    assert_int_equal(http_add_field(x, SLICE_LITERAL("A"), SLICE_LITERAL("b\nc")), ST_INVALID);
    http_respond(x, 200, SLICE_LITERAL("text/plain"), SLICE_LITERAL("done"));
    drain(f);
    expect_answer(f, 1, "200", "done");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(requests_find_the_same_routes_as_http1),
        TEST(grpc_is_detected_by_its_content_type),
        TEST(without_services_everything_is_http),
        TEST(head_request_gets_only_fields),
        TEST(many_streams_are_answered_concurrently),
        TEST(source_is_pulled_as_the_window_opens),
        TEST(reset_stream_ends_its_exchange_once),
        TEST(resets_of_requests_are_counted),
        TEST(requests_are_dispatched_a_few_per_turn),
        TEST(body_beyond_the_limit_is_refused_early),
        TEST(bodies_of_a_connection_are_charged_together),
        TEST(client_that_does_not_read_gets_no_more_answers),
        TEST(writing_without_memory_aborts_the_stream),
        TEST(source_may_abort_while_it_is_called),
        TEST(stalled_requests_and_answers_are_reset_and_parked_ones_not),
        TEST(slow_body_is_reset),
        TEST(bulk_leaves_window_to_others),
        TEST(parked_answers_are_sent_and_notified_of_the_shutdown),
        TEST(gate_sees_every_request_first),
        TEST(caller_is_refused_before_its_body_is_kept),
        TEST(admit_is_called_once_without_a_body),
        TEST(answer_without_memory_is_replaced_by_a_short_one),
        TEST(fields_of_an_answer_are_limited_to_one_header_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
