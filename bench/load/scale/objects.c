#include "load/scale/objects.h"

#include "base/xalloc.h"

#include <inttypes.h>
#include <stdarg.h>
#include <time.h>

enum {
    SENT_DIGITS = 20,
    IMAGES = 5,    /* that a node names */
    ENDPOINTS = 4, /* in a slice */
};
#define SENT "bench/sent"

/* -- Names -- */

void scale_name_write(char name[static SCALE_NAME_BYTES], const char *prefix, uint32_t number)
{
    snprintf(name, SCALE_NAME_BYTES, "%s%0*u", prefix, SCALE_DIGITS, number);
}

bool scale_name_number(vigil_bytes name, const char *prefix, uint32_t *ret_number)
{
    const uint8_t *at = name.data;
    size_t before = strlen(prefix);
    uint32_t number = 0;
    if (name.size < before + SCALE_DIGITS || memcmp(at, prefix, before) != 0)
        return false;
    for (size_t i = before; i < before + SCALE_DIGITS; i++) {
        if (at[i] < '0' || at[i] > '9')
            return false;
        number = number * 10 + (uint32_t)(at[i] - '0');
    }
    *ret_number = number;
    return true;
}

/* An annotation in protobuf: its key, the tag and the length of the value, the value. */
bool scale_object_sent(const vigil_kube_object *object, uint64_t *ret_sent_ns)
{
    enum { BETWEEN = 2 };
    vigil_bytes message = vigil_kube_object_protobuf(object);
    struct slice key = SLICE_LITERAL(SENT);
    const uint8_t *at = memmem(message.data, message.size, key.ptr, key.len);
    uint64_t sent_ns = 0;
    if (!at)
        return false;
    at += key.len + BETWEEN;
    if ((size_t)((const uint8_t *)message.data + message.size - at) < SENT_DIGITS)
        return false;
    for (size_t i = 0; i < SENT_DIGITS; i++) {
        if (at[i] < '0' || at[i] > '9')
            return false;
        sent_ns = sent_ns * 10 + (uint64_t)(at[i] - '0');
    }
    *ret_sent_ns = sent_ns;
    return true;
}

/* -- Texts -- */

static void add(struct buf *to, const char *format, ...) PRINTF_LIKE(2, 3);

static void add(struct buf *to, const char *format, ...)
{
    va_list arguments;
    char *text;
    va_start(arguments, format);
    int len = vasprintf(&text, format, arguments);
    va_end(arguments);
    xalloc_check(len >= 0 ? text : NULL, 1);
    if (buf_append(to, slice_of(text, (size_t)len)) != ST_OK)
        xalloc_check(NULL, (size_t)len);
    free(text);
}

enum { TIME_BYTES = 32 };

static struct timespec write_seconds(char text[static TIME_BYTES], const char *end)
{
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    size_t len = strftime(text, TIME_BYTES, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + len, TIME_BYTES - len, "%s", end);
    return now;
}

/* "2026-11-19T20:00:00Z", as in everything but Leases. */
static void write_time(char text[static TIME_BYTES])
{
    (void)write_seconds(text, "Z");
}

/* "2026-11-19T20:00:00.123456Z" */
static void write_microtime(char text[static TIME_BYTES])
{
    struct timespec now = write_seconds(text, "");
    size_t len = strlen(text);
    snprintf(text + len, TIME_BYTES - len, ".%06ldZ", now.tv_nsec / 1000);
}

static void add_conditions(struct buf *to)
{
    static const struct {
        const char *type, *status, *reason, *message;
    } conditions[] = {
        {"MemoryPressure", "False", "KubeletHasSufficientMemory",
         "kubelet has sufficient memory available"},
        {"DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"},
        {"PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"},
        {"Ready", "True", "KubeletReady", "kubelet is posting ready status"},
    };
    char now[TIME_BYTES];
    write_time(now);
    add(to, "\"conditions\":[");
    for (size_t i = 0; i < COUNT_OF(conditions); i++)
        add(to,
            "%s{\"type\":\"%s\",\"status\":\"%s\",\"lastHeartbeatTime\":\"%s\","
            "\"lastTransitionTime\":\"2026-11-19T20:00:00Z\",\"reason\":\"%s\","
            "\"message\":\"%s\"}",
            i ? "," : "", conditions[i].type, conditions[i].status, now, conditions[i].reason,
            conditions[i].message);
    add(to, "]");
}

