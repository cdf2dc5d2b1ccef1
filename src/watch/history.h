/*
 * Where the watch engine gets events from: the store's log in the local engine, an upstream watch
 * in a cluster's. Revisions come in order and whole; nothing is copied, events lie where the store
 * has them.
 *
 * A history belongs to one shard and is used on its thread. What it hands out stays valid until the
 * end of the turn (watch_hub_turn_end).
 */
#ifndef VIGIL_WATCH_HISTORY_H
#define VIGIL_WATCH_HISTORY_H

#include "base/slice.h"
#include "base/status.h"

/* One changed key. */
struct watch_event {
    struct slice key;
    struct slice field; /* `12 len KeyValue`, as it stands in an Event */
    bool tombstone;
    bool created;        /* the first version of its key, or the first after a delete */
    const void *private; /* the history's own, for prev */
};

/*
 * All events of one revision, in the order they were made. Never empty. A revision that would take
 * long to decode has events NULL: those who need its events hold it and read them one by one.
 */
struct watch_batch {
    int64_t revision;
    const struct watch_event *events;
    size_t count;
};

/* What a history decodes in one go: a revision with more events, or a longer record, is held. */
enum { WATCH_WHOLE_EVENTS = 1024, WATCH_WHOLE_BYTES = 4 << 20 };

/* A long revision whose events stay readable from turn to turn. Each history has its own. */
struct watch_held;

/* A place in the history; the history keeps hints in it, so that going on costs nothing. */
struct watch_place {
    int64_t revision; /* the next one to read */
    uint64_t hints[3];
};

struct watch_history;

struct watch_history_ops {
    /*
     * The events of the first revision >= place->revision, if it is <= last; place moves behind it.
     * ST_END: there is none up to last (place moves behind last). ST_COMPACTED: place->revision is
     * below the compact revision. ST_AGAIN: not here yet; watch_hub_history_ready will be called.
     * ST_DAMAGED: what comes next cannot be read, and nobody knows whom it concerned; place moves
     * behind it.
     */
    enum status (*next)(struct watch_history *history, struct watch_place *place, int64_t last,
                        struct watch_batch *ret_batch);
    /*
     * Holds the long revision that `next` gave for this place. What it hands out stays valid until
     * it is released. ST_COMPACTED: it is gone. A history without long revisions has none of these
     * four.
     */
    enum status (*hold)(struct watch_history *history, const struct watch_place *place,
                        int64_t revision, struct watch_held **ret_held, size_t *ret_count);
    /*
     * Reads on, for about *units events, and takes what that cost from *units. ST_OK: all of it was
     * read and can be trusted. ST_AGAIN: there is more to read. ST_DAMAGED: it is not what was
     * written.
     */
    enum status (*load)(struct watch_held *held, size_t *units);
    /* An event of one that was loaded. */
    void (*event)(const struct watch_held *held, size_t at, struct watch_event *ret_event);
    void (*release)(struct watch_held *held);
    /* `12 len KeyValue` of the version before the event; empty when it created the key. */
    struct slice (*prev)(struct watch_history *history, const struct watch_event *event);
    /* The newest revision that may be told, and the oldest that can still be read. */
    int64_t (*revision)(struct watch_history *history);
    int64_t (*compact_revision)(struct watch_history *history);
    /* Somebody watches, or nobody does any more: whether to wake this shard for new revisions. */
    void (*listen)(struct watch_history *history, bool wanted);
};

struct watch_history {
    const struct watch_history_ops *ops;
};

#endif
