/* PersistentVolumeClaim and PersistentVolume. */
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/quantity.h"
#include "kube/types/validate/rules.h"
#include "kube/types/validate/workload/volume.h"

#define ACCESS_MODES "ReadOnlyMany,ReadWriteMany,ReadWriteOnce,ReadWriteOncePod"

void rule_access_modes(struct check *c, const struct at *at, const struct json_node *modes)
{
    bool alone = false, others = false;
    for (const struct json_node *item = rule_first(modes); item; item = item->next) {
        struct slice mode = rule_text_of(c, item);
        rule_choice(c, at, mode, ACCESS_MODES);
        if (slice_is(mode, "ReadWriteOncePod"))
            alone = true;
        else
            others = others || rule_one_of(mode, ACCESS_MODES);
    }
    if (alone && others)
        bad_forbidden(c, at, "may not use ReadWriteOncePod with other access modes");
}

/* -- Claims -- */

static void check_data_source(struct check *c, const struct at *at, const struct json_node *source)
{
    struct slice group = rule_text(c, source, "apiGroup"), kind = rule_text(c, source, "kind");
    /* Kubernetes drops other references without a group. */
    if (!source || (!group.len && !slice_is(kind, "PersistentVolumeClaim")))
        return;
    rule_one(c, at, source, "name", NEEDED, WHY(NULL));
    if (!kind.len)
        bad_required(c, AT(at, "kind"), NULL);
    rule_one(c, at, source, "apiGroup", IF_SOME, NAME(subdomain_valid));
    rule_one(c, at, source, "namespace", IF_SOME, NAME(dns_label_valid));
}

void rule_claim_spec(struct check *c, const struct at *at, const struct json_node *spec)
{
    const struct json_node *source = rule_member(spec, "dataSource");
    const struct json_node *ref = rule_member(spec, "dataSourceRef");
    rule_one(c, at, spec, "accessModes", NEEDED, WHY("at least 1 access mode is required"));
    rule_selector(c, AT(at, "selector"), rule_member(spec, "selector"));
    rule_access_modes(c, AT(at, "accessModes"), rule_member(spec, "accessModes"));
    const struct json_node *amount = json_node_path(spec, "resources.requests.storage");
    const struct at *in = AT_KEY(AT(at, "resources"), SLICE_LITERAL("storage"));
    if (!amount || amount->type == JSON_TYPE_NULL)
        bad_required(c, in, NULL);
    else
        rule_quantity_positive(c, in, amount);
    rule_one(c, at, spec, "storageClassName", IF_SOME, NAME(subdomain_valid));
    rule_one(c, at, spec, "volumeMode", IF_SET, CHOICE("Block,Filesystem"));
    check_data_source(c, AT(at, "dataSource"), source);
    check_data_source(c, AT(at, "dataSourceRef"), ref ? ref : source);
    rule_one(c, at, spec, "volumeAttributesClassName", IF_SOME, NAME(subdomain_valid));
}

/* The size and the attributes class of a bound claim may change; the class and volume of another
 * may be set once. */
static bool may_change(const struct json_node *object, const struct json_node *old,
                       struct slice name)
{
    const struct json_node *spec = rule_member(old, "spec");
    const struct json_node *was = json_node_member(spec, name);
    bool bound = rule_text_is(rule_member(object, "status"), "phase", "Bound");
    bool unset =
        !was || was->type == JSON_TYPE_NULL || (was->type == JSON_TYPE_STRING && !was->text.len);
    if (slice_is(name, "volumeName"))
        return unset;
    if (slice_is(name, "storageClassName"))
        return !was || was->type == JSON_TYPE_NULL;
    /* These are set by defaults. */
    if (slice_is(name, "volumeMode") && unset)
        return rule_choice_is(rule_member(object, "spec"), "volumeMode", "Filesystem",
                              "Filesystem");
    if (rule_one_of(name, "dataSource,dataSourceRef") && unset)
        return true;
    return bound && rule_one_of(name, "volumeAttributesClassName");
}

static bool same_quantities(struct check *c, const struct json_node *a, const struct json_node *b,
                            bool but_storage)
{
    if (rule_count(a) != rule_count(b))
        return false;
    for (const struct json_node *item = rule_first(a); item; item = item->next) {
        const struct json_node *other = json_node_member(b, item->key);
        if (!other || (quantity_of(c, item) != quantity_of(c, other) &&
                       !(but_storage && slice_is(item->key, "storage"))))
            return false;
    }
    return true;
}

static bool same_spec(struct check *c, const struct json_node *object, const struct json_node *old)
{
    static const char *const names[] = {
        "accessModes", "selector",   "volumeName",    "storageClassName",
        "volumeMode",  "dataSource", "dataSourceRef", "volumeAttributesClassName"};
    const struct json_node *spec = rule_member(object, "spec"), *was = rule_member(old, "spec");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!rule_same_member(spec, was, names[i]) &&
            !may_change(object, old, slice_from_text(names[i])))
            return false;
    }
    bool bound = rule_text_is(rule_member(object, "status"), "phase", "Bound");
    return same_quantities(c, json_node_path(object, "spec.resources.requests"),
                           json_node_path(old, "spec.resources.requests"), bound) &&
           same_quantities(c, json_node_path(object, "spec.resources.limits"),
                           json_node_path(old, "spec.resources.limits"), false);
}

