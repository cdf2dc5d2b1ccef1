#include "base/memory/slab.h"

#include "base/memory/sanitizer.h"
#include "base/xalloc.h"

#include <stdbool.h>
#include <sys/mman.h>

enum {
    CHUNK_BYTES = 2 << 20,
    CHUNK_HEAD_BYTES = 64,
    SMALL_CHUNKS = 8,       /* without huge pages: what these round up is at most an eighth */
    TOUCH_BYTES = 4096,     /* counted as held when first used */
    MAP_STEP_BYTES = 65536, /* the unit of mappings, a multiple of any page size */
    /* Freed objects to be allocated next: about those of a group of puts … */
    RECENT_MAX = 512,
    RECENT_BYTES_MAX = 512 << 10,
    RECENT_PART = 8, /* … and at most this part of those in use, so that chunks become empty */
};

struct slab_free_object {
    struct slab_free_object *next;
};

struct slab_chunk {
    struct slab *slab;             /* NULL: a single object with its own mapping */
    size_t bytes;                  /* size of the mapping */
    struct list in_slab;           /* links slab.with_room, or itself when full */
    struct slab_free_object *free; /* last freed first: it is likeliest in the cache */
    uint32_t fresh;                /* offset of the first byte never allocated */
    uint32_t objects;
};
_Static_assert(sizeof(struct slab_chunk) <= CHUNK_HEAD_BYTES, "the head has its own line");

/* A freed object is hidden, except for its link, until it is allocated again. */
static void hide(void *object, size_t bytes)
{
    if (bytes > sizeof(struct slab_free_object))
        sanitizer_hide((uint8_t *)object + sizeof(struct slab_free_object),
                       bytes - sizeof(struct slab_free_object));
}

static struct slab_chunk *chunk_of(const void *object)
{
    return (struct slab_chunk *)((uintptr_t)object & ~(uintptr_t)(CHUNK_BYTES - 1));
}

/* Maps more than needed, finds the aligned part and unmaps the rest. bytes: a multiple of the unit.
 */
static void *map_aligned(size_t bytes)
{
    size_t mapped = bytes + CHUNK_BYTES;
    uint8_t *start = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
        xalloc_check(NULL, bytes);
    uint8_t *aligned = (uint8_t *)align_up((uintptr_t)start, CHUNK_BYTES);
    size_t before = (size_t)(aligned - start);
    if (before)
        munmap(start, before);
    munmap(aligned + bytes, CHUNK_BYTES - before);
    return aligned;
}

