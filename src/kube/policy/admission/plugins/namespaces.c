#include "kube/policy/admission/plugins/namespaces.h"

/* NULL: the arena ran out. */
static const void *read_labels(struct arena *arena, const struct json_node *object)
{
    const struct json_node *labels = json_node_path(object, "metadata.labels");
    struct json_node *copy = json_node_new(arena, JSON_TYPE_OBJECT);
    for (const struct json_node *label = labels ? labels->first : NULL; copy && label;
         label = label->next) {
        struct slice text;
        struct json_node *value = NULL;
        if (json_node_text(label, arena, &text) == ST_OK)
            value = json_node_new_text(arena, text);
        if (!value || json_node_set(arena, copy, label->key, value) != ST_OK)
            return NULL;
    }
    return copy;
}

bool kube_labels_concern_pods(const struct json_node *labels)
{
    static const struct slice prefix = SLICE_LITERAL("pod-security.kubernetes.io/");
    const struct json_node *label = labels ? labels->first : NULL;
    while (label && !slice_has_prefix(label->key, prefix))
        label = label->next;
    return label;
}

static bool keeps(const void *labels)
{
    return kube_labels_concern_pods(labels);
}

const struct kube_fact_row kube_namespace_labels = {
    .kind = {.prefix = "/registry/namespaces/", .read = read_labels, .keeps = keeps},
    .is_own_namespace = true,
};

const struct json_node *kube_labels_of_namespace(const struct kube_facts *facts)
{
    const struct kube_lookup_object *namespace = facts->of[KUBE_FACT_NAMESPACES].named;
    return namespace ? namespace->data : NULL;
}
