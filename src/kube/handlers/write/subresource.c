#include "kube/handlers/write/subresource.h"

#include "kube/call/call.h"
#include "kube/call/respond.h"
#include "kube/handlers/write/part.h"
#include "kube/policy/access/account_token.h"

/* Clients that ask for a token get an explanation instead of a plain 404. */
static bool is_token_request(const struct kube_call *call)
{
    return kube_kind_is(call->kind, "", "serviceaccounts") &&
           slice_is(call->path.subresource, "token");
}

enum kube_subresource kube_subresource_of(const struct kube_call *call)
{
    const struct kube_kind *kind = call->kind;
    struct slice name = call->path.subresource;
    if (!name.len)
        return KUBE_SUBRESOURCE_NONE;
    if (slice_is(name, "status") && kind->flags & KUBE_HAS_STATUS)
        return KUBE_SUBRESOURCE_STATUS;
    if (slice_is(name, "scale") && kind->flags & KUBE_HAS_SCALE)
        return KUBE_SUBRESOURCE_SCALE;
    if (slice_is(name, "finalize") && kube_kind_is(kind, "", "namespaces"))
        return KUBE_SUBRESOURCE_FINALIZE;
    if (kube_is_part(call))
        return KUBE_SUBRESOURCE_PART;
    if (kube_kind_is(kind, "", "pods") && (slice_is(name, "binding") || slice_is(name, "eviction")))
        return KUBE_SUBRESOURCE_POST;
    if (is_token_request(call) && kube_account_can_sign(call->api->config->accounts))
        return KUBE_SUBRESOURCE_TOKEN;
    return KUBE_SUBRESOURCE_UNKNOWN;
}

void kube_not_allowed(struct kube_call *call)
{
    kube_fail_not_allowed(&call->status);
    kube_call_fail(call);
}

void kube_no_subresource(struct kube_call *call)
{
    /* It exists, but not for this method. */
    if (call->subresource != KUBE_SUBRESOURCE_UNKNOWN) {
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
