#include "kube/call/write_queue.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { TICKETS_MAX = KUBE_WRITE_QUEUE_WAITING_MAX + 2 };

struct fixture {
    struct clock_sim clock;
    struct loop *loop;
    struct kube_write_queue queue;
    struct kube_write_ticket tickets[TICKETS_MAX];
    size_t begun[TICKETS_MAX]; /* numbers of tickets, in the order in which they began */
    size_t count;
};

static struct fixture *f;

static void on_begin(struct kube_write_ticket *ticket)
{
    f->begun[f->count++] = (size_t)(ticket - f->tickets);
}

static enum kube_write_place enter(size_t i, const char *key)
{
    f->tickets[i] = (struct kube_write_ticket){.key = slice_from_text(key), .begin = on_begin};
    enum kube_write_place entry = kube_write_queue_enter(&f->queue, &f->tickets[i]);
    kube_write_queue_check(&f->queue);
    return entry;
}

static void leave(size_t i)
{
    kube_write_queue_leave(&f->tickets[i]);
    kube_write_queue_check(&f->queue);
}

static void run(void)
{
    do {
        loop_turn(f->loop, 0);
    } while (loop_next_ns(f->loop) <= f->clock.mono_ns);
}

static int setup(void **state)
{
    (void)state;
    f = calloc(1, sizeof(*f));
    clock_sim_init(&f->clock, 0);
    assert_int_equal(loop_new(&f->clock.clock, &f->loop), ST_OK);
    kube_write_queue_init(&f->queue, f->loop, 7);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kube_write_queue_fini(&f->queue);
    loop_free(f->loop);
    free(f);
    return 0;
}

static void one_key_is_changed_by_one_at_a_time(void **state)
{
    (void)state;
    assert_int_equal(enter(0, "a"), KUBE_WRITE_QUEUE_FIRST);
    for (size_t i = 1; i < 5; i++)
        assert_int_equal(enter(i, "a"), KUBE_WRITE_QUEUE_WAITS);
    assert_int_equal(enter(5, "b"), KUBE_WRITE_QUEUE_FIRST); /* another key */
    leave(5);
    run();
    assert_int_equal(f->count, 0);
    for (size_t i = 0; i < 4; i++) {
        leave(i);
        assert_int_equal(f->count, i); /* from the loop, not from the ticket that left */
        run();
        assert_int_equal(f->count, i + 1);
        assert_int_equal(f->begun[i], i + 1);
    }
    leave(4);
    leave(4); /* harmless */
    assert_int_equal(enter(0, "a"), KUBE_WRITE_QUEUE_FIRST);
    leave(0);
}

/* A ticket that leaves, waiting, ready or under way, does not block those behind it. */
static void a_ticket_that_leaves_is_skipped(void **state)
{
    (void)state;
    for (size_t i = 0; i < 6; i++)
        (void)enter(i, "a");
    leave(2); /* waiting */
    leave(0); /* under way: 1 is about to begin */
    leave(1); /* … and leaves: 3 is */
    run();
    assert_int_equal(f->count, 1);
    assert_int_equal(f->begun[0], 3);
    leave(5); /* the last one */
    leave(3);
    run();
    assert_int_equal(f->count, 2);
    assert_int_equal(f->begun[1], 4);
    leave(4);
}

static void queue_of_one_key_is_limited(void **state)
{
    (void)state;
    assert_int_equal(enter(0, "a"), KUBE_WRITE_QUEUE_FIRST);
    for (size_t i = 1; i <= KUBE_WRITE_QUEUE_WAITING_MAX; i++)
        assert_int_equal(enter(i, "a"), KUBE_WRITE_QUEUE_WAITS);
    assert_int_equal(enter(TICKETS_MAX - 1, "a"), KUBE_WRITE_QUEUE_REFUSED);
    leave(TICKETS_MAX - 1); /* it is not queued */
    leave(7);
    assert_int_equal(enter(7, "a"), KUBE_WRITE_QUEUE_WAITS);
    for (size_t i = 0; i <= KUBE_WRITE_QUEUE_WAITING_MAX; i++)
        leave(i);
    run();
    assert_int_equal(f->count, 0);
}

/* Many keys at once: a few begin in each turn of the loop. */
static void many_keys_share_the_loop(void **state)
{
    (void)state;
    enum { KEYS = 100 };
    char keys[KEYS][8];
    for (size_t i = 0; i < KEYS; i++) {
        snprintf(keys[i], sizeof(keys[i]), "k%zu", i);
        assert_int_equal(enter(i, keys[i]), KUBE_WRITE_QUEUE_FIRST);
        assert_int_equal(enter(KEYS + i, keys[i]), KUBE_WRITE_QUEUE_WAITS);
    }
    for (size_t i = 0; i < KEYS; i++)
        leave(i);
    loop_turn(f->loop, 0);
    assert_in_range(f->count, 1, KEYS / 2);
    run();
    assert_int_equal(f->count, KEYS);
    for (size_t i = 0; i < KEYS; i++)
        leave(KEYS + i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_key_is_changed_by_one_at_a_time, setup, teardown),
        cmocka_unit_test_setup_teardown(a_ticket_that_leaves_is_skipped, setup, teardown),
        cmocka_unit_test_setup_teardown(queue_of_one_key_is_limited, setup, teardown),
        cmocka_unit_test_setup_teardown(many_keys_share_the_loop, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
