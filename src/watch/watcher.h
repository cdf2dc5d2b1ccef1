/*
 * One watch on a range of keys, and the range it is on. Owned by its stream, of one shard.
 *
 *      LIVE ◄──── CATCHING_UP       created: LIVE when it starts behind the hub's tail
 *        │  ╲          │   ╲
 *        │   ╲► COMPACTED ◄─╯       what it needs is gone; the client is told next
 *        ╰─────────┼───────╯
 *                  ▼
 *               CLOSED              canceled, told, or the stream is gone: freed at once
 */
#ifndef VIGIL_WATCH_WATCHER_H
#define VIGIL_WATCH_WATCHER_H

#include "base/container/chain_table.h"
#include "watch/history.h"

struct watch_stream;
struct watch_ride;
struct watch_range;

enum watcher_state {
    WATCHER_CATCHING_UP,
    WATCHER_LIVE,
    WATCHER_COMPACTED,
    WATCHER_CLOSED,
};

enum watcher_flag {
    /* The first three say what a response holds, and so which ones are the same bytes. */
    WATCHER_NO_PUT = 1 << 0,
    WATCHER_NO_DELETE = 1 << 1,
    WATCHER_PREV_KV = 1 << 2,
    WATCHER_VARIANT = WATCHER_NO_PUT | WATCHER_NO_DELETE | WATCHER_PREV_KV,
    WATCHER_FRAGMENT = 1 << 3,
    WATCHER_NOTIFY = 1 << 4, /* asked for progress notifications */
    WATCHER_QUIET = 1 << 5,  /* no event since the last tick of its stream */
    WATCHER_TICKED = 1 << 6, /* equal to the stream's: visited in this round of notifications */
    WATCHER_FUTURE = 1 << 7, /* counted as ahead of its stream */
};

struct watcher {
    struct chain_link in_ids; /* of its stream */
    struct watch_stream *stream;
    struct watch_range *range; /* NULL when COMPACTED */
    /* The ring of all watchers of its stream on its range, those LIVE first; when COMPACTED the
     * list of those that are to be told. */
    struct watcher *prev, *next;
    int64_t id;
    union {
        int64_t from; /* the first revision it has not been told; events below are skipped */
        struct watch_ride *ride; /* when CATCHING_UP: has its own `from` */
    };
    uint8_t state; /* enum watcher_state */
    uint8_t flags;
    bool damaged; /* of one that is COMPACTED: what it needs is there and cannot be read */
};

_Static_assert(sizeof(struct watcher) <= 64, "there are millions of them");

/* Keys that somebody on this shard watches. Lives as long as a watcher is on it. */
struct watch_range {
    struct chain_link in_keys; /* of a single key; ranges have an interval_link in front */
    /* One watcher of each stream, the first of its ring; ascending by the stream's address. */
    union {
        struct watcher *one;
        struct watcher **many; /* capacity is not 0 */
    };
    uint32_t count, capacity;
    uint32_t key_len, end_len; /* end_len 0: a single key; the end "\0": endless */
    uint32_t riding;           /* its watchers that are CATCHING_UP */
    uint32_t hit;              /* scratch: its place in the hub's list of hits, if it is there */
    uint64_t trail_last;       /* of a tag: its newest in the hub's trail; 0: none */
    uint8_t bytes[];
};

static inline struct slice watch_range_key(const struct watch_range *range)
{
    return slice_of(range->bytes, range->key_len);
}

static inline struct slice watch_range_end(const struct watch_range *range)
{
    return slice_of(range->bytes + range->key_len, range->end_len);
}

/* [key, end) as a request has them has the given key. */
static inline bool watch_range_covers(struct slice key, struct slice end, struct slice wanted)
{
    if (!end.len)
        return slice_equal(key, wanted);
    bool endless = end.len == 1 && end.ptr[0] == 0;
    return slice_compare(key, wanted) <= 0 && (endless || slice_compare(wanted, end) < 0);
}

static inline bool watch_filter_passes(unsigned flags, const struct watch_event *event)
{
    return !(flags & (event->tombstone ? WATCHER_NO_DELETE : WATCHER_NO_PUT));
}

#endif
