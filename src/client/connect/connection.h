/*
 * One connection to one endpoint: name lookup, socket, TLS, and a session of HTTP/2 or HTTP/1.1.
 *
 *     looking up ──► connecting ──► tunnelling ──► shaking ──► greeting ──► open ──► draining
 *          │            │   ▲             │             │            │         │         │
 *          │            │   └─────────────┴─────────────┴────────────┤ (the next address) │
 *          └────────────┴─────────────────┴─────────────┴────────────┴──► closed ◄────────┘
 *
 *     tunnelling a proxy connects to the server; skipped without a proxy
 *     shaking    the TLS handshake; skipped without TLS
 *     greeting   the session is made, and the server has not answered yet; with HTTP/1.1, in which
 *                the client begins, the connection is open at once
 *     draining   the server sent GOAWAY: the streams are finished, and no new one is opened
 *
 * A failed attempt is followed by one to the next address of the host, or of the proxy. Everything
 * that a turn of the loop produces is sent with one system call at its end.
 *
 * Owned by the channel; the loop's thread. No hook is called from within a function of this header,
 * and every hook may free the connection. Missing memory closes the connection and is its error.
 */
#ifndef VIGIL_CLIENT_CONNECT_CONNECTION_H
#define VIGIL_CLIENT_CONNECT_CONNECTION_H

#include "client/connect/connector.h"
#include "client/connect/session.h"
#include "client/names/endpoint.h"

struct connection;

enum connection_state {
    CONNECTION_LOOKING_UP,
    CONNECTION_CONNECTING,
    CONNECTION_TUNNELLING,
    CONNECTION_SHAKING,
    CONNECTION_GREETING,
    CONNECTION_OPEN,
    CONNECTION_DRAINING,
    CONNECTION_CLOSED,
};

/* The order is: on_open, on_draining, on_closed, each at most once. If it is closed in the turn in
 * which it opens or begins to drain, only on_closed is called. */
struct connection_hooks {
    void (*on_open)(void *owner);
    /* HTTP/2: no stream can be opened any more. text is the server's, "too_many_pings" for
     * instance, and borrowed. */
    void (*on_draining)(void *owner, enum h2_error code, const char *text);
    /* HTTP/2: h2_session_open returned ST_AGAIN before, and now a stream may be opened. */
    void (*on_room)(void *owner);
    /* It is closed; all its streams and calls were closed before. The error names the endpoint and
     * the reason. Its status is ST_CLOSED, ST_TIMEOUT, ST_NOMEM, ST_LIMIT (no descriptor),
     * ST_INVALID (TLS is required and not configured). */
    void (*on_closed)(void *owner, const struct error *error);
    void *owner;
};

/* Begins to connect. The connector is borrowed, the endpoint is copied. ST_NOMEM. */
MUST_CHECK
enum status connection_new(struct connector *connector, const struct endpoint *endpoint,
                           enum session_protocol protocol, struct connection_hooks hooks,
                           struct connection **ret_connection);
/* At any time, also within a hook or a function that the session calls. No hook is called any more;
 * streams that are left are closed, within the session's functions as soon as they return. */
void connection_free(struct connection *connection);
DEFINE_CLEANUP(struct connection *, connection_free)

enum connection_state connection_state(const struct connection *connection);
const struct endpoint *connection_endpoint(const struct connection *connection);
/* TLS protects the bytes: for :scheme. */
bool connection_is_secure(const struct connection *connection);
/* For h2_session_open, while open or draining; otherwise, and with HTTP/1.1, NULL. */
struct h2_session *connection_session(struct connection *connection);
/* The same for http1_client_start. */
struct http1_client *connection_http1(struct connection *connection);

/* Graceful: no stream can be opened any more, those that are open are finished, then on_closed. */
void connection_shutdown(struct connection *connection);

/* Asserts every invariant; for tests. */
void connection_check(const struct connection *connection);

#endif
