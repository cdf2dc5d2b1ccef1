#include "tier/mirror/fence.h"

#include "kubeclient/call/kube.h"
#include "tier/mirror/arrived.h"

#include <stdio.h>
#include <stdlib.h>

#define METADATA_LIST ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
#define PROTOBUF "application/vnd.kubernetes.protobuf"

enum { ITEMS_FIRST = 64, REASON_BYTES = 256 };

static const char accept_metadata[] = PROTOBUF METADATA_LIST ",application/json" METADATA_LIST;

static struct loop *loop_of(const struct tier_fence *f)
{
    return f->kube->driver.loop;
}

/* -- The end -- */

/* No object is marked any more. */
static void unmark(struct tier_fence *f)
{
    struct known_object *object;
    if (!f->late)
        return;
    MAP_FOREACH (object, &f->objects->map)
        object->is_late = false;
    f->late = 0;
}

void tier_fence_cancel(struct tier_fence *f)
{
    if (f->state == TIER_FENCE_IDLE)
        return;
    unmark(f);
    request_waiter_cancel(&f->waiter);
    fetcher_cancel(&f->fetcher);
    loop_timer_cancel(loop_of(f), &f->timer);
    free(f->items);
    f->items = NULL;
    f->item_count = f->item_capacity = f->early = 0;
    f->state = TIER_FENCE_IDLE;
}

static void finish(struct tier_fence *f, enum tier_fence_end end, const char *reason)
{
    tier_fence_cancel(f);
    f->ops->done(f, end, reason);
}

static void on_timer(struct timer *timer)
{
    struct tier_fence *f = CONTAINER_OF(timer, struct tier_fence, timer);
    if (f->state == TIER_FENCE_LISTING)
        finish(f, TIER_FENCE_FAILED, "the server has not answered a list in time");
    else
        finish(f, TIER_FENCE_LATE, "the watch has not delivered in time what a list shows");
}

/* -- The set of the list's keys -- */

static uint64_t hash_of(const struct tier_fence *f, struct slice key)
{
    uint64_t hash = hash_map_hash(&f->objects->map, key);
    return hash ? hash : 1;
}

static struct listed_item *place_of(struct listed_item *items, size_t capacity, uint64_t hash)
{
    size_t at = (size_t)hash & (capacity - 1);
    while (items[at].hash && items[at].hash != hash)
        at = (at + 1) & (capacity - 1);
    return &items[at];
}

/* NULL: it is not in the list. */
static struct listed_item *find_listed(const struct tier_fence *f, struct slice key)
{
    uint64_t hash = hash_of(f, key);
    if (!f->item_capacity)
        return NULL;
    struct listed_item *item = place_of(f->items, f->item_capacity, hash);
    return item->hash ? item : NULL;
}

static enum status grow(struct tier_fence *f)
{
    size_t capacity = f->item_capacity ? 2 * f->item_capacity : ITEMS_FIRST;
    struct listed_item *grown = calloc(capacity, sizeof(*grown));
    if (!grown)
        return ST_NOMEM;
    for (size_t i = 0; i < f->item_capacity; i++)
        if (f->items[i].hash)
            *place_of(grown, capacity, f->items[i].hash) = f->items[i];
    free(f->items);
    f->items = grown;
    f->item_capacity = capacity;
    return ST_OK;
}

static enum status note_listed(struct tier_fence *f, const struct arrived *arrived)
{
    if (2 * (f->item_count + 1) > f->item_capacity)
        TRY(grow(f));
    uint64_t hash = hash_of(f, arrived->key);
    struct listed_item *item = place_of(f->items, f->item_capacity, hash);
    f->item_count += item->hash == 0;
    f->early -= item->early != 0;
    *item = (struct listed_item){.hash = hash};
    if (arrived->version <= *f->newest)
        return ST_OK;
    item->early = arrived->version;
    f->early++;
    if (f->newest_early < arrived->version)
        f->newest_early = arrived->version;
    return ST_OK;
}

/* -- Matching -- */

static void set_late(struct tier_fence *f, struct known_object *object, bool is_late)
{
    f->late += is_late && !object->is_late;
    f->late -= !is_late && object->is_late;
    object->is_late = is_late;
}

static void mark_all_late(struct tier_fence *f)
{
    struct known_object *object;
    MAP_FOREACH (object, &f->objects->map) {
        if (object->version <= f->version && !find_listed(f, known_object_key(object)))
            set_late(f, object, true);
    }
}

/* Returns whether the key is in the list. */
static bool note_delivered(struct tier_fence *f, const struct known_object *object,
                           uint64_t version)
{
    struct listed_item *item = find_listed(f, known_object_key(object));
    if (item && item->early && item->early <= version) {
        item->early = 0;
        f->early--;
    }
    return item != NULL;
}

void tier_fence_put(struct tier_fence *f, struct known_object *object, uint64_t version)
{
    if (f->state == TIER_FENCE_IDLE)
        return;
    bool is_listed = note_delivered(f, object, version);
    if (f->state == TIER_FENCE_MATCHING) /* whatever is newer than the list did not exist yet */
        set_late(f, object, version <= f->version && !is_listed);
}

void tier_fence_delete(struct tier_fence *f, struct known_object *object, uint64_t version)
{
    if (f->state == TIER_FENCE_IDLE)
        return;
    f->has_deleted = true;
    (void)note_delivered(f, object, version);
    set_late(f, object, false);
}

