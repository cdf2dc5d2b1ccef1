#include "kube/handlers/write/subresource.h"

#include "kube/call/call.h"
#include "kube/call/respond.h"
#include "kube/policy/access/account_token.h"

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

bool kube_is_post_subresource(const struct kube_call *call)
{
    return !call->kind->group[0] && strcmp(call->kind->plural, "pods") == 0 &&
           (slice_equal(call->path.subresource, SLICE_LITERAL("binding")) ||
            slice_equal(call->path.subresource, SLICE_LITERAL("eviction")));
}

/* Clients that ask for a token get an explanation instead of a plain 404. */
static bool is_token_request(const struct kube_call *call)
{
    return !call->kind->group[0] && strcmp(call->kind->plural, "serviceaccounts") == 0 &&
           slice_equal(call->path.subresource, SLICE_LITERAL("token"));
}

bool kube_is_token(const struct kube_call *call)
{
    return is_token_request(call) && kube_account_can_sign(call->api->config->accounts);
}

void kube_not_allowed(struct kube_call *call)
{
    kube_fail_not_allowed(&call->status);
    kube_call_fail(call);
}

void kube_no_subresource(struct kube_call *call)
{
    if (kube_is_post_subresource(call) || kube_is_finalize(call) || kube_is_token(call)) {
        kube_not_allowed(call);
        return;
    }
    if (call->kind->flags & KUBE_CUSTOM) {
        kube_call_not_found(call);
        kube_call_fail(call);
        return;
    }
    if (is_token_request(call))
        kube_fail_bare(&call->status, KUBE_METHOD_NOT_ALLOWED,
                       "this server issues no tokens of service accounts without "
                       "--kube-service-account-signing-key-file");
    else
        kube_fail_bare(&call->status, KUBE_NOT_FOUND,
                       "the server could not find the requested resource");
    kube_call_fail(call);
}
