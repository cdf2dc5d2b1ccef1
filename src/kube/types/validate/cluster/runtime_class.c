/* RuntimeClass. */
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/rules.h"
#include "kube/types/validate/shown.h"
#include "kube/types/validate/workload/pod.h"

/* The resources of a pod's overhead have the rules of a container's limits. */
static void check_overhead(struct check *c, const struct json_node *overhead)
{
    const struct json_node *fixed = rule_member(overhead, "podFixed");
    struct pod_check pod = {0};
    if (!fixed)
        return;
    struct json_node *resources = json_node_new(c->arena, JSON_TYPE_OBJECT);
    struct json_node *limits = json_node_copy(c->arena, fixed);
    if (!resources || !limits ||
        json_node_set(c->arena, resources, SLICE_LITERAL("limits"), limits) != ST_OK)
        c->errors->no_memory = true;
    else
        rule_resources(c, AT(NULL, "overhead"), resources, &pod);
}

#define KEY_MEMBERS                                                                             \
    SHOWN_TEXT("Key", "key"), SHOWN_TEXT("Operator", "operator"), SHOWN_TEXT("Value", "value"), \
        SHOWN_TEXT("Effect", "effect")
SHOWN_TYPE(toleration_key, KEY_MEMBERS);
SHOWN_TYPE(toleration_type, KEY_MEMBERS, SHOWN_NULL("TolerationSeconds", "tolerationSeconds"));

void kube_validate_runtime_class(struct check *c, const struct json_node *object,
                                 const struct json_node *old)
{
    const struct json_node *scheduling = rule_member(object, "scheduling");
    const struct json_node *tolerations = rule_member(scheduling, "tolerations");
    const struct at *at = AT(NULL, "scheduling"), *list = AT(at, "tolerations");
    struct slice handler = rule_text(c, object, "handler");
    rule_one(c, NULL, object, "handler", NEEDED, NAME(dns_label_valid));
    check_overhead(c, rule_member(object, "overhead"));
    rule_labels(c, AT(at, "nodeSelector"), rule_member(scheduling, "nodeSelector"));
    rule_tolerations(c, list, tolerations);
    struct seen seen = {0};
    size_t i = 0;
    for (const struct json_node *item = rule_first(tolerations); item; item = item->next, i++) {
        if (!seen_add(c, &seen, slice_from_text(show_struct(c, item, &toleration_key))))
            bad_repeat_raw(c, AT_ITEM(list, i), show_struct(c, item, &toleration_type));
    }
    if (old && !slice_equal(handler, rule_text(c, old, "handler")))
        bad_text(c, AT(NULL, "handler"), handler, "field is immutable");
}
