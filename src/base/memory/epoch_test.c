#include "base/memory/epoch.h"

#include "base/random.h"
#include "base/xalloc.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Freed objects, in order. */
struct freed {
    int values[8];
    size_t count;
};

static void note_free(void *ctx, void *object)
{
    struct freed *freed = ctx;
    freed->values[freed->count++] = *(int *)object;
}

static void an_object_waits_until_its_state_is_replaced(void **state)
{
    (void)state;
    AUTO(epoch_freep) struct epoch *epoch = epoch_new(1);
    struct freed freed = {0};
    int one = 1;
    epoch_publish(epoch);

    epoch_retire(epoch, &one, note_free, &freed);
    assert_int_equal(epoch_reclaim(epoch, 10), 1);
    epoch_publish(epoch);
    assert_int_equal(epoch_reclaim(epoch, 10), 0);
    assert_int_equal(freed.count, 1);
}

static void pin_keeps_the_objects_of_its_state(void **state)
{
    (void)state;
    AUTO(epoch_freep) struct epoch *epoch = epoch_new(2);
    struct epoch_slot *slot = epoch_slot_add(epoch);
    struct freed freed = {0};
    int one = 1, two = 2;
    epoch_publish(epoch);

    uint64_t pinned = epoch_pin(slot);
    epoch_retire(epoch, &one, note_free, &freed);
    epoch_publish(epoch);
    epoch_retire(epoch, &two, note_free, &freed);
    epoch_publish(epoch);
    assert_int_equal(epoch_oldest(epoch), pinned);
    assert_int_equal(epoch_reclaim(epoch, 10), 2);

    epoch_unpin(slot, pinned);
    assert_int_equal(epoch_reclaim(epoch, 10), 0);
    assert_int_equal(freed.count, 2);
}

static void pins_end_in_any_order(void **state)
{
    (void)state;
    AUTO(epoch_freep) struct epoch *epoch = epoch_new(1);
    struct epoch_slot *slot = epoch_slot_add(epoch);
    uint64_t pins[5];
    for (size_t i = 0; i < COUNT_OF(pins); i++) {
        epoch_publish(epoch);
        pins[i] = epoch_pin(slot);
        assert_int_equal(epoch_pin(slot), pins[i]);
        epoch_unpin(slot, pins[i]);
    }
    assert_int_equal(epoch_oldest(epoch), pins[0]);
    epoch_unpin(slot, pins[1]);
    epoch_unpin(slot, pins[3]);
    assert_int_equal(epoch_oldest(epoch), pins[0]);
    epoch_unpin(slot, pins[0]);
    assert_int_equal(epoch_oldest(epoch), pins[2]);
    epoch_unpin(slot, pins[4]);
    epoch_unpin(slot, pins[2]);
    epoch_publish(epoch);
    assert_int_equal(epoch_oldest(epoch), pins[4] + 1);
}

static void many_pins_are_counted_by_number(void **state)
{
    (void)state;
    enum { PINS = 200 };
    AUTO(epoch_freep) struct epoch *epoch = epoch_new(1);
    struct epoch_slot *slot = epoch_slot_add(epoch);
    struct random random;
    random_init(&random, 11);
    uint64_t pins[PINS] = {0};
    for (unsigned step = 0; step < 20000; step++) {
        size_t at = (size_t)random_below(&random, PINS);
        if (pins[at])
            epoch_unpin(slot, pins[at]);
        if (random_chance(&random, 1, 3))
            epoch_publish(epoch);
        pins[at] = random_chance(&random, step < 15000 ? 1 : 0, 2) ? epoch_pin(slot) : 0;
        uint64_t oldest = epoch_next(epoch) - 1;
        for (size_t i = 0; i < PINS; i++)
            if (pins[i] && pins[i] < oldest)
                oldest = pins[i];
        assert_int_equal(epoch_oldest(epoch), oldest);
    }
    for (size_t i = 0; i < PINS; i++)
        if (pins[i])
            epoch_unpin(slot, pins[i]);
}

static void a_slot_that_is_added_later_is_respected(void **state)
{
    (void)state;
    AUTO(epoch_freep) struct epoch *epoch = epoch_new(3);
    struct freed freed = {0};
    int one = 1;
    (void)epoch_slot_add(epoch);
    epoch_publish(epoch);
    assert_int_equal(epoch_reclaim(epoch, 10), 0);
    struct epoch_slot *late = epoch_slot_add(epoch);
    uint64_t pinned = epoch_pin(late);
    epoch_retire(epoch, &one, note_free, &freed);
    epoch_publish(epoch);
    assert_int_equal(epoch_oldest(epoch), pinned);
    assert_int_equal(epoch_reclaim(epoch, 10), 1);
    epoch_unpin(late, pinned);
    assert_int_equal(epoch_reclaim(epoch, 10), 0);
}

