#include "client/connect/transport.h"

#include "client/connect/proxy.h"
#include "client/connect/tunnel.h"

void transport_init(struct transport *t, struct connector *connector,
                    void (*on_ready)(struct io_watch *watch, unsigned ready))
{
    *t = (struct transport){.connector = connector, .socket.handle = -1, .watch.fn = on_ready};
}

static enum status socket_failed(const struct transport *t, struct error *error)
{
    char reason[SOCKET_REASON_BYTES];
    socket_reason_format(t->socket.error_number, reason);
    return error_set(error, ST_CLOSED, "%s", reason);
}

/* -- opening and closing -- */

enum status transport_connect(struct transport *t, const struct address *address,
                              struct error *error)
{
    assert(!transport_is_open(t));
    enum status status = network_connect(t->connector->options.network, address, &t->socket, error);
    if (status == ST_AGAIN) /* the queue of a Unix socket is full */
        return error->status = ST_CLOSED;
    TRY(status);
    t->watch.handle = t->socket.handle;
    return ST_OK;
}

enum status transport_connected(struct transport *t, struct error *error)
{
    return socket_connected(&t->socket) == ST_OK ? ST_OK : socket_failed(t, error);
}

enum status transport_begin_tunnel(struct transport *t, const struct proxy *proxy,
                                   const struct endpoint *server, struct error *error)
{
    const struct connector_options *o = &t->connector->options;
    const struct endpoint *e = &proxy->endpoint;
    if (e->security == ENDPOINT_TLS && !o->tls)
        return error_set(error, ST_INVALID, "it requires TLS, which is not configured");
    if (e->security == ENDPOINT_TLS)
        TRY(tls_client_new(o->tls, e->host, TLS_CLIENT_HTTP1, &o->tls_limits, loop_now_ns(o->loop),
                           &t->proxy_tls, error));
    return tunnel_new(proxy, server, &t->tunnel) == ST_OK ? ST_OK : error_no_memory(error);
}

enum status transport_begin_tls(struct transport *t, const char *host,
                                enum tls_client_protocol protocol, struct error *error)
{
    const struct connector_options *o = &t->connector->options;
    return tls_client_new(o->tls, host, protocol, &o->tls_limits, loop_now_ns(o->loop), &t->tls,
                          error);
}

/* -- The layers of TLS -- */

/* How many bytes the layer above the proxy's TLS may send at once. */
static size_t lower_room(const struct transport *t)
{
    return t->proxy_tls ? tls_client_plain_room(t->proxy_tls, CONNECTOR_BUFFER_BYTES)
                        : CONNECTOR_BUFFER_BYTES;
}

/* What the socket gets for these bytes, in the raw buffer. NULL: no memory. */
static uint8_t *encrypt_all(struct transport *t, struct slice bytes, size_t *ret_len)
{
    struct connector_buffers *b = t->connector->buffers;
    uint8_t *raw = connector_buffer(b, &b->raw);
    if (!raw)
        return NULL;
    if (t->tls) {
        /* The server's TLS encrypts into the raw buffer, unless the proxy's one follows. */
        uint8_t *dst = t->proxy_tls ? connector_buffer(b, &b->middle) : raw;
        if (!dst)
            return NULL;
        bytes = slice_of(dst, tls_client_fill(t->tls, bytes, dst, lower_room(t)));
    }
    *ret_len = bytes.len;
    if (t->proxy_tls)
        *ret_len = tls_client_fill(t->proxy_tls, bytes, raw, CONNECTOR_BUFFER_BYTES);
    return raw;
}

void transport_close(struct transport *t)
{
    if (transport_is_open(t)) {
        /* With TLS, the peer learns by an alert that the bytes ended here on purpose and were not
         * cut off. It follows what was sent, so it cannot be sent while something is held. */
        size_t n, sent;
        if (t->held.len == 0 && (t->tls || t->proxy_tls)) {
            tls_client_shutdown(t->tls ? t->tls : t->proxy_tls);
            uint8_t *raw = transport_wants_write(t) ? encrypt_all(t, SLICE_EMPTY, &n) : NULL;
            if (raw && n && socket_write(&t->socket, slice_of(raw, n), &sent) == ST_OK)
                counter_add_alone(&t->connector->counters.bytes_sent, sent);
        }
        loop_unwatch(t->connector->options.loop, &t->watch);
        socket_close(&t->socket);
    }
    tls_client_free(t->tls);
    tls_client_free(t->proxy_tls);
    tunnel_free(t->tunnel);
    t->tls = t->proxy_tls = NULL;
    t->tunnel = NULL;
    t->arrived = SLICE_EMPTY;
    buf_fini(&t->held);
    t->held_at = 0;
}

