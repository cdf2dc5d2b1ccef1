/*
 * Watchers that start in the past. Those of a stream that start near each other ride one scan, and
 * all scans of a hub that stand in the same stretch of history share the reading of it (stretch.h).
 * A rider's `from` says what it has been told; so what had no room is simply gone over again, a
 * scan may be set back for a newcomer, and nobody gets anything twice.
 *
 * At the hub's tail the riders become live.
 */
#include "base/xalloc.h"
#include "watch/output.h"

enum {
    NONE = STRETCH_NONE,
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
    stream->hub->scans++;
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
    scan->long_revision = 0;
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
    ride->scan->long_left = ride->scan->ride_count;
    watcher->ride = ride;
    hub_stretches_drop(stream->hub);
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
    for (size_t i = 0; i < WATCH_STRETCHES; i++)
        if (stream->hub->stretches[i].only == scan)
            stretch_drop(&stream->hub->stretches[i]);
    list_remove(&scan->in_stream);
    stream->scan_count--;
    stream->hub->scans--;
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

static void scan_gone(struct watch_scan *scan, struct watch_place behind,
                      void (*tell)(struct watcher *))
{
    scan->place = behind;
    size_t left = scan->ride_count;
    struct list *link = scan->rides.next;
    while (left--) {
        struct watcher *watcher = LIST_ENTRY(link, struct watch_ride, in_scan)->watcher;
        link = link->next;
        if (watcher->ride->from < behind.revision)
            tell(watcher);
    }
}

static void scan_compacted(struct watch_stream *stream, struct watch_scan *scan)
{
    struct watch_history *history = stream->hub->history;
    int64_t compacted = history->ops->compact_revision(history);
    assert(compacted > scan->place.revision);
    scan_gone(scan, (struct watch_place){.revision = compacted}, watcher_compacted);
}

static void scan_damaged(struct watch_stream *stream, struct watch_scan *scan)
{
    struct watch_place behind = scan->place;
    struct watch_batch batch;
    /* The stretch stands before it, for all who read there. */
    if (hub_next(stream->hub, &behind, &batch) == ST_DAMAGED)
        scan_gone(scan, behind, watcher_damaged);
}

/* -- Responses -- */

/* The first of the list from `at` on that the watcher is to be told. */
static uint32_t next_wanted(const struct watch_stretch *stretch, const struct watcher *watcher,
                            int64_t floor, uint32_t at)
{
    const struct stretch_found *found = stretch->found;
    while (at != NONE &&
           (found[at].revision < floor || !watch_filter_passes(watcher->flags, found[at].event)))
        at = found[at].next;
    return at;
}

/*
 * Writes the events of one revision, the list from `at` on, behind those in hub->piece. Returns
 * where the next revision begins; *ret_bytes grows, or stays when there is no room for all of them.
 */
static uint32_t write_revision(struct watch_hub *hub, const struct watch_stretch *stretch,
                               const struct watcher *watcher, uint32_t at, size_t bytes_max,
                               size_t *ret_bytes, uint64_t *ret_events)
{
    const struct stretch_found *found = stretch->found;
    uint8_t *start = hub->piece + MESSAGE_HEAD_BYTES_MAX;
    int64_t revision = found[at].revision;
    size_t bytes = *ret_bytes;
    uint64_t events = 0;
    for (; at != NONE && found[at].revision == revision;
         at = next_wanted(stretch, watcher, 0, found[at].next)) {
        const struct watch_event *event = found[at].event;
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
                          const struct watch_stretch *stretch, struct watcher *watcher, uint32_t at)
{
    struct watch_hub *hub = stream->hub;
    const struct message_header *header = hub_header(hub, hub->tail);
    size_t head = message_event_head_size(header, watcher->id);
    size_t bytes_max = events_bytes_max(hub, watcher, head), bytes = 0;
    uint64_t events = 0;
    watcher->flags &= (uint8_t)~WATCHER_QUIET;
    for (int revisions = 0; at != NONE && revisions < WATCH_BATCH_REVISIONS; revisions++) {
        int64_t revision = stretch->found[at].revision;
        size_t before = bytes;
        uint32_t next = write_revision(hub, stretch, watcher, at, bytes_max, &bytes, &events);
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

/* Returns the first revision that the watcher was not told for lack of room; INT64_MAX: none. */
static int64_t send_rider(struct watch_stream *stream, struct watch_output *out,
                          const struct watch_stretch *stretch, struct watcher *watcher)
{
    const struct stretch_list *list = stretch_find(stretch, watcher->range);
    if (!list)
        return INT64_MAX;
    struct watch_ride *ride = watcher->ride;
    int64_t place = ride->scan->place.revision;
    uint32_t at = next_wanted(stretch, watcher, ride->from > place ? ride->from : place,
                              ride->stretch == stretch->number ? ride->at : list->first);
    while (at != NONE && output_open(stream, out))
        at = send_some(stream, out, stretch, watcher, at);
    ride->stretch = stretch->number;
    ride->at = at == NONE ? list->last : at;
    if (stretch->partial && at == NONE && ride->from < stretch->place.revision)
        ride->from = stretch->place.revision; /* it has had its part, if only of what it filters */
    return at == NONE ? INT64_MAX : stretch->found[at].revision;
}

/* The same of the scan's riders on one range. */
static int64_t send_range(struct watch_stream *stream, struct watch_output *out,
                          const struct watch_stretch *stretch, const struct watch_scan *scan,
                          const struct watch_range *range)
{
    struct watcher *first = watch_range_first(range, stream), *watcher = first;
    int64_t unsent = INT64_MAX;
    while (first) {
        watcher = watcher->prev; /* those catching up are at the back */
        if (watcher->state != WATCHER_CATCHING_UP)
            break;
        if (watcher->ride->scan == scan) {
            int64_t at = send_rider(stream, out, stretch, watcher);
            unsent = at < unsent ? at : unsent;
        }
        if (watcher == first)
            break;
    }
    return unsent;
}

/* The same of all, going over the riders or the ranges that were found, whichever are fewer. */
static int64_t send_stretch(struct watch_stream *stream, struct watch_output *out,
                            const struct watch_stretch *stretch, const struct watch_scan *scan)
{
    int64_t unsent = stretch->lacks, at;
    if (stretch->list_count < scan->ride_count) {
        for (size_t i = 0; i < stretch->list_count; i++) {
            at = send_range(stream, out, stretch, scan, stretch->lists[i].range);
            unsent = at < unsent ? at : unsent;
        }
        return unsent;
    }
    struct watch_ride *ride;
    LIST_FOREACH (ride, &scan->rides, in_scan) {
        at = send_rider(stream, out, stretch, ride->watcher);
        unsent = at < unsent ? at : unsent;
    }
    return unsent;
}

/* The stretch that the scan stands in, or a new one. */
static struct watch_stretch *stretch_of(struct watch_hub *hub, const struct watch_scan *scan)
{
    int64_t place = scan->place.revision;
    bool lacking = false;
    for (size_t i = 0; i < WATCH_STRETCHES; i++) {
        struct watch_stretch *stretch = &hub->stretches[i];
        if (!stretch->from || place < stretch->from || place > stretch->place.revision ||
            (stretch->only && stretch->only != scan))
            continue;
        if (place < stretch->lacks)
            return stretch;
        lacking = true;
    }
    struct watch_stretch *stretch = &hub->stretches[hub->stretch_next++ % WATCH_STRETCHES];
    stretch_drop(stretch);
    stretch->from = place;
    stretch->number = ++hub->stretch_number;
    stretch->place = scan->place;
    stretch->lacks = INT64_MAX;
    stretch->partial = false;
    /* What was left out for lack of room, or is nobody else's, is read for the scan alone. */
    stretch->only = lacking || hub->scans == 1 ? scan : NULL;
    return stretch;
}

static struct watch_scan *scan_ready(struct watch_stream *stream)
{
    struct watch_scan *scan;
    LIST_FOREACH (scan, &stream->scans, in_stream)
        if (!scan->waiting)
            return scan;
    return NULL;
}

static void park_hungry(struct watch_stream *stream)
{
    stream->scan_hungry = true;
    stream_park_hungry(stream);
}

/* All riders have been told what is before `place`; the other scans take their turn. */
static void scan_move_on(struct watch_stream *stream, struct watch_scan *scan,
                         struct watch_place place)
{
    scan->place = place;
    list_remove(&scan->in_stream);
    list_push_back(&stream->scans, &scan->in_stream);
    if (scan->place.revision > stream->hub->tail)
        scan_finish(stream, scan);
}

/* -- Long revisions -- */

/* Each rider that was told goes to the back. ST_OK: all were. ST_END: there is no room. */
static enum status tell_long(struct watch_stream *stream, struct watch_output *out,
                             struct watch_scan *scan, struct watch_long *l)
{
    if (scan->long_revision != l->revision)
        scan->long_left = scan->ride_count;
    scan->long_revision = l->revision;
    for (; scan->long_left; scan->long_left--) {
        struct list *link = scan->rides.next;
        struct watch_ride *ride = LIST_ENTRY(link, struct watch_ride, in_scan);
        if (!output_open(stream, out))
            return ST_END;
        if (ride->from <= l->revision)
            TRY(live_tell_long(stream, ride->watcher, &ride->from, l, stream->hub->tail));
        list_remove(link);
        list_push_back(&scan->rides, link);
    }
    scan->long_revision = 0;
    return ST_OK;
}

/* The scan stands before a long revision. */
static void fill_long(struct watch_stream *stream, struct watch_output *out,
                      struct watch_scan *scan, int64_t revision, struct watch_place after)
{
    struct watch_long *l;
    enum status status = long_get_searched(stream->hub, &scan->place, revision, &l);
    if (status == ST_OK)
        status = tell_long(stream, out, scan, l);
    if (status == ST_OK)
        scan_move_on(stream, scan, after);
    else if (status == ST_COMPACTED)
        scan_compacted(stream, scan);
    else if (status == ST_DAMAGED)
        scan_gone(scan, after, watcher_damaged);
    else if (status == ST_AGAIN)
        park_hungry(stream);
    else
        assert(status == ST_END);
}

void catch_up_fill(struct watch_stream *stream, struct watch_output *out)
{
    struct watch_hub *hub = stream->hub;
    struct watch_scan *scan = scan_ready(stream);
    assert(scan);
    size_t room = (size_t)(out->end - out->at);
    struct watch_stretch *stretch = stretch_of(hub, scan);
    enum status status = ST_OK;
    if (scan->place.revision == stretch->place.revision)
        status = stretch_read(hub, stretch, stream, scan,
                              size_min(size_max(room, CHUNK_BYTES_MIN), EVENTS_BYTES_MAX));
    if (status == ST_COMPACTED) {
        scan_compacted(stream, scan);
        return;
    }
    if (status == ST_DAMAGED) {
        scan_damaged(stream, scan);
        return;
    }
    if (status == ST_AGAIN) {
        scan->waiting = true;
        stream->scans_waiting++;
        stream_park_waiting(stream);
        return;
    }
    if (status == ST_LIMIT && stretch->long_revision) {
        struct watch_place after = stretch->long_after;
        fill_long(stream, out, scan, stretch->long_revision, after);
        return;
    }
    if (status == ST_LIMIT) {
        park_hungry(stream);
        return;
    }
    assert(status == ST_OK || status == ST_END);
    int64_t unsent = send_stretch(stream, out, stretch, scan);
    if (unsent < stretch->place.revision) {
        if (unsent > scan->place.revision)
            scan->place = (struct watch_place){.revision = unsent};
        return;
    }
    scan_move_on(stream, scan, stretch->place);
}
