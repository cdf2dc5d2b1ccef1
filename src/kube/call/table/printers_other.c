#include "kube/call/table/printers.h"
#include "kube/call/table/printers_private.h"

#include "base/macros.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN_MAX = 3, METRICS_SHOWN_MAX = 2, CELL_BYTES = 640 };

static const struct json_node *first_in(const struct json_node *node, const char *path)
{
    const struct json_node *list = json_node_path(node, path);
    bool has = list && (list->type == JSON_TYPE_ARRAY || list->type == JSON_TYPE_OBJECT);
    return has ? list->first : NULL;
}

/* A string, a number or a quantity, as text. */
static struct slice value_at(struct kube_cells *cells, const struct json_node *node,
                             const char *path)
{
    const struct json_node *value = json_node_path(node, path);
    if (value && value->type == JSON_TYPE_NUMBER)
        return value->text;
    return kube_cell_text(cells, node, path);
}

static void print_value(struct kube_cells *cells, const struct kube_column *column)
{
    struct slice text = value_at(cells, cells->object, column->path);
    json_string(cells->w, text.len ? text : slice_from_text(column->fallback));
}

/* Prints the texts of an array. */
static void print_texts(struct kube_cells *cells, const struct kube_column *column)
{
    struct kube_joined joined = {0};
    for (const struct json_node *at = first_in(cells->object, column->path); at; at = at->next) {
        struct slice text;
        if (json_node_text(at, &cells->arena, &text) == ST_OK)
            kube_joined_add(&joined, text);
    }
    kube_joined_write(&joined, cells, column->fallback);
}

/*
 * Prints two texts of the object at the path with a separator; the fallback if the first is
 * missing.
 */
static void print_pair(struct kube_cells *cells, const struct kube_column *column,
                       const char *first, const char *between, const char *second)
{
    char text[CELL_BYTES];
    const struct json_node *node = json_node_path(cells->object, column->path);
    struct slice a = kube_cell_text(cells, node, first), b = kube_cell_text(cells, node, second);
    snprintf(text, sizeof(text), "%.*s%s%.*s", (int)size_min(a.len, 300), a.ptr, between,
             (int)size_min(b.len, 300), b.ptr);
    json_text(cells->w, a.len || b.len || !column->fallback ? text : column->fallback);
}

static void print_kind_and_name(struct kube_cells *cells, const struct kube_column *column)
{
    print_pair(cells, column, "kind", "/", "name");
}

static void print_param_kind(struct kube_cells *cells, const struct kube_column *column)
{
    print_pair(cells, column, "apiVersion", "/", "kind");
}

/* Appends "(default)" if the annotation in column->fallback says so. */
static void print_class_name(struct kube_cells *cells, const struct kube_column *column)
{
    char text[CELL_BYTES];
    struct slice name = kube_cell_text(cells, cells->object, column->path);
    const struct json_node *at = first_in(cells->object, "metadata.annotations");
    while (at && !slice_is(at->key, column->fallback))
        at = at->next;
    snprintf(text, sizeof(text), "%.*s%s", (int)size_min(name.len, 300), name.ptr,
             at && json_node_is_text(at, "true") ? " (default)" : "");
    json_text(cells->w, text);
}

/* -- Access and networking -- */

/* path: the kind of subject. */
static void print_subjects(struct kube_cells *cells, const struct kube_column *column)
{
    struct kube_joined joined = {.separator = ", "};
    for (const struct json_node *at = first_in(cells->object, "subjects"); at; at = at->next) {
        struct slice name = kube_cell_text(cells, at, "name");
        struct slice space = kube_cell_text(cells, at, "namespace");
        char text[CELL_BYTES];
        if (!json_node_text_is(at, "kind", column->path))
            continue;
        snprintf(text, sizeof(text), "%.*s/%.*s", (int)size_min(space.len, 300), space.ptr,
                 (int)size_min(name.len, 300), name.ptr);
        kube_joined_add(&joined, space.len ? slice_from_text(text) : name);
    }
    kube_joined_write(&joined, cells, NULL);
}

