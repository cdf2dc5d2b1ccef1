/* The pool and servers that refuse, leave, fall silent, or violate HTTP. */
#include "client/connect/connection_fixture_test.h"
#include "client/http/http_pool_fixture_test.h"
#include "wire/h2/client_test.h"

static void begin(struct pool_world *w, bool http2)
{
    pool_world_init(w, false, NULL);
    w->options.protocol = http2 ? HTTP_POOL_HTTP2 : HTTP_POOL_HTTP1;
    pool_world_start(w);
}

static void start(struct pool_world *w, struct pool_test_request *r)
{
    assert_int_equal(pool_test_start(w->pool, r), ST_OK);
}

/* -- Servers of a script -- */

/* A request to a server that sends `first` at once and `second` when it was requested something. */
static struct pool_test_request ask_script(bool http2, struct slice first, struct slice second,
                                           enum script_end end)
{
    struct pool_world w;
    struct script_server server;
    struct address address;
    struct pool_test_request r = {.target = "/echo"};
    pool_world_init(&w, false, NULL);
    w.options.protocol = http2 ? HTTP_POOL_HTTP2 : HTTP_POOL_HTTP1;
    assert_int_equal(address_from_host(SLICE_LITERAL("127.0.0.1"), 0, &address), ST_OK);
    struct loop *loop;
    assert_int_equal(network_loop_new(sim_network(w.sim), &loop), ST_OK);
    script_listen(&server, sim_network(w.sim), loop, &address);
    server.first = first;
    server.second = second;
    server.cut = first.len + second.len;
    server.end = end;
    pool_world_connect(&w, &server.listener.address);
    start(&w, &r);
    pool_world_run(&w, 700 * NS_PER_S);
    script_fini(&server);
    loop_free(loop);
    pool_world_fini(&w);
    r.request.attempt = NULL;
    return r;
}

static void repeat_text(struct buf *to, struct slice text, size_t times)
{
    for (size_t i = 0; i < times; i++)
        test_put(to, text);
}

static void violations_of_http1_end_the_request(void **state)
{
    (void)state;
    static const struct {
        const char *head, *repeated;
        size_t times;
        enum script_end end;
        enum status status;
        enum pool_request_reached reached;
    } rows[] = {
        {"", "", 0, SCRIPT_ENDS, ST_CLOSED, POOL_REQUEST_SENT},
        {"", "", 0, SCRIPT_STAYS, ST_TIMEOUT, POOL_REQUEST_SENT}, /* never answers */
        {"SSH-2.0\r\n\r\n", "", 0, SCRIPT_STAYS, ST_MALFORMED, POOL_REQUEST_ANSWERED},
        {"HTTP/1.1 200 OK\r\n", "A: b\r\n", 99, SCRIPT_STAYS, ST_TIMEOUT, POOL_REQUEST_ANSWERED},
        {"HTTP/1.1 200 OK\r\n", "A: bcdefghijk\r\n", 100000, SCRIPT_STAYS, ST_LIMIT,
         POOL_REQUEST_ANSWERED},
        {"", "HTTP/1.1 100 Continue\r\n\r\n", 100000, SCRIPT_STAYS, ST_LIMIT,
         POOL_REQUEST_ANSWERED},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcd", "", 0, SCRIPT_ENDS, ST_CLOSED,
         POOL_REQUEST_ANSWERED},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcd", "", 0, SCRIPT_STAYS, ST_TIMEOUT,
         POOL_REQUEST_ANSWERED}, /* stalls */
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "x\r\n", 1, SCRIPT_STAYS,
         ST_MALFORMED, POOL_REQUEST_ANSWERED},
        {"HTTP/1.1 101 Switching Protocols\r\n\r\n", "", 0, SCRIPT_STAYS, ST_MALFORMED,
         POOL_REQUEST_ANSWERED},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        AUTO(buf_fini) struct buf answer = {0};
        test_put(&answer, slice_from_text(rows[i].head));
        repeat_text(&answer, slice_from_text(rows[i].repeated), rows[i].times);
        struct pool_test_request r =
            ask_script(false, SLICE_EMPTY, buf_slice(&answer), rows[i].end);
        assert_int_equal(r.ends, 1);
        if (r.end != rows[i].status)
            fail_msg("row %zu: %s", i, r.reason);
        if (rows[i].end == SCRIPT_STAYS || answer.len) /* otherwise it has closed before */
            assert_int_equal(r.request.reached, rows[i].reached);
        assert_non_null(strstr(r.reason, "127.0.0.1:"));
    }
}

