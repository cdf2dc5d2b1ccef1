#include "kube/call/table/printers.h"

#include "base/macros.h"
#include "kube/call/table/printers_private.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* -- Short printers for single kinds -- */

/* Prints "2/3", ready of desired replicas; desired is 1 if it is missing. */
static void print_ready(struct kube_cells *cells, const struct kube_column *column)
{
    char text[64];
    int64_t desired = 1;
    if (!json_node_int(json_node_path(cells->object, "spec.replicas"), &desired))
        desired = 1;
    snprintf(text, sizeof(text), "%lld/%lld", (long long)kube_cell_int(cells->object, column->path),
             (long long)desired);
    json_text(cells->w, text);
}

static void print_node_status(struct kube_cells *cells, const struct kube_column *column)
{
    struct kube_joined joined = {0};
    bool known = false;
    (void)column;
    for (const struct json_node *at = json_node_items_at(cells->object, "status.conditions"); at;
         at = at->next)
        known |= json_node_text_is(at, "type", "Ready");
    kube_joined_add(&joined, !known                                ? SLICE_LITERAL("Unknown")
                             : kube_cell_condition(cells, "Ready") ? SLICE_LITERAL("Ready")
                                                                   : SLICE_LITERAL("NotReady"));
    if (json_node_is_true(json_node_path(cells->object, "spec.unschedulable")))
        kube_joined_add(&joined, SLICE_LITERAL("SchedulingDisabled"));
    kube_joined_write(&joined, cells, NULL);
}

static void print_node_roles(struct kube_cells *cells, const struct kube_column *column)
{
    struct slice prefix = SLICE_LITERAL("node-role.kubernetes.io/"), role;
    struct kube_joined joined = {0};
    const struct json_node *labels = json_node_path(cells->object, "metadata.labels");
    (void)column;
    const struct json_node *at = labels && labels->type == JSON_TYPE_OBJECT ? labels->first : NULL;
    for (; at; at = at->next) {
        if (at->key.len > prefix.len && slice_equal(slice_sub(at->key, 0, prefix.len), prefix))
            kube_joined_add(&joined, slice_sub(at->key, prefix.len, at->key.len - prefix.len));
        else if (slice_is(at->key, "kubernetes.io/role") &&
                 json_node_text(at, &cells->arena, &role) == ST_OK && role.len)
            kube_joined_add(&joined, role);
    }
    kube_joined_write(&joined, cells, "<none>");
}

/* path: the type of the address. */
static void print_node_address(struct kube_cells *cells, const struct kube_column *column)
{
    struct slice address = SLICE_LITERAL("<none>");
    for (const struct json_node *at = json_node_items_at(cells->object, "status.addresses"); at;
         at = at->next)
        if (json_node_text_is(at, "type", column->path)) {
            address = kube_cell_text(cells, at, "address");
            break;
        }
    json_string(cells->w, address);
}

/* The number of readiness gates whose condition is True. */
static void print_gates(struct kube_cells *cells, const struct kube_column *column)
{
    char text[64] = "<none>";
    size_t met = 0, all = 0;
    const struct json_node *conditions =
        kube_cell_map(cells, "status.conditions", "type", "status", "True");
    (void)column;
    for (const struct json_node *at = json_node_items_at(cells->object, "spec.readinessGates"); at;
         at = at->next, all++)
        met += kube_cell_map_has(conditions, kube_cell_text(cells, at, "conditionType"));
    if (all)
        snprintf(text, sizeof(text), "%zu/%zu", met, all);
    json_text(cells->w, text);
}

/* Prints the first of several addresses, or the only one. */
static void print_pod_ip(struct kube_cells *cells, const struct kube_column *column)
{
    (void)column;
    struct slice ip =
        kube_cell_text(cells, json_node_items_at(cells->object, "status.podIPs"), "ip");
    if (!ip.len)
        ip = kube_cell_text(cells, cells->object, "status.podIP");
    json_string(cells->w, ip.len ? ip : SLICE_LITERAL("<none>"));
}

