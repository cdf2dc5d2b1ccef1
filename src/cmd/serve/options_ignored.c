/*
 * Flags of etcd 3.4 and later that are accepted, so that a unit file or manifest written for etcd
 * works, and that have no effect here; and aliases of flags that have.
 */
#include "cmd/serve/options_private.h"

#define ONE_NODE "it has no effect on a single node"
#define NO_PEERS "there are no peers"
#define NO_DIALLING \
    "the server opens no connections to itself; for those to a cluster see --upstream-cert"
#define NO_DISCOVERY "Vigil is a single node and discovers no cluster"
#define NO_BBOLT "the data is not kept in bbolt"
#define OWN_STEPS "compaction paces itself"
#define NO_TRACES "tracing is not implemented"
#define NO_PROXY "there is no proxy mode"
#define V2_OF_ITS_OWN "--enable-v2 alone decides whether the v2 API is served"
#define LONG_GONE "etcd has removed it"

/* The value is parsed as in etcd, so that a wrong one is refused, and then ignored. */
#define IGNORED(flag, type, usual, why)                                           \
    {                                                                             \
        .name = flag, .kind = OPTION_##type, .fallback = usual, .ignored = (why), \
        .offset = OPTION_NOWHERE                                                  \
    }
/* Refused, because a user who sets the flag relies on its effect. */
#define REFUSED(flag, type, usual, why)                                                            \
    {                                                                                              \
        .name = flag, .kind = OPTION_##type, .fallback = usual, .ignored = (why), .refused = true, \
        .offset = OPTION_NOWHERE                                                                   \
    }
#define ALIAS(flag, of)              \
    {                                \
        .name = flag, .alias_of = of \
    }

static const struct option ignored[] = {
    IGNORED("wal-dir", TEXT, "", ONE_NODE),
    IGNORED("snapshot-count", INT, "10000", ONE_NODE),
    IGNORED("initial-election-tick-advance", BOOL, "true", ONE_NODE),
    IGNORED("max-snapshots", INT, "5", ONE_NODE),
    IGNORED("max-wals", INT, "5", ONE_NODE),
    IGNORED("raft-read-timeout", DURATION, "5s", ONE_NODE),
    IGNORED("raft-write-timeout", DURATION, "5s", ONE_NODE),
    IGNORED("pre-vote", BOOL, "true", ONE_NODE),
    IGNORED("compact-hash-check-time", DURATION, "1m0s", ONE_NODE),
    IGNORED("downgrade-check-time", DURATION, "5s", ONE_NODE),
    {
        .name = "snapshot-catchup-entries",
        .kind = OPTION_INT,
        .fallback = "5000",
        .help = "Shown in the log.",
        .ignored = ONE_NODE,
        FIELD(snapshot_catchup),
    },
    IGNORED("force-new-cluster", BOOL, "false", ONE_NODE),
    IGNORED("peer-cert-file", TEXT, "", NO_PEERS),
    IGNORED("peer-key-file", TEXT, "", NO_PEERS),
    IGNORED("peer-client-cert-auth", BOOL, "false", NO_PEERS),
    IGNORED("peer-client-cert-file", TEXT, "", NO_PEERS),
    IGNORED("peer-client-key-file", TEXT, "", NO_PEERS),
    IGNORED("peer-trusted-ca-file", TEXT, "", NO_PEERS),
    IGNORED("peer-cert-allowed-cn", LIST, "", NO_PEERS),
    IGNORED("peer-cert-allowed-hostname", LIST, "", NO_PEERS),
    IGNORED("peer-auto-tls", BOOL, "false", NO_PEERS),
    IGNORED("peer-crl-file", TEXT, "", NO_PEERS),
    IGNORED("peer-skip-client-san-verification", BOOL, "false", NO_PEERS),
    IGNORED("client-cert-file", TEXT, "", NO_DIALLING),
    IGNORED("client-key-file", TEXT, "", NO_DIALLING),
    IGNORED("memory-mlock", BOOL, "false", "the data is mapped and may be paged out"),
    IGNORED("backend-bbolt-freelist-type", TEXT, "map", NO_BBOLT),
    IGNORED("backend-batch-interval", DURATION, "0s", NO_BBOLT),
    IGNORED("backend-batch-limit", INT, "0", NO_BBOLT),
    IGNORED("compaction-batch-limit", INT, "1000", OWN_STEPS),
    IGNORED("compaction-sleep-interval", DURATION, "10ms", OWN_STEPS),
    IGNORED("socket-reuse-port", BOOL, "false", "each port has one listener"),
    IGNORED("socket-reuse-address", BOOL, "false", "it is always on"),
    IGNORED("unsafe-no-fsync", BOOL, "false", "every group of writes is synced"),
    IGNORED("enable-distributed-tracing", BOOL, "false", NO_TRACES),
    IGNORED("distributed-tracing-address", TEXT, "localhost:4317", NO_TRACES),
    IGNORED("distributed-tracing-service-name", TEXT, "etcd", NO_TRACES),
    IGNORED("distributed-tracing-instance-id", TEXT, "", NO_TRACES),
    IGNORED("distributed-tracing-sampling-rate", INT, "0", NO_TRACES),
    IGNORED("v2-deprecation", TEXT, "write-only", V2_OF_ITS_OWN),
    IGNORED("experimental-enable-v2v3", TEXT, "", V2_OF_ITS_OWN),
    IGNORED("log-package-levels", TEXT, "", "one level applies to all packages"),
    IGNORED("proxy", TEXT, "off", NO_PROXY),
    IGNORED("proxy-failure-wait", INT, "5000", NO_PROXY),
    IGNORED("proxy-refresh-interval", INT, "30000", NO_PROXY),
    IGNORED("proxy-dial-timeout", INT, "1000", NO_PROXY),
    IGNORED("proxy-write-timeout", INT, "5000", NO_PROXY),
    IGNORED("proxy-read-timeout", INT, "0", NO_PROXY),
    IGNORED("experimental-compact-hash-check-enabled", BOOL, "false", ONE_NODE),
    IGNORED("experimental-enable-lease-checkpoint", BOOL, "false", ONE_NODE),
    IGNORED("experimental-enable-lease-checkpoint-persist", BOOL, "false", ONE_NODE),
    IGNORED("experimental-txn-mode-write-with-shared-buffer", BOOL, "true", NO_BBOLT),
    IGNORED("experimental-stop-grpc-service-on-defrag", BOOL, "false",
            "defragmenting does not block clients"),
    REFUSED("discovery", TEXT, "", NO_DISCOVERY),
    REFUSED("discovery-token", TEXT, "", NO_DISCOVERY),
    REFUSED("discovery-endpoints", TEXT, "", NO_DISCOVERY),
    REFUSED("discovery-srv", TEXT, "", NO_DISCOVERY),
    IGNORED("discovery-srv-name", TEXT, "", NO_DISCOVERY),
    IGNORED("discovery-dial-timeout", DURATION, "2s", NO_DISCOVERY),
    IGNORED("discovery-request-timeout", DURATION, "5s", NO_DISCOVERY),
    IGNORED("discovery-keepalive-time", DURATION, "2s", NO_DISCOVERY),
    IGNORED("discovery-keepalive-timeout", DURATION, "6s", NO_DISCOVERY),
    IGNORED("discovery-insecure-transport", BOOL, "true", NO_DISCOVERY),
    IGNORED("discovery-insecure-skip-tls-verify", BOOL, "false", NO_DISCOVERY),
    IGNORED("discovery-cert", TEXT, "", NO_DISCOVERY),
    IGNORED("discovery-key", TEXT, "", NO_DISCOVERY),
    IGNORED("discovery-cacert", TEXT, "", NO_DISCOVERY),
    IGNORED("discovery-user", TEXT, "", NO_DISCOVERY),
    IGNORED("discovery-password", TEXT, "", NO_DISCOVERY),
    IGNORED("discovery-fallback", TEXT, "exit", NO_DISCOVERY),
    IGNORED("discovery-proxy", TEXT, "", NO_DISCOVERY),
    IGNORED("cluster-active-size", ANY, "", LONG_GONE),
    IGNORED("cluster-remove-delay", ANY, "", LONG_GONE),
    IGNORED("cluster-sync-interval", ANY, "", LONG_GONE),
    IGNORED("config", ANY, "", LONG_GONE),
    IGNORED("force", ANY, "", LONG_GONE),
    IGNORED("max-result-buffer", ANY, "", LONG_GONE),
    IGNORED("max-retry-attempts", ANY, "", LONG_GONE),
    IGNORED("peer-heartbeat-interval", ANY, "", LONG_GONE),
    IGNORED("peer-election-timeout", ANY, "", LONG_GONE),
    IGNORED("retry-interval", ANY, "", LONG_GONE),
    IGNORED("snapshot", ANY, "", LONG_GONE),
    IGNORED("v", ANY, "", LONG_GONE),
    IGNORED("vv", ANY, "", LONG_GONE),
    IGNORED("test.coverprofile", ANY, "", LONG_GONE),
    IGNORED("test.outputdir", ANY, "", LONG_GONE),
};

