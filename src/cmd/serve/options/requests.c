#include "cmd/serve/options/options_private.h"

static const struct option requests[] = {
    FLAG_INT("max-txn-ops", serve_options, max_txn_ops, "128",
             "The largest number of operations in one list of a transaction, including nested "
             "transactions.",
             BETWEEN(1, 1 << 20)),
    FLAG_SIZE("max-request-bytes", serve_options, max_request_bytes, "1572864",
              "The largest write request. Messages more than 512 KiB larger than this are not "
              "read at all.",
              BETWEEN(1, 1024 * MIB)),
    FLAG_INT("max-concurrent-streams", serve_options, max_concurrent_streams, "32768",
             "The largest number of concurrent calls on one connection.", BETWEEN(1, UINT32_MAX)),
    FLAG_DURATION("grpc-keepalive-min-time", serve_options, grpc_keepalive_min_time_ns, "5s",
                  "The shortest interval at which a client with an open call may send pings.",
                  BETWEEN(0, 24 * HOUR)),
    FLAG_DURATION("grpc-keepalive-interval", serve_options, grpc_keepalive_interval_ns, "2h0m0s",
                  "A client that has been silent for this long is sent a ping; 0: never.",
                  BETWEEN(0, 1000 * HOUR)),
    FLAG_DURATION("grpc-keepalive-timeout", serve_options, grpc_keepalive_timeout_ns, "20s",
                  "A connection is closed if its ping is not answered for this long.",
                  BETWEEN(1, 1000 * HOUR)),
    FLAG_DURATION(
        "watch-progress-notify-interval", serve_options, watch_progress_notify_interval_ns, "10m0s",
        "How often an idle watch that requested progress notifications gets one; at least "
        "100ms.",
        BETWEEN(0, 24 * HOUR)),
};

static const struct option http[] = {
    FLAG_LIST("listen-client-http-urls", serve_options, listen_client_http_urls, "",
              "URLs that serve only HTTP to clients; --listen-client-urls then serve only gRPC. "
              "Empty: both on --listen-client-urls."),
    FLAG_TRUE("enable-grpc-gateway", serve_options, enable_grpc_gateway,
              "Serve the gRPC methods as JSON under /v3/."),
    FLAG_LIST("cors", serve_options, cors, "*",
              "Origins whose browser pages may call the server; * or empty: all. Without this "
              "flag, and unless started under the name etcd, pages of other origins are refused "
              "on loopback without TLS."),
    FLAG_LIST("host-whitelist", serve_options, host_whitelist, "*",
              "Host names accepted in HTTP requests without TLS; * or empty: all. Without this "
              "flag, and unless started under the name etcd, requests on loopback are accepted "
              "only for localhost, loopback addresses and the hosts of --advertise-client-urls."),
};

const struct option_group serve_request_options = GROUP("Requests", requests);
const struct option_group serve_http_options = GROUP("HTTP", http);
