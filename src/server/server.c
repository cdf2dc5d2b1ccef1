#include "server/server.h"

#include "base/log/log.h"
#include "base/memory/budget.h"
#include "base/xalloc.h"
#include "engine/engine.h"
#include "etcd/compactor.h"
#include "etcd/http/health_counts.h"
#include "etcd/http/metrics.h"
#include "io/worker.h"
#include "kube/call/metrics.h"
#include "kube/custom/schema_pool.h"
#include "kube/policy/access/account_token.h"
#include "kube/policy/access/node/node_view.h"
#include "kube/policy/lookup/stock.h"
#include "net/shard.h"
#include "net/tls/self_signed.h"
#include "net/wire.h"
#include "server/empty_mirror.h"
#include "server/trimmer.h"
#include "server/turn_log.h"
#include "wire/connection.h"

#define FINE_TIME_NS (20 * NS_PER_MS)

/* The protocol of a role. All roles share the limits; every shard has its own tables. */
struct spoken {
    const struct wire_limits *limits;
    enum server_role role;
    bool guarded;         /* requests from web pages are refused (wire_server_guard) */
    struct net_wire wire; /* for the kind; its tables stay empty */
    struct protocol_kind kind;
};

struct server {
    const struct server_config *config;
    struct etcd_config etcd; /* config.etcd with the counters of this server */
    struct etcd_health_counts health_counts;
    struct kube_config kube;
    struct metric_set *method_counts;      /* owned */
    struct turns *turns;                   /* owned; the turns of all threads */
    struct engine *engine;                 /* owned */
    struct empty_mirror *mirror;           /* owned; has the engine of a face; NULL: no face */
    struct net_server *net;                /* owned */
    struct budget *budget;                 /* owned; memory held for clients */
    struct trimmer *trimmer;               /* owned; returns it; NULL: not wanted */
    struct spoken spoken[SERVER_ROLES][2]; /* [role][1] is guarded */
    struct wire_limits kube_limits; /* config's limits, with the body size of the Kubernetes API */
    struct server_tls *tls;         /* owned; NULL when no listener is secure */
    struct kube_account_keys *account_keys; /* owned; of config.makes_account_key; may be NULL */
    struct server_auth auth;
    struct url *bound;   /* owned; one for each listener */
    struct slice *shown; /* owned; client URLs with the ports that were chosen … */
    char (*shown_texts)[URL_TEXT_BYTES]; /* owned; … and their bytes */
    bool kube_skipped;                   /* its address is in use by another process */
    bool face_is_open;
    bool started;
    _Atomic int kube_anonymous; /* see kube/call/anonymous.h */
    _Atomic bool kube_written;  /* an object was written through the Kubernetes API */
    _Atomic bool kube_unmade;   /* the first objects of the Kubernetes API could not be written */
    _Atomic bool has_compactor; /* the first shard to start runs it */
    _Atomic bool has_keeper;    /* the same for the background jobs of the Kubernetes API */
    _Atomic bool tokens_told;   /* a shard has checked whether to warn of simple tokens */
};

/* The part of the server on one shard. Created, used and freed on its thread. */
struct server_shard {
    struct engine_shard *engine;
    struct etcd_api *etcd;
    struct kube_api *kube;            /* NULL: not served */
    const struct server_face *face;   /* NULL: none … */
    void *face_shard;                 /* … and what it has made; owned; may be NULL */
    struct etcd_compactor *compactor; /* owned; NULL on all shards but one */
};

/* -- Shards -- */

static void server_shard_free(struct server_shard *shard)
{
    etcd_compactor_free(shard->compactor);
    if (shard->face_shard)
        shard->face->shard_free(shard->face_shard);
    kube_api_free(shard->kube);
    etcd_api_free(shard->etcd);
    engine_shard_free(shard->engine);
    free(shard);
}

