/*
 * The rules of metadata: checks what a write says about an object's name and life cycle, and fills
 * in what the server decides. They work on the tree of an object before it is stored; errors have
 * the same text as in Kubernetes.
 *
 *     body ─► kube_meta_check ─► kube_meta_create / kube_meta_update ─► kube_meta_order ─► stored
 *
 * resourceVersion (it is the revision of the key) and selfLink are never stored.
 */
#ifndef VIGIL_KUBE_TYPES_OBJECT_META_H
#define VIGIL_KUBE_TYPES_OBJECT_META_H

#include "base/random.h"
#include "codec/json/tree.h"
#include "codec/kube_time.h"
#include "kube/types/kind.h"
#include "kube/types/status.h"

/*
 * The context of one write; everything is borrowed. Each function below that fails returns false
 * with *status filled.
 */
struct kube_meta {
    struct arena *arena; /* new nodes of the tree are allocated here */
    const struct kube_kind *kind;
    struct slice namespace; /* from the path; empty for a cluster-scoped kind */
    struct slice name;      /* from the path; empty for a create */
    int64_t now_s;          /* seconds since 1970 */
    struct random *random;
    struct kube_status *status;
    bool patched;   /* the result of a patch, in which another uid is not a precondition */
    bool of_status; /* a write to /status, which does not increment generation */
    bool dry_run;   /* nothing will be stored */
    /* Errors in metadata stay in status->causes, and the caller fails with them and with those that
     * it finds itself. */
    bool goes_on;
};

/*
 * Limits: the bytes of all annotations together, as in Kubernetes; the items of each list in
 * metadata.
 */
enum { KUBE_ANNOTATIONS_BYTES_MAX = 256 * 1024, KUBE_META_ITEMS_MAX = 1000 };

/*
 * Checks that kind and apiVersion are those of the kind, or fills them in, and checks the types in
 * metadata.
 */
MUST_CHECK
bool kube_meta_check(const struct kube_meta *meta, struct json_node *object);

/* Fails unless the name is that of the path. */
MUST_CHECK
bool kube_meta_named(const struct kube_meta *meta, struct json_node *object);

/*
 * For an object that does not exist: fails with a conflict if a uid is given. `key` appears in the
 * message.
 */
MUST_CHECK
bool kube_meta_absent(const struct kube_meta *meta, const struct json_node *object,
                      struct slice key);

/*
 * Before the admission of an object that is created: sets its namespace, and removes from a POST
 * what only the server sets.
 */
MUST_CHECK
bool kube_meta_begin(const struct kube_meta *meta, struct json_node *object);
/*
 * Sets name (generated from generateName if empty), namespace, uid, creationTimestamp and
 * generation 1. A resourceVersion is an error, except in a dry run.
 */
MUST_CHECK
bool kube_meta_create(const struct kube_meta *meta, struct json_node *object);
/*
 * Generates another name because the previous one exists already. Also returns false if there is no
 * generateName; *status is unchanged then.
 */
MUST_CHECK
bool kube_meta_rename(const struct kube_meta *meta, struct json_node *object);

/*
 * Copies immutable fields from `old` and increments generation if needed. `revision` is that of
 * `old`: a different resourceVersion or uid in `object` is a conflict. `key` appears in its
 * message.
 */
MUST_CHECK
bool kube_meta_update(const struct kube_meta *meta, const struct json_node *old,
                      struct json_node *object, int64_t revision, struct slice key);

/* Checks the preconditions of a delete, {"uid":…,"resourceVersion":…}; may be NULL. */
MUST_CHECK
bool kube_meta_preconditions(const struct kube_meta *meta, const struct json_node *old,
                             const struct json_node *preconditions, int64_t revision);

/* Sets deletionTimestamp and deletionGracePeriodSeconds, and increments generation. */
MUST_CHECK
bool kube_meta_set_deleting(const struct kube_meta *meta, struct json_node *object,
                            int64_t grace_s);

/*
 * Puts kind, apiVersion and metadata first, and name and namespace first within metadata; removes
 * members of metadata that are not stored.
 */
MUST_CHECK
bool kube_meta_order(const struct kube_meta *meta, struct json_node *object);

/* -- Helpers for other modules -- */

bool kube_meta_is_deleting(const struct json_node *object);
/* Whether metadata.finalizers has any entry, or this one. */
bool kube_meta_has_finalizers(const struct json_node *object);
bool kube_meta_has_finalizer(const struct json_node *object, const char *finalizer);

enum { KUBE_UID_BYTES = 37 }; /* a new uid: a UUID of version 4 */
void kube_uid_make(struct random *random, char text[KUBE_UID_BYTES]);

/* Set a text or number. False: no memory, with *status filled. */
MUST_CHECK
bool kube_meta_set_text(const struct kube_meta *meta, struct json_node *object, const char *key,
                        struct slice text);
MUST_CHECK
bool kube_meta_set_int(const struct kube_meta *meta, struct json_node *object, const char *key,
                       int64_t value);
/* Returns the object under that key, and creates it if it is missing. */
MUST_CHECK
bool kube_meta_object(const struct kube_meta *meta, struct json_node *parent, const char *key,
                      struct json_node **ret_object);
/* Does the same for an array. */
MUST_CHECK
bool kube_meta_array(const struct kube_meta *meta, struct json_node *parent, const char *key,
                     struct json_node **ret_array);

/*
 * Whether the text is a nonzero 64-bit number. As in Kubernetes, any other resourceVersion of a new
 * object is ignored.
 */
bool kube_meta_is_revision(struct slice text);

/*
 * Appends `unknown field "metadata.a"` for each member that metadata does not define, up to this
 * many.
 */
enum { KUBE_META_UNKNOWN_MAX = 64 };
MUST_CHECK
enum status kube_meta_append_unknown(const struct json_node *object, struct buf *to);

#endif
