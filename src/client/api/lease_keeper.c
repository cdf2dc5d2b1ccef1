#include "client/api/lease_keeper.h"

#include "base/container/hash_map.h"
#include "base/memory/arena.h"
#include "base/random.h"
#include "client/call/queue.h"
#include "client/call/stream.h"
#include "client/connect/error.h"
#include "client/driver/shared.h"
#include "codec/pb/rpc.pb.h"

#include <stdlib.h>
#include <vigil/lease.h>

enum { SCRATCH_BYTES = 256 };
#define TTL_S_MAX INT64_C(9000000000) /* as in etcd */

struct lease_keeper {
    struct client_stream stream;
    struct vigil_client *client; /* borrowed: it owns the keeper */
    struct driver_part part;
    struct hash_map kept; /* kept_lease by id */
};

/* One lease at the server. */
struct kept_lease {
    int64_t id;
    struct lease_keeper *keeper;
    int64_t ttl_ns;
    struct timer renew, expire;
    struct list leases; /* vigil_lease.in_kept; never empty */
};

enum { LEASE_WANTS_START = 1, LEASE_WANTS_END = 2 };

/* What a queue gets of a lease that was begun for it. */
struct lease_item {
    struct queue_item in_queue;
    struct vigil_lease *lease; /* borrowed: it owns this */
    vigil_error error;         /* why it is lost */
};

struct vigil_lease {
    struct vigil_client *client; /* a reference */
    int64_t id, ttl;
    vigil_lease_lost lost;
    void *user;
    struct lease_item *item; /* with a queue; owned */
    struct driver_object object;
    struct driver_shared shared; /* references: the user's, and the keeper's until it is lost */
    struct kept_lease *kept;     /* NULL: not kept yet, or lost */
    struct list in_kept;
};

static void lease_unref(struct vigil_lease *lease)
{
    if (!driver_shared_unref(&lease->shared))
        return;
    struct vigil_client *client = lease->client;
    if (lease->item)
        queue_item_fini(&lease->item->in_queue);
    free(lease->item);
    free(lease);
    driver_unref(&client->driver);
}

static struct slice id_of(const void *value)
{
    const struct kept_lease *kept = value;
    return slice_of(&kept->id, sizeof(kept->id));
}

static struct kept_lease *find(const struct lease_keeper *keeper, int64_t id)
{
    return hash_map_get(&keeper->kept, slice_of(&id, sizeof(id)));
}

void lease_keeper_check(const struct lease_keeper *keeper)
{
    const struct kept_lease *kept;
    const struct vigil_lease *lease;
    client_stream_check(&keeper->stream);
    hash_map_check(&keeper->kept);
    MAP_FOREACH (kept, &keeper->kept) {
        assert(!list_empty(&kept->leases));
        assert(kept->renew.set && kept->expire.set);
        LIST_FOREACH (lease, &kept->leases, in_kept)
            assert(lease->kept == kept && lease->id == kept->id);
    }
}

/* -- The end of a lease -- */

static void kept_free(struct kept_lease *kept)
{
    struct lease_keeper *keeper = kept->keeper;
    struct loop *loop = keeper->client->driver.loop;
    assert(list_empty(&kept->leases));
    loop_timer_cancel(loop, &kept->renew);
    loop_timer_cancel(loop, &kept->expire);
    (void)hash_map_remove(&keeper->kept, slice_of(&kept->id, sizeof(kept->id)));
    client_stream_want(&keeper->stream, keeper->kept.count > 0);
    free(kept);
}

/* Reports the loss through the queue or the callback, whichever the program uses, and releases the
 * loop's reference. */
static void tell_lost(struct vigil_lease *lease, const vigil_error *error)
{
    struct vigil_client *client = lease->client;
    if (lease->item) {
        lock_take(&client->driver.lock);
        lease->item->error = *error;
        queue_item_push(&lease->item->in_queue);
        lock_release(&client->driver.lock);
    }
    if (lease->lost && driver_callback_begin(&client->driver, &lease->object)) {
        lease->lost(lease, error, lease->user);
        driver_callback_end(&client->driver);
    }
    lease_unref(lease);
}

