/*
 * Where a webhook is: the clientConfig of an admission webhook, or of a conversion. Read once from
 * its configuration; read-only, any thread. It borrows the memory of the arena in which it was
 * made.
 */
#ifndef VIGIL_KUBE_WEBHOOK_TARGET_H
#define VIGIL_KUBE_WEBHOOK_TARGET_H

#include "codec/json/tree.h"

#include <stdint.h>

/* What calls the webhook. The server signs in only at webhooks of admission, each plugin with users
 * of its own (kube/webhook/settings.h). */
enum kube_webhook_use {
    KUBE_WEBHOOK_CONVERTS,
    KUBE_WEBHOOK_VALIDATES,
    KUBE_WEBHOOK_MUTATES,
    KUBE_WEBHOOK_USES
};

struct kube_webhook_target {
    struct slice url; /* "https://host:port/path"; empty: it is a service */
    struct slice service_namespace, service_name, service_path;
    uint16_t service_port;
    struct slice ca_pem; /* trusted authorities; empty: those of the system */
    uint64_t hash;       /* covers the fields above: equal targets share their connections */

    /* What follows from it. */
    struct slice host;      /* which TLS verifies: "example.com", "::1", "name.namespace.svc" */
    uint16_t port;          /* that of the URL or the service */
    struct slice authority; /* for Host: "example.com", "[::1]:8443", "name.namespace.svc:443" */
    struct slice path;      /* "/validate", cleaned and escaped as client-go does it */
};

/* Reads clientConfig, whose text is copied into the arena. NULL: no memory, or it is not valid,
 * which validation does not let happen. */
const struct kube_webhook_target *kube_webhook_target_read(struct arena *arena,
                                                           const struct json_node *client_config);

bool kube_webhook_target_equal(const struct kube_webhook_target *a,
                               const struct kube_webhook_target *b);

static inline bool kube_webhook_target_is_service(const struct kube_webhook_target *target)
{
    return target->service_name.len > 0;
}

/* Whether the server is this machine: a URL with "localhost" or a loopback address. Only these are
 * called over HTTP/2, as in Kubernetes. */
bool kube_webhook_target_is_local(const struct kube_webhook_target *target);

#endif
