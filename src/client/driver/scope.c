#include "client/driver/scope.h"

#include <assert.h>
#include <stddef.h>

static _Thread_local struct driver_scope *innermost;

void driver_scope_enter(struct driver_scope *scope, const void *owner)
{
    *scope = (struct driver_scope){.owner = owner, .outer = innermost};
    innermost = scope;
}

void driver_scope_leave(const struct driver_scope *scope)
{
    assert(innermost == scope);
    innermost = scope->outer;
}

bool driver_scope_has(const void *owner)
{
    for (const struct driver_scope *scope = innermost; scope; scope = scope->outer)
        if (scope->owner == owner)
            return true;
    return false;
}
