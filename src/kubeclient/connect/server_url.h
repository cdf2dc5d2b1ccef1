/*
 * The URL of a Kubernetes API server, as a kubeconfig has it:
 *
 *     https://10.0.0.1:6443  https://[fd00::1]:6443  https://rancher.example.com/k8s/clusters/c-1
 *     10.0.0.1:6443          unix:///run/kube.sock
 *
 * As in client-go, one without a scheme is https if anything of TLS is configured, otherwise http;
 * the ports are 443 and 80 unless it has one.
 */
#ifndef VIGIL_KUBECLIENT_CONNECT_SERVER_URL_H
#define VIGIL_KUBECLIENT_CONNECT_SERVER_URL_H

#include "client/names/endpoint.h"

struct server_url {
    struct endpoint endpoint; /* its security is known */
    /* Prefix of all paths, without a slash at its end; borrowed; often empty. */
    struct slice prefix;
};

/* ST_INVALID: the error says what is wrong. */
MUST_CHECK
enum status server_url_parse(const char *text, bool tls_configured, struct server_url *ret_url,
                             struct error *error);

#endif
