/* Endpoints and EndpointSlice. Lists that an update does not change remain valid. */
#include "kube/types/validate/address.h"
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/names.h"
#include "kube/types/validate/rules.h"

enum { ENDPOINTS_MAX = 1000, ADDRESSES_MAX = 100, PORTS_MAX = 20000 };

/* -- Endpoints -- */

static void check_ip(struct check *c, const struct at *at, struct slice ip)
{
    struct address address;
    rule_usable_ip(c, at, ip);
    if (!address_read(ip, &address))
        bad_text(c, at, ip, "must be a valid IP address");
}

static const struct rule address_rules[] = {
    {"hostname", IF_SOME, NAME(dns_label_valid)},
    {"nodeName", IF_SET, NAME(subdomain_valid)},
    {"ip", ALWAYS, TEXT(check_ip)},
};

static const struct rule subset_port_rules[] = {
    {"name", IF_SOME, NAME(dns_label_valid)},
    {"port", ALWAYS, NUMBER(rule_port)},
    {"protocol", IF_SOME, CHOICE("SCTP,TCP,UDP")},
    {"appProtocol", IF_SET, NAME(label_key_valid)},
};

static void check_subset_ports(struct check *c, const struct at *at, const struct json_node *list)
{
    size_t i = 0;
    for (const struct json_node *port = rule_first(list); port; port = port->next, i++) {
        const struct at *in = AT_ITEM(at, i);
        /* A name is needed only to distinguish several ports. */
        if (!rule_text(c, port, "name").len && list->count > 1)
            bad_required(c, AT(in, "name"), NULL);
        rule_rows(c, in, port, subset_port_rules);
    }
}

static void check_subset(struct check *c, const struct at *at, const struct json_node *item)
{
    static const struct rule rules[] = {
        {"addresses", EACH, ROWS(address_rules)},
        {"notReadyAddresses", EACH, ROWS(address_rules)},
        {"ports", ALWAYS, PART(check_subset_ports)},
    };
    if (!rule_filled(item, "addresses") && !rule_filled(item, "notReadyAddresses"))
        bad_required(c, at, "must specify `addresses` or `notReadyAddresses`");
    rule_rows(c, at, item, rules);
}

void kube_validate_endpoints(struct check *c, const struct json_node *object,
                             const struct json_node *old)
{
    if (!old || !rule_same_member(object, old, "subsets"))
        rule_one(c, NULL, object, "subsets", EACH, PART(check_subset));
}

/* -- Slices -- */

static const struct rule slice_port_rules[] = {
    {"protocol", IF_SOME, CHOICE("SCTP,TCP,UDP")},
    {"appProtocol", IF_SET, NAME(label_key_valid)},
};

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
        struct slice name = rule_text(c, port, "name");
        rule_one(c, in, port, "name", IF_SOME, NAME(dns_label_valid));
        if (!seen_add(c, &names, name))
            bad_repeat(c, AT(in, "name"), name);
        rule_rows(c, in, port, slice_port_rules);
    }
}

static void check_slice_address(struct check *c, const struct at *list, size_t i, struct slice text,
                                struct slice type)
{
    struct address address;
    bool six = slice_is(type, "IPv6");
    if (!rule_one_of(type, "IPv4,IPv6"))
        return;
    if (!address_read(text, &address)) {
        /* The text is not an address, and ip_valid says why. */
        rule_name(c, AT_ITEM(list, i), text, ip_valid);
        return;
    }
    if ((address.len == 16) != six && !address.padded)
        bad_text(c, list, text, six ? "must be an IPv6 address" : "must be an IPv4 address");
    rule_usable_ip(c, AT_ITEM(list, i), text);
}

static const struct rule endpoint_rules[] = {
    {"nodeName", IF_SET, NAME(subdomain_valid)},
    {"hostname", IF_SET, NAME(dns_label_valid)},
};

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
    rule_rows(c, at, item, endpoint_rules);
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
    rule_one(c, NULL, object, "addressType", NEEDED, CHOICE("FQDN,IPv4,IPv6"));
    if (old)
        rule_fixed(c, NULL, object, old, "addressType");
}
