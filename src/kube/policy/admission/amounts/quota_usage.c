#include "kube/policy/admission/amounts/quota_usage.h"

#include "base/buf.h"
#include "codec/kube_time.h"
#include "kube/policy/admission/amounts/pod_amounts.h"
#include "kube/policy/admission/amounts/quota_scope.h"
#include "kube/types/validate/check.h"
#include "kube/types/validate/quantity.h"

#include <stdlib.h>

static const struct quantity one = {.amount = 1};

enum usage { USAGE_COUNT, USAGE_PODS, USAGE_SERVICES, USAGE_CLAIMS };

static enum usage usage_of(const struct kube_kind *kind)
{
    if (kube_kind_is(kind, "", "pods"))
        return USAGE_PODS;
    if (kube_kind_is(kind, "", "services"))
        return USAGE_SERVICES;
    return kube_kind_is(kind, "", "persistentvolumeclaims") ? USAGE_CLAIMS : USAGE_COUNT;
}

bool kube_quota_concerns(const struct kube_kind *kind)
{
    return (kind->flags & KUBE_NAMESPACED) && !(kind->flags & KUBE_CREATE_ONLY) &&
           (strcmp(kind->plural, "events") != 0 ||
            (*kind->group && strcmp(kind->group, "events.k8s.io") != 0));
}

static bool is_terminating(const struct json_node *pod)
{
    return rule_int(json_node_named(pod, "spec"), "activeDeadlineSeconds", -1) >= 0;
}

bool kube_quota_applies(const struct kube_kind *kind, struct slice subresource,
                        const struct json_node *object, const struct json_node *old)
{
    bool whole = !subresource.len;
    switch (usage_of(kind)) {
    case USAGE_PODS: /* an update may change only the scope, a resize the amounts */
        if (whole)
            return !old || is_terminating(object) != is_terminating(old);
        return old && slice_is(subresource, "resize");
    case USAGE_SERVICES:
        return whole;
    case USAGE_CLAIMS: /* the status has the amount that an expansion has allocated */
        return whole || slice_is(subresource, "status");
    case USAGE_COUNT:
        break;
    }
    return whole && !old;
}

/* -- Names -- */

/* The rest of a name that begins with a prefix; empty: it does not. */
static struct slice without(struct slice name, const char *prefix)
{
    struct slice start = slice_from_text(prefix);
    return slice_has_prefix(name, start) ? slice_sub(name, start.len, name.len - start.len)
                                         : SLICE_EMPTY;
}

/* "count/pods", "count/deployments.apps" */
static bool counts(const struct kube_kind *kind, struct slice resource)
{
    struct slice rest = without(resource, "count/");
    struct slice plural = slice_from_text(kind->plural), group = slice_from_text(kind->group);
    if (!slice_has_prefix(rest, plural))
        return false;
    rest = slice_sub(rest, plural.len, rest.len - plural.len);
    return group.len
               ? rest.len == group.len + 1 && rest.ptr[0] == '.' && slice_has_suffix(rest, group)
               : !rest.len;
}

/* What a pod has to request or be limited to: "cpu" of "requests.cpu". Empty: none. */
static struct slice requested_by_pod(struct slice resource)
{
    struct slice rest = without(resource, "requests.");
    bool native =
        rule_one_of(resource, "cpu,memory,ephemeral-storage") || resource_is_huge_page(resource);
    if (native)
        return resource;
    if (rule_one_of(rest, "cpu,memory,ephemeral-storage") || resource_is_huge_page(rest) ||
        !resource_is_native(resource) ||
        slice_has_prefix(rest, SLICE_LITERAL("deviceclass.resource.kubernetes.io/")))
        return rest;
    return SLICE_EMPTY;
}

static struct slice limited_by_pod(struct slice resource)
{
    struct slice rest = without(resource, "limits.");
    return rule_one_of(rest, "cpu,memory,ephemeral-storage") ? rest : SLICE_EMPTY;
}

#define OF_CLASS ".storageclass.storage.k8s.io/"

