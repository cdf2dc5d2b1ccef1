/* The cases of client-go's queue, delaying queue and rate limiting queue, and more. */
#include "kubeclient/informer/work_queue.h"

#include "base/random.h"
#include "base/slice.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

struct bed {
    struct clock_sim clock;
    vigil_work_queue *queue;
};

static int setup(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    assert_non_null(bed);
    clock_sim_init(&bed->clock, 0);
    clock_sim_advance(&bed->clock, NS_PER_S);
    assert_int_equal(work_queue_new_with(&bed->clock.clock, NULL, &bed->queue), VIGIL_OK);
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    struct bed *bed = *state;
    work_queue_check(bed->queue);
    vigil_work_queue_free(bed->queue);
    free(bed);
    return 0;
}

static void add(struct bed *bed, const char *key)
{
    assert_int_equal(vigil_work_queue_add(bed->queue, vigil_text(key)), VIGIL_OK);
    work_queue_check(bed->queue);
}

static void done(struct bed *bed, const char *key)
{
    vigil_work_queue_done(bed->queue, vigil_text(key));
    work_queue_check(bed->queue);
}

static bool readable(struct bed *bed)
{
    struct pollfd fd = {.fd = vigil_work_queue_fd(bed->queue), .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

/* The key that is taken, "-" for none, "." after the end. */
static const char *take(struct bed *bed)
{
    static char text[64];
    vigil_bytes key;
    int code = vigil_work_queue_take(bed->queue, 0, &key);
    work_queue_check(bed->queue);
    if (code == VIGIL_ERROR_TIMEOUT)
        return "-";
    if (code == VIGIL_ERROR_CANCELED)
        return ".";
    assert_int_equal(code, VIGIL_OK);
    snprintf(text, sizeof(text), "%.*s", (int)key.size, (const char *)key.data);
    return text;
}

static void advance(struct bed *bed, int64_t ms)
{
    clock_sim_advance(&bed->clock, ms * NS_PER_MS);
}

/* -- The queue -- */

static void keys_come_in_order_and_once(void **state)
{
    struct bed *bed = *state;
    assert_false(readable(bed));
    add(bed, "a");
    add(bed, "b");
    add(bed, "a");
    assert_true(readable(bed));
    assert_int_equal(vigil_work_queue_length(bed->queue), 2);
    assert_string_equal(take(bed), "a");
    assert_string_equal(take(bed), "b");
    assert_false(readable(bed));
    assert_string_equal(take(bed), "-");
}

/* TestAddWhileProcessing, TestReinsert */
static void key_added_while_it_is_processed_comes_again_afterwards(void **state)
{
    struct bed *bed = *state;
    add(bed, "a");
    assert_string_equal(take(bed), "a");
    add(bed, "a");
    add(bed, "a");
    assert_string_equal(take(bed), "-"); /* no second worker gets it */
    done(bed, "a");
    assert_string_equal(take(bed), "a");
    done(bed, "a");
    assert_string_equal(take(bed), "-");
}

static void done_without_a_take_has_no_effect(void **state)
{
    struct bed *bed = *state;
    done(bed, "a");
    add(bed, "a");
    done(bed, "a");
    assert_string_equal(take(bed), "a");
}

/* TestAddWhileProcessing after the end; TestQueueDrainageUsingShutDownWithDrain */
static void after_the_end_only_the_queued_keys_come(void **state)
{
    struct bed *bed = *state;
    add(bed, "a");
    add(bed, "b");
    assert_string_equal(take(bed), "a");
    add(bed, "a");
    vigil_work_queue_shutdown(bed->queue);
    assert_int_equal(vigil_work_queue_add(bed->queue, vigil_text("c")), VIGIL_ERROR_CANCELED);
    assert_int_equal(vigil_work_queue_add_after(bed->queue, vigil_text("c"), 1),
                     VIGIL_ERROR_CANCELED);
    assert_int_equal(vigil_work_queue_add_later(bed->queue, vigil_text("c")), VIGIL_ERROR_CANCELED);
    assert_string_equal(take(bed), "b");
    done(bed, "a"); /* which was added before the end */
    assert_string_equal(take(bed), "a");
    assert_string_equal(take(bed), ".");
    assert_true(readable(bed));
}

/* -- Delays -- */

/* TestSimpleQueue of the delaying queue */
static void delayed_key_comes_at_its_time(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(vigil_work_queue_timeout_ms(bed->queue), -1);
    assert_int_equal(vigil_work_queue_add_after(bed->queue, vigil_text("a"), 50), VIGIL_OK);
    assert_string_equal(take(bed), "-");
    assert_in_range(vigil_work_queue_timeout_ms(bed->queue), 50, 51);
    advance(bed, 49);
    assert_string_equal(take(bed), "-");
    advance(bed, 1);
    assert_int_equal(vigil_work_queue_timeout_ms(bed->queue), -1); /* it is queued now */
    assert_true(readable(bed));
    assert_string_equal(take(bed), "a");
    done(bed, "a");
    advance(bed, 100000);
    assert_string_equal(take(bed), "-");
}

static void extreme_delays_are_possible(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(vigil_work_queue_add_after(bed->queue, vigil_text("a"), INT64_MIN), VIGIL_OK);
    assert_string_equal(take(bed), "a");
    done(bed, "a");
    assert_int_equal(vigil_work_queue_add_after(bed->queue, vigil_text("a"), INT64_MAX), VIGIL_OK);
    assert_string_equal(take(bed), "-");
}

/* TestDeduping */
static void earlier_time_counts(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(vigil_work_queue_add_after(bed->queue, vigil_text("a"), 50), VIGIL_OK);
    assert_int_equal(vigil_work_queue_add_after(bed->queue, vigil_text("a"), 70), VIGIL_OK);
    advance(bed, 60);
    assert_string_equal(take(bed), "a");
    done(bed, "a");
    advance(bed, 20);
    assert_string_equal(take(bed), "-");
    assert_int_equal(vigil_work_queue_add_after(bed->queue, vigil_text("a"), 50), VIGIL_OK);
    assert_int_equal(vigil_work_queue_add_after(bed->queue, vigil_text("a"), 30), VIGIL_OK);
    advance(bed, 40);
    assert_string_equal(take(bed), "a");
    done(bed, "a");
    advance(bed, 40);
    assert_string_equal(take(bed), "-");
}

/* TestAddTwoFireEarly, TestCopyShifting */
static void delayed_keys_come_in_the_order_of_their_times(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(vigil_work_queue_add_after(bed->queue, vigil_text("c"), 1000), VIGIL_OK);
    assert_int_equal(vigil_work_queue_add_after(bed->queue, vigil_text("b"), 500), VIGIL_OK);
    assert_int_equal(vigil_work_queue_add_after(bed->queue, vigil_text("a"), 250), VIGIL_OK);
    assert_int_equal(vigil_work_queue_add_after(bed->queue, vigil_text("now"), 0), VIGIL_OK);
    advance(bed, 2000);
    assert_string_equal(take(bed), "now");
    assert_string_equal(take(bed), "a");
    assert_string_equal(take(bed), "b");
    assert_string_equal(take(bed), "c");
}

static void delayed_keys_end_with_the_queue(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(vigil_work_queue_add_after(bed->queue, vigil_text("a"), 50), VIGIL_OK);
    vigil_work_queue_shutdown(bed->queue);
    advance(bed, 100);
    assert_string_equal(take(bed), ".");
}

/* -- Attempts -- */

static int64_t delay(struct bed *bed, const char *key)
{
    assert_int_equal(vigil_work_queue_add_later(bed->queue, vigil_text(key)), VIGIL_OK);
    work_queue_check(bed->queue);
    int ms = vigil_work_queue_timeout_ms(bed->queue) - 1;
    advance(bed, ms);
    assert_string_equal(take(bed), key);
    done(bed, key);
    return ms;
}

/* TestRateLimitingQueue */
static void each_attempt_waits_twice_as_long_until_it_is_forgotten(void **state)
{
    struct bed *bed = *state;
    int64_t expected = 5;
    for (int i = 0; i < 18; i++, expected *= 2)
        assert_int_equal(delay(bed, "a"), expected);
    assert_int_equal(delay(bed, "a"), 1000 * 1000);
    assert_int_equal(delay(bed, "a"), 1000 * 1000);
    assert_int_equal(vigil_work_queue_attempts(bed->queue, vigil_text("a")), 20);
    assert_int_equal(delay(bed, "b"), 5);
    vigil_work_queue_forget(bed->queue, vigil_text("a"));
    work_queue_check(bed->queue);
    assert_int_equal(vigil_work_queue_attempts(bed->queue, vigil_text("a")), 0);
    assert_int_equal(delay(bed, "a"), 5);
}

static void all_keys_together_have_a_rate(void **state)
{
    struct bed *bed = *state;
    char key[16];
    unsigned soon = 0;
    for (int i = 0; i < 150; i++) {
        snprintf(key, sizeof(key), "%d", i);
        assert_int_equal(vigil_work_queue_add_later(bed->queue, vigil_text(key)), VIGIL_OK);
    }
    advance(bed, 5);
    while (take(bed)[0] != '-')
        soon++;
    assert_int_equal(soon, 100);
    for (int second = 0; second < 5; second++) { /* ten per second */
        advance(bed, 1000);
        unsigned taken = 0;
        while (take(bed)[0] != '-')
            taken++;
        assert_in_range(taken, 9, 11);
    }
}

static void options_are_checked(void **state)
{
    (void)state;
    vigil_work_queue *queue;
    vigil_work_queue_options options;
    vigil_work_queue_options_init(&options);
    options.retry_min_ms = -1;
    assert_int_equal(vigil_work_queue_new(&options, &queue), VIGIL_ERROR_ARGUMENT);
    vigil_work_queue_options_init(&options);
    options.retry_max_ms = 1;
    assert_int_equal(vigil_work_queue_new(&options, &queue), VIGIL_ERROR_ARGUMENT);
    options = (vigil_work_queue_options){.retry_max_ms = 1}; /* without a size: not initialised */
    assert_int_equal(vigil_work_queue_new(&options, &queue), VIGIL_ERROR_ARGUMENT);
    vigil_work_queue_options_init(&options);
    options.size++; /* as in a later version, with fields that are not known */
    assert_int_equal(vigil_work_queue_new(&options, &queue), VIGIL_ERROR_ARGUMENT);
    vigil_work_queue_options_init(&options);
    options.size = offsetof(vigil_work_queue_options, burst); /* as in an earlier one */
    options.per_second = 1;
    assert_int_equal(vigil_work_queue_new(&options, &queue), VIGIL_OK);
    vigil_work_queue_free(queue);
    vigil_work_queue_free(NULL);
}

/* -- Threads -- */

enum { WORKERS = 8, KEYS = 50, ADDS = 4000 };

struct crowd {
    vigil_work_queue *queue;
    _Atomic int inside[KEYS];    /* workers that process the key now */
    _Atomic int added[KEYS];     /* so far, counted before the add */
    _Atomic int processed[KEYS]; /* the number of adds that the last take has seen */
};

static void *work(void *arg)
{
    struct crowd *crowd = arg;
    vigil_bytes key;
    while (vigil_work_queue_take(crowd->queue, -1, &key) == VIGIL_OK) {
        int number = (int)strtol(key.data, NULL, 10);
        assert(atomic_fetch_add(&crowd->inside[number], 1) == 0);
        atomic_store(&crowd->processed[number], atomic_load(&crowd->added[number]));
        assert(atomic_fetch_sub(&crowd->inside[number], 1) == 1);
        vigil_work_queue_done(crowd->queue, key);
    }
    return NULL;
}

static void *produce(void *arg)
{
    struct crowd *crowd = arg;
    struct random random;
    random_init(&random, (uint64_t)(uintptr_t)&random);
    for (int i = 0; i < ADDS; i++) {
        char key[8];
        int number = (int)random_below(&random, KEYS);
        int len = snprintf(key, sizeof(key), "%d", number) + 1; /* with its zero, for strtol */
        atomic_fetch_add(&crowd->added[number], 1);
        int code = vigil_work_queue_add_after(crowd->queue, vigil_bytes_of(key, (size_t)len),
                                              (int64_t)random_below(&random, 2));
        assert(code == VIGIL_OK);
    }
    return NULL;
}

/* No key is processed twice at the same time, and the last add of each is processed. */
static void workers_miss_nothing(void **state)
{
    (void)state;
    static struct crowd crowd;
    pthread_t workers[WORKERS], producers[2];
    assert_int_equal(vigil_work_queue_new(NULL, &crowd.queue), VIGIL_OK);
    for (int i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&workers[i], NULL, work, &crowd), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&producers[i], NULL, produce, &crowd), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(producers[i], NULL);
    while (vigil_work_queue_timeout_ms(crowd.queue) >= 0) /* keys wait for their millisecond */
        usleep(1000);
    vigil_work_queue_drain(crowd.queue);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    for (int i = 0; i < KEYS; i++)
        assert_int_equal(crowd.processed[i], crowd.added[i]);
    work_queue_check(crowd.queue);
    vigil_work_queue_free(crowd.queue);
}

static void *take_one(void *arg)
{
    vigil_bytes key;
    int code = vigil_work_queue_take(arg, -1, &key);
    assert(code == VIGIL_OK);
    usleep(200 * 1000);
    vigil_work_queue_done(arg, key);
    return NULL;
}

/* One of two waiting workers becomes busy; the other one must wake for the delayed key. */
static void a_delayed_key_wakes_a_free_worker(void **state)
{
    (void)state;
    vigil_work_queue *queue;
    pthread_t workers[2];
    assert_int_equal(vigil_work_queue_new(NULL, &queue), VIGIL_OK);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&workers[i], NULL, take_one, queue), 0);
    usleep(20 * 1000); /* both wait; without this the test only shows less */
    assert_int_equal(vigil_work_queue_add_after(queue, vigil_text("later"), 30), VIGIL_OK);
    assert_int_equal(vigil_work_queue_add(queue, vigil_text("now")), VIGIL_OK);
    for (int i = 0; i < 2; i++)
        pthread_join(workers[i], NULL);
    vigil_work_queue_free(queue);
}

