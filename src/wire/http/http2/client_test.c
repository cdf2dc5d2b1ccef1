/* Requests of a client over HTTP/2 to our own server. */
#include "wire/http/http2/client.h"

#include "base/failing_memory_test.h"
#include "wire/connection.h"
#include "wire/http/pulled_test.h"
#include "wire/http/routes_test.h"
#include "wire/http/stream_routes_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct fixture;

struct request {
    struct http2_call call;
    struct fixture *f;
    unsigned status;
    char type[64];
    struct buf body;
    size_t body_bytes; /* received */
    size_t heads, ends;
    enum status end;
    char reason[128];
    bool cancels_in_head, cancels_in_body, starts_again;
    struct pulled *pulled; /* its body; NULL: it is given to start */
    int64_t pulled_bytes;
};

struct fixture {
    struct wire_limits limits;
    struct h2_limits client_limits;
    struct grpc_services *services;
    struct http_routes *routes;
    struct wire_server *server;
    struct wire_connection *connection;
    struct test_site site;
    struct test_stream_site stream;
    struct h2_session *session;
    size_t step; /* the pieces in which bytes arrive at the client */
    int64_t now;
};

/* -- The client -- */

static void on_head(struct http2_call *call, unsigned status, const struct http_field *fields,
                    size_t count)
{
    struct request *r = CONTAINER_OF(call, struct request, call);
    r->heads++;
    r->status = status;
    for (size_t i = 0; i < count; i++) {
        assert_true(fields[i].name.ptr[0] != ':');
        if (slice_equal(fields[i].name, SLICE_LITERAL("content-type")))
            snprintf(r->type, sizeof(r->type), "%.*s", SLICE_ARGS(fields[i].value));
    }
    if (r->cancels_in_head)
        http2_client_cancel(call);
}

static void on_body(struct http2_call *call, struct slice bytes)
{
    struct request *r = CONTAINER_OF(call, struct request, call);
    r->body_bytes += bytes.len;
    memory_exempt = true;
    if (r->body.len < 1000)
        assert_int_equal(buf_append(&r->body, bytes), ST_OK);
    memory_exempt = false;
    if (r->cancels_in_body)
        http2_client_cancel(call);
}

static const struct http2_call_ops ops;

static enum status start(struct fixture *f, struct request *r, const char *method,
                         const char *target, const char *body)
{
    static const struct http_field fields[] = {
        {{(const uint8_t *)"User-Agent", 10}, {(const uint8_t *)"test", 4}},
        {{(const uint8_t *)"accept", 6}, {(const uint8_t *)"application/json", 16}},
    };
    r->f = f;
    r->call.ops = &ops;
    struct http2_client_request request = {
        .method = slice_from_text(method),
        .target = slice_from_text(target),
        .authority = SLICE_LITERAL("x:1"),
        .fields = fields,
        .field_count = COUNT_OF(fields),
        .body = slice_from_text(body),
        .source = r->pulled ? &r->pulled->source : NULL,
        .source_bytes = r->pulled_bytes,
    };
    return http2_client_start(f->session, &r->call, &request);
}

static void on_end(struct http2_call *call, enum status status, const char *reason)
{
    struct request *r = CONTAINER_OF(call, struct request, call);
    r->ends++;
    r->end = status;
    snprintf(r->reason, sizeof(r->reason), "%s", reason);
    if (r->starts_again) {
        r->starts_again = false;
        assert_int_equal(start(r->f, r, "GET", "/health", ""), ST_OK);
    }
}

static const struct http2_call_ops ops = {.on_head = on_head, .on_body = on_body, .on_end = on_end};

static void request_fini(struct request *r)
{
    http2_call_check(&r->call);
    http2_call_fini(&r->call);
    memory_exempt = true;
    buf_fini(&r->body);
    memory_exempt = false;
}

static struct h2_stream *refuse(void *owner, struct h2_headers *headers, int64_t now_ns)
{
    (void)owner;
    (void)headers;
    (void)now_ns;
    return NULL;
}

static const struct h2_session_ops session_ops = {.on_open = refuse};

