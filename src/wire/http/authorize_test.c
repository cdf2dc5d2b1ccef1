/* Routes that need time to admit a client (route.h: authorize), over HTTP/1.1 and HTTP/2. */
#include "wire/connection.h"
#include "wire/h2/client_test.h"
#include "wire/h2/hpack.h"
#include "wire/http/routes.h"
#include "wire/memory_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)

enum { ASKED_MAX = 64, READ_BYTES = 64 * 1024, STREAM_WINDOW = 64 * 1024 };

struct fixture {
    struct wire_limits limits;
    struct http_routes *routes;
    struct wire_server *server;
    struct wire_connection *connection;
    struct test_memory memory;
    struct http_exchange *asked[ASKED_MAX]; /* in order; NULL: it has ended */
    size_t asked_count, requests, ends;
    enum { DECIDE_LATER, AUTHORIZE_NOW, REFUSE_NOW } mode;
    struct buf in, out;
    int64_t now;
    size_t outputs;
};

static void refuse(struct http_exchange *x)
{
    http_respond(x, 401, SLICE_LITERAL("text/plain"), SLICE_LITERAL("who are you?"));
}

static void authorize(struct http_exchange *x, void *service, const struct http_request *request)
{
    struct fixture *f = service;
    (void)request;
    assert_true(f->asked_count < ASKED_MAX);
    f->asked[f->asked_count++] = x;
    if (f->mode == AUTHORIZE_NOW)
        http_authorized(x);
    else if (f->mode == REFUSE_NOW)
        refuse(x);
}

/* Answers with the number of bytes and their sum. */
static void on_request(struct http_exchange *x, void *service, const struct http_request *request)
{
    char text[64];
    unsigned sum = 0;
    for (size_t i = 0; i < request->body.len; i++)
        sum += request->body.ptr[i];
    int n = snprintf(text, sizeof(text), "<%zu bytes, %u>", request->body.len, sum);
    ((struct fixture *)service)->requests++;
    http_respond(x, 200, SLICE_LITERAL("text/plain"), slice_of(text, (size_t)n));
}

static void on_end(struct http_exchange *x, void *service)
{
    struct fixture *f = service;
    f->ends++;
    for (size_t i = 0; i < f->asked_count; i++) {
        if (f->asked[i] == x)
            f->asked[i] = NULL;
    }
}

static const struct http_route rows[] = {
    {.path = "/asked", .authorize = authorize, .on_request = on_request, .on_end = on_end},
    {.path = "/short",
     .authorize = authorize,
     .on_request = on_request,
     .on_end = on_end,
     .body_bytes_max = 10},
};

