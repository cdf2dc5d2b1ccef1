#include "client/connect/connection.h"

#include "client/connect/proxy.h"
#include "client/connect/transport.h"
#include "client/names/address_source.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    /* Sent in one turn; the rest waits for the next one. */
    TURN_BYTES_MAX = 4 * CONNECTOR_BUFFER_BYTES,
    GOAWAY_TEXT_BYTES = 64,
};
/* An attempt to one of several addresses gets its part of the time, but not less than this, as in
 * Go. */
#define ATTEMPT_NS_MIN (2 * NS_PER_S)

#define TO(state) (1u << CONNECTION_##state)

/* Drawn in connection.h. */
static const unsigned moves[] = {
    [CONNECTION_LOOKING_UP] = TO(CONNECTING) | TO(CLOSED),
    [CONNECTION_CONNECTING] =
        TO(CONNECTING) | TO(TUNNELLING) | TO(SHAKING) | TO(GREETING) | TO(CLOSED),
    [CONNECTION_TUNNELLING] = TO(CONNECTING) | TO(SHAKING) | TO(GREETING) | TO(CLOSED),
    [CONNECTION_SHAKING] = TO(CONNECTING) | TO(GREETING) | TO(CLOSED),
    [CONNECTION_GREETING] = TO(CONNECTING) | TO(OPEN) | TO(CLOSED),
    [CONNECTION_OPEN] = TO(DRAINING) | TO(CLOSED),
    [CONNECTION_DRAINING] = TO(CLOSED),
    [CONNECTION_CLOSED] = 0,
};

struct connection {
    enum connection_state state;
    struct connector *connector;
    struct connection_hooks hooks;
    struct endpoint endpoint;

    bool secure;
    bool freed;    /* connection_free was called */
    unsigned busy; /* functions under way that use it: it cannot be destroyed */

    /* To be reported at the end of the turn, because the session cannot be freed where it says so,
     * and hooks are not called from within our functions. */
    bool news_open, news_room, news_closed;
    bool input_ended, output_ended; /* one direction of an upgraded connection */
    bool goaway;                    /* the server sent GOAWAY with this code and text */
    enum h2_error goaway_code;
    char goaway_text[GOAWAY_TEXT_BYTES];

    /* Until it is open. */
    struct lookup *lookup;         /* owned; NULL: none is under way */
    struct address_search *search; /* owned; NULL: none is under way */
    struct address *addresses;     /* owned */
    size_t address_count, address_next;
    int64_t deadline_ns;         /* deadline of all attempts together */
    int64_t attempt_deadline_ns; /* deadline of the current address */

    struct transport transport;     /* to the current address */
    enum session_protocol protocol; /* as the owner wants it */
    struct session session;         /* exists from greeting on */
    struct timer timer;
    struct deferred turn_end;
    struct error error; /* the first failure; the text is "" without one */
};

/* NULL: the endpoint is reached directly. */
static const struct proxy *proxy_of(const struct connection *c)
{
    return c->endpoint.is_path ? NULL : c->connector->options.proxy;
}

static bool is_established(const struct connection *c)
{
    return c->state == CONNECTION_OPEN || c->state == CONNECTION_DRAINING;
}

static int64_t now_of(const struct connection *c)
{
    return loop_now_ns(c->connector->options.loop);
}

static void schedule(struct connection *c)
{
    loop_defer(c->connector->options.loop, &c->turn_end);
}

/* -- life -- */

static void drop_addresses(struct connection *c)
{
    lookup_cancel(c->lookup);
    if (c->search)
        c->search->cancel(c->search);
    c->lookup = NULL;
    c->search = NULL;
    free(c->addresses);
    c->addresses = NULL;
    c->address_count = c->address_next = 0;
}

static void destroy(struct connection *c)
{
    assert(c->busy == 0);
    drop_addresses(c);
    loop_timer_cancel(c->connector->options.loop, &c->timer);
    loop_defer_cancel(&c->turn_end);
    session_free(&c->session);
    transport_close(&c->transport);
    c->connector->connections--;
    free(c);
}

/* The end of a function that began with busy++. The owner may have freed the connection inside one
 * of its hooks; then the last such function destroys it. */
static void leave(struct connection *c)
{
    assert(c->busy > 0);
    if (--c->busy == 0 && c->freed)
        destroy(c);
}