/* -- Both sides -- */

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct wire_hooks hooks = {.owner = f};
    assert_non_null(f);
    f->limits = WIRE_LIMITS_DEFAULT;
    f->client_limits = H2_CLIENT_LIMITS_DEFAULT;
    f->step = SIZE_MAX;
    f->now = H2_SECOND_NS;
    assert_int_equal(grpc_services_new(&f->services), ST_OK);
    assert_int_equal(http_routes_new(&f->routes), ST_OK);
    assert_int_equal(http_routes_add(f->routes, test_routes, COUNT_OF(test_routes), &f->site),
                     ST_OK);
    assert_int_equal(
        http_routes_add(f->routes, test_stream_routes, COUNT_OF(test_stream_routes), &f->stream),
        ST_OK);
    assert_int_equal(wire_server_new(f->services, f->routes, &f->limits, &f->server), ST_OK);
    assert_int_equal(wire_connection_new(f->server, hooks, f->now, &f->connection), ST_OK);
    assert_int_equal(
        h2_session_new_client(&f->client_limits, &session_ops, f, NULL, f->now, &f->session),
        ST_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    h2_session_free(f->session);
    wire_connection_free(f->connection);
    wire_server_free(f->server);
    grpc_services_free(f->services);
    http_routes_free(f->routes);
    assert_int_equal(f->site.requests, f->site.ends);
    test_stream_site_fini(&f->stream);
    free(f);
    return 0;
}

static bool to_server(struct fixture *f)
{
    uint8_t room[H2_FILL_ROOM_MIN];
    if (!h2_session_wants_write(f->session))
        return false;
    size_t n = h2_session_fill(f->session, room, sizeof(room), f->now);
    memory_exempt = true;
    wire_connection_feed(f->connection, slice_of(room, n), f->now);
    memory_exempt = false;
    return n > 0;
}

static bool to_client(struct fixture *f)
{
    uint8_t room[WIRE_FILL_ROOM_MIN];
    memory_exempt = true;
    size_t n = wire_connection_wants_write(f->connection)
                   ? wire_connection_fill(f->connection, room, sizeof(room), f->now)
                   : 0;
    memory_exempt = false;
    for (size_t at = 0; at < n;) {
        size_t piece = size_min(f->step, n - at);
        h2_session_feed(f->session, slice_of(room + at, piece), f->now);
        at += piece;
    }
    return n > 0;
}

static void exchange(struct fixture *f)
{
    bool sent = true, received = true;
    for (int turns = 0; (sent || received) && turns < 100000; turns++) {
        sent = to_server(f);
        received = to_client(f);
    }
    if (!h2_session_failed(f->session))
        h2_session_check(f->session);
}

/* -- Tests -- */

static void expect_body(struct request *r, const char *text)
{
    assert_int_equal(r->body.len, strlen(text));
    assert_memory_equal(r->body.ptr, text, r->body.len);
}

static void answers_arrive_whole_however_they_are_cut(void **state)
{
    struct fixture *f = *state;
    for (f->step = 1; f->step < 40; f->step++) {
        struct request get = {0}, post = {0}, missing = {0};
        assert_int_equal(start(f, &get, "GET", "/health", ""), ST_OK);
        assert_int_equal(start(f, &post, "POST", "/chunks/", "a body"), ST_OK);
        assert_int_equal(start(f, &missing, "GET", "/none", ""), ST_OK);
        exchange(f);
        assert_int_equal(get.status, 200);
        assert_string_equal(get.type, "application/json");
        expect_body(&get, "{\"health\":\"true\"}");
        expect_body(&post, "<a body>");
        assert_int_equal(missing.status, 404);
        assert_int_equal(get.end + post.end + missing.end, ST_OK);
        assert_int_equal(get.ends + post.ends + missing.ends, 3);
        assert_true(get.call.answered);
        request_fini(&get);
        request_fini(&post);
        request_fini(&missing);
    }
}

static void long_bodies_pass_in_both_directions(void **state)
{
    struct fixture *f = *state;
    static char body[300000];
    struct request post = {0}, big = {0};
    memset(body, 'x', sizeof(body) - 1);
    f->site.big_bytes = 5 << 20;
    assert_int_equal(start(f, &post, "POST", "/chunks/", body), ST_OK);
    assert_int_equal(start(f, &big, "GET", "/pull", ""), ST_OK);
    exchange(f);
    assert_int_equal(post.body_bytes, sizeof(body) - 1 + 2);
    assert_int_equal(big.body_bytes, 5 << 20);
    assert_int_equal(big.end, ST_OK);
    request_fini(&post);
    request_fini(&big);
}

