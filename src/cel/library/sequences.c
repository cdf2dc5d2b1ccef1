#include "cel/library/sequences.h"

#include "cel/check/function.h"
#include "cel/library/lists.h"
#include "cel/value/container.h"
#include "codec/go_sort.h"

enum {
    COST_BASE = 11,      /* the call and a list */
    STEPS_PER_ITEM = 16, /* an item costs as much as a function */
};

/* Items that a list is made of; the list has room for them. */
static struct cel_value list_of(struct cel_work *work, const struct cel_value *items,
                                uint32_t count)
{
    struct cel_value list = cel_list_new(work, count);
    if (cel_is_error(list) || (count && !items))
        return CEL_NO_MEMORY;
    work->steps_left -= count;
    if (count)
        memcpy(list.array->items, items, count * sizeof(*items));
    list.array->count = list.count = count;
    return list;
}

static struct cel_value slice(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_LIST || args[1].kind != CEL_INT || args[2].kind != CEL_INT)
        return CEL_NO_OVERLOAD;
    long long begin = args[1].i64, end = args[2].i64;
    if (begin < 0 || end < 0)
        return cel_of_error_format(work, "cannot slice(%lld, %lld), negative indexes not supported",
                                   begin, end);
    if (begin > end)
        return cel_of_error_format(
            work, "cannot slice(%lld, %lld), start index must be less than or equal to end index",
            begin, end);
    if (end > args[0].count)
        return cel_of_error_format(work, "cannot slice(%lld, %lld), list is length %u", begin, end,
                                   args[0].count);
    const struct cel_value *items = cel_list_items(work, args[0]);
    return list_of(work, items ? items + begin : NULL, (uint32_t)(end - begin));
}

static struct cel_value reverse(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_LIST)
        return CEL_NO_OVERLOAD;
    uint32_t count = args[0].count;
    struct cel_value list = list_of(work, cel_list_items(work, args[0]), count);
    if (cel_is_error(list))
        return list;
    struct cel_value *items = list.array->items;
    for (uint32_t i = 0; i < count / 2; i++) {
        struct cel_value item = items[i];
        items[i] = items[count - 1 - i];
        items[count - 1 - i] = item;
    }
    return list;
}

static struct cel_value range(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_INT)
        return CEL_NO_OVERLOAD;
    int64_t count = args[0].i64 < 0 ? 0 : args[0].i64;
    if (count > work->steps_left / STEPS_PER_ITEM || count >= UINT32_MAX)
        return CEL_TOO_MUCH_WORK;
    work->steps_left -= count;
    struct cel_value list = cel_list_new(work, (uint32_t)count);
    for (int64_t i = 0; i < count && !cel_is_error(list); i++)
        list = cel_list_append(work, list, cel_of_int(i));
    return list;
}

/* -- Flatten -- */

/* A list whose items are being added. */
struct level {
    struct cel_walk walk;
    struct level *outer, *inner;
};

static struct level *descend(struct cel_work *work, struct level *level, struct cel_value list)
{
    if (!level->inner) {
        level->inner = arena_calloc(work->arena, 1, sizeof(*level->inner));
        if (!level->inner)
            return NULL;
        level->inner->outer = level;
    }
    cel_walk_init(&level->inner->walk, work, list);
    return level->inner;
}

static struct cel_value flatten_list(struct cel_work *work, struct cel_value list, int64_t depth)
{
    struct level outermost = {0}, *level = &outermost;
    struct cel_value index, item, flat = cel_list_new(work, list.count);
    if (depth < 0)
        return CEL_FAIL("level must be non-negative");
    cel_walk_init(&outermost.walk, work, list);
    while (level && work->steps_left >= 0 && !cel_is_error(flat)) {
        work->steps_left--;
        if (!cel_walk_next(&level->walk, &index, &item)) {
            level = level->outer;
            depth += level != NULL;
        } else if (item.kind == CEL_LIST && depth > 0) {
            level = descend(work, level, item);
            depth--;
            if (!level)
                return CEL_NO_MEMORY;
        } else {
            flat = cel_list_append(work, flat, item);
        }
    }
    return flat;
}

/* How Go writes the type of a value. */
static const char *type_text(struct cel_value value)
{
    switch ((enum cel_value_kind)value.kind) {
    case CEL_LIST:
        return "list(dyn)";
    case CEL_MAP:
        return "map(dyn, dyn)";
    case CEL_OPTIONAL:
        return "optional_type(dyn)";
    default:
        return cel_value_type_name(value);
    }
}

static struct cel_value flatten(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_LIST)
        return cel_of_error_format(work, "no such overload: %s.flatten()", type_text(args[0]));
    return flatten_list(work, args[0], 1);
}

static struct cel_value flatten_to(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_LIST || args[1].kind != CEL_INT)
        return cel_of_error_format(work, "no such overload: %s.flatten(%s)", type_text(args[0]),
                                   type_text(args[1]));
    return flatten_list(work, args[0], args[1].i64);
}

/* -- Sort -- */

struct sorting {
    struct cel_work *work;
    const struct cel_value *keys;
};

static bool is_before(void *context, uint32_t a, uint32_t b)
{
    const struct sorting *sorting = context;
    struct cel_value error, key = sorting->keys[a];
    int order;
    sorting->work->steps_left--;
    if (key.kind == CEL_STRING || key.kind == CEL_BYTES)
        sorting->work->steps_left -= (int64_t)(key.length / 64);
    return sorting->work->steps_left >= 0 && cel_compare(key, sorting->keys[b], &order, &error) &&
           order < 0;
}

