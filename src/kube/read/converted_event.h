/*
 * What a watch sends of one event that is not sent as it is stored: both objects as they are shown,
 * what the change means to a selection, and its bytes in the shape and format of the watch. For one
 * watch at a time; nothing of it is shared.
 *
 * Of a large event that is done on the worker (work.h), with copies:
 *
 *     kube_converted_event_send ──► worker: kube_event_convert ──► the face's loop: done, which frees it
 */
#ifndef VIGIL_KUBE_READ_CONVERTED_EVENT_H
#define VIGIL_KUBE_READ_CONVERTED_EVENT_H

#include "base/buf.h"
#include "kube/call/offload.h"
#include "kube/call/shape.h"
#include "kube/read/event_cache.h"

/* Both sides of an event, or what was there when a watch began. */
struct kube_event_pair {
    struct kube_kv after;  /* not of a tombstone */
    struct kube_kv before; /* only where it matters to the selection; no value: it is gone */
    bool created, tombstone;
    struct slice key;
    int64_t revision;
};

/* How a watch has its events. Kind and selection are borrowed. */
struct kube_event_form {
    struct kube_shaping shaping;
    const struct kube_selection *selection;
    bool protobuf;
    bool columns; /* of a table, with this event */
};

struct kube_converted_event {
    enum status status; /* not ST_OK: it cannot be read as objects */
    bool mistyped;      /* its type in protobuf has no room for what is stored */
    enum kube_event_type change;
    struct buf made; /* its bytes */
};

/* The event that the cursor just gave. Valid as long as that. */
struct kube_event_pair kube_event_pair_of(const struct kube_selection *selection,
                                          struct watch_cursor *cursor,
                                          const struct watch_event *event, int64_t revision);

/* Appends what is sent of a change. Statuses of kube_format_event. On any thread. */
MUST_CHECK
enum status kube_event_write(const struct kube_event_form *showing, enum kube_event_type change,
                             const struct kube_object *object, int64_t revision, struct buf *to);

/* On any thread. */
void kube_event_convert(const struct kube_event_form *showing, const struct kube_event_pair *pair,
                        struct kube_converted_event *ret_shown);
void kube_converted_event_fini(struct kube_converted_event *shown);

/* -- On the worker -- */

struct kube_converted_event_job {
    struct kube_offload_job job;
    struct kube_face *face;
    struct kube_event_form showing;
    struct kube_event_pair pair; /* in `bytes` */
    struct buf bytes;
    struct account *account; /* counted: charged with `bytes` */
    struct kube_converted_event shown;
    void *owner;
    void (*done)(struct kube_converted_event_job *job);
};

/* Whether one of these is looked at on the worker. */
MUST_CHECK
bool kube_converted_event_is_large(const struct kube_face *face,
                                   const struct kube_event_pair *pair);
/* done is called once, in a later turn. What the showing borrows must live until then. Aborts
 * without memory. */
struct kube_converted_event_job *kube_converted_event_send(
    struct kube_face *face, struct account *account, const struct kube_event_form *showing,
    const struct kube_event_pair *pair, void *owner,
    void (*done)(struct kube_converted_event_job *job));
void kube_converted_event_job_free(struct kube_converted_event_job *job);

#endif
