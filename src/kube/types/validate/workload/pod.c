#include "kube/types/validate/workload/pod.h"
#include "kube/types/validate/rules.h"

#include "kube/types/validate/kinds.h"
#include "kube/types/validate/names.h"
#include "kube/types/validate/workload/volume.h"

/* -- Volumes -- */

static void check_volumes(struct check *c, const struct at *list, struct pod_check *pod)
{
    size_t i = 0;
    for (const struct json_node *item = rule_first(rule_member(pod->spec, "volumes")); item;
         item = item->next, i++) {
        const struct at *at = AT_ITEM(list, i);
        struct slice name = rule_text(c, item, "name");
        size_t before = c->errors->count;
        rule_volume_source(c, at, item, VOLUME_OF_POD);
        rule_one(c, at, item, "name", NEEDED, NAME(dns_label_valid));
        if (seen_has(&pod->volumes, name))
            bad_repeat(c, AT(at, "name"), name);
        /* A volume with errors is not known to the mounts, which report it as missing, as in
         * Kubernetes. */
        else if (c->errors->count == before && c->errors->count < KUBE_FIELD_ERRORS_MAX)
            seen_add(c, &pod->volumes, name);
    }
}

static void check_claims(struct check *c, const struct at *list, struct pod_check *pod)
{
    size_t i = 0;
    for (const struct json_node *item = rule_first(rule_member(pod->spec, "resourceClaims")); item;
         item = item->next, i++) {
        const struct at *at = AT(AT_ITEM(list, i), "name");
        struct slice name = rule_text(c, item, "name");
        if (!name.len)
            bad_required(c, at, NULL);
        else if (!seen_add(c, &pod->claims, name))
            bad_repeat(c, at, name);
        else
            rule_name(c, at, name, dns_label_valid);
    }
}

/* -- Networking -- */

static void check_host_network(struct check *c, const struct at *spec, const struct pod_check *pod)
{
    const struct at *list = AT(spec, "containers");
    size_t i = 0;
    if (!rule_truth(pod->spec, "hostNetwork"))
        return;
    for (const struct json_node *item = rule_first(rule_member(pod->spec, "containers")); item;
         item = item->next, i++) {
        const struct at *ports = AT(AT_ITEM(list, i), "ports");
        size_t j = 0;
        for (const struct json_node *port = rule_first(rule_member(item, "ports")); port;
             port = port->next, j++) {
            /* Without a host port it is the port of the container. */
            int64_t host = rule_int(port, "hostPort", 0);
            if (host && host != rule_int(port, "containerPort", 0))
                bad_int(c, AT(AT_ITEM(ports, j), "hostPort"), host,
                        "must match `containerPort` when `hostNetwork` is true");
        }
    }
}

static void check_searches(struct check *c, const struct at *at, const struct json_node *searches)
{
    size_t bytes = 0, i = 0;
    for (const struct json_node *item = rule_first(searches); item; item = item->next)
        bytes += rule_text_of(c, item).len + (item->next != NULL);
    if (rule_count(searches) > 32)
        bad_node(c, at, searches, "must not have more than 32 search paths");
    if (bytes > 2048)
        bad_node(c, at, searches,
                 "must not have more than 2048 characters (including spaces) in the search list");
    for (const struct json_node *item = rule_first(searches); item; item = item->next, i++) {
        struct slice text = rule_text_of(c, item);
        /* The root alone is allowed, and a dot at the end marks a complete name. */
        if (slice_is(text, "."))
            continue;
        if (text.len && text.ptr[text.len - 1] == '.')
            text.len--;
        rule_name(c, AT_ITEM(at, i), text, underscored_valid);
    }
}

