/* The size that operators see, and the effect of defragmenting on it and on the segments. */
#include "store/fixture_test.h"

enum { KEYS = 40, ROUNDS = 20 };

static struct store_view view_of(struct fixture *f)
{
    fixture_commit(f);
    return *store_view(f->store);
}

/*
 * Overwrites all keys repeatedly, so that there are many segments with few live versions in each.
 */
static int64_t fill(struct fixture *f)
{
    char value[200];
    memset(value, 'v', sizeof(value));
    value[sizeof(value) - 1] = '\0';
    int64_t revision = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < KEYS; i++) {
            char key[16];
            snprintf(key, sizeof(key), "k%02d", (i * 7 + round) % KEYS);
            revision = fixture_put(f, key, value);
            fixture_commit(f);
        }
    }
    return revision;
}

static size_t segment_count(struct fixture *f)
{
    return log_segments(store_log(f->store), NULL, 0);
}

/* Like the engine, but alone. Returns how many segments were copied. */
static size_t defragment(struct fixture *f)
{
    size_t copied = fixture_defragment(f, upkeep_defragment_end(f->upkeep));
    store_shrink(f->store);
    fixture_commit(f);
    assert_int_equal(upkeep_checkpoint(f->upkeep), ST_OK);
    return copied;
}

/* Like a file: freed space is used again before it grows. */
static void size_is_the_maximum_that_was_in_use(void **state)
{
    struct fixture *f = *state;
    int64_t revision = fill(f);
    struct store_view full = view_of(f);
    assert_int_equal(full.db_bytes, full.db_bytes_in_use);
    fixture_compact(f, revision);
    fixture_settle(f);
    struct store_view freed = view_of(f);
    assert_int_equal(freed.db_bytes, full.db_bytes);
    assert_true(freed.db_bytes_in_use < full.db_bytes / 10);
    for (int i = 0; i < KEYS; i++)
        fixture_put(f, "again", "and again");
    struct store_view again = view_of(f);
    assert_int_equal(again.db_bytes, full.db_bytes);
    assert_true(again.db_bytes_in_use > freed.db_bytes_in_use);
    fill(f);
    fill(f);
    assert_true(view_of(f).db_bytes > full.db_bytes);
}

static void size_survives_restarts(void **state)
{
    struct fixture *f = *state;
    int64_t revision = fill(f);
    int64_t size = view_of(f).db_bytes;
    fixture_restart(f); /* nothing in the checkpoint: replayed */
    assert_int_equal(view_of(f).db_bytes, size);
    fixture_compact(f, revision);
    fixture_settle(f);
    int64_t in_use = view_of(f).db_bytes_in_use;
    fixture_restart(f); /* all in the checkpoint */
    fixture_settle(f);
    assert_int_equal(view_of(f).db_bytes, size);
    assert_int_equal(view_of(f).db_bytes_in_use, in_use);
    defragment(f);
    assert_int_equal(view_of(f).db_bytes, in_use);
    fixture_restart(f);
    fixture_settle(f);
    assert_int_equal(view_of(f).db_bytes, in_use);
    assert_int_equal(view_of(f).db_bytes_in_use, in_use);
}

/* Versions kept for watches from the compact revision are not counted, as in etcd. */
static void versions_deleted_last_are_not_in_use(void **state)
{
    struct fixture *f = *state;
    int64_t empty = view_of(f).db_bytes_in_use;
    fill(f);
    int64_t revision = fixture_delete(f, "k", "l");
    int64_t full = view_of(f).db_bytes;
    fixture_compact(f, revision);
    fixture_settle(f);
    assert_int_equal(view_of(f).db_bytes_in_use, empty);
    assert_int_equal(view_of(f).db_bytes, full);
    fixture_restart(f);
    fixture_settle(f);
    assert_int_equal(view_of(f).db_bytes_in_use, empty);
    assert_int_equal(view_of(f).db_bytes, full);
    defragment(f);
    assert_int_equal(view_of(f).db_bytes, empty);
    fixture_restart(f);
    fixture_put(f, "one", "more"); /* before it was counted again */
    fixture_settle(f);
    int64_t one = view_of(f).db_bytes;
    assert_int_equal(one, view_of(f).db_bytes_in_use);
    assert_true(one < 200);
    revision = fixture_put(f, "one", "again");
    fixture_compact(f, revision);
    fixture_settle(f);
    assert_int_equal(view_of(f).db_bytes_in_use, one + 1);
    fixture_compact(f, fixture_delete(f, "one", ""));
    fixture_settle(f);
    assert_int_equal(view_of(f).db_bytes_in_use, empty);
}

static void defragmenting_copies_each_segment_once_and_loses_nothing(void **state)
{
    struct fixture *f = *state;
    int64_t revision = fill(f);
    /* A third of the last keys stay unchanged: segments that are more than half live. */
    fixture_compact(f, revision - KEYS / 2);
    fixture_settle(f);
    size_t before = segment_count(f);
    size_t copied = defragment(f);
    assert_in_range(copied, before / 2, before);
    assert_true(segment_count(f) < before);
    assert_int_equal(fixture_state(f).root.live_keys, KEYS);
    assert_int_equal(defragment(f), 0);
    fixture_restart(f);
    assert_int_equal(fixture_state(f).root.live_keys, KEYS);
}

/* Segments made meanwhile are left for the next time, so it ends. */
static void later_segments_are_left_alone(void **state)
{
    struct fixture *f = *state;
    fill(f);
    uint64_t end = upkeep_defragment_end(f->upkeep);
    int64_t revision = fill(f);
    fixture_compact(f, revision);
    fixture_settle(f);
    fixture_defragment(f, end);
    assert_true(defragment(f) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(size_is_the_maximum_that_was_in_use, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(versions_deleted_last_are_not_in_use, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(size_survives_restarts, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(defragmenting_copies_each_segment_once_and_loses_nothing,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(later_segments_are_left_alone, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
