/* Trimming after a compaction: what is dropped, what stays and for how long, and in which steps. */
#include "store/upkeep/compaction.h"

#include "store/fixture_test.h"
#include "store/record/change.h"
#include "store/upkeep/whole_hash_test.h"

/* The stored versions of a key, newest last, as "mod" or "modt" for tombstones; "-" for no item. */
static const char *versions(struct fixture *f, const char *key)
{
    struct range_state state = fixture_state(f);
    const struct index_item *item = index_root_find(&state.root, slice_from_text(key));
    if (!item)
        return "-";
    char text[256] = "";
    size_t len = 0;
    for (uint32_t i = 0; i < item->older_count; i++) {
        const struct change_head *head =
            change_at(log_rest_at(state.log, index_item_older(item)[i]).ptr);
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%lld%s ",
                                (long long)head->revision, change_is_tombstone(head) ? "t" : "");
    }
    snprintf(text + len, sizeof(text) - len, "%lld%s", (long long)item->newest.mod_revision,
             index_item_live(item) ? "" : "t");
    struct slice copy;
    assert_int_equal(arena_dup(&f->arena, slice_of(text, sizeof(text)), &copy), ST_OK);
    return (const char *)copy.ptr;
}

static enum status scan_count(void *ctx, const struct backend_version *version)
{
    (void)version;
    ++*(unsigned *)ctx;
    return ST_OK;
}

static unsigned checkpointed(struct fixture *f)
{
    unsigned count = 0;
    assert_int_equal(backend_versions_scan(store_backend(f->store), (struct backend_version_id){0},
                                           scan_count, &count),
                     ST_OK);
    return count;
}

/*
 *        2    3    4    5    6    7    8
 *   a   put       put       put
 *   b        put       del            put
 *   c                            put        (7, and deleted at 9)
 */
static int setup(void **state)
{
    fixture_setup(state);
    struct fixture *f = *state;
    fixture_put(f, "a", "1");
    fixture_put(f, "b", "1");
    fixture_put(f, "a", "2");
    fixture_delete(f, "b", "");
    fixture_put(f, "a", "3");
    fixture_put(f, "c", "1");
    fixture_put(f, "b", "2");
    assert_int_equal(fixture_delete(f, "c", ""), 9);
    return 0;
}

static void replaced_versions_are_dropped_except_at_the_compacted_revision(void **state)
{
    struct fixture *f = *state;
    assert_string_equal(versions(f, "a"), "2 4 6");
    fixture_compact(f, 4);
    fixture_settle(f);
    /* The version before the change at 4 stays: a watch from 4 on may need it. */
    assert_string_equal(versions(f, "a"), "2 4 6");
    fixture_compact(f, 5);
    fixture_settle(f);
    assert_string_equal(versions(f, "a"), "4 6");
    assert_string_equal(versions(f, "b"), "3 5t 8"); /* a tombstone at exactly 5 stays */
    assert_int_equal(checkpointed(f), 7);
    fixture_compact(f, 6);
    fixture_settle(f);
    assert_string_equal(versions(f, "b"), "8"); /* and is dropped then */
    assert_string_equal(versions(f, "a"), "4 6");
    fixture_compact(f, 7);
    fixture_settle(f);
    assert_string_equal(versions(f, "a"), "6");
    assert_int_equal(checkpointed(f), 4);
}

static void deleted_key_is_removed_once_its_tombstone_is_compacted(void **state)
{
    struct fixture *f = *state;
    fixture_compact(f, 9);
    fixture_settle(f);
    assert_string_equal(versions(f, "c"), "7 9t");
    fixture_put(f, "d", "");
    fixture_compact(f, 10);
    fixture_settle(f);
    assert_string_equal(versions(f, "c"), "-");
    assert_int_equal(checkpointed(f), 3); /* a, b, d */
    fixture_restart(f);
    assert_string_equal(versions(f, "c"), "-");
    assert_string_equal(versions(f, "a"), "6");
}

static void fill_disk(struct fixture *f)
{
    fs_sim_set_space(f->sim, 0);
    for (int i = 0; i < 100 && !log_is_short(store_log(f->store)); i++) {
        fixture_put(f, "filler", "some bytes that are not needed, and some more of them");
        fixture_commit(f);
    }
    assert_true(log_is_short(store_log(f->store)));
}