static void violations_of_http2_end_the_request(void **state)
{
    (void)state;
    struct buf settings = {0}, rows[8] = {{0}};
    test_frame(&settings, H2_SETTINGS, 0, 0, SLICE_EMPTY);
    test_frame(&settings, H2_SETTINGS, H2_FLAG_ACK, 0, SLICE_EMPTY);
    for (int i = 0; i < 200; i++) /* interim responses without an end */
        test_headers(&rows[0], 1, 0,
                     SLICE_LITERAL("\x08\x03"
                                   "100"));
    for (int i = 0; i < 200; i++) /* empty DATA without an end */
        test_frame(&rows[1], H2_DATA, 0, 1, SLICE_EMPTY);
    test_frame(&rows[2], H2_RST_STREAM, 0, 99, SLICE_LITERAL("\0\0\0\x08")); /* an idle stream */
    test_headers(&rows[3], 1, 0, SLICE_LITERAL("\0\1a\1b"));                 /* no status */
    test_frame(&rows[4], H2_DATA, 0, 1, SLICE_LITERAL("x"));                 /* before a head */
    test_frame(&rows[5], H2_HEADERS, 0, 1, SLICE_LITERAL("\x88"));           /* an endless head */
    for (int i = 0; i < 20; i++)
        test_frame(&rows[5], H2_CONTINUATION, 0, 1, SLICE_LITERAL("\0\1a\1b"));
    test_put(&rows[6], SLICE_LITERAL("HTTP/1.1 200 OK\r\n\r\n"));
    for (int i = 0; i < 2000; i++) /* many resets of a stream that is closed */
        test_frame(&rows[7], H2_RST_STREAM, 0, 1, SLICE_LITERAL("\0\0\0\x08"));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct pool_test_request r =
            ask_script(true, buf_slice(&settings), buf_slice(&rows[i]), SCRIPT_STAYS);
        assert_int_equal(r.ends, 1);
        assert_true(r.end == ST_CLOSED || r.end == ST_MALFORMED);
        assert_non_null(strstr(r.reason, "127.0.0.1:"));
        assert_int_equal(r.heads, 0);
        buf_fini(&rows[i]);
    }
    buf_fini(&settings);
}

static void server_that_allows_no_stream_fails_the_request(void **state)
{
    (void)state;
    AUTO(buf_fini) struct buf settings = {0};
    test_setting(&settings, 3 /* MAX_CONCURRENT_STREAMS */, 0);
    struct pool_test_request r = ask_script(true, buf_slice(&settings), SLICE_EMPTY, SCRIPT_STAYS);
    assert_int_equal(r.ends, 1);
    assert_int_equal(r.end, ST_LIMIT);
    assert_int_equal(r.request.reached, POOL_REQUEST_UNREACHED);
    assert_non_null(strstr(r.reason, "the server allows no streams"));
}

static void server_without_http2_is_explained(void **state)
{
    (void)state;
    struct pool_test_request r = ask_script(true, SLICE_LITERAL("HTTP/1.1 400 Bad Request\r\n\r\n"),
                                            SLICE_EMPTY, SCRIPT_ENDS);
    assert_int_equal(r.end, ST_CLOSED);
    assert_int_equal(r.request.reached, POOL_REQUEST_UNREACHED);
    assert_non_null(strstr(r.reason, "cannot connect to 127.0.0.1:"));
}

