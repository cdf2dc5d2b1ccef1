/*
 * The rules of metadata: what a write may say of an object's name and life, and what the server
 * says instead. They work on a tree, before it is stored; who breaks a rule is told so in the words
 * of Kubernetes.
 *
 *     body ─► kube_meta_check ─► kube_meta_create / kube_meta_update ─► kube_meta_order ─► stored
 *
 * Never stored: resourceVersion (it is the revision of the key) and selfLink.
 */
#ifndef VIGIL_KUBE_OBJECT_META_H
#define VIGIL_KUBE_OBJECT_META_H

#include "base/random.h"
#include "codec/json/tree.h"
#include "kube/resource/kind.h"
#include "kube/status/status.h"

/* What a write goes by; borrowed. Each function below returns false with *status filled. */
struct kube_meta {
    struct arena *arena; /* what is put into the tree lies here */
    const struct kube_kind *kind;
    struct slice namespace; /* of the path; empty for a cluster-scoped kind */
    struct slice name;      /* of the path; empty for a create */
    int64_t now_s;          /* since 1970 */
    struct random *random;
    struct kube_status *status;
    bool patched;   /* the object was made by a patch: another uid in it is no precondition */
    bool of_status; /* only its status is written, which counts no generation */
    bool dry_run;   /* nothing is written */
};

/* Of all annotations together, as in Kubernetes; and of each list in metadata. */
enum { KUBE_ANNOTATIONS_BYTES_MAX = 256 * 1024, KUBE_META_ITEMS_MAX = 1000 };

/* Kind and apiVersion are those of the kind, or put in; metadata has the types it should have. */
MUST_CHECK
bool kube_meta_check(const struct kube_meta *meta, struct json_node *object);

/* The name is that of the path. */
MUST_CHECK
bool kube_meta_named(const struct kube_meta *meta, struct json_node *object);

/* No uid is given, or it is a conflict: the object is not there. `key` is for its text. */
MUST_CHECK
bool kube_meta_absent(const struct kube_meta *meta, const struct json_node *object,
                      struct slice key);

/* Name (made up after generateName), namespace, uid, creationTimestamp, generation 1. A version is
 * refused, unless nothing is written. */
MUST_CHECK
bool kube_meta_create(const struct kube_meta *meta, struct json_node *object);
/* A new name after generateName, because the one that was made up is taken. False also without
 * generateName, and then *status is left alone. */
MUST_CHECK
bool kube_meta_rename(const struct kube_meta *meta, struct json_node *object);

/*
 * What `object` may not change comes from `old`; generation is counted. `revision` is that of old:
 * a resourceVersion or uid in object that is not old's is a conflict. `key` is for its text.
 */
MUST_CHECK
bool kube_meta_update(const struct kube_meta *meta, const struct json_node *old,
                      struct json_node *object, int64_t revision, struct slice key);

/* Preconditions as a delete has them: {"uid":…,"resourceVersion":…}; may be NULL. */
MUST_CHECK
bool kube_meta_preconditions(const struct kube_meta *meta, const struct json_node *old,
                             const struct json_node *preconditions, int64_t revision);

/* deletionTimestamp and deletionGracePeriodSeconds, and a generation of its own. */
MUST_CHECK
bool kube_meta_set_deleting(const struct kube_meta *meta, struct json_node *object,
                            int64_t grace_s);

/* Kind, apiVersion and metadata first, name and namespace first in it; what is not stored goes. */
MUST_CHECK
bool kube_meta_order(const struct kube_meta *meta, struct json_node *object);

/* -- Small things that many ask -- */

bool kube_meta_is_deleting(const struct json_node *object);
/* metadata.finalizers has some, or this one. */
bool kube_meta_has_finalizers(const struct json_node *object);
bool kube_meta_has_finalizer(const struct json_node *object, const char *finalizer);

/* Sets a text or number; false: no memory, and *status says so. */
MUST_CHECK
bool kube_meta_set_text(const struct kube_meta *meta, struct json_node *object, const char *key,
                        struct slice text);
MUST_CHECK
bool kube_meta_set_int(const struct kube_meta *meta, struct json_node *object, const char *key,
                       int64_t value);
/* The object under that key, made if there is none. */
MUST_CHECK
bool kube_meta_object(const struct kube_meta *meta, struct json_node *parent, const char *key,
                      struct json_node **ret_object);
/* The same for an array. */
MUST_CHECK
bool kube_meta_array(const struct kube_meta *meta, struct json_node *parent, const char *key,
                     struct json_node **ret_array);

/* "array", as Go's decoder names it. */
const char *kube_json_type(const struct json_node *node);

enum { KUBE_TIME_BYTES = 32 };
/* "2026-11-15T06:15:00Z" */
void kube_time_text(int64_t seconds, char to[KUBE_TIME_BYTES]);

/* For meta.c: labels, annotations, names, finalizers and owners; in meta_check.c. */
MUST_CHECK
bool kube_meta_validate(const struct kube_meta *meta, const struct json_node *object,
                        const struct json_node *old);

/* Whether it is a number of 64 bits other than 0; any other version is as if none were given, as in
 * Kubernetes. */
bool kube_meta_is_revision(struct slice text);

/* Appends `unknown field "metadata.a"` for each member that no metadata has, so many at most. */
enum { KUBE_META_UNKNOWN_MAX = 64 };
MUST_CHECK
enum status kube_meta_append_unknown(const struct json_node *object, struct buf *to);

#endif
