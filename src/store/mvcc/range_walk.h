/*
 * The keys of a range as of one revision, in key order: which version of each, and its location.
 *
 * The state must stay readable (pinned) as long as it is walked. One thread.
 */
#ifndef VIGIL_STORE_MVCC_RANGE_WALK_H
#define VIGIL_STORE_MVCC_RANGE_WALK_H

#include "store/index/index.h"
#include "store/log/log.h"
#include "store/mvcc/view.h"

struct change_head;

/* The state that is read: the writer's unpublished one or a reader's pinned one. */
struct range_state {
    struct index_root root;
    const struct log *log;
    int64_t revision;
    int64_t compact_revision;
};

static inline struct range_state range_state_of(const struct store_view *view,
                                                const struct log *log)
{
    return (struct range_state){
        .root = view->root,
        .log = log,
        .revision = view->revision,
        .compact_revision = view->compact_revision,
    };
}

/* [from, to), or all from `from` on, or the one key `from`. */
struct range_bounds {
    struct slice from;
    struct slice to;
    bool single;
    bool to_end;
};

/* As in every request: an empty range_end means one key, "\0" means to the end. */
struct range_bounds range_bounds_of(struct slice key, struct slice range_end);

/* The selected version of a key. */
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
    bool fetches; /* initially off: the values will be read, so they are prefetched */
    uint8_t ahead_next, ahead_count;
    struct range_kv ahead[RANGE_AHEAD];
};
void range_walk_init(struct range_walk *walk, const struct range_state *state,
                     struct range_bounds bounds, int64_t at_revision);
/* NULL at the end, which is early when the walk is damaged. Valid until the next call. */
const struct range_kv *range_walk_next(struct range_walk *walk);
/*
 * Examines at most *keys keys, and subtracts them. NULL also when they are used up: then the walk
 * has not ended.
 */
const struct range_kv *range_walk_next_within(struct range_walk *walk, size_t *keys);
/* All that was read ahead was also returned. */
static inline bool range_walk_ended(const struct range_walk *walk)
{
    return walk->ended && walk->ahead_next == walk->ahead_count;
}
/* Continues counting in a walk over more than one key; true at its end, or where it is damaged. */
bool range_walk_count(struct range_walk *walk, size_t *keys, int64_t *count);

/*
 * The version of an item at a revision (0: the newest). ST_NOT_FOUND if the key does not exist
 * then. ST_DAMAGED for older versions.
 */
MUST_CHECK
enum status range_item_at(const struct log *log, const struct index_item *item, int64_t at_revision,
                          struct range_kv *ret_kv);

/*
 * The position of the newest of an item's older versions at a revision, tombstones included.
 * ST_NOT_FOUND when all are newer. ST_DAMAGED when it cannot be determined.
 */
MUST_CHECK
enum status range_older_at(const struct log *log, const struct index_item *item,
                           int64_t at_revision, uint32_t *ret_place,
                           const struct change_head **ret_head);

/* The number of keys of bounds that exist at a revision. ST_DAMAGED. */
MUST_CHECK
enum status range_count(const struct range_state *state, struct range_bounds bounds,
                        int64_t at_revision, int64_t *ret_count);

#endif
