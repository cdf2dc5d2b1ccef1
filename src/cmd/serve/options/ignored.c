/*
 * Flags of etcd 3.4 and later that are accepted, so that a unit file or manifest written for etcd
 * works, and that have no effect here; and aliases of flags that have.
 */
#include "cmd/serve/options/options_private.h"

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

static const struct option ignored[] = {
    FLAG_IGNORED("wal-dir", TEXT, "", ONE_NODE),
    FLAG_IGNORED("snapshot-count", INT, "10000", ONE_NODE),
    FLAG_IGNORED("initial-election-tick-advance", BOOL, "true", ONE_NODE),
    FLAG_IGNORED("max-snapshots", INT, "5", ONE_NODE),
    FLAG_IGNORED("max-wals", INT, "5", ONE_NODE),
    FLAG_IGNORED("raft-read-timeout", DURATION, "5s", ONE_NODE),
    FLAG_IGNORED("raft-write-timeout", DURATION, "5s", ONE_NODE),
    FLAG_IGNORED("pre-vote", BOOL, "true", ONE_NODE),
    FLAG_IGNORED("compact-hash-check-time", DURATION, "1m0s", ONE_NODE),
    FLAG_IGNORED("downgrade-check-time", DURATION, "5s", ONE_NODE),
    FLAG_INT("snapshot-catchup-entries", serve_options, snapshot_catchup, "5000",
             "Shown in the log.", .ignored = ONE_NODE),
    FLAG_IGNORED("force-new-cluster", BOOL, "false", ONE_NODE),
    FLAG_IGNORED("peer-cert-file", TEXT, "", NO_PEERS),
    FLAG_IGNORED("peer-key-file", TEXT, "", NO_PEERS),
    FLAG_IGNORED("peer-client-cert-auth", BOOL, "false", NO_PEERS),
    FLAG_IGNORED("peer-client-cert-file", TEXT, "", NO_PEERS),
    FLAG_IGNORED("peer-client-key-file", TEXT, "", NO_PEERS),
    FLAG_IGNORED("peer-trusted-ca-file", TEXT, "", NO_PEERS),
    FLAG_IGNORED("peer-cert-allowed-cn", LIST, "", NO_PEERS),
    FLAG_IGNORED("peer-cert-allowed-hostname", LIST, "", NO_PEERS),
    FLAG_IGNORED("peer-auto-tls", BOOL, "false", NO_PEERS),
    FLAG_IGNORED("peer-crl-file", TEXT, "", NO_PEERS),
    FLAG_IGNORED("peer-skip-client-san-verification", BOOL, "false", NO_PEERS),
    FLAG_IGNORED("client-cert-file", TEXT, "", NO_DIALLING),
    FLAG_IGNORED("client-key-file", TEXT, "", NO_DIALLING),
    FLAG_IGNORED("memory-mlock", BOOL, "false", "the data is mapped and may be paged out"),
    FLAG_IGNORED("backend-bbolt-freelist-type", TEXT, "map", NO_BBOLT),
    FLAG_IGNORED("backend-batch-interval", DURATION, "0s", NO_BBOLT),
    FLAG_IGNORED("backend-batch-limit", INT, "0", NO_BBOLT),
    FLAG_IGNORED("compaction-batch-limit", INT, "1000", OWN_STEPS),
    FLAG_IGNORED("compaction-sleep-interval", DURATION, "10ms", OWN_STEPS),
    FLAG_IGNORED("socket-reuse-port", BOOL, "false", "each port has one listener"),
    FLAG_IGNORED("socket-reuse-address", BOOL, "false", "it is always on"),
    FLAG_IGNORED("unsafe-no-fsync", BOOL, "false", "every group of writes is synced"),
    FLAG_IGNORED("enable-distributed-tracing", BOOL, "false", NO_TRACES),
    FLAG_IGNORED("distributed-tracing-address", TEXT, "localhost:4317", NO_TRACES),
    FLAG_IGNORED("distributed-tracing-service-name", TEXT, "etcd", NO_TRACES),
    FLAG_IGNORED("distributed-tracing-instance-id", TEXT, "", NO_TRACES),
    FLAG_IGNORED("distributed-tracing-sampling-rate", INT, "0", NO_TRACES),
    FLAG_IGNORED("v2-deprecation", TEXT, "write-only", V2_OF_ITS_OWN),
    FLAG_IGNORED("experimental-enable-v2v3", TEXT, "", V2_OF_ITS_OWN),
    FLAG_IGNORED("log-package-levels", TEXT, "", "one level applies to all packages"),
    FLAG_IGNORED("proxy", TEXT, "off", NO_PROXY),
    FLAG_IGNORED("proxy-failure-wait", INT, "5000", NO_PROXY),
    FLAG_IGNORED("proxy-refresh-interval", INT, "30000", NO_PROXY),
    FLAG_IGNORED("proxy-dial-timeout", INT, "1000", NO_PROXY),
    FLAG_IGNORED("proxy-write-timeout", INT, "5000", NO_PROXY),
    FLAG_IGNORED("proxy-read-timeout", INT, "0", NO_PROXY),
    FLAG_IGNORED("experimental-compact-hash-check-enabled", BOOL, "false", ONE_NODE),
    FLAG_IGNORED("experimental-enable-lease-checkpoint", BOOL, "false", ONE_NODE),
    FLAG_IGNORED("experimental-enable-lease-checkpoint-persist", BOOL, "false", ONE_NODE),
    FLAG_IGNORED("experimental-txn-mode-write-with-shared-buffer", BOOL, "true", NO_BBOLT),
    FLAG_IGNORED("experimental-stop-grpc-service-on-defrag", BOOL, "false",
                 "defragmenting does not block clients"),
    FLAG_IGNORED("discovery", TEXT, "", NO_DISCOVERY, .refused = true),
    FLAG_IGNORED("discovery-token", TEXT, "", NO_DISCOVERY, .refused = true),
    FLAG_IGNORED("discovery-endpoints", TEXT, "", NO_DISCOVERY, .refused = true),
    FLAG_IGNORED("discovery-srv", TEXT, "", NO_DISCOVERY, .refused = true),
    FLAG_IGNORED("discovery-srv-name", TEXT, "", NO_DISCOVERY),
    FLAG_IGNORED("discovery-dial-timeout", DURATION, "2s", NO_DISCOVERY),
    FLAG_IGNORED("discovery-request-timeout", DURATION, "5s", NO_DISCOVERY),
    FLAG_IGNORED("discovery-keepalive-time", DURATION, "2s", NO_DISCOVERY),
    FLAG_IGNORED("discovery-keepalive-timeout", DURATION, "6s", NO_DISCOVERY),
    FLAG_IGNORED("discovery-insecure-transport", BOOL, "true", NO_DISCOVERY),
    FLAG_IGNORED("discovery-insecure-skip-tls-verify", BOOL, "false", NO_DISCOVERY),
    FLAG_IGNORED("discovery-cert", TEXT, "", NO_DISCOVERY),
    FLAG_IGNORED("discovery-key", TEXT, "", NO_DISCOVERY),
    FLAG_IGNORED("discovery-cacert", TEXT, "", NO_DISCOVERY),
    FLAG_IGNORED("discovery-user", TEXT, "", NO_DISCOVERY),
    FLAG_IGNORED("discovery-password", TEXT, "", NO_DISCOVERY),
    FLAG_IGNORED("discovery-fallback", TEXT, "exit", NO_DISCOVERY),
    FLAG_IGNORED("discovery-proxy", TEXT, "", NO_DISCOVERY),
    FLAG_IGNORED("cluster-active-size", ANY, "", LONG_GONE),
    FLAG_IGNORED("cluster-remove-delay", ANY, "", LONG_GONE),
    FLAG_IGNORED("cluster-sync-interval", ANY, "", LONG_GONE),
    FLAG_IGNORED("config", ANY, "", LONG_GONE),
    FLAG_IGNORED("force", ANY, "", LONG_GONE),
    FLAG_IGNORED("max-result-buffer", ANY, "", LONG_GONE),
    FLAG_IGNORED("max-retry-attempts", ANY, "", LONG_GONE),
    FLAG_IGNORED("peer-heartbeat-interval", ANY, "", LONG_GONE),
    FLAG_IGNORED("peer-election-timeout", ANY, "", LONG_GONE),
    FLAG_IGNORED("retry-interval", ANY, "", LONG_GONE),
    FLAG_IGNORED("snapshot", ANY, "", LONG_GONE),
    FLAG_IGNORED("v", ANY, "", LONG_GONE),
    FLAG_IGNORED("vv", ANY, "", LONG_GONE),
    FLAG_IGNORED("test.coverprofile", ANY, "", LONG_GONE),
    FLAG_IGNORED("test.outputdir", ANY, "", LONG_GONE),
};

