/*
 * The stores that are open in this process, found by their directories.
 *
 *     opening ──► open ──► closing ──► freed
 *        └──────────────────▲            it could not be opened
 *
 * Opening and closing take long and make callbacks, so no lock is held meanwhile: a thread that
 * wants the same directory waits until the store is open or gone, and others do not wait. Inside a
 * callback of a store its directory is refused, because both may wait for the callback. A child
 * after fork cannot open what its parent had open.
 */
#ifndef VIGIL_EMBED_STORES_H
#define VIGIL_EMBED_STORES_H

#include "embed/store.h"

/*
 * Finds or opens a store; embed_stores_leave follows. options are complete and valid. ST_LIMIT: it
 * has VIGIL_EMBEDDED_CLIENTS_MAX clients; ST_CANCELED: the thread is inside a callback of it;
 * ST_IN_USE: another process has it, or it has failed.
 */
MUST_CHECK
enum status embed_stores_enter(const char *directory, const vigil_embedded_options *options,
                               struct embed_store **ret_store, struct error *error);
/* The last one closes it, and waits for that. */
void embed_stores_leave(struct embed_store *store);

#endif