static void body_of_a_watch_arrives_as_it_is_sent(void **state)
{
    struct fixture *f = *state;
    struct request watch = {0};
    assert_int_equal(start(f, &watch, "GET", "/watch?x=1", ""), ST_OK);
    exchange(f);
    assert_int_equal(watch.heads, 1);
    assert_int_equal(watch.body_bytes, 0);
    test_site_watch_more(f->site.watch, 7);
    exchange(f);
    assert_int_equal(watch.body_bytes, 7);
    assert_int_equal(watch.ends, 0);
    http2_client_cancel(&watch.call);
    exchange(f);
    assert_null(f->site.watch); /* the server knows */
    assert_int_equal(watch.ends, 0);
    http2_client_cancel(&watch.call); /* no effect */
    request_fini(&watch);
}

static void call_may_be_cancelled_inside_its_callbacks(void **state)
{
    struct fixture *f = *state;
    struct request in_head = {.cancels_in_head = true}, in_body = {.cancels_in_body = true};
    f->site.big_bytes = 1 << 20;
    assert_int_equal(start(f, &in_head, "GET", "/pull", ""), ST_OK);
    assert_int_equal(start(f, &in_body, "GET", "/pull", ""), ST_OK);
    exchange(f);
    assert_int_equal(in_head.heads, 1);
    assert_int_equal(in_head.body_bytes, 0);
    assert_in_range(in_body.body_bytes, 1, 20000);
    assert_int_equal(in_head.ends + in_body.ends, 0);
    request_fini(&in_head);
    request_fini(&in_body);
}

static void call_may_be_started_again_at_its_end(void **state)
{
    struct fixture *f = *state;
    struct request r = {.starts_again = true};
    assert_int_equal(start(f, &r, "GET", "/none", ""), ST_OK);
    exchange(f);
    assert_int_equal(r.ends, 2);
    assert_int_equal(r.status, 200);
    request_fini(&r);
}

static void withheld_answer_waits_and_others_do_not(void **state)
{
    struct fixture *f = *state;
    struct request slow = {0}, quick = {0};
    f->site.big_bytes = 8 << 20;
    assert_int_equal(start(f, &slow, "GET", "/pull", ""), ST_OK);
    http2_client_withhold(&slow.call, true);
    exchange(f);
    assert_in_range(slow.body_bytes, 1, f->client_limits.stream_window);
    assert_int_equal(start(f, &quick, "GET", "/pull", ""), ST_OK);
    exchange(f);
    assert_int_equal(quick.body_bytes, 8 << 20);
    http2_client_withhold(&slow.call, false);
    exchange(f);
    assert_int_equal(slow.body_bytes, 8 << 20);
    assert_int_equal(slow.end, ST_OK);
    request_fini(&slow);
    request_fini(&quick);
}

static void body_is_pulled_as_it_comes(void **state)
{
    struct fixture *f = *state;
    static const int64_t lengths[] = {HTTP2_UNKNOWN, 10};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        struct pulled pulled = PULLED;
        struct request r = {.pulled = &pulled, .pulled_bytes = lengths[i]};
        assert_int_equal(start(f, &r, "POST", "/take", ""), ST_OK);
        exchange(f);
        assert_true(f->stream.has_body);
        assert_int_equal(pulled.fills, 1); /* it had nothing */
        pulled_give(&pulled, "01234");
        http2_client_wake(&r.call);
        exchange(f);
        assert_int_equal(f->stream.got_bytes, 5);
        assert_int_equal(f->stream.got_ends, 0);
        pulled_give(&pulled, "56789");
        pulled.ends = lengths[i] == HTTP2_UNKNOWN; /* otherwise it need not know its end */
        http2_client_wake(&r.call);
        exchange(f);
        http2_client_wake(&r.call); /* no effect */
        exchange(f);
        assert_int_equal(f->stream.got_bytes, 10);
        assert_int_equal(f->stream.got_ends, 1);
        assert_memory_equal(f->stream.got.ptr, "0123456789", 10);
        http_respond(f->stream.latest, 200, SLICE_EMPTY, SLICE_LITERAL("ok"));
        exchange(f);
        expect_body(&r, "ok");
        assert_int_equal(r.end, ST_OK);
        request_fini(&r);
        pulled_fini(&pulled);
    }
    struct pulled pulled = PULLED;
    struct request empty = {.pulled = &pulled};
    assert_int_equal(start(f, &empty, "POST", "/take", ""), ST_OK);
    exchange(f);
    assert_false(f->stream.has_body);
    assert_int_equal(pulled.fills, 0);
    http2_client_cancel(&empty.call);
    exchange(f);
    request_fini(&empty);
}

