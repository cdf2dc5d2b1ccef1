#include "cmd/serve/config/config.h"

#include "base/version.h"
#include "base/xalloc.h"
#include "cmd/serve/config/config_kube.h"
#include "cmd/serve/config/config_tier.h"
#include "cmd/serve/config/config_upstream.h"
#include "cmd/serve/config/emulated_version.h"
#include "cmd/serve/config/feature_gates.h"
#include "cmd/serve/config/memory.h"
#include "etcd/shared/member_id.h"
#include "kube/policy/access/account_token.h"
#include "kube/request/tokens.h"

#include <sched.h>
#include <stdio.h>

enum { CONFIG_BYTES_MAX = 64 << 20, VERSION_BYTES_MAX = 32 };

#define FAREWELL_NS (500 * NS_PER_MS)
#define QUOTA_DEFAULT_BYTES (INT64_C(2) << 30)
#define WARN_UNARY_NS_DEFAULT (300 * NS_PER_MS) /* etcd's, for 0 too */
#define WATCH_PROGRESS_NS_MIN (100 * NS_PER_MS)

static void *take(struct serve_config *config, size_t bytes)
{
    return xalloc_check(arena_alloc(&config->arena, bytes), bytes);
}

/* -- Lists of URLs -- */

struct texts {
    struct slice *items;
    size_t count;
};

static struct texts split(struct serve_config *config, const char *list)
{
    struct slice item;
    struct texts texts = {0};
    for (const char *rest = list; option_list_next(&rest, &item);)
        texts.count++;
    texts.items = take(config, texts.count * sizeof(*texts.items));
    size_t i = 0;
    for (const char *rest = list; option_list_next(&rest, &item);)
        texts.items[i++] = item;
    return texts;
}

static enum status check_shown(const char *flag, struct texts texts, struct error *error)
{
    if (texts.count == 0)
        return error_set(error, ST_INVALID, "--%s needs at least one URL", flag);
    for (size_t i = 0; i < texts.count; i++) {
        struct error why;
        if (url_check(texts.items[i], &why) != ST_OK)
            return error_set(error, ST_INVALID, "--%s: %.400s", flag, why.text);
    }
    return ST_OK;
}

/* The URLs of one flag. ST_INVALID: one of them is not a URL. */
static enum status add_listen(struct serve_config *config, struct texts texts, const char *flag,
                              enum server_role role, struct error *error)
{
    struct server_config *server = &config->server;
    for (size_t i = 0; i < texts.count; i++) {
        struct error why;
        size_t at = server->listen_count;
        if (at == NET_LISTENERS_MAX)
            return error_set(error, ST_INVALID, "--%s: at most %d URLs may be given to listen on",
                             flag, NET_LISTENERS_MAX);
        if (url_parse(texts.items[i], &config->urls[at], &why) != ST_OK)
            return error_set(error, ST_INVALID, "--%s: %.400s", flag, why.text);
        config->listen_texts[at] = texts.items[i];
        config->roles[at] = role;
        server->listen_count++;
    }
    return ST_OK;
}

static bool wants_certificates(const struct serve_options *options)
{
    return options->client_cert_auth || *options->trusted_ca_file;
}

/* NULL when every user of this machine may do everything through the client URLs; otherwise the
 * reason why not. */
static const char *clients_are_kept_out(const struct serve_config *config,
                                        const struct serve_options *options)
{
    if (wants_certificates(options))
        return "clients need a certificate";
    for (size_t i = 0; i < config->server.listen_count; i++) {
        const struct url *url = &config->urls[i];
        if (config->roles[i] == SERVER_METRICS)
            continue;
        if (address_is_path(&url->address))
            return "a client URL is a Unix socket";
        if (url->secure)
            return "a client URL uses TLS";
        if (!address_is_local(&url->address))
            return "a client URL is not on loopback";
    }
    return NULL;
}

/* False without client URLs, which refuse no client then. */
static bool clients_use_sockets_alone(const struct serve_config *config)
{
    for (size_t i = 0; i < config->client_count; i++)
        if (!address_is_path(&config->urls[i].address))
            return false;
    return config->client_count > 0;
}

/* The rules in the store decide what a client may do, also one without credentials. */
static bool authorizes(const struct serve_options *options)
{
    return options->kube_authorization_mode != KUBE_AUTHORIZATION_ALWAYS_ALLOW;
}

