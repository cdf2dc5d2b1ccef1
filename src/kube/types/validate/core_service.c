/* Service. Where an address or port is to be allocated, its absence is not an error. */
#include "kube/types/validate/address.h"
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/names.h"
#include "kube/types/validate/rules.h"

#include <stdio.h>

#define FOR_LOAD_BALANCERS "may only be used when `type` is 'LoadBalancer'"

static bool is_of_type(const struct json_node *spec, const char *type)
{
    return rule_choice_is(spec, "type", "ClusterIP", type);
}

/* The cluster IPs; those of an object that only has clusterIP are made from it. */
struct cluster_ips {
    const struct json_node *first; /* NULL: none */
    const struct json_node *list;  /* NULL: only `first` */
    size_t count;
};

static struct cluster_ips cluster_ips_of(const struct json_node *spec)
{
    const struct json_node *list = rule_filled(spec, "clusterIPs"),
                           *one = rule_member(spec, "clusterIP");
    if (list)
        return (struct cluster_ips){.first = list->first, .list = list, .count = list->count};
    if (one && one->text.len)
        return (struct cluster_ips){.first = one, .count = 1};
    return (struct cluster_ips){0};
}

static bool is_headless(const struct json_node *spec)
{
    struct cluster_ips ips = cluster_ips_of(spec);
    return ips.count == 1 && json_node_is_text(ips.first, "None");
}

/* -- Addresses of the cluster -- */

static bool check_cluster_addresses(struct check *c, const struct at *at, struct cluster_ips ips,
                                    const struct json_node *old)
{
    bool fine = true;
    size_t i = 0;
    for (const struct json_node *item = ips.first; item; item = ips.list ? item->next : NULL, i++) {
        struct slice text = rule_text_of(c, item);
        if (!i && json_node_is_text(item, "None")) {
            if (ips.count > 1)
                bad_node(c, at, ips.list, "'None' must be the first and only value");
            fine = fine && ips.count == 1;
            continue;
        }
        /* An address that the service already has stays valid, even in a form that is refused
         * today. */
        const struct json_node *had = rule_first(rule_member(old, "clusterIPs"));
        while (had && !json_node_equal(had, item))
            had = had->next;
        fine = (had || rule_name(c, AT_ITEM(at, i), text, ip_valid)) && fine;
    }
    return fine;
}

static void check_address_family(struct check *c, const struct at *at, struct slice text,
                                 const struct json_node *family, size_t i)
{
    char why[80];
    struct address a;
    bool six = address_read(text, &a) && a.len == 16;
    bool wants_six = json_node_is_text(family, "IPv6");
    if (six == wants_six || (!wants_six && !json_node_is_text(family, "IPv4")))
        return;
    snprintf(why, sizeof(why), "expected an IPv%d value as indicated by `ipFamilies[%zu]`",
             wants_six ? 6 : 4, i);
    bad_text(c, at, text, why);
}

static void check_dual_stack(struct check *c, const struct at *at, const struct json_node *list)
{
    unsigned found = 0;
    for (const struct json_node *item = rule_first(list); item; item = item->next) {
        struct address a;
        bool six = address_read(rule_text_of(c, item), &a) && a.len == 16;
        found |= 1U << six;
    }
    /* Bit 0 is IPv4 and bit 1 is IPv6: there must be one of each. */
    if (found != 3 || list->count != 2)
        bad_node(c, at, list, "may specify no more than one IP for each IP family");
}

static void check_synced(struct check *c, const struct at *at, const struct json_node *spec,
                         struct cluster_ips ips)
{
    const struct json_node *one = rule_member(spec, "clusterIP");
    if (!ips.list)
        return;
    if (!one || !one->text.len)
        bad_node(c, at, ips.list, "must be empty when `clusterIP` is not specified");
    else if (!json_node_equal(one, ips.first))
        bad_node(c, at, ips.list, "first value must match `clusterIP`");
}

