#include "kube/handlers/read/event_cache.h"

#include "base/xalloc.h"
#include "kube/types/storage.h"

/* The result for one selection. */
struct verdict {
    uint64_t freed; /* selections by then: after another was freed the verdict is not valid */
    const struct kube_selection *selection;
    enum kube_event_type change;
};

/* The object before or after the event; parsed when it is needed. */
struct half {
    bool looked;
    bool whole; /* with metadata; otherwise only what sending needs */
    enum status status;
    struct kube_object object;
    /* Watches of different nodes select by the same field: its value is found once, also when they
     * read many past events. */
    struct kube_field_memo field;
};

struct kube_cached_event {
    uint64_t turn; /* that of the hub, or the entry is not valid */
    const uint8_t *key;
    int64_t revision;
    struct half before, after;
    struct verdict verdicts[KUBE_EVENT_CACHE_VERDICTS];
    unsigned next_verdict;
    unsigned asked; /* bit per type: its bytes were requested once */
    struct slice wire[KUBE_EVENT_UNDECODABLE], frames[KUBE_EVENT_UNDECODABLE];
};

struct kube_event_cache {
    uint64_t turn;
    uint8_t *bytes; /* KUBE_EVENT_CACHE_BYTES, once something is shared */
    size_t used;
    struct kube_cached_event events[KUBE_EVENT_CACHE_EVENTS];
};

struct kube_event_cache *kube_event_cache_new(void)
{
    return xcalloc(1, sizeof(struct kube_event_cache));
}

void kube_event_cache_free(struct kube_event_cache *cache)
{
    if (!cache)
        return;
    free(cache->bytes);
    free(cache);
}

struct kube_cached_event *kube_event_cache_find(struct kube_event_cache *cache,
                                                const struct watch_cursor *cursor,
                                                const struct watch_event *event, int64_t revision)
{
    uint64_t turn = watch_cursor_turn(cursor);
    size_t at = (size_t)revision + ((uintptr_t)event->key.ptr >> 6) * 31;
    struct kube_cached_event *cached = &cache->events[at % KUBE_EVENT_CACHE_EVENTS];
    if (cache->turn != turn) {
        cache->turn = turn;
        cache->used = 0;
    }
    if (cached->turn == turn && cached->key == event->key.ptr && cached->revision == revision)
        return cached;
    *cached = (struct kube_cached_event){.turn = turn, .key = event->key.ptr, .revision = revision};
    return cached;
}

/* -- Objects -- */

static enum status look(struct half *half, struct slice field, bool whole)
{
    if (half->looked && (half->whole || !whole) && half->status == ST_OK)
        return ST_OK;
    struct slice json = kube_kv_of(field).value;
    half->looked = true;
    half->whole = whole;
    half->status = (whole ? kube_object_parse : kube_object_parse_head)(json, &half->object);
    half->field.known = false;
    half->object.memo = &half->field;
    return half->status;
}

static bool look_before(struct kube_cached_event *cached, struct watch_cursor *cursor,
                        const struct watch_event *event, bool whole)
{
    if (cached->before.looked && cached->before.whole >= whole)
        return cached->before.status == ST_OK;
    struct slice prev = watch_cursor_prev(cursor, event);
    return prev.len && look(&cached->before, prev, whole) == ST_OK;
}

/* -- Verdicts -- */

/* The object before the event is parsed only if it matters. */
static enum kube_event_type judge(struct kube_cached_event *cached, struct watch_cursor *cursor,
                                  const struct watch_event *event,
                                  const struct kube_selection *selection, enum kube_shape shape)
{
    bool matches = !event->tombstone, matched = !event->created;
    bool whole = selection->selects || shape != KUBE_WHOLE;
    if (matches) {
        if (look(&cached->after, event->field, whole) != ST_OK)
            return KUBE_EVENT_UNDECODABLE;
        matches = kube_selection_matches(selection, &cached->after.object);
    }
    /* Without a selection the object matched, and its state before is shown only if it is gone. */
    if (matched && (event->tombstone || selection->selects)) {
        if (!look_before(cached, cursor, event, whole))
            return KUBE_EVENT_UNDECODABLE;
        matched = kube_selection_matches(selection, &cached->before.object);
    }
    if (event->tombstone || (matched && !matches))
        return matched ? KUBE_EVENT_DELETED : KUBE_EVENT_NONE;
    if (!matches)
        return KUBE_EVENT_NONE;
    return event->created || !matched ? KUBE_EVENT_ADDED : KUBE_EVENT_MODIFIED;
}