/* -- Frames of our own server are replaced -- */

static size_t frames_seen, frame_changed;
static uint32_t goaway_last;
static int leaving; /* the connection with GOAWAY; -1: none */
static enum h2_error reset_code;

static void copy_frame(struct h2_frame frame, struct slice payload, struct buf *out)
{
    test_frame(out, frame.type, frame.flags, frame.stream_id, payload);
}

/* Every response becomes a reset. */
static void reset_responses(struct h2_frame frame, struct slice payload, struct buf *out)
{
    uint8_t code[4];
    if (frame.type != H2_HEADERS && frame.type != H2_DATA) {
        copy_frame(frame, payload, out);
    } else if (frame.type == H2_HEADERS && frames_seen++ < frame_changed) {
        h2_put32(code, reset_code);
        test_frame(out, H2_RST_STREAM, 0, frame.stream_id, slice_of(code, 4));
    } else if (frames_seen > frame_changed) {
        copy_frame(frame, payload, out);
    }
}

static void put_goaway(struct buf *out)
{
    uint8_t payload[8] = {0};
    h2_put32(payload, goaway_last);
    test_frame(out, H2_GOAWAY, 0, 0, slice_of(payload, 8));
}

/* GOAWAY comes before one frame, and the server ignores the streams that it names. */
static void insert_goaway(struct h2_frame frame, struct slice payload, struct buf *out)
{
    if (frame.type == H2_SETTINGS && !(frame.flags & H2_FLAG_ACK) && faults.rewriting == leaving)
        leaving = -1; /* a new connection with the same handle */
    if (frames_seen++ == frame_changed) {
        put_goaway(out);
        leaving = faults.rewriting;
    }
    if (faults.rewriting != leaving || frame.stream_id <= goaway_last)
        copy_frame(frame, payload, out);
}

static void begin_rewriting(struct pool_world *w,
                            void (*rewrite)(struct h2_frame, struct slice, struct buf *),
                            size_t changed)
{
    begin(w, true);
    frames_seen = 0;
    leaving = -1;
    frame_changed = changed;
    faults.rewrite = rewrite;
}

static void refused_streams_are_repeated_with_pauses(void **state)
{
    (void)state;
    static const struct {
        size_t refusals;
        int64_t min_s, max_s; /* until the end */
    } rows[] = {{1, 0, 0}, {2, 1, 1}, {4, 7, 7}, {7, 63, 63}, {8, 63, 63}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct pool_world w;
        struct pool_test_request r = {.method = "POST", .target = "/health"};
        begin_rewriting(&w, reset_responses, rows[i].refusals);
        reset_code = H2_REFUSED_STREAM;
        int64_t began = pool_world_now(&w);
        start(&w, &r);
        pool_world_run(&w, 80 * NS_PER_S);
        assert_int_equal(r.ends, 1);
        assert_in_range((r.ended_ns - began) / NS_PER_S, rows[i].min_s, rows[i].max_s);
        assert_int_equal(http_pool_stats(w.pool).repeats,
                         rows[i].refusals < 8 ? rows[i].refusals : 7);
        assert_int_equal(http_pool_stats(w.pool).connects, 1);
        if (rows[i].refusals < 8) {
            assert_true(pool_test_succeeded(&r));
        } else {
            assert_int_equal(r.end, ST_CLOSED);
            assert_int_equal(r.request.reached, POOL_REQUEST_UNREACHED);
        }
        faults.rewrite = NULL;
        pool_world_fini(&w);
    }
}

