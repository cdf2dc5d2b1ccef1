/*
 * One watch on a range of keys, and the range. A watcher is owned by its stream.
 *
 *      LIVE ◄──── CATCHING_UP       created: LIVE when it starts after the hub's tail
 *        │  ╲          │   ╲
 *        │   ╲► COMPACTED ◄─╯       revisions it needs are gone; the next response says so
 *        ╰─────────┼───────╯
 *                  ▼
 *               CLOSED              canceled, compaction reported, or stream freed: freed at once
 */
#ifndef VIGIL_WATCH_INDEX_WATCHER_H
#define VIGIL_WATCH_INDEX_WATCHER_H

#include "base/container/chain_table.h"
#include "watch/index/history.h"

struct watch_stream;
struct scan_member;
struct watch_range;

enum watcher_state {
    WATCHER_CATCHING_UP,
    WATCHER_LIVE,
    WATCHER_COMPACTED,
    WATCHER_CLOSED,
};

enum watcher_flag {
    /* The first three decide what a response contains, and so which responses share their bytes. */
    WATCHER_NO_PUT = 1 << 0,
    WATCHER_NO_DELETE = 1 << 1,
    WATCHER_PREV_KV = 1 << 2,
    WATCHER_VARIANT = WATCHER_NO_PUT | WATCHER_NO_DELETE | WATCHER_PREV_KV,
    WATCHER_FRAGMENT = 1 << 3,
    WATCHER_NOTIFY = 1 << 4, /* wants progress notifications */
    WATCHER_QUIET = 1 << 5,  /* no event since the last tick of its stream */
    WATCHER_TICKED = 1 << 6, /* equal to the stream's: visited in this round of notifications */
    WATCHER_FUTURE = 1 << 7, /* counted as ahead of its stream */
};

struct watcher {
    struct chain_link in_ids; /* links the ids of its stream */
    struct watch_stream *stream;
    struct watch_range *range; /* NULL when COMPACTED */
    /* The ring of all watchers of its stream on its range, the LIVE ones first. When COMPACTED: the
     * stream's ring of watchers whose compaction is to be reported. */
    struct watcher *prev, *next;
    int64_t id;
    union {
        int64_t from; /* the first revision that was not sent to it; events below are skipped */
        struct scan_member *member; /* when CATCHING_UP: has its own `from` */
    };
    uint8_t state; /* enum watcher_state */
    uint8_t flags;
    bool damaged; /* when COMPACTED: the revisions exist but cannot be read */
    bool is_void; /* when COMPACTED: it began in a past that was discarded */
};

_Static_assert(sizeof(struct watcher) <= 64, "there are millions of them");

/* Keys that are watched on this shard. Exists as long as it has a watcher. */
struct watch_range {
    struct chain_link in_keys; /* links single keys; ranges have an interval_link in front */
    /* One watcher of each stream, the first of its ring; ascending by the stream's address. */
    union {
        struct watcher *one;
        struct watcher **many; /* when capacity is not 0 */
    };
    uint32_t count, capacity;
    uint32_t key_len : 31, wide : 1; /* wide: not a single key */
    union {
        uint32_t end_len; /* when wide; the end "\0": no upper bound */
        uint32_t hash;    /* hash of a single key: others in its chain need not be read */
    };
    uint32_t catching_up; /* number of its watchers that are CATCHING_UP */
    uint32_t hit;         /* scratch: its index in the hub's list of hits, if it is there */
    uint64_t tag_newest;  /* newest event of it in the hub's index; 0: none */
    uint8_t bytes[];
};

static inline struct slice watch_range_key(const struct watch_range *range)
{
    return slice_of(range->bytes, range->key_len);
}

static inline struct slice watch_range_end(const struct watch_range *range)
{
    return slice_of(range->bytes + range->key_len, range->wide ? range->end_len : 0);
}

/* Whether [key, end), written as in a request, contains the wanted key. */
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
