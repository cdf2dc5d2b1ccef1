/*
 * The current objects of one kind, for decisions that need many of them at once: roles and bindings
 * for authorization; quotas, limit ranges, classes and service accounts for admission. They are
 * loaded at the first use and kept current by a watch, like an informer in kube-apiserver: what a
 * lookup has may be older than the store by one turn of the loop.
 *
 *     EMPTY ── first use ──► LOADING ──► CURRENT ──┐ events of the watch
 *       ▲                      │  ▲          │  ▲──┘
 *       └── it cannot be read ─┘  └──────────┘ the watch has ended, or there is room again
 *
 * Each version of an object is parsed once, and `read` keeps what its users need of it. The memory
 * is bounded: an object that is too long, or for which there is no room, is left out, and the log
 * says so. What is left out must therefore not grant anything to anybody.
 *
 * One per API and kind, on its thread.
 */
#ifndef VIGIL_KUBE_LOOKUP_LOOKUP_H
#define VIGIL_KUBE_LOOKUP_LOOKUP_H

#include "base/container/list.h"
#include "base/memory/arena.h"
#include "codec/json/tree.h"

struct engine_shard;
struct kube_lookup;
struct loop;

enum {
    KUBE_LOOKUP_OBJECT_BYTES_MAX = 256 << 10, /* of one object, as it is stored */
    KUBE_LOOKUP_BYTES_MAX = 32 << 20,         /* default: all objects, as they are kept */
    KUBE_LOOKUP_OBJECTS_MAX = 50000,          /* default */
};

/* Valid until the next turn of the loop, unless it is held. */
struct kube_lookup_object {
    struct slice namespace, name; /* the namespace of a cluster-scoped object is empty */
    int64_t revision;
    const void *data; /* as `read` has returned it, or the tree */
};

struct kube_lookup_options {
    struct engine_shard *shard;
    struct loop *loop;
    size_t *under_way;  /* of the API: incremented while objects are read */
    const char *prefix; /* borrowed: "/registry/roles/" */
    bool namespaced;
    /* Makes what is kept of an object, in the arena, which is freed with this version of the
     * object. The tree and its text are gone afterwards. NULL: there is no memory, or the object
     * is not usable; it is left out. Without the function, the whole tree is kept. */
    const void *(*read)(struct arena *arena, const struct json_node *object);
    size_t bytes_max, objects_max; /* 0: the defaults */
    /* For an index of the objects; both or none. They are called with each object that is kept, and
     * again before it is freed or replaced. added returns why the object is left out, or NULL. */
    const char *(*added)(void *index, const struct kube_lookup_object *object);
    void (*removed)(void *index, const struct kube_lookup_object *object);
    void *index;
};

/* Reads nothing yet. The options are copied. */
struct kube_lookup *kube_lookup_new(const struct kube_lookup_options *options);
/* Must be stopped, and its last reading must have ended. Accepts NULL. */
void kube_lookup_free(struct kube_lookup *lookup);
/* Stops watching. Waits end with ST_STOPPED when the reading under way ends. Accepts NULL. */
void kube_lookup_stop(struct kube_lookup *lookup);

/* Whether the objects are known; otherwise the caller waits first. */
bool kube_lookup_ready(const struct kube_lookup *lookup);

/* Embedded by its caller until go. */
struct kube_lookup_wait {
    struct list in_lookup;
    void (*go)(struct kube_lookup_wait *wait);
    enum status status; /* in go; not ST_OK: the objects could not be read */
};

/* Calls go when the lookup is ready or has failed, perhaps at once. */
void kube_lookup_wait(struct kube_lookup *lookup, struct kube_lookup_wait *wait);

/* NULL: there is none. The lookup must be ready. */
const struct kube_lookup_object *kube_lookup_get(const struct kube_lookup *lookup,
                                                 struct slice namespace, struct slice name);
/* Calls fn for each object in the order of namespaces and names until it returns false. An empty
 * namespace means all. The lookup must be ready, and fn must not change it. */
void kube_lookup_each(const struct kube_lookup *lookup, struct slice namespace,
                      bool (*fn)(void *ctx, const struct kube_lookup_object *object), void *ctx);

/* Keeps this version, also after it was replaced or the lookup was freed, until it is released as
 * often. On the lookup's thread; meanwhile other threads may read it. */
void kube_lookup_hold(const struct kube_lookup_object *object);
void kube_lookup_release(const struct kube_lookup_object *object); /* accepts NULL */

/* Objects that the limits have left out. */
size_t kube_lookup_left_out(const struct kube_lookup *lookup);
size_t kube_lookup_count(const struct kube_lookup *lookup);

/* Every change up to this revision is known, and perhaps some later ones. Must be ready. */
int64_t kube_lookup_revision(const struct kube_lookup *lookup);

/* For tests: the objects are in order, and the counts are right. */
void kube_lookup_check(const struct kube_lookup *lookup);

#endif