static void lose(struct kept_lease *kept, const vigil_error *error)
{
    struct list leases;
    list_init(&leases);
    list_append(&leases, &kept->leases);
    /* Before the callbacks: they may keep a lease with the same id again. */
    kept_free(kept);
    for (struct list *link; (link = list_pop_front(&leases));) {
        struct vigil_lease *lease = LIST_ENTRY(link, struct vigil_lease, in_kept);
        lease->kept = NULL;
        tell_lost(lease, error);
    }
}

static void lose_all(struct lease_keeper *keeper, const vigil_error *error)
{
    /* From the beginning after each one, because the callbacks may change the map. */
    size_t at = 0;
    for (struct kept_lease *kept; (kept = hash_map_each(&keeper->kept, &at)); at = 0)
        lose(kept, error);
}

static void on_expire(struct timer *timer)
{
    struct kept_lease *kept = CONTAINER_OF(timer, struct kept_lease, expire);
    const char *failure = channel_failure(kept->keeper->client->channel);
    vigil_error error;
    client_error_set(&error, VIGIL_ERROR_TIMEOUT, VIGIL_UNKNOWN,
                     "the lease was not renewed in time%s%s", *failure ? ": " : "", failure);
    lose(kept, &error);
}

/* -- Renewals -- */

static void renew(struct kept_lease *kept)
{
    struct lease_keeper *keeper = kept->keeper;
    struct loop *loop = keeper->client->driver.loop;
    struct pb_lease_keep_alive_request request = {.id = kept->id};
    /* Without a stream nothing is sent: on_open renews every lease as soon as there is one. */
    if (client_stream_is_open(&keeper->stream))
        client_stream_send(&keeper->stream, &pb_lease_keep_alive_request_table, &request);
    loop_timer_set(loop, &kept->renew, loop_now_ns(loop) + kept->ttl_ns / 3);
}

static void on_renew(struct timer *timer)
{
    renew(CONTAINER_OF(timer, struct kept_lease, renew));
}

static void on_open(struct client_stream *stream)
{
    struct lease_keeper *keeper = CONTAINER_OF(stream, struct lease_keeper, stream);
    struct kept_lease *kept;
    MAP_FOREACH (kept, &keeper->kept)
        renew(kept);
}

static void renewed(struct kept_lease *kept, int64_t ttl)
{
    struct loop *loop = kept->keeper->client->driver.loop;
    kept->ttl_ns = (ttl < TTL_S_MAX ? ttl : TTL_S_MAX) * NS_PER_S;
    loop_timer_set(loop, &kept->renew, loop_now_ns(loop) + kept->ttl_ns / 3);
    loop_timer_set(loop, &kept->expire, clock_add(loop_now_ns(loop), kept->ttl_ns));
}

static void on_message(struct client_stream *stream, struct slice message)
{
    struct lease_keeper *keeper = CONTAINER_OF(stream, struct lease_keeper, stream);
    _Alignas(ARENA_ALIGN) uint8_t scratch[SCRATCH_BYTES];
    struct pb_lease_keep_alive_response response;
    struct arena arena;
    arena_init(&arena, scratch, sizeof(scratch), SIZE_MAX);
    enum status status = pb_decode(&pb_lease_keep_alive_response_table, message, &arena, &response);
    arena_fini(&arena);
    if (status != ST_OK) {
        client_stream_give_up(stream);
        return;
    }
    client_stream_works(stream);
    struct kept_lease *kept = find(keeper, response.id);
    if (!kept)
        return; /* the program has freed it while the answer was on its way */
    if (response.ttl > 0) {
        renewed(kept, response.ttl);
    } else {
        /* A TTL of 0 is how etcd says that it does not know the lease. */
        vigil_error error;
        client_error_from_server(&error, GRPC_NOT_FOUND,
                                 slice_from_text(status_text(ST_LEASE_NOT_FOUND)));
        lose(kept, &error);
    }
}