static void print_hosts(struct kube_cells *cells, const struct kube_column *column)
{
    struct kube_joined joined = {.shown_max = SHOWN_MAX};
    for (const struct json_node *at = first_in(cells->object, column->path); at; at = at->next) {
        struct slice host = kube_cell_text(cells, at, "host");
        if (host.len)
            kube_joined_add(&joined, host);
    }
    kube_joined_write(&joined, cells, "*");
}

static void print_addresses(struct kube_cells *cells, const struct kube_column *column)
{
    struct kube_joined joined = {0};
    for (const struct json_node *at = first_in(cells->object, column->path); at; at = at->next) {
        struct slice ip = kube_cell_text(cells, at, "ip");
        struct slice text = ip.len ? ip : kube_cell_text(cells, at, "hostname");
        if (text.len)
            kube_joined_add(&joined, text);
    }
    kube_joined_write(&joined, cells, NULL);
}

static void print_ingress_ports(struct kube_cells *cells, const struct kube_column *column)
{
    json_text(cells->w, first_in(cells->object, column->path) ? "80, 443" : "80");
}

static void add_endpoints(struct kube_cells *cells, const struct json_node *subset,
                          const struct json_node *port, struct kube_joined *joined)
{
    const struct json_node *at = first_in(subset, "addresses");
    size_t left = at ? at->parent->count : 0;
    for (; at; at = at->next, left--) {
        char text[CELL_BYTES];
        int64_t number = 0;
        if (joined->count >= joined->shown_max) { /* further endpoints are only counted */
            joined->count += left;
            return;
        }
        struct slice ip = kube_cell_text(cells, at, "ip");
        bool six = memchr(ip.ptr ? ip.ptr : (const uint8_t *)"", ':', ip.len) != NULL;
        if (!port || !json_node_int(json_node_named(port, "port"), &number)) {
            kube_joined_add(joined, ip);
            continue;
        }
        snprintf(text, sizeof(text), six ? "[%.*s]:%lld" : "%.*s:%lld", (int)size_min(ip.len, 300),
                 ip.ptr, (long long)number);
        kube_joined_add(joined, slice_from_text(text));
    }
}

static void print_endpoints(struct kube_cells *cells, const struct kube_column *column)
{
    struct kube_joined joined = {.shown_max = SHOWN_MAX};
    for (const struct json_node *at = first_in(cells->object, column->path); at; at = at->next) {
        const struct json_node *port = first_in(at, "ports");
        if (!port)
            add_endpoints(cells, at, NULL, &joined);
        for (; port; port = port->next)
            add_endpoints(cells, at, port, &joined);
    }
    kube_joined_write(&joined, cells, "<none>");
}

static void print_slice_ports(struct kube_cells *cells, const struct kube_column *column)
{
    struct kube_joined joined = {.shown_max = SHOWN_MAX};
    for (const struct json_node *at = first_in(cells->object, column->path); at; at = at->next) {
        struct slice text = value_at(cells, at, "port");
        if (!text.len)
            text = kube_cell_text(cells, at, "name");
        kube_joined_add(&joined, text.len ? text : SLICE_LITERAL("*"));
    }
    kube_joined_write(&joined, cells, "<unset>");
}

static void print_slice_endpoints(struct kube_cells *cells, const struct kube_column *column)
{
    struct kube_joined joined = {.shown_max = SHOWN_MAX};
    for (const struct json_node *at = first_in(cells->object, column->path); at; at = at->next) {
        for (const struct json_node *ip = first_in(at, "addresses"); ip; ip = ip->next) {
            struct slice text;
            if (json_node_text(ip, &cells->arena, &text) == ST_OK)
                kube_joined_add(&joined, text);
        }
    }
    kube_joined_write(&joined, cells, "<unset>");
}

/* -- Volumes -- */

static void print_phase(struct kube_cells *cells, const struct kube_column *column)
{
    bool ends = json_node_path(cells->object, "metadata.deletionTimestamp") != NULL;
    struct slice phase = kube_cell_text(cells, cells->object, column->path);
    json_string(cells->w, ends ? SLICE_LITERAL("Terminating") : phase);
}

