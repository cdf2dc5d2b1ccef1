/* Lists and maps, whether they are views of JSON or were made by an expression. */
#ifndef VIGIL_CEL_VALUE_CONTAINER_H
#define VIGIL_CEL_VALUE_CONTAINER_H

#include "cel/value/value.h"

/* Items that grow at the end. Values with fewer items share the array, as slices in Go do. */
struct cel_array {
    uint32_t count, room;
    struct cel_value *items;
};

/* The entries of a map that was made by the expression, in their order. Values with fewer entries
 * share the array, and ignore those behind theirs. */
struct cel_entry_array {
    uint32_t count, room;
    bool is_constant;        /* belongs to a program: nothing may be added */
    struct cel_value *pairs; /* key, value, key, value … */
    uint32_t *slots;         /* a hash table of entry numbers + 1; NULL while there are few */
    uint32_t slot_count;
};

/* -- Lists -- */

/* An empty list with room for so many items. An error without memory. */
struct cel_value cel_list_new(struct cel_work *work, uint32_t room);
/* The list with one more item; the list itself keeps its items. An error without memory. */
struct cel_value cel_list_append(struct cel_work *work, struct cel_value list,
                                 struct cel_value item);
/* Both after each other; not for sets and map lists (unordered.h). */
struct cel_value cel_list_concat(struct cel_work *work, struct cel_value a, struct cel_value b);
/* index < list.count */
struct cel_value cel_list_at(struct cel_work *work, struct cel_value list, uint32_t index);

/* -- Maps -- */

struct cel_value cel_map_new(struct cel_work *work, uint32_t room);
/* The map with one more entry; the map itself keeps its entries. The key is a bool, int, uint or
 * string. An error if the key exists already, and without memory. */
struct cel_value cel_map_insert(struct cel_work *work, struct cel_value map, struct cel_value key,
                                struct cel_value value);
/* The same for a new map that nothing else uses: a key of the same type that exists already gets
 * the value. */
struct cel_value cel_map_set(struct cel_work *work, struct cel_value map, struct cel_value key,
                             struct cel_value value);
/* A list or map that becomes a part of a program, so that appending copies it. */
void cel_make_constant(struct cel_value value);
/* False: there is no such key. Numbers of different types are the same key if they are equal. */
MUST_CHECK
bool cel_map_find(struct cel_work *work, struct cel_value map, struct cel_value key,
                  struct cel_value *ret_value);

/* Walks over the items of a list, or the entries of a map. */
struct cel_walk {
    struct cel_work *work;
    struct cel_value over;
    uint32_t next;
    const struct json_node *node; /* the next one of a view */
};

void cel_walk_init(struct cel_walk *walk, struct cel_work *work, struct cel_value over);
/* The index and item of a list, or the key and value of a map. False at the end. */
MUST_CHECK
bool cel_walk_next(struct cel_walk *walk, struct cel_value *ret_key, struct cel_value *ret_value);

/* -- Comparing (compare.c) -- */

/* A bool, or an error. Numbers are compared across types. */
struct cel_value cel_equal(struct cel_work *work, struct cel_value a, struct cel_value b);
/* Negative, zero or positive; false if they have no order, with the error. */
MUST_CHECK
bool cel_compare(struct cel_value a, struct cel_value b, int *ret_order,
                 struct cel_value *ret_error);

#endif
