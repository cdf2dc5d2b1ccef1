/* The status of a pod as kubectl prints it, derived from the states of its containers. */
#include "kube/call/table/printers.h"

#include <stdio.h>

enum { REASON_BYTES = 128 };

struct pod_summary {
    int64_t ready, total, restarts;
    int64_t restarted_s; /* the last restart; 0: unknown */
    char reason[REASON_BYTES];
};

static void set_reason(struct pod_summary *pod, const char *prefix, struct slice reason)
{
    snprintf(pod->reason, REASON_BYTES, "%s%.*s", prefix, SLICE_ARGS(reason));
}

static void count_restarts(struct kube_cells *cells, const struct json_node *status,
                           struct pod_summary *pod)
{
    int64_t at_s;
    pod->restarts += kube_cell_int(status, "restartCount");
    if (kube_time_parse(kube_cell_text(cells, status, "lastState.terminated.finishedAt"), &at_s) &&
        at_s > pod->restarted_s)
        pod->restarted_s = at_s;
}

/* Sets the reason of a termination: its text, or the signal or exit code. */
static void set_ended(struct kube_cells *cells, const struct json_node *ended, const char *prefix,
                      struct pod_summary *pod)
{
    struct slice reason = kube_cell_text(cells, ended, "reason");
    int64_t signal = kube_cell_int(ended, "signal");
    if (reason.len)
        set_reason(pod, prefix, reason);
    else
        snprintf(pod->reason, REASON_BYTES, "%s%s:%lld", prefix, signal ? "Signal" : "ExitCode",
                 (long long)(signal ? signal : kube_cell_int(ended, "exitCode")));
}

/*
 * True: this init container has not finished, and the pod waits for it. A sidecar runs beside the
 * others.
 */
static bool read_init(struct kube_cells *cells, const struct json_node *status, size_t index,
                      bool sidecar, struct pod_summary *pod)
{
    const struct json_node *ended = json_node_path(status, "state.terminated");
    struct slice waiting = kube_cell_text(cells, status, "state.waiting.reason");
    if (ended && kube_cell_int(ended, "exitCode") == 0)
        return false;
    if (sidecar && json_node_is_true(json_node_named(status, "started"))) {
        pod->ready += json_node_is_true(json_node_named(status, "ready"));
        return false;
    }
    const struct json_node *containers = json_node_path(cells->object, "spec.initContainers");
    if (ended)
        set_ended(cells, ended, "Init:", pod);
    else if (waiting.len && !slice_is(waiting, "PodInitializing"))
        set_reason(pod, "Init:", waiting);
    else
        snprintf(pod->reason, REASON_BYTES, "Init:%zu/%u", index,
                 containers && containers->type == JSON_TYPE_ARRAY ? containers->count : 0);
    return true;
}

static bool read_inits(struct kube_cells *cells, struct pod_summary *pod,
                       struct pod_summary *sidecars)
{
    size_t index = 0;
    const struct json_node *statuses =
        json_node_path(cells->object, "status.initContainerStatuses");
    const struct json_node *restartable =
        kube_cell_map(cells, "spec.initContainers", "name", "restartPolicy", "Always");
    for (const struct json_node *at = json_node_items(statuses); at; at = at->next, index++) {
        bool sidecar = kube_cell_map_has(restartable, kube_cell_text(cells, at, "name"));
        count_restarts(cells, at, pod);
        if (sidecar)
            count_restarts(cells, at, sidecars);
        if (read_init(cells, at, index, sidecar, pod))
            return true;
    }
    return false;
}

