/*
 * Memory that is freed all at once: one arena per call holds its decoded request and its result.
 *
 * A small arena lives in the bytes its owner embeds, so the common call never touches the heap;
 * larger ones chain blocks. Everything is 16-byte aligned. The limit bounds what one peer's
 * request may make us hold; an allocation past it fails like one without memory.
 * One owner at a time; it may be handed to another thread whole.
 */
#ifndef VIGIL_BASE_ARENA_H
#define VIGIL_BASE_ARENA_H

#include "base/slice.h"
#include "base/status.h"

struct arena_block;

struct arena {
    uint8_t *next; /* first free byte of the current block */
    uint8_t *end;
    struct arena_block *blocks; /* heap blocks, newest first */
    size_t held_bytes;          /* heap bytes in blocks */
    size_t limit_bytes;         /* held_bytes never passes this */
};

/* first may be NULL; it is borrowed until arena_fini. */
void arena_init(struct arena *arena, void *first, size_t first_bytes, size_t limit_bytes);

/* Frees all blocks. A zeroed arena may be finished. */
void arena_fini(struct arena *arena);

/* NULL when memory or the limit is exhausted. The bytes are not cleared. */
MUST_CHECK
void *arena_alloc(struct arena *arena, size_t bytes);
MUST_CHECK
void *arena_calloc(struct arena *arena, size_t count, size_t bytes_each);

/* A copy that lives as long as the arena. */
MUST_CHECK
enum status arena_dup(struct arena *arena, struct slice bytes, struct slice *ret_copy);

#endif