/* With every key deleted, no delete is left that could create a revision to compact to. */
static void full_disk_gets_back_what_was_deleted_at_the_compacted_revision(void **state)
{
    struct fixture *f = *state;
    fill_disk(f);
    int64_t deleted = fixture_delete(f, "a", "z");
    fixture_compact(f, deleted);
    fixture_settle(f);
    char only[32];
    snprintf(only, sizeof(only), "%lldt", (long long)deleted);
    assert_string_equal(versions(f, "a"), only); /* for a watch from here on */
    assert_string_equal(versions(f, "filler"), only);
    assert_string_equal(versions(f, "c"), "-");
    assert_int_equal(checkpointed(f), 3); /* a, b and filler */
    struct applier *applier = store_applier(f->store);
    int64_t in_use = applier->db_bytes_in_use, held = applier->db_bytes_held;
    assert_int_equal(in_use, held); /* the tombstones wait for the next compaction */
    fixture_restart(f);
    fixture_settle(f);
    assert_string_equal(versions(f, "a"), only);
    assert_int_equal(store_applier(f->store)->db_bytes_in_use, in_use);

    fs_sim_set_space(f->sim, UINT64_MAX);
    fixture_put(f, "d", "");
    fixture_compact(f, deleted + 1);
    fixture_settle(f);
    assert_string_equal(versions(f, "a"), "-");
    assert_int_equal(checkpointed(f), 1);
}

/* The disk may fill up after the compaction as well. */
static void disk_that_fills_up_later_gets_it_back_too(void **state)
{
    struct fixture *f = *state;
    fixture_compact(f, 9);
    fixture_settle(f);
    assert_string_equal(versions(f, "c"), "7 9t");
    assert_string_equal(versions(f, "b"), "8");
    fill_disk(f);
    fixture_settle(f);
    assert_string_equal(versions(f, "c"), "9t");
    assert_string_equal(versions(f, "b"), "8");
    assert_true(store_compaction_done(f->store));
}

static void compaction_to_older_or_future_revisions_is_refused(void **state)
{
    struct fixture *f = *state;
    struct applier *applier = store_applier(f->store);
    assert_int_equal(applier_compact(applier, -1), ST_COMPACTED);
    assert_int_equal(applier_compact(applier, 10), ST_FUTURE_REV);
    /* as in etcd, whose first compact revision is -1 */
    assert_int_equal(applier_compact(applier, 0), ST_OK);
    assert_int_equal(applier_compact(applier, 0), ST_COMPACTED);
    assert_int_equal(applier_compact(applier, 9), ST_OK);
    assert_int_equal(applier_compact(applier, 9), ST_COMPACTED);
    fixture_settle(f);
    assert_int_equal(store_view(f->store)->compact_revision, 9);
    assert_true(store_compaction_done(f->store));
}

/* Also after a stop in the middle, with or without a checkpoint of half of it. */
static void trimming_continues_after_a_restart(void **state)
{
    for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
        struct fixture *f = *state;
        for (int i = 0; i <= 3000; i++) {
            char key[32];
            snprintf(key, sizeof(key), "k%02d", i % 50);
            if (i % 30 == 29)
                fixture_delete(f, key, "");
            else
                fixture_put(f, key, "value");
            fixture_commit(f);
        }
        int64_t newest = store_view(f->store)->revision;
        fixture_compact(f, newest);
        fixture_commit(f);
        assert_int_equal(store_trim_step(f->store), ST_OK);
        assert_false(store_compaction_done(f->store));
        if (checkpoint)
            assert_int_equal(upkeep_checkpoint(f->upkeep), ST_OK);
        fixture_restart(f);
        assert_false(store_compaction_done(f->store));
        fixture_settle(f);
        assert_true(store_compaction_done(f->store));
        assert_int_equal(store_view(f->store)->compact_revision, newest);
        struct range_state view = fixture_state(f);
        /* One version per key, and the one before the last change. */
        assert_int_equal(checkpointed(f), view.root.live_keys + 1);
    }
}

/* Makes this many puts, over this many keys in turn. Returns the newest revision. */
static int64_t overwrite(struct fixture *f, int puts, int keys)
{
    int64_t revision = 0;
    for (int i = 0; i < puts; i++) {
        char key[32];
        snprintf(key, sizeof(key), "o%05d", (int)((unsigned)i * 7919u % (unsigned)keys));
        revision = fixture_put(f, key, "value");
        if (i % 64 == 63)
            fixture_commit(f);
    }
    fixture_commit(f);
    return revision;
}

