/*
 * The addresses behind the service of a target: where connections to a service lead. As in
 * kube-apiserver with --enable-aggregator-routing, these are ready endpoints of the service. The
 * objects are read from the store when a connection is made, not when one is used again.
 *
 *     search ─► service ─► its slices ─► slices of the namespace ─► Endpoints ─► addresses, in turn
 *                  │        (by name)     (if that finds none)
 *                  └─► ExternalName: the addresses of that host
 *
 * Searches at the same time share one reading, and addresses that were found are used for a second.
 * Objects are read some at a time, and no state of the store stays pinned between them.
 *
 * Owned by its caller, on its thread.
 */
#ifndef VIGIL_KUBE_WEBHOOK_ENDPOINTS_H
#define VIGIL_KUBE_WEBHOOK_ENDPOINTS_H

#include "client/names/address_source.h"
#include "kube/webhook/target.h"

struct engine_shard;
struct kube_webhook_endpoints;
struct loop;

enum {
    KUBE_WEBHOOK_ENDPOINTS_MAX = RESOLVER_ADDRESSES_MAX, /* those of one service that are used */
    KUBE_WEBHOOK_SLICES_MAX = 2000,              /* objects that one reading examines at most */
    KUBE_WEBHOOK_ENDPOINTS_BYTES_MAX = 32 << 20, /* their size */
};

struct kube_webhook_endpoints_options {
    struct engine_shard *shard;
    struct loop *loop;
    size_t *under_way;         /* counter of the API: incremented while objects are read */
    struct resolver *resolver; /* for names of other hosts */
};

/* The target is a service, and borrowed until it is closed. */
struct kube_webhook_endpoints *kube_webhook_endpoints_new(
    const struct kube_webhook_endpoints_options *options, const struct kube_webhook_target *target);
/* Frees it, perhaps later, when a reading has ended. Searches were cancelled. Accepts NULL. */
void kube_webhook_endpoints_close(struct kube_webhook_endpoints *endpoints);

/* For the connections. */
const struct address_source *kube_webhook_endpoints_source(
    const struct kube_webhook_endpoints *endpoints);

#endif
