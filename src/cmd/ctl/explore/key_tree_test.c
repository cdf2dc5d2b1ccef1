#include "cmd/ctl/explore/key_tree.h"

#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void write_node(struct buf *to, const struct key_tree_node *node)
{
    assert_int_equal(buf_append_format(to, "%*s%.*s %llu %llu\n", (int)node->depth * 2, "",
                                       SLICE_ARGS(node->name), (unsigned long long)node->keys,
                                       (unsigned long long)node->bytes),
                     ST_OK);
    for (const struct key_tree_node *child = node->first; child; child = child->next)
        write_node(to, child);
}

static void assert_tree(const struct key_tree *tree, const char *expected)
{
    AUTO(buf_fini) struct buf out = {0};
    key_tree_check(tree);
    write_node(&out, &tree->root);
    assert_int_equal(buf_append(&out, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)out.ptr, expected);
}

static void fill(struct key_tree *tree, unsigned depth)
{
    key_tree_init(tree, SLICE_LITERAL("/r/"), SLICE_LITERAL("/"), depth);
    key_tree_add(tree, SLICE_LITERAL("/r/a"), 1);
    key_tree_add(tree, SLICE_LITERAL("/r/a/x"), 10);
    key_tree_add(tree, SLICE_LITERAL("/r/a/y/1"), 100);
    key_tree_add(tree, SLICE_LITERAL("/r/a/y/2"), 200);
    key_tree_add(tree, SLICE_LITERAL("/r/b/z"), 1000);
}

static void keys_are_counted_in_every_directory_above_them(void **state)
{
    struct key_tree tree;
    (void)state;
    fill(&tree, 0);
    assert_tree(&tree, "/r/ 5 1311\n"
                       "  a 1 1\n"
                       "  a/ 3 310\n"
                       "    x 1 10\n"
                       "    y/ 2 300\n"
                       "      1 1 100\n"
                       "      2 1 200\n"
                       "  b/ 1 1000\n"
                       "    z 1 1000\n");
    assert_false(tree.is_cut);
    key_tree_fini(&tree);
}

static void levels_below_the_depth_are_only_counted(void **state)
{
    struct key_tree tree;
    (void)state;
    fill(&tree, 1);
    assert_tree(&tree, "/r/ 5 1311\n  a 1 1\n  a/ 3 310\n  b/ 1 1000\n");
    key_tree_sort(&tree, KEY_TREE_BY_KEYS);
    assert_tree(&tree, "/r/ 5 1311\n  a/ 3 310\n  a 1 1\n  b/ 1 1000\n");
    key_tree_sort(&tree, KEY_TREE_BY_BYTES);
    assert_tree(&tree, "/r/ 5 1311\n  b/ 1 1000\n  a/ 3 310\n  a 1 1\n");
    key_tree_fini(&tree);
}

static void separators_may_be_long_and_keys_may_be_the_prefix(void **state)
{
    struct key_tree tree;
    (void)state;
    key_tree_init(&tree, SLICE_LITERAL("p"), SLICE_LITERAL("::"), 0);
    key_tree_add(&tree, SLICE_LITERAL("p"), 1);
    key_tree_add(&tree, SLICE_LITERAL("p::a:b::c"), 1);
    key_tree_add(&tree, SLICE_LITERAL("px"), 1);
    assert_tree(&tree, "p 3 3\n  :: 1 1\n    a:b:: 1 1\n      c 1 1\n  x 1 1\n");
    key_tree_fini(&tree);
}

/* The deepest level is given up, and the sums stay. */
static void too_many_directories_give_up_the_deepest_level(void **state)
{
    enum { OUTER = 1000, INNER = 300 };
    struct key_tree tree;
    char key[64];
    (void)state;
    key_tree_init(&tree, SLICE_EMPTY, SLICE_LITERAL("/"), 0);
    for (unsigned i = 0; i < OUTER; i++) {
        for (unsigned k = 0; k < INNER; k++) {
            snprintf(key, sizeof(key), "%04u/%04u", i, k);
            key_tree_add(&tree, slice_from_text(key), 2);
            assert_true(tree.nodes <= KEY_TREE_NODES_MAX);
        }
    }
    key_tree_check(&tree);
    assert_true(tree.is_cut);
    assert_int_equal(tree.depth, 1);
    assert_int_equal(tree.nodes, OUTER);
    assert_int_equal(tree.root.keys, OUTER * INNER);
    for (const struct key_tree_node *n = tree.root.first; n; n = n->next) {
        assert_int_equal(n->keys, INNER);
        assert_int_equal(n->bytes, 2 * INNER);
    }
    key_tree_fini(&tree);
}

/* Also the first level has a limit, in number and in bytes of names. */
static void names_of_the_first_level_are_bounded(void **state)
{
    struct key_tree tree;
    (void)state;
    key_tree_init(&tree, SLICE_EMPTY, SLICE_LITERAL("/"), 0);
    for (unsigned i = 0; i < KEY_TREE_NODES_MAX + 50; i++) {
        char key[32];
        snprintf(key, sizeof(key), "%08u", i);
        key_tree_add(&tree, slice_from_text(key), 1);
    }
    key_tree_check(&tree);
    assert_int_equal(tree.nodes, KEY_TREE_NODES_MAX);
    assert_int_equal(tree.root.keys, KEY_TREE_NODES_MAX + 50);
    key_tree_fini(&tree);

    static uint8_t name[1 << 20];
    key_tree_init(&tree, SLICE_EMPTY, SLICE_LITERAL("/"), 0);
    for (unsigned i = 0; i < 64; i++) {
        name[0] = (uint8_t)('0' + i);
        key_tree_add(&tree, slice_of(name, sizeof(name)), 1);
    }
    assert_true(tree.name_bytes <= KEY_TREE_NAME_BYTES_MAX + sizeof(name));
    assert_int_equal(tree.root.keys, 64);
    key_tree_fini(&tree);
}

static void depth_of_keys_is_bounded(void **state)
{
    char key[4096];
    struct key_tree tree;
    (void)state;
    memset(key, '/', sizeof(key));
    key_tree_init(&tree, SLICE_EMPTY, SLICE_LITERAL("/"), 1000);
    key_tree_add(&tree, slice_of(key, sizeof(key)), 1);
    key_tree_check(&tree);
    assert_int_equal(tree.nodes, KEY_TREE_DEPTH_MAX);
    key_tree_fini(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_counted_in_every_directory_above_them),
        cmocka_unit_test(levels_below_the_depth_are_only_counted),
        cmocka_unit_test(separators_may_be_long_and_keys_may_be_the_prefix),
        cmocka_unit_test(too_many_directories_give_up_the_deepest_level),
        cmocka_unit_test(names_of_the_first_level_are_bounded),
        cmocka_unit_test(depth_of_keys_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
