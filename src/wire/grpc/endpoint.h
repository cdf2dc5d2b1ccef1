/*
 * The gRPC calls among the streams of one HTTP/2 session: opens a call for each of them, finds its
 * method, and ends it when its deadline passes or its output makes no progress. Created with the
 * connection's first gRPC request. Owned by the connection, like the session; its thread.
 */
#ifndef VIGIL_WIRE_GRPC_ENDPOINT_H
#define VIGIL_WIRE_GRPC_ENDPOINT_H

#include "wire/grpc/server.h"
#include "wire/h2/session.h"
#include "wire/peer/peer.h"

struct account;
struct grpc_endpoint;

struct grpc_hooks {
    struct account *account; /* charged with what calls hold; borrowed; may be NULL */
    const char *peer_name;   /* for grpc_call_peer_name; borrowed; may be NULL */
    struct wire_peer peer;   /* for grpc_call_peer */
    /* The current time, from which deadlines count; called with peer.owner. NULL: the time of the
     * turn. */
    int64_t (*fresh_ns)(void *owner);
    bool guarded; /* see grpc_services_refuse_pages */
};

/* Server and session are borrowed. */
MUST_CHECK
enum status grpc_endpoint_new(struct grpc_server *server, struct grpc_hooks hooks,
                              struct h2_session *session, struct grpc_endpoint **ret_endpoint);
/* After the session, which has closed all streams. */
void grpc_endpoint_free(struct grpc_endpoint *endpoint);
DEFINE_CLEANUP(struct grpc_endpoint *, grpc_endpoint_free)

/* Whether etcd would pass the request to its gRPC server, which may still refuse it. */
bool grpc_is_request(const struct h2_headers *headers);

/* For h2_session_ops.on_open. A request that is not gRPC is refused in grpc-go's words. */
struct h2_stream *grpc_endpoint_open(struct grpc_endpoint *endpoint, struct h2_headers *headers,
                                     int64_t now_ns);

/* Before the session's feed and fill. */
void grpc_endpoint_turn(struct grpc_endpoint *endpoint, int64_t now_ns);
/* False: too many answers are queued that could be sent. */
bool grpc_endpoint_wants_read(const struct grpc_endpoint *endpoint);
/* Calls in progress are answered; those that park end at once with ST_STOPPED. */
void grpc_endpoint_shutdown(struct grpc_endpoint *endpoint, int64_t now_ns);
int64_t grpc_endpoint_timeout(const struct grpc_endpoint *endpoint);
void grpc_endpoint_tick(struct grpc_endpoint *endpoint, int64_t now_ns);
/* Asserts that the endpoint and its calls are consistent; for tests, between calls. */
void grpc_endpoint_check(const struct grpc_endpoint *endpoint);

#endif
