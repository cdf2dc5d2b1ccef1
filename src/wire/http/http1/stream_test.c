/* Bodies that are taken as they arrive, and connections that are upgraded. */
#include "wire/http/http1/endpoint.h"

#include "wire/http/stream_routes_test.h"
#include "wire/memory_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000000)
#define HOST "Host: x\r\n"
#define UPGRADE "Connection: keep-alive, Upgrade\r\nUpgrade: test/1\r\n"
#define SWITCHED \
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test/1\r\n\r\n"

struct fixture {
    struct http_limits http;
    struct http1_limits limits;
    struct http1_server server;
    struct http_routes *routes;
    struct http1_endpoint *endpoint;
    struct test_stream_site site;
    struct test_memory memory; /* unlimited, unless the test sets a limit */
    struct buf out;
    int64_t now;
    size_t outputs;
};

static void on_output(void *owner)
{
    ((struct fixture *)owner)->outputs++;
}

static void restart(struct fixture *f)
{
    struct http_hooks hooks = {.on_output = on_output, .owner = f, .account = f->memory.account};
    http1_endpoint_free(f->endpoint);
    f->out.len = 0;
    assert_int_equal(http1_endpoint_new(&f->server, hooks, f->now, &f->endpoint), ST_OK);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->limits = HTTP1_LIMITS_DEFAULT;
    f->http = HTTP_LIMITS_DEFAULT;
    f->http.body_bytes_max = 10; /* does not apply */
    f->now = SECOND;
    assert_int_equal(http_routes_new(&f->routes), ST_OK);
    assert_int_equal(
        http_routes_add(f->routes, test_stream_routes, COUNT_OF(test_stream_routes), &f->site),
        ST_OK);
    f->server = (struct http1_server){f->routes, &f->http, &f->limits};
    restart(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    http1_endpoint_free(f->endpoint);
    test_stream_site_fini(&f->site);
    http_routes_free(f->routes);
    test_memory_fini(&f->memory);
    buf_fini(&f->out);
    free(f);
    return 0;
}

static void drain(struct fixture *f)
{
    uint8_t room[1000];
    while (http1_endpoint_wants_write(f->endpoint)) {
        size_t n = http1_endpoint_fill(f->endpoint, room, sizeof(room), f->now);
        assert_int_equal(buf_append(&f->out, slice_of(room, n)), ST_OK);
        if (n == 0)
            break;
    }
    http1_endpoint_check(f->endpoint);
}

static void feed(struct fixture *f, const char *text)
{
    http1_endpoint_feed(f->endpoint, slice_from_text(text), f->now);
    http1_endpoint_check(f->endpoint);
}

static void exchange(struct fixture *f, const char *text)
{
    feed(f, text);
    drain(f);
}

static const char *text_of(struct buf *buf)
{
    assert_int_equal(buf_append(buf, slice_of("", 1)), ST_OK);
    buf->len--;
    return (const char *)buf->ptr;
}

static void respond(struct fixture *f, unsigned status)
{
    http_respond(f->site.latest, status, SLICE_EMPTY, SLICE_LITERAL("ok"));
    drain(f);
}

/* The connection is kept, and nothing of a request is left in it. */
static void assert_kept(struct fixture *f)
{
    assert_true(http1_endpoint_idle(f->endpoint));
    assert_true(http1_endpoint_wants_read(f->endpoint));
    assert_false(http1_endpoint_over(f->endpoint));
    assert_null(f->site.latest);
}

/* ---- bodies ---- */

static void body_is_passed_as_it_arrives_for_every_split(void **state)
{
    struct fixture *f = *state;
    static const char *const requests[] = {
        "POST /take HTTP/1.1\r\n" HOST "Content-Length: 20\r\n\r\n01234567890123456789",
        "POST /take HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
        "1;x=y\r\n0\r\n13\r\n1234567890123456789\r\n0\r\nTrailer: dropped\r\n\r\n",
    };
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        struct slice bytes = slice_from_text(requests[i]);
        for (size_t step = 1; step <= bytes.len; step++) {
            f->out.len = 0;
            for (size_t at = 0; at < bytes.len; at += step) {
                assert_true(http1_endpoint_wants_read(f->endpoint));
                http1_endpoint_feed(f->endpoint,
                                    slice_sub(bytes, at, size_min(step, bytes.len - at)), f->now);
                http1_endpoint_check(f->endpoint);
            }
            assert_true(f->site.has_body);
            assert_false(f->site.upgrade);
            assert_string_equal(text_of(&f->site.got), "01234567890123456789");
            assert_int_equal(f->site.got_ends, 1);
            respond(f, 200);
            assert_string_equal(text_of(&f->out), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            assert_kept(f);
        }
    }
}

static void handler_is_called_with_the_head_alone(void **state)
{
    struct fixture *f = *state;
    feed(f, "POST /take HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\n");
    assert_non_null(f->site.latest);
    assert_true(f->site.has_body);
    assert_int_equal(f->site.got_bytes + f->site.got_ends, 0);
    feed(f, "ab");
    assert_int_equal(f->site.got_bytes, 2);
    feed(f, "c");
    assert_int_equal(f->site.got_ends, 1);
    respond(f, 200);
    feed(f, "GET /take HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n");
    assert_false(f->site.has_body);
    assert_int_equal(f->site.got_ends, 0);
    respond(f, 200);
    assert_kept(f);
}

static void long_body_holds_no_memory(void **state)
{
    struct fixture *f = *state;
    static char piece[4097];
    memset(piece, 'x', sizeof(piece) - 1);
    test_memory_init(&f->memory, 100000);
    restart(f);
    feed(f, "POST /take HTTP/1.1\r\n" HOST "Content-Length: 4096000\r\n\r\n");
    for (int i = 0; i < 1000; i++) {
        feed(f, piece);
        assert_in_range(account_held_bytes(f->memory.account), 0, 5000);
    }
    assert_int_equal(f->site.got_bytes, 4096000);
    assert_int_equal(f->site.got_ends, 1);
    respond(f, 200);
    assert_kept(f);
}

static void withheld_body_is_not_read_and_not_slow(void **state)
{
    struct fixture *f = *state;
    feed(f, "POST /take HTTP/1.1\r\n" HOST "Content-Length: 30\r\n\r\n0123456789");
    http_withhold(f->site.latest, true);
    assert_false(http1_endpoint_wants_read(f->endpoint));
    assert_int_equal(http1_endpoint_timeout(f->endpoint), INT64_MAX);
    f->now += 1000 * SECOND;
    http1_endpoint_tick(f->endpoint, f->now);
    feed(f, "0123456789"); /* was read before */
    assert_int_equal(f->site.got_bytes, 20);
    size_t outputs = f->outputs;
    http_withhold(f->site.latest, false);
    assert_int_equal(f->outputs, outputs + 1); /* the connection looks what is wanted */
    assert_true(http1_endpoint_wants_read(f->endpoint));
    assert_int_equal(http1_endpoint_timeout(f->endpoint), f->now + f->http.message_ns);
    feed(f, "0123456789");
    assert_int_equal(f->site.got_ends, 1);
    /* The body is complete, so there is nothing to withhold: the end of the client is noticed. */
    http_withhold(f->site.latest, true);
    assert_true(http1_endpoint_wants_read(f->endpoint));
    respond(f, 200);
    assert_kept(f);
}

static void body_that_stops_is_refused_and_progress_counts(void **state)
{
    struct fixture *f = *state;
    feed(f, "POST /take HTTP/1.1\r\n" HOST "Content-Length: 30\r\n\r\n");
    for (int i = 0; i < 20; i++) {
        f->now += f->http.message_ns - 1;
        http1_endpoint_tick(f->endpoint, f->now);
        feed(f, "x");
    }
    assert_int_equal(http1_endpoint_timeout(f->endpoint), f->now + f->http.message_ns);
    f->now += f->http.message_ns;
    http1_endpoint_tick(f->endpoint, f->now);
    drain(f);
    assert_non_null(strstr(text_of(&f->out), "HTTP/1.1 408 Request Timeout\r\n"));
    assert_true(http1_endpoint_over(f->endpoint));
    assert_int_equal(f->site.got_ends, 0);
    assert_int_equal(f->site.ends, 1);
}

static void body_may_stop_while_the_answer_is_sent(void **state)
{
    struct fixture *f = *state;
    f->site.begins = true;
    exchange(f, "POST /take HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nab");
    assert_int_equal(http1_endpoint_timeout(f->endpoint), INT64_MAX);
    test_stream_give(&f->site, SLICE_LITERAL("hello"));
    drain(f);
    assert_non_null(strstr(text_of(&f->out), "\r\n\r\n0005\r\nhello\r\n"));
    feed(f, "cd"); /* both directions continue */
    assert_int_equal(f->site.got_ends, 1);
    test_stream_give(&f->site, SLICE_EMPTY);
    drain(f);
    assert_non_null(strstr(text_of(&f->out), "0\r\n\r\n"));
    assert_kept(f);
    /* But the client has to read. */
    exchange(f, "POST /take HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nab");
    test_stream_give(&f->site, SLICE_LITERAL("hello"));
    assert_int_equal(http1_endpoint_timeout(f->endpoint), f->now + f->http.stall_ns);
    http1_endpoint_tick(f->endpoint, f->now + f->http.stall_ns);
    assert_true(http1_endpoint_over(f->endpoint));
}

static void continue_is_sent_when_the_body_is_wanted(void **state)
{
    struct fixture *f = *state;
    static const char head[] = "POST /take HTTP/1.1\r\n" HOST "Content-Length: 2\r\n"
                               "Expect: 100-continue\r\n\r\n";
    static const char more[] = "HTTP/1.1 100 Continue\r\n\r\n";
    exchange(f, head);
    assert_string_equal(text_of(&f->out), more);
    exchange(f, "hi");
    assert_int_equal(f->site.got_ends, 1);
    respond(f, 200);
    assert_null(strstr(text_of(&f->out), "Connection: close"));

    restart(f);
    f->site.withholds = true;
    exchange(f, head);
    assert_int_equal(f->out.len, 0);
    http_withhold(f->site.latest, false);
    drain(f);
    assert_string_equal(text_of(&f->out), more);
    http_withhold(f->site.latest, true);
    http_withhold(f->site.latest, false);
    drain(f);
    assert_string_equal(text_of(&f->out), more); /* once */

    restart(f); /* the client does not wait */
    feed(f, head);
    exchange(f, "hi");
    http_withhold(f->site.latest, false);
    respond(f, 200);
    assert_string_equal(text_of(&f->out), "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    assert_kept(f);
}

static void client_that_was_not_asked_for_its_body_is_not_asked_after_the_answer(void **state)
{
    struct fixture *f = *state;
    f->site.withholds = f->site.begins = true;
    exchange(f, "POST /take HTTP/1.1\r\n" HOST "Content-Length: 2\r\n"
                "Expect: 100-continue\r\n\r\n");
    http_withhold(f->site.latest, false);
    drain(f);
    assert_null(strstr(text_of(&f->out), "100 Continue"));
    assert_non_null(strstr(text_of(&f->out), "Connection: close\r\n"));
    test_stream_give(&f->site, SLICE_EMPTY);
    drain(f);
    assert_true(http1_endpoint_over(f->endpoint));
}

static void rest_of_an_answered_body_is_dropped_if_it_is_short(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *head;
        bool kept;
    } rows[] = {
        {"Content-Length: 262144\r\n\r\nx", true},
        {"Content-Length: 262145\r\n\r\n", false},
        {"Transfer-Encoding: chunked\r\n\r\n", false},
    };
    static char rest[262144];
    memset(rest, 'x', sizeof(rest) - 1);
    f->site.answers = 403;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        restart(f);
        feed(f, "POST /take HTTP/1.1\r\n" HOST);
        exchange(f, rows[i].head);
        const char *out = text_of(&f->out);
        assert_non_null(strstr(out, "403 Forbidden"));
        assert_int_equal(!strstr(out, "Connection: close\r\n"), rows[i].kept);
        assert_int_equal(http1_endpoint_over(f->endpoint), !rows[i].kept);
        if (!rows[i].kept)
            continue;
        exchange(f, rest);
        assert_int_equal(f->site.got_bytes + f->site.got_ends, 0);
        assert_kept(f);
        exchange(f, "GET /take HTTP/1.1\r\n" HOST "\r\n");
        assert_int_equal(f->site.requests, 2);
    }
}

