#include "cel/value/unordered.h"

#include "cel/value/container.h"
#include "cel/value/shape.h"

#include <stdlib.h>

/* What identifies an item: one value of a set, or the keys of an object. */
struct identity {
    const struct cel_value *keys; /* NULL: nothing is the same as this item */
    uint32_t width;
    uint32_t at;
};

static int order_scalars(struct cel_value a, struct cel_value b)
{
    if (a.kind != b.kind)
        return (int)a.kind - (int)b.kind;
    int order;
    struct cel_value error;
    return a.kind != CEL_NULL && cel_compare(a, b, &order, &error) ? order : 0;
}

static int order_identities(const void *a, const void *b)
{
    const struct identity *x = a, *y = b;
    int order = !x->keys - !y->keys;
    for (uint32_t i = 0; x->keys && y->keys && i < x->width && !order; i++)
        order = order_scalars(x->keys[i], y->keys[i]);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

static bool are_same(const struct identity *a, const struct identity *b)
{
    if (!a->keys || !b->keys)
        return false;
    for (uint32_t i = 0; i < a->width; i++)
        if (order_scalars(a->keys[i], b->keys[i]))
            return false;
    return true;
}

/* Go panics at a key that a map cannot have, with this error. False: it can be a key. */
static bool end_at_key(struct cel_work *work, struct cel_value key, struct cel_value *ret_error)
{
    const char *type = key.kind == CEL_MAP     ? "map[string]interface {}"
                       : key.kind == CEL_LIST  ? "[]interface {}"
                       : key.kind == CEL_BYTES ? "[]uint8"
                                               : NULL;
    if (!type)
        return false;
    *ret_error = cel_of_error_format(
        work, "internal error: runtime error: hash of unhashable type %s", type);
    cel_end(work, *ret_error);
    return true;
}

static bool identify(struct cel_work *work, const struct cel_shape *shape,
                     const struct cel_value *raw, struct identity *ret_identity,
                     struct cel_value *ret_error)
{
    struct identity identity = {.keys = raw, .width = 1};
    if (shape->kind == CEL_SHAPE_MAP_LIST) {
        bool is_object = raw->kind == CEL_MAP && raw->is_view;
        struct cel_value *keys =
            is_object ? arena_calloc(work->arena, shape->count + 1, sizeof(*keys)) : NULL;
        identity = (struct identity){.keys = keys, .width = shape->count};
        for (uint32_t i = 0; keys && i < shape->count; i++) {
            const struct json_node *member = json_look_member(raw->node, shape->keys[i]);
            keys[i] = member ? cel_of_json(work, member) : (struct cel_value){.kind = CEL_NULL};
        }
    }
    for (uint32_t i = 0; identity.keys && i < identity.width; i++) {
        if (end_at_key(work, identity.keys[i], ret_error))
            return false;
        /* An item that is an error is like no other item; the error does not count. */
        if (cel_is_error(identity.keys[i]))
            identity.keys = NULL;
    }
    *ret_identity = identity;
    return true;
}

static void group(const struct identity *sorted, uint32_t count, uint32_t count_a,
                  struct cel_same *same)
{
    for (uint32_t from = 0, to; from < count; from = to) {
        int64_t last = CEL_NO_ITEM;
        for (to = from; to < count && (to == from || are_same(&sorted[from], &sorted[to])); to++)
            if (sorted[to].at < count_a)
                last = sorted[to].at;
        for (uint32_t i = from; i < to; i++) {
            same->first[sorted[i].at] = sorted[from].at;
            same->last[sorted[i].at] = last;
        }
    }
}

static void copy_raws(struct cel_work *work, struct cel_value list, bool has_raws,
                      struct cel_same *same)
{
    struct cel_walk walk;
    struct cel_value index, item;
    if (has_raws)
        list.shape = NULL;
    cel_walk_init(&walk, work, list);
    while (cel_walk_next(&walk, &index, &item))
        same->raws[same->count++] = cel_raw(item);
}

static int64_t bits_of(uint32_t count)
{
    return 32 - __builtin_clz(count | 1);
}

bool cel_same_items(struct cel_work *work, struct cel_value a, struct cel_value b,
                    struct cel_same *ret_same, struct cel_value *ret_error)
{
    size_t count = (size_t)a.count + b.count;
    struct identity *identities = arena_calloc(work->arena, count + 1, sizeof(*identities));
    struct cel_same same = {
        .raws = arena_calloc(work->arena, count + 1, sizeof(struct cel_value)),
        .first = arena_calloc(work->arena, count + 1, sizeof(int64_t)),
        .last = arena_calloc(work->arena, count + 1, sizeof(int64_t)),
    };
    uint32_t width = a.shape->kind == CEL_SHAPE_MAP_LIST ? a.shape->count : 1;
    *ret_error = CEL_NO_MEMORY;
    if (count > UINT32_MAX / 2 || !identities || !same.raws || !same.first || !same.last)
        return false;
    work->steps_left -= (int64_t)count * bits_of((uint32_t)count) * (1 + width);
    if (work->steps_left < 0) {
        *ret_error = CEL_TOO_MUCH_WORK;
        return false;
    }
    copy_raws(work, a, true, &same);
    copy_raws(work, b, false, &same);
    for (uint32_t i = 0; i < same.count; i++) {
        if (!identify(work, a.shape, &same.raws[i], &identities[i], ret_error))
            return false;
        identities[i].at = i;
    }
    qsort(identities, same.count, sizeof(*identities), order_identities);
    group(identities, same.count, a.count, &same);
    *ret_same = same;
    return true;
}

struct cel_value cel_unordered_concat(struct cel_work *work, struct cel_value a, struct cel_value b)
{
    struct cel_same same;
    struct cel_value error;
    if (!cel_same_items(work, a, b, &same, &error))
        return error;
    struct cel_value joined = cel_list_new(work, same.count);
    if (cel_is_error(joined))
        return joined;
    bool is_set = a.shape->kind == CEL_SHAPE_SET;
    for (uint32_t i = 0; i < same.count; i++) {
        if (i >= a.count && same.last[i] != CEL_NO_ITEM && !is_set)
            joined.array->items[same.last[i]] = same.raws[i];
        else if (i < a.count || !is_set || same.first[i] == i)
            joined.array->items[joined.count++] = same.raws[i];
    }
    joined.array->count = joined.count;
    joined.shape = a.shape;
    return joined;
}
