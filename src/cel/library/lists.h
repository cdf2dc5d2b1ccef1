/*
 * Kubernetes' functions on lists: isSorted, sum, min and max; and what the other libraries of
 * lists share with them. indexOf and lastIndexOf are in places.h, with those of texts.
 */
#ifndef VIGIL_CEL_LIBRARY_LISTS_H
#define VIGIL_CEL_LIBRARY_LISTS_H

#include "cel/library/library.h"

extern const struct cel_library cel_lists;

/* The items of a list, in an array that is not to be changed. NULL without memory, and if the list
 * is empty. */
const struct cel_value *cel_list_items(struct cel_work *work, struct cel_value list);

/* Whether Go's values of this kind have an order. */
bool cel_is_ordered(struct cel_value value);

#endif