static void check_dns_config(struct check *c, const struct at *of, const struct json_node *spec)
{
    const struct at *at = AT(of, "dnsConfig");
    const struct json_node *config = rule_member(spec, "dnsConfig");
    const struct json_node *servers = rule_member(config, "nameservers");
    const struct at *list = AT(at, "nameservers"), *options = AT(at, "options");
    bool none = rule_text_is(spec, "dnsPolicy", "None");
    size_t j = 0;
    if (none && !config)
        bad_required(c, at,
                     "must provide `dnsConfig` when `dnsPolicy` is"
                     " None");
    else if (none && !rule_count(servers))
        bad_required(c, list,
                     "must provide at least one DNS nameserver when `dnsPolicy` is"
                     " None");
    if (!config || (none && !rule_count(servers)))
        return;
    if (rule_count(servers) > 3)
        bad_node(c, list, servers, "must not have more than 3 nameservers");
    rule_one(c, at, config, "nameservers", EACH, NAME(ip_valid));
    check_searches(c, AT(at, "searches"), rule_member(config, "searches"));
    for (const struct json_node *item = rule_first(rule_member(config, "options")); item;
         item = item->next, j++) {
        if (!rule_text(c, item, "name").len)
            bad_required(c, AT_ITEM(options, j), "must not be empty");
    }
}

/* -- Other members -- */

static void check_security(struct check *c, const struct at *at, const struct json_node *spec)
{
    rule_pod_security(c, AT(at, "securityContext"), spec);
}

static void check_waiting_gates(struct check *c, const struct at *at, const struct json_node *list)
{
    struct seen seen = {0};
    size_t i = 0;
    for (const struct json_node *item = rule_first(list); item; item = item->next, i++) {
        struct slice name = rule_text(c, item, "name");
        rule_name(c, AT_ITEM(at, i), name, label_key_valid);
        if (!seen_add(c, &seen, name))
            bad_repeat(c, AT_ITEM(at, i), name);
    }
}

static void check_os(struct check *c, const struct at *at, const struct json_node *os)
{
    struct slice name = rule_text(c, os, "name");
    if (name.len)
        rule_choice(c, at, name, "linux,windows");
    else
        bad_required(c, AT(at, "name"), NULL);
}

static const struct rule ready_gate_rules[] = {
    {"conditionType", ALWAYS, NAME(label_key_valid)},
};

static const struct rule host_alias_rules[] = {
    {"ip", ALWAYS, NAME(ip_valid)},
    {"hostnames", EACH, NAME(subdomain_valid)},
};

static const struct rule member_rules[] = {
    {"restartPolicy", IF_SOME, CHOICE("Always,OnFailure,Never")},
    {"dnsPolicy", IF_SOME, CHOICE("ClusterFirstWithHostNet,ClusterFirst,Default,None")},
    {"nodeSelector", ALWAYS, PART(rule_labels)},
    {NULL, ALWAYS, PART(check_security)},
    {"affinity", ALWAYS, PART(rule_affinity)},
    {NULL, ALWAYS, PART(check_dns_config)},
    {"readinessGates", EACH, ROWS(ready_gate_rules)},
    {"schedulingGates", ALWAYS, PART(check_waiting_gates)},
    {"topologySpreadConstraints", ALWAYS, PART(rule_topology_spread)},
    {"serviceAccountName", IF_SOME, NAME(subdomain_valid)},
    {"nodeName", IF_SOME, NAME(subdomain_valid)},
    {"activeDeadlineSeconds", IF_SET,
     WITHIN(1, INT32_MAX, "must be between 1 and 2147483647, inclusive")},
    {"hostname", IF_SOME, NAME(dns_label_valid)},
    {"subdomain", IF_SOME, NAME(dns_label_valid)},
    {"tolerations", ALWAYS, PART(rule_tolerations)},
    {"hostAliases", EACH, ROWS(host_alias_rules)},
    {"priorityClassName", IF_SOME, NAME(subdomain_valid)},
    {"runtimeClassName", IF_SET, NAME(subdomain_valid)},
    {"preemptionPolicy", IF_SET, TEXT(rule_preemption_policy)},
    {"os", IF_SET, PART(check_os)},
};