enum status transport_watch(struct transport *t, bool reads, bool writes)
{
    struct loop *loop = t->connector->options.loop;
    unsigned events = (reads ? IO_READ : 0u) | (writes || t->held.len ? IO_WRITE : 0u);
    if (events)
        return loop_watch(loop, &t->watch, events);
    loop_unwatch(loop, &t->watch);
    return ST_OK;
}

/* -- receiving -- */

enum status transport_read(struct transport *t, struct error *error)
{
    struct connector *connector = t->connector;
    uint8_t *raw = connector_buffer(connector->buffers, &connector->buffers->raw);
    size_t n = 0;
    if (!raw)
        return error_no_memory(error);
    enum status status = socket_read(&t->socket, raw, CONNECTOR_BUFFER_BYTES, &n);
    if (status == ST_AGAIN)
        return status;
    if (status == ST_END) {
        /* Whether the peer was entitled to close is decided by TLS, if it is used. */
        if (t->proxy_tls)
            tls_client_feed_end(t->proxy_tls);
        if (t->tls)
            tls_client_feed_end(t->tls);
        return status;
    }
    if (status != ST_OK)
        return socket_failed(t, error);
    counter_add_alone(&connector->counters.reads, 1);
    counter_add_alone(&connector->counters.bytes_received, n);
    /* The proxy's TLS is the outer layer; what it decrypts is fed to the server's. */
    if (t->proxy_tls)
        tls_client_feed(t->proxy_tls, slice_of(raw, n));
    else if (t->tls)
        tls_client_feed(t->tls, slice_of(raw, n));
    else
        t->arrived = slice_of(raw, n);
    return ST_OK;
}

/* The next bytes above the socket and the proxy's TLS; empty: there are none. */
static enum status take_lower(struct transport *t, struct slice *ret_bytes, struct error *error)
{
    if (t->arrived.len || !t->proxy_tls) {
        *ret_bytes = t->arrived;
        t->arrived = SLICE_EMPTY;
        return ST_OK;
    }
    struct connector_buffers *b = t->connector->buffers;
    uint8_t *middle = connector_buffer(b, &b->middle);
    if (!middle)
        return error_no_memory(error);
    *ret_bytes = slice_of(middle, tls_client_read(t->proxy_tls, middle, CONNECTOR_BUFFER_BYTES));
    return ST_OK;
}

enum status transport_take(struct transport *t, struct slice *ret_bytes, struct error *error)
{
    struct connector_buffers *b = t->connector->buffers;
    for (;;) {
        if (t->tls) {
            uint8_t *plain = connector_buffer(b, &b->plain);
            if (!plain)
                return error_no_memory(error);
            *ret_bytes = slice_of(plain, tls_client_read(t->tls, plain, CONNECTOR_BUFFER_BYTES));
            if (ret_bytes->len || !t->proxy_tls)
                return ST_OK;
        }
        TRY(take_lower(t, ret_bytes, error));
        if (ret_bytes->len == 0 || (!t->tunnel && !t->tls))
            return ST_OK;
        if (!t->tunnel) {
            tls_client_feed(t->tls, *ret_bytes);
            continue;
        }
        size_t used;
        enum status status = tunnel_feed(t->tunnel, *ret_bytes, &used, error);
        if (status == ST_AGAIN)
            continue;
        TRY(status);
        /* The tunnel is open. What follows the proxy's last byte is from the server behind it. */
        tunnel_free(t->tunnel);
        t->tunnel = NULL;
        t->arrived = slice_sub(*ret_bytes, used, ret_bytes->len - used);
    }
}

static enum status tls_status(const struct tls_client *tls, struct error *error)
{
    const char *reason;
    switch (tls_client_state(tls)) {
    case TLS_CLIENT_SHAKING:
        return ST_AGAIN;
    case TLS_CLIENT_OPEN:
        return ST_OK;
    case TLS_CLIENT_ENDED:
        return ST_END;
    default:
        error->status = tls_client_reason(tls, &reason);
        return error_set(error, error->status, "%s", reason);
    }
}

