#include "kube/types/object/qos.h"

#include "kube/types/defaults/quantity.h"

/* CPU and memory together. */
enum { RESOURCES = 2 };
static const char *const resource_names[RESOURCES] = {"cpu", "memory"};

struct usage {
    struct quantity requests[RESOURCES], limits[RESOURCES];
    bool all_limited; /* each container has both limits */
    bool unclear;     /* a value is too large to be added */
};

/* Whether the list has a positive amount of the resource, which is added to the total. */
static bool take(struct usage *usage, const struct json_node *list, size_t which,
                 struct quantity *total)
{
    const struct json_node *value = json_node_named(list, resource_names[which]);
    struct quantity amount;
    if (!value || value->type != JSON_TYPE_STRING || value->escaped)
        return false;
    if (!quantity_read(value->text, &amount)) {
        usage->unclear = true;
        return true;
    }
    if (!amount.amount || amount.negative)
        return false;
    if (!quantity_add(total, &amount))
        usage->unclear = true;
    return true;
}

static void add_resources(struct usage *usage, const struct json_node *resources, bool must_limit)
{
    const struct json_node *limits = json_node_named(resources, "limits");
    for (size_t i = 0; i < RESOURCES; i++) {
        take(usage, json_node_named(resources, "requests"), i, &usage->requests[i]);
        if (!take(usage, limits, i, &usage->limits[i]) && must_limit)
            usage->all_limited = false;
    }
}

static void add_containers(struct usage *usage, const struct json_node *list)
{
    const struct json_node *container = json_node_items(list);
    for (; container; container = container->next)
        add_resources(usage, json_node_named(container, "resources"), true);
}

/* Resources of the pod as a whole replace those of its containers. */
static void add_pod(struct usage *usage, const struct json_node *spec)
{
    const struct json_node *whole = json_node_named(spec, "resources");
    if (whole && whole->type == JSON_TYPE_OBJECT) {
        add_resources(usage, whole, json_node_named(whole, "limits"));
        return;
    }
    add_containers(usage, json_node_named(spec, "containers"));
    add_containers(usage, json_node_named(spec, "initContainers"));
}

const char *kube_qos_class(const struct json_node *pod)
{
    struct usage usage = {.all_limited = true};
    bool any = false, equal = true;
    add_pod(&usage, json_node_named(pod, "spec"));
    for (size_t i = 0; i < RESOURCES; i++) {
        any |= usage.requests[i].amount || usage.limits[i].amount;
        equal &= quantity_compare(&usage.requests[i], &usage.limits[i]) == 0;
    }
    if (usage.unclear)
        return "Burstable";
    if (!any)
        return "BestEffort";
    return usage.all_limited && equal ? "Guaranteed" : "Burstable";
}