static void pulled_body_waits_for_window(void **state)
{
    struct fixture *f = *state;
    struct pulled pulled = PULLED;
    struct request r = {.pulled = &pulled, .pulled_bytes = HTTP2_UNKNOWN};
    pulled.endless = true;
    f->stream.withholds = true;
    assert_int_equal(start(f, &r, "POST", "/take", ""), ST_OK);
    exchange(f);
    assert_int_equal(pulled.given, f->limits.h2.stream_window);
    assert_int_equal(f->stream.got_bytes, pulled.given);
    http2_client_wake(&r.call); /* has no effect: it is not parked */
    exchange(f);
    assert_int_equal(pulled.given, f->limits.h2.stream_window);
    for (int i = 0; i < 10; i++) {
        http_withhold(f->stream.latest, false);
        http_withhold(f->stream.latest, true);
        exchange(f);
    }
    assert_int_equal(pulled.given, 11 * f->limits.h2.stream_window);
    /* The response may come before the end of the request. */
    http_respond(f->stream.latest, 413, SLICE_EMPTY, SLICE_LITERAL("enough"));
    exchange(f);
    assert_int_equal(r.status, 413);
    expect_body(&r, "enough");
    assert_int_equal(r.end, ST_OK);
    assert_int_equal(h2_session_streams(f->session), 0);
    request_fini(&r);
    pulled_fini(&pulled);
}

static void pulled_body_that_is_too_short_is_refused(void **state)
{
    struct fixture *f = *state;
    struct pulled pulled = PULLED;
    struct request r = {.pulled = &pulled, .pulled_bytes = 10};
    pulled_give(&pulled, "123");
    pulled.ends = true;
    assert_int_equal(start(f, &r, "POST", "/take", ""), ST_OK);
    exchange(f);
    assert_int_equal(r.end, ST_CLOSED);
    assert_int_equal(f->stream.got_ends, 0);
    request_fini(&r);
    pulled_fini(&pulled);
}

static void pulled_body_may_be_cancelled(void **state)
{
    struct fixture *f = *state;
    struct pulled pulled = PULLED;
    struct request r = {.pulled = &pulled, .pulled_bytes = HTTP2_UNKNOWN};
    pulled_give(&pulled, "123");
    assert_int_equal(start(f, &r, "POST", "/take", ""), ST_OK);
    exchange(f);
    http2_client_cancel(&r.call);
    pulled_give(&pulled, "4");
    http2_client_wake(&r.call);
    exchange(f);
    assert_int_equal(f->stream.got_bytes, 3);
    assert_int_equal(f->stream.ends, 1);
    request_fini(&r);
    pulled_fini(&pulled);
}

/* The length of a response that has no body. */
static void head_has_a_length_and_no_body(void **state)
{
    struct fixture *f = *state;
    struct request r = {0};
    assert_int_equal(start(f, &r, "HEAD", "/health", ""), ST_OK);
    exchange(f);
    assert_int_equal(r.end, ST_OK);
    assert_int_equal(r.status, 200);
    assert_int_equal(r.body_bytes, 0);
    request_fini(&r);
}

