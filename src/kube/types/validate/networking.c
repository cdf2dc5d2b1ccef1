/* NetworkPolicy, Ingress and IngressClass. */
#include "kube/types/validate/address.h"
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/names.h"
#include "kube/types/validate/rules.h"

#include <stdio.h>

/* -- Network policies -- */

static void check_policy_port(struct check *c, const struct at *at, const struct json_node *item)
{
    const struct json_node *port = rule_member(item, "port"), *end = rule_member(item, "endPort");
    const struct at *last = AT(at, "endPort");
    rule_one(c, at, item, "protocol", IF_SET, CHOICE("TCP,UDP,SCTP"));
    if (!port) {
        if (end)
            bad_int(c, last, rule_int_of(end), "may not be specified when `port` is not specified");
        return;
    }
    if (port->type == JSON_TYPE_STRING) {
        if (end)
            bad_int(c, last, rule_int_of(end), "may not be specified when `port` is non-numeric");
        rule_name(c, AT(at, "port"), rule_text_of(c, port), port_name_valid);
        return;
    }
    rule_port(c, AT(at, "port"), rule_int_of(port));
    if (!end)
        return;
    /* The error is that of endPort but shows the value of port, as in Kubernetes. */
    if (rule_int_of(end) < rule_int_of(port))
        bad_int(c, last, rule_int_of(port), "must be greater than or equal to `port`");
    rule_port(c, last, rule_int_of(end));
}

/* A block that the stored policy has stays valid. */
static void check_cidr(struct check *c, const struct at *at, struct slice text,
                       const struct seen *kept)
{
    if (!seen_has(kept, text))
        rule_name(c, at, text, cidr_valid);
}

static void check_except(struct check *c, const struct at *at, const struct address_block *whole,
                         struct slice text, const struct seen *kept)
{
    struct address_block part;
    check_cidr(c, at, text, kept);
    if (!address_block_read(text, &part))
        return;
    /* A block that is as large as the whole would leave nothing of it. */
    if (!address_block_has(whole, &part.first) || whole->bits >= part.bits)
        bad_text(c, at, text, "must be a strict subset of `cidr`");
}

static void check_ip_block(struct check *c, const struct at *at, const struct json_node *block,
                           const struct seen *kept)
{
    struct slice text = rule_text(c, block, "cidr");
    struct address_block whole;
    const struct at *list = AT(at, "except");
    size_t i = 0;
    if (!text.len) {
        bad_required(c, AT(at, "cidr"), NULL);
        return;
    }
    check_cidr(c, AT(at, "cidr"), text, kept);
    if (!address_block_read(text, &whole))
        return;
    for (const struct json_node *item = rule_first(rule_member(block, "except")); item;
         item = item->next)
        check_except(c, AT_ITEM(list, i++), &whole, rule_text_of(c, item), kept);
}

static void check_peer(struct check *c, const struct at *at, const struct json_node *peer,
                       const struct seen *kept)
{
    const struct json_node *pods = rule_member(peer, "podSelector"),
                           *block = rule_member(peer, "ipBlock");
    const struct json_node *namespaces = rule_member(peer, "namespaceSelector");
    rule_selector(c, AT(at, "podSelector"), pods);
    rule_selector(c, AT(at, "namespaceSelector"), namespaces);
    if (block)
        check_ip_block(c, AT(at, "ipBlock"), block, kept);
    if (!pods && !namespaces && !block)
        bad_required(c, at, "must specify a peer");
    else if (block && (pods || namespaces))
        bad_forbidden(c, at, "may not specify both ipBlock and another peer");
}

static void check_policy_rules(struct check *c, const struct at *at, const struct json_node *rules,
                               const char *peers, const struct seen *kept)
{
    size_t i = 0;
    for (const struct json_node *rule = rule_first(rules); rule; rule = rule->next, i++) {
        const struct at *list = AT(AT_ITEM(at, i), peers);
        size_t j = 0;
        rule_one(c, AT_ITEM(at, i), rule, "ports", EACH, PART(check_policy_port));
        for (const struct json_node *peer = rule_first(rule_member(rule, peers)); peer;
             peer = peer->next)
            check_peer(c, AT_ITEM(list, j++), peer, kept);
    }
}

static void add_blocks(struct check *c, const struct json_node *rules, const char *peers,
                       struct seen *blocks)
{
    for (const struct json_node *rule = rule_first(rules); rule; rule = rule->next) {
        for (const struct json_node *peer = rule_first(rule_member(rule, peers)); peer;
             peer = peer->next) {
            const struct json_node *block = rule_member(peer, "ipBlock");
            if (block)
                seen_add(c, blocks, rule_text(c, block, "cidr"));
            for (const struct json_node *item = rule_first(rule_member(block, "except")); item;
                 item = item->next)
                seen_add(c, blocks, rule_text_of(c, item));
        }
    }
}