/* Whether all members but the lists of containers are those of the stored spec. */
static bool only_containers_differ(const struct check *c, const struct json_node *spec,
                                   const struct json_node *old)
{
    if (c->all || rule_count(spec) != rule_count(old))
        return false;
    for (const struct json_node *item = rule_first(spec); item; item = item->next) {
        const struct json_node *was = json_node_member(old, item->key);
        bool skips = rule_one_of(item->key, "containers,initContainers,ephemeralContainers");
        if (!was || (!skips && !json_node_equal(item, was)))
            return false;
    }
    return true;
}

void rule_pod_spec(struct check *c, const struct at *at, const struct json_node *spec,
                   const struct json_node *old, bool is_pod)
{
    struct pod_check pod = {.spec = spec, .is_pod = is_pod};
    /* Updates of anything else, such as a label, must succeed even if the rules have become
     * stricter since the pod was stored. */
    if (rule_is_kept(c, spec, old))
        return;
    pod.old = only_containers_differ(c, spec, old) ? old : NULL;
    check_volumes(c, AT(at, "volumes"), &pod);
    check_claims(c, AT(at, "resourceClaims"), &pod);
    rule_containers(c, at, &pod);
    if (rule_member(spec, "resources"))
        rule_resources(c, AT(at, "resources"), rule_member(spec, "resources"), &pod);
    check_host_network(c, at, &pod);
    if (!pod.old)
        rule_rows(c, at, spec, member_rules);
}

void rule_pod_template(struct check *c, const struct at *at, const struct json_node *template,
                       const struct json_node *old)
{
    const struct json_node *spec = rule_member(template, "spec");
    if (rule_is_kept(c, template, old))
        return;
    rule_labels(c, AT(at, "labels"), json_node_path(template, "metadata.labels"));
    rule_pod_spec(c, AT(at, "spec"), spec, rule_member(old, "spec"), false);
    if (rule_filled(spec, "ephemeralContainers"))
        bad_forbidden(c, AT(AT(at, "spec"), "ephemeralContainers"),
                      "ephemeral containers not allowed in pod template");
}

/* -- Updates -- */

/* Members that have defaults: an object that was stored without them is not changed by them. */
#define DEFAULTED                                                                          \
    "restartPolicy,terminationGracePeriodSeconds,dnsPolicy,securityContext,schedulerName," \
    "enableServiceLinks,serviceAccount,terminationMessagePath,terminationMessagePolicy,"   \
    "imagePullPolicy,resources,protocol,successThreshold,failureThreshold,periodSeconds,"  \
    "timeoutSeconds,scheme,path,defaultMode,expirationSeconds,apiVersion,hostPort,type,"   \
    "divisor,requests,recursiveReadOnly,volumeMode,status,kind,creationTimestamp"
/* Members of the spec that an update may change, or that have rules of their own. */
#define CHANGEABLE "activeDeadlineSeconds,schedulingGates,tolerations"

/* Members for which false is another value than none. */
#define MAYBE_FALSE                                                                   \
    "automountServiceAccountToken,hostUsers,shareProcessNamespace,setHostnameAsFQDN," \
    "allowPrivilegeEscalation,privileged,readOnlyRootFilesystem,runAsNonRoot,optional"

static bool is_empty(const struct json_node *node)
{
    return node->type == JSON_TYPE_NULL ||
           (node->type == JSON_TYPE_BOOL && !node->truth && !rule_one_of(node->key, MAYBE_FALSE)) ||
           ((node->type == JSON_TYPE_ARRAY || node->type == JSON_TYPE_OBJECT) && !node->first) ||
           (node->type == JSON_TYPE_STRING && !node->text.len);
}

static bool same_values(const struct json_node *a, const struct json_node *b, const char *but);

static bool may_lack(const struct json_node *item, const char *but)
{
    return is_empty(item) || rule_one_of(item->key, DEFAULTED) || rule_one_of(item->key, but);
}

