/* The settings of the Kubernetes API that all I/O threads share, and the limits of a request. */
#ifndef VIGIL_KUBE_CALL_CONFIG_H
#define VIGIL_KUBE_CALL_CONFIG_H

#include "kube/policy/access/rbac/authorization.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct kube_account_keys;
struct kube_admission_set;
struct kube_lookup_pool;
struct kube_metrics;
struct kube_nodes;
struct kube_service_ranges;
struct kube_start_settings;
struct kube_tokens;
struct kube_webhook_settings;
struct schema_pool;
struct worker;

/* Borrowed by the APIs and outlives them. Nothing in it changes, except what it points to. */
struct kube_config {
    const char *version;                      /* version of Vigil */
    bool skip_undecodable;                    /* a watch skips values that are not objects */
    const struct kube_tokens *tokens;         /* kube/request/tokens.h; NULL: no authentication */
    const struct kube_account_keys *accounts; /* kube/policy/access/account_token.h; NULL: there are
                                                 no tokens of service accounts */
    enum kube_authorization authorization;
    const struct kube_admission_set
        *admission;               /* kube/policy/admission/admission.h; NULL: the least */
    struct kube_metrics *metrics; /* kube/call/metrics.h; NULL: nothing is counted */
    _Atomic bool *written;        /* becomes true with the first write; may be NULL */
    _Atomic bool *unmade; /* kube/jobs/namespaces.h: the first objects could not be written; may be
                             NULL */
    struct kube_lookup_pool *lookups; /* kube/policy/lookup/stock.h; NULL: each API has its own */
    struct kube_nodes *nodes; /* kube/policy/access/node/node_view.h; NULL: each API has its own */
    struct schema_pool *schemas; /* kube/custom/schema_pool.h; NULL: each API has its own */
    _Atomic int *anonymous;      /* kube/call/anonymous.h; may be NULL */
    bool unprivileged;           /* privileged containers are refused */
    bool owns_new; /* kube/handlers/write/apply.h: objects have managers from their create on */
    bool garbage;  /* kube/jobs/garbage/garbage.h: garbage is collected */
    bool leaves_namespaces; /* kube/jobs/purge.h: others empty them */
    bool furnishes;         /* kube/jobs/follower/furnish.h: namespaces get their objects */
    bool counts_quotas;     /* kube/jobs/follower/quota_status.h: quotas get their status */
    bool checks_policies;   /* kube/jobs/follower/policy_status.h: policies get their status */
    int64_t compaction_s;   /* kube/jobs/compaction.h; 0: the cluster is not compacted */
    /* kube/jobs/start.h: of the objects that exist from the start; NULL: only namespaces do */
    const struct kube_start_settings *start;
    const struct kube_service_ranges *services;   /* kube/policy/reservations.h; NULL: services get
                                                     neither addresses nor node ports */
    const struct kube_webhook_settings *webhooks; /* kube/webhook/settings.h; NULL: the system's */
    struct worker *worker; /* io/worker.h, for large requests; NULL: there is none */
    /* base/memory/budget.h: charged with what is done for several clients at once; NULL: nothing */
    struct budget *budget;
};

/* Limits of a request, as in Kubernetes. */
enum {
    KUBE_BODY_BYTES_MAX = 3 * 1024 * 1024,
    /* A body is read up to this length, so that one that is a little too long gets a Status. */
    KUBE_BODY_BYTES_READ = KUBE_BODY_BYTES_MAX + 1024 * 1024,
    /* Memory for the tree of a body: about 100,000 values. */
    KUBE_BODY_TREE_BYTES_MAX = 12 * 1024 * 1024,
    /* Parsing YAML takes ten times as long as parsing JSON. */
    KUBE_BODY_YAML_BYTES_MAX = 6 * 1024 * 1024,
    /* Memory that one request may use besides its body. */
    KUBE_CALL_ARENA_BYTES_MAX = 64 << 20,
    /* The names of unknown members of a JSON patch; the last may be longer. */
    KUBE_UNKNOWN_OPTIONS_BYTES_MAX = 4096,
};

#endif