static void start_compactor(struct server *server, struct server_shard *shard, struct loop *loop)
{
    const struct server_config *config = server->config;
    struct etcd_compactor_options options = {config->compaction_mode, config->compaction_retention,
                                             0, NULL};
    if (!options.retention && config->kube_wanted) /* as a kube-apiserver does */
        options =
            (struct etcd_compactor_options){AUTO_COMPACTION_PERIODIC, config->kube_history_ns,
                                            config->kube_history_bytes, &server->kube_written};
    /* A cluster is compacted by its members, or another client; a mirror by its face. */
    if (config->clustered || config->face)
        return;
    if (options.retention && !atomic_exchange(&server->has_compactor, true))
        shard->compactor = etcd_compactor_new(&options, shard->engine, loop);
}

/* The time at which the turn began. It is precise enough to find slow calls, since few turns take
 * more than a millisecond, and reading the clock for each call would cost 1 % of a get. */
static int64_t turn_time(void *loop)
{
    return loop_now_ns(loop);
}

/* The precise time, for measurements of single milliseconds. */
static int64_t fine_time(void *loop)
{
    (void)loop;
    return clock_mono_ns(clock_system());
}

/* One page for both APIs. */
static void write_metrics(void *etcd, struct metric_page *page)
{
    etcd_metrics_write(etcd, page);
}

static void write_kube_metrics(void *ctx, struct metric_page *page)
{
    const struct kube_config *kube = ctx;
    kube_metrics_write(kube->metrics, page);
    schema_pool_write_metrics(kube->schemas, page);
    kube_lookup_pool_write_metrics(kube->lookups, page);
    if (kube->nodes)
        kube_nodes_write_metrics(kube->nodes, page);
}

static void write_face_metrics(void *ctx, struct metric_page *page)
{
    const struct server *server = ctx;
    server->config->face->write_metrics(server->config->face->ctx, page);
}

/* etcd warns at every start; here the warning appears only if authentication is enabled. */
static void warn_simple_tokens(struct server *server, struct server_shard *shard)
{
    bool simple = server->config->auth.token.kind != AUTH_TOKEN_JWT;
    if (!atomic_exchange(&server->tokens_told, true) && simple &&
        engine_auth_enabled(shard->engine))
        log_warn("simple token is not cryptographically signed");
}

static enum status start_apis(struct server *server, struct server_shard *shard, struct loop *loop)
{
    TRY(etcd_api_new(&server->etcd, server->engine, shard->engine, &shard->etcd));
    bool fine =
        server->etcd.warn_apply_ns < FINE_TIME_NS || server->etcd.warn_unary_ns < FINE_TIME_NS;
    etcd_api_set_clock(shard->etcd, fine ? fine_time : turn_time, loop);
    etcd_api_set_loop(shard->etcd, loop);
    const struct server_face *face = shard->face = server->config->face;
    if (face)
        return face->shard_new(face->ctx, shard->engine, loop, &shard->face_shard);
    if (!server->config->kube_wanted)
        return ST_OK;
    TRY(kube_api_new(&server->kube, server->engine, shard->engine, loop, &shard->kube));
    kube_api_set_metrics(shard->kube, write_metrics, shard->etcd);
    if (atomic_exchange(&server->has_keeper, true))
        return ST_OK;
    kube_api_start_jobs(shard->kube);
    if (engine_auth_enabled(shard->engine))
        log_warn("authentication is enabled in this store: the Kubernetes API answers only "
                 "requests with a token of --kube-token-file, or with the certificate of a user "
                 "who may read and write all keys below /registry/");
    return ST_OK;
}

static enum status shard_start(void *ctx, struct net_shard *net_shard)
{
    struct server *server = ctx;
    struct server_shard *shard = xcalloc(1, sizeof(*shard));
    enum status status =
        engine_shard_new(server->engine, net_shard_loop(net_shard), &shard->engine);
    if (status == ST_OK)
        status = start_apis(server, shard, net_shard_loop(net_shard));
    if (status != ST_OK) {
        server_shard_free(shard);
        return status;
    }
    warn_simple_tokens(server, shard);
    start_compactor(server, shard, net_shard_loop(net_shard));
    net_shard_set_user(net_shard, shard);
    /* The first turn may be hours away. What the start has read must not be held until then: no
     * memory and no segment that is replaced meanwhile could be freed. */
    engine_shard_flushed(shard->engine);
    return ST_OK;
}