/* Whether each member of `a` is in `b`, with the same value. Most are equal. */
static bool has_members(const struct json_node *a, const struct json_node *b, const char *but)
{
    for (const struct json_node *item = rule_first(a); item; item = item->next) {
        const struct json_node *other = json_node_member(b, item->key);
        if (other ? json_node_equal(item, other) : may_lack(item, but))
            continue;
        bool containers = rule_one_of(item->key, "containers,initContainers");
        if (!other ||
            (!rule_one_of(item->key, but) && !same_values(item, other, containers ? "image" : "")))
            return false;
    }
    return true;
}

/* Whether they have the same members, but those of a list, with the same values. */
static bool same_members(const struct json_node *a, const struct json_node *b, const char *but)
{
    if (!has_members(a, b, but))
        return false;
    for (const struct json_node *item = rule_first(b); item; item = item->next)
        if (!json_node_member(a, item->key) && !may_lack(item, but))
            return false;
    return true;
}

bool rule_same_but_defaults(const struct json_node *a, const struct json_node *b)
{
    return a && b ? same_values(a, b, "") : !rule_count(a) && !rule_count(b);
}

static bool same_values(const struct json_node *a, const struct json_node *b, const char *but)
{
    if (a->type != b->type)
        return is_empty(a) && is_empty(b);
    if (a->type == JSON_TYPE_OBJECT)
        return same_members(a, b, but);
    if (a->type != JSON_TYPE_ARRAY)
        return json_node_equal(a, b);
    if (a->count != b->count)
        return false;
    const struct json_node *x = a->first, *y = b->first;
    for (; x; x = x->next, y = y->next) {
        if (!same_values(x, y, but))
            return false;
    }
    return true;
}

static void check_images(struct check *c, const struct at *spec, const struct json_node *of,
                         const char *name, bool needed)
{
    const struct at *list = AT(spec, name);
    size_t i = 0;
    for (const struct json_node *item = rule_first(rule_member(of, name)); item;
         item = item->next, i++) {
        struct slice image = rule_text(c, item, "image");
        if (!image.len && needed)
            bad_required(c, AT(AT_ITEM(list, i), "image"), NULL);
        if (image.len && (image.ptr[0] <= ' ' || image.ptr[image.len - 1] <= ' '))
            bad_text(c, AT(AT_ITEM(list, i), "image"), image,
                     "must not have leading or trailing whitespace");
    }
}

static bool check_count(struct check *c, const struct at *at, const struct json_node *spec,
                        const struct json_node *old, const char *name)
{
    if (rule_count(rule_member(spec, name)) != rule_count(rule_member(old, name))) {
        bad_forbidden(c, AT(at, name), "pod updates may not add or remove containers");
        return false;
    }
    check_images(c, at, spec, name, true);
    return true;
}

static bool check_deadline(struct check *c, const struct at *at, const struct json_node *is,
                           const struct json_node *was)
{
    if (!is && was)
        bad_node(c, at, NULL, "must not update from a positive integer to nil value");
    if (!is)
        return true;
    if (rule_int_of(is) < 0 || rule_int_of(is) > INT32_MAX) {
        rule_range(c, at, rule_int_of(is), 0, INT32_MAX);
        return false;
    }
    /* The deadline may only be shortened. */
    if (!was || rule_int_of(is) <= rule_int_of(was))
        return true;
    bad_int(c, at, rule_int_of(is), "must be less than or equal to previous value");
    return false;
}

/* The text of a toleration without its seconds. */
static struct slice toleration_key(struct check *c, const struct json_node *item)
{
    static const char *const names[] = {"key", "operator", "value", "effect"};
    AUTO(buf_fini) struct buf text = {0};
    struct slice key = SLICE_EMPTY;
    enum status status = ST_OK;
    for (size_t i = 0; i < COUNT_OF(names) && status == ST_OK; i++) {
        struct slice part = rule_text(c, item, names[i]);
        /* The default of the operator. */
        if (i == 1 && !part.len)
            part = SLICE_LITERAL("Equal");
        status = buf_append_format(&text, "%.*s\n", SLICE_ARGS(part));
    }
    if (status != ST_OK || arena_dup(c->arena, buf_slice(&text), &key) != ST_OK)
        c->errors->no_memory = true;
    return key;
}

