#include "engine/local/writer/look_ahead.h"

#include "store/mvcc/prefetch.h"

const struct mailbox_node *local_look_ahead(const struct applier *applier,
                                            const struct mailbox_node *node)
{
    const struct pb_put_request *puts[PREFETCH_PUTS_MAX];
    size_t count = 0;
    for (; node && count < PREFETCH_PUTS_MAX; node = node->next) {
        const struct engine_op *op = CONTAINER_OF(node, const struct engine_op, in_mailbox);
        if (op->kind != ENGINE_PUT)
            break;
        puts[count++] = op->request;
    }
    if (count == 0)
        return node->next;
    prefetch_puts(applier, puts, count);
    return node;
}
