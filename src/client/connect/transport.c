#include "client/connect/transport.h"

#include "client/connect/proxy.h"
#include "client/connect/tunnel.h"

void transport_init(struct transport *t, struct connector *connector,
                    void (*on_ready)(struct io_watch *watch, unsigned ready))
{
    *t = (struct transport){.connector = connector, .socket.handle = -1, .watch.fn = on_ready};
}

static enum status no_memory(struct error *error)
{
    return error_set(error, ST_NOMEM, "out of memory");
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

static enum status begin_tls(struct transport *t, const char *host,
                             enum tls_client_protocol protocol, struct tls_client **ret_tls,
                             struct error *error)
{
    const struct connector_options *o = &t->connector->options;
    return tls_client_new(o->tls, host, protocol, &o->tls_limits, loop_now_ns(o->loop), ret_tls,
                          error);
}

enum status transport_begin_tunnel(struct transport *t, const struct proxy *proxy,
                                   const struct endpoint *server, struct error *error)
{
    const struct endpoint *e = &proxy->endpoint;
    if (e->security == ENDPOINT_TLS && !t->connector->options.tls)
        return error_set(error, ST_INVALID, "it requires TLS, which is not configured");
    if (e->security == ENDPOINT_TLS)
        TRY(begin_tls(t, e->host, TLS_CLIENT_HTTP1, &t->proxy_tls, error));
    return tunnel_new(proxy, server, &t->tunnel) == ST_OK ? ST_OK : no_memory(error);
}

enum status transport_begin_tls(struct transport *t, const char *host,
                                enum tls_client_protocol protocol, struct error *error)
{
    return begin_tls(t, host, protocol, &t->tls, error);
}

bool transport_selected_http2(const struct transport *t)
{
    return t->tls && tls_client_selected_http2(t->tls);
}

/* -- The layers of TLS -- */

static bool is_open(const struct tls_client *tls)
{
    return !tls || tls_client_state(tls) == TLS_CLIENT_OPEN;
}

/* How many bytes the layer above the proxy's TLS may send at once. */
static size_t lower_room(const struct transport *t)
{
    return t->proxy_tls ? tls_client_plain_room(t->proxy_tls, CONNECTOR_BUFFER_BYTES)
                        : CONNECTOR_BUFFER_BYTES;
}

/* The server's TLS encrypts the bytes into the middle buffer, or into the raw one if that is all.
 * NULL: no memory. */
static uint8_t *encrypt(struct transport *t, struct slice bytes, size_t *ret_len)
{
    uint8_t *dst = t->proxy_tls ? connector_middle(t->connector) : connector_raw(t->connector);
    if (dst)
        *ret_len = tls_client_fill(t->tls, bytes, dst, lower_room(t));
    return dst;
}

/* What the socket gets for these bytes, in the raw buffer. NULL: no memory. */
static uint8_t *encrypt_all(struct transport *t, struct slice bytes, size_t *ret_len)
{
    uint8_t *raw = connector_raw(t->connector);
    size_t len = bytes.len;
    const uint8_t *from = t->tls ? encrypt(t, bytes, &len) : bytes.ptr;
    if (!raw || !from)
        return NULL;
    *ret_len = len;
    if (t->proxy_tls)
        *ret_len = tls_client_fill(t->proxy_tls, slice_of(from, len), raw, CONNECTOR_BUFFER_BYTES);
    return raw;
}

static void say_goodbye(struct transport *t)
{
    size_t n, sent;
    if ((!t->tls && !t->proxy_tls) || t->held.len)
        return;
    if (t->tls)
        tls_client_shutdown(t->tls);
    if (t->proxy_tls && !t->tls)
        tls_client_shutdown(t->proxy_tls);
    uint8_t *raw = transport_wants_write(t) ? encrypt_all(t, SLICE_EMPTY, &n) : NULL;
    if (raw && n && socket_write(&t->socket, slice_of(raw, n), &sent) == ST_OK)
        t->connector->stats.bytes_sent += sent;
}

void transport_close(struct transport *t)
{
    if (transport_is_open(t)) {
        say_goodbye(t);
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
    uint8_t *raw = connector_raw(connector);
    size_t n = 0;
    if (!raw)
        return no_memory(error);
    enum status status = socket_read(&t->socket, raw, CONNECTOR_BUFFER_BYTES, &n);
    if (status == ST_AGAIN)
        return status;
    if (status == ST_END) {
        if (t->proxy_tls)
            tls_client_feed_end(t->proxy_tls);
        if (t->tls)
            tls_client_feed_end(t->tls);
        return status;
    }
    if (status != ST_OK)
        return socket_failed(t, error);
    connector->stats.reads++;
    connector->stats.bytes_received += n;
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
    uint8_t *middle = connector_middle(t->connector);
    if (!middle)
        return no_memory(error);
    *ret_bytes = slice_of(middle, tls_client_read(t->proxy_tls, middle, CONNECTOR_BUFFER_BYTES));
    return ST_OK;
}

/* What follows the proxy's last byte is left in `arrived`. */
static enum status feed_tunnel(struct transport *t, struct slice bytes, struct error *error)
{
    size_t used;
    enum status status = tunnel_feed(t->tunnel, bytes, &used, error);
    if (status == ST_AGAIN)
        return ST_OK;
    TRY(status);
    tunnel_free(t->tunnel);
    t->tunnel = NULL;
    t->arrived = slice_sub(bytes, used, bytes.len - used);
    return ST_OK;
}

static enum status take_plain(struct transport *t, struct slice *ret_bytes, struct error *error)
{
    uint8_t *plain = connector_plain(t->connector);
    if (!plain)
        return no_memory(error);
    *ret_bytes = slice_of(plain, tls_client_read(t->tls, plain, CONNECTOR_BUFFER_BYTES));
    return ST_OK;
}

enum status transport_take(struct transport *t, struct slice *ret_bytes, struct error *error)
{
    for (;;) {
        if (t->tls) {
            TRY(take_plain(t, ret_bytes, error));
            if (ret_bytes->len || !t->proxy_tls)
                return ST_OK;
        }
        TRY(take_lower(t, ret_bytes, error));
        if (ret_bytes->len == 0 || (!t->tunnel && !t->tls))
            return ST_OK;
        if (t->tunnel)
            TRY(feed_tunnel(t, *ret_bytes, error));
        else
            tls_client_feed(t->tls, *ret_bytes);
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
    if (!is_open(t->proxy_tls))
        return false;
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
    return t->tls || t->proxy_tls ? connector_plain(t->connector) : connector_raw(t->connector);
}

/* ST_OK with a part of the bytes, or none. */
static enum status write_some(struct transport *t, struct slice bytes, size_t *ret_sent,
                              struct error *error)
{
    *ret_sent = 0;
    enum status status = socket_write(&t->socket, bytes, ret_sent);
    if (status != ST_OK && status != ST_AGAIN)
        return socket_failed(t, error);
    t->connector->stats.writes++;
    t->connector->stats.bytes_sent += *ret_sent;
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
        return no_memory(error);
    if (len == 0)
        return ST_OK;
    TRY(write_some(t, slice_of(raw, len), &sent, error));
    if (sent < len && buf_append(&t->held, slice_of(raw + sent, len - sent)) != ST_OK)
        return no_memory(error);
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
