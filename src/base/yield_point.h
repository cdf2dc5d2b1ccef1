/*
 * Lets a thread do urgent work in the middle of a long step that cannot be interrupted otherwise.
 * While the writer applies a delete of a million keys, for example, it still answers lease
 * renewals. Loops that may be long report their work; the thread that runs them may have set a
 * function that is called every so often:
 *
 *     yield_point_here = &point;      the writer, before a request
 *         yield_point_pass(1);        for each key; point.fn is called every YIELD_POINT_WORK keys
 *     yield_point_here = NULL;
 *
 * On threads that have set nothing it costs one read of a thread-local variable. fn must not change
 * the data that the loop works on; a loop passes a yield point only while that data is consistent.
 */
#ifndef VIGIL_BASE_YIELD_POINT_H
#define VIGIL_BASE_YIELD_POINT_H

#include "base/macros.h"

#include <stddef.h>

enum { YIELD_POINT_WORK = 4096 }; /* keys: about a millisecond */

struct yield_point {
    void (*fn)(void *ctx);
    void *ctx;
    size_t work; /* reported since fn was last called */
};

extern _Thread_local struct yield_point *yield_point_here; /* NULL: no function is set */

/* Calls the function; used by yield_point_pass. */
void yield_point_run(void);

static inline void yield_point_pass(size_t work)
{
    if (LIKELY(!yield_point_here))
        return;
    yield_point_here->work += work;
    if (UNLIKELY(yield_point_here->work >= YIELD_POINT_WORK))
        yield_point_run();
}

#endif
