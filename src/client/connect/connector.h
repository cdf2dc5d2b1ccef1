/*
 * What the connections of one client share: the loop, the network, the resolver, TLS, limits,
 * counters, and the buffers through which bytes pass. A buffer exists only while bytes pass: it is
 * freed when nothing was read or written for about a second, so that an idle client is small.
 *
 * Owned by the channel; the loop's thread.
 */
#ifndef VIGIL_CLIENT_CONNECT_CONNECTOR_H
#define VIGIL_CLIENT_CONNECT_CONNECTOR_H

#include "base/metric/counter.h"
#include "io/loop.h"
#include "net/tls/client.h"
#include "wire/h2/limits.h"
#include "wire/http/http1/client.h"

struct address_source;
struct network;
struct proxy;
struct resolver;

enum { CONNECTOR_BUFFER_BYTES = 64 * 1024 };

/* Borrowed things outlive the connector. */
struct connector_options {
    struct loop *loop;             /* borrowed */
    struct network *network;       /* borrowed */
    struct resolver *resolver;     /* borrowed */
    struct tls_client_source *tls; /* borrowed; NULL: only endpoints without TLS can be used */
    const struct proxy *proxy;     /* borrowed: reaches the servers, except for Unix sockets; NULL:
                                      none */
    /* Borrowed: asked for the addresses of servers instead of the resolver, which is only asked for
     * those of proxies; NULL: none. */
    const struct address_source *addresses;
    /* Borrowed: shared with other connectors; NULL: the connector has its own. */
    struct connector_buffers *buffers;
    const char *server_name;    /* borrowed: verified instead of the endpoint's host; "": not */
    int64_t connect_timeout_ns; /* from the start until the server has answered */
    struct h2_limits h2;
    struct http1_client_limits http1;
    struct tls_client_limits tls_limits;
};

/* For loop, network and resolver. */
#define CONNECTOR_OPTIONS_DEFAULT                      \
    ((struct connector_options){                       \
        .server_name = "",                             \
        .connect_timeout_ns = 5 * INT64_C(1000000000), \
        .h2 = H2_CLIENT_LIMITS_DEFAULT,                \
        .http1 = HTTP1_CLIENT_LIMITS_DEFAULT,          \
        .tls_limits = TLS_CLIENT_LIMITS_DEFAULT,       \
    })

/* Written by the loop's thread, read by any. */
struct connector_counters {
    _Atomic uint64_t bytes_sent, bytes_received, writes, reads;
};

/* Owned by a connector, or by what has several of them in one loop and outlives them. Zeroed except
 * for loop, which is borrowed, it has no buffers. */
struct connector_buffers {
    struct loop *loop;
    /* NULL while nothing passes. Bytes of a socket, without encryption, and between the TLS of a
     * proxy and that of the server behind it. */
    uint8_t *raw, *plain, *middle;
    bool used;         /* since the timer was set */
    struct timer idle; /* set while a buffer exists */
};

struct connector {
    struct connector_options options;
    struct connector_counters counters;
    unsigned connections; /* that use it */
    struct connector_buffers *buffers;
    struct connector_buffers own_buffers;
};

void connector_init(struct connector *connector, const struct connector_options *options);
void connector_fini(struct connector *connector); /* after its connections */

void connector_buffers_fini(struct connector_buffers *buffers);
/* CONNECTOR_BUFFER_BYTES, to be used within this call: &buffers->raw, plain or middle. NULL: no
 * memory. */
uint8_t *connector_buffer(struct connector_buffers *buffers, uint8_t **buffer);

#endif
