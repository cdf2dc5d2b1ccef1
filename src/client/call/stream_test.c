/* What the end of a stream means: each row of the table in vigil/watch.h. */
#include "client/call/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static unsigned avoided, renewed, breaks, refusals;
static bool has_user, has_token;

void __wrap_channel_avoid(struct channel *channel, uint64_t generation);
bool __wrap_channel_renew_token(struct channel *channel, uint64_t generation);
bool __wrap_channel_has_token(const struct channel *channel);

void __wrap_channel_avoid(struct channel *channel, uint64_t generation)
{
    (void)channel;
    (void)generation;
    avoided++;
}

bool __wrap_channel_renew_token(struct channel *channel, uint64_t generation)
{
    (void)channel;
    (void)generation;
    renewed += has_user;
    return has_user;
}

bool __wrap_channel_has_token(const struct channel *channel)
{
    (void)channel;
    return has_token;
}

static void on_break(struct client_stream *stream)
{
    (void)stream;
    breaks++;
}

static void on_refused(struct client_stream *stream, enum grpc_code code, struct slice text)
{
    (void)stream;
    (void)code;
    (void)text;
    refusals++;
}

static const struct client_stream_hooks hooks = {.on_break = on_break, .on_refused = on_refused};

static void open_stream(struct client_stream *stream, vigil_client *client)
{
    client_stream_init(stream, client, &hooks, SLICE_LITERAL("/path"), false);
    stream->wanted = true;
    stream->state = STREAM_OPEN;
    avoided = renewed = breaks = refusals = 0;
}

static vigil_client *new_client(void)
{
    vigil_options options;
    vigil_client *client;
    vigil_options_init(&options);
    options.own_thread = 0;
    assert_int_equal(vigil_client_new(&options, &client, NULL), VIGIL_OK);
    return client;
}

enum meaning { RESUMES, MOVES, RENEWS, ENDS, ENDS_AND_MOVES };

static void check_meaning(const struct client_stream *stream, enum meaning meaning)
{
    assert_int_equal(breaks, 1);
    bool ends = meaning == ENDS || meaning == ENDS_AND_MOVES;
    assert_int_equal(refusals, ends);
    assert_int_equal(avoided, meaning == MOVES || meaning == ENDS_AND_MOVES);
    assert_int_equal(renewed, meaning == RENEWS);
    assert_int_equal(stream->state, ends ? STREAM_IDLE : STREAM_PAUSING);
    client_stream_check(stream);
}

