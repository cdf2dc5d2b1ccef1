/*
 * POST …/pods/x/eviction: deletes a pod if its disruption budget allows it. A pod that is not
 * running needs no budget; an eviction that a budget allows is subtracted from it first.
 *
 *     read the pod ─┬─► read the budgets ─┬─► write the budget ─► delete the pod
 *                   │         ▲           │         │
 *                   │         └───────────┼─────────┘ it has changed
 *                   └─────────────────────┴───────────────────► delete the pod
 */
#include "kube/handlers/write/eviction.h"
#include "kube/call/call.h"
#include "kube/call/operation.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/body.h"
#include "kube/handlers/write/delete.h"
#include "kube/types/object/label_match.h"

#include <stdio.h>

#define BUDGETS "/registry/poddisruptionbudgets/"
#define VIOLATES "Cannot evict pod as it would violate the pod's disruption budget."

enum {
    TRIES_MAX = 20,            /* as in Kubernetes */
    DISRUPTED_PODS_MAX = 2000, /* as in Kubernetes */
    PROCESSING_RETRY_S = 10,
};

struct eviction {
    struct kube_change change;
    struct kube_delete_options options;
    struct pb_range_request request;
    const struct json_node *pod;
    struct json_node *budget; /* the one that selects the pod */
    struct slice budget_key;
    int64_t budget_revision;
    unsigned matches; /* budgets that select the pod */
    unsigned tries;
    struct buf encoded;
    bool pinned; /* only the version of the pod that was examined may be deleted */
    int64_t pod_revision;
};

static struct eviction *eviction_of(struct kube_call *call)
{
    return CONTAINER_OF(call->handler.change, struct eviction, change);
}

static const char *text_of(const struct json_node *node, size_t *ret_len)
{
    bool text = node && node->type == JSON_TYPE_STRING;
    *ret_len = text ? size_min(node->text.len, 512) : 0;
    return text ? (const char *)node->text.ptr : "";
}

/* -- Deleting the pod -- */

/* status.conditions: {"type":"DisruptionTarget",…} */
static bool set_target(struct kube_change *change, struct json_node *pod)
{
    struct kube_meta *meta = &change->meta;
    struct json_node *status, *list, *item;
    char now[KUBE_TIME_BYTES];
    if (!kube_meta_object(meta, pod, "status", &status) ||
        !kube_meta_array(meta, status, "conditions", &list))
        return false;
    item = json_node_first(list);
    while (item && !json_node_text_is(item, "type", "DisruptionTarget"))
        item = json_node_next(item);
    if (item)
        return true;
    item = json_node_new(meta->arena, JSON_TYPE_OBJECT);
    if (!item || json_node_insert(list, NULL, item) != ST_OK)
        return kube_fail_engine(meta->status, ST_NOMEM);
    kube_time_text(meta->now_s, now);
    return kube_meta_set_text(meta, item, "type", SLICE_LITERAL("DisruptionTarget")) &&
           kube_meta_set_text(meta, item, "status", SLICE_LITERAL("True")) &&
           kube_meta_set_text(meta, item, "lastTransitionTime", slice_from_text(now)) &&
           kube_meta_set_text(meta, item, "reason", SLICE_LITERAL("EvictionByEvictionAPI")) &&
           kube_meta_set_text(meta, item, "message", SLICE_LITERAL("Eviction API: evicting"));
}

static bool not_found(struct kube_change *change)
{
    return kube_fail_not_found(&change->call->status, SLICE_EMPTY, SLICE_LITERAL("pods"),
                               change->name);
}

static enum kube_decision decide(struct kube_change *change, const struct json_node *stored,
                                 struct json_node **ret_object)
{
    struct eviction *e = eviction_of(change->call);
    struct json_node *pod;
    if (!stored) {
        not_found(change);
        return KUBE_DECIDE_FAIL;
    }
    /* The budget did not count this pod when it was examined, and may count it by now. */
    if (e->pinned && change->revision != e->pod_revision) {
        kube_fail_conflict(&change->call->status, SLICE_EMPTY, SLICE_LITERAL("pods"), change->name,
                           "the pod has changed while it was being evicted");
        return KUBE_DECIDE_FAIL;
    }
    pod = json_node_copy(&change->scratch, stored);
    if (!pod) {
        kube_fail_engine(&change->call->status, ST_NOMEM);
        return KUBE_DECIDE_FAIL;
    }
    if (!change->dry_run && !set_target(change, pod))
        return KUBE_DECIDE_FAIL;
    enum kube_decision decision = kube_delete_decide(change, &e->options, pod, ret_object);
    bool changed = decision == KUBE_DECIDE_KEEP && !json_node_equal(stored, pod);
    return changed ? KUBE_DECIDE_PUT : decision;
}