void kube_validate_network_policy(struct check *c, const struct json_node *object,
                                  const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec"),
                           *types = rule_member(spec, "policyTypes");
    const struct json_node *was = rule_member(old, "spec");
    const struct at *at = AT(NULL, "spec"), *list = AT(at, "policyTypes");
    struct seen kept = {0};
    add_blocks(c, rule_member(was, "ingress"), "from", &kept);
    add_blocks(c, rule_member(was, "egress"), "to", &kept);
    /* A selector that was accepted by an older version makes all selectors of the policy
     * lenient. */
    c->any_label_values = was && !rule_selector_is_valid(c, rule_member(was, "podSelector"));
    rule_selector(c, AT(at, "podSelector"), rule_member(spec, "podSelector"));
    check_policy_rules(c, AT(at, "ingress"), rule_member(spec, "ingress"), "from", &kept);
    check_policy_rules(c, AT(at, "egress"), rule_member(spec, "egress"), "to", &kept);
    c->any_label_values = false;
    if (rule_count(types) > 2) {
        bad_node(c, list, types, "may not specify more than two policyTypes");
        return;
    }
    rule_one(c, at, spec, "policyTypes", EACH, CHOICE("Ingress,Egress"));
}

/* -- Ingresses -- */

static const struct rule reference_rules[] = {
    {"apiGroup", IF_SET, NAME(subdomain_valid)},
    {"kind", NEEDED, NAME(segment_valid)},
    {"name", NEEDED, NAME(segment_valid)},
};

static void check_service_backend(struct check *c, const struct at *at,
                                  const struct json_node *service)
{
    const struct json_node *port = rule_member(service, "port");
    const struct at *in = AT(at, "service"), *to = AT(in, "port");
    struct slice port_name = rule_text(c, port, "name");
    int64_t number = rule_int(port, "number", 0);
    rule_one(c, in, service, "name", NEEDED, NAME(dns_label_valid));
    /* Errors of the port are reported at the backend, as in Kubernetes. */
    if (port_name.len && number)
        bad_text(c, at, SLICE_EMPTY, "cannot set both port name & port number");
    else if (port_name.len)
        rule_name(c, AT(to, "name"), port_name, port_name_valid);
    else if (number)
        rule_port(c, AT(to, "number"), number);
    else
        bad_required(c, at, "port name or number is required");
}

static void check_backend(struct check *c, const struct at *at, const struct json_node *backend)
{
    const struct json_node *resource = rule_member(backend, "resource");
    const struct json_node *service = rule_member(backend, "service");
    if (resource && service)
        bad_text(c, at, SLICE_EMPTY, "cannot set both resource and service backends");
    else if (resource)
        rule_rows(c, AT(at, "resource"), resource, reference_rules);
    else if (service)
        check_service_backend(c, at, service);
    else
        bad_text(c, at, SLICE_EMPTY, "resource or service backend is required");
}

static void check_exact_path(struct check *c, const struct at *at, struct slice path)
{
    static const char *const parts[] = {"//", "/./", "/../", "%2f", "%2F"};
    static const char *const ends[] = {"/..", "/."};
    char why[48];
    if (!path.len || path.ptr[0] != '/')
        bad_text(c, at, path, "must be an absolute path");
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        snprintf(why, sizeof(why), "must not contain '%s'", parts[i]);
        if (path.len && memmem(path.ptr, path.len, parts[i], strlen(parts[i])))
            bad_text(c, at, path, why);
    }
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        snprintf(why, sizeof(why), "cannot end with '%s'", ends[i]);
        if (slice_has_suffix(path, slice_from_text(ends[i])))
            bad_text(c, at, path, why);
    }
}

static void check_http_path(struct check *c, const struct at *at, const struct json_node *item)
{
    struct slice type = rule_text(c, item, "pathType"), path = rule_text(c, item, "path");
    if (!rule_member(item, "pathType")) {
        bad_required(c, AT(at, "pathType"), "pathType must be specified");
        return;
    }
    if (rule_one_of(type, "Exact,Prefix"))
        check_exact_path(c, AT(at, "path"), path);
    else if (!slice_is(type, "ImplementationSpecific"))
        bad_choice(c, AT(at, "pathType"), type, "Exact,ImplementationSpecific,Prefix");
    else if (path.len && path.ptr[0] != '/')
        bad_text(c, AT(at, "path"), path, "must be an absolute path");
    check_backend(c, AT(at, "backend"), rule_member(item, "backend"));
}

