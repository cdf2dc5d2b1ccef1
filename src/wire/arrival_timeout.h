/* How long a message or the body of a request may take to arrive. */
#ifndef VIGIL_WIRE_ARRIVAL_TIMEOUT_H
#define VIGIL_WIRE_ARRIVAL_TIMEOUT_H

#include <stddef.h>
#include <stdint.h>

enum { WIRE_SLOW_BYTES_PER_S = 16 * 1024 };

/* When it must be whole that began at since_ns: after the timeout, and a second later for every
 * 16 KiB that have come, so that a slow link is no attack. */
static inline int64_t wire_message_by_ns(int64_t since_ns, int64_t timeout_ns, size_t received)
{
    return since_ns + timeout_ns + (int64_t)(received / WIRE_SLOW_BYTES_PER_S) * 1000000000;
}

#endif
