/*
 * What the server looks after by itself: the namespaces that Kubernetes always has, and deletions
 * that were under way when it stopped.
 */
#ifndef VIGIL_KUBE_API_KEEPER_H
#define VIGIL_KUBE_API_KEEPER_H

#include "base/container/list.h"
#include "base/slice.h"
#include "io/loop.h"

struct kube_face;

/* One of those; it counts as there even when it could not be made. */
bool kube_is_default_namespace(struct slice name);

/*
 * The default namespaces of a face. They are made, where they are missing, for the first request
 * that asks for a resource, and it waits for them: a store that only clients of etcd use has none.
 */
struct kube_namespaces {
    struct list waiting; /* struct kube_namespaces_wait */
    bool making;
    bool made;        /* they are there */
    int64_t again_ns; /* they could not be made: not tried again before this */
};

/* Embedded by its caller until go. */
struct kube_namespaces_wait {
    struct list in_namespaces;
    void (*go)(struct kube_namespaces_wait *wait);
};

void kube_namespaces_init(struct kube_namespaces *namespaces);
/* Nothing has to be waited for: they are there, or cannot be made now. */
bool kube_namespaces_ready(const struct kube_face *face);
/* Makes what is missing, then go: perhaps at once. */
void kube_namespaces_make(struct kube_face *face, struct kube_namespaces_wait *wait);

/* When a face begins to look after what is left of its last run. */
struct kube_keep {
    struct deferred next; /* with the first turn */
    struct timer again;   /* something could not be read or written */
};

/* Goes on emptying the namespaces that are marked for deletion. Once, on the thread of the face. */
void kube_keeper_start(struct kube_face *face);

/* Starts both of these again after a while: what should be looked after could not be. */
void kube_keep_again(struct kube_face *face);

/*
 * Looks after the definitions that are not as they should be: those marked for deletion go on being
 * emptied, and those whose names were taken, or that nobody has settled, are settled again. At the
 * start, and when a definition is gone.
 */
void kube_definitions_keep(struct kube_face *face);

#endif
