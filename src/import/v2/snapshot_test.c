#include "import/v2/snapshot.h"

#include "base/buf.h"
#include "base/crc32c.h"
#include "codec/pb/raft.pb.h"
#include "simulated/file_sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define NEVER "\"ExpireTime\":\"0001-01-01T00:00:00Z\""
#define STORE                                                                                      \
    "{\"Root\":{\"Path\":\"/\",\"CreatedIndex\":0,\"ModifiedIndex\":0," NEVER ",\"Value\":\"\","   \
    "\"Children\":{\"1\":{\"Path\":\"/1\",\"CreatedIndex\":0,\"ModifiedIndex\":0," NEVER ","       \
    "\"Value\":\"\",\"Children\":{\"a\":{\"Path\":\"/1/"                                           \
    "a\",\"CreatedIndex\":3,\"ModifiedIndex\":5,"                                                  \
    "\"ExpireTime\":\"2027-01-15T09:00:00.5+01:00\",\"Value\":\"x\\u00e9\",\"Children\":null}}}}}" \
    ","                                                                                            \
    "\"WatcherHub\":{\"EventHistory\":{\"Queue\":[1,{}]}},\"CurrentIndex\":9}"

static enum status read_text(const char *json, struct v2_tree *tree)
{
    struct error error;
    return v2_snapshot_read(slice_from_text(json), tree, &error);
}

static void assert_refused(const char *json)
{
    struct v2_tree tree;
    v2_tree_init(&tree, 7);
    assert_int_equal(read_text(json, &tree), ST_DAMAGED);
    v2_tree_fini(&tree);
}

static void a_store_is_read(void **state)
{
    (void)state;
    struct v2_tree tree;
    v2_tree_init(&tree, 7);
    assert_int_equal(read_text(STORE, &tree), ST_OK);
    v2_tree_check(&tree);
    assert_int_equal(tree.index, 9);
    assert_non_null(v2_tree_find(&tree, "/1")->children);
    const struct v2_tree_node *node = v2_tree_find(&tree, "/1/a");
    assert_null(node->children);
    assert_int_equal(node->created, 3);
    assert_int_equal(node->modified, 5);
    assert_int_equal(node->expires_ns, INT64_C(1800000000500000000));
    assert_true(slice_is(node->value, "x\xc3\xa9"));
    v2_tree_fini(&tree);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    assert_refused("");
    assert_refused("[]");
    assert_refused("{}");
    assert_refused("{\"Root\":null}");
    assert_refused("{\"Root\":{\"Children\":{}},\"CurrentIndex\":-1}");
    assert_refused("{\"Root\":{\"Children\":{}},\"CurrentIndex\":\"1\"}");
    assert_refused("{\"Root\":{\"Children\":[]}}");
    assert_refused("{\"Root\":{\"Children\":{\"a\":{},\"a\":{}}}}");
    assert_refused("{\"Root\":{\"Children\":{\"a/b\":{}}}}");
    assert_refused("{\"Root\":{\"Children\":{\"\":{}}}}");
    assert_refused("{\"Root\":{\"ExpireTime\":\"soon\"}}");
    assert_refused("{\"Root\":{\"Value\":\"\\ud800\"}}");
    assert_refused("{\"Root\":{\"Children\":{}}} x");
    assert_refused("{\"Root\":{\"Children\":{\"a\":{");
}

static void deep_stores_are_refused(void **state)
{
    (void)state;
    struct buf json = {0};
    assert_int_equal(buf_append_text(&json, "{\"Root\":"), ST_OK);
    for (int i = 0; i <= V2_TREE_DEPTH_MAX; i++)
        assert_int_equal(buf_append_text(&json, "{\"Children\":{\"a\":"), ST_OK);
    struct v2_tree tree;
    struct error error;
    v2_tree_init(&tree, 7);
    assert_int_equal(v2_snapshot_read(buf_slice(&json), &tree, &error), ST_LIMIT);
    v2_tree_fini(&tree);
    buf_fini(&json);
}

static void large_stores_are_refused(void **state)
{
    (void)state;
    struct v2_tree tree;
    v2_tree_init(&tree, 7);
    tree.nodes_max = 2;
    assert_int_equal(read_text("{\"Root\":{\"Children\":{\"a\":{},\"b\":{},\"c\":{}}}}", &tree),
                     ST_LIMIT);
    v2_tree_fini(&tree);
}