/* True when the Kubernetes URL would admit local users that the client URLs refuse, by certificates
 * or by the mode of a Unix socket. Every local user can connect to the loopback address. */
static bool is_a_way_around(const struct serve_config *config, const struct url *url,
                            const struct serve_options *options)
{
    bool closed = wants_certificates(options) || clients_use_sockets_alone(config);
    bool asks =
        config->kube_tokens || authorizes(options) || (url->secure && wants_certificates(options));
    return closed && !asks && !address_is_path(&url->address);
}

/* An anonymous client may do everything, so anonymous access is limited to this machine, and
 * refused even there when the client URLs refuse its users. */
static enum status check_kube_urls(const struct serve_config *config,
                                   const struct serve_options *options, struct error *error)
{
    for (size_t i = 0; i < config->server.listen_count; i++) {
        const struct url *url = &config->urls[i];
        bool known = url->secure &&
                     (options->client_cert_auth || config->kube_tokens || authorizes(options));
        if (config->roles[i] != SERVER_KUBE)
            continue;
        if (!known && !address_is_local(&url->address))
            return error_set(error, ST_INVALID,
                             "--listen-kube-urls: %.*s would let everyone in who can reach it; "
                             "elsewhere than on this machine's loopback use https:// with "
                             "--client-cert-auth, --kube-token-file or "
                             "--kube-authorization-mode=RBAC",
                             SLICE_ARGS(config->listen_texts[i]));
        if (is_a_way_around(config, url, options))
            return error_set(error, ST_INVALID,
                             "--listen-kube-urls: %.*s would let every user of this machine in, "
                             "while the client URLs need a certificate or are Unix sockets; use "
                             "https:// with --client-cert-auth, or give --kube-token-file",
                             SLICE_ARGS(config->listen_texts[i]));
    }
    return ST_OK;
}

static const struct url *find_kube_url(const struct serve_config *config)
{
    for (size_t i = 0; i < config->server.listen_count; i++)
        if (config->roles[i] == SERVER_KUBE && !address_is_path(&config->urls[i].address))
            return &config->urls[i];
    return NULL;
}

static enum status set_kube_access(struct serve_config *config, const struct serve_options *options,
                                   struct error *error)
{
    struct kube_config *kube = &config->server.kube;
    if (options->kube_token_file[0])
        TRY(kube_tokens_read(options->kube_token_file, &config->kube_tokens, error));
    struct kube_account_settings accounts = {
        .issuers = options->kube_service_account_issuer,
        .audiences = options->kube_api_audiences,
        .key_files = options->kube_service_account_key_file,
        .signing_key_file = options->kube_service_account_signing_key_file,
    };
    TRY(kube_account_keys_read(&accounts, &config->kube_accounts, error));
    kube->tokens = config->kube_tokens;
    kube->accounts = config->kube_accounts;
    kube->authorization = (enum kube_authorization)options->kube_authorization_mode;
    /* Servers in front of the same cluster would each have a key of their own. */
    config->server.makes_account_key = config->server.kube_wanted && !kube->accounts &&
                                       !*options->kube_service_account_issuer &&
                                       !*options->upstream_endpoints;
    return ST_OK;
}

/* Started as etcd, the server listens only on etcd's ports unless a flag asks for more. By default
 * the Kubernetes API admits only clients that the client URLs admit; while authentication is
 * enabled every client must identify itself (kube/call/gate.h). */
