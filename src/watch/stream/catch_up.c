/*
 * Watchers that start in the past. Those of a stream that start near each other share one scan, and
 * all scans of a hub in the same part of history share one reading of it (history_window.h). A
 * member's `from` says what was sent to it; so what did not fit is simply searched again, a scan
 * may be moved back for a new member, and no event is sent twice.
 *
 * At the hub's tail the members become live.
 */
#include "base/xalloc.h"
#include "watch/hub/hub_read.h"
#include "watch/hub/long_revision.h"
#include "watch/stream/output.h"
#include "watch/stream/watcher_state.h"

enum {
    FEW_MEMBERS = 8, /* up to this many are compared one by one */
    SCANS_MAX = 8,   /* scans of one stream */
    SCAN_NEAR =
        4096, /* a watcher joins a scan that is at most this many revisions before its start */
    RESPONSE_REVISIONS = 1000, /* in one response of a catching-up watcher, as in etcd */
    NONE = WINDOW_NONE,
    CHUNK_BYTES_MIN = 1024,
    EVENTS_BYTES_MAX = WATCH_PIECE_BYTES_MAX - MESSAGE_HEAD_BYTES_MAX,
};

/* -- Scans -- */

static struct watch_scan *scan_new(struct watch_stream *stream, int64_t from)
{
    assert(stream->scan_count < SCANS_MAX);
    struct watch_scan *scan = pool_alloc(stream->hub->pool, sizeof(*scan));
    *scan = (struct watch_scan){.place.revision = from};
    list_init(&scan->members);
    /* First, because a client that has just created a watch waits for its first response. */
    list_push_front(&sending(stream)->scans, &scan->in_stream);
    stream->scan_count++;
    stream->hub->scans++;
    return scan;
}

/* Moves the scan back to `from`. What was sent to its members stays recorded in their `from`. */
static void scan_rewind(struct watch_scan *scan, int64_t from)
{
    assert(from < scan->place.revision);
    struct scan_member *member;
    LIST_FOREACH (member, &scan->members, in_scan)
        if (member->from < scan->place.revision)
            member->from = scan->place.revision;
    scan->place = (struct watch_place){.revision = from};
    scan->long_revision = 0;
}

/* The scan that a watcher joins: one that will soon be at its start, or else a new one. */
static struct watch_scan *scan_for(struct watch_stream *stream, int64_t from)
{
    struct watch_scan *scan, *before = NULL, *lowest = NULL;
    LIST_FOREACH (scan, &sending(stream)->scans, in_stream) {
        int64_t place = scan->place.revision;
        if (place <= from && (!before || place > before->place.revision))
            before = scan;
        if (!lowest || place < lowest->place.revision)
            lowest = scan;
    }
    bool near = before && from - before->place.revision <= SCAN_NEAR;
    if (!near && stream->scan_count < SCANS_MAX)
        return scan_new(stream, from);
    if (before)
        return before; /* there are as many scans as there may be, so it takes longer */
    scan_rewind(lowest, from);
    return lowest;
}

void catch_up_begin(struct watcher *watcher)
{
    struct watch_stream *stream = watcher->stream;
    assert(watcher->state == WATCHER_CATCHING_UP);
    struct scan_member *member = pool_alloc(stream->hub->pool, sizeof(*member));
    *member = (struct scan_member){
        .watcher = watcher,
        .from = watcher->from,
        .scan = scan_for(stream, watcher->from),
    };
    list_push_back(&member->scan->members, &member->in_scan);
    member->scan->member_count++;
    member->scan->long_left = member->scan->member_count;
    watcher->member = member;
    hub_windows_drop(stream->hub);
    stream->hub->stats.watchers_catching_up++;
    stream->hub->stats_scan.wanted = true;
}

void catch_up_end(struct watcher *watcher)
{
    struct watch_stream *stream = watcher->stream;
    assert(watcher->state == WATCHER_CATCHING_UP);
    struct scan_member *member = watcher->member;
    struct watch_scan *scan = member->scan;
    assert(member->watcher == watcher);
    assert(scan->member_count > 0);
    watcher->from = member->from;
    list_remove(&member->in_scan);
    pool_free_object(stream->hub->pool, member);
    stream->hub->stats.watchers_catching_up--;
    if (--scan->member_count)
        return;
    /* That was the last member: the scan ends, and with it what was read for it alone. */
    for (size_t i = 0; i < WATCH_WINDOWS; i++)
        if (stream->hub->windows[i].only == scan)
            history_window_drop(&stream->hub->windows[i]);
    list_remove(&scan->in_stream);
    stream->scan_count--;
    stream->hub->scans--;
    stream->scans_waiting = (uint8_t)(stream->scans_waiting - scan->waiting);
    pool_free_object(stream->hub->pool, scan);
}

