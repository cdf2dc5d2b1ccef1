#include "tier/link/link_private.h"

#include "base/random.h"
#include "client/call/version.h"
#include "client/http/proxy_environment.h"
#include "client/names/resolver.h"
#include "io/loop.h"
#include "io/socket.h"
#include "kubeclient/call/configuration.h"
#include "net/tls/client.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* A source of TLS. Another one is made when an exec plugin prints another certificate; the old one
 * is freed when its connections are closed. */
struct tier_tls {
    struct list in_link; /* links tier_link.own_tls */
    unsigned pools;      /* that have connections with it */
    struct tls_client_source *source;
};

void tier_link_log(const struct tier_link *link, int level, const char *format, ...)
{
    char text[1024];
    va_list args;
    if (!link->log)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    link->log(link->log_ctx, level, text);
}

/* -- TLS -- */

/* A certificate or key is a file, or a text. */
static const char *file_of(const struct kubeconfig_pem *pem)
{
    return pem->data.len || !pem->file ? "" : pem->file;
}

/* Those of `callers`: they trust the same authorities, and show nothing. */
static struct tls_client_options trust_of(const struct kubeconfig *config)
{
    struct tls_client_options options = TLS_CLIENT_OPTIONS_NONE;
    options.ca_file = file_of(&config->ca);
    options.ca_pem = config->ca.data;
    options.insecure_skip_verify = config->insecure_skip_verify;
    return options;
}

static enum status add_own_tls(struct tier_link *link, const struct tls_client_options *options,
                               struct error *error)
{
    struct tier_tls *tls = calloc(1, sizeof(*tls));
    if (!tls)
        return error_no_memory(error);
    enum status status =
        tls_client_source_new(options, (struct tls_source_hooks){0}, &tls->source, error);
    if (status != ST_OK) {
        free(tls);
        return status;
    }
    tls->pools = 2; /* reviews and own */
    list_push_front(&link->own_tls, &tls->in_link);
    return ST_OK;
}

static void free_own_tls(struct tier_tls *tls)
{
    list_remove(&tls->in_link);
    tls_client_source_free(tls->source);
    free(tls);
}

static struct tier_tls *own_tls_in_use(const struct tier_link *link)
{
    if (list_empty(&link->own_tls))
        return NULL;
    return LIST_ENTRY(link->own_tls.next, struct tier_tls, in_link);
}

static void on_tls_unused(void *ctx)
{
    struct tier_tls *tls = ctx;
    if (--tls->pools == 0)
        free_own_tls(tls);
}

/* The exec plugin has printed another certificate, which replaces the one of the configuration. */
static enum status on_certificate(void *ctx, struct error *error)
{
    struct tier_link *link = ctx;
    struct tier_tls *old = own_tls_in_use(link);
    if (!old)
        return ST_OK; /* without TLS there is no use for it */
    struct tls_client_options options = trust_of(&link->config);
    options.cert_pem = credentials_cert(link->credentials);
    options.key_pem = credentials_key(link->credentials);
    TRY(add_own_tls(link, &options, error));
    struct tls_client_source *source = own_tls_in_use(link)->source;
    http_pool_set_tls(link->reviews, source, on_tls_unused, old);
    http_pool_set_tls(link->own, source, on_tls_unused, old);
    return ST_OK;
}

static enum status open_tls(struct tier_link *link, struct error *error)
{
    const struct kubeconfig *config = &link->config;
    struct tls_client_options options = trust_of(config);
    TRY(tls_client_source_new(&options, (struct tls_source_hooks){0}, &link->callers_tls, error));
    options.cert_file = file_of(&config->cert);
    options.cert_pem = config->cert.data;
    options.key_file = file_of(&config->key);
    options.key_pem = config->key.data;
    return add_own_tls(link, &options, error);
}

/* -- Connections -- */

/* Through a proxy that the environment of the program names, as in client-go. */
static enum status find_proxy(const struct tier_link *link, const struct server_url *url,
                              char **ret_url)
{
    if (!link->config.proxy_url)
        return proxy_environment_find(&url->endpoint, url->endpoint.security == ENDPOINT_TLS,
                                      getenv, ret_url);
    *ret_url = strdup(link->config.proxy_url);
    return *ret_url ? ST_OK : ST_NOMEM;
}

