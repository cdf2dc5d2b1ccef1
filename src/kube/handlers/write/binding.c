/*
 * POST to a pod: a Binding, by which a scheduler assigns it to a node, and an Eviction, which
 * deletes it (eviction.c). Both answer with a Status.
 */
#include "kube/call/call.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/body.h"
#include "kube/handlers/write/delete.h"
#include "kube/handlers/write/eviction.h"
#include "kube/handlers/write/policies.h"
#include "kube/handlers/write/write.h"
#include "kube/policy/policies/validate.h"
#include "kube/types/object/kind_rules.h"

#include <stdio.h>

struct posting {
    struct kube_change change;
    const struct json_node *body;
    bool evicts;
    struct kube_delete_options options; /* options of an eviction */
};

static void respond(struct kube_change *change)
{
    static const char text[] = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                               "\"status\":\"Success\",\"code\":201}";
    kube_call_respond(change->call, 201, slice_from_text(text));
}

/* -- Bindings -- */

/* The pod has no node and no scheduling gates, and is not being deleted. */
static bool may_bind(struct kube_change *change, const struct json_node *pod)
{
    const struct json_node *node = json_node_path(pod, "spec.nodeName");
    const struct json_node *gates = json_node_path(pod, "spec.schedulingGates");
    char why[512] = "";
    int len = (int)size_min(change->name.len, 253);
    const char *name = (const char *)change->name.ptr;
    if (kube_meta_is_deleting(pod))
        snprintf(why, sizeof(why), "pod %.*s is being deleted, cannot be assigned to a host", len,
                 name);
    else if (json_node_has_text(node))
        snprintf(why, sizeof(why), "pod %.*s is already assigned to node \"%.*s\"", len, name,
                 (int)size_min(node->text.len, 200), (const char *)node->text.ptr);
    else if (gates && gates->type == JSON_TYPE_ARRAY && gates->first)
        snprintf(why, sizeof(why), "pod %.*s has non-empty .spec.schedulingGates", len, name);
    return !why[0] || kube_fail_conflict(&change->call->status, SLICE_EMPTY,
                                         SLICE_LITERAL("pods/binding"), change->name, why);
}

/* A time that is not known. */
static bool set_null(struct kube_meta *meta, struct json_node *to, const char *name)
{
    return json_node_put(meta->arena, to, name, json_node_new(meta->arena, JSON_TYPE_NULL)) ==
               ST_OK ||
           kube_fail_engine(meta->status, ST_NOMEM);
}

/* status.conditions: {"type":"PodScheduled","status":"True"}. A node that was only nominated is
 * forgotten. */
static bool set_scheduled(struct kube_change *change, struct json_node *pod)
{
    struct kube_meta *meta = &change->meta;
    char now[KUBE_TIME_BYTES];
    struct json_node *status, *list, *item;
    if (!kube_meta_object(meta, pod, "status", &status))
        return false;
    item = json_node_named(status, "nominatedNodeName");
    if (item)
        json_node_remove(status, item);
    if (!kube_meta_array(meta, status, "conditions", &list))
        return false;
    item = json_node_first(list);
    while (item && !json_node_text_is(item, "type", "PodScheduled"))
        item = json_node_next(item);
    if (item)
        json_node_remove(list, item);
    item = json_node_new(meta->arena, JSON_TYPE_OBJECT);
    if (!item || json_node_insert(list, NULL, item) != ST_OK)
        return kube_fail_engine(meta->status, ST_NOMEM);
    kube_time_text(meta->now_s, now);
    return kube_meta_set_text(meta, item, "type", SLICE_LITERAL("PodScheduled")) &&
           kube_meta_set_text(meta, item, "status", SLICE_LITERAL("True")) &&
           set_null(meta, item, "lastProbeTime") &&
           kube_meta_set_text(meta, item, "lastTransitionTime", slice_from_text(now));
}

/* Copies the annotations of the binding to the pod. */
static bool add_annotations(struct kube_change *change, struct json_node *pod)
{
    const struct json_node *from =
        json_node_path(CONTAINER_OF(change, struct posting, change)->body, "metadata.annotations");
    struct json_node *to;
    struct slice text;
    if (!from || from->type != JSON_TYPE_OBJECT || !from->first)
        return true;
    if (!kube_meta_object(&change->meta, json_node_named(pod, "metadata"), "annotations", &to))
        return false;
    for (const struct json_node *one = from->first; one; one = one->next) {
        struct json_node *value = NULL;
        if (json_node_text(one, change->meta.arena, &text) == ST_OK)
            value = json_node_new_text(change->meta.arena, text);
        if (!value || json_node_set(change->meta.arena, to, one->key, value) != ST_OK)
            return kube_fail_engine(&change->call->status, ST_NOMEM);
    }
    return true;
}

