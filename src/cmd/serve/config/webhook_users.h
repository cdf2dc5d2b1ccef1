/*
 * The kubeconfig of a webhook plugin's configuration: how the server signs in at webhooks. Its
 * users are named by hosts (kube/webhook/settings.h), and its clusters do not matter. Read once,
 * when the server starts; a file with a token is read again as it changes.
 */
#ifndef VIGIL_CMD_SERVE_CONFIG_WEBHOOK_USERS_H
#define VIGIL_CMD_SERVE_CONFIG_WEBHOOK_USERS_H

#include "base/error.h"
#include "base/memory/arena.h"
#include "kube/webhook/settings.h"

/* The result is in the arena. The error names the file and what is wrong in it; users who would
 * need what a server cannot do, such as an exec plugin, are refused. */
MUST_CHECK
enum status webhook_users_read(const char *path, struct arena *arena,
                               struct kube_webhook_users *ret_users, struct error *error);

#endif