/* Memory that a reader may still see is kept, but not without bound: trimming waits. */
static void trimming_waits_for_a_reader_instead_of_taking_memory(void **state)
{
    enum { RETIRED_BYTES_MAX = 5 << 20 };
    struct fixture *f = *state;
    int64_t newest = overwrite(f, 48000, 8000);
    fixture_compact(f, newest);
    fixture_commit(f);
    struct epoch_slot *slot = epoch_slot_add(store_epoch(f->store));
    uint64_t pinned = epoch_pin(slot);
    while (store_is_trimming(f->store) && !store_trim_waits(f->store))
        assert_int_equal(store_trim_step(f->store), ST_OK);
    assert_true(store_trim_waits(f->store));
    assert_true(store_bytes_retired(f->store) < RETIRED_BYTES_MAX);
    size_t retired = store_bytes_retired(f->store);
    for (int i = 0; i < 100; i++)
        assert_int_equal(store_trim_step(f->store), ST_OK);
    assert_int_equal(store_bytes_retired(f->store), retired);
    assert_true(store_view(f->store)->trimmed < newest);
    fixture_put(f, "put", "continues");
    fixture_commit(f);
    epoch_unpin(slot, pinned);
    while (store_is_trimming(f->store))
        assert_int_equal(store_trim_step(f->store), ST_OK);
    assert_true(store_compaction_done(f->store));
}

/* A step drops only a few versions of a key that has many; a trimmed key is skipped. */
static void step_is_small_for_any_history_of_a_key(void **state)
{
    enum { PUTS = 20000, WORK_PER_STEP = 16, STEPS_PER_PUBLISH = 32 };
    struct fixture *f = *state;
    int64_t newest = overwrite(f, PUTS, 1);
    fixture_compact(f, newest);
    fixture_commit(f);
    struct slice key = SLICE_LITERAL("o00000");
    uint32_t before = PUTS - 1;
    int steps = 0;
    while (store_is_trimming(f->store)) {
        assert_int_equal(store_trim_step(f->store), ST_OK);
        steps++;
        struct range_state view = fixture_state(f);
        uint32_t now = index_root_find(&view.root, key)->older_count;
        assert_true(before - now <= WORK_PER_STEP * STEPS_PER_PUBLISH);
        before = now;
    }
    assert_int_equal(before, 1); /* for a watch from the newest revision on */
    assert_in_range(steps, PUTS / WORK_PER_STEP, 3 * PUTS / WORK_PER_STEP);
}

/* A second compaction while the first is being trimmed: they are completed one after the other. */
static void compaction_during_another_is_trimmed_after_it(void **state)
{
    struct fixture *f = *state;
    int64_t newest = overwrite(f, 4000, 100);
    fixture_compact(f, newest - 1000);
    fixture_commit(f);
    for (int i = 0; i < 40; i++)
        assert_int_equal(store_trim_step(f->store), ST_OK);
    assert_false(store_compaction_done(f->store));
    fixture_compact(f, newest);
    fixture_commit(f);
    for (int i = 0; i < 40; i++)
        assert_int_equal(store_trim_step(f->store), ST_OK);
    assert_int_equal(store_view(f->store)->compact_revision, newest);
    assert_int_equal(store_view(f->store)->trim_target, newest - 1000);
    uint32_t hash;
    /* What the first one has left can still be read. */
    assert_int_equal(whole_hash_of_compaction(f->upkeep, -1, newest - 1000, &hash), ST_OK);
    fixture_settle(f);
    assert_int_equal(store_view(f->store)->trim_target, newest);
    assert_int_equal(whole_hash_of_compaction(f->upkeep, -1, newest - 1000, &hash), ST_COMPACTED);
    assert_int_equal(checkpointed(f), fixture_state(f).root.live_keys + 1);
}

/*
 * The checkpoint drops versions in transactions of bounded size, and after a stop between any two
 * of them it can continue.
 */
