/*
 * Watchers that start in the past. Those of a stream that start near each other share a scan: it
 * reads a chunk of history, finds what each of its riders wants of it, writes their responses, and
 * moves on. A rider's `from` says what it has been told; so a chunk that had no room for all is
 * simply read again, a scan may be set back for a newcomer, and nobody gets anything twice.
 *
 *     chunk:   revision  5   6   7   8        riders:  A: 5 → 7     (hub.found, one list each)
 *                        A   B   A   B                 B: 6 → 8
 *
 * At the hub's tail the riders become live.
 */
#include "base/xalloc.h"
#include "watch/output.h"

enum {
    NONE = UINT32_MAX, /* the end of a list in hub.found */
    FEW_RIDERS = 8,    /* so many are compared one by one */
    CHUNK_BYTES_MIN = 1024,
    EVENTS_BYTES_MAX = WATCH_PIECE_BYTES_MAX - MESSAGE_HEAD_BYTES_MAX,
};

/* -- Scans -- */

static struct watch_scan *scan_new(struct watch_stream *stream, int64_t from)
{
    struct watch_scan *scan = pool_alloc(stream->hub->pool, sizeof(*scan));
    *scan = (struct watch_scan){.place.revision = from};
    list_init(&scan->rides);
    /* First: a client that has just asked waits for its first response. */
    list_push_front(&stream->scans, &scan->in_stream);
    stream->scan_count++;
    return scan;
}

/* Back to `from`. Its riders keep how far they are. */
static void scan_rewind(struct watch_scan *scan, int64_t from)
{
    struct watch_ride *ride;
    LIST_FOREACH (ride, &scan->rides, in_scan)
        if (ride->from < scan->place.revision)
            ride->from = scan->place.revision;
    scan->place = (struct watch_place){.revision = from};
}

static struct watch_scan *scan_for(struct watch_stream *stream, int64_t from)
{
    struct watch_scan *scan, *before = NULL, *lowest = NULL;
    LIST_FOREACH (scan, &stream->scans, in_stream) {
        int64_t place = scan->place.revision;
        if (place <= from && (!before || place > before->place.revision))
            before = scan;
        if (!lowest || place < lowest->place.revision)
            lowest = scan;
    }
    bool near = before && from - before->place.revision <= WATCH_SCAN_NEAR;
    if (!near && stream->scan_count < WATCH_SCANS_MAX)
        return scan_new(stream, from);
    if (before)
        return before;
    scan_rewind(lowest, from);
    return lowest;
}

void catch_up_begin(struct watcher *watcher)
{
    struct watch_stream *stream = watcher->stream;
    struct watch_ride *ride = pool_alloc(stream->hub->pool, sizeof(*ride));
    *ride = (struct watch_ride){
        .watcher = watcher,
        .from = watcher->from,
        .scan = scan_for(stream, watcher->from),
    };
    list_push_back(&ride->scan->rides, &ride->in_scan);
    ride->scan->ride_count++;
    watcher->ride = ride;
    stream->hub->stats.watchers_catching_up++;
    stream->hub->census.wanted = true;
}

void catch_up_end(struct watcher *watcher)
{
    struct watch_stream *stream = watcher->stream;
    struct watch_ride *ride = watcher->ride;
    struct watch_scan *scan = ride->scan;
    watcher->from = ride->from;
    list_remove(&ride->in_scan);
    pool_free_object(stream->hub->pool, ride);
    stream->hub->stats.watchers_catching_up--;
    if (--scan->ride_count)
        return;
    list_remove(&scan->in_stream);
    stream->scan_count--;
    stream->scans_waiting = (uint8_t)(stream->scans_waiting - scan->waiting);
    pool_free_object(stream->hub->pool, scan);
}

/* All riders have been told everything up to the tail. */
static void scan_finish(struct watch_stream *stream, struct watch_scan *scan)
{
    int64_t next = scan->place.revision;
    bool last = false;
    while (!last) {
        struct watcher *watcher = LIST_ENTRY(scan->rides.next, struct watch_ride, in_scan)->watcher;
        last = scan->ride_count == 1;
        catch_up_end(watcher);
        if (watcher->from < next)
            watcher->from = next;
        watcher_move(watcher, WATCHER_LIVE);
        range_index_promote(watcher);
        notify_watcher_live(watcher);
    }
    stream_changed(stream);
}

static void scan_compacted(struct watch_stream *stream, struct watch_scan *scan)
{
    struct watch_history *history = stream->hub->history;
    int64_t compacted = history->ops->compact_revision(history), place = scan->place.revision;
    assert(compacted > place);
    scan->place = (struct watch_place){.revision = compacted};
    size_t left = scan->ride_count;
    struct list *link = scan->rides.next;
    while (left--) {
        struct watcher *watcher = LIST_ENTRY(link, struct watch_ride, in_scan)->watcher;
        link = link->next;
        if (watcher->ride->from < compacted)
            watcher_compacted(watcher);
    }
}

