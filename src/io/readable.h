/*
 * A descriptor that a program can wait for: it is readable exactly while its owner says so. A write
 * or read of the kernel's counter is made only when that changes.
 */
#ifndef VIGIL_IO_READABLE_H
#define VIGIL_IO_READABLE_H

#include "base/status.h"

#include <stdbool.h>

struct readable {
    int fd; /* an eventfd, owned */
    bool is_set;
};

/* Not readable at first. ST_LIMIT: no descriptor is left. */
MUST_CHECK
enum status readable_init(struct readable *readable);
void readable_fini(struct readable *readable);

/* One thread at a time. */
void readable_set(struct readable *readable, bool wanted);

#endif
