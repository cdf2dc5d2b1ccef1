/*
 * What a thread does now and then in the middle of work that cannot be left, such as applying a
 * delete of a million keys: the writer answers renewals of leases. Loops that may be long say how
 * far they have come, and whoever runs them may have set something to be done every so often:
 *
 *     breath_here = &breath;          the writer, before a request
 *         breathe(1);                 each key: every BREATH_WORK of them breath.fn is called
 *     breath_here = NULL;
 *
 * On threads that have set nothing it costs a look at a variable of the thread. fn must not change
 * what the loop works on; loops call it only where what they work on is in order.
 */
#ifndef VIGIL_BASE_YIELD_POINT_H
#define VIGIL_BASE_YIELD_POINT_H

#include "base/macros.h"

#include <stddef.h>

enum { BREATH_WORK = 4096 }; /* keys: about a millisecond */

struct breath {
    void (*fn)(void *ctx);
    void *ctx;
    size_t work; /* since the last time */
};

extern _Thread_local struct breath *breath_here; /* NULL: nothing is to be done */

/* For breathe. */
void breath_take(void);

static inline void breathe(size_t work)
{
    if (LIKELY(!breath_here))
        return;
    breath_here->work += work;
    if (UNLIKELY(breath_here->work >= BREATH_WORK))
        breath_take();
}

#endif
