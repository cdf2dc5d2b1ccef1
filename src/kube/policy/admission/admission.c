#include "kube/policy/admission/admission.h"

#include "base/options/value.h"
#include "base/xalloc.h"
#include "kube/policy/admission/amounts/limit_range.h"
#include "kube/policy/admission/amounts/quota.h"
#include "kube/policy/admission/plugins/namespace_lifecycle.h"
#include "kube/policy/admission/plugins/namespaces.h"
#include "kube/policy/admission/plugins/nodes/node_restriction.h"
#include "kube/policy/admission/plugins/plugins.h"
#include "kube/policy/security/settings.h"

#include <stdio.h>

/* Only their names and their places: see kube_admission_uses. */
static const struct kube_admission_plugin mutating_policy = {.name = "MutatingAdmissionPolicy"};
static const struct kube_admission_plugin mutating_webhook = {.name = "MutatingAdmissionWebhook"};
static const struct kube_admission_plugin validating_policy = {.name = "ValidatingAdmissionPolicy"};
static const struct kube_admission_plugin validating_webhook = {.name =
                                                                    "ValidatingAdmissionWebhook"};

/* The same: its check asks the authorizer (kube/policy/access/owner_check.c). */
static const struct kube_admission_plugin owner_permissions = {
    .name = "OwnerReferencesPermissionEnforcement", .is_optional = true};

/* In the order in which Kubernetes calls them. */
static const struct kube_admission_plugin *const chain[] = {
    &kube_namespace_lifecycle,
    &kube_limit_ranger,
    &kube_service_account,
    &kube_node_restriction,
    &kube_node_taint,
    &kube_pod_security,
    &kube_priority,
    &kube_default_tolerations,
    &kube_default_storage_class,
    &kube_storage_protection,
    &owner_permissions,
    &kube_claim_resize,
    &kube_runtime_class,
    &kube_certificate_approver,
    &kube_certificate_signer,
    &kube_certificate_subject,
    &kube_default_ingress_class,
    &kube_external_ips,
    &mutating_policy,
    &mutating_webhook,
    &validating_policy,
    &validating_webhook,
    &kube_resource_quota,
};
_Static_assert(COUNT_OF(chain) <= 32, "a set has a bit for each");

const struct kube_fact_row *const kube_admission_facts[KUBE_FACTS] = {
    [KUBE_FACT_LIMIT_RANGES] = &kube_limit_ranges,
    [KUBE_FACT_QUOTAS] = &kube_resource_quotas,
    [KUBE_FACT_ACCOUNTS] = &kube_accounts,
    [KUBE_FACT_PRIORITY_CLASSES] = &kube_priority_classes,
    [KUBE_FACT_STORAGE_CLASSES] = &kube_storage_classes,
    [KUBE_FACT_RUNTIME_CLASSES] = &kube_runtime_classes,
    [KUBE_FACT_INGRESS_CLASSES] = &kube_ingress_classes,
    [KUBE_FACT_NAMESPACES] = &kube_namespace_labels,
};

#define NOT_CHECKED "what it refuses in Kubernetes is accepted here"

static const struct kube_admission_absent absent[] = {
    {.name = "AlwaysAdmit", .why = "it does nothing in Kubernetes, either"},
    {.name = "AlwaysDeny", .why = NOT_CHECKED},
    {.name = "AlwaysPullImages", .why = "the pull policy of images is not changed"},
    {.name = "ClusterTrustBundleAttest", .why = "cluster trust bundles are not served"},
    {.name = "EventRateLimit", .why = "the rate of events is not limited"},
    {.name = "ExtendedResourceToleration", .why = "tolerations are not added"},
    {.name = "ImagePolicyWebhook", .why = "the webhook that decides about images is not called"},
    {.name = "JobValidation", .why = NOT_CHECKED},
    {.name = "LimitPodHardAntiAffinityTopology", .why = NOT_CHECKED},
    {.name = "NamespaceAutoProvision", .why = "namespaces are not created"},
    {.name = "NamespaceExists", .why = "NamespaceLifecycle checks that namespaces exist"},
    {.name = "NodeDeclaredFeatureValidator", .why = NOT_CHECKED},
    {.name = "PodGroupProtection", .why = "finalizers are not added"},
    {.name = "PodGroupWorkloadExists", .why = "pod groups are not served"},
    {.name = "PodNodeSelector", .why = "node selectors of namespaces are not added to pods"},
    {.name = "PodResizeValidator", .why = "resized pods are not compared with their nodes"},
    {.name = "PodTolerationRestriction", .why = "tolerations of namespaces have no effect"},
    {.name = "PodTopologyLabels", .why = "labels are not copied from nodes"},
};

