#include "watch/stats_scan.h"

#include "base/clock.h"
#include "watch/stream_private.h"

enum { STREAMS_AT_ONCE = 256 };
static const int64_t pause_ns = 5 * NS_PER_MS, interval_ns = NS_PER_S;

uint64_t census_behind(const struct watch_stream *stream)
{
    int64_t next = stream->hub->tail + 1;
    int64_t oldest = stream->dirty ? stream->place.revision : next;
    const struct watch_scan *scan;
    LIST_FOREACH (scan, &stream->scans, in_stream)
        if (scan->place.revision < oldest)
            oldest = scan->place.revision;
    return (uint64_t)(next - oldest);
}

static void look_at(struct watch_hub *hub, struct watch_stream *stream)
{
    struct watch_report *found = &hub->census.found;
    uint64_t behind = census_behind(stream), catching_up = 0;
    if (!behind)
        return;
    const struct watch_scan *scan;
    LIST_FOREACH (scan, &stream->scans, in_stream)
        catching_up += scan->ride_count;
    stream_raise_behind(stream, behind);
    found->stats.streams_behind++;
    found->stats.watchers_behind += stream->ids.count;
    if (behind > found->stats.behind_max)
        found->stats.behind_max = behind;
    size_t last = found->slowest_count;
    if (last == WATCH_SLOWEST_MAX && found->slowest[last - 1].behind >= behind)
        return;
    struct watch_stream_stats stats = {
        .watchers = stream->ids.count,
        .watchers_catching_up = catching_up,
        .events_sent = stream->events_sent,
        .bytes_sent = stream->bytes_sent,
        .held_bytes = stream->rest_len - stream->rest_at,
        .held_bytes_peak = stream->held_peak,
        .behind = behind,
        .behind_peak = stream->behind_peak,
        .stopped = stream->stopped,
    };
    if (!stream->cursor && stream->owner.describe)
        stream->owner.describe(stream->owner.ctx, stats.peer);
    watch_report_add(found, &stats);
}

static void census_end(struct watch_hub *hub)
{
    struct watch_census *census = &hub->census;
    struct watch_report *found = &census->found;
    hub->stats.streams_behind = found->stats.streams_behind;
    hub->stats.watchers_behind = found->stats.watchers_behind;
    hub->stats.behind_max = found->stats.behind_max;
    found->stats = hub->stats;
    if (hub->options.board)
        watch_board_write(hub->options.board, found);
    hub->report = *found;
    census->under_way = false;
}

/* Returns whether it has come to the end. */
static bool census_walk(struct watch_hub *hub, size_t streams_max)
{
    struct watch_census *census = &hub->census;
    if (!census->under_way) {
        census->found = (struct watch_report){0};
        census->under_way = true;
        census->wanted = false;
        census->at = hub_stream_after(hub, &hub->streams);
    }
    for (; census->at && streams_max; streams_max--) {
        look_at(hub, census->at);
        census->at = hub_stream_after(hub, &census->at->in_hub);
    }
    if (census->at)
        return false;
    census_end(hub);
    return true;
}

const struct watch_report *watch_hub_census(struct watch_hub *hub)
{
    hub->census.under_way = false;
    bool ended = census_walk(hub, SIZE_MAX);
    assert(ended);
    return &hub->report;
}

void census_turn(struct watch_hub *hub)
{
    if (census_next_ns(hub) > hub->now_ns)
        return;
    bool ended = census_walk(hub, STREAMS_AT_ONCE);
    hub->census.next_ns = clock_add(hub->now_ns, ended ? interval_ns : pause_ns);
}

int64_t census_next_ns(const struct watch_hub *hub)
{
    const struct watch_census *census = &hub->census;
    return census->wanted || census->under_way ? census->next_ns : CLOCK_NEVER;
}

void census_forget(struct watch_hub *hub, struct watch_stream *stream)
{
    hub->census.wanted = true;
    if (hub->census.at == stream)
        hub->census.at = hub_stream_after(hub, &stream->in_hub);
    list_remove(&stream->in_hub);
    if (list_empty(&hub->streams))
        watch_hub_census(hub); /* at once: nobody is left for whom a turn would come */
}
