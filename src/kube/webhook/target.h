/*
 * Where a webhook is: the clientConfig of an admission webhook, or of a conversion. Read once from
 * its configuration; read-only, any thread. It borrows the memory of the arena in which it was
 * made.
 */
#ifndef VIGIL_KUBE_WEBHOOK_TARGET_H
#define VIGIL_KUBE_WEBHOOK_TARGET_H

#include "codec/json/tree.h"

#include <stdint.h>

struct kube_webhook_target {
    struct slice url; /* "https://host:port/path"; empty: it is a service */
    struct slice service_namespace, service_name, service_path;
    uint16_t service_port;
    struct slice ca_pem; /* trusted authorities; empty: those of the system */
    uint64_t hash;       /* of all of it: equal targets share their connections */
};

/* Reads clientConfig, whose text is copied into the arena. NULL: no memory, or it is not valid,
 * which validation does not let happen. */
const struct kube_webhook_target *kube_webhook_target_read(struct arena *arena,
                                                           const struct json_node *client_config);

bool kube_webhook_target_equal(const struct kube_webhook_target *a,
                               const struct kube_webhook_target *b);

#endif
