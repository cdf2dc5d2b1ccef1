/* Planted bugs of the watch tier (plants.h). */
#include "plants.h"

#include "kube/policy/access/identity.h"
#include "tier/mirror/generations.h"
#include "tier/mirror/reflector.h"
#include "tier/mirror/wait.h"
#include "tier/read/ask.h"
#include "tier/read/events.h"

#include <string.h>

/* -- The mirror -- */

enum status __real_generations_put(struct tier_generations *g, const struct arrived *arrived,
                                   struct slice object, bool creates, struct tier_fence *fence);
enum status __wrap_generations_put(struct tier_generations *g, const struct arrived *arrived,
                                   struct slice object, bool creates, struct tier_fence *fence);
enum status __wrap_generations_put(struct tier_generations *g, const struct arrived *arrived,
                                   struct slice object, bool creates, struct tier_fence *fence)
{
    if (plant_chance(PLANT_TIER_LOST, 10))
        return ST_OK;
    return __real_generations_put(g, arrived, object, creates, fence);
}

bool __real_tier_reflector_received(struct tier_reflector *reflector,
                                    const struct received_event *event, uint64_t version,
                                    int64_t now_ns);
bool __wrap_tier_reflector_received(struct tier_reflector *reflector,
                                    const struct received_event *event, uint64_t version,
                                    int64_t now_ns);
bool __wrap_tier_reflector_received(struct tier_reflector *reflector,
                                    const struct received_event *event, uint64_t version,
                                    int64_t now_ns)
{
    version += plant_is(PLANT_TIER_GAP) && version ? 4 : 0;
    return __real_tier_reflector_received(reflector, event, version, now_ns);
}

void __real_tier_reflector_failed(struct tier_reflector *reflector,
                                  const struct vigil_kube_status *status, int64_t now_ns);
void __wrap_tier_reflector_failed(struct tier_reflector *reflector,
                                  const struct vigil_kube_status *status, int64_t now_ns);
void __wrap_tier_reflector_failed(struct tier_reflector *reflector,
                                  const struct vigil_kube_status *status, int64_t now_ns)
{
    enum { NOT_FOUND = 404, UNAVAILABLE = 503 };
    struct vigil_kube_status changed = *status;
    if (plant_is(PLANT_TIER_UNDEFINED) && changed.code == NOT_FOUND)
        changed.code = UNAVAILABLE;
    __real_tier_reflector_failed(reflector, &changed, now_ns);
}

/* -- Reads -- */

void __real_tier_wait_start(struct tier_reader *reader, struct tier_wait *wait,
                            struct tier_collection *collection);
void __wrap_tier_wait_start(struct tier_reader *reader, struct tier_wait *wait,
                            struct tier_collection *collection);
void __wrap_tier_wait_start(struct tier_reader *reader, struct tier_wait *wait,
                            struct tier_collection *collection)
{
    if (plant_is(PLANT_TIER_STALE) && wait->kind == TIER_WAIT_CURRENT)
        wait->kind = TIER_WAIT_STATE;
    __real_tier_wait_start(reader, wait, collection);
}

bool __real_tier_collection_revision(struct tier_collection *collection, uint64_t generation,
                                     uint64_t version, int64_t *ret_revision);
bool __wrap_tier_collection_revision(struct tier_collection *collection, uint64_t generation,
                                     uint64_t version, int64_t *ret_revision);
bool __wrap_tier_collection_revision(struct tier_collection *collection, uint64_t generation,
                                     uint64_t version, int64_t *ret_revision)
{
    bool known = __real_tier_collection_revision(collection, generation, version, ret_revision);
    if (plant_is(PLANT_TIER_OLDER) && known && *ret_revision > 1)
        --*ret_revision;
    return known;
}

bool __real_tier_collection_version(struct tier_collection *collection, uint64_t generation,
                                    int64_t revision, uint64_t *ret_version);
bool __wrap_tier_collection_version(struct tier_collection *collection, uint64_t generation,
                                    int64_t revision, uint64_t *ret_version);