/* Nothing to do: every lease is renewed when the stream is open again. */
static void on_break(struct client_stream *stream)
{
    (void)stream;
}

static void on_refused(struct client_stream *stream, enum grpc_code code, struct slice text)
{
    vigil_error error;
    client_error_from_server(&error, code, text);
    lose_all(CONTAINER_OF(stream, struct lease_keeper, stream), &error);
}

/* -- Life -- */

/* Why the client has ended. */
static void set_end_error(const struct driver *driver, vigil_error *error)
{
    client_error_set(error, driver_end_code(&driver->end), VIGIL_NOT_SENT, "%s",
                     driver_end_text(&driver->end));
}

static void end_part(struct driver_part *part)
{
    struct lease_keeper *keeper = CONTAINER_OF(part, struct lease_keeper, part);
    vigil_error error;
    set_end_error(&keeper->client->driver, &error);
    lose_all(keeper, &error);
    client_stream_fini(&keeper->stream);
}

static void free_part(struct driver_part *part)
{
    struct lease_keeper *keeper = CONTAINER_OF(part, struct lease_keeper, part);
    assert(keeper->kept.count == 0);
    client_stream_fini(&keeper->stream);
    hash_map_fini(&keeper->kept);
    free(keeper);
}

enum status lease_keeper_new(struct vigil_client *client, struct lease_keeper **ret_keeper)
{
    static const struct client_stream_hooks hooks = {
        .on_open = on_open,
        .on_message = on_message,
        .on_break = on_break,
        .on_refused = on_refused,
    };
    struct lease_keeper *keeper = calloc(1, sizeof(*keeper));
    if (!keeper)
        return ST_NOMEM;
    keeper->client = client;
    keeper->part.end = end_part;
    keeper->part.free = free_part;
    hash_map_init(&keeper->kept, id_of, random_seed_system());
    client_stream_init(&keeper->stream, client, &hooks,
                       SLICE_LITERAL("/etcdserverpb.Lease/LeaseKeepAlive"), false);
    list_push_back(&client->driver.parts, &keeper->part.in_driver);
    *ret_keeper = keeper;
    return ST_OK;
}

/* -- Commands -- */

static enum status kept_new(struct lease_keeper *keeper, const struct vigil_lease *lease,
                            struct kept_lease **ret_kept)
{
    struct kept_lease *kept = calloc(1, sizeof(*kept));
    void *replaced = NULL;
    if (!kept)
        return ST_NOMEM;
    kept->id = lease->id;
    kept->keeper = keeper;
    kept->renew.fn = on_renew;
    kept->expire.fn = on_expire;
    list_init(&kept->leases);
    if (hash_map_put(&keeper->kept, kept, &replaced) != ST_OK) {
        free(kept);
        return ST_NOMEM;
    }
    renewed(kept, lease->ttl);
    renew(kept);
    client_stream_want(&keeper->stream, true);
    *ret_kept = kept;
    return ST_OK;
}

static void start(struct vigil_lease *lease)
{
    struct lease_keeper **keeper = &lease->client->lease_keeper;
    struct kept_lease *kept = NULL;
    vigil_error error;
    if (lease->client->driver.ended) {
        set_end_error(&lease->client->driver, &error);
        tell_lost(lease, &error);
        return;
    }
    /* Handles of the same lease share its renewals, and all leases share one stream. */
    enum status status = *keeper ? ST_OK : lease_keeper_new(lease->client, keeper);
    if (status == ST_OK)
        kept = find(*keeper, lease->id);
    if (status == ST_OK && !kept)
        status = kept_new(*keeper, lease, &kept);
    if (status == ST_OK) {
        lease->kept = kept;
        list_push_back(&kept->leases, &lease->in_kept);
    } else {
        client_error_set(&error, VIGIL_ERROR_MEMORY, VIGIL_NOT_SENT, "out of memory");
        tell_lost(lease, &error);
    }
}