void kube_validate_claim(struct check *c, const struct json_node *object,
                         const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec");
    const struct at *at = AT(NULL, "spec");
    rule_claim_spec(c, at, spec);
    if (!old)
        return;
    if (!same_spec(c, object, old))
        bad_forbidden(c, at,
                      "spec is immutable after creation except resources.requests and "
                      "volumeAttributesClassName for bound claims");
    quantity is = quantity_of(c, json_node_path(object, "spec.resources.requests.storage"));
    quantity was = quantity_of(c, json_node_path(old, "spec.resources.requests.storage"));
    quantity has = quantity_of(c, json_node_path(old, "status.capacity.storage"));
    /* A failed expansion may be taken back, but not below what the volume already has. */
    if (is < was && is <= has)
        bad_forbidden(c, AT(AT(AT(at, "resources"), "requests"), "storage"),
                      "field can not be less than status.capacity");
    rule_immutable_choice(c, AT(NULL, "volumeMode"), rule_member(spec, "volumeMode"),
                          json_node_path(old, "spec.volumeMode"), "Filesystem");
}

/* -- Volumes -- */

static void check_capacity(struct check *c, const struct at *at, const struct json_node *capacity)
{
    if (!rule_count(capacity))
        bad_required(c, at, NULL);
    if (!rule_member(capacity, "storage") || rule_count(capacity) > 1)
        bad_choice_node(c, at, capacity, "storage");
    for (const struct json_node *item = rule_first(capacity); item; item = item->next) {
        int64_t units = quantity_units(quantity_of(c, item));
        if (units < 0)
            bad_int(c, AT_KEY(at, item->key), units, "must be a valid resource quantity");
        rule_quantity_positive(c, AT_KEY(at, item->key), item);
    }
}

static void check_volume_rest(struct check *c, const struct at *at, const struct json_node *spec)
{
    struct slice path = rule_text(c, rule_member(spec, "hostPath"), "path");
    bool root = slice_is(path, "/");
    if (rule_member(spec, "local") && !rule_member(spec, "nodeAffinity"))
        bad_required(c, AT(at, "nodeAffinity"), "Local volume requires node affinity");
    if (root && rule_text_is(spec, "persistentVolumeReclaimPolicy", "Recycle"))
        bad_forbidden(c, AT(at, "persistentVolumeReclaimPolicy"),
                      "may not be 'recycle' for a hostPath mount of '/'");
    rule_one(c, at, spec, "storageClassName", IF_SOME, NAME(subdomain_valid));
    rule_one(c, at, spec, "volumeMode", IF_SET, CHOICE("Block,Filesystem"));
}

/* Members of the spec that are not its source. */
#define NOT_SOURCES                                                                          \
    "accessModes,capacity,claimRef,mountOptions,nodeAffinity,persistentVolumeReclaimPolicy," \
    "storageClassName,volumeMode,volumeAttributesClassName"

static bool has_other_source(const struct json_node *is, const struct json_node *was)
{
    for (const struct json_node *item = rule_first(is); item; item = item->next) {
        if (!rule_one_of(item->key, NOT_SOURCES) &&
            !rule_same_node(item, json_node_member(was, item->key)))
            return true;
    }
    return false;
}

void kube_validate_volume(struct check *c, const struct json_node *object,
                          const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec"), *was = rule_member(old, "spec");
    const struct at *at = AT(NULL, "spec");
    rule_one(c, at, spec, "accessModes", NEEDED, WHY(NULL));
    rule_access_modes(c, AT(at, "accessModes"), rule_member(spec, "accessModes"));
    check_capacity(c, AT(at, "capacity"), rule_member(spec, "capacity"));
    rule_one(c, at, spec, "persistentVolumeReclaimPolicy", IF_SOME,
             CHOICE("Delete,Recycle,Retain"));
    const struct json_node *affinity = rule_member(spec, "nodeAffinity");
    const struct json_node *needed = rule_member(affinity, "required");
    const struct at *in = AT(AT(at, "nodeAffinity"), "required");
    if (affinity && needed)
        rule_node_selector(c, in, needed);
    else if (affinity)
        bad_required(c, in, "must specify required node constraints");
    rule_volume_source(c, at, spec, VOLUME_OF_CLUSTER);
    check_volume_rest(c, at, spec);
    if (!old)
        return;
    /* A source that was removed is a change, too. */
    if (has_other_source(spec, was) || has_other_source(was, spec))
        bad_forbidden(c, AT(at, "persistentvolumesource"),
                      "spec.persistentvolumesource is immutable after creation");
    rule_immutable_choice(c, AT(NULL, "volumeMode"), rule_member(spec, "volumeMode"),
                          rule_member(was, "volumeMode"), "Filesystem");
}
