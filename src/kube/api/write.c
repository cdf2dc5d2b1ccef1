#include "kube/api/write.h"

static bool has_subresource(const struct kube_call *call, const char *name, unsigned flag)
{
    return slice_equal(call->path.subresource, slice_from_text(name)) && call->kind->flags & flag;
}

bool kube_is_status(const struct kube_call *call)
{
    return has_subresource(call, "status", KUBE_HAS_STATUS);
}

bool kube_is_scale(const struct kube_call *call)
{
    return has_subresource(call, "scale", KUBE_HAS_SCALE);
}

bool kube_is_namespaces(const struct kube_kind *kind)
{
    return !kind->group[0] && strcmp(kind->plural, "namespaces") == 0;
}

bool kube_is_finalize(const struct kube_call *call)
{
    return kube_is_namespaces(call->kind) &&
           slice_equal(call->path.subresource, SLICE_LITERAL("finalize"));
}

static void not_found(struct kube_call *call)
{
    kube_fail(&call->status, KUBE_NOT_FOUND, "the server could not find the requested resource");
    kube_call_fail(call);
}

static void not_allowed(struct kube_call *call)
{
    kube_fail(&call->status, KUBE_METHOD_NOT_ALLOWED,
              "the server does not allow this method on the requested resource");
    kube_call_fail(call);
}

typedef void handler(struct kube_call *call, const struct http_request *request);

/* NULL: the method is not for this path. */
static handler *handler_of(const struct kube_call *call, struct slice method)
{
    bool named = call->path.name.len, sub = call->path.subresource.len;
    if (call->kind->flags & KUBE_CREATE_ONLY)
        return slice_equal(method, SLICE_LITERAL("POST")) && !named ? kube_review : NULL;
    if (slice_equal(method, SLICE_LITERAL("POST")))
        return named ? NULL : kube_create;
    if (slice_equal(method, SLICE_LITERAL("PUT")))
        return named ? kube_update : NULL;
    if (slice_equal(method, SLICE_LITERAL("PATCH")))
        return named ? kube_patch : NULL;
    if (sub)
        return NULL;
    return named ? kube_delete : kube_delete_collection;
}

bool kube_mutate(struct kube_call *call, const struct http_request *request)
{
    static const char *const methods[] = {"POST", "PUT", "PATCH", "DELETE"};
    bool known = false;
    for (size_t i = 0; i < COUNT_OF(methods); i++)
        known = known || slice_equal(request->method, slice_from_text(methods[i]));
    if (!known)
        return false;
    handler *handle = handler_of(call, request->method);
    if (call->path.subresource.len && !kube_is_status(call) && !kube_is_scale(call) &&
        !kube_is_finalize(call))
        not_found(call);
    else if (!handle || call->path.watch)
        not_allowed(call);
    else
        handle(call, request);
    return true;
}
