#include "cel/value/container.h"
#include "cel/value/name.h"
#include "cel/value/shape.h"
#include "cel/value/unordered.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* tests/kube/rules compares rules over such values with Kubernetes' own code. */

static const struct cel_shape text = {.kind = CEL_SHAPE_STRING};
static const struct cel_shape whole = {.kind = CEL_SHAPE_INT};
static const struct cel_shape real = {.kind = CEL_SHAPE_DOUBLE};
static const struct cel_shape nothing = {.kind = CEL_SHAPE_STRING, .is_nullable = true};
static const struct cel_shape any = {.kind = CEL_SHAPE_UNKNOWN};
static const struct cel_shape set = {.kind = CEL_SHAPE_SET, .item = &text};
static const struct cel_shape reals = {.kind = CEL_SHAPE_SET, .item = &real};
static const struct cel_property entry_properties[] = {
    {SLICE_LITERAL("n"), &text},
    {SLICE_LITERAL("v"), &whole},
};
static const struct cel_shape entry = {
    .kind = CEL_SHAPE_OBJECT, .count = 2, .properties = entry_properties};
static const struct slice entry_keys[] = {SLICE_LITERAL("n")};
static const struct cel_shape entries = {
    .kind = CEL_SHAPE_MAP_LIST, .count = 1, .keys = entry_keys, .item = &entry};
static const struct cel_shape map = {.kind = CEL_SHAPE_MAP, .item = &nothing};
static const struct cel_property properties[] = {
    {SLICE_LITERAL("a.b"), &whole},    {SLICE_LITERAL("any"), &any},
    {SLICE_LITERAL("list"), &entries}, {SLICE_LITERAL("map"), &map},
    {SLICE_LITERAL("null"), &nothing}, {SLICE_LITERAL("r"), &real},
    {SLICE_LITERAL("rs"), &reals},     {SLICE_LITERAL("set"), &set},
};
static const struct cel_shape object = {
    .kind = CEL_SHAPE_OBJECT, .count = COUNT_OF(properties), .properties = properties};

struct fixture {
    struct arena arena;
    struct cel_work work;
};

static void begin(struct fixture *f)
{
    arena_init(&f->arena, NULL, 0, 1 << 20);
    f->work = (struct cel_work){.arena = &f->arena, .steps_left = 100000};
}

static struct cel_value read_value(struct fixture *f, const char *json)
{
    struct json_node *root;
    struct error error;
    assert_int_equal(json_tree_read(&f->arena, slice_from_text(json), &root, &error), ST_OK);
    return cel_shaped(&f->work, &object, cel_of_json(&f->work, root));
}

static struct cel_value get(struct fixture *f, struct cel_value of, const char *name)
{
    struct cel_value value = {.kind = CEL_NULL};
    if (!cel_map_find(&f->work, of, cel_of_string(slice_from_text(name)), &value))
        return CEL_FAIL("absent");
    return value;
}

static void assert_error(struct cel_value value, const char *wanted)
{
    assert_int_equal(value.kind, CEL_ERROR);
    assert_true(slice_is(cel_text(value), wanted));
}

static void only_what_the_schema_declares_is_visible(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    struct cel_value value = read_value(
        &f, "{\"a.b\":1,\"x\":2,\"null\":null,\"r\":3,\"map\":{\"k\":null},\"set\":\"\"}");
    assert_int_equal(get(&f, value, "a__dot__b").i64, 1);
    assert_true(get(&f, value, "r").number == 3);
    assert_error(get(&f, value, "x"), "absent");
    assert_error(get(&f, value, "__null__"), "absent"); /* it is null */
    assert_int_equal(get(&f, get(&f, value, "map"), "k").kind, CEL_NULL);
    assert_error(get(&f, value, "set"),
                 "invalid data, expected an array for the provided schema with type=array");
    assert_error(cel_shaped(&f.work, &whole, cel_of_double(1.5)),
                 "invalid data, expected int, got float64");
    arena_fini(&f.arena);
}

