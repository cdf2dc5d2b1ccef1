#include "base/clock.h"
#include "base/metric/counter.h"
#include "client/driver/driver.h"
#include "engine/local/mirror/mirror_store.h"
#include "io/socket.h"
#include "kubeclient/call/kube.h"
#include "tier/mirror/mirror_private.h"
#include "tier/mirror/store_queue.h"

#include <stdio.h>
#include <stdlib.h>

#define IDLE_NS (600 * NS_PER_S)
#define HISTORY_NS (300 * NS_PER_S)
#define REFUSED_NS (30 * NS_PER_S)
#define FENCE_NS (3 * NS_PER_S)
#define TICK_NS NS_PER_S

enum { NOTABLE_PART = 64 }; /* a collection that takes this part of the room is worth giving up */

static int64_t now_of(const struct tier_mirror *m)
{
    return loop_now_ns(m->kube->driver.loop);
}

/* -- Names -- */

/* No part of a name contains a slash. */
enum { NAME_BYTES = 3 * (TIER_NAME_PART_BYTES_MAX + 1) + 1 };

static bool write_name(const struct tier_name *name, uint8_t to[NAME_BYTES], struct slice *ret_text)
{
    const struct slice parts[] = {name->group, name->version, name->resource};
    size_t len = 0;
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        if (parts[i].len > TIER_NAME_PART_BYTES_MAX ||
            (parts[i].len && memchr(parts[i].ptr, '/', parts[i].len)) ||
            (parts[i].len && memchr(parts[i].ptr, 0, parts[i].len)))
            return false;
        slice_copy(to + len, parts[i]);
        len += parts[i].len;
        to[len++] = '/';
    }
    to[len++] = (uint8_t)('0' + name->encoding);
    *ret_text = slice_of(to, len);
    return name->version.len && name->resource.len;
}

static struct slice key_of(const void *value)
{
    const struct tier_follow *follow = value;
    return buf_slice(&follow->name);
}

/* With the lock held. NULL: it cannot be made. */
static struct tier_follow *make(struct tier_mirror *m, const struct tier_name *name,
                                struct slice text)
{
    struct tier_follow *follow;
    void *replaced;
    if (m->count >= m->collections_max || tier_follow_new(&m->follower, name, ++m->last_number,
                                                          random_u64(&m->random), &follow) != ST_OK)
        return NULL;
    if (buf_append(&follow->name, text) != ST_OK ||
        hash_map_put(&m->names, follow, &replaced) != ST_OK) {
        tier_follow_free(follow);
        return NULL;
    }
    list_push_back(&m->all, &follow->in_mirror);
    m->count++;
    return follow;
}

/* makes: if there is none. */
static struct tier_collection *open_collection(struct tier_mirror *m, const struct tier_name *name,
                                               bool makes, bool *ret_is_new)
{
    uint8_t bytes[NAME_BYTES];
    struct slice text;
    *ret_is_new = false;
    if (!write_name(name, bytes, &text))
        return NULL;
    LOCK_SCOPE(&m->lock);
    struct tier_follow *follow = hash_map_get(&m->names, text);
    if (follow) {
        atomic_fetch_add_explicit(&follow->collection.refs, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&follow->collection.opened, 1, memory_order_relaxed);
        return &follow->collection;
    }
    follow = makes ? make(m, name, text) : NULL;
    *ret_is_new = follow != NULL;
    return follow ? &follow->collection : NULL;
}

struct tier_collection *tier_mirror_open(struct tier_mirror *m, const struct tier_name *name)
{
    bool is_new;
    struct tier_collection *collection = open_collection(m, name, true, &is_new);
    if (is_new)
        collection_wake_follower(collection);
    else if (collection)
        collection_reopen(collection);
    return collection;
}

struct tier_collection *tier_mirror_find(struct tier_mirror *m, const struct tier_name *name)
{
    bool is_new;
    return open_collection(m, name, false, &is_new);
}

enum status tier_mirror_keep(struct tier_mirror *m, const struct tier_name *name)
{
    AUTO(tier_collection_closep) struct tier_collection *collection = tier_mirror_open(m, name);
    if (!collection)
        return ST_LIMIT;
    atomic_store(&collection->is_kept, true);
    return ST_OK;
}

