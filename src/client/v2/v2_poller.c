#include "client/v2/v2_poller.h"

#include "client/connect/channel.h"
#include "client/connect/connector.h"
#include "client/connect/error.h"
#include "wire/http/query.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The codes of errors that are treated in a special way. */
enum { V2_KEY_NOT_FOUND = 100, V2_UNAUTHORIZED = 110, V2_INDEX_CLEARED = 401 };

/* A server lets a poll wait for five minutes. */
#define POLL_NS_MAX (6 * 60 * NS_PER_S)

void v2_reply_free(struct v2_reply *reply)
{
    if (!reply)
        return;
    arena_fini(&reply->arena);
    buf_fini(&reply->body);
    free(reply);
}
DEFINE_CLEANUP(struct v2_reply *, v2_reply_free)

#define TO(state) (1u << V2_POLLER_##state)

/* Drawn in v2_poller.h. */
static const unsigned poller_moves[] = {
    [V2_POLLER_READING] = TO(POLLING) | TO(OVER),
    [V2_POLLER_POLLING] = TO(OVER),
    [V2_POLLER_OVER] = 0,
};

/* -- The end -- */

static void stop(struct v2_poller *p)
{
    if (p->state == V2_POLLER_OVER)
        return;
    STATE_MOVE(p->state, poller_moves, V2_POLLER_OVER);
    if (p->limit.set)
        loop_timer_cancel(p->loop, &p->limit);
    http1_client_cancel(&p->call);
    http_link_fini(&p->link);
    buf_fini(&p->body);
}

static void fail(struct v2_poller *p, const vigil_error *error, int64_t cleared_index)
{
    stop(p);
    p->hooks->on_failed(p, error, cleared_index);
}

static void fail_with(struct v2_poller *p, enum vigil_code code, const char *text)
{
    vigil_error error;
    client_error_set(&error, code, VIGIL_REFUSED, "%s", text);
    fail(p, &error, 0);
}

/* -- Responses -- */

static struct v2_reply *reply_new(struct v2_poller *p)
{
    struct v2_reply *reply = calloc(1, sizeof(*reply));
    if (!reply)
        return NULL;
    list_init(&reply->in_queue);
    arena_init(&reply->arena, NULL, 0, SIZE_MAX);
    reply->is_state = p->state == V2_POLLER_READING;
    reply->body = p->body;
    p->body = (struct buf){0};
    return reply;
}

static void give_state(struct v2_poller *p, struct v2_reply *reply, int64_t index)
{
    reply->index = index;
    STATE_MOVE(p->state, poller_moves, V2_POLLER_POLLING);
    p->next_index = index + 1;
    http_link_succeeded(&p->link);
    p->hooks->on_reply(p, reply);
}

static void receive_state(struct v2_poller *p)
{
    if (p->store_index < 0) {
        fail_with(p, VIGIL_ERROR_PROTOCOL, "the response has no valid X-Etcd-Index");
        return;
    }
    struct v2_reply *reply = reply_new(p);
    if (reply)
        give_state(p, reply, p->store_index);
    else
        fail_with(p, VIGIL_ERROR_MEMORY, "out of memory");
}

/* A change without an index is repeated by the server until the next index is beyond it. */
static bool advance(struct v2_poller *p, const struct v2_reply *reply)
{
    int64_t index = reply->index ? reply->index : p->next_index;
    if (index < p->next_index || index == INT64_MAX)
        return false;
    p->next_index = index + 1;
    return true;
}

static void receive_event(struct v2_poller *p)
{
    AUTO(v2_reply_freep) struct v2_reply *reply = reply_new(p);
    enum status status =
        reply ? v2_event_read(buf_slice(&reply->body), &reply->arena, &reply->event) : ST_NOMEM;
    if (status == ST_NOMEM) {
        fail_with(p, VIGIL_ERROR_MEMORY, "out of memory");
        return;
    }
    reply->index = status == ST_OK && reply->event.node.present ? reply->event.node.modified : 0;
    if (status != ST_OK || !advance(p, reply)) {
        fail_with(p, VIGIL_ERROR_PROTOCOL,
                  status == ST_OK ? "the server sent a change from before the requested index"
                                  : "the response is not valid JSON");
        return;
    }
    http_link_succeeded(&p->link);
    p->hooks->on_reply(p, TAKE(reply));
}

