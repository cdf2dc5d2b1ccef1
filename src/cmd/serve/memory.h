/* How much memory there is for this process: the machine's, or less by the limits of its control
 * groups (versions 1 and 2). */
#ifndef VIGIL_CMD_SERVE_MEMORY_H
#define VIGIL_CMD_SERVE_MEMORY_H

#include <stddef.h>

/*
 * root: where /proc and /sys are found, "" outside of tests. machine_bytes: what the machine has.
 * A limit that cannot be read is none.
 */
size_t memory_bytes(const char *root, size_t machine_bytes);
/* Of the machine that this runs on. */
size_t memory_bytes_here(void);

/* What --max-client-bytes is when it is not given: a quarter of it, 1 GiB at most. */
size_t memory_for_clients(size_t memory_bytes);

#endif
