#include "kube/types/validate/quantity.h"

#include "kube/types/defaults/quantity.h"

#include <stdio.h>

enum { NANO = -9 };

static const quantity billion = 1000000000;
#define QUANTITY_MAX ((quantity)INT64_MAX * billion)

/* -- Amounts -- */

quantity quantity_of(struct check *c, const struct json_node *node)
{
    struct slice text = rule_text_of(c, node);
    struct quantity read = {0};
    if (!text.len)
        return 0;
    if (!quantity_read(text, &read))
        /* The number has more digits than can be read; it exceeds any limit. */
        return text.ptr[0] == '-' ? -QUANTITY_MAX : QUANTITY_MAX;
    quantity_round_up(&read, NANO);
    quantity_amount value = read.amount, most = (quantity_amount)QUANTITY_MAX;
    for (int scale = read.scale; scale > NANO && value && value < most; scale--)
        value *= 10;
    value = value > most ? most : value;
    return read.negative ? -(quantity)value : (quantity)value;
}

struct slice quantity_text(struct check *c, const struct json_node *node)
{
    char text[QUANTITY_BYTES];
    struct slice shown = quantity_canonical(rule_text_of(c, node), false, text), copy;
    if (arena_dup(c->arena, shown, &copy) == ST_OK)
        return copy;
    c->errors->no_memory = true;
    return SLICE_EMPTY;
}

int64_t quantity_units(quantity amount)
{
    return (int64_t)(amount > 0 ? (amount + billion - 1) / billion : amount / billion);
}

void rule_quantity_not_negative(struct check *c, const struct at *at,
                                const struct json_node *amount)
{
    if (quantity_of(c, amount) < 0)
        bad_text(c, at, quantity_text(c, amount), "must be greater than or equal to 0");
}

void rule_quantity_positive(struct check *c, const struct at *at, const struct json_node *amount)
{
    if (quantity_of(c, amount) <= 0)
        bad_text(c, at, quantity_text(c, amount), "must be greater than zero");
}

void rule_quantity_of(struct check *c, const struct at *at, struct slice resource,
                      const struct json_node *amount)
{
    rule_quantity_not_negative(c, at, amount);
    if (resource_is_counted(resource) && quantity_of(c, amount) % billion)
        bad_text(c, at, quantity_text(c, amount), "must be an integer");
}

/* -- Names -- */

#define COUNTED                                                               \
    "pods,resourcequotas,services,replicationcontrollers,secrets,configmaps," \
    "persistentvolumeclaims,services.nodeports,services.loadbalancers"
#define COMPUTED                                                                            \
    "cpu,memory,ephemeral-storage,requests.cpu,requests.memory,requests.ephemeral-storage," \
    "limits.cpu,limits.memory,limits.ephemeral-storage,requests.storage"

static bool is_qualified(struct slice name)
{
    return name.len && memchr(name.ptr, '/', name.len);
}

bool resource_is_huge_page(struct slice name)
{
    return slice_has_prefix(name, slice_from_text("hugepages-"));
}

static bool is_standard(struct slice name)
{
    return rule_one_of(name, COMPUTED "," COUNTED ",storage") || resource_is_huge_page(name) ||
           slice_has_prefix(name, slice_from_text("requests.hugepages-"));
}

bool resource_is_standard_quota(struct slice name)
{
    return is_standard(name) && !slice_is(name, "storage");
}

bool resource_is_native(struct slice name)
{
    return !is_qualified(name) || memmem(name.ptr, name.len, "kubernetes.io/", 14);
}

/* In a quota it has a prefix, which counts. */
bool resource_is_extended(struct slice name)
{
    char quota[512], why[NAME_ERROR_BYTES];
    if (resource_is_native(name) || slice_has_prefix(name, slice_from_text("requests.")) ||
        name.len > 400)
        return false;
    snprintf(quota, sizeof(quota), "requests.%.*s", SLICE_ARGS(name));
    return label_key_valid(slice_from_text(quota), why);
}

bool resource_is_counted(struct slice name)
{
    return rule_one_of(name, COUNTED) || resource_is_extended(name);
}

bool rule_resource_name(struct check *c, const struct at *at, struct slice name)
{
    if (!rule_name(c, at, name, label_key_valid))
        return false;
    if (is_qualified(name) || is_standard(name))
        return true;
    bad_text(c, at, name, "must be a standard resource type or fully qualified");
    return false;
}

bool rule_container_resource_name(struct check *c, const struct at *at, struct slice name)
{
    bool fine = rule_resource_name(c, at, name);
    const char *why = NULL;
    if (!is_qualified(name)) {
        if (!rule_one_of(name, "cpu,memory,ephemeral-storage") && !resource_is_huge_page(name))
            why = "must be a standard resource for containers";
    } else if (!resource_is_native(name) && !resource_is_extended(name)) {
        why = "doesn't follow extended resource name standard";
    }
    if (why)
        bad_text(c, at, name, why);
    return fine && !why;
}

void rule_quota_resource_name(struct check *c, const struct at *at, struct slice name)
{
    rule_resource_name(c, at, name);
    if (!is_qualified(name) && !resource_is_standard_quota(name))
        bad_text(c, at, name, "must be a standard resource for quota");
}