static void every_status_has_its_meaning(void **state)
{
    static const struct {
        bool derived; /* here, because the connection broke or the server violated the protocol */
        enum grpc_code code;
        const char *text;
        enum status reason;
        bool user;
        bool token; /* the connection has one */
        enum meaning meaning;
    } rows[] = {
        {true, GRPC_UNAVAILABLE, "the connection broke", ST_OK, false, false, RESUMES},
        {true, GRPC_INTERNAL, "reset", ST_OK, false, false, RESUMES},
        {false, GRPC_OK, "", ST_OK, false, false, RESUMES},
        {false, GRPC_UNAVAILABLE, "etcdserver: server stopped", ST_OK, false, false, MOVES},
        {false, GRPC_UNAVAILABLE, "etcdserver: leader changed", ST_OK, false, false, MOVES},
        {false, GRPC_INTERNAL, "transport is closing", ST_OK, false, false, MOVES},
        {false, GRPC_UNAVAILABLE, "etcdserver: no leader", ST_OK, false, false, MOVES},
        {false, GRPC_FAILED_PRECONDITION, "etcdserver: rpc not supported for learner", ST_OK, false,
         false, ENDS}, /* there is no other endpoint */
        {false, GRPC_UNAUTHENTICATED, "etcdserver: invalid auth token", ST_OK, true, true, RENEWS},
        {false, GRPC_UNAUTHENTICATED, "etcdserver: invalid auth token", ST_OK, false, false, ENDS},
        {false, GRPC_INVALID_ARGUMENT, "etcdserver: revision of auth store is old", ST_OK, true,
         true, RENEWS},
        {false, GRPC_INVALID_ARGUMENT, "etcdserver: revision of auth store is old", ST_OK, false,
         false, ENDS},
        {true, GRPC_RESOURCE_EXHAUSTED, "too large", ST_LIMIT, false, false, ENDS},
        {false, GRPC_RESOURCE_EXHAUSTED, "grpc: received message larger than max", ST_OK, false,
         false, ENDS},
        {false, GRPC_PERMISSION_DENIED, "etcdserver: permission denied", ST_OK, true, true, ENDS},
        {false, GRPC_PERMISSION_DENIED, "etcdserver: permission denied", ST_OK, true, false,
         RENEWS},
        {false, GRPC_PERMISSION_DENIED, "etcdserver: permission denied", ST_OK, false, false, ENDS},
        {false, GRPC_CANCELLED, "", ST_OK, false, false, ENDS},
        {false, GRPC_UNKNOWN, "", ST_OK, false, false, ENDS},
        {false, GRPC_UNIMPLEMENTED, "", ST_OK, false, false, ENDS},
    };
    (void)state;
    vigil_client *client = new_client();
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct client_stream stream;
        struct grpc_outcome outcome = {
            .code = rows[i].code,
            .text = slice_from_text(rows[i].text),
            .from_peer = !rows[i].derived,
            .reason = rows[i].reason,
        };
        open_stream(&stream, client);
        has_user = rows[i].user;
        has_token = rows[i].token;
        stream.call.ops->on_end(&stream.call, &outcome);
        check_meaning(&stream, rows[i].meaning);
        client_stream_fini(&stream);
    }
    vigil_client_free(client);
}

static void stream_that_requires_a_leader_ends_and_is_not_opened_in_a_busy_loop(void **state)
{
    (void)state;
    vigil_client *client = new_client();
    struct client_stream stream;
    struct grpc_outcome outcome = {
        .code = GRPC_UNAVAILABLE,
        .text = SLICE_LITERAL("etcdserver: no leader"),
        .from_peer = true,
    };
    open_stream(&stream, client);
    stream.require_leader = true;
    stream.opened_ns = loop_now_ns(client->driver.loop);
    stream.call.ops->on_end(&stream.call, &outcome);
    check_meaning(&stream, ENDS_AND_MOVES);
    for (int i = 0; i < 2; i++) { /* the first time it would be opened at once, the second not */
        stream.state = STREAM_OPEN;
        stream.call.ops->on_end(&stream.call, &outcome);
    }
    client_stream_want(&stream, true);
    vigil_client_process(client);
    assert_int_equal(stream.state, STREAM_PAUSING);
    client_stream_check(&stream);
    client_stream_fini(&stream);
    vigil_client_free(client);
}

/* A server that refuses every token is not asked for ever. */
static void renewals_are_limited(void **state)
{
    (void)state;
    vigil_client *client = new_client();
    struct client_stream stream;
    struct grpc_outcome outcome = {
        .code = GRPC_UNAUTHENTICATED,
        .text = SLICE_LITERAL("etcdserver: invalid auth token"),
        .from_peer = true,
    };
    unsigned before = 0;
    open_stream(&stream, client);
    has_user = true;
    while (refusals == 0 && before++ < 100) {
        stream.state = STREAM_OPEN;
        stream.call.ops->on_end(&stream.call, &outcome);
        loop_timer_cancel(client->driver.loop, &stream.pause);
    }
    assert_int_equal(refusals, 1);
    assert_in_range(renewed, 1, 10);
    client_stream_fini(&stream);
    vigil_client_free(client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_its_meaning),
        cmocka_unit_test(stream_that_requires_a_leader_ends_and_is_not_opened_in_a_busy_loop),
        cmocka_unit_test(renewals_are_limited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