static void print_ports(struct kube_cells *cells, const struct kube_column *column)
{
    struct kube_joined joined = {0};
    for (const struct json_node *at = json_node_items_at(cells->object, column->path); at;
         at = at->next) {
        char text[96], node_port[32] = "";
        struct slice protocol = kube_cell_text(cells, at, "protocol");
        if (kube_cell_int(at, "nodePort"))
            snprintf(node_port, sizeof(node_port), ":%lld",
                     (long long)kube_cell_int(at, "nodePort"));
        snprintf(text, sizeof(text), "%lld%s/%.*s", (long long)kube_cell_int(at, "port"), node_port,
                 SLICE_ARGS(protocol.len ? protocol : SLICE_LITERAL("TCP")));
        kube_joined_add(&joined, slice_from_text(text));
    }
    kube_joined_write(&joined, cells, "<none>");
}

static void print_external_ip(struct kube_cells *cells, const struct kube_column *column)
{
    struct kube_joined joined = {0};
    struct slice type = kube_cell_text(cells, cells->object, "spec.type");
    bool balanced = slice_is(type, "LoadBalancer");
    (void)column;
    const struct json_node *at =
        balanced ? json_node_items_at(cells->object, "status.loadBalancer.ingress") : NULL;
    for (; at; at = at->next) {
        struct slice ip = kube_cell_text(cells, at, "ip");
        kube_joined_add(&joined, ip.len ? ip : kube_cell_text(cells, at, "hostname"));
    }
    if (slice_is(type, "ExternalName")) {
        kube_joined_add(&joined, kube_cell_text(cells, cells->object, "spec.externalName"));
    } else {
        for (at = json_node_items_at(cells->object, "spec.externalIPs"); at; at = at->next) {
            struct slice text;
            if (json_node_text(at, &cells->arena, &text) == ST_OK && text.len)
                kube_joined_add(&joined, text);
        }
    }
    /* The cloud has not assigned an address yet. */
    kube_joined_write(&joined, cells, balanced ? "<pending>" : "<none>");
}

static void print_cluster_ip(struct kube_cells *cells, const struct kube_column *column)
{
    struct slice ip = kube_cell_text(cells, cells->object, column->path);
    json_string(cells->w, ip.len ? ip : SLICE_LITERAL("<none>"));
}

static void print_job_status(struct kube_cells *cells, const struct kube_column *column)
{
    static const char *const ends[] = {"Complete", "Failed"};
    static const char *const others[] = {"Suspended", "FailureTarget", "SuccessCriteriaMet"};
    (void)column;
    const char *status = NULL;
    for (size_t i = 0; i < COUNT_OF(ends) && !status; i++)
        status = kube_cell_condition(cells, ends[i]) ? ends[i] : NULL;
    if (!status && kube_cell_text(cells, cells->object, "metadata.deletionTimestamp").len)
        status = "Terminating";
    for (size_t i = 0; i < COUNT_OF(others) && !status; i++)
        status = kube_cell_condition(cells, others[i]) ? others[i] : NULL;
    json_text(cells->w, status ? status : "Running");
}

static void print_completions(struct kube_cells *cells, const struct kube_column *column)
{
    char text[96];
    int64_t desired, beside = kube_cell_int(cells->object, "spec.parallelism");
    long long done = kube_cell_int(cells->object, "status.succeeded");
    (void)column;
    if (json_node_int(json_node_path(cells->object, "spec.completions"), &desired))
        snprintf(text, sizeof(text), "%lld/%lld", done, (long long)desired);
    /* A job with parallel pods and without a number of completions ends when one of them has
     * succeeded. */
    else if (beside > 1)
        snprintf(text, sizeof(text), "%lld/1 of %lld", done, (long long)beside);
    else
        snprintf(text, sizeof(text), "%lld/1", done);
    json_text(cells->w, text);
}

