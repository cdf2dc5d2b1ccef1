/*
 * Objects of one size, packed into chunks without a header each. For structures of millions of
 * small objects, where malloc's overhead and scattered pages would matter.
 *
 *   chunk (2 MiB, aligned) │ head │ object │ object │ object …
 *
 * The chunk of an object, and with it the slab, is found from the object's address. Only used pages
 * of a chunk take memory, so a small slab is small; from the ninth chunk on they use huge pages. A
 * chunk without objects returns its memory. Objects that were freed last are allocated first, since
 * they are in the cache; a limited number of them is not given back to the chunks. Aborts without
 * memory. One owner, one thread; the contents of an object may be read by others.
 */
#ifndef VIGIL_BASE_MEMORY_SLAB_H
#define VIGIL_BASE_MEMORY_SLAB_H

#include "base/container/list.h"

#include <stdint.h>

struct slab_chunk;
struct slab_free_object;

struct slab {
    struct list with_room;           /* chunks with a free object; the first one is in use */
    struct slab_chunk *spare;        /* one empty chunk, in no list */
    struct slab_free_object *recent; /* freed last; their chunks still count them */
    uint32_t recent_count;
    uint32_t recent_max;
    uint32_t object_bytes;
    uint32_t chunks;
    size_t objects;
    size_t held_bytes; /* size of all chunks, as far as they were ever used */
};

/* Larger objects would waste too much of a chunk. */
enum { SLAB_OBJECT_BYTES_MAX = 256 * 1024 };

/* Objects are 8-byte aligned; object_bytes is a multiple of 8. */
void slab_init(struct slab *slab, size_t object_bytes);
/* All objects must have been freed. */
void slab_fini(struct slab *slab);

/* Not cleared. */
void *slab_alloc(struct slab *slab);
void slab_free(void *object);
/* The slab of an object; NULL for one with its own mapping. */
struct slab *slab_of(const void *object);

/* An object of any size in its own mapping, for sizes too large for a slab. */
void *slab_alloc_alone(size_t bytes);
/* The size of its mapping. */
size_t slab_alone_bytes(const void *object);
void slab_free_alone(void *object);

#endif
