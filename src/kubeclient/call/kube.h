/*
 * The inside of a vigil_kube: one driver, the connections, the credentials, and what calls, watches
 * and informers share.
 *
 *     vigil_kube_call ─┐
 *     vigil_kube_watch ┼──► kube_exchange ──► credentials, http_pool
 *     informer ────────┘
 *
 * Everything except constants and counters belongs to the loop's thread.
 */
#ifndef VIGIL_KUBECLIENT_CALL_KUBE_H
#define VIGIL_KUBECLIENT_CALL_KUBE_H

#include "base/random.h"
#include "client/driver/driver.h"
#include "client/http/http_pool.h"
#include "kubeclient/connect/credentials.h"
#include "kubeclient/connect/kubeconfig.h"
#include "kubeclient/connect/server_backoff.h"

#include <vigil/kube/client.h>

struct discovery;
struct rate_limiter;

/* Header fields of a request beside those of the credentials, at most. */
enum { KUBE_OWN_FIELDS = 4 };

/* Written by the loop's thread, read by any. */
struct kube_counters {
    _Atomic uint64_t connects, connect_errors, disconnects, connections;
    _Atomic uint64_t calls_started, calls_completed, calls_retried;
    _Atomic uint64_t watches, watch_events, watch_retries;
    _Atomic uint64_t bytes_sent, bytes_received;
};

struct vigil_kube {
    struct driver driver;

    /* Constant. */
    struct kubeconfig config;
    /* Path of the server's URL, without a slash at its end; often empty. */
    struct slice path_prefix;
    bool secure;      /* TLS is used */
    char *user_agent; /* owned */
    int64_t call_timeout_ms;
    size_t receive_bytes_max;
    void (*warning)(void *user, const char *text); /* may be NULL; its user is driver.log_user */

    /* The loop's thread. */
    struct resolver *resolver;       /* owned */
    struct list tls_sources;         /* kube_tls.in_kube, the one in use first */
    struct http_pool *pool;          /* owned */
    struct credentials *credentials; /* owned */
    struct rate_limiter *limiter;    /* owned; NULL: no limit */
    struct random random;
    struct server_backoff backoff; /* pause between watches */
    struct http_field *fields;     /* owned: room for those of a request */
    struct kube_counters counters;

    /* Protected by the driver's lock. */
    struct list informers; /* that may be shared: vigil_kube_informer.in_kube; its links are NULL
                              until first used */

    /* Any thread, with a lock of its own. */
    struct discovery *discovery; /* owned */
};

/* vigil_kube_new over any network. The loops of a simulated one are stepped, so such a client has
 * no own thread. */
int kube_new_over(struct network *network, const vigil_kube_options *options, vigil_kube **ret_kube,
                  vigil_error *error);

#endif
