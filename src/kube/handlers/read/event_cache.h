/*
 * What the watches of a shard share about the events of a turn: the parts of their objects, whether
 * selections match, and their bytes for the wire. Computed for the first watch that needs it and
 * used by the others in the same turn; nothing is kept beyond the turn.
 *
 * One per API, on its thread. A table of fixed size: what does not fit is computed again.
 */
#ifndef VIGIL_KUBE_HANDLERS_READ_EVENT_CACHE_H
#define VIGIL_KUBE_HANDLERS_READ_EVENT_CACHE_H

#include "kube/request/accept.h"
#include "kube/request/selection.h"
#include "watch/cursor.h"

enum kube_event_type {
    KUBE_EVENT_NONE, /* the watch gets no event */
    KUBE_EVENT_ADDED,
    KUBE_EVENT_MODIFIED,
    KUBE_EVENT_DELETED,     /* with the object before the event */
    KUBE_EVENT_UNDECODABLE, /* one of the values is not an object */
};

enum {
    KUBE_EVENT_CACHE_EVENTS = 256,              /* events */
    KUBE_EVENT_CACHE_VERDICTS = 4,              /* selectors of each */
    KUBE_EVENT_CACHE_BYTES = 512 * 1024,        /* for the wire, of all events together */
    KUBE_EVENT_CACHE_OBJECT_BYTES = 128 * 1024, /* a larger object is sent from the store */
};

struct kube_event_cache;
struct kube_cached_event;

struct kube_event_cache *kube_event_cache_new(void);
void kube_event_cache_free(struct kube_event_cache *cache); /* accepts NULL */

/* The entry of the event that the cursor has just returned. Valid until another one is looked up.
 */
struct kube_cached_event *kube_event_cache_find(struct kube_event_cache *cache,
                                                const struct watch_cursor *cursor,
                                                const struct watch_event *event, int64_t revision);

/* The type of the event for a watch of this selection and shape. */
enum kube_event_type kube_event_cache_type(struct kube_cached_event *cached,
                                           struct watch_cursor *cursor,
                                           const struct watch_event *event,
                                           const struct kube_selection *selection,
                                           enum kube_shape shape);

/*
 * The object of an event of this type: the one before a deletion, else the one after. Valid until
 * the turn ends. False: it has been compacted.
 */
MUST_CHECK
bool kube_cached_event_object(struct kube_cached_event *cached, struct watch_cursor *cursor,
                              const struct watch_event *event,
                              const struct kube_selection *selection, enum kube_shape shape,
                              enum kube_event_type change, struct kube_object *ret_object);

/*
 * All bytes of an event of this type as JSON: head, object, tail. False: they are not shared, and
 * the event is sent in parts. They are made for the second watch that asks, since most events have
 * only one.
 */
MUST_CHECK
bool kube_event_cache_wire(struct kube_event_cache *cache, struct kube_cached_event *cached,
                           enum kube_event_type change, struct slice *ret_bytes);

/* The same as a protobuf frame of a whole object: a watch that finds none makes it and keeps it
 * here for the others of this turn, unless it is too large. */
MUST_CHECK
bool kube_cached_event_frame(const struct kube_cached_event *cached, enum kube_event_type change,
                             struct slice *ret_frame);
void kube_event_cache_keep_frame(struct kube_event_cache *cache, struct kube_cached_event *cached,
                                 enum kube_event_type change, struct slice frame);

/* "ADDED" */
const char *kube_event_type_name(enum kube_event_type change);
/* `{"type":"ADDED","object":` and what closes it. */
struct slice kube_event_head(enum kube_event_type change);
struct slice kube_event_tail(void);

#endif
