/* What hubs and streams are created with; part of hub.h and stream.h. */
#ifndef VIGIL_WATCH_HUB_OPTIONS_H
#define VIGIL_WATCH_HUB_OPTIONS_H

#include "watch/hub/stats.h"
#include "watch/index/history.h"

/* The fields of every response header besides the revision. */
struct watch_identity {
    uint64_t cluster_id, member_id, raft_term;
};

struct watch_hub_options {
    struct watch_history *history;
    struct watch_identity identity;
    /* A response of at least this size is split for clients that asked for fragments; 2 MiB. */
    size_t fragment_bytes;
    unsigned watchers_max; /* per stream; a create beyond it is refused */
    /* The watchers of all hubs that share this count; NULL: this hub alone, without a limit. */
    _Atomic uint64_t *watchers_all;
    uint64_t watchers_all_max;
    struct watch_stats_snapshot
        *snapshot; /* where other threads read its statistics; may be NULL */
    int64_t progress_interval_ns;
    /* Work on long revisions in one turn (long_revision.h); 0: LONG_REVISION_TURN_UNITS. */
    size_t turn_units;
    uint64_t seed; /* for the progress jitter and the hash tables */
};

enum { WATCH_TAGS_MAX = 4, WATCH_TAGS_UNKNOWN = WATCH_TAGS_MAX + 1 };

/*
 * The tags of an event: values of indexed fields, such as a pod's node before and after the change.
 * Called once for each new event while a cursor with a tag exists. Tags share the space of keys but
 * have no other meaning, for example "\0pods\0spec.nodeName\0a"; they are valid until the next
 * call. Returns their number, or WATCH_TAGS_UNKNOWN: then the event is given to every cursor with a
 * tag whose key range contains it.
 */
typedef size_t (*watch_tagger)(void *ctx, struct watch_history *history,
                               const struct watch_event *event,
                               struct slice ret_tags[WATCH_TAGS_MAX]);

struct watch_stream_owner {
    /*
     * There is something to fill. Called at most once until the next fill, which must not happen
     * within this call: the hub is in the middle of waking others.
     */
    void (*wake)(void *ctx);
    void *ctx;
    union {
        /* Writes a text that identifies the client for an operator. May be NULL. */
        void (*describe)(void *ctx, char text[WATCH_PEER_BYTES]);
        /* For a cursor (cursor.h), which may be woken soon. May be NULL. */
        void (*soon)(void *ctx);
    };
};

#endif