static bool has_text(const struct json_node *list, const char *text)
{
    const struct json_node *at = json_node_items(list);
    while (at && !json_node_is_text(at, text))
        at = at->next;
    return at != NULL;
}

static void print_modes(struct kube_cells *cells, const struct kube_column *column)
{
    static const char *const modes[][2] = {{"ReadWriteOnce", "RWO"},
                                           {"ReadOnlyMany", "ROX"},
                                           {"ReadWriteMany", "RWX"},
                                           {"ReadWriteOncePod", "RWOP"}};
    struct kube_joined joined = {0};
    const struct json_node *list = json_node_path(cells->object, column->path);
    for (size_t i = 0; i < COUNT_OF(modes); i++)
        if (has_text(list, modes[i][0]))
            kube_joined_add(&joined, slice_from_text(modes[i][1]));
    kube_joined_write(&joined, cells, NULL);
}

static void print_claim(struct kube_cells *cells, const struct kube_column *column)
{
    print_pair(cells, column, "namespace", "/", "name");
}

/* -- Quotas and autoscalers -- */

/* Prints "cpu: 1/2", used and hard quota. path: not NULL for the column of limits. */
static void print_quota(struct kube_cells *cells, const struct kube_column *column)
{
    struct kube_joined joined = {.separator = ", "};
    struct slice prefix = SLICE_LITERAL("limits.");
    const struct json_node *used = json_node_path(cells->object, "status.used");
    for (const struct json_node *at = first_in(cells->object, "status.hard"); at; at = at->next) {
        char text[CELL_BYTES];
        const struct json_node *now = used && used->type == JSON_TYPE_OBJECT ? used->first : NULL;
        bool limit =
            at->key.len > prefix.len && slice_equal(slice_sub(at->key, 0, prefix.len), prefix);
        if (limit != (column->path != NULL))
            continue;
        while (now && !slice_equal(now->key, at->key))
            now = now->next;
        struct slice is = SLICE_LITERAL("0"), may = SLICE_EMPTY;
        if (json_node_text(at, &cells->arena, &may) != ST_OK ||
            (now && json_node_text(now, &cells->arena, &is) != ST_OK))
            joined.status = ST_NOMEM;
        snprintf(text, sizeof(text), "%.*s: %.*s/%.*s", (int)size_min(at->key.len, 300),
                 at->key.ptr, (int)size_min(is.len, 64), is.ptr, (int)size_min(may.len, 64),
                 may.ptr);
        kube_joined_add(&joined, slice_from_text(text));
    }
    kube_joined_write(&joined, cells, NULL);
}

/* The value of an autoscaler's metric as text; utilization is a percentage. */
static struct slice metric_value(struct kube_cells *cells, const struct json_node *at,
                                 const char *name, struct buf *text)
{
    struct slice value = value_at(cells, at, name);
    bool percent = strcmp(name, "averageUtilization") == 0;
    if (!percent || !value.len)
        return value;
    if (buf_append_format(text, "%.*s%%", (int)size_min(value.len, 32), value.ptr) != ST_OK)
        return SLICE_EMPTY;
    return buf_slice(text);
}

static void add_metric(struct kube_cells *cells, const struct json_node *spec,
                       const struct json_node *now, struct kube_joined *joined)
{
    static const char *const types[][2] = {{"Resource", "resource"},
                                           {"ContainerResource", "containerResource"},
                                           {"Pods", "pods"},
                                           {"Object", "object"},
                                           {"External", "external"}};
    size_t type = 0;
    while (type < COUNT_OF(types) && !json_node_text_is(spec, "type", types[type][0]))
        type++;
    if (type == COUNT_OF(types)) {
        kube_joined_add(joined, SLICE_LITERAL("<unknown type>"));
        return;
    }
    AUTO(buf_fini) struct buf is = {0};
    AUTO(buf_fini) struct buf may = {0};
    bool resource = type < 2;
    const struct json_node *source = json_node_named(spec, types[type][1]);
    const struct json_node *target = json_node_named(source, "target");
    const struct json_node *current =
        json_node_path(json_node_named(now, types[type][1]), "current");
    bool average = json_node_named(target, "averageValue") != NULL;
    const char *what = average ? "averageValue" : resource ? "averageUtilization" : "value";
    struct slice wanted = metric_value(cells, target, what, &may);
    struct slice found = metric_value(cells, current, what, &is);
    struct slice name = resource ? kube_cell_text(cells, source, "name") : SLICE_EMPTY;
    char text[CELL_BYTES];
    if (!found.len)
        found = SLICE_LITERAL("<unknown>");
    if (!wanted.len && resource)
        wanted = SLICE_LITERAL("<auto>");
    snprintf(text, sizeof(text), "%.*s%s%.*s/%.*s%s", (int)size_min(name.len, 256), name.ptr,
             resource ? ": " : "", (int)size_min(found.len, 64), found.ptr,
             (int)size_min(wanted.len, 64), wanted.ptr, average && type > 2 ? " (avg)" : "");
    kube_joined_add(joined, slice_from_text(text));
}

