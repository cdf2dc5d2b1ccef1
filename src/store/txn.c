#include "store/txn.h"

#include "codec/pb/rpc.pb.h"
#include "store/change.h"

static int number_compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* A compare whose union holds another target's value compares with zero, as in etcd. */
static int64_t target_number(const struct pb_compare *compare)
{
    switch (compare->target) {
    case PB_COMPARE_TARGET_VERSION:
        return compare->target_union_case == PB_COMPARE_VERSION ? compare->version : 0;
    case PB_COMPARE_TARGET_CREATE:
        return compare->target_union_case == PB_COMPARE_CREATE_REVISION ? compare->create_revision
                                                                        : 0;
    case PB_COMPARE_TARGET_MOD:
        return compare->target_union_case == PB_COMPARE_MOD_REVISION ? compare->mod_revision : 0;
    case PB_COMPARE_TARGET_LEASE:
        return compare->target_union_case == PB_COMPARE_LEASE ? compare->lease : 0;
    default:
        return 0;
    }
}

static int kv_order(const struct pb_compare *compare, const struct change_kv *kv)
{
    int64_t number = target_number(compare);
    switch (compare->target) {
    case PB_COMPARE_TARGET_VALUE:
        return slice_compare(kv->value, compare->target_union_case == PB_COMPARE_VALUE
                                            ? compare->value
                                            : SLICE_EMPTY);
    case PB_COMPARE_TARGET_VERSION:
        return number_compare(kv->version, number);
    case PB_COMPARE_TARGET_CREATE:
        return number_compare(kv->create_revision, number);
    case PB_COMPARE_TARGET_MOD:
        return number_compare(kv->mod_revision, number);
    case PB_COMPARE_TARGET_LEASE:
        return number_compare(kv->lease, number);
    default: /* a target nobody has named: etcd finds everything equal */
        return 0;
    }
}

static bool kv_matches(const struct pb_compare *compare, const struct change_kv *kv)
{
    int order = kv_order(compare, kv);
    switch (compare->result) {
    case PB_COMPARE_RESULT_EQUAL:
        return order == 0;
    case PB_COMPARE_RESULT_NOT_EQUAL:
        return order != 0;
    case PB_COMPARE_RESULT_GREATER:
        return order > 0;
    case PB_COMPARE_RESULT_LESS:
        return order < 0;
    default:
        return true;
    }
}

static enum status value_read(const struct log *log, const struct range_kv *chosen,
                              struct change_kv *ret_kv)
{
    const struct change_head *change;
    TRY(change_get(log, chosen->loc, &change));
    change_read_kv(change, ret_kv);
    return ST_OK;
}

/* ST_END: some key of the range does not match. A range without keys is one key of zeros. */
static enum status compare_check(const struct range_state *state, const struct pb_compare *compare)
{
    struct range_walk walk;
    range_walk_init(&walk, state, range_bounds_of(compare->key, compare->range_end), 0);
    walk.fetches = compare->target == PB_COMPARE_TARGET_VALUE;
    const struct range_kv *chosen = range_walk_next(&walk);
    if (!chosen) {
        /* A missing value cannot be told from an empty one, so it never matches. */
        bool matches = compare->target != PB_COMPARE_TARGET_VALUE &&
                       kv_matches(compare, &(struct change_kv){0});
        return matches ? ST_OK : ST_END;
    }
    for (; chosen; chosen = range_walk_next(&walk)) {
        struct change_kv kv = {
            .create_revision = chosen->create_revision,
            .mod_revision = chosen->mod_revision,
            .version = chosen->version,
            .lease = chosen->item->newest.lease,
        };
        if (compare->target == PB_COMPARE_TARGET_VALUE)
            TRY(value_read(state->log, chosen, &kv));
        if (!kv_matches(compare, &kv))
            return ST_END;
    }
    return ST_OK;
}

/* ST_DAMAGED: a value that decides cannot be read. */
static enum status compares_hold(const struct range_state *state,
                                 const struct pb_txn_request *request, bool *ret_hold)
{
    for (size_t i = 0; i < request->compare_count; i++) {
        enum status status = compare_check(state, &request->compare[i]);
        if (status == ST_END) {
            *ret_hold = false;
            return ST_OK;
        }
        TRY(status);
    }
    *ret_hold = true;
    return ST_OK;
}

struct txn_branch txn_branch_of(const struct pb_txn_request *request, bool succeeded)
{
    if (succeeded)
        return (struct txn_branch){request->success, request->success_count};
    return (struct txn_branch){request->failure, request->failure_count};
}

/* How many choices at most: one per transaction in the request. Depth is bounded by the codec. */
static size_t transactions_count(const struct pb_txn_request *request)
{
    size_t count = 1;
    for (int branch = 0; branch < 2; branch++) {
        struct txn_branch ops = txn_branch_of(request, branch == 0);
        for (size_t i = 0; i < ops.count; i++) {
            if (ops.ops[i].request_case == PB_REQUEST_OP_REQUEST_TXN)
                count += transactions_count(ops.ops[i].request_txn);
        }
    }
    return count;
}

static enum status choose(const struct range_state *state, const struct pb_txn_request *request,
                          struct txn_path *path)
{
    bool succeeded;
    TRY(compares_hold(state, request, &succeeded));
    path->choices[path->count++] = succeeded;
    struct txn_branch branch = txn_branch_of(request, succeeded);
    for (size_t i = 0; i < branch.count; i++) {
        if (branch.ops[i].request_case == PB_REQUEST_OP_REQUEST_TXN)
            TRY(choose(state, branch.ops[i].request_txn, path));
    }
    return ST_OK;
}

enum status txn_choose(const struct range_state *state, const struct pb_txn_request *request,
                       struct arena *arena, struct txn_path *ret_path)
{
    struct txn_path path = {.choices = arena_alloc(arena, transactions_count(request))};
    if (!path.choices)
        return ST_NOMEM;
    TRY(choose(state, request, &path));
    *ret_path = path;
    return ST_OK;
}

enum status txn_check_range(const struct range_state *state, const struct pb_range_request *request)
{
    if (request->revision == 0)
        return ST_OK;
    if (request->revision > state->revision)
        return ST_FUTURE_REV;
    return request->revision < state->compact_revision ? ST_COMPACTED : ST_OK;
}

enum status txn_read(const struct range_state *state, const struct pb_txn_request *request,
                     struct arena *arena, struct kv_answer *ret_answer)
{
    bool succeeded;
    TRY(compares_hold(state, request, &succeeded));
    struct txn_branch branch = txn_branch_of(request, succeeded);
    for (size_t i = 0; i < branch.count; i++)
        TRY(txn_check_range(state, branch.ops[i].request_range));

    struct kv_answer *answers = arena_calloc(arena, branch.count, sizeof(*answers));
    if (!answers)
        return ST_NOMEM;
    for (size_t i = 0; i < branch.count; i++) {
        answers[i] = (struct kv_answer){.kind = KV_ANSWER_RANGE, .revision = state->revision};
        TRY(range_answer(state, branch.ops[i].request_range, arena, &answers[i].range));
    }
    *ret_answer = (struct kv_answer){
        .kind = KV_ANSWER_TXN,
        .revision = state->revision,
        .txn = {.succeeded = succeeded, .answers = answers, .answer_count = branch.count},
    };
    return ST_OK;
}
