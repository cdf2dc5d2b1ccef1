#include "cel/library/lists.h"

#include "cel/check/function.h"
#include "cel/library/operators.h"
#include "cel/value/container.h"

/* An error that does not name the types of the arguments. */
#define NO_OVERLOAD_PLAIN CEL_FAIL("no such overload")

const struct cel_value *cel_list_items(struct cel_work *work, struct cel_value list)
{
    struct cel_walk walk;
    struct cel_value index;
    if (!list.is_view && !list.shape)
        return list.array->items;
    struct cel_value *items = arena_alloc(work->arena, list.count * sizeof(*items));
    if (!items)
        return NULL;
    work->steps_left -= list.count;
    cel_walk_init(&walk, work, list);
    struct cel_value *next = items;
    while (cel_walk_next(&walk, &index, next))
        next++;
    return items;
}

bool cel_is_ordered(struct cel_value value)
{
    switch ((enum cel_value_kind)value.kind) {
    case CEL_BOOL:
    case CEL_INT:
    case CEL_UINT:
    case CEL_DOUBLE:
    case CEL_STRING:
    case CEL_BYTES:
    case CEL_DURATION:
    case CEL_TIMESTAMP:
        return true;
    default:
        return false;
    }
}

/* -- Order -- */

/* False: cel-go has an overload for lists with such a first item. */
static bool has_no_overload(struct cel_work *work, struct cel_value list)
{
    if (list.kind != CEL_LIST)
        return true;
    return list.count && !cel_is_ordered(cel_list_at(work, list, 0));
}

/* Their order, or 0 if they have none: what cannot be compared is taken for equal. */
static int order_of(struct cel_work *work, struct cel_value a, struct cel_value b)
{
    int order;
    struct cel_value error;
    work->steps_left--;
    if (a.kind == CEL_STRING || a.kind == CEL_BYTES)
        work->steps_left -= (int64_t)(a.length / 64);
    return cel_compare(a, b, &order, &error) ? order : 0;
}

static struct cel_value is_sorted(struct cel_work *work, const struct cel_value *args)
{
    struct cel_walk walk;
    struct cel_value index, item, last = {0};
    if (has_no_overload(work, args[0]))
        return CEL_NO_OVERLOAD;
    cel_walk_init(&walk, work, args[0]);
    while (cel_walk_next(&walk, &index, &item)) {
        if (!cel_is_ordered(item))
            return NO_OVERLOAD_PLAIN;
        if (walk.next > 1 && order_of(work, last, item) > 0)
            return cel_of_bool(false);
        last = item;
    }
    return cel_of_bool(true);
}

/* The first item that none precedes, where `sign` is 1; or that none follows, where it is -1. */
static struct cel_value extreme(struct cel_work *work, struct cel_value list, int sign,
                                struct cel_value if_empty)
{
    struct cel_walk walk;
    struct cel_value index, item, best = if_empty;
    if (has_no_overload(work, list))
        return CEL_NO_OVERLOAD;
    cel_walk_init(&walk, work, list);
    while (cel_walk_next(&walk, &index, &item)) {
        if (!cel_is_ordered(item))
            return NO_OVERLOAD_PLAIN;
        if (walk.next == 1 || sign * order_of(work, best, item) > 0)
            best = item;
    }
    return best;
}

static struct cel_value min(struct cel_work *work, const struct cel_value *args)
{
    return extreme(work, args[0], 1, CEL_FAIL("min called on empty list"));
}

static struct cel_value max(struct cel_work *work, const struct cel_value *args)
{
    return extreme(work, args[0], -1, CEL_FAIL("max called on empty list"));
}

/* -- Sums -- */

/* The sum of no items; of a kind without a sum, an error. */
static struct cel_value zero_like(struct cel_value item)
{
    switch ((enum cel_value_kind)item.kind) {
    case CEL_INT:
        return cel_of_int(0);
    case CEL_UINT:
        return cel_of_uint(0);
    case CEL_DOUBLE:
        return cel_of_double(0);
    case CEL_DURATION:
        return (struct cel_value){.kind = CEL_DURATION};
    default:
        return CEL_NO_OVERLOAD;
    }
}

/* The sum of an empty list, for which only the checker knows what it is. */
static struct cel_value sum_of_none(int overload)
{
    switch (overload) {
    case CEL_OVERLOAD_LIST_UINT_SUM_UINT:
        return cel_of_uint(0);
    case CEL_OVERLOAD_LIST_DOUBLE_SUM_DOUBLE:
        return cel_of_double(0);
    case CEL_OVERLOAD_LIST_DURATION_SUM_DURATION:
        return (struct cel_value){.kind = CEL_DURATION};
    default:
        return cel_of_int(0);
    }
}

static struct cel_value sum(struct cel_work *work, const struct cel_value *args)
{
    struct cel_walk walk;
    struct cel_value index, terms[2];
    if (args[0].kind != CEL_LIST)
        return CEL_NO_OVERLOAD;
    if (!args[0].count)
        return sum_of_none(work->overload);
    terms[0] = zero_like(cel_list_at(work, args[0], 0));
    if (cel_is_error(terms[0]))
        return terms[0];
    cel_walk_init(&walk, work, args[0]);
    while (cel_walk_next(&walk, &index, &terms[1])) {
        work->steps_left--;
        terms[0] = cel_add(work, terms);
        if (cel_is_error(terms[0]))
            return cel_is_no_overload(terms[0]) ? NO_OVERLOAD_PLAIN : terms[0];
    }
    return terms[0];
}

static const struct cel_builtin rows[] = {
    {"isSorted", 1, is_sorted, true, 0, cel_cost_of_items},
    {"sum", 1, sum, true, 0, cel_cost_of_items},
    {"min", 1, min, true, 0, cel_cost_of_items},
    {"max", 1, max, true, 0, cel_cost_of_items},
};

const struct cel_library cel_lists = CEL_LIBRARY(rows);
