#include "kubeclient/informer/change_queue.h"

#include "base/clock.h"
#include "base/failing_memory_test.h"
#include "base/random.h"
#include "kubeclient/data/objects_test.h"

#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Joins changes as for a consumer that is very slow. */
static void init_slow(struct change_queue *queue)
{
    assert_int_equal(change_queue_init(queue, 1, true), ST_OK);
    queue->join_count = 0;
}

/* 0: there is no such object. */
static void add(struct change_queue *queue, const char *name, int old, int now)
{
    struct vigil_kube_object *before = old ? test_object(name, old) : NULL;
    struct vigil_kube_object *after = now ? test_object(name, now) : NULL;
    struct cache_change change = {.kind = !old  ? CACHE_ADDED
                                          : now ? CACHE_UPDATED
                                                : CACHE_REMOVED,
                                  .old = before,
                                  .before = before,
                                  .now = after};
    assert_int_equal(change_queue_reserve(queue), ST_OK);
    change_queue_add(queue, &change);
    change_queue_publish(queue);
    vigil_kube_object_unref(before);
    vigil_kube_object_unref(after);
    change_queue_check(queue);
}

/* "+a >2", "~a 1>2", "-a 2>3" for a deletion whose last state is 3, or "" if nothing waits. */
static const char *take(struct change_queue *queue)
{
    static char text[64];
    struct queued_change change;
    if (change_queue_take(queue, 0, &change) != ST_OK)
        return "";
    change_queue_check(queue);
    struct slice none = SLICE_EMPTY;
    struct slice before = change.before ? object_version(change.before) : none;
    snprintf(text, sizeof(text), "%c%.*s %.*s>%.*s%s", "+~-"[change.kind],
             SLICE_ARGS(object_key(change.object)), SLICE_ARGS(before),
             SLICE_ARGS(object_version(change.object)), change.resync ? " again" : "");
    queued_change_fini(&change);
    return text;
}

