/* Printed when a person starts the server on a terminal: the addresses, and what to try. */
#ifndef VIGIL_CMD_SERVE_ANNOUNCE_BANNER_H
#define VIGIL_CMD_SERVE_ANNOUNCE_BANNER_H

#include "cmd/serve/config/config.h"

/* kubeconfig is the path of the written file, or NULL. */
void banner_write(FILE *to, const struct serve_config *config, struct server *server,
                  const char *kubeconfig);

#endif