static void end(struct vigil_lease *lease)
{
    struct kept_lease *kept = lease->kept;
    if (!kept)
        return;
    list_remove(&lease->in_kept);
    lease->kept = NULL;
    if (list_empty(&kept->leases))
        kept_free(kept);
    lease_unref(lease);
}

static void run_command(struct driver_command *command)
{
    struct vigil_lease *lease = CONTAINER_OF(command, struct vigil_lease, shared.command);
    uint32_t wanted = driver_shared_wanted(&lease->shared);
    if (wanted & LEASE_WANTS_START)
        start(lease);
    if (wanted & LEASE_WANTS_END)
        end(lease);
    lease_unref(lease);
}

/* -- Public functions -- */

static int lease_new(vigil_client *client, int64_t id, int64_t ttl, void *user,
                     struct vigil_lease **ret_lease)
{
    if (!client || id == 0 || ttl <= 0)
        return VIGIL_ERROR_ARGUMENT;
    if (driver_is_inherited(&client->driver))
        return VIGIL_ERROR_SYSTEM;
    struct vigil_lease *lease = calloc(1, sizeof(*lease));
    if (!lease)
        return VIGIL_ERROR_MEMORY;
    lease->client = client;
    lease->id = id;
    lease->ttl = ttl;
    lease->user = user;
    driver_shared_init(&lease->shared, 2, run_command);
    driver_ref(&client->driver);
    *ret_lease = lease;
    return VIGIL_OK;
}

int vigil_lease_keep(vigil_client *client, int64_t id, int64_t ttl, vigil_lease_lost lost,
                     void *user, vigil_lease **ret_lease)
{
    struct vigil_lease *lease;
    int code = lease_new(client, id, ttl, user, &lease);
    if (code != VIGIL_OK)
        return code;
    lease->lost = lost;
    *ret_lease = lease;
    driver_shared_want(&lease->shared, &lease->client->driver, LEASE_WANTS_START);
    return VIGIL_OK;
}

static void ref_item(struct queue_item *item)
{
    driver_shared_ref(&CONTAINER_OF(item, struct lease_item, in_queue)->lease->shared);
}

static void unref_item(struct queue_item *item)
{
    lease_unref(CONTAINER_OF(item, struct lease_item, in_queue)->lease);
}

int vigil_queue_lease(vigil_queue *queue, int64_t id, int64_t ttl, void *user,
                      vigil_lease **ret_lease)
{
    static const struct queue_item_ops item_ops = {.ref = ref_item, .unref = unref_item};
    struct vigil_lease *lease;
    if (!queue)
        return VIGIL_ERROR_ARGUMENT;
    struct lease_item *item = calloc(1, sizeof(*item));
    if (!item)
        return VIGIL_ERROR_MEMORY;
    int code = lease_new(queue_client(queue), id, ttl, user, &lease);
    if (code != VIGIL_OK) {
        free(item);
        return code;
    }
    item->lease = lease;
    item->in_queue.shown = (vigil_item){
        .what = VIGIL_ITEM_LEASE, .user = lease->user, .lease = lease, .error = &item->error};
    queue_item_init(&item->in_queue, queue, &item_ops);
    lease->item = item;
    *ret_lease = lease;
    driver_shared_want(&lease->shared, &lease->client->driver, LEASE_WANTS_START);
    return VIGIL_OK;
}

void vigil_lease_free(vigil_lease *lease)
{
    if (!lease)
        return;
    driver_drop(&lease->client->driver, &lease->object);
    if (lease->item)
        queue_item_drop(&lease->item->in_queue);
    driver_shared_want(&lease->shared, &lease->client->driver, LEASE_WANTS_END);
    lease_unref(lease);
}

int64_t vigil_lease_id(const vigil_lease *lease)
{
    return lease ? lease->id : 0;
}

void *vigil_lease_user(const vigil_lease *lease)
{
    return lease ? lease->user : NULL;
}