static void answer_may_end_before_the_body(void **state)
{
    struct fixture *f = *state;
    feed(f, "POST /take HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
    respond(f, 200);
    assert_int_equal(f->site.got_bytes, 2);
    exchange(f, "1\r\nc\r\n0\r\n\r\nGET /take HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(f->site.requests, 2);
    assert_int_equal(f->site.got_bytes + f->site.got_ends, 0);
    respond(f, 200);
    assert_kept(f);
    /* A rest without end is not read for ever. */
    feed(f, "POST /take HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n");
    respond(f, 200);
    static char piece[16385 + 8] = "4000\r\n";
    memset(piece + 6, 'x', 16384);
    memcpy(piece + 6 + 16384, "\r\n", 3);
    for (int i = 0; i < 16; i++) {
        assert_false(http1_endpoint_over(f->endpoint));
        exchange(f, piece);
    }
    assert_false(http1_endpoint_over(f->endpoint));
    exchange(f, piece);
    assert_true(http1_endpoint_over(f->endpoint));
    /* Or not at all if it is known to be long, or waited for without limit. */
    restart(f);
    feed(f, "POST /take HTTP/1.1\r\n" HOST "Content-Length: 1000000\r\n\r\nab");
    respond(f, 200);
    assert_true(http1_endpoint_over(f->endpoint));
    restart(f);
    feed(f, "POST /take HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\nab");
    respond(f, 200);
    assert_false(http1_endpoint_over(f->endpoint));
    http1_endpoint_tick(f->endpoint, f->now + f->http.message_ns);
    assert_true(http1_endpoint_over(f->endpoint));
}

static void body_that_is_cut_off_ends_the_exchange_without_its_end(void **state)
{
    struct fixture *f = *state;
    feed(f, "POST /take HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nab");
    http1_endpoint_feed_end(f->endpoint, f->now);
    assert_true(http1_endpoint_over(f->endpoint));
    assert_int_equal(f->site.got_ends, 0);
    http_respond(f->site.latest, 200, SLICE_EMPTY, SLICE_EMPTY); /* has no effect */
    http_withhold(f->site.latest, true);
    assert_false(http1_endpoint_wants_write(f->endpoint));
}

static void malformed_chunks_are_refused_or_end_the_connection(void **state)
{
    struct fixture *f = *state;
    for (int answering = 0; answering < 2; answering++) {
        restart(f);
        f->site.begins = answering;
        exchange(f, "POST /take HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
        exchange(f, "nonsense\r\n");
        assert_int_equal(!strstr(text_of(&f->out), "HTTP/1.1 400 Bad Request"), answering);
        assert_true(http1_endpoint_over(f->endpoint));
        assert_int_equal(f->site.got_bytes, 1);
        assert_int_equal(f->site.got_ends, 0);
    }
}

static void body_waits_until_the_client_is_admitted(void **state)
{
    struct fixture *f = *state;
    feed(f, "POST /late HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nab");
    assert_false(http1_endpoint_wants_read(f->endpoint));
    assert_int_equal(f->site.got_bytes, 0);
    http_authorized(f->site.latest);
    drain(f);
    assert_string_equal(text_of(&f->site.got), "ab");
    feed(f, "cd");
    assert_int_equal(f->site.got_ends, 1);
    respond(f, 200);
    assert_kept(f);
    feed(f, "POST /late HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nab");
    respond(f, 401);
    assert_int_equal(f->site.got_bytes, 0);
    exchange(f, "cd");
    assert_kept(f);
}

static void requests_behind_a_body_wait(void **state)
{
    struct fixture *f = *state;
    feed(f, "POST /take HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nabGET /take HTTP/1.1\r\n" HOST
            "\r\n");
    assert_int_equal(f->site.requests, 1);
    assert_int_equal(f->site.got_bytes, 2);
    assert_false(http1_endpoint_wants_read(f->endpoint));
    respond(f, 200);
    assert_int_equal(f->site.requests, 2);
    respond(f, 200);
    assert_kept(f);
}

static void input_without_memory_is_refused(void **state)
{
    struct fixture *f = *state;
    static char piece[200001];
    memset(piece, 'x', sizeof(piece) - 1);
    test_memory_init(&f->memory, 100000);
    for (int answering = 0; answering < 2; answering++) {
        restart(f);
        f->site.begins = answering;
        feed(f, "POST /take HTTP/1.1\r\n" HOST "Content-Length: 1000000\r\n\r\n");
        exchange(f, piece);
        assert_int_equal(!strstr(text_of(&f->out), "HTTP/1.1 429"), answering);
        assert_true(http1_endpoint_over(f->endpoint));
    }
}

static void sized_answer_is_not_chunked(void **state)
{
    struct fixture *f = *state;
    feed(f, "GET /take HTTP/1.1\r\n" HOST "\r\n");
    http_begin_sized(f->site.latest, 200, SLICE_LITERAL("a/b"), 5);
    http_set_source(f->site.latest, &f->site.source);
    test_stream_give(&f->site, SLICE_LITERAL("hello"));
    test_stream_give(&f->site, SLICE_EMPTY);
    drain(f);
    assert_string_equal(text_of(&f->out), "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n"
                                          "Content-Length: 5\r\n\r\nhello");
    assert_kept(f);
    f->out.len = 0;
    feed(f, "HEAD /take HTTP/1.1\r\n" HOST "\r\n");
    http_begin_sized(f->site.latest, 200, SLICE_EMPTY, 5);
    http_set_source(f->site.latest, &f->site.source);
    drain(f);
    assert_string_equal(text_of(&f->out), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    assert_kept(f);
}

/* ---- upgrades ---- */

static void upgrade(struct fixture *f)
{
    restart(f);
    exchange(f, "GET /raw HTTP/1.1\r\n" HOST UPGRADE "\r\n");
    assert_true(f->site.upgrade);
    assert_string_equal(text_of(&f->out), SWITCHED);
    f->out.len = 0;
}

static void upgraded_connection_carries_bytes_in_both_directions(void **state)
{
    struct fixture *f = *state;
    upgrade(f);
    feed(f, "GET / HTTP/1.1\r\n\r\n"); /* means nothing any more */
    assert_string_equal(text_of(&f->site.got), "GET / HTTP/1.1\r\n\r\n");
    test_stream_give(&f->site, SLICE_LITERAL("raw"));
    drain(f);
    assert_string_equal(text_of(&f->out), "raw");
    assert_false(http1_endpoint_idle(f->endpoint));
    assert_int_equal(http1_endpoint_timeout(f->endpoint), INT64_MAX);
    http_withhold(f->site.latest, true);
    assert_false(http1_endpoint_wants_read(f->endpoint));
    http_withhold(f->site.latest, false);
    assert_true(http1_endpoint_wants_read(f->endpoint));
    /* The client does not read for a long time. */
    test_stream_give(&f->site, SLICE_LITERAL("raw"));
    assert_int_equal(http1_endpoint_timeout(f->endpoint), INT64_MAX);
}

static void bytes_behind_an_upgrade_are_the_first_raw_ones(void **state)
{
    struct fixture *f = *state;
    exchange(f, "GET /raw HTTP/1.1\r\n" HOST UPGRADE "\r\nfirst");
    assert_string_equal(text_of(&f->site.got), "first");
}

static void each_direction_of_an_upgraded_connection_ends_alone(void **state)
{
    struct fixture *f = *state;
    upgrade(f); /* the client ends first */
    http1_endpoint_feed_end(f->endpoint, f->now);
    http1_endpoint_check(f->endpoint);
    assert_int_equal(f->site.got_ends, 1);
    assert_false(http1_endpoint_wants_read(f->endpoint));
    assert_false(http1_endpoint_over(f->endpoint));
    test_stream_give(&f->site, SLICE_LITERAL("rest"));
    drain(f);
    assert_string_equal(text_of(&f->out), "rest");
    assert_false(http1_endpoint_output_ended(f->endpoint));
    test_stream_give(&f->site, SLICE_EMPTY);
    drain(f);
    assert_true(http1_endpoint_over(f->endpoint));

    upgrade(f); /* the handler ends first */
    test_stream_give(&f->site, SLICE_LITERAL("rest"));
    test_stream_give(&f->site, SLICE_EMPTY);
    assert_false(http1_endpoint_output_ended(f->endpoint));
    drain(f);
    assert_string_equal(text_of(&f->out), "rest");
    assert_true(http1_endpoint_output_ended(f->endpoint));
    assert_false(http1_endpoint_over(f->endpoint));
    assert_int_equal(http_write(f->site.latest, SLICE_LITERAL("x")), ST_CLOSED);
    assert_int_equal(http1_endpoint_timeout(f->endpoint), INT64_MAX);
    feed(f, "still");
    assert_string_equal(text_of(&f->site.got), "still");
    http1_endpoint_feed_end(f->endpoint, f->now);
    assert_int_equal(f->site.got_ends, 1);
    assert_true(http1_endpoint_over(f->endpoint));

    upgrade(f); /* or both at once */
    http_end(f->site.latest);
    http_end(f->site.latest);
    assert_true(http1_endpoint_output_ended(f->endpoint));
    http_abort(f->site.latest);
    assert_true(http1_endpoint_over(f->endpoint));
}

static void shutdown_ends_an_upgraded_connection(void **state)
{
    struct fixture *f = *state;
    upgrade(f);
    test_stream_give(&f->site, SLICE_LITERAL("last"));
    drain(f);
    http1_endpoint_shutdown(f->endpoint, f->now);
    drain(f);
    assert_string_equal(text_of(&f->out), "last");
    assert_true(http1_endpoint_over(f->endpoint));
    upgrade(f);
    http_park(f->site.latest, http_abort);
    http1_endpoint_shutdown(f->endpoint, f->now);
    assert_true(http1_endpoint_over(f->endpoint));
}

static void only_a_request_that_asks_for_it_is_upgraded(void **state)
{
    struct fixture *f = *state;
    static const char *const requests[] = {
        "GET /raw HTTP/1.0\r\n" UPGRADE "\r\n",
        "GET /raw HTTP/1.1\r\n" HOST "Upgrade: test/1\r\n\r\n",
        "GET /raw HTTP/1.1\r\n" HOST "Connection: Upgrade\r\n\r\n",
        "GET /raw HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: \r\n\r\n",
        "HEAD /raw HTTP/1.1\r\n" HOST UPGRADE "\r\n",
        "POST /raw HTTP/1.1\r\n" HOST UPGRADE "Content-Length: 1\r\n\r\nx",
        "POST /raw HTTP/1.1\r\n" HOST UPGRADE "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    };
    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        restart(f);
        exchange(f, requests[i]);
        assert_false(f->site.upgrade);
        assert_non_null(strstr(text_of(&f->out), "HTTP/1.1 426 Upgrade Required\r\n"));
        assert_int_equal(f->site.requests, i + 1);
        /* Not after HTTP/1.0, and not before the end of a body in chunks. */
        if (i > 0 && i < COUNT_OF(requests) - 1)
            assert_kept(f);
    }
    /* It may also be answered in an ordinary way. */
    restart(f);
    exchange(f, "GET /take HTTP/1.1\r\n" HOST UPGRADE "\r\n");
    assert_true(f->site.upgrade);
    respond(f, 403);
    assert_kept(f);
}

static void upgrade_without_memory_ends_the_connection(void **state)
{
    struct fixture *f = *state;
    static char piece[200001];
    memset(piece, 'x', sizeof(piece) - 1);
    test_memory_init(&f->memory, 100000);
    upgrade(f);
    exchange(f, piece);
    assert_true(http1_endpoint_over(f->endpoint));
    assert_int_equal(f->site.got_ends, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(body_is_passed_as_it_arrives_for_every_split, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(handler_is_called_with_the_head_alone, setup, teardown),
        cmocka_unit_test_setup_teardown(long_body_holds_no_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(withheld_body_is_not_read_and_not_slow, setup, teardown),
        cmocka_unit_test_setup_teardown(body_that_stops_is_refused_and_progress_counts, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(body_may_stop_while_the_answer_is_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(continue_is_sent_when_the_body_is_wanted, setup, teardown),
        cmocka_unit_test_setup_teardown(
            client_that_was_not_asked_for_its_body_is_not_asked_after_the_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(rest_of_an_answered_body_is_dropped_if_it_is_short, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(answer_may_end_before_the_body, setup, teardown),
        cmocka_unit_test_setup_teardown(body_that_is_cut_off_ends_the_exchange_without_its_end,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(malformed_chunks_are_refused_or_end_the_connection, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(body_waits_until_the_client_is_admitted, setup, teardown),
        cmocka_unit_test_setup_teardown(requests_behind_a_body_wait, setup, teardown),
        cmocka_unit_test_setup_teardown(input_without_memory_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(sized_answer_is_not_chunked, setup, teardown),
        cmocka_unit_test_setup_teardown(upgraded_connection_carries_bytes_in_both_directions, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(bytes_behind_an_upgrade_are_the_first_raw_ones, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(each_direction_of_an_upgraded_connection_ends_alone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(shutdown_ends_an_upgraded_connection, setup, teardown),
        cmocka_unit_test_setup_teardown(only_a_request_that_asks_for_it_is_upgraded, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(upgrade_without_memory_ends_the_connection, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