static void take_waits_only_for_its_timeout(void **state)
{
    (void)state;
    vigil_work_queue *queue;
    vigil_bytes key;
    assert_int_equal(vigil_work_queue_new(NULL, &queue), VIGIL_OK);
    assert_int_equal(vigil_work_queue_take(queue, 10, &key), VIGIL_ERROR_TIMEOUT);
    vigil_work_queue_free(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys_come_in_order_and_once, setup, teardown),
        cmocka_unit_test_setup_teardown(key_added_while_it_is_processed_comes_again_afterwards,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(done_without_a_take_has_no_effect, setup, teardown),
        cmocka_unit_test_setup_teardown(after_the_end_only_the_queued_keys_come, setup, teardown),
        cmocka_unit_test_setup_teardown(delayed_key_comes_at_its_time, setup, teardown),
        cmocka_unit_test_setup_teardown(extreme_delays_are_possible, setup, teardown),
        cmocka_unit_test_setup_teardown(earlier_time_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(delayed_keys_come_in_the_order_of_their_times, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(delayed_keys_end_with_the_queue, setup, teardown),
        cmocka_unit_test_setup_teardown(each_attempt_waits_twice_as_long_until_it_is_forgotten,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(all_keys_together_have_a_rate, setup, teardown),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(workers_miss_nothing),
        cmocka_unit_test(a_delayed_key_wakes_a_free_worker),
        cmocka_unit_test(take_waits_only_for_its_timeout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
