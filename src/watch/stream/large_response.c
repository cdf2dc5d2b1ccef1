#include "base/xalloc.h"
#include "watch/hub/hub_read.h"
#include "watch/hub/long_revision.h"
#include "watch/stream/output.h"
#include "watch/stream/watcher_state.h"

/*
 * The message under way. It does not refer to its watcher, which may be closed meanwhile. The
 * events are read again for every fill. The events before at_event were written, or are not in the
 * response.
 */
struct large_response {
    int64_t watch_id;
    int64_t revision; /* revision of the events */
    /* Place of a long revision, which is held; otherwise its revision is 0. */
    struct watch_place place;
    size_t end;              /* for a long revision: the place after the last event of the range */
    int64_t header_revision; /* in the response's header */
    size_t at_event, at_byte;
    size_t piece_end; /* the event behind this piece, which is one message; 0: the piece is not
                         begun */
    size_t measured;  /* before the piece is begun: events before this one were measured */
    size_t piece_bytes, piece_events; /* the result of measuring */
    size_t piece_last;                /* the event behind the last one measured */
    size_t piece_left;                /* bytes of the piece's events that are not written yet */
    uint8_t head[MESSAGE_HEAD_BYTES_MAX];
    size_t head_len, head_at;
    bool orphan;    /* its watcher is closed */
    unsigned flags; /* flags of the watcher */
    size_t key_len, end_len;
    uint8_t bytes[];
};

void large_response_begin(struct watch_stream *stream, const struct watcher *watcher,
                          int64_t revision, int64_t header_revision)
{
    assert(!sending(stream)->large);
    struct slice key = watch_range_key(watcher->range), end = watch_range_end(watcher->range);
    struct large_response *large = xcalloc(1, sizeof(*large) + key.len + end.len);
    large->watch_id = watcher->id;
    large->revision = revision;
    large->header_revision = header_revision;
    large->flags = watcher->flags;
    large->key_len = key.len;
    large->end_len = end.len;
    slice_copy(large->bytes, key);
    slice_copy(large->bytes + key.len, end);
    sending(stream)->large = large;
}

void large_response_begin_long(struct watch_stream *stream, const struct watcher *watcher,
                               const struct long_revision *long_rev,
                               const struct long_revision_hit *hit, int64_t header_revision)
{
    large_response_begin(stream, watcher, long_rev->revision, header_revision);
    sending(stream)->large->place = long_rev->before;
    sending(stream)->large->at_event = hit->first;
    sending(stream)->large->end = (size_t)hit->last + 1;
}

void large_response_free(struct large_response *large)
{
    free(large);
}

void large_response_watcher_gone(struct large_response *large, int64_t watch_id)
{
    large->orphan |= large->watch_id == watch_id;
}

static struct watcher *watcher_of(const struct watch_stream *stream,
                                  const struct large_response *large)
{
    return large->orphan ? NULL : stream_find_watcher(stream, large->watch_id);
}

static bool wants(const struct large_response *large, const struct watch_event *event)
{
    struct slice key = slice_of(large->bytes, large->key_len);
    struct slice end = slice_of(large->bytes + large->key_len, large->end_len);
    return watch_filter_passes(large->flags, event) && watch_range_covers(key, end, event->key);
}

/* The events: in a batch, or in a long revision. */
struct source {
    const struct watch_event *events; /* NULL: in long_rev */
    const struct long_revision *long_rev;
    size_t count;
};

/* scratch: memory for an event of a long revision. */
static const struct watch_event *event_at(const struct watch_hub *hub, const struct source *source,
                                          size_t at, struct watch_event *scratch)
{
    if (source->events)
        return &source->events[at];
    long_revision_event(hub, source->long_rev, at, scratch);
    return scratch;
}

/* Charges the examination of one event, and perhaps of the version before it. False: not in this
 * turn. */
static bool pay_for_event(struct watch_hub *hub, const struct large_response *large)
{
    if (!long_revision_units(hub))
        return false;
    long_revision_pay(hub, large->flags & WATCHER_PREV_KV ? LONG_REVISION_PREV_UNITS : 1);
    return true;
}

