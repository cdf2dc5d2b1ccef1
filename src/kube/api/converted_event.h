/*
 * What a watch sends of one event that is not sent as it is stored: both objects as they are shown,
 * what the change means to a selection, and its bytes in the shape and format of the watch. For one
 * watch at a time; nothing of it is shared.
 *
 * Of a large event that is done on the worker (work.h), with copies:
 *
 *     kube_shown_send ──► worker: kube_show ──► the face's loop: done, which frees it
 */
#ifndef VIGIL_KUBE_API_CONVERTED_EVENT_H
#define VIGIL_KUBE_API_CONVERTED_EVENT_H

#include "base/buf.h"
#include "kube/api/event_cache.h"
#include "kube/api/offload.h"
#include "kube/api/shape.h"

/* Both sides of an event, or what was there when a watch began. */
struct kube_pair {
    struct kube_kv after;  /* not of a tombstone */
    struct kube_kv before; /* only where it matters to the selection; no value: it is gone */
    bool created, tombstone;
    struct slice key;
    int64_t revision;
};

/* How a watch has its events. Kind and selection are borrowed. */
struct kube_showing {
    struct kube_shaping shaping;
    const struct kube_selection *selection;
    bool protobuf;
    bool columns; /* of a table, with this event */
};

struct kube_shown {
    enum status status; /* not ST_OK: it cannot be read as objects */
    bool mistyped;      /* its type in protobuf has no room for what is stored */
    enum kube_change change;
    struct buf made; /* its bytes */
};

/* The event that the cursor just gave. Valid as long as that. */
struct kube_pair kube_pair_of(const struct kube_selection *selection, struct watch_cursor *cursor,
                              const struct watch_event *event, int64_t revision);

/* Appends what is sent of a change. Statuses of kube_format_event. On any thread. */
MUST_CHECK
enum status kube_change_write(const struct kube_showing *showing, enum kube_change change,
                              const struct kube_object *object, int64_t revision, struct buf *to);

/* On any thread. */
void kube_show(const struct kube_showing *showing, const struct kube_pair *pair,
               struct kube_shown *ret_shown);
void kube_shown_fini(struct kube_shown *shown);

/* -- On the worker -- */

struct kube_shown_job {
    struct kube_job job;
    struct kube_face *face;
    struct kube_showing showing;
    struct kube_pair pair; /* in `bytes` */
    struct buf bytes;
    struct account *account; /* counted: charged with `bytes` */
    struct kube_shown shown;
    void *owner;
    void (*done)(struct kube_shown_job *job);
};

/* Whether one of these is looked at on the worker. */
MUST_CHECK
bool kube_shown_is_large(const struct kube_face *face, const struct kube_pair *pair);
/* done is called once, in a later turn. What the showing borrows must live until then. Aborts
 * without memory. */
struct kube_shown_job *kube_shown_send(struct kube_face *face, struct account *account,
                                       const struct kube_showing *showing,
                                       const struct kube_pair *pair, void *owner,
                                       void (*done)(struct kube_shown_job *job));
void kube_shown_job_free(struct kube_shown_job *job);

#endif
