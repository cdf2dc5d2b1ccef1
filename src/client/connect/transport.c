#include "client/connect/transport.h"

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

enum status transport_begin_tls(struct transport *t, const char *host,
                                enum tls_client_protocol protocol, struct error *error)
{
    const struct connector_options *o = &t->connector->options;
    return tls_client_new(o->tls, host, protocol, &o->tls_limits, loop_now_ns(o->loop), &t->tls,
                          error);
}

bool transport_selected_http2(const struct transport *t)
{
    return t->tls && tls_client_selected_http2(t->tls);
}

static void say_goodbye(struct transport *t)
{
    size_t sent;
    if (!t->tls || t->held.len)
        return;
    tls_client_shutdown(t->tls);
    uint8_t *raw = tls_client_wants_write(t->tls) ? connector_raw(t->connector) : NULL;
    if (!raw)
        return;
    size_t n = tls_client_fill(t->tls, SLICE_EMPTY, raw, CONNECTOR_BUFFER_BYTES);
    if (socket_write(&t->socket, slice_of(raw, n), &sent) == ST_OK)
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
    t->tls = NULL;
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
        if (t->tls)
            tls_client_feed_end(t->tls);
        return status;
    }
    if (status != ST_OK)
        return socket_failed(t, error);
    connector->stats.reads++;
    connector->stats.bytes_received += n;
    if (t->tls)
        tls_client_feed(t->tls, slice_of(raw, n));
    else
        t->arrived = slice_of(raw, n);
    return ST_OK;
}

enum status transport_take(struct transport *t, struct slice *ret_bytes, struct error *error)
{
    if (!t->tls) {
        *ret_bytes = t->arrived;
        t->arrived = SLICE_EMPTY;
        return ST_OK;
    }
    uint8_t *plain = connector_plain(t->connector);
    if (!plain)
        return no_memory(error);
    *ret_bytes = slice_of(plain, tls_client_read(t->tls, plain, CONNECTOR_BUFFER_BYTES));
    return ST_OK;
}

enum status transport_status(const struct transport *t, struct error *error)
{
    const char *reason;
    if (!t->tls)
        return ST_OK;
    switch (tls_client_state(t->tls)) {
    case TLS_CLIENT_SHAKING:
        return ST_AGAIN;
    case TLS_CLIENT_OPEN:
        return ST_OK;
    case TLS_CLIENT_ENDED:
        return ST_END;
    default:
        error->status = tls_client_reason(t->tls, &reason);
        return error_set(error, error->status, "%s", reason);
    }
}

/* -- sending -- */

bool transport_wants_write(const struct transport *t)
{
    return t->tls && tls_client_wants_write(t->tls);
}

size_t transport_room(const struct transport *t)
{
    if (t->held.len)
        return 0;
    return t->tls ? tls_client_plain_room(t->tls, CONNECTOR_BUFFER_BYTES) : CONNECTOR_BUFFER_BYTES;
}

uint8_t *transport_buffer(struct transport *t)
{
    return t->tls ? connector_plain(t->connector) : connector_raw(t->connector);
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
    uint8_t *raw = connector_raw(t->connector);
    if (!raw)
        return no_memory(error);
    size_t sent;
    if (t->tls)
        len = tls_client_fill(t->tls, slice_of(t->connector->plain, len), raw,
                              CONNECTOR_BUFFER_BYTES);
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
    return t->tls ? tls_client_timeout(t->tls) : CLOCK_NEVER;
}

void transport_tick(struct transport *t, int64_t now_ns)
{
    if (t->tls)
        tls_client_tick(t->tls, now_ns);
}

void transport_check(const struct transport *t)
{
    assert(transport_is_open(t) || (!t->tls && !t->held.len && !t->watch.events));
    assert(t->held_at <= t->held.len && (t->held_at == 0 || t->held_at < t->held.len));
    assert(t->arrived.len == 0); /* taken at once */
    if (t->tls)
        tls_client_check(t->tls);
}
