#include "embed/store.h"

#include "client/driver/scope.h"
#include "embed/history.h"
#include "embed/listener.h"
#include "engine/local/local.h"
#include "etcd/shared/member_id.h"

#include <signal.h>
#include <stdio.h>

#define EMULATED_VERSION "3.7.0"
#define TOKEN_TTL_S 300

static const struct slice peer_urls[] = {SLICE_LITERAL("http://localhost:2380")};

/* -- What the engine reports -- */

static void tell(const struct embed_store *store, int level, const char *text)
{
    struct driver_scope scope;
    if (!store->options.log)
        return;
    driver_scope_enter(&scope, store);
    store->options.log(store->options.log_user, level, text);
    driver_scope_leave(&scope);
}

static void on_warning(void *ctx, const char *text)
{
    tell(ctx, VIGIL_LOG_WARN, text);
}

static void on_cut(void *ctx, const struct engine_local_cut *cut)
{
    char text[200];
    snprintf(text, sizeof(text),
             "cut off the end of the log, a write that was not finished: %llu bytes (%s)",
             (unsigned long long)cut->bytes, cut->reason);
    tell(ctx, VIGIL_LOG_INFO, text);
}

const char *embed_store_failure(const struct embed_store *store)
{
    return atomic_load_explicit(&store->failed, memory_order_acquire) ? store->failure : NULL;
}

/* -- Members -- */

static void end_members(struct embed_store *store)
{
    struct embed_member *member;
    LOCK_SCOPE(&store->lock);
    LIST_FOREACH (member, &store->members, in_store)
        member->failed(member);
    if (store->listener)
        embed_listener_drain(store->listener);
}

/* On a thread of the engine. The clients end everything they have, and then the program learns it.
 */
static void on_failure(void *ctx, const char *text)
{
    struct embed_store *store = ctx;
    struct driver_scope scope;
    snprintf(store->failure, sizeof(store->failure), "the store has stopped: %s", text);
    atomic_store_explicit(&store->failed, true, memory_order_release);
    end_members(store);
    driver_scope_enter(&scope, store);
    store->options.on_failure(store->options.on_failure_user, store->failure);
    driver_scope_leave(&scope);
}

void embed_store_join(struct embed_store *store, struct embed_member *member)
{
    LOCK_SCOPE(&store->lock);
    list_push_back(&store->members, &member->in_store);
    if (embed_store_failure(store))
        member->failed(member);
}

void embed_store_leave(struct embed_store *store, struct embed_member *member)
{
    LOCK_SCOPE(&store->lock);
    if (member->in_store.next)
        list_remove(&member->in_store);
}

/* -- Settings -- */

static void set_etcd(struct embed_store *store)
{
    store->etcd = (struct etcd_config){
        .version = EMULATED_VERSION,
        .cluster_version = EMULATED_VERSION,
        .txn_ops_max = ETCD_TXN_OPS_MAX_DEFAULT,
        .request_bytes_max = store->options.request_bytes_max,
        .member_name = "default",
        .peer_urls = peer_urls,
        .peer_url_count = COUNT_OF(peer_urls),
        .issuer = store->auth.issuer,
        .hasher = store->auth.hasher,
        .bcrypt_cost = store->auth.bcrypt_cost,
    };
    store->wire = WIRE_LIMITS_DEFAULT;
    size_t message_bytes = store->options.request_bytes_max + ETCD_MESSAGE_OVERHEAD_BYTES;
    store->wire.grpc.receive_bytes_max = (uint32_t)message_bytes;
    store->wire.http.body_bytes_max = 2 * message_bytes;
}

/* retention 0: the program compacts. */
static struct etcd_compactor_options compaction_of(const vigil_embedded_options *options)
{
    bool by_time = options->keep_history_ms > 0;
    return (struct etcd_compactor_options){
        .mode = by_time ? AUTO_COMPACTION_PERIODIC : AUTO_COMPACTION_REVISION,
        .retention =
            by_time ? options->keep_history_ms * NS_PER_MS : options->keep_history_revisions,
    };
}

