#include "etcd/v2/policy_store.h"

#include "etcd/service/key_reader.h"

void v2_vault_fini(struct v2_vault *vault)
{
    buf_fini(&vault->text);
}

void v2_vault_read(struct v2_vault *vault, struct engine_shard *shard, struct arena *arena,
                   void (*done)(struct engine_op *op))
{
    vault->range = (struct engine_range){.op = {.done = done, .arena = arena}};
    vault->request = (struct pb_range_request){.key = SLICE_LITERAL(V2_POLICY_KEY)};
    engine_range_start(shard, &vault->range, &vault->request);
}

static enum status take(struct v2_vault *vault, struct slice field, struct v2_policy *ret_policy)
{
    struct arena *arena = vault->range.op.arena;
    struct pb_key_value kv;
    struct slice text;
    TRY(look_decode(field, arena, &kv));
    if (kv.value.len == 0)
        return ST_MALFORMED;
    TRY(arena_dup(arena, kv.value, &text));
    TRY(v2_policy_read(arena, text, ret_policy));
    vault->revision = kv.mod_revision;
    return ST_OK;
}

enum status v2_vault_take(struct v2_vault *vault, struct v2_policy *ret_policy)
{
    struct slice field;
    enum status status = vault->range.op.status;
    if (status != ST_OK)
        return status;
    vault->revision = 0;
    if (engine_range_next(&vault->range, &field))
        status = take(vault, field, ret_policy);
    else if (vault->range.count)
        status = ST_AGAIN; /* it is there, and could not be read */
    else
        *ret_policy = (struct v2_policy){0};
    engine_range_close(&vault->range);
    return status;
}

enum status v2_vault_write(struct v2_vault *vault, struct engine_shard *shard, struct arena *arena,
                           const struct v2_policy *policy, void (*done)(struct engine_op *op))
{
    vault->text.len = 0;
    TRY(v2_policy_write(policy, &vault->text));
    struct slice key = SLICE_LITERAL(V2_POLICY_KEY);
    vault->compare = (struct pb_compare){
        .result = PB_COMPARE_RESULT_EQUAL,
        .target = PB_COMPARE_TARGET_MOD,
        .key = key,
        .target_union_case = PB_COMPARE_MOD_REVISION,
        .mod_revision = vault->revision,
    };
    vault->put = (struct pb_put_request){.key = key, .value = buf_slice(&vault->text)};
    vault->op = (struct pb_request_op){
        .request_case = PB_REQUEST_OP_REQUEST_PUT,
        .request_put = &vault->put,
    };
    vault->txn = (struct pb_txn_request){
        .compare = &vault->compare,
        .compare_count = 1,
        .success = &vault->op,
        .success_count = 1,
    };
    vault->write = (struct engine_write){.op = {.done = done, .arena = arena}};
    engine_txn(shard, &vault->write, &vault->txn);
    return ST_OK;
}

enum status v2_vault_written(struct v2_vault *vault)
{
    enum status status = vault->write.op.status;
    if (status == ST_OK && !vault->write.answer.txn.succeeded)
        status = ST_AGAIN;
    engine_write_close(&vault->write);
    return status;
}