static void on_output(void *owner)
{
    ((struct fixture *)owner)->outputs++;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->limits = WIRE_LIMITS_DEFAULT;
    f->now = SECOND;
    test_memory_init(&f->memory, 16 << 20);
    assert_int_equal(http_routes_new(&f->routes), ST_OK);
    assert_int_equal(http_routes_add(f->routes, rows, COUNT_OF(rows), f), ST_OK);
    assert_int_equal(wire_server_new(NULL, f->routes, &f->limits, &f->server), ST_OK);
    struct wire_hooks hooks = {.on_output = on_output, .owner = f, .account = f->memory.account};
    assert_int_equal(wire_connection_new(f->server, hooks, f->now, &f->connection), ST_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    wire_connection_free(f->connection);
    assert_int_equal(f->ends, f->asked_count); /* once for each */
    wire_server_free(f->server);
    http_routes_free(f->routes);
    test_memory_fini(&f->memory);
    buf_fini(&f->in);
    buf_fini(&f->out);
    free(f);
    return 0;
}

/* -- the connection -- */

static void feed(struct fixture *f)
{
    wire_connection_feed(f->connection, buf_slice(&f->in), f->now);
    f->in.len = 0;
    wire_connection_check(f->connection);
}

/* Like a connection of net/: it stops when nothing was filled. */
static void drain(struct fixture *f)
{
    uint8_t room[WIRE_FILL_ROOM_MIN];
    while (wire_connection_wants_write(f->connection)) {
        size_t n = wire_connection_fill(f->connection, room, sizeof(room), f->now);
        test_put(&f->out, slice_of(room, n));
        if (n == 0)
            break;
    }
    wire_connection_check(f->connection);
}

static void pump(struct fixture *f)
{
    feed(f);
    drain(f);
}

/* The route decides; afterwards the connection's owner must have been called. */
static void decide(struct fixture *f, size_t i, bool allowed)
{
    size_t outputs = f->outputs;
    assert_non_null(f->asked[i]);
    if (allowed)
        http_authorized(f->asked[i]);
    else
        refuse(f->asked[i]);
    assert_true(f->outputs > outputs);
    drain(f);
}

static size_t held(const struct fixture *f)
{
    return account_held_bytes(f->memory.account);
}

static size_t count_of(struct fixture *f, const char *text)
{
    size_t n = 0;
    struct slice rest = buf_slice(&f->out);
    for (const uint8_t *at; rest.len && (at = memmem(rest.ptr, rest.len, text, strlen(text))); n++)
        rest = slice_sub(rest, (size_t)(at - rest.ptr) + 1, rest.len - (size_t)(at - rest.ptr) - 1);
    return n;
}

/* Sends body bytes as a client does: only while the server reads. Returns how many were read. */
static size_t send_body(struct fixture *f, size_t bytes)
{
    static uint8_t block[READ_BYTES];
    size_t sent = 0;
    memset(block, 1, sizeof(block));
    while (sent < bytes && wire_connection_wants_read(f->connection)) {
        size_t n = size_min(bytes - sent, sizeof(block));
        test_put(&f->in, slice_of(block, n));
        pump(f);
        sent += n;
    }
    return sent;
}

static void send_text(struct fixture *f, const char *text)
{
    test_put(&f->in, slice_from_text(text));
    pump(f);
}

#define POST(more) "POST /asked HTTP/1.1\r\nHost: x\r\n" more "\r\n"

/* -- HTTP/1.1 -- */

static void body_stays_in_the_socket_until_the_client_is_authorized(void **state)
{
    struct fixture *f = *state;
    send_text(f, POST("Content-Length: 1000000\r\n"));
    size_t before = held(f), sent = send_body(f, 1000000);
    assert_int_equal(sent, READ_BYTES); /* one piece is read to notice the end of the connection */
    assert_true(held(f) <= before + 2 * READ_BYTES);
    assert_int_equal(f->out.len, 0);
    assert_int_equal(f->requests, 0);
    decide(f, 0, true);
    assert_int_equal(send_body(f, 1000000 - sent), 1000000 - sent);
    assert_int_equal(count_of(f, "<1000000 bytes, 1000000>"), 1);
    assert_int_equal(f->asked_count, 1);
}

static void refused_body_is_not_read(void **state)
{
    struct fixture *f = *state;
    send_text(f, POST("Content-Length: 1000000\r\n"));
    assert_int_equal(send_body(f, 1000000), READ_BYTES);
    decide(f, 0, false);
    assert_int_equal(count_of(f, "HTTP/1.1 401 Unauthorized\r\n"), 1);
    assert_int_equal(count_of(f, "Connection: close\r\n"), 1);
    assert_true(wire_connection_should_close(f->connection));
    assert_int_equal(held(f), 0);
    assert_int_equal(f->requests, 0);
}

static void short_refused_body_is_dropped_and_the_connection_kept(void **state)
{
    struct fixture *f = *state;
    send_text(f, POST("Content-Length: 6\r\n") "GET");
    decide(f, 0, false);
    assert_int_equal(count_of(f, "HTTP/1.1 401 Unauthorized\r\n"), 1);
    assert_int_equal(count_of(f, "Connection: close\r\n"), 0);
    f->mode = AUTHORIZE_NOW;
    send_text(f, "me!" POST("Content-Length: 2\r\n") "\1\1");
    assert_int_equal(count_of(f, "<2 bytes, 2>"), 1);
}

static void continue_is_sent_after_the_decision(void **state)
{
    struct fixture *f = *state;
    send_text(f, POST("Content-Length: 3\r\nExpect: 100-continue\r\n"));
    assert_int_equal(f->out.len, 0);
    decide(f, 0, true);
    assert_int_equal(count_of(f, "100 Continue"), 1);
    assert_int_equal(f->requests, 0);
    send_text(f, "\1\1\1" POST("Content-Length: 3\r\nExpect: 100-continue\r\n"));
    assert_int_equal(count_of(f, "<3 bytes, 3>"), 1);
    decide(f, 1, false);
    assert_int_equal(count_of(f, "100 Continue"), 1);
    assert_int_equal(count_of(f, "HTTP/1.1 401"), 1);
}

static void pipelined_requests_are_decided_and_answered_in_order(void **state)
{
    struct fixture *f = *state;
    send_text(
        f,
        POST("Content-Length: 1\r\n") "\1" POST(
            "Transfer-Encoding: chunked\r\n") "2\r\n\1\1\r\n0\r\n\r\n" POST("") "GET /nowhere "
                                                                                "HTTP/1.1\r\nHost: "
                                                                                "x\r\n\r\n");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(f->asked_count, i + 1);
        assert_int_equal(f->requests, i);
        assert_false(wire_connection_wants_read(f->connection));
        decide(f, i, true);
    }
    char *all = strndup((char *)f->out.ptr, f->out.len);
    const char *first = strstr(all, "<1 bytes, 1>"), *second = strstr(all, "<2 bytes, 2>"),
               *third = strstr(all, "<0 bytes, 0>"), *fourth = strstr(all, "404 page");
    assert_true(first && first < second && second < third && third < fourth);
    free(all);
}

