/*
 * The keys of a range as they are at one revision, in their order: which version of each, and where
 * it lies.
 *
 * The state must stay readable (pinned) as long as it is walked. One thread.
 */
#ifndef VIGIL_STORE_RANGE_WALK_H
#define VIGIL_STORE_RANGE_WALK_H

#include "store/index/index.h"
#include "store/log/log.h"

struct change_head;

/* What is read: the writer's unpublished state or a reader's pinned one. */
struct range_state {
    struct index_root root;
    const struct log *log;
    int64_t revision;
    int64_t compact_revision;
};

/* [from, to), or all from `from` on, or the one key `from`. */
struct range_bounds {
    struct slice from;
    struct slice to;
    bool single;
    bool to_end;
};

/* As every request spells it: range_end empty is one key, "\0" is to the end. */
struct range_bounds range_bounds_of(struct slice key, struct slice range_end);

/* One version of one key, chosen. */
struct range_kv {
    const struct index_item *item;
    uint64_t loc;
    int64_t mod_revision;
    int64_t create_revision;
    int64_t version;
    uint32_t field_bytes;
};

enum { RANGE_AHEAD = 16 };

/* Walks the keys of bounds that exist at a revision (0: the newest), in key order. */
struct range_walk {
    const struct log *log;
    struct range_bounds bounds;
    int64_t at_revision;
    struct index_cursor cursor;
    bool ended;
    bool damaged; /* it ended at a version that cannot be read */
    bool fetches; /* off at first: the bytes of what comes will be read, so they are sent for */
    uint8_t ahead_next, ahead_count;
    struct range_kv ahead[RANGE_AHEAD];
};
void range_walk_init(struct range_walk *walk, const struct range_state *state,
                     struct range_bounds bounds, int64_t at_revision);
/* NULL at the end, which is early when the walk is damaged. Valid until the next call. */
const struct range_kv *range_walk_next(struct range_walk *walk);
/* Looks at `*keys` at most, which is reduced. NULL also when those are used up: then the walk has
 * not ended. */
const struct range_kv *range_walk_next_within(struct range_walk *walk, size_t *keys);
/* What it has read ahead was taken too. */
static inline bool range_walk_ended(const struct range_walk *walk)
{
    return walk->ended && walk->ahead_next == walk->ahead_count;
}
/* Counts on where a walk over more than one key stands; true at its end, or that of what can be
 * read. */
bool range_walk_count(struct range_walk *walk, size_t *keys, int64_t *count);

/* The version of an item at a revision (0: the newest). ST_NOT_FOUND if the key does not exist
 * then. ST_DAMAGED, of older versions. */
MUST_CHECK
enum status range_item_at(const struct log *log, const struct index_item *item, int64_t at_revision,
                          struct range_kv *ret_kv);

/* The newest one of an item's older versions at a revision, tombstones included: its place among
 * them. ST_NOT_FOUND when all are newer. ST_DAMAGED when it cannot be told. */
MUST_CHECK
enum status range_older_at(const struct log *log, const struct index_item *item,
                           int64_t at_revision, uint32_t *ret_place,
                           const struct change_head **ret_head);

/* How many keys of bounds exist at a revision. ST_DAMAGED. */
MUST_CHECK
enum status range_count(const struct range_state *state, struct range_bounds bounds,
                        int64_t at_revision, int64_t *ret_count);

#endif
