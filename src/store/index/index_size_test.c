/*
 * The cost of the index: bytes per key, and work that must not grow with the square of the
 * versions.
 */
#include "store/index/index.h"

#include "base/random.h"
#include "base/xalloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#ifdef VIGIL_SANITIZED
enum { KEYS = 100 * 1000, VERSIONS = 100 * 1000 };
#else
enum { KEYS = 1000 * 1000, VERSIONS = 1000 * 1000 };
#endif
enum { KEY_BYTES = 24, BYTES_PER_KEY_MAX = 118, GROUP = 1000 };

static struct slice number_key(char *space, uint32_t number)
{
    sprintf(space, "/registry/key/%010u", number);
    return slice_of(space, KEY_BYTES);
}

static struct index_version version_at(int64_t revision)
{
    return (struct index_version){.mod_revision = revision,
                                  .create_revision = revision,
                                  .version = 1,
                                  .loc = (uint64_t)revision * 8,
                                  .field_bytes = 100};
}

static void publish(struct index *index, struct epoch *epoch)
{
    index_publish(index);
    epoch_publish(epoch);
    epoch_reclaim(epoch, 20 * GROUP);
}

static double bytes_per_key(const struct index *index)
{
    return (double)index_bytes_held(index) / KEYS;
}

static void put_all(struct index *index, struct epoch *epoch, const uint32_t *order)
{
    char space[32];
    for (uint32_t i = 0; i < KEYS; i++) {
        struct index_version version = version_at(i + 1);
        index_put(index, number_key(space, order ? order[i] : i), &version);
        if (i % GROUP == GROUP - 1)
            publish(index, epoch);
    }
    publish(index, epoch);
    assert_int_equal(index_working_root(index).live_keys, KEYS);
}

static void keys_in_order_fill_their_leaves(void **state)
{
    (void)state;
    AUTO(epoch_freep) struct epoch *epoch = epoch_new(0);
    AUTO(index_freep) struct index *index = index_new(epoch);
    put_all(index, epoch, NULL);
    print_message("in order: %.1f bytes a key\n", bytes_per_key(index));
    assert_true(bytes_per_key(index) < 108);
}