/* -- Sets -- */

struct kube_admission_set kube_admission_default(bool controllers)
{
    struct kube_admission_set set = {.pod_security = &pod_security_unconfigured};
    /* These two plugins need what kube-controller-manager does: it creates the accounts and removes
     * the finalizers. */
    for (size_t i = 0; i < COUNT_OF(chain); i++)
        if (!chain[i]->is_optional && (controllers || (chain[i] != &kube_service_account &&
                                                       chain[i] != &kube_storage_protection)))
            set.enabled |= UINT32_C(1) << i;
    return set;
}

struct kube_admission_set kube_admission_least(void)
{
    return (struct kube_admission_set){1, &pod_security_unconfigured};
}

const struct kube_admission_absent *kube_admission_absent(struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(absent); i++)
        if (slice_is(name, absent[i].name))
            return &absent[i];
    return NULL;
}

/* 0: there is none of that name. */
static uint32_t bit_of(struct slice name)
{
    for (size_t i = 0; i < COUNT_OF(chain); i++)
        if (slice_is(name, chain[i]->name))
            return UINT32_C(1) << i;
    return 0;
}

bool kube_admission_exists(struct slice name)
{
    return bit_of(name);
}

bool kube_admission_is_enabled(const struct kube_admission_set *set, struct slice name)
{
    return set->enabled & bit_of(name);
}

static enum status fail_unknown(struct slice name, const char *flag, struct error *error)
{
    const struct kube_admission_absent *row = kube_admission_absent(name);
    char known[512];
    size_t len = 0;
    if (row)
        return error_set(error, ST_INVALID,
                         "--%s: the admission plugin %s does not exist in Vigil: %s", flag,
                         row->name, row->why);
    for (size_t i = 0; i < COUNT_OF(chain) && len < sizeof(known); i++) {
        int more =
            snprintf(known + len, sizeof(known) - len, "%s%s", i ? ", " : "", chain[i]->name);
        len += more > 0 ? (size_t)more : 0;
    }
    return error_set(error, ST_INVALID, "--%s: there is no admission plugin \"%.*s\" here, only %s",
                     flag, (int)size_min(name.len, 100), (const char *)name.ptr, known);
}

enum status kube_admission_enable(struct kube_admission_set *set, const char *list,
                                  const char *flag, struct error *error)
{
    struct slice name;
    while (option_list_next(&list, &name)) {
        uint32_t bit = bit_of(name);
        if (!bit)
            return fail_unknown(name, flag, error);
        set->enabled |= bit;
    }
    return ST_OK;
}

enum status kube_admission_disable(struct kube_admission_set *set, const char *list,
                                   const char *flag, struct error *error)
{
    struct slice name;
    while (option_list_next(&list, &name)) {
        uint32_t bit = bit_of(name);
        if (!bit && !kube_admission_absent(name))
            return fail_unknown(name, flag, error);
        set->enabled &= ~bit;
    }
    return ST_OK;
}

/* -- Life -- */

struct kube_admission *kube_admission_new(const struct kube_admission_set *set,
                                          const struct kube_fact_finder_options *options)
{
    struct kube_admission *admission = xcalloc(1, sizeof(*admission));
    struct kube_fact_finder_options with_rows = *options;
    with_rows.rows = kube_admission_facts;
    admission->set = *set;
    admission->facts = kube_fact_finder_new(&with_rows);
    admission->policies = kube_policy_finder_new(&(struct kube_policy_finder_options){
        .shard = options->shard,
        .loop = options->loop,
        .under_way = options->under_way,
        .pool = options->pool,
    });
    for (enum kube_policy_part part = 0; part < KUBE_POLICY_PARTS; part++)
        if (part != KUBE_POLICIES && part != KUBE_MUTATING_POLICIES &&
            kube_admission_uses(admission, part))
            admission->applied[part] =
                kube_lookup_peek(kube_policies_lookup(admission->policies, part));
    admission->pods_are_free = pod_security_is_trivial(set->pod_security);
    admission->labelled =
        kube_lookup_peek(kube_facts_lookup(admission->facts, KUBE_FACT_NAMESPACES));
    return admission;
}