static void print_job_duration(struct kube_cells *cells, const struct kube_column *column)
{
    char text[KUBE_DURATION_BYTES] = "";
    int64_t from_s, to_s;
    (void)column;
    if (!kube_time_parse(kube_cell_text(cells, cells->object, "status.completionTime"), &to_s))
        to_s = cells->now_s;
    if (kube_time_parse(kube_cell_text(cells, cells->object, "status.startTime"), &from_s))
        kube_duration_text(to_s - from_s, text);
    json_text(cells->w, text);
}

/*
 * Prints the age of the first known time; path and fallback name two of them. The wide column is
 * the time of the first occurrence.
 */
static void print_seen(struct kube_cells *cells, const struct kube_column *column)
{
    const char *const paths[] = {"series.lastObservedTime", column->path, column->fallback,
                                 "eventTime"};
    char text[KUBE_DURATION_BYTES] = "<unknown>";
    for (size_t i = column->wide ? 1 : 0; i < COUNT_OF(paths); i++) {
        int64_t at_s;
        if (!kube_time_parse(kube_cell_text(cells, cells->object, paths[i]), &at_s))
            continue;
        kube_duration_text(cells->now_s - at_s, text);
        break;
    }
    json_text(cells->w, text);
}

/* path: its kind; fallback: its name. */
static void print_event_object(struct kube_cells *cells, const struct kube_column *column)
{
    char text[320];
    struct slice kind = kube_cell_text(cells, cells->object, column->path);
    struct slice name = kube_cell_text(cells, cells->object, column->fallback);
    int len = snprintf(text, sizeof(text), "%.*s%s%.*s", (int)size_min(kind.len, 60), kind.ptr,
                       name.len ? "/" : "", (int)size_min(name.len, 253), name.ptr);
    for (int i = 0; i < len && text[i] != '/'; i++)
        text[i] = (char)tolower((unsigned char)text[i]);
    json_text(cells->w, text);
}

static void print_event_count(struct kube_cells *cells, const struct kube_column *column)
{
    int64_t count = kube_cell_int(cells->object, column->path);
    /* Newer clients count repetitions in a series and leave the old field alone. */
    if (json_node_path(cells->object, "series"))
        count = kube_cell_int(cells->object, "series.count");
    json_i64(cells->w, count ? count : 1);
}

/* Prints a bool with a capital letter. */
static void print_truth(struct kube_cells *cells, const struct kube_column *column)
{
    json_text(cells->w,
              json_node_is_true(json_node_path(cells->object, column->path)) ? "True" : "False");
}

/* -- Columns -- */

#define TEMPLATE_COLUMNS                                                   \
    WIDE("Containers", kube_print_names, "spec.template.spec.containers"), \
        WIDE("Images", kube_print_images, "spec.template.spec.containers")
#define SELECTOR WIDE("Selector", kube_print_labels, "spec.selector.matchLabels")