static void add_resources(struct buf *to, const char *name)
{
    add(to,
        "\"%s\":{\"cpu\":\"32\",\"ephemeral-storage\":\"263174212Ki\",\"hugepages-1Gi\":\"0\","
        "\"hugepages-2Mi\":\"0\",\"memory\":\"131900456Ki\",\"pods\":\"110\"},",
        name);
}

void scale_node_write(struct buf *to, const char *name, uint32_t number)
{
    buf_reset(to, SIZE_MAX);
    add(to,
        "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\",\"labels\":{"
        "\"beta.kubernetes.io/arch\":\"amd64\",\"beta.kubernetes.io/os\":\"linux\","
        "\"kubernetes.io/arch\":\"amd64\",\"kubernetes.io/hostname\":\"%s\","
        "\"kubernetes.io/os\":\"linux\",\"node.kubernetes.io/instance-type\":\"large\","
        "\"topology.kubernetes.io/region\":\"region-1\",\"topology.kubernetes.io/zone\":"
        "\"zone-%u\"},\"annotations\":{\"volumes.kubernetes.io/controller-managed-attach-detach\":"
        "\"true\"}},\"spec\":{\"providerID\":\"bench://zone/%s\"},\"status\":{",
        name, name, number % 3, name);
    add_resources(to, "capacity");
    add_resources(to, "allocatable");
    add_conditions(to);
    add(to,
        ",\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.%u.%u.%u\"},"
        "{\"type\":\"Hostname\",\"address\":\"%s\"}],\"daemonEndpoints\":{\"kubeletEndpoint\":{"
        "\"Port\":10250}},\"nodeInfo\":{\"machineID\":\"%032x\",\"systemUUID\":\"%032x\","
        "\"bootID\":\"%032x\",\"kernelVersion\":\"6.12.43+deb13-amd64\",\"osImage\":"
        "\"Debian GNU/Linux 13 (trixie)\",\"containerRuntimeVersion\":\"containerd://2.1.4\","
        "\"kubeletVersion\":\"v1.36.3\",\"kubeProxyVersion\":\"\",\"operatingSystem\":\"linux\","
        "\"architecture\":\"amd64\"},\"images\":[",
        number >> 16 & 255, number >> 8 & 255, number & 255, name, number, number, number);
    for (unsigned i = 0; i < IMAGES; i++)
        add(to,
            "%s{\"names\":[\"registry.example.com/team/image-%u@sha256:%064x\","
            "\"registry.example.com/team/image-%u:v1.2.3\"],\"sizeBytes\":%u}",
            i ? "," : "", i, i, i, 50000000 + i);
    add(to, "]}}");
}

void scale_lease_write(struct buf *to, const char *node, const char *uid, const char *version)
{
    char now[TIME_BYTES];
    write_microtime(now);
    buf_reset(to, SIZE_MAX);
    add(to,
        "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{\"name\":"
        "\"%s\",\"namespace\":\"" SCALE_LEASES "\"",
        node);
    if (version[0])
        add(to, ",\"resourceVersion\":\"%s\"", version);
    add(to,
        ",\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"%s\","
        "\"uid\":\"%s\"}]},\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":40,"
        "\"renewTime\":\"%s\"}}",
        node, uid, node, now);
}

void scale_node_status_write(struct buf *to)
{
    buf_reset(to, SIZE_MAX);
    add(to, "{\"status\":{\"$setElementOrder/conditions\":[{\"type\":\"MemoryPressure\"},"
            "{\"type\":\"DiskPressure\"},{\"type\":\"PIDPressure\"},{\"type\":\"Ready\"}],");
    add_conditions(to);
    add(to, "}}");
}