void connection_free(struct connection *c)
{
    if (!c)
        return;
    assert(!c->freed);
    c->freed = true;
    c->busy++;
    if (session_exists(&c->session) && c->busy == 1) /* otherwise its functions may be under way */
        session_lost(&c->session, "the connection was freed");
    leave(c);
}

/* -- failures; while it is busy -- */

static void connect_next(struct connection *c);

/* Streams are closed here, and may look at the error. */
static void close_now(struct connection *c)
{
    STATE_MOVE(c->state, moves, CONNECTION_CLOSED);
    drop_addresses(c);
    loop_timer_cancel(c->connector->options.loop, &c->timer);
    if (session_exists(&c->session))
        session_lost(&c->session, c->error.text);
    transport_close(&c->transport);
    c->news_closed = true;
    schedule(c);
}

/* The first failure is kept: it is about the preferred address. */
static void keep_error(struct connection *c, enum status status, const char *reason)
{
    char at[ADDRESS_TEXT_BYTES] = "";
    if (*c->error.text)
        return;
    if (is_established(c)) {
        error_set(&c->error, status, "lost the connection to %s: %s", c->endpoint.text, reason);
        return;
    }
    if (proxy_of(c)) {
        error_set(&c->error, status, "cannot connect to %s through the proxy %s: %s",
                  c->endpoint.text, proxy_of(c)->endpoint.text, reason);
        return;
    }
    if (c->address_next > 0)
        address_format(&c->addresses[c->address_next - 1], at);
    bool other = *at && strcmp(at, c->endpoint.text) != 0;
    error_set(&c->error, status, "cannot connect to %s%s%s%s: %s", c->endpoint.text,
              other ? " (" : "", other ? at : "", other ? ")" : "", reason);
}

/* Before it is open, the next address is tried. */
static void fail(struct connection *c, enum status status, const char *reason)
{
    if (c->state == CONNECTION_CLOSED || c->freed)
        return;
    keep_error(c, status, reason);
    /* Without memory or time, the next address would fail as well. */
    if (is_established(c) || c->address_next >= c->address_count || status == ST_NOMEM ||
        now_of(c) >= c->deadline_ns) {
        close_now(c);
        return;
    }
    session_free(&c->session);
    c->goaway = c->news_room = false;
    transport_close(&c->transport);
    connect_next(c);
}

/* The session is over, or the server sends nothing any more. */
static void fail_by_session(struct connection *c)
{
    const char *reason;
    char text[256];
    enum status status = ST_CLOSED;
    if (session_failed(&c->session, &status, &reason))
        snprintf(text, sizeof(text), "%s", reason);
    else if (c->goaway)
        snprintf(text, sizeof(text), "the server closed it: GOAWAY, code %u%s%s",
                 (unsigned)c->goaway_code, *c->goaway_text ? ", " : "", c->goaway_text);
    else
        snprintf(text, sizeof(text), "%s",
                 session_over(&c->session) ? "shut down" : "the server closed the connection");
    fail(c, status, text);
}

static void end_input(struct connection *c)
{
    if (!session_exists(&c->session)) { /* by a proxy, or TLS was closed as soon as it was open */
        bool by_proxy = c->state == CONNECTION_TUNNELLING;
        fail(c, ST_CLOSED,
             by_proxy ? "the proxy closed the connection" : "the server closed the connection");
        return;
    }
    if (c->input_ended)
        return;
    c->input_ended = session_feed_end(&c->session);
    if (c->input_ended)
        schedule(c);
    else if (!c->freed)
        fail_by_session(c);
}

/* -- time -- */

static void arm(struct connection *c)
{
    int64_t at = CLOCK_NEVER;
    if (c->state == CONNECTION_CLOSED)
        return;
    if (c->state == CONNECTION_LOOKING_UP)
        at = c->deadline_ns;
    else if (c->state < CONNECTION_OPEN)
        at = c->attempt_deadline_ns;
    if (transport_timeout(&c->transport) < at)
        at = transport_timeout(&c->transport);
    if (session_exists(&c->session) && session_timeout(&c->session) < at)
        at = session_timeout(&c->session);
    /* A deadline that moves with every call does not change the heap: the timer fires early, finds
     * nothing due, and is set again. */
    if (at != CLOCK_NEVER && (!c->timer.set || at < c->timer.at_ns))
        loop_timer_set(c->connector->options.loop, &c->timer, at);
}