static const struct kube_column generic[] = {NAME, AGE};
static const struct kube_column pods[] = {
    NAME,
    CELL("Ready", kube_print_pod_ready, ""),
    CELL("Status", kube_print_pod_status, ""),
    CELL("Restarts", kube_print_pod_restarts, ""),
    AGE,
    WIDE("IP", print_pod_ip, ""),
    WIDE_OR("Node", "spec.nodeName", "<none>"),
    WIDE_OR("Nominated Node", "status.nominatedNodeName", "<none>"),
    WIDE("Readiness Gates", print_gates, ""),
};
static const struct kube_column services[] = {
    NAME,
    OR("Type", "spec.type", "ClusterIP"),
    CELL("Cluster-IP", print_cluster_ip, "spec.clusterIP"),
    CELL("External-IP", print_external_ip, ""),
    CELL("Port(s)", print_ports, "spec.ports"),
    AGE,
    WIDE("Selector", kube_print_labels, "spec.selector"),
};
static const struct kube_column deployments[] = {
    NAME,
    CELL("Ready", print_ready, "status.readyReplicas"),
    CELL("Up-to-date", kube_print_int, "status.updatedReplicas"),
    CELL("Available", kube_print_int, "status.availableReplicas"),
    AGE,
    TEMPLATE_COLUMNS,
    SELECTOR,
};
static const struct kube_column statefulsets[] = {
    NAME,
    CELL("Ready", print_ready, "status.readyReplicas"),
    AGE,
    TEMPLATE_COLUMNS,
};
static const struct kube_column replicasets[] = {
    NAME,
    NUMBER("Desired", "spec.replicas"),
    NUMBER("Current", "status.replicas"),
    NUMBER("Ready", "status.readyReplicas"),
    AGE,
    TEMPLATE_COLUMNS,
    SELECTOR,
};
static const struct kube_column daemonsets[] = {
    NAME,
    NUMBER("Desired", "status.desiredNumberScheduled"),
    NUMBER("Current", "status.currentNumberScheduled"),
    NUMBER("Ready", "status.numberReady"),
    NUMBER("Up-to-date", "status.updatedNumberScheduled"),
    NUMBER("Available", "status.numberAvailable"),
    CELL("Node Selector", kube_print_labels, "spec.template.spec.nodeSelector"),
    AGE,
    TEMPLATE_COLUMNS,
    SELECTOR,
};
static const struct kube_column jobs[] = {
    NAME,
    CELL("Status", print_job_status, ""),
    CELL("Completions", print_completions, ""),
    CELL("Duration", print_job_duration, ""),
    AGE,
    TEMPLATE_COLUMNS,
    SELECTOR,
};
static const struct kube_column cronjobs[] = {
    NAME,
    CELL("Schedule", kube_print_text, "spec.schedule"),
    OR("Timezone", "spec.timeZone", "<none>"),
    {.name = "Suspend", .type = "boolean", .print = print_truth, .path = "spec.suspend"},
    {.name = "Active", .type = "integer", .print = kube_print_count, .path = "status.active"},
    {.name = "Last Schedule",
     .print = kube_print_age,
     .path = "status.lastScheduleTime",
     .fallback = "<none>"},
    AGE,
    WIDE("Containers", kube_print_names, "spec.jobTemplate.spec.template.spec.containers"),
    WIDE("Images", kube_print_images, "spec.jobTemplate.spec.template.spec.containers"),
    WIDE("Selector", kube_print_labels, "spec.jobTemplate.spec.selector.matchLabels"),
};
static const struct kube_column nodes[] = {
    NAME,
    CELL("Status", print_node_status, ""),
    CELL("Roles", print_node_roles, ""),
    AGE,
    CELL("Version", kube_print_text, "status.nodeInfo.kubeletVersion"),
    WIDE("Internal-IP", print_node_address, "InternalIP"),
    WIDE("External-IP", print_node_address, "ExternalIP"),
    WIDE_OR("OS-Image", "status.nodeInfo.osImage", "<unknown>"),
    WIDE_OR("Kernel-Version", "status.nodeInfo.kernelVersion", "<unknown>"),
    WIDE_OR("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", "<unknown>"),
};
static const struct kube_column namespaces[] = {
    NAME,
    CELL("Status", kube_print_text, "status.phase"),
    AGE,
};
static const struct kube_column configmaps[] = {
    NAME,
    CELL("Data", kube_print_count, "data"),
    AGE,
};
static const struct kube_column secrets[] = {
    NAME,
    OR("Type", "type", "Opaque"),
    CELL("Data", kube_print_count, "data"),
    AGE,
};
static const struct kube_column events[] = {
    {.name = "Last Seen",
     .print = print_seen,
     .path = "lastTimestamp",
     .fallback = "firstTimestamp"},
    CELL("Type", kube_print_text, "type"),
    CELL("Reason", kube_print_text, "reason"),
    {.name = "Object",
     .print = print_event_object,
     .path = "involvedObject.kind",
     .fallback = "involvedObject.name"},
    WIDE("Subobject", kube_print_text, "involvedObject.fieldPath"),
    WIDE("Source", kube_print_text, "source.component"),
    CELL("Message", kube_print_text, "message"),
    {.name = "First Seen",
     .wide = true,
     .print = print_seen,
     .path = "firstTimestamp",
     .fallback = "eventTime"},
    WIDE("Count", print_event_count, "count"),
    {.name = "Name",
     .is_name = true,
     .wide = true,
     .print = kube_print_text,
     .path = "metadata.name"},
};
/* The same columns with the field names of events.k8s.io. */
static const struct kube_column new_events[] = {
    {.name = "Last Seen",
     .print = print_seen,
     .path = "deprecatedLastTimestamp",
     .fallback = "deprecatedFirstTimestamp"},
    CELL("Type", kube_print_text, "type"),
    CELL("Reason", kube_print_text, "reason"),
    {.name = "Object",
     .print = print_event_object,
     .path = "regarding.kind",
     .fallback = "regarding.name"},
    WIDE("Subobject", kube_print_text, "regarding.fieldPath"),
    WIDE("Source", kube_print_text, "deprecatedSource.component"),
    CELL("Message", kube_print_text, "note"),
    {.name = "First Seen",
     .wide = true,
     .print = print_seen,
     .path = "deprecatedFirstTimestamp",
     .fallback = "eventTime"},
    WIDE("Count", print_event_count, "deprecatedCount"),
    {.name = "Name",
     .is_name = true,
     .wide = true,
     .print = kube_print_text,
     .path = "metadata.name"},
};
static const struct kube_column leases[] = {
    NAME,
    CELL("Holder", kube_print_text, "spec.holderIdentity"),
    AGE,
};
static const struct kube_printer printers[] = {
    {"", "configmaps", configmaps, COUNT_OF(configmaps)},
    {"", "events", events, COUNT_OF(events)},
    {"", "namespaces", namespaces, COUNT_OF(namespaces)},
    {"", "nodes", nodes, COUNT_OF(nodes)},
    {"", "pods", pods, COUNT_OF(pods)},
    {"", "replicationcontrollers", replicasets, COUNT_OF(replicasets)},
    {"", "secrets", secrets, COUNT_OF(secrets)},
    {"", "services", services, COUNT_OF(services)},
    {"apps", "daemonsets", daemonsets, COUNT_OF(daemonsets)},
    {"apps", "deployments", deployments, COUNT_OF(deployments)},
    {"apps", "replicasets", replicasets, COUNT_OF(replicasets)},
    {"apps", "statefulsets", statefulsets, COUNT_OF(statefulsets)},
    {"batch", "cronjobs", cronjobs, COUNT_OF(cronjobs)},
    {"batch", "jobs", jobs, COUNT_OF(jobs)},
    {"coordination.k8s.io", "leases", leases, COUNT_OF(leases)},
    {"events.k8s.io", "events", new_events, COUNT_OF(new_events)},
};

