/*
 * What a connection speaks: bytes in, bytes out. net/ knows sockets and this table, and nothing of
 * HTTP. net/wire.h puts wire/ behind it; net/tls/tls.h wraps another.
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
    /* There is something to fill out, or to close, where there was not. Cheap to call often. Not
     * needed from inside the functions below: the connection looks after each of them. */
    void (*on_output)(void *owner);
    /* What was just done took far longer than a request does: a handshake. The shard then looks at
     * its clock before it goes on. May be NULL. */
    void (*on_long_step)(void *owner);
    /* Where the peer is, as text of ADDRESS_TEXT_BYTES for the log. May be NULL. */
    void (*peer_address)(void *owner, char *text);
    /* What the clock shows now; the loop's time is that of the turn. May be NULL. */
    int64_t (*fresh_ns)(void *owner);
    void *owner;
    struct account *account; /* charged with what the peer makes us hold; may be NULL */
    /* The common name of the certificate that the peer has shown to be its own and that we trust;
     * NULL without one. Lives as long as the protocol. */
    const char *peer_name;
    const struct http_certificate *certificate; /* the rest of it; NULL as the name */
    bool secure;                                /* what is fed came over TLS */
};

enum { NET_FILL_ROOM_MIN = 16 * 1024 };

struct protocol_ops {
    /* Takes all the bytes. Not called while wants_read says no. */
    void (*feed)(void *protocol, struct slice bytes, int64_t now_ns);
    /* The peer sent its last byte; answers under way may still go out. */
    void (*feed_end)(void *protocol, int64_t now_ns);
    /* False: the peer has enough under way, do not read for now. */
    bool (*wants_read)(const void *protocol);
    bool (*wants_write)(const void *protocol);
    /* Writes at most room bytes and says how many; room is at least NET_FILL_ROOM_MIN. They count
     * as sent. */
    size_t (*fill)(void *protocol, uint8_t *dst, size_t room, int64_t now_ns);
    /* True: nothing more will come out. The connection sends what was filled, then closes. */
    bool (*should_close)(const void *protocol);
    /* Why, for the log; never NULL. */
    const char *(*reason)(const void *protocol);
    /* When to call tick at the latest; CLOCK_NEVER for never. This is how a protocol bounds its
     * handshake, a slow header and a stalled response. */
    int64_t (*timeout)(const void *protocol);
    void (*tick)(void *protocol, int64_t now_ns);
    /* Graceful: nothing new is begun, what is under way is answered, then should_close. */
    void (*shutdown)(void *protocol, int64_t now_ns);
    /* Nothing under way. */
    bool (*idle)(const void *protocol);
    void (*free)(void *protocol);
};

/* How connections of one listener come to speak. Borrowed; outlives the server. */
struct protocol_kind {
    const struct protocol_ops *ops;
    /* What its connections on one shard share, made on the shard's thread. May be NULL. */
    enum status (*shard_new)(void *ctx, struct net_shard *shard, void **ret_shared);
    void (*shard_free)(void *shared);
    enum status (*open)(void *shared, struct protocol_hooks hooks, int64_t now_ns,
                        void **ret_protocol);
    void *ctx;
};

#endif
