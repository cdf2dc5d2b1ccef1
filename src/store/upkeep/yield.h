/*
 * The keeper's transactions take several milliseconds of a core. A thread that is woken on that
 * core waits until the keeper's time slice is over, even if the other cores are idle, and the
 * writer must not wait that long. So the keeper sleeps for a moment after about each millisecond of
 * work.
 */
#ifndef VIGIL_STORE_UPKEEP_YIELD_H
#define VIGIL_STORE_UPKEEP_YIELD_H

#include <stddef.h>

/* The work is measured by the pages that a transaction changes. */
enum { YIELD_BYTES = 256 << 10 };

/* Called while the pages of one transaction grow from `before` to `after` bytes. */
void yield_core(size_t before, size_t after);

#endif
