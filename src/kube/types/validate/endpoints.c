/* Endpoints and EndpointSlice. Lists that an update does not change remain valid. */
#include "kube/types/validate/address.h"
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/names.h"

enum { ENDPOINTS_MAX = 1000, ADDRESSES_MAX = 100, PORTS_MAX = 20000 };

static void check_optional(struct check *c, const struct at *at, const struct json_node *of,
                           const char *name, name_rule rule)
{
    if (member(of, name))
        check_name(c, AT(at, name), text_in(c, of, name), rule);
}

/* -- Endpoints -- */

static void check_addresses(struct check *c, const struct at *at, const struct json_node *list)
{
    size_t i = 0;
    for (const struct json_node *item = first_in(list); item; item = item->next, i++) {
        const struct at *in = AT_ITEM(at, i);
        struct slice ip = text_in(c, item, "ip");
        struct address address;
        if (text_in(c, item, "hostname").len)
            check_optional(c, in, item, "hostname", dns_label_valid);
        check_optional(c, in, item, "nodeName", subdomain_valid);
        check_usable_ip(c, AT(in, "ip"), ip);
        if (!address_read(ip, &address))
            bad_text(c, AT(in, "ip"), ip, "must be a valid IP address");
    }
}

static void check_subset_ports(struct check *c, const struct at *at, const struct json_node *list)
{
    size_t i = 0;
    for (const struct json_node *port = first_in(list); port; port = port->next, i++) {
        const struct at *in = AT_ITEM(at, i);
        struct slice name = text_in(c, port, "name"), protocol = text_in(c, port, "protocol");
        if (name.len)
            check_name(c, AT(in, "name"), name, dns_label_valid);
        else if (list->count > 1)
            bad_required(c, AT(in, "name"), NULL);
        check_port(c, AT(in, "port"), int_in(port, "port", 0));
        if (protocol.len)
            check_choice(c, AT(in, "protocol"), protocol, "SCTP,TCP,UDP");
        check_optional(c, in, port, "appProtocol", label_key_valid);
    }
}

void validate_endpoints(struct check *c, const struct json_node *object,
                        const struct json_node *old)
{
    const struct at *at = AT(NULL, "subsets");
    size_t i = 0;
    if (old && same_member(object, old, "subsets"))
        return;
    for (const struct json_node *item = first_in(member(object, "subsets")); item;
         item = item->next, i++) {
        const struct at *in = AT_ITEM(at, i);
        if (!filled(item, "addresses") && !filled(item, "notReadyAddresses"))
            bad_required(c, in, "must specify `addresses` or `notReadyAddresses`");
        check_addresses(c, AT(in, "addresses"), member(item, "addresses"));
        check_addresses(c, AT(in, "notReadyAddresses"), member(item, "notReadyAddresses"));
        check_subset_ports(c, AT(in, "ports"), member(item, "ports"));
    }
}

/* -- Slices -- */

static void check_slice_ports(struct check *c, const struct json_node *list)
{
    const struct at *at = AT(NULL, "ports");
    struct seen names = {0};
    size_t i = 0;
    if (count_in(list) > PORTS_MAX) {
        bad_many(c, at, count_in(list), PORTS_MAX);
        return;
    }
    for (const struct json_node *port = first_in(list); port; port = port->next, i++) {
        const struct at *in = AT_ITEM(at, i);
        struct slice name = text_in(c, port, "name"), protocol = text_in(c, port, "protocol");
        if (name.len)
            check_name(c, AT(in, "name"), name, dns_label_valid);
        if (!seen_add(c, &names, name))
            bad_repeat(c, AT(in, "name"), name);
        if (protocol.len)
            check_choice(c, AT(in, "protocol"), protocol, "SCTP,TCP,UDP");
        check_optional(c, in, port, "appProtocol", label_key_valid);
    }
}

static void check_slice_address(struct check *c, const struct at *list, size_t i, struct slice text,
                                struct slice type)
{
    struct address address;
    bool six = slice_equal(type, SLICE_LITERAL("IPv6"));
    if (!one_of(type, "IPv4,IPv6"))
        return;
    if (!address_read(text, &address)) {
        check_name(c, AT_ITEM(list, i), text, ip_valid);
        return;
    }
    if ((address.len == 16) != six && !address.padded)
        bad_text(c, list, text, six ? "must be an IPv6 address" : "must be an IPv4 address");
    check_usable_ip(c, AT_ITEM(list, i), text);
}

static void check_endpoint(struct check *c, const struct at *at, const struct json_node *item,
                           struct slice type)
{
    const struct json_node *addresses = member(item, "addresses");
    const struct at *list = AT(at, "addresses");
    size_t i = 0;
    if (!count_in(addresses))
        bad_required(c, list, "must contain at least 1 address");
    else if (count_in(addresses) > ADDRESSES_MAX)
        bad_many(c, list, count_in(addresses), ADDRESSES_MAX);
    for (const struct json_node *one = first_in(addresses); one; one = one->next)
        check_slice_address(c, list, i++, text_of(c, one), type);
    check_optional(c, at, item, "nodeName", subdomain_valid);
    check_optional(c, at, item, "hostname", dns_label_valid);
}

void validate_endpoint_slice(struct check *c, const struct json_node *object,
                             const struct json_node *old)
{
    const struct json_node *endpoints = member(object, "endpoints");
    struct slice type = text_in(c, object, "addressType");
    const struct at *at = AT(NULL, "endpoints");
    size_t i = 0;
    check_slice_ports(c, member(object, "ports"));
    if (count_in(endpoints) > ENDPOINTS_MAX)
        bad_many(c, at, count_in(endpoints), ENDPOINTS_MAX);
    else if (!old || !same_member(object, old, "endpoints"))
        for (const struct json_node *item = first_in(endpoints); item; item = item->next)
            check_endpoint(c, AT_ITEM(at, i++), item, type);
    if (!type.len)
        bad_required(c, AT(NULL, "addressType"), NULL);
    else
        check_choice(c, AT(NULL, "addressType"), type, "FQDN,IPv4,IPv6");
    if (old)
        check_immutable(c, AT(NULL, "addressType"), member(object, "addressType"),
                        member(old, "addressType"));
}
