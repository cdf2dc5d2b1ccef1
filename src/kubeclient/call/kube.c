#include "kubeclient/call/kube.h"

#include "base/metric/counter.h"
#include "client/call/version.h"
#include "client/connect/error.h"
#include "client/http/proxy_environment.h"
#include "client/names/resolver.h"
#include "io/socket.h"
#include "kubeclient/call/configuration.h"
#include "kubeclient/call/rate_limiter.h"
#include "kubeclient/connect/server_url.h"
#include "kubeclient/discovery/discovery.h"

#include <stdlib.h>

/* A source of TLS. Another one is made when an exec plugin prints another certificate; the old one
 * is freed when its connections are closed. */
struct kube_tls {
    struct list in_kube; /* links vigil_kube.tls_sources */
    struct tls_client_source *source;
};

/* -- The program's handle -- */

void vigil_kube_shutdown(vigil_kube *kube)
{
    driver_shutdown(&kube->driver);
}

void vigil_kube_free(vigil_kube *kube)
{
    if (kube)
        driver_free(&kube->driver);
}

const char *vigil_kube_server(const vigil_kube *kube)
{
    return kube->config.server;
}

const char *vigil_kube_namespace(const vigil_kube *kube)
{
    return kube->config.name_space ? kube->config.name_space : "default";
}

int vigil_kube_fd(const vigil_kube *kube)
{
    return driver_fd(&kube->driver);
}

int vigil_kube_timeout_ms(const vigil_kube *kube)
{
    return driver_timeout_ms(&kube->driver);
}

void vigil_kube_process(vigil_kube *kube)
{
    driver_process(&kube->driver);
}

/* -- TLS -- */

/* A certificate or key is a file, or a text. */
static const char *file_of(const struct kubeconfig_pem *pem)
{
    return pem->data.len ? "" : (pem->file ? pem->file : "");
}

static enum status add_tls_source(struct vigil_kube *kube, const struct tls_client_options *options,
                                  struct error *error)
{
    struct kube_tls *tls = calloc(1, sizeof(*tls));
    if (!tls)
        return error_no_memory(error);
    enum status status =
        tls_client_source_new(options, (struct tls_source_hooks){0}, &tls->source, error);
    if (status != ST_OK) {
        free(tls);
        return status;
    }
    list_push_front(&kube->tls_sources, &tls->in_kube);
    return ST_OK;
}

static void free_tls_source(struct kube_tls *tls)
{
    list_remove(&tls->in_kube);
    tls_client_source_free(tls->source);
    free(tls);
}

static struct kube_tls *tls_in_use(const struct vigil_kube *kube)
{
    if (list_empty(&kube->tls_sources))
        return NULL;
    return LIST_ENTRY(kube->tls_sources.next, struct kube_tls, in_kube);
}

static struct tls_client_options tls_options(const struct kubeconfig *config)
{
    return (struct tls_client_options){
        .ca_file = file_of(&config->ca),
        .ca_pem = config->ca.data,
        .cert_file = file_of(&config->cert),
        .cert_pem = config->cert.data,
        .key_file = file_of(&config->key),
        .key_pem = config->key.data,
        .insecure_skip_verify = config->insecure_skip_verify,
    };
}

static void on_tls_unused(void *ctx)
{
    free_tls_source(ctx);
}

/* The exec plugin has printed another certificate. */
static enum status on_certificate(void *ctx, struct error *error)
{
    struct vigil_kube *kube = ctx;
    struct kube_tls *old = tls_in_use(kube);
    if (!old)
        return ST_OK; /* without TLS there is no use for it */
    struct tls_client_options options = tls_options(&kube->config);
    /* The plugin's certificate replaces the one of the configuration. */
    options.cert_file = options.key_file = "";
    options.cert_pem = credentials_cert(kube->credentials);
    options.key_pem = credentials_key(kube->credentials);
    TRY(add_tls_source(kube, &options, error));
    http_pool_set_tls(kube->pool, tls_in_use(kube)->source, on_tls_unused, old);
    return ST_OK;
}

/* -- The beginning -- */

void vigil_kube_options_init(vigil_kube_options *options)
{
    *options = (vigil_kube_options){
        .size = sizeof(*options),
        .calls_per_second = 5,
        .calls_burst = 10,
        .connect_timeout_ms = 30000,
        .call_timeout_ms = 60000,
        .receive_bytes_max = 256u << 20,
        .own_thread = 1,
    };
}