static bool shard_is_busy(const struct server_shard *shard)
{
    return etcd_api_busy(shard->etcd) || (shard->kube && kube_api_busy(shard->kube)) ||
           (shard->face && shard->face->shard_busy(shard->face_shard)) ||
           (shard->compactor && etcd_compactor_busy(shard->compactor));
}

/* The connections are closed, but writes that they started may still be under way. */
static void shard_stop(void *ctx, struct net_shard *net_shard)
{
    (void)ctx;
    struct server_shard *shard = net_shard_user(net_shard);
    engine_shard_stop(shard->engine);
    if (shard->compactor)
        etcd_compactor_stop(shard->compactor);
    if (shard->kube)
        kube_api_stop(shard->kube);
    if (shard->face)
        shard->face->shard_stop(shard->face_shard);
    while (shard_is_busy(shard))
        loop_turn(net_shard_loop(net_shard), 10 * NS_PER_MS);
    net_shard_set_user(net_shard, NULL);
    server_shard_free(shard);
}

static void after_input(void *ctx, struct net_shard *net_shard)
{
    (void)ctx;
    struct server_shard *shard = net_shard_user(net_shard);
    engine_shard_turn_begin(shard->engine);
}

static void end_of_turn(void *ctx, struct net_shard *net_shard)
{
    (void)ctx;
    struct server_shard *shard = net_shard_user(net_shard);
    engine_shard_turn_end(shard->engine);
}

static void after_flush(void *ctx, struct net_shard *net_shard)
{
    (void)ctx;
    struct server_shard *shard = net_shard_user(net_shard);
    engine_shard_flushed(shard->engine);
}

/* The connections of a shard use the method and route tables of that shard. */
static enum status protocol_shard_new(void *ctx, struct net_shard *net_shard, void **ret_shared)
{
    const struct spoken *spoken = ctx;
    struct server_shard *shard = net_shard_user(net_shard);
    struct wire_server *wire_server;
    const struct grpc_services *services = etcd_api_services(shard->etcd);
    const struct http_routes *routes = etcd_api_routes(shard->etcd);
    if (spoken->role == SERVER_METRICS)
        routes = etcd_api_metrics_routes(shard->etcd);
    if (spoken->role == SERVER_KUBE)
        routes =
            shard->face ? shard->face->routes(shard->face_shard) : kube_api_routes(shard->kube);
    if (spoken->role != SERVER_CLIENTS && spoken->role != SERVER_GRPC)
        services = NULL;
    if (spoken->role == SERVER_GRPC)
        routes = NULL;
    TRY(wire_server_new(services, routes, spoken->limits, &wire_server));
    if (spoken->guarded)
        wire_server_guard(wire_server);
    *ret_shared = wire_server;
    return ST_OK;
}

/* -- The whole -- */

static struct net_stats net_stats(void *ctx)
{
    return net_server_stats(((struct server *)ctx)->net);
}

static bool tls_stats(void *ctx, struct tls_stats *ret_stats)
{
    struct server *server = ctx;
    if (!server->tls)
        return false;
    *ret_stats = server_tls_stats(server->tls);
    return true;
}

static struct mirror_options mirror_options(const struct server_config *config)
{
    struct mirror_options options = config->cluster;
    options.mirror = config->engine;
    options.mirror.shards_max = config->net.shards;
    return options;
}

static enum status open_engine(struct server *server, struct error *error)
{
    server->engine = server->config->open_engine;
    if (server->engine)
        return ST_OK;
    struct engine_local_options options = server->config->engine;
    options.shards_max = server->config->net.shards;
    options.turns = server->turns;
    if (server->config->face) {
        TRY(empty_mirror_open(&options, &server->mirror, error));
        server->engine = empty_mirror_engine(server->mirror);
        return ST_OK;
    }
    if (!server->config->clustered)
        return engine_local_open(&options, &server->engine, error);
    struct mirror_options cluster = mirror_options(server->config);
    cluster.mirror = options;
    return engine_cluster_open(&cluster, &server->engine, error);
}

