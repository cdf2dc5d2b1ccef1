/*
 * The etcd face of one shard: the tables of gRPC methods and HTTP routes that its connections are
 * answered from, and what the functions behind them share. One per I/O thread, used only on it.
 *
 *     wire connection ──► table ──► service (this layer) ──► engine shard
 *                                        └──── done ◄────────────┘
 *
 * A service decodes and checks a request, starts an operation of the engine, and encodes the answer
 * when it is done. Its state lives in the call's arena; a call that ends first is held until the
 * operation is done.
 */
#ifndef VIGIL_ETCD_FACE_H
#define VIGIL_ETCD_FACE_H

#include "base/metric/metric.h"
#include "engine/engine.h"
#include "net/stats.h"
#include "wire/grpc/service.h"
#include "wire/http/routes.h"

struct auth_issuer;
struct budget;
struct etcd_health_counts;
struct turns;
struct worker;

/* What every shard answers the same. Borrowed by the faces, which it outlives. */
struct etcd_config {
    const char *version;         /* reported to clients: "3.7.0" */
    const char *cluster_version; /* "3.7.0": the same with the last number 0 */
    bool before_3_5;             /* that version is older: some JSON is as it was then */
    size_t txn_ops_max;          /* operations in one list of a transaction */
    size_t request_bytes_max;    /* a write as etcd would put it into its log */
    uint32_t gateway_calls_max;  /* of the JSON gateway at the same time, a shard; 0: no gateway */
    struct worker *worker;       /* io/worker.h, for large bodies of JSON; NULL: there is none */
    int64_t warn_apply_ns;       /* what takes longer is logged; both 0: nothing is */
    int64_t warn_unary_ns;
    const char *member_name;
    const struct slice *peer_urls;
    size_t peer_url_count;
    const struct slice *client_urls;
    size_t client_url_count;
    /* Where calls are counted, of ETCD_METHOD_SLOTS slots (etcd/http/metrics.h); NULL: nowhere. */
    struct metric_set *method_counts;
    bool metrics_extensive;                   /* /metrics has histograms for each method */
    struct net_stats (*net_stats)(void *ctx); /* NULL: none are shown */
    bool (*tls_stats)(void *ctx, struct tls_stats *ret_stats); /* NULL, or false: there is none */
    void *net_ctx;
    const struct turns *turns;   /* shown; NULL: none are */
    const struct budget *budget; /* of what clients make us hold; NULL: none is shown */
    /* What others count, at the end of the page; NULL: nothing. */
    void (*more_metrics)(void *ctx, struct metric_page *page);
    void *more_metrics_ctx;
    /* HTTP: which Host fields are answered without TLS, and pages of which origins may read the
     * answers. None, or one that is "*": all. */
    const struct slice *hosts;
    size_t host_count;
    const struct slice *origins;
    size_t origin_count;
    /* The lists were given. Otherwise guarded requests are taken for our own hosts alone, and from
     * programs and pages of our own origin alone. */
    bool hosts_given, origins_given;
    bool v2;                                  /* --enable-v2 was given */
    bool pprof_wanted;                        /* --enable-pprof was given */
    struct etcd_health_counts *health_counts; /* NULL: nothing is counted */
    /* Authentication. NULL: no password can be set, and nobody can log in. */
    struct auth_issuer *issuer;
    struct worker *hasher;
    unsigned bcrypt_cost;
    bool names_from_certificates; /* a certificate's common name is a user's */
};

#define ETCD_TXN_OPS_MAX_DEFAULT ((size_t)128)
#define ETCD_REQUEST_BYTES_MAX_DEFAULT ((size_t)1536 * 1024)
/* A message may be so much longer than request_bytes_max. */
#define ETCD_MESSAGE_OVERHEAD_BYTES ((size_t)512 * 1024)

struct etcd_face;

MUST_CHECK
enum status etcd_face_new(const struct etcd_config *config, struct engine *engine,
                          struct engine_shard *shard, struct etcd_face **ret_face);
/* Must not be busy. */
void etcd_face_free(struct etcd_face *face);
DEFINE_CLEANUP(struct etcd_face *, etcd_face_free)

/* The time of the shard's turn, by which slow calls are found. Before its first connection. */
void etcd_face_set_clock(struct etcd_face *face, int64_t (*now_ns)(void *ctx), void *ctx);

/* The shard's loop, to which passwords come back when they are hashed, and bodies when they are
 * read. Before its first connection. */
void etcd_face_set_loop(struct etcd_face *face, struct loop *loop);

/* The engine still works on an operation, or the worker on a body: its shard must go on turning. */
bool etcd_face_busy(const struct etcd_face *face);

const struct grpc_services *etcd_face_services(const struct etcd_face *face);
const struct http_routes *etcd_face_routes(const struct etcd_face *face);
/* Those of --listen-metrics-urls: /metrics and the health checks. */
const struct http_routes *etcd_face_metrics_routes(const struct etcd_face *face);

#endif
