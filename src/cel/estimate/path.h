/*
 * How an expression reaches a value from a variable, self.items[0].name, to find the size of that
 * value in the type of the variable. As in Kubernetes, all variables have the same type.
 *
 * cel-go keeps paths in slices of Go, and two that were appended to the same slice may share their
 * last step, so that the later one changes the earlier one. Estimates depend on it, and they decide
 * which rules are accepted; therefore paths grow here as slices do.
 */
#ifndef VIGIL_CEL_ESTIMATE_PATH_H
#define VIGIL_CEL_ESTIMATE_PATH_H

#include "cel/check/type.h"
#include "cel/estimate/range.h"

enum cel_step_kind {
    CEL_STEP_FIELD,
    CEL_STEP_ITEMS, /* or the values of a map */
    CEL_STEP_KEYS,
    CEL_STEP_INDICES,
};

struct cel_step;

/* Empty: the value does not come from a variable. The steps are in an arena. */
struct cel_path {
    struct cel_step *steps;
    uint32_t count, room;
};

/* The path with one more step. False without memory. */
MUST_CHECK
bool cel_path_append(struct arena *arena, struct cel_path path, enum cel_step_kind kind,
                     struct slice name, struct cel_path *ret_path);

/* False: the size of the value is not known, or there is no memory. `root` is the type of all
 * variables; the fields of objects are made in the arena. */
MUST_CHECK
bool cel_path_size(struct arena *arena, struct cel_path path, const struct cel_type *root,
                   struct cel_range *ret_size);
/* The same for the items of the list at the path. */
MUST_CHECK
bool cel_path_item_size(struct arena *arena, struct cel_path path, const struct cel_type *root,
                        struct cel_range *ret_size);

#endif