static enum status open_face(struct server *server, struct error *error)
{
    const struct server_face *face = server->config->face;
    if (!face)
        return ST_OK;
    TRY(face->open(face->ctx, server->engine, server->turns, error));
    server->face_is_open = true;
    return ST_OK;
}

static void close_face(struct server *server)
{
    if (server->face_is_open)
        server->config->face->close(server->config->face->ctx);
}

/* A server that cannot have the key serves everything else. */
static void open_account_key(struct server *server)
{
    char path[PATH_MAX];
    struct error error;
    int len =
        snprintf(path, sizeof(path), "%s/" SERVER_ACCOUNT_KEY, server->config->engine.data_dir);
    enum status status = len > 0 && (size_t)len < sizeof(path)
                             ? tls_key_make(path, &error)
                             : error_set(&error, ST_INVALID, "the path is too long");
    if (status == ST_OK)
        status =
            kube_account_keys_read(&(struct kube_account_settings){.issuers = SERVER_ACCOUNT_ISSUER,
                                                                   .audiences = "",
                                                                   .key_files = "",
                                                                   .signing_key_file = path},
                                   &server->account_keys, &error);
    if (status != ST_OK)
        log_warn("no tokens of service accounts are issued: their key cannot be read or made; "
                 "--kube-service-account-signing-key-file names another",
                 LOG_TEXT("error", error.text));
    server->kube.accounts = server->account_keys;
}

static void close_engine(struct server *server)
{
    if (server->config->open_engine)
        return;
    if (server->config->face)
        empty_mirror_close(server->mirror);
    else if (server->config->clustered)
        engine_cluster_close(server->engine);
    else
        engine_local_close(server->engine);
}

static bool same_place(const struct url *a, const struct url *b)
{
    char first[ADDRESS_TEXT_BYTES], second[ADDRESS_TEXT_BYTES];
    address_format(&a->address, first);
    address_format(&b->address, second);
    bool chosen_later = !address_is_path(&a->address) && address_port(&a->address) == 0;
    return !chosen_later && strcmp(first, second) == 0;
}

static enum status open_tls(struct server *server, struct error *error)
{
    const struct server_config *config = server->config;
    for (size_t i = 0; i < config->listen_count; i++)
        if (config->listen[i].secure)
            return server_tls_new(&config->tls, config->engine.data_dir, config->listen,
                                  config->listen_count, config->net.shards, &server->tls, error);
    return ST_OK;
}

static enum status refuse_shared(const struct url *url, enum server_role role, struct error *error)
{
    static const char *const names[SERVER_ROLES] = {
        "client-http-urls", "client-http-urls", "client-http-urls", "metrics-urls", "kube-urls"};
    char text[URL_TEXT_BYTES];
    url_format(url, text);
    return error_set(error, ST_INVALID,
                     "cannot bind both --listen-client-urls and --listen-%s on "
                     "the same url %s",
                     names[role], text);
}

static void make_spoken(struct server *server)
{
    server->kube_limits = server->config->wire;
    server->kube_limits.http.body_bytes_max = KUBE_BODY_BYTES_READ;
    for (int i = 0; i < 2 * SERVER_ROLES; i++) {
        struct spoken *spoken = &server->spoken[i / 2][i % 2];
        spoken->role = (enum server_role)(i / 2);
        spoken->guarded = i % 2;
        spoken->limits = spoken->role == SERVER_KUBE ? &server->kube_limits : &server->config->wire;
        spoken->kind = net_wire_kind(&spoken->wire);
        spoken->kind.shard_new = protocol_shard_new;
        spoken->kind.ctx = spoken;
    }
}

