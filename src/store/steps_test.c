/*
 * Checkpoints and cleanings run in steps, however much one request or one segment contains, and a
 * stop after any of them loses nothing. Each commit of the in-memory checkpoint is one step.
 */
#include "store/fixture_test.h"

#include "base/yield_point.h"
#include "store/backend/backend_private.h"
#include "store/log/segment.h"
#include "store/mvcc/range_walk.h"

enum { KEYS = 300, STEP_BYTES = 512, STEP_VERSIONS = 16 };

static void limit(struct fixture *f)
{
    upkeep_limit_steps(f->upkeep, STEP_BYTES, STEP_VERSIONS);
}

static void put_all(struct fixture *f, const char *value)
{
    for (int i = 0; i < KEYS; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%04d", i);
        fixture_put(f, key, value);
        fixture_commit(f);
    }
}

static int64_t count_keys(struct fixture *f)
{
    struct range_state state = fixture_state(f);
    struct range_walk walk;
    range_walk_init(&walk, &state, (struct range_bounds){.to_end = true}, 0);
    int64_t count = 0;
    for (const struct range_kv *kv; (kv = range_walk_next(&walk));)
        count += *index_item_key(kv->item).ptr == 'k';
    return count;
}

/* The most versions that a transaction of the keeper changes, of all kinds. */
struct counting {
    struct backend_ops ops;
    const struct backend_ops *real;
    size_t changed, changed_max, commits;
};
static struct counting counting;

static enum status count_put(struct backend *backend, const struct backend_version *version)
{
    counting.changed++;
    return counting.real->version_put(backend, version);
}

static enum status count_delete(struct backend *backend, struct backend_version_id id)
{
    counting.changed++;
    return counting.real->version_delete(backend, id);
}

static enum status count_commit(struct backend *backend)
{
    counting.changed_max = size_max(counting.changed_max, counting.changed);
    counting.changed = 0;
    counting.commits++;
    return counting.real->commit(backend);
}

static void count_from_here(struct fixture *f)
{
    struct backend *backend = store_backend(f->store);
    counting = (struct counting){.real = backend->ops, .ops = *backend->ops};
    counting.ops.version_put = count_put;
    counting.ops.version_delete = count_delete;
    counting.ops.commit = count_commit;
    backend->ops = &counting.ops;
}

static void check_steps(size_t changes)
{
    const size_t most = STEP_BYTES / 64 + 1;
    assert_true(counting.changed_max <= most);
    assert_true(counting.commits >= changes / most);
}

static void a_request_with_many_changes_is_checkpointed_in_steps(void **state)
{
    struct fixture *f = *state;
    put_all(f, "value");
    assert_int_equal(upkeep_checkpoint(f->upkeep), ST_OK);
    limit(f);
    fixture_delete(f, "k", "l");
    fixture_commit(f);
    count_from_here(f);
    assert_int_equal(upkeep_checkpoint(f->upkeep), ST_OK);
    check_steps(KEYS);
    fixture_restart(f);
    assert_int_equal(count_keys(f), 0);
}

/* The process ends after each step in turn: the record is replayed, and checkpointed again. */
static void a_stop_within_a_record_loses_nothing(void **state)
{
    struct fixture *f = *state;
    put_all(f, "value");
    assert_int_equal(upkeep_checkpoint(f->upkeep), ST_OK);
    int64_t revision = fixture_delete(f, "k0010", "k0250");
    fixture_commit(f);
    int64_t in_use = store_view(f->store)->db_bytes_in_use;
    for (int steps = 1;; steps++) {
        limit(f);
        upkeep_checkpoint_begin(f->upkeep);
        bool done = false;
        for (int i = 0; i < steps && !done; i++)
            assert_int_equal(upkeep_checkpoint_step(f->upkeep, &done), ST_OK);
        bool lags = upkeep_checkpoint_lags(f->upkeep);
        fixture_restart(f);
        assert_int_equal(count_keys(f), KEYS - 240);
        assert_int_equal(store_view(f->store)->revision, revision);
        assert_int_equal(store_view(f->store)->db_bytes_in_use, in_use);
        if (!lags)
            break;
        assert_true(steps < KEYS);
    }
    assert_int_equal(upkeep_checkpoint(f->upkeep), ST_OK);
    fixture_restart(f);
    assert_int_equal(count_keys(f), KEYS - 240);
}

/* All keys, and most of them again: few of the first versions are live among many dead ones. */
static void make_something_to_clean(struct fixture *f)
{
    put_all(f, "first");
    for (int i = 0; i < KEYS; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%04d", i);
        if (i % 3)
            fixture_put(f, key, "again");
        fixture_commit(f);
    }
    fixture_compact(f, store_view(f->store)->revision);
    fixture_settle(f);
}

static void check_values(struct fixture *f)
{
    struct range_state state = fixture_state(f);
    struct range_walk walk;
    range_walk_init(&walk, &state, (struct range_bounds){.to_end = true}, 0);
    int count = 0;
    for (const struct range_kv *kv; (kv = range_walk_next(&walk)); count++) {
        const struct change_head *head;
        struct change_kv read;
        assert_int_equal(change_get(state.log, kv->item->newest.loc, &head), ST_OK);
        change_read_kv(head, &read);
        assert_true(slice_equal(read.key, index_item_key(kv->item)));
        const char *expected = count % 3 ? "again" : "first";
        assert_true(slice_is(read.value, expected));
    }
    assert_int_equal(count, KEYS);
}

