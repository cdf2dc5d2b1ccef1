/* How much memory this process may use: the machine's memory, the limit of its control groups
 * (versions 1 and 2), or that of its address space (ulimit -v), whichever is the lowest. */
#ifndef VIGIL_CMD_SERVE_CONFIG_MEMORY_H
#define VIGIL_CMD_SERVE_CONFIG_MEMORY_H

#include <stddef.h>

/*
 * root is the prefix of /proc and /sys, "" outside of tests. machine_bytes is the memory of the
 * machine. A limit that cannot be read is ignored.
 */
size_t memory_bytes(const char *root, size_t machine_bytes);
/* The same for the machine that this process runs on. */
size_t memory_bytes_here(void);

/* If the address space is limited: all threads use one heap, because each of several would reserve
 * 64 MiB of it. To be called before there are threads that allocate. */
void memory_fit_address_space(void);

/* The default of --max-client-bytes: a quarter of the memory, at most 1 GiB. */
size_t memory_for_clients(size_t memory_bytes);

#endif