static const struct rule family_rules[] = {
    {"ipFamilies", EACH, CHOICE("IPv4,IPv6"), UNIQUE},
    {"ipFamilyPolicy", IF_SET, CHOICE("PreferDualStack,RequireDualStack,SingleStack")},
};

static void check_cluster_ips(struct check *c, const struct at *at, const struct json_node *spec,
                              const struct json_node *old)
{
    const struct at *list = AT(at, "clusterIPs");
    const struct json_node *family = rule_first(rule_member(spec, "ipFamilies"));
    struct cluster_ips ips = cluster_ips_of(spec);
    size_t i = 0;
    if (is_of_type(spec, "ExternalName"))
        return;
    check_synced(c, list, spec, ips);
    rule_rows(c, at, spec, family_rules);
    bool fine = check_cluster_addresses(c, list, ips, old);
    if (ips.count > 2)
        bad_node(c, list, ips.list, "may only hold up to 2 values");
    if (!fine)
        return;
    if (ips.count > 1)
        check_dual_stack(c, list, ips.list);
    const struct json_node *ip = is_headless(spec) ? NULL : ips.first;
    for (; ip && family; family = family->next, ip = ips.list ? ip->next : NULL, i++)
        check_address_family(c, AT_ITEM(list, i), rule_text_of(c, ip), family, i);
}

/* -- Ports -- */

static void check_service_port(struct check *c, const struct at *at, const struct json_node *port,
                               bool needs_name, struct seen *names)
{
    struct slice name = rule_text(c, port, "name");
    const struct json_node *target = rule_member(port, "targetPort");
    if (needs_name && !name.len) {
        bad_required(c, AT(at, "name"), NULL);
    } else if (name.len) {
        rule_name(c, AT(at, "name"), name, dns_label_valid);
        if (!seen_add(c, names, name))
            bad_repeat(c, AT(at, "name"), name);
    }
    rule_port(c, AT(at, "port"), rule_int(port, "port", 0));
    rule_one(c, at, port, "protocol", IF_SOME, CHOICE("SCTP,TCP,UDP"));
    /* Without one it is the port. */
    rule_port_or_name(c, AT(at, "targetPort"),
                      target && (rule_int_of(target) || rule_text_of(c, target).len)
                          ? target
                          : rule_member(port, "port"));
    rule_one(c, at, port, "appProtocol", IF_SET, NAME(label_key_valid));
}

static struct slice port_key(struct check *c, const struct json_node *port, const char *name)
{
    struct slice protocol = rule_text(c, port, "protocol"), key = SLICE_EMPTY;
    char text[96];
    if (!protocol.len)
        protocol = SLICE_LITERAL("TCP");
    int len = snprintf(text, sizeof(text), "%lld/%.*s", (long long)rule_int(port, name, 0),
                       (int)size_min(protocol.len, 40), (const char *)protocol.ptr);
    if (arena_dup(c->arena, slice_of(text, (size_t)len), &key) != ST_OK)
        c->errors->no_memory = true;
    return key;
}

static void check_node_ports(struct check *c, const struct at *list, const struct json_node *spec)
{
    struct seen seen = {0};
    size_t i = 0;
    const struct json_node *ports = rule_member(spec, "ports");
    for (const struct json_node *port = rule_first(ports); port; port = port->next, i++) {
        if (is_of_type(spec, "ClusterIP") && rule_int(port, "nodePort", 0))
            bad_forbidden(c, AT(AT_ITEM(list, i), "nodePort"),
                          "may not be used when `type` is 'ClusterIP'");
    }
    i = 0;
    for (const struct json_node *port = rule_first(ports); port; port = port->next, i++) {
        int64_t number = rule_int(port, "nodePort", 0);
        if (number && !seen_add(c, &seen, port_key(c, port, "nodePort")))
            bad_repeat_int(c, AT(AT_ITEM(list, i), "nodePort"), number);
    }
}

