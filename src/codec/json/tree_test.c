#include "codec/json/tree.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ARENA_BYTES_MAX = 64 << 20 };

static int setup(void **state)
{
    struct arena *arena = calloc(1, sizeof(*arena));
    arena_init(arena, NULL, 0, ARENA_BYTES_MAX);
    *state = arena;
    return 0;
}

static int teardown(void **state)
{
    arena_fini(*state);
    free(*state);
    return 0;
}

static struct json_node *read_json(struct arena *arena, const char *text)
{
    struct json_node *root;
    struct error error;
    assert_int_equal(json_tree_read(arena, slice_from_text(text), &root, &error), ST_OK);
    return root;
}

static void assert_written(const struct json_node *root, const char *expected)
{
    struct buf text = {0};
    assert_int_equal(json_tree_write(root, &text), ST_OK);
    assert_int_equal(buf_append(&text, slice_of("", 1)), ST_OK);
    assert_string_equal((const char *)text.ptr, expected);
    buf_fini(&text);
}

static void parsed_text_is_written_compact(void **state)
{
    assert_written(
        read_json(*state, " { \"a\" : [ 1 , -2.50e3 , true , false , null ] , \"b\" : { } }"),
        "{\"a\":[1,-2.50e3,true,false,null],\"b\":{}}");
    assert_written(read_json(*state, "\"x\""), "\"x\"");
    assert_written(read_json(*state, "{\"k\\u0065y\":\"a\\n\\u00e9\\/\"}"),
                   "{\"key\":\"a\\n\xc3\xa9/\"}");
}

static void last_value_of_a_repeated_key_is_used(void **state)
{
    assert_written(read_json(*state, "{\"a\":1,\"b\":2,\"a\":3}"), "{\"a\":3,\"b\":2}");
}

static void key_repeated_often_costs_no_more_than_others(void **state)
{
    enum { TIMES = 100000 };
    struct buf text = {0};
    assert_int_equal(buf_append_text(&text, "{"), ST_OK);
    for (int i = 0; i < TIMES; i++)
        assert_int_equal(buf_append_format(&text, "\"%d\":%d,", i % 32, i), ST_OK);
    assert_int_equal(buf_append_text(&text, "\"end\":0}"), ST_OK);
    struct json_node *root;
    struct error error;
    assert_int_equal(json_tree_read(*state, buf_slice(&text), &root, &error), ST_OK);
    assert_int_equal(root->count, 33);
    int64_t value;
    assert_true(json_node_int(json_node_named(root, "31"), &value));
    assert_int_equal(value, TIMES - 1);
    buf_fini(&text);
}

static void members_are_found_by_name_and_path(void **state)
{
    struct json_node *root = read_json(*state, "{\"m\":{\"l\":{\"x\":\"1\"}},\"a\":[10,20]}");
    assert_true(json_node_is_text(json_node_path(root, "m.l.x"), "1"));
    assert_null(json_node_path(root, "m.no.x"));
    assert_null(json_node_path(root, "a.x"));
    int64_t value;
    assert_true(json_node_int(json_node_item(json_node_named(root, "a"), 1), &value));
    assert_int_equal(value, 20);
    assert_null(json_node_item(json_node_named(root, "a"), 2));
    assert_null(json_node_named((const struct json_node *)NULL, "a"));
    assert_false(json_node_int(json_node_named(root, "m"), &value));
}

static void texts_are_decoded(void **state)
{
    struct json_node *root = read_json(*state, "[\"a\\u00e9\\n\",\"plain\",7]");
    struct slice text;
    assert_int_equal(json_node_text(json_node_item(root, 0), *state, &text), ST_OK);
    assert_true(slice_equal(text, SLICE_LITERAL("a\xc3\xa9\n")));
    assert_int_equal(json_node_text(json_node_item(root, 1), *state, &text), ST_OK);
    assert_true(slice_equal(text, SLICE_LITERAL("plain")));
    assert_int_equal(json_node_text(json_node_item(root, 2), *state, &text), ST_OK);
    assert_int_equal(text.len, 0);
}

/* Text that was read without escapes is written as it is, and only such text. */
static void unnecessary_escapes_are_dropped(void **state)
{
    struct json_node *root =
        read_json(*state, "[\"\\u0061\\/\",\"\\u0022\\u0001\",\"\\\"\\n\",\"\\\\u0061\"]");
    assert_true(json_node_is_text(json_node_item(root, 0), "a/"));
    assert_written(root, "[\"a/\",\"\\\"\\u0001\",\"\\\"\\n\",\"\\\\u0061\"]");
}

