/*
 * `vigil serve`, also started as `etcd`: reads the flags, starts the server, waits for a signal.
 *
 * SIGTERM and SIGINT end it gracefully, a second signal ends it at once. The exit status is 0, 1
 * when the server could not start, and 2 for wrong flags. Started as etcd it dies by the signal.
 */
#ifndef VIGIL_CMD_SERVE_SERVE_H
#define VIGIL_CMD_SERVE_SERVE_H

#include <stdbool.h>

/* args are the arguments after the name of the command. */
int serve_main(int count, char **args, bool as_etcd);

#endif
