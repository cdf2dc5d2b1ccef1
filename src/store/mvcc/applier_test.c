/* Writes: their checks, their answers, and that a replay has the same result. */
#include "store/mvcc/applier.h"

#include "store/fixture_test.h"
#include "store/mvcc/txn.h"
#include "store/record/change.h"

static const char *text_of(struct fixture *f, struct slice field)
{
    return fixture_text(f, field);
}

/* All keys, at a revision (0: the newest). */
static const char *everything(struct fixture *f, int64_t revision)
{
    struct range_state state = fixture_state(f);
    struct pb_range_request request = {
        .key = SLICE_LITERAL("\0"), .range_end = SLICE_LITERAL("\0"), .revision = revision};
    struct range range;
    assert_int_equal(range_init(&range, &state, &request), ST_OK);
    uint8_t *bytes = arena_alloc(&f->arena, range.kvs_bytes + 1);
    assert_int_equal(range_fill(&range, bytes, range.kvs_bytes + 1), range.kvs_bytes);
    range_fini(&range);
    return fixture_text(f, slice_of(bytes, range.kvs_bytes));
}

static enum status put(struct fixture *f, struct pb_put_request request, struct kv_answer *answer)
{
    return applier_put(store_applier(f->store), &request, &f->arena, answer);
}

static enum status txn(struct fixture *f, const struct pb_txn_request *request,
                       struct kv_answer *answer)
{
    return applier_txn(store_applier(f->store), request, &f->arena, answer);
}

/* -- Put -- */

static void put_returns_the_previous_version(void **state)
{
    struct fixture *f = *state;
    struct pb_put_request request = {
        .key = SLICE_LITERAL("k"), .value = SLICE_LITERAL("1"), .prev_kv = true};
    struct kv_answer first, second, third;
    assert_int_equal(put(f, request, &first), ST_OK);
    request.value = SLICE_LITERAL("2");
    assert_int_equal(put(f, request, &second), ST_OK); /* in the same group, not yet written */
    fixture_delete(f, "k", "");
    assert_int_equal(put(f, request, &third), ST_OK);
    fixture_commit(f);
    assert_int_equal(first.put.prev_field.len, 0);
    assert_string_equal(text_of(f, second.put.prev_field), "k=1@2.2.1");
    assert_int_equal(third.put.prev_field.len, 0);
    assert_string_equal(everything(f, 0), "k=2@5.5.1");
}

static void lease_must_exist_and_is_checked_first(void **state)
{
    struct fixture *f = *state;
    struct kv_answer answer;
    struct pb_put_request request = {.key = SLICE_LITERAL("k"), .lease = 5, .ignore_value = true};
    assert_int_equal(put(f, request, &answer), ST_LEASE_NOT_FOUND);
    request.lease = FIXTURE_LEASE;
    assert_int_equal(put(f, request, &answer), ST_KEY_NOT_FOUND);
    request.ignore_value = false;
    assert_int_equal(put(f, request, &answer), ST_OK);
    assert_string_equal(everything(f, 0), "k=@2.2.1+77");
}

static void ignored_value_and_lease_are_kept(void **state)
{
    struct fixture *f = *state;
    struct kv_answer answer;
    assert_int_equal(put(f,
                         (struct pb_put_request){.key = SLICE_LITERAL("k"),
                                                 .value = SLICE_LITERAL("old"),
                                                 .lease = FIXTURE_LEASE},
                         &answer),
                     ST_OK);
    struct pb_put_request request = {
        .key = SLICE_LITERAL("k"), .value = SLICE_LITERAL("new"), .ignore_lease = true};
    assert_int_equal(put(f, request, &answer), ST_OK);
    assert_string_equal(everything(f, 0), "k=new@2.3.2+77");
    request = (struct pb_put_request){.key = SLICE_LITERAL("k"), .ignore_value = true};
    assert_int_equal(put(f, request, &answer), ST_OK);
    assert_string_equal(everything(f, 0), "k=new@2.4.3");
    fixture_delete(f, "k", "");
    assert_int_equal(put(f, request, &answer), ST_KEY_NOT_FOUND);
    request.ignore_value = false;
    request.ignore_lease = true;
    assert_int_equal(put(f, request, &answer), ST_KEY_NOT_FOUND);
    assert_int_equal(store_view(f->store)->revision, 4);
}

