/* A store that opens the directory later contains what the builder was given. */
#include "store/builder.h"

#include "simulated/file_sim.h"
#include "store/backend/backend_memory.h"
#include "store/mvcc/range.h"
#include "store/upkeep/hash.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct bed {
    struct fs_sim *sim;
    struct backend_disk *disk;
    struct store_builder *builder;
};

static int set_up(void **state)
{
    static struct bed bed;
    bed = (struct bed){.sim = fs_sim_new(1), .disk = backend_disk_new()};
    struct error error;
    assert_int_equal(store_builder_open(
                         &(struct store_builder_options){
                             .fs = fs_sim_fs(bed.sim),
                             .dir = "/data",
                             .backend = backend_memory_open(bed.disk),
                         },
                         &bed.builder, &error),
                     ST_OK);
    *state = &bed;
    return 0;
}

static int tear_down(void **state)
{
    struct bed *bed = *state;
    store_builder_close(bed->builder);
    backend_disk_free(bed->disk);
    fs_sim_free(bed->sim);
    return 0;
}

static struct imported_change put(const char *key, uint32_t sub, int64_t create, int64_t version)
{
    return (struct imported_change){
        .kv = {.key = slice_from_text(key),
               .create_revision = create,
               .version = version,
               .value = SLICE_LITERAL("value")},
        .sub = sub,
    };
}

static struct imported_change deleted(const char *key, uint32_t sub)
{
    return (struct imported_change){
        .kv = {.key = slice_from_text(key)}, .sub = sub, .is_tombstone = true};
}

static void add(struct bed *bed, int64_t revision, struct imported_change change)
{
    assert_int_equal(store_builder_add(bed->builder, revision, &change, 1), ST_OK);
}

/* Finishes, and opens the result as a server does. */
static struct store *open_again(struct bed *bed, const struct store_builder_identity *identity)
{
    assert_int_equal(store_builder_finish(bed->builder, identity), ST_OK);
    store_builder_close(bed->builder);
    bed->builder = NULL;
    struct store *store;
    struct error error;
    assert_int_equal(store_open(
                         &(struct store_options){
                             .fs = fs_sim_fs(bed->sim),
                             .dir = "/data",
                             .segment_bytes_first = 1 << 20,
                             .segment_bytes_max = 1 << 20,
                             .readers_max = 1,
                             .cluster_id = 77,
                             .member_id = 88,
                             .backend = backend_memory_open(bed->disk),
                         },
                         &store, &error),
                     ST_OK);
    return store;
}

static size_t keys_at(const struct store *store, int64_t revision)
{
    struct range_state state = range_state_of(store_view(store), store_log(store));
    struct range_walk walk;
    range_walk_init(&walk, &state, (struct range_bounds){.to_end = true}, revision);
    size_t count = 0;
    while (range_walk_next(&walk))
        count++;
    return count;
}

static void revisions_keep_their_numbers_over_gaps(void **state)
{
    struct bed *bed = *state;
    add(bed, 5, put("a", 3, 2, 4));
    struct imported_change both[] = {put("b", 1, 9, 1), deleted("a", 4)};
    assert_int_equal(store_builder_add(bed->builder, 9, both, 2), ST_OK);
    add(bed, 12, put("a", 0, 12, 1));
    struct store *store = open_again(bed, NULL);
    assert_int_equal(store_view(store)->revision, 12);
    assert_int_equal(keys_at(store, 4), 0);
    assert_int_equal(keys_at(store, 5), 1);
    assert_int_equal(keys_at(store, 8), 1);
    assert_int_equal(keys_at(store, 9), 1);
    assert_int_equal(keys_at(store, 12), 2);
    const struct index_item *item = index_root_find(&store_view(store)->root, SLICE_LITERAL("b"));
    assert_int_equal(item->newest.sub_revision, 1);
    struct slice key = SLICE_LITERAL("next");
    assert_int_equal(applier_rows(store_applier(store), NULL, 0, &key, 1, NULL), ST_OK);
    assert_int_equal(store_applier(store)->revision, 12); /* there is no such key */
    store_close(store);
}

