/* Containers: ports, mounts, resources, probes and hooks. */
#include "kube/types/validate/names.h"
#include "kube/types/validate/quantity.h"
#include "kube/types/validate/rules.h"
#include "kube/types/validate/workload/pod.h"
#include "kube/types/validate/workload/volume.h"

#include <stdio.h>

/* -- Ports -- */

static const struct rule port_rules[] = {
    {"containerPort", NEEDED, NUMBER(rule_port)},
    {"hostPort", IF_SOME, NUMBER(rule_port)},
    {"protocol", IF_SOME, CHOICE("SCTP,TCP,UDP")},
};

static void check_container_ports(struct check *c, const struct at *at,
                                  const struct json_node *ports)
{
    struct seen names = {0};
    size_t i = 0;
    for (const struct json_node *port = rule_first(ports); port; port = port->next, i++) {
        const struct at *item = AT_ITEM(at, i);
        struct slice name = rule_text(c, port, "name");
        if (name.len && rule_name(c, AT(item, "name"), name, port_name_valid) &&
            !seen_add(c, &names, name))
            bad_repeat(c, AT(item, "name"), name);
        rule_rows(c, item, port, port_rules);
    }
}

static void check_host_port(struct check *c, const struct at *at, const struct json_node *port,
                            struct seen *seen)
{
    struct slice protocol = rule_text(c, port, "protocol"), address = rule_text(c, port, "hostIP");
    struct slice key = SLICE_EMPTY;
    char text[192];
    /* Without a host port nothing can collide on the node. */
    if (!rule_int(port, "hostPort", 0))
        return;
    if (!protocol.len)
        protocol = SLICE_LITERAL("TCP");
    int len = snprintf(text, sizeof(text), "%.*s/%.*s/%lld", (int)size_min(protocol.len, 40),
                       (const char *)protocol.ptr, (int)size_min(address.len, 64),
                       (const char *)address.ptr, (long long)rule_int(port, "hostPort", 0));
    if (arena_dup(c->arena, slice_of(text, (size_t)len), &key) != ST_OK)
        c->errors->no_memory = true;
    else if (!seen_add(c, seen, key))
        bad_repeat(c, AT(at, "hostPort"), key);
}

static void check_host_ports(struct check *c, const struct at *at,
                             const struct json_node *container, struct seen *seen)
{
    const struct at *list = AT(at, "ports");
    size_t i = 0;
    for (const struct json_node *port = rule_first(rule_member(container, "ports")); port;
         port = port->next)
        check_host_port(c, AT_ITEM(list, i++), port, seen);
}

/* -- Mounts -- */

static void check_recursive(struct check *c, const struct at *at, const struct json_node *mount)
{
    struct slice mode = rule_text(c, mount, "recursiveReadOnly");
    if (rule_one_of(mode, "Enabled,IfPossible")) {
        if (!rule_truth(mount, "readOnly"))
            bad_forbidden(c, at, "may only be specified when readOnly is true");
        if (!rule_choice_is(mount, "mountPropagation", "None", "None"))
            bad_forbidden(c, at,
                          "may only be specified when mountPropagation is"
                          " None or not specified");
    } else if (rule_member(mount, "recursiveReadOnly")) {
        rule_choice(c, at, mode, "Disabled,Enabled,IfPossible");
    }
}

static void check_sub_path(struct check *c, const struct at *list, const struct at *at,
                           const struct json_node *mount)
{
    struct slice path = rule_text(c, mount, "subPath"), expr = rule_text(c, mount, "subPathExpr");
    /* The paths of these two errors lack the index of the mount, as in Kubernetes. */
    if (path.len)
        rule_path_descends(c, AT(list, "subPath"), path);
    if (expr.len && path.len)
        bad_text(c, AT(at, "subPathExpr"), expr, "subPathExpr and subPath are mutually exclusive");
    if (expr.len)
        rule_path_descends(c, AT(list, "subPathExpr"), expr);
}