static struct engine_local_options engine_options(struct embed_store *store, const char *directory)
{
    uint64_t member = member_id_make(peer_urls, COUNT_OF(peer_urls), SLICE_LITERAL("etcd-cluster"));
    return (struct engine_local_options){
        .data_dir = directory,
        .checkpoint_bytes = store->options.checkpoint_bytes,
        .quota_bytes = store->options.quota_bytes,
        .member_id = member,
        .cluster_id = cluster_id_make(member),
        .peer_urls = peer_urls,
        .peer_url_count = COUNT_OF(peer_urls),
        .learners_max = 1,
        .shards_max = VIGIL_EMBEDDED_CLIENTS_MAX + STORE_LISTEN_THREADS + STORE_HISTORY_THREADS,
        .watch_fragment_bytes = store->options.request_bytes_max + ETCD_MESSAGE_OVERHEAD_BYTES,
        .watch_progress_interval_ns = store->options.watch_progress_ms * NS_PER_MS,
        .leaves_signals = true,
        .has_readers = true,
        .on_failure = store->options.on_failure ? on_failure : NULL,
        .on_warning = on_warning,
        .on_cut = on_cut,
        .ctx = store,
    };
}

/* -- Opening -- */

static enum status open_engine(struct embed_store *store, const char *directory,
                               struct error *error)
{
    struct server_auth_config auth = {
        .simple_ttl_s = TOKEN_TTL_S,
        .bcrypt_cost = AUTH_BCRYPT_COST_DEFAULT,
    };
    TRY(server_auth_init(&store->auth, &auth, NULL, error));
    set_etcd(store);
    struct engine_local_options options = engine_options(store, directory);
    TRY(engine_local_open(&options, &store->engine, error));
    struct etcd_compactor_options compaction = compaction_of(&store->options);
    return compaction.retention ? embed_history_new(store->engine, &compaction, &store->history)
                                : ST_OK;
}

/* The threads of the store take no signals: they are for the program. */
static void block_signals(sigset_t *ret_before)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, ret_before);
}

enum status embed_store_init(struct embed_store *store, const char *directory,
                             const vigil_embedded_options *options, struct error *error)
{
    sigset_t before;
    lock_init(&store->lock);
    list_init(&store->members);
    store->options = *options;
    store->options.client = NULL;
    block_signals(&before);
    enum status status = open_engine(store, directory, error);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

/* A failure may be reported until the engine is closed. */
static struct embed_listener *take_listener(struct embed_store *store)
{
    LOCK_SCOPE(&store->lock);
    return TAKE(store->listener);
}

void embed_store_fini(struct embed_store *store)
{
    embed_listener_free(take_listener(store));
    embed_history_free(store->history);
    engine_local_close(store->engine);
    server_auth_fini(&store->auth);
    lock_fini(&store->lock);
}

/* -- Listening -- */

static bool begin_listening(struct embed_store *store)
{
    LOCK_SCOPE(&store->lock);
    bool first = !store->listens;
    store->listens = true;
    return first;
}

/* False: the store has failed meanwhile. */
static bool end_listening(struct embed_store *store, struct embed_listener *listener)
{
    LOCK_SCOPE(&store->lock);
    bool works = !embed_store_failure(store);
    store->listener = works ? listener : NULL;
    store->listens = store->listener;
    return works;
}

static enum status start_listening(struct embed_store *store, const char *client_urls,
                                   const char *kube_urls, struct embed_listener **ret_listener,
                                   struct error *error)
{
    sigset_t before;
    struct embed_listener_options options = {
        .engine = store->engine,
        .etcd = &store->etcd,
        .wire = &store->wire,
        .auth = &store->auth,
        .threads = STORE_LISTEN_THREADS,
        .client_urls = client_urls,
        .kube_urls = kube_urls,
    };
    block_signals(&before);
    enum status status = embed_listener_new(&options, ret_listener, error);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

enum status embed_store_listen(struct embed_store *store, const char *client_urls,
                               const char *kube_urls, char *urls, size_t size, struct error *error)
{
    struct embed_listener *listener = NULL;
    if (!begin_listening(store))
        return error_set(error, ST_EXISTS, "the store listens already");
    enum status status = start_listening(store, client_urls, kube_urls, &listener, error);
    if (status == ST_OK && urls)
        embed_listener_urls(listener, urls, size);
    if (!end_listening(store, listener)) {
        embed_listener_free(listener);
        return error_set(error, ST_STOPPED, "%s", embed_store_failure(store));
    }
    return status;
}
