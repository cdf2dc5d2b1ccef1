/*
 * The watches of one shard: who watches what, and how far each stream is.
 *
 *   history ── new revisions ──► hub: finds the streams that watch them, wakes those
 *                                       │
 *                       a woken stream is pulled when its transport has room: it walks the
 *                       revisions from where it stood and writes responses straight into the output
 *
 * Nothing is queued for anybody. A stream that nothing concerns stands at the tail without being
 * touched; one that cannot send stands at a revision and a place in it, and holds nothing else.
 * It mirrors etcd's watchableStore without its victims, batches and ticks.
 *
 * One per shard, on its thread. The history is the engine's.
 */
#ifndef VIGIL_WATCH_HUB_H
#define VIGIL_WATCH_HUB_H

#include "watch/history.h"
#include "watch/stats.h"

struct watch_hub;

/* What stands in every response header besides the revision. */
struct watch_identity {
    uint64_t cluster_id, member_id, raft_term;
};

struct watch_hub_options {
    struct watch_history *history;
    struct watch_identity identity;
    size_t fragment_bytes; /* responses of that size and more are cut for who asked; 2 MiB */
    unsigned watchers_max; /* of one stream; a create beyond it is refused */
    /* Of all hubs that share the count; NULL: this one alone, without a limit. */
    _Atomic uint64_t *watchers_all;
    uint64_t watchers_all_max;
    struct watch_board *board; /* where it shows itself to other threads; may be NULL */
    int64_t progress_interval_ns;
    size_t turn_units; /* work on long revisions in one turn, see long.h; 0: LONG_TURN_UNITS */
    uint64_t seed;     /* of the jitter of progress and of the hash tables */
};

struct watch_hub *watch_hub_new(
    const struct watch_hub_options *options); /* aborts without memory */
void watch_hub_free(struct watch_hub *hub);   /* no stream may be left; accepts NULL */
DEFINE_CLEANUP(struct watch_hub *, watch_hub_free)

/*
 * Once per turn, after input was read: takes in what was published, and wakes the streams it
 * concerns. Returns soon: about a millisecond's work; true when there is more to do at once.
 */
MUST_CHECK
bool watch_hub_turn_begin(struct watch_hub *hub, int64_t now_ns);
/* After everything that could be sent was sent: what the history handed out is let go. */
void watch_hub_turn_end(struct watch_hub *hub);

/*
 * Until when it rests, 0 if it does not: a turn that woke many cursors is followed by a rest in
 * proportion, so that changes that come one by one are told together. What is new need not be told
 * to the hub before. Never while there are streams other than cursors.
 */
int64_t watch_hub_rests_until(const struct watch_hub *hub);

/* Everything up to here was taken in. */
int64_t watch_hub_revision(const struct watch_hub *hub);

/* The history has what it could not give before. */
void watch_hub_history_ready(struct watch_hub *hub);

/*
 * When turn_begin next has something to do by itself; CLOCK_NEVER. To be asked after the turn's
 * fills: a moment that has come means that one of them has more to search, and that the next turn
 * should begin at once.
 */
int64_t watch_hub_next_ns(const struct watch_hub *hub);

/* What was counted up to now, and found by looking at every stream at once: for tests, and where
 * there are few. */
const struct watch_report *watch_hub_census(struct watch_hub *hub);

/* For tests: every watcher stands where its state says, and every count is right. */
void watch_hub_check(const struct watch_hub *hub);

#endif
