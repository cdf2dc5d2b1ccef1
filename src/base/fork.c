#include "base/fork.h"

#include <pthread.h>

_Atomic unsigned fork_count_now;

static void in_child(void)
{
    atomic_fetch_add_explicit(&fork_count_now, 1, memory_order_relaxed);
}

static void watch(void)
{
    (void)pthread_atfork(NULL, NULL, in_child); /* without memory for it, forks are not noticed */
}

unsigned fork_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
    return fork_count();
}
