/* StorageClass and VolumeAttributesClass. */
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/rules.h"

enum { PARAMETERS_MAX = 512, PARAMETERS_BYTES_MAX = 256 * 1024 };

static void check_provisioner(struct check *c, const struct at *at, struct slice name)
{
    uint8_t *lower = name.len ? arena_alloc(c->arena, name.len) : NULL;
    if (!name.len) {
        bad_required(c, at, NULL);
        return;
    }
    if (!lower) {
        c->errors->no_memory = true;
        return;
    }
    for (size_t i = 0; i < name.len; i++)
        lower[i] = name.ptr[i] >= 'A' && name.ptr[i] <= 'Z' ? name.ptr[i] | 0x20 : name.ptr[i];
    rule_name(c, at, slice_of(lower, name.len), label_key_valid);
}

static void check_parameters(struct check *c, const struct json_node *parameters, bool needed)
{
    const struct at *at = AT(NULL, "parameters");
    size_t bytes = 0;
    if (rule_count(parameters) > PARAMETERS_MAX) {
        bad_long(c, at, PARAMETERS_MAX);
        return;
    }
    for (const struct json_node *item = rule_first(parameters); item; item = item->next) {
        if (!item->key.len)
            bad_text(c, at, item->key, "field can not be empty.");
        bytes += item->key.len + rule_text_of(c, item).len;
    }
    if (bytes > PARAMETERS_BYTES_MAX)
        bad_long(c, at, PARAMETERS_BYTES_MAX);
    if (needed && !rule_count(parameters))
        bad_required(c, at, "must contain at least one key/value pair");
}

static void check_topology(struct check *c, const struct at *at, const struct json_node *item,
                           struct seen *keys)
{
    const struct at *values = AT(at, "values");
    struct seen seen = {0};
    struct slice key = rule_text(c, item, "key");
    size_t i = 0;
    if (!rule_filled(item, "values"))
        bad_required(c, values, NULL);
    for (const struct json_node *value = rule_first(rule_member(item, "values")); value;
         value = value->next, i++) {
        if (!seen_add(c, &seen, rule_text_of(c, value)))
            bad_repeat(c, AT_ITEM(values, i), rule_text_of(c, value));
    }
    rule_name(c, AT(at, "key"), key, label_key_valid);
    if (!seen_add(c, keys, key))
        bad_repeat(c, AT(at, "key"), key);
}

static void check_topologies(struct check *c, const struct json_node *list)
{
    const struct at *at = AT(NULL, "allowedTopologies");
    size_t i = 0;
    for (const struct json_node *term = rule_first(list); term; term = term->next, i++) {
        const struct at *items = AT(AT_ITEM(at, i), "matchLabelExpressions");
        struct seen keys = {0};
        size_t j = 0;
        for (const struct json_node *item = rule_first(rule_member(term, "matchLabelExpressions"));
             item; item = item->next)
            check_topology(c, AT_ITEM(items, j++), item, &keys);
    }
}

void kube_validate_storage_class(struct check *c, const struct json_node *object,
                                 const struct json_node *old)
{
    const struct json_node *mode = rule_member(object, "volumeBindingMode");
    if (old) {
        rule_immutable(c, AT(NULL, "parameters"), rule_member(object, "parameters"),
                       rule_member(old, "parameters"));
        rule_immutable(c, AT(NULL, "provisioner"), rule_member(object, "provisioner"),
                       rule_member(old, "provisioner"));
        rule_immutable_choice(c, AT(NULL, "reclaimPolicy"), rule_member(object, "reclaimPolicy"),
                              rule_member(old, "reclaimPolicy"), "Delete");
        rule_immutable_choice(c, AT(NULL, "volumeBindingMode"), mode,
                              rule_member(old, "volumeBindingMode"), "Immediate");
        return;
    }
    check_provisioner(c, AT(NULL, "provisioner"), rule_text(c, object, "provisioner"));
    check_parameters(c, rule_member(object, "parameters"), false);
    rule_one(c, NULL, object, "reclaimPolicy", IF_SOME, CHOICE("Delete,Retain"));
    rule_one(c, NULL, object, "volumeBindingMode", IF_SET,
             CHOICE("Immediate,WaitForFirstConsumer"));
    check_topologies(c, rule_member(object, "allowedTopologies"));
}

void kube_validate_volume_attributes_class(struct check *c, const struct json_node *object,
                                           const struct json_node *old)
{
    if (old && !rule_same_member(object, old, "driverName"))
        bad_forbidden(c, AT(NULL, "driverName"), "updates to driverName are forbidden.");
    if (old && !rule_same_member(object, old, "parameters"))
        bad_forbidden(c, AT(NULL, "parameters"), "updates to parameters are forbidden.");
    check_provisioner(c, AT(NULL, "driverName"), rule_text(c, object, "driverName"));
    check_parameters(c, rule_member(object, "parameters"), true);
}
