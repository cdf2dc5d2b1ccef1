/* The functions of vigil/watch.h. They only note what the user wants; the loop then does it. */
#include "client/call/prefix.h"
#include "client/connect/metadata.h"
#include "client/watch/watch.h"
#include "client/watch/watch_item.h"
#include "client/watch/watch_observer.h"
#include "client/watch/watch_stream.h"

#include <stdlib.h>

/* What the user wants, as bits of vigil_watch.shared. */
enum {
    WATCH_WANTS_START = 1,
    WATCH_WANTS_RESUME = 2,
    WATCH_WANTS_PROGRESS = 4,
    WATCH_WANTS_END = 8,
};

/* -- Commands -- */

static void end(struct vigil_watch *watch)
{
    if (watch->stream)
        client_watch_stream_remove(watch->stream, watch);
    else if (watch->state != WATCH_ENDED)
        watch_release(watch);
}

static void resume(struct vigil_watch *watch)
{
    /* The command may arrive after the watch has ended by itself. */
    if (watch->state == WATCH_ENDED || watch->state == WATCH_LEAVING)
        return;
    watch->paused = false;
    if (watch_deliver_held(watch) != ST_OK) {
        watch_deliver_failure(watch, VIGIL_ERROR_MEMORY, "out of memory");
        end(watch);
    } else if (watch->state == WATCH_ENDING && !watch->held && !watch->end_lost) {
        watch_release(watch);
    } else if (watch->state == WATCH_PARKED && !watch->paused) {
        client_watch_stream_resume(watch->stream, watch);
    }
}

static void run_command(struct driver_command *command)
{
    struct vigil_watch *watch = CONTAINER_OF(command, struct vigil_watch, shared.command);
    uint32_t wanted = driver_shared_wanted(&watch->shared);
    if (wanted & WATCH_WANTS_START) {
        struct vigil_client *client = watch->client;
        struct client_metadata *metadata = watch->metadata;
        watch->in_stream = (struct list){0};
        if (client->driver.ended) {
            watch_fail(watch, driver_end_code(&client->driver.end),
                       driver_end_text(&client->driver.end));
        } else if (client_watch_stream_get(client, watch->require_leader, &metadata,
                                           &watch->stream) != ST_OK) {
            watch_fail(watch, VIGIL_ERROR_MEMORY, "out of memory");
        } else {
            client_watch_stream_add(watch->stream, watch);
        }
        free(metadata);
    }
    if (wanted & WATCH_WANTS_RESUME)
        resume(watch);
    if ((wanted & WATCH_WANTS_PROGRESS) && watch->stream)
        client_watch_stream_request_progress(watch->stream);
    if (wanted & WATCH_WANTS_END)
        end(watch);
    watch_unref(watch);
}

/* -- Public functions -- */

void vigil_watch_options_init(vigil_watch_options *options)
{
    *options = (vigil_watch_options){.size = sizeof(*options), .buffer_bytes = 1u << 20};
}

static void watch_init(struct vigil_watch *watch, vigil_client *client,
                       const vigil_watch_options *options, const struct prefixed_range *range)
{
    *watch = (struct vigil_watch){
        .client = client,
        .entry.id = WATCH_NO_ID,
        .prev_kv = options->prev_kv,
        .progress_notify = options->progress_notify,
        .created_wanted = options->created_notify,
        .no_put = options->no_put,
        .no_delete = options->no_delete,
        .require_leader = options->require_leader,
        .fragment = !options->no_fragment,
        .next_revision = options->revision,
        .delivered = options->revision - 1,
        .held_max = (uint32_t)size_min(options->buffer_bytes, UINT32_MAX / 2),
        .key_len = (uint32_t)range->key.len,
        .end_len = (uint32_t)range->end.len,
    };
    driver_shared_init(&watch->shared, 2, run_command);
    slice_copy(watch->bytes, range->key);
    slice_copy(watch->bytes + range->key.len, range->end);
    driver_ref(&client->driver);
    counter_add(&client->counters.watches, 1);
}

/* Returns a vigil_code; the watch has no callback yet, and is not started. */
static int watch_create(vigil_client *client, const vigil_watch_options *options, void *user,
                        struct vigil_watch **ret_watch)
{
    AUTO(prefixed_range_fini) struct prefixed_range range = {0};
    AUTO(client_metadata_freep) struct client_metadata *metadata = NULL;
    vigil_watch_options complete;
    vigil_watch_options_init(&complete);
    /* After fork the child has no loop thread and shares the parent's connection. */
    if (driver_is_inherited(&client->driver))
        return VIGIL_ERROR_SYSTEM;
    if (options->size == 0 || options->size > sizeof(complete))
        return VIGIL_ERROR_ARGUMENT;
    memcpy(&complete, options, options->size);
    if (complete.revision < 0 || complete.key.size > client->send_bytes_max ||
        complete.range_end.size > client->send_bytes_max)
        return VIGIL_ERROR_ARGUMENT;
    enum status status = client_metadata_new(complete.metadata, complete.metadata_count, &metadata);
    if (status != ST_OK)
        return status == ST_NOMEM ? VIGIL_ERROR_MEMORY : VIGIL_ERROR_ARGUMENT;
    struct slice key = slice_of(complete.key.data, complete.key.size);
    struct slice range_end = slice_of(complete.range_end.data, complete.range_end.size);
    if ((complete.prefix ? prefix_all(client->prefix, key, &range)
                         : prefix_range(client->prefix, key, range_end, &range)) != ST_OK)
        return VIGIL_ERROR_MEMORY;
    struct vigil_watch *watch = malloc(sizeof(*watch) + range.key.len + range.end.len);
    if (!watch)
        return VIGIL_ERROR_MEMORY;
    watch_init(watch, client, &complete, &range);
    watch->metadata = TAKE(metadata);
    watch->user = user;
    *ret_watch = watch;
    return VIGIL_OK;
}

