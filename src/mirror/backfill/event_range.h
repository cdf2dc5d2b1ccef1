/*
 * Ranges of revisions of the cluster's past whose events are kept in memory. A range has all events
 * of the revisions [from, to) and never changes; two ranges of a shard never overlap.
 *
 *     revisions   5 ········ 90      90 ···· 120         400 ······ 700
 *                 ╰─ range ──╯       ╰─ range ─╯   gap    ╰─ range ──╯
 *
 * Those that were not read for longest are dropped first. What was read in a turn stays until the
 * turn has ended. One store for each shard, on its thread.
 */
#ifndef VIGIL_MIRROR_BACKFILL_EVENT_RANGE_H
#define VIGIL_MIRROR_BACKFILL_EVENT_RANGE_H

#include "base/container/list.h"
#include "mirror/backfill/run.h"

struct event_range {
    int64_t from, to;
    struct backfill_run run;
    unsigned refs; /* the store's, and one for each held revision */
    size_t *counted;
    uint64_t used_turn;
    int64_t used_ns;
    struct list by_use;
};

struct event_range *event_range_ref(struct event_range *range);
void event_range_unref(struct event_range *range);
/* The first of its revisions that is not before this one; NULL: none. */
const struct backfill_revision *event_range_seek(const struct event_range *range, int64_t revision);

struct event_ranges {
    struct event_range **all; /* in order */
    size_t count, capacity;
    struct event_range *recent; /* that was found last; a hint */
    struct list by_use;         /* the one that was not used for longest is first */
    size_t bytes;               /* all memory, including bodies that are in no range yet */
    uint64_t turn;
    int64_t now_ns;
};

void event_ranges_init(struct event_ranges *ranges);
void event_ranges_fini(struct event_ranges *ranges);
/* NULL: the revision is in none. Otherwise it counts as used. */
struct event_range *event_ranges_find(struct event_ranges *ranges, int64_t revision);
/* Where the first range behind this revision begins; INT64_MAX: there is none. */
int64_t event_ranges_gap_end(const struct event_ranges *ranges, int64_t revision);
/* Takes the run, which has all revisions of [from, to) and is empty afterwards. */
void event_ranges_add(struct event_ranges *ranges, int64_t from, int64_t to,
                      struct backfill_run *run);
/* Drops ranges until at most this much memory is used. Those of this turn and the last one stay.
 */
void event_ranges_shrink(struct event_ranges *ranges, size_t bytes_max);
/* Drops those that were last used before this time. */
void event_ranges_drop_idle(struct event_ranges *ranges, int64_t before_ns);
/* Drops all. What was handed out in this turn must not be used any more. */
void event_ranges_clear(struct event_ranges *ranges);
void event_ranges_turn_end(struct event_ranges *ranges, int64_t now_ns);
/* Asserts every invariant; for tests. */
void event_ranges_check(const struct event_ranges *ranges);

#endif
