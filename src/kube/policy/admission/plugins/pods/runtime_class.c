/*
 * RuntimeClass: a pod with a runtime class gets the overhead, node selector and tolerations of that
 * class. An overhead that is not that of its class is refused.
 */
#include "kube/policy/admission/plugins/plugins.h"

#include "kube/policy/admission/plugins/pods/toleration_merge.h"
#include "kube/types/defaults/quantity.h"

enum { SHOWN_MAX = 256 }; /* bytes of a name in a message */

/* The whole tree of a class is kept. */
const struct kube_fact_row kube_runtime_classes = {
    .kind = {.prefix = "/registry/runtimeclasses/"},
    .named_by = "spec.runtimeClassName",
};

/* *ret_class NULL: the pod names none. */
static bool find_class(const struct kube_admission_write *write, const struct json_node **ret_class)
{
    const struct kube_lookup_object *object = write->facts->of[KUBE_FACT_RUNTIME_CLASSES].named;
    const struct json_node *named =
        json_node_path((const struct json_node *)write->object, "spec.runtimeClassName");
    struct slice name;
    *ret_class = NULL;
    if (!named || named->type != JSON_TYPE_STRING)
        return true;
    if (json_node_text(named, write->arena, &name) != ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    name.len = size_min(name.len, SHOWN_MAX);
    if (!object)
        return kube_admission_forbid(write, "pod rejected: RuntimeClass \"%.*s\" not found",
                                     SLICE_ARGS(name));
    *ret_class = object->data;
    return true;
}

/* -- Overhead -- */

static bool same_amount(struct arena *arena, const struct json_node *a, const struct json_node *b)
{
    struct slice one, other;
    struct quantity x, y;
    if (json_node_text(a, arena, &one) != ST_OK || json_node_text(b, arena, &other) != ST_OK)
        return false;
    return quantity_read(one, &x) && quantity_read(other, &y) && x.negative == y.negative &&
           quantity_compare(&x, &y) == 0;
}

static size_t count_of(const struct json_node *amounts)
{
    return amounts && amounts->type == JSON_TYPE_OBJECT ? amounts->count : 0;
}

static bool same_amounts(struct arena *arena, const struct json_node *a, const struct json_node *b)
{
    if (count_of(a) != count_of(b))
        return false;
    for (const struct json_node *n = count_of(a) ? a->first : NULL; n; n = n->next) {
        const struct json_node *other = json_node_member(b, n->key);
        if (!other || !same_amount(arena, n, other))
            return false;
    }
    return true;
}

static bool differs(const struct kube_admission_write *write)
{
    return kube_admission_forbid(
        write, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
}

static bool set_overhead(struct kube_admission_write *write, const struct json_node *class)
{
    const struct json_node *wanted = json_node_path(class, "overhead.podFixed");
    struct json_node *spec = json_node_named(write->object, "spec");
    struct json_node *given = json_node_named(spec, "overhead");
    if (!json_node_named(class, "overhead"))
        return true;
    if (count_of(given) && !same_amounts(write->arena, wanted, given))
        return differs(write);
    if (!wanted) {
        if (given)
            json_node_remove(spec, given);
        return true;
    }
    struct json_node *copy = json_node_copy(write->arena, wanted);
    return (copy && json_node_set(write->arena, spec, SLICE_LITERAL("overhead"), copy) == ST_OK) ||
           kube_fail_engine(write->status, ST_NOMEM);
}

static bool check(struct kube_admission_write *write)
{
    const struct json_node *class, *pod = write->object;
    const struct json_node *given = json_node_path(pod, "spec.overhead");
    if (!find_class(write, &class))
        return false;
    if (class && json_node_named(class, "overhead"))
        return same_amounts(write->arena, json_node_path(class, "overhead.podFixed"), given) ||
               differs(write);
    return !given || given->type == JSON_TYPE_NULL ||
           kube_admission_forbid(write, "pod rejected: Pod Overhead set without corresponding "
                                        "RuntimeClass defined Overhead");
}

/* -- Scheduling -- */

static bool add_selector(struct kube_admission_write *write, struct json_node *selector,
                         const struct json_node *label)
{
    const struct json_node *had = json_node_member((const struct json_node *)selector, label->key);
    struct slice wanted, own, key = label->key;
    if (json_node_text(label, write->arena, &wanted) != ST_OK ||
        json_node_text(had, write->arena, &own) != ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    key.len = size_min(key.len, SHOWN_MAX);
    if (had && !slice_equal(own, wanted))
        return kube_admission_forbid(write,
                                     "conflict: runtimeClass.scheduling.nodeSelector[%.*s] = %.*s; "
                                     "pod.spec.nodeSelector[%.*s] = %.*s",
                                     SLICE_ARGS(key), (int)size_min(wanted.len, SHOWN_MAX),
                                     (const char *)wanted.ptr, SLICE_ARGS(key),
                                     (int)size_min(own.len, SHOWN_MAX), (const char *)own.ptr);
    struct json_node *copy = json_node_copy(write->arena, label);
    return (copy && json_node_set(write->arena, selector, label->key, copy) == ST_OK) ||
           kube_fail_engine(write->status, ST_NOMEM);
}

static bool set_selector(struct kube_admission_write *write, const struct json_node *class,
                         struct json_node *spec)
{
    const struct kube_meta meta = kube_admission_meta(write);
    const struct json_node *wanted = json_node_path(class, "scheduling.nodeSelector");
    struct json_node *selector;
    if (!count_of(wanted))
        return true;
    if (!kube_meta_object(&meta, spec, "nodeSelector", &selector))
        return false;
    for (const struct json_node *label = wanted->first; label; label = label->next)
        if (!add_selector(write, selector, label))
            return false;
    return true;
}

static bool set_tolerations(struct kube_admission_write *write, const struct json_node *class,
                            struct json_node *spec)
{
    const struct kube_meta meta = kube_admission_meta(write);
    const struct json_node *more = json_node_path(class, "scheduling.tolerations");
    struct json_node *list;
    if (!json_node_named(class, "scheduling"))
        return true;
    if ((!more || !more->first) && !json_node_named(spec, "tolerations"))
        return true;
    return kube_meta_array(&meta, spec, "tolerations", &list) &&
           (kube_tolerations_merge(write->arena, list, more) == ST_OK ||
            kube_fail_engine(write->status, ST_NOMEM));
}

static bool admit(struct kube_admission_write *write)
{
    struct json_node *spec = json_node_named(write->object, "spec");
    const struct json_node *class;
    if (!spec || spec->type != JSON_TYPE_OBJECT)
        return true;
    if (!find_class(write, &class))
        return false;
    return !class || (set_overhead(write, class) && set_selector(write, class, spec) &&
                      set_tolerations(write, class, spec));
}

const struct kube_admission_plugin kube_runtime_class = {
    .name = "RuntimeClass",
    .needs = 1u << KUBE_FACT_RUNTIME_CLASSES,
    .rules = {{"", "pods", "", KUBE_ON_CREATE}},
    .admit = admit,
    .check = check,
};
