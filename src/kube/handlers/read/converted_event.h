/*
 * An event that is not sent in its stored form: both objects are converted to the served version,
 * the type of the event for a selection is determined, and its bytes are made in the shape and
 * format of the watch. For one watch at a time; nothing is shared.
 *
 * A large event is converted on the worker (kube/call/offload.h), with copies:
 *
 *     kube_converted_event_send ──► worker: kube_event_convert ──► loop of the API: done frees it
 */
#ifndef VIGIL_KUBE_HANDLERS_READ_CONVERTED_EVENT_H
#define VIGIL_KUBE_HANDLERS_READ_CONVERTED_EVENT_H

#include "base/buf.h"
#include "kube/call/offload.h"
#include "kube/call/shape.h"
#include "kube/handlers/read/event_cache.h"

/* The objects before and after an event, or an object of the initial list. */
struct kube_event_pair {
    struct kube_kv after;  /* not set for a tombstone */
    struct kube_kv before; /* only if the selection needs it; without a value: compacted */
    bool created, tombstone;
    struct slice key;
    int64_t revision;
};

/* The form in which a watch sends its events. Kind and selection are borrowed. */
struct kube_event_form {
    struct kube_shaping shaping;
    const struct kube_selection *selection;
    bool protobuf;
    bool columns; /* columns of a Table are sent with this event */
};

struct kube_converted_event {
    enum status status; /* not ST_OK: the values are not objects */
    bool mistyped;      /* the object does not fit its protobuf type */
    enum kube_event_type change;
    struct buf made; /* the bytes to send */
};

/* For the event that the cursor has just returned; valid as long as the event. */
struct kube_event_pair kube_event_pair_of(const struct kube_selection *selection,
                                          struct watch_cursor *cursor,
                                          const struct watch_event *event, int64_t revision);

/* Appends the bytes of an event. Statuses of kube_format_event. On any thread. */
MUST_CHECK
enum status kube_event_write(const struct kube_event_form *form, enum kube_event_type change,
                             const struct kube_object *object, int64_t revision, struct buf *to);

/* On any thread. */
void kube_event_convert(const struct kube_event_form *form, const struct kube_event_pair *pair,
                        struct kube_converted_event *ret_shown);
void kube_converted_event_fini(struct kube_converted_event *converted);

/* -- On the worker -- */

struct kube_converted_event_job {
    struct kube_offload_job job;
    struct kube_api *api;
    struct kube_event_form form;
    struct kube_event_pair pair; /* in `bytes` */
    struct buf bytes;
    struct account *account; /* a reference; charged with `bytes` */
    struct kube_converted_event converted;
    void *owner;
    void (*done)(struct kube_converted_event_job *job);
};

/* Whether the event is large enough for the worker. */
MUST_CHECK
bool kube_converted_event_is_large(const struct kube_api *api, const struct kube_event_pair *pair);
/* done is called once, in a later turn. What the form borrows must live until then. Aborts without
 * memory. */
struct kube_converted_event_job *kube_converted_event_send(
    struct kube_api *api, struct http_exchange *exchange, const struct kube_event_form *form,
    const struct kube_event_pair *pair, void *owner,
    void (*done)(struct kube_converted_event_job *job));
void kube_converted_event_job_free(struct kube_converted_event_job *job);

#endif
