#include "store/mvcc/txn.h"

#include "codec/pb/rpc.pb.h"
#include "store/mvcc/version.h"

static int number_compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* A compare whose union has another target's value compares with zero, as in etcd. */
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
    default: /* an unknown target: in etcd everything is equal */
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
    TRY(version_get(log, chosen->item, chosen->loc, &change));
    change_read_kv(change, ret_kv);
    return ST_OK;
}

static void compare_begin(struct range_walk *walk, const struct range_state *state,
                          const struct pb_compare *compare)
{
    range_walk_init(walk, state, range_bounds_of(compare->key, compare->range_end), 0);
    walk->fetches = compare->target == PB_COMPARE_TARGET_VALUE;
}

static void charge(size_t *keys, size_t bytes)
{
    /* Comparing a large value takes as long as examining many keys. */
    enum { BYTES_PER_KEY = 1024 };
    *keys -= size_min(*keys, bytes / BYTES_PER_KEY);
}

/*
 * Examines at most this many keys. ST_END: some key of the range does not match. ST_AGAIN: all did
 * so far; *found says whether there were any, and is false at first.
 */
static enum status compare_step(const struct range_state *state, struct range_walk *walk,
                                const struct pb_compare *compare, bool *found, size_t *keys)
{
    for (const struct range_kv *chosen; *keys && (chosen = range_walk_next_within(walk, keys));) {
        struct change_kv kv = {
            .create_revision = chosen->create_revision,
            .mod_revision = chosen->mod_revision,
            .version = chosen->version,
            .lease = chosen->item->newest.lease,
        };
        if (compare->target == PB_COMPARE_TARGET_VALUE) {
            TRY(value_read(state->log, chosen, &kv));
            charge(keys, kv.value.len);
        }
        *found = true;
        if (!kv_matches(compare, &kv))
            return ST_END;
    }
    if (!range_walk_ended(walk))
        return ST_AGAIN;
    if (*found)
        return ST_OK;
    /* A range without keys counts as one key of zeros. A missing value cannot be distinguished from
     * an empty one, so it never matches. */
    return compare->target != PB_COMPARE_TARGET_VALUE && kv_matches(compare, &(struct change_kv){0})
               ? ST_OK
               : ST_END;
}

static enum status compare_check(const struct range_state *state, const struct pb_compare *compare)
{
    struct range_walk walk;
    bool found = false;
    enum status status;
    compare_begin(&walk, state, compare);
    do {
        size_t keys = SIZE_MAX;
        status = compare_step(state, &walk, compare, &found, &keys);
    } while (status == ST_AGAIN);
    return status;
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

/* The maximum number of choices: one per transaction in the request. The codec bounds the depth. */
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
    /* As in etcd, all nested transactions are decided before the first change is made. */
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
    assert(path.count > 0);
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

/* -- Reading -- */

void txn_reading_begin(struct txn_reading *reading, const struct range_state *state,
                       const struct pb_txn_request *request, struct arena *arena)
{
    reading->state = state;
    reading->request = request;
    reading->arena = arena;
    reading->chosen = reading->succeeded = reading->open = reading->found = false;
    reading->next = 0;
    reading->answers = NULL;
}

void txn_reading_fini(struct txn_reading *reading)
{
    if (reading->chosen && reading->open)
        range_fini(&reading->range);
    reading->open = false;
}

static enum status choose_branch(struct txn_reading *reading, bool succeeded)
{
    assert(!reading->chosen);
    struct txn_branch branch = txn_branch_of(reading->request, succeeded);
    /* A range at a compacted or future revision fails the whole transaction. */
    for (size_t i = 0; i < branch.count; i++)
        TRY(txn_check_range(reading->state, branch.ops[i].request_range));
    reading->answers = arena_calloc(reading->arena, branch.count, sizeof(*reading->answers));
    if (!reading->answers)
        return ST_NOMEM;
    reading->branch = branch;
    reading->succeeded = succeeded;
    reading->chosen = true;
    reading->open = false;
    reading->next = 0;
    return ST_OK;
}

/* ST_OK: the branch is chosen. */
static enum status compares_step(struct txn_reading *reading, size_t *keys)
{
    for (; reading->next < reading->request->compare_count; reading->next++) {
        const struct pb_compare *compare = &reading->request->compare[reading->next];
        if (!reading->open)
            compare_begin(&reading->walk, reading->state, compare);
        reading->found &= reading->open;
        reading->open = true;
        enum status status =
            compare_step(reading->state, &reading->walk, compare, &reading->found, keys);
        if (status == ST_END)
            return choose_branch(reading, false);
        TRY(status);
        reading->open = false;
        *keys -= *keys > 0;
    }
    return choose_branch(reading, true);
}

static enum status range_step_answer(struct txn_reading *reading, size_t *keys)
{
    assert(reading->chosen && reading->next < reading->branch.count);
    const struct pb_range_request *request = reading->branch.ops[reading->next].request_range;
    struct kv_answer *answer = &reading->answers[reading->next];
    if (!reading->open) {
        *answer = (struct kv_answer){.kind = KV_ANSWER_RANGE, .revision = reading->state->revision};
        TRY(range_begin(&reading->range, reading->state, request));
        reading->open = true;
    }
    TRY(range_step(&reading->range, keys));
    TRY(range_answer_step(&reading->range, reading->arena, &answer->range, keys));
    if (answer->range.field_count == 1)
        charge(keys, answer->range.fields_bytes); /* all of it was verified */
    range_fini(&reading->range);
    reading->open = false;
    return ST_OK;
}

enum status txn_reading_step(struct txn_reading *reading, size_t *keys,
                             struct kv_answer *ret_answer)
{
    if (!reading->chosen)
        TRY(compares_step(reading, keys));
    for (; reading->next < reading->branch.count; reading->next++) {
        if (!*keys)
            return ST_AGAIN;
        TRY(range_step_answer(reading, keys));
        *keys -= *keys > 0;
    }
    *ret_answer = (struct kv_answer){
        .kind = KV_ANSWER_TXN,
        .revision = reading->state->revision,
        .txn = {.succeeded = reading->succeeded,
                .answers = reading->answers,
                .answer_count = reading->branch.count},
    };
    return ST_OK;
}
