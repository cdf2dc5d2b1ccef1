#include "kubeclient/informer/listener.h"

#include "base/clock.h"
#include "base/failing_memory_test.h"
#include "base/random.h"
#include "kubeclient/data/objects_test.h"

#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* 0: there is no such object. */
static void add(struct listener *listener, const char *name, int old, int now)
{
    struct vigil_kube_object *before = old ? test_object(name, old) : NULL;
    struct vigil_kube_object *after = now ? test_object(name, now) : NULL;
    struct cache_change change = {.kind = !old  ? CACHE_ADDED
                                          : now ? CACHE_UPDATED
                                                : CACHE_REMOVED,
                                  .old = before,
                                  .before = before,
                                  .now = after};
    assert_int_equal(listener_add(listener, &change), ST_OK);
    vigil_kube_object_unref(before);
    vigil_kube_object_unref(after);
    listener_check(listener);
}

/* "+a 2", "~a 1>2", "-a 1", or "" if nothing waits. */
static const char *take(struct listener *listener)
{
    static char text[64];
    struct listener_change change;
    if (listener_take(listener, 0, &change) != ST_OK)
        return "";
    listener_check(listener);
    struct slice none = SLICE_EMPTY;
    struct slice old = change.old ? object_version(change.old) : none;
    struct slice now = change.now ? object_version(change.now) : none;
    snprintf(text, sizeof(text), "%c%.*s %.*s>%.*s", "+~-"[change.kind],
             SLICE_ARGS(object_key(change.now ? change.now : change.old)), SLICE_ARGS(old),
             SLICE_ARGS(now));
    listener_change_fini(&change);
    return text;
}

static bool readable(const struct listener *listener)
{
    struct pollfd fd = {.fd = listener->readable.fd, .events = POLLIN};
    return poll(&fd, 1, 0) == 1;
}

static void consumer_that_keeps_up_gets_every_change(void **state)
{
    (void)state;
    struct listener l;
    assert_int_equal(listener_init(&l, 1), ST_OK);
    assert_false(readable(&l));
    add(&l, "a", 0, 1);
    assert_true(readable(&l));
    assert_string_equal(take(&l), "+a >1");
    assert_false(readable(&l));
    add(&l, "a", 1, 2);
    assert_string_equal(take(&l), "~a 1>2");
    add(&l, "a", 2, 0);
    assert_string_equal(take(&l), "-a 2>");
    assert_string_equal(take(&l), "");
    listener_fini(&l);
}

static void changes_of_one_object_are_joined(void **state)
{
    (void)state;
    struct listener l;
    assert_int_equal(listener_init(&l, 1), ST_OK);
    add(&l, "a", 0, 1);
    add(&l, "b", 5, 6);
    add(&l, "a", 1, 2);
    add(&l, "a", 2, 3);
    add(&l, "b", 6, 7);
    assert_int_equal(listener_count(&l), 2);
    assert_string_equal(take(&l), "+a >3");
    assert_string_equal(take(&l), "~b 5>7");
    add(&l, "c", 0, 8);
    add(&l, "c", 8, 0);
    assert_string_equal(take(&l), ""); /* it was never seen */
    add(&l, "b", 7, 9);
    add(&l, "b", 9, 0);
    assert_string_equal(take(&l), "-b 9>");
    add(&l, "a", 3, 0);
    add(&l, "a", 0, 10);
    assert_string_equal(take(&l), "~a 3>10");
    add(&l, "a", 10, 11);
    add(&l, "a", 11, 0);
    add(&l, "a", 0, 12);
    assert_string_equal(take(&l), "~a 10>12"); /* from what was seen */
    listener_fini(&l);
}

static void forward(void *ctx, const struct cache_change *change)
{
    assert_int_equal(listener_add(ctx, change), ST_OK);
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
    struct listener l;
    struct cache cache;
    struct vigil_kube_object *last = test_object("a", 2);
    assert_int_equal(listener_init(&l, 1), ST_OK);
    cache_init(&cache, 1, forward, &l);
    put(&cache, "a", 1);
    assert_string_equal(take(&l), "+a >1");
    cache_remove(&cache, last);
    put(&cache, "a", 3);
    assert_string_equal(take(&l), "~a 1>3");
    vigil_kube_object_unref(last);
    cache_fini(&cache);
    listener_fini(&l);
}

