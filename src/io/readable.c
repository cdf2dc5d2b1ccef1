#include "io/readable.h"

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum status readable_init(struct readable *readable)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return ST_LIMIT;
    *readable = (struct readable){.fd = fd};
    return ST_OK;
}

void readable_fini(struct readable *readable)
{
    close(readable->fd);
}

void readable_set(struct readable *readable, bool wanted)
{
    uint64_t number = 1;
    if (wanted == readable->is_set)
        return;
    readable->is_set = wanted;
    /* It fails only if the program has read or closed the descriptor, which is harmless here. */
    ssize_t ignored = wanted ? write(readable->fd, &number, sizeof(number))
                             : read(readable->fd, &number, sizeof(number));
    (void)ignored;
}
