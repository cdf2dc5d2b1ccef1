#include "wire/http/http1/client.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/failing_memory_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct fixture {
    struct http1_client_limits limits;
    struct http1_client *client;
    struct http1_call call;
    int64_t now;
    struct buf out;       /* what the client sent */
    struct buf body;      /* body of the response */
    unsigned status;      /* status of the response; 0: no head */
    struct buf index;     /* its X-Etcd-Index */
    unsigned ends;        /* calls of on_end */
    enum status end;      /* what it said */
    char reason[128];     /* the same */
    unsigned outputs;     /* calls of on_output */
    bool cancels_in_head; /* on_head cancels */
    bool cancels_in_body; /* on_body cancels */
    unsigned again;       /* on_end starts this many further calls */
    enum status started;  /* what the latest start returned */
};

static void on_output(void *owner)
{
    ((struct fixture *)owner)->outputs++;
}

static struct fixture *fixture_of(struct http1_call *call)
{
    return CONTAINER_OF(call, struct fixture, call);
}

static void on_head(struct http1_call *call, const struct http1_response *response)
{
    struct fixture *f = fixture_of(call);
    struct slice index;
    f->status = response->status;
    memory_exempt = true;
    f->index.len = 0;
    if (http1_response_get(response, SLICE_LITERAL("x-etcd-index"), &index))
        assert_int_equal(buf_append(&f->index, index), ST_OK);
    memory_exempt = false;
    if (f->cancels_in_head)
        http1_client_cancel(call);
}

static void on_body(struct http1_call *call, struct slice bytes)
{
    struct fixture *f = fixture_of(call);
    assert_true(bytes.len > 0);
    memory_exempt = true;
    assert_int_equal(buf_append(&f->body, bytes), ST_OK);
    memory_exempt = false;
    if (f->cancels_in_body)
        http1_client_cancel(call);
}

static void start(struct fixture *f);

static void on_end(struct http1_call *call, enum status status, const char *reason)
{
    struct fixture *f = fixture_of(call);
    assert_null(call->client);
    f->ends++;
    f->end = status;
    snprintf(f->reason, sizeof(f->reason), "%s", reason);
    if (f->again) {
        f->again--;
        start(f);
    }
}

static const struct http1_call_ops ops = {on_head, on_body, on_end};

static const struct http1_client_request get = {
    .method = {(const uint8_t *)"GET", 3},
    .target = {(const uint8_t *)"/v2/keys/a?wait=true", 20},
    .host = {(const uint8_t *)"h:1", 3},
};

static void start(struct fixture *f)
{
    f->started = http1_client_start(f->client, &f->call, &get, f->now);
}

static enum status restart(struct fixture *f)
{
    struct http1_client_hooks hooks = {on_output, f};
    http1_client_free(f->client);
    f->client = NULL;
    f->call = (struct http1_call){.ops = &ops};
    f->out.len = f->body.len = 0;
    f->status = f->ends = f->outputs = 0;
    f->end = ST_OK;
    f->reason[0] = '\0';
    return http1_client_new(&f->limits, hooks, &f->client);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->limits = HTTP1_CLIENT_LIMITS_DEFAULT;
    f->now = NS_PER_S;
    assert_int_equal(restart(f), ST_OK);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    http1_client_free(f->client);
    buf_fini(&f->out);
    buf_fini(&f->body);
    buf_fini(&f->index);
    free(f);
    return 0;
}

static void drain(struct fixture *f)
{
    uint8_t room[7];
    memory_exempt = true;
    while (http1_client_wants_write(f->client)) {
        size_t n = http1_client_fill(f->client, room, sizeof(room), f->now);
        assert_true(n > 0);
        assert_int_equal(buf_append(&f->out, slice_of(room, n)), ST_OK);
    }
    memory_exempt = false;
}

static void begin(struct fixture *f)
{
    start(f);
    assert_int_equal(f->started, ST_OK);
    drain(f);
}

