/* Deadlines and stalls of calls. */
#include "wire/grpc/endpoint.h"

#include "wire/grpc/fixture_test.h"

#define DEADLINE_NS INT64_C(300000000)

static void pass_deadline(struct fixture *f)
{
    f->now += DEADLINE_NS + H2_SECOND_NS;
    wire_connection_tick(f->connection, f->now);
    drain(f);
}

/* Trailers after half a message would make the client report a broken message. The reset waits for
 * a second, so that a client whose clock is behind can end the call itself. */
static void deadline_within_a_message_resets_the_stream(void **state)
{
    struct fixture *f = *state;
    f->service.source_bytes = 100000; /* more than the window */
    test_call_with(&f->in, 1, "/t.T/List", 0, EXTRA("grpc-timeout", "300m"));
    test_message(&f->in, 1, H2_FLAG_END_STREAM, SLICE_EMPTY);
    exchange(f);
    assert_int_equal(test_data_bytes(buf_slice(&f->out), 1), 65535);
    wire_connection_tick(f->connection, f->now + DEADLINE_NS + H2_SECOND_NS / 2);
    drain(f);
    assert_int_equal(test_error(buf_slice(&f->out), 1), -1);
    assert_true(wire_connection_timeout(f->connection) <= f->now + DEADLINE_NS + H2_SECOND_NS);
    pass_deadline(f);
    assert_int_equal(test_error(buf_slice(&f->out), 1), H2_CANCEL);
    assert_int_equal(test_count(buf_slice(&f->out), H2_HEADERS, 1), 1);
    assert_int_equal(f->service.ends, 1);
}

/* The client ends the call itself; only its reading is late. */
static void answer_complete_before_its_deadline_is_sent(void **state)
{
    struct fixture *f = *state;
    static const uint8_t bytes[100000];
    test_call_with(&f->in, 1, "/t.T/Echo", 0, EXTRA("grpc-timeout", "300m"));
    test_message(&f->in, 1, H2_FLAG_END_STREAM, slice_of(bytes, sizeof(bytes)));
    exchange(f);
    pass_deadline(f);
    test_window(&f->in, 0, 1 << 20);
    test_window(&f->in, 1, 1 << 20);
    exchange(f);
    assert_int_equal(test_data_bytes(buf_slice(&f->out), 1), sizeof(bytes) + GRPC_PREFIX_BYTES);
    assert_int_equal(status_of(f, 1), GRPC_OK);
}

static void deadline_between_messages_is_reported_by_the_status(void **state)
{
    struct fixture *f = *state;
    f->service.source_bytes = 100;
    test_call_with(&f->in, 1, "/t.T/Watch", 0, EXTRA("grpc-timeout", "300m"));
    test_message(&f->in, 1, 0, SLICE_EMPTY);
    test_call_with(&f->in, 3, "/t.T/Chat", 0, EXTRA("grpc-timeout", "300m"));
    test_message(&f->in, 3, 0, SLICE_LITERAL("hello"));
    exchange(f);
    pass_deadline(f);
    assert_ended(f, 1, GRPC_DEADLINE_EXCEEDED, "context deadline exceeded");
    assert_ended(f, 3, GRPC_DEADLINE_EXCEEDED, "context deadline exceeded");
}

static int64_t second_later(void *owner)
{
    return ((struct fixture *)owner)->now + H2_SECOND_NS;
}

static void deadline_counts_from_the_current_time(void **state)
{
    struct fixture *f = *state;
    f->fresh_ns = second_later; /* the turn began a second ago */
    test_call_with(&f->in, 1, "/t.T/Wait", 0, EXTRA("grpc-timeout", "300m"));
    test_message(&f->in, 1, H2_FLAG_END_STREAM, SLICE_EMPTY);
    exchange(f);
    assert_int_equal(wire_connection_timeout(f->connection), f->now + H2_SECOND_NS + DEADLINE_NS);
}

