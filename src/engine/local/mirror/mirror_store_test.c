/* A local engine as the mirror of another server. */
#include "engine/local/mirror/fixture_test.h"

static const struct engine_local_options mirror_options = {
    .segment_bytes_first = 64 << 10,
    .segment_bytes_max = 256 << 10,
    .checkpoint_bytes = 128 << 10,
    .is_mirror = true,
};

static int setup(void **state)
{
    *state = fixture_new_fast(mirror_options);
    return 0;
}

static void reopen(struct fixture *f)
{
    fixture_close(f);
    fixture_open(f, mirror_options);
}

/* -- Applying -- */

static void revisions_with_gaps_are_read_like_others(void **state)
{
    struct fixture *f = *state;
    apply_one(f, 10, put_of("a", "first", 10, 1));
    apply_one(f, 25, put_of("a", "second", 10, 2));
    apply_one(f, 40, delete_of("a"));
    assert_int_equal(get(f, "a").count, 0);
    assert_int_equal(get(f, "a").revision, 40);
    assert_int_equal(local_mirror_revision(f->engine), 40);
    assert_string_equal(find(f, "a", "", 39).value, "second");
    assert_int_equal(find(f, "a", "", 39).version, 2);
    assert_string_equal(find(f, "a", "", 24).value, "first");
    assert_string_equal(find(f, "a", "", 10).value, "first");
    assert_int_equal(find(f, "a", "", 9).count, 0);
    assert_int_equal(find(f, "a", "", 41).status, ST_FUTURE_REV);
}

static void reaching_raises_the_revision_without_a_record(void **state)
{
    struct fixture *f = *state;
    apply_one(f, 10, put_of("a", "first", 10, 1));
    struct engine_status before, after;
    engine_status_get(f->shard, &before);
    apply_reach(f, 77);
    engine_status_get(f->shard, &after);
    assert_int_equal(after.revision, 77);
    assert_int_equal(after.raft_index, before.raft_index);
    assert_int_equal(local_mirror_revision(f->engine), 77);
    assert_int_equal(get(f, "a").revision, 77);
    assert_string_equal(find(f, "a", "", 50).value, "first");
    apply_reach(f, 50); /* it never goes back */
    assert_int_equal(local_mirror_revision(f->engine), 77);
}

static void all_changes_of_a_revision_appear_together(void **state)
{
    struct fixture *f = *state;
    struct imported_change changes[] = {put_of("a", "1", 10, 1), put_of("b", "2", 10, 1)};
    changes[1].sub = 1;
    struct mirror_revision revisions[] = {
        {.revision = 10, .changes = changes, .count = 2},
        {.revision = 12, .changes = &(struct imported_change){.kv = changes[0].kv}, .count = 1},
    };
    struct mirror_batch batch = {.revisions = revisions, .count = 2, .reach = 15};
    assert_int_equal(apply_batch(f, batch), ST_OK);
    assert_int_equal(get(f, "a").revision, 15);
    assert_int_equal(get(f, "a").mod_revision, 12);
    assert_int_equal(find(f, "a", "c", 11).count, 2);
    assert_int_equal(find(f, "a", "c", 9).count, 0);
}

static void a_lease_of_another_server_stays_with_its_key(void **state)
{
    struct fixture *f = *state;
    struct imported_change change = put_of("a", "1", 10, 1);
    change.kv.lease = 0x7d00;
    apply_one(f, 10, change);
    apply_one(f, 11, put_of("b", "1", 11, 1));
    change.kv.lease = 0;
    change.kv.key = SLICE_LITERAL("c");
    apply_one(f, 12, change);
    assert_int_equal(get(f, "a").lease, 0x7d00);
    reopen(f);
    assert_int_equal(get(f, "a").lease, 0x7d00);
    assert_int_equal(get(f, "b").lease, 0);
}

static void a_tombstone_without_a_key_is_left_out(void **state)
{
    struct fixture *f = *state;
    struct imported_change changes[] = {delete_of("missing"), put_of("a", "1", 10, 1)};
    changes[1].sub = 1;
    struct mirror_revision revision = {.revision = 10, .changes = changes, .count = 2};
    struct mirror_batch batch = {.revisions = &revision, .count = 1};
    assert_int_equal(apply_batch(f, batch), ST_OK);
    assert_int_equal(find(f, "a", "z", 0).count, 1);
    struct engine_status before, after;
    engine_status_get(f->shard, &before);
    apply_one(f, 12, delete_of("missing")); /* nothing is left of this revision */
    engine_status_get(f->shard, &after);
    assert_int_equal(after.revision, 12);
    assert_int_equal(after.raft_index, before.raft_index);
}

static void a_revision_that_is_not_newer_is_refused(void **state)
{
    struct fixture *f = *state;
    struct imported_change change = put_of("a", "1", 10, 1);
    struct mirror_revision revisions[] = {{.revision = 10, .changes = &change, .count = 1},
                                          {.revision = 9, .changes = &change, .count = 1}};
    struct applying applying = {.batch = {.revisions = revisions, .count = 2}};
    apply_start(f, &applying);
    assert_int_equal(apply_wait(&applying), ST_INVALID);
    assert_int_equal(applying.batch.applied, 1);
    assert_int_equal(get(f, "a").revision, 10);
}

