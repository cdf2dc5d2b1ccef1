/*
 * `vigil serve`, and the same as `etcd`: reads the flags, starts the server, waits for a signal.
 *
 * SIGTERM and SIGINT end it gracefully, a second one at once. Returns the exit status: 0, 1 when
 * it could not start, 2 for flags it does not know. As etcd it ends by the signal it got.
 */
#ifndef VIGIL_CMD_SERVE_SERVE_H
#define VIGIL_CMD_SERVE_SERVE_H

#include <stdbool.h>

/* args: what follows the name of the command. */
int serve_main(int count, char **args, bool as_etcd);

#endif
