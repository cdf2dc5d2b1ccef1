/*
 * A completion queue: instead of making callbacks, a client puts what has happened into a queue,
 * and the program takes it when it likes, on a thread that it likes.
 *
 *     vigil_queue_new(client, &queue);
 *     vigil_queue_call(queue, vigil_get(client, vigil_text("k")), NULL);
 *     vigil_queue_watch(queue, &watch_options, NULL, &watch);
 *     …
 *     const vigil_item *item;
 *     while (vigil_queue_take(queue, -1, &item) == VIGIL_OK) {
 *         if (item->what == VIGIL_ITEM_CALL)
 *             …                     item->call has completed
 *         else if (item->what == VIGIL_ITEM_WATCH)
 *             …                     item->batch has events
 *         vigil_item_release(item);
 *     }
 *
 * A program with a loop of its own waits until vigil_queue_fd is readable and then takes, with a
 * timeout of 0, until nothing is left. Callbacks and several queues may be used beside each other.
 *
 * What is not taken waits, and memory is bounded. Calls and leases need none for the queue. A watch
 * keeps up to buffer_bytes (vigil_watch_options) and one batch; then it is cancelled at the server,
 * and created again from its revision when the program has taken enough. Nothing is lost, and other
 * watches do not notice. If there is no memory for a batch, the watch ends with VIGIL_ERROR_MEMORY;
 * the completion of a call, the end of a watch and the loss of a lease are always delivered.
 *
 * The parts of a streamed call (vigil/call.h) are given to its function; only its completion is
 * taken from the queue.
 *
 * Order: the batches of one watch are taken in order, and the next one only after the previous one
 * was released, so that also several threads that take from one queue process each watch in order.
 * Different objects take turns; there is no order between them.
 *
 * Threads: every function may be called on any thread and inside every callback. Several threads
 * may take at the same time; each item is given to one of them.
 *
 * Freeing: calls, watches, leases, the queue and the client may be freed in any order, and every
 * item that was taken stays valid until it is released. Freeing an object removes what the queue
 * has of it. After vigil_client_shutdown or vigil_client_free the queue delivers the rest: every
 * call that was still running completes, every watch ends, and every lease is lost, with
 * VIGIL_ERROR_CANCELED; then vigil_queue_take returns VIGIL_ERROR_CANCELED.
 *
 * Example: examples/queue.c
 */
#ifndef VIGIL_QUEUE_H
#define VIGIL_QUEUE_H

#include <vigil/call.h>
#include <vigil/lease.h>
#include <vigil/watch.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vigil_queue vigil_queue;

/* The kinds of items. */
enum vigil_item_what {
    VIGIL_ITEM_CALL = 1,  /* a call has completed */
    VIGIL_ITEM_WATCH = 2, /* a watch has a batch: created, events, progress or its end */
    VIGIL_ITEM_LEASE = 3  /* a lease that was kept is lost */
};

/* What the program takes. Pointers that do not belong to its kind are NULL. All that it refers to
 * stays valid until vigil_item_release, even if the object is freed before. */
typedef struct vigil_item {
    int what;   /* enum vigil_item_what */
    void *user; /* user pointer of the call, the watch or the lease */
    vigil_call *call;
    vigil_watch *watch;
    const vigil_watch_batch *batch;
    vigil_lease *lease;
    const vigil_error *error; /* error of the call, or of a watch that has ended; why the
                                 lease is lost; otherwise NULL */
} vigil_item;

/* A queue for what is begun with this client. Returns a vigil_code. */
VIGIL_API int vigil_queue_new(vigil_client *client, vigil_queue **ret_queue);

/* What is in the queue is dropped, and nothing more is put into it: calls complete without notice,
 * and watches keep their buffer until they are freed. A thread that waits in vigil_queue_take
 * returns. Accepts NULL. */
VIGIL_API void vigil_queue_free(vigil_queue *queue);

/* Starts a call, as vigil_call_start does; its completion is taken from the queue. If the result is
 * not VIGIL_OK, the call has not been started. The call must be one of the queue's client. */
VIGIL_API int vigil_queue_call(vigil_queue *queue, vigil_call *call, void *user);

/* Begins a watch, as vigil_watch_new does; its batches are taken from the queue. Returns a
 * vigil_code. */
VIGIL_API int vigil_queue_watch(vigil_queue *queue, const vigil_watch_options *options, void *user,
                                vigil_watch **ret_watch);

/* Keeps a lease, as vigil_lease_keep does; its loss is taken from the queue. Returns a vigil_code.
 */
VIGIL_API int vigil_queue_lease(vigil_queue *queue, int64_t id, int64_t ttl, void *user,
                                vigil_lease **ret_lease);

/* An eventfd that is readable while there is something to take, and when nothing follows any more.
 * It stays the same. Only wait for it: the library reads and writes it. */
VIGIL_API int vigil_queue_fd(const vigil_queue *queue);

/*
 * Takes the next item, and waits for it at most timeout_ms: 0 does not wait, -1 waits without a
 * limit. The program must release the item. In the program's loop (own_thread is 0) a take that
 * waits does what vigil_client_process does, so it must be on the thread that may call that; with
 * a timeout of 0 it may be on any thread.
 *
 * - VIGIL_ERROR_TIMEOUT: there was nothing to take in this time.
 * - VIGIL_ERROR_CANCELED: the client was shut down or freed and nothing is left to take, unless the
 *   program releases a batch first and its watch has more; or the queue is being freed.
 * - VIGIL_ERROR_WOULD_BLOCK: a take that waits was called inside a callback.
 */
VIGIL_API int vigil_queue_take(vigil_queue *queue, int timeout_ms, const vigil_item **ret_item);

/* The program does not need the item any more. The call, watch or lease stays, and must be freed as
 * usual, before or after this. Accepts NULL. */
VIGIL_API void vigil_item_release(const vigil_item *item);

#ifdef __cplusplus
}
#endif

#endif
