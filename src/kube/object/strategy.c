#include "kube/object/strategy.h"

#include "kube/object/content.h"

#include <stdio.h>

static const struct {
    const char *group, *plural; /* plural NULL: the whole group */
    unsigned flags;
} exceptions[] = {
    {"", "endpoints", KUBE_CREATES_ON_PUT},
    {"", "events", KUBE_CREATES_ON_PUT},
    {"", "limitranges", KUBE_CREATES_ON_PUT},
    {"", "namespaces", KUBE_NAME_DNS_LABEL | KUBE_RETURNS_DELETED},
    {"", "nodes", KUBE_KEEPS_STATUS},
    {"", "persistentvolumeclaims", KUBE_RETURNS_DELETED},
    {"", "persistentvolumes", KUBE_RETURNS_DELETED},
    {"", "pods", KUBE_RETURNS_DELETED | KUBE_STATUS_NO_OWNERS | KUBE_HAS_GRACE},
    {"", "podtemplates", KUBE_RETURNS_DELETED},
    {"", "resourcequotas", KUBE_RETURNS_DELETED},
    {"", "serviceaccounts", KUBE_RETURNS_DELETED},
    {"", "services", KUBE_RETURNS_DELETED | KUBE_CREATES_ON_PUT | KUBE_NAME_DNS_LABEL},
    {"admissionregistration.k8s.io", NULL, KUBE_NEEDS_VERSION | KUBE_STATUS_ONLY},
    {"apiextensions.k8s.io", NULL, KUBE_NEEDS_VERSION},
    {"apiregistration.k8s.io", NULL, KUBE_NEEDS_VERSION | KUBE_STATUS_ONLY},
    {"apps", "deployments", KUBE_COUNTS_ANNOTATIONS | KUBE_STATUS_NO_LABELS},
    {"coordination.k8s.io", NULL, KUBE_NEEDS_VERSION | KUBE_CREATES_ON_PUT},
    {"events.k8s.io", NULL, KUBE_CREATES_ON_PUT},
    {"flowcontrol.apiserver.k8s.io", NULL, KUBE_STATUS_ONLY},
    {"node.k8s.io", NULL, KUBE_NEEDS_VERSION | KUBE_CREATES_ON_PUT},
    {"policy", NULL, KUBE_NEEDS_VERSION},
    {"rbac.authorization.k8s.io", NULL, KUBE_CREATES_ON_PUT | KUBE_NAME_PATH_SEGMENT},
    {"networking.k8s.io", "ipaddresses", KUBE_NAME_IP},
    {"networking.k8s.io", "servicecidrs", KUBE_STATUS_ONLY},
    {"resource.k8s.io", NULL, KUBE_RETURNS_DELETED | KUBE_STATUS_ONLY},
    {"storage.k8s.io", "csidrivers", KUBE_RETURNS_DELETED | KUBE_NEEDS_VERSION},
    {"storage.k8s.io", "csinodes", KUBE_RETURNS_DELETED | KUBE_NEEDS_VERSION},
    {"storage.k8s.io", "csistoragecapacities", KUBE_NEEDS_VERSION},
    {"storage.k8s.io", "storageclasses", KUBE_RETURNS_DELETED},
    {"storage.k8s.io", "volumeattachments",
     KUBE_RETURNS_DELETED | KUBE_NEEDS_VERSION | KUBE_STATUS_ONLY},
    {"storage.k8s.io", "volumeattributesclasses", KUBE_RETURNS_DELETED},
};

unsigned kube_strategy(const struct kube_kind *kind)
{
    if (kind->flags & KUBE_CUSTOM)
        return KUBE_NEEDS_VERSION | KUBE_STATUS_ONLY;
    for (size_t i = 0; i < COUNT_OF(exceptions); i++) {
        if (strcmp(exceptions[i].group, kind->group) == 0 &&
            (!exceptions[i].plural || strcmp(exceptions[i].plural, kind->plural) == 0))
            return exceptions[i].flags;
    }
    return 0;
}

static bool path_segment_valid(struct slice name, char why[NAME_FAULT_BYTES])
{
    why[0] = '\0';
    if (slice_equal(name, SLICE_LITERAL(".")) || slice_equal(name, SLICE_LITERAL("..")))
        snprintf(why, NAME_FAULT_BYTES, "may not be '%.*s'", SLICE_ARGS(name));
    else if (memchr(name.ptr, '/', name.len))
        snprintf(why, NAME_FAULT_BYTES, "may not contain '/'");
    else if (memchr(name.ptr, '%', name.len))
        snprintf(why, NAME_FAULT_BYTES, "may not contain '%%'");
    return !why[0];
}