/* -- DeleteRange -- */

static void delete_returns_what_it_deleted(void **state)
{
    struct fixture *f = *state;
    fixture_put(f, "a", "1");
    fixture_put(f, "b", "2");
    fixture_put(f, "c", "3");
    struct pb_delete_range_request request = {
        .key = SLICE_LITERAL("a"), .range_end = SLICE_LITERAL("c"), .prev_kv = true};
    struct kv_answer answer;
    assert_int_equal(applier_delete_range(store_applier(f->store), &request, &f->arena, &answer),
                     ST_OK);
    assert_int_equal(answer.delete_range.deleted, 2);
    assert_int_equal(answer.revision, 5);
    fixture_commit(f);
    assert_int_equal(answer.delete_range.prev_field_count, 2);
    assert_string_equal(text_of(f, answer.delete_range.prev_fields[0]), "a=1@2.2.1");
    assert_string_equal(text_of(f, answer.delete_range.prev_fields[1]), "b=2@3.3.1");
    /* Nothing left to delete: no new revision, and no record. */
    uint64_t index = log_last_index(store_log(f->store));
    assert_int_equal(applier_delete_range(store_applier(f->store), &request, &f->arena, &answer),
                     ST_OK);
    assert_int_equal(answer.delete_range.deleted, 0);
    assert_int_equal(answer.revision, 5);
    assert_int_equal(log_last_index(store_log(f->store)), index);
}

/* -- Compares -- */

/* Examines this many keys per step. */
static enum status read_in_steps(struct fixture *f, const struct range_state *state,
                                 const struct pb_txn_request *request, size_t keys_max,
                                 struct kv_answer *ret_answer)
{
    struct txn_reading reading;
    enum status status;
    size_t steps = 0;
    txn_reading_begin(&reading, state, request, &f->arena);
    do {
        size_t keys = keys_max;
        status = txn_reading_step(&reading, &keys, ret_answer);
        assert_true(++steps < 10000);
    } while (status == ST_AGAIN);
    txn_reading_fini(&reading);
    return status;
}

static bool compares(struct fixture *f, struct pb_compare compare)
{
    struct pb_txn_request request = {.compare = &compare, .compare_count = 1};
    struct kv_answer answer, read;
    assert_int_equal(txn(f, &request, &answer), ST_OK);
    struct range_state state = fixture_state(f);
    assert_int_equal(read_in_steps(f, &state, &request, 1, &read), ST_OK);
    assert_int_equal(answer.txn.succeeded, read.txn.succeeded);
    return answer.txn.succeeded;
}

/* One bit per result: equal, greater, less, not equal, in the order of their numbers. */
static unsigned results(struct fixture *f, struct pb_compare compare)
{
    unsigned bits = 0;
    for (int32_t result = 0; result < 4; result++) {
        compare.result = result;
        bits |= (unsigned)compares(f, compare) << result;
    }
    return bits;
}

enum { EQUAL = 1 | 0, GREATER = 2 | 8, LESS = 4 | 8, NEVER = 0 };

static void every_target_compares_with_every_result(void **state)
{
    struct fixture *f = *state;
    fixture_put(f, "x", "");
    fixture_put(f, "k", "m");
    struct kv_answer answer;
    assert_int_equal(put(f,
                         (struct pb_put_request){.key = SLICE_LITERAL("k"),
                                                 .value = SLICE_LITERAL("m"),
                                                 .lease = FIXTURE_LEASE},
                         &answer),
                     ST_OK); /* k: create 3, mod 4, version 2 */
    const struct {
        int32_t target;
        int64_t is;
        enum pb_compare_target_union_case union_case;
    } numbers[] = {
        {PB_COMPARE_TARGET_VERSION, 2, PB_COMPARE_VERSION},
        {PB_COMPARE_TARGET_CREATE, 3, PB_COMPARE_CREATE_REVISION},
        {PB_COMPARE_TARGET_MOD, 4, PB_COMPARE_MOD_REVISION},
        {PB_COMPARE_TARGET_LEASE, FIXTURE_LEASE, PB_COMPARE_LEASE},
    };
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        struct pb_compare compare = {.key = SLICE_LITERAL("k"), .target = numbers[i].target};
        /* Without a value, the comparison is with zero. */
        assert_int_equal(results(f, compare), GREATER);
        compare.target_union_case = numbers[i].union_case;
        compare.version = numbers[i].is; /* the numbers of the union share their memory */
        assert_int_equal(results(f, compare), EQUAL);
        compare.version = numbers[i].is - 1;
        assert_int_equal(results(f, compare), GREATER);
        compare.version = numbers[i].is + 1;
        assert_int_equal(results(f, compare), LESS);
        compare.key = SLICE_LITERAL("none"); /* a missing key counts as zeros */
        compare.version = 0;
        assert_int_equal(results(f, compare), EQUAL);
        compare.version = 1;
        assert_int_equal(results(f, compare), LESS);
    }
}

