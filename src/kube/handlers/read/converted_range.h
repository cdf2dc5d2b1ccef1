/*
 * The objects of a range that a webhook converts, in batches (kube/call/conversion_batch.h): for a
 * list, and for the initial events of a watch. The range is closed while a batch is converted, so
 * that no state of the store is pinned, and opened again after the last object that was read, at
 * the same revision. All batches of a list together have the time of its request
 * (kube/call/deadline.h).
 *
 *     next ─► (open) ─► read ─► close ─► convert ─► ready ─► next …
 *
 * Embedded in the state of a handler, on the thread of its API.
 */
#ifndef VIGIL_KUBE_HANDLERS_READ_CONVERTED_RANGE_H
#define VIGIL_KUBE_HANDLERS_READ_CONVERTED_RANGE_H

#include "kube/call/call.h"
#include "kube/call/conversion_batch.h"

struct kube_converted_range {
    /* Set by the owner, before the first `next`. */
    struct kube_call *call;
    struct pb_range_request *request; /* borrowed; changed when the range is opened again */
    bool *open;                       /* whether call->range is open; borrowed */
    int64_t revision;
    int64_t left; /* key-values that were not read; at first those of the range */
    /* The end of an operation of the call, which calls kube_converted_range_opened. */
    void (*opened)(struct engine_op *op);
    /* The end of each `next`. ST_OK: `batch` has the objects, and is empty behind the last.
     * ST_CANCELED: the webhook has failed or is late, and call->status says how. Everything else is
     * an error of the engine; ST_MALFORMED: the object with the key and revision `bad` is not an
     * object. */
    void (*ready)(struct kube_converted_range *range, enum status status);

    struct kube_conversion_batch *batch; /* owned */
    struct buf from;                     /* the first key that was not read */
    struct slice bad;
    int64_t bad_revision;
    uint64_t read, undecodable; /* objects */
    bool waits;                 /* for the webhook, or for the range */
};

/* Reads and converts the next objects. The batch before was freed. */
void kube_converted_range_next(struct kube_converted_range *range);
void kube_converted_range_opened(struct kube_converted_range *range, struct engine_op *op);
/* Accepts a zeroed one. The owner closes the range. */
void kube_converted_range_fini(struct kube_converted_range *range);

#endif
