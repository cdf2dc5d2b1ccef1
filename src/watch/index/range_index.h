/*
 * Finds the watchers of a key: single keys by hash, ranges by an interval tree. All watchers of a
 * shard on the same keys share one watch_range, in which those of one stream form a ring. Finding
 * the streams of an event therefore costs one search and one step per stream, however many watchers
 * a stream has. One per hub.
 */
#ifndef VIGIL_WATCH_INDEX_RANGE_INDEX_H
#define VIGIL_WATCH_INDEX_RANGE_INDEX_H

#include "base/container/hash_map.h"
#include "base/container/interval_tree.h"
#include "base/memory/pool.h"
#include "watch/index/watcher.h"

struct range_index {
    struct chain_table keys;
    struct interval_tree ranges;
    struct hash_map hasher; /* empty; only its secret hash function is used */
    struct pool *pool;      /* the hub's */
};

void range_index_init(struct range_index *index, struct pool *pool, uint64_t seed);
/* The index must be empty. */
void range_index_fini(struct range_index *index);

/* Sets watcher->range and adds the watcher. The range is not empty; end as in watch_range. */
void range_index_add(struct range_index *index, struct watcher *watcher, struct slice key,
                     struct slice end);
/* Returns whether the range was freed with it. */
bool range_index_remove(struct range_index *index, struct watcher *watcher);
/* Moves a watcher that has become LIVE to the front of its ring. */
void range_index_promote(struct watcher *watcher);

/* Whether the events of a wide range from this revision on, which is new, are to be in the hub's
 * index of them: since so many streams have watched it that it is worth it. */
bool watch_range_is_indexed(struct watch_range *range, int64_t revision);
/* The first revision for which that was so; INT64_MAX: none. */
int64_t watch_range_indexed_from(const struct watch_range *range);

/* The first of the stream's watchers on this range, or NULL. */
struct watcher *watch_range_first(const struct watch_range *range,
                                  const struct watch_stream *stream);

static inline struct watcher *const *watch_range_streams(const struct watch_range *range)
{
    return range->capacity ? range->many : &range->one;
}

/* Two steps that bring what a visit of this key needs into the cache, if it may be in none. There
 * should be some time after each. */
void range_index_fetch_bucket(const struct range_index *index, struct slice key);
void range_index_fetch(const struct range_index *index, struct slice key);

/* Visits every range that contains the key. Nothing may be added or removed meanwhile. */
typedef void (*range_index_visit_fn)(void *ctx, struct watch_range *range);
void range_index_visit(const struct range_index *index, struct slice key,
                       range_index_visit_fn visit, void *ctx);

/* For tests. Returns the number of watchers in it. */
size_t range_index_check(const struct range_index *index);

#endif
