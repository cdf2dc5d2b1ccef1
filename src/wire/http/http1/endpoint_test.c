#include "wire/http/http1/endpoint_fixture_test.h"

#include <time.h>

static void request_is_answered_and_the_connection_kept(void **state)
{
    struct fixture *f = *state;
    exchange(f, "GET /health HTTP/1.1\r\n" HOST "\r\n");
    assert_string_equal(out_text(f), "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                     "Content-Length: 17\r\n\r\n{\"health\":\"true\"}");
    assert_false(http1_endpoint_over(f->endpoint));
    assert_true(http1_endpoint_idle(f->endpoint));
}

static void unknown_path_gets_the_404_of_go(void **state)
{
    struct fixture *f = *state;
    exchange(f, "GET /nope HTTP/1.1\r\n" HOST "\r\n");
    assert_string_equal(out_text(f), "HTTP/1.1 404 Not Found\r\n"
                                     "Content-Type: text/plain; charset=utf-8\r\n"
                                     "Content-Length: 19\r\nX-Content-Type-Options: nosniff\r\n\r\n"
                                     "404 page not found\n");
}

static void bodies_are_complete_for_every_split_of_the_bytes(void **state)
{
    struct fixture *f = *state;
    static const char *const requests[] = {
        "POST /chunks/x HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello",
        "POST /chunks/x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
        "2;x=y\r\nhe\r\n03\r\nllo\r\n0\r\nTrailer: dropped\r\n\r\n",
    };
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        struct slice bytes = slice_from_text(requests[i]);
        for (size_t step = 1; step <= bytes.len; step++) {
            f->out.len = 0;
            for (size_t at = 0; at < bytes.len; at += step)
                http1_endpoint_feed(f->endpoint,
                                    slice_sub(bytes, at, size_min(step, bytes.len - at)), f->now);
            drain(f);
            assert_string_equal(out_text(f), "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                                             "Transfer-Encoding: chunked\r\n\r\n"
                                             "1\r\n<\r\n5\r\nhello\r\n1\r\n>\r\n0\r\n\r\n");
        }
    }
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    struct fixture *f = *state;
    feed(f, "GET /later HTTP/1.1\r\n" HOST "\r\nGET /health HTTP/1.1\r\n" HOST "\r\n"
            "POST /chunks/ HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx"
            "GET /nope HTTP/1.1\r\n" HOST "\r\n");
    drain(f);
    assert_int_equal(f->out.len, 0);
    assert_int_equal(f->site.requests, 1);
    assert_false(http1_endpoint_wants_read(f->endpoint));
    http_respond(f->site.later, 201, SLICE_EMPTY, SLICE_EMPTY);
    assert_int_equal(f->outputs, 1);
    drain(f);
    assert_int_equal(f->site.requests, 3);
    const char *text = out_text(f);
    const char *first = strstr(text, "201 Created"), *second = strstr(text, "health"),
               *third = strstr(text, "1\r\nx"), *fourth = strstr(text, "404");
    assert_true(first && first < second && second < third && third < fourth);
    assert_true(http1_endpoint_wants_read(f->endpoint));
}

