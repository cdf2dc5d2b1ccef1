/*
 * Stretches of the cluster's past that are kept in memory. A stretch has all events of the
 * revisions [from, to) and never changes; two stretches of a store never overlap.
 *
 *     revisions   5 ········ 90      90 ···· 120         400 ······ 700
 *                 ╰ stretch ─╯       ╰ stretch ╯   gap    ╰ stretch ─╯
 *
 * Those that were not read for longest are dropped first. What was read in a turn stays until the
 * turn has ended. One store for each shard, on its thread.
 */
#ifndef VIGIL_MIRROR_BACKFILL_EVENT_RANGE_H
#define VIGIL_MIRROR_BACKFILL_EVENT_RANGE_H

#include "base/container/list.h"
#include "mirror/backfill/run.h"

struct past_stretch {
    int64_t from, to;
    struct past_run run;
    unsigned refs; /* the store's, and one for each held revision */
    size_t *counted;
    uint64_t used_turn;
    int64_t used_ns;
    struct list by_use;
};

struct past_stretch *past_stretch_ref(struct past_stretch *stretch);
void past_stretch_unref(struct past_stretch *stretch);
/* The first of its revisions that is not before this one; NULL: none. */
const struct past_revision *past_stretch_seek(const struct past_stretch *stretch, int64_t revision);

struct past_store {
    struct past_stretch **all; /* in order */
    size_t count, capacity;
    struct past_stretch *recent; /* that was found last; a hint */
    struct list by_use;          /* the one that was not used for longest is first */
    size_t bytes;                /* all memory, including bodies that are in no stretch yet */
    uint64_t turn;
    int64_t now_ns;
};

void past_store_init(struct past_store *store);
void past_store_fini(struct past_store *store);
/* NULL: the revision is in none. Otherwise it counts as used. */
struct past_stretch *past_store_find(struct past_store *store, int64_t revision);
/* Where the first stretch behind this revision begins; INT64_MAX: there is none. */
int64_t past_store_gap_end(const struct past_store *store, int64_t revision);
/* Takes the run, which has all revisions of [from, to) and is empty afterwards. */
void past_store_add(struct past_store *store, int64_t from, int64_t to, struct past_run *run);
/* Drops stretches until at most this much memory is used. Those of this turn and the last one stay.
 */
void past_store_shrink(struct past_store *store, size_t bytes_max);
/* Drops those that were last used before this time. */
void past_store_drop_idle(struct past_store *store, int64_t before_ns);
/* Drops all. What was handed out in this turn must not be used any more. */
void past_store_clear(struct past_store *store);
void past_store_turn_end(struct past_store *store, int64_t now_ns);
/* Asserts every invariant; for tests. */
void past_store_check(const struct past_store *store);

#endif