static const struct kube_printer *find(const struct kube_printer *rows, size_t count,
                                       const struct kube_kind *kind)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(rows[i].group, kind->group) == 0 && strcmp(rows[i].plural, kind->plural) == 0)
            return &rows[i];
    return NULL;
}

const struct kube_printer *kube_printer_of(const struct kube_kind *kind)
{
    static const struct kube_printer fallback = {"", "", generic, COUNT_OF(generic)};
    const struct kube_printer *found = find(printers, COUNT_OF(printers), kind);
    if (found)
        return found;
    size_t count;
    const struct kube_printer *others = kube_printers_other(&count);
    found = find(others, count, kind);
    return found ? found : &fallback;
}

/* -- Printers and helpers that several kinds share -- */

void kube_duration_text(int64_t seconds, char text[KUBE_DURATION_BYTES])
{
    /* The thresholds are those of Kubernetes' duration.HumanDuration. A second in the future is
     * tolerated, since clocks differ. */
    long long s = seconds, m = s / 60, h = m / 60, d = h / 24;
    if (s < -1)
        snprintf(text, KUBE_DURATION_BYTES, "<invalid>");
    else if (s < 120)
        snprintf(text, KUBE_DURATION_BYTES, "%llds", s < 0 ? 0 : s);
    else if (m < 10 && s % 60)
        snprintf(text, KUBE_DURATION_BYTES, "%lldm%llds", m, s % 60);
    else if (m < 180)
        snprintf(text, KUBE_DURATION_BYTES, "%lldm", m);
    else if (h < 8 && m % 60)
        snprintf(text, KUBE_DURATION_BYTES, "%lldh%lldm", h, m % 60);
    else if (h < 48)
        snprintf(text, KUBE_DURATION_BYTES, "%lldh", h);
    else if (d < 8 && h % 24)
        snprintf(text, KUBE_DURATION_BYTES, "%lldd%lldh", d, h % 24);
    else if (d < 2 * 365)
        snprintf(text, KUBE_DURATION_BYTES, "%lldd", d);
    else if (d < 8 * 365 && d % 365)
        snprintf(text, KUBE_DURATION_BYTES, "%lldy%lldd", d / 365, d % 365);
    else
        snprintf(text, KUBE_DURATION_BYTES, "%lldy", d / 365);
}