static enum status set_kube(struct serve_config *config, const struct serve_options *options,
                            bool as_etcd, struct error *error)
{
    bool asked = options->kube_urls_given, wanted = asked || !as_etcd;
    bool mirrored = config_upstream_mirrors(options, SLICE_LITERAL("/registry/"));
    /* The default URL is withheld with a note. A URL that was given must be served, or the start
     * fails with the reason. */
    if (wanted && !asked)
        config->kube_withheld = mirrored ? clients_are_kept_out(config, options)
                                         : "no --upstream-prefix contains /registry/";
    else if (wanted && *options->listen_kube_urls && !mirrored)
        return error_set(error, ST_INVALID,
                         "--listen-kube-urls: the Kubernetes API needs the keys below /registry/; "
                         "give --upstream-prefix=/registry/ too");
    wanted &= !config->kube_withheld;
    struct texts kube = split(config, wanted ? options->listen_kube_urls : "");
    TRY(add_listen(config, kube, "listen-kube-urls", SERVER_KUBE, error));
    config->server.kube_wanted = kube.count > 0;
    /* If the default port is taken, the server goes without the Kubernetes API instead of
     * failing. */
    config->server.kube_optional = !options->kube_urls_given;
    config->server.kube = (struct kube_config){
        .version = VIGIL_VERSION,
        .skip_undecodable = options->kube_undecodable == SERVE_UNDECODABLE_SKIP,
        .unprivileged = !options->kube_allow_privileged,
        .owns_new = options->kube_managed_fields == SERVE_MANAGED_FIELDS_ALL,
        .garbage = options->kube_garbage_collector,
        .leaves_namespaces = !options->kube_namespace_controller,
        .furnishes = options->kube_namespace_objects,
        .counts_quotas = options->kube_quota_controller,
        .checks_policies = options->kube_policy_status,
    };
    TRY(set_kube_access(config, options, error));
    TRY(config_kube_admission(options, &config->arena, &config->server.kube.admission,
                              &config->server.kube.webhooks, error));
    TRY(config_kube_services(options, &config->arena, &config->server.kube.services, error));
    TRY(config_kube_start(find_kube_url(config), options, &config->arena,
                          &config->server.kube.start, error));
    config->server.kube_history_ns = options->kube_history_ns;
    /* Rounded up, so that a short interval is not 0, which would turn the compaction off. */
    config->server.kube.compaction_s = (options->kube_history_ns + NS_PER_S - 1) / NS_PER_S;
    config->server.kube_history_bytes = (int64_t)options->kube_history_bytes;
    return check_kube_urls(config, options, error);
}

/* In front of a kube-apiserver: its clients are identified and judged by it. */
static enum status set_tier_urls(struct serve_config *config, const struct serve_options *options,
                                 struct error *error)
{
    struct texts kube = split(config, options->listen_kube_urls);
    bool is_secure = false;
    config->server.kube.version = VIGIL_VERSION;
    TRY(add_listen(config, kube, "listen-kube-urls", SERVER_KUBE, error));
    for (size_t i = 0; i < config->server.listen_count; i++) {
        is_secure |= config->urls[i].secure;
        if (config->roles[i] == SERVER_KUBE)
            TRY(config_tier_check_url(&config->urls[i], config->listen_texts[i], error));
    }
    if (!kube.count)
        return error_set(error, ST_INVALID,
                         "--listen-kube-urls needs at least one URL in front of a kube-apiserver");
    if (!is_secure && (*options->cert_file || options->auto_tls || wants_certificates(options) ||
                       *options->kube_client_ca_file))
        return error_set(error, ST_INVALID,
                         "certificates are given, but no URL of --listen-kube-urls is https://");
    return ST_OK;
}

static enum status set_listen(struct serve_config *config, const struct serve_options *options,
                              struct error *error)
{
    bool in_front = config_tier_is_wanted(options);
    struct texts clients = split(config, in_front ? "" : options->listen_client_urls);
    struct texts http = split(config, options->listen_client_http_urls);
    struct texts metrics = split(config, options->listen_metrics_urls);
    /* A server for Kubernetes alone needs no client URL. */
    bool kube_alone = in_front || (options->kube_urls_given && *options->listen_kube_urls);
    if (clients.count == 0 && !kube_alone)
        return error_set(error, ST_INVALID, "--listen-client-urls needs at least one URL");
    config->listen_texts = take(config, NET_LISTENERS_MAX * sizeof(*config->listen_texts));
    config->urls = take(config, NET_LISTENERS_MAX * sizeof(*config->urls));
    config->roles = take(config, NET_LISTENERS_MAX * sizeof(*config->roles));
    config->server.listen = config->urls;
    config->server.roles = config->roles;
    /* As in etcd, a separate URL for HTTP leaves only gRPC on the client URLs. */
    TRY(add_listen(config, clients, "listen-client-urls", http.count ? SERVER_GRPC : SERVER_CLIENTS,
                   error));
    TRY(add_listen(config, http, "listen-client-http-urls", SERVER_HTTP, error));
    TRY(add_listen(config, metrics, "listen-metrics-urls", SERVER_METRICS, error));
    config->client_count = clients.count;

