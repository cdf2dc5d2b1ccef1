/*
 * The settings of the etcd API: made once from the flags (cmd/serve/config/config.c), the same for
 * all I/O threads, and constant while the server runs.
 */
#ifndef VIGIL_ETCD_SHARED_CONFIG_H
#define VIGIL_ETCD_SHARED_CONFIG_H

#include "base/metric/metric.h"
#include "base/slice.h"
#include "net/stats.h"
#include "wire/grpc/service.h"

struct auth_issuer;
struct budget;
struct etcd_health_counts;
struct metric_page;
struct turns;
struct worker;

/* Borrowed by every struct etcd_api; outlives them. */
struct etcd_config {
    const char *version;         /* reported to clients: "3.7.0" */
    const char *cluster_version; /* "3.7.0": the same version with 0 as its last number */
    bool before_3_5;            /* the reported version is older, and so is the form of some JSON */
    size_t txn_ops_max;         /* operations in one list of a transaction */
    size_t request_bytes_max;   /* limit on the size of a write, in the encoding that etcd would put
                                   into its log */
    uint32_t gateway_calls_max; /* concurrent calls of the JSON gateway per shard; 0: no gateway */
    struct worker *worker;      /* parses large JSON bodies (io/worker.h); may be NULL */
    int64_t warn_apply_ns;      /* slower calls are logged; both 0: none are */
    int64_t warn_unary_ns;
    const char *member_name;
    const struct slice *peer_urls;
    size_t peer_url_count;
    const struct slice *client_urls;
    size_t client_url_count;
    bool client_urls_given; /* by a flag: clients reach the server there */
    /* Counters of calls, with ETCD_METHOD_SLOTS slots; NULL: calls are not counted. */
    struct metric_set *method_counts;
    bool metrics_extensive;                   /* /metrics has a histogram for each method */
    struct net_stats (*net_stats)(void *ctx); /* for /metrics; may be NULL */
    bool (*tls_stats)(void *ctx, struct tls_stats *ret_stats); /* may be NULL; false: no TLS */
    void *net_ctx;
    const struct turns *turns;   /* for /metrics; may be NULL */
    const struct budget *budget; /* memory held for clients, for /metrics; may be NULL */
    /* Appends the metrics of other layers to /metrics; may be NULL. */
    void (*more_metrics)(void *ctx, struct metric_page *page);
    void *more_metrics_ctx;
    /* Whether requests are answered as well as ever, for the health checks; otherwise why not, at
     * most ENGINE_REASON_BYTES. NULL: the engine says. */
    bool (*ready)(void *ctx, char *ret_reason);
    void *ready_ctx;
    /* HTTP: the Host fields that are accepted without TLS, and the origins whose pages may read the
     * answers. An empty list, or one that contains "*", accepts all. */
    const struct slice *hosts;
    size_t host_count;
    const struct slice *origins;
    size_t origin_count;
    /* The lists were given by flags. Otherwise guarded listeners accept only our own hosts, and
     * only programs and pages of our own origin. */
    bool hosts_given, origins_given;
    bool v2;                                  /* --enable-v2 was given */
    bool pprof_wanted;                        /* --enable-pprof was given */
    struct etcd_health_counts *health_counts; /* may be NULL */
    /* Authentication. NULL: no password can be set, and no user can log in. */
    struct auth_issuer *issuer;
    struct worker *hasher;
    unsigned bcrypt_cost;
    bool names_from_certificates; /* a certificate's common name is a user name */
};

#define ETCD_TXN_OPS_MAX_DEFAULT ((size_t)128)
#define ETCD_REQUEST_BYTES_MAX_DEFAULT ((size_t)1536 * 1024)
/* A message may be longer than request_bytes_max by this much. */
#define ETCD_MESSAGE_OVERHEAD_BYTES ((size_t)512 * 1024)

/* etcd's API has about sixty methods. */
enum { ETCD_METHODS_MAX = 96 };
/* The slots of etcd_config.method_counts: the counters of all methods, then the one of slow
 * applies. */
#define ETCD_SLOW_APPLY_SLOT ((unsigned)(ETCD_METHODS_MAX * GRPC_COUNTS))
#define ETCD_METHOD_SLOTS (ETCD_SLOW_APPLY_SLOT + 1)

#endif