static void undeclared_fields_are_compared(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    struct cel_value a = read_value(&f, "{\"x\":[1,{\"y\":2}],\"any\":{\"z\":1}}");
    struct cel_value b = read_value(&f, "{\"any\":{\"z\":1},\"x\":[1,{\"y\":2}]}");
    assert_true(cel_is_true(cel_equal(&f.work, a, b)));
    b = read_value(&f, "{\"any\":{\"z\":1},\"x\":[1,{\"y\":3}]}");
    assert_false(cel_is_true(cel_equal(&f.work, a, b)));
    b = read_value(&f, "{\"any\":{\"z\":2},\"x\":[1,{\"y\":2}]}");
    assert_false(cel_is_true(cel_equal(&f.work, a, b)));
    assert_error(cel_equal(&f.work, a, cel_of_int(1)), "no such overload");
    arena_fini(&f.arena);
}

static void sets_and_map_lists_have_no_order(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f);
    struct cel_value a = read_value(&f, "{\"set\":[\"x\",\"y\"],\"rs\":[1],\"list\":["
                                        "{\"n\":\"p\",\"v\":1},{\"n\":\"q\",\"v\":2}]}");
    struct cel_value b = read_value(&f, "{\"set\":[\"y\",\"x\"],\"rs\":[1],\"list\":["
                                        "{\"n\":\"q\",\"v\":2},{\"n\":\"p\",\"v\":3}]}");
    struct cel_value set_a = get(&f, a, "set"), set_b = get(&f, b, "set");
    struct cel_value list_a = get(&f, a, "list"), list_b = get(&f, b, "list");
    assert_true(cel_is_true(cel_equal(&f.work, set_a, set_b)));
    assert_false(cel_is_true(cel_equal(&f.work, list_a, list_b)));
    /* In Go an integer of JSON is not the double that a schema wants. */
    assert_false(cel_is_true(cel_equal(&f.work, get(&f, a, "rs"), get(&f, b, "rs"))));
    struct cel_value joined = cel_unordered_concat(&f.work, set_a, set_b);
    assert_int_equal(joined.count, 2);
    joined = cel_unordered_concat(&f.work, list_a, list_b);
    assert_int_equal(joined.count, 2);
    assert_int_equal(get(&f, cel_list_at(&f.work, joined, 0), "v").i64, 3);
    assert_true(cel_is_true(cel_equal(&f.work, joined, list_b)));
    arena_fini(&f.arena);
}

static void names_are_escaped_and_back(void **state)
{
    static const char *const names[][2] = {
        {"a.b-c/d__e", "a__dot__b__dash__c__slash__d__underscores__e"},
        {"namespace", "__namespace__"},
        {"_a_", "_a_"},
        {"___", "__underscores___"},
    };
    struct fixture f;
    struct slice found;
    (void)state;
    begin(&f);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct slice name = slice_from_text(names[i][0]), escaped = slice_from_text(names[i][1]);
        assert_int_equal(cel_name_escape(&f.arena, name, &found), ST_OK);
        assert_true(slice_equal(found, escaped));
        assert_int_equal(cel_name_unescape(&f.arena, escaped, &found), ST_OK);
        assert_true(slice_equal(found, name));
    }
    assert_int_equal(cel_name_escape(&f.arena, SLICE_LITERAL("1a"), &found), ST_INVALID);
    assert_int_equal(cel_name_escape(&f.arena, SLICE_LITERAL("a b"), &found), ST_INVALID);
    assert_int_equal(cel_name_unescape(&f.arena, SLICE_LITERAL("__x__"), &found), ST_INVALID);
    assert_int_equal(cel_name_unescape(&f.arena, SLICE_LITERAL("a__if__"), &found), ST_INVALID);
    arena_fini(&f.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_the_schema_declares_is_visible),
        cmocka_unit_test(undeclared_fields_are_compared),
        cmocka_unit_test(sets_and_map_lists_have_no_order),
        cmocka_unit_test(names_are_escaped_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
