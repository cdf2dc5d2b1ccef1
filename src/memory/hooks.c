#include "memory/hooks.h"

#include <vigil/client.h>

static struct memory_hooks hooks;

void vigil_set_allocator(void *(*allocate)(size_t bytes),
                         void *(*resize)(void *memory, size_t bytes), void (*release)(void *memory))
{
    hooks = (struct memory_hooks){allocate, resize, release};
}

const struct memory_hooks *vigil_private_hooks(void)
{
    return &hooks;
}
