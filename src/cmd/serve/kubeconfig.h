/*
 * The file that tells kubectl and other clients of Kubernetes where this server is:
 * DATA_DIR/kubeconfig, written anew at every start, and removed at one that does not serve them.
 */
#ifndef VIGIL_CMD_SERVE_KUBECONFIG_H
#define VIGIL_CMD_SERVE_KUBECONFIG_H

#include "cmd/serve/config.h"

enum { KUBECONFIG_PATH_BYTES = 4096 };

/* The first address of the Kubernetes API that clients can be told of; NULL when there is none. */
const struct url *kubeconfig_url(const struct serve_config *config, const struct server *server);

/* False: there is no such address, or the file cannot be written, which is logged. */
bool kubeconfig_write(const struct serve_config *config, const struct server *server,
                      char path[KUBECONFIG_PATH_BYTES]);

#endif
