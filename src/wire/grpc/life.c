/* How a call begins and ends, and where its memory goes. */
#include "wire/grpc/endpoint_private.h"

#include <stdlib.h>

_Static_assert(sizeof(struct grpc_call) + 256 <= GRPC_CALL_BYTES,
               "a call leaves its arena some first bytes");
_Static_assert(sizeof(struct grpc_call) % ARENA_ALIGN == 0 &&
                   sizeof(struct grpc_call) + GRPC_PARKED_BYTES <= GRPC_PARKING_CALL_BYTES,
               "and one that parks needs no other block for its service's state");

void grpc_server_init(struct grpc_server *server, const struct grpc_services *services,
                      const struct grpc_limits *limits)
{
    *server = (struct grpc_server){.services = services, .limits = limits};
}

void grpc_server_fini(struct grpc_server *server)
{
    assert(server->calls == 0);
    while (server->recycled) {
        struct grpc_call *call = server->recycled;
        server->recycled = call->next_recycled;
        free(call);
    }
    *server = (struct grpc_server){0};
}

static void call_free(struct grpc_call *call)
{
    struct grpc_server *server = call->server;
    assert(call->ended && !call->endpoint && call->holds == 0);
    h2_headers_unref(call->headers);
    account_buf_fini(call->arena.account, &call->message);
    arena_fini(&call->arena);
    server->calls--;
    if (call->small || server->recycled_count >= server->limits->recycled_calls_max) {
        free(call);
        return;
    }
    call->next_recycled = server->recycled;
    server->recycled = call;
    server->recycled_count++;
}

static void on_close(struct h2_stream *stream, enum h2_error code)
{
    (void)code;
    grpc_call_closed(grpc_call_of(stream));
}

static const struct h2_stream_ops stream_ops = {
    .on_data = grpc_call_on_data,
    .on_end = grpc_call_on_half_close,
    .on_close = on_close,
    .head = grpc_call_head,
    .data = grpc_call_data,
    .trailers = grpc_call_trailers,
};

bool grpc_is_call(const struct h2_stream *stream)
{
    return stream->ops == &stream_ops;
}

/* Known from an earlier call with the same header block; the first one is as large as any. */
static bool will_park(const struct h2_headers *headers)
{
    const struct grpc_row *row = headers->note;
    return row && row->method->parks;
}

static struct grpc_call *call_alloc(struct grpc_server *server, bool small)
{
    if (small)
        return malloc(GRPC_PARKING_CALL_BYTES);
    struct grpc_call *call = server->recycled;
    if (!call)
        return malloc(GRPC_CALL_BYTES);
    server->recycled = call->next_recycled;
    server->recycled_count--;
    return call;
}

struct grpc_call *grpc_call_new(struct grpc_endpoint *endpoint, struct h2_headers *headers)
{
    struct grpc_server *server = endpoint->server;
    bool small = will_park(headers);
    struct grpc_call *call = call_alloc(server, small);
    if (!call)
        return NULL;
    *call = (struct grpc_call){
        .stream.ops = &stream_ops,
        .endpoint = endpoint,
        .server = server,
        .headers = headers,
        .http_status = 200,
        .deadline_ns = INT64_MAX,
        .progress_ns = endpoint->now_ns,
        .message_ns = endpoint->now_ns,
        .started_ns = endpoint->now_ns,
        .small = small,
    };
    h2_headers_ref(headers);
    list_init(&call->in_timed);
    size_t bytes = small ? GRPC_PARKING_CALL_BYTES : GRPC_CALL_BYTES;
    arena_init(&call->arena, call + 1, bytes - sizeof(*call), server->limits->arena_bytes_max);
    arena_charge_borrowed(&call->arena, endpoint->account);
    server->calls++;
    return call;
}

void grpc_call_drop_output(struct grpc_call *call)
{
    bool on_heap = call->method && call->method->server_streams;
    call->source = NULL;
    while (call->first_chunk) {
        struct grpc_chunk *chunk = call->first_chunk;
        call->first_chunk = chunk->next;
        call->endpoint->queued_bytes -= chunk->len - chunk->sent;
        if (on_heap)
            grpc_chunk_free(call, chunk);
    }
    call->last_chunk = NULL;
}

/* Who has many requests unanswered may send no more for now. */
static void held_changed(struct grpc_endpoint *endpoint)
{
    size_t soft = endpoint->server->limits->held_bytes_soft;
    if (endpoint->session)
        h2_session_withhold(endpoint->session, endpoint->held_bytes > soft);
}

void grpc_call_add_held(struct grpc_call *call, size_t bytes)
{
    call->held = (uint32_t)bytes;
    call->endpoint->held_bytes += bytes;
    held_changed(call->endpoint);
}

void grpc_call_drop_held(struct grpc_call *call)
{
    if (call->held == 0)
        return;
    call->endpoint->held_bytes -= call->held;
    call->held = 0;
    held_changed(call->endpoint);
}

void grpc_call_end(struct grpc_call *call)
{
    if (call->ended)
        return;
    call->ended = true;
    if (call->known && call->method->on_end)
        call->method->on_end(call, call->row->service);
}

/* An operation that ends late answers outside the connection's turns, so its time may be old. */
static int64_t took_ns(const struct grpc_call *call)
{
    const struct grpc_timing *timing = call->row->timing;
    int64_t now = timing ? timing->now_ns(timing->ctx) : call->endpoint->now_ns;
    return now > call->started_ns ? now - call->started_ns : 0;
}

static void tell_slow(const struct grpc_call *call, int64_t took)
{
    const struct grpc_timing *timing = call->row->timing;
    const struct grpc_method *method = call->method;
    if (UNLIKELY(timing && took > timing->slow_ns) && call->delivered && !method->client_streams &&
        !method->server_streams)
        timing->on_slow(timing->ctx, call, took);
}

void grpc_call_expire(struct grpc_call *call)
{
    grpc_call_drop_output(call);
    grpc_call_fail_text(call, GRPC_DEADLINE_EXCEEDED, SLICE_LITERAL("context deadline exceeded"));
    grpc_call_end(call);
}

void grpc_call_count_handled(const struct grpc_call *call, enum grpc_code code)
{
    const struct grpc_row *row = call->row;
    if (!row || (!row->counts && !row->timing))
        return;
    int64_t took = took_ns(call);
    if (!call->sourced)
        tell_slow(call, took);
    if (!row->counts)
        return;
    metric_add(row->counts, row->first_count + GRPC_COUNT_HANDLED + code, 1);
    metric_observe(row->counts, row->first_count + GRPC_COUNT_SECONDS, &grpc_seconds, took);
}

void grpc_call_answer_begins(struct grpc_call *call)
{
    call->sourced = true;
    if (call->row && call->row->timing)
        tell_slow(call, took_ns(call));
}

void grpc_call_closed(struct grpc_call *call)
{
    grpc_call_drop_output(call);
    if (!call->finished)
        grpc_call_count_handled(call, GRPC_CANCELLED);
    call->finished = true; /* nothing more is queued by a service that hears of the end */
    grpc_call_drop_held(call);
    list_remove(&call->in_timed);
    call->endpoint = NULL;
    grpc_call_end(call);
    if (call->holds == 0)
        call_free(call);
    else
        arena_keep_account(&call->arena); /* the call outlives its connection */
}

void grpc_call_hold(struct grpc_call *call)
{
    call->holds++;
}

void grpc_call_release(struct grpc_call *call)
{
    assert(call->holds > 0);
    call->holds--;
    if (call->holds == 0 && call->ended && !call->endpoint)
        call_free(call);
}