static void body_in_chunks_is_complete_for_every_moment_of_the_decision(void **state)
{
    struct fixture *f = *state;
    static const char request[] =
        POST("Transfer-Encoding: chunked\r\n") "3\r\n\1\1\1\r\n1\r\n\1\r\n0\r\n\r\n";
    size_t head = strlen(POST("Transfer-Encoding: chunked\r\n"));
    for (size_t at = head; at < strlen(request); at++) {
        f->out.len = 0;
        for (size_t i = 0; i < strlen(request); i++) {
            test_put(&f->in, slice_of(request + i, 1));
            pump(f);
            if (i + 1 == at)
                decide(f, at - head, true);
        }
        assert_int_equal(count_of(f, "<4 bytes, 4>"), 1);
    }
}

static void client_that_half_closes_gets_its_answer(void **state)
{
    struct fixture *f = *state;
    send_text(f, POST("Content-Length: 2\r\n") "\1\1");
    wire_connection_feed_end(f->connection, f->now);
    drain(f);
    assert_false(wire_connection_should_close(f->connection));
    decide(f, 0, true);
    assert_int_equal(count_of(f, "<2 bytes, 2>"), 1);
    assert_true(wire_connection_should_close(f->connection));
}

static void client_that_half_closes_within_its_body_gets_none(void **state)
{
    struct fixture *f = *state;
    send_text(f, POST("Content-Length: 3\r\n") "\1\1");
    wire_connection_feed_end(f->connection, f->now);
    drain(f);
    decide(f, 0, true);
    assert_int_equal(f->requests, 0);
    assert_true(wire_connection_should_close(f->connection));
}

static void time_of_the_decision_is_not_the_clients(void **state)
{
    struct fixture *f = *state;
    send_text(f, POST("Content-Length: 2\r\n"));
    assert_int_equal(wire_connection_timeout(f->connection), INT64_MAX);
    f->now += 1000 * SECOND;
    wire_connection_tick(f->connection, f->now);
    decide(f, 0, true);
    int64_t at = wire_connection_timeout(f->connection);
    assert_true(at > f->now && at < f->now + 100 * SECOND);
    send_text(f, "\1\1");
    assert_int_equal(count_of(f, "<2 bytes, 2>"), 1);
}