static void print_metrics(struct kube_cells *cells, const struct kube_column *column)
{
    struct kube_joined joined = {.separator = ", ", .shown_max = METRICS_SHOWN_MAX};
    const struct json_node *now = first_in(cells->object, "status.currentMetrics");
    for (const struct json_node *at = first_in(cells->object, column->path); at; at = at->next) {
        add_metric(cells, at, now, &joined);
        now = now ? now->next : NULL;
    }
    kube_joined_write(&joined, cells, "<none>");
}

/* -- Requests and revisions -- */

static bool has_condition(struct kube_cells *cells, const char *type)
{
    const struct json_node *at = first_in(cells->object, "status.conditions");
    while (at && !json_node_text_is(at, "type", type))
        at = at->next;
    return at != NULL;
}

static void print_request_status(struct kube_cells *cells, const struct kube_column *column)
{
    struct kube_joined joined = {0};
    kube_joined_add(&joined, has_condition(cells, "Denied")     ? SLICE_LITERAL("Denied")
                             : has_condition(cells, "Approved") ? SLICE_LITERAL("Approved")
                                                                : SLICE_LITERAL("Pending"));
    if (has_condition(cells, "Failed"))
        kube_joined_add(&joined, SLICE_LITERAL("Failed"));
    if (kube_cell_text(cells, cells->object, column->path).len)
        kube_joined_add(&joined, SLICE_LITERAL("Issued"));
    kube_joined_write(&joined, cells, NULL);
}

static void print_seconds(struct kube_cells *cells, const struct kube_column *column)
{
    char text[KUBE_DURATION_BYTES] = "<none>";
    int64_t seconds;
    if (json_node_int(json_node_path(cells->object, column->path), &seconds))
        kube_duration_text(seconds, text);
    json_text(cells->w, text);
}

/* Prints "statefulset.apps/web" for the controlling owner. */
static void print_controller(struct kube_cells *cells, const struct kube_column *column)
{
    char text[CELL_BYTES] = "<none>";
    const struct json_node *at = first_in(cells->object, column->path);
    while (at && !json_node_is_true(json_node_named(at, "controller")))
        at = at->next;
    if (at) {
        struct slice kind = kube_cell_text(cells, at, "kind");
        struct slice version = kube_cell_text(cells, at, "apiVersion");
        struct slice name = kube_cell_text(cells, at, "name");
        const uint8_t *slash = version.len ? memchr(version.ptr, '/', version.len) : NULL;
        int group = slash ? (int)size_min((size_t)(slash - version.ptr), 253) : 0;
        int len =
            snprintf(text, sizeof(text), "%.*s%s%.*s/%.*s", (int)size_min(kind.len, 63), kind.ptr,
                     group ? "." : "", group, version.ptr, (int)size_min(name.len, 253), name.ptr);
        for (int i = 0; i < len && text[i] != '/'; i++)
            text[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + ('a' - 'A') : text[i]);
    }
    json_text(cells->w, text);
}