static void checkpoint_drops_versions_in_steps_and_survives_a_stop_after_each(void **state)
{
    enum { PUTS = 3000, KEYS = 300, TRANSACTION = 16 << 10 };
    struct fixture *f = *state;
    int64_t newest = overwrite(f, PUTS, KEYS);
    assert_int_equal(upkeep_checkpoint(f->upkeep), ST_OK);
    uint32_t expected, found;
    fixture_compact(f, newest);
    fixture_commit(f);
    assert_int_equal(whole_hash_of_compaction(f->upkeep, -1, newest, &expected), ST_OK);
    while (store_is_trimming(f->store))
        assert_int_equal(store_trim_step(f->store), ST_OK);
    unsigned before = checkpointed(f), steps = 0;
    for (bool done = false; !done; steps++) {
        upkeep_limit_steps(f->upkeep, TRANSACTION, 500);
        upkeep_checkpoint_begin(f->upkeep);
        assert_int_equal(upkeep_checkpoint_step(f->upkeep, &done), ST_OK);
        unsigned now = checkpointed(f);
        assert_true(before - now <= TRANSACTION / 64 + 1);
        before = now;
        fixture_restart(f);
        while (store_is_trimming(f->store))
            assert_int_equal(store_trim_step(f->store), ST_OK);
        fixture_commit(f);
    }
    assert_true(steps > PUTS / (TRANSACTION / 64));
    assert_int_equal(before, fixture_state(f).root.live_keys + 1);
    assert_int_equal(whole_hash_of_compaction(f->upkeep, -1, newest, &found), ST_OK);
    assert_int_equal(found, expected);
}

/* Each transaction also writes down how long the log is: that is not what the checkpoint has. */
static void lag_is_what_the_checkpoint_lacks(void **state)
{
    enum { PUTS = 1000, NOTHING = 256 /* the heads of segments and what aligns records */ };
    struct fixture *f = *state;
    fixture_commit(f);
    assert_int_equal(upkeep_checkpoint(f->upkeep), ST_OK);
    assert_true(upkeep_checkpoint_lag_bytes(f->upkeep) <= NOTHING);
    overwrite(f, PUTS, PUTS);
    fixture_commit(f);
    uint64_t all = upkeep_checkpoint_lag_bytes(f->upkeep), before = all;
    assert_true(all > PUTS * 32);
    upkeep_limit_steps(f->upkeep, 4096, 100);
    upkeep_checkpoint_begin(f->upkeep);
    unsigned steps = 0;
    for (bool done = false; !done; steps++) {
        assert_int_equal(upkeep_checkpoint_step(f->upkeep, &done), ST_OK);
        uint64_t now = upkeep_checkpoint_lag_bytes(f->upkeep);
        assert_true(now < before || done);
        assert_true(before - now <= all / 4);
        before = now;
    }
    assert_true(steps > 4);
    assert_true(before <= NOTHING);
}

/* -- Interruptions while versions are released on a full disk -- */

enum { RELEASED_KEYS = 100 };

/*
 * All keys are deleted at one revision, which is compacted, and then the disk becomes full. The
 * checkpoint begins to drop what was deleted.
 */
static void begin_release(struct fixture *f)
{
    overwrite(f, RELEASED_KEYS, RELEASED_KEYS);
    fixture_compact(f, fixture_delete(f, "a", "z"));
    fixture_commit(f);
    fill_disk(f);
    while (store_is_trimming(f->store))
        assert_int_equal(store_trim_step(f->store), ST_OK);
    upkeep_checkpoint_begin(f->upkeep);
    bool done = false;
    while (upkeep_checkpoint_lags(f->upkeep))
        assert_int_equal(upkeep_checkpoint_step(f->upkeep, &done), ST_OK);
    upkeep_limit_steps(f->upkeep, 512, 20); /* so that the rest takes many transactions */
}

static void restart_empty(void **state)
{
    fixture_teardown(state);
    setup(state);
}

/* If any of its transactions cannot be written, nothing is skipped when it is retried. */
static void failed_checkpoint_drops_everything_later(void **state)
{
    unsigned expected = 0;
    bool done = false;
    for (uint64_t failing = 0; failing < 2 || !done; failing++) { /* at first none fails */
        struct fixture *f = *state;
        begin_release(f);
        backend_disk_fail_commit(f->disk, failing, ST_DISK_FULL, false);
        enum status status = ST_OK;
        for (done = false; !done && status == ST_OK;)
            status = upkeep_checkpoint_step(f->upkeep, &done);
        backend_disk_fail_commit(f->disk, 0, ST_OK, false);
        assert_int_equal(upkeep_checkpoint(f->upkeep), ST_OK);
        expected = expected ? expected : checkpointed(f);
        assert_int_equal(checkpointed(f), expected);
        assert_true(failing < 1000);
        restart_empty(state);
    }
}

