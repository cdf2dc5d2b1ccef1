#include "kube/policy/admission/amounts/pod_amounts.h"

#include "kube/types/validate/quantity.h"

#include <stdlib.h>

/* A container with what the kubelet has reported of it. */
struct reported {
    struct slice name;
    const struct json_node *status;
};

struct sums {
    const char *path;         /* path of the list in a container and in its status */
    const char *allocated;    /* another list in its status; NULL: none */
    bool infeasible;          /* what the spec wants is not available, so the status decides */
    struct reported *reports; /* ordered by name; NULL: only the spec counts */
    size_t report_count;
    struct kube_amounts *total;
    struct kube_amounts one;      /* amounts of a container; nothing is known in between */
    struct kube_amounts sidecars; /* so far */
    struct kube_amounts init;     /* the most that is needed before the containers run */
};

/* -- Containers that are being resized -- */

static int by_name(const void *a, const void *b)
{
    const struct reported *one = a, *other = b;
    return slice_compare(one->name, other->name);
}

static void take_reports(struct sums *sums, const struct json_node *statuses)
{
    for (const struct json_node *item = rule_first(statuses); item; item = item->next) {
        const struct json_node *name = json_node_named(item, "name");
        /* One that says nothing of resources does not count. */
        if (name && json_node_named(item, "resources"))
            sums->reports[sums->report_count++] =
                (struct reported){.name = name->text, .status = item};
    }
}

static enum status find_reports(struct sums *sums, const struct json_node *status,
                                struct arena *arena)
{
    const struct json_node *containers = json_node_named(status, "containerStatuses");
    const struct json_node *init = json_node_named(status, "initContainerStatuses");
    const struct json_node *condition = rule_first(json_node_named(status, "conditions"));
    size_t most = rule_count(containers) + rule_count(init);
    if (!most)
        return ST_OK;
    sums->reports = arena_calloc(arena, most, sizeof(*sums->reports));
    if (!sums->reports)
        return ST_NOMEM;
    take_reports(sums, containers);
    take_reports(sums, init);
    qsort(sums->reports, sums->report_count, sizeof(*sums->reports), by_name);
    while (condition && !json_node_text_is(condition, "type", "PodResizePending"))
        condition = condition->next;
    sums->infeasible = condition && json_node_text_is(condition, "reason", "Infeasible");
    return ST_OK;
}

/* NULL: nothing is reported. */
static const struct json_node *report_of(const struct sums *sums, const struct json_node *container)
{
    const struct json_node *name = json_node_named(container, "name");
    const struct reported wanted = {.name = name ? name->text : SLICE_EMPTY};
    const struct reported *found = NULL;
    if (sums->report_count)
        found = bsearch(&wanted, sums->reports, sums->report_count, sizeof(wanted), by_name);
    return found ? found->status : NULL;
}

/* The lists of which the most counts. A NULL list is empty. */
struct lists {
    const struct json_node *of[3];
};

static struct lists lists_of(const struct sums *sums, const struct json_node *container,
                             bool can_be_resized)
{
    const struct json_node *report = can_be_resized ? report_of(sums, container) : NULL;
    struct lists lists = {{json_node_path(container, sums->path)}};
    if (!report)
        return lists;
    if (sums->infeasible)
        lists.of[0] = NULL;
    lists.of[1] = json_node_path(report, sums->path);
    lists.of[2] = sums->allocated ? json_node_named(report, sums->allocated) : NULL;
    return lists;
}

static void raise_one(struct sums *sums, const struct lists *lists)
{
    for (size_t i = 0; i < COUNT_OF(lists->of); i++) {
        for (const struct json_node *item = rule_first(lists->of[i]); item; item = item->next) {
            struct kube_amount *amount = kube_amounts_find(&sums->one, item->key);
            struct quantity value = kube_amount_read(item);
            if (amount)
                kube_amount_raise(amount, &value);
        }
    }
}

/* -- Sums -- */

