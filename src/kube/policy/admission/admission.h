/*
 * The admission chain: compiled-in plugins in Kubernetes' order, each with Kubernetes' name, each
 * of which can be disabled. A write gathers its facts (kube/policy/admission/plugins/facts.h) on
 * the thread of the API and then passes the chain once in each phase, perhaps on the worker:
 *
 *     kube_facts_gather ─► MUTATE ─► metadata, validation ─► VALIDATE ─► CHARGE
 *
 * A kind that concerns no plugin needs no facts.
 */
#ifndef VIGIL_KUBE_POLICY_ADMISSION_ADMISSION_H
#define VIGIL_KUBE_POLICY_ADMISSION_ADMISSION_H

#include "base/error.h"
#include "kube/policy/admission/plugins/plugin.h"
#include "kube/policy/policies/finder.h"

struct pod_security_settings;

/* What the plugins have to know about objects of other kinds, by enum kube_fact. */
extern const struct kube_fact_row *const kube_admission_facts[KUBE_FACTS];

/* Which plugins are enabled, and how they are configured. */
struct kube_admission_set {
    uint32_t enabled;                                 /* bits of their places in the chain */
    const struct pod_security_settings *pod_security; /* kube/policy/security/settings.h */
};

/* The plugins that are on by default, which are all but the optional ones. Without controllers no
 * program creates the accounts that ServiceAccount requires or removes the finalizers that
 * StorageObjectInUseProtection adds. */
struct kube_admission_set kube_admission_default(bool controllers);
/* NamespaceLifecycle alone. */
struct kube_admission_set kube_admission_least(void);

bool kube_admission_exists(struct slice name);
bool kube_admission_is_enabled(const struct kube_admission_set *set, struct slice name);

/* A plugin of Kubernetes that does not exist here. */
struct kube_admission_absent {
    const char *name;
    const char *why; /* what its users rely on and do not get */
};
/* NULL: it exists, or Kubernetes has none of that name. */
const struct kube_admission_absent *kube_admission_absent(struct slice name);

/* Enables or disables the plugins of a list, "A,B". A plugin of Kubernetes that does not exist here
 * can be disabled, but not enabled. ST_INVALID: the error names the plugin and says what is
 * missing, or lists those that exist. */
MUST_CHECK
enum status kube_admission_enable(struct kube_admission_set *set, const char *list,
                                  const char *flag, struct error *error);
MUST_CHECK
enum status kube_admission_disable(struct kube_admission_set *set, const char *list,
                                   const char *flag, struct error *error);

/* What the requests of one I/O thread share. */
struct kube_admission {
    struct kube_admission_set set;
    struct kube_fact_finder *facts;      /* owned */
    struct kube_policy_finder *policies; /* owned */
    /* By enum kube_policy_part: bindings of policies, and webhooks; empty, or NULL because the
     * plugin is disabled: none applies to any write. */
    const struct kube_lookup_peek *applied[KUBE_POLICY_PARTS];
    const struct kube_lookup_peek *labelled; /* namespaces with labels that configure a plugin */
    bool pods_are_free; /* without such labels pods may do everything, and nothing is exempt */
};

/* The rows of the options are not used. */
struct kube_admission *kube_admission_new(const struct kube_admission_set *set,
                                          const struct kube_fact_finder_options *options);
void kube_admission_stop(struct kube_admission *admission); /* accepts NULL */
void kube_admission_free(struct kube_admission *admission); /* must be stopped; accepts NULL */

/* The enabled plugins that concern such writes, as bits of their places in the chain, and the facts
 * that they need. */
uint32_t kube_admission_concerns(const struct kube_admission *admission,
                                 const struct kube_kind *kind, struct slice subresource,
                                 enum kube_admission_operation operation, unsigned *ret_needs);
/* Whether NamespaceLifecycle is enabled: an object must be in a namespace that exists. */
bool kube_admission_needs_namespace(const struct kube_admission *admission);

/* Whether the plugin of such policies or webhooks is enabled. These have no functions in the chain
 * below, because they decide about every kind: kube/handlers/write/policies.h, webhooks.h. */
bool kube_admission_uses(const struct kube_admission *admission, enum kube_policy_part part);
/* Whether there is neither a binding of a policy nor a webhook. */
static inline bool kube_admission_is_unbound(const struct kube_admission *admission)
{
    for (unsigned part = 0; part < KUBE_POLICY_PARTS; part++)
        if (admission->applied[part] && !kube_lookup_is_empty(admission->applied[part]))
            return false;
    return true;
}
/* The same for OwnerReferencesPermissionEnforcement, which asks what the user may do:
 * kube/handlers/write/guard.h. */
bool kube_admission_guards_owners(const struct kube_admission *admission);
/* The same for PodSecurity. */
bool kube_admission_reviews_pods(const struct kube_admission *admission);
/* The same for NodeRestriction. */
bool kube_admission_restricts_nodes(const struct kube_admission *admission);
/* Whether no other plugin is among these: it decides about a Lease by its user and its path alone.
 */
bool kube_admission_are_of_nodes(uint32_t plugins);

/* Quotas have a phase of their own: Kubernetes checks them after everything else that may refuse a
 * write, so that they are charged only for writes that are stored. */
enum kube_admission_phase {
    KUBE_ADMISSION_MUTATE,   /* calls .admit of the plugins */
    KUBE_ADMISSION_VALIDATE, /* calls .check */
    KUBE_ADMISSION_CHARGE,   /* calls .charge */
};

/* Calls the plugins of the write. Any thread. False: write->status says why. */
MUST_CHECK
bool kube_admission_run(struct kube_admission_write *write, enum kube_admission_phase phase);

#endif
