#include "base/container/resumable_sort.h"

#include "base/macros.h"

#include <stdlib.h>

enum status step_sort_init(struct step_sort *sort, const void *items, size_t count, size_t size)
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
    *sort =
        (struct step_sort){.items = order, .spare = spare, .count = count, .width = 1, .right = 1};
    return ST_OK;
}

void step_sort_fini(struct step_sort *sort)
{
    free(sort->items);
    free(sort->spare);
    *sort = (struct step_sort){0};
}

/* The next two runs, or, behind the last, the next round with runs of twice the width. */
static void begin_pair(struct step_sort *sort)
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

/* Where the pair that `done` is in begins. */
static size_t pair_start(const struct step_sort *sort)
{
    return sort->done - sort->done % (2 * sort->width);
}

bool step_sort_step(struct step_sort *sort, size_t moves, step_sort_compare_fn compare, void *ctx)
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
