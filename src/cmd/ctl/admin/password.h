/* New passwords of users: typed twice, or from standard input. */
#ifndef VIGIL_CMD_CTL_ADMIN_PASSWORD_H
#define VIGIL_CMD_CTL_ADMIN_PASSWORD_H

#include "cmd/ctl/ctl.h"

/* A longer line is refused; etcd itself uses 72 bytes of a password. */
enum { PASSWORD_LINE_MAX = 1024 };

/* Asks twice at the terminal. NULL: the reason was printed; the exit code is CTL_BAD_ARGUMENTS. */
const char *password_ask_new(struct ctl *ctl, const char *user);
/* The first word of a line of standard input, for --interactive=false; empty if there is none. NULL
 * as above. */
const char *password_scan(struct ctl *ctl);

#endif
