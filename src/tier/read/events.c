#include "tier/read/events.h"

#include "base/xalloc.h"
#include "kube/types/storage.h"
#include "tier/object/object.h"

enum { EVENTS = 256, VERDICTS = 4, KEPT_BYTES = 4096 };

/* The result for one selection. */
struct verdict {
    uint64_t freed; /* selections by then: after another was freed the verdict is not valid */
    const struct kube_selection *selection;
    enum tier_event event;
};

/* The object before or after the event. */
struct half {
    bool looked;
    enum status status;
    struct slice bytes;
    struct kube_object view;
    struct buf scratch; /* the view of protobuf */
};

struct cached {
    uint64_t turn; /* that of the hub, or the entry is not valid */
    const uint8_t *key;
    int64_t revision;
    struct half before, after;
    struct verdict verdicts[VERDICTS];
    unsigned next_verdict;
    struct buf gone; /* the object before, with the version of the event */
};

struct tier_event_cache {
    struct cached events[EVENTS];
};

struct tier_event_cache *tier_event_cache_new(void)
{
    return xcalloc(1, sizeof(struct tier_event_cache));
}

void tier_event_cache_free(struct tier_event_cache *cache)
{
    for (size_t i = 0; cache && i < EVENTS; i++) {
        buf_fini(&cache->events[i].before.scratch);
        buf_fini(&cache->events[i].after.scratch);
        buf_fini(&cache->events[i].gone);
    }
    free(cache);
}

static void reuse(struct cached *cached)
{
    struct buf before = cached->before.scratch, after = cached->after.scratch, gone = cached->gone;
    buf_reset(&before, KEPT_BYTES);
    buf_reset(&after, KEPT_BYTES);
    buf_reset(&gone, KEPT_BYTES);
    *cached = (struct cached){.before.scratch = before, .after.scratch = after, .gone = gone};
}

static struct cached *find(struct tier_event_cache *cache, const struct watch_cursor *cursor,
                           const struct watch_event *event, int64_t revision)
{
    uint64_t turn = watch_cursor_turn(cursor);
    size_t at = (size_t)revision + ((uintptr_t)event->key.ptr >> 6) * 31;
    struct cached *cached = &cache->events[at % EVENTS];
    if (cached->turn == turn && cached->key == event->key.ptr && cached->revision == revision)
        return cached;
    reuse(cached);
    cached->turn = turn;
    cached->key = event->key.ptr;
    cached->revision = revision;
    return cached;
}

/* -- Objects -- */

static enum status look(struct half *half, struct slice field, const struct tier_watched *watched)
{
    if (half->looked)
        return half->status;
    half->looked = true;
    half->bytes = kube_kv_of(field).value;
    half->status = tier_object_view(watched->encoding, watched->kind, half->bytes, &half->scratch,
                                    &half->view);
    return half->status;
}

static enum status look_before(struct cached *cached, struct watch_cursor *cursor,
                               const struct watch_event *event, const struct tier_watched *watched)
{
    if (cached->before.looked)
        return cached->before.status;
    struct slice prev = watch_cursor_prev(cursor, event);
    return prev.len ? look(&cached->before, prev, watched) : ST_COMPACTED;
}

/* -- Verdicts -- */

/* The object before the event matters only to those who select, and if it is gone. */
static enum status judge(struct cached *cached, struct watch_cursor *cursor,
                         const struct watch_event *event, const struct tier_watched *watched,
                         enum tier_event *ret_event)
{
    const struct kube_selection *selection = watched->selection;
    bool matches = !event->tombstone, matched = !event->created;
    if (matches && selection->selects) {
        TRY(look(&cached->after, event->field, watched));
        matches = kube_selection_matches(selection, &cached->after.view);
    }
    if (matched && selection->selects) {
        TRY(look_before(cached, cursor, event, watched));
        matched = kube_selection_matches(selection, &cached->before.view);
    }
    if (matches)
        *ret_event = matched ? TIER_EVENT_MODIFIED : TIER_EVENT_ADDED;
    else
        *ret_event = matched ? TIER_EVENT_DELETED : TIER_EVENT_NONE;
    return ST_OK;
}

static enum status find_verdict(struct cached *cached, struct watch_cursor *cursor,
                                const struct watch_event *event, const struct tier_watched *watched,
                                enum tier_event *ret_event)
{
    const struct kube_selection *selection = watched->selection;
    uint64_t freed = selection->selections->freed;
    for (size_t i = 0; i < VERDICTS; i++) {
        const struct verdict *verdict = &cached->verdicts[i];
        if (verdict->freed == freed && verdict->selection == selection) {
            *ret_event = verdict->event;
            return ST_OK;
        }
    }
    TRY(judge(cached, cursor, event, watched, ret_event));
    cached->verdicts[cached->next_verdict++ % VERDICTS] =
        (struct verdict){freed, selection, *ret_event};
    return ST_OK;
}

enum status tier_event_look(struct tier_event_cache *cache, struct watch_cursor *cursor,
                            const struct watch_event *event, int64_t revision, uint64_t version,
                            const struct tier_watched *watched, struct tier_shown *ret_shown)
{
    struct cached *cached = find(cache, cursor, event, revision);
    *ret_shown = (struct tier_shown){0};
    TRY(find_verdict(cached, cursor, event, watched, &ret_shown->event));
    if (ret_shown->event == TIER_EVENT_NONE)
        return ST_OK;
    if (ret_shown->event != TIER_EVENT_DELETED) {
        ret_shown->bytes = kube_kv_of(event->field).value;
        return ST_OK;
    }
    if (!cached->gone.len) {
        struct slice prev = watch_cursor_prev(cursor, event);
        if (!prev.len)
            return ST_COMPACTED;
        enum status status = tier_object_append_at(watched->encoding, kube_kv_of(prev).value,
                                                   version, &cached->gone);
        if (status != ST_OK) {
            cached->gone.len = 0; /* a part of it would be sent to the next watch */
            return status;
        }
    }
    ret_shown->bytes = buf_slice(&cached->gone);
    return ST_OK;
}
