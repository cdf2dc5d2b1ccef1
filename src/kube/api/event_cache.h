/*
 * What a shard has seen of the events of its turn: where the parts of their objects lie, what
 * selectors said of them, and their bytes for the wire. Found out by the first watch that asks,
 * and there for all that follow in the same turn; nothing is kept beyond it.
 *
 * One per face, on its thread. A table of fixed size: what does not fit is found out again.
 */
#ifndef VIGIL_KUBE_API_EVENT_CACHE_H
#define VIGIL_KUBE_API_EVENT_CACHE_H

#include "kube/api/accept.h"
#include "kube/api/selection.h"
#include "watch/cursor.h"

enum kube_change {
    KUBE_CHANGE_NONE, /* not to this watch */
    KUBE_CHANGE_ADDED,
    KUBE_CHANGE_MODIFIED,
    KUBE_CHANGE_DELETED,     /* the object is the one before */
    KUBE_CHANGE_UNDECODABLE, /* one of the objects is none */
};

enum {
    KUBE_SIGHTS = 256,                    /* events */
    KUBE_SIGHT_VERDICTS = 4,              /* selectors of each */
    KUBE_SIGHT_BYTES = 512 * 1024,        /* of the wire, of all together */
    KUBE_SIGHT_OBJECT_BYTES = 128 * 1024, /* a larger one is sent from where it lies */
};

struct kube_sights;

struct kube_sights *kube_sights_new(void);
void kube_sights_free(struct kube_sights *sights); /* accepts NULL */

/* What the event that the cursor just gave means to a watch of this selection and shape. */
enum kube_change kube_sights_change(struct kube_sights *sights, struct watch_cursor *cursor,
                                    const struct watch_event *event, int64_t revision,
                                    const struct kube_selection *selection, enum kube_shape shape);

/*
 * Its object for a change that was said of it: the one before it, if that is what is told. Valid
 * until the turn ends. False: it is gone.
 */
MUST_CHECK
bool kube_sights_object(struct kube_sights *sights, struct watch_cursor *cursor,
                        const struct watch_event *event, int64_t revision,
                        const struct kube_selection *selection, enum kube_shape shape,
                        enum kube_change change, struct kube_object *ret_object);

/*
 * All bytes of the event as JSON, for a change that was said of it: head, object, tail. False:
 * there are none that are shared; it is to be sent in parts. Who asks first gets none, since nobody
 * may ask a second time.
 */
MUST_CHECK
bool kube_sights_wire(struct kube_sights *sights, struct watch_cursor *cursor,
                      const struct watch_event *event, int64_t revision, enum kube_change change,
                      struct slice *ret_bytes);

/* The same as a frame of protobuf, of whole objects: who finds none makes it, and leaves it here
 * for the others of this turn. One that is too large is not kept. */
MUST_CHECK
bool kube_sights_frame(struct kube_sights *sights, const struct watch_cursor *cursor,
                       const struct watch_event *event, int64_t revision, enum kube_change change,
                       struct slice *ret_frame);
void kube_sights_keep_frame(struct kube_sights *sights, const struct watch_cursor *cursor,
                            const struct watch_event *event, int64_t revision,
                            enum kube_change change, struct slice frame);

/* "ADDED" */
const char *kube_change_type(enum kube_change change);
/* `{"type":"ADDED","object":` and what closes it. */
struct slice kube_change_head(enum kube_change change);
struct slice kube_change_tail(void);

/* A selection goes away: nothing that one has said is remembered any more. */
void kube_sights_forget(struct kube_sights *sights);

#endif
