#include "base/container/resumable_sort.h"

#include "base/macros.h"

#include <stdlib.h>

enum status resumable_sort_init(struct resumable_sort *sort, const void *items, size_t count,
                                size_t size)
{
    const void **order = calloc(size_max(count, 1), sizeof(*order));
    const void **spare = calloc(size_max(count, 1), sizeof(*spare));
    if (!order || !spare) {
        free(order);
        free(spare);
        return ST_NOMEM;
    }
    for (size_t i = 0; i < count; i++)
        order[i] = (const char *)items + i * size;
    *sort = (struct resumable_sort){
        .items = order, .spare = spare, .count = count, .width = 1, .right = 1};
    return ST_OK;
}

void resumable_sort_fini(struct resumable_sort *sort)
{
    free(sort->items);
    free(sort->spare);
    *sort = (struct resumable_sort){0};
}

/* Begins with the next two runs or, after the last, the next round with runs of twice the width. */
static void begin_pair(struct resumable_sort *sort)
{
    if (sort->done >= sort->count) {
        const void **items = sort->items;
        sort->items = sort->spare;
        sort->spare = items;
        sort->width *= 2;
        sort->done = 0;
    }
    sort->left = sort->done;
    sort->right = size_min(sort->done + sort->width, sort->count);
}

/* Where the pair that contains `done` begins. */
static size_t pair_start(const struct resumable_sort *sort)
{
    return sort->done - sort->done % (2 * sort->width);
}

bool resumable_sort_step(struct resumable_sort *sort, size_t moves,
                         resumable_sort_compare_fn compare, void *ctx)
{
    for (; sort->width < sort->count; moves--) {
        if (!moves)
            return false;
        size_t start = pair_start(sort);
        size_t middle = size_min(start + sort->width, sort->count);
        size_t end = size_min(middle + sort->width, sort->count);
        bool from_left = sort->left < middle &&
                         (sort->right >= end ||
                          compare(sort->items[sort->left], sort->items[sort->right], ctx) <= 0);
        sort->spare[sort->done++] = sort->items[from_left ? sort->left++ : sort->right++];
        if (sort->done == end)
            begin_pair(sort);
    }
    return true;
}
