/*
 * What the gRPC connections of one thread share: the methods, the limits, and ended calls kept for
 * the next ones, so that a unary call allocates nothing. One thread; outlives connections and
 * calls.
 */
#ifndef VIGIL_WIRE_GRPC_SERVER_H
#define VIGIL_WIRE_GRPC_SERVER_H

#include "wire/grpc/limits.h"
#include "wire/grpc/service.h"

struct grpc_server {
    const struct grpc_services *services; /* borrowed */
    const struct grpc_limits *limits;     /* borrowed */
    struct grpc_call *recycled;           /* linked through grpc_call.next_recycled */
    uint32_t recycled_count;
    uint32_t calls; /* alive, held ones too */
};

void grpc_server_init(struct grpc_server *server, const struct grpc_services *services,
                      const struct grpc_limits *limits);
void grpc_server_fini(struct grpc_server *server);

#endif
