/*
 * A function with a stack of its own, which can stop in the middle and be continued. All fibers run
 * on one thread of the operating system: the root continues a fiber, and the fiber yields to the
 * root. For the simulation: without memory the process aborts.
 */
#ifndef VIGIL_TESTS_SIM_FIBER_H
#define VIGIL_TESTS_SIM_FIBER_H

#include <stdbool.h>

struct fiber;

struct fiber *fiber_new(void (*fn)(void *arg), void *arg);
/* It has ended. Its stack is kept for the next fiber. */
void fiber_free(struct fiber *fiber);

/* On the root: runs the fiber until it yields or ends. */
void fiber_continue(struct fiber *fiber);
/* On a fiber: returns when the root continues it. */
void fiber_yield(void);
bool fiber_has_ended(const struct fiber *fiber);
/* The fiber that runs; NULL on the root. */
struct fiber *fiber_running(void);

#endif