static void keys_in_random_order_stay_within_the_budget(void **state)
{
    (void)state;
    AUTO(epoch_freep) struct epoch *epoch = epoch_new(0);
    AUTO(index_freep) struct index *index = index_new(epoch);
    uint32_t *order = xmalloc(KEYS * sizeof(order[0]));
    struct random random;
    random_init(&random, 1);
    for (uint32_t i = 0; i < KEYS; i++) {
        uint32_t other = (uint32_t)random_below(&random, i + 1u);
        order[i] = order[other];
        order[other] = i;
    }
    put_all(index, epoch, order);
    print_message("random: %.1f bytes a key\n", bytes_per_key(index));
    assert_true(bytes_per_key(index) < BYTES_PER_KEY_MAX);
    free(order);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* There are no readers during loading, so a replaced version is freed at once. */
static void a_load_frees_replaced_items_at_once(void **state)
{
    (void)state;
    enum { OFTEN = 20 };
    AUTO(epoch_freep) struct epoch *epoch = epoch_new(0);
    AUTO(index_freep) struct index *index = index_new(epoch);
    char space[32];
    size_t held_max = 0;
    double start = seconds();
    index_load_begin(index);
    for (uint32_t i = 0; i < KEYS; i++) {
        struct index_version version = version_at(i + 1);
        index_put(index, number_key(space, i % (KEYS / OFTEN)), &version);
        held_max = size_max(held_max, index_bytes_held(index));
    }
    index_load_end(index);
    print_message("load: %.0f ns, at most %.1f bytes a version\n", (seconds() - start) / KEYS * 1e9,
                  (double)held_max / KEYS);
    assert_int_equal(epoch_reclaim(epoch, 0), 0);
    assert_true(held_max < 32ul * KEYS);
    index_check(index);

    assert_int_equal(index_working_root(index).live_keys, KEYS / OFTEN);
    for (uint32_t i = 0; i < KEYS / OFTEN; i += 37) {
        const struct index_item *item = index_find(index, number_key(space, i));
        assert_int_equal(item->older_count, OFTEN - 1);
        assert_int_equal(index_item_older(item)[0], (i + 1) * 8);
        assert_int_equal(item->newest.mod_revision, i + 1 + KEYS - KEYS / OFTEN);
    }
    /* A loaded index can be changed like any other, and then there may be readers. */
    publish(index, epoch);
    for (uint32_t i = 0; i < KEYS / OFTEN; i += 11) {
        struct index_version version = version_at(KEYS + i);
        index_put(index, number_key(space, i * 3), &version);
        if (i % 5 == 0)
            index_trim(index, number_key(space, i), 0, true);
    }
    assert_true(epoch_reclaim(epoch, 0) > 0);
    index_check(index);
}

static void an_empty_load_leaves_an_empty_index(void **state)
{
    (void)state;
    AUTO(epoch_freep) struct epoch *epoch = epoch_new(0);
    AUTO(index_freep) struct index *index = index_new(epoch);
    index_load_begin(index);
    index_load_end(index);
    index_check(index);
    struct index_root root = index_publish(index);
    assert_null(index_root_find(&root, SLICE_LITERAL("a")));
    assert_int_equal(index_root_sum(&root, SLICE_EMPTY, SLICE_EMPTY, true).live_keys, 0);
    struct index_cursor cursor;
    index_cursor_init(&cursor, &root, SLICE_EMPTY);
    assert_null(index_cursor_next(&cursor));
}

/* One key is overwritten VERSIONS times and then trimmed; quadratic work would take hours. */
static void put_versions(struct index *index, struct epoch *epoch)
{
    for (int64_t i = 1; i <= VERSIONS; i++) {
        struct index_version version = version_at(i);
        index_put(index, SLICE_LITERAL("busy"), &version);
        if (i % GROUP == 0)
            publish(index, epoch);
    }
    assert_int_equal(index_find(index, SLICE_LITERAL("busy"))->older_count, VERSIONS - 1);
}

static void a_million_versions_are_trimmed_one_by_one(void **state)
{
    (void)state;
    AUTO(epoch_freep) struct epoch *epoch = epoch_new(0);
    AUTO(index_freep) struct index *index = index_new(epoch);
    double start = seconds();
    put_versions(index, epoch);
    double middle = seconds();
    for (uint64_t i = 1; i < VERSIONS; i++) {
        const struct index_item *item = index_find(index, SLICE_LITERAL("busy"));
        assert_int_equal(index_item_older(item)[0], i * 8);
        index_trim(index, SLICE_LITERAL("busy"), 1, false);
        if (i % GROUP == 0)
            publish(index, epoch);
    }
    print_message("one key: %.0f ns a version, %.0f ns a trim\n", (middle - start) / VERSIONS * 1e9,
                  (seconds() - middle) / VERSIONS * 1e9);
    assert_int_equal(index_find(index, SLICE_LITERAL("busy"))->older_count, 0);
    index_check(index);
    publish(index, epoch);
    assert_true(index_bytes_held(index) < 4 << 20);
}

static void a_million_versions_are_trimmed_at_once(void **state)
{
    (void)state;
    AUTO(epoch_freep) struct epoch *epoch = epoch_new(0);
    AUTO(index_freep) struct index *index = index_new(epoch);
    put_versions(index, epoch);
    index_trim(index, SLICE_LITERAL("busy"), VERSIONS - 10, false);
    const struct index_item *item = index_find(index, SLICE_LITERAL("busy"));
    assert_int_equal(item->older_count, 9);
    assert_int_equal(index_item_older(item)[0], (VERSIONS - 9) * 8ul);
    index_trim(index, SLICE_LITERAL("busy"), 0, true);
    assert_null(index_find(index, SLICE_LITERAL("busy")));
    index_check(index);
}

static void a_window_of_versions_slides_at_little_cost(void **state)
{
    (void)state;
    AUTO(epoch_freep) struct epoch *epoch = epoch_new(0);
    AUTO(index_freep) struct index *index = index_new(epoch);
    for (int64_t i = 1; i <= VERSIONS; i++) {
        struct index_version version = version_at(i);
        index_put(index, SLICE_LITERAL("busy"), &version);
        if (i > 1000)
            index_trim(index, SLICE_LITERAL("busy"), 1, false);
        if (i % GROUP == 0)
            publish(index, epoch);
    }
    const struct index_item *item = index_find(index, SLICE_LITERAL("busy"));
    assert_int_equal(item->older_count, 999);
    assert_int_equal(index_item_older(item)[998], (VERSIONS - 1) * 8ul);
    publish(index, epoch);
    assert_true(index_bytes_held(index) < 4 << 20);
}

static void all_versions_of_a_busy_key_are_relocated_in_groups(void **state)
{
    (void)state;
    enum { MANY = VERSIONS / 10 };
    AUTO(epoch_freep) struct epoch *epoch = epoch_new(0);
    AUTO(index_freep) struct index *index = index_new(epoch);
    for (int64_t i = 1; i <= MANY; i++) {
        struct index_version version = version_at(i);
        index_put(index, SLICE_LITERAL("busy"), &version);
        if (i % GROUP == 0)
            publish(index, epoch);
    }
    for (uint64_t i = 1; i <= MANY; i++) {
        assert_true(index_relocate(index, SLICE_LITERAL("busy"), i * 8, i * 8 + 1));
        if (i % GROUP == 0)
            publish(index, epoch);
    }
    const struct index_item *item = index_find(index, SLICE_LITERAL("busy"));
    for (uint64_t i = 1; i < MANY; i++)
        assert_int_equal(index_item_older(item)[i - 1], i * 8 + 1);
    assert_int_equal(item->newest.loc, MANY * 8ul + 1);
}

static void long_keys_are_kept_whole(void **state)
{
    (void)state;
    enum { LONG = 3 << 20 };
    AUTO(epoch_freep) struct epoch *epoch = epoch_new(0);
    AUTO(index_freep) struct index *index = index_new(epoch);
    uint8_t *bytes = xcalloc(1, LONG);
    for (size_t len = 1; len <= LONG; len *= 3) {
        for (uint8_t last = 0; last < 3; last++) {
            struct index_version version = version_at(1);
            bytes[len - 1] = last;
            index_put(index, slice_of(bytes, len), &version);
            bytes[len - 1] = 0;
        }
        publish(index, epoch);
    }
    index_check(index);
    assert_non_null(index_find(index, slice_of(bytes, 3 * 3 * 3)));
    assert_null(index_find(index, slice_of(bytes, 3 * 3 * 3 + 1)));
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_in_order_fill_their_leaves),
        cmocka_unit_test(keys_in_random_order_stay_within_the_budget),
        cmocka_unit_test(a_load_frees_replaced_items_at_once),
        cmocka_unit_test(an_empty_load_leaves_an_empty_index),
        cmocka_unit_test(a_million_versions_are_trimmed_one_by_one),
        cmocka_unit_test(a_million_versions_are_trimmed_at_once),
        cmocka_unit_test(a_window_of_versions_slides_at_little_cost),
        cmocka_unit_test(all_versions_of_a_busy_key_are_relocated_in_groups),
        cmocka_unit_test(long_keys_are_kept_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