static void print_claim_state(struct kube_cells *cells, const struct kube_column *column)
{
    struct kube_joined joined = {0};
    bool ends = json_node_path(cells->object, "metadata.deletionTimestamp") != NULL;
    bool has = json_node_path(cells->object, column->path) != NULL;
    if (ends)
        kube_joined_add(&joined, SLICE_LITERAL("deleted"));
    else if (!has)
        kube_joined_add(&joined, SLICE_LITERAL("pending"));
    if (has)
        kube_joined_add(&joined, SLICE_LITERAL("allocated"));
    if (has && first_in(cells->object, "status.reservedFor"))
        kube_joined_add(&joined, SLICE_LITERAL("reserved"));
    kube_joined_write(&joined, cells, NULL);
}

/* -- Columns -- */

#define VALUE(n, where, otherwise)                                                  \
    {                                                                               \
        .name = (n), .print = print_value, .path = (where), .fallback = (otherwise) \
    }
#define CLASS_NAME(annotation)                                                               \
    {                                                                                        \
        .name = "Name", .is_name = true, .print = print_class_name, .path = "metadata.name", \
        .description = "Name must be unique within a namespace.", .fallback = (annotation)   \
    }

static const struct kube_column created_at[] = {NAME, CREATED_AT};
static const struct kube_column bindings[] = {
    NAME,
    CELL("Role", print_kind_and_name, "roleRef"),
    AGE,
    WIDE("Users", print_subjects, "User"),
    WIDE("Groups", print_subjects, "Group"),
    WIDE("ServiceAccounts", print_subjects, "ServiceAccount"),
};
static const struct kube_column ingresses[] = {
    NAME,
    OR("Class", "spec.ingressClassName", "<none>"),
    CELL("Hosts", print_hosts, "spec.rules"),
    CELL("Address", print_addresses, "status.loadBalancer.ingress"),
    CELL("Ports", print_ingress_ports, "spec.tls"),
    AGE,
};
static const struct kube_column network_policies[] = {
    NAME,
    CELL("Pod-Selector", kube_print_labels, "spec.podSelector.matchLabels"),
    AGE,
};
static const struct kube_column endpoints[] = {
    NAME,
    CELL("Endpoints", print_endpoints, "subsets"),
    AGE,
};
static const struct kube_column endpoint_slices[] = {
    NAME,
    CELL("AddressType", kube_print_text, "addressType"),
    CELL("Ports", print_slice_ports, "ports"),
    CELL("Endpoints", print_slice_endpoints, "endpoints"),
    AGE,
};
static const struct kube_column service_cidrs[] = {
    NAME,
    CELL("CIDRs", print_texts, "spec.cidrs"),
    AGE,
};
static const struct kube_column claims[] = {
    NAME,
    CELL("Status", print_phase, "status.phase"),
    CELL("Volume", kube_print_text, "spec.volumeName"),
    CELL("Capacity", kube_print_text, "status.capacity.storage"),
    CELL("Access Modes", print_modes, "status.accessModes"),
    CELL("StorageClass", kube_print_text, "spec.storageClassName"),
    OR("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"),
    AGE,
    WIDE_OR("VolumeMode", "spec.volumeMode", "<unset>"),
};
static const struct kube_column volumes[] = {
    NAME,
    CELL("Capacity", kube_print_text, "spec.capacity.storage"),
    CELL("Access Modes", print_modes, "spec.accessModes"),
    CELL("Reclaim Policy", kube_print_text, "spec.persistentVolumeReclaimPolicy"),
    CELL("Status", print_phase, "status.phase"),
    {.name = "Claim", .print = print_claim, .path = "spec.claimRef", .fallback = ""},
    CELL("StorageClass", kube_print_text, "spec.storageClassName"),
    OR("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"),
    CELL("Reason", kube_print_text, "status.reason"),
    AGE,
    WIDE_OR("VolumeMode", "spec.volumeMode", "<unset>"),
};
static const struct kube_column storage_classes[] = {
    CLASS_NAME("storageclass.kubernetes.io/is-default-class"),
    CELL("Provisioner", kube_print_text, "provisioner"),
    OR("ReclaimPolicy", "reclaimPolicy", "Delete"),
    OR("VolumeBindingMode", "volumeBindingMode", "Immediate"),
    CELL("AllowVolumeExpansion", kube_print_bool, "allowVolumeExpansion"),
    AGE,
};
static const struct kube_column csi_nodes[] = {NAME, COUNTED("Drivers", "spec.drivers"), AGE};
static const struct kube_column attributes_classes[] = {
    NAME,
    CELL("DriverName", kube_print_text, "driverName"),
    AGE,
};
static const struct kube_column quotas[] = {
    NAME,
    CELL("Request", print_quota, NULL),
    CELL("Limit", print_quota, "limits"),
    AGE,
};
static const struct kube_column autoscalers[] = {
    NAME,
    CELL("Reference", print_kind_and_name, "spec.scaleTargetRef"),
    CELL("Targets", print_metrics, "spec.metrics"),
    VALUE("MinPods", "spec.minReplicas", "1"),
    CELL("MaxPods", kube_print_int, "spec.maxReplicas"),
    CELL("Replicas", kube_print_int, "status.currentReplicas"),
    AGE,
};
static const struct kube_column budgets[] = {
    NAME,
    VALUE("Min Available", "spec.minAvailable", "N/A"),
    VALUE("Max Unavailable", "spec.maxUnavailable", "N/A"),
    NUMBER("Allowed Disruptions", "status.disruptionsAllowed"),
    AGE,
};
static const struct kube_column priority_classes[] = {
    NAME,
    NUMBER("Value", "value"),
    TRUTH("Global-Default", "globalDefault"),
    AGE,
    OR("PreemptionPolicy", "preemptionPolicy", "PreemptLowerPriority"),
};
static const struct kube_column ingress_classes[] = {
    CLASS_NAME("ingressclass.kubernetes.io/is-default-class"),
    CELL("Controller", kube_print_text, "spec.controller"),
    {.name = "Parameters",
     .print = print_kind_and_name,
     .path = "spec.parameters",
     .fallback = "<none>"},
    AGE,
};
static const struct kube_column runtime_classes[] = {
    NAME,
    CELL("Handler", kube_print_text, "handler"),
    AGE,
};
static const struct kube_column requests[] = {
    NAME,
    AGE,
    OR("SignerName", "spec.signerName", "<none>"),
    CELL("Requestor", kube_print_text, "spec.username"),
    CELL("RequestedDuration", print_seconds, "spec.expirationSeconds"),
    CELL("Condition", print_request_status, "status.certificate"),
};
static const struct kube_column revisions[] = {
    NAME,
    CELL("Controller", print_controller, "metadata.ownerReferences"),
    CELL("Revision", kube_print_int, "revision"),
    AGE,
};
static const struct kube_column templates[] = {
    NAME,
    CELL("Containers", kube_print_names, "template.spec.containers"),
    CELL("Images", kube_print_images, "template.spec.containers"),
    CELL("Pod Labels", kube_print_labels, "template.metadata.labels"),
};
static const struct kube_column webhooks[] = {NAME, COUNTED("Webhooks", "webhooks"), AGE};
static const struct kube_column validations[] = {
    NAME,
    COUNTED("Validations", "spec.validations"),
    {.name = "ParamKind",
     .print = print_param_kind,
     .path = "spec.paramKind",
     .fallback = "<unset>"},
    AGE,
};
static const struct kube_column mutations[] = {
    NAME,
    COUNTED("Mutations", "spec.mutations"),
    {.name = "ParamKind",
     .print = print_param_kind,
     .path = "spec.paramKind",
     .fallback = "<unset>"},
    AGE,
};
static const struct kube_column resource_claims[] = {
    NAME,
    CELL("State", print_claim_state, "status.allocation"),
    AGE,
};
static const struct kube_column resource_slices[] = {
    NAME,
    CELL("Node", kube_print_text, "spec.nodeName"),
    CELL("Driver", kube_print_text, "spec.driver"),
    CELL("Pool", kube_print_text, "spec.pool.name"),
    AGE,
};