static void respond(struct kube_change *change)
{
    static const char text[] = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                               "\"status\":\"Success\",\"code\":201}";
    kube_call_respond(change->call, 201, slice_from_text(text));
}

static void on_free(struct kube_change *change)
{
    buf_fini(&CONTAINER_OF(change, struct eviction, change)->encoded);
}

/* -- The budget -- */

static int64_t count_of(const struct json_node *budget, const char *path)
{
    int64_t count = 0;
    const struct json_node *node = json_node_path(budget, path);
    return node && json_node_int(node, &count) ? count : 0;
}

static bool refuse(struct kube_call *call, unsigned retry_s, const char *message)
{
    kube_fail(&call->status, KUBE_TOO_MANY_REQUESTS, "%s", VIOLATES);
    call->status.retry_after_s = retry_s;
    kube_status_cause(&call->status, "DisruptionBudget", "", message);
    return false;
}

static const struct json_node *find_condition(const struct json_node *budget)
{
    const struct json_node *one = json_node_items_at(budget, "status.conditions");
    while (one && !json_node_text_is(one, "type", "DisruptionAllowed"))
        one = one->next;
    return one && json_node_text_is(one, "status", "False") ? one : NULL;
}

/* No disruption is allowed now, in Kubernetes' words. */
static bool refuse_now(struct kube_call *call, const struct json_node *budget, const char *name)
{
    const struct json_node *condition = find_condition(budget);
    int64_t healthy = count_of(budget, "status.currentHealthy");
    int64_t desired = count_of(budget, "status.desiredHealthy");
    const struct json_node *reason = condition ? json_node_named(condition, "reason") : NULL;
    size_t why_len, reason_len;
    const char *why = text_of(condition ? json_node_named(condition, "message") : NULL, &why_len);
    const char *reason_text = text_of(reason, &reason_len);
    char message[640];
    if (why_len && json_node_is_text(reason, "SyncFailed"))
        snprintf(message, sizeof(message),
                 "The disruption budget %s does not allow evicting pods currently because it "
                 "failed sync: %.*s",
                 name, (int)size_min(why_len, 200), why);
    else if (healthy <= desired)
        snprintf(message, sizeof(message),
                 "The disruption budget %s needs %lld healthy pods and has %lld currently", name,
                 (long long)desired, (long long)healthy);
    else if (why_len)
        snprintf(message, sizeof(message),
                 "The disruption budget %s does not allow evicting pods currently (%.*s): %.*s",
                 name, (int)size_min(reason_len, 64), reason_text, (int)size_min(why_len, 200),
                 why);
    else
        snprintf(message, sizeof(message),
                 "The disruption budget %s does not allow evicting pods currently", name);
    return refuse(call, 0, message);
}

static bool forbid(struct kube_call *call, struct slice name, const char *why)
{
    return kube_fail_forbidden(&call->status, SLICE_LITERAL("policy"),
                               SLICE_LITERAL("poddisruptionbudget"), name, why);
}

static size_t count_disrupted(const struct json_node *budget)
{
    const struct json_node *pods = json_node_path(budget, "status.disruptedPods");
    const struct json_node *one = pods && pods->type == JSON_TYPE_OBJECT ? pods->first : NULL;
    size_t count = 0;
    for (; one; one = one->next)
        count++;
    return count;
}

