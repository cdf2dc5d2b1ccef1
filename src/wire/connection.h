/*
 * One client connection as bytes: the caller feeds in what it receives and sends what it gets out.
 * Detects whether the client speaks HTTP/2 or HTTP/1.1. The connection owns the HTTP/2 session;
 * gRPC (grpc/) and plain HTTP (http/http2/) are siblings above it. Has no socket and reads no
 * clock: now_ns is monotonic.
 *
 * An idle connection holds no buffers; the caller's input and output buffers may be shared by all
 * connections of its thread. All functions are called on one thread.
 */
#ifndef VIGIL_WIRE_CONNECTION_H
#define VIGIL_WIRE_CONNECTION_H

#include "wire/grpc/service.h"
#include "wire/http/routes.h"
#include "wire/limits.h"

struct wire_connection;
struct wire_server;

/* What all connections of one thread share: tables, limits, recycled memory. Borrows services and
 * routes; either may be NULL, and gRPC or plain HTTP is then not served. Outlives its connections
 * and every held call. */
MUST_CHECK
enum status wire_server_new(const struct grpc_services *services, const struct http_routes *routes,
                            const struct wire_limits *limits, struct wire_server **ret_server);
/* From now on requests that come without TLS are marked as guarded (http_request.guarded, and
 * grpc_services_refuse_pages), because pages in browsers can reach this server and should not. */
void wire_server_guard(struct wire_server *server);
void wire_server_free(struct wire_server *server);
DEFINE_CLEANUP(struct wire_server *, wire_server_free)

struct wire_hooks {
    /* There is output, or a reason to close, where there was none. Called when a service wakes a
     * call outside feed, fill and tick, after which the caller checks wants_write anyway. */
    void (*on_output)(void *owner);
    /* Writes the client's address for the log, in at most GRPC_ADDRESS_BYTES. May be NULL. */
    void (*peer_address)(void *owner, char *text);
    /* The current time of the same clock, for uses where the time of the turn is too old. May be
     * NULL. */
    int64_t (*fresh_ns)(void *owner);
    void *owner;
    struct account *account; /* charged for what the client makes us hold; may be NULL */
    bool secure;             /* the bytes come over TLS */
    /* The common name of the client's verified certificate; NULL without one. Lives as long as the
     * connection. */
    const char *peer_name;
    const struct http_certificate *certificate; /* wire/http/certificate.h; NULL if peer_name is */
};

MUST_CHECK
enum status wire_connection_new(struct wire_server *server, struct wire_hooks hooks, int64_t now_ns,
                                struct wire_connection **ret_connection);
/* Ends every call (on_end) first. */
void wire_connection_free(struct wire_connection *connection);
DEFINE_CLEANUP(struct wire_connection *, wire_connection_free)

/* Consumes all the bytes. */
void wire_connection_feed(struct wire_connection *connection, struct slice bytes, int64_t now_ns);
/* The client sent its last byte. Answers in progress may still be sent. */
void wire_connection_feed_end(struct wire_connection *connection, int64_t now_ns);
/* False: do not read from the socket for now. Call again after feed, fill, tick and on_output. */
bool wire_connection_wants_read(const struct wire_connection *connection);

bool wire_connection_wants_write(const struct wire_connection *connection);
/* Writes at most room bytes to dst and returns their number. They count as sent. */
enum { WIRE_FILL_ROOM_MIN = 14 * 1024 };
size_t wire_connection_fill(struct wire_connection *connection, uint8_t *dst, size_t room,
                            int64_t now_ns);

/* No more output will follow what was filled, but an upgraded connection still takes input: tell
 * the peer. */
bool wire_connection_output_ended(const struct wire_connection *connection);

/* True once no more output will follow: send what was filled, then close. */
bool wire_connection_should_close(const struct wire_connection *connection);
/* The reason for closing, for the log; never NULL. */
const char *wire_connection_reason(const struct wire_connection *connection);

/* When to call tick: a time of the same clock, or INT64_MAX for never. It changes with feed, fill
 * and on_output. A tick that comes too early or too late does no harm. */
int64_t wire_connection_timeout(const struct wire_connection *connection);
void wire_connection_tick(struct wire_connection *connection, int64_t now_ns);

/* Graceful: no new requests are accepted, those in progress are answered, then should_close is
 * true. */
void wire_connection_shutdown(struct wire_connection *connection, int64_t now_ns);

/* No request is in progress: may be closed first when there are too many connections. */
bool wire_connection_idle(const struct wire_connection *connection);

/* Asserts that the connection and everything in it is consistent; for tests, between calls. */
void wire_connection_check(const struct wire_connection *connection);

#endif
