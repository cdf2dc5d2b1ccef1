/*
 * Checks of writes to the status of resource claims, as in Kubernetes: only a scheduler binds
 * claims (resourceclaims/binding, for all claims), and only the driver of a device reports its
 * state (resourceclaims/driver with the driver's name; a service account that is bound to the node
 * of the devices needs a weaker verb).
 */
#include "base/slices.h"
#include "kube/policy/access/guard.h"
#include "kube/types/field_errors.h"

#include <stdio.h>
#include <stdlib.h>

#define NODE_NAME_EXTRA SLICE_LITERAL("authentication.kubernetes.io/node-name")

enum { VERB_BYTES = 64, DEVICES_MAX = 32 /* as in Kubernetes */ };

static bool changes(const struct kube_guard_check *c, const char *path)
{
    return !kube_guard_is_same(json_node_path(c->object, path), json_node_path(c->old, path));
}

/* Kubernetes' text for a missing permission, in the arena of the write. */
static struct slice refusal(struct kube_guard_check *c, const struct kube_attributes *attributes,
                            const char *reason)
{
    struct kube_status status = {0};
    (void)kube_fail_attributes(c->write->arena, &status, c->write->user, attributes, reason);
    return status.long_message;
}

static struct kube_attributes attributes_of(const struct kube_guard_check *c, const char *verb,
                                            const char *subresource)
{
    return (struct kube_attributes){
        .of_resource = true,
        .verb = slice_from_text(verb),
        .group = SLICE_LITERAL("resource.k8s.io"),
        .resource = SLICE_LITERAL("resourceclaims"),
        .subresource = slice_from_text(subresource),
        .namespace = c->write->namespace,
    };
}

static void check_binding(struct kube_guard_check *c, const char *verb,
                          struct kube_field_errors *errors)
{
    char reason[KUBE_RBAC_REASON_BYTES];
    struct kube_attributes attributes = attributes_of(c, verb, "binding");
    attributes.namespace = SLICE_EMPTY;
    if ((changes(c, "status.allocation") || changes(c, "status.reservedFor")) &&
        !kube_guard_may(c, &attributes, reason))
        kube_field_errors_add(
            errors, "FieldValueForbidden", SLICE_LITERAL("status.allocation"),
            "Forbidden: changing status.allocation or status.reservedFor requires "
            "resource=\"resourceclaims/binding\", verb=\"%s\" permission: %.*s",
            verb, SLICE_ARGS(refusal(c, &attributes, reason)));
}

/* -- Devices -- */

/* The only node on which the allocated devices are; empty: it is not one node. */
static struct slice allocated_node(struct kube_guard_check *c)
{
    const struct json_node *terms =
        json_node_path(c->object, "status.allocation.nodeSelector.nodeSelectorTerms");
    const struct json_node *term = terms && terms->count == 1 ? terms->first : NULL;
    const struct json_node *fields = json_node_named(term, "matchFields");
    const struct json_node *field = fields && fields->count == 1 ? fields->first : NULL;
    const struct json_node *values = json_node_named(field, "values");
    struct slice node = SLICE_EMPTY;
    if (!kube_guard_is_set(json_node_named(term, "matchExpressions")) && values &&
        values->count == 1 && slice_is(kube_guard_text(c, field, "key"), "metadata.name") &&
        slice_is(kube_guard_text(c, field, "operator"), "In"))
        (void)!json_node_text(values->first, &c->arena, &node);
    return node;
}

/* The user is a service account of a pod on that node. */
static bool is_on_node(const struct kube_user_info *user, struct slice node)
{
    struct slice namespace, name;
    if (!node.len || !kube_user_split_account(user->name, &namespace, &name))
        return false;
    for (size_t i = 0; i < user->extra_count; i++) {
        if (slice_equal(user->extra[i].key, NODE_NAME_EXTRA))
            return user->extra[i].values.count == 1 &&
                   slice_equal(user->extra[i].values.items[0], node);
    }
    return false;
}