/* There is space again, and a later compaction, before all of it is dropped. */
static void compaction_during_a_release_drops_the_tombstones_too(void **state)
{
    bool over = false;
    for (unsigned steps = 1; !over; steps++) {
        struct fixture *f = *state;
        begin_release(f);
        for (unsigned i = 0; i < steps && !over; i++)
            assert_int_equal(upkeep_checkpoint_step(f->upkeep, &over), ST_OK);
        fs_sim_set_space(f->sim, UINT64_MAX);
        fixture_compact(f, fixture_put(f, "d", ""));
        fixture_settle(f);
        assert_int_equal(checkpointed(f), 2); /* d and filler */
        assert_true(steps < 1000);
        restart_empty(state);
    }
}

/* A transaction larger than a step is trimmed over several, and no step is larger. */
static void large_record_is_trimmed_in_steps(void **state)
{
    enum { KEYS = 2000 };
    struct fixture *f = *state;
    for (int i = 0; i < KEYS; i++) {
        char key[32];
        snprintf(key, sizeof(key), "m%d", i);
        fixture_put(f, key, "");
    }
    fixture_delete(f, "m", "n");
    int64_t revision = fixture_put(f, "d", "");
    fixture_compact(f, revision);
    fixture_commit(f);
    uint64_t before = KEYS + 10;
    int steps = 0;
    while (store_is_trimming(f->store)) {
        assert_int_equal(store_trim_step(f->store), ST_OK);
        steps++;
        if (steps ==
            5) /* in the middle of the deletion: the checkpoint drops no more than it may */
            assert_int_equal(upkeep_checkpoint(f->upkeep), ST_OK);
    }
    assert_true(steps >= (int)(before + KEYS) / 512);
    assert_string_equal(versions(f, "m0"), "-");
    assert_string_equal(versions(f, "m1999"), "-");
    fixture_settle(f);
    assert_int_equal(checkpointed(f), 3);
    fixture_restart(f);
    assert_int_equal(fixture_state(f).root.live_keys, 3);
}

/* The size in use becomes that of a new store with the same keys. */
static void size_in_use_shrinks_and_size_does_not(void **state)
{
    struct fixture *f = *state;
    fixture_commit(f);
    int64_t grown = store_view(f->store)->db_bytes;
    assert_int_equal(store_view(f->store)->db_bytes_in_use, grown);
    fixture_put(f, "d", "");
    fixture_compact(f, 10);
    fixture_settle(f);
    const struct store_view *view = store_view(f->store);
    assert_true(view->db_bytes > grown);
    assert_int_equal(view->db_bytes_in_use,
                     (int64_t)view->root.live_bytes + 3 * applier_db_bytes(0));
    int64_t in_use = view->db_bytes_in_use, size = view->db_bytes;
    fixture_restart(f);
    assert_int_equal(store_view(f->store)->db_bytes_in_use, in_use);
    assert_int_equal(store_view(f->store)->db_bytes, size);
}

static void clean_one(struct fixture *f)
{
    struct relocation *relocation;
    assert_int_equal(upkeep_clean_begin(f->upkeep, &relocation), ST_OK);
    assert_non_null(relocation);
    assert_true(relocation->new_segment);
    fixture_clean(f, relocation, SIZE_MAX);
}

/* One revision in which all these keys change. */
static int64_t put_together(struct fixture *f, unsigned count)
{
    struct pb_put_request puts[64];
    struct pb_request_op ops[64];
    char keys[64][16];
    assert_true(count <= COUNT_OF(puts));
    for (unsigned i = 0; i < count; i++) {
        snprintf(keys[i], sizeof(keys[i]), "t%02u", i);
        puts[i] = (struct pb_put_request){.key = slice_from_text(keys[i])};
        ops[i] = fixture_op_put(&puts[i]);
    }
    struct pb_txn_request request = {.success = ops, .success_count = count};
    struct kv_answer answer;
    assert_int_equal(applier_txn(store_applier(f->store), &request, &f->arena, &answer), ST_OK);
    return answer.revision;
}