static void check_added_tolerations(struct check *c, const struct at *at,
                                    const struct json_node *is, const struct json_node *was)
{
    struct seen seen = {0};
    /* Tolerations may be added and their seconds changed, but none may be removed. */
    if (!rule_count(was) || rule_same_node(is, was))
        return;
    for (const struct json_node *item = rule_first(is); item; item = item->next)
        seen_add(c, &seen, toleration_key(c, item));
    for (const struct json_node *item = rule_first(was); item; item = item->next) {
        if (seen_has(&seen, toleration_key(c, item)))
            continue;
        bad_forbidden(c, at,
                      "existing toleration can not be modified except its tolerationSeconds");
        return;
    }
}

static void check_pod_update(struct check *c, const struct at *at, const struct json_node *spec,
                             const struct json_node *old)
{
    if (!check_count(c, at, spec, old, "containers") ||
        !check_count(c, at, spec, old, "initContainers") ||
        !check_deadline(c, AT(at, "activeDeadlineSeconds"),
                        rule_member(spec, "activeDeadlineSeconds"),
                        rule_member(old, "activeDeadlineSeconds")))
        return;
    check_added_tolerations(c, AT(at, "tolerations"), rule_member(spec, "tolerations"),
                            rule_member(old, "tolerations"));
    /* A pod that waits at a gate may still be directed to other nodes. */
    const char *but =
        rule_filled(old, "schedulingGates") ? CHANGEABLE ",nodeSelector,affinity" : CHANGEABLE;
    if (!same_members(spec, old, but))
        bad_forbidden(c, at,
                      "pod updates may not change fields other than `spec.containers[*].image`,"
                      "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
                      "`spec.tolerations` (only additions to existing tolerations),"
                      "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
                      "previously negative)");
}

/* The token of a projected volume is that of the pod's account. */
static void check_token_volumes(struct check *c, const struct at *spec, const struct json_node *of)
{
    const struct at *at = AT(spec, "volumes");
    size_t i = 0;
    if (rule_text(c, of, "serviceAccountName").len)
        return;
    for (const struct json_node *v = rule_first(rule_member(of, "volumes")); v; v = v->next, i++) {
        const struct json_node *sources = rule_member(rule_member(v, "projected"), "sources");
        const struct at *list = AT(AT(AT_ITEM(at, i), "projected"), "sources");
        size_t k = 0;
        for (const struct json_node *source = rule_first(sources); source;
             source = source->next, k++)
            if (rule_member(source, "serviceAccountToken"))
                bad_forbidden(c, AT(AT_ITEM(list, k), "serviceAccountToken"),
                              "must not be specified when serviceAccountName is not set");
    }
}

void kube_validate_pod(struct check *c, const struct json_node *object, const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec");
    const struct at *at = AT(NULL, "spec");
    rule_pod_spec(c, at, spec, rule_member(old, "spec"), true);
    if (!rule_is_kept(c, spec, rule_member(old, "spec")))
        check_token_volumes(c, at, spec);
    check_images(c, at, spec, "containers", false);
    check_images(c, at, spec, "initContainers", false);
    if (old) {
        check_pod_update(c, at, spec, rule_member(old, "spec"));
    } else {
        if (rule_filled(spec, "ephemeralContainers"))
            bad_forbidden(c, AT(at, "ephemeralContainers"), "cannot be set on create");
        if (rule_text(c, spec, "nodeName").len && rule_filled(spec, "schedulingGates"))
            bad_forbidden(c, AT(at, "nodeName"),
                          "cannot be set until all schedulingGates have been cleared");
    }
}

void kube_validate_pod_template(struct check *c, const struct json_node *object,
                                const struct json_node *old)
{
    rule_pod_template(c, AT(NULL, "template"), rule_member(object, "template"),
                      rule_member(old, "template"));
}
