/*
 * What the gRPC connections of one thread share: the methods, the limits, and the memory of ended
 * calls, which is reused so that a unary call allocates nothing. One thread; outlives connections
 * and calls.
 */
#ifndef VIGIL_WIRE_GRPC_SERVER_H
#define VIGIL_WIRE_GRPC_SERVER_H

#include "wire/grpc/limits.h"
#include "wire/grpc/service.h"

/* The memory of an ended call. */
struct grpc_recycled {
    struct grpc_recycled *next;
};

struct grpc_server {
    const struct grpc_services *services; /* borrowed; may be NULL */
    const struct grpc_limits *limits;     /* borrowed */
    struct grpc_recycled *recycled;       /* a list */
    uint32_t recycled_count;
    uint32_t calls; /* alive, including those that are only held */
};

void grpc_server_init(struct grpc_server *server, const struct grpc_services *services,
                      const struct grpc_limits *limits);
void grpc_server_fini(struct grpc_server *server);

#endif
