#include "base/memory/pool.h"

#include "base/memory/slab.h"
#include "base/xalloc.h"

#include <stdbool.h>

/*
 * Classes 1 … 32 hold 8 … 256 bytes in steps of 8. Above, each doubling has 8 classes.
 */
enum {
    FINE_BYTES = 256,
    FINE_CLASSES = FINE_BYTES / 8,
    STEPS = 8,
    DOUBLINGS = 10, /* 256 bytes to 256 KiB */
    CLASSES = FINE_CLASSES + 1 + STEPS * DOUBLINGS,
};
_Static_assert((FINE_BYTES << DOUBLINGS) == SLAB_OBJECT_BYTES_MAX, "classes end where slabs do");

struct pool {
    size_t objects;
    size_t alone_bytes; /* size of objects too large for a slab */
    size_t retired_bytes;
    bool let_go; /* by its owner: freed with the last object */
    struct slab slabs[CLASSES];
};

/* The distance between classes of this size, above FINE_BYTES, as a power of two. */
static size_t class_step_shift(size_t bytes)
{
    assert(bytes > FINE_BYTES);
    size_t top_bit = 63 - (size_t)__builtin_clzll(bytes - 1);
    return top_bit - 3; /* an eighth of the power of two below */
}

static size_t class_of(size_t bytes)
{
    if (LIKELY(bytes <= FINE_BYTES))
        return (bytes + 7) / 8;
    size_t shift = class_step_shift(bytes);
    size_t doubling = shift - class_step_shift(FINE_BYTES + 1);
    size_t step = ((bytes - 1) >> shift) - STEPS; /* 0 … 7 */
    return FINE_CLASSES + 1 + doubling * STEPS + step;
}

static size_t class_bytes(size_t bytes)
{
    if (LIKELY(bytes <= FINE_BYTES))
        return align_up(bytes, 8);
    return align_up(bytes, (size_t)1 << class_step_shift(bytes));
}

struct pool *pool_new(void)
{
    struct pool *pool = xcalloc(1, sizeof(*pool));
    for (size_t i = 1; i <= FINE_CLASSES; i++)
        slab_init(&pool->slabs[i], i * 8);
    for (size_t i = FINE_CLASSES + 1; i < CLASSES; i++) {
        size_t doubling = (i - FINE_CLASSES - 1) / STEPS;
        size_t step = (i - FINE_CLASSES - 1) % STEPS;
        slab_init(&pool->slabs[i], ((size_t)(FINE_BYTES / STEPS) << doubling) * (STEPS + 1 + step));
    }
    return pool;
}

static void pool_destroy(struct pool *pool)
{
    assert(pool->objects == 0);
    for (size_t i = 1; i < CLASSES; i++)
        slab_fini(&pool->slabs[i]);
    free(pool);
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    pool->let_go = true;
    if (pool->objects == 0)
        pool_destroy(pool);
}

void *pool_alloc(struct pool *pool, size_t bytes)
{
    assert(!pool->let_go);
    pool->objects++;
    bytes = size_max(bytes, 8);
    if (LIKELY(bytes <= SLAB_OBJECT_BYTES_MAX))
        return slab_alloc(&pool->slabs[class_of(bytes)]);
    void *object = slab_alloc_alone(bytes);
    pool->alone_bytes += slab_alone_bytes(object);
    return object;
}

void pool_free_object(void *pool_ctx, void *object)
{
    struct pool *pool = pool_ctx;
    if (!object)
        return;
    if (LIKELY(slab_of(object) != NULL)) {
        slab_free(object);
    } else {
        pool->alone_bytes -= slab_alone_bytes(object);
        slab_free_alone(object);
    }
    pool->objects--;
    if (UNLIKELY(pool->let_go && pool->objects == 0))
        pool_destroy(pool);
}

static size_t object_bytes(const void *object)
{
    const struct slab *slab = slab_of(object);
    return LIKELY(slab != NULL) ? slab->object_bytes : slab_alone_bytes(object);
}

void pool_note_retired(struct pool *pool, const void *object)
{
    pool->retired_bytes += object_bytes(object);
}

void pool_free_retired(void *pool_ctx, void *object)
{
    struct pool *pool = pool_ctx;
    pool->retired_bytes -= object_bytes(object);
    pool_free_object(pool, object);
}

size_t pool_retired_bytes(const struct pool *pool)
{
    return pool->retired_bytes;
}

size_t pool_usable_bytes(size_t bytes)
{
    bytes = size_max(bytes, 8);
    return bytes <= SLAB_OBJECT_BYTES_MAX ? class_bytes(bytes) : bytes;
}

size_t pool_objects(const struct pool *pool)
{
    return pool->objects;
}

size_t pool_bytes_held(const struct pool *pool)
{
    size_t bytes = sizeof(*pool) + pool->alone_bytes;
    for (size_t i = 1; i < CLASSES; i++)
        bytes += pool->slabs[i].held_bytes;
    return bytes;
}
