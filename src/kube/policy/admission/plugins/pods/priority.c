/*
 * Priority: a pod gets the number and the preemption policy of its priority class, or of the
 * default class, and cannot choose them itself. Only one class can be the default.
 */
#include "kube/policy/admission/plugins/plugins.h"

/* What is kept of a priority class. */
struct class
{
    int64_t value;
    struct slice policy; /* empty: none */
    bool is_default;
};

static const void *read_class(struct arena *arena, const struct json_node *object)
{
    struct class *class = arena_calloc(arena, 1, sizeof(*class));
    const struct json_node *value = json_node_named(object, "value");
    const struct json_node *global = json_node_named(object, "globalDefault");
    struct slice policy;
    if (!class ||
        json_node_text(json_node_named(object, "preemptionPolicy"), arena, &policy) != ST_OK ||
        arena_dup(arena, policy, &class->policy) != ST_OK)
        return NULL;
    if (value && !json_node_int(value, &class->value))
        return NULL;
    class->is_default = json_node_is_true(global);
    return class;
}

static bool is_default(const void *data)
{
    return ((const struct class *)data)->is_default;
}

/* Two defaults can only come from a race: the lower one is used. */
static bool is_better(const struct kube_lookup_object *a, const struct kube_lookup_object *b)
{
    const struct class *one = a->data, *other = b->data;
    return one->value < other->value;
}

const struct kube_fact_row kube_priority_classes = {
    .kind = {.prefix = "/registry/priorityclasses/", .read = read_class},
    .named_by = "spec.priorityClassName",
    .is_default = is_default,
    .is_better = is_better,
};

/* -- Pods -- */

static bool copy_missing(struct kube_admission_write *write, struct json_node *spec,
                         const char *key)
{
    const struct json_node *old = json_node_named(json_node_named(write->old, "spec"), key);
    if (!old || json_node_named(spec, key))
        return true;
    struct json_node *copy = json_node_copy(write->arena, old);
    return (copy && json_node_set(write->arena, spec, slice_from_text(key), copy) == ST_OK) ||
           kube_fail_engine(write->status, ST_NOMEM);
}

/* The class that the pod names or the default. *ret_object NULL: neither. */
static bool find_class(const struct kube_admission_write *write, const struct json_node *spec,
                       const struct kube_lookup_object **ret_object)
{
    const struct kube_fact_objects *known = &write->facts->of[KUBE_FACT_PRIORITY_CLASSES];
    struct slice name;
    if (json_node_text(json_node_named(spec, "priorityClassName"), write->arena, &name) != ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    if (name.len && !known->named)
        return kube_admission_forbid(write, "no PriorityClass with name %.*s was found",
                                     (int)size_min(name.len, 256), (const char *)name.ptr);
    *ret_object = name.len ? known->named : known->standard;
    return true;
}

static bool set_priority(struct kube_admission_write *write, struct json_node *spec, int64_t value)
{
    const struct kube_meta meta = kube_admission_meta(write);
    const struct json_node *given = json_node_named(spec, "priority");
    int64_t number;
    if (given && json_node_int(given, &number) && number != value)
        return kube_admission_forbid(
            write,
            "the integer value of priority (%lld) must not be provided in pod spec; priority "
            "admission controller computed %lld from the given PriorityClass name",
            (long long)number, (long long)value);
    return kube_meta_set_int(&meta, spec, "priority", value);
}

static bool set_policy(struct kube_admission_write *write, struct json_node *spec,
                       struct slice policy)
{
    const struct kube_meta meta = kube_admission_meta(write);
    struct slice given;
    if (!policy.len)
        return true;
    if (json_node_text(json_node_named(spec, "preemptionPolicy"), write->arena, &given) != ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    if (given.len && !slice_equal(given, policy))
        return kube_admission_forbid(
            write,
            "the string value of PreemptionPolicy (%.*s) must not be provided in pod spec; "
            "priority admission controller computed %.*s from the given PriorityClass name",
            (int)size_min(given.len, 256), (const char *)given.ptr, SLICE_ARGS(policy));
    return kube_meta_set_text(&meta, spec, "preemptionPolicy", policy);
}

static bool admit(struct kube_admission_write *write)
{
    static const struct class none = {.policy = SLICE_LITERAL("PreemptLowerPriority")};
    const struct kube_meta meta = kube_admission_meta(write);
    const struct kube_lookup_object *object = NULL;
    struct json_node *spec = json_node_named(write->object, "spec");
    if (kube_kind_is(write->kind, "scheduling.k8s.io", "priorityclasses") || !spec ||
        spec->type != JSON_TYPE_OBJECT)
        return true;
    if (write->old)
        return copy_missing(write, spec, "priority") &&
               copy_missing(write, spec, "preemptionPolicy");
    if (!find_class(write, spec, &object))
        return false;
    const struct class *class = object ? object->data : &none;
    return (!object || kube_meta_set_text(&meta, spec, "priorityClassName", object->name)) &&
           set_priority(write, spec, class->value) && set_policy(write, spec, class->policy);
}

/* -- Priority classes -- */

static bool check(struct kube_admission_write *write)
{
    const struct kube_lookup_object *other = write->facts->of[KUBE_FACT_PRIORITY_CLASSES].standard;
    const struct json_node *global = json_node_named(write->object, "globalDefault");
    if (!kube_kind_is(write->kind, "scheduling.k8s.io", "priorityclasses") || !other || !global ||
        global->type != JSON_TYPE_BOOL || !global->truth ||
        (write->old && slice_equal(other->name, write->name)))
        return true;
    return kube_admission_forbid(
        write, "PriorityClass %.*s is already marked as default. Only one default can exist",
        SLICE_ARGS(other->name));
}

const struct kube_admission_plugin kube_priority = {
    .name = "Priority",
    .needs = 1u << KUBE_FACT_PRIORITY_CLASSES,
    .rules = {{"", "pods", "", KUBE_ON_CREATE | KUBE_ON_UPDATE},
              {"scheduling.k8s.io", "priorityclasses", "", KUBE_ON_CREATE | KUBE_ON_UPDATE}},
    .admit = admit,
    .check = check,
};