static void fail_by_time(struct connection *c)
{
    char text[ENDPOINT_HOST_BYTES + 32];
    switch (c->state) {
    case CONNECTION_LOOKING_UP:
        snprintf(text, sizeof(text), "lookup %s: i/o timeout",
                 proxy_of(c) ? proxy_of(c)->endpoint.host : c->endpoint.host);
        fail(c, ST_TIMEOUT, text);
        break;
    case CONNECTION_CONNECTING:
        fail(c, ST_TIMEOUT, "i/o timeout");
        break;
    case CONNECTION_TUNNELLING:
        fail(c, ST_TIMEOUT, "timeout: the proxy did not answer");
        break;
    case CONNECTION_SHAKING:
        fail(c, ST_TIMEOUT, "TLS handshake timeout");
        break;
    default:
        fail(c, ST_TIMEOUT, "timeout: the server did not answer with HTTP/2");
    }
}

static void on_timer(struct timer *timer)
{
    struct connection *c = CONTAINER_OF(timer, struct connection, timer);
    int64_t now = now_of(c);
    int64_t due = c->state == CONNECTION_LOOKING_UP ? c->deadline_ns : c->attempt_deadline_ns;
    c->busy++;
    if (c->state < CONNECTION_OPEN && now >= due) {
        fail_by_time(c);
    } else if (transport_timeout(&c->transport) <= now) {
        transport_tick(&c->transport, now);
        schedule(c);
    } else if (session_exists(&c->session) && session_timeout(&c->session) <= now) {
        session_tick(&c->session, now);
        schedule(c);
    }
    arm(c);
    leave(c);
}

/* -- the session -- */

static void on_output(void *owner)
{
    schedule(owner);
}

static void on_room(void *owner)
{
    struct connection *c = owner;
    c->news_room = true;
    schedule(c);
}

static void on_goaway(void *owner, enum h2_error code, struct slice text)
{
    struct connection *c = owner;
    if (c->goaway)
        return;
    c->goaway = true;
    c->goaway_code = code;
    size_t len = size_min(text.len, sizeof(c->goaway_text) - 1);
    for (size_t i = 0; i < len; i++) /* it goes into messages for people */
        c->goaway_text[i] = (char)(text.ptr[i] >= ' ' && text.ptr[i] < 0x7f ? text.ptr[i] : '?');
    c->goaway_text[len] = 0;
    schedule(c);
}

static void become_open(struct connection *c)
{
    STATE_MOVE(c->state, moves, CONNECTION_OPEN);
    drop_addresses(c);
    c->error.text[0] = 0; /* drops the error of addresses that failed earlier */
    c->news_open = true;
}

static void begin_session(struct connection *c)
{
    static const struct h2_session_ops ops = {
        .on_output = on_output,
        .on_room = on_room,
        .on_goaway = on_goaway,
    };
    /* The handshake of TLS is complete and may have chosen the protocol. A server that does not
     * negotiate, or one without TLS, speaks HTTP/1.1. */
    enum session_protocol protocol = c->protocol;
    if (protocol == SESSION_NEGOTIATED)
        protocol = c->transport.tls && tls_client_selected_http2(c->transport.tls) ? SESSION_HTTP2
                                                                                   : SESSION_HTTP1;
    if (session_begin(&c->session, protocol, &c->connector->options, &ops, c, now_of(c)) != ST_OK) {
        fail(c, ST_NOMEM, "out of memory");
        return;
    }
    STATE_MOVE(c->state, moves, CONNECTION_GREETING);
    if (protocol == SESSION_HTTP1)
        become_open(c);
    schedule(c);
}

/* Bytes reach the server, directly or through a proxy. */
static void on_reached(struct connection *c)
{
    static const enum tls_client_protocol offers[] = {
        [SESSION_HTTP2] = TLS_CLIENT_HTTP2,
        [SESSION_HTTP1] = TLS_CLIENT_HTTP1,
        [SESSION_NEGOTIATED] = TLS_CLIENT_NEGOTIATED,
    };
    const char *name = c->connector->options.server_name;
    struct error error;
    if (!c->secure) {
        begin_session(c);
        return;
    }
    if (transport_begin_tls(&c->transport, *name ? name : c->endpoint.host, offers[c->protocol],
                            &error) != ST_OK) {
        fail(c, error.status, error.text);
        return;
    }
    STATE_MOVE(c->state, moves, CONNECTION_SHAKING);
    schedule(c);
}