static void check_host(struct check *c, const struct at *at, struct slice host)
{
    struct address a;
    if (address_read(host, &a))
        bad_text(c, at, host, "must be a DNS name, not an IP address");
    rule_name(c, at, host, memchr(host.ptr, '*', host.len) ? wildcard_valid : subdomain_valid);
}

static void check_ingress_http(struct check *c, const struct at *at, const struct json_node *http)
{
    rule_one(c, at, http, "paths", EACH_NEEDED, PART(check_http_path));
}

static const struct rule ingress_rules[] = {
    {"host", IF_SOME, TEXT(check_host)},
    {"http", IF_SET, PART(check_ingress_http)},
};

static void check_tls_host(struct check *c, const struct at *at, struct slice host)
{
    bool star = host.len && memchr(host.ptr, '*', host.len);
    rule_name(c, at, host, star ? wildcard_valid : subdomain_valid);
}

static const struct rule tls_rules[] = {
    {"hosts", EACH, TEXT(check_tls_host)},
    {"secretName", IF_SOME, NAME(subdomain_valid)},
};

static const struct rule ingress_spec_rules[] = {
    {"defaultBackend", IF_SET, PART(check_backend)},
    {"rules", EACH, ROWS(ingress_rules)},
    {"tls", EACH, ROWS(tls_rules)},
    {"ingressClassName", IF_SET, NAME(subdomain_valid)},
};

void kube_validate_ingress(struct check *c, const struct json_node *object,
                           const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec"), *rules = rule_member(spec, "rules");
    const struct at *at = AT(NULL, "spec");
    if (!rule_count(rules) && !rule_member(spec, "defaultBackend"))
        bad_node(c, at, rules, "either `defaultBackend` or `rules` must be specified");
    rule_rows(c, at, spec, ingress_spec_rules);
    /* Objects from before the field existed have the annotation, and an update may add the
     * field. */
    if (!old) {
        const struct json_node *annotations = json_node_path(object, "metadata.annotations");
        const struct json_node *node = rule_member(annotations, "kubernetes.io/ingress.class");
        const struct json_node *class = rule_member(spec, "ingressClassName");
        if (node && class && !slice_equal(rule_text_of(c, node), rule_text_of(c, class)))
            bad_text(c, AT(AT(NULL, "annotations"), "kubernetes.io/ingress.class"),
                     rule_text_of(c, node),
                     "must match `ingressClassName` when both are specified");
    }
}

/* -- Classes -- */

enum { CONTROLLER_BYTES_MAX = 250 };

static void check_controller(struct check *c, const struct at *at, struct slice name)
{
    const uint8_t *slash = name.len ? memchr(name.ptr, '/', name.len) : NULL;
    size_t host = slash ? (size_t)(slash - name.ptr) : 0;
    if (name.len > CONTROLLER_BYTES_MAX)
        bad_long(c, at, CONTROLLER_BYTES_MAX);
    if (!name.len)
        bad_required(c, at, NULL);
    else if (!host || host + 1 == name.len)
        bad_text(c, at, name, "must be a domain-prefixed path (such as \"acme.io/foo\")");
    else
        rule_name(c, at, slice_sub(name, 0, host), subdomain_valid);
}

static void check_parameters(struct check *c, const struct at *at, const struct json_node *of)
{
    struct slice scope = rule_text(c, of, "scope"), namespace = rule_text(c, of, "namespace");
    bool has = rule_member(of, "namespace");
    rule_rows(c, at, of, reference_rules);
    rule_one(c, at, of, "scope", IF_SOME, CHOICE("Cluster,Namespace"));
    if (slice_is(scope, "Namespace")) {
        if (!has)
            bad_required(c, AT(at, "namespace"), "`parameters.scope` is set to 'Namespace'");
        else
            rule_name(c, AT(at, "namespace"), namespace, dns_label_valid);
    } else if (has) {
        bad_forbidden(c, AT(at, "namespace"), "`parameters.scope` is set to 'Cluster'");
    }
}

void kube_validate_ingress_class(struct check *c, const struct json_node *object,
                                 const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec");
    const struct at *at = AT(NULL, "spec");
    if (old)
        rule_fixed(c, at, spec, rule_member(old, "spec"), "controller");
    check_controller(c, AT(at, "controller"), rule_text(c, spec, "controller"));
    rule_one(c, at, spec, "parameters", IF_SET, PART(check_parameters));
}
