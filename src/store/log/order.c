#include "store/log/order.h"

#include <stdlib.h>

void segment_order_fini(struct segment_order *order)
{
    free(order->items);
    *order = (struct segment_order){0};
}

enum status segment_order_reserve(struct segment_order *order)
{
    if (order->count < order->capacity)
        return ST_OK;
    size_t capacity = order->capacity ? order->capacity * 2 : 16;
    struct segment **items = realloc(order->items, capacity * sizeof(*items));
    if (!items)
        return ST_NOMEM;
    order->items = items;
    order->capacity = capacity;
    return ST_OK;
}

void segment_order_add(struct segment_order *order, struct segment *segment)
{
    assert(order->count < order->capacity);
    size_t at = order->count++;
    for (; at > 0 && order->items[at - 1]->first_index > segment->first_index; at--)
        order->items[at] = order->items[at - 1];
    order->items[at] = segment;
}

size_t segment_order_find(const struct segment_order *order, uint64_t id)
{
    size_t at = 0;
    while (at < order->count && order->items[at]->head.id != id)
        at++;
    return at;
}

struct segment *segment_order_remove(struct segment_order *order, size_t at)
{
    assert(at < order->count);
    struct segment *segment = order->items[at];
    order->count--;
    for (size_t i = at; i < order->count; i++)
        order->items[i] = order->items[i + 1];
    return segment;
}

size_t segment_order_at_index(const struct segment_order *order, uint64_t index)
{
    size_t low = 0, high = order->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (order->items[middle]->first_index <= index)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : order->count;
}