static enum vigil_code code_of(unsigned status, int64_t code)
{
    if (code == V2_INDEX_CLEARED)
        return VIGIL_ERROR_COMPACTED;
    if (code == V2_UNAUTHORIZED || status == 401)
        return VIGIL_ERROR_UNAUTHENTICATED;
    return VIGIL_ERROR_SERVER;
}

static void receive_error(struct v2_poller *p)
{
    struct arena arena;
    struct v2_error e;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    enum status status = v2_error_read(buf_slice(&p->body), &arena, &e);
    if (status == ST_NOMEM) {
        fail_with(p, VIGIL_ERROR_MEMORY, "out of memory");
    } else if (status != ST_OK) {
        vigil_error error;
        client_error_set(&error, code_of(p->status, 0), VIGIL_REFUSED,
                         "the server answered with status %u, which the v2 API does not have",
                         p->status);
        fail(p, &error, 0);
    } else if (e.code == V2_KEY_NOT_FOUND && p->state == V2_POLLER_READING) {
        buf_fini(&p->body);
        struct v2_reply *reply = reply_new(p);
        if (reply)
            give_state(p, reply, e.index);
        else
            fail_with(p, VIGIL_ERROR_MEMORY, "out of memory");
    } else {
        /* In the words of etcd's client. */
        vigil_error error;
        client_error_set(&error, code_of(p->status, e.code), VIGIL_REFUSED,
                         "%" PRId64 ": %.*s (%.*s) [%" PRId64 "]", e.code, SLICE_ARGS(e.message),
                         SLICE_ARGS(e.cause), e.index);
        fail(p, &error, e.code == V2_INDEX_CLEARED ? e.index : 0);
    }
    arena_fini(&arena);
}

static void receive(struct v2_poller *p)
{
    /* Another member of the cluster may be able to answer, or this one later. */
    if (p->status >= 500 || p->status == 429) {
        char text[64];
        snprintf(text, sizeof(text), "the server answered with status %u", p->status);
        p->retries++;
        http_link_failed(&p->link, true, text);
    } else if (p->status != 200 && p->status != 201) {
        receive_error(p);
    } else if (p->state == V2_POLLER_READING) {
        receive_state(p);
    } else if (p->body.len) {
        receive_event(p);
    } else { /* nothing has happened for a long time */
        http_link_slow_down(&p->link);
    }
}

/* -- The call -- */

static enum status append_target(const struct v2_poller *p, struct buf *to)
{
    TRY(buf_append(to, buf_slice(&p->path)));
    TRY(buf_append_format(to, "?recursive=%s", p->recursive ? "true" : "false"));
    if (p->state == V2_POLLER_POLLING)
        return buf_append_format(to, "&wait=true&waitIndex=%" PRId64, p->next_index);
    return p->quorum ? buf_append_text(to, "&quorum=true") : ST_OK;
}

static enum status start(struct v2_poller *p, struct http1_client *client)
{
    AUTO(buf_fini) struct buf target = {0};
    TRY(append_target(p, &target));
    struct http_field fields[] = {
        {SLICE_LITERAL("Accept"), SLICE_LITERAL("application/json")},
        {SLICE_LITERAL("Authorization"), buf_slice(&p->authorization)},
    };
    struct http1_client_request request = {
        .method = SLICE_LITERAL("GET"),
        .target = buf_slice(&target),
        .host = http_link_host(&p->link),
        .fields = fields,
        .field_count = p->authorization.len ? 2 : 1,
    };
    p->body.len = 0;
    p->call.waits = p->state == V2_POLLER_POLLING;
    TRY(http1_client_start(client, &p->call, &request, loop_now_ns(p->loop)));
    if (p->call.waits)
        loop_timer_set(p->loop, &p->limit, clock_add(loop_now_ns(p->loop), POLL_NS_MAX));
    return ST_OK;
}

