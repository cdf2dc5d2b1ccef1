/*
 * A loop that the drivers of several clients share, and one mailbox for the commands of all of
 * them, so that a turn does not look at every client. For programs that simulate many clients.
 *
 * The owner of the loop runs it. Everything, also every function of a client, is called on its
 * thread; functions that wait are not called at all. A client is freed outside of all callbacks,
 * and all objects that were made with it before the group.
 */
#ifndef VIGIL_CLIENT_DRIVER_GROUP_H
#define VIGIL_CLIENT_DRIVER_GROUP_H

#include "io/loop.h"

struct driver_group {
    struct loop *loop; /* borrowed */
    struct mailbox mailbox;
};

void driver_group_init(struct driver_group *group, struct loop *loop);
void driver_group_fini(struct driver_group *group);

#endif
