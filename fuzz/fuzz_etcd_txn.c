/*
 * Fuzzes transactions. Input that decodes is checked, and if it passes the checks, it is run on the
 * model. The encoded answer must decode as a TxnResponse, with one response for each operation of
 * the branch that was taken. Encoding at once and in pieces must give the same bytes.
 */
#include "cost.h"

#include "codec/pb/rpc.pb.h"
#include "etcd/service/kv_check.h"
#include "etcd/shared/kv_encode.h"
#include "fake/model.h"

#include <stdlib.h>

enum { ARENA_BYTES_MAX = 256 << 20, OPS_MAX = 128, RUNS = 3 };

static void check_encoding(const struct kv_answer *answer, size_t step, struct arena *arena)
{
    struct kv_ids ids;
    kv_ids_init(&ids, 1, 2);
    struct kv_header header = {.ids = &ids, .revision = 3, .raft_term = 4};
    struct kv_plan plan;
    struct kv_writer writer;
    enum status status = kv_plan_make(&plan, answer, &header, arena);
    assert(status == ST_OK);
    uint8_t *whole = malloc(plan.bytes), *pieces = malloc(plan.bytes);
    assert(whole && pieces);
    kv_writer_init(&writer, &plan);
    size_t filled = kv_writer_fill(&writer, whole, plan.bytes);
    assert(filled == plan.bytes);
    kv_writer_init(&writer, &plan);
    for (size_t at = 0; at < plan.bytes;)
        at += kv_writer_fill(&writer, pieces + at, size_min(step, plan.bytes - at));
    assert(memcmp(whole, pieces, plan.bytes) == 0);

    struct pb_txn_response response;
    status = pb_decode(&pb_txn_response_table, slice_of(whole, plan.bytes), arena, &response);
    assert(status == ST_OK);
    assert(response.succeeded == answer->txn.succeeded);
    assert(response.responses_count == answer->txn.answer_count);
    free(whole);
    free(pieces);
}

FUZZ_INPUT()
{
    struct arena arena;
    struct pb_txn_request request;
    arena_init(&arena, NULL, 0, ARENA_BYTES_MAX);
    struct slice bytes = slice_of(data, size);
    if (!kv_txn_is_too_long(bytes, OPS_MAX) &&
        pb_decode(&pb_txn_request_table, bytes, &arena, &request) == ST_OK &&
        kv_check_txn(&request, OPS_MAX, &arena) == ST_OK) {
        struct fake_model *model = fake_model_new();
        for (unsigned run = 0; run < RUNS; run++) {
            struct kv_answer answer;
            if (fake_model_txn(model, &request, &arena, &answer) == ST_OK)
                check_encoding(&answer, size % 7 + 1, &arena);
        }
        fake_model_free(model);
    }
    arena_fini(&arena);
    return 0;
}