static void revisions_out_of_order_are_refused(void **state)
{
    struct bed *bed = *state;
    add(bed, 5, put("a", 0, 5, 1));
    struct imported_change again = put("b", 0, 5, 1);
    assert_int_equal(store_builder_add(bed->builder, 5, &again, 1), ST_INVALID);
    assert_int_equal(store_builder_add(bed->builder, 4, &again, 1), ST_INVALID);
    assert_int_equal(store_builder_add(bed->builder, 6, &again, 0), ST_INVALID);
    struct imported_change equal[] = {put("b", 2, 6, 1), put("c", 2, 6, 1)};
    assert_int_equal(store_builder_add(bed->builder, 6, equal, 2), ST_INVALID);
    struct store *store = open_again(bed, NULL);
    assert_int_equal(store_view(store)->revision, 5);
    assert_int_equal(store_view(store)->root.live_keys, 1);
    store_close(store);
}

static void revision_without_remaining_versions_is_kept(void **state)
{
    struct bed *bed = *state;
    add(bed, 5, put("a", 0, 5, 1));
    add(bed, 6, put("a", 0, 5, 2));
    add(bed, 7, deleted("a", 0));
    store_builder_reach(bed->builder, 20);
    assert_int_equal(store_builder_compact(bed->builder, 20), ST_OK);
    struct store *store = open_again(bed, NULL);
    assert_int_equal(store_view(store)->revision, 20);
    assert_int_equal(store_view(store)->compact_revision, 20);
    assert_null(index_root_find(&store_view(store)->root, SLICE_LITERAL("a")));
    store_close(store);
}

static void identity_is_kept_or_chosen_at_the_first_start(void **state)
{
    struct bed *bed = *state;
    struct store *store = open_again(bed, NULL);
    assert_int_equal(store_cluster_id(store), 77);
    assert_int_equal(store_member_id(store), 88);
    store_close(store);
    tear_down(state);
    set_up(state);
    store = open_again(bed, &(struct store_builder_identity){1, 2, 30});
    assert_int_equal(store_cluster_id(store), 1);
    assert_int_equal(store_member_id(store), 2);
    assert_int_equal(store_term(store), 31);
    store_close(store);
}

static enum status count_row(void *ctx, const struct row *row)
{
    *(size_t *)ctx += row->table == ROW_USER && slice_is(row->value, "v");
    return ST_OK;
}

static void rows_are_in_the_checkpoint(void **state)
{
    struct bed *bed = *state;
    struct row row = {.table = ROW_USER, .key = SLICE_LITERAL("u"), .value = SLICE_LITERAL("v")};
    assert_int_equal(store_builder_add_rows(bed->builder, &row, 1), ST_OK);
    struct store *store = open_again(bed, NULL);
    size_t count = 0;
    assert_int_equal(backend_rows_scan(store_backend(store), count_row, &count), ST_OK);
    assert_int_equal(count, 1);
    store_close(store);
}

static void failures_are_reported_with_place_and_reason(void **state)
{
    struct bed *bed = *state;
    struct error error;
    assert_int_equal(store_builder_failed(bed->builder, ST_DISK_FULL, &error), ST_DISK_FULL);
    assert_string_equal(error.text,
                        "cannot write the new data directory /data: no space left on the "
                        "disk of the data directory; free space or replace the disk, or choose "
                        "another one, and start again");
    backend_disk_fail_commit(bed->disk, 1, ST_IO, false);
    assert_int_equal(store_builder_finish(bed->builder, NULL), ST_IO);
    assert_int_equal(store_builder_failed(bed->builder, ST_IO, &error), ST_IO);
    assert_non_null(strstr(error.text, "/data: input or output failed (checkpoint, while "
                                       "committing: input or output failed); free space"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(revisions_keep_their_numbers_over_gaps, set_up, tear_down),
        cmocka_unit_test_setup_teardown(revisions_out_of_order_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(revision_without_remaining_versions_is_kept, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(identity_is_kept_or_chosen_at_the_first_start, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(rows_are_in_the_checkpoint, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failures_are_reported_with_place_and_reason, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
