#include "kube/admission/pod_amounts.h"

#include "kube/validate/quantity.h"

struct sums {
    const char *path; /* of the list in a container */
    struct kube_amounts *total;
    struct kube_amounts sidecars; /* so far */
    struct kube_amounts init;     /* the most that is needed before the containers run */
};

static void add_list(struct kube_amounts *to, const struct json_node *list)
{
    for (const struct json_node *item = first_in(list); item; item = item->next) {
        struct kube_amount *amount = kube_amounts_find(to, item->key);
        struct quantity value = kube_amount_read(item);
        if (amount)
            kube_amount_add(amount, &value);
    }
}

/* What is needed while an init container runs. The first of both decides how the sum is written. */
static struct kube_amount while_running(const struct kube_amount *sidecars,
                                        const struct quantity *value, bool always)
{
    struct kube_amount sum = always ? *sidecars : (struct kube_amount){0};
    kube_amount_add(&sum, value);
    if (!always && sidecars->known)
        kube_amount_add(&sum, &sidecars->value);
    return sum;
}

/* Resources that a container does not name need no more than the sidecars before it, which have
 * been counted. */
static void add_init(struct sums *sums, const struct json_node *container)
{
    bool always = json_node_is_text(json_node_named(container, "restartPolicy"), "Always");
    const struct json_node *list = json_node_path(container, sums->path);
    for (const struct json_node *item = first_in(list); item; item = item->next) {
        struct kube_amount *total = kube_amounts_find(sums->total, item->key);
        struct quantity value = kube_amount_read(item);
        if (!total)
            continue;
        size_t at = (size_t)(total - sums->total->items);
        struct kube_amount *sidecars = &sums->sidecars.items[at];
        struct kube_amount running = while_running(sidecars, &value, always);
        kube_amount_raise(&sums->init.items[at], &running.value);
        if (!always)
            continue;
        kube_amount_add(total, &value);
        sidecars->known = true;
        sidecars->value = running.value;
    }
}

static void add_containers(struct sums *sums, const struct json_node *spec)
{
    const struct json_node *containers = json_node_named(spec, "containers");
    const struct json_node *init = json_node_named(spec, "initContainers");
    for (const struct json_node *item = first_in(containers); item; item = item->next)
        add_list(sums->total, json_node_path(item, sums->path));
    for (const struct json_node *item = first_in(init); item; item = item->next)
        add_init(sums, item);
    for (size_t i = 0; i < sums->total->count; i++) {
        if (sums->init.items[i].known)
            kube_amount_raise(&sums->total->items[i], &sums->init.items[i].value);
    }
}

static bool is_own(struct slice name, bool huge_pages)
{
    return slice_equal(name, SLICE_LITERAL("cpu")) || slice_equal(name, SLICE_LITERAL("memory")) ||
           (huge_pages && resource_is_huge_page(name));
}

static void replace(struct kube_amounts *amounts, const struct json_node *list, bool huge_pages)
{
    for (const struct json_node *item = first_in(list); item; item = item->next) {
        struct kube_amount *amount = kube_amounts_find(amounts, item->key);
        if (amount && is_own(item->key, huge_pages)) {
            amount->known = true;
            amount->value = kube_amount_read(item);
        }
    }
}

/* Overhead does not make a limit where there is none. */
static void add_overhead(struct kube_amounts *amounts, const struct json_node *overhead,
                         bool to_limits)
{
    for (const struct json_node *item = first_in(overhead); item; item = item->next) {
        struct kube_amount *amount = kube_amounts_find(amounts, item->key);
        struct quantity value = kube_amount_read(item);
        if (amount && (!to_limits || (amount->known && amount->value.amount)))
            kube_amount_add(amount, &value);
    }
}

enum status kube_pod_amounts(const struct json_node *pod, enum kube_pod_list list,
                             enum kube_pod_extent extent, struct arena *arena,
                             struct kube_amounts *amounts)
{
    const struct json_node *spec = json_node_named(pod, "spec");
    bool limits = list == KUBE_POD_LIMITS, whole = extent == KUBE_POD_WITH_OVERHEAD;
    struct sums sums = {.path = limits ? "resources.limits" : "resources.requests",
                        .total = amounts};
    if (!amounts->count)
        return ST_OK;
    TRY(kube_amounts_same(&sums.sidecars, arena, amounts));
    TRY(kube_amounts_same(&sums.init, arena, amounts));
    add_containers(&sums, spec);
    replace(amounts, json_node_path(spec, sums.path), whole);
    if (whole)
        add_overhead(amounts, json_node_named(spec, "overhead"), limits);
    return ST_OK;
}

static bool has_own(const struct json_node *list)
{
    for (const struct json_node *item = first_in(list); item; item = item->next) {
        if (is_own(item->key, true))
            return true;
    }
    return false;
}

bool kube_pod_has_own_amounts(const struct json_node *pod)
{
    return has_own(json_node_path(pod, "spec.resources.requests")) ||
           has_own(json_node_path(pod, "spec.resources.limits"));
}