/* Through a proxy that the environment of the program names, as in client-go. */
static enum status open_pool_as_environment_says(struct vigil_kube *kube,
                                                 struct http_pool_options *options,
                                                 struct error *error)
{
    char *proxy_url;
    if (proxy_environment_find(&options->endpoint, kube->secure, getenv, &proxy_url) != ST_OK)
        return error_no_memory(error);
    options->proxy_url = proxy_url;
    enum status status = http_pool_new(options, &kube->pool, error);
    free(proxy_url);
    return status;
}

static enum status open_pool(struct vigil_kube *kube, struct network *network,
                             const vigil_kube_options *o, const struct server_url *url,
                             struct error *error)
{
    static const enum http_pool_protocol protocols[] = {
        [VIGIL_KUBE_HTTP_ANY] = HTTP_POOL_NEGOTIATED,
        [VIGIL_KUBE_HTTP_1] = HTTP_POOL_HTTP1,
        [VIGIL_KUBE_HTTP_2] = HTTP_POOL_HTTP2,
    };
    const struct kubeconfig *config = &kube->config;
    struct tls_client_options tls = tls_options(config);
    kube->path_prefix = url->prefix;
    kube->secure = url->endpoint.security == ENDPOINT_TLS;
    if (kube->secure)
        TRY(add_tls_source(kube, &tls, error));
    struct http_pool_options options = HTTP_POOL_OPTIONS_DEFAULT;
    options.connector.loop = kube->driver.loop;
    options.connector.network = network;
    options.connector.resolver = kube->resolver;
    options.connector.tls = kube->secure ? tls_in_use(kube)->source : NULL;
    options.connector.server_name = config->tls_server_name ? config->tls_server_name : "";
    options.connector.connect_timeout_ns = driver_ns(o->connect_timeout_ms);
    options.endpoint = url->endpoint;
    options.proxy_url = config->proxy_url;
    options.protocol = protocols[o->http];
    options.log = driver_log;
    options.log_ctx = &kube->driver;
    return config->proxy_url ? http_pool_new(&options, &kube->pool, error)
                             : open_pool_as_environment_says(kube, &options, error);
}

/* The counters of the pool belong to the loop's thread. */
static void publish_stats(struct driver *driver)
{
    struct vigil_kube *kube = CONTAINER_OF(driver, struct vigil_kube, driver);
    if (!kube->pool)
        return;
    struct http_pool_stats stats = http_pool_stats(kube->pool);
    counter_set(&kube->counters.connects, stats.connects);
    counter_set(&kube->counters.connect_errors, stats.connect_errors);
    counter_set(&kube->counters.disconnects, stats.disconnects);
    counter_set(&kube->counters.connections, stats.connections);
    counter_set(&kube->counters.bytes_sent, stats.bytes_sent);
    counter_set(&kube->counters.bytes_received, stats.bytes_received);
}

/* Everything that uses the loop. Connections use TLS and the resolver. */
static void close_kube(struct driver *driver)
{
    struct vigil_kube *kube = CONTAINER_OF(driver, struct vigil_kube, driver);
    http_pool_free(kube->pool);
    kube->pool = NULL;
    credentials_free(kube->credentials);
    kube->credentials = NULL;
    rate_limiter_free(kube->limiter);
    kube->limiter = NULL;
    resolver_free(kube->resolver);
    kube->resolver = NULL;
    while (tls_in_use(kube))
        free_tls_source(tls_in_use(kube));
}

static void destroy(struct driver *driver)
{
    struct vigil_kube *kube = CONTAINER_OF(driver, struct vigil_kube, driver);
    assert(!kube->pool && !kube->credentials);
    discovery_free(kube->discovery);
    free(kube->fields);
    free(kube->user_agent);
    kubeconfig_fini(&kube->config);
    free(kube);
}

static const struct driver_ops kube_driver_ops = {
    .close = close_kube,
    .destroy = destroy,
    .end_of_turn = publish_stats,
};