/* Names and paths of a list of mounts or devices. */
struct mounted {
    struct seen names, paths;
};

static struct mounted mounted_of(struct check *c, const struct json_node *list, const char *path)
{
    struct mounted found = {0};
    for (const struct json_node *item = rule_first(list); item; item = item->next) {
        seen_add(c, &found.names, rule_text(c, item, "name"));
        seen_add(c, &found.paths, rule_text(c, item, path));
    }
    return found;
}

static void check_mount(struct check *c, const struct at *list, const struct at *at,
                        const struct json_node *mount, struct seen *paths,
                        const struct mounted *devices, const struct pod_check *pod)
{
    struct slice name = rule_text(c, mount, "name"), path = rule_text(c, mount, "mountPath");
    if (!name.len)
        bad_required(c, AT(at, "name"), NULL);
    if (!seen_has(&pod->volumes, name))
        bad_not_found(c, AT(at, "name"), name, NULL);
    if (!path.len)
        bad_required(c, AT(at, "mountPath"), NULL);
    if (!seen_add(c, paths, path))
        bad_text(c, AT(at, "mountPath"), path, "must be unique");
    if (seen_has(&devices->names, name))
        bad_text(c, AT(at, "name"), name, "must not already exist in volumeDevices");
    if (seen_has(&devices->paths, path))
        bad_text(c, AT(at, "mountPath"), path, "must not already exist as a path in volumeDevices");
    check_sub_path(c, list, at, mount);
}

static void check_mounts(struct check *c, const struct at *at, const struct json_node *container,
                         const struct pod_check *pod)
{
    struct mounted devices = mounted_of(c, rule_member(container, "volumeDevices"), "devicePath");
    struct seen paths = {0};
    size_t i = 0;
    for (const struct json_node *mount = rule_first(rule_member(container, "volumeMounts")); mount;
         mount = mount->next) {
        check_mount(c, at, AT_ITEM(at, i++), mount, &paths, &devices, pod);
        if (rule_member(mount, "mountPropagation")) {
            /* Here, too, Kubernetes' path has no index. */
            const struct at *in = AT(at, "mountPropagation");
            struct slice mode = rule_text(c, mount, "mountPropagation");
            rule_choice(c, in, mode, "Bidirectional,HostToContainer,None");
            if (slice_is(mode, "Bidirectional") &&
                !rule_truth(rule_member(container, "securityContext"), "privileged"))
                bad_forbidden(
                    c, in,
                    "Bidirectional mount propagation is available only to privileged containers");
        }
        check_recursive(c, AT(at, "recursiveReadOnly"), mount);
    }
}

static void check_device(struct check *c, const struct at *at, const struct json_node *device,
                         struct mounted *seen, const struct mounted *mounts,
                         const struct pod_check *pod)
{
    struct slice name = rule_text(c, device, "name"), path = rule_text(c, device, "devicePath");
    if (!name.len)
        bad_required(c, AT(at, "name"), NULL);
    else if (!seen_add(c, &seen->names, name))
        bad_text(c, AT(at, "name"), name, "must be unique");
    if (!seen_has(&pod->volumes, name))
        bad_not_found(c, AT(at, "name"), name, NULL);
    if (!path.len)
        bad_required(c, AT(at, "devicePath"), NULL);
    if (!seen_add(c, &seen->paths, path))
        bad_text(c, AT(at, "devicePath"), path, "must be unique");
    if (seen_has(&mounts->names, name))
        bad_text(c, AT(at, "name"), name, "must not already exist in volumeMounts");
    if (seen_has(&mounts->paths, path))
        bad_text(c, AT(at, "devicePath"), path, "must not already exist as a path in volumeMounts");
}

static void check_devices(struct check *c, const struct at *at, const struct json_node *container,
                          const struct pod_check *pod)
{
    const struct json_node *list = rule_filled(container, "volumeDevices");
    struct mounted seen = {0}, mounts;
    size_t i = 0;
    if (!list)
        return;
    mounts = mounted_of(c, rule_member(container, "volumeMounts"), "mountPath");
    for (const struct json_node *item = rule_first(list); item; item = item->next)
        check_device(c, AT_ITEM(at, i++), item, &seen, &mounts, pod);
}

