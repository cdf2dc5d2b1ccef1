#include "client/call/stream.h"

#include "client/connect/error.h"
#include "client/connect/policy.h"

enum { RENEWALS_MAX = 3, PAUSE_DOUBLINGS = 7 };
#define PAUSE_NS_MIN (10 * NS_PER_MS)
#define PAUSE_NS_MAX (1000 * NS_PER_MS)

#define TO(state) (1u << STREAM_##state)

/* Drawn in stream.h. */
static const uint8_t moves[] = {
    [STREAM_IDLE] = TO(WAITING) | TO(PAUSING),
    [STREAM_WAITING] = TO(OPEN) | TO(PAUSING) | TO(IDLE),
    [STREAM_OPEN] = TO(PAUSING) | TO(IDLE),
    [STREAM_PAUSING] = TO(WAITING) | TO(IDLE),
};

void client_stream_check(const struct client_stream *stream)
{
    bool waits = stream->waiter.in_channel.next && !list_empty(&stream->waiter.in_channel);
    assert(!waits || stream->state == STREAM_WAITING);
    assert(!stream->pause.set || stream->state == STREAM_PAUSING);
    assert(!stream->given_up || stream->state == STREAM_OPEN);
}

/* -- Opening and breaking -- */

static int64_t pause_ns(unsigned failures)
{
    if (failures == 0)
        return 0;
    unsigned doublings = failures - 1 < PAUSE_DOUBLINGS ? failures - 1 : PAUSE_DOUBLINGS;
    int64_t pause = PAUSE_NS_MIN << doublings;
    return pause < PAUSE_NS_MAX ? pause : PAUSE_NS_MAX;
}

/* When another attempt may follow. The first one after a failure follows at once, and so does the
 * first after a stream that made progress or lasted longer than the next pause: one that opens and
 * breaks or is refused at once is not opened in a busy loop. */
static int64_t next_attempt(struct client_stream *stream)
{
    int64_t now_ns = loop_now_ns(stream->client->driver.loop);
    if (stream->state == STREAM_OPEN && now_ns - stream->opened_ns > pause_ns(stream->failures))
        stream->failures = 0;
    return now_ns + pause_ns(stream->failures++);
}

static void begin_again(struct client_stream *stream)
{
    if (!stream->wanted) {
        STATE_MOVE(stream->state, moves, STREAM_IDLE);
        return;
    }
    loop_timer_set(stream->client->driver.loop, &stream->pause, next_attempt(stream));
    STATE_MOVE(stream->state, moves, STREAM_PAUSING);
}

/* The call is over, and another one follows. */
static void broken(struct client_stream *stream)
{
    stream->given_up = false;
    begin_again(stream);
    stream->hooks->on_break(stream);
}

/* The call is over, and another one would end in the same way. The owner decides whether it wants
 * the stream again; until then there is a pause, so that an owner that always wants it does not
 * keep the server busy. */
static void refused(struct client_stream *stream, enum grpc_code code, struct slice text)
{
    stream->wanted = false;
    stream->given_up = false;
    stream->again_ns = next_attempt(stream);
    STATE_MOVE(stream->state, moves, STREAM_IDLE);
    stream->hooks->on_break(stream);
    stream->hooks->on_refused(stream, code, text);
}

static void open_call(struct client_stream *stream)
{
    struct channel *channel = stream->client->channel;
    struct channel_request request = {
        .path = stream->path,
        .require_leader = stream->require_leader,
        .metadata = stream->metadata,
        .deadline_ns = CLOCK_NEVER,
        .lasting = &stream->lasting,
    };
    assert(stream->state == STREAM_WAITING);
    if (channel_is_rejected(channel)) {
        refused(stream, GRPC_UNAUTHENTICATED, slice_from_text(channel_failure(channel)));
        return;
    }
    enum status status = channel_start(channel, &stream->call, &request, &stream->waiter);
    if (status == ST_AGAIN)
        return;
    if (status == ST_NOMEM) {
        begin_again(stream);
        return;
    }
    if (status != ST_OK) {
        refused(stream, GRPC_INVALID_ARGUMENT, SLICE_LITERAL(CHANNEL_BAD_CREDENTIALS));
        return;
    }
    STATE_MOVE(stream->state, moves, STREAM_OPEN);
    stream->of_use = false;
    stream->too_large = false;
    stream->generation = channel_generation(channel);
    stream->opened_ns = loop_now_ns(stream->client->driver.loop);
    stream->hooks->on_open(stream);
}