/* Sends the next request if there is a connection for it; otherwise on_ready follows. */
static void poll(struct v2_poller *p)
{
    if (!p->wanted || p->call.client || p->state == V2_POLLER_OVER)
        return;
    struct http1_client *client = http_link_get(&p->link);
    if (!client)
        return;
    p->requests++;
    enum status status = start(p, client);
    if (status == ST_INVALID) {
        fail_with(p, VIGIL_ERROR_ARGUMENT, "the endpoint has a name that cannot be sent");
    } else if (status != ST_OK) { /* memory that is missing now may be there later */
        p->retries++;
        http_link_slow_down(&p->link);
    }
}

static void on_head(struct http1_call *call, const struct http1_response *response)
{
    struct v2_poller *p = CONTAINER_OF(call, struct v2_poller, call);
    struct slice text;
    uint64_t index;
    p->status = response->status;
    p->store_index = -1;
    if (http1_response_get(response, SLICE_LITERAL("X-Etcd-Index"), &text) &&
        slice_decimal(text, &index))
        p->store_index = (int64_t)index;
}

static void on_body(struct http1_call *call, struct slice bytes)
{
    struct v2_poller *p = CONTAINER_OF(call, struct v2_poller, call);
    if (bytes.len > p->receive_bytes_max - size_min(p->body.len, p->receive_bytes_max))
        fail_with(p, VIGIL_ERROR_TOO_LARGE, "the response exceeds the receive limit");
    else if (buf_append(&p->body, bytes) != ST_OK)
        fail_with(p, VIGIL_ERROR_MEMORY, "out of memory");
}

static void on_end(struct http1_call *call, enum status status, const char *reason)
{
    struct v2_poller *p = CONTAINER_OF(call, struct v2_poller, call);
    loop_timer_cancel(p->loop, &p->limit);
    if (status == ST_OK)
        receive(p);
    else if (status == ST_CLOSED || status == ST_TIMEOUT) {
        p->retries++;
        http_link_failed(&p->link, call->answered, reason);
    } else if (status == ST_NOMEM)
        fail_with(p, VIGIL_ERROR_MEMORY, "out of memory");
    else
        fail_with(p, VIGIL_ERROR_PROTOCOL, reason);
    if (p->state != V2_POLLER_OVER)
        poll(p);
}

static const struct http1_call_ops call_ops = {on_head, on_body, on_end};

static void on_limit(struct timer *timer)
{
    struct v2_poller *p = CONTAINER_OF(timer, struct v2_poller, limit);
    bool answered = p->call.answered;
    http1_client_cancel(&p->call);
    p->retries++;
    http_link_failed(&p->link, answered, "the server does not end the poll");
    poll(p);
}

static void on_ready(struct http_link *link)
{
    poll(CONTAINER_OF(link, struct v2_poller, link));
}

/* -- For the watch -- */

void v2_poller_want(struct v2_poller *p, bool wanted)
{
    p->wanted = wanted;
    poll(p);
}

enum status v2_poller_init(struct v2_poller *p, struct channel *channel,
                           const struct v2_poller_options *options,
                           const struct v2_poller_hooks *hooks)
{
    *p = (struct v2_poller){
        .state = options->index ? V2_POLLER_POLLING : V2_POLLER_READING,
        .hooks = hooks,
        .recursive = options->recursive,
        .quorum = options->quorum,
        .receive_bytes_max = options->receive_bytes_max,
        .loop = channel_connector(channel)->options.loop,
        .call.ops = &call_ops,
        .limit.fn = on_limit,
        .next_index = options->index + 1,
    };
    http_link_init(&p->link, channel, on_ready);
    TRY(channel_options_basic_auth(channel_get_options(channel), &p->authorization));
    TRY(buf_append_text(&p->path,
                        options->key.len && options->key.ptr[0] == '/' ? "/v2/keys" : "/v2/keys/"));
    return http_escape_append(&p->path, options->key, "/");
}

void v2_poller_fini(struct v2_poller *p)
{
    stop(p);
    buf_fini(&p->path);
    buf_fini(&p->authorization);
}

void v2_poller_check(const struct v2_poller *p)
{
    assert((p->state == V2_POLLER_OVER) == (p->link.channel == NULL));
    assert(p->state != V2_POLLER_OVER || !p->call.client);
    assert(p->limit.set == (p->call.client && p->call.waits));
    assert(p->body.len <= p->receive_bytes_max);
    assert(p->state != V2_POLLER_POLLING || p->next_index > 0);
    if (p->link.channel)
        http_link_check(&p->link);
}
