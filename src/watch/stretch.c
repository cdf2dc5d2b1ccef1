#include "watch/stretch.h"

#include "base/xalloc.h"
#include "watch/stream_parts.h"

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
        match(&matching, &batch);
        stretch->events += batch.count;
        hub->budget -= size_min(hub->budget, batch.count);
        status = ST_OK;
    }
    return status;
}
