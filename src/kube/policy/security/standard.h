/*
 * Which of the Pod Security Standards apply in a namespace: a level and a version for each of three
 * modes, from the namespace's labels and the server's defaults.
 *
 *     pod-security.kubernetes.io/enforce: restricted       pods that violate it are refused
 *     pod-security.kubernetes.io/enforce-version: v1.35
 *     pod-security.kubernetes.io/warn: …                   they cause a Warning
 *     pod-security.kubernetes.io/audit: …                  they are counted
 */
#ifndef VIGIL_KUBE_POLICY_SECURITY_STANDARD_H
#define VIGIL_KUBE_POLICY_SECURITY_STANDARD_H

#include "codec/json/tree.h"
#include "kube/types/field_errors.h"

/* From the least to the most restrictive. */
enum pod_level {
    POD_LEVEL_PRIVILEGED,
    POD_LEVEL_BASELINE,
    POD_LEVEL_RESTRICTED,
};

enum { POD_VERSION_LATEST = -1 };

struct pod_standard {
    enum pod_level level;
    int64_t minor; /* the standard of Kubernetes 1.MINOR, or POD_VERSION_LATEST */
};

struct pod_policy {
    struct pod_standard enforce, warn, audit;
};

/* "restricted", "v1.35" or "latest". False: the text is something else. */
#define POD_LEVEL_RULE "must be one of privileged, baseline, restricted"
#define POD_VERSION_RULE "must be \"latest\" or \"v1.x\""
bool pod_level_read(struct slice text, enum pod_level *ret_level);
const char *pod_level_name(enum pod_level level);
bool pod_version_read(struct slice text, int64_t *ret_minor);

/*
 * What the labels of a namespace say, where they say something. A label that cannot be read has the
 * strictest meaning in the mode enforce, and none in the others; each is added to the errors, with
 * its path in the namespace. Returns whether all could be read. labels and errors may be NULL.
 * Without memory for a label it counts as one that cannot be read.
 */
bool pod_policy_read(const struct json_node *labels, const struct pod_policy *defaults,
                     struct arena *arena, struct pod_policy *ret_policy,
                     struct kube_field_errors *errors);

bool pod_standard_equal(const struct pod_standard *a, const struct pod_standard *b);
/* Whether pods that were allowed before may be refused now. */
bool pod_standard_is_stricter(const struct pod_standard *now, const struct pod_standard *before);
/* Whether pods may do everything without a Warning. */
bool pod_policy_is_privileged(const struct pod_policy *policy);

/* "restricted:v1.35" */
enum { POD_STANDARD_BYTES = 48 };
const char *pod_standard_text(const struct pod_standard *standard, char text[POD_STANDARD_BYTES]);

#endif