static void check_distinct_ports(struct check *c, const struct at *list,
                                 const struct json_node *ports)
{
    struct seen seen = {0};
    size_t i = 0;
    char json[160];
    for (const struct json_node *port = rule_first(ports); port; port = port->next, i++) {
        struct slice protocol = rule_text(c, port, "protocol");
        if (seen_add(c, &seen, port_key(c, port, "port")))
            continue;
        if (!protocol.len)
            protocol = SLICE_LITERAL("TCP");
        snprintf(json, sizeof(json),
                 "{\"Name\":\"\",\"Protocol\":\"%.*s\",\"AppProtocol\":null,\"Port\":%lld,"
                 "\"TargetPort\":0,\"NodePort\":0}",
                 (int)size_min(protocol.len, 40), (const char *)protocol.ptr,
                 (long long)rule_int(port, "port", 0));
        bad_repeat_raw(c, AT_ITEM(list, i), json);
    }
}

/* -- Session affinity -- */

static void rule_affinity(struct check *c, const struct at *spec, const struct json_node *of)
{
    const struct json_node *config = rule_member(of, "sessionAffinityConfig");
    const struct json_node *timeout =
        rule_member(rule_member(config, "clientIP"), "timeoutSeconds");
    const struct at *at = AT(spec, "sessionAffinityConfig");
    rule_one(c, spec, of, "sessionAffinity", IF_SOME, CHOICE("ClientIP,None"));
    if (!rule_text_is(of, "sessionAffinity", "ClientIP") || !timeout)
        return;
    if (rule_int_of(timeout) <= 0 || rule_int_of(timeout) > 86400)
        bad_node(c, AT(AT(at, "clientIP"), "timeoutSeconds"), timeout,
                 "must be greater than 0 and less than 86400");
}

/* -- Types and traffic -- */

static void check_external_name(struct check *c, const struct at *at, const struct json_node *spec)
{
#define NOT_EXTERNAL "may not be set for ExternalName services"
    static const struct rule rules[] = {
        {"ipFamilies", IF_SOME, FORBID(NOT_EXTERNAL)},
        {"ipFamilyPolicy", IF_SET, FORBID(NOT_EXTERNAL)},
    };
    struct slice name = rule_text(c, spec, "externalName");
    if (cluster_ips_of(spec).count)
        bad_forbidden(c, AT(at, "clusterIPs"), NOT_EXTERNAL);
    rule_rows(c, at, spec, rules);
    /* A dot at the end marks a name that is complete. */
    if (name.len && name.ptr[name.len - 1] == '.')
        name.len--;
    if (name.len)
        rule_name(c, AT(at, "externalName"), name, subdomain_valid);
    else
        bad_required(c, AT(at, "externalName"), NULL);
}

static void check_of_type(struct check *c, const struct at *at, const struct json_node *spec)
{
    const struct at *first = AT_ITEM(AT(at, "clusterIPs"), 0);
    if (!rule_filled(spec, "ports") && !is_headless(spec) && !is_of_type(spec, "ExternalName"))
        bad_required(c, AT(at, "ports"), NULL);
    if (is_of_type(spec, "ExternalName"))
        check_external_name(c, at, spec);
    else if (is_headless(spec) && is_of_type(spec, "LoadBalancer"))
        bad_text(c, first, SLICE_LITERAL("None"),
                 "may not be set to 'None' for LoadBalancer services");
    else if (is_headless(spec) && is_of_type(spec, "NodePort"))
        bad_text(c, first, SLICE_LITERAL("None"), "may not be set to 'None' for NodePort services");
}

/* Texts that an update keeps stay valid. */
static struct seen texts_of(struct check *c, const struct json_node *list)
{
    struct seen seen = {0};
    for (const struct json_node *item = rule_first(list); item; item = item->next)
        seen_add(c, &seen, slice_trim(rule_text_of(c, item)));
    return seen;
}