bool tier_mirror_is_ready(struct tier_mirror *m, char ret_reason[TIER_REASON_BYTES])
{
    struct tier_follow *follow;
    struct tier_view view;
    LOCK_SCOPE(&m->lock);
    LIST_FOREACH (follow, &m->all, in_mirror) {
        if (!atomic_load(&follow->collection.is_kept))
            continue;
        tier_collection_look(&follow->collection, &view);
        if (view.generation)
            continue;
        snprintf(ret_reason, TIER_REASON_BYTES, "%.*s: %.*s",
                 (int)size_min(follow->collection.name.resource.len, 60),
                 (const char *)follow->collection.name.resource.ptr, TIER_REASON_BYTES - 70,
                 view.reason[0] ? view.reason : "its state is being read");
        return false;
    }
    ret_reason[0] = 0;
    return true;
}

/* -- The store -- */

static void sample(struct tier_mirror *m);

static void on_applied(void *ctx)
{
    struct tier_mirror *m = ctx;
    struct list applied, *link;
    list_init(&applied);
    list_append(&applied, &m->follower.awaiting);
    while ((link = list_pop_front(&applied))) {
        struct tier_follow *follow = LIST_ENTRY(link, struct tier_follow, in_awaiting);
        list_push_back(&m->follower.awaiting, link);
        tier_follow_applied(follow);
    }
    sweeper_continue(&m->follower.sweeper);
    sample(m);
}

/* Those that are followed. The list changes only on this thread, except at its end. */
static void each(struct tier_mirror *m, void (*fn)(struct tier_follow *follow))
{
    lock_take(&m->lock);
    struct list *link = m->all.next;
    while (link != &m->all) {
        lock_release(&m->lock);
        fn(LIST_ENTRY(link, struct tier_follow, in_mirror));
        lock_take(&m->lock);
        link = link->next;
    }
    lock_release(&m->lock);
}

static void on_pressure(void *ctx)
{
    each(ctx, tier_follow_store_changed);
}

static void on_refused(void *ctx, enum status status)
{
    (void)status;
    each(ctx, tier_follow_store_changed);
}

/* -- History -- */

static uint64_t bytes_since(const struct tier_mirror *m, uint64_t replaced)
{
    return m->follower.sweeper.usage.replaced - replaced;
}

/* Nothing before this sample is needed: it is old, or there is too much after it. */
static bool is_over(const struct tier_mirror *m, const struct tier_sample *sample, uint64_t bytes)
{
    return now_of(m) - sample->at_ns >= m->history_ns ||
           (m->history_bytes_max && bytes > m->history_bytes_max);
}

static void drop_history(struct tier_mirror *m, const struct tier_sample *until)
{
    struct tier_follow *follow;
    if (until->revision > m->compacted) {
        /* First of all readers must not use what will be gone. */
        lock_take(&m->lock);
        LIST_FOREACH (follow, &m->all, in_mirror)
            tier_follow_compact(follow, until->revision);
        lock_release(&m->lock);
        if (store_queue_compact(m->follower.queue, until->revision) != ST_OK)
            return;
        m->compacted = until->revision;
    }
    m->compacted_replaced = until->replaced;
}

/* Drops what is before the last sample before which nothing is needed. */
static void compact(struct tier_mirror *m)
{
    uint64_t bytes = bytes_since(m, m->compacted_replaced);
    struct tier_sample until = {0};
    unsigned old = 0;
    while (old < m->sample_count && is_over(m, &m->samples[old], bytes)) {
        until = m->samples[old++];
        bytes = bytes_since(m, until.replaced);
    }
    if (!old)
        return;
    m->sample_count -= old;
    memmove(m->samples, m->samples + old, m->sample_count * sizeof(*m->samples));
    drop_history(m, &until);
}

/* Enough time has passed, or enough has been replaced, since the last one. */
static bool is_sample_due(const struct tier_mirror *m)
{
    if (!m->sample_count)
        return true;
    const struct tier_sample *last = &m->samples[m->sample_count - 1];
    return now_of(m) - last->at_ns >= m->history_ns / TIER_SAMPLES_TIME ||
           (m->history_bytes_max &&
            bytes_since(m, last->replaced) >= m->history_bytes_max / TIER_SAMPLES_BYTES);
}

static void sample(struct tier_mirror *m)
{
    counter_set(&m->history_bytes, bytes_since(m, m->compacted_replaced));
    if (!is_sample_due(m))
        return;
    if (m->sample_count < TIER_SAMPLES)
        m->samples[m->sample_count++] =
            (struct tier_sample){.at_ns = now_of(m),
                                 .revision = local_mirror_revision(m->follower.engine),
                                 .replaced = m->follower.sweeper.usage.replaced};
    compact(m);
}

