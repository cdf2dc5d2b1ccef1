#include "embed/handle.h"

#include "base/xalloc.h"
#include "embed/direct.h"
#include "etcd/api.h"
#include "wire/connection.h"

struct embed_handle {
    struct client_local local; /* first */
    struct links links;
    struct embed_store *store;   /* a reference until it is closed */
    struct vigil_client *client; /* NULL until it is open */
    struct embed_member member;  /* from then on */
    struct embed_direct direct;

    /* The loop's thread; NULL before the loop is made and after it has ended. */
    struct engine_shard *shard;
    struct etcd_api *etcd;
    struct wire_server *wire;
};

static struct embed_handle *handle_of(struct client_local *local)
{
    return CONTAINER_OF(local, struct embed_handle, local);
}

/* -- The beginning -- */

static int64_t turn_time(void *loop)
{
    return loop_now_ns(loop);
}

static enum status started(struct links *links)
{
    struct embed_handle *handle = CONTAINER_OF(links, struct embed_handle, links);
    struct embed_store *store = handle->store;
    TRY(engine_shard_new(store->engine, links->loop, &handle->shard));
    TRY(etcd_api_new(&store->etcd, store->engine, handle->shard, &handle->etcd));
    etcd_api_set_clock(handle->etcd, turn_time, links->loop);
    etcd_api_set_loop(handle->etcd, links->loop);
    TRY(wire_server_new(etcd_api_services(handle->etcd), etcd_api_routes(handle->etcd),
                        &store->wire, &handle->wire));
    links->wire = handle->wire;
    embed_direct_init(&handle->direct, store, handle->shard, handle->etcd);
    return ST_OK;
}

/* -- Calls -- */

static bool run(struct client_local *local, struct vigil_call *call)
{
    return embed_direct_run(&handle_of(local)->direct, call);
}

static bool begin(struct client_local *local, struct vigil_call *call)
{
    return embed_direct_begin(&handle_of(local)->direct, call);
}

/* -- Turns -- */

static void after_input(struct client_local *local)
{
    engine_shard_turn_begin(handle_of(local)->shard);
}

static bool end_of_turn(struct client_local *local)
{
    struct embed_handle *handle = handle_of(local);
    engine_shard_turn_end(handle->shard);
    bool more = links_serve(&handle->links);
    engine_shard_flushed(handle->shard);
    return more;
}

/* -- The end -- */

/* Its connections are closed, but writes that they started may still be under way. */
static void stop_shard(struct embed_handle *handle)
{
    if (handle->etcd) {
        embed_direct_close(&handle->direct);
        engine_shard_stop(handle->shard);
        while (etcd_api_busy(handle->etcd) || embed_direct_is_busy(&handle->direct))
            loop_turn(handle->links.loop, 10 * NS_PER_MS);
    }
    wire_server_free(handle->wire);
    etcd_api_free(handle->etcd);
    if (handle->shard)
        engine_shard_free(handle->shard);
    handle->shard = NULL;
    handle->etcd = NULL;
    handle->wire = NULL;
}

static void leave_store(struct embed_handle *handle)
{
    struct embed_store *store = handle->store;
    embed_store_leave(store, &handle->member);
    handle->store = NULL;
    embed_stores_leave(store);
}

static void close_local(struct client_local *local)
{
    struct embed_handle *handle = handle_of(local);
    links_check_closed(&handle->links);
    stop_shard(handle);
    leave_store(handle);
}

static void free_local(struct client_local *local)
{
    struct embed_handle *handle = handle_of(local);
    assert(!handle->store);
    free(handle);
}

static const struct client_local_ops local_ops = {
    .run = run,
    .begin = begin,
    .after_input = after_input,
    .end_of_turn = end_of_turn,
    .close = close_local,
    .free = free_local,
};

static void store_failed(struct embed_member *member)
{
    struct embed_handle *handle = CONTAINER_OF(member, struct embed_handle, member);
    driver_shutdown_for(&handle->client->driver, VIGIL_ERROR_SYSTEM,
                        embed_store_failure(handle->store));
}

/* What a client of a server has and this one does not: endpoints, TLS, and pings. */
static vigil_options client_options(const vigil_options *given)
{
    vigil_options options;
    vigil_options_init(&options);
    if (given && given->size <= sizeof(options))
        memcpy(&options, given, given->size);
    options.endpoints = "unix:///embedded";
    options.srv_domain = options.srv_name = NULL;
    options.ca_file = options.cert_file = options.key_file = options.server_name = NULL;
    options.keepalive_ms = 0;
    return options;
}

struct embed_store *embed_handle_store(vigil_client *client)
{
    return client->local ? handle_of(client->local)->store : NULL;
}

int embed_handle_open(struct embed_store *store, const vigil_options *given,
                      vigil_client **ret_client, vigil_error *error)
{
    vigil_options options = client_options(given);
    struct embed_handle *handle = xcalloc_aligned(_Alignof(struct embed_handle), sizeof(*handle));
    handle->local.ops = &local_ops;
    handle->store = store;
    handle->member.failed = store_failed;
    links_init(&handle->links, started);
    int code = client_new_over(&handle->links.network, &handle->local, &options, ret_client, error);
    if (code != VIGIL_OK)
        return code;
    handle->client = *ret_client;
    handle->client->driver.owner = store;
    embed_store_join(store, &handle->member);
    return VIGIL_OK;
}