static const struct option aliases[] = {
    FLAG_ALIAS("experimental-compact-hash-check-time", "compact-hash-check-time"),
    FLAG_ALIAS("experimental-compaction-batch-limit", "compaction-batch-limit"),
    FLAG_ALIAS("experimental-compaction-sleep-interval", "compaction-sleep-interval"),
    FLAG_ALIAS("experimental-corrupt-check-time", "corrupt-check-time"),
    FLAG_ALIAS("experimental-distributed-tracing-address", "distributed-tracing-address"),
    FLAG_ALIAS("experimental-distributed-tracing-instance-id", "distributed-tracing-instance-id"),
    FLAG_ALIAS("experimental-distributed-tracing-sampling-rate",
               "distributed-tracing-sampling-rate"),
    FLAG_ALIAS("experimental-distributed-tracing-service-name", "distributed-tracing-service-name"),
    FLAG_ALIAS("experimental-downgrade-check-time", "downgrade-check-time"),
    FLAG_ALIAS("experimental-enable-distributed-tracing", "enable-distributed-tracing"),
    FLAG_ALIAS("experimental-memory-mlock", "memory-mlock"),
    FLAG_ALIAS("experimental-peer-skip-client-san-verification",
               "peer-skip-client-san-verification"),
    FLAG_ALIAS("experimental-snapshot-catchup-entries", "snapshot-catchup-entries"),
    FLAG_ALIAS("experimental-warning-apply-duration", "warning-apply-duration"),
    FLAG_ALIAS("experimental-warning-unary-request-duration", "warning-unary-request-duration"),
    FLAG_ALIAS("experimental-watch-progress-notify-interval", "watch-progress-notify-interval"),
    FLAG_ALIAS("experimental-backend-bbolt-freelist-type", "backend-bbolt-freelist-type"),
    FLAG_ALIAS("experimental-max-learners", "max-learners"),
    FLAG_ALIAS("experimental-snapshot-catch-up-entries", "snapshot-catchup-entries"),
    FLAG_ALIAS("log-output", "log-outputs"),
};

const struct option_group serve_ignored_options =
    GROUP("Flags of etcd without effect here", ignored);
const struct option_group serve_alias_options = GROUP("Other names", aliases);