static bool readable(const struct change_queue *queue)
{
    struct pollfd fd = {.fd = queue->readable.fd, .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

static void changes_are_joined_only_if_many_wait(void **state)
{
    (void)state;
    struct change_queue l;
    assert_int_equal(change_queue_init(&l, 1, true), ST_OK);
    for (int i = 1; i <= 3 * CHANGES_UNJOINED_MAX; i++)
        add(&l, i % 2 ? "a" : "b", i > 2 ? i - 2 : 0, i);
    assert_int_equal(change_queue_count(&l), CHANGES_UNJOINED_MAX + 2);
    for (int i = 0; i < CHANGES_UNJOINED_MAX; i++) { /* now there is room again */
        char expected[64], before[16] = "";
        if (i >= 2)
            snprintf(before, sizeof(before), "%d", i - 1);
        snprintf(expected, sizeof(expected), "%c%c %s>%d", i < 2 ? '+' : '~', "ab"[i % 2], before,
                 i + 1);
        assert_string_equal(take(&l), expected);
    }
    add(&l, "a", 3 * CHANGES_UNJOINED_MAX - 1, 4000); /* waits behind the one that was joined */
    add(&l, "a", 4000, 4001);
    l.join_count = 0;
    add(&l, "a", 4001, 4002);
    add(&l, "a", 4002, 4003);
    assert_string_equal(take(&l), "~a 1023>3071");
    assert_string_equal(take(&l), "~b 1024>3072");
    assert_string_equal(take(&l), "~a 3071>4000");
    assert_string_equal(take(&l), "~a 4000>4001");
    assert_string_equal(take(&l), "~a 4001>4003");
    assert_string_equal(take(&l), "");
    change_queue_fini(&l);
}

static void large_objects_are_joined_earlier(void **state)
{
    (void)state;
    struct change_queue l;
    struct vigil_kube_object *large;
    size_t bytes = 1 << 20;
    char *json = malloc(bytes);
    assert_non_null(json);
    memset(json, ' ', bytes);
    memcpy(json, "{\"metadata\":{\"name\":\"a\"}}", 26);
    assert_int_equal(object_new(slice_of(json, bytes), &large), ST_OK);
    struct cache_change change = {
        .kind = CACHE_UPDATED, .old = large, .before = large, .now = large};
    assert_int_equal(change_queue_init(&l, 1, true), ST_OK);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(change_queue_reserve(&l), ST_OK);
        change_queue_add(&l, &change);
        change_queue_publish(&l);
        change_queue_check(&l);
    }
    assert_int_equal(change_queue_count(&l), CHANGES_UNJOINED_BYTES_MAX / bytes + 1);
    vigil_kube_object_unref(large);
    change_queue_fini(&l);
    free(json);
}

static void consumer_that_keeps_up_gets_every_change(void **state)
{
    (void)state;
    struct change_queue l;
    init_slow(&l);
    assert_false(readable(&l));
    add(&l, "a", 0, 1);
    assert_true(readable(&l));
    assert_string_equal(take(&l), "+a >1");
    assert_false(readable(&l));
    add(&l, "a", 1, 2);
    assert_string_equal(take(&l), "~a 1>2");
    add(&l, "a", 2, 0);
    assert_string_equal(take(&l), "-a 2>2");
    assert_string_equal(take(&l), "");
    change_queue_fini(&l);
}

static void changes_of_one_object_are_joined(void **state)
{
    (void)state;
    struct change_queue l;
    init_slow(&l);
    add(&l, "a", 0, 1);
    add(&l, "b", 5, 6);
    add(&l, "a", 1, 2);
    add(&l, "a", 2, 3);
    add(&l, "b", 6, 7);
    assert_int_equal(change_queue_count(&l), 2);
    assert_string_equal(take(&l), "+a >3");
    assert_string_equal(take(&l), "~b 5>7");
    add(&l, "c", 0, 8);
    add(&l, "c", 8, 0);
    assert_string_equal(take(&l), ""); /* it was never seen */
    add(&l, "b", 7, 9);
    add(&l, "b", 9, 0);
    assert_string_equal(take(&l), "-b 7>9");
    add(&l, "a", 3, 0);
    add(&l, "a", 0, 10);
    assert_string_equal(take(&l), "~a 3>10");
    add(&l, "a", 10, 11);
    add(&l, "a", 11, 0);
    add(&l, "a", 0, 12);
    assert_string_equal(take(&l), "~a 10>12"); /* from what was seen */
    change_queue_fini(&l);
}

static void forward(void *ctx, const struct cache_change *change)
{
    assert_int_equal(change_queue_reserve(ctx), ST_OK);
    change_queue_add(ctx, change);
    change_queue_publish(ctx);
}

static void put(struct cache *cache, const char *name, int version)
{
    struct vigil_kube_object *made = test_object(name, version);
    assert_int_equal(cache_put(cache, made), ST_OK);
    vigil_kube_object_unref(made);
}

/* The event of a deletion has a state that was not reported before. */
static void object_that_is_made_again_changes_from_what_was_seen(void **state)
{
    (void)state;
    struct change_queue l;
    struct cache cache;
    struct vigil_kube_object *last = test_object("a", 2);
    init_slow(&l);
    cache_init(&cache, 1, forward, &l);
    put(&cache, "a", 1);
    assert_string_equal(take(&l), "+a >1");
    assert_int_equal(cache_remove(&cache, last), ST_OK);
    put(&cache, "a", 3);
    assert_string_equal(take(&l), "~a 1>3");
    vigil_kube_object_unref(last);
    cache_fini(&cache);
    change_queue_fini(&l);
}

static void object_of_a_list_stays_one_when_it_changes(void **state)
{
    (void)state;
    struct change_queue l;
    struct cache cache;
    struct queued_change change;
    init_slow(&l);
    cache_init(&cache, 1, forward, &l);
    cache_begin_list(&cache, true);
    put(&cache, "a", 1);
    assert_int_equal(cache_end_list(&cache), ST_OK);
    put(&cache, "a", 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(change_queue_take(&l, 0, &change), ST_OK);
        assert_int_equal(change.in_list, i == 0);
        queued_change_fini(&change);
        put(&cache, "a", 3);
    }
    cache_fini(&cache);
    change_queue_fini(&l);
}

static void end_drops_what_waits(void **state)
{
    (void)state;
    struct change_queue l;
    struct queued_change change;
    init_slow(&l);
    add(&l, "a", 0, 1);
    change_queue_end(&l);
    change_queue_check(&l);
    assert_int_equal(change_queue_take(&l, CLOCK_NEVER, &change), ST_CLOSED);
    assert_true(readable(&l));
    add(&l, "b", 0, 1); /* no effect */
    assert_int_equal(change_queue_count(&l), 0);
    change_queue_fini(&l);
}

static void only_reserving_needs_memory(void **state)
{
    (void)state;
    struct change_queue l;
    assert_int_equal(change_queue_init(&l, 1, false), ST_OK);
    l.join_count = 0;
    memory_fail_at = 1;
    assert_int_equal(change_queue_reserve(&l), ST_NOMEM);
    memory_fail_at = 0;
    assert_int_equal(change_queue_count(&l), 0);
    for (int i = 1; i <= 3; i++) {       /* there is never memory for the map: nothing is joined */
        memory_fail_at = i == 1 ? 3 : 4; /* after the test's objects and the reservation */
        memory_fail_on = true;
        add(&l, "a", i - 1, i);
        memory_fail_at = 0;
    }
    memory_fail_on = false;
    add(&l, "a", 3, 4);
    add(&l, "a", 4, 5);
    assert_int_equal(change_queue_count(&l), 4);
    assert_string_equal(take(&l), "+a >1");
    assert_string_equal(take(&l), "~a 1>2");
    assert_string_equal(take(&l), "~a 2>3");
    assert_string_equal(take(&l), "~a 3>5");
    assert_string_equal(take(&l), "");
    change_queue_fini(&l);
}

static void resync(struct change_queue *queue, const char *name, int version)
{
    struct vigil_kube_object *object = test_object(name, version);
    assert_int_equal(change_queue_reserve(queue), ST_OK);
    change_queue_resync(queue, object);
    change_queue_publish(queue);
    vigil_kube_object_unref(object);
    change_queue_check(queue);
}

static void resync_yields_to_changes(void **state)
{
    (void)state;
    struct change_queue l;
    init_slow(&l);
    resync(&l, "a", 1);
    resync(&l, "a", 1);
    assert_string_equal(take(&l), "~a 1>1 again");
    assert_string_equal(take(&l), "");
    add(&l, "a", 1, 2);
    resync(&l, "a", 2);
    assert_string_equal(take(&l), "~a 1>2");
    resync(&l, "a", 2);
    add(&l, "a", 2, 3);
    assert_string_equal(take(&l), "~a 2>3");
    resync(&l, "a", 3);
    add(&l, "a", 3, 0);
    assert_string_equal(take(&l), "-a 3>3");
    assert_string_equal(take(&l), "");
    change_queue_fini(&l);
}

static void state_is_complete_when_its_last_change_is_finished(void **state)
{
    (void)state;
    struct change_queue l;
    init_slow(&l);
    add(&l, "a", 0, 1);
    add(&l, "b", 0, 1);
    assert_false(change_queue_has_state(&l));
    change_queue_mark_state(&l);
    add(&l, "a", 1, 2);
    add(&l, "c", 0, 3);
    assert_false(change_queue_has_state(&l));
    assert_string_equal(take(&l), "+a >2");
    change_queue_finish(&l);
    assert_false(change_queue_has_state(&l));
    assert_string_equal(take(&l), "+b >1");
    assert_false(change_queue_has_state(&l));
    change_queue_finish(&l);
    assert_true(change_queue_has_state(&l));
    change_queue_mark_state(&l); /* has no effect any more */
    assert_true(change_queue_has_state(&l));
    change_queue_fini(&l);
}

static void state_without_objects_is_complete_at_once(void **state)
{
    (void)state;
    struct change_queue l;
    init_slow(&l);
    add(&l, "a", 0, 1);
    change_queue_mark_state(&l);
    assert_false(change_queue_has_state(&l));
    add(&l, "a", 1, 0); /* the consumer has not seen it */
    assert_true(change_queue_has_state(&l));
    change_queue_fini(&l);
}

/* -- A consumer on another thread that takes whenever it likes -- */

enum { NAMES = 10, CHANGES = 20000 };

struct consumer {
    struct change_queue queue;
    int known[NAMES]; /* the version that the consumer knows; 0: none */
};

static void *consume(void *arg)
{
    struct consumer *c = arg;
    struct queued_change change;
    while (change_queue_take(&c->queue, CLOCK_NEVER, &change) == ST_OK) {
        int name = test_number(object_key(change.object));
        int before = change.before ? test_number(object_version(change.before)) : 0;
        bool removed = change.kind == CACHE_REMOVED;
        int now = removed ? 0 : test_number(object_version(change.object));
        assert(c->known[name] == before);
        assert(!removed || before);
        c->known[name] = now;
        queued_change_fini(&change);
    }
    return NULL;
}

static void every_old_state_is_the_one_seen_before(void **state)
{
    (void)state;
    static struct consumer c;
    int versions[NAMES] = {0};
    struct random random;
    pthread_t thread;
    random_init(&random, 3);
    init_slow(&c.queue);
    assert_int_equal(pthread_create(&thread, NULL, consume, &c), 0);
    for (int i = 1; i <= CHANGES; i++) {
        char name[8];
        int at = (int)random_below(&random, NAMES);
        int now = versions[at] && random_chance(&random, 1, 3) ? 0 : i;
        snprintf(name, sizeof(name), "%d", at % 1000);
        add(&c.queue, name, versions[at], now);
        versions[at] = now;
        assert_true(change_queue_count(&c.queue) <= NAMES);
    }
    while (change_queue_count(&c.queue) > 0)
        sched_yield();
    change_queue_end(&c.queue);
    pthread_join(thread, NULL);
    assert_memory_equal(c.known, versions, sizeof(versions));
    change_queue_fini(&c.queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(consumer_that_keeps_up_gets_every_change),
        cmocka_unit_test(changes_are_joined_only_if_many_wait),
        cmocka_unit_test(large_objects_are_joined_earlier),
        cmocka_unit_test(changes_of_one_object_are_joined),
        cmocka_unit_test(object_that_is_made_again_changes_from_what_was_seen),
        cmocka_unit_test(object_of_a_list_stays_one_when_it_changes),
        cmocka_unit_test(end_drops_what_waits),
        cmocka_unit_test(only_reserving_needs_memory),
        cmocka_unit_test(resync_yields_to_changes),
        cmocka_unit_test(state_is_complete_when_its_last_change_is_finished),
        cmocka_unit_test(state_without_objects_is_complete_at_once),
        cmocka_unit_test(every_old_state_is_the_one_seen_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