bool kube_quota_is_number(const struct kube_kind *kind, struct slice resource)
{
    /* Some kinds of the core group are also counted by their plain names. */
    return counts(kind, resource) ||
           (!*kind->group && slice_is(resource, kind->plural) &&
            rule_one_of(resource, "configmaps,resourcequotas,replicationcontrollers,secrets"));
}

bool kube_quota_knows(const struct kube_kind *kind, struct slice resource)
{
    if (kube_quota_is_number(kind, resource))
        return true;
    switch (usage_of(kind)) {
    case USAGE_PODS:
        return slice_is(resource, "pods") || requested_by_pod(resource).len ||
               limited_by_pod(resource).len;
    case USAGE_SERVICES:
        return rule_one_of(resource, "services,services.nodeports,services.loadbalancers");
    case USAGE_CLAIMS:
        return rule_one_of(resource, "persistentvolumeclaims,requests.storage") ||
               slice_has_suffix(resource, SLICE_LITERAL(OF_CLASS "persistentvolumeclaims")) ||
               slice_has_suffix(resource, SLICE_LITERAL(OF_CLASS "requests.storage"));
    case USAGE_COUNT:
        break;
    }
    return false;
}

bool kube_quota_has_scopes_for(const struct kube_kind *kind)
{
    return usage_of(kind) == USAGE_PODS || usage_of(kind) == USAGE_CLAIMS;
}

bool kube_quota_has_scopes(const struct kube_quota_object *object, const struct json_node *spec,
                           struct arena *arena)
{
    switch (usage_of(object->kind)) {
    case USAGE_PODS:
        return kube_quota_scopes_match(spec, KUBE_QUOTA_SCOPES_OF_PODS, object->object, arena);
    case USAGE_CLAIMS:
        return kube_quota_scopes_match(spec, KUBE_QUOTA_SCOPES_OF_CLAIMS, object->object, arena);
    default:
        return kube_quota_scopes_match(spec, KUBE_QUOTA_SCOPES_OF_OTHERS, object->object, arena);
    }
}

/* -- Pods -- */

/* A pod that has ended uses nothing; it is only counted. */
static bool has_ended(const struct json_node *pod)
{
    const struct json_node *phase = json_node_path(pod, "status.phase");
    return json_node_is_text(phase, "Failed") || json_node_is_text(phase, "Succeeded");
}

/* As in Kubernetes the period is added to a time that contains it already. */
bool kube_quota_pod_end(const struct kube_quota_object *object, int64_t *ret_s)
{
    const struct json_node *metadata = json_node_named(object->object, "metadata");
    const struct json_node *at = json_node_named(metadata, "deletionTimestamp");
    int64_t grace_s, deleted_s;
    int32_t nanos;
    if (usage_of(object->kind) != USAGE_PODS || !at || has_ended(object->object) ||
        !json_node_int(json_node_named(metadata, "deletionGracePeriodSeconds"), &grace_s) ||
        grace_s < 0 || grace_s > INT32_MAX || !kube_time_read(at->text, &deleted_s, &nanos))
        return false;
    *ret_s = deleted_s + grace_s;
    return true;
}

typedef struct slice (*resource_name)(struct slice resource);

/* The amounts of one list of a pod, by the names that they have in the quota. */
static enum status use_list(const struct json_node *pod, enum kube_pod_list list,
                            resource_name name_of, struct arena *arena, struct kube_amounts *usage)
{
    struct kube_amounts sums;
    struct slice *names = arena_calloc(arena, usage->count, sizeof(*names));
    size_t count = 0;
    if (!names)
        return ST_NOMEM;
    for (size_t i = 0; i < usage->count; i++) {
        names[count] = name_of(usage->items[i].name);
        count += names[count].len > 0;
    }
    TRY(kube_amounts_init(&sums, arena, names, count));
    TRY(kube_pod_amounts(pod, list, KUBE_POD_WITH_OVERHEAD, arena, &sums));
    for (size_t i = 0; i < usage->count; i++) {
        struct kube_amount *to = &usage->items[i];
        const struct kube_amount *from = kube_amounts_find(&sums, name_of(to->name));
        if (!from || !from->known)
            continue;
        to->known = true;
        to->value = from->value;
    }
    return ST_OK;
}

