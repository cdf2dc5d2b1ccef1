/* What `role get` and `user get --detail` have in common. */
#ifndef VIGIL_CMD_CTL_ADMIN_ROLE_H
#define VIGIL_CMD_CTL_ADMIN_ROLE_H

#include "cmd/ctl/admin/admin.h"

/* Requests the permissions of a role and prints them in the chosen format. */
int role_show(struct ctl *ctl, const char *name);

#endif
