/*
 * Objects of any size from slabs of many sizes: 8 bytes apart up to 256, about an eighth apart
 * above, so that little is lost to rounding. Objects too large for a slab get pages of their own.
 *
 * One owner, one thread. An object leads to its slab, so it is freed without a size. Objects may
 * outlive the owner (retired to an epoch, freed later): the pool is freed with the last of them.
 * Aborts without memory.
 */
#ifndef VIGIL_BASE_MEMORY_POOL_H
#define VIGIL_BASE_MEMORY_POOL_H

#include "base/macros.h"

struct pool;

struct pool *pool_new(void);
/* The owner gives up the pool: its memory is freed with its last object. */
void pool_free(struct pool *pool);

/* Not cleared; 8-byte aligned. */
void *pool_alloc(struct pool *pool, size_t bytes);
/* Accepts NULL. Fits epoch_retire, with the pool as ctx. */
void pool_free_object(void *pool_ctx, void *object);
/* For an object that waits for readers before it is freed: the first notes it, the second frees it
 * and fits epoch_retire as well. pool_retired_bytes says how much waits. */
void pool_note_retired(struct pool *pool, const void *object);
void pool_free_retired(void *pool_ctx, void *object);
size_t pool_retired_bytes(const struct pool *pool);
/* The size that pool_alloc(bytes) really gives, all of which may be used. */
size_t pool_usable_bytes(size_t bytes);

size_t pool_objects(const struct pool *pool);
size_t pool_bytes_held(const struct pool *pool);

#endif
