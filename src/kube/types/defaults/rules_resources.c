/*
 * Resources of a whole pod. They are only completed if the client gives some of them:
 *
 *     limits of huge pages   what the containers may use together, unless they are requested
 *     requests               what the containers request together, else the limit
 *
 * Init containers run one after the other, those that are restarted always beside all that follow.
 */
#include "kube/types/defaults/quantity.h"
#include "kube/types/defaults/rules.h"

#define HUGE_PAGES "hugepages-"

/* What containers need of one resource. */
struct need {
    struct quantity total;
    bool found;
};

/* False: it is not a quantity that can be added. */
static bool read_need(const struct json_node *container, const char *list, struct slice name,
                      struct need *ret_need)
{
    const struct json_node *resources = json_node_named(container, "resources");
    const struct json_node *value = json_node_member(json_node_named(resources, list), name);
    *ret_need = (struct need){.found = value};
    if (!value)
        return true;
    return value->type == JSON_TYPE_STRING && !value->escaped &&
           quantity_read(value->text, &ret_need->total);
}

static bool add(struct need *to, const struct need *more)
{
    to->found |= more->found;
    return quantity_add(&to->total, &more->total);
}

static void raise_to(struct need *to, const struct need *least)
{
    to->found |= least->found;
    if (quantity_compare(&least->total, &to->total) > 0)
        to->total = least->total;
}

static bool add_init(const struct json_node *spec, const char *list, struct slice name,
                     struct need *total)
{
    struct need beside = {0}, most = {0}, own;
    const struct json_node *container = json_node_items_at(spec, "initContainers");
    for (; container; container = container->next) {
        if (!read_need(container, list, name, &own))
            return false;
        if (default_is(container, "restartPolicy", "Always")) {
            if (!add(total, &own) || !add(&beside, &own))
                return false;
            own = beside;
        } else if (!add(&own, &beside)) {
            return false;
        }
        raise_to(&most, &own);
    }
    raise_to(total, &most);
    return true;
}

/* False: a value is too large, or of a wrong type. */
static bool sum(const struct json_node *spec, const char *list, struct slice name,
                struct need *ret_total)
{
    struct need total = {0}, own;
    const struct json_node *container = json_node_items_at(spec, "containers");
    for (; container; container = container->next) {
        if (!read_need(container, list, name, &own) || !add(&total, &own))
            return false;
    }
    *ret_total = total;
    return add_init(spec, list, name, ret_total);
}

static enum status set_sum(struct arena *arena, const struct json_node *spec, const char *list,
                           struct slice name, struct json_node *to)
{
    struct need total;
    char text[QUANTITY_BYTES];
    if (json_node_member(to, name) || !sum(spec, list, name, &total) || !total.found)
        return ST_OK;
    struct json_node *value = json_node_new_text(arena, quantity_write(&total.total, text));
    return value ? json_node_set(arena, to, name, value) : ST_NOMEM;
}

/* Sets them for the containers in one list. */
static enum status set_pages(struct arena *arena, const struct json_node *spec, const char *key,
                             const struct json_node *requests, struct json_node *limits)
{
    const struct json_node *container = json_node_items_at(spec, key);
    for (; container; container = container->next) {
        const struct json_node *own =
            json_node_named(json_node_named(container, "resources"), "limits");
        const struct json_node *limit = own && own->type == JSON_TYPE_OBJECT ? own->first : NULL;
        for (; limit; limit = limit->next) {
            if (slice_has_prefix(limit->key, SLICE_LITERAL(HUGE_PAGES)) &&
                !json_node_member(requests, limit->key))
                TRY(set_sum(arena, spec, "limits", limit->key, limits));
        }
    }
    return ST_OK;
}

static enum status set_requests(struct arena *arena, const struct json_node *spec,
                                const struct json_node *limits, struct json_node *requests)
{
    TRY(set_sum(arena, spec, "requests", SLICE_LITERAL("cpu"), requests));
    TRY(set_sum(arena, spec, "requests", SLICE_LITERAL("memory"), requests));
    for (const struct json_node *limit = limits->first; limit; limit = limit->next) {
        if ((!slice_is(limit->key, "cpu") && !slice_is(limit->key, "memory") &&
             !slice_has_prefix(limit->key, SLICE_LITERAL(HUGE_PAGES))) ||
            json_node_member(requests, limit->key))
            continue;
        struct json_node *copy = json_node_copy(arena, limit);
        if (!copy)
            return ST_NOMEM;
        TRY(json_node_set(arena, requests, limit->key, copy));
    }
    return ST_OK;
}

static void drop_empty(struct json_node *object, const char *key)
{
    struct json_node *member = json_node_named(object, key);
    if (member && member->type == JSON_TYPE_OBJECT && !member->first)
        json_node_remove(object, member);
}

enum status default_pod_resources(struct arena *arena, struct json_node *spec)
{
    struct json_node *resources = json_node_named(spec, "resources"), *limits, *requests;
    if (!resources || resources->type != JSON_TYPE_OBJECT ||
        (default_lacks(resources, "limits") && default_lacks(resources, "requests")))
        return ST_OK;
    TRY(default_set_object(arena, resources, "limits", &limits));
    TRY(default_set_object(arena, resources, "requests", &requests));
    if (!limits || !requests)
        return ST_OK;
    TRY(set_pages(arena, spec, "containers", requests, limits));
    TRY(set_pages(arena, spec, "initContainers", requests, limits));
    if (limits->first)
        TRY(set_requests(arena, spec, limits, requests));
    drop_empty(resources, "limits");
    drop_empty(resources, "requests");
    return ST_OK;
}
