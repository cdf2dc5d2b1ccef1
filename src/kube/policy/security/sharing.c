#include "kube/policy/security/sharing.h"

enum {
    ALWAYS = 0,
    RESERVED_PORTS_MINOR = 27, /* versions that allow further sysctls */
    KEEPALIVE_MINOR = 29,
    BUFFERS_MINOR = 32,
};

bool pod_passes_host_namespaces(struct pod_checked *c)
{
    static const char *const names[] = {"hostNetwork", "hostPID", "hostIPC"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (!json_node_is_true(json_node_named(c->spec, names[i])))
            continue;
        pod_put_text(c, c->detail.len ? ", " : "");
        pod_put_text(c, names[i]);
        pod_put_text(c, "=true");
    }
    return !c->detail.len || pod_check_fail(c, "host namespaces");
}

bool pod_passes_host_paths(struct pod_checked *c)
{
    struct pod_words bad = {0};
    for (const struct json_node *volume = json_node_items_at(c->spec, "volumes"); volume;
         volume = volume->next)
        if (json_node_is_set(json_node_named(volume, "hostPath")))
            pod_words_add(c, &bad, pod_name_of(c, volume));
    if (!bad.count)
        return true;
    pod_put_text(c, pod_plural(bad.count, "volume ", "volumes "));
    pod_put_quoted(c, &bad);
    return pod_check_fail(c, "hostPath volumes");
}

/* The source of a volume that not every pod may use; NULL: it has one that all may. */
static const char *restricted_source(const struct json_node *volume)
{
    static const char *const allowed[] = {
        "configMap", "csi",   "downwardAPI",           "emptyDir",
        "ephemeral", "image", "persistentVolumeClaim", "projected",
        "secret"};
    static const char *const others[] = {"hostPath",
                                         "gcePersistentDisk",
                                         "awsElasticBlockStore",
                                         "gitRepo",
                                         "nfs",
                                         "iscsi",
                                         "glusterfs",
                                         "rbd",
                                         "flexVolume",
                                         "cinder",
                                         "cephfs",
                                         "flocker",
                                         "fc",
                                         "azureFile",
                                         "vsphereVolume",
                                         "quobyte",
                                         "azureDisk",
                                         "photonPersistentDisk",
                                         "portworxVolume",
                                         "scaleIO",
                                         "storageos"};
    for (size_t i = 0; i < COUNT_OF(allowed); i++)
        if (json_node_is_set(json_node_named(volume, allowed[i])))
            return NULL;
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (json_node_is_set(json_node_named(volume, others[i])))
            return others[i];
    return "unknown";
}

bool pod_passes_volumes(struct pod_checked *c)
{
    struct pod_words bad = {0}, sources = {0};
    for (const struct json_node *volume = json_node_items_at(c->spec, "volumes"); volume;
         volume = volume->next) {
        const char *source = restricted_source(volume);
        if (!source)
            continue;
        pod_words_add(c, &bad, pod_name_of(c, volume));
        pod_words_add(c, &sources, slice_from_text(source));
    }
    if (!bad.count)
        return true;
    pod_words_sort(&sources);
    pod_put_text(c, pod_plural(bad.count, "volume ", "volumes "));
    pod_put_quoted(c, &bad);
    pod_put_text(c, pod_plural(bad.count, " uses ", " use "));
    pod_put_text(c,
                 pod_plural(sources.count, "restricted volume type ", "restricted volume types "));
    pod_put_quoted(c, &sources);
    return pod_check_fail(c, "restricted volume types");
}

bool pod_passes_host_ports(struct pod_checked *c)
{
    struct pod_words bad = {0}, ports = {0};
    for (struct pod_containers walk = pod_containers_of(c); walk.now; pod_containers_next(&walk)) {
        size_t before = ports.count;
        for (const struct json_node *port = json_node_items_at(walk.now, "ports"); port;
             port = port->next) {
            const struct json_node *host = json_node_named(port, "hostPort");
            if (host && host->type == JSON_TYPE_NUMBER && !slice_is(host->text, "0"))
                pod_words_add(c, &ports, host->text);
        }
        if (ports.count > before)
            pod_words_add(c, &bad, pod_name_of(c, walk.now));
    }
    if (!bad.count)
        return true;
    pod_words_sort(&ports);
    pod_put_containers(c, &bad);
    pod_put_text(c, pod_plural(bad.count, " uses ", " use "));
    pod_put_text(c, pod_plural(ports.count, "hostPort ", "hostPorts "));
    pod_put_joined(c, &ports, ", ");
    return pod_check_fail(c, "hostPort");
}

