/*
 * TLS as a protocol that wraps another one: input and output are encrypted, and the decrypted bytes
 * belong to the inner protocol, which is opened when the handshake is done. No socket, no clock.
 *
 *     waiting ──► shaking ──► open ──► ending
 *        │           └──► failed ◄──┘
 *        └──► plain (the port accepts both, and this client does not speak TLS)
 *
 * A connection waits until its first bytes have arrived and one of the places for handshakes is
 * free; until then it holds very little. Handshakes are done while output is made, for which the
 * shard limits the time, so that a thousand clients at once do not block the others.
 */
#ifndef VIGIL_NET_TLS_TLS_H
#define VIGIL_NET_TLS_TLS_H

#include "net/protocol.h"
#include "net/tls/source.h"

/* A client that was refused. The texts live during the call. */
struct tls_rejection {
    const char *remote_address;
    const char *server_name; /* the requested name; may be "" */
    const char *reason;
    const char *dns_names,
        *ip_addresses; /* in its certificate, separated by commas; NULL without one */
    bool left;         /* the client closed the connection during the handshake */
};

struct net_tls_limits {
    int64_t handshake_ns; /* from the first check of a connection to the end of the handshake */
    uint32_t
        handshake_bytes; /* that a client may send during the handshake, including certificates */
    uint32_t handshakes_max;    /* concurrent handshakes on one shard; other connections wait */
    uint32_t waiting_bytes_max; /* first bytes of waiting connections, per shard */
    uint32_t
        idle_messages_max; /* handshake messages without data between them, on an open connection */
};

#define NET_TLS_LIMITS_DEFAULT                    \
    ((struct net_tls_limits){                     \
        .handshake_ns = 10 * INT64_C(1000000000), \
        .handshake_bytes = 128 * 1024,            \
        .handshakes_max = 1024,                   \
        .waiting_bytes_max = 4 * 1024 * 1024,     \
        .idle_messages_max = 32,                  \
    })

/* Borrowed by the kind, with everything that it points to; shared by all shards, so it is not
 * changed. */
struct net_tls {
    const struct protocol_kind *inner;
    struct tls_source *source;
    bool
        plain_too; /* a client that does not speak TLS uses the inner protocol without encryption */
    struct net_tls_limits limits;
    /* On the connection's thread; may be NULL. */
    void (*on_rejection)(void *ctx, const struct tls_rejection *rejection);
    void *ctx;
};

/* For net_server_listen. */
struct protocol_kind net_tls_kind(struct net_tls *tls);

#endif
