/*
 * What the watches of a thread share about the events of a turn: what selectors see of an object
 * before and after the event, which selections it concerns, and the object of a deletion. Found for
 * the first watch that asks and used by the others; a table of fixed size, so that what does not
 * fit is found again.
 *
 * One per API, on its thread.
 */
#ifndef VIGIL_TIER_READ_EVENTS_H
#define VIGIL_TIER_READ_EVENTS_H

#include "kube/request/selection.h"
#include "tier/mirror/name.h"
#include "tier/object/frame.h"
#include "watch/cursor.h"

struct tier_event_cache;

struct tier_event_cache *tier_event_cache_new(void);        /* aborts without memory */
void tier_event_cache_free(struct tier_event_cache *cache); /* accepts NULL */

/* What is watched. */
struct tier_watched {
    enum tier_encoding encoding;
    const struct kube_kind *kind; /* for fields; NULL: only metadata is known */
    const struct kube_selection *selection;
};

/* The event as a watch gets it. */
struct tier_shown {
    enum tier_event event; /* NONE: it is not of the selection */
    /* The object: as it is stored, or, of one that has left the selection or is deleted, the state
     * before with the version of the event. Valid until the next look, and in this turn only. */
    struct slice bytes;
};

/* version: that of the event. ST_COMPACTED: the state before it is gone; ST_MALFORMED: an object is
 * invalid; ST_NOMEM. */
MUST_CHECK
enum status tier_event_look(struct tier_event_cache *cache, struct watch_cursor *cursor,
                            const struct watch_event *event, int64_t revision, uint64_t version,
                            const struct tier_watched *watched, struct tier_shown *ret_shown);

#endif
