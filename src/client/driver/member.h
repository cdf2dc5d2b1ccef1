/* What a driver knows of the objects of its client. Each is embedded in such an object. */
#ifndef VIGIL_CLIENT_DRIVER_MEMBER_H
#define VIGIL_CLIENT_DRIVER_MEMBER_H

#include "base/container/list.h"
#include "io/mailbox.h"

/* Something to be done in a turn of the loop. Embedded in the object that it is about. */
struct driver_command {
    struct mailbox_node in_mailbox;
    void (*run)(struct driver_command *command);
};

/* For loop_attach. */
static inline void driver_command_receive(void *owner, struct mailbox_node *node)
{
    (void)owner;
    struct driver_command *command = CONTAINER_OF(node, struct driver_command, in_mailbox);
    command->run(command);
}

/* A running call, which ends when the client ends. */
struct driver_member {
    struct list in_driver; /* links driver.members; its links are NULL until first used */
    void (*end)(struct driver_member *member); /* it has been removed from the list */
};

/* What a client has from its first use until it is freed: the streams of watches and leases. */
struct driver_part {
    struct list in_driver;                 /* links driver.parts */
    void (*end)(struct driver_part *part); /* ends everything that it has for users */
    void (*free)(struct driver_part *part);
};

/* Learns that everything has ended: what is begun from now on ends at once. */
struct driver_observer {
    struct list in_driver;                           /* links driver.observers */
    void (*ended)(struct driver_observer *observer); /* with the lock held */
};

/* An object that has callbacks. */
struct driver_object {
    _Atomic bool dropped; /* freed by the user: no callback is made any more */
    bool internal; /* used by another object of the library: its callbacks are not the program's,
                      and everything about it happens on the loop's thread */
};

#endif
