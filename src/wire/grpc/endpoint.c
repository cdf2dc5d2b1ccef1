#include "wire/grpc/endpoint.h"

#include "wire/arrival_timeout.h"
#include "wire/grpc/endpoint_private.h"

#include <stdlib.h>

/* Deadlines are looked at no more often than this. */
#define CHECK_STEP_NS INT64_C(5000000)

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool may_stall(const struct grpc_call *call)
{
    return !call->method || !call->method->parks;
}

static int64_t message_by(const struct grpc_call *call)
{
    return wire_message_by_ns(call->message_ns, call->server->limits->message_ns,
                              call->message.len);
}

/* When the call needs a look at the latest. */
static int64_t check_at(const struct grpc_call *call, int64_t now_ns)
{
    int64_t at = call->finished ? INT64_MAX : call->deadline_ns;
    if (grpc_call_receives(call))
        at = earlier(at, message_by(call));
    return may_stall(call) ? earlier(at, now_ns + call->server->limits->stall_ns) : at;
}

static void look_at(struct grpc_call *call, int64_t at_ns)
{
    struct grpc_endpoint *endpoint = call->endpoint;
    if (list_empty(&call->in_timed))
        list_push_back(&endpoint->timed, &call->in_timed);
    endpoint->check_at_ns = earlier(endpoint->check_at_ns, at_ns);
}

void grpc_call_time(struct grpc_call *call)
{
    look_at(call, message_by(call));
}

static void end_parking(struct grpc_call *call)
{
    if (call->method && call->method->parks)
        grpc_call_fail(call, ST_STOPPED);
}

static bool is_other(const struct grpc_endpoint *endpoint, const struct h2_headers *headers)
{
    return endpoint->ops->on_other && (!endpoint->server->services || !grpc_is_request(headers));
}

static struct h2_stream *on_open(void *owner, struct h2_headers *headers, int64_t now_ns)
{
    struct grpc_endpoint *endpoint = owner;
    endpoint->now_ns = now_ns;
    if (UNLIKELY(!headers->note) && is_other(endpoint, headers))
        return endpoint->ops->on_other(endpoint->owner, headers, now_ns);
    struct grpc_call *call = grpc_call_new(endpoint, headers);
    if (!call)
        return NULL;
    grpc_call_route(call);
    call->stream.bulk = call->method && call->method->bulk;
    if (endpoint->leaving)
        end_parking(call);
    int64_t at = check_at(call, now_ns);
    if (at != INT64_MAX)
        look_at(call, at);
    return &call->stream;
}

static void on_output(void *owner)
{
    struct grpc_endpoint *endpoint = owner;
    if (endpoint->ops->on_output)
        endpoint->ops->on_output(endpoint->owner);
}

static const struct h2_session_ops session_ops = {.on_open = on_open, .on_output = on_output};

enum status grpc_endpoint_new(struct grpc_server *server, const struct h2_limits *limits,
                              const struct grpc_endpoint_ops *ops, void *owner,
                              struct account *account, int64_t now_ns,
                              struct grpc_endpoint **ret_endpoint)
{
    AUTO(grpc_endpoint_freep) struct grpc_endpoint *endpoint = calloc(1, sizeof(*endpoint));
    if (!endpoint)
        return ST_NOMEM;
    *endpoint = (struct grpc_endpoint){.server = server,
                                       .ops = ops,
                                       .owner = owner,
                                       .account = account,
                                       .now_ns = now_ns,
                                       .check_at_ns = INT64_MAX};
    list_init(&endpoint->timed);
    TRY(h2_session_new(limits, &session_ops, endpoint, account, now_ns, &endpoint->session));
    *ret_endpoint = TAKE(endpoint);
    return ST_OK;
}

void grpc_endpoint_free(struct grpc_endpoint *endpoint)
{
    if (!endpoint)
        return;
    h2_session_free(endpoint->session);
    assert(endpoint->queued_bytes == 0);
    assert(endpoint->held_bytes == 0);
    free(endpoint);
}

void grpc_endpoint_set_peer(struct grpc_endpoint *endpoint,
                            void (*address)(void *owner, char *text),
                            int64_t (*fresh_ns)(void *owner), void *owner)
{
    endpoint->peer_address = address;
    endpoint->fresh_ns = fresh_ns;
    endpoint->peer_owner = owner;
}

void grpc_endpoint_set_guarded(struct grpc_endpoint *endpoint, bool guarded)
{
    endpoint->guarded = guarded;
}

