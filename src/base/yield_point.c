#include "base/yield_point.h"

_Thread_local struct yield_point *yield_point_here;

void yield_point_run(void)
{
    struct yield_point *point = yield_point_here;
    point->work = 0;
    yield_point_here = NULL; /* fn is short and passes no yield points itself */
    point->fn(point->ctx);
    yield_point_here = point;
}
