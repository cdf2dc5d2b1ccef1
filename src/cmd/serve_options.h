/*
 * The flags of `vigil serve`, and of the same program started as `etcd`: one table. etcd's flags
 * keep their names and defaults; limits that etcd does not have follow in a group of their own.
 */
#ifndef VIGIL_CMD_SERVE_OPTIONS_H
#define VIGIL_CMD_SERVE_OPTIONS_H

#include "base/options.h"

enum serve_log_format { SERVE_LOG_AUTO, SERVE_LOG_JSON, SERVE_LOG_CONSOLE };

struct serve_options {
    /* Member */
    const char *name;
    const char *data_dir; /* "": made from the name */
    const char *listen_client_urls;
    const char *advertise_client_urls; /* "": where it listens */
    const char *listen_peer_urls;
    const char *initial_advertise_peer_urls;
    const char *initial_cluster; /* "": name=initial_advertise_peer_urls */
    const char *initial_cluster_token;
    int initial_cluster_state;
    const char *emulate_version;
    bool version; /* print it and exit */

    /* Requests */
    int64_t max_txn_ops;
    uint64_t max_request_bytes;
    int64_t max_concurrent_streams;
    int64_t grpc_keepalive_min_time_ns;
    int64_t grpc_keepalive_interval_ns;
    int64_t grpc_keepalive_timeout_ns;
    int64_t watch_progress_notify_interval_ns;

    /* Storage */
    int64_t quota_backend_bytes;
    uint64_t segment_bytes;
    uint64_t checkpoint_bytes;

    /* Limits of our own */
    int64_t io_threads; /* 0: one for each core */
    int64_t max_connections;
    uint64_t max_header_bytes;
    int64_t max_header_fields;
    int64_t max_watchers_per_stream;
    uint64_t max_http1_header_bytes;
    uint64_t max_queued_bytes;
    uint64_t pause_queued_bytes;
    uint64_t max_unfinished_bytes;
    uint64_t max_call_bytes;
    uint64_t stream_window_bytes;
    uint64_t connection_window_bytes;
    int64_t handshake_timeout_ns;
    int64_t http1_header_timeout_ns;
    int64_t http1_idle_timeout_ns;
    int64_t response_stall_timeout_ns;
    int64_t shutdown_timeout_ns;
    int64_t reset_burst;
    int64_t reset_rate;
    int64_t settings_burst;
    int64_t ping_strikes;
    int64_t ping_idle_time_ns;

    /* Logging */
    int log_level;
    int log_format; /* enum serve_log_format */
    const char *log_outputs;

    /* Flags of etcd that are taken and not used end here. */
    const char *unused_text;
    bool unused_bool;
};

extern const struct options_table serve_table;      /* vigil serve */
extern const struct options_table serve_etcd_table; /* etcd */

/*
 * What became of a flag that has no effect here: NULL for one that has; else why, and whether the
 * server must not start because somebody relies on it.
 */
const char *serve_unused_reason(const char *flag, bool *ret_refused);

#endif
