#include "cmd/serve/announce/announce.h"

#include "base/log/log.h"
#include "base/version.h"
#include "cmd/serve/announce/kubeconfig.h"

#include <stdio.h>
#include <unistd.h>

enum { ARGUMENTS_SHOWN_MAX = 64 };

/* The flag of which this word is the whole or the beginning; NULL: it is not a flag. */
static const struct option *flag_of(const char *word)
{
    const char *name = word + strspn(word, "-");
    /* Like Go's flags, ours may begin with one dash or two. */
    if (name == word || name - word > 2)
        return NULL;
    return options_find(&serve_table, slice_of(name, strcspn(name, "=")));
}

void announce_arguments(const char *program, int count, char *const *args)
{
    struct slice shown[ARGUMENTS_SHOWN_MAX];
    size_t n = 0;
    bool hides_next = false;
    shown[n++] = slice_from_text(program);
    for (int i = 0; i < count && n < ARGUMENTS_SHOWN_MAX; i++) {
        /* A secret may be the next word (--flag SECRET) or a part of this one (--flag=SECRET). */
        const struct option *flag = hides_next ? NULL : flag_of(args[i]);
        bool hides = hides_next || (flag && flag->secret && strchr(args[i], '='));
        shown[n++] = slice_from_text(hides ? OPTION_SECRET_SHOWN : args[i]);
        hides_next = flag && flag->secret && !hides;
    }
    log_info("Running: ", LOG_SLICES("args", shown, n));
}

/* The port of a URL with port 0 is known only once the server listens. */
static size_t known_client_urls(const struct server_config *server)
{
    for (size_t i = 0; server->shows_listen && i < server->etcd.client_url_count; i++) {
        const struct address *address = &server->listen[i].address;
        if (!address_is_path(address) && address_port(address) == 0)
            return 0;
    }
    return server->etcd.client_url_count;
}

static void announce_tier(const struct serve_config *config, const struct serve_options *options)
{
    static const char *const reads[] = {[TIER_READS_FENCE] = "fence",
                                        [TIER_READS_FORWARD] = "forward",
                                        [TIER_READS_CACHED] = "cached"};
    log_info("starting in front of a kube-apiserver", LOG_TEXT("vigil-version", VIGIL_VERSION),
             LOG_TEXT("upstream", config->tier.server),
             LOG_LIST("upstream-resources", options->upstream_resources),
             LOG_TEXT("upstream-reads", reads[config->tier.options.reads]),
             LOG_U64("io-threads", config->server.net.shards),
             LOG_TEXT("data-dir", config->server.engine.data_dir));
}

void announce_start(const struct serve_config *config, const struct serve_options *options)
{
    const struct server_config *server = &config->server;
    const char *dir = server->engine.data_dir;
    char format[4096];
    snprintf(format, sizeof(format), "%s/FORMAT", dir);
    bool initialized = access(format, F_OK) == 0;
    /* The lines below are those of an etcd member, which a server in front of a cluster is not. */
    if (server->clustered) {
        log_info("starting in front of an etcd cluster", LOG_TEXT("vigil-version", VIGIL_VERSION),
                 LOG_LIST("upstream-endpoints", options->upstream_endpoints),
                 LOG_LIST("upstream-prefix", options->upstream_prefix),
                 LOG_TEXT("upstream-reads",
                          options->upstream_reads == SERVE_READS_FORWARD ? "forward" : "mirror"),
                 LOG_U64("io-threads", server->net.shards),
                 LOG_TEXT("data-dir", server->engine.data_dir));
        return;
    }
    if (server->face) {
        announce_tier(config, options);
        return;
    }
    /* The defaults of the flags are etcd's, but listeners on loopback are stricter by themselves.
     */
    bool guards = server->guards_pages;
    const char *cors = guards && !options->cors_given
                           ? "on loopback without TLS only the server's own origin; elsewhere *"
                           : options->cors;
    const char *hosts = guards && !options->hosts_given
                            ? "on loopback without TLS only local names and advertised hosts; "
                              "elsewhere *"
                            : options->host_whitelist;
    if (!*options->data_dir)
        log_warn("'data-dir' was empty; using default", LOG_TEXT("data-dir", dir));
    log_info(initialized ? "server has already been initialized"
                         : "Initialize and start etcd server",
             LOG_TEXT("data-dir", dir), LOG_TEXT("dir-type", initialized ? "member" : "empty"));
    log_info("configuring client listeners",
             LOG_SLICES("listen-client-urls", config->listen_texts, config->client_count));
    log_info(
        "starting an etcd server", LOG_TEXT("etcd-version", server->etcd.version),
        LOG_TEXT("vigil-version", VIGIL_VERSION), LOG_U64("io-threads", server->net.shards),
        LOG_BOOL("member-initialized", initialized), LOG_TEXT("name", server->etcd.member_name),
        LOG_TEXT("data-dir", dir), LOG_I64("snapshot-catchup-entries", options->snapshot_catchup),
        LOG_SLICES("initial-advertise-peer-urls", server->etcd.peer_urls,
                   server->etcd.peer_url_count),
        LOG_SLICES("advertise-client-urls", server->etcd.client_urls, known_client_urls(server)),
        LOG_SLICES("listen-client-urls", config->listen_texts, config->client_count),
        LOG_LIST("listen-metrics-urls", options->listen_metrics_urls), LOG_LIST("cors", cors),
        LOG_LIST("host-whitelist", hosts),
        LOG_TEXT("initial-cluster-token", options->initial_cluster_token),
        LOG_I64("quota-backend-bytes", server->engine.quota_bytes),
        LOG_U64("max-request-bytes", options->max_request_bytes),
        LOG_I64("max-concurrent-streams", options->max_concurrent_streams),
        LOG_TEXT("auto-compaction-mode",
                 options->auto_compaction_mode == SERVE_COMPACT_REVISION ? "revision" : "periodic"),
        LOG_TEXT("auto-compaction-retention", options->auto_compaction_retention),
        LOG_TEXT("feature-gates", options->feature_gates));
}