static bool allows(struct kube_call *call, const struct json_node *budget)
{
    const struct json_node *name_node = json_node_path(budget, "metadata.name");
    int64_t allowed = count_of(budget, "status.disruptionsAllowed");
    size_t len;
    const char *text = text_of(name_node, &len);
    char name[254], message[320];
    snprintf(name, sizeof(name), "%.*s", (int)size_min(len, sizeof(name) - 1), text);
    snprintf(message, sizeof(message),
             "The disruption budget %s is still being processed by the server.", name);
    if (count_of(budget, "status.observedGeneration") < count_of(budget, "metadata.generation"))
        return refuse(call, PROCESSING_RETRY_S, message);
    if (allowed < 0)
        return forbid(call, slice_of(text, len), "pdb disruptions allowed is negative");
    if (count_disrupted(budget) > DISRUPTED_PODS_MAX)
        return forbid(call, slice_of(text, len),
                      "DisruptedPods map too big - too many evictions not confirmed by PDB "
                      "controller");
    return allowed > 0 || refuse_now(call, budget, name);
}

/* A pod that is not ready may go if the others are enough, or if the budget does not count it. */
static bool is_uncounted(const struct json_node *pod, const struct json_node *budget)
{
    const struct json_node *one = json_node_items_at(pod, "status.conditions");
    int64_t desired = count_of(budget, "status.desiredHealthy");
    while (one && !json_node_text_is(one, "type", "Ready"))
        one = one->next;
    if (one && json_node_text_is(one, "status", "True"))
        return false;
    return json_node_text_is(budget, "spec.unhealthyPodEvictionPolicy", "AlwaysAllow") ||
           (desired > 0 && count_of(budget, "status.currentHealthy") >= desired);
}