static void check_external_ips(struct check *c, const struct at *at, const struct json_node *spec,
                               const struct json_node *was)
{
    const struct at *list = AT(at, "externalIPs");
    struct seen kept = texts_of(c, rule_member(was, "externalIPs"));
    size_t i = 0;
    for (const struct json_node *item = rule_first(rule_member(spec, "externalIPs")); item;
         item = item->next, i++) {
        /* The range is checked in any case, the form only for new addresses. */
        if (seen_has(&kept, rule_text_of(c, item)))
            rule_ip_range(c, AT_ITEM(list, i), rule_text_of(c, item));
        else
            rule_usable_ip(c, AT_ITEM(list, i), rule_text_of(c, item));
    }
}

static void check_source_ranges(struct check *c, const struct at *at, const struct json_node *spec,
                                const struct json_node *was)
{
    /* The capital letter is Kubernetes'. */
    const struct at *list = AT(at, "LoadBalancerSourceRanges");
    const struct json_node *ranges = rule_filled(spec, "loadBalancerSourceRanges");
    struct seen kept = texts_of(c, rule_member(was, "loadBalancerSourceRanges"));
    size_t i = 0;
    if (ranges && !is_of_type(spec, "LoadBalancer"))
        bad_forbidden(c, list, FOR_LOAD_BALANCERS);
    for (const struct json_node *item = rule_first(ranges); item; item = item->next, i++) {
        struct slice text = slice_trim(rule_text_of(c, item));
        if (!seen_has(&kept, text))
            rule_name(c, AT_ITEM(list, i), text, cidr_valid);
    }
}

static void check_balancer(struct check *c, const struct at *at, const struct json_node *spec)
{
    const struct json_node *class = rule_member(spec, "loadBalancerClass");
    bool balancer = is_of_type(spec, "LoadBalancer");
    if (rule_member(spec, "allocateLoadBalancerNodePorts") && !balancer)
        bad_forbidden(c, AT(at, "allocateLoadBalancerNodePorts"), FOR_LOAD_BALANCERS);
    if (class && balancer)
        rule_name(c, AT(at, "loadBalancerClass"), rule_text_of(c, class), label_key_valid);
    else if (class)
        bad_forbidden(c, AT(at, "loadBalancerClass"), FOR_LOAD_BALANCERS);
}

static bool needs_health_check(const struct json_node *spec)
{
    /* Only then do the nodes need a port on which the load balancer can ask whether they have a pod
     * of the service. */
    return is_of_type(spec, "LoadBalancer") && rule_text_is(spec, "externalTrafficPolicy", "Local");
}

static const struct rule traffic_rules[] = {
    {"internalTrafficPolicy", IF_SET, CHOICE("Cluster,Local")},
    {"trafficDistribution", IF_SET, CHOICE("PreferClose,PreferSameZone,PreferSameNode")},
};

static void check_traffic(struct check *c, const struct at *at, const struct json_node *spec)
{
    struct slice outside = rule_text(c, spec, "externalTrafficPolicy");
    int64_t health = rule_int(spec, "healthCheckNodePort", 0);
    /* Only such services receive traffic from outside. */
    if (outside.len && !is_of_type(spec, "LoadBalancer") && !is_of_type(spec, "NodePort") &&
        (!is_of_type(spec, "ClusterIP") || !rule_filled(spec, "externalIPs")))
        bad_text(c, AT(at, "externalTrafficPolicy"), outside,
                 "may only be set for externally-accessible services");
    else if (outside.len)
        rule_choice(c, AT(at, "externalTrafficPolicy"), outside, "Cluster,Local");
    if (health && !needs_health_check(spec))
        bad_int(c, AT(at, "healthCheckNodePort"), health,
                "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is "
                "'Local'");
    else if (health)
        rule_port(c, AT(at, "healthCheckNodePort"), health);
    rule_rows(c, at, spec, traffic_rules);
}

/* -- Updates -- */

