#include "base/lock.h"

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
