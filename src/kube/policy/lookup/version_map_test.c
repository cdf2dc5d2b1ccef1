#include "kube/policy/lookup/version_map.h"

#include "base/random.h"
#include "base/xalloc.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { KEYS = 200, VERSIONS = 16, ROUNDS = 20000, READERS = 3 };

static _Atomic size_t alive;

struct number {
    struct version_item item;
    int value;
    char key[16];
};

static void number_free(struct version_item *item)
{
    atomic_fetch_sub(&alive, 1);
    free(CONTAINER_OF(item, struct number, item));
}

static void set(struct version_map *map, size_t key, int value)
{
    struct number *number = xcalloc(1, sizeof(*number));
    snprintf(number->key, sizeof(number->key), "key%03zu", key);
    number->item =
        (struct version_item){.key = slice_from_text(number->key), .refs = 1, .free = number_free};
    number->value = value;
    atomic_fetch_add(&alive, 1);
    version_map_put(map, &number->item);
}

static int get(const struct version_map *map, size_t key)
{
    char text[16];
    snprintf(text, sizeof(text), "key%03zu", key);
    struct version_item *item = version_map_get(map, slice_from_text(text));
    return item ? CONTAINER_OF(item, struct number, item)->value : 0;
}

static bool add_up(void *ctx, struct version_item *item)
{
    *(int *)ctx += CONTAINER_OF(item, struct number, item)->value;
    return true;
}

/* From a key that may or may not exist. */
static void assert_follows(const struct version_map *map, const int *expected, size_t from)
{
    struct version_cursor cursor;
    struct version_item *item;
    char text[16];
    snprintf(text, sizeof(text), "key%03zu", from);
    version_cursor_seek(&cursor, map, slice_from_text(text));
    for (size_t k = from; k < KEYS; k++) {
        if (!expected[k])
            continue;
        item = version_cursor_next(&cursor);
        assert_non_null(item);
        assert_int_equal(CONTAINER_OF(item, struct number, item)->value, expected[k]);
    }
    assert_null(version_cursor_next(&cursor));
}

/* Compared with arrays; old versions stay as they were. */
static void versions_do_not_change(void **state)
{
    static int expected[VERSIONS][KEYS];
    struct version_map maps[VERSIONS] = {{0}};
    struct random random;
    (void)state;
    random_init(&random, 5);
    for (int round = 1; round < ROUNDS; round++) {
        size_t at = random_below(&random, VERSIONS), key = random_below(&random, KEYS);
        if (random_chance(&random, 1, 10)) {
            size_t from = random_below(&random, VERSIONS);
            struct version_map copy = version_map_dup(&maps[from]);
            version_map_fini(&maps[at]);
            maps[at] = copy;
            memmove(expected[at], expected[from], sizeof(expected[at]));
        } else if (random_chance(&random, 2, 5)) {
            char text[16];
            snprintf(text, sizeof(text), "key%03zu", key);
            assert_int_equal(version_map_remove(&maps[at], slice_from_text(text)),
                             expected[at][key] != 0);
            expected[at][key] = 0;
        } else {
            set(&maps[at], key, round);
            expected[at][key] = round;
        }
        if (round % 100)
            continue;
        for (size_t i = 0; i < VERSIONS; i++) {
            int sum = 0, wanted = 0;
            version_map_check(&maps[i]);
            for (size_t k = 0; k < KEYS; k++) {
                assert_int_equal(get(&maps[i], k), expected[i][k]);
                wanted += expected[i][k];
            }
            assert_true(version_map_each(&maps[i], add_up, &sum));
            assert_int_equal(sum, wanted);
            assert_follows(&maps[i], expected[i], random_below(&random, KEYS));
        }
    }
    for (size_t i = 0; i < VERSIONS; i++)
        version_map_fini(&maps[i]);
    assert_int_equal(alive, 0);
}

static void keys_in_order_make_a_balanced_tree(void **state)
{
    struct version_map map = {0};
    (void)state;
    for (size_t i = 0; i < KEYS; i++) {
        set(&map, i, 1);
        version_map_check(&map);
    }
    assert_int_equal(version_map_count(&map), KEYS);
    for (size_t i = 0; i < KEYS; i++) {
        char text[16];
        snprintf(text, sizeof(text), "key%03zu", i);
        assert_true(version_map_remove(&map, slice_from_text(text)));
        version_map_check(&map);
    }
    assert_int_equal(alive, 0);
}

static void *read_version(void *ctx)
{
    struct version_map *map = ctx;
    int sum = 0;
    for (int i = 0; i < 50; i++)
        (void)version_map_each(map, add_up, &sum);
    version_map_fini(map);
    return (void *)(intptr_t)sum;
}

/* Every thread frees what it was the last to use. */
static void threads_read_versions_while_others_are_made(void **state)
{
    struct version_map map = {0}, versions[READERS];
    pthread_t threads[READERS];
    (void)state;
    for (size_t i = 0; i < KEYS; i++)
        set(&map, i, 1);
    for (size_t i = 0; i < READERS; i++) {
        versions[i] = version_map_dup(&map);
        assert_int_equal(pthread_create(&threads[i], NULL, read_version, &versions[i]), 0);
        for (size_t k = 0; k < KEYS; k++)
            set(&map, k, 1);
    }
    version_map_fini(&map);
    for (size_t i = 0; i < READERS; i++) {
        void *sum;
        assert_int_equal(pthread_join(threads[i], &sum), 0);
        assert_int_equal((intptr_t)sum, 50 * KEYS);
    }
    assert_int_equal(alive, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_do_not_change),
        cmocka_unit_test(keys_in_order_make_a_balanced_tree),
        cmocka_unit_test(threads_read_versions_while_others_are_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
