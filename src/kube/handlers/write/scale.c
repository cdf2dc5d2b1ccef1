#include "kube/handlers/write/scale.h"

#include "kube/call/call.h"
#include "kube/call/call_offload.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/change.h"

#include <stdio.h>

/* spec.selector as text: "a=b,c=d"; matchExpressions are omitted. */
static bool selector_text(struct arena *arena, const struct json_node *object, struct buf *to)
{
    const struct json_node *selector = json_node_path(object, "spec.selector");
    const struct json_node *labels = json_node_named(selector, "matchLabels");
    /* A replication controller has the labels themselves in its selector. */
    if (!labels)
        labels = selector;
    const struct json_node *label =
        labels && labels->type == JSON_TYPE_OBJECT ? labels->first : NULL;
    for (; label; label = label->next) {
        struct slice value;
        if (label->type != JSON_TYPE_STRING)
            continue;
        if (json_node_text(label, arena, &value) != ST_OK ||
            buf_append_format(to, "%s%.*s=%.*s", to->len ? "," : "", SLICE_ARGS(label->key),
                              SLICE_ARGS(value)) != ST_OK)
            return false;
    }
    return true;
}

static bool set_member(struct arena *arena, struct json_node *to, const char *key,
                       struct json_node *value)
{
    return json_node_put(arena, to, key, value) == ST_OK;
}

/* The wanted number; 0 is omitted, as by Go's type. */
static bool set_wanted(struct arena *arena, struct json_node *to, const struct json_node *from,
                       int64_t or_else)
{
    int64_t replicas;
    if (!json_node_int(from, &replicas))
        replicas = or_else;
    return !replicas || set_member(arena, to, "replicas", json_node_new_int(arena, replicas));
}

static bool set_counted(struct arena *arena, struct json_node *to, const struct json_node *from)
{
    int64_t replicas;
    if (!json_node_int(from, &replicas))
        replicas = 0;
    return set_member(arena, to, "replicas", json_node_new_int(arena, replicas));
}

static bool set_metadata(struct arena *arena, struct json_node *scale,
                         const struct json_node *object, int64_t revision)
{
    static const char *const members[] = {"name", "namespace", "uid", "creationTimestamp"};
    struct json_node *metadata = json_node_new(arena, JSON_TYPE_OBJECT);
    const struct json_node *from = json_node_named(object, "metadata");
    char version[24];
    snprintf(version, sizeof(version), "%lld", (long long)revision);
    for (size_t i = 0; metadata && i < COUNT_OF(members); i++) {
        const struct json_node *value = json_node_named(from, members[i]);
        if (value && !set_member(arena, metadata, members[i], json_node_copy(arena, value)))
            return false;
    }
    return metadata &&
           set_member(arena, metadata, "resourceVersion",
                      json_node_new_text(arena, slice_from_text(version))) &&
           set_member(arena, scale, "metadata", metadata);
}

/* A custom resource names the paths of its replicas and selector in its definition. */
static bool fill_custom(struct arena *arena, const struct kube_custom *custom,
                        const struct json_node *object, struct json_node *spec,
                        struct json_node *status)
{
    struct slice selector = SLICE_EMPTY;
    const struct json_node *replicas = json_node_path(object, custom->replicas_path);
    const struct json_node *text =
        custom->selector_path ? json_node_path(object, custom->selector_path) : NULL;
    return json_node_text(text, arena, &selector) == ST_OK &&
           set_wanted(arena, spec, replicas, 0) &&
           set_counted(arena, status, json_node_path(object, custom->status_replicas_path)) &&
           (!selector.len ||
            set_member(arena, status, "selector", json_node_new_text(arena, selector)));
}

static bool fill_builtin(struct arena *arena, const struct json_node *object,
                         struct json_node *spec, struct json_node *status, struct buf *selector)
{
    return set_wanted(arena, spec, json_node_path(object, "spec.replicas"), 1) &&
           set_counted(arena, status, json_node_path(object, "status.replicas")) &&
           selector_text(arena, object, selector) &&
           (!selector->len ||
            set_member(arena, status, "selector", json_node_new_text(arena, buf_slice(selector))));
}

static bool fill(struct arena *arena, const struct kube_custom *custom,
                 const struct json_node *object, int64_t revision, struct json_node *scale,
                 struct buf *selector)
{
    struct json_node *spec = json_node_new(arena, JSON_TYPE_OBJECT);
    struct json_node *status = json_node_new(arena, JSON_TYPE_OBJECT);
    return spec && status &&
           set_member(arena, scale, "kind", json_node_new_text(arena, SLICE_LITERAL("Scale"))) &&
           set_member(arena, scale, "apiVersion",
                      json_node_new_text(arena, SLICE_LITERAL("autoscaling/v1"))) &&
           set_metadata(arena, scale, object, revision) &&
           (custom ? fill_custom(arena, custom, object, spec, status)
                   : fill_builtin(arena, object, spec, status, selector)) &&
           set_member(arena, scale, "spec", spec) && set_member(arena, scale, "status", status);
}

bool kube_scale_make(struct arena *arena, const struct kube_kind *kind,
                     const struct json_node *object, int64_t revision, struct json_node **ret_scale,
                     struct kube_status *status)
{
    const struct kube_custom *custom = kube_custom_of(kind);
    struct json_node *scale = json_node_new(arena, JSON_TYPE_OBJECT);
    struct buf selector = {0};
    bool made = scale && fill(arena, custom, object, revision, scale, &selector);
    buf_fini(&selector);
    if (!made)
        return kube_fail_engine(status, ST_NOMEM);
    *ret_scale = scale;
    return true;
}

static enum kube_decision look(struct kube_change *change, const struct json_node *stored,
                               struct json_node **ret_object)
{
    struct kube_call *call = change->call;
    const struct kube_custom *custom = kube_custom_of(call->kind);
    if (!stored) {
        kube_call_not_found(call);
        return KUBE_DECIDE_FAIL;
    }
    /* The definition names a field that this object does not have. */
    if (custom && !json_node_path(stored, custom->replicas_path)) {
        kube_fail(&call->status, KUBE_INTERNAL_ERROR,
                  "Internal error occurred: the spec replicas field \".%s\" does not exist",
                  custom->replicas_path);
        return KUBE_DECIDE_FAIL;
    }
    if (!kube_scale_make(&change->scratch, call->kind, stored, change->revision, ret_object,
                         &call->status))
        return KUBE_DECIDE_FAIL;
    return KUBE_DECIDE_PUT;
}

static void done(struct kube_change *change)
{
    kube_call_respond(change->call, 200, change->value);
}

void kube_scale_get(struct kube_call *call)
{
    struct kube_change *change = arena_calloc(&call->arena, 1, sizeof(*change));
    /* The names of the change refer to the request, also on the worker. */
    if (!change || !kube_call_keep_request(call)) {
        kube_call_fail_engine(call, ST_NOMEM);
        return;
    }
    /* Like a dry run: nothing is written, and the Scale is the answer. */
    *change = (struct kube_change){.call = call,
                                   .name = call->path.name,
                                   .namespace = call->path.namespace,
                                   .decide = look,
                                   .done = done,
                                   .dry_run = true};
    kube_change_start(change);
}
