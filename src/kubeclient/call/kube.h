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
#include "kubeclient/connect/server_url.h"

#include <vigil/kube/client.h>

struct discovery;
struct rate_limiter;

/* Header fields of a request beside those of the credentials, at most. */
enum { KUBE_OWN_FIELDS = 4 };

/* Written by the loop's thread, read by any. */
struct kube_counters {
    _Atomic uint64_t calls_started, calls_completed, calls_retried;
    _Atomic uint64_t watches, watch_events, watch_retries;
};

/* What clients of one server have in common. */
struct kube_constants {
    struct kubeconfig config;
    struct server_url url; /* its prefix is that of all paths */
    char *user_agent;
    struct resolver *resolver;   /* the loop's thread */
    struct discovery *discovery; /* any thread, with a lock of its own */
};

struct vigil_kube {
    struct driver driver;

    /* Constant. */
    struct kube_group *group;         /* borrowed; NULL: it is not in one */
    struct kube_constants *constants; /* owned without a group */
    int64_t call_timeout_ms;
    size_t receive_bytes_max;
    void (*warning)(void *user, const char *text); /* may be NULL; its user is driver.log_user */

    /* The loop's thread. */
    struct list tls_sources;         /* kube_tls.in_kube, the one in use first; none in a group */
    struct http_pool *pool;          /* owned; constant until the client is freed */
    struct credentials *credentials; /* owned */
    struct rate_limiter *limiter;    /* owned; NULL: no limit */
    struct random random;
    struct server_backoff backoff; /* pause between watches */
    struct http_field *fields;     /* owned: room for those of a request */
    struct kube_counters counters;

    /* Protected by the driver's lock. */
    struct list informers; /* that may be shared: vigil_kube_informer.in_kube; its links are NULL
                              until first used */
};

/* vigil_kube_new over any network. The loops of a simulated one are stepped, so such a client has
 * no own thread. */
int kube_new_over(struct network *network, const vigil_kube_options *options, vigil_kube **ret_kube,
                  vigil_error *error);

/*
 * Many clients of one server in one loop, which is borrowed, for programs that simulate them. They
 * share everything that does not change: the configuration, TLS, the resolver, the table of
 * resources, and the buffers through which bytes pass. client/driver/group.h says what such
 * clients may do. A certificate that an exec plugin prints is not used.
 */
int kube_group_new(struct loop *loop, const vigil_kube_options *options,
                   struct kube_group **ret_group, vigil_error *error);
/* After its clients and all objects that were made with them. Accepts NULL. */
void kube_group_free(struct kube_group *group);
/* The network is the one of the loop. user is that of the functions of the options, instead of
 * their log_user. */
int kube_new_in(struct kube_group *group, struct network *network, void *user,
                vigil_kube **ret_kube, vigil_error *error);

#endif
