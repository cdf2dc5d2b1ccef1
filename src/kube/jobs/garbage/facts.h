/*
 * What the garbage collector needs to know of a stored object: its identity, its owners, and
 * whether its deletion waits for its dependents. Read from the JSON without building a tree; the
 * slices point into it, or into the arena if they had escapes.
 */
#ifndef VIGIL_KUBE_JOBS_GARBAGE_FACTS_H
#define VIGIL_KUBE_JOBS_GARBAGE_FACTS_H

#include "base/memory/arena.h"
#include "base/slice.h"

/* An entry of metadata.ownerReferences. */
struct garbage_owner {
    struct slice uid, api_version, kind, name;
    struct slice json; /* the whole entry */
    bool blocks;       /* blockOwnerDeletion */
};

struct garbage_facts {
    struct slice api_version, kind, namespace, name;
    struct slice uid;      /* never empty */
    struct slice uid_json; /* with its quotes */
    struct garbage_owner *owners;
    size_t owner_count;
    struct slice finalizers; /* the JSON array; empty if there is none */
    bool deleting;           /* it has a deletionTimestamp */
    bool orphans;            /* the finalizer "orphan" */
    bool foreground;         /* the finalizer "foregroundDeletion" */
};

/* ST_MALFORMED: it is not an object with a uid, so that it takes no part in garbage collection. */
MUST_CHECK
enum status garbage_facts_read(struct arena *arena, struct slice json,
                               struct garbage_facts *ret_facts);

#endif
