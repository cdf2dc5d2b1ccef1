#include "etcd/service/key_change.h"

static void start(struct engine_shard *shard, struct key_change *change, struct slice key,
                  int64_t create_revision)
{
    change->compare = (struct pb_compare){
        .result = PB_COMPARE_RESULT_EQUAL,
        .target = PB_COMPARE_TARGET_CREATE,
        .key = key,
        .target_union_case = PB_COMPARE_CREATE_REVISION,
        .create_revision = create_revision,
    };
    change->read = (struct pb_range_request){.key = key};
    change->otherwise = (struct pb_request_op){
        .request_case = PB_REQUEST_OP_REQUEST_RANGE,
        .request_range = &change->read,
    };
    change->txn = (struct pb_txn_request){
        .compare = &change->compare,
        .compare_count = 1,
        .success = &change->then,
        .success_count = 1,
        .failure = &change->otherwise,
        .failure_count = 1,
    };
    engine_txn(shard, &change->write, &change->txn);
}

void key_change_put(struct engine_shard *shard, struct key_change *change, struct slice key,
                    int64_t create_revision, struct slice value, int64_t lease)
{
    change->put = (struct pb_put_request){.key = key, .value = value, .lease = lease};
    change->then = (struct pb_request_op){
        .request_case = PB_REQUEST_OP_REQUEST_PUT,
        .request_put = &change->put,
    };
    start(shard, change, key, create_revision);
}

void key_change_delete(struct engine_shard *shard, struct key_change *change, struct slice key,
                       int64_t create_revision)
{
    change->removal = (struct pb_delete_range_request){.key = key};
    change->then = (struct pb_request_op){
        .request_case = PB_REQUEST_OP_REQUEST_DELETE_RANGE,
        .request_delete_range = &change->removal,
    };
    start(shard, change, key, create_revision);
}