enum status transport_status(const struct transport *t, struct error *error)
{
    if (t->proxy_tls)
        TRY(tls_status(t->proxy_tls, error));
    if (t->tunnel)
        return ST_AGAIN;
    return t->tls ? tls_status(t->tls, error) : ST_OK;
}

/* -- sending -- */

bool transport_wants_write(const struct transport *t)
{
    if (t->proxy_tls && tls_client_wants_write(t->proxy_tls))
        return true;
    /* Nothing passes through the proxy's TLS before its handshake is complete. */
    if (t->proxy_tls && tls_client_state(t->proxy_tls) != TLS_CLIENT_OPEN)
        return false;
    /* The server's TLS begins when the tunnel is open. */
    return t->tunnel ? tunnel_wants_write(t->tunnel) : t->tls && tls_client_wants_write(t->tls);
}

size_t transport_room(const struct transport *t)
{
    if (t->held.len || t->tunnel)
        return 0;
    return t->tls ? tls_client_plain_room(t->tls, lower_room(t)) : lower_room(t);
}

uint8_t *transport_buffer(struct transport *t)
{
    struct connector_buffers *b = t->connector->buffers;
    /* Without TLS the bytes are sent from where they are written. */
    return connector_buffer(b, t->tls || t->proxy_tls ? &b->plain : &b->raw);
}

/* ST_OK with a part of the bytes, or none. */
static enum status write_some(struct transport *t, struct slice bytes, size_t *ret_sent,
                              struct error *error)
{
    *ret_sent = 0;
    enum status status = socket_write(&t->socket, bytes, ret_sent);
    if (status != ST_OK && status != ST_AGAIN)
        return socket_failed(t, error);
    counter_add_alone(&t->connector->counters.writes, 1);
    counter_add_alone(&t->connector->counters.bytes_sent, *ret_sent);
    return ST_OK;
}

enum status transport_send(struct transport *t, size_t len, struct error *error)
{
    assert(!t->held.len && len <= transport_room(t));
    size_t sent;
    uint8_t *buffer = transport_buffer(t);
    if (buffer && t->tunnel)
        len = tunnel_fill(t->tunnel, buffer, lower_room(t));
    uint8_t *raw = buffer ? encrypt_all(t, slice_of(buffer, len), &len) : NULL;
    if (!raw)
        return error_no_memory(error);
    if (len == 0)
        return ST_OK;
    TRY(write_some(t, slice_of(raw, len), &sent, error));
    /* The buffers belong to all connections, so what the socket does not take is copied. */
    if (sent < len && buf_append(&t->held, slice_of(raw + sent, len - sent)) != ST_OK)
        return error_no_memory(error);
    return ST_OK;
}

enum status transport_send_held(struct transport *t, struct error *error)
{
    size_t sent;
    struct slice rest = slice_of(t->held.ptr + t->held_at, t->held.len - t->held_at);
    TRY(write_some(t, rest, &sent, error));
    t->held_at += sent;
    if (sent < rest.len)
        return ST_AGAIN;
    buf_fini(&t->held);
    t->held_at = 0;
    return ST_OK;
}

void transport_end_output(struct transport *t)
{
    assert(!t->held.len);
    if (t->tls || t->proxy_tls)
        tls_client_end_output(t->tls ? t->tls : t->proxy_tls);
    else
        socket_shutdown(&t->socket);
}

/* -- time -- */

int64_t transport_timeout(const struct transport *t)
{
    int64_t proxy = t->proxy_tls ? tls_client_timeout(t->proxy_tls) : CLOCK_NEVER;
    int64_t server = t->tls ? tls_client_timeout(t->tls) : CLOCK_NEVER;
    return proxy < server ? proxy : server;
}

void transport_tick(struct transport *t, int64_t now_ns)
{
    if (t->proxy_tls)
        tls_client_tick(t->proxy_tls, now_ns);
    if (t->tls)
        tls_client_tick(t->tls, now_ns);
}

void transport_check(const struct transport *t)
{
    assert(transport_is_open(t) || (!t->tls && !t->held.len && !t->watch.events));
    assert(transport_is_open(t) || (!t->tunnel && !t->proxy_tls));
    assert(!t->tunnel || !t->tls);
    assert(t->held_at <= t->held.len && (t->held_at == 0 || t->held_at < t->held.len));
    assert(t->arrived.len == 0); /* taken at once */
    if (t->tls)
        tls_client_check(t->tls);
    if (t->proxy_tls)
        tls_client_check(t->proxy_tls);
    if (t->tunnel)
        tunnel_check(t->tunnel);
}
