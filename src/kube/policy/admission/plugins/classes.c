#include "kube/policy/admission/plugins/classes.h"

const struct kube_class *kube_class_read(struct arena *arena, const struct json_node *object,
                                         struct slice annotation, struct slice other)
{
    struct kube_class *class = arena_calloc(arena, 1, sizeof(*class));
    const struct json_node *annotations = json_node_path(object, "metadata.annotations");
    const struct json_node *expands = json_node_named(object, "allowVolumeExpansion");
    const struct json_node *created = json_node_path(object, "metadata.creationTimestamp");
    struct slice text;
    if (!class || json_node_text(created, arena, &text) != ST_OK ||
        arena_dup(arena, text, &class->created) != ST_OK)
        return NULL;
    class->is_default =
        json_node_is_text(json_node_member(annotations, annotation), "true") ||
        (other.len && json_node_is_text(json_node_member(annotations, other), "true"));
    class->expands = json_node_is_true(expands);
    return class;
}

bool kube_class_is_default(const void *data)
{
    return ((const struct kube_class *)data)->is_default;
}

bool kube_class_is_better(const struct kube_lookup_object *a, const struct kube_lookup_object *b)
{
    const struct kube_class *one = a->data, *other = b->data;
    int order = slice_compare(one->created, other->created);
    return order ? order > 0 : slice_compare(a->name, b->name) < 0;
}