/* Everything up to the tail was sent to all members: they become live. */
static void scan_finish(struct watch_stream *stream, struct watch_scan *scan)
{
    int64_t next = scan->place.revision;
    bool last = false; /* ending the last member frees the scan */
    while (!last) {
        struct watcher *watcher =
            LIST_ENTRY(scan->members.next, struct scan_member, in_scan)->watcher;
        last = scan->member_count == 1;
        catch_up_end(watcher);
        if (watcher->from < next)
            watcher->from = next;
        watcher_move(watcher, WATCHER_LIVE);
        range_index_promote(watcher);
        notify_watcher_live(watcher);
    }
    stream_changed(stream);
}

/* The revisions before `behind` cannot be sent: ends the members that need them. */
static void scan_gone(struct watch_scan *scan, struct watch_place behind,
                      void (*end)(struct watcher *))
{
    scan->place = behind;
    size_t left = scan->member_count;
    struct list *link = scan->members.next;
    while (left--) {
        struct watcher *watcher = LIST_ENTRY(link, struct scan_member, in_scan)->watcher;
        link = link->next;
        if (watcher->member->from < behind.revision)
            end(watcher);
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
    /* The window stays before the damaged revision, for all its readers. */
    if (hub_next(stream->hub, &behind, &batch) == ST_DAMAGED)
        scan_gone(scan, behind, watcher_damaged);
}

/* -- Reading into a window -- */

/* The search of one revision for the ranges of watchers that catch up. */
struct matching {
    struct watch_hub *hub;
    struct history_window *window;
    const struct watch_stream *stream;
    const struct watch_scan *scan;
    size_t bytes; /* about the size of the scan's responses */
    int64_t revision;
    const struct watch_event *event;
};

/* Whether a member of the scan on this range still needs the revision. */
static bool scan_wants(const struct matching *matching, const struct watch_range *range)
{
    struct watcher *first = watch_range_first(range, matching->stream), *watcher = first;
    if (!first)
        return false;
    do {
        watcher = watcher->prev; /* those that catch up are at the back */
        if (watcher->state != WATCHER_CATCHING_UP)
            return false;
        if (watcher->member->scan == matching->scan && watcher->member->from <= matching->revision)
            return true;
    } while (watcher != first);
    return false;
}

static void add_found(struct matching *matching, struct watch_range *range)
{
    history_window_add(matching->window, range, matching->event, matching->revision);
}

/* A range covers the event. Other scans may use the window too, unless it is for this one only. */
static void visit(void *ctx, struct watch_range *range)
{
    struct matching *matching = ctx;
    if (!range->catching_up)
        return;
    bool wanted = scan_wants(matching, range);
    if (wanted)
        matching->bytes += matching->event->field.len + 16;
    if (wanted || !matching->window->only)
        add_found(matching, range);
}

/* A scan with few members, alone on its window, compares each of them. */
static void match_few(struct matching *matching)
{
    struct scan_member *member;
    LIST_FOREACH (member, &matching->scan->members, in_scan) {
        struct watch_range *range = member->watcher->range;
        if (member->from > matching->revision ||
            !watch_range_covers(watch_range_key(range), watch_range_end(range),
                                matching->event->key))
            continue;
        matching->bytes += matching->event->field.len + 16;
        add_found(matching, range);
    }
}

/* Adds the events of a revision that the range covers. False: there are none. */
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
 * For a revision with so many events, and a scan with so many members, that finding the events of
 * all would take long: finds those of some members. The others follow in the next window, which
 * begins at the same revision. Each member that was examined moves to the back.
 */
static void match_some(struct matching *matching, const struct watch_batch *batch)
{
    struct history_window *window = matching->window;
    struct watch_scan *scan = (struct watch_scan *)(uintptr_t)matching->scan;
    size_t left = scan->member_count, room = size_max(1, WINDOW_FOUND_MAX / batch->count);
    matching->revision = batch->revision;
    window->partial = true;
    for (; left && room; left--) {
        struct list *link = list_pop_front(&scan->members);
        struct scan_member *member = LIST_ENTRY(link, struct scan_member, in_scan);
        list_push_back(&scan->members, link);
        struct watch_range *range = member->watcher->range;
        if (member->from > batch->revision || history_window_find(window, range))
            continue;
        room--;
        if (!match_one(matching, batch, range))
            member->from = batch->revision + 1; /* the range has no events in it */
    }
    if (left)
        window->lacks = batch->revision;
}

static void match(struct matching *matching, const struct watch_batch *batch)
{
    bool few = matching->window->only && matching->scan->member_count <= FEW_MEMBERS;
    matching->revision = batch->revision;
    for (size_t i = 0; i < batch->count; i++) {
        matching->event = &batch->events[i];
        if (few)
            match_few(matching);
        else
            range_index_visit(&matching->hub->index, matching->event->key, visit, matching);
    }
}

/*
 * Reads on behind window->place until the scan will find about `bytes` bytes of events. ST_END:
 * there is nothing more. ST_LIMIT: the window is long enough for this turn, or a long revision
 * follows (window->long_revision). ST_COMPACTED, ST_DAMAGED, ST_AGAIN: as the history says. ST_OK:
 * at least one revision was read.
 */
static enum status window_read(struct watch_hub *hub, struct history_window *window,
                               const struct watch_stream *stream, const struct watch_scan *scan,
                               size_t bytes)
{
    struct matching matching = {.hub = hub, .window = window, .stream = stream, .scan = scan};
    enum status status = ST_LIMIT;
    window->long_revision = 0;
    while (matching.bytes < bytes && window->events < WINDOW_EVENTS_MAX &&
           window->found_count < WINDOW_FOUND_MAX && hub->budget) {
        struct watch_place before = window->place;
        struct watch_batch batch;
        enum status next = hub_next(hub, &window->place, &batch);
        if (next != ST_OK) {
            if (next != ST_END)
                window->place = before;
            return status == ST_OK ? ST_OK : next;
        }
        if (!batch.events) { /* a long one: the window ends before it */
            window->long_revision = batch.revision;
            window->long_after = window->place;
            window->place = before;
            return status;
        }
        /* A crowded revision may give so many found events that each scan reads it alone; a dense
         * one is read for some members of the scan at a time. */
        bool crowded =
            batch.count > 1 && batch.count * hub->stats.watchers_catching_up > WINDOW_FOUND_MAX;
        bool dense = crowded && scan->member_count > 1 &&
                     batch.count * scan->member_count > WINDOW_FOUND_MAX;
        if (crowded && window->events) { /* it begins a window of its own */
            window->place = before;
            return status;
        }
        if (crowded)
            window->only = scan;
        (dense ? match_some : match)(&matching, &batch);
        window->events += batch.count;
        hub->budget -= size_min(hub->budget, crowded ? WATCH_FILL_EVENTS : batch.count);
        status = ST_OK;
        if (crowded)
            break;
    }
    return status;
}

/* -- Responses -- */

/* The first event of the list, from `at` on, that the watcher still needs. */
static uint32_t next_wanted(const struct history_window *window, const struct watcher *watcher,
                            int64_t floor, uint32_t at)
{
    const struct window_found *found = window->found;
    while (at != NONE &&
           (found[at].revision < floor || !watch_filter_passes(watcher->flags, found[at].event)))
        at = found[at].next;
    return at;
}

/* Writes the events of one revision, the list from `at` on, behind those in hub->piece. Returns
 * where the next revision begins; *ret_bytes grows, or is unchanged when they do not all fit. */
static uint32_t write_revision(struct watch_hub *hub, const struct history_window *window,
                               const struct watcher *watcher, uint32_t at, size_t bytes_max,
                               size_t *ret_bytes, uint64_t *ret_events)
{
    const struct window_found *found = window->found;
    uint8_t *start = hub->piece + MESSAGE_HEAD_BYTES_MAX;
    int64_t revision = found[at].revision;
    size_t bytes = *ret_bytes;
    uint64_t events = 0;
    for (; at != NONE && found[at].revision == revision;
         at = next_wanted(window, watcher, 0, found[at].next)) {
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

/* The largest number of bytes of events in a response of this watcher before it must be split. */
static size_t events_bytes_max(const struct watch_hub *hub, const struct watcher *watcher,
                               size_t head)
{
    if (!(watcher->flags & WATCHER_FRAGMENT) || hub->options.fragment_bytes > WATCH_PIECE_BYTES_MAX)
        return EVENTS_BYTES_MAX;
    return hub->options.fragment_bytes > head ? hub->options.fragment_bytes - head - 1 : 0;
}

/* Writes one response with as many revisions as fit. Returns where its list continues. */
static uint32_t send_some(struct watch_stream *stream, struct watch_output *out,
                          const struct history_window *window, struct watcher *watcher, uint32_t at)
{
    struct watch_hub *hub = stream->hub;
    const struct message_header *header = hub_header(hub, hub->tail);
    size_t head = message_event_head_size(header, watcher->id);
    size_t bytes_max = events_bytes_max(hub, watcher, head), bytes = 0;
    uint64_t events = 0;
    assert(at != NONE);
    assert(output_open(stream, out));
    watcher->flags &= (uint8_t)~WATCHER_QUIET;
    for (int revisions = 0; at != NONE && revisions < RESPONSE_REVISIONS; revisions++) {
        int64_t revision = window->found[at].revision;
        size_t before = bytes;
        uint32_t next = write_revision(hub, window, watcher, at, bytes_max, &bytes, &events);
        if (bytes == before && bytes > 0)
            break; /* it did not fit, and begins the next response */
        watcher->member->from = revision + 1;
        at = next;
        if (bytes == 0) { /* it fits no response of this size */
            large_response_begin(stream, watcher, revision, hub->tail);
            return at;
        }
    }
    uint8_t *start = hub->piece + MESSAGE_HEAD_BYTES_MAX - head;
    message_event_head_write(start, header, watcher->id, bytes);
    output_end(stream, out, start, head + bytes);
    stream_count_events(stream, events);
    return at;
}

/* Returns the first revision that was not sent to the watcher for lack of room; INT64_MAX: none. */
static int64_t send_member(struct watch_stream *stream, struct watch_output *out,
                           const struct history_window *window, struct watcher *watcher)
{
    const struct window_list *list = history_window_find(window, watcher->range);
    if (!list)
        return INT64_MAX;
    struct scan_member *member = watcher->member;
    int64_t place = member->scan->place.revision;
    uint32_t at = next_wanted(window, watcher, member->from > place ? member->from : place,
                              member->window == window->number ? member->at : list->first);
    while (at != NONE && output_open(stream, out))
        at = send_some(stream, out, window, watcher, at);
    member->window = window->number;
    member->at = at == NONE ? list->last : at;
    if (window->partial && at == NONE && member->from < window->place.revision)
        member->from =
            window->place.revision; /* its part was sent, or its filters exclude all of it */
    return at == NONE ? INT64_MAX : window->found[at].revision;
}

/* The same for the scan's members on one range. */
static int64_t send_range(struct watch_stream *stream, struct watch_output *out,
                          const struct history_window *window, const struct watch_scan *scan,
                          const struct watch_range *range)
{
    struct watcher *first = watch_range_first(range, stream), *watcher = first;
    int64_t unsent = INT64_MAX;
    while (first) {
        watcher = watcher->prev; /* those that catch up are at the back */
        if (watcher->state != WATCHER_CATCHING_UP)
            break;
        if (watcher->member->scan == scan) {
            int64_t at = send_member(stream, out, window, watcher);
            unsent = at < unsent ? at : unsent;
        }
        if (watcher == first)
            break;
    }
    return unsent;
}

/* The same for all, iterating over the members or the ranges found, whichever are fewer. */
static int64_t send_window(struct watch_stream *stream, struct watch_output *out,
                           const struct history_window *window, const struct watch_scan *scan)
{
    int64_t unsent = window->lacks, at;
    if (window->list_count < scan->member_count) {
        for (size_t i = 0; i < window->list_count; i++) {
            at = send_range(stream, out, window, scan, window->lists[i].range);
            unsent = at < unsent ? at : unsent;
        }
        return unsent;
    }
    struct scan_member *member;
    LIST_FOREACH (member, &scan->members, in_scan) {
        at = send_member(stream, out, window, member->watcher);
        unsent = at < unsent ? at : unsent;
    }
    return unsent;
}

/* The window that contains the place of the scan, or a new one. */
static struct history_window *window_for(struct watch_hub *hub, const struct watch_scan *scan)
{
    int64_t place = scan->place.revision;
    bool lacking = false;
    for (size_t i = 0; i < WATCH_WINDOWS; i++) {
        struct history_window *window = &hub->windows[i];
        if (!window->from || place < window->from || place > window->place.revision ||
            (window->only && window->only != scan))
            continue;
        if (place < window->lacks)
            return window;
        lacking = true;
    }
    struct history_window *window = &hub->windows[hub->window_next++ % WATCH_WINDOWS];
    history_window_drop(window);
    window->from = place;
    window->number = ++hub->window_number;
    window->place = scan->place;
    window->lacks = INT64_MAX;
    window->partial = false;
    /* Ranges that did not fit a window, and windows that no other scan needs, are read for the scan
     * alone. */
    window->only = lacking || hub->scans == 1 ? scan : NULL;
    return window;
}

static struct watch_scan *scan_ready(struct watch_stream *stream)
{
    struct watch_scan *scan;
    LIST_FOREACH (scan, &sending(stream)->scans, in_stream)
        if (!scan->waiting)
            return scan;
    return NULL;
}

static void defer(struct watch_stream *stream)
{
    stream->scan_deferred = true;
    stream_defer(stream);
}

/* What is before `place` was sent to all members; the other scans take their turn. */
static void scan_move_on(struct watch_stream *stream, struct watch_scan *scan,
                         struct watch_place place)
{
    assert(place.revision >= scan->place.revision);
    scan->place = place;
    list_remove(&scan->in_stream);
    list_push_back(&sending(stream)->scans, &scan->in_stream);
    if (scan->place.revision > stream->hub->tail)
        scan_finish(stream, scan);
}

/* -- Long revisions -- */

/* Each member that was served moves to the back. ST_OK: all were. ST_END: there is no room. */
static enum status send_long(struct watch_stream *stream, struct watch_output *out,
                             struct watch_scan *scan, struct long_revision *long_rev)
{
    if (scan->long_revision != long_rev->revision)
        scan->long_left = scan->member_count;
    scan->long_revision = long_rev->revision;
    for (; scan->long_left; scan->long_left--) {
        struct list *link = scan->members.next;
        struct scan_member *member = LIST_ENTRY(link, struct scan_member, in_scan);
        if (!output_open(stream, out))
            return ST_END;
        if (member->from <= long_rev->revision)
            TRY(live_send_long(stream, member->watcher, &member->from, long_rev,
                               stream->hub->tail));
        list_remove(link);
        list_push_back(&scan->members, link);
    }
    scan->long_revision = 0;
    return ST_OK;
}

/* The next revision of the scan is a long one. */
static void fill_long(struct watch_stream *stream, struct watch_output *out,
                      struct watch_scan *scan, int64_t revision, struct watch_place after)
{
    struct long_revision *long_rev;
    enum status status = long_revision_get_searched(stream->hub, &scan->place, revision, &long_rev);
    if (status == ST_OK)
        status = send_long(stream, out, scan, long_rev);
    if (status == ST_OK)
        scan_move_on(stream, scan, after);
    else if (status == ST_COMPACTED)
        scan_compacted(stream, scan);
    else if (status == ST_DAMAGED)
        scan_gone(scan, after, watcher_damaged);
    else if (status == ST_AGAIN) /* the hub still reads the revision, or searches it */
        defer(stream);
    else
        assert(status == ST_END); /* there is no room: the fill after this one continues here */
}

void catch_up_fill(struct watch_stream *stream, struct watch_output *out)
{
    struct watch_hub *hub = stream->hub;
    struct watch_scan *scan = scan_ready(stream);
    assert(scan);
    assert(!stream->scan_deferred);
    size_t room = (size_t)(out->end - out->at);
    struct history_window *window = window_for(hub, scan);
    enum status status = ST_OK;
    if (scan->place.revision == window->place.revision)
        status = window_read(hub, window, stream, scan,
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
        stream_wait_for_history(stream);
        return;
    }
    if (status == ST_LIMIT && window->long_revision) {
        struct watch_place after = window->long_after;
        fill_long(stream, out, scan, window->long_revision, after);
        return;
    }
    if (status == ST_LIMIT) { /* the fill, or the window, has no more work left in this turn */
        defer(stream);
        return;
    }
    assert(status == ST_OK || status == ST_END);
    int64_t unsent = send_window(stream, out, window, scan);
    if (unsent < window->place.revision) {
        /* No room, or the window lacks some: the next fill, or window, begins with it. */
        if (unsent > scan->place.revision)
            scan->place = (struct watch_place){.revision = unsent};
        return;
    }
    scan_move_on(stream, scan, window->place);
}
