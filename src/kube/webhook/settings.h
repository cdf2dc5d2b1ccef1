/*
 * What the callers of all threads share: the network, where addresses of hosts come from, and the
 * credentials for webhooks. Read-only; any thread. Borrowed by the APIs and outlives them.
 */
#ifndef VIGIL_KUBE_WEBHOOK_SETTINGS_H
#define VIGIL_KUBE_WEBHOOK_SETTINGS_H

#include "client/http/proxy_environment.h"
#include "kube/webhook/target.h"
#include "wire/http/field.h"

struct network;
struct resolver_backend;

/* Header fields of a user that are sent with each call, the one with its token included. */
enum { KUBE_WEBHOOK_FIELDS_MAX = 12 };

/* How the server signs in at webhooks: a user of the kubeconfig that an admission configuration
 * names. */
struct kube_webhook_credentials {
    /* The name of the user: "host:port", "*.domain:port", both also without ":443", or "*". The
     * host of a service is "name.namespace.svc". */
    struct slice hosts;
    const struct http_field *fields; /* sent with each call: Authorization, Impersonate-User … */
    size_t field_count;
    /* A file with a token, which is read again as it changes, and the token that is used until it
     * has been read; "": none. */
    const char *token_file, *token;
    /* A certificate and its key, as files, or as PEM; "" and empty: none. */
    const char *cert_file, *key_file;
    struct slice cert_pem, key_pem;
};

/* The users of one kubeconfig. */
struct kube_webhook_users {
    const struct kube_webhook_credentials *rows;
    size_t count;
    const struct kube_webhook_credentials *others; /* for hosts of no row; may be NULL */
};

struct kube_webhook_settings {
    struct network *network;                 /* that of the loops of all threads */
    const struct resolver_backend *resolver; /* where addresses of names come from */
    proxy_environment_fn *environment;       /* names the proxy */
    struct kube_webhook_users users[KUBE_WEBHOOK_USES];
};

/* Those of the operating system and the program's environment, without credentials. */
struct kube_webhook_settings kube_webhook_settings_system(void);

/*
 * The credentials for a host and its port, chosen as Kubernetes chooses a user: the whole name,
 * then
 * "*." with fewer and fewer labels of it, then for port 443 the same without the port, then "*".
 * NULL: the server does not sign in.
 */
const struct kube_webhook_credentials *kube_webhook_credentials_find(
    const struct kube_webhook_users *users, struct slice host, uint16_t port);

#endif
