/*
 * DefaultStorageClass: a claim without a class gets the default one. StorageObjectInUseProtection:
 * claims and volumes have a finalizer, which a controller removes when they are not used.
 * PersistentVolumeClaimResize: a claim can grow only if its class allows it.
 */
#include "kube/policy/admission/plugins/plugins.h"

#include "kube/policy/admission/plugins/classes.h"
#include "kube/types/defaults/quantity.h"

/* -- Classes -- */

static const void *read_class(struct arena *arena, const struct json_node *object)
{
    return kube_class_read(arena, object,
                           SLICE_LITERAL("storageclass.kubernetes.io/is-default-class"),
                           SLICE_LITERAL("storageclass.beta.kubernetes.io/is-default-class"));
}

const struct kube_fact_row kube_storage_classes = {
    .kind = {.prefix = "/registry/storageclasses/", .read = read_class},
    .named_by = "spec.storageClassName",
    .is_default = kube_class_is_default,
    .is_better = kube_class_is_better,
};

/* -- The default -- */

static bool set_class(struct kube_admission_write *write)
{
    const struct kube_meta meta = kube_admission_meta(write);
    const struct kube_lookup_object *class = write->facts->of[KUBE_FACT_STORAGE_CLASSES].standard;
    struct json_node *spec = json_node_named(write->object, "spec");
    /* Kubernetes still looks at the annotation that was the field once. */
    if (!class || !spec || spec->type != JSON_TYPE_OBJECT ||
        json_node_member(json_node_path(write->object, "metadata.annotations"),
                         SLICE_LITERAL("volume.beta.kubernetes.io/storage-class")) ||
        json_node_is_set(json_node_path(write->object, "spec.storageClassName")))
        return true;
    return kube_meta_set_text(&meta, spec, "storageClassName", class->name);
}

const struct kube_admission_plugin kube_default_storage_class = {
    .name = "DefaultStorageClass",
    .needs = 1u << KUBE_FACT_STORAGE_CLASSES,
    .rules = {{"", "persistentvolumeclaims", "", KUBE_ON_CREATE}},
    .admit = set_class,
};

/* -- Protection -- */

static const char *finalizer_of(const struct kube_kind *kind)
{
    if (kube_kind_is(kind, "", "persistentvolumeclaims"))
        return "kubernetes.io/pvc-protection";
    if (kube_kind_is(kind, "", "persistentvolumes"))
        return "kubernetes.io/pv-protection";
    return "kubernetes.io/vac-protection";
}

static bool protect(struct kube_admission_write *write)
{
    const struct kube_meta meta = kube_admission_meta(write);
    const char *finalizer = finalizer_of(write->kind);
    struct json_node *metadata, *list;
    if (kube_meta_has_finalizer(write->object, finalizer))
        return true;
    if (!kube_meta_object(&meta, write->object, "metadata", &metadata) ||
        !kube_meta_array(&meta, metadata, "finalizers", &list))
        return false;
    struct json_node *item = json_node_new_text(write->arena, slice_from_text(finalizer));
    return (item && json_node_insert(list, NULL, item) == ST_OK) ||
           kube_fail_engine(write->status, ST_NOMEM);
}

const struct kube_admission_plugin kube_storage_protection = {
    .name = "StorageObjectInUseProtection",
    .rules = {{"", "persistentvolumeclaims", "", KUBE_ON_CREATE},
              {"", "persistentvolumes", "", KUBE_ON_CREATE},
              {"storage.k8s.io", "volumeattributesclasses", "", KUBE_ON_CREATE}},
    .admit = protect,
};

/* -- Growing -- */

/* A missing amount is 0. */
static struct quantity amount_of(struct arena *arena, const struct json_node *claim)
{
    struct quantity amount = {0};
    struct slice text;
    const struct json_node *node = json_node_path(claim, "spec.resources.requests.storage");
    if (json_node_text(node, arena, &text) == ST_OK && text.len && !quantity_read(text, &amount))
        amount = (struct quantity){0};
    return amount;
}

static bool check_size(struct kube_admission_write *write)
{
    struct quantity now = amount_of(write->arena, write->object);
    struct quantity before = amount_of(write->arena, write->old);
    if (quantity_compare(&now, &before) <= 0)
        return true;
    if (!json_node_text_is(write->old, "status.phase", "Bound"))
        return kube_admission_forbid(write, "Only bound persistent volume claims can be expanded");
    const struct kube_lookup_object *class = write->facts->of[KUBE_FACT_STORAGE_CLASSES].named;
    return (class && ((const struct kube_class *)class->data)->expands &&
            json_node_equal(json_node_path(write->old, "spec.storageClassName"),
                            json_node_path((const struct json_node *)write->object,
                                           "spec.storageClassName"))) ||
           kube_admission_forbid(write, "only dynamically provisioned pvc can be resized and the "
                                        "storageclass that provisions the pvc must support resize");
}

const struct kube_admission_plugin kube_claim_resize = {
    .name = "PersistentVolumeClaimResize",
    .needs = 1u << KUBE_FACT_STORAGE_CLASSES,
    .rules = {{"", "persistentvolumeclaims", "", KUBE_ON_UPDATE}},
    .check = check_size,
};
