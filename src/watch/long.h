/*
 * A revision with very many events, on which nobody works for long in one turn. It is read and
 * looked up in the hub's index once for everybody, some events a turn; what is known then is, for
 * every range of keys, its first and its last event.
 *
 *                       ╭──────────╮ all was read,  ╭───────────╮ all were   ╭───────╮
 *     somebody needs it │ LOADING  │───────────────►│ SEARCHING │───────────►│ KNOWN │
 *     ─────────────────►╰──────────╯ and is intact  ╰───────────╯ looked up  ╰───────╯
 *                            │                            ▲  somebody came who must │
 *                            ▼                            ╰─────────────────────────╯
 *                       ╭──────────╮                         be told of it, too
 *                       │ DAMAGED  │
 *                       ╰──────────╯     any state ─► GONE: nobody needed it for a while, or
 * another one has to have its place. Freed with the turn.
 *
 * How a new revision L is told, so that nothing is lost or told early:
 *
 *     the hub's tail stands at L - 1 ── LOADING, SEARCHING ──► KNOWN: in one go every stream with a
 *     live watcher on a range that has events is marked, and the tail moves to L
 *
 *     a marked stream goes over its watchers; each one's `from` moves behind L, and if its range
 * has events a large response (large.c) goes from the first to the last of them
 *
 * Everybody keeps his own place: a watcher its `from`, a large response and a cursor the number of
 * an event. So one whose turn was over goes on with the next event, and one that loses the long
 * revision in between has it read again and goes on from there.
 *
 * The work is counted in units (about 50 ns): of the tail's by itself, of all others together. For
 * the files of this directory only.
 */
#ifndef VIGIL_WATCH_LONG_H
#define VIGIL_WATCH_LONG_H

#include "base/clock.h"
#include "base/container/list.h"
#include "watch/watcher.h"

struct watch_hub;

enum {
    LONG_OPEN_MAX = 4,       /* held for those who read; the tail has one besides */
    LONG_TURNS_MIN = 64,     /* one that others wait for is kept so many turns after it is loaded */
    LONG_TURN_UNITS = 65536, /* of one turn: those who read, and the same again for the tail */
    LONG_SEARCH_UNITS = 4, /* looking an event up costs so much, and one for each range it is in */
    LONG_PREV_UNITS = 16,  /* finding the version before an event */
    LONG_TAGS_UNITS = 16,  /* asking for the tags of an event */
};

#define LONG_KEPT_NS NS_PER_S /* after somebody last needed it */

enum long_state {
    LONG_LOADING,
    LONG_SEARCHING,
    LONG_KNOWN,
    LONG_DAMAGED,
    LONG_GONE,
};

/* A range that has events, or may have. */
struct long_hit {
    struct watch_range *range; /* NULL: it is gone */
    uint32_t first, last;      /* first > last: none was found yet */
    uint32_t passes;           /* known for certain once so many searches are over */
};

struct watch_long {
    struct list in_hub; /* watch_longs.held, or gone */
    enum long_state state;
    int64_t revision;
    size_t count;
    struct watch_place before;
    struct watch_held *held; /* the history's; owned */
    size_t searched;         /* events that were looked up in the search under way */
    uint32_t passes;         /* searches that are over */
    bool marking;            /* the tail waits for it */
    bool tags_unknown;       /* of some event: all cursors must look */
    uint64_t asked_turn, loaded_turn;
    int64_t asked_ns;

    struct long_hit *hits;
    size_t hit_count, hit_capacity;
    uint32_t *slots; /* of hits by range; a power of two of them, 0: free, else one more */
    size_t slot_count;
};

/* Those of a hub. */
struct watch_longs {
    struct list held, gone;
    unsigned count;     /* of held */
    bool wanted;        /* some stream waits for a place among them */
    uint64_t turn;      /* a number for each turn */
    size_t budget;      /* units that fills and cursors may still use in this turn, */
    size_t mark_budget; /* and the tail */
};

void long_init(struct watch_hub *hub);
void long_fini(struct watch_hub *hub);
void long_turn_begin(struct watch_hub *hub);
/* Lets go of those that nobody needs. */
void long_turn_end(struct watch_hub *hub);
/* When one of them will have to go; CLOCK_NEVER. */
int64_t long_next_ns(const struct watch_hub *hub);
/* For tests. */
void long_check(const struct watch_hub *hub);

/* What the fill under way may still do, and that it did some of it. */
size_t long_units(const struct watch_hub *hub);
void long_pay(struct watch_hub *hub, size_t units);

/*
 * The long revision at a place for which the history gave a batch without events, valid until the
 * turn ends. Loaded: its events can be read. Searched: so are its hits, of all ranges that were
 * there when the first search began. ST_AGAIN: the fill has to stop here, and whoever wants it asks
 * again in the next turn. ST_COMPACTED, ST_DAMAGED: nobody can have it.
 */
MUST_CHECK
enum status long_get_loaded(struct watch_hub *hub, const struct watch_place *place,
                            int64_t revision, struct watch_long **ret_long);
MUST_CHECK
enum status long_get_searched(struct watch_hub *hub, const struct watch_place *place,
                              int64_t revision, struct watch_long **ret_long);
/* Searched, for the tail. It never waits for others, and has its own units. */
MUST_CHECK
enum status long_get_for_tail(struct watch_hub *hub, const struct watch_place *place,
                              int64_t revision, struct watch_long **ret_long);
/* Searches again until so many passes are over. ST_AGAIN: as above. */
MUST_CHECK
enum status long_search_again(struct watch_hub *hub, struct watch_long *l, uint32_t passes);

void long_event(const struct watch_hub *hub, const struct watch_long *l, size_t at,
                struct watch_event *ret_event);
/* NULL: the range has no events, if it was there when a search that is over began. */
const struct long_hit *long_find(const struct watch_long *l, const struct watch_range *range);

/* The first revision whose tags will all be looked up with those who are here now. */
int64_t long_tagged_from(const struct watch_hub *hub);

/* One that a long revision at hand may concern has come, after it was looked for. */
void long_watcher_added(struct watch_hub *hub, const struct watcher *watcher);
void long_range_gone(struct watch_hub *hub, const struct watch_range *range);

#endif
