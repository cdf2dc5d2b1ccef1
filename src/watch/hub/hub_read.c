#include "watch/hub/hub_read.h"

#include "base/xalloc.h"

enum { ENCODED_LEN_MAX = WATCH_PIECE_BYTES_MAX - MESSAGE_HEAD_BYTES_MAX };

const struct message_header *hub_header(struct watch_hub *hub, int64_t revision)
{
    struct message_header *header = &hub->headers[(uint64_t)revision % WATCH_HEADERS];
    if (header->revision != revision)
        message_header_make(header, &hub->identity, revision);
    return header;
}

void hub_windows_drop(struct watch_hub *hub)
{
    for (size_t i = 0; i < WATCH_WINDOWS; i++)
        if (hub->windows[i].from)
            history_window_drop(&hub->windows[i]);
}

void hub_ring_drop(struct watch_hub *hub)
{
    hub_windows_drop(hub);
    hub->turn++;
    hub->ring_count = 0;
    hub->ring_after = hub->tail;
    hub->reread.revision = 0;
}

void hub_catch_tail(struct watch_hub *hub)
{
    int64_t last = hub->history->ops->revision(hub->history);
    if (last <= hub->tail)
        return;
    hub->tail = last;
    hub->place = (struct watch_place){.revision = last + 1};
    tag_index_drop(&hub->wide_index, last + 1);
    hub_ring_drop(hub);
}

/* -- Reading -- */

/* The first of this turn's revisions that is not before `revision`, or ring_count. */
static size_t ring_find(const struct watch_hub *hub, int64_t revision)
{
    size_t low = 0, high = hub->ring_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (hub->ring[middle].batch.revision < revision)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

enum status hub_next(struct watch_hub *hub, struct watch_place *place,
                     struct watch_batch *ret_batch)
{
    /* Revisions before those of this turn come from the history itself. */
    if (place->revision <= hub->ring_after) {
        enum status status =
            hub->history->ops->next(hub->history, place, hub->ring_after, ret_batch);
        if (status != ST_END)
            return status;
    }
    size_t at = ring_find(hub, place->revision);
    if (at == hub->ring_count) {
        /* There are none up to the tail: the place moves there. */
        if (place->revision <= hub->tail)
            *place = hub->place;
        return ST_END;
    }
    *ret_batch = hub->ring[at].batch;
    *place = at + 1 < hub->ring_count ? hub->ring[at + 1].before : hub->place;
    return ST_OK;
}

static bool concerns(const struct watch_slot *slot, const struct watch_stream *stream)
{
    return slot->several || slot->only == stream;
}

int64_t hub_skip_others(const struct watch_hub *hub, const struct watch_stream *stream,
                        int64_t last, struct watch_place *place)
{
    if (place->revision <= hub->ring_after)
        return last; /* the streams that older ones concern are not known */
    size_t begin = ring_find(hub, place->revision), at = begin;
    while (at < hub->ring_count && hub->ring[at].batch.revision < last &&
           !concerns(&hub->ring[at], stream))
        at++;
    if (at > begin)
        *place = at < hub->ring_count ? hub->ring[at].before : hub->place;
    /* A run may include a few revisions for others, but ends before many of them. */
    size_t end = at;
    for (size_t i = at; i < hub->ring_count && i - end <= WATCH_GAP_MAX; i++) {
        if (hub->ring[i].batch.revision > last || i - at >= WATCH_STRETCH_MAX)
            break;
        if (concerns(&hub->ring[i], stream))
            end = i;
    }
    return end < hub->ring_count ? hub->ring[end].batch.revision : last;
}

enum status hub_batch(struct watch_hub *hub, int64_t revision, struct watch_batch *ret_batch)
{
    if (hub->reread.revision != revision) {
        struct watch_place place = {.revision = revision};
        TRY(hub_next(hub, &place, &hub->reread));
    }
    *ret_batch = hub->reread;
    return hub->reread.revision == revision ? ST_OK : ST_END;
}

/* -- Hits -- */

void hub_hits_drop(struct watch_hub *hub)
{
    hub->hit_count = 0;
    hub->hits_turn = 0;
}

struct watch_hit *hub_find_hit(const struct watch_hub *hub, const struct watch_range *range)
{
    bool found = range->hit < hub->hit_count && hub->hits[range->hit].range == range;
    return found ? &hub->hits[range->hit] : NULL;
}

struct watch_hit *hub_add_hit(struct watch_hub *hub, struct watch_range *range)
{
    if (hub->hit_count == hub->hit_capacity) {
        hub->hit_capacity = size_max(64, hub->hit_capacity * 2);
        hub->hits = xrealloc(hub->hits, hub->hit_capacity * sizeof(hub->hits[0]));
    }
    range->hit = (uint32_t)hub->hit_count;
    struct watch_hit *hit = &hub->hits[hub->hit_count++];
    *hit = (struct watch_hit){.range = range};
    return hit;
}

/* -- Encoded events -- */

void hub_encoded_drop(struct watch_hub *hub)
{
    memset(hub->encoded, 0, sizeof(hub->encoded));
    hub->encoded_used = 0;
}

static bool encoded_write(struct watch_hub *hub, struct encoded_events *encoded,
                          const struct watch_batch *batch, size_t first, size_t last)
{
    struct slice key = watch_range_key(encoded->range), end = watch_range_end(encoded->range);
    uint8_t *start = hub->encoded_bytes + hub->encoded_used, *at = start;
    for (size_t i = first; i <= last; i++) {
        const struct watch_event *event = &batch->events[i];
        if (!watch_filter_passes(encoded->variant, event) ||
            !watch_range_covers(key, end, event->key))
            continue;
        struct slice prev = hub_prev(hub, encoded->variant, event);
        if (message_event_size(event, prev) > ENCODED_LEN_MAX - (size_t)(at - start))
            return false;
        at = message_event_write(at, event, prev);
        encoded->events++;
    }
    encoded->bytes = start;
    encoded->len = (size_t)(at - start);
    hub->encoded_used += encoded->len;
    assert(hub->encoded_used <= WATCH_ENCODED_BYTES);
    return true;
}

const struct encoded_events *hub_encode_events(struct watch_hub *hub,
                                               const struct watch_batch *batch, int64_t since,
                                               const struct watch_range *range, unsigned variant,
                                               size_t first, size_t last)
{
    /* Watchers of one range that want the same of the same revisions share the bytes. A slot has
     * room for one such response, and the hash spreads what is sent in a turn: ranges, which are
     * aligned, and revisions that follow each other. A collision only encodes again. */
    uint64_t mixed = ((uintptr_t)range >> 3) * 31 + (uint64_t)batch->revision * 8 +
                     (uint64_t)since * 72 + variant;
    struct encoded_events *encoded = &hub->encoded[(mixed ^ (mixed >> 17)) % WATCH_ENCODED_SLOTS];
    if (encoded->revision == batch->revision && encoded->since == since &&
        encoded->range == range && encoded->variant == variant)
        return encoded;
    if (WATCH_ENCODED_BYTES - hub->encoded_used < ENCODED_LEN_MAX)
        hub_encoded_drop(hub); /* another response may not fit: all are forgotten at once */
    *encoded = (struct encoded_events){.since = since, .range = range, .variant = variant};
    if (!encoded_write(hub, encoded, batch, first, last))
        return NULL;
    encoded->revision = batch->revision;
    return encoded;
}
