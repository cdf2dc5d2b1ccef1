#include "embed/futex.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

bool futex_wait(_Atomic uint32_t *number, uint32_t from, int64_t end_ns)
{
    /* FUTEX_WAIT_BITSET has a time of the monotonic clock, and not a duration. */
    struct timespec end = {.tv_sec = (time_t)(end_ns / NS_PER_S),
                           .tv_nsec = (long)(end_ns % NS_PER_S)};
    long failed = syscall(SYS_futex, number, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, from,
                          end_ns == CLOCK_NEVER ? NULL : &end, NULL, FUTEX_BITSET_MATCH_ANY);
    return !(failed && errno == ETIMEDOUT);
}

void futex_wake(_Atomic uint32_t *number)
{
    (void)syscall(SYS_futex, number, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, NULL, NULL, 0);
}
