/*
 * The check of the store: what it counts in a sound store, and that it finds every kind of damage.
 */
#include "store/upkeep/check.h"

#include "store/fixture_test.h"
#include "store/record/change.h"
#include "store/upkeep/cleaner.h"

struct found {
    unsigned records, versions;
    char key[64]; /* key of the last version reported */
};

static void note(void *ctx, const struct store_check_damage *damage)
{
    struct found *found = ctx;
    assert_true(damage->segment_id > 0 && damage->offset >= 512);
    if (!damage->key.len) {
        found->records++;
        return;
    }
    found->versions++;
    snprintf(found->key, sizeof(found->key), "%.*s", SLICE_ARGS(damage->key));
}

/* Runs a pass in steps of this many bytes; the cleaner may run between them. */
static struct store_check_counts check(struct fixture *f, size_t bytes, struct found *found)
{
    *found = (struct found){0};
    AUTO(store_check_freep) struct store_check *pass = store_check_new(note, found);
    while (upkeep_check_step(f->upkeep, pass, bytes) == ST_AGAIN)
        ;
    return store_check_counts(pass);
}

static void fill(struct fixture *f, unsigned keys)
{
    char key[16];
    for (unsigned i = 0; i < 3 * keys; i++) {
        snprintf(key, sizeof(key), "key%03u", i % keys);
        fixture_put(f, key, "some value");
    }
    fixture_settle(f);
}

static void a_sound_store_has_no_damage(void **state)
{
    struct fixture *f = *state;
    struct found found;
    struct store_check_counts empty = check(f, SIZE_MAX, &found);
    assert_int_equal(empty.versions, 0);
    fill(f, 50);
    for (size_t bytes = 1; bytes <= 1 << 20; bytes *= 16) {
        struct store_check_counts counts = check(f, bytes, &found);
        assert_int_equal(counts.records - empty.records, 150);
        assert_int_equal(counts.versions, 150);
        assert_int_equal(counts.bad_records + counts.bad_versions, 0);
        assert_int_equal(found.records + found.versions, 0);
    }
}

/* The location of the newest version of a key. */
static uint64_t loc_of(struct fixture *f, const char *key)
{
    return index_root_find(&store_view(f->store)->root, slice_from_text(key))->newest.loc;
}

static void every_byte_of_a_record_is_checked(void **state)
{
    struct fixture *f = *state;
    struct found found;
    fill(f, 20);
    uint64_t loc = loc_of(f, "key007");
    const struct change_head *head;
    assert_int_equal(change_get(store_log(f->store), loc, &head), ST_OK);
    int64_t end = CHANGE_HEAD_BYTES + head->field_bytes;
    for (int64_t at = -40; at < end; at++) {
        fixture_flip(f, loc, at);
        struct store_check_counts counts = check(f, 4096, &found);
        assert_int_equal(counts.bad_records, 1);
        assert_int_equal(counts.bad_versions, at >= 0);
        assert_int_equal(found.records, 1);
        assert_true(at < 0 || strcmp(found.key, "key007") == 0);
        fixture_flip(f, loc, at); /* restored */
    }
    assert_int_equal(check(f, 4096, &found).bad_records, 0);
}

/*
 * Both versions are intact, and neither is the one in the index, as after damage to a checkpoint.
 */
static void an_index_that_points_to_another_version_is_reported(void **state)
{
    struct fixture *f = *state;
    fill(f, 20);
    struct index *index = store_applier(f->store)->index;
    const char *const keys[] = {"key003", "key004"};
    /* A version of another key, and another version of the same key. */
    uint64_t wrong[] = {loc_of(f, "key005"),
                        *index_item_older(index_find(index, slice_from_text(keys[1])))};
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        struct slice key = slice_from_text(keys[i]);
        uint64_t right = loc_of(f, keys[i]);
        assert_true(index_relocate(index, key, right, wrong[i]));
        fixture_put(f, "another", "");
        fixture_commit(f);
        struct found found;
        struct store_check_counts counts = check(f, 4096, &found);
        assert_int_equal(counts.bad_records, 0);
        assert_true(counts.bad_versions > 0);
        assert_string_equal(found.key, keys[i]);
        assert_true(index_relocate(index, key, wrong[i], right));
    }
}

