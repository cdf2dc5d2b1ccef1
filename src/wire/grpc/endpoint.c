#include "wire/grpc/endpoint.h"

#include "wire/grpc/call_private.h"
#include "wire/peer/arrival_timeout.h"

#include <stdlib.h>

/* The calls are checked no more often than this. */
#define CHECK_STEP_NS INT64_C(5000000)

/* A client whose deadline passes in the middle of a message has this long to cancel the call. */
#define HALF_SENT_GRACE_NS INT64_C(1000000000)

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool may_stall(const struct grpc_call *call)
{
    /* A watch that has nothing to send may be silent for as long as it likes. */
    return !call->method || !call->method->parks;
}

static int64_t message_by(const struct grpc_call *call)
{
    return wire_message_by_ns(call->message_ns, call->server->limits->message_ns,
                              call->message.len);
}

/* A message of which a part has been sent. A watch parks only between messages. */
static bool is_half_sent(const struct grpc_call *call)
{
    if (!call->stream.head_sent)
        return false;
    if (call->source)
        return !(call->method->parks && call->source_parked);
    return call->first_chunk && call->first_chunk->sent > 0;
}

/*
 * Trailers after half a message would make the client report a broken message instead of an
 * exceeded deadline, so the stream is reset. gRPC's C library takes a reset for the deadline only
 * if its own has passed, by a clock that it reads before it reads the connection. The grace lets it
 * cancel the call by itself; the reset is for clients that do not.
 */
static int64_t expires_at(const struct grpc_call *call)
{
    int64_t at;
    if (call->finished)
        return INT64_MAX;
    if (!is_half_sent(call) || __builtin_add_overflow(call->deadline_ns, HALF_SENT_GRACE_NS, &at))
        return call->deadline_ns;
    return at;
}