/* -- Room -- */

/* The newest collection that takes a notable part of the room, or, if none does, the newest that
 * takes any. NULL: there is none. */
static struct tier_follow *find_newest(struct tier_mirror *m, bool is_kept)
{
    struct tier_follow *follow, *newest = NULL;
    LOCK_SCOPE(&m->lock);
    LIST_FOREACH (follow, &m->all, in_mirror) {
        uint64_t bytes = generations_usage(&follow->generations);
        bool is_notable = bytes >= m->follower.bytes_max / NOTABLE_PART;
        if (!bytes || atomic_load(&follow->collection.is_kept) != is_kept)
            continue;
        if (!newest || is_notable ||
            generations_usage(&newest->generations) < m->follower.bytes_max / NOTABLE_PART)
            newest = follow;
    }
    return newest;
}

/* What an operator has named is given up last. */
static void on_full(void *ctx, struct tier_follow *grown)
{
    struct tier_mirror *m = ctx;
    bool is_new = !grown->generations.current && !atomic_load(&grown->collection.is_kept);
    struct tier_follow *follow = is_new ? grown : find_newest(m, false);
    if (!follow)
        follow = find_newest(m, true);
    if (follow)
        tier_follow_refuse(follow);
}

/* -- Ticks -- */

/* A name that the kube-apiserver refuses takes the place of a collection that could be mirrored,
 * so it is forgotten soon, unless it costs much to find that out. */
static int64_t idle_ns_of(const struct tier_mirror *m, const struct tier_follow *follow)
{
    bool is_refused = follow->reflector.state == TIER_REFLECTOR_REFUSED && !follow->refusals;
    int64_t refused_ns = m->follower.refused_ns;
    return is_refused && refused_ns < m->idle_ns ? refused_ns : m->idle_ns;
}

/* It has not been used for long. With the lock held, so that it is not opened meanwhile. */
static bool is_idle(struct tier_mirror *m, struct tier_follow *follow)
{
    struct tier_collection *c = &follow->collection;
    uint64_t opened = atomic_load(&c->opened);
    if (atomic_load(&c->refs) || atomic_load(&c->is_kept) || opened != follow->opened_before) {
        follow->opened_before = opened;
        follow->idle_since_ns = now_of(m);
        return false;
    }
    return now_of(m) - follow->idle_since_ns >= idle_ns_of(m, follow);
}

/* Takes it out of the map: True. */
static bool drop_if_idle(struct tier_mirror *m, struct tier_follow *follow)
{
    LOCK_SCOPE(&m->lock);
    if (follow->is_over || !is_idle(m, follow))
        return false;
    void *removed = hash_map_remove(&m->names, buf_slice(&follow->name));
    assert(removed == follow);
    (void)removed;
    return true;
}

static bool is_gone(const struct tier_follow *follow)
{
    return follow->is_over && !follow->generations.sweeps &&
           !atomic_load(&follow->collection.is_posted);
}

static void free_gone(struct tier_mirror *m)
{
    struct tier_follow *follow, *following;
    LOCK_SCOPE(&m->lock);
    LIST_FOREACH_SAFE (follow, following, &m->all, in_mirror) {
        if (!is_gone(follow))
            continue;
        m->count--;
        tier_follow_free(follow);
    }
}

static void tick_one(struct tier_mirror *m, struct tier_follow *follow)
{
    if (drop_if_idle(m, follow))
        tier_follow_end(follow);
    else
        tier_follow_tick(follow);
}

static void on_tick(struct timer *timer)
{
    struct tier_mirror *m = CONTAINER_OF(timer, struct tier_mirror, tick);
    lock_take(&m->lock);
    struct list *link = m->all.next;
    while (link != &m->all) {
        lock_release(&m->lock);
        tick_one(m, LIST_ENTRY(link, struct tier_follow, in_mirror));
        lock_take(&m->lock);
        link = link->next;
    }
    lock_release(&m->lock);
    free_gone(m);
    sweeper_continue(&m->follower.sweeper);
    sample(m);
    loop_timer_set(m->kube->driver.loop, &m->tick, now_of(m) + TICK_NS);
}

/* -- Life -- */

static void on_loop_end(struct driver_part *part)
{
    struct tier_mirror *m = CONTAINER_OF(part, struct tier_mirror, part);
    if (m->ended)
        return;
    m->ended = true;
    loop_timer_cancel(m->kube->driver.loop, &m->tick);
    each(m, tier_follow_stop);
    request_queue_fini(&m->follower.requests);
    fence_line_fini(&m->follower.fences);
    store_queue_stop(m->follower.queue);
}

