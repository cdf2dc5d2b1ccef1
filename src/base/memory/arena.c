#include "base/memory/arena.h"

#include "base/memory/budget.h"
#include "base/memory/sanitizer.h"

#include <stdlib.h>

/* The first block is so small that allocators keep it at hand for the next call of the thread:
 * glibc does so up to 1032 bytes. */
enum {
    ARENA_BLOCK_FIRST = 1008,
    ARENA_BLOCK_MIN = 4096 - 64,
    ARENA_BLOCK_MAX = 256 * 1024,   /* unless one allocation needs more */
    ARENA_BLOCK_PAGES = 128 * 1024, /* from here on glibc may map pages for it */
};

struct arena_block {
    struct arena_block *older;
    size_t bytes;
    _Alignas(ARENA_ALIGN) uint8_t data[];
};

void arena_init(struct arena *arena, void *first, size_t first_bytes, size_t limit_bytes)
{
    uintptr_t start = align_up((uintptr_t)first, ARENA_ALIGN);
    uintptr_t end = (uintptr_t)first + first_bytes;
    *arena = (struct arena){.limit_bytes = limit_bytes};
    if (first && start < end) {
        arena->next = (uint8_t *)start;
        arena->end = (uint8_t *)end;
    }
}

void arena_charge_borrowed(struct arena *arena, struct account *account)
{
    assert(arena->held_bytes == 0);
    arena->account = account;
}

void arena_keep_account(struct arena *arena)
{
    assert(!arena->has_account_ref);
    account_ref(arena->account);
    arena->has_account_ref = true;
}

void arena_charge(struct arena *arena, struct account *account)
{
    arena_charge_borrowed(arena, account);
    arena_keep_account(arena);
}

/* What is charged for a block: also its head, the one that the allocator puts before it, and what
 * the allocator adds to reach a size that it has. Large blocks take whole pages. */
static size_t charge_of(size_t block_bytes)
{
    size_t beside = block_bytes < ARENA_BLOCK_PAGES ? 24 : 4096;
    return sizeof(struct arena_block) + block_bytes + beside;
}

static void free_blocks(struct arena *arena)
{
    size_t charged = 0;
    for (struct arena_block *block = arena->blocks, *older; block; block = older) {
        older = block->older;
        charged += charge_of(block->bytes);
        free(block);
    }
    account_release(arena->account, charged);
}

void arena_fini(struct arena *arena)
{
    if (arena->blocks)
        free_blocks(arena);
    if (arena->has_account_ref)
        account_unref(arena->account);
    *arena = (struct arena){0};
}

static bool arena_grow(struct arena *arena, size_t bytes)
{
    /* Blocks grow with the bytes held, so that a large decode takes few of them; but not without
     * limit, because what is not used of a block is charged, too. */
    size_t least =
        arena->held_bytes || bytes > ARENA_BLOCK_FIRST ? ARENA_BLOCK_MIN : ARENA_BLOCK_FIRST;
    size_t usual = size_max(least, size_min(arena->held_bytes, ARENA_BLOCK_MAX));
    size_t block_bytes = size_max(usual, bytes);
    size_t left = arena->limit_bytes - arena->held_bytes;
    if (bytes > left)
        return false;
    block_bytes = size_min(block_bytes, left);
    size_t charge = charge_of(block_bytes);
    size_t charged = account_charge_up_to(arena->account, charge_of(bytes), charge);
    if (charged == 0)
        return false;
    if (charged != charge)
        block_bytes = bytes;
    struct arena_block *block = malloc(sizeof(*block) + block_bytes);
    if (!block) {
        account_release(arena->account, charged);
        return false;
    }
    block->older = arena->blocks;
    block->bytes = block_bytes;
    arena->blocks = block;
    arena->held_bytes += block_bytes;
    arena->next = block->data;
    arena->end = block->data + block_bytes;
    /* So that an overrun of one allocation into the next is found. The owner's first bytes are not
     * hidden, because they may be reused without a fini. */
    sanitizer_hide(block->data, block_bytes);
    return true;
}

static void *run_out(struct arena *arena)
{
    arena->ran_out = true;
    return NULL;
}

void *arena_alloc_slow(struct arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 4)
        return run_out(arena);
    size_t rounded = size_max(align_up(bytes, ARENA_ALIGN), ARENA_ALIGN);
    if (rounded > (size_t)(arena->end - arena->next) && !arena_grow(arena, rounded))
        return run_out(arena);
    void *result = arena->next;
    arena->next += rounded;
    sanitizer_allocated(result, bytes);
    return result;
}

void *arena_calloc(struct arena *arena, size_t count, size_t bytes_each)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, bytes_each, &bytes))
        return run_out(arena);
    void *result = arena_alloc(arena, bytes);
    if (result)
        memset(result, 0, bytes);
    return result;
}

enum status arena_dup(struct arena *arena, struct slice bytes, struct slice *ret_copy)
{
    uint8_t *copy = arena_alloc(arena, bytes.len);
    if (!copy)
        return ST_NOMEM;
    slice_copy(copy, bytes);
    *ret_copy = slice_of(copy, bytes.len);
    return ST_OK;
}