static enum status use_of_pod(const struct kube_quota_object *object, struct arena *arena,
                              struct kube_amounts *usage)
{
    const struct json_node *pod = object->object;
    struct kube_amount *pods = kube_amounts_find(usage, SLICE_LITERAL("pods"));
    if (object->ended || has_ended(pod))
        return ST_OK;
    if (pods)
        kube_amount_add(pods, &one);
    TRY(use_list(pod, KUBE_POD_REQUESTS, requested_by_pod, arena, usage));
    return use_list(pod, KUBE_POD_LIMITS, limited_by_pod, arena, usage);
}

/* -- Services -- */

static uint64_t count_node_ports(const struct json_node *spec)
{
    const struct json_node *ports = json_node_named(spec, "ports");
    const struct json_node *allocates = json_node_named(spec, "allocateLoadBalancerNodePorts");
    bool balances = json_node_text_is(spec, "type", "LoadBalancer");
    uint64_t given = 0;
    if (!balances && !json_node_text_is(spec, "type", "NodePort"))
        return 0;
    if (!balances || !allocates || allocates->truth)
        return ports ? ports->count : 0;
    for (const struct json_node *port = rule_first(ports); port; port = port->next)
        given += rule_int(port, "nodePort", 0) != 0;
    return given;
}

static void use_of_service(const struct json_node *service, struct kube_amounts *usage)
{
    const struct json_node *spec = json_node_named(service, "spec");
    const struct quantity ports = {.amount = count_node_ports(spec)};
    bool balances = json_node_text_is(spec, "type", "LoadBalancer");
    const struct quantity balancers = {.amount = balances};
    for (size_t i = 0; i < usage->count; i++) {
        struct kube_amount *amount = &usage->items[i];
        if (slice_is(amount->name, "services"))
            kube_amount_add(amount, &one);
        else if (slice_is(amount->name, "services.nodeports"))
            kube_amount_add(amount, &ports);
        else if (slice_is(amount->name, "services.loadbalancers"))
            kube_amount_add(amount, &balancers);
    }
}

/* -- Claims -- */

static bool storage_of(const struct json_node *claim, struct quantity *ret_storage)
{
    const struct json_node *wanted = json_node_path(claim, "spec.resources.requests.storage");
    const struct json_node *given = json_node_path(claim, "status.allocatedResources.storage");
    if (!wanted)
        return false;
    struct quantity storage = kube_amount_read(wanted), other = {0};
    if (given)
        other = kube_amount_read(given);
    if (given && quantity_compare(&other, &storage) > 0)
        storage = other;
    quantity_round_up(&storage, 0);
    *ret_storage = storage;
    return true;
}

/* The resource without the class that it is limited to; empty: another class. */
static struct slice of_class(struct slice resource, struct slice class)
{
    const uint8_t *at = memmem(resource.ptr, resource.len, OF_CLASS, sizeof(OF_CLASS) - 1);
    if (!at)
        return resource;
    size_t rest = (size_t)(at - resource.ptr) + sizeof(OF_CLASS) - 1;
    return class.len && slice_equal(class, slice_sub(resource, 0, (size_t)(at - resource.ptr)))
               ? slice_sub(resource, rest, resource.len - rest)
               : SLICE_EMPTY;
}

static enum status use_of_claim(const struct json_node *claim, struct arena *arena,
                                struct kube_amounts *usage)
{
    struct slice class;
    struct quantity storage;
    bool has_storage = storage_of(claim, &storage);
    const struct json_node *annotations = json_node_path(claim, "metadata.annotations");
    const struct json_node *old =
        json_node_named(annotations, "volume.beta.kubernetes.io/storage-class");
    TRY(json_node_text(old ? old : json_node_path(claim, "spec.storageClassName"), arena, &class));
    for (size_t i = 0; i < usage->count; i++) {
        struct kube_amount *amount = &usage->items[i];
        struct slice resource = of_class(amount->name, class);
        if (slice_is(resource, "persistentvolumeclaims"))
            kube_amount_add(amount, &one);
        else if (has_storage && slice_is(resource, "requests.storage"))
            kube_amount_add(amount, &storage);
    }
    return ST_OK;
}