static enum kube_decision bind(struct kube_change *change, const struct json_node *stored,
                               struct json_node **ret_object)
{
    const struct json_node *body = CONTAINER_OF(change, struct posting, change)->body;
    struct json_node *pod, *spec;
    struct slice node;
    if (!stored) {
        kube_fail_not_found(&change->call->status, SLICE_EMPTY, SLICE_LITERAL("pods"),
                            change->name);
        return KUBE_DECIDE_FAIL;
    }
    /* The scheduler may name the uid and version of the pod that it has seen. */
    if (!may_bind(change, stored) ||
        !kube_meta_preconditions(&change->meta, stored, json_node_named(body, "metadata"),
                                 change->revision))
        return KUBE_DECIDE_FAIL;
    pod = json_node_copy(&change->scratch, stored);
    if (!pod ||
        json_node_text(json_node_path(body, "target.name"), &change->scratch, &node) != ST_OK) {
        kube_fail_engine(&change->call->status, ST_NOMEM);
        return KUBE_DECIDE_FAIL;
    }
    if (!kube_meta_object(&change->meta, pod, "spec", &spec) ||
        !kube_meta_set_text(&change->meta, spec, "nodeName", node) ||
        !add_annotations(change, pod) || !set_scheduled(change, pod) ||
        !kube_meta_order(&change->meta, pod))
        return KUBE_DECIDE_FAIL;
    *ret_object = pod;
    return KUBE_DECIDE_PUT;
}

/* For Kubernetes, what is wrong here is an error of the server. */
static bool check_target(struct kube_call *call, const struct json_node *body)
{
    const struct json_node *kind = json_node_path(body, "target.kind");
    const struct json_node *name = json_node_path(body, "target.name");
    bool of_node = !json_node_has_text(kind) || json_node_is_text(kind, "Node");
    bool named = json_node_has_text(name);
    char wrong[192] = "";
    if (of_node && named)
        return true;
    if (!of_node)
        snprintf(wrong, sizeof(wrong),
                 "target.kind: Unsupported value: \"%.*s\": supported values: \"Node\", "
                 "\"<empty>\"",
                 (int)size_min(kind->text.len, 64), (const char *)kind->text.ptr);
    bool both = !of_node && !named;
    return kube_fail(&call->status, KUBE_UNKNOWN, "%s%s%s%s%s", both ? "[" : "", wrong,
                     both ? ", " : "", named ? "" : "target.name: Required value", both ? "]" : "");
}

/* -- Both -- */

/* The pod of the path, or of the body if the path has none. */
static bool find_name(struct kube_call *call, struct posting *posting)
{
    posting->change.name = call->path.name;
    return call->path.name.len ||
           json_node_text(json_node_path(posting->body, "metadata.name"), &call->arena,
                          &posting->change.name) == ST_OK ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

/* Policies may have changed what was posted. */
static enum kube_decision check(struct kube_change *change, const struct json_node *stored,
                                struct json_node **ret_object)
{
    struct posting *posting = CONTAINER_OF(change, struct posting, change);
    struct kube_call *call = change->call;
    const struct json_node *body = posting->body = change->posted;
    struct slice name;
    (void)stored, (void)ret_object;
    if (json_node_text(json_node_path(body, "metadata.name"), &call->arena, &name) != ST_OK) {
        kube_fail_engine(&call->status, ST_NOMEM);
        return KUBE_DECIDE_FAIL;
    }
    if (!slice_equal(change->name, name)) {
        kube_fail(&call->status, KUBE_BAD_REQUEST, "name in URL does not match name in %s object",
                  posting->evicts ? "Eviction" : "Binding");
        return KUBE_DECIDE_FAIL;
    }
    bool fine = posting->evicts
                    ? kube_delete_options_of(call, json_node_named(body, "deleteOptions"),
                                             &posting->options)
                    : check_target(call, body);
    return fine ? KUBE_DECIDE_KEEP : KUBE_DECIDE_FAIL;
}

/* Policies allow it. An eviction has a change of its own. */
static void on_admitted(struct kube_change *change)
{
    struct posting *posting = CONTAINER_OF(change, struct posting, change);
    kube_policies_free(change); /* verdicts about what was posted are not those of the pod */
    kube_change_fini(change);
    change->acts = 0;
    change->decide = bind;
    change->done = respond;
    if (posting->evicts)
        kube_evict(change->call, change->name, &posting->options);
    else
        kube_change_start(change);
}

static bool prepare(struct kube_call *call, const struct http_request *request,
                    struct posting *posting)
{
    static const struct kube_policy_object_kind binding = {"", "v1", "Binding"};
    static const struct kube_policy_object_kind eviction = {"policy", "v1", "Eviction"};
    bool binds = !slice_is(call->path.subresource, "eviction");
    struct json_node *body;
    if (!kube_body_read_object(call, request, binds ? "Binding" : "Eviction", &body) ||
        !kube_body_set_posted(call, body, binds ? "v1" : "policy/v1",
                              binds ? "Binding" : "Eviction"))
        return false;
    posting->body = body;
    posting->evicts = !binds;
    call->kind = kube_builtin_find(SLICE_EMPTY, SLICE_LITERAL("v1"), SLICE_LITERAL("pods"));
    call->rules = kube_kind_rules(call->kind);
    posting->change = (struct kube_change){
        .call = call,
        .namespace = call->path.namespace,
        .acts = KUBE_MATCH_CREATE,
        .posted = body,
        .posted_kind = binds ? &binding : &eviction,
        .decide = check,
        .done = on_admitted,
        .dry_run = call->query.dry_run,
    };
    return find_name(call, posting);
}

void kube_post_subresource(struct kube_call *call)
{
    struct posting *posting = arena_calloc(&call->arena, 1, sizeof(*posting));
    if (!posting)
        kube_fail_engine(&call->status, ST_NOMEM);
    if (!posting || !prepare(call, call->request, posting))
        kube_call_fail(call);
    else
        kube_change_admit(&posting->change);
}
