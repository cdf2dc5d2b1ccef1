#include "store/upkeep/yield.h"

#include <time.h>

/* Unlike sched_yield, a sleep costs no share of the core that the keeper would need later. */
static const struct timespec moment = {.tv_nsec = 50 * 1000};

void yield_core(size_t before, size_t after)
{
    if (before / YIELD_BYTES != after / YIELD_BYTES)
        (void)nanosleep(&moment, NULL);
}