static void values_compare_as_bytes_and_never_for_a_missing_key(void **state)
{
    struct fixture *f = *state;
    fixture_put(f, "k", "m");
    struct pb_compare compare = {.key = SLICE_LITERAL("k"),
                                 .target = PB_COMPARE_TARGET_VALUE,
                                 .target_union_case = PB_COMPARE_VALUE,
                                 .value = SLICE_LITERAL("m")};
    assert_int_equal(results(f, compare), EQUAL);
    compare.value = SLICE_LITERAL("ma");
    assert_int_equal(results(f, compare), LESS);
    compare.value = SLICE_LITERAL("l\xff");
    assert_int_equal(results(f, compare), GREATER);
    compare.key = SLICE_LITERAL("none");
    assert_int_equal(results(f, compare), NEVER);
    compare.value = SLICE_EMPTY;
    assert_int_equal(results(f, compare), NEVER);
}

static void range_compare_must_hold_for_every_key(void **state)
{
    struct fixture *f = *state;
    fixture_put(f, "a", "");
    fixture_put(f, "b", "");
    fixture_put(f, "b", "");
    struct pb_compare compare = {.key = SLICE_LITERAL("a"),
                                 .range_end = SLICE_LITERAL("c"),
                                 .target = PB_COMPARE_TARGET_VERSION,
                                 .target_union_case = PB_COMPARE_VERSION,
                                 .result = PB_COMPARE_RESULT_GREATER};
    assert_true(compares(f, compare));
    compare.version = 1;
    assert_false(compares(f, compare));
    compare.key = SLICE_LITERAL("b");
    assert_true(compares(f, compare));
    compare.key = SLICE_LITERAL("m"); /* no key there, which counts as zeros */
    compare.range_end = SLICE_LITERAL("\0");
    assert_false(compares(f, compare));
}

/* -- Transactions -- */

static void ranges_see_earlier_writes_of_their_transaction(void **state)
{
    struct fixture *f = *state;
    fixture_put(f, "a", "1");
    struct pb_range_request range = {.key = SLICE_LITERAL("a"), .range_end = SLICE_LITERAL("z")};
    struct pb_put_request b = {.key = SLICE_LITERAL("b"), .value = SLICE_LITERAL("2")};
    struct pb_delete_range_request a = {.key = SLICE_LITERAL("a"), .prev_kv = true};
    struct pb_request_op ops[] = {fixture_op_range(&range), fixture_op_put(&b),
                                  fixture_op_range(&range), fixture_op_delete(&a),
                                  fixture_op_range(&range)};
    struct pb_txn_request request = {.success = ops, .success_count = COUNT_OF(ops)};
    struct kv_answer answer;
    assert_int_equal(txn(f, &request, &answer), ST_OK);
    fixture_commit(f);
    const struct kv_answer *answers = answer.txn.answers;
    assert_int_equal(answer.revision, 3);
    assert_int_equal(answers[0].revision, 2);
    assert_int_equal(answers[0].range.count, 1);
    assert_int_equal(answers[2].revision, 3);
    assert_int_equal(answers[2].range.count, 2);
    assert_string_equal(text_of(f, answers[2].range.fields[1]), "b=2@3.3.1");
    assert_string_equal(text_of(f, answers[3].delete_range.prev_fields[0]), "a=1@2.2.1");
    assert_int_equal(answers[4].range.count, 1);
    assert_string_equal(everything(f, 2), "a=1@2.2.1");
    assert_string_equal(everything(f, 3), "b=2@3.3.1");
}