static void on_channel_ready(struct channel_waiter *waiter)
{
    open_call(CONTAINER_OF(waiter, struct client_stream, waiter));
}

static void on_pause_over(struct timer *timer)
{
    struct client_stream *stream = CONTAINER_OF(timer, struct client_stream, pause);
    STATE_MOVE(stream->state, moves, STREAM_WAITING);
    open_call(stream);
}

/* -- What the owner wants -- */

static void go_idle(struct client_stream *stream)
{
    if (stream->state == STREAM_OPEN) {
        /* The session reports the end of the call from within; it is not an end to recover from. */
        stream->canceling = true;
        grpc_client_call_cancel(&stream->call);
        stream->canceling = false;
    }
    stream->given_up = false;
    channel_waiter_cancel(&stream->waiter);
    loop_timer_cancel(stream->client->driver.loop, &stream->pause);
    if (stream->state != STREAM_IDLE)
        STATE_MOVE(stream->state, moves, STREAM_IDLE);
}

static void on_settle(struct deferred *deferred)
{
    struct client_stream *stream = CONTAINER_OF(deferred, struct client_stream, settle);
    bool was_open = stream->state == STREAM_OPEN;
    if (!stream->wanted) {
        go_idle(stream);
        if (was_open)
            stream->hooks->on_break(stream);
    } else if (stream->given_up) {
        stream->canceling = true;
        grpc_client_call_cancel(&stream->call);
        stream->canceling = false;
        if (stream->too_large)
            refused(stream, GRPC_RESOURCE_EXHAUSTED,
                    SLICE_LITERAL("a response takes too much memory when it is decoded"));
        else
            broken(stream);
    } else if (stream->state == STREAM_IDLE) {
        /* A stream that was refused a moment ago waits for the rest of its pause. */
        struct loop *loop = stream->client->driver.loop;
        bool must_pause = loop_now_ns(loop) < stream->again_ns;
        STATE_MOVE(stream->state, moves, must_pause ? STREAM_PAUSING : STREAM_WAITING);
        if (must_pause)
            loop_timer_set(loop, &stream->pause, stream->again_ns);
        else
            open_call(stream);
    }
}

void client_stream_want(struct client_stream *stream, bool wanted)
{
    if (stream->wanted == wanted)
        return;
    stream->wanted = wanted;
    loop_defer(stream->client->driver.loop, &stream->settle);
}

void client_stream_give_up(struct client_stream *stream)
{
    if (!client_stream_is_open(stream))
        return;
    stream->given_up = true;
    loop_defer(stream->client->driver.loop, &stream->settle);
}

void client_stream_overflow(struct client_stream *stream)
{
    stream->too_large = true;
    client_stream_give_up(stream);
}

void client_stream_send(struct client_stream *stream, const struct pb_message *type,
                        const void *message)
{
    assert(stream->state == STREAM_OPEN);
    if (stream->given_up)
        return;
    size_t size = pb_size(type, message);
    uint8_t *to = grpc_client_call_message(&stream->call, size);
    if (to)
        pb_encode(type, message, to, size);
    else
        client_stream_give_up(stream);
}

/* The reason may be a whole gRPC error, as etcd puts it into the reason of a refused watch. */
static bool names(struct slice reason, enum status status)
{
    const char *text = status_text(status);
    return reason.len && memmem(reason.ptr, reason.len, text, strlen(text));
}