/* About 2 KB when it is ready. */
void scale_pod_write(struct buf *to, const char *name)
{
    buf_reset(to, SIZE_MAX);
    add(to,
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\",\"labels\":{"
        "\"app\":\"bench\",\"pod-template-hash\":\"7d4b9c6f8\"}},\"spec\":{"
        "\"automountServiceAccountToken\":false,\"terminationGracePeriodSeconds\":30,"
        "\"containers\":[{\"name\":\"main\",\"image\":\"registry.example.com/team/image-1:v1.2.3\","
        "\"command\":[\"/bin/server\",\"--port=8080\"],\"ports\":[{\"containerPort\":8080,"
        "\"protocol\":\"TCP\"}],\"env\":[{\"name\":\"POD_NAME\",\"valueFrom\":{\"fieldRef\":{"
        "\"apiVersion\":\"v1\",\"fieldPath\":\"metadata.name\"}}},{\"name\":\"LEVEL\",\"value\":"
        "\"info\"}],\"resources\":{\"requests\":{\"cpu\":\"100m\",\"memory\":\"128Mi\"}},"
        "\"readinessProbe\":{\"httpGet\":{\"path\":\"/ready\",\"port\":8080},\"periodSeconds\":10},"
        "\"volumeMounts\":[{\"name\":\"settings\",\"mountPath\":\"/etc/settings\"},{\"name\":"
        "\"access\",\"mountPath\":\"/etc/access\"}]}],\"volumes\":[{\"name\":\"settings\","
        "\"configMap\":{\"name\":\"" SCALE_CONFIG_MAP "\"}},{\"name\":\"access\",\"secret\":{"
        "\"secretName\":\"" SCALE_SECRET "\"}}]}}",
        name);
}

void scale_binding_write(struct buf *to, const char *pod, const char *node)
{
    buf_reset(to, SIZE_MAX);
    add(to,
        "{\"kind\":\"Binding\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\"},\"target\":{"
        "\"kind\":\"Node\",\"name\":\"%s\"}}",
        pod, node);
}

static void add_pod_conditions(struct buf *to, const char *initialized, const char *ready)
{
    char now[TIME_BYTES];
    write_time(now);
    add(to,
        "\"conditions\":[{\"type\":\"PodReadyToStartContainers\",\"status\":\"%s\","
        "\"lastTransitionTime\":\"%s\"},{\"type\":\"Initialized\",\"status\":\"True\","
        "\"lastTransitionTime\":\"%s\"},{\"type\":\"Ready\",\"status\":\"%s\","
        "\"lastTransitionTime\":\"%s\"},{\"type\":\"ContainersReady\",\"status\":\"%s\","
        "\"lastTransitionTime\":\"%s\"}]",
        initialized, now, now, ready, now, ready, now);
}

static void add_container(struct buf *to, const char *state, const char *ready)
{
    add(to,
        ",\"containerStatuses\":[{\"name\":\"main\",\"image\":"
        "\"registry.example.com/team/image-1:v1.2.3\",\"imageID\":\"\",\"ready\":%s,"
        "\"restartCount\":0,\"started\":%s,\"state\":{%s}}]",
        ready, ready, state);
}

void scale_pod_pending_write(struct buf *to, uint32_t node)
{
    char now[TIME_BYTES];
    write_time(now);
    buf_reset(to, SIZE_MAX);
    add(to, "{\"status\":{\"phase\":\"Pending\",\"startTime\":\"%s\",\"hostIP\":\"10.%u.%u.%u\",",
        now, node >> 16 & 255, node >> 8 & 255, node & 255);
    add_pod_conditions(to, "False", "False");
    add_container(to, "\"waiting\":{\"reason\":\"ContainerCreating\"}", "false");
    add(to, "}}");
}

