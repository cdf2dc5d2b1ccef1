#include "kube/handlers/write/builtin_rules.h"

#include "kube/call/call.h"
#include "kube/types/validate/validate.h"

bool kube_builtin_validates(const struct kube_call *call)
{
    struct slice sub = call->path.subresource;
    bool of_extensions = strcmp(call->kind->group, "apiextensions.k8s.io") == 0;
    return !(call->kind->flags & KUBE_CUSTOM) && !of_extensions &&
           (!sub.len || slice_equal(sub, SLICE_LITERAL("status")) ||
            slice_equal(sub, SLICE_LITERAL("approval")));
}

static enum kube_validated part_of(struct slice subresource)
{
    if (slice_equal(subresource, SLICE_LITERAL("approval")))
        return KUBE_VALIDATE_APPROVAL;
    return subresource.len ? KUBE_VALIDATE_STATUS : KUBE_VALIDATE_OBJECT;
}

bool kube_builtin_validate(struct kube_call *call, struct arena *arena,
                           const struct json_node *object, const struct json_node *old,
                           struct slice name)
{
    struct kube_field_errors errors = {.arena = &call->arena};
    /* Events of both groups are of one kind, which Kubernetes names without a group. */
    bool event = strcmp(call->kind->kind, "Event") == 0;
    if (!kube_builtin_validates(call))
        return true;
    bool fine = kube_validate(arena, call->kind, object, old, part_of(call->path.subresource),
                              call->api->config->unprivileged, &errors);
    return (fine && !call->status.cause_count) ||
           kube_fail_field_errors(&call->status, &errors,
                                  slice_from_text(event ? "" : call->kind->group),
                                  slice_from_text(call->kind->kind), name);
}
