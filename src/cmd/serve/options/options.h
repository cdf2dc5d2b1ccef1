/*
 * The flags of `vigil serve`, and of the same program started as `etcd`: one table. etcd's flags
 * keep their names and defaults; a row with a reason for being ignored has no effect. Limits that
 * etcd does not have are a group of their own.
 */
#ifndef VIGIL_CMD_SERVE_OPTIONS_OPTIONS_H
#define VIGIL_CMD_SERVE_OPTIONS_OPTIONS_H

#include "base/options/options.h"
#include "cmd/serve/options/choices.h"

#define SERVE_KUBE_URL_DEFAULT "http://127.0.0.1:8001"

struct serve_options {
    /* Member */
    const char *name;
    const char *data_dir; /* "": derived from the name */
    const char *listen_client_urls;
    const char *listen_client_http_urls; /* "": listen_client_urls serve HTTP too */
    const char *listen_metrics_urls;
    const char *advertise_client_urls; /* "": where it listens */
    const char *listen_peer_urls;
    const char *initial_advertise_peer_urls;
    const char *initial_cluster; /* "": name=initial_advertise_peer_urls */
    const char *initial_cluster_token;
    bool strict_reconfig_check;
    int64_t max_learners;
    int initial_cluster_state;
    const char *emulate_version;
    const char *config_file, *feature_gates;
    int64_t snapshot_catchup;
    int64_t heartbeat_interval_ms, election_timeout_ms;
    bool version; /* print it and exit */

    /* Requests */
    int64_t max_txn_ops, max_concurrent_streams;
    uint64_t max_request_bytes;
    int64_t grpc_keepalive_min_time_ns, grpc_keepalive_interval_ns, grpc_keepalive_timeout_ns;
    int64_t watch_progress_notify_interval_ns;
    bool enable_grpc_gateway;
    const char *cors;           /* "" and "*": all */
    const char *host_whitelist; /* "" and "*": all */
    bool cors_given, hosts_given;
    int64_t warning_apply_duration_ns, warning_unary_request_duration_ns;

    /* Kubernetes API */
    const char *listen_kube_urls, *kube_admission_control_config_file;
    const char *kube_token_file, *kube_client_ca_file, *kube_api_audiences;
    const char *kube_service_account_issuer, *kube_service_account_key_file;
    const char *kube_service_account_signing_key_file, *kube_advertise_address;
    const char *kube_service_cluster_ip_range, *kube_service_node_port_range;
    bool kube_garbage_collector, kube_namespace_controller, kube_namespace_objects, kube_bootstrap;
    bool kube_allow_privileged, kube_quota_controller, kube_policy_status;
    bool kube_urls_given;        /* not a flag: listen_kube_urls was given */
    int kube_authorization_mode; /* enum kube_authorization */
    const char *kube_enable_admission_plugins, *kube_disable_admission_plugins;
    int kube_undecodable, kube_managed_fields; /* enum serve_undecodable, serve_managed_fields */
    int64_t kube_history_ns;
    size_t kube_history_bytes;

    /* In front of an etcd cluster */
    const char *upstream_endpoints; /* "": the server stores everything itself */
    const char *upstream_cacert, *upstream_cert, *upstream_key, *upstream_server_name;
    bool upstream_insecure_skip_tls_verify;
    const char *upstream_user, *upstream_password_file, *upstream_prefix;
    int64_t upstream_max_lag;
    int upstream_reads; /* enum serve_upstream_reads */

    /* In front of a kube-apiserver, with its kubeconfig or in its cluster */
    const char *upstream_kubeconfig, *upstream_context, *upstream_resources;
    bool upstream_in_cluster;
    int64_t upstream_rights_ttl_ns, upstream_idle_ns, upstream_qps;
    uint64_t upstream_resource_bytes, upstream_mirror_bytes; /* 0: none; half of the memory */

    /* Storage */
    int64_t quota_backend_bytes;
    uint64_t segment_bytes;
    uint64_t checkpoint_bytes;
    int64_t corrupt_check_time_ns;
    bool initial_corrupt_check;
    int64_t bootstrap_defrag_threshold_megabytes;
    int auto_compaction_mode; /* enum serve_compaction_mode */
    const char *auto_compaction_retention;

    /* Security: TLS with clients */
    const char *cert_file;
    const char *key_file;
    bool client_cert_auth;
    const char *trusted_ca_file;
    const char *client_crl_file;
    const char *client_cert_allowed_cn;
    const char *client_cert_allowed_hostname;
    bool auto_tls;
    int64_t self_signed_cert_validity; /* years */
    const char *tls_min_version, *tls_max_version;
    const char *cipher_suites; /* Go's names, which are the standard's */
    /* Security: users */
    const char *auth_token;
    int64_t auth_token_ttl_s;
    int64_t bcrypt_cost;

    /* Limits of our own */
    int64_t io_threads; /* 0: one for each core */
    int64_t max_connections;
    bool connections_given; /* not a flag: max_connections was given */
    uint64_t max_header_bytes;
    int64_t max_header_fields;
    int64_t max_watchers_per_stream;
    int64_t max_watchers;
    uint64_t max_http1_header_bytes;
    uint64_t max_client_bytes; /* 0: derived from the memory of the machine */
    uint64_t pause_queued_bytes;
    uint64_t max_call_bytes;
    uint64_t stream_window_bytes;
    uint64_t connection_window_bytes;
    int64_t handshake_timeout_ns;
    int64_t max_tls_handshakes;
    uint64_t max_tls_handshake_bytes;
    int64_t http1_header_timeout_ns;
    int64_t http1_idle_timeout_ns;
    int64_t message_timeout_ns;
    int64_t response_stall_timeout_ns;
    int64_t shutdown_timeout_ns;
    int64_t reset_burst;
    int64_t reset_rate;
    int64_t settings_burst;
    int64_t ping_strikes;
    int64_t ping_idle_time_ns;

    /* Logging */
    int log_level, log_format; /* the latter is enum serve_log_format */
    const char *log_outputs;
    int logger; /* the same for all */
    bool enable_log_rotation;
    const char *log_rotation_config_json;
    bool debug; /* log_level debug */

    /* Monitoring */
    int metrics; /* enum serve_metrics_detail */
    bool enable_pprof, enable_v2;
};

/* Sets the fields that say whether a flag was given, after all flags have been read. */
void serve_options_note_given(const struct options *options, struct serve_options *values);

/* vigil serve; etcd; kube-apiserver, see cmd/names/apiserver.h */
extern const struct options_table serve_table, serve_etcd_table, serve_apiserver_table;

#endif