static void nothing_is_applied_after_a_failure_until_it_is_known(void **state)
{
    struct fixture *f = *state;
    struct imported_change change = put_of("a", "1", 10, 1);
    struct mirror_revision revisions[] = {{.revision = 10, .changes = &change, .count = 1},
                                          {.revision = 10, .changes = &change, .count = 1},
                                          {.revision = 20, .changes = &change, .count = 1}};
    struct applying bad = {.batch = {.revisions = revisions, .count = 2}};
    struct applying after = {.batch = {.revisions = &revisions[2], .count = 1}};
    struct applying reach = {.batch = {.reach = 20}}, compact = {.batch = {.compact = 20}};
    struct applying *all[] = {&bad, &after, &reach, &compact};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        apply_start(f, all[i]);
    for (size_t i = 0; i < COUNT_OF(all); i++)
        assert_int_equal(apply_wait(all[i]), ST_INVALID);
    assert_int_equal(get(f, "a").revision, 10);
    assert_int_equal(local_mirror_revision(f->engine), 10);
    local_mirror_retry(f->engine);
    apply_one(f, 20, change);
    assert_int_equal(get(f, "a").revision, 20);
}

/* -- Refusals -- */

static void clients_cannot_write(void **state)
{
    struct fixture *f = *state;
    struct pb_put_request put = {.key = SLICE_LITERAL("a"), .prev_kv = true};
    struct engine_write write = {.op = new_op(f)};
    engine_put(f->shard, &write, &put);
    wait_for(f, 0);
    assert_int_equal(write.op.status, ST_UNIMPLEMENTED);
    engine_write_close(&write);
    struct engine_lease lease = {.op = new_op(f), .ttl_s = 10};
    engine_lease_grant(f->shard, &lease);
    wait_for(f, 0);
    assert_int_equal(lease.op.status, ST_UNIMPLEMENTED);
    struct pb_compaction_request compaction = {.revision = 1};
    struct engine_op op = new_op(f);
    engine_compact(f->shard, &op, &compaction);
    wait_for(f, 0);
    assert_int_equal(op.status, ST_UNIMPLEMENTED);
    assert_int_equal(local_mirror_revision(f->engine), 1);
}

/* -- Compaction and states -- */

static void a_compaction_of_a_revision_without_a_record(void **state)
{
    struct fixture *f = *state;
    apply_one(f, 10, put_of("a", "first", 10, 1));
    apply_one(f, 20, put_of("a", "second", 10, 2));
    apply_reach(f, 30);
    apply_compact(f, 25);
    assert_int_equal(local_mirror_compact_revision(f->engine), 25);
    assert_int_equal(find(f, "a", "", 24).status, ST_COMPACTED);
    struct pb_range_request request = {.key = SLICE_LITERAL("a"), .revision = 24};
    struct engine_range dropped = {.op = {.arena = &f->arena, .request = &request}};
    assert_false(local_mirror_range_start(f->shard, &dropped)); /* done is not called */
    assert_string_equal(find(f, "a", "", 25).value, "second");
    apply_compact(f, 20); /* an older one has no effect */
    assert_int_equal(local_mirror_compact_revision(f->engine), 25);
    apply_compact(f, 40); /* everything up to it is known then */
    assert_int_equal(local_mirror_revision(f->engine), 40);
    reopen(f);
    assert_int_equal(local_mirror_revision(f->engine), 40);
    assert_int_equal(local_mirror_compact_revision(f->engine), 40);
    assert_string_equal(get(f, "a").value, "second");
}

static void a_restart_keeps_everything_that_has_a_record(void **state)
{
    struct fixture *f = *state;
    apply_one(f, 10, put_of("a", "first", 10, 1));
    apply_one(f, 20, put_of("b", "second", 20, 1));
    apply_reach(f, 30);
    reopen(f);
    int64_t revision = local_mirror_revision(f->engine);
    assert_true(revision >= 20 && revision <= 30);
    assert_string_equal(find(f, "a", "", 15).value, "first");
    apply_one(f, 31, delete_of("b"));
    reopen(f);
    assert_int_equal(local_mirror_revision(f->engine), 31);
    assert_int_equal(get(f, "b").count, 0);
}

static void give_part(struct fixture *f, int64_t revision, struct imported_change change,
                      bool is_part)
{
    struct mirror_revision one = {.revision = revision, .changes = &change, .count = 1};
    struct mirror_batch batch = {
        .revisions = &one, .count = 1, .compact = 50, .is_part = is_part, .reach = 50};
    assert_int_equal(apply_batch(f, batch), ST_OK);
}