    struct texts shown = clients;
    /* Without --advertise-client-urls clients are sent to the URLs that the server listens on.
     * Their ports may be known only later (serve_config_set_client_urls). */
    config->server.shows_listen = !*options->advertise_client_urls;
    config->server.etcd.client_urls_given = *options->advertise_client_urls;
    if (!config->server.shows_listen) {
        shown = split(config, options->advertise_client_urls);
        TRY(check_shown("advertise-client-urls", shown, error));
    }
    config->server.etcd.client_urls = shown.items;
    config->server.etcd.client_url_count = shown.count;
    return ST_OK;
}

static enum status set_http(struct serve_config *config, const struct serve_options *options,
                            bool as_etcd, struct error *error)
{
    struct texts hosts = split(config, options->host_whitelist);
    struct texts origins = split(config, options->cors);
    struct etcd_config *etcd = &config->server.etcd;
    config->server.guards_pages = !as_etcd;
    etcd->hosts_given = options->hosts_given;
    etcd->origins_given = options->cors_given;
    etcd->hosts = hosts.items;
    etcd->host_count = hosts.count;
    etcd->origins = origins.items;
    etcd->origin_count = origins.count;
    etcd->pprof_wanted = options->enable_pprof;
    etcd->v2 = options->enable_v2;
    for (size_t i = 0; i < origins.count; i++) {
        struct error why;
        if (!slice_is(origins.items[i], "*") && url_check(origins.items[i], &why) != ST_OK)
            return error_set(error, ST_INVALID, "--cors: %.400s", why.text);
    }
    return ST_OK;
}

/* -- The member -- */

/* The URLs of NAME=URL,NAME=URL. Every name must be ours. */
static enum status split_cluster(struct serve_config *config, const struct serve_options *options,
                                 struct texts *ret_urls, struct error *error)
{
    struct texts members = split(config, options->initial_cluster);
    struct slice name = slice_from_text(options->name);
    for (size_t i = 0; i < members.count; i++) {
        struct slice member = members.items[i];
        const uint8_t *equals = memchr(member.ptr, '=', member.len);
        size_t name_len = equals ? (size_t)(equals - member.ptr) : member.len;
        if (!equals)
            return error_set(error, ST_INVALID, "--initial-cluster: \"%.*s\" is not NAME=URL",
                             SLICE_ARGS(member));
        /* etcd would form a cluster with the other members. Vigil has none, and must not start as
         * if it had. */
        if (!slice_equal(slice_sub(member, 0, name_len), name))
            return error_set(error, ST_INVALID,
                             "--initial-cluster names the member \"%.*s\" beside \"%s\" (--name): "
                             "Vigil is one node, so only itself may stand there",
                             (int)name_len, member.ptr, options->name);
        members.items[i] = slice_sub(member, name_len + 1, member.len - name_len - 1);
    }
    *ret_urls = members;
    return ST_OK;
}

static enum status set_member(struct serve_config *config, const struct serve_options *options,
                              struct error *error)
{
    const char *peer_flag = "initial-advertise-peer-urls";
    struct texts peers = split(config, options->initial_advertise_peer_urls);
    if (*options->initial_cluster) {
        peer_flag = "initial-cluster";
        TRY(split_cluster(config, options, &peers, error));
    }
    TRY(check_shown(peer_flag, peers, error));
    /* The ids are made from the same inputs as in etcd, so that a client which remembers them sees
     * the same cluster after a reinstallation with the same flags. */
    config->member_id =
        member_id_make(peers.items, peers.count, slice_from_text(options->initial_cluster_token));
    config->cluster_id = cluster_id_make(config->member_id);
    config->server.etcd.member_name = options->name;
    config->server.etcd.peer_urls = peers.items;
    config->server.etcd.peer_url_count = peers.count;
    return ST_OK;
}

static enum status set_version(struct serve_config *config, const struct serve_options *options,
                               struct error *error)
{
    struct emulated_version version;
    TRY(emulated_version_read(options->emulate_version, &version, error));
    char *cluster = take(config, VERSION_BYTES_MAX);
    /* As in etcd, the version of the cluster has the patch level 0. */
    snprintf(cluster, VERSION_BYTES_MAX, "%u.%u.0", version.major, version.minor);
    config->server.etcd.version = options->emulate_version;
    config->server.etcd.cluster_version = cluster;
    config->server.etcd.before_3_5 = version.minor < 5;
    return ST_OK;
}

/* -- Limits -- */

static unsigned core_count(void)
{
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof(cores), &cores) != 0)
        return 1;
    /* The mask of the scheduler is smaller than the machine in a container with a cpuset. */
    int count = CPU_COUNT(&cores);
    return count < 1 ? 1 : count > NET_SHARDS_MAX ? NET_SHARDS_MAX : (unsigned)count;
}

