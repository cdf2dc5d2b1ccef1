/*
 * The bytes of one connection: a socket, with or without TLS. The owner passes plain bytes in and
 * gets plain bytes out; bytes that the socket does not accept at once are kept. Embedded in a
 * connection, on the loop's thread.
 *
 *     socket ── (TLS of a proxy) ── (tunnel, until it is open) ── (TLS of the server) ── owner
 *
 * Errors do not name the endpoint: "connection refused". Their status is ST_CLOSED, ST_NOMEM,
 * ST_LIMIT (no descriptor) or ST_INVALID.
 */
#ifndef VIGIL_CLIENT_CONNECT_TRANSPORT_H
#define VIGIL_CLIENT_CONNECT_TRANSPORT_H

#include "base/buf.h"
#include "client/connect/connector.h"
#include "io/socket.h"

struct endpoint;
struct proxy;
struct tunnel;

struct transport {
    struct connector *connector;
    struct socket socket;         /* open from transport_connect to transport_close */
    struct io_watch watch;        /* its fn is the owner's */
    struct tls_client *tls;       /* owned; NULL without TLS */
    struct tls_client *proxy_tls; /* owned; NULL unless there is a proxy with TLS */
    struct tunnel *tunnel;        /* owned; NULL once it is open, and without a proxy */
    struct slice arrived; /* what was read and not used, in the connector's buffer; empty if TLS
                             has it */
    struct buf held;      /* to be sent when the socket has room */
    size_t held_at;       /* bytes before this were sent */
};

void transport_init(struct transport *transport, struct connector *connector,
                    void (*on_ready)(struct io_watch *watch, unsigned ready));

/* Begins to connect; the socket is writable when that is done. */
MUST_CHECK
enum status transport_connect(struct transport *transport, const struct address *address,
                              struct error *error);
/* What became of it. */
MUST_CHECK
enum status transport_connected(struct transport *transport, struct error *error);
/* Then, with a proxy, which is borrowed: asks it to connect to the server; transport_status becomes
 * ST_OK when it has. */
MUST_CHECK
enum status transport_begin_tunnel(struct transport *transport, const struct proxy *proxy,
                                   const struct endpoint *server, struct error *error);
/* Then, with TLS: begins the handshake; host is the name to verify. */
MUST_CHECK
enum status transport_begin_tls(struct transport *transport, const char *host,
                                enum tls_client_protocol protocol, struct error *error);

/* Closes the socket; an alert or the close notification of TLS is sent if there is room for it. No
 * effect if it is closed. */
void transport_close(struct transport *transport);

static inline bool transport_is_open(const struct transport *transport)
{
    return transport->socket.ops != NULL;
}

/* Watches the socket: for reading if wanted, and for writing while bytes are kept. */
MUST_CHECK
enum status transport_watch(struct transport *transport, bool reads, bool writes);

/* Reads once. ST_OK: something arrived, to be taken at once; ST_AGAIN: nothing; ST_END: the server
 * sent its last byte. */
MUST_CHECK
enum status transport_read(struct transport *transport, struct error *error);
/* The next plain bytes of what was read, borrowed until the next call. Empty: that was all, and
 * transport_status says what else happened. Otherwise an error: ST_NOMEM, or ST_CLOSED: the proxy
 * refused. */
MUST_CHECK
enum status transport_take(struct transport *transport, struct slice *ret_bytes,
                           struct error *error);
/* ST_OK: bytes can be sent; ST_AGAIN: the tunnel or the handshake is not finished; ST_END: the
 * server sent a close notification. Otherwise it has failed. */
MUST_CHECK
enum status transport_status(const struct transport *transport, struct error *error);

/* TLS or the tunnel has something to send by itself. */
bool transport_wants_write(const struct transport *transport);
/* How many bytes the owner may send now; 0 while bytes are kept. */
size_t transport_room(const struct transport *transport);
/* Where it writes them. NULL: no memory. */
uint8_t *transport_buffer(struct transport *transport);
/* Sends the first len bytes of that buffer, and what TLS has. ST_OK, also if some are kept. */
MUST_CHECK
enum status transport_send(struct transport *transport, size_t len, struct error *error);
/* Sends what was kept. ST_AGAIN: there is still something. */
MUST_CHECK
enum status transport_send_held(struct transport *transport, struct error *error);

/* Tells the server that nothing more is sent to it; reading continues. With TLS the notification is
 * still to be sent. Nothing is kept. */
void transport_end_output(struct transport *transport);

/* When to call tick, CLOCK_NEVER for never; then transport_status may change. */
int64_t transport_timeout(const struct transport *transport);
void transport_tick(struct transport *transport, int64_t now_ns);

/* Asserts every invariant; for tests. */
void transport_check(const struct transport *transport);

#endif
