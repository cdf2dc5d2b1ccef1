/* ServiceCIDR and IPAddress. */
#include "kube/types/validate/address.h"
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/names.h"
#include "kube/types/validate/rules.h"
#include "kube/types/validate/shown.h"

#include <arpa/inet.h>
#include <stdio.h>

enum { FAMILIES = 2 };

/* The form in which Go prints it. */
static void check_canonical(struct check *c, const struct at *at, struct slice text,
                            const struct address_block *block)
{
    char name[INET6_ADDRSTRLEN], whole[INET6_ADDRSTRLEN + 8], why[INET6_ADDRSTRLEN + 48];
    if (!inet_ntop(block->first.len == 4 ? AF_INET : AF_INET6, block->first.bytes, name,
                   sizeof(name)))
        return;
    snprintf(whole, sizeof(whole), "%s/%u", name, block->bits);
    snprintf(why, sizeof(why), "must be in canonical form (\"%s\")", whole);
    if (!slice_is(text, whole))
        bad_text(c, at, text, why);
}

static int family_of(struct check *c, const struct json_node *node)
{
    struct address_block block;
    return address_block_read(rule_text_of(c, node), &block) ? block.first.len : 0;
}

SHOWN_TYPE(range_type, SHOWN_NULL("CIDRs", "cidrs"));

static void check_ranges(struct check *c, const struct at *at, const struct json_node *spec)
{
    const struct json_node *list = rule_member(spec, "cidrs");
    size_t i = 0;
    if (!rule_count(list)) {
        bad_required(c, at, "at least one CIDR required");
        return;
    }
    if (rule_count(list) > FAMILIES) {
        bad_raw(c, at, show_struct(c, spec, &range_type), "may only hold up to 2 values");
        return;
    }
    for (const struct json_node *item = rule_first(list); item; item = item->next) {
        const struct at *in = AT_ITEM(at, i++);
        struct slice text = rule_text_of(c, item);
        struct address_block block;
        if (rule_name(c, in, text, cidr_valid) && address_block_read(text, &block))
            check_canonical(c, in, text, &block);
    }
    if (rule_count(list) == FAMILIES && family_of(c, list->first) &&
        family_of(c, list->first) == family_of(c, list->last))
        bad_node(c, at, list,
                 "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and "
                 "2001:db8::/64");
}

/* One of the other family may be added. */
static void check_ranges_update(struct check *c, const struct at *at, const struct json_node *spec,
                                const struct json_node *was)
{
    const struct json_node *list = rule_member(spec, "cidrs"), *before = rule_member(was, "cidrs");
    const struct json_node *is = rule_first(list), *old = rule_first(before);
    bool added = rule_count(before) == 1 && rule_count(list) == FAMILIES;
    if (!added && rule_count(list) != rule_count(before)) {
        if (rule_count(list))
            bad_node(c, at, list, "field is immutable");
        else
            bad_raw(c, at, "[]", "field is immutable");
        return;
    }
    for (size_t i = 0; is && old; is = is->next, old = old->next, i++) {
        if (!slice_equal(rule_text_of(c, is), rule_text_of(c, old)))
            bad_text(c, AT_ITEM(at, i), rule_text_of(c, is), "field is immutable");
    }
    if (added)
        check_ranges(c, at, spec);
}

void kube_validate_service_range(struct check *c, const struct json_node *object,
                                 const struct json_node *old)
{
    const struct at *at = AT(AT(NULL, "spec"), "cidrs");
    if (old)
        check_ranges_update(c, at, rule_member(object, "spec"), rule_member(old, "spec"));
    else
        check_ranges(c, at, rule_member(object, "spec"));
}

/* -- Addresses -- */

static const struct rule parent_rules[] = {
    {"group", IF_SOME, NAME(subdomain_valid)},
    {"resource", NEEDED, NAME(segment_valid)},
    {"name", NEEDED, NAME(segment_valid)},
    {"namespace", IF_SOME, NAME(segment_valid)},
};

SHOWN_TYPE(parent_type, SHOWN_TEXT("Group", "group"), SHOWN_TEXT("Resource", "resource"),
           SHOWN_TEXT("Namespace", "namespace"), SHOWN_TEXT("Name", "name"));

void kube_validate_ip_address(struct check *c, const struct json_node *object,
                              const struct json_node *old)
{
    const struct json_node *parent = rule_member(rule_member(object, "spec"), "parentRef");
    const struct at *at = AT(AT(NULL, "spec"), "parentRef");
    if (parent)
        rule_rows(c, at, parent, parent_rules);
    else
        bad_required(c, at, NULL);
    if (old && !rule_same_node(parent, json_node_path(old, "spec.parentRef")))
        bad_raw(c, at, parent ? show_struct(c, parent, &parent_type) : "null",
                "field is immutable");
}
