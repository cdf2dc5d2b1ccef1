/*
 * What PodSecurity has decided, under Kubernetes' names and with its labels: evaluations, exempt
 * requests, and errors. One set for a server; any thread counts, without a lock.
 */
#ifndef VIGIL_KUBE_POLICY_SECURITY_METRICS_H
#define VIGIL_KUBE_POLICY_SECURITY_METRICS_H

#include "base/metric/page.h"
#include "kube/policy/security/standard.h"

/* Standards of later versions are counted together, as "future". */
enum { POD_SECURITY_SERVER_MINOR = 36 };

struct pod_security_metrics;

struct pod_security_metrics *pod_security_metrics_new(void);
void pod_security_metrics_free(struct pod_security_metrics *metrics); /* accepts NULL */
void pod_security_metrics_write(const struct pod_security_metrics *metrics,
                                struct metric_page *page);

enum pod_mode { POD_MODE_ENFORCE, POD_MODE_AUDIT, POD_MODE_WARN, POD_MODES };

/* The part of a pod that a request writes. */
enum pod_part { POD_PART_WHOLE, POD_PART_EPHEMERAL_CONTAINERS, POD_PART_RESIZE, POD_PARTS };

/* The request that is decided. */
struct pod_request {
    bool updates;       /* otherwise it creates */
    bool is_controller; /* otherwise it is about a pod */
    enum pod_part part;
};

/* Metrics may be NULL. */
void pod_security_count(struct pod_security_metrics *metrics, const struct pod_request *request,
                        enum pod_mode mode, const struct pod_standard *standard, bool allowed);
void pod_security_count_exempt(struct pod_security_metrics *metrics,
                               const struct pod_request *request);
/* Labels of a namespace that cannot be read. */
void pod_security_count_error(struct pod_security_metrics *metrics,
                              const struct pod_request *request);

#endif