int watch_new_observed(vigil_client *client, const vigil_watch_options *options,
                       const struct watch_observer *observer, void *user, vigil_watch **ret_watch)
{
    int code = watch_create(client, options, user, ret_watch);
    if (code != VIGIL_OK)
        return code;
    (*ret_watch)->observer = observer;
    (*ret_watch)->object.internal = true;
    driver_shared_want(&(*ret_watch)->shared, &(*ret_watch)->client->driver, WATCH_WANTS_START);
    return VIGIL_OK;
}

int vigil_watch_new(vigil_client *client, const vigil_watch_options *options, vigil_watch_fn fn,
                    void *user, vigil_watch **ret_watch)
{
    struct vigil_watch *watch;
    bool complete = client && options && fn && ret_watch;
    int code = complete ? watch_create(client, options, user, &watch) : VIGIL_ERROR_ARGUMENT;
    if (code != VIGIL_OK)
        return code;
    watch->fn = fn;
    *ret_watch = watch;
    driver_shared_want(&watch->shared, &watch->client->driver, WATCH_WANTS_START);
    return VIGIL_OK;
}

static void ref_watch(struct vigil_watch *watch)
{
    driver_shared_ref(&watch->shared);
}

static void resume_watch(struct vigil_watch *watch)
{
    driver_shared_want(&watch->shared, &watch->client->driver, WATCH_WANTS_RESUME);
}

static void end_watch(struct vigil_watch *watch)
{
    driver_shared_want(&watch->shared, &watch->client->driver, WATCH_WANTS_END);
}

/* One half of the buffer is for the item, the other one for what arrives while it is full. */
static struct watch_item *item_new(struct vigil_watch *watch, struct vigil_queue *queue)
{
    static const struct watch_item_hooks hooks = {
        .ref = ref_watch,
        .unref = watch_unref,
        .resume = resume_watch,
        .end = end_watch,
    };
    struct watch_item_options options = {
        .queue = queue,
        .watch = watch,
        .hooks = &hooks,
        .user = watch->user,
        .revision = watch_delivered(watch),
        .bytes_max = watch->held_max - watch->held_max / 2,
    };
    watch->held_max /= 2;
    return watch_item_new(&options);
}

int vigil_queue_watch(vigil_queue *queue, const vigil_watch_options *options, void *user,
                      vigil_watch **ret_watch)
{
    struct vigil_watch *watch;
    if (!queue || !options || !ret_watch)
        return VIGIL_ERROR_ARGUMENT;
    int code = watch_create(queue_client(queue), options, user, &watch);
    if (code != VIGIL_OK)
        return code;
    struct watch_item *item = item_new(watch, queue);
    if (!item) {
        watch_release(watch);
        watch_unref(watch);
        return VIGIL_ERROR_MEMORY;
    }
    watch->item = item;
    watch->for_queue = true;
    *ret_watch = watch;
    driver_shared_want(&watch->shared, &watch->client->driver, WATCH_WANTS_START);
    return VIGIL_OK;
}

void vigil_watch_free(vigil_watch *watch)
{
    if (!watch)
        return;
    /* From here on no callback of the watch is called, and one that runs is waited for. */
    driver_drop(&watch->client->driver, &watch->object);
    if (watch->for_queue)
        watch_item_drop(watch->item);
    driver_shared_want(&watch->shared, &watch->client->driver, WATCH_WANTS_END);
    watch_unref(watch);
}

void vigil_watch_resume(vigil_watch *watch)
{
    if (watch && !watch->for_queue) /* otherwise it is resumed when the program has taken enough */
        driver_shared_want(&watch->shared, &watch->client->driver, WATCH_WANTS_RESUME);
}

void vigil_watch_request_progress(vigil_watch *watch)
{
    if (watch)
        driver_shared_want(&watch->shared, &watch->client->driver, WATCH_WANTS_PROGRESS);
}

int64_t vigil_watch_revision(const vigil_watch *watch)
{
    if (!watch)
        return -1;
    return watch->for_queue ? watch_item_revision(watch->item) : watch_delivered(watch);
}

void vigil_watch_get_stats(const vigil_watch *watch, vigil_watch_stats *ret_stats, size_t size)
{
    if (!watch) {
        client_stats_copy(ret_stats, size, NULL, 0);
        return;
    }
    uint32_t lives = atomic_load_explicit(&watch->lives, memory_order_relaxed);
    uint8_t state = atomic_load_explicit(&watch->state, memory_order_relaxed);
    int64_t newest =
        atomic_load_explicit(&watch->client->counters.watch_revision, memory_order_relaxed);
    vigil_watch_stats stats = {
        .revision = vigil_watch_revision(watch),
        .queued_bytes = atomic_load_explicit(&watch->held_bytes, memory_order_relaxed),
        .resumes = lives ? lives - 1 : 0,
    };
    if (watch->for_queue)
        stats.queued_bytes += watch_item_bytes(watch->item);
    /* A live watch that holds nothing has everything: newer revisions did not change its keys. */
    bool has_all = (state == WATCH_LIVE || state == WATCH_ENDED) && stats.queued_bytes == 0;
    if (!has_all && stats.revision >= 0 && newest > stats.revision)
        stats.lag = (uint64_t)(newest - stats.revision);
    client_stats_copy(ret_stats, size, &stats, sizeof(stats));
}

void *vigil_watch_user(const vigil_watch *watch)
{
    return watch ? watch->user : NULL;
}
