/*
 * Starts fetching from memory what the writer will read for several puts, before it applies the
 * first of them. It waits for memory longer than for anything else, and so the waits overlap.
 */
#ifndef VIGIL_STORE_MVCC_PREFETCH_H
#define VIGIL_STORE_MVCC_PREFETCH_H

#include "store/mvcc/applier.h"

enum { PREFETCH_PUTS_MAX = INDEX_PREFETCH_MAX };

/* Changes nothing. The requests may be out of the cache, too. */
void prefetch_puts(const struct applier *applier, const struct pb_put_request *const *requests,
                   size_t count);

#endif
