/*
 * What a server says of itself in the log when it starts, is ready and stops: etcd's lines, which
 * operators search for and programs that start an etcd wait for.
 */
#ifndef VIGIL_CMD_SERVE_ANNOUNCE_H
#define VIGIL_CMD_SERVE_ANNOUNCE_H

#include "cmd/serve/config.h"

/* With what it was called. */
void announce_arguments(const char *program, int count, char *const *args);
/* Before anything is opened. */
void announce_start(const struct serve_config *config, const struct serve_options *options);
/* Clients are served from now on. kubeconfig: where one was written, or NULL. */
void announce_ready(const struct serve_config *config, struct server *server,
                    const char *kubeconfig);
void announce_closing(const struct serve_config *config);
void announce_closed(const struct serve_config *config);

#endif
