#include "watch/stream/stats_scan.h"

#include "base/clock.h"
#include "watch/stream/sending.h"

enum { STREAMS_AT_ONCE = 256 };
static const int64_t pause_ns = 5 * NS_PER_MS, interval_ns = NS_PER_S;

/* Published revisions that have not been sent on the stream. */
static uint64_t behind_of(const struct watch_stream *stream)
{
    int64_t next = stream->hub->tail + 1;
    int64_t oldest = stream->dirty ? stream->place.revision : next;
    if (UNLIKELY(oldest > next))
        return 0; /* a cursor that begins in a discarded history, and will be freed */
    if (LIKELY(!stream->scan_count))
        return (uint64_t)(next - oldest);
    const struct watch_scan *scan;
    LIST_FOREACH (scan, &sending(stream)->scans, in_stream)
        if (scan->place.revision < oldest)
            oldest = scan->place.revision;
    return (uint64_t)(next - oldest);
}

void stats_scan_raise_peaks(struct watch_stream *stream)
{
    uint64_t behind = behind_of(stream);
    if (behind <= stream->behind_peak)
        return; /* and the peak of the hub is not below that of any stream */
    watch_stats_raise(&stream->hub->stats.behind_peak, behind);
    stream->behind_peak = (uint32_t)(behind < UINT32_MAX ? behind : UINT32_MAX);
}

static void examine(struct watch_hub *hub, struct watch_stream *stream)
{
    struct watch_report *found = &hub->stats_scan.found;
    uint64_t behind = behind_of(stream), catching_up = 0;
    if (!behind)
        return;
    const struct watch_scan *scan;
    if (stream->scan_count)
        LIST_FOREACH (scan, &sending(stream)->scans, in_stream)
            catching_up += scan->member_count;
    stats_scan_raise_behind(stream);
    found->stats.streams_behind++;
    found->stats.watchers_behind += stream->ids.count;
    if (behind > found->stats.behind_max)
        found->stats.behind_max = behind;
    size_t last = found->slowest_count;
    if (last == WATCH_SLOWEST_MAX && found->slowest[last - 1].behind >= behind)
        return; /* the report has enough streams that are at least as far behind */
    struct watch_stream_stats stats = {
        .watchers = stream->ids.count,
        .watchers_catching_up = catching_up,
        .events_sent = stream->events_sent,
        .behind = behind,
        .behind_peak = stream->behind_peak,
        .stopped = stream->stopped,
    };
    if (!stream->cursor) {
        stats.bytes_sent = sending(stream)->bytes_sent;
        stats.held_bytes = sending(stream)->rest_len - sending(stream)->rest_at;
        stats.held_bytes_peak = sending(stream)->held_peak;
    }
    if (!stream->cursor && stream->owner.describe)
        stream->owner.describe(stream->owner.ctx, stats.peer);
    watch_report_add(found, &stats);
}

static struct watch_stream *stream_after(struct watch_hub *hub, const struct list *link)
{
    return link->next == &hub->streams ? NULL : LIST_ENTRY(link->next, struct watch_stream, in_hub);
}

static void stats_scan_end(struct watch_hub *hub)
{
    struct watch_stats_scan *scan = &hub->stats_scan;
    struct watch_report *found = &scan->found;
    hub->stats.streams_behind = found->stats.streams_behind;
    hub->stats.watchers_behind = found->stats.watchers_behind;
    hub->stats.behind_max = found->stats.behind_max;
    found->stats = hub->stats;
    if (hub->options.snapshot)
        watch_stats_snapshot_write(hub->options.snapshot, found);
    hub->report = *found;
    scan->under_way = false;
}

/* Returns whether it has reached the end. */
static bool stats_scan_walk(struct watch_hub *hub, size_t streams_max)
{
    struct watch_stats_scan *scan = &hub->stats_scan;
    if (!scan->under_way) {
        scan->found = (struct watch_report){0};
        scan->under_way = true;
        scan->wanted = false;
        scan->at = stream_after(hub, &hub->streams);
    }
    assert(!scan->at || !scan->at->closing);
    for (; scan->at && streams_max; streams_max--) {
        examine(hub, scan->at);
        scan->at = stream_after(hub, &scan->at->in_hub);
    }
    if (scan->at)
        return false;
    stats_scan_end(hub);
    return true;
}

void stats_scan_all(struct watch_hub *hub)
{
    hub->stats_scan.under_way = false;
    bool ended = stats_scan_walk(hub, SIZE_MAX);
    assert(ended);
    (void)ended;
}

void stats_scan_turn(struct watch_hub *hub)
{
    bool ended = stats_scan_walk(hub, STREAMS_AT_ONCE);
    hub->stats_scan.next_ns = clock_add(hub->now_ns, ended ? interval_ns : pause_ns);
}

void stats_scan_forget(struct watch_hub *hub, struct watch_stream *stream)
{
    hub->stats_scan.wanted = true;
    if (hub->stats_scan.at == stream)
        hub->stats_scan.at = stream_after(hub, &stream->in_hub);
    list_remove(&stream->in_hub);
    if (list_empty(&hub->streams))
        stats_scan_all(hub); /* at once, because no more turns may follow */
}
