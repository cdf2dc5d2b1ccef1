#include "cel/value/memo.h"

enum {
    BUCKETS = 256,
    NEAR_ITEMS = 32,       /* an item before this one is found by counting */
    SHORT_TEXT_BYTES = 64, /* a text that is not longer is decoded again */
};

struct cel_memo {
    struct cel_memo *next;
    const struct json_node *node;
    const struct json_node **items; /* the items of a list */
    struct slice text;              /* the value of a string */
};

/* A new one has neither items nor a text. NULL: no memory. */
static struct cel_memo *memo_of(struct cel_work *work, const struct json_node *node)
{
    if (!work->memos)
        work->memos = arena_calloc(work->arena, BUCKETS, sizeof(struct cel_memo *));
    if (!work->memos)
        return NULL;
    struct cel_memo **bucket = &work->memos[(uintptr_t)node / sizeof(*node) % BUCKETS];
    struct cel_memo *memo = *bucket;
    for (; memo && memo->node != node; memo = memo->next)
        work->steps_left--;
    if (memo)
        return memo;
    memo = arena_calloc(work->arena, 1, sizeof(*memo));
    if (!memo)
        return NULL;
    memo->node = node;
    memo->next = *bucket;
    return *bucket = memo;
}

const struct json_node *cel_memo_item(struct cel_work *work, const struct json_node *list,
                                      uint32_t index)
{
    if (index < NEAR_ITEMS)
        return json_look_item(list, index);
    struct cel_memo *memo = memo_of(work, list);
    if (!memo)
        return NULL;
    if (!memo->items) {
        const struct json_node **items = arena_calloc(work->arena, list->count, sizeof(*items));
        if (!items)
            return NULL;
        work->steps_left -= list->count;
        memo->items = items;
        for (const struct json_node *item = list->first; item; item = item->next)
            *items++ = item;
    }
    return memo->items[index];
}

enum status cel_memo_text(struct cel_work *work, const struct json_node *node,
                          struct slice *ret_text)
{
    if (!node->escaped || node->text.len <= SHORT_TEXT_BYTES)
        return json_node_text(node, work->arena, ret_text);
    struct cel_memo *memo = memo_of(work, node);
    if (!memo)
        return ST_NOMEM;
    if (!memo->text.ptr) {
        work->steps_left -= (int64_t)(node->text.len / 64);
        TRY(json_node_text(node, work->arena, &memo->text));
    }
    *ret_text = memo->text;
    return ST_OK;
}