static void feed(struct fixture *f, const char *text)
{
    http1_client_feed(f->client, slice_from_text(text), f->now);
    http1_client_check(f->client);
}

static bool buf_is(const struct buf *buf, const char *text)
{
    return slice_equal(buf_slice(buf), slice_from_text(text));
}

/* One call whose response is this text, and the end of the connection if wanted. */
static void exchange(struct fixture *f, const char *response, bool ends)
{
    assert_int_equal(restart(f), ST_OK);
    begin(f);
    feed(f, response);
    if (ends)
        http1_client_feed_end(f->client);
    http1_client_check(f->client);
}

static void request_has_its_fields_and_body(void **state)
{
    struct fixture *f = *state;
    struct http_field fields[] = {{SLICE_LITERAL("Accept"), SLICE_LITERAL("*/*")}};
    struct http1_client_request request = get;
    request.method = SLICE_LITERAL("PUT");
    request.fields = fields;
    request.field_count = 1;
    request.body = SLICE_LITERAL("value=1");
    assert_int_equal(http1_client_start(f->client, &f->call, &request, f->now), ST_OK);
    assert_int_equal(f->outputs, 1);
    drain(f);
    assert_true(buf_is(&f->out, "PUT /v2/keys/a?wait=true HTTP/1.1\r\nHost: h:1\r\nAccept: */*\r\n"
                                "Content-Length: 7\r\n\r\nvalue=1"));
    http1_client_check(f->client);
}

static void requests_with_forbidden_bytes_are_refused(void **state)
{
    struct fixture *f = *state;
    struct http_field bad_value = {SLICE_LITERAL("A"), SLICE_LITERAL("b\r\nC: d")};
    struct http_field bad_name = {SLICE_LITERAL("A b"), SLICE_LITERAL("c")};
    struct http1_client_request rows[] = {get, get, get, get, get};
    rows[0].target = SLICE_LITERAL("/a b");
    rows[1].target = SLICE_LITERAL("/a\r\n");
    rows[2].host = SLICE_LITERAL("h\n");
    rows[3].fields = &bad_value;
    rows[3].field_count = 1;
    rows[4].fields = &bad_name;
    rows[4].field_count = 1;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(http1_client_start(f->client, &f->call, &rows[i], f->now), ST_INVALID);
        assert_false(http1_client_wants_write(f->client));
        assert_true(http1_client_is_idle(f->client));
    }
}

static void connection_is_used_again(void **state)
{
    struct fixture *f = *state;
    exchange(f, "HTTP/1.1 200 OK\r\nX-Etcd-Index: 7\r\nContent-Length: 2\r\n\r\nab", false);
    assert_int_equal(f->status, 200);
    assert_true(buf_is(&f->index, "7"));
    assert_true(buf_is(&f->body, "ab"));
    assert_int_equal(f->ends, 1);
    assert_true(http1_client_is_idle(f->client));
    begin(f);
    feed(f, "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n"
            "3;x=y\r\ncde\r\n0\r\nTrailer: z\r\n\r\n");
    assert_int_equal(f->status, 404);
    assert_true(buf_is(&f->body, "abcde"));
    assert_int_equal(f->ends, 2);
    assert_int_equal(f->end, ST_OK);
    assert_true(http1_client_is_idle(f->client));
}

static void one_call_at_a_time(void **state)
{
    struct fixture *f = *state;
    struct http1_call other = {.ops = &ops};
    begin(f);
    assert_int_equal(http1_client_start(f->client, &other, &get, f->now), ST_AGAIN);
}

