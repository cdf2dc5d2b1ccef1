/*
 * DefaultTolerationSeconds: a pod stays for five minutes on a node that is not ready or cannot be
 * reached, unless it says otherwise.
 */
#include "kube/policy/admission/plugins/plugins.h"

enum { TOLERATION_S = 300 };

static bool is_text_or_empty(const struct json_node *node, const char *text)
{
    return !node || node->type != JSON_TYPE_STRING || !node->text.len ||
           json_node_is_text(node, text);
}

static bool tolerates(const struct json_node *list, const char *key)
{
    for (const struct json_node *item = list->first; item; item = item->next)
        if (is_text_or_empty(json_node_named(item, "key"), key) &&
            is_text_or_empty(json_node_named(item, "effect"), "NoExecute"))
            return true;
    return false;
}

static bool add(struct kube_admission_write *write, struct json_node *list, const char *key)
{
    const struct kube_meta meta = kube_admission_meta(write);
    struct json_node *item = json_node_new(write->arena, JSON_TYPE_OBJECT);
    if (!item || json_node_insert(list, NULL, item) != ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    return kube_meta_set_text(&meta, item, "key", slice_from_text(key)) &&
           kube_meta_set_text(&meta, item, "operator", SLICE_LITERAL("Exists")) &&
           kube_meta_set_text(&meta, item, "effect", SLICE_LITERAL("NoExecute")) &&
           kube_meta_set_int(&meta, item, "tolerationSeconds", TOLERATION_S);
}

static bool admit(struct kube_admission_write *write)
{
    static const char *const keys[] = {"node.kubernetes.io/not-ready",
                                       "node.kubernetes.io/unreachable"};
    const struct kube_meta meta = kube_admission_meta(write);
    struct json_node *list, *spec = json_node_named(write->object, "spec");
    bool lacks[COUNT_OF(keys)];
    if (!spec || spec->type != JSON_TYPE_OBJECT)
        return true;
    if (!kube_meta_array(&meta, spec, "tolerations", &list))
        return false;
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        lacks[i] = !tolerates(list, keys[i]);
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (lacks[i] && !add(write, list, keys[i]))
            return false;
    return true;
}

const struct kube_admission_plugin kube_default_tolerations = {
    .name = "DefaultTolerationSeconds",
    .rules = {{"", "pods", "", KUBE_ON_CREATE | KUBE_ON_UPDATE}},
    .admit = admit,
};