static bool subtract(struct eviction *e)
{
    struct kube_call *call = e->change.call;
    struct kube_meta meta = kube_call_meta(call, &call->arena);
    struct json_node *status, *pods, *time;
    char now[KUBE_TIME_BYTES];
    kube_time_text(meta.now_s, now);
    if (!kube_meta_object(&meta, e->budget, "status", &status) ||
        !kube_meta_set_int(&meta, status, "disruptionsAllowed",
                           count_of(e->budget, "status.disruptionsAllowed") - 1) ||
        !kube_meta_object(&meta, status, "disruptedPods", &pods))
        return false;
    time = json_node_new_text(&call->arena, slice_from_text(now));
    buf_reset(&e->encoded, SIZE_MAX);
    return (time && json_node_set(&call->arena, pods, e->change.name, time) == ST_OK &&
            kube_object_encode(e->budget, &e->encoded) == ST_OK) ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

static void read_budgets(struct kube_call *call);

static void on_subtracted(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_write(op);
    struct kube_kv current;
    enum status status = op->status;
    bool written = status == ST_OK && kube_write_succeeded(&call->write, &current);
    engine_write_close(&call->write.engine);
    if (!kube_call_done(call))
        return;
    if (written) {
        call->written = true;
        kube_change_start(&eviction_of(call)->change);
    } else if (status != ST_OK || ++eviction_of(call)->tries == TRIES_MAX) {
        kube_call_fail_engine(call, status == ST_OK ? ST_REQUEST_TOO_MANY_REQUESTS : status);
    } else {
        read_budgets(call);
    }
}

static void use_budget(struct kube_call *call)
{
    struct eviction *e = eviction_of(call);
    bool uncounted = is_uncounted(e->pod, e->budget);
    if (!uncounted && (!allows(call, e->budget) || !subtract(e))) {
        kube_call_fail(call);
        return;
    }
    e->pinned = uncounted;
    if (uncounted || e->change.dry_run) {
        kube_change_start(&e->change);
        return;
    }
    call->write = (struct kube_write){
        .key = e->budget_key, .value = buf_slice(&e->encoded), .expected = e->budget_revision};
    kube_call_put(call, on_subtracted);
}

/* -- Reading -- */

static enum status read_tree(struct kube_call *call, struct slice json, struct json_node **ret_tree)
{
    struct slice copy;
    struct error error;
    TRY(arena_dup(&call->arena, json, &copy));
    return json_tree_read(&call->arena, copy, ret_tree, &error);
}

static enum status take_budget(struct eviction *e, struct kube_kv kv)
{
    struct kube_call *call = e->change.call;
    struct json_node *budget;
    enum status status = read_tree(call, kv.value, &budget);
    if (status != ST_OK)
        return status == ST_NOMEM ? status : ST_OK;
    if (!kube_label_match(json_node_path(budget, "spec.selector"),
                          json_node_path(e->pod, "metadata.labels")))
        return ST_OK;
    e->matches++;
    e->budget = budget;
    e->budget_revision = kv.mod_revision;
    return arena_dup(&call->arena, kv.key, &e->budget_key);
}

static bool take_budgets(struct kube_call *call)
{
    struct eviction *e = eviction_of(call);
    struct slice field;
    enum status status = call->range.op.status;
    e->matches = 0;
    if (status == ST_OK && call->range.more)
        return kube_fail(&call->status, KUBE_INTERNAL_ERROR,
                         "the namespace has more than %d disruption budgets, which evictions do "
                         "not support",
                         KUBE_EVICTION_BUDGETS_MAX);
    while (status == ST_OK && engine_range_next(&call->range, &field))
        status = take_budget(e, kube_kv_of(field));
    if (status != ST_OK)
        return kube_fail_engine(&call->status, status);
    if (e->matches < 2)
        return true;
    return kube_fail(&call->status, KUBE_UNKNOWN,
                     "This pod has more than one PodDisruptionBudget, which the eviction "
                     "subresource does not support.");
}

static void on_budgets(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    bool fine = take_budgets(call);
    engine_range_close(&call->range);
    if (!kube_call_done(call))
        return;
    if (!fine)
        kube_call_fail(call);
    else if (eviction_of(call)->matches)
        use_budget(call);
    else
        kube_change_start(&eviction_of(call)->change);
}

static void read_budgets(struct kube_call *call)
{
    struct eviction *e = eviction_of(call);
    struct slice key, end;
    if (kube_key_make(&call->arena, BUDGETS, call->path.namespace, SLICE_EMPTY, &key) != ST_OK ||
        kube_prefix_end(&call->arena, key, &end) != ST_OK) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    e->request =
        (struct pb_range_request){.key = key, .range_end = end, .limit = KUBE_EVICTION_BUDGETS_MAX};
    kube_call_range(call, &e->request, on_budgets);
}

/* A pod that has ended or has not begun causes no disruption. */
static bool needs_no_budget(const struct json_node *pod)
{
    const struct json_node *phase = json_node_path(pod, "status.phase");
    return json_node_is_text(phase, "Succeeded") || json_node_is_text(phase, "Failed") ||
           json_node_is_text(phase, "Pending") || kube_meta_is_deleting(pod);
}

static bool take_pod(struct kube_call *call)
{
    struct eviction *e = eviction_of(call);
    struct json_node *pod;
    struct slice field;
    if (call->range.op.status != ST_OK)
        return kube_fail_engine(&call->status, call->range.op.status);
    if (!engine_range_next(&call->range, &field))
        return not_found(&e->change);
    struct kube_kv kv = kube_kv_of(field);
    enum status status = read_tree(call, kv.value, &pod);
    if (status != ST_OK)
        return status == ST_NOMEM ? kube_fail_engine(&call->status, status)
                                  : kube_fail_stored(&call->status);
    e->pod = pod;
    e->pod_revision = kv.mod_revision;
    return true;
}

static void on_pod(struct engine_op *op)
{
    struct kube_call *call = kube_call_of_range(op);
    struct eviction *e = eviction_of(call);
    bool fine = take_pod(call);
    engine_range_close(&call->range);
    if (!kube_call_done(call))
        return;
    if (!fine)
        kube_call_fail(call);
    else if (needs_no_budget(e->pod))
        kube_change_start(&e->change);
    else
        read_budgets(call);
}

void kube_evict(struct kube_call *call, struct slice name,
                const struct kube_delete_options *options)
{
    struct eviction *e = arena_calloc(&call->arena, 1, sizeof(*e));
    struct slice key;
    if (!e ||
        kube_key_make(&call->arena, "/registry/pods/", call->path.namespace, name, &key) != ST_OK) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    e->options = *options;
    e->change = (struct kube_change){
        .call = call,
        .name = name,
        .namespace = call->path.namespace,
        .decide = decide,
        .done = respond,
        .on_free = on_free,
        .dry_run = options->dry_run,
    };
    e->request = (struct pb_range_request){.key = key};
    call->handler.change = &e->change;
    call->on_free = kube_change_free;
    kube_call_range(call, &e->request, on_pod);
}