/* -- receiving -- */

/* What a tunnel and TLS have become by what was read or written. */
static void follow_transport(struct connection *c)
{
    struct error error;
    enum status status = transport_status(&c->transport, &error);
    if (status == ST_END)
        end_input(c);
    else if (status != ST_OK && status != ST_AGAIN)
        fail(c, error.status, error.text);
    else if (status == ST_OK && c->state == CONNECTION_TUNNELLING)
        on_reached(c);
    else if (status == ST_OK && c->state == CONNECTION_SHAKING)
        begin_session(c);
}

static void take_all(struct connection *c)
{
    struct slice bytes;
    struct error error;
    for (;;) {
        if (transport_take(&c->transport, &bytes, &error) != ST_OK) {
            fail(c, error.status, error.text);
            return;
        }
        if (bytes.len == 0)
            break;
        if (c->state == CONNECTION_TUNNELLING && c->secure) { /* in TLS the client begins */
            fail(c, ST_CLOSED, "the proxy sent more than its response");
            return;
        }
        if (c->state == CONNECTION_SHAKING || c->state == CONNECTION_TUNNELLING)
            begin_session(c);
        if (!session_exists(&c->session))
            return;
        session_feed(&c->session, bytes, now_of(c));
        schedule(c);
        if (c->state == CONNECTION_GREETING && session_established(&c->session))
            become_open(c);
        if (c->freed)
            return;
    }
    follow_transport(c);
    schedule(c);
}

/* False: nothing arrived. */
static bool receive(struct connection *c)
{
    struct error error;
    enum status status = transport_read(&c->transport, &error);
    if (status == ST_OK)
        take_all(c);
    else if (status == ST_END && (session_exists(&c->session) || c->state == CONNECTION_TUNNELLING))
        end_input(c);
    else if (status == ST_END)
        follow_transport(c);
    else if (status != ST_AGAIN)
        fail(c, error.status, error.text);
    return status == ST_OK;
}

/* There is a socket, and it is connected. */
static bool is_connected(const struct connection *c)
{
    return !c->freed && c->state > CONNECTION_CONNECTING && c->state < CONNECTION_CLOSED;
}

/* What the server sent before it broke the connection may say why: GOAWAY, or an alert of TLS. */
static void fail_by_write(struct connection *c, const struct error *error)
{
    enum { READS_MAX = 16 };
    for (int i = 0; i < READS_MAX && error->status == ST_CLOSED && is_connected(c); i++)
        if (!receive(c))
            break;
    if (is_connected(c))
        fail(c, error->status, error->text);
}

/* -- sending -- */

/* Fills the buffer once and sends it. False: nothing was sent. */
static bool send_once(struct connection *c, size_t *total)
{
    struct error error;
    size_t n = 0, room = transport_room(&c->transport);
    uint8_t *buffer = transport_buffer(&c->transport);
    if (!buffer) {
        fail(c, ST_NOMEM, "out of memory");
        return false;
    }
    if (session_exists(&c->session) && session_wants_write(&c->session))
        n = session_fill(&c->session, buffer, room, now_of(c));
    if (c->freed || (n == 0 && !transport_wants_write(&c->transport)))
        return false;
    *total += n;
    if (transport_send(&c->transport, n, &error) != ST_OK) {
        fail_by_write(c, &error);
        return false;
    }
    return true;
}

static void update_watch(struct connection *c)
{
    bool connecting = c->state == CONNECTION_CONNECTING;
    bool reads = !connecting && (!session_exists(&c->session) || session_wants_read(&c->session));
    if (transport_watch(&c->transport, reads, connecting) != ST_OK)
        fail(c, ST_NOMEM, "out of memory");
}

/* -- connecting -- */

