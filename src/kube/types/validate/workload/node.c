/* Node. */
#include "kube/types/validate/address.h"
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/names.h"
#include "kube/types/validate/quantity.h"
#include "kube/types/validate/rules.h"
#include "kube/types/validate/shown.h"

enum { IPV4_BYTES = 4, IPV6_BYTES = 16 };

SHOWN_TYPE(taint_type, SHOWN_TEXT("Key", "key"), SHOWN_TEXT("Value", "value"),
           SHOWN_TEXT("Effect", "effect"), SHOWN_NULL("TimeAdded", "timeAdded"));

static void check_taint(struct check *c, const struct at *at, const struct json_node *taint,
                        struct seen *seen)
{
    struct slice key = rule_text(c, taint, "key"), effect = rule_text(c, taint, "effect");
    struct slice pair = SLICE_EMPTY;
    char why[NAME_ERROR_BYTES];
    AUTO(buf_fini) struct buf text = {0};
    rule_name(c, AT(at, "key"), key, label_key_valid);
    if (!label_value_valid(rule_text(c, taint, "value"), why))
        bad_text(c, AT(at, "value"), rule_text(c, taint, "value"), why);
    rule_one(c, at, taint, "effect", NEEDED, CHOICE("NoSchedule,PreferNoSchedule,NoExecute"));
    if (buf_append_format(&text, "%.*s/%.*s", SLICE_ARGS(effect), SLICE_ARGS(key)) != ST_OK ||
        arena_dup(c->arena, buf_slice(&text), &pair) != ST_OK)
        c->errors->no_memory = true;
    else if (!seen_add(c, seen, pair))
        bad_repeat_why(c, at, show_struct(c, taint, &taint_type),
                       "taints must be unique by key and effect pair");
}

static void check_taints(struct check *c, const struct json_node *list)
{
    const struct at *at = AT(AT(NULL, "metadata"), "taints");
    struct seen seen = {0};
    size_t i = 0;
    for (const struct json_node *item = rule_first(list); item; item = item->next)
        check_taint(c, AT_ITEM(at, i++), item, &seen);
}

static void check_node_amounts(struct check *c, const struct json_node *object, const char *name)
{
    const struct at *at = AT(AT(NULL, "status"), name);
    const struct json_node *amounts = rule_member(rule_member(object, "status"), name);
    for (const struct json_node *item = rule_first(amounts); item; item = item->next) {
        char key[260];
        size_t len = size_min(item->key.len, sizeof(key) - 1);
        memcpy(key, item->key.ptr, len);
        key[len] = '\0';
        rule_quantity_of(c, AT(at, key), item->key, item);
    }
}

SHOWN_TYPE(address_type, SHOWN_TEXT("Type", "type"), SHOWN_TEXT("Address", "address"));

static void check_addresses(struct check *c, const struct json_node *list)
{
    const struct at *at = AT(AT(NULL, "status"), "addresses");
    struct seen seen = {0};
    size_t i = 0;
    for (const struct json_node *item = rule_first(list); item; item = item->next, i++) {
        const char *shown = show_struct(c, item, &address_type);
        if (!seen_add(c, &seen, slice_from_text(shown)))
            bad_repeat_raw(c, AT_ITEM(at, i), shown);
    }
}

static void check_kept_cidrs(struct check *c, const struct at *at, const struct json_node *spec,
                             const struct json_node *old)
{
    static const char why[] = "node updates may not change podCIDR except from \"\" to valid";
    const struct json_node *list = rule_member(spec, "podCIDRs"),
                           *before = rule_filled(old, "podCIDRs");
    const struct json_node *is = rule_first(list), *was = rule_first(before);
    /* Blocks may be given to a node that has none, and then they stay. */
    if (before && rule_count(list) != rule_count(before)) {
        bad_forbidden(c, at, why);
        return;
    }
    for (; is && was; is = is->next, was = was->next) {
        if (!slice_equal(rule_text_of(c, is), rule_text_of(c, was)))
            bad_forbidden(c, at, why);
    }
}

static void check_node_update(struct check *c, const struct json_node *object,
                              const struct json_node *old_node)
{
    const struct json_node *spec = rule_member(object, "spec"),
                           *old = rule_member(old_node, "spec");
    const struct at *at = AT(NULL, "spec");
    check_node_amounts(c, object, "capacity");
    check_node_amounts(c, object, "allocatable");
    check_addresses(c, rule_member(rule_member(object, "status"), "addresses"));
    check_kept_cidrs(c, AT(at, "podCIDRs"), spec, old);
    if (rule_text(c, old, "providerID").len && !rule_same_member(spec, old, "providerID"))
        bad_forbidden(c, AT(at, "providerID"),
                      "node updates may not change providerID except from \"\" to valid");
    check_taints(c, rule_member(spec, "taints"));
}

static void check_pod_cidrs(struct check *c, const struct at *at, const struct json_node *list)
{
    size_t i = 0;
    bool families[2] = {false, false};
    for (const struct json_node *item = rule_first(list); item; item = item->next) {
        struct address_block block;
        int family = address_block_read(rule_text_of(c, item), &block) ? block.first.len : 0;
        rule_name(c, AT_ITEM(at, i++), rule_text_of(c, item), cidr_valid);
        families[0] = families[0] || family == IPV4_BYTES;
        families[1] = families[1] || family == IPV6_BYTES;
    }
    if (rule_count(list) > 2 || (rule_count(list) == 2 && (!families[0] || !families[1])))
        bad_node(c, at, list, "may specify no more than one CIDR for each IP family");
}

void kube_validate_node(struct check *c, const struct json_node *object,
                        const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec");
    const struct json_node *swap = json_node_path(object, "status.nodeInfo.swap.capacity");
    const struct at *cidrs = AT(AT(NULL, "spec"), "podCIDRs");
    const struct at *swap_at = AT(AT(AT(NULL, "metadata"), "nodeSwapStatus"), "capacity");
    check_taints(c, rule_member(spec, "taints"));
    check_node_amounts(c, object, "capacity");
    check_node_amounts(c, object, "allocatable");
    if (swap && rule_int_of(swap) <= 0)
        bad_int(c, swap_at, rule_int_of(swap), "must be greater than zero");
    check_pod_cidrs(c, cidrs, rule_member(spec, "podCIDRs"));
    /* Kubernetes reports some errors of an update twice. */
    if (old)
        check_node_update(c, object, old);
}

void kube_validate_node_status(struct check *c, const struct json_node *object,
                               const struct json_node *old)
{
    check_node_update(c, object, old);
}