static enum status kube_init(struct vigil_kube *kube, struct network *network,
                             const vigil_kube_options *options, struct error *error)
{
    uint64_t seed = random_seed_system();
    struct configuration_environment environment = configuration_environment_system();
    struct server_url url;
    *kube = (struct vigil_kube){
        .driver.own_thread = options->own_thread != 0,
        .driver.log = options->log,
        .driver.log_user = options->log_user,
        .call_timeout_ms = options->call_timeout_ms,
        .receive_bytes_max = options->receive_bytes_max,
        .warning = options->warning,
    };
    list_init(&kube->tls_sources);
    random_init(&kube->random, seed);
    TRY(driver_init(&kube->driver, network, &kube_driver_ops));
    TRY(configuration_choose(options, &environment, &kube->config, &url, error));
    kube->user_agent =
        strdup(options->user_agent && *options->user_agent ? options->user_agent
                                                           : "libvigil-kube/" LIBRARY_VERSION);
    if (!kube->user_agent)
        return ST_NOMEM;
    TRY(resolver_new(kube->driver.loop, &resolver_system, seed, &kube->resolver));
    TRY(open_pool(kube, network, options, &url, error));
    /* The array of fields is made once, and filled for every request. */
    size_t count;
    struct credentials_hooks hooks = {on_certificate, kube};
    TRY(credentials_new(kube->driver.loop, &kube->config, hooks, &kube->credentials, error));
    (void)credentials_fields(kube->credentials, &count);
    kube->fields = calloc(KUBE_OWN_FIELDS + count, sizeof(*kube->fields));
    if (!kube->fields)
        return error_no_memory(error);
    if (options->calls_per_second)
        TRY(rate_limiter_new(kube->driver.loop, options->calls_per_second, options->calls_burst,
                             &kube->limiter));
    TRY(discovery_new(&kube->discovery));
    return driver_start(&kube->driver);
}

static enum vigil_code code_of(enum status status)
{
    switch (status) {
    case ST_NOMEM:
        return VIGIL_ERROR_MEMORY;
    case ST_IO:
    case ST_LIMIT:
        return VIGIL_ERROR_SYSTEM;
    default:
        return VIGIL_ERROR_ARGUMENT;
    }
}

static int refuse(vigil_error *error, enum vigil_code code, const char *text)
{
    if (error)
        client_error_set(error, code, VIGIL_NOT_SENT, "%s", text);
    return (int)code;
}

/* Why these options cannot be used; NULL if they can. */
static const char *fault_of(const vigil_kube_options *o)
{
    if (o->connect_timeout_ms < 0 || o->call_timeout_ms < 0)
        return "a time is negative";
    if (o->http < VIGIL_KUBE_HTTP_ANY || o->http > VIGIL_KUBE_HTTP_2)
        return "http is not one of enum vigil_kube_http";
    if (!o->cert_file != !o->key_file)
        return "cert_file and key_file belong together, but only one of them is set";
    if (o->password && !o->user)
        return "password is set without user";
    if (o->user && (o->token || o->token_file))
        return "there may be a token, or a user and password, but not both";
    return NULL;
}

int kube_new_over(struct network *network, const vigil_kube_options *options, vigil_kube **ret_kube,
                  vigil_error *error)
{
    vigil_kube_options complete;
    vigil_kube_options_init(&complete);
    if (options && (options->size == 0 || options->size > sizeof(complete)))
        return refuse(error, VIGIL_ERROR_ARGUMENT,
                      "the options were not set up with vigil_kube_options_init");
    if (options)
        memcpy(&complete, options, options->size);
    const char *fault = fault_of(&complete);
    if (fault)
        return refuse(error, VIGIL_ERROR_ARGUMENT, fault);
    struct vigil_kube *kube = aligned_alloc(_Alignof(struct vigil_kube),
                                            align_up(sizeof(*kube), _Alignof(struct vigil_kube)));
    if (!kube)
        return refuse(error, VIGIL_ERROR_MEMORY, "out of memory");
    struct error why = {0};
    enum status status = kube_init(kube, network, &complete, &why);
    if (status != ST_OK) {
        driver_abandon(&kube->driver);
        return refuse(error, code_of(status), why.text[0] ? why.text : status_reason(status));
    }
    if (error)
        *error = (vigil_error){.grpc_code = -1};
    *ret_kube = kube;
    return VIGIL_OK;
}

int vigil_kube_new(const vigil_kube_options *options, vigil_kube **ret_kube, vigil_error *error)
{
    return kube_new_over(network_posix(), options, ret_kube, error);
}

void vigil_kube_get_stats(const vigil_kube *kube, vigil_kube_stats *ret_stats, size_t size)
{
    const struct kube_counters *c = &kube->counters;
    vigil_kube_stats stats = {
        .connects = atomic_load(&c->connects),
        .connect_errors = atomic_load(&c->connect_errors),
        .disconnects = atomic_load(&c->disconnects),
        .connections = atomic_load(&c->connections),
        .calls_started = atomic_load(&c->calls_started),
        .calls_completed = atomic_load(&c->calls_completed),
        .calls_retried = atomic_load(&c->calls_retried),
        .watches = atomic_load(&c->watches),
        .watch_events = atomic_load(&c->watch_events),
        .watch_retries = atomic_load(&c->watch_retries),
        .bytes_sent = atomic_load(&c->bytes_sent),
        .bytes_received = atomic_load(&c->bytes_received),
    };
    memset(ret_stats, 0, size);
    memcpy(ret_stats, &stats, size_min(size, sizeof(stats)));
}
