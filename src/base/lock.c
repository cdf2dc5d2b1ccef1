#include "base/lock.h"

#include "base/clock.h"

#include <errno.h>
#include <time.h>

/* Its address identifies the thread without a system call. */
static _Thread_local char own_address;

void lock_init(struct lock *lock)
{
    int failed = pthread_mutex_init(&lock->mutex, NULL);
    assert(!failed);
    atomic_init(&lock->holder, NULL);
}

void lock_fini(struct lock *lock)
{
    assert(!atomic_load_explicit(&lock->holder, memory_order_relaxed));
    pthread_mutex_destroy(&lock->mutex);
}

bool lock_held(const struct lock *lock)
{
    return atomic_load_explicit(&lock->holder, memory_order_relaxed) == &own_address;
}

void lock_take(struct lock *lock)
{
    assert(!lock_held(lock));
    int failed = pthread_mutex_lock(&lock->mutex);
    assert(!failed);
    atomic_store_explicit(&lock->holder, &own_address, memory_order_relaxed);
}

void lock_release(struct lock *lock)
{
    assert(lock_held(lock));
    atomic_store_explicit(&lock->holder, NULL, memory_order_relaxed);
    int failed = pthread_mutex_unlock(&lock->mutex);
    assert(!failed);
}

void lock_wait(struct lock *lock, pthread_cond_t *condition)
{
    assert(lock_held(lock));
    atomic_store_explicit(&lock->holder, NULL, memory_order_relaxed);
    int failed = pthread_cond_wait(condition, &lock->mutex);
    assert(!failed);
    atomic_store_explicit(&lock->holder, &own_address, memory_order_relaxed);
}

void lock_wait_until(struct lock *lock, pthread_cond_t *condition, int64_t mono_ns)
{
    assert(lock_held(lock));
    struct timespec until = {.tv_sec = mono_ns / NS_PER_S, .tv_nsec = mono_ns % NS_PER_S};
    atomic_store_explicit(&lock->holder, NULL, memory_order_relaxed);
    int failed = pthread_cond_timedwait(condition, &lock->mutex, &until);
    assert(!failed || failed == ETIMEDOUT);
    atomic_store_explicit(&lock->holder, &own_address, memory_order_relaxed);
}

void lock_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);
    assert(!failed);
    failed = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    assert(!failed);
    failed = pthread_cond_init(condition, &attributes);
    assert(!failed);
    pthread_condattr_destroy(&attributes);
}
