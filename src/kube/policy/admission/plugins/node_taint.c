/* TaintNodesByCondition: no pod is scheduled to a new node before it is ready. */
#include "kube/policy/admission/plugins/plugins.h"

#define KEY "node.kubernetes.io/not-ready"
#define EFFECT "NoSchedule"

static bool has_taint(const struct json_node *list)
{
    for (const struct json_node *item = list->first; item; item = item->next)
        if (json_node_text_is(item, "key", KEY) && json_node_text_is(item, "effect", EFFECT))
            return true;
    return false;
}

static bool admit(struct kube_admission_write *write)
{
    const struct kube_meta meta = kube_admission_meta(write);
    struct json_node *spec, *list;
    if (!kube_meta_object(&meta, write->object, "spec", &spec) ||
        !kube_meta_array(&meta, spec, "taints", &list))
        return false;
    if (has_taint(list))
        return true;
    struct json_node *taint = json_node_new(write->arena, JSON_TYPE_OBJECT);
    if (!taint || json_node_insert(list, NULL, taint) != ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    return kube_meta_set_text(&meta, taint, "key", SLICE_LITERAL(KEY)) &&
           kube_meta_set_text(&meta, taint, "effect", SLICE_LITERAL(EFFECT));
}

const struct kube_admission_plugin kube_node_taint = {
    .name = "TaintNodesByCondition",
    .rules = {{"", "nodes", "", KUBE_ON_CREATE}},
    .admit = admit,
};