/* As in etcd, an http and an https URL may share a port: the first bytes distinguish them. */
static enum status listen_on(struct server *server, size_t at, struct error *error)
{
    const struct server_config *config = server->config;
    bool secure = false, plain = false;
    for (size_t i = 0; i < config->listen_count; i++) {
        if (i != at && !same_place(&config->listen[i], &config->listen[at]))
            continue;
        if (config->roles[i] != config->roles[at])
            return refuse_shared(&config->listen[at], config->roles[at], error);
        if (i < at) {
            server->bound[at] = server->bound[i];
            server->bound[at].secure = config->listen[at].secure;
            return ST_OK;
        }
        secure |= config->listen[i].secure;
        plain |= !config->listen[i].secure;
    }
    /* Only browsers on this machine can reach the loopback address, and none can reach a Unix
     * socket. */
    const struct address *address = &config->listen[at].address;
    bool guarded = config->guards_pages && address_is_local(address) && !address_is_path(address);
    const struct protocol_kind *kind = &server->spoken[config->roles[at]][guarded].kind;
    if (secure)
        kind = server_tls_wrap(server->tls, kind, plain);
    enum status status =
        net_server_listen(server->net, &config->listen[at], kind, &server->bound[at], error);
    if (status != ST_IN_USE || config->roles[at] != SERVER_KUBE || !config->kube_optional)
        return status;
    log_warn("the Kubernetes API is not served: its default address is taken; choose another with "
             "--listen-kube-urls, or none with an empty one",
             LOG_TEXT("error", error->text));
    server->kube_skipped = true;
    return ST_OK;
}

static enum status make_net(struct server *server, struct error *error)
{
    const struct server_config *config = server->config;
    const struct net_app app = {
        .shard_start = shard_start,
        .shard_stop = shard_stop,
        .after_input = after_input,
        .end_of_turn = end_of_turn,
        .after_flush = after_flush,
        .ctx = server,
    };
    struct net_options options = config->net;
    options.turns = server->turns;
    options.budget = server->budget;
    enum status status = net_server_new(network_posix(), &options, &app, &server->net);
    if (status != ST_OK)
        return error_set(error, status, "cannot make %u I/O threads: %s", config->net.shards,
                         status_reason(status));
    return ST_OK;
}

/* Clients connect to the addresses in the member list, so port 0 is replaced by the real port. */
static void show_bound(struct server *server)
{
    const struct server_config *config = server->config;
    size_t count = config->etcd.client_url_count;
    server->shown = xcalloc(count, sizeof(*server->shown));
    server->shown_texts = xcalloc(count, sizeof(*server->shown_texts));
    for (size_t i = 0; i < count; i++) {
        const struct address *address = &config->listen[i].address;
        server->shown[i] = config->etcd.client_urls[i];
        if (address_is_path(address) || address_port(address) != 0)
            continue;
        url_format(&server->bound[i], server->shown_texts[i]);
        server->shown[i] = slice_from_text(server->shown_texts[i]);
    }
    server->etcd.client_urls = server->shown;
}

static enum status open_listeners(struct server *server, struct error *error)
{
    const struct server_config *config = server->config;
    TRY(make_net(server, error));
    TRY(open_tls(server, error));
    make_spoken(server);
    server->bound = xcalloc(config->listen_count, sizeof(*server->bound));
    for (size_t i = 0; i < config->listen_count; i++)
        TRY(listen_on(server, i, error));
    if (config->shows_listen)
        show_bound(server);
    return ST_OK;
}

static enum status start_worker(struct server *server)
{
    struct turn *turn;
    TRY(turns_join(server->turns, "worker", &turn));
    server->etcd.worker = server->kube.worker = worker_new("vigil-worker", WORKER_QUEUE_MAX);
    worker_set_turn(server->kube.worker, turn);
    return worker_start(server->kube.worker);
}

