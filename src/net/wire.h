/* Connects wire/ to net/: connections that speak HTTP/2 (with gRPC) and HTTP/1.1. */
#ifndef VIGIL_NET_WIRE_H
#define VIGIL_NET_WIRE_H

#include "net/protocol.h"
#include "wire/connection.h"

/* Borrowed by the kind, with everything that it points to; shared by all shards, so it is not
 * changed. */
struct net_wire {
    const struct grpc_services *services; /* may be NULL */
    const struct http_routes *routes;     /* may be NULL */
    struct wire_limits limits;
};

/* For net_server_listen. */
struct protocol_kind net_wire_kind(struct net_wire *wire);

#endif
