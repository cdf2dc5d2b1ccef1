/*
 * A whole server put together: engine, listeners, shards, and on each shard a face. Started and
 * stopped by one thread; everything else happens on its own threads.
 *
 *     start: open the store ─► listen ─► start the shards
 *     stop:  drain (answer what is under way) ─► end the shards ─► close the store
 */
#ifndef VIGIL_CMD_SERVE_SERVER_H
#define VIGIL_CMD_SERVE_SERVER_H

#include "cmd/serve/server_auth.h"
#include "cmd/serve/server_tls.h"
#include "engine/local/local.h"
#include "etcd/auto_compaction.h"
#include "etcd/face.h"
#include "kube/api/face.h"
#include "net/server.h"
#include "wire/limits.h"

struct server;

/* What is served where. */
enum server_role {
    SERVER_CLIENTS, /* gRPC and HTTP */
    SERVER_GRPC,    /* gRPC only, for HTTP has URLs of its own */
    SERVER_HTTP,    /* those */
    SERVER_METRICS, /* /metrics and the health checks */
    SERVER_KUBE,    /* the Kubernetes API */
    SERVER_ROLES
};

/* Borrowed until server_free. The engine's shards_max is set here. */
struct server_config {
    struct engine_local_options engine;
    struct etcd_config etcd;
    struct kube_config kube;
    bool kube_wanted;       /* one of listen is for it */
    bool kube_optional;     /* it does without that one when somebody else listens there */
    struct net_options net; /* without its budget, which the server makes */
    size_t client_bytes_max;
    struct wire_limits wire;
    const struct url *listen;
    const enum server_role *roles; /* of each of listen */
    size_t listen_count;
    bool shows_listen; /* etcd.client_urls are the first of listen: chosen ports are put in */
    bool guards_pages; /* those on loopback keep pages in browsers away; etcd's never do */
    struct server_tls_config tls; /* for those of them that are secure */
    struct server_auth_config auth;
    enum auto_compaction_mode compaction_mode;
    int64_t compaction_retention; /* 0: only when asked */
    /* Without that: what is kept once something was written through Kubernetes' API; 0: all. */
    int64_t kube_history_ns, kube_history_bytes;
};

/* On failure nothing is left running, and the error says what to do about it. */
MUST_CHECK
enum status server_start(const struct server_config *config, struct server **ret_server,
                         struct error *error);

/* Where the i-th listener listens: a port of 0 has become the one chosen. NULL: it was passed over,
 * since somebody else listens there. */
const struct url *server_bound(const struct server *server, size_t i);
/* The client URLs of the member list, with the ports that were chosen; as many as config has. */
const struct slice *server_client_urls(const struct server *server);
struct engine *server_engine(struct server *server);

/* Takes no more connections and asks those there are to end. */
void server_drain(struct server *server);
bool server_drained(struct server *server);

/* Drained or not: ends everything. Accepts NULL. */
void server_free(struct server *server);
DEFINE_CLEANUP(struct server *, server_free)

#endif