/*
 * After a stop in the middle of a checkpoint, the log has changes that the checkpoint has dropped
 * and that trimming has not reached. The cleaner copies their records without them while a step of
 * trimming is inside one.
 */
static void record_loses_changes_while_it_is_being_trimmed(void **state)
{
    enum { REVISIONS = 60, KEYS = 60 };
    struct fixture *f = *state;
    int64_t newest = 0;
    for (int i = 0; i < REVISIONS; i++)
        newest = put_together(f, KEYS);
    fixture_put(f, "after", "");
    fixture_compact(f, newest);
    fixture_commit(f);
    struct upkeep_hash expected, found;
    assert_int_equal(whole_hash_at(f->upkeep, newest, &expected), ST_OK);
    for (bool done = false; !done;) {
        while (store_is_trimming(f->store))
            assert_int_equal(store_trim_step(f->store), ST_OK);
        upkeep_limit_steps(f->upkeep, 4 << 10, KEYS * REVISIONS);
        upkeep_checkpoint_begin(f->upkeep);
        for (int i = 0; i < 8 && !done; i++)
            assert_int_equal(upkeep_checkpoint_step(f->upkeep, &done), ST_OK);
        fixture_restart(f);
        if (store_is_trimming(f->store))
            assert_int_equal(store_trim_step(f->store), ST_OK);
        fixture_clean_all(f, SIZE_MAX);
    }
    fixture_settle(f);
    assert_int_equal(whole_hash_at(f->upkeep, newest, &found), ST_OK);
    assert_int_equal(found.hash, expected.hash);
}

static uint64_t newest_loc(struct fixture *f, const char *key)
{
    struct range_state state = fixture_state(f);
    return index_root_find(&state.root, slice_from_text(key))->newest.loc;
}

/*
 * A long record is damaged while it is being trimmed. With `forgets`, a segment is removed as well,
 * and the record has to be found again.
 */
static void damage_between_steps(struct fixture *f, bool forgets)
{
    enum { KEYS = 2000 };
    overwrite(f, 500, 5);
    for (int i = 0; i < KEYS; i++) {
        char key[32];
        snprintf(key, sizeof(key), "m%04d", i);
        fixture_put(f, key, "");
    }
    fixture_put(f, "next", "1");
    fixture_compact(f, fixture_put(f, "e", "0"));
    fixture_settle(f);
    struct relocation *relocation;
    assert_int_equal(upkeep_clean_begin(f->upkeep, &relocation), ST_OK);
    assert_non_null(relocation);
    fixture_delete(f, "m", "n");
    fixture_put(f, "next", "2");
    fixture_compact(f, fixture_put(f, "e", "1"));
    fixture_commit(f);
    uint64_t last = newest_loc(f, "m1999");
    while (strcmp(versions(f, "m0500"), "-") != 0)
        assert_int_equal(store_trim_step(f->store), ST_OK);
    assert_string_not_equal(versions(f, "m1999"), "-");

    uint64_t old = relocation->old_segment;
    clean_to_end(f->store, f->upkeep, relocation, SIZE_MAX);
    if (forgets)
        store_forget_segment(f->store, old);
    fixture_commit(f);
    fixture_write(f, last, offsetof(struct change_head, field_bytes), &(uint32_t){0},
                  sizeof(uint32_t));
    while (store_is_trimming(f->store))
        assert_int_equal(store_trim_step(f->store), ST_OK);
    assert_string_not_equal(versions(f, "m1999"), "-");
    assert_true(store_compaction_done(f->store));
    struct range_state view = fixture_state(f);
    const struct index_item *item = index_root_find(&view.root, SLICE_LITERAL("next"));
    assert_int_equal(item->older_count, 0);
}

/* Trimming continues at the beginning of the next record. */
static void record_that_is_damaged_between_steps_is_skipped(void **state)
{
    damage_between_steps(*state, false);
    restart_empty(state);
    damage_between_steps(*state, true);
}