static void on_ready(struct io_watch *watch, unsigned ready)
{
    struct connection *c = CONTAINER_OF(watch, struct connection, transport.watch);
    struct error error;
    c->busy++;
    if (c->state == CONNECTION_CONNECTING) {
        /* The attempt to connect to the server, or to its proxy, has ended. */
        if (transport_connected(&c->transport, &error) != ST_OK) {
            fail(c, error.status, error.text);
        } else if (!proxy_of(c)) {
            on_reached(c);
        } else if (transport_begin_tunnel(&c->transport, proxy_of(c), &c->endpoint, &error) !=
                   ST_OK) {
            fail(c, error.status, error.text);
        } else {
            STATE_MOVE(c->state, moves, CONNECTION_TUNNELLING);
            schedule(c);
        }
    } else {
        /* Bytes that the socket did not take go first; on_turn_end then sends what is new. */
        if (c->transport.held.len && ready & (IO_WRITE | IO_BROKEN)) {
            enum status status = transport_send_held(&c->transport, &error);
            if (status == ST_OK)
                schedule(c);
            else if (status != ST_AGAIN)
                fail_by_write(c, &error);
        }
        if (is_connected(c) && ready & (IO_READ | IO_BROKEN) && watch->events & IO_READ)
            (void)receive(c);
    }
    leave(c);
}

static void connect_next(struct connection *c)
{
    struct error error;
    const struct address *address = &c->addresses[c->address_next++];
    STATE_MOVE(c->state, moves, CONNECTION_CONNECTING);
    /* This address gets its part of the time that is left for all of them. */
    size_t left = c->address_count - c->address_next + 1;
    int64_t now = now_of(c), part = (c->deadline_ns - now) / (int64_t)left;
    int64_t at = clock_add(now, part > ATTEMPT_NS_MIN ? part : ATTEMPT_NS_MIN);
    c->attempt_deadline_ns = at < c->deadline_ns ? at : c->deadline_ns;
    if (transport_connect(&c->transport, address, &error) != ST_OK) {
        fail(c, error.status, error.text);
        return;
    }
    update_watch(c);
    arm(c);
}

static void connect_to(struct connection *c, const struct address *addresses, size_t count)
{
    c->addresses = malloc(count * sizeof(*addresses));
    if (!c->addresses) {
        fail(c, ST_NOMEM, "out of memory");
        return;
    }
    memcpy(c->addresses, addresses, count * sizeof(*addresses));
    c->address_count = count;
    connect_next(c);
}

static void on_lookup(void *owner, const struct lookup_result *result)
{
    struct connection *c = owner;
    c->busy++;
    c->lookup = NULL;
    c->search = NULL;
    if (result->status == ST_OK)
        connect_to(c, result->addresses, result->address_count);
    else
        fail(c, result->status == ST_NOMEM ? ST_NOMEM : ST_CLOSED, result->reason);
    leave(c);
}

/* -- the end of a turn -- */

static void on_turn_end(struct deferred *deferred)
{
    struct connection *c = CONTAINER_OF(deferred, struct connection, turn_end);
    c->busy++;
    if (c->state == CONNECTION_LOOKING_UP) {
        /* What needs no lookup begins at the end of the turn in which the connection was made. */
        if (c->secure && !c->connector->options.tls)
            fail(c, ST_INVALID, "the endpoint requires TLS, which is not configured");
        else
            connect_to(c, &c->endpoint.path, 1);
    }
    /* The owner learns here what happened during the turn. Each call may make it free the
     * connection. */
    if (is_established(c)) {
        if (c->news_open) {
            c->news_open = false;
            c->hooks.on_open(c->hooks.owner);
        }
        if (!c->freed && c->goaway && c->state == CONNECTION_OPEN) {
            STATE_MOVE(c->state, moves, CONNECTION_DRAINING);
            c->hooks.on_draining(c->hooks.owner, c->goaway_code, c->goaway_text);
        }
        if (!c->freed && c->news_room && is_established(c)) {
            c->news_room = false;
            c->hooks.on_room(c->hooks.owner);
        }
    }
    /* Sends all output, or as much as a turn or the socket allows. Each step may fail or make the
     * owner free the connection, so the next one looks again. */
    size_t sent = 0;
    while (is_connected(c) && c->transport.held.len == 0 && sent < TURN_BYTES_MAX &&
           (transport_wants_write(&c->transport) ||
            (session_exists(&c->session) && session_wants_write(&c->session))))
        if (!send_once(c, &sent))
            break;
    if (is_connected(c) && sent >= TURN_BYTES_MAX)
        schedule(c);
    if (is_connected(c) && !c->output_ended && !c->transport.held.len &&
        session_output_ended(&c->session)) {
        c->output_ended = true;
        transport_end_output(&c->transport);
        schedule(c);
    }
    if (is_connected(c))
        follow_transport(c);
    if (is_connected(c) && session_exists(&c->session) && !c->transport.held.len &&
        session_over(&c->session))
        fail_by_session(c);
    if (is_connected(c))
        update_watch(c);
    if (!c->freed)
        arm(c);
    if (!c->freed && c->news_closed) {
        c->news_closed = false;
        c->hooks.on_closed(c->hooks.owner, &c->error);
    }
    leave(c);
}