static void arrived_bytes_without_memory_get_429(void **state)
{
    struct fixture *f = *state;
    send_text(f, POST("Content-Length: 1000000\r\n"));
    size_t all = 8 << 20;
    while (!account_charge(f->memory.account, all))
        all -= 16 * 1024;
    assert_int_equal(send_body(f, READ_BYTES), READ_BYTES);
    account_release(f->memory.account, all);
    assert_int_equal(count_of(f, "HTTP/1.1 429 Too Many Requests\r\n"), 1);
    assert_true(wire_connection_should_close(f->connection));
    assert_null(f->asked[0]); /* the late decision has no exchange */
}

static void lost_client_ends_the_exchange(void **state)
{
    struct fixture *f = *state;
    send_text(f, POST("Content-Length: 2\r\n") "\1");
    assert_non_null(f->asked[0]);
    wire_connection_free(f->connection);
    f->connection = NULL;
    assert_null(f->asked[0]);
}

static void shutdown_waits_for_the_decision(void **state)
{
    struct fixture *f = *state;
    send_text(f, POST("Content-Length: 2\r\n") "\1\1");
    wire_connection_shutdown(f->connection, f->now);
    drain(f);
    assert_false(wire_connection_should_close(f->connection));
    decide(f, 0, true);
    assert_int_equal(count_of(f, "<2 bytes, 2>"), 1);
    assert_int_equal(count_of(f, "Connection: close\r\n"), 1);
    assert_true(wire_connection_should_close(f->connection));
}

static void immediate_decisions_need_no_second_turn(void **state)
{
    struct fixture *f = *state;
    f->mode = AUTHORIZE_NOW;
    send_text(f, POST("Content-Length: 2\r\n") "\1\1");
    assert_int_equal(count_of(f, "<2 bytes, 2>"), 1);
    f->mode = REFUSE_NOW;
    send_text(f, POST("Content-Length: 2\r\n") "\1\1");
    assert_int_equal(count_of(f, "HTTP/1.1 401"), 1);
    assert_int_equal(f->requests, 1);
}

static void too_long_body_is_refused_only_after_the_decision(void **state)
{
    struct fixture *f = *state;
    send_text(f, "POST /short HTTP/1.1\r\nHost: x\r\nContent-Length: 11\r\n\r\n");
    assert_int_equal(f->out.len, 0);
    decide(f, 0, true);
    assert_int_equal(count_of(f, "HTTP/1.1 413"), 1);
}

/* -- HTTP/2 -- */

static void ask(struct fixture *f, uint32_t id, bool ends, const char *path, const char *length)
{
    uint8_t block[512], *end = block;
    const char *const fields[] = {":method", "POST", ":scheme", "http", ":path",
                                  path,      "host", "x",       NULL};
    for (size_t i = 0; fields[i]; i += 2)
        end = hpack_put_literal(end, slice_from_text(fields[i]), slice_from_text(fields[i + 1]));
    if (length)
        end = hpack_put_literal(end, SLICE_LITERAL("content-length"), slice_from_text(length));
    test_headers(&f->in, id, ends ? H2_FLAG_END_STREAM : 0, slice_of(block, (size_t)(end - block)));
}

static void send_data(struct fixture *f, uint32_t id, size_t bytes, bool ends)
{
    static uint8_t block[16384];
    memset(block, 1, sizeof(block));
    for (size_t n; bytes; bytes -= n) {
        n = size_min(bytes, sizeof(block));
        test_frame(&f->in, H2_DATA, ends && n == bytes ? H2_FLAG_END_STREAM : 0, id,
                   slice_of(block, n));
    }
}