static void on_part_free(struct driver_part *part)
{
    (void)part;
}

static void on_start(struct driver_command *command)
{
    struct tier_mirror *m = CONTAINER_OF(command, struct tier_mirror, start);
    struct driver *driver = &m->kube->driver;
    if (driver->ended)
        return;
    if (driver->own_thread)
        pthread_setname_np(pthread_self(), "vigil-follower");
    loop_set_turn(driver->loop, m->turn);
    m->started = true;
    m->part.end = on_loop_end;
    m->part.free = on_part_free;
    list_push_back(&driver->parts, &m->part.in_driver);
    m->tick.fn = on_tick;
    loop_timer_set(driver->loop, &m->tick, loop_now_ns(driver->loop) + TICK_NS);
}

static enum status fill(struct tier_mirror *m, const struct tier_mirror_options *options,
                        struct error *error)
{
    struct store_queue_options queue = {
        .engine = options->engine,
        .driver = &m->kube->driver,
        .applied = on_applied,
        .pressure = on_pressure,
        .refused = on_refused,
        .ctx = m,
    };
    m->follower = (struct tier_follower){
        .kube = m->kube,
        .engine = options->engine,
        .collection_bytes_max = options->collection_bytes_max,
        .bytes_max = options->bytes_max,
        .is_full = on_full,
        .full_ctx = m,
        .refused_ns = options->refused_ns ? options->refused_ns : REFUSED_NS,
        .fence_ns = options->fence_ns ? options->fence_ns : FENCE_NS,
        .log = options->log,
        .log_ctx = options->log_ctx,
    };
    list_init(&m->follower.awaiting);
    request_queue_init(&m->follower.requests, options->rate, m->kube->driver.loop);
    fence_line_init(&m->follower.fences, m->kube->driver.loop);
    if (store_queue_new(&queue, &m->follower.queue) != ST_OK)
        return error_no_memory(error);
    sweeper_init(&m->follower.sweeper, options->engine, m->follower.queue);
    return ST_OK;
}

static enum status make_client(struct tier_mirror *m, const struct tier_mirror_options *options,
                               struct error *error)
{
    vigil_error why;
    struct network *network = options->network ? options->network : network_posix();
    int code = kube_new_over(network, options->client, &m->kube, &why);
    if (code == VIGIL_OK)
        return ST_OK;
    return error_set(error,
                     code == VIGIL_ERROR_MEMORY     ? ST_NOMEM
                     : code == VIGIL_ERROR_ARGUMENT ? ST_INVALID
                                                    : ST_IO,
                     "the kube-apiserver cannot be followed: %s", why.text);
}

enum status tier_mirror_new(const struct tier_mirror_options *options,
                            struct tier_mirror **ret_mirror, struct error *error)
{
    uint64_t seed = random_seed_system();
    struct tier_mirror *m = calloc(1, sizeof(*m));
    if (!m)
        return error_no_memory(error);
    lock_init(&m->lock);
    list_init(&m->all);
    list_init(&m->part.in_driver);
    random_init(&m->random, seed);
    hash_map_init(&m->names, key_of, random_u64(&m->random));
    m->collections_max = options->collections_max ? options->collections_max : TIER_COLLECTIONS_MAX;
    m->idle_ns = options->idle_ns ? options->idle_ns : IDLE_NS;
    m->history_ns = options->history_ns ? options->history_ns : HISTORY_NS;
    m->history_bytes_max = options->history_bytes_max;
    m->turn = options->turn;
    m->start.run = on_start;
    enum status status = make_client(m, options, error);
    if (status == ST_OK)
        status = fill(m, options, error);
    if (status != ST_OK) {
        tier_mirror_free(m);
        return status;
    }
    driver_post(&m->kube->driver, &m->start);
    *ret_mirror = m;
    return ST_OK;
}

void tier_mirror_free(struct tier_mirror *m)
{
    struct tier_follow *follow, *following;
    if (!m)
        return;
    if (m->kube)
        driver_free_silently(&m->kube->driver);
    /* The thread has ended, and what it began is cancelled. */
    if (m->follower.queue)
        sweeper_fini(&m->follower.sweeper);
    LIST_FOREACH_SAFE (follow, following, &m->all, in_mirror)
        tier_follow_free(follow);
    store_queue_free(m->follower.queue);
    hash_map_fini(&m->names);
    lock_fini(&m->lock);
    free(m);
}