/* Nested compares use the state before the whole transaction. */
static void nested_transactions_choose_before_anything_is_done(void **state)
{
    struct fixture *f = *state;
    struct pb_compare exists = {.key = SLICE_LITERAL("k"),
                                .target = PB_COMPARE_TARGET_VERSION,
                                .result = PB_COMPARE_RESULT_GREATER};
    struct pb_put_request k = {.key = SLICE_LITERAL("k")};
    struct pb_put_request yes = {.key = SLICE_LITERAL("yes")}, no = {.key = SLICE_LITERAL("no")};
    struct pb_request_op k_op = fixture_op_put(&k), yes_op = fixture_op_put(&yes),
                         no_op = fixture_op_put(&no);
    struct pb_txn_request inner = {.compare = &exists,
                                   .compare_count = 1,
                                   .success = &yes_op,
                                   .success_count = 1,
                                   .failure = &no_op,
                                   .failure_count = 1};
    struct pb_request_op inner_op = fixture_op_txn(&inner);
    struct pb_txn_request middle = {.success = &inner_op, .success_count = 1};
    struct pb_request_op ops[] = {k_op, fixture_op_txn(&middle)};
    struct pb_txn_request request = {.success = ops, .success_count = 2};
    struct kv_answer answer;
    assert_int_equal(txn(f, &request, &answer), ST_OK);
    assert_false(answer.txn.answers[1].txn.answers[0].txn.succeeded);
    assert_string_equal(everything(f, 0), "k=@2.2.1 no=@2.2.1");
    assert_int_equal(txn(f, &request, &answer), ST_OK);
    assert_true(answer.txn.answers[1].txn.answers[0].txn.succeeded);
    assert_string_equal(everything(f, 0), "k=@2.3.2 no=@2.2.1 yes=@3.3.1");
}

/* Only the branch taken is checked; a refused one changes nothing. */
static void refused_transaction_changes_nothing(void **state)
{
    struct fixture *f = *state;
    struct pb_put_request good = {.key = SLICE_LITERAL("good")};
    struct pb_put_request leased = {.key = SLICE_LITERAL("bad"), .lease = 5};
    struct pb_put_request missing = {.key = SLICE_LITERAL("bad"), .ignore_value = true};
    struct pb_range_request future = {.key = SLICE_LITERAL("k"), .revision = 9};
    struct pb_range_request negative = {.key = SLICE_LITERAL("k"), .revision = -9};
    struct {
        struct pb_request_op op;
        enum status status;
    } cases[] = {
        {fixture_op_put(&leased), ST_LEASE_NOT_FOUND},
        {fixture_op_put(&missing), ST_KEY_NOT_FOUND},
        {fixture_op_range(&future), ST_FUTURE_REV},
        /* below the first compact revision, which is -1 */
        {fixture_op_range(&negative), ST_COMPACTED},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pb_request_op ops[] = {fixture_op_put(&good), cases[i].op};
        struct pb_txn_request inner = {.success = ops, .success_count = 2};
        struct pb_request_op inner_op = fixture_op_txn(&inner);
        struct pb_txn_request request = {.success = &inner_op, .success_count = 1};
        struct kv_answer answer;
        assert_int_equal(txn(f, &request, &answer), cases[i].status);
        inner = (struct pb_txn_request){.failure = ops, .failure_count = 2};
        assert_int_equal(txn(f, &request, &answer), ST_OK);
        assert_int_equal(answer.revision, 1);
    }
    assert_string_equal(everything(f, 0), "");
    assert_int_equal(log_last_index(store_log(f->store)), 0);
}