/* -- Components -- */

/* A member of the first condition, which is the only one. */
static void print_condition(struct kube_cells *cells, const struct kube_column *column)
{
    const struct json_node *condition = first_in(cells->object, "conditions");
    json_string(cells->w, kube_cell_text(cells, condition, column->path));
}

static void print_health(struct kube_cells *cells, const struct kube_column *column)
{
    const struct json_node *condition = first_in(cells->object, "conditions");
    bool healthy = json_node_is_text(json_node_named(condition, column->path), "True");
    json_text(cells->w, healthy ? "Healthy" : "Unhealthy");
}

static const struct kube_column components[] = {
    NAME,
    CELL("Status", print_health, "status"),
    CELL("Message", print_condition, "message"),
    CELL("Error", print_condition, "error"),
};

const struct kube_printer *kube_printers_other(size_t *ret_count)
{
    static const struct kube_printer printers[] = {
        {"", "componentstatuses", components, COUNT_OF(components)},
        {"", "endpoints", endpoints, COUNT_OF(endpoints)},
        {"", "limitranges", created_at, COUNT_OF(created_at)},
        {"", "persistentvolumeclaims", claims, COUNT_OF(claims)},
        {"", "persistentvolumes", volumes, COUNT_OF(volumes)},
        {"", "podtemplates", templates, COUNT_OF(templates)},
        {"", "resourcequotas", quotas, COUNT_OF(quotas)},
        {"admissionregistration.k8s.io", "mutatingadmissionpolicies", mutations,
         COUNT_OF(mutations)},
        {"admissionregistration.k8s.io", "mutatingwebhookconfigurations", webhooks,
         COUNT_OF(webhooks)},
        {"admissionregistration.k8s.io", "validatingadmissionpolicies", validations,
         COUNT_OF(validations)},
        {"admissionregistration.k8s.io", "validatingwebhookconfigurations", webhooks,
         COUNT_OF(webhooks)},
        {"apiextensions.k8s.io", "customresourcedefinitions", created_at, COUNT_OF(created_at)},
        {"apps", "controllerrevisions", revisions, COUNT_OF(revisions)},
        {"autoscaling", "horizontalpodautoscalers", autoscalers, COUNT_OF(autoscalers)},
        {"certificates.k8s.io", "certificatesigningrequests", requests, COUNT_OF(requests)},
        {"discovery.k8s.io", "endpointslices", endpoint_slices, COUNT_OF(endpoint_slices)},
        {"networking.k8s.io", "ingressclasses", ingress_classes, COUNT_OF(ingress_classes)},
        {"networking.k8s.io", "ingresses", ingresses, COUNT_OF(ingresses)},
        {"networking.k8s.io", "networkpolicies", network_policies, COUNT_OF(network_policies)},
        {"networking.k8s.io", "servicecidrs", service_cidrs, COUNT_OF(service_cidrs)},
        {"node.k8s.io", "runtimeclasses", runtime_classes, COUNT_OF(runtime_classes)},
        {"policy", "poddisruptionbudgets", budgets, COUNT_OF(budgets)},
        {"rbac.authorization.k8s.io", "clusterrolebindings", bindings, COUNT_OF(bindings)},
        {"rbac.authorization.k8s.io", "clusterroles", created_at, COUNT_OF(created_at)},
        {"rbac.authorization.k8s.io", "rolebindings", bindings, COUNT_OF(bindings)},
        {"rbac.authorization.k8s.io", "roles", created_at, COUNT_OF(created_at)},
        {"resource.k8s.io", "resourceclaims", resource_claims, COUNT_OF(resource_claims)},
        {"resource.k8s.io", "resourceslices", resource_slices, COUNT_OF(resource_slices)},
        {"scheduling.k8s.io", "priorityclasses", priority_classes, COUNT_OF(priority_classes)},
        {"storage.k8s.io", "csinodes", csi_nodes, COUNT_OF(csi_nodes)},
        {"storage.k8s.io", "csistoragecapacities", created_at, COUNT_OF(created_at)},
        {"storage.k8s.io", "storageclasses", storage_classes, COUNT_OF(storage_classes)},
        {"storage.k8s.io", "volumeattributesclasses", attributes_classes,
         COUNT_OF(attributes_classes)},
    };
    *ret_count = COUNT_OF(printers);
    return printers;
}
