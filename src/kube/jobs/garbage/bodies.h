/* The bodies of the requests that a worker makes. All of them have the uid and resourceVersion that
 * the object must still have. ST_NOMEM. */
#ifndef VIGIL_KUBE_JOBS_GARBAGE_BODIES_H
#define VIGIL_KUBE_JOBS_GARBAGE_BODIES_H

#include "base/buf.h"
#include "kube/jobs/garbage/facts.h"

/* What an owner means for the object that refers to it. */
enum garbage_class {
    GARBAGE_SOLID,   /* it exists */
    GARBAGE_GONE,    /* it does not */
    GARBAGE_WAITS,   /* its deletion waits for the object's (foregroundDeletion) */
    GARBAGE_RELEASES /* it is being deleted, and its dependents are to stay (orphan) */
};

/* DeleteOptions. */
MUST_CHECK
enum status garbage_write_delete(const struct garbage_facts *facts, int64_t revision,
                                 const char *policy, struct buf *to);
/* A merge patch that removes the references to owners of these classes (bits of enum
 * garbage_class). */
MUST_CHECK
enum status garbage_write_refs(const struct garbage_facts *facts, int64_t revision,
                               const uint8_t *classes, unsigned removed, struct buf *to);
/* A merge patch after which no reference blocks the deletion of its owner. */
MUST_CHECK
enum status garbage_write_unblocked(const struct garbage_facts *facts, int64_t revision,
                                    struct buf *to);
/* A merge patch that removes one finalizer. */
MUST_CHECK
enum status garbage_write_finalizers(const struct garbage_facts *facts, int64_t revision,
                                     struct slice removed, struct buf *to);

#endif
