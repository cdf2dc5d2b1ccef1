/*
 * The objects of a list or watch: a range of keys, and selectors for the objects in it. Checks the
 * options as Kubernetes does. In the call's arena.
 */
#ifndef VIGIL_KUBE_HANDLERS_READ_SCOPE_H
#define VIGIL_KUBE_HANDLERS_READ_SCOPE_H

#include "kube/call/call.h"
#include "kube/request/selection.h"

struct kube_scope {
    struct slice prefix;         /* omitted in continue tokens */
    struct slice key, range_end; /* range_end empty: one key */
    struct slice tag;            /* by which its events are found instead of by key; may be empty */
    bool tag_within;             /* the range contains all objects of the kind */
    struct kube_selection *selection; /* a reference */
    int64_t revision;                 /* the requested one; 0: "" or "0" */
    bool revision_given;              /* not "" */
    const struct kube_kind *kind;
    struct buf converted[2]; /* custom resources that had to be converted */
    unsigned convert_at;
    size_t looked; /* bytes that were examined, after conversion; reset by the owner */
};

/* The selectors of the query, as a reference. False: call->status says why. */
MUST_CHECK
bool kube_selectors_get(struct kube_call *call, struct kube_selection **ret_selection);

/* False: call->status says why. */
MUST_CHECK
bool kube_scope_init(struct kube_scope *scope, struct kube_call *call, bool watch);
void kube_scope_fini(struct kube_scope *scope); /* accepts a zeroed one */

/* Whether an object is selected, and as much of it as the shape of the answer needs; valid until
 * the call after the next. ST_MALFORMED: not an object. */
MUST_CHECK
enum status kube_scope_look(struct kube_scope *scope, enum kube_shape shape, struct kube_kv kv,
                            struct kube_object *ret_object, bool *ret_selected);

/* The tags of the indexed fields of an event: a watch_tagger for the hub of the API. */
struct watch_event;
struct watch_history;
size_t kube_scope_tags(void *ctx, struct watch_history *history, const struct watch_event *event,
                       struct slice ret_tags[]);

#endif