static void object_of_a_list_stays_one_when_it_changes(void **state)
{
    (void)state;
    struct listener l;
    struct cache cache;
    struct listener_change change;
    assert_int_equal(listener_init(&l, 1), ST_OK);
    cache_init(&cache, 1, forward, &l);
    cache_begin_list(&cache, true);
    put(&cache, "a", 1);
    cache_end_list(&cache);
    put(&cache, "a", 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(listener_take(&l, 0, &change), ST_OK);
        assert_int_equal(change.in_list, i == 0);
        listener_change_fini(&change);
        put(&cache, "a", 3);
    }
    cache_fini(&cache);
    listener_fini(&l);
}

static void end_drops_what_waits(void **state)
{
    (void)state;
    struct listener l;
    struct listener_change change;
    assert_int_equal(listener_init(&l, 1), ST_OK);
    add(&l, "a", 0, 1);
    listener_end(&l);
    listener_check(&l);
    assert_int_equal(listener_take(&l, CLOCK_NEVER, &change), ST_CLOSED);
    assert_true(readable(&l));
    add(&l, "b", 0, 1); /* no effect */
    assert_int_equal(listener_count(&l), 0);
    listener_fini(&l);
}

static void missing_memory_loses_the_change_and_says_so(void **state)
{
    (void)state;
    struct listener l;
    struct vigil_kube_object *now = test_object("a", 1);
    struct cache_change change = {.kind = CACHE_ADDED, .now = now};
    assert_int_equal(listener_init(&l, 1), ST_OK);
    memory_fail_at = 1;
    assert_int_equal(listener_add(&l, &change), ST_NOMEM);
    memory_fail_at = 2;
    assert_int_equal(listener_add(&l, &change), ST_NOMEM);
    memory_fail_at = 0;
    listener_check(&l);
    assert_int_equal(listener_count(&l), 0);
    assert_int_equal(listener_add(&l, &change), ST_OK);
    vigil_kube_object_unref(now);
    listener_fini(&l);
}

/* -- A consumer on another thread that takes whenever it likes -- */

enum { NAMES = 10, CHANGES = 20000 };

struct consumer {
    struct listener listener;
    int known[NAMES]; /* the version that the consumer knows; 0: none */
};

static void *consume(void *arg)
{
    struct consumer *c = arg;
    struct listener_change change;
    while (listener_take(&c->listener, CLOCK_NEVER, &change) == ST_OK) {
        int name = test_number(object_key(change.now ? change.now : change.old));
        int old = change.old ? test_number(object_version(change.old)) : 0;
        int now = change.now ? test_number(object_version(change.now)) : 0;
        assert(change.kind != CACHE_ADDED || c->known[name] == 0);
        assert(change.kind != CACHE_UPDATED || c->known[name] == old);
        assert(change.kind != CACHE_REMOVED || c->known[name] != 0);
        c->known[name] = now;
        listener_change_fini(&change);
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
    assert_int_equal(listener_init(&c.listener, 1), ST_OK);
    assert_int_equal(pthread_create(&thread, NULL, consume, &c), 0);
    for (int i = 1; i <= CHANGES; i++) {
        char name[8];
        int at = (int)random_below(&random, NAMES);
        int now = versions[at] && random_chance(&random, 1, 3) ? 0 : i;
        snprintf(name, sizeof(name), "%d", at % 1000);
        add(&c.listener, name, versions[at], now);
        versions[at] = now;
        assert_true(listener_count(&c.listener) <= NAMES);
    }
    while (listener_count(&c.listener) > 0)
        sched_yield();
    listener_end(&c.listener);
    pthread_join(thread, NULL);
    assert_memory_equal(c.known, versions, sizeof(versions));
    listener_fini(&c.listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(consumer_that_keeps_up_gets_every_change),
        cmocka_unit_test(changes_of_one_object_are_joined),
        cmocka_unit_test(object_that_is_made_again_changes_from_what_was_seen),
        cmocka_unit_test(object_of_a_list_stays_one_when_it_changes),
        cmocka_unit_test(end_drops_what_waits),
        cmocka_unit_test(missing_memory_loses_the_change_and_says_so),
        cmocka_unit_test(every_old_state_is_the_one_seen_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
