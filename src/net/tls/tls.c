#include "net/tls/tls.h"

#include "net/tls/bytes.h"
#include "net/tls/tls_private.h"

#include <openssl/bio.h>
#include <stdlib.h>

static void release(struct tls_shard *shard)
{
    BIO_meth_free(shard->method);
    free(shard->scratch);
    free(shard);
}

static void shard_free(void *shared)
{
    struct tls_shard *shard = shared;
    const struct protocol_kind *inner = shard->tls->inner;
    assert(shard->handshakes == 0 && list_empty(&shard->waiting) && shard->waiting_bytes == 0);
    if (inner->shard_free)
        inner->shard_free(shard->inner);
    release(shard);
}

static enum status shard_new(void *ctx, struct net_shard *net_shard, void **ret_shared)
{
    const struct net_tls *tls = ctx;
    struct tls_shard *shard = calloc(1, sizeof(*shard));
    if (!shard)
        return ST_NOMEM;
    shard->tls = tls;
    shard->scratch = malloc(TLS_SCRATCH_BYTES);
    shard->method = tls_bytes_method_new();
    list_init(&shard->waiting);
    enum status status = shard->scratch && shard->method ? ST_OK : ST_NOMEM;
    if (status == ST_OK && tls->inner->shard_new)
        status = tls->inner->shard_new(tls->inner->ctx, net_shard, &shard->inner);
    if (status != ST_OK) {
        release(shard);
        return status;
    }
    *ret_shared = shard;
    return ST_OK;
}

static enum status open_connection(void *shared, struct protocol_hooks hooks, int64_t now_ns,
                                   void **ret_protocol)
{
    struct tls_connection *connection;
    TRY(tls_connection_new(shared, hooks, now_ns, &connection));
    *ret_protocol = connection;
    return ST_OK;
}

struct protocol_kind net_tls_kind(struct net_tls *tls)
{
    return (struct protocol_kind){
        .ops = &tls_connection_ops,
        .shard_new = shard_new,
        .shard_free = shard_free,
        .open = open_connection,
        .ctx = tls,
    };
}