static bool get_token(struct client_stream *stream, struct slice reason)
{
    /* Etcd 3.4 refuses a watch without a token as one without permission. There is none if
     * authentication was enabled after the connection was made. */
    bool is_about_token =
        names(reason, ST_INVALID_AUTH_TOKEN) || names(reason, ST_AUTH_OLD_REVISION) ||
        names(reason, ST_USER_EMPTY) ||
        (names(reason, ST_PERMISSION_DENIED) && !channel_has_token(stream->client->channel));
    /* A server that refuses every new token, too, is not asked for tokens forever. */
    if (!is_about_token || stream->renewals >= RENEWALS_MAX ||
        !channel_renew_token(stream->client->channel, stream->generation))
        return false;
    stream->renewals++;
    return true;
}

bool client_stream_renew_token(struct client_stream *stream, struct slice reason)
{
    if (!get_token(stream, reason))
        return false;
    client_stream_give_up(stream);
    return true;
}

void client_stream_works(struct client_stream *stream)
{
    stream->renewals = 0;
}

void client_stream_progressed(struct client_stream *stream)
{
    stream->failures = 0;
    stream->of_use = true;
}

/* -- What the connection says -- */

static void on_message(struct grpc_client_call *call, struct slice message)
{
    struct client_stream *stream = CONTAINER_OF(call, struct client_stream, call);
    if (!stream->given_up && stream->wanted)
        stream->hooks->on_message(stream, message);
}

static void on_avoided(struct channel_lasting *lasting)
{
    client_stream_give_up(CONTAINER_OF(lasting, struct client_stream, lasting));
}

/* See the table in vigil/watch.h. */
static void on_end(struct grpc_client_call *call, const struct grpc_outcome *outcome)
{
    struct client_stream *stream = CONTAINER_OF(call, struct client_stream, call);
    struct channel *channel = stream->client->channel;
    bool unavailable = outcome->code == GRPC_UNAVAILABLE || outcome->code == GRPC_INTERNAL;
    bool leaves = unavailable || (channel_has_choice(channel) &&
                                  error_policy_of(outcome->code, outcome->text).leaves);
    channel_lasting_end(&stream->lasting);
    if (stream->of_use)
        channel_worked(channel, stream->generation);
    if (stream->canceling)
        return;
    bool is_refused = true;
    stream->too_large |= outcome->reason == ST_LIMIT;
    if (stream->too_large) {
        /* The server would send the same message again, and it would exceed our limit again. */
    } else if (!outcome->from_peer || outcome->code == GRPC_OK ||
               get_token(stream, outcome->text)) {
        is_refused = false;
    } else if (leaves) {
        channel_avoid(channel, stream->generation);
        /* Without a leader it ends if its owner requires one: the next stream has another server.
         */
        is_refused = stream->require_leader && client_status_of(outcome->text) == ST_NO_LEADER;
    }
    if (is_refused)
        refused(stream, outcome->code, outcome->text);
    else
        broken(stream);
}

/* -- Life -- */

void client_stream_init(struct client_stream *stream, struct vigil_client *client,
                        const struct client_stream_hooks *hooks, struct slice path,
                        bool require_leader)
{
    static const struct grpc_client_ops ops = {.on_message = on_message, .on_end = on_end};
    *stream = (struct client_stream){
        .client = client,
        .hooks = hooks,
        .path = path,
        .require_leader = require_leader,
        .call.ops = &ops,
        .waiter.ready = on_channel_ready,
        .lasting.avoided = on_avoided,
        .pause.fn = on_pause_over,
        .settle.fn = on_settle,
    };
}

void client_stream_fini(struct client_stream *stream)
{
    stream->wanted = false;
    loop_defer_cancel(&stream->settle);
    go_idle(stream);
    grpc_client_call_fini(&stream->call);
}