/* -- Chunks -- */

struct chunk {
    struct watch_stream *stream;
    struct watch_scan *scan;
    size_t bytes, bytes_max; /* about what the responses take; where to stop */
    bool partial;            /* of the last revision some riders were left out */
    int64_t revision;        /* the one being matched */
    const struct watch_event *event;
};

static struct watch_rider *rider_of(struct chunk *chunk, struct watcher *watcher)
{
    struct watch_hub *hub = chunk->stream->hub;
    uint32_t slot = watcher->ride->slot;
    if (slot < hub->rider_count && hub->riders[slot].watcher == watcher)
        return &hub->riders[slot];
    if (chunk->bytes > 2 * chunk->bytes_max) {
        chunk->partial = true;
        return NULL;
    }
    if (hub->rider_count == hub->rider_capacity) {
        hub->rider_capacity = size_max(64, hub->rider_capacity * 2);
        hub->riders = xrealloc(hub->riders, hub->rider_capacity * sizeof(hub->riders[0]));
    }
    watcher->ride->slot = (uint32_t)hub->rider_count;
    struct watch_rider *rider = &hub->riders[hub->rider_count++];
    *rider = (struct watch_rider){.watcher = watcher, .first = NONE, .last = NONE};
    return rider;
}

static void add_found(struct chunk *chunk, struct watcher *watcher)
{
    struct watch_hub *hub = chunk->stream->hub;
    if (watcher->ride->from > chunk->revision || !watch_filter_passes(watcher->flags, chunk->event))
        return;
    struct watch_rider *rider = rider_of(chunk, watcher);
    if (!rider)
        return;
    if (hub->found_count == hub->found_capacity) {
        hub->found_capacity = size_max(256, hub->found_capacity * 2);
        hub->found = xrealloc(hub->found, hub->found_capacity * sizeof(hub->found[0]));
    }
    uint32_t at = (uint32_t)hub->found_count++;
    hub->found[at] = (struct watch_found){chunk->event, chunk->revision, NONE};
    if (rider->last == NONE)
        rider->first = at;
    else
        hub->found[rider->last].next = at;
    rider->last = at;
    chunk->bytes += chunk->event->field.len + 16;
}

static void add_ring(void *ctx, struct watch_range *range)
{
    struct chunk *chunk = ctx;
    struct watcher *first = watch_range_first(range, chunk->stream);
    if (!first)
        return;
    /* Those catching up are at the back. */
    struct watcher *watcher = first;
    do {
        watcher = watcher->prev;
        if (watcher->state != WATCHER_CATCHING_UP)
            return;
        if (watcher->ride->scan == chunk->scan)
            add_found(chunk, watcher);
    } while (watcher != first);
}

static void match_batch(struct chunk *chunk, const struct watch_batch *batch)
{
    chunk->revision = batch->revision;
    for (size_t i = 0; i < batch->count; i++) {
        chunk->event = &batch->events[i];
        if (chunk->scan->ride_count > FEW_RIDERS) {
            range_index_visit(&chunk->stream->hub->index, chunk->event->key, add_ring, chunk);
            continue;
        }
        struct watch_ride *ride;
        LIST_FOREACH (ride, &chunk->scan->rides, in_scan) {
            const struct watch_range *range = ride->watcher->range;
            if (watch_range_covers(watch_range_key(range), watch_range_end(range),
                                   chunk->event->key))
                add_found(chunk, ride->watcher);
        }
    }
}

/* Reads on from the scan's place. *ret_after: where the next chunk begins. */
MUST_CHECK
static enum status chunk_read(struct chunk *chunk, struct watch_place *ret_after)
{
    struct watch_hub *hub = chunk->stream->hub;
    struct watch_place place = chunk->scan->place;
    hub->found_count = hub->rider_count = 0;
    unsigned revisions = 0;
    while (chunk->bytes < chunk->bytes_max && revisions < WATCH_BATCH_REVISIONS && hub->budget) {
        struct watch_place before = place;
        struct watch_batch batch;
        enum status status = hub_next(hub, &place, &batch);
        if (status == ST_END)
            break;
        if (status == ST_AGAIN && revisions) {
            place = before;
            break;
        }
        TRY(status);
        match_batch(chunk, &batch);
        revisions++;
        hub->budget -= size_min(hub->budget, batch.count);
        if (chunk->partial)
            place = before;
    }
    *ret_after = place;
    return ST_OK;
}

/* -- Responses -- */

/*
 * Writes the events of one revision, the list from `at` on, behind those in hub->piece. Returns
 * where the next revision begins; *ret_bytes grows, or stays when there is no room for all of them.
 */
