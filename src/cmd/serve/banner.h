/* What somebody who starts the server by hand reads: what listens where, and what to try. */
#ifndef VIGIL_CMD_SERVE_BANNER_H
#define VIGIL_CMD_SERVE_BANNER_H

#include "cmd/serve/config.h"

/* kubeconfig: where one was written, or NULL. */
void greeting_write(FILE *to, const struct serve_config *config, struct server *server,
                    const char *kubeconfig);

#endif
