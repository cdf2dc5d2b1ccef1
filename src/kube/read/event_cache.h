/*
 * What a shard has seen of the events of its turn: where the parts of their objects lie, what
 * selectors said of them, and their bytes for the wire. Found out by the first watch that asks,
 * and there for all that follow in the same turn; nothing is kept beyond it.
 *
 * One per face, on its thread. A table of fixed size: what does not fit is found out again.
 */
#ifndef VIGIL_KUBE_READ_EVENT_CACHE_H
#define VIGIL_KUBE_READ_EVENT_CACHE_H

#include "kube/request/accept.h"
#include "kube/request/selection.h"
#include "watch/cursor.h"

enum kube_event_type {
    KUBE_EVENT_NONE, /* not to this watch */
    KUBE_EVENT_ADDED,
    KUBE_EVENT_MODIFIED,
    KUBE_EVENT_DELETED,     /* the object is the one before */
    KUBE_EVENT_UNDECODABLE, /* one of the objects is none */
};

enum {
    KUBE_EVENT_CACHE_EVENTS = 256,              /* events */
    KUBE_EVENT_CACHE_VERDICTS = 4,              /* selectors of each */
    KUBE_EVENT_CACHE_BYTES = 512 * 1024,        /* of the wire, of all together */
    KUBE_EVENT_CACHE_OBJECT_BYTES = 128 * 1024, /* a larger one is sent from where it lies */
};

struct kube_event_cache;

struct kube_event_cache *kube_event_cache_new(void);
void kube_event_cache_free(struct kube_event_cache *cache); /* accepts NULL */

/* What the event that the cursor just gave means to a watch of this selection and shape. */
enum kube_event_type kube_event_cache_type(struct kube_event_cache *cache,
                                           struct watch_cursor *cursor,
                                           const struct watch_event *event, int64_t revision,
                                           const struct kube_selection *selection,
                                           enum kube_shape shape);

/*
 * Its object for a change that was said of it: the one before it, if that is what is told. Valid
 * until the turn ends. False: it is gone.
 */
MUST_CHECK
bool kube_event_cache_object(struct kube_event_cache *cache, struct watch_cursor *cursor,
                             const struct watch_event *event, int64_t revision,
                             const struct kube_selection *selection, enum kube_shape shape,
                             enum kube_event_type change, struct kube_object *ret_object);

/*
 * All bytes of the event as JSON, for a change that was said of it: head, object, tail. False:
 * there are none that are shared; it is to be sent in parts. Who asks first gets none, since nobody
 * may ask a second time.
 */
MUST_CHECK
bool kube_event_cache_wire(struct kube_event_cache *cache, struct watch_cursor *cursor,
                           const struct watch_event *event, int64_t revision,
                           enum kube_event_type change, struct slice *ret_bytes);

/* The same as a frame of protobuf, of whole objects: who finds none makes it, and leaves it here
 * for the others of this turn. One that is too large is not kept. */
MUST_CHECK
bool kube_event_cache_frame(struct kube_event_cache *cache, const struct watch_cursor *cursor,
                            const struct watch_event *event, int64_t revision,
                            enum kube_event_type change, struct slice *ret_frame);
void kube_event_cache_keep_frame(struct kube_event_cache *cache, const struct watch_cursor *cursor,
                                 const struct watch_event *event, int64_t revision,
                                 enum kube_event_type change, struct slice frame);

/* "ADDED" */
const char *kube_event_type_name(enum kube_event_type change);
/* `{"type":"ADDED","object":` and what closes it. */
struct slice kube_event_head(enum kube_event_type change);
struct slice kube_event_tail(void);

/* A selection goes away: nothing that one has said is remembered any more. */
void kube_event_cache_forget(struct kube_event_cache *cache);

#endif