static struct cel_value sort_list(struct cel_work *work, struct cel_value list,
                                  struct cel_value keys)
{
    uint32_t count = list.count;
    if (count != keys.count)
        return cel_of_error_format(work,
                                   "@sortByAssociatedKeys() expected a list of the same size as "
                                   "the associated keys list, but got %u and %u elements "
                                   "respectively",
                                   count, keys.count);
    if (!count)
        return list;
    struct sorting sorting = {work, cel_list_items(work, keys)};
    const struct cel_value *items = cel_list_items(work, list);
    uint32_t *order = arena_calloc(work->arena, count, sizeof(*order));
    struct cel_value sorted = list_of(work, items, count);
    if (!sorting.keys || !order || cel_is_error(sorted))
        return CEL_NO_MEMORY;
    if (!cel_is_ordered(sorting.keys[0]))
        return CEL_FAIL("list elements must be comparable");
    for (uint32_t i = 0; i < count; i++) {
        if (sorting.keys[i].kind != sorting.keys[0].kind)
            return CEL_FAIL("list elements must have the same type");
        order[i] = i;
    }
    go_sort(order, count, is_before, &sorting);
    for (uint32_t i = 0; i < count; i++)
        sorted.array->items[i] = items[order[i]];
    return sorted;
}

static struct cel_value sort(struct cel_work *work, const struct cel_value *args)
{
    return sort_list(work, args[0], args[0]);
}

static struct cel_value sort_by_keys(struct cel_work *work, const struct cel_value *args)
{
    if (args[1].kind != CEL_LIST)
        return CEL_NO_OVERLOAD;
    return sort_list(work, args[0], args[1]);
}

static struct cel_value distinct(struct cel_work *work, const struct cel_value *args)
{
    if (args[0].kind != CEL_LIST)
        return CEL_NO_OVERLOAD;
    const struct cel_value *items = cel_list_items(work, args[0]);
    struct cel_value list = cel_list_new(work, args[0].count);
    if (cel_is_error(list) || (args[0].count && !items))
        return CEL_NO_MEMORY;
    for (uint32_t i = 0; i < args[0].count && work->steps_left >= 0; i++) {
        bool seen = false;
        for (uint32_t j = 0; j < list.count && !seen && work->steps_left >= 0; j++) {
            work->steps_left -= STEPS_PER_ITEM;
            seen = cel_is_true(cel_equal(work, items[i], list.array->items[j]));
        }
        if (!seen)
            list = cel_list_append(work, list, items[i]);
    }
    return list;
}

/* -- Cost -- */

static uint64_t cost_of_result(struct cel_work *work, const struct cel_called *call)
{
    (void)work;
    return COST_BASE + cel_cost_size_shallow(call->result);
}

static uint64_t cost_of_range(struct cel_work *work, const struct cel_called *call)
{
    (void)work;
    /* The result is missing where it would have been too long. */
    if (call->args[0].kind != CEL_INT)
        return COST_BASE + 1;
    return COST_BASE + (call->args[0].i64 < 0 ? 0 : (uint64_t)call->args[0].i64);
}

static uint64_t cost_of_flatten(struct cel_work *work, const struct cel_called *call)
{
    uint64_t size = cel_cost_size_shallow(call->args[0]);
    if (call->count == 1)
        return COST_BASE + size;
    if (call->args[1].kind != CEL_INT) {
        cel_end(work,
                cel_of_error_format(
                    work, "internal error: interface conversion: ref.Val is %s, not types.Int",
                    cel_value_go_type(call->args[1])));
        return 0;
    }
    /* In cel-go a negative depth takes the cost of other calls back. */
    double depth = call->args[1].i64 < 0 ? 0 : (double)call->args[1].i64;
    double cost = (double)size * depth;
    return cost < 1e18 ? COST_BASE + (uint64_t)cost : UINT64_MAX;
}

/* Every item is compared with every other, and texts take longer. */
static uint64_t cost_of_comparing(struct cel_work *work, struct cel_value list)
{
    if (list.kind != CEL_LIST) {
        cel_panic_not_list(work, list);
        return 0;
    }
    if (!list.count)
        return COST_BASE;
    struct cel_value first = cel_list_at(work, list, 0);
    bool has_texts = first.kind == CEL_STRING || first.kind == CEL_BYTES;
    double factor = has_texts ? 2.0 + 0.1 : 2.0;
    return COST_BASE + (uint64_t)((double)((uint64_t)list.count * list.count) * factor);
}

static uint64_t cost_of_distinct(struct cel_work *work, const struct cel_called *call)
{
    return cost_of_comparing(work, call->args[0]);
}

static uint64_t cost_of_sort(struct cel_work *work, const struct cel_called *call)
{
    return call->overload < 0 ? 1 : cost_of_comparing(work, call->args[call->count - 1]);
}

static const struct cel_builtin rows[] = {
    {"slice", 3, slice, true, 0, cost_of_result},
    {"reverse", 1, reverse, true, 0, cost_of_result},
    {"lists.range", 1, range, true, 0, cost_of_range},
    {"flatten", 1, flatten, false, 0, cost_of_flatten},
    {"flatten", 2, flatten_to, false, 0, cost_of_flatten},
    {"sort", 1, sort, false, 1 << CEL_LIST, cost_of_sort},
    {"@sortByAssociatedKeys", 2, sort_by_keys, false, 1 << CEL_LIST, cost_of_sort},
    {"distinct", 1, distinct, true, 0, cost_of_distinct},
};

const struct cel_library cel_sequences = CEL_LIBRARY(rows);
