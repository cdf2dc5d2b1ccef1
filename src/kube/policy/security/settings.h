/*
 * What an admission configuration says about PodSecurity (the kind PodSecurityConfiguration): the
 * standards of namespaces without labels, and what is exempt from all standards. Read once when the
 * server starts; read-only, any thread.
 */
#ifndef VIGIL_KUBE_POLICY_SECURITY_SETTINGS_H
#define VIGIL_KUBE_POLICY_SECURITY_SETTINGS_H

#include "kube/policy/security/standard.h"

/* In the order of their bytes. */
struct pod_names {
    struct slice *items;
    size_t count;
};

/* Zeroed: nothing is exempt, and every namespace without labels is privileged. */
struct pod_security_settings {
    struct pod_policy defaults;
    struct pod_names users, namespaces, runtime_classes; /* the exempt ones */
};

/* All privileged, latest; nothing is exempt. */
extern const struct pod_security_settings pod_security_unconfigured;

/*
 * Reads a configuration whose members have the right types. What is wrong is added to the errors,
 * as in Kubernetes; the settings are then incomplete. The texts are in the arena. Without memory
 * the arena remembers it.
 */
void pod_security_settings_read(const struct json_node *config, struct arena *arena,
                                struct pod_security_settings *ret_settings,
                                struct kube_field_errors *errors);

/* An empty name is never exempt. */
bool pod_names_have(const struct pod_names *names, struct slice name);
/* Whether pods in namespaces without labels may do everything, and nothing is exempt. */
bool pod_security_is_trivial(const struct pod_security_settings *settings);

/*
 * The Warning for an exempt namespace with these labels, `namespace "a" is exempt from Pod
 * Security, and the policy (enforce=baseline:latest) will be ignored`; nothing if the labels do not
 * change the defaults. ST_NOMEM.
 */
MUST_CHECK
enum status pod_security_warn_exempt(const struct pod_security_settings *settings,
                                     struct slice namespace, const struct json_node *labels,
                                     const struct pod_policy *policy, struct buf *to);

#endif
