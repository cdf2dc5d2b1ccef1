/*
 * Compacts the history of a store that keeps only some of it. It has a thread, with a loop and a
 * shard of the engine, because the threads of clients come and go, and one that the program drives
 * may sleep. Created and freed by the thread that opens or closes the store.
 */
#ifndef VIGIL_EMBED_HISTORY_H
#define VIGIL_EMBED_HISTORY_H

#include "etcd/compactor.h"

struct embed_history;

/* The engine is borrowed. ST_NOMEM, ST_LIMIT: there is no thread or descriptor for it. */
MUST_CHECK
enum status embed_history_new(struct engine *engine, const struct etcd_compactor_options *options,
                              struct embed_history **ret_history);
/* Waits for a compaction that has begun. Accepts NULL. */
void embed_history_free(struct embed_history *history);

#endif
