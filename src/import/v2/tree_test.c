#include "import/v2/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* An expiry that counts, in nanoseconds. */
#define LATER (INT64_C(1800000000) * 1000 * 1000 * 1000)

static int set_up(void **state)
{
    struct v2_tree *tree = calloc(1, sizeof(*tree));
    v2_tree_init(tree, 7);
    *state = tree;
    return 0;
}

static int tear_down(void **state)
{
    v2_tree_check(*state);
    v2_tree_fini(*state);
    free(*state);
    return 0;
}

static struct v2_tree_change change(const char *path, const char *value)
{
    return (struct v2_tree_change){.path = slice_from_text(path), .value = slice_from_text(value)};
}

static void set(struct v2_tree *tree, const char *path, const char *value)
{
    struct v2_tree_change put = change(path, value);
    assert_int_equal(v2_tree_set(tree, &put), ST_OK);
}

static void make_dir(struct v2_tree *tree, const char *path, int64_t expires_ns)
{
    struct v2_tree_change put = change(path, "");
    put.is_dir = true;
    put.expires_ns = expires_ns;
    assert_int_equal(v2_tree_set(tree, &put), ST_OK);
}

static void assert_value(const struct v2_tree *tree, const char *path, const char *value)
{
    const struct v2_tree_node *node = v2_tree_find(tree, path);
    assert_non_null(node);
    assert_true(slice_is(node->value, value));
}

static void a_put_makes_its_directories_with_its_index(void **state)
{
    struct v2_tree *tree = *state;
    set(tree, "/1/d/a", "x");
    set(tree, "/1/d/b", "y");
    assert_int_equal(tree->index, 2);
    assert_int_equal(v2_tree_find(tree, "/1/d")->created, 1);
    assert_int_equal(v2_tree_find(tree, "/1/d/b")->modified, 2);
    assert_value(tree, "/1/d/a", "x");
}

static void paths_are_cleaned(void **state)
{
    struct v2_tree *tree = *state;
    set(tree, "//1/./d//../e/", "x");
    assert_value(tree, "/1/e", "x");
    assert_null(v2_tree_find(tree, "/1/d"));
    set(tree, "/../../1/f", "y");
    assert_value(tree, "1/f", "y");
}

static void the_root_and_files_in_the_way_refuse(void **state)
{
    struct v2_tree *tree = *state;
    set(tree, "/", "x");
    set(tree, "/1/f", "x");
    set(tree, "/1/f/g", "x");
    make_dir(tree, "/1/d", 0);
    set(tree, "/1/d", "x");
    assert_int_equal(v2_tree_delete(tree, SLICE_LITERAL("/"), true, true), ST_OK);
    assert_int_equal(tree->index, 2);
    assert_non_null(v2_tree_find(tree, "/1/d")->children);
}

static void a_set_replaces_and_a_create_does_not(void **state)
{
    struct v2_tree *tree = *state;
    set(tree, "/1/a", "1");
    set(tree, "/1/a", "2");
    assert_int_equal(v2_tree_find(tree, "/1/a")->created, 2);
    struct v2_tree_change again = change("/1/a", "3");
    assert_int_equal(v2_tree_create(tree, &again, false), ST_OK);
    assert_value(tree, "/1/a", "2");
    assert_int_equal(tree->index, 2);
}

static void unique_names_are_the_index(void **state)
{
    struct v2_tree *tree = *state;
    set(tree, "/1/a", "1");
    struct v2_tree_change post = change("/1/q", "job");
    assert_int_equal(v2_tree_create(tree, &post, true), ST_OK);
    assert_value(tree, "/1/q/00000000000000000002", "job");
}

static void updates_keep_the_creation(void **state)
{
    struct v2_tree *tree = *state;
    struct v2_tree_change update = change("/1/a", "2");
    assert_int_equal(v2_tree_update(tree, &update), ST_OK);
    assert_int_equal(tree->index, 0);
    set(tree, "/1/a", "1");
    assert_int_equal(v2_tree_update(tree, &update), ST_OK);
    const struct v2_tree_node *node = v2_tree_find(tree, "/1/a");
    assert_int_equal(node->created, 1);
    assert_int_equal(node->modified, 2);
    assert_value(tree, "/1/a", "2");
}

