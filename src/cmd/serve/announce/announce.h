/*
 * The log lines of a server that starts, is ready and stops. They are etcd's, because operators
 * search for them and programs that start an etcd wait for them.
 */
#ifndef VIGIL_CMD_SERVE_ANNOUNCE_ANNOUNCE_H
#define VIGIL_CMD_SERVE_ANNOUNCE_ANNOUNCE_H

#include "cmd/serve/config/config.h"

/* The command line. */
void announce_arguments(const char *program, int count, char *const *args);
/* Before anything is opened. */
void announce_start(const struct serve_config *config, const struct serve_options *options);
/* Clients are served from now on. kubeconfig is the path of the written file, or NULL. */
void announce_ready(const struct serve_config *config, struct server *server,
                    const char *kubeconfig);
void announce_closing(const struct serve_config *config);
void announce_closed(const struct serve_config *config);

#endif
