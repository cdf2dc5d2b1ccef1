#include "kube/handlers/write/definition.h"

#include "kube/call/call_offload.h"
#include "kube/custom/definition_check.h"
#include "kube/custom/definition_rules.h"
#include "kube/handlers/write/body.h"

#include <stdio.h>

/* Memory for the validation of one definition; a compiled schema is no larger. */
enum { CHECK_BYTES_MAX = SCHEMA_BYTES_MAX };

static bool check(struct kube_call *call, const struct json_node *object,
                  const struct json_node *old, struct slice name)
{
    struct arena arena;
    AUTO(buf_fini) struct buf warning = {0};
    struct kube_field_errors faults = {.arena = &call->arena};
    arena_init(&arena, NULL, 0, CHECK_BYTES_MAX);
    kube_definition_validate(&arena, object, old, &faults, &warning);
    arena_fini(&arena);
    if (faults.count || faults.no_memory)
        return kube_fail_field_errors(&call->status, &faults, slice_from_text(call->kind->group),
                                      slice_from_text(call->kind->kind), name);
    for (struct slice lines = buf_slice(&warning); lines.len;)
        kube_call_warn(call, slice_cut(&lines, '\n'));
    return true;
}

/* A definition that could not be served is refused; it would take the place of one that comes after
 * it by name. */
static bool has_room(struct kube_call *call, const struct json_node *object,
                     const struct json_node *stored, struct slice name)
{
    const struct json_node *versions = json_node_path(object, "spec.versions");
    const struct json_node *before = json_node_path(stored, "spec.versions");
    struct slice group = slice_from_text(call->kind->group);
    struct slice plural = slice_from_text(call->kind->plural);
    size_t count, others = 0, kinds = versions ? versions->count : 0;
    if (before && kinds <= before->count)
        return true;
    struct kube_definition *const *known = kube_kinds_definitions(kube_call_kinds(call), &count);
    for (size_t i = 0; i < count; i++) {
        if (slice_equal(known[i]->name, name))
            continue;
        others++;
        kinds += known[i]->version_count;
    }
    if (others >= KUBE_DEFINITIONS_MAX || kinds > KUBE_KINDS_MAX) {
        char why[160];
        snprintf(
            why, sizeof(why),
            "at most %d definitions of custom resources with %d versions can be served; delete "
            "some of them first",
            KUBE_DEFINITIONS_MAX, KUBE_KINDS_MAX);
        return kube_fail_forbidden(&call->status, group, plural, name, why);
    }
    return true;
}

static bool has_rules(const struct json_node *node)
{
    const struct json_node *rules = json_node_named(node, "x-kubernetes-validations");
    if (rules && rules->type == JSON_TYPE_ARRAY)
        return true;
    for (const struct json_node *child = node->first; child; child = child->next)
        if ((child->type == JSON_TYPE_OBJECT || child->type == JSON_TYPE_ARRAY) && has_rules(child))
            return true;
    return false;
}

enum kube_stepped kube_definition_update(struct kube_change *change)
{
    struct kube_call *call = change->call;
    /* Compiling rules, and evaluating them for defaults, takes too long for this thread. */
    if (kube_call_can_leave(call) && has_rules(change->object))
        return KUBE_STEP_LONG;
    const struct kube_meta *meta = &change->meta;
    struct json_node *object = change->object, *status;
    return kube_meta_object(meta, object, "status", &status) &&
           kube_definition_add_stored_version(meta, object, status) &&
           check(call, object, change->old, change->name) &&
           has_room(call, object, change->old, change->name) &&
           kube_definition_accept_names(meta, object, kube_call_kinds(call));
}

enum kube_stepped kube_definition_default(struct kube_change *change)
{
    return kube_definition_set_defaults(&change->meta, change->object);
}

enum kube_stepped kube_definition_create(struct kube_change *change)
{
    return kube_definition_default(change) ? kube_definition_update(change) : KUBE_STEP_FAIL;
}