/* A cluster IP is kept unless the service becomes or was of type ExternalName. */
static void check_kept(struct check *c, const struct at *at, const struct json_node *spec,
                       const struct json_node *old)
{
    struct cluster_ips is = cluster_ips_of(spec), was = cluster_ips_of(old);
    const struct at *first = AT_ITEM(AT(at, "clusterIPs"), 0);
    if (is_of_type(spec, "ExternalName") || is_of_type(old, "ExternalName") ||
        (is_headless(spec) && is_headless(old)))
        return;
    /* An update that omits the addresses keeps them. */
    if (!is.count || !was.count || json_node_equal(is.first, was.first))
        return;
    if (is.list) {
        bad_node(c, first, is.list, "may not change once set");
        return;
    }
    /* The client gave only clusterIP. The message shows it as a list: ["10.0.0.1"]. */
    struct slice ip = rule_text_of(c, is.first);
    char json[80];
    snprintf(json, sizeof(json), "[\"%.*s\"]", (int)size_min(ip.len, 64), (const char *)ip.ptr);
    bad_raw(c, first, json, "may not change once set");
}

static void check_service_update(struct check *c, const struct at *at, const struct json_node *spec,
                                 const struct json_node *old)
{
    check_kept(c, at, spec, old);
    if (is_of_type(spec, "LoadBalancer") && is_of_type(old, "LoadBalancer") &&
        !rule_same_member(spec, old, "loadBalancerClass"))
        bad_node(c, AT(at, "loadBalancerClass"), rule_member(spec, "loadBalancerClass"),
                 "may not change once set");
    if (needs_health_check(spec) && needs_health_check(old) &&
        rule_int(spec, "healthCheckNodePort", 0) &&
        !rule_same_member(spec, old, "healthCheckNodePort"))
        bad_forbidden(c, AT(at, "healthCheckNodePort"), "field is immutable");
}

/* The older form: ranges that are separated by commas. */
static void check_range_annotation(struct check *c, const struct json_node *object,
                                   const struct json_node *old)
{
    static const char name[] = "service.beta.kubernetes.io/load-balancer-source-ranges";
    const struct json_node *is = rule_member(json_node_path(object, "metadata.annotations"), name);
    const struct json_node *was = rule_member(json_node_path(old, "metadata.annotations"), name);
    const struct at *at = AT_KEY(AT(AT(NULL, "metadata"), "annotations"), slice_from_text(name));
    struct slice rest = slice_trim(rule_text_of(c, is));
    if (!is)
        return;
    if (!is_of_type(rule_member(object, "spec"), "LoadBalancer"))
        bad_forbidden(c, at, FOR_LOAD_BALANCERS);
    if (old && rule_same_node(is, was))
        return;
    for (bool more = rest.len; more;) {
        more = memchr(rest.ptr, ',', rest.len);
        rule_name(c, at, slice_trim(slice_cut(&rest, ',')), cidr_valid);
        rest = rest.len ? rest : SLICE_LITERAL("");
    }
}

void kube_validate_service(struct check *c, const struct json_node *object,
                           const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec"), *was = rule_member(old, "spec");
    const struct json_node *ports = rule_member(spec, "ports");
    const struct at *at = AT(NULL, "spec"), *list = AT(at, "ports");
    if (old)
        check_service_update(c, at, spec, was);
    check_of_type(c, at, spec);
    struct seen names = {0};
    size_t i = 0;
    for (const struct json_node *port = rule_first(ports); port; port = port->next)
        check_service_port(c, AT_ITEM(list, i++), port, ports->count > 1, &names);
    rule_labels(c, AT(at, "selector"), rule_member(spec, "selector"));
    rule_affinity(c, at, spec);
    check_cluster_ips(c, at, spec, was);
    check_external_ips(c, at, spec, was);
    rule_one(c, at, spec, "type", IF_SOME, CHOICE("ClusterIP,ExternalName,LoadBalancer,NodePort"));
    check_node_ports(c, list, spec);
    check_distinct_ports(c, list, ports);
    if (rule_filled(spec, "loadBalancerSourceRanges"))
        check_source_ranges(c, at, spec, was);
    else
        check_range_annotation(c, object, old);
    check_balancer(c, at, spec);
    check_traffic(c, at, spec);
}