static void announce_listener(const struct url *bound, enum server_role role)
{
    static const char *const traffic[] = {
        [SERVER_CLIENTS] = "grpc+http", [SERVER_GRPC] = "grpc", [SERVER_HTTP] = "http"};
    char text[URL_TEXT_BYTES];
    url_format(bound, text);
    const char *address = strstr(text, "://");
    if (role == SERVER_METRICS)
        log_info("serving metrics", LOG_TEXT("address", text));
    else if (role == SERVER_KUBE)
        log_info("serving the Kubernetes API", LOG_TEXT("address", text));
    else
        log_info(bound->secure ? "serving client traffic securely"
                               : "serving client traffic insecurely; this is strongly discouraged!",
                 LOG_TEXT("traffic", traffic[role]),
                 LOG_TEXT("address", address ? address + 3 : text));
}

static void announce_member(const struct serve_config *config, struct server *server,
                            const char *cluster_version)
{
    const struct etcd_config *etcd = &config->server.etcd;
    struct engine_identity identity = engine_identity_get(server_engine(server));
    log_info("starting etcd server", LOG_HEX("local-member-id", identity.member_id),
             LOG_TEXT("local-server-version", etcd->version),
             LOG_HEX("cluster-id", identity.cluster_id),
             LOG_TEXT("cluster-version", cluster_version));
    log_info("now serving peer/client/metrics", LOG_HEX("local-member-id", identity.member_id),
             LOG_SLICES("advertise-client-urls", etcd->client_urls, etcd->client_url_count),
             LOG_SLICES("listen-client-urls", config->listen_texts, config->client_count));
    log_info("published local member to cluster through raft",
             LOG_HEX("local-member-id", identity.member_id),
             LOG_TEXT("local-member-name", etcd->member_name),
             LOG_HEX("cluster-id", identity.cluster_id));
}

static void announce_etcd(const struct serve_config *config, struct server *server)
{
    const struct etcd_config *etcd = &config->server.etcd;
    char short_version[16];
    snprintf(short_version, sizeof(short_version), "%.*s",
             (int)(strrchr(etcd->cluster_version, '.') - etcd->cluster_version),
             etcd->cluster_version);
    if (!config->server.clustered) /* whose ids are not known yet */
        announce_member(config, server, short_version);
    log_info("enabled capabilities for version", LOG_TEXT("cluster-version", short_version));
    log_info("grpc service status changed", LOG_TEXT("service", ""), LOG_TEXT("status", "SERVING"));
}

void announce_ready(const struct serve_config *config, struct server *server,
                    const char *kubeconfig)
{
    if (!config->server.face)
        announce_etcd(config, server);
    log_info("ready to serve client requests");
    for (size_t i = 0; i < config->server.listen_count; i++)
        if (server_bound(server, i))
            announce_listener(server_bound(server, i), config->server.roles[i]);
    if (kubeconfig && kubeconfig_lacks_certificate(config, server))
        log_warn("wrote a kubeconfig without a client certificate, which the server requires: add "
                 "one to its user, or give it to kubectl (--client-certificate, --client-key)",
                 LOG_TEXT("file", kubeconfig));
    else if (kubeconfig)
        log_info("wrote a kubeconfig", LOG_TEXT("file", kubeconfig));
}

static void announce_end(const char *message, const struct serve_config *config)
{
    const struct etcd_config *etcd = &config->server.etcd;
    if (config->server.face) {
        log_info(message, LOG_TEXT("data-dir", config->server.engine.data_dir));
        return;
    }
    log_info(message, LOG_TEXT("name", etcd->member_name),
             LOG_TEXT("data-dir", config->server.engine.data_dir),
             LOG_SLICES("advertise-peer-urls", etcd->peer_urls, etcd->peer_url_count),
             LOG_SLICES("advertise-client-urls", etcd->client_urls, etcd->client_url_count));
}

void announce_closing(const struct serve_config *config)
{
    announce_end(config->server.face ? "closing the server" : "closing etcd server", config);
}

void announce_closed(const struct serve_config *config)
{
    announce_end(config->server.face ? "closed the server" : "closed etcd server", config);
}