/* How many bytes a stream may send more than at first. */
static size_t window_of(struct fixture *f, uint32_t id)
{
    struct h2_frame frame;
    struct slice payload, bytes = buf_slice(&f->out);
    size_t sum = 0;
    while (test_next(&bytes, &frame, &payload)) {
        if (frame.type == H2_WINDOW_UPDATE && frame.stream_id == id)
            sum += (size_t)payload.ptr[0] << 24 | (size_t)payload.ptr[1] << 16 |
                   (size_t)payload.ptr[2] << 8 | payload.ptr[3];
    }
    return sum;
}

static void window_stays_closed_until_the_client_is_authorized(void **state)
{
    struct fixture *f = *state;
    test_hello(&f->in);
    ask(f, 1, false, "/asked", NULL);
    send_data(f, 1, STREAM_WINDOW, false);
    pump(f);
    assert_int_equal(f->asked_count, 1);
    assert_int_equal(window_of(f, 1), 0);
    decide(f, 0, true);
    assert_true(window_of(f, 1) >= STREAM_WINDOW / 2);
    send_data(f, 1, 1000, true);
    pump(f);
    assert_int_equal(count_of(f, "<66536 bytes, 66536>"), 1);
}

/* The connection's window alone would let a client send more on other streams. */
static void many_early_bodies_stop_reading(void **state)
{
    enum { STREAMS = 40, PIECE = 16000 };
    struct fixture *f = *state;
    test_hello(&f->in);
    pump(f);
    size_t read = 0, before = held(f);
    for (uint32_t i = 0; i < STREAMS && wire_connection_wants_read(f->connection); i++) {
        ask(f, 1 + 2 * i, false, "/asked", NULL);
        send_data(f, 1 + 2 * i, PIECE, true);
        pump(f);
        read++;
    }
    assert_true(read >= 4 && read < 8);
    assert_true(held(f) < before + 8 * 2 * PIECE);
    assert_int_equal(f->asked_count, read);
    for (size_t i = 0; i < read; i++) {
        decide(f, i, i % 2 == 0);
        assert_true(i > 0 || wire_connection_wants_read(f->connection));
    }
    assert_int_equal(f->requests, (read + 1) / 2);
    assert_int_equal(count_of(f, "<16000 bytes, 16000>"), (read + 1) / 2);
    assert_int_equal(count_of(f, "who are you?"), read / 2);
    assert_true(wire_connection_wants_read(f->connection));
    assert_int_equal(held(f), before);
}

static void early_body_of_a_refused_client_is_dropped(void **state)
{
    struct fixture *f = *state;
    test_hello(&f->in);
    pump(f);
    size_t before = held(f);
    ask(f, 1, false, "/asked", NULL);
    send_data(f, 1, 30000, false);
    pump(f);
    decide(f, 0, false);
    assert_int_equal(count_of(f, "who are you?"), 1);
    assert_int_equal(test_error(buf_slice(&f->out), 1), H2_NO_ERROR);
    assert_int_equal(held(f), before);
}

static void request_may_be_complete_before_the_decision(void **state)
{
    struct fixture *f = *state;
    test_hello(&f->in);
    ask(f, 1, true, "/asked", NULL);
    ask(f, 3, false, "/asked", "3");
    send_data(f, 3, 3, true);
    pump(f);
    assert_int_equal(f->asked_count, 2);
    assert_int_equal(f->requests, 0);
    decide(f, 1, true);
    assert_int_equal(count_of(f, "<3 bytes, 3>") + count_of(f, "<0 bytes, 0>"), 1);
    decide(f, 0, true);
    assert_int_equal(f->requests, 2);
}

/* Between the decision and the next turn of the connection. */
static void request_may_be_completed_right_after_the_decision(void **state)
{
    struct fixture *f = *state;
    test_hello(&f->in);
    ask(f, 1, false, "/asked", "5");
    send_data(f, 1, 3, false);
    pump(f);
    http_authorized(f->asked[0]);
    send_data(f, 1, 2, true);
    pump(f);
    assert_int_equal(count_of(f, "<5 bytes, 5>"), 1);
    assert_int_equal(f->requests, 1);
}