static enum status open_pools(struct tier_link *link, struct network *network,
                              const vigil_kube_options *o, const struct server_url *url,
                              struct error *error)
{
    static const enum http_pool_protocol protocols[] = {
        [VIGIL_KUBE_HTTP_ANY] = HTTP_POOL_NEGOTIATED,
        [VIGIL_KUBE_HTTP_1] = HTTP_POOL_HTTP1,
        [VIGIL_KUBE_HTTP_2] = HTTP_POOL_HTTP2,
    };
    struct http_pool_options options = HTTP_POOL_OPTIONS_DEFAULT;
    struct tier_tls *own_tls = own_tls_in_use(link);
    const char *server_name = link->config.tls_server_name;
    char *proxy_url;
    if (find_proxy(link, url, &proxy_url) != ST_OK)
        return error_no_memory(error);
    options.connector.loop = link->loop;
    options.connector.network = network ? network : network_posix();
    options.connector.resolver = link->resolver;
    options.connector.server_name = server_name ? server_name : "";
    options.connector.connect_timeout_ns = o->connect_timeout_ms * NS_PER_MS;
    options.endpoint = url->endpoint;
    options.proxy_url = proxy_url;
    options.protocol = protocols[o->http];
    options.log = link->log;
    options.log_ctx = link->log_ctx;
    options.connector.tls = own_tls ? own_tls->source : NULL;
    enum status status = http_pool_new(&options, &link->reviews, error);
    if (status == ST_OK)
        status = http_pool_new(&options, &link->own, error);
    options.connector.tls = link->callers_tls;
    if (status == ST_OK)
        status = http_pool_new(&options, &link->callers, error);
    free(proxy_url);
    return status;
}

/* -- Life -- */

static enum status check_options(const vigil_kube_options *o, struct error *error)
{
    if (o->connect_timeout_ms < 0 || o->http < VIGIL_KUBE_HTTP_ANY || o->http > VIGIL_KUBE_HTTP_2)
        return error_set(error, ST_INVALID, "the options of the client are not valid");
    if (!o->cert_file != !o->key_file)
        return error_set(error, ST_INVALID,
                         "a certificate and its key belong together, but only one is given");
    return ST_OK;
}

/* An account that is impersonated could not impersonate clients with certificates. */
static enum status check_config(const struct kubeconfig *config, struct error *error)
{
    if (!config->impersonate.user)
        return ST_OK;
    return error_set(error, ST_INVALID,
                     "the kubeconfig impersonates \"%.200s\": the watch tier needs an account of "
                     "its own, because it impersonates clients with certificates",
                     config->impersonate.user);
}

static enum status link_init(struct tier_link *link, const struct tier_link_options *options,
                             struct error *error)
{
    const vigil_kube_options *o = options->client;
    struct configuration_environment environment = configuration_environment_system();
    struct credentials_hooks hooks = {on_certificate, link};
    struct server_url url;
    TRY(check_options(o, error));
    TRY(configuration_choose(o, &environment, &link->config, &url, error));
    TRY(check_config(&link->config, error));
    link->path_prefix = url.prefix;
    link->user_agent =
        strdup(o->user_agent && *o->user_agent ? o->user_agent : "vigil-tier/" LIBRARY_VERSION);
    if (!link->user_agent ||
        resolver_new(link->loop, &resolver_system, random_seed_system(), &link->resolver) != ST_OK)
        return error_no_memory(error);
    if (url.endpoint.security == ENDPOINT_TLS)
        TRY(open_tls(link, error));
    TRY(open_pools(link, options->network, o, &url, error));
    return credentials_new(link->loop, &link->config, hooks, &link->credentials, error);
}

enum status tier_link_new(const struct tier_link_options *options, struct tier_link **ret_link,
                          struct error *error)
{
    AUTO(tier_link_freep) struct tier_link *link = calloc(1, sizeof(*link));
    if (!link)
        return error_no_memory(error);
    link->loop = options->loop;
    link->log = options->log;
    link->log_ctx = options->log_ctx;
    list_init(&link->own_tls);
    TRY(link_init(link, options, error));
    *ret_link = TAKE(link);
    return ST_OK;
}

void tier_link_free(struct tier_link *link)
{
    if (!link)
        return;
    assert(!link->calls);
    http_pool_free(link->callers);
    http_pool_free(link->own);
    http_pool_free(link->reviews);
    credentials_free(link->credentials);
    resolver_free(link->resolver);
    tls_client_source_free(link->callers_tls);
    while (own_tls_in_use(link))
        free_own_tls(own_tls_in_use(link));
    free(link->user_agent);
    kubeconfig_fini(&link->config);
    free(link);
}

/* -- What its users need -- */

struct http_pool *tier_link_own(struct tier_link *link)
{
    return link->own;
}

struct http_pool *tier_link_callers(struct tier_link *link)
{
    return link->callers;
}

struct slice tier_link_path_prefix(const struct tier_link *link)
{
    return link->path_prefix;
}

const char *tier_link_server(const struct tier_link *link)
{
    return link->config.server;
}

enum status tier_link_authorization(struct tier_link *link, struct credentials_waiter *waiter,
                                    struct slice *ret_authorization, struct error *error)
{
    return credentials_get(link->credentials, waiter, ret_authorization, error);
}

void tier_link_refused(struct tier_link *link)
{
    (void)credentials_refused(link->credentials, credentials_generation(link->credentials));
}
