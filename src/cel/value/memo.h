/*
 * What an evaluation remembers of the JSON that it looks at, because finding it again takes long:
 * the items of a long list by their index, and a long text without its escapes. A rule may look at
 * each of 100,000 items by its index, or at one text for each of them, at a cost of 1.
 *
 * In the arena of the evaluation, from the first use on.
 */
#ifndef VIGIL_CEL_VALUE_MEMO_H
#define VIGIL_CEL_VALUE_MEMO_H

#include "cel/value/work.h"
#include "codec/json/tree.h"

/* NULL: no memory. The list has more items. */
const struct json_node *cel_memo_item(struct cel_work *work, const struct json_node *list,
                                      uint32_t index);
/* The text of a string. ST_NOMEM. */
MUST_CHECK
enum status cel_memo_text(struct cel_work *work, const struct json_node *node,
                          struct slice *ret_text);

#endif