bool kube_time_parse(struct slice text, int64_t *ret_s)
{
    char copy[40];
    struct tm tm = {0}, offset = {0};
    if (text.len < 20 || text.len >= sizeof(copy))
        return false;
    slice_copy(copy, text);
    copy[text.len] = '\0';
    const char *rest = strptime(copy, "%Y-%m-%dT%H:%M:%S", &tm);
    if (rest && *rest == '.')
        rest += 1 + strspn(rest + 1, "0123456789");
    if (!rest ||
        (*rest != 'Z' && !strptime(rest + (*rest == '-' || *rest == '+'), "%H:%M", &offset)))
        return false;
    int64_t ahead_s = offset.tm_hour * 3600 + offset.tm_min * 60;
    *ret_s = timegm(&tm) - (*rest == '-' ? -ahead_s : ahead_s);
    return true;
}

struct slice kube_cell_text(struct kube_cells *cells, const struct json_node *node,
                            const char *path)
{
    struct slice text = SLICE_EMPTY;
    if (json_node_text(json_node_path(node, path), &cells->arena, &text) != ST_OK)
        return SLICE_EMPTY;
    return text;
}

int64_t kube_cell_int(const struct json_node *node, const char *path)
{
    int64_t value;
    return json_node_int(json_node_path(node, path), &value) ? value : 0;
}

static const struct json_node *first_of(const struct json_node *node, enum json_type type)
{
    return node && node->type == type ? node->first : NULL;
}

bool kube_cell_condition(struct kube_cells *cells, const char *type)
{
    const struct json_node *conditions = json_node_path(cells->object, "status.conditions");
    for (const struct json_node *at = first_of(conditions, JSON_TYPE_ARRAY); at; at = at->next)
        if (json_node_text_is(at, "type", type))
            return json_node_text_is(at, "status", "True");
    return false;
}

const struct json_node *kube_cell_map(struct kube_cells *cells, const char *path, const char *name,
                                      const char *member, const char *text)
{
    struct json_node *map = json_node_new(&cells->arena, JSON_TYPE_OBJECT);
    const struct json_node *items = json_node_path(cells->object, path);
    for (const struct json_node *at = first_of(items, JSON_TYPE_ARRAY); map && at; at = at->next) {
        struct slice key = kube_cell_text(cells, at, name);
        /* The first of several with the same name counts. */
        if (json_node_member(map, key))
            continue;
        struct json_node *value = json_node_new(&cells->arena, JSON_TYPE_BOOL);
        if (!value)
            return NULL;
        value->truth = json_node_is_text(json_node_named(at, member), text);
        if (json_node_set(&cells->arena, map, key, value) != ST_OK)
            return NULL;
    }
    return map;
}

bool kube_cell_map_has(const struct json_node *map, struct slice key)
{
    const struct json_node *value = json_node_member(map, key);
    return value && value->truth;
}