bool kube_name_valid(const struct kube_kind *kind, struct slice name, char why[NAME_FAULT_BYTES])
{
    unsigned flags = kube_strategy(kind);
    if (flags & KUBE_NAME_DNS_LABEL)
        return dns_label_valid(name, why);
    if (flags & KUBE_NAME_IP)
        return ip_name_valid(name, why);
    if (flags & KUBE_NAME_PATH_SEGMENT)
        return path_segment_valid(name, why);
    return subdomain_valid(name, why);
}

static bool is_core(const struct kube_kind *kind, const char *plural)
{
    return !kind->group[0] && strcmp(kind->plural, plural) == 0;
}

static bool set_phase(const struct kube_meta *meta, struct json_node *object, const char *phase)
{
    struct json_node *status;
    return kube_meta_object(meta, object, "status", &status) &&
           kube_meta_set_text(meta, status, "phase", slice_from_text(phase));
}

static bool set_name_label(const struct kube_meta *meta, struct json_node *object)
{
    struct json_node *labels, *metadata = json_node_named(object, "metadata");
    struct slice name;
    if (json_node_text(json_node_named(metadata, "name"), meta->arena, &name) != ST_OK)
        return kube_fail_engine(meta->status, ST_NOMEM);
    return kube_meta_object(meta, metadata, "labels", &labels) &&
           kube_meta_set_text(meta, labels, "kubernetes.io/metadata.name", name);
}

bool kube_strategy_update(const struct kube_meta *meta, struct json_node *object)
{
    return kube_content_settle(meta, object) &&
           (!is_core(meta->kind, "namespaces") || set_name_label(meta, object));
}

/* The finalizer that keeps a namespace until its content is gone, and the label of its name. */
static bool create_namespace(const struct kube_meta *meta, struct json_node *object)
{
    struct json_node *spec, *list, *has;
    struct json_node *item = json_node_new_text(meta->arena, SLICE_LITERAL("kubernetes"));
    if (!kube_meta_object(meta, object, "spec", &spec) || !set_name_label(meta, object))
        return false;
    list = json_node_named(spec, "finalizers");
    if (!list || list->type != JSON_TYPE_ARRAY)
        list = json_node_new(meta->arena, JSON_TYPE_ARRAY);
    if (!list || !item ||
        json_node_set(meta->arena, spec, SLICE_LITERAL("finalizers"), list) != ST_OK)
        return kube_fail_engine(meta->status, ST_NOMEM);
    has = json_node_first(list);
    while (has && !json_node_is_text(has, "kubernetes"))
        has = json_node_next(has);
    if (!has && json_node_insert(list, NULL, item) != ST_OK)
        return kube_fail_engine(meta->status, ST_NOMEM);
    return set_phase(meta, object, "Active");
}

bool kube_strategy_create(const struct kube_meta *meta, struct json_node *object)
{
    struct json_node *status = json_node_named(object, "status");
    if (status && meta->kind->flags & KUBE_HAS_STATUS &&
        !(kube_strategy(meta->kind) & KUBE_KEEPS_STATUS))
        json_node_remove(object, status);
    if (is_core(meta->kind, "namespaces"))
        return create_namespace(meta, object);
    if (is_core(meta->kind, "pods") || is_core(meta->kind, "persistentvolumes") ||
        is_core(meta->kind, "persistentvolumeclaims"))
        return set_phase(meta, object, "Pending");
    return kube_content_settle(meta, object);
}

int64_t kube_strategy_grace_s(const struct kube_kind *kind, const struct json_node *object,
                              int64_t asked_s)
{
    const struct json_node *node = json_node_path(object, "spec.nodeName");
    const struct json_node *phase = json_node_path(object, "status.phase");
    int64_t grace_s = 30;
    if (!is_core(kind, "pods") || !node || node->type != JSON_TYPE_STRING || !node->text.len ||
        json_node_is_text(phase, "Failed") || json_node_is_text(phase, "Succeeded"))
        return 0;
    if (asked_s >= 0)
        return asked_s;
    if (!json_node_int(json_node_path(object, "spec.terminationGracePeriodSeconds"), &grace_s) ||
        grace_s < 0)
        grace_s = 30;
    return grace_s;
}