/* -- Resources -- */

static void check_huge_page(struct check *c, const struct at *at, const struct json_node *item)
{
    struct slice text = quantity_text(c, item);
    char why[192];
    /* The name has the size of a page: hugepages-2Mi. */
    struct json_node *size =
        json_node_new_text(c->arena, slice_sub(item->key, 10, item->key.len - 10));
    int64_t page = size ? quantity_units(quantity_of(c, size)) : 1;
    if (page > 0 && quantity_units(quantity_of(c, item)) % page == 0)
        return;
    snprintf(why, sizeof(why), "%.*s is not positive integer multiple of %.*s", SLICE_ARGS(text),
             (int)size_min(item->key.len, 100), (const char *)item->key.ptr);
    bad_text(c, at, text, why);
}

struct resources_found {
    bool computed, huge;
};

static void check_amount(struct check *c, const struct at *list, const struct json_node *item,
                         struct resources_found *found)
{
    const struct at *at = AT_KEY(list, item->key);
    rule_container_resource_name(c, at, item->key);
    rule_quantity_of(c, at, item->key, item);
    found->computed = found->computed || rule_one_of(item->key, "cpu,memory");
}

static void check_request(struct check *c, const struct at *at, const struct at *limits,
                          const struct json_node *item, const struct json_node *limit)
{
    /* A node cannot give more of these resources than it has, so a request must equal its limit. */
    bool fixed = !resource_is_native(item->key) || resource_is_huge_page(item->key);
    quantity is = quantity_of(c, item), most = quantity_of(c, limit);
    char why[256];
    if (!limit) {
        if (fixed)
            bad_required(c, limits, "Limit must be set for non overcommitable resources");
        return;
    }
    if (is <= most && !(fixed && is != most))
        return;
    struct slice text = quantity_text(c, limit);
    snprintf(why, sizeof(why), "must be %s %.*s limit of %.*s",
             fixed ? "equal to" : "less than or equal to", (int)size_min(item->key.len, 100),
             (const char *)item->key.ptr, SLICE_ARGS(text));
    bad_text(c, at, quantity_text(c, item), why);
}

static void check_claim_names(struct check *c, const struct at *at, const struct json_node *claims,
                              const struct pod_check *pod)
{
    struct seen names = {0};
    size_t i = 0;
    for (const struct json_node *item = rule_first(claims); item; item = item->next, i++) {
        struct slice name = rule_text(c, item, "name");
        if (!name.len) {
            bad_required(c, AT_ITEM(at, i), NULL);
            continue;
        }
        if (!seen_add(c, &names, name))
            bad_repeat(c, AT_ITEM(at, i), name);
        if (!seen_has(&pod->claims, name))
            bad_not_found(c, AT_ITEM(at, i), name,
                          pod->claims.count
                              ? "must be one of the names in pod.spec.resourceClaims"
                              : "must be one of the names in pod.spec.resourceClaims which is "
                                "empty");
    }
}

void rule_resources(struct check *c, const struct at *at, const struct json_node *resources,
                    const struct pod_check *pod)
{
    const struct json_node *limits = rule_member(resources, "limits");
    const struct at *most = AT(at, "limits"), *least = AT(at, "requests");
    struct resources_found found = {0};
    for (const struct json_node *item = rule_first(limits); item; item = item->next) {
        check_amount(c, most, item, &found);
        if (resource_is_huge_page(item->key)) {
            found.huge = true;
            check_huge_page(c, AT_KEY(most, item->key), item);
        }
    }
    for (const struct json_node *item = rule_first(rule_member(resources, "requests")); item;
         item = item->next) {
        check_amount(c, least, item, &found);
        check_request(c, least, most, item, json_node_member(limits, item->key));
        if (resource_is_huge_page(item->key)) {
            found.huge = true;
            check_huge_page(c, AT_KEY(least, item->key), item);
        }
    }
    /* Huge pages alone do not let the scheduler and the kubelet place the pod. */
    if (found.huge && !found.computed)
        bad_forbidden(c, at, "HugePages require cpu or memory");
    check_claim_names(c, AT(at, "claims"), rule_member(resources, "claims"), pod);
}

