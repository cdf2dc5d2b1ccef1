/*
 * The choice of a configuration for a client, from its options and the environment: see
 * vigil_kube_options. What the options say explicitly replaces what a file says.
 *
 * Credentials are shown without TLS only to a server that the program itself names, in the option
 * server. Those of a kubeconfig are left out for a server without TLS, as in kubectl; those of the
 * options are an error then, because the program counts on them.
 */
#ifndef VIGIL_KUBECLIENT_CALL_CONFIGURATION_H
#define VIGIL_KUBECLIENT_CALL_CONFIGURATION_H

#include "kubeclient/connect/kubeconfig.h"
#include "kubeclient/connect/server_url.h"

#include <vigil/kube/client.h>

/* Variables of the environment; NULL: not set. */
struct configuration_environment {
    const char *kubeconfig, *home;
    const char *service_host, *service_port;
    const char *service_account; /* the directory */
};

struct configuration_environment configuration_environment_system(void);

/* The URL borrows from the config. ST_INVALID, ST_MALFORMED, ST_NOT_FOUND, ST_IO, ST_NOMEM …; the
 * error says what is wrong. */
MUST_CHECK
enum status configuration_choose(const vigil_kube_options *options,
                                 const struct configuration_environment *environment,
                                 struct kubeconfig *ret_config, struct server_url *ret_url,
                                 struct error *error);

#endif