static void a_sealed_state_is_not_pinned_before_it_is_published(void **state)
{
    (void)state;
    AUTO(epoch_freep) struct epoch *epoch = epoch_new(1);
    struct epoch_slot *slot = epoch_slot_add(epoch);
    struct freed freed = {0};
    int one = 1;
    epoch_publish(epoch);
    uint64_t sealed = epoch_seal(epoch);
    /* Visible in the sealed state, missing from the next. */
    epoch_retire(epoch, &one, note_free, &freed);
    uint64_t next = epoch_seal(epoch);

    assert_true(epoch_pin(slot) < sealed);
    epoch_publish_number(epoch, sealed);
    epoch_unpin(slot, sealed - 1);
    assert_int_equal(epoch_reclaim(epoch, 10), 1);
    epoch_publish_number(epoch, next);
    assert_int_equal(epoch_reclaim(epoch, 10), 0);
}

static void reclaim_stops_at_its_limit(void **state)
{
    (void)state;
    enum { OBJECTS = 1000 };
    AUTO(epoch_freep) struct epoch *epoch = epoch_new(1);
    static int objects[OBJECTS];
    struct freed freed = {0};
    for (int i = 0; i < OBJECTS; i++)
        epoch_retire(epoch, &objects[i], note_free, &freed);
    epoch_publish(epoch);

    for (size_t left = OBJECTS; left > 0; left -= 8) {
        freed.count = 0;
        assert_int_equal(epoch_reclaim(epoch, 8), left - 8);
        assert_int_equal(freed.count, 8);
    }
}

static void freeing_the_epoch_frees_what_waits(void **state)
{
    (void)state;
    struct epoch *epoch = epoch_new(0);
    struct freed freed = {0};
    int one = 1, two = 2;
    epoch_retire(epoch, &one, note_free, &freed);
    epoch_publish(epoch);
    epoch_retire(epoch, &two, note_free, &freed);
    epoch_free(epoch);

    assert_int_equal(freed.count, 2);
    assert_int_equal(freed.values[0], 1);
    assert_int_equal(freed.values[1], 2);
}

/* -- Threads: a value behind one pointer that is poisoned when freed -- */

static struct epoch *shared_epoch;
static _Atomic(uint64_t *) shared_value;
static atomic_bool done;

static void *read_values(void *arg)
{
    (void)arg;
    struct epoch_slot *slot = epoch_slot_add(shared_epoch);
    uint64_t last = 0;
    while (!atomic_load_explicit(&done, memory_order_relaxed)) {
        uint64_t pinned = epoch_pin(slot);
        uint64_t value = *atomic_load_explicit(&shared_value, memory_order_acquire);
        assert_true(value >= pinned);
        assert_true(value >= last);
        last = value;
        epoch_unpin(slot, pinned);
    }
    return NULL;
}

static void free_value(void *ctx, void *object)
{
    (void)ctx;
    *(uint64_t *)object = 0;
    free(object);
}

static void readers_never_see_a_freed_object(void **state)
{
    (void)state;
    pthread_t threads[3];
    shared_epoch = epoch_new(COUNT_OF(threads));
    uint64_t *first = xmalloc(sizeof(*first));
    *first = 1;
    atomic_store(&shared_value, first);
    epoch_publish(shared_epoch);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_values, NULL), 0);
    for (unsigned i = 0; i < 30000; i++) {
        uint64_t *next = xmalloc(sizeof(*next));
        *next = epoch_next(shared_epoch);
        uint64_t *old = atomic_exchange_explicit(&shared_value, next, memory_order_acq_rel);
        epoch_retire(shared_epoch, old, free_value, NULL);
        epoch_publish(shared_epoch);
        epoch_reclaim(shared_epoch, 4);
    }
    atomic_store(&done, true);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    epoch_free(shared_epoch);
    free(atomic_load(&shared_value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_waits_until_its_state_is_replaced),
        cmocka_unit_test(pin_keeps_the_objects_of_its_state),
        cmocka_unit_test(pins_end_in_any_order),
        cmocka_unit_test(many_pins_are_counted_by_number),
        cmocka_unit_test(a_slot_that_is_added_later_is_respected),
        cmocka_unit_test(a_sealed_state_is_not_pinned_before_it_is_published),
        cmocka_unit_test(reclaim_stops_at_its_limit),
        cmocka_unit_test(freeing_the_epoch_frees_what_waits),
        cmocka_unit_test(readers_never_see_a_freed_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
