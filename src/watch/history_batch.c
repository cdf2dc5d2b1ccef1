#include "watch/history_batch.h"

#include "base/xalloc.h"
#include "watch/stream_private.h"

enum {
    FEW_RIDERS = 8, /* so many are compared one by one */
    SLOTS_MIN = 64,
    /* What a turn took beyond is given back. */
    KEPT_FOUND = STRETCH_FOUND_MAX + STRETCH_EVENTS_MAX,
};

void stretch_fini(struct watch_stretch *stretch)
{
    free(stretch->found);
    free(stretch->lists);
    free(stretch->slots);
    *stretch = (struct watch_stretch){0};
}

void stretch_drop(struct watch_stretch *stretch)
{
    if (!stretch->from)
        return;
    stretch->from = 0;
    if (stretch->found_capacity > KEPT_FOUND) {
        stretch_fini(stretch);
        return;
    }
    stretch->found_count = stretch->list_count = stretch->events = 0;
    stretch->partial = false;
    if (stretch->slots)
        memset(stretch->slots, 0, stretch->slot_count * sizeof(stretch->slots[0]));
}

/* -- Lists -- */

/* The slot of the range, or the free one where it belongs. */
static uint32_t *slot_of(const struct watch_stretch *stretch, const struct watch_range *range)
{
    size_t mask = stretch->slot_count - 1;
    size_t at = (size_t)(((uintptr_t)range >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
    while (stretch->slots[at] && stretch->lists[stretch->slots[at] - 1].range != range)
        at = (at + 1) & mask;
    return &stretch->slots[at];
}

static void slots_grow(struct watch_stretch *stretch)
{
    free(stretch->slots);
    stretch->slot_count = size_max(SLOTS_MIN, stretch->slot_count * 2);
    stretch->slots = xcalloc(stretch->slot_count, sizeof(stretch->slots[0]));
    for (size_t i = 0; i < stretch->list_count; i++)
        *slot_of(stretch, stretch->lists[i].range) = (uint32_t)i + 1;
}

static struct stretch_list *list_add(struct watch_stretch *stretch, struct watch_range *range)
{
    if (stretch->list_count == stretch->list_capacity) {
        stretch->list_capacity = size_max(16, stretch->list_capacity * 2);
        stretch->lists =
            xrealloc(stretch->lists, stretch->list_capacity * sizeof(stretch->lists[0]));
    }
    stretch->lists[stretch->list_count] = (struct stretch_list){range, STRETCH_NONE, STRETCH_NONE};
    *slot_of(stretch, range) = (uint32_t)++stretch->list_count;
    if (stretch->list_count * 2 > stretch->slot_count)
        slots_grow(stretch);
    return &stretch->lists[stretch->list_count - 1];
}

const struct stretch_list *stretch_find(const struct watch_stretch *stretch,
                                        const struct watch_range *range)
{
    if (!stretch->slot_count)
        return NULL;
    uint32_t slot = *slot_of(stretch, range);
    return slot ? &stretch->lists[slot - 1] : NULL;
}

/* -- Matching -- */

/* The reading of one revision, on behalf of a scan. */
struct matching {
    struct watch_hub *hub;
    struct watch_stretch *stretch;
    const struct watch_stream *stream;
    const struct watch_scan *scan;
    size_t bytes; /* about what the scan's responses take */
    int64_t revision;
    const struct watch_event *event;
};

/* Somebody on the scan has not been told of this revision. */
static bool scan_wants(const struct matching *matching, const struct watch_range *range)
{
    struct watcher *first = watch_range_first(range, matching->stream), *watcher = first;
    if (!first)
        return false;
    do {
        watcher = watcher->prev; /* those catching up are at the back */
        if (watcher->state != WATCHER_CATCHING_UP)
            return false;
        if (watcher->ride->scan == matching->scan && watcher->ride->from <= matching->revision)
            return true;
    } while (watcher != first);
    return false;
}

/* NULL: there are too many already. */
static struct stretch_list *list_for(struct matching *matching, struct watch_range *range)
{
    struct watch_stretch *stretch = matching->stretch;
    if (!stretch->slot_count)
        slots_grow(stretch);
    uint32_t slot = *slot_of(stretch, range);
    if (slot)
        return &stretch->lists[slot - 1];
    if (stretch->found_count >= STRETCH_FOUND_MAX) {
        if (matching->revision < stretch->lacks)
            stretch->lacks = matching->revision;
        return NULL;
    }
    return list_add(stretch, range);
}

/* Two riders of one range. */
static bool already_found(const struct matching *matching, const struct stretch_list *list)
{
    if (list->last == STRETCH_NONE)
        return false;
    const struct stretch_found *last = &matching->stretch->found[list->last];
    return last->revision == matching->revision && last->event == matching->event;
}

static void add_found(struct matching *matching, struct watch_range *range)
{
    struct watch_stretch *stretch = matching->stretch;
    struct stretch_list *list = list_for(matching, range);
    if (!list || already_found(matching, list))
        return;
    if (stretch->found_count == stretch->found_capacity) {
        stretch->found_capacity = size_max(256, stretch->found_capacity * 2);
        stretch->found =
            xrealloc(stretch->found, stretch->found_capacity * sizeof(stretch->found[0]));
    }
    uint32_t at = (uint32_t)stretch->found_count++;
    stretch->found[at] = (struct stretch_found){matching->event, matching->revision, STRETCH_NONE};
    if (list->last == STRETCH_NONE)
        list->first = at;
    else
        stretch->found[list->last].next = at;
    list->last = at;
}

static void visit(void *ctx, struct watch_range *range)
{
    struct matching *matching = ctx;
    if (!range->riding)
        return;
    bool wanted = scan_wants(matching, range);
    if (wanted)
        matching->bytes += matching->event->field.len + 16;
    if (wanted || !matching->stretch->only)
        add_found(matching, range);
}

/* A scan with few riders that is alone looks at each of them. */
static void match_few(struct matching *matching)
{
    struct watch_ride *ride;
    LIST_FOREACH (ride, &matching->scan->rides, in_scan) {
        struct watch_range *range = ride->watcher->range;
        if (ride->from > matching->revision ||
            !watch_range_covers(watch_range_key(range), watch_range_end(range),
                                matching->event->key))
            continue;
        matching->bytes += matching->event->field.len + 16;
        add_found(matching, range);
    }
}

/* The events of a revision that one range is told. False: none are. */
static bool match_one(struct matching *matching, const struct watch_batch *batch,
                      struct watch_range *range)
{
    bool found = false;
    for (size_t i = 0; i < batch->count; i++) {
        matching->event = &batch->events[i];
        if (!watch_range_covers(watch_range_key(range), watch_range_end(range),
                                matching->event->key))
            continue;
        matching->bytes += matching->event->field.len + 16;
        add_found(matching, range);
        found = true;
    }
    return found;
}

/*
 * A revision with so many events, and so many who catch up, that looking for everybody's would take
 * long: some riders of the scan have theirs, and the others come with the next stretch, which
 * begins at the same revision. Each rider that was looked at goes to the back.
 */
static void match_some(struct matching *matching, const struct watch_batch *batch)
{
    struct watch_stretch *stretch = matching->stretch;
    struct watch_scan *scan = (struct watch_scan *)(uintptr_t)matching->scan;
    size_t left = scan->ride_count, room = size_max(1, STRETCH_FOUND_MAX / batch->count);
    matching->revision = batch->revision;
    stretch->partial = true;
    for (; left && room; left--) {
        struct list *link = list_pop_front(&scan->rides);
        struct watch_ride *ride = LIST_ENTRY(link, struct watch_ride, in_scan);
        list_push_back(&scan->rides, link);
        struct watch_range *range = ride->watcher->range;
        if (ride->from > batch->revision || stretch_find(stretch, range))
            continue;
        room--;
        if (!match_one(matching, batch, range))
            ride->from = batch->revision + 1; /* there is nothing to tell it */
    }
    if (left)
        stretch->lacks = batch->revision;
}

/* So many events for so many watchers may be found in a revision that each scan reads it alone, …
 */
static bool is_crowded(const struct matching *matching, const struct watch_batch *batch)
{
    return batch->count > 1 &&
           batch->count * matching->hub->stats.watchers_catching_up > STRETCH_FOUND_MAX;
}

/* … and for some of its riders at a time. */
static bool is_dense(const struct matching *matching, const struct watch_batch *batch)
{
    size_t riders = matching->scan->ride_count;
    return riders > 1 && batch->count * riders > STRETCH_FOUND_MAX;
}

static void match(struct matching *matching, const struct watch_batch *batch)
{
    bool few = matching->stretch->only && matching->scan->ride_count <= FEW_RIDERS;
    matching->revision = batch->revision;
    for (size_t i = 0; i < batch->count; i++) {
        matching->event = &batch->events[i];
        if (few)
            match_few(matching);
        else
            range_index_visit(&matching->hub->index, matching->event->key, visit, matching);
    }
}

enum status stretch_read(struct watch_hub *hub, struct watch_stretch *stretch,
                         const struct watch_stream *stream, const struct watch_scan *scan,
                         size_t bytes)
{
    struct matching matching = {.hub = hub, .stretch = stretch, .stream = stream, .scan = scan};
    enum status status = ST_LIMIT;
    stretch->long_revision = 0;
    while (matching.bytes < bytes && stretch->events < STRETCH_EVENTS_MAX &&
           stretch->found_count < STRETCH_FOUND_MAX && hub->budget) {
        struct watch_place before = stretch->place;
        struct watch_batch batch;
        enum status next = hub_next(hub, &stretch->place, &batch);
        if (next != ST_OK) {
            if (next != ST_END)
                stretch->place = before;
            return status == ST_OK ? ST_OK : next;
        }
        if (!batch.events) {
            stretch->long_revision = batch.revision;
            stretch->long_after = stretch->place;
            stretch->place = before;
            return status;
        }
        bool crowded = is_crowded(&matching, &batch),
             dense = crowded && is_dense(&matching, &batch);
        if (crowded && stretch->events) { /* it begins a stretch of its own */
            stretch->place = before;
            return status;
        }
        if (crowded)
            stretch->only = scan;
        (dense ? match_some : match)(&matching, &batch);
        stretch->events += batch.count;
        hub->budget -= size_min(hub->budget, crowded ? WATCH_FILL_EVENTS : batch.count);
        status = ST_OK;
        if (crowded)
            break;
    }
    return status;
}