/* -- Probes and hooks -- */

static void check_sleep(struct check *c, const struct at *at, const struct json_node *sleep,
                        const struct pod_check *pod)
{
    /* The hook runs within the grace period, whose default is 30 seconds. */
    int64_t grace = rule_int(pod->spec, "terminationGracePeriodSeconds", 30);
    int64_t seconds = rule_int(sleep, "seconds", 0);
    char why[128];
    if (seconds >= 0 && seconds <= grace)
        return;
    snprintf(why, sizeof(why),
             "must be non-negative and less than terminationGracePeriodSeconds (%lld)",
             (long long)grace);
    bad_int(c, at, seconds, why);
}

static void check_action(struct check *c, const struct at *at, const char *name,
                         const struct json_node *action, const struct pod_check *pod)
{
    if (strcmp(name, "exec") == 0) {
        rule_one(c, at, action, "command", NEEDED, WHY(NULL));
    } else if (strcmp(name, "httpGet") == 0) {
        rule_port_or_name(c, AT(at, "port"), rule_member(action, "port"));
        rule_one(c, at, action, "scheme", IF_SOME, CHOICE("HTTP,HTTPS"));
        for (const struct json_node *item = rule_first(rule_member(action, "httpHeaders")); item;
             item = item->next)
            rule_name(c, AT(at, "httpHeaders"), rule_text(c, item, "name"), http_header_valid);
    } else if (strcmp(name, "sleep") == 0) {
        check_sleep(c, at, action, pod);
    } else {
        rule_port_or_name(c, AT(at, "port"), rule_member(action, "port"));
    }
}

static void check_handler(struct check *c, const struct at *at, const struct json_node *handler,
                          const struct pod_check *pod)
{
    static const char *const names[] = {"exec", "httpGet", "tcpSocket", "grpc", "sleep"};
    bool found = false;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct json_node *action = rule_member(handler, names[i]);
        /* Only the first handler is examined any further. */
        if (action && found)
            bad_forbidden(c, AT(at, names[i]), "may not specify more than 1 handler type");
        else if (action)
            check_action(c, AT(at, names[i]), names[i], action, pod);
        found = found || action;
    }
    if (!found)
        bad_required(c, at, "must specify a handler type");
}

static void check_probe(struct check *c, const struct at *at, const struct json_node *probe,
                        const struct pod_check *pod)
{
    static const struct rule rules[] = {
        {"initialDelaySeconds", ALWAYS, NUMBER(rule_not_negative)},
        {"timeoutSeconds", ALWAYS, NUMBER(rule_not_negative)},
        {"periodSeconds", ALWAYS, NUMBER(rule_not_negative)},
        {"successThreshold", ALWAYS, NUMBER(rule_not_negative)},
        {"failureThreshold", ALWAYS, NUMBER(rule_not_negative)},
        {"terminationGracePeriodSeconds", IF_SET, WITHIN(1, INT64_MAX, "must be greater than 0")},
    };
    check_handler(c, at, probe, pod);
    rule_rows(c, at, probe, rules);
}

/* A probe of life or start succeeds at once. */
static void check_single_probe(struct check *c, const struct at *at, const struct json_node *probe,
                               const struct pod_check *pod)
{
    int64_t successes = rule_int(probe, "successThreshold", 1);
    if (!probe)
        return;
    check_probe(c, at, probe, pod);
    if (successes != 1 && successes != 0)
        bad_int(c, AT(at, "successThreshold"), successes, "must be 1");
}

