/*
 * Maps a file of a failing disk. A page that the disk cannot read would end the process with SIGBUS
 * at the first access. Here a page of memory takes its place in that moment: with the blocks that
 * can be read one by one, and zeros for the others, which no checksum matches.
 *
 * The first mapping installs a handler of SIGBUS for the whole process. Faults elsewhere go to the
 * handler that was there before. Mappings are made and removed by one thread.
 */
#ifndef VIGIL_IO_PATCHED_H
#define VIGIL_IO_PATCHED_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* The path is for the report. The descriptor must stay open until the mapping is removed. */
MUST_CHECK
enum status patched_map(const char *path, int fd, size_t len, const uint8_t **ret_base);
void patched_unmap(const uint8_t *base);

/*
 * Reports the bytes that could not be read, of all mappings up to now, also of removed ones.
 * Returns how many there are; beyond a thousand ranges they are only counted.
 */
uint64_t patched_losses(void (*fn)(void *ctx, const char *path, uint64_t offset, uint64_t bytes),
                        void *ctx);

#endif
