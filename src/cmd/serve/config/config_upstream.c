#include "cmd/serve/config/config_upstream.h"

#include "base/log/log.h"
#include "base/xalloc.h"
#include "cmd/serve/config/config_tier.h"
#include "io/whole_file.h"

#include <string.h>

enum { PASSWORD_BYTES_MAX = 4096, PREFIXES_MAX = 64 };

/* -- Flags that make no sense together -- */

struct clash {
    const char *flag, *reason;
    bool refused; /* its user relies on it */
};

#define COMPACTS "the cluster compacts itself: set it on the members"
#define MEMBERS "Vigil is not a member of the cluster"
#define USERS "users and tokens are the cluster's"
#define STORES "the cluster stores the data: set it on the members"
#define DISCARDS "the mirror can be thrown away"
#define OF_TIER "it is for --upstream-kubeconfig and --upstream-in-cluster"

static const struct clash clashes[] = {
    {"enable-v2", "the v2 API is not served in front of a cluster", true},
    {"auto-compaction-retention", COMPACTS, true},
    {"auto-compaction-mode", COMPACTS, false},
    {"kube-history-bytes", "how much the cluster stores is not known here: use --kube-history",
     true},
    {"quota-backend-bytes", STORES, true},
    {"initial-cluster", MEMBERS, true},
    {"initial-cluster-state", MEMBERS, false},
    {"initial-cluster-token", MEMBERS, false},
    {"initial-advertise-peer-urls", MEMBERS, false},
    {"listen-peer-urls", MEMBERS, false},
    {"max-learners", MEMBERS, false},
    {"strict-reconfig-check", MEMBERS, false},
    {"heartbeat-interval", MEMBERS, false},
    {"election-timeout", MEMBERS, false},
    {"auth-token", USERS, false},
    {"auth-token-ttl", USERS, false},
    {"bcrypt-cost", USERS, false},
    {"max-txn-ops", STORES, false},
    {"experimental-initial-corrupt-check", DISCARDS, false},
    {"bootstrap-defrag-threshold-megabytes", DISCARDS, false},
    {"upstream-context", OF_TIER, true},
    {"upstream-resources", OF_TIER, true},
    {"upstream-rights-ttl", OF_TIER, true},
    {"upstream-resource-bytes", OF_TIER, true},
    {"upstream-mirror-bytes", OF_TIER, true},
    {"upstream-idle", OF_TIER, true},
    {"upstream-qps", OF_TIER, true},
};

static bool is_of_tier(const char *flag)
{
    for (size_t i = 0; i < COUNT_OF(clashes); i++)
        if (strcmp(clashes[i].flag, flag) == 0)
            return true;
    return strcmp(flag, "upstream-kubeconfig") == 0 || strcmp(flag, "upstream-in-cluster") == 0;
}

/* Which flag says in front of which server the flag has an effect. */
static const char *needed_by(const char *flag)
{
    if (strcmp(flag, "upstream-reads") == 0)
        return "--upstream-endpoints, --upstream-kubeconfig or --upstream-in-cluster";
    return is_of_tier(flag) ? "--upstream-kubeconfig or --upstream-in-cluster"
                            : "--upstream-endpoints";
}

static bool is_given(const struct options *options, const char *name)
{
    return options_source(options, name) != OPTION_FROM_DEFAULT;
}

static enum status check_clashes(const struct options *options, struct error *error)
{
    for (size_t i = 0; i < COUNT_OF(clashes); i++) {
        const struct clash *clash = &clashes[i];
        if (!is_given(options, clash->flag))
            continue;
        if (clash->refused)
            return error_set(error, ST_INVALID, "--%s cannot be used with --upstream-endpoints: %s",
                             clash->flag, clash->reason);
        log_warn("flag is ignored", LOG_TEXT("flag", clash->flag),
                 LOG_TEXT("reason", clash->reason));
    }
    return ST_OK;
}