/* When the call has to be checked at the latest. */
static int64_t check_at(const struct grpc_call *call, int64_t now_ns)
{
    int64_t at = expires_at(call);
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

bool grpc_is_request(const struct h2_headers *headers)
{
    struct slice type, wanted = SLICE_LITERAL("application/grpc");
    return h2_headers_get(headers, SLICE_LITERAL("content-type"), &type) && type.len &&
           memmem(type.ptr, type.len, wanted.ptr, wanted.len);
}

struct h2_stream *grpc_endpoint_open(struct grpc_endpoint *endpoint, struct h2_headers *headers,
                                     int64_t now_ns)
{
    endpoint->now_ns = now_ns;
    struct grpc_call *call = grpc_call_new(endpoint, headers);
    if (!call)
        return NULL;
    grpc_call_route(call);
    call->stream.bulk = call->method && call->method->bulk;
    /* A stream that the client opened before it read our GOAWAY. A watch among them would delay the
     * shutdown. */
    if (endpoint->leaving)
        end_parking(call);
    int64_t at = check_at(call, now_ns);
    if (at != INT64_MAX)
        look_at(call, at);
    return &call->stream;
}

enum status grpc_endpoint_new(struct grpc_server *server, struct grpc_hooks hooks,
                              struct h2_session *session, struct grpc_endpoint **ret_endpoint)
{
    struct grpc_endpoint *endpoint = calloc(1, sizeof(*endpoint));
    if (!endpoint)
        return ST_NOMEM;
    *endpoint = (struct grpc_endpoint){.server = server,
                                       .session = session,
                                       .peer_name = hooks.peer_name,
                                       .peer = hooks.peer,
                                       .fresh_ns = hooks.fresh_ns,
                                       .account = hooks.account,
                                       .guarded = hooks.guarded,
                                       .check_at_ns = INT64_MAX};
    list_init(&endpoint->timed);
    *ret_endpoint = endpoint;
    return ST_OK;
}

void grpc_endpoint_free(struct grpc_endpoint *endpoint)
{
    if (!endpoint)
        return;
    assert(list_empty(&endpoint->timed));
    assert(endpoint->queued_bytes == 0);
    assert(endpoint->held_bytes == 0);
    free(endpoint);
}

void grpc_endpoint_turn(struct grpc_endpoint *endpoint, int64_t now_ns)
{
    endpoint->now_ns = now_ns;
}

/* Answers that wait for the peer's window must not stop reading, which brings the window. */
bool grpc_endpoint_wants_read(const struct grpc_endpoint *endpoint)
{
    return endpoint->queued_bytes <= endpoint->server->limits->queued_bytes_soft ||
           !h2_session_wants_write(endpoint->session);
}

int64_t grpc_endpoint_timeout(const struct grpc_endpoint *endpoint)
{
    return list_empty(&endpoint->timed) ? INT64_MAX : endpoint->check_at_ns;
}

void grpc_endpoint_shutdown(struct grpc_endpoint *endpoint, int64_t now_ns)
{
    struct h2_session *session = endpoint->session;
    endpoint->now_ns = now_ns;
    endpoint->leaving = true;
    for (struct h2_stream *s = h2_session_next(session, NULL); s; s = h2_session_next(session, s)) {
        if (grpc_is_call(s))
            end_parking(grpc_call_of(s));
    }
}

/* A request that does not arrive completely, or an answer that the client does not read. */
static bool is_stalled(struct grpc_call *call, int64_t now_ns)
{
    if (grpc_call_receives(call))
        return now_ns >= message_by(call);
    bool sending = call->finished || call->first_chunk || (call->source && !call->source_parked);
    if (!may_stall(call) || !sending)
        return false;
    /* The output changed since the last turn, so its time begins now (output_changed in call.c). */
    if (!call->progress_ns)
        call->progress_ns = now_ns;
    return now_ns - call->progress_ns >= call->server->limits->stall_ns;
}

/* True: the call no longer exists. */
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
        bool gone = expires_at(call) <= now_ns && expire(call);
        if (!gone && is_stalled(call, now_ns)) {
            h2_stream_reset(&call->stream, H2_CANCEL);
            gone = true;
        }
        /* A reset needs memory and room among the control frames. Without them the session has
         * failed and has closed every call of this list. */
        if (h2_session_failed(endpoint->session))
            return;
        if (gone)
            continue;
        next = earlier(next, check_at(call, now_ns));
        if (call->progress_ns && may_stall(call))
            next = earlier(next, call->progress_ns + call->server->limits->stall_ns);
    }
    /* With thousands of calls each check is expensive, and deadlines need no greater precision. */
    int64_t soonest = now_ns + CHECK_STEP_NS;
    endpoint->check_at_ns = next > soonest ? next : soonest;
}

void grpc_endpoint_tick(struct grpc_endpoint *endpoint, int64_t now_ns)
{
    endpoint->now_ns = now_ns;
    if (now_ns >= endpoint->check_at_ns)
        check_calls(endpoint);
}

static size_t bytes_in_chunks(const struct grpc_call *call)
{
    size_t bytes = 0;
    for (const struct grpc_chunk *chunk = call->first_chunk; chunk; chunk = chunk->next) {
        assert(chunk->sent <= chunk->len);
        assert(chunk->next || chunk == call->last_chunk);
        bytes += chunk->len - chunk->sent;
    }
    return bytes;
}

void grpc_endpoint_check(const struct grpc_endpoint *endpoint)
{
    size_t queued_bytes = 0, held_bytes = 0, timed = 0;
    struct h2_stream *s = h2_session_next(endpoint->session, NULL);
    for (; s; s = h2_session_next(endpoint->session, s)) {
        if (!grpc_is_call(s))
            continue;
        const struct grpc_call *call = grpc_call_of(s);
        assert(call->endpoint == endpoint);
        assert(!call->method == !call->row);
        queued_bytes += bytes_in_chunks(call);
        held_bytes += call->held;
        timed += !list_empty(&call->in_timed);
    }
    assert(endpoint->queued_bytes == queued_bytes);
    assert(endpoint->held_bytes == held_bytes);
    assert(list_length(&endpoint->timed) == timed);
}