static void head_gets_no_body(void **state)
{
    struct fixture *f = *state;
    exchange(f, "HEAD /health HTTP/1.1\r\n" HOST "\r\nHEAD /chunks/ HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(count_of(f, "Content-Length: 17"), 1);
    assert_int_equal(count_of(f, "true"), 0);
    assert_int_equal(count_of(f, "<"), 0);
}

static void http_1_0_clients_get_the_end_of_the_connection(void **state)
{
    struct fixture *f = *state;
    exchange(f, "POST /chunks/ HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi");
    assert_string_equal(out_text(f), "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                                     "Connection: close\r\n\r\n<hi>");
    assert_true(http1_endpoint_over(f->endpoint));
}

static void continue_is_sent_when_expected(void **state)
{
    struct fixture *f = *state;
    exchange(f, "POST /chunks/ HTTP/1.1\r\n" HOST "Content-Length: 2\r\n"
                "Expect: 100-continue\r\n\r\n");
    assert_string_equal(out_text(f), "HTTP/1.1 100 Continue\r\n\r\n");
    exchange(f, "hi");
    assert_int_equal(count_of(f, "hi"), 1);
    /* HTTP/1.0 has no interim responses. */
    restart(f);
    exchange(f, "POST /chunks/ HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
    assert_string_equal(out_text(f), "");
    exchange(f, "hi");
    assert_int_equal(count_of(f, "HTTP/1.1 200"), 1);
}

struct refused {
    const char *text;
    const char *status;
};

static void bad_requests_are_refused_and_the_connection_ends(void **state)
{
    struct fixture *f = *state;
    static const struct refused rows[] = {
        {"GET / HTTP/1.1\r\n\r\n", "400 Bad Request"},
        {"GET / HTTP/1.1\nHost: x\n\n\r\n\r\n", "400 Bad Request"},
        {"POST /chunks/ HTTP/1.1\r\n" HOST "Content-Length: 9999999\r\n\r\n", "413 Request Entity"},
        {"POST /chunks/ HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "400 Bad"},
        {"POST /chunks/ HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\nabc", "400 Bad"},
        {"POST /chunks/ HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nffffffff\r\n",
         "413 Re"},
        {"POST /chunks/ HTTP/1.1\r\n" HOST "Transfer-Encoding: x\r\n\r\n", "501 Not Implemented"},
        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 Bad"},
        {"GET / HTTP/3.0\r\n" HOST "\r\n", "505 HTTP Version"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        restart(f);
        exchange(f, rows[i].text);
        if (count_of(f, rows[i].status) != 2)
            print_error("%s\n%s\n", rows[i].text, out_text(f));
        assert_int_equal(count_of(f, rows[i].status), 2); /* status line and text */
        assert_int_equal(count_of(f, "Connection: close"), 1);
        assert_true(http1_endpoint_over(f->endpoint));
        exchange(f, "GET /health HTTP/1.1\r\n" HOST "\r\n"); /* not read any more */
        assert_int_equal(f->site.requests, 0);
    }
}

static void head_beyond_64_kib_is_refused(void **state)
{
    struct fixture *f = *state;
    feed(f, "GET / HTTP/1.1\r\n" HOST);
    static char line[1025] = "a: ";
    memset(line + 3, 'v', 1019);
    memcpy(line + 1022, "\r\n", 3);
    for (size_t i = 0; i < 65; i++)
        feed(f, line);
    drain(f);
    assert_int_equal(count_of(f, "431 Request Header"), 2);
    assert_true(http1_endpoint_over(f->endpoint));
}

static void trailers_beyond_the_limit_are_refused(void **state)
{
    struct fixture *f = *state;
    f->limits.head_bytes_max = 1000;
    feed(f, "POST /chunks/ HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n");
    for (size_t i = 0; i < 40; i++)
        feed(f, "trailer: trailer trailer trailer\r\n");
    drain(f);
    assert_int_equal(count_of(f, "431 Request Header"), 2);
}

static void endless_chunk_line_is_refused(void **state)
{
    struct fixture *f = *state;
    feed(f, "POST /chunks/ HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1;");
    for (size_t i = 0; i < 40; i++)
        feed(f, "extension extension extension");
    drain(f);
    assert_int_equal(count_of(f, "400 Bad"), 2);
}

static void long_chunk_line_is_refused_when_it_arrives_in_one_piece(void **state)
{
    struct fixture *f = *state;
    static char line[2000];
    memset(line, 'x', sizeof(line) - 1);
    feed(f, "POST /chunks/ HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    line[0] = '1';
    line[1] = ';';
    memcpy(line + sizeof(line) - 7, "\r\na\r\n", 6);
    exchange(f, line);
    assert_int_equal(count_of(f, "400 Bad"), 2);
}

/* Moving the rest forward after each chunk took a tenth of a second for one read. */
static void tiny_chunks_cost_no_more_than_their_bytes(void **state)
{
    struct fixture *f = *state;
    static char chunks[64 * 1024];
    for (size_t i = 0; i < sizeof(chunks); i++)
        chunks[i] = "1\r\na\r\n"[i % 6];
    feed(f, "POST /chunks/ HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    clock_t start = clock();
    for (size_t i = 0; i < 60; i++)
        http1_endpoint_feed(f->endpoint, slice_of(chunks, sizeof(chunks) / 6 * 6), f->now);
    assert_true(clock() - start < 2 * CLOCKS_PER_SEC);
    feed(f, "0\r\n\r\n");
    assert_int_equal(f->site.requests, 1);
}

static void chunks_beyond_the_body_limit_are_refused(void **state)
{
    struct fixture *f = *state;
    f->http.body_bytes_max = 10;
    exchange(f, "POST /chunks/ HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                "8\r\n12345678\r\n8\r\n12345678\r\n");
    assert_int_equal(count_of(f, "413 Request"), 2);
}

static void limit_memory(struct fixture *f, size_t bytes)
{
    test_memory_init(&f->memory, bytes);
    restart(f);
}

static void answer_without_memory_ends_the_connection(void **state)
{
    struct fixture *f = *state;
    limit_memory(f, 200000);
    f->site.big_bytes = 200000;
    exchange(f, "GET /big HTTP/1.1\r\n" HOST "\r\n");
    assert_true(http1_endpoint_over(f->endpoint));
    assert_string_equal(http1_endpoint_reason(f->endpoint), "out of memory");
    assert_in_range(account_held_bytes(f->memory.account), 0, 5000); /* the head */
}

static void body_without_memory_is_refused(void **state)
{
    struct fixture *f = *state;
    static char body[1001], all[200001];
    memset(body, 'b', sizeof(body) - 1);
    memset(all, 'b', sizeof(all) - 1);
    limit_memory(f, 300000);
    for (int whole = 0; whole < 2; whole++) {
        restart(f);
        feed(f, "POST /later HTTP/1.1\r\n" HOST "Content-Length: 1000000\r\n\r\n");
        for (int i = 0; i < 300 && !whole; i++)
            feed(f, body);
        if (whole)
            feed(f, all);
        drain(f);
        assert_int_equal(count_of(f, "HTTP/1.1 429 Too Many Requests"), 1);
        assert_int_equal(count_of(f, "see --max-client-bytes"), 1);
        assert_true(http1_endpoint_over(f->endpoint));
    }
    assert_int_equal(f->site.requests, 0);
}

static void slow_clients_are_disconnected(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(http1_endpoint_timeout(f->endpoint), f->now + f->limits.idle_ns);
    http1_endpoint_tick(f->endpoint, f->now + f->limits.idle_ns);
    assert_true(http1_endpoint_over(f->endpoint)); /* idle */

    restart(f);
    feed(f, "GET / HT");
    f->now += SECOND;
    feed(f, "TP"); /* a byte now and then does not extend the timeout */
    assert_int_equal(http1_endpoint_timeout(f->endpoint), f->now - SECOND + f->limits.head_ns);
    http1_endpoint_tick(f->endpoint, f->now + f->limits.head_ns);
    drain(f);
    assert_int_equal(count_of(f, "408 Request Timeout"), 2);
    assert_true(http1_endpoint_over(f->endpoint));

    restart(f);
    feed(f, "POST /chunks/ HTTP/1.1\r\n" HOST "Content-Length: 50000\r\n\r\nx");
    f->now += f->http.message_ns - SECOND;
    feed(f, "x"); /* nor does it here */
    assert_int_equal(http1_endpoint_timeout(f->endpoint), f->now + SECOND);
    static char piece[16385];
    memset(piece, 'x', sizeof(piece) - 1);
    feed(f, piece); /* but this much adds a second */
    assert_int_equal(http1_endpoint_timeout(f->endpoint), f->now + 2 * SECOND);
    http1_endpoint_tick(f->endpoint, f->now + 2 * SECOND);
    drain(f);
    assert_int_equal(count_of(f, "408 Request Timeout"), 2);
    assert_true(http1_endpoint_over(f->endpoint));

    restart(f); /* an answer that the client does not read */
    feed(f, "GET /health HTTP/1.1\r\n" HOST "\r\n");
    http1_endpoint_tick(f->endpoint, f->now + f->http.stall_ns);
    assert_true(http1_endpoint_over(f->endpoint));

    restart(f); /* but a handler has no time limit */
    feed(f, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(http1_endpoint_timeout(f->endpoint), INT64_MAX);
}

static void shutdown_finishes_the_current_answer(void **state)
{
    struct fixture *f = *state;
    feed(f, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    http1_endpoint_shutdown(f->endpoint, f->now);
    assert_false(http1_endpoint_over(f->endpoint));
    http_respond(f->site.later, 200, SLICE_EMPTY, SLICE_LITERAL("x"));
    drain(f);
    assert_int_equal(count_of(f, "Connection: close"), 1);
    assert_true(http1_endpoint_over(f->endpoint));
}

static void extra_fields_are_sent_and_cannot_inject_lines(void **state)
{
    struct fixture *f = *state;
    feed(f, "GET /later HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    struct http_exchange *x = f->site.later;
    http_exchange_set_user(x, f);
    assert_ptr_equal(http_exchange_user(x), f);
    http_exchange_set_user(x, NULL);
    assert_int_equal(http_add_field(x, SLICE_LITERAL("A"), SLICE_LITERAL("b\r\nC: d")), ST_INVALID);
    assert_int_equal(http_add_field(x, SLICE_LITERAL("Allow"), SLICE_LITERAL("GET")), ST_OK);
    http_respond(x, 405, SLICE_EMPTY, SLICE_EMPTY);
    http_respond(x, 200, SLICE_EMPTY, SLICE_EMPTY); /* only one answer is sent */
    drain(f);
    assert_string_equal(out_text(f), "HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n"
                                     "Connection: keep-alive\r\nAllow: GET\r\n\r\n");
}

static void long_stream_holds_only_what_is_unsent(void **state)
{
    struct fixture *f = *state;
    static uint8_t block[1000], room[1010];
    limit_memory(f, 20000);
    feed(f, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    struct http_exchange *x = f->site.later;
    http_begin(x, 200, SLICE_EMPTY);
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(http_write(x, slice_of(block, sizeof(block))), ST_OK);
        http1_endpoint_fill(f->endpoint, room, sizeof(room), f->now);
    }
    http_end(x);
    assert_int_equal(http_write(x, SLICE_LITERAL("late")), ST_CLOSED);
    drain(f);
    assert_true(http1_endpoint_idle(f->endpoint));
}

static void sources_are_pulled_in_chunks_and_queue_nothing(void **state)
{
    struct fixture *f = *state;
    limit_memory(f, 4000); /* nothing but heads is ever queued */
    f->site.big_bytes = 300000;
    feed(f, "GET /pull HTTP/1.1\r\n" HOST "\r\nGET /health HTTP/1.1\r\n" HOST "\r\n");
    drain(f);
    assert_int_equal(count_of(f, "Transfer-Encoding: chunked"), 1);
    size_t pulled = 0;
    for (size_t i = 0; i < f->out.len; i++)
        pulled += f->out.ptr[i] == 'p';
    assert_in_range(pulled, 300000, 300000 + 10); /* plus those in the names of fields */
    assert_int_equal(count_of(f, "\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n"), 1);
    assert_true(http1_endpoint_idle(f->endpoint));
}

static void empty_source_ends_the_answer_immediately(void **state)
{
    struct fixture *f = *state;
    uint8_t room[8192];
    feed(f, "GET /watch HTTP/1.1\r\n" HOST "\r\n");
    drain(f);
    struct test_flow *flow = http_exchange_user(f->site.watch);
    flow->watches = false;
    http_wake(f->site.watch);
    assert_int_equal(http1_endpoint_fill(f->endpoint, room, sizeof(room), f->now), 5);
    assert_memory_equal(room, "0\r\n\r\n", 5);
}

static void http_1_0_clients_get_a_source_without_chunks(void **state)
{
    struct fixture *f = *state;
    f->site.big_bytes = 3000;
    exchange(f, "GET /pull HTTP/1.0\r\n\r\n");
    assert_int_equal(count_of(f, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\npppp"), 1);
    assert_int_equal(f->out.len, strlen("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n") + 3000);
    assert_true(http1_endpoint_over(f->endpoint));
}

static void aborted_answer_ends_the_connection_without_the_last_chunk(void **state)
{
    struct fixture *f = *state;
    f->site.big_bytes = 3000;
    f->site.abort_pulls = true;
    exchange(f, "GET /pull HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(count_of(f, "0\r\n\r\n"), 0);
    assert_true(http1_endpoint_over(f->endpoint));
}

static void answer_that_is_aborted_before_it_begins_is_a_refusal(void **state)
{
    struct fixture *f = *state;
    feed(f, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    http_abort(f->site.later);
    drain(f);
    assert_int_equal(count_of(f, "HTTP/1.1 429 Too Many Requests\r\n"), 1);
    assert_int_equal(count_of(f, "Retry-After: 1\r\n"), 1);
    feed(f, "POST /later HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n");
    http_abort(f->site.later); /* it may have taken effect: not to be repeated */
    drain(f);
    assert_int_equal(count_of(f, "HTTP/1.1 500 Internal Server Error\r\n"), 1);
    assert_int_equal(count_of(f, "Retry-After"), 1);
    assert_false(http1_endpoint_over(f->endpoint));
}

static void stalled_source_ends_the_connection(void **state)
{
    struct fixture *f = *state;
    uint8_t room[1000];
    f->site.big_bytes = 100000;
    feed(f, "GET /pull HTTP/1.1\r\n" HOST "\r\n");
    http1_endpoint_fill(f->endpoint, room, sizeof(room), f->now);
    assert_int_equal(http1_endpoint_timeout(f->endpoint), f->now + f->http.stall_ns);
    http1_endpoint_tick(f->endpoint, f->now + f->http.stall_ns);
    assert_true(http1_endpoint_over(f->endpoint));
}

static void route_refuses_bodies_beyond_its_limit(void **state)
{
    struct fixture *f = *state;
    exchange(f, "POST /small HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n0123456789");
    assert_int_equal(count_of(f, "200 OK"), 1);
    exchange(f, "POST /small HTTP/1.1\r\n" HOST "Content-Length: 11\r\n\r\n");
    assert_int_equal(count_of(f, "413 Request Entity Too Large"), 2); /* status and text */
    assert_true(http1_endpoint_over(f->endpoint));
}

/* -- admission -- */

/* Requests without X-Token are refused. */
static bool wants_token(struct http_exchange *x, void *ctx, const struct http_request *request)
{
    struct slice token;
    (*(size_t *)ctx)++;
    if (http_request_get(request, SLICE_LITERAL("x-token"), &token))
        return true;
    http_respond(x, 401, SLICE_LITERAL("text/plain"), SLICE_LITERAL("who are you?"));
    return false;
}

static void caller_is_refused_before_its_body_is_kept(void **state)
{
    struct fixture *f = *state;
    size_t asked = 0;
    char block[4096];
    memset(block, 'x', sizeof(block) - 1);
    block[sizeof(block) - 1] = '\0';
    limit_memory(f, 1 << 20);
    http_routes_set_gate(f->routes, wants_token, &asked);
    exchange(f, "POST /chunks/x HTTP/1.1\r\n" HOST "Content-Length: 1000000\r\n\r\n");
    assert_int_equal(count_of(f, "HTTP/1.1 401 Unauthorized\r\n"), 1);
    assert_int_equal(count_of(f, "Connection: close\r\n"), 1);
    for (int i = 0; i < 100; i++) {
        exchange(f, block);
        assert_int_equal(account_held_bytes(f->memory.account), 0);
    }
    assert_true(http1_endpoint_over(f->endpoint));
    assert_int_equal(f->site.requests, 0);
    assert_int_equal(asked, 1);
}

static void body_in_chunks_of_a_refused_caller_ends_the_connection(void **state)
{
    struct fixture *f = *state;
    size_t asked = 0;
    http_routes_set_gate(f->routes, wants_token, &asked);
    exchange(f, "POST /chunks/x HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    assert_int_equal(count_of(f, "HTTP/1.1 401 Unauthorized\r\n"), 1);
    assert_int_equal(count_of(f, "Connection: close\r\n"), 1);
    assert_true(http1_endpoint_over(f->endpoint));
}

static void refused_caller_does_not_get_continue(void **state)
{
    struct fixture *f = *state;
    size_t asked = 0;
    http_routes_set_gate(f->routes, wants_token, &asked);
    exchange(f, "POST /chunks/x HTTP/1.1\r\n" HOST
                "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    assert_int_equal(count_of(f, "100 Continue"), 0);
    assert_int_equal(count_of(f, "HTTP/1.1 401 Unauthorized\r\n"), 1);
    assert_true(http1_endpoint_over(f->endpoint));
}

/* A client that forgot its token keeps its connection. */
static void short_body_of_a_refused_caller_is_dropped(void **state)
{
    struct fixture *f = *state;
    size_t asked = 0;
    http_routes_set_gate(f->routes, wants_token, &asked);
    exchange(f, "POST /chunks/x HTTP/1.1\r\n" HOST "Content-Length: 6\r\n\r\nGET");
    assert_int_equal(count_of(f, "HTTP/1.1 401 Unauthorized\r\n"),
                     1); /* before the body is complete */
    assert_int_equal(count_of(f, "Connection: close\r\n"), 0);
    exchange(f,
             "me!POST /chunks/x HTTP/1.1\r\nX-Token: 1\r\n" HOST "Content-Length: 5\r\n\r\nhello");
    assert_int_equal(count_of(f, "HTTP/1.1 200 OK\r\n"), 1);
    assert_int_equal(count_of(f, "\r\nhello\r\n"), 1);
    assert_int_equal(f->site.requests, 1);
}

static void missing_body_of_a_refused_caller_ends_the_connection(void **state)
{
    struct fixture *f = *state;
    size_t asked = 0;
    http_routes_set_gate(f->routes, wants_token, &asked);
    exchange(f, "POST /chunks/x HTTP/1.1\r\n" HOST "Content-Length: 6\r\n\r\nGET");
    f->now = http1_endpoint_timeout(f->endpoint);
    assert_true(f->now < 1000 * SECOND);
    http1_endpoint_tick(f->endpoint, f->now);
    drain(f);
    assert_true(http1_endpoint_over(f->endpoint));
    assert_int_equal(count_of(f, "HTTP/1.1"), 1);
}

/* The permission to write may be lost while the body arrives. */
static bool admits_while_open(struct http_exchange *x, void *service,
                              const struct http_request *request)
{
    (void)request;
    if (!((struct test_site *)service)->bulk_pulls)
        return true;
    http_respond(x, 403, SLICE_EMPTY, SLICE_LITERAL("not any more"));
    return false;
}

static void admit_is_called_again_when_the_body_has_arrived(void **state)
{
    struct fixture *f = *state;
    static const struct http_route route = {.path = "/guarded",
                                            .admit = admits_while_open,
                                            .on_request = test_site_chunks,
                                            .on_end = test_site_end};
    assert_int_equal(http_routes_add(f->routes, &route, 1, &f->site), ST_OK);
    exchange(f, "POST /guarded HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhel");
    assert_int_equal(f->out.len, 0);
    f->site.bulk_pulls = true;
    exchange(f, "lo");
    assert_int_equal(count_of(f, "HTTP/1.1 403 Forbidden\r\n"), 1);
    assert_int_equal(f->site.requests, 0);
}

/* -- without memory -- */

/* At any point before the handler is called. */
static void request_without_memory_for_its_head_gets_429(void **state)
{
    struct fixture *f = *state;
    size_t served = 0, refused = 0;
    for (size_t limit = 64; limit < 4096; limit += 32) {
        test_memory_fini(&f->memory);
        limit_memory(f, limit);
        exchange(f, "GET /%68ealth HTTP/1.1\r\n" HOST "X-Long: "
                    "01234567890123456789012345678901234567890123456789012345678901234\r\n\r\n");
        bool got_429 = count_of(f, "HTTP/1.1 429 Too Many Requests\r\n") == 1 &&
                       count_of(f, "Retry-After: 1\r\n") == 1 &&
                       count_of(f, "see --max-client-bytes") == 1;
        served += count_of(f, "HTTP/1.1 200 OK\r\n");
        refused += got_429;
        if (!got_429 && !count_of(f, "HTTP/1.1 200 OK\r\n"))
            fail_msg("with %zu bytes: %s", limit, out_text(f));
        http1_endpoint_free(f->endpoint);
        f->endpoint = NULL;
        account_unref(f->memory.account);
        f->memory.account = NULL;
    }
    assert_true(served > 0 && refused > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(request_is_answered_and_the_connection_kept),
        TEST(unknown_path_gets_the_404_of_go),
        TEST(bodies_are_complete_for_every_split_of_the_bytes),
        TEST(pipelined_requests_are_answered_in_order),
        TEST(head_gets_no_body),
        TEST(sources_are_pulled_in_chunks_and_queue_nothing),
        TEST(empty_source_ends_the_answer_immediately),
        TEST(http_1_0_clients_get_a_source_without_chunks),
        TEST(aborted_answer_ends_the_connection_without_the_last_chunk),
        TEST(answer_that_is_aborted_before_it_begins_is_a_refusal),
        TEST(stalled_source_ends_the_connection),
        TEST(route_refuses_bodies_beyond_its_limit),
        TEST(caller_is_refused_before_its_body_is_kept),
        TEST(body_in_chunks_of_a_refused_caller_ends_the_connection),
        TEST(refused_caller_does_not_get_continue),
        TEST(short_body_of_a_refused_caller_is_dropped),
        TEST(missing_body_of_a_refused_caller_ends_the_connection),
        TEST(admit_is_called_again_when_the_body_has_arrived),
        TEST(request_without_memory_for_its_head_gets_429),
        TEST(http_1_0_clients_get_the_end_of_the_connection),
        TEST(continue_is_sent_when_expected),
        TEST(bad_requests_are_refused_and_the_connection_ends),
        TEST(head_beyond_64_kib_is_refused),
        TEST(trailers_beyond_the_limit_are_refused),
        TEST(endless_chunk_line_is_refused),
        TEST(long_chunk_line_is_refused_when_it_arrives_in_one_piece),
        TEST(tiny_chunks_cost_no_more_than_their_bytes),
        TEST(chunks_beyond_the_body_limit_are_refused),
        TEST(answer_without_memory_ends_the_connection),
        TEST(body_without_memory_is_refused),
        TEST(slow_clients_are_disconnected),
        TEST(shutdown_finishes_the_current_answer),
        TEST(extra_fields_are_sent_and_cannot_inject_lines),
        TEST(long_stream_holds_only_what_is_unsent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