static void keys_get_necessary_escapes(void **state)
{
    struct arena *arena = *state;
    struct json_node *root = read_json(arena, "{\"a\\\"b\":\"x\",\"c\":\"y\"}");
    struct json_node *c = json_node_named(root, "c");
    assert_written(json_node_copy(arena, root), "{\"a\\\"b\":\"x\",\"c\":\"y\"}");
    json_node_remove(root, c);
    assert_int_equal(json_node_set(arena, root, SLICE_LITERAL("\\"), c), ST_OK);
    assert_written(root, "{\"a\\\"b\":\"x\",\"\\\\\":\"y\"}");
}

static void changes_are_written(void **state)
{
    struct arena *arena = *state;
    struct json_node *root = read_json(arena, "{\"b\":1,\"c\":[1,2,3]}");
    struct json_node *list = json_node_named(root, "c");
    assert_int_equal(json_node_set(arena, root, SLICE_LITERAL("d\""),
                                   json_node_new_text(arena, SLICE_LITERAL("x\"y"))),
                     ST_OK);
    assert_int_equal(
        json_node_set_first(arena, root, SLICE_LITERAL("a"), json_node_new_int(arena, INT64_MIN)),
        ST_OK);
    json_node_remove(root, json_node_named(root, "b"));
    json_node_remove(list, json_node_item(list, 1));
    assert_int_equal(json_node_insert(list, list->first, json_node_new(arena, JSON_TYPE_NULL)),
                     ST_OK);
    assert_int_equal(json_node_insert(list, NULL, json_node_new(arena, JSON_TYPE_OBJECT)), ST_OK);
    assert_written(root, "{\"a\":-9223372036854775808,\"c\":[null,1,3,{}],\"d\\\"\":\"x\\\"y\"}");
    assert_int_equal(
        json_node_set_first(arena, root, SLICE_LITERAL("c"), json_node_new_int(arena, 1)), ST_OK);
    assert_written(root, "{\"c\":1,\"a\":-9223372036854775808,\"d\\\"\":\"x\\\"y\"}");
}

static void equality_ignores_the_form(void **state)
{
    static const struct {
        const char *a, *b;
        bool equal;
    } cases[] = {
        {"{\"a\":1,\"b\":[]}", "{\"b\":[],\"a\":1.0}", true},
        {"\"\\u0041\"", "\"A\"", true},
        {"\"\\n\\\"\\\\\"", "\"\\u000a\\u0022\\u005c\"", true},
        {"\"a\\nb\\n\"", "\"a\\nb\\n\"", true},
        {"\"a\\nb\\n\"", "\"a\\nb\\t\"", false},
        {"\"a\\nb\\n\"", "\"a\\nb\"", false},
        {"\"a\\n\"", "\"an\"", false},
        {"1e2", "100", true},
        {"[1,2]", "[2,1]", false},
        {"{\"a\":1}", "{\"a\":1,\"b\":2}", false},
        {"{\"a\":null}", "{\"b\":null}", false},
        {"0.1", "0.10", true},
        {"true", "false", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(
            json_node_equal(read_json(*state, cases[i].a), read_json(*state, cases[i].b)),
            cases[i].equal);
}

#define IS_CONST(node) _Generic((node), const struct json_node * : 1, struct json_node * : 0)

/* The compiler refuses to change any part of a const tree. */
static void const_tree_is_const_in_all_its_parts(void **state)
{
    struct json_node *own = read_json(*state, "{\"a\":[1,2]}");
    const struct json_node *lent = own;
    _Static_assert(IS_CONST(lent->first) && IS_CONST(lent->last), "children");
    _Static_assert(IS_CONST(lent->next) && IS_CONST(lent->prev), "neighbours");
    _Static_assert(IS_CONST(json_node_named(lent, "a")), "a member");
    _Static_assert(IS_CONST(json_node_path(lent, "a")), "what a path leads to");
    _Static_assert(IS_CONST(json_node_item(lent, 0)), "an item");
    _Static_assert(IS_CONST(json_node_first(lent)) && IS_CONST(json_node_next(lent)), "a walk");
    _Static_assert(!IS_CONST(json_node_named(own, "a")), "own member");
    _Static_assert(!IS_CONST(json_node_first(own)), "own child");
    assert_ptr_equal(json_node_named(lent, "a"), json_node_first(own));
    assert_ptr_equal(json_node_item(json_node_named(lent, "a"), 1),
                     json_node_next(json_node_first(json_node_named(own, "a"))));
}

static void a_copy_of_the_members_shares_what_is_below_them(void **state)
{
    struct json_node *root = read_json(*state, "{\"a\":{\"b\":[1]},\"c\":\"d\"}");
    struct json_node *copy = json_node_copy_members(*state, root);
    assert_ptr_equal(json_node_path(copy, "a.b"), json_node_path(root, "a.b"));
    assert_int_equal(json_node_set(*state, copy, SLICE_LITERAL("c"), json_node_new_int(*state, 1)),
                     ST_OK);
    json_node_remove(copy, json_node_named(copy, "a"));
    assert_written(copy, "{\"c\":1}");
    assert_written(root, "{\"a\":{\"b\":[1]},\"c\":\"d\"}");
    /* Many members have an index of their own. */
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof(name), "m%d", i);
        assert_int_equal(json_node_put(*state, root, name, json_node_new_int(*state, i)), ST_OK);
    }
    copy = json_node_copy_members(*state, root);
    json_node_remove(copy, json_node_named(copy, "m50"));
    assert_null(json_node_named(copy, "m50"));
    assert_non_null(json_node_named(root, "m50"));
    assert_non_null(json_node_named(copy, "m99"));
}

