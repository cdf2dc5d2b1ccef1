/*
 * What all calls of a client have in common: the program starts a call once, waits for it, cancels
 * or frees it, on any thread; the loop does the work, and completes it once.
 *
 *     any thread:   operation_claim, operation_post ──► mailbox ──► ops->begin
 *     the loop:     … ──► operation_complete ──► done
 *
 * One reference is the program's; one is the loop's from the start until the completion, and one
 * belongs to a posted cancellation. Embedded in the call, and freed with it.
 */
#ifndef VIGIL_CLIENT_DRIVER_OPERATION_H
#define VIGIL_CLIENT_DRIVER_OPERATION_H

#include "client/driver/driver.h"

#include <vigil/types.h>

struct operation;

struct operation_ops {
    /* On the loop's thread: begins the work, or completes with an error. */
    void (*begin)(struct operation *operation);
    /* After begin or instead of it: completes with this error at once. No effect after the
     * completion. */
    void (*stop)(struct operation *operation, enum vigil_code code, const char *text);
    /* It has completed; the driver's lock is held. May be NULL. */
    void (*publish)(struct operation *operation);
    /* After the last reference. The driver's reference is released afterwards. */
    void (*free)(struct operation *operation);
};

struct operation {
    const struct operation_ops *ops;
    struct driver *driver; /* a reference */
    _Atomic unsigned refs;
    _Atomic bool started, canceled; /* by the program */
    _Atomic bool would_block;       /* operation_run was called inside a callback */
    _Atomic bool refused;           /* it was started after the client had been freed */
    _Atomic bool completed;         /* the result is final; set with the lock, read without */
    struct driver_command start, cancel;
    struct driver_object object;

    /* The loop's thread, from the start on. */
    bool begun;
    struct driver_member member;
    vigil_error error; /* error of the result; any thread once it is completed */

    /* Set between operation_claim and operation_post. */
    void (*done)(struct operation *operation); /* the callback; may be NULL */
};

/* A zeroed operation with the program's reference. Takes a reference to the driver. */
void operation_init(struct operation *operation, struct driver *driver,
                    const struct operation_ops *ops);
void operation_ref(struct operation *operation);
void operation_unref(struct operation *operation);

/* What has been written about the result can be read if this is true. */
static inline bool operation_has_completed(const struct operation *operation)
{
    return atomic_load_explicit(&operation->completed, memory_order_acquire);
}

/* -- For the program; all but operation_post accept NULL, as if there had been no memory -- */

/* VIGIL_OK once, and then operation_post follows; afterwards VIGIL_ERROR_ARGUMENT.
 * VIGIL_ERROR_SYSTEM: the client belongs to another process. */
int operation_claim(struct operation *operation);
/* VIGIL_ERROR_CANCELED: the client is freed, so it has not been started. */
int operation_post(struct operation *operation);
/* Starts it without a callback and waits. VIGIL_ERROR_WOULD_BLOCK: not inside a callback. */
int operation_run(struct operation *operation);
/* The same after operation_claim, outside of callbacks. */
int operation_run_claimed(struct operation *operation);
/* The claimed operation was executed by this thread instead, and the error is set. */
void operation_complete_here(struct operation *operation);
void operation_cancel(struct operation *operation);
/* Releases the program's reference; no callback is made any more. */
void operation_free(struct operation *operation);
const vigil_error *operation_error(const struct operation *operation);

/* -- For the loop -- */

/* The error is set. Removes it from the driver, makes the callback, and releases the loop's
 * reference. */
void operation_complete(struct operation *operation);

#endif
