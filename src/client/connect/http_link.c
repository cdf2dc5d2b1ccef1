#include "client/connect/http_link.h"

#include "client/connect/channel.h"
#include "client/connect/channel_internal.h"

#include <stdio.h>

#define TO(state) (1u << HTTP_LINK_##state)

/* Drawn in http_link.h. */
static const uint8_t moves[] = {
    [HTTP_LINK_IDLE] = TO(RESOLVING) | TO(CONNECTING) | TO(PAUSING),
    [HTTP_LINK_RESOLVING] = TO(IDLE),
    [HTTP_LINK_CONNECTING] = TO(READY) | TO(IDLE),
    [HTTP_LINK_READY] = TO(IDLE) | TO(PAUSING),
    [HTTP_LINK_PAUSING] = TO(READY) | TO(IDLE),
};

/* -- Failures -- */

static void begin(struct http_link *link);

static void pause_then_go_on(struct http_link *link)
{
    int64_t pause = channel_next_pause(link->channel, &link->backoff_ns);
    link->failed = 0;
    STATE_MOVE(link->state, moves, HTTP_LINK_PAUSING);
    loop_timer_set(link->channel->loop, &link->pause,
                   clock_add(loop_now_ns(link->channel->loop), pause));
}

static void on_pause_over(struct timer *timer)
{
    struct http_link *link = CONTAINER_OF(timer, struct http_link, pause);
    if (link->connection) {
        STATE_MOVE(link->state, moves, HTTP_LINK_READY);
        link->on_ready(link);
    } else {
        STATE_MOVE(link->state, moves, HTTP_LINK_IDLE);
        begin(link);
    }
}

/* From idle: the next endpoint, or a pause if all have failed. */
static void try_next(struct http_link *link)
{
    link->endpoint++;
    link->failed++;
    if (link->failed >= link->channel->endpoints.count)
        pause_then_go_on(link);
    else
        begin(link);
}

static void drop_connection(struct http_link *link)
{
    connection_free(link->connection);
    link->connection = NULL;
    link->used = false;
}

/* -- Connecting -- */

static void on_open(void *owner)
{
    struct http_link *link = owner;
    char text[ENDPOINT_TEXT_BYTES + 32];
    snprintf(text, sizeof(text), "connected to %s", connection_endpoint(link->connection)->text);
    channel_report(link->channel, CHANNEL_CONNECTED, text);
    STATE_MOVE(link->state, moves, HTTP_LINK_READY);
    link->on_ready(link);
}

static void on_draining(void *owner, enum h2_error code, const char *text)
{
    (void)owner, (void)code, (void)text; /* only HTTP/2 drains */
}

static void on_room(void *owner)
{
    (void)owner;
}

/* An established connection is closed without a request under way: otherwise the request would have
 * failed before. */
static void on_closed(void *owner, const struct error *error)
{
    struct http_link *link = owner;
    bool was_connecting = link->state == HTTP_LINK_CONNECTING;
    drop_connection(link);
    if (link->state == HTTP_LINK_PAUSING)
        return; /* on_pause_over connects again */
    STATE_MOVE(link->state, moves, HTTP_LINK_IDLE);
    channel_report(link->channel, was_connecting ? CHANNEL_CONNECT_FAILED : CHANNEL_DISCONNECTED,
                   error->text);
    if (was_connecting)
        try_next(link);
}

static void connect_endpoint(struct http_link *link)
{
    struct connection_hooks hooks = {on_open, on_draining, on_room, on_closed, link};
    const struct endpoint *endpoint = endpoint_list_at(&link->channel->endpoints, link->endpoint);
    if (connection_new(&link->channel->connector, endpoint, SESSION_HTTP1, hooks,
                       &link->connection) == ST_OK) {
        STATE_MOVE(link->state, moves, HTTP_LINK_CONNECTING);
        return;
    }
    channel_report(link->channel, CHANNEL_CONNECT_FAILED, "out of memory");
    pause_then_go_on(link);
}

static void on_targets(void *owner, const struct lookup_result *result)
{
    struct http_link *link = owner;
    link->lookup = NULL;
    STATE_MOVE(link->state, moves, HTTP_LINK_IDLE);
    channel_take_targets(link->channel, result);
    if (link->channel->endpoints.count)
        connect_endpoint(link);
    else
        pause_then_go_on(link);
}

/* From idle. SRV records are looked up again after every endpoint has failed once. */
static void begin(struct http_link *link)
{
    struct lookup_hooks hooks = {on_targets, link};
    struct channel *channel = link->channel;
    if (!channel->endpoints.srv_domain || link->failed)
        connect_endpoint(link);
    else if (endpoint_list_look_up(&channel->endpoints, channel->resolver, hooks, &link->lookup) ==
             ST_OK)
        STATE_MOVE(link->state, moves, HTTP_LINK_RESOLVING);
    else
        pause_then_go_on(link);
}

/* -- For the owner -- */

void http_link_init(struct http_link *link, struct channel *channel,
                    void (*on_ready)(struct http_link *link))
{
    *link = (struct http_link){.channel = channel, .on_ready = on_ready, .pause.fn = on_pause_over};
}

void http_link_fini(struct http_link *link)
{
    if (!link->channel)
        return;
    loop_timer_cancel(link->channel->loop, &link->pause);
    lookup_cancel(link->lookup);
    connection_free(link->connection);
    *link = (struct http_link){0};
}

struct http1_client *http_link_get(struct http_link *link)
{
    struct http1_client *client =
        link->state == HTTP_LINK_READY ? connection_http1(link->connection) : NULL;
    if (client && http1_client_is_idle(client))
        return client;
    if (link->state == HTTP_LINK_READY) { /* it was closed after its last response */
        drop_connection(link);
        STATE_MOVE(link->state, moves, HTTP_LINK_IDLE);
    }
    if (link->state == HTTP_LINK_IDLE)
        begin(link);
    return NULL;
}

struct slice http_link_host(const struct http_link *link)
{
    const struct endpoint *endpoint = connection_endpoint(link->connection);
    return slice_from_text(endpoint->is_path ? endpoint->host : endpoint->text);
}

void http_link_succeeded(struct http_link *link)
{
    link->failed = 0;
    link->backoff_ns = 0;
    link->used = true;
}

void http_link_failed(struct http_link *link, bool answered, const char *text)
{
    bool was_idle_too_long = link->used && !answered;
    if (link->state != HTTP_LINK_READY)
        return;
    channel_report(link->channel, CHANNEL_DISCONNECTED, text);
    drop_connection(link);
    STATE_MOVE(link->state, moves, HTTP_LINK_IDLE);
    /* A server closes connections that are not used for a while. It still works, so that the next
     * connection is made to the same endpoint. */
    if (was_idle_too_long)
        begin(link);
    else
        try_next(link);
}

void http_link_slow_down(struct http_link *link)
{
    if (link->state == HTTP_LINK_READY)
        pause_then_go_on(link);
}

void http_link_check(const struct http_link *link)
{
    assert((unsigned)link->state < COUNT_OF(moves));
    assert((link->state == HTTP_LINK_RESOLVING) == (link->lookup != NULL));
    assert((link->state == HTTP_LINK_PAUSING) == link->pause.set);
    assert(link->state != HTTP_LINK_READY || link->connection);
    assert(link->state != HTTP_LINK_CONNECTING || link->connection);
    assert(!link->connection || link->state >= HTTP_LINK_CONNECTING);
    if (link->connection)
        connection_check(link->connection);
}
