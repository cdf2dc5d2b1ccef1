/* How long a message or the body of a request may take to arrive. */
#ifndef VIGIL_WIRE_PEER_ARRIVAL_TIMEOUT_H
#define VIGIL_WIRE_PEER_ARRIVAL_TIMEOUT_H

#include <stddef.h>
#include <stdint.h>

enum { WIRE_SLOW_BYTES_PER_S = 16 * 1024 };

/* When a message that began at since_ns must be complete: after the timeout, plus a second for
 * every 16 KiB received, so that a slow link is not treated as an attack. */
static inline int64_t wire_message_by_ns(int64_t since_ns, int64_t timeout_ns, size_t received)
{
    return since_ns + timeout_ns + (int64_t)(received / WIRE_SLOW_BYTES_PER_S) * 1000000000;
}

#endif
