#include "kube/types/object/conversion.h"

#include "kube/types/defaults/defaults.h"

#include <string.h>

static bool is_object(const struct json_node *node)
{
    return node && node->type == JSON_TYPE_OBJECT;
}

/* Removes and returns a member; NULL if there is none. */
static struct json_node *detach(struct json_node *object, const char *key)
{
    struct json_node *member = json_node_named(object, key);
    if (member)
        json_node_remove(object, member);
    return member;
}

/* -- Events -- */

struct renamed_field {
    const char *stored, *shown;
};

static const struct renamed_field event_names[] = {
    {"involvedObject", "regarding"},
    {"message", "note"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
    {"reportingComponent", "reportingController"},
};

static enum status rename_member(struct arena *arena, struct json_node *object, const char *from,
                                 const char *to)
{
    struct json_node *member = detach(object, from);
    return member ? json_node_set(arena, object, slice_from_text(to), member) : ST_OK;
}

static enum status event_from_stored(struct arena *arena, struct json_node *object)
{
    for (size_t i = 0; i < COUNT_OF(event_names); i++)
        TRY(rename_member(arena, object, event_names[i].stored, event_names[i].shown));
    return ST_OK;
}

static enum status event_to_stored(struct arena *arena, struct json_node *object)
{
    for (size_t i = 0; i < COUNT_OF(event_names); i++)
        TRY(rename_member(arena, object, event_names[i].shown, event_names[i].stored));
    return ST_OK;
}

/* -- Autoscalers -- */

/* A field of version 2, and the annotation that preserves it in version 1. */
struct kept_field {
    const char *in, *field, *annotation;
};

static const struct kept_field scaler_parts[] = {
    {"spec", "metrics", "autoscaling.alpha.kubernetes.io/metrics"},
    {"spec", "behavior", "autoscaling.alpha.kubernetes.io/behavior"},
    {"status", "currentMetrics", "autoscaling.alpha.kubernetes.io/current-metrics"},
    {"status", "conditions", "autoscaling.alpha.kubernetes.io/conditions"},
};

/* CPU utilization is the only metric for which version 1 has a field. */
struct cpu_metric {
    const char *in, *metrics, *target, *field;
};

static const struct cpu_metric cpu_metrics[] = {
    {"spec", "metrics", "target", "targetCPUUtilizationPercentage"},
    {"status", "currentMetrics", "current", "currentCPUUtilizationPercentage"},
};

static struct json_node *find_cpu_metric(struct json_node *metrics, const char *target)
{
    struct json_node *item =
        metrics && metrics->type == JSON_TYPE_ARRAY ? json_node_first(metrics) : NULL;
    for (; item; item = json_node_next(item)) {
        struct json_node *resource = json_node_named(item, "resource");
        struct json_node *value = json_node_named(resource, target);
        if (json_node_text_is(item, "type", "Resource") &&
            json_node_text_is(resource, "name", "cpu") &&
            json_node_named(value, "averageUtilization"))
            return item;
    }
    return NULL;
}

static enum status cpu_from_stored(struct arena *arena, struct json_node *object,
                                   const struct cpu_metric *cpu)
{
    struct json_node *part = json_node_named(object, cpu->in);
    struct json_node *metrics = json_node_named(part, cpu->metrics);
    struct json_node *item = find_cpu_metric(metrics, cpu->target);
    if (!item)
        return ST_OK;
    struct json_node *value = json_node_named(json_node_named(item, "resource"), cpu->target);
    struct json_node *percentage = detach(value, "averageUtilization");
    json_node_remove(metrics, item);
    if (!metrics->first)
        json_node_remove(part, metrics);
    return json_node_set(arena, part, slice_from_text(cpu->field), percentage);
}

/* {"type":"Resource","resource":{"name":"cpu",target:{"averageUtilization":80}}} */
static enum status make_metric(struct arena *arena, const struct cpu_metric *cpu,
                               struct json_node *percentage, struct json_node **ret_item)
{
    struct json_node *item = json_node_new(arena, JSON_TYPE_OBJECT);
    struct json_node *resource = json_node_new(arena, JSON_TYPE_OBJECT);
    struct json_node *value = json_node_new(arena, JSON_TYPE_OBJECT);
    if (!item || !resource || !value)
        return ST_NOMEM;
    if (strcmp(cpu->target, "target") == 0)
        TRY(json_node_put(arena, value, "type",
                          json_node_new_text(arena, SLICE_LITERAL("Utilization"))));
    TRY(json_node_set(arena, value, SLICE_LITERAL("averageUtilization"), percentage));
    TRY(json_node_put(arena, resource, "name", json_node_new_text(arena, SLICE_LITERAL("cpu"))));
    TRY(json_node_set(arena, resource, slice_from_text(cpu->target), value));
    TRY(json_node_put(arena, item, "type", json_node_new_text(arena, SLICE_LITERAL("Resource"))));
    TRY(json_node_set(arena, item, SLICE_LITERAL("resource"), resource));
    *ret_item = item;
    return ST_OK;
}

static enum status cpu_to_stored(struct arena *arena, struct json_node *object,
                                 const struct cpu_metric *cpu)
{
    struct json_node *part = json_node_named(object, cpu->in);
    struct json_node *percentage = is_object(part) ? detach(part, cpu->field) : NULL;
    struct json_node *metrics = json_node_named(part, cpu->metrics), *item;
    if (!percentage || percentage->type == JSON_TYPE_NULL)
        return ST_OK;
    TRY(make_metric(arena, cpu, percentage, &item));
    if (!metrics || metrics->type != JSON_TYPE_ARRAY) {
        metrics = json_node_new(arena, JSON_TYPE_ARRAY);
        if (!metrics)
            return ST_NOMEM;
        TRY(json_node_set(arena, part, slice_from_text(cpu->metrics), metrics));
    }
    return json_node_insert(metrics, NULL, item);
}

static enum status part_from_stored(struct arena *arena, struct json_node *object,
                                    const struct kept_field *kept)
{
    struct json_node *metadata = json_node_named(object, "metadata");
    struct json_node *part = json_node_named(object, kept->in);
    if (!is_object(metadata) || !is_object(part) || !json_node_named(part, kept->field))
        return ST_OK;
    AUTO(buf_fini) struct buf text = {0};
    struct json_node *value = detach(part, kept->field);
    if (value->type == JSON_TYPE_NULL)
        return ST_OK;
    TRY(json_tree_write(value, &text));
    struct json_node *annotations = json_node_named(metadata, "annotations");
    if (!is_object(annotations)) {
        annotations = json_node_new(arena, JSON_TYPE_OBJECT);
        if (!annotations)
            return ST_NOMEM;
        TRY(json_node_set(arena, metadata, SLICE_LITERAL("annotations"), annotations));
    }
    return json_node_put(arena, annotations, kept->annotation,
                         json_node_new_text(arena, buf_slice(&text)));
}

static enum status part_to_stored(struct arena *arena, struct json_node *object,
                                  const struct kept_field *kept)
{
    struct json_node *metadata = json_node_named(object, "metadata");
    struct json_node *annotations = json_node_named(metadata, "annotations");
    struct json_node *annotation = json_node_named(annotations, kept->annotation);
    struct json_node *part = json_node_named(object, kept->in), *value;
    struct slice text;
    struct error error;
    if (!annotation || !is_object(part))
        return ST_OK;
    TRY(json_node_text(annotation, arena, &text));
    enum status status = json_tree_read(arena, text, &value, &error);
    if (status == ST_NOMEM)
        return status;
    if (status != ST_OK || (value->type != JSON_TYPE_ARRAY && value->type != JSON_TYPE_OBJECT))
        return ST_OK; /* treated like any other annotation */
    json_node_remove(annotations, annotation);
    if (!annotations->first)
        json_node_remove(metadata, annotations);
    return json_node_set(arena, part, slice_from_text(kept->field), value);
}

static enum status scaler_from_stored(struct arena *arena, struct json_node *object)
{
    for (size_t i = 0; i < COUNT_OF(cpu_metrics); i++)
        TRY(cpu_from_stored(arena, object, &cpu_metrics[i]));
    for (size_t i = 0; i < COUNT_OF(scaler_parts); i++)
        TRY(part_from_stored(arena, object, &scaler_parts[i]));
    return ST_OK;
}

static enum status scaler_to_stored(struct arena *arena, struct json_node *object)
{
    for (size_t i = 0; i < COUNT_OF(scaler_parts); i++)
        TRY(part_to_stored(arena, object, &scaler_parts[i]));
    for (size_t i = 0; i < COUNT_OF(cpu_metrics); i++)
        TRY(cpu_to_stored(arena, object, &cpu_metrics[i]));
    return ST_OK;
}

/* -- Both kinds -- */

struct conversion {
    const char *group, *shown, *stored; /* apiVersions */
    const char *stored_group, *stored_version;
    enum status (*from_stored)(struct arena *arena, struct json_node *object);
    enum status (*to_stored)(struct arena *arena, struct json_node *object);
};

static const struct conversion conversions[] = {
    {"events.k8s.io", "events.k8s.io/v1", "v1", "", "v1", event_from_stored, event_to_stored},
    {"autoscaling", "autoscaling/v1", "autoscaling/v2", "autoscaling", "v2", scaler_from_stored,
     scaler_to_stored},
};

static const struct conversion *conversion_of(const struct kube_kind *kind)
{
    size_t i = 0;
    assert(kind->flags & KUBE_STORED_CONVERTED);
    while (i + 1 < COUNT_OF(conversions) && strcmp(conversions[i].group, kind->group) != 0)
        i++;
    return &conversions[i];
}

const char *kube_converted_api_version(const struct kube_kind *kind)
{
    return conversion_of(kind)->stored;
}

/*
 * Requests to a converted kind may carry objects of other kinds (a Scale, delete options), which
 * are not converted.
 */
static bool is_own_kind(const struct kube_kind *kind, struct json_node *object)
{
    const struct json_node *given = json_node_named(object, "kind");
    return !given || json_node_is_text(given, kind->kind);
}

enum status kube_convert_from_stored(const struct kube_kind *kind, struct arena *arena,
                                     struct json_node *object)
{
    const struct conversion *conversion = conversion_of(kind);
    if (!is_object(object))
        return ST_MALFORMED;
    TRY(conversion->from_stored(arena, object));
    TRY(json_node_put(arena, object, "apiVersion",
                      json_node_new_text(arena, slice_from_text(conversion->shown))));
    return kube_default_tree(arena, kind, object);
}

enum status kube_convert_to_stored(const struct kube_kind *kind, struct arena *arena,
                                   struct json_node *object)
{
    const struct conversion *conversion = conversion_of(kind);
    if (!is_object(object))
        return ST_MALFORMED;
    if (!is_own_kind(kind, object))
        return ST_OK;
    TRY(conversion->to_stored(arena, object));
    TRY(json_node_put(arena, object, "apiVersion",
                      json_node_new_text(arena, slice_from_text(conversion->stored))));
    /* Each form has the defaults of its own version. */
    const struct kube_kind *stored = kube_builtin_find(slice_from_text(conversion->stored_group),
                                                       slice_from_text(conversion->stored_version),
                                                       slice_from_text(kind->plural));
    assert(stored);
    return kube_default_tree(arena, stored, object);
}