enum status config_upstream_check_flags(const struct options *options, bool clustered,
                                        struct error *error)
{
    const struct option *row;
    if (clustered)
        return check_clashes(options, error);
    /* An empty value is most likely a variable of a script that was not set. Serving a store of its
     * own instead of the cluster would look like a loss of all data. */
    if (is_given(options, "upstream-endpoints"))
        return error_set(
            error, ST_INVALID,
            "--upstream-endpoints is empty: give the URLs of the members, separated by "
            "commas, or leave the flag out for a store of its own");
    if (is_given(options, "upstream-kubeconfig"))
        return error_set(error, ST_INVALID,
                         "--upstream-kubeconfig is empty: name the file, or leave the flag out for "
                         "a store of its own");
    for (size_t i = 0; (row = options_row(options->table, i)); i++)
        if (strncmp(row->name, "upstream-", strlen("upstream-")) == 0 &&
            options->source[i] != OPTION_FROM_DEFAULT &&
            strcmp(row->name, "upstream-in-cluster") != 0) /* which is false */
            return error_set(error, ST_INVALID, "--%s needs %s", row->name, needed_by(row->name));
    return ST_OK;
}

enum status config_upstream_check_variables(const struct options *options, char *const *variables,
                                            struct error *error)
{
    static const struct {
        const char *flag, *give;
    } rows[] = {{"upstream-endpoints", "give the URLs of the members, separated by commas"},
                {"upstream-kubeconfig", "name the file"}};
    const struct serve_options *values = options->config;
    bool chosen = *values->upstream_endpoints || config_tier_is_wanted(values);
    for (size_t i = 0; variables && !chosen && i < COUNT_OF(rows); i++)
        if (options_variable_is_empty(options->table, variables, rows[i].flag))
            return error_set(error, ST_INVALID,
                             "the environment variable for --%s is empty: %s, or unset it for a "
                             "store of its own",
                             rows[i].flag, rows[i].give);
    return ST_OK;
}

/* -- Addresses -- */

/* The address of an endpoint. ST_INVALID: it has a name, which is not looked up. */
static enum status parse_endpoint(struct slice text, struct address *ret_address)
{
    struct url_parts parts;
    struct error ignored;
    bool has_scheme = memmem(text.ptr, text.len, "://", 3);
    TRY(has_scheme ? url_split(text, &parts, &ignored) : url_split_host(text, &parts, &ignored));
    if (parts.local)
        return address_from_path(parts.path, ret_address);
    return address_from_host(parts.host, parts.port, ret_address);
}

static bool is_any(const struct address *address)
{
    char text[ADDRESS_TEXT_BYTES];
    address_format(address, text);
    return strncmp(text, "0.0.0.0:", 8) == 0 || strncmp(text, "[::]:", 5) == 0;
}

static bool is_same(const struct address *endpoint, const struct address *listen)
{
    char a[ADDRESS_TEXT_BYTES], b[ADDRESS_TEXT_BYTES];
    address_format(endpoint, a);
    address_format(listen, b);
    if (strcmp(a, b) == 0)
        return true;
    /* A listener on all addresses also accepts what is sent to loopback. */
    return !address_is_path(endpoint) && address_port(endpoint) == address_port(listen) &&
           address_is_local(endpoint) && is_any(listen);
}

enum status config_upstream_check_addresses(const char *flag, const char *endpoints,
                                            const struct url *listen, size_t count,
                                            struct error *error)
{
    struct slice item;
    struct address endpoint;
    for (const char *rest = endpoints; option_list_next(&rest, &item);) {
        /* A loop through a name is not detected here, because names are not looked up. */
        if (parse_endpoint(item, &endpoint) != ST_OK)
            continue;
        for (size_t i = 0; i < count; i++)
            if (is_same(&endpoint, &listen[i].address))
                return error_set(error, ST_INVALID,
                                 "--%s: %.*s is an address of this server itself; name the other "
                                 "server, or let this one listen elsewhere",
                                 flag, SLICE_ARGS(item));
    }
    return ST_OK;
}

/* -- The user -- */

static char *copy_text(struct arena *arena, struct slice text)
{
    char *copy = arena_alloc(arena, text.len + 1);
    xalloc_check(copy, text.len + 1);
    if (text.len)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = 0;
    return copy;
}