static void put_and_delete_of_a_key_share_a_revision(void **state)
{
    struct fixture *f = *state;
    fixture_put(f, "k", "1");
    struct pb_put_request put_k = {.key = SLICE_LITERAL("k"), .value = SLICE_LITERAL("2")};
    struct pb_put_request put_n = {.key = SLICE_LITERAL("n"), .value = SLICE_LITERAL("3")};
    struct pb_delete_range_request all = {
        .key = SLICE_LITERAL("a"), .range_end = SLICE_LITERAL("z"), .prev_kv = true};
    struct pb_request_op puts[] = {fixture_op_put(&put_k), fixture_op_put(&put_n)};
    struct pb_request_op deletes[] = {fixture_op_delete(&all)};
    struct pb_txn_request first = {.success = puts, .success_count = 2};
    struct pb_txn_request second = {.success = deletes, .success_count = 1};
    struct pb_request_op ops[] = {fixture_op_txn(&first), fixture_op_txn(&second)};
    struct pb_txn_request request = {.success = ops, .success_count = 2};
    struct kv_answer answer;
    assert_int_equal(txn(f, &request, &answer), ST_OK);
    fixture_commit(f);
    const struct kv_delete_answer *deleted = &answer.txn.answers[1].txn.answers[0].delete_range;
    assert_int_equal(deleted->deleted, 2);
    assert_string_equal(text_of(f, deleted->prev_fields[0]), "k=2@2.3.2");
    assert_string_equal(text_of(f, deleted->prev_fields[1]), "n=3@3.3.1");
    for (int again = 0; again < 2; again++) {
        assert_string_equal(everything(f, 2), "k=1@2.2.1");
        assert_string_equal(everything(f, 3), "");
        fixture_restart(f);
    }
    assert_int_equal(upkeep_checkpoint(f->upkeep), ST_OK);
    fixture_restart(f);
    assert_string_equal(everything(f, 2), "k=1@2.2.1");
    assert_string_equal(everything(f, 3), "");
    assert_int_equal(fixture_put(f, "k", "4"), 4);
    assert_string_equal(everything(f, 0), "k=4@4.4.1");
}

/* The answer does not fit into its arena: the writes are still applied completely. */
static void transaction_is_completed_when_memory_for_its_answer_is_lacking(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 200; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%03d", i);
        fixture_put(f, key, "");
    }
    struct pb_put_request x = {.key = SLICE_LITERAL("x")}, y = {.key = SLICE_LITERAL("y")};
    struct pb_range_request range = {.key = SLICE_LITERAL("k"), .range_end = SLICE_LITERAL("l")};
    struct pb_request_op ops[] = {fixture_op_put(&x), fixture_op_range(&range), fixture_op_put(&y)};
    struct pb_txn_request request = {.success = ops, .success_count = 3};
    struct arena small;
    arena_init(&small, NULL, 0, 1024);
    struct kv_answer answer;
    assert_int_equal(applier_txn(store_applier(f->store), &request, &small, &answer), ST_TIMEOUT);
    arena_fini(&small);
    struct range_state view = fixture_state(f);
    assert_int_equal(view.revision, 202);
    assert_int_equal(view.root.live_keys, 202);
    /* If nothing was applied, the error says so. */
    request = (struct pb_txn_request){.success = &ops[1], .success_count = 1};
    arena_init(&small, NULL, 0, 1024);
    assert_int_equal(applier_txn(store_applier(f->store), &request, &small, &answer), ST_NOMEM);
    arena_fini(&small);
}

/* -- Replay -- */

static void replay_restores_what_was_applied(void **state)
{
    struct fixture *f = *state;
    nested_transactions_choose_before_anything_is_done(state);
    fixture_delete(f, "no", "");
    struct kv_answer answer;
    assert_int_equal(
        put(f, (struct pb_put_request){.key = SLICE_LITERAL("l"), .lease = FIXTURE_LEASE}, &answer),
        ST_OK);
    fixture_compact(f, 3);
    fixture_commit(f);
    const struct store_view before = *store_view(f->store);
    const char *newest = everything(f, 0), *at_three = everything(f, 3);
    fixture_restart(f);
    const struct store_view *after = store_view(f->store);
    assert_int_equal(after->revision, before.revision);
    assert_int_equal(after->compact_revision, before.compact_revision);
    assert_int_equal(after->log_index, before.log_index);
    assert_int_equal(after->db_bytes, before.db_bytes);
    assert_int_equal(after->db_bytes_in_use, before.db_bytes_in_use);
    assert_int_equal(after->root.live_keys, before.root.live_keys);
    assert_int_equal(after->root.live_bytes, before.root.live_bytes);
    assert_string_equal(everything(f, 0), newest);
    assert_string_equal(everything(f, 3), at_three);
}

