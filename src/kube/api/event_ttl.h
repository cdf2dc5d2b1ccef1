/*
 * Events go by themselves after an hour, as in Kubernetes: each put of one hangs on a lease, and
 * those of about a minute share it, as kube-apiserver's do.
 */
#ifndef VIGIL_KUBE_API_EVENT_TTL_H
#define VIGIL_KUBE_API_EVENT_TTL_H

#include <stdbool.h>
#include <stdint.h>

struct engine_op;
struct kube_call;
struct kube_kind;

/* Of a lease: how long it holds, for how long and for how many puts it is taken. */
enum { KUBE_EVENT_TTL_S = 3600, KUBE_LEASE_REUSE_S = 60, KUBE_LEASE_PUTS_MAX = 1000 };

/* The lease that events are put with now. One of each face. */
struct kube_expiry {
    int64_t lease; /* 0: none yet */
    int64_t until_ns;
    unsigned puts;
};

bool kube_expires(const struct kube_kind *kind);

/* Sets call->write.lease and calls `then`, perhaps before it returns; or answers that it cannot. */
void kube_expiry_take(struct kube_call *call, void (*done)(struct engine_op *op),
                      void (*then)(struct kube_call *call, void (*done)(struct engine_op *op)));

#endif