static void set_h2(struct h2_limits *h2, const struct serve_options *options)
{
    h2->streams_max = (uint32_t)options->max_concurrent_streams;
    h2->header_list_bytes = (uint32_t)options->max_header_bytes;
    h2->header_fields_max = (uint32_t)options->max_header_fields;
    h2->reset_burst = (uint32_t)options->reset_burst;
    h2->reset_per_s = (uint32_t)options->reset_rate;
    h2->settings_burst = (uint32_t)options->settings_burst;
    h2->stream_window = (uint32_t)options->stream_window_bytes;
    h2->connection_window = (uint32_t)options->connection_window_bytes;
    h2->ping_strikes = (uint32_t)options->ping_strikes;
    h2->ping_interval_ns = options->grpc_keepalive_min_time_ns;
    h2->ping_idle_ns = options->ping_idle_time_ns;
    h2->keepalive_ns = options->grpc_keepalive_interval_ns;
    h2->keepalive_timeout_ns = options->grpc_keepalive_timeout_ns;
    /* A client that ignores the shutdown must not delay the others. */
    h2->drain_ns =
        options->shutdown_timeout_ns < FAREWELL_NS ? options->shutdown_timeout_ns : FAREWELL_NS;
}

static void set_wire(struct wire_limits *wire, const struct serve_options *options)
{
    *wire = WIRE_LIMITS_DEFAULT;
    set_h2(&wire->h2, options);
    size_t message_bytes = options->max_request_bytes + ETCD_MESSAGE_OVERHEAD_BYTES;
    wire->grpc.receive_bytes_max = (uint32_t)message_bytes;
    /* Base64 takes a third more; the rest is for names and white space. */
    wire->http.body_bytes_max = 2 * message_bytes;
    wire->grpc.arena_bytes_max = options->max_call_bytes;
    wire->grpc.queued_bytes_soft = options->pause_queued_bytes;
    wire->grpc.message_ns = wire->http.message_ns = wire->h2.frame_ns = options->message_timeout_ns;
    wire->grpc.stall_ns = options->response_stall_timeout_ns;
    wire->http1.head_bytes_max = (uint32_t)options->max_http1_header_bytes;
    wire->http1.head_ns = options->http1_header_timeout_ns;
    wire->http1.idle_ns = options->http1_idle_timeout_ns;
    wire->http.stall_ns = options->response_stall_timeout_ns;
    wire->handshake_ns = options->handshake_timeout_ns;
}

/* The errors are etcd's where etcd has one. The contents of the files are checked when they are
 * opened. */
static enum status set_tls(struct serve_config *config, const struct serve_options *options,
                           struct error *error)
{
    struct server_tls_config *tls = &config->server.tls;
    bool optional = *options->kube_client_ca_file;
    if (optional && wants_certificates(options))
        return error_set(error, ST_INVALID,
                         "--kube-client-ca-file, which makes certificates optional, cannot be used "
                         "with --trusted-ca-file or --client-cert-auth, which require them");
    tls->options = (struct tls_options){
        .cert_file = options->cert_file,
        .key_file = options->key_file,
        .trusted_ca_file = optional ? options->kube_client_ca_file : options->trusted_ca_file,
        .client_cert_optional = optional,
        .client_cert_auth = options->client_cert_auth,
        .crl_file = options->client_crl_file,
        .allowed_cns = options->client_cert_allowed_cn,
        .allowed_hostnames = options->client_cert_allowed_hostname,
        .cipher_suites = options->cipher_suites,
    };
    tls->automatic = options->auto_tls;
    tls->automatic_years = options->self_signed_cert_validity;
    tls->limits = NET_TLS_LIMITS_DEFAULT;
    tls->limits.handshake_ns = options->handshake_timeout_ns;
    tls->limits.handshakes_max = (uint32_t)options->max_tls_handshakes;
    tls->limits.handshake_bytes = (uint32_t)options->max_tls_handshake_bytes;
    TRY(tls_version_parse(options->tls_min_version, &tls->options.min_version, error));
    TRY(tls_version_parse(options->tls_max_version, &tls->options.max_version, error));
    TRY(tls_options_check(&tls->options, error));
    bool certified = *options->cert_file || options->auto_tls;
    /* The certificate is missing only if a URL needs one: http URLs alone are served without. */
    for (size_t i = 0; i < config->server.listen_count && !certified; i++)
        if (config->server.listen[i].secure && config->server.roles[i] == SERVER_METRICS)
            return error_set(error, ST_INVALID,
                             "client TLS key/cert (--cert-file, --key-file) must be provided for "
                             "metrics secure url");
        else if (config->server.listen[i].secure)
            return error_set(error, ST_INVALID,
                             "TLS key/cert (--cert-file, --key-file) must be provided for client "
                             "url %.*s with HTTPS scheme",
                             SLICE_ARGS(config->listen_texts[i]));
    return ST_OK;
}

