/*
 * What webhooks have converted for the watches of a shard. The object of an event is converted once
 * for each version, however many watches need it: the first one sends it at the end of the turn,
 * together with others of the same version, and the others wait for the same answer. Objects that
 * were converted are kept until KUBE_EVENT_CONVERSIONS_BYTES are, for watches that come to the
 * event later; what has failed is not kept. When no watch waits any more for any object of a call,
 * the call is given up. The objects of each definition are limited for themselves, and all that
 * their conversions take is charged to an account of the definition.
 *
 *     get ─► known ────────────────────────────────────► its JSON
 *      └───► new ─► (end of the turn) ─► sent ─► wake ─► get
 *
 * One per API, on its thread.
 */
#ifndef VIGIL_KUBE_HANDLERS_READ_EVENT_CONVERSIONS_H
#define VIGIL_KUBE_HANDLERS_READ_EVENT_CONVERSIONS_H

#include "base/container/list.h"
#include "kube/custom/definition.h"
#include "kube/types/status.h"
#include "kube/types/storage.h"

enum {
    KUBE_EVENT_CONVERSIONS_BYTES = 4 << 20, /* sum of those that are kept */
    KUBE_EVENT_CONVERSIONS_COUNT = 4096,    /* the same */
    /* The sum of those under way: of all, and of one definition. */
    KUBE_EVENT_CONVERSIONS_PENDING_BYTES = 64 << 20,
    KUBE_EVENT_CONVERSIONS_PENDING_BYTES_EACH = KUBE_EVENT_CONVERSIONS_PENDING_BYTES / 4,
    /* All memory for one definition: also questions, answers, and results, which a watch needs
     * until its client has room for them. */
    KUBE_EVENT_CONVERSIONS_MEMORY_EACH = 128 << 20,
};

struct budget;
struct kube_api;
struct kube_conversion_entry;
struct kube_event_conversions;

/* budget: that of the accounts; NULL: nothing is charged. */
struct kube_event_conversions *kube_event_conversions_new(struct kube_api *api,
                                                          struct budget *budget);
/* Nothing waits any more. Accepts NULL. */
void kube_event_conversions_free(struct kube_event_conversions *conversions);

/* What a watch needs: one object in one version. Embedded; zeroed, it is idle. */
struct kube_conversion_wait {
    struct kube_conversion_entry *entry; /* NULL: idle */
    struct list in_entry;
    void (*wake)(struct kube_conversion_wait *wait); /* get has a result now */
};

/*
 * The object of a key and revision in the version `to`. ST_OK: *ret_json, valid until the wait is
 * dropped. ST_AGAIN: wake is called, in a later turn. ST_CANCELED: *ret_status says why it failed,
 * with texts that are valid until the wait is dropped.
 */
MUST_CHECK
enum status kube_event_conversions_get(struct kube_event_conversions *conversions,
                                       struct kube_conversion_wait *wait,
                                       const struct kube_custom *to, struct kube_kv kv,
                                       struct slice *ret_json, struct kube_status *ret_status);
/* wake is not called any more. No effect if it is idle. */
void kube_conversion_wait_drop(struct kube_event_conversions *conversions,
                               struct kube_conversion_wait *wait);

#endif
