#include "kubeclient/call/kube.h"

#include "base/metric/counter.h"
#include "client/call/version.h"
#include "client/connect/error.h"
#include "client/http/proxy_environment.h"
#include "client/names/resolver.h"
#include "io/socket.h"
#include "kubeclient/call/configuration.h"
#include "kubeclient/call/rate_limiter.h"
#include "kubeclient/discovery/discovery.h"

#include <stdlib.h>

/* A source of TLS. Another one is made when an exec plugin prints another certificate; the old one
 * is freed when its connections are closed. */
struct kube_tls {
    struct list in_kube; /* links vigil_kube.tls_sources */
    struct tls_client_source *source;
};

/* See kube_new_in. */
struct kube_group {
    struct driver_group driver;
    vigil_kube_options options; /* its texts are not used any more */
    struct kube_constants *constants;
    struct tls_client_source *tls; /* NULL: without TLS */
    struct connector_buffers buffers;
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
    return kube->constants->config.server;
}

const char *vigil_kube_namespace(const vigil_kube *kube)
{
    const char *name_space = kube->constants->config.name_space;
    return name_space ? name_space : "default";
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

/* -- What clients have in common -- */

static void constants_free(struct kube_constants *constants)
{
    if (!constants)
        return;
    resolver_free(constants->resolver);
    discovery_free(constants->discovery);
    free(constants->user_agent);
    kubeconfig_fini(&constants->config);
    free(constants);
}
DEFINE_CLEANUP(struct kube_constants *, constants_free)

static enum status constants_new(struct loop *loop, const vigil_kube_options *options,
                                 struct kube_constants **ret_constants, struct error *error)
{
    struct configuration_environment environment = configuration_environment_system();
    const char *user_agent = options->user_agent && *options->user_agent
                                 ? options->user_agent
                                 : "libvigil-kube/" LIBRARY_VERSION;
    AUTO(constants_freep) struct kube_constants *c = calloc(1, sizeof(*c));
    if (!c)
        return error_no_memory(error);
    TRY(configuration_choose(options, &environment, &c->config, &c->url, error));
    c->user_agent = strdup(user_agent);
    if (!c->user_agent)
        return ST_NOMEM;
    TRY(resolver_new(loop, &resolver_system, random_seed_system(), &c->resolver));
    TRY(discovery_new(&c->discovery));
    *ret_constants = TAKE(c);
    return ST_OK;
}

static bool is_secure(const struct kube_constants *constants)
{
    return constants->url.endpoint.security == ENDPOINT_TLS;
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
    struct tls_client_options options = tls_options(&kube->constants->config);
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
    if (proxy_environment_find(&options->endpoint, is_secure(kube->constants), getenv,
                               &proxy_url) != ST_OK)
        return error_no_memory(error);
    options->proxy_url = proxy_url;
    enum status status = http_pool_new(options, &kube->pool, error);
    free(proxy_url);
    return status;
}

static enum status open_pool(struct vigil_kube *kube, struct network *network,
                             const vigil_kube_options *o, struct error *error)
{
    struct tls_client_source *source = NULL;
    static const enum http_pool_protocol protocols[] = {
        [VIGIL_KUBE_HTTP_ANY] = HTTP_POOL_NEGOTIATED,
        [VIGIL_KUBE_HTTP_1] = HTTP_POOL_HTTP1,
        [VIGIL_KUBE_HTTP_2] = HTTP_POOL_HTTP2,
    };
    const struct kubeconfig *config = &kube->constants->config;
    if (kube->group) {
        source = kube->group->tls;
    } else if (is_secure(kube->constants)) {
        struct tls_client_options tls = tls_options(config);
        TRY(add_tls_source(kube, &tls, error));
        source = tls_in_use(kube)->source;
    }
    struct http_pool_options options = HTTP_POOL_OPTIONS_DEFAULT;
    options.connector.loop = kube->driver.loop;
    options.connector.network = network;
    options.connector.resolver = kube->constants->resolver;
    options.connector.tls = source;
    options.connector.buffers = kube->group ? &kube->group->buffers : NULL;
    options.connector.server_name = config->tls_server_name ? config->tls_server_name : "";
    options.connector.connect_timeout_ns = driver_ns(o->connect_timeout_ms);
    options.endpoint = kube->constants->url.endpoint;
    options.proxy_url = config->proxy_url;
    options.protocol = protocols[o->http];
    options.log = driver_log;
    options.log_ctx = &kube->driver;
    return config->proxy_url ? http_pool_new(&options, &kube->pool, error)
                             : open_pool_as_environment_says(kube, &options, error);
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
    if (!kube->group && kube->constants)
        resolver_free(TAKE(kube->constants->resolver));
    while (tls_in_use(kube))
        free_tls_source(tls_in_use(kube));
}

static void destroy(struct driver *driver)
{
    struct vigil_kube *kube = CONTAINER_OF(driver, struct vigil_kube, driver);
    assert(!kube->pool && !kube->credentials);
    free(kube->fields);
    if (!kube->group)
        constants_free(kube->constants);
    free(kube);
}

static const struct driver_ops kube_driver_ops = {
    .close = close_kube,
    .destroy = destroy,
};

static enum status kube_init(struct vigil_kube *kube, struct kube_group *group,
                             struct network *network, const vigil_kube_options *options,
                             struct error *error)
{
    uint64_t seed = random_seed_system();
    *kube = (struct vigil_kube){
        .driver.own_thread = options->own_thread != 0 && !group,
        .driver.group = group ? &group->driver : NULL,
        .driver.log = options->log,
        .driver.log_user = options->log_user,
        .group = group,
        .call_timeout_ms = options->call_timeout_ms,
        .receive_bytes_max = options->receive_bytes_max,
        .warning = options->warning,
    };
    list_init(&kube->tls_sources);
    random_init(&kube->random, seed);
    TRY(driver_init(&kube->driver, network, &kube_driver_ops));
    if (group)
        kube->constants = group->constants;
    else
        TRY(constants_new(kube->driver.loop, options, &kube->constants, error));
    TRY(open_pool(kube, network, options, error));
    /* The array of fields is made once, and filled for every request. */
    size_t count;
    struct credentials_hooks hooks = {on_certificate, kube};
    TRY(credentials_new(kube->driver.loop, &kube->constants->config, hooks, &kube->credentials,
                        error));
    (void)credentials_fields(kube->credentials, &count);
    kube->fields = calloc(KUBE_OWN_FIELDS + count, sizeof(*kube->fields));
    if (!kube->fields)
        return error_no_memory(error);
    if (options->calls_per_second)
        TRY(rate_limiter_new(kube->driver.loop, options->calls_per_second, options->calls_burst,
                             &kube->limiter));
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

/* The options with the defaults for fields that the program's header does not have. */
static int complete_options(const vigil_kube_options *options, vigil_kube_options *ret_complete,
                            vigil_error *error)
{
    vigil_kube_options_init(ret_complete);
    if (options && (options->size == 0 || options->size > sizeof(*ret_complete)))
        return refuse(error, VIGIL_ERROR_ARGUMENT,
                      "the options were not set up with vigil_kube_options_init");
    if (options)
        memcpy(ret_complete, options, options->size);
    const char *fault = fault_of(ret_complete);
    return fault ? refuse(error, VIGIL_ERROR_ARGUMENT, fault) : VIGIL_OK;
}

static int answer(vigil_error *error, enum status status, const struct error *why)
{
    if (status != ST_OK)
        return refuse(error, code_of(status), why->text[0] ? why->text : status_reason(status));
    if (error)
        *error = (vigil_error){.grpc_code = -1};
    return VIGIL_OK;
}

/* The options are complete. */
static int new_kube(struct kube_group *group, struct network *network,
                    const vigil_kube_options *options, vigil_kube **ret_kube, vigil_error *error)
{
    struct vigil_kube *kube = aligned_alloc(_Alignof(struct vigil_kube),
                                            align_up(sizeof(*kube), _Alignof(struct vigil_kube)));
    if (!kube)
        return refuse(error, VIGIL_ERROR_MEMORY, "out of memory");
    struct error why = {0};
    enum status status = kube_init(kube, group, network, options, &why);
    if (status == ST_OK)
        *ret_kube = kube;
    else
        driver_abandon(&kube->driver);
    return answer(error, status, &why);
}

int kube_new_over(struct network *network, const vigil_kube_options *options, vigil_kube **ret_kube,
                  vigil_error *error)
{
    vigil_kube_options complete;
    int code = complete_options(options, &complete, error);
    return code == VIGIL_OK ? new_kube(NULL, network, &complete, ret_kube, error) : code;
}

/* -- Groups -- */

static enum status group_init(struct kube_group *group, const vigil_kube_options *options,
                              struct error *error)
{
    TRY(constants_new(group->driver.loop, options, &group->constants, error));
    if (!is_secure(group->constants))
        return ST_OK;
    struct tls_client_options tls = tls_options(&group->constants->config);
    return tls_client_source_new(&tls, (struct tls_source_hooks){0}, &group->tls, error);
}

int kube_group_new(struct loop *loop, const vigil_kube_options *options,
                   struct kube_group **ret_group, vigil_error *error)
{
    vigil_kube_options complete;
    int code = complete_options(options, &complete, error);
    if (code != VIGIL_OK)
        return code;
    struct kube_group *group = aligned_alloc(_Alignof(struct kube_group),
                                             align_up(sizeof(*group), _Alignof(struct kube_group)));
    if (!group)
        return refuse(error, VIGIL_ERROR_MEMORY, "out of memory");
    *group = (struct kube_group){.options = complete, .buffers.loop = loop};
    driver_group_init(&group->driver, loop);
    struct error why = {0};
    enum status status = group_init(group, &complete, &why);
    if (status == ST_OK)
        *ret_group = group;
    else
        kube_group_free(group);
    return answer(error, status, &why);
}

void kube_group_free(struct kube_group *group)
{
    if (!group)
        return;
    driver_group_fini(&group->driver);
    connector_buffers_fini(&group->buffers);
    constants_free(group->constants);
    tls_client_source_free(group->tls);
    free(group);
}

int kube_new_in(struct kube_group *group, struct network *network, void *user,
                vigil_kube **ret_kube, vigil_error *error)
{
    vigil_kube_options options = group->options;
    options.log_user = user;
    return new_kube(group, network, &options, ret_kube, error);
}

int vigil_kube_new(const vigil_kube_options *options, vigil_kube **ret_kube, vigil_error *error)
{
    return kube_new_over(network_posix(), options, ret_kube, error);
}

void vigil_kube_get_stats(const vigil_kube *kube, vigil_kube_stats *ret_stats, size_t size)
{
    const struct kube_counters *c = &kube->counters;
    struct http_pool_stats pool = http_pool_stats(kube->pool);
    vigil_kube_stats stats = {
        .connects = pool.connects,
        .connect_errors = pool.connect_errors,
        .disconnects = pool.disconnects,
        .connections = pool.connections,
        .calls_started = atomic_load(&c->calls_started),
        .calls_completed = atomic_load(&c->calls_completed),
        .calls_retried = atomic_load(&c->calls_retried),
        .watches = atomic_load(&c->watches),
        .watch_events = atomic_load(&c->watch_events),
        .watch_retries = atomic_load(&c->watch_retries),
        .bytes_sent = pool.bytes_sent,
        .bytes_received = pool.bytes_received,
    };
    memset(ret_stats, 0, size);
    memcpy(ret_stats, &stats, size_min(size, sizeof(stats)));
}