/* A change as written before changes had checksums: its flags say whether it is a tombstone. */
static void changes_without_checksums_are_checked_by_their_form(void **state)
{
    struct fixture *f = *state;
    fill(f, 20);
    uint64_t loc = loc_of(f, "key007");
    const struct log *log = store_log(f->store);
    const struct change_head *head;
    assert_int_equal(change_get(log, loc, &head), ST_OK);
    uint32_t summed = head->flags;
    enum { FLAGS = offsetof(struct change_head, flags) };
    fixture_write(f, loc, FLAGS, &(uint32_t){0}, sizeof(summed));
    assert_int_equal(change_get(log, loc, &head), ST_OK);
    struct found found;
    assert_int_equal(check(f, 4096, &found).bad_versions, 0);
    fixture_flip(f, loc, CHANGE_HEAD_BYTES + 1); /* its length */
    assert_int_equal(change_get(log, loc, &head), ST_DAMAGED);
    fixture_flip(f, loc, CHANGE_HEAD_BYTES + 1);
    /* Flags that were never written: those of a change with a checksum that lost the bit for it. */
    summed &= ~(uint32_t)CHANGE_SUMMED;
    fixture_write(f, loc, FLAGS, &summed, sizeof(summed));
    assert_int_equal(change_get(log, loc, &head), ST_DAMAGED);
}

static void clean_all(struct fixture *f)
{
    struct relocation *relocation;
    for (;;) {
        enum status status = upkeep_clean_begin(f->upkeep, &relocation);
        if (status == ST_DAMAGED)
            continue;
        assert_int_equal(status, ST_OK);
        if (!relocation)
            return;
        fixture_clean(f, relocation, 64);
    }
}

/*
 * One record replaces both keys and is damaged at one of them: compaction cannot determine what it
 * has replaced, while the checkpoint and the log drop it.
 */
static void compacted_records_are_not_reported_as_damage_of_other_keys(void **state)
{
    struct fixture *f = *state;
    fixture_put(f, "hit", "first");
    fixture_put(f, "other", "first");
    fill(f, 100);
    struct pb_put_request puts[] = {
        {.key = SLICE_LITERAL("hit"), .value = SLICE_LITERAL("second")},
        {.key = SLICE_LITERAL("other"), .value = SLICE_LITERAL("second")},
    };
    struct pb_request_op ops[] = {fixture_op_put(&puts[0]), fixture_op_put(&puts[1])};
    struct pb_txn_request request = {.success = ops, .success_count = COUNT_OF(ops)};
    struct kv_answer answer;
    assert_int_equal(applier_txn(store_applier(f->store), &request, &f->arena, &answer), ST_OK);
    fill(f, 100);
    uint64_t segments = log_segments(store_log(f->store), NULL, 0);
    fixture_flip(f, loc_of(f, "hit"), CHANGE_HEAD_BYTES + 10);
    fixture_compact(f, store_applier(f->store)->revision);
    fixture_settle(f);
    clean_all(f);
    assert_true(log_segments(store_log(f->store), NULL, 0) < segments);
    assert_int_equal(upkeep_prepare(f->upkeep), ST_OK); /* unmaps forgotten segments */
    struct found found;
    struct store_check_counts counts = check(f, 4096, &found);
    assert_int_equal(counts.bad_records, 1);
    assert_int_equal(counts.bad_versions, 1);
    assert_string_equal(found.key, "hit");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_sound_store_has_no_damage),
        TEST(every_byte_of_a_record_is_checked),
        TEST(an_index_that_points_to_another_version_is_reported),
        TEST(changes_without_checksums_are_checked_by_their_form),
        TEST(compacted_records_are_not_reported_as_damage_of_other_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
