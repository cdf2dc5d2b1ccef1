/* Limits that etcd does not have, or not as flags. */
#include "cmd/serve/options/options_private.h"

static const struct option limits[] = {
    FLAG_INT("io-threads", serve_options, io_threads, "0",
             "The number of threads that serve connections; 0: one per core.", BETWEEN(0, 64)),
    FLAG_INT("max-connections", serve_options, max_connections, "65536",
             "The largest number of connections. Further ones are closed immediately.",
             BETWEEN(1, 1 << 24)),
    FLAG_INT(
        "max-watchers-per-stream", serve_options, max_watchers_per_stream, "100000",
        "The largest number of concurrent watches on one Watch call. Further ones are refused.",
        BETWEEN(1, 1 << 30)),
    FLAG_INT("max-watchers", serve_options, max_watchers, "10000000",
             "The largest number of concurrent watches of all clients. Further ones are refused.",
             BETWEEN(1, INT64_C(1) << 40)),
    FLAG_SIZE("max-header-bytes", serve_options, max_header_bytes, "65536",
              "The largest total size of the header fields of one HTTP/2 request, decoded.",
              BETWEEN(1024, MIB / 16)),
    FLAG_INT("max-header-fields", serve_options, max_header_fields, "128",
             "The largest number of header fields of one HTTP/2 request.", BETWEEN(16, 1024)),
    FLAG_SIZE("max-http1-header-bytes", serve_options, max_http1_header_bytes, "65536",
              "The largest size of the request line and header fields of one HTTP/1.1 request.",
              BETWEEN(1024, 16 * MIB)),
    FLAG_SIZE(
        "max-client-bytes", serve_options, max_client_bytes, "0",
        "The memory that all clients together may make the server hold: requests, intermediate "
        "results, and responses that wait to be sent. One connection gets less than half of "
        "it. 0: a quarter of the machine's memory, of the cgroup's limit, or of the "
        "address space (ulimit -v), at most 1 GiB.",
        BETWEEN(0, INT64_C(1) << 50)),
    FLAG_SIZE("pause-queued-bytes", serve_options, pause_queued_bytes, "1048576",
              "While this many response bytes wait to be sent, no more requests are read from "
              "the connection.",
              BETWEEN(4096, 65536 * MIB)),
    FLAG_SIZE("max-call-bytes", serve_options, max_call_bytes, "268435456",
              "The memory that one gRPC call may use in addition to its messages.",
              BETWEEN(1 * MIB, 65536 * MIB)),
    FLAG_SIZE("stream-window-bytes", serve_options, stream_window_bytes, "65536",
              "The HTTP/2 flow-control window of one call.", BETWEEN(65535, INT32_MAX)),
    FLAG_SIZE("connection-window-bytes", serve_options, connection_window_bytes, "1048576",
              "The HTTP/2 flow-control window of one connection.", BETWEEN(65535, INT32_MAX)),
    FLAG_DURATION(
        "handshake-timeout", serve_options, handshake_timeout_ns, "10s",
        "The time for a new connection to reveal its protocol and to finish its TLS handshake.",
        BETWEEN(1, 24 * HOUR)),
    FLAG_INT("max-tls-handshakes", serve_options, max_tls_handshakes, "2048",
             "The largest number of concurrent TLS handshakes; further clients wait.",
             BETWEEN(1, 1000000)),
    FLAG_SIZE("max-tls-handshake-bytes", serve_options, max_tls_handshake_bytes, "131072",
              "The largest number of bytes, certificates included, that a client may send in a "
              "TLS handshake.",
              BETWEEN(4096, 1048576)),
    FLAG_DURATION(
        "http1-header-timeout", serve_options, http1_header_timeout_ns, "10s",
        "The time from the first byte of an HTTP/1.1 request to the end of its header fields.",
        BETWEEN(1, 24 * HOUR)),
    FLAG_DURATION("http1-idle-timeout", serve_options, http1_idle_timeout_ns, "5m0s",
                  "The time that an HTTP/1.1 connection may stay idle between two requests.",
                  BETWEEN(1, 1000 * HOUR)),
    FLAG_DURATION("message-timeout", serve_options, message_timeout_ns, "1m0s",
                  "The time for a request message or body to arrive, from its first byte to its "
                  "last. Every 16 KiB received extend it by a second.",
                  BETWEEN(1, 1000 * HOUR)),
    FLAG_DURATION("response-stall-timeout", serve_options, response_stall_timeout_ns, "1m0s",
                  "A response is abandoned when the client reads nothing of it for this long.",
                  BETWEEN(1, 1000 * HOUR)),
    FLAG_DURATION("shutdown-timeout", serve_options, shutdown_timeout_ns, "5s",
                  "The time that calls in progress have to finish when the server stops.",
                  BETWEEN(1, 24 * HOUR)),
    FLAG_INT("reset-burst", serve_options, reset_burst, "1000",
             "The number of calls that a client may reset in a burst before its connection is "
             "closed.",
             BETWEEN(1, 1 << 30)),
    FLAG_INT("reset-rate", serve_options, reset_rate, "33",
             "The number of calls per second that a client may reset in the long run.",
             BETWEEN(1, 1 << 30)),
    FLAG_INT("settings-burst", serve_options, settings_burst, "100",
             "The number of SETTINGS frames that a client may send in a burst; after that, one "
             "per second.",
             BETWEEN(1, 1 << 30)),
    FLAG_INT("ping-strikes", serve_options, ping_strikes, "2",
             "The number of pings sent too early that are tolerated.", BETWEEN(0, 1 << 30)),
    FLAG_DURATION("ping-idle-time", serve_options, ping_idle_time_ns, "2h0m0s",
                  "The shortest interval at which a client without an open call may send pings.",
                  BETWEEN(0, 1000 * HOUR)),
};

const struct option_group serve_limit_options = GROUP("Limits of one client and of all", limits);
