/*
 * TLS as a protocol that wraps another: bytes come in sealed and go out sealed, what is inside is
 * spoken by the inner kind, which is opened when the handshake is done. No socket, no clock.
 *
 *     waiting ──► shaking ──► open ──► ending
 *        │           └──► failed ◄──┘
 *        └──► plain (the port takes both, and this client does not speak TLS)
 *
 * A connection waits until its first bytes came and one of the places for handshakes is free; it
 * holds next to nothing until then. Handshakes are done while output is made, which the shard
 * bounds in time, so that a thousand clients at once do not stop the others.
 */
#ifndef VIGIL_NET_TLS_TLS_H
#define VIGIL_NET_TLS_TLS_H

#include "net/protocol.h"
#include "net/tls/source.h"

/* A client that was not let in. The texts live for the call. */
struct tls_rejection {
    const char *remote_address;
    const char *server_name; /* it asked for; "" */
    const char *reason;
    const char *dns_names, *ip_addresses; /* lists with commas of its certificate; NULL without */
    bool left;                            /* by itself, in the middle: nothing is wrong with us */
};

struct net_tls_limits {
    int64_t handshake_ns;       /* from the first look at a connection to the end of handshake */
    uint32_t handshake_bytes;   /* a client may send in it, certificates and all */
    uint32_t handshakes_max;    /* under way at the same time on one shard; the others wait */
    uint32_t waiting_bytes_max; /* first bytes of those that wait, on one shard */
    uint32_t idle_messages_max; /* of the handshake kind without data between them, once open */
};

#define NET_TLS_LIMITS_DEFAULT                    \
    ((struct net_tls_limits){                     \
        .handshake_ns = 10 * INT64_C(1000000000), \
        .handshake_bytes = 128 * 1024,            \
        .handshakes_max = 1024,                   \
        .waiting_bytes_max = 4 * 1024 * 1024,     \
        .idle_messages_max = 32,                  \
    })

/* Borrowed by the kind, with everything in it; shared by all shards, so nobody writes to it. */
struct net_tls {
    const struct protocol_kind *inner;
    struct tls_source *source;
    bool plain_too; /* a client that does not begin as TLS does speaks with the inner kind openly */
    struct net_tls_limits limits;
    /* On the connection's thread; may be NULL. */
    void (*on_rejection)(void *ctx, const struct tls_rejection *rejection);
    void *ctx;
};

/* For net_server_listen. */
struct protocol_kind net_tls_kind(struct net_tls *tls);

#endif