/* An update of a directory changes the expiry alone, and it takes an index. */
static void an_update_of_a_directory_has_no_value(void **state)
{
    struct v2_tree *tree = *state;
    make_dir(tree, "/1/d", 0);
    struct v2_tree_change update = change("/1/d", "x");
    assert_int_equal(v2_tree_update(tree, &update), ST_OK);
    assert_int_equal(tree->index, 1);
    update.value = SLICE_EMPTY;
    update.expires_ns = LATER;
    assert_int_equal(v2_tree_update(tree, &update), ST_OK);
    assert_int_equal(tree->index, 2);
    assert_int_equal(v2_tree_find(tree, "/1/d")->modified, 1);
    assert_int_equal(v2_tree_find(tree, "/1/d")->expires_ns, LATER);
}

static void a_refresh_keeps_the_value(void **state)
{
    struct v2_tree *tree = *state;
    set(tree, "/1/a", "1");
    struct v2_tree_change refresh = change("/1/a", "ignored");
    refresh.is_refresh = true;
    refresh.expires_ns = LATER;
    assert_int_equal(v2_tree_set(tree, &refresh), ST_OK);
    assert_value(tree, "/1/a", "1");
    assert_int_equal(v2_tree_update(tree, &refresh), ST_OK);
    assert_value(tree, "/1/a", "1");
    assert_int_equal(v2_tree_compare_and_swap(tree, &refresh), ST_OK);
    assert_value(tree, "/1/a", "1");
    assert_int_equal(tree->index, 4);
    refresh.path = SLICE_LITERAL("/1/none");
    assert_int_equal(v2_tree_set(tree, &refresh), ST_OK);
    assert_int_equal(tree->index, 4);
}

static void comparisons_must_hold(void **state)
{
    struct v2_tree *tree = *state;
    set(tree, "/1/a", "1");
    struct v2_tree_change swap = change("/1/a", "2");
    swap.prev_value = SLICE_LITERAL("0");
    assert_int_equal(v2_tree_compare_and_swap(tree, &swap), ST_OK);
    swap.prev_value = SLICE_LITERAL("1");
    swap.prev_index = 9;
    assert_int_equal(v2_tree_compare_and_swap(tree, &swap), ST_OK);
    assert_int_equal(v2_tree_compare_and_delete(tree, &swap), ST_OK);
    assert_value(tree, "/1/a", "1");
    assert_int_equal(tree->index, 1);
    swap.prev_index = 1;
    assert_int_equal(v2_tree_compare_and_swap(tree, &swap), ST_OK);
    assert_value(tree, "/1/a", "2");
    swap.prev_value = SLICE_LITERAL("2");
    swap.prev_index = 2;
    assert_int_equal(v2_tree_compare_and_delete(tree, &swap), ST_OK);
    assert_null(v2_tree_find(tree, "/1/a"));
    assert_int_equal(tree->index, 3);
}

static void directories_are_deleted_on_request(void **state)
{
    struct v2_tree *tree = *state;
    const struct slice d = SLICE_LITERAL("/1/d");
    set(tree, "/1/d/a", "1");
    assert_int_equal(v2_tree_delete(tree, d, false, false), ST_OK);
    assert_int_equal(v2_tree_delete(tree, d, true, false), ST_OK);
    assert_non_null(v2_tree_find(tree, "/1/d"));
    assert_int_equal(v2_tree_delete(tree, d, false, true), ST_OK);
    assert_null(v2_tree_find(tree, "/1/d"));
    make_dir(tree, "/1/d", 0);
    assert_int_equal(v2_tree_delete(tree, d, true, false), ST_OK);
    assert_null(v2_tree_find(tree, "/1/d"));
    assert_int_equal(tree->index, 4);
}

