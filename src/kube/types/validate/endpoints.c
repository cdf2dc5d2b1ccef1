/* Endpoints and EndpointSlice. Lists that an update does not change remain valid. */
#include "kube/types/validate/address.h"
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/names.h"

enum { ENDPOINTS_MAX = 1000, ADDRESSES_MAX = 100, PORTS_MAX = 20000 };

static void check_optional(struct check *c, const struct at *at, const struct json_node *of,
                           const char *name, name_rule rule)
{
    if (rule_member(of, name))
        rule_name(c, AT(at, name), rule_text(c, of, name), rule);
}

/* -- Endpoints -- */

static void check_addresses(struct check *c, const struct at *at, const struct json_node *list)
{
    size_t i = 0;
    for (const struct json_node *item = rule_first(list); item; item = item->next, i++) {
        const struct at *in = AT_ITEM(at, i);
        struct slice ip = rule_text(c, item, "ip");
        struct address address;
        if (rule_text(c, item, "hostname").len)
            check_optional(c, in, item, "hostname", dns_label_valid);
        check_optional(c, in, item, "nodeName", subdomain_valid);
        rule_usable_ip(c, AT(in, "ip"), ip);
        if (!address_read(ip, &address))
            bad_text(c, AT(in, "ip"), ip, "must be a valid IP address");
    }
}

static void check_subset_ports(struct check *c, const struct at *at, const struct json_node *list)
{
    size_t i = 0;
    for (const struct json_node *port = rule_first(list); port; port = port->next, i++) {
        const struct at *in = AT_ITEM(at, i);
        struct slice name = rule_text(c, port, "name"), protocol = rule_text(c, port, "protocol");
        if (name.len)
            rule_name(c, AT(in, "name"), name, dns_label_valid);
        else if (list->count > 1)
            bad_required(c, AT(in, "name"), NULL);
        rule_port(c, AT(in, "port"), rule_int(port, "port", 0));
        if (protocol.len)
            rule_choice(c, AT(in, "protocol"), protocol, "SCTP,TCP,UDP");
        check_optional(c, in, port, "appProtocol", label_key_valid);
    }
}

void kube_validate_endpoints(struct check *c, const struct json_node *object,
                             const struct json_node *old)
{
    const struct at *at = AT(NULL, "subsets");
    size_t i = 0;
    if (old && rule_same_member(object, old, "subsets"))
        return;
    for (const struct json_node *item = rule_first(rule_member(object, "subsets")); item;
         item = item->next, i++) {
        const struct at *in = AT_ITEM(at, i);
        if (!rule_filled(item, "addresses") && !rule_filled(item, "notReadyAddresses"))
            bad_required(c, in, "must specify `addresses` or `notReadyAddresses`");
        check_addresses(c, AT(in, "addresses"), rule_member(item, "addresses"));
        check_addresses(c, AT(in, "notReadyAddresses"), rule_member(item, "notReadyAddresses"));
        check_subset_ports(c, AT(in, "ports"), rule_member(item, "ports"));
    }
}

/* -- Slices -- */

static void check_slice_ports(struct check *c, const struct json_node *list)
{
    const struct at *at = AT(NULL, "ports");
    struct seen names = {0};
    size_t i = 0;
    if (rule_count(list) > PORTS_MAX) {
        bad_many(c, at, rule_count(list), PORTS_MAX);
        return;
    }
    for (const struct json_node *port = rule_first(list); port; port = port->next, i++) {
        const struct at *in = AT_ITEM(at, i);
        struct slice name = rule_text(c, port, "name"), protocol = rule_text(c, port, "protocol");
        if (name.len)
            rule_name(c, AT(in, "name"), name, dns_label_valid);
        if (!seen_add(c, &names, name))
            bad_repeat(c, AT(in, "name"), name);
        if (protocol.len)
            rule_choice(c, AT(in, "protocol"), protocol, "SCTP,TCP,UDP");
        check_optional(c, in, port, "appProtocol", label_key_valid);
    }
}

static void check_slice_address(struct check *c, const struct at *list, size_t i, struct slice text,
                                struct slice type)
{
    struct address address;
    bool six = slice_equal(type, SLICE_LITERAL("IPv6"));
    if (!rule_one_of(type, "IPv4,IPv6"))
        return;
    if (!address_read(text, &address)) {
        rule_name(c, AT_ITEM(list, i), text, ip_valid);
        return;
    }
    if ((address.len == 16) != six && !address.padded)
        bad_text(c, list, text, six ? "must be an IPv6 address" : "must be an IPv4 address");
    rule_usable_ip(c, AT_ITEM(list, i), text);
}

static void check_endpoint(struct check *c, const struct at *at, const struct json_node *item,
                           struct slice type)
{
    const struct json_node *addresses = rule_member(item, "addresses");
    const struct at *list = AT(at, "addresses");
    size_t i = 0;
    if (!rule_count(addresses))
        bad_required(c, list, "must contain at least 1 address");
    else if (rule_count(addresses) > ADDRESSES_MAX)
        bad_many(c, list, rule_count(addresses), ADDRESSES_MAX);
    for (const struct json_node *one = rule_first(addresses); one; one = one->next)
        check_slice_address(c, list, i++, rule_text_of(c, one), type);
    check_optional(c, at, item, "nodeName", subdomain_valid);
    check_optional(c, at, item, "hostname", dns_label_valid);
}

void kube_validate_endpoint_slice(struct check *c, const struct json_node *object,
                                  const struct json_node *old)
{
    const struct json_node *endpoints = rule_member(object, "endpoints");
    struct slice type = rule_text(c, object, "addressType");
    const struct at *at = AT(NULL, "endpoints");
    size_t i = 0;
    check_slice_ports(c, rule_member(object, "ports"));
    if (rule_count(endpoints) > ENDPOINTS_MAX)
        bad_many(c, at, rule_count(endpoints), ENDPOINTS_MAX);
    else if (!old || !rule_same_member(object, old, "endpoints"))
        for (const struct json_node *item = rule_first(endpoints); item; item = item->next)
            check_endpoint(c, AT_ITEM(at, i++), item, type);
    if (!type.len)
        bad_required(c, AT(NULL, "addressType"), NULL);
    else
        rule_choice(c, AT(NULL, "addressType"), type, "FQDN,IPv4,IPv6");
    if (old)
        rule_immutable(c, AT(NULL, "addressType"), rule_member(object, "addressType"),
                       rule_member(old, "addressType"));
}
