#include "kube/types/object/label_match.h"

static const struct json_node *first_of(const struct json_node *list, enum json_type type)
{
    return list && list->type == type ? list->first : NULL;
}

static bool has_value(const struct json_node *requirement, const struct json_node *value)
{
    const struct json_node *one = first_of(json_node_named(requirement, "values"), JSON_TYPE_ARRAY);
    while (one && !json_node_equal(one, value))
        one = one->next;
    return one;
}

static bool is_met(const struct json_node *requirement, const struct json_node *labels)
{
    const struct json_node *key = json_node_named(requirement, "key");
    const struct json_node *operator= json_node_named(requirement, "operator");
    const struct json_node *value = NULL;
    if (key && key->type == JSON_TYPE_STRING && labels)
        value = json_node_member(labels, key->text);
    if (json_node_is_text(operator, "In"))
        return value && has_value(requirement, value);
    if (json_node_is_text(operator, "NotIn"))
        return !value || !has_value(requirement, value);
    if (json_node_is_text(operator, "Exists"))
        return value;
    return json_node_is_text(operator, "DoesNotExist") && !value;
}

bool kube_label_match(const struct json_node *selector, const struct json_node *labels)
{
    const struct json_node *one;
    if (!selector || selector->type != JSON_TYPE_OBJECT)
        return false;
    one = first_of(json_node_named(selector, "matchLabels"), JSON_TYPE_OBJECT);
    for (; one; one = one->next) {
        const struct json_node *value = labels ? json_node_member(labels, one->key) : NULL;
        if (!value || value->type != one->type || !slice_equal(value->text, one->text))
            return false;
    }
    one = first_of(json_node_named(selector, "matchExpressions"), JSON_TYPE_ARRAY);
    for (; one; one = one->next)
        if (!is_met(one, labels))
            return false;
    return true;
}
