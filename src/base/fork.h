/*
 * Counts the forks that made this process. A child has copies of its parent's objects, but not the
 * threads that they belong to, and shares descriptors with the parent. An object that has either
 * notes the count when it is made, and refuses to work in a process that has another one.
 *
 * Children made by _Fork and clone are not counted: such a process can only call exec.
 */
#ifndef VIGIL_BASE_FORK_H
#define VIGIL_BASE_FORK_H

#include <stdatomic.h>

/* Counts from the first call on, and returns fork_count. Any thread. */
unsigned fork_watch(void);

extern _Atomic unsigned fork_count_now; /* private */

/* Any thread. */
static inline unsigned fork_count(void)
{
    return atomic_load_explicit(&fork_count_now, memory_order_relaxed);
}

#endif