/* As etcd computes it: one and a half election timeouts, rounded up to whole heartbeats and then to
 * whole seconds. */
static int64_t shortest_lease_s(const struct serve_options *options)
{
    enum { MS_MAX = 50000 }; /* etcd accepts no longer timeout */
    int64_t heartbeat_ms = options->heartbeat_interval_ms,
            election_ms = options->election_timeout_ms;
    if (heartbeat_ms <= 0 || heartbeat_ms > MS_MAX || election_ms <= 0 || election_ms > MS_MAX)
        return 0; /* the default */
    int64_t shortest_ms = election_ms / heartbeat_ms * 3 / 2 * heartbeat_ms;
    return shortest_ms > 1000 ? (shortest_ms + 999) / 1000 : 1;
}

/* The text was checked when it was read. */
static bool has_gate(const struct serve_options *options, const char *name)
{
    struct feature_gate gates[FEATURE_GATES];
    struct error ignored;
    if (feature_gates_read(options->feature_gates, gates, &ignored) != ST_OK)
        return false;
    for (size_t i = 0; i < FEATURE_GATES; i++) {
        if (strcmp(gates[i].name, name) == 0)
            return gates[i].enabled;
    }
    return false;
}

static void set_engine(struct serve_config *config, const struct serve_options *options,
                       bool as_etcd)
{
    struct engine_local_options *engine = &config->server.engine;
    const char *dir = options->data_dir;
    if (!*dir && as_etcd) {
        size_t bytes = strlen(options->name) + sizeof(".etcd");
        char *named = take(config, bytes);
        snprintf(named, bytes, "%s.etcd", options->name);
        dir = named;
    } else if (!*dir) {
        dir = config_tier_is_wanted(options) ? "vigil.tier"
              : *options->upstream_endpoints ? "vigil.mirror"
                                             : "vigil.data";
    }
    engine->data_dir = dir;
    engine->segment_bytes_max = options->segment_bytes;
    engine->checkpoint_bytes = options->checkpoint_bytes;
    engine->check_interval_ns = options->corrupt_check_time_ns;
    engine->defragment_from_bytes = options->bootstrap_defrag_threshold_megabytes << 20;
    engine->check_first =
        options->initial_corrupt_check || has_gate(options, "InitialCorruptCheck");
    engine->quota_bytes =
        options->quota_backend_bytes ? options->quota_backend_bytes : QUOTA_DEFAULT_BYTES;
    /* etcd, too, sends fragments that are as large as the largest request. */
    engine->watch_fragment_bytes = options->max_request_bytes + ETCD_MESSAGE_OVERHEAD_BYTES;
    engine->watchers_per_stream_max = (unsigned)options->max_watchers_per_stream;
    engine->watchers_max = (uint64_t)options->max_watchers;
    engine->watch_progress_interval_ns = options->watch_progress_notify_interval_ns;
    if (engine->watch_progress_interval_ns < WATCH_PROGRESS_NS_MIN)
        engine->watch_progress_interval_ns = WATCH_PROGRESS_NS_MIN;
    engine->lease_ttl_min_s = shortest_lease_s(options);
    engine->member_id = config->member_id;
    engine->cluster_id = config->cluster_id;
    engine->peer_urls = config->server.etcd.peer_urls;
    engine->peer_url_count = config->server.etcd.peer_url_count;
    engine->members_lax = !options->strict_reconfig_check;
    engine->learners_max = (unsigned)options->max_learners;
}

static enum status set_compaction(struct server_config *server, const struct serve_options *options,
                                  struct error *error)
{
    server->compaction_mode = options->auto_compaction_mode == SERVE_COMPACT_REVISION
                                  ? AUTO_COMPACTION_REVISION
                                  : AUTO_COMPACTION_PERIODIC;
    enum status status = auto_compaction_parse(
        server->compaction_mode, options->auto_compaction_retention, &server->compaction_retention);
    if (status != ST_OK)
        return error_set(error, status,
                         "--auto-compaction-retention: '%.100s' is neither a number nor a duration",
                         options->auto_compaction_retention);
    return ST_OK;
}