enum status server_start(const struct server_config *config, struct server **ret_server,
                         struct error *error)
{
    AUTO(server_freep) struct server *server = xcalloc(1, sizeof(*server));
    server->config = config;
    server->etcd = config->etcd;
    server->kube = config->kube;
    server->kube.written = &server->kube_written;
    server->kube.unmade = &server->kube_unmade;
    server->kube.anonymous = &server->kube_anonymous;
    TRY(turn_log_new(&server->turns));
    server->etcd.turns = server->turns;
    TRY(metric_set_new(ETCD_METHOD_SLOTS, &server->method_counts));
    if (config->kube_wanted) {
        TRY(kube_metrics_new(&server->kube.metrics));
        server->etcd.more_metrics = write_kube_metrics;
        server->etcd.more_metrics_ctx = &server->kube;
        server->kube.schemas = schema_pool_new();
    }
    if (config->face) {
        assert(!config->open_engine && !config->clustered && !config->kube_wanted);
        server->etcd.more_metrics = write_face_metrics;
        server->etcd.more_metrics_ctx = server;
        server->etcd.ready = config->face->ready;
        server->etcd.ready_ctx = config->face->ctx;
    }
    TRY(start_worker(server));
    server->etcd.method_counts = server->method_counts;
    server->etcd.health_counts = &server->health_counts;
    server->etcd.net_stats = net_stats;
    server->etcd.tls_stats = tls_stats;
    server->etcd.net_ctx = server;
    TRY(budget_new(config->client_bytes_max, &server->budget));
    server->etcd.budget = server->budget;
    if (config->owns_process)
        TRY(trimmer_start(server->budget, &server->trimmer));
    server->kube.budget = server->budget;
    if (config->kube_wanted)
        server->kube.lookups = kube_lookup_pool_new(server->budget);
    if (config->kube_wanted && server->kube.authorization >= KUBE_AUTHORIZATION_NODE)
        server->kube.nodes = kube_nodes_new(server->budget, 0);
    if (config->open_auth)
        server->auth = *config->open_auth;
    else
        TRY(server_auth_init(&server->auth, &config->auth, server->turns, error));
    server->etcd.issuer = server->auth.issuer;
    server->etcd.hasher = server->auth.hasher;
    server->etcd.bcrypt_cost = server->auth.bcrypt_cost;
    server->etcd.names_from_certificates = config->auth.names_from_certificates;
    TRY(open_engine(server, error));
    TRY(open_face(server, error));
    if (config->makes_account_key)
        open_account_key(server);
    TRY(open_listeners(server, error));
    enum status status = net_server_start(server->net);
    if (status != ST_OK)
        return error_set(error, status, "cannot start %u I/O threads: %s", config->net.shards,
                         status_reason(status));
    server->started = true;
    *ret_server = TAKE(server);
    return ST_OK;
}

const struct slice *server_client_urls(const struct server *server)
{
    return server->etcd.client_urls;
}

const struct url *server_bound(const struct server *server, size_t i)
{
    bool skipped = server->kube_skipped && server->config->roles[i] == SERVER_KUBE;
    return skipped ? NULL : &server->bound[i];
}

struct engine *server_engine(struct server *server)
{
    return server->engine;
}

void server_drain(struct server *server)
{
    net_server_drain(server->net);
}

bool server_drained(struct server *server)
{
    return net_server_drained(server->net);
}

int64_t server_end_watches(struct server *server)
{
    return engine_cluster_end_watches(server->engine);
}

enum status server_discard_mirror(const struct server_config *config, int64_t void_until,
                                  struct error *error)
{
    struct mirror_options options = mirror_options(config);
    return engine_cluster_discard(&options, void_until, error);
}

void server_free(struct server *server)
{
    if (!server)
        return;
    if (server->started)
        net_server_stop(server->net);
    net_server_free(server->net);
    worker_free(server->kube.worker);
    server_tls_free(server->tls);
    close_face(server);
    close_engine(server);
    kube_lookup_pool_free(server->kube.lookups); /* which has an account with the budget */
    kube_nodes_free(server->kube.nodes);         /* the same */
    trimmer_free(server->trimmer);
    budget_free(server->budget); /* everything charged to it has been released */
    if (!server->config->open_auth)
        server_auth_fini(&server->auth);
    metric_set_free(server->method_counts);
    turns_free(server->turns);
    kube_metrics_free(server->kube.metrics);
    kube_account_keys_free(server->account_keys);
    schema_pool_free(server->kube.schemas);
    free(server->bound);
    free(server->shown);
    free(server->shown_texts);
    free(server);
}