bool __wrap_tier_collection_version(struct tier_collection *collection, uint64_t generation,
                                    int64_t revision, uint64_t *ret_version)
{
    bool known = __real_tier_collection_version(collection, generation, revision, ret_version);
    if (plant_is(PLANT_TIER_NEWER) && known)
        ++*ret_version;
    return known;
}

/* Keys of the generation before the one that readers use. */
static void look_back(const struct tier_collection *collection, struct tier_view *view)
{
    enum { COLLECTIONS = 16 };
    static struct {
        const struct tier_collection *collection;
        struct tier_view view;
    } known[COLLECTIONS];
    size_t at = ((uintptr_t)collection / 64) % COLLECTIONS;
    bool is_next = known[at].collection == collection && known[at].view.generation &&
                   view->generation == known[at].view.generation + 1;
    if (is_next)
        memcpy(view->prefix, known[at].view.prefix, sizeof(view->prefix));
    else
        known[at].view = *view;
    known[at].collection = collection;
}

void __real_tier_collection_look(struct tier_collection *collection, struct tier_view *ret_view);
void __wrap_tier_collection_look(struct tier_collection *collection, struct tier_view *ret_view);
void __wrap_tier_collection_look(struct tier_collection *collection, struct tier_view *ret_view)
{
    __real_tier_collection_look(collection, ret_view);
    if (plant_is(PLANT_TIER_STATE))
        look_back(collection, ret_view);
}

/* -- Watches -- */

bool __real_tier_ask_read(struct arena *arena, const struct http_request *request,
                          struct tier_ask *ret_ask);
bool __wrap_tier_ask_read(struct arena *arena, const struct http_request *request,
                          struct tier_ask *ret_ask);
bool __wrap_tier_ask_read(struct arena *arena, const struct http_request *request,
                          struct tier_ask *ret_ask)
{
    bool is_read = __real_tier_ask_read(arena, request, ret_ask);
    if (plant_is(PLANT_TIER_AGAIN) && is_read && ret_ask->freshness == TIER_AFTER &&
        ret_ask->version > 1)
        ret_ask->version--;
    if (plant_is(PLANT_TIER_SHY) && is_read && ret_ask->freshness == TIER_ANY)
        ret_ask->freshness = TIER_CURRENT;
    return is_read;
}

enum status __real_tier_event_look(struct tier_event_cache *cache, struct watch_cursor *cursor,
                                   const struct watch_event *event, int64_t revision,
                                   uint64_t version, const struct tier_watched *watched,
                                   struct tier_shown *ret_shown);
enum status __wrap_tier_event_look(struct tier_event_cache *cache, struct watch_cursor *cursor,
                                   const struct watch_event *event, int64_t revision,
                                   uint64_t version, const struct tier_watched *watched,
                                   struct tier_shown *ret_shown);
enum status __wrap_tier_event_look(struct tier_event_cache *cache, struct watch_cursor *cursor,
                                   const struct watch_event *event, int64_t revision,
                                   uint64_t version, const struct tier_watched *watched,
                                   struct tier_shown *ret_shown)
{
    enum status status =
        __real_tier_event_look(cache, cursor, event, revision, version, watched, ret_shown);
    if (plant_is(PLANT_TIER_LABEL) && status == ST_OK && !event->tombstone &&
        ret_shown->event == TIER_EVENT_DELETED)
        ret_shown->event = TIER_EVENT_NONE;
    return status;
}

/* -- What is passed on -- */

void __real_kube_refuse(struct http_exchange *x, const struct kube_status *status);
void __wrap_kube_refuse(struct http_exchange *x, const struct kube_status *status);
void __wrap_kube_refuse(struct http_exchange *x, const struct kube_status *status)
{
    enum { BAD_GATEWAY = 502, UNAVAILABLE = 503 };
    struct kube_status changed = *status;
    if (plant_is(PLANT_TIER_UNMADE) && changed.code == BAD_GATEWAY)
        changed.code = UNAVAILABLE;
    __real_kube_refuse(x, &changed);
}