static void copy_is_independent(void **state)
{
    struct json_node *root = read_json(*state, "{\"a\":{\"b\":[1]}}");
    struct json_node *copy = json_node_copy(*state, root);
    assert_true(json_node_equal(root, copy));
    struct json_node *list = json_node_path(copy, "a.b");
    json_node_remove(list, json_node_first(list));
    assert_written(root, "{\"a\":{\"b\":[1]}}");
    assert_written(copy, "{\"a\":{\"b\":[]}}");
}

static void errors_have_gos_texts(void **state)
{
    struct json_node *root;
    struct error error;
    assert_int_equal(json_tree_read(*state, SLICE_LITERAL("{\"a\":b}"), &root, &error),
                     ST_MALFORMED);
    assert_string_equal(error.text, "invalid character 'b' looking for beginning of value");
    assert_int_equal(json_tree_read(*state, SLICE_LITERAL("[\"\xff\"]"), &root, &error),
                     ST_MALFORMED);
    char deep[2 * JSON_TREE_DEPTH_MAX + 2];
    memset(deep, '[', sizeof(deep));
    assert_int_equal(json_tree_read(*state, slice_of(deep, JSON_TREE_DEPTH_MAX + 1), &root, &error),
                     ST_LIMIT);
    struct arena small;
    arena_init(&small, NULL, 0, 4096);
    memset(deep, '1', sizeof(deep));
    for (size_t i = 1; i < sizeof(deep); i += 2)
        deep[i] = ',';
    deep[0] = '[';
    deep[sizeof(deep) - 2] = '1';
    deep[sizeof(deep) - 1] = ']';
    deep[1] = '1';
    assert_int_equal(json_tree_read(&small, slice_of(deep, sizeof(deep)), &root, &error), ST_NOMEM);
    arena_fini(&small);
}

/* "[[[…]]]" with this many levels. */
static struct json_node *nested(struct arena *arena, size_t levels)
{
    struct json_node *root = json_node_new(arena, JSON_TYPE_ARRAY);
    for (size_t i = 1; i < levels; i++) {
        struct json_node *outer = json_node_new(arena, JSON_TYPE_ARRAY);
        assert_int_equal(json_node_insert(outer, NULL, root), ST_OK);
        root = outer;
    }
    assert_int_equal(root->height, levels);
    return root;
}

/* However a tree grows, and however its parts are used afterwards. */
static void no_tree_becomes_deeper_than_the_limit(void **state)
{
    struct arena *arena = *state;
    struct json_node *deep = nested(arena, JSON_TREE_DEPTH_MAX);
    struct json_node *array = json_node_new(arena, JSON_TYPE_ARRAY);
    struct json_node *object = json_node_new(arena, JSON_TYPE_OBJECT);
    struct buf text = {0};
    assert_int_equal(json_node_insert(array, NULL, deep), ST_LIMIT);
    assert_int_equal(json_node_set(arena, object, SLICE_LITERAL("a"), deep), ST_LIMIT);
    assert_int_equal(array->count + object->count, 0);
    assert_null(deep->parent);
    /* From the top: the innermost list accepts a value, but no list. */
    struct json_node *inner = deep;
    while (inner->first)
        inner = json_node_first(inner);
    assert_int_equal(json_node_insert(inner, NULL, array), ST_LIMIT);
    assert_int_equal(json_node_insert(inner, NULL, json_node_new_int(arena, 1)), ST_OK);
    assert_int_equal(json_tree_write(deep, &text), ST_OK);
    /* It can be read again, and its copy is as deep. */
    struct json_node *again;
    struct error error;
    assert_int_equal(json_tree_read(arena, buf_slice(&text), &again, &error), ST_OK);
    assert_int_equal(again->height, JSON_TREE_DEPTH_MAX);
    assert_int_equal(json_node_copy(arena, again)->height, JSON_TREE_DEPTH_MAX);
    assert_true(json_node_equal(again, deep));
    buf_fini(&text);
}

