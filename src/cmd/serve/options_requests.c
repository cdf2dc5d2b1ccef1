#include "cmd/serve/options_private.h"

static const struct option requests[] = {
    {
        .name = "max-txn-ops",
        .kind = OPTION_INT,
        .fallback = "128",
        .help = "The largest number of operations in one list of a transaction, including nested "
                "transactions.",
        .min = 1,
        .max = 1 << 20,
        FIELD(max_txn_ops),
    },
    {
        .name = "max-request-bytes",
        .kind = OPTION_SIZE,
        .fallback = "1572864",
        .help = "The largest write request. Messages more than 512 KiB larger than this are not "
                "read at all.",
        .min = 1,
        .max = 1024 * MIB,
        FIELD(max_request_bytes),
    },
    {
        .name = "max-concurrent-streams",
        .kind = OPTION_INT,
        .fallback = "32768",
        .help = "The largest number of concurrent calls on one connection.",
        .min = 1,
        .max = UINT32_MAX,
        FIELD(max_concurrent_streams),
    },
    {
        .name = "grpc-keepalive-min-time",
        .kind = OPTION_DURATION,
        .fallback = "5s",
        .help = "The shortest interval at which a client with an open call may send pings.",
        .min = 0,
        .max = 24 * HOUR,
        FIELD(grpc_keepalive_min_time_ns),
    },
    {
        .name = "grpc-keepalive-interval",
        .kind = OPTION_DURATION,
        .fallback = "2h0m0s",
        .help = "A client that has been silent for this long is sent a ping; 0: never.",
        .min = 0,
        .max = 1000 * HOUR,
        FIELD(grpc_keepalive_interval_ns),
    },
    {
        .name = "grpc-keepalive-timeout",
        .kind = OPTION_DURATION,
        .fallback = "20s",
        .help = "A connection is closed if its ping is not answered for this long.",
        .min = 1,
        .max = 1000 * HOUR,
        FIELD(grpc_keepalive_timeout_ns),
    },
    {
        .name = "watch-progress-notify-interval",
        .kind = OPTION_DURATION,
        .fallback = "10m0s",
        .help = "How often an idle watch that requested progress notifications gets one; at least "
                "100ms.",
        .min = 0,
        .max = 24 * HOUR,
        FIELD(watch_progress_notify_interval_ns),
    },
};

static const struct option http[] = {
    {
        .name = "listen-client-http-urls",
        .kind = OPTION_LIST,
        .fallback = "",
        .help = "URLs that serve only HTTP to clients; --listen-client-urls then serve only gRPC. "
                "Empty: both on --listen-client-urls.",
        FIELD(listen_client_http_urls),
    },
    {
        .name = "enable-grpc-gateway",
        .kind = OPTION_BOOL,
        .fallback = "true",
        .help = "Serve the gRPC methods as JSON under /v3/.",
        FIELD(enable_grpc_gateway),
    },
    {
        .name = "cors",
        .kind = OPTION_LIST,
        .fallback = "*",
        .help = "Origins whose browser pages may call the server; * or empty: all. Without this "
                "flag, and unless started under the name etcd, pages of other origins are refused "
                "on loopback without TLS.",
        FIELD(cors),
    },
    {
        .name = "host-whitelist",
        .kind = OPTION_LIST,
        .fallback = "*",
        .help = "Host names accepted in HTTP requests without TLS; * or empty: all. Without this "
                "flag, and unless started under the name etcd, requests on loopback are accepted "
                "only for localhost, loopback addresses and the hosts of --advertise-client-urls.",
        FIELD(host_whitelist),
    },
};

static const struct option storage[] = {
    {
        .name = "quota-backend-bytes",
        .kind = OPTION_INT,
        .fallback = "0",
        .help = "The database size above which puts are refused and an alarm is raised; 0: 2 GiB; "
                "negative: no limit.",
        FIELD(quota_backend_bytes),
    },
    {
        .name = "segment-bytes",
        .kind = OPTION_SIZE,
        .fallback = "67108864",
        .help = "The size of one log file. Files are created and filled with zeros ahead of use.",
        .min = 4 * MIB,
        .max = 1024 * MIB,
        FIELD(segment_bytes),
    },
    {
        .name = "checkpoint-bytes",
        .kind = OPTION_SIZE,
        .fallback = "67108864",
        .help = "How much log is written between two checkpoints. A start replays at most about "
                "this much.",
        .min = 1 * MIB,
        .max = 65536 * MIB,
        FIELD(checkpoint_bytes),
    },
    {
        .name = "corrupt-check-time",
        .kind = OPTION_DURATION,
        .fallback = "0s",
        .help = "How often all stored data is read slowly and compared with its checksums and with "
                "the index; 0: every hour.",
        .min = 0,
        .max = 10000 * HOUR,
        FIELD(corrupt_check_time_ns),
    },
    {
        .name = "experimental-initial-corrupt-check",
        .kind = OPTION_BOOL,
        .fallback = "false",
        .help = "Read all stored data before serving, and refuse to start if any is damaged. The "
                "same as --feature-gates=InitialCorruptCheck=true.",
        FIELD(initial_corrupt_check),
    },
    {
        .name = "bootstrap-defrag-threshold-megabytes",
        .kind = OPTION_INT,
        .fallback = "0",
        .help = "Defragment after the start if that would free at least this many megabytes; 0: "
                "never. Clients are served in the meantime.",
        .min = 0,
        .max = 1 << 30,
        FIELD(bootstrap_defrag_threshold_megabytes),
    },
    {
        .name = "experimental-bootstrap-defrag-threshold-megabytes",
        .alias_of = "bootstrap-defrag-threshold-megabytes",
    },
    {
        .name = "auto-compaction-mode",
        .kind = OPTION_ENUM,
        .choices = "periodic|revision",
        .fallback = "periodic",
        .help = "The unit of --auto-compaction-retention: time or revisions.",
        FIELD(auto_compaction_mode),
    },
    {
        .name = "auto-compaction-retention",
        .kind = OPTION_TEXT,
        .fallback = "0",
        .help = "How much history to keep: hours, a duration such as 5m, or a number of revisions. "
                "0: no automatic compaction.",
        FIELD(auto_compaction_retention),
    },
};

const struct option_group serve_request_options = GROUP("Requests", requests);
const struct option_group serve_http_options = GROUP("HTTP", http);
const struct option_group serve_storage_options = GROUP("Storage", storage);
