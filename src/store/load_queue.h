/*
 * Puts versions into an index that is being loaded. If there are many, a thread of its own does it,
 * while the caller reads and verifies the next ones:
 *
 *     load_queue_put ──► batches, a fixed number ──► thread ──► index_put
 *
 * Versions are put in the order in which they were given. Owned by one thread, to which the index
 * belongs again after load_queue_free.
 */
#ifndef VIGIL_STORE_LOAD_QUEUE_H
#define VIGIL_STORE_LOAD_QUEUE_H

#include "store/index/index.h"

/* As many are put at once, by the caller's thread. */
enum { LOAD_ALONE_MAX = 50000 };

struct load_queue;

struct load_queue *load_queue_new(struct index *index);
/* The bytes of the key must remain until load_queue_free. */
void load_queue_put(struct load_queue *queue, struct slice key,
                    const struct index_version *version);
/* Waits until everything is in the index. */
void load_queue_free(struct load_queue *queue);

#endif