/* Reads from the last to the first, so that the first container takes precedence. */
static void read_containers(struct kube_cells *cells, struct pod_summary *pod)
{
    bool running = false;
    char error[REASON_BYTES] = "";
    const struct json_node *statuses = json_node_path(cells->object, "status.containerStatuses");
    const struct json_node *last = json_node_items(statuses) ? statuses->last : NULL;
    for (const struct json_node *at = last; at; at = at->prev) {
        const struct json_node *ended = json_node_path(at, "state.terminated");
        struct slice waiting = kube_cell_text(cells, at, "state.waiting.reason");
        count_restarts(cells, at, pod);
        if (waiting.len) {
            set_reason(pod, "", waiting);
        } else if (ended) {
            set_ended(cells, ended, "", pod);
            if (kube_cell_int(ended, "exitCode"))
                snprintf(error, sizeof(error), "%s", pod->reason);
        } else if (json_node_is_true(json_node_named(at, "ready")) &&
                   json_node_path(at, "state.running")) {
            running = true;
            pod->ready++;
        }
    }
    if (strcmp(pod->reason, "Completed") != 0)
        return;
    if (running && kube_cell_condition(cells, "Ready"))
        set_reason(pod, "", SLICE_LITERAL("Running"));
    else if (error[0])
        set_reason(pod, "", slice_from_text(error));
    else if (running)
        set_reason(pod, "", SLICE_LITERAL("NotReady"));
}

static bool is_gated(struct kube_cells *cells)
{
    const struct json_node *conditions = json_node_path(cells->object, "status.conditions");
    for (const struct json_node *at = json_node_items(conditions); at; at = at->next)
        if (json_node_text_is(at, "type", "PodScheduled"))
            return json_node_text_is(at, "reason", "SchedulingGated");
    return false;
}

static void summarize(struct kube_cells *cells, struct pod_summary *pod)
{
    struct pod_summary sidecars = {0};
    struct slice phase = kube_cell_text(cells, cells->object, "status.phase");
    struct slice reason = kube_cell_text(cells, cells->object, "status.reason");
    set_reason(pod, "", reason.len ? reason : phase);
    if (is_gated(cells))
        set_reason(pod, "", SLICE_LITERAL("SchedulingGated"));
    /* Containers that restart always run beside the others and are counted with them. */
    const struct json_node *containers = json_node_path(cells->object, "spec.containers");
    const struct json_node *inits = json_node_path(cells->object, "spec.initContainers");
    pod->total = json_node_items(containers) ? (int64_t)containers->count : 0;
    for (const struct json_node *at = json_node_items(inits); at; at = at->next)
        pod->total += json_node_text_is(at, "restartPolicy", "Always");
    bool initializing = read_inits(cells, pod, &sidecars);
    if (!initializing || kube_cell_condition(cells, "Initialized")) {
        pod->restarts = sidecars.restarts;
        pod->restarted_s = sidecars.restarted_s;
        read_containers(cells, pod);
    }
    bool terminal = slice_is(phase, "Succeeded") || slice_is(phase, "Failed");
    if (!kube_cell_text(cells, cells->object, "metadata.deletionTimestamp").len)
        return;
    if (slice_is(kube_cell_text(cells, cells->object, "status.reason"), "NodeLost"))
        set_reason(pod, "", SLICE_LITERAL("Unknown"));
    else if (!terminal)
        set_reason(pod, "", SLICE_LITERAL("Terminating"));
}

/* Computed once for the three cells that need it. */
static const struct pod_summary *summary_of(struct kube_cells *cells)
{
    static const struct pod_summary none = {0};
    if (!cells->summary) {
        struct pod_summary *pod = arena_calloc(&cells->arena, 1, sizeof(*pod));
        if (!pod)
            return &none;
        summarize(cells, pod);
        cells->summary = pod;
    }
    return cells->summary;
}

void kube_print_pod_ready(struct kube_cells *cells, const struct kube_column *column)
{
    char text[64];
    (void)column;
    const struct pod_summary *pod = summary_of(cells);
    snprintf(text, sizeof(text), "%lld/%lld", (long long)pod->ready, (long long)pod->total);
    json_text(cells->w, text);
}

void kube_print_pod_status(struct kube_cells *cells, const struct kube_column *column)
{
    (void)column;
    json_text(cells->w, summary_of(cells)->reason);
}

void kube_print_pod_restarts(struct kube_cells *cells, const struct kube_column *column)
{
    char text[96], ago[KUBE_DURATION_BYTES];
    (void)column;
    const struct pod_summary *pod = summary_of(cells);
    kube_duration_text(cells->now_s - pod->restarted_s, ago);
    if (pod->restarts && pod->restarted_s)
        snprintf(text, sizeof(text), "%lld (%s ago)", (long long)pod->restarts, ago);
    else
        snprintf(text, sizeof(text), "%lld", (long long)pod->restarts);
    json_text(cells->w, text);
}