/* Probes and hooks of a container may be sent from the node, and so to another host. */
static bool add_hosts(struct pod_checked *c, const struct json_node *container,
                      struct pod_words *hosts)
{
    static const char *const paths[] = {
        "livenessProbe.httpGet.host",       "livenessProbe.tcpSocket.host",
        "readinessProbe.httpGet.host",      "readinessProbe.tcpSocket.host",
        "startupProbe.httpGet.host",        "startupProbe.tcpSocket.host",
        "lifecycle.postStart.httpGet.host", "lifecycle.postStart.tcpSocket.host",
        "lifecycle.preStop.httpGet.host",   "lifecycle.preStop.tcpSocket.host"};
    size_t before = hosts->count;
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        const struct json_node *host = json_node_path(container, paths[i]);
        if (json_node_has_text(host))
            pod_words_add(c, hosts, pod_text_of(c, host));
    }
    return hosts->count > before;
}

bool pod_passes_hosts(struct pod_checked *c)
{
    struct pod_words bad = {0}, hosts = {0};
    for (struct pod_containers walk = pod_containers_of(c); walk.now; pod_containers_next(&walk))
        if (add_hosts(c, walk.now, &hosts))
            pod_words_add(c, &bad, pod_name_of(c, walk.now));
    if (!bad.count)
        return true;
    pod_words_sort(&bad);
    pod_words_sort(&hosts);
    pod_put_containers(c, &bad);
    pod_put_text(c, pod_plural(bad.count, " uses ", " use "));
    pod_put_text(c,
                 pod_plural(hosts.count, "probe or lifecycle host ", "probe or lifecycle hosts "));
    pod_put_quoted(c, &hosts);
    return pod_check_fail(c, "probe or lifecycle host");
}

/* Settings of the kernel that concern only the pod that has them. */
static bool is_safe_sysctl(struct slice name, int64_t minor)
{
    static const struct {
        const char *name;
        int since;
    } all[] = {
        {"kernel.shm_rmid_forced", ALWAYS},
        {"net.ipv4.ip_local_port_range", ALWAYS},
        {"net.ipv4.tcp_syncookies", ALWAYS},
        {"net.ipv4.ping_group_range", ALWAYS},
        {"net.ipv4.ip_unprivileged_port_start", ALWAYS},
        {"net.ipv4.ip_local_reserved_ports", RESERVED_PORTS_MINOR},
        {"net.ipv4.tcp_keepalive_time", KEEPALIVE_MINOR},
        {"net.ipv4.tcp_fin_timeout", KEEPALIVE_MINOR},
        {"net.ipv4.tcp_keepalive_intvl", KEEPALIVE_MINOR},
        {"net.ipv4.tcp_keepalive_probes", KEEPALIVE_MINOR},
        {"net.ipv4.tcp_rmem", BUFFERS_MINOR},
        {"net.ipv4.tcp_wmem", BUFFERS_MINOR},
    };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (slice_is(name, all[i].name))
            return minor >= all[i].since;
    return false;
}

bool pod_passes_sysctls(struct pod_checked *c)
{
    struct pod_words bad = {0};
    for (const struct json_node *one = json_node_items_at(c->spec, "securityContext.sysctls"); one;
         one = one->next) {
        struct slice name = pod_name_of(c, one);
        if (!is_safe_sysctl(name, c->minor))
            pod_words_add(c, &bad, name);
    }
    if (!bad.count)
        return true;
    pod_put_joined(c, &bad, ", ");
    return pod_check_fail(c, "forbidden sysctls");
}
