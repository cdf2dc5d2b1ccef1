#include "base/lock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct lock shared = LOCK_INITIALIZER;
static int counter;

static void *count_up(void *arg)
{
    (void)arg;
    for (int i = 0; i < 10000; i++) {
        LOCK_SCOPE(&shared);
        counter++;
    }
    return NULL;
}

static void counts_under_the_lock_are_not_lost(void **state)
{
    (void)state;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(counter, 40000);
}

static void *ask_held(void *lock)
{
    return (void *)(intptr_t)lock_held(lock);
}

static void only_the_holder_holds_the_lock(void **state)
{
    (void)state;
    struct lock lock;
    lock_init(&lock);
    assert_false(lock_held(&lock));
    lock_take(&lock);
    assert_true(lock_held(&lock));

    pthread_t other;
    void *other_says = NULL;
    assert_int_equal(pthread_create(&other, NULL, ask_held, &lock), 0);
    pthread_join(other, &other_says);
    assert_null(other_says);

    lock_release(&lock);
    assert_false(lock_held(&lock));
    lock_fini(&lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_under_the_lock_are_not_lost),
        cmocka_unit_test(only_the_holder_holds_the_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
