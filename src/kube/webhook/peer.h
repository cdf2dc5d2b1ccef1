/*
 * The connections to the server of one target, and the calls that use them. Peers of a caller are
 * independent of each other: one whose server hangs has connections and a queue of its own.
 *
 * Owned by its caller, on its thread.
 */
#ifndef VIGIL_KUBE_WEBHOOK_PEER_H
#define VIGIL_KUBE_WEBHOOK_PEER_H

#include "base/container/list.h"
#include "client/http/http_pool.h"
#include "client/http/token_file.h"
#include "kube/webhook/settings.h"
#include "kube/webhook/target.h"

struct engine_shard;
struct kube_webhook_endpoints;

enum { KUBE_WEBHOOK_CONNECTIONS_MAX = 256 }; /* to one target, from one thread */

/* What all peers of a caller use; borrowed. */
struct kube_webhook_base {
    struct loop *loop;
    const struct kube_webhook_settings *settings;
    struct engine_shard *shard;
    size_t *under_way; /* counter of the API */
    struct resolver *resolver;
    struct tls_client_source *system_tls; /* trusts the authorities of the system; may be NULL */
};

struct kube_webhook_peer {
    struct list in_caller;             /* links those of the caller, the latest used first */
    struct kube_webhook_target target; /* its own copy */
    enum kube_webhook_use use;         /* whose calls it makes */
    struct arena arena;                /* has the texts of the target */
    const struct kube_webhook_credentials *credentials; /* may be NULL */
    struct token_file token;                            /* that of the credentials; zeroed: none */
    struct tls_client_source *tls;                      /* owned; NULL: that of the base */
    struct kube_webhook_endpoints *endpoints;           /* owned; NULL: the target has a URL */
    struct http_pool *pool;                             /* owned */
    size_t calls;                                       /* under way */
    int64_t idle_since_ns;                              /* valid without calls */
};

/* The error says what is wrong with the target. */
MUST_CHECK
enum status kube_webhook_peer_new(const struct kube_webhook_base *base,
                                  const struct kube_webhook_target *target,
                                  enum kube_webhook_use use, struct kube_webhook_peer **ret_peer,
                                  struct error *error);
/* Not from within a function of its pool. Calls under way end. Accepts NULL. */
void kube_webhook_peer_free(struct kube_webhook_peer *peer);
DEFINE_CLEANUP(struct kube_webhook_peer *, kube_webhook_peer_free)

/* Whether it needs the authorities of the system, which are the same for all such peers. */
bool kube_webhook_peer_shares_tls(const struct kube_webhook_settings *settings,
                                  const struct kube_webhook_target *target,
                                  enum kube_webhook_use use);

#endif