/* Measures the events of the next message, as many as this fill may examine. ST_AGAIN: there are
 * more. */
static enum status piece_measure(struct watch_stream *stream, struct large_response *large,
                                 const struct source *source, bool *ret_cut)
{
    struct watch_hub *hub = stream->hub;
    const struct message_header *header = hub_header(hub, large->header_revision);
    size_t head = message_event_head_size(header, large->watch_id);
    *ret_cut = false;
    if (large->measured < large->at_event)
        large->measured = large->at_event;
    for (; large->measured < source->count; large->measured++) {
        struct watch_event scratch;
        if (!pay_for_event(hub, large))
            return ST_AGAIN;
        const struct watch_event *event = event_at(hub, source, large->measured, &scratch);
        if (!wants(large, event))
            continue;
        size_t more = message_event_size(event, hub_prev(hub, large->flags, event));
        *ret_cut = large->flags & WATCHER_FRAGMENT && large->piece_events > 0 &&
                   head + large->piece_bytes + more >= hub->options.fragment_bytes;
        if (*ret_cut)
            return ST_OK; /* this event begins the next fragment */
        large->piece_bytes += more;
        large->piece_events++;
        large->piece_last = large->measured + 1;
    }
    return ST_OK;
}

/* Determines the events of the next message, and writes its head. ST_END: there are none left. */
static enum status piece_begin(struct watch_stream *stream, struct large_response *large,
                               const struct source *source)
{
    struct watch_hub *hub = stream->hub;
    bool cut;
    TRY(piece_measure(stream, large, source, &cut));
    if (!large->piece_events)
        return ST_END;
    if (large->piece_bytes > UINT32_MAX - MESSAGE_HEAD_BYTES_MAX) {
        stream->broken = ST_LIMIT; /* no gRPC message can be that long */
        return ST_OK;
    }
    struct message message = {.watch_id = large->watch_id, .fragment = cut};
    assert(large->piece_last > large->at_event);
    large->head_len = message_head_write(
        large->head, &message, hub_header(hub, large->header_revision), large->piece_bytes);
    large->head_at = 0;
    large->piece_end = large->piece_last;
    large->piece_left = large->piece_bytes;
    stream_count_events(stream, large->piece_events);
    struct watcher *watcher = watcher_of(stream, large);
    if (watcher)
        watcher->flags &= (uint8_t)~WATCHER_QUIET;
    large->piece_bytes = large->piece_events = large->measured = 0;
    hub->stats.responses_sent++;
    return ST_OK;
}

/* Copies the part without its first `skip` bytes; reduces `skip` by the bytes skipped. */
static size_t copy_part(struct watch_output *out, struct slice part, size_t *skip)
{
    size_t from = size_min(*skip, part.len);
    *skip -= from;
    size_t len = size_min(part.len - from, (size_t)(out->end - out->at));
    slice_copy(out->at, slice_sub(part, from, len));
    out->at += len;
    return len;
}

static void event_fill(struct watch_hub *hub, struct large_response *large,
                       struct watch_output *out, const struct watch_event *event)
{
    struct slice prev = hub_prev(hub, large->flags, event);
    uint8_t start[MESSAGE_EVENT_HEAD_BYTES_MAX];
    static const uint8_t prev_tag = MESSAGE_PREV_TAG;
    const struct slice parts[] = {
        slice_of(start, message_event_start(start, event, prev)),
        event->field,
        slice_of(&prev_tag, prev.len ? 1 : 0),
        prev.len ? slice_sub(prev, 1, prev.len - 1) : SLICE_EMPTY,
    };
    size_t skip = large->at_byte, written = 0;
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        written += copy_part(out, parts[i], &skip);
    large->at_byte += written;
    large->piece_left -= written;
    if (large->at_byte < message_event_size(event, prev))
        return;
    large->at_byte = 0;
    large->at_event++;
}