static void responses_without_a_body_end_at_once(void **state)
{
    struct fixture *f = *state;
    exchange(f, "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", false);
    assert_int_equal(f->end, ST_OK);
    assert_int_equal(f->ends, 1);
    exchange(f, "HTTP/1.1 304\r\nTransfer-Encoding: chunked\r\n\r\n", false);
    assert_int_equal(f->ends, 1);
    exchange(f, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false);
    assert_int_equal(f->ends, 1);
    assert_int_equal(restart(f), ST_OK);
    struct http1_client_request head = get;
    head.method = SLICE_LITERAL("HEAD");
    assert_int_equal(http1_client_start(f->client, &f->call, &head, f->now), ST_OK);
    drain(f);
    feed(f, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
    assert_int_equal(f->ends, 1);
    assert_true(http1_client_is_idle(f->client));
}

static void interim_responses_are_skipped(void **state)
{
    struct fixture *f = *state;
    exchange(f,
             "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
             "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
             false);
    assert_int_equal(f->status, 200);
    assert_int_equal(f->end, ST_OK);
}

static void connection_that_is_not_kept_is_over(void **state)
{
    struct fixture *f = *state;
    exchange(f, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", false);
    assert_int_equal(f->end, ST_OK);
    assert_true(http1_client_is_over(f->client));
    start(f);
    assert_int_equal(f->started, ST_CLOSED);
    exchange(f, "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", false);
    assert_true(http1_client_is_over(f->client));
    exchange(f, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx", false);
    assert_true(http1_client_is_idle(f->client));
}

static void body_may_end_with_the_connection(void **state)
{
    struct fixture *f = *state;
    exchange(f, "HTTP/1.0 200 OK\r\n\r\nabc", true);
    assert_true(buf_is(&f->body, "abc"));
    assert_int_equal(f->end, ST_OK);
    assert_true(http1_client_is_over(f->client));
}

static void early_end_of_the_connection_is_an_error(void **state)
{
    struct fixture *f = *state;
    static const char *const rows[] = {
        "", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        exchange(f, rows[i], true);
        assert_int_equal(f->ends, 1);
        assert_int_equal(f->end, ST_CLOSED);
        assert_string_equal(f->reason, "the server closed the connection");
    }
}

static void malformed_responses_are_refused(void **state)
{
    struct fixture *f = *state;
    static const char *const rows[] = {
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 200 \x01\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\x02\r\n\r\n",
        "HTTP/1.1 200 OK\r\n folded: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n123456789\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc",
        "\r\n\r\n",
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        exchange(f, rows[i], false);
        assert_int_equal(f->ends, 1);
        assert_int_equal(f->end, ST_MALFORMED);
        assert_true(http1_client_is_over(f->client));
        assert_true(*f->reason);
    }
}

static void bytes_without_a_request_end_the_connection(void **state)
{
    struct fixture *f = *state;
    feed(f, "H");
    assert_true(http1_client_is_over(f->client));
    assert_int_equal(f->ends, 0);
}

/* A second response in the bytes of the first must not become the answer of the next request. */
static void early_response_answers_no_later_request(void **state)
{
    struct fixture *f = *state;
    f->again = 1;
    exchange(f,
             "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"
             "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb",
             false);
    assert_int_equal(f->ends, 1);
    assert_int_equal(f->started, ST_CLOSED);
    assert_true(buf_is(&f->body, "a"));
    assert_true(http1_client_is_over(f->client));
}

static void next_call_starts_in_the_end_of_the_last(void **state)
{
    struct fixture *f = *state;
    f->again = 1;
    exchange(f, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", false);
    assert_int_equal(f->started, ST_OK);
    assert_true(http1_client_wants_write(f->client));
    drain(f);
    feed(f, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb");
    assert_true(buf_is(&f->body, "ab"));
    assert_int_equal(f->ends, 2);
}

static void response_to_half_a_request_ends_the_connection(void **state)
{
    struct fixture *f = *state;
    start(f);
    feed(f, "HTTP/1.1 431 Too Large\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(f->ends, 1);
    assert_int_equal(f->end, ST_OK);
    assert_int_equal(f->status, 431);
    assert_true(http1_client_is_over(f->client));
    assert_false(http1_client_wants_write(f->client));
}

static void cancelled_call_ends_silently(void **state)
{
    struct fixture *f = *state;
    begin(f);
    http1_client_cancel(&f->call);
    http1_client_check(f->client);
    assert_int_equal(f->ends, 0);
    assert_true(http1_client_is_over(f->client));
    http1_client_cancel(&f->call); /* no effect */
    f->cancels_in_head = true;
    exchange(f, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", false);
    assert_int_equal(f->ends, 0);
    assert_int_equal(f->body.len, 0);
    f->cancels_in_head = false;
    f->cancels_in_body = true;
    exchange(f, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n", false);
    assert_int_equal(f->ends, 0);
    assert_true(buf_is(&f->body, "a"));
    assert_true(http1_client_is_over(f->client));
}

static void lost_connection_ends_the_call(void **state)
{
    struct fixture *f = *state;
    begin(f);
    http1_client_lost(f->client, "reset");
    assert_int_equal(f->ends, 1);
    assert_string_equal(f->reason, "reset");
    assert_int_equal(restart(f), ST_OK);
    begin(f);
    http1_client_free(f->client);
    f->client = NULL;
    assert_int_equal(f->ends, 1);
}

static void shutdown_waits_for_the_call(void **state)
{
    struct fixture *f = *state;
    begin(f);
    http1_client_shutdown(f->client);
    assert_false(http1_client_is_over(f->client));
    feed(f, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na");
    assert_int_equal(f->end, ST_OK);
    assert_true(http1_client_is_over(f->client));
    assert_int_equal(restart(f), ST_OK);
    http1_client_shutdown(f->client);
    assert_true(http1_client_is_over(f->client));
}

/* -- Limits -- */

static void header_has_a_limit(void **state)
{
    struct fixture *f = *state;
    AUTO(buf_fini) struct buf text = {0};
    f->limits.head_bytes_max = 1000;
    for (size_t value = 900; value < 1000; value++) {
        text.len = 0;
        assert_int_equal(
            buf_append_format(&text, "HTTP/1.1 204 No\r\nA: %0*d\r\n\r\n", (int)value, 0), ST_OK);
        size_t len = text.len;
        assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
        exchange(f, (const char *)text.ptr, false);
        assert_int_equal(f->end, len <= 1000 ? ST_OK : ST_LIMIT);
    }
    /* Without an end, and in small pieces. */
    assert_int_equal(restart(f), ST_OK);
    begin(f);
    feed(f, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 100 && f->ends == 0; i++)
        feed(f, "A: 0123456789012\r\n");
    assert_int_equal(f->end, ST_LIMIT);
}

static void interim_responses_have_a_limit(void **state)
{
    struct fixture *f = *state;
    f->limits.head_bytes_max = 1000;
    assert_int_equal(restart(f), ST_OK);
    begin(f);
    for (int i = 0; i < 100 && f->ends == 0; i++)
        feed(f, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_int_equal(f->end, ST_LIMIT);
}

static void fields_have_a_limit(void **state)
{
    struct fixture *f = *state;
    f->limits.fields_max = 2;
    exchange(f, "HTTP/1.1 204 No\r\nA: 1\r\nB: 2\r\n\r\n", false);
    assert_int_equal(f->end, ST_OK);
    exchange(f, "HTTP/1.1 204 No\r\nA: 1\r\nB: 2\r\nC: 3\r\n\r\n", false);
    assert_int_equal(f->end, ST_MALFORMED);
}

static void chunk_lines_and_trailers_have_limits(void **state)
{
    struct fixture *f = *state;
    exchange(f, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", false);
    for (int i = 0; i < 200 && f->ends == 0; i++)
        feed(f, "0123456789");
    assert_string_equal(f->reason, "chunk line too long");
    f->limits.head_bytes_max = 1000;
    exchange(f, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", false);
    for (int i = 0; i < 200 && f->ends == 0; i++)
        feed(f, "A: 0123456789\r\n");
    assert_string_equal(f->reason, "trailers too large");
}

static void time_without_an_answer_has_a_limit(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(http1_client_timeout(f->client), CLOCK_NEVER);
    begin(f);
    assert_int_equal(http1_client_timeout(f->client), f->now + f->limits.head_ns);
    f->now += f->limits.head_ns / 2;
    feed(f, "HTTP/1.1 200 OK\r\n"); /* a slow head does not get more time */
    assert_int_equal(http1_client_timeout(f->client), f->now + f->limits.head_ns / 2);
    feed(f, "Content-Length: 2\r\n\r\n");
    f->now += f->limits.stall_ns / 2;
    feed(f, "a"); /* a slow body does */
    assert_int_equal(http1_client_timeout(f->client), f->now + f->limits.stall_ns);
    http1_client_tick(f->client, f->now + f->limits.stall_ns - 1);
    assert_int_equal(f->ends, 0);
    http1_client_tick(f->client, f->now + f->limits.stall_ns);
    assert_int_equal(f->end, ST_TIMEOUT);
    assert_string_equal(f->reason, "timeout: the server does not answer");
    assert_true(http1_client_is_over(f->client));
}

static void call_that_waits_for_events_may_take_any_time(void **state)
{
    struct fixture *f = *state;
    f->call.waits = true;
    begin(f);
    assert_int_equal(http1_client_timeout(f->client), f->now + f->limits.head_ns);
    feed(f, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_int_equal(http1_client_timeout(f->client), CLOCK_NEVER);
}

static void body_can_be_withheld(void **state)
{
    struct fixture *f = *state;
    http1_client_withhold(&f->call, true, f->now); /* no effect: it is not under way */
    assert_true(http1_client_wants_read(f->client));
    begin(f);
    http1_client_withhold(&f->call, true, f->now);
    assert_true(http1_client_wants_read(f->client)); /* the head has not arrived */
    assert_int_equal(f->outputs, 2);
    feed(f, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na");
    assert_false(http1_client_wants_read(f->client));
    assert_int_equal(http1_client_timeout(f->client), CLOCK_NEVER);
    feed(f, "b"); /* was read before */
    assert_true(buf_is(&f->body, "ab"));
    f->now += 10 * f->limits.stall_ns;
    http1_client_withhold(&f->call, false, f->now);
    assert_int_equal(f->outputs, 3);
    assert_true(http1_client_wants_read(f->client));
    assert_int_equal(http1_client_timeout(f->client), f->now + f->limits.stall_ns);
    http1_client_withhold(&f->call, true, f->now);
    feed(f, "cd");
    assert_int_equal(f->ends, 1);
    begin(f); /* and is forgotten with the call */
    feed(f, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
    assert_true(http1_client_wants_read(f->client));
    http1_client_withhold(&f->call, true, f->now);
    http1_client_cancel(&f->call);
    assert_false(http1_client_wants_read(f->client));
}

static void body_of_any_length_is_not_kept(void **state)
{
    struct fixture *f = *state;
    enum { CHUNKS = 3000, CHUNK = 8000 };
    char chunk[CHUNK + 16];
    size_t received = 0, before;
    int n = snprintf(chunk, sizeof(chunk), "%x\r\n%0*d\r\n", CHUNK, CHUNK, 0);
    exchange(f, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false);
    before = memory_allocations;
    for (int i = 0; i < CHUNKS; i++) {
        http1_client_feed(f->client, slice_of(chunk, (size_t)n), f->now);
        received += f->body.len;
        f->body.len = 0;
    }
    assert_int_equal(received, (size_t)CHUNKS * CHUNK);
    assert_int_equal(memory_allocations, before);
    feed(f, "0\r\n\r\n");
    assert_int_equal(f->end, ST_OK);
}

/* -- Pieces and memory -- */

static const char conversation[] =
    "HTTP/1.1 100 Continue\r\n\r\n"
    "HTTP/1.1 200 OK\r\nX-Etcd-Index: 35\r\nTransfer-Encoding: chunked\r\n\r\n"
    "4;ext=1\r\nabcd\r\n"
    "a\r\n0123456789\r\n"
    "0\r\nTrailer: x\r\n\r\n";

static void response_may_be_cut_anywhere(void **state)
{
    struct fixture *f = *state;
    size_t len = sizeof(conversation) - 1;
    for (size_t first = 0; first <= len; first++) {
        for (size_t second = first; second <= len; second += 1 + second % 7) {
            assert_int_equal(restart(f), ST_OK);
            begin(f);
            http1_client_feed(f->client, slice_of(conversation, first), f->now);
            http1_client_check(f->client);
            http1_client_feed(f->client, slice_of(conversation + first, second - first), f->now);
            http1_client_check(f->client);
            http1_client_feed(f->client, slice_of(conversation + second, len - second), f->now);
            http1_client_check(f->client);
            assert_int_equal(f->ends, 1);
            assert_int_equal(f->end, ST_OK);
            assert_true(buf_is(&f->body, "abcd0123456789"));
            assert_true(buf_is(&f->index, "35"));
            assert_true(http1_client_is_idle(f->client));
        }
    }
    assert_int_equal(restart(f), ST_OK);
    begin(f);
    for (size_t i = 0; i < len; i++)
        http1_client_feed(f->client, slice_of(conversation + i, 1), f->now);
    assert_true(buf_is(&f->body, "abcd0123456789"));
    assert_int_equal(f->end, ST_OK);
}

/* The call either succeeds or ends once with ST_NOMEM. */
static void one_life(void *ctx)
{
    struct fixture *f = ctx;
    size_t len = sizeof(conversation) - 1;
    if (restart(f) != ST_OK)
        return;
    start(f);
    if (f->started != ST_OK) {
        assert_int_equal(f->started, ST_NOMEM);
        assert_int_equal(f->ends, 0);
        http1_client_check(f->client);
        return;
    }
    drain(f);
    for (size_t i = 0; i < len; i += 3)
        http1_client_feed(f->client, slice_of(conversation + i, size_min(3, len - i)), f->now);
    http1_client_check(f->client);
    assert_int_equal(f->ends, 1);
    assert_true(f->end == ST_NOMEM || (f->end == ST_OK && buf_is(&f->body, "abcd0123456789")));
}

static void missing_memory_ends_the_call(void **state)
{
    struct fixture *f = *state;
    assert_true(each_allocation_fails(one_life, f) > 4);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(request_has_its_fields_and_body),
        CASE(requests_with_forbidden_bytes_are_refused),
        CASE(connection_is_used_again),
        CASE(one_call_at_a_time),
        CASE(responses_without_a_body_end_at_once),
        CASE(interim_responses_are_skipped),
        CASE(connection_that_is_not_kept_is_over),
        CASE(body_may_end_with_the_connection),
        CASE(early_end_of_the_connection_is_an_error),
        CASE(malformed_responses_are_refused),
        CASE(bytes_without_a_request_end_the_connection),
        CASE(early_response_answers_no_later_request),
        CASE(next_call_starts_in_the_end_of_the_last),
        CASE(response_to_half_a_request_ends_the_connection),
        CASE(cancelled_call_ends_silently),
        CASE(lost_connection_ends_the_call),
        CASE(shutdown_waits_for_the_call),
        CASE(header_has_a_limit),
        CASE(interim_responses_have_a_limit),
        CASE(fields_have_a_limit),
        CASE(chunk_lines_and_trailers_have_limits),
        CASE(time_without_an_answer_has_a_limit),
        CASE(call_that_waits_for_events_may_take_any_time),
        CASE(body_can_be_withheld),
        CASE(body_of_any_length_is_not_kept),
        CASE(response_may_be_cut_anywhere),
        CASE(missing_memory_ends_the_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
