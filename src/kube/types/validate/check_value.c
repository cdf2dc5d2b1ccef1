/* Checks of values that many kinds have in common. */
#include "kube/types/validate/address.h"
#include "kube/types/validate/check.h"
#include "kube/types/validate/names.h"

#include <stdio.h>

bool rule_name(struct check *c, const struct at *at, struct slice value, name_rule rule)
{
    char why[NAME_ERROR_BYTES];
    if (rule(value, why))
        return true;
    bad_texts(c, at, value, "", why);
    return false;
}

bool rule_one_of(struct slice value, const char *values)
{
    while (*values) {
        const char *end = strchrnul(values, ',');
        if (slice_equal(value, slice_of(values, (size_t)(end - values))))
            return true;
        values = end + (*end == ',');
    }
    return false;
}

void rule_choice(struct check *c, const struct at *at, struct slice value, const char *values)
{
    if (!rule_one_of(value, values))
        bad_choice(c, at, value, values);
}

void rule_range(struct check *c, const struct at *at, int64_t value, int64_t low, int64_t high)
{
    char why[80];
    if (value >= low && value <= high)
        return;
    snprintf(why, sizeof(why), "must be between %lld and %lld, inclusive", (long long)low,
             (long long)high);
    bad_int(c, at, value, why);
}

void rule_port(struct check *c, const struct at *at, int64_t port)
{
    rule_range(c, at, port, 1, 65535);
}

void rule_port_or_name(struct check *c, const struct at *at, const struct json_node *port)
{
    /* A text names a port of the container. */
    if (port && port->type == JSON_TYPE_STRING)
        rule_name(c, at, rule_text_of(c, port), port_name_valid);
    else
        rule_port(c, at, rule_int_of(port));
}

void rule_not_negative(struct check *c, const struct at *at, int64_t value)
{
    if (value < 0)
        bad_int(c, at, value, "must be greater than or equal to 0");
}

void rule_immutable(struct check *c, const struct at *at, const struct json_node *value,
                    const struct json_node *old)
{
    if (!rule_same_node(value, old))
        bad_node(c, at, value, "field is immutable");
}

void rule_immutable_choice(struct check *c, const struct at *at, const struct json_node *value,
                           const struct json_node *old, const char *fallback)
{
    struct slice is = rule_text_of(c, value), was = rule_text_of(c, old);
    is = is.len ? is : slice_from_text(fallback);
    was = was.len ? was : slice_from_text(fallback);
    if (!slice_equal(is, was))
        bad_text(c, at, is, "field is immutable");
}

void rule_labels(struct check *c, const struct at *at, const struct json_node *labels)
{
    for (const struct json_node *label = rule_first(labels); label; label = label->next) {
        rule_name(c, at, label->key, label_key_valid);
        rule_name(c, at, rule_text_of(c, label), label_value_valid);
    }
}

static void check_operator(struct check *c, const struct at *at, const struct json_node *item)
{
    struct slice op = rule_text(c, item, "operator");
    bool values = rule_filled(item, "values");
    if (rule_one_of(op, "In,NotIn")) {
        if (!values)
            bad_required(c, AT(at, "values"),
                         "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (rule_one_of(op, "Exists,DoesNotExist")) {
        if (values)
            bad_forbidden(c, AT(at, "values"),
                          "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else {
        bad_text(c, AT(at, "operator"), op, "not a valid selector operator");
    }
}

static void check_requirement(struct check *c, const struct at *at, const struct json_node *item)
{
    const struct at *values = AT(at, "values");
    size_t i = 0;
    check_operator(c, at, item);
    rule_name(c, AT(at, "key"), rule_text(c, item, "key"), label_key_valid);
    for (const struct json_node *value = rule_first(rule_member(item, "values"));
         value && !c->any_label_values; value = value->next)
        rule_name(c, AT_ITEM(values, i++), rule_text_of(c, value), label_value_valid);
}

void rule_selector(struct check *c, const struct at *at, const struct json_node *selector)
{
    const struct at *list = AT(at, "matchExpressions");
    size_t i = 0;
    rule_labels(c, AT(at, "matchLabels"), rule_member(selector, "matchLabels"));
    for (const struct json_node *item = rule_first(rule_member(selector, "matchExpressions")); item;
         item = item->next)
        check_requirement(c, AT_ITEM(list, i++), item);
}

bool rule_selector_is_valid(struct check *c, const struct json_node *selector)
{
    struct kube_field_errors errors = {.arena = c->arena};
    struct check alone = {.arena = c->arena, .errors = &errors};
    rule_selector(&alone, NULL, selector);
    c->errors->no_memory = c->errors->no_memory || errors.no_memory;
    return !errors.count;
}

void rule_kept_selector(struct check *c, const struct at *at, const struct json_node *selector,
                        const struct json_node *old)
{
    bool before = c->any_label_values;
    /* Older versions of Kubernetes accepted values that are no longer valid. An object that was
     * stored with such a selector can still be updated. */
    c->any_label_values = old && !rule_selector_is_valid(c, old);
    rule_selector(c, at, selector);
    c->any_label_values = before;
}

void rule_ip_range(struct check *c, const struct at *at, struct slice text)
{
    static const char *const ranges[] = {
        [ADDRESS_LOOPBACK] = "may not be in the loopback range (127.0.0.0/8, ::1/128)",
        [ADDRESS_LINK_LOCAL] = "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
        [ADDRESS_LINK_LOCAL_MULTICAST] =
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"};
    struct address address;
    char why[96];
    /* An unreadable address is reported by ip_valid. */
    if (!address_read(text, &address))
        return;
    enum address_range range = address_range(&address);
    if (range == ADDRESS_UNSPECIFIED) {
        snprintf(why, sizeof(why), "may not be unspecified (%.*s)", SLICE_ARGS(text));
        bad_text(c, at, text, why);
    } else if (range != ADDRESS_ORDINARY) {
        bad_text(c, at, text, ranges[range]);
    }
}

void rule_usable_ip(struct check *c, const struct at *at, struct slice text)
{
    if (rule_name(c, at, text, ip_valid))
        rule_ip_range(c, at, text);
}
