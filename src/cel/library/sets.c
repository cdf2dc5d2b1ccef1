#include "cel/library/sets.h"

#include "cel/library/lists.h"
#include "cel/value/container.h"

/* A call whose cost is too high, which is known only behind it, ends earlier. */
enum { STEPS_PER_PAIR = 16 };

/* Whether all items of `part` are in the list; or, with `any`, one of them. */
static bool has_items(struct cel_work *work, struct cel_value list, struct cel_value part, bool any)
{
    struct cel_walk walk;
    struct cel_value index, item;
    const struct cel_value *items = cel_list_items(work, list);
    uint32_t count = items ? list.count : 0;
    cel_walk_init(&walk, work, part);
    while (work->steps_left >= 0 && cel_walk_next(&walk, &index, &item)) {
        bool found = false;
        for (uint32_t i = 0; i < count && !found && work->steps_left >= 0; i++) {
            work->steps_left -= STEPS_PER_PAIR;
            found = cel_is_true(cel_equal(work, item, items[i]));
        }
        if (found == any)
            return any;
    }
    return !any;
}

static bool are_lists(const struct cel_value *args)
{
    return args[0].kind == CEL_LIST && args[1].kind == CEL_LIST;
}

static struct cel_value contains(struct cel_work *work, const struct cel_value *args)
{
    return are_lists(args) ? cel_of_bool(has_items(work, args[0], args[1], false))
                           : CEL_NO_OVERLOAD;
}

static struct cel_value equivalent(struct cel_work *work, const struct cel_value *args)
{
    return are_lists(args) ? cel_of_bool(has_items(work, args[0], args[1], false) &&
                                         has_items(work, args[1], args[0], false))
                           : CEL_NO_OVERLOAD;
}

static struct cel_value intersects(struct cel_work *work, const struct cel_value *args)
{
    return are_lists(args) ? cel_of_bool(has_items(work, args[1], args[0], true)) : CEL_NO_OVERLOAD;
}

/* -- Cost -- */

static uint64_t count_pairs(const struct cel_value *args)
{
    return cel_cost_size_shallow(args[0]) * cel_cost_size_shallow(args[1]);
}

static uint64_t cost_once(struct cel_work *work, const struct cel_called *call)
{
    (void)work;
    return 1 + count_pairs(call->args);
}

static uint64_t cost_twice(struct cel_work *work, const struct cel_called *call)
{
    (void)work;
    return 1 + 2 * count_pairs(call->args);
}

static const struct cel_builtin rows[] = {
    {"sets.contains", 2, contains, true, 0, cost_once},
    {"sets.equivalent", 2, equivalent, true, 0, cost_twice},
    {"sets.intersects", 2, intersects, true, 0, cost_once},
};

const struct cel_library cel_sets = CEL_LIBRARY(rows);