static void end_of_the_connection_ends_the_calls(void **state)
{
    struct fixture *f = *state;
    struct request watch = {0}, later = {0};
    assert_int_equal(start(f, &watch, "GET", "/watch", ""), ST_OK);
    exchange(f);
    assert_int_equal(start(f, &later, "GET", "/later", ""), ST_OK);
    h2_session_lost(f->session, "the cable was cut");
    assert_int_equal(watch.end, ST_CLOSED);
    assert_string_equal(watch.reason, "the cable was cut");
    assert_true(watch.call.answered && !watch.call.unprocessed);
    assert_int_equal(later.ends, 1);
    assert_true(!later.call.answered && later.call.unprocessed); /* it was not sent */
    request_fini(&watch);
    request_fini(&later);
}

static void broken_answer_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct request r = {0};
    f->site.big_bytes = 1000;
    f->site.abort_pulls = true;
    assert_int_equal(start(f, &r, "GET", "/pull", ""), ST_OK);
    exchange(f);
    assert_int_equal(r.end, ST_CLOSED);
    assert_string_equal(r.reason, "the server reset the stream 1: INTERNAL_ERROR");
    request_fini(&r);
}

static void requests_that_cannot_be_sent_are_refused(void **state)
{
    struct fixture *f = *state;
    static char path[2 * H2_BLOCK_BYTES_MAX];
    struct request r = {0};
    memset(path, 'x', sizeof(path) - 1);
    assert_int_equal(start(f, &r, "GET", path, ""), ST_LIMIT);
    assert_int_equal(start(f, &r, "GET", "", ""), ST_INVALID);
    struct http_field bad[] = {
        {SLICE_LITERAL("x"), SLICE_LITERAL("a\nb")},
        {SLICE_LITERAL("connection"), SLICE_LITERAL("close")},
        {SLICE_LITERAL(":x"), SLICE_LITERAL("y")},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct http2_client_request request = {.method = SLICE_LITERAL("GET"),
                                               .target = SLICE_LITERAL("/"),
                                               .authority = SLICE_LITERAL("x"),
                                               .fields = &bad[i],
                                               .field_count = 1};
        assert_int_equal(http2_client_start(f->session, &r.call, &request), ST_INVALID);
        http2_call_check(&r.call);
    }
    assert_int_equal(start(f, &r, "GET", "/health", ""), ST_OK); /* it can still be used */
    exchange(f);
    assert_int_equal(r.ends, 1);
    request_fini(&r);
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t at = 1;; at++) {
        void *own;
        struct request r = {0};
        memory_exempt = true;
        setup(&own);
        struct fixture *f = own;
        memory_exempt = false;
        memory_fail_at = at;
        enum status status = start(f, &r, "POST", "/chunks/", "a body");
        if (status == ST_OK)
            exchange(f);
        bool failed = memory_fail_at == 0;
        memory_fail_at = 0;
        assert_int_equal(r.ends, status == ST_OK);
        request_fini(&r);
        memory_exempt = true;
        teardown(&own);
        memory_exempt = false;
        if (!failed) {
            assert_int_equal(r.end, ST_OK);
            break;
        }
        assert_true(status == ST_NOMEM || r.end != ST_OK || r.body_bytes == 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_arrive_whole_however_they_are_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(long_bodies_pass_in_both_directions, setup, teardown),
        cmocka_unit_test_setup_teardown(body_of_a_watch_arrives_as_it_is_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(call_may_be_cancelled_inside_its_callbacks, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(call_may_be_started_again_at_its_end, setup, teardown),
        cmocka_unit_test_setup_teardown(withheld_answer_waits_and_others_do_not, setup, teardown),
        cmocka_unit_test_setup_teardown(body_is_pulled_as_it_comes, setup, teardown),
        cmocka_unit_test_setup_teardown(pulled_body_waits_for_window, setup, teardown),
        cmocka_unit_test_setup_teardown(pulled_body_that_is_too_short_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(pulled_body_may_be_cancelled, setup, teardown),
        cmocka_unit_test_setup_teardown(head_has_a_length_and_no_body, setup, teardown),
        cmocka_unit_test_setup_teardown(end_of_the_connection_ends_the_calls, setup, teardown),
        cmocka_unit_test_setup_teardown(broken_answer_is_an_error, setup, teardown),
        cmocka_unit_test_setup_teardown(requests_that_cannot_be_sent_are_refused, setup, teardown),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
