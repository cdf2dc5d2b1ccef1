#include "cel/value/memo.h"

#include "cel/value/container.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum { ITEMS = 200000, TEXT_BYTES = 1000 };

struct fixture {
    struct arena json, arena;
    struct cel_work work;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    arena_init(&f->json, NULL, 0, 64 << 20);
    arena_init(&f->arena, NULL, 0, 4 << 20);
    f->work = (struct cel_work){.arena = &f->arena, .steps_left = INT64_MAX};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    arena_fini(&f->json);
    arena_fini(&f->arena);
    free(f);
    return 0;
}

static struct json_node *list_of(struct arena *arena, int64_t count)
{
    struct json_node *list = json_node_new(arena, JSON_TYPE_ARRAY);
    for (int64_t i = 0; i < count; i++) {
        struct json_node *item = json_node_new_int(arena, i);
        assert_true(item && json_node_insert(list, NULL, item) == ST_OK);
    }
    return list;
}

static void each_item_of_a_long_list_is_found_at_once(void **state)
{
    struct fixture *f = *state;
    struct cel_value list = cel_of_json(&f->work, list_of(&f->json, ITEMS));
    struct cel_value short_list = cel_of_json(&f->work, list_of(&f->json, 40));
    clock_t begin = clock();
    for (uint32_t i = 0; i < ITEMS; i++) {
        uint32_t at = i % 2 ? ITEMS - i : i;
        assert_true(cel_list_at(&f->work, list, at).i64 == (int64_t)at);
        assert_true(cel_list_at(&f->work, short_list, i % 40).i64 == (int64_t)i % 40);
    }
    /* Counting would take 20,000,000,000 steps, which is a minute; this takes some milliseconds. */
    assert_true(clock() - begin < 10 * CLOCKS_PER_SEC);
}

static void a_long_text_is_decoded_once(void **state)
{
    struct fixture *f = *state;
    struct json_node *root;
    struct error error;
    char text[TEXT_BYTES] = "\"\\n";
    memset(text + 3, 'a', sizeof(text) - 4);
    text[sizeof(text) - 1] = '"';
    assert_int_equal(json_tree_read(&f->json, slice_of(text, sizeof(text)), &root, &error), ST_OK);
    struct slice first = cel_text(cel_of_json(&f->work, root));
    assert_int_equal(first.len, TEXT_BYTES - 3);
    assert_int_equal(first.ptr[0], '\n');
    for (int i = 0; i < 1000; i++)
        assert_ptr_equal(cel_of_json(&f->work, root).bytes, first.ptr);
}

static void without_memory_there_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct cel_value list = cel_of_json(&f->work, list_of(&f->json, ITEMS));
    f->arena.limit_bytes = 0;
    assert_true(cel_is_error(cel_list_at(&f->work, list, ITEMS - 1)));
    assert_true(arena_ran_out(&f->arena));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(each_item_of_a_long_list_is_found_at_once),
        TEST(a_long_text_is_decoded_once),
        TEST(without_memory_there_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