static struct slab_chunk *chunk_new(struct slab *slab)
{
    struct slab_chunk *chunk = map_aligned(CHUNK_BYTES);
    bool large = slab->chunks >= SMALL_CHUNKS;
    /* Only advice: it also works without huge pages, a little slower. */
    (void)madvise(chunk, CHUNK_BYTES, large ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    *chunk = (struct slab_chunk){.slab = slab, .bytes = CHUNK_BYTES, .fresh = CHUNK_HEAD_BYTES};
    list_init(&chunk->in_slab);
    slab->chunks++;
    slab->held_bytes += TOUCH_BYTES;
    return chunk;
}

static size_t chunk_held_bytes(const struct slab_chunk *chunk)
{
    return align_up(chunk->fresh, TOUCH_BYTES);
}

static void chunk_free(struct slab_chunk *chunk)
{
    struct slab *slab = chunk->slab;
    assert(chunk->objects == 0);
    list_remove(&chunk->in_slab);
    slab->held_bytes -= chunk_held_bytes(chunk);
    slab->chunks--;
    sanitizer_show(chunk, CHUNK_BYTES);
    munmap(chunk, CHUNK_BYTES);
}

void slab_init(struct slab *slab, size_t object_bytes)
{
    assert(object_bytes % 8 == 0);
    assert(object_bytes > 0);
    assert(object_bytes <= SLAB_OBJECT_BYTES_MAX);
    *slab = (struct slab){
        .object_bytes = (uint32_t)object_bytes,
        .recent_max = (uint32_t)size_min(RECENT_MAX, RECENT_BYTES_MAX / object_bytes),
    };
    list_init(&slab->with_room);
}

void slab_fini(struct slab *slab)
{
    assert(slab->objects == 0);
    if (slab->spare)
        chunk_free(slab->spare);
    assert(slab->chunks == 0);
}

static bool chunk_has_fresh(const struct slab_chunk *chunk)
{
    return CHUNK_BYTES - chunk->fresh >= chunk->slab->object_bytes;
}

/* The object is in use from now on. */
static void *slab_count(struct slab *slab, void *object)
{
    slab->objects++;
    sanitizer_allocated(object, slab->object_bytes);
    return object;
}

static void *chunk_take(struct slab_chunk *chunk)
{
    struct slab *slab = chunk->slab;
    void *object = chunk->free;
    if (object) {
        chunk->free = chunk->free->next;
        __builtin_prefetch(chunk->free, 1); /* the next one to be allocated */
    } else {
        size_t held = chunk_held_bytes(chunk);
        object = (uint8_t *)chunk + chunk->fresh;
        chunk->fresh += slab->object_bytes;
        slab->held_bytes += chunk_held_bytes(chunk) - held;
    }
    chunk->objects++;
    return object;
}

static struct slab_chunk *slab_room(struct slab *slab)
{
    if (LIKELY(!list_empty(&slab->with_room)))
        return LIST_ENTRY(slab->with_room.next, struct slab_chunk, in_slab);
    struct slab_chunk *chunk = slab->spare ? TAKE(slab->spare) : chunk_new(slab);
    list_push_front(&slab->with_room, &chunk->in_slab);
    return chunk;
}

static void recent_push(struct slab *slab, void *object)
{
    struct slab_free_object *freed = object;
    freed->next = slab->recent;
    slab->recent = freed;
    slab->recent_count++;
}

static void *recent_pop(struct slab *slab)
{
    struct slab_free_object *freed = slab->recent;
    slab->recent = freed->next;
    slab->recent_count--;
    return freed;
}

void *slab_alloc(struct slab *slab)
{
    if (slab->recent)
        return slab_count(slab, recent_pop(slab));
    struct slab_chunk *chunk = slab_room(slab);
    void *object = chunk_take(chunk);
    if (UNLIKELY(!chunk->free && !chunk_has_fresh(chunk)))
        list_remove(&chunk->in_slab);
    return slab_count(slab, object);
}

/* Resets the chunk to its initial state, in which only its first pages use memory. */
static void chunk_reset(struct slab_chunk *chunk)
{
    struct slab *slab = chunk->slab;
    size_t held = chunk_held_bytes(chunk);
    sanitizer_show(chunk, CHUNK_BYTES);
    if (held > MAP_STEP_BYTES)
        (void)madvise((uint8_t *)chunk + MAP_STEP_BYTES, CHUNK_BYTES - MAP_STEP_BYTES,
                      MADV_DONTNEED);
    chunk->free = NULL;
    chunk->fresh = CHUNK_HEAD_BYTES;
    slab->held_bytes -= held - TOUCH_BYTES;
}

static void chunk_emptied(struct slab_chunk *chunk)
{
    struct slab *slab = chunk->slab;
    list_remove(&chunk->in_slab);
    if (slab->spare) {
        chunk_free(chunk);
        return;
    }
    chunk_reset(chunk);
    slab->spare = chunk;
}

/* Returns the object to its chunk. */
static void chunk_put(void *object)
{
    struct slab_chunk *chunk = chunk_of(object);
    struct slab *slab = chunk->slab;
    bool was_full = !chunk->free && !chunk_has_fresh(chunk);
    struct slab_free_object *freed = object;
    freed->next = chunk->free;
    chunk->free = freed;

    assert(chunk->objects > 0);
    chunk->objects--;
    /* A chunk that was full is used last, so that sparse ones can become empty. */
    if (was_full)
        list_push_back(&slab->with_room, &chunk->in_slab);
    if (UNLIKELY(chunk->objects == 0))
        chunk_emptied(chunk);
}

void slab_free(void *object)
{
    struct slab *slab = chunk_of(object)->slab;
    assert(slab->objects > 0);
    slab->objects--;
    hide(object, slab->object_bytes);
    size_t most = size_min(slab->recent_max, slab->objects / RECENT_PART);
    if (LIKELY(slab->recent_count < most)) {
        recent_push(slab, object);
        return;
    }
    chunk_put(object);
    while (UNLIKELY(slab->recent_count > most))
        chunk_put(recent_pop(slab));
}

struct slab *slab_of(const void *object)
{
    return chunk_of(object)->slab;
}

void *slab_alloc_alone(size_t bytes)
{
    assert(bytes <= SIZE_MAX / 4);
    size_t mapped = align_up(CHUNK_HEAD_BYTES + bytes, MAP_STEP_BYTES);
    struct slab_chunk *chunk = map_aligned(mapped);
    *chunk = (struct slab_chunk){.bytes = mapped, .objects = 1};
    return (uint8_t *)chunk + CHUNK_HEAD_BYTES;
}

size_t slab_alone_bytes(const void *object)
{
    return chunk_of(object)->bytes;
}

void slab_free_alone(void *object)
{
    struct slab_chunk *chunk = chunk_of(object);
    assert(!chunk->slab);
    munmap(chunk, chunk->bytes);
}
