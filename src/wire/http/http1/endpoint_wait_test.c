/* Answers that wait: what becomes of them when the peer has sent its last byte, or the server shuts
 * down. */
#include "wire/http/http1/endpoint_fixture_test.h"

static void client_that_half_closes_still_gets_its_answer(void **state)
{
    struct fixture *f = *state;
    feed(f, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    http1_endpoint_feed_end(f->endpoint, f->now);
    assert_false(http1_endpoint_over(f->endpoint));
    http_respond(f->site.later, 200, SLICE_EMPTY, SLICE_LITERAL("x"));
    drain(f);
    assert_true(http1_endpoint_over(f->endpoint));
    restart(f);
    feed(f, "GET /la");
    http1_endpoint_feed_end(f->endpoint, f->now);
    assert_true(http1_endpoint_over(f->endpoint));
}

static void answer_that_needs_its_peer_ends_with_it(void **state)
{
    struct fixture *f = *state;
    feed(f, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    http_need_peer(f->site.later, true);
    assert_true(http1_endpoint_wants_read(f->endpoint));
    http1_endpoint_feed_end(f->endpoint, f->now);
    assert_true(http1_endpoint_over(f->endpoint));
    restart(f);
    assert_null(f->site.later);
    feed(f, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    http1_endpoint_feed_end(f->endpoint, f->now);
    size_t outputs = f->outputs;
    http_need_peer(f->site.later, true); /* not at once: the handler is at work */
    assert_non_null(f->site.later);
    assert_int_equal(f->outputs, outputs + 1);
    assert_true(http1_endpoint_wants_write(f->endpoint));
    drain(f);
    assert_true(http1_endpoint_over(f->endpoint));
}

/* What is sent behind the request is read as far as the next head may go, and is not lost. */
static void answer_that_needed_its_peer_is_followed_by_others(void **state)
{
    struct fixture *f = *state;
    static uint8_t bytes[1024];
    feed(f, "GET /later HTTP/1.1\r\n" HOST "\r\n");
    http_need_peer(f->site.later, true);
    feed(f, "GET /health HTTP/1.1\r\n" HOST "\r\n");
    assert_true(http1_endpoint_wants_read(f->endpoint));
    for (size_t i = 0; i < f->limits.head_bytes_max / sizeof(bytes); i++)
        http1_endpoint_feed(f->endpoint, slice_of(bytes, sizeof(bytes)), f->now);
    assert_false(http1_endpoint_wants_read(f->endpoint));
    http_need_peer(f->site.later, false);
    http_respond(f->site.later, 200, SLICE_EMPTY, SLICE_LITERAL("x"));
    drain(f);
    assert_int_equal(count_of(f, "HTTP/1.1 200 OK\r\n"), 2);
}

static void parked_answer_waits_without_stalling(void **state)
{
    struct fixture *f = *state;
    exchange(f, "GET /watch HTTP/1.1\r\n" HOST "\r\n");
    assert_int_equal(http1_endpoint_timeout(f->endpoint), INT64_MAX);
    assert_false(http1_endpoint_wants_write(f->endpoint));
    size_t outputs = f->outputs;
    test_site_watch_more(f->site.watch, 5);
    test_site_watch_more(f->site.watch, 5);
    assert_int_equal(f->outputs, outputs + 1);
    drain(f);
    assert_int_equal(count_of(f, "000a\r\npppppppppp\r\n"), 1);
}

static void parked_answer_ends_with_its_peer(void **state)
{
    struct fixture *f = *state;
    exchange(f, "GET /watch HTTP/1.1\r\n" HOST "\r\n");
    http1_endpoint_feed_end(f->endpoint, f->now);
    assert_true(http1_endpoint_over(f->endpoint));
}

/* If a client sends a further request and disconnects, that must be noticed. */
static void parked_answer_ends_with_its_peer_after_further_input(void **state)
{
    struct fixture *f = *state;
    exchange(f, "GET /watch HTTP/1.1\r\n" HOST "\r\nGET /health HTTP/1.1\r\n");
    assert_true(http1_endpoint_wants_read(f->endpoint));
    http1_endpoint_feed_end(f->endpoint, f->now);
    assert_true(http1_endpoint_over(f->endpoint));
    restart(f);
    exchange(f, "GET /watch HTTP/1.1\r\n" HOST "\r\n");
    static uint8_t bytes[1024];
    for (size_t i = 0; i < f->limits.head_bytes_max / sizeof(bytes); i++)
        http1_endpoint_feed(f->endpoint, slice_of(bytes, sizeof(bytes)), f->now);
    assert_false(http1_endpoint_over(f->endpoint));
    http1_endpoint_feed(f->endpoint, slice_of(bytes, 1), f->now);
    assert_true(http1_endpoint_over(f->endpoint));
    assert_string_equal(http1_endpoint_reason(f->endpoint),
                        "too much input behind a parked answer");
}

static void parked_answer_is_notified_of_the_shutdown(void **state)
{
    struct fixture *f = *state;
    exchange(f, "GET /watch HTTP/1.1\r\n" HOST "\r\n");
    http1_endpoint_shutdown(f->endpoint, f->now);
    drain(f);
    assert_int_equal(f->site.leaves, 1);
    assert_int_equal(count_of(f, "\r\n\r\n0\r\n\r\n"), 1);
    assert_true(http1_endpoint_over(f->endpoint));
}

static void request_that_arrives_during_the_shutdown_does_not_park(void **state)
{
    struct fixture *f = *state;
    feed(f, "GET /watch HTTP/1.1\r\n");
    http1_endpoint_shutdown(f->endpoint, f->now);
    exchange(f, HOST "\r\n");
    assert_int_equal(f->site.leaves, 1);
    assert_true(http1_endpoint_over(f->endpoint));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(client_that_half_closes_still_gets_its_answer),
        TEST(answer_that_needs_its_peer_ends_with_it),
        TEST(answer_that_needed_its_peer_is_followed_by_others),
        TEST(parked_answer_waits_without_stalling),
        TEST(parked_answer_ends_with_its_peer),
        TEST(parked_answer_ends_with_its_peer_after_further_input),
        TEST(parked_answer_is_notified_of_the_shutdown),
        TEST(request_that_arrives_during_the_shutdown_does_not_park),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
