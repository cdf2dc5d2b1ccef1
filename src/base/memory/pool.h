/*
 * Objects of any size from slabs of many sizes: 8 bytes apart up to 256, about an eighth apart
 * above, so that little is lost to rounding. Objects too large for a slab get pages of their own.
 *
 * One owner, one thread. Objects know their pool's slab, so they are freed without a size. Objects
 * may outlive the owner (retired to an epoch, freed later): the pool goes with the last of them.
 * Aborts without memory.
 */
#ifndef VIGIL_BASE_MEMORY_POOL_H
#define VIGIL_BASE_MEMORY_POOL_H

#include "base/macros.h"

struct pool;

struct pool *pool_new(void);
/* Lets go of the pool: its memory is returned with its last object. */
void pool_free(struct pool *pool);

/* Not cleared; 8-byte aligned. */
void *pool_alloc(struct pool *pool, size_t bytes);
/* Accepts NULL. Fits epoch_retire, with the pool as ctx. */
void pool_free_object(void *pool_ctx, void *object);
/*
 * An object that waits for readers before it is freed: noted first, and freed by the other, which
 * fits epoch_retire as well. pool_retired_bytes says how much waits.
 */
void pool_note_retired(struct pool *pool, const void *object);
void pool_free_retired(void *pool_ctx, void *object);
size_t pool_retired_bytes(const struct pool *pool);
/* What pool_alloc(bytes) really gives: what may be used. */
size_t pool_usable_bytes(size_t bytes);

size_t pool_objects(const struct pool *pool);
size_t pool_bytes_held(const struct pool *pool);

#endif
