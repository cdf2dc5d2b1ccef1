/*
 * Items of long arrays by their places, as a JSON patch names them: finding, inserting and
 * removing one takes a few hundred short steps in an array of 100,000.
 *
 * An array of more than a few items is cut into spans when an item is first looked for: each knows
 * its first item and how many it has. The functions here keep them; json_node_insert and
 * json_node_remove (codec/json/tree.h) drop them, and they are made again. They lie in the arena.
 */
#ifndef VIGIL_CODEC_JSON_SPANS_H
#define VIGIL_CODEC_JSON_SPANS_H

#include "codec/json/tree.h"

/* NULL: there is none. ST_NOMEM. */
MUST_CHECK
enum status json_spans_item(struct arena *arena, struct json_node *array, size_t at,
                            struct json_node **ret_item);
/* Before the item at that place, which is at most the number of them. ST_NOMEM, ST_LIMIT. */
MUST_CHECK
enum status json_spans_insert(struct arena *arena, struct json_node *array, size_t at,
                              struct json_node *item);
/* There must be one at that place. ST_NOMEM. */
MUST_CHECK
enum status json_spans_remove(struct arena *arena, struct json_node *array, size_t at);

/* Asserts that the spans of an array, if it has any, are its items. */
void json_spans_check(const struct json_node *array);

#endif
