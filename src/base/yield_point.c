#include "base/yield_point.h"

_Thread_local struct breath *breath_here;

void breath_take(void)
{
    struct breath *breath = breath_here;
    breath->work = 0;
    breath_here = NULL; /* what is done is short, and not interrupted itself */
    breath->fn(breath->ctx);
    breath_here = breath;
}
