/*
 * A work queue of keys for controllers. Event handlers add the keys of objects that have changed,
 * and workers take them:
 *
 *     vigil_bytes key;
 *     while (vigil_work_queue_take(queue, -1, &key) == VIGIL_OK) {
 *         if (reconcile(key))
 *             vigil_work_queue_forget(queue, key);
 *         else
 *             vigil_work_queue_add_later(queue, key);
 *         vigil_work_queue_done(queue, key);
 *     }
 *
 * A key that is added several times before it is taken is taken once. A key is never given to two
 * workers at the same time: if it is added while a worker has it, it is queued again when the
 * worker is done.
 *
 *              add                  take
 *     absent ───────► queued ─────────────────► processing ──┐
 *        ▲               ▲                        │   ▲      │ add
 *        │               └──── done, if added ────┤   └──────┘
 *        └──────────────────────── done ──────────┘
 *
 * The order, the delays and their defaults are those of client-go's work queue. Keys are copied.
 *
 * Threads: Every function may be called on any thread.
 *
 * Example: examples/kube_controller.c
 */
#ifndef VIGIL_KUBE_WORK_QUEUE_H
#define VIGIL_KUBE_WORK_QUEUE_H

#include <vigil/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_work_queue vigil_work_queue;

/* How long a key that is added with vigil_work_queue_add_later waits: the longer of two delays. Set
 * all fields with vigil_work_queue_options_init. */
typedef struct vigil_work_queue_options {
    size_t size;
    /* For each key: the first delay, doubled each time until the key is forgotten. */
    int64_t retry_min_ms; /* default 5 */
    int64_t retry_max_ms; /* default 1000000 */
    /* For all keys together: this many without a delay, and then so many per second. */
    uint32_t burst;      /* default 100 */
    uint32_t per_second; /* default 10; 0: no limit */
} vigil_work_queue_options;

/* Sets the size and the defaults. */
VIGIL_API void vigil_work_queue_options_init(vigil_work_queue_options *options);

/* Creates a queue. options may be NULL for the defaults. Returns a vigil_code: VIGIL_ERROR_ARGUMENT
 * if the options were not initialised, or a delay is negative or the longest one shorter than the
 * first; VIGIL_ERROR_MEMORY; VIGIL_ERROR_SYSTEM: no descriptor is left. */
VIGIL_API int vigil_work_queue_new(const vigil_work_queue_options *options,
                                   vigil_work_queue **ret_queue);
/* Frees the queue. No other thread may use it any more. Accepts NULL. */
VIGIL_API void vigil_work_queue_free(vigil_work_queue *queue);

/* Adds a key, unless it is queued already. VIGIL_ERROR_CANCELED: the queue is shut down.
 * VIGIL_ERROR_MEMORY. */
VIGIL_API int vigil_work_queue_add(vigil_work_queue *queue, vigil_bytes key);
/* Adds it after a delay, or at once if that is not positive. If it waits already, the earlier time
 * counts. */
VIGIL_API int vigil_work_queue_add_after(vigil_work_queue *queue, vigil_bytes key,
                                         int64_t delay_ms);
/* Adds it after the delay that the options describe, for another attempt. */
VIGIL_API int vigil_work_queue_add_later(vigil_work_queue *queue, vigil_bytes key);
/* The key was processed successfully: its next delay is the shortest one again. */
VIGIL_API void vigil_work_queue_forget(vigil_work_queue *queue, vigil_bytes key);
/* How often it was added for another attempt since it was forgotten. */
VIGIL_API unsigned vigil_work_queue_attempts(vigil_work_queue *queue, vigil_bytes key);

/*
 * Takes the next key, and waits for it at most timeout_ms: 0 does not wait, -1 waits without a
 * limit. The key is valid until vigil_work_queue_done. VIGIL_ERROR_TIMEOUT: there is none.
 * VIGIL_ERROR_CANCELED: the queue is shut down and empty.
 */
VIGIL_API int vigil_work_queue_take(vigil_work_queue *queue, int timeout_ms, vigil_bytes *ret_key);
/* The worker is done with a key that it has taken. */
VIGIL_API void vigil_work_queue_done(vigil_work_queue *queue, vigil_bytes key);

/* How many keys are queued, without those that wait for their time. */
VIGIL_API size_t vigil_work_queue_length(vigil_work_queue *queue);

/* For a program with a loop of its own: readable while a key can be taken, and after the shutdown.
 * Only wait for it, at most vigil_work_queue_timeout_ms. */
VIGIL_API int vigil_work_queue_fd(const vigil_work_queue *queue);
/* The time until a key that waits is queued; -1: none waits. Keys are queued when this or
 * vigil_work_queue_take is called. */
VIGIL_API int vigil_work_queue_timeout_ms(vigil_work_queue *queue);

/* No key can be added any more, and those that wait are dropped. Keys that are queued can still be
 * taken; threads that wait for a key return. */
VIGIL_API void vigil_work_queue_shutdown(vigil_work_queue *queue);
/* The same, and waits until every key that was queued has been taken and is done. */
VIGIL_API void vigil_work_queue_drain(vigil_work_queue *queue);

#ifdef __cplusplus
}
#endif

#endif
