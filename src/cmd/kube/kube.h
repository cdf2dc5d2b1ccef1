/*
 * `vigil kube watch`: shows the watch protocol of a Kubernetes API server as it happens. args[0] is
 * the name of the command. The exit status is 0 for success, 1 for failure and 2 for wrong flags.
 */
#ifndef VIGIL_CMD_KUBE_KUBE_H
#define VIGIL_CMD_KUBE_KUBE_H

#include "base/options/options.h"

int kube_main(int count, char **args);
extern const struct options_table kube_watch_table;

#endif
