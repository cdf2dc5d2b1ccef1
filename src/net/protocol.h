/*
 * The protocol of a connection: bytes in, bytes out. net/ knows sockets and this table, but nothing
 * of HTTP. net/wire.h implements it with wire/; net/tls/tls.h wraps another protocol.
 *
 * Everything is called on the connection's thread. Times are monotonic ns of the loop's clock.
 */
#ifndef VIGIL_NET_PROTOCOL_H
#define VIGIL_NET_PROTOCOL_H

#include "base/slice.h"
#include "base/status.h"

struct account;
struct net_shard;

struct protocol_hooks {
    /* There is output, or a reason to close, where there was none. Cheap to call often. Not needed
     * inside the functions below: the connection checks after each of them. */
    void (*on_output)(void *owner);
    /* The last step took much longer than a request, for instance a handshake: the shard then reads
     * its clock before it continues. May be NULL. */
    void (*on_long_step)(void *owner);
    /* Writes the peer's address for the log, in ADDRESS_TEXT_BYTES. May be NULL. */
    void (*peer_address)(void *owner, char *text);
    /* The current time; the loop's time is that of the turn. May be NULL. */
    int64_t (*fresh_ns)(void *owner);
    void *owner;
    struct account *account; /* charged for what the peer makes us hold; may be NULL */
    /* The common name of the peer's verified certificate; NULL without one. Lives as long as the
     * protocol. */
    const char *peer_name;
    const struct http_certificate *certificate; /* more of the certificate; NULL if peer_name is */
    bool secure;                                /* the bytes come over TLS */
};

enum { NET_FILL_ROOM_MIN = 16 * 1024 };

struct protocol_ops {
    /* Consumes all the bytes. Not called while wants_read is false. */
    void (*feed)(void *protocol, struct slice bytes, int64_t now_ns);
    /* The peer sent its last byte; answers in progress may still be sent. */
    void (*feed_end)(void *protocol, int64_t now_ns);
    /* False: the peer has enough in progress, do not read for now. */
    bool (*wants_read)(const void *protocol);
    bool (*wants_write)(const void *protocol);
    /* Writes at most room bytes and returns their number; room is at least NET_FILL_ROOM_MIN. They
     * count as sent. */
    size_t (*fill)(void *protocol, uint8_t *dst, size_t room, int64_t now_ns);
    /* True: no more output will follow, but the peer may still send. The connection tells it so.
     * NULL: never. */
    bool (*output_ended)(const void *protocol);
    /* True: no more output will follow. The connection sends what was filled, then closes. */
    bool (*should_close)(const void *protocol);
    /* The reason for closing, for the log; never NULL. */
    const char *(*reason)(const void *protocol);
    /* When to call tick at the latest; CLOCK_NEVER for never. A protocol uses it to limit its
     * handshake, a slow header and a stalled response. */
    int64_t (*timeout)(const void *protocol);
    void (*tick)(void *protocol, int64_t now_ns);
    /* Graceful: nothing new is begun, what is in progress is answered, then should_close is true.
     */
    void (*shutdown)(void *protocol, int64_t now_ns);
    /* Nothing is in progress. */
    bool (*idle)(const void *protocol);
    void (*free)(void *protocol);
};

/* How the connections of a listener get their protocol. Borrowed; outlives the server. */
struct protocol_kind {
    const struct protocol_ops *ops;
    /* Creates what its connections on one shard share, on the shard's thread. May be NULL. */
    enum status (*shard_new)(void *ctx, struct net_shard *shard, void **ret_shared);
    void (*shard_free)(void *shared);
    enum status (*open)(void *shared, struct protocol_hooks hooks, int64_t now_ns,
                        void **ret_protocol);
    void *ctx;
};

#endif
