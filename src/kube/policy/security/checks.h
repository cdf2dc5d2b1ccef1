/*
 * The checks of the Pod Security Standards, each under the name that it has in Kubernetes, by which
 * they are ordered.
 */
#ifndef VIGIL_KUBE_POLICY_SECURITY_CHECKS_H
#define VIGIL_KUBE_POLICY_SECURITY_CHECKS_H

#include "kube/policy/security/checked.h"
#include "kube/policy/security/standard.h"

enum { POD_CHECK_ALWAYS = 0, POD_CHECK_NEVER = INT32_MAX };

struct pod_check_row {
    const char *name;
    enum pod_level level;
    int since; /* the version with which it was added */
    /* From this version on, the level "restricted" has a stricter check in its place. */
    int replaced;
    /* False: the reason is set, and perhaps the detail. */
    bool (*passes)(struct pod_checked *checked);
};

/* Those of the level "baseline" come first. The last row has no name. */
extern const struct pod_check_row pod_checks[];

#endif