void kube_admission_stop(struct kube_admission *admission)
{
    if (!admission)
        return;
    kube_fact_finder_stop(admission->facts);
    kube_policy_finder_stop(admission->policies);
}

void kube_admission_free(struct kube_admission *admission)
{
    if (!admission)
        return;
    kube_fact_finder_free(admission->facts);
    kube_policy_finder_free(admission->policies);
    free(admission);
}

/* -- The chain -- */

static bool matches(const struct kube_admission_rule *rule, const struct kube_kind *kind,
                    struct slice subresource, enum kube_admission_operation operation)
{
    return rule->operations >> operation & 1 &&
           (!rule->subresource || slice_is(subresource, rule->subresource)) &&
           (!rule->plural || kube_kind_is(kind, rule->group, rule->plural));
}

uint32_t kube_admission_concerns(const struct kube_admission *admission,
                                 const struct kube_kind *kind, struct slice subresource,
                                 enum kube_admission_operation operation, unsigned *ret_needs)
{
    uint32_t plugins = 0;
    *ret_needs = 0;
    for (size_t i = 0; i < COUNT_OF(chain); i++) {
        const struct kube_admission_rule *rule = chain[i]->rules;
        const struct kube_admission_rule *end = rule + KUBE_ADMISSION_RULES_MAX;
        if (!(admission->set.enabled >> i & 1))
            continue;
        while (rule < end && rule->operations && !matches(rule, kind, subresource, operation))
            rule++;
        if (rule == end || !rule->operations || (chain[i]->concerns && !chain[i]->concerns(kind)))
            continue;
        if (!chain[i]->follows_labels) {
            *ret_needs |= chain[i]->needs;
        } else if (kind->flags & KUBE_NAMESPACED) {
            if (!kube_lookup_is_empty(admission->labelled))
                *ret_needs |= chain[i]->needs;
            else if (admission->pods_are_free && !kube_kind_is(kind, "", "pods"))
                continue;
        }
        plugins |= UINT32_C(1) << i;
    }
    return plugins;
}

bool kube_admission_uses(const struct kube_admission *admission, enum kube_policy_part part)
{
    static const struct kube_admission_plugin *const plugins[KUBE_POLICY_PARTS] = {
        [KUBE_POLICIES] = &validating_policy,
        [KUBE_POLICY_BINDINGS] = &validating_policy,
        [KUBE_MUTATING_POLICIES] = &mutating_policy,
        [KUBE_MUTATING_BINDINGS] = &mutating_policy,
        [KUBE_VALIDATING_WEBHOOKS] = &validating_webhook,
        [KUBE_MUTATING_WEBHOOKS] = &mutating_webhook,
    };
    size_t place = 0;
    while (chain[place] != plugins[part])
        place++;
    return admission->set.enabled >> place & 1;
}

bool kube_admission_guards_owners(const struct kube_admission *admission)
{
    size_t place = 0;
    while (chain[place] != &owner_permissions)
        place++;
    return admission->set.enabled >> place & 1;
}

bool kube_admission_reviews_pods(const struct kube_admission *admission)
{
    return admission->set.enabled & bit_of(slice_from_text(kube_pod_security.name));
}

bool kube_admission_restricts_nodes(const struct kube_admission *admission)
{
    return admission->set.enabled & bit_of(slice_from_text(kube_node_restriction.name));
}

bool kube_admission_needs_namespace(const struct kube_admission *admission)
{
    return admission->set.enabled & 1;
}

bool kube_admission_are_of_nodes(uint32_t plugins)
{
    for (; plugins; plugins &= plugins - 1)
        if (chain[__builtin_ctz(plugins)] != &kube_node_restriction)
            return false;
    return true;
}

bool kube_admission_run(struct kube_admission_write *write, enum kube_admission_phase phase)
{
    for (uint32_t rest = write->plugins; rest; rest &= rest - 1) {
        const struct kube_admission_plugin *plugin = chain[__builtin_ctz(rest)];
        bool (*run)(struct kube_admission_write *) = plugin->admit;
        if (phase != KUBE_ADMISSION_MUTATE)
            run = phase == KUBE_ADMISSION_VALIDATE ? plugin->check : plugin->charge;
        if (run && !run(write))
            return false;
    }
    return true;
}