static void request_is_not_repeated_when_something_of_its_body_was_taken(void **state)
{
    (void)state;
    struct pool_world w;
    struct pulled pulled = PULLED;
    struct pool_test_request r = {.method = "POST",
                                  .target = "/chunks/",
                                  .pulled = &pulled,
                                  .pulled_bytes = POOL_BYTES_UNKNOWN};
    begin_rewriting(&w, reset_responses, 1);
    reset_code = H2_REFUSED_STREAM;
    pulled_give(&pulled, "hello");
    pulled.ends = true;
    start(&w, &r);
    pool_world_run(&w, NS_PER_S);
    assert_int_equal(r.ends, 1);
    assert_int_equal(r.end, ST_CLOSED);
    assert_int_equal(r.request.reached, POOL_REQUEST_UNREACHED);
    assert_int_equal(http_pool_stats(w.pool).repeats, 0);
    faults.rewrite = NULL;
    pulled_fini(&pulled);
    pool_world_fini(&w);
}

static void paused_repetition_can_be_cancelled(void **state)
{
    (void)state;
    for (int frees = 0; frees < 2; frees++) {
        struct pool_world w;
        struct pool_test_request r = {.target = "/health"};
        begin_rewriting(&w, reset_responses, SIZE_MAX);
        reset_code = H2_REFUSED_STREAM;
        start(&w, &r);
        pool_world_run(&w, 5 * NS_PER_S); /* it waits for its fourth time */
        assert_int_equal(r.ends, 0);
        if (frees) {
            http_pool_free(w.pool);
            w.pool = NULL;
        } else {
            pool_request_cancel(&r.request);
        }
        assert_int_equal(r.ends, frees);
        faults.rewrite = NULL;
        pool_world_run(&w, 100 * NS_PER_S);
        pool_world_fini(&w);
    }
}

static void other_resets_end_the_request(void **state)
{
    (void)state;
    static const enum h2_error codes[] = {H2_NO_ERROR, H2_INTERNAL_ERROR, H2_CANCEL,
                                          H2_ENHANCE_YOUR_CALM};
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        struct pool_world w;
        struct pool_test_request r = {.target = "/health"}, other = {.target = "/health"};
        begin_rewriting(&w, reset_responses, 1);
        reset_code = codes[i];
        start(&w, &r);
        pool_world_run(&w, NS_PER_S);
        assert_int_equal(r.ends, 1);
        assert_int_equal(r.end, ST_CLOSED);
        assert_int_equal(r.request.reached, POOL_REQUEST_SENT);
        start(&w, &other);
        pool_world_run(&w, NS_PER_S);
        assert_true(pool_test_succeeded(&other));
        assert_int_equal(http_pool_stats(w.pool).connects, 1);
        faults.rewrite = NULL;
        pool_world_fini(&w);
    }
}

/* It is finished there, or sent again; unless the server answers it and then says that it ignores
 * it. */
static void expect_after_goaway(const struct pool_test_request *r, uint32_t last)
{
    assert_int_equal(r->ends, 1);
    if (pool_test_succeeded(r))
        return;
    assert_true(last < 0x7fffffff && r->end == ST_CLOSED && r->heads == 1);
    assert_int_equal(r->request.reached, POOL_REQUEST_ANSWERED);
}

/* Requests in every state: a long one is under way, others begin and end. */
static size_t run_with_goaway(size_t at, uint32_t last)
{
    struct pool_world w;
    struct pool_test_request watch = {.target = "/watch"}, big = {.target = "/pull"},
                             rest[4] = {{.target = NULL}};
    begin_rewriting(&w, insert_goaway, at);
    goaway_last = last;
    w.site.big_bytes = 1000;
    start(&w, &watch);
    start(&w, &big);
    for (size_t i = 0; i < COUNT_OF(rest); i++) {
        rest[i].target = "/health";
        start(&w, &rest[i]);
        pool_world_run(&w, i % 2 ? 0 : 2 * NS_PER_MS);
    }
    pool_world_run(&w, 5 * NS_PER_S);
    expect_after_goaway(&big, last);
    for (size_t i = 0; i < COUNT_OF(rest); i++)
        expect_after_goaway(&rest[i], last);
    assert_int_equal(watch.heads, 1);
    assert_true(watch.ends == 0 || last == 0);
    struct http_pool_stats stats = http_pool_stats(w.pool);
    assert_true(stats.connects <= 2 && stats.connect_errors == 0);
    size_t frames = frames_seen;
    faults.rewrite = NULL;
    pool_world_fini(&w);
    return frames;
}

