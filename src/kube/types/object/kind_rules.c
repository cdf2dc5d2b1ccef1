#include "kube/types/object/kind_rules.h"

#include "base/macros.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *group, *plural; /* plural NULL: the whole group */
    unsigned flags;
} exceptions[] = {
    {"", "endpoints", KUBE_CREATES_ON_PUT},
    {"", "events", KUBE_CREATES_ON_PUT | KUBE_NO_DEPENDENTS},
    {"", "limitranges", KUBE_CREATES_ON_PUT},
    {"", "namespaces", KUBE_NAME_DNS_LABEL | KUBE_RETURNS_DELETED | KUBE_IS_NAMESPACE},
    {"", "nodes", KUBE_KEEPS_STATUS},
    {"", "persistentvolumeclaims", KUBE_RETURNS_DELETED},
    {"", "persistentvolumes", KUBE_RETURNS_DELETED | KUBE_SETS_FIELDS},
    {"", "pods", KUBE_RETURNS_DELETED | KUBE_STATUS_NO_OWNERS | KUBE_HAS_GRACE | KUBE_SETS_FIELDS},
    {"", "podtemplates", KUBE_RETURNS_DELETED},
    {"", "replicationcontrollers", KUBE_ORPHANS},
    {"", "resourcequotas", KUBE_RETURNS_DELETED},
    {"", "serviceaccounts", KUBE_RETURNS_DELETED},
    {"", "services",
     KUBE_RETURNS_DELETED | KUBE_CREATES_ON_PUT | KUBE_NAME_DNS_LABEL | KUBE_RESERVES_ADDRESSES},
    {"admissionregistration.k8s.io", NULL, KUBE_NEEDS_VERSION | KUBE_STATUS_ONLY},
    {"apiextensions.k8s.io", NULL, KUBE_NEEDS_VERSION | KUBE_IS_DEFINITION},
    {"apiregistration.k8s.io", NULL, KUBE_NEEDS_VERSION | KUBE_STATUS_ONLY},
    {"apps", "daemonsets", KUBE_SETS_FIELDS},
    {"apps", "deployments", KUBE_COUNTS_ANNOTATIONS | KUBE_STATUS_NO_LABELS},
    {"certificates.k8s.io", "certificatesigningrequests", KUBE_IS_CERTIFICATE_REQUEST},
    {"coordination.k8s.io", NULL, KUBE_NEEDS_VERSION | KUBE_CREATES_ON_PUT},
    {"batch", "jobs", KUBE_ORPHANS | KUBE_SETS_FIELDS},
    {"events.k8s.io", NULL, KUBE_CREATES_ON_PUT | KUBE_NO_DEPENDENTS},
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

unsigned kube_kind_rules(const struct kube_kind *kind)
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

static bool path_segment_valid(struct slice name, char why[NAME_ERROR_BYTES])
{
    why[0] = '\0';
    if (slice_is(name, ".") || slice_is(name, ".."))
        snprintf(why, NAME_ERROR_BYTES, "may not be '%.*s'", SLICE_ARGS(name));
    else if (memchr(name.ptr, '/', name.len))
        snprintf(why, NAME_ERROR_BYTES, "may not contain '/'");
    else if (memchr(name.ptr, '%', name.len))
        snprintf(why, NAME_ERROR_BYTES, "may not contain '%%'");
    return !why[0];
}

bool kube_name_valid(const struct kube_kind *kind, struct slice name, char why[NAME_ERROR_BYTES])
{
    unsigned flags = kube_kind_rules(kind);
    if (flags & KUBE_NAME_DNS_LABEL)
        return dns_label_valid(name, why);
    if (flags & KUBE_NAME_IP)
        return ip_name_valid(name, why);
    if (flags & KUBE_NAME_PATH_SEGMENT)
        return path_segment_valid(name, why);
    return subdomain_valid(name, why);
}
