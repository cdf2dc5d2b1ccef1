/*
 * Memory that is freed all at once: one arena per call holds its decoded request and its result.
 *
 * A small arena uses bytes that its owner embeds, so that the common call allocates nothing from
 * the heap; larger ones chain blocks. Everything is 16-byte aligned. The limit bounds what one
 * request may hold, an account (base/memory/budget.h) what all requests may hold; an allocation
 * beyond either fails like one without memory. One owner at a time; it may be handed to another
 * thread as a whole.
 */
#ifndef VIGIL_BASE_MEMORY_ARENA_H
#define VIGIL_BASE_MEMORY_ARENA_H

#include "base/slice.h"
#include "base/status.h"

enum { ARENA_ALIGN = 16 };

struct account;
struct arena_block;

struct arena {
    uint8_t *next; /* first free byte of the current block */
    uint8_t *end;
    struct arena_block *blocks; /* heap blocks, newest first */
    size_t held_bytes;          /* heap bytes in blocks */
    size_t limit_bytes;         /* upper bound of held_bytes */
    struct account *account;    /* charged with what the blocks take; may be NULL */
    bool has_account_ref;       /* otherwise the account is borrowed */
    bool ran_out;               /* an allocation has failed since arena_init */
};

/* first may be NULL; it is borrowed until arena_fini. */
void arena_init(struct arena *arena, void *first, size_t first_bytes, size_t limit_bytes);

/* Charges its blocks to the account from now on, and takes a reference to it. To be called before
 * the first block. */
void arena_charge(struct arena *arena, struct account *account);
/* The same, but the account is only borrowed until arena_keep_account or arena_fini. */
void arena_charge_borrowed(struct arena *arena, struct account *account);
void arena_keep_account(struct arena *arena);

/* Frees all blocks. A zeroed arena may be finished. */
void arena_fini(struct arena *arena);

/* Whether an allocation failed. Checked before an answer or a write is made from the arena, so that
 * the result of an ignored failure is never used. */
static inline bool arena_ran_out(const struct arena *arena)
{
    return arena->ran_out;
}

/* The slow path of arena_alloc: the current block has no room, or the program has a sanitizer.
 */
MUST_CHECK
void *arena_alloc_slow(struct arena *arena, size_t bytes);

/* NULL when memory or the limit is exhausted. The bytes are not cleared. */
MUST_CHECK
static inline void *arena_alloc(struct arena *arena, size_t bytes)
{
#ifndef VIGIL_SANITIZED
    size_t room = (size_t)(arena->end - arena->next);
    size_t rounded = align_up(bytes, ARENA_ALIGN);
    if (LIKELY(bytes && bytes <= room && rounded <= room)) {
        void *result = arena->next;
        arena->next += rounded;
        return result;
    }
#endif
    return arena_alloc_slow(arena, bytes);
}

MUST_CHECK
void *arena_calloc(struct arena *arena, size_t count, size_t bytes_each);

/* A copy that lives as long as the arena. */
MUST_CHECK
enum status arena_dup(struct arena *arena, struct slice bytes, struct slice *ret_copy);

#endif
