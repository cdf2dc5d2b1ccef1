/*
 * Items of long arrays by index, as a JSON patch names them: finding, inserting and removing one
 * takes a few hundred short steps in an array of 100,000.
 *
 * An array of more than a few items is divided into spans when an item is first looked up; each
 * span knows its first item and their number. The functions here maintain the spans;
 * json_node_insert and json_node_remove (codec/json/tree.h) drop them, and they are made again.
 * They are in the arena.
 */
#ifndef VIGIL_CODEC_JSON_SPANS_H
#define VIGIL_CODEC_JSON_SPANS_H

#include "codec/json/tree.h"

/* NULL: the index is beyond the last item. ST_NOMEM. */
MUST_CHECK
enum status json_spans_item(struct arena *arena, struct json_node *array, size_t at,
                            struct json_node **ret_item);
/* Inserts before the item at this index, which is at most the number of items. ST_NOMEM, ST_LIMIT.
 */
MUST_CHECK
enum status json_spans_insert(struct arena *arena, struct json_node *array, size_t at,
                              struct json_node *item);
/* The index must exist. ST_NOMEM. */
MUST_CHECK
enum status json_spans_remove(struct arena *arena, struct json_node *array, size_t at);

/* Asserts that the spans of an array, if it has any, contain its items. */
void json_spans_check(const struct json_node *array);

#endif
