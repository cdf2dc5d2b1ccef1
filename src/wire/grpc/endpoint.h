/*
 * The gRPC side of one HTTP/2 connection: opens a call for every stream, finds its method, ends it
 * when its deadline passes or its output stands still. Owned by its connection; its thread.
 */
#ifndef VIGIL_WIRE_GRPC_ENDPOINT_H
#define VIGIL_WIRE_GRPC_ENDPOINT_H

#include "wire/grpc/server.h"
#include "wire/h2/session.h"

struct account;
struct grpc_endpoint;

struct grpc_endpoint_ops {
    void (*on_output)(void *owner);
    /* A request whose content type is not gRPC's, as h2_session_ops.on_open. May be NULL: it is
     * then refused in grpc-go's words. */
    struct h2_stream *(*on_other)(void *owner, struct h2_headers *headers, int64_t now_ns);
};

/* What its calls hold is charged to the account, which is borrowed; NULL: it is not. */
MUST_CHECK
enum status grpc_endpoint_new(struct grpc_server *server, const struct h2_limits *limits,
                              const struct grpc_endpoint_ops *ops, void *owner,
                              struct account *account, int64_t now_ns,
                              struct grpc_endpoint **ret_endpoint);
/* Ends every call first. */
void grpc_endpoint_free(struct grpc_endpoint *endpoint);
DEFINE_CLEANUP(struct grpc_endpoint *, grpc_endpoint_free)

/* Borrowed; what grpc_call_peer_name tells. NULL at first. */
void grpc_endpoint_set_peer_name(struct grpc_endpoint *endpoint, const char *name);

/* See grpc_services_refuse_pages; false at first. */
void grpc_endpoint_set_guarded(struct grpc_endpoint *endpoint, bool guarded);

/* What grpc_call_peer_address tells, and the time as it is at that moment, from which deadlines
 * count. Both may be NULL. */
void grpc_endpoint_set_peer(struct grpc_endpoint *endpoint,
                            void (*address)(void *owner, char *text),
                            int64_t (*fresh_ns)(void *owner), void *owner);

/* For what needs no gRPC: wants_write, over. */
struct h2_session *grpc_endpoint_session(struct grpc_endpoint *endpoint);

void grpc_endpoint_feed(struct grpc_endpoint *endpoint, struct slice bytes, int64_t now_ns);
size_t grpc_endpoint_fill(struct grpc_endpoint *endpoint, uint8_t *dst, size_t room,
                          int64_t now_ns);
bool grpc_endpoint_wants_read(const struct grpc_endpoint *endpoint);
/* Says good-bye: calls under way are answered, those that park end at once with ST_STOPPED. */
void grpc_endpoint_shutdown(struct grpc_endpoint *endpoint, int64_t now_ns);
int64_t grpc_endpoint_timeout(const struct grpc_endpoint *endpoint);
void grpc_endpoint_tick(struct grpc_endpoint *endpoint, int64_t now_ns);

#endif
