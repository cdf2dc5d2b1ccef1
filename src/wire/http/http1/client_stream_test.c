/* Requests whose body is pulled, and connections that are upgraded. */
#include "wire/http/http1/client.h"

#include "base/clock.h"
#include "wire/http/pulled_test.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define SWITCHED \
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: test/1\r\n\r\n"

struct fixture {
    struct http1_client_limits limits;
    struct http1_client *client;
    struct http1_call call;
    struct pulled pulled;
    int64_t now;
    struct buf out;      /* what the client sent */
    struct buf body;     /* the response's */
    unsigned status;     /* status of the response; 0: no head */
    unsigned input_ends; /* how often on_body had no bytes */
    unsigned ends;       /* calls of on_end */
    enum status end;     /* what it said */
    char reason[128];    /* the same */
    unsigned outputs;    /* calls of on_output */
    bool cancels;        /* at the end of the server's raw bytes */
};

static void on_output(void *owner)
{
    ((struct fixture *)owner)->outputs++;
}

static void on_head(struct http1_call *call, const struct http1_response *response)
{
    CONTAINER_OF(call, struct fixture, call)->status = response->status;
}

static void on_body(struct http1_call *call, struct slice bytes)
{
    struct fixture *f = CONTAINER_OF(call, struct fixture, call);
    assert_int_equal(f->input_ends, 0);
    f->input_ends += bytes.len == 0;
    assert_int_equal(buf_append(&f->body, bytes), ST_OK);
    if (f->cancels && f->input_ends)
        http1_client_cancel(call);
}

static void on_end(struct http1_call *call, enum status status, const char *reason)
{
    struct fixture *f = CONTAINER_OF(call, struct fixture, call);
    assert_null(call->client);
    f->ends++;
    f->end = status;
    snprintf(f->reason, sizeof(f->reason), "%s", reason);
}

static const struct http1_call_ops ops = {on_head, on_body, on_end};

static const struct http1_client_request post = {
    .method = {(const uint8_t *)"POST", 4},
    .target = {(const uint8_t *)"/a", 2},
    .host = {(const uint8_t *)"h", 1},
};

