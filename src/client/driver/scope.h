/*
 * A callback that does not belong to one client but to what several have in common, a store in this
 * process. The thread that makes it may be one that their calls wait for, so it must not wait for
 * them. On the stack of that thread.
 */
#ifndef VIGIL_CLIENT_DRIVER_SCOPE_H
#define VIGIL_CLIENT_DRIVER_SCOPE_H

#include <stdbool.h>

struct driver_scope {
    const void *owner; /* the same as driver.owner of the clients */
    struct driver_scope *outer;
};

void driver_scope_enter(struct driver_scope *scope, const void *owner);
void driver_scope_leave(const struct driver_scope *scope);
/* This thread is inside a callback of the owner. */
bool driver_scope_has(const void *owner);

#endif
