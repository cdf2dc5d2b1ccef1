/* One thread waits until another changes a number. */
#ifndef VIGIL_EMBED_FUTEX_H
#define VIGIL_EMBED_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns when woken, when the number is not `from` any more, or without reason. False: it is
 * end_ns, a time of the monotonic clock; CLOCK_NEVER: there is none. */
bool futex_wait(_Atomic uint32_t *number, uint32_t from, int64_t end_ns);
/* Wakes the thread that waits, after the number was changed. */
void futex_wake(_Atomic uint32_t *number);

#endif
