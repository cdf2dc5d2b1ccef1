#include "cel/library/builtin.h"

#include "cel/check/function.h"
#include "cel/library/address.h"
#include "cel/library/authorizer.h"
#include "cel/library/convert.h"
#include "cel/library/format.h"
#include "cel/library/lists.h"
#include "cel/library/named_format.h"
#include "cel/library/objects.h"
#include "cel/library/operators.h"
#include "cel/library/optional.h"
#include "cel/library/patterns.h"
#include "cel/library/places.h"
#include "cel/library/quantity.h"
#include "cel/library/sequences.h"
#include "cel/library/sets.h"
#include "cel/library/strings.h"
#include "cel/library/texts.h"
#include "cel/library/times.h"
#include "cel/library/url.h"
#include "cel/library/version.h"

/* Sets of kinds of values. */
enum {
    SIGNED =
        1 << CEL_BOOL | 1 << CEL_INT | 1 << CEL_DOUBLE | 1 << CEL_DURATION, /* a bool has a ! */
    WHOLE = 1 << CEL_INT | 1 << CEL_UINT,
    NUMBERS = WHOLE | 1 << CEL_DOUBLE,
    TIMES = 1 << CEL_DURATION | 1 << CEL_TIMESTAMP,
    TEXTS = 1 << CEL_STRING | 1 << CEL_BYTES,
    CONTAINERS = 1 << CEL_LIST | 1 << CEL_MAP,
    ORDERED = 1 << CEL_BOOL | NUMBERS | TEXTS | TIMES,
};

static const struct cel_builtin standard[] = {
    {"!_", 1, cel_not, false, 0, NULL},
    {"-_", 1, cel_negate, false, SIGNED, NULL},
    {"@in", 2, cel_in, false, 0, NULL},
    {"_%_", 2, cel_modulo, false, WHOLE, NULL},
    {"_*_", 2, cel_multiply, false, NUMBERS, NULL},
    {"_+_", 2, cel_add, false, NUMBERS | TEXTS | TIMES | 1 << CEL_LIST, NULL},
    {"_-_", 2, cel_subtract, false, NUMBERS | TIMES, NULL},
    {"_/_", 2, cel_divide, false, NUMBERS, NULL},
    {"_<=_", 2, cel_less_equals, false, ORDERED, NULL},
    {"_<_", 2, cel_less, false, ORDERED, NULL},
    {"_>=_", 2, cel_greater_equals, false, ORDERED, NULL},
    {"_>_", 2, cel_greater, false, ORDERED, NULL},
    {"bool", 1, cel_to_bool, true, 0, NULL},
    {"bytes", 1, cel_to_bytes, true, 0, NULL},
    {"cel.@mapInsert", 2, cel_insert_map, false, 0, NULL},
    {"cel.@mapInsert", 3, cel_insert_entry, false, 0, NULL},
    {"compareTo", 2, cel_compare_to, true, 0, NULL},
    {"contains", 2, cel_contains, false, 0, NULL},
    {"double", 1, cel_to_double, true, 0, NULL},
    {"dyn", 1, cel_dyn, false, 0, NULL},
    {"endsWith", 2, cel_ends_with, false, 0, NULL},
    {"int", 1, cel_to_int, true, 0, NULL},
    {"isGreaterThan", 2, cel_is_greater_than, true, 0, NULL},
    {"isLessThan", 2, cel_is_less_than, true, 0, NULL},
    {"size", 1, cel_size, false, TEXTS | CONTAINERS, NULL},
    {"startsWith", 2, cel_starts_with, false, 0, NULL},
    {"string", 1, cel_to_string, true, 0, NULL},
    {"type", 1, cel_type_of, false, 0, NULL},
    {"uint", 1, cel_to_uint, true, 0, NULL},
};

static const struct cel_library *const libraries[] = {
    &(const struct cel_library)CEL_LIBRARY(standard),
    &cel_strings,
    &cel_places,
    &cel_formats,
    &cel_patterns,
    &cel_urls,
    &cel_optionals,
    &cel_times,
    &cel_lists,
    &cel_sequences,
    &cel_sets,
    &cel_quantities,
    &cel_addresses,
    &cel_versions,
    &cel_patches,
    &cel_named_formats,
    &cel_authorizers,
};

const struct cel_builtin *cel_builtin_find(struct slice function, uint32_t args)
{
    for (size_t i = 0; i < COUNT_OF(libraries); i++)
        for (size_t j = 0; j < libraries[i]->count; j++) {
            const struct cel_builtin *row = &libraries[i]->rows[j];
            if (row->args == args && slice_equal(slice_from_text(row->name), function))
                return row;
        }
    return NULL;
}

/* -- Cost -- */

uint64_t cel_overload_cost(int overload, const struct cel_value *args)
{
    uint64_t a, b;
    switch (overload) {
    case CEL_WITHOUT_COST:
        return 0;
    case CEL_OVERLOAD_STARTS_WITH_STRING:
    case CEL_OVERLOAD_ENDS_WITH_STRING:
    case CEL_OVERLOAD_STRING_TO_BYTES:
    case CEL_OVERLOAD_BYTES_TO_STRING:
        return cel_cost_traversal(cel_cost_size(args[0]));
    case CEL_OVERLOAD_IN_LIST:
        return cel_cost_size(args[1]);
    case CEL_OVERLOAD_LESS_STRING:
    case CEL_OVERLOAD_LESS_EQUALS_STRING:
    case CEL_OVERLOAD_GREATER_STRING:
    case CEL_OVERLOAD_GREATER_EQUALS_STRING:
    case CEL_OVERLOAD_LESS_BYTES:
    case CEL_OVERLOAD_LESS_EQUALS_BYTES:
    case CEL_OVERLOAD_GREATER_BYTES:
    case CEL_OVERLOAD_GREATER_EQUALS_BYTES:
    case CEL_OVERLOAD_EQUALS:
    case CEL_OVERLOAD_NOT_EQUALS:
        a = cel_cost_size(args[0]);
        b = cel_cost_size(args[1]);
        return cel_cost_traversal(a < b ? a : b);
    case CEL_OVERLOAD_ADD_STRING:
    case CEL_OVERLOAD_ADD_BYTES:
        return cel_cost_traversal(cel_cost_size(args[0]) + cel_cost_size(args[1]));
    case CEL_OVERLOAD_CONTAINS_STRING:
        return cel_cost_traversal(cel_cost_size(args[0])) *
               cel_cost_traversal(cel_cost_size(args[1]));
    default:
        return 1;
    }
}
