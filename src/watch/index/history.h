/*
 * Where the watch engine gets events from: the store's log in the local engine, an upstream watch
 * in a cluster's engine. Revisions are complete and come in order. Events are not copied; their
 * slices point into the store's memory.
 *
 * A history belongs to one shard and is used on its thread. What it hands out stays valid until the
 * end of the turn (watch_hub_turn_end).
 */
#ifndef VIGIL_WATCH_INDEX_HISTORY_H
#define VIGIL_WATCH_INDEX_HISTORY_H

#include "base/slice.h"
#include "base/status.h"

/* One changed key. */
struct watch_event {
    struct slice key;
    struct slice field; /* `12 len KeyValue`, the encoded field of an Event */
    bool tombstone;
    bool created;        /* the first version of its key, or the first after a delete */
    const void *private; /* the history's own data, for prev */
};

/*
 * All events of one revision, in the order they were made. Never empty. A long revision, which
 * would take long to decode, has events NULL: its readers hold it and read the events one by one.
 */
struct watch_batch {
    int64_t revision;
    const struct watch_event *events;
    size_t count;
};

/* A revision with more events, or a longer record, is a long one. */
enum { WATCH_WHOLE_EVENTS = 1024, WATCH_WHOLE_BYTES = 4 << 20 };

/* A long revision whose events stay readable from turn to turn. Each history defines its own. */
struct watch_held;

/* A position in the history. The history keeps hints in it, so that continuing costs nothing. */
struct watch_place {
    int64_t revision; /* the next one to read */
    uint64_t hints[3];
};

struct watch_history;

struct watch_history_ops {
    /*
     * Gives the events of the first revision >= place->revision, if it is <= last, and moves place
     * behind it. ST_END: there is none up to last; place moves behind last. ST_COMPACTED:
     * place->revision is below the compact revision. ST_AGAIN: not available yet;
     * watch_hub_history_ready will be called. A log on disk never answers so; it is for a history
     * that is read from another server. ST_DAMAGED: the next revision cannot be read, so its keys
     * are unknown; place moves behind it.
     */
    enum status (*next)(struct watch_history *history, struct watch_place *place, int64_t last,
                        struct watch_batch *ret_batch);
    /*
     * Holds the long revision that `next` gave for this place. What it hands out stays valid until
     * it is released. ST_COMPACTED: it no longer exists. ST_AGAIN: as of `next`. A history without
     * long revisions leaves hold, load, event and release NULL.
     */
    enum status (*hold)(struct watch_history *history, const struct watch_place *place,
                        int64_t revision, struct watch_held **ret_held, size_t *ret_count);
    /*
     * Continues to read, for about *units events, and subtracts the cost from *units. ST_OK: all of
     * it was read and is intact. ST_AGAIN: there is more to read. ST_DAMAGED: it differs from what
     * was written.
     */
    enum status (*load)(struct watch_held *held, size_t *units);
    /* An event of a held revision that is loaded. */
    void (*event)(const struct watch_held *held, size_t at, struct watch_event *ret_event);
    void (*release)(struct watch_held *held);
    /* `12 len KeyValue` of the version before the event; empty when it created the key. */
    struct slice (*prev)(struct watch_history *history, const struct watch_event *event);
    /* The newest revision that watchers may see, and the oldest that can still be read. */
    int64_t (*revision)(struct watch_history *history);
    int64_t (*compact_revision)(struct watch_history *history);
    /* Whether this revision, which is newer than all that exist, may be known from a past that was
     * discarded: a watch that begins there ends as compacted. NULL: there was no other past. */
    bool (*is_void)(struct watch_history *history, int64_t revision);
    /* Whether this shard has watchers, and so needs to be woken for new revisions. */
    void (*listen)(struct watch_history *history, bool wanted);
};

struct watch_history {
    const struct watch_history_ops *ops;
};

#endif
