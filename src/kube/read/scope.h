/*
 * Which objects a list or a watch is about: a range of keys, and selectors for what the range has
 * too many. Checks the options of both as Kubernetes does. Lives in the call's arena.
 */
#ifndef VIGIL_KUBE_READ_SCOPE_H
#define VIGIL_KUBE_READ_SCOPE_H

#include "kube/call/call.h"
#include "kube/request/selection.h"

struct kube_scope {
    struct slice prefix;         /* that continue tokens leave out */
    struct slice key, range_end; /* range_end empty: one key */
    struct slice tag;            /* what its events are found by instead of by key; may be empty */
    struct kube_selection *selection; /* a reference */
    int64_t revision;                 /* that was asked for; 0: "" or "0" */
    bool revision_given;              /* not "" */
    const struct kube_kind *kind;
    struct buf converted[2]; /* custom resources that are stored in another way than shown */
    unsigned convert_at;
    size_t looked; /* bytes of what was looked at, as it is shown; its owner counts from 0 again */
};

/* The selectors of the query, as a reference. False: call->status says why. */
MUST_CHECK
bool kube_selectors_get(struct kube_call *call, struct kube_selection **ret_selection);

/* False: call->status says why. */
MUST_CHECK
bool kube_scope_init(struct kube_scope *scope, struct kube_call *call, bool watch);
void kube_scope_fini(struct kube_scope *scope); /* accepts a zeroed one */

/* Whether an object is selected, and as much of it as the shape of the answer needs; valid until
 * the second following call. ST_MALFORMED: it is none. */
MUST_CHECK
enum status kube_scope_look(struct kube_scope *scope, enum kube_shape shape, struct kube_kv kv,
                            struct kube_object *ret_object, bool *ret_selected);

/* The keys of indexed fields that an event has: a watch_tagger, for the face's hub. */
struct watch_event;
struct watch_history;
size_t kube_scope_tags(void *ctx, struct watch_history *history, const struct watch_event *event,
                       struct slice ret_tags[]);

#endif