/* Two halves fit; three do not, in whatever order they are combined. */
static void depth_is_counted_over_all_parts(void **state)
{
    struct arena *arena = *state;
    struct json_node *parts[3];
    for (size_t i = 0; i < 3; i++)
        parts[i] = nested(arena, JSON_TREE_DEPTH_MAX / 2);
    struct json_node *inner = parts[0];
    while (json_node_first(inner))
        inner = json_node_first(inner);
    assert_int_equal(json_node_insert(inner, NULL, parts[1]), ST_OK);
    assert_int_equal(parts[0]->height, JSON_TREE_DEPTH_MAX);
    assert_int_equal(json_node_insert(inner, NULL, parts[2]), ST_OK); /* beside the other */
    while (json_node_first(inner))
        inner = json_node_first(inner);
    assert_int_equal(json_node_insert(inner, NULL, parts[2]), ST_LIMIT);
    assert_ptr_equal(parts[2]->parent, parts[1]->parent);
}

/* A node is in one place: inserting it elsewhere removes it there. */
static void node_inserted_elsewhere_leaves_its_place(void **state)
{
    struct arena *arena = *state;
    struct json_node *root = read_json(arena, "{\"a\":{\"b\":1},\"c\":[2,3]}");
    struct json_node *b = json_node_path(root, "a.b"), *list = json_node_named(root, "c");
    assert_int_equal(json_node_insert(list, json_node_first(list), b), ST_OK);
    struct json_node *last = json_node_item(list, 2);
    assert_int_equal(json_node_set(arena, root, SLICE_LITERAL("d"), last), ST_OK);
    assert_int_equal(json_node_insert(list, NULL, json_node_first(list)), ST_OK);
    assert_written(root, "{\"a\":{},\"c\":[2,1],\"d\":3}");
}

/* A comparison with a long text full of escapes takes time in proportion to the shorter text. */
static void short_text_is_compared_quickly_with_a_long_one(void **state)
{
    struct json_node *same = read_json(*state, "[\"\\u0061\\u0062\",\"ab\"]");
    assert_true(json_node_equal(same->first, same->last));
    struct json_node *other = read_json(*state, "[\"\\u0061\\u0062\\n\",\"a\"]");
    assert_false(json_node_equal(other->first, other->last));
}

/* Compares a large object with a plain list of its expected members. */
static void random_changes_of_large_objects_match_a_model(void **state)
{
    enum { KEYS = 200, STEPS = 20000 };
    struct arena *arena = *state;
    struct random random;
    random_init(&random, 7);
    int64_t model[KEYS];
    for (int i = 0; i < KEYS; i++)
        model[i] = -1;
    struct json_node *object = json_node_new(arena, JSON_TYPE_OBJECT);
    for (int step = 0; step < STEPS; step++) {
        char key[16];
        unsigned at = (unsigned)(random_u64(&random) % KEYS);
        snprintf(key, sizeof(key), "key-%u", at);
        struct json_node *member = json_node_named(object, key);
        int64_t value = -1;
        assert_int_equal(member && json_node_int(member, &value), model[at] >= 0);
        assert_int_equal(value, model[at]);
        if (member && random_u64(&random) % 2) {
            json_node_remove(object, member);
            model[at] = -1;
            continue;
        }
        assert_int_equal(
            json_node_set(arena, object, slice_from_text(key), json_node_new_int(arena, step)),
            ST_OK);
        model[at] = step;
    }
    size_t count = 0;
    for (int i = 0; i < KEYS; i++)
        count += model[i] >= 0;
    assert_int_equal(object->count, count);
}

