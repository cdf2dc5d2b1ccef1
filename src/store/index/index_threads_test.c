/* Readers walk pinned roots while the writer changes, publishes and reclaims. Meant for TSan. */
#include "store/index/index.h"

#include "base/random.h"
#include "base/xalloc.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { READERS = 3, HELD = 3, UNIVERSE = 700, GROUPS = 400, GROUP_MAX = 40 };

/* The root that readers load; retired with the state that replaces it. */
struct shared_root {
    struct index_root root;
    int64_t revision;
};

static struct epoch *epoch;
static _Atomic(struct shared_root *) published;
static atomic_bool done;

/* A location encodes its key and revision, so that a reader can verify it without the model. */
static uint64_t location(uint32_t key, int64_t revision)
{
    return (uint64_t)key << 40 | (uint64_t)revision;
}

/* Combines a whole state into a number and checks what it can on the way. */
static uint64_t walk(const struct shared_root *shared)
{
    struct index_cursor cursor;
    struct index_sum sum = {0};
    uint64_t fold = 0;
    const struct index_item *item;
    struct slice last = SLICE_EMPTY;
    index_cursor_init(&cursor, &shared->root, SLICE_EMPTY);
    while ((item = index_cursor_next(&cursor))) {
        struct slice key = index_item_key(item);
        assert_true(slice_compare(last, key) < 0);
        assert_true(item->newest.mod_revision <= shared->revision);
        assert_int_equal(item->newest.loc & 0xffffffffff, item->newest.mod_revision);
        const uint64_t *older = index_item_older(item);
        for (uint32_t i = 0; i < item->older_count; i++) {
            assert_true((older[i] & 0xffffffffff) < (uint64_t)item->newest.mod_revision);
            assert_int_equal(older[i] >> 40, item->newest.loc >> 40);
            fold = fold * 31 + older[i];
        }
        sum.live_keys += index_item_live(item);
        sum.live_bytes += item->newest.field_bytes;
        fold = fold * 31 + item->newest.loc;
        last = key;
    }
    assert_int_equal(sum.live_keys, shared->root.live_keys);
    assert_int_equal(sum.live_bytes, shared->root.live_bytes);
    return fold;
}

struct held {
    uint64_t pinned;
    struct shared_root *shared;
    uint64_t fold;
};

static void read_again_and_unpin(struct epoch_slot *slot, struct held *held)
{
    if (!held->shared)
        return;
    assert_int_equal(walk(held->shared), held->fold);
    epoch_unpin(slot, held->pinned);
    held->shared = NULL;
}

static void *reader(void *arg)
{
    struct random random;
    random_init(&random, (uint64_t)(uintptr_t)arg);
    struct epoch_slot *slot = epoch_slot_add(epoch);
    struct held held[HELD] = {0};
    while (!atomic_load(&done)) {
        struct held *one = &held[random_below(&random, HELD)];
        read_again_and_unpin(slot, one);
        one->pinned = epoch_pin(slot);
        one->shared = atomic_load_explicit(&published, memory_order_acquire);
        assert_true(one->shared->root.number >= one->pinned);
        one->fold = walk(one->shared);
        if (random_chance(&random, 1, 10))
            for (size_t i = 0; i < HELD; i++)
                read_again_and_unpin(slot, &held[i]);
    }
    for (size_t i = 0; i < HELD; i++)
        read_again_and_unpin(slot, &held[i]);
    return NULL;
}

static void free_shared(void *ctx, void *object)
{
    (void)ctx;
    free(object);
}

static struct shared_root *shared_new(struct index_root root, int64_t revision)
{
    struct shared_root *shared = xmalloc(sizeof(*shared));
    *shared = (struct shared_root){.root = root, .revision = revision};
    return shared;
}

static void change(struct index *index, struct random *random, int64_t revision)
{
    char text[32];
    uint32_t number = (uint32_t)random_below(random, UNIVERSE);
    /* A few keys change often and have long histories. */
    if (random_chance(random, 1, 3))
        number %= 5;
    struct slice key = slice_of(text, (size_t)sprintf(text, "/keys/%u", number));
    const struct index_item *item = index_find(index, key);
    if (item && random_chance(random, 1, 4)) {
        bool whole = !index_item_live(item) && random_chance(random, 1, 2);
        index_trim(index, key, (uint32_t)random_below(random, item->older_count + 1u), whole);
        return;
    }
    struct index_version version = {.mod_revision = revision, .loc = location(number, revision)};
    if (random_chance(random, 3, 4)) {
        version.create_revision = revision;
        version.field_bytes = number + 1;
    }
    index_put(index, key, &version);
}

/* Group n + 1 is built while group n waits to become visible, as in the store. */
static void write_groups(struct index *index, struct random *random)
{
    int64_t revision = 0;
    struct shared_root *waiting = NULL;
    for (unsigned group = 0; group < GROUPS; group++) {
        unsigned changes = 1 + (unsigned)random_below(random, GROUP_MAX);
        for (unsigned i = 0; i < changes; i++)
            change(index, random, ++revision);
        struct shared_root *built = shared_new(index_publish(index), revision);
        if (waiting) {
            struct shared_root *old = atomic_load_explicit(&published, memory_order_relaxed);
            /*
             * It is replaced by a state that is sealed, so the number of the one being built is a
             * safe bound.
             */
            epoch_retire(epoch, old, free_shared, NULL);
            atomic_store_explicit(&published, waiting, memory_order_release);
            epoch_publish_number(epoch, waiting->root.number);
        }
        assert_int_equal(epoch_seal(epoch), built->root.number);
        waiting = built;
        epoch_reclaim(epoch, (size_t)random_below(random, 200));
    }
    free(waiting);
}

static void readers_see_whole_states_while_the_writer_continues(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 7);
    epoch = epoch_new(READERS);
    struct index *index = index_new(epoch);
    index_limit_nodes(index, 8, 6);
    atomic_store(&published, shared_new(index_publish(index), 0));
    epoch_publish(epoch);

    pthread_t threads[READERS];
    for (uintptr_t i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reader, (void *)(i + 1)), 0);
    write_groups(index, &random);
    atomic_store(&done, true);
    for (size_t i = 0; i < READERS; i++)
        pthread_join(threads[i], NULL);

    epoch_publish(epoch);
    assert_int_equal(epoch_reclaim(epoch, SIZE_MAX), 0);
    index_check(index);
    free(atomic_load(&published));
    epoch_free(epoch);
    index_free(index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_see_whole_states_while_the_writer_continues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
