/* How a channel gets the token that its calls carry: see client/connect/channel.h. */
#include "client/connect/channel.h"
#include "client/connect/channel_internal.h"
#include "client/connect/error.h"
#include "codec/pb/rpc.pb.h"

#include <stdio.h>

enum { SCRATCH_BYTES = 1024 };
/* The server may need long for it, because passwords are hashed on purpose in a slow way. */
#define AUTH_NS_MIN (5 * NS_PER_S)

static void on_auth_message(struct grpc_client_call *call, struct slice message)
{
    struct channel *channel = CONTAINER_OF(call, struct channel, auth);
    _Alignas(ARENA_ALIGN) uint8_t scratch[SCRATCH_BYTES];
    struct pb_authenticate_response response;
    struct arena arena;
    arena_init(&arena, scratch, sizeof(scratch), SIZE_MAX);
    channel->token.len = 0;
    channel->auth_answered =
        pb_decode(&pb_authenticate_response_table, message, &arena, &response) == ST_OK &&
        buf_append(&channel->token, response.token) == ST_OK;
    arena_fini(&arena);
}

void channel_on_auth_limit(struct timer *timer)
{
    struct channel *channel = CONTAINER_OF(timer, struct channel, auth_limit);
    channel_give_up_connection(channel, "cannot authenticate: the server does not answer");
}

static void on_auth_end(struct grpc_client_call *call, const struct grpc_outcome *outcome)
{
    struct channel *channel = CONTAINER_OF(call, struct channel, auth);
    if (channel->ending || !channel->current)
        return;
    assert(channel->state == CHANNEL_AUTHENTICATING);
    enum status status = client_status_of(outcome->text);
    if (outcome->code == GRPC_OK && channel->auth_answered) {
        channel_become_ready(channel);
    } else if (outcome->from_peer && status == ST_AUTH_NOT_ENABLED) {
        /* As with etcd's client, a server without authentication accepts any user. */
        channel->token.len = 0;
        channel_become_ready(channel);
    } else if (!connection_session(channel->current->connection)) {
        return; /* it is closed: on_closed follows */
    } else if (!outcome->from_peer || outcome->code == GRPC_OK ||
               outcome->code == GRPC_UNAVAILABLE || outcome->code == GRPC_DEADLINE_EXCEEDED ||
               outcome->code == GRPC_CANCELLED || outcome->code == GRPC_RESOURCE_EXHAUSTED) {
        /* The server may be able to authenticate later, or another one now. */
        channel_give_up_connection(channel, "the server cannot authenticate now");
    } else {
        /* The server refuses the user: everything that waits fails. The next call tries once more.
         */
        char line[CHANNEL_FAILURE_BYTES];
        snprintf(line, sizeof(line), "cannot authenticate: %.*s", SLICE_ARGS(outcome->text));
        channel_note_failure(channel, line);
        loop_timer_cancel(channel->loop, &channel->auth_limit);
        channel->rejected = true;
        channel_wake_waiters(channel);
        channel->rejected = false;
        channel->token_wanted = true;
        channel_move(channel, CHANNEL_READY);
    }
}

static enum status start_authentication(struct channel *channel, int64_t deadline_ns)
{
    static const struct grpc_client_ops ops = {.on_message = on_auth_message,
                                               .on_end = on_auth_end};
    AUTO(buf_fini) struct buf message = {0};
    struct pb_authenticate_request request = {
        .name = slice_from_text(channel->options.user),
        .password = slice_from_text(channel->options.password ? channel->options.password : ""),
    };
    struct channel_request start = {
        .path = SLICE_LITERAL("/etcdserverpb.Auth/Authenticate"),
        .deadline_ns = deadline_ns,
    };
    channel->token.len = 0;
    channel->auth_answered = false;
    client_heads_drop(&channel->heads);
    TRY(pb_append(&pb_authenticate_request_table, &request, &message));
    channel->auth.ops = &ops;
    grpc_client_call_clear(&channel->auth); /* an attempt that could not be started */
    TRY(grpc_client_call_send(&channel->auth, buf_slice(&message)));
    grpc_client_call_half_close(&channel->auth);
    return channel_start_call(channel, &channel->auth, &start);
}

void channel_authenticate(struct channel *channel)
{
    int64_t limit_ns = channel->options.connect_timeout_ns;
    int64_t deadline_ns =
        clock_add(loop_now_ns(channel->loop), limit_ns > AUTH_NS_MIN ? limit_ns : AUTH_NS_MIN);
    enum status status = start_authentication(channel, deadline_ns);
    channel->token_wanted = status == ST_AGAIN || status == ST_CLOSED;
    if (channel->token_wanted && channel->state == CHANNEL_READY)
        return; /* on_room, on_draining or on_closed follows, and the waiters then try again */
    channel_move(channel, CHANNEL_AUTHENTICATING);
    if (status == ST_OK)
        loop_timer_set(channel->loop, &channel->auth_limit, deadline_ns);
    else
        channel_give_up_connection(channel,
                                   "cannot authenticate: out of memory, or no stream is allowed");
}

bool channel_renew_token(struct channel *channel, uint64_t generation)
{
    if (!channel->options.user)
        return false;
    if (channel->state == CHANNEL_READY && generation == channel->generation)
        channel->token_wanted = true;
    return true;
}

bool channel_has_token(const struct channel *channel)
{
    return channel->token.len > 0;
}