static void times_are_read(void **state)
{
    (void)state;
    int64_t ns;
    assert_true(v2_snapshot_time(SLICE_LITERAL("1970-01-01T00:00:01Z"), &ns));
    assert_int_equal(ns, 1000000000);
    assert_true(v2_snapshot_time(SLICE_LITERAL("1970-01-01T00:00:00.000000001-00:01"), &ns));
    assert_int_equal(ns, INT64_C(60000000001));
    assert_true(v2_snapshot_time(SLICE_LITERAL("0001-01-01T00:00:00Z"), &ns));
    assert_int_equal(ns, 0);
    assert_false(v2_snapshot_time(SLICE_LITERAL("1970-01-01T00:00:01"), &ns));
    assert_false(v2_snapshot_time(SLICE_LITERAL("1970-01-01T00:00:01Zx"), &ns));
    assert_false(v2_snapshot_time(SLICE_LITERAL("9999-01-01T00:00:01Z"), &ns));
    assert_false(v2_snapshot_time(SLICE_LITERAL(""), &ns));
}

/* -- Files -- */

static void put_file(struct fs *fs, const char *path, struct slice bytes)
{
    struct file *file;
    assert_int_equal(fs_open(fs, path, FILE_CREATE, &file), ST_OK);
    assert_int_equal(file_pwrite(file, bytes, 0), ST_OK);
    file_close(file);
}

static void put_snapshot(struct fs *fs, const char *path, const char *json, uint32_t wrong_by)
{
    struct pb_raft_snapshot_metadata metadata = {.index = 11, .term = 2};
    struct pb_raft_snapshot snapshot = {.data = slice_from_text(json), .metadata = &metadata};
    struct buf inner = {0}, outer = {0};
    assert_int_equal(pb_append(&pb_raft_snapshot_table, &snapshot, &inner), ST_OK);
    struct pb_snapshot_file file = {
        .crc = crc32c(0, buf_slice(&inner)) + wrong_by,
        .data = buf_slice(&inner),
    };
    assert_int_equal(pb_append(&pb_snapshot_file_table, &file, &outer), ST_OK);
    put_file(fs, path, buf_slice(&outer));
    buf_fini(&inner);
    buf_fini(&outer);
}

static void the_newest_whole_file_is_used(void **state)
{
    (void)state;
    AUTO(fs_sim_freep) struct fs_sim *sim = fs_sim_new(1);
    struct fs *fs = fs_sim_fs(sim);
    struct v2_tree tree;
    struct v2_snapshot snapshot;
    struct error error;
    assert_int_equal(fs_make_dir(fs, "/snap"), ST_OK);
    put_snapshot(fs, "/snap/1.snap", "{\"Root\":{}}", 0);
    put_snapshot(fs, "/snap/2.snap", STORE, 0);
    put_snapshot(fs, "/snap/3.snap", STORE, 1);
    put_file(fs, "/snap/4.snap", SLICE_LITERAL("\xff"));
    put_file(fs, "/snap/5.snap", SLICE_EMPTY);
    put_file(fs, "/snap/db.tmp.x", SLICE_EMPTY);
    v2_tree_init(&tree, 7);
    assert_int_equal(v2_snapshot_load(fs, "/snap", NULL, &tree, &snapshot, &error), ST_OK);
    assert_true(snapshot.exists);
    assert_int_equal(snapshot.index, 11);
    assert_int_equal(snapshot.term, 2);
    assert_non_null(v2_tree_find(&tree, "/1/a"));
    v2_tree_fini(&tree);
    struct file *file;
    assert_int_equal(fs_open(fs, "/snap/3.snap.broken", FILE_READ_ONLY, &file), ST_OK);
    file_close(file);
    assert_int_not_equal(fs_open(fs, "/snap/db.tmp.x", FILE_READ_ONLY, &file), ST_OK);
}

static void a_directory_without_snapshots_is_empty(void **state)
{
    (void)state;
    AUTO(fs_sim_freep) struct fs_sim *sim = fs_sim_new(1);
    struct fs *fs = fs_sim_fs(sim);
    struct v2_tree tree;
    struct v2_snapshot snapshot;
    struct error error;
    v2_tree_init(&tree, 7);
    assert_int_not_equal(v2_snapshot_load(fs, "/none", NULL, &tree, &snapshot, &error), ST_OK);
    assert_int_equal(fs_make_dir(fs, "/snap"), ST_OK);
    assert_int_equal(v2_snapshot_load(fs, "/snap", NULL, &tree, &snapshot, &error), ST_OK);
    assert_false(snapshot.exists);
    v2_tree_fini(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_is_read),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(deep_stores_are_refused),
        cmocka_unit_test(large_stores_are_refused),
        cmocka_unit_test(times_are_read),
        cmocka_unit_test(the_newest_whole_file_is_used),
        cmocka_unit_test(a_directory_without_snapshots_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
