/*
 * Reads a WatchResponse of the cluster, event by event, so that a long one can be read over several
 * turns.
 */
#ifndef VIGIL_MIRROR_BACKFILL_RESPONSE_H
#define VIGIL_MIRROR_BACKFILL_RESPONSE_H

#include "mirror/backfill/run.h"

/* Everything but the events. */
struct backfill_response {
    uint64_t cluster_id;
    int64_t revision; /* revision of the header */
    int64_t watch_id;
    int64_t compact_revision;
    struct slice cancel_reason; /* in the message */
    bool created, canceled, fragment, has_events;
};

/* False: the message is malformed. */
MUST_CHECK
bool backfill_response_read(struct slice message, struct backfill_response *ret_response);

/*
 * The next event of the body, from byte *at on, and its revision; moves *at behind it. Changes the
 * tag of the previous version in the body to that of a KeyValue. ST_END: there are no more.
 * ST_INVALID: the message is malformed.
 */
MUST_CHECK
enum status backfill_response_next(struct backfill_body *body, size_t *at,
                                   struct watch_event *ret_event, int64_t *ret_revision);

#endif
