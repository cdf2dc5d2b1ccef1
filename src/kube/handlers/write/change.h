/*
 * One write of one object: the state that its steps share. The order of the steps is in write.c.
 *
 * In the arena of its call, one at a time; an error answers the call. What is decided depends only
 * on the request, which is const, and on the stored object. The results are in an arena of the
 * attempt, so that many attempts take no more memory than one; the status and warnings of an
 * attempt are discarded with it.
 *
 * Changes of one object are made one after the other (kube/call/write_queue.h), so that an attempt
 * fails only because of a write by another I/O thread or by a client of the etcd API. A change that
 * has waited for a webhook has left its place, and competes with all others.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_CHANGE_H
#define VIGIL_KUBE_HANDLERS_WRITE_CHANGE_H

#include "kube/call/call.h"
#include "kube/handlers/write/step.h"
#include "kube/policy/admission/plugins/plugin.h"
#include "kube/types/object/meta.h"

struct kube_policy_object_kind;

enum kube_patch_type { KUBE_PATCH_JSON, KUBE_PATCH_MERGE, KUBE_PATCH_STRATEGIC, KUBE_PATCH_APPLY };

/* What plugins add to the transaction of an object; zeroed: nothing. */
struct kube_charges {
    const struct kube_companion *items;
    size_t count;
};

enum kube_decision {
    KUBE_DECIDE_FAIL,   /* call->status says why */
    KUBE_DECIDE_KEEP,   /* nothing is written */
    KUBE_DECIDE_PUT,    /* the object returned */
    KUBE_DECIDE_DELETE, /* watches get the object returned; NULL: the stored one */
};

/* Each failed attempt means that another write of the object succeeded. Even with 64 I/O threads,
 * and changes that have waited for webhooks, none loses a thousand times in a row. */
enum { KUBE_CHANGE_TRIES_MAX = 1000 };

struct kube_change {
    /* Set by the caller. */
    struct kube_call *call;
    struct slice namespace;
    struct slice name; /* name of the object; that of a POST is set when its object has one */
    bool dry_run;
    /* A change that is neither a PUT nor a PATCH has a function. The stored object is change->old,
     * NULL if it does not exist. Called for each attempt. */
    enum kube_decision (*decide)(struct kube_change *change, const struct json_node *stored,
                                 struct json_node **ret_object);
    void (*done)(struct kube_change *change);
    void (*on_free)(struct kube_change *change); /* called for the caller; may be NULL */
    /* What admission policies decide about such a change: KUBE_MATCH_DELETE with its options, or
     * KUBE_MATCH_CREATE of what was posted to the object; 0: nothing. */
    unsigned acts;
    const struct json_node *delete_options, *posted;
    const struct kube_policy_object_kind *posted_kind;

    /* Where the write is in its list of steps (kube/handlers/write/write.c). */
    const struct kube_step *steps, *step;
    unsigned concerns; /* which of the steps it has */
    bool goes_on;      /* errors in metadata are reported with those that validation finds */

    /* The body of a PUT or PATCH, the same for each attempt. */
    const struct json_node *body;
    bool patches;
    enum kube_patch_type patch_type;
    struct slice repeats; /* duplicate keys of a patch */

    /* What is stored. */
    struct slice key;
    int64_t revision;    /* revision of the stored object, and after the write of the written one */
    int64_t before;      /* revision of the object that was stored before */
    struct slice stored; /* its bytes */
    struct slice served; /* the same as a webhook has converted it; empty: it has not */
    const struct json_node *old; /* and its tree; NULL: it does not exist */

    /* What is to be stored instead. */
    enum kube_admission_operation operation;
    struct arena *arena;      /* memory of the attempt; that of the call for a POST */
    struct kube_meta meta;    /* in this arena */
    struct json_node *wanted; /* what the client wants; only part of it may be taken */
    struct json_node *object; /* what is written */
    enum kube_decision decision;
    uint32_t plugins;                       /* admission plugins that concern it */
    struct kube_gathered *gathered;         /* kube/handlers/write/admit.h; NULL: nothing so far */
    struct kube_reservations *reservations; /* kube/handlers/write/reserve.h; NULL: none */
    struct kube_charges charges;            /* quotas: kube/handlers/write/charge.h */
    struct kube_policy_facts *policies; /* kube/handlers/write/policies.h; NULL: nothing so far */
    struct kube_mutating *mutating;     /* a new object, between two passes; NULL: no pass so far */
    /* Memory of the object that mutating webhooks have changed: of this one, of the next, and of
     * the one that the plugins of the second pass have seen. */
    struct arena patched[3];
    unsigned patched_at, patched_kept;
    struct kube_survey *survey;             /* kube/handlers/write/survey.c; NULL: none */
    struct kube_managed_versions *versions; /* kube/handlers/write/managed_versions.h */
    struct kube_node_facts *node_facts; /* kube/handlers/write/node_facts.h; NULL: nothing so far */
    struct kube_guard *guard; /* kube/handlers/write/guard.c; NULL: nothing was read so far */
    struct slice value;       /* the bytes of the object; empty: it did not exist */
    void (*follow)(struct kube_change *change); /* set by decide: called when it is written */

    /* A new object. */
    struct slice namespace_key;
    int64_t namespace_revision; /* a condition of the write */
    struct slice version;       /* given by the client; the answer of a dry run repeats it */
    bool of_update;             /* a PUT or PATCH has found no object */
    bool prepared;              /* only what depends on the store is decided again */
    bool named;                 /* by the client: no other name is generated */
    bool deleting;              /* the existing object of that name is being deleted */
    unsigned renamed, lost;     /* attempts with another name, and because of other writes */
    /* Private. */
    struct arena scratch;
    struct buf encoded, key_bytes;
    struct pb_range_request request;
    unsigned tries, code;
    size_t warned; /* length of call->warnings before the first attempt */
};

/* -- Life -- */

/* Before it is used for another object, and at the end. */
void kube_change_fini(struct kube_change *change);
/* The object that mutating webhooks have changed is not needed any more. */
void kube_change_drop_patched(struct kube_change *change);
/* Whether an allocation for the object has failed. */
bool kube_change_ran_out(const struct kube_change *change);
/* The on_free of its call. */
void kube_change_free(struct kube_call *call);

/* -- For steps -- */

/* The context for the rules of metadata, whose results are in the arena. */
struct kube_meta kube_call_meta(struct kube_call *call, struct arena *arena);

/* Encodes an object for the store; the limit is that of etcd, so that the data can move there.
 * ST_REQUEST_TOO_LARGE, ST_NOMEM. */
enum { KUBE_OBJECT_BYTES_MAX = 1536 * 1024 };
MUST_CHECK
enum status kube_object_encode(const struct json_node *object, struct buf *to);

/* Encodes the object. One that is too large has no managedFields: these are of less importance. */
MUST_CHECK
bool kube_change_encode(struct kube_change *change);

/* Answers with the object. */
void kube_change_respond(struct kube_change *change, unsigned code);

#endif
