/*
 * A mutex that knows its holder, so that code can assert that it is held. Locks are for the few
 * things that threads share outside messages (the log's sinks, start and stop); no lock is taken on
 * the path of a request.
 */
#ifndef VIGIL_BASE_LOCK_H
#define VIGIL_BASE_LOCK_H

#include "base/macros.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lock {
    pthread_mutex_t mutex;
    _Atomic(const void *)
        holder; /* an address that belongs to the holding thread; NULL when free */
};

#define LOCK_INITIALIZER                    \
    {                                       \
        .mutex = PTHREAD_MUTEX_INITIALIZER, \
    }

void lock_init(struct lock *lock);
void lock_fini(struct lock *lock); /* must be free; accepts a zeroed lock */

/* Taking a lock that the thread already holds is a bug and aborts. */
void lock_take(struct lock *lock);
void lock_release(struct lock *lock);

/* True when the calling thread holds it. */
bool lock_held(const struct lock *lock);

/* Waits for a signal with the lock released; it is held again on return. */
void lock_wait(struct lock *lock, pthread_cond_t *condition);
/* The same, at most until this time of the system's monotonic clock, which the condition must have
 * been initialised for (lock_condition_init). */
void lock_wait_until(struct lock *lock, pthread_cond_t *condition, int64_t mono_ns);
void lock_condition_init(pthread_cond_t *condition);

static inline void lock_releasep(struct lock **lock)
{
    if (*lock)
        lock_release(*lock);
}

/* Holds the lock until the end of the block. */
#define LOCK_SCOPE(lock_pointer)                                       \
    AUTO(lock_releasep)                                                \
    struct lock *lock_scope_ __attribute__((unused)) = (lock_pointer); \
    lock_take(lock_scope_)

#endif