static void add_to_total(struct sums *sums, size_t at, const struct quantity *value, bool always)
{
    (void)always;
    kube_amount_add(&sums->total->items[at], value);
}

/* Calls `add` for each amount of the container, in the place that it has in all sums. The time is
 * in proportion to the lists, however many places there are. */
static void add_container(struct sums *sums, const struct lists *lists, bool always,
                          void (*add)(struct sums *sums, size_t at, const struct quantity *value,
                                      bool always))
{
    raise_one(sums, lists);
    for (size_t i = 0; i < COUNT_OF(lists->of); i++) {
        for (const struct json_node *item = rule_first(lists->of[i]); item; item = item->next) {
            struct kube_amount *amount = kube_amounts_find(&sums->one, item->key);
            if (!amount || !amount->known)
                continue;
            amount->known = false;
            add(sums, (size_t)(amount - sums->one.items), &amount->value, always);
        }
    }
}

/* Resources that a container does not name need no more than the sidecars before it, which have
 * been counted. */
static void add_to_init(struct sums *sums, size_t at, const struct quantity *value, bool always)
{
    struct kube_amount *sidecars = &sums->sidecars.items[at];
    /* What is needed while an init container runs. The first of both decides how the sum is
     * written. */
    struct kube_amount running = always ? *sidecars : (struct kube_amount){0};
    kube_amount_add(&running, value);
    if (!always && sidecars->known)
        kube_amount_add(&running, &sidecars->value);
    kube_amount_raise(&sums->init.items[at], &running.value);
    if (!always)
        return;
    kube_amount_add(&sums->total->items[at], value);
    sidecars->known = true;
    sidecars->value = running.value;
}

static void add_containers(struct sums *sums, const struct json_node *spec)
{
    const struct json_node *item = rule_first(json_node_named(spec, "containers"));
    for (; item; item = item->next) {
        struct lists lists = lists_of(sums, item, true);
        add_container(sums, &lists, false, add_to_total);
    }
    item = rule_first(json_node_named(spec, "initContainers"));
    for (; item; item = item->next) {
        bool always = json_node_text_is(item, "restartPolicy", "Always");
        struct lists lists = lists_of(sums, item, always);
        add_container(sums, &lists, always, add_to_init);
    }
    for (size_t i = 0; i < sums->total->count; i++) {
        if (sums->init.items[i].known)
            kube_amount_raise(&sums->total->items[i], &sums->init.items[i].value);
    }
}

static bool is_own(struct slice name, bool huge_pages)
{
    return slice_is(name, "cpu") || slice_is(name, "memory") ||
           (huge_pages && resource_is_huge_page(name));
}

/* Overhead does not make a limit where there is none. */
static void add_overhead(struct kube_amounts *amounts, const struct json_node *overhead,
                         bool to_limits)
{
    for (const struct json_node *item = rule_first(overhead); item; item = item->next) {
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
                        .allocated = limits ? NULL : "allocatedResources",
                        .total = amounts};
    if (!amounts->count)
        return ST_OK;
    if (whole)
        TRY(find_reports(&sums, json_node_named(pod, "status"), arena));
    TRY(kube_amounts_same(&sums.one, arena, amounts));
    TRY(kube_amounts_same(&sums.sidecars, arena, amounts));
    TRY(kube_amounts_same(&sums.init, arena, amounts));
    add_containers(&sums, spec);
    for (const struct json_node *item = rule_first(json_node_path(spec, sums.path)); item;
         item = item->next) {
        struct kube_amount *amount = kube_amounts_find(amounts, item->key);
        if (amount && is_own(item->key, whole)) {
            amount->known = true;
            amount->value = kube_amount_read(item);
        }
    }
    if (whole)
        add_overhead(amounts, json_node_named(spec, "overhead"), limits);
    return ST_OK;
}

static bool has_own(const struct json_node *list)
{
    for (const struct json_node *item = rule_first(list); item; item = item->next) {
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
