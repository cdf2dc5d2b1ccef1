/*
 * A step of a write, and how the write continues after it. The lists of steps are in write.c, which
 * also says how a step is written that waits. struct kube_change is the state that steps share.
 */
#ifndef VIGIL_KUBE_HANDLERS_WRITE_STEP_H
#define VIGIL_KUBE_HANDLERS_WRITE_STEP_H

#include "base/status.h"

#include <stdbool.h>

struct kube_change;
struct kube_step; /* a row of a list */

/* How a step ends. A step that only decides returns a bool. */
enum kube_stepped {
    KUBE_STEP_FAIL = false, /* the answer is call->status */
    KUBE_STEP_NEXT = true,  /* the next step follows */
    KUBE_STEP_JUMP,         /* change->step is the one that follows */
    KUBE_STEP_LONG,         /* takes too long for this thread: begins again on the worker */
    KUBE_STEP_LEFT,         /* the write waits, or has been answered; it may be gone already */
};
typedef enum kube_stepped kube_step_fn(struct kube_change *change);

/* The row before it, for a jump to it. */
const struct kube_step *kube_step_before(const struct kube_step *step);

/* Starts a change that has `decide`: zeroed, with the first part set. */
void kube_change_start(struct kube_change *change);

/* Lets admission policies mutate what change->posted says, calls change->decide, which checks it,
 * and then lets policies decide whether it is allowed. change->done follows. */
void kube_change_admit(struct kube_change *change);

/* Where another attempt begins in the list of steps. */
enum kube_again {
    KUBE_AGAIN_READ,   /* with reading the object, or the namespace of a new one */
    KUBE_AGAIN_DECIDE, /* with what is decided from them, since they are known */
};

/* A step that has left continues: with the step after it, or with another attempt. The caller does
 * not use the change afterwards. */
void kube_change_next(struct kube_change *change);
void kube_change_again(struct kube_change *change, enum kube_again from);
/* What the step has waited for, with kube_call_hold, has ended: the step runs again and finds it.
 * An error is answered instead. */
void kube_change_resume(struct kube_change *change, enum status status);

/* The list goes back, because managed_versions.h wants an object in another version. */
enum kube_stepped kube_change_convert(struct kube_change *change);
/* A PUT that was taken for a heartbeat is an ordinary one. */
enum kube_stepped kube_change_as_put(struct kube_change *change);
/* The dry run of a create has found no object, and is answered. */
void kube_change_answer(struct kube_change *change);

/* A PUT or PATCH continues as a create, because there is no object: change->object is the new one,
 * in the arena of the attempt. */
enum kube_stepped kube_change_as_create(struct kube_change *change);
/* The list goes back to where mutating admission begins, because the object has changed. */
enum kube_stepped kube_change_mutate_again(struct kube_change *change);
/* The object exists meanwhile: the update begins another attempt. */
void kube_change_as_update(struct kube_change *change);

/* Asserts that the lists have the steps to which a write can go back; for tests. */
void kube_steps_check(void);

#endif
