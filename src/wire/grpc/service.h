/* The set of gRPC methods a server answers: filled at start, read-only afterwards, shared by
 * shards. */
#ifndef VIGIL_WIRE_GRPC_SERVICE_H
#define VIGIL_WIRE_GRPC_SERVICE_H

#include "wire/grpc/call.h"

struct grpc_services;

MUST_CHECK
enum status grpc_services_new(struct grpc_services **ret_services);
void grpc_services_free(struct grpc_services *services);
DEFINE_CLEANUP(struct grpc_services *, grpc_services_free)

/* The rows are borrowed and outlive the set. `service` is handed to each of their functions. */
MUST_CHECK
enum status grpc_services_add(struct grpc_services *services, const struct grpc_method *methods,
                              size_t count, void *service);

/* NULL when no such method is registered. */
const struct grpc_method *grpc_services_find(const struct grpc_services *services,
                                             struct slice path, void **ret_service);

/* Whether any method's path begins so: "/etcdserverpb.KV/". */
bool grpc_services_has(const struct grpc_services *services, struct slice prefix);

#endif