/* The index of a large object is full just when few of its members are left. */
static void few_remaining_members_of_many_are_found(void **state)
{
    enum { MANY = 300, FEW = 3 };
    struct arena *arena = *state;
    for (int many = FEW; many < MANY; many++) {
        struct json_node *object = json_node_new(arena, JSON_TYPE_OBJECT);
        char key[16];
        for (int i = 0; i < many; i++) {
            snprintf(key, sizeof(key), "key-%d", i);
            assert_int_equal(
                json_node_set(arena, object, slice_from_text(key), json_node_new_int(arena, i)),
                ST_OK);
        }
        for (int i = 0; i < many - FEW; i++) {
            snprintf(key, sizeof(key), "key-%d", i);
            json_node_remove(object, json_node_named(object, key));
        }
        for (int i = 0; i < FEW; i++) {
            struct json_node *added = json_node_new_int(arena, many + i);
            snprintf(key, sizeof(key), "key-%d", many + i);
            assert_int_equal(json_node_set(arena, object, slice_from_text(key), added), ST_OK);
            assert_ptr_equal(json_node_named(object, key), added);
        }
        assert_int_equal(object->count, 2 * FEW);
    }
}

static void whole_zero_has_no_sign(void **state)
{
    (void)state;
    struct arena arena;
    struct json_node *root;
    struct error error;
    AUTO(buf_fini) struct buf out = {0};
    arena_init(&arena, NULL, 0, SIZE_MAX);
    assert_int_equal(json_tree_read(&arena, SLICE_LITERAL("[-0,0,-0.0,-1,-0e1]"), &root, &error),
                     ST_OK);
    assert_int_equal(json_tree_write(root, &out), ST_OK);
    assert_true(slice_equal(buf_slice(&out), SLICE_LITERAL("[0,0,-0.0,-1,-0e1]")));
    arena_fini(&arena);
}

/* A walk of a node that is not an array or object finds nothing, and the text of one that is not a
 * string or number is empty, whether or not its type was checked. */
static void nodes_of_other_types_look_empty(void **state)
{
    (void)state;
    struct buf text = {0};
    struct arena arena;
    struct json_node *root;
    struct error error;
    arena_init(&arena, NULL, 0, SIZE_MAX);
    assert_int_equal(buf_append_text(&text, "[null,true,7,\"text\",[1,2],{\"a\":1},{"), ST_OK);
    for (int i = 0; i < 100; i++) /* enough for an index */
        assert_int_equal(buf_append_format(&text, "%s\"k%d\":1", i ? "," : "", i), ST_OK);
    assert_int_equal(buf_append_text(&text, "}]"), ST_OK);
    assert_int_equal(json_tree_read(&arena, buf_slice(&text), &root, &error), ST_OK);
    assert_non_null(json_look_item(root, 6)->index);
    for (const struct json_node *node = root->first; node; node = node->next) {
        bool has_children = node->type == JSON_TYPE_ARRAY || node->type == JSON_TYPE_OBJECT;
        bool has_text = node->type == JSON_TYPE_STRING || node->type == JSON_TYPE_NUMBER;
        assert_int_equal(node->first != NULL, has_children);
        assert_int_equal(node->last != NULL, has_children);
        assert_int_equal(node->count != 0, has_children);
        assert_int_equal(node->text.len != 0, has_text);
    }
    arena_fini(&arena);
    buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_zero_has_no_sign),
        cmocka_unit_test(nodes_of_other_types_look_empty),
        cmocka_unit_test_setup_teardown(parsed_text_is_written_compact, setup, teardown),
        cmocka_unit_test_setup_teardown(last_value_of_a_repeated_key_is_used, setup, teardown),
        cmocka_unit_test_setup_teardown(key_repeated_often_costs_no_more_than_others, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(members_are_found_by_name_and_path, setup, teardown),
        cmocka_unit_test_setup_teardown(texts_are_decoded, setup, teardown),
        cmocka_unit_test_setup_teardown(unnecessary_escapes_are_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(keys_get_necessary_escapes, setup, teardown),
        cmocka_unit_test_setup_teardown(changes_are_written, setup, teardown),
        cmocka_unit_test_setup_teardown(equality_ignores_the_form, setup, teardown),
        cmocka_unit_test_setup_teardown(const_tree_is_const_in_all_its_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(copy_is_independent, setup, teardown),
        cmocka_unit_test_setup_teardown(a_copy_of_the_members_shares_what_is_below_them, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(errors_have_gos_texts, setup, teardown),
        cmocka_unit_test_setup_teardown(no_tree_becomes_deeper_than_the_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(depth_is_counted_over_all_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(node_inserted_elsewhere_leaves_its_place, setup, teardown),
        cmocka_unit_test_setup_teardown(short_text_is_compared_quickly_with_a_long_one, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(few_remaining_members_of_many_are_found, setup, teardown),
        cmocka_unit_test_setup_teardown(random_changes_of_large_objects_match_a_model, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
