/* The inside of net/tls/tls.h: only for tls.c and connection.c. */
#ifndef VIGIL_NET_TLS_TLS_PRIVATE_H
#define VIGIL_NET_TLS_TLS_PRIVATE_H

#include "base/container/list.h"
#include "net/tls/tls.h"

struct tls_connection;

/* What the connections of one listener on one shard share. Owned by the shard. */
struct tls_shard {
    const struct net_tls *tls;
    void *inner;                  /* what the inner kind shares */
    struct bio_method_st *method; /* owned; net/tls/bytes.h */
    uint8_t *scratch;             /* decrypted bytes in transit; TLS_SCRATCH_BYTES */
    uint32_t handshakes;          /* in progress */
    struct list waiting;          /* tls_connection.in_waiting: has first bytes, but no place */
    size_t waiting_bytes;
};

enum { TLS_SCRATCH_BYTES = 64 * 1024 };

MUST_CHECK
enum status tls_connection_new(struct tls_shard *shard, struct protocol_hooks hooks, int64_t now_ns,
                               struct tls_connection **ret_connection);

extern const struct protocol_ops tls_connection_ops;

#endif