static enum status read_password(struct arena *arena, const char *path, const char **ret_password,
                                 struct error *error)
{
    AUTO(buf_fini) struct buf text = {0};
    TRY(whole_file_read(path, WHOLE_FILE_ANY, PASSWORD_BYTES_MAX, &text, error));
    size_t len = 0;
    /* Editors end a file with a line break, which does not belong to the password. */
    while (len < text.len && text.ptr[len] != '\n' && text.ptr[len] != '\r' && text.ptr[len])
        len++;
    if (len == 0)
        return error_set(error, ST_INVALID, "--upstream-password-file: %.200s is empty", path);
    *ret_password = copy_text(arena, slice_of(text.ptr, len));
    explicit_bzero(text.ptr, text.len);
    return ST_OK;
}

static enum status set_user(struct upstream_options *upstream, struct arena *arena,
                            const struct serve_options *options, struct error *error)
{
    const char *user = options->upstream_user, *file = options->upstream_password_file;
    const char *colon = strchr(user, ':');
    if (!*user && *file)
        return error_set(error, ST_INVALID, "--upstream-password-file needs --upstream-user");
    if (!*user)
        return ST_OK;
    if (colon && *file)
        return error_set(error, ST_INVALID,
                         "--upstream-user has a password already; give "
                         "--upstream-password-file or that one");
    if (!colon && !*file)
        return error_set(error, ST_INVALID,
                         "--upstream-user needs a password: name:password, or "
                         "--upstream-password-file");
    upstream->user = user;
    if (!colon)
        return read_password(arena, file, &upstream->password, error);
    upstream->user = copy_text(arena, slice_of(user, (size_t)(colon - user)));
    upstream->password = colon + 1;
    return ST_OK;
}

/* -- The cluster -- */

bool config_upstream_mirrors(const struct serve_options *options, struct slice prefix)
{
    struct slice item;
    bool all = true;
    /* An empty list stands for all keys. */
    for (const char *rest = options->upstream_prefix; option_list_next(&rest, &item); all = false)
        if (item.len <= prefix.len && slice_equal(item, slice_sub(prefix, 0, item.len)))
            return true;
    return all || !*options->upstream_endpoints;
}

static enum status set_prefixes(struct mirror_options *cluster, struct arena *arena,
                                const struct serve_options *options, struct error *error)
{
    struct slice item;
    struct slice *prefixes = arena_alloc(arena, PREFIXES_MAX * sizeof(*prefixes));
    xalloc_check(prefixes, PREFIXES_MAX * sizeof(*prefixes));
    for (const char *rest = options->upstream_prefix; option_list_next(&rest, &item);) {
        if (cluster->prefix_count == PREFIXES_MAX)
            return error_set(error, ST_INVALID, "--upstream-prefix: at most %d may be given",
                             PREFIXES_MAX);
        prefixes[cluster->prefix_count++] = item;
    }
    cluster->prefixes = prefixes;
    return ST_OK;
}

static enum status set_tls(struct upstream_options *upstream, const struct serve_options *options,
                           struct error *error)
{
    if (!*options->upstream_cert != !*options->upstream_key)
        return error_set(error, ST_INVALID,
                         "--upstream-cert and --upstream-key must be given together");
    upstream->ca_file = options->upstream_cacert;
    upstream->cert_file = options->upstream_cert;
    upstream->key_file = options->upstream_key;
    upstream->server_name = options->upstream_server_name;
    upstream->insecure_skip_verify = options->upstream_insecure_skip_tls_verify;
    return ST_OK;
}

enum status config_upstream_set(struct mirror_options *cluster, struct arena *arena,
                                const struct serve_options *options, struct error *error)
{
    if (!*options->upstream_endpoints)
        return ST_OK;
    cluster->upstream.endpoints = options->upstream_endpoints;
    cluster->reads =
        options->upstream_reads == SERVE_READS_FORWARD ? MIRROR_READS_FORWARD : MIRROR_READS_MIRROR;
    cluster->lag_max_revisions = options->upstream_max_lag;
    if (options->upstream_reads == SERVE_READS_FENCE ||
        options->upstream_reads == SERVE_READS_CACHED)
        return error_set(error, ST_INVALID,
                         "--upstream-reads: fence and cached are for a kube-apiserver; in front of "
                         "an etcd cluster it is mirror or forward");
    TRY(set_tls(&cluster->upstream, options, error));
    TRY(set_user(&cluster->upstream, arena, options, error));
    return set_prefixes(cluster, arena, options, error);
}
