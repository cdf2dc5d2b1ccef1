/*
 * A whole server: engine, listeners, shards, and the two APIs on each shard. Started and stopped by
 * one thread; everything else happens on threads of its own.
 *
 *     start: open the store ─► listen ─► start the shards
 *     stop:  drain (answer what is under way) ─► end the shards ─► close the store
 *
 * With a face the store is an empty mirror, and the face takes the place of the Kubernetes API.
 */
#ifndef VIGIL_SERVER_SERVER_H
#define VIGIL_SERVER_SERVER_H

#include "engine/local/local.h"
#include "etcd/api.h"
#include "etcd/auto_compaction.h"
#include "kube/server/api.h"
#include "mirror/cluster.h"
#include "net/server.h"
#include "server/auth.h"
#include "server/face.h"
#include "server/tls.h"
#include "wire/limits.h"

struct server;

/* What a listener serves. */
enum server_role {
    SERVER_CLIENTS, /* gRPC and HTTP */
    SERVER_GRPC,    /* gRPC only: HTTP has separate URLs */
    SERVER_HTTP,    /* HTTP only */
    SERVER_METRICS, /* /metrics and the health checks */
    SERVER_KUBE,    /* the Kubernetes API */
    SERVER_ROLES
};

/* Borrowed until server_free. The engine's shards_max is set here. */
struct server_config {
    struct engine_local_options engine;
    /* A program that contains a store (src/embed) sets its engine, and what that uses for
     * authentication. NULL: the server makes its own. */
    struct engine *open_engine;
    const struct server_auth *open_auth;
    bool clustered;                /* in front of an etcd cluster: engine is its mirror's */
    struct mirror_options cluster; /* without its mirror */
    /* Serves the listeners for the Kubernetes API, with `engine` as its mirror. NULL: our own API
     * does. With a face, open_engine, clustered and kube_wanted are not set. */
    const struct server_face *face;
    struct etcd_config etcd;
    struct kube_config kube;
    bool kube_wanted;       /* one of the listeners is for our own Kubernetes API */
    bool makes_account_key; /* tokens of service accounts are signed with a key in the data
                               directory, which is made if it is missing */
    bool kube_optional;     /* the server starts without it if the address is in use */
    struct net_options net; /* without its budget, which the server creates */
    size_t client_bytes_max;
    bool owns_process; /* it may decide what the C library keeps of freed memory (trimmer.h) */
    struct wire_limits wire;
    const struct url *listen;
    const enum server_role *roles; /* role of each URL in listen */
    size_t listen_count;
    bool shows_listen; /* etcd.client_urls are the first listeners: port 0 is replaced in them */
    bool guards_pages; /* listeners on loopback refuse requests from web pages; never as etcd */
    struct server_tls_config tls; /* for the https listeners */
    struct server_auth_config auth;
    enum auto_compaction_mode compaction_mode;
    int64_t compaction_retention; /* 0: only on request */
    /* The history that is kept without a retention, once the Kubernetes API was written to; 0: all.
     */
    int64_t kube_history_ns, kube_history_bytes;
};

/* The file of that key, in the data directory, and the issuer of its tokens, which is kubeadm's. */
#define SERVER_ACCOUNT_KEY "service-account.key"
#define SERVER_ACCOUNT_ISSUER "https://kubernetes.default.svc.cluster.local"

/* On failure nothing keeps running, and the error says what to do. A cluster in front of which it
 * is started need not be reachable. */
MUST_CHECK
enum status server_start(const struct server_config *config, struct server **ret_server,
                         struct error *error);

/* The address of the i-th listener, with the real port in place of 0. NULL: it was skipped, because
 * its address is in use. */
const struct url *server_bound(const struct server *server, size_t i);
/* The client URLs of the member list with their real ports, as many as config has. */
const struct slice *server_client_urls(const struct server *server);
struct engine *server_engine(struct server *server);

/*
 * In front of a cluster whose past is not the mirror's: all watches end as compacted. Returns the
 * newest revision of that past. When the server was freed, the mirror is thrown away with the
 * second function, and a server can be started again.
 */
int64_t server_end_watches(struct server *server);
MUST_CHECK
enum status server_discard_mirror(const struct server_config *config, int64_t void_until,
                                  struct error *error);

/* Accepts no more connections and asks the open ones to end. */
void server_drain(struct server *server);
bool server_drained(struct server *server);

/* Ends everything, drained or not. Accepts NULL. */
void server_free(struct server *server);
DEFINE_CLEANUP(struct server *, server_free)

#endif