static void check_life(struct check *c, const struct at *at, const struct json_node *container,
                       const struct pod_check *pod)
{
    const struct json_node *cycle = rule_member(container, "lifecycle");
    const struct json_node *ready = rule_member(container, "readinessProbe");
    const struct json_node *grace = rule_member(ready, "terminationGracePeriodSeconds");
    const struct at *in = AT(at, "lifecycle"), *probe = AT(at, "readinessProbe");
    if (rule_member(cycle, "postStart"))
        check_handler(c, AT(in, "postStart"), rule_member(cycle, "postStart"), pod);
    if (rule_member(cycle, "preStop"))
        check_handler(c, AT(in, "preStop"), rule_member(cycle, "preStop"), pod);
    check_single_probe(c, AT(at, "livenessProbe"), rule_member(container, "livenessProbe"), pod);
    if (ready)
        check_probe(c, probe, ready, pod);
    if (grace)
        bad_node(c, AT(probe, "terminationGracePeriodSeconds"), grace,
                 "must not be set for readinessProbes");
    check_single_probe(c, AT(at, "startupProbe"), rule_member(container, "startupProbe"), pod);
}

/* -- Containers -- */

static void check_resize(struct check *c, const struct at *at, const struct json_node *list,
                         const struct pod_check *pod)
{
    struct seen seen = {0};
    size_t i = 0;
    for (const struct json_node *item = rule_first(list); item; item = item->next, i++) {
        struct slice resource = rule_text(c, item, "resourceName");
        struct slice policy = rule_text(c, item, "restartPolicy");
        if (!seen_add(c, &seen, resource))
            bad_repeat(c, AT_ITEM(at, i), resource);
        if (!resource.len)
            bad_required(c, at, NULL);
        else
            rule_choice(c, at, resource, "cpu,memory");
        if (!policy.len)
            bad_required(c, at, NULL);
        else
            rule_choice(c, at, policy, "NotRequired,RestartContainer");
        if (rule_text_is(pod->spec, "restartPolicy", "Never") && !slice_is(policy, "NotRequired"))
            bad_text(c, at, policy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
    }
}

static void check_common(struct check *c, const struct at *at, const struct json_node *container,
                         const struct pod_check *pod)
{
    static const struct rule rules[] = {
        {"name", NEEDED, NAME(dns_label_valid)},
        {"image", NEEDED, WHY(NULL)},
        {"terminationMessagePolicy", IF_SOME, CHOICE("File,FallbackToLogsOnError")},
        {"ports", ALWAYS, PART(check_container_ports)},
        {"env", ALWAYS, PART(rule_env)},
        {"envFrom", ALWAYS, PART(rule_env_from)},
    };
    rule_rows(c, at, container, rules);
    check_mounts(c, AT(at, "volumeMounts"), container, pod);
    check_devices(c, AT(at, "volumeDevices"), container, pod);
    rule_one(c, at, container, "imagePullPolicy", IF_SOME, CHOICE("Always,IfNotPresent,Never"));
    rule_resources(c, AT(at, "resources"), rule_member(container, "resources"), pod);
    check_resize(c, AT(at, "resizePolicy"), rule_member(container, "resizePolicy"), pod);
    rule_security(c, AT(at, "securityContext"), rule_member(container, "securityContext"),
                  pod->spec);
}

#define RESTART_POLICIES "Always,Never,OnFailure"

static void check_restart(struct check *c, const struct at *at, const struct json_node *container)
{
    const struct json_node *policy = rule_member(container, "restartPolicy");
    const struct json_node *rules = rule_filled(container, "restartPolicyRules");
    if (policy)
        rule_choice(c, AT(at, "restartPolicy"), rule_text_of(c, policy), RESTART_POLICIES);
    else if (rules)
        bad_required(c, AT(at, "restartPolicy"),
                     "must specify restartPolicy when restart rules are used");
}

/* The stored containers beside which those of a pod are checked, one by one. */
static const struct json_node *next_in(const struct json_node *item)
{
    return item ? item->next : NULL;
}

static void check_regular(struct check *c, const struct at *list, struct pod_check *pod,
                          struct seen *names)
{
    const struct json_node *containers = rule_member(pod->spec, "containers");
    const struct json_node *was = rule_first(rule_member(pod->old, "containers"));
    struct seen ports = {0};
    size_t i = 0;
    if (!rule_count(containers))
        bad_required(c, list, NULL);
    for (const struct json_node *item = rule_first(containers); item;
         item = item->next, was = next_in(was), i++) {
        bool kept = rule_is_kept(c, item, was);
        if (!kept)
            check_common(c, AT_ITEM(list, i), item, pod);
        if (!seen_add(c, names, rule_text(c, item, "name")))
            bad_repeat(c, AT(AT_ITEM(list, i), "name"), rule_text(c, item, "name"));
        if (kept)
            continue;
        check_life(c, AT_ITEM(list, i), item, pod);
        check_restart(c, AT_ITEM(list, i), item);
    }
    i = 0;
    for (const struct json_node *item = rule_first(containers); item; item = item->next)
        check_host_ports(c, AT_ITEM(list, i++), item, &ports);
}

#define NO_LIFE FORBID("may not be set for init containers without restartPolicy=Always")

static const struct rule no_life_rules[] = {
    {"lifecycle", IF_SET, NO_LIFE},
    {"livenessProbe", IF_SET, NO_LIFE},
    {"readinessProbe", IF_SET, NO_LIFE},
    {"startupProbe", IF_SET, NO_LIFE},
};

static void check_init(struct check *c, const struct at *list, struct pod_check *pod,
                       struct seen *names)
{
    const struct json_node *was = rule_first(rule_member(pod->old, "initContainers"));
    size_t i = 0;
    for (const struct json_node *item = rule_first(rule_member(pod->spec, "initContainers")); item;
         item = item->next, was = next_in(was), i++) {
        const struct at *at = AT_ITEM(list, i);
        struct slice name = rule_text(c, item, "name");
        struct seen ports = {0};
        bool kept = rule_is_kept(c, item, was);
        if (!kept) {
            check_common(c, at, item, pod);
            check_restart(c, at, item);
        }
        if (seen_has(names, name))
            bad_repeat(c, AT(at, "name"), name);
        else if (name.len)
            seen_add(c, names, name);
        if (kept)
            continue;
        check_host_ports(c, AT_ITEM(list, 0), item, &ports);
        if (rule_text_is(item, "restartPolicy", "Always"))
            check_life(c, at, item, pod);
        else
            rule_rows(c, at, item, no_life_rules);
    }
}

#define NOT_EPHEMERAL FORBID("cannot be set for an Ephemeral Container")

static const struct rule ephemeral_rules[] = {
    {"ports", IF_SET, NOT_EPHEMERAL},         {"lifecycle", IF_SET, NOT_EPHEMERAL},
    {"livenessProbe", IF_SET, NOT_EPHEMERAL}, {"readinessProbe", IF_SET, NOT_EPHEMERAL},
    {"startupProbe", IF_SET, NOT_EPHEMERAL},  {"resizePolicy", IF_SET, NOT_EPHEMERAL},
};

static void check_ephemeral(struct check *c, const struct at *list, struct pod_check *pod,
                            struct seen *names)
{
    size_t i = 0;
    for (const struct json_node *item = rule_first(rule_member(pod->spec, "ephemeralContainers"));
         item; item = item->next, i++) {
        const struct at *at = AT_ITEM(list, i);
        struct slice name = rule_text(c, item, "name");
        check_common(c, at, item, pod);
        if (!seen_add(c, names, name))
            bad_repeat(c, AT(at, "name"), name);
        rule_rows(c, at, item, ephemeral_rules);
    }
}

void rule_containers(struct check *c, const struct at *spec, struct pod_check *pod)
{
    struct seen names = {0};
    check_regular(c, AT(spec, "containers"), pod, &names);
    check_init(c, AT(spec, "initContainers"), pod, &names);
    check_ephemeral(c, AT(spec, "ephemeralContainers"), pod, &names);
}
