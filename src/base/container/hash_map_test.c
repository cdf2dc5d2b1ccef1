#include "base/container/hash_map.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct word {
    char text[64];
    size_t len;
    int number;
};

static struct slice word_key(const void *value)
{
    const struct word *word = value;
    return slice_of(word->text, word->len);
}

static void put(struct hash_map *map, struct word *word, struct word *expected)
{
    void *replaced = map;
    assert_int_equal(hash_map_put(map, word, &replaced), ST_OK);
    assert_ptr_equal(replaced, expected);
}

static void a_value_is_found_by_its_bytes(void **state)
{
    (void)state;
    struct hash_map map;
    hash_map_init(&map, word_key, 1);
    assert_null(hash_map_get(&map, SLICE_LITERAL("a")));
    assert_null(hash_map_remove(&map, SLICE_LITERAL("a")));

    struct word a = {.text = "a", .len = 1}, again = a, empty = {.len = 0};
    put(&map, &a, NULL);
    put(&map, &empty, NULL);
    assert_ptr_equal(hash_map_get(&map, SLICE_LITERAL("a")), &a);
    assert_ptr_equal(hash_map_get(&map, SLICE_EMPTY), &empty);
    assert_null(hash_map_get(&map, SLICE_LITERAL("a\0")));
    put(&map, &again, &a);
    assert_int_equal(map.count, 2);
    assert_ptr_equal(hash_map_remove(&map, SLICE_LITERAL("a")), &again);
    assert_null(hash_map_get(&map, SLICE_LITERAL("a")));
    hash_map_fini(&map);
}

static void random_words_match_a_table(void **state)
{
    (void)state;
    enum { WORDS = 2000 };
    static struct word words[WORDS];
    static bool inside[WORDS];
    struct random random;
    struct hash_map map;
    random_init(&random, 2);
    hash_map_init(&map, word_key, random_u64(&random));
    for (int i = 0; i < WORDS; i++) {
        words[i].number = i;
        words[i].len = (size_t)i % 45;
        random_fill(&random, words[i].text, words[i].len);
        memcpy(words[i].text + words[i].len, &i, sizeof(i));
        words[i].len += sizeof(i);
    }
    size_t count = 0;
    for (int step = 0; step < 60000; step++) {
        /* Fills, then empties. */
        bool add = random_chance(&random, step < 30000 ? 3 : 1, 4);
        size_t at = (size_t)random_below(&random, WORDS);
        assert_ptr_equal(hash_map_get(&map, word_key(&words[at])), inside[at] ? &words[at] : NULL);
        if (add) {
            put(&map, &words[at], inside[at] ? &words[at] : NULL);
            count += !inside[at];
        } else {
            void *removed = hash_map_remove(&map, word_key(&words[at]));
            assert_ptr_equal(removed, inside[at] ? &words[at] : NULL);
            count -= inside[at];
        }
        inside[at] = add;
        assert_int_equal(map.count, count);
        if (step % 1000 == 0)
            hash_map_check(&map);
    }
    hash_map_fini(&map);
}

/* Keys of one form, as a peer might send them, are spread over the slots. */
static void similar_keys_do_not_pile_up(void **state)
{
    (void)state;
    enum { WORDS = 20000 };
    static struct word words[WORDS];
    struct hash_map map;
    hash_map_init(&map, word_key, 12345);
    for (int i = 0; i < WORDS; i++) {
        words[i].len = (size_t)sprintf(words[i].text, "/registry/pods/default/pod-%d", i * 64);
        put(&map, &words[i], NULL);
    }
    size_t mask = map.capacity - 1, total = 0;
    for (size_t i = 0; i < map.capacity; i++)
        if (map.slots[i].value)
            total += (i - map.slots[i].hash) & mask;
    assert_true(total < 2 * WORDS);
    hash_map_fini(&map);
}

static void a_zeroed_map_can_be_finished(void **state)
{
    (void)state;
    struct hash_map map = {0};
    hash_map_fini(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_found_by_its_bytes),
        cmocka_unit_test(random_words_match_a_table),
        cmocka_unit_test(similar_keys_do_not_pile_up),
        cmocka_unit_test(a_zeroed_map_can_be_finished),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