static void a_state_in_parts_is_hidden_until_the_last(void **state)
{
    struct fixture *f = *state;
    apply_one(f, 10, put_of("a", "old", 10, 1));
    give_part(f, 30, put_of("b", "new", 30, 1), true);
    assert_int_equal(get(f, "b").count, 0);
    assert_int_equal(get(f, "a").revision, 10);
    assert_int_equal(local_mirror_revision(f->engine), 10);
    give_part(f, 40, put_of("c", "new", 30, 1), true);
    assert_int_equal(find(f, "a", "z", 0).count, 1);
    give_part(f, 50, delete_of("a"), false);
    assert_int_equal(find(f, "a", "z", 0).count, 2);
    assert_int_equal(local_mirror_revision(f->engine), 50);
    assert_int_equal(find(f, "a", "z", 40).status, ST_COMPACTED);
    reopen(f);
    assert_int_equal(find(f, "a", "z", 0).count, 2);
    assert_int_equal(local_mirror_revision(f->engine), 50);
}

static void part_of_a_state_is_not_opened(void **state)
{
    struct fixture *f = *state;
    apply_one(f, 10, put_of("a", "old", 10, 1));
    give_part(f, 30, put_of("b", "new", 30, 1), true);
    fixture_close(f);
    struct engine_local_options options = mirror_options;
    struct engine *engine;
    struct error error = {0};
    options.data_dir = f->dir;
    assert_int_equal(engine_local_open(&options, &engine, &error), ST_DAMAGED);
    temp_dir_remove(f->dir);
    temp_dir_make_fast("engine", f->dir);
    fixture_open(f, mirror_options);
}

/* -- Walking -- */

static void a_walk_shows_the_state_in_which_it_began(void **state)
{
    enum { KEYS = 5000 };
    struct fixture *f = *state;
    for (int i = 0; i < KEYS; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%05d", i);
        apply_one(f, 10 + i, put_of(key, "v", 10 + i, 1));
    }
    apply_one(f, 10 + KEYS, delete_of("k00100"));
    struct mirror_walk *walk = local_mirror_walk_new(f->engine);
    struct slice key;
    int64_t mod_revision;
    for (int i = 0; i < KEYS; i++) {
        char expected[16];
        snprintf(expected, sizeof(expected), "k%05d", i);
        if (i == 100)
            continue;
        assert_true(local_mirror_walk_next(walk, &key, &mod_revision));
        assert_true(slice_is(key, expected));
        assert_int_equal(mod_revision, 10 + i);
        if (i == 2000) { /* neither of them is part of the state */
            apply_one(f, 100000, put_of("k03000", "changed", 3010, 2));
            apply_one(f, 100001, put_of("k03000x", "added", 100001, 1));
        }
    }
    assert_false(local_mirror_walk_next(walk, &key, &mod_revision));
    assert_true(local_mirror_walk_is_complete(walk));
    local_mirror_walk_free(walk);
}

/* Changes a byte of a value in the first segment. */
static void damage_value(struct fixture *f, const char *value)
{
    char path[sizeof(f->dir) + 40];
    static uint8_t bytes[64 << 10];
    snprintf(path, sizeof(path), "%s/log/0000000000000001.seg", f->dir);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    size_t len = fread(bytes, 1, sizeof(bytes), file);
    const uint8_t *found = memmem(bytes, len, value, strlen(value));
    assert_non_null(found);
    assert_int_equal(fseek(file, found - bytes, SEEK_SET), 0);
    assert_int_equal(fputc('?', file), '?');
    assert_int_equal(fclose(file), 0);
}

/* The value is in another step of the walk than the end. */
static void damage_in_any_step_makes_a_walk_incomplete(void **state)
{
    enum { KEYS = 1500 };
    struct fixture *f = *state;
    for (int i = 0; i < KEYS; i++) {
        char key[16];
        snprintf(key, sizeof(key), "k%05d", i);
        apply_one(f, 10 + i, put_of(key, i == 7 ? "to be damaged" : "v", 10 + i, 1));
    }
    assert_false(local_mirror_is_damaged(f->engine));
    damage_value(f, "to be damaged");
    struct mirror_walk *walk = local_mirror_walk_new(f->engine);
    struct slice key;
    int64_t mod_revision;
    struct change_kv kv;
    for (int i = 0; local_mirror_walk_next(walk, &key, &mod_revision); i++) {
        local_mirror_walk_get(walk, &kv);
        assert_int_equal(kv.mod_revision, i == 7 ? 0 : 10 + i);
    }
    assert_false(local_mirror_walk_is_complete(walk));
    assert_true(local_mirror_is_damaged(f->engine));
    local_mirror_walk_free(walk);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(revisions_with_gaps_are_read_like_others),
        TEST(reaching_raises_the_revision_without_a_record),
        TEST(all_changes_of_a_revision_appear_together),
        TEST(a_lease_of_another_server_stays_with_its_key),
        TEST(a_tombstone_without_a_key_is_left_out),
        TEST(a_revision_that_is_not_newer_is_refused),
        TEST(nothing_is_applied_after_a_failure_until_it_is_known),
        TEST(clients_cannot_write),
        TEST(a_compaction_of_a_revision_without_a_record),
        TEST(a_restart_keeps_everything_that_has_a_record),
        TEST(a_state_in_parts_is_hidden_until_the_last),
        TEST(part_of_a_state_is_not_opened),
        TEST(a_walk_shows_the_state_in_which_it_began),
        TEST(damage_in_any_step_makes_a_walk_incomplete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
