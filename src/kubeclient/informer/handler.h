/*
 * The inside of a vigil_kube_handler: one consumer of the changes of an informer's copy, and the
 * place where its function is called.
 *
 *     own thread   takes from the queue and waits there
 *     callback     the loop takes some changes in each turn after they are published
 *     taken        the program takes from the queue
 *
 * Freeing it removes it from the copy, ends the queue, and waits for its function; then the
 * loop releases what it has of it (the timer of resyncs, a delivery that is due). A callback does
 * not wait for a function that itself waits for the client.
 */
#ifndef VIGIL_KUBECLIENT_INFORMER_HANDLER_H
#define VIGIL_KUBECLIENT_INFORMER_HANDLER_H

#include "client/driver/shared.h"
#include "kubeclient/informer/copy.h"

/* What callbacks get in one turn of the loop, so that others get their turn: this many changes, or
 * as many as take this time, which is examined now and then. A turn receives fewer. */
enum { HANDLER_CHANGES_MAX = 4096, HANDLER_CHANGES_TIMED = 64 };
#define HANDLER_TIME_MAX_NS (2 * NS_PER_MS)

struct vigil_kube_handler {
    struct driver_shared shared;
    struct driver_object object;
    struct copy *copy; /* a reference; it holds one to the driver */
    struct copy_consumer consumer;

    /* Constant. */
    int place;
    vigil_kube_handler_fn fn;
    void *user;
    int64_t resync_ns; /* 0: never */

    /* The loop's thread. */
    struct driver_member member;
    struct deferred deliver; /* delivers callbacks */
    struct timer resync;

    /* With an own thread. */
    pthread_t thread;             /* valid if it was started */
    _Atomic pthread_t running_as; /* written by the thread before it calls the function */
    _Atomic bool runs;            /* that is valid */
    bool has_thread;
    struct driver_thread waiting;

    /* The thread that takes. */
    struct queued_change taken;
};

#endif
