#include "codec/json/spans.h"

enum {
    SPAN_ITEMS = 64,                 /* items of a new span; shorter arrays have no spans */
    SPAN_ITEMS_MAX = 4 * SPAN_ITEMS, /* limit on the items of a span after insertions */
};

struct json_span {
    struct json_node *first; /* valid when items is not 0 */
    size_t items;
};

struct json_spans {
    size_t count;
    struct json_span spans[];
};

static enum status make(struct arena *arena, struct json_node *array)
{
    size_t count = array->count / SPAN_ITEMS + 1, at = 0;
    struct json_spans *spans = arena_alloc(arena, sizeof(*spans) + count * sizeof(spans->spans[0]));
    if (!spans)
        return ST_NOMEM;
    memset(spans->spans, 0, count * sizeof(spans->spans[0]));
    spans->count = count;
    for (struct json_node *item = json_node_first(array); item; item = json_node_next(item), at++) {
        struct json_span *span = &spans->spans[at / SPAN_ITEMS];
        if (!span->items++)
            span->first = item;
    }
    array->spans = spans;
    return ST_OK;
}

/* A position in an array: its span, and the item there, NULL behind the last. */
struct spot {
    struct json_span *span; /* NULL: the array is too short for spans */
    struct json_node *item;
};

static struct json_node *walk(struct json_node *item, size_t steps)
{
    while (steps--)
        item = json_node_next(item);
    return item;
}

/* The position behind the last item belongs to the last span. */
static enum status find(struct arena *arena, struct json_node *array, size_t at,
                        struct spot *ret_spot)
{
    assert(array->type == JSON_TYPE_ARRAY && at <= array->count);
    *ret_spot = (struct spot){0};
    if (array->count <= SPAN_ITEMS) {
        ret_spot->item = walk(json_node_first(array), at);
        return ST_OK;
    }
    if (!array->spans)
        TRY(make(arena, array));
    struct json_span *span = array->spans->spans, *last = span + array->spans->count - 1;
    while (span < last && at >= span->items)
        at -= span++->items;
    ret_spot->span = span;
    ret_spot->item = at < span->items ? walk(span->first, at) : NULL;
    return ST_OK;
}

enum status json_spans_item(struct arena *arena, struct json_node *array, size_t at,
                            struct json_node **ret_item)
{
    struct spot spot = {0};
    if (at < array->count)
        TRY(find(arena, array, at, &spot));
    *ret_item = spot.item;
    return ST_OK;
}

enum status json_spans_insert(struct arena *arena, struct json_node *array, size_t at,
                              struct json_node *item)
{
    struct spot spot;
    TRY(find(arena, array, at, &spot));
    struct json_spans *spans = array->spans;
    TRY(json_node_insert(array, spot.item, item));
    if (!spot.span || spot.span->items == SPAN_ITEMS_MAX)
        return ST_OK;
    if (!spot.span->items++ || spot.span->first == spot.item)
        spot.span->first = item;
    array->spans = spans;
    return ST_OK;
}

enum status json_spans_remove(struct arena *arena, struct json_node *array, size_t at)
{
    struct spot spot;
    assert(at < array->count);
    TRY(find(arena, array, at, &spot));
    struct json_spans *spans = array->spans;
    struct json_node *next = json_node_next(spot.item);
    json_node_remove(array, spot.item);
    if (!spot.span)
        return ST_OK;
    spot.span->items--;
    if (spot.span->first == spot.item)
        spot.span->first = next;
    array->spans = spans;
    return ST_OK;
}

void json_spans_check(const struct json_node *array)
{
    size_t items = 0;
    if (!array->spans)
        return;
    const struct json_node *item = array->first;
    for (size_t i = 0; i < array->spans->count; i++) {
        const struct json_span *span = &array->spans->spans[i];
        assert(!span->items || span->first == item);
        assert(span->items <= SPAN_ITEMS_MAX);
        for (size_t j = 0; j < span->items; j++, items++)
            item = item->next;
    }
    assert(!item && items == array->count);
}