static void restart(struct fixture *f)
{
    struct http1_client_hooks hooks = {on_output, f};
    http1_client_free(f->client);
    f->call = (struct http1_call){.ops = &ops};
    f->out.len = f->body.len = 0;
    f->status = f->ends = f->outputs = f->input_ends = 0;
    pulled_fini(&f->pulled);
    f->pulled = PULLED;
    assert_int_equal(http1_client_new(&f->limits, hooks, &f->client), ST_OK);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->limits = HTTP1_CLIENT_LIMITS_DEFAULT;
    f->now = NS_PER_S;
    restart(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    http1_client_free(f->client);
    pulled_fini(&f->pulled);
    buf_fini(&f->out);
    buf_fini(&f->body);
    free(f);
    return 0;
}

static void drain(struct fixture *f)
{
    uint8_t room[300];
    while (http1_client_wants_write(f->client)) {
        size_t n = http1_client_fill(f->client, room, sizeof(room), f->now);
        assert_int_equal(buf_append(&f->out, slice_of(room, n)), ST_OK);
        http1_client_check(f->client);
        if (f->pulled.endless || n == 0)
            break;
    }
}

static void feed(struct fixture *f, const char *text)
{
    http1_client_feed(f->client, slice_from_text(text), f->now);
    http1_client_check(f->client);
}

static void give(struct fixture *f, const char *text)
{
    pulled_give(&f->pulled, text);
    http1_client_wake(&f->call, f->now);
    drain(f);
}

static void give_end(struct fixture *f)
{
    f->pulled.ends = true;
    http1_client_wake(&f->call, f->now);
    drain(f);
}

/* Whether the bytes since the last time are these. */
static bool sent(struct fixture *f, const char *text)
{
    bool same = slice_equal(buf_slice(&f->out), slice_from_text(text));
    f->out.len = 0;
    return same;
}

/* A request whose body has that length. */
static void begin(struct fixture *f, int64_t bytes)
{
    struct http1_client_request request = post;
    request.source = &f->pulled.source;
    request.source_bytes = bytes;
    restart(f);
    assert_int_equal(http1_client_start(f->client, &f->call, &request, f->now), ST_OK);
    drain(f);
}

/* ---- bodies ---- */

static void body_is_sent_in_chunks_as_it_comes(void **state)
{
    struct fixture *f = *state;
    begin(f, HTTP1_UNKNOWN);
    assert_true(sent(f, "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"));
    assert_false(http1_client_wants_write(f->client));
    unsigned outputs = f->outputs;
    http1_client_wake(&f->call, f->now);
    http1_client_wake(&f->call, f->now);
    assert_int_equal(f->outputs, outputs + 1);
    drain(f);
    assert_int_equal(f->out.len, 0);
    give(f, "hello");
    assert_true(sent(f, "0005\r\nhello\r\n"));
    pulled_give(&f->pulled, "world");
    give_end(f);
    assert_true(sent(f, "0005\r\nworld\r\n0\r\n\r\n"));
    http1_client_wake(&f->call, f->now); /* no effect */
    assert_false(http1_client_wants_write(f->client));
    feed(f, OK);
    assert_int_equal(f->end, ST_OK);
    assert_true(http1_client_is_idle(f->client));
    /* The end alone. */
    begin(f, HTTP1_UNKNOWN);
    f->out.len = 0;
    give_end(f);
    assert_true(sent(f, "0\r\n\r\n"));
}

static void body_of_known_length_is_sent_as_it_is(void **state)
{
    struct fixture *f = *state;
    begin(f, 10);
    assert_true(sent(f, "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n"));
    give(f, "01234");
    give(f, "56789 and more");
    assert_true(sent(f, "0123456789"));
    feed(f, OK);
    assert_true(http1_client_is_idle(f->client));
    begin(f, 0);
    assert_true(sent(f, "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"));
    assert_int_equal(f->pulled.fills, 0);
    feed(f, OK);
    assert_true(http1_client_is_idle(f->client));
}

static void body_that_is_too_short_ends_the_call(void **state)
{
    struct fixture *f = *state;
    begin(f, 10);
    give(f, "01234");
    give_end(f);
    assert_int_equal(f->ends, 1);
    assert_int_equal(f->end, ST_INVALID);
    assert_true(http1_client_is_over(f->client));
}

static void large_body_is_cut_to_the_room(void **state)
{
    struct fixture *f = *state;
    static uint8_t room[200000];
    begin(f, HTTP1_UNKNOWN);
    f->pulled.endless = true;
    http1_client_wake(&f->call, f->now);
    for (size_t n = 256; n < sizeof(room); n += 997) {
        uint8_t *end = room + http1_client_fill(f->client, room, n, f->now);
        assert_true(end > room + n / 2 || n > 65535);
        assert_true(end <= room + n);
        size_t size = strtoul((const char *)room, NULL, 16);
        assert_ptr_equal(end, room + 6 + size + 2);
        assert_memory_equal(end - 2, "\r\n", 2);
    }
    assert_int_equal(http1_client_fill(f->client, room, 255, f->now), 0);
}

static void response_may_begin_and_end_before_the_body(void **state)
{
    struct fixture *f = *state;
    begin(f, HTTP1_UNKNOWN);
    give(f, "a");
    feed(f, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n");
    assert_int_equal(f->status, 200);
    f->out.len = 0;
    give(f, "b"); /* both directions */
    assert_true(sent(f, "0001\r\nb\r\n"));
    feed(f, "1\r\ny\r\n");
    give_end(f);
    feed(f, "0\r\n\r\n");
    assert_int_equal(f->end, ST_OK);
    assert_true(http1_client_is_idle(f->client));
    /* The connection with half a request cannot be used again. */
    begin(f, HTTP1_UNKNOWN);
    give(f, "a");
    feed(f, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(f->status, 413);
    assert_int_equal(f->end, ST_OK);
    assert_true(http1_client_is_over(f->client));
    http1_client_wake(&f->call, f->now);
    assert_false(http1_client_wants_write(f->client));
}

static void time_counts_while_the_server_has_to_do_something(void **state)
{
    struct fixture *f = *state;
    int64_t head_ns = f->limits.head_ns;
    begin(f, 100);
    assert_int_equal(http1_client_timeout(f->client), CLOCK_NEVER); /* we have nothing */
    f->now += 10 * head_ns;
    pulled_give(&f->pulled, "more");
    http1_client_wake(&f->call, f->now);
    assert_int_equal(http1_client_timeout(f->client), f->now + head_ns);
    f->now += head_ns - 1;
    drain(f);
    assert_int_equal(http1_client_timeout(f->client), CLOCK_NEVER);
    for (int i = 0; i < 96; i++) { /* slow, but not stuck */
        f->now += head_ns - 1;
        give(f, "x");
    }
    assert_int_equal(http1_client_timeout(f->client), f->now + head_ns); /* for its answer */
    f->now += head_ns;
    http1_client_tick(f->client, f->now);
    assert_int_equal(f->end, ST_TIMEOUT);
}

static void call_with_a_body_may_end_at_any_time(void **state)
{
    struct fixture *f = *state;
    begin(f, HTTP1_UNKNOWN);
    give(f, "a");
    http1_client_cancel(&f->call);
    assert_true(http1_client_is_over(f->client));
    http1_client_wake(&f->call, f->now);
    assert_int_equal(f->ends, 0);
    begin(f, HTTP1_UNKNOWN);
    give(f, "a");
    http1_client_lost(f->client, "cut");
    assert_int_equal(f->end, ST_CLOSED);
    begin(f, HTTP1_UNKNOWN);
    give(f, "a");
    http1_client_feed_end(f->client);
    assert_int_equal(f->end, ST_CLOSED);
}

/* ---- upgrades ---- */

static void ask(struct fixture *f)
{
    struct http1_client_request request = post;
    request.source = &f->pulled.source;
    request.upgrade = SLICE_LITERAL("test/1");
    restart(f);
    pulled_give(&f->pulled, "raw");
    assert_int_equal(http1_client_start(f->client, &f->call, &request, f->now), ST_OK);
    drain(f);
    assert_true(sent(f, "POST /a HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\n"
                        "Upgrade: test/1\r\n\r\n"));
    assert_int_equal(f->pulled.fills, 0); /* only after the 101 */
}

static void upgrade(struct fixture *f)
{
    ask(f);
    feed(f, SWITCHED "first");
    assert_int_equal(f->status, 101);
    assert_true(slice_equal(buf_slice(&f->body), SLICE_LITERAL("first")));
    drain(f);
    assert_true(sent(f, "raw"));
    assert_int_equal(http1_client_timeout(f->client), CLOCK_NEVER);
    assert_false(http1_client_is_idle(f->client) || http1_client_is_over(f->client));
}

static void upgraded_connection_carries_bytes_in_both_directions(void **state)
{
    struct fixture *f = *state;
    upgrade(f);
    f->body.len = 0;
    feed(f, OK "\r\n\r\n"); /* means nothing any more */
    assert_true(slice_equal(buf_slice(&f->body), SLICE_LITERAL(OK "\r\n\r\n")));
    give(f, "more");
    assert_true(sent(f, "more"));
    http1_client_withhold(&f->call, true, f->now);
    assert_false(http1_client_wants_read(f->client));
    http1_client_withhold(&f->call, false, f->now);
    assert_true(http1_client_wants_read(f->client));
    http1_client_shutdown(f->client);
    assert_false(http1_client_is_over(f->client)); /* it is finished first */
    http1_client_cancel(&f->call);
    assert_true(http1_client_is_over(f->client));
    assert_int_equal(f->ends, 0);
}

static void each_direction_of_an_upgraded_connection_ends_alone(void **state)
{
    struct fixture *f = *state;
    upgrade(f); /* the server ends first */
    http1_client_feed_end(f->client);
    http1_client_feed_end(f->client);
    http1_client_check(f->client);
    assert_int_equal(f->input_ends, 1);
    assert_false(http1_client_wants_read(f->client));
    assert_int_equal(f->ends, 0);
    give(f, "rest");
    assert_true(sent(f, "rest"));
    assert_false(http1_client_output_ended(f->client));
    give_end(f);
    assert_int_equal(f->end, ST_OK);
    assert_true(http1_client_is_over(f->client));

    upgrade(f); /* we end first */
    pulled_give(&f->pulled, "rest");
    give_end(f);
    assert_true(sent(f, "rest"));
    assert_true(http1_client_output_ended(f->client));
    assert_true(http1_client_wants_read(f->client));
    f->body.len = 0;
    feed(f, "still");
    assert_true(slice_equal(buf_slice(&f->body), SLICE_LITERAL("still")));
    http1_client_feed_end(f->client);
    assert_int_equal(f->input_ends, 1);
    assert_int_equal(f->ends, 1);
    assert_int_equal(f->end, ST_OK);

    upgrade(f); /* it is lost */
    http1_client_lost(f->client, "cut");
    assert_int_equal(f->end, ST_CLOSED);
    assert_int_equal(f->input_ends, 0);

    f->cancels = true;
    upgrade(f);
    http1_client_feed_end(f->client);
    http1_client_check(f->client);
    assert_true(http1_client_is_over(f->client));
    assert_int_equal(f->ends, 0);
}

static void other_answers_to_an_upgrade_are_ordinary(void **state)
{
    struct fixture *f = *state;
    ask(f);
    feed(f, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    assert_int_equal(f->status, 403);
    assert_int_equal(f->end, ST_OK);
    assert_int_equal(f->pulled.fills, 0);
    assert_true(http1_client_is_idle(f->client));
    ask(f);
    feed(f, "HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nno");
    http1_client_wake(&f->call, f->now);
    assert_false(http1_client_wants_write(f->client));
    ask(f);
    assert_int_equal(http1_client_timeout(f->client), f->now + f->limits.head_ns);
    begin(f, 3); /* it was not requested */
    feed(f, SWITCHED);
    assert_int_equal(f->end, ST_MALFORMED);
}

static void upgrade_to_what_cannot_be_sent_is_refused(void **state)
{
    struct fixture *f = *state;
    struct http1_client_request request = post;
    request.upgrade = SLICE_LITERAL("a\r\nb");
    assert_int_equal(http1_client_start(f->client, &f->call, &request, f->now), ST_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(body_is_sent_in_chunks_as_it_comes, setup, teardown),
        cmocka_unit_test_setup_teardown(body_of_known_length_is_sent_as_it_is, setup, teardown),
        cmocka_unit_test_setup_teardown(body_that_is_too_short_ends_the_call, setup, teardown),
        cmocka_unit_test_setup_teardown(large_body_is_cut_to_the_room, setup, teardown),
        cmocka_unit_test_setup_teardown(response_may_begin_and_end_before_the_body, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(time_counts_while_the_server_has_to_do_something, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(call_with_a_body_may_end_at_any_time, setup, teardown),
        cmocka_unit_test_setup_teardown(upgraded_connection_carries_bytes_in_both_directions, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(each_direction_of_an_upgraded_connection_ends_alone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(other_answers_to_an_upgrade_are_ordinary, setup, teardown),
        cmocka_unit_test_setup_teardown(upgrade_to_what_cannot_be_sent_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