/* What each record replaces in the index is freed during the replay, not after it. */
static void replay_needs_no_more_memory_than_the_store(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 10000; i++)
        fixture_put(f, "key", "value");
    fixture_restart(f);
    assert_true(epoch_reclaim(store_epoch(f->store), 0) < 5000);
    assert_int_equal(store_view(f->store)->revision, 10001);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

/* A key whose newest version is damaged before any damage is known. */
static void put_damaged(struct fixture *f, const char *key)
{
    fixture_put(f, key, "a value");
    fixture_commit(f);
    uint64_t loc = index_root_find(&store_view(f->store)->root, slice_from_text(key))->newest.loc;
    fixture_flip(f, loc, CHANGE_HEAD_BYTES + 8);
    assert_false(log_is_damaged(store_log(f->store)));
}

static void only_writes_that_need_damaged_versions_are_refused(void **state)
{
    struct fixture *f = *state;
    put_damaged(f, "hit");
    int64_t revision = store_applier(f->store)->revision;
    struct slice key = SLICE_LITERAL("hit");
    struct pb_put_request puts[] = {{.key = key, .prev_kv = true},
                                    {.key = key, .ignore_value = true}};
    struct pb_delete_range_request deletes = {.key = key, .prev_kv = true};
    struct pb_compare compare = {.key = key, .target = PB_COMPARE_TARGET_VALUE};
    struct pb_txn_request compares = {.compare = &compare, .compare_count = 1};
    struct kv_answer answer;
    assert_int_equal(put(f, puts[0], &answer), ST_DAMAGED);
    assert_int_equal(put(f, puts[1], &answer), ST_DAMAGED);
    assert_int_equal(applier_delete_range(store_applier(f->store), &deletes, &f->arena, &answer),
                     ST_DAMAGED);
    assert_int_equal(txn(f, &compares, &answer), ST_DAMAGED);
    assert_int_equal(store_applier(f->store)->revision, revision);
    compare.target = PB_COMPARE_TARGET_VERSION; /* it is in the index */
    assert_int_equal(txn(f, &compares, &answer), ST_OK);
    puts[0].prev_kv = false;
    assert_int_equal(put(f, puts[0], &answer), ST_OK);
    assert_int_equal(put(f, puts[1], &answer), ST_OK);
}

/*
 * A write cannot be taken back, so the versions it needs are checked first, also when no damage is
 * known so far.
 */
static void a_transaction_that_cannot_be_answered_writes_nothing(void **state)
{
    struct fixture *f = *state;
    put_damaged(f, "hit");
    int64_t revision = store_applier(f->store)->revision;
    struct pb_put_request write = {.key = SLICE_LITERAL("new"), .value = SLICE_LITERAL("1")};
    struct pb_range_request read = {.key = SLICE_LITERAL("hit")};
    struct pb_request_op inner_ops[] = {fixture_op_put(&write), fixture_op_range(&read)};
    struct pb_txn_request inner = {.success = inner_ops, .success_count = COUNT_OF(inner_ops)};
    struct pb_request_op ops[] = {fixture_op_txn(&inner)};
    struct pb_txn_request request = {.success = ops, .success_count = COUNT_OF(ops)};
    struct kv_answer answer;
    assert_int_equal(txn(f, &request, &answer), ST_DAMAGED);
    assert_int_equal(store_applier(f->store)->revision, revision);
    assert_null(index_find(store_applier(f->store)->index, SLICE_LITERAL("new")));
    /* Without a write nothing is checked in advance, and the answer is the same. */
    request.success = &inner_ops[1];
    assert_int_equal(txn(f, &request, &answer), ST_DAMAGED);
    request.success = &inner_ops[0];
    assert_int_equal(txn(f, &request, &answer), ST_OK);
}

/*
 * A read-only transaction gives the same answer for any size of steps; stopped in the middle it
 * leaves nothing.
 */
