#include "kube/types/object/condition.h"

struct json_node *kube_condition_find(struct json_node *status, const char *type)
{
    struct json_node *list = json_node_named(status, "conditions");
    struct json_node *item = list && list->type == JSON_TYPE_ARRAY ? json_node_first(list) : NULL;
    while (item && !json_node_text_is(item, "type", type))
        item = json_node_next(item);
    return item;
}

static bool add(const struct kube_meta *meta, struct json_node *status,
                struct json_node **ret_condition)
{
    struct json_node *list;
    struct json_node *condition = json_node_new(meta->arena, JSON_TYPE_OBJECT);
    if (!kube_meta_array(meta, status, "conditions", &list))
        return false;
    if (!condition || json_node_insert(list, NULL, condition) != ST_OK)
        return kube_fail_engine(meta->status, ST_NOMEM);
    *ret_condition = condition;
    return true;
}

bool kube_condition_set(const struct kube_meta *meta, struct json_node *status, const char *type,
                        bool truth, const char *reason, struct slice message)
{
    char now[KUBE_TIME_BYTES];
    const char *value = truth ? "True" : "False";
    struct json_node *condition = kube_condition_find(status, type);
    bool same = condition && json_node_text_is(condition, "status", value);
    if (!condition && !add(meta, status, &condition))
        return false;
    kube_time_text(meta->now_s, now);
    return kube_meta_set_text(meta, condition, "type", slice_from_text(type)) &&
           kube_meta_set_text(meta, condition, "status", slice_from_text(value)) &&
           (same ||
            kube_meta_set_text(meta, condition, "lastTransitionTime", slice_from_text(now))) &&
           kube_meta_set_text(meta, condition, "reason", slice_from_text(reason)) &&
           kube_meta_set_text(meta, condition, "message", message);
}
