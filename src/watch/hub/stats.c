#include "watch/hub/stats.h"

#include <assert.h>
#include <string.h>

_Static_assert(sizeof(struct watch_report) % sizeof(uint64_t) == 0, "a snapshot holds whole words");
_Static_assert(offsetof(struct watch_report, stats) == 0, "counters are written alone");

void watch_stats_raise(uint64_t *peak, uint64_t value)
{
    if (value > *peak)
        *peak = value;
}

void watch_stats_add(struct watch_stats *stats, const struct watch_stats *other)
{
    stats->streams += other->streams;
    stats->streams_peak += other->streams_peak;
    stats->streams_stopped += other->streams_stopped;
    stats->streams_behind += other->streams_behind;
    stats->watchers += other->watchers;
    stats->watchers_peak += other->watchers_peak;
    stats->watchers_catching_up += other->watchers_catching_up;
    stats->watchers_compacted += other->watchers_compacted;
    stats->watchers_behind += other->watchers_behind;
    stats->events_sent += other->events_sent;
    stats->responses_sent += other->responses_sent;
    stats->bytes_sent += other->bytes_sent;
    stats->held_bytes += other->held_bytes;
    stats->held_bytes_peak += other->held_bytes_peak;
    stats->refused += other->refused;
    watch_stats_raise(&stats->behind_max, other->behind_max);
    watch_stats_raise(&stats->behind_peak, other->behind_peak);
}

void watch_report_add(struct watch_report *report, const struct watch_stream_stats *stream)
{
    size_t at = report->slowest_count;
    while (at > 0 && report->slowest[at - 1].behind < stream->behind)
        at--;
    if (at == WATCH_SLOWEST_MAX)
        return;
    if (report->slowest_count < WATCH_SLOWEST_MAX)
        report->slowest_count++;
    memmove(&report->slowest[at + 1], &report->slowest[at],
            (report->slowest_count - 1 - at) * sizeof(*stream));
    report->slowest[at] = *stream;
}

/* -- The snapshot -- */

/* Each word is stored with release order after the odd sequence number, and loaded with acquire
 * order before the number is checked again: a reader that saw a word of a new write also sees its
 * number. */
static void write_words(struct watch_stats_snapshot *snapshot, const void *words, size_t bytes)
{
    uint64_t sequence = atomic_load_explicit(&snapshot->sequence, memory_order_relaxed);
    assert(sequence % 2 == 0);
    atomic_store_explicit(&snapshot->sequence, sequence + 1, memory_order_relaxed);
    for (size_t i = 0; i < bytes / sizeof(uint64_t); i++) {
        uint64_t word;
        memcpy(&word, (const uint8_t *)words + i * sizeof(word), sizeof(word));
        atomic_store_explicit(&snapshot->words[i], word, memory_order_release);
    }
    atomic_store_explicit(&snapshot->sequence, sequence + 2, memory_order_release);
}

void watch_stats_snapshot_write_changed(struct watch_stats_snapshot *snapshot,
                                        const struct watch_stats *stats)
{
    snapshot->written = *stats;
    write_words(snapshot, stats, sizeof(*stats));
}

void watch_stats_snapshot_write(struct watch_stats_snapshot *snapshot,
                                const struct watch_report *report)
{
    snapshot->written = report->stats;
    write_words(snapshot, report, sizeof(*report));
}

void watch_stats_snapshot_read(const struct watch_stats_snapshot *snapshot,
                               struct watch_report *ret_report)
{
    uint64_t before, after;
    do {
        before = atomic_load_explicit(&snapshot->sequence, memory_order_acquire);
        for (size_t i = 0; i < WATCH_STATS_SNAPSHOT_WORDS; i++) {
            uint64_t word = atomic_load_explicit(&snapshot->words[i], memory_order_acquire);
            memcpy((uint8_t *)ret_report + i * sizeof(word), &word, sizeof(word));
        }
        after = atomic_load_explicit(&snapshot->sequence, memory_order_relaxed);
    } while (before != after || before % 2);
}
