/* DefaultIngressClass: an ingress without a class gets the default one. */
#include "kube/policy/admission/plugins/plugins.h"

#include "kube/policy/admission/plugins/classes.h"

static const void *read_class(struct arena *arena, const struct json_node *object)
{
    return kube_class_read(
        arena, object, SLICE_LITERAL("ingressclass.kubernetes.io/is-default-class"), SLICE_EMPTY);
}

const struct kube_fact_row kube_ingress_classes = {
    .kind = {.prefix = "/registry/ingressclasses/", .read = read_class},
    .is_default = kube_class_is_default,
    .is_better = kube_class_is_better,
};

static bool admit(struct kube_admission_write *write)
{
    const struct kube_meta meta = kube_admission_meta(write);
    const struct kube_lookup_object *class = write->facts->of[KUBE_FACT_INGRESS_CLASSES].standard;
    struct json_node *spec;
    /* Kubernetes still looks at the annotation that was the field once. */
    if (!class ||
        json_node_member(json_node_path(write->object, "metadata.annotations"),
                         SLICE_LITERAL("kubernetes.io/ingress.class")) ||
        json_node_is_set(json_node_path(write->object, "spec.ingressClassName")))
        return true;
    return kube_meta_object(&meta, write->object, "spec", &spec) &&
           kube_meta_set_text(&meta, spec, "ingressClassName", class->name);
}

const struct kube_admission_plugin kube_default_ingress_class = {
    .name = "DefaultIngressClass",
    .needs = 1u << KUBE_FACT_INGRESS_CLASSES,
    .rules = {{"networking.k8s.io", "ingresses", "", KUBE_ON_CREATE}},
    .admit = admit,
};