enum status kube_quota_usage(const struct kube_quota_object *object, struct arena *arena,
                             struct kube_amounts *usage)
{
    if (!usage->count)
        return ST_OK;
    for (size_t i = 0; i < usage->count; i++) {
        if (kube_quota_is_number(object->kind, usage->items[i].name))
            kube_amount_add(&usage->items[i], &one);
    }
    switch (usage_of(object->kind)) {
    case USAGE_PODS:
        return use_of_pod(object, arena, usage);
    case USAGE_SERVICES:
        use_of_service(object->object, usage);
        break;
    case USAGE_CLAIMS:
        return use_of_claim(object->object, arena, usage);
    case USAGE_COUNT:
        break;
    }
    return ST_OK;
}

/* -- Amounts that containers must give -- */

static bool gives(const struct json_node *container, struct slice resource)
{
    struct slice limited = limited_by_pod(resource);
    const struct json_node *resources = json_node_named(container, "resources");
    if (limited.len)
        return json_look_member(json_node_named(resources, "limits"), limited);
    return json_look_member(json_node_named(resources, "requests"), requested_by_pod(resource));
}

/* Names of containers, each once and in order. */
struct names {
    struct arena *arena;
    struct slice *items;
    size_t count;
};

static int by_text(const void *a, const void *b)
{
    const struct slice *left = a, *right = b;
    return slice_compare(*left, *right);
}

static void add_names(struct names *names, const struct json_node *containers,
                      struct slice resource)
{
    for (const struct json_node *item = rule_first(containers); item; item = item->next) {
        struct slice name;
        if (!gives(item, resource) &&
            json_node_text(json_node_named(item, "name"), names->arena, &name) == ST_OK)
            names->items[names->count++] = name;
    }
}

static enum status write_names(struct names *names, struct slice resource, struct buf *to)
{
    if (!names->count)
        return ST_OK;
    qsort(names->items, names->count, sizeof(*names->items), by_text);
    TRY(buf_append_text(to, to->len ? "; " : "must specify "));
    TRY(buf_append_format(to, "%.*s for: ", SLICE_ARGS(resource)));
    for (size_t i = 0; i < names->count; i++) {
        if (i && slice_equal(names->items[i], names->items[i - 1]))
            continue;
        TRY(buf_append_text(to, i ? "," : ""));
        TRY(buf_append(to, names->items[i]));
    }
    return ST_OK;
}

enum status kube_quota_missing(const struct kube_quota_object *object, struct arena *arena,
                               const struct kube_amounts *required, struct slice *ret_missing)
{
    AUTO(buf_fini) struct buf text = {0};
    const struct json_node *spec = json_node_named(object->object, "spec");
    const struct json_node *containers = json_node_named(spec, "containers");
    const struct json_node *init = json_node_named(spec, "initContainers");
    *ret_missing = SLICE_EMPTY;
    size_t most = rule_count(containers) + rule_count(init);
    if (usage_of(object->kind) != USAGE_PODS || kube_pod_has_own_amounts(object->object) || !most)
        return ST_OK;
    struct names names = {.arena = arena, .items = arena_calloc(arena, most, sizeof(struct slice))};
    if (!names.items)
        return ST_NOMEM;
    for (size_t i = 0; i < required->count; i++) {
        struct slice resource = required->items[i].name;
        if (!rule_one_of(resource,
                         "cpu,memory,requests.cpu,requests.memory,limits.cpu,limits.memory"))
            continue;
        names.count = 0;
        add_names(&names, containers, resource);
        add_names(&names, init, resource);
        TRY(write_names(&names, resource, &text));
    }
    return arena_ran_out(arena) ? ST_NOMEM : arena_dup(arena, buf_slice(&text), ret_missing);
}