static bool is_same_device(struct kube_guard_check *c, const struct json_node *a,
                           const struct json_node *b)
{
    static const char *const names[] = {"driver", "pool", "device", "shareID"};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (!slice_equal(kube_guard_text(c, a, names[i]), kube_guard_text(c, b, names[i])))
            return false;
    return true;
}

/* Whether one list has a device that the other has not, or not like this. */
static bool differs(struct kube_guard_check *c, const struct json_node *device,
                    const struct json_node *others)
{
    for (const struct json_node *at = others ? others->first : NULL; at; at = at->next)
        if (is_same_device(c, device, at))
            return !json_node_equal(device, at);
    return true;
}

static void add_driver(struct kube_text_list *drivers, struct slice driver)
{
    struct kube_texts known = kube_text_taken(drivers);
    if (!kube_texts_have(&known, driver))
        kube_text_add(drivers, driver);
}

static void add_changed(struct kube_guard_check *c, const struct json_node *devices,
                        const struct json_node *others, struct kube_text_list *drivers)
{
    for (const struct json_node *at = devices ? devices->first : NULL; at; at = at->next)
        if (differs(c, at, others))
            add_driver(drivers, kube_guard_text(c, at, "driver"));
}

static void check_drivers(struct kube_guard_check *c, const char *verb,
                          struct kube_field_errors *errors)
{
    const struct json_node *now = json_node_path(c->object, "status.devices");
    const struct json_node *before = json_node_path(c->old, "status.devices");
    struct kube_text_list drivers = {.arena = &c->arena};
    char verbs[2][VERB_BYTES], reason[KUBE_RBAC_REASON_BYTES];
    /* Devices are compared in pairs. */
    size_t count = size_max(now ? now->count : 0, before ? before->count : 0);
    if (count > DEVICES_MAX) {
        kube_field_errors_add(errors, "FieldValueTooMany", SLICE_LITERAL("status.devices"),
                              "Too many: %zu: must have at most %d items", count, DEVICES_MAX);
        return;
    }
    add_changed(c, now, before, &drivers);
    add_changed(c, before, now, &drivers);
    slices_sort(drivers.items, drivers.count);
    bool local = is_on_node(c->write->user, allocated_node(c));
    snprintf(verbs[0], VERB_BYTES, "associated-node:%s", verb);
    snprintf(verbs[1], VERB_BYTES, "arbitrary-node:%s", verb);
    for (size_t i = 0; i < drivers.count; i++) {
        struct slice first = SLICE_EMPTY;
        bool allowed = false;
        for (size_t v = local ? 0 : 1; v < 2 && !allowed; v++) {
            struct kube_attributes attributes = attributes_of(c, verbs[v], "driver");
            attributes.name = drivers.items[i];
            allowed = kube_guard_may(c, &attributes, reason);
            if (!allowed && !first.len)
                first = refusal(c, &attributes, reason);
        }
        if (!allowed)
            kube_field_errors_add(
                errors, "FieldValueForbidden", SLICE_LITERAL("status.devices"),
                "Forbidden: changing status.devices requires resource=\"resourceclaims/driver\", "
                "verb=\"[%s%s%s]\" permission: %.*s",
                local ? verbs[0] : "", local ? " " : "", verbs[1], SLICE_ARGS(first));
    }
}

bool kube_device_check(struct kube_guard_check *c)
{
    struct kube_field_errors errors = {.arena = c->write->arena};
    struct slice name;
    char verb[VERB_BYTES / 2];
    snprintf(verb, sizeof(verb), "%.*s", SLICE_ARGS(c->write->verb));
    check_binding(c, verb, &errors);
    /* Reports of a claim that is released are dropped. */
    if (kube_guard_is_set(json_node_path(c->object, "status.allocation")))
        check_drivers(c, verb, &errors);
    if (!errors.count && !errors.no_memory)
        return true;
    if (errors.no_memory || arena_dup(c->write->arena, c->name, &name) != ST_OK)
        return kube_fail_engine(c->write->status, ST_NOMEM);
    return kube_fail_field_errors(c->write->status, &errors, slice_from_text(c->write->kind->group),
                                  slice_from_text(c->write->kind->kind), name);
}
