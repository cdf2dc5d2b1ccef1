#include "client/driver/group.h"

#include "client/driver/member.h"

void driver_group_init(struct driver_group *group, struct loop *loop)
{
    group->loop = loop;
    loop_attach(loop, &group->mailbox, driver_command_receive, NULL);
}

void driver_group_fini(struct driver_group *group)
{
    mailbox_detach(&group->mailbox);
    assert(mailbox_empty(&group->mailbox));
}
