/* StorageClass and VolumeAttributesClass. */
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/rules.h"

enum { PARAMETERS_MAX = 512, PARAMETERS_BYTES_MAX = 256 * 1024 };

static void check_provisioner(struct check *c, const struct at *at, struct slice name)
{
    if (name.len)
        rule_name(c, at, rule_lower(c, name), label_key_valid);
    else
        bad_required(c, at, NULL);
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

static const struct rule topology_rules[] = {
    {"values", EACH_NEEDED, UNIQUE},
    {"key", ALWAYS, NAME(label_key_valid)},
};

static const struct rule term_rules[] = {
    {"matchLabelExpressions", EACH, ROWS(topology_rules), UNIQUE_BY("key")},
};

static const struct rule class_rules[] = {
    {"reclaimPolicy", IF_SOME, CHOICE("Delete,Retain")},
    {"volumeBindingMode", IF_SET, CHOICE("Immediate,WaitForFirstConsumer")},
    {"allowedTopologies", EACH, ROWS(term_rules)},
};

void kube_validate_storage_class(struct check *c, const struct json_node *object,
                                 const struct json_node *old)
{
    if (old) {
        rule_fixed(c, NULL, object, old, "parameters,provisioner");
        rule_immutable_choice(c, AT(NULL, "reclaimPolicy"), rule_member(object, "reclaimPolicy"),
                              rule_member(old, "reclaimPolicy"), "Delete");
        rule_immutable_choice(c, AT(NULL, "volumeBindingMode"),
                              rule_member(object, "volumeBindingMode"),
                              rule_member(old, "volumeBindingMode"), "Immediate");
        return;
    }
    check_provisioner(c, AT(NULL, "provisioner"), rule_text(c, object, "provisioner"));
    check_parameters(c, rule_member(object, "parameters"), false);
    rule_rows(c, NULL, object, class_rules);
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
