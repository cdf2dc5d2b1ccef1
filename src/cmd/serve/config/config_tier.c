#include "cmd/serve/config/config_tier.h"

#include "base/xalloc.h"
#include "cmd/serve/config/memory.h"

#include <string.h>

enum { RESOURCES_MAX = 256 };

bool config_tier_is_wanted(const struct serve_options *options)
{
    return *options->upstream_kubeconfig || options->upstream_in_cluster;
}

/* -- Flags -- */

/* Those that have an effect in front of a kube-apiserver. A new flag is refused until it is here.
 */
static const char *const works[] = {
    "upstream-kubeconfig",
    "upstream-in-cluster",
    "upstream-context",
    "upstream-resources",
    "upstream-reads",
    "upstream-rights-ttl",
    "upstream-resource-bytes",
    "upstream-mirror-bytes",
    "upstream-idle",
    "upstream-qps",
    "listen-kube-urls",
    "listen-metrics-urls",
    "kube-client-ca-file",
    "kube-history",
    "kube-history-bytes",
    "data-dir",
    "segment-bytes",
    "config-file",
    "version",
    /* TLS with clients */
    "cert-file",
    "key-file",
    "client-crl-file",
    "client-cert-allowed-cn",
    "client-cert-allowed-hostname",
    "auto-tls",
    "self-signed-cert-validity",
    "tls-min-version",
    "tls-max-version",
    "cipher-suites",
    /* Limits on connections */
    "io-threads",
    "max-connections",
    "max-concurrent-streams",
    "max-header-bytes",
    "max-header-fields",
    "max-http1-header-bytes",
    "max-client-bytes",
    "stream-window-bytes",
    "connection-window-bytes",
    "handshake-timeout",
    "max-tls-handshakes",
    "max-tls-handshake-bytes",
    "http1-header-timeout",
    "http1-idle-timeout",
    "message-timeout",
    "response-stall-timeout",
    "shutdown-timeout",
    "reset-burst",
    "reset-rate",
    "settings-burst",
    "ping-strikes",
    "ping-idle-time",
    "grpc-keepalive-min-time",
    "grpc-keepalive-interval",
    "grpc-keepalive-timeout",
    /* Logging */
    "log-level",
    "log-format",
    "log-outputs",
    "logger",
    "enable-log-rotation",
    "log-rotation-config-json",
    "debug",
};

/* Why one that does not work has been given, most likely. */
static const struct {
    const char *flag, *reason;
} reasons[] = {
    {"upstream-endpoints", "the server is in front of one other, not of two"},
    {"listen-client-urls",
     "etcd's API is not served; clients of the kube-apiserver use --listen-kube-urls"},
    {"trusted-ca-file",
     "every certificate that is accepted names a user of the kube-apiserver; if that is meant, use "
     "--kube-client-ca-file"},
    {"client-cert-auth", "certificates are optional, and those of --kube-client-ca-file"},
    {"kube-token-file", "the kube-apiserver checks the tokens of clients"},
    {"kube-authorization-mode", "the kube-apiserver decides who may do what"},
};

static bool is_given(const struct options *options, const char *name)
{
    return options_source(options, name) != OPTION_FROM_DEFAULT;
}

static bool is_working(const char *flag)
{
    for (size_t i = 0; i < COUNT_OF(works); i++)
        if (strcmp(works[i], flag) == 0)
            return true;
    return false;
}

static enum status refuse(const char *flag, struct error *error)
{
    const char *reason = "it would have no effect";
    for (size_t i = 0; i < COUNT_OF(reasons); i++)
        if (strcmp(reasons[i].flag, flag) == 0)
            reason = reasons[i].reason;
    return error_set(error, ST_INVALID,
                     "--%s cannot be used in front of a kube-apiserver (--upstream-kubeconfig, "
                     "--upstream-in-cluster): %s",
                     flag, reason);
}

enum status config_tier_check_flags(const struct options *options, bool as_etcd,
                                    struct error *error)
{
    const struct serve_options *values = options->config;
    const struct option *row;
    if (as_etcd)
        return error_set(error, ST_INVALID,
                         "a kube-apiserver is not served under the name etcd: start vigil serve");
    if (*values->upstream_kubeconfig && values->upstream_in_cluster)
        return error_set(error, ST_INVALID,
                         "--upstream-kubeconfig and --upstream-in-cluster exclude each other");
    if (values->upstream_in_cluster && is_given(options, "upstream-kubeconfig"))
        return error_set(error, ST_INVALID,
                         "--upstream-kubeconfig is empty: name the file, or leave the flag out "
                         "beside --upstream-in-cluster");
    if (values->upstream_in_cluster && is_given(options, "upstream-context"))
        return error_set(error, ST_INVALID, "--upstream-context needs --upstream-kubeconfig");
    for (size_t i = 0; i < COUNT_OF(works); i++)
        assert(options_find(options->table, slice_from_text(works[i])));
    for (size_t i = 0; (row = options_row(options->table, i)); i++)
        if (!row->alias_of && options->source[i] != OPTION_FROM_DEFAULT && !is_working(row->name))
            return refuse(row->name, error);
    return ST_OK;
}