static void reading_in_steps_gives_the_same_answer(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 100; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%02d", i);
        fixture_put(f, key, "value");
    }
    fixture_commit(f);
    struct pb_compare compares[] = {
        {.key = SLICE_LITERAL("k"),
         .range_end = SLICE_LITERAL("l"),
         .result = PB_COMPARE_RESULT_LESS,
         .target = PB_COMPARE_TARGET_VERSION,
         .target_union_case = PB_COMPARE_VERSION,
         .version = 2},
        {.key = SLICE_LITERAL("k"),
         .range_end = SLICE_LITERAL("l"),
         .target = PB_COMPARE_TARGET_VALUE,
         .target_union_case = PB_COMPARE_VALUE,
         .value = SLICE_LITERAL("value")},
    };
    struct pb_range_request ranges[] = {
        {.key = SLICE_LITERAL("k"), .range_end = SLICE_LITERAL("l")},
        {.key = SLICE_LITERAL("k"),
         .range_end = SLICE_LITERAL("l"),
         .keys_only = true,
         .sort_target = PB_SORT_TARGET_MOD,
         .sort_order = PB_SORT_ORDER_DESCEND,
         .limit = 7},
        {.key = SLICE_LITERAL("k50")},
    };
    struct pb_request_op ops[COUNT_OF(ranges)];
    for (size_t i = 0; i < COUNT_OF(ops); i++)
        ops[i] = (struct pb_request_op){.request_case = PB_REQUEST_OP_REQUEST_RANGE,
                                        .request_range = &ranges[i]};
    struct pb_txn_request request = {.compare = compares,
                                     .compare_count = COUNT_OF(compares),
                                     .success = ops,
                                     .success_count = COUNT_OF(ops)};
    struct range_state now = fixture_state(f);
    struct kv_answer whole, steps;
    assert_int_equal(read_in_steps(f, &now, &request, SIZE_MAX, &whole), ST_OK);
    for (size_t keys = 1; keys < 130; keys = keys * 2 + 1) {
        assert_int_equal(read_in_steps(f, &now, &request, keys, &steps), ST_OK);
        assert_true(steps.txn.succeeded);
        assert_int_equal(steps.txn.answer_count, 3);
        for (size_t i = 0; i < 3; i++) {
            const struct kv_range_answer *a = &whole.txn.answers[i].range;
            const struct kv_range_answer *b = &steps.txn.answers[i].range;
            assert_int_equal(a->field_count, i == 0 ? 100 : i == 1 ? 7 : 1);
            assert_int_equal(a->field_count, b->field_count);
            assert_int_equal(a->count, b->count);
            assert_int_equal(a->fields_bytes, b->fields_bytes);
            for (size_t j = 0; j < a->field_count; j++)
                assert_true(slice_equal(a->fields[j], b->fields[j]));
        }
    }
    struct txn_reading reading;
    size_t keys = 250; /* in the middle of the second range, which is sorted */
    txn_reading_begin(&reading, &now, &request, &f->arena);
    while (txn_reading_step(&reading, &keys, &steps) == ST_AGAIN && !reading.chosen)
        keys = 250;
    txn_reading_fini(&reading);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(put_returns_the_previous_version),
        TEST(lease_must_exist_and_is_checked_first),
        TEST(ignored_value_and_lease_are_kept),
        TEST(delete_returns_what_it_deleted),
        TEST(every_target_compares_with_every_result),
        TEST(values_compare_as_bytes_and_never_for_a_missing_key),
        TEST(range_compare_must_hold_for_every_key),
        TEST(ranges_see_earlier_writes_of_their_transaction),
        TEST(nested_transactions_choose_before_anything_is_done),
        TEST(refused_transaction_changes_nothing),
        TEST(put_and_delete_of_a_key_share_a_revision),
        TEST(transaction_is_completed_when_memory_for_its_answer_is_lacking),
        TEST(replay_restores_what_was_applied),
        TEST(replay_needs_no_more_memory_than_the_store),
        TEST(only_writes_that_need_damaged_versions_are_refused),
        TEST(a_transaction_that_cannot_be_answered_writes_nothing),
        TEST(reading_in_steps_gives_the_same_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