static void reset_ends_the_exchange(void **state)
{
    struct fixture *f = *state;
    static const uint8_t cancel[] = {0, 0, 0, H2_CANCEL};
    test_hello(&f->in);
    ask(f, 1, false, "/asked", NULL);
    send_data(f, 1, 40000, false);
    ask(f, 3, false, "/asked", NULL);
    send_data(f, 3, 40000, false);
    pump(f);
    assert_false(wire_connection_wants_read(f->connection));
    test_frame(&f->in, H2_RST_STREAM, 0, 1, slice_of(cancel, sizeof(cancel)));
    pump(f);
    assert_null(f->asked[0]);
    assert_true(wire_connection_wants_read(f->connection));
    http_authorized(f->asked[1]);
    test_frame(&f->in, H2_RST_STREAM, 0, 3, slice_of(cancel, sizeof(cancel)));
    pump(f);
    assert_null(f->asked[1]);
}

static void time_of_the_decision_is_not_the_clients_over_http2(void **state)
{
    struct fixture *f = *state;
    test_hello(&f->in);
    ask(f, 1, false, "/asked", NULL);
    send_data(f, 1, 1, false);
    pump(f);
    for (int i = 0; i < 10; i++) {
        f->now += 100 * SECOND;
        wire_connection_tick(f->connection, f->now);
        drain(f);
    }
    assert_non_null(f->asked[0]);
    decide(f, 0, true);
    f->now += 30 * SECOND;
    wire_connection_tick(f->connection, f->now);
    assert_non_null(f->asked[0]);
    f->now += 100 * SECOND;
    wire_connection_tick(f->connection, f->now);
    assert_null(f->asked[0]); /* the body has not arrived in its time */
}

static void too_long_body_is_refused_only_after_the_decision_over_http2(void **state)
{
    struct fixture *f = *state;
    test_hello(&f->in);
    ask(f, 1, false, "/short", "11");
    send_data(f, 1, 1, false);
    ask(f, 3, false, "/short", NULL);
    send_data(f, 3, 11, false);
    ask(f, 5, false, "/asked", "1000000000");
    pump(f);
    assert_int_equal(count_of(f, "413"), 0);
    assert_int_equal(f->asked_count, 3);
    for (size_t i = 0; i < 3; i++)
        decide(f, i, true);
    assert_int_equal(count_of(f, "413 Request Entity Too Large"), 3);
    assert_int_equal(f->requests, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(body_stays_in_the_socket_until_the_client_is_authorized),
        TEST(refused_body_is_not_read),
        TEST(short_refused_body_is_dropped_and_the_connection_kept),
        TEST(continue_is_sent_after_the_decision),
        TEST(pipelined_requests_are_decided_and_answered_in_order),
        TEST(body_in_chunks_is_complete_for_every_moment_of_the_decision),
        TEST(client_that_half_closes_gets_its_answer),
        TEST(client_that_half_closes_within_its_body_gets_none),
        TEST(time_of_the_decision_is_not_the_clients),
        TEST(arrived_bytes_without_memory_get_429),
        TEST(lost_client_ends_the_exchange),
        TEST(shutdown_waits_for_the_decision),
        TEST(immediate_decisions_need_no_second_turn),
        TEST(too_long_body_is_refused_only_after_the_decision),
        TEST(window_stays_closed_until_the_client_is_authorized),
        TEST(many_early_bodies_stop_reading),
        TEST(early_body_of_a_refused_client_is_dropped),
        TEST(request_may_be_complete_before_the_decision),
        TEST(request_may_be_completed_right_after_the_decision),
        TEST(reset_ends_the_exchange),
        TEST(time_of_the_decision_is_not_the_clients_over_http2),
        TEST(too_long_body_is_refused_only_after_the_decision_over_http2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
