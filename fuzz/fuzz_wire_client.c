/* The frames of a hostile server after its first SETTINGS, against gRPC calls of every kind. The
 * first byte of the input is the seed for how the rest is split and what the calls do in between.
 */
#include "cost.h"

#include "wire/grpc/client.h"

#include <stdlib.h>

enum { CALLS = 6, STARTS_MAX = 500 };

struct fuzz_call {
    struct grpc_client_call call;
    struct fuzz_client *client;
    size_t starts, ends;
};

struct fuzz_client {
    struct h2_limits limits;
    struct h2_session *session;
    struct grpc_head *head;
    struct fuzz_call calls[CALLS];
    size_t starts;
    uint32_t seed;
    int64_t now;
};

static uint32_t next_random(struct fuzz_client *c)
{
    c->seed = c->seed * 1664525u + 1013904223u;
    return c->seed >> 8;
}

static void on_message(struct grpc_client_call *call, struct slice message)
{
    struct fuzz_call *f = (struct fuzz_call *)call;
    assert(f->starts == f->ends + 1);
    assert(message.len <= call->request.receive_max);
    if (message.len % 64 == 63)
        grpc_client_call_cancel(call);
    else if (message.len % 64 == 62)
        grpc_client_call_withhold(call, !call->withheld);
    else if (message.len % 64 == 61 && !call->half_closed)
        (void)!grpc_client_call_send(call, message);
}

static void start(struct fuzz_call *f)
{
    struct fuzz_client *c = f->client;
    uint32_t choice = next_random(c);
    struct grpc_client_request request = {
        .head = c->head,
        .path = SLICE_LITERAL("/t.T/Echo"),
        .deadline_ns = choice % 3 ? INT64_MAX : c->now + 1000000000,
        .receive_max = 5000,
        .replayable = choice % 5 == 0,
    };
    if (c->starts >= STARTS_MAX)
        return;
    if (!f->call.output.len && !f->call.half_closed && choice % 2) {
        (void)!grpc_client_call_send(&f->call, SLICE_LITERAL("a message of the client"));
        if (choice % 4 == 1)
            grpc_client_call_half_close(&f->call);
    }
    if (grpc_client_call_start(&f->call, c->session, &request) == ST_OK) {
        f->starts++;
        c->starts++;
    }
}

static void on_end(struct grpc_client_call *call, const struct grpc_outcome *outcome)
{
    struct fuzz_call *f = (struct fuzz_call *)call;
    f->ends++;
    assert(f->starts == f->ends);
    assert(!outcome->from_peer || !outcome->unprocessed);
    assert(outcome->code <= GRPC_UNAUTHENTICATED);
    if (next_random(f->client) % 2)
        start(f);
}

static const struct grpc_client_ops call_ops = {.on_message = on_message, .on_end = on_end};
static const struct h2_session_ops session_ops = {0};

static void drain(struct fuzz_client *c)
{
    static uint8_t room[H2_FILL_ROOM_MIN];
    for (int turns = 0; turns < 64 && h2_session_wants_write(c->session); turns++)
        (void)h2_session_fill(c->session, room, sizeof(room), c->now);
}

/* What calls do independently of input. */
static void act(struct fuzz_client *c)
{
    struct fuzz_call *f = &c->calls[next_random(c) % CALLS];
    uint32_t choice = next_random(c) % 8;
    if (!grpc_client_call_is_open(&f->call))
        start(f);
    else if (choice == 0)
        grpc_client_call_cancel(&f->call);
    else if (choice == 1)
        grpc_client_call_half_close(&f->call);
    else if (choice == 2 && !f->call.half_closed && f->call.output.len < 10000)
        (void)!grpc_client_call_send(&f->call, SLICE_LITERAL("more"));
    else if (choice == 3)
        grpc_client_call_withhold(&f->call, next_random(c) % 2);
    h2_session_check(c->session);
    grpc_client_call_check(&f->call);
}

static void feed(struct fuzz_client *c, struct slice bytes)
{
    while (bytes.len && !h2_session_over(c->session)) {
        size_t most = next_random(c) % 4 ? 40 : 3000;
        size_t n = size_min(bytes.len, 1 + next_random(c) % most);
        h2_session_feed(c->session, slice_sub(bytes, 0, n), c->now);
        bytes = slice_sub(bytes, n, bytes.len - n);
        act(c);
        if (next_random(c) % 2)
            drain(c);
        c->now += next_random(c) % 1000 * 1000000;
        if (c->now >= h2_session_timeout(c->session))
            h2_session_tick(c->session, c->now);
    }
}

static bool begin(struct fuzz_client *c)
{
    struct grpc_head_fields fields = {.authority = SLICE_LITERAL("x")};
    c->limits = H2_CLIENT_LIMITS_DEFAULT;
    c->limits.stream_window = 2000;
    c->limits.keepalive_ns = 10 * H2_SECOND_NS;
    if (grpc_head_new(&fields, &c->head) != ST_OK ||
        h2_session_new_client(&c->limits, &session_ops, c, NULL, c->now, &c->session) != ST_OK)
        return false;
    for (size_t i = 0; i < CALLS; i++) {
        c->calls[i].client = c;
        c->calls[i].call.ops = &call_ops;
        if (i < CALLS / 2)
            start(&c->calls[i]);
    }
    drain(c);
    return true;
}

static void end(struct fuzz_client *c)
{
    c->starts = STARTS_MAX;
    h2_session_free(c->session);
    for (size_t i = 0; i < CALLS; i++) {
        assert(c->calls[i].starts == c->calls[i].ends);
        grpc_client_call_fini(&c->calls[i].call);
    }
    grpc_head_unref(c->head);
}

FUZZ_INPUT()
{
    if (size < 1)
        return 0;
    struct fuzz_client c = {.seed = data[0], .now = H2_SECOND_NS};
    if (begin(&c)) {
        h2_session_feed(c.session, SLICE_LITERAL("\0\0\0\4\0\0\0\0\0"), c.now);
        feed(&c, slice_of(data + 1, size - 1));
        if (c.seed % 5 == 0)
            h2_session_shutdown(c.session, c.now);
        drain(&c);
        h2_session_tick(c.session, c.now + 70 * H2_SECOND_NS);
        drain(&c);
    }
    end(&c);
    return 0;
}
