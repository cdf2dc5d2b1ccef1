/*
 * Known answers of HashKV, taken from etcd 3.7.3: a new server, the requests below through its JSON
 * gateway in the same order (kv/put, kv/deleterange, kv/txn, kv/compaction with physical), and
 * maintenance/hashkv where a hash is expected here.
 */
#include "store/upkeep/hash.h"

#include "store/fixture_test.h"
#include "store/upkeep/whole_hash_test.h"

static void expect_hash(struct fixture *f, int64_t at, uint32_t hash)
{
    struct upkeep_hash found;
    fixture_commit(f);
    assert_int_equal(whole_hash_at(f->upkeep, at, &found), ST_OK);
    assert_int_equal(found.hash, hash);
    assert_int_equal(found.revision, at ? at : store_view(f->store)->revision);
}

static void expect_compaction_hash(struct fixture *f, int64_t before, int64_t to, uint32_t hash)
{
    uint32_t found;
    fixture_commit(f);
    assert_int_equal(whole_hash_of_compaction(f->upkeep, before, to, &found), ST_OK);
    assert_int_equal(found, hash);
}

static void put_two(struct fixture *f)
{
    struct pb_put_request c = {.key = SLICE_LITERAL("c")};
    struct pb_put_request d = {.key = SLICE_LITERAL("d"), .value = SLICE_LITERAL("dd")};
    struct pb_request_op ops[] = {fixture_op_put(&c), fixture_op_put(&d)};
    struct pb_txn_request txn = {.success = ops, .success_count = 2};
    struct kv_answer answer;
    assert_int_equal(applier_txn(store_applier(f->store), &txn, &f->arena, &answer), ST_OK);
}

/* In separate nested transactions, where etcd accepts it. */
static void put_and_delete_at_one_revision(struct fixture *f)
{
    struct pb_put_request put = {.key = SLICE_LITERAL("e"), .value = SLICE_LITERAL("v")};
    struct pb_delete_range_request delete = {.key = SLICE_LITERAL("e")};
    struct pb_request_op put_op = fixture_op_put(&put), delete_op = fixture_op_delete(&delete);
    struct pb_txn_request puts = {.success = &put_op, .success_count = 1};
    struct pb_txn_request deletes = {.success = &delete_op, .success_count = 1};
    struct pb_request_op ops[] = {fixture_op_txn(&puts), fixture_op_txn(&deletes)};
    struct pb_txn_request txn = {.success = ops, .success_count = 2};
    struct kv_answer answer;
    assert_int_equal(applier_txn(store_applier(f->store), &txn, &f->arena, &answer), ST_OK);
    assert_int_equal(answer.revision, 9);
}

/* To revision 7. */
static void first_part(struct fixture *f)
{
    expect_hash(f, 0, 1084519789);
    fixture_put(f, "a", "1");
    fixture_put(f, "b", "22");
    fixture_put(f, "a", "3");
    fixture_delete(f, "a", "");
    put_two(f);
    assert_int_equal(fixture_put(f, "a", "x"), 7);
}

static void hashes_are_those_of_etcd(void **state)
{
    struct fixture *f = *state;
    first_part(f);
    expect_hash(f, 0, 710530400);
    expect_hash(f, 4, 3132986479);
    expect_hash(f, 5, 512932215);
    expect_hash(f, -5, 1084519789);
}

static void hashes_after_compactions_are_those_of_etcd(void **state)
{
    struct fixture *f = *state;
    first_part(f);
    fixture_compact(f, 5);
    expect_compaction_hash(f, -1, 5, 512932215);
    fixture_settle(f);
    expect_hash(f, 0, 4110789019);
    expect_hash(f, 6, 886394713);

    assert_int_equal(fixture_put(f, "b", "new"), 8);
    put_and_delete_at_one_revision(f);
    expect_hash(f, 0, 3331483264);
    fixture_compact(f, 9);
    expect_compaction_hash(f, 5, 9, 3331483264);
    fixture_settle(f);
    expect_hash(f, 0, 641334494);
    fixture_restart(f);
    expect_hash(f, 0, 641334494);
}

/* Then etcd's set of revisions to keep is empty, and everything counts. */
static void hash_of_a_store_without_keys_counts_what_compaction_left(void **state)
{
    struct fixture *f = *state;
    hashes_after_compactions_are_those_of_etcd(state);
    assert_int_equal(fixture_delete(f, "a", "z"), 10);
    expect_hash(f, 0, 4236902181);
    fixture_compact(f, 10);
    expect_compaction_hash(f, 9, 10, 514853140);
    fixture_settle(f);
    expect_hash(f, 0, 1084519789);
    fixture_put(f, "f", "1");
    expect_hash(f, 0, 3524369987);
}

static void compacted_and_future_revisions_have_no_hash(void **state)
{
    struct fixture *f = *state;
    first_part(f);
    fixture_compact(f, 5);
    fixture_commit(f);
    struct upkeep_hash found;
    assert_int_equal(whole_hash_at(f->upkeep, 4, &found), ST_COMPACTED);
    assert_int_equal(whole_hash_at(f->upkeep, 8, &found), ST_FUTURE_REV);
    assert_int_equal(found.newest, 7);
    assert_int_equal(whole_hash_at(f->upkeep, 5, &found), ST_OK);
    assert_int_equal(found.compact_revision, 5);
}

/* A wrong hash would look like a damaged store, so an error is better. */
static void compaction_trimmed_further_has_no_hash(void **state)
{
    struct fixture *f = *state;
    first_part(f);
    fixture_compact(f, 3);
    fixture_compact(f, 6);
    fixture_settle(f);
    uint32_t hash;
    assert_int_equal(whole_hash_of_compaction(f->upkeep, -1, 3, &hash), ST_COMPACTED);
    assert_int_equal(whole_hash_of_compaction(f->upkeep, 3, 6, &hash), ST_OK);
}

static void hash_does_not_change_while_the_cleaner_moves_versions(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 400; i++) {
        char key[16], value[64];
        snprintf(key, sizeof(key), "k%d", i % 7 ? i % 7 : i);
        snprintf(value, sizeof(value), "%050d", i);
        fixture_put(f, key, value);
    }
    fixture_compact(f, 350);
    fixture_settle(f);
    struct upkeep_hash before, now;
    assert_int_equal(whole_hash_at(f->upkeep, 0, &before), ST_OK);
    struct relocation *relocation;
    assert_int_equal(upkeep_clean_begin(f->upkeep, &relocation), ST_OK);
    assert_non_null(relocation);
    assert_true(relocation->count > 2);
    assert_int_equal(whole_hash_at(f->upkeep, 0, &now), ST_OK);
    assert_int_equal(now.hash, before.hash);
    bool done;
    assert_int_equal(store_relocate(f->store, relocation, 1, &done), ST_OK);
    assert_int_equal(whole_hash_at(f->upkeep, 0, &now), ST_OK);
    assert_int_equal(now.hash, before.hash);
    clean_to_end(f->store, f->upkeep, relocation, SIZE_MAX);
    assert_int_equal(whole_hash_at(f->upkeep, 0, &now), ST_OK);
    assert_int_equal(now.hash, before.hash);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(hashes_are_those_of_etcd),
        TEST(hashes_after_compactions_are_those_of_etcd),
        TEST(hash_of_a_store_without_keys_counts_what_compaction_left),
        TEST(compacted_and_future_revisions_have_no_hash),
        TEST(compaction_trimmed_further_has_no_hash),
        TEST(hash_does_not_change_while_the_cleaner_moves_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
