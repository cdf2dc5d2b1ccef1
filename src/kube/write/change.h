/*
 * One object changed or removed, whatever others do meanwhile: read, decide, write on the condition
 * that nothing has changed, and else decide again over what is there now.
 *
 *     start ─► line ─► read ─► decide ─┬─► put or delete ─┬─► done
 *                       ▲              ├─ keep ───────────┘
 *                       │              └─► create (create.c), which answers
 *                       └───────────────── the condition failed
 *
 * Changes of one object come one after the other (kube/call/write_queue.h), so that an attempt
 * fails only for a write of another I/O thread or of a client of the etcd API.
 *
 * Lives in the arena of its call, one at a time; a fault answers the call. A decision depends on
 * nothing but the request, which is const, and what is stored. What it makes lies in an arena of
 * the attempt, so that many attempts take no more memory than one; status and warnings of an
 * attempt go with it.
 */
#ifndef VIGIL_KUBE_WRITE_CHANGE_H
#define VIGIL_KUBE_WRITE_CHANGE_H

#include "kube/call/call.h"
#include "kube/object/meta.h"

enum kube_decision {
    KUBE_DECIDE_FAIL,   /* call->status says why */
    KUBE_DECIDE_KEEP,   /* nothing is written */
    KUBE_DECIDE_PUT,    /* the object returned */
    KUBE_DECIDE_DELETE, /* the object returned is what the watches are sent, or NULL: as it was */
    KUBE_DECIDE_CREATE, /* there is none: the object returned */
};

/*
 * Each failed attempt means that another write of the object went through. With as many competitors
 * as there are I/O threads one of them is not last a thousand times, not even of sixty-four.
 */
enum { KUBE_CHANGE_TRIES_MAX = 1000 };

struct kube_change {
    /* Set by the caller. */
    struct kube_call *call;
    struct slice name; /* of the object; the namespace is that of the path or of `namespace` */
    struct slice namespace;
    /* stored NULL: there is none. Called again for each attempt. */
    enum kube_decision (*decide)(struct kube_change *change, const struct json_node *stored,
                                 struct json_node **ret_object);
    void (*done)(struct kube_change *change);
    void (*on_free)(struct kube_change *change); /* of the caller; may be NULL */
    bool dry_run;

    /* For decide and done. */
    struct slice key;
    struct kube_meta meta; /* its arena is that of the attempt */
    enum kube_decision decision;
    /* Set by decide: called right before done. */
    void (*follow)(struct kube_change *change);
    int64_t revision;   /* of what is stored; in done, of what was written */
    int64_t before;     /* in done: of what was stored */
    struct slice value; /* in done: the object's bytes; empty: there was none */

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
/* Decides over what is there now, after a create found its key taken. */
void kube_change_again(struct kube_change *change);
/*
 * What a change creates that found nothing: an apply, or a PUT of a kind that lets it (create.c).
 * The object lies in the arena of the attempt and is worked on there. If it is there meanwhile the
 * change is begun again.
 */
void kube_create_for(struct kube_change *change, struct json_node *object);
/* To use it for another object, and at the end. */
void kube_change_fini(struct kube_change *change);
/* The on_free of its call. */
void kube_change_free(struct kube_call *call);

/* The rules of metadata for a call; arena is where what they make lies. */
struct kube_meta kube_call_meta(struct kube_call *call, struct arena *arena);

/* An object as it is stored; as large as etcd lets a request be, so that it can move there.
 * ST_REQUEST_TOO_LARGE, ST_NOMEM. */
enum { KUBE_OBJECT_BYTES_MAX = 1536 * 1024 };
MUST_CHECK
enum status kube_object_encode(const struct json_node *object, struct buf *to);

/* Answers with the object of `done`. */
void kube_change_respond(struct kube_change *change, unsigned code);

#endif
