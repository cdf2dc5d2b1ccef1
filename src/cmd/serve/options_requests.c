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

const struct option_group serve_request_options = GROUP("Requests", requests);
const struct option_group serve_http_options = GROUP("HTTP", http);