void kube_joined_add(struct kube_joined *joined, struct slice part)
{
    /* Further parts are only counted, for "+ N more...". */
    if (joined->count++ >= joined->shown_max && joined->shown_max)
        return;
    if (joined->status == ST_OK && joined->text.len)
        joined->status =
            buf_append_text(&joined->text, joined->separator ? joined->separator : ",");
    if (joined->status == ST_OK)
        joined->status = buf_append(&joined->text, part);
}

void kube_joined_write(struct kube_joined *joined, struct kube_cells *cells, const char *fallback)
{
    if (joined->status == ST_OK && joined->shown_max && joined->count > joined->shown_max)
        joined->status = buf_append_format(&joined->text, " + %llu more...",
                                           (unsigned long long)(joined->count - joined->shown_max));
    if (joined->text.len || !fallback)
        json_string(cells->w, buf_slice(&joined->text));
    else
        json_text(cells->w, fallback);
    if (cells->w->status == ST_OK)
        cells->w->status = joined->status;
    buf_fini(&joined->text);
}

void kube_print_text(struct kube_cells *cells, const struct kube_column *column)
{
    struct slice text = kube_cell_text(cells, cells->object, column->path);
    if (!text.len && column->fallback)
        text = slice_from_text(column->fallback);
    json_string(cells->w, text);
}

void kube_print_int(struct kube_cells *cells, const struct kube_column *column)
{
    int64_t value = 0;
    if (json_node_int(json_node_path(cells->object, column->path), &value) || !column->fallback)
        json_i64(cells->w, value);
    else
        json_text(cells->w, column->fallback);
}

void kube_print_age(struct kube_cells *cells, const struct kube_column *column)
{
    char text[KUBE_DURATION_BYTES];
    int64_t at_s;
    snprintf(text, sizeof(text), "%s", column->fallback ? column->fallback : "<unknown>");
    if (kube_time_parse(kube_cell_text(cells, cells->object, column->path), &at_s))
        kube_duration_text(cells->now_s - at_s, text);
    json_text(cells->w, text);
}

void kube_print_count(struct kube_cells *cells, const struct kube_column *column)
{
    const struct json_node *node = json_node_path(cells->object, column->path);
    bool counts = node && (node->type == JSON_TYPE_ARRAY || node->type == JSON_TYPE_OBJECT);
    json_i64(cells->w, counts ? (int64_t)node->count : 0);
}

static void print_members(struct kube_cells *cells, const struct kube_column *column,
                          const char *member)
{
    struct kube_joined joined = {0};
    const struct json_node *items = json_node_path(cells->object, column->path);
    for (const struct json_node *at = first_of(items, JSON_TYPE_ARRAY); at; at = at->next)
        kube_joined_add(&joined, kube_cell_text(cells, at, member));
    kube_joined_write(&joined, cells, column->fallback);
}

void kube_print_names(struct kube_cells *cells, const struct kube_column *column)
{
    print_members(cells, column, "name");
}

void kube_print_images(struct kube_cells *cells, const struct kube_column *column)
{
    print_members(cells, column, "image");
}

void kube_print_labels(struct kube_cells *cells, const struct kube_column *column)
{
    struct kube_joined joined = {0};
    const struct json_node *labels = json_node_path(cells->object, column->path);
    for (const struct json_node *at = first_of(labels, JSON_TYPE_OBJECT); at; at = at->next) {
        struct buf part = {0};
        struct slice value = SLICE_EMPTY;
        if (json_node_text(at, &cells->arena, &value) != ST_OK ||
            buf_append_format(&part, "%.*s=%.*s", SLICE_ARGS(at->key), SLICE_ARGS(value)) != ST_OK)
            joined.status = ST_NOMEM;
        kube_joined_add(&joined, buf_slice(&part));
        buf_fini(&part);
    }
    kube_joined_write(&joined, cells, "<none>");
}

void kube_print_bool(struct kube_cells *cells, const struct kube_column *column)
{
    json_bool(cells->w, json_node_is_true(json_node_path(cells->object, column->path)));
}
