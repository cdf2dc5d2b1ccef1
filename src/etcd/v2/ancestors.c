#include "etcd/v2/ancestors.h"

enum status v2_ancestors_start(struct engine_shard *shard, struct v2_ancestors *ancestors,
                               const struct v2_key *key)
{
    ancestors->key = key;
    for (size_t i = 1; i <= key->depth; i++)
        ancestors->ranges[i - 1] = (struct pb_range_request){.key = v2_key_part(key, i)};
    struct slice first, end;
    TRY(v2_key_first_child(ancestors->write.op.arena, key->key, &first));
    TRY(v2_key_end(ancestors->write.op.arena, key->key, &end));
    ancestors->ranges[key->depth] =
        (struct pb_range_request){.key = first, .range_end = end, .count_only = true};
    for (size_t i = 0; i <= key->depth; i++)
        ancestors->ops[i] = (struct pb_request_op){
            .request_case = PB_REQUEST_OP_REQUEST_RANGE,
            .request_range = &ancestors->ranges[i],
        };
    ancestors->txn =
        (struct pb_txn_request){.success = ancestors->ops, .success_count = key->depth + 1};
    engine_txn(shard, &ancestors->write, &ancestors->txn);
    return ST_OK;
}

static enum status take_nodes(struct v2_ancestors *ancestors, int64_t real_ns)
{
    const struct kv_txn_answer *txn = &ancestors->write.answer.txn;
    size_t depth = ancestors->key->depth;
    assert(txn->answer_count == depth + 1);
    ancestors->value = SLICE_EMPTY;
    for (size_t i = 1; i <= depth; i++) {
        const struct kv_range_answer *range = &txn->answers[i - 1].range;
        struct v2_node *node = &ancestors->nodes[i];
        *node = (struct v2_node){.key = v2_key_part(ancestors->key, i)};
        if (range->field_count == 0)
            continue;
        /* A v3 client has written something else where a node should be. */
        if (!v2_node_read(range->fields[0], node))
            return ST_MALFORMED;
        if (v2_node_is_expired(node, real_ns)) {
            /* The node is treated as missing, but its revision is kept, because a write must
             * compare the key that is still in the store. */
            *node =
                (struct v2_node){.key = v2_key_part(ancestors->key, i), .revision = node->revision};
            continue;
        }
        if (i == depth)
            TRY(arena_dup(ancestors->write.op.arena, node->value, &ancestors->value));
        node->key = v2_key_part(ancestors->key, i);
        node->value = SLICE_EMPTY;
    }
    ancestors->nodes[depth].value = ancestors->value;
    ancestors->has_children = txn->answers[depth].range.count > 0;
    ancestors->revision = ancestors->write.op.revision;
    return ST_OK;
}

enum status v2_ancestors_take(struct v2_ancestors *ancestors, int64_t real_ns)
{
    enum status status = ancestors->write.op.status;
    if (status == ST_OK)
        status = take_nodes(ancestors, real_ns);
    engine_write_close(&ancestors->write);
    return status;
}

size_t v2_ancestors_first_gap(const struct v2_ancestors *ancestors, size_t depth)
{
    for (size_t i = 1; i <= depth; i++) {
        if (!ancestors->nodes[i].modified || (i < depth && !ancestors->nodes[i].dir))
            return i;
    }
    return depth + 1;
}