static void a_segment_of_many_versions_is_cleaned_in_steps(void **state)
{
    struct fixture *f = *state;
    make_something_to_clean(f);
    limit(f);
    count_from_here(f);
    assert_true(fixture_clean_all(f, SIZE_MAX) > 1);
    check_steps(KEYS / 3);
    check_values(f);
    fixture_restart(f);
    check_values(f);
}

/* One cleaning, of which only this many steps are made. False: it took fewer. */
static bool clean_partly(struct fixture *f, int steps)
{
    struct relocation *relocation;
    assert_int_equal(upkeep_clean_begin(f->upkeep, &relocation), ST_OK);
    assert_non_null(relocation);
    bool done = false;
    for (int i = 0; i < steps && !done; i++) {
        bool moved = false;
        while (!moved)
            assert_int_equal(store_relocate(f->store, relocation, 5, &moved), ST_OK);
        assert_int_equal(upkeep_clean_step(f->upkeep, relocation, &done), ST_OK);
    }
    if (!done)
        free(relocation);
    return !done;
}

/* The process ends after each step in turn: the next one continues, or starts again. */
static void a_stop_within_a_cleaning_loses_nothing(void **state)
{
    struct fixture *f = *state;
    make_something_to_clean(f);
    int64_t in_use = store_view(f->store)->db_bytes_in_use;
    bool more = true;
    unsigned resumed = 0;
    for (int steps = 1; more; steps++) {
        limit(f);
        more = clean_partly(f, steps);
        fixture_restart(f);
        check_values(f);
        bool stands = backend_meta_get(store_backend(f->store), BACKEND_MOVED_FROM, 0) != 0;
        resumed += stands;
        fixture_settle(f); /* what the compact revision holds is counted */
        assert_int_equal(store_view(f->store)->db_bytes_in_use, in_use);
        if (stands) { /* and what was half done is trimmed like the rest */
            fixture_restart(f);
            check_values(f);
        }
    }
    assert_true(resumed > 0);
    fixture_clean_all(f, SIZE_MAX);
    check_values(f);
    int64_t revision = fixture_delete(f, "k", "l");
    fixture_compact(f, revision);
    fixture_settle(f);
    fixture_restart(f);
    assert_int_equal(count_keys(f), 0);
}

/* Versions with locations in the old segment are dropped while the new locations are recorded. */
static void versions_dropped_during_a_cleaning_are_subtracted_from_the_copy(void **state)
{
    struct fixture *f = *state;
    make_something_to_clean(f);
    limit(f);
    int steps = 1;
    while (clean_partly(f, steps) &&
           !backend_meta_get(store_backend(f->store), BACKEND_MOVED_FROM, 0)) {
        fixture_restart(f);
        limit(f);
        steps++;
    }
    assert_true(backend_meta_get(store_backend(f->store), BACKEND_MOVED_FROM, 0));
    fixture_restart(f);
    int64_t revision = fixture_delete(f, "k0000", "k0150");
    fixture_put(f, "l", "later");
    fixture_compact(f, revision + 1);
    fixture_settle(f);
    fixture_clean_all(f, SIZE_MAX);
    fixture_restart(f);
    assert_int_equal(count_keys(f), KEYS - 150);
}

static void count_yield(void *ctx)
{
    unsigned *yields = ctx;
    (*yields)++;
}

/*
 * So that the writer renews leases meanwhile: creating its segment, writing and syncing take long.
 */
static void other_requests_are_served_while_a_long_record_is_written(void **state)
{
    struct fixture *f = *state;
    enum { VALUE_BYTES = 9 << 20, PIECES = VALUE_BYTES / SEGMENT_PIECE_BYTES };
    char *value = malloc(VALUE_BYTES + 1);
    memset(value, 'v', VALUE_BYTES);
    value[VALUE_BYTES] = '\0';
    unsigned made = 0, written = 0;
    struct yield_point making = {count_yield, &made, 0}, writing = {count_yield, &written, 0};
    yield_point_here = &making;
    fixture_put(f, "k", value);
    yield_point_here = &writing;
    fixture_commit(f);
    yield_point_here = NULL;
    free(value);
    assert_in_range(made, PIECES, 2 * PIECES + 2);
    assert_in_range(written, PIECES, 2 * PIECES + 2);
    fixture_restart(f);
    assert_int_equal(count_keys(f), 1);
}

/* What a request has replaced is freed after it, in parts. */
static void other_requests_are_served_while_memory_is_freed(void **state)
{
    struct fixture *f = *state;
    enum { MANY = 5 * YIELD_POINT_WORK };
    for (int i = 0; i < MANY; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%05d", i);
        fixture_put(f, key, "v");
    }
    fixture_commit(f);
    fixture_delete(f, "k", "l");
    unsigned yields = 0;
    struct yield_point point = {count_yield, &yields, 0};
    yield_point_here = &point;
    fixture_commit(f);
    yield_point_here = NULL;
    assert_true(yields >= 3);
    assert_int_equal(count_keys(f), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_request_with_many_changes_is_checkpointed_in_steps),
        TEST(a_stop_within_a_record_loses_nothing),
        TEST(a_segment_of_many_versions_is_cleaned_in_steps),
        TEST(a_stop_within_a_cleaning_loses_nothing),
        TEST(versions_dropped_during_a_cleaning_are_subtracted_from_the_copy),
        TEST(other_requests_are_served_while_a_long_record_is_written),
        TEST(other_requests_are_served_while_memory_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
