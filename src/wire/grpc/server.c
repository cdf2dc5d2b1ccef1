#include "wire/grpc/server.h"

#include <stdlib.h>

void grpc_server_init(struct grpc_server *server, const struct grpc_services *services,
                      const struct grpc_limits *limits)
{
    *server = (struct grpc_server){.services = services, .limits = limits};
}

void grpc_server_fini(struct grpc_server *server)
{
    assert(server->calls == 0);
    while (server->recycled) {
        struct grpc_recycled *block = server->recycled;
        server->recycled = block->next;
        free(block);
    }
    *server = (struct grpc_server){0};
}
