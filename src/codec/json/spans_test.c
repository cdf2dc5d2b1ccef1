#include "codec/json/spans.h"

#include "base/random.h"
#include "codec/json/tree_fixture_test.h"

#include <stddef.h>

enum { ITEMS_MAX = 4096 };

static int setup(void **state)
{
    *state = fixture_new(64 << 20);
    return 0;
}

static void assert_is(struct fixture *f, struct json_node *array, size_t at, int64_t expected)
{
    struct json_node *item;
    int64_t value;
    assert_int_equal(json_spans_item(&f->arena, array, at, &item), ST_OK);
    assert_true(json_node_int(item, &value));
    assert_int_equal(value, expected);
}

/* Compares an array with a plain list of its expected items; sometimes other functions change it.
 */
static void random_changes_of_lists_match_a_model(void **state)
{
    enum { STEPS = 20000 };
    struct fixture *f = *state;
    struct json_node *array = json_node_new(&f->arena, JSON_TYPE_ARRAY), *item;
    static int64_t model[ITEMS_MAX];
    struct random random;
    random_init(&random, 11);
    for (int step = 0; step < STEPS; step++) {
        size_t count = array->count;
        size_t at = (size_t)random_u64(&random) % (count + 1);
        bool grows = random_u64(&random) % 100 < (step / 4000 % 2 ? 20 : 80);
        if (count > ITEMS_MAX - 2 || (count && !grows)) {
            at = size_min(at, count - 1);
            assert_is(f, array, at, model[at]);
            assert_int_equal(json_spans_remove(&f->arena, array, at), ST_OK);
            memmove(&model[at], &model[at + 1], (count - at) * sizeof(model[0]));
            continue;
        }
        item = json_node_new_int(&f->arena, step);
        if (random_u64(&random) % 500 == 0) {
            at = count;
            assert_int_equal(json_node_insert(array, NULL, item), ST_OK);
        } else {
            assert_int_equal(json_spans_insert(&f->arena, array, at, item), ST_OK);
        }
        memmove(&model[at + 1], &model[at], (count - at) * sizeof(model[0]));
        model[at] = step;
        json_spans_check(array);
    }
    for (size_t i = 0; i < array->count; i++)
        assert_is(f, array, i, model[i]);
    assert_int_equal(json_spans_item(&f->arena, array, array->count, &item), ST_OK);
    assert_null(item);
}

static void item_that_nests_too_deep_is_not_inserted(void **state)
{
    struct fixture *f = *state;
    struct json_node *array = json_node_new(&f->arena, JSON_TYPE_ARRAY), *deep = NULL;
    for (int i = 0; i < 200; i++)
        assert_int_equal(json_spans_insert(&f->arena, array, 0, json_node_new_int(&f->arena, i)),
                         ST_OK);
    for (int i = 0; i < JSON_TREE_DEPTH_MAX; i++) {
        struct json_node *outer = json_node_new(&f->arena, JSON_TYPE_ARRAY);
        if (deep)
            assert_int_equal(json_node_insert(outer, NULL, deep), ST_OK);
        deep = outer;
    }
    assert_int_equal(json_spans_insert(&f->arena, array, 100, deep), ST_LIMIT);
    assert_int_equal(array->count, 200);
    json_spans_check(array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_changes_of_lists_match_a_model, setup, teardown),
        cmocka_unit_test_setup_teardown(item_that_nests_too_deep_is_not_inserted, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