void tier_fence_advance(struct tier_fence *f)
{
    if (f->state != TIER_FENCE_MATCHING)
        return;
    if (!f->early && !f->late)
        finish(f, TIER_FENCE_MATCHED, "");
    else if (f->early && *f->newest >= f->newest_early)
        finish(f, TIER_FENCE_CONTRADICTED, "an object was changed without an event");
    else if (f->late && *f->newest >= f->version)
        finish(f, TIER_FENCE_CONTRADICTED, "an object was deleted without an event");
}

/* -- The list -- */

/*
 * What an item with a version that was delivered says about the object that is known. The list may
 * be newer or older than what was delivered meanwhile.
 */
static bool is_contradicted(const struct tier_fence *f, const struct arrived *item)
{
    const struct known_object *object = objects_find(f->objects, item->key);
    struct list_info info = fetcher_list_info(&f->fetcher);
    uint64_t version;
    if (item->version > *f->newest)
        return false;
    if (object && object->version < item->version)
        return true;
    if (!arrived_read_version(info.version, &version))
        return false; /* it has not arrived yet */
    if (!object)      /* it may have been deleted after the list */
        return *f->newest <= version || !f->has_deleted;
    return object->version > item->version && object->version <= version;
}

static void on_listed(void *ctx, struct slice item)
{
    struct tier_fence *f = ctx;
    struct arrived arrived;
    if (f->glances)
        return;
    if (arrived_read(item, &f->key, &arrived) != ST_OK)
        finish(f, TIER_FENCE_FAILED, "the server has sent a list with an object that has no name");
    else if (is_contradicted(f, &arrived))
        finish(f, TIER_FENCE_CONTRADICTED, "an object is another one than was delivered");
    else if (note_listed(f, &arrived) != ST_OK)
        finish(f, TIER_FENCE_FAILED, "out of memory");
}

static void on_page_ended(void *ctx, const struct list_info *info)
{
    struct tier_fence *f = ctx;
    if (!arrived_read_version(info->version, &f->version)) {
        finish(f, TIER_FENCE_FAILED, "the server has sent a list without a version");
    } else if (f->version < f->known) {
        finish(f, TIER_FENCE_BEHIND, "the server sent a list that is older than what is known");
    } else if (f->glances) {
        finish(f, TIER_FENCE_MATCHED, "");
    } else if (info->continue_token.len) {
        finish(f, TIER_FENCE_FAILED, "the server sends lists only in pages");
    } else {
        f->state = TIER_FENCE_MATCHING;
        mark_all_late(f);
        f->ops->listed(f);
        tier_fence_advance(f);
    }
}

static void request(struct tier_fence *f)
{
    struct reflector_request request = {
        .kind = REFLECTOR_LISTING, .version = "", .limit = f->glances ? 1 : 0};
    fetcher_request(&f->fetcher, &request);
}

static void on_failed(void *ctx, const struct vigil_kube_status *status)
{
    struct tier_fence *f = ctx;
    char reason[REASON_BYTES];
    if (status->code == 406 && f->scope.accept_list != f->accept) {
        f->scope.accept_list = f->accept; /* an API that has no metadata of its own */
        request(f);
        return;
    }
    snprintf(reason, sizeof(reason), "%.*s", REASON_BYTES - 1,
             status->message[0] ? status->message : status->reason);
    finish(f, TIER_FENCE_FAILED, reason);
}

/* -- Life -- */

static bool on_admit(void *ctx)
{
    struct tier_fence *f = ctx;
    return request_queue_enter(f->queue, &f->waiter);
}

static void on_admitted(struct request_waiter *waiter)
{
    fetcher_admitted(&CONTAINER_OF(waiter, struct tier_fence, waiter)->fetcher);
}

void tier_fence_init(struct tier_fence *f, struct vigil_kube *kube, struct request_queue *queue,
                     const struct vigil_kube_target *target, const char *accept,
                     const struct tier_fence_ops *ops)
{
    static const struct fetcher_ops fetcher_ops = {
        .admit = on_admit, .listed = on_listed, .page_ended = on_page_ended, .failed = on_failed};
    *f = (struct tier_fence){
        .ops = ops,
        .kube = kube,
        .queue = queue,
        .waiter.ready = on_admitted,
        .accept = accept,
        .scope = {.target = *target, .accept_list = accept_metadata},
        .timer.fn = on_timer,
    };
    fetcher_init(&f->fetcher, kube, &f->scope, &fetcher_ops, f);
}

void tier_fence_fini(struct tier_fence *f)
{
    assert(f->state == TIER_FENCE_IDLE);
    fetcher_fini(&f->fetcher);
    buf_fini(&f->key);
}

void tier_fence_begin(struct tier_fence *f, const struct objects *objects, const uint64_t *newest,
                      bool glances, int64_t limit_ns)
{
    assert(f->state == TIER_FENCE_IDLE);
    f->state = TIER_FENCE_LISTING;
    f->objects = objects;
    f->newest = newest;
    f->known = *newest;
    f->glances = glances;
    f->has_deleted = false;
    f->version = f->newest_early = 0;
    f->begun_ns = loop_now_ns(loop_of(f));
    loop_timer_set(loop_of(f), &f->timer, clock_add(f->begun_ns, limit_ns));
    request(f);
}