/* A copy that no checkpoint lists is left over from a crash, unless there is no checkpoint. */
static void lost_checkpoint_of_a_cleaned_log_is_refused_and_nothing_removed(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 200; i++) {
        char key[32];
        snprintf(key, sizeof(key), "stays%d", i);
        fixture_put(f, i % 10 ? "k" : key, "0123456789012345678901234567890123456789");
    }
    fixture_compact(f, 150);
    fixture_settle(f);
    clean_one(f);
    fixture_stop(f);

    struct backend_disk *other = backend_disk_new();
    struct store *store = NULL;
    for (int again = 0; again < 2; again++) {
        struct error error;
        enum status status =
            store_open(&(struct store_options){.fs = fs_sim_fs(f->sim),
                                               .dir = "/data",
                                               .segment_bytes_first = 4096,
                                               .segment_bytes_max = 16 << 10,
                                               .readers_max = 1,
                                               .backend = backend_memory_open(other)},
                       &store, &error);
        assert_int_equal(status, ST_DAMAGED);
        assert_non_null(strstr(error.text, "checkpoint"));
    }
    backend_disk_free(other);
    fixture_start(f);
    assert_int_equal(fixture_state(f).root.live_keys, 20 + 3); /* and a, b, k */
}

/* Short records are mostly heads: a segment of live ones must not look half dead. */
static void segment_without_dead_versions_is_not_cleaned(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 300; i++) {
        char key[32];
        snprintf(key, sizeof(key), "%d", i);
        fixture_put(f, key, "");
    }
    fixture_settle(f);
    struct relocation *relocation;
    assert_int_equal(upkeep_clean_begin(f->upkeep, &relocation), ST_OK);
    assert_null(relocation);
    /* A segment that was just cleaned is not cleaned again. */
    for (int i = 0; i < 300; i += 3) {
        char key[32];
        snprintf(key, sizeof(key), "%d", i % 60);
        fixture_put(f, key, "");
    }
    fixture_compact(f, store_applier(f->store)->revision);
    fixture_settle(f);
    for (int cleaned = 0; cleaned < 20; cleaned++) {
        assert_int_equal(upkeep_clean_begin(f->upkeep, &relocation), ST_OK);
        if (!relocation)
            return;
        clean_to_end(f->store, f->upkeep, relocation, SIZE_MAX);
    }
    fail_msg("cleaning does not end");
}

/* One of its changes takes more work than a step has: each step still drops something. */
static void long_values_are_trimmed_too(void **state)
{
    struct fixture *f = *state;
    enum { VALUE_BYTES = 200000, VERSIONS = 5, STEPS_MAX = 1000 };
    char *value = malloc(VALUE_BYTES + 1);
    assert_non_null(value);
    memset(value, 'v', VALUE_BYTES);
    value[VALUE_BYTES] = '\0';
    for (int i = 0; i < VERSIONS; i++)
        fixture_put(f, "long", value);
    free(value);
    fixture_compact(f, fixture_put(f, "after", ""));
    assert_int_equal(store_commit(f->store), ST_OK);
    for (int steps = 0; store_is_trimming(f->store); steps++) {
        assert_true(steps < STEPS_MAX);
        assert_int_equal(store_trim_step(f->store), ST_OK);
    }
    assert_string_equal(versions(f, "long"), "14");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(replaced_versions_are_dropped_except_at_the_compacted_revision),
        TEST(deleted_key_is_removed_once_its_tombstone_is_compacted),
        TEST(full_disk_gets_back_what_was_deleted_at_the_compacted_revision),
        TEST(disk_that_fills_up_later_gets_it_back_too),
        TEST(compaction_to_older_or_future_revisions_is_refused),
        TEST(trimming_continues_after_a_restart),
        TEST(trimming_waits_for_a_reader_instead_of_taking_memory),
        TEST(step_is_small_for_any_history_of_a_key),
        TEST(compaction_during_another_is_trimmed_after_it),
        TEST(checkpoint_drops_versions_in_steps_and_survives_a_stop_after_each),
        TEST(lag_is_what_the_checkpoint_lacks),
        TEST(failed_checkpoint_drops_everything_later),
        TEST(compaction_during_a_release_drops_the_tombstones_too),
        TEST(record_that_is_damaged_between_steps_is_skipped),
        TEST(large_record_is_trimmed_in_steps),
        TEST(long_values_are_trimmed_too),
        TEST(size_in_use_shrinks_and_size_does_not),
        TEST(record_loses_changes_while_it_is_being_trimmed),
        TEST(lost_checkpoint_of_a_cleaned_log_is_refused_and_nothing_removed),
        TEST(segment_without_dead_versions_is_not_cleaned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
