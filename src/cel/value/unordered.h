/*
 * Sets and map lists: lists of a schema in which the order does not count. Items are the same if
 * they are equal scalars, or objects with equal keys. As in Kubernetes, numbers are the same only
 * if both are integers or neither is, and a text with a format is never the same as its value.
 */
#ifndef VIGIL_CEL_VALUE_UNORDERED_H
#define VIGIL_CEL_VALUE_UNORDERED_H

#include "cel/value/value.h"

/*
 * Which items of two lists, joined, are the same. first[i] is the first item that is
 * the same as item i, and last[i] the last one of the first list, or CEL_NO_ITEM.
 */
enum { CEL_NO_ITEM = -1 };
struct cel_same {
    struct cel_value *raws; /* the items of both */
    uint32_t count;
    int64_t *first, *last;
};

/* False, with an error: an item cannot be compared. */
MUST_CHECK
bool cel_same_items(struct cel_work *work, struct cel_value a, struct cel_value b,
                    struct cel_same *ret_same, struct cel_value *ret_error);

/* a + b: a set gets the items that it lacks; in a map list, items of b replace those of a. */
struct cel_value cel_unordered_concat(struct cel_work *work, struct cel_value a,
                                      struct cel_value b);

#endif
