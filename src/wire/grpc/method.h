/* One gRPC method of a server: its properties and the functions of the service that implements it.
 * The life of a call is drawn in call.h. */
#ifndef VIGIL_WIRE_GRPC_METHOD_H
#define VIGIL_WIRE_GRPC_METHOD_H

#include "base/slice.h"
#include "base/status.h"

struct grpc_call;

struct grpc_method {
    const char *path;    /* "/etcdserverpb.KV/Range" */
    bool client_streams; /* the client may send more than one message */
    bool server_streams; /* the service may send more than one message */
    bool bulk;           /* its output is sent after that of other calls when room is short */
    /* The call waits for events, like a watch: output without progress is not a stall. When the
     * server shuts down, it is ended at once with a status that makes clients use another server.
     */
    bool parks;

    /*
     * A whole message arrived. Its bytes live as long as the call (a unary or server-streaming
     * call) or until this returns (client_streams). A unary call is delivered as soon as its
     * message is complete, a server-streaming one when the peer has half-closed, as grpc-go does.
     */
    void (*on_message)(struct grpc_call *call, void *service, struct slice message);
    /* The peer will send no more messages. May be NULL. Never called for a unary method. */
    void (*on_half_close)(struct grpc_call *call, void *service);
    /* The call is over, for whatever reason. May be NULL. */
    void (*on_end)(struct grpc_call *call, void *service);
    const void *row; /* for a service that is a table: grpc_call_row */
};

/* A row of a service's methods; further members may follow. */
#define GRPC_METHOD(path_, message, end, ...)                                  \
    {                                                                          \
        .path = (path_), .on_message = (message), .on_end = (end), __VA_ARGS__ \
    }

#endif
