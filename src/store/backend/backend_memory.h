/*
 * A checkpoint in memory, for the simulator and for planning a repair: what was committed outlives
 * the backend that committed it, as a disk outlives a process. Aborts when memory is exhausted.
 */
#ifndef VIGIL_STORE_BACKEND_BACKEND_MEMORY_H
#define VIGIL_STORE_BACKEND_BACKEND_MEMORY_H

#include "store/backend/backend.h"

struct backend_disk;

struct backend_disk *backend_disk_new(void);
void backend_disk_free(struct backend_disk *disk); /* accepts NULL; its backends must be closed */
DEFINE_CLEANUP(struct backend_disk *, backend_disk_free)

/* Opens what was committed last. One at a time. */
struct backend *backend_memory_open(struct backend_disk *disk);

/*
 * Makes the nth commit from now (1: the next) and all later ones fail with that status. With
 * happened, the failing commit is still on the disk, as after a power cut before the result. n 0:
 * no more failures.
 */
void backend_disk_fail_commit(struct backend_disk *disk, uint64_t n, enum status status,
                              bool happened);

#endif
