#include "cmd/serve_options_rows.h"

static const struct option requests[] = {
    {
        .name = "max-txn-ops",
        .kind = OPTION_INT,
        .fallback = "128",
        .help = "Operations in one list of a transaction; nested ones share it.",
        .min = 1,
        .max = 1 << 20,
        FIELD(max_txn_ops),
    },
    {
        .name = "max-request-bytes",
        .kind = OPTION_SIZE,
        .fallback = "1572864",
        .help = "The largest write. A message may be 512 KiB longer before it is not read at all.",
        .min = 1,
        .max = 1024 * MIB,
        FIELD(max_request_bytes),
    },
    {
        .name = "max-concurrent-streams",
        .kind = OPTION_INT,
        .fallback = "32768",
        .help = "Calls under way at the same time on one connection.",
        .min = 1,
        .max = UINT32_MAX,
        FIELD(max_concurrent_streams),
    },
    {
        .name = "grpc-keepalive-min-time",
        .kind = OPTION_DURATION,
        .fallback = "5s",
        .help = "The shortest time between two pings of a client that has a call under way.",
        .min = 0,
        .max = 24 * HOUR,
        FIELD(grpc_keepalive_min_time_ns),
    },
    {
        .name = "grpc-keepalive-interval",
        .kind = OPTION_DURATION,
        .fallback = "2h0m0s",
        .help = "After so long without a byte from a client it is asked; 0: never.",
        .min = 0,
        .max = 1000 * HOUR,
        FIELD(grpc_keepalive_interval_ns),
    },
    {
        .name = "grpc-keepalive-timeout",
        .kind = OPTION_DURATION,
        .fallback = "20s",
        .help = "And so long after asking its connection is closed.",
        .min = 1,
        .max = 1000 * HOUR,
        FIELD(grpc_keepalive_timeout_ns),
    },
    {
        .name = "watch-progress-notify-interval",
        .kind = OPTION_DURATION,
        .fallback = "10m0s",
        .help = "How often a watch that asked for it is told that nothing has happened; at least "
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
        .help = "Where to take HTTP from clients, and no gRPC; --listen-client-urls then take gRPC "
                "only. Empty: both on --listen-client-urls.",
        FIELD(listen_client_http_urls),
    },
    {
        .name = "enable-grpc-gateway",
        .kind = OPTION_BOOL,
        .fallback = "true",
        .help = "Serve the methods as JSON under /v3/.",
        FIELD(enable_grpc_gateway),
    },
    {
        .name = "cors",
        .kind = OPTION_LIST,
        .fallback = "*",
        .help = "Origins of which pages in browsers may call; * or empty: all. Unless it is given, "
                "and except under the name etcd, pages are refused on loopback without TLS.",
        FIELD(cors),
    },
    {
        .name = "host-whitelist",
        .kind = OPTION_LIST,
        .fallback = "*",
        .help = "Host names under which HTTP without TLS is served; * or empty: all. Unless it is "
                "given, and except under the name etcd, on loopback only localhost, loopback "
                "addresses and the hosts of --advertise-client-urls are served.",
        FIELD(host_whitelist),
    },
};

static const struct option storage[] = {
    {
        .name = "quota-backend-bytes",
        .kind = OPTION_INT,
        .fallback = "0",
        .help = "The size of the database past which nothing is put any more, and an alarm is "
                "raised; 0: 2 GiB; negative: no limit.",
        FIELD(quota_backend_bytes),
    },
    {
        .name = "segment-bytes",
        .kind = OPTION_SIZE,
        .fallback = "67108864",
        .help = "The size of a file of the log. It is made and filled with zeros ahead of use.",
        .min = 4 * MIB,
        .max = 1024 * MIB,
        FIELD(segment_bytes),
    },
    {
        .name = "checkpoint-bytes",
        .kind = OPTION_SIZE,
        .fallback = "67108864",
        .help = "How much log is written between two checkpoints: what a start reads again.",
        .min = 1 * MIB,
        .max = 65536 * MIB,
        FIELD(checkpoint_bytes),
    },
    {
        .name = "corrupt-check-time",
        .kind = OPTION_DURATION,
        .fallback = "0s",
        .help = "How often all that is stored is read, slowly, and held to its checksums and to "
                "the index; 0: every hour.",
        .min = 0,
        .max = 10000 * HOUR,
        FIELD(corrupt_check_time_ns),
    },
    {
        .name = "experimental-initial-corrupt-check",
        .kind = OPTION_BOOL,
        .fallback = "false",
        .help = "Read all that is stored before serving, and do not start on damage. The same as "
                "--feature-gates=InitialCorruptCheck=true.",
        FIELD(initial_corrupt_check),
    },
    {
        .name = "bootstrap-defrag-threshold-megabytes",
        .kind = OPTION_INT,
        .fallback = "0",
        .help = "Defragment after a start if that would free so many megabytes; 0: do not. Clients "
                "are served meanwhile.",
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
        .help = "What --auto-compaction-retention counts: time or revisions.",
        FIELD(auto_compaction_mode),
    },
    {
        .name = "auto-compaction-retention",
        .kind = OPTION_TEXT,
        .fallback = "0",
        .help = "How much history is kept: hours or a duration like 5m; or a number of revisions. "
                "0: nothing is compacted without being asked.",
        FIELD(auto_compaction_retention),
    },
};

const struct option_group serve_request_options = GROUP("Requests", requests);
const struct option_group serve_http_options = GROUP("HTTP", http);
const struct option_group serve_storage_options = GROUP("Storage", storage);
