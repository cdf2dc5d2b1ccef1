#include "etcd/v2/policy_store.h"

#include "etcd/service/key_reader.h"

void v2_policy_store_fini(struct v2_policy_store *store)
{
    buf_fini(&store->text);
}

void v2_policy_store_read(struct v2_policy_store *store, struct engine_shard *shard,
                          struct arena *arena, void (*done)(struct engine_op *op))
{
    store->range = (struct engine_range){.op = {.done = done, .arena = arena}};
    store->request = (struct pb_range_request){.key = SLICE_LITERAL(V2_POLICY_KEY)};
    engine_range_start(shard, &store->range, &store->request);
}

static enum status take(struct v2_policy_store *store, struct slice field,
                        struct v2_policy *ret_policy)
{
    struct arena *arena = store->range.op.arena;
    struct pb_key_value kv;
    struct slice text;
    TRY(key_value_decode(field, arena, &kv));
    if (kv.value.len == 0)
        return ST_MALFORMED;
    TRY(arena_dup(arena, kv.value, &text));
    TRY(v2_policy_read(arena, text, ret_policy));
    store->revision = kv.mod_revision;
    return ST_OK;
}

enum status v2_policy_store_take(struct v2_policy_store *store, struct v2_policy *ret_policy)
{
    struct slice field;
    enum status status = store->range.op.status;
    if (status != ST_OK)
        return status;
    store->revision = 0;
    if (engine_range_next(&store->range, &field))
        status = take(store, field, ret_policy);
    else if (store->range.count)
        status = ST_AGAIN; /* it exists but could not be read */
    else
        *ret_policy = (struct v2_policy){0};
    engine_range_close(&store->range);
    return status;
}

enum status v2_policy_store_write(struct v2_policy_store *store, struct engine_shard *shard,
                                  struct arena *arena, const struct v2_policy *policy,
                                  void (*done)(struct engine_op *op))
{
    store->text.len = 0;
    TRY(v2_policy_write(policy, &store->text));
    struct slice key = SLICE_LITERAL(V2_POLICY_KEY);
    store->compare = (struct pb_compare){
        .result = PB_COMPARE_RESULT_EQUAL,
        .target = PB_COMPARE_TARGET_MOD,
        .key = key,
        .target_union_case = PB_COMPARE_MOD_REVISION,
        .mod_revision = store->revision,
    };
    store->put = (struct pb_put_request){.key = key, .value = buf_slice(&store->text)};
    store->op = (struct pb_request_op){
        .request_case = PB_REQUEST_OP_REQUEST_PUT,
        .request_put = &store->put,
    };
    store->txn = (struct pb_txn_request){
        .compare = &store->compare,
        .compare_count = 1,
        .success = &store->op,
        .success_count = 1,
    };
    store->write = (struct engine_write){.op = {.done = done, .arena = arena}};
    engine_txn(shard, &store->write, &store->txn);
    return ST_OK;
}

enum status v2_policy_store_written(struct v2_policy_store *store)
{
    enum status status = store->write.op.status;
    if (status == ST_OK && !store->write.answer.txn.succeeded)
        status = ST_AGAIN;
    engine_write_close(&store->write);
    return status;
}
