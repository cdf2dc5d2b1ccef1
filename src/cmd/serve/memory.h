/* How much memory this process may use: the machine's memory, or the limit of its control groups
 * (versions 1 and 2) if that is lower. */
#ifndef VIGIL_CMD_SERVE_MEMORY_H
#define VIGIL_CMD_SERVE_MEMORY_H

#include <stddef.h>

/*
 * root is the prefix of /proc and /sys, "" outside of tests. machine_bytes is the memory of the
 * machine. A limit that cannot be read is ignored.
 */
size_t memory_bytes(const char *root, size_t machine_bytes);
/* The same for the machine that this process runs on. */
size_t memory_bytes_here(void);

/* The default of --max-client-bytes: a quarter of the memory, at most 1 GiB. */
size_t memory_for_clients(size_t memory_bytes);

#endif