static const struct option aliases[] = {
    ALIAS("experimental-compact-hash-check-time", "compact-hash-check-time"),
    ALIAS("experimental-compaction-batch-limit", "compaction-batch-limit"),
    ALIAS("experimental-compaction-sleep-interval", "compaction-sleep-interval"),
    ALIAS("experimental-corrupt-check-time", "corrupt-check-time"),
    ALIAS("experimental-distributed-tracing-address", "distributed-tracing-address"),
    ALIAS("experimental-distributed-tracing-instance-id", "distributed-tracing-instance-id"),
    ALIAS("experimental-distributed-tracing-sampling-rate", "distributed-tracing-sampling-rate"),
    ALIAS("experimental-distributed-tracing-service-name", "distributed-tracing-service-name"),
    ALIAS("experimental-downgrade-check-time", "downgrade-check-time"),
    ALIAS("experimental-enable-distributed-tracing", "enable-distributed-tracing"),
    ALIAS("experimental-memory-mlock", "memory-mlock"),
    ALIAS("experimental-peer-skip-client-san-verification", "peer-skip-client-san-verification"),
    ALIAS("experimental-snapshot-catchup-entries", "snapshot-catchup-entries"),
    ALIAS("experimental-warning-apply-duration", "warning-apply-duration"),
    ALIAS("experimental-warning-unary-request-duration", "warning-unary-request-duration"),
    ALIAS("experimental-watch-progress-notify-interval", "watch-progress-notify-interval"),
    ALIAS("experimental-backend-bbolt-freelist-type", "backend-bbolt-freelist-type"),
    ALIAS("experimental-max-learners", "max-learners"),
    ALIAS("experimental-snapshot-catch-up-entries", "snapshot-catchup-entries"),
    ALIAS("log-output", "log-outputs"),
};

const struct option_group serve_ignored_options =
    GROUP("Flags of etcd without effect here", ignored);
const struct option_group serve_alias_options = GROUP("Other names", aliases);
