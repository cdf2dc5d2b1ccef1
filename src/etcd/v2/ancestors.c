#include "etcd/v2/ancestors.h"

enum status v2_chain_start(struct engine_shard *shard, struct v2_chain *chain,
                           const struct v2_key *key)
{
    chain->key = key;
    for (size_t i = 1; i <= key->depth; i++)
        chain->ranges[i - 1] = (struct pb_range_request){.key = v2_key_part(key, i)};
    struct slice first, end;
    TRY(v2_key_first_child(chain->write.op.arena, key->key, &first));
    TRY(v2_key_end(chain->write.op.arena, key->key, &end));
    chain->ranges[key->depth] =
        (struct pb_range_request){.key = first, .range_end = end, .count_only = true};
    for (size_t i = 0; i <= key->depth; i++)
        chain->ops[i] = (struct pb_request_op){
            .request_case = PB_REQUEST_OP_REQUEST_RANGE,
            .request_range = &chain->ranges[i],
        };
    chain->txn = (struct pb_txn_request){.success = chain->ops, .success_count = key->depth + 1};
    engine_txn(shard, &chain->write, &chain->txn);
    return ST_OK;
}

/* What a change must know of one that is not there any more: that it is still in the store. */
static void forget_node(struct v2_node *node)
{
    *node = (struct v2_node){.key = node->key, .revision = node->revision};
}

static enum status take_nodes(struct v2_chain *chain, int64_t real_ns)
{
    const struct kv_txn_answer *txn = &chain->write.answer.txn;
    size_t depth = chain->key->depth;
    assert(txn->answer_count == depth + 1);
    chain->value = SLICE_EMPTY;
    for (size_t i = 1; i <= depth; i++) {
        const struct kv_range_answer *range = &txn->answers[i - 1].range;
        struct v2_node *node = &chain->nodes[i];
        *node = (struct v2_node){.key = v2_key_part(chain->key, i)};
        if (range->field_count == 0)
            continue;
        /* Something of a v3 client's where a node should be. */
        if (!v2_node_read(range->fields[0], node))
            return ST_MALFORMED;
        if (v2_node_is_over(node, real_ns)) {
            node->key = v2_key_part(chain->key, i);
            forget_node(node);
            continue;
        }
        if (i == depth)
            TRY(arena_dup(chain->write.op.arena, node->value, &chain->value));
        node->key = v2_key_part(chain->key, i);
        node->value = SLICE_EMPTY;
    }
    chain->nodes[depth].value = chain->value;
    chain->has_children = txn->answers[depth].range.count > 0;
    chain->revision = chain->write.op.revision;
    return ST_OK;
}

enum status v2_chain_take(struct v2_chain *chain, int64_t real_ns)
{
    enum status status = chain->write.op.status;
    if (status == ST_OK)
        status = take_nodes(chain, real_ns);
    engine_write_close(&chain->write);
    return status;
}

size_t v2_chain_broken(const struct v2_chain *chain, size_t depth)
{
    for (size_t i = 1; i <= depth; i++) {
        if (!chain->nodes[i].modified || (i < depth && !chain->nodes[i].dir))
            return i;
    }
    return depth + 1;
}
