#include "store/log/group.h"

#include <stdlib.h>

static void block_drop(struct group *group, struct group_block *block)
{
    if (!group->spare && block->capacity == GROUP_BLOCK_BYTES)
        group->spare = block;
    else
        free(block);
}

void group_fini(struct group *group)
{
    while (group->first)
        group_pop(group);
    free(group->spare);
    *group = (struct group){0};
}

static struct group_block *block_get(struct group *group, size_t bytes)
{
    if (group->spare && bytes <= GROUP_BLOCK_BYTES)
        return TAKE(group->spare);
    size_t capacity = size_max(bytes, GROUP_BLOCK_BYTES);
    struct group_block *block = malloc(sizeof(*block) + capacity);
    if (block)
        block->capacity = capacity;
    return block;
}

enum status group_reserve(struct group *group, struct segment *segment, uint64_t offset,
                          size_t bytes)
{
    struct group_block *last = group->last;
    if (last && last->segment == segment && last->capacity - last->len >= bytes) {
        assert(last->offset + last->len == offset);
        return ST_OK;
    }
    struct group_block *block = block_get(group, bytes);
    if (!block)
        return ST_NOMEM;
    *block =
        (struct group_block){.segment = segment, .offset = offset, .capacity = block->capacity};
    if (last)
        last->next = block;
    else
        group->first = block;
    group->last = block;
    return ST_OK;
}

struct slice group_rest_at(const struct group *group, const struct segment *segment,
                           uint64_t offset)
{
    for (const struct group_block *block = group->first; block; block = block->next) {
        /* Up to the capacity: the record being built is not included in len yet. */
        if (block->segment == segment && offset >= block->offset &&
            offset - block->offset < block->capacity &&
            (!block->next || offset - block->offset < block->len))
            return slice_of(block->bytes + (offset - block->offset),
                            block->capacity - (offset - block->offset));
    }
    return SLICE_EMPTY;
}

void group_pop(struct group *group)
{
    struct group_block *block = group->first;
    assert(block);
    assert(block->len <= group->pending_bytes);
    group->first = block->next;
    if (!group->first)
        group->last = NULL;
    group->pending_bytes -= block->len;
    block_drop(group, block);
}
