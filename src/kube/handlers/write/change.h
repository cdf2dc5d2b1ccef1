/*
 * The change or deletion of one object under concurrent writes: read it, decide, write on the
 * condition that it has not changed, and otherwise decide again with its current version.
 *
 *     start ─► queue ─► read ─► decide ─┬─► put or delete ─┬─► done
 *                        ▲              ├─ keep ───────────┘
 *                        │              └─► create (create.c), which answers
 *                        └───────────────── the condition failed
 *
 * Changes of one object are made one after the other (kube/call/write_queue.h), so that an attempt
 * fails only because of a write by another I/O thread or by a client of the etcd API.
 *
 * In the arena of its call, one at a time; an error answers the call. A decision depends only on
 * the request, which is const, and on the stored object. Its results are in an arena of the
 * attempt, so that many attempts take no more memory than one; the status and warnings of an
 * attempt are discarded with it.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_CHANGE_H
#define VIGIL_KUBE_HANDLERS_WRITE_CHANGE_H

#include "kube/call/call.h"
#include "kube/handlers/write/charge.h"
#include "kube/types/object/meta.h"

enum kube_decision {
    KUBE_DECIDE_FAIL,   /* call->status says why */
    KUBE_DECIDE_KEEP,   /* nothing is written */
    KUBE_DECIDE_PUT,    /* the object returned */
    KUBE_DECIDE_DELETE, /* watches get the object returned; NULL: the stored one */
    KUBE_DECIDE_CREATE, /* it does not exist: create the object returned */
};

/*
 * Each failed attempt means that another write of the object succeeded. Only as many changes as
 * there are I/O threads compete; even with 64 of them, none loses a thousand times in a row.
 */
enum { KUBE_CHANGE_TRIES_MAX = 1000 };

struct kube_change {
    /* Set by the caller. */
    struct kube_call *call;
    struct slice name; /* of the object; the namespace is that of the path or of `namespace` */
    struct slice namespace;
    /* stored NULL: it does not exist. Called for each attempt. */
    enum kube_decision (*decide)(struct kube_change *change, const struct json_node *stored,
                                 struct json_node **ret_object);
    void (*done)(struct kube_change *change);
    void (*on_free)(struct kube_change *change); /* of the caller; may be NULL */
    bool dry_run;
    unsigned needs; /* facts for decide: kube/handlers/write/admit.h */

    /* For decide and done. */
    struct slice key;
    struct kube_meta meta; /* its arena is that of the attempt */
    enum kube_decision decision;
    /* Set by decide: called right before done. */
    void (*follow)(struct kube_change *change);
    /* Set by decide: kube/handlers/write/reserve.h; NULL: none. */
    struct kube_reservations *reservations;
    struct kube_charges charges; /* set by decide */
    int64_t revision;            /* of the stored object; in done, of the written one */
    int64_t before;              /* in done: of the object that was stored before */
    struct slice value;          /* in done: the bytes of the object; empty: it did not exist */

    /* Private. */
    struct arena scratch;
    struct buf encoded, key_bytes;
    struct pb_range_request request;
    struct slice stored;
    unsigned tries, code;
    size_t warned; /* length of call->warnings before the first attempt */
};

/* A zeroed change with the first part set. */
void kube_change_start(struct kube_change *change);
/* Decides again with the current version, after a create has found its key in use. */
void kube_change_again(struct kube_change *change);
/*
 * Creates the object of a change that found none: an apply, or a PUT of a kind that allows it
 * (create.c). The object is in the arena of the attempt. If it exists meanwhile, the change is
 * decided again.
 */
void kube_create_for(struct kube_change *change, struct json_node *object);
/* Before it is used for another object, and at the end. */
void kube_change_fini(struct kube_change *change);
/* The on_free of its call. */
void kube_change_free(struct kube_call *call);

/* Whether the user of the call needs permissions that follow from the object
 * (kube/policy/access/guard.h), and whether it has them. False: the call has failed, or roles and
 * bindings must first become as new as the store, or be read because they are not held; then
 * `again` is called, which begins with the same question. The latter on the thread of the API. */
bool kube_change_is_guarded(const struct kube_call *call);
MUST_CHECK
bool kube_change_guard(struct kube_call *call, struct slice value, struct slice old,
                       void (*again)(struct kube_call *call));

/* The context for the rules of metadata, whose results are in the arena. */
struct kube_meta kube_call_meta(struct kube_call *call, struct arena *arena);

/* Encodes an object for the store; the limit is that of etcd, so that the data can move there.
 * ST_REQUEST_TOO_LARGE, ST_NOMEM. */
enum { KUBE_OBJECT_BYTES_MAX = 1536 * 1024 };
MUST_CHECK
enum status kube_object_encode(const struct json_node *object, struct buf *to);

/* Answers with the object of `done`. */
void kube_change_respond(struct kube_change *change, unsigned code);

#endif