static uint32_t write_revision(struct watch_hub *hub, const struct watcher *watcher, uint32_t at,
                               size_t bytes_max, size_t *ret_bytes, uint64_t *ret_events)
{
    uint8_t *start = hub->piece + MESSAGE_HEAD_BYTES_MAX;
    int64_t revision = hub->found[at].revision;
    size_t bytes = *ret_bytes;
    uint64_t events = 0;
    for (; at != NONE && hub->found[at].revision == revision; at = hub->found[at].next) {
        const struct watch_event *event = hub->found[at].event;
        struct slice prev = hub_prev(hub, watcher->flags, event);
        size_t more = message_event_size(event, prev);
        if (bytes > bytes_max || more > bytes_max - bytes) {
            bytes = SIZE_MAX;
            continue;
        }
        message_event_write(start + bytes, event, prev);
        bytes += more;
        events++;
    }
    if (bytes != SIZE_MAX) {
        *ret_bytes = bytes;
        *ret_events += events;
    }
    return at;
}

/* As many bytes of events as a response of this watcher may have before it must be cut. */
static size_t events_bytes_max(const struct watch_hub *hub, const struct watcher *watcher,
                               size_t head)
{
    if (!(watcher->flags & WATCHER_FRAGMENT) || hub->options.fragment_bytes > WATCH_PIECE_BYTES_MAX)
        return EVENTS_BYTES_MAX;
    return hub->options.fragment_bytes > head ? hub->options.fragment_bytes - head - 1 : 0;
}

/* One response of as many revisions as fit. Returns where its list goes on. */
static uint32_t send_some(struct watch_stream *stream, struct watch_output *out,
                          struct watcher *watcher, uint32_t at)
{
    struct watch_hub *hub = stream->hub;
    const struct message_header *header = hub_header(hub, hub->tail);
    size_t head = message_event_head_size(header, watcher->id);
    size_t bytes_max = events_bytes_max(hub, watcher, head), bytes = 0;
    uint64_t events = 0;
    watcher->flags &= (uint8_t)~WATCHER_QUIET;
    while (at != NONE) {
        int64_t revision = hub->found[at].revision;
        size_t before = bytes;
        uint32_t next = write_revision(hub, watcher, at, bytes_max, &bytes, &events);
        if (bytes == before && bytes > 0)
            break;
        watcher->ride->from = revision + 1;
        at = next;
        if (bytes == 0) {
            large_begin(stream, watcher, revision, hub->tail);
            return at;
        }
    }
    uint8_t *start = hub->piece + MESSAGE_HEAD_BYTES_MAX - head;
    message_event_head_write(start, header, watcher->id, bytes);
    output_end(stream, out, start, head + bytes);
    stream_count_events(stream, events);
    return at;
}

/*
 * Returns the first revision that some rider was not told for lack of room; INT64_MAX when all got
 * what the chunk has for them.
 */
static int64_t send_chunk(struct watch_stream *stream, struct watch_output *out)
{
    struct watch_hub *hub = stream->hub;
    int64_t unsent = INT64_MAX;
    for (size_t i = 0; i < hub->rider_count; i++) {
        uint32_t at = hub->riders[i].first;
        while (at != NONE && output_open(stream, out))
            at = send_some(stream, out, hub->riders[i].watcher, at);
        if (at != NONE && hub->found[at].revision < unsent)
            unsent = hub->found[at].revision;
    }
    return unsent;
}

static struct watch_scan *scan_ready(struct watch_stream *stream)
{
    struct watch_scan *scan;
    LIST_FOREACH (scan, &stream->scans, in_stream)
        if (!scan->waiting)
            return scan;
    return NULL;
}

void catch_up_fill(struct watch_stream *stream, struct watch_output *out)
{
    struct watch_hub *hub = stream->hub;
    struct watch_scan *scan = scan_ready(stream);
    assert(scan);
    size_t room = (size_t)(out->end - out->at);
    struct chunk chunk = {
        .stream = stream,
        .scan = scan,
        .bytes_max = size_min(size_max(room, CHUNK_BYTES_MIN), EVENTS_BYTES_MAX),
    };
    struct watch_place after;
    enum status status = chunk_read(&chunk, &after);
    if (status == ST_COMPACTED) {
        scan_compacted(stream, scan);
        return;
    }
    if (status == ST_AGAIN) {
        scan->waiting = true;
        stream->scans_waiting++;
        stream_park_waiting(stream);
        return;
    }
    assert(status == ST_OK);
    if (!hub->budget)
        stream_park_hungry(stream);
    int64_t unsent = send_chunk(stream, out);
    if (unsent < after.revision) {
        if (unsent > scan->place.revision)
            scan->place = (struct watch_place){.revision = unsent};
        return;
    }
    scan->place = after;
    list_remove(&scan->in_stream);
    list_push_back(&stream->scans, &scan->in_stream);
    if (after.revision > hub->tail)
        scan_finish(stream, scan);
}
