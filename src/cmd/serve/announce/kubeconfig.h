/*
 * The kubeconfig file for kubectl and other Kubernetes clients: DATA_DIR/kubeconfig, written at
 * every start, and removed when the server does not serve the Kubernetes API.
 */
#ifndef VIGIL_CMD_SERVE_ANNOUNCE_KUBECONFIG_H
#define VIGIL_CMD_SERVE_ANNOUNCE_KUBECONFIG_H

#include "cmd/serve/config/config.h"

enum { KUBECONFIG_PATH_BYTES = 4096 };

/* The first address of the Kubernetes API that clients can use; NULL when there is none. */
const struct url *kubeconfig_url(const struct serve_config *config, const struct server *server);

/* Clients need a certificate of their own, which the file cannot have: its key is theirs. */
bool kubeconfig_lacks_certificate(const struct serve_config *config, const struct server *server);

/* False: there is no such address, or the file cannot be written, which is logged. */
bool kubeconfig_write(const struct serve_config *config, const struct server *server,
                      char path[KUBECONFIG_PATH_BYTES]);

#endif