void scale_pod_ready_write(struct buf *to, uint32_t node)
{
    char now[TIME_BYTES], state[TIME_BYTES + 64];
    write_time(now);
    snprintf(state, sizeof(state), "\"running\":{\"startedAt\":\"%s\"}", now);
    buf_reset(to, SIZE_MAX);
    add(to,
        "{\"status\":{\"phase\":\"Running\",\"podIP\":\"10.%u.%u.%u\",\"podIPs\":[{\"ip\":"
        "\"10.%u.%u.%u\"}],",
        node >> 16 & 255, node >> 8 & 255, node & 255, node >> 16 & 255, node >> 8 & 255,
        node & 255);
    add_pod_conditions(to, "True", "True");
    add_container(to, state, "true");
    add(to, "}}");
}

void scale_pod_ended_write(struct buf *to)
{
    buf_reset(to, SIZE_MAX);
    add(to, "{\"status\":{\"phase\":\"Succeeded\",");
    add_pod_conditions(to, "False", "False");
    add_container(to, "\"terminated\":{\"exitCode\":0,\"reason\":\"Completed\"}", "false");
    add(to, "}}");
}

static void add_meta(struct buf *to, uint32_t number, const char *version, uint64_t sent_ns)
{
    add(to,
        "\"metadata\":{\"name\":\"" SCALE_PREFIX "%0*u\",\"namespace\":\"" SCALE_PREFIX
        "%u\",\"annotations\":{\"" SENT "\":\"%0*" PRIu64 "\"}",
        SCALE_DIGITS, number, number % SCALE_NAMESPACES, SENT_DIGITS, sent_ns);
    if (version[0])
        add(to, ",\"resourceVersion\":\"%s\"", version);
}

void scale_service_write(struct buf *to, uint32_t number, const char *version, uint64_t sent_ns)
{
    buf_reset(to, SIZE_MAX);
    add(to, "{\"kind\":\"Service\",\"apiVersion\":\"v1\",");
    add_meta(to, number, version, sent_ns);
    add(to, ",\"labels\":{\"app\":\"bench\"}},\"spec\":{\"type\":\"ClusterIP\",\"ports\":[");
    for (unsigned i = 0; i < 8; i++)
        add(to,
            "%s{\"name\":\"port-number-%u-of-the-service\",\"port\":%u,\"protocol\":\"TCP\","
            "\"targetPort\":%u}",
            i ? "," : "", i, 8000 + i, 9000 + i);
    add(to, "]}}");
}

void scale_slice_write(struct buf *to, uint32_t number, const char *version, uint64_t sent_ns)
{
    buf_reset(to, SIZE_MAX);
    add(to, "{\"kind\":\"EndpointSlice\",\"apiVersion\":\"discovery.k8s.io/v1\",");
    add_meta(to, number, version, sent_ns);
    add(to,
        ",\"labels\":{\"endpointslice.kubernetes.io/managed-by\":\"vigil-bench\","
        "\"kubernetes.io/service-name\":\"" SCALE_PREFIX "%0*u\"}},\"addressType\":\"IPv4\","
        "\"ports\":[{\"name\":\"http\",\"port\":8080,\"protocol\":\"TCP\"}],\"endpoints\":[",
        SCALE_DIGITS, number);
    for (unsigned i = 0; i < ENDPOINTS; i++)
        add(to,
            "%s{\"addresses\":[\"10.%u.%u.%u\"],\"conditions\":{\"ready\":true,\"serving\":true,"
            "\"terminating\":false},\"nodeName\":\"" SCALE_NODE_PREFIX "%0*u\",\"targetRef\":{"
            "\"kind\":\"Pod\",\"name\":\"" SCALE_POD_PREFIX "%0*u\",\"namespace\":\"" SCALE_PREFIX
            "%u\"},\"zone\":\"zone-%u\"}",
            i ? "," : "", i, number >> 8 & 255, number & 255, SCALE_DIGITS, number + i,
            SCALE_DIGITS, number + i, number % SCALE_NAMESPACES, i % 3);
    add(to, "]}");
}