static void what_expires_takes_an_index_each(void **state)
{
    struct v2_tree *tree = *state;
    make_dir(tree, "/1/d", LATER + 5);
    struct v2_tree_change inside = change("/1/d/a", "1");
    inside.expires_ns = LATER + 9;
    assert_int_equal(v2_tree_set(tree, &inside), ST_OK);
    inside.path = SLICE_LITERAL("/1/b");
    inside.expires_ns = LATER;
    assert_int_equal(v2_tree_set(tree, &inside), ST_OK);
    v2_tree_expire(tree, LATER - 1);
    assert_int_equal(tree->index, 3);
    v2_tree_expire(tree, LATER + 20);
    assert_int_equal(tree->index, 5); /* the directory took the file in it along */
    assert_null(v2_tree_find(tree, "/1/d"));
    assert_null(v2_tree_find(tree, "/1/b"));
}

static void an_expiry_long_ago_is_ignored(void **state)
{
    struct v2_tree *tree = *state;
    struct v2_tree_change put = change("/1/a", "1");
    put.expires_ns = -5;
    assert_int_equal(v2_tree_set(tree, &put), ST_OK);
    v2_tree_expire(tree, LATER);
    assert_value(tree, "/1/a", "1");
}

static void children_are_sorted_and_hidden_ones_left_out(void **state)
{
    struct v2_tree *tree = *state;
    static const char *const names[] = {"/1/b", "/1/_h/x", "/1/a!", "/1/a/x"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        set(tree, names[i], "");
    size_t count;
    const struct v2_tree_node **all = v2_tree_children(v2_tree_find(tree, "/1"), &count);
    assert_int_equal(count, 3);
    assert_true(slice_is(all[0]->name, "a"));
    assert_true(slice_is(all[1]->name, "a!"));
    assert_true(slice_is(all[2]->name, "b"));
    free(all);
}

static void deep_paths_are_refused(void **state)
{
    struct v2_tree *tree = *state;
    static char path[2 * V2_TREE_DEPTH_MAX + 3];
    for (size_t i = 0; i < 2 * (V2_TREE_DEPTH_MAX + 1); i += 2)
        memcpy(path + i, "/a", 2);
    struct v2_tree_change put = change(path, "x");
    assert_int_equal(v2_tree_set(tree, &put), ST_LIMIT);
    assert_int_equal(v2_tree_delete(tree, put.path, true, true), ST_LIMIT);
    path[2 * V2_TREE_DEPTH_MAX] = 0;
    put = change(path, "x");
    assert_int_equal(v2_tree_create(tree, &put, true), ST_LIMIT);
    assert_int_equal(v2_tree_set(tree, &put), ST_OK);
    assert_value(tree, path, "x");
}

static void a_tree_has_a_limited_number_of_nodes(void **state)
{
    struct v2_tree *tree = *state;
    tree->nodes_max = 3;
    set(tree, "/1/a", "x");
    struct v2_tree_change put = change("/1/b/c", "x");
    assert_int_equal(v2_tree_set(tree, &put), ST_LIMIT);
    assert_int_equal(v2_tree_create(tree, &put, false), ST_LIMIT);
    set(tree, "/1/a", "y"); /* what exists can be changed */
    assert_int_equal(v2_tree_delete(tree, SLICE_LITERAL("/1"), true, true), ST_OK);
    assert_int_equal(tree->node_count, 0);
    set(tree, "/1/b/c", "x");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_put_makes_its_directories_with_its_index),
        TEST(paths_are_cleaned),
        TEST(the_root_and_files_in_the_way_refuse),
        TEST(a_set_replaces_and_a_create_does_not),
        TEST(unique_names_are_the_index),
        TEST(updates_keep_the_creation),
        TEST(an_update_of_a_directory_has_no_value),
        TEST(a_refresh_keeps_the_value),
        TEST(comparisons_must_hold),
        TEST(directories_are_deleted_on_request),
        TEST(what_expires_takes_an_index_each),
        TEST(an_expiry_long_ago_is_ignored),
        TEST(children_are_sorted_and_hidden_ones_left_out),
        TEST(deep_paths_are_refused),
        TEST(a_tree_has_a_limited_number_of_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
