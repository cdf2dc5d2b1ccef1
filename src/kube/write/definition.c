#include "kube/write/definition.h"

#include "kube/call/call.h"
#include "kube/custom/definition_check.h"
#include "kube/custom/definition_rules.h"
#include "kube/write/body.h"

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
    if (warning.len)
        kube_body_warn(call, buf_slice(&warning));
    return true;
}

/* Validates the specification and sets the status that follows from it. */
static bool accept(struct kube_call *call, const struct kube_meta *meta, struct json_node *object,
                   const struct json_node *stored, struct slice name)
{
    struct json_node *status;
    return kube_meta_object(meta, object, "status", &status) &&
           kube_definition_add_stored_version(meta, object, status) &&
           check(call, object, stored, name) &&
           kube_definition_accept_names(meta, object, kube_call_kinds(call));
}

bool kube_definition_create(struct kube_call *call, const struct kube_meta *meta,
                            struct json_node *object, struct slice name)
{
    return !kube_is_definitions(call->kind) ||
           (kube_definition_set_defaults(meta, object) && accept(call, meta, object, NULL, name));
}

bool kube_definition_default(struct kube_call *call, const struct kube_meta *meta,
                             struct json_node *object)
{
    return !kube_is_definitions(call->kind) || call->path.subresource.len ||
           kube_definition_set_defaults(meta, object);
}

bool kube_definition_update(struct kube_call *call, const struct kube_meta *meta,
                            struct json_node *object, const struct json_node *stored)
{
    return !kube_is_definitions(call->kind) || call->path.subresource.len ||
           accept(call, meta, object, stored, meta->name);
}