enum status config_tier_check_url(const struct url *url, struct slice text, struct error *error)
{
    if (url->secure || address_is_local(&url->address))
        return ST_OK;
    return error_set(error, ST_INVALID,
                     "--listen-kube-urls: tokens that clients send to %.*s could be read on their "
                     "way; elsewhere than on this machine's loopback use https:// with --cert-file",
                     SLICE_ARGS(text));
}

/* -- The kube-apiserver -- */

static void *take(struct arena *arena, size_t bytes)
{
    return xalloc_check(arena_alloc(arena, bytes), bytes);
}

/* A client that is not used: it reads all files that the kubeconfig names. */
static enum status read_config(struct config_tier *tier, struct arena *arena, struct error *error)
{
    vigil_kube_options options = tier->client;
    vigil_kube *kube;
    vigil_error why;
    options.own_thread = 0;
    if (vigil_kube_new(&options, &kube, &why) != VIGIL_OK) {
        const char *file = options.in_cluster ? "" : options.kubeconfig;
        bool is_named = !*file || strstr(why.text, file);
        return error_set(error, ST_INVALID, "--upstream-%s: %s%s%.600s",
                         options.in_cluster ? "in-cluster" : "kubeconfig", is_named ? "" : file,
                         is_named ? "" : ": ", why.text);
    }
    const char *server = vigil_kube_server(kube);
    char *copy = take(arena, strlen(server) + 1);
    memcpy(copy, server, strlen(server) + 1);
    tier->server = copy;
    vigil_kube_free(kube);
    return ST_OK;
}

static enum status set_resources(struct tier_options *tier, struct arena *arena,
                                 const struct serve_options *options, struct error *error)
{
    struct slice item;
    struct slice *resources = take(arena, RESOURCES_MAX * sizeof(*resources));
    for (const char *rest = options->upstream_resources; option_list_next(&rest, &item);) {
        if (tier->resource_count == RESOURCES_MAX)
            return error_set(error, ST_INVALID, "--upstream-resources: at most %d may be given",
                             RESOURCES_MAX);
        resources[tier->resource_count++] = item;
    }
    tier->resources = resources;
    return ST_OK;
}

static enum status set_reads(struct tier_options *tier, const struct serve_options *options,
                             struct error *error)
{
    switch ((enum serve_upstream_reads)options->upstream_reads) {
    case SERVE_READS_AUTO:
    case SERVE_READS_FENCE:
        tier->reads = TIER_READS_FENCE;
        return ST_OK;
    case SERVE_READS_FORWARD:
        tier->reads = TIER_READS_FORWARD;
        return ST_OK;
    case SERVE_READS_CACHED:
        tier->reads = TIER_READS_CACHED;
        return ST_OK;
    case SERVE_READS_MIRROR:
        break;
    }
    return error_set(error, ST_INVALID,
                     "--upstream-reads: mirror is for an etcd cluster; in front of a "
                     "kube-apiserver it is fence, forward or cached");
}

enum status config_tier_set(struct config_tier *tier, struct arena *arena,
                            const struct serve_options *options, struct error *error)
{
    if (!config_tier_is_wanted(options))
        return ST_OK;
    vigil_kube_options_init(&tier->client);
    tier->client.kubeconfig = *options->upstream_kubeconfig ? options->upstream_kubeconfig : NULL;
    tier->client.in_cluster = options->upstream_in_cluster;
    tier->client.context = *options->upstream_context ? options->upstream_context : NULL;
    tier->client.calls_per_second = 0;
    tier->options = (struct tier_options){
        .client = &tier->client,
        .rights_ttl_ns = options->upstream_rights_ttl_ns,
        .collection_bytes_max = options->upstream_resource_bytes,
        .mirror_bytes_max = options->upstream_mirror_bytes ? options->upstream_mirror_bytes
                                                           : memory_bytes_here() / 2,
        .idle_ns = options->upstream_idle_ns,
        .calls_per_second = (unsigned)options->upstream_qps,
        .history_ns = options->kube_history_ns,
        .history_bytes_max = options->kube_history_bytes,
    };
    if (!options->kube_history_ns)
        return error_set(error, ST_INVALID,
                         "--kube-history: the mirror of a kube-apiserver must keep changes for "
                         "some time, such as 5m");
    TRY(set_reads(&tier->options, options, error));
    TRY(set_resources(&tier->options, arena, options, error));
    return read_config(tier, arena, error);
}