static void goaway_is_survived_in_every_state(void **state)
{
    (void)state;
    static const uint32_t lasts[] = {0, 1, 3, 5, 0x7fffffff};
    size_t frames = run_with_goaway(SIZE_MAX, 0);
    assert_true(frames > 10);
    for (size_t i = 0; i < COUNT_OF(lasts); i++)
        for (size_t at = 1; at < frames; at++) /* the first is SETTINGS */
            run_with_goaway(at, lasts[i]);
}

/* -- Kept connections -- */

/* The server closes a kept connection while the next request is on its way. */
static void kept_connection_may_have_been_closed(void **state)
{
    (void)state;
    static const char *const methods[] = {"GET", "POST"};
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        struct pool_world w;
        struct pool_test_request first[3] = {{.target = NULL}};
        struct pool_test_request r = {.method = methods[i], .target = "/health"};
        begin(&w, false);
        for (size_t n = 0; n < COUNT_OF(first); n++) {
            first[n].target = "/health";
            start(&w, &first[n]);
        }
        pool_world_run(&w, NS_PER_S);
        faults.kind = FAULT_RESET;
        faults.at = faults.bytes_read;
        start(&w, &r);
        pool_world_run(&w, NS_PER_S);
        assert_true(faults.happened);
        assert_int_equal(r.ends, 1);
        assert_int_equal(pool_test_succeeded(&r), i == 0);
        assert_int_equal(http_pool_stats(w.pool).repeats, i == 0);
        if (i == 0) /* the others are closed, too */
            assert_int_equal(http_pool_stats(w.pool).connections, 1);
        else
            assert_int_equal(r.request.reached, POOL_REQUEST_SENT);
        pool_world_fini(&w);
    }
}

/* -- Keep-alive of HTTP/2 -- */

static void silent_server_is_given_up_as_in_client_go(void **state)
{
    (void)state;
    struct pool_world w;
    struct pool_test_request r = {.target = "/watch", .waits = true}, next = {.target = "/health"};
    begin(&w, true);
    start(&w, &r);
    pool_world_run(&w, 900 * NS_PER_S);
    assert_int_equal(r.ends, 0); /* pings are answered */
    assert_int_equal(http_pool_stats(w.pool).disconnects, 0);
    faults.kind = FAULT_SILENCE;
    faults.at = faults.bytes_read;
    int64_t began = pool_world_now(&w);
    pool_world_run(&w, 100 * NS_PER_S);
    assert_int_equal(r.ends, 1);
    assert_int_equal(r.end, ST_TIMEOUT);
    assert_in_range((r.ended_ns - began) / NS_PER_S, 15, 75); /* 15 s after a ping */
    assert_non_null(strstr(r.reason, "keepalive ping not acked"));
    start(&w, &next);
    pool_world_run(&w, NS_PER_S);
    assert_true(pool_test_succeeded(&next));
    pool_world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(violations_of_http1_end_the_request),
        cmocka_unit_test(violations_of_http2_end_the_request),
        cmocka_unit_test(server_that_allows_no_stream_fails_the_request),
        cmocka_unit_test(server_without_http2_is_explained),
        cmocka_unit_test(refused_streams_are_repeated_with_pauses),
        cmocka_unit_test(request_is_not_repeated_when_something_of_its_body_was_taken),
        cmocka_unit_test(paused_repetition_can_be_cancelled),
        cmocka_unit_test(other_resets_end_the_request),
        cmocka_unit_test(goaway_is_survived_in_every_state),
        cmocka_unit_test(kept_connection_may_have_been_closed),
        cmocka_unit_test(silent_server_is_given_up_as_in_client_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
