#include "mirror/answer/write_answer.h"

#include "codec/pb/kv.pb.h"
#include "codec/pb/rpc.pb.h"
#include "codec/pb/wire.h"
#include "mirror/answer/possible.h"

/* -- Key-values -- */

enum { FIELD_KVS = 2 }; /* field of a RangeResponse: the tag 12 */

/* The field is encoded again, so it has the form of the store, whatever the server has sent. */
static enum status field_of(const struct pb_key_value *kv, struct arena *arena,
                            struct slice *ret_field)
{
    size_t len = pb_size(&pb_key_value_table, kv);
    size_t bytes = pb_message_head_size(FIELD_KVS, len) + len;
    uint8_t *field = arena_alloc(arena, bytes);
    if (!field)
        return ST_NOMEM;
    pb_encode(&pb_key_value_table, kv, pb_message_head_write(field, FIELD_KVS, len), len);
    *ret_field = slice_of(field, bytes);
    return ST_OK;
}

static enum status fields_of(const struct pb_key_value *kvs, size_t count, struct arena *arena,
                             const struct slice **ret_fields, uint64_t *ret_bytes)
{
    struct slice *fields = NULL;
    uint64_t bytes = 0;
    if (count) {
        fields = arena_calloc(arena, count, sizeof(*fields));
        if (!fields)
            return ST_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        TRY(field_of(&kvs[i], arena, &fields[i]));
        bytes += fields[i].len;
    }
    *ret_fields = fields;
    *ret_bytes = bytes;
    return ST_OK;
}

/* -- Responses -- */

static int64_t revision_of(const struct pb_response_header *header)
{
    return header ? header->revision : 0;
}

static enum status take_range(const struct pb_range_response *response,
                              const struct pb_range_request *request, struct arena *arena,
                              struct kv_answer *answer)
{
    struct kv_range_answer *range = &answer->range;
    if (!possible_kvs(response->kvs, response->kvs_count, request->key, request->range_end))
        return ST_MALFORMED;
    *answer = (struct kv_answer){
        .kind = KV_ANSWER_RANGE,
        .revision = revision_of(response->header),
        .range = {.field_count = response->kvs_count,
                  .count = response->count,
                  .more = response->more},
    };
    return fields_of(response->kvs, response->kvs_count, arena, &range->fields,
                     &range->fields_bytes);
}

static enum status take_put(const struct pb_put_response *response,
                            const struct pb_put_request *request, struct arena *arena,
                            struct kv_answer *answer)
{
    if (response->prev_kv && !possible_kvs(response->prev_kv, 1, request->key, SLICE_EMPTY))
        return ST_MALFORMED;
    *answer = (struct kv_answer){.kind = KV_ANSWER_PUT, .revision = revision_of(response->header)};
    return response->prev_kv ? field_of(response->prev_kv, arena, &answer->put.prev_field) : ST_OK;
}

static enum status take_delete(const struct pb_delete_range_response *response,
                               const struct pb_delete_range_request *request, struct arena *arena,
                               struct kv_answer *answer)
{
    struct kv_delete_answer *deletion = &answer->delete_range;
    if (!possible_kvs(response->prev_kvs, response->prev_kvs_count, request->key,
                      request->range_end))
        return ST_MALFORMED;
    *answer = (struct kv_answer){
        .kind = KV_ANSWER_DELETE,
        .revision = revision_of(response->header),
        .delete_range = {.deleted = response->deleted,
                         .prev_field_count = response->prev_kvs_count},
    };
    return fields_of(response->prev_kvs, response->prev_kvs_count, arena, &deletion->prev_fields,
                     &deletion->prev_fields_bytes);
}

static enum status take_txn(const struct pb_txn_response *response,
                            const struct pb_txn_request *request, struct arena *arena,
                            struct kv_answer *answer);

/* The cases of a request and its response have the same numbers. */
static enum status take_op(const struct pb_response_op *response,
                           const struct pb_request_op *request, struct arena *arena,
                           struct kv_answer *answer)
{
    if ((int)response->response_case != (int)request->request_case)
        return ST_MALFORMED;
    switch (response->response_case) {
    case PB_RESPONSE_OP_RESPONSE_RANGE:
        return take_range(response->response_range, request->request_range, arena, answer);
    case PB_RESPONSE_OP_RESPONSE_PUT:
        return take_put(response->response_put, request->request_put, arena, answer);
    case PB_RESPONSE_OP_RESPONSE_DELETE_RANGE:
        return take_delete(response->response_delete_range, request->request_delete_range, arena,
                           answer);
    case PB_RESPONSE_OP_RESPONSE_TXN:
        return take_txn(response->response_txn, request->request_txn, arena, answer);
    default:
        return ST_MALFORMED;
    }
}

static enum status take_txn(const struct pb_txn_response *response,
                            const struct pb_txn_request *request, struct arena *arena,
                            struct kv_answer *answer)
{
    const struct pb_request_op *ops = response->succeeded ? request->success : request->failure;
    size_t count = response->succeeded ? request->success_count : request->failure_count;
    struct kv_answer *answers = NULL;
    if (response->responses_count != count)
        return ST_MALFORMED;
    if (count) {
        answers = arena_calloc(arena, count, sizeof(*answers));
        if (!answers)
            return ST_NOMEM;
    }
    for (size_t i = 0; i < count; i++)
        TRY(take_op(&response->responses[i], &ops[i], arena, &answers[i]));
    *answer = (struct kv_answer){
        .kind = KV_ANSWER_TXN,
        .revision = revision_of(response->header),
        .txn = {.succeeded = response->succeeded, .answers = answers, .answer_count = count},
    };
    return ST_OK;
}

/* -- Messages -- */

/* Only the headers inside a transaction may lack a revision. */
static enum status check_revision(const struct kv_answer *answer)
{
    return possible_revision(answer->revision) ? ST_OK : ST_MALFORMED;
}

enum status write_answer_put(struct slice message, const struct pb_put_request *request,
                             struct arena *arena, struct kv_answer *ret_answer)
{
    struct pb_put_response response;
    TRY(pb_decode(&pb_put_response_table, message, arena, &response));
    TRY(take_put(&response, request, arena, ret_answer));
    return check_revision(ret_answer);
}

enum status write_answer_delete(struct slice message, const struct pb_delete_range_request *request,
                                struct arena *arena, struct kv_answer *ret_answer)
{
    struct pb_delete_range_response response;
    TRY(pb_decode(&pb_delete_range_response_table, message, arena, &response));
    TRY(take_delete(&response, request, arena, ret_answer));
    return check_revision(ret_answer);
}

enum status write_answer_txn(struct slice message, const struct pb_txn_request *request,
                             struct arena *arena, struct kv_answer *ret_answer)
{
    struct pb_txn_response response;
    TRY(pb_decode(&pb_txn_response_table, message, arena, &response));
    TRY(take_txn(&response, request, arena, ret_answer));
    return check_revision(ret_answer);
}
