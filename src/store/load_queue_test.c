#include "store/load_queue.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { KEYS = 4 * LOAD_ALONE_MAX, KEY_BYTES = 12 };

static struct slice key_of(char (*names)[KEY_BYTES], uint32_t key)
{
    return slice_from_text(names[key]);
}

/* In the order in which the versions of a checkpoint may name their keys. */
enum order { RANDOM, SORTED, SOME_CLIENTS };

static uint32_t key_at(enum order order, struct random *random, uint32_t at)
{
    enum { CLIENTS = 10, TOGETHER = 37 };
    uint32_t turn = at / TOGETHER;
    switch (order) {
    case RANDOM:
        return (uint32_t)random_below(random, KEYS / 10);
    case SORTED:
        return at % KEYS;
    default: /* each puts its own part of the keys in order, some of them at a time */
        return (turn % CLIENTS * (KEYS / CLIENTS) + turn / CLIENTS * TOGETHER + at % TOGETHER) %
               KEYS;
    }
}

/* Puts versions, and compares the newest and the number of each key. */
static void check_versions(int64_t count, enum order order)
{
    struct epoch *epoch = epoch_new(0);
    struct index *index = index_new(epoch);
    struct random random;
    char(*names)[KEY_BYTES] = calloc(KEYS, KEY_BYTES);
    int64_t *newest = calloc(KEYS, sizeof(*newest)), *versions = calloc(KEYS, sizeof(*versions));
    for (uint32_t i = 0; i < KEYS; i++)
        snprintf(names[i], KEY_BYTES, "key-%06u", i);
    random_init(&random, (uint64_t)count);
    index_load_begin(index);
    struct load_queue *queue = load_queue_new(index);
    for (int64_t i = 1; i <= count; i++) {
        uint32_t key = key_at(order, &random, (uint32_t)i);
        struct index_version version = {
            .mod_revision = i + 1, .create_revision = 2, .version = 1, .loc = (uint64_t)i * 8};
        load_queue_put(queue, key_of(names, key), &version);
        newest[key] = i + 1;
        versions[key]++;
    }
    load_queue_free(queue);
    index_load_end(index);
    index_check(index);
    for (uint32_t i = 0; i < KEYS; i++) {
        const struct index_item *item = index_find(index, key_of(names, i));
        assert_int_equal(item ? item->older_count + 1 : 0, versions[i]);
        assert_int_equal(item ? item->newest.mod_revision : 0, newest[i]);
    }
    free(names);
    free(newest);
    free(versions);
    index_free(index);
    epoch_free(epoch);
}

static void all_versions_arrive_in_order(void **state)
{
    (void)state;
    static const int64_t counts[] = {0,
                                     1,
                                     LOAD_ALONE_MAX - 1,
                                     LOAD_ALONE_MAX,
                                     LOAD_ALONE_MAX + 1,
                                     LOAD_ALONE_MAX + 1024,
                                     LOAD_ALONE_MAX + 30000};
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        check_versions(counts[i], RANDOM);
    check_versions(3 * LOAD_ALONE_MAX, SORTED);
    check_versions(3 * LOAD_ALONE_MAX, SOME_CLIENTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_versions_arrive_in_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