enum kube_event_type kube_event_cache_type(struct kube_cached_event *cached,
                                           struct watch_cursor *cursor,
                                           const struct watch_event *event,
                                           const struct kube_selection *selection,
                                           enum kube_shape shape)
{
    if (!selection->selects)
        return judge(cached, cursor, event, selection, shape);
    uint64_t freed = selection->selections->freed;
    for (size_t i = 0; i < KUBE_EVENT_CACHE_VERDICTS; i++) {
        const struct verdict *verdict = &cached->verdicts[i];
        if (verdict->freed == freed && verdict->selection == selection)
            return verdict->change;
    }
    enum kube_event_type change = judge(cached, cursor, event, selection, shape);
    cached->verdicts[cached->next_verdict++ % KUBE_EVENT_CACHE_VERDICTS] =
        (struct verdict){freed, selection, change};
    return change;
}

bool kube_cached_event_object(struct kube_cached_event *cached, struct watch_cursor *cursor,
                              const struct watch_event *event,
                              const struct kube_selection *selection, enum kube_shape shape,
                              enum kube_event_type change, struct kube_object *ret_object)
{
    bool whole = selection->selects || shape != KUBE_WHOLE;
    bool before = change == KUBE_EVENT_DELETED;
    if (!(before ? look_before(cached, cursor, event, whole)
                 : look(&cached->after, event->field, whole) == ST_OK))
        return false;
    *ret_object = before ? cached->before.object : cached->after.object;
    ret_object->memo = NULL; /* the object may outlive the entry */
    return true;
}

/* -- Bytes -- */

const char *kube_event_type_name(enum kube_event_type change)
{
    static const char *const types[] = {
        [KUBE_EVENT_ADDED] = "ADDED",
        [KUBE_EVENT_MODIFIED] = "MODIFIED",
        [KUBE_EVENT_DELETED] = "DELETED",
    };
    return types[change];
}

struct slice kube_event_head(enum kube_event_type change)
{
    static const char *const heads[] = {
        [KUBE_EVENT_ADDED] = "{\"type\":\"ADDED\",\"object\":",
        [KUBE_EVENT_MODIFIED] = "{\"type\":\"MODIFIED\",\"object\":",
        [KUBE_EVENT_DELETED] = "{\"type\":\"DELETED\",\"object\":",
    };
    return slice_from_text(heads[change]);
}

struct slice kube_event_tail(void)
{
    return SLICE_LITERAL("}\n");
}

/* Memory until the end of the turn; NULL: there is not enough. */
static uint8_t *take_room(struct kube_event_cache *cache, size_t size)
{
    if (size > KUBE_EVENT_CACHE_OBJECT_BYTES || size > KUBE_EVENT_CACHE_BYTES - cache->used)
        return NULL;
    if (!cache->bytes)
        cache->bytes = xmalloc(KUBE_EVENT_CACHE_BYTES);
    uint8_t *room = cache->bytes + cache->used;
    cache->used += size;
    return room;
}

static void make_wire(struct kube_event_cache *cache, struct slice *wire,
                      enum kube_event_type change, const struct kube_object *object,
                      int64_t revision)
{
    struct slice head = kube_event_head(change), tail = kube_event_tail();
    size_t object_bytes = kube_object_size(object, revision, false);
    size_t size = head.len + object_bytes + tail.len;
    uint8_t *at = take_room(cache, size);
    if (!at)
        return;
    slice_copy(at, head);
    kube_object_copy(object, revision, false, 0, at + head.len, object_bytes);
    slice_copy(at + head.len + object_bytes, tail);
    *wire = slice_of(at, size);
}

bool kube_event_cache_wire(struct kube_event_cache *cache, struct kube_cached_event *cached,
                           enum kube_event_type change, struct slice *ret_bytes)
{
    struct slice *wire = &cached->wire[change];
    unsigned bit = 1u << change;
    if (UNLIKELY(!wire->len) && cached->asked & bit) {
        const struct half *half = change == KUBE_EVENT_DELETED ? &cached->before : &cached->after;
        if (half->looked && half->status == ST_OK)
            make_wire(cache, wire, change, &half->object, cached->revision);
    }
    cached->asked |= bit;
    *ret_bytes = *wire;
    return wire->len > 0;
}

bool kube_cached_event_frame(const struct kube_cached_event *cached, enum kube_event_type change,
                             struct slice *ret_frame)
{
    *ret_frame = cached->frames[change];
    return ret_frame->len > 0;
}

void kube_event_cache_keep_frame(struct kube_event_cache *cache, struct kube_cached_event *cached,
                                 enum kube_event_type change, struct slice frame)
{
    uint8_t *at = frame.len ? take_room(cache, frame.len) : NULL;
    if (!at)
        return;
    slice_copy(at, frame);
    cached->frames[change] = slice_of(at, frame.len);
}
