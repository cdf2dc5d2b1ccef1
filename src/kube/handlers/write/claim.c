#include "kube/handlers/write/claim.h"

/* After a function that has added errors, or has run out of memory. */
static bool fail(struct kube_call *call, const struct kube_field_errors *errors, struct slice name)
{
    if (!errors->count)
        return kube_fail_engine(&call->status, ST_NOMEM);
    return kube_fail_field_errors(&call->status, errors, slice_from_text(call->kind->group),
                                  slice_from_text(call->kind->kind), name);
}

static bool concerns(const struct kube_call *call)
{
    return call->api->config->services && kube_claims_concern(call->kind) &&
           !call->path.subresource.len;
}

bool kube_claim(struct kube_call *call, const struct kube_meta *meta, struct json_node *object,
                const struct json_node *old, struct kube_claims **ret_claims)
{
    struct kube_field_errors errors = {.arena = &call->arena};
    struct slice name;
    *ret_claims = NULL;
    if (!concerns(call))
        return true;
    struct kube_claims *claims = arena_calloc(meta->arena, 1, sizeof(*claims));
    if (!claims ||
        json_node_text(json_node_path(object, "metadata.name"), &call->arena, &name) != ST_OK)
        return kube_fail_engine(&call->status, ST_NOMEM);
    if (!kube_claims_make(claims, call->api->config->services, meta, object, old, &errors))
        return fail(call, &errors, name);
    *ret_claims = claims;
    return true;
}

bool kube_claim_write(struct kube_call *call, struct kube_claims *claims, struct slice namespace,
                      struct slice name)
{
    return !claims ||
           kube_claims_companions(claims, namespace, name, &call->write.companions) == ST_OK ||
           kube_fail_engine(&call->status, ST_NOMEM);
}

bool kube_claim_delete(struct kube_call *call, struct arena *arena, struct slice stored)
{
    struct json_node *object;
    struct error error;
    if (!concerns(call))
        return true;
    struct kube_claims *claims = arena_calloc(arena, 1, sizeof(*claims));
    enum status status = claims ? json_tree_read(arena, stored, &object, &error) : ST_NOMEM;
    if (status == ST_NOMEM)
        return kube_fail_engine(&call->status, ST_NOMEM);
    if (status != ST_OK) /* what cannot be read has nothing */
        return true;
    kube_claims_release(claims, arena, object);
    return kube_claim_write(call, claims, SLICE_EMPTY, SLICE_EMPTY);
}

bool kube_claim_next(struct kube_call *call, struct kube_claims *claims, struct kube_claim *claim,
                     struct slice name)
{
    struct kube_field_errors errors = {.arena = &call->arena};
    return kube_claims_next(claims, claim, &errors) || fail(call, &errors, name);
}