/* No browser can send such a call today; it must be refused if that changes. */
static void page_is_refused_by_a_guarded_server_that_refuses_pages(void **state)
{
    struct fixture *f = *state;
    struct wire_hooks hooks = {.on_output = on_output, .owner = f};
    const char *const *page = EXTRA("origin", "http://evil.example");
    assert_int_equal(wire_server_new(f->services, NULL, &f->limits, &f->server), ST_OK);
    for (int step = 0; step < 4; step++) {
        struct wire_hooks now = hooks;
        uint32_t first = 1, second = 3;
        if (step == 1)
            wire_server_guard(f->server);
        if (step == 2)
            grpc_services_refuse_pages(f->services);
        now.secure = step == 3;
        wire_connection_free(f->connection);
        assert_int_equal(wire_connection_new(f->server, now, f->now, &f->connection), ST_OK);
        f->in.len = f->out.len = 0;
        test_hello(&f->in);
        test_call_with(&f->in, first, "/t.T/Echo", 0, page);
        test_message(&f->in, first, H2_FLAG_END_STREAM, SLICE_LITERAL("a"));
        test_call(&f->in, second, "/t.T/Echo");
        test_message(&f->in, second, H2_FLAG_END_STREAM, SLICE_LITERAL("a"));
        exchange(f);
        if (step == 2)
            assert_ended(f, first, GRPC_PERMISSION_DENIED, "http://evil.example");
        else
            assert_int_equal(status_of(f, first), GRPC_OK);
        assert_int_equal(status_of(f, second), GRPC_OK);
    }
}

/* A byte now and then does not extend the timeout, but 16 KiB do. */
static void slow_message_is_dropped(void **state)
{
    struct fixture *f = *state;
    static uint8_t piece[16384];
    const char *paths[] = {"/t.T/Echo", "/t.T/Watch", "/t.T/Echo"};
    f->limits.grpc.message_ns = 60 * H2_SECOND_NS;
    for (uint32_t i = 0; i < COUNT_OF(paths); i++) {
        test_call(&f->in, 2 * i + 1, paths[i]);
        test_frame(&f->in, H2_DATA, 0, 2 * i + 1, SLICE_LITERAL("\0\0\1\0\0")); /* 64 KiB */
    }
    exchange(f);
    for (int s = 0; s < 59; s++) {
        f->now += H2_SECOND_NS;
        test_frame(&f->in, H2_DATA, 0, 1, SLICE_LITERAL("x"));
        test_frame(&f->in, H2_DATA, 0, 3, SLICE_LITERAL("x"));
        exchange(f);
        wire_connection_tick(f->connection, f->now);
    }
    test_frame(&f->in, H2_DATA, 0, 5, slice_of(piece, sizeof(piece)));
    exchange(f);
    assert_int_equal(test_error(buf_slice(&f->out), 1), -1);
    assert_true(wire_connection_timeout(f->connection) <= f->now + H2_SECOND_NS);
    f->now += H2_SECOND_NS;
    wire_connection_tick(f->connection, f->now);
    drain(f);
    assert_int_equal(test_error(buf_slice(&f->out), 1), H2_CANCEL);
    assert_int_equal(test_error(buf_slice(&f->out), 3), H2_CANCEL);
    assert_int_equal(test_error(buf_slice(&f->out), 5), -1); /* has one second more */
    f->now += H2_SECOND_NS;
    wire_connection_tick(f->connection, f->now);
    drain(f);
    assert_int_equal(test_error(buf_slice(&f->out), 5), H2_CANCEL);
}

/* The message has arrived, but the service waits for the half-close. */
static void request_without_half_close_is_dropped(void **state)
{
    struct fixture *f = *state;
    test_call(&f->in, 1, "/t.T/List");
    test_message(&f->in, 1, 0, SLICE_LITERAL("x"));
    exchange(f);
    wire_connection_tick(f->connection, f->now + f->limits.grpc.message_ns);
    drain(f);
    assert_int_equal(test_error(buf_slice(&f->out), 1), H2_CANCEL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(deadline_within_a_message_resets_the_stream),
        TEST(answer_complete_before_its_deadline_is_sent),
        TEST(deadline_between_messages_is_reported_by_the_status),
        TEST(deadline_counts_from_the_current_time),
        TEST(slow_message_is_dropped),
        TEST(request_without_half_close_is_dropped),
        TEST(page_is_refused_by_a_guarded_server_that_refuses_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