/* Continues to write the piece. ST_AGAIN: there is more than this fill may examine. */
static enum status piece_fill(struct watch_stream *stream, struct large_response *large,
                              struct watch_output *out, const struct source *source)
{
    struct watch_hub *hub = stream->hub;
    assert(large->head_at <= large->head_len);
    assert(large->piece_end > 0);
    size_t skip = large->head_at, end = size_min(large->piece_end, source->count);
    large->head_at += copy_part(out, slice_of(large->head, large->head_len), &skip);
    while (out->at < out->end && large->at_event < end) {
        struct watch_event scratch;
        if (!pay_for_event(hub, large))
            return ST_AGAIN;
        const struct watch_event *event = event_at(hub, source, large->at_event, &scratch);
        if (wants(large, event))
            event_fill(hub, large, out, event);
        else
            large->at_event++;
    }
    if (large->at_event < end)
        return ST_OK;
    large->piece_end = 0;
    /* Previous values that were measured were removed since, on a full disk: the message stays
     * incomplete. */
    if (large->piece_left)
        stream->broken = ST_COMPACTED;
    return ST_OK;
}

/* ST_LIMIT: not in this turn. */
static enum status source_open(struct watch_hub *hub, const struct large_response *large,
                               struct source *ret_source)
{
    if (!large->place.revision) {
        struct watch_batch batch;
        TRY(hub_batch(hub, large->revision, &batch));
        *ret_source = (struct source){.events = batch.events, .count = batch.count};
        return batch.events ? ST_OK : ST_END;
    }
    struct long_revision *long_rev;
    if (!long_revision_is_held(hub, large->revision)) {
        /* The history may have to fetch it again. */
        struct watch_place place = large->place;
        struct watch_batch batch;
        TRY(hub_next(hub, &place, &batch));
    }
    enum status status = long_revision_get_loaded(hub, &large->place, large->revision, &long_rev);
    if (status != ST_OK)
        return status == ST_AGAIN ? ST_LIMIT : status;
    *ret_source =
        (struct source){.long_rev = long_rev, .count = size_min(large->end, long_rev->count)};
    return ST_OK;
}

static void defer(struct watch_stream *stream)
{
    stream->large_deferred = true;
    stream_defer(stream);
}

/* The events are gone. A message that is begun cannot be completed; otherwise the watcher is ended.
 */
static void large_response_lost(struct watch_stream *stream, enum status why)
{
    if (sending(stream)->large->head_len) {
        stream->broken = why == ST_DAMAGED ? ST_CORRUPT : ST_COMPACTED;
        return;
    }
    struct large_response *large = TAKE(sending(stream)->large);
    struct watcher *watcher = watcher_of(stream, large);
    if (watcher && watcher->state != WATCHER_COMPACTED)
        (why == ST_DAMAGED ? watcher_damaged : watcher_compacted)(watcher);
    large_response_free(large);
}

void large_response_fill(struct watch_stream *stream, struct watch_output *out)
{
    struct watch_hub *hub = stream->hub;
    struct large_response *large = sending(stream)->large;
    assert(large);
    assert(!sending(stream)->rest); /* nothing comes between the parts of a message */
    struct source source = {0};
    enum status status = source_open(hub, large, &source);
    if (status == ST_LIMIT) { /* the turn's units are used up */
        defer(stream);
        return;
    }
    if (status == ST_AGAIN) { /* the history fetches the events again */
        stream->large_waiting = true;
        stream_wait_for_history(stream);
        return;
    }
    if (status != ST_OK) {
        large_response_lost(stream, status);
        return;
    }
    while (out->at < out->end && !stream->broken) {
        status = large->piece_end ? ST_OK : piece_begin(stream, large, &source);
        if (status == ST_END) { /* the last piece was written */
            large_response_free(TAKE(sending(stream)->large));
            return;
        }
        if (status == ST_OK && !stream->broken)
            status = piece_fill(stream, large, out, &source);
        if (status == ST_AGAIN) {
            defer(stream);
            return;
        }
    }
}