void grpc_endpoint_set_peer_name(struct grpc_endpoint *endpoint, const char *name)
{
    endpoint->peer_name = name;
}

struct h2_session *grpc_endpoint_session(struct grpc_endpoint *endpoint)
{
    return endpoint->session;
}

void grpc_endpoint_feed(struct grpc_endpoint *endpoint, struct slice bytes, int64_t now_ns)
{
    endpoint->now_ns = now_ns;
    h2_session_feed(endpoint->session, bytes, now_ns);
}

size_t grpc_endpoint_fill(struct grpc_endpoint *endpoint, uint8_t *dst, size_t room, int64_t now_ns)
{
    endpoint->now_ns = now_ns;
    return h2_session_fill(endpoint->session, dst, room, now_ns);
}

bool grpc_endpoint_wants_read(const struct grpc_endpoint *endpoint)
{
    const struct grpc_limits *limits = endpoint->server->limits;
    /* Answers that wait for window must not stop us: the window comes by reading. */
    bool choked = endpoint->queued_bytes > limits->queued_bytes_soft &&
                  h2_session_wants_write(endpoint->session);
    return !choked && h2_session_wants_read(endpoint->session);
}

int64_t grpc_endpoint_timeout(const struct grpc_endpoint *endpoint)
{
    int64_t check = list_empty(&endpoint->timed) ? INT64_MAX : endpoint->check_at_ns;
    return earlier(check, h2_session_timeout(endpoint->session));
}

void grpc_endpoint_shutdown(struct grpc_endpoint *endpoint, int64_t now_ns)
{
    struct h2_session *session = endpoint->session;
    endpoint->now_ns = now_ns;
    endpoint->leaving = true;
    h2_session_shutdown(session, now_ns);
    for (struct h2_stream *s = h2_session_next(session, NULL); s; s = h2_session_next(session, s)) {
        if (grpc_is_call(s))
            end_parking(grpc_call_of(s));
    }
}

/* Bytes ought to move: a request that does not come whole, or an answer that does not go. */
static bool is_stalled(struct grpc_call *call, int64_t now_ns)
{
    if (grpc_call_receives(call))
        return now_ns >= message_by(call);
    bool sending = call->finished || call->first_chunk || (call->source && !call->source_parked);
    if (!may_stall(call) || !sending)
        return false;
    if (!call->progress_ns)
        call->progress_ns = now_ns;
    return now_ns - call->progress_ns >= call->server->limits->stall_ns;
}

/*
 * A part of a message has left. Trailers behind it would make the client report a broken message
 * instead of its deadline, so the stream is reset: clients take that for the deadline once their
 * own has passed, and it has, because it began before ours. A watch only parks between messages.
 */
static bool is_half_sent(const struct grpc_call *call)
{
    if (!call->stream.head_sent)
        return false;
    if (call->source)
        return !(call->method->parks && call->source_parked);
    return call->first_chunk && call->first_chunk->sent > 0;
}

/* True: the call is gone. */
static bool expire(struct grpc_call *call)
{
    bool half_sent = is_half_sent(call);
    grpc_call_expire(call);
    if (half_sent)
        h2_stream_reset(&call->stream, H2_CANCEL);
    return half_sent;
}

static void check_calls(struct grpc_endpoint *endpoint)
{
    int64_t now_ns = endpoint->now_ns;
    int64_t next = INT64_MAX;
    struct grpc_call *call, *following;
    LIST_FOREACH_SAFE (call, following, &endpoint->timed, in_timed) {
        bool gone = !call->finished && call->deadline_ns <= now_ns && expire(call);
        if (!gone && is_stalled(call, now_ns)) {
            h2_stream_reset(&call->stream, H2_CANCEL);
            gone = true;
        }
        if (h2_session_failed(endpoint->session))
            return;
        if (gone)
            continue;
        next = earlier(next, check_at(call, now_ns));
        if (call->progress_ns && may_stall(call))
            next = earlier(next, call->progress_ns + call->server->limits->stall_ns);
    }
    int64_t soonest = now_ns + CHECK_STEP_NS;
    endpoint->check_at_ns = next > soonest ? next : soonest;
}

void grpc_endpoint_tick(struct grpc_endpoint *endpoint, int64_t now_ns)
{
    endpoint->now_ns = now_ns;
    if (now_ns >= endpoint->check_at_ns)
        check_calls(endpoint);
    h2_session_tick(endpoint->session, now_ns);
}
