/*
 * A revision with very many events, which is processed over several turns so that no turn takes
 * long. It is read and looked up in the hub's index once for all watchers; the result is, for every
 * range of keys, its first and its last event.
 *
 *                       ╭──────────╮ all was read   ╭───────────╮ all were   ╭───────╮
 *     first use         │ LOADING  │───────────────►│ SEARCHING │───────────►│ KNOWN │
 *     ─────────────────►╰──────────╯ and is intact  ╰───────────╯ looked up  ╰───────╯
 *                            │                            ▲                      │
 *                            ▼                            ╰──────────────────────╯
 *                       ╭──────────╮                      a watcher was added that needs it
 *                       │ DAMAGED  │
 *                       ╰──────────╯
 *
 *     any state ─► GONE: unused for a while, or replaced by another; freed at the end of the turn
 *
 * How a new revision L is sent, so that no event is lost or sent early:
 *
 *     the hub's tail is at L - 1 ── LOADING, SEARCHING ──► KNOWN: at once, every stream with a live
 *     watcher on a range that has events is marked, and the tail moves to L
 *
 *     a marked stream visits its watchers; the `from` of each moves behind L, and if its range has
 *     events, a large response (large_response.c) ─ from the first to the last ─ begins
 *
 * Every reader keeps its own place: a watcher its `from`, a large response and a cursor the index
 * of an event. A reader whose turn is over continues with the next event, and one whose long
 * revision was dropped in between has it read again and continues from there.
 *
 * Work is counted in units of about 50 ns. The tail has its own units; all others share theirs.
 * Only files of src/watch/ include this header.
 */
#ifndef VIGIL_WATCH_HUB_LONG_REVISION_H
#define VIGIL_WATCH_HUB_LONG_REVISION_H

#include "base/clock.h"
#include "watch/hub/hub_state.h"

enum {
    LONG_REVISION_OPEN_MAX = 4,       /* held for readers; the tail has one more */
    LONG_REVISION_TURNS_MIN = 64,     /* turns it is kept ready while others wait; or as many as it
                                         took to load and search it */
    LONG_REVISION_TURN_UNITS = 65536, /* per turn: for readers, and the same again for the tail */
    LONG_REVISION_SEARCH_UNITS = 4,   /* cost of looking up an event, plus 1 for each range found */
    LONG_REVISION_PREV_UNITS = 16,    /* cost of finding the version before an event */
    LONG_REVISION_TAGS_UNITS = 16,    /* cost of finding the tags of an event */
};

#define LONG_REVISION_KEPT_NS NS_PER_S /* after its last use */

enum long_revision_state {
    LONG_LOADING,
    LONG_SEARCHING,
    LONG_KNOWN,
    LONG_DAMAGED,
    LONG_GONE,
};

/* A range that has events, or may have. */
struct long_revision_hit {
    struct watch_range *range; /* NULL: it was freed */
    uint32_t first, last;      /* first > last: none was found yet */
    uint32_t passes;           /* first and last are final after this many searches */
};

struct long_revision {
    struct list in_hub; /* long_revisions.held, or gone */
    enum long_revision_state state;
    int64_t revision;
    size_t count;
    struct watch_place before;
    struct watch_held *held; /* the history's; owned */
    size_t searched;         /* events looked up so far in the current search */
    uint32_t passes;         /* completed searches */
    bool marking;            /* the tail waits for it */
    bool tags_unknown; /* some event has unknown tags: all cursors must examine the revision */
    uint64_t used_turn;
    uint64_t opened_turn, ready_turn; /* ready: loaded, and its first search, if any, has ended */
    int64_t used_ns;

    struct long_revision_hit *hits;
    size_t hit_count, hit_capacity;
    uint32_t hit_unused; /* index + 1 of a hit whose range was freed, linked by `first`; 0: none */
    uint32_t *slots;     /* hash table of hits by range; index + 1, or 0: free */
    size_t slot_count;   /* a power of two */
    size_t slots_taken;  /* including those of ranges that were freed */
};

void long_revision_init(struct watch_hub *hub);
void long_revision_fini(struct watch_hub *hub);
/* Some are held, are to be freed, or are waited for. */
static inline bool long_revision_any(const struct watch_hub *hub)
{
    const struct long_revisions *all = &hub->long_revisions;
    return !list_empty(&all->held) || !list_empty(&all->gone) || all->wanted;
}

static inline void long_revision_turn_begin(struct watch_hub *hub)
{
    hub->long_revisions.turn++;
    hub->long_revisions.budget = hub->long_revisions.mark_budget = hub->options.turn_units;
}
/* Drops those that are no longer used. */
void long_revision_turn_end(struct watch_hub *hub);
/* When the next one is to be dropped; CLOCK_NEVER. */
int64_t long_revision_next_ns(const struct watch_hub *hub);
/* For tests. */
void long_revision_check(const struct watch_hub *hub);

/* The units that the current fill may still use, and using some. */
size_t long_revision_units(const struct watch_hub *hub);
void long_revision_pay(struct watch_hub *hub, size_t units);

/*
 * The long revision at a place for which the history gave a batch without events; valid until the
 * turn ends. Loaded: its events can be read. Searched: its hits are known, for all ranges that
 * existed when the first search began. ST_AGAIN: the fill must stop here, and the caller asks again
 * in the next turn. ST_COMPACTED, ST_DAMAGED: it cannot be read.
 */
MUST_CHECK
enum status long_revision_get_loaded(struct watch_hub *hub, const struct watch_place *place,
                                     int64_t revision, struct long_revision **ret_long);
MUST_CHECK
enum status long_revision_get_searched(struct watch_hub *hub, const struct watch_place *place,
                                       int64_t revision, struct long_revision **ret_long);
/* Searched, for the tail, which has its own units and never waits for other readers. */
MUST_CHECK
enum status long_revision_get_for_tail(struct watch_hub *hub, const struct watch_place *place,
                                       int64_t revision, struct long_revision **ret_long);
/* Searches until `passes` searches are complete. ST_AGAIN: as above. */
MUST_CHECK
enum status long_revision_search_again(struct watch_hub *hub, struct long_revision *long_rev,
                                       uint32_t passes);

bool long_revision_is_held(const struct watch_hub *hub, int64_t revision);
void long_revision_event(const struct watch_hub *hub, const struct long_revision *long_rev,
                         size_t at, struct watch_event *ret_event);
/* NULL: the range has no events, if it existed when a completed search began. */
const struct long_revision_hit *long_revision_find(const struct long_revision *long_rev,
                                                   const struct watch_range *range);

/* The first revision of which all tags will be looked up with the present cursors in the index. */
int64_t long_revision_tagged_from(const struct watch_hub *hub);

/* A watcher was added that may need a long revision which has been searched already. */
void long_revision_watcher_added(struct watch_hub *hub, const struct watcher *watcher);
void long_revision_range_gone(struct watch_hub *hub, const struct watch_range *range);

#endif