static enum status set_all(struct serve_config *config, const struct serve_options *options,
                           bool as_etcd, struct error *error)
{
    TRY(set_listen(config, options, error));
    if (config_tier_is_wanted(options))
        TRY(set_tier_urls(config, options, error));
    else
        TRY(set_kube(config, options, as_etcd, error));
    TRY(set_tls(config, options, error));
    enum { TTL_DEFAULT_S = 300 };
    TRY(auth_token_settings_parse(options->auth_token, &config->server.auth.token, error));
    config->server.auth.simple_ttl_s =
        options->auth_token_ttl_s ? options->auth_token_ttl_s : TTL_DEFAULT_S;
    /* As in etcd, a name from a certificate counts only if every client was required to have
     * one. */
    config->server.auth.names_from_certificates = options->client_cert_auth;
    config->server.auth.bcrypt_cost = options->bcrypt_cost;
    TRY(set_member(config, options, error));
    TRY(set_version(config, options, error));
    config->server.etcd.txn_ops_max = (size_t)options->max_txn_ops;
    config->server.etcd.request_bytes_max = options->max_request_bytes;
    config->server.etcd.warn_apply_ns = options->warning_apply_duration_ns;
    config->server.etcd.warn_unary_ns = options->warning_unary_request_duration_ns
                                            ? options->warning_unary_request_duration_ns
                                            : WARN_UNARY_NS_DEFAULT;
    config->server.etcd.metrics_extensive = options->metrics == SERVE_METRICS_EXTENSIVE;
    config->server.etcd.gateway_calls_max =
        options->enable_grpc_gateway ? (uint32_t)options->max_concurrent_streams : 0;
    TRY(set_http(config, options, as_etcd, error));
    TRY(set_compaction(&config->server, options, error));
    config->server.net = NET_OPTIONS_DEFAULT;
    config->server.net.shards = options->io_threads ? (unsigned)options->io_threads : core_count();
    config->server.net.connections_max = (unsigned)options->max_connections;
    config->server.net.stall_ns = options->response_stall_timeout_ns;
    config->server.net.drain_ns = options->shutdown_timeout_ns;
    set_wire(&config->server.wire, options);
    config->server.owns_process = true;
    config->server.client_bytes_max = options->max_client_bytes
                                          ? options->max_client_bytes
                                          : memory_for_clients(memory_bytes_here());
    set_engine(config, options, as_etcd);
    config->server.clustered = *options->upstream_endpoints;
    TRY(config_upstream_check_addresses("upstream-endpoints", options->upstream_endpoints,
                                        config->urls, config->server.listen_count, error));
    TRY(config_tier_set(&config->tier, &config->arena, options, error));
    if (config->tier.server)
        TRY(config_upstream_check_addresses(
            options->upstream_in_cluster ? "upstream-in-cluster" : "upstream-kubeconfig",
            config->tier.server, config->urls, config->server.listen_count, error));
    return config_upstream_set(&config->server.cluster, &config->arena, options, error);
}

enum status serve_config_init(struct serve_config *config, const struct serve_options *options,
                              bool as_etcd, struct error *error)
{
    *config = (struct serve_config){0};
    arena_init(&config->arena, NULL, 0, CONFIG_BYTES_MAX);
    enum status status = set_all(config, options, as_etcd, error);
    if (status != ST_OK)
        serve_config_fini(config);
    return status;
}

void serve_config_set_client_urls(struct serve_config *config, const struct slice *urls)
{
    size_t count = config->server.etcd.client_url_count;
    struct slice *copies = take(config, count * sizeof(*copies));
    for (size_t i = 0; i < count; i++) {
        uint8_t *bytes = take(config, urls[i].len);
        slice_copy(bytes, urls[i]);
        copies[i] = (struct slice){bytes, urls[i].len};
    }
    config->server.etcd.client_urls = copies;
}

void serve_config_fini(struct serve_config *config)
{
    kube_tokens_free(config->kube_tokens);
    kube_account_keys_free(config->kube_accounts);
    arena_fini(&config->arena);
    *config = (struct serve_config){0};
}