/* -- for the owner -- */

static enum status begin_lookup(struct connection *c)
{
    const struct address_source *source = c->connector->options.addresses;
    const struct proxy *proxy = proxy_of(c);
    const struct endpoint *first = proxy ? &proxy->endpoint : &c->endpoint;
    struct lookup_hooks hooks = {on_lookup, c};
    if (source && !proxy)
        return source->start(source->ctx, hooks, &c->search);
    return resolver_lookup_host(c->connector->options.resolver, slice_from_text(first->host),
                                first->port, hooks, &c->lookup);
}

enum status connection_new(struct connector *connector, const struct endpoint *endpoint,
                           enum session_protocol protocol, struct connection_hooks hooks,
                           struct connection **ret_connection)
{
    struct connection *c = calloc(1, sizeof(*c));
    if (!c)
        return ST_NOMEM;
    c->connector = connector;
    c->protocol = protocol;
    c->hooks = hooks;
    c->endpoint = *endpoint;
    c->secure = endpoint->security == ENDPOINT_TLS ||
                (endpoint->security == ENDPOINT_TLS_IF_CONFIGURED && connector->options.tls);
    transport_init(&c->transport, connector, on_ready);
    c->timer.fn = on_timer;
    c->turn_end.fn = on_turn_end;
    c->deadline_ns = clock_add(now_of(c), connector->options.connect_timeout_ns);
    connector->connections++;
    /* Without a lookup there is no event to begin with: the end of the turn is. Hooks are never
     * called from within this function. */
    bool begins_itself = endpoint->is_path || (c->secure && !connector->options.tls);
    enum status status = begins_itself ? ST_OK : begin_lookup(c);
    if (status != ST_OK) {
        destroy(c);
        return status;
    }
    if (begins_itself)
        schedule(c);
    arm(c);
    *ret_connection = c;
    return ST_OK;
}

enum connection_state connection_state(const struct connection *c)
{
    return c->state;
}

const struct endpoint *connection_endpoint(const struct connection *c)
{
    return &c->endpoint;
}

bool connection_is_secure(const struct connection *c)
{
    return c->secure;
}

struct h2_session *connection_session(struct connection *c)
{
    return is_established(c) ? c->session.h2 : NULL;
}

struct http1_client *connection_http1(struct connection *c)
{
    return is_established(c) ? c->session.http1 : NULL;
}

void connection_shutdown(struct connection *c)
{
    if (c->state == CONNECTION_CLOSED)
        return;
    c->busy++;
    if (is_established(c)) {
        if (c->state == CONNECTION_OPEN)
            STATE_MOVE(c->state, moves, CONNECTION_DRAINING);
        session_shutdown(&c->session, now_of(c));
        schedule(c);
    } else {
        keep_error(c, ST_CLOSED, "shut down");
        close_now(c);
    }
    leave(c);
}

void connection_check(const struct connection *c)
{
    assert((unsigned)c->state < COUNT_OF(moves));
    assert(!(c->lookup || c->search) || c->state == CONNECTION_LOOKING_UP);
    bool connected = c->state >= CONNECTION_CONNECTING && c->state < CONNECTION_CLOSED;
    assert(transport_is_open(&c->transport) == connected);
    assert(!c->transport.tls || (c->secure && c->state >= CONNECTION_SHAKING));
    assert(c->state != CONNECTION_SHAKING || c->transport.tls);
    assert(c->state != CONNECTION_TUNNELLING || proxy_of(c));
    bool has_session = c->state >= CONNECTION_GREETING && c->state < CONNECTION_CLOSED;
    assert(session_exists(&c->session) ? c->state >= CONNECTION_GREETING : !has_session);
    assert(!c->addresses || c->state < CONNECTION_OPEN);
    assert(c->address_next <= c->address_count);
    assert(c->state == CONNECTION_CLOSED || !c->news_closed);
    assert(!is_established(c) || !*c->error.text);
    assert(c->state != CONNECTION_CLOSED || (*c->error.text && !c->timer.set));
    session_check(&c->session);
    transport_check(&c->transport);
}
